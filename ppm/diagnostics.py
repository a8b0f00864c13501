"""Whether the chains behind a bound agree: R-hat, effective sample size, divergences."""

from dataclasses import dataclass

import numpy as np

from ppm._validation import check_weights

# Above this, the chains have not seen the same posterior
R_HAT_LIMIT = 1.05
# the range of ten independent normal values is this many standard deviations on average
_RANGE_OF_TEN = 3.078


class ChainsDisagreeError(RuntimeError):
    """A bound is withheld because the chains behind it disagree."""


@dataclass(frozen=True)
class BoundDiagnostics:
    """How well the chains behind a local bound agree.

    Attributes
    ----------
    r_hat : float
        R-hat of the largest weighted \\|log-likelihood\\| of each draw. A single chain is cut in
        two halves.
    effective_draws : float
        Effective sample size (bulk) of the same.
    r_hat_log_likelihood, effective_draws_log_likelihood : float
        The same two for the weighted log-likelihood of the whole database.
    by_chain : tuple of float
        The local bound that each chain alone would have given, in nats.
    spread : tuple of float
        Smallest and largest of the ten local bounds that each tenth of the draws alone would have
        given: the Monte Carlo spread of a maximum, for a tenth of the draws.
    divergences : int or None
        Divergent transitions of a Hamiltonian sampler; None where the sampler knows none.
    typical : float
        Median over the draws of the largest weighted \\|log-likelihood\\|, in nats. It is no
        bound, but unlike the maximum it hardly depends on the number of draws.
    """

    r_hat: float
    effective_draws: float
    r_hat_log_likelihood: float
    effective_draws_log_likelihood: float
    by_chain: tuple
    typical: float
    spread: tuple
    divergences: int | None = None

    @property
    def agree(self):
        """Whether the chains agree: R-hat of the bound's quantity is at most `R_HAT_LIMIT`.

        A quantity that never moves, such as a bound of 0, agrees with itself.
        """
        return bool(self.r_hat <= R_HAT_LIMIT) or self.spread[0] == self.spread[1]

    @property
    def error(self):
        """Monte Carlo standard error of the local bound in nats, from its `spread`.

        The standard deviation of a maximum hardly depends on the number of draws where the tail is
        that of a normal or an exponential distribution, so that a tenth of the draws tells it.
        """
        return (self.spread[1] - self.spread[0]) / _RANGE_OF_TEN


def bound_diagnostics(log_lik, weights, *, sample_stats=None):
    """Compute R-hat, effective sample size and spread of the quantities behind a bound.

    Parameters
    ----------
    log_lik : xarray.DataArray, dimensions chain, draw and record
        Unweighted log-likelihood in nats, without NaN.
    weights : array_like, shape (records,)
        Weights α in [0, 1].
    sample_stats : xarray.DataTree or xarray.Dataset, optional
        Of the same fit; its ``diverging`` is counted.

    Returns
    -------
    BoundDiagnostics
        The diagnostics, by ArviZ. They are NaN where fewer than eight draws a chain leave
        nothing to say.

    Raises
    ------
    ValueError
        If the weights are not one number in [0, 1] for every record.
    """
    from arviz_stats import ess, rhat

    values = log_lik.transpose("chain", "draw", ...).values
    weights = check_weights(weights, values.shape[-1])
    used = weights > 0
    largest = np.zeros(values.shape[:2])
    total = np.zeros(values.shape[:2])
    for index in np.ndindex(values.shape[:2]):
        # draw by draw: the weighted matrix is never held whole
        weighted = values[index][used] * weights[used]
        if weighted.size:
            largest[index] = np.abs(weighted).max()
            total[index] = weighted.sum()
    enough = values.shape[1] >= 8

    def diagnose(quantity):
        if not enough or not np.isfinite(quantity).all() or np.ptp(quantity) == 0:
            return np.nan, np.nan
        if len(quantity) == 1:
            half = quantity.shape[1] // 2
            quantity = np.stack([quantity[0, :half], quantity[0, -half:]])
        return float(rhat(quantity)), float(ess(quantity))

    parts = [part.max() for part in np.array_split(largest.ravel(), min(10, largest.size))]
    divergences = None
    if sample_stats is not None and "diverging" in sample_stats:
        divergences = int(sample_stats["diverging"].sum())
    return BoundDiagnostics(
        *diagnose(largest),
        *diagnose(total),
        by_chain=tuple(largest.max(axis=1).tolist()),
        typical=float(np.median(largest)),
        spread=(float(min(parts)), float(max(parts))),
        divergences=divergences,
    )
