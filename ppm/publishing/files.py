"""Files that are whole or not there, a folder for one process alone, and errors in one line."""

import contextlib
import re
from pathlib import Path

from ppm.disclosure import own_file

try:
    import fcntl
except ImportError:
    # Windows
    fcntl = None

# of a longer name the beginning says enough
_LONGEST_NAME = 100


class FolderInUse(RuntimeError):
    """Another process works in a folder; the message is one line."""


def write_whole(path, text, *, private=False):
    """Write a text beside and rename it: where that fails there is the earlier file, or none.

    Parameters
    ----------
    path : path-like
        The file.
    text : str
        All of it.
    private : bool, default False
        Whether only its owner may read it.

    Raises
    ------
    OSError
        If it cannot be written, as on a full disk.
    """
    path = Path(path)
    part = path.with_name(f"{path.name}.part")
    try:
        if private:
            own_file(part)
        part.write_bytes(text.encode())
        part.replace(path)
    except OSError as error:
        # the system does not say which file it could not fill
        error.filename = error.filename or str(path)
        raise
    finally:
        part.unlink(missing_ok=True)


@contextlib.contextmanager
def alone_in(folder):
    """Keep other processes out of a folder for as long as this one works there.

    The lock belongs to an open file, so it ends with its process, however that ends. Where there
    are no such locks (on Windows, and on some network drives) nobody is kept out.

    Parameters
    ----------
    folder : path-like
        The folder, which is made if it does not exist. The file ``lock`` in it stays.

    Raises
    ------
    FolderInUse
        If another process is at work in it.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "a") as stream:
        try:
            if fcntl:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FolderInUse(f"another process is at work in {folder}; wait for its end") from None
        except OSError:
            # no locks on this drive
            pass
        yield


def one_line(error, *, with_file=True):
    """What an error says, in one line.

    Parameters
    ----------
    error : BaseException
        The error.
    with_file : bool, default True
        Whether the line may name the file, and so a folder of this machine.
    """
    if not isinstance(error, OSError):
        return next(iter(str(error).strip().splitlines()), "") or type(error).__name__
    if error.args and isinstance(error.args[0], list):
        # shutil copies what it can and lists the rest: source, target, why
        files = error.args[0]
        why = re.sub(r"^\[Errno \d+\] |: '.*", "", str(files[0][-1]))
        return f"{len(files)} files could not be copied, the first for this: {why}"
    reason = error.strerror or str(error) or type(error).__name__
    return f"{reason}: {shortened(error.filename)}" if with_file and error.filename else reason


def shortened(path):
    """A path, or its beginning."""
    text = str(path)
    return text if len(text) <= _LONGEST_NAME else f"{text[:_LONGEST_NAME]}…"
