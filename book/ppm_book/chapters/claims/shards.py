"""Claims and numbers of the chapter on shards."""

import numpy as np

from ppm_book.chapters.page import surely_less


def disjoint(losses):
    return np.array([*losses.values()][0])


def shared(losses):
    return np.array([*losses.values()][1])


def sorted_ones(losses):
    return np.array([*losses.values()][2])


def largest(utility, sizes):
    """The largest databases."""
    return utility.loc[sizes[-1]].unstack("way")


def spread(largest):
    return largest["standard deviation (%)"].div(
        largest["standard deviation (%)", "whole"], axis=0
    )


def change(exact, sizes):
    by_database = exact[exact["n"] == sizes[-1]].copy()
    by_database["database"] = by_database.groupby(["way", "ε"]).cumcount()

    def change(column):
        """Difference to one release of the whole, of the same databases, in standard errors."""
        found = by_database.pivot(index=["ε", "database"], columns="way", values=column)
        found = found.sub(found["whole"], axis=0).groupby("ε")
        return found.mean() / found.sem()

    return change


def squares(change):
    return change("square")


def off(coverage):
    """How far coverage is from 95 per cent."""
    return coverage["coverage (%)"].unstack("interval") - 95


def width(coverage, one, sizes):
    return (
        coverage["median width (% of μ)"]
        .unstack("interval")
        .xs(one, level="ε")
        .loc[sizes[0]]
    )


def spreads_as_much(spread):
    return ((spread["shards"] - 1).abs() < 0.1).all()


def has_less_bias(change):
    return (change("bias")["shards"] > 2).all()


CLAIMS = {
    "disjoint-stay-below": lambda disjoint, one: (disjoint < one).all(),
    "shared-exceeds": lambda shared, one: (shared > one).all(),
    "by-size-exceed-further": lambda sorted_ones, shared: (
        sorted_ones.min() > shared.max()
    ),
    "all-too-low": lambda largest: surely_less(
        (largest["bias (%)"], largest["its error"]), (0, 0)
    ).all(axis=None),
    "spreads-as-much": spreads_as_much,
    "spreads-as-much-in-text": spreads_as_much,
    "less-bias": has_less_bias,
    "less-bias-in-text": has_less_bias,
    "smaller-square-error": lambda squares: (squares["shards"] < -2).all(),
    "many-spread-least": lambda spread, many: (
        spread.idxmin(axis="columns").eq(many).all()
    ),
    "has-weight-1": lambda limits_of, widths: limits_of[widths[-1]][1] == 1,
    "bias-outweighs": lambda squares, widths, many: squares.loc[widths[-1], many] > 2,
    "covers-too-rarely": lambda off, worst: (
        off["whole, as real"] < -10 - 2 * worst
    ).all(),
    "others-near-95": lambda off, worst: (
        off.drop(columns="whole, as real").mean().abs() <= 2 * worst
    ).all(),
    "wider-intervals": lambda width: (
        width["between shards"] > 1.1 * width["whole, weight known"]
    ),
}
NUMBERS = {
    "shared": lambda shared: f"{shared.max():.1f}",
    "sorted": lambda sorted_ones: f"{sorted_ones.max():.1f}",
    "spread": lambda spread, widths, many: (
        f"{100 - 100 * spread.loc[widths[-1], many]:.0f}"
    ),
    "few": lambda off, sizes, one: (
        f"{95 + off.loc[(sizes[0], one), 'whole, as real']:.0f}"
    ),
    "many": lambda off, sizes, one: (
        f"{95 + off.loc[(sizes[-1], one), 'whole, as real']:.0f}"
    ),
    "between": lambda width: f"{width['between shards']:.0f}",
    "known": lambda width: f"{width['whole, weight known']:.0f}",
}
