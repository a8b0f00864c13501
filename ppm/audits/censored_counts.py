"""The exact audit of censored counts: the loss of every leave-one-out neighbour, over all μ.

Everything in this module is computed from the confidential records and is confidential itself.
"""

import numpy as np
import xarray as xr

from ppm._validation import check_number, check_weights
from ppm.audits.closed_form import check_database
from ppm.censoring import Censoring
from ppm.synthesizers.censored_gamma import CensoredGamma

# of log μ, in the places where the quadrature has no points
_EVERYWHERE = np.linspace(-60.0, 60.0, 2_401)


def censored(counts, censor, *, weights=None, shape=0.001, rate=0.001):
    r"""Largest privacy loss of a database of counts with censored terms, over every μ > 0.

    For each record i that may leave, the loss is :math:`\sup_\mu |\log \xi(\mu \mid x) - \log
    \xi(\mu \mid x_{-i})|` with both densities normalised, as :class:`ppm.GammaPoisson` draws from
    them with ``censor``. The neighbour is the same table in which the count of record i takes no
    part.

    Parameters
    ----------
    counts : array_like of int, shape (records,)
        The database x, at least two records.
    censor : ppm.Censoring
        Public limits of every record's term.
    weights : array_like, shape (records,), or callable, optional
        Weights α in [0, 1] inside the limits, which the other records keep when one leaves; all 1
        by default. A rule, called with an array of counts, is asked again without each record:
        so weights are audited that may react.
    shape, rate : float, default 0.001
        Gamma prior of μ, as for :class:`ppm.GammaPoisson`.

    Returns
    -------
    xarray.Dataset
        Dimension left_out, the distinct pairs of count and weight: equal ones leave the same
        neighbour. ``count``, ``weight`` and ``records`` (how many there are), ``loss`` in nats, and
        ``reacts``: whether another record's weight changes. Attributes: ``loss``, the largest of
        them, and ``width``, the W that it is to be held against.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Not in Savitsky, Williams and Hu (2022). Where the others keep their weights, the log ratio is
    the record's term minus a constant, whose largest and smallest value over all μ are known, and
    only the constant is by quadrature: the loss is exact to about 1e-12. Where weights react it is
    the largest value on a fine grid, where terms turn, and in both limits, μ to 0 and to infinity:
    it can only be too small.

    Examples
    --------
    >>> import ppm
    >>> found = ppm.audits.censored([3, 5, 4, 6, 20], ppm.Censoring(-3, -2))
    >>> 0.5 < found.attrs["loss"] <= found.attrs["width"] == 1.0
    True
    """
    counts = check_database(counts)
    if not isinstance(censor, Censoring):
        raise ValueError(f"censor must be a ppm.Censoring; got {type(censor).__name__}")
    prior = check_number("shape", shape, above=0), check_number("rate", rate, above=0)
    rule = weights if callable(weights) else None
    if rule is not None:
        weights = rule(counts)
    weights = np.ones(counts.size) if weights is None else check_weights(weights, counts.size)
    whole = CensoredGamma(counts, weights, censor, *prior)
    losses = _loss_of_own_terms(whole)
    reacts = np.zeros(losses.size, dtype=bool)
    for place in range(losses.size if rule is not None else 0):
        stays = np.arange(counts.size) != np.flatnonzero(whole.position == place)[0]
        others = check_weights(rule(counts[stays]), counts.size - 1)
        reacts[place] = not np.array_equal(others, weights[stays])
        if reacts[place]:
            losses[place] = _loss_between(
                whole, CensoredGamma(counts[stays], others, censor, *prior)
            )
    return xr.Dataset(
        {
            "count": ("left_out", whole.counts.astype(np.int64)),
            "weight": ("left_out", whole.weights),
            "records": ("left_out", whole.numbers),
            "loss": ("left_out", losses),
            "reacts": ("left_out", reacts),
        },
        attrs={"loss": float(losses.max()), "width": censor.width},
    )


def _loss_of_own_terms(whole):
    """Losses where the other records keep their terms: a term's extremes minus a constant."""
    constant = whole.log_integral - whole.log_integral_without()
    smallest = np.minimum(whole.term_at_zero, whole.term_at_infinity)
    return np.maximum(whole.largest_term - constant, constant - smallest)


def _loss_between(one, other):
    """Largest absolute log ratio of two posteriors with the same prior, on the points of both."""
    # also where neither has any mass to speak of
    points = np.concatenate(
        [one.nodes, other.nodes, *one.edges, *other.edges, one.breaks, other.breaks, _EVERYWHERE]
    )
    # the prior is the same, and would only bring rounding
    inner = one.total(points) - other.total(points)
    limits = [
        one.numbers @ getattr(one, where) - other.numbers @ getattr(other, where)
        for where in ("term_at_zero", "term_at_infinity")
    ]
    return np.abs(np.r_[inner, limits] - (one.log_integral - other.log_integral)).max()
