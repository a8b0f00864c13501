"""Draws of the finite mixture in the variables of its models for Hamiltonian samplers."""

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from ppm.synthesizers.numerics import inverse_gamma, log_gamma_draws

# Gibbs sweeps over covariance and scale variables for each draw, from a start near its target
COVARIANCE_SWEEPS = 20


def mixture_positions(fit, prior, *, draws=100, random_seed=None):
    r"""Where draws of :class:`ppm.FiniteMixture` lie in the space that NUTS moves in.

    The variables are those of :func:`ppm.synthesizers.pymc_models.finite_mixture_model` with the
    prior "huang-wand". A fit holds less than they say: what is left open is drawn from its full
    conditional distribution, so that a draw of the posterior becomes a draw of the posterior.

    Parameters
    ----------
    fit : xarray.DataTree
        What ``FiniteMixture.fit`` returned.
    prior : Prior
        Settings of the prior, those of the fit.
    draws : int, default 100
        How many draws of each chain to use at most, evenly spaced, the last among them.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness.

    Returns
    -------
    dict of numpy.ndarray, shape (chain, draw, …)
        ``concentration``, ``pi_gamma``, ``pi_exponential``, ``coefficient_aux``,
        ``bartlett_squares``, ``bartlett_below``, ``beta_standard`` and ``sigma``, in this order.

    Notes
    -----
    With K components and concentration a, :math:`\pi_k = g_k / \sum g`, where
    :math:`g_k \sim \mathrm{Gamma}(a/K)`, and the sum is Gamma(a) and independent of π. The model
    writes :math:`g_k = G_k e^{-E_k K/a}` with :math:`G_k \sim \mathrm{Gamma}(a/K + 1)` and
    :math:`E_k` exponential; given :math:`g_k`, :math:`G_k - g_k` is exponential.

    A mixture weight too small for a float, stored as 0, is taken as :math:`e^{-700}`.
    """
    rng = np.random.default_rng(random_seed)
    posterior = fit["posterior"].dataset
    chains, kept = posterior.sizes["chain"], posterior.sizes["draw"]
    picked = np.unique(np.linspace(kept - 1, 0, min(draws, kept)).round().astype(int))
    found = [
        [
            _position(
                {
                    name: posterior[name].values[chain, draw]
                    for name in ("pi", "beta", "sigma", "concentration", "coefficient_scale")
                },
                prior,
                rng,
            )
            for draw in picked
        ]
        for chain in range(chains)
    ]
    return {
        name: np.array([[position[name] for position in row] for row in found])
        for name in found[0][0]
    }


def _position(draw, prior, rng):
    a, beta = float(draw["concentration"]), draw["beta"]
    each = a / len(beta)
    with np.errstate(divide="ignore"):
        log_pi = np.maximum(np.log(draw["pi"]), -700.0)
    log_g = log_pi + log_gamma_draws(np.array([a]), rng)
    log_gamma = np.logaddexp(log_g, np.log(rng.standard_exponential(log_g.size)))
    aux, bartlett = _covariance_given(beta, draw["coefficient_scale"], prior, rng)
    precision_root = np.sqrt(aux / (2.0 * prior.coefficient_df))[:, None] * bartlett
    return {
        "concentration": a,
        "pi_gamma": np.exp(log_gamma),
        "pi_exponential": each * (log_gamma - log_g),
        "coefficient_aux": aux,
        "bartlett_squares": np.diag(bartlett) ** 2,
        "bartlett_below": bartlett[np.tril_indices(len(aux), -1)],
        "beta_standard": beta @ precision_root,
        "sigma": draw["sigma"],
    }


def _covariance_given(beta, scale, prior, rng):
    """Scale variables and Bartlett's factor of the coefficients' precision, given coefficients."""
    df, (components, size) = prior.coefficient_df, beta.shape
    # near the target: given the scales alone
    aux = inverse_gamma(
        0.5 * (df + 1.0), df / scale**2 + prior.coefficient_scale**-2.0, rng
    )
    degrees = df + size - 1.0 + components - np.arange(size)
    gram = beta.T @ beta
    for _ in range(COVARIANCE_SWEEPS):
        lower = cholesky(gram + np.diag(2.0 * df / aux), lower=True, check_finite=False)
        factor = np.tril(rng.standard_normal((size, size)), -1)
        factor[np.diag_indices(size)] = np.sqrt(rng.chisquare(degrees))
        root = solve_triangular(lower, factor, lower=True, trans="T", check_finite=False)
        precision = root @ root.T
        aux = inverse_gamma(
            0.5 * (df + size), df * np.diag(precision) + prior.coefficient_scale**-2.0, rng
        )
    bartlett = cholesky(precision, lower=True, check_finite=False)
    return aux, bartlett / np.sqrt(aux / (2.0 * df))[:, None]
