"""Rules are public values, and each makes the terms that it says."""

import dataclasses
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from public_names import kinds_of

import ppm
from ppm.rules import next_weight

COUNTS = np.random.default_rng(1).poisson(5, 60)
MODEL = ppm.GammaPoisson(COUNTS, shape=2.0, rate=0.4)
GRID = ppm.Candidates(MODEL, {"mu": np.linspace(3.0, 8.0, 40)})


@dataclasses.dataclass(frozen=True)
class ByPercentile(ppm.Rule):
    """A user's: weight 1 below a percentile of the bounds, else that percentile over the bound."""

    percent: float = 90.0

    def terms(self, model, fit):
        bounds = fit(ppm.Unweighted()).record_bounds
        return ppm.Terms(np.minimum(1.0, np.percentile(bounds, self.percent) / bounds))


EQUAL = [
    (ppm.Unweighted(), ppm.Unweighted()),
    (ppm.ByRisk(1), ppm.ByRisk(1.0, -0.0)),
    (ppm.ByRisk(truncate_at=3), ppm.ByRisk(truncate_at=3.0)),
    (ppm.OneWeight(like=ppm.ByRisk(0.7)), ppm.OneWeight(ppm.ByRisk(scale=0.7))),
    (ppm.OneWeight(epsilon=2), ppm.OneWeight(epsilon=2.0)),
    (ppm.ByCount(1), ppm.ByCount(1.0)),
    (ppm.Reweighted(), ppm.Reweighted(ppm.ByRisk(1), 0.95)),
    (ppm.Given(np.array([1, 0.5])), ppm.Given([1.0, 0.5])),
    (ppm.Capped(1), ppm.Capped(1.0)),
    (
        ppm.Limited(ppm.Limits(-1, 1), {"beta": np.ones((1, 2))}, np.ones(2)),
        ppm.Limited(ppm.Limits(-1.0, 1), {"beta": [[1.0, 1.0]]}, [1, 1]),
    ),
    (
        ppm.Limited(ppm.Limits(-1, 1), {"a": {"mu": 1.0}, "b": {"mu": 2}}),
        ppm.Limited(ppm.Limits(-1, 1), {"a": {"mu": 1}, "b": {"mu": 2.0}}),
    ),
    (ByPercentile(90), ByPercentile(90)),
]


@pytest.mark.parametrize("name", kinds_of(ppm.Rule))
def test_every_public_rule_is_compared_by_its_name(name):
    compared = {type(rule).__name__ for rule, _ in EQUAL}
    assert name in compared, f"{name} needs a pair in EQUAL"


@pytest.mark.parametrize(("rule", "same"), EQUAL, ids=lambda rule: type(rule).__name__)
def test_equal_rules_compare_hash_and_are_written_alike(rule, same):
    assert rule == same and hash(rule) == hash(same) and {rule: 1}[same] == 1
    assert repr(rule) == repr(same)
    assert pickle.loads(pickle.dumps(rule)) == rule
    assert rule not in [other for other, _ in EQUAL if other is not rule]
    with pytest.raises(dataclasses.FrozenInstanceError):
        rule.scale = 2.0


def test_one_weight_comes_near_the_bound_of_its_rule_and_the_rule_gets_that_fit():
    like = ppm.ByRisk(scale=0.7)
    fit = ppm.fit(MODEL, ppm.OneWeight(like), draws=500, random_seed=1)
    assert np.ptp(fit.weights) == 0 < fit.weights[0] < 1
    target = fit.behind[like].local_bound
    assert abs(fit.local_bound / target - 1) <= 0.05
    # the first try, the paper's, is far off
    first = target / fit.unweighted.local_bound
    paper = ppm.fit(MODEL, ppm.Terms(np.full(60, first)), draws=500, random_seed=1)
    assert abs(paper.local_bound / target - 1) > 0.05
    # its draws are those of a fit of the search, and not of one more
    again = ppm.fit(
        MODEL,
        ppm.OneWeight(like),
        draws=500,
        random_seed=1,
        known={like: fit.behind[like]},
    )
    assert {*again.behind} == {*fit.behind} == {like, ppm.Unweighted()}


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_one_weight_for_a_public_epsilon_comes_near_it(epsilon):
    rule = ppm.OneWeight(epsilon=epsilon, fits=12)
    fit = ppm.fit(MODEL, rule, draws=500, random_seed=1)
    assert fit.epsilon() == pytest.approx(epsilon, rel=0.05)
    # it is local all the same
    assert not fit.strict
    # the weight 1 is enough for a generous one
    generous = ppm.fit(MODEL, ppm.OneWeight(epsilon=1e6), draws=50, random_seed=1)
    assert (generous.weights == 1).all()


def test_the_next_weight_is_where_a_straight_line_meets_the_target():
    assert next_weight(3.0, [1.0], [12.0]) == 0.25
    assert next_weight(3.0, [1.0, 0.25], [12.0, 4.5]) == pytest.approx(0.1)
    # never above 1, also where the line falls
    assert next_weight(30.0, [1.0], [12.0]) == 1.0
    assert 0 < next_weight(3.0, [1.0, 0.5], [2.0, 4.0]) <= 1.0
    assert next_weight(1.0, [1.0], [0.0]) == 1.0
    # a line that meets the target below 0 only is not followed
    assert next_weight(1.0, [1.0, 0.5], [10.0, 6.0]) == pytest.approx(0.5 / 6.0)


class Chains(ppm.GammaPoisson):
    """Two chains of the closed form."""

    chains, warmup = 2, 5

    def draw(self, terms, draws, rng, *, warmup=None, start=None):
        return super().draw(terms, 2 * draws, rng)


def test_one_weight_of_chains_is_tried_with_fewer_draws_and_the_nearest_fit_is_taken():
    """By a script of bounds: what is asked for, in which order, and which fit is taken."""
    model = Chains(COUNTS)
    model.warmup = 23
    rng, like, asked = np.random.default_rng(1), ppm.ByRisk(0.7), []
    maxima = rng.uniform(1.0, 5.0, (2, 50))
    # the largest is of the second chain, and of the draws after the last whole part of ten
    maxima[1, 47] = 6.0
    aim = np.mean([maxima[:, k : k + 10].max() for k in (0, 10, 20, 30, 40)])
    # one of the trials is nearest of all, and is not taken
    trials, full = [3.0, 5.95, 3.6], [7.0, 5.5, 6.2, 4.9]
    script = iter(trials + full)

    def fit(what, *, draws=None, trial=False, **settings):
        if isinstance(what, ppm.Rule):
            bound = 10.0 if what == ppm.Unweighted() else None
            return SimpleNamespace(local_bound=bound, draws=50, draw_maxima=maxima)
        asked.append((what.weights[0], draws, trial, settings))
        assert np.ptp(what.weights) == 0 and what.records == model.records
        return SimpleNamespace(local_bound=next(script), terms=what, ends=len(asked))

    terms = ppm.OneWeight(like, tolerance=1e-3).terms(model, fit)
    weights, bounds = [1.0], [10.0]
    # a trial's bound in proportion to what the rule's own fit reaches over as many draws
    for found in [one * 6.0 / aim for one in trials] + full:
        weights.append(next_weight(6.0, weights, bounds))
        bounds.append(found)
    assert [weight for weight, *_ in asked] == pytest.approx(weights[1:])
    assert [draws for _, draws, *_ in asked] == [10] * 3 + [50] * 4
    # each begins where the one before it ended, with a fifth of the warm-up
    later = [{"start": number, "warmup": 4} for number in range(1, 7)]
    assert [settings for *_, settings in asked] == [{}, *later]
    assert all(trial for *_, trial, _ in asked)
    # 6.2 is nearest to 6
    assert terms.weights[0] == pytest.approx(weights[6])
    # and within the tolerance the search ends
    script, asked[:] = iter(trials + full), []
    terms = ppm.OneWeight(like, tolerance=0.09).terms(model, fit)
    assert len(asked) == 5 and terms.weights[0] == asked[-1][0]


FAR = ppm.GammaPoisson([10, 11, 12, 30])
TRIALS = Chains(COUNTS, shape=2.0, rate=0.4)
# model, rule, and another value of each of the rule's fields
OTHER = [
    (MODEL, ppm.ByRisk(), {"scale": 0.5, "shift": 0.2, "truncate_at": 1.0}),
    (MODEL, ppm.OneWeight(ppm.ByRisk()), {"like": ppm.ByRisk(0.5)}),
    (MODEL, ppm.OneWeight(epsilon=1.0), {"epsilon": 2.0, "tolerance": 9.0, "fits": 1}),
    (TRIALS, ppm.OneWeight(ppm.ByRisk()), {"trials": 0}),
    (
        FAR,
        ppm.ByCount(1.4, relative=False),
        {"radius": 2.4, "relative": True, "scale": 0.5, "shift": 0.2},
    ),
    (MODEL, ppm.Reweighted(), {"after": ppm.ByRisk(0.5), "k": 0.5}),
    (MODEL, ppm.Given(np.ones(60)), {"weights": np.full(60, 0.5)}),
    (GRID, ppm.Capped(0.1), {"width": 0.2}),
    (
        GRID,
        ppm.Limited(ppm.Limits(-3.0, -2.0)),
        {"limits": ppm.Limits(-3.0, -1.0), "center": {"mu": 5.0}, "weight": 0.5},
    ),
]


@pytest.mark.parametrize("name", kinds_of(ppm.Rule))
def test_every_field_of_a_rule_changes_its_terms(name):
    tried = set()
    for model, rule, others in OTHER:
        if type(rule).__name__ != name:
            continue
        log_p = np.linspace(np.full(model.records, -4.0), -0.1, 9)
        for field, value in others.items():
            terms = [
                ppm.fit(model, one, draws=50, random_seed=1).terms
                for one in (rule, dataclasses.replace(rule, **{field: value}))
            ]
            assert not np.array_equal(*(one(log_p) for one in terms)), field
            tried.add(field)
    every = {field.name for field in dataclasses.fields(getattr(ppm, name))}
    assert tried == every, f"{name} needs an entry of OTHER with each of its fields"


def test_the_radius_of_counted_weights_is_a_share_or_in_the_values_unit():
    for rule, known in {
        ppm.ByCount(1.4, relative=False): [1 / 3, 2 / 3, 1 / 3, 0],
        ppm.ByCount(1.4): [2 / 3, 2 / 3, 2 / 3, 1],
    }.items():
        assert ppm.fit(FAR, rule, draws=9).weights == pytest.approx(known)


def test_counted_weights_need_a_model_that_says_its_values():
    fit = ppm.fit(
        ppm.GammaPoisson([10, 11, 12, 30]), ppm.ByCount(0.3, scale=0.9), draws=9
    )
    assert fit.weights == pytest.approx([0.6, 0.6, 0.6, 0.0])

    class Silent(ppm.GammaPoisson):
        def __init__(self, counts):
            super().__init__(counts)
            self.values = None

    with pytest.raises(
        TypeError, match="^ByCount needs a model that says .*; Silent has"
    ):
        ppm.fit(Silent(COUNTS), ppm.ByCount(0.3), draws=9)
    # only records that an intruder cannot tell apart are compared
    model = ppm.GammaPoisson([10, 11, 10, 11])
    model.known = list("aabb")
    assert ppm.fit(model, ppm.ByCount(0.3), draws=9).weights == pytest.approx(
        np.ones(4)
    )
    model.known = list("abab")
    assert ppm.fit(model, ppm.ByCount(0.05), draws=9).weights == pytest.approx(
        np.ones(4)
    )


def test_reweighting_brings_every_bound_near_the_largest():
    rule = ppm.Reweighted()
    fit = ppm.fit(MODEL, rule, draws=500, random_seed=1)
    second = fit.behind[ppm.ByRisk()]
    bounds = second.record_bounds
    felt = bounds > 0
    expected = np.minimum(
        1.0, second.weights[felt] * bounds.max() / bounds[felt] * 0.95
    )
    assert fit.weights[felt] == pytest.approx(expected, rel=1e-12)
    assert fit.weights.sum() > second.weights.sum() and not fit.strict
    with pytest.raises(ValueError, match="^after must be a rule without limits"):
        ppm.fit(GRID, ppm.Reweighted(ppm.Capped(1.0)), draws=9)


def test_given_weights_are_a_copy_and_never_strict():
    weights = np.linspace(0.1, 3.0, 60)
    rule = ppm.Given(weights)
    weights[:] = 1.0
    for model in MODEL, GRID:
        fit = ppm.fit(model, rule, draws=9, random_seed=1)
        assert (
            fit.weights == pytest.approx(np.linspace(0.1, 3.0, 60)) and not fit.strict
        )
    limited = ppm.Limited(ppm.Limits(-1, 1), {"mu": 5.0}, np.linspace(0.1, 3.0, 60))
    fit = ppm.fit(GRID, limited, draws=9)
    assert fit.strict and fit.epsilon() == 2.0
    for short in ppm.Given([1.0]), ppm.Limited(ppm.Limits(-1, 1), weight=[1.0]):
        with pytest.raises(ValueError, match="must have one weight for each of the 60"):
            ppm.fit(GRID, short, draws=9)


@pytest.mark.parametrize("settings", [{"frozen": False}, {"frozen": True}])
def test_a_rule_that_cannot_be_a_key_is_told_how_to_be_written(settings):
    @dataclasses.dataclass(**settings)
    class Mine(ppm.Rule):
        places: list

        def terms(self, model, fit):
            return ppm.Terms(np.ones(model.records))

    @dataclasses.dataclass(frozen=True)
    class Asks(ppm.Rule):
        def terms(self, model, fit):
            return fit(Mine([1, 2])).terms

    for rule in (Mine([1, 2]), Asks()):
        with pytest.raises(
            TypeError, match="^Mine must be hashable: .* frozen dataclass"
        ):
            ppm.fit(FAR, rule, draws=9)


def test_a_rule_of_ones_own_enters_every_other_and_is_local():
    for rule in (
        ByPercentile(),
        ppm.OneWeight(ByPercentile()),
        ppm.Reweighted(ByPercentile()),
    ):
        fit = ppm.fit(MODEL, rule, draws=200, random_seed=1)
        assert not fit.strict and fit.epsilon() == 2 * fit.local_bound
        assert fit.rule == rule and ppm.Unweighted() in fit.behind


def test_a_sweep_makes_nothing_twice():
    known, drawn = {}, []

    class Counted(ppm.GammaPoisson):
        def draw(self, terms, draws, rng):
            drawn.append(terms)
            return super().draw(terms, draws, rng)

    model = Counted(COUNTS)
    for rule in ppm.Unweighted(), ppm.ByRisk(), ppm.ByRisk(0.5), ByPercentile():
        known[rule] = ppm.fit(model, rule, draws=50, random_seed=1, known=known)
    assert len(drawn) == 4
    ppm.fit(model, ppm.Reweighted(), draws=50, random_seed=1, known=known)
    assert len(drawn) == 5


@pytest.mark.parametrize("made", [None, np.ones(60), ppm.Terms(np.ones(3))])
def test_a_rule_that_returns_no_terms_of_these_records_is_refused(made):
    @dataclasses.dataclass(frozen=True)
    class Wrong(ppm.Rule):
        def terms(self, model, fit):
            return made

    with pytest.raises(ValueError, match="^terms of Wrong must be ppm.Terms of the 60"):
        ppm.fit(MODEL, Wrong(), draws=9)


def test_bounds_that_differ_by_rounding_alone_are_equal():
    bounds = np.full(5, 7.3)
    assert (ppm.record_weights(np.nextafter(bounds, 8 * (np.arange(5) % 2))) == 1).all()
    # an infinite one is another matter, and so is a difference that is none of rounding
    assert ppm.record_weights([7.3, np.nextafter(7.3, 8), np.inf]).tolist() == [1, 1, 0]
    assert ppm.record_weights(bounds + 1e-9 * np.arange(5)).tolist() != [1] * 5


def test_one_weight_on_candidates_meets_its_target_at_once():
    like = ppm.ByRisk(scale=0.7)
    fit = ppm.fit(GRID, ppm.OneWeight(like), draws=200, random_seed=1)
    assert fit.local_bound == pytest.approx(fit.behind[like].local_bound, rel=1e-9)


def test_one_weight_without_a_finite_bound_says_so():
    impossible = ppm.Candidates(ppm.GammaPoisson([0, 3]), {"mu": [0.0, 2.0]})
    for rule in ppm.OneWeight(epsilon=1.0), ppm.OneWeight(ppm.ByRisk()):
        with pytest.raises(ValueError, match="^OneWeight needs finite bounds"):
            ppm.fit(impossible, rule, draws=20, random_seed=1)


def test_records_that_are_impossible_have_no_weight_or_no_bound_keep_nobody_elses():
    """All kinds beside each other: ordinary, impossible at a draw, of weight 0, of bound 0."""
    weights = np.array([0.5, 0.8, 0.7, 0.0, 0.5])
    bounds = np.array([2.0, 4.0, np.inf, 0.0, 0.0])
    found = SimpleNamespace(
        weights=weights, record_bounds=bounds, terms=ppm.Terms(weights)
    )
    raised = ppm.Reweighted(k=0.9).terms(None, lambda rule: found).weights
    assert raised == pytest.approx([0.9, 0.8 * 0.9, 0.0, 0.0, 1.0])
    by_risk = ppm.ByRisk(0.5, 0.3).terms(None, lambda rule: found).weights
    # of the finite ones the largest has risk 1; no weight above 0 bounds an infinite one
    assert by_risk == pytest.approx([0.55, 0.3, 0.0, 0.8, 0.8])
    truncated = ppm.ByRisk(0.5, 0.3, 1.1).terms(None, lambda rule: found).weights
    assert truncated == pytest.approx([0.55, 0.0, 0.0, 0.8, 0.8])
