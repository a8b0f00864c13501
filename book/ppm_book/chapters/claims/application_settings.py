"""Claims and numbers of the chapter on the settings of the application."""

import numpy as np

import ppm
from ppm_book.chapters.page import surely_less

TAIL, ONE, TEN = "90th percentile", "K = 1, log", "K = 10, log"


def first(nearest):
    return nearest.iloc[0]


def second(nearest):
    return nearest.iloc[min(1, len(nearest) - 1)]


def unsure(study):
    return sum(
        int((~(np.array(one["R-hat"]) <= ppm.chains.R_HAT_LIMIT)).sum())
        for one in study
    )


def one(labels):
    """The text speaks of one component: without it a run cannot tell."""
    return ONE in labels or None


def ten(labels):
    """As of ten."""
    return TEN in labels or None


def where_sure(labels, comparisons):
    def where_sure(statistic, label, who):
        """Whether one is closer in some runs, and the other in none."""
        if label not in labels:
            return None  # this run cannot tell
        sums = comparisons.loc[
            (statistic, label), ["DPweighted closer", "EMweighted closer"]
        ].sum()
        return sums.pop(f"{who} closer") > 0 and not sums.any()

    return where_sure


def leads(labels, comparisons, repeats, pairs):
    def leads(statistic, label, who):
        """Whether one is closer in more than half of the runs, and the other in none."""
        if label not in labels:
            return None  # this run cannot tell
        dp, em = comparisons.loc[
            (statistic, label), ["DPweighted closer", "EMweighted closer"]
        ].sum()
        ahead, behind = (dp, em) if who == "DPweighted" else (em, dp)
        return 2 * ahead > repeats * len(pairs) and not behind

    return leads


def near(fits):
    """How far Δ of EMweighted is from that of DPweighted, in per cent."""
    near = fits["local bound"].unstack("mechanism")
    return 100 * (near["EMweighted"] / near["DPweighted"] - 1).abs()


def tails(moved):
    return moved.loc["90th percentile"]


def shift(tails):
    return tails.sub(tails["Unweighted"], axis=0)


CLAIMS = {
    "two-with-asinh": lambda nearest, component_counts: (
        nearest.index[0] == ("asinh", 2) if 2 in component_counts else None
    ),
    "no-other-as-near": lambda first, second: surely_less(
        first[["distance", "error"]], second[["distance", "error"]]
    ),
    "one-component": lambda one, leads, shown: (
        one and all(leads(name, ONE, "DPweighted") for name in shown)
    ),
    "ten-for-percentiles": lambda ten, leads: (
        ten
        and all(leads(name, TEN, "EMweighted") for name in (TAIL, "10th percentile"))
    ),
    "ten-for-the-mean": lambda where_sure: where_sure("mean", TEN, "DPweighted"),
    "em-in-no-run": lambda comparisons: (
        not comparisons.loc["mean", "EMweighted closer"].sum()
    ),
    "shuffled-stays": lambda shift: (shift["Shuffled"].abs() < 3).all(),
    "trimmed-repairs": lambda one, tails: (
        one
        and tails.loc[ONE, "Trimmed"]
        < tails.loc[ONE, "DPweighted"]
        < tails.loc[ONE, "Unweighted"] - 5
    ),
}
NUMBERS = {
    "factor": lambda first: f"{first['factor']:.1f}",
    "unsure": lambda unsure, study: f"{unsure} of {7 * len(study)}",
    "smallest Δ": lambda bounds: f"{bounds['Unweighted'].min():.0f}",
    "largest Δ": lambda bounds: f"{bounds['Unweighted'].max():.0f}",
    "met": lambda near: (
        f"{(near <= 100 * ppm.OneWeight.tolerance).sum()} of {len(near)}"
    ),
}
