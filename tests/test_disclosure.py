"""What an ε means, against Bayes' rule and tests on real pairs of distributions."""

import re

import numpy as np
import pytest
from scipy import stats

import ppm

COUNTS = [3, 4, 4, 5, 5, 6, 7, 18]


@pytest.fixture(scope="module")
def result():
    return ppm.PseudoPosteriorMechanism(ppm.GammaPoisson(COUNTS)).run(draws=500, random_seed=1)


def randomised_response(epsilon):
    """Probabilities of "yes" with and without a person: ε-private, and no less."""
    truth = np.exp(epsilon) / (1 + np.exp(epsilon))
    return truth, 1 - truth


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("prior", [0.001, 0.5, 0.9])
def test_belief_limits_are_reached_by_randomised_response_and_not_passed(prior, epsilon):
    with_person, without = randomised_response(epsilon)
    yes = prior * with_person / (prior * with_person + (1 - prior) * without)
    no = prior * (1 - with_person) / (prior * (1 - with_person) + (1 - prior) * (1 - without))
    assert ppm.belief_limits(prior, epsilon) == pytest.approx((no, yes))
    # half of ε would promise more than holds
    assert ppm.belief_limits(prior, epsilon / 2)[1] < yes


def test_no_result_moves_no_belief_and_an_infinite_epsilon_moves_it_all_the_way():
    assert ppm.belief_limits(0.3, 0.0) == pytest.approx((0.3, 0.3))
    assert ppm.belief_limits(0.3, np.inf) == (0.0, 1.0)


def test_no_test_on_laplace_noise_passes_the_detection_limit():
    # one person moves a count by 1; the noise of scale 1 / ε makes it ε-private
    epsilon = 0.8
    cuts = np.linspace(-10, 12, 400)
    without = stats.laplace.sf(cuts, scale=1 / epsilon)
    with_person = stats.laplace.sf(cuts, loc=1, scale=1 / epsilon)
    limit = ppm.detection_limit(without, epsilon)
    assert np.all(with_person <= limit + 1e-12)
    assert np.isclose(with_person, limit).sum() > 100  # far out it is sharp
    assert np.any(with_person > ppm.detection_limit(without, epsilon / 2) + 1e-3)


def test_the_detection_limit_has_the_ends_it_must_have():
    rates = np.array([0.0, 0.25, 1.0])
    assert np.allclose(ppm.detection_limit(rates, 0.0), rates)
    assert ppm.detection_limit(1.0, 3.0) == 1.0 and ppm.detection_limit(0.0, 3.0) == 0.0
    assert np.allclose(ppm.detection_limit(rates, 800.0), [0.0, 1.0, 1.0])


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: ppm.belief_limits(1.0, 1.0), "prior must be a probability between 0 and 1"),
        (lambda: ppm.belief_limits(0.5, -1.0), "epsilon"),
        (lambda: ppm.belief_limits(0.5, [1.0, np.nan]), "epsilon must be 0 or more"),
        (lambda: ppm.detection_limit(1.2, 1.0), "false_alarms must be probabilities"),
    ],
)
def test_bad_values_are_refused(call, told):
    with pytest.raises(ValueError, match=told):
        call()


def test_the_statement_holds_the_numbers_of_the_run(result):
    text = ppm.release_statement(result, 3)
    assert f"ε = 2 × {result.local_bound:.3g} × 3 = {result.epsilon(3):.3g}" in text
    assert "500 draws" in text and "computed from all records" in text
    assert f"records of weight 0: {np.count_nonzero(result.weights == 0)}" in text
    odds = re.search(r"odds of up to ([\d,.]+) to 1", ppm.release_statement(result, 1))[1]
    assert float(odds.replace(",", "")) == pytest.approx(np.exp(result.epsilon()), rel=0.01)


def test_the_statement_does_not_call_given_weights_computed():
    weights = np.full(8, 0.5)
    mechanism = ppm.PseudoPosteriorMechanism(ppm.GammaPoisson(COUNTS), weights=weights)
    text = ppm.release_statement(mechanism.run(draws=50, random_seed=1), 1)
    assert "weights were given" in text and "computed from all records" not in text


def test_large_odds_are_a_power_of_ten(result):
    many = ppm.release_statement(result, 400)
    assert f"odds of up to 10^{result.epsilon(400) / np.log(10):.0f} to 1" in many


def test_only_releases_may_leave_the_building():
    table = ppm.output_table()
    free = table.index[table["may leave the building"] == "yes"]
    assert list(free) == ["synthetic databases"]
    for name in ("weights", "bounds of records", "posterior draws", "diagnostics", "seeds"):
        assert table.loc[name, "may leave the building"] == "no"
