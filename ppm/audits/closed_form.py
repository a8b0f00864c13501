"""The exact privacy audit of Gamma-Poisson: losses in closed form, weights computed again.

Everything in this module is computed from the confidential records and is confidential itself.
"""

import math

import numpy as np
import xarray as xr
from scipy.special import gammainc, gammaincinv, gammaln

from ppm._random import generator
from ppm._validation import check_count, check_counts, check_number, shown
from ppm.lipschitz import weighted
from ppm.synthesizers.gamma_poisson import log_likelihood_of_counts
from ppm.synthesizers.restricted_gamma import RestrictedGamma
from ppm.weights import capped_map, linear_weights, public_weights, truncated

# whose Gamma prior allows every μ above 0: bound and loss are taken over the range of draws
_OVER_DRAWS = ("Unweighted", "Weighted", "Weighted-M", "Capped", "Range-capped")
# the last two with the prior restricted to the public interval: bound and loss over all of it
RESTRICTED = ("Capped on T", "Range-capped on T")
MECHANISMS = _OVER_DRAWS + RESTRICTED
# those whose weights hang on posterior draws, and so on the other records
REACTING = ("Weighted", "Weighted-M")
# seeds whose worst is reported, unless told otherwise
_SEEDS = 20
# parameter values at which a loss without a closed-form maximum is evaluated
_GRID = 41
_LEVELS = (np.arange(_GRID) + 0.5) / _GRID
# stands in for a quantile of μ that underflows, where all counts are 0
_TINY = np.finfo(np.float64).tiny
# smallest shape and rate of the prior that an audit takes
_SMALLEST_PRIOR = 1e-9
# a weight that moves by more than this has moved visibly
_VISIBLE = 0.01


def exact(
    counts, *, public, truncate_at=3.5, draws=1000, weight_draws=200, seeds=None, shape=0.001,
    rate=0.001, random_seed=None,
):
    r"""Privacy loss of every leave-one-out neighbour of a database of counts, in closed form.

    For each record i that may leave, the loss is :math:`\log \xi(\mu \mid x) - \log \xi(\mu \mid
    x_{-i})`, two Gamma densities, or two that are restricted to T for the two mechanisms "on T".
    The neighbour is the same table in which the count of record i takes no part: its term is left
    out of the likelihood and of the weights. Reported is the loss's largest absolute value over a
    set of μ, over which Δ and the oscillation are taken as well: all of T for the mechanisms on T;
    for the others, whose prior allows every μ above 0, what lies between the smallest and the
    largest of S draws from the pseudo posterior of x.

    Parameters
    ----------
    counts : array_like of int, shape (records,)
        The database x, at least two records.
    public : (float, float)
        Public interval T of μ behind the weights that a record determines alone, to which the two
        mechanisms on T restrict the prior too: fixed before the counts were seen.
    truncate_at : float, default 3.5
        The paper's M, above 0, in nats: of Weighted-M, and the cap of Capped. Range-capped caps
        oscillations at 2M, so that all three aim at ε = 2M.
    draws : int, default 1000
        Posterior draws S of each fit, 2 or more.
    weight_draws : int, default 200
        Draws of the weights (each from S draws of the unweighted posterior) that are averaged on
        each side; 1 or more.
    seeds : int, optional
        Seeds whose worst is reported, at most ``weight_draws``; by default 20, or all of them if
        they are fewer. Each has its own weights, draws and Δ.
    shape, rate : float, default 0.001
        Gamma prior of μ, as for :class:`ppm.GammaPoisson`, at least 1e-9.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness.

    Returns
    -------
    xarray.Dataset
        Dimensions mechanism and left_out (the distinct counts of the database: equal counts leave
        the same neighbour). ``records``: how many have this count; ``weight`` and ``bound``: its
        weight and its weighted bound; ``loss_fixed``: the other records keep their weights;
        ``loss_common``: weights computed again without the record, with the same random numbers,
        those of one seed; ``loss_integrated``: the same with densities averaged over the weights'
        draws on each side, ``loss_integrated_error``: its Monte Carlo standard error, given the
        set of μ and the Δ of the first seed (NaN with one draw of reacting weights);
        ``loss_over_draws``: the loss at common random numbers, with its sign, at the quantiles
        ``level`` of the pseudo posterior; ``shape_without`` and ``rate_without``: of the Gamma
        density without the record, weights computed again.
        By mechanism: ``shape`` and ``rate`` with all records; ``local_bound`` (Δ),
        ``oscillation_bound``; ``loss_worst``: the largest ``loss_common`` of several seeds, and
        ``share_worst`` as a share of 2Δ, each seed with its own Δ; ``loss_supremum``:
        ``loss_common`` over every μ that the prior allows, infinite if that is every μ above 0 and
        the posterior changes at all; ``records_over`` and ``parameters_over``: shares of records,
        and of draws of μ for the worst record, with ``loss_common`` above 2Δ; ``weights_moved``
        and ``weights_switched``: records whose weight moves visibly, or to or from 0, when the
        record with the largest bound leaves; ``outside``: largest mass that the pseudo posterior of
        the database or of a neighbour (with weights computed again) has outside the set of μ;
        ``outside_public``: the database's mass outside the public interval; ``average_mean`` and
        ``spread``: mean and standard deviation of the pseudo posterior.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Savitsky, Williams and Hu (2022), the theorem of section 2 and the mechanisms of section 4.

    A release of one μ, or of records drawn from it, with everything else kept secret, has the
    integrated loss: its density is an average over the draws that made the weights. A mechanism
    which publishes the seed of the weights as well has the largest loss over all seeds. Here
    ``loss_common`` is that of one seed and ``loss_worst`` the largest of ``seeds`` of them, which
    more seeds can only raise. Over one set of μ the largest of all seeds bounds the integrated
    loss and, times the number of releases, that of several releases made with the same weights.
    Equal random numbers means equal levels of the distribution functions of the two posteriors.

    The integrated loss is the largest of 41 values of μ. Its standard error is by the delta method
    at that μ, for the difference of two log means over the same draws; being a largest value of
    noisy ones, it leans upward. With few draws of the weights it lies nearer to the loss at common
    random numbers. ``local_bound`` is that of the first seed.

    The log ratio of two Gamma densities is unbounded over all μ > 0, unless they are the same:
    then ``loss_supremum`` is infinite. What a range of draws leaves out is ``outside``, the largest
    mass that either pseudo posterior has there. With the prior on T nothing is left out, the
    loss is at most the oscillation over T for every database, and that is at most M for Capped on
    T (the log-probability of a count has one sign) and 2M for Range-capped on T.

    Examples
    --------
    Capped on T has weights that each count determines alone and a prior on T: no loss can be above
    the cap of 3.5 nats. Unweighted has no limit over all μ above 0.

    >>> import ppm
    >>> audit = ppm.audits.exact([3, 5, 4, 6, 20], public=(2.0, 8.0), weight_draws=9, random_seed=1)
    >>> audit["loss_supremum"].sel(mechanism=["Unweighted", "Capped on T"]).values.round(2)
    array([ inf, 1.79])
    """
    counts = check_database(counts)
    settings = checked_settings(truncate_at, public, draws, weight_draws, seeds, shape, rate)
    values, table = np.unique(counts, return_counts=True)
    found = audit_database(values, table, settings, generator(random_seed))
    return _dataset(*found, values, settings["public"])


def check_database(counts):
    """Return counts of at least two records, checked; one of them leaves."""
    counts = check_counts("counts", counts)
    if counts.size < 2:
        raise ValueError("counts must hold at least two records: one of them leaves")
    return counts


def checked_settings(truncate_at, public, draws, weight_draws, seeds, shape, rate):
    try:
        lowest, highest = public
    except (TypeError, ValueError):
        raise ValueError(
            f"public must be two numbers, an interval of μ; got {shown(public)}"
        ) from None
    lowest = check_number("public", lowest, above=0)
    weight_draws = check_count("weight_draws", weight_draws)
    seeds = min(_SEEDS, weight_draws) if seeds is None else check_count("seeds", seeds)
    if seeds > weight_draws:
        raise ValueError(f"seeds must be at most the {weight_draws} weight_draws; got {seeds}")
    return {
        "truncate_at": check_number("truncate_at", truncate_at, above=0),
        "public": (lowest, check_number("public", highest, above=lowest)),
        "draws": check_count("draws", draws, at_least=2),
        "weight_draws": weight_draws,
        "seeds": seeds,
        "prior": tuple(
            # less would be lost in the sums that a record leaves
            check_number(name, value, at_least=_SMALLEST_PRIOR)
            for name, value in (("shape", shape), ("rate", rate))
        ),
    }


def _dataset(by_database, by_record, values, public):
    """The audit of one database as a Dataset."""
    dataset = xr.Dataset(
        {
            name: (("mechanism", "left_out", "level")[: block.ndim], block)
            for name, block in by_record.items()
        },
        {"mechanism": list(MECHANISMS), "left_out": values, "level": _LEVELS},
    )
    dataset["records"] = dataset["records"].isel(mechanism=0, drop=True)
    return dataset.assign(
        {
            name: ("mechanism", value)
            for name, value in by_database.items()
            if name not in by_record
        }
    ).assign_attrs(public=public)


def _extreme_levels(draws, size, rng):
    """Levels of the smallest and the largest of independent draws, ``size`` times: (2, size)."""
    # a row of random numbers for each time, so that fewer of them are the first of more
    first, second = rng.uniform(size=(size, 2)).T
    top = first ** (1.0 / draws)
    return np.stack([top * -np.expm1(np.log(second) / (draws - 1)), top])


def audit_database(values, table, settings, rng):
    """Audit one database: (by mechanism, by mechanism and left-out value).

    Arrays have the axes left-out value (0 is nobody), draw of the weights, value.
    """
    truncate_at, draws = settings["truncate_at"], settings["draws"]
    prior = settings["prior"]
    values = values.astype(np.float64)
    # row 0 is x itself, row j + 1 its neighbour without one record of the j-th value
    tables = np.vstack([table, table - np.eye(values.size)])
    # the set of μ first: it does not depend on how many draws of the weights there are
    sets = _extreme_levels(draws, len(_OVER_DRAWS), rng)
    levels = _extreme_levels(draws, settings["weight_draws"], rng)
    # last, so that further seeds change nothing above
    further = _extreme_levels(draws, (settings["seeds"] - 1) * len(_OVER_DRAWS), rng)
    # mechanism, seed, end
    sets = np.hstack([sets, further]).T.reshape(-1, len(_OVER_DRAWS), 2).swapaxes(0, 1)
    shapes = prior[0] + tables @ values
    rates = prior[1] + tables.sum(axis=1)
    means = [gammaincinv(shapes[:, None], level) / rates[:, None] for level in levels]
    # the logarithm is taken of the means alone, before they meet the values
    factorials = gammaln(values + 1.0)
    low, high = (
        mean[..., None] - np.log(np.maximum(mean, _TINY))[..., None] * values + factorials
        for mean in means
    )
    bounds = np.maximum(low, high, out=low)
    absent = tables == 0
    lowest, highest = bounds.min(axis=-1, keepdims=True), bounds.max(axis=-1, keepdims=True)
    for row in np.flatnonzero(absent.any(axis=1)):
        there = bounds[row][:, ~absent[row]]
        lowest[row], highest[row] = there.min(-1, keepdims=True), there.max(-1, keepdims=True)
    # where a value occurs only once and has left, its own weight is not asked for
    linear = linear_weights(bounds, lowest, highest)
    lowest, highest = settings["public"]
    ends = log_likelihood_of_counts(values, np.array([[lowest], [highest]]))
    within = log_likelihood_of_counts(values, np.clip(values, lowest, highest))
    own_bounds, own_oscillations = -ends.min(axis=0), within - ends.min(axis=0)
    capped = public_weights(own_bounds, capped_map(truncate_at))
    range_capped = public_weights(own_oscillations, capped_map(2.0 * truncate_at))
    extreme = int(np.argmax(np.where(table > 0, bounds[0, 0], -np.inf)))
    over_draws = (
        np.ones(values.size), linear, truncated(linear, bounds, truncate_at), capped, range_capped,
    )
    found = [
        _one_mechanism(
            values, table, tables, weights, prior, ends, extreme, np.array(settings["public"])
        )
        for weights, ends in zip(over_draws, sets, strict=True)
    ] + [
        _restricted_mechanism(
            values, table, weights, prior, settings["public"], own_bounds, own_oscillations
        )
        for weights in (capped, range_capped)
    ]
    return tuple(
        {name: np.array([one[part][name] for one in found]) for name in found[0][part]}
        for part in (0, 1)
    )


def _one_mechanism(values, table, tables, weights, prior, levels, extreme, public):
    """One mechanism whose prior allows every μ above 0, over the range of its draws."""
    reacting = weights.ndim == 3
    every = weights if reacting else np.broadcast_to(weights, (len(tables), 1, values.size))
    here = every[0, 0]
    effective = every * tables[:, None]
    shapes, rates = prior[0] + effective @ values, prior[1] + effective.sum(axis=-1)
    # for each seed the set of μ: between the smallest and the largest of S draws, as behind Δ
    seeds = slice(len(levels)) if reacting else slice(1)
    of_seeds = shapes[0, seeds, None], rates[0, seeds, None]
    lows, highs = (gammaincinv(of_seeds[0], levels) / of_seeds[1]).T[..., None]
    bounds, oscillations = _bounds_between(values, every[0, seeds], lows, highs)
    local_bounds = bounds.max(axis=-1)
    bounds, oscillations, low, high = bounds[0], oscillations[0], lows[0, 0], highs[0, 0]

    fixed_shapes, fixed_rates = shapes[0, 0] - here * values, rates[0, 0] - here
    fixed = _largest_loss(shapes[0, 0], rates[0, 0], fixed_shapes, fixed_rates, low, high)
    integrated, error = fixed, np.zeros(values.size)
    parts = fixed_shapes[None], fixed_rates[None]
    if reacting:
        parts = shapes[1:, seeds].T, rates[1:, seeds].T
        points = np.linspace(low, high, _GRID)
        integrated, error = _integrated_loss(
            _log_gamma(points, shapes[..., None], rates[..., None])
        )
    by_seed = _largest_loss(*of_seeds, *parts, lows, highs)
    common, parts = by_seed[0], tuple(part[0] for part in parts)
    # over μ from the pseudo posterior of x
    points = gammaincinv(shapes[0, 0], _LEVELS) / rates[0, 0]
    over_draws = _log_gamma(points, shapes[0, 0], rates[0, 0]) - _log_gamma(
        points, parts[0][:, None], parts[1][:, None]
    )
    sides_shape, sides_rate = np.append(parts[0], shapes[0, 0]), np.append(parts[1], rates[0, 0])
    inside_mass = gammainc(sides_shape, high * sides_rate) - gammainc(sides_shape, low * sides_rate)
    changed = (parts[0] != shapes[0, 0]) | (parts[1] != rates[0, 0])
    moved = np.abs(every[extreme + 1, 0] - here)
    left = tables[extreme + 1]
    switched = (every[extreme + 1, 0] > 0) != (here > 0)
    by_record = {
        "records": table,
        "weight": here,
        "bound": bounds,
        "oscillation": oscillations,
        "loss_fixed": fixed,
        "loss_common": common,
        "loss_integrated": integrated,
        "loss_integrated_error": error,
        "loss_over_draws": over_draws,
        "shape_without": parts[0],
        "rate_without": parts[1],
    }
    return {
        **_summary(by_record),
        "loss_worst": by_seed.max(),
        "share_worst": shares_of(by_seed.max(axis=-1), 2.0 * local_bounds).max(),
        "loss_supremum": np.inf if changed.any() else 0.0,
        "weights_moved": left[moved > _VISIBLE].sum(),
        "weights_switched": left[switched].sum(),
        "outside": 1.0 - inside_mass.min(),
        "outside_public": 1.0 - np.diff(gammainc(shapes[0, 0], rates[0, 0] * public))[0],
        "average_mean": shapes[0, 0] / rates[0, 0],
        "spread": math.sqrt(shapes[0, 0]) / rates[0, 0],
        "shape": shapes[0, 0],
        "rate": rates[0, 0],
    }, by_record


def _restricted_mechanism(values, table, weights, prior, public, own_bounds, own_oscillations):
    """A mechanism of weights that a record determines alone, with the prior restricted to T."""
    shape = prior[0] + weights * table @ values
    rate = prior[1] + weights @ table
    whole = RestrictedGamma(shape, rate, *public)
    dropped = weights * values, weights
    # as a function of μ the loss turns at the count itself, and nowhere else
    points = np.stack([*(np.full(values.size, end) for end in public), np.clip(values, *public)])
    loss = np.abs(whole.log_ratio(points, *dropped)).max(axis=0)
    by_record = {
        "records": table,
        "weight": weights,
        "bound": weights * own_bounds,
        "oscillation": weights * own_oscillations,
        "loss_fixed": loss,
        "loss_common": loss,
        "loss_integrated": loss,
        "loss_integrated_error": np.zeros(values.size),
        "loss_over_draws": whole.log_ratio(whole.quantile(_LEVELS)[:, None], *dropped).T,
        "shape_without": shape - dropped[0],
        "rate_without": rate - dropped[1],
    }
    found = _summary(by_record)
    return {
        **found,
        "loss_worst": loss.max(),
        "share_worst": shares_of(loss.max(), 2.0 * found["local_bound"]),
        "loss_supremum": loss.max(),
        "weights_moved": 0.0,
        "weights_switched": 0.0,
        "outside": 0.0,
        "outside_public": 0.0,
        "average_mean": float(whole.mean),
        "spread": float(whole.spread),
        "shape": shape,
        "rate": rate,
    }, by_record


def _summary(by_record):
    """The largest of the records, and who is above twice the bound."""
    local_bound = by_record["bound"].max()
    integrated = by_record["loss_integrated"]
    over = by_record["loss_common"] > 2.0 * local_bound
    over_draws = np.abs(by_record["loss_over_draws"]) > 2.0 * local_bound
    return {
        "local_bound": local_bound,
        "oscillation_bound": by_record["oscillation"].max(),
        "loss_fixed": by_record["loss_fixed"].max(),
        "loss_common": by_record["loss_common"].max(),
        "loss_integrated": integrated.max(),
        "loss_integrated_error": by_record["loss_integrated_error"][integrated.argmax()],
        "records_over": by_record["records"][over].sum() / by_record["records"].sum(),
        "parameters_over": np.mean(over_draws, axis=-1).max(),
    }


def _bounds_between(values, weights, low, high):
    """Weighted bounds and oscillations of counts over intervals of μ, shape (sets, values)."""
    ends = log_likelihood_of_counts(values, np.stack([low, high])).min(axis=0)
    inside = log_likelihood_of_counts(values, np.clip(values, low, high))
    # two infinite ends say nothing of what lies between
    spread = np.subtract(inside, ends, out=np.full(ends.shape, np.inf), where=np.isfinite(ends))
    return weighted(-ends, weights), weighted(spread, weights)


def shares_of(losses, bounds):
    """Losses as shares of bounds; a loss above a bound of 0 is infinitely far above."""
    losses = np.asarray(losses)
    return np.divide(losses, bounds, out=np.where(losses > 0, np.inf, 0.0), where=bounds > 0)


def _log_gamma(mu, shape, rate):
    log_mu = np.log(np.maximum(mu, _TINY))
    return shape * np.log(rate) - gammaln(shape) + (shape - 1.0) * log_mu - rate * mu


def _integrated_loss(log_density):
    """Largest log ratio of mean densities, with its standard error; overwrites its argument.

    Axes: row 0 is x and the others are neighbours; draw of the weights; μ.
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
    # both sides use the same random numbers, and their errors partly cancel
    shares = density / total[:, None]
    differences = shares[0][:, place].T - shares[neighbours, :, place]
    with np.errstate(invalid="ignore", divide="ignore"):
        # the mean of the draws' differences is 0
        error = np.sqrt((differences**2).sum(axis=-1) * draws / np.float64(draws - 1))
    return losses[neighbours - 1, place], error


def _largest_loss(shape, rate, shapes, rates, low, high):
    """Largest absolute log ratio of two Gamma densities on an interval: at an end or in between."""
    everywhere = np.broadcast_shapes(np.shape(shapes), np.shape(low))
    turn = np.divide(
        shape - shapes, rate - rates, out=np.full(everywhere, low), where=rate != rates
    )
    ends = [np.broadcast_to(end, turn.shape) for end in (low, high)]
    points = np.stack([*ends, np.clip(turn, low, high)])
    return np.abs(_log_gamma(points, shape, rate) - _log_gamma(points, shapes, rates)).max(axis=0)
