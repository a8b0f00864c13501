"""Claims and numbers of the study of contraction."""

import numpy as np

SPREAD = "Weighted-M: exponent of the spread of bounds"
SHIFT = "Weighted-M: shift of the mean in standard deviations"
GROWTH = "Unweighted: growth of the median bound"
DRIFT = "Weighted: growth of the median bound"


def low(values):
    """Two standard errors below each value."""
    return {name: entry["value"] - 2 * entry["error"] for name, entry in values.items()}


def high(values):
    """Two standard errors above each value."""
    return {name: entry["value"] + 2 * entry["error"] for name, entry in values.items()}


def plain(summary):
    return summary["median"]["Unweighted"].to_numpy()


def weighted(summary):
    return summary["median"]["Weighted"].to_numpy()


def floor(mean):
    """Bound of an ordinary record."""
    return 0.5 * np.log(2 * np.pi * mean)


def peak(bounds, removed):
    return bounds[removed].max(initial=0)


def humps(plain, floor):
    return plain**2 / 4 / (plain - floor)


def hump_fits(humps, weighted):
    return np.abs(humps / weighted - 1).max() < 0.05


def beyond(factors):
    return factors.loc["Weighted-M"]


def uncut(factors):
    return factors.loc["Weighted", 1.05].min()


def bias(study):
    return study[study["mechanism"] == "Weighted-M"].groupby("size")["bias"].median()


def gone(moved, truncate_at):
    return [moved[M][0] for M in sorted(moved) if M >= truncate_at]


def just_above(interval, gathered, truncate_at):
    return interval.low > 0.5 and gathered.max() < 1.05 * truncate_at


CLAIMS = {
    "sizes-of-the-paper": lambda sizes, replicates, mean, truncate_at: (
        (sizes, replicates, mean, truncate_at)
        == ([100, 400, 1600, 6400], 400, 100, 3.5)
    ),
    "largest-have-largest": lambda few: (
        few.iloc[-1].min() > few.iloc[:-1].max(axis=None)
    ),
    "removes-moderately-unusual": lambda removed, bounds, peak, weights: (
        removed.any()
        and not removed[bounds.argmin()]
        and ((bounds > peak) & (weights > 0)).any()
    ),
    "m-must-exceed": lambda truncate_at, floor: truncate_at > floor,
    "unweighted-climb": lambda low: low[GROWTH] > 0,
    "weighted-climb-less": lambda low, high: low[GROWTH] > 2 * high[DRIFT],
    "stop-near-m": lambda truncate_at, gathered: (
        0.95 * truncate_at < gathered.min() <= gathered.max() < 1.05 * truncate_at
    ),
    "shows-the-same": lambda low, high: (
        low[GROWTH] > 0 and low[DRIFT] > 0 > high[SPREAD]
    ),
    "weighted-drift-upward": lambda low: low[DRIFT] > 0,
    "hump-explains-the-drift": lambda hump_fits, humps: (
        hump_fits and (np.diff(humps) > 0).all()
    ),
    "hump-within-5": hump_fits,
    "close-in-on-m": lambda high: high[SPREAD] < 0,
    "fewer-go": lambda gone: np.diff(gone).max(initial=-1) < 0,
    "nearly-everybody": lambda moved, floor: all(
        share > 0.95 and width > 1 for M, (share, width) in moved.items() if M < floor
    ),
    "weights-slow-truncation-stops": lambda low, high, summary: (
        low[GROWTH] > high[DRIFT] > 0
        and np.ptp(summary["median"]["Weighted-M"].iloc[-2:]) < 0.02
    ),
    "mean-falls": lambda high, mean: high["Weighted-M: average of the mean"][-1] < mean,
    "bias-shows-more": lambda low, high, bias: (
        low[SHIFT][-1] > high[SHIFT][0] and bias.is_monotonic_decreasing
    ),
    "just-above-m": just_above,
    "just-above-m-again": just_above,
    "most-still-exceed": lambda interval: interval.low > 0.5,
    "further-right-none": lambda replicates, gathered, truncate_at: (
        replicates == 400 and gathered.max() <= 1.05 * truncate_at
    ),
    # by at least two standard errors of a share
    "weighted-exceed-more": lambda above, replicates: (
        (np.diff(above.loc["Weighted"], axis=0) > -1e-12).all()
        and (above.loc["Weighted"].iloc[-1] - above.loc["Weighted"].iloc[0]).min()
        > 2 * np.sqrt(0.5 / replicates)
    ),
    "slightly-above-2m": lambda gathered, truncate_at: (
        gathered.max() <= 1.05 * truncate_at
    ),
    "half-of-the-others": lambda beyond: np.allclose(beyond[1.0], 0.5, atol=0.01),
    "one-in-six": lambda beyond: 1 / 6.5 < beyond[1.05].iloc[0] < 1 / 5.5,
    "covers-fewer": lambda beyond, uncut: (
        min(beyond[1.05].iloc[0], uncut) > beyond[1.05].iloc[-1]
    ),
}
NUMBERS = {
    "small unweighted": lambda plain: f"{plain[0]:.2f}",
    "large unweighted": lambda plain: f"{plain[-1]:.2f}",
    "small weighted": lambda weighted: f"{weighted[0]:.2f}",
    "large weighted": lambda weighted: f"{weighted[-1]:.2f}",
    "lowest": lambda gathered: f"{gathered.min():.2f}",
    "highest": lambda gathered: f"{gathered.max():.2f}",
    "floor": lambda floor: f"{floor:.2f}",
    "small hump": lambda humps: f"{humps[0]:.2f}",
    "hump": lambda humps: f"{humps[-1]:.2f}",
    "large shift": lambda bias, sizes: f"{-bias[sizes[-1]]:.2f}",
    "removed": lambda summary, sizes: (
        f"{100 * (summary['records removed'].iloc[-1] / sizes[-1]):.1f} %"
    ),
    "over": lambda interval: f"{100 * interval.estimate:.1f} %",
    "small beyond": lambda beyond: f"{100 * beyond[1.05].iloc[0]:.1f} %",
    "large beyond": lambda beyond: f"{100 * beyond[1.05].iloc[-1]:.1f} %",
    "most beyond": lambda beyond: f"{100 * beyond[1.1].max():.1f} %",
    "weighted beyond": lambda uncut: f"{100 * uncut:.1f} %",
}
