"""Every law can fail: slips in the library, each of which its law must notice."""

import importlib
from dataclasses import replace

import numpy as np
import opendp.prelude as dp
import pytest
from laws.table import MODELS, Cell
from laws.test_laws import CELLS, LAWS

import ppm
from ppm import bounds, candidates, terms
from ppm.fit import Fit
from ppm.terms import Terms

# `ppm.fit` is the function
fit = importlib.import_module("ppm.fit")
pytestmark = pytest.mark.thorough


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
        return replace(terms, **{n: value(terms) for n, value in values.items()})

    def slip(right, *given, **named):
        named = {name: other(value) for name, value in named.items()}
        return other(right(*map(other, given), **named))

    return instead(owner, name, slip)


def of_terms(slip):
    """Terms that are a slip of h, α, log p and b."""

    def call(right, terms, log_p):
        return slip(terms.limits, terms.weights, np.asarray(log_p), terms.levels)

    return instead(Terms, "__call__", call)


def of_all_groups(right, model, terms):
    totals = right(model, terms)
    return dict.fromkeys(totals, sum(totals.values()))


def of_a_child(right, seed):
    return right(seed.spawn(1)[0] if hasattr(seed, "spawn") else seed)


def all_or_nothing(right, values, weights, levels=0.0):
    """The slip `np.all` for `np.any`: one level of 0 switches all of them off."""
    return right(values, weights, levels if np.all(levels) else 0.0)


def as_if_alone(name):
    """Draws in which the first of a parameter's numbers is of another draw than all else."""

    def slip(right, *given):
        theta = right(*given)
        numbers = theta[name].reshape(len(theta[name]), -1)
        numbers[:, 0] = np.roll(numbers[:, 0], 1)
        return theta

    return instead(ppm.Normal, "draw", slip)


def of_first(model, terms, name):
    """Terms with what the first ones that this model saw had that was not all alike."""
    given = getattr(terms, name)
    if np.ptp(given):
        vars(model)["first"] = given
    return replace(terms, **{name: vars(model).get("first", given)})


def two_thetas(right, one_fit, place, rng):
    database = right(one_fit, place, rng)
    other = right(one_fit, place - 1, rng)
    half = np.arange(one_fit.model.records) % 2 == 0
    return {name: np.where(half, database[name], other[name]) for name in database}


COUNTS, FINITE = ("GammaPoisson", "unweighted"), ("Candidates", "limits")
OWN, GIVEN = ("Candidates", "own weights"), ("Candidates", "limits, sampling weights")
WEIGHTS, CENTERED = ("Candidates", "weights"), ("Candidates", "limits, centered")
ONES = {"weights": lambda terms: terms.weights**0}

# by law: the slip, the model and the rule where it is noticed
SLIPS = {
    "terms_are_the_formula": {
        "level forgotten": (
            CENTERED,
            of_terms(lambda h, a, z, b: np.where(a > 0, h(a * z), 0)),
        ),
        "weight outside the limits": (
            GIVEN,
            of_terms(lambda h, a, z, b: np.where(a > 0, a * h(z - b), 0)),
        ),
        "limits not applied": (FINITE, of_terms(lambda h, a, z, b: a * (z - b))),
        "h(0) for weight 0": (GIVEN, of_terms(lambda h, a, z, b: h(a * (z - b)))),
    },
    "terms_rise_with_log_p": {
        "absolute values": (FINITE, of_terms(lambda h, a, z, b: h(-np.abs(z + 4)))),
    },
    "public_rules_do_not_see_other_records": {
        "levels are the mean of all": (
            CENTERED,
            changed(
                ppm.Limited, "terms", levels=lambda t: 0 * t.levels + t.levels.mean()
            ),
        ),
        "own weights react to all": (
            OWN,
            changed(
                ppm.Capped, "terms", weights=lambda t: 0 * t.weights + t.weights.min()
            ),
        ),
    },
    "an_impossible_record_leaves_all_others_terms_as_they_are": {
        "no levels at all": (
            CENTERED,
            instead(
                ppm.Candidates,
                "levels",
                lambda right, model, center: (
                    right(model, center) * np.all(right(model, center) != 0)
                ),
            ),
        ),
        "one level of 0 switches all off": (
            CENTERED,
            instead(terms, "weighted", all_or_nothing),
        ),
        "of own weights too": (OWN, instead(terms, "weighted", all_or_nothing)),
    },
    "own_weights_take_no_more_than_they_must": {
        "by the bound": (
            OWN,
            instead(
                ppm.Candidates,
                "ends",
                lambda right, model: np.array([right(model)[0], 0 * right(model)[1]]),
            ),
        ),
    },
    "a_model_keeps_nothing_of_the_terms_before": {
        "levels of the terms before": (
            CENTERED,
            instead(
                ppm.Candidates,
                "_totals",
                lambda right, model, terms: right(
                    model, of_first(model, terms, "levels")
                ),
            ),
        ),
        "weights of the terms before": (
            ("GammaPoisson", "weights"),
            instead(
                ppm.GammaPoisson,
                "draw",
                lambda right, model, terms, *a: right(
                    model, of_first(model, terms, "weights"), *a
                ),
            ),
        ),
    },
    "draws_follow_prior_times_exp_of_terms": {
        "without weights": (WEIGHTS, changed(ppm.Candidates, "_totals", **ONES)),
        "counts without weights": (
            ("GammaPoisson", "weights"),
            changed(ppm.GammaPoisson, "draw", **ONES),
        ),
        "a regression without weights": (
            ("Normal", "weights"),
            changed(ppm.Normal, "draw", **ONES),
        ),
        "a level without regard to its slope": (
            ("Normal", "unweighted"),
            as_if_alone("beta"),
        ),
        "coefficients with another draw's scale": (
            ("Normal", "weights"),
            as_if_alone("sigma"),
        ),
        "group forgotten": (
            ("groups", "limits"),
            instead(ppm.Candidates, "_totals", of_all_groups),
        ),
        "secure noise at half its scale": (
            ("secure noise", "limits"),
            instead(candidates, "noisy_maximum", lambda right, n, w: right(n, 2 * w)),
        ),
        "secure noise of another law": (
            ("secure noise", "limits, centered"),
            becomes(dp, "zero_concentrated_divergence", dp.max_divergence),
        ),
        "one level of 0 switches all off": (
            CENTERED,
            instead(
                ppm.Candidates,
                "draw",
                lambda right, m, terms, *a: right(
                    m, replace(terms, levels=0 * terms.levels), *a
                ),
            ),
        ),
    },
    "bounds_are_maxima_of_the_terms": {
        "over drawn candidates": (
            FINITE,
            becomes(
                ppm.Candidates,
                "extremes",
                lambda model, terms: bounds.extremes(
                    bounds.blocks_of(model, {"mu": np.array([5.0])}), 1, terms
                ),
            ),
        ),
        "without weights": (WEIGHTS, changed(ppm.Candidates, "extremes", **ONES)),
    },
    "the_loss_of_a_leaving_record_is_within_the_range_of_its_term_and_comes_near": {
        "weights by the number of records": (
            FINITE,
            changed(
                ppm.Limited, "terms", weights=lambda t: 24.0 / t.records * t.weights
            ),
        ),
    },
    "strict_or_local_as_rule_and_model_say_and_releases_cost_their_draws": {
        "width doubled": (
            FINITE,
            becomes(Terms, "width", property(lambda terms: 2 * terms.limits.width)),
        ),
        "everything is strict": (COUNTS, becomes(fit, "_strict", lambda *a: True)),
        "nothing is strict": (FINITE, becomes(fit, "_strict", lambda *a: False)),
        "each release is charged": (
            FINITE,
            becomes(Fit, "draws_charged", lambda one_fit, releases=1: releases),
        ),
        "earlier calls are forgotten": (
            FINITE,
            instead(
                Fit,
                "release",
                lambda right, one_fit, m, **k: right(
                    replace(one_fit, _released=[]), m, **k
                ),
            ),
        ),
    },
    "nothing_but_the_librarys_own_limits_and_candidates_is_strict": {
        "by isinstance": (
            FINITE,
            becomes(
                fit,
                "_strict",
                lambda model, rule: isinstance(rule, ppm.Limited | ppm.Capped),
            ),
        ),
        "by an attribute": (
            FINITE,
            becomes(fit, "_strict", lambda model, rule: getattr(rule, "strict", False)),
        ),
    },
    "each_release_comes_from_one_draw_and_from_nothing_confidential": {
        "from the records": (
            COUNTS,
            instead(
                ppm.GammaPoisson,
                "predict",
                lambda right, model, *a: right(model, *a) + model.counts,
            ),
        ),
        "from two draws": (COUNTS, instead(Fit, "_predicted", two_thetas)),
    },
    "a_repr_has_one_line_and_nothing_of_the_records": {
        "a record": (
            COUNTS,
            becomes(ppm.GammaPoisson, "__repr__", lambda model: str(model.counts[0])),
        ),
    },
    "a_seed_gives_the_same_draws_and_its_children_others": {
        "one for all": (COUNTS, instead(fit, "copied", lambda right, seed: right(1))),
        "spawned from": (COUNTS, instead(fit, "generator", of_a_child)),
    },
    "the_papers_mechanism_is_two_fits_and_a_rule_between": {
        "other weights": (
            COUNTS,
            changed(ppm.ByRisk, "terms", weights=lambda terms: terms.weights / 2),
        ),
        "known fits are made again": (
            COUNTS,
            instead(fit, "_checked_known", lambda right, *a: {}),
        ),
    },
    "log_p_is_read_in_blocks_to_the_same_end": {
        "the last block alone": (
            COUNTS,
            instead(fit, "blocks_of", lambda right, *a: [*right(*a)][-1:]),
        ),
    },
    "a_fit_comes_back_from_a_file_and_goes_on": {
        "without the calls before": (
            FINITE,
            becomes(
                Fit, "__getstate__", lambda one_fit: vars(one_fit) | {"_released": []}
            ),
        ),
        "with what can be computed": (
            FINITE,
            becomes(ppm.Candidates, "__getstate__", lambda model: vars(model)),
        ),
    },
    "what_does_not_fit_is_refused_in_one_line": {
        "any known fit": (COUNTS, becomes(fit, "_same_records", lambda *a: True)),
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
    (row, column), patch = SLIPS[law][slip]
    assert (row, column, law) in CELLS
    cell = Cell(row, column, made_now)
    patch(monkeypatch)
    with pytest.raises((AssertionError, TypeError, pytest.fail.Exception)):
        LAWS[law][0](cell)
