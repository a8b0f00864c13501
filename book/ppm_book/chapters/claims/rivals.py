"""Claims and numbers of the chapter on rivals."""

import numpy as np

from ppm_book.chapters import page, rivals

# claims ask for it by this name
at = rivals.has_widths


def level(many):
    def level(name, width):
        """Average error over the levels of all predictors; and its standard error."""
        return rivals.typical(many, name, width)

    return level


def raked(level, widths):
    return {width: level("Raked margins", width) for width in widths}


def median_share(many):
    def median_share(name, width, change):
        return rivals.of(many, name, width, change)["share"].median()

    return median_share


def moved_by(several):
    def moved_by(column):
        """Part of the way from last year's relation to this year's, at the largest ε."""
        now, before, *_, last = several[column]
        return (last - before) / (now - before)

    return moved_by


CLAIMS = {
    "relations-move": lambda moved_by: all(
        0.5 < moved_by(column) < 1.5
        for column in ("correlation", "income of owners to that of renters")
    ),
    "no-posterior-beats": lambda verdicts: (
        not any("Posterior" in words for words in verdicts.to_numpy().ravel())
    ),
    "zeros-mislead-the-model": lambda errors, ENDS: (
        errors["with zeros", "levels"].loc[ENDS[2]].iloc[0]
        > 3 * errors["with zeros", "levels"].loc[ENDS[1]].iloc[0]
    ),
    "prediction-is-blind": lambda median_share, moved: all(
        median_share("Records by prediction, unprotected", np.inf, change) < 60
        for change in moved
    ),
    "raking-keeps-levels": lambda raked, level: (
        not any(
            page.surely_less(level("Published records, by prediction", 0.0), one)
            and one[0] > 1.25 * level("Published records, by prediction", 0.0)[0]
            for one in raked.values()
        )
    ),
    "raking-shows-changes": lambda at, median_share, moved: (
        at(1.0)
        and all(median_share("Raked margins", 1.0, change) > 70 for change in moved)
    ),
    "raking-nearer-than-least-squares": lambda at, level: (
        at(0.25)
        and page.surely_less(
            level("Raked margins", 0.25), level("Noisy least squares", 0.25)
        )
    ),
}
NUMBERS = {
    "zeros model": lambda errors, ENDS: (
        f"{errors['with zeros', 'levels'].loc[ENDS[2]].iloc[0]:.0f}"
    ),
}
