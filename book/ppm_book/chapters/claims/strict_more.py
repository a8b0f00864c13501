"""Claims and numbers of the chapter with more on strict releases."""

import numpy as np
import pandas as pd

from ppm_book.chapters.page import surely_less


def surely(table, column, sign, level):
    """Whether each value lies above (1) or below (-1) a level by two standard errors."""
    error = {"worst mean": "worst ±", "change shown": "shown ±", "mean": "mean ±"}[
        column
    ]
    return surely_less((0, 0), (sign * (table[column] - level), table[error]))


def scatter(table):
    """How far single releases lie from the typical one, in points of the change."""
    return np.sqrt(
        np.maximum(table["off 100 (RMSE)"] ** 2 - (table["change shown"] - 100) ** 2, 0)
    )


def nearer(one, other, column="worst mean", error="worst ±"):
    return surely_less(one[[column, error]], other[[column, error]])


# the text speaks of these widths: without one of them a run cannot tell


def at_quarter(widths):
    return 0.25 in widths or None


def at_one(widths):
    return 1.0 in widths or None


def at_four(widths):
    return 4.0 in widths or None


# ------------------------------------------------------------------------- reach and weight


def at(around):
    return {
        weight: around.xs(weight, level="weight")
        for weight in (0.05, 0.1, 0.2, 0.4, 1.0)
    }


def noisy(at_quarter, at):
    return at_quarter and all(
        (scatter(at[weight]) > 1.3 * scatter(at[0.2])).all() for weight in (0.05, 0.1)
    )


def overshoots(at):
    return surely(at[0.2], "change shown", 1, 100).all()


def shows_a_part(at):
    return surely(at[1.0], "change shown", -1, 75).all()


# ----------------------------------------------------------------------------- size of the grid


def no_sure_difference(by_size):
    worst, error = by_size["worst mean"].to_numpy(), by_size["worst ±"].to_numpy()
    # between any two sizes
    return not surely_less((worst[:, None], error[:, None]), (worst, error)).any()


def coarsest(by_size):
    return by_size.iloc[0]


def finest(by_size):
    return by_size.iloc[-1]


# -------------------------------------------------------------------------------------- groups


def six(by_groups):
    return by_groups.iloc[0]


def more(by_groups):
    return by_groups.iloc[1]


def most(by_groups):
    return by_groups.iloc[2]


# -------------------------------------------------------------------------------------- chains


def width_shown(widths):
    return 1.0 if 1.0 in widths else widths[0]


def plain(chained):
    return chained.loc["not centred"]


def centred(chained):
    return chained.loc["centred"]


def alone(chained):
    return chained.loc[("published table alone", 0.0)]


def scores(both):
    return both["pMSE ratio"].drop("the table itself")


def others(scores):
    """The releases that use education alone."""
    return scores.drop(["Chain, limits", "Raked margins"]).min()


# ------------------------------------------------------------------------------ many predictors


def near(many):
    return many.xs(1.0, level="spread")


def wide(many):
    return many.xs(3.0, level="spread")


def mean_is_right(near, alone):
    return near["mean"].max() <= alone["mean"]


def groups_are_wrong(alone, near):
    return all(nearer(alone, row) for _, row in near.iloc[1:].iterrows())


def less_than_half(near):
    return surely(near, "change shown", -1, 50).iloc[-1]


def looks_right_and_is_wrong(mean_is_right, groups_are_wrong, less_than_half):
    return mean_is_right and groups_are_wrong and less_than_half


# ----------------------------------------------------------------------- a wrong published table


def right(wrong):
    return wrong.loc[1.0]


def slight(wrong):
    return wrong.loc[0.8]


def middle(wrong):
    return wrong.loc[0.6]


def far(wrong):
    return wrong.loc[0.4]


def large(beyond):
    return pd.concat([beyond.loc[0.4], beyond.loc[0.2]])


CLAIMS = {
    "small-weights-not-off": lambda at_quarter, at: (
        at_quarter
        and not any(
            surely(at[weight], "change shown", sign, 100).any()
            for weight in (0.05, 0.1)
            for sign in (1, -1)
        )
    ),
    "single-release-scatters": noisy,
    "overshoot-at-0.2": lambda at_quarter, overshoots: at_quarter and overshoots,
    "part-at-1": lambda at_quarter, shows_a_part, at: (
        at_quarter and shows_a_part and surely(at[1.0], "change shown", 1, 25).all()
    ),
    "small-costs-noise": noisy,
    "large-costs-bias": lambda at_quarter, overshoots, shows_a_part: (
        at_quarter and overshoots and shows_a_part
    ),
    "scatters-less": lambda noisy, overshoots: noisy and overshoots,
    "longer-reach-worse": lambda at: nearer(
        at[0.4].loc[0.1], at[0.4].loc[0.4], "mean", "mean ±"
    ),
    # size of the grid
    "18-not-further-off": no_sure_difference,
    "size-makes-no-difference": no_sure_difference,
    "number-made-no-difference": no_sure_difference,
    "all-overshoot": lambda by_size: surely(by_size, "change shown", 1, 100).all(),
    "coarsest-overshoots-more": lambda coarsest, finest: nearer(
        finest, coarsest, "change shown", "shown ±"
    ),
    # groups
    "region-no-sure-harm": lambda six, more: not nearer(six, more),
    "surely-more": lambda six, most: nearer(six, most),
    # chains
    "without-center-further-off": lambda at_quarter, alone, plain, epsilon: (
        at_quarter and nearer(alone, plain.loc[epsilon])
    ),
    "at-4-both-nearer": lambda at_four, plain, centred, alone: (
        at_four and all(nearer(one.loc[4.0], alone) for one in (plain, centred))
    ),
    "much-less-scatter": lambda at_quarter, centred, plain, epsilon: (
        at_quarter and 2 * scatter(centred)[epsilon] < scatter(plain)[epsilon]
    ),
    "mean-further-off-at-1": lambda at_one, plain, centred, width_shown: (
        at_one
        and nearer(plain.loc[width_shown], centred.loc[width_shown], "mean", "mean ±")
    ),
    "both-chains-nearer": lambda plain, centred, epsilon, by_groups: all(
        nearer(one.loc[epsilon], by_groups.iloc[-1]) for one in (plain, centred)
    ),
    "neither-nearer": lambda plain, centred, epsilon, alone: all(
        one.loc[epsilon, "worst mean"] > alone["worst mean"] for one in (plain, centred)
    ),
    "regression-distinguishes": lambda others: others > 4,
    "chains-less": lambda scores, others: scores["Chain, limits"] < 0.7 * others,
    "raked-no-more-than-the-chain": lambda scores: (
        scores["Raked margins"] <= scores["Chain, limits"]
    ),
    # many predictors
    "less-than-the-change": lambda near: surely(near, "change shown", -1, 100).all(),
    "less-than-half": less_than_half,
    "still-less-than-all": lambda wide: surely(wide, "change shown", -1, 100).iloc[-1],
    "mean-no-further-off": mean_is_right,
    "groups-further-off": groups_are_wrong,
    "mean-alone-sees-none": looks_right_and_is_wrong,
    "looks-right-and-is-wrong": looks_right_and_is_wrong,
    # a wrong published table
    "20-too-low-no-harm": lambda right, slight: (
        not any(nearer(right.loc[reach], slight.loc[reach]) for reach in (0.1, 0.2))
    ),
    "40-too-low-nearer": lambda middle, right: (
        middle["worst mean"] < right["worst mean"]
    ).all(),
    "half-is-left": lambda middle: surely(middle, "change shown", -1, 50).all(),
    "off-by-a-quarter": lambda far: surely(far, "mean", 1, 25).all(),
    "not-shown-whole": lambda large: surely(large, "change shown", -1, 100).all(),
    "gather-at-the-edge": lambda far, beyond, right: (
        far["at the edge"][0.1] > 40
        and beyond.loc[(0.4, 0.1), "at the edge"] > 20
        and right["at the edge"][0.1] < 5
    ),
    "warning-goes-away": lambda far, beyond: (
        max(far["at the edge"][0.2], beyond.loc[(0.4, 0.2), "at the edge"]) < 5
    ),
    "share-moves-little": lambda far, beyond: all(
        abs(one["change shown"][0.2] - one["change shown"][0.1]) < 15
        for one in (far, beyond.loc[0.4], beyond.loc[0.2])
    ),
    "moved-much-further": lambda far, right: (
        far["moved (% of sd)"] > 2 * right["moved (% of sd)"]
    ).all(),
    "wrong-spread-leaves-means": lambda spread: (
        (spread["at the edge"] < 5).all()
        and spread.loc[0.5, "moved (% of sd)"] < spread.loc[1.0, "moved (% of sd)"]
    ),
    "only-sds-show-it": lambda spread: (
        spread.loc[0.5, "log sd moved (%)"] > 10
        and spread.loc[1.0, "log sd moved (%)"] < 0
    ),
    "two-groups-move-less": lambda beyond, far: (
        beyond["moved (% of sd)"].max() < far["moved (% of sd)"].min()
    ),
}
NUMBERS = {
    "m": lambda releases: f"{releases}",
    "short": lambda at: f"{at[0.4]['mean'][0.1]:.0f}",
    "long": lambda at: f"{at[0.4]['mean'][0.4]:.0f}",
    "groups": lambda most: f"{most['groups']:.0f}",
    "worst": lambda most: f"{most['worst mean']:.0f}",
    "largest R-hat": lambda chained: f"{chained['R-hat'].max():.2f}",
    "with": lambda centred, width_shown: f"{centred['mean'][width_shown]:.0f}",
    "without": lambda plain, width_shown: f"{plain['mean'][width_shown]:.0f}",
    "levels": lambda near: f"{near['mean'].max():.0f}",
    "part": lambda near: f"{near['change shown'].iloc[-1]:.0f}",
    "pooled": lambda releases: f"{releases}",
}
