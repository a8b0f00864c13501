"""The exercises of a chapter: their data, and one checker for all of them."""

import difflib
from importlib import import_module

# in the order of the book
CHAPTERS = (
    "theory",
    "poisson_contraction",
    "privacy_audit",
    "ce_application",
    "strict_release",
    "using_releases",
    "your_own_model",
    "what_it_means",
    "application_settings",
    "large_data",
)


def chapter(name):
    """Open the exercises of a chapter.

    Parameters
    ----------
    name : str
        A chapter's name, as its notebook is called: ``theory``, ``poisson_contraction``,
        ``privacy_audit``, ``ce_application``, ``strict_release``, ``using_releases``,
        ``your_own_model``, ``what_it_means``, ``application_settings`` or ``large_data``.

    Returns
    -------
    Chapter

    Raises
    ------
    ValueError
        If there is no such chapter.

    Examples
    --------
    >>> from ppm import classroom
    >>> work = classroom.chapter("theory")
    >>> work.given.counts
    array([ 3,  4,  4,  5,  5,  6,  7, 18])
    """
    if name not in CHAPTERS:
        raise ValueError(_unknown("chapter", name, CHAPTERS))
    module = import_module(f"ppm.classroom.{name}")
    given = module.given()
    return Chapter(name, given, module.exercises(given))


class Chapter:
    """The exercises of one chapter.

    Parameters
    ----------
    name : str
        The chapter's name.
    given : types.SimpleNamespace
        The data of the exercises.
    exercises : sequence of Exercise
        The exercises that have a check.

    Attributes
    ----------
    name : str
        The chapter's name.
    given : types.SimpleNamespace
        The data of the exercises: simulated, or made up.
    exercises : dict of str to Exercise
        The exercises that have a check, by name.

    Examples
    --------
    >>> from ppm import classroom
    >>> work = classroom.chapter("theory")
    >>> work.check("releases", [20, 1 / 20])
    ✘ releases: The theorem has a factor in front of Δ. See where its proof divides.
    >>> work.check("releases", [40, 1 / 40])
    ✔ releases: right
    >>> print(work.summary().partition(";")[0])
    1 of 7 solved
    """

    def __init__(self, name, given, exercises):
        self.name = name
        self.given = given
        self.exercises = {exercise.name: exercise for exercise in exercises}
        self._solved = set()

    def check(self, name, answer):
        """Check an answer.

        Parameters
        ----------
        name : str
            The exercise's name.
        answer : object
            Numbers in any form, or letters where it asks for letters.

        Returns
        -------
        Verdict
            Shown at the end of a cell: whether the answer is right, and a hint if it is not.

        Raises
        ------
        ValueError
            If the chapter has no such exercise.
        """
        if name not in self.exercises:
            raise ValueError(_unknown("exercise", name, self.exercises))
        verdict = self.exercises[name].judge(answer)
        (self._solved.add if verdict.solved else self._solved.discard)(name)
        return verdict

    def summary(self):
        """How many exercises are solved so far, and which are not, in one line."""
        missing = [name for name in self.exercises if name not in self._solved]
        told = f"{len(self._solved)} of {len(self.exercises)} solved"
        return f"{told}; open: {', '.join(missing)}" if missing else told


def _unknown(kind, name, accepted):
    close = difflib.get_close_matches(str(name), list(accepted), n=1)
    meant = f"; did you mean {close[0]}?" if close else ""
    return f"unknown {kind} {str(name)[:60]!r}{meant} (accepted: {', '.join(accepted)})"
