"""The audit of censored counts: the loss of every leave-one-out neighbour, over all μ.

All results are computed from the confidential records and are confidential themselves.
"""

from dataclasses import replace

import numpy as np
import xarray as xr

from ppm.audits.closed_form import check_database
from ppm.censoring import Censoring
from ppm.checks import check_number, check_weights
from ppm.rules import limited
from ppm.synthesizers.censored_gamma import CensoredGamma
from ppm.synthesizers.gamma_poisson import GammaPoisson

# further values of log μ, beyond the quadrature's
_EVERYWHERE = np.linspace(-60.0, 60.0, 2_401)


def censored(counts, censor, *, weights=None, shape=0.001, rate=0.001):
    r"""Largest privacy loss of a database of counts with censored terms, over every μ > 0.

    For each record i the loss is :math:`\sup_\mu |\log \xi(\mu \mid x) - \log \xi(\mu \mid
    x_{-i})|`, with both densities normalised; :class:`ppm.GammaPoisson` with ``censor`` draws from
    them.

    Parameters
    ----------
    counts : array_like of int (records,)
        The database x, at least two records.
    censor : ppm.Censoring
        Public limits of every record's term.
    weights : array_like (records,), or callable, optional
        Weights α, 0 or more, inside the limits; 1 by default. An array stays as it is when a record
        is left out. A rule is called with an array of counts, and again without each record, so
        that the audit detects weights that react.
    shape, rate : float, default 0.001
        Gamma prior of μ, as for :class:`ppm.GammaPoisson`.

    Returns
    -------
    xarray.Dataset
        Dimension left_out: one for each distinct pair of count and weight. ``count``, ``weight``,
        ``loss`` in nats, and ``reacts``: whether another record's weight changes. Attributes:
        ``loss``, the largest, and ``width``, the W that no loss exceeds where nothing reacts.

    Notes
    -----
    Where nothing reacts, the log ratio is the record's term minus a constant, and the loss is exact
    to about 1e-12. Where something reacts, it is the largest value on a fine grid, where terms
    peak, bend or meet a limit, and for μ to 0 and to infinity; it can only be too small.

    Examples
    --------
    >>> import ppm
    >>> counts, limits = [3, 5, 4, 6, 20, 2], ppm.Censoring(-3, -2)
    >>> found = ppm.audits.censored(counts, limits)
    >>> 0.5 < found.attrs["loss"] <= found.attrs["width"] == 1.0
    True
    """
    counts = check_database(counts)
    if not isinstance(censor, Censoring):
        raise ValueError(f"censor must be a ppm.Censoring; got {type(censor).__name__}")
    prior = {
        "shape": check_number("shape", shape, above=0),
        "rate": check_number("rate", rate, above=0),
    }
    weigh = weights if callable(weights) else None
    weights = check_weights(weigh(counts) if weigh else weights, counts.size)
    terms = limited(GammaPoisson(counts), censor)

    def fitted(rows, weights):
        own = replace(terms, weights=weights, source="caller").of(rows)
        return CensoredGamma(counts[rows], own, **prior)

    whole = fitted(np.arange(counts.size), weights)
    # smallest and largest log ratio without each record
    extremes = extremes_if_others_stay(whole)
    # equal records leave the same neighbour
    leaving = np.unique(whole.position, return_index=True)[1]
    reacts = np.zeros(counts.size, dtype=bool)
    for record in leaving if weigh else ():
        stays = np.arange(counts.size) != record
        others = weights.copy()
        others[stays] = check_weights(weigh(counts[stays]), counts.size - 1)
        if not np.array_equal(weights, others):
            reacts[record] = True
            without = fitted(np.flatnonzero(stays), others)
            extremes[:, record] = extremes_if_others_react(whole, without)
    losses = np.abs(extremes).max(axis=0)
    columns = {"count": counts, "weight": weights, "loss": losses, "reacts": reacts}
    return xr.Dataset(
        {name: ("left_out", values[leaving]) for name, values in columns.items()},
        attrs={"loss": float(losses[leaving].max()), "width": censor.width},
    )


def extremes_if_others_stay(fit):
    """Smallest and largest log ratio without each of a fit's records, whose other terms stay."""
    constant = fit.log_integral - fit.log_integral_without()
    own = np.stack([fit.term_at_infinity - constant, fit.largest_term - constant])
    return own[:, fit.position]


def extremes_if_others_react(whole, without):
    """Smallest and largest log ratio of two posteriors with the same prior, on points of both."""
    # also where neither has noticeable mass
    points, width = [_EVERYWHERE], whole.censor.width
    # a smooth term bends where α log p is within twice the width from the middle
    bends = whole.censor.low + width * np.linspace(-1.5, 2.5, 33)
    for fit in (whole, without):
        points += [fit.nodes, fit.breaks, fit.crossings(bends, -60.0, 60.0)]
    points = np.concatenate(points)
    # without the prior, which cancels
    inner = whole.total(points) - without.total(points)
    ends = whole.totals_at_ends() - without.totals_at_ends()
    ratio = np.r_[inner, ends] - (whole.log_integral - without.log_integral)
    return ratio.min(), ratio.max()
