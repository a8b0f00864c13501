"""A bound that all but a small part of a pseudo posterior satisfies."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from ppm.checks import as_amounts, check_share


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


def tail_bound(draw_maxima, *, tail_probability=0.01, confidence=0.95):
    r"""Local bound that all but a fraction `tail_probability` of this pseudo posterior satisfies.

    The maximum over S draws grows with S; this distribution-free tolerance limit does not. The
    result is a ``TailBound``; `tail_probability` and `confidence` lie between 0 and 1.

    Parameters
    ----------
    draw_maxima : array_like
        Largest weighted :math:`|\log p|` of each draw of the *weighted* fit, thinned until they are
        nearly independent, of any shape: see :attr:`ppm.Fit.draw_maxima`.
    tail_probability : float, default 0.01
        The part of the pseudo posterior that may lie beyond the bound.
    confidence : float, default 0.95
        Confidence that no more does.

    Notes
    -----
    `tail_probability` is not the δ of (ε, δ)-differential privacy: δ would also have to bound the
    posterior of a neighbour, which may lie almost entirely beyond this bound. The chapter on the
    privacy audit has an example.

    Examples
    --------
    >>> import numpy as np
    >>> from ppm_book import audits
    >>> maxima = np.linspace(0.01, 10.0, 1000)  # of 1,000 draws
    >>> tail = audits.tail_bound(maxima, tail_probability=0.05)
    >>> round(tail.bound, 2), tail.largest
    (9.62, 10.0)
    """
    tail_probability = check_share("tail_probability", tail_probability)
    confidence = check_share("confidence", confidence)
    ordered = np.sort(as_amounts("draw_maxima", draw_maxima), axis=None)
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
