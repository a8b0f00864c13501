"""ε, its composition and π; properties are in properties/test_privacy_arithmetic."""

import numpy as np
import pytest
from scipy import stats

import ppm


def test_epsilon_is_twice_the_bound_for_every_release():
    assert ppm.epsilon(10.1) == pytest.approx(20.2)
    assert ppm.epsilon(10.1, releases=20) == pytest.approx(404.0)  # the paper's m = 20
    assert ppm.epsilon(np.inf) == np.inf


# (W, m, δ): from dp-accounting 0.6.0. First its RdpAccountant, composing ZCDpEvent(W**2 / 8) over
# the orders 1.01, 1.02, ... 3 and 3, 3.1, ... 200; then its privacy loss distribution of the pair
# below, discretised at 1e-4 and composed with itself, the largest over the shares 0.05, 0.10, ...
# 0.95 of W above 0. It is no dependency of this project.
ACCOUNTANT = {
    (0.5, 20, 1e-6): (5.92682, 5.39008),
    (0.5, 100, 1e-6): (15.32798, 14.31227),
    (0.25, 20, 1e-6): (2.73346, 2.47326),
    (1.0, 20, 1e-6): (13.37638, 11.90562),
    (1.0, 20, 1e-9): (16.11900, 13.98152),
    (2.0, 20, 1e-6): (32.22172, 27.71175),
}


def two_results(width, share):
    """The pair of distributions on two results whose loss is ``share`` W and (share - 1) W."""
    up = share * width
    without = -np.expm1(up - width) / (np.exp(up) - np.exp(up - width))
    seen = np.array([without * np.exp(up), without])
    return np.stack([seen, 1 - seen], axis=1)


def composed_delta(width, share, releases, epsilon):
    """The δ that m releases of this pair need at ε, added up over all their results."""
    whole, without = two_results(width, share)
    up = np.arange(releases + 1)
    loss = up * np.log(whole[0] / without[0]) + (releases - up) * np.log(whole[1] / without[1])
    seen = stats.binom.pmf(up, releases, whole[0])
    return np.sum(seen * np.maximum(-np.expm1(epsilon - loss), 0.0))


def test_a_pair_of_two_results_has_a_loss_of_bounded_range():
    whole, without = two_results(0.5, 0.3)
    assert whole.sum() == pytest.approx(1) and without.min() > 0
    assert np.ptp(np.log(whole / without)) == pytest.approx(0.5)


def needed_delta(width, releases, epsilon):
    """The largest δ over all pairs of two results, from which any bounded range can be made."""
    return max(
        composed_delta(width, share, releases, epsilon) for share in np.linspace(0.005, 0.995, 199)
    )


BOUNDED = [
    *((*settings, accountant) for settings, accountant in ACCOUNTANT.items()),
    (0.5, 1, 1e-6, None),
    (0.5, 5, 1e-3, None),
    (3.0, 2, 0.05, None),
]


@pytest.mark.parametrize(("width", "releases", "delta", "accountant"), BOUNDED)
def test_bounded_range_is_never_below_an_exact_composition(width, releases, delta, accountant):
    epsilon = ppm.pdp.bounded_range_epsilon(width, releases, delta=delta)
    assert needed_delta(width, releases, epsilon) <= delta
    if accountant is not None:
        zero_concentrated, distribution = accountant
        assert distribution < zero_concentrated < epsilon < 1.2 * zero_concentrated
        # the exact composition is as tight as the accountant says
        assert needed_delta(width, releases, distribution - 0.01) > delta
        # with W²/16 for W²/8, without m, and with δ for 1/δ it promises too much
        rho = releases * width**2 / 8
        for less, exceptions in [(rho / 2, delta), (rho / releases, delta), (rho, 1 - delta)]:
            promised = less + 2 * np.sqrt(-less * np.log(exceptions))
            assert needed_delta(width, releases, promised) > 1.5 * delta


def test_bounded_range_adds_up_and_takes_the_smaller_of_two():
    bounded = ppm.pdp.bounded_range_epsilon
    assert bounded(0.5) == 0.5  # not twice a width, as it would be of a bound
    assert bounded(0.5, 20) == 10.0
    expected = 0.625 + 2 * np.sqrt(0.625 * 6 * np.log(10))
    assert bounded(0.5, 20, delta=1e-6) == pytest.approx(expected)
    # a single release, or a tiny δ, is cheaper without an exception
    assert bounded(0.5, delta=1e-6) == 0.5
    assert bounded(0.5, 20, delta=1e-300) == 10.0
    # more releases cost less than in proportion
    assert bounded(0.5, 40, delta=1e-6) < 2 * bounded(0.5, 20, delta=1e-6)
    assert bounded(np.inf) == bounded(np.inf, 20, delta=1e-6) == np.inf
    # a wide range overflows nowhere
    assert bounded(1e200, 3, delta=0.5) == 3e200
    assert bounded(7.9, 10**6, delta=0.5) < 7.9e6


def test_exceedance_counts_strictly_above_and_brackets_with_the_beta_quantiles():
    bounds = np.array([1.0, 2.0, 3.0, 4.0])
    found = ppm.exceedance(2 * bounds, 6.0)
    assert (found.exceeded, found.databases, found.estimate) == (1, 4, 0.25)
    # Clopper-Pearson in closed form
    assert found.low == pytest.approx(stats.beta.ppf(0.025, 1, 4))
    assert found.high == pytest.approx(stats.beta.ppf(0.975, 2, 3))
    # comparing Δ itself with ε would count differently
    assert ppm.exceedance(2 * bounds, 5.9).exceeded == 2 != np.sum(bounds > 5.9)
    # with an ε of each database's own
    assert ppm.exceedance([0.5, 3.0, 2.0, np.inf], [0.4, 4.0, 1.0, 7.0]).exceeded == 3


def test_the_interval_covers_and_a_normal_one_does_not():
    rng = np.random.default_rng(5)
    true, size, trials = 0.01, 200, 2_000
    exact = normal = 0
    for exceeded in rng.binomial(size, true, trials):
        found = ppm.exceedance(np.arange(size) < exceeded, 0.5)
        exact += found.low <= true <= found.high
        half = 1.96 * np.sqrt(found.estimate * (1 - found.estimate) / size)
        normal += found.estimate - half <= true <= found.estimate + half
    assert exact / trials >= 0.95
    assert normal / trials < 0.95
