"""Properties of bounds, oscillations and weights, for any matrix of log-likelihoods."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from layouts import (
    ANY_SIZE,
    HUGE,
    ORDINARY,
    TINY,
    matrices,
    reciprocal,
    threshold,
    unit_interval,
    vectors,
)

import ppm
from ppm.lipschitz import draw_maxima, read_once

log_liks = matrices(ANY_SIZE)
mostly_possible = matrices(st.one_of(ORDINARY, ORDINARY, ORDINARY, st.just(-np.inf)))
bounds = vectors(st.one_of(st.floats(0.0, 50.0), st.sampled_from([0.0, TINY, 1e-300, 1e300, HUGE])))
some_infinite = vectors(st.one_of(st.floats(0.0, 50.0), st.just(np.inf)))


def weighted_by_hand(log_lik, weights):
    """The definition with loops: (largest, oscillation) of every record."""
    found = []
    for record, weight in enumerate(weights):
        column = [float(value) for value in log_lik[:, record]]
        if weight == 0:
            found.append((0.0, 0.0))
        elif not np.all(np.isfinite(column)):
            found.append((np.inf, np.inf))
        else:
            spread = max(column) - min(column)
            found.append((weight * max(map(abs, column)), weight * spread))
    return np.array(found).T


def totals(log_lik):
    """Sum over the records of every draw."""
    return read_once(log_lik).total


# ---- bounds --------------------------------------------------------------------------------------


@given(mostly_possible, st.data())
def test_bounds_and_oscillations_are_those_of_the_definition(log_lik, data):
    weights = data.draw(unit_interval(log_lik.shape[1]))
    largest, spread = weighted_by_hand(log_lik, weights)
    assert np.array_equal(ppm.record_bounds(log_lik, weights), largest)
    assert np.array_equal(ppm.record_oscillations(log_lik, weights), spread)
    assert ppm.local_bound(log_lik, weights) == largest.max()
    assert ppm.oscillation_bound(log_lik, weights) == spread.max()


@given(log_liks, st.data())
def test_records_in_another_order_have_their_bounds_in_that_order(log_lik, data):
    records = log_lik.shape[1]
    weights = data.draw(unit_interval(records))
    order = data.draw(st.permutations(range(records)))
    for function in (ppm.record_bounds, ppm.record_oscillations):
        found = function(log_lik, weights)
        assert np.array_equal(function(log_lik[:, order], weights[order]), found[order])


@given(log_liks, st.data())
def test_draws_that_are_repeated_or_in_another_order_change_no_bound(log_lik, data):
    weights = data.draw(unit_interval(log_lik.shape[1]))
    rows = data.draw(st.permutations(range(len(log_lik))))
    rows = [*rows, *data.draw(st.lists(st.sampled_from(rows), max_size=5))]
    for function in (ppm.record_bounds, ppm.record_oscillations):
        assert np.array_equal(function(log_lik[rows], weights), function(log_lik, weights))
    assert np.array_equal(draw_maxima(log_lik[rows], weights), draw_maxima(log_lik, weights)[rows])
    assert draw_maxima(log_lik, weights).max() == ppm.local_bound(log_lik, weights)


@given(mostly_possible, st.data())
def test_more_draws_or_larger_weights_never_lower_a_bound(log_lik, data):
    weights = data.draw(unit_interval(log_lik.shape[1]))
    lower = weights * data.draw(unit_interval(weights.size))
    fewer = data.draw(st.integers(1, len(log_lik)))
    for function in (ppm.record_bounds, ppm.record_oscillations):
        found = function(log_lik, weights)
        assert np.all(function(log_lik[:fewer], weights) <= found)
        assert np.all(function(log_lik, lower) <= found)


@given(log_liks, st.data())
def test_an_oscillation_is_at_most_twice_the_bound(log_lik, data):
    weights = data.draw(unit_interval(log_lik.shape[1]))
    largest = ppm.record_bounds(log_lik, weights)
    found = ppm.record_oscillations(log_lik, weights)
    # each side is rounded once; a denormal has no more digits than that
    with np.errstate(over="ignore"):
        # a range beyond the largest number is infinite, at any weight
        told = np.isfinite(np.ptp(np.where(np.isfinite(log_lik), log_lik, 0.0), axis=0))
        assert np.all(found[told] <= 2.0 * largest[told] * (1 + 1e-15) + TINY)
        assert np.all(found >= 0)
    total = ppm.oscillation_bound(log_lik, weights)
    if told.all():
        assert total <= ppm.epsilon(ppm.local_bound(log_lik, weights)) * (1 + 1e-15) + TINY
    one_sign = -np.abs(log_lik)
    assert np.all(
        ppm.record_oscillations(one_sign, weights) <= ppm.record_bounds(one_sign, weights)
    )


@given(log_liks, st.data())
def test_no_weights_are_weights_of_1_and_weight_0_is_a_record_left_out(log_lik, data):
    ones = np.ones(log_lik.shape[1])
    for function in (ppm.record_bounds, ppm.record_oscillations, draw_maxima):
        assert np.array_equal(function(log_lik), function(log_lik, ones))
    kept = data.draw(st.lists(st.booleans(), min_size=ones.size, max_size=ones.size).map(np.array))
    if kept.any():
        weights = kept.astype(float)
        assert ppm.local_bound(log_lik, weights) == ppm.local_bound(log_lik[:, kept])
        assert np.array_equal(draw_maxima(log_lik, weights), draw_maxima(log_lik[:, kept]))


@given(matrices(), st.sampled_from(["float32", "float16", "int8", "int16", "int64", "uint8"]))
def test_other_types_of_numbers_are_what_they_are_as_floats(log_lik, kind):
    stored = np.abs(log_lik).astype(kind) if kind == "uint8" else log_lik.astype(kind)
    exact = stored.astype(np.float64)
    for function in (ppm.record_bounds, ppm.record_oscillations, draw_maxima, totals):
        assert np.array_equal(function(stored), function(exact))


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "int64"])
def test_the_smallest_whole_number_of_a_type_has_a_size(kind):
    # whose absolute value the type itself cannot hold
    smallest = np.iinfo(kind).min
    assert ppm.local_bound(np.array([[smallest]], dtype=kind)) == -float(smallest)
    assert draw_maxima(np.array([[smallest]], dtype=kind)).item() == -float(smallest)


@pytest.mark.parametrize("kind", ["float16", "float32"])
def test_a_sum_over_records_is_no_less_exact_than_a_float(kind):
    # 200 records of -700 nats are beyond what 16 bits can hold
    row = np.full((1, 200), -700.1, dtype=kind)
    assert totals(row).item() == row.astype(np.float64).sum()


# ---- weights -------------------------------------------------------------------------------------

RULES = {
    "record_weights": lambda b, **cut: ppm.record_weights(b, **cut),
    "compressed": lambda b, **cut: ppm.record_weights(b, scale=0.7, shift=-0.3, **cut),
    "stretched": lambda b, **cut: ppm.record_weights(b, scale=1e300, shift=-1e299, **cut),
    "reciprocal": lambda b, **cut: ppm.mapped_weights(b, reciprocal, **cut),
    "threshold": lambda b, **cut: ppm.mapped_weights(b, threshold(3.0), **cut),
    "capped": lambda b, **cut: ppm.mapped_weights(b, ppm.weights.capped_map(2.0), **cut),
}


@pytest.mark.parametrize("rule", RULES)
@given(st.one_of(bounds, some_infinite), st.data())
def test_weights_lie_in_0_to_1_fall_with_the_bound_and_follow_their_records(rule, found, data):
    weights = RULES[rule](found)
    assert np.all((weights >= 0) & (weights <= 1))
    order = np.argsort(found, kind="stable")
    assert np.all(np.diff(weights[order]) <= 0)
    assert not weights[np.isinf(found)].any()
    places = data.draw(st.permutations(range(found.size)))
    assert np.array_equal(RULES[rule](found[places]), weights[places])


@pytest.mark.parametrize("rule", RULES)
@given(st.one_of(bounds, some_infinite), st.floats(0.01, 20.0))
def test_truncation_leaves_no_weighted_bound_above_m_and_all_other_weights_as_they_are(
    rule, found, limit
):
    whole, cut = RULES[rule](found), RULES[rule](found, truncate_at=limit)
    # 0 · inf is no bound: what takes no part has none
    weighted = np.where(whole > 0, whole, 1.0) * np.where(whole > 0, found, 0.0)
    assert np.array_equal(cut, np.where(weighted > limit, 0.0, whole))


@given(bounds, st.floats(0.05, 1e3))
def test_a_cap_holds_to_the_last_digit(found, limit):
    weights = ppm.weights.capped_map(limit)(found)
    with np.errstate(under="ignore"):
        assert np.all(weights * found <= limit)


@given(bounds, st.sampled_from([0.0, TINY, 1e-3, 1.0, 5.0, 1e300, HUGE]))
def test_one_weight_for_all_is_in_0_to_1_and_keeps_twice_the_bound_within_epsilon(found, epsilon):
    weights = ppm.scalar_weights(found, epsilon=epsilon)
    assert np.unique(weights).size == 1 and 0 <= weights[0] <= 1
    assert 2.0 * weights[0] * float(found.max()) <= epsilon * (1 + 1e-12) + 2 * TINY


@given(st.floats(0.0, 50.0), st.integers(1, 6))
def test_records_alike_have_no_risk_among_them(bound, records):
    assert np.all(ppm.record_weights(np.full(records, bound)) == 1.0)


@given(vectors(st.floats(-1e3, 1e3)), st.floats(1e-6, 3.0), st.booleans(), st.data())
def test_count_weights_follow_their_records(values, radius, relative, data):
    groups = data.draw(st.lists(st.sampled_from("ab"), min_size=values.size, max_size=values.size))
    settings = {"radius": radius, "relative": relative}
    weights = ppm.count_weights(values, groups=groups, **settings)
    assert np.all((weights >= 0) & (weights <= 1))
    places = list(data.draw(st.permutations(range(values.size))))
    moved = ppm.count_weights(values[places], groups=np.array(groups)[places], **settings)
    assert np.array_equal(moved, weights[places])
