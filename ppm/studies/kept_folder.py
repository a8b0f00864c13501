"""Folders that keep results, each found again by a hash of everything that it came from."""

import contextlib
import json
import re
import time
import uuid
import warnings

import numpy as np

from ppm._validation import check_folder
from ppm.disclosure import NOTE_FILE, own_file, own_folder

# what a process that was killed left half-written is removed when it is older than this
_SECONDS_OF_A_PART = 24 * 3600.0


class DamagedFit(UserWarning):
    """A kept fit cannot be read, or a new one cannot be kept; it is computed all the same.

    A notebook that shows a warning counts as failed. This one costs time and nothing else, hence
    its name, by which runs of notebooks do not take it for one of those.
    """


class KeptFolder:
    """A folder of results, one file each, named by the hash of what it was computed from.

    What lies there is confidential, and a text file in it says so.

    Parameters
    ----------
    folder : path-like
        The folder. If it does not exist it is made, for its owner only. One that exists keeps its
        permissions, as others may use it for something else; the files in it are readable by their
        owner only, those of earlier runs too.
    name : str
        What the argument is called.
    note : str
        The text file.
    what : str
        What is kept, in the singular.

    Raises
    ------
    ValueError
        If the folder cannot be made or written.
    """

    def __init__(self, folder, *, name, note, what):
        self.what = what
        self.folder = check_folder(name, folder)
        text = self.folder / NOTE_FILE
        try:
            if not self.folder.exists():
                own_folder(self.folder)
            # on a full disk an empty one may have been left
            if not text.exists() or not text.stat().st_size:
                own_file(text).write_text(note, "utf-8")
            for file in self.folder.glob("*.npz"):
                if re.fullmatch(r"[0-9a-f]{40}", file.stem):
                    # somebody else's file is theirs to open or close, or gone by now
                    with contextlib.suppress(PermissionError, FileNotFoundError):
                        file.chmod(0o600)
            self._remove_old_parts()
        except OSError as error:
            raise ValueError(f"{name}: cannot write into {folder}: {error.strerror}") from None

    def _remove_old_parts(self):
        for part in self.folder.glob("*.part"):
            if re.fullmatch(r"[0-9a-f]{40}\.[0-9a-f]{32}", part.stem):
                # of another process that works here it may be gone by now
                with contextlib.suppress(FileNotFoundError, PermissionError):
                    if time.time() - part.stat().st_mtime > _SECONDS_OF_A_PART:
                        part.unlink()

    def path(self, key):
        """File of a result, whether it exists or not."""
        return self.folder / f"{key}.npz"

    def read(self, key, build):
        """The result with this key, or None if there is none that can be read.

        Parameters
        ----------
        key : str
            Its hash.
        build : callable
            From the head and the arrays of the file to the result.
        """
        path = self.path(key)
        try:
            # opened here, because NumPy leaves a file open that it cannot read
            with path.open("rb") as stream, np.load(stream, allow_pickle=False) as found:
                # reading an array checks its sum of bits
                arrays = {name: found[name] for name in found.files}
            head = json.loads(str(arrays.pop("head")))
            if head["key"] != key:
                raise ValueError(f"it belongs to another {self.what}")
            return build(head, arrays)
        except FileNotFoundError:
            return None
        except Exception as error:
            # damage shows in many ways: as a broken archive, a missing entry, a wrong shape
            warnings.warn(
                f"{path.name} among the kept {self.what}s is damaged and is computed again "
                f"({error})",
                DamagedFit,
                stacklevel=3,
            )
            return None

    def write(self, key, head, arrays):
        """Keep a result: written beside, then renamed, so that no half of it is ever read."""
        part = self.folder / f"{key}.{uuid.uuid4().hex}.part"
        try:
            with own_file(part).open("wb") as stream:
                np.savez(stream, head=np.array(json.dumps({**head, "key": key})), **arrays)
            part.replace(self.path(key))
        except OSError as error:
            warnings.warn(
                f"a {self.what} could not be kept in {self.folder.name}: {error.strerror}",
                DamagedFit,
                stacklevel=3,
            )
        finally:
            # there is none if the disk turned read-only, which its removal would say once more
            with contextlib.suppress(OSError):
                part.unlink()
