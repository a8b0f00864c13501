"""Claims and numbers of the audit of privacy."""

import numpy as np
import pandas as pd

from ppm_book.chapters.page import surely_less

M = "Weighted-M"


def own(worst):
    """Twice each mechanism's own bound, of the worst database."""
    return 2 * worst["local_bound"].to_series()


def over(worst):
    return worst["parameters_over"].to_series()


def loss(worst):
    return worst.sel(mechanism=M)["loss_common"].to_series()


def weight(worst):
    return worst.sel(mechanism=M)["weight"].to_series()


def above(exceeded):
    return exceeded.unstack("loss")["exceeded"]


def share(exceeded, largest):
    return exceeded.unstack("loss")["estimate"].loc[(M, largest)]


def again(above):
    """Where the weights are computed again."""
    return above.drop(columns="fixed")


def surely(study, two_delta):
    losses = study["loss_integrated"], study["loss_integrated_error"]
    surely = surely_less((two_delta, 0), losses)
    return surely.groupby(["mechanism", "size"]).sum()


def at_largest(losses, largest):
    return losses.xs(largest, level="size")


def restricted(everywhere):
    return everywhere.index.get_level_values("mechanism").str.endswith("on T")


def sampled(refits):
    return pd.concat(
        {name: found.table().iloc[0] for name, found in refits.items()}, axis=1
    )


def reacting(sampled):
    return sampled[["Weighted", M]]


def final_loss(comparison):
    return comparison["loss"]


def error(comparison):
    return comparison["error"]


def capped(worst):
    return worst.sel(mechanism="Capped")


def by_largest(loss):
    """Whether the largest count is the one whose leaving moves the posterior most."""
    return loss.idxmax() == loss.index.max()


def none_when_fixed(above):
    return not above["fixed"].any()


def every_size_and_way(again):
    return (again.loc[M] > 0).all(axis=None)


def no_other(again):
    return not again.drop(index=M).any(axis=None)


def far_above(loss, own):
    return loss.max() > 2 * own[M]


def weighted_far_above(extreme):
    """For the table with a lone 40, in all three ways to compute the weights again."""
    found = extreme.loc["Weighted"]
    least = found[["loss_common", "loss_worst", "loss_integrated"]].min()
    return least > 10 * found["2Δ"] and found["share_worst"] > 10


CLAIMS = {
    "far-above-in-figure": lambda far_above, by_largest: far_above and by_largest,
    "no-other-above-oscillation": lambda worst, loss: (
        loss.drop(index=loss.index.max()).max()
        < worst["oscillation_bound"].to_series()[M]
    ),
    "capped-alike": lambda capped: all(
        np.allclose(capped[f"loss_{way}"], capped["loss_fixed"])
        for way in ("common", "integrated")
    ),
    "far-above": far_above,
    "by-its-largest-count": lambda by_largest, loss, weight: (
        by_largest and weight[loss.idxmax()] == 0
    ),
    "at-most-draws": lambda over: over[M] > 0.5,
    "weighted-stays-below": lambda over: over["Weighted"] == 0,
    "median-above": lambda at_largest: (
        at_largest["one seed"] > at_largest["oscillation"]
    )["Weighted"],
    "larger-on-t": lambda at_largest: (
        at_largest.loc["Capped on T"] >= at_largest.loc["Capped"]
    ).all(),
    "only-weighted-m-crosses": lambda every_size_and_way, no_other: (
        every_size_and_way and no_other
    ),
    "fixed-none-in-figure": none_when_fixed,
    "every-size-in-figure": every_size_and_way,
    "no-other-in-figure": no_other,
    "fixed-none": none_when_fixed,
    "only-weighted-m": no_other,
    "every-size-and-way": every_size_and_way,
    "more-with-the-worst": lambda share: share["worst"] > share["common"],
    "weighted-far-above": lambda weighted_far_above, extreme: (
        weighted_far_above
        and extreme.loc["Weighted", "loss_integrated"]
        > 0.95 * extreme.loc["Weighted", "loss_common"]
    ),
    "lone-40-shows": weighted_far_above,
    "every-size-in-summary": every_size_and_way,
    "no-other-in-summary": no_other,
    "weighted-above-too": weighted_far_above,
    "threshold-protects": lambda extreme: (
        10 * extreme.loc["Weighted-M", "loss_worst"] < extreme.loc["Weighted-M", "2Δ"]
    ),
    "nearly-all-surely": lambda surely, above, largest: (
        surely[M, largest] > 0.9 * above.loc[(M, largest), "integrated"]
    ),
    "all-have-losses-above": lambda everywhere, restricted: (
        everywhere[~restricted] == 1
    ).all(),
    "on-t-none": lambda everywhere, restricted: (everywhere[restricted] == 0).all(),
    "hundreds-move": lambda react: (
        react.loc[["Weighted", M], "weights_moved"] > 200
    ).all(),
    "one-or-two-switch": lambda react: react.loc["Weighted", "weights_switched"] < 2,
    "exceeds-oscillation": lambda reacting: (
        reacting.loc["estimate"] > reacting.loc["oscillation"]
    ).all(),
    "exceeds-two-delta": lambda reacting: (
        reacting.loc["estimate"] > reacting.loc["2Δ"]
    )[M],
    "attack-finds-18": lambda attacks: attacks["weights all 1"].lower > 0.1,
    "nothing-where-capped": lambda attacks: attacks["Capped"].lower == 0,
    "largest-loss-and-error": lambda final_loss, error: (
        final_loss.idxmax() == error.idxmax() == M
    ),
    "only-on-t-limited": lambda comparison: (
        [*comparison.index[np.isfinite(comparison["whole prior"])]]
        == ["Capped on T", "Range-capped on T"]
    ),
}
NUMBERS = {
    "reached": lambda loss: f"{loss.max():.1f}",
    "own": lambda own: f"{own[M]:.1f}",
    "draws over": lambda over: f"{100 * over[M]:.0f}",
    "one seed": lambda share: f"{100 * share['common']:.0f}",
    "integrated": lambda share: f"{100 * share['integrated']:.0f}",
    "switched": lambda react: f"{react.loc[M, 'weights_switched']:.0f}",
    "refuted": lambda sampled: f"{sampled.loc['lower bound', 'weights all 1']:.1f}",
    "error of Weighted-M": lambda error: f"{error[M]:.1f}",
    "error of Capped": lambda error: f"{error['Capped']:.1f}",
}
