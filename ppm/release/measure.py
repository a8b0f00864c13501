"""How useful releases are: re-sampled statistics, and errors of statistics."""

from collections.abc import Mapping

import numpy as np

from ppm.checks import (
    as_labels,
    as_list,
    as_numbers,
    as_releases,
    check_count,
    check_finite,
    check_one_order,
    shown,
)
from ppm.seeds import generator

__all__ = [
    "gini",
    "resample",
    "release_errors",
    "top_tenth",
    "STATISTICS",
]


def gini(values, axis=-1):
    """Gini coefficient: half the mean absolute difference between two records, over the mean.

    The records lie along ``axis``. 0 where all values are equal, below 1 if no value is negative,
    and NaN where the mean is not above 0.

    Examples
    --------
    >>> import ppm
    >>> float(ppm.release.measure.gini([0.0, 0.0, 0.0, 8.0]))
    0.75
    """
    values = as_numbers("values", values)
    if values.ndim == 0:
        raise ValueError("values must have an axis of records; got a single number")
    values = np.sort(values, axis=axis)
    # scaled by a power of 2, which is exact, so that sums of huge values do not overflow
    _, power = np.frexp(np.abs(values).max(axis=axis, keepdims=True, initial=0.0))
    values = np.ldexp(values, -power)
    size = values.shape[axis]
    total = values.sum(axis=axis)
    differences = np.moveaxis(values, axis, -1) @ (
        2.0 * np.arange(1, size + 1) - size - 1.0
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(total > 0, differences / (size * total), np.nan)[()]


def top_tenth(values, axis=-1):
    """Mean of the largest tenth of values along an axis, of one value at least.

    Examples
    --------
    >>> import ppm
    >>> float(ppm.release.measure.top_tenth(range(20)))
    18.5
    """
    values = as_numbers("values", values)
    if not (values.ndim and values.size):
        raise ValueError("values must have an axis of records; got none")
    values = np.moveaxis(values, axis, -1)
    size = max(1, values.shape[-1] // 10)
    return np.partition(values, -size, axis=-1)[..., -size:].mean(axis=-1)


#: The statistics by name: functions of an array and of the axis of its records.
STATISTICS = {
    "mean": np.mean,
    "median": np.median,
    "90th percentile": lambda values, axis: np.quantile(values, 0.9, axis=axis),
    "10th percentile": lambda values, axis: np.quantile(values, 0.1, axis=axis),
    "Gini coefficient": gini,
    "top tenth": top_tenth,
}


def resample(values, statistic, *, resamples=500, random_seed=None):
    """Distribution of a statistic over re-samples of the records, with replacement.

    For several releases, the result is their Wasserstein barycentre (Savitsky, Williams and Hu,
    2022, section 5, after Srivastava and others, 2015): increasing quantiles, each the average over
    the releases, which in one dimension is exact.

    Parameters
    ----------
    values : array_like, shape (records,) or (releases, records)
        One database, or one per row.
    statistic : str or callable
        ``"mean"``, ``"median"``, ``"90th percentile"``, ``"10th percentile"``, ``"Gini
        coefficient"``, ``"top tenth"`` (its mean), or a function of an array and ``axis``.
    resamples : int, default 500
        Number of re-samples of each database, 2 or more.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness.

    Examples
    --------
    >>> import ppm
    >>> from ppm.release import measure
    >>> means = measure.resample([1.0, 2.0, 3.0, 6.0], "mean", resamples=100, random_seed=1)
    >>> means.shape, float(means.mean().round(1))
    ((100,), 3.2)
    """
    compute = STATISTICS.get(statistic) if isinstance(statistic, str) else statistic
    if not callable(compute):
        raise ValueError(
            f"statistic must be a function or one of {', '.join(STATISTICS)}; "
            f"got {shown(statistic)}"
        )
    resamples = check_count("resamples", resamples, at_least=2)
    values = as_numbers("values", values)
    if not (values.ndim in (1, 2) and values.shape[-1] >= 2 and values.size):
        raise ValueError(
            "values must be finite, of shape (records,) or (releases, records), with "
            f"at least 2 records; got shape {values.shape}"
        )
    check_finite("values", values, "finite", *["release", "record"][2 - values.ndim :])
    rng, size = generator(random_seed), values.shape[-1]
    # a few re-samples at a time, which limits the memory
    distributions = np.array(
        [
            np.concatenate(
                [
                    compute(
                        database[
                            rng.integers(size, size=(min(64, resamples - done), size))
                        ],
                        axis=-1,
                    )
                    for done in range(0, resamples, 64)
                ]
            )
            for database in np.atleast_2d(values)
        ]
    )
    return (
        distributions[0]
        if values.ndim == 1
        else np.sort(distributions, axis=1).mean(axis=0)
    )


def release_errors(confidential, releases, *, groups=None, smallest=50):
    """Errors of every release's statistics relative to those of the data, in per cent.

    ``releases`` has shape (releases, records), with the records of ``confidential``. ``groups``, a
    DataFrame or dict, holds public variables by name; each of their values is a group. Groups of
    fewer than ``smallest`` records are left out, because their means are too noisy in any release;
    a record with a missing value belongs to none.

    Each row of the table holds a release's errors of the mean, the median, the 90th and the 10th
    percentile, the Gini coefficient and the mean of the top tenth, positive where the release is
    larger; then for each variable, as ``means by variable``, the largest absolute error of a
    group's mean, and as ``average by variable`` their average. NaN where the statistic of the data
    is 0 or undefined; the mean of a group that is 0 counts in neither.

    Examples
    --------
    >>> import ppm
    >>> data = [10.0, 20.0, 30.0, 40.0, 50.0]
    >>> found = ppm.release.measure.release_errors(data, [[11.0, 22.0, 33.0, 44.0, 55.0]])
    >>> found.loc[0, ["mean", "median", "Gini coefficient"]].round(6).tolist()
    [10.0, 10.0, 0.0]
    """
    import pandas as pd

    check_one_order(confidential=confidential, groups=groups)
    confidential = as_list("confidential", confidential)
    releases = as_releases("releases", releases, confidential.size)
    smallest = check_count("smallest", smallest)
    groups = {} if groups is None else groups
    if not isinstance(groups, (Mapping, pd.DataFrame)) or len({*groups}) < len(
        [*groups]
    ):
        raise ValueError(
            "groups must be a pandas DataFrame or a dict of public variables, each "
            f"with a name of its own; got {type(groups).__name__}"
        )
    codes = {}
    for variable, labels in groups.items():
        labels = as_labels(
            f"groups: {variable}", labels, confidential.size, missing=True
        )
        own, _ = pd.factorize(labels)
        large = np.bincount(own[own >= 0]) >= smallest
        if not large.any():
            raise ValueError(f"groups: no group of {variable} has {smallest} records")
        number = np.where(large, np.cumsum(large) - 1, -1)
        codes[variable] = np.where(own >= 0, number[own], -1)
    found = Truth(confidential, codes).errors(releases)
    return pd.DataFrame(found).rename_axis("release")


class Truth:
    """What releases of a column are measured against: its statistics, and means of its groups.

    ``codes`` has the number of each record's group for each variable, -1 for none.
    """

    def __init__(self, values, codes, statistics=tuple(STATISTICS)):
        self.statistics = {
            name: STATISTICS[name](values, axis=-1) for name in statistics
        }
        self.groups = {}
        for variable, own in codes.items():
            rows = own >= 0
            self.groups[variable] = rows, own[rows], np.bincount(own[rows])
        self.means = {variable: self._means(values, variable) for variable in codes}

    def _means(self, values, variable):
        rows, codes, sizes = self.groups[variable]
        return np.bincount(codes, values[rows]) / sizes

    def errors(self, releases):
        """Errors of releases (releases, records) by the names that :func:`release_errors` has."""
        columns = {
            name: _relative(truth, STATISTICS[name](releases, axis=-1))
            for name, truth in self.statistics.items()
        }
        for variable, truth in self.means.items():
            found = np.array([self._means(values, variable) for values in releases])
            # absolute errors: signs may differ between releases
            found = np.abs(_relative(truth, found))
            known = found[:, ~np.isnan(found).any(axis=0)]
            nothing = np.full(len(releases), np.nan)
            columns[f"means by {variable}"] = (
                known.max(axis=1) if known.size else nothing
            )
            columns[f"average by {variable}"] = (
                known.mean(axis=1) if known.size else nothing
            )
        return columns


def _relative(truth, found):
    return 100.0 * (found - truth) / np.where(truth == 0, np.nan, np.abs(truth))
