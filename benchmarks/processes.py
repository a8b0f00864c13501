"""A benchmark's script in a process of its own, and the most memory that a process has held."""

import json
import os
import resource
import subprocess
import sys


def alone(script, *arguments, **environment):
    """Run a script in a fresh process, and return what its last line says, as JSON, if anything.

    Parameters
    ----------
    script : path-like
        The script.
    *arguments
        What it is called with.
    **environment : str
        Variables beside those of this process, or in the place of theirs.
    """
    done = subprocess.run(
        [sys.executable, script, *map(str, arguments)],
        env=os.environ | environment, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    said = done.stdout.splitlines()
    return json.loads(said[-1]) if said else None


def peak_megabytes():
    """The most that this process has held so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # bytes on a Mac, kilobytes on Linux
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)
