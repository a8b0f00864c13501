"""Nutpie's NUTS in the place of PyMC's: the same pseudo posterior, and nothing half-done."""

import arviz as az
import numpy as np
import nutpie
import pymc as pm
import pytest
from plain_pymc_models import gamma_poisson

import ppm
from ppm.synthesizers import pymc_nutpie

pytestmark = pytest.mark.usefixtures("no_compiler")

COUNTS = np.array([3, 5, 4, 6, 20, 2, 3, 7])
WEIGHTS = np.array([1.0, 0.8, 0.9, 0.5, 0.0, 0.7, 1.0, 0.3])
LIMITS = ppm.Censoring(-3.0, -1.0)
CLOSED = ppm.GammaPoisson(COUNTS, shape=2.0, rate=0.5)


@pytest.fixture(scope="module")
def synthesizer():
    return ppm.PyMCSynthesizer(
        gamma_poisson(COUNTS, shape=2.0, rate=0.5), target_accept=0.95, nuts_sampler="nutpie"
    )


def distance(draws, exact):
    """How far the draws' places in the exact distribution are from uniform, in Monte Carlo errors.

    Mean and mean square of the places.
    """
    places = draws.copy(data=exact.cdf(draws.values))
    return max(
        abs(float((places**power).mean()) - 1 / (power + 1)) / float(az.mcse(places**power))
        for power in (1, 2)
    )


def mu(synthesizer, *weights, seed=1, **settings):
    return synthesizer.fit(*weights, draws=2000, random_seed=seed, **settings)["posterior"]["mu"]


def test_draws_are_those_of_the_closed_form_at_all_weights_and_within_limits(
    synthesizer, monkeypatch
):
    plain, weighted = CLOSED.posterior(), CLOSED.posterior(WEIGHTS)
    assert distance(mu(synthesizer), plain) < 4.0
    # the check sees weights that are forgotten, those of the fit before among them
    monkeypatch.setattr(pymc_nutpie, "compiled", None)
    found = mu(synthesizer, WEIGHTS)
    assert distance(found, weighted) < 4.0 and distance(found, plain) > 10.0
    assert distance(mu(synthesizer), plain) < 4.0
    monkeypatch.undo()
    assert distance(mu(synthesizer, censor=LIMITS), CLOSED.posterior(censor=LIMITS)) < 4.0
    # and the model without limits is still there
    monkeypatch.setattr(pymc_nutpie, "compiled", None)
    assert distance(mu(synthesizer, WEIGHTS), weighted) < 4.0


def test_a_seed_gives_the_same_draws_on_any_number_of_cores(synthesizer, monkeypatch):
    found = []
    for cores in (1, 2):
        monkeypatch.setattr(pymc_nutpie, "cores", lambda cores=cores: cores)
        found.append(mu(synthesizer, seed=5))
    assert found[0].identical(found[1])
    assert not np.array_equal(found[0], mu(synthesizer, seed=6))
    # nor are its chains alike
    assert not np.array_equal(found[0][0], found[0][1])


def test_through_the_mechanism_with_given_weights_and_a_generator(synthesizer):
    bare = ppm.PseudoPosteriorMechanism(
        gamma_poisson(COUNTS), weights=WEIGHTS, nuts_sampler="nutpie"
    )
    assert bare.synthesizer.nuts_sampler == "nutpie"
    mechanism = ppm.PseudoPosteriorMechanism(synthesizer, weights=WEIGHTS)
    results = [mechanism.run(draws=300, random_seed=np.random.default_rng(2)) for _ in range(2)]
    assert results[0].local_bound == results[1].local_bound
    assert results[0].diagnostics.divergences == 0
    assert set(results[0].draws["sample_stats"].data_vars) >= {"diverging", "n_steps"}
    assert results[0].synthesize(2, random_seed=1).shape == (2, 8)


def test_what_was_drawn_before_an_interrupt_is_not_taken_for_a_fit(synthesizer, monkeypatch):
    sample, running = nutpie.sample, []

    def interrupted(*arguments, **settings):
        running.append(sample(*arguments, **settings))
        monkeypatch.setattr(running[-1], "wait", wait, raising=False)
        monkeypatch.setattr(running[-1], "cancel", lambda: stopped.append(True), raising=False)
        return running[-1]

    def wait():
        raise KeyboardInterrupt

    stopped = []
    monkeypatch.setattr(nutpie, "sample", interrupted)
    with pytest.raises(KeyboardInterrupt):
        synthesizer.fit(draws=20, random_seed=1)
    assert stopped


def test_an_impossible_record_is_named():
    with pm.Model() as model:
        width = pm.HalfNormal("width", 1.0, initval=1.0)
        pm.Uniform("y", 0.0, width, observed=np.array([0.1, 0.2, 5.0]))
    synthesizer = ppm.PyMCSynthesizer(model, chains=1, warmup=20, nuts_sampler="nutpie")
    with pytest.raises(ValueError, match="record 2 of y is impossible at the model's initial"):
        synthesizer.fit(draws=5, random_seed=1)


def test_another_sampler_and_discrete_parameters_are_refused_at_once():
    model = gamma_poisson(COUNTS)
    with pytest.raises(ValueError, match="nuts_sampler must be 'pymc' or 'nutpie'; got 'stan'"):
        ppm.PyMCSynthesizer(model, nuts_sampler="stan")
    with model:
        pm.Bernoulli("switch", 0.5)
    with pytest.raises(ValueError, match=r"nutpie' moves no discrete parameters \(switch\)"):
        ppm.PyMCSynthesizer(model, nuts_sampler="nutpie")
