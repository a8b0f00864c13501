"""Terms that were made of other records, changed, or said to be what they are not, are refused."""

from dataclasses import replace

import numpy as np
import pytest

import ppm
from ppm.rules import by_risk, capped, limited, one_weight, reweighted

COUNTS = np.array([3, 5, 4, 6, 20])
MODEL = ppm.GammaPoisson(COUNTS, shape=2, rate=0.4)
LIMITS = ppm.Censoring(-2, 2, center={"mu": 5.0})
GRID = {"mu": np.linspace(2.0, 8.0, 30)}


def candidates(counts):
    return ppm.CandidateSynthesizer(ppm.GammaPoisson(counts), GRID)


class WeightsAlone(ppm.GammaPoisson):
    takes_limits = False


UNWEIGHTED = ppm.fit(MODEL, draws=50, random_seed=1)
CENTRED = limited(MODEL, LIMITS)
CAP = capped(candidates(COUNTS), 1.0)


@pytest.mark.parametrize(
    ("model", "right", "wrong"),
    [
        # one value would move two terms
        (MODEL, CENTRED, limited(ppm.GammaPoisson(COUNTS[::-1]), LIMITS)),
        (candidates(COUNTS), CAP, capped(candidates(COUNTS[::-1]), 1.0)),
        # and no cap is narrower than its weights
        (candidates(COUNTS), CAP, replace(CAP, limits=ppm.Censoring(0, 0.1, False))),
    ],
)
def test_terms_of_other_records_are_refused(model, right, wrong):
    assert ppm.fit(model, right, draws=5, random_seed=1).strict
    with pytest.raises(ValueError, match="^terms must be those of this model's own"):
        ppm.fit(model, wrong, draws=5, random_seed=1)


def test_a_cap_is_for_models_with_a_public_set_alone():
    for terms in CAP, replace(CAP, weights=np.ones(5)):
        with pytest.raises(TypeError, match="^cap needs a ppm.CandidateSynthesizer"):
            ppm.fit(WeightsAlone(COUNTS), terms)


@pytest.mark.parametrize(
    "said",
    [
        {"weights": [0.5] * 5, "source": "ones"},
        {"weights": np.ones(5), "source": "all records", "own": True},
        {"weights": np.ones(5), "source": "own range"},
        {"weights": np.ones(5), "source": "own range", "own": True, "limits": LIMITS},
    ],
)
def test_a_source_that_the_rest_contradicts_is_refused(said):
    with pytest.raises(ValueError, match="^(source must not be|limits with a center)"):
        ppm.Terms(**said)


def test_nobody_changes_weights_behind_an_epsilon():
    given = np.full(5, 0.5)
    fit = ppm.fit(MODEL, given, draws=50, random_seed=1)
    before = fit.epsilon()
    given[:] = 0.01
    with pytest.raises(ValueError, match="read-only"):
        fit.weights[:] = 0.0
    assert fit.epsilon() == before > 0


def test_weights_come_from_an_unweighted_fit_and_limits_are_given_once():
    weighted = ppm.fit(MODEL, by_risk(UNWEIGHTED), draws=50, random_seed=2)
    for use in (
        by_risk,
        lambda fit: one_weight(fit, epsilon=1.0),
        lambda fit: ppm.PseudoPosteriorMechanism(MODEL).run(unweighted=fit),
    ):
        use(UNWEIGHTED)
        with pytest.raises(ValueError, match="^unweighted must be a fit in which all"):
            use(weighted)
    reweighted(weighted)
    with pytest.raises(ValueError, match="^weighted must be a fit without limits"):
        reweighted(ppm.fit(MODEL, CENTRED, draws=50, random_seed=2))
    with pytest.raises(ValueError, match="^terms must have no limits yet"):
        limited(MODEL, LIMITS, CENTRED)


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        (None, ["was taken in full"]),
        (by_risk(UNWEIGHTED), ["multiplied by a weight", "computed from all records"]),
        (np.ones(5), ["multiplied by a weight", "Whoever supplied the weights"]),
    ],
)
def test_the_statement_of_a_fit_says_where_its_weights_come_from(terms, words):
    fit = ppm.fit(MODEL, terms, draws=50, random_seed=1)
    told = ppm.disclosure.release_statement(fit, fit.synthesize(2, random_seed=1))
    all_of_them = ("taken in full", "computed from all records", "Whoever supplied")
    assert all(word in told for word in words)
    assert sum(word in told for word in all_of_them) == 1
    part = fit.synthesize(2, random_seed=1).isel(record=slice(1))
    with pytest.raises(ValueError, match="^release must be all that one call"):
        ppm.disclosure.release_statement(fit, part)


def test_a_model_of_one_s_own_is_asked_for_its_own_terms_under_limits():
    class Reaches(ppm.GammaPoisson):
        def check_own_terms(self):
            raise ValueError("a record reaches others")

    ppm.PseudoPosteriorMechanism(Reaches(COUNTS)).run(draws=5)
    for run in (
        lambda model: ppm.PseudoPosteriorMechanism(model, censor=LIMITS).run(draws=5),
        lambda model: ppm.fit(model, limited(model, LIMITS), draws=5),
    ):
        with pytest.raises(ValueError, match="^a record reaches others"):
            run(Reaches(COUNTS))


def test_a_public_set_needs_a_reading_of_all_of_it():
    with pytest.raises(
        TypeError, match="^Listed has a public_set and must have a read"
    ):
        type("Listed", (ppm.GammaPoisson,), {"public_set": "7 points"})


def test_candidates_that_follow_the_records_are_seen():
    def follows(counts):
        grid = {"mu": np.r_[np.linspace(2.0, 8.0, 200), counts.max()]}
        return ppm.CandidateSynthesizer(ppm.GammaPoisson(counts), grid)

    ppm.own_terms.check(candidates, COUNTS)
    with pytest.raises(ValueError, match="^build: a record's value reaches the prior"):
        ppm.own_terms.check(follows, COUNTS)
