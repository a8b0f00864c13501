"""A normal regression under a prior that counts, against its closed form."""

import numpy as np
import pytest

import ppm


@pytest.mark.parametrize("spread", [0.1, 100.0])
def test_the_variance_is_that_of_the_closed_form_also_under_a_narrow_prior(spread):
    rng = np.random.default_rng(1)
    predictors = np.column_stack([np.ones(30), rng.normal(size=30)])
    values = predictors @ [3.0, -2.0] + rng.normal(size=30)
    weights = rng.uniform(0.2, 1.0, 30)
    model = ppm.Normal(values, predictors, spread=spread, shape=3.0, scale=2.0)
    theta = ppm.fit(model, ppm.Given(weights), draws=20_000, random_seed=1).theta
    # β integrated out: √α y given σ is Normal(0, σ² (I + τ² √α X X' √α))
    roots = np.sqrt(weights)
    given_sigma = np.eye(30) + spread**2 * np.outer(roots, roots) * (
        predictors @ predictors.T
    )
    squares = roots * values @ np.linalg.solve(given_sigma, roots * values)
    shape, scale = 3.0 + weights.sum() / 2, 2.0 + squares / 2
    mean, sd = scale / (shape - 1), scale / (shape - 1) / np.sqrt(shape - 2)
    variance = theta["sigma"] ** 2
    assert variance.mean() == pytest.approx(mean, abs=5 * sd / np.sqrt(20_000))
    # the coefficients, whose law given σ has the mean of a ridge regression
    precision = (predictors.T * weights) @ predictors + np.eye(2) / spread**2
    ridge = np.linalg.solve(precision, (predictors.T * weights) @ values)
    error = np.sqrt(mean * np.diag(np.linalg.inv(precision)) / 20_000)
    assert (np.abs(theta["beta"].mean(axis=0) - ridge) < 5 * error).all()
