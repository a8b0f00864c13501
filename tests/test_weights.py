"""Weights against the paper's formula, record by record."""

import numpy as np
import pytest

import ppm

# one draw, so that the bounds are these numbers
BOUNDS = np.array([1.0, 2.0, 3.0, 5.0])
LOG_LIK = -BOUNDS[None, :]
RISK = np.array([0.0, 0.25, 0.5, 1.0])


def test_the_riskiest_record_gets_weight_0_and_the_safest_weight_1():
    assert np.allclose(ppm.record_weights(ppm.record_bounds(LOG_LIK)), 1 - RISK)


@pytest.mark.parametrize(
    ("scale", "shift"), [(0.7, 0.0), (0.6, -0.1), (0.5, -0.3), (1.0, 0.2), (2.0, 0.0)]
)
def test_scale_and_shift_then_cut_to_the_unit_interval(scale, shift):
    weights = ppm.record_weights(ppm.record_bounds(LOG_LIK), scale=scale, shift=shift)
    uncut = scale * (1 - RISK) + shift
    assert np.allclose(weights, np.minimum(1, np.maximum(0, uncut)))
    # shifting before scaling is another rule
    if shift and scale != 1:
        assert not np.allclose(weights, np.clip(scale * (1 - RISK + shift), 0, 1))


def test_truncation_removes_what_is_above_m_and_leaves_the_rest():
    weights = ppm.record_weights(ppm.record_bounds(LOG_LIK), truncate_at=1.4)
    # weighted bounds are 1, 1.5, 1.5, 0
    assert weights.tolist() == [1.0, 0.0, 0.0, 0.0]
    assert np.allclose(ppm.record_weights(ppm.record_bounds(LOG_LIK), truncate_at=1.5), 1 - RISK)


def test_a_non_finite_record_gets_0_and_leaves_the_scaling_alone():
    log_lik = np.column_stack([LOG_LIK[0][None, :], [[-np.inf]]])
    weights = ppm.record_weights(ppm.record_bounds(log_lik), shift=0.1)
    assert weights[-1] == 0
    assert np.allclose(weights[:-1], ppm.record_weights(ppm.record_bounds(LOG_LIK), shift=0.1))
    assert ppm.record_weights(ppm.record_bounds(np.full((2, 3), -np.inf))).tolist() == [0, 0, 0]


def test_equal_bounds_mean_equal_weights():
    weights = ppm.record_weights(ppm.record_bounds(np.full((5, 3), -2.0)), scale=0.7, shift=0.1)
    assert weights == pytest.approx(np.full(3, 0.8))


def test_maps_of_the_risk_weighting_assumption():
    assert np.allclose(
        ppm.mapped_weights(ppm.record_bounds(LOG_LIK), ppm.weights.reciprocal_map), 1 / (BOUNDS + 1)
    )
    assert ppm.mapped_weights(
        ppm.record_bounds(LOG_LIK), ppm.weights.threshold_map(3.0)
    ).tolist() == [1, 1, 0, 0]
    assert ppm.weights.reciprocal_map(0.0) == 1 and ppm.weights.reciprocal_map(np.inf) == 0


def test_a_map_uses_the_records_own_bound_only_and_min_max_scaling_does_not():
    without_last = LOG_LIK[:, :-1]
    mapped = ppm.mapped_weights(ppm.record_bounds(LOG_LIK), ppm.weights.reciprocal_map)[:-1]
    assert np.array_equal(
        ppm.mapped_weights(ppm.record_bounds(without_last), ppm.weights.reciprocal_map), mapped
    )
    assert not np.allclose(
        ppm.record_weights(ppm.record_bounds(without_last)),
        ppm.record_weights(ppm.record_bounds(LOG_LIK))[:-1],
    )


def test_mapped_weights_of_non_finite_records_and_truncation():
    log_lik = np.array([[-1.0, -np.inf, -9.0]])
    assert ppm.mapped_weights(ppm.record_bounds(log_lik), ppm.weights.reciprocal_map).tolist() == [
        0.5,
        0.0,
        0.1,
    ]
    truncated = ppm.mapped_weights(
        ppm.record_bounds(log_lik), ppm.weights.reciprocal_map, truncate_at=0.6
    )
    assert truncated.tolist() == [0.5, 0.0, 0.0]


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        (lambda z: z / 10, "decreasing"),
        (lambda z: -z, r"\[0, 1\]"),
        (lambda z: 0.5, "every bound"),
        (0.5, "function"),
    ],
)
def test_wrong_maps_are_refused(mapping, message):
    with pytest.raises(ValueError, match=message):
        ppm.mapped_weights(ppm.record_bounds(LOG_LIK), mapping)


def test_the_scalar_weight_is_epsilon_over_twice_the_bound():
    weights = ppm.scalar_weights(ppm.record_bounds(LOG_LIK), epsilon=4.0)
    assert weights.tolist() == [0.4] * 4
    assert np.isclose(ppm.epsilon(ppm.local_bound(LOG_LIK, weights)), 4.0)
    assert ppm.scalar_weights(ppm.record_bounds(LOG_LIK), epsilon=0).tolist() == [0.0] * 4
    assert ppm.scalar_weights(ppm.record_bounds(LOG_LIK), epsilon=1000).tolist() == [1.0] * 4
    assert ppm.scalar_weights(
        ppm.record_bounds(np.array([[-np.inf, -1.0]])), epsilon=1
    ).tolist() == [0.0, 0.0]
    # records that say nothing have Δ = 0: nothing has to be taken from them, at any ε
    for epsilon in (0.0, 1.0):
        assert (
            ppm.scalar_weights(ppm.record_bounds(np.zeros((4, 3))), epsilon=epsilon).tolist()
            == [1.0] * 3
        )


@pytest.mark.parametrize(
    ("function", "arguments", "name"),
    [
        (ppm.record_weights, {"scale": 0.0}, "scale"),
        (ppm.record_weights, {"scale": np.nan}, "scale"),
        (ppm.record_weights, {"scale": "a"}, "scale"),
        (ppm.record_weights, {"shift": np.inf}, "shift"),
        (ppm.record_weights, {"truncate_at": 0.0}, "truncate_at"),
        (ppm.record_weights, {"truncate_at": -3.5}, "truncate_at"),
        (ppm.scalar_weights, {"epsilon": -1}, "epsilon"),
        (ppm.scalar_weights, {"epsilon": True}, "epsilon"),
    ],
)
def test_settings_out_of_range_are_named(function, arguments, name):
    with pytest.raises(ValueError, match=f"^{name} must be"):
        function(BOUNDS, **arguments)


@pytest.mark.parametrize(
    "wrong",
    [LOG_LIK, BOUNDS[None, :], -BOUNDS, [1.0, -0.1], [1.0, np.nan], [], 2.0],
    ids=[
        "log-likelihoods", "matrix", "negative", "one negative", "NaN", "none", "one number",
    ],
)
@pytest.mark.parametrize(
    ("function", "settings"),
    [
        (ppm.record_weights, {}),
        (ppm.mapped_weights, {"mapping": ppm.weights.reciprocal_map}),
        (ppm.scalar_weights, {"epsilon": 1.0}),
    ],
    ids=["record", "mapped", "scalar"],
)
def test_what_is_no_bound_for_every_record_is_refused(function, settings, wrong):
    with pytest.raises(ValueError, match="^bounds must hold one bound for every record") as error:
        function(wrong, **settings)
    assert "\n" not in str(error.value)
    # an infinite bound is one: that of an impossible record
    assert function([1.0, np.inf], **settings)[1] == 0


def test_threshold_out_of_range_is_named():
    with pytest.raises(ValueError, match="^threshold must be"):
        ppm.weights.threshold_map(0)


INCOMES = np.array([100.0, 110.0, 119.0, 130.0, 1000.0])


def by_pairs(values, radius, relative, groups):
    """The definition, pair by pair."""
    weights = []
    for i, value in enumerate(values):
        width = radius * abs(value) if relative else radius
        others = [j for j in range(len(values)) if j != i and groups[j] == groups[i]]
        near = [j for j in others if abs(values[j] - value) <= width]
        weights.append(len(near) / len(others) if others else 0.0)
    return np.array(weights)


def test_a_count_weight_is_the_share_of_other_records_within_the_radius():
    # 20 % of 100 reaches 119, of 110 reaches 130, of 119 all three, of 130 only 110 and 119
    weights = ppm.count_weights(INCOMES, radius=0.2)
    assert weights == pytest.approx([2 / 4, 3 / 4, 3 / 4, 2 / 4, 0])
    # 10 dollars are the same for everybody, and the end of the interval is inside
    assert ppm.count_weights(INCOMES, radius=10, relative=False) == pytest.approx(
        [1 / 4, 2 / 4, 1 / 4, 0, 0]
    )
    # counting a record as its own neighbour would leave no record with weight 0
    assert weights.min() == 0


def test_scale_and_shift_of_count_weights_are_not_preceded_by_min_max_scaling():
    weights = ppm.count_weights(INCOMES, radius=0.2, scale=0.8, shift=0.1)
    assert weights == pytest.approx([0.5, 0.7, 0.7, 0.5, 0.1])
    scaled = 0.8 * np.array([2, 3, 3, 2, 0]) / 3 + 0.1
    assert not np.allclose(weights, scaled)
    assert ppm.count_weights(INCOMES, radius=0.2, shift=-0.6).min() == 0
    assert ppm.count_weights(INCOMES, radius=0.2, scale=3.0).max() == 1


def test_count_weights_compare_only_records_with_the_same_pattern():
    region, age = ["N", "N", "N", "S", "S"], [1, 1, 2, 2, 2]
    weights = ppm.count_weights(INCOMES, radius=0.2, groups=region)
    assert weights == pytest.approx([1.0, 1.0, 1.0, 0.0, 0.0])
    # the third record is alone with its pattern: it is known by that, and gets weight 0
    both = ppm.count_weights(INCOMES, radius=0.2, groups=np.column_stack([region, age]))
    assert both == pytest.approx([1.0, 1.0, 0.0, 0.0, 0.0])


@pytest.mark.parametrize("relative", [True, False])
@pytest.mark.parametrize("categories", [1, 4, 60])
def test_sorting_gives_what_pairs_give(relative, categories):
    rng = np.random.default_rng(categories)
    # ties, a zero and negative values included
    values = np.concatenate([np.round(rng.normal(20, 30, 77)), [0.0, 0.0, -5.0]])
    groups = rng.integers(categories, size=80)
    radius = 0.25 if relative else 7.0
    weights = ppm.count_weights(values, radius=radius, relative=relative, groups=groups)
    assert weights == pytest.approx(by_pairs(values, radius, relative, groups))
    other = ppm.count_weights(values, radius=radius, relative=not relative, groups=groups)
    assert not np.allclose(weights, other)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"radius": 0}, "radius"),
        ({"radius": np.nan}, "radius"),
        ({"relative": "yes"}, "relative"),
        ({"groups": [1, 2]}, "groups"),
        ({"scale": 0}, "scale"),
        ({"shift": "a"}, "shift"),
        ({"values": [1.0, np.nan]}, "values"),
        ({"values": [[1.0]]}, "values"),
        ({"values": []}, "values"),
    ],
)
def test_count_weights_name_what_is_wrong(changes, name):
    arguments = {"values": INCOMES, "radius": 0.2, **changes}
    with pytest.raises(ValueError, match=f"^{name} must"):
        ppm.count_weights(arguments.pop("values"), **arguments)


def test_the_effect_of_the_radius_is_that_of_its_weights():
    bounds = np.array([9.0, 2.0, 2.0, 2.0, np.inf])
    table = ppm.weights.radius_effect(INCOMES, [0.2, 0.05], record_bounds=bounds)
    assert table.index.to_list() == [0.2, 0.05]
    # the weights at 0.2 are 2/4, 3/4, 3/4, 2/4 and 0: an unbounded record of weight 0 is gone
    assert table.loc[0.2].to_list() == pytest.approx([0.5, 1, 4.5])
    assert table.loc[0.05, "records removed"] == 5
    assert table.loc[0.05, "bound before refitting"] == 0
    plain = ppm.weights.radius_effect(INCOMES, [15], relative=False, groups=[1, 1, 1, 2, 2])
    assert plain["average weight"].to_list() == pytest.approx([(1 / 2 + 1 + 1 / 2) / 5])
    for wrong in ({"radii": []}, {"radii": [0]}, {"radii": [1], "record_bounds": [1.0]}):
        with pytest.raises(ValueError, match="must"):
            ppm.weights.radius_effect(INCOMES, **wrong)


def test_record_determined_weights_stay_when_another_record_leaves_and_min_max_weights_do_not():
    counts = np.array([3, 5, 4, 6, 20])
    whole, without = ppm.GammaPoisson(counts), ppm.GammaPoisson(counts[:-1])
    for mapping in (
        ppm.weights.capped_map(3.5),
        ppm.weights.linear_map(2.0, 20.0, scale=0.9, shift=-0.1),
        ppm.weights.reciprocal_map,
        ppm.weights.threshold_map(4.0),
    ):
        weights, others = (
            ppm.public_weights(found.bounds_within(2, 10), mapping, truncate_at=5.0)
            for found in (whole, without)
        )
        assert np.array_equal(weights[:-1], others)
    fits = [found.fit(draws=500, random_seed=1) for found in (whole, without)]
    minmax = [
        ppm.record_weights(ppm.record_bounds(found.log_likelihood(fit)))
        for found, fit in zip((whole, without), fits, strict=True)
    ]
    assert not np.allclose(minmax[0][:-1], minmax[1], atol=0.1)


def test_the_bound_of_any_synthesizer_at_its_own_prior_draws_is_public():
    prior = {"shape": 16.0, "rate": 4.0}
    counts = np.array([3, 5, 4, 6, 20])
    whole, without = (
        ppm.GammaPoisson(part, **prior) for part in (counts, counts[:-1])
    )
    bounds = [
        ppm.record_bounds(
            found.log_likelihood(
                found.fit(np.zeros(found.records), draws=300, random_seed=1)
            )
        )
        for found in (whole, without)
    ]
    assert np.array_equal(bounds[0][:-1], bounds[1])
    # draws from the posterior are not
    bounds = [
        ppm.record_bounds(found.log_likelihood(found.fit(draws=300, random_seed=1)))
        for found in (whole, without)
    ]
    assert not np.allclose(bounds[0][:-1], bounds[1])


@pytest.mark.parametrize("limit", [0.3, 3.5, 1 / 3])
def test_the_capped_map_keeps_every_weighted_bound_within_the_limit_and_wastes_nothing(limit):
    bounds = np.random.default_rng(1).uniform(0, 20, size=10_000)
    weights = ppm.public_weights(bounds, ppm.weights.capped_map(limit))
    assert np.all(weights * bounds <= limit)
    assert np.allclose((weights * bounds)[bounds > limit], limit)
    assert np.all(weights[bounds <= limit] == 1)
    assert ppm.weights.capped_map(limit)(np.array([0.0, np.inf])).tolist() == [1.0, 0.0]
    # the reciprocal map alone does not reach the limit, the identity goes beyond it
    assert np.any(bounds > limit)


def test_the_linear_map_with_the_datas_own_extremes_is_the_papers_rule():
    settings = {"scale": 0.6, "shift": -0.1}
    mapping = ppm.weights.linear_map(BOUNDS.min(), BOUNDS.max(), **settings)
    weights = ppm.public_weights(BOUNDS, mapping, truncate_at=0.7)
    assert np.allclose(
        weights, ppm.record_weights(ppm.record_bounds(LOG_LIK), truncate_at=0.7, **settings)
    )
    wider = ppm.public_weights(BOUNDS, ppm.weights.linear_map(0.0, 50.0, **settings))
    assert not np.allclose(wider, weights)
    # outside the public constants the risk is 0 or 1, not less or more
    assert ppm.weights.linear_map(2.0, 4.0, scale=0.5)(np.array([1.0, 3.0, 9.0])).tolist() == [
        0.5,
        0.25,
        0,
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([-1.0, 2.0], ppm.weights.reciprocal_map), "0 or more"),
        (([np.nan], ppm.weights.reciprocal_map), "not NaN"),
        (([], ppm.weights.reciprocal_map), "every record"),
        ((BOUNDS, 3.0), "function of the bounds"),
        ((BOUNDS, lambda z: z / 10), "decreasing"),
    ],
)
def test_wrong_public_bounds_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        ppm.public_weights(*arguments)


def test_an_infinite_public_bound_removes_its_record_and_no_other():
    weights = ppm.public_weights([1.0, np.inf, 7.0], ppm.weights.capped_map(3.5))
    assert weights.tolist() == [1.0, 0.0, 0.5]


def test_public_constants_out_of_range_are_named():
    with pytest.raises(ValueError, match="^limit must be"):
        ppm.weights.capped_map(0)
    with pytest.raises(ValueError, match="^largest must be"):
        ppm.weights.linear_map(3.0, 3.0)
    with pytest.raises(ValueError, match="^smallest must be"):
        ppm.weights.linear_map(-1.0, 3.0)
