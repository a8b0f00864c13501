"""Claims and numbers of the chapter on a strict release."""

import numpy as np


def places(ALONE, FREE, own, epsilon):
    """Mechanism and width of what the text has numbers of."""
    mechanisms = {"limits": "Grid, limits", "own": own, "histogram": "Histogram"}
    return {"alone": (ALONE, epsilon), "nothing": (FREE, epsilon)} | {
        f"{short} {width:g}": (name, width)
        for short, name in mechanisms.items()
        for width in (0.1, 0.25, 1.0)
    }


def worst(middle, group):
    return middle[group].unstack("mechanism")


def best(choices):
    """What the rehearsal chose, by width."""
    return choices["nearest"]


def at(widths):
    def at(*needed):
        """None where a run does not have the widths that the text speaks of."""
        return {*needed} <= {*widths} or None

    return at


def rmse(recovered, tried):
    def rmse(width, factor):
        """Of the shares of a change that single releases show, by strict mechanism."""
        return recovered["RMSE"].xs((width, f"lower × {factor}"), level=[1, 2])[
            [*tried]
        ]

    return rmse


def unbiased(shown_within):
    def unbiased(name, width, *factors):
        """Whether no share of these changes is surely off 100."""
        return not any(
            shown_within(name, factor, *beside, width)
            for factor in factors
            for beside in ((-1e9, 99.9), (100.1, 1e9))
        )

    return unbiased


def scatter(shares):
    def scatter(name, width):
        return np.std(shares[name, width, "lower × 0.8"])

    return scatter


def disagree(worst, FREE, own, nearer, group, best):
    def disagree(width):
        """Whether own weights are nearest to the levels, and the rehearsal chose the histogram."""
        return (
            worst.loc[width].drop(FREE).idxmin() == own
            and nearer(own, "Histogram", width, group)
            and best[width] == "Histogram"
        )

    return disagree


def edge(power, center, LOWER):
    """How far a change to 0.6 moves a group's mean."""
    return (1 - 0.6**power) * np.mean(
        [center[label][0] for label in center if label in LOWER]
    )


def half(at, shown_within, own):
    return at(0.1) and all(shown_within(own, factor, 30, 70) for factor in (0.8, 0.6))


def goals(at, disagree):
    return at(0.25, 0.5) and all(disagree(width) for width in (0.25, 0.5))


def least(at, rmse):
    return at(1.0) and all(
        rmse(1.0, factor).idxmin() == "Histogram" for factor in (0.8, 0.6)
    )


def fits(nearer, FREE, ALONE, epsilon, group):
    """Whether the model does."""
    return nearer(FREE, ALONE, epsilon, group)


def limits_first(at, best):
    return at(0.1) and best[0.1] == "Grid, limits"


def noisy(at, rmse):
    return (
        at(0.05)
        and rmse(0.05, 0.8)["Histogram"] > 100 > rmse(0.05, 0.8).drop("Histogram").max()
    )


def nearest_in_rehearsal(at, best):
    return at(0.1, 0.25) and all(
        name == ("Grid, limits" if width < 0.2 else "Histogram")
        for width, name in best.items()
    )


def both_nearer_than_histogram(at, nearer, group, own, ALONE):
    return at(0.1) and all(
        nearer(name, other, 0.1, group)
        for name in ("Grid, limits", own)
        for other in (ALONE, "Histogram")
    )


def alone_shows_nothing(shown_within, ALONE):
    return shown_within(ALONE, 0.6, -25, 25)


CLAIMS = {
    "differ-by-far-more": lambda starts: np.ptp(starts) > 1,
    "outer-two-too-large": lambda moves: min(moves[0], moves[2]) > 0.1,
    "nearest-in-rehearsal": nearest_in_rehearsal,
    "agency-takes-limits": limits_first,
    "shortest-reach-largest-weight": lambda at, chosen: (
        at(0.1) and chosen["Grid, limits", 0.1] == (0.1, 1.0)
    ),
    "gain-is-small": lambda at, half_alone, choices: (
        at(0.1) and 0 < half_alone - choices["Grid, limits"][0.1] < 2
    ),
    "own-further-off": lambda at, choices, half_alone: (
        at(0.5)
        and all(
            error > half_alone
            for width, error in choices["Grid, own weights"].items()
            if width <= 0.5
        )
    ),
    "none-nearer-at-0.05": lambda at, nearer, ALONE, group, tried: (
        at(0.05) and not any(nearer(name, ALONE, 0.05, group) for name in tried)
    ),
    "both-nearer-at-0.1": both_nearer_than_histogram,
    "nothing-protected-nearer": fits,
    "own-show-half": half,
    "own-show-half-in-answer": half,
    "own-show-half-in-caption": half,
    "histogram-is-noise": noisy,
    "alone-shows-nothing-in-caption": alone_shows_nothing,
    "alone-shows-nothing": alone_shows_nothing,
    "limits-show-a-part": lambda at, shown_within: (
        at(0.1) and shown_within("Grid, limits", 0.8, 0, 99.9)
    ),
    "chose-such-a-weight": lambda at, chosen: (
        at(0.1, 0.25)
        and chosen["Grid, limits", 0.25][1] < chosen["Grid, limits", 0.1][1]
    ),
    "limits-like-100": lambda at, unbiased: (
        at(0.25) and unbiased("Grid, limits", 0.25, 0.8, 0.6)
    ),
    "histogram-no-bias": lambda at, unbiased: (
        at(0.1) and unbiased("Histogram", 0.1, 0.9, 0.8, 0.6)
    ),
    "histogram-smallest-rmse": least,
    "limits-best-at-0.25": lambda at, rmse: (
        at(0.25) and rmse(0.25, 0.6).idxmin() == "Grid, limits"
    ),
    "goals-disagree": goals,
    "own-nearest-to-levels": goals,
    "they-show-half": lambda at, shown_within, own: (
        at(0.25, 0.5)
        and all(shown_within(own, 0.8, 30, 70, width) for width in (0.25, 0.5))
    ),
    "limits-no-bias": lambda at, unbiased: (
        at(0.25, 0.5)
        and all(unbiased("Grid, limits", width, 0.8) for width in (0.25, 0.5))
    ),
    "none-nearer-than-histogram": lambda at, nearer, group, tried: (
        at(1.0) and not any(nearer(name, "Histogram", 1.0, group) for name in tried)
    ),
    "to-the-edge": lambda reach, edge: 0.8 * reach < edge < reach,
    # cells of the table of recommendations
    "advise-limits": lambda limits_first, fits, nearer, ALONE, group: (
        limits_first and fits and nearer("Grid, limits", ALONE, 0.1, group)
    ),
    "advise-own-weights": lambda at, fits, nearer, own, ALONE, group: (
        at(0.1) and fits and nearer(own, ALONE, 0.1, group)
    ),
    "advise-no-clear-choice": lambda at, disagree: at(0.25) and disagree(0.25),
    "advise-limits-no-bias": lambda at, unbiased, scatter, own: (
        at(0.25)
        and unbiased("Grid, limits", 0.25, 0.8)
        and scatter("Grid, limits", 0.25) > 1.3 * scatter(own, 0.25)
    ),
    "advise-rehearsed-histogram": lambda at, best: (
        at(0.25) and best[0.25] == "Histogram"
    ),
    "advise-smallest-rmse": least,
    "advise-own-not-nearer": lambda at, nearer, own, group: (
        at(1.0) and not nearer(own, "Histogram", 1.0, group)
    ),
}
NUMBERS = {
    "m": lambda releases: f"{releases}",
    "half alone": lambda half_alone: f"{half_alone:.1f}",
    "half limits": lambda choices, epsilon: f"{choices['Grid, limits'][epsilon]:.1f}",
}
for name in (
    *("alone", "nothing", "limits 0.1", "limits 0.25", "own 0.1", "own 0.25", "own 1"),
    *("histogram 0.25", "histogram 1"),
):
    NUMBERS[name] = lambda middle, group, places, at=name: (
        f"{middle[group][places[at]]:.0f}" if places[at] in middle.index else "–"
    )
    NUMBERS[f"{name}, change"] = lambda shown, places, at=name: shown.get(
        places[at], "–"
    )
