"""Weights from counts by hand, and what other records move; more in test_bounds_and_weights."""

import numpy as np
import pytest
from layouts import reciprocal, threshold

import ppm

COUNTS = np.array([3, 5, 4, 6, 20])
INCOMES = np.array([100.0, 110.0, 119.0, 130.0, 1000.0])


def test_a_count_weight_is_the_share_of_other_records_within_the_radius():
    # 20 % of 100 reaches 119, of 110 reaches 130, of 119 all three, of 130 only 110 and 119.
    # Counting a record as its own neighbour would leave no record with weight 0
    weights = ppm.count_weights(INCOMES, radius=0.2)
    assert weights == pytest.approx([2 / 4, 3 / 4, 3 / 4, 2 / 4, 0])
    # scale and shift, not preceded by min-max scaling, and cut
    scaled = ppm.count_weights(INCOMES, radius=0.2, scale=0.8, shift=0.1)
    assert scaled == pytest.approx([0.5, 0.7, 0.7, 0.5, 0.1])
    assert ppm.count_weights(INCOMES, radius=0.2, scale=3.0, shift=-0.6)[[1, 4]].tolist() == [1, 0]
    # the third record is alone with its pattern: it is known by that, and gets weight 0
    both = np.column_stack([["N", "N", "N", "S", "S"], [1, 1, 2, 2, 2]])
    weights = ppm.count_weights(INCOMES, radius=0.2, groups=both)
    assert weights == pytest.approx([1.0, 1.0, 0.0, 0.0, 0.0])


def bounds_at(weights, **prior):
    """Bounds of all counts but the last, from a fit with it and from one without."""
    for counts in (COUNTS, COUNTS[:-1]):
        model = ppm.GammaPoisson(counts, **prior)
        fit = model.fit(np.full(counts.size, weights), draws=500, random_seed=1)
        yield ppm.record_bounds(model.log_likelihood(fit))[: COUNTS.size - 1]


def test_record_determined_weights_stay_when_another_record_leaves_and_min_max_weights_do_not():
    public = [ppm.GammaPoisson(part).bounds_within(2, 10) for part in (COUNTS, COUNTS[:-1])]
    for mapping in (ppm.weights.capped_map(3.5), reciprocal, threshold(3.0)):
        whole, without = (ppm.mapped_weights(b, mapping) for b in public)
        assert np.array_equal(whole[:-1], without) and np.array_equal(whole, mapping(public[0]))
    whole, without = map(ppm.record_weights, public)
    assert not np.allclose(whole[:-1], without, atol=0.1)
    # bounds at draws from the prior are public as well; at draws from the posterior they are not
    whole, without = bounds_at(0.0, shape=16.0, rate=4.0)
    assert np.array_equal(whole, without)
    assert not np.allclose(*bounds_at(1.0, shape=16.0, rate=4.0))
