"""Claims and numbers of the chapter on a strict release."""

import numpy as np

import ppm

# what users need, as the chapter says, in per cent of a change
LEVEL, SHAPE = 20, 50


def at(widths):
    """What claims ask of a run: whether it has all values of ε that a sentence speaks of."""

    def has(*needed):
        return {*needed} <= {*widths} or None

    return has


def tried(rehearsal):
    """Names of the mechanisms between both ends."""
    return [*dict.fromkeys(name for name, _ in rehearsal.tried)]


def few(rehearsal):
    """The name of the mechanism with few bins."""
    return next(name for name in tried(rehearsal) if name.startswith("Bins(bins=5,"))


def apart(compared):
    def apart(one, other, goal):
        """By how much one row is nearer than another, and twice the standard error."""
        mean, error = compared.difference(one, other, goal)
        return -mean, 2 * error

    return apart


def nearer(apart):
    def nearer(one, other, goal):
        """Whether one row is surely nearer than another."""
        mean, twice = apart(one, other, goal)
        return mean > twice

    return nearer


def published(found):
    """The row of published records."""
    return found.index[0]


def largest(compared):
    """The change of level of the largest group alone."""
    return compared.settings["of level"][-1]


def level_needs_0_1(at, rehearsal, means):
    # by two standard errors
    change = rehearsal.table["change"] + 2 * rehearsal.table["change ±"]
    return at(0.05, 0.1) and (
        change[str(means), 0.1] <= LEVEL and change[:, 0.05].min() > LEVEL
    )


def shapes_need_0_25(at, rehearsal, bins):
    shapes = rehearsal.table["shapes"] + 2 * rehearsal.table["shapes ±"]
    return at(0.1, 0.25) and (
        shapes[:, 0.1].min() > SHAPE
        and shapes[str(bins), 0.25] <= SHAPE
        and shapes[:, 0.25].idxmin() == str(bins)
    )


def bins_for_both(at, rehearsal, bins):
    row = str(bins), 0.25
    table = rehearsal.table
    return at(0.25) and all(
        table[goal][row] + 2 * table[f"{goal} ±"][row] <= needed
        for goal, needed in (("change", LEVEL), ("shapes", SHAPE))
    )


def few_bins(at, rehearsal, bins):
    if not at(0.05):
        return None
    few_row = few(rehearsal), 0.05
    mean, error = rehearsal.difference(few_row, (str(bins), 0.05), "change")
    return mean < -2 * error


def many_bins(at, rehearsal, bins):
    if not at(0.25):
        return None
    few_row = few(rehearsal), 0.25
    mean, error = rehearsal.difference((str(bins), 0.25), few_row, "shapes")
    return mean < -2 * error


def means_nearer(at, nearer, means, own):
    return at(0.1) and nearer((str(means), 0.1), (str(own), 0.1), "change")


def bins_nearer(at, nearer, bins, own):
    return at(0.25) and nearer((str(bins), 0.25), (str(own), 0.25), "shapes")


def sum_below(noises):
    others = noises["a draw"][-1], noises["sampling error"][-1]
    return noises["a noisy sum"][-1] < min(others)


def draw_above(noises):
    return np.all(noises["a draw"][-50:] > noises["sampling error"][-50:])


CLAIMS = {
    "home-less-than-paper": lambda home: (
        home["H found, in 100"]["Own weights"]
        < home["H found, in 100"]["Paper's mechanism"]
    ),
    "few-bins-at-0.05": few_bins,
    "many-bins-at-0.25": many_bins,
    "rehearsal-published-blind": lambda rehearsal: (
        rehearsal.table[["change", "shapes"]].iloc[0].min() > 95
    ),
    "unprotected-exact": lambda rehearsal, columns: (
        rehearsal.table[columns].iloc[-1].max() < 0.5
    ),
    "level-needs-0.1": level_needs_0_1,
    "shapes-need-0.25": shapes_need_0_25,
    "bins-for-both": bins_for_both,
    "means-beat-published": lambda at, nearer, means, published: (
        at(0.1) and nearer((str(means), 0.1), published, "levels, unchanged")
    ),
    "published-beat-own": lambda at, nearer, published, own: (
        at(0.1) and nearer(published, (str(own), 0.1), "levels, unchanged")
    ),
    "means-nearer-than-bins": lambda at, nearer, means, bins: (
        at(0.1) and nearer((str(means), 0.1), (str(bins), 0.1), "change")
    ),
    "means-nearer-than-own": means_nearer,
    "change-by-sums": means_nearer,
    "means-sees-zeros": lambda at, found, means: (
        at(0.25) and found["a tenth becomes 0"][str(means), 0.25] < 20
    ),
    "means-blind": lambda at, found, means: (
        at(1.0)
        and all(
            found.loc[str(means)][change].loc[:1.0].min() > 50
            for change in ("top tenth × 1.3", "spread × 1.25")
        )
    ),
    "bins-nearer-than-own": bins_nearer,
    "shapes-by-bins": bins_nearer,
    "shapes-took-0.25": lambda at, found, bins: (
        at(0.1, 0.25)
        and found["shapes"][:, 0.1].min() > SHAPE
        and found["shapes"][str(bins), 0.25] <= SHAPE
    ),
    "sum-below-sampling": sum_below,
    "sum-falls-below": sum_below,
    "draw-above-sampling": draw_above,
    "draw-runs-above": draw_above,
    "enough-at-0.1": lambda at, found, means, largest: (
        at(0.1) and found[largest][str(means), 0.1] <= LEVEL
    ),
}


def crossing(n, noises):
    """Number of records from which the noise of a sum lies below that of a draw, or a dash."""
    below = noises["a noisy sum"] < noises["a draw"]
    return "–" if below.all() or not below[-1] else f"{n[below.argmax()]:,.0f}"


def number(found, goal, mechanism, width, digits=0):
    """What a row has, or a dash where a run has none."""
    value = found[goal].get((str(mechanism), width), np.nan)
    return "–" if np.isnan(value) else f"{value:.{digits}f}"


def interval(apart, widths, one, other, goal, digits=0):
    """A difference and two standard errors, or a dash."""
    if not {one[1], other[1]} <= {*widths, 0.0}:
        return "–"
    mean, twice = apart(one, other, goal)
    return f"{mean:.{digits}f} ± {twice:.{digits}f}"


NUMBERS = {
    "m": lambda releases: f"{releases}",
    "ε planned": lambda epsilon: f"{epsilon:g}",
    "own found": lambda home: f"{home['H found, in 100']['Own weights']:.0f}",
    "limit": lambda: f"{100 * ppm.pdp.detection_limit(0.05, 1.0):.1f}",
    "ordinary spread": lambda home: f"{home['± of μ']['Ordinary posterior']:.1f}",
    "own spread": lambda home: f"{home['± of μ']['Own weights']:.1f}",
    "list spread": lambda possible: f"{possible.std():.1f}",
    "crossing": lambda n, noises: crossing(n, noises),
    "published levels": lambda found: f"{found['levels, unchanged'].iloc[0]:.1f}",
    "means levels": lambda found, means: number(
        found, "levels, unchanged", means, 0.1, 1
    ),
    "means published": lambda apart, widths, means, published: interval(
        apart, widths, (str(means), 0.1), published, "levels, unchanged", 1
    ),
    "own levels": lambda found, own: number(found, "levels, unchanged", own, 0.1, 1),
    "own published": lambda apart, widths, published, own: interval(
        apart, widths, published, (str(own), 0.1), "levels, unchanged", 1
    ),
    "means bins": lambda apart, widths, means, bins: interval(
        apart, widths, (str(means), 0.1), (str(bins), 0.1), "change"
    ),
    "means change": lambda found, means: number(found, "change", means, 0.1),
    "bins change": lambda found, bins: number(found, "change", bins, 0.1),
    "own change": lambda found, own: number(found, "change", own, 0.1),
    "own change 4": lambda found, own: number(found, "change", own, 4.0),
    "means own": lambda apart, widths, means, own: interval(
        apart, widths, (str(means), 0.1), (str(own), 0.1), "change"
    ),
    "bins shapes": lambda found, bins: number(found, "shapes", bins, 0.25),
    "bins own": lambda apart, widths, bins, own: interval(
        apart, widths, (str(bins), 0.25), (str(own), 0.25), "shapes"
    ),
    "largest size": lambda this_year: f"{this_year['group'].value_counts().iloc[0]:,}",
    "largest rmse": lambda found, means, largest: number(found, largest, means, 0.1),
}
