"""Draws from a finite set of parameters: exact, within their ε for every database, by groups."""

import itertools

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy import stats
from test_mechanism import words

import ppm
from ppm.synthesizers import base

RNG = np.random.default_rng(5)
COUNTS, WEIGHTS, LIMITS = RNG.poisson(5, 9), RNG.uniform(0.1, 1.5, 9), ppm.Censoring(-2.0, -1.0)


class Table:
    """A model whose log-likelihoods, candidates by records, are what they are."""

    def __init__(self, log_lik):
        self.log_lik, self.records = np.asarray(log_lik), np.shape(log_lik)[1]

    def log_likelihood_at(self, posterior):
        return xr.DataArray(self.log_lik[posterior["k"]], dims=("chain", "draw", "record"))

    predict = None


def of_table(log_lik):
    return ppm.CandidateSynthesizer(Table(log_lik), {"k": np.arange(len(log_lik))})


@pytest.mark.parametrize("censor", [None, LIMITS])
def test_draws_have_the_probabilities_of_the_formula(censor):
    log_lik = RNG.normal(-2, 1, (12, 9))
    terms = WEIGHTS * log_lik if censor is None else censor.term(WEIGHTS * log_lik)
    expected = np.exp(terms.sum(axis=1)) / np.exp(terms.sum(axis=1)).sum()
    model = of_table(log_lik)
    assert model.probabilities(WEIGHTS, censor=censor) == pytest.approx(expected)
    drawn = model.fit(WEIGHTS, censor=censor, draws=100_000, random_seed=1)["posterior"]["k"].values
    number = np.bincount(drawn[0], minlength=12)
    for shares, right in (expected, True), (np.sqrt(expected) / np.sqrt(expected).sum(), False):
        assert (stats.chisquare(number, 100_000 * shares).pvalue > 1e-3) == right


def capped(model, width):
    return ppm.PseudoPosteriorMechanism(model, cap=width).weights


@pytest.mark.parametrize("censor", [None, LIMITS, ppm.Censoring(-2.0, -1.0, smooth=False)])
def test_no_value_of_a_record_costs_more_than_the_width_and_some_come_near(censor):
    usual = RNG.normal(-3, 2, (8, 40))
    odd = RNG.normal(size=(8, 40)) * 10.0 ** RNG.choice([-300, -5, 3, 150, 300], 40)
    odd += RNG.choice([0.0, 1e6, -1e15, 1e300], 40)
    holes = np.where(RNG.random((8, 40)) < 0.2, RNG.choice([np.nan, -np.inf, np.inf], 40), usual)
    model = of_table(np.c_[usual, odd, holes, np.full((8, 2), [np.nan, -np.inf])])
    weights = capped(model, 1.0) if censor is None else np.ones(model.records)
    whole = np.log(model.probabilities(weights, censor=censor))
    # at weight 0 the term of the record is constant, as if it was left out
    left = [np.log(model.probabilities(weights * own, censor=censor))
            for own in ~np.eye(model.records, dtype=bool)]
    assert 0.9 < np.abs(whole - left).max() <= 1.0 + 1e-9


def test_the_cap_holds_in_every_small_database_and_fails_for_weights_that_react():
    grid, databases = {"mu": np.geomspace(0.2, 30.0, 25)}, {}
    for size in range(1, 5):
        for counts in itertools.combinations_with_replacement((0, 5, 6, 20), size):
            model = ppm.CandidateSynthesizer(ppm.GammaPoisson(counts), grid)
            # the paper's weights react, and the largest oscillation is no bound
            rules = capped(model, 0.7), ppm.record_weights(model.extremes().bounds)
            databases[counts] = [(np.log(model.probabilities(weights)),
                                  model.extremes(weights).oscillations.max()) for weights in rules]
    neighbours = [(counts, counts[:i] + counts[i + 1 :]) for counts in databases
                  for i in range(len(counts)) if len(counts) > 1]
    for rule, most in enumerate(np.max([[w for _, w in d] for d in databases.values()], axis=0)):
        lost = max(np.abs(databases[one][rule][0] - databases[other][rule][0]).max()
                   for one, other in neighbours)
        assert 0.6 < lost <= 0.7 + 1e-9 if rule == 0 else lost > 1.2 * most


def test_bounds_are_those_of_the_whole_set_and_the_statement_names_it():
    counts, grid = [3, 5, 4, 20], np.array([4.0, 4.1, 4.2, 90.0])
    model = ppm.CandidateSynthesizer(ppm.GammaPoisson(counts), {"mu": grid})
    for settings, kind in ({}, "local"), ({"cap": 0.5}, "strict"), ({"censor": LIMITS}, "strict"):
        result = ppm.PseudoPosteriorMechanism(model, **settings).run(draws=5, random_seed=1)
        assert result.guarantee.kind == kind and result.draws_used == 4
        log_p = result.weights * stats.poisson.logpmf(counts, grid[:, None])
        terms = LIMITS.term(log_p) if "censor" in settings else log_p
        # 90, where the bound is, was not drawn
        assert result.local_bound == pytest.approx(np.abs(terms).max())
        release = result.synthesize(2, random_seed=1)
        for text in str(result), ppm.disclosure.release_statement(result, release):
            assert "4 candidates of the parameters" in words(text)
        assert kind == "local" or release.attrs["epsilon"] == 2 * (result.cap or 1)
    for settings in {"cap": 1, "weights": WEIGHTS}, {"cap": 1, "censor": LIMITS}, {"cap": 1}:
        with pytest.raises((TypeError, ValueError), match="^cap (needs|must)"):
            ppm.PseudoPosteriorMechanism(ppm.GammaPoisson(COUNTS), **settings)


def test_each_group_has_draws_of_its_own_and_a_record_touches_no_other():
    counts, labels = np.array([2, 30, 3, 28, 4, 33]), np.array(list("lhlhlh"), dtype=object)
    sets = {label: {"mu": np.linspace(*ends, 30)} for label, ends in
            {"h": (20, 40), "l": (1, 6), "no record": (0, 1)}.items()}
    model = ppm.CandidateSynthesizer(ppm.GammaPoisson(counts), sets, groups=labels)
    fit = model.fit(WEIGHTS[:6], draws=2_000, random_seed=1)
    mu, p = fit["posterior"]["mu"], model.probabilities(WEIGHTS[:6])
    for label in "lh":
        own, drawn = labels == label, mu.sel(group=label)
        alone = ppm.CandidateSynthesizer(ppm.GammaPoisson(counts[own]), sets[label])
        assert p[label] == pytest.approx(alone.probabilities(WEIGHTS[:6][own]))
        assert drawn.mean() == pytest.approx(p[label] @ sets[label]["mu"], abs=0.2)
        assert np.allclose(model.extremes().oscillations[own], alone.extremes().oscillations)
        log_lik = stats.poisson.logpmf(counts[own], drawn.values[..., None])
        assert np.allclose(model.log_likelihood(fit).values[..., own], log_lik)
    assert abs(np.corrcoef(mu.values[:, 0])[0, 1]) < 0.08
    released = model.predict(fit, releases=50, random_seed=1).values
    assert released[:, labels == "l"].mean() < 10 < 20 < released[:, labels == "h"].mean()


def test_other_forms_of_the_same_candidates_and_blocks_give_the_same(monkeypatch):
    counts = ppm.GammaPoisson(COUNTS)
    fit = counts.fit(draws=50, random_seed=1)["posterior"]
    grid = ppm.CandidateSynthesizer(counts, {"mu": fit["mu"].values[0]}).probabilities()
    monkeypatch.setattr(base, "_BLOCK", 90)
    for form, held in (fit, base.HELD), (fit.to_dataset().chunk(draw=7), 0):
        monkeypatch.setattr(base, "HELD", held)
        assert np.array_equal(ppm.CandidateSynthesizer(counts, form).probabilities(), grid)


def test_what_candidates_can_be():
    # one that is listed twice is twice as probable
    twice = ppm.CandidateSynthesizer(Table([[0.0], [-1.0]]), {"k": [0, 1, 1]}).probabilities()
    assert twice == pytest.approx(np.r_[1, [np.exp(-1)] * 2] / (1 + 2 * np.exp(-1)))
    model = of_table([[-np.inf, -1.0], [-2.0, np.nan], [-3.0, -4.0]])
    # impossible records leave what they allow, and weights of 0 the prior
    assert model.probabilities().tolist() == [0.0, 0.0, 1.0]
    assert model.probabilities([0.0, 0.0]) == pytest.approx(np.full(3, 1 / 3))
    for log_lik in [[-np.inf, 0.0], [0.0, -np.inf]], [[np.inf], [0.0]]:
        with pytest.raises(ValueError, match="^candidates must hold one that makes no record"):
            of_table(log_lik).fit(draws=2)
    two = {"a": {"k": [0]}, "b": {"k": [[0]]}}
    for candidates, groups in (
        ({"k": [np.nan]}, None), ({"k": []}, None), ({"k": ["x"]}, None), ({}, None), ([0], None),
        ({"k": [0], "m": [0, 1]}, None), ({"a": {"k": [0]}}, ["a", "b"]), (two, ["a", "b"]),
    ):
        with pytest.raises(ValueError, match="^candidates must "):
            ppm.CandidateSynthesizer(model.synthesizer, candidates, groups=groups)


def test_a_model_whose_records_reach_further_is_refused_with_an_epsilon():
    with pm.Model() as model:
        data = pm.Data("data", WEIGHTS)
        pm.Normal("y", pm.Normal("mu", 0, 5), pm.math.abs(data).mean(), observed=data)
    model = ppm.CandidateSynthesizer(model, {"mu": WEIGHTS})
    for settings in {"cap": 1.0}, {"censor": LIMITS}:
        with pytest.raises(ValueError, match="must act through its own term only$"):
            ppm.PseudoPosteriorMechanism(model, **settings).run(draws=2)
    assert model.predict(model.fit(draws=2), releases=2).shape == (2, 9)
