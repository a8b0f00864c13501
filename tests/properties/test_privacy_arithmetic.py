"""ε and exceedance against formulas, exact compositions and simulation; terms within limits."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from layouts import HUGE, TINY, matrices, unit_interval, vectors
from scipy import stats

import ppm
from ppm.release.limits import limits_and_weight

amounts = st.one_of(
    st.floats(0.0, 100.0), st.sampled_from([0.0, TINY, 1e-300, 1e300, np.inf])
)
levels = st.floats(0.01, 0.99)
deltas = st.one_of(
    st.just(0.0), st.floats(-300.0, -0.001).map(lambda power: 10.0**power)
)


@example(0.5, 20, 1e-6)
@example(7.9, 10**6, 0.5)
@given(st.one_of(st.floats(0.0, 8.0), amounts), st.integers(1, 1000), deltas)
def test_epsilon_is_twice_the_bound_per_release_or_the_smaller_of_two_for_a_bounded_range(
    amount, releases, delta
):
    assert ppm.epsilon(amount, releases) == 2.0 * amount * releases
    assert ppm.epsilon(amount) == 2.0 * amount
    assert ppm.pdp.bounded_range_epsilon(amount, releases) == amount * releases
    rho = releases * amount * amount / 8
    second = rho + 2 * math.sqrt(rho * -math.log(delta)) if delta else math.inf
    found = ppm.pdp.bounded_range_epsilon(amount, releases, delta=delta)
    assert found == pytest.approx(min(amount * releases, second), rel=1e-12, abs=0)


@given(vectors(amounts, most=30), levels, st.data())
def test_an_exceedance_counts_losses_above_epsilon_between_its_beta_quantiles(
    losses, level, data
):
    own = data.draw(vectors(amounts, least=losses.size, most=losses.size))
    found = ppm.exceedance(losses, own, confidence=level)
    above, size = sum(map(float.__gt__, losses.tolist(), own.tolist())), losses.size
    assert (found.exceeded, found.databases, found.estimate) == (
        above,
        size,
        above / size,
    )
    # Clopper-Pearson in closed form
    tail = (1 - level) / 2
    low = stats.beta.ppf(tail, above, size - above + 1) if above else 0.0
    high = stats.beta.ppf(1 - tail, above + 1, size - above) if above < size else 1.0
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-9)
    same = np.full(size, own[0])
    assert ppm.exceedance(losses, same) == ppm.exceedance(losses, own[0])


# ---- limits --------------------------------------------------------------------------------------

any_limits = st.tuples(st.floats(-50.0, 50.0), st.floats(1e-5, 50.0)).map(
    lambda given: ppm.Limits(given[0], given[0] + given[1])
)
ends = st.sampled_from([-np.inf, np.inf, -HUGE, HUGE, TINY])
anywhere = st.one_of(st.floats(-100.0, 100.0), ends)


@given(any_limits, vectors(anywhere, most=20))
def test_terms_stay_within_their_limits_and_in_the_order_of_the_log_likelihoods(
    limits, values
):
    terms = limits(np.sort(values))
    assert np.all((terms >= limits.low) & (terms <= limits.high))
    assert np.all(np.diff(terms) >= 0) and np.ptp(terms) <= limits.width
    # the least favourable record reaches W
    assert np.ptp(limits([-np.inf, np.inf])) == limits.width
    inside = (values >= limits.low) & (values <= limits.high)
    assert np.array_equal(limits(values)[inside], values[inside])


@given(any_limits, matrices(anywhere), st.data())
def test_terms_are_those_of_the_weighted_values_and_weight_0_has_none(
    limits, log_lik, data
):
    weights = data.draw(unit_interval(log_lik.shape[1]))
    terms = ppm.Terms(weights, limits=limits)(log_lik)
    # 0 · ∞ is 0
    products = weights * np.where(weights > 0, log_lik, 0.0)
    expected = np.where(weights > 0, limits(products), 0.0)
    assert np.array_equal(terms, expected)
    assert ppm.oscillation_bound(terms) <= limits.width


@given(
    matrices(st.floats(-40.3, -0.3), rows=(2, 6)),
    st.floats(0.01, 20.0),
    st.floats(0.0, 0.5),
)
def test_a_censoring_weight_is_the_largest_with_which_the_width_holds_enough(
    reference, width, outside
):
    find, share = limits_and_weight, {"share_clipped": outside}
    limits, weight = find(width, reference, **share)
    assert 0 < weight <= 1 and limits.width == pytest.approx(width)
    values = np.sort(reference, axis=None)
    inside = math.ceil((1 - outside) * values.size - 1e-9)
    shortest = (values[inside - 1 :] - values[: values.size - inside + 1]).min()
    assert weight * shortest <= width * (1 + 1e-12)
    assert weight == 1 or weight * shortest == pytest.approx(width)
    _, double = find(2.0 * width, reference, **share)
    assert double == pytest.approx(min(1.0, 2 * weight))


# ---- against an accountant and a simulation -----------------------------------------------------

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
