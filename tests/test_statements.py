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


def reacting(log_lik):
    """Weights by min-max scaling, as the paper's rule gives them to these log-likelihoods."""
    return ppm.record_weights(ppm.record_bounds(log_lik))


@pytest.mark.parametrize(("seed", "records"), SIZES)
def test_the_theorem_needs_the_inequality_and_no_weights_of_ones_own(seed, records):
    log_lik, _, prior = densities(seed, records)
    weights = reacting(log_lik)
    whole = pseudo_posterior(log_lik, weights, prior)
    for left_out in range(records):
        rest = np.delete(log_lik, left_out, axis=1)
        others = reacting(rest)
        sensitivity = np.abs(log_lik @ weights - rest @ others).max()
        without = pseudo_posterior(rest, others, prior)
        assert loss(whole, without) <= 2 * sensitivity + 1e-9


def test_for_weights_that_react_the_records_own_bounds_are_not_the_bound_of_the_theorem():
    above = 0
    for seed, records in SIZES:
        log_lik, _, prior = densities(seed, records)
        weights = reacting(log_lik)
        whole = pseudo_posterior(log_lik, weights, prior)
        claimed = ppm.epsilon(ppm.local_bound(log_lik, weights))
        for left_out in range(records):
            rest = np.delete(log_lik, left_out, axis=1)
            above += loss(whole, pseudo_posterior(rest, reacting(rest), prior)) > claimed
    assert above > 10


def release_of(counts, weights, *, seed=0):
    """One release of Gamma-Poisson at these weights."""
    synthesizer = ppm.GammaPoisson(counts, shape=2.0, rate=0.5)
    result = ppm.PseudoPosteriorMechanism(synthesizer, weights=weights).run(
        draws=5, random_seed=seed
    )
    return result.synthesize(1, random_seed=seed + 1)


def test_a_neighbour_has_as_many_rows_and_one_value_less():
    counts, weights = [3, 4, 4, 5, 18], np.array([0.9, 1.0, 0.2, 0.4, 0.7])
    synthesizer = ppm.GammaPoisson(counts, shape=2.0, rate=0.5)
    blank = np.array([0.9, 1.0, 0.2, 0.4, 0.0])
    same_table = synthesizer.posterior(blank)
    shorter = ppm.GammaPoisson(counts[:-1], shape=2.0, rate=0.5).posterior(weights[:-1])
    # for the parameter it is the table without the row, whatever the value was ...
    other_value = ppm.GammaPoisson([3, 4, 4, 5, 0], shape=2.0, rate=0.5).posterior(blank)
    assert np.isclose(same_table.mean(), shorter.mean())
    assert np.isclose(same_table.mean(), other_value.mean())
    assert not np.isclose(same_table.mean(), synthesizer.posterior(weights).mean())
    # ... and for a release it is not
    assert release_of(counts, blank).size == release_of(counts, weights).size == 5
    assert release_of(counts[:-1], weights[:-1]).size == 4


def test_a_number_of_rows_that_follows_the_records_is_not_covered():
    counts = [3, 4, 4, 5, 5, 6, 7, 18]
    zero = np.zeros(8)

    def with_record(seed):
        return release_of(counts, zero, seed=int(seed.generate_state(1)[0]))

    def fewer_rows(seed):
        return release_of(counts[:-1], zero[:-1], seed=int(seed.generate_state(1)[0]))

    # with all weights 0 the parameter costs nothing, and the number of rows tells
    found = ppm.audits.membership_test(with_record, fewer_rows, np.size, runs=200, random_seed=1)
    assert found.lower > 3.0
    fixed = ppm.audits.membership_test(with_record, with_record, np.size, runs=200, random_seed=1)
    assert fixed.lower == 0.0


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


@pytest.mark.parametrize(("seed", "records"), SIZES)
def test_capped_oscillations_over_a_public_set_leave_no_database_above_the_cap(seed, records):
    log_lik, _, prior = densities(seed, records)
    cap = 0.7
    # all that the prior allows, and the first half of it
    whole_set, part = ppm.record_oscillations(log_lik), ppm.record_oscillations(log_lik[:3])
    weights, others = (
        ppm.public_weights(found, ppm.weights.capped_map(cap)) for found in (whole_set, part)
    )
    predictive = np.random.default_rng(seed).dirichlet(np.full(7, 0.3), size=prior.size)
    for whole, without in pairs(log_lik, weights, prior):
        assert loss(whole, without) <= cap + 1e-9
        assert loss(whole @ predictive, without @ predictive) <= cap + 1e-9
    # a prior that is restricted to the part makes its cap good, a prior that is not does not
    within = prior[:3] / prior[:3].sum()
    assert max(loss(x, y) for x, y in pairs(log_lik[:3], others, within)) <= cap + 1e-9


def test_a_cap_over_a_part_of_what_the_prior_allows_is_exceeded():
    exceeded = 0
    for seed, records in SIZES:
        log_lik, _, prior = densities(seed, records)
        part = ppm.record_oscillations(log_lik[:3])
        weights = ppm.public_weights(part, ppm.weights.capped_map(0.7))
        exceeded += max(loss(x, y) for x, y in pairs(log_lik, weights, prior)) > 0.7
    assert exceeded > 20


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
    weights = ppm.scalar_weights(ppm.record_bounds(log_lik), epsilon=epsilon)
    utility = log_lik.sum(axis=1)
    unscaled = prior * np.exp(epsilon / (2 * sensitivity) * utility)
    posterior = pseudo_posterior(log_lik, weights, prior)
    np.testing.assert_allclose(posterior, unscaled / unscaled.sum())
    assert max(loss(x, y) for x, y in pairs(log_lik, weights, prior)) <= epsilon + 1e-9
    # without the 2 it is another distribution
    wrong = prior * np.exp(epsilon / sensitivity * utility)
    assert not np.allclose(posterior, wrong / wrong.sum())
