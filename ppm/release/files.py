"""Files that are written whole, or not at all, and never over another one."""

import contextlib
import os
import tempfile
from pathlib import Path

from ppm.checks import listed


def check_free(files):
    """Refuse names at which something stands, and a folder that is none."""
    for folder in {file.parent for file in files}:
        if not folder.is_dir():
            raise FileNotFoundError(f"path: there is no folder {folder}")
    if standing := [file.name for file in files if os.path.lexists(file)]:
        raise FileExistsError(f"path: there is a file {listed(standing)} already")


@contextlib.contextmanager
def reserved(contents):
    """A function that writes contents (bytes, by path in one folder): all of them, or none.

    Beforehand it takes as much room as these contents need, and a little more, under a name of its
    own in the same folder. What cannot be written, such as on a full disk, fails there.
    """
    check_free(contents)
    folder = next(iter(contents)).parent
    with contextlib.ExitStack() as stack:
        try:
            hidden = stack.enter_context(
                tempfile.TemporaryDirectory(
                    prefix=".ppm-", dir=folder, ignore_cleanup_errors=True
                )
            )
            for file, content in contents.items():
                # nothing that could be taken for a release, or compressed
                room = os.urandom(len(content) * 11 // 10 + 4096)
                write(Path(hidden, file.name), room)
        except OSError as error:
            told = f"path: nothing can be written in {folder}: {error.strerror}"
            raise OSError(error.errno, told) from None
        yield lambda final: _placed(final, Path(hidden))


def _placed(contents, hidden):
    """Write into the room that was taken, and give each file its name."""
    for file, content in contents.items():
        write(hidden / file.name, content)
    placed = []
    try:
        for file in contents:
            # fails where something stands by now, which a renaming would replace
            file.touch(exist_ok=False)
            placed.append(file)
            (hidden / file.name).replace(file)
    except BaseException:
        for file in placed:
            file.unlink()
        raise


def write_new(contents):
    """Write contents (bytes, by path in one folder) where nothing stands: all of them, or none."""
    with reserved(contents) as place:
        place(contents)


def write(file, content):
    """Write a file, over the bytes that it has, so that it keeps the room that it takes."""
    # unbuffered: a buffer would be written once more when the file is closed
    with open(os.open(file, os.O_RDWR | os.O_CREAT, 0o666), "r+b", buffering=0) as raw:
        pour(raw, content)
        raw.truncate(len(content))
        os.fsync(raw)


def pour(raw, content):
    """Write all of some bytes to an unbuffered file, which may take a part at a time."""
    rest = memoryview(content)
    while rest:
        rest = rest[raw.write(rest) :]
