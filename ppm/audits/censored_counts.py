"""The exact audit of censored counts: the loss of every leave-one-out neighbour, over all μ.

Everything in this module is computed from the confidential records and is confidential itself.
"""

import numpy as np
import xarray as xr

from ppm._validation import check_number, check_weights, refuse_masked, shown
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
        Weights α, 0 or more, inside the limits, which the other records keep when one leaves; all 1
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
    losses = np.abs(_extremes_of_own_terms(whole)).max(axis=0)
    reacts = np.zeros(losses.size, dtype=bool)
    for place in range(losses.size if rule is not None else 0):
        stays = np.arange(counts.size) != np.flatnonzero(whole.position == place)[0]
        others = check_weights(rule(counts[stays]), counts.size - 1)
        reacts[place] = not np.array_equal(others, weights[stays])
        if reacts[place]:
            other = CensoredGamma(counts[stays], others, censor, *prior)
            losses[place] = np.abs(_extremes_between(whole, other)).max()
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


def censored_shards(counts, shards, censor, *, weights=None, shape=0.001, rate=0.001):
    r"""Largest privacy loss of a database of counts whose shards are fitted each by itself.

    What is released is one draw of μ for each shard, all of them independent. For each record i
    that may leave, the loss is :math:`\sup |\sum_k \log \xi(\mu_k \mid x^{(k)}) - \log \xi(\mu_k
    \mid x_{-i}^{(k)})|` over all :math:`\mu_1, \mu_2, \ldots > 0`: as the shards' draws are
    independent, the largest and the smallest values of the single log ratios add up.

    Parameters
    ----------
    counts : array_like of int, shape (records,)
        The database x, at least two records.
    shards : sequence of array_like of int, or callable
        Rows of each shard; a row may be in several of them, or in none. A rule, called with an
        array of counts, is asked again without each record, whose count is then NaN: so
        assignments are audited that look at the counts.
    censor : ppm.Censoring
        Public limits of every record's term, in every shard.
    weights : array_like, shape (records,), optional
        Weights α, 0 or more, inside the limits; all 1 by default.
    shape, rate : float, default 0.001
        Gamma prior of every shard's μ, as for :class:`ppm.GammaPoisson`.

    Returns
    -------
    xarray.Dataset
        Dimension left_out, the records: ``count``, ``loss`` in nats, and ``moves``, whether another
        record changes its shard. Attributes: ``loss``, the largest of them, and ``width``, the W
        that it is to be held against.

    Raises
    ------
    ValueError
        If an argument is out of range, or a rule makes another number of shards without a record.

    Notes
    -----
    Not in Savitsky, Williams and Hu (2022). As exact as :func:`ppm.audits.censored`: where no
    record moves to about 1e-12, and where some do the largest value on a fine grid, which can only
    be too small. What the assignment itself tells, if it is published, is not in it.

    Examples
    --------
    >>> import ppm
    >>> counts, limits = [3, 5, 4, 6, 20, 2], ppm.Censoring(-3, -2)
    >>> disjoint = ppm.audits.censored_shards(counts, [[0, 2, 4], [1, 3, 5]], limits)
    >>> twice = ppm.audits.censored_shards(counts, [[0, 2, 4], [1, 3, 4, 5]], limits)
    >>> disjoint.attrs["loss"] <= 1.0 < twice.attrs["loss"]
    True
    """
    counts = check_database(counts)
    if not isinstance(censor, Censoring):
        raise ValueError(f"censor must be a ppm.Censoring; got {type(censor).__name__}")
    prior = check_number("shape", shape, above=0), check_number("rate", rate, above=0)
    weights = np.ones(counts.size) if weights is None else check_weights(weights, counts.size)
    rule = shards if callable(shards) else None
    if rule is not None:
        shards = rule(counts.astype(np.float64))
    shards = check_rows(shards, counts.size)
    fits = [CensoredGamma(counts[rows], weights[rows], censor, *prior) for rows in shards]
    own = np.zeros((len(shards), 2, counts.size))
    for found, rows, fit in zip(own, shards, fits, strict=True):
        found[:, rows] = _extremes_of_own_terms(fit)[:, fit.position]
    extremes, moves = own.sum(axis=0), np.zeros(counts.size, dtype=bool)
    for record in range(counts.size if rule is not None else 0):
        without = counts.astype(np.float64)
        without[record] = np.nan
        others = check_rows(rule(without), counts.size)
        if len(others) != len(shards):
            raise ValueError(
                f"shards must be a rule with the same number of shards for every database; it made "
                f"{len(shards)}, and {len(others)} without one of the records"
            )
        for place, (before, after) in enumerate(zip(shards, others, strict=True)):
            before, after = (rows[rows != record] for rows in (before, after))
            if not np.array_equal(before, after):
                moves[record] = True
                other = CensoredGamma(counts[after], weights[after], censor, *prior)
                extremes[:, record] += (
                    _extremes_between(fits[place], other) - own[place, :, record]
                )
    losses = np.abs(extremes).max(axis=0)
    return xr.Dataset(
        {
            "count": ("left_out", counts),
            "loss": ("left_out", losses),
            "moves": ("left_out", moves),
        },
        attrs={"loss": float(losses.max()), "width": censor.width},
    )


def check_rows(shards, records):
    """Return the rows of each shard as arrays of whole numbers below ``records``.

    Raises
    ------
    ValueError
        If they are something else, or a shard is empty or holds a row twice.
    """
    for rows in shards if np.iterable(shards) else ():
        # sorting would put what a mask hides among the rows
        refuse_masked("shards", rows)
    wrong = ValueError(
        f"shards must be a list of the rows of each shard, whole numbers from 0 to {records - 1}, "
        f"none twice in a shard and no shard empty; got {shown(shards)}"
    )
    try:
        found = [np.sort(np.asarray(rows)) for rows in shards]
    except (TypeError, ValueError):
        raise wrong from None
    for rows in found:
        if rows.ndim != 1 or rows.size == 0 or rows.dtype.kind not in "iu":
            raise wrong
        if rows[0] < 0 or rows[-1] >= records or (np.diff(rows) == 0).any():
            raise wrong
    if not found:
        raise wrong
    return found


def _extremes_of_own_terms(whole):
    """Smallest and largest log ratio where the other records keep their terms, shape (2, records).

    They are the extremes of the record's term minus a constant.
    """
    constant = whole.log_integral - whole.log_integral_without()
    smallest = np.minimum(whole.term_at_zero, whole.term_at_infinity)
    return np.stack([smallest - constant, whole.largest_term - constant])


def _extremes_between(one, other):
    """Smallest and largest log ratio of two posteriors with the same prior, on points of both."""
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
    ratio = np.r_[inner, limits] - (one.log_integral - other.log_integral)
    return np.array([ratio.min(), ratio.max()])
