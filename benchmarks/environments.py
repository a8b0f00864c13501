"""Environments of their own for what cannot be installed beside the library."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np


def environment(name):
    """Folder of the environment that ``--install`` makes, in the user's cache folder."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "ppm" / name


def install(name, requirement, interpreters, needs=""):
    """Make an environment, or end with a message that says why not.

    Parameters
    ----------
    name : str
        Its name, that of what is installed.
    requirement : str
        What is installed, with its versions.
    interpreters : sequence of str
        Python interpreters, the first that there is of which is taken.
    needs : str, optional
        What to say if there is none.
    """
    found = next((path for path in map(shutil.which, interpreters) if path), None)
    if found is None:
        sys.exit(
            f"no interpreter found ({', '.join(interpreters)}){needs}; name one with --python PATH"
        )
    python = environment(name) / "bin" / "python"
    for command in (
        [found, "-m", "venv", "--clear", str(environment(name))],
        [str(python), "-m", "pip", "install", "--quiet", requirement],
    ):
        if subprocess.run(command).returncode:
            sys.exit(f"could not make the environment: {' '.join(command)} failed (see above)")
    print(f"{name} is ready: {python}")


def find(name, given, modules, what_to_do):
    """Interpreter that can import modules, or an end with what to do.

    Parameters
    ----------
    name : str
        Name of the environment.
    given : str or None
        Interpreter to take instead of the environment's.
    modules : sequence of str
        What it has to import.
    what_to_do : str
        How the user gets one.
    """
    python = Path(given) if given else environment(name) / "bin" / "python"
    if not python.exists():
        sys.exit(f"no environment for {name} at {python}: {what_to_do}")
    check = [str(python), "-W", "ignore", "-c", f"import {', '.join(modules)}"]
    if subprocess.run(check, capture_output=True).returncode:
        sys.exit(f"{python} cannot import {' and '.join(modules)}: {what_to_do}")
    # not resolved: a link into the environment is what makes it one
    return os.path.abspath(python)


def answer(name, python, script, *arguments, given, **environment):
    """Arrays that a script finds from others in an environment of its own, or an end.

    The script is called with its arguments and two NumPy archives: what is given, and where its
    answer goes. Its progress goes to the error stream.

    Parameters
    ----------
    name : str
        Name of what it runs, for a message.
    python : str
        Interpreter of the environment.
    script : path-like
        The script.
    *arguments : path-like
        Its first arguments.
    given : dict of str to array_like
        What it starts from.
    **environment : str
        Variables beside those of this process.
    """
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "input.npz"), Path(folder, "output.npz")
        np.savez(source, **given)
        # what it compiles would be left where it stands
        done = subprocess.run(
            [python, script, *arguments, source, target], cwd=folder,
            env=os.environ | {"PYTHONPATH": ""} | environment,
        )  # fmt: skip
        if done.returncode:
            sys.exit(f"the side of {name} failed: see its message above")
        return dict(np.load(target))
