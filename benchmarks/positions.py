"""Draws of the finite mixture in the variables of its models for Hamiltonian samplers.

With them a benchmark can start NUTS where the library's own sampler has been.
"""

import numpy as np
import pymc as pm
import pytensor
from plain_pymc_models import TARGET_ACCEPT
from pymc.step_methods.hmc.quadpotential import QuadPotentialDiagAdapt

from ppm._random import generator
from ppm.synthesizers.mixture.numerics import inverse_gamma, log_gamma_draws

# Gibbs sweeps over covariance and scale variables for each draw, from a start near its target
COVARIANCE_SWEEPS = 20
FROM_A_FIT = ("pi", "beta", "sigma", "concentration", "coefficient_scale")


def mixture_positions(fit, prior, *, draws=100, centred=False, random_seed=None):
    r"""Where draws of :class:`ppm.FiniteMixture` lie in the space that NUTS moves in.

    The variables are those of :func:`plain_pymc_models.finite_mixture`. A fit
    holds less than they say: what is left open is drawn from its full conditional distribution
    under the prior of :class:`ppm.FiniteMixture`, so that a draw of that posterior becomes a draw
    of that posterior.

    Parameters
    ----------
    fit : xarray.DataTree
        What ``FiniteMixture.fit`` returned.
    prior : Prior
        Settings of the prior, those of the fit.
    draws : int, default 100
        How many draws of each chain to use at most, evenly spaced, the last among them.
    centred : bool, default False
        Whether ``beta`` is wanted in place of ``beta_standard``.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness.

    Returns
    -------
    dict of numpy.ndarray, shape (chain, draw, …)
        ``concentration``, ``pi_gamma``, ``pi_exponential``, those of the covariance,
        the coefficients, and ``sigma``. In every chain the components are numbered by their mean
        mixture weight, the largest first: number k means about the same in all.

    Notes
    -----
    With K components and concentration a, :math:`\pi_k = g_k / \sum g`, where
    :math:`g_k \sim \mathrm{Gamma}(a/K)`, and the sum is Gamma(a) and independent of π. The model
    writes :math:`g_k = G_k e^{-E_k K/a}` with :math:`G_k \sim \mathrm{Gamma}(a/K + 1)` and
    :math:`E_k` exponential; given :math:`g_k`, :math:`G_k - g_k` is exponential.

    A mixture weight too small for a float, stored as 0, is taken as :math:`e^{-700}`.
    """
    rng = generator(random_seed)
    posterior = fit["posterior"].dataset
    kept = posterior.sizes["draw"]
    picked = np.unique(np.linspace(kept - 1, 0, min(draws, kept)).round().astype(int))
    values = {name: posterior[name].values[:, picked] for name in FROM_A_FIT}
    order = np.argsort(-values["pi"].mean(axis=1), axis=1, kind="stable")
    for name in ("pi", "beta", "sigma"):
        values[name] = np.array([v[:, o] for v, o in zip(values[name], order, strict=True)])
    shape = values["concentration"].shape
    found = _positions(
        {name: v.reshape(-1, *v.shape[2:]) for name, v in values.items()},
        prior, centred, rng,
    )
    return {name: v.reshape(*shape, *v.shape[1:]) for name, v in found.items()}


def _positions(draws, prior, centred, rng):
    """The same for one row of draws."""
    a, beta = draws["concentration"], draws["beta"]
    with np.errstate(divide="ignore"):
        log_pi = np.maximum(np.log(draws["pi"]), -700.0)
    log_g = log_pi + log_gamma_draws(a, rng)[:, None]
    log_gamma = np.logaddexp(log_g, np.log(rng.standard_exponential(log_g.shape)))
    aux, precision = _covariance_given(beta, draws["coefficient_scale"], prior, rng)
    covariance, standard = _huang_wand(beta, aux, precision, prior)
    return {
        "concentration": a,
        "pi_gamma": np.exp(log_gamma),
        "pi_exponential": (a / beta.shape[1])[:, None] * (log_gamma - log_g),
        **covariance,
        **({"beta": beta} if centred else {"beta_standard": standard}),
        "sigma": draws["sigma"],
    }


def _huang_wand(beta, aux, precision, prior):
    size = aux.shape[1]
    root = np.linalg.cholesky(precision)
    bartlett = root / np.sqrt(aux / (2.0 * prior.coefficient_df))[..., None]
    variables = {
        "coefficient_aux": aux,
        "bartlett_squares": np.diagonal(bartlett, axis1=1, axis2=2) ** 2,
    }
    if size > 1:
        variables["bartlett_below"] = bartlett[(slice(None), *np.tril_indices(size, -1))]
    return variables, beta @ root


def _covariance_given(beta, scale, prior, rng):
    """Scale variables and precision matrices of the coefficients, given the coefficients."""
    df, (draws, components, size) = prior.coefficient_df, beta.shape
    wide = prior.coefficient_scale**-2.0
    # near the target: given the scales alone
    aux = inverse_gamma(0.5 * (df + 1.0), df / scale**2 + wide, rng)
    degrees = np.broadcast_to(df + size - 1.0 + components - np.arange(size), aux.shape)
    gram = beta.swapaxes(1, 2) @ beta
    each = np.arange(size)
    for _ in range(COVARIANCE_SWEEPS):
        conditional = gram.copy()
        conditional[:, each, each] += 2.0 * df / aux
        lower = np.linalg.cholesky(conditional)
        factor = np.tril(rng.standard_normal((draws, size, size)), -1)
        factor[:, each, each] = np.sqrt(rng.chisquare(degrees))
        root = np.linalg.solve(lower.swapaxes(1, 2), factor)
        precision = root @ root.swapaxes(1, 2)
        aux = inverse_gamma(0.5 * (df + size), df * precision[:, each, each] + wide, rng)
    return aux, precision


def start_from(model, positions, *, chains=2):
    """Arguments of :func:`plain_pymc_models.fit_by_nuts` that let it start at positions.

    Parameters
    ----------
    model : pymc.Model
        The model of :func:`plain_pymc_models.finite_mixture`.
    positions : dict of numpy.ndarray, shape (chain, draw, …)
        What :func:`mixture_positions` returned.
    chains : int, default 2
        Number of chains.

    Returns
    -------
    dict
        ``initvals``, the last positions, and ``step``, NUTS whose mass matrix begins with the
        variances of all within their chains.
    """
    draws = []
    for variable in model.free_RVs:
        values, transform = positions[variable.name], model.rvs_to_transforms[variable]
        if transform is not None:
            constrained = variable.type()
            forward = pytensor.function(
                [constrained],
                transform.forward(constrained, *variable.owner.inputs),
                mode="FAST_COMPILE",
            )
            values = np.array([[forward(value) for value in chain] for chain in values])
        draws.append(values.reshape(*values.shape[:2], -1))
    # in the order of the model's values, as NUTS strings them together
    draws = np.concatenate(draws, axis=-1)
    count = draws.shape[0] * draws.shape[1]
    # within chains; a little towards a small number, as Stan does, for few draws
    variances = (count * draws.var(axis=1).mean(axis=0) + 5e-3) / (count + 5.0)
    potential = QuadPotentialDiagAdapt(
        variances.size, draws.mean(axis=(0, 1)), variances, min(count, 100)
    )
    with model:
        step = pm.NUTS(potential=potential, target_accept=TARGET_ACCEPT)
    starts = [
        {name: v[chain % len(v), -1] for name, v in positions.items()} for chain in range(chains)
    ]
    return {"step": step, "initvals": starts}
