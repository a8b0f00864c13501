"""Finite mixture of regressions: the paper's synthesizer for income, and our sampler for it."""

import os
from dataclasses import dataclass
from math import exp, lgamma

import numpy as np
from scipy.linalg import lapack

from ppm._threads import one_thread
from ppm._validation import check_count, check_number, check_weights
from ppm.synthesizers import record_passes
from ppm.synthesizers.base import choose_draws
from ppm.synthesizers.chains import progress_bar, run_chains
from ppm.synthesizers.label_free import LabelFreeMoves
from ppm.synthesizers.numerics import inverse_gamma, log_gamma_draws, log_sum_exp, slice_draw


class FiniteMixture:
    r"""Finite mixture of normal regressions, fitted with record weights by Metropolis within Gibbs.

    The model, for record i with predictors :math:`x_i` and one of K mixture components
    :math:`z_i`:

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
    response : array_like, shape (records,)
        The confidential response y (for income: its logarithm).
    predictors : array_like, shape (records, predictors)
        The predictors X, with a column of ones if an intercept is wanted. Columns should be of
        order one: the scales of their coefficients share one kind of prior.
    components : int, default 10
        Number K of mixture components, chosen larger than needed: the sparse Dirichlet prior
        empties the superfluous ones.
    chains : int, default 2
        Number of independent chains, from dispersed starting points.
    warmup : int, default 1000
        Sweeps of each chain that are thrown away.
    thin : int, default 1
        Sweeps for each kept draw: a larger value explores further in the same memory.
    concentration_prior : pair of float, default (1, 1)
        Shape and rate of the Gamma prior of the concentration a.
    coefficient_df : float, default 3
        Degrees of freedom ν of the half-t prior of each coefficient scale.
    coefficient_scale : float or array_like of shape (predictors,), default 1
        Scale of that half-t prior.
    residual_df, residual_scale : float, default 3 and 1
        Degrees of freedom and scale of the half-t prior of each :math:`\sigma_k`.
    blocks : int, optional
        Into how many blocks the coefficient vector of a component is split when weights differ
        from 1; by default found during warm-up, so that about half of the proposals are accepted.
    parallel : bool, optional
        Whether each chain runs in a process of its own. By default this happens when the work is
        large enough to repay the start of the processes. The draws are the same either way.

    Raises
    ------
    ValueError
        If an argument has the wrong shape, is not finite, or lies outside its range.

    Notes
    -----
    The model of Savitsky, Williams and Hu (2022), appendix B, with one difference. The appendix
    gives the correlation matrix Ω of the coefficients a uniform prior, LKJ(1). This sampler uses
    the conjugate scale mixture of inverse Wishart distributions of Huang and Wand (2013): each
    scale :math:`\sigma_{\beta,r}` has the same half-t prior, but the prior of Ω is
    **not** uniform over correlation matrices. Each single correlation ρ has a density
    proportional to :math:`(1 - \rho^2)^{\nu/2 - 1}`: uniform at ν = 2, and
    :math:`(1 - \rho^2)^{1/2}` at the default ν = 3, however many predictors there are, where LKJ(1)
    draws it towards 0 as their number R grows, :math:`(1 - \rho^2)^{(R - 2)/2}`. For LKJ(1) see
    :func:`ppm.synthesizers.pymc_models.finite_mixture_model`. The appendix leaves open K, the prior
    of a and the scale of the half-t prior of :math:`\sigma_\beta`: the defaults are ours.

    At weights of 1 this is blocked Gibbs sampling. At other weights Gibbs is not available, because
    :math:`f_i^{\alpha_i}` does not factor over labels. The sampler draws the labels as always,
    so that the joint target is prior × :math:`\prod_i f_i^{\alpha_i - 1} \pi_{z_i} N_{z_i}`,
    proposes from the conditional in which record i counts :math:`\alpha_i` times, and accepts with
    log ratio

    .. math::

        \sum_i (\alpha_i - 1)(\log f_i' - \log f_i)
        + \sum_{z_i = k} (1 - \alpha_i)(\log N_k' - \log N_k),

    which is 0 when all weights are 1. The pseudo posterior is exact: the proposals only decide how
    fast it is reached. How pairs of components share their mixture weight is also drawn with
    the labels left out, without which superfluous components take thousands of sweeps to empty.

    Chains can still miss a part of the posterior. On the survey data at weights below 1, chains
    started in two groups kept most records in one component, where chains started with all
    components occupied split them among two or three; none crossed over in 2,400 sweeps.
    All chains here start in the second way, so that R-hat between them does not show this.

    Where numba is installed, the passes over the records are compiled when the first fit starts.
    That takes a few seconds, once: the result is kept in a file for later processes, if there is a
    folder for it. Without numba, NumPy gives the same draws to rounding, about three times slower.

    The appendix's prior does not keep :math:`\sigma_k` away from 0. Where records with a total
    weight of 2 or more agree in response and predictors, the likelihood of a component that
    shrinks onto them has no finite integral, and strictly the posterior is improper.
    Chains were not seen to find such a place among thousands of records with a few equal
    pairs; where many records agree they can, and :meth:`fit` then ends with an error.
    """

    # its chains are left to run_chains
    concurrent_fits = True

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
        blocks=None,
        parallel=None,
    ):
        self.response, self.predictors = check_regression(response, predictors)
        self.components = check_count("components", components)
        self.chains = check_count("chains", chains)
        self.warmup = check_count("warmup", warmup, at_least=0)
        self.thin = check_count("thin", thin)
        self.prior = check_prior(
            self.predictors.shape[1],
            concentration_prior=concentration_prior,
            coefficient_df=coefficient_df,
            coefficient_scale=coefficient_scale,
            residual_df=residual_df,
            residual_scale=residual_scale,
        )
        self.blocks = None if blocks is None else check_count("blocks", blocks)
        if parallel is not None and not isinstance(parallel, (bool, np.bool_)):
            raise ValueError(f"parallel must be True, False or None; got {parallel!r}")
        self.parallel = parallel

    @property
    def records(self):
        """Number of records n."""
        return self.response.size

    def fingerprint(self):
        """Data and settings that determine a fit, by name: see :class:`ppm.Synthesizer`."""
        # where the chains run changes no draw
        return {name: value for name, value in vars(self).items() if name != "parallel"}

    def fit(self, weights=None, *, draws=1000, random_seed=None, progress=False, initial=None):
        r"""Draw from the pseudo posterior with these weights.

        Parameters
        ----------
        weights : array_like, shape (records,), optional
            Weights α in [0, 1]; all 1 by default.
        draws : int, default 1000
            Kept draws a chain, 1 or more.
        random_seed : int, SeedSequence or Generator, optional
            Source of randomness.
        progress : bool, default False
            Whether to show a progress bar (needs tqdm) on the error stream.
        initial : xarray.DataTree, optional
            An earlier fit of a model of the same size. Each chain starts where a chain of that fit
            ended, instead of at dispersed random points.

        Returns
        -------
        xarray.DataTree
            ``posterior``: ``pi`` (chain, draw, component), ``beta`` (…, component, predictor),
            ``sigma`` (…, component), ``concentration`` (…) and ``coefficient_scale``
            (…, predictor), the :math:`\sigma_\beta` of the model.
            ``log_likelihood``: ``response`` (chain, draw, record), the unweighted
            :math:`\log f_i`, also for records of weight 0.
            ``sample_stats`` (chain, draw): ``weighted_log_likelihood``, ``occupied_components``
            (components that some record of positive weight is assigned to), and
            ``acceptance_rate`` by ``block_kind``, NaN where a sweep had no such block.
            Component numbers have no meaning of their own: they may differ between chains.

        Raises
        ------
        ValueError
            If the weights, the number of draws or ``initial`` do not fit the model.
        RuntimeError
            If a component collapses onto records that it fits exactly (see the notes above).
        KeyboardInterrupt
            If interrupted; the chains' processes end first.
        """
        records, size = self.records, self.predictors.shape[1]
        weights = np.ones(records) if weights is None else check_weights(weights, records)
        draws = check_count("draws", draws)
        starts = _starting_points(initial, self.chains, self.components, size)
        # drawn from the generator, not spawned from a caller's SeedSequence, which would change it
        rng = np.random.default_rng(random_seed)
        seeds = np.random.SeedSequence(rng.integers(2**63, size=4).tolist()).spawn(self.chains)
        jobs = [
            _Job(
                self.response,
                self.predictors,
                weights,
                self.components,
                self.prior,
                self.blocks,
                self.warmup,
                draws,
                self.thin,
                seed,
                start,
            )
            for seed, start in zip(seeds, starts, strict=True)
        ]
        parallel = self.parallel
        if parallel is None:
            # a process takes a second or two to start; a sweep, for each product below, about
            # 7e-10 s if the passes are compiled and 2e-9 s if not
            work = records * size * self.components * (draws * self.thin + self.warmup)
            parallel = work > 3e9 and (os.cpu_count() or 1) > 1
        # compiled here, once: the chains' processes then load the result
        record_passes.fastest()
        with progress_bar(progress, sum(job.sweeps for job in jobs)) as advance:
            results = run_chains(_run_chain, jobs, advance, parallel=parallel)
        return _data_tree(results)

    def log_likelihood(self, fit):
        """Log-likelihood of every record at every draw of a fit, an array (chain, draw, record)."""
        return fit["log_likelihood"]["response"]

    def predict(self, fit, *, releases, random_seed=None, labels="prior"):
        r"""Draw synthetic responses for all records, each database from one draw of θ.

        Parameters
        ----------
        fit : xarray.DataTree
            What :meth:`fit` returned.
        releases : int
            Number m of synthetic databases, 1 or more.
        random_seed : int, SeedSequence or Generator, optional
            Source of randomness.
        labels : {"prior", "conditional"}, default "prior"
            Where a record's component comes from: the mixture weights π, or, as in the paper, the
            record's full conditional distribution. **With "conditional", ε does not cover the
            synthetic data.**

        Returns
        -------
        xarray.DataArray, dimensions (release, record)
            Synthetic responses.

        Raises
        ------
        ValueError
            If ``releases`` is not a whole number of at least 1 or ``labels`` is something else.

        Notes
        -----
        The guarantee belongs to the draw of θ, and passes on to whatever is computed from θ and
        public values alone. With the label from π, the synthetic response is such a thing. The
        full conditional of Savitsky, Williams and Hu (2022), appendix B,
        :math:`\Pr(z_i = k) \propto \pi_k N(y_i \mid x_i'\beta_k, \sigma_k)`, looks at the
        confidential response :math:`y_i` a second time, outside the pseudo posterior and with its
        full weight: also a record whose weight is 0. An outlying record then gets a synthetic
        response from the component that is nearest to its own. This second use is not in ε, and
        nothing in the paper bounds it: keep it for comparison with the paper.
        """
        return predict_mixture(
            self.predictors, fit, releases, random_seed,
            response=_labelling_response(labels, self.response),
        )


def check_regression(response, predictors):
    """Return response (records,) and predictors (records, predictors) as finite float64 arrays.

    Raises
    ------
    ValueError
        If shapes disagree or a value is missing or infinite.
    """
    arrays = []
    for name, values, dimensions in (("response", response, 1), ("predictors", predictors, 2)):
        try:
            # a copy, so that later changes by the caller do not reach the model
            values = np.array(values, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(
                f"{name} must be a {dimensions}-dimensional array of numbers"
            ) from None
        if values.ndim != dimensions or values.size == 0:
            raise ValueError(
                f"{name} must be a non-empty {dimensions}-dimensional array; "
                f"got shape {values.shape}"
            )
        wrong = ~np.isfinite(values)
        if wrong.any():
            raise ValueError(
                f"{name} must be finite; record {np.argwhere(wrong)[0][0]} is not "
                f"({np.count_nonzero(wrong)} values are NaN or infinite)"
            )
        arrays.append(values)
    if arrays[0].size != arrays[1].shape[0]:
        raise ValueError(
            f"predictors has {arrays[1].shape[0]} rows for the {arrays[0].size} records of "
            "response; accepted: one row a record"
        )
    return arrays


@dataclass(frozen=True)
class Prior:
    """Settings of the prior of the finite mixture: see :class:`FiniteMixture`."""

    concentration_shape: float
    concentration_rate: float
    coefficient_df: float
    coefficient_scale: np.ndarray
    residual_df: float
    residual_scale: float


def check_prior(
    size, *, concentration_prior, coefficient_df, coefficient_scale, residual_df, residual_scale
):
    """Return the checked :class:`Prior` for ``size`` predictors.

    Raises
    ------
    ValueError
        If a setting is out of range.
    """
    try:
        shape, rate = concentration_prior
    except (TypeError, ValueError):
        raise ValueError(
            "concentration_prior must be a pair of numbers, shape and rate of a Gamma "
            f"distribution; got {concentration_prior!r}"
        ) from None
    try:
        scales = np.broadcast_to(np.asarray(coefficient_scale, dtype=np.float64), (size,)).copy()
    except (TypeError, ValueError):
        scales = np.full(size, np.nan)
    if not np.all((scales > 0) & np.isfinite(scales)):
        raise ValueError(
            "coefficient_scale must be a finite number above 0, or one for each of the "
            f"{size} predictors; got {coefficient_scale!r}"
        )
    return Prior(
        concentration_shape=check_number("concentration_prior[0]", shape, above=0),
        concentration_rate=check_number("concentration_prior[1]", rate, above=0),
        coefficient_df=check_number("coefficient_df", coefficient_df, above=0),
        coefficient_scale=scales,
        residual_df=check_number("residual_df", residual_df, above=0),
        residual_scale=check_number("residual_scale", residual_scale, above=0),
    )


def component_log_densities(response, predictors, beta, sigma):
    """Normal log-density of every record under every component, shape (components, records)."""
    return record_passes.log_densities(response, beta @ predictors.T, sigma)


def mixture_log_likelihood(response, predictors, log_pi, beta, sigma):
    """Log-likelihood of every record under the mixture, shape (records,), in nats."""
    return log_sum_exp(
        log_pi[:, None] + component_log_densities(response, predictors, beta, sigma)
    )


def _labelling_response(labels, response):
    """The response that the labels may look at: none, unless they are asked to."""
    if labels not in ("prior", "conditional"):
        raise ValueError(f'labels must be "prior" or "conditional"; got {labels!r}')
    return response if labels == "conditional" else None


def predict_mixture(predictors, fit, releases, random_seed, *, response=None):
    """Draw synthetic responses from a fit: see :meth:`FiniteMixture.predict`.

    With a ``response``, the labels come from their full conditional distribution given it.
    """
    import xarray as xr

    releases = check_count("releases", releases)
    rng = np.random.default_rng(random_seed)
    posterior = fit["posterior"].dataset
    picked = choose_draws(posterior, releases, rng)
    pi, beta, sigma = (posterior[name].values[picked] for name in ("pi", "beta", "sigma"))
    records = predictors.shape[0]
    synthetic = np.empty((releases, records))
    for row, shares, coefficients, scales in zip(synthetic, pi, beta, sigma, strict=True):
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
    return xr.DataArray(synthetic, dims=("release", "record"), name="response")


def _conditional_labels(uniforms, response, predictors, pi, beta, sigma):
    """One label for each record, by inverting its own distribution over the components."""
    with np.errstate(divide="ignore"):
        log_joint = np.log(pi)[:, None] + component_log_densities(
            response, predictors, beta, sigma
        )
    edges = np.cumsum(np.exp(log_joint - log_joint.max(axis=0)), axis=0)
    return (uniforms * edges[-1] >= edges).sum(axis=0)


class _Sampler(LabelFreeMoves):
    """State of one chain, and the moves that change it.

    Arrays by component and record are (components, records): a component's row is contiguous.
    ``corrected=False`` leaves the Metropolis correction out, which is exact at weights of 1 only.
    ``passes`` is the module whose functions go through the records: compiled if possible.
    """

    KINDS = ("coefficients", "residual_scale", "mixture_weights", "empty_components")

    def __init__(
        self, response, predictors, weights, components, prior, blocks, rng, passes=None
    ):
        self.passes = record_passes.fastest() if passes is None else passes
        self.y, self.X, self.alpha = response, predictors, weights
        self.design = self.passes.Design(predictors)
        self.rest_alpha = 1.0 - weights
        self.K, self.R = components, predictors.shape[1]
        self.prior, self.rng = prior, rng
        self.corrected = bool(np.any(self.rest_alpha))
        self.adapt = blocks is None
        self.log_blocks = np.log(min(4 if blocks is None else blocks, self.R))
        self.accepted = np.zeros(len(self.KINDS))
        self.proposed = np.zeros(len(self.KINDS))

    # ---- starting points ------------------------------------------------------------------

    def start(self, start):
        """Take over the parameters of an earlier draw, or begin at dispersed random labels."""
        prior = self.prior
        self.residual_aux = np.full(self.K, prior.residual_scale**2)
        self.coefficient_aux = prior.coefficient_scale**2
        self.labels = None
        if start is not None:
            self.beta, self.sigma = start["beta"].copy(), start["sigma"].copy()
            with np.errstate(divide="ignore"):
                # a stored weight may have underflowed to 0
                self.log_pi = np.maximum(np.log(start["pi"]), -700.0)
            self.concentration = float(start["concentration"])
            self.update_densities()
            return
        rng, root = self.rng, np.sqrt(self.alpha)
        # one regression for all records, with a little shrinkage in case columns are collinear
        gram = (self.X.T * self.alpha) @ self.X
        ridge = 1e-6 * (np.trace(gram) / self.R + 1.0)
        common = np.linalg.solve(
            gram + ridge * np.eye(self.R), self.X.T @ (self.alpha * self.y)
        )
        residual = self.y - self.X @ common
        spread = np.sqrt((root @ (root * residual**2) + 1e-8) / (self.alpha.sum() + 1e-8))
        # labels by rank of the residual, blurred differently in each chain. All components start
        # occupied: a sampler of this kind empties components readily and fills them rarely
        noisy = residual + spread * rng.uniform(0.1, 1.0) * rng.standard_normal(residual.size)
        rank = np.argsort(np.argsort(noisy))
        self.labels = rank * self.K // max(residual.size, 1)
        self.beta = np.tile(common, (self.K, 1))
        self.sigma = np.full(self.K, spread)
        self.concentration = 1.0
        counts = np.bincount(self.labels, minlength=self.K) + 1.0
        self.log_pi = np.log(counts / counts.sum())
        self.update_densities()

    # ---- likelihood bookkeeping -----------------------------------------------------------

    def update_densities(self):
        """Recompute log N_k and log f of every record from the parameters."""
        self.log_density = self.log_densities(self.beta, self.sigma)
        self.update_reference()

    def log_densities(self, beta, sigma):
        """Normal log-density of every record under components with these parameters."""
        return self.passes.log_densities(self.y, self.design.times(beta), sigma)

    def update_reference(self):
        """Recompute log f, and the terms of f scaled by the largest, from log N_k."""
        self.top, self.scaled, self.log_f = self.passes.reference(self.log_pi, self.log_density)

    def update_terms(self, rows):
        """As :meth:`update_reference` where only the mixture weights of some rows changed."""
        self.log_f, self.scaled[rows] = self.passes.replace_terms(
            rows, self.log_pi[rows], self.log_density, rows, *self.terms()
        )

    def terms(self):
        """What the passes over the records read, in the order of their arguments."""
        return self.log_pi, self.log_density, self.scaled, self.top

    def log_f_without(self, *left_out):
        """Log of f_i without the terms of some components; -inf if no others are there."""
        return self.passes.log_f_without(left_out, *self.terms())

    def thresholds(self, count):
        """Metropolis decisions: what log ratios must reach."""
        return -self.rng.standard_exponential(count)

    def accept(self, kind, log_ratio):
        """Metropolis decision; a ratio that is not a number is a rejection."""
        self.proposed[kind] += 1
        accepted = log_ratio >= self.thresholds(1)[0]
        self.accepted[kind] += accepted
        return accepted

    def try_terms(self, kind, rows, log_shares, densities=None, members=0.0):
        """Accept or reject new mixture weights of components, and new log N_k if given.

        ``members`` is the part of the log ratio that comes from the components' members. Keeps the
        books of what belongs to the records if accepted, but for ``log_pi``.
        """
        given = densities is not None
        log_f, scaled = self.passes.replace_terms(
            rows,
            log_shares,
            densities if given else self.log_density,
            np.arange(rows.size) if given else rows,
            *self.terms(),
        )
        change = self.passes.weighted_change(self.rest_alpha, log_f, self.log_f)
        if not self.accept(kind, members - change):
            return False
        if given:
            self.log_density[rows] = densities
        self.scaled[rows] = scaled
        self.log_f = log_f
        return True

    # ---- moves ----------------------------------------------------------------------------

    def sweep(self):
        """One pass over all blocks."""
        self.accepted[:] = 0
        self.proposed[:] = 0
        # exp may overflow and log meet 0 in places that log_f_without then repairs
        with np.errstate(over="ignore", divide="ignore", invalid="ignore", under="ignore"):
            if self.labels is None:
                if self.corrected:
                    # without correction the densities were computed last
                    self.update_reference()
                self.share_mixture_weight()
            self.draw_labels()
            self.draw_coefficient_covariance()
            for k in range(self.K):
                members = self.members[k]
                if members.size:
                    self.draw_component(k, members)
            self.draw_residual_aux()
            self.draw_concentration()
            if self.corrected:
                self.draw_mixture_weight_pairs()
            else:
                self.draw_mixture_weights()
                self.update_densities()

    def draw_labels(self):
        """Labels given the parameters: ordinary responsibilities, whatever the weights.

        They are drawn from the terms of f as they stand: moves before this one keep those.
        """
        if self.labels is None:
            uniforms = self.rng.random(self.y.size)
            self.labels = self.passes.draw_labels(self.scaled, uniforms)
        labels, self.labels = self.labels, None
        order, self.count, self.weight = self.passes.group_by_label(labels, self.alpha, self.K)
        self.members = np.split(order, np.cumsum(self.count)[:-1])

    def draw_coefficient_covariance(self):
        """Covariance of the coefficients, alone and together with the empty components.

        Given all coefficients it is conjugate. Empty components, drawn from the prior, hold it
        where it is; so it is drawn from the occupied components alone, and the empty ones with it.
        """
        empty = np.flatnonzero(self.count == 0)
        if self.corrected or not empty.size:
            self.covariance = self.propose_covariance(np.arange(self.K))
        if empty.size:
            self.draw_empty_components(empty)
        prior, df = self.prior, self.prior.coefficient_df
        self.precision = self.covariance.precision()
        self.coefficient_aux = inverse_gamma(
            0.5 * (df + self.R),
            df * np.diag(self.precision) + 1.0 / prior.coefficient_scale**2,
            self.rng,
        )

    def propose_covariance(self, components):
        """Draw from the conjugate conditional given the coefficients of these components."""
        rng, R, df = self.rng, self.R, self.prior.coefficient_df
        beta = self.beta[components]
        scale = beta.T @ beta
        scale.flat[:: R + 1] += 2.0 * df / self.coefficient_aux
        # Bartlett: the precision is Wishart, L^-T A A' L^-1
        lower = _cholesky(scale)
        bartlett = np.tril(rng.standard_normal((R, R)), -1)
        degrees = df + R - 1.0 + len(components) - np.arange(R)
        bartlett.flat[:: R + 1] = np.sqrt(rng.chisquare(degrees))
        return _Covariance(lower, bartlett)

    def draw_empty_components(self, empty):
        """Covariance given the occupied components, then the empty ones from their prior."""
        prior, rng = self.prior, self.rng
        covariance = self.propose_covariance(np.flatnonzero(self.count))
        beta = rng.standard_normal((empty.size, self.R)) @ covariance.root().T
        aux = inverse_gamma(0.5, np.full(empty.size, prior.residual_scale**-2.0), rng)
        df = prior.residual_df
        sigma = np.sqrt(inverse_gamma(0.5 * df, df / aux, rng))
        self.proposed[3] += 1
        if self.corrected:
            log_density = self.log_densities(beta, sigma)
            self.proposed[3] -= 1
            if not self.try_terms(3, empty, self.log_pi[empty], log_density):
                return
        else:
            self.accepted[3] += 1
        self.covariance = covariance
        self.beta[empty], self.sigma[empty], self.residual_aux[empty] = beta, sigma, aux

    def draw_component(self, k, members):
        """Coefficients, then scale, of a component with members."""
        rng, alpha, sigma = self.rng, self.alpha[members], self.sigma[k]
        y = self.y[members]
        precision, half = self.design.moments(members, alpha, y)
        precision /= sigma**2
        precision += self.precision
        lower = _cholesky(precision)
        half = _solve(lower, half / sigma**2)
        # β = L^-T (half + ε): in ε the conditional is standard normal, blocks are independent
        fresh = rng.standard_normal(self.R)
        if not self.corrected:
            self.proposed[:2] += 1
            self.accepted[:2] += 1
            self.beta[k] = _solve(lower, half + fresh, transposed=True)
            residual = y - self.X[members] @ self.beta[k]
            self.sigma[k] = self.propose_sigma(k, residual, alpha)
            return
        blocks = self.number_of_blocks()
        steps = np.zeros((blocks, self.R))
        steps[np.arange(self.R) % blocks, rng.permutation(self.R)] = 1.0
        steps *= fresh - (lower.T @ self.beta[k] - half)
        steps = np.ascontiguousarray(_solve(lower, steps.T, transposed=True).T)
        moved = self.design.times(np.vstack([steps, self.beta[k]]))
        rest = self.passes.rest_of(k, *self.terms())
        rest_members = self.rest_members(members)
        accepted, residual, self.log_f = self.passes.try_steps(
            k, moved[:-1], self.thresholds(blocks), self.y - moved[-1], sigma, rest,
            rest_members, self.rest_alpha, (*self.terms(), self.log_f),
        )
        self.beta[k] += accepted @ steps
        sigma = self.propose_sigma(k, residual[members], alpha)
        scale_accepted, self.log_f = self.passes.try_scale(
            k, sigma, self.thresholds(1)[0], residual, self.sigma[k], rest,
            rest_members, self.rest_alpha, (*self.terms(), self.log_f),
        )
        if scale_accepted:
            self.sigma[k] = sigma
        self.proposed[:2] += blocks, 1
        self.accepted[:2] += np.count_nonzero(accepted), scale_accepted

    def rest_members(self, members):
        """1 - α of the member records, 0 for all others."""
        rest = np.zeros(self.y.size)
        rest[members] = self.rest_alpha[members]
        return rest

    def propose_sigma(self, k, residual, alpha):
        df = self.prior.residual_df
        variance = inverse_gamma(
            0.5 * (df + alpha.sum()),
            df / self.residual_aux[k] + 0.5 * (alpha @ residual**2),
            self.rng,
        )
        return np.sqrt(variance)

    def draw_residual_aux(self):
        prior = self.prior
        self.residual_aux = inverse_gamma(
            0.5 * (prior.residual_df + 1.0),
            prior.residual_df / self.sigma**2 + 1.0 / prior.residual_scale**2,
            self.rng,
        )

    def draw_mixture_weights(self):
        log_gamma = log_gamma_draws(self.concentration / self.K + self.weight, self.rng)
        self.log_pi = log_gamma - log_sum_exp(log_gamma)
        self.proposed[2] += 1
        self.accepted[2] += 1

    def draw_mixture_weight_pairs(self):
        """Redistribute the mixture weight of pairs of components, in a random pairing."""
        rng = self.rng
        order = rng.permutation(self.K)
        rest_count = self.count - self.weight
        for pair in order[: 2 * (self.K // 2)].reshape(-1, 2):
            log_gamma = log_gamma_draws(self.concentration / self.K + self.weight[pair], rng)
            share = log_gamma - np.logaddexp(*log_gamma)
            log_pi = share + np.logaddexp(*self.log_pi[pair])
            change = log_pi - self.log_pi[pair]
            if self.try_terms(2, pair, log_pi, members=rest_count[pair] @ change):
                self.log_pi[pair] = log_pi

    def draw_concentration(self):
        """Concentration a, together with how the empty components share their mixture weight.

        Tiny mixture weights of empty components say almost exactly which a they came from, and
        hold it there. So a is drawn given the weights of the occupied components and the total
        of the empty ones, by slice sampling of log a, and the shares of that total with it.
        """
        prior, rng, K = self.prior, self.rng, self.K
        empty = np.flatnonzero(self.count == 0)
        log_pi = self.log_pi[self.count > 0].sum()
        if empty.size:
            total = log_sum_exp(self.log_pi[empty])
            log_pi += empty.size * total

        def log_density(x):
            # beyond this even logarithms of the mixture weights leave the range of floats
            if abs(x) > 600.0:
                return -np.inf
            a = exp(x)
            normaliser = lgamma(a) - (K - empty.size) * lgamma(a / K)
            if empty.size:
                normaliser -= lgamma(empty.size * a / K)
            return (
                normaliser
                + (a / K) * log_pi
                + prior.concentration_shape * x
                - prior.concentration_rate * a
            )

        concentration = float(np.exp(slice_draw(np.log(self.concentration), log_density, rng)))
        if empty.size > 1:
            log_gamma = log_gamma_draws(np.full(empty.size, concentration / K), rng)
            shares = total + log_gamma - log_sum_exp(log_gamma)
            if self.corrected and not self.try_terms(2, empty, shares):
                return
            self.log_pi[empty] = shares
        self.concentration = concentration

    # ---- adaptation and output ------------------------------------------------------------

    def number_of_blocks(self):
        return int(np.clip(round(np.exp(self.log_blocks)), 1, self.R))

    def adapt_blocks(self, sweep):
        """More blocks when too few proposals are accepted, fewer when too many."""
        if self.adapt and self.proposed[0]:
            rate = self.accepted[0] / self.proposed[0]
            self.log_blocks += 2.0 * (0.5 - rate) / np.sqrt(sweep + 1.0)
            self.log_blocks = np.clip(self.log_blocks, 0.0, np.log(self.R))

    def coefficient_scale(self):
        return np.sqrt((self.covariance.root() ** 2).sum(axis=1))


@dataclass(frozen=True)
class _Covariance:
    """A covariance matrix V with precision L^-T A A' L^-1, from lower triangular L and A."""

    lower: np.ndarray
    bartlett: np.ndarray

    def precision(self):
        root = _solve(self.lower, self.bartlett, transposed=True)
        return root @ root.T

    def root(self):
        """L A^-T, a matrix C with V = C C'."""
        return _solve(self.bartlett, self.lower.T).T


# SciPy's own functions take longer to check their arguments than LAPACK takes at this size


def _cholesky(matrix):
    """Lower triangular L with L L' = the matrix, of which the lower triangle is read."""
    lower, failed = lapack.dpotrf(matrix, lower=1)
    if failed:
        raise np.linalg.LinAlgError("matrix is not positive definite")
    return lower


def _solve(lower, right, transposed=False):
    """L^-1 or L^-T times one or several columns."""
    solution, failed = lapack.dtrtrs(lower, right, lower=1, trans=int(transposed))
    if failed:
        raise np.linalg.LinAlgError("matrix is singular")
    return solution


@dataclass(frozen=True)
class _Job:
    """What one chain needs to run, in a form that can be sent to another process."""

    response: np.ndarray
    predictors: np.ndarray
    weights: np.ndarray
    components: int
    prior: Prior
    blocks: int | None
    warmup: int
    draws: int
    thin: int
    seed: np.random.SeedSequence
    start: dict | None

    @property
    def sweeps(self):
        return self.warmup + self.draws * self.thin


def _run_chain(job, report=lambda sweeps: None):
    """Run one chain and return its kept draws as a dict of arrays with the draw first."""
    K, R, S = job.components, job.predictors.shape[1], job.draws
    # a record of weight 0 has the factor 1: it takes no part until its log-likelihood is wanted
    active = job.weights > 0
    everyone = bool(active.all())
    out = {
        "pi": np.empty((S, K)),
        "beta": np.empty((S, K, R)),
        "sigma": np.empty((S, K)),
        "concentration": np.empty(S),
        "coefficient_scale": np.empty((S, R)),
        "response": np.empty((S, active.size)),
        "weighted_log_likelihood": np.empty(S),
        "occupied_components": np.empty(S, dtype=np.int64),
        "acceptance_rate": np.empty((S, len(_Sampler.KINDS))),
    }
    with one_thread():
        sampler = _Sampler(
            job.response[active],
            job.predictors[active],
            job.weights[active],
            K,
            job.prior,
            job.blocks,
            np.random.default_rng(job.seed),
        )
        sampler.start(job.start)
        # from a rough start most corrected proposals are rejected: the first sweeps of warm-up go
        # without the correction, towards where the proposals point
        rough = min(100, job.warmup // 2) if job.start is None else 0
        corrected = sampler.corrected
        for number in range(job.sweeps):
            sampler.corrected = corrected and number >= rough
            try:
                sampler.sweep()
            except np.linalg.LinAlgError:
                raise RuntimeError(
                    "a mixture component collapsed onto records that it fits exactly, where the "
                    f"density has no bound (smallest scale {sampler.sigma.min():.1e}); records "
                    "that agree in response and predictors can do that"
                ) from None
            if number % 10 == 0:
                report(number)
            if number < job.warmup:
                if sampler.corrected:
                    sampler.adapt_blocks(number - rough)
                continue
            s, behind = divmod(number - job.warmup, job.thin)
            if behind < job.thin - 1:
                continue
            out["pi"][s] = np.exp(sampler.log_pi)
            out["beta"][s] = sampler.beta
            out["sigma"][s] = sampler.sigma
            out["concentration"][s] = sampler.concentration
            out["coefficient_scale"][s] = sampler.coefficient_scale()
            log_lik = out["response"][s]
            log_lik[active] = sampler.log_f
            if not everyone:
                log_lik[~active] = mixture_log_likelihood(
                    job.response[~active],
                    job.predictors[~active],
                    sampler.log_pi,
                    sampler.beta,
                    sampler.sigma,
                )
            out["weighted_log_likelihood"][s] = sampler.alpha @ sampler.log_f
            out["occupied_components"][s] = np.count_nonzero(sampler.count)
            with np.errstate(invalid="ignore"):
                out["acceptance_rate"][s] = sampler.accepted / sampler.proposed
    report(job.sweeps)
    return out


def _data_tree(results):
    import xarray as xr

    K, R = results[0]["beta"].shape[1:]
    draws, records = results[0]["response"].shape
    stacked = {name: np.stack([result.pop(name) for result in results]) for name in [*results[0]]}
    dims = {
        "pi": ("component",),
        "beta": ("component", "predictor"),
        "sigma": ("component",),
        "concentration": (),
        "coefficient_scale": ("predictor",),
        "response": ("record",),
        "weighted_log_likelihood": (),
        "occupied_components": (),
        "acceptance_rate": ("block_kind",),
    }
    coords = {
        "chain": np.arange(len(results)),
        "draw": np.arange(draws),
        "component": np.arange(K),
        "predictor": np.arange(R),
        "record": np.arange(records),
        "block_kind": list(_Sampler.KINDS),
    }
    groups = {
        "posterior": ("pi", "beta", "sigma", "concentration", "coefficient_scale"),
        "log_likelihood": ("response",),
        "sample_stats": ("weighted_log_likelihood", "occupied_components", "acceptance_rate"),
    }
    tree = {}
    for group, names in groups.items():
        variables = {name: (("chain", "draw", *dims[name]), stacked[name]) for name in names}
        used = {dim for variable_dims, _ in variables.values() for dim in variable_dims}
        tree[group] = xr.Dataset(variables, {dim: coords[dim] for dim in coords if dim in used})
    return xr.DataTree.from_dict(tree)


def _starting_points(initial, chains, components, predictors):
    """The last draw of a chain of an earlier fit for every chain, or None for each."""
    if initial is None:
        return [None] * chains
    try:
        posterior = initial["posterior"]
        last = {
            name: posterior[name].isel(draw=-1).values
            for name in ("pi", "beta", "sigma", "concentration")
        }
    except (KeyError, TypeError, AttributeError):
        raise ValueError("initial must be what an earlier call of fit returned") from None
    if last["beta"].shape[1:] != (components, predictors):
        raise ValueError(
            f"initial has {last['beta'].shape[1]} components and {last['beta'].shape[2]} "
            f"predictors; this model has {components} and {predictors}"
        )
    size = len(last["beta"])
    return [{name: values[c % size] for name, values in last.items()} for c in range(chains)]
