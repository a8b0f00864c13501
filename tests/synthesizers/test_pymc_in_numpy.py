"""What NumPy computes of a model's log-likelihood is what numba would, without compiling it."""

from functools import partial

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
import xarray as xr
from pytensor.link.numba.linker import NumbaLinker
from scipy import special, stats

import ppm
from ppm.synthesizers import pymc_in_numpy

RECORDS = 40
RNG = np.random.default_rng(5)
X = RNG.normal(size=(RECORDS, 3))
COEFFICIENTS = np.array([0.5, -0.3, 0.2])
RESPONSE = RNG.normal(size=RECORDS)
YES = np.arange(RECORDS) % 2


def normal():
    mean = pm.Normal("a") + X @ pm.Normal("b", shape=3)
    pm.Normal("y", mean, pm.HalfNormal("s"), observed=RESPONSE)
    point = {"a": 0.1, "b": COEFFICIENTS, "s": 1.3}
    return point, stats.norm.logpdf(RESPONSE, 0.1 + X @ COEFFICIENTS, 1.3)


def logistic():
    pm.Bernoulli("y", logit_p=pm.Normal("a") + X @ pm.Normal("b", shape=3), observed=YES)
    # so far out that a probability of 0 or 1 has no logarithm of its own
    scores = 900.0 * (X @ COEFFICIENTS)
    return {"a": 0.0, "b": 900.0 * COEFFICIENTS}, special.log_expit(np.where(YES, scores, -scores))


def hierarchical():
    regions = np.arange(RECORDS) % 4
    effects = pm.Normal("u", shape=4)
    pm.Poisson("y", pm.math.exp(effects[regions]), observed=YES)
    point = {"u": np.array([0.1, -0.4, 0.8, 0.0])}
    return point, stats.poisson.logpmf(YES, np.exp(point["u"][regions]))


def masked():
    missing = np.arange(RECORDS) % 5 == 0
    with pytest.warns(pm.exceptions.ImputationWarning):
        pm.Normal("y", pm.Normal("a"), 1.0, observed=np.ma.masked_array(RESPONSE, missing))
    point = {"a": 0.3, "y_unobserved": np.zeros(missing.sum())}
    return point, np.where(missing, 0.0, stats.norm.logpdf(RESPONSE, 0.3))


def impossible():
    pm.Uniform("y", lower=-1.0, upper=pm.Normal("a"), observed=np.linspace(0.0, 2.0, RECORDS))
    return {"a": 1.0}, stats.uniform.logpdf(np.linspace(0.0, 2.0, RECORDS), -1.0, 2.0)


def synthesizer_of(write):
    with pm.Model() as model:
        point, expected = write()
    return ppm.PyMCSynthesizer(model), point, expected


def posterior_of(point):
    """Two equal draws in one chain."""
    return xr.Dataset(
        {
            name: (("chain", "draw", *(f"{name}_{i}" for i in range(np.ndim(value)))),
                   np.stack([[value, value]]))
            for name, value in point.items()
        }
    )  # fmt: skip


def linker(synthesizer):
    return synthesizer._log_likelihood.function.f.maker.mode.linker


@pytest.mark.parametrize("write", [normal, logistic, hierarchical, masked, impossible])
def test_numpy_computes_the_density(write):
    synthesizer, point, expected = synthesizer_of(write)
    found = synthesizer.log_likelihood_at(posterior_of(point))
    assert not isinstance(linker(synthesizer), NumbaLinker)
    np.testing.assert_allclose(np.asarray(found), [[expected, expected]], rtol=1e-12, atol=1e-13)


def test_numba_gives_the_same_numbers(monkeypatch):
    synthesizer, point, _ = synthesizer_of(hierarchical)
    by_numpy = synthesizer.log_likelihood_at(posterior_of(point))
    synthesizer, *_ = synthesizer_of(hierarchical)
    monkeypatch.setattr(pymc_in_numpy, "FEW_NUMBERS", 0)
    by_numba = synthesizer.log_likelihood_at(posterior_of(point))
    assert isinstance(linker(synthesizer), NumbaLinker)
    np.testing.assert_allclose(by_numpy, by_numba, rtol=1e-12)


def in_numpy(synthesizer):
    """Whether NumPy computes the log-likelihood, without computing it."""
    by_record = synthesizer._log_likelihood
    compiled = []
    by_record.model.compile_fn, original = (
        lambda *a, **k: compiled.append(k.get("mode")) or original(*a, **k),
        by_record.model.compile_fn,
    )
    by_record.compile()
    return compiled == [pymc_in_numpy.IN_NUMPY]


@pytest.mark.parametrize(("records", "expected"), [(3_000, True), (100_000, False)])
def test_many_records_are_worth_compiling(records, expected):
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("a"), 1.0, observed=np.zeros(records))
    assert in_numpy(ppm.PyMCSynthesizer(model)) is expected


def test_what_numpy_would_do_number_by_number_is_compiled():
    def log_density(value, mean, of):
        return of(-1.0 - pt.sqr(value - mean))

    for of, expected in ((pt.log1mexp, False), (pt.log1p, True)):
        with pm.Model() as model:
            pm.CustomDist(
                "y", pm.Normal("a"),
                logp=partial(log_density, of=of), random=stats.norm.rvs, observed=RESPONSE,
            )  # fmt: skip
        assert in_numpy(ppm.PyMCSynthesizer(model)) is expected
