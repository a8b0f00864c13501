"""Log-likelihoods that are computed when they are read: the same numbers, and nothing held."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pymc as pm
import pytensor
import pytest
import xarray as xr

import ppm
from ppm import lipschitz
from ppm.synthesizers import evaluated

RNG = np.random.default_rng(1)
X = RNG.normal(size=30)
Y = 1.0 + 0.5 * X + 0.3 * RNG.normal(size=30)
Y[3] = 9.0
WEIGHTS = np.where(np.arange(30) % 7 == 0, 0.0, np.linspace(0.2, 1.0, 30))
LIMITS = ppm.Censoring(-3.0, -0.5)


@pytest.fixture(autouse=True, scope="module")
def quick():
    """Functions run by plain Python, which needs no compilation."""
    with pytensor.config.change_flags(mode="FAST_COMPILE", cxx=""):
        yield


def line(data=Y):
    with pm.Model() as model:
        slope = pm.Normal("slope", 0.0, 2.0, shape=2)
        pm.Normal("y", slope[0] + slope[1] * X, 0.5, observed=data)
    return model


def two_responses():
    """One of them with missing values."""
    with line(np.ma.masked_invalid(np.where(np.arange(30) % 5 == 1, np.nan, Y))) as model:
        pm.Bernoulli("at_work", logit_p=model["slope"][0], observed=(X > 0).astype(int))
    return model


@pytest.fixture(scope="module")
def synthesizers(quick):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*Impute", pm.exceptions.ImputationWarning)
        return {
            line: ppm.PyMCSynthesizer(line(), warmup=20),
            two_responses: ppm.PyMCSynthesizer(two_responses(), warmup=5),
        }


@pytest.fixture
def computed(monkeypatch):
    """Let nothing be held, and read in small blocks."""

    def switch(on=True):
        monkeypatch.setattr(evaluated, "HELD", 0 if on else 1 << 28)
        monkeypatch.setattr(lipschitz, "BLOCK", 200 if on else 1 << 22)

    return switch


def same(one, other):
    """Whether two results of the mechanism agree to the bit."""
    assert np.array_equal(one.weights, other.weights)
    assert np.array_equal(one.record_bounds, other.record_bounds)
    assert one.oscillation_bound == other.oscillation_bound
    # NaN and all
    assert repr(one.diagnostics) == repr(other.diagnostics)
    assert repr(one.unweighted_diagnostics) == repr(other.unweighted_diagnostics)
    assert one.draws_used == other.draws_used
    assert one.summary().equals(other.summary())
    synthetic = [result.synthesize(2, random_seed=3) for result in (one, other)]
    assert synthetic[0].identical(synthetic[1])


def lies_nowhere(log_lik):
    return not log_lik.variable._in_memory


SETTINGS = {
    "ruled": {},
    "given weights": {"weights": WEIGHTS},
    "censored": {"censor": LIMITS},
    "censored, ruled": {"censor": LIMITS, "scale": 0.7},
}


# the sampler runs for so short a time that its chains may disagree
@pytest.mark.filterwarnings("ignore:released although chains disagree")
@pytest.mark.parametrize(
    ("make", "settings"), [*((line, name) for name in SETTINGS), (two_responses, "ruled")]
)
def test_a_fit_above_the_limit_gives_the_same_result_as_one_in_memory(
    synthesizers, computed, make, settings
):
    computed(False)
    synthesizer = synthesizers[make]
    mechanism = ppm.PseudoPosteriorMechanism(synthesizer, **SETTINGS[settings])
    ask = {"draws": 30 if make is line else 5, "random_seed": 2, "allow_disagreement": True}
    held = mechanism.run(**ask)
    computed()
    result = mechanism.run(**ask)
    same(held, result)
    log_lik = synthesizer.log_likelihood(result.draws)
    # still computed when read, after all that
    assert lies_nowhere(log_lik) and not lies_nowhere(synthesizer.log_likelihood(held.draws))
    assert log_lik.identical(synthesizer.log_likelihood(held.draws))


@pytest.fixture(scope="module")
def fits(synthesizers):
    """The same fit in memory and computed when it is read."""
    with pytest.MonkeyPatch.context() as patch:
        held = synthesizers[line].fit(WEIGHTS, draws=50, random_seed=1)
        patch.setattr(evaluated, "HELD", 0)
        patch.setattr(lipschitz, "BLOCK", 200)
        return held, synthesizers[line].fit(WEIGHTS, draws=50, random_seed=1)


def test_only_the_draws_that_are_read_are_computed(synthesizers, fits, computed, monkeypatch):
    computed()
    held, fit = fits
    expected, log_lik = (synthesizers[line].log_likelihood(found) for found in fits)
    asked = []

    def evaluate(posterior):
        asked.append(posterior.sizes["chain"] * posterior.sizes["draw"])
        return plain(posterior)

    plain = synthesizers[line]._log_likelihood
    evaluate.model = plain.model
    monkeypatch.setattr(synthesizers[line], "_log_likelihood", evaluate)
    for part in (
        {"draw": [0, 49]}, {"chain": 1}, {"chain": 1, "draw": 7}, {"record": [5, 2]}, {"record": 4},
        {"draw": slice(40, 3, -5), "record": slice(None, None, -1)}, {"draw": []},
        {"chain": [1, 0], "draw": slice(1, 30, 4), "record": [0]},
    ):
        asked.clear()
        found = log_lik.isel(part)
        assert not asked
        np.testing.assert_array_equal(found.values, expected.isel(part).values)
        assert sum(asked) == found.sizes.get("chain", 1) * found.sizes.get("draw", 1)
        assert max(asked, default=0) <= 200 // 30
    turned = log_lik.transpose("record", "draw", "chain")
    assert np.array_equal(turned.values, expected.transpose("record", "draw", "chain").values)
    asked.clear()
    assert ppm.local_bound(turned, WEIGHTS) == ppm.local_bound(expected, WEIGHTS)
    ppm.synthesizers.base.check_fit(synthesizers[line], fit, "fit")
    # all draws once, and to check a fit the ends of its two chains twice
    assert sum(asked) == 100 + 8


def test_a_computed_log_likelihood_is_copied_loaded_written_and_not_pickled(
    synthesizers, fits, tmp_path
):
    held, fit = fits
    copied = fit.copy(deep=True)
    for found in (copied, copy.deepcopy(fit)):
        assert found["log_likelihood"].identical(held["log_likelihood"])
    assert lies_nowhere(synthesizers[line].log_likelihood(copied))
    with pytest.raises(TypeError, match="cannot be pickled: .* or load"):
        pickle.dumps(fit)
    loaded = fit.copy().load()
    again = pickle.loads(pickle.dumps(loaded))
    assert again["log_likelihood"].identical(held["log_likelihood"])
    log_lik = synthesizers[line].log_likelihood(fit)
    log_lik.to_dataset(name="y").to_netcdf(tmp_path / "fit.nc", engine="scipy")
    with xr.open_dataset(tmp_path / "fit.nc", engine="scipy") as written:
        assert written["y"].equals(synthesizers[line].log_likelihood(held))
    # in pieces, by several threads, of which one at a time computes
    pieces = log_lik.chunk({"draw": 6})
    assert np.array_equal(pieces.values, log_lik.values)
    assert ppm.local_bound(pieces) == ppm.local_bound(log_lik)


def test_data_that_changed_after_a_fit_are_refused_when_it_is_read(computed):
    computed()
    with pm.Model() as model:
        data = pm.Data("data", X)
        pm.Normal("y", pm.Normal("mean") * data, 1.0, observed=Y)
    synthesizer = ppm.PyMCSynthesizer(model, warmup=5, chains=1)
    fit = synthesizer.fit(draws=5, random_seed=1)
    log_lik = synthesizer.log_likelihood(fit)
    before = log_lik.values
    pm.set_data({"data": X + 1.0}, model=synthesizer.model)
    with pytest.raises(ValueError, match="data of the rewritten model was changed"):
        ppm.record_bounds(log_lik)
    pm.set_data({"data": X}, model=synthesizer.model)
    assert np.array_equal(log_lik.values, before)


def test_the_gamma_poisson_above_the_limit_is_the_same(computed):
    counts = np.r_[RNG.poisson(5.0, 300), 60]
    computed(False)
    results = []
    for on in (False, True):
        computed(on)
        model = ppm.GammaPoisson(counts, shape=2.0, rate=0.5)
        results.append(ppm.PseudoPosteriorMechanism(model).run(draws=200, random_seed=1))
    assert lies_nowhere(results[1].synthesizer.log_likelihood(results[1].unweighted))
    same(*results)


def test_an_audit_reads_in_blocks_what_is_not_held(computed, monkeypatch):
    model = ppm.GammaPoisson(np.r_[RNG.poisson(5.0, 300), 60], shape=2.0, rate=0.5)
    computed(False)
    held = ppm.audits.sampled(model, [300, 0], draws=200, random_seed=1)
    computed()
    values = xr.DataArray.values

    def never_whole(array):
        assert not lies_nowhere(array), "a log-likelihood that is not held was read whole"
        return values.fget(array)

    monkeypatch.setattr(xr.DataArray, "values", property(never_whole))
    audit = ppm.audits.sampled(model, [300, 0], draws=200, random_seed=1)
    pd.testing.assert_frame_equal(audit.table(), held.table(), rtol=1e-12)


@pytest.mark.parametrize("floor", [None, 0.0])
def test_a_mixture_above_the_limit_computes_what_its_chains_would_have_kept(
    computed, floor
):
    response = np.maximum(Y, 0.0 if floor is None else 0.9) - (floor is not None) * 0.9
    model = ppm.FiniteMixture(
        response, np.c_[np.ones(30), X], components=2, warmup=20, floor=floor
    )
    computed(False)
    held = model.fit(WEIGHTS, draws=15, random_seed=1)
    computed()
    fit = model.fit(WEIGHTS, draws=15, random_seed=1)
    assert [*fit.children] == [*held.children]
    assert fit["posterior"].identical(held["posterior"])
    # a chain follows its log-likelihoods step by step: the same to rounding
    xr.testing.assert_allclose(fit["sample_stats"], held["sample_stats"], rtol=1e-10)
    assert lies_nowhere(model.log_likelihood(fit))
    xr.testing.assert_allclose(
        model.log_likelihood(fit), model.log_likelihood(held), rtol=1e-10, atol=1e-10
    )
    one, other = (
        ppm.mechanism.bound_fit(model, found, WEIGHTS, allow_disagreement=True)
        for found in (held, fit)
    )
    assert other.local_bound == pytest.approx(one.local_bound, rel=1e-12)
