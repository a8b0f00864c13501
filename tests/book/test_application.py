"""What the chapters on incomes share: fits, and the equal bound."""

import dataclasses
import pickle

import joblib
import numpy as np
import pytest

import ppm
from ppm_book.chapters import application
from ppm_book.chapters.application import EQUAL, IncomeFits, apart, diagnosed, typical
from ppm_book.tools import parameters

INCOMES = np.random.default_rng(5).normal(10.0, 1.0, 40)
RULE = ppm.ByRisk(0.7)


@pytest.fixture(scope="module")
def made():
    return IncomeFits(INCOMES, np.ones((40, 1)), 2, 60, 60, 4, 7)


def test_every_fit_is_read_by_the_library(made):
    unweighted, dp = made.unweighted(2), made.by_rule(2, RULE)
    weights = ppm.record_weights(unweighted.result.record_bounds, scale=0.7)
    assert dp.result.weights == pytest.approx(weights) and dp.synthetic.shape == (4, 40)
    log_p = made.model(2).log_p(dp.result.theta)
    assert dp.result.record_bounds == pytest.approx(ppm.record_bounds(log_p, weights))
    maxima = np.abs(weights * log_p).max(axis=1).reshape(2, 60)
    assert dp.result.draw_maxima == pytest.approx(maxima)
    told, by_chain = diagnosed(dp.result), maxima.max(axis=1)
    assert told["Δ"] == pytest.approx(max(by_chain))
    assert told["smallest Δ of a chain"] == pytest.approx(min(by_chain))


def test_a_setting_has_random_numbers_of_its_own_and_the_same_ones_again(made):
    dp = made.by_rule(2, RULE)
    again = dataclasses.replace(made)
    assert np.array_equal(again.by_rule(2, RULE).synthetic, dp.synthetic)
    other = made.weighted(2, dp.result.weights, 5)
    assert not np.isin(other.result.theta["sigma"], dp.result.theta["sigma"]).any()
    settings = parameters.defaults("ce_application")["configurations"]
    rules = [*(ppm.ByRisk(*each) for each in settings), ppm.ByRisk(truncate_at=3.0)]
    rules += [ppm.ByRisk(truncate_at=2.0), ppm.Reweighted()]
    places = {application.place(rule) for rule in rules}
    assert len(places) == len(rules) > 4 and (700, 1000) in places


def test_a_rule_of_ones_own_is_fitted_like_the_papers(made):
    rule = ppm.Reweighted(after=RULE)
    fit = made.by_rule(2, rule).result
    before = made.by_rule(2, RULE).result
    terms = rule.terms(before.model, {RULE: before}.get)
    assert fit.rule == rule and np.array_equal(fit.weights, terms.weights)


def test_one_weight_comes_near_the_bound_and_every_try_is_noted(made, monkeypatch):
    begun, draw = [], ppm.FiniteMixture.draw

    def noting(self, terms, draws, rng, **settings):
        begun.append((draws, settings))
        return draw(self, terms, draws, rng, **settings)

    target = made.by_rule(2, RULE).result.local_bound
    monkeypatch.setattr(ppm.FiniteMixture, "draw", noting)
    em = made.em_weighted(2, RULE).result
    weights, bounds, draws = np.transpose(em.rule.tried)
    rule = em.rule.rule
    # three trials, then fits with all draws until one is near enough
    assert rule == ppm.OneWeight(like=RULE) and len(begun) == len(draws)
    assert draws.tolist() == [12] * 3 + [60] * (len(draws) - 3)
    off = np.abs(bounds[3:] - target)
    assert em.local_bound == bounds[3:][off.argmin()]
    assert (em.weights == weights[3:][off.argmin()]).all()
    near = off <= rule.tolerance * target
    assert not near[:-1].any() and (near[-1] or len(near) == rule.fits)
    # each begins where the last one ended, after a short warm-up
    assert not begun[0][1]
    assert all(one["warmup"] == 12 and "start" in one for _, one in begun[1:])


def test_fits_are_pickled_and_hashed_as_they_are_kept(made):
    for fitted in made.unweighted(2), made.em_weighted(2, RULE):
        again = pickle.loads(pickle.dumps(fitted))
        assert joblib.hash(again) == joblib.hash(pickle.loads(pickle.dumps(fitted)))
        assert np.array_equal(again.result.record_bounds, fitted.result.record_bounds)
        assert again.result.behind.keys() == fitted.result.behind.keys()


def test_one_wild_release_moves_neither_the_typical_error_nor_its_standard_error():
    errors = np.random.default_rng(1).normal(-4.0, 0.5, 20)
    size, error = typical(errors)
    assert size == pytest.approx(4.0, abs=0.3) and error == pytest.approx(
        0.14, abs=0.08
    )
    wild = typical(np.r_[errors[:-1], 1e6])
    assert wild == (pytest.approx(size, abs=0.3), pytest.approx(error, abs=0.1))
    assert np.isnan(typical([3.0])[1])


def test_a_component_collapses_onto_many_equal_incomes_unless_they_are_moved_apart():
    rng = np.random.default_rng(3)
    incomes = np.r_[np.zeros(40), rng.normal(10.0, 1.0, 360)]
    design, low = np.ones((400, 1)), incomes <= 0
    for response in (incomes, apart(incomes, ~low, 1)):
        model = ppm.FiniteMixture(response, design, components=3, warmup=50)
        with pytest.raises(RuntimeError, match="take fewer components"):
            ppm.fit(model, ppm.Unweighted(), draws=20, random_seed=1)
    moved = apart(incomes, low, 1)
    model = ppm.FiniteMixture(moved, design, components=3, warmup=50)
    ppm.fit(model, ppm.Unweighted(), draws=20, random_seed=1)
    assert np.array_equal(moved[~low], incomes[~low])
    assert (
        np.unique(moved[low]).size == 40
        and -0.1 < moved[low].min() < moved[low].max() <= 0
    )
    few = incomes[40 - EQUAL :]
    assert np.array_equal(apart(few, few <= 0, 1), few)
