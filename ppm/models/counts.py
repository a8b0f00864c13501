"""Gamma-Poisson: the model whose pseudo posterior is known in closed form."""

import numpy as np
from scipy import stats
from scipy.special import gammaln

from ppm.checks import check_counts, check_number, check_weights
from ppm.model import Model
from ppm.terms import weighted

__all__ = ["GammaPoisson"]


class GammaPoisson(Model):
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

    Raises
    ------
    ValueError
        If these are no counts, or no numbers above 0.

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
    """

    _public = ("records", "shape", "rate")

    def __init__(self, counts, *, shape=0.001, rate=0.001):
        self.counts = check_counts("counts", counts)
        self.records, self.values = self.counts.size, self.counts
        self.shape = check_number("shape", shape, above=0)
        self.rate = check_number("rate", rate, above=0)

    def posterior(self, weights=None):
        """Pseudo posterior of μ, exactly: a frozen distribution of `scipy.stats`.

        Parameters
        ----------
        weights : array_like (records,), optional
            Weights α, 0 or more; all 1 by default.
        """
        weights = check_weights(weights, self.records)
        shape = self.shape + weights @ self.counts
        return stats.gamma(shape, scale=1.0 / (self.rate + weights.sum()))

    def draw(self, terms, draws, rng):
        """Draw μ from the :meth:`posterior`."""
        return {"mu": self.posterior(terms.weights).rvs(size=draws, random_state=rng)}

    def log_p(self, theta):
        """Log-likelihood (draws, records) of every count at draws of μ."""
        mean = np.asarray(theta["mu"], dtype=np.float64)
        if not (mean >= 0).all():
            raise ValueError("theta must hold mu of at least 0")
        # equal counts have equal log-likelihoods
        values, position = np.unique(self.counts, return_inverse=True)
        return log_likelihood_of_counts(values, mean[:, None])[:, position]

    def predict(self, theta, rng):
        """Synthetic counts (records,) for one μ."""
        return rng.poisson(theta["mu"], size=self.records)

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
