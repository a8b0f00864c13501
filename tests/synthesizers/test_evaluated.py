"""Log-likelihoods that are computed when they are read: the same numbers, and nothing held."""

import copy

import numpy as np
import pymc as pm
import pytensor
import pytest

import ppm
from ppm import lipschitz
from ppm.synthesizers import base as evaluated

RNG = np.random.default_rng(1)
X = RNG.normal(size=30)
Y = 1.0 + 0.5 * X + 0.3 * RNG.normal(size=30)


def counts():
    return ppm.GammaPoisson(np.r_[RNG.poisson(5.0, 29), 60], shape=2.0, rate=0.5)


def mixture():
    return ppm.FiniteMixture(Y, np.c_[np.ones(30), X], components=2, warmup=20)


def line():
    with pm.Model() as model:
        data = pm.Data("data", X)
        pm.Normal("y", pm.Normal("mean") * data, 1.0, observed=Y)
    with pytensor.config.change_flags(mode="FAST_COMPILE", cxx=""):
        return ppm.PyMCSynthesizer(model, warmup=20)


@pytest.mark.parametrize("make", [counts, mixture, line])
def test_what_is_not_held_gives_the_same_result_and_is_computed_in_blocks(make, monkeypatch):
    model, ask = make(), {"draws": 40, "random_seed": 2, "allow_disagreement": True}
    held = ppm.PseudoPosteriorMechanism(model).run(**ask)
    plain, sizes = evaluated.log_likelihood_from, []

    def noting(evaluate, posterior, records):
        def noted(some):
            sizes.append(some.sizes["chain"] * some.sizes["draw"] * records)
            return evaluate(some)

        return plain(noted, posterior, records)

    for name, value in (("HELD", 0), ("_BLOCK", 200)):
        monkeypatch.setattr(evaluated, name, value)
    monkeypatch.setattr(lipschitz, "BLOCK", 200)
    monkeypatch.setitem(type(model).log_likelihood_at.__globals__, "log_likelihood_from", noting)
    result = ppm.PseudoPosteriorMechanism(model).run(**ask)
    assert max(sizes) <= 200 and sum(sizes) >= 2 * 30 * result.draws_used
    assert result.record_bounds == pytest.approx(held.record_bounds, rel=1e-10)
    assert result.summary().tolist() == pytest.approx(held.summary().tolist(), nan_ok=True)
    log_lik = model.log_likelihood(copy.deepcopy(result.draws))
    assert log_lik.chunks and not model.log_likelihood(held.draws).chunks
    kept = model.log_likelihood(held.draws).isel(draw=[0, -1])
    assert np.allclose(log_lik.isel(draw=[0, -1]), kept, rtol=1e-10, atol=1e-10)
