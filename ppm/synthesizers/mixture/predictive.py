"""Likelihood and predictive draws of the finite mixture at given parameters."""

import numpy as np
import xarray as xr

from ppm._random import generator
from ppm._validation import check_count
from ppm.synthesizers.base import choose_draws
from ppm.synthesizers.mixture.numerics import log_normal, log_sum_exp


def component_log_densities(response, predictors, beta, sigma):
    """Normal log-density of every record under every component, shape (components, records)."""
    return log_normal(response - beta @ predictors.T, sigma[:, None])


def mixture_log_likelihood(response, predictors, log_pi, beta, sigma):
    """Log-likelihood of every record under the mixture, shape (records,), in nats."""
    return log_sum_exp(
        log_pi[:, None] + component_log_densities(response, predictors, beta, sigma)
    )


def predict_mixture(predictors, fit, releases, random_seed, *, response=None):
    """Draw synthetic responses from a fit: see :meth:`FiniteMixture.predict`.

    With a ``response``, the labels come from their full conditional distribution given it.
    """
    releases = check_count("releases", releases)
    rng = generator(random_seed)
    posterior = fit["posterior"].dataset
    picked = choose_draws(posterior, releases, rng)
    draws = [posterior[name].values[picked] for name in ("pi", "beta", "sigma")]
    records = predictors.shape[0]
    synthetic = np.empty((releases, records))
    for row, pi, beta, sigma in zip(synthetic, *draws, strict=True):
        uniforms = rng.random(records)
        # from π; the record's own response is used only on request
        shares = pi[:, None]
        if response is not None:
            with np.errstate(divide="ignore"):
                joint = component_log_densities(response, predictors, beta, sigma)
                joint += np.log(shares)
            shares = np.exp(joint - joint.max(axis=0))
        edges = np.cumsum(shares, axis=0)
        label = (uniforms * edges[-1] >= edges).sum(axis=0)
        mean = (predictors * beta[label]).sum(axis=1)
        row[:] = mean + sigma[label] * rng.standard_normal(records)
    return xr.DataArray(synthetic, dims=("release", "record"), name="response")
