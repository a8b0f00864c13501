"""Utility of synthetic data: re-sampled statistics, errors, and pMSE."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from ppm.checks import (
    as_labels,
    as_list,
    as_numbers,
    as_releases,
    check_count,
    check_finite,
    listed,
    shown,
)
from ppm.seeds import generator, one_thread

__all__ = [
    "gini",
    "resample",
    "release_errors",
    "propensity_score",
    "STATISTICS",
]


def gini(values, axis=-1):
    """Gini coefficient: half the mean absolute difference between two records, over the mean.

    The records lie along ``axis``. 0 where all values are equal, below 1 if no value is negative,
    and NaN where the mean is not above 0.

    Examples
    --------
    >>> import ppm
    >>> float(ppm.utility.gini([0.0, 0.0, 0.0, 8.0]))
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


#: The statistics by name: functions of an array and of the axis of its records.
STATISTICS = {
    "mean": np.mean,
    "median": np.median,
    "90th percentile": lambda values, axis: np.quantile(values, 0.9, axis=axis),
    "10th percentile": lambda values, axis: np.quantile(values, 0.1, axis=axis),
    "Gini coefficient": gini,
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
        coefficient"``, or a function of an array and ``axis``.
    resamples : int, default 500
        Number of re-samples of each database, 2 or more.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness.

    Examples
    --------
    >>> import ppm
    >>> means = ppm.utility.resample([1.0, 2.0, 3.0, 6.0], "mean", resamples=100, random_seed=1)
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


class PropensityScore(NamedTuple):
    """How well synthetic records can be distinguished from confidential ones."""

    ratio: float
    score: float
    null: float


def propensity_score(confidential, synthetic, *, known=None, rank_powers=None):
    r"""How well a logistic regression distinguishes synthetic from confidential records: pMSE.

    Both databases are stacked, and the probability :math:`\hat p_i` of being synthetic is regressed
    on an intercept, the ``known`` columns, the variables, and the products of the two.

    Parameters
    ----------
    confidential, synthetic : array_like or DataFrame, (records,) or (records, variables)
        The synthesized variables and functions of them (powers), on a scale that suits a linear
        model; the same columns in both. If both name their columns, the names decide which belong
        together; otherwise their order does.
    known : array_like, shape (records, columns), optional
        Columns that were not synthesized, such as dummies of predictors. Then both databases
        have the same records in the same order.
    rank_powers : int, optional
        Instead of a single variable, use the powers up to this one of its rank in both databases
        together, which depends on no unit and no single extreme value, but hardly shows
        differences in the far tails.

    Notes
    -----
    After Snoke and others (2018). With N stacked records of which a share c is synthetic, the pMSE
    or ``score`` is :math:`\sum_i (\hat p_i - c)^2 / N`: from 0 if the databases cannot be
    distinguished to c(1 - c) if every record can. With :math:`k - 1` coefficients beside the
    intercept, its expectation ``null`` is :math:`(k - 1)(1 - c)^2 c / N`. Known columns are equal
    in both databases and cannot distinguish them: only the other coefficients count, as many as are
    linearly independent. Besides, two values of one record differ less than two records do. With
    ``known``, ``null`` is therefore :math:`1 - c` times the average of the (linearised) score over
    all exchanges of a record's two values, which is the same where the known columns explain the
    means of the variables. ``ratio`` is NaN if no coefficient can distinguish the two databases.

    The ratio is about 1 if the synthetic records are drawn from the empirical distribution of the
    confidential ones. For two independent samples of one population it is 1 / (1 - c), 2 at equal
    sizes; so it is for draws from the posterior predictive distribution of a correct model, whose
    parameters vary as the estimate does.

    Examples
    --------
    >>> import numpy as np, ppm
    >>> data = np.arange(40.0)
    >>> near, far = (ppm.utility.propensity_score(data, data + step) for step in (1.0, 30.0))
    >>> round(near.ratio, 2), round(far.ratio, 2)
    (0.3, 116.54)
    """
    if rank_powers is not None:
        confidential, synthetic = _rank_powers(confidential, synthetic, rank_powers)
    order = _order_of_columns(confidential, synthetic)
    confidential = _columns("confidential", confidential)
    synthetic = _columns("synthetic", synthetic)[:, order]
    if confidential.shape[1] != synthetic.shape[1]:
        raise ValueError(
            "confidential and synthetic must have the same variables; got "
            f"{confidential.shape[1]} and {synthetic.shape[1]} columns"
        )
    sizes = len(confidential), len(synthetic)
    total, share = sum(sizes), sizes[1] / sum(sizes)
    variables = _standardised(np.concatenate([confidential, synthetic]))
    fixed = np.ones((total, 1))
    if known is not None:
        known = _columns("known", known)
        if not sizes[0] == sizes[1] == len(known):
            raise ValueError(
                "known must have one row for every record of both databases; got "
                f"{len(known)}, {sizes[0]} and {sizes[1]} rows"
            )
        known = _standardised(np.concatenate([known, known]))
        fixed = np.column_stack([fixed, known])
        crossed = (variables[:, :, None] * known[:, None, :]).reshape(total, -1)
        variables = np.column_stack([variables, crossed])
    with one_thread():
        fixed = _orthonormal(fixed)
        # the part that the fixed columns do not explain; its rank is the number of coefficients
        free = _orthonormal(variables - fixed @ (fixed.T @ variables))
        design = np.column_stack([fixed, free]) * np.sqrt(total)
        fitted = _logistic_fit(design, np.repeat([0.0, 1.0], sizes))
        score = float(np.mean((fitted - share) ** 2))
    null = free.shape[1] * (1.0 - share) ** 2 * share / total
    if known is not None:
        differences = free[: sizes[0]] - free[sizes[0] :]
        null = (1.0 - share) * float(np.sum(differences**2)) / (4 * total)
    return PropensityScore(score / null if null > 0 else np.nan, score, null)


def _rank_powers(confidential, synthetic, powers):
    from scipy.stats import rankdata

    powers = np.arange(1, check_count("rank_powers", powers) + 1)
    confidential = as_list("confidential", confidential)
    ranks = rankdata(np.r_[confidential, as_list("synthetic", synthetic)])
    # between -1 and 1
    columns = ((2.0 * ranks - 1.0) / ranks.size - 1.0)[:, None] ** powers
    return np.split(columns, [confidential.size])


def _order_of_columns(confidential, synthetic):
    """Places of the columns of ``synthetic`` in the order of ``confidential``, by their names."""
    wanted, found = _names(confidential), _names(synthetic)
    if wanted is None or found is None or wanted == found:
        return slice(None)
    unlike = {
        "lacks": [name for name in wanted if name not in found],
        "alone has": [name for name in found if name not in wanted],
    }
    told = [f"{what} {listed(names)}" for what, names in unlike.items() if names]
    if told:
        raise ValueError(
            "synthetic must have the columns of confidential, by name; it "
            f"{' and '.join(told)}"
        )
    if len({*wanted}) < len(wanted) or len(wanted) < len(found):
        raise ValueError(
            "synthetic must have the columns of confidential in the same order, where "
            "two of them share a name"
        )
    return [found.index(name) for name in wanted]


def _names(table):
    """Names of a table's columns, in pandas, Polars or Arrow; None of an array."""
    names = getattr(table, "column_names", getattr(table, "columns", None))
    return None if names is None else list(names)


def _columns(name, values):
    names, values = _names(values), as_numbers(name, values)
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or len(values) < 2 or not values.size:
        raise ValueError(
            f"{name} must be finite numbers with at least 2 rows; got shape "
            f"{values.shape}"
        )
    return check_finite(name, values, "finite numbers", "row", "column", columns=names)


def _standardised(columns):
    centred = columns - columns.mean(axis=0)
    spread = centred.std(axis=0)
    return centred / np.where(spread > 0, spread, 1.0)


def _orthonormal(columns):
    """Orthonormal basis of the span of standardised columns."""
    sizes, directions = np.linalg.eigh(columns.T @ columns)
    used = sizes > 1e-10 * len(columns)
    return columns @ (directions[:, used] / np.sqrt(sizes[used]))


def _logistic_fit(design, outcome):
    """Fitted probabilities of a logistic regression, also if records are separated perfectly."""
    from scipy.optimize import minimize

    def loss(values):
        predictor = design @ values
        slope = design.T @ (expit(predictor) - outcome) / outcome.size
        return np.mean(np.logaddexp(0.0, predictor) - outcome * predictor), slope

    def curvature(values):
        fitted = expit(design @ values)
        return (design * (fitted * (1.0 - fitted))[:, None]).T @ design / outcome.size

    optimum = minimize(
        loss,
        np.zeros(design.shape[1]),
        jac=True,
        hess=curvature,
        method="trust-ncg",
        options={"gtol": 1e-9, "maxiter": 100},
    )
    return expit(design @ optimum.x)


def release_errors(confidential, releases, *, groups=None, smallest=50):
    """Errors of every release's statistics relative to those of the data, in per cent.

    ``releases`` has shape (releases, records), with the records of ``confidential``. ``groups``, a
    DataFrame or dict, holds public variables by name; each of their values is a group. Groups of
    fewer than ``smallest`` records are left out, because their means are too noisy in any release;
    a record with a missing value belongs to none.

    Each row of the table holds a release's errors of the mean, the median, the 90th and the 10th
    percentile and the Gini coefficient, positive where the release is larger; then for each
    variable, as ``means by variable``, the largest absolute error of a group's mean. NaN where the
    statistic of the data is 0 or undefined.

    Examples
    --------
    >>> import ppm
    >>> data = [10.0, 20.0, 30.0, 40.0, 50.0]
    >>> found = ppm.utility.release_errors(data, [[11.0, 22.0, 33.0, 44.0, 55.0]])
    >>> found.loc[0, ["mean", "median", "Gini coefficient"]].round(6).tolist()
    [10.0, 10.0, 0.0]
    """
    import pandas as pd

    confidential = as_list("confidential", confidential)
    releases = as_releases("releases", releases, confidential.size)
    smallest = check_count("smallest", smallest)

    def error(statistic, rows=slice(None)):
        truth = statistic(confidential[rows], axis=-1)
        return (
            100.0
            * (statistic(releases[:, rows], axis=-1) - truth)
            / (abs(truth) or np.nan)
        )

    groups = {} if groups is None else groups
    if not isinstance(groups, (Mapping, pd.DataFrame)) or len({*groups}) < len(
        [*groups]
    ):
        raise ValueError(
            "groups must be a pandas DataFrame or a dict of public variables, each "
            f"with a name of its own; got {type(groups).__name__}"
        )
    columns = {name: error(statistic) for name, statistic in STATISTICS.items()}
    for variable, codes in groups.items():
        codes = pd.Series(
            as_labels(f"groups: {variable}", codes, confidential.size, missing=True)
        )
        members = [
            rows
            for rows in codes.groupby(codes).indices.values()
            if rows.size >= smallest
        ]
        if not members:
            raise ValueError(f"groups: no group of {variable} has {smallest} records")
        # absolute errors: signs may differ between releases
        columns[f"means by {variable}"] = np.abs(
            [error(np.mean, m) for m in members]
        ).max(axis=0)
    return pd.DataFrame(columns).rename_axis("release")
