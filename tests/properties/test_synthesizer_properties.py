"""Properties of the synthesizer in closed form, and of what a statement says of a run."""

import re

import numpy as np
import pytest
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st
from layouts import unit_interval, vectors
from scipy import stats

import ppm

counts = vectors(st.integers(0, 60).map(float), least=2).map(lambda values: values.astype(int))
priors = st.fixed_dictionaries({"shape": st.floats(0.1, 9.0), "rate": st.floats(0.1, 9.0)})
seeds = st.integers(0, 2**64)


@given(counts, priors, st.data())
def test_posterior_is_prior_times_weighted_likelihood(values, prior, data):
    weights = data.draw(unit_interval(values.size))
    at = np.array([0.01, 0.5, 3.0, 20.0, 70.0])
    exact = stats.gamma.logpdf(at, prior["shape"], scale=1.0 / prior["rate"])
    exact += weights @ stats.poisson.logpmf(values[:, None], at)

    def off(posterior):
        return np.ptp(posterior.logpdf(at) - exact)

    assert off(ppm.GammaPoisson(values, **prior).posterior(weights)) <= 1e-7
    # with weights in the rate alone it would be another distribution
    broken = stats.gamma(prior["shape"] + values.sum(), scale=1 / (prior["rate"] + weights.sum()))
    assert off(broken) > 1e-7 or np.allclose((1.0 - weights) @ values, 0.0, atol=1e-7)


@given(counts, priors, st.data())
def test_losses_stay_within_the_oscillations_and_weight_0_has_none(values, prior, data):
    model = ppm.GammaPoisson(values, **prior)
    weights = data.draw(unit_interval(values.size))
    fit = model.fit(weights, draws=6, random_seed=1)
    loss = model.leave_one_out_loss(fit, weights).values
    assert np.all(np.abs(loss[..., weights == 0]) <= 1e-12)
    log_lik = model.log_likelihood(fit)
    # the loss moves by what the term moves by
    moved = np.ptp(loss, axis=(0, 1))
    assert moved == pytest.approx(ppm.record_oscillations(log_lik, weights), abs=1e-6)
    lowest, highest = np.quantile(fit["posterior"]["mu"], [0.0, 1.0])
    if 1e-6 < lowest < highest:
        within = model.oscillations_within(lowest, highest)
        assert np.all(ppm.record_oscillations(log_lik) <= within + 1e-9)
        assert np.all(ppm.record_bounds(log_lik) <= model.bounds_within(lowest, highest) + 1e-9)


# limits placed without public data cut everything off
@pytest.mark.filterwarnings("ignore::UserWarning")
@examples(15)
@given(vectors(st.integers(101, 998).map(float), least=3).map(lambda v: v.astype(int)),
       st.integers(1, 5), st.booleans(), seeds)
def test_no_statement_on_a_release_holds_a_record_or_a_weight(values, releases, strict, seed):
    censor = ppm.Censoring(-4.0, -1.0) if strict else None
    model = ppm.GammaPoisson(values, shape=2.0, rate=0.01)
    result = ppm.PseudoPosteriorMechanism(model, censor=censor).run(draws=20, random_seed=seed)
    release = result.synthesize(releases, random_seed=seed)
    statement = ppm.disclosure.release_statement(result, release)
    numbers = set(re.findall(r"\d+(?:\.\d+)?", statement))
    amounts = [*result.record_bounds] + [result.local_bound] * (not strict)
    written = {f"{amount:.{digits}f}" for amount in amounts for digits in range(1, 7)}
    assert not numbers & (written | {*map(str, values)})
