"""Environments of their own for what cannot be installed beside the library."""

import os
import shutil
import subprocess
import sys
from pathlib import Path


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
