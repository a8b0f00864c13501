"""Gamma-Poisson with censored terms: against sums over a fine grid, and against broken terms."""

from collections import Counter

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln, logsumexp

import ppm

LIMITS = [(-3.0, -1.0), (-0.8, -0.3), (-9.0, -1.0), (-1.0, 1.0), (0.5, 1.0)]
DATABASES = {
    "two": ([3, 5], 0.001, 0.001),
    "zeros": ([0, 0, 0], 0.001, 0.001),
    "outlier": ([4, 5, 5, 6, 300], 2.0, 0.5),
    "many": (np.random.default_rng(3).poisson(5, 50), 0.001, 0.001),
    "far apart": ([1, 1, 1, 2, 900, 950], 0.5, 0.01),
}
GRID = np.linspace(-90.0, 14.0, 60_001)


def log_kernel(counts, weights, shape, rate, term, points=GRID):
    """Log of prior times likelihood as a density of log μ, record by record."""
    total = shape * points - rate * np.exp(points)
    for (count, weight), number in Counter(zip(counts, weights, strict=True)).items():
        log_p = count * points - np.exp(points) - gammaln(count + 1.0)
        total = total + number * (term(weight * log_p) if weight else term(np.zeros(1)))
    return total


def log_mass(counts, weights, shape, rate, term):
    """Its integral: the trapezoidal rule, and the prior's tail to the left of the grid."""
    values = log_kernel(counts, weights, shape, rate, term)
    inner = logsumexp(values) + np.log(GRID[1] - GRID[0])
    return np.logaddexp(inner, values[0] - np.log(shape))


def weights_of(counts, kind):
    rng = np.random.default_rng(9)
    return np.ones(len(counts)) if kind == "ones" else rng.uniform(0.2, 2, len(counts)).round(1)


@pytest.mark.parametrize("kind", ["ones", "given"])
@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("database", DATABASES)
def test_density_and_normaliser_are_those_of_prior_times_terms(database, limits, smooth, kind):
    counts, shape, rate = DATABASES[database]
    weights = weights_of(counts, kind)
    censor = ppm.Censoring(*limits, smooth)
    posterior = ppm.GammaPoisson(counts, shape=shape, rate=rate).posterior(weights, censor=censor)
    expected = log_mass(counts, weights, shape, rate, censor.term)
    assert posterior.log_integral == pytest.approx(expected, abs=2e-5)
    points = np.linspace(-40.0, 9.0, 50)
    density = log_kernel(counts, weights, shape, rate, censor.term, points) - expected
    assert posterior.logpdf(np.exp(points)) == pytest.approx(density - points, abs=2e-5)
    assert posterior.outside < 1e-20
    if limits[1] > -1:
        return
    # limits half as far apart, or none, make another distribution
    narrow = ppm.Censoring(limits[0], sum(limits) / 2, smooth)
    for broken in (narrow.term, lambda log_p: log_p):
        other = log_kernel(counts, weights, shape, rate, broken, points)
        other = other - log_mass(counts, weights, shape, rate, broken)
        assert np.abs(other - density).max() > 1e-3


def test_limits_around_the_sum_of_the_records_are_another_distribution():
    counts, shape, rate = DATABASES["many"]
    weights, censor = np.ones(len(counts)), ppm.Censoring(-9.0, -1.0)
    points = np.linspace(-1.0, 3.0, 9)
    raw = log_kernel(counts, weights, 1.0, 1.0, lambda log_p: log_p, points)
    prior = points - np.exp(points)
    around = prior + censor.term(raw - prior)
    own = ppm.GammaPoisson(counts, shape=1.0, rate=1.0).posterior(censor=censor)
    assert np.ptp(own.logpdf(np.exp(points)) + points - around) > 1.0


def test_wide_limits_give_the_closed_form_and_weight_zero_the_prior():
    synthesizer = ppm.GammaPoisson([3, 5, 9], shape=2.0, rate=0.5)
    wide = ppm.Censoring(-1e4, 1.0, smooth=False)
    mu = np.linspace(0.5, 12.0, 20)
    weights = np.array([1.0, 0.5, 0.0])
    assert synthesizer.posterior(weights, censor=wide).logpdf(mu) == pytest.approx(
        synthesizer.posterior(weights).logpdf(mu), abs=1e-10
    )
    for smooth in True, False:
        none = synthesizer.posterior(np.zeros(3), censor=ppm.Censoring(-3, -1, smooth))
        assert none.logpdf(mu) == pytest.approx(stats.gamma(2.0, scale=2.0).logpdf(mu), abs=1e-10)
        assert none.mean() == pytest.approx(4.0)
        # a Gamma distribution's, and with a prior that has a tail to the left
        assert none.var() == pytest.approx(8.0)
        tail = ppm.GammaPoisson([3], shape=1e-3, rate=0.5).posterior(
            np.zeros(1), censor=ppm.Censoring(-3, -1, smooth)
        )
        assert tail.var() == pytest.approx(4e-3, rel=1e-9)
    assert synthesizer.posterior(weights, censor=wide).var() == pytest.approx(
        synthesizer.posterior(weights).var()
    )


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize("database", ["outlier", "far apart", "many"])
def test_draws_follow_the_censored_posterior_and_not_the_uncensored_one(database, smooth):
    counts, shape, rate = DATABASES[database]
    synthesizer = ppm.GammaPoisson(counts, shape=shape, rate=rate)
    censor = ppm.Censoring(-5.0, -2.0, smooth)
    posterior = synthesizer.posterior(censor=censor)
    fit = synthesizer.fit(draws=4_000, random_seed=2, censor=censor)
    mu = fit["posterior"]["mu"].values
    assert mu.shape == (1, 4_000) and fit["log_likelihood"]["counts"].shape[-1] == len(counts)
    # the distribution function by itself, on the grid and in the tail to its left
    values = log_kernel(counts, np.ones(len(counts)), shape, rate, censor.term)
    masses = np.exp(values - posterior.log_integral) * (GRID[1] - GRID[0])
    below = np.exp(values[0] - posterior.log_integral) / shape
    assert below + masses.sum() == pytest.approx(1.0, abs=2e-5)
    inside = np.log(mu[mu > np.exp(GRID[0])])
    share = np.interp(inside, GRID, np.cumsum(masses)) / (1.0 - below)
    assert stats.kstest(share, "uniform").pvalue > 1e-3
    assert inside.size / mu.size == pytest.approx(1.0 - below, abs=0.03)
    if database != "many":
        assert stats.kstest(np.exp(inside), synthesizer.posterior().cdf).pvalue < 1e-6
    # the log-likelihood of a fit is neither weighted nor censored
    assert synthesizer.log_likelihood(fit).values.max() > censor.high


def test_most_of_a_nearly_flat_prior_lies_where_every_term_is_constant():
    synthesizer = ppm.GammaPoisson([100] * 5)
    censor = ppm.Censoring(-3.0, -1.0)  # no record of this size ever comes near
    posterior = synthesizer.posterior(censor=censor)
    below = stats.gamma(0.001, scale=1e3).cdf(1e-30)
    draws = posterior.rvs(size=5_000, random_state=1)
    assert np.mean(draws < 1e-30) == pytest.approx(below, abs=0.05)


@pytest.mark.parametrize(
    ("counts", "shape", "rate", "weights"),
    [
        ([10**18, 3], 0.001, 0.001, [1.0, 1.0]),
        ([3, 5], 0.001, 0.001, [1e-300, 1e-12]),
        ([0, 5], 100.0, 1e-200, [1.0, 1.0]),
        ([0, 5], 50.0, 1e3, [1.0, 1.0]),
        ([0, 0], 1e-6, 1e-6, [1.0, 0.3]),
    ],
)
def test_extreme_databases_priors_and_weights_do_not_break_the_quadrature(
    counts, shape, rate, weights
):
    synthesizer = ppm.GammaPoisson(counts, shape=shape, rate=rate)
    for limits in ((-3.0, -1.0), (-300.0, -1.0), (-0.801, -0.8), (1.0, 2.0)):
        for smooth in True, False:
            censor = ppm.Censoring(*limits, smooth)
            posterior = synthesizer.posterior(weights, censor=censor)
            assert posterior.outside < 1e-20
            assert np.isfinite(posterior.rvs(size=200, random_state=1)).all()


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize("database", DATABASES)
def test_no_value_on_a_panel_is_above_the_one_that_draws_are_rejected_by(database, smooth):
    counts, shape, rate = DATABASES[database]
    posterior = ppm.GammaPoisson(counts, shape=shape, rate=rate).posterior(
        weights_of(counts, "given"), censor=ppm.Censoring(-3.0, -1.0, smooth)
    )
    left, right = (end[:, None] for end in posterior.edges)
    inner = posterior._unscaled(left + (right - left) * np.linspace(0.0, 1.0, 41))
    assert np.all(inner <= posterior._upper[:, None] + 1e-10)
    # the ends alone would be too low
    assert database != "many" or np.any(inner > np.maximum(inner[:, :1], inner[:, -1:]) + 1e-6)


def test_without_a_record_nothing_is_missing_where_limits_are_wide():
    # without the 3 the mass lies where the whole database has next to none
    counts, weights, censor = [3, 5], np.array([1.8, 0.3]), ppm.Censoring(-300.0, -1.0)
    posterior = ppm.GammaPoisson(counts).posterior(weights, censor=censor)
    for place, stays in ((0, [1]), (1, [0])):
        other = ppm.GammaPoisson(np.take(counts, stays)).posterior(weights[stays], censor=censor)
        found = posterior.log_integral_without()[place]
        assert found == pytest.approx(other.log_integral, abs=1e-9)
