"""How well synthetic records can be distinguished from confidential ones: pMSE."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import optimize, special, stats
from threadpoolctl import threadpool_limits

from ppm.checks import as_numbers, check_finite

__all__ = ["propensity_score"]


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
    confidential, synthetic : array_like or pandas.DataFrame, (records,) or (records, variables)
        The synthesized variables and functions of them (powers), on a scale that suits a linear
        model; the same columns in both. Columns of two data frames
        belong together by their names, others by their order.
    known : array_like, shape (records, columns), optional
        Columns that were not synthesized, such as dummies of predictors. Then both databases
        have the same records in the same order.
    rank_powers : int, optional
        Instead of a single variable, use the powers up to this one of its rank in both databases
        together, which depends on no unit and no single extreme value, but hardly shows
        differences in the far tails.

    Returns
    -------
    PropensityScore

    Raises
    ------
    ValueError
        If these are no finite numbers, or have other rows or columns.

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
    >>> import numpy as np
    >>> from ppm_book.chapters.pmse import propensity_score
    >>> data = np.arange(40.0)
    >>> near, far = (propensity_score(data, data + step) for step in (1.0, 30.0))
    >>> round(near.ratio, 2), round(far.ratio, 2)
    (0.3, 116.54)
    """
    if isinstance(confidential, pd.DataFrame) and isinstance(synthetic, pd.DataFrame):
        if sorted(map(str, confidential)) != sorted(map(str, synthetic)):
            raise ValueError("synthetic must have the columns of confidential, by name")
        synthetic = synthetic[[*confidential]]
    confidential = _columns("confidential", confidential)
    synthetic = _columns("synthetic", synthetic)
    if confidential.shape[1] != synthetic.shape[1]:
        raise ValueError(
            "synthetic must have the variables of confidential; got "
            f"{synthetic.shape[1]} columns, not {confidential.shape[1]}"
        )
    if rank_powers is not None:
        confidential, synthetic = _rank_powers(confidential, synthetic, rank_powers)
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
    # one thread fixes the order of sums
    with threadpool_limits(limits=1):
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


def _columns(name, values):
    """Finite numbers (rows, columns), two rows or more."""
    names = getattr(values, "columns", None)
    values = as_numbers(name, values)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or len(values) < 2 or not values.size:
        raise ValueError(
            f"{name} must hold numbers in two rows or more; got shape {values.shape}"
        )
    accepted = "finite numbers"
    return check_finite(name, values, accepted, "row", "column", columns=names)


def _rank_powers(confidential, synthetic, powers):
    if confidential.shape[1] > 1 or powers < 1:
        raise ValueError("rank_powers must be 1 or more, and for one variable alone")
    ranks = stats.rankdata(np.concatenate([confidential, synthetic]))
    # between -1 and 1
    columns = (2.0 * ranks - 1.0) / ranks.size - 1.0
    columns = columns[:, None] ** np.arange(1, powers + 1)
    return np.split(columns, [len(confidential)])


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

    def loss(values):
        predictor = design @ values
        slope = design.T @ (special.expit(predictor) - outcome) / outcome.size
        return np.mean(np.logaddexp(0.0, predictor) - outcome * predictor), slope

    def curvature(values):
        fitted = special.expit(design @ values)
        return (design * (fitted * (1.0 - fitted))[:, None]).T @ design / outcome.size

    optimum = optimize.minimize(
        loss,
        np.zeros(design.shape[1]),
        jac=True,
        hess=curvature,
        method="trust-ncg",
        options={"gtol": 1e-9, "maxiter": 100},
    )
    return special.expit(design @ optimum.x)
