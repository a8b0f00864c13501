"""Probabilistic differential privacy: ε, its composition, π, and the factor of safety."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ppm._validation import as_numbers, check_count, check_number, check_share

__all__ = [
    "epsilon", "bounded_range_epsilon", "exceedance", "loss_exceedance", "Exceedance",
    "global_bound", "GlobalBound",
]


@dataclass(frozen=True)
class Exceedance:
    """Share of databases that exceed ε, with its exact binomial interval.

    Attributes
    ----------
    estimate : float
        Databases above ε, divided by all of them: of :func:`ppm.exceedance` those with 2Δ above
        it, of :func:`ppm.pdp.loss_exceedance` those with a loss above it.
    low, high : float
        Clopper-Pearson interval at ``confidence``.
    exceeded, databases : int
        How many exceeded, of how many.
    epsilon : float
        The ε they were compared with, in nats; the largest, if each had its own.
    confidence : float
        Coverage of the interval.

    Examples
    --------
    None of ten databases has 2Δ above ε, and yet the share may be up to 0.31 at 95 % confidence.

    >>> import ppm
    >>> found = ppm.exceedance([1.0] * 10, epsilon=3.0)
    >>> found.estimate, found.low, round(found.high, 2)
    (0.0, 0.0, 0.31)
    """

    estimate: float
    low: float
    high: float
    exceeded: int
    databases: int
    epsilon: float
    confidence: float


class GlobalBound(NamedTuple):
    """Range of the recommended global bound, in nats.

    Examples
    --------
    >>> import ppm
    >>> low, high = ppm.pdp.global_bound(2.0, n=200)
    >>> low, high
    (2.1, 2.2)
    """

    low: float
    high: float


def epsilon(bound, releases=1):
    """Privacy expenditure ε = 2Δm of m releases.

    Parameters
    ----------
    bound : float
        Lipschitz bound Δ, 0 or more, in nats; ``inf`` gives ``inf``.
    releases : int, default 1
        Synthetic databases m released, 1 or more; each costs 2Δ.

    Returns
    -------
    float
        ε in nats.

    Raises
    ------
    ValueError
        If ``bound`` is negative or NaN, or ``releases`` is not a whole number of at least 1.

    Notes
    -----
    Savitsky, Williams and Hu (2022), the theorem of section 2 for one draw; section 5 multiplies
    by m. The ε of a *local* bound describes the database at hand, not all databases.
    :func:`ppm.pdp.bounded_range_epsilon` counts from the width of a loss instead.

    Examples
    --------
    >>> import ppm
    >>> ppm.epsilon(2.5)
    5.0
    >>> ppm.epsilon(2.5, releases=3)
    15.0
    """
    bound = check_number("bound", bound, at_least=0, infinite=True)
    return 2.0 * bound * check_count("releases", releases)


def bounded_range_epsilon(width, releases=1, *, delta=0.0):
    r"""Privacy expenditure ε of m releases whose privacy loss stays within an interval.

    Censoring is such a mechanism: where every record's term of the log-likelihood lies between
    two public numbers that are W apart, and depends on this record alone, the log ratio of the
    posteriors with and without a record lies in an interval of width W over all parameters. This
    is so for every database, and for every proper prior and every model that were fixed without
    looking at the records.

    Parameters
    ----------
    width : float
        Width W of the interval, 0 or more, in nats; ``inf`` gives ``inf``. For neighbours of which
        one record is replaced, give 2W.
    releases : int, default 1
        Releases m, 1 or more, each from its own independent and exact draw of the same posterior.
    delta : float, default 0
        The δ of (ε, δ)-differential privacy, 0 or more and below 1. A ``delta`` of 0 asks for a
        limit without exception.

    Returns
    -------
    float
        ε in nats: mW if ``delta`` is 0, and otherwise the smaller of mW and
        :math:`\rho + 2\sqrt{\rho \log(1/\delta)}` with :math:`\rho = m W^2 / 8`.

    Raises
    ------
    ValueError
        If ``width`` is negative or NaN, ``releases`` is not a whole number of at least 1, or
        ``delta`` is not in [0, 1).

    Notes
    -----
    Censoring is due to Hu, Williams and Savitsky (2022, arXiv:2205.05003). The rest goes beyond
    Savitsky, Williams and Hu (2022), who add up ε over releases (section 5). A loss of bounded
    range W (Dong, Durfee and Rogers, 2020) is W²/8-zero-concentrated (Cesar and Rogers, 2021),
    which adds up to ρ and gives the ε above (Bun and Steinke, 2016). It is an upper limit; an
    accountant that keeps the whole distribution of the loss comes out somewhat lower.

    Examples
    --------
    >>> import ppm
    >>> ppm.pdp.bounded_range_epsilon(0.5, releases=20)
    10.0
    >>> round(ppm.pdp.bounded_range_epsilon(0.5, releases=20, delta=1e-6), 2)
    6.5
    """
    width = check_number("width", width, at_least=0, infinite=True)
    releases = check_count("releases", releases)
    delta = check_number("delta", delta, at_least=0)
    if delta >= 1:
        raise ValueError(f"delta must be at least 0 and below 1; got {delta!r}")
    pure = width * releases
    # from width 8 on the other is never smaller, and its square may overflow
    if delta == 0 or width >= 8:
        return pure
    concentrated = releases * width**2 / 8.0
    return min(pure, float(concentrated + 2.0 * np.sqrt(-concentrated * np.log(delta))))


def exceedance(bounds, epsilon, *, confidence=0.95):
    """Share of databases whose 2Δ exceeds ε: the paper's stand-in for π.

    π is the probability that the privacy loss of a database exceeds ε. Twice a local bound is no
    limit to that loss: Δ is a maximum over draws, and the theorem that ties it to the loss asks
    for all parameters and for weights that stay as they are when a record leaves.

    Parameters
    ----------
    bounds : array_like, shape (replicates,)
        Local bounds Δ of independent databases, in nats.
    epsilon : float
        The ε of one release, 0 or more, in nats. A database exceeds it when 2Δ > ε.
    confidence : float, default 0.95
        Coverage of the interval, between 0 and 1.

    Returns
    -------
    Exceedance
        The share of databases with 2Δ > ε, and its exact (Clopper-Pearson) interval.

    Raises
    ------
    ValueError
        If ``bounds`` is empty or holds NaN, or another argument is out of range.

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 4, the definition of probabilistic differential
    privacy, with 2Δ in the place of the privacy loss itself.

    Examples
    --------
    >>> import ppm
    >>> found = ppm.exceedance([1.0, 1.2, 1.4, 2.0], epsilon=3.0)
    >>> found.exceeded, found.databases, found.estimate
    (1, 4, 0.25)
    """
    epsilon = check_number("epsilon", epsilon, at_least=0)
    confidence = check_share("confidence", confidence)
    bounds = as_numbers("bounds", bounds).ravel()
    if bounds.size == 0 or np.isnan(bounds).any():
        raise ValueError("bounds must hold at least one bound and no NaN")
    exceeded = int(np.count_nonzero(bounds > epsilon / 2.0))
    low, high = _exact_interval(exceeded, bounds.size, confidence)
    return Exceedance(
        estimate=exceeded / bounds.size,
        low=low,
        high=high,
        exceeded=exceeded,
        databases=bounds.size,
        epsilon=epsilon,
        confidence=confidence,
    )


def loss_exceedance(losses, epsilon, *, confidence=0.95):
    """Share of databases whose privacy loss exceeds ε, from losses instead of bounds on them.

    It estimates π as the definition has it only if each loss is the supremum over every neighbour
    and every parameter that the prior allows, and if ε is one number fixed for all databases.
    With losses over a range of draws, or with each database's own 2Δ, it is another share.

    Parameters
    ----------
    losses : array_like, shape (replicates,)
        Largest absolute privacy loss of independent databases, 0 or more, in nats; ``inf`` where
        there is no limit to it.
    epsilon : float or array_like, shape (replicates,)
        What they are compared with, 0 or more, in nats: one ε, or each database's own, such as 2Δ.
    confidence : float, default 0.95
        Coverage of the interval, between 0 and 1.

    Returns
    -------
    Exceedance
        The share of losses above ε, and its exact (Clopper-Pearson) interval. Its ``epsilon`` is
        the largest of those given.

    Raises
    ------
    ValueError
        If an array is empty, holds NaN or a negative number, or does not fit the other.

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 4, the definition of probabilistic differential
    privacy.

    Examples
    --------
    >>> import ppm
    >>> ppm.pdp.loss_exceedance([0.2, 0.5, 1.5, 4.0], epsilon=1.0).estimate
    0.5
    """
    losses = as_numbers("losses", losses).ravel()
    epsilon = as_numbers("epsilon", epsilon)
    for name, values in (("losses", losses), ("epsilon", epsilon)):
        # written so that NaN fails the comparison too
        if values.size == 0 or not np.all(values >= 0):
            raise ValueError(f"{name} must hold at least one number, 0 or more and no NaN")
    if epsilon.shape not in ((), losses.shape):
        raise ValueError(
            f"epsilon must be one number, or one for each of the {losses.size} losses; got shape "
            f"{epsilon.shape}"
        )
    # an indicator for each database, compared with its middle
    found = exceedance(np.where(losses > epsilon, 1.0, 0.0), 1.0, confidence=confidence)
    return replace(found, epsilon=float(epsilon.max()))


@lru_cache(maxsize=4096)
def _exact_interval(exceeded, databases, confidence):
    # a curve of π over ε asks for the same few counts over and over
    from scipy.stats import binomtest

    interval = binomtest(exceeded, databases).proportion_ci(confidence, method="exact")
    return float(interval.low), float(interval.high)


def global_bound(bound, n):
    """Recommended global bound: the local one times the paper's factor of safety.

    Parameters
    ----------
    bound : float
        Local bound Δ of the Weighted-M mechanism, 0 or more, in nats.
    n : int
        Number of records, 1 or more.

    Returns
    -------
    GlobalBound
        ``low`` and ``high``: Δ times 1 and 1.05 for more than 1,000 records, times 1.05 and 1.10
        for fewer. The paper leaves 1,000 itself open; it is treated as the small sample.

    Raises
    ------
    ValueError
        If ``bound`` is negative or not finite, or ``n`` is not a whole number of at least 1.

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 4, the recommendation after the simulation study. A
    rule of thumb: no theorem ties the factors to a value of π.

    Examples
    --------
    >>> import ppm
    >>> ppm.pdp.global_bound(2.0, n=5000)
    GlobalBound(low=2.0, high=2.1)
    """
    bound = check_number("bound", bound, at_least=0)
    low, high = (1.0, 1.05) if check_count("n", n) > 1000 else (1.05, 1.10)
    return GlobalBound(low * bound, high * bound)
