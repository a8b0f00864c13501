"""Counts against SciPy; their posterior is in laws and properties/."""

import numpy as np
import pytest
from scipy import stats

import ppm

COUNTS = np.array([2, 0, 3, 9, 1])
MODEL = ppm.GammaPoisson(COUNTS, shape=2.0, rate=0.5)


def test_synthetic_counts_are_poisson_with_one_mean_for_each_release():
    big = ppm.GammaPoisson(np.full(4_000, 7))
    fit = ppm.fit(big, ppm.Unweighted(), draws=300, random_seed=1)
    fit.theta["mu"][:] = np.linspace(1, 100, 300)  # easily told apart
    synthetic = fit.release(30, random_seed=2)
    assert synthetic.dims == ("release", "record") and synthetic.shape == (30, 4_000)
    # a new μ for every record would add the variance of μ
    assert np.allclose(synthetic.var("record") / synthetic.mean("record"), 1, atol=0.15)


def test_bounds_on_an_interval_are_those_of_poisson_counts():
    mu = np.linspace(1.5, 4.0, 2001)
    grid = stats.poisson.logpmf(COUNTS, mu[:, None])
    oscillations = MODEL.oscillations_within(1.5, 4.0)
    assert np.allclose(MODEL.bounds_within(1.5, 4.0), np.abs(grid).max(axis=0))
    assert np.allclose(oscillations, np.ptp(grid, axis=0), atol=1e-6)
    # counts inside the interval peak there: the two ends alone would say too little
    assert np.any(np.ptp(grid[[0, -1]], axis=0) < oscillations - 0.1)


def test_an_interval_of_means_begins_above_0_and_ends_above_that():
    for ends in (0.0, 3.0), (-1.0, 3.0), (3.0, 3.0), (4.0, 3.0), (1.0, np.inf):
        for function in MODEL.bounds_within, MODEL.oscillations_within:
            with pytest.raises(ValueError, match="^(low|high)est must be a finite"):
                function(*ends)


def test_a_little_mass_outside_a_set_costs_its_logarithm():
    rng, passed = np.random.default_rng(1), []
    for _ in range(100):
        others = rng.poisson(rng.uniform(1, 30), rng.integers(1, 7))
        counts = np.r_[rng.poisson(60), others]
        weights = np.r_[rng.uniform(0.3, 1.0), rng.uniform(0.0, 1.0, others.size)]
        model = ppm.GammaPoisson(counts, shape=1.0, rate=0.1)
        sides = [model.posterior(one) for one in (weights, np.r_[0.0, weights[1:]])]
        tail = rng.uniform(0.001, 0.6)
        ends = sides[0].ppf([tail / 4, 1 - tail / 2])
        mu = np.linspace(*ends, 40)
        loss = np.abs(np.subtract(*[side.logpdf(mu) for side in sides])).max()
        mass = min([np.diff(side.cdf(ends))[0] for side in sides])
        oscillation = weights[0] * model.oscillations_within(*ends)[0]
        with np.errstate(divide="ignore"):
            assert loss <= oscillation - np.log(mass) + 1e-9
        passed.append(loss <= oscillation)
    # the oscillation alone, as if nothing lay outside, is passed often
    assert np.mean(passed) < 0.5
