"""Every law can fail: slips in the library, each of which its law must notice."""

from dataclasses import replace

import numpy as np
import opendp.prelude as dp
import pytest
from laws.table import MODELS, Cell
from laws.test_laws import CELLS, LAWS

import ppm
from ppm import mechanism, rules
from ppm.audits import from_draws
from ppm.censoring import Censoring
from ppm.mechanism import Fit
from ppm.mixture.censored import CensoredSampler
from ppm.scan import LogLikelihoodScan
from ppm.synthesizers import base, candidates, gamma_poisson
from ppm.synthesizers.base import Synthesizer
from ppm.terms import Terms

pytestmark = [
    pytest.mark.filterwarnings("ignore:released although chains disagree"),
    pytest.mark.thorough,
]


def becomes(owner, name, value):
    return lambda monkeypatch: monkeypatch.setattr(owner, name, value, raising=False)


def instead(owner, name, slip):
    """A slip in the place of a function, which it is given first."""

    def patch(monkeypatch):
        right = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *a, **k: slip(right, *a, **k))

    return patch


def changed(owner, name, **values):
    """A function that is given, or returns, terms with other values."""

    def other(terms):
        if not isinstance(terms, Terms):
            return terms
        found = {n: v(terms) if callable(v) else v for n, v in values.items()}
        return replace(terms, **found)

    def slip(right, *given, **named):
        named = {name: other(one) for name, one in named.items()}
        return other(right(*map(other, given), **named))

    return instead(owner, name, slip)


def of_terms(slip):
    """Terms that are a slip of h, α, log p and b."""

    def call(right, terms, log_p, records=slice(None)):
        levels = 0.0 if terms.levels is None else terms.levels[records]
        return slip(terms.limits.term, terms.weights[records], log_p, levels)

    return instead(Terms, "__call__", call)


def with_another_center(right, limits, model):
    center = dict(zip(limits.center, [*limits.center.values()][::-1], strict=True))
    return right(replace(limits, center=center), model)


def of_all_groups(right, model, terms):
    totals = right(model, terms)
    return dict.fromkeys(totals, sum(totals.values()))


def from_two_draws(right, model, fit, **settings):
    one = right(model, fit, **settings)
    return one.where(np.arange(model.records) % 2 == 0, one.roll(release=1))


def of_a_child(right, seed):
    return right(seed.spawn(1)[0] if hasattr(seed, "spawn") else seed)


def backwards(right, *given):
    found = right(*given)
    return found if base.HELD else found.isel(draw=slice(None, None, -1))


GAMMA, FINITE = ("GammaPoisson", "hard"), ("CandidateSynthesizer", "hard")
CAP, GIVEN = ("CandidateSynthesizer", "cap"), ("GammaPoisson", "smooth, given weights")
WEIGHTS, CENTERED = ("CandidateSynthesizer", "weights"), "smooth, centered"
PYMC, GROUPS = "PyMCSynthesizer", "groups"
ONES = {"weights": lambda terms: terms.weights**0}
NO_LEVELS = {"levels": lambda terms: np.zeros(terms.records)}

# by law: the slip, the model and the rule where it is noticed
SLIPS = {
    "terms_are_the_formula": {
        "level forgotten": (
            ("GammaPoisson", CENTERED),
            of_terms(lambda h, a, z, b: np.where(a > 0, h(a * z), 0)),
        ),
        "weight outside the limits": (
            GIVEN,
            of_terms(lambda h, a, z, b: np.where(a > 0, a * h(z - b), 0)),
        ),
        "limits not applied": (GAMMA, of_terms(lambda h, a, z, b: a * (z - b))),
        "h(0) for weight 0": (GIVEN, of_terms(lambda h, a, z, b: h(a * (z - b)))),
        "smooth taken for hard": (
            GIVEN,
            instead(Censoring, "term", lambda _, c, z: np.clip(z, c.low, c.high)),
        ),
        "levels of another group": (
            (GROUPS, CENTERED),
            instead(Censoring, "levels", with_another_center),
        ),
    },
    "terms_rise_with_log_p": {
        "absolute values": (GAMMA, of_terms(lambda h, a, z, b: h(-np.abs(z + 4)))),
    },
    "own_terms_do_not_see_other_records": {
        "levels are the mean of all": (
            ("GammaPoisson", CENTERED),
            changed(rules, "limited", levels=lambda t: 0 * t.levels + t.levels.mean()),
        ),
        "a cap reacts to all": (
            CAP,
            changed(rules, "capped", weights=lambda t: 0 * t.weights + t.weights.min()),
        ),
    },
    "a_cap_takes_no_more_than_it_must": {
        "a cap by the bound": (
            CAP,
            becomes(LogLikelihoodScan, "oscillations", LogLikelihoodScan.bounds),
        ),
    },
    "draws_follow_prior_times_exp_of_terms": {
        "without weights": (
            WEIGHTS,
            changed(ppm.CandidateSynthesizer, "_totals", **ONES),
        ),
        "limits without weights": (
            GIVEN,
            changed(ppm.GammaPoisson, "posterior", **ONES),
        ),
        "group forgotten": (
            (GROUPS, "hard"),
            instead(ppm.CandidateSynthesizer, "_totals", of_all_groups),
        ),
        "secure noise at half its scale": (
            ("secure noise", "hard"),
            instead(candidates, "noisy_maximum", lambda right, n, w: right(n, 2 * w)),
        ),
        "secure noise of another law": (
            ("secure noise", CENTERED),
            becomes(dp, "zero_concentrated_divergence", dp.max_divergence),
        ),
        "PyMC without limits": (
            (PYMC, "hard"),
            changed(ppm.PyMCSynthesizer, "_with", limits=None),
        ),
        "PyMC without levels": (
            (PYMC, "hard, centered"),
            changed(ppm.PyMCSynthesizer, "_with", **NO_LEVELS),
        ),
        "a mixture without levels": (
            ("FiniteMixture", CENTERED),
            changed(CensoredSampler, "__init__", **NO_LEVELS),
        ),
    },
    "bounds_are_maxima_of_the_terms": {
        "over drawn candidates": (
            FINITE,
            becomes(ppm.CandidateSynthesizer, "read", Synthesizer.read),
        ),
        "without weights": (WEIGHTS, changed(mechanism, "as_terms", **ONES)),
    },
    "the_loss_of_a_leaving_record_is_within_the_width_and_comes_near": {
        "weights by the number of records": (
            GAMMA,
            changed(
                rules,
                "limited",
                weights=lambda t: 24.0 / t.records * t.weights,
                source="caller",
            ),
        ),
    },
    "strict_or_local_as_the_terms_say_and_releases_cost_their_draws": {
        "width doubled": (
            GAMMA,
            becomes(Terms, "width", property(lambda terms: 2 * terms.limits.width)),
        ),
        "own lost": (GAMMA, changed(rules, "limited", own=False)),
        "own gained": (GIVEN, changed(rules, "limited", own=True)),
        "each release is charged": (
            GAMMA,
            becomes(Fit, "draws_charged", lambda fit, releases=1: releases),
        ),
        "earlier calls are forgotten": (
            GAMMA,
            instead(
                Fit,
                "_costs",
                lambda right, fit, m: right(fit, m) | {"epsilon_total": fit.epsilon(m)},
            ),
        ),
    },
    "each_release_comes_from_one_draw_and_from_nothing_confidential": {
        "from two draws": (GAMMA, instead(ppm.GammaPoisson, "predict", from_two_draws)),
        "from the records": (
            GAMMA,
            instead(
                ppm.GammaPoisson,
                "predict",
                lambda right, model, fit, **k: right(model, fit, **k) + model.counts,
            ),
        ),
    },
    "a_repr_has_one_line_and_nothing_of_the_records": {
        "a record": (
            GAMMA,
            becomes(ppm.GammaPoisson, "__repr__", lambda model: str(model.counts[0])),
        ),
    },
    "a_seed_gives_the_same_draws_and_its_children_others": {
        "one for all": (
            GAMMA,
            instead(gamma_poisson, "generator", lambda right, seed: right(1)),
        ),
        "spawned from": (
            GAMMA,
            instead(gamma_poisson, "generator", of_a_child),
        ),
    },
    "the_papers_mechanism_is_two_fits_and_a_rule_between": {
        "one stream for both": (
            GAMMA,
            instead(mechanism, "streams", lambda right, seed, n: right(seed, 1) * n),
        ),
        "other weights": (
            GAMMA,
            changed(rules, "Terms", weights=lambda terms: terms.weights / 2),
        ),
    },
    "what_is_not_held_in_memory_is_computed_in_blocks_to_the_same_end": {
        "another order": (GAMMA, instead(base, "log_likelihood_from", backwards)),
    },
    "a_fit_comes_back_from_a_file_and_goes_on": {
        "without the calls before": (
            GAMMA,
            becomes(Fit, "__getstate__", lambda fit: vars(fit) | {"_released": []}),
        ),
        "with what can be computed": (
            FINITE,
            becomes(ppm.CandidateSynthesizer, "__getstate__", lambda one: vars(one)),
        ),
    },
    "what_does_not_fit_is_refused_in_one_line": {
        "limits": (
            ("user's own", "plain"),
            becomes(rules, "check_takes_limits", lambda model: None),
        ),
        "any fit": (GAMMA, becomes(Synthesizer, "check_fit", lambda *given: None)),
    },
    "an_audit_by_refits_sees_a_lone_record": {
        "nobody left out": (
            ("GammaPoisson", "plain"),
            instead(
                from_draws,
                "_weights_without",
                lambda right, record, *given: right(None, *given),
            ),
        ),
    },
}


def made_now(name, rows, order):
    """A model that was made after the slip."""
    rows = np.array(rows)
    return MODELS[name].make(MODELS[name].values[::order][rows], rows)


@pytest.mark.parametrize(
    ("law", "slip"), [(law, slip) for law in LAWS for slip in SLIPS[law]]
)
def test_a_slip_is_noticed(law, slip, monkeypatch):
    (model, rule), patch = SLIPS[law][slip]
    assert (model, rule, law) in CELLS
    # the slips of PyMC are in its fits alone, and to compile it takes seconds
    cell = Cell(model, rule) if model == PYMC else Cell(model, rule, made_now)
    patch(monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        LAWS[law][0](cell)
