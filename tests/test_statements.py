"""The book's statements where every probability can be added up: parameters on a finite set."""

import numpy as np
import pytest

import ppm

SIZES = [(seed, records) for seed in range(20) for records in (2, 5, 9)]


def densities(seed, records, parameters=6):
    """Log-densities (parameters, records), weights and a prior, all drawn at random."""
    rng = np.random.default_rng(seed)
    log_lik = rng.normal(0.0, rng.uniform(0.2, 4.0), size=(parameters, records))
    return log_lik, rng.uniform(size=records), rng.dirichlet(np.full(parameters, 0.5))


def pseudo_posterior(log_lik, weights, prior):
    """Probabilities of the parameters."""
    unscaled = prior * np.exp(log_lik @ weights)
    return unscaled / unscaled.sum()


def loss(first, second):
    """Largest |log ratio| of two distributions: the ε that they need."""
    seen = (first > 0) | (second > 0)
    return np.abs(np.log(first[seen] / second[seen])).max()


def pairs(log_lik, weights, prior):
    """Pseudo posterior of all records, and without each of them at the weights of the others."""
    whole = pseudo_posterior(log_lik, weights, prior)
    for left_out in range(weights.size):
        kept = np.arange(weights.size) != left_out
        yield whole, pseudo_posterior(log_lik[:, kept], weights[kept], prior)


@pytest.mark.parametrize(("seed", "records"), SIZES)
def test_the_pseudo_posterior_is_private_with_twice_the_bound(seed, records):
    log_lik, weights, prior = densities(seed, records)
    epsilon = ppm.epsilon(ppm.local_bound(log_lik, weights))
    assert max(loss(x, y) for x, y in pairs(log_lik, weights, prior)) <= epsilon + 1e-9


def test_the_two_in_the_theorem_is_needed():
    # a likely parameter speaks against the record, a nearly impossible one for it
    log_lik, weights = np.array([[1.0], [-1.0]]), np.ones(1)
    ((whole, without),) = pairs(log_lik, weights, np.array([1e-4, 1.0 - 1e-4]))
    bound = ppm.local_bound(log_lik, weights)
    assert 1.99 * bound < loss(whole, without) <= 2 * bound


@pytest.mark.parametrize(("seed", "records"), SIZES)
def test_a_record_that_leaves_takes_one_term_with_it(seed, records):
    log_lik, weights, _ = densities(seed, records)
    for left_out in range(records):
        kept = np.arange(records) != left_out
        change = log_lik @ weights - log_lik[:, kept] @ weights[kept]
        np.testing.assert_allclose(change, weights[left_out] * log_lik[:, left_out], atol=1e-9)
        bound = ppm.record_bounds(log_lik, weights)[left_out]
        assert np.abs(change).max() == pytest.approx(bound)
        # a weight that looks at the other records changes their terms too
        others = weights[kept] / weights[kept].max()
        moved = log_lik @ weights - log_lik[:, kept] @ others
        if records > 2:
            assert not np.allclose(moved, weights[left_out] * log_lik[:, left_out])


@pytest.mark.parametrize("seed", range(20))
def test_post_processing_costs_nothing_unless_it_looks_again(seed):
    log_lik, weights, prior = densities(seed, 5)
    rng = np.random.default_rng(seed)
    predictive = rng.dirichlet(np.full(7, 0.3), size=prior.size)
    for whole, without in pairs(log_lik, weights, prior):
        assert loss(whole @ predictive, without @ predictive) <= loss(whole, without) + 1e-9
    # what is drawn with a second look at the record needs more than the draw of the parameter
    second_look = predictive.copy()
    second_look[:, 0] += 1e6
    second_look /= second_look.sum(axis=1, keepdims=True)
    assert loss(whole @ second_look, without @ predictive) > loss(whole, without)


@pytest.mark.parametrize("seed", range(20))
def test_releases_add_up(seed):
    log_lik, weights, prior = densities(seed, 4)
    bound = ppm.local_bound(log_lik, weights)
    for whole, without in pairs(log_lik, weights, prior):
        one = loss(whole, without)
        for releases in (1, 2, 3):
            joint, other = whole, without
            for _ in range(releases - 1):
                joint, other = np.outer(joint, whole).ravel(), np.outer(other, without).ravel()
            assert loss(joint, other) == pytest.approx(releases * one)
            assert loss(joint, other) <= ppm.epsilon(bound, releases) + 1e-9


@pytest.mark.parametrize("seed", range(20))
def test_the_exponential_mechanism_is_a_posterior_with_one_weight(seed):
    log_lik, _, prior = densities(seed, 5)
    sensitivity = ppm.local_bound(log_lik)
    epsilon = 1.5 * sensitivity
    weights = ppm.scalar_weights(log_lik, epsilon=epsilon)
    utility = log_lik.sum(axis=1)
    unscaled = prior * np.exp(epsilon / (2 * sensitivity) * utility)
    posterior = pseudo_posterior(log_lik, weights, prior)
    np.testing.assert_allclose(posterior, unscaled / unscaled.sum())
    assert max(loss(x, y) for x, y in pairs(log_lik, weights, prior)) <= epsilon + 1e-9
    # without the 2 it is another distribution
    wrong = prior * np.exp(epsilon / sensitivity * utility)
    assert not np.allclose(posterior, wrong / wrong.sum())
