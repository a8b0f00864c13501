"""Gamma-Poisson with censored terms: against sums over a fine grid, and against broken terms."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln, logsumexp

import ppm
from ppm.rules import limited

DATABASES = {
    "two": ([3, 5], 0.001, 0.001),
    "zeros": ([0, 0, 0], 0.001, 0.001),
    "outlier": ([4, 5, 5, 6, 300], 2.0, 0.5),
    "many": (np.random.default_rng(3).poisson(5, 50), 0.001, 0.001),
    "far apart": ([1, 1, 1, 2, 900, 950], 0.5, 0.01),
    "two bulks": ([0] * 5 + [12] * 5, 0.5, 0.01),
    "narrow prior": ([3], 50.0, 10.0),
}
GRID = np.linspace(-90.0, 14.0, 40_001)
STEP = GRID[1] - GRID[0]


def log_kernel(counts, weights, shape, rate, term, points=GRID):
    """Log of prior times likelihood as a density of log μ, record by record."""
    log_p = np.multiply.outer(counts, points) - np.exp(points)
    log_p -= gammaln(np.add(counts, 1.0))[:, None]
    terms = term(np.asarray(weights)[:, None] * log_p)
    return shape * points - rate * np.exp(points) + terms.sum(axis=0)


def log_mass(counts, weights, shape, rate, term):
    """Its integral: the trapezoidal rule, and the prior's tail to the left of the grid."""
    values = log_kernel(counts, weights, shape, rate, term)
    return np.logaddexp(logsumexp(values) + np.log(STEP), values[0] - np.log(shape))


def posterior_of(database, censor, seed=9):
    """The posterior, and the settings of its kernel, with weights from 0.2 to 2."""
    counts, shape, rate = DATABASES[database]
    weights = np.random.default_rng(seed).uniform(0.2, 2, len(counts)).round(1)
    model = ppm.GammaPoisson(counts, shape=shape, rate=rate)
    posterior = model.posterior(limited(model, censor, weights))
    return posterior, (counts, weights, shape, rate)


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize(
    "limits",
    [
        (-3, -1),
        (-0.8, -0.3),
        (-9, -1),
        (-1, 1),
        (0.5, 1),
        (-1, 1, 4.0),
        (-0.2, 0.1, 0.3),
    ],
)
@pytest.mark.parametrize("database", [*DATABASES][:-1])
def test_density_and_normaliser_are_those_of_prior_times_terms(
    database, limits, smooth
):
    (low, high, *center), level = limits, 0.0
    censor = ppm.Censoring(low, high, smooth, {"mu": center[0]} if center else None)
    posterior, settings = posterior_of(database, censor)
    if center:
        level = (settings[1] * stats.poisson.logpmf(settings[0], center[0]))[:, None]

    def term(weighted_log_p):
        return censor.term(weighted_log_p - level)

    expected = log_mass(*settings, term)
    # centred terms of records far out change within a few steps of the grid
    error = 1e-3 if center else 2e-5
    assert posterior.log_integral == pytest.approx(expected, abs=error)
    points = np.linspace(-40.0, 9.0, 50)
    density = log_kernel(*settings, term, points) - expected
    assert posterior.logpdf(np.exp(points)) == pytest.approx(
        density - points, abs=error
    )
    # limits half as far apart, or none, make another distribution
    narrow = ppm.Censoring(low, (low + high) / 2, smooth)
    for broken in (
        (narrow.term, lambda log_p: log_p)
        if high == -1
        else [censor.term] * len(center)
    ):
        other = log_kernel(*settings, broken, points) - log_mass(*settings, broken)
        assert np.abs(other - density).max() > 1e-3


def test_wide_limits_give_the_closed_form_and_weight_zero_the_prior():
    synthesizer = ppm.GammaPoisson([3, 5, 9], shape=2.0, rate=0.5)
    weights, mu = np.array([1.0, 0.5, 0.0]), np.linspace(0.5, 12.0, 20)
    limits = ppm.Censoring(-1e4, 1.0, smooth=False)
    wide = synthesizer.posterior(limited(synthesizer, limits, weights))
    plain = synthesizer.posterior(weights)
    assert wide.logpdf(mu) == pytest.approx(plain.logpdf(mu), abs=1e-10)
    assert wide.var() == pytest.approx(plain.var())
    # the second prior has a tail to the left of all panels
    for shape, smooth in ((2.0, True), (2.0, False), (0.01, True)):
        model, prior = (
            ppm.GammaPoisson([3, 5], shape=shape, rate=0.5),
            stats.gamma(shape, scale=2),
        )
        terms = limited(model, ppm.Censoring(-3, -1, smooth), np.zeros(2))
        found = model.posterior(terms)
        assert found.logpdf(mu) == pytest.approx(prior.logpdf(mu), abs=1e-9)
        assert found.mean() == pytest.approx(prior.mean(), rel=1e-9)
        assert found.var() == pytest.approx(prior.var(), rel=1e-9)
        draws = found.rvs(size=2_000, random_state=1)
        assert stats.kstest(prior.cdf(draws), "uniform").pvalue > 1e-3
    # a panel without a width would warn, which is an error here
    far, limits = ppm.GammaPoisson([2**53] * 3), ppm.Censoring(-3, -2, center={"mu": 5})
    far.posterior(ppm.Terms(np.ones(3), limits, limits.levels(far)))


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
    for limits in ((-300.0, -1.0), (-0.801, -0.8), (1.0, 2.0)):
        for smooth in True, False:
            terms = limited(synthesizer, ppm.Censoring(*limits, smooth), weights)
            posterior = synthesizer.posterior(terms)
            assert np.isfinite(posterior.rvs(size=200, random_state=1)).all()


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize("database", DATABASES)
def test_no_value_on_a_panel_is_above_the_one_that_draws_are_rejected_by(
    database, smooth
):
    too_low = False
    limits = (-3.0, -1.0), (-2.0, -1.7), (-4.0, -2.5)
    posteriors = [
        posterior_of(database, ppm.Censoring(*both, smooth))[0] for both in limits
    ]
    # equal records against the prior: the sum peaks where each of its terms bends most
    together = ppm.GammaPoisson([3] * 20, shape=50.0, rate=1.0)
    posteriors.append(
        together.posterior(limited(together, ppm.Censoring(-3.0, -2.8, smooth)))
    )
    for posterior in posteriors:
        left, right = (end[:, None] for end in posterior.edges)
        inner = posterior._unscaled(left + (right - left) * np.linspace(0.0, 1.0, 41))
        assert np.all(inner <= posterior._upper[:, None] + 1e-10)
        # the ends alone would be too low
        too_low |= np.any(inner > np.maximum(inner[:, :1], inner[:, -1:]) + 1e-6)
    assert too_low or database != "many"


@pytest.mark.parametrize("low", [-300.0, -3.0])
def test_without_a_record_nothing_is_missing_however_wide_the_limits_are(low):
    # with wide ones the mass lies without the 3 where the whole database has next to none
    counts, weights, censor = [3, 5], np.array([1.8, 0.3]), ppm.Censoring(low, -1.0)
    model = ppm.GammaPoisson(counts)
    posterior = model.posterior(limited(model, censor, weights))
    for place, stays in ((0, [1]), (1, [0])):
        rest = ppm.GammaPoisson(np.take(counts, stays))
        other = rest.posterior(limited(rest, censor, weights[stays]))
        found = posterior.log_integral_without()[place]
        assert found == pytest.approx(other.log_integral, abs=1e-9)
