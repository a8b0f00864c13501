"""A program in an environment of its own, so that the project's has nothing but what it needs."""

import subprocess
import sys
import venv


def tool(folder, name, requirement):
    """Path of a program in a folder's environment, which is made if the program is not there."""
    path = folder / "bin" / name
    if not path.exists():
        venv.create(folder, with_pip=True, clear=True)
        command = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", requirement]
        if subprocess.run(command).returncode:
            sys.exit(f"{requirement} could not be installed (see above)")
    return path
