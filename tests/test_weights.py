"""Weights against the paper's formula, record by record; properties are in test_bounds_and_weights.

Refusals are in properties/test_privacy_arithmetic.
"""

import numpy as np
import pytest
from layouts import reciprocal, threshold

import ppm

BOUNDS = np.array([1.0, 2.0, 3.0, 5.0])
RISK = np.array([0.0, 0.25, 0.5, 1.0])
COUNTS = np.array([3, 5, 4, 6, 20])


@pytest.mark.parametrize(
    ("scale", "shift"), [(1.0, 0.0), (0.7, 0.0), (0.6, -0.1), (0.5, -0.3), (1.0, 0.2), (2.0, 0.0)]
)
def test_scale_and_shift_then_cut_to_the_unit_interval(scale, shift):
    weights = ppm.record_weights(BOUNDS, scale=scale, shift=shift)
    uncut = scale * (1 - RISK) + shift
    assert np.allclose(weights, np.minimum(1, np.maximum(0, uncut)))
    # shifting before scaling is another rule
    if shift and scale != 1:
        assert not np.allclose(weights, np.clip(scale * (1 - RISK + shift), 0, 1))


def test_truncation_removes_what_is_above_m_and_leaves_the_rest():
    # weighted bounds are 1, 1.5, 1.5, 0
    assert ppm.record_weights(BOUNDS, truncate_at=1.4).tolist() == [1.0, 0.0, 0.0, 0.0]
    assert np.allclose(ppm.record_weights(BOUNDS, truncate_at=1.5), 1 - RISK)


def test_a_non_finite_record_gets_0_and_leaves_the_scaling_alone():
    weights = ppm.record_weights([*BOUNDS, np.inf], shift=0.1)
    assert weights.tolist() == [*ppm.record_weights(BOUNDS, shift=0.1), 0]
    assert ppm.record_weights(np.full(3, np.inf)).tolist() == [0, 0, 0]
    # and equal bounds mean equal weights
    assert ppm.record_weights(np.full(3, 2.0), scale=0.7, shift=0.1) == pytest.approx([0.8] * 3)


def test_maps_of_the_risk_weighting_assumption():
    assert np.allclose(ppm.mapped_weights(BOUNDS, reciprocal), 1 / (BOUNDS + 1))
    assert ppm.mapped_weights(BOUNDS, threshold(3.0)).tolist() == [1, 1, 0, 0]


def test_a_map_uses_the_records_own_bound_only_and_min_max_scaling_does_not():
    mapped = ppm.mapped_weights(BOUNDS, reciprocal)[:-1]
    assert np.array_equal(ppm.mapped_weights(BOUNDS[:-1], reciprocal), mapped)
    assert not np.allclose(ppm.record_weights(BOUNDS[:-1]), ppm.record_weights(BOUNDS)[:-1])


def test_mapped_weights_of_non_finite_records_and_truncation():
    bounds = [1.0, np.inf, 9.0]
    assert ppm.mapped_weights(bounds, reciprocal).tolist() == [0.5, 0.0, 0.1]
    cut = ppm.mapped_weights(bounds, reciprocal, truncate_at=0.6)
    assert cut.tolist() == [0.5, 0.0, 0.0]


def test_the_scalar_weight_is_epsilon_over_twice_the_bound():
    weights = ppm.scalar_weights(BOUNDS, epsilon=4.0)
    assert weights.tolist() == [0.4] * 4
    assert np.isclose(ppm.epsilon(ppm.local_bound(-BOUNDS[None], weights)), 4.0)
    for bounds, epsilon, weight in (
        (BOUNDS, 0, 0), (BOUNDS, 1000, 1), ([1.0, np.inf], 1, 0),
        # records that say nothing have Δ = 0: nothing has to be taken from them, at any ε
        ([0.0], 0, 1), ([0.0], 1, 1),
    ):
        assert np.all(ppm.scalar_weights(bounds, epsilon=epsilon) == weight)


INCOMES = np.array([100.0, 110.0, 119.0, 130.0, 1000.0])


def test_a_count_weight_is_the_share_of_other_records_within_the_radius():
    # 20 % of 100 reaches 119, of 110 reaches 130, of 119 all three, of 130 only 110 and 119.
    # Counting a record as its own neighbour would leave no record with weight 0
    weights = ppm.count_weights(INCOMES, radius=0.2)
    assert weights == pytest.approx([2 / 4, 3 / 4, 3 / 4, 2 / 4, 0])
    # 10 dollars are the same for everybody, and the end of the interval is inside
    absolute = ppm.count_weights(INCOMES, radius=10, relative=False)
    assert absolute == pytest.approx([1 / 4, 2 / 4, 1 / 4, 0, 0])
    # scale and shift, not preceded by min-max scaling, and cut
    scaled = ppm.count_weights(INCOMES, radius=0.2, scale=0.8, shift=0.1)
    assert scaled == pytest.approx([0.5, 0.7, 0.7, 0.5, 0.1])
    assert ppm.count_weights(INCOMES, radius=0.2, scale=3.0, shift=-0.6)[[1, 4]].tolist() == [1, 0]


def test_count_weights_compare_only_records_with_the_same_pattern():
    region, age = ["N", "N", "N", "S", "S"], [1, 1, 2, 2, 2]
    weights = ppm.count_weights(INCOMES, radius=0.2, groups=region)
    assert weights == pytest.approx([1.0, 1.0, 1.0, 0.0, 0.0])
    # the third record is alone with its pattern: it is known by that, and gets weight 0
    both = ppm.count_weights(INCOMES, radius=0.2, groups=np.column_stack([region, age]))
    assert both == pytest.approx([1.0, 1.0, 0.0, 0.0, 0.0])


def bounds_at(weights, **prior):
    """Bounds of all counts but the last, from a fit with it and from one without."""
    for counts in (COUNTS, COUNTS[:-1]):
        model = ppm.GammaPoisson(counts, **prior)
        fit = model.fit(np.full(counts.size, weights), draws=500, random_seed=1)
        yield ppm.record_bounds(model.log_likelihood(fit))[: COUNTS.size - 1]


def test_record_determined_weights_stay_when_another_record_leaves_and_min_max_weights_do_not():
    public = [ppm.GammaPoisson(part).bounds_within(2, 10) for part in (COUNTS, COUNTS[:-1])]
    for mapping in (ppm.weights.capped_map(3.5), reciprocal, threshold(3.0)):
        whole, without = (ppm.mapped_weights(b, mapping, truncate_at=5.0) for b in public)
        assert np.array_equal(whole[:-1], without)
    whole, without = map(ppm.record_weights, public)
    assert not np.allclose(whole[:-1], without, atol=0.1)
    # bounds at draws from the prior are public as well; at draws from the posterior they are not
    whole, without = bounds_at(0.0, shape=16.0, rate=4.0)
    assert np.array_equal(whole, without)
    assert not np.allclose(*bounds_at(1.0, shape=16.0, rate=4.0))


@pytest.mark.parametrize("limit", [0.3, 3.5, 1 / 3])
def test_the_capped_map_keeps_every_weighted_bound_within_the_limit_and_wastes_nothing(limit):
    bounds = np.random.default_rng(1).uniform(0, 20, size=10_000)
    weights = ppm.mapped_weights(bounds, ppm.weights.capped_map(limit))
    assert np.all(weights * bounds <= limit)
    assert np.allclose((weights * bounds)[bounds > limit], limit)
    assert np.all(weights[bounds <= limit] == 1)
    assert ppm.weights.capped_map(limit)([0.0, np.inf]).tolist() == [1.0, 0.0]
    # the plain quotient goes over it in the last digit
    assert limit != 1 / 3 or np.any(limit / np.maximum(bounds, limit) * bounds > limit)
