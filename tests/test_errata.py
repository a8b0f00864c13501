"""The checks behind the page of errata: each fails for the statement as it is printed.

Every test also shows that the corrected statement passes where the printed one does not.
"""

import re

import numpy as np
import pytest
from conftest import ROOT
from scipy import integrate, stats

import ppm


def test_one_direction_does_not_give_the_other():
    # the larger database never answers 1; the smaller one does now and then
    larger, smaller = np.array([1.0, 0.0]), np.array([0.9, 0.1])
    with np.errstate(divide="ignore"):
        down, up = np.log(larger / smaller).max(), np.log(smaller / larger).max()
    assert down < 0.11  # what is printed is kept ...
    assert up == np.inf  # ... and the answer 1 gives the left-out record away


def test_a_database_can_disclose_one_record_only():
    synthesizer = ppm.GammaPoisson([4, 5, 5, 6, 60], shape=1.0, rate=0.1)
    fit = synthesizer.fit(draws=500, random_seed=1)
    loss = abs(synthesizer.leave_one_out_loss(fit, np.ones(5))).max(("chain", "draw")).values
    epsilon = 10.0
    assert loss[4] > epsilon
    assert not np.all(loss > epsilon)  # as printed this database discloses nothing
    assert np.any(loss > epsilon)


def test_a_decreasing_map_may_leave_the_bound_infinite():
    def slow(z):
        return 1.0 / np.sqrt(1.0 + z)

    z = np.logspace(0, 12, 200)
    assert slow(0.0) == 1.0 and np.all(np.diff(slow(z)) < 0) and slow(1e300) < 1e-100
    bounds = {name: (z * m(z)).max() for name, m in (
        ("slow", slow), ("reciprocal", ppm.reciprocal_map), ("threshold", ppm.threshold_map(3.0)),
    )}
    assert bounds["slow"] > 1e5
    assert bounds["reciprocal"] <= 1.0 and bounds["threshold"] <= 3.0


@pytest.mark.parametrize("count", [0, 1, 7, 1000])
def test_every_poisson_record_has_an_infinite_supremum(count):
    means = np.logspace(0, 9, 10)
    found = ppm.record_bounds(stats.poisson.logpmf(count, means)[:, None])[0]
    assert found > 1e8
    # over a public interval it is finite
    public = np.linspace(1.0, 50.0, 100)
    assert ppm.record_bounds(stats.poisson.logpmf(count, public)[:, None])[0] < 1e4


def test_one_extreme_record_moves_every_other_weight():
    bounds = np.array([2.0, 3.0, 4.0, 5.0, 50.0])  # nothing is refitted: theta has no part in it
    with_it = ppm.record_weights(bounds[None])[:4]
    without = ppm.record_weights(bounds[None, :4])
    assert np.all(np.abs(with_it - without)[1:] > 0.3)
    # a map of a record's own bound moves nobody
    mapped = [ppm.mapped_weights(b[None], ppm.reciprocal_map) for b in (bounds, bounds[:4])]
    assert np.array_equal(mapped[0][:4], mapped[1])


def test_the_linear_rule_leaves_hardly_a_weight_at_one():
    rng = np.random.default_rng(1)
    shares = []
    for n in (100, 10_000):
        bounds = rng.gamma(2.0, size=(1, n))
        assert np.count_nonzero(ppm.record_weights(bounds) == 1.0) == 1
        assert ppm.record_weights(bounds, scale=0.7).max() <= 0.7
        shares.append(np.count_nonzero(ppm.record_weights(bounds) < 0.99) / np.sqrt(n))
    assert shares[1] > 5 * shares[0]  # grows like n, where the assumption allows its root
    thresholded = ppm.mapped_weights(rng.gamma(2.0, size=(1, 10_000)), ppm.threshold_map(10.0))
    assert np.count_nonzero(thresholded < 0.99) < np.sqrt(10_000)


def allowed_divergence(n, rate, *, t=1.0, D=2.0, C3=1.0):
    """Average divergence of the records in Q_n that the printed theorem does not exclude."""
    tau = np.sqrt(2.0 / n)  # the smallest that the theorem admits
    return (D + 3 * t) * tau**2 / rate(n, tau, C3)


def test_the_contraction_theorem_leaves_the_other_records_free():
    n = 10.0 ** np.arange(2, 9)
    as_printed = allowed_divergence(n, lambda n, tau, C3: C3 * tau / np.sqrt(n))
    assert np.allclose(as_printed, as_printed[0]) and as_printed[0] > 1.0
    fixed_weight = allowed_divergence(n, lambda n, tau, C3: 0.5)  # one weight of 1/2 for all
    assert fixed_weight[-1] < 1e-6


def test_the_concentration_lemma_keeps_too_much():
    rng = np.random.default_rng(1)
    alpha, D, t, tau, n = 0.3, 2.0, 0.5, 0.2, 400
    root = np.sqrt(n) * tau**2
    # G = sqrt(n) (weighted mean - mean), with the mean at least -tau^2 as on the prior's ball
    mean = rng.uniform(-(tau**2), 0.0, 100_000)
    weighted = rng.normal(-alpha * (D + t) * tau**2, tau**2, 100_000)
    event = weighted <= -alpha * (D + t) * tau**2
    G = np.sqrt(n) * (weighted - mean)
    assert not np.all(G[event] <= -alpha * (D + t - 1) * root)
    assert np.all(G[event] <= -(alpha * (D + t) - 1) * root + 1e-12)


def test_a_second_moment_is_not_subadditive():
    a = b = np.array([1.0, -2.0, 3.0])
    assert np.mean((a + b) ** 2) > np.mean(a**2) + np.mean(b**2)
    assert np.mean((a + b) ** 2) <= 2 * np.mean(a**2) + 2 * np.mean(b**2)


def test_the_constant_of_the_lemma_needs_no_factor():
    rng = np.random.default_rng(1)
    lowest, C1, C3 = rng.uniform(0, 1, 1000), rng.uniform(0, 5, 1000), rng.uniform(0, 5, 1000)
    summed = (1 - lowest) ** 2 * (1 + C1**2) + C3**2 + 1
    assert np.all(summed <= 2 + C1**2 + C3**2)
    assert not np.all(summed <= 1.5 + C1**2 + C3**2)


def test_the_exponential_term_may_be_the_larger_one():
    # C1 = C3 = 0 and no weight below 1 gives the constant its smallest value
    D, t, x = 2.0, 0.1, 4.0
    lemma = 2.0 / ((D - 1 + t) ** 2 * x)
    assert np.exp(-t * x) > lemma
    assert np.exp(-5.0 * x) < 2.0 / ((D - 1 + 5.0) ** 2 * x)  # as it is at a larger t


def test_the_supremum_over_the_support_does_not_depend_on_n():
    far, spread = [], []
    for n in (10, 1_000, 100_000):
        posterior = ppm.GammaPoisson(np.full(n, 100)).posterior()
        # 1,000 has a density above 0 at every n, and |log p| is there what it is
        far.append(np.isfinite(posterior.logpdf(1_000.0)))
        means = posterior.ppf([0.005, 0.995])
        spread.append(np.ptp(stats.poisson.logpmf(110, means)))
    assert all(far)
    assert spread[2] < 0.05 * spread[0]  # what most of the posterior sees does contract


def test_tied_records_leave_no_finite_integral():
    def mass(total_weight, smallest):
        """Half-t prior times N(0 | b, s)^w, with b ~ N(0, 1) integrated out, over s > smallest."""

        def integrand(log_s):
            s, w = np.exp(log_s), total_weight
            # N(0 | b, s)^w is a multiple of N(0 | b, s / sqrt(w))
            constant = (2 * np.pi * s**2) ** (0.5 * (1 - w)) / np.sqrt(w)
            marginal = constant * stats.norm.pdf(0.0, scale=np.sqrt(1 + s**2 / w))
            return 2 * stats.t.pdf(s, 3) * marginal * s

        return integrate.quad(integrand, np.log(smallest), 3.0, limit=500)[0]

    steps = {w: [mass(w, 10.0**-k) for k in (4, 8, 12)] for w in (1.5, 2.0)}
    lighter, tied = np.diff(steps[1.5]), np.diff(steps[2.0])
    assert tied[1] == pytest.approx(tied[0], rel=0.01)  # the same again and again: no limit
    assert lighter[1] < 0.05 * lighter[0]


def test_a_scalar_weight_misses_its_target():
    synthesizer = ppm.GammaPoisson([3, 4, 4, 5, 5, 6, 7, 18], shape=1.0, rate=0.1)
    unweighted = synthesizer.fit(draws=4_000, random_seed=1)
    log_lik = synthesizer.log_likelihood(unweighted)
    target = 0.3 * ppm.local_bound(log_lik)
    weights = ppm.scalar_weights(log_lik, epsilon=2 * target)
    refitted = synthesizer.fit(weights, draws=4_000, random_seed=2)
    # on the draws it was computed from it hits; the wider posterior gives another bound
    assert ppm.local_bound(log_lik, weights) == pytest.approx(target)
    found = ppm.local_bound(synthesizer.log_likelihood(refitted), weights)
    assert found > 1.05 * target


def test_every_check_named_on_the_page_is_here():
    page = (ROOT / "book" / "errata.md").read_text("utf-8")
    named = set(re.findall(r"`(test_\w+)`", page))
    here = {name for name in globals() if name.startswith("test_")}
    assert named == here - {"test_every_check_named_on_the_page_is_here"}
    assert set(re.findall(r"^### (E\d+)\.", page, re.M)) == {f"E{k}" for k in range(1, 22)}
