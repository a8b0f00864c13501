"""The sweep, the search and the bounds on PyMC models as they are written."""

import numpy as np
import pymc as pm
import pytest

import ppm

RNG = np.random.default_rng(3)
COUNTS = np.r_[RNG.poisson(20, 30), 45]
PAIRS = [(0.7, 0.0)]

pytestmark = pytest.mark.usefixtures("no_compiler")


def gamma_poisson():
    with pm.Model() as model:
        mean = pm.Gamma("mean", 0.001, 0.001, initval=20.0)
        pm.Poisson("counts", mean, observed=COUNTS)
    return model


def logistic():
    x = RNG.standard_normal(40)
    answers = RNG.random(40) < 1 / (1 + np.exp(-x))
    with pm.Model() as model:
        slope = pm.Normal("slope", 0.0, 2.0)
        pm.Bernoulli("answer", logit_p=slope * x, observed=answers.astype(int))
    return model


def test_the_sweep_of_a_pymc_model_is_that_of_its_closed_form():
    settings = {"releases": 3, "random_seed": 1, "attempts": 2}
    found = ppm.studies.sweep(gamma_poisson(), PAIRS, draws=500, **settings)
    closed = ppm.studies.sweep(ppm.GammaPoisson(COUNTS), PAIRS, draws=1000, **settings)
    for one, other in zip(found.entries, closed.entries, strict=True):
        assert one.mechanism == other.mechanism
        assert one.local_bound == pytest.approx(other.local_bound, rel=0.2)
        assert one.synthetic.shape == (3, COUNTS.size)
        assert one.synthetic.mean() == pytest.approx(other.synthetic.mean(), rel=0.25)
    # the tolerance above is far from what leaving the weights out would give
    bounds = [entry.local_bound for entry in found.entries]
    assert bounds[0] > 2 * bounds[1]


def test_a_logistic_model_can_be_bounded_and_matched():
    model = logistic()
    synthesizer = ppm.PyMCSynthesizer(model, warmup=200)
    fit = synthesizer.fit(draws=200, random_seed=1)
    ones = np.ones(synthesizer.records)
    result = ppm.mechanism.bound_fit(model, fit, ones)
    expected = np.abs(synthesizer.log_likelihood(fit)).max(("chain", "draw"))
    assert np.array_equal(result.record_bounds, expected)
    found, history = ppm.studies.match_local_bound(
        model, 0.5 * result.local_bound, unweighted=fit, draws=200, random_seed=2, attempts=1,
        allow_disagreement=True,
    )
    assert len(history) == 1 and np.ptp(found.weights) == 0
    assert found.synthesizer.responses == ("answer",)


def test_what_is_no_model_is_refused_before_any_fit():
    def bound(model):
        return ppm.mechanism.bound_fit(model, None, np.ones(3))

    def match(model):
        return ppm.studies.match_local_bound(model, 1.0, unweighted=None)

    def sweep(model):
        return ppm.studies.sweep(model, PAIRS)

    for call in (bound, match, sweep):
        for wrong in (COUNTS, 3, None, "model"):
            with pytest.raises(TypeError, match=f"a PyMC model; got {type(wrong).__name__}"):
                call(wrong)


def test_a_model_of_several_responses_has_no_sweep():
    with pm.Model() as model:
        mean = pm.Normal("mean", 0.0, 2.0)
        pm.Normal("first", mean, 1.0, observed=np.zeros(5))
        pm.Normal("second", mean, 1.0, observed=np.ones(5))
    with pytest.raises(ValueError, match="one response; the model has 2: first, second"):
        ppm.studies.sweep(model, PAIRS)
