"""Files and folders that only their owner can open, and the text that says why."""

import contextlib
import os
from pathlib import Path

NOTE_FILE = "CONFIDENTIAL.txt"
_NOTE = """What lies in this folder was computed from records: {data}.

The notebook, the page, the tables and the values compare synthetic databases with
the records, or tell how rare single records are. No epsilon covers them. Keep the
folder where the records themselves may be kept, and hand nothing out of it. This is
why only their owner can read the files.

If anybody may see the records, open the folder to others: chmod -R go+rX on it.
"""


@contextlib.contextmanager
def owner_only():
    """Let everything that is written meanwhile, by child processes too, be its owner's alone."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def own_folder(path):
    """Make a folder that only its owner can open, or close one that the library made before."""
    path = Path(path)
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.chmod(0o700)
    return path


def own_file(path):
    """Make a file that only its owner can read, for somebody to fill, or close one to others."""
    path = Path(path)
    path.touch(mode=0o600)
    path.chmod(0o600)
    return path


def leave_note(folder, data):
    """Say in a folder why it must stay.

    Parameters
    ----------
    folder : path-like
        The folder.
    data : str
        Name of the data file.
    """
    own_file(Path(folder, NOTE_FILE)).write_text(_NOTE.format(data=data), "utf-8")
