"""Check an answer: right, or wrong with a hint that does not give the right one away."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

# answers within this share of the right one are right: single precision passes, rounding does not
TOLERANCE = 1e-4
# answers within this share of it were rounded on the way, or come from another formula
CLOSE = 0.02
# and an entry below this share of the largest one is compared as if it were that large
NEARLY_NOTHING = 1e-3


@dataclass(frozen=True)
class Mistake:
    """A typical wrong answer and the hint that it gets.

    Attributes
    ----------
    name : str
        What went wrong, for the teacher.
    answer : callable
        Returns the wrong answer.
    hint : str
        What the student is told. It does not contain the right answer.

    Examples
    --------
    >>> from ppm import classroom
    >>> classroom.Mistake("no factor 2", lambda: 1.5, "Where does the 2 of the theorem come from?")
    Mistake(name='no factor 2', hint='Where does the 2 of the theorem come from?')
    """

    name: str
    answer: Callable[[], Any] = field(repr=False)
    hint: str


@dataclass(frozen=True)
class Exercise:
    """What an exercise asks for, its right answer, and what is typically answered instead.

    Attributes
    ----------
    name : str
        Its name in calls of ``check``.
    asks : str
        The kind of answer in words, such as "one weight for each household".
    right : callable
        Returns the right answer: a number or an array; or a set of letters, where it asks which of
        several sentences hold.
    mistakes : tuple of Mistake
        Wrong answers that get a hint of their own.
    look : str
        Where to look, for any other wrong answer.
    tolerance : float, default 1e-4
        Largest distance of an entry from the right one, as a share of it.
    options : str, default ""
        The letters to choose from, where it asks for letters.

    Examples
    --------
    >>> from ppm import classroom
    >>> half = classroom.Exercise(
    ...     "half", "one number", lambda: 0.5, (), "Divide by two."
    ... )
    >>> half.judge(0.25).solved, half.judge([0.5]).solved
    (False, True)
    """

    name: str
    asks: str
    right: Callable[[], Any] = field(repr=False)
    mistakes: tuple[Mistake, ...] = field(repr=False)
    look: str
    tolerance: float = TOLERANCE
    options: str = ""

    def judge(self, answer):
        """Judge an answer.

        Parameters
        ----------
        answer : object
            Numbers in any form: a number, a list, an array, or an object of pandas or xarray; or
            letters, as a text, a list or a set.

        Returns
        -------
        Verdict
        """
        told = self._fault(answer)
        return Verdict(self.name, not told, told or "right")

    def _fault(self, answer):
        """What is wrong with an answer; empty text if it is right."""
        if _is_blank(answer):
            return (
                f"no answer yet. Wanted: {self.asks}. Put it in the place of the three dots, run "
                "that cell, then this one."
            )
        if callable(answer):
            return "this is a function, not what it returns. Call it, with parentheses."
        if self.options:
            return self._fault_of_letters(answer)
        values = _as_numbers(answer)
        if values is None:
            return f"a {type(answer).__name__} that is not made of numbers. Wanted: {self.asks}."
        right = _as_numbers(self.right())
        if _agree(values, right, self.tolerance):
            return ""
        for mistake in self.mistakes:
            if _agree(values, _as_numbers(mistake.answer()), self.tolerance):
                return mistake.hint
        if values.shape != right.shape:
            return f"{_shape_fault(values, right)} Wanted: {self.asks}."
        return f"{_value_fault(values, right)} {self.look}".strip()

    def _fault_of_letters(self, answer):
        letters = _as_letters(answer)
        if letters is None or not letters <= set(self.options):
            return f"wanted: {self.asks}, out of {', '.join(self.options)}."
        right = _as_letters(self.right())
        if letters == right:
            return ""
        for mistake in self.mistakes:
            if letters == _as_letters(mistake.answer()):
                return mistake.hint
        judged = len(self.options) - len(letters ^ right)
        return f"{judged} of {len(self.options)} are judged rightly. {self.look}"


@dataclass(frozen=True, repr=False)
class Verdict:
    """What a check says of an answer.

    Attributes
    ----------
    name : str
        The exercise.
    solved : bool
        Whether the answer is right.
    message : str
        The hint, or "right".

    Examples
    --------
    >>> from ppm import classroom
    >>> classroom.Verdict("bound", True, "right")
    ✔ bound: right
    """

    name: str
    solved: bool
    message: str

    def __repr__(self):
        return f"{'✔' if self.solved else '✘'} {self.name}: {self.message}"


def _is_blank(answer):
    """Whether there is still a place to fill in."""
    if answer is None or answer is ...:
        return True
    if isinstance(answer, (list, tuple, set, frozenset)):
        return not answer or any(entry is None or entry is ... for entry in answer)
    return isinstance(answer, str) and not answer.strip(" .…")


def _as_numbers(answer):
    """An answer as an array without dimensions of length 1; None if it is not made of numbers."""
    if isinstance(answer, (str, bytes, dict, set, frozenset)):
        return None
    try:
        values = np.asarray(answer)
        if values.dtype.kind not in "biufO":
            return None
        return np.squeeze(values.astype(np.float64))
    except (TypeError, ValueError):
        return None


def _as_letters(answer):
    """An answer as a set of lower-case letters, as people list them; None if it is no such list."""
    try:
        entries = [answer] if isinstance(answer, str) else [str(entry) for entry in answer]
    except TypeError:
        return None
    letters = "".join(re.sub(r"\band\b|[\s,;&()./]", "", entry.lower()) for entry in entries)
    return set(letters) if letters.isalpha() else None


def _agree(values, other, tolerance):
    return values.shape == other.shape and bool(_entries_agree(values, other, tolerance).all())


def _entries_agree(values, other, tolerance):
    """Which entries are right, each by itself: a small number may stand beside a large one."""
    size = np.abs(other)
    largest = size.max(initial=0.0, where=np.isfinite(size))
    # an entry of nearly nothing has the rounding errors of the others
    room = tolerance * np.maximum(size, NEARLY_NOTHING * largest)
    return np.isclose(values, other, rtol=0.0, atol=room)


def _shape_fault(values, right):
    if values.ndim == 2 and values.T.shape == right.shape:
        return "Rows and columns are exchanged."
    if right.ndim == 0:
        return f"This is an array of shape {values.shape}, where one number belongs."
    if values.ndim == 0:
        return "This is one number, where there should be several."
    return f"The shape is {values.shape}: perhaps a sum or a maximum ran along the wrong axis."


def _value_fault(values, right):
    """What a wrong answer of the right shape has in common with the right one."""
    if not np.all(np.isfinite(values)) and np.all(np.isfinite(right)):
        return "There are values that are infinite or no number: 0 · ∞, log 0 or 0 / 0?"
    tests = {
        "Look at the sign. A log-likelihood is mostly negative; a bound is an absolute value.":
            (-right, TOLERANCE),
        "Look for a factor of 2.": (2 * right, TOLERANCE),
        "Look for a factor of 2: is one missing?": (right / 2, TOLERANCE),
        "A share lies between 0 and 1; this looks like a percentage, or like its reverse.":
            (100 * right, TOLERANCE),
        "Should this be a percentage?": (right / 100, TOLERANCE),
        "Logarithms in this book are natural ones.": (right / np.log(10), TOLERANCE),
    }
    for told, (other, tolerance) in tests.items():
        if np.any(right) and _agree(values, other, tolerance):
            return told
    if np.isfinite(right).all():
        # ends of an interval are close beside its width, a small number beside itself
        room = CLOSE * np.minimum(np.abs(right), np.ptp(right) or np.inf)
        if np.all(np.abs(values - right) <= room):
            return (
                "Close, but not the number. Was something rounded on the way (keep all digits), "
                "or does another formula come near it?"
            )
    if right.ndim == 1 and _agree(np.sort(values), np.sort(right), TOLERANCE):
        return "These are the right numbers in another order: keep the one that was asked for."
    if right.ndim:
        near = _entries_agree(values, right, TOLERANCE)
        return f"The shape is right; {near.sum()} of {near.size} entries are."
    return "Not this number."
