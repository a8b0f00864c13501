"""What an ε means, against Bayes' rule and tests on real pairs of distributions."""

import numpy as np
import pytest
from scipy import stats

from ppm.pdp import belief_limits, detection_limit


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("prior", [0.001, 0.5, 0.9])
def test_belief_limits_are_reached_by_randomised_response_and_not_passed(
    prior, epsilon
):
    # probabilities of "yes" with and without a person: ε-private, and no less
    truth = np.exp(epsilon) / (1 + np.exp(epsilon))
    yes = prior * truth / (prior * truth + (1 - prior) * (1 - truth))
    no = prior * (1 - truth) / (prior * (1 - truth) + (1 - prior) * truth)
    assert belief_limits(prior, epsilon) == pytest.approx((no, yes))
    # half of ε would promise more than holds
    assert belief_limits(prior, epsilon / 2)[1] < yes


def test_no_test_on_laplace_noise_passes_the_detection_limit():
    # one person moves a count by 1; the noise of scale 1 / ε makes it ε-private
    epsilon, cuts = 0.8, np.linspace(-10, 12, 400)
    without, with_person = (stats.laplace.sf(cuts, x, 1 / epsilon) for x in (0, 1))
    limit = detection_limit(without, epsilon)
    assert np.all(with_person <= limit + 1e-12)
    far = (cuts < 0) | (cuts > 1)  # there it is sharp, on either side
    assert with_person[far] == pytest.approx(limit[far])
    assert np.any(with_person > detection_limit(without, epsilon / 2) + 1e-3)


def test_the_limits_have_the_ends_they_must_have():
    assert belief_limits(0.3, 0.0) == pytest.approx((0.3, 0.3))
    assert belief_limits(0.3, np.inf) == (0.0, 1.0)
    rates = np.array([0.0, 0.25, 1.0])
    assert (
        np.allclose(detection_limit(rates, 0.0), rates)
        and detection_limit(1.0, 3.0) == 1.0
    )
    # without false alarms nobody is found, but at an infinite ε
    assert np.allclose(detection_limit(rates, 800.0), [0.0, 1.0, 1.0])
    found = detection_limit([0.0, 0.0, 0.5, 1.0], [np.inf, 1e300, np.inf, 0.0])
    assert found.tolist() == [1, 0, 1, 1]


def test_two_values_of_a_record_are_two_steps_apart():
    # parameters on a finite set, weights 1: the table with one value, with none, with another
    log_lik = np.array([1.0, 0.4, 0.0, -0.7, -1.0])
    tables = [np.exp(log_lik), np.ones(5), np.exp(-log_lik)]
    one, none, other = (table / table.sum() for table in tables)
    epsilon = np.abs(np.log([one / none, other / none])).max()
    assert epsilon < np.abs(np.log(one / other)).max() <= 2 * epsilon
    belief = one / (one + other)
    # ε itself would promise more than holds
    for steps, holds in (2, True), (1, False):
        low, high = belief_limits(0.5, steps * epsilon)
        assert np.all((low <= belief) & (belief <= high)) == holds
