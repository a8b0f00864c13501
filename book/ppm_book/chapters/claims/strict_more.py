"""Claims and numbers of the page on what a strict release costs."""

import numpy as np

from ppm_book.chapters import page


def exponents(draws):
    """Powers of n with which a draw narrows, by column and weight."""
    return draws["exponent of n"].unstack(level=0)


def at(widths):
    """Whether a run has an ε of which a sentence speaks."""
    return {*widths}.__contains__


def surely_nearer(found, MECHANISMS):
    def surely_nearer(one, other, width, *goals):
        """Whether one mechanism is surely nearer than another at an ε, for all these goals."""
        rows = ((str(MECHANISMS[name]), width) for name in (one, other))
        rows = [*rows]
        return all(
            page.surely_less(found.difference(*rows, goal), (0, 0)) for goal in goals
        )

    return surely_nearer


def nearer_than_posteriors(surely_nearer, MECHANISMS, BINS, MEANS):
    def nearer_than_posteriors(one, width, *goals):
        return all(
            surely_nearer(one, other, width, *goals)
            for other in MECHANISMS
            if other not in (BINS, MEANS)
        )

    return nearer_than_posteriors


def share(shown, MECHANISMS, releases):
    def share(weight, width=0.25):
        """Mean share of the fall under limits of this weight; its error; and its scatter."""
        place = str(MECHANISMS[f"limits, α = {weight:g}"]), width
        mean, scatter = shown.loc[place]
        return mean, scatter / np.sqrt(releases), scatter

    return share


def gap(found, MECHANISMS):
    def gap(one, other, width, goal):
        """A 95 % interval of the difference of two mechanisms."""
        rows = ((str(MECHANISMS[name]), width) for name in (one, other))
        mean, error = found.difference(*rows, goal)
        return "{:.1f} to {:.1f}".format(*(mean + np.array([-1.96, 1.96]) * error))

    return gap


def keeps_the_root(exponents):
    return (np.abs(exponents["normal"] + 0.5) < 0.05).all()


def atoms_change(exponents, draws):
    """Whether the powers are those of a round top, a point and a plateau, the last two off."""
    means = draws["mean of a draw"]["yes or no"]
    powers = np.allclose(exponents["yes or no"], [-0.5, -1, 0], atol=0.03)
    return powers and (np.abs(means - 0.25) > 0.1).tolist() == [False, True, True]


BOTH = "levels", "change"


def means_nearer(nearer_than_posteriors, widths, MEANS):
    return all(nearer_than_posteriors(MEANS, width, *BOTH) for width in widths)


CLAIMS = {
    "smooth-keeps-the-root": lambda keeps_the_root: keeps_the_root,
    "smooth-keeps-the-root-again": lambda keeps_the_root: keeps_the_root,
    "smooth-keeps-the-root-so": lambda keeps_the_root: keeps_the_root,
    "atoms-change-the-power": lambda atoms_change: atoms_change,
    "atoms-change-the-power-again": lambda atoms_change: atoms_change,
    "normal-is-off-too": lambda draws: (
        draws["mean of a draw"]["normal"][[0.2, 0.5]] < 0.2
    ).all(),
    "small-weights-are-noisy": lambda at, share: (
        share(0.1)[2] > 2 * share(10)[2] if at(0.25) else None
    ),
    "bias-of-either-sign": lambda at, share: (
        page.surely_less((100, 0), share(0.3)[:2])
        and page.surely_less(share(10)[:2], (100, 0))
        if at(0.25)
        else None
    ),
    "no-weight-for-both": lambda at, surely_nearer: (
        surely_nearer("limits, α = 10", "limits, α = 1", 0.25, "levels")
        and surely_nearer("limits, α = 1", "limits, α = 10", 0.25, "change")
        if at(0.25)
        else None
    ),
    "order-of-weights": lambda at, surely_nearer: (
        surely_nearer("limits, α = 1", "limits, α = 0.3", 0.25, *BOTH)
        and surely_nearer("limits, α = 0.3", "limits, α = 1", 1.0, *BOTH)
        if at(0.25) and at(1.0)
        else None
    ),
    "means-nearer-than-posteriors": lambda means_nearer: means_nearer,
    "means-nearer-than-posteriors-again": lambda means_nearer: means_nearer,
    "bins-nearer-than-posteriors": lambda at, nearer_than_posteriors, BINS: (
        all(nearer_than_posteriors(BINS, width, *BOTH) for width in (0.25, 1.0))
        if at(0.25) and at(1.0)
        else None
    ),
    "bins-nearer-in-levels": lambda at, nearer_than_posteriors, BINS: (
        nearer_than_posteriors(BINS, 0.1, "levels") if at(0.1) else None
    ),
    "limits-nearer-than-bins": lambda at, surely_nearer, BINS: (
        surely_nearer("limits, α = 0.3", BINS, 0.1, "change") if at(0.1) else None
    ),
    "same-weight-is-off": lambda at, surely_nearer, MECHANISMS: (
        all(
            surely_nearer(other, "limits, α = 0.3", 0.25, "levels")
            for other in MECHANISMS
            if other != "limits, α = 0.3"
        )
        if at(0.25)
        else None
    ),
    "means-nearer-for-the-fall": lambda surely_nearer, widths, BINS, MEANS: all(
        surely_nearer(MEANS, BINS, width, "change") for width in widths
    ),
    "means-nearer-in-levels": lambda surely_nearer, widths, BINS, MEANS: all(
        surely_nearer(MEANS, BINS, width, "levels") for width in widths
    ),
}


def told(*needed):
    """A number of a sentence on some ε, or a dash in a run without one of them."""

    def decide(compute):
        def number(widths, share, gap, BINS):
            return compute(share, gap, BINS) if {*needed} <= {*widths} else "–"

        return number

    return decide


NUMBERS = {
    "point": lambda draws: f"{draws['mean of a draw']['yes or no', 0.2]:.2f}",
    "noise small": told(0.25)(lambda share, gap, BINS: f"{share(0.1)[2]:.0f}"),
    "noise large": told(0.25)(lambda share, gap, BINS: f"{share(10)[2]:.0f}"),
    "shown more": told(0.25)(lambda share, gap, BINS: f"{share(0.3)[0]:.0f}"),
    "shown less": told(0.25)(lambda share, gap, BINS: f"{share(10)[0]:.0f}"),
    "ten to hundred": told(0.25)(
        lambda share, gap, BINS: gap(
            "limits, α = 100", "limits, α = 10", 0.25, "levels"
        )
    ),
    "limits less bins": told(0.1)(
        lambda share, gap, BINS: gap(BINS, "limits, α = 0.3", 0.1, "change")
    ),
}
