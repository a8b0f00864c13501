"""Finite mixture of regressions: the paper's synthesizer for income."""

from dataclasses import dataclass

import numpy as np

from ppm.checks import (
    as_list,
    as_numbers,
    check_count,
    check_flag,
    check_number,
    check_one_order,
    check_weights,
    how_many,
    pattern_codes,
    shown,
)
from ppm.model import Model
from ppm.models.mixture import passes
from ppm.models.mixture.chains import run_chains
from ppm.models.mixture.sampler import Sampler
from ppm.seeds import one_thread, streams

__all__ = ["FiniteMixture"]

# how far the mixture weights of a draw may be from a sum of 1: rounding in single precision
_SUM = 1e-5
# scales of priors beyond which matrices are singular to double precision
SCALES = {"at_least": 1e-6, "at_most": 1e6}


class FiniteMixture(Model):
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
    chains, warmup : int, default 2 and 1000
        Independent chains, from dispersed starting points; sweeps that each discards first.
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
    values : array_like (records,), optional
        The records' values in the unit of a radius, such as incomes where the response is their
        logarithm, for :class:`ppm.ByCount`.
    known : array_like or pandas.DataFrame, optional
        Labels that an intruder knows, one row for each record, for the same rule.

    Raises
    ------
    ValueError
        If an argument is not of these kinds, shapes and ranges.

    Notes
    -----
    The model is that of Savitsky, Williams and Hu (2022), appendix B, but for the correlation
    matrix Ω of the coefficients, which there has a uniform prior, LKJ(1). This sampler uses the
    conjugate scale mixture of inverse Wishart distributions of Huang and Wand (2013): each scale
    :math:`\sigma_{\beta,r}` has the same half-t prior, but each correlation ρ has a density
    proportional to :math:`(1 - \rho^2)^{\nu/2 - 1}`, however many predictors there are; under
    LKJ(1) it is :math:`(1 - \rho^2)^{(R - 2)/2}`, which concentrates at 0 as their number R grows.
    For LKJ(1) write the mixture in PyMC, see :class:`ppm.PyMCModel`. The appendix leaves open
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
    bound starts some on another, by ``start`` of :meth:`draw`.

    Where records with a total weight of 2 or more agree in response and predictors, the posterior
    is improper, because nothing keeps :math:`\sigma_k` away from 0. Where many agree, as incomes of
    0 do, :meth:`draw` can raise a RuntimeError.

    Examples
    --------
    >>> import numpy as np, ppm
    >>> x, noise = np.linspace(-1.0, 1.0, 200), np.random.default_rng(1).normal(size=200)
    >>> model = ppm.FiniteMixture(2.0 + 3.0 * x + noise, np.column_stack([np.ones(200), x]),
    ...                           components=2, warmup=200)
    >>> fit = ppm.fit(model, ppm.Unweighted(), draws=100, thin=2, random_seed=1)
    >>> fit.theta["beta"].shape, fit.release(3, random_seed=2).shape
    ((200, 2, 2), (3, 200))
    """

    dims = {
        "pi": ["component"],
        "beta": ["component", "predictor"],
        "sigma": ["component"],
        "coefficient_scale": ["predictor"],
    }
    _public = ("records", "components", "chains", "warmup")

    def __init__(
        self,
        response,
        predictors,
        *,
        components=10,
        chains=2,
        warmup=1000,
        concentration_prior=(1.0, 1.0),
        coefficient_df=3.0,
        coefficient_scale=1.0,
        residual_df=3.0,
        residual_scale=1.0,
        parallel=None,
        values=None,
        known=None,
    ):
        check_one_order(
            response=response, predictors=predictors, values=values, known=known
        )
        self.response = check_finite("response", response, 1)
        self.records = self.response.size
        self.predictors = check_finite("predictors", predictors, 2)
        if len(self.predictors) != self.records:
            raise ValueError(
                f"predictors has {len(self.predictors)} rows for the {self.records} "
                "records of response; accepted: one row per record"
            )
        self.components = check_count("components", components)
        self.chains = check_count("chains", chains)
        self.warmup = check_count("warmup", warmup, at_least=0)
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
        if values is not None:
            values = as_list("values", values)
            if values.size != self.records:
                raise ValueError(
                    f"values must hold one number for each of the {self.records} records; "
                    f"got {values.size}"
                )
        pattern_codes(known, self.records)
        self.values, self.known = values, known
        self._design = passes.Design(self.predictors)

    def draw(self, terms, draws, rng, *, start=None, warmup=None, thin=1):
        r"""Draw θ from the pseudo posterior with these terms, whose weights are at most 1.

        Parameters
        ----------
        terms, draws, rng
            As for :meth:`ppm.Model.draw`.
        start : dict, optional
            Where each chain begins, instead of at a random point: θ (chains, …) by name, as
            :attr:`ppm.Fit.ends` has it.
        warmup : int, optional
            Sweeps that each chain discards, the model's own by default.
        thin : int, default 1
            Sweeps per kept draw.

        Returns
        -------
        dict
            ``pi`` (draws, components), ``beta`` (draws, components, predictors), ``sigma`` (draws,
            components), ``concentration`` (draws,) and ``coefficient_scale`` (draws, predictors),
            the :math:`\sigma_\beta` of the model. Component numbers have no meaning: they may
            differ between chains.

        Raises
        ------
        RuntimeError
            If a chain breaks off, because a component collapsed onto equal records or predictors
            are far from order one.
        """
        # ∫∫ N(y | β, σ)^α dβ dσ = ∫ σ^(1 - α) dσ, which is infinite at 0 for α of 2 or more
        check_weights(
            terms.weights,
            self.records,
            at_most_1="the posterior of a mixture may otherwise have no finite integral",
        )
        warmup = self.warmup if warmup is None else warmup
        warmup = check_count("warmup", warmup, at_least=0)
        thin = check_count("thin", thin)
        places = self._places(start)
        seeds = streams(rng, self.chains)
        with one_thread():
            chains = [
                _Chain(self, terms.weights, draws, warmup, thin, *one)
                for one in zip(seeds, places, strict=True)
            ]
        parallel = self.parallel
        if parallel is None:
            # a process takes a second or two to start; a sweep takes 7e-10 s times this product
            work = chains[0].left * self.predictors.size * self.components
            parallel = work > 3e9
        kept = run_chains(chains, parallel=parallel)
        return {
            name: np.array([draw[name] for chain in kept for draw in chain])
            for name in kept[0][0]
        }

    def _places(self, start):
        """For every chain the θ to begin at, or None."""
        if start is None:
            return [None] * self.chains
        pi, beta, sigma = self._checked("start", start)
        concentration = as_numbers("start: concentration", start["concentration"])
        if len(pi) != self.chains or concentration.shape != (self.chains,):
            raise ValueError(
                f"start must hold one θ for each of the {self.chains} chains; got {len(pi)}"
            )
        if not (concentration > 0).all():
            raise ValueError("start must hold concentration above 0")
        names = ("pi", "beta", "sigma", "concentration")
        parts = zip(pi, beta, sigma, concentration, strict=True)
        return [dict(zip(names, part, strict=True)) for part in parts]

    def log_p(self, theta):
        r"""Log-likelihood (draws, records), :math:`\log f_i`, at draws of π, β and σ."""
        values = np.empty((len(theta["pi"]), self.records))
        parts = zip(values, *self._checked("theta", theta), strict=True)
        with one_thread():
            for row, pi, beta, sigma in parts:
                means = self._design.times(beta)
                densities = passes.log_densities(self.response, means, sigma)
                # the share of an empty component may underflow to 0
                with np.errstate(divide="ignore"):
                    log_pi = np.log(pi)
                row[:] = passes.rescale(log_pi, densities)[2]
        values[values <= passes.NOTHING] = -np.inf
        return values

    def predict(self, theta, rng):
        r"""Synthetic responses (records,) for one θ.

        Notes
        -----
        Labels are drawn from the mixture weights π, so that a release is computed from θ and public
        values alone. The full conditional of Savitsky, Williams and Hu (2022), appendix B,
        :math:`\Pr(z_i = k) \propto \pi_k N(y_i \mid x_i'\beta_k, \sigma_k)`, uses the confidential
        response a second time, with its full weight even for a record whose weight is 0, and
        nothing in the paper bounds this use.
        """
        edges = np.cumsum(theta["pi"])
        uniforms = rng.random(self.records)
        label = (uniforms * edges[-1] >= edges[:, None]).sum(axis=0)
        mean = (self.predictors * theta["beta"][label]).sum(axis=1)
        return mean + theta["sigma"][label] * rng.standard_normal(self.records)

    def _checked(self, name, theta):
        """Return π, β and σ of draws if they can be that; ``name`` is that of an argument."""
        lacking = {"pi", "beta", "sigma"} - {*theta}
        if lacking:
            raise ValueError(f"{name} must hold {', '.join(sorted(lacking))}")
        # whole numbers and single precision too; copies, because compiled functions take arrays
        # that can be written to
        pi, beta, sigma = (
            as_numbers(f"{name}: {part}", theta[part]).copy()
            for part in ("pi", "beta", "sigma")
        )
        # compiled code would read beyond the end of an array
        shape = (*pi.shape[:1], self.components)
        columns = self.predictors.shape[1]
        if not pi.shape == sigma.shape == shape or beta.shape != (*shape, columns):
            raise ValueError(
                f"{name} must hold pi and sigma of shape (draws, {self.components}), and "
                f"beta of shape (draws, {self.components}, {columns})"
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
                    f"{name} must hold {accepted} {how_many(wrong, 'draw')}"
                )
        return pi, beta, sigma


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
    """One chain of a fit, as :func:`ppm.models.mixture.chains.run_chains` runs it."""

    def __init__(self, model, weights, draws, warmup, thin, seed, start):
        # a record of weight 0 has no term
        active = weights > 0
        design = (
            model._design if active.all() else passes.Design(model.predictors[active])
        )
        self.sampler = Sampler(
            model.response[active],
            design,
            weights[active],
            model.components,
            model.prior,
            np.random.default_rng(seed),
        )
        self.sampler.start(start)
        self.corrected = self.sampler.corrected
        # from a rough start most corrected proposals are rejected, so the first sweeps of warm-up
        # are uncorrected
        self.uncorrected_sweeps = min(100, warmup // 2) if start is None else 0
        self.warmup, self.thin, self.number = warmup, thin, 0
        self.left = warmup + draws * thin
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
        # component with one record or none cannot collapse
        occupied = sampler.sigma[sampler.count > 1]
        if not np.all(occupied > 1e-10 * self.spread):
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
            "incomes of 0 may, can do that: take fewer components, or move them apart"
        )
