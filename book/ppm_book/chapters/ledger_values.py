"""Values with their Monte Carlo errors, as the chapters hand them to the ledger."""

import numpy as np

from ppm.chains import R_HAT_LIMIT
from ppm_book.chapters.agreement import agrees

DISAGREE = (
    f"chains behind a bound disagree (an R-hat above {R_HAT_LIMIT}, or not to be told)"
)
# how often one release among normal ones is taken for an outlier
OUTLIER = 1e-3


def measured(value, error=0.0, doubt=""):
    """An entry of ``page.save_values``.

    Parameters
    ----------
    value, error : float or array_like
        Numbers and their standard errors: 0 for what is exact, NaN for what is unknown.
    doubt : str, default ""
        Why the errors may not be trusted; the ledger repeats it.

    Returns
    -------
    dict
        ``value`` and ``error``, arrays of one shape, and ``doubt`` if there is one.
    """
    value = np.asarray(value, dtype=np.float64)
    entry = {"value": value, "error": np.broadcast_to(error, value.shape)}
    return {**entry, "doubt": doubt} if doubt else entry


def standard_error(parts):
    """Standard error of the average along the first dimension; NaN for a single part."""
    parts = np.asarray(parts, dtype=np.float64)
    if len(parts) < 2:
        return np.full(parts.shape[1:], np.nan)
    return parts.std(axis=0, ddof=1) / np.sqrt(len(parts))


def error_over_releases(values):
    """Standard error of the average over releases, and why it is unknown if it is.

    An average of incomes has so heavy a tail that one release can make up most of the scatter. The
    scatter of a few then says nothing about the error, and more of them would change the average.
    """
    from scipy.stats import t

    m = len(values)
    if m > 2 and np.ptp(values) > 0:
        # the test of Grubbs for one outlier among normal values
        limit = t.isf(OUTLIER / (2 * m), m - 2) ** 2
        farthest = np.abs(values - np.mean(values)).max() / np.std(values, ddof=1)
        if farthest > (m - 1) / np.sqrt(m) * np.sqrt(limit / (m - 2 + limit)):
            return np.nan, f"one of the {m} releases makes up most of their scatter"
    return standard_error(values), ""


def share(count, of):
    """A share with its standard error, which is not 0 where nothing or everything was counted."""
    typical = (np.asarray(count) + 0.5) / (of + 1.0)
    return measured(np.asarray(count) / of, np.sqrt(typical * (1.0 - typical) / of))


def doubt_of(*results):
    """Why what comes from these fits may not be trusted; empty where nothing is against them."""
    if any(one.diagnostics.faults_besides_r_hat for one in results):
        return "chains behind a bound stood still or diverged"
    return "" if all(map(agrees, results)) else DISAGREE


def bounds_of(*results):
    """Local bounds with their errors, and why these may not be trusted."""
    return measured(
        [one.local_bound for one in results],
        [one.diagnostics.error for one in results],
        doubt_of(*results),
    )


def over(above, below):
    """A quotient, NaN where the divisor is 0, as the bound of records without weight is."""
    above, below = np.broadcast_arrays(np.asarray(above, dtype=np.float64), below)
    return np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0)


def ratio(above, below):
    """The quotient of two independent entries."""
    value = over(above["value"], below["value"])
    error = over(np.hypot(above["error"], value * below["error"]), below["value"])
    return measured(value, error, above.get("doubt") or below.get("doubt", ""))


def exponent(sizes, values):
    """Exponent of a power law: the slope of the least-squares line through the logarithms.

    It is NaN where a value is 0, which has no logarithm.
    """
    x = np.log(sizes) - np.log(sizes).mean()
    with np.errstate(all="ignore"):
        return x @ np.log(np.where(values > 0, values, np.nan)) / (x @ x)


def share_exponent(sizes, counts, of, published=-0.5):
    """Exponent b of a probability min(1, exp(a) n^b) under which the counts are most likely.

    Its error is half the profile likelihood's interval of two standard errors, on the side that
    faces the published exponent, so that counts of 0 are no obstacle; it is NaN if everything or
    nothing was counted. The exponent is looked for between -10 and 10.
    """
    from scipy.optimize import brentq, minimize_scalar

    x, counts = np.log(sizes) - np.log(sizes).mean(), np.asarray(counts)
    below = counts < of
    if len(x) < 2 or not counts.any() or not below.any():
        return measured(np.nan, np.nan)

    def profile(b):
        # the probability is 1 only where nothing speaks against it
        top = -np.max(b * x[below]) - 1e-9

        def misfit(a):
            log_p = np.minimum(a + b * x, -1e-9)
            return -(counts @ log_p + (of - counts) @ np.log(-np.expm1(log_p)))

        return minimize_scalar(misfit, bounds=(top - 40.0, top), method="bounded").fun

    best = minimize_scalar(profile, bounds=(-10.0, 10.0), method="bounded")
    limit, end = best.fun + 2.0, np.copysign(10.0, published - best.x)
    inside = profile(end) <= limit
    end = (
        end if inside else brentq(lambda b: profile(b) - limit, *sorted((best.x, end)))
    )
    return measured(best.x, abs(end - best.x) / 2.0)
