"""The synthesizers as PyMC models fitted by NUTS: the only module that touches PyMC.

PyMC 6 compiles with Numba by default, so that no C compiler is needed, and its own NUTS does: for
these small models nutpie was no faster, and it failed on the LKJ prior.
"""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import xarray as xr

from ppm._validation import check_count, check_counts, check_number, check_weights
from ppm.synthesizers.finite_mixture import (
    LOG_2PI,
    check_prior,
    check_regression,
    predict_mixture,
)
from ppm.synthesizers.gamma_poisson import GammaPoisson

_SUFFIX = "_log_likelihood"


def gamma_poisson_model(counts, *, shape=0.001, rate=0.001, weights=None):
    r"""Pseudo posterior of Poisson counts with a Gamma prior for their mean, as a PyMC model.

    Parameters
    ----------
    counts : array_like of int, shape (records,)
        The confidential counts, whole numbers >= 0.
    shape, rate : float, default 0.001
        Gamma prior of the mean μ, both above 0.
    weights : array_like, shape (records,), optional
        Weights α in [0, 1]; all 1 by default. They are the model's data ``weights``, which
        ``pymc.set_data`` can change.

    Returns
    -------
    pymc.Model
        With the free variable ``mu`` and the by-record ``counts_log_likelihood``.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    The model of Savitsky, Williams and Hu (2022), section 4; in closed form it is
    :class:`ppm.GammaPoisson`.
    """
    counts = check_counts("counts", counts)
    shape = check_number("shape", shape, above=0)
    rate = check_number("rate", rate, above=0)
    with pm.Model(coords={"record": np.arange(counts.size)}) as model:
        mu = pm.Gamma("mu", alpha=shape, beta=rate)
        _pseudo_likelihood("counts", pm.logp(pm.Poisson.dist(mu), counts), weights)
    return model


def finite_mixture_model(
    response,
    predictors,
    *,
    components=10,
    weights=None,
    correlation="lkj",
    concentration_prior=(1.0, 1.0),
    coefficient_df=3.0,
    coefficient_scale=1.0,
    residual_df=3.0,
    residual_scale=1.0,
):
    r"""Pseudo posterior of the finite mixture of regressions, as a PyMC model without labels.

    Parameters
    ----------
    response, predictors, components
        As for :class:`ppm.FiniteMixture`.
    weights : array_like, shape (records,), optional
        Weights α in [0, 1]; all 1 by default. They are the model's data ``weights``, which
        ``pymc.set_data`` can change.
    correlation : {"lkj", "huang-wand"}
        Prior of the correlation matrix of the coefficients: the paper's uniform LKJ(1), or exactly
        the prior of :class:`ppm.FiniteMixture`.
    concentration_prior, coefficient_df, coefficient_scale, residual_df, residual_scale
        As for :class:`ppm.FiniteMixture`.

    Returns
    -------
    pymc.Model
        With ``pi``, ``beta``, ``sigma``, ``concentration``, ``coefficient_scale`` and the by-record
        ``response_log_likelihood``, the labels summed out.

    Raises
    ------
    ValueError
        If an argument has the wrong shape or is out of range.

    Notes
    -----
    Savitsky, Williams and Hu (2022), appendix B. NUTS explores this posterior well on tens of
    records and two or three components. On thousands of records and ten components its chains were
    seen to stick for hundreds of draws: use :class:`ppm.FiniteMixture` there.
    """
    response, predictors = check_regression(response, predictors)
    components = check_count("components", components)
    records, size = predictors.shape
    prior = check_prior(
        size,
        concentration_prior=concentration_prior,
        coefficient_df=coefficient_df,
        coefficient_scale=coefficient_scale,
        residual_df=residual_df,
        residual_scale=residual_scale,
    )
    if correlation not in ("lkj", "huang-wand"):
        raise ValueError(f"correlation must be 'lkj' or 'huang-wand'; got {correlation!r}")
    coords = {
        "component": np.arange(components),
        "predictor": np.arange(size),
        "record": np.arange(records),
    }
    with pm.Model(coords=coords) as model:
        log_pi = _sparse_dirichlet(components, prior)
        root = (_lkj_root if correlation == "lkj" else _huang_wand_root)(size, prior)
        # standard normals turned into coefficients: centred, NUTS met a funnel
        standard = pm.Normal("beta_standard", dims=("component", "predictor"))
        beta = pm.Deterministic("beta", standard @ root.T, dims=("component", "predictor"))
        pm.Deterministic("coefficient_scale", pt.sqrt((root**2).sum(axis=1)), dims="predictor")
        sigma = pm.HalfStudentT(
            "sigma", nu=prior.residual_df, sigma=prior.residual_scale, dims="component"
        )
        residual = (response - beta @ predictors.T) / sigma[:, None]
        log_density = -0.5 * residual**2 - pt.log(sigma)[:, None] - 0.5 * LOG_2PI
        mixture = pt.logsumexp(log_pi[:, None] + log_density, axis=0)
        _pseudo_likelihood("response", mixture, weights)
    return model


def _pseudo_likelihood(name, log_likelihood, weights):
    """Add by-record log-likelihood, weights and their weighted sum to the model in context."""
    records = len(pm.modelcontext(None).coords["record"])
    weights = np.ones(records) if weights is None else check_weights(weights, records)
    weights = pm.Data("weights", weights, dims="record")
    log_likelihood = pm.Deterministic(name + _SUFFIX, log_likelihood, dims="record")
    # a product alone would make NaN of weight 0 and log-likelihood -inf
    weighted = pt.switch(weights > 0, weights * log_likelihood, 0.0)
    pm.Potential("pseudo_likelihood", weighted.sum())


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


def _lkj_root(size, prior):
    """Square root of a covariance with half-t scales and a uniform correlation matrix."""
    scale = pm.HalfStudentT.dist(nu=prior.coefficient_df, sigma=prior.coefficient_scale, size=size)
    if size == 1:
        scale = pm.HalfStudentT(
            "coefficient_sd", nu=prior.coefficient_df, sigma=prior.coefficient_scale, shape=1
        )
        return scale[:, None]
    root, _, _ = pm.LKJCholeskyCov(
        "coefficient_covariance", eta=1.0, n=size, sd_dist=scale, compute_corr=True
    )
    return root


def _huang_wand_root(size, prior):
    """Square root of a covariance from the scale mixture of inverse Wishart distributions.

    The precision is D A A' D: A of Bartlett's decomposition with ν + R - 1 degrees of freedom,
    D² = auxiliaries / (2ν).
    """
    df = prior.coefficient_df
    aux = pm.InverseGamma("coefficient_aux", alpha=0.5, beta=prior.coefficient_scale**-2.0)
    squares = pm.ChiSquared("bartlett_squares", df + size - 1.0 - np.arange(size))
    bartlett = pt.diag(pt.sqrt(squares))
    if size > 1:
        below = pm.Normal("bartlett_below", shape=size * (size - 1) // 2)
        bartlett = bartlett[np.tril_indices(size, -1)].set(below)
    precision_root = pt.sqrt(aux / (2.0 * df))[:, None] * bartlett
    return pt.linalg.solve_triangular(precision_root, pt.eye(size), lower=True).T


def fit_pymc(model, *, draws=1000, chains=2, warmup=1000, random_seed=None, progress=False):
    """Fit a model of this module by NUTS.

    Parameters
    ----------
    model : pymc.Model
        A model with one by-record deterministic variable whose name ends in ``_log_likelihood``.
    draws : int, default 1000
        Kept draws a chain.
    chains : int, default 2
        Number of chains, run one after another.
    warmup : int, default 1000
        Tuning steps of each chain, thrown away.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness.
    progress : bool, default False
        Whether PyMC shows its progress bar and messages.

    Returns
    -------
    xarray.DataTree
        Groups ``posterior``, ``log_likelihood`` (unweighted, by record) and ``sample_stats``.

    Raises
    ------
    ValueError
        If the model has no such variable, or a number is out of range.
    """
    draws = check_count("draws", draws)
    chains = check_count("chains", chains)
    warmup = check_count("warmup", warmup, at_least=0)
    names = [v.name for v in model.deterministics if v.name.endswith(_SUFFIX)]
    if len(names) != 1:
        raise ValueError(
            "model must have one by-record deterministic variable with a name ending in "
            f"{_SUFFIX!r}; it has {len(names)}"
        )
    seeds = np.random.default_rng(random_seed).integers(2**31, size=chains).tolist()
    # without a C compiler even where there is one: a few small functions would otherwise go
    # through it, and warn about a missing BLAS
    with model, pytensor.config.change_flags(cxx=""):
        trace = pm.sample(
            draws,
            tune=warmup,
            chains=chains,
            # in this process: forking one that has threads can deadlock
            cores=1,
            random_seed=seeds,
            nuts_sampler="pymc",
            # smaller steps than PyMC's 0.8: the mixture's posterior has narrow places
            target_accept=0.95,
            progressbar=progress,
            quiet=not progress,
            compute_convergence_checks=progress,
        )
    posterior = trace["posterior"].to_dataset()
    log_lik = posterior[names[0]].rename(names[0].removesuffix(_SUFFIX))
    return xr.DataTree.from_dict(
        {
            "posterior": posterior.drop_vars(names[0]),
            "log_likelihood": log_lik.to_dataset(),
            "sample_stats": trace["sample_stats"].to_dataset(),
        }
    )


class PyMCGammaPoisson:
    """Gamma-Poisson synthesizer fitted by NUTS: the same pseudo posterior as the closed form.

    Parameters
    ----------
    counts, shape, rate
        As for :func:`gamma_poisson_model`.
    chains, warmup : int, default 2 and 1000
        As for :func:`fit_pymc`.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """

    def __init__(self, counts, *, shape=0.001, rate=0.001, chains=2, warmup=1000):
        self._closed_form = GammaPoisson(counts, shape=shape, rate=rate)
        self.chains = check_count("chains", chains)
        self.warmup = check_count("warmup", warmup, at_least=0)

    @property
    def records(self):
        """Number of records n."""
        return self._closed_form.records

    def fit(self, weights=None, *, draws=1000, random_seed=None, progress=False):
        """Draw from the pseudo posterior: see :func:`fit_pymc`."""
        same = self._closed_form
        model = gamma_poisson_model(same.counts, shape=same.shape, rate=same.rate, weights=weights)
        return fit_pymc(
            model,
            draws=draws,
            chains=self.chains,
            warmup=self.warmup,
            random_seed=random_seed,
            progress=progress,
        )

    def log_likelihood(self, fit):
        """Log-likelihood of every record at every draw of a fit, an array (chain, draw, record)."""
        return self._closed_form.log_likelihood(fit)

    def predict(self, fit, *, releases, random_seed=None):
        """Draw synthetic databases of counts: see :meth:`ppm.GammaPoisson.predict`."""
        return self._closed_form.predict(fit, releases=releases, random_seed=random_seed)


class PyMCFiniteMixture:
    """Finite mixture of regressions fitted by NUTS, for tens of records and few components.

    Parameters
    ----------
    response, predictors, components, correlation
        As for :func:`finite_mixture_model`.
    chains, warmup : int, default 2 and 1000
        As for :func:`fit_pymc`.
    **prior
        The prior settings of :func:`finite_mixture_model`.

    Raises
    ------
    ValueError
        If an argument has the wrong shape or is out of range.
    """

    def __init__(
        self,
        response,
        predictors,
        *,
        components=10,
        correlation="lkj",
        chains=2,
        warmup=1000,
        **prior,
    ):
        self.response, self.predictors = check_regression(response, predictors)
        self.chains = check_count("chains", chains)
        self.warmup = check_count("warmup", warmup, at_least=0)
        self._model_settings = {"components": components, "correlation": correlation, **prior}
        # built once here for its checks: errors come before long work
        self._model()

    def _model(self, weights=None):
        return finite_mixture_model(
            self.response, self.predictors, weights=weights, **self._model_settings
        )

    @property
    def records(self):
        """Number of records n."""
        return self.response.size

    def fit(self, weights=None, *, draws=1000, random_seed=None, progress=False):
        """Draw from the pseudo posterior: see :func:`fit_pymc`."""
        return fit_pymc(
            self._model(weights),
            draws=draws,
            chains=self.chains,
            warmup=self.warmup,
            random_seed=random_seed,
            progress=progress,
        )

    def log_likelihood(self, fit):
        """Log-likelihood of every record at every draw of a fit, an array (chain, draw, record)."""
        return fit["log_likelihood"]["response"]

    def predict(self, fit, *, releases, random_seed=None):
        """Draw synthetic responses: see :meth:`ppm.FiniteMixture.predict`."""
        return predict_mixture(self.predictors, fit, releases, random_seed)
