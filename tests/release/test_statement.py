"""The guarantee and the statement beside a release: what is said, and of what."""

import re

import numpy as np
import pandas as pd
import pytest

import ppm
from ppm.release import Guarantee, guarantee, release_statement
from ppm.release.statement import noisy_guarantee

COUNTS = [3, 4, 4, 5, 5, 6, 7, 18]
GRID = ppm.Candidates(ppm.GammaPoisson(COUNTS), {"mu": np.linspace(2.0, 12.0, 11)})


def fitted(model, rule=None, draws=50):
    return ppm.fit(model, rule or ppm.ByRisk(), draws=draws, random_seed=1)


@pytest.fixture(scope="module")
def by_risk():
    return fitted(ppm.GammaPoisson(COUNTS))


def numbers(text):
    """Every number in a text, thousands separators taken out."""
    return {
        float(found.replace(",", "")) for found in re.findall(r"\d[\d,]*\.?\d*", text)
    }


def statement(fit, releases):
    return release_statement(fit, fit.release(releases, random_seed=1))


def test_the_statement_holds_no_number_of_the_run(by_risk):
    text = statement(by_risk, 3)
    # the releases and the records, which are public
    assert numbers(text) == {3.0, 8.0}
    assert "odds" not in text and "not published" in text and "one database" in text
    # another database and another number of draws: the same words
    assert statement(fitted(ppm.GammaPoisson([1, 9] * 4), draws=9), 3) == text


def test_the_statement_puts_a_strict_epsilon_into_odds():
    # each exact draw costs 0.5
    strict = fitted(GRID, ppm.Limited(ppm.Limits(-2.5, -2)), draws=400)
    text = statement(strict, 4)
    assert "ε = 4 × 0.5 = 2, for every possible database" in text
    took_part, two_values = (
        float(x) for x in re.findall(r"up to about ([\d.]+) to 1", text)
    )
    # 7.389 and 54.598: limits are never rounded down
    assert (took_part, two_values) == (7.39, 54.6)
    finer = fitted(GRID, ppm.Limited(ppm.Limits(-2.50001, -2)))
    assert "ε = 2 × 0.5001 = 1.0002" in statement(finer, 2)
    for epsilon, shown in (
        (0.50001, "0.5001"),
        (0.1 + 0.2, "0.3"),
    ):  # the sum is above 0.3
        assert f" {shown} for" in Guarantee("strict", epsilon, ()).headline
    public = {4.0, 8.0, 11.0, 0.0, 1.0, 0.5, 2.0, 50.0}
    # 88.08 %
    assert "to 1, which is a probability of 88.1 % in place of 50 %;" in text
    assert numbers(text) <= public | {took_part, two_values, 88.1}
    # many releases make odds that are written as a power of ten
    assert "odds of up to about 10^86.5 to 1" in statement(strict, 398)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"kind": "sure"}, "kind must be of 'strict', 'local'; got 'sure'"),
        ({"covers": "quantiles"}, "covers must be of 'release', .*, 'own'; got 'quant"),
        ({"covers": ["own"]}, "covers must be of 'release'"),
        (
            {"reasons": ("package", "none")},
            "reasons must be of .*'holders'; got 'none'",
        ),
        ({"reasons": "package"}, "reasons must be a tuple; got 'package'"),
        ({"reasons": (None,)}, "reasons must be of .*; got None"),
        ({"epsilon": np.inf}, "epsilon must be a finite number"),
        ({"epsilon": "1"}, "epsilon must be a finite number"),
        ({"covers": "own"}, "words must be a line that says what epsilon covers"),
        ({"covers": "own", "words": "two\nlines"}, "words must be a line"),
        ({"covers": "own", "words": 5}, "words must be a line"),
        ({"covers": "counts", "words": "sums"}, "words must .* be left out elsewhere"),
    ],
)
def test_a_guarantee_has_words_that_there_are(settings, told):
    promised = {"kind": "strict", "epsilon": 0.5, "reasons": ("package",)}
    with pytest.raises(ValueError, match=told) as refused:
        Guarantee(**promised | settings)
    assert "\n" not in str(refused.value)


class OfOnesOwn(ppm.GammaPoisson):
    """A model that is not the library's."""


def strict_on(model=GRID.model, rule=None, **settings):
    grid = {"mu": np.linspace(2.0, 12.0, 11)}
    model = ppm.Candidates(model, grid, **settings)
    return guarantee(fitted(model, rule or ppm.Capped(1.0)))


CHOICES, BINS = "choices_of_candidates", "choices_of_bins"
ALWAYS = ("unchanged", "imputed", "others", "ended", "holders")
LOCAL, SEEDED = ("reaction", "choices"), ("rounding", "seed")
HALF = ppm.Limited(ppm.Limits(-3.0, -1.0), weight=0.5)
BY_RECORD = ppm.Limited(ppm.Limits(-3.0, -1.0), weight=(0.5,) * 8)
REASONS = {
    "draws": (lambda: guarantee(fitted(GRID.model)), ("databases_and_draws", *LOCAL)),
    "candidates": (lambda: guarantee(fitted(GRID)), ("databases", *LOCAL)),
    "strict": (strict_on, (*SEEDED, CHOICES)),
    "one weight": (lambda: strict_on(rule=HALF), (*SEEDED, CHOICES)),
    "weights": (lambda: strict_on(rule=BY_RECORD), (*SEEDED, "weights", CHOICES)),
    "secure": (lambda: strict_on(secure_noise=True), ("package", CHOICES)),
    "own model": (lambda: strict_on(OfOnesOwn(COUNTS)), (*SEEDED, "own_model", CHOICES)),
    "noise": (lambda: noisy_guarantee(1.0, "sums", secure=False),
              ("seed_of_noise", "law_of_noise", BINS)),
    "secure noise": (lambda: noisy_guarantee(1.0, "sums", secure=True), ("package", BINS)),
}  # fmt: skip


@pytest.mark.parametrize(("make", "reasons"), REASONS.values(), ids=REASONS)
def test_a_guarantee_names_what_it_does_not_cover_and_nothing_else(make, reasons):
    found = make()
    assert found.reasons == (*reasons, *ALWAYS)
    strict = found.kind == "strict"
    assert found.rounded is (strict and "package" not in reasons)
    told = " ".join(str(found).split())
    # what replacing a value costs is told of an ε for every database alone
    assert ("twice" in told) is strict and told.count("- ") == len(found.reasons)


def test_noise_of_ones_own_says_what_epsilon_covers():
    words = "the noisy {median} and any number of releases made of it"
    own = Guarantee("strict", 0.5, ("package",), covers="own", words=words)
    assert own.headline == f"strict: epsilon 0.5 for {words}, for every database"
    made = ppm.release.NoisyRelease([[1]], {}, own, "One value.")
    assert f"ε = 0.5 for {words}, for every possible" in release_statement(made)


class Own(ppm.Rule):
    """A rule of one's own, here for candidates."""

    def terms(self, model, fit):
        return ppm.Terms(np.full(model.records, 0.5), ppm.Limits(-3.0, -1.0))


class Subclass(ppm.Capped):
    """Says no more than any rule of one's own."""


LIMITS = ppm.Limits(-3.0, -1.0)
CENTER = {"mu": 5.0}
HALVES = (0.5,) * 8
WEIGHT, BETWEEN = "multiplied by a weight", "kept between two limits"
AROUND = "kept, less its value at public parameters, between two limits"
GIVEN, COMPUTED = "Whoever supplied the weights must", "computed from all records"
WORDS = {
    "unweighted": (ppm.Unweighted(), "taken in full", ""),
    "by risk": (ppm.ByRisk(), WEIGHT, COMPUTED),
    "one weight": (ppm.OneWeight(epsilon=1.0), WEIGHT, COMPUTED),
    "by count": (ppm.ByCount(0.3), WEIGHT, COMPUTED),
    "given": (ppm.Given([1.0] * 8), WEIGHT, GIVEN),
    "terms": (ppm.Terms(HALVES), WEIGHT, GIVEN),
    "own rule": (Own(), f"{WEIGHT} and {BETWEEN}", COMPUTED),
    "subclass": (Subclass(2.0), f"{WEIGHT} and {BETWEEN}", COMPUTED),
    "capped": (
        ppm.Capped(2.0),
        f"{WEIGHT} that keeps its range over all candidates within 2",
        "every possible database",
    ),
    "limits": (ppm.Limited(LIMITS), BETWEEN, "every possible database"),
    "center": (ppm.Limited(LIMITS, CENTER), AROUND, "every possible database"),
    "a weight": (
        ppm.Limited(LIMITS, CENTER, 0.5),
        f"{WEIGHT} and {AROUND}",
        "every possible database",
    ),
}


@pytest.mark.parametrize(("rule", "steps", "said"), WORDS.values(), ids=WORDS)
def test_the_words_follow_the_type_of_the_rule(rule, steps, said):
    fit = fitted(GRID, rule)
    text = statement(fit, 1)
    assert f"each record's log-likelihood was {steps}. " in text and said in text
    assert "Public are 11 candidates of the parameters, the only ones" in text
    for told in (GIVEN, COMPUTED):
        assert (told in text) == (told == said)
    strict = type(rule) in (ppm.Limited, ppm.Capped)
    assert fit.strict is strict and ("odds" in text) is strict
    assert guarantee(fit).kind == ("strict" if strict else "local")
    assert "asserts that each depends only on its own" not in text


def test_weights_of_records_under_limits_are_somebodys_word():
    by_record = fitted(GRID, ppm.Limited(LIMITS, CENTER, HALVES))
    assert "weights" in guarantee(by_record).reasons
    assert "asserts that each depends only on its own record" in statement(by_record, 1)


def test_groups_and_secure_noise_are_told():
    groups = list("aabbaabb")
    grids = dict.fromkeys("ab", {"mu": np.linspace(2.0, 12.0, 11)})
    seeded, secure = (
        ppm.Candidates(
            ppm.GammaPoisson(COUNTS), grids, groups=groups, secure_noise=secure
        )
        for secure in (False, True)
    )
    seeded, secure = (
        fitted(model, ppm.Capped(1.0), draws=2) for model in (seeded, secure)
    )
    told = statement(seeded, 1), statement(secure, 1)
    for text in told:
        assert "22 candidates of the parameters, in 2 groups of records, the on" in text
    alone = ppm.Candidates(seeded.model.model, {"a": grids["a"]}, groups=["a"] * 8)
    told_alone = statement(fitted(alone, ppm.Capped(1.0)), 1)
    assert "11 candidates of the parameters, the on" in told_alone
    assert "δ = 0 but for rounding" in told[0] and "guesses the seed" in told[0]
    assert "δ = 0." in told[1] and "seed" not in told[1] and "package" in told[1]
    # what was released before counts too
    more = statement(seeded, 1)
    assert "With everything that was released from the same fit before, ε is 2." in more
    assert "They share draws, of which there are 2 in all." in statement(seeded, 3)


class Chains(ppm.Model):
    """Two chains that disagree, or not."""

    chains, records = 2, 8

    def __init__(self, apart):
        self.apart = apart

    def draw(self, terms, draws, rng):
        mean = np.repeat([0.0, self.apart], draws)
        return {"mean": mean + rng.normal(size=2 * draws)}

    def log_p(self, theta):
        return -((theta["mean"][:, None] - np.arange(8.0)) ** 2)

    def predict(self, theta, rng):
        return rng.normal(theta["mean"], size=8)


def test_there_is_no_statement_where_chains_disagree():
    agree, disagree = (
        ppm.fit(
            Chains(apart),
            ppm.ByRisk(),
            random_seed=1,
            draws=200,
            allow_disagreement=True,
        )
        for apart in (0.0, 50.0)
    )
    assert "one database and a finite number of draws" in statement(agree, 1)
    assert guarantee(agree).reasons[0] == "databases_and_draws"
    with pytest.raises(ppm.ChainsDisagreeError, match="no statement can be made"):
        statement(disagree, 1)
    assert guarantee(disagree).reasons[0] == "unreached"


def test_the_statement_is_about_a_whole_release_of_this_fit(by_risk):
    strict = fitted(GRID, ppm.Limited(LIMITS))
    release, local = (one.release(10, random_seed=1) for one in (strict, by_risk))
    # ε of what is there, also after what costs nothing
    several = release.to_dataset(name="y").assign_attrs(release.attrs)
    for same in release, release.clip(3, 6), several:
        assert "10 × 2 = 20, for every" in release_statement(strict, same)
    for of, wrong in (
        (strict, 10),
        (strict, None),
        (strict, release[:1]),
        (strict, release[:, :7]),
        (strict, release.values),
        (strict, local),
        (by_risk, release),
        (strict, release.assign_attrs(epsilon=2.0)),
        (strict, release.assign_attrs(epsilon_total=2.0)),
        (strict, release.drop_attrs().assign_attrs(releases=10, epsilon=20.0)),
    ):
        with pytest.raises(
            ValueError, match="^release must be all that one call of"
        ) as refused:
            release_statement(of, wrong)
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("kind", ["limits", "own weights", "histogram"])
def test_a_strict_statement_says_what_sp_800_226_asks_of_a_claim(by_risk, kind):
    if kind == "histogram":
        last = pd.DataFrame({"count": COUNTS})
        mechanism = ppm.release.Bins(2)
        plan = ppm.release.ReleasePlan(
            last, confidential="count", limits=(0, 20), mechanism=mechanism, epsilon=2
        )
        told = release_statement(mechanism.release(last, plan, random_seed=1))
    else:
        rule = ppm.Limited(LIMITS) if kind == "limits" else ppm.Capped(2.0)
        told = statement(fitted(GRID, rule), 1)
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
    local = statement(by_risk, 1)
    assert not any(
        words in local for words in ("δ = ", "unit of privacy", "every possible")
    )
