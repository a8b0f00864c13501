"""The page on what a recipient does: its rules and its study against closed forms."""

import math

import numpy as np
import pytest
from cells import of_chapter
from scipy import stats

chapter = of_chapter("using_releases")
rules = chapter.rules


def covers(combined, truth=0.0):
    estimate, variance, freedom = combined
    half = stats.t.ppf(0.975, freedom) * np.sqrt(variance)
    return np.mean(np.abs(estimate - truth) <= half, axis=-1)


# ---- rules ---------------------------------------------------------------------------------------


def test_each_rule_is_its_formula():
    # average 3, average variance 1, variance among the releases 7
    expected = {
        "one release as real": (1, 0.5, math.inf),
        "parameter drawn": (3, 1 + 2 / 3, math.inf),
        "partially synthetic": (3, 1 + 7 / 3, 2 * (1 + 3 / 7) ** 2),
        "fully synthetic": (3, 4 / 3 * 7 - 1, 2 * (1 - 3 / 28) ** 2),
        "one release, weight known": (1, 0.5 * (1 + 1 + 4), math.inf),
    }
    found = rules(np.array([1, 2, 6]), np.array([0.5, 1, 1.5]), 0.25)
    assert found == {rule: pytest.approx(numbers) for rule, numbers in expected.items()}


def test_a_negative_variance_is_replaced_and_degrees_of_freedom_are_not_fewer_than_one():
    q = np.array([[1.0, 1.0, 1.0], [1.1, 3.0, 2.0]])
    v = np.array([[4.0, 3.0, 0.74]] * 2)
    _, variance, freedom = rules(q, v)["fully synthetic"]
    assert np.allclose(variance, [4.0, 3.0, 0.01])
    assert freedom.tolist() == [math.inf, math.inf, 1]


def world(weight, *, predictors=0.0, prior=0.0, n=200, replicates=20_000, releases=5):
    """Estimates and variances in a normal world where the truth is 0 and the data's variance 1.

    The predictors have a share of it, and are released unchanged. The rest is synthesized from a
    posterior that a weight widens. The prior counts for so many of the n records, and its mean is
    one record's standard deviation off.
    """
    rng = np.random.default_rng(3)
    pull = prior / (weight * n + prior)
    centre = (1 - pull) * rng.standard_normal(replicates) + pull * np.sqrt(n)
    spread = np.sqrt((1 - predictors) * (1 + 1 / (weight + prior / n)))
    q = centre + spread * rng.standard_normal((releases, replicates))
    return q, np.ones_like(q)


@pytest.mark.parametrize("weight", [1.0, 0.05])
@pytest.mark.parametrize("predictors", [0.0, 0.5])
def test_the_partially_synthetic_rule_is_right_at_any_constant_weight(
    weight, predictors
):
    found = rules(*world(weight, predictors=predictors), weight)
    # t distributions with estimated degrees of freedom are approximations
    assert abs(covers(found["partially synthetic"]) - 0.95) < 0.012
    # a rule that undercovers is seen, and by how much
    as_real = (
        2 * stats.norm.cdf(1.96 / np.sqrt(1 + (1 - predictors) * (1 + 1 / weight))) - 1
    )
    assert abs(covers(found["one release as real"]) - as_real) < 0.01 and as_real < 0.85
    known = covers(found["one release, weight known"])
    assert known > 0.97 if predictors else abs(known - 0.95) < 0.01


def test_the_partially_synthetic_rule_needs_records_that_outweigh_the_prior():
    # the weight leaves 10 records of 200, beside a prior that counts for one
    few, many = (world(0.05, prior=1.0, n=n, releases=20) for n in (200, 100_000))
    assert covers(rules(*few)["partially synthetic"]) == pytest.approx(0.86, abs=0.01)
    assert covers(rules(*many)["partially synthetic"]) == pytest.approx(0.95, abs=0.012)


# ---- the study -----------------------------------------------------------------------------------


def test_intervals_cover_as_often_as_theory_says():
    weight, streams = 0.25, np.random.default_rng(5).spawn(400)
    q, v = np.stack(
        [
            chapter.one_database(200, 5, 10, 1.0, 0.0, weight, stream)
            for stream in streams
        ],
        axis=-1,
    )
    # mean and coefficient of the regression
    truth = np.array([2.0, 2.0 + np.sqrt(2) * stats.norm.ppf(0.9), 1.0])[:, None]
    found = rules(np.moveaxis(q, 2, 0), np.moveaxis(v, 2, 0))
    as_real, partially = (
        covers(found[rule], truth)
        for rule in ("one release as real", "partially synthetic")
    )
    unweighted, by_record, constant, _ = range(4)
    # variances over what the analyst takes them for: data, posterior, records
    for mechanism, ratio in {unweighted: 3, constant: 2 + 1 / weight}.items():
        for quantity, of in ((2, ratio), (0, (1 + ratio) / 2)):
            # half of the variance of y is the predictor's, which is not drawn anew
            expected = 2 * stats.norm.cdf(1.96 / math.sqrt(of)) - 1
            assert as_real[mechanism, quantity] == pytest.approx(expected, abs=0.06)
        assert np.abs(partially[mechanism, [0, 2]] - 0.95).max() < 0.03
    # the paper's weights move the percentile, and no rule knows
    assert partially[by_record, 1] < partially[constant, 1] - 0.02


def test_a_record_enters_the_pseudo_posterior_as_often_as_its_weight_says():
    rng = np.random.default_rng(2)
    # away from 0, so that intercept and slope are correlated
    predictor = rng.standard_normal(30) + 1
    values, times = 2 + predictor + rng.standard_normal(30), rng.integers(1, 4, 30)
    beta, variance = chapter.fit(values, predictor, times.astype(float), 40_000, rng)
    x, y = (
        np.column_stack([np.ones(30), predictor]).repeat(times, 0),
        values.repeat(times),
    )
    least, (squares,), *_ = np.linalg.lstsq(x, y)
    law = stats.invgamma(len(y) / 2, scale=squares / 2)
    covariance = law.mean() * np.linalg.inv(x.T @ x)
    assert np.allclose(beta.mean(axis=0), least, atol=0.01)
    assert np.allclose(np.cov(beta.T), covariance, atol=0.05 * covariance.max())
    assert stats.kstest(variance, law.cdf).statistic < 0.02


def test_the_analysts_estimates_are_those_of_a_textbook():
    rng = np.random.default_rng(8)
    normal = rng.standard_normal((4000, 400))
    predictor = rng.standard_normal(400)
    known = stats.linregress(predictor, normal[1])
    estimates, variances = chapter.analyse(normal, predictor)
    assert np.allclose(
        [estimates[2, 1], variances[2, 1]], [known.slope, known.stderr**2]
    )
    asymptotic = 0.09 / stats.norm.pdf(stats.norm.ppf(0.9)) ** 2 / 400
    assert [estimates[1].var(), variances[1].mean()] == pytest.approx(
        [asymptotic] * 2, rel=0.1
    )
    assert estimates[0].var() == pytest.approx(variances[0].mean(), rel=0.1)
