"""The exact privacy audit of Gamma-Poisson: losses in closed form, weights computed again.

All results are computed from the confidential records and are confidential themselves.
"""

import numpy as np
import xarray as xr
from scipy.special import gammainc, gammaincinv, gammaln

from ppm._validation import check_count, check_counts, check_number, generator, shown
from ppm.audits.restricted_gamma import RestrictedGamma
from ppm.lipschitz import weighted
from ppm.synthesizers.gamma_poisson import log_likelihood_of_counts
from ppm.weights import capped_map, linear_weights, mapped_weights, truncated

# their prior allows every μ above 0; bound and loss are taken over the range of draws
_OVER_DRAWS = ("Unweighted", "Weighted", "Weighted-M", "Capped", "Range-capped")
# the last two restrict the prior to the public interval, over which bound and loss are taken
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
    counts, *, public, truncate_at=3.5, draws=1000, weight_draws=200, shape=0.001, rate=0.001,
    random_seed=None,
):
    r"""Privacy loss of every leave-one-out neighbour of a database of counts, in closed form.

    For each record i the loss is :math:`\log \xi(\mu \mid x) - \log \xi(\mu \mid x_{-i})`, of two
    Gamma densities. The neighbour leaves the record's term out of the likelihood and of the
    weights. Reported is the largest absolute value over a set of μ, over which Δ and the
    oscillation are taken too: for the two mechanisms "on T" all of T, to which their prior is
    restricted; for the others what lies between the smallest and the largest of S draws from the
    pseudo posterior of x.

    Parameters
    ----------
    counts : array_like of int (records,)
        The database x, at least two records.
    public : (float, float)
        Public interval T of μ, fixed without looking at the counts. The last four mechanisms take
        their weights from it, so that each depends only on its own record.
    truncate_at : float, default 3.5
        The paper's M, in nats: of Weighted-M, and the cap of Capped. Range-capped caps
        oscillations at 2M, so that all three aim at ε = 2M.
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
    20. Over one set of μ, that largest loss bounds the integrated one and, times the number of
    releases, that of several releases with the same weights.

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
    try:
        lowest, highest = public
    except (TypeError, ValueError):
        raise ValueError(
            f"public must be two numbers, an interval of μ; got {shown(public)}"
        ) from None
    lowest = check_number("public", lowest, above=0)
    public = lowest, check_number("public", highest, above=lowest)
    truncate_at = check_number("truncate_at", truncate_at, above=0)
    draws = check_count("draws", draws, at_least=2)
    weight_draws = check_count("weight_draws", weight_draws)
    prior = [
        check_number(name, value, at_least=_SMALLEST_PRIOR)
        for name, value in (("shape", shape), ("rate", rate))
    ]
    left_out, table = np.unique(counts, return_counts=True)
    values, rng = left_out.astype(np.float64), generator(random_seed)
    # row 0 is x itself, row j + 1 its neighbour without one record of the j-th value
    tables = np.vstack([table, table - np.eye(values.size)])
    # drawn first, so that the set of μ does not depend on the number of draws of the weights
    sets = _extreme_levels(draws, len(_OVER_DRAWS), rng)
    levels = _extreme_levels(draws, weight_draws, rng)
    # drawn last, so that further seeds change nothing above
    further = _extreme_levels(draws, (min(_SEEDS, weight_draws) - 1) * len(_OVER_DRAWS), rng)
    # axes: mechanism, seed, end
    sets = np.hstack([sets, further]).T.reshape(-1, len(_OVER_DRAWS), 2).swapaxes(0, 1)

    # unweighted bounds; axes: row, draw of the weights, value
    shapes, rates = prior[0] + tables @ values, prior[1] + tables.sum(axis=1)
    means = [gammaincinv(shapes[:, None], level) / rates[:, None] for level in levels]
    # logarithms of the means are taken before they are broadcast against the values
    bounds, high = (
        mean[..., None] - np.log(np.maximum(mean, _TINY))[..., None] * values + gammaln(values + 1)
        for mean in means
    )
    np.maximum(bounds, high, out=bounds)
    # a value that occurred once and is left out has no weight
    there = {"axis": -1, "keepdims": True, "where": (tables > 0)[:, None]}
    linear = linear_weights(
        bounds, bounds.min(initial=np.inf, **there), bounds.max(initial=-np.inf, **there)
    )
    own_bounds, own_oscillations = (
        found[0] for found in _bounds_between(values, np.ones(1), *np.reshape(public, (2, 1, 1)))
    )
    capped = mapped_weights(own_bounds, capped_map(truncate_at))
    range_capped = mapped_weights(own_oscillations, capped_map(2.0 * truncate_at))
    weights = [
        np.ones(values.size), linear, truncated(linear, bounds, truncate_at), capped, range_capped,
        capped, range_capped,
    ]
    extreme = int(bounds[0, 0].argmax())
    found = [
        _mechanism(values, tables, alpha, prior, public, own_levels, extreme)
        for alpha, own_levels in zip(weights, [*sets, None, None], strict=True)
    ]
    columns = {name: np.array([one[name] for one in found]) for name in found[0]}
    dataset = xr.Dataset(
        {name: (("mechanism", "left_out")[: block.ndim], block) for name, block in columns.items()},
        {"mechanism": list(MECHANISMS), "left_out": left_out},
        {"public": public},
    )
    return dataset.assign(records=("left_out", table))


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


def _mechanism(values, tables, weights, prior, public, levels, extreme):
    """Results of one mechanism, by name; its prior is restricted to T if ``levels`` is None."""
    restricted, reacting = levels is None, weights.ndim == 3
    # axes: row, draw of the weights, value
    every = weights if reacting else np.broadcast_to(weights, (len(tables), 1, values.size))
    here, effective = every[0, 0], every * tables[:, None]
    shapes, rates = prior[0] + effective @ values, prior[1] + effective.sum(axis=-1)
    shape, rate = shapes[0, 0], rates[0, 0]
    seeds = slice(len(levels)) if reacting else slice(1)
    whole = shapes[0, seeds, None], rates[0, seeds, None]
    # neighbours: the other records keep their weights, or have them computed again
    kept = again = shape - here * values, rate - here
    if reacting:
        again = shapes[1:, seeds].T, rates[1:, seeds].T
    # the set of μ, for each seed: T, or between the smallest and the largest of S draws
    if restricted:
        density = RestrictedGamma(shape, rate, *public)
        lows, highs = np.reshape(public, (2, 1, 1))
        points = np.linspace(*public, _GRID)
    else:
        lows, highs = (gammaincinv(whole[0], levels) / whole[1]).T[..., None]
        points = gammaincinv(shape, (np.arange(_GRID) + 0.5) / _GRID) / rate
    low, high = lows[0, 0], highs[0, 0]

    def ratio(mu, one, other):
        if restricted:
            return density.log_ratio(mu, here * values, here)
        return _log_gamma(mu, *one) - _log_gamma(mu, *other)

    def largest(one, other, lows, highs):
        """Largest absolute log ratio on an interval: at an end or in between."""
        shape, rate = (first - second for first, second in zip(one, other, strict=True))
        turn = np.divide(shape, rate, out=np.full(shape.shape, low), where=rate != 0)
        ends = lows, highs, np.clip(turn, lows, highs)
        return np.max([np.abs(ratio(mu, one, other)) for mu in ends], axis=0)

    bounds, oscillations = _bounds_between(values, every[0, seeds], lows, highs)
    by_seed = largest(whole, again, lows, highs)
    again = [part.reshape(-1, values.size)[0] for part in again]
    common = fixed = integrated = by_seed[0]
    error = np.zeros(values.size)
    if reacting:
        fixed = largest((shape, rate), kept, low, high)
        grid = np.linspace(low, high, _GRID)
        integrated, error = _integrated_loss(_log_gamma(grid, shapes[..., None], rates[..., None]))
    two_delta, worst = 2.0 * bounds.max(axis=-1), by_seed.max(axis=-1)
    # the share where Δ is 0
    infinite = np.where(worst > 0, np.inf, 0.0)
    over = np.abs(ratio(points[:, None], (shape, rate), again)) > two_delta[0]
    if restricted:
        limits = {
            "loss_supremum": worst.max(), "outside": 0.0, "outside_public": 0.0,
            "average_mean": float(density.mean), "spread": float(density.spread),
        }
    else:
        sides = np.append(again[0], shape), np.append(again[1], rate)
        inside = gammainc(sides[0], high * sides[1]) - gammainc(sides[0], low * sides[1])
        changed = (again[0] != shape) | (again[1] != rate)
        limits = {
            "loss_supremum": np.inf if changed.any() else 0.0,
            "outside": 1.0 - inside.min(),
            "outside_public": 1.0 - np.diff(gammainc(shape, rate * np.array(public)))[0],
            "average_mean": shape / rate, "spread": np.sqrt(shape) / rate,
        }
    left, then = tables[extreme + 1], every[extreme + 1, 0]
    return limits | {
        "weight": here, "bound": bounds[0], "oscillation": oscillations[0],
        "loss_fixed": fixed, "loss_common": common,
        "loss_integrated": integrated, "loss_integrated_error": error,
        "shape": shape, "shape_without": again[0], "rate": rate, "rate_without": again[1],
        "local_bound": bounds[0].max(), "oscillation_bound": oscillations[0].max(),
        "loss_worst": worst.max(),
        "share_worst": np.divide(worst, two_delta, out=infinite, where=two_delta > 0).max(),
        "records_over": tables[0][common > two_delta[0]].sum() / tables[0].sum(),
        "parameters_over": over.mean(axis=0).max(),
        "weights_moved": left[np.abs(then - here) > _VISIBLE].sum(),
        "weights_switched": left[(then > 0) != (here > 0)].sum(),
    }


def _bounds_between(values, weights, low, high):
    """Weighted bounds and oscillations of counts over intervals of μ, shape (sets, values)."""
    ends = log_likelihood_of_counts(values, np.stack([low, high])).min(axis=0)
    inside = log_likelihood_of_counts(values, np.clip(values, low, high))
    # infinite log-probabilities have no difference
    spread = np.subtract(inside, ends, out=np.full(ends.shape, np.inf), where=np.isfinite(ends))
    return weighted(-ends, weights), weighted(spread, weights)


def _log_gamma(mu, shape, rate):
    log_mu = np.log(np.maximum(mu, _TINY))
    return shape * np.log(rate) - gammaln(shape) + (shape - 1.0) * log_mu - rate * mu


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
