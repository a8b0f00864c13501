"""ε, π and the factor of safety."""

import numpy as np
import pytest
from scipy import stats

import ppm


def test_epsilon_is_twice_the_bound_for_every_release():
    assert ppm.epsilon(10.1) == pytest.approx(20.2)
    assert ppm.epsilon(10.1, releases=20) == pytest.approx(404.0)  # the paper's m = 20
    assert ppm.epsilon(np.inf) == np.inf


@pytest.mark.parametrize(
    ("bound", "releases", "name"),
    [(-1.0, 1, "bound"), (np.nan, 1, "bound"), (1.0, 0, "releases"), (1.0, 1.5, "releases")],
)
def test_epsilon_refuses(bound, releases, name):
    with pytest.raises(ValueError, match=f"^{name} must be"):
        ppm.epsilon(bound, releases)


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
    return np.array([without * np.exp(up), 1 - without * np.exp(up)]), np.array(
        [without, 1 - without]
    )


def composed_delta(width, share, releases, epsilon):
    """The δ that m releases of this pair need at ε, added up over all their results."""
    whole, without = two_results(width, share)
    up = np.arange(releases + 1)
    loss = up * np.log(whole[0] / without[0]) + (releases - up) * np.log(whole[1] / without[1])
    seen = stats.binom.pmf(up, releases, whole[0])
    return np.sum(seen * np.maximum(-np.expm1(epsilon - loss), 0.0))


def test_a_pair_of_two_results_has_a_loss_of_bounded_range():
    for width, share in [(0.5, 0.3), (4.0, 0.5), (1.0, 0.01)]:
        whole, without = two_results(width, share)
        assert whole.sum() == pytest.approx(1) and without.min() > 0
        assert np.ptp(np.log(whole / without)) == pytest.approx(width)


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
    assert bounded(0.5, 20, delta=1e-6) == pytest.approx(
        0.625 + 2 * np.sqrt(0.625 * 6 * np.log(10))
    )
    assert bounded(0.5, 20, delta=1e-6) == pytest.approx(6.50197, abs=1e-5)
    # a single release, or a tiny δ, is cheaper without an exception
    assert bounded(0.5, delta=1e-6) == 0.5
    assert bounded(0.5, 20, delta=1e-300) == 10.0
    # a smaller δ asks for more, more releases cost more, and less than in proportion
    assert bounded(0.5, 20, delta=1e-9) > bounded(0.5, 20, delta=1e-6)
    assert bounded(0.5, 20, delta=1e-6) < bounded(0.5, 40, delta=1e-6)
    assert bounded(0.5, 40, delta=1e-6) < 2 * bounded(0.5, 20, delta=1e-6)
    assert bounded(0.0, 20, delta=1e-6) == 0.0
    assert bounded(np.inf) == bounded(np.inf, 20, delta=1e-6) == np.inf


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((-1.0, 1, 0.0), "width"),
        ((np.nan, 1, 0.0), "width"),
        ((1.0, 0, 0.0), "releases"),
        ((1.0, 1.5, 0.0), "releases"),
        ((1.0, 1, -0.1), "delta"),
        ((1.0, 1, 1.0), "delta"),
        ((1.0, 1, np.nan), "delta"),
    ],
)
def test_bounded_range_refuses(arguments, name):
    width, releases, delta = arguments
    with pytest.raises(ValueError, match=f"^{name} must be"):
        ppm.pdp.bounded_range_epsilon(width, releases, delta=delta)


def test_exceedance_counts_strictly_above_and_brackets_with_the_beta_quantiles():
    bounds = np.array([1.0, 2.0, 3.0, 4.0])
    found = ppm.exceedance(bounds, 6.0)
    assert (found.exceeded, found.databases, found.estimate) == (1, 4, 0.25)
    # Clopper-Pearson in closed form
    assert found.low == pytest.approx(stats.beta.ppf(0.025, 1, 4))
    assert found.high == pytest.approx(stats.beta.ppf(0.975, 2, 3))
    # comparing Δ itself with ε would count differently
    assert ppm.exceedance(bounds, 5.9).exceeded == 2 != np.sum(bounds > 5.9)


def test_the_interval_covers_and_a_normal_one_does_not():
    rng = np.random.default_rng(5)
    true, size, trials = 0.01, 200, 2_000
    exact = normal = 0
    for exceeded in rng.binomial(size, true, trials):
        bounds = np.r_[np.full(exceeded, 2.0), np.full(size - exceeded, 0.5)]
        found = ppm.exceedance(bounds, 2.0)
        exact += found.low <= true <= found.high
        half = 1.96 * np.sqrt(found.estimate * (1 - found.estimate) / size)
        normal += found.estimate - half <= true <= found.estimate + half
    assert exact / trials >= 0.95
    assert normal / trials < 0.95


@pytest.mark.parametrize(
    "arguments",
    [([], 1.0), ([np.nan], 1.0), ([1.0], -1.0), ([1.0], 1.0, 1.0), ([1.0], 1.0, 0.0)],
)
def test_exceedance_refuses(arguments):
    bounds, epsilon, *confidence = arguments
    with pytest.raises(ValueError, match="must"):
        ppm.exceedance(bounds, epsilon, **({"confidence": confidence[0]} if confidence else {}))


def test_global_bound_ranges_on_either_side_of_a_thousand_records():
    assert ppm.pdp.global_bound(3.5, 6400) == pytest.approx((3.5, 3.675))
    assert ppm.pdp.global_bound(3.5, 400) == pytest.approx((3.675, 3.85))
    assert ppm.pdp.global_bound(3.5, 1000) == ppm.pdp.global_bound(3.5, 999)
    with pytest.raises(ValueError, match="^n must be"):
        ppm.pdp.global_bound(3.5, 0)


def test_loss_exceedance_counts_losses_above_epsilon_one_by_one():
    losses = np.array([0.5, 3.0, 2.0, np.inf])
    found = ppm.pdp.loss_exceedance(losses, 2.0)
    assert (found.exceeded, found.databases, found.estimate) == (2, 4, 0.5)  # 2 is not above 2
    assert found == ppm.exceedance(np.minimum(losses, 9) / 2, 2.0)
    own = ppm.pdp.loss_exceedance(losses, [0.4, 4.0, 1.0, 7.0])
    assert own.exceeded == 3 and own.epsilon == 7.0
    # half of each loss, as for bounds, would count fewer
    assert ppm.exceedance(np.minimum(losses, 9) / 4, 2.0).exceeded == 1


@pytest.mark.parametrize(
    ("losses", "epsilon", "message"),
    [
        ([], 1.0, "^losses must hold"),
        ([-1.0], 1.0, "^losses must hold"),
        ([1.0], np.nan, "^epsilon must hold"),
        ([1.0, 2.0], [1.0], "^epsilon must be one number"),
    ],
)
def test_wrong_losses_are_named(losses, epsilon, message):
    with pytest.raises(ValueError, match=message):
        ppm.pdp.loss_exceedance(losses, epsilon)


@pytest.mark.parametrize("width", [8.0, 1e155, 1e200, np.float64(1e308)])
def test_a_wide_range_costs_the_sum_and_overflows_nowhere(width):
    assert ppm.pdp.bounded_range_epsilon(width, 3, delta=0.5) == 3.0 * float(width)
    # below 8 a large number of releases makes the other way cheaper
    assert ppm.pdp.bounded_range_epsilon(7.9, 10**6, delta=0.5) < 7.9e6
