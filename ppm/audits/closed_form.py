"""The exact privacy audit of Gamma-Poisson: losses in closed form, weights computed again.

All results are computed from the confidential records and are confidential themselves.
"""

from typing import NamedTuple

import numpy as np
import xarray as xr
from scipy.special import gammainc, gammaincinv

from ppm.audits.restricted_gamma import RestrictedGamma
from ppm.checks import as_list, check_count, check_counts, check_number, shown
from ppm.seeds import generator
from ppm.synthesizers.gamma_poisson import extremes_between, log_gamma
from ppm.terms import weighted
from ppm.weights import capped_map, linear_weights, mapped_weights, truncated

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
        Further mechanisms, such as ``{"Mine": lambda z: 1 / (z + 1)}``: decreasing maps of the
        bounds over T to weights, as for :func:`ppm.mapped_weights`. Each is audited twice, as
        Capped is: "Mine" and "Mine on T".
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

    >>> import ppm
    >>> audit = ppm.audits.exact([3, 5, 4, 6, 20], public=(2.0, 8.0), weight_draws=9, random_seed=1)
    >>> audit["loss_supremum"].sel(mechanism=["Unweighted", "Capped on T"]).values.round(2)
    array([ inf, 1.79])
    """
    counts = check_database(counts)
    interval = as_list("public", public)
    if interval.size != 2 or not 0 < interval[0] < interval[1]:
        raise ValueError(
            "public must be two finite numbers above 0, the first below the second; "
            f"got {shown(public)}"
        )
    public = tuple(interval.tolist())
    truncate_at = check_number("truncate_at", truncate_at, above=0)
    mappings = {} if mappings is None else mappings
    if (
        not isinstance(mappings, dict)
        or not set(MECHANISMS).isdisjoint(mappings)
        or any(f"{name} on T" in mappings for name in mappings)
    ):
        raise ValueError(
            "mappings must be a dict of functions by names of their own; got "
            f"{shown(mappings)}"
        )
    draws = check_count("draws", draws, at_least=2)
    weight_draws = check_count("weight_draws", weight_draws)
    shape = check_number("shape", shape, at_least=_SMALLEST_PRIOR)
    rate = check_number("rate", rate, at_least=_SMALLEST_PRIOR)
    rng = generator(random_seed)
    left_out, table = np.unique(counts, return_counts=True)
    tables = np.vstack([table, table - np.eye(table.size)])
    prior = np.reshape([shape, rate], (2, 1, 1))
    database = _Database(left_out.astype(np.float64), tables, prior, public)
    # drawn first, so that the set of μ does not depend on the number of draws of the weights
    first = _extreme_levels(draws, len(_OVER_DRAWS), rng)
    levels = _extreme_levels(draws, weight_draws, rng)
    # drawn later, so that neither further seeds nor further mechanisms change anything above
    seeds = min(_SEEDS, weight_draws)
    further = _extreme_levels(draws, (seeds - 1) * len(_OVER_DRAWS), rng)
    # axes: mechanism, seed, end
    sets = np.hstack([first, further]).T.reshape(-1, len(_OVER_DRAWS), 2).swapaxes(0, 1)
    sets = [*sets, *(_extreme_levels(draws, seeds, rng).T for _ in mappings)]

    bounds = database.unweighted_bounds(levels)
    over_draws, on_public = _weights(database, bounds, truncate_at, mappings)
    mechanisms = [
        _Mechanism(database, weights, quantiles)
        for weights, quantiles in zip(over_draws.values(), sets, strict=True)
    ]
    mechanisms += [_Mechanism(database, weights) for weights in on_public.values()]
    extreme = int(bounds[0, 0].argmax())
    results = [mechanism.results(extreme) for mechanism in mechanisms]
    columns = {
        name: np.array([result[name] for result in results]) for name in results[0]
    }
    dims = "mechanism", "left_out"
    return xr.Dataset(
        {name: (dims[: block.ndim], block) for name, block in columns.items()}
        | {"records": ("left_out", table)},
        {"mechanism": [*over_draws, *on_public], "left_out": left_out},
        {"public": public},
    )


def check_database(counts):
    """Return counts of at least two records, checked; one of them leaves."""
    counts = check_counts("counts", counts)
    if counts.size < 2:
        raise ValueError("counts must hold at least two records: one of them leaves")
    return counts


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
        "Capped": mapped_weights(own_bounds, capped_map(truncate_at)),
        "Range-capped": mapped_weights(own_oscillations, capped_map(2.0 * truncate_at)),
    } | {
        name: mapped_weights(own_bounds, mapping) for name, mapping in mappings.items()
    }
    over_draws = {
        "Unweighted": np.ones((1, 1, database.values.size)),
        "Weighted": linear,
        "Weighted-M": truncated(linear, bounds, truncate_at),
    } | {name: weights[None, None] for name, weights in own.items()}
    return over_draws, {f"{name} on T": over_draws[name] for name in own}


class _Mechanism:
    """One mechanism on a database. Arrays are (seed, value), or broadcast against that.

    The set of μ lies between the quantiles of ``levels`` (seed, end); without levels the prior is
    restricted to T, and T is the set. Pairs, axis 0, are what belongs to shape and to rate.
    """

    def __init__(self, database, weights, levels=None):
        self.database, self.reacts = database, len(weights) > 1
        self.weights = np.broadcast_to(
            weights, (len(database.tables), *weights.shape[1:])
        )
        self.sums = database.sums(weights)
        # x itself, for each seed
        self.own_sums = self.sums[:, 0, :_SEEDS, None]
        self.shape, self.rate = database.prior + self.own_sums
        self.restricted = levels is None
        if self.restricted:
            self.ends = database.public
            self.density = RestrictedGamma(self.shape, self.rate, *self.ends)
            self.mean, self.spread = self.density.mean, self.density.spread
        else:
            self.ends = (gammaincinv(self.shape, levels) / self.rate).T[..., None]
            self.mean, self.spread = (
                self.shape / self.rate,
                np.sqrt(self.shape) / self.rate,
            )
        # what a record takes from the sums by leaving, if the others keep their weights, and if
        # theirs are computed again
        own = self.weights[0, :_SEEDS]
        self.taken = self.taken_if_kept = np.stack([own * database.values, own])
        if self.reacts:
            self.taken = self.own_sums - self.sums[:, 1:, :_SEEDS].swapaxes(1, 2)

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

    def results(self, extreme):
        """All that :func:`exact` says of a mechanism, by name."""
        values, own = self.database.values, self.weights[0, :_SEEDS]
        bounds, oscillations = _bounds_between(values, own, *self.ends)
        losses = self.largest_losses(self.taken)
        return {
            "weight": own[0],
            "bound": bounds[0],
            "oscillation": oscillations[0],
            "local_bound": bounds[0].max(),
            "oscillation_bound": oscillations[0].max(),
            **self.posteriors(),
            **self.losses_of_first_seed(losses[0]),
            **self.exceedances(losses, 2.0 * bounds.max(axis=-1)),
            **self.changes(extreme),
        }

    def largest_losses(self, taken):
        """Largest absolute log ratio over the set of μ: at an end, or where the ratio turns."""
        (low, high), (shapes, rates) = self.ends, taken
        turn = np.divide(shapes, rates, out=np.zeros_like(shapes), where=rates != 0)
        points = np.stack(np.broadcast_arrays(low, high, np.clip(turn, low, high)))
        return np.abs(self.log_ratio(points, taken)).max(axis=0)

    def losses_of_first_seed(self, common):
        """Losses of the first seed: with weights kept, computed again, and integrated out."""
        fixed, integrated, error = common, common, np.zeros(common.size)
        if self.reacts:
            fixed = self.largest_losses(self.taken_if_kept)[0]
            grid = np.linspace(*self.ends[:, 0, 0], _GRID)
            shapes, rates = (self.database.prior + self.sums)[..., None]
            integrated, error = _integrated_loss(log_gamma(grid, shapes, rates))
        return {
            "loss_fixed": fixed,
            "loss_common": common,
            "loss_integrated": integrated,
            "loss_integrated_error": error,
        }

    def exceedances(self, losses, two_delta):
        """The worst losses, and where they exceed 2Δ of their seed."""
        records, worst = self.database.tables[0], losses.max(axis=-1)
        # the share where Δ is 0
        infinite = np.where(worst > 0, np.inf, 0.0)
        if self.restricted:
            points, supremum = np.linspace(*self.ends, _GRID), worst.max()
        else:
            levels = (np.arange(_GRID) + 0.5) / _GRID
            points = gammaincinv(self.shape[0], levels) / self.rate[0]
            # the log ratio of two different Gamma densities has no bound
            supremum = np.inf if np.any(self.taken[:, 0]) else 0.0
        ratios = self.log_ratio(points[:, None, None], self.taken)[:, 0]
        return {
            "loss_worst": worst.max(),
            "share_worst": np.divide(
                worst, two_delta, out=infinite, where=two_delta > 0
            ).max(),
            "loss_supremum": supremum,
            "records_over": records[losses[0] > two_delta[0]].sum() / records.sum(),
            "parameters_over": (np.abs(ratios) > two_delta[0]).mean(axis=0).max(),
        }

    def posteriors(self):
        """The densities of x and its neighbours, and their mass outside the set of μ and T."""
        of_x, of_neighbours = (
            (self.shape[0], self.rate[0]),
            self.without(self.taken)[:, 0],
        )

        def mass(shape, rate, low, high):
            return gammainc(shape, rate * high) - gammainc(shape, rate * low)

        outside = outside_public = 0.0
        if not self.restricted:
            ends = self.ends[:, 0, 0]
            outside = 1.0 - min(*mass(*of_x, *ends), *mass(*of_neighbours, *ends))
            outside_public = 1.0 - mass(*of_x, *self.database.public).item()
        return {
            "shape": of_x[0][0],
            "shape_without": of_neighbours[0],
            "rate": of_x[1][0],
            "rate_without": of_neighbours[1],
            "average_mean": self.mean[0, 0],
            "spread": self.spread[0, 0],
            "outside": outside,
            "outside_public": outside_public,
        }

    def changes(self, extreme):
        """How many weights change when the record with the largest bound is left out."""
        left = self.database.tables[extreme + 1]
        before, after = self.weights[0, 0], self.weights[extreme + 1, 0]
        return {
            "weights_moved": left[np.abs(after - before) > _VISIBLE].sum(),
            "weights_switched": left[(after > 0) != (before > 0)].sum(),
        }


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
