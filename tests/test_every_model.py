"""Every model with every kind of weights, and every way to hold its log-likelihood."""

import copy
from functools import cache

import numpy as np
import pymc as pm
import pytest

import ppm
from ppm import lipschitz
from ppm.seeds import streams
from ppm.synthesizers import base

# a few draws: what the chains say of each other is for other tests
pytestmark = pytest.mark.filterwarnings("ignore:released although chains disagree")

RNG = np.random.default_rng(12)
VALUES = np.r_[RNG.normal(size=16), 6.0]  # the last record stands out
COUNTS = np.r_[RNG.poisson(5, 16), 30]
RECORDS, DRAWS = VALUES.size, 40


class Bare:
    """No more than the protocol asks for."""

    def __init__(self, model):
        self.model, self.records = model, model.records
        self.log_likelihood, self.predict = model.log_likelihood, model.predict

    def fit(self, weights=None, *, draws=1000, random_seed=None, progress=False):
        return self.model.fit(weights, draws=draws, random_seed=random_seed)


# what model_of makes; the last has no more than the protocol
KINDS = ["PyMCSynthesizer", "GammaPoisson", "FiniteMixture", "Bare"]


@cache
def model_of(kind):
    if kind == "PyMCSynthesizer":
        with pm.Model() as model:
            pm.Normal("values", pm.Normal("mean", 0.0, 10.0), 1.0, observed=VALUES)
        return ppm.PyMCSynthesizer(model, warmup=60)
    if kind == "FiniteMixture":
        ones = np.ones((RECORDS, 1))
        return ppm.FiniteMixture(VALUES, ones, components=2, warmup=60, parallel=False)
    model = ppm.GammaPoisson(COUNTS)
    return Bare(model) if kind == "Bare" else model


RULE = {"scale": 0.8, "shift": -0.1}
GIVEN = np.linspace(0.9, 0.2, RECORDS)
WEIGHTS = {"given": GIVEN, "zeros": np.zeros(RECORDS), "ones": np.ones(RECORDS)}
SETTINGS = {"rule": RULE} | {
    name: {"weights": values} for name, values in WEIGHTS.items()
}


def bounds_of(log_lik):
    return np.abs(log_lik.transpose("chain", "draw", ...).values).max(axis=(0, 1))


@pytest.mark.parametrize("weights", [*SETTINGS, "truncated"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_model_takes_every_kind_of_weights(kind, weights):
    model = model_of(kind)
    # the paper's rule written out, from the records' bounds in the unweighted fit
    bounds = bounds_of(
        model.log_likelihood(model.fit(draws=DRAWS, random_seed=streams(7, 2)[0]))
    )
    expected = np.clip(0.8 * (bounds.max() - bounds) / np.ptp(bounds) - 0.1, 0.0, 1.0)
    limit = np.mean(expected * bounds)
    settings = SETTINGS.get(weights, RULE | {"truncate_at": limit})
    mechanism = ppm.PseudoPosteriorMechanism(model, **settings)
    result = mechanism.run(draws=DRAWS, random_seed=7, allow_disagreement=True)
    if weights in WEIGHTS:
        assert result.unweighted is None and np.array_equal(
            result.weights, WEIGHTS[weights]
        )
    else:
        assert np.array_equal(
            bounds_of(model.log_likelihood(result.unweighted)), bounds
        )
        kept = expected * bounds <= (limit if weights == "truncated" else np.inf)
        assert expected[bounds.argmax()] == 0.0 and kept.all() == (weights == "rule")
        np.testing.assert_allclose(result.weights, expected * kept, atol=1e-14)
    # the draws behind the bound are those of these weights, from the seed's second stream
    log_lik = model.log_likelihood(result.draws)
    again = model.fit(result.weights, draws=DRAWS, random_seed=streams(7, 2)[1])
    assert np.array_equal(model.log_likelihood(again), log_lik)
    # a record of weight 0 has none, even if it is impossible
    bounds = np.where(result.weights > 0, bounds_of(log_lik), 0.0)
    np.testing.assert_allclose(result.record_bounds, result.weights * bounds)
    # one who has only the fits gets the same
    fits = {
        "fit": result.draws,
        "unweighted": result.unweighted,
        "allow_disagreement": True,
    }
    same = ppm.mechanism.bound_fit(model, weights=result.weights, **fits)
    assert np.array_equal(same.record_bounds, result.record_bounds)
    assert same.epsilon(3) == result.epsilon(3) == 6.0 * result.record_bounds.max()


@pytest.mark.parametrize("kind", KINDS[:-1])
def test_what_is_not_held_gives_the_same_result_and_is_computed_in_blocks(
    kind, monkeypatch
):
    model, sizes = model_of(kind), []

    def run():
        mechanism = ppm.PseudoPosteriorMechanism(model)
        return mechanism.run(draws=DRAWS, random_seed=2, allow_disagreement=True)

    def noting(evaluate, posterior, records):
        def noted(some):
            sizes.append(some.sizes["chain"] * some.sizes["draw"] * records)
            return evaluate(some)

        return base.log_likelihood_from(noted, posterior, records)

    held = run()
    for module, name, size in (
        (base, "HELD", 0),
        (base, "_BLOCK", 200),
        (lipschitz, "BLOCK", 200),
    ):
        monkeypatch.setattr(module, name, size)
    monkeypatch.setitem(
        type(model).log_likelihood_at.__globals__, "log_likelihood_from", noting
    )
    result = run()
    assert max(sizes) <= 200 and sum(sizes) >= 2 * RECORDS * result.draws_used
    assert result.record_bounds == pytest.approx(held.record_bounds, rel=1e-10)
    assert result.summary().tolist() == pytest.approx(
        held.summary().tolist(), nan_ok=True
    )
    kept, log_lik = map(model.log_likelihood, (held.draws, copy.deepcopy(result.draws)))
    assert log_lik.chunks and not kept.chunks and {*log_lik.coords} >= {"chain", "draw"}
    assert np.allclose(log_lik, kept, rtol=1e-10, atol=1e-10)


def test_a_pymc_model_takes_every_kind_of_seed():
    model = model_of("PyMCSynthesizer")
    fit = model.fit(draws=DRAWS, random_seed=1)
    for draw in (
        lambda seed: model.fit(draws=5, random_seed=seed)["posterior"]["mean"].values,
        lambda seed: model.predict(fit, releases=2, random_seed=seed).values,
    ):
        number, rng = draw(7), np.random.default_rng(7)
        assert np.array_equal(draw(np.random.SeedSequence(7)), number)
        first, second = draw(rng), draw(rng)
        assert np.array_equal(first, draw(np.random.default_rng(7)))
        others = [draw(8), first, second, draw(None), draw(None)]
        assert len({values.tobytes() for values in others}) == 5


@pytest.mark.parametrize("kind", ["PyMCSynthesizer", "FiniteMixture", "Bare"])
def test_a_sampled_audit_takes_every_model(kind):
    model, last, settings = (
        model_of(kind),
        RECORDS - 1,
        {"draws": 150, "random_seed": 7},
    )
    found = ppm.audits.sampled(model, [last], weighting=GIVEN, **settings)
    # a lone record far out is seen, and weights that are given stay
    assert found.estimates[last] > 0.5 and found.largest_weight_change[last] < 1e-12


def test_a_membership_test_draws_each_release_from_a_stream_of_its_own():
    seen = set()

    def run(seed):
        seen.add(tuple(seed.generate_state(4)))
        return np.random.default_rng(seed).normal()

    claim = {"confidence": 0.9, "delta": 0.01}
    evidence = ppm.audits.membership_test(
        run, run, float, runs=30, random_seed=7, **claim
    )
    # 30 releases with and 30 without the record, half of them to choose the event
    assert len(seen) == 60 and evidence.samples == (15, 15)
    assert claim.items() <= vars(evidence).items()
