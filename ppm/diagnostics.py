"""Whether the chains behind a bound can be trusted: R-hat, effective draws, divergences."""

from dataclasses import dataclass

import numpy as np

from ppm.lipschitz import read_once

__all__ = ["bound_diagnostics", "BoundDiagnostics", "ChainsDisagreeError"]

# Above this, the chains have not seen the same posterior
R_HAT_LIMIT = 1.05
# A larger share of divergent draws withholds a bound; fewer are printed. No theory gives the limit,
# it is ours, and any divergence is a reason to look again
DIVERGENT_LIMIT = 0.1
# R-hat of fewer draws a chain says nothing
_FEWEST_DRAWS = 8
# the range of ten independent normal values is this many standard deviations on average
_RANGE_OF_TEN = 3.078


class ChainsDisagreeError(RuntimeError):
    """A bound is withheld: the chains behind it disagree, did not move, diverged or say nothing.

    Examples
    --------
    Four draws a chain are too few to compare two chains.

    >>> import numpy as np, ppm
    >>> model = ppm.FiniteMixture(np.arange(6.0), np.ones((6, 1)), components=2, warmup=5)
    >>> result = ppm.PseudoPosteriorMechanism(model).run(draws=4, random_seed=1)
    >>> try:
    ...     result.local_bound
    ... except ppm.ChainsDisagreeError:
    ...     print("withheld")
    withheld
    """


@dataclass(frozen=True)
class BoundDiagnostics:
    """How far the chains behind a local bound can be trusted.

    Two quantities are followed, and **only the first one decides** whether a bound is withheld,
    unless ``total_decides``:
    Δ is the maximum of the first, which is often the term of a single record. The second sums over
    all records, and sees more of the posterior. Where only its R-hat is high, the chains agree on
    what Δ is made of and not on the rest: each of them may release another kind of database, a
    longer run may find other parameters, and with them another Δ.

    Attributes
    ----------
    r_hat : float
        R-hat of the largest weighted \\|log-likelihood\\| of each draw, rank-normalised, every
        chain split in halves. A single chain is first cut in two. NaN where it cannot be told, also
        because the quantity is the same in all draws.
    effective_draws : float
        Effective sample size (bulk) of the same.
    r_hat_log_likelihood, effective_draws_log_likelihood : float
        The same two for the weighted log-likelihood of the whole database. This R-hat decides only
        where the first quantity is the same in all draws.
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
    draws : int or None
        Number of draws, all chains together; None if it is not known.
    moved : bool
        Whether the log-likelihood took more than one value in each half of every chain.
    weighted : bool
        Whether any record has a weight above 0. Where none has, the bound is 0 whatever the chains
        do, and nothing is held against them.
    total_decides : bool
        Whether the second quantity decides as well. It does where terms are censored: their largest
        is then often the same in all draws, and what is promised is about exact draws.

    Examples
    --------
    >>> import ppm
    >>> model = ppm.GammaPoisson([3, 5, 4, 6, 20])
    >>> log_lik = model.log_likelihood(model.fit(draws=1000, random_seed=1))
    >>> print(ppm.diagnostics.bound_diagnostics(log_lik, [1.0] * 5))
    R-hat 1.004, of the log-likelihood 1.006, effective draws 1068
    a tenth of the draws gave 14.238 to 18.761
    """

    r_hat: float
    effective_draws: float
    r_hat_log_likelihood: float
    effective_draws_log_likelihood: float
    by_chain: tuple
    typical: float
    spread: tuple
    divergences: int | None = None
    draws: int | None = None
    moved: bool = True
    weighted: bool = True
    total_decides: bool = False

    @property
    def agree(self):
        """Whether nothing is held against the chains: there are no :attr:`faults`."""
        return not self.faults

    @property
    def faults(self):
        """What withholds the bound, one sentence each with what to do: a tuple of str.

        R-hat of the bound's quantity is above 1.05 (``R_HAT_LIMIT``) or cannot be told, a half of
        a chain never moved, or more than a tenth of the draws (``DIVERGENT_LIMIT``) diverged.
        """
        return (*self._r_hat_faults(), *self.faults_besides_r_hat)

    @property
    def faults_besides_r_hat(self):
        """Those of :attr:`faults` that have nothing to do with R-hat: a tuple of str."""
        if not self.weighted:
            return ()
        found = []
        if not self._finite:
            found.append(
                "a log-likelihood is infinite (correct the model, or give an impossible record "
                "weight 0)"
            )
        elif not self.moved:
            found.append(
                "a chain stood still for half of its draws or more (run a longer warm-up, or give "
                "the model other starting values or a likelihood that depends on its parameters)"
            )
        if self.divergences and self.divergences > DIVERGENT_LIMIT * (self.draws or 0):
            found.append(
                f"{self.divergences} of {self.draws} draws diverged, more than "
                f"{DIVERGENT_LIMIT:.0%} (raise target_accept, or write the model with other "
                "parameters)"
            )
        return tuple(found)

    @property
    def _finite(self):
        return bool(np.isfinite(self.by_chain).all())

    def _r_hat_faults(self):
        if not (self.weighted and self._finite and self.moved):
            return ()
        decisive = self.r_hat
        if np.isnan(decisive) and self.spread == (self.typical, self.typical):
            # the bound is the same in all draws, as that of a censored term may be
            decisive = self.r_hat_log_likelihood
        elif self.total_decides:
            # NaN of either is carried along
            decisive = float(np.maximum(decisive, self.r_hat_log_likelihood))
        if np.isnan(decisive):
            return (f"R-hat cannot be told (run {_FEWEST_DRAWS} draws a chain or more)",)
        if decisive > R_HAT_LIMIT:
            return (
                f"R-hat is {decisive:.3f}, above {R_HAT_LIMIT} (run more draws or a longer "
                "warm-up)",
            )
        return ()

    def __str__(self):
        """R-hat of both quantities, effective draws, spread and divergences, in a few words."""
        lines = [
            f"R-hat {_told(self.r_hat, 3)}, of the log-likelihood "
            f"{_told(self.r_hat_log_likelihood, 3)}, effective draws "
            f"{_told(self.effective_draws, 0)}",
            f"a tenth of the draws gave {self.spread[0]:.3f} to {self.spread[1]:.3f}",
        ]
        if self.divergences:
            lines.append(f"{self.divergences} divergent transitions")
        return "\n".join(lines)

    @property
    def error(self):
        """Monte Carlo standard error of the local bound in nats, from its `spread`.

        The standard deviation of a maximum hardly depends on the number of draws where the tail is
        that of a normal or an exponential distribution, so that a tenth of the draws tells it.
        """
        return (self.spread[1] - self.spread[0]) / _RANGE_OF_TEN


def bound_diagnostics(log_lik, weights, *, sample_stats=None, total_decides=False):
    """Compute R-hat, effective sample size and spread of the quantities behind a bound.

    Parameters
    ----------
    log_lik : xarray.DataArray, dimensions chain, draw and record
        Unweighted log-likelihood in nats, without NaN. It is read once, in blocks, wherever its
        values lie: see :func:`ppm.record_bounds`.
    weights : array_like, shape (records,)
        Weights α, 0 or more.
    sample_stats : xarray.DataTree or xarray.Dataset, optional
        Of the same fit; its ``diverging`` is counted.
    total_decides : bool, default False
        Whether R-hat of the weighted log-likelihood decides beside that of its largest term.

    Returns
    -------
    BoundDiagnostics
        The diagnostics. R-hat and effective sample size are ArviZ's, and NaN where fewer than
        eight draws a chain, an infinite log-likelihood or a constant leave nothing to say.

    Raises
    ------
    ValueError
        If ``log_lik`` has other dimensions or holds NaN, or the weights are not one finite
        number, 0 or more, for every record.

    Examples
    --------
    >>> import ppm
    >>> model = ppm.GammaPoisson([3, 5, 4, 6, 20])
    >>> log_lik = model.log_likelihood(model.fit(draws=1000, random_seed=1))
    >>> found = ppm.diagnostics.bound_diagnostics(log_lik, [1.0] * 5)
    >>> found.agree, found.draws, round(found.r_hat, 2)
    (True, 1000, 1.0)
    """
    reading = read_once(log_lik, weights, records=False)
    return diagnose({"sample_stats": sample_stats}, reading, total_decides=total_decides)


def diagnose(fit, reading, *, total_decides=False):
    """Diagnostics of a fit from one reading of its log-likelihood: see :func:`bound_diagnostics`.

    Parameters
    ----------
    fit : xarray.DataTree or dict
        The fit; only its ``sample_stats`` are looked at.
    reading : ppm.lipschitz.Reading
        What was read of its log-likelihood, numbers by draw among it.
    total_decides
        As for :func:`bound_diagnostics`.

    Returns
    -------
    BoundDiagnostics
        The diagnostics.
    """
    sizes = reading.sizes
    if not {"chain", "draw"} <= {*sizes} or len(sizes) != 3:
        raise ValueError(
            "log_lik must be an xarray.DataArray with the dimensions chain, draw and record; got "
            f"{tuple(sizes)}"
        )
    largest, total = (
        found.reshape(sizes["chain"], -1) for found in (reading.maxima, reading.total)
    )
    parts = [part.max() for part in np.array_split(largest.ravel(), min(10, largest.size))]
    stats, divergences = fit.get("sample_stats"), None
    if stats is not None and "diverging" in stats:
        divergences = int(stats["diverging"].sum())
    return BoundDiagnostics(
        r_hat(largest),
        effective_draws(largest),
        r_hat(total),
        effective_draws(total),
        by_chain=tuple(largest.max(axis=1).tolist()),
        typical=float(np.median(largest)),
        spread=(float(min(parts)), float(max(parts))),
        divergences=divergences,
        draws=largest.size,
        moved=_moved(largest, total),
        weighted=reading.weights is None or bool(reading.weights.any()),
        total_decides=total_decides,
    )


def is_diagnosed(synthesizer, log_lik):
    """Whether the chains of a fit must be compared: see :func:`must_agree`."""
    return must_agree(synthesizer, getattr(log_lik, "sizes", {}).get("chain", 1))


def must_agree(synthesizer, chains):
    """Whether so many chains must be compared: not where there is one of independent draws.

    A synthesizer that calls its draws independent and returns several chains of them is taken at
    its word only if they agree.
    """
    return chains > 1 or not getattr(synthesizer, "independent_draws", False)


def r_hat(values):
    """Rank-normalised split R-hat of one quantity, an array (chain, draw), by ArviZ.

    A single chain is cut in two halves. NaN if there are fewer than eight draws a chain, a value is
    not finite, or all are equal.
    """
    chains = np.concatenate(_halves(values)) if len(values) == 1 else values
    return _by_arviz("rhat", values, chains)


def effective_draws(values):
    """Effective sample size (bulk) of one quantity, an array (chain, draw), by ArviZ; or NaN."""
    return _by_arviz("ess", values, values)


def _by_arviz(name, values, chains):
    if values.shape[1] < _FEWEST_DRAWS or not np.isfinite(values).all() or np.ptp(values) == 0:
        return np.nan
    from arviz_stats.base import array_stats

    # chains that each stand still have no variance within, and R-hat inf
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(getattr(array_stats, name)(chains, chain_axis=0, draw_axis=1))


def _told(value, digits):
    return "not told" if np.isnan(value) else f"{value:.{digits}f}"


def _moved(*quantities):
    """Whether in each half of every chain some quantity changes; True with too few draws to see."""
    if quantities[0].shape[1] < _FEWEST_DRAWS:
        return True
    changes = [
        [(half != half[:, :1]).any(axis=1) for half in _halves(values)] for values in quantities
    ]
    return bool(np.any(changes, axis=0).all())


def _halves(values):
    half = values.shape[1] // 2
    return values[:, :half], values[:, -half:]
