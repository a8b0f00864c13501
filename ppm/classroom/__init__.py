"""Exercises that check themselves: one set for each chapter of the book.

A notebook of exercises opens its chapter's set with ``classroom.chapter("theory")``, takes its data
from ``given``, and calls ``check("name", answer)``.
"""

from ppm._validation import lazily

# name -> the module that defines it; the book's dependency tracking reads this table too
_EXPORTS = {
    "chapter": "ppm.classroom.chapters",
    "Chapter": "ppm.classroom.chapters",
    "Exercise": "ppm.classroom.checking",
    "Mistake": "ppm.classroom.checking",
    "Verdict": "ppm.classroom.checking",
}

__all__ = [*_EXPORTS]
__getattr__, __dir__ = lazily(globals(), _EXPORTS)
