"""Claims and numbers of the study of contraction."""

import numpy as np
from scipy import stats

import ppm

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
    return factors.loc["Weighted", 1.05]


def both_come_together(twelve, of_record, mean, record, fixed):
    """Whether draws and bounds of different databases close in on their values at θ*."""
    at_limit = -fixed[0] * stats.poisson.logpmf(record, mean)
    reach = [np.abs(mu - mean).max() for mu in twelve.values()]
    away = [np.abs(bounds - at_limit).max() for bounds in of_record.values()]
    return max(*np.diff(reach), *np.diff(away)) < 0


def top_goes(removed, bounds, peak, weights):
    return (
        removed.any()
        and not removed[bounds.argmin()]
        and ((bounds > peak) & (weights > 0)).any()
    )


def unweighted_climb(low):
    return low[GROWTH] > 0


def weighted_drift(low):
    return low[DRIFT] > 0


def near_m(truncate_at, gathered):
    return 0.95 * truncate_at < gathered.min() <= gathered.max() < 1.05 * truncate_at


def mean_falls(high, mean):
    return high["Weighted-M: average of the mean"][-1] < mean


def bias_shows(low, high, deviations):
    return (
        low[SHIFT][-1] > high[SHIFT][0]
        and deviations["Weighted-M"].is_monotonic_decreasing
    )


def biased(mean_falls, bias_shows):
    return mean_falls and bias_shows


def just_above(interval, gathered, truncate_at):
    return interval.low > 0.5 and gathered.max() < 1.05 * truncate_at


CLAIMS = {
    "both-come-together": both_come_together,
    "argument-in-summary": lambda biased, near_m, low, gathered, truncate_at: (
        biased and near_m and low[DRIFT] > 0 and gathered.max() <= 1.05 * truncate_at
    ),
    "sizes-of-the-paper": lambda sizes, replicates, mean, truncate_at: (
        (sizes, replicates, mean, truncate_at)
        == ([100, 400, 1600, 6400], 400, 100, 3.5)
    ),
    "removes-moderately-unusual": top_goes,
    "takes-off-the-top": top_goes,
    "m-must-exceed": lambda truncate_at, floor: truncate_at > floor,
    "unweighted-climb": unweighted_climb,
    "unweighted-climb-in-caption": unweighted_climb,
    "unweighted-climb-in-summary": unweighted_climb,
    "weighted-climb-less": lambda low, high: low[GROWTH] > 2 * high[DRIFT],
    "stop-near-m": near_m,
    "gathered-here": lambda near_m, high: near_m and high[SPREAD] < 0,
    "gather-in-caption": lambda near_m, just_above: near_m and just_above,
    # of the paper's own databases
    "shows-the-same": lambda low, high, sizes, mean, truncate_at: (
        (sizes, mean, truncate_at) == ([100, 400, 1600, 6400], 100, 3.5)
        and low[GROWTH] > 0
        and low[DRIFT] > 0 > high[SPREAD]
    ),
    "weighted-drift-upward": weighted_drift,
    "weighted-drift-in-caption": weighted_drift,
    "hump-explains-the-drift": lambda hump_fits, humps: (
        hump_fits and (np.diff(humps) > 0).all()
    ),
    "hump-within-5": hump_fits,
    "close-in-on-m": lambda high: high[SPREAD] < 0,
    "weights-slow-truncation-stops": lambda low, high, summary: (
        low[GROWTH] > high[DRIFT]
        and low[DRIFT] > 0
        and np.ptp(summary["median"]["Weighted-M"].iloc[-2:]) < 0.02
    ),
    "mean-falls": mean_falls,
    "mean-falls-in-caption": mean_falls,
    "bias-shows-more": bias_shows,
    # so far that an interval of two standard deviations misses the mean
    "lies-below": lambda mean_falls, deviations: (
        mean_falls and deviations["Weighted-M"].iloc[-1] < -2
    ),
    "narrows-below": lambda mean_falls, groups: (
        mean_falls and groups["average"].std()["Weighted-M"].is_monotonic_decreasing
    ),
    "price-is-a-bias": biased,
    "just-above-m-again": just_above,
    "most-still-exceed": lambda interval: interval.low > 0.5,
    # and up to 1 % remain possible
    "further-right-none": lambda replicates, gathered, truncate_at: (
        replicates == 400
        and gathered.max() <= 1.05 * truncate_at
        and 0.005 < ppm.exceedance(gathered, 1.05 * truncate_at).high < 0.01
    ),
    # by at least two standard errors of a share
    "weighted-exceed-more": lambda above, replicates: (
        (np.diff(above.loc["Weighted"], axis=0) > -1e-12).all()
        and (above.loc["Weighted"].iloc[-1] - above.loc["Weighted"].iloc[0]).min()
        > 2 * np.sqrt(0.5 / replicates)
    ),
    "slightly-above-2m": lambda gathered, truncate_at, interval: (
        gathered.max() <= 1.05 * truncate_at and interval.low > 0
    ),
    "half-of-the-others": lambda beyond: np.allclose(beyond[1.0], 0.5, atol=0.01),
    "next-to-none": lambda beyond: beyond[1.05].iloc[-1] < 0.01,
    # far more than where they have, at the largest size
    "covers-fewer": lambda beyond, uncut: uncut.min() > 0.1 + beyond[1.05].iloc[-1],
}
NUMBERS = {
    "small unweighted": lambda plain: f"{plain[0]:.2f}",
    "large unweighted": lambda plain: f"{plain[-1]:.2f}",
    "small weighted": lambda weighted: f"{weighted[0]:.2f}",
    "large weighted": lambda weighted: f"{weighted[-1]:.2f}",
    "lowest": lambda gathered: f"{gathered.min():.2f}",
    "highest": lambda gathered: f"{gathered.max():.2f}",
    "floor": lambda floor: f"{floor:.2f}",
    "true mean": lambda mean: f"{mean:g}",
    "estimate": lambda groups, sizes: (
        f"{groups['average'].get_group(('Weighted-M', sizes[-1])).mean():.1f}"
    ),
    "bias in per cent": lambda bias, mean: (
        f"{-100 * bias['Weighted-M'].iloc[-1] / mean:.1f} %"
    ),
    "bias in deviations": lambda deviations: (
        f"{-deviations['Weighted-M'].iloc[-1]:.1f}"
    ),
    "removed": lambda summary, sizes: (
        f"{100 * (summary['records removed'].iloc[-1] / sizes[-1]):.1f} %"
    ),
    "above with five": lambda beyond: f"{100 * beyond[1.05].iloc[0]:.1f}",
    "least above, Weighted": lambda uncut: f"{100 * uncut.min():.1f}",
    "most above, Weighted": lambda uncut: f"{100 * uncut.max():.1f}",
}
