"""Combining rules, against hand calculation and against a normal world with known variances."""

import math

import numpy as np
import pytest
from scipy import stats

import ppm

ESTIMATES, VARIANCES = [1.0, 2.0, 6.0], [0.5, 1.0, 1.5]
combine = ppm.studies.combine_releases


@pytest.mark.parametrize(
    ("rule", "variance", "freedom"),
    [
        # average 3, average variance 1, variance among the releases 7
        ("as real", 1.0, math.inf),
        ("parameter fixed", 1.0 + 1 / 3, math.inf),
        ("parameter drawn", 1.0 + 2 / 3, math.inf),
        ("partially synthetic", 1.0 + 7 / 3, 2 * (1 + 3 / 7) ** 2),
        ("fully synthetic", 4 / 3 * 7 - 1.0, 2 * (1 - 3 / 28) ** 2),
    ],
)
def test_each_rule_is_its_formula(rule, variance, freedom):
    found = combine(ESTIMATES, VARIANCES, rule=rule, confidence=0.9)
    half = stats.t(freedom).ppf(0.95) * math.sqrt(variance)
    assert np.isclose(found.estimate, 3.0) and np.isclose(found.variance, variance)
    assert found.degrees_of_freedom == pytest.approx(freedom)
    assert [found.low, found.high] == pytest.approx([3.0 - half, 3.0 + half])


def test_a_public_weight_widens_the_rule_for_a_drawn_parameter():
    found = combine([3.0], [2.0], rule="parameter drawn", weight=0.25)
    assert found.variance == pytest.approx(2.0 * (1 + 1 + 4))


def test_a_negative_variance_is_replaced_and_few_degrees_of_freedom_are_not_fewer_than_one():
    found = combine([1.0, 1.1], [4.0, 4.0], rule="fully synthetic")
    assert found.variance == 4.0 and found.degrees_of_freedom == math.inf
    # a variance of exactly 0 is none either
    none = combine([1.0, 3.0], [3.0, 3.0], rule="fully synthetic")
    assert none.variance == 3.0 and none.degrees_of_freedom == math.inf
    # (1 + 1/2) * 0.5 hardly exceeds 0.74
    nearly = combine([1.0, 2.0], [0.74, 0.74], rule="fully synthetic")
    assert nearly.variance == pytest.approx(0.01) and nearly.degrees_of_freedom == 1


def test_releases_that_agree_have_the_variance_of_one():
    found = combine([3.0, 3.0], [1.0, 1.0])
    assert found.variance == 1.0 and found.degrees_of_freedom == math.inf
    assert combine([3.0, 3.0], [0.0, 0.0]).low == 3.0


def test_many_quantities_at_once_are_each_alone():
    rng = np.random.default_rng(1)
    estimates, variances = rng.normal(size=(4, 3, 2)), rng.uniform(size=(4, 3, 2))
    for rule in ("partially synthetic", "fully synthetic", "parameter drawn"):
        together = combine(estimates, variances, rule=rule)
        alone = combine(estimates[:, 2, 1], variances[:, 2, 1], rule=rule)
        assert together.low.shape == (3, 2) and np.isclose(together.low[2, 1], alone.low)


# ---- a world where everything is normal, and all variances are known -----------------------------


def world(weight, *, predictors=0.0, prior=0.0, n=200, replicates=20_000, releases=5, seed=3):
    """Estimates of releases when the truth is 0, and their variances.

    The data's estimate has variance 1; the predictors have a share of it, and are released as they
    are. What remains is synthesized from a posterior that a weight widens. The prior counts for so
    many of the n records, and its mean is one record's standard deviation off.
    """
    rng = np.random.default_rng(seed)
    shared, own = np.sqrt(predictors), np.sqrt(1 - predictors)
    centre = shared * rng.standard_normal(replicates) + own * rng.standard_normal(replicates)
    pull = prior / (weight * n + prior)
    centre = (1 - pull) * centre + pull * np.sqrt(n)
    drawn = rng.standard_normal((releases, replicates)) / np.sqrt(weight + prior / n)
    estimates = centre + own * (drawn + rng.standard_normal((releases, replicates)))
    return estimates, np.ones((releases, replicates))


def coverage_and_ratio(rule, weight, **settings):
    """Coverage, and the rule's average variance over that of the combined estimate."""
    own = settings.pop("known", 1.0)
    found = combine(*world(weight, **settings), rule=rule, weight=own)
    covered = (found.low <= 0) & (found.high >= 0)
    return covered.mean(), found.variance.mean() / found.estimate.var()


@pytest.mark.parametrize("weight", [1.0, 0.3, 0.05])
@pytest.mark.parametrize("predictors", [0.0, 0.5])
def test_the_rule_for_partially_synthetic_data_is_right_at_any_constant_weight(weight, predictors):
    covered, ratio = coverage_and_ratio("partially synthetic", weight, predictors=predictors)
    # t distributions with estimated degrees of freedom are approximations
    assert abs(covered - 0.95) < 0.012 and abs(ratio - 1) < 0.04


def test_the_rule_for_partially_synthetic_data_needs_records_that_outweigh_the_prior():
    settings = dict(prior=1.0, releases=20)
    # the weight leaves 10 records of 200, beside a prior that counts for one
    assert coverage_and_ratio("partially synthetic", 0.05, **settings)[0] == pytest.approx(
        0.86, abs=0.01
    )
    covered, ratio = coverage_and_ratio("partially synthetic", 0.05, n=100_000, **settings)
    assert abs(covered - 0.95) < 0.012 and abs(ratio - 1) < 0.04


def test_the_rule_for_fully_synthetic_data_needs_weight_1_and_synthetic_predictors():
    assert abs(coverage_and_ratio("fully synthetic", 1.0, releases=50)[1] - 1) < 0.04
    # 1/α (1 + 1/m) + 1/m in the place of 1 + (1/α + 1)/m
    exact = (1 / 0.3 * 1.02 + 0.02) / (1 + (1 / 0.3 + 1) / 50)
    assert coverage_and_ratio("fully synthetic", 0.3, releases=50)[1] == pytest.approx(
        exact, rel=0.04
    )
    # b sees nothing of the predictors' share, and falls below the average variance
    found = combine(*world(1.0, predictors=0.8, releases=50), rule="fully synthetic")
    assert (found.degrees_of_freedom == math.inf).mean() > 0.99
    found = combine(*world(1.0, predictors=0.0, releases=50), rule="fully synthetic")
    assert (found.degrees_of_freedom < math.inf).mean() > 0.99


@pytest.mark.parametrize("weight", [1.0, 0.25])
@pytest.mark.parametrize("releases", [1, 3])
def test_one_release_suffices_where_the_weight_is_public(weight, releases):
    known = coverage_and_ratio("parameter drawn", weight, known=weight, releases=releases)
    assert abs(known[0] - 0.95) < 0.006 and abs(known[1] - 1) < 0.04
    if weight < 1:
        assert coverage_and_ratio("parameter drawn", weight, releases=releases)[0] < 0.92


@pytest.mark.parametrize("weight", [1.0, 0.25])
def test_one_release_taken_for_real_covers_as_often_as_theory_says(weight):
    exact = 2 * stats.norm.cdf(1.959964 / math.sqrt(2 + 1 / weight)) - 1
    assert abs(coverage_and_ratio("as real", weight, releases=1)[0] - exact) < 0.012


# ---- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rule": "rubin"}, "rule must be one of as real, .* got 'rubin'"),
        ({"estimates": [1.0]}, "same shape"),
        ({"estimates": [1.0, math.nan, 2.0]}, "must be finite"),
        ({"variances": [1.0, -1.0, 1.0]}, "variances must be 0 or more"),
        ({"weight": 0.0, "rule": "parameter drawn"}, "weight must be"),
        ({"weight": 0.5}, "enters the rule 'parameter drawn' only"),
        ({"confidence": 1.0}, "confidence must be"),
        ({"estimates": [1.0], "variances": [1.0]}, "number of releases must be .* at least 2"),
        ({"estimates": [], "variances": []}, "one row a release"),
    ],
    ids=str,
)
def test_what_cannot_be_combined_is_refused_in_one_line(change, message):
    with pytest.raises(ValueError, match=message) as caught:
        combine(**{"estimates": ESTIMATES, "variances": VARIANCES} | change)
    assert "\n" not in str(caught.value)
