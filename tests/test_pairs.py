"""Options in pairs: every model with every kind of weights, of seed, and in every call.

Each case makes three calls, of which the second must repeat the first and the third, with another
seed, must not; and it checks what would be wrong if its option were dropped on the way.
"""

import itertools
from functools import cache, partial

import numpy as np
import pymc as pm
import pytensor
import pytest
import xarray as xr
from scipy import stats

import ppm
from ppm._random import streams

# a few draws: what the chains say of each other is for other tests
pytestmark = pytest.mark.filterwarnings("ignore:released although chains disagree")

RNG = np.random.default_rng(12)
VALUES = np.r_[RNG.normal(size=16), 6.0]  # the last record stands out
COUNTS = np.r_[RNG.poisson(5, 16), 30]
RECORDS = VALUES.size
OUTLIER = RECORDS - 1
DRAWS = 40


# ---- the kinds of every option ----------------------------------------------------------------


class NormalMean:
    """No more than the protocol asks for: a normal mean of records with standard deviation 1."""

    def __init__(self, values):
        self.values, self.records = values, values.size

    def fit(self, weights=None, *, draws=1000, random_seed=None, progress=False):
        weights = np.ones(self.records) if weights is None else weights
        precision = 0.01 + weights.sum()
        rng = np.random.default_rng(random_seed)
        mean = rng.normal(weights @ self.values / precision, precision**-0.5, (2, draws))
        log_lik = stats.norm.logpdf(self.values, mean[..., None])
        groups = {
            "posterior": {"mean": (("chain", "draw"), mean)},
            "log_likelihood": {"values": (("chain", "draw", "record"), log_lik)},
        }
        return xr.DataTree.from_dict({name: xr.Dataset(group) for name, group in groups.items()})

    def log_likelihood(self, fit):
        return fit["log_likelihood"]["values"]

    def predict(self, fit, *, releases, random_seed=None):
        rng = np.random.default_rng(random_seed)
        picked = rng.choice(fit["posterior"]["mean"].values.ravel(), releases)
        synthetic = rng.normal(picked[:, None], 1.0, (releases, self.records))
        return xr.DataArray(synthetic, dims=("release", "record"))


def pymc_model():
    with pm.Model() as model:
        mean = pm.Normal("mean", 0.0, 10.0)
        pm.Normal("values", mean, 1.0, observed=VALUES)
    return model


@cache
def model_of(kind):
    if kind == "pm.Model":
        return pymc_model()
    if kind == "PyMCSynthesizer":
        return ppm.PyMCSynthesizer(pymc_model(), warmup=60)
    if kind == "GammaPoisson":
        return ppm.GammaPoisson(COUNTS)
    if kind == "FiniteMixture":
        return ppm.FiniteMixture(
            VALUES, np.ones((RECORDS, 1)), components=2, warmup=60, parallel=False
        )
    return NormalMean(VALUES)


def synthesizer_of(kind):
    model = model_of(kind)
    return ppm.PyMCSynthesizer(model) if kind == "pm.Model" else model


RULE = {"scale": 0.8, "shift": -0.1}
GIVEN = np.linspace(0.9, 0.2, RECORDS)
WEIGHTS = {"given": GIVEN, "zeros": np.zeros(RECORDS), "ones": np.ones(RECORDS)}


def settings_of(model, weights):
    """Arguments of the mechanism."""
    if weights in WEIGHTS:
        return {"weights": WEIGHTS[weights]}
    # counts have larger bounds
    truncated = {"truncate_at": 2.0 if model == "GammaPoisson" else 1.3}
    return RULE | (truncated if weights == "truncated" else {})


def expected_weights(model, kind, bounds):
    """The paper's rule written out, from the records' bounds in the unweighted fit."""
    if kind in WEIGHTS:
        return WEIGHTS[kind]
    risk = (bounds - bounds.min()) / (bounds.max() - bounds.min())
    weights = np.clip(0.8 * (1.0 - risk) - 0.1, 0.0, 1.0)
    assert weights[bounds.argmax()] == 0.0
    if kind == "truncated":
        kept = weights * bounds <= settings_of(model, kind)["truncate_at"]
        assert kept[weights > 0].any() and not kept[weights > 0].all()
        weights = weights * kept
    return weights


def seeds_of(kind):
    """A seed, one that must repeat it (or None), and one that must not."""
    if kind == "int":
        return 7, 7, 8
    if kind == "SeedSequence":
        return np.random.SeedSequence(7), 7, np.random.SeedSequence(7, spawn_key=(1,))
    if kind == "Generator":
        rng = np.random.default_rng(7)
        return rng, np.random.default_rng(7), rng
    return None, None, None


# ---- the calls: numbers that hang on everything the caller gave -------------------------------


def bounds_of(log_lik):
    return np.abs(log_lik.transpose("chain", "draw", ...).values).max(axis=(0, 1))


def weighted(weights, log_lik):
    """Bounds of the weighted records; one of weight 0 has none, even if it is impossible."""
    return np.where(weights > 0, weights, 0.0) * np.where(weights > 0, bounds_of(log_lik), 0.0)


def run(model, weights, seed):
    settings = settings_of(model, weights)
    result = ppm.PseudoPosteriorMechanism(model_of(model), **settings).run(
        draws=DRAWS, random_seed=seed, allow_disagreement=True
    )
    synthesizer = result.synthesizer
    ruled = "weights" not in settings
    assert (result.unweighted is not None) == ruled
    before = bounds_of(synthesizer.log_likelihood(result.unweighted)) if ruled else None
    np.testing.assert_allclose(result.weights, expected_weights(model, weights, before))
    log_lik = synthesizer.log_likelihood(result.draws)
    expected = weighted(result.weights, log_lik)
    np.testing.assert_allclose(result.record_bounds, expected)
    assert result.epsilon(3) == pytest.approx(6.0 * expected.max())
    if seed is not None and not isinstance(seed, np.random.Generator):
        # the draws behind the bound are those of these weights, from the seed's second stream
        again = synthesizer.fit(result.weights, draws=DRAWS, random_seed=streams(seed, 2)[1])
        np.testing.assert_array_equal(synthesizer.log_likelihood(again), log_lik)
    return np.append(result.synthesize(2, random_seed=1).values, log_lik)


def bound_fit(model, weights, seed):
    synthesizer = synthesizer_of(model)
    first, second = streams(seed, 2)
    before = synthesizer.fit(draws=DRAWS, random_seed=first)
    alpha = expected_weights(model, weights, bounds_of(synthesizer.log_likelihood(before)))
    fit = synthesizer.fit(alpha, draws=DRAWS, random_seed=second)
    result = ppm.mechanism.bound_fit(
        model_of(model), fit, alpha, unweighted=before, allow_disagreement=True
    )
    expected = weighted(alpha, synthesizer.log_likelihood(fit))
    np.testing.assert_allclose(result.record_bounds, expected)
    assert np.array_equal(result.weights, alpha)
    return np.append(expected, result.synthesize(1, random_seed=1).values)


def sampled_audit(model, weights, seed):
    settings = settings_of(model, weights)
    given = settings.get("weights")
    weighting = partial(ppm.record_weights, **settings) if given is None else given
    found = ppm.audits.sampled(
        model_of(model), [OUTLIER], weighting=weighting, draws=400, random_seed=seed
    )
    # weights that are given stay; those of a rule move when the record with the largest bound goes
    assert (found.moved[OUTLIER] > 0.01) == (given is None)
    assert (found.local_bound == 0.0) == (weights == "zeros")
    assert found.table()["2Δ"].item() == 2.0 * found.local_bound
    if weights in ("given", "ones"):
        # a lone record far out is seen, the more the larger its weight
        assert found.estimates[OUTLIER] > (3.0 if weights == "ones" else 0.5)
    return np.array([found.estimates[OUTLIER], found.local_bound])


@cache
def with_and_without(model, weights):
    synthesizer = synthesizer_of(model)
    here = ppm.PseudoPosteriorMechanism(synthesizer, **settings_of(model, weights)).run(
        draws=DRAWS, random_seed=1, allow_disagreement=True
    )
    there = ppm.PseudoPosteriorMechanism(
        synthesizer, weights=np.where(np.arange(RECORDS) == OUTLIER, 0.0, here.weights)
    ).run(draws=DRAWS, random_seed=1, allow_disagreement=True)
    return [
        lambda seed, result=result: result.synthesize(1, random_seed=seed).values
        for result in (here, there)
    ]


def membership_test(model, weights, seed):
    scores, seen, by_place = [], set(), np.sqrt(np.arange(1.0, 1.0 + RECORDS))

    def statistic(release):
        # releases that differ have different scores
        scores.append(float(release[0] @ by_place))
        return scores[-1]

    def noting(run):
        def noted(seed):
            seen.add(tuple(seed.generate_state(4)))
            return run(seed)

        return noted

    evidence = ppm.audits.membership_test(
        *map(noting, with_and_without(model, weights)), statistic, runs=30, random_seed=seed
    )
    # 30 releases with and 30 without the record, half of them to choose the event
    assert len(scores) == 60 and evidence.samples == (15, 15)
    # no two releases come from the same stream
    assert len(seen) == 60
    return np.array(scores)


# ---- pairs ------------------------------------------------------------------------------------

OPTIONS = {
    "model": ("pm.Model", "PyMCSynthesizer", "GammaPoisson", "FiniteMixture", "NormalMean"),
    "weights": ("rule", "truncated", *WEIGHTS),
    "seed": ("int", "SeedSequence", "Generator", "None"),
    "call": (run, bound_fit, sampled_audit, membership_test),
}


def covering(options, allowed=lambda *case: True):
    """Cases in which every pair of values occurs: always the one with most new pairs."""
    cases = [case for case in itertools.product(*options.values()) if allowed(*case)]

    def pairs(case):
        return set(itertools.combinations(enumerate(case), 2))

    missing, chosen = set().union(*map(pairs, cases)), []
    while missing:
        best = max(cases, key=lambda case: len(pairs(case) & missing))
        chosen.append(best)
        missing -= pairs(best)
    return chosen


def steady(model, weights, seed, call):
    """Whether the case cannot fail by chance, as short chains without a seed can."""
    exact = model in ("GammaPoisson", "NormalMean")
    return exact or seed != "None" or call is not sampled_audit


CASES = covering(OPTIONS, steady)


def test_every_pair_of_options_occurs():
    for (first, a), (second, b) in itertools.combinations(enumerate(OPTIONS.values()), 2):
        found = {(case[first], case[second]) for case in CASES}
        assert found == set(itertools.product(a, b))
    # as many as the two longest lists ask for, and few more
    assert 25 <= len(CASES) <= 35


@pytest.fixture(autouse=True)
def short_chains(monkeypatch):
    """A bare PyMC model gets the default warm-up: a short one is enough here, and no compiler."""
    monkeypatch.setitem(ppm.PyMCSynthesizer.__init__.__kwdefaults__, "warmup", 60)
    with pytensor.config.change_flags(cxx=""):
        yield


@pytest.mark.parametrize(
    "case", CASES, ids=["-".join(getattr(x, "__name__", x) for x in case) for case in CASES]
)
def test_a_pair_of_options(case):
    model, weights, seed, call = case
    first, again, other = seeds_of(seed)
    found = call(model, weights, first)
    if found is None:
        return
    if again is not None:
        np.testing.assert_array_equal(call(model, weights, again), found)
    else:
        assert seed == "None"
    if weights == "zeros" and call is sampled_audit:
        return  # bounds and losses of 0, whatever the seed
    if weights == "zeros" and model == "GammaPoisson":
        return  # a mean that is nearly always 0
    if model == "pm.Model" and seed != "None":
        return  # the same synthesizer, which each call compiles anew
    assert not np.array_equal(call(model, weights, other), found)
