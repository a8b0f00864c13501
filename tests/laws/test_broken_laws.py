"""Every law can fail: slips in the library, each of which a law must notice."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from laws.table import MODELS, Cell
from laws.test_laws import CELLS, LAWS

import ppm
from ppm import mechanism, rules
from ppm.audits import from_draws
from ppm.censoring import Censoring
from ppm.mechanism import Fit
from ppm.scan import LogLikelihoodScan
from ppm.synthesizers import base, candidates, gamma_poisson
from ppm.synthesizers.base import Synthesizer
from ppm.synthesizers.mixture.censored import CensoredSampler
from ppm.terms import Terms

pytestmark = pytest.mark.filterwarnings("ignore:released although chains disagree")


def instead(owner, name, slip):
    """Replace a function, given to the slip as its first argument, by the slip."""

    def patch(monkeypatch):
        right = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *a, **k: slip(right, *a, **k))

    return patch


def term(slip):
    """Terms that are a function of weights, log p, levels and h."""

    def call(right, terms, log_lik, records=slice(None)):
        weights = terms.weights[records]
        levels = 0.0 if terms.levels is None else terms.levels[records]
        h = terms.limits or Censoring(-1e8, 1e8, smooth=False)
        return slip(weights, log_lik, levels, h) * np.ones(np.shape(log_lik))

    return instead(Terms, "__call__", call)


def changed(owner, name, **values):
    """Terms that come back with other values: numbers, or functions of the terms."""

    def slip(right, *given, **named):
        terms = right(*given, **named)
        return replace(
            terms, **{n: v(terms) if callable(v) else v for n, v in values.items()}
        )

    return instead(owner, name, slip)


def of_other_terms(owner, name, **values):
    """A method whose argument are terms with other values."""

    def slip(right, self, terms, *given):
        other = {n: v(terms) if callable(v) else v for n, v in values.items()}
        return right(self, replace(terms, **other), *given)

    return instead(owner, name, slip)


def attribute(owner, name, value):
    return lambda monkeypatch: monkeypatch.setattr(owner, name, value, raising=False)


def no_levels(terms):
    return np.zeros(terms.records)


def from_two_draws(right, model, fit, **settings):
    one = right(model, fit, **settings)
    two = one.roll(release=1)
    return xr.where(np.arange(model.records) % 2 == 0, one, two).transpose(*one.dims)


def backwards_if_read_in_blocks(right, *given):
    found = right(*given)
    return found if base.HELD else found.isel(draw=slice(None, None, -1))


def spawning(right, seed):
    if isinstance(seed, np.random.SeedSequence):
        return np.random.default_rng(seed.spawn(1)[0])
    return right(seed)


def of_all_groups(right, model, terms):
    totals = right(model, terms)
    return dict.fromkeys(totals, sum(totals.values()))


def with_another_center(right, censor, model):
    center = censor.center
    if "a" in center:
        center = dict(zip(center, [*center.values()][::-1], strict=True))
    return right(replace(censor, center=center), model)


def the_same_draw(right, posterior, releases, rng):
    chain, draw = right(posterior, releases, rng)
    return chain, 0 * draw


GAMMA, FINITE, SECURE = "GammaPoisson", "CandidateSynthesizer", "secure noise"
MIXTURE, PYMC = "FiniteMixture", "PyMCSynthesizer"
HARD, CAP, GIVEN = "hard", "cap", "smooth, given weights"
CENTERED = "smooth, centered"

FORMULA, RISE = "terms_are_the_formula", "terms_rise_with_log_p"
OWN, NO_MORE = "own_terms_do_not_see_other_records", "a_cap_takes_no_more_than_it_must"
DRAWS, BOUNDS = (
    "draws_follow_prior_times_exp_of_terms",
    "bounds_are_maxima_of_the_terms",
)
LOSS = "the_loss_of_a_leaving_record_is_within_the_width_and_comes_near"
PAID = "strict_or_local_as_the_terms_say_and_releases_cost_their_draws"
ONE = "each_release_comes_from_one_draw_and_from_nothing_confidential"
SHOWN = "a_repr_has_one_line_and_nothing_of_the_records"
SEEDS = "a_seed_gives_the_same_draws_and_its_children_others"
PAPER = "the_papers_mechanism_is_two_fits_and_a_rule_between"
BLOCKS = "what_is_not_held_in_memory_is_computed_in_blocks_to_the_same_end"
STORED = "a_fit_comes_back_from_a_file_and_goes_on"
REFUSED = "what_does_not_fit_is_refused_in_one_line"
AUDIT = "an_audit_by_refits_sees_a_lone_record"

SLIPS = {
    "level forgotten": (
        FORMULA,
        GAMMA,
        CENTERED,
        term(lambda w, z, b, h: np.where(w > 0, h.term(w * z), 0.0)),
    ),
    "weight outside the limits": (
        FORMULA,
        GAMMA,
        GIVEN,
        term(lambda w, z, b, h: np.where(w > 0, w * h.term(z - b), 0.0)),
    ),
    "limits not applied": (
        FORMULA,
        GAMMA,
        HARD,
        term(lambda w, z, b, h: np.where(w > 0, w * (z - b), 0.0)),
    ),
    "h(0) for weight 0": (
        FORMULA,
        GAMMA,
        GIVEN,
        term(lambda w, z, b, h: h.term(w * (z - b))),
    ),
    "smooth taken for hard": (
        FORMULA,
        GAMMA,
        GIVEN,
        term(
            lambda w, z, b, h: np.where(w > 0, np.clip(w * (z - b), h.low, h.high), 0.0)
        ),
    ),
    "levels of another group": (
        FORMULA,
        "groups",
        CENTERED,
        instead(Censoring, "levels", with_another_center),
    ),
    "absolute values": (
        RISE,
        GAMMA,
        "weights",
        term(lambda w, z, b, h: np.abs(w * (z - b))),
    ),
    "levels are a mean of all": (
        OWN,
        GAMMA,
        CENTERED,
        changed(rules, "limited", levels=lambda t: np.full(t.records, t.levels.mean())),
    ),
    "cap reacts to all": (
        OWN,
        FINITE,
        CAP,
        changed(rules, "capped", weights=lambda t: np.full(t.records, t.weights.min())),
    ),
    "cap by the bound": (
        NO_MORE,
        FINITE,
        CAP,
        attribute(
            LogLikelihoodScan, "oscillations", property(lambda scan: scan.bounds)
        ),
    ),
    "draws without weights": (
        DRAWS,
        FINITE,
        "weights",
        of_other_terms(
            ppm.CandidateSynthesizer, "_totals", weights=lambda t: t.weights**0
        ),
    ),
    "limits with weights of 1": (
        DRAWS,
        GAMMA,
        GIVEN,
        of_other_terms(ppm.GammaPoisson, "posterior", weights=lambda t: t.weights**0),
    ),
    "group forgotten": (
        DRAWS,
        "groups",
        HARD,
        instead(ppm.CandidateSynthesizer, "_totals", of_all_groups),
    ),
    "secure noise at half its scale": (
        DRAWS,
        SECURE,
        HARD,
        instead(
            candidates, "noisy_maximum", lambda right, steps, w: right(steps, 2 * w)
        ),
    ),
    "a PyMC model without limits": (
        DRAWS,
        PYMC,
        HARD,
        of_other_terms(ppm.PyMCSynthesizer, "_with", limits=None),
    ),
    "a PyMC model without levels": (
        DRAWS,
        PYMC,
        "hard, centered",
        of_other_terms(ppm.PyMCSynthesizer, "_with", levels=no_levels),
    ),
    "a mixture without levels": (
        DRAWS,
        MIXTURE,
        CENTERED,
        instead(
            CensoredSampler,
            "__init__",
            lambda right, self, *given, terms: right(
                self, *given, terms=replace(terms, levels=no_levels(terms))
            ),
        ),
    ),
    "bounds over drawn candidates": (
        BOUNDS,
        FINITE,
        HARD,
        attribute(ppm.CandidateSynthesizer, "read", Synthesizer.read),
    ),
    "bounds without weights": (
        BOUNDS,
        GAMMA,
        "weights",
        changed(mechanism, "as_terms", weights=lambda t: t.weights**0),
    ),
    "strict from draws alone": (
        BOUNDS,
        GAMMA,
        HARD,
        instead(
            mechanism,
            "_read",
            lambda right, *given, **named: right(
                *given, **named | {"may_be_strict": True}
            ),
        ),
    ),
    "weights react to the number of records": (
        LOSS,
        GAMMA,
        HARD,
        changed(rules, "limited", weights=lambda t: t.weights * 24.0 / t.records),
    ),
    "width doubled": (
        PAID,
        GAMMA,
        HARD,
        attribute(Terms, "width", property(lambda terms: 2 * terms.limits.width)),
    ),
    "own lost": (PAID, GAMMA, HARD, changed(rules, "limited", own=False)),
    "own gained": (PAID, GAMMA, GIVEN, changed(rules, "limited", own=True)),
    "source wrong": (
        PAID,
        GAMMA,
        "hard, sampling weights",
        changed(rules, "limited", source="ones"),
    ),
    "each release is charged": (
        PAID,
        GAMMA,
        HARD,
        instead(Fit, "draws_charged", lambda right, fit, releases=1: releases),
    ),
    "earlier calls are forgotten": (
        PAID,
        GAMMA,
        HARD,
        instead(
            Fit,
            "_costs",
            lambda right, fit, many: (
                right(fit, many) | {"epsilon_total": fit.epsilon(many)}
            ),
        ),
    ),
    "a release from two draws": (
        ONE,
        GAMMA,
        HARD,
        instead(ppm.GammaPoisson, "predict", from_two_draws),
    ),
    "the same draw for all releases": (
        ONE,
        GAMMA,
        HARD,
        instead(gamma_poisson, "choose_draws", the_same_draw),
    ),
    "a release that looks at the records": (
        ONE,
        GAMMA,
        HARD,
        instead(
            ppm.GammaPoisson,
            "predict",
            lambda right, model, *given, **named: (
                right(model, *given, **named) + (model.counts > 9)
            ),
        ),
    ),
    "records in a repr": (
        SHOWN,
        GAMMA,
        HARD,
        attribute(ppm.GammaPoisson, "__repr__", lambda model: str(model.counts[:3])),
    ),
    "one seed for all": (
        SEEDS,
        GAMMA,
        HARD,
        instead(gamma_poisson, "generator", lambda right, seed: right(1)),
    ),
    "a Generator that stands still": (
        SEEDS,
        GAMMA,
        HARD,
        instead(
            gamma_poisson, "generator", lambda right, seed: right(copy.deepcopy(seed))
        ),
    ),
    "a caller's sequence is spawned from": (
        SEEDS,
        GAMMA,
        HARD,
        instead(gamma_poisson, "generator", spawning),
    ),
    "no shift": (
        PAPER,
        GAMMA,
        HARD,
        instead(
            rules,
            "record_weights",
            lambda right, bounds, **rule: right(bounds, **rule | {"shift": 0.0}),
        ),
    ),
    "one stream for both fits": (
        PAPER,
        GAMMA,
        HARD,
        instead(
            mechanism, "streams", lambda right, seed, count: right(seed, 1) * count
        ),
    ),
    "blocks in another order": (
        BLOCKS,
        GAMMA,
        HARD,
        instead(base, "log_likelihood_from", backwards_if_read_in_blocks),
    ),
    "a file without the calls before": (
        STORED,
        GAMMA,
        HARD,
        attribute(Fit, "__getstate__", lambda fit: vars(fit) | {"_released": []}),
    ),
    "a file with what can be computed again": (
        STORED,
        FINITE,
        HARD,
        attribute(ppm.CandidateSynthesizer, "__getstate__", lambda model: vars(model)),
    ),
    "limits dropped in silence": (
        REFUSED,
        "user's own",
        "plain",
        attribute(rules, "check_takes_limits", lambda model: None),
    ),
    "any fit taken": (
        REFUSED,
        GAMMA,
        HARD,
        attribute(Synthesizer, "check_fit", lambda model, fit, name: None),
    ),
    "an audit that leaves nobody out": (
        AUDIT,
        GAMMA,
        "plain",
        instead(
            from_draws,
            "_weights_without",
            lambda right, record, *given: right(None, *given),
        ),
    ),
}


def made_now(name, rows, order):
    """A model that was made after the slip."""
    rows = np.array(rows)
    return MODELS[name].make(MODELS[name].values[::order][rows], rows)


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_is_noticed(slip, monkeypatch):
    law, model, rule, patch = SLIPS[slip]
    assert (model, rule, law) in CELLS
    # the slips of PyMC are in its fits alone, and to compile it takes seconds
    cell = Cell(model, rule) if model == PYMC else Cell(model, rule, made_now)
    patch(monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        LAWS[law][0](cell)


def test_each_law_has_a_slip():
    assert {law for law, *_ in SLIPS.values()} == {*LAWS}
