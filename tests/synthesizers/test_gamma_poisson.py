"""The closed-form synthesizer against numerical integration and SciPy."""

import numpy as np
import pytest
from scipy import integrate, stats

import ppm

COUNTS = np.array([2, 0, 3, 9, 1])
WEIGHTS = np.array([1.0, 0.5, 0.8, 0.0, 0.3])


@pytest.fixture
def synthesizer():
    return ppm.GammaPoisson(COUNTS, shape=2.0, rate=0.5)


def pseudo_posterior_mean(weights):
    """Mean of prior times weighted likelihood, by quadrature."""

    def unnormalised(mu):
        likelihood = np.prod(stats.poisson.pmf(COUNTS, mu) ** weights)
        return stats.gamma.pdf(mu, 2.0, scale=2.0) * likelihood

    mass = integrate.quad(unnormalised, 0, 40)[0]
    return integrate.quad(lambda mu: mu * unnormalised(mu), 0, 40)[0] / mass


@pytest.mark.parametrize("weights", [np.ones(5), WEIGHTS, np.zeros(5)])
def test_posterior_is_prior_times_weighted_likelihood(synthesizer, weights):
    assert synthesizer.posterior(weights).mean() == pytest.approx(pseudo_posterior_mean(weights))


def test_weights_in_the_rate_alone_would_be_caught(synthesizer):
    broken = stats.gamma(2.0 + COUNTS.sum(), scale=1 / (0.5 + WEIGHTS.sum()))
    assert broken.mean() != pytest.approx(pseudo_posterior_mean(WEIGHTS), rel=0.05)


def test_draws_follow_the_posterior(synthesizer):
    fit = synthesizer.fit(WEIGHTS, draws=4_000, random_seed=1)
    draws = fit["posterior"]["mu"].values.ravel()
    assert stats.kstest(draws, synthesizer.posterior(WEIGHTS).cdf).pvalue > 0.001
    assert stats.kstest(draws, synthesizer.posterior().cdf).pvalue < 1e-6


def test_log_likelihood_is_the_poisson_log_probability_of_each_record(synthesizer):
    fit = synthesizer.fit(draws=50, random_seed=1)
    log_lik = synthesizer.log_likelihood(fit)
    assert log_lik.dims == ("chain", "draw", "record")
    mu = fit["posterior"]["mu"].values[..., None]
    assert np.allclose(log_lik, stats.poisson.logpmf(COUNTS, mu))


def test_synthetic_counts_follow_one_draw_a_release(synthesizer):
    big = ppm.GammaPoisson(np.full(4_000, 7))
    fit = big.fit(draws=300, random_seed=1)
    fit["posterior"]["mu"].values[:] = np.linspace(1, 100, 300)  # easily told apart
    synthetic = big.predict(fit, releases=30, random_seed=2)
    assert synthetic.dims == ("release", "record") and synthetic.shape == (30, 4_000)
    averages, variances = synthetic.mean("record"), synthetic.var("record")
    # Poisson: within a release the variance equals the mean; a new μ for every record would add
    # the variance of μ
    assert np.allclose(variances / averages, 1, atol=0.15)
    assert len(np.unique(averages.values.round())) > 20
    assert np.array_equal(synthetic, big.predict(fit, releases=30, random_seed=2))
    assert not np.array_equal(synthetic, big.predict(fit, releases=30, random_seed=3))


def test_more_releases_than_draws_are_possible(synthesizer):
    fit = synthesizer.fit(draws=3, random_seed=1)
    assert synthesizer.predict(fit, releases=10, random_seed=1).shape == (10, 5)


def test_same_seed_same_fit(synthesizer):
    one, again, other = (
        synthesizer.fit(draws=5, random_seed=seed)["posterior"]["mu"].values for seed in (1, 1, 2)
    )
    assert np.array_equal(one, again) and not np.array_equal(one, other)


def test_leave_one_out_loss_is_the_log_ratio_of_the_two_gamma_densities(synthesizer):
    fit = synthesizer.fit(WEIGHTS, draws=40, random_seed=1)
    loss = synthesizer.leave_one_out_loss(fit, WEIGHTS)
    mu = fit["posterior"]["mu"].values
    for record in range(COUNTS.size):
        kept = np.delete(np.arange(COUNTS.size), record)
        without = ppm.GammaPoisson(COUNTS[kept], shape=2.0, rate=0.5).posterior(WEIGHTS[kept])
        expected = synthesizer.posterior(WEIGHTS).logpdf(mu) - without.logpdf(mu)
        assert np.allclose(loss.isel(record=record), expected)
    # a record of weight 0 cannot be missed
    assert np.allclose(loss.isel(record=3), 0) and not np.allclose(loss.isel(record=0), 0)


def test_the_loss_stays_below_twice_the_bound_and_not_below_a_tenth_of_it(synthesizer):
    fit = synthesizer.fit(WEIGHTS, draws=2_000, random_seed=1)
    largest = np.abs(synthesizer.leave_one_out_loss(fit, WEIGHTS)).max()
    bound = ppm.local_bound(synthesizer.log_likelihood(fit), WEIGHTS)
    assert 0.1 * ppm.epsilon(bound) < largest < ppm.epsilon(bound)


@pytest.mark.parametrize(
    ("counts", "settings", "message"),
    [
        ([], {}, "non-empty"),
        ([1.5], {}, "at position 0"),
        ([1, -1], {}, "at position 1"),
        ([np.nan], {}, "whole numbers"),
        (["a"], {}, "an array of numbers"),
        ([[1, 2]], {}, "non-empty list"),
        ([1], {"shape": 0}, "shape must be"),
        ([1], {"rate": -1}, "rate must be"),
    ],
)
def test_wrong_counts_and_priors_are_refused(counts, settings, message):
    with pytest.raises(ValueError, match=message):
        ppm.GammaPoisson(counts, **settings)


def test_wrong_fits_are_refused(synthesizer):
    with pytest.raises(ValueError, match="draws must be"):
        synthesizer.fit(draws=0)
    with pytest.raises(ValueError, match="first at record 0"):
        synthesizer.fit(np.full(5, -2.0))
    with pytest.raises(ValueError, match="releases must be"):
        synthesizer.predict(synthesizer.fit(draws=2, random_seed=1), releases=0)


def test_bounds_and_oscillations_within_an_interval_are_those_of_a_fine_grid(synthesizer):
    grid = stats.poisson.logpmf(COUNTS, np.linspace(1.5, 4.0, 2001)[:, None])
    bounds = synthesizer.bounds_within(1.5, 4.0)
    oscillations = synthesizer.oscillations_within(1.5, 4.0)
    assert np.allclose(bounds, np.abs(grid).max(axis=0))
    assert np.allclose(oscillations, np.ptp(grid, axis=0), atol=1e-6)
    # counts inside the interval peak there: the two ends alone would say too little
    assert np.any(np.ptp(grid[[0, -1]], axis=0) < oscillations - 0.1)
    with pytest.raises(ValueError, match="^lowest must be"):
        synthesizer.bounds_within(0, 4)
    with pytest.raises(ValueError, match="^highest must be"):
        synthesizer.oscillations_within(4, 4)
