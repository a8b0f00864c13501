"""What a run costs: processor time measured over a range of sizes, fitted and carried further."""

import time
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import least_squares

from ppm._validation import as_numbers, check_count, check_share

# a fixed cost below this share of the smallest measured one is none
_NOTHING = 1e-3


@dataclass(frozen=True, eq=False)
class CostFit:
    r"""A cost as a fixed part and a power of the size, :math:`a + b\,x^c`.

    Attributes
    ----------
    fixed : float
        The fixed part a, in the unit of the costs; 0 where the sizes show none.
    factor : float
        The factor b.
    exponent : float
        The exponent c: 1 is proportional to the size.
    exponent_error : float
        Standard error of the exponent; NaN without a degree of freedom.
    residual : float
        Root mean square of the differences of the logarithms: 0.1 is about ten per cent.

    Examples
    --------
    >>> import ppm
    >>> found = ppm.studies.fit_cost([100, 1000, 10_000, 100_000], [1.1, 2, 11, 101])
    >>> round(found.fixed, 6), round(found.factor, 6), round(found.exponent, 6)
    (1.0, 0.001, 1.0)
    """

    fixed: float
    factor: float
    exponent: float
    exponent_error: float
    residual: float
    _covariance: np.ndarray = field(repr=False)
    _freedom: int = field(repr=False)

    def at(self, sizes, *, confidence=0.95):
        """Cost at other sizes, beyond those measured if you trust the power to go on.

        Parameters
        ----------
        sizes : array_like
            Sizes, above 0.
        confidence : float, default 0.95
            Of the interval, which knows of the scatter of the measurements and of nothing else: not
            of a cache or a memory that is too small.

        Returns
        -------
        pandas.DataFrame
            By size: ``cost``, and the ends ``low`` and ``high``, which are NaN without a degree of
            freedom.
        """
        import pandas as pd
        from scipy import stats

        sizes = np.atleast_1d(_above_zero("sizes", sizes))
        logs = _logs(self.fixed, self.factor, self.exponent)
        cost, slopes = _model(logs, np.log(sizes))
        error = np.sqrt(np.einsum("ij,jk,ik->i", slopes, self._covariance, slopes))
        far = np.nan
        if self._freedom > 0:
            far = stats.t(self._freedom).ppf(0.5 + check_share("confidence", confidence) / 2.0)
        return pd.DataFrame(
            {
                "cost": np.exp(cost),
                "low": np.exp(cost - far * error),
                "high": np.exp(cost + far * error),
            },
            index=pd.Index(sizes, name="size"),
        )


def measure_cost(task, sizes, *, repeats=3):
    """Processor seconds of a task at several sizes: the smallest of several runs of each.

    Parameters
    ----------
    task : callable
        Called with a size.
    sizes : sequence of int
        Sizes, at least one.
    repeats : int, default 3
        Runs of each size. They go through all sizes in turn, so that a slow moment of the machine
        hits different ones. The smallest counts: whatever else the machine does can only add to it.

    Returns
    -------
    pandas.Series
        Seconds by size, of this process alone and all of its threads together.

    Raises
    ------
    ValueError
        If ``repeats`` is out of range or there is no size.

    Examples
    --------
    >>> import ppm
    >>> found = ppm.studies.measure_cost(lambda n: sum(range(n)), [10_000, 1_000_000])
    >>> bool(found[1_000_000] > found[10_000])
    True
    """
    import pandas as pd

    repeats = check_count("repeats", repeats)
    sizes = [check_count("sizes", size) for size in sizes]
    if not sizes:
        raise ValueError("sizes must hold at least one size")
    seconds = np.full((repeats, len(sizes)), np.inf)
    for run in seconds:
        for place, size in enumerate(sizes):
            start = time.process_time()
            task(size)
            run[place] = time.process_time() - start
    return pd.Series(seconds.min(axis=0), pd.Index(sizes, name="size"), name="seconds")


def fit_cost(sizes, costs):
    r"""Fit :math:`a + b\,x^c` to costs by least squares of logarithms.

    Parameters
    ----------
    sizes : array_like, shape (points,)
        Sizes x, above 0, at least three different ones.
    costs : array_like, shape (points,)
        Measured costs, above 0, in seconds or bytes.

    Returns
    -------
    CostFit
        The three numbers, and what the fit gives at other sizes.

    Raises
    ------
    ValueError
        If there are too few sizes, or a number is not above 0.

    Notes
    -----
    Differences of logarithms, so that a measurement is as important at a small size as at a large
    one. Without the fixed part a, whatever a run costs before it looks at the data would bend the
    exponent down. Where a comes out as next to nothing it is 0 and not counted as a parameter.

    Examples
    --------
    >>> import ppm
    >>> found = ppm.studies.fit_cost([10, 100, 1000], [2.0, 20.0, 200.0])
    >>> round(found.exponent, 6), found.at([1e6])["cost"].round(0).tolist()
    (1.0, [200000.0])
    """
    sizes, costs = _above_zero("sizes", sizes), _above_zero("costs", costs)
    if sizes.ndim != 1 or sizes.shape != costs.shape or np.unique(sizes).size < 3:
        raise ValueError(
            "sizes and costs must be lists of one length with three different sizes or more; got "
            f"shapes {sizes.shape} and {costs.shape}"
        )
    log_sizes, log_costs = np.log(sizes), np.log(costs)
    exponent, level = np.polyfit(log_sizes, log_costs, 1)
    nothing = np.log(_NOTHING * costs.min())

    def fitted(start):
        lowest = [nothing - 1.0, -np.inf, -np.inf][-start.size :]
        return least_squares(
            lambda logs: _model(logs, log_sizes)[0] - log_costs,
            np.maximum(start, lowest),
            jac=lambda logs: _model(logs, log_sizes)[1],
            bounds=(lowest, [np.log(costs.min()) + 1e-9, np.inf, np.inf][-start.size :]),
            xtol=1e-14, ftol=1e-14, gtol=1e-14, x_scale="jac", max_nfev=2000,
        )

    # from a small fixed part and from a large one: there may be a valley at either
    tried = [
        fitted(np.array([np.log(share * costs.min()), level, exponent]))
        for share in (0.05, 0.5, 0.95)
    ]
    found = min(tried, key=lambda fit: fit.cost)
    if found.x[0] < nothing:
        found = fitted(np.array([level, exponent]))
    *_, factor, exponent = found.x
    fixed = np.exp(found.x[0]) if found.x.size == 3 else 0.0
    freedom = sizes.size - found.x.size
    squares = 2.0 * found.cost
    covariance = np.full((found.x.size,) * 2, np.nan)
    if freedom > 0:
        covariance = squares / freedom * np.linalg.pinv(found.jac.T @ found.jac)
    return CostFit(
        float(fixed), float(np.exp(factor)), float(exponent),
        float(np.sqrt(covariance[-1, -1])), float(np.sqrt(squares / sizes.size)),
        covariance, freedom,
    )


def _logs(fixed, factor, exponent):
    logs = [np.log(factor), exponent]
    return np.array([np.log(fixed), *logs] if fixed else logs)


def _model(logs, log_sizes):
    """Logarithm of the cost, and its derivatives by log a, log b and c."""
    *fixed, factor, exponent = logs
    grown = factor + exponent * log_sizes
    if not fixed:
        return grown, np.stack([np.ones_like(log_sizes), log_sizes], axis=1)
    total = np.logaddexp(fixed[0], grown)
    share = np.exp(grown - total)
    return total, np.stack([1.0 - share, share, share * log_sizes], axis=1)


def _above_zero(name, values):
    values = as_numbers(name, values)
    # written so that NaN fails the comparison too
    if not np.all((values > 0) & (values < np.inf)) or not values.size:
        raise ValueError(f"{name} must be finite numbers above 0")
    return values
