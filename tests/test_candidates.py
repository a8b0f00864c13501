"""A finite set of parameters: losses whatever the values, secure noise, and what a set can be.

Draws, bounds, groups and files are in laws.
"""

from dataclasses import replace

import numpy as np
import opendp.prelude as dp
import pandas as pd
import pytest
from scipy.special import softmax

import ppm
from ppm import candidates

RNG = np.random.default_rng(5)
COUNTS, WEIGHTS = RNG.poisson(5, 9), RNG.uniform(0.1, 1.5, 9)
LIMITS = ppm.Limits(-2.0, -1.0)


class Table(ppm.Model):
    """A model whose log-likelihoods, candidates by records, are what they are."""

    def __init__(self, log_p):
        self.table, self.records = np.asarray(log_p), np.shape(log_p)[1]

    def log_p(self, theta):
        return self.table[np.asarray(theta["k"], dtype=int)]

    def draw(self, terms, draws, rng):
        raise AssertionError("candidates draw")

    def predict(self, theta, rng):
        return np.full(self.records, theta["k"])


def of_table(log_p, **settings):
    return ppm.Candidates(Table(log_p), {"k": np.arange(len(log_p))}, **settings)


def terms_of(model, rule):
    return rule.terms(model, None)


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize(
    "rule",
    [
        ppm.Capped(1.0),
        ppm.Limited(LIMITS),
        ppm.Limited(ppm.Limits(-0.5, 0.5), {"k": 0}),
    ],
)
def test_no_value_of_a_record_costs_more_than_the_width_and_some_come_near(
    rule, secure
):
    lost, replaced = [], []
    for seed in range(15):
        rng = np.random.default_rng(seed)
        usual, odd = rng.normal(-3, 2, (8, 12)), rng.normal(size=(8, 24))
        odd *= 10.0 ** rng.choice([-300, -5, 0, 3, 150, 300], 24)
        odd += rng.choice([0.0, 1e6, -1e15, 1e300], 24)
        wrong = rng.choice([np.nan, -np.inf, np.inf], 12)
        holes = np.where(rng.random((8, 12)) < 0.2, wrong, usual)
        table = np.c_[usual, odd, holes, np.full((8, 2), [np.nan, -np.inf])]
        model = of_table(table, secure_noise=secure)
        weights = rng.choice([0.0, 0.3, 1.0, 9.0], 50)
        own_rule = replace(rule, weight=weights) if type(rule) is ppm.Limited else rule
        terms = terms_of(model, own_rule)
        # a record of weight 0 has no term, as if it was left out
        whole, *left = [
            np.log(model.probabilities(replace(terms, weights=terms.weights * kept)))
            for kept in np.r_[np.ones((1, 50)), 1.0 - np.eye(50)]
        ]
        lost.append(np.abs(whole - left).max())
        # one value is left out, and another one put in
        replaced.append(np.abs(np.subtract(left, np.array(left)[:, None])).max())
    assert 0.9 < max(lost) <= 1.0 + 1e-9 and 1.8 < max(replaced) <= 2.0 + 1e-9


def test_opendp_itself_grants_the_width_for_what_a_record_moves(monkeypatch):
    scales, search = [], dp.binary_search_param

    def noting(make, **known):
        scales.append(make(search(make, **known)))
        return search(make, **known)

    monkeypatch.setattr(dp, "binary_search_param", noting)
    for width in (1e-9, 0.1, 0.7, 1.0, 30.0):
        for steps in (2**50, 2**50 // 5_658):
            choose = candidates.noisy_maximum(steps, width)
            assert choose.map(steps) == pytest.approx(width**2 / 8)
            assert (1.0 - 1e-12) * width < scales[-1].map(steps) <= width
    seen, usual = [], RNG.normal(-3, 2, (6, 9))
    usual[:, 0] = [0.0, -1e300, np.nan, -np.inf, 1e300, -1.5]
    monkeypatch.setattr(
        candidates, "noisy_maximum", lambda *_: lambda sums: seen.append(sums) or 0
    )
    model = of_table(usual, secure_noise=True)
    for kept in np.r_[np.ones((1, 9)), 1.0 - np.eye(9)]:
        model.draw(terms_of(model, ppm.Limited(LIMITS, weight=kept)), 1, None)
    assert {type(number) for number in seen[0]} == {int}
    assert np.ptp(np.subtract(seen[1:], seen[0]), axis=1).max() == 2**50 // 9


def test_secure_noise_needs_a_public_width():
    grid = {"mu": np.geomspace(3.5, 6.5, 6)}
    model = ppm.Candidates(ppm.GammaPoisson(COUNTS), grid, secure_noise=True)
    assert ppm.fit(model, ppm.Capped(0.5), draws=2).strict
    for rule in ppm.Unweighted(), ppm.ByRisk(), ppm.Given(WEIGHTS):
        with pytest.raises(
            ValueError, match="^secure_noise needs terms of a public width"
        ):
            ppm.fit(model, rule, draws=2)


def test_sums_lose_no_digits_where_limits_lie_far_out():
    counts = np.repeat([0, 2 * 10**9], [50_004, 49_996])
    counts = np.random.default_rng(1).permutation(counts)
    limits = ppm.Limits(-1e9 + 0.3, -1e9 + 1.3123)
    model = ppm.Candidates(ppm.GammaPoisson(counts), {"mu": [1.0, 2e9]})
    # each candidate has all records of one count at the upper limit, the others at the lower
    log_p = np.log(model.probabilities(terms_of(model, ppm.Limited(limits))))
    assert np.diff(log_p) == pytest.approx(-8 * limits.width)


def test_groups_are_drawn_independently_and_one_without_records_not_at_all():
    counts, labels = np.array([2, 30, 3, 28, 4, 33]), list("lhlhlh")
    ends = {"h": (20, 40), "l": (1, 6), "no record": (0, 1)}
    sets = {label: {"mu": np.linspace(*between, 30)} for label, between in ends.items()}
    model = ppm.Candidates(ppm.GammaPoisson(counts), sets, groups=labels)
    fit = ppm.fit(model, ppm.Unweighted(), draws=2_000, random_seed=1)
    assert model.labels == ["h", "l"]
    assert abs(np.corrcoef(fit.theta["mu"], rowvar=False)[0, 1]) < 0.08
    assert [*fit.posterior["group"].values] == ["h", "l"]
    assert fit.posterior["mu"].dims == ("chain", "draw", "group")
    # each record is predicted from its own group's θ
    release = fit.release(500, random_seed=1).values
    assert release[:, ::2].mean() < 8 < 20 < release[:, 1::2].mean()


def test_a_center_for_each_group_or_one_for_all_gives_the_same_levels():
    counts = np.r_[np.random.default_rng(2).poisson(5, 38), 0, 40]
    model = ppm.GammaPoisson(counts)
    sets, labels = dict.fromkeys("ab", {"mu": [4.0, 5.0]}), ["b", "a"] * 20
    groups = ppm.Candidates(model, sets, groups=labels)
    limits, right = ppm.Limits(-1, 1), model.log_p({"mu": np.array([5.0])})[0]
    for center in {"mu": 5.0}, {"a": {"mu": 5.0}, "b": {"mu": 5.0}}:
        levels = terms_of(groups, ppm.Limited(limits, center)).levels
        assert levels == pytest.approx(right)
    for wrong in {"mean": 5.0}, {"a": {"mu": 6.0}}, {"mu": [5.0, 6.0]}:
        with pytest.raises(
            ValueError, match="^center must hold one value of every param"
        ):
            terms_of(groups, ppm.Limited(limits, wrong))
    for wrong in {}, "mu", 4.0, {"mu": np.nan}, {"mu": "4"}:
        with pytest.raises(ValueError, match="^center"):
            ppm.Limited(limits, wrong)


def test_the_posterior_of_a_fit_is_a_set_of_candidates():
    counts = ppm.GammaPoisson(COUNTS)
    fit = ppm.fit(counts, ppm.Unweighted(), draws=50, random_seed=1)
    terms = ppm.Terms(np.ones(9))
    grid = ppm.Candidates(counts, {"mu": fit.theta["mu"]}).probabilities(terms)
    assert np.array_equal(
        ppm.Candidates(counts, fit.posterior).probabilities(terms), grid
    )


def test_what_candidates_can_be():
    ones = ppm.Terms(np.ones(1))
    # one that is listed twice is twice as probable
    twice = ppm.Candidates(Table([[0.0], [-1.0]]), {"k": [0, 1, 1]}).probabilities(ones)
    assert twice == pytest.approx(np.r_[1, [np.exp(-1)] * 2] / (1 + 2 * np.exp(-1)))
    model = of_table([[-np.inf, -1.0], [-2.0, np.nan], [-3.0, -4.0]])
    # impossible records leave what they allow, and weights of 0 the prior
    assert model.probabilities(ppm.Terms(np.ones(2))).tolist() == [0.0, 0.0, 1.0]
    assert model.probabilities(ppm.Terms([0.0, 0.0])) == pytest.approx(
        np.full(3, 1 / 3)
    )
    for log_p in [[-np.inf, 0.0], [0.0, -np.inf]], [[np.inf], [0.0]]:
        with pytest.raises(
            ValueError, match="^candidates must hold one that makes no rec"
        ):
            ppm.fit(of_table(log_p), ppm.Unweighted(), draws=2)
    same, other = {"mu": [1.0], "m": [0]}, {"mu": [1.0], "m": [[0]]}
    for given, groups in (
        ({"k": []}, None),
        ({}, None),
        ([0], None),
        ({"mu": [0], "m": [0, 1]}, None),
        ({"a": same, "b": other}, ["a", "b"]),
        ({"mu": [[1.0, 2.0]]}, None),
    ):
        with pytest.raises(ValueError, match="^candidates"):
            ppm.Candidates(ppm.GammaPoisson([3, 4]), given, groups=groups)
    with pytest.raises(TypeError, match="^model must be a ppm.Model"):
        ppm.Candidates([3, 4], same)


MU = {"mu": [1.0, 2.0]}


@pytest.mark.parametrize(
    ("sets", "labels", "told"),
    [
        ({"a": MU}, "aab", "candidates must .* none for 'b', its keys are 'a'$"),
        ({1: MU}, [1, 1, 2], "candidates must .* none for 2, its keys are 1$"),
        (
            {"1": MU},
            [1, 1, 2],
            "candidates must .* label, its keys are '1'; labels are int, .* str$",
        ),
        (MU, "aab", "candidates must .* none for any label, its keys are 'mu'$"),
        ([MU, MU], "aab", "candidates must be a dict .* in groups; got list$"),
        (
            {"a": MU, "b": {"mu": [[1.0]]}},
            "aab",
            "candidates must .* of 'b' are not like .* of 'a'$",
        ),
        (
            {"a": MU},
            pd.Categorical(["a", None, "a"]),
            r"groups must have no missing .* record 1\)$",
        ),
        ({"a": MU}, ["a", "a", np.nan], r"groups must have no missing .* record 2\)$"),
        (
            {"a": MU},
            np.ma.array(["a"] * 3, mask=[0, 0, 1]),
            "groups holds masked values",
        ),
        (
            {"a": MU},
            ["a", "a"],
            "groups must have one label for each of the 3 records; got shape",
        ),
        (
            {"mu": ["x", "y"]},
            None,
            "candidates: mu must be an array of numbers; got list with text$",
        ),
        ({"mu": [1.0, None]}, None, "candidates: mu must be .* None at position 1$"),
        (
            {"mu": [1.0, np.nan]},
            None,
            r"candidates: mu must be finite .* position 1\)$",
        ),
        ({"mean": [1.0]}, None, "candidates must hold .* its name .*; got 'mean'$"),
    ],
)
def test_labels_are_public_and_the_one_that_is_missing_is_named(sets, labels, told):
    labels = [*labels] if isinstance(labels, str) else labels
    with pytest.raises(ValueError, match=f"^{told}") as refused:
        ppm.Candidates(ppm.GammaPoisson([3, 4, 5]), sets, groups=labels)
    assert "\n" not in str(refused.value)
    # whole numbers and categories are labels, also those without records
    for labels in (
        [1, 1, 2],
        np.array([1, 1, 2]),
        pd.Categorical([1, 1, 2], categories=[1, 2, 3]),
    ):
        model = ppm.Candidates(
            ppm.GammaPoisson([3, 4, 5]), {1: MU, 2: MU, 9: MU}, groups=labels
        )
        assert len(model.probabilities(ppm.Terms(np.ones(3)))) == 2


def test_what_is_no_parameter_is_kept_in_the_draws():
    model = ppm.Candidates(ppm.GammaPoisson(COUNTS), MU | {"index": [7, 9]})
    fit = ppm.fit(model, ppm.Capped(1.0), draws=5, random_seed=1)
    assert {*fit.theta["index"]} <= {7, 9} and fit.theta["index"].dtype.kind == "i"


def test_log_p_of_another_shape_is_refused_also_where_one_candidate_would_do():
    class One(Table):
        def log_p(self, theta):
            return super().log_p(theta)[:1]

    model = ppm.Candidates(One([[-1.0, -2.0], [-3.0, -1.0]]), {"k": [0, 1]})
    with pytest.raises(
        ValueError, match=r"^log_p of One must return .*, here \(2, 2\)"
    ):
        ppm.fit(model, ppm.Capped(1.0), draws=3)


def test_a_draw_reads_candidates_that_are_too_many_to_hold_once(monkeypatch):
    monkeypatch.setattr(candidates, "_HELD", 0)
    monkeypatch.setattr(candidates, "_BLOCK", 6)
    read = []

    class Counted(Table):
        def log_p(self, theta):
            read.extend(np.asarray(theta["k"]).tolist())
            return super().log_p(theta)

    model = ppm.Candidates(Counted(-RNG.exponential(size=(7, 3))), {"k": np.arange(7)})
    for terms in (ppm.Terms(np.ones(3)), ppm.Terms(np.ones(3), LIMITS)):
        read.clear()
        model.draw(terms, 5, np.random.default_rng(1))
        assert read == [*range(7)]


@pytest.mark.parametrize("held", [True, False])
def test_probabilities_are_the_same_in_one_block_of_candidates_and_in_several(
    held, monkeypatch
):
    counts, grid = np.random.default_rng(1).poisson(5, 1000), np.linspace(12, 2, 400)
    assert candidates._BLOCK < 1000 * 400 <= candidates._HELD
    if not held:
        monkeypatch.setattr(candidates, "_HELD", 0)
    model = ppm.GammaPoisson(counts)
    log_p = model.log_p({"mu": grid})
    weights = np.random.default_rng(2).uniform(0.0, 0.1, 1000)
    for terms in (
        ppm.Terms(np.ones(1000)),
        ppm.Terms(weights),
        ppm.Terms(np.ones(1000), ppm.Limits(-2.5, -2.3)),
        ppm.Terms(weights, ppm.Limits(-0.2, -0.1)),
    ):
        found = ppm.Candidates(model, {"mu": grid}).probabilities(terms)
        known = softmax(terms(log_p).sum(axis=1))
        # several candidates are likely
        assert known.max() < 0.9
        np.testing.assert_allclose(found, known, rtol=1e-6, atol=1e-300)


def test_groups_keep_the_values_that_are_predicted():
    class Halves(ppm.GammaPoisson):
        def predict(self, theta, rng):
            whole = theta["mu"] < 3
            return [1] * self.records if whole else [4.5] * self.records

    sets = {"a": {"mu": [2.0]}, "b": {"mu": [5.0]}}
    model = ppm.Candidates(Halves([1, 2, 3]), sets, groups=list("aba"))
    release = ppm.fit(model, ppm.Capped(1.0), draws=2).release(1)
    assert release.values.tolist() == [[1.0, 4.5, 1.0]]


def test_labels_that_are_names_of_parameters_are_no_matter():
    model = ppm.GammaPoisson([3, 4])
    groups = ppm.Candidates(model, dict.fromkeys(["mu", "b"], MU), groups=["mu", "b"])
    limits = ppm.Limits(-1, 1)
    by_name = ppm.Limited(limits, {"mu": 2.0})
    by_label = ppm.Limited(limits, dict.fromkeys(["mu", "b"], {"mu": 2.0}))
    levels = [terms_of(groups, rule).levels for rule in (by_name, by_label)]
    assert np.array_equal(*levels)
    # a copy of a rule is checked as the rule was
    assert replace(by_label, weight=0.5).center == by_label.center
    for wrong in (("mu", np.nan),), (("mu", [1.0]),), {"mu": 2.0, "b": {"mu": 2.0}}, ():
        if wrong == (("mu", [1.0]),):
            assert hash(ppm.Limited(limits, wrong))
        else:
            with pytest.raises(ValueError, match="^center"):
                ppm.Limited(limits, wrong)
