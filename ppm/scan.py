"""One pass over a log-likelihood: extremes of each record, sums of each draw."""

import itertools
import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ppm.checks import as_array
from ppm.terms import Terms, as_terms

_DRAW_DIMENSIONS = ("chain", "draw", "sample")
# numbers in a block that is read from a store, in whole chunks
BLOCK = 1 << 22
# numbers in a block from memory, which fits the processor's cache, and records in it
_TILE, _WIDE = 1 << 18, 1 << 13


@dataclass(frozen=True, eq=False, kw_only=True)
class LogLikelihoodScan:
    """What one pass over a log-likelihood finds, in nats.

    ``lowest`` and ``highest`` are each record's extremes of log p, from which those of its term
    follow, because terms rise with log p. ``draw_maxima`` and ``draw_sums``, with one axis for each
    draw dimension, are each draw's largest absolute term and the sum of its terms. Over a public
    set the maxima are one row of all candidates, and there are no sums.
    """

    terms: Terms
    lowest: np.ndarray = field(repr=False)
    highest: np.ndarray = field(repr=False)
    draw_maxima: np.ndarray = field(repr=False)
    draw_sums: np.ndarray = field(repr=False)

    @property
    def bounds(self):
        """Largest absolute term of each record."""
        ends = self.terms(self.lowest), self.terms(self.highest)
        return np.maximum(*map(np.abs, ends))

    @property
    def oscillations(self):
        """Largest term of each record less its smallest."""
        with np.errstate(over="ignore", invalid="ignore"):
            range_of = self.terms(self.highest) - self.terms(self.lowest)
        return np.where(np.isnan(range_of), np.inf, range_of)  # ∞ - ∞


def scan(log_lik, terms=None, *, by_draw=True):
    """Read a log-likelihood block by block, each value once.

    ``terms`` are those of its records, or weights; ``draw_maxima`` and ``draw_sums`` are computed
    only ``by_draw``. NaN is refused, except between limits, where it counts as -inf.
    """
    sizes, blocks = blocks_of(log_lik)
    *draw_shape, records = sizes.values()
    terms = as_terms(terms, records)
    lowest, highest = np.full(records, np.inf), np.full(records, -np.inf)
    maxima, sums = np.zeros(draw_shape), np.zeros(draw_shape)
    over_draws = tuple(range(len(draw_shape)))
    for draws, columns, values in blocks:
        if terms.limits is not None:
            values = np.where(np.isnan(values), -np.inf, values)
        # both carry NaN along
        lowest[columns] = np.minimum(lowest[columns], values.min(axis=over_draws))
        highest[columns] = np.maximum(highest[columns], values.max(axis=over_draws))
        if by_draw:
            found = terms(values, columns)
            with np.errstate(over="ignore", invalid="ignore"):
                sums[draws] += found.sum(axis=-1)
            largest = np.abs(found, out=found).max(axis=-1)
            maxima[draws] = np.maximum(maxima[draws], largest)
    missing = np.flatnonzero(np.isnan(lowest))
    if missing.size:
        raise ValueError(
            f"log_lik holds NaN (first in record {missing[0]}, {missing.size} of "
            f"{records} records affected); accepted: finite numbers, or -inf where a "
            "record is impossible"
        )
    return LogLikelihoodScan(
        terms=terms, lowest=lowest, highest=highest, draw_maxima=maxima, draw_sums=sums
    )


def sums_by_draw(log_lik, function):
    """Sum over the records of ``function(values, records)``, block by block, for every draw."""
    sizes, blocks = blocks_of(log_lik)
    sums = np.zeros([*sizes.values()][:-1])
    for draws, columns, values in blocks:
        with np.errstate(over="ignore", invalid="ignore"):
            sums[draws] += function(values, columns).sum(axis=-1)
    return sums


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
