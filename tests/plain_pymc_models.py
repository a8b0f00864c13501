"""The paper's finite mixture as one writes it in PyMC, with its weights in it.

A route to the pseudo posterior that shares no line with the library's.
"""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import xarray as xr

from ppm._random import generator
from ppm.synthesizers.mixture.model import check_prior, check_regression
from ppm.synthesizers.mixture.numerics import LOG_2PI

TARGET_ACCEPT = 0.95
# those of FiniteMixture
DEFAULTS = {
    "concentration_prior": (1.0, 1.0),
    "coefficient_df": 3.0,
    "coefficient_scale": 1.0,
    "residual_df": 3.0,
    "residual_scale": 1.0,
}


def finite_mixture(response, predictors, *, components=10, weights=None, **prior):
    """Pseudo posterior of :class:`ppm.FiniteMixture`, with the labels summed out.

    NUTS explores its posterior well on tens of records and two or three components. On thousands
    of records and ten components its chains were seen to stick for hundreds of draws.

    Parameters
    ----------
    response, predictors, components
        As for :class:`ppm.FiniteMixture`.
    weights : numpy.ndarray, shape (records,), optional
        Weights α in [0, 1]; all 1 by default. They are the model's data ``weights``, which
        ``pymc.set_data`` can change.
    **prior
        Prior settings of :class:`ppm.FiniteMixture`.

    Returns
    -------
    pymc.Model
        With ``pi``, ``beta``, ``sigma``, ``concentration``, ``coefficient_scale`` and the
        by-record ``log_likelihood``.
    """
    response, predictors = check_regression(response, predictors)
    records, size = predictors.shape
    prior = check_prior(size, **DEFAULTS | prior)
    coords = {
        "component": np.arange(components),
        "predictor": np.arange(size),
        "record": np.arange(records),
    }
    with pm.Model(coords=coords) as model:
        log_pi = _sparse_dirichlet(components, prior)
        root = _huang_wand_root(size, prior)
        dims = ("component", "predictor")
        # on few records NUTS met a funnel in the coefficients themselves
        standard = pm.Normal("beta_standard", dims=dims)
        # no product of matrices: compiling the call of BLAS takes longer than such small sums
        beta = pm.Deterministic("beta", (standard[:, None, :] * root).sum(axis=-1), dims=dims)
        pm.Deterministic("coefficient_scale", pt.sqrt((root**2).sum(axis=1)), dims="predictor")
        sigma = pm.HalfStudentT(
            "sigma", nu=prior.residual_df, sigma=prior.residual_scale, dims="component"
        )
        # shared variables: what PyTensor keeps of a compiled function does not hold them
        response = pm.Data("response", response, dims="record")
        predictors = pm.Data("predictors", predictors, dims=("record", "predictor"))
        residual = (response - beta @ predictors.T) / sigma[:, None]
        log_density = -0.5 * residual**2 - pt.log(sigma)[:, None] - 0.5 * LOG_2PI
        log_lik = pt.logsumexp(log_pi[:, None] + log_density, axis=0)
        pm.Deterministic("log_likelihood", log_lik, dims="record")
        weights = np.ones(records) if weights is None else weights
        weights = pm.Data("weights", weights, dims="record")
        pm.Potential("pseudo_likelihood", (weights * log_lik).sum())
    return model


def fit_by_nuts(model, *, draws, warmup, chains=2, random_seed=None):
    """Fit of the mixture by PyMC's own NUTS, one chain after another.

    Returns an ``xarray.DataTree`` with the groups of a synthesizer's fit.
    """
    seeds = generator(random_seed).integers(2**31, size=chains).tolist()
    # a few small functions would go through a C compiler, and warn about a missing BLAS
    with model, pytensor.config.change_flags(cxx=""):
        trace = pm.sample(
            draws,
            tune=warmup,
            chains=chains,
            # in this process: forking one that has threads can deadlock
            cores=1,
            random_seed=seeds,
            # smaller steps than PyMC's 0.8: the posterior has narrow places
            target_accept=TARGET_ACCEPT,
            nuts_sampler="pymc",
            progressbar=False,
            quiet=True,
            compute_convergence_checks=False,
        )
    posterior = trace["posterior"].to_dataset()
    return xr.DataTree.from_dict(
        {
            "posterior": posterior.drop_vars("log_likelihood"),
            "log_likelihood": posterior[["log_likelihood"]].rename(log_likelihood="response"),
            "sample_stats": trace["sample_stats"].to_dataset(),
        }
    )


def _sparse_dirichlet(components, prior):
    """Log of Dirichlet(a/K, …) weights with a ~ Gamma.

    A Gamma(a/K) variable is Gamma(a/K + 1) times a power of a uniform one. In logs that neither
    underflows nor bends the space as Dirichlet coordinates do near its corners.
    """
    concentration = pm.Gamma(
        "concentration", alpha=prior.concentration_shape, beta=prior.concentration_rate
    )
    each = concentration / components
    gamma = pm.Gamma("pi_gamma", alpha=each + 1.0, beta=1.0, dims="component")
    exponential = pm.Exponential("pi_exponential", 1.0, dims="component")
    log_gamma = pt.log(gamma) - exponential / each
    log_pi = log_gamma - pt.logsumexp(log_gamma)
    pm.Deterministic("pi", pt.exp(log_pi), dims="component")
    return log_pi


def _huang_wand_root(size, prior):
    """Square root of a covariance from the scale mixture of inverse Wishart distributions.

    The precision is D A A' D: A of Bartlett's decomposition with ν + R - 1 degrees of freedom,
    D² = auxiliaries / (2ν), and the root is the inverse of D A, transposed.
    """
    df = prior.coefficient_df
    aux = pm.InverseGamma("coefficient_aux", alpha=0.5, beta=prior.coefficient_scale**-2.0)
    squares = pm.ChiSquared("bartlett_squares", df + size - 1.0 - np.arange(size))
    bartlett = pt.diag(pt.sqrt(squares))
    if size > 1:
        below = pm.Normal("bartlett_below", shape=size * (size - 1) // 2)
        bartlett = bartlett[np.tril_indices(size, -1)].set(below)
    inverse = pt.sqrt(aux / (2.0 * df))[:, None] * bartlett
    return pt.linalg.solve_triangular(inverse, pt.eye(size), lower=True).T
