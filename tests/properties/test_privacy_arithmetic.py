"""ε and exceedance against their formulas, properties of censoring, and what does not fit."""

import math

import numpy as np
import pytest
import xarray as xr
from hypothesis import assume, example, given
from hypothesis import strategies as st
from layouts import HUGE, TINY, matrices, unit_interval, vectors
from scipy import stats

import ppm

amounts = st.one_of(st.floats(0.0, 100.0), st.sampled_from([0.0, TINY, 1e-300, 1e300, np.inf]))
levels = st.floats(0.01, 0.99)
deltas = st.one_of(st.just(0.0), st.floats(-300.0, -0.001).map(lambda power: 10.0**power))


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
def test_an_exceedance_counts_losses_above_epsilon_between_its_beta_quantiles(losses, level, data):
    own = data.draw(vectors(amounts, least=losses.size, most=losses.size))
    found = ppm.exceedance(losses, own, confidence=level)
    above, size = sum(map(float.__gt__, losses.tolist(), own.tolist())), losses.size
    assert (found.exceeded, found.databases, found.estimate) == (above, size, above / size)
    # Clopper-Pearson in closed form
    tail = (1 - level) / 2
    low = stats.beta.ppf(tail, above, size - above + 1) if above else 0.0
    high = stats.beta.ppf(1 - tail, above + 1, size - above) if above < size else 1.0
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-9)
    same = np.full(size, own[0])
    assert ppm.exceedance(losses, same) == ppm.exceedance(losses, own[0])


# ---- censoring -----------------------------------------------------------------------------------

limits = st.builds(
    lambda low, width, smooth: ppm.Censoring(low, low + width, smooth),
    st.floats(-50.0, 50.0), st.floats(1e-5, 50.0), st.booleans(),
)
anywhere = st.one_of(
    st.floats(-100.0, 100.0), st.sampled_from([-np.inf, np.inf, -HUGE, HUGE, TINY])
)


@given(limits, vectors(anywhere, most=20))
def test_terms_stay_within_their_limits_and_in_the_order_of_the_log_likelihoods(censor, values):
    terms = censor.term(np.sort(values))
    assert np.all((terms >= censor.low) & (terms <= censor.high))
    assert np.all(np.diff(terms) >= 0) and np.ptp(terms) <= censor.width
    # the least favourable record comes as near to W as rounding lets it
    whole = np.ptp(censor.term(np.array([-np.inf, np.inf])))
    assert whole == pytest.approx(censor.width, rel=1e-9) and whole <= censor.width
    slopes = censor.slope(values)
    assert np.all((slopes >= 0) & (slopes <= 1))


@given(limits, st.floats(-3.0, 3.0))
def test_a_slope_is_that_of_small_differences(censor, place):
    z = censor.low + censor.width * (0.5 + place)
    step = 1e-6 * censor.width
    ends = z - step, z + step
    if not censor.smooth:
        # a corner has no slope
        assume(not any(ends[0] <= limit <= ends[1] for limit in (censor.low, censor.high)))
    low, high = (float(censor.term(np.float64(end))) for end in ends)
    # rounding of the terms, by the step
    error = 8 * np.spacing(max(abs(censor.low), abs(censor.high), abs(z))) / step
    assert censor.slope(z) == pytest.approx((high - low) / (ends[1] - ends[0]), abs=1e-5 + error)


@given(limits, matrices(anywhere), st.data())
def test_terms_are_those_of_the_weighted_values_and_weight_0_is_a_constant(censor, log_lik, data):
    weights = data.draw(unit_interval(log_lik.shape[1]))
    terms = censor.terms(log_lik, weights)
    # 0 · ∞ is 0
    expected = censor.term(weights * np.where(weights > 0, log_lik, 0.0))
    assert np.array_equal(terms, expected)
    assert ppm.oscillation_bound(terms) <= censor.width
    assert 0 <= censor.share_clipped(log_lik, weights) <= 1


@given(
    matrices(st.floats(-40.0, 0.0), rows=(2, 6)).map(lambda values: values - 1.0 / 3.0),
    st.floats(0.01, 20.0), st.floats(0.0, 0.5),
)
def test_a_censoring_weight_is_the_largest_with_which_the_width_holds_enough(
    reference, width, outside
):
    limits, weight = ppm.censoring.censoring_limits(
        width, reference, share_clipped=outside, smooth=False
    )
    assert 0 < weight <= 1 and limits.width == pytest.approx(width)
    values = np.sort(reference, axis=None)
    inside = math.ceil((1 - outside) * values.size - 1e-9)
    shortest = min(
        values[start + inside - 1] - values[start] for start in range(values.size - inside + 1)
    )
    assert weight * shortest <= width * (1 + 1e-12)
    assert weight == 1 or weight * shortest == pytest.approx(width)
    smooth, double = ppm.censoring.censoring_limits(2.0 * width, reference, share_clipped=outside)
    assert double == weight and smooth.smooth


# ---- what is refused by more than its own range (the rest is in test_messages) -------------------


B, Y, R = [1.0, 2.0], [1.0, 2.0, 3.0], [[1.0, 2.0, 3.0]]
bounds, errors = ppm.record_bounds, ppm.utility.release_errors
score, mapped = ppm.utility.propensity_score, ppm.mapped_weights
REFUSED = [
    ("log_lik has the dimensions", lambda: bounds(xr.DataArray(R, dims=("a", "b")))),
    ("log_lik has the dimensions", lambda: bounds(xr.DataArray([R], dims=("draw", "a", "b")))),
    ("log_lik must be one array; got a Dataset", lambda: bounds(xr.Dataset({"y": ("draw", Y)}))),
    ("tail_probability=1e-310 with .* needs at least inf draws",
     lambda: ppm.tail_bound(R, tail_probability=1e-310)),
    ("mapping must be decreasing", lambda: mapped(B, lambda z: z / 10)),
    ("mapping must return one", lambda: mapped(B, lambda z: -z)),
    ("mapping must return one", lambda: mapped(B, lambda z: 0.5)),
    ("delta must ", lambda: ppm.pdp.bounded_range_epsilon(1.0, delta=1.0)),
    ("epsilon must be one number, or one for each", lambda: ppm.exceedance(Y, B)),
    # closer or farther out, terms are mostly rounding, and quadrature takes forever
    ("high must ", lambda: ppm.Censoring(-5.0, -5.0 + 1e-9)),
    ("high must ", lambda: ppm.Censoring(-5.0, 2e9)),
    ("epsilon must ", lambda: ppm.histogram_release(Y, (0, 9), bins=3, epsilon=31.0)),
    ("synthetic must be", lambda: ppm.risk.match_risk(Y, [B], radius=0.1)),
    ("values must be finite", lambda: ppm.utility.resample([1.0], "mean")),
    ("confidential and synthetic must", lambda: score(Y, [B, B])),
    ("known must have one row", lambda: score(B, Y, known=B)),
    ("reference must be a list with", lambda: ppm.utility.compare_distributions([0.0], {})),
    ("releases must be finite numbers of shape", lambda: errors(Y, [B])),
    ("groups: no group of a has 50", lambda: errors(Y, R, groups={"a": Y})),
]


@pytest.mark.parametrize(("told", "call"), REFUSED)
def test_what_does_not_fit_together_is_refused_in_one_line_by_its_name(told, call):
    with pytest.raises(ValueError, match=f"^{told}") as error:
        call()
    assert "\n" not in str(error.value)
