"""The theorem at fixed weights, on the model in closed form: loss, oscillation, twice the bound."""

import numpy as np
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logsumexp

import ppm

databases = st.lists(st.integers(0, 60), min_size=2, max_size=12)
priors = st.tuples(st.floats(0.01, 20), st.floats(0.01, 5))


@st.composite
def cases(draw):
    """A database, its weights, its prior and a set of μ as two levels of the pseudo posterior."""
    counts = draw(databases)
    weights = draw(
        st.lists(st.floats(0, 10), min_size=len(counts), max_size=len(counts)).map(np.array)
    )
    shape, rate = draw(priors)
    return ppm.GammaPoisson(counts, shape=shape, rate=rate), weights


def masses_and_losses(synthesizer, weights, lowest, highest, points):
    """Closed-form losses on an interval, and the smaller mass either posterior has there."""
    mu = np.linspace(lowest, highest, points)
    fit = xr.DataTree.from_dict(
        {"posterior": xr.Dataset({"mu": (("chain", "draw"), mu[None])})}
    )
    loss = synthesizer.leave_one_out_loss(fit, weights).values[0]
    mass = []
    for record in range(synthesizer.records):
        left = weights.copy()
        left[record] = 0  # weight 0 is absence
        sides = [synthesizer.posterior(w) for w in (weights, left)]
        mass.append(min(side.cdf(highest) - side.cdf(lowest) for side in sides))
    return loss, np.array(mass)


@given(case=cases(), level=st.floats(1e-3, 0.4))
def test_the_loss_at_fixed_weights_is_at_most_the_oscillation_and_that_at_most_two_bounds(
    case, level
):
    synthesizer, weights = case
    lowest, highest = synthesizer.posterior(weights).ppf([level, 1 - level])
    if not 1e-6 < lowest < highest < 1e6:
        return
    loss, mass = masses_and_losses(synthesizer, weights, lowest, highest, 40)
    oscillations = weights * synthesizer.oscillations_within(lowest, highest)
    bounds = weights * synthesizer.bounds_within(lowest, highest)
    assert np.all(oscillations <= bounds + 1e-9)  # a probability has a logarithm of one sign
    # on the set, and with what either side puts outside of it
    kept = mass > 1e-9
    allowed = oscillations[kept] - np.log(mass[kept])
    assert np.all(np.abs(loss[:, kept]) <= allowed + 1e-8)
    # restricted to the set both sides are normalised there, and nothing is added
    restricted = loss - restriction(synthesizer, weights, lowest, highest)
    assert np.all(np.abs(restricted[:, kept]) <= oscillations[kept] + 1e-6)


def restriction(synthesizer, weights, lowest, highest):
    """Log ratio of the masses with and without each record."""
    full = synthesizer.posterior(weights)
    ratios = []
    for record in range(synthesizer.records):
        left = weights.copy()
        left[record] = 0
        part = synthesizer.posterior(left)
        mass = part.cdf(highest) - part.cdf(lowest)
        ratios.append(
            np.log((full.cdf(highest) - full.cdf(lowest)) / mass) if mass > 1e-9 else np.nan
        )
    return np.array(ratios)


def test_less_than_the_oscillation_would_be_caught():
    synthesizer = ppm.GammaPoisson([2, 5, 4, 40], shape=1.0, rate=0.1)
    weights = np.ones(4)
    lowest, highest = synthesizer.posterior(weights).ppf([0.001, 0.999])
    loss, mass = masses_and_losses(synthesizer, weights, lowest, highest, 200)
    loss = np.abs(loss - restriction(synthesizer, weights, lowest, highest)).max(axis=0)
    oscillations = synthesizer.oscillations_within(lowest, highest)
    assert np.all(loss <= oscillations) and np.any(loss > 0.7 * oscillations)
    # and without the mass outside, a narrow set would promise next to nothing
    lowest, highest = 20.0, 20.01
    loss, mass = masses_and_losses(synthesizer, weights, lowest, highest, 3)
    oscillations = synthesizer.oscillations_within(lowest, highest)
    assert np.any(np.abs(loss).max(axis=0) > oscillations + 1)
    assert np.all(np.abs(loss).max(axis=0) <= oscillations - np.log(mass))


PUBLIC = np.linspace(20.0, 40.0, 201)


def restricted_losses(counts, rule):
    """Largest loss of each record, weights computed again, with a prior on a public set of μ."""

    def log_density(counts):
        weights = rule(ppm.GammaPoisson(counts))
        total = weights @ stats.poisson.logpmf(counts[:, None], PUBLIC)
        return total - logsumexp(total)

    counts = np.asarray(counts)
    whole = log_density(counts)
    return [
        np.abs(whole - log_density(np.delete(counts, record))).max()
        for record in range(counts.size)
    ]


def own_weights(limit, of="oscillations_within"):
    def rule(records):
        values = getattr(records, of)(PUBLIC[0], PUBLIC[-1])
        return ppm.mapped_weights(values, ppm.weights.capped_map(limit))

    return rule


@given(
    counts=st.lists(st.integers(0, 1_000), min_size=2, max_size=12),
    limit=st.floats(0.05, 10),
)
def test_a_public_prior_and_record_determined_weights_keep_epsilon_for_every_database(
    counts, limit
):
    assert max(restricted_losses(counts, own_weights(limit))) <= limit + 1e-9
    # capped bounds of a probability need no factor of 2 either
    assert max(restricted_losses(counts, own_weights(limit, "bounds_within"))) <= limit + 1e-9


def test_weights_that_do_not_follow_their_own_record_break_it():
    counts = [30, 31, 29, 200]
    assert max(restricted_losses(counts, own_weights(1.0))) <= 1
    assert max(restricted_losses(counts, lambda records: np.ones(records.records))) > 10

    def minmax(records):
        return ppm.record_weights(
            ppm.record_bounds(stats.poisson.logpmf(records.counts, PUBLIC[:, None]))
        )

    # scaled between the smallest and largest bound: without 200, everything moves
    assert max(restricted_losses(counts, minmax)) > 1


def test_bounds_at_draws_from_the_prior_are_no_supremum_and_cap_nothing():
    # one record far out, where 1,000 draws of a standard normal prior on [-6, 6] do not reach
    theta = np.linspace(-6, 6, 4_001)
    prior = stats.norm.logpdf(theta)
    record, limit = -80.0, 3.5
    exact = np.ptp(stats.norm.logpdf(record, theta))

    def largest_loss(weight, others):
        """Of one such record among others of the same value and weight, on the interval."""
        term = weight * stats.norm.logpdf(record, theta)
        sides = [prior + count * term for count in (others, others + 1)]
        return np.abs(np.subtract(*(side - logsumexp(side) for side in sides))).max()

    def weight_of(oscillation):
        return ppm.mapped_weights([oscillation], ppm.weights.capped_map(limit))[0]

    assert weight_of(exact) * exact <= limit
    assert max(largest_loss(weight_of(exact), others) for others in (0, 5, 40)) <= limit
    for seed in range(8):
        draws = stats.truncnorm(-6, 6).rvs(1_000, random_state=seed)
        log_lik = stats.norm.logpdf(record, draws[:, None])
        weight = weight_of(ppm.record_oscillations(log_lik)[0])
        assert weight * exact > 1.5 * limit
        # not only the bound is broken, but the privacy that it was to give
        assert largest_loss(weight, others=40) > 1.5 * limit


def test_a_little_mass_outside_a_set_costs_its_logarithm():
    rng = np.random.default_rng(1)
    passed = []
    for _ in range(300):
        counts = np.r_[rng.poisson(60), rng.poisson(rng.uniform(1, 30), rng.integers(1, 7))]
        weights = np.r_[rng.uniform(0.3, 1.0), rng.uniform(0.0, 1.0, counts.size - 1)]
        synthesizer = ppm.GammaPoisson(counts, shape=1.0, rate=0.1)
        without = synthesizer.posterior(np.r_[0.0, weights[1:]])
        posterior = synthesizer.posterior(weights)
        tail = rng.uniform(0.001, 0.6)
        ends = posterior.ppf([tail / 4, 1 - tail / 2])
        outside = max(1 - np.diff(density.cdf(ends))[0] for density in (posterior, without))
        means = np.linspace(*ends, 101)
        loss = np.abs(posterior.logpdf(means) - without.logpdf(means)).max()
        oscillation = weights[0] * synthesizer.oscillations_within(*ends)[0]
        with np.errstate(divide="ignore"):
            assert loss <= oscillation - np.log1p(-outside) + 1e-9
        passed.append(loss <= oscillation)
    # the oscillation alone, as if nothing lay outside, is passed often
    assert np.mean(passed) < 0.5
