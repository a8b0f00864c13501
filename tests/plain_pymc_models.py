"""The paper's finite mixture as one writes it in PyMC, with its weights in it.

A route to the pseudo posterior that shares no line with the library's.
"""

from inspect import signature

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt

from ppm.synthesizers.mixture.model import FiniteMixture, check_prior, check_regression
from ppm.synthesizers.mixture.numerics import LOG_2PI

DEFAULTS = {name: setting.default for name, setting in signature(FiniteMixture).parameters.items()
            if name in signature(check_prior).parameters}  # fmt: skip


def finite_mixture(response, predictors, *, components=10, weights=None, **prior):
    """Pseudo posterior of :class:`ppm.FiniteMixture`, with the labels summed out.

    NUTS explores its posterior well on tens of records and two or three components. On thousands
    of records and ten components its chains were seen to stick for hundreds of draws.

    The prior settings are those of the library; ``weights`` are all 1 by default. The model has
    ``pi``, ``beta``, ``sigma``, ``concentration`` and ``coefficient_scale``.
    """
    response, predictors = check_regression(response, predictors)
    records, size = predictors.shape
    prior = check_prior(size, **DEFAULTS | prior)
    weights = np.ones(records) if weights is None else weights
    with pm.Model() as model:
        log_pi = _sparse_dirichlet(components, prior)
        root = _huang_wand_root(size, prior)
        # on few records NUTS met a funnel in the coefficients themselves
        standard = pm.Normal("beta_standard", shape=(components, size))
        # no products of matrices: compiling the call of BLAS takes longer than such small sums
        beta = pm.Deterministic("beta", (standard[:, None, :] * root).sum(axis=-1))
        pm.Deterministic("coefficient_scale", pt.sqrt((root**2).sum(axis=1)))
        nu, scale = prior.residual_df, prior.residual_scale
        sigma = pm.HalfStudentT("sigma", nu=nu, sigma=scale, shape=components)
        # as constants they would take longer to compile
        response, predictors = pm.Data("response", response), pm.Data("predictors", predictors)
        residual = (response - (beta[:, None, :] * predictors).sum(axis=-1)) / sigma[:, None]
        log_density = -0.5 * residual**2 - pt.log(sigma)[:, None] - 0.5 * LOG_2PI
        log_lik = pt.logsumexp(log_pi[:, None] + log_density, axis=0)
        pm.Potential("pseudo_likelihood", (pm.Data("weights", weights) * log_lik).sum())
    return model


def fit_by_nuts(model, *, draws, warmup, random_seed):
    """Posterior of two chains of nutpie's NUTS."""
    # a few small functions would go through a C compiler, and warn about a missing BLAS
    with model, pytensor.config.change_flags(cxx=""):
        trace = pm.sample(
            draws, tune=warmup, chains=2, random_seed=random_seed, nuts_sampler="nutpie",
            # smaller steps than the usual 0.8: the posterior has narrow places
            target_accept=0.95, progressbar=False, quiet=True, compute_convergence_checks=False,
        )  # fmt: skip
    return trace["posterior"].to_dataset()


def _sparse_dirichlet(components, prior):
    """Log of Dirichlet(a/K, …) weights with a ~ Gamma.

    A Gamma(a/K) variable is Gamma(a/K + 1) times a power of a uniform one. In logs that neither
    underflows nor bends the space as Dirichlet coordinates do near its corners.
    """
    shape, rate = prior.concentration_shape, prior.concentration_rate
    each = pm.Gamma("concentration", alpha=shape, beta=rate) / components
    gamma = pm.Gamma("pi_gamma", alpha=each + 1.0, beta=1.0, shape=components)
    log_gamma = pt.log(gamma) - pm.Exponential("pi_exponential", 1.0, shape=components) / each
    log_pi = log_gamma - pt.logsumexp(log_gamma)
    pm.Deterministic("pi", pt.exp(log_pi))
    return log_pi


def _huang_wand_root(size, prior):
    """Square root of a covariance from the scale mixture of inverse Wishart distributions.

    The precision is D A A' D: A of Bartlett's decomposition with ν + R - 1 degrees of freedom,
    D² = auxiliaries / (2ν), and the root is the inverse of D A, transposed.
    """
    df = prior.coefficient_df
    aux = pm.InverseGamma("coefficient_aux", alpha=0.5, beta=prior.coefficient_scale**-2.0)
    squares = pm.ChiSquared("bartlett_squares", df + size - 1.0 - np.arange(size))
    below = pm.Normal("bartlett_below", shape=size * (size - 1) // 2) if size > 1 else ()
    # A inverted row by row: compiling a solver, and the products of its gradient, takes longer
    rows = []
    for r in range(size):
        known = [below[r * (r - 1) // 2 + c] * row for c, row in enumerate(rows)]
        rows.append((np.eye(size)[r] - sum(known)) / pt.sqrt(squares[r]))
    return (pt.stack(rows) / pt.sqrt(aux / (2.0 * df))).T
