"""Whether the chains behind a bound agree: R-hat and effective sample size."""

from dataclasses import dataclass

import numpy as np

from ppm._validation import check_weights


@dataclass(frozen=True)
class BoundDiagnostics:
    """How well the chains behind a local bound agree.

    Attributes
    ----------
    r_hat : float
        R-hat of the largest weighted \\|log-likelihood\\| of each draw; NaN with one chain.
    effective_draws : float
        Effective sample size (bulk) of the same.
    r_hat_log_likelihood, effective_draws_log_likelihood : float
        The same two for the weighted log-likelihood of the whole database.
    by_chain : tuple of float
        The local bound that each chain alone would have given, in nats.
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


def bound_diagnostics(log_lik, weights):
    """Compute R-hat and effective sample size of the quantities behind a bound.

    Parameters
    ----------
    log_lik : xarray.DataArray, dimensions chain, draw and record
        Unweighted log-likelihood in nats, without NaN.
    weights : array_like, shape (records,)
        Weights α in [0, 1].

    Returns
    -------
    BoundDiagnostics
        The diagnostics, by ArviZ. They are NaN where fewer than four draws leave nothing to say.

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
    enough = values.shape[1] >= 4

    def diagnose(quantity):
        if not enough or not np.isfinite(quantity).all():
            return np.nan, np.nan
        agreement = float(rhat(quantity)) if values.shape[0] > 1 else np.nan
        return agreement, float(ess(quantity))

    by_chain = tuple(largest.max(axis=1).tolist())
    return BoundDiagnostics(
        *diagnose(largest), *diagnose(total), by_chain, float(np.median(largest))
    )
