"""What an ε means, against Bayes' rule and tests on real pairs of distributions."""

import re
from dataclasses import replace

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
    assert ppm.disclosure.belief_limits(prior, epsilon) == pytest.approx((no, yes))
    # half of ε would promise more than holds
    assert ppm.disclosure.belief_limits(prior, epsilon / 2)[1] < yes


def test_no_test_on_laplace_noise_passes_the_detection_limit():
    # one person moves a count by 1; the noise of scale 1 / ε makes it ε-private
    epsilon = 0.8
    cuts = np.linspace(-10, 12, 400)
    without = stats.laplace.sf(cuts, scale=1 / epsilon)
    with_person = stats.laplace.sf(cuts, loc=1, scale=1 / epsilon)
    limit = ppm.disclosure.detection_limit(without, epsilon)
    assert np.all(with_person <= limit + 1e-12)
    assert np.isclose(with_person, limit).sum() > 100  # far out it is sharp
    assert np.any(with_person > ppm.disclosure.detection_limit(without, epsilon / 2) + 1e-3)


def test_the_limits_have_the_ends_they_must_have():
    assert ppm.disclosure.belief_limits(0.3, 0.0) == pytest.approx((0.3, 0.3))
    assert ppm.disclosure.belief_limits(0.3, np.inf) == (0.0, 1.0)
    rates = np.array([0.0, 0.25, 1.0])
    limit = ppm.disclosure.detection_limit
    assert np.allclose(limit(rates, 0.0), rates) and limit(1.0, 3.0) == 1.0
    # without false alarms nobody is found, but at an infinite ε
    assert np.allclose(limit(rates, 800.0), [0.0, 1.0, 1.0])
    assert limit([0.0, 0.0, 0.5, 1.0], [np.inf, 1e300, np.inf, 0.0]).tolist() == [1, 0, 1, 1]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: ppm.disclosure.belief_limits(1.0, 1.0), "prior must be a probability"),
        (lambda: ppm.disclosure.belief_limits(0.5, [1.0, np.nan]), "epsilon must be 0 or more"),
        (lambda: ppm.disclosure.detection_limit(1.2, 1.0), "false_alarms must be probabilities"),
    ],
)
def test_bad_values_are_refused(call, told):
    with pytest.raises(ValueError, match=told):
        call()


def numbers(text):
    """Every number in a text, thousands separators taken out."""
    return {float(found.replace(",", "")) for found in re.findall(r"\d[\d,]*\.?\d*", text)}


def capped(epsilon, truth=6.0, records=40):
    """A run with weights of the records' own, no oscillation on (2, 12) above a limit.

    Its prior is not restricted to that interval: that is for whoever claims an ε to see to.
    """
    counts = np.random.default_rng(3).poisson(truth, records)
    synthesizer = ppm.GammaPoisson(counts, shape=20.0, rate=3.0)
    own = ppm.mapped_weights(
        synthesizer.oscillations_within(2, 12), ppm.weights.capped_map(epsilon)
    )
    mechanism = ppm.PseudoPosteriorMechanism(synthesizer, weights=own, independent_weights=True)
    return mechanism.run(draws=200, random_seed=1)


def statement(result, releases, **settings):
    release = result.synthesize(releases, random_seed=1)
    return ppm.disclosure.release_statement(result, release, **settings)


def test_the_statement_holds_no_number_of_the_run(result):
    text = statement(result, 3)
    # the releases and the records, which are public
    assert numbers(text) == {3.0, 8.0}
    assert "odds" not in text and "computed from all records" in text
    assert "not published" in text and "one database" in text
    longer = ppm.PseudoPosteriorMechanism(ppm.GammaPoisson([1, 9] * 4)).run(draws=9, random_seed=2)
    # another database and another number of draws: the same words
    assert statement(longer, 3) == text


def test_an_epsilon_that_is_vouched_for_is_put_into_odds():
    result = capped(0.5)
    text = statement(result, 4, strict_epsilon=0.5)
    assert "ε = 4 × 0.5 = 2, for every possible database" in text
    took_part, two_values = (float(x) for x in re.findall(r"up to about ([\d.]+) to 1", text))
    assert took_part == pytest.approx(np.exp(2.0), rel=0.01)
    assert two_values == pytest.approx(np.exp(4.0), rel=0.01)
    assert numbers(text) <= {4.0, 40.0, 0.0, 1.0, 0.5, 2.0, took_part, two_values}
    # many releases make odds that are written as a power of ten
    many = statement(result, 400, strict_epsilon=0.5)
    assert f"odds of up to about 10^{200 / np.log(10):.1f} to 1" in many


def test_a_strict_epsilon_is_refused_where_the_run_contradicts_it(result):
    # computed from all records, or given without a word on where they come from, as here too
    given = ppm.mechanism.bound_fit(result.synthesizer, result.draws, result.weights)
    for reacting in result, given:
        with pytest.raises(ValueError, match="react to no other record: .*independent"):
            statement(reacting, 1, strict_epsilon=30.0)
    own = capped(0.5)
    assert 0.1 < own.oscillation_bound <= 0.5
    with pytest.raises(ValueError, match="contradicted by this run") as refused:
        statement(own, 1, strict_epsilon=0.1)
    assert numbers(str(refused.value)) == set()


def test_the_statement_does_not_say_where_given_weights_come_from(result):
    log_lik = result.synthesizer.log_likelihood(result.unweighted)
    for weights in (np.full(8, 0.5), ppm.record_weights(ppm.record_bounds(log_lik))):
        mechanism = ppm.PseudoPosteriorMechanism(ppm.GammaPoisson(COUNTS), weights=weights)
        text = statement(mechanism.run(draws=50, random_seed=1), 1)
        assert "Whoever supplied the weights must say" in text
        assert "beforehand" not in text and "computed from all records" not in text


def test_the_statement_is_about_a_whole_release_of_this_result(result):
    strict = ppm.PseudoPosteriorMechanism(
        ppm.GammaPoisson(COUNTS, shape=2.0, rate=0.4), censor=ppm.Censoring(-3, -1)
    ).run(draws=50, random_seed=1)
    release = strict.synthesize(10, random_seed=1)
    # ε of what is there, also after what costs nothing
    several = release.to_dataset(name="y").assign_attrs(release.attrs)
    for same in release, release.clip(3, 6), several:
        told = ppm.disclosure.release_statement(strict, same)
        assert "10 × 2 = 20, for every" in told
    assert release.clip(3, 6).attrs == {"releases": 10, "epsilon": 20.0}
    local = result.synthesize(10, random_seed=1)
    for of, wrong in (
        (strict, 10), (strict, None), (strict, release[:1]), (strict, release.values),
        (strict, local), (result, release), (strict, release.assign_attrs(epsilon=2.0)),
    ):
        with pytest.raises(ValueError, match="^release must be all that one call of") as refused:
            ppm.disclosure.release_statement(of, wrong)
        assert "\n" not in str(refused.value)


def test_no_statement_is_written_where_the_chains_disagree(result):
    stuck = replace(result, _faults=("R-hat is 2.000",), allow_disagreement=True)
    assert stuck.local_bound > 0
    with pytest.raises(ppm.ChainsDisagreeError):
        ppm.disclosure.release_statement(stuck, result.synthesize(1))


def test_two_values_of_a_record_are_two_steps_apart():
    # parameters on a finite set, weights 1: the table with one value, with none, with another
    log_lik = np.array([1.0, 0.4, 0.0, -0.7, -1.0])
    tables = [np.exp(log_lik), np.ones(5), np.exp(-log_lik)]
    one, none, other = (table / table.sum() for table in tables)
    epsilon = max(np.abs(np.log(side / none)).max() for side in (one, other))
    between = np.abs(np.log(one / other)).max()
    assert epsilon < between <= 2 * epsilon
    low, high = ppm.disclosure.belief_limits(0.5, 2 * epsilon)
    belief = one / (one + other)
    assert np.all((belief >= low) & (belief <= high))
    # ε itself would promise more than holds
    assert np.any(belief > ppm.disclosure.belief_limits(0.5, epsilon)[1]) or np.any(
        belief < ppm.disclosure.belief_limits(0.5, epsilon)[0]
    )
