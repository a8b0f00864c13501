"""ε of a bounded range against exact compositions, and the interval of π against simulation."""

import numpy as np
import pytest
from scipy import stats

import ppm

# (W, m, δ): from dp-accounting 0.6.0. First its RdpAccountant, composing ZCDpEvent(W**2 / 8) over
# the orders 1.01, 1.02, ... 3 and 3, 3.1, ... 200; then its privacy loss distribution of the pair
# below, discretised at 1e-4 and composed with itself, the largest over the shares 0.05, 0.10, ...
# 0.95 of W above 0. It is no dependency of this project.
ACCOUNTANT = {
    (0.5, 20, 1e-6): (5.92682, 5.39008),
    (0.5, 100, 1e-6): (15.32798, 14.31227),
    (0.25, 20, 1e-6): (2.73346, 2.47326),
    (1.0, 20, 1e-9): (16.11900, 13.98152),
    (2.0, 20, 1e-6): (32.22172, 27.71175),
}


def composed_delta(width, share, releases, epsilon):
    """The δ that m releases of a pair of two results need at ε, added up over all their results.

    The loss of the two is ``share`` W and (share - 1) W.
    """
    high = share * width
    without = -np.expm1(high - width) / (np.exp(high) - np.exp(high - width))
    up = np.arange(releases + 1)
    loss = up * high + (releases - up) * (high - width)
    seen = stats.binom.pmf(up, releases, without * np.exp(high))
    return np.sum(seen * np.maximum(-np.expm1(epsilon - loss), 0.0))


def needed_delta(width, releases, epsilon):
    """The largest δ over all pairs of two results, from which any bounded range can be made."""
    shares = np.linspace(0.005, 0.995, 199)
    return max(composed_delta(width, share, releases, epsilon) for share in shares)


@pytest.mark.parametrize(("width", "releases", "delta"), [*ACCOUNTANT, (3.0, 2, 0.05)])
def test_bounded_range_is_never_below_an_exact_composition(width, releases, delta):
    epsilon = ppm.pdp.bounded_range_epsilon(width, releases, delta=delta)
    assert needed_delta(width, releases, epsilon) <= delta
    if (width, releases, delta) in ACCOUNTANT:
        zero_concentrated, distribution = ACCOUNTANT[width, releases, delta]
        assert distribution < zero_concentrated < epsilon < 1.2 * zero_concentrated
        # the exact composition is as tight as the accountant says
        assert needed_delta(width, releases, distribution - 0.01) > delta
        # with W²/16 for W²/8 it promises too much
        rho = releases * width**2 / 16
        promised = rho + 2 * np.sqrt(-rho * np.log(delta))
        assert needed_delta(width, releases, promised) > 1.5 * delta


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
