"""Whether the chains that a bound comes from can be trusted: R-hat, draws, divergences."""

from dataclasses import dataclass, field

import numpy as np

from ppm.checks import as_array, check_weights
from ppm.terms import Terms

__all__ = [
    "bound_diagnostics",
    "r_hat",
    "effective_draws",
    "BoundDiagnostics",
    "ChainsDisagreeError",
    "R_HAT_LIMIT",
]

#: Chains disagree above this R-hat.
R_HAT_LIMIT = 1.05
# with fewer draws per chain there is no R-hat
_FEWEST_DRAWS = 8
# A larger share of divergent draws withholds a bound; fewer are only printed. The limit is ours,
# and any divergence is a reason to look again
_DIVERGENT_LIMIT = 0.1
# the average range of ten independent normal values, in standard deviations
_RANGE_OF_TEN = 3.078


class ChainsDisagreeError(RuntimeError):
    """A bound is withheld because its chains disagree, stand still, diverge or are too short.

    Examples
    --------
    >>> import numpy as np, ppm
    >>> model = ppm.FiniteMixture(np.arange(6.0), np.ones((6, 1)), components=2, warmup=5)
    >>> fit = ppm.fit(model, ppm.ByRisk(), draws=4, random_seed=1)  # too few
    >>> try:
    ...     fit.local_bound
    ... except ppm.ChainsDisagreeError:
    ...     print("withheld")
    withheld
    """


@dataclass(frozen=True)
class BoundDiagnostics:
    """How far to trust the chains that a local bound comes from.

    Two quantities are compared: the largest weighted \\|log-likelihood\\| of each draw, whose
    maximum is Δ, and the weighted log-likelihood of the whole database. **Only the first decides**
    whether a bound is withheld. If only the second has a high R-hat, a
    longer run may find other parameters, and with them another Δ.

    Attributes
    ----------
    r_hat, effective_draws, r_hat_log_likelihood, effective_draws_log_likelihood : float
        Rank-normalised split R-hat, and effective sample size (bulk), of both quantities. NaN if
        undefined, for example for a constant quantity.
    by_chain : tuple of float
        The local bound that each chain alone would have given, in nats.
    spread : tuple of float
        Smallest and largest of the local bounds of ten tenths of the draws.
    typical : float
        Median of the first quantity: not a bound, but nearly independent of the number of draws.
    divergences : int or None
        Divergent transitions of a Hamiltonian sampler.
    r_hat_faults, faults_besides_r_hat : tuple of str
        Why the bound is withheld, each with a remedy. The first: R-hat of the deciding quantity
        above 1.05 or undefined. The others: an infinite log-likelihood, a chain that stood still
        for half of its draws, more than a tenth of the draws divergent.
    """

    r_hat: float
    effective_draws: float
    r_hat_log_likelihood: float
    effective_draws_log_likelihood: float
    by_chain: tuple = field(repr=False)
    spread: tuple = field(repr=False)
    typical: float = field(repr=False)
    divergences: int | None
    r_hat_faults: tuple
    faults_besides_r_hat: tuple

    @property
    def faults(self):
        """All reasons why the bound is withheld."""
        return self.r_hat_faults + self.faults_besides_r_hat

    @property
    def agree(self):
        """Whether there are no :attr:`faults`."""
        return not self.faults

    @property
    def error(self):
        """Monte Carlo standard error of the bound, from its range over tenths of the draws.

        The scatter of a maximum hardly depends on the number of draws if the tail is like that of a
        normal or exponential distribution, so tenths of the draws show it.
        """
        return (self.spread[1] - self.spread[0]) / _RANGE_OF_TEN

    def __str__(self):
        """R-hat of both quantities, effective draws, spread and divergences."""
        more = f"\n{self.divergences} divergent transitions" if self.divergences else ""
        if np.isnan(self.effective_draws):
            more += "\nnan: too few draws, or values that are infinite or all the same"
        return (
            f"R-hat {self.r_hat:.3f}, of the log-likelihood {self.r_hat_log_likelihood:.3f}, "
            f"effective draws {self.effective_draws:.0f}\na tenth of the draws gave "
            f"{self.spread[0]:.3f} to {self.spread[1]:.3f}{more}"
        )


def bound_diagnostics(log_lik, weights, *, diverging=None):
    """Compute R-hat, effective sample size and spread of the quantities that decide a bound.

    Parameters
    ----------
    log_lik : array_like (chains, draws, records)
        Unweighted log-likelihood in nats.
    weights : array_like (records,)
        Weights α, 0 or more.
    diverging : array_like of bool, optional
        Which draws diverged.

    Returns
    -------
    BoundDiagnostics

    Raises
    ------
    ValueError
        If the log-likelihood has another shape, or as many weights as there are records are not
        given.

    Examples
    --------
    >>> import ppm
    >>> model = ppm.GammaPoisson([3, 5, 4, 6, 20])
    >>> fit = ppm.fit(model, ppm.Unweighted(), draws=1000, random_seed=1)
    >>> print(ppm.chains.bound_diagnostics(model.log_p(fit.theta)[None], [1.0] * 5))
    R-hat 1.003, of the log-likelihood 1.000, effective draws 793
    a tenth of the draws gave 14.113 to 17.224
    """
    log_lik = as_array("log_lik", log_lik)
    if log_lik.ndim != 3:
        raise ValueError(
            f"log_lik must have shape (chains, draws, records); got {log_lik.shape}"
        )
    terms = Terms(check_weights(weights, log_lik.shape[-1]))
    values = terms(log_lik)
    return diagnose(
        np.abs(values).max(axis=-1), values.sum(axis=-1), terms.weights, diverging
    )


def diagnose(largest, total, weights, diverging=None):
    """As :func:`bound_diagnostics`, from both quantities as arrays (chain, draw)."""
    tenths = [
        part.max() for part in np.array_split(largest.ravel(), min(10, largest.size))
    ]
    divergences = None if diverging is None else int(np.sum(diverging))
    first, second = r_hat(largest), r_hat(total)
    decisive = first
    if np.isnan(first) and largest.min() == largest.max():
        decisive = second  # the bound is the same in all draws
    both = np.stack([largest, total], axis=-1)
    above, besides = [], []
    if not np.isfinite(largest).all():
        besides.append(
            "a log-likelihood is infinite (correct the model, or give an impossible "
            "record weight 0)"
        )
    elif largest.shape[1] >= _FEWEST_DRAWS and np.any(
        [(half == half[:, :1]).all(axis=(1, 2)) for half in _halves(both)]
    ):
        besides.append(
            "a chain stood still for half of its draws or more (run a longer warm-up, "
            "or give the model other starting values or a likelihood that depends on "
            "its parameters)"
        )
    elif np.isnan(decisive):
        above.append(
            f"R-hat is undefined (run at least {_FEWEST_DRAWS} draws per chain)"
        )
    elif decisive > R_HAT_LIMIT:
        above.append(
            f"R-hat is {decisive:.3f}, above {R_HAT_LIMIT} (run more draws or a longer "
            "warm-up)"
        )
    if divergences and divergences > _DIVERGENT_LIMIT * largest.size:
        besides.append(
            f"{divergences} of {largest.size} draws diverged, more than "
            f"{_DIVERGENT_LIMIT:.0%} (reparametrise the model, as by offsets, or raise "
            "target_accept)"
        )
    if not np.any(weights):
        above, besides = [], []  # the bound is 0, whatever the chains do
    return BoundDiagnostics(
        r_hat=first,
        effective_draws=effective_draws(largest),
        r_hat_log_likelihood=second,
        effective_draws_log_likelihood=effective_draws(total),
        by_chain=tuple(largest.max(axis=1).tolist()),
        typical=float(np.median(largest)),
        spread=(float(min(tenths)), float(max(tenths))),
        divergences=divergences,
        r_hat_faults=tuple(above),
        faults_besides_r_hat=tuple(besides),
    )


def r_hat(values):
    """Rank-normalised split R-hat of one quantity, by ArviZ.

    Parameters
    ----------
    values : array_like (chains, draws)
        The quantity at every draw, such as the largest weighted log-likelihood of a record.

    Returns
    -------
    float
        NaN where it is undefined: with fewer than 8 draws per chain, and for values that are
        infinite or all the same.

    Examples
    --------
    >>> import numpy as np, ppm
    >>> chains = np.random.default_rng(1).normal(size=(2, 500))
    >>> same, apart = (ppm.chains.r_hat(chains + [[0], [shift]]) for shift in (0, 1))
    >>> bool(same < ppm.chains.R_HAT_LIMIT < apart)
    True
    """
    return _by_arviz("rhat", values)


def effective_draws(values):
    """Effective sample size (bulk) of one quantity, by ArviZ.

    Parameters
    ----------
    values : array_like (chains, draws)
        The quantity at every draw.

    Returns
    -------
    float
        NaN where :func:`r_hat` is.

    Examples
    --------
    >>> import numpy as np, ppm
    >>> steps = np.random.default_rng(1).normal(size=(2, 500))
    >>> sums = steps.cumsum(axis=1)  # each draw begins at the one before
    >>> bool(ppm.chains.effective_draws(sums) < 50 < ppm.chains.effective_draws(steps))
    True
    """
    return _by_arviz("ess", values)


def _by_arviz(name, values):
    values = as_array("values", values, np.float64)
    if values.ndim != 2:
        raise ValueError(f"values must have shape (chains, draws); got {values.shape}")
    if (
        values.shape[1] < _FEWEST_DRAWS
        or not np.isfinite(values).all()
        or np.ptp(values) == 0
    ):
        return np.nan
    from arviz_stats.base import array_stats

    if name == "rhat" and len(values) == 1:  # ArviZ compares chains only
        values = np.concatenate(_halves(values))
    # chains that stand still have no variance within: R-hat is inf
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(getattr(array_stats, name)(values, chain_axis=0, draw_axis=1))


def _halves(values):
    half = values.shape[1] // 2
    return [values[:, :half], values[:, -half:]]
