"""An account of ε: one small file that adds up what was released of a confidential table."""

import contextlib
import hashlib
import json
import os
import re
from datetime import UTC, datetime
from decimal import Decimal, localcontext
from pathlib import Path

from ppm.checks import Brief, check_number, shown
from ppm.release.files import pour, write

__all__ = ["Account"]

# digits that no sum of floats reaches, so that none is rounded
_DIGITS = 1000


class Account(Brief):
    """What was released of one confidential table, entry by entry, and the sum of all ε.

    The file has a first line with its budget and name, and a line of JSON for each entry. It is
    locked while it is read and written, and is only ever appended to. Each line holds the SHA-256
    of the line before, and a file beside it, with ``.last`` after its name, the last line once
    more, so that a line that was changed, removed or lowered is found, and the account refused.
    Keep both files together. What cannot be found is an older copy of both, or a second account
    of the same table: the sum is that of the entries in this file.

    Parameters
    ----------
    path : str or path
        The file, in a folder that exists, which stays the same where the working directory
        changes. It is made when a budget or a name is given, or by the first entry.
    budget : float, optional
        The most that ε may add up to: an entry that would exceed it is refused. It is written at
        once, and holds whoever opens the account later. An account without one may be given one.
    table : str, optional
        Public name of the confidential table, written likewise. Each entry carries it.

    Raises
    ------
    ValueError
        If the account has another budget or another table's name, or more in it than the budget.

    Examples
    --------
    >>> import ppm
    >>> account = ppm.release.Account("account.jsonl", budget=0.5)
    >>> for year in ("2023", "2024", "2025"):
    ...     entry = account.enter(0.1, f"counts of {year}")
    >>> account.total
    Decimal('0.3')
    >>> ppm.release.Account("account.jsonl").budget
    0.5
    """

    _public = ("path", "budget", "table")

    def __init__(self, path, *, budget=None, table=None):
        if not isinstance(path, str | os.PathLike):
            raise ValueError(
                f"account must be a path or a ppm.release.Account; got {shown(path)}"
            )
        # so that it is one file from every working directory
        file = Path(path).resolve()
        if not file.parent.is_dir() or (file.exists() and not file.is_file()):
            raise ValueError(
                f"account must be a file in a folder that exists; got {path}"
            )
        if not isinstance(table, str | None):
            raise ValueError(f"table must be a name; got {shown(table)}")
        self.path = str(file)
        # the last line that was read or written here
        self._known = b""
        self.budget = (
            budget if budget is None else check_number("budget", budget, at_least=0)
        )
        self.table = table
        if self.files[0].exists() or (self.budget, table) != (None, None):
            with self._locked() as (file, lines, contents):
                self._read(contents)
                self._settle(file, lines, contents)

    @property
    def files(self):
        """Both files: the account, and its last line once more."""
        return Path(self.path), Path(f"{self.path}.last")

    @property
    def name(self):
        """Name of the confidential table, or that of the file."""
        return self.table or self.files[0].name

    @property
    def entries(self):
        """The entries, a list of dicts, the oldest first."""
        if not (self._known or any([file.exists() for file in self.files])):
            return []
        with self._locked() as (_, _, contents):
            return self._read(contents)

    @property
    def total(self):
        """Sum of all ε, an exact Decimal."""
        return _total(self.entries)

    def enter(self, epsilon, what, *, digest=None, again=False):
        """Append an entry, and return it: before the noise is drawn, so that none stays untold.

        Parameters
        ----------
        epsilon : float
            ε of what is to be released, 0 or more.
        what : str
            What it is, in words.
        digest : str, optional
            SHA-256 of the plan; :meth:`ppm.release.ReleasePlan.release` gives it.
        again : bool, default False
            Whether the same digest may be entered once more.

        Raises
        ------
        ValueError
            If the sum would exceed the budget, the digest has been entered already, or a line was
            changed or removed. Nothing is entered then.
        """
        with self._locked() as (file, lines, contents):
            entry = self._entry(self._read(contents), epsilon, what, digest, again)
            before = self._settle(file, lines, contents, entering=True)
            self._append(file, entry, before)
        return entry

    def try_entry(self, epsilon, what, *, digest=None, again=False):
        """What :meth:`enter` would append now, or its refusal: nothing is entered."""
        return self._entry(self.entries, epsilon, what, digest, again)

    def _entry(self, entries, epsilon, what, digest, again):
        epsilon = _exact(check_number("epsilon", epsilon, at_least=0))
        if digest and not again and digest in [entry["digest"] for entry in entries]:
            raise ValueError(
                "plan must not be released twice: the account holds it already; "
                "again=True adds its epsilon once more"
            )
        total = _total([*entries, {"epsilon": epsilon}])
        if self.budget is not None and total > _exact(self.budget):
            raise ValueError(
                f"epsilon must keep the account within its budget of {self.budget:g}; "
                f"with {epsilon} the sum would be {total}"
            )
        return {
            "account": self.name,
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "what": what,
            "epsilon": str(epsilon),
            "digest": digest,
            "total": str(total),
        }

    def _read(self, contents):
        """The entries; budget and name of the table are taken from the other lines."""
        for name, kept in _settings(contents).items():
            given = getattr(self, name)
            if given not in (None, kept):
                raise ValueError(
                    f"{name} must be left out, or be that of the account, {kept}; got {given}"
                )
            setattr(self, name, kept)
        return _entries(contents)

    def _settle(self, file, lines, contents, entering=False):
        """Write a budget or a name that the file lacks; returns the last line."""
        own = {"table": self.table, "budget": self.budget}
        last = lines[-1] if lines else b""
        if own == dict.fromkeys(own) | _settings(contents) and (lines or not entering):
            return last
        total = _total(_entries(contents))
        if self.budget is not None and total > _exact(self.budget):
            raise ValueError(
                f"budget must be no less than what the account adds up to, {total}; got "
                f"{self.budget:g}"
            )
        return self._append(file, own, last)

    def _append(self, file, content, before):
        """Write a line, and then once more in the other file; returns it."""
        # also into the entry that is returned
        content["before"] = _sha256(before)
        line = json.dumps(content).encode() + b"\n"
        end = file.seek(0, os.SEEK_END)
        try:
            copy = self._copy(line)
            pour(file, line)
            os.fsync(file)
            copy.replace(self.files[1])
            self._known = line
        except OSError as error:
            # no noise was drawn for it
            file.truncate(end)
            self._new.unlink(missing_ok=True)
            told = f"account: nothing is entered, because {self.path} cannot be written"
            raise OSError(error.errno, f"{told}: {error.strerror}") from None
        return line

    @property
    def _new(self):
        # of this process, so that it is no file of anybody else
        return Path(f"{self.path}.{os.getpid()}.new")

    def _copy(self, line):
        """Write the last line once more, as what is to replace the other file."""
        write(self._new, line)
        return self._new

    @contextlib.contextmanager
    def _locked(self):
        """The open file, which no other process has meanwhile, its lines and what they hold.

        What an interrupted entry left is mended: a whole line counts, and gets its copy; a piece
        of one does not, because no noise was drawn for it.
        """
        import fcntl

        path, last = self.files
        if self._known and not path.exists():
            raise ValueError(f"account: {path.name} is gone, and had lines{_ANEW}")
        # unbuffered: a buffer would be written once more when the file is closed
        with open(path, "a+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            *lines, piece = file.read().split(b"\n")
            lines = [line + b"\n" for line in lines]
            contents = _contents(lines if lines or _begun(piece) else [piece])
            copy = last.read_bytes() if last.exists() else b""
            # lines after the one that was copied are of interrupted entries
            if copy not in lines and (copy or len(lines) > 1):
                raise ValueError(
                    f"account: {path.name} is not as {last.name} has it: lines are missing, "
                    f"or were changed{_ANEW}"
                )
            if self._known and self._known not in lines:
                raise ValueError(
                    f"account: {path.name} lacks lines that it had when it was last read{_ANEW}"
                )
            if piece:
                file.truncate(sum(map(len, lines)))
            if lines and copy != lines[-1]:
                self._copy(lines[-1]).replace(last)
            self._known = lines[-1] if lines else b""
            yield file, lines, contents


# how the first line of an account begins, but for the name of a table
_FIRST, _SECOND = b'{"table": ', b', "budget": '
_ANEW = (
    "; begin a new account, and enter first the sum of all that was released of this "
    "table: an older copy would forget a part of it"
)


def _begun(piece):
    """Whether a piece of a line is the beginning of an account's first line, and of no other file."""
    named = re.match(_FIRST + rb'(?:null|"(?:[^"\\]|\\.)*")', piece)
    if not named:
        # cut short before the name's end
        name = piece.removeprefix(_FIRST)
        return _FIRST.startswith(piece) or (
            piece != name and (name[:1] == b'"' or b"null".startswith(name))
        )
    rest = piece[named.end() :]
    return rest.startswith(_SECOND) or _SECOND.startswith(rest)


def _contents(lines):
    """The lines' contents, each of which follows from the one before."""
    contents, before = [], b""
    for number, line in enumerate(lines, 1):
        try:
            contents.append(json.loads(line))
            sound = contents[-1]["before"] == _sha256(before) and line.endswith(b"\n")
        except (KeyError, TypeError, ValueError):
            sound = False
        if not sound:
            raise ValueError(
                f"account: line {number} is not as it was written, or the one before it is "
                f"missing{_ANEW}"
            )
        before = line
    return contents


def _entries(contents):
    """Those of the lines that enter an ε."""
    return [one for one in contents if "epsilon" in one]


def _settings(contents):
    """Budget and name of the table; a later line gives what was lacking, and changes nothing."""
    settings = {}
    for one in contents:
        for name in ("table", "budget"):
            if "epsilon" not in one and one.get(name) is not None:
                settings.setdefault(name, one[name])
    return settings


def _exact(number):
    """The decimal number that is meant: 0.1 is a tenth."""
    return Decimal(repr(number))


def _total(entries):
    with localcontext(prec=_DIGITS):
        return sum([Decimal(entry["epsilon"]) for entry in entries], Decimal(0))


def _sha256(line):
    return hashlib.sha256(line).hexdigest()
