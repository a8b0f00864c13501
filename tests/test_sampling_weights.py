"""Sampling weights, above 1 too: records that stand twice, losses by quadrature."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln, logsumexp

import ppm

COUNTS = np.r_[np.random.default_rng(7).poisson(5, 30), 0, 30]
WEIGHTS = np.random.default_rng(8).uniform(0.2, 10.0, COUNTS.size)
CENSORS = [ppm.Censoring(-30.0, -27.0), ppm.Censoring(-6.0, -4.0, smooth=False)]
# log μ
GRID = np.linspace(-30.0, 8.0, 20_001)
LOG_P = COUNTS[:, None] * GRID - np.exp(GRID) - gammaln(COUNTS[:, None] + 1.0)
MU = np.linspace(1.0, 12.0, 40)


def model_of(counts):
    return ppm.GammaPoisson(counts, shape=2.0, rate=0.5)


def log_density(total):
    """Of log μ on the grid, from the sum of the records' terms there."""
    values = 2.0 * GRID - 0.5 * np.exp(GRID) + total
    return values - logsumexp(values)


def test_a_weight_of_two_is_a_record_that_stands_twice():
    once, twice = model_of(COUNTS), model_of(np.tile(COUNTS, 2))
    double, ones = np.full(COUNTS.size, 2.0), np.ones(COUNTS.size)
    # limits so wide that they cut nothing here
    for censor in (None, ppm.Censoring(-1e4, 10.0, smooth=False)):
        found = once.posterior(double, censor=censor).logpdf(MU)
        assert found == pytest.approx(
            twice.posterior(censor=censor).logpdf(MU), abs=1e-9
        )
        assert (
            np.abs(found - once.posterior(ones, censor=censor).logpdf(MU)).max() > 1.0
        )
    # between narrow ones it is one term, and two records are two
    found = once.posterior(double, censor=CENSORS[1]).logpdf(MU)
    assert np.abs(found - twice.posterior(censor=CENSORS[1]).logpdf(MU)).max() > 1.0


@pytest.mark.parametrize("censor", CENSORS, ids=["smooth", "hard"])
def test_a_run_with_them_is_strict_and_draws_that_posterior(censor):
    settings = {"weights": WEIGHTS, "censor": censor, "independent_weights": True}
    mechanism = ppm.PseudoPosteriorMechanism(model_of(COUNTS), **settings)
    result = mechanism.run(draws=2000, random_seed=3)
    assert result.strict and result.oscillation_bound <= censor.width
    drawn = np.log(result.draws["posterior"]["mu"].values[0])
    for weights, agrees in ((WEIGHTS, True), (np.minimum(WEIGHTS, 1.0), False)):
        density = log_density(censor.term(weights[:, None] * LOG_P).sum(axis=0))
        below = np.interp(drawn, GRID, np.cumsum(np.exp(density)))
        assert (stats.kstest(below, "uniform").pvalue > 1e-3) == agrees
