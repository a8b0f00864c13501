"""Properties of ε, exceedance, censoring and what an ε means to an attacker."""

import math

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from layouts import HUGE, TINY, matrices, reciprocal, unit_interval, vectors

import ppm
from ppm_book import survey

amounts = st.one_of(st.floats(0.0, 100.0), st.sampled_from([0.0, TINY, 1e-300, 1e300, np.inf]))
releases = st.integers(1, 1000)
levels = st.floats(0.01, 0.99)
deltas = st.one_of(st.just(0.0), st.floats(-300.0, -0.001).map(lambda power: 10.0**power))


# ---- composition ---------------------------------------------------------------------------------


@given(amounts, amounts, releases, releases)
def test_epsilon_adds_up_over_releases_and_grows_with_the_bound(one, other, few, more):
    assert ppm.epsilon(one, few + more) == pytest.approx(
        ppm.epsilon(one, few) + ppm.epsilon(one, more), rel=1e-12
    )
    low, high = sorted((one, other))
    assert ppm.epsilon(low, few) <= ppm.epsilon(high, few)
    assert ppm.epsilon(one) == 2.0 * one


@example(0.5, 1.0, 1, 2, 1e-6)
@given(st.one_of(st.floats(0.0, 8.0), amounts), amounts, releases, releases, deltas)
def test_epsilon_of_a_bounded_range_is_monotone_and_at_most_the_sum(one, other, m, n, delta):
    def total(width, releases, delta=delta):
        return ppm.pdp.bounded_range_epsilon(width, releases, delta=delta)

    low, high = sorted((one, other))
    slack = 1 + 1e-12
    assert 0 <= total(low, m) <= total(high, m) * slack
    assert total(one, min(m, n)) <= total(one, max(m, n)) * slack
    assert total(one, m) <= one * m
    assert total(one, m + n) <= (total(one, m, 0.0) + total(one, n, 0.0)) * slack
    assert total(one, m, delta / 2) >= total(one, m) / slack


@given(vectors(amounts, most=30), levels, st.data())
def test_an_exceedance_is_a_share_inside_its_interval_whatever_the_order(losses, level, data):
    own = data.draw(vectors(amounts, least=losses.size, most=losses.size))
    found = ppm.exceedance(losses, own, confidence=level)
    assert 0 <= found.low <= found.estimate <= found.high <= 1
    assert found.exceeded == sum(loss > epsilon for loss, epsilon in zip(losses, own, strict=True))
    order = list(data.draw(st.permutations(range(losses.size))))
    assert ppm.exceedance(losses[order], own[order], confidence=level) == found
    larger = ppm.exceedance(losses, own * 1.5 + 1.0, confidence=level)
    assert all(more <= less for more, less in zip(larger, found, strict=True))
    wider = ppm.exceedance(losses, own, confidence=(1 + level) / 2)
    assert wider.low <= found.low and found.high <= wider.high
    same = np.full(losses.size, own[0])
    assert ppm.exceedance(losses, same) == ppm.exceedance(losses, own[0])


# ---- beliefs -------------------------------------------------------------------------------------


@given(levels, amounts, amounts)
def test_beliefs_stay_probabilities_around_the_prior_and_move_more_with_epsilon(prior, one, other):
    low, high = sorted((one, other))
    near, far = (ppm.disclosure.belief_limits(prior, epsilon) for epsilon in (low, high))
    slack = 1e-12
    assert 0 <= far[0] <= near[0] + slack and near[0] <= prior + slack
    assert prior <= near[1] + slack and near[1] <= far[1] + slack <= 1 + 2 * slack
    # what speaks for the value speaks as much against its absence
    against = ppm.disclosure.belief_limits(1 - prior, low)
    assert against[0] == pytest.approx(1 - near[1], abs=1e-12)


@given(st.one_of(st.floats(0.0, 1.0), st.sampled_from([0.0, 1.0, TINY])), amounts, amounts)
def test_detection_is_a_probability_at_least_the_false_alarms_and_grows_with_epsilon(
    rate, one, other
):
    low, high = sorted((one, other))
    near, far = (float(ppm.disclosure.detection_limit(rate, epsilon)) for epsilon in (low, high))
    assert rate <= near + 1e-15 and near <= far + 1e-15 and far <= 1
    assert ppm.disclosure.detection_limit(rate, 0.0) == pytest.approx(rate, abs=1e-15)


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
    assert np.all(np.diff(terms) >= 0)
    assert np.ptp(terms) <= censor.width
    # the least favourable record comes as near to W as rounding lets it
    whole = np.ptp(censor.term(np.array([-np.inf, np.inf])))
    assert whole == pytest.approx(censor.width, rel=1e-9) and whole <= censor.width
    slopes = censor.slope(values)
    assert np.all((slopes >= 0) & (slopes <= 1))


@given(limits, st.floats(-100.0, 100.0), st.floats(-100.0, 100.0))
def test_no_term_moves_by_more_than_its_log_likelihood(censor, one, other):
    moved = abs(float(censor.term(np.float64(one)) - censor.term(np.float64(other))))
    assert moved <= abs(one - other) + 1e-13 * (1 + abs(one) + abs(other))


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


@given(limits, matrices(st.floats(-100.0, 100.0)), st.data())
def test_censored_terms_follow_their_records_and_oscillate_by_the_width_at_most(
    censor, log_lik, data
):
    weights = data.draw(unit_interval(log_lik.shape[1]))
    terms = censor.terms(log_lik, weights)
    assert np.array_equal(terms, censor.term(log_lik * weights))
    assert ppm.oscillation_bound(terms) <= censor.width
    order = data.draw(st.permutations(range(weights.size)))
    assert np.array_equal(censor.terms(log_lik[:, order], weights[order]), terms[:, order])
    assert 0 <= censor.share_clipped(log_lik, weights) <= 1
    impossible = np.full_like(log_lik, -np.inf)
    assert np.all(censor.terms(impossible, np.zeros(weights.size)) == censor.term(np.float64(0.0)))
    lowest = censor.terms(impossible)
    assert np.all((lowest >= censor.low) & (lowest <= censor.low + 1e-14 * (1 + abs(censor.high))))


references = matrices(st.floats(-40.0, 0.0), rows=(2, 6)).map(lambda values: values - 1.0 / 3.0)


@given(references, st.floats(0.01, 20.0), st.booleans(), st.floats(-100.0, 100.0))
def test_an_interval_has_its_width_and_moves_with_the_reference(reference, width, smooth, shift):
    found = ppm.censoring.censoring_interval(width, reference, smooth=smooth)
    assert found.width == pytest.approx(width, rel=1e-9)
    order = np.arange(reference.shape[1])[::-1]
    same = ppm.censoring.censoring_interval(width, reference[:, order], smooth=smooth)

    def loss(censor, values):
        change = censor.term(values) - values
        return np.abs(change - change.mean(axis=0)).mean()

    # where several places lose equally little, rounding may choose
    assert loss(same, reference) == pytest.approx(loss(found, reference), rel=1e-6, abs=1e-9)
    moved = reference + shift
    assume(not np.array_equal(moved, np.rint(moved)))
    again = ppm.censoring.censoring_interval(width, moved, smooth=smooth)
    assert loss(again, moved) == pytest.approx(loss(found, reference), rel=1e-3, abs=1e-3)


@given(references, st.floats(0.01, 20.0), st.floats(0.0, 0.5))
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


# ---- numbers of any kind -------------------------------------------------------------------------

PLACED = [[-1.1, -2.0], [-1.5, -2.1]]
SETTINGS = {
    "bound": ppm.epsilon,
    "width": ppm.pdp.bounded_range_epsilon,
    "delta": lambda v: ppm.pdp.bounded_range_epsilon(1.0, delta=v),
    "releases": lambda v: ppm.epsilon(1.0, v),
    "epsilon": lambda v: ppm.exceedance([1.0], v),
    "confidence": lambda v: ppm.exceedance([1.0], 1.0, confidence=v),
    "low": lambda v: ppm.Censoring(v, 1e9),
    "high": lambda v: ppm.Censoring(-5.0, v),
    "scale": lambda v: ppm.record_weights([1.0], scale=v),
    "shift": lambda v: ppm.record_weights([1.0], shift=v),
    "truncate_at": lambda v: ppm.record_weights([1.0], truncate_at=v),
    "limit": ppm.weights.capped_map,
    "radius": lambda v: ppm.risk.identification_risks([1.0], radius=v),
    "shape": lambda v: ppm.GammaPoisson([1], shape=v),
    "rate": lambda v: ppm.GammaPoisson([1], rate=v),
    "draws": lambda v: ppm.GammaPoisson([1]).fit(draws=min(v, 10) if type(v) is int else v),
    "random_seed": lambda v: ppm.GammaPoisson([1]).fit(draws=1, random_seed=v),
    "tail_probability": lambda v: ppm.tail_bound(np.ones((9, 1)), tail_probability=v),
    "lowest": lambda v: survey.income_from_power([1.0], lowest=v),
    "power": lambda v: survey.income_from_power([1.0], v),
    "share_clipped": lambda v: ppm.censoring.censoring_limits(1.0, PLACED, share_clipped=v),
    "interval's width": lambda v: ppm.censoring.censoring_interval(v, PLACED),
    "smooth": lambda v: ppm.Censoring(-3.0, -1.0, v),
    "relative": lambda v: ppm.risk.identification_risks([1.0], radius=1.0, relative=v),
    "target epsilon": lambda v: ppm.scalar_weights([1.0], epsilon=v),
    "resamples": lambda v: ppm.utility.resample(
        [1.0, 2.0], "mean", resamples=min(v, 10) if type(v) is int else v
    ),
    "rank_powers": lambda v: ppm.utility.propensity_score(
        [1.0, 2.0], [2.0, 3.0], rank_powers=min(v, 10) if type(v) is int else v
    ),
    "statistic": lambda v: ppm.utility.resample([1.0, 2.0], v),
    "limits": lambda v: ppm.histogram_release([1.0], v, bins=4, epsilon=1.0),
    "secure_noise": lambda v: ppm.histogram_release(
        [1.0], (0, 1), bins=1, epsilon=1.0, secure_noise=v
    ),
    "bins": lambda v: ppm.histogram_release(
        [1.0], (0, 1), bins=min(v, 10) if type(v) is int else v, epsilon=1.0
    ),
}
anything = st.one_of(
    st.none(), st.booleans(), st.integers(), st.integers(min_value=10**300), st.floats(),
    st.complex_numbers(), st.fractions(), st.decimals(), st.text(max_size=5), st.binary(max_size=3),
    st.just(-(16**5000)), st.sampled_from([np.float32(0.5), np.int8(3), np.bool_(True), np.nan]),
    st.lists(st.floats(), max_size=3), st.just({}), st.just(np.datetime64("2017-01-01")),
    st.just(object), st.just(np.ma.masked), st.just(np.array(1.0)), st.just(np.array([1.0, 2.0])),
)


@pytest.mark.parametrize("name", sorted(SETTINGS.keys() - {"statistic"}))
@given(anything)
def test_any_setting_is_taken_or_refused_by_its_name_in_one_line(name, value):
    try:
        SETTINGS[name](value)
    except ValueError as error:
        told = str(error)
        assert name.split()[-1] in told and "\n" not in told and len(told) < 400


OUT_OF_RANGE = [
    ("bound", -1.0), ("width", -1.0), ("delta", -0.1), ("delta", 1.0), ("releases", 0),
    ("releases", 1.5), ("epsilon", -1.0), ("epsilon", [1.0, 2.0]), ("confidence", 1.0),
    # closer or farther out, terms are mostly rounding, and quadrature takes forever
    ("low", -1.7e308), ("low", 1e9), ("high", 2e9), ("high", -5.0), ("high", -5.0 + 1e-9),
    ("scale", 0.0), ("shift", np.inf), ("truncate_at", 0.0), ("limit", 0.0), ("radius", 0.0),
    ("share_clipped", -0.1), ("share_clipped", 0.6), ("smooth", "no"), ("relative", 1),
    ("target epsilon", -1.0), ("resamples", 1), ("rank_powers", 0), ("bins", 0), ("bins", True),
    ("secure_noise", "yes"), ("random_seed", -1), ("statistic", "mode"), ("limits", 3.0),
    ("limits", (3.0, 3.0)), ("limits", (0.0, np.inf)), ("interval's width", 0.0),
]


@pytest.mark.parametrize(("name", "value"), OUT_OF_RANGE)
def test_a_setting_out_of_range_is_refused_by_its_name_in_one_line(name, value):
    with pytest.raises(ValueError, match=rf"^{name.split()[-1]} must ") as error:
        SETTINGS[name](value)
    assert "\n" not in str(error.value)


B, Y, R = [1.0, 2.0], [1.0, 2.0, 3.0], [[1.0, 2.0, 3.0]]
errors, score = ppm.utility.release_errors, ppm.utility.propensity_score
# what holds no numbers, or hides some, is in test_odd_inputs
REFUSED = [
    ("bounds must hold one bound for every record", lambda: ppm.record_weights([-1.0, 1.0])),
    ("bounds must hold one bound for every record", lambda: ppm.mapped_weights([-1.0], reciprocal)),
    ("bounds must hold one bound for every", lambda: ppm.scalar_weights([-1.0], epsilon=1.0)),
    ("mapping must be decreasing", lambda: ppm.mapped_weights(B, lambda z: z / 10)),
    ("mapping must return one", lambda: ppm.mapped_weights(B, lambda z: -z)),
    ("mapping must return one", lambda: ppm.mapped_weights(B, lambda z: 0.5)),
    ("mapping must be a function", lambda: ppm.mapped_weights(B, 0.5)),
    ("losses must hold", lambda: ppm.exceedance([-1.0], 1.0)),
    ("synthetic must be", lambda: ppm.risk.match_risk(Y, [B], radius=0.1)),
    ("groups must have", lambda: ppm.risk.match_risk(Y, R, radius=0.1, groups=B)),
    ("groups must have", lambda: ppm.histogram_release(Y, (0, 4), bins=4, epsilon=1.0, groups=B)),
    ("values must be finite", lambda: ppm.utility.resample([1.0], "mean")),
    ("confidential and synthetic must", lambda: score(Y, [B, B])),
    ("known must have one row", lambda: score(B, Y, known=B)),
    ("reference must be a list with", lambda: ppm.utility.compare_distributions([0.0], {})),
    ("releases must be finite numbers of shape", lambda: errors(Y, Y)),
    ("groups: a must", lambda: errors(Y, R, groups={"a": B})),
    ("groups: no group of a has 50", lambda: errors(Y, R, groups={"a": Y})),
    *((told, lambda place=place, values=values: place(1.0, values)) for told, values in (
        ("reference must have two draws or more", [[-1.1, -2.0]]),
        ("reference must hold finite numbers", [[-1.1], [-np.inf]]),
        ("reference must hold log-likelihoods", [[3.0], [5.0]]),
    ) for place in (ppm.censoring.censoring_interval, ppm.censoring.censoring_limits)),
]


@pytest.mark.parametrize(("told", "call"), REFUSED)
def test_arrays_that_do_not_fit_are_refused_in_one_line_by_their_name(told, call):
    with pytest.raises(ValueError, match=f"^{told}") as error:
        call()
    assert "\n" not in str(error.value)
