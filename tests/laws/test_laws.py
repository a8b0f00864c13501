"""Laws that hold for every model and all terms: a table of models × terms × laws.

A law is a function of a cell of the table, a model under a rule. Each is broken in
`test_broken_laws`. To see one model alone: ``pytest tests/laws -k GammaPoisson``.
"""

import copy
from dataclasses import replace

import cloudpickle
import numpy as np
import pytest
import xarray as xr
from laws.table import ALL, MODELS, RECORDS, RULES, Cell
from scipy import stats

import ppm
from ppm import rules
from ppm.diagnostics import effective_draws
from ppm.mechanism import bound_fit
from ppm.seeds import streams
from ppm.synthesizers import base

# a few draws: what the chains say of each other is for other tests
pytestmark = pytest.mark.filterwarnings("ignore:released although chains disagree")
close = np.testing.assert_allclose
LAWS = {}


def law(where=lambda model, rule: True):
    """A law, and the cells that it is for."""

    def noted(function):
        LAWS[function.__name__] = function, where
        return function

    return noted


def of_models(which=lambda model: True):
    """A law of a model, tried under the first rule that it takes."""

    def where(model, rule):
        first = next(one for one in RULES.values() if one.taken_by(model))
        return rule is first and which(model)

    return law(where)


def seeded(model):
    return not model.secure


def light(model):
    """Whether nothing has to be compiled again after a file was read."""
    return model not in (MODELS["PyMCSynthesizer"], MODELS["candidates, PyMC"])


# ---- terms -------------------------------------------------------------------------------------


@law()
def terms_are_the_formula(cell):
    log_p = cell.model.on_grid()[::7]
    expected = cell.rule.formula(log_p, *cell.rule.weights_and_levels(cell.model))
    close(cell.terms(log_p), expected, atol=1e-12)


@law()
def terms_rise_with_log_p(cell):
    log_p = np.sort(cell.model.on_grid(), axis=0)
    assert (np.diff(cell.terms(log_p), axis=0) >= -1e-12).all()


@law()
def own_terms_do_not_see_other_records(cell):
    log_p = cell.model.on_grid()
    for record in (0, RECORDS - 1):
        rows, _, terms = cell.without(record)
        assert terms.own == cell.terms.own == cell.rule.own
        close(terms(log_p[:, rows]), cell.terms(log_p)[:, rows], atol=1e-12)


@law(lambda model, rule: rule.cap)
def a_cap_takes_no_more_than_it_must(cell):
    log_p = cell.model.on_grid()
    ranges = np.minimum(np.ptp(log_p, axis=0), cell.rule.cap)
    close(np.ptp(cell.terms(log_p), axis=0), ranges)
    mechanism = ppm.PseudoPosteriorMechanism(cell.synthesizer, cap=cell.rule.cap)
    assert np.array_equal(mechanism.terms.weights, cell.terms.weights)


# ---- draws, bounds and losses ------------------------------------------------------------------


def probability(cell, drawn, grid, total):
    """Of draws as far as these are from density exp(total) on the grid."""
    chances = np.exp(total - total.max())
    chances /= chances.sum()
    if cell.model.finite:
        numbers = np.bincount(drawn["k"].ravel(), minlength=total.size)
        often = numbers.sum() * chances > 5
        # places that are drawn seldom count with the least likely of the others
        least = np.where(often, chances, 1.0).argmin()
        place = np.where(often, np.arange(total.size), least)
        found, chances = (
            np.bincount(place, one, total.size)[often] for one in (numbers, chances)
        )
        return stats.chisquare(found, found.sum() * chances).pvalue
    found = []
    for name, places in grid.items():
        values = drawn[name].reshape(drawn[name].shape[:2])
        at, group = np.unique(places, return_inverse=True)
        if at.size > 1:
            below = np.cumsum(np.bincount(group.ravel(), chances))[:-1]
            middles = (at[1:] + at[:-1]) / 2
            shares = np.searchsorted(np.sort(values, axis=None), middles) / values.size
            draws = effective_draws(values) if cell.model.chain else values.size
            found.append(stats.kstwobign.sf(np.abs(shares - below).max() * draws**0.5))
    return min(found)


@law()
def draws_follow_prior_times_exp_of_terms(cell):
    model, rule, log_p = cell.model, cell.rule, cell.model.on_grid()
    weights, levels = rule.weights_and_levels(model)
    right = rule.formula(log_p, weights, levels)
    # other terms, which must be told from these
    others = [rule.formula(log_p, 0.1 * weights, levels)]
    if rule.limits:
        others.append(RULES["plain"].formula(log_p, weights, levels))
    if rule.centered:
        others.append(rule.formula(log_p, weights, 0.0 * levels))
    for label, drawn in model.drawn(cell.fit.draws).items():
        own, grid = model.own(label), model.by_group(model.grid)[label]
        for terms in (right, *others):
            total = terms[:, own].sum(axis=1) + model.log_prior
            # OpenDP takes no seed: one run in a million fails without a fault
            agree = probability(cell, drawn, grid, total) > 1e-6
            assert agree == (terms is right)


@law()
def bounds_are_maxima_of_the_terms(cell):
    """Over what can be drawn: a whole public set, or the draws of a fit."""
    model, fit = cell.model, cell.fit
    log_p = model.log_p_at(model.drawn(fit.draws))
    kept = cell.synthesizer.log_likelihood(fit.draws)
    close(kept, log_p, rtol=1e-9, atol=1e-9)
    reached = model.on_grid() if model.finite else log_p.reshape(-1, RECORDS)
    terms = cell.rule.formula(reached, *cell.rule.weights_and_levels(model))
    settings = {"allow_disagreement": True}
    again = bound_fit(cell.synthesizer, fit.draws, cell.terms, **settings)
    for one in fit, again:
        close(one.record_bounds, np.abs(terms).max(axis=0), rtol=1e-9, atol=1e-12)
        close(one.oscillation_bound, np.ptp(terms, axis=0).max(), rtol=1e-9)
        assert one.local_bound == one.draw_maxima.max() == one.record_bounds.max()
    if model.labels is None:
        close(fit.draw_maxima.ravel(), np.abs(terms).max(axis=1), rtol=1e-9)
        assert fit.draws_used == len(terms)
    # one who has only the draws has no epsilon for every database
    assert not again.strict


def log_density(cell, synthesizer, terms, label, rows):
    """Of the library's pseudo posterior on a group's grid, normalised there."""
    model, grid = cell.model, cell.model.by_group(cell.model.grid)[label]
    if model.finite:
        chances = synthesizer.probabilities(terms)
        return np.log(chances if label is None else chances[label])
    if isinstance(synthesizer, ppm.GammaPoisson):
        found = synthesizer.posterior(terms).logpdf(grid["mu"]) + np.log(grid["mu"])
    else:
        found = terms(model.on_grid(rows)).sum(axis=1) + model.log_prior
    return found - np.logaddexp.reduce(found)


@law(lambda model, rule: rule.own)
def the_loss_of_a_leaving_record_is_within_the_width_and_comes_near(cell):
    """Or within the range of its term over the grid, where there are no limits."""
    ranges = np.ptp(cell.terms(cell.model.on_grid()), axis=0)
    assert ranges.max() <= cell.rule.width * (1 + 1e-12)
    losses = []
    for record in (0, 1, RECORDS - 1):
        rows, other, terms = cell.without(record)
        for label in cell.model.by_group(cell.model.grid):
            whole = log_density(cell, cell.synthesizer, cell.terms, label, ALL)
            loss = np.abs(whole - log_density(cell, other, terms, label, rows)).max()
            mine = record in cell.model.own(label)
            # a record of another group changes nothing
            assert loss <= mine * ranges[record] + 1e-8
            losses.append(loss)
    assert max(losses) > 0.4 * ranges[[0, 1, RECORDS - 1]].max()


# ---- what is promised and paid -----------------------------------------------------------------


@law()
def strict_or_local_as_the_terms_say_and_releases_cost_their_draws(cell):
    # without the calls of other laws
    fit, rule = replace(cell.fit, _released=[]), cell.rule
    strict = rule.own and rule.width < np.inf
    assert fit.strict == strict == (fit.guarantee.kind == "strict")
    assert fit.terms.source == rule.source
    # whoever gave the weights has to say where they come from
    assert ("weights" in fit.guarantee.reasons) == (strict and rule.source == "caller")
    one, together = rule.width if strict else 2.0 * fit.local_bound, 0
    held = cell.model.draws * (1 + cell.model.chain)
    for call, many in enumerate((1, 2, held + 5, 1)):
        release, together = fit.synthesize(many, random_seed=call), together + many
        paid, charged = min(many, held) * one, min(many, held)
        assert fit.draws_charged(many) == charged
        assert fit.epsilon(many) == pytest.approx(paid)
        told = " ".join(fit.statement(release)) if strict or fit.chains_agree else ""
        assert (f"ε = {charged} × {rule.width:g} = {paid:.10g}," in told) == strict
        assert ("share draws, of which" in told) == (many > held and told != "")
        costs = {"epsilon": paid, "epsilon_total": min(together, held) * one}
        found = {
            name: x for name, x in release.attrs.items() if name != "candidates_drawn"
        }
        assert found == pytest.approx({"releases": many} | (costs if strict else {}))


@of_models()
def each_release_comes_from_one_draw_and_from_nothing_confidential(cell):
    model, fit = cell.model, cell.model.fit_at(cell.model.far)
    draws = 2 * fit["posterior"].sizes["chain"]
    released = cell.synthesizer.predict(fit, releases=draws, random_seed=3)
    assert released.dims == ("release", "record")
    assert released.shape == (draws, RECORDS)
    above = released.values > model.between
    for label in model.by_group(model.grid):
        own = above[:, model.own(label)]
        # each draw is used once
        assert (own == own[:, :1]).all() and own[:, 0].sum() == 1
    many = [
        one.predict(fit, releases=9, random_seed=3).values
        for one in (cell.synthesizer, cell.other)
    ]
    assert np.array_equal(*many)


@of_models()
def a_repr_has_one_line_and_nothing_of_the_records(cell):
    terms = cell.rule.terms(cell.model, cell.other)
    for one, same in (cell.synthesizer, cell.other), (cell.terms, terms):
        assert repr(one) == repr(same) and "\n" not in repr(one)


# ---- fits --------------------------------------------------------------------------------------


@of_models()
def a_seed_gives_the_same_draws_and_its_children_others(cell):
    def fitted(seed):
        fit = cell.synthesizer.fit(cell.terms, draws=40, random_seed=seed)
        return np.ravel(cell.synthesizer.log_likelihood(fit))

    def predicted(seed):
        return cell.synthesizer.predict(
            cell.fit.draws, releases=4, random_seed=seed
        ).values

    # secure noise takes no seed
    for draw in [predicted] if cell.model.secure else [fitted, predicted]:
        right, sequence = draw(11), np.random.SeedSequence(11)
        assert np.array_equal(draw(sequence), right)
        assert np.array_equal(draw(sequence), right)
        source = np.random.SeedSequence(11)
        rng = np.random.default_rng(source)
        first, second = draw(rng), draw(rng)
        assert sequence.n_children_spawned == source.n_children_spawned == 0
        assert np.array_equal(draw(np.random.default_rng(11)), first)
        others = [first, second, draw(12), draw(None), *map(draw, sequence.spawn(2))]
        assert len({one.tobytes() for one in others}) == len(others)


@of_models(seeded)
def the_papers_mechanism_is_two_fits_and_a_rule_between(cell):
    model, settings = cell.model, {"draws": 30, "allow_disagreement": True}
    first, second = streams(7, 2)
    unweighted = cell.fitted(np.ones(RECORDS), draws=30, random_seed=first)
    log_p = model.log_p_at(model.drawn(unweighted.draws)).reshape(-1, RECORDS)
    bounds = np.abs(model.on_grid() if model.finite else log_p).max(axis=0)
    weights = np.clip(0.8 * (bounds.max() - bounds) / np.ptp(bounds) - 0.1, 0.0, 1.0)
    limit = np.mean(weights * bounds)
    weights[weights * bounds > limit] = 0.0
    rule = {"scale": 0.8, "shift": -0.1, "truncate_at": limit}
    mechanism = ppm.PseudoPosteriorMechanism(cell.synthesizer, **rule)
    result = mechanism.run(random_seed=7, **settings)
    close(result.weights, weights, rtol=1e-7, atol=1e-12)
    assert 0 < np.count_nonzero(weights) < RECORDS
    assert result.terms.source == "all records" and not result.strict
    again = cell.fitted(result.terms, draws=30, random_seed=second)
    for one, same in (again, result), (unweighted, result.unweighted):
        assert one.draws["posterior"].equals(same.draws["posterior"])


@of_models(seeded)
def what_is_not_held_in_memory_is_computed_in_blocks_to_the_same_end(cell):
    sizes, right = [], base.log_likelihood_from
    held = cell.fitted(draws=30, random_seed=2)

    def noting(evaluate, posterior, records):
        def noted(some):
            sizes.append(some.sizes["chain"] * some.sizes["draw"] * records)
            return evaluate(some)

        return right(noted, posterior, records)

    # without the log-likelihoods that candidates keep
    fresh = Cell(cell.name, cell.rule_name, lambda *_: copy.copy(cell.synthesizer))
    parts = {
        fresh.synthesizer,
        getattr(fresh.synthesizer, "synthesizer", fresh.synthesizer),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "HELD", 0)
        patch.setattr(base, "_BLOCK", 200)
        for one in parts:
            used = type(one).log_likelihood_at.__globals__
            patch.setitem(used, "log_likelihood_from", noting)
        result = fresh.fitted(draws=30, random_seed=2)
        kept = fresh.synthesizer.log_likelihood(result.draws).values
    close(kept, cell.synthesizer.log_likelihood(held.draws), rtol=1e-10, atol=1e-10)
    close(result.record_bounds, held.record_bounds, rtol=1e-10)
    # a user's own model computes as it likes
    assert max(sizes, default=0) <= 200


@of_models(light)
def a_fit_comes_back_from_a_file_and_goes_on(cell):
    fit = cell.fitted(draws=3, random_seed=1)
    fit.synthesize(1)
    back = cloudpickle.loads(cloudpickle.dumps(fit))
    assert np.array_equal(back.record_bounds, fit.record_bounds)
    assert str(back) == str(fit) and back.epsilon(2) == fit.epsilon(2)
    both = [one.synthesize(1, random_seed=2) for one in (fit, back)]
    assert both[0].identical(both[1])
    # what can be computed again is not stored
    assert "_log_liks" not in vars(back.model)


@of_models()
def what_does_not_fit_is_refused_in_one_line(cell):
    model, mine, terms = cell.model, cell.synthesizer, cell.terms
    drawn = mine.fit(terms, draws=3, random_seed=1)
    limits = ppm.Censoring(-3, -1)
    refused = [
        ("weights", lambda: mine.fit(np.ones(RECORDS + 1))),
        ("weights", lambda: mine.fit(np.full(RECORDS, -0.1))),
        ("weights", lambda: mine.fit(terms.of(ALL[1:]))),
        ("draws must", lambda: ppm.fit(mine, terms, draws=0)),
        ("releases must", lambda: cell.fit.synthesize(0)),
        # of other records, or of no model at all
        ("fit is no fit", lambda: bound_fit(cell.other, drawn, terms)),
        ("fit is no fit", lambda: bound_fit(mine, xr.DataTree(), terms)),
    ]
    if not model.limits:
        among = replace(terms, limits=limits)
        refused += [
            ("censor: the fit", lambda: rules.limited(mine, limits)),
            ("censor: the fit", lambda: ppm.fit(mine, among)),
        ]
    if not model.finite:
        refused += [("cap needs", lambda: rules.capped(mine, 1.0))]
    if model.secure:
        refused += [("secure_noise needs terms of a public width", mine.fit)]
    for message, use in refused:
        with pytest.raises((TypeError, ValueError), match=f"^{message}") as error:
            use()
        assert "\n" not in str(error.value)


@law(lambda model, rule: rule is RULES["plain"])
def an_audit_by_refits_sees_a_lone_record(cell):
    last, settings = RECORDS - 1, {"draws": 150, "random_seed": 7}
    settings["weighting"] = cell.terms.weights
    found = ppm.audits.sampled(cell.synthesizer, [last], **settings)
    # weights that are given stay
    assert found.largest_weight_change[last] < 1e-12 and found.estimates[last] > 0.5


# ---- the table ---------------------------------------------------------------------------------

CELLS = [
    (model, rule, name)
    for model in MODELS
    for rule in RULES
    for name, (_, where) in LAWS.items()
    if RULES[rule].taken_by(MODELS[model]) and where(MODELS[model], RULES[rule])
]
cells = {}


@pytest.mark.parametrize(("model", "rule", "name"), CELLS)
def test_law(model, rule, name):
    # one cell for all laws, so that its fit is made once
    cell = cells.setdefault((model, rule), Cell(model, rule))
    LAWS[name][0](cell)
