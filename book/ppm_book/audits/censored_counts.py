"""The audit of censored counts: the loss of every leave-one-out neighbour, over all μ.

All results are computed from the confidential records and are confidential themselves.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import xarray as xr

from ppm.audits.closed_form import check_database
from ppm.censoring import Censoring
from ppm.checks import check_number, check_rows, check_weights, shown
from ppm.rules import limited
from ppm.synthesizers.censored_gamma import CensoredGamma
from ppm.synthesizers.gamma_poisson import GammaPoisson

# further values of log μ, beyond the quadrature's
_EVERYWHERE = np.linspace(-60.0, 60.0, 2_401)


def censored(counts, censor, *, shards=None, weights=None, shape=0.001, rate=0.001):
    r"""Largest privacy loss of a database of counts with censored terms, over every μ > 0.

    For each record i the loss is :math:`\sup_\mu |\log \xi(\mu \mid x) - \log \xi(\mu \mid
    x_{-i})|`, with both densities normalised; :class:`ppm.GammaPoisson` with ``censor`` draws from
    them. With shards, each shard is fitted alone and releases its own independent μ, and the
    extremes of the log ratios add up over the shards.

    Parameters
    ----------
    counts : array_like of int (records,)
        The database x, at least two records.
    censor : ppm.Censoring
        Public limits of every record's term.
    shards : sequence of array_like of int, or callable, optional
        Rows of each shard; a row may be in several shards, or in none. By default one fit of all.
        A rule is called with an array of counts, and again for each record left out, whose count is
        then NaN, so that the audit detects assignments that depend on the counts.
    weights : array_like (records,), or callable, optional
        Weights α, 0 or more, inside the limits; 1 by default. An array stays as it is when a record
        is left out. A rule is called with an array of counts, and again without each record, so
        that the audit detects weights that react.
    shape, rate : float, default 0.001
        Gamma prior of μ, in every shard, as for :class:`ppm.GammaPoisson`.

    Returns
    -------
    xarray.Dataset
        Dimension left_out: with shards every record, otherwise one for each distinct pair of count
        and weight. ``count``, ``weight``, ``loss`` in nats, and ``reacts``: whether another
        record's weight or shard changes. Attributes: ``loss``, the largest, and ``width``, the W
        that no loss exceeds where nothing reacts and shards are disjoint.

    Notes
    -----
    Where nothing reacts, the log ratio is the record's term minus a constant, and the loss is exact
    to about 1e-12. Where something reacts, it is the largest value on a fine grid, where terms
    peak, bend or meet a limit, and for μ to 0 and to infinity; it can only be too small. What a
    published assignment to shards reveals is not included.

    Examples
    --------
    >>> import ppm
    >>> counts, limits = [3, 5, 4, 6, 20, 2], ppm.Censoring(-3, -2)
    >>> found = ppm.audits.censored(counts, limits)
    >>> 0.5 < found.attrs["loss"] <= found.attrs["width"] == 1.0
    True

    Record 4 in both of two shards:

    >>> twice = ppm.audits.censored(counts, limits, shards=[[0, 2, 4], [1, 3, 4, 5]])
    >>> twice.attrs["loss"] > 1.0
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

    parts = _rows(shards, counts.astype(np.float64))
    fits = [fitted(rows, weights) for rows in parts]
    # smallest and largest log ratio of each shard without each record
    extremes = np.zeros((len(parts), 2, counts.size))
    for of_shard, rows, fit in zip(extremes, parts, fits, strict=True):
        of_shard[:, rows] = extremes_if_others_stay(fit)
    leaving = np.arange(counts.size)
    if shards is None:  # equal records leave the same neighbour
        leaving = np.unique(fits[0].position, return_index=True)[1]
    reacts = np.zeros(counts.size, dtype=bool)
    changes = _changes(leaving, counts, weigh, weights, shards, parts)
    for record, part, rows, others in changes:
        reacts[record] = True
        extremes[part, :, record] = extremes_if_others_react(
            fits[part], fitted(rows, others)
        )
    losses = np.abs(extremes.sum(axis=0)).max(axis=0)
    columns = {"count": counts, "weight": weights, "loss": losses, "reacts": reacts}
    return xr.Dataset(
        {name: ("left_out", values[leaving]) for name, values in columns.items()},
        attrs={"loss": float(losses[leaving].max()), "width": censor.width},
    )


def _rows(shards, values):
    """Rows of each shard: as they are, or by a rule that sees these counts."""
    if shards is None:
        return [np.arange(values.size)]
    parts = shards(values) if callable(shards) else shards
    parts = [*parts] if np.iterable(parts) else []
    if not parts:
        raise ValueError(
            "shards must be a list of the rows of each shard, at least one; got "
            f"{shown(shards)}"
        )
    return [np.sort(check_rows("shards", rows, values.size)) for rows in parts]


def _changes(leaving, counts, weigh, weights, shards, parts):
    """Each record and shard in which other records react: the shard's rows then, and all weights."""
    if not (weigh or callable(shards)):
        return
    for record in leaving:
        others = _weights_without(record, counts, weigh, weights)
        without = _shards_without(record, counts, shards, parts)
        for part in without.parts_that_change(weights, others):
            yield record, part, without.after[part], others


def _weights_without(record, counts, weigh, weights):
    """Weights of all records when this one leaves, whose own stays as it was."""
    others = weights.copy()
    if weigh:
        stays = np.arange(counts.size) != record
        others[stays] = check_weights(weigh(counts[stays]), counts.size - 1)
    return others


class Shards(NamedTuple):
    """Rows of each shard without one record: as they were before it leaves, and after."""

    before: list
    after: list

    def parts_that_change(self, weights, others):
        """Numbers of the shards with other rows, or with other weights of their rows."""
        for part, (stayed, now) in enumerate(zip(*self, strict=True)):
            if not (
                np.array_equal(stayed, now)
                and np.array_equal(weights[now], others[now])
            ):
                yield part


def _shards_without(record, counts, shards, parts):
    """The shards of a database that this record leaves; a rule sees NaN in its place."""
    without = counts.astype(np.float64)
    without[record] = np.nan
    after = _rows(shards, without)
    if len(after) != len(parts):
        raise ValueError(
            "shards must be a rule with the same number of shards for every "
            f"database; it made {len(parts)}, and {len(after)} without a record"
        )
    return Shards(*([rows[rows != record] for rows in both] for both in (parts, after)))


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
