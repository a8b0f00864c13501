"""Finite mixture of regressions: the paper's synthesizer for income."""

import os
from dataclasses import dataclass

import numpy as np

from ppm._random import generator, streams
from ppm._validation import (
    as_numbers,
    check_count,
    check_number,
    check_weights,
    one_thread,
    shown,
)
from ppm.censoring import Censoring
from ppm.synthesizers.chains import progress_bar, run_chains
from ppm.synthesizers.evaluated import is_held, log_likelihood_from
from ppm.synthesizers.mixture.censored_sampler import CensoredSampler
from ppm.synthesizers.mixture.fits import data_tree, starting_points
from ppm.synthesizers.mixture.floor import FloorJob, check_floor
from ppm.synthesizers.mixture.predictive import mixture_log_likelihood, predict_mixture
from ppm.synthesizers.mixture.sampler import _Sampler, fastest_passes


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
    to the record's weight: prior × :math:`\prod_i f_i^{\alpha_i}`. With a ``floor``, a record is at
    it with probability :math:`p_i = \mathrm{expit}(x_i'\gamma)`, :math:`\gamma_r \sim
    \mathrm{Normal}(0, s)`. Its likelihood is :math:`p_i` if it is, and :math:`(1 - p_i)\,f_i`
    otherwise.

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
        Degrees of freedom ν of the half-t prior of each coefficient scale, from 0.1 to 1e6.
    coefficient_scale : float or array_like of shape (predictors,), default 1
        Scale of that half-t prior, from 1e-6 to 1e6.
    residual_df, residual_scale : float, default 3 and 1
        Degrees of freedom and scale of the half-t prior of each :math:`\sigma_k`, in the same
        ranges.
    blocks : int, optional
        Into how many blocks the coefficient vector of a component is split when weights differ
        from 1; by default found during warm-up, so that about half of the proposals are accepted.
    starting_components : int or sequence of int, optional
        How many components hold records where a chain starts, one number for all chains or one for
        each; all of them by default. With different numbers R-hat compares chains that have come
        from different sides, see the notes.
    floor : float, optional
        A value of the response, not above any other, that many records share, such as
        ``numpy.log(1.0)`` where the book raises incomes of 0 to 1 dollar. A
        density has no bound where a component shrinks onto such records, and :meth:`fit` would end
        with an error; with this option they have a probability of their own. Releases hold the
        value as it is: it must be public, and not computed from the records.
    floor_coefficient_scale : float, default 2.5
        Standard deviation s of the normal prior of each coefficient of that probability, from 1e-6
        to 100.
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
    draws it towards 0 as their number R grows, :math:`(1 - \rho^2)^{(R - 2)/2}`. For LKJ(1)
    write the mixture in PyMC, see :class:`ppm.PyMCSynthesizer`. The appendix leaves open K, the
    prior of a and the scale of the half-t prior of :math:`\sigma_\beta`: the defaults are ours.

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

    Chains can still miss a part of the posterior. On the survey data (5,658 records, 36 predictors,
    10 components) with weights of scale 0.6 and shift -0.1, chains started in one group kept nine
    tenths of the records in one component, where chains started with all components occupied
    split them between two; the weighted log-likelihoods were 26 nats apart, and a chain of
    either kind kept to its side for 12,000 sweeps. By default all chains start in the second way,
    so that R-hat between them does not show this; ``starting_components`` lets some start in the
    first. With two chains from one and two groups beside one of these, R-hat was 1.69 for the
    weighted log-likelihood and 1.10 for the largest weighted :math:`|\log f_i|` (at scale 0.5 and
    shift -0.3: 1.09 and 1.04): with such starts the bound would be withheld.

    With limits on every record's term (``censor`` in :meth:`fit`) the target is prior ×
    :math:`\exp \sum_i h(\alpha_i \log f_i)`, see :class:`ppm.Censoring`. Another sampler
    draws from it: by slices of this target, without labels, from a start drawn from the prior.
    Proposals made from residuals, as above, miss what a target under limits has far from them.

    Where numba is installed, the passes over the records are compiled when the first fit starts.
    That takes a few seconds, once: the result is kept in a file for later processes, if there is a
    folder for it. Without numba, NumPy gives the same draws to rounding, more slowly.

    The appendix's prior does not keep :math:`\sigma_k` away from 0. Where records with a total
    weight of 2 or more agree in response and predictors, the likelihood of a component that
    shrinks onto them has no finite integral, and strictly the posterior is improper.
    Chains were not seen to find such a place among thousands of records with a few equal
    pairs; where many records agree they can, and :meth:`fit` then ends with an error. Where the
    many are those with the smallest response, ``floor`` is the remedy. The mixture then knows only
    the records above the floor, and the two parts have independent pseudo posteriors, so that its
    draws are those it would have without the others. The paper has no such part.

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
        starting_components=None,
        floor=None,
        floor_coefficient_scale=2.5,
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
        self.starting_components = check_starting_components(
            starting_components, self.chains, self.components
        )
        self.floor = None
        if floor is not None:
            self.floor = check_floor(floor, floor_coefficient_scale, self.response)
        if parallel is not None and not isinstance(parallel, (bool, np.bool_)):
            raise ValueError(f"parallel must be True, False or None; got {shown(parallel)}")
        self.parallel = parallel

    @property
    def records(self):
        """Number of records n."""
        return self.response.size

    def fingerprint(self):
        """Data and settings that determine a fit, by name: see :class:`ppm.Synthesizer`."""
        # where the chains run changes no draw
        return {name: value for name, value in vars(self).items() if name != "parallel"}

    def fit(
        self, weights=None, *, draws=1000, random_seed=None, progress=False, initial=None,
        censor=None,
    ):
        r"""Draw from the pseudo posterior with these weights.

        Parameters
        ----------
        weights : array_like, shape (records,), optional
            Weights α, 0 or more, all 1 by default; without ``censor`` at most 1.
        draws : int, default 1000
            Kept draws a chain, 1 or more.
        random_seed : int, SeedSequence or Generator, optional
            Source of randomness.
        progress : bool, default False
            Whether to show a progress bar (needs tqdm) on the error stream.
        initial : xarray.DataTree, optional
            An earlier fit of a model of the same size. Each chain starts where a chain of that fit
            ended, instead of at dispersed random points.
        censor : ppm.Censoring, optional
            Public limits of every record's term: draw from prior × :math:`\exp \sum_i
            h(\alpha_i \log f_i)`. A model with a ``floor`` takes none.

        Returns
        -------
        xarray.DataTree
            ``posterior``: ``pi`` (chain, draw, component), ``beta`` (…, component, predictor),
            ``sigma`` (…, component), ``concentration`` (…) and ``coefficient_scale``
            (…, predictor), the :math:`\sigma_\beta` of the model; with a floor
            ``floor_coefficients`` (…, predictor), the :math:`\gamma`.
            ``log_likelihood``: ``response`` (chain, draw, record), the unweighted
            :math:`\log f_i`, also for records of weight 0. With a floor
            :math:`\log p_i`, a log-probability, or :math:`\log((1 - p_i)\,f_i)`. Above 256 MiB
            (``ppm.synthesizers.evaluated.HELD``) it is not held but computed from the draws
            each time it is read, the same to rounding.
            ``sample_stats`` (chain, draw): ``weighted_log_likelihood`` (with limits, the sum of the
            terms of records with a weight above 0), ``occupied_components``
            (components that some record of positive weight is assigned to), and
            ``acceptance_rate`` by ``block_kind``, NaN where a sweep had no such block.
            Component numbers have no meaning of their own: they may differ between chains.

        Raises
        ------
        ValueError
            If the weights, the number of draws or ``initial`` do not fit the model, ``censor`` is
            no :class:`ppm.Censoring`, or the model has a floor and ``censor`` is given.
        RuntimeError
            If a component collapses onto records that it fits exactly (see the notes above).
        KeyboardInterrupt
            If interrupted; the chains' processes end first.
        """
        records, size = self.records, self.predictors.shape[1]
        # ∫∫ N(y | β, σ)^α dβ dσ = ∫ σ^(1 - α) dσ: infinite at 0 for a record that counts twice
        unlimited = "outside limits the posterior of a mixture may have no finite integral"
        weights = np.ones(records) if weights is None else check_weights(
            weights, records, at_most_1="" if censor else unlimited
        )
        draws = check_count("draws", draws)
        if censor is not None:
            self._check_censor(censor)
        starts = starting_points(initial, self.chains, self.components, size, self.floor)
        # drawn from the generator, not spawned from a caller's SeedSequence, which would change it
        seeds = streams(generator(random_seed), self.chains)
        mixed = self._mixed
        kept = is_held(self.chains, draws, records)
        jobs = [
            _Job(
                self.response[mixed],
                self.predictors[mixed],
                weights[mixed],
                self.components,
                self.prior,
                self.blocks,
                self.warmup,
                draws,
                self.thin,
                seed,
                start,
                groups,
                self._floor_job(weights, seed, start),
                censor,
                kept,
            )
            for seed, start, groups in zip(seeds, starts, self.starting_components, strict=True)
        ]
        parallel = self.parallel
        if parallel is None:
            # a process takes a second or two to start; a sweep, for each product below, about
            # 7e-10 s if the passes are compiled and 2e-9 s if not
            work = records * size * self.components * (draws * self.thin + self.warmup)
            parallel = work > 3e9 and (os.cpu_count() or 1) > 1
        # compiled here, once: the chains' processes then load the result
        fastest_passes()
        with progress_bar(progress, sum(job.sweeps for job in jobs)) as advance:
            results = run_chains(_run_chain, jobs, advance, parallel=parallel)
        return data_tree(results, self.log_likelihood_at)

    @property
    def _mixed(self):
        """Which records the mixture has: all, or those above the floor."""
        return slice(None) if self.floor is None else ~self.floor.reached

    def _check_censor(self, censor):
        if not isinstance(censor, Censoring):
            raise ValueError(f"censor must be a ppm.Censoring; got {type(censor).__name__}")
        if self.floor is not None:
            raise ValueError(
                "censor keeps a record's whole term between limits, and with a floor it has two "
                "parts: leave out floor, and take a scale on which the smallest response lies near "
                "the others"
            )

    def _floor_job(self, weights, seed, start):
        if self.floor is None:
            return None
        coefficients = None if start is None else start["floor_coefficients"]
        # a stream of its own, beside that of the mixture
        (seed,) = streams(seed, 1)
        return FloorJob(self.floor, self.predictors, weights, seed, coefficients)

    def log_likelihood(self, fit):
        """Log-likelihood of every record at every draw of a fit, an array (chain, draw, record)."""
        return fit["log_likelihood"]["response"]

    def log_likelihood_at(self, posterior):
        """Log-likelihood of every record at draws of θ: see :class:`ppm.Synthesizer`."""
        names = ["pi", "beta", "sigma"] + ([] if self.floor is None else ["floor_coefficients"])
        return log_likelihood_from(self._evaluate, posterior[names], self.records)

    def _evaluate(self, posterior):
        posterior = posterior.transpose("chain", "draw", ...)
        pi, beta, sigma = (posterior[name].values for name in ("pi", "beta", "sigma"))
        log_lik = np.zeros((*pi.shape[:2], self.records))
        # an empty component's share may round to 0
        with np.errstate(divide="ignore"):
            log_pi = np.log(pi)
        response, predictors = self.response[self._mixed], self.predictors[self._mixed]
        for place in np.ndindex(pi.shape[:2]):
            if self.floor is not None:
                coefficients = posterior["floor_coefficients"].values[place]
                log_lik[place] = self.floor.log_likelihood(self.predictors, coefficients)
            log_lik[place][self._mixed] += mixture_log_likelihood(
                response, predictors, log_pi[place], beta[place], sigma[place]
            )
        return log_lik

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
            synthetic data.** With a floor, the full conditional leaves every record on its side.

        Returns
        -------
        xarray.DataArray, dimensions (release, record)
            Synthetic responses. With a floor, a record is at it with its probability; all others
            come from the mixture, whose normal components reach below the floor too.

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
            response=_labelling_response(labels, self.response), floor=self.floor,
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
        # a copy, so that later changes by the caller do not reach the model
        values = as_numbers(name, values).copy()
        if values.ndim != dimensions or values.size == 0:
            raise ValueError(
                f"{name} must be a non-empty {dimensions}-dimensional array; got {values.shape}"
            )
        # squares of larger numbers overflow, which NaN fails too
        wrong = ~(np.abs(values) <= 1e50)
        if wrong.any():
            raise ValueError(
                f"{name} must be finite; record {np.argwhere(wrong)[0][0]} is not "
                f"({np.count_nonzero(wrong)} values are NaN, infinite or above 1e50 in size)"
            )
        arrays.append(values)
    if arrays[0].size != arrays[1].shape[0]:
        raise ValueError(
            f"predictors has {arrays[1].shape[0]} rows for the {arrays[0].size} records of "
            "response; accepted: one row a record"
        )
    return arrays


def check_starting_components(numbers, chains, components):
    """Return one number of components to start from for each chain.

    Raises
    ------
    ValueError
        If a number is not from 1 to ``components``, or there is not one for each chain.
    """
    if numbers is None:
        numbers = components
    try:
        numbers = [numbers] * chains if np.ndim(numbers) == 0 else list(numbers)
    except (TypeError, ValueError):
        numbers = []
    if len(numbers) != chains:
        raise ValueError(
            f"starting_components must be a whole number, or one for each of the {chains} chains"
        )
    numbers = [check_count("starting_components", number) for number in numbers]
    if max(numbers) > components:
        raise ValueError(
            f"starting_components must be at most the {components} components; got {max(numbers)}"
        )
    return numbers


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
            f"distribution; got {shown(concentration_prior)}"
        ) from None
    try:
        scales = np.broadcast_to(np.asarray(coefficient_scale, dtype=np.float64), (size,)).copy()
    except (TypeError, ValueError):
        scales = np.full(size, np.nan)
    # beyond these limits matrices can no longer be told from singular ones in double precision
    df, scale = {"at_least": 0.1, "at_most": 1e6}, {"at_least": 1e-6, "at_most": 1e6}
    if not np.all((scales >= scale["at_least"]) & (scales <= scale["at_most"])):
        raise ValueError(
            "coefficient_scale must be a finite number from 1e-6 to 1e6, or one for each of the "
            f"{size} predictors; got {shown(coefficient_scale)}"
        )
    return Prior(
        concentration_shape=check_number("concentration_prior[0]", shape, above=0),
        concentration_rate=check_number("concentration_prior[1]", rate, above=0),
        coefficient_df=check_number("coefficient_df", coefficient_df, **df),
        coefficient_scale=scales,
        residual_df=check_number("residual_df", residual_df, **df),
        residual_scale=check_number("residual_scale", residual_scale, **scale),
    )


def _labelling_response(labels, response):
    """The response that the labels may look at: none, unless they are asked to."""
    if labels not in ("prior", "conditional"):
        raise ValueError(f'labels must be "prior" or "conditional"; got {shown(labels)}')
    return response if labels == "conditional" else None


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
    groups: int
    floor: FloorJob | None
    censor: Censoring | None
    kept: bool

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
        "weighted_log_likelihood": np.empty(S),
        "occupied_components": np.empty(S, dtype=np.int64),
        "acceptance_rate": np.empty((S, len(_Sampler.KINDS))),
    }
    if job.kept:
        out["response"] = np.empty((S, active.size))
    with one_thread():
        kind, limits = _Sampler, {}
        if job.censor is not None:
            kind, limits = CensoredSampler, {"censor": job.censor}
        sampler = kind(
            job.response[active],
            job.predictors[active],
            job.weights[active],
            K,
            job.prior,
            job.blocks,
            np.random.default_rng(job.seed),
            **limits,
        )
        sampler.start(job.start, job.groups)
        # from a rough start most corrected proposals are rejected: the first sweeps of warm-up go
        # without the correction, towards where the proposals point. Not so under limits: the
        # target is bounded there, and such sweeps would run into places where f is not
        begins_rough = job.start is None and job.censor is None
        rough = min(100, job.warmup // 2) if begins_rough else 0
        corrected = sampler.corrected
        smallest = 1e-10 * _spread(job.response)
        for number in range(job.sweeps):
            sampler.corrected = corrected and number >= rough
            try:
                sampler.sweep()
            except np.linalg.LinAlgError:
                raise RuntimeError(_what_broke(sampler.sigma, job)) from None
            # with few predictors no matrix becomes singular: the scale goes on to 0, and then NaN.
            # A single record, or none, has no such place, and may have any scale; nor is there one
            # under limits, where terms are bounded
            if job.censor is None and not np.all(sampler.sigma[sampler.count > 1] > smallest):
                raise RuntimeError(_what_broke(sampler.sigma, job))
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
            if job.kept:
                log_lik = out["response"][s]
                log_lik[active] = sampler.log_f
            if job.kept and not everyone:
                log_lik[~active] = mixture_log_likelihood(
                    job.response[~active],
                    job.predictors[~active],
                    sampler.log_pi,
                    sampler.beta,
                    sampler.sigma,
                )
            out["weighted_log_likelihood"][s] = sampler.total()
            out["occupied_components"][s] = np.count_nonzero(sampler.count)
            with np.errstate(invalid="ignore"):
                out["acceptance_rate"][s] = sampler.accepted / sampler.proposed
        if job.floor is not None:
            job.floor.extend(out, job.warmup)
    report(job.sweeps)
    return out


def _spread(response):
    """A scale of the response, above 0."""
    return np.ptp(response) or np.abs(response).max(initial=0.0) or 1.0


def _what_broke(sigma, job):
    """Why a matrix of the sampler became singular, and what to do, in one line."""
    if sigma.min() > 1e-6 * _spread(job.response):
        return (
            "the covariance of the coefficients is singular to rounding: bring the columns of "
            "predictors to order one, and coefficient_scale with them"
        )
    remedy = "" if job.floor is not None else (
        "; where many share the smallest response, as incomes of 0 do, floor= gives them a "
        "probability of their own (in the book's application, point_mass=true)"
    )
    return (
        "a mixture component collapsed onto records that it fits exactly, where the density has no "
        f"bound (smallest scale {sigma.min():.1e}); records that agree in response and predictors "
        f"can do that{remedy}"
    )
