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
