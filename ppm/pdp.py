"""Probabilistic differential privacy: ε, its composition and the exceedance π."""

from typing import NamedTuple

import numpy as np

from ppm.checks import as_amounts, as_numbers, check_count, check_number, check_share

__all__ = [
    "epsilon",
    "bounded_range_epsilon",
    "exceedance",
    "belief_limits",
    "detection_limit",
]


def epsilon(bound, releases=1):
    """Privacy expenditure ε = 2Δm, in nats, of m synthetic databases with Lipschitz bound Δ.

    An infinite bound gives an infinite ε. The ε of a *local* bound describes this database, not all
    databases. Savitsky, Williams and Hu (2022): the theorem of section 2 for one draw; section 5
    multiplies by m.

    Examples
    --------
    >>> import ppm
    >>> ppm.epsilon(2.5, releases=3)
    15.0
    """
    bound = check_number("bound", bound, at_least=0, infinite=True)
    return 2.0 * bound * check_count("releases", releases)


def bounded_range_epsilon(width, releases=1, *, delta=0.0):
    r"""Privacy expenditure ε of m releases whose privacy loss stays within an interval.

    Censoring is such a mechanism: if every record's term of the log-likelihood lies between two
    public numbers W apart and depends on this record alone, then the log ratio of the posteriors
    with and without a record lies in an interval of width W over all parameters, for every database
    and for every proper prior and model that were fixed without looking at the records.

    Parameters
    ----------
    width : float
        Width W, 0 or more, in nats. If a neighbour replaces a record instead of leaving it out,
        give 2W.
    releases : int, default 1
        Releases m, 1 or more, each from its own independent and exact draw of the same posterior.
    delta : float, default 0
        The δ of (ε, δ)-differential privacy, 0 or more and below 1.

    Notes
    -----
    In nats, ε is mW if δ = 0, and otherwise the smaller of mW and
    :math:`\rho + 2\sqrt{\rho \log(1/\delta)}` with :math:`\rho = m W^2 / 8`; a numerical accountant
    finds a somewhat lower one. Censoring is due to Hu, Williams and Savitsky (2022,
    arXiv:2205.05003). Beyond Savitsky, Williams and Hu (2022), a loss of bounded range W (Dong,
    Durfee and Rogers, 2020) is W²/8-zero-concentrated (Cesar and Rogers, 2021), which adds up to ρ
    and gives this ε (Bun and Steinke, 2016).

    Examples
    --------
    >>> import ppm
    >>> round(ppm.pdp.bounded_range_epsilon(0.5, releases=20, delta=1e-6), 2)
    6.5
    """
    width = check_number("width", width, at_least=0, infinite=True)
    releases = check_count("releases", releases)
    delta = check_number("delta", delta, at_least=0, below=1)
    pure = width * releases
    # from width 8 on the second formula is never smaller, and width**2 may overflow
    if delta == 0 or width >= 8:
        return pure
    concentrated = releases * width**2 / 8.0
    return min(pure, float(concentrated + 2.0 * np.sqrt(-concentrated * np.log(delta))))


class Exceedance(NamedTuple):
    """Share of databases whose loss exceeds ε, its interval, and the two numbers of databases."""

    estimate: float
    low: float
    high: float
    exceeded: int
    databases: int


def exceedance(losses, epsilon, *, confidence=0.95):
    """Share of databases whose privacy loss exceeds ε, with its exact binomial interval.

    It estimates π (Savitsky, Williams and Hu, 2022, section 4) only if each loss is the supremum
    over every neighbour and over every parameter that the prior allows, and ε is one number fixed
    for all databases. Losses over a range of draws or a separate ε for each database give another
    share. So does 2Δ in the place of the loss, as in the paper: Δ is a maximum over draws, and the
    theorem that links it to the loss requires all parameters, and weights that stay the same when a
    record is left out.

    Parameters
    ----------
    losses : array_like, shape (replicates,)
        Largest absolute privacy loss of each of several independent databases, or 2Δ; 0 or more,
        in nats, ``inf`` included.
    epsilon : float or array_like, shape (replicates,)
        One ε of a single release, or each database's own; 0 or more, in nats.
    confidence : float, default 0.95
        Coverage of the Clopper-Pearson interval from ``low`` to ``high``, between 0 and 1.

    Examples
    --------
    None of ten databases exceeds ε, and yet the share may be up to 0.31 at 95 % confidence.

    >>> import numpy as np, ppm
    >>> bounds = np.full(10, 1.0)  # Δ
    >>> found = ppm.exceedance(2 * bounds, epsilon=3.0)
    >>> found.estimate, round(found.high, 2)
    (0.0, 0.31)
    """
    losses, epsilon = (
        as_amounts("losses", losses).ravel(),
        as_amounts("epsilon", epsilon),
    )
    if epsilon.shape not in ((), losses.shape):
        raise ValueError(
            f"epsilon must be one number, or one for each of the {losses.size} "
            f"losses; got shape {epsilon.shape}"
        )
    exceeded, databases = int(np.count_nonzero(losses > epsilon)), losses.size
    error = (1.0 - check_share("confidence", confidence)) / 2.0
    low, high = binomial_limits(exceeded, databases, error)
    return Exceedance(
        estimate=exceeded / databases,
        low=float(low),
        high=float(high),
        exceeded=exceeded,
        databases=databases,
    )


def binomial_limits(seen, trials, error):
    """Clopper and Pearson's limits of a probability, each of which is wrong with this one."""
    from scipy.stats import beta

    low = np.where(
        seen > 0, beta.ppf(error, np.maximum(seen, 1), trials - seen + 1), 0.0
    )
    unseen = np.maximum(trials - seen, 1)
    return low, np.where(seen < trials, beta.ppf(1.0 - error, seen + 1, unseen), 1.0)


def belief_limits(prior, epsilon):
    r"""How far a release can move an attacker's belief that a record's value was used.

    Bayes' rule with a likelihood ratio between :math:`e^{-\epsilon}` and :math:`e^{\epsilon}`, for
    an attacker who knows all other records and everything public. A local ε gives no such limits.

    Parameters
    ----------
    prior : float or array_like
        Probability before the release, between 0 and 1.
    epsilon : float or array_like
        ε for every database, in nats; 2ε for the belief in one of two values of a record.

    Returns
    -------
    low, high : float or numpy.ndarray
        Smallest and largest probability afterwards.

    Examples
    --------
    >>> import ppm
    >>> low, high = ppm.pdp.belief_limits(0.5, 1.0)
    >>> round(float(high), 3)
    0.731
    """
    from scipy.special import expit, logit

    prior, epsilon = as_numbers("prior", prior), as_amounts("epsilon", epsilon)
    if not np.all((prior > 0) & (prior < 1)):
        raise ValueError(
            "prior must be a probability between 0 and 1, neither included"
        )
    return expit(logit(prior) - epsilon), expit(logit(prior) + epsilon)


def detection_limit(false_alarms, epsilon):
    r"""Largest probability that a test with a rate a of false alarms detects a record's value.

    The test says "this value was used" with probability a, ``false_alarms``, where it was not, and
    where it was with probability at most :math:`\min(e^\epsilon a, 1 - e^{-\epsilon}(1 - a))`.
    Numbers or arrays; ε is as for :func:`belief_limits`.

    Examples
    --------
    >>> import ppm
    >>> float(ppm.pdp.detection_limit(0.05, 1.0).round(3))
    0.136
    """
    rate, epsilon = (
        as_numbers("false_alarms", false_alarms),
        as_amounts("epsilon", epsilon),
    )
    if not np.all((rate >= 0) & (rate <= 1)):
        raise ValueError("false_alarms must be probabilities in [0, 1]")
    with np.errstate(over="ignore", invalid="ignore"):
        up = np.exp(epsilon) * rate
    # a test without false alarms detects nothing, unless ε is infinite
    up = np.where(rate > 0, up, np.where(epsilon == np.inf, np.inf, 0.0))
    return np.minimum(up, -np.expm1(-epsilon) + np.exp(-epsilon) * rate)[()]
