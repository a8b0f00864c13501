"""Check an answer: right, or wrong with a hint that does not give the right one away.

A chapter's answers stand beside this file, in ``<chapter>.py``: a function ``given()`` makes the
data of its exercises, and one function per exercise returns the right answer, typical wrong answers
by their hints, and where to look after any other wrong answer. If that would give a formula away,
it is a pair: a pointer after the first wrong answer, and the formula after another one.
"""

import io
import re
import zlib
from contextlib import redirect_stderr
from importlib import import_module
from itertools import count
from unittest.mock import patch

import numpy as np

# answers within this share of the right one are right: four significant digits pass
TOLERANCE = 5.001e-4
DIGITS = "to four significant digits"
# answers within this share of it were rounded on the way, or come from another formula
CLOSE = 0.02
# and an entry below this share of the largest one is compared as if it were that large
NEARLY_NOTHING = 1e-3


def exercise(asks, options="", judge=None):
    """Mark a function as an exercise, with what it asks for and the letters to choose from.

    Where many answers are right, the function returns one of them, and ``judge`` says what is wrong
    with another of the same shape, or "".
    """

    def mark(work):
        work.asks, work.options, work.judge = asks, options, judge
        return work

    return mark


class Verdict(str):
    """What a check says, shown without quotation marks at the end of a cell."""

    __repr__ = str.__str__


class Chapter:
    """The exercises of a chapter: their data, ``given``, and a check of the answers.

    >>> check = Chapter("theory")
    >>> check("releases", [20, 1 / 20])
    ✘ releases: The theorem has a factor in front of Δ. See where its proof divides.
    >>> check("releases", [40, 1 / 40])
    ✔ releases: right

    With a ``student``'s name, exercises whose data are drawn get data of the student's own.
    """

    def __init__(self, name, student=""):
        module = import_module(f"{__name__}.{name}")
        works = [each for each in vars(module).values() if hasattr(each, "asks")]
        self.works = {each.__name__.replace("_", "-"): each for each in works}
        self.student, self.solved, self.tried = student, set(), {}
        if not (student and hasattr(module, "SEED")):
            self.given = module.given()
            return
        if hasattr(module, "data_of"):
            # what the student was given, in a notebook that cannot look at slips
            self.given = module.data_of(student)
            return
        # the first data of the student's own at which no typical slip happens to be right
        for seed in count(zlib.crc32(str(student).strip().lower().encode())):
            with patch.object(module, "SEED", seed):
                self.given = module.given()
            if all(
                _tells_apart(work(self.given), work) for work in self.works.values()
            ):
                break

    def __call__(self, name, answer):
        """Say whether an answer is right, and if not, in what respect."""
        if name not in self.works:
            raise ValueError(
                f"unknown exercise {name!r} (accepted: {', '.join(self.works)})"
            )
        work, tried = self.works[name], self.tried.setdefault(name, set())
        read, _ = _ways(work)
        values = str(read(answer))
        # a cell that runs twice with the same answer is one try
        fault = _fault(answer, work, self.given, again=bool(tried - {values, "None"}))
        tried.add(values)
        if not fault:
            self.solved.add(name)
        return Verdict(f"✘ {name}: {fault}" if fault else f"✔ {name}: right")

    def points(self, name, answer, of=1):
        """Print whether an answer is right, and return its points, all or none, for nbgrader.

        To nbgrader a warning on stderr is an error, also one of an answer that is looked at.
        """
        with redirect_stderr(io.StringIO()):
            verdict = self(name, answer)
        print(verdict)
        return of if verdict.startswith("✔") else 0

    def hints(self, name, answer):
        """Check a right answer, and list the hints to typical slips; for teachers."""
        verdict = self(name, answer)
        if verdict.startswith("✘"):
            raise ValueError(verdict)
        return Verdict("\n- ".join([verdict, *self.works[name](self.given)[1]]))

    def summary(self):
        """How many exercises are solved so far, and which are not."""
        missing = [name for name in self.works if name not in self.solved]
        told = f"{len(self.solved)} of {len(self.works)} solved"
        return f"{told}; open: {', '.join(missing)}" if missing else told


def _ways(work):
    """How answers are read and compared."""
    return (_as_letters, set.__eq__) if work.options else (_as_numbers, _agree)


def _tells_apart(found, work):
    (read, same), (right, slips, _) = _ways(work), found
    return not any(same(read(slip), read(right)) for slip in slips.values())


def _fault(answer, work, given, again=False):
    """What is wrong with an answer; empty text if it is right.

    Formulas, and how many letters are judged rightly, are told when it is wrong ``again``.
    """
    if _is_blank(answer):
        digits = "" if work.options else f" (numbers {DIGITS})"
        return (
            f"no answer yet. Wanted: {work.asks}{digits}. Put it in the place of the three "
            "dots, run that cell, then this one."
        )
    if callable(answer):
        return "this is a function, not what it returns. Call it, with parentheses."
    read, same = _ways(work)
    values = read(answer)
    if values is None and not work.options:
        return f"{_no_number(answer)} Wanted: {work.asks}."
    if work.options and (values is None or not values <= set(work.options)):
        return f"wanted: {work.asks}, out of {', '.join(work.options)}."
    right, slips, look = work(given)
    pointer, formula = (look, look) if isinstance(look, str) else look
    look = formula if again else pointer
    right = read(right)
    if work.judge and values.shape == right.shape:
        return work.judge(given, values)
    if same(values, right):
        return ""
    for hint, slip in slips.items():
        if same(values, read(slip)):
            return hint
    if work.options and not again:
        return f"Not these. {look}"
    if work.options:
        if values == {*work.options} - right:
            return f"These are exactly the others. Wanted: {work.asks}."
        judged = len(work.options) - len(values ^ right)
        return f"{judged} of {len(work.options)} are judged rightly. {look}"
    if values.shape != right.shape:
        return f"{_shape_fault(values, right)} Wanted: {work.asks}."
    return f"{_value_fault(values, right)} {look}"


def _is_blank(answer):
    """Whether there is still a place to fill in."""
    if isinstance(answer, (list, tuple, set, frozenset)):
        return not answer or any(entry is None or entry is ... for entry in answer)
    if isinstance(answer, str):
        return not answer.strip(" .…")
    return answer is None or answer is ...


def _as_letters(answer):
    """An answer as a set of lower-case letters, as people list them; None if it is no such list."""
    try:
        entries = (
            [answer] if isinstance(answer, str) else [str(entry) for entry in answer]
        )
    except Exception:
        return None
    letters = "".join(
        re.sub(r"\band\b|[\s,;&()./]", "", entry.lower()) for entry in entries
    )
    return set(letters) if letters.isalpha() else None


def _as_numbers(answer):
    """An answer as an array without dimensions of length 1; None if it is not made of numbers."""
    if isinstance(answer, (bytes, dict, set, frozenset)):
        return None
    try:
        # numbers may be given as text, one or several
        values = np.asarray(_parts(answer) if isinstance(answer, str) else answer)
        if values.dtype.kind == "U":
            # the minus sign of a page
            values = np.strings.replace(values, "−", "-")
        return (
            np.squeeze(values.astype(float)) if values.dtype.kind in "biufOU" else None
        )
    # whatever an object of another package raises
    except Exception:
        return None


def _parts(text):
    """What stands between commas, blanks and brackets."""
    return re.findall(r"[^\s,;()[\]]+", text)


def _no_number(answer):
    """Why an answer cannot be read: the part of a text that is no number, or its type."""
    for entry in answer if isinstance(answer, (list, tuple)) else [answer]:
        for part in _parts(entry) if isinstance(entry, str) else ():
            if _as_numbers([part]) is None:
                return f"“{part}” is no number: units and other words stay outside."
    return f"This is of type {type(answer).__name__}, and not made of numbers."


@np.errstate(all="ignore")
def _entries_agree(values, other):
    """Which entries are right, each by itself: a small number may stand beside a large one."""
    size = np.abs(other)
    largest = size.max(initial=0.0, where=np.isfinite(size))
    # an entry of nearly nothing has the rounding errors of the others
    room = TOLERANCE * np.maximum(size, NEARLY_NOTHING * largest)
    # an infinite entry is only right if it is this infinity
    return (values == other) | np.isfinite(other) & (np.abs(values - other) <= room)


def _agree(values, other):
    return values.shape == other.shape and bool(_entries_agree(values, other).all())


def _shape_fault(values, right):
    if values.ndim == 2 and values.T.shape == right.shape:
        return "Rows and columns are exchanged."
    if max(values.ndim, right.ndim) == 1:
        found, wanted = (
            size if size != 1 else "one" for size in (values.size, right.size)
        )
        return (
            f"{found} number{'s' * (found != 'one')}, where there should be {wanted}."
        )
    return f"The shape is {values.shape}: perhaps a sum or a maximum ran along the wrong axis."


def _usual_slips(right):
    """What comes out instead of the right numbers, by what one may say of it."""
    with np.errstate(all="ignore"):
        return {
            "Look at the sign.": -right,
            "Look for a factor of 2.": 2 * right,
            "Look for a factor of 2: is one missing?": right / 2,
            "A share lies between 0 and 1; this looks like a percentage, or like its reverse.": 100
            * right,
            "Should this be a percentage?": right / 100,
            "Logarithms in this book are natural ones.": right / np.log(10),
            "Logarithms in this book are natural ones. Yours have the base 2.": right
            / np.log(2),
            "This is the reciprocal: was something divided the wrong way round, or has an exponent "
            "the wrong sign?": 1 / right,
            "This is one minus the answer: the share of the others.": 1 - right,
            "This is a factor. Its logarithm is wanted.": np.exp(right),
            "This is a logarithm. Undo it.": np.log(right),
            "This is the square of the answer. Variance or standard deviation?": right
            ** 2,
            "This is the root of the answer. Standard deviation or variance?": np.sqrt(
                right
            ),
        }


@np.errstate(all="ignore")
def _value_fault(values, right):
    """What a wrong answer of the right shape has in common with the right one."""
    if not np.isfinite(values).all() and np.isfinite(right).all():
        return "There are values that are infinite or no number: 0 · ∞, log 0 or 0 / 0?"
    near = _entries_agree(values, right)
    for told, other in _usual_slips(right).items():
        # where some entries are right, the others may share a slip
        if np.any(right) and (near | _entries_agree(values, other)).all():
            return (
                f"{near.sum()} of {near.size} entries are right. {told}"
                if near.any()
                else told
            )
    if np.isfinite(right).all():
        # ends of an interval are close beside its width, a small number beside itself
        room = CLOSE * np.minimum(np.abs(right), np.ptp(right) or np.inf)
        if np.all(np.abs(values - right) <= room):
            return (
                f"Close, but not the number. Was something rounded on the way (wanted is the "
                f"answer {DIGITS}), or does another formula come near it?"
            )
    if right.ndim == 1 and _agree(np.sort(values), np.sort(right)):
        return "These are the right numbers in another order: keep the one that was asked for."
    if right.ndim:
        return f"The shape is right; {near.sum()} of {near.size} entries are."
    return "Not this number."
