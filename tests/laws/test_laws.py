"""Laws that hold for every model and all terms: a table of models × rules × laws.

A law is a function of a cell of the table, a model under a rule. Each is broken in
`test_broken_laws`. To see one model alone: ``pytest tests/laws -k GammaPoisson``.
"""

import copy
import itertools
from dataclasses import replace

import cloudpickle
import numpy as np
import pytest
from laws.table import ALL, COLUMNS, MODELS, RECORDS, Cell, terms_of
from public_names import kinds_of
from scipy import stats

import ppm
from ppm import bounds, candidates
from ppm.chains import effective_draws

close = np.testing.assert_allclose
LAWS, GIVEN = {}, COLUMNS["weights"]


def law(where=lambda row, column: True):
    """A law, and the cells that it is for."""

    def noted(function):
        LAWS[function.__name__] = function, where
        return function

    return noted


def of_models(which=lambda row: True):
    """A law of a model, tried under the first rule that it takes."""

    def where(row, column):
        first = next(c for c in COLUMNS.values() if c.taken_by(row))
        return column is first and which(row)

    return law(where)


def seeded(row):
    return not row.secure


def light(row):
    """Whether nothing has to be compiled again after a file was read."""
    return row not in (MODELS["PyMCModel"], MODELS["candidates, PyMC"])


# ---- terms -------------------------------------------------------------------------------------


@law()
def terms_are_the_formula(cell):
    log_p = cell.row.on_grid()[::7]
    expected = cell.column.formula(log_p, *cell.column.weights_and_levels(cell.row))
    close(cell.terms(log_p), expected, atol=1e-12)


@law()
def terms_rise_with_log_p(cell):
    log_p = np.sort(cell.row.on_grid(), axis=0)
    assert (np.diff(cell.terms(log_p), axis=0) >= -1e-12).all()


@law()
def public_rules_do_not_see_other_records(cell):
    log_p = cell.row.on_grid()
    for record in (0, RECORDS - 1):
        rows, _, terms = cell.without(record)
        close(terms(log_p[:, rows]), cell.terms(log_p)[:, rows], atol=1e-12)


@law(lambda row, column: column.strict)
def an_impossible_record_leaves_all_others_terms_as_they_are(cell):
    model, inner = copy.copy(cell.model), copy.copy(cell.model.model)
    right, impossible = inner.log_p, ALL == RECORDS - 1
    inner.log_p, model.model = (
        lambda theta: np.where(impossible, -np.inf, right(theta)),
        inner,
    )
    # what the model it was copied from has read
    vars(model).pop("_held", None)
    terms, log_p = terms_of(model, cell.rule), cell.row.on_grid()
    close(terms.levels[:-1], cell.terms.levels[:-1])
    assert terms.levels[-1] == 0.0
    values = terms(np.where(impossible, -np.inf, log_p))
    close(values[:, :-1], cell.terms(log_p)[:, :-1], atol=1e-12)
    # it has one term at every candidate, and so no say in what is drawn
    assert np.ptp(values[:, -1]) == 0.0
    nobody = replace(cell.terms, weights=cell.terms.weights * ~impossible)
    found, without = model.probabilities(terms), cell.model.probabilities(nobody)
    for label in cell.row.by_group(cell.row.grid):
        of_label = (one if label is None else one[label] for one in (found, without))
        close(*of_label, atol=1e-9)


@law(lambda row, column: column.cap)
def own_weights_take_no_more_than_they_must(cell):
    log_p = cell.row.on_grid()
    ranges = np.minimum(np.ptp(log_p, axis=0), cell.column.cap)
    close(np.ptp(cell.terms(log_p), axis=0), ranges)


# ---- draws, bounds and losses ------------------------------------------------------------------


def probability(cell, drawn, grid, total):
    """Of draws as far as these are from density exp(total) on the grid."""
    chances = np.exp(total - total.max())
    chances /= chances.sum()
    if cell.row.finite or cell.row.secure:
        numbers = np.bincount(drawn["k"], minlength=total.size)
        often = numbers.sum() * chances > 5
        # places that are drawn seldom count with the least likely of the others
        least = np.where(often, chances, 1.0).argmin()
        place = np.where(often, np.arange(total.size), least)
        numbers, chances = (
            np.bincount(place, values, total.size)[often]
            for values in (numbers, chances)
        )
        return stats.chisquare(numbers, numbers.sum() * chances).pvalue
    # of every number of θ that is free, its places and its draws
    numbers = [
        (places, values)
        for name, of_all in grid.items()
        for places, values in zip(
            of_all.reshape(len(of_all), -1).T,
            drawn[name].reshape(len(drawn[name]), -1).T,
            strict=True,
        )
        if np.ptp(places) > 0
    ]
    agreement = []
    for places, values in numbers:
        place, group = np.unique(places, return_inverse=True)
        below = np.cumsum(np.bincount(group.ravel(), chances))[:-1]
        middles = (place[1:] + place[:-1]) / 2
        shares = np.searchsorted(np.sort(values), middles) / values.size
        distance = np.abs(shares - below).max()
        agreement.append(stats.kstwobign.sf(distance * alone(cell, values) ** 0.5))
    # and how two of them go together: of one alone a regression may be right in each
    for one, other in itertools.combinations(numbers, 2):
        (a, its), (b, others) = (standardised(*pair, chances) for pair in (one, other))
        for places, values in (
            (a * b, its * others),
            (a**2 * b, its**2 * others),
            (a * b**2, its * others**2),
        ):
            expected = chances @ places
            deviation = (chances @ (places - expected) ** 2) ** 0.5
            distance = abs(values.mean() - expected) * alone(cell, values) ** 0.5
            agreement.append(2 * stats.norm.sf(distance / deviation))
    return min(agreement)


def alone(cell, values):
    """How many independent draws these are worth."""
    chains = cell.model.chains
    return effective_draws(values.reshape(chains, -1)) if chains else values.size


def standardised(places, values, chances):
    """Both, less the mean on the grid and over the standard deviation there."""
    mean = chances @ places
    deviation = (chances @ (places - mean) ** 2) ** 0.5
    return (places - mean) / deviation, (values - mean) / deviation


@law(lambda row, column: seeded(row) and (column.centered or column is GIVEN))
def a_model_keeps_nothing_of_the_terms_before(cell):
    """One that is compiled or read once serves all rules, in any order."""
    records = cell.terms.records
    others = replace(cell.terms, weights=np.ones(records), levels=np.zeros(records))
    settings = {"warmup": 2} if cell.model.chains else {}

    def seen(terms):
        drawn = cell.model.draw(terms, 10, np.random.default_rng(3), **settings)
        chances = [cell.model.probabilities(terms)] if cell.row.finite else []
        return drawn, chances

    first, second = seen(others), seen(cell.terms)
    for one, again in (first, seen(others)), (second, seen(cell.terms)):
        np.testing.assert_equal(one, again)
    with np.testing.assert_raises(AssertionError):
        np.testing.assert_equal(first, second)


@law()
def draws_follow_prior_times_exp_of_terms(cell):
    row, column, log_p = cell.row, cell.column, cell.row.on_grid()
    weights, levels = column.weights_and_levels(row)
    right = column.formula(log_p, weights, levels)
    # other terms, which must be told from these
    others = [column.formula(log_p, 0.1 * weights, levels)]
    if column.limits:
        others.append(COLUMNS["unweighted"].formula(log_p, weights, levels))
    if column.centered:
        others.append(column.formula(log_p, weights, 0.0 * levels))
    for label, drawn in row.drawn(cell.fit.theta).items():
        own, grid = row.own(label), row.by_group(row.grid)[label]
        for terms in (right, *others):
            total = terms[:, own].sum(axis=1) + row.log_prior
            # OpenDP takes no seed: one run in a million fails without a fault
            agree = probability(cell, drawn, grid, total) > 1e-6
            assert agree == (terms is right)


@law()
def bounds_are_maxima_of_the_terms(cell):
    """Over what can be drawn: a whole public set, or the draws of a fit."""
    row, fit = cell.row, cell.fit
    log_p = row.log_p_at(row.drawn(fit.theta))
    close(cell.model.log_p(fit.theta), log_p, rtol=1e-9, atol=1e-9)
    reached = row.on_grid() if row.finite else log_p
    terms = cell.column.formula(reached, *cell.column.weights_and_levels(row))
    close(fit.record_bounds, np.abs(terms).max(axis=0), rtol=1e-9, atol=1e-12)
    close(fit.oscillation_bound, np.ptp(terms, axis=0).max(), rtol=1e-9)
    assert fit.local_bound == fit.draw_maxima.max() == fit.record_bounds.max()
    if row.labels is None:
        close(fit.draw_maxima.ravel(), np.abs(terms).max(axis=1), rtol=1e-9)
        assert fit.draws_used == len(terms)


def log_density(cell, model, terms, label, rows):
    """Of the library's pseudo posterior on a group's grid, normalised there."""
    row, grid = cell.row, cell.row.by_group(cell.row.grid)[label]
    if row.finite:
        chances = model.probabilities(terms)
        return np.log(chances if label is None else chances[label])
    if isinstance(model, ppm.GammaPoisson):
        values = model.posterior(terms.weights).logpdf(grid["mu"]) + np.log(grid["mu"])
    else:
        values = terms(row.on_grid(rows)).sum(axis=1) + row.log_prior
    return values - np.logaddexp.reduce(values)


@law()
def the_loss_of_a_leaving_record_is_within_the_range_of_its_term_and_comes_near(cell):
    """And that within the width, where there is one."""
    ranges = np.ptp(cell.terms(cell.row.on_grid()), axis=0)
    assert ranges.max() <= cell.column.width * (1 + 1e-12)
    losses = []
    for record in (0, 1, RECORDS - 1):
        rows, other, terms = cell.without(record)
        for label in cell.row.by_group(cell.row.grid):
            whole = log_density(cell, cell.model, cell.terms, label, ALL)
            loss = np.abs(whole - log_density(cell, other, terms, label, rows)).max()
            mine = record in cell.row.own(label)
            # a record of another group changes nothing
            assert loss <= mine * ranges[record] + 1e-8
            losses.append(loss)
    assert max(losses) > 0.4 * ranges[[0, 1, RECORDS - 1]].max()


# ---- what is promised and paid -----------------------------------------------------------------


@law()
def strict_or_local_as_rule_and_model_say_and_releases_cost_their_draws(cell):
    # without the calls of other laws
    fit, column = replace(cell.fit, _released=[]), cell.column
    assert fit.strict == column.strict
    each, together = column.width if column.strict else 2.0 * fit.local_bound, 0
    held = cell.row.draws * (cell.model.chains or 1)
    for call, many in enumerate((1, 2, held + 5, 1)):
        release, together = fit.release(many, random_seed=call), together + many
        paid, charged = min(many, held) * each, min(many, held)
        assert fit.draws_charged(many) == charged
        assert fit.epsilon(many) == pytest.approx(paid)
        costs = {"epsilon": paid, "epsilon_total": min(together, held) * each}
        told = {"releases": many} | (costs if column.strict else {})
        assert release.attrs == pytest.approx(told)


@law(lambda row, column: not row.secure)
def nothing_but_the_librarys_own_limits_and_candidates_is_strict(cell):
    """No subclass, no terms, no attribute: each draws the same and promises less."""
    kind = type(cell.rule)
    subclass = type("Mine", (kind,), {"width": 0.1, "own": True, "strict": True})
    mine = subclass(**{name: getattr(cell.rule, name) for name in cell.rule.__dict__})
    for what in mine, cell.terms:
        fit = cell.fitted(what, draws=9, random_seed=5)
        assert not fit.strict
        assert fit.epsilon() == pytest.approx(2 * fit.local_bound)
    if cell.row.finite and cell.column.strict:
        other = copy.copy(cell.model)
        other.__class__ = type("Mine", (ppm.Candidates,), {})
        with pytest.raises(TypeError, match="takes no limits"):
            ppm.fit(other, cell.rule, draws=9)


def database(model, theta, rng):
    """The one response of a synthetic database."""
    values = model.predict(theta, rng)
    return [*values.values()][0] if isinstance(values, dict) else values


@of_models()
def each_release_comes_from_one_draw_and_from_nothing_confidential(cell):
    row, rng = cell.row, np.random.default_rng(3)
    for place in (0, 1):
        theta = row.far_theta(place)
        values = database(cell.model, theta, rng)
        assert values.shape == (RECORDS,)
        assert ((values > row.between) == (place == 1)).all()
        drawn = [
            database(model, theta, np.random.default_rng(3))
            for model in (cell.model, cell.other)
        ]
        assert np.array_equal(*drawn)
    # the library hands over one θ for each release, different ones while they last
    seen, model = [], copy.copy(cell.model)
    right = model.predict
    model.predict = lambda theta, rng: (seen.append(theta), right(theta, rng))[1]
    fit = replace(cell.fit, model=model, _released=[])
    many = 7
    release = fit.release(many, random_seed=3)
    if hasattr(release, "data_vars"):
        (release,) = release.data_vars.values()
    assert release.dims == ("release", "record") and release.shape == (many, RECORDS)
    assert len(seen) == many and not release.coords
    if not row.finite:
        assert len({str(theta) for theta in seen}) == many
    shapes = {name: values.shape[1:] for name, values in fit.theta.items()}
    assert {name: np.shape(value) for name, value in seen[0].items()} == shapes


@of_models()
def a_repr_has_one_line_and_nothing_of_the_records(cell):
    terms = terms_of(cell.other, cell.rule)
    for mine, others in (cell.model, cell.other), (cell.terms, terms):
        assert repr(mine) == repr(others) and "\n" not in repr(mine)


# ---- fits --------------------------------------------------------------------------------------


@of_models()
def a_seed_gives_the_same_draws_and_its_children_others(cell):
    def fitted(seed):
        fit = cell.fitted(cell.terms, draws=40, random_seed=seed)
        return np.ravel(cell.model.log_p(fit.theta))

    def predicted(seed):
        release = cell.fit.release(4, random_seed=seed)
        if hasattr(release, "data_vars"):
            release = release.to_dataarray()
        return release.values

    # secure noise takes no seed
    for draw in [predicted] if cell.row.secure else [fitted, predicted]:
        right, sequence = draw(11), np.random.SeedSequence(11)
        assert np.array_equal(draw(sequence), right)
        assert np.array_equal(draw(sequence), right)
        assert sequence.n_children_spawned == 0
        others = [draw(12), draw(None), *map(draw, sequence.spawn(2))]
        assert len({other.tobytes() for other in (right, *others)}) == len(others) + 1


@of_models(seeded)
def the_papers_mechanism_is_two_fits_and_a_rule_between(cell):
    row, settings = cell.row, {"draws": 30, "random_seed": 7}
    unweighted = cell.fitted(ppm.Unweighted(), **settings)
    log_p = row.on_grid() if row.finite else row.log_p_at(row.drawn(unweighted.theta))
    record_bounds = np.abs(log_p).max(axis=0)
    risk = (record_bounds.max() - record_bounds) / np.ptp(record_bounds)
    weights = np.clip(0.8 * risk - 0.1, 0.0, 1.0)
    limit = np.mean(weights * record_bounds)
    weights[weights * record_bounds > limit] = 0.0
    rule = ppm.ByRisk(scale=0.8, shift=-0.1, truncate_at=limit)
    fit = cell.fitted(rule, **settings)
    close(fit.weights, weights, rtol=1e-7, atol=1e-12)
    assert 0 < np.count_nonzero(weights) < RECORDS and not fit.strict
    # the fit behind it is the one that stands alone under the same seed, and is not made again
    for name, values in unweighted.theta.items():
        assert np.array_equal(fit.unweighted.theta[name], values)
    again = cell.fitted(rule, known={ppm.Unweighted(): unweighted}, **settings)
    assert again.unweighted._extremes is unweighted._extremes
    for name, values in fit.theta.items():
        assert np.array_equal(again.theta[name], values)
    first, second = np.random.SeedSequence(7).spawn(2)
    alone = cell.fitted(fit.terms, draws=30, random_seed=second)
    for name, values in fit.theta.items():
        assert np.array_equal(alone.theta[name], values)


@of_models(seeded)
def log_p_is_read_in_blocks_to_the_same_end(cell):
    held = cell.fitted(draws=30, random_seed=2)
    # without the log-likelihoods that candidates keep
    fresh = Cell(cell.name, cell.column_name, lambda *_: copy.copy(cell.model))
    vars(fresh.model).pop("_held", None)
    with pytest.MonkeyPatch.context() as patch:
        for module in bounds, candidates:
            patch.setattr(module, "_BLOCK", 200)
        patch.setattr(candidates, "_HELD", 0)
        fit = fresh.fitted(draws=30, random_seed=2)
    close(fit.record_bounds, held.record_bounds, rtol=1e-10)
    close(fit.draw_maxima, held.draw_maxima, rtol=1e-10)
    for name, values in held.theta.items():
        assert np.array_equal(fit.theta[name], values)


@of_models(light)
def a_fit_comes_back_from_a_file_and_goes_on(cell):
    fit = cell.fitted(draws=3, random_seed=1)
    fit.release(1)
    back = cloudpickle.loads(cloudpickle.dumps(fit))
    assert np.array_equal(back.record_bounds, fit.record_bounds)
    assert str(back) == str(fit) and back.epsilon(2) == fit.epsilon(2)
    both = [one_fit.release(1, random_seed=2) for one_fit in (fit, back)]
    assert both[0].identical(both[1])
    # what can be computed again is not stored
    assert "_held" not in vars(back.model)


@of_models()
def what_does_not_fit_is_refused_in_one_line(cell):
    row, model = cell.row, cell.model
    many = np.ones(RECORDS + 1)
    refused = [
        ("weights must have one weight", lambda: ppm.fit(model, ppm.Given(many))),
        ("terms must be of", lambda: ppm.fit(model, ppm.Terms(many))),
        ("draws must", lambda: ppm.fit(model, cell.rule, draws=0)),
        ("rule must be", lambda: ppm.fit(model, many)),
        ("rule must be", lambda: ppm.fit(model, ppm.ByRisk)),
        (
            "known must hold fits",
            lambda: ppm.fit(model, cell.rule, known={cell.rule: 3}),
        ),
        ("releases must", lambda: cell.fit.release(0)),
    ]
    if not row.secure:
        known = {
            ppm.Unweighted(): ppm.fit(model, ppm.Unweighted(), draws=9, random_seed=1)
        }
        settings = {"known": known, "draws": 9}
        refused += [
            (
                "known: the fit of Unw",
                lambda: ppm.fit(cell.other, ppm.ByRisk(), **settings),
            ),
            (
                "known must hold fits of 8",
                lambda: ppm.fit(model, ppm.ByRisk(), known=known, draws=8),
            ),
        ]
    limits = ppm.Limits(-3, -1)
    if not row.finite:
        refused += [
            (f"{type(model).__name__} takes no", lambda rule=rule: ppm.fit(model, rule))
            for rule in (
                ppm.Limited(limits),
                ppm.Capped(1.0),
                ppm.Terms(np.ones(RECORDS), limits),
            )
        ]
    if row.secure:
        refused += [("secure_noise needs", lambda: ppm.fit(model, ppm.Unweighted()))]
    for message, use in refused:
        with pytest.raises((TypeError, ValueError), match=f"^{message}") as error:
            use()
        assert "\n" not in str(error.value)


# ---- the table ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", kinds_of(ppm.Model))
def test_every_public_model_is_a_row_by_its_name(name):
    there = name in MODELS
    assert there, f"{name} needs a row in MODELS of tests/laws/table.py"
    column = next(
        column for column in COLUMNS if COLUMNS[column].taken_by(MODELS[name])
    )
    assert type(Cell(name, column).model).__name__ == name


CELLS = [
    (row, column, name)
    for row in MODELS
    for column in COLUMNS
    for name, (_, where) in LAWS.items()
    if COLUMNS[column].taken_by(MODELS[row]) and where(MODELS[row], COLUMNS[column])
]
cells = {}


@pytest.mark.parametrize(("row", "column", "name"), CELLS)
def test_law(row, column, name):
    # one cell for all laws, so that its fit is made once
    cell = cells.setdefault((row, column), Cell(row, column))
    LAWS[name][0](cell)
