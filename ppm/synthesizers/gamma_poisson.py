"""Gamma-Poisson: the synthesizer whose pseudo posterior is known in closed form."""

import numpy as np
import xarray as xr
from scipy import stats
from scipy.special import gammaln

from ppm.checks import check_count, check_counts, check_number, check_weights
from ppm.seeds import generator
from ppm.synthesizers.base import (
    Synthesizer,
    check_names,
    choose_draws,
    log_likelihood_from,
)
from ppm.synthesizers.censored_gamma import CensoredGamma
from ppm.terms import as_terms, weighted


class GammaPoisson(Synthesizer):
    r"""Counts :math:`y_i \sim` Poisson(μ) with a Gamma prior for the mean μ.

    With weights α the pseudo posterior is again a Gamma distribution,
    Gamma(shape + Σ αᵢ yᵢ, rate + Σ αᵢ), from which draws are independent and exact.

    Parameters
    ----------
    counts : array_like of int (records,)
        The confidential counts y, whole numbers >= 0.
    shape, rate : float, default 0.001
        Prior of μ: Gamma with mean shape / rate, both above 0. The default is nearly flat: it
        weighs as much as a thousandth of a record.

    Notes
    -----
    The model of the simulation study of Savitsky, Williams and Hu (2022), section 4, which does not
    state its prior for μ.

    Examples
    --------
    >>> import ppm
    >>> model = ppm.GammaPoisson([3, 5, 4, 20])
    >>> weights = [1.0, 1.0, 1.0, 0.0]  # without the 20
    >>> round(float(model.posterior().mean()), 2), round(float(model.posterior(weights).mean()), 2)
    (8.0, 4.0)
    >>> fit = model.fit(weights, draws=500, random_seed=1)
    >>> model.predict(fit, releases=2, random_seed=2).values
    array([[4, 1, 3, 6],
           [7, 1, 6, 8]])
    """

    # no Markov chain, so nothing to diagnose
    independent_draws = True
    takes_limits = True
    _kept_as = "counts"
    _public = ("records", "shape", "rate")

    def __init__(self, counts, *, shape=0.001, rate=0.001):
        self.counts = check_counts("counts", counts)
        self.records = self.counts.size
        self.shape = check_number("shape", shape, above=0)
        self.rate = check_number("rate", rate, above=0)

    def posterior(self, terms=None):
        """Pseudo posterior of μ, exactly.

        Parameters
        ----------
        terms : ppm.Terms or array_like (records,), optional
            What each record adds, or weights α; all 1 by default.

        Returns
        -------
        scipy.stats frozen distribution or CensoredGamma
            Gamma(shape + Σ αᵢ yᵢ, rate + Σ αᵢ); SciPy's ``scale`` is 1 / rate. With limits an
            object with methods ``logpdf``, ``mean``, ``var`` and ``rvs``, by quadrature.
        """
        terms = as_terms(terms, self.records)
        if terms.limits is not None:
            return CensoredGamma(self.counts, terms, shape=self.shape, rate=self.rate)
        _, shape, rate = self._gamma(terms.weights)
        return stats.gamma(shape, scale=1.0 / rate)

    def fit(self, terms=None, *, draws=1000, random_seed=None, progress=None):
        """Draw μ from the :meth:`posterior`: independent draws, one chain.

        Arguments as for :meth:`ppm.Synthesizer.fit`; ``progress`` has no effect. The groups are
        ``posterior`` (``mu``: chain, draw) and ``log_likelihood`` (``counts``: chain, draw,
        record; neither weighted nor limited).
        """
        draws = check_count("draws", draws)
        rng = generator(random_seed)
        mean = self.posterior(terms).rvs(size=(1, draws), random_state=rng)
        coords = {"chain": [0], "draw": np.arange(draws)}
        posterior = xr.Dataset({"mu": (("chain", "draw"), mean)}, coords)
        return self.fit_of(posterior)

    def log_likelihood_at(self, posterior):
        """Log-likelihood of every record at draws of μ: see :class:`ppm.Synthesizer`."""
        # equal counts have equal log-likelihoods
        values, position = np.unique(self.counts, return_inverse=True)

        def evaluate(draws):
            self.check_parameters("posterior", draws)
            mean = draws["mu"].transpose("chain", "draw").values[..., None]
            return log_likelihood_of_counts(values, mean)[..., position]

        return log_likelihood_from(evaluate, posterior[["mu"]], self.records)

    def check_parameters(self, name, posterior):
        """Refuse draws without μ, or of one below 0; ``name`` is that of an argument."""
        check_names(name, posterior, ["mu"])
        if not (posterior["mu"] >= 0).all():
            raise ValueError(f"{name} must hold mu of at least 0")

    def predict(self, fit, *, releases, random_seed=None):
        """Draw synthetic counts (release, record), each database from one draw of μ of a fit."""
        releases = check_count("releases", releases)
        rng = generator(random_seed)
        mean = fit["posterior"]["mu"].values[
            choose_draws(fit["posterior"].dataset, releases, rng)
        ]
        counts = rng.poisson(mean[:, None], size=(releases, self.records))
        return xr.DataArray(counts, dims=("release", "record"), name="counts")

    def leave_one_out_loss(self, fit, weights=None):
        r"""Exact log ratio of the pseudo posteriors with and without each record, uncensored.

        Entry (chain, draw, record) is :math:`\log \xi^\alpha(\mu_s \mid x) - \log \xi^\alpha(\mu_s
        \mid x_{-i})` in nats, at the draws of ``fit``; the other records keep their ``weights``,
        (records,), 0 or more, by default 1.

        Notes
        -----
        Savitsky, Williams and Hu (2022), the theorem of section 2, with fixed weights: absolute
        values are at most 2Δ where Δ bounds the weighted log-likelihoods over the same set of μ.
        For weights that are computed again without the record see :func:`ppm.audits.exact`.
        """
        weights, shape, rate = self._gamma(weights)
        # the prior is added last: a difference of sums would lose a nearly flat one
        shape_without = self.shape + (weights @ self.counts - weights * self.counts)
        rate_without = self.rate + (weights.sum() - weights)
        mean = fit["posterior"]["mu"].values[..., None]
        loss = log_gamma(mean, shape, rate) - log_gamma(
            mean, shape_without, rate_without
        )
        dims, coords = ("chain", "draw", "record"), fit["posterior"]["mu"].coords
        return xr.DataArray(loss, dims=dims, coords=coords)

    def bounds_within(self, lowest, highest):
        r"""Largest :math:`|\log p(y_i \mid \mu)|` of every record over an interval of μ, exactly.

        These are the suprema (records,), in nats, in the assumption of risk-based weighting of
        Savitsky, Williams and Hu (2022), section 2, over the interval instead of all μ. Its ends
        are above 0 and increasing; for weights that depend on their own record alone they must be
        public.
        """
        return -self._extremes(lowest, highest)[0]

    def oscillations_within(self, lowest, highest):
        r"""Largest minus smallest :math:`\log p(y_i \mid \mu)` over an interval of μ, exactly.

        In nats, (records,), as for :meth:`bounds_within`; see :func:`ppm.record_oscillations`.
        """
        smallest, largest = self._extremes(lowest, highest)
        return largest - smallest

    def _extremes(self, lowest, highest):
        lowest = check_number("lowest", lowest, above=0)
        highest = check_number("highest", highest, above=lowest)
        return extremes_between(self.counts, lowest, highest)

    def _gamma(self, weights):
        """Weights, and shape and rate of the pseudo posterior without limits."""
        weights = check_weights(weights, self.records)
        return weights, self.shape + weights @ self.counts, self.rate + weights.sum()


def log_likelihood_of_counts(counts, mean):
    """Poisson log-probability of counts at means, broadcast against each other, in nats."""
    counts = np.asarray(counts, dtype=np.float64)
    # as xlogy(counts, mean), with one logarithm of a mean for all counts
    with np.errstate(divide="ignore"):
        return (
            weighted(np.log(mean, dtype=np.float64), counts)
            - mean
            - gammaln(counts + 1.0)
        )


def log_gamma(mean, shape, rate):
    """Log-density of Gamma distributions at means, of which those that underflow stay above 0."""
    log_mean = np.log(np.maximum(mean, np.finfo(np.float64).tiny))
    return (
        shape * np.log(rate) - gammaln(shape) + (shape - 1.0) * log_mean - rate * mean
    )


def extremes_between(counts, lowest, highest):
    """Smallest and largest log-probability of counts, in nats, over intervals of μ."""
    # concave in μ: smallest at an end, largest at μ = y or at the end nearest to it
    low, high, top = (
        log_likelihood_of_counts(counts, at) for at in (lowest, highest, counts)
    )
    inside = np.where(counts > highest, high, top)
    return np.minimum(low, high), np.where(counts < lowest, low, inside)
