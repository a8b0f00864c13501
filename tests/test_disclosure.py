"""What an ε means, against Bayes' rule and tests on real pairs of distributions."""

import re

import numpy as np
import pytest
from scipy import stats

import ppm
from ppm.disclosure import belief_limits, detection_limit, release_statement

COUNTS = [3, 4, 4, 5, 5, 6, 7, 18]


def run(model=None, draws=50, **settings):
    mechanism = ppm.PseudoPosteriorMechanism(
        model or ppm.GammaPoisson(COUNTS), **settings
    )
    return mechanism.run(draws=draws, random_seed=1)


@pytest.fixture(scope="module")
def result():
    return run()


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


# ---- the statement -----------------------------------------------------------------------------


def numbers(text):
    """Every number in a text, thousands separators taken out."""
    return {
        float(found.replace(",", "")) for found in re.findall(r"\d[\d,]*\.?\d*", text)
    }


def statement(result, releases):
    return release_statement(result, result.synthesize(releases, random_seed=1))


def test_the_statement_holds_no_number_of_the_run(result):
    text = statement(result, 3)
    # the releases and the records, which are public
    assert numbers(text) == {3.0, 8.0}
    assert "odds" not in text and "not published" in text and "one database" in text
    # another database and another number of draws: the same words
    assert statement(run(ppm.GammaPoisson([1, 9] * 4), draws=9), 3) == text


def test_the_statement_puts_a_strict_epsilon_into_odds():
    # each exact draw costs 0.5
    strict = run(censor=ppm.Censoring(-2.5, -2), draws=400)
    text = statement(strict, 4)
    assert "ε = 4 × 0.5 = 2, for every possible database" in text
    took_part, two_values = (
        float(x) for x in re.findall(r"up to about ([\d.]+) to 1", text)
    )
    # 7.389 and 54.598: limits are never rounded down
    assert (took_part, two_values) == (7.39, 54.6)
    finer = run(censor=ppm.Censoring(-2.50001, -2))
    assert "ε = 2 × 0.5001 = 1.0002" in statement(finer, 2)
    for epsilon, shown in (
        (0.50001, "0.5001"),
        (0.1 + 0.2, "0.3"),
    ):  # the sum is above 0.3
        assert (
            f" {shown} for" in ppm.disclosure.Guarantee("strict", epsilon, ()).headline
        )
    assert numbers(text) <= {4.0, 8.0, 0.0, 1.0, 0.5, 2.0, took_part, two_values}
    # many releases make odds that are written as a power of ten
    assert "odds of up to about 10^86.5 to 1" in statement(strict, 398)


def test_the_statement_says_where_weights_come_from_only_if_it_knows(result):
    for one, supplied in (run(weights=result.weights), True), (result, False):
        text = statement(one, 1)
        assert ("Whoever supplied the weights must say" in text) == supplied
        assert ("computed from all records" in text) != supplied


def test_the_statement_is_about_a_whole_release_of_this_result(result):
    strict = run(censor=ppm.Censoring(-3, -1))
    release, local = (one.synthesize(10, random_seed=1) for one in (strict, result))
    # ε of what is there, also after what costs nothing
    several = release.to_dataset(name="y").assign_attrs(release.attrs)
    for same in release, release.clip(3, 6), several:
        assert "10 × 2 = 20, for every" in release_statement(strict, same)
    for of, wrong in (
        (strict, 10),
        (strict, None),
        (strict, release[:1]),
        (strict, release.values),
        (strict, local),
        (result, release),
        (strict, release.assign_attrs(epsilon=2.0)),
        (strict, release.assign_attrs(epsilon_total=2.0)),
        (strict, release.drop_attrs().assign_attrs(releases=10, epsilon=20.0)),
    ):
        with pytest.raises(
            ValueError, match="^release must be all that one call of"
        ) as refused:
            release_statement(of, wrong)
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("kind", ["limits", "candidates", "histogram"])
def test_a_strict_statement_says_what_sp_800_226_asks_of_a_claim(result, kind):
    if kind == "histogram":
        told = release_statement(
            ppm.histogram_release(COUNTS, [0, 5, 20], epsilon=2.0, random_seed=1)
        )
    else:
        grid = ppm.CandidateSynthesizer(
            ppm.GammaPoisson(COUNTS), {"mu": np.linspace(2, 12, 11)}
        )
        one = (
            run(censor=ppm.Censoring(-3, -1))
            if kind == "limits"
            else run(grid, cap=2.0)
        )
        told = statement(one, 1)
    asked = {
        "parameters": ("= 2", "for every possible database", "δ = 0 but for rounding."),
        "unit and neighbour": (
            "unit of privacy is the confidential",
            "neighbour is the same",
        ),
        "what is public": (
            "same public number of rows",
            "released unchanged",
            "must be",
        ),
        "composition": ("other releases from these records", "adds its own ε"),
        "trust and side channels": (
            "model of trust is central",
            "watches them being processed",
        ),
        "randomness": ("guesses the seed",),
    }
    assert [
        which for which, words in asked.items() if not all(x in told for x in words)
    ] == []
    # a local one claims neither parameters nor a unit
    local = statement(result, 1)
    assert not any(
        words in local for words in ("δ = ", "unit of privacy", "every possible")
    )
