"""A finite set of parameters: losses whatever the values, secure noise, and what a set can be.

Draws, bounds, groups and files are in laws.
"""

import re
from dataclasses import replace

import numpy as np
import opendp.prelude as dp
import pandas as pd
import pymc as pm
import pytest
import xarray as xr
from test_mechanism import words

import ppm
from ppm.rules import capped, limited
from ppm.synthesizers import base, candidates

RNG = np.random.default_rng(5)
COUNTS, WEIGHTS, LIMITS = (
    RNG.poisson(5, 9),
    RNG.uniform(0.1, 1.5, 9),
    ppm.Censoring(-2.0, -1.0),
)


class Table(ppm.Synthesizer):
    """A model whose log-likelihoods, candidates by records, are what they are."""

    def __init__(self, log_lik):
        self.log_lik, self.records = np.asarray(log_lik), np.shape(log_lik)[1]

    def log_likelihood_at(self, posterior):
        return xr.DataArray(
            self.log_lik[posterior["k"]], dims=("chain", "draw", "record")
        )

    fit = predict = None


def of_table(log_lik, **settings):
    return ppm.CandidateSynthesizer(
        Table(log_lik), {"k": np.arange(len(log_lik))}, **settings
    )


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize(
    "censor",
    [
        None,
        LIMITS,
        ppm.Censoring(-2.0, -1.0, smooth=False),
        ppm.Censoring(-0.5, 0.5, center={"k": 0}),
    ],
)
def test_no_value_of_a_record_costs_more_than_the_width_and_some_come_near(
    censor, secure
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
        terms = (
            capped(model, 1.0) if censor is None else limited(model, censor, weights)
        )
        # a record of weight 0 has no term, as if it was left out
        whole, *left = [
            np.log(model.probabilities(replace(terms, weights=terms.weights * own)))
            for own in np.r_[np.ones((1, 50)), 1.0 - np.eye(50)]
        ]
        lost.append(np.abs(whole - left).max())
        # one value is left out, and another one put in
        replaced.append(np.abs(np.subtract(left, np.array(left)[:, None])).max())
    assert 0.9 < max(lost) <= 1.0 + 1e-9 and 1.8 < max(replaced) <= 2.0 + 1e-9


GRID = {"mu": np.geomspace(3.5, 6.5, 6)}


def test_opendp_itself_grants_the_width_for_what_a_record_moves(monkeypatch):
    found, search = [], dp.binary_search_param
    monkeypatch.setattr(
        dp,
        "binary_search_param",
        lambda make, **known: (
            found.append(make(search(make, **known))) or search(make, **known)
        ),
    )
    for width in (1e-9, 0.1, 0.7, 1.0, 30.0):
        for steps in (2**50, 2**50 // 5_658):
            assert candidates.noisy_maximum(steps, width).map(steps) == pytest.approx(
                width**2 / 8
            )
            assert (1.0 - 1e-12) * width < found[-1].map(steps) <= width
    seen, usual = [], RNG.normal(-3, 2, (6, 9))
    usual[:, 0] = [0.0, -1e300, np.nan, -np.inf, 1e300, -1.5]
    monkeypatch.setattr(
        candidates, "noisy_maximum", lambda *_: lambda sums: seen.append(sums) or 0
    )
    model = of_table(usual, secure_noise=True)
    monkeypatch.setattr(model, "fit_of", lambda posterior: None)
    for own in np.r_[np.ones((1, 9)), 1.0 - np.eye(9)]:
        model.fit(limited(model, LIMITS, own), draws=1)
    assert {type(number) for number in seen[0]} == {int}
    assert np.ptp(np.subtract(seen[1:], seen[0]), axis=1).max() == 2**50 // 9


def test_secure_noise_is_for_strict_runs_and_needs_no_warning_of_seeds():
    model = ppm.CandidateSynthesizer(ppm.GammaPoisson(COUNTS), GRID, secure_noise=True)
    result = ppm.PseudoPosteriorMechanism(model, cap=0.5).run(draws=2)
    told = words(ppm.disclosure.release_statement(result, result.synthesize(2)))
    assert "errors in the package that drew the noise" in told
    assert not re.search("seed|rounding|whoever gave the weights", told)
    for settings in {}, {"censor": LIMITS, "scale": 0.5}, {"weights": WEIGHTS}:
        with pytest.raises(
            ValueError, match="^secure_noise needs terms of a public width"
        ):
            ppm.PseudoPosteriorMechanism(model, **settings).run(draws=2)
    with pytest.raises(ValueError, match="^width must be a finite number"):
        capped(model, 0.0)


def test_sums_lose_no_digits_where_limits_lie_far_out():
    counts = np.random.default_rng(1).permutation(
        np.repeat([0, 2 * 10**9], [50_004, 49_996])
    )
    limits = ppm.Censoring(-1e9 + 0.3, -1e9 + 1.3123, smooth=False)
    model = ppm.CandidateSynthesizer(ppm.GammaPoisson(counts), {"mu": [1.0, 2e9]})
    # each candidate has all records of one count at the upper limit, the others at the lower
    found = np.log(model.probabilities(limited(model, limits)))
    assert np.diff(found) == pytest.approx(-8 * limits.width)


def test_the_statement_names_the_set_and_a_cap_stands_alone():
    model = ppm.CandidateSynthesizer(ppm.GammaPoisson(COUNTS), {"mu": [4.0, 90.0]})
    for settings in {}, {"cap": 0.5}, {"censor": LIMITS}:
        mechanism = ppm.PseudoPosteriorMechanism(model, **settings)
        result = mechanism.run(draws=5, random_seed=1)
        release = result.synthesize(2, random_seed=1)
        for text in str(result), ppm.disclosure.release_statement(result, release):
            assert "2 candidates of the parameters" in words(text)
    for beside in {"weights": WEIGHTS}, {"censor": LIMITS}, {"scale": 1.0}:
        with pytest.raises(ValueError, match="^cap must be given without weights"):
            ppm.PseudoPosteriorMechanism(model, cap=1.0, **beside)


def test_groups_are_drawn_independently_and_one_without_records_not_at_all():
    counts, labels = np.array([2, 30, 3, 28, 4, 33]), list("lhlhlh")
    ends = {"h": (20, 40), "l": (1, 6), "no record": (0, 1)}
    sets = {label: {"mu": np.linspace(*between, 30)} for label, between in ends.items()}
    model = ppm.CandidateSynthesizer(ppm.GammaPoisson(counts), sets, groups=labels)
    mu = model.fit(draws=2_000, random_seed=1)["posterior"]["mu"]
    assert [*mu["group"].values] == ["h", "l"]
    assert abs(np.corrcoef(mu.values[:, 0])[0, 1]) < 0.08


def test_other_forms_of_the_same_candidates_and_blocks_give_the_same(monkeypatch):
    counts = ppm.GammaPoisson(COUNTS)
    fit = counts.fit(draws=50, random_seed=1)["posterior"]
    grid = ppm.CandidateSynthesizer(counts, {"mu": fit["mu"].values[0]}).probabilities()
    monkeypatch.setattr(base, "_BLOCK", 90)
    for form, held in (fit, base.HELD), (fit.to_dataset().chunk(draw=7), 0):
        monkeypatch.setattr(base, "HELD", held)
        assert np.array_equal(
            ppm.CandidateSynthesizer(counts, form).probabilities(), grid
        )


def test_what_candidates_can_be():
    # one that is listed twice is twice as probable
    twice = ppm.CandidateSynthesizer(
        Table([[0.0], [-1.0]]), {"k": [0, 1, 1]}
    ).probabilities()
    assert twice == pytest.approx(np.r_[1, [np.exp(-1)] * 2] / (1 + 2 * np.exp(-1)))
    model = of_table([[-np.inf, -1.0], [-2.0, np.nan], [-3.0, -4.0]])
    # impossible records leave what they allow, and weights of 0 the prior
    assert model.probabilities().tolist() == [0.0, 0.0, 1.0]
    assert model.probabilities([0.0, 0.0]) == pytest.approx(np.full(3, 1 / 3))
    # at a center that makes a record impossible it has the level 0
    assert ppm.Censoring(-1, 1, center={"k": 0}).levels(model).tolist() == [0.0, -1.0]
    for log_lik in [[-np.inf, 0.0], [0.0, -np.inf]], [[np.inf], [0.0]]:
        with pytest.raises(
            ValueError, match="^candidates must hold one that makes no record"
        ):
            of_table(log_lik).fit(draws=2)
    same, other = {"mu": [1.0], "m": [0]}, {"mu": [1.0], "m": [[0]]}
    grouped = xr.Dataset({"mu": ("draw", [1.0]), "m": (("draw", "group"), [[0]])})
    for given, groups in (
        ({"k": []}, None),
        ({}, None),
        ([0], None),
        ({"mu": [0], "m": [0, 1]}, None),
        ({"a": same, "b": other}, ["a", "b"]),
        ({"a": grouped, "b": grouped}, ["a", "b"]),
        ({"mu": [[1.0, 2.0]]}, None),
    ):
        with pytest.raises(ValueError, match="^candidates must "):
            ppm.CandidateSynthesizer(ppm.GammaPoisson([3, 4]), given, groups=groups)
    # without groups a dimension may have any name
    model = ppm.CandidateSynthesizer(ppm.GammaPoisson([3, 4]), grouped)
    assert model.predict(model.fit(draws=2), releases=3).shape == (3, 2)


ONE = {"pi": np.ones((4, 1)), "beta": np.ones((4, 1, 1)), "sigma": np.ones((4, 1))}
HALF = {"pi": np.full((4, 1), 0.5)}


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (
            {"sigma": [[1.0], [1.0], [0.0], [-1.0]]},
            r"sigma above 0 \(wrong: 2 of 4, .* draw 2\)$",
        ),
        (
            HALF,
            r"pi of at least 0 that sums to 1 over the components \(wrong: 4 of 4, .* draw 0\)$",
        ),
        (
            {
                "pi": [[1.5, -0.5]] * 4,
                "beta": np.ones((4, 2, 1)),
                "sigma": np.ones((4, 2)),
            },
            "pi of at l",
        ),
        ({"pi": np.ones((4, 2))}, "pi and sigma of shape"),
        ({"beta": np.ones((4, 1))}, "pi and sigma"),
        ({"beta": np.ones((4, 1, 3))}, r".*beta of shape \(…, components, 1\)$"),
        (
            {"sigma": None},
            "every parameter .* 'pi', 'beta', 'sigma': lacking 'sigma', got 'pi', 'be",
        ),
        (
            {"sigma": None, "sd": ONE["sigma"]},
            ".*: lacking 'sigma', got 'pi', 'beta', 'sd'$",
        ),
    ],
)
def test_what_is_wrong_with_a_candidate_is_named_with_what_is_accepted(changed, told):
    model = ppm.FiniteMixture(WEIGHTS, np.ones((9, 1)), components=1)
    given = {
        name: value for name, value in (ONE | changed).items() if value is not None
    }
    groups = list("ab" * 4 + "a")
    for sets, of, labels in (
        (given, "", None),
        (dict.fromkeys("ab", given), " of 'a'", groups),
    ):
        with pytest.raises(
            ValueError, match=f"^candidates{of} must hold {told}"
        ) as refused:
            ppm.CandidateSynthesizer(model, sets, groups=labels)
        assert "\n" not in str(refused.value)
    # what a fit also holds, and an index of one's own, are no parameters; single precision is fine
    thirds = {
        "pi": np.full((4, 3), 1 / 3, dtype=np.float32),
        "beta": np.ones((4, 3, 1)),
        "sigma": np.ones((4, 3), dtype=int),
        "concentration": np.ones(4),
        "index": range(4),
    }
    assert (
        ppm.CandidateSynthesizer(model, thirds).fit(draws=2)["posterior"]["index"].size
        == 2
    )


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
        ({"mu": [1.0, -1.0]}, None, "candidates must hold mu of at least 0$"),
        ({"mean": [1.0]}, None, "candidates must .*, 'mu': lacking 'mu', got 'mean'$"),
    ],
)
def test_labels_are_public_and_the_one_that_is_missing_is_named(sets, labels, told):
    labels = [*labels] if isinstance(labels, str) else labels
    with pytest.raises(ValueError, match=f"^{told}") as refused:
        ppm.CandidateSynthesizer(ppm.GammaPoisson([3, 4, 5]), sets, groups=labels)
    assert "\n" not in str(refused.value)
    # whole numbers and categories are labels, also those without records
    for labels in (
        [1, 1, 2],
        np.array([1, 1, 2]),
        pd.Categorical([1, 1, 2], categories=[1, 2, 3]),
    ):
        assert (
            len(
                ppm.CandidateSynthesizer(
                    ppm.GammaPoisson([3, 4, 5]), {1: MU, 2: MU, 9: MU}, groups=labels
                ).probabilities()
            )
            == 2
        )


def test_a_pymc_model_names_the_parameter_that_candidates_lack():
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu"), 1.0, observed=WEIGHTS)
    with pytest.raises(ValueError, match="'mu': lacking 'mu', got 'mean'$"):
        ppm.CandidateSynthesizer(model, {"mean": [0.0]})
    with pytest.raises(
        ValueError, match="^candidates must hold .* in its shape; got 'mu'$"
    ):
        ppm.CandidateSynthesizer(model, {"mu": [[0.0, 1.0]]})


@pytest.mark.parametrize("groups", [None, list("ababbabab")])
def test_how_many_candidates_were_drawn_is_told_where_the_releases_pay_for_all_draws(
    groups,
):
    # the middle one of three is certain
    sets = {"mu": [1e-3, 5.0, 900.0], "k": [0, 1, 2]}
    far = {"mu": np.linspace(4.9, 5.1, 50)}
    sets, far = [
        dict.fromkeys("ab", given) if groups else given for given in (sets, far)
    ]
    one, many = [
        ppm.PseudoPosteriorMechanism(
            ppm.CandidateSynthesizer(ppm.GammaPoisson(COUNTS), given, groups=groups),
            censor=ppm.Censoring(-60.0, 0.0, smooth=False),
        ).run(draws=20, random_seed=1)
        for given in (sets, far)
    ]
    draws = many.draws["posterior"]["mu"].values.reshape(-1, 20)
    for result, right in (
        (one, [1] * len(draws)),
        (many, [len({*own}) for own in draws]),
    ):
        release = result.synthesize(20, random_seed=1)
        found = release.attrs["candidates_drawn"]
        assert found == (right if groups else right[0])
        told = (
            f"in each group at least {min(right)}" if groups else f"{right[0]} of them"
        )
        assert told in words(ppm.disclosure.release_statement(result, release))
        # inside, and marked as confidential there
        assert told in words(result)
        # 19 of 20 draws pay for 19
        fewer = result.synthesize(19, random_seed=1)
        assert (
            "candidates_drawn" not in fewer.attrs and fewer.attrs["epsilon"] == 19 * 60
        )
        assert "of them" not in ppm.disclosure.release_statement(result, fewer)
    assert min(right) > 5


def test_drawn_candidates_differ_by_any_of_their_parameters():
    model = ppm.CandidateSynthesizer(
        ppm.FiniteMixture(WEIGHTS, np.ones((9, 1)), components=1),
        ONE | {"sigma": [[1.0], [2.0], [2.0], [3.0]]},
    )
    # without weights all four are equally likely, and two of them are the same
    assert model.candidates_drawn(model.fit(np.zeros(9), draws=200, random_seed=1)) == 3


def test_a_model_whose_records_reach_further_is_refused_with_an_epsilon():
    with pm.Model() as model:
        data = pm.Data("data", WEIGHTS)
        pm.Normal("y", pm.Normal("mu", 0, 5), pm.math.abs(data).mean(), observed=data)
    model = ppm.CandidateSynthesizer(model, {"mu": WEIGHTS})
    for settings in {"cap": 1.0}, {"censor": LIMITS}:
        with pytest.raises(ValueError, match="must act through its own term only$"):
            ppm.PseudoPosteriorMechanism(model, **settings).run(draws=2)
    assert model.predict(model.fit(draws=2), releases=2).shape == (2, 9)
