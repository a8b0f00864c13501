"""The exact privacy audit of Gamma-Poisson: losses in closed form, weights computed again.

All results are computed from the confidential records and are confidential themselves.
"""

import functools
from typing import NamedTuple

import numpy as np
import xarray as xr
from scipy.special import gammainc, gammaincinv

from ppm.checks import as_list, check_count, check_counts, check_number, shown
from ppm.models.counts import extremes_between, log_gamma
from ppm.rules import linear_weights, truncated
from ppm.seeds import generator, streams
from ppm.terms import weighted
from ppm_book.audits.restricted_gamma import RestrictedGamma

# their prior allows every μ above 0, and μ goes over the range of posterior draws
_OVER_DRAWS = ("Unweighted", "Weighted", "Weighted-M", "Capped", "Range-capped")
# the last two restrict the prior to the public interval, and μ goes over all of it
MECHANISMS = (*_OVER_DRAWS, "Capped on T", "Range-capped on T")
# seeds whose worst is reported
_SEEDS = 20
# values of μ at which a loss without a closed-form maximum is evaluated
_GRID = 41
# replaces a quantile of μ that underflows, as it may where all counts are 0
_TINY = np.finfo(np.float64).tiny
# smallest shape and rate of the prior; smaller ones would vanish in rounding beside the counts
_SMALLEST_PRIOR = 1e-9
# larger changes of a weight are counted
_VISIBLE = 0.01


def exact(
    counts,
    *,
    public,
    truncate_at=3.5,
    mappings=None,
    draws=1000,
    weight_draws=200,
    shape=0.001,
    rate=0.001,
    random_seed=None,
):
    r"""Privacy loss of every leave-one-out neighbour of a database of counts, in closed form.

    For each record i the loss is :math:`\log \xi(\mu \mid x) - \log \xi(\mu \mid x_{-i})`, of two
    Gamma densities. The neighbour leaves the record's term out of the likelihood and of the
    weights. We report the largest absolute value over a set of μ, and Δ and the oscillation over
    the same set. The set is T for the mechanisms "on T", whose prior is restricted to T. For the
    others it lies between the smallest and the largest of S draws from the pseudo posterior of x.

    Parameters
    ----------
    counts : array_like of int (records,)
        The database x, at least two records.
    public : (float, float)
        Public interval T of μ, fixed without looking at the counts. Capped and Range-capped take
        their weights from it, so that each depends only on its own record.
    truncate_at : float, default 3.5
        The paper's M, in nats: of Weighted-M, and the cap of Capped. Range-capped caps
        oscillations at 2M, so that all three aim at ε = 2M.
    mappings : dict, optional
        Further mechanisms, such as ``{"Mine": lambda z: 1 / (z + 1)}``: decreasing maps of an array
        of finite bounds over T to weights from 0 to 1. An infinite bound gives weight 0. Each is
        audited twice, as Capped is: "Mine" and "Mine on T".
    draws : int, default 1000
        Posterior draws S of each fit, 2 or more.
    weight_draws : int, default 200
        Draws of the weights (each from S draws of the unweighted posterior) to average over on
        each side. The first 20 are the seeds of ``loss_worst``, each with its own weights, draws
        and Δ.
    shape, rate : float, default 0.001
        Gamma prior of μ, as for :class:`ppm.GammaPoisson`, at least 1e-9.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness.

    Returns
    -------
    xarray.Dataset
        Dimensions mechanism and left_out, the distinct counts: equal counts leave the same
        neighbour. Losses and bounds are in nats, and of the first seed unless another is named.

        - By record: ``records``, how many have this count; ``weight``, weighted ``bound`` and
          ``oscillation``; ``shape_without`` and ``rate_without`` of the neighbour's Gamma density;
        - ``loss_fixed``: the loss where the others keep their weights; ``loss_common``: where
          weights are computed again with the same random numbers (equal levels of both posteriors'
          distribution functions); ``loss_integrated``: the same with densities averaged over the
          draws of the weights; ``loss_integrated_error``: its Monte Carlo standard error, given the
          set of μ and Δ;
        - by mechanism: ``shape``, ``rate``, ``average_mean`` and ``spread`` of the pseudo
          posterior; ``local_bound`` (Δ) and ``oscillation_bound``;
        - ``loss_worst``: the largest ``loss_common`` of all seeds; ``share_worst``: the largest
          share of its seed's 2Δ; ``loss_supremum``: ``loss_common`` over every μ that the prior
          allows, infinite for two different Gamma densities over all μ > 0;
        - ``records_over``: share of records with ``loss_common`` above 2Δ; ``parameters_over``: for
          the worst record, the share of the pseudo posterior (on T: of T) in which it is;
        - ``weights_moved`` and ``weights_switched``: how many weights change by more than 0.01, or
          to or from 0, when the record with the largest bound is left out;
        - ``outside``: the largest mass of a pseudo posterior, of x or a neighbour, outside the set
          of μ; ``outside_public``: that of x outside T.

    Notes
    -----
    If only the release is published, its loss is the integrated one, the maximum over 41 values of
    μ. As a maximum of noisy values it is biased upwards; with few draws of the weights it is closer
    to ``loss_common``, and with one its error is NaN if the weights react. If the seed of the
    weights is published too, the loss is the largest over all seeds, of which ``loss_worst`` covers
    20. Over one set of μ, that largest loss bounds the integrated loss. Then m releases with the
    same weights lose at most m times as much.

    With the prior on T the loss is at most the oscillation over T for every database: at most M for
    Capped on T (the log-probability of a count has one sign) and 2M for Range-capped on T.

    Examples
    --------
    Capped on T cannot lose more than the cap of 3.5 nats; Unweighted has no limit.

    >>> from ppm_book import audits
    >>> audit = audits.exact([3, 5, 4, 6, 20], public=(2.0, 8.0), weight_draws=9, random_seed=1)
    >>> audit["loss_supremum"].sel(mechanism=["Unweighted", "Capped on T"]).values.round(2)
    array([ inf, 1.79])
    """
    counts = check_database(counts)
    public = _interval("public", public)
    truncate_at = check_number("truncate_at", truncate_at, above=0)
    mappings = _named_maps("mappings", mappings)
    draws = check_count("draws", draws, at_least=2)
    weight_draws = check_count("weight_draws", weight_draws)
    shape = check_number("shape", shape, at_least=_SMALLEST_PRIOR)
    rate = check_number("rate", rate, at_least=_SMALLEST_PRIOR)
    left_out, table = np.unique(counts, return_counts=True)
    database = _Database(
        values=left_out.astype(np.float64),
        tables=np.vstack([table, table - np.eye(table.size)]),
        prior=np.reshape([shape, rate], (2, 1, 1)),
        public=public,
    )
    mechanisms = _mechanisms(
        database, truncate_at, mappings, draws, weight_draws, random_seed
    )
    columns = {
        name: np.array([column(mechanism) for mechanism in mechanisms.values()])
        for name, column in COLUMNS.items()
    }
    dims = "mechanism", "left_out"
    return xr.Dataset(
        {name: (dims[: values.ndim], values) for name, values in columns.items()}
        | {"records": ("left_out", table)},
        {"mechanism": [*mechanisms], "left_out": left_out},
        {"public": public},
    )


def check_database(counts):
    """Return counts of at least two records, checked; one of them leaves."""
    counts = check_counts("counts", counts)
    if counts.size < 2:
        raise ValueError("counts must hold at least two records: one of them leaves")
    return counts


def _interval(name, ends):
    values = as_list(name, ends)
    if values.size != 2 or not 0 < values[0] < values[1]:
        raise ValueError(
            f"{name} must be two finite numbers above 0, the first below the second; "
            f"got {shown(ends)}"
        )
    return tuple(values.tolist())


def _named_maps(name, maps):
    maps = {} if maps is None else maps
    if (
        not isinstance(maps, dict)
        or not set(MECHANISMS).isdisjoint(maps)
        or any(f"{own} on T" in maps for own in maps)
    ):
        raise ValueError(
            f"{name} must be a dict of functions by names of their own; got {shown(maps)}"
        )
    return maps


def _extreme_levels(draws, size, rng):
    """Levels of the smallest and the largest of independent draws, ``size`` times: (2, size)."""
    # one row per repetition, so that a smaller size gives the first of a larger one
    first, second = rng.uniform(size=(size, 2)).T
    top = first ** (1.0 / draws)
    return np.stack([top * -np.expm1(np.log(second) / (draws - 1)), top])


class _Database(NamedTuple):
    """The database x (row 0) and its neighbours (row j + 1: without one record of value j)."""

    values: np.ndarray
    # how many records have each value: (row, value)
    tables: np.ndarray
    # shape and rate: (2, 1, 1)
    prior: np.ndarray
    # ends of T
    public: tuple

    def sums(self, weights):
        """What records with weights (row, draw, value) add to shape and rate: (2, row, draw)."""
        effective = weights * self.tables[:, None]
        return np.stack([effective @ self.values, effective.sum(axis=-1)])

    def unweighted_bounds(self, levels):
        """Record bounds (row, draw, value) between two quantiles of μ in the unweighted fits."""
        shapes, rates = self.prior + self.sums(np.ones((1, 1, 1)))
        low, high = (
            np.maximum(gammaincinv(shapes, level) / rates, _TINY) for level in levels
        )
        return -extremes_between(self.values, low[..., None], high[..., None])[0]


def _mechanisms(database, truncate_at, mappings, draws, weight_draws, random_seed):
    """Every mechanism by name: those over their draws, then those on T."""
    # a seed for each purpose, and one below it for each mechanism
    seed_of_weights, seed_of_sets = streams(random_seed, 2)
    levels = _extreme_levels(draws, weight_draws, generator(seed_of_weights))
    bounds = database.unweighted_bounds(levels)
    extreme = int(bounds[0, 0].argmax())
    over_draws, on_public = _weights(database, bounds, truncate_at, mappings)
    found = {}
    seeds = streams(seed_of_sets, len(over_draws))
    for (name, weights), seed in zip(over_draws.items(), seeds, strict=True):
        ends = _extreme_levels(draws, min(_SEEDS, weight_draws), generator(seed)).T
        found[name] = _Mechanism(database, weights, extreme, ends)
    for name, weights in on_public.items():
        found[name] = _Mechanism(database, weights, extreme)
    return found


def _weights(database, bounds, truncate_at, mappings):
    """Weights (row, draw, value) by mechanism: of those over the draws, and of those on T.

    Weights that do not react to the other records have one row and one draw.
    """
    # a value that occurred once and is left out has no weight
    present = {"axis": -1, "keepdims": True, "where": (database.tables > 0)[:, None]}
    linear = linear_weights(
        bounds,
        bounds.min(initial=np.inf, **present),
        bounds.max(initial=-np.inf, **present),
    )
    # a weight of these depends on its own record only
    own_bounds, own_oscillations = _bounds_between(
        database.values, 1.0, *database.public
    )
    own = {
        "Capped": _capped_weights(own_bounds, truncate_at),
        "Range-capped": _capped_weights(own_oscillations, 2.0 * truncate_at),
    } | {
        name: _mapped_weights(own_bounds, mapping) for name, mapping in mappings.items()
    }
    over_draws = {
        "Unweighted": np.ones((1, 1, database.values.size)),
        "Weighted": linear,
        "Weighted-M": truncated(linear, bounds, truncate_at),
    } | {name: weights[None, None] for name, weights in own.items()}
    return over_draws, {f"{name} on T": over_draws[name] for name in own}


def _capped_weights(bounds, limit):
    """The largest weights, up to 1, that keep weighted bounds within a limit."""
    weights = limit / np.maximum(bounds, limit)
    # the rounded quotient can carry the product a last digit above the limit
    return np.where(
        weighted(bounds, weights) > limit, np.nextafter(weights, 0.0), weights
    )


def _mapped_weights(bounds, mapping):
    """Weights by a decreasing map of bounds, which is the caller's."""
    weights, is_finite = np.zeros(bounds.size), np.isfinite(bounds)
    finite = bounds[is_finite]
    if not finite.size:
        return weights
    mapped = np.asarray(mapping(finite), dtype=np.float64)
    if mapped.shape != finite.shape or not np.all((mapped >= 0) & (mapped <= 1)):
        raise ValueError(
            "mappings must return one weight in [0, 1] for every bound they are given"
        )
    if np.any(np.diff(mapped[np.argsort(finite, kind="stable")]) > 0):
        raise ValueError(
            "mappings must be decreasing: a larger bound never gets a larger weight"
        )
    weights[is_finite] = mapped
    return weights


class _Mechanism:
    """One mechanism on a database: what the columns are computed from.

    Arrays are (seed, value), or broadcast against that. Pairs, axis 0, are what belongs to shape
    and to rate. ``extreme`` is the place of the value with the largest bound in the unweighted fit.

    The set of μ lies between the quantiles of ``levels`` (seed, end); without levels the prior is
    restricted to T, and T is the set.
    """

    def __init__(self, database, weights, extreme, levels=None):
        self.database, self.extreme = database, extreme
        self.reacts, self.restricted = len(weights) > 1, levels is None
        self.weights = np.broadcast_to(
            weights, (len(database.tables), *weights.shape[1:])
        )
        self.sums = database.sums(weights)
        # of x itself, for each seed
        self.own_weights = self.weights[0, :_SEEDS]
        self.own_sums = self.sums[:, 0, :_SEEDS, None]
        self.shape, self.rate = database.prior + self.own_sums
        if self.restricted:
            self.ends = database.public
            self.density = RestrictedGamma(self.shape, self.rate, *self.ends)
        else:
            self.ends = (gammaincinv(self.shape, levels) / self.rate).T[..., None]

    @functools.cached_property
    def taken_if_kept(self):
        """What a record takes from the sums by leaving, if the others keep their weights."""
        return np.stack([self.own_weights * self.database.values, self.own_weights])

    @functools.cached_property
    def taken(self):
        """What a record takes from the sums, if the others' weights are computed again."""
        if not self.reacts:
            return self.taken_if_kept
        return self.own_sums - self.sums[:, 1:, :_SEEDS].swapaxes(1, 2)

    def without(self, taken):
        """Shape and rate of the neighbours' densities."""
        # the prior is added last: a difference would lose a nearly flat one
        return self.database.prior + (self.own_sums - taken)

    def log_ratio(self, points, taken):
        """Log ratio of the pseudo posteriors of x and of its neighbours at values of μ."""
        if self.restricted:
            return self.density.log_ratio(points, *taken)
        return log_gamma(points, self.shape, self.rate) - log_gamma(
            points, *self.without(taken)
        )

    def largest_losses(self, taken):
        """Largest absolute log ratio over the set of μ: at an end, or where the ratio turns."""
        (low, high), (shapes, rates) = self.ends, taken
        turn = np.divide(shapes, rates, out=np.zeros_like(shapes), where=rates != 0)
        points = np.stack(np.broadcast_arrays(low, high, np.clip(turn, low, high)))
        return np.abs(self.log_ratio(points, taken)).max(axis=0)

    @functools.cached_property
    def losses(self):
        """Losses with weights that are computed again with the same random numbers."""
        return self.largest_losses(self.taken)

    @functools.cached_property
    def integrated(self):
        """Losses with the weights' randomness integrated out, and their errors, (value,) each."""
        if not self.reacts:
            return self.losses[0], np.zeros(self.database.values.size)
        grid = np.linspace(*self.ends[:, 0, 0], _GRID)
        shapes, rates = (self.database.prior + self.sums)[..., None]
        return _integrated_loss(log_gamma(grid, shapes, rates))

    @functools.cached_property
    def extremes(self):
        """Weighted bounds and oscillations over the set of μ."""
        return _bounds_between(self.database.values, self.own_weights, *self.ends)

    @property
    def two_delta(self):
        """2Δ of each seed."""
        return 2.0 * self.extremes[0].max(axis=-1)


# ---- columns: what is said of a mechanism, of the first seed unless another is named -------------


def weight(mechanism):
    return mechanism.own_weights[0]


def bound(mechanism):
    return mechanism.extremes[0][0]


def oscillation(mechanism):
    return mechanism.extremes[1][0]


def local_bound(mechanism):
    return bound(mechanism).max()


def oscillation_bound(mechanism):
    return oscillation(mechanism).max()


def shape(mechanism):
    return mechanism.shape[0, 0]


def rate(mechanism):
    return mechanism.rate[0, 0]


def shape_without(mechanism):
    return mechanism.without(mechanism.taken)[0, 0]


def rate_without(mechanism):
    return mechanism.without(mechanism.taken)[1, 0]


def average_mean(mechanism):
    if mechanism.restricted:
        return mechanism.density.mean[0, 0]
    return shape(mechanism) / rate(mechanism)


def spread(mechanism):
    if mechanism.restricted:
        return mechanism.density.spread[0, 0]
    return np.sqrt(shape(mechanism)) / rate(mechanism)


def outside(mechanism):
    if mechanism.restricted:
        return 0.0
    shapes = np.append(shape_without(mechanism), shape(mechanism))
    rates = np.append(rate_without(mechanism), rate(mechanism))
    return 1.0 - _mass(shapes, rates, *mechanism.ends[:, 0, 0]).min()


def outside_public(mechanism):
    if mechanism.restricted:
        return 0.0
    public = mechanism.database.public
    return 1.0 - _mass(shape(mechanism), rate(mechanism), *public)


def loss_fixed(mechanism):
    return mechanism.largest_losses(mechanism.taken_if_kept)[0]


def loss_common(mechanism):
    return mechanism.losses[0]


def loss_integrated(mechanism):
    return mechanism.integrated[0]


def loss_integrated_error(mechanism):
    return mechanism.integrated[1]


def loss_worst(mechanism):
    return mechanism.losses.max()


def share_worst(mechanism):
    worst, two_delta = mechanism.losses.max(axis=-1), mechanism.two_delta
    # where Δ is 0
    shares = np.where(worst > 0, np.inf, 0.0)
    return np.divide(worst, two_delta, out=shares, where=two_delta > 0).max()


def loss_supremum(mechanism):
    if mechanism.restricted:
        return mechanism.losses.max()
    # the log ratio of two different Gamma densities has no bound
    return np.inf if np.any(mechanism.taken[:, 0]) else 0.0


def records_over(mechanism):
    records = mechanism.database.tables[0]
    over = loss_common(mechanism) > mechanism.two_delta[0]
    return records[over].sum() / records.sum()


def parameters_over(mechanism):
    if mechanism.restricted:
        points = np.linspace(*mechanism.ends, _GRID)
    else:
        levels = (np.arange(_GRID) + 0.5) / _GRID
        points = gammaincinv(shape(mechanism), levels) / rate(mechanism)
    ratios = mechanism.log_ratio(points[:, None, None], mechanism.taken)[:, 0]
    return (np.abs(ratios) > mechanism.two_delta[0]).mean(axis=0).max()


def weights_moved(mechanism):
    before, after, left = _weights_of_others(mechanism)
    return left[np.abs(after - before) > _VISIBLE].sum()


def weights_switched(mechanism):
    before, after, left = _weights_of_others(mechanism)
    return left[(after > 0) != (before > 0)].sum()


COLUMNS = {
    column.__name__: column
    for column in (
        weight,
        bound,
        oscillation,
        local_bound,
        oscillation_bound,
        shape,
        shape_without,
        rate,
        rate_without,
        average_mean,
        spread,
        outside,
        outside_public,
        loss_fixed,
        loss_common,
        loss_integrated,
        loss_integrated_error,
        loss_worst,
        share_worst,
        loss_supremum,
        records_over,
        parameters_over,
        weights_moved,
        weights_switched,
    )
}


def _mass(shape, rate, low, high):
    """Probability of an interval under a Gamma density."""
    return gammainc(shape, rate * high) - gammainc(shape, rate * low)


def _weights_of_others(mechanism):
    """Weights of each value with and without the record of the largest bound; how many stay."""
    row = mechanism.extreme + 1
    before, after = mechanism.weights[0, 0], mechanism.weights[row, 0]
    return before, after, mechanism.database.tables[row]


def _bounds_between(values, weights, low, high):
    """Weighted bounds and oscillations of counts over intervals of μ, shape (sets, values)."""
    smallest, largest = extremes_between(values, low, high)
    # infinite log-probabilities have no difference
    spread = np.full(smallest.shape, np.inf)
    np.subtract(largest, smallest, out=spread, where=np.isfinite(smallest))
    return weighted(-smallest, weights), weighted(spread, weights)


def _integrated_loss(log_density):
    """Largest log ratio of mean densities, with its standard error; overwrites its argument.

    Axes: row (0 is x, the others are neighbours), draw of the weights, μ. The error is by the delta
    method.
    """
    draws = log_density.shape[1]
    largest = log_density.max(axis=1, keepdims=True)
    log_density -= largest
    density = np.exp(log_density, out=log_density)
    total = density.sum(axis=1)
    log_mean = largest[:, 0] + np.log(total)
    losses = np.abs(log_mean[0] - log_mean[1:])
    place = losses.argmax(axis=-1)
    neighbours = np.arange(1, len(density))
    # both sides use the same random numbers, so that their errors partly cancel
    shares = density / total[:, None]
    differences = shares[0][:, place].T - shares[neighbours, :, place]
    with np.errstate(invalid="ignore", divide="ignore"):
        # the mean of the draws' differences is 0
        error = np.sqrt((differences**2).sum(axis=-1) * draws / np.float64(draws - 1))
    return losses[neighbours - 1, place], error
