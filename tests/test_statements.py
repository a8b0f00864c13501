"""The book's statements where every probability can be added up: parameters on a finite set."""

from functools import reduce
from itertools import product

import numpy as np
import pytest
from scipy import optimize, special, stats

import ppm
from ppm_book import audits


def densities(seed, records, parameters=6):
    """Log-densities (parameters, records), weights and a prior, all drawn at random."""
    rng = np.random.default_rng(seed)
    log_lik = rng.normal(0.0, rng.uniform(0.2, 4.0), size=(parameters, records))
    return log_lik, rng.uniform(size=records), rng.dirichlet(np.full(parameters, 0.5))


CASES = [densities(seed, records) for seed in range(8) for records in (2, 5, 9)]
each_case = pytest.mark.parametrize(("log_lik", "weights", "prior"), CASES)


def posterior(terms, prior):
    """Probabilities of the parameters."""
    unscaled = prior * np.exp(terms.sum(axis=1))
    return unscaled / unscaled.sum()


def pairs(log_lik, prior, terms=np.asarray):
    """Posterior of all records, and without each of them; ``terms`` may look at all there are."""
    whole = posterior(terms(log_lik), prior)
    for left_out in range(log_lik.shape[1]):
        yield whole, posterior(terms(np.delete(log_lik, left_out, axis=1)), prior)


def log_ratio(first, second):
    """Log ratio of two distributions wherever one of them has mass."""
    seen = (first > 0) | (second > 0)
    return np.log(first[seen] / second[seen])


def loss(first, second):
    """Largest |log ratio| of two distributions: the ε that they need."""
    return np.abs(log_ratio(first, second)).max()


def worst(*case):
    """The ε that a database needs: its largest loss."""
    return max(loss(x, y) for x, y in pairs(*case))


def reacting_terms(log_lik):
    """Terms with weights by min-max scaling, as the paper's rule gives them."""
    return ppm.record_weights(ppm.record_bounds(log_lik)) * log_lik


@each_case
def test_the_pseudo_posterior_is_private_with_twice_the_bound(log_lik, weights, prior):
    epsilon = ppm.epsilon(ppm.local_bound(log_lik, weights))
    assert worst(weights * log_lik, prior) <= epsilon + 1e-9


def divergence(first, second):
    """Kullback-Leibler divergence: the log ratio, averaged over the first distribution."""
    return special.rel_entr(first, second).sum()


@each_case
def test_the_average_log_ratio_is_within_twice_the_bound(log_lik, weights, prior):
    bound = ppm.local_bound(log_lik, weights)
    for whole, fewer in pairs(weights * log_lik, prior):
        # whichever of the two is drawn from
        assert divergence(whole, fewer) <= 2 * bound + 1e-9
        assert divergence(fewer, whole) <= 2 * bound + 1e-9


def test_the_average_log_ratio_comes_near_twice_the_bound():
    bound = 40.0
    # a record that favours what the others hold for impossible, nearly
    term, others = np.array([[bound], [-bound]]), np.array([np.exp(5 - 2 * bound), 1.0])
    alone = others / others.sum()
    assert 1.8 * bound < divergence(posterior(term, alone), alone) < 2 * bound


def test_weights_that_react_pass_twice_the_bound_without_a_threshold_too():
    means = np.linspace(2.0, 12.0, 101)
    log_p = stats.poisson.logpmf([3, 4, 4, 5, 3, 3, 7, 18], means[:, None])
    uniform = np.full(means.size, 1 / means.size)
    *_, h_leaves = pairs(log_p, uniform, reacting_terms)
    twice = 2 * ppm.local_bound(reacting_terms(log_p))
    assert 15.16 < loss(*h_leaves) < 15.18
    assert 11.51 < twice < 11.52


def release_of(counts, weights, *, seed=0):
    """One release of Gamma-Poisson at these weights."""
    fit = ppm.fit(
        ppm.GammaPoisson(counts), ppm.Terms(weights), draws=5, random_seed=seed
    )
    return fit.release(1, random_seed=seed + 1)


def test_a_neighbour_has_as_many_rows_and_one_value_less():
    counts, weights = [3, 4, 4, 5, 18], np.array([0.9, 1.0, 0.2, 0.4, 0.7])
    blank = np.append(weights[:-1], 0.0)
    shorter, other = (counts[:-1], weights[:-1]), ([3, 4, 4, 5, 0], blank)
    databases = (counts, blank), shorter, other, (counts, weights)
    same, without, replaced, all_five = (
        ppm.GammaPoisson(values).posterior(own).mean() for values, own in databases
    )
    # for the parameter it is the table without the row, whatever the value was ...
    assert np.isclose(same, without) and np.isclose(same, replaced)
    assert not np.isclose(same, all_five)
    # ... and for a release it is not
    assert [release_of(*database).size for database in databases] == [5, 4, 5, 5]


def test_a_number_of_rows_that_follows_the_records_is_not_covered():
    def releases(records):
        counts, zero = [3, 4, 4, 5, 5, 6, 7, 18][:records], np.zeros(records)
        return lambda seed: release_of(
            counts, zero, seed=int(seed.generate_state(1)[0])
        )

    # with all weights 0 the parameter costs nothing, and the number of rows tells
    found, fixed = (
        audits.membership_test(releases(8), other, np.size, runs=60, random_seed=1)
        for other in (releases(7), releases(8))
    )
    assert found.lower > 1.5 and fixed.lower == 0.0


def test_the_two_in_the_theorem_is_needed():
    # a likely parameter speaks against the record, a nearly impossible one for it
    log_lik = np.array([[1.0], [-1.0]])
    found = worst(log_lik, np.array([1e-4, 1.0 - 1e-4]))
    assert 1.99 < found / ppm.local_bound(log_lik) <= 2


@each_case
def test_a_record_that_leaves_takes_one_term_with_it(log_lik, weights, prior):
    records = weights.size
    for left_out in range(records):
        kept = np.arange(records) != left_out
        change = log_lik @ weights - log_lik[:, kept] @ weights[kept]
        np.testing.assert_allclose(
            change, weights[left_out] * log_lik[:, left_out], atol=1e-9
        )
        bound = ppm.record_bounds(log_lik, weights)[left_out]
        assert np.abs(change).max() == pytest.approx(bound)
        # a weight that looks at the other records changes their terms too
        others = weights[kept] / weights[kept].max()
        moved = log_lik @ weights - log_lik[:, kept] @ others
        assert records == 2 or not np.allclose(
            moved, weights[left_out] * log_lik[:, left_out]
        )


CAP = 0.7


def capped(log_lik, over=slice(None)):
    """Terms whose oscillations over a part of the parameters are capped."""
    own = ppm.record_oscillations(log_lik[over])
    return np.minimum(1, CAP / own) * log_lik


@each_case
def test_capped_oscillations_over_a_public_set_leave_no_database_above_the_cap(
    log_lik, weights, prior
):
    assert worst(capped(log_lik), prior) <= CAP + 1e-9
    # a prior that is restricted to the part makes its cap good, a prior that is not does not
    part = slice(3)
    assert worst(capped(log_lik, part)[part], prior[part]) <= CAP + 1e-9


def test_a_cap_over_a_part_of_what_the_prior_allows_is_exceeded():
    exceeded = [
        worst(capped(log_lik, slice(3)), prior) > CAP for log_lik, _, prior in CASES
    ]
    assert np.mean(exceeded) > 1 / 3


@each_case
def test_post_processing_costs_nothing_unless_it_looks_again(log_lik, weights, prior):
    predictive = np.random.default_rng(1).dirichlet(np.full(7, 0.3), size=prior.size)
    # what is drawn with a second look at the record needs more than the draw of the parameter
    second_look = predictive + np.eye(7)[0] * 1e6
    second_look /= second_look.sum(axis=1, keepdims=True)
    for whole, without in pairs(weights * log_lik, prior):
        assert (
            loss(whole @ predictive, without @ predictive)
            <= loss(whole, without) + 1e-9
        )
        assert loss(whole @ second_look, without @ predictive) > loss(whole, without)


def repeated(whole, without, releases):
    """Both distributions of several independent releases."""
    return [reduce(np.kron, [one] * releases) for one in (whole, without)]


@each_case
def test_releases_add_up(log_lik, weights, prior):
    bound = ppm.local_bound(log_lik, weights)
    for whole, without in pairs(weights * log_lik, prior):
        for releases in (1, 2, 3):
            joint = loss(*repeated(whole, without, releases))
            assert joint == pytest.approx(releases * loss(whole, without))
            assert joint <= ppm.epsilon(bound, releases) + 1e-9


# the last: all terms at the upper limit where the prior has hardly any mass, else at the lower one
@pytest.mark.parametrize(
    "case", [*CASES, (np.c_[[9.0] * 3, [-9.0] * 3].T, 1, [1e-9, 1 - 1e-9])]
)
def test_a_group_costs_epsilon_for_each_of_its_records(case):
    terms = ppm.Limits(-2.0, -1.0)(case[1] * case[0])
    for k in range(1, terms.shape[1] + 1):
        lost = loss(posterior(terms, case[2]), posterior(terms[:, k:], case[2]))
        assert lost <= k + 1e-9 and (len(terms) > 2 or lost > k - 1e-6)


@each_case
def test_the_exponential_mechanism_is_a_posterior_with_one_weight(
    log_lik, weights, prior
):
    sensitivity = ppm.local_bound(log_lik)
    epsilon = 1.5 * sensitivity
    scalar = np.full(weights.size, min(1, epsilon / (2 * sensitivity)))
    utility = log_lik.sum(axis=1, keepdims=True)
    found = posterior(scalar * log_lik, prior)
    np.testing.assert_allclose(
        found, posterior(epsilon / (2 * sensitivity) * utility, prior)
    )
    assert worst(scalar * log_lik, prior) <= epsilon + 1e-9
    # without the 2 it is another distribution
    assert not np.allclose(found, posterior(epsilon / sensitivity * utility, prior))


# ---- censoring ---------------------------------------------------------------------------------

LIMITS = [
    ppm.Limits(*both) for both in ((-0.5, 0.5), (-3.0, -2.0), (-9.0, -5.0), (1.0, 1.2))
]
CUT = LIMITS[1]


def harsh(log_lik):
    """Log-densities of which many lie far outside any interval, one of them impossible."""
    log_lik = 6.0 * log_lik
    log_lik[0, 0] = -np.inf
    return log_lik


def needed_delta(first, second, epsilon):
    """The δ that two distributions need at ε, in both directions."""
    ways = (first, second), (second, first)
    return max(
        np.maximum(one - np.exp(epsilon) * other, 0.0).sum() for one, other in ways
    )


@each_case
def test_censoring_keeps_every_database_within_the_width(log_lik, weights, prior):
    for limits, own in product(LIMITS, (1.0, weights)):
        for whole, without in pairs(limits(own * harsh(log_lik)), prior):
            found = log_ratio(whole, without)
            assert np.ptp(found) <= limits.width + 1e-9
            # 0 is among them, so that none is farther from it than the width
            assert found.min() <= 1e-9 and found.max() >= -1e-9


@pytest.mark.parametrize("limits", LIMITS)
def test_the_width_is_reached_and_twice_the_width_where_a_record_is_replaced(limits):
    log_lik, prior = np.array([[1e3, -1e3], [-1e3, 1e3]]), np.array([1e-6, 1.0 - 1e-6])
    width, terms = limits.width, limits(log_lik)
    first, second = (posterior(terms[:, [i]], prior) for i in (0, 1))
    assert 0.999 * width < loss(first, prior) <= width + 1e-9
    assert 0.999 * width < loss(second, prior) + 2e-6 * np.exp(width)
    assert 1.998 * width < loss(first, second) <= 2 * width + 1e-9


def around_the_sum(log_lik):
    return CUT(log_lik.sum(axis=1, keepdims=True))


def test_without_the_clip_or_with_one_around_the_sum_databases_are_above_the_width():
    free, around, inside = (
        np.transpose(
            [
                (
                    worst(x, prior),
                    worst(x, prior, around_the_sum),
                    worst(CUT(x), prior),
                )
                for x, _, prior in CASES
            ]
        )
        / CUT.width
    )
    assert (
        np.mean(free > 1) > 0.5
        and np.sum(around > 1) >= 2
        and np.sum(inside > 0.5) >= 2
    )
    # the sum may go from one limit to the other where the record's own term could not
    opposed, rare = (
        np.array([[20.0, -10.0], [-20.0, 10.0]]),
        np.array([1e-6, 1.0 - 1e-6]),
    )
    assert worst(opposed, rare, around_the_sum) == pytest.approx(
        2 * CUT.width, rel=1e-4
    )


@pytest.mark.parametrize("limits", [CUT])
def test_weights_that_react_leave_the_width_also_inside_the_clip(limits):
    def terms(log_lik):
        return limits(reacting_terms(log_lik))

    found = [worst(log_lik, prior, terms) / limits.width for log_lik, _, prior in CASES]
    assert sum(above > 1 for above in found) >= 2
    # what is left: every term moves by the width at most
    most = np.array([2 * weights.size - 1 for _, weights, _ in CASES])
    assert np.all(found <= most + 1e-9)


@each_case
def test_the_loss_as_run_lies_between_half_the_oscillation_of_all_terms_and_the_whole(
    log_lik, weights, prior
):
    total = reacting_terms(log_lik).sum(axis=1)
    for left_out, (whole, without) in enumerate(pairs(log_lik, prior, reacting_terms)):
        others = reacting_terms(np.delete(log_lik, left_out, axis=1)).sum(axis=1)
        oscillation = np.ptp(total - others)
        # and so below twice the largest change, whatever moves the weights
        assert oscillation / 2 - 1e-9 <= loss(whole, without) <= oscillation + 1e-9
        assert np.ptp(log_ratio(whole, without)) == pytest.approx(oscillation)


def test_for_weights_that_react_bound_and_oscillation_of_a_record_s_own_term_are_exceeded():
    above, databases = [], []
    for log_lik, _, prior in CASES:
        terms = reacting_terms(log_lik)
        losses = [loss(*sides) for sides in pairs(log_lik, prior, reacting_terms)]
        above += [*(losses > ppm.record_oscillations(terms))]
        databases.append(max(losses) > ppm.epsilon(ppm.local_bound(terms)))
    assert np.mean(above) > 0.1 and np.sum(databases) >= 3


def renyi(first, second, order):
    """Rényi divergence of two distributions with the same support."""
    return np.log(np.sum(first**order * second ** (1 - order))) / (order - 1)


@each_case
def test_releases_of_a_censored_posterior_add_up_to_less_than_their_widths(
    log_lik, weights, prior
):
    width, low = 3.0, -4.0
    terms = ppm.Limits(low, low + width)(harsh(log_lik))[:, :4]
    for whole, without in pairs(terms, (prior + 0.05) / (prior + 0.05).sum()):
        for order in (1.01, 2.0, 8.0):
            both = renyi(whole, without, order), renyi(without, whole, order)
            assert max(both) <= order * width**2 / 8 + 1e-9
        for releases in (1, 2, 3):
            joint = repeated(whole, without, releases)
            assert loss(*joint) <= ppm.pdp.bounded_range_epsilon(width, releases) + 1e-9
            for delta in (0.3, 0.1, 1e-3):
                epsilon = ppm.pdp.bounded_range_epsilon(width, releases, delta=delta)
                assert needed_delta(*joint, epsilon) <= delta


def test_the_eighth_of_the_squared_width_cannot_be_lowered():
    width = 0.05
    terms = ppm.Limits(-1.0, -1.0 + width)(np.array([[9.0], [-9.0]]))
    ((whole, without),) = pairs(terms, np.array([0.5, 0.5]))
    assert 0.99 < renyi(whole, without, 1.01) / 1.01 / (width**2 / 8) <= 1.0


@each_case
def test_draws_that_are_not_exact_cost_their_distance_twice(log_lik, weights, prior):
    prior, rng, far = (
        (prior + 0.05) / (prior + 0.05).sum(),
        np.random.default_rng(1),
        0.01,
    )
    for exact in pairs(CUT(harsh(log_lik)), prior):
        drawn = [
            (1 - far) * one + far * rng.dirichlet(np.full(one.size, 0.2))
            for one in exact
        ]
        distance = max(
            np.abs(a - b).sum() / 2 for a, b in zip(drawn, exact, strict=True)
        )
        assert needed_delta(*drawn, 1.0) <= (1 + np.e) * distance + 1e-12


def test_the_price_of_draws_that_are_not_exact_can_be_reached():
    # the ratio on the first result is e itself; each draw is moved by a hundredth
    without, far = np.array([0.2, 0.8]), np.array([0.01, -0.01])
    whole = np.array([0.2 * np.e, 1 - 0.2 * np.e])
    assert needed_delta(whole, without, 1.0) < 1e-12
    assert needed_delta(whole + far, without - far, 1.0) == pytest.approx(
        (1 + np.e) * 0.01
    )


@pytest.mark.parametrize("n", [100, 400, 1600, 6400])
def test_contraction_of_poisson_counts_is_as_the_theorem_says_and_leaves_room(n):
    """Every odd row has the weight 1/2 and every even row 0.9; the prior of the mean is exponential."""
    mean, fixed, D, t = 100.0, np.array([0.5, 0.9]), 2.0, 1.0

    def ball(mu):
        """The larger of E l and E l^2 of one record."""
        first = mean * np.log(mean / mu) + mu - mean
        return np.maximum(first, first**2 + mean * np.log(mean / mu) ** 2)

    def far(mu):
        """-log A, averaged over odd and even rows."""
        gone = [a * (mu - mean) - mean * ((mu / mean) ** a - 1) for a in fixed]
        return np.mean(gone, axis=0)

    def ends(of, level):
        """The two means, below and above the true one, at which it has a level."""
        return [
            optimize.brentq(lambda mu: of(mu) - level, mean, edge)
            for edge in (0.1, 1e5)
        ]

    # the closed forms, from the definitions
    y, mu = np.arange(400), np.array([85.0, 98.0, 103.0, 116.0])
    ell = stats.poisson.logpmf(y, mean) - stats.poisson.logpmf(y, mu[:, None])
    truth = stats.poisson.pmf(y, mean)
    assert ball(mu) == pytest.approx(np.maximum(ell @ truth, ell**2 @ truth))
    logs = [np.log(np.exp(-a * ell) @ truth) for a in fixed]
    assert far(mu) == pytest.approx(-np.mean(logs, axis=0))

    prior = stats.expon(scale=mean)
    x = optimize.brentq(  # n tau^2, the smallest at which the ball has its mass
        lambda x: np.exp(-x) - np.diff(prior.cdf(ends(ball, x / n))).item(), 0.01, 50
    )
    sums = np.random.default_rng(n).poisson(
        mean * n / 2, (1000, 2)
    )  # of 1,000 databases
    posterior = stats.gamma(
        1 + sums @ fixed, scale=1 / (1 / mean + n / 2 * fixed.sum())
    )
    exceeding = []
    for part in (1, 0.01):  # all of the distance, and about a tenth
        low, high = ends(far, part * (D + 3 * t) * x / n)
        exceeding.append(posterior.cdf(low) + posterior.sf(high) > np.exp(-t * x))
    allowed = 1 / ((D + t - 2) ** 2 * x) + np.exp(-t * x)
    assert not exceeding[0].any() and 0.15 < allowed < 0.27
    # a U that begins too near would be seen
    assert exceeding[1].all()
