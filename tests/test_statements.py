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
        ppm.mapped_weights(found, ppm.weights.capped_map(cap)) for found in (whole_set, part)
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
        weights = ppm.mapped_weights(part, ppm.weights.capped_map(0.7))
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


# ---- censoring ---------------------------------------------------------------------------------

INTERVALS = [(-0.5, 0.5), (-3.0, -2.0), (-9.0, -5.0), (1.0, 1.2)]


def censored(log_lik, low, high, *, smooth=False):
    """Terms of the records between two public numbers, written out once more."""
    if not smooth:
        return np.minimum(np.maximum(log_lik, low), high)
    middle, half = (low + high) / 2, (high - low) / 2
    return middle + half * np.tanh((log_lik - middle) / half)


def harsh(seed, records):
    """Log-densities of which many lie far outside any interval, weights, and a prior."""
    log_lik, weights, prior = densities(seed, records)
    log_lik = 6.0 * log_lik
    log_lik[seed % 6, seed % records] = -np.inf  # a record that a parameter makes impossible
    return log_lik, weights, prior


def log_ratio(first, second):
    """Log ratio of two distributions wherever one of them has mass."""
    seen = (first > 0) | (second > 0)
    return np.log(first[seen] / second[seen])


def needed_delta(first, second, epsilon):
    """The δ that two distributions need at ε, in both directions."""
    return max(
        np.maximum(first - np.exp(epsilon) * second, 0.0).sum(),
        np.maximum(second - np.exp(epsilon) * first, 0.0).sum(),
    )


@pytest.mark.parametrize("smooth", [False, True])
def test_a_censored_term_stays_between_its_limits_and_follows_the_record_inside(smooth):
    for low, high in INTERVALS:
        width, middle = high - low, (low + high) / 2
        log_lik = np.r_[-np.inf, middle + width * np.linspace(-30, 30, 2001), np.inf]
        term = censored(log_lik, low, high, smooth=smooth)
        assert (term[0], term[-1]) == pytest.approx((low, high), abs=1e-12)
        assert np.all(np.diff(term) >= -1e-12)
        # at the middle it is the log-likelihood itself, with its slope
        near = middle + width * np.array([-1e-3, 0.0, 1e-3])
        np.testing.assert_allclose(
            censored(near, low, high, smooth=smooth), near, atol=1e-8 * width
        )


@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize(("seed", "records"), SIZES)
def test_censoring_keeps_every_database_within_the_width(seed, records, smooth):
    log_lik, weights, prior = harsh(seed, records)
    for low, high in INTERVALS:
        for own in (np.ones(records), weights):
            terms = censored(own * log_lik, low, high, smooth=smooth)
            for whole, without in pairs(terms, np.ones(records), prior):
                found = log_ratio(whole, without)
                assert np.ptp(found) <= high - low + 1e-9
                assert found.min() <= 1e-9 and found.max() >= -1e-9
                assert loss(whole, without) <= high - low + 1e-9


@pytest.mark.parametrize("smooth", [False, True])
def test_the_width_is_reached_and_twice_the_width_where_a_record_is_replaced(smooth):
    log_lik, prior = np.array([[1e3, -1e3], [-1e3, 1e3]]), np.array([1e-6, 1.0 - 1e-6])
    for low, high in INTERVALS:
        width = high - low
        terms = censored(log_lik, low, high, smooth=smooth)
        first, second = (pseudo_posterior(terms[:, [i]], np.ones(1), prior) for i in (0, 1))
        assert 0.999 * width < loss(first, prior) <= width + 1e-9
        assert 0.999 * width < loss(second, prior) + 2e-6 * np.exp(width)
        assert 1.998 * width < loss(first, second) <= 2 * width + 1e-9


def around_the_sum(log_lik, prior, low, high):
    """Pairs of posteriors of which the sum is censored, and not each record's term."""

    def posterior(part):
        total = censored(part.sum(axis=1), low, high)
        return pseudo_posterior(total[:, None], np.ones(1), prior)

    for left_out in range(log_lik.shape[1]):
        yield posterior(log_lik), posterior(np.delete(log_lik, left_out, axis=1))


def test_without_the_clip_or_with_one_around_the_sum_databases_are_above_the_width():
    low, high = -3.0, -2.0
    left_out = around = half = 0
    for seed, records in SIZES:
        log_lik, _, prior = densities(seed, records)
        ones = np.ones(records)
        left_out += max(loss(x, y) for x, y in pairs(log_lik, ones, prior)) > high - low
        terms = censored(log_lik, low, high)
        half += max(loss(x, y) for x, y in pairs(terms, ones, prior)) > (high - low) / 2
        around += max(loss(x, y) for x, y in around_the_sum(log_lik, prior, low, high)) > high - low
    assert left_out > 40 and around >= 5 and half > 20
    # the sum may go from one limit to the other where the record's own term could not
    opposed, rare = np.array([[20.0, -10.0], [-20.0, 10.0]]), np.array([1e-6, 1.0 - 1e-6])
    found = max(loss(x, y) for x, y in around_the_sum(opposed, rare, low, high))
    assert found == pytest.approx(2 * (high - low), rel=1e-4)


@pytest.mark.parametrize("smooth", [False, True])
def test_weights_that_react_leave_the_width_also_inside_the_clip(smooth):
    low, high = -3.0, -2.0
    above = 0
    for seed, records in SIZES:
        log_lik, _, prior = densities(seed, records)
        terms = censored(reacting(log_lik) * log_lik, low, high, smooth=smooth)
        whole = pseudo_posterior(terms, np.ones(records), prior)
        for left_out in range(records):
            rest = np.delete(log_lik, left_out, axis=1)
            rest = censored(reacting(rest) * rest, low, high, smooth=smooth)
            without = pseudo_posterior(rest, np.ones(records - 1), prior)
            above += loss(whole, without) > high - low
            # what is left: every term moves by the width at most
            assert loss(whole, without) <= (2 * records - 1) * (high - low) + 1e-9
    assert above > 5


@pytest.mark.parametrize(("seed", "records"), SIZES)
def test_the_loss_as_run_lies_between_half_the_oscillation_of_all_terms_and_the_whole(
    seed, records
):
    log_lik, _, prior = densities(seed, records)
    weights = reacting(log_lik)
    whole = pseudo_posterior(log_lik, weights, prior)
    for left_out in range(records):
        others = np.insert(reacting(np.delete(log_lik, left_out, axis=1)), left_out, 0.0)
        without = pseudo_posterior(log_lik, others, prior)
        oscillation = np.ptp(log_lik @ (weights - others))
        assert oscillation / 2 - 1e-9 <= loss(whole, without) <= oscillation + 1e-9
        assert np.ptp(log_ratio(whole, without)) == pytest.approx(oscillation)


def test_for_weights_that_react_the_oscillation_of_a_record_s_own_term_is_exceeded():
    above = 0
    for seed, records in SIZES:
        log_lik, _, prior = densities(seed, records)
        weights = reacting(log_lik)
        whole = pseudo_posterior(log_lik, weights, prior)
        own = ppm.record_oscillations(log_lik, weights)
        for left_out in range(records):
            rest = np.delete(log_lik, left_out, axis=1)
            above += loss(whole, pseudo_posterior(rest, reacting(rest), prior)) > own[left_out]
    assert above > 50


def renyi(first, second, order):
    """Rényi divergence of two distributions with the same support."""
    return np.log(np.sum(first**order * second ** (1 - order))) / (order - 1)


@pytest.mark.parametrize("seed", range(20))
def test_releases_of_a_censored_posterior_add_up_to_less_than_their_widths(seed):
    log_lik, _, prior = harsh(seed, 4)
    prior = (prior + 0.05) / (prior + 0.05).sum()
    low, high = -4.0, -1.0
    for whole, without in pairs(censored(log_lik, low, high), np.ones(4), prior):
        for order in (1.01, 2.0, 8.0):
            assert renyi(whole, without, order) <= order * (high - low) ** 2 / 8 + 1e-9
            assert renyi(without, whole, order) <= order * (high - low) ** 2 / 8 + 1e-9
        joint, other = whole, without
        for releases in (1, 2, 3):
            if releases > 1:
                joint, other = np.outer(joint, whole).ravel(), np.outer(other, without).ravel()
            assert loss(joint, other) <= ppm.pdp.bounded_range_epsilon(3.0, releases) + 1e-9
            for delta in (0.3, 0.1, 1e-3):
                epsilon = ppm.pdp.bounded_range_epsilon(3.0, releases, delta=delta)
                assert needed_delta(joint, other, epsilon) <= delta


def test_the_eighth_of_the_squared_width_cannot_be_lowered():
    width = 0.05
    terms = censored(np.array([[9.0], [-9.0]]), -1.0, -1.0 + width)
    ((whole, without),) = pairs(terms, np.ones(1), np.array([0.5, 0.5]))
    assert 0.99 < renyi(whole, without, 1.01) / 1.01 / (width**2 / 8) <= 1.0


def moved(distribution, share, onto):
    """The same distribution with some mass taken from elsewhere and put on one result."""
    rest = np.delete(distribution, onto)
    taken = distribution - share * np.insert(rest / rest.sum(), onto, 0.0)
    taken[onto] += share
    return taken


@pytest.mark.parametrize("seed", range(20))
def test_draws_that_are_not_exact_cost_their_distance_twice(seed):
    log_lik, _, prior = harsh(seed, 3)
    prior = (prior + 0.05) / (prior + 0.05).sum()
    rng = np.random.default_rng(seed)
    for whole, without in pairs(censored(log_lik, -3.0, -2.0), np.ones(3), prior):
        far = 0.01
        first, second = (
            (1 - far) * exact + far * rng.dirichlet(np.full(exact.size, 0.2))
            for exact in (whole, without)
        )
        distance = max(np.abs(a - b).sum() / 2 for a, b in ((first, whole), (second, without)))
        assert needed_delta(first, second, 1.0) <= (1 + np.e) * distance + 1e-12


def test_the_price_of_draws_that_are_not_exact_can_be_reached():
    without = np.array([0.2, 0.8])
    # the ratio on the first result is e itself
    whole = np.array([0.2 * np.e, 1 - 0.2 * np.e])
    far = 0.01
    first = moved(whole, far, onto=0)
    second = moved(without, far, onto=1)
    assert needed_delta(whole, without, 1.0) < 1e-12
    assert needed_delta(first, second, 1.0) == pytest.approx((1 + np.e) * far)
