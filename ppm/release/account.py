"""An account of ε: one small file that adds up what was released of a confidential table."""

import contextlib
import hashlib
import json
import os
from datetime import UTC, datetime
from decimal import Decimal, localcontext
from pathlib import Path

from ppm.checks import Brief, check_number, shown

__all__ = ["Account"]

# digits that no sum of floats reaches, so that none is rounded
_DIGITS = 1000


class Account(Brief):
    """What was released of one confidential table, entry by entry, and the sum of all ε.

    The file has a first line with its budget, and a line of JSON for each entry. It is locked while
    it is read and written, and is only ever appended to. Each line holds the SHA-256 of the line
    before, and a file beside it, with ``.last`` after its name, the last line once more, so that a
    line that was changed, removed or lowered is found, and the account refused. Keep both files
    together.

    Parameters
    ----------
    path : str or path
        The file, in a folder that exists; it is made by the first entry.
    budget : float, optional
        The most that ε may add up to: an entry that would exceed it is refused. It is written
        with the first entry, and holds whoever opens the account later.
    table : str, optional
        Public name of the confidential table, written likewise.

    Raises
    ------
    ValueError
        If the account has another budget or another table's name.

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
        self.path = str(path)
        if Path(path).is_dir() or not Path(path).parent.is_dir():
            raise ValueError(
                f"account must be a file in a folder that exists; got {path}"
            )
        if not isinstance(table, str | None):
            raise ValueError(f"table must be a name; got {shown(table)}")
        self.budget = (
            budget if budget is None else check_number("budget", budget, at_least=0)
        )
        self.table = table
        if Path(path).exists():
            with self._locked() as (_, lines):
                self._read(lines)

    @property
    def entries(self):
        """The entries, a list of dicts, the oldest first."""
        with self._locked() as (_, lines):
            return self._read(lines)

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
        epsilon = _exact(check_number("epsilon", epsilon, at_least=0))
        with self._locked() as (file, lines):
            entries = self._read(lines)
            if (
                digest
                and not again
                and digest in [entry["digest"] for entry in entries]
            ):
                raise ValueError(
                    "plan must not be released twice: the account holds it already; "
                    "again=True adds its epsilon once more"
                )
            entry = {
                "time": datetime.now(UTC).isoformat(timespec="seconds"),
                "what": what,
                "epsilon": str(epsilon),
                "digest": digest,
                "total": str(_total([*entries, {"epsilon": epsilon}])),
            }
            if self.budget is not None and Decimal(entry["total"]) > _exact(
                self.budget
            ):
                raise ValueError(
                    f"epsilon must keep the account within its budget of {self.budget:g}; "
                    f"with {epsilon} the sum would be {entry['total']}"
                )
            before = lines[-1] if lines else b""
            if not lines:
                first = {"table": self.table, "budget": self.budget}
                before = self._append(file, first, before)
            self._append(file, entry, before)
        return entry

    def _append(self, file, content, before):
        """Write a line, and then once more in the other file; returns it."""
        content["before"] = _sha256(before)
        line = json.dumps(content).encode() + b"\n"
        file.write(line)
        file.flush()
        os.fsync(file.fileno())
        new = self._last.with_suffix(".new")
        new.write_bytes(line)
        new.replace(self._last)
        return line

    def _read(self, lines):
        """The entries; the first line has the budget and the name of the table."""
        first, *entries = _entries(lines) or [None]
        for name in ("table", "budget") if first else ():
            given, kept = getattr(self, name), first.get(name)
            if given is not None and given != kept:
                raise ValueError(
                    f"{name} must be left out, or be that of the account, {kept}; got {given}"
                )
            setattr(self, name, kept)
        return entries

    @property
    def _last(self):
        return Path(f"{self.path}.last")

    @contextlib.contextmanager
    def _locked(self):
        """The open file, which no other process has meanwhile, and its lines, the last ones too."""
        import fcntl

        with open(self.path, "a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            lines = file.readlines()
            last = self._last.read_bytes() if self._last.exists() else b""
            # a crash can leave one line more
            if last not in [b"", *lines][-2:]:
                raise ValueError(
                    f"account: the end of {self.path} is not as {self._last.name} has it: "
                    "lines are missing, or were changed; go on with both files as they were, "
                    "from a copy"
                )
            yield file, lines


def _entries(lines):
    """The lines' contents, each of which follows from the one before."""
    entries, before = [], b""
    for number, line in enumerate(lines, 1):
        if not line.endswith(b"\n"):
            raise ValueError(
                f"account: line {number} is not as it was written, but cut short, before "
                "any noise was drawn for it: remove this line alone, and go on"
            )
        try:
            entries.append(json.loads(line))
            sound = entries[-1]["before"] == _sha256(before)
        except (KeyError, TypeError, ValueError):
            sound = False
        if not sound:
            raise ValueError(
                f"account: line {number} is not as it was written, or the one before it is "
                "missing; go on with both files as they were, from a copy"
            )
        before = line
    return entries


def _exact(number):
    """The decimal number that is meant: 0.1 is a tenth."""
    return Decimal(repr(number))


def _total(entries):
    with localcontext(prec=_DIGITS):
        return sum([Decimal(entry["epsilon"]) for entry in entries], Decimal(0))


def _sha256(line):
    return hashlib.sha256(line).hexdigest()
