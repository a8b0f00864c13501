"""Claims and numbers of the first chapter."""

import numpy as np
import pandas as pd


def means(posterior, n, weights):
    """Of the ordinary posterior, and with our weights."""
    return [posterior(alpha).mean() for alpha in (np.ones(n), weights)]


def risen(households, weighted_bounds, bounds):
    return [households[place] for place in np.flatnonzero(weighted_bounds > bounds)]


def h_has_no_weight(weights):
    return weights[-1] == 0


def g_is_most_unusual(weighted_bounds):
    return weighted_bounds.argmax() == 6


def kept(comparison):
    return comparison["sum of weights"]


def left_end(picture):
    """Frames of the moving picture with its slider at the left."""
    moved = picture.content
    return [
        moved["frames"][place][1]
        for place in moved["at"][:: len(moved["sliders"][1]["shown"])]
    ]


def rounded(right):
    return pd.Series(right).mul(100).round()


CLAIMS = {
    "h-most-negative": lambda log_lik: (log_lik.argmin(axis=1)[:3] == 7).all(),
    "f-is-ordinary": lambda weights, means: (
        weights[5] == 1 and round(means[0], 1) == 6.5
    ),
    "h-largest-by-far": lambda bounds: bounds[-1] > 2 * np.sort(bounds)[-2],
    "costs-h-its-weight": h_has_no_weight,
    "h-has-risk-1": lambda weights: (
        weights[-1] == 0 < weights[:5].min() and max(weights[:5].max(), weights[6]) < 1
    ),
    "weight-of-h": h_has_no_weight,
    "weight-of-h-again": h_has_no_weight,
    "bounds-rose": lambda risen: risen == ["F", "G"],
    "h-lost-its-weight": lambda bounds, weights: (
        bounds[-1] > 2 * np.sort(bounds)[-2] and weights[-1] == 0
    ),
    "f-and-g-rose": lambda risen, weighted_bounds: (
        risen == ["F", "G"] and weighted_bounds.argmax() == 6
    ),
    "g-nearly-1": lambda weights: 0.95 < weights[6] < 1,
    "posterior-moved-down": lambda means, weights: (
        weights[-1] == 0 and means[1] < means[0]
    ),
    "g-most-unusual": g_is_most_unusual,
    "g-is-delta": g_is_most_unusual,
    "factor-of-billions": lambda releases, epsilon: (
        np.log(1e9) < releases * epsilon < np.log(1e12)
    ),
    "h-leaves-nothing-changes": h_has_no_weight,
    "g-larger-than-before": lambda weighted_bounds, risen: (
        weighted_bounds.argmax() == 6 and "G" in risen
    ),
    "h-raised-f-and-g": lambda risen, weights: risen == ["F", "G"] and weights[-1] < 1,
    # posteriors beside each other
    "largest-is-h": lambda bounds: bounds.argmax() == 7,
    "weighted-keeps-more": lambda kept: kept["Weighted"] > kept["EMweighted"],
    "weighted-has-the-smaller-mean": lambda comparison: (
        comparison["mean of μ"]["Weighted"] < comparison["mean of μ"]["EMweighted"]
    ),
    "weighted-without-h": h_has_no_weight,
    "em-keeps-the-pull": lambda comparison, means: (
        comparison["mean of μ"]["EMweighted"] > np.mean(means)
    ),
    "em-less-certain": lambda comparison: (
        comparison["sd of μ"]["EMweighted"] > 1.5 * comparison["sd of μ"]["Unweighted"]
    ),
    "moves-and-stays-narrow": lambda comparison: (
        comparison["mean of μ"]["Weighted"] < comparison["mean of μ"]["Unweighted"]
        and comparison["sd of μ"]["Weighted"]
        < 1.2 * comparison["sd of μ"]["Unweighted"]
    ),
    "stays-and-widens": lambda comparison, means: (
        comparison["mean of μ"]["EMweighted"] > np.mean(means)
        and comparison["sd of μ"]["EMweighted"]
        > 1.5 * comparison["sd of μ"]["Unweighted"]
    ),
    "weighted-drops-h": h_has_no_weight,
    "left-end": lambda left_end: all(
        max(weights["outline"]) == 0 == change["across"][0][0]
        for weights, change, _ in left_end
    ),
    "one-weight-keeps-less": lambda kept: kept["EMweighted"] < kept["Weighted"],
    # the attack
    "synthetic-is-no-protection": lambda right: right["Ordinary posterior", 3] > 0.5,
    "weights-left-fewer": lambda right: (
        right["With weights", 3] < right["Ordinary posterior", 3]
    ),
    "twenty-tables": lambda right: right["Ordinary posterior", 20] > 0.999,
    "near-false-alarms": lambda right: 0.05 < right["With weights", 3] < 0.1,
    "not-quite": lambda right: right["With weights", 20] > 0.1,
    "h-adds-no-term": h_has_no_weight,
    "few-then-many": lambda right: (
        0.05 < right["With weights", 3] < 0.1 < 0.2 < right["With weights", 20]
    ),
    "more-than-false-alarms": lambda right, weights: (
        right["With weights", 20] > 0.2 and weights[-1] == 0
    ),
    "twenty-tell-more": lambda right: (
        right["With weights", 20] > right["With weights", 3] + 0.1
    ),
    # typed on the first page, in words and in its picture
    "first-page": lambda rounded: (
        rounded["Ordinary posterior", 3] == 74
        and [*rounded["With weights"][[3, 20]]] == [9, 28]
    ),
}
NUMBERS = {
    "bound of H": lambda bounds: f"{bounds[-1]:.2f}",
    "Δ": lambda delta: f"{delta:.2f}",
    "ε": lambda epsilon: f"{epsilon:.2f}",
    "weight of A": lambda weights: f"{weights[0]:.2f}",
    "one weight": lambda scalar: f"{scalar[0]:.2f}",
    "Weighted keeps": lambda kept: f"{kept['Weighted']:.1f}",
    "EMweighted keeps": lambda kept: f"{kept['EMweighted']:.1f}",
    **{
        f"{name} {m}": lambda right, place=(name, m): f"{100 * right[place]:.0f}"
        for name, m in [
            ("Ordinary posterior", 3),
            ("With weights", 3),
            ("With weights", 20),
        ]
    },
}
