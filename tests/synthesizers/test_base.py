"""What models share: the draws that releases are made from, and log-likelihoods in blocks."""

import copy

import numpy as np
import pymc as pm
import pytensor
import pytest
import xarray as xr

import ppm
from ppm import lipschitz
from ppm.synthesizers import base

CHAINS, DRAWS = 3, 7
RNG = np.random.default_rng(1)
X = RNG.normal(size=30)
Y = 1.0 + 0.5 * X + 0.3 * RNG.normal(size=30)


def picked(releases, seed):
    """Numbers of the draws, from 0, that the releases are made from."""
    posterior = xr.Dataset({"theta": (("chain", "draw"), np.zeros((CHAINS, DRAWS)))})
    chain, draw = base.choose_draws(posterior, releases, np.random.default_rng(seed))
    assert chain.shape == draw.shape == (releases,)
    assert chain.max() < CHAINS and draw.max() < DRAWS
    return chain * DRAWS + draw


@pytest.mark.parametrize("releases", [1, 2, 20, 21])
def test_no_draw_is_used_twice_while_others_are_left(releases):
    assert all(np.unique(picked(releases, seed)).size == releases for seed in range(30))


def test_every_draw_is_used_equally_often():
    counts = np.bincount(picked(21_000, 1), minlength=21)
    assert np.abs(counts - 1_000).max() < 4.5 * np.sqrt(1_000)
    single = np.bincount([picked(1, seed)[0] for seed in range(1_050)], minlength=21)
    assert np.abs(single - 50).max() < 4.5 * np.sqrt(50)


@pytest.mark.parametrize("releases", [2, CHAINS * DRAWS])
def test_every_release_of_a_mixture_is_made_from_another_draw(releases):
    places = np.arange(CHAINS * DRAWS * 1.0).reshape(CHAINS, DRAWS, 1).repeat(2, axis=2)
    dims = ("chain", "draw", "component")
    variables = {
        "pi": (dims, 0.5 + 0.0 * places),
        "beta": ((*dims, "predictor"), places[..., None]),
        "sigma": (dims, 1e-6 + 0.0 * places),
    }
    fit = xr.DataTree.from_dict({"posterior": xr.Dataset(variables)})
    model = ppm.FiniteMixture(np.zeros(5), np.ones((5, 1)), components=2)
    found = model.predict(fit, releases=releases, random_seed=4).values.round()
    # all records of a release come from one draw, and no two releases from the same
    assert np.all(found == found[:, :1]) and np.unique(found[:, 0]).size == releases


def counts():
    return ppm.GammaPoisson(np.r_[RNG.poisson(5.0, 29), 60], shape=2.0, rate=0.5)


def mixture():
    return ppm.FiniteMixture(Y, np.c_[np.ones(30), X], components=2, warmup=20, parallel=False)


def line():
    with pm.Model() as model:
        data = pm.Data("data", X)
        pm.Normal("y", pm.Normal("mean") * data, 1.0, observed=Y)
    with pytensor.config.change_flags(mode="FAST_COMPILE", cxx=""):
        return ppm.PyMCSynthesizer(model, warmup=20, chains=1)


@pytest.mark.parametrize("make", [counts, mixture, line])
def test_what_is_not_held_gives_the_same_result_and_is_computed_in_blocks(make, monkeypatch):
    model, sizes = make(), []

    def run():
        mechanism = ppm.PseudoPosteriorMechanism(model)
        return mechanism.run(draws=40, random_seed=2, allow_disagreement=True)

    def noting(evaluate, posterior, records):
        def noted(some):
            sizes.append(some.sizes["chain"] * some.sizes["draw"] * records)
            return evaluate(some)

        return base.log_likelihood_from(noted, posterior, records)

    held = run()
    monkeypatch.setattr(base, "HELD", 0)
    monkeypatch.setattr(base, "_BLOCK", 200)
    monkeypatch.setattr(lipschitz, "BLOCK", 200)
    monkeypatch.setitem(type(model).log_likelihood_at.__globals__, "log_likelihood_from", noting)
    result = run()
    assert max(sizes) <= 200 and sum(sizes) >= 2 * 30 * result.draws_used
    assert result.record_bounds == pytest.approx(held.record_bounds, rel=1e-10)
    assert result.summary().tolist() == pytest.approx(held.summary().tolist(), nan_ok=True)
    kept, log_lik = map(model.log_likelihood, (held.draws, copy.deepcopy(result.draws)))
    assert log_lik.chunks and not kept.chunks
    assert np.allclose(log_lik, kept, rtol=1e-10, atol=1e-10)
