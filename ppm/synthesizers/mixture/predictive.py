"""Likelihood and predictive draws of the finite mixture at given parameters."""

import numpy as np
from scipy.special import expit

from ppm._random import generator
from ppm._validation import check_count
from ppm.synthesizers.base import choose_draws
from ppm.synthesizers.mixture import record_passes
from ppm.synthesizers.mixture.numerics import log_sum_exp


def component_log_densities(response, predictors, beta, sigma):
    """Normal log-density of every record under every component, shape (components, records)."""
    return record_passes.log_densities(response, beta @ predictors.T, sigma)


def mixture_log_likelihood(response, predictors, log_pi, beta, sigma):
    """Log-likelihood of every record under the mixture, shape (records,), in nats."""
    return log_sum_exp(
        log_pi[:, None] + component_log_densities(response, predictors, beta, sigma)
    )


def predict_mixture(predictors, fit, releases, random_seed, *, response=None, floor=None):
    """Draw synthetic responses from a fit: see :meth:`FiniteMixture.predict`.

    With a ``response``, the labels come from their full conditional distribution given it, and so
    does what is at the ``floor``.
    """
    import xarray as xr

    releases = check_count("releases", releases)
    rng = generator(random_seed)
    posterior = fit["posterior"].dataset
    picked = choose_draws(posterior, releases, rng)
    pi, beta, sigma = (posterior[name].values[picked] for name in ("pi", "beta", "sigma"))
    if floor is not None:
        floor_coefficients = posterior["floor_coefficients"].values[picked]
    records = predictors.shape[0]
    synthetic = np.empty((releases, records))
    for release, row in enumerate(synthetic):
        shares, coefficients, scales = pi[release], beta[release], sigma[release]
        uniforms = rng.random(records)
        if response is None:
            # from π, never from the record's own response
            edges = np.cumsum(shares)
            label = np.searchsorted(edges, uniforms * edges[-1], side="right")
        else:
            label = _conditional_labels(
                uniforms, response, predictors, shares, coefficients, scales
            )
        means = predictors @ coefficients.T
        mean = np.take_along_axis(means, label[:, None], axis=1)[:, 0]
        row[:] = mean + scales[label] * rng.standard_normal(records)
        if floor is not None:
            chance = expit(predictors @ floor_coefficients[release])
            reached = rng.random(records) < chance if response is None else floor.reached
            row[reached] = floor.value
    return xr.DataArray(synthetic, dims=("release", "record"), name="response")


def _conditional_labels(uniforms, response, predictors, pi, beta, sigma):
    """One label for each record, by inverting its own distribution over the components."""
    with np.errstate(divide="ignore"):
        log_joint = np.log(pi)[:, None] + component_log_densities(
            response, predictors, beta, sigma
        )
    edges = np.cumsum(np.exp(log_joint - log_joint.max(axis=0)), axis=0)
    return (uniforms * edges[-1] >= edges).sum(axis=0)
