"""The synthesizer in closed form, for any counts, prior and weights."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from layouts import unit_interval, vectors
from scipy import stats

import ppm

counts = vectors(st.integers(0, 60).map(float), least=2).map(lambda values: values.astype(int))
priors = st.fixed_dictionaries({"shape": st.floats(0.1, 9.0), "rate": st.floats(0.1, 9.0)})
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
