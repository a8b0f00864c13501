"""Lipschitz bounds from a matrix of log-likelihoods (the paper's section 3, steps 1c and 2b-c)."""

import math
from dataclasses import dataclass

import numpy as np

from ppm.checks import check_share
from ppm.scan import scan

__all__ = [
    "record_bounds",
    "local_bound",
    "record_oscillations",
    "oscillation_bound",
    "tail_bound",
]


@dataclass(frozen=True)
class TailBound:
    """A bound that all but a small part of one pseudo posterior satisfies.

    With probability ``confidence``, a new draw of θ exceeds ``bound`` (in nats) with probability at
    most ``tail_probability``, which is not the δ of (ε, δ)-differential privacy. With the same
    confidence, a new draw exceeds ``largest``, the maximum Δ over these S = ``draws`` draws, with
    probability at most ``beyond_largest``. The draws count as independent.
    """

    bound: float
    tail_probability: float
    confidence: float
    draws: int
    largest: float
    beyond_largest: float


def record_bounds(log_lik, weights=None):
    r"""Lipschitz bound of each record: the maximum over draws of α_i \|log p(x_i | θ_s)\|.

    Without weights these are the :math:`f_i` of step 1c, with weights the
    :math:`\Delta_{\alpha,x_i}` of step 2b (Savitsky, Williams and Hu, 2022, section 3), in nats:
    ``inf`` for a record that some draw makes impossible, 0 if its weight is 0.

    Parameters
    ----------
    log_lik : array_like (draws, records) or xarray.DataArray
        Unweighted log-likelihood in nats. A DataArray has ``chain`` and/or ``draw`` (or
        ``sample``) and one record dimension, in any order. A lazy one (zarr, netCDF or dask) is
        read once, in blocks along its chunks.
    weights : array_like (records,), optional
        Weights α, 0 or more; 1 by default.

    Examples
    --------
    >>> import ppm
    >>> ppm.record_bounds([[-1.0, -2.0], [-3.0, -0.5]], weights=[0.5, 1.0])  # 2 draws, 2 records
    array([1.5, 2. ])
    """
    return scan(log_lik, weights, by_draw=False).bounds


def local_bound(log_lik, weights=None):
    r"""Local Lipschitz bound :math:`\Delta_{\alpha,x}`: the largest of the records' bounds.

    In nats; arguments as for :func:`ppm.record_bounds`. It grows with the number of draws, so
    report it together with that number (step 2c).

    Examples
    --------
    >>> import ppm
    >>> ppm.local_bound([[-1.0, -2.0], [-3.0, -0.5]], weights=[0.5, 1.0])
    2.0
    """
    return float(record_bounds(log_lik, weights).max())


def record_oscillations(log_lik, weights=None):
    r"""Oscillation of each record: the range of its weighted log-likelihood over the draws.

    Arguments and result as for :func:`record_bounds`. A factor of p that does not depend on θ, such
    as a change of unit, cancels. An oscillation is at most twice the record's bound, and at most
    the bound itself where the log-likelihood keeps its sign. Not in Savitsky, Williams and Hu
    (2022); their proof of the theorem in section 2 gives it if constants that cancel in the ratio
    of posteriors are not counted.

    Examples
    --------
    >>> import ppm
    >>> ppm.record_oscillations([[-1.0, -2.0], [-3.0, -0.5]])  # two draws of two records
    array([2. , 1.5])
    """
    return scan(log_lik, weights, by_draw=False).oscillations


def oscillation_bound(log_lik, weights=None):
    r"""Largest oscillation of a record over these draws, in nats; at most twice the local bound.

    It estimates, from below, the supremum over all records and all parameters that the prior
    allows. That supremum, where it is finite and no weight reacts to another record, is an ε of
    one exact draw, without a factor of 2; this maximum is not (see the theory chapter). Arguments
    as for :func:`ppm.record_bounds`.

    Examples
    --------
    A factor that does not depend on θ, here of 100 nats, changes only the local bound.

    >>> import numpy as np, ppm
    >>> log_lik = np.array([[-1.0, -2.0], [-3.0, -0.5]])
    >>> ppm.oscillation_bound(log_lik), ppm.oscillation_bound(log_lik - 100.0)
    (2.0, 2.0)
    >>> ppm.local_bound(log_lik), ppm.local_bound(log_lik - 100.0)
    (3.0, 103.0)
    """
    return float(record_oscillations(log_lik, weights).max())


def tail_bound(log_lik, weights=None, *, tail_probability=0.01, confidence=0.95):
    r"""Local bound that all but a fraction `tail_probability` of this pseudo posterior satisfies.

    The maximum over S draws grows with S; this distribution-free tolerance limit does not. The
    result is a ``TailBound``; `tail_probability` and `confidence` lie between 0 and 1. Other
    arguments as for :func:`record_bounds`, with draws of the *weighted* fit, thinned until they are
    nearly independent.

    Notes
    -----
    `tail_probability` is not the δ of (ε, δ)-differential privacy: δ would also have to bound the
    posterior of a neighbour, which may lie almost entirely beyond this bound. The chapter on the
    privacy audit has an example.

    Examples
    --------
    >>> import numpy as np, ppm
    >>> log_lik = -np.linspace(0.01, 10.0, 1000)[:, None]  # 1,000 draws of one record
    >>> tail = ppm.tail_bound(log_lik, tail_probability=0.05)
    >>> round(tail.bound, 2), tail.largest
    (9.62, 10.0)
    """
    from scipy.stats import binom

    tail_probability = check_share("tail_probability", tail_probability)
    confidence = check_share("confidence", confidence)
    ordered = np.sort(draw_maxima(log_lik, weights))
    draws = ordered.size
    # the k-th smallest exceeds the quantile unless at least k of the draws lie below it
    sure = binom.cdf(np.arange(draws), draws, 1.0 - tail_probability) >= confidence
    if not sure.any():
        needed = np.ceil(math.log(1.0 - confidence) / math.log1p(-tail_probability))
        raise ValueError(
            f"tail_probability={tail_probability:g} with confidence={confidence:g} "
            f"needs at least {needed:.15g} draws; got {draws}"
        )
    return TailBound(
        bound=float(ordered[np.argmax(sure)]),
        tail_probability=tail_probability,
        confidence=confidence,
        draws=draws,
        largest=float(ordered[-1]),
        beyond_largest=-math.expm1(math.log(1.0 - confidence) / draws),
    )


def draw_maxima(log_lik, weights=None):
    r"""Largest weighted :math:`|\log p|` of each draw, chain after chain: their maximum is Δ."""
    return scan(log_lik, weights).draw_maxima.ravel()
