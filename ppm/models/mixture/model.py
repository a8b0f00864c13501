"""Finite mixture of regressions: the paper's synthesizer for income."""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from ppm.checks import (
    as_numbers,
    check_count,
    check_flag,
    check_number,
    check_weights,
    how_many,
    shown,
)
from ppm.mixture import passes
from ppm.mixture.censored import CensoredSampler
from ppm.mixture.chains import run_chains
from ppm.mixture.sampler import Sampler
from ppm.seeds import generator, one_thread, streams
from ppm.synthesizers.base import (
    Synthesizer,
    check_names,
    choose_draws,
    log_likelihood_from,
)
from ppm.synthesizers.progress import progress_bar
from ppm.terms import as_terms

# how far the mixture weights of a draw may be from a sum of 1: rounding in single precision
_SUM = 1e-5
# scales of priors beyond which matrices are singular to double precision
SCALES = {"at_least": 1e-6, "at_most": 1e6}


class FiniteMixture(Synthesizer):
    r"""Finite mixture of normal regressions, fitted with record weights by Markov chains.

    For record i with predictors :math:`x_i` and one of K mixture components :math:`z_i`:

    .. math::

        y_i \mid x_i, z_i \sim \mathrm{Normal}(x_i'\beta_{z_i}, \sigma_{z_i}), \qquad
        z_i \sim \pi, \qquad \pi \sim \mathrm{Dirichlet}(a/K, \dots, a/K), \qquad
        a \sim \mathrm{Gamma}, \\
        \beta_k \sim \mathrm{MVN}(0, \mathrm{diag}(\sigma_\beta)\,\Omega\,
        \mathrm{diag}(\sigma_\beta)), \qquad \sigma_k \sim \mathrm{half\text{-}t}.

    A record's likelihood is the whole mixture,
    :math:`f_i = \sum_k \pi_k N(y_i \mid x_i'\beta_k, \sigma_k)`, and the pseudo posterior raises it
    to the record's weight: prior × :math:`\prod_i f_i^{\alpha_i}`.

    Parameters
    ----------
    response : array_like (records,)
        The confidential response y (for income: its logarithm).
    predictors : array_like (records, predictors)
        The predictors X, with a column of ones for an intercept; for others make a new model. Scale
        the columns to order one: their coefficients have scales with the same prior by default.
    components : int, default 10
        Number K of mixture components, chosen larger than needed: the sparse Dirichlet prior
        empties the superfluous ones.
    chains, warmup, thin : int, default 2, 1000 and 1
        Independent chains, from dispersed starting points; sweeps that each discards first; sweeps
        per kept draw.
    concentration_prior : pair of float, default (1, 1)
        Shape and rate of the Gamma prior of the concentration a, which stays within exp(±600): at a
        shape of 0.01 that leaves 0.2 per cent of the prior out, at 0.001 a half.
    coefficient_df, coefficient_scale : float, default 3 and 1
        Degrees of freedom ν, from 0.1 to 1e6, and scale, from 1e-6 to 1e6, of the half-t prior of
        each coefficient scale. The scale may also be an array (predictors,).
    residual_df, residual_scale : float, default 3 and 1
        Those of the half-t prior of each :math:`\sigma_k`, in the same ranges.
    parallel : bool, optional
        Whether each chain runs in a process of its own; by default, where that saves time. The
        draws are the same either way.

    Notes
    -----
    The model is that of Savitsky, Williams and Hu (2022), appendix B, but for the correlation
    matrix Ω of the coefficients, which there has a uniform prior, LKJ(1). This sampler uses the
    conjugate scale mixture of inverse Wishart distributions of Huang and Wand (2013): each scale
    :math:`\sigma_{\beta,r}` has the same half-t prior, but each correlation ρ has a density
    proportional to :math:`(1 - \rho^2)^{\nu/2 - 1}`, however many predictors there are; under
    LKJ(1) it is :math:`(1 - \rho^2)^{(R - 2)/2}`, which concentrates at 0 as their number R grows.
    For LKJ(1) write the mixture in PyMC, see :class:`ppm.PyMCSynthesizer`. The appendix leaves open
    K, the prior of a and the scale of the half-t prior of :math:`\sigma_\beta`: the defaults are
    ours.

    At weights of 1 this is blocked Gibbs sampling. At other weights :math:`f_i^{\alpha_i}` does not
    factor over labels. The labels are drawn as before, so that the joint target is prior ×
    :math:`\prod_i f_i^{\alpha_i - 1} \pi_{z_i} N_{z_i}`; the proposal is the conditional in which
    record i counts :math:`\alpha_i` times, and is accepted with log ratio

    .. math::

        \sum_i (\alpha_i - 1)(\log f_i' - \log f_i)
        + \sum_{z_i = k} (1 - \alpha_i)(\log N_k' - \log N_k).

    The pseudo posterior is exact: the proposals only decide how fast the chain reaches it. How
    pairs of components share their mixture weight is also drawn with the labels integrated out;
    without this move superfluous components take thousands of sweeps to empty.

    Every chain starts with records in all components. Chains can still miss a part of the
    posterior, which R-hat does not show if all of them start on one side: the chapter on trusting a
    bound starts some on another, by ``initial`` of :meth:`fit`.

    With limits on every record's term the target is prior ×
    :math:`\exp \sum_i h(\alpha_i \log f_i)`, see :class:`ppm.Censoring`, and its own sampler takes
    slices without labels.

    Where records with a total weight of 2 or more agree in response and predictors, the posterior
    is improper, because nothing keeps :math:`\sigma_k` away from 0. Where many agree, as incomes of
    0 do, :meth:`fit` can raise a RuntimeError. Under limits every database has a fit.

    Examples
    --------
    >>> import numpy as np, ppm
    >>> x, noise = np.linspace(-1.0, 1.0, 200), np.random.default_rng(1).normal(size=200)
    >>> model = ppm.FiniteMixture(2.0 + 3.0 * x + noise, np.column_stack([np.ones(200), x]),
    ...                           components=2, warmup=200)
    >>> fit = model.fit(draws=100, random_seed=1)
    >>> model.log_likelihood(fit).shape, model.predict(fit, releases=3, random_seed=2).shape
    ((2, 100, 200), (3, 200))
    """

    takes_limits = True
    _kept_as = "response"
    _public = ("records", "components", "chains", "warmup", "thin")

    def __init__(
        self,
        response,
        predictors,
        *,
        components=10,
        chains=2,
        warmup=1000,
        thin=1,
        concentration_prior=(1.0, 1.0),
        coefficient_df=3.0,
        coefficient_scale=1.0,
        residual_df=3.0,
        residual_scale=1.0,
        parallel=None,
    ):
        self.response = check_finite("response", response, 1)
        self.predictors = check_finite("predictors", predictors, 2)
        if len(self.predictors) != self.records:
            raise ValueError(
                f"predictors has {len(self.predictors)} rows for the {self.records} "
                "records of response; accepted: one row per record"
            )
        self.components = check_count("components", components)
        self.chains = check_count("chains", chains)
        self.warmup = check_count("warmup", warmup, at_least=0)
        self.thin = check_count("thin", thin)
        shape, rate = check_pair("concentration_prior", concentration_prior)
        df = {"at_least": 0.1, "at_most": 1e6}
        self.prior = Prior(
            concentration_shape=shape,
            concentration_rate=rate,
            coefficient_df=check_number("coefficient_df", coefficient_df, **df),
            coefficient_scale=check_scales(
                "coefficient_scale", coefficient_scale, self.predictors.shape[1]
            ),
            residual_df=check_number("residual_df", residual_df, **df),
            residual_scale=check_number("residual_scale", residual_scale, **SCALES),
        )
        self.parallel = (
            parallel if parallel is None else check_flag("parallel", parallel)
        )
        self._design = passes.Design(self.predictors)

    @property
    def records(self):
        """Number of records n."""
        return self.response.size

    def fit(
        self,
        terms=None,
        *,
        draws=1000,
        random_seed=None,
        progress=None,
        initial=None,
    ):
        r"""Draw from the pseudo posterior with these terms.

        Parameters
        ----------
        terms : ppm.Terms or array_like (records,), optional
            What each record adds, or weights α, all 1 by default; without limits weights are at
            most 1.
        draws, random_seed, progress
            As for :meth:`ppm.Synthesizer.fit`.
        initial : xarray.DataTree, optional
            An earlier fit of a model of the same size. Each chain starts where a chain of that fit
            ended, instead of at a random point.

        Returns
        -------
        xarray.DataTree
            Component numbers have no meaning: they may differ between chains.

            - ``posterior``: ``pi`` (chain, draw, component), ``beta`` (…, component, predictor),
              ``sigma`` (…, component), ``concentration`` (…) and ``coefficient_scale`` (…,
              predictor), the :math:`\sigma_\beta` of the model.
            - ``log_likelihood``: ``response`` (chain, draw, record), the unweighted
              :math:`\log f_i`, also for records of weight 0. With dask installed, above 256 MiB, it
              is computed from the draws each time it is read.
            - ``sample_stats`` (chain, draw): ``weighted_log_likelihood`` (with limits, the sum of
              the terms of records with a weight above 0), and ``occupied_components``, to which
              some record of positive weight is assigned.
        """
        # ∫∫ N(y | β, σ)^α dβ dσ = ∫ σ^(1 - α) dσ, which is infinite at 0 for α of 2 or more
        unlimited = (
            "outside limits the posterior of a mixture may have no finite integral"
        )
        terms = as_terms(terms, self.records)
        if terms.limits is None:
            check_weights(terms.weights, self.records, at_most_1=unlimited)
        draws = check_count("draws", draws)
        starts = self._starting_points(initial)
        # not spawned from a caller's SeedSequence, which that would change
        seeds = streams(generator(random_seed), self.chains)
        with one_thread():
            chains = [
                _Chain(self, terms, draws, *one)
                for one in zip(seeds, starts, strict=True)
            ]
        sweeps = sum(chain.left for chain in chains)
        parallel = self.parallel
        if parallel is None:
            # a process takes a second or two to start; a sweep takes 7e-10 s times this product
            parallel = (
                sweeps / self.chains * self.predictors.size * self.components > 3e9
            )
        with progress_bar(progress, sweeps, "sweeps") as advance:
            return self._tree(run_chains(chains, advance, parallel=parallel))

    def _starting_points(self, initial):
        """For every chain the last draw of a chain of an earlier fit, or None."""
        if initial is None:
            return [None] * self.chains
        try:
            posterior, names = (
                initial["posterior"],
                ("pi", "beta", "sigma", "concentration"),
            )
            last = {name: posterior[name].isel(draw=-1).values for name in names}
        except (KeyError, TypeError, AttributeError):
            raise ValueError(
                "initial must be what an earlier call of fit returned"
            ) from None
        size, *found = last["beta"].shape
        if found != [self.components, self.predictors.shape[1]]:
            raise ValueError(
                f"initial has {found[0]} components and {found[1]} predictors; this "
                f"model has {self.components} and {self.predictors.shape[1]}"
            )
        return [
            {name: last[name][c % size] for name in last} for c in range(self.chains)
        ]

    def _tree(self, kept):
        """The fit from the kept draws of every chain."""
        dims = {
            "pi": ["component"],
            "beta": ["component", "predictor"],
            "sigma": ["component"],
            "coefficient_scale": ["predictor"],
        }
        whole = xr.Dataset()
        for name in kept[0][0]:
            values = np.array([[draw[name] for draw in chain] for chain in kept])
            whole[name] = ["chain", "draw", *dims.get(name, [])], values
        whole = whole.assign_coords(
            {dim: np.arange(size) for dim, size in whole.sizes.items()}
        )
        posterior = whole[["pi", "beta", "sigma", "concentration", "coefficient_scale"]]
        stats = whole[["weighted_log_likelihood", "occupied_components"]]
        return self.fit_of(posterior, sample_stats=stats)

    def log_likelihood_at(self, posterior):
        """Log-likelihood of every record at draws of θ: see :class:`ppm.Synthesizer`."""
        return log_likelihood_from(
            self._evaluate, posterior[["pi", "beta", "sigma"]], self.records
        )

    def _evaluate(self, posterior):
        pi, beta, sigma = self.check_parameters("posterior", posterior)
        log_lik = np.empty((*pi.shape[:2], self.records))
        with one_thread():
            for at in np.ndindex(pi.shape[:2]):
                log_lik[at] = passes.rescale(
                    *self._log_parts(pi[at], beta[at], sigma[at])
                )[2]
        log_lik[log_lik <= passes.NOTHING] = -np.inf
        return log_lik

    def check_parameters(self, name, posterior):
        """Return π, β and σ of draws if they can be that; ``name`` is that of an argument."""
        check_names(name, posterior, ["pi", "beta", "sigma"])
        posterior = posterior.transpose("chain", "draw", ...)
        # whole numbers and single precision too
        parts = (posterior[part].values for part in ("pi", "beta", "sigma"))
        pi, beta, sigma = (np.asarray(part, dtype=np.float64) for part in parts)
        columns = self.predictors.shape[1]
        # compiled code would read beyond the end of an array
        if not (*pi.shape, columns) == (*sigma.shape, columns) == beta.shape:
            raise ValueError(
                f"{name} must hold pi and sigma of shape (…, components), and beta of "
                f"shape (…, components, {columns})"
            )
        for wrong, accepted in (
            (~(sigma > 0).all(axis=-1), "sigma above 0"),
            (
                ~((pi >= 0).all(axis=-1) & (np.abs(pi.sum(axis=-1) - 1.0) <= _SUM)),
                "pi of at least 0 that sums to 1 over the components",
            ),
        ):
            if wrong.any():
                raise ValueError(
                    f"{name} must hold {accepted} {how_many(wrong.ravel(), 'draw')}"
                )
        return pi, beta, sigma

    def _log_parts(self, pi, beta, sigma):
        """Logs of π (components,) and of the densities N_k (components, records)."""
        # the share of an empty component may underflow to 0
        with np.errstate(divide="ignore"):
            log_pi = np.log(pi)
        return log_pi, passes.log_densities(
            self.response, self._design.times(beta), sigma
        )

    def predict(self, fit, *, releases, random_seed=None, labels="prior"):
        r"""Draw synthetic responses (release, record), each database from one draw of θ of a fit.

        Parameters
        ----------
        fit, releases, random_seed
            As for :meth:`ppm.Synthesizer.predict`.
        labels : {"prior", "conditional"}, default "prior"
            Where a record's component is drawn from: the mixture weights π, or, as in the paper,
            the record's full conditional distribution. **With "conditional", ε does not cover the
            synthetic data.**

        Notes
        -----
        The guarantee holds for the draw of θ, and for everything computed from θ and public values
        alone, such as a synthetic response whose label is drawn from π. The full conditional of
        Savitsky, Williams and Hu (2022), appendix B,
        :math:`\Pr(z_i = k) \propto \pi_k N(y_i \mid x_i'\beta_k, \sigma_k)`, uses the confidential
        response a second time, with its full weight even for a record whose weight is 0. Nothing in
        the paper bounds this use: take it only for comparison with the paper.
        """
        if labels not in ("prior", "conditional"):
            raise ValueError(
                f'labels must be "prior" or "conditional"; got {shown(labels)}'
            )
        releases, rng = check_count("releases", releases), generator(random_seed)
        posterior = fit["posterior"].dataset
        picked = choose_draws(posterior, releases, rng)
        draws = [posterior[name].values[picked] for name in ("pi", "beta", "sigma")]
        synthetic = np.empty((releases, self.records))
        for row, pi, beta, sigma in zip(synthetic, *draws, strict=True):
            uniforms, shares = rng.random(self.records), pi[:, None]
            if labels == "conditional":
                shares = passes.rescale(*self._log_parts(pi, beta, sigma))[1]
            edges = np.cumsum(shares, axis=0)
            label = (uniforms * edges[-1] >= edges).sum(axis=0)
            mean = (self.predictors * beta[label]).sum(axis=1)
            row[:] = mean + sigma[label] * rng.standard_normal(self.records)
        return xr.DataArray(synthetic, dims=("release", "record"), name="response")


def check_finite(name, values, dimensions):
    """Return a copy of ``values`` as float64, with so many dimensions and all finite."""
    values = as_numbers(name, values).copy()
    if values.ndim != dimensions or values.size == 0:
        raise ValueError(
            f"{name} must be a non-empty {dimensions}-dimensional array; got "
            f"{values.shape}"
        )
    # squares of larger numbers overflow; written so that NaN fails too
    wrong = ~(np.abs(values) <= 1e50)
    if wrong.any():
        raise ValueError(
            f"{name} must be finite; record {np.argwhere(wrong)[0][0]} is not "
            f"({np.count_nonzero(wrong)} values are NaN, infinite or above 1e50 in "
            "size)"
        )
    return values


def check_pair(name, values):
    """Return shape and rate of a Gamma distribution."""
    try:
        shape, rate = values
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must be a pair of numbers, shape and rate of a Gamma "
            f"distribution; got {shown(values)}"
        ) from None
    return (
        check_number(f"{name}[0]", shape, above=0),
        check_number(f"{name}[1]", rate, above=0),
    )


def check_scales(name, values, size):
    """Return a scale for each of so many predictors."""
    scales = as_numbers(name, values)
    low, high = SCALES["at_least"], SCALES["at_most"]
    if scales.shape not in ((), (size,)) or not np.all(
        (scales >= low) & (scales <= high)
    ):
        raise ValueError(
            f"{name} must be a finite number from 1e-6 to 1e6, or one for each of the "
            f"{size} predictors; got {shown(values)}"
        )
    return np.full(size, scales)


@dataclass(frozen=True)
class Prior:
    """Settings of the prior of the finite mixture: see :class:`FiniteMixture`."""

    concentration_shape: float
    concentration_rate: float
    coefficient_df: float
    coefficient_scale: np.ndarray
    residual_df: float
    residual_scale: float


def _scale_of(y):
    """A scale of the responses that outliers do not move, or the next one that is not 0."""
    if not y.any():
        return 1.0
    scales = np.median(np.abs(y - np.median(y))), np.ptp(y), np.abs(y).max()
    return next(scale for scale in scales if scale > 0)


class _Chain:
    """One chain of a fit, as :func:`ppm.mixture.chains.run_chains` runs it."""

    def __init__(self, model, terms, draws, seed, start):
        # a record of weight 0 has no term
        active = terms.weights > 0
        own, everything = terms.of(active), active.all()
        design = (
            model._design if everything else passes.Design(model.predictors[active])
        )
        of_chain = (
            model.response[active],
            design,
            # compiled functions take arrays that can be written to
            own.weights.copy(),
            model.components,
            model.prior,
            np.random.default_rng(seed),
        )
        if terms.limits is None:
            self.sampler = Sampler(*of_chain)
        else:
            self.sampler = CensoredSampler(*of_chain, terms=own)
        self.sampler.start(start)
        self.bounded = terms.limits is not None
        self.corrected = self.sampler.corrected
        # from a rough start most corrected proposals are rejected, so the first sweeps of warm-up
        # are uncorrected; under limits they would run to where f, which is unbounded, is large
        rough = start is None and not self.bounded
        self.uncorrected_sweeps = min(100, model.warmup // 2) if rough else 0
        self.warmup, self.thin, self.number = model.warmup, model.thin, 0
        self.left = model.warmup + draws * model.thin
        self.spread = _scale_of(self.sampler.y)

    def sweep(self):
        """One sweep: the draw to keep, or None."""
        sampler, number = self.sampler, self.number
        sampler.corrected = self.corrected and number >= self.uncorrected_sweeps
        try:
            sampler.sweep()
        except np.linalg.LinAlgError:
            raise RuntimeError(self.what_broke()) from None
        # with few predictors no matrix becomes singular: the scale goes on to 0, and then NaN. A
        # component with one record or none cannot collapse, nor can any under limits
        occupied = sampler.sigma[sampler.count > 1]
        if not self.bounded and not np.all(occupied > 1e-10 * self.spread):
            raise RuntimeError(self.what_broke())
        self.number, self.left = number + 1, self.left - 1
        if number < self.warmup:
            sampler.adapt(number - self.uncorrected_sweeps)
            return None
        if (self.number - self.warmup) % self.thin:
            return None
        return {
            "pi": np.exp(sampler.log_pi),
            "beta": sampler.beta.copy(),
            "sigma": sampler.sigma.copy(),
            "concentration": sampler.concentration,
            "coefficient_scale": sampler.draw_coefficient_scale(),
            "weighted_log_likelihood": sampler.total(),
            "occupied_components": np.count_nonzero(sampler.count),
        }

    def what_broke(self):
        """Why a matrix of the sampler became singular, and what to do."""
        smallest = self.sampler.sigma.min()
        if smallest > 1e-6 * self.spread:
            return (
                "the covariance of the coefficients is singular to rounding: bring predictors "
                "and coefficient_scale to order one"
            )
        return (
            "a mixture component collapsed onto records that it fits exactly, where the "
            f"density has no bound (smallest scale {smallest:.1e}); records that agree, as "
            "incomes of 0 may, can do that: take fewer components, or limits on every record's "
            "term (censor=)"
        )
