"""Lipschitz bounds from a matrix of log-likelihoods (the paper's section 3, steps 1c and 2b-c)."""

import itertools
import math
from dataclasses import dataclass, field

import numpy as np

from ppm._validation import as_array, check_count, check_share, check_weights, shown

__all__ = [
    "record_bounds", "local_bound", "record_oscillations", "oscillation_bound", "tail_bound",
    "TailBound", "bound_by_draws",
]

_DRAW_DIMENSIONS = ("chain", "draw", "sample")
# a log-likelihood is read in blocks of at most this many numbers, or of one chunk of its own
BLOCK = 1 << 22
# and worked through in tiles that stay in the processor's cache
_TILE, _WIDE = 1 << 18, 1 << 13


@dataclass(frozen=True)
class TailBound:
    """A bound for all but a stated part of one pseudo posterior, that of the records at hand.

    Attributes
    ----------
    bound : float
        With ``confidence``, a new draw of θ from this pseudo posterior has a larger weighted
        \\|log-likelihood\\| for some record with probability at most ``outside``. In nats.
    outside : float
        That probability. It is not the δ of a guarantee (ε, δ): that asks how much the pseudo
        posterior of a *neighbour* has beyond the bound as well, and it may have nearly all there.
    confidence : float
        Confidence of the statement.
    draws : int
        Independent draws S it comes from.
    largest : float
        The bare maximum Δ over these draws.
    beyond_largest : float
        With the same confidence, what lies beyond the bare maximum at the most.

    Examples
    --------
    >>> import numpy as np, ppm
    >>> print(ppm.tail_bound(-np.linspace(0.01, 10.0, 1000)[:, None], outside=0.05))
    2Δ = 19.240 nats for all but 0.05 of the pseudo posterior of these records (95% confidence,
    1,000 draws); it says nothing of a neighbour's
    """

    bound: float
    outside: float
    confidence: float
    draws: int
    largest: float
    beyond_largest: float

    def __str__(self):
        """The bound with what lies beyond it, S and confidence, and for whom it says nothing."""
        return (
            f"2Δ = {2 * self.bound:.3f} nats for all but {self.outside:.3g} of the pseudo "
            f"posterior of these records ({self.confidence:.0%} confidence, {self.draws:,} draws); "
            "it says nothing of a neighbour's"
        )


def record_bounds(log_lik, weights=None):
    r"""Bound of every record: the largest :math:`\alpha_i |\log p(x_i \mid \theta_s)|` over draws.

    With ``weights=None`` these are the :math:`f_i` of step 1c; with weights they are the
    :math:`\Delta_{\alpha,x_i}` whose largest is the local bound.

    Parameters
    ----------
    log_lik : array_like, shape (draws, records), or xarray.DataArray
        Unweighted log-likelihood of every record at every posterior draw, in nats. An xarray
        object has the dimensions ``chain`` and/or ``draw`` (or ``sample``) and one record
        dimension, in any order. Its values may lie in a zarr store or a netCDF file as xarray
        opened it, or behind dask: it is read once, in blocks along its own chunks, and not held
        whole. One that was transposed or cut since may be; a bare array of dask or zarr is.
    weights : array_like, shape (records,), optional
        Weights α, 0 or more; all 1 by default.

    Returns
    -------
    numpy.ndarray, shape (records,)
        Bounds in nats. A record whose log-likelihood is infinite has bound ``inf``, or 0 where its
        weight is exactly 0, because it then takes no part in the pseudo likelihood.

    Raises
    ------
    ValueError
        If ``log_lik`` holds NaN, is empty or has no record dimension; if the weights are not one
        finite number, 0 or more, for every record.

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 3, steps 1c and 2b.

    Examples
    --------
    >>> import ppm
    >>> log_lik = [[-1.0, -2.0], [-3.0, -0.5]]  # two draws of two records
    >>> ppm.record_bounds(log_lik)
    array([3., 2.])
    >>> ppm.record_bounds(log_lik, weights=[0.5, 1.0])
    array([1.5, 2. ])
    """
    return read_once(log_lik, weights, oscillations=False, draws=False).bounds


def local_bound(log_lik, weights=None):
    r"""Local Lipschitz bound :math:`\Delta_{\alpha,x}`: the largest of the records' bounds.

    Parameters
    ----------
    log_lik : array_like, shape (draws, records), or xarray.DataArray
        Unweighted log-likelihood in nats, as for :func:`record_bounds`.
    weights : array_like, shape (records,), optional
        Weights α, 0 or more; all 1 by default.

    Returns
    -------
    float
        The bound in nats: the maximum over the draws and records at hand. It grows with the
        number of draws, so report it together with that number.

    Raises
    ------
    ValueError
        As :func:`record_bounds`.

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 3, step 2c.

    Examples
    --------
    >>> import ppm
    >>> log_lik = [[-1.0, -2.0], [-3.0, -0.5]]  # two draws of two records
    >>> ppm.local_bound(log_lik)
    3.0
    >>> ppm.local_bound(log_lik, weights=[0.5, 1.0])
    2.0
    """
    return float(record_bounds(log_lik, weights).max())


def record_oscillations(log_lik, weights=None):
    r"""Oscillation of every record: how far its weighted log-likelihood moves over the draws.

    Entry i is :math:`\max_s \alpha_i \log p(x_i \mid \theta_s) - \min_s \alpha_i \log p(x_i \mid
    \theta_s)`. A factor of p that is free of θ, such as the one a change of unit brings, cancels.

    Parameters
    ----------
    log_lik : array_like, shape (draws, records), or xarray.DataArray
        Unweighted log-likelihood in nats, as for :func:`record_bounds`.
    weights : array_like, shape (records,), optional
        Weights α, 0 or more; all 1 by default.

    Returns
    -------
    numpy.ndarray, shape (records,)
        Oscillations in nats, 0 or more and at most twice the record's bound; at most the bound
        itself where the log-likelihood does not change its sign. A record whose log-likelihood is
        infinite has ``inf``, or 0 where its weight is exactly 0.

    Raises
    ------
    ValueError
        As :func:`record_bounds`.

    Notes
    -----
    Not in Savitsky, Williams and Hu (2022): what the proof of their theorem in section 2 leaves
    when the constant that cancels in the ratio of posteriors is not counted.

    Examples
    --------
    >>> import ppm
    >>> ppm.record_oscillations([[-1.0, -2.0], [-3.0, -0.5]])  # two draws of two records
    array([2. , 1.5])
    """
    return read_once(log_lik, weights, draws=False).oscillations


def oscillation_bound(log_lik, weights=None):
    r"""Largest oscillation of a record over the draws at hand: an estimate, from below.

    If no weight reacts to another record, the *supremum over every possible record* of the
    oscillation over all parameters that the prior allows is, where it is finite, an ε of one exact
    draw, without a factor 2. A maximum over draws and over the records at hand is not: more draws
    only raise it, and other records have another one.

    Parameters
    ----------
    log_lik : array_like, shape (draws, records), or xarray.DataArray
        Unweighted log-likelihood in nats, as for :func:`record_bounds`.
    weights : array_like, shape (records,), optional
        Weights α, 0 or more; all 1 by default.

    Returns
    -------
    float
        The oscillation in nats, at most ``ppm.epsilon(ppm.local_bound(log_lik, weights))``.

    Raises
    ------
    ValueError
        As :func:`record_bounds`.

    Notes
    -----
    Not in Savitsky, Williams and Hu (2022). If the other records keep their weights when a record
    takes no part, the log ratio of the two pseudo posteriors *restricted to a set* T of parameters
    is at most the record's oscillation over T, in both directions. Without the restriction it is at
    most that plus :math:`-\log(1 - \delta)` for every θ in T, where δ is the larger of the masses
    that *both* pseudo posteriors put outside T. For a set T of finitely many draws the restricted
    distributions are those on these very draws, which nobody releases. Weights that react to other
    records are another matter: see :func:`ppm.public_weights`.

    Examples
    --------
    A factor that is free of θ, here of 100 nats, moves the local bound but not the oscillation.

    >>> import numpy as np, ppm
    >>> log_lik = np.array([[-1.0, -2.0], [-3.0, -0.5]])
    >>> ppm.oscillation_bound(log_lik), ppm.oscillation_bound(log_lik - 100.0)
    (2.0, 2.0)
    >>> ppm.local_bound(log_lik), ppm.local_bound(log_lik - 100.0)
    (3.0, 103.0)
    """
    return float(record_oscillations(log_lik, weights).max())


def tail_bound(log_lik, weights=None, *, outside=0.01, confidence=0.95):
    r"""Local bound that holds for all but a small, stated part of this pseudo posterior.

    The bare maximum over S draws grows with S and leaves an unknown part of the posterior beyond
    it. This is an order statistic of the draws' own maxima :math:`D_s = \max_i \alpha_i |\log
    p(x_i \mid \theta_s)|`, chosen so that it exceeds their quantile 1 - ``outside``
    with the stated confidence.

    Parameters
    ----------
    log_lik : array_like, shape (draws, records), or xarray.DataArray
        Unweighted log-likelihood in nats, as for :func:`ppm.record_bounds`, at draws of the
        *weighted* pseudo posterior. They count as independent: thin a Markov chain first.
    weights : array_like, shape (records,), optional
        Weights α, 0 or more; all 1 by default.
    outside : float, default 0.01
        Probability that may lie beyond the bound, between 0 and 1.
    confidence : float, default 0.95
        Confidence that no more does, between 0 and 1.

    Returns
    -------
    TailBound
        The bound with the part that lies beyond it; more draws bring it closer to the quantile
        itself and do not make it grow without end.

    Raises
    ------
    ValueError
        If there are too few draws for this ``outside`` and ``confidence``, or as
        :func:`ppm.record_bounds`.

    Notes
    -----
    A distribution-free tolerance limit. It is about the pseudo posterior that the draws came from,
    and no other. Let T be the set of θ within the bound. At weights that stay as they are the loss
    on T is at most 2Δ plus :math:`-\log(1 - \delta)`, as in section 2 of Savitsky, Williams and Hu
    (2022), where δ is the larger of the masses that the two pseudo posteriors, with and without a
    record, have outside T. ``outside`` limits the first of them. The second can be close to 1: the
    counts 0, 0 and 18 are within a bound near 20 nats, with weights 1, where μ is about 3 to 19,
    and without the 18 the posterior hardly reaches 3.

    Examples
    --------
    >>> import numpy as np, ppm
    >>> log_lik = -np.linspace(0.01, 10.0, 1000)[:, None]  # 1,000 draws of one record
    >>> tail = ppm.tail_bound(log_lik, outside=0.01)
    >>> round(tail.bound, 2), tail.largest
    (9.96, 10.0)
    """
    from scipy.stats import binom

    outside = check_share("outside", outside)
    confidence = check_share("confidence", confidence)
    maxima = draw_maxima(log_lik, weights)
    draws = maxima.size
    # the k-th smallest exceeds the quantile unless at least k of the draws lie beneath it
    places = np.arange(1, draws + 1)
    sure = binom.cdf(places - 1, draws, 1.0 - outside) >= confidence
    if not sure.any():
        # a share that is hardly above 0 needs more draws than a whole number can say
        needed = np.ceil(math.log(1.0 - confidence) / math.log1p(-outside))
        raise ValueError(
            f"outside={outside:g} with confidence={confidence:g} needs at least {needed:.15g} "
            f"draws; got {draws}"
        )
    ordered = np.sort(maxima)
    return TailBound(
        bound=float(ordered[int(np.argmax(sure))]),
        outside=outside,
        confidence=confidence,
        draws=draws,
        largest=float(ordered[-1]),
        beyond_largest=-math.expm1(math.log(1.0 - confidence) / draws),
    )


def bound_by_draws(log_lik, draws, weights=None):
    """Local bound to be expected from fewer draws: the mean over all choices of that many.

    Parameters
    ----------
    log_lik : array_like, shape (draws, records), or xarray.DataArray
        Unweighted log-likelihood in nats, as for :func:`ppm.record_bounds`.
    draws : sequence of int
        Numbers of draws, from 1 to those at hand.
    weights : array_like, shape (records,), optional
        Weights α, 0 or more; all 1 by default.

    Returns
    -------
    pandas.Series
        Expected bound in nats by number of draws.

    Raises
    ------
    ValueError
        If a number of draws is out of range, or as :func:`ppm.record_bounds`.

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
    total = ordered.size
    numbers = [check_count("draws", number) for number in draws]
    if not numbers or max(numbers) > total:
        raise ValueError(f"draws must be numbers from 1 to {total}; got {shown(draws)}")
    below = np.arange(total)

    def log_choose(of, number):
        return gammaln(of + 1.0) - gammaln(number + 1.0) - gammaln(of - number + 1.0)

    found = []
    for number in numbers:
        # the i-th smallest is the largest of a choice if the others come from those beneath it
        chance = np.full(total, -np.inf)
        able = below >= number - 1
        chance[able] = log_choose(below[able], number - 1) - log_choose(total, number)
        found.append(float(ordered[able] @ np.exp(chance[able])))
    return pd.Series(found, pd.Index(numbers, name="draws"), name="expected bound")


def draw_maxima(log_lik, weights=None):
    r"""Largest weighted :math:`|\log p|` over records for every draw: their maximum is Δ.

    Parameters
    ----------
    log_lik, weights
        As for :func:`ppm.record_bounds`.

    Returns
    -------
    numpy.ndarray, shape (draws,)
        Maxima in nats, chain after chain.

    Raises
    ------
    ValueError
        As :func:`ppm.record_bounds`.
    """
    return read_once(log_lik, weights, records=False).maxima


@dataclass(frozen=True, eq=False)
class Reading:
    r"""What one reading of a log-likelihood leaves: numbers by record and numbers by draw.

    Attributes
    ----------
    weights : numpy.ndarray, shape (records,), or None
        Weights α; None for all 1.
    sizes : dict of str to int
        Dimensions of the log-likelihood, that of the records last.
    lowest, highest : numpy.ndarray, shape (records,), or None
        Ends of the *unweighted* log-likelihood of every record over the draws, in nats.
    largest, total : numpy.ndarray, shape (draws,), or None
        Largest weighted :math:`|\log p|` over the records, and weighted sum of log p, for every
        draw, chain after chain, in nats. The first is NaN where there was NaN, at any weight.
    """

    weights: np.ndarray | None
    sizes: dict
    lowest: np.ndarray | None = field(default=None, repr=False)
    highest: np.ndarray | None = field(default=None, repr=False)
    largest: np.ndarray | None = field(default=None, repr=False)
    total: np.ndarray | None = field(default=None, repr=False)

    @property
    def draws_used(self):
        """Number S of draws, all chains together."""
        return math.prod([*self.sizes.values()][:-1])

    @property
    def bounds(self):
        """What :func:`ppm.record_bounds` returns; a ValueError if there was NaN."""
        return _weighted(np.maximum(np.abs(self.lowest), np.abs(self.highest)), self.weights)

    @property
    def maxima(self):
        """What :func:`draw_maxima` returns; a ValueError if there was NaN."""
        if np.isnan(self.largest).any():
            raise ValueError("log_lik holds NaN; accepted: finite numbers, or -inf")
        return self.largest

    @property
    def oscillations(self):
        """What :func:`ppm.record_oscillations` returns; a ValueError if there was NaN."""
        infinite = np.isinf(self.lowest) | np.isinf(self.highest)
        # an impossible record has -inf at both ends, whose difference says nothing
        spread = np.full(self.lowest.size, np.inf)
        with np.errstate(over="ignore"):
            np.subtract(self.highest, self.lowest, out=spread, where=~infinite)
        return _weighted(spread, self.weights)


def read_once(
    log_lik, weights=None, *, censor=None, records=True, oscillations=True, draws=True
):
    """Read a log-likelihood block by block, each value once, and keep what bounds are made of.

    Parameters
    ----------
    log_lik, weights
        As for :func:`record_bounds`.
    censor : ppm.Censoring, optional
        Limits: what is read are the censored terms of the weighted records. They have no weights
        but 1, and 0 for a record of weight 0, whose term is a constant and counts as none.
    records, draws : bool, default True
        Whether to keep the numbers by record, and those by draw.
    oscillations : bool, default True
        Whether upper ends below 0 are kept, which bounds do not need.

    Raises
    ------
    ValueError
        As :func:`record_bounds`, but for NaN, which is carried along.
    """
    blocks = Blocks(log_lik)
    weights = None if weights is None else check_weights(weights, blocks.records)
    factors = weights
    if censor is not None:
        weights = np.ones(blocks.records) if weights is None else weights
        factors = np.sign(weights)
    # minima and maxima of 32 bits are exact, and twice as fast as those of 64
    exact = blocks.dtype if blocks.dtype.kind == "f" and censor is None else np.float64
    lowest, highest = np.full((2, blocks.records), [[np.inf], [-np.inf]], dtype=exact)
    if not oscillations:
        highest[:] = 0.0  # the larger size of both ends is the same
    by_draw = _ByDraw(blocks, factors)
    for rows, columns, values in blocks:
        if censor is not None:
            values = censor.terms(values, weights[columns])
        if records:
            _extend(values, lowest[columns], highest[columns], oscillations)
        if draws:
            by_draw.add(rows, columns, values)
    ends = (lowest.astype(np.float64), highest.astype(np.float64)) if records else (None, None)
    per_draw = (by_draw.largest, by_draw.total) if draws else (None, None)
    return Reading(factors, blocks.sizes, *ends, *per_draw)


def _extend(values, lowest, highest, exactly):
    """Lower ``lowest`` and raise ``highest`` to the ends of the columns, tile by tile."""
    rows, columns = values.shape
    wide = max(_WIDE, _TILE // rows)
    for left in range(0, columns, wide):
        low, high = lowest[left : left + wide], highest[left : left + wide]
        tall = max(1, _TILE // low.size)
        for top in range(0, rows, tall):
            tile = values[top : top + tall, left : left + wide]
            # both carry NaN along, so that one check at the end is enough
            np.minimum(low, tile.min(axis=0), out=low)
            # one number is found faster than one a column; NaN is not below 0
            if exactly or not tile.max() <= 0.0:
                np.maximum(high, tile.max(axis=0), out=high)


class _ByDraw:
    """Largest weighted size and weighted sum of every draw, from blocks of draws and records."""

    def __init__(self, blocks, weights):
        self.weights = weights
        self.used = np.arange(blocks.records) if weights is None else np.flatnonzero(weights)
        self.largest, self.total = np.zeros((2, blocks.draws))

    # a sum beyond what a float can hold is infinite, and of both signs it is NaN
    @np.errstate(over="ignore", invalid="ignore")
    def add(self, rows, columns, values):
        first, last = np.searchsorted(self.used, (columns.start, columns.stop))
        used = self.used[first:last]
        factors = 1.0 if self.weights is None else self.weights[used]
        width = values.shape[1]
        beside = np.delete(np.arange(width), used - columns.start)  # may hold no NaN, either
        tall = max(1, _TILE // width)
        for top in range(0, len(values), tall):
            tile = values[top : top + tall]
            missing = np.isnan(tile.take(beside, axis=1)).any(axis=1)
            if used.size < width:
                tile = tile.take(used - columns.start, axis=1)
            # row after row in memory, so that a sum is that of the row alone
            tile = np.multiply(tile, factors, order="C", dtype=np.float64)
            place = slice(rows.start + top, rows.start + top + len(tile))
            # of several blocks of columns to rounding; maxima and minima are exact
            self.total[place] += tile.sum(axis=1)
            largest = np.abs(tile, out=tile).max(axis=1, initial=0.0)
            largest[missing] = np.nan
            np.maximum(self.largest[place], largest, out=self.largest[place])


class Blocks:
    """A log-likelihood to be read in blocks: an array, or one that xarray reads when asked to.

    Iterating gives the rows (draws, chain after chain) and columns (records) of a block, as slices,
    and its values. Chunks of a store are not cut. All records of some draws come before the next.

    Parameters
    ----------
    log_lik : array_like, shape (draws, records), or xarray.DataArray
        The log-likelihood.
    name : str, default "log_lik"
        What messages call it.

    Raises
    ------
    ValueError
        If it holds something else than real numbers, is empty or has no record dimension.
    """

    def __init__(self, log_lik, name="log_lik"):
        self._source, chunks = log_lik, {}
        if hasattr(log_lik, "dims"):
            # to ask whether it has values would read them
            if not hasattr(log_lik, "dtype"):
                raise ValueError(f"{name} must be one array; got a collection: pick its variable")
            leading = [d for d in _DRAW_DIMENSIONS if d in log_lik.dims]
            record = [d for d in log_lik.dims if d not in leading]
            if not leading or len(record) != 1:
                raise ValueError(
                    f"{name} has the dimensions {tuple(log_lik.dims)}; accepted: chain and/or "
                    "draw, and exactly one record dimension"
                )
            dims = (*leading, record[0])
            # without its coordinates, which would be cut along with every block
            source = getattr(log_lik, "variable", log_lik)
            if getattr(source, "_in_memory", True):
                self._source = source.transpose(*dims).values
            else:
                self._source = source
                chunks = dict(source.chunksizes) or source.encoding.get("preferred_chunks", {})
        else:
            dims = ("draw", "record")
            self._source = as_array(name, log_lik)
            if self._source.ndim != 2:
                raise ValueError(
                    f"{name} must have shape (draws, records); got shape {self._source.shape}"
                )
        found = dict(zip(getattr(self._source, "dims", dims), self._source.shape, strict=True))
        self.sizes = {d: found[d] for d in dims}
        self._shape = tuple(self.sizes.values())
        self.dtype = self._source.dtype
        if self.dtype.kind not in "fiu":
            raise ValueError(f"{name} must hold real numbers; got values of type {self.dtype}")
        self.records, self.draws = self._shape[-1], math.prod(self._shape[:-1])
        if not self.records * self.draws:
            raise ValueError(f"{name} is empty: shape {self._shape}; give a draw and a record")
        self._cuts = _cuts(self._shape, [chunks.get(d, 1) for d in dims])

    def __iter__(self):
        for corner in itertools.product(*self._cuts):
            values = self._read(corner)
            *leading, columns = corner
            for chain in np.ndindex(values.shape[:-2]):
                first = [part.start + i for part, i in zip(leading, (*chain, 0), strict=True)]
                start = int(np.ravel_multi_index(first, self._shape[:-1]))
                yield slice(start, start + values.shape[-2]), columns, values[chain]

    def _read(self, corner):
        if isinstance(self._source, np.ndarray):
            return self._source[corner]
        block = self._source.isel(dict(zip(self.sizes, corner, strict=True)))
        # in memory first: a transposed store is read value by value
        return block.load().transpose(*self.sizes).values


def _cuts(shape, chunks):
    """Slices of every dimension between which a block lies: whole chunks, as many as have room."""
    chunks = [(chunk,) if np.ndim(chunk) == 0 else tuple(chunk) for chunk in chunks]
    largest = [min(max(chunk), size) for chunk, size in zip(chunks, shape, strict=True)]
    room, cuts = max(1, BLOCK // math.prod(largest)), []
    # all records of a draw first, then draws, then chains
    for size, chunk, most in reversed(list(zip(shape, chunks, largest, strict=True))):
        together = min(room, -(-size // most))
        ends = range(together * most, size, together * most)
        if len(set(chunk[:-1])) > 1 or chunk[-1] > chunk[0]:
            ends = _merged(chunk, together * most)
        cuts.append([slice(a, b) for a, b in itertools.pairwise([0, *ends, size])])
        room //= together
    return cuts[::-1]


def _merged(chunks, most):
    """Ends of neighbouring chunks of several sizes, together at most ``most``; not the last one."""
    found, start = [], 0
    for end, size in zip(itertools.accumulate(chunks), chunks, strict=True):
        if end - start > most:
            start = end - size
            found.append(start)
    return found


def weighted(values, weights):
    """Products of weights and values, where a record of weight 0 contributes 0, not 0 · ∞.

    Parameters
    ----------
    values, weights : array_like
        Broadcast against each other; the values may be infinite.

    Returns
    -------
    numpy.ndarray
        The products.
    """
    weights, values = np.broadcast_arrays(weights, values)
    return np.multiply(weights, values, out=np.zeros(values.shape), where=weights > 0)


def _weighted(values, weights):
    """Weighted values of the records; NaN among them means that the log-likelihood held NaN."""
    missing = np.flatnonzero(np.isnan(values))
    if missing.size:
        raise ValueError(
            f"log_lik holds NaN (first in record {missing[0]}, {missing.size} of {values.size} "
            "records affected); accepted: finite numbers, or -inf where a record is impossible"
        )
    return values if weights is None else weighted(values, weights)
