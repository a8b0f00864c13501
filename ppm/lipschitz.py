"""Lipschitz bounds from a matrix of log-likelihoods (the paper's section 3, steps 1c and 2b-c)."""

import itertools
import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ppm.checks import as_array, check_share, check_weights, shown

__all__ = [
    "record_bounds",
    "local_bound",
    "record_oscillations",
    "oscillation_bound",
    "tail_bound",
    "bound_by_draws",
]

_DRAW_DIMENSIONS = ("chain", "draw", "sample")
# numbers in a block that is read from a store, in whole chunks
BLOCK = 1 << 22
# numbers in a block from memory, which fits the processor's cache, and records in it
_TILE, _WIDE = 1 << 18, 1 << 13


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


def bound_by_draws(log_lik, draws, weights=None):
    """Local bound to expect from fewer draws: its mean over all subsets of that size.

    ``draws`` lists these sizes, at most the draws of ``log_lik``; other arguments as for
    :func:`ppm.record_bounds`. The result is a pandas Series in nats, by number of draws.

    Examples
    --------
    >>> import ppm
    >>> log_lik = [[-1.0], [-2.0], [-3.0]]  # three draws of one record
    >>> ppm.lipschitz.bound_by_draws(log_lik, [1, 2, 3]).round(2).to_dict()
    {1: 2.0, 2: 2.67, 3: 3.0}
    """
    import pandas as pd
    from scipy.special import gammaln

    ordered = np.sort(draw_maxima(log_lik, weights))
    numbers = as_array("draws", draws)
    whole = numbers.dtype.kind in "iu" and numbers.ndim == 1 and numbers.size > 0
    if not whole or not np.isin(numbers, range(1, ordered.size + 1)).all():
        raise ValueError(
            f"draws must be numbers from 1 to {ordered.size}; got {shown(draws)}"
        )
    # probability that a subset of size k comes from the i smallest: binom(i, k) / binom(S, k)
    below = np.arange(ordered.size + 1.0)[:, None]
    log_chance = gammaln(below + 1.0) - gammaln(below - numbers + 1.0)
    chance = np.diff(np.exp(log_chance - log_chance[-1]), axis=0)
    return pd.Series(
        ordered @ chance, pd.Index(numbers, name="draws"), name="expected bound"
    )


def draw_maxima(log_lik, weights=None):
    r"""Largest weighted :math:`|\log p|` of each draw, chain after chain: their maximum is Δ."""
    return scan(log_lik, weights).draw_maxima.ravel()


@dataclass(frozen=True, eq=False, kw_only=True)
class LogLikelihoodScan:
    """Extremes and sums from one pass over a log-likelihood, in nats.

    ``bounds`` and ``oscillations`` are what :func:`record_bounds` and :func:`record_oscillations`
    return. ``draw_maxima`` and ``draw_sums``, with one axis for each draw dimension, are each
    draw's largest weighted absolute value and weighted sum. ``lowest`` are the records' smallest
    values, without weights but for censored terms. ``factors`` multiply the values that were read:
    the weights or, of censored terms, which have their weight inside, 1 for a record
    that counts and 0 for one of weight 0.
    """

    factors: np.ndarray
    bounds: np.ndarray = field(repr=False)
    oscillations: np.ndarray = field(repr=False)
    lowest: np.ndarray = field(repr=False)
    draw_maxima: np.ndarray = field(repr=False)
    draw_sums: np.ndarray = field(repr=False)


def scan(log_lik, weights=None, *, censor=None, levels=None, by_draw=True):
    """Read a log-likelihood block by block, each value once.

    The values are log p less the ``levels`` (records,) and, with ``censor``, the censored terms of
    the weighted records. A record of weight 0 has a constant term, which does not count.
    ``draw_maxima`` and ``draw_sums`` are computed only ``by_draw``.
    """
    sizes, blocks = blocks_of(log_lik)
    *draw_shape, records = sizes.values()
    weights = check_weights(weights, records)
    factors = weights if censor is None else (weights > 0).astype(float)
    lowest, highest = np.full(records, np.inf), np.full(records, -np.inf)
    maxima, sums = np.zeros(draw_shape), np.zeros(draw_shape)
    over_draws = tuple(range(len(draw_shape)))
    for block in blocks:
        draws, columns, values = block.draws, block.records, block.values
        shift = 0.0 if levels is None else levels[columns]
        if censor is not None:
            values = censor.term(weighted(values, weights[columns], shift))
        elif levels is not None:
            values = weighted(values, 1.0, shift)
        # both carry NaN along
        lowest[columns] = np.minimum(lowest[columns], values.min(axis=over_draws))
        highest[columns] = np.maximum(highest[columns], values.max(axis=over_draws))
        if by_draw:
            terms = weighted(values, factors[columns])
            with np.errstate(over="ignore", invalid="ignore"):
                sums[draws] += terms.sum(axis=-1)
            maxima[draws] = np.maximum(
                maxima[draws], np.abs(terms, out=terms).max(axis=-1)
            )
    missing = np.flatnonzero(np.isnan(lowest))
    if missing.size:
        raise ValueError(
            f"log_lik holds NaN (first in record {missing[0]}, {missing.size} of "
            f"{records} records affected); accepted: finite numbers, or -inf where a "
            "record is impossible"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        spread = highest - lowest
    spread[np.isnan(spread)] = np.inf  # a difference of infinities
    size = np.maximum(np.abs(lowest), np.abs(highest))
    return LogLikelihoodScan(
        factors=factors,
        draw_maxima=maxima,
        draw_sums=sums,
        lowest=lowest,
        bounds=weighted(size, factors),
        oscillations=weighted(spread, factors),
    )


class Block(NamedTuple):
    """Part of a log-likelihood: slices of its draw dimensions and of its records, and values."""

    draws: tuple
    records: slice
    values: np.ndarray


def blocks_of(log_lik, name="log_lik"):
    """Sizes by dimension, that of the records last, and an iterator over blocks.

    Messages call the argument `name`.
    """
    chunks = {}
    if hasattr(log_lik, "dims"):
        if not hasattr(
            log_lik, "dtype"
        ):  # to ask whether it has values would read them
            raise ValueError(
                f"{name} must be one array; got a {type(log_lik).__name__}: pass the "
                f"variable that holds the log-likelihoods, such as {name}['y']"
            )
        leading = [d for d in _DRAW_DIMENSIONS if d in log_lik.dims]
        dims = leading + [d for d in log_lik.dims if d not in leading]
        if not leading or len(dims) != len(leading) + 1:
            raise ValueError(
                f"{name} has the dimensions {tuple(log_lik.dims)}; accepted: chain "
                "and/or draw, and exactly one record dimension"
            )
        source = getattr(
            log_lik, "variable", log_lik
        )  # without coordinates, which cost time
        chunks = dict(source.chunksizes) or source.encoding.get("preferred_chunks", {})
    else:
        dims, source = ["draw", "record"], as_array(name, log_lik)
        if source.ndim != 2:
            raise ValueError(
                f"{name} must have shape (draws, records); got shape {source.shape}"
            )
    size_of = dict(zip(getattr(source, "dims", dims), source.shape, strict=True))
    sizes = {d: size_of[d] for d in dims}
    if source.dtype.kind not in "fiu":
        raise ValueError(
            f"{name} must hold real numbers; got values of type {source.dtype}"
        )
    if not source.size:
        raise ValueError(
            f"{name} is empty: shape {source.shape}; give a draw and a record"
        )

    def read(corner):
        if isinstance(source, np.ndarray):
            return Block(corner[:-1], corner[-1], source[corner])
        # loaded before it is transposed: a transposed store is read value by value
        part = source.isel(dict(zip(dims, corner, strict=True))).load()
        return Block(corner[:-1], corner[-1], part.transpose(*dims).values)

    steps = _block_sizes(sizes, chunks)
    slices = [
        [slice(at, min(at + steps[d], sizes[d])) for at in range(0, sizes[d], steps[d])]
        for d in dims
    ]
    return sizes, map(read, itertools.product(*slices))


def _block_sizes(sizes, chunks):
    """Length of a block along each dimension: whole chunks, as many as fit into its numbers."""
    numbers = BLOCK if chunks else _TILE
    *draws, records = sizes
    chunks = chunks or {records: _WIDE}
    steps = {d: min(size, int(np.max(chunks.get(d, 1)))) for d, size in sizes.items()}
    chunks_left = numbers // math.prod(steps.values())
    # the last draw dimension grows first, the records last
    for d in (*reversed(draws), records):
        together = max(1, min(chunks_left, math.ceil(sizes[d] / steps[d])))
        chunks_left //= together
        steps[d] *= together
    return steps


def weighted(values, weights, levels=0.0):
    """Values less levels times weights; a weight of 0 gives 0 even where the value is infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.subtract(values, levels) if np.any(levels) else values
        products = np.asarray(np.multiply(values, weights, order="C"))
    np.copyto(products, 0.0, where=np.equal(weights, 0))
    return products
