"""The pseudo posterior mechanism: fit, weigh, refit, bound, release (the paper's section 3)."""

from dataclasses import dataclass, field

import numpy as np

from ppm import pdp
from ppm._validation import check_count, check_number, check_weights
from ppm.lipschitz import record_bounds
from ppm.synthesizers.base import Synthesizer
from ppm.weights import record_weights, scalar_weights


@dataclass(frozen=True, eq=False)
class MechanismResult:
    """What one run of the mechanism computed.

    Only :meth:`synthesize` returns something meant for release. Weights, bounds and draws were
    computed from the confidential records and are confidential themselves.

    Attributes
    ----------
    weights : numpy.ndarray, shape (records,)
        Weights α the records were given.
    record_bounds : numpy.ndarray, shape (records,)
        Bounds of the weighted records, in nats.
    local_bound : float
        Local Lipschitz bound Δ, the largest of them.
    draws : xarray.DataTree
        The weighted fit: posterior draws and log-likelihood.
    draws_used : int
        Number S of draws the maximum was taken over (all chains).
    unweighted : xarray.DataTree or None
        The fit that gave the weights, to be passed on to another run.
    """

    weights: np.ndarray
    record_bounds: np.ndarray
    local_bound: float
    draws_used: int
    draws: object = field(repr=False)
    unweighted: object = field(repr=False)
    synthesizer: object = field(repr=False)

    def epsilon(self, releases=1):
        """Local ε = 2Δm of m releases, in nats: see :func:`ppm.epsilon`."""
        return pdp.epsilon(self.local_bound, releases)

    def synthesize(self, releases, *, random_seed=None):
        """Draw synthetic databases from the pseudo posterior predictive distribution.

        Parameters
        ----------
        releases : int
            Number m of synthetic databases, 1 or more. Their ε is ``epsilon(releases)``.
        random_seed : int, SeedSequence or Generator, optional
            Source of randomness.

        Returns
        -------
        xarray.DataArray, dimensions (release, record)
            The databases, with ``epsilon`` and ``releases`` among the attributes.

        Raises
        ------
        ValueError
            If ``releases`` is not a whole number of at least 1.

        Notes
        -----
        Savitsky, Williams and Hu (2022), section 3, step 3.
        """
        releases = check_count("releases", releases)
        synthetic = self.synthesizer.predict(self.draws, releases=releases, random_seed=random_seed)
        return synthetic.assign_attrs(releases=releases, epsilon=self.epsilon(releases))


class PseudoPosteriorMechanism:
    r"""The Bayesian pseudo posterior mechanism for one synthesizer.

    Parameters
    ----------
    synthesizer : ppm.Synthesizer
        The model, holding the confidential records.
    scale, shift : float, default 1 and 0
        The paper's c and g in :math:`\alpha_i = c\,(1 - \tilde f_i) + g`.
    truncate_at : float, optional
        The paper's M, in nats.
    weights : array_like, shape (records,), optional
        Weights to use as they are, in the place of the paper's rule: all 1 for the unweighted
        posterior, :func:`ppm.scalar_weights` for the exponential mechanism. Not to be combined
        with ``scale``, ``shift`` or ``truncate_at``.

    Raises
    ------
    TypeError
        If ``synthesizer`` does not follow the protocol :class:`ppm.Synthesizer`.
    ValueError
        If a setting is out of range, or weights are given together with a rule for them.

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 3.

    Examples
    --------
    >>> import ppm
    >>> mechanism = ppm.PseudoPosteriorMechanism(ppm.GammaPoisson([3, 5, 4, 6, 20]))
    >>> result = mechanism.run(draws=200, random_seed=1)
    >>> float(result.weights[4])
    0.0
    >>> bool(result.epsilon() < ppm.epsilon(ppm.local_bound(
    ...     result.synthesizer.log_likelihood(result.unweighted))))
    True
    """

    def __init__(self, synthesizer, *, scale=1.0, shift=0.0, truncate_at=None, weights=None):
        if not isinstance(synthesizer, Synthesizer):
            raise TypeError(
                "synthesizer must have records, fit, log_likelihood and predict, as "
                f"ppm.GammaPoisson has; got {type(synthesizer).__name__}"
            )
        self.synthesizer = synthesizer
        self.scale = check_number("scale", scale, above=0)
        self.shift = check_number("shift", shift)
        if truncate_at is not None:
            truncate_at = check_number("truncate_at", truncate_at, above=0)
        self.truncate_at = truncate_at
        if weights is not None:
            if (self.scale, self.shift, truncate_at) != (1.0, 0.0, None):
                raise ValueError("weights replaces scale, shift and truncate_at: leave those out")
            weights = check_weights(weights, synthesizer.records)
        self.weights = weights

    def run(self, *, draws=1000, random_seed=None, unweighted=None, progress=False):
        """Fit, weigh, refit and bound.

        Parameters
        ----------
        draws : int, default 1000
            Kept draws a chain of each fit, 1 or more.
        random_seed : int or SeedSequence, optional
            Source of randomness; the two fits get independent streams of it.
        unweighted : xarray.DataTree, optional
            The ``unweighted`` fit of an earlier run on the same records, to save the first fit.
        progress : bool, default False
            Whether the synthesizer shows how far it is.

        Returns
        -------
        MechanismResult
            Weights, bounds and draws.

        Raises
        ------
        ValueError
            If an argument is out of range, or a log-likelihood holds NaN.
        """
        draws = check_count("draws", draws)
        first, second = _streams(random_seed)
        weights = self.weights
        if weights is None:
            if unweighted is None:
                unweighted = self.synthesizer.fit(
                    draws=draws, random_seed=first, progress=progress
                )
            weights = record_weights(
                self.synthesizer.log_likelihood(unweighted),
                scale=self.scale,
                shift=self.shift,
                truncate_at=self.truncate_at,
            )
        fit = self.synthesizer.fit(weights, draws=draws, random_seed=second, progress=progress)
        return bound_fit(self.synthesizer, fit, weights, unweighted=unweighted)


def bound_fit(synthesizer, fit, weights, *, unweighted=None):
    """Bounds of a fit that exists already: step 2b-c on its own.

    Parameters
    ----------
    synthesizer : ppm.Synthesizer
        The model that was fitted.
    fit : xarray.DataTree
        What its ``fit`` returned for these weights.
    weights : array_like, shape (records,)
        Weights α in [0, 1].
    unweighted : xarray.DataTree, optional
        The fit that gave the weights.

    Returns
    -------
    MechanismResult
        Weights, bounds and draws.

    Raises
    ------
    ValueError
        If the weights are out of range or a log-likelihood holds NaN.

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 3, steps 2b-c.
    """
    weights = check_weights(weights, synthesizer.records)
    log_lik = synthesizer.log_likelihood(fit)
    bounds = record_bounds(log_lik, weights)
    return MechanismResult(
        weights=weights,
        record_bounds=bounds,
        local_bound=float(bounds.max()),
        draws_used=log_lik.size // bounds.size,
        draws=fit,
        unweighted=unweighted,
        synthesizer=synthesizer,
    )


def match_local_bound(
    synthesizer, target, *, unweighted, draws=1000, random_seed=None, tolerance=0.05, attempts=4,
    progress=False,
):
    """Exponential mechanism whose local bound comes close to a target.

    The first scalar weight is the paper's, target / Δ of the unweighted fit. Because the refitted
    posterior is wider, the bound it leads to can differ from the target; later attempts
    interpolate (in logarithms) between the weights and bounds seen so far.

    Parameters
    ----------
    synthesizer : ppm.Synthesizer
        The model.
    target : float
        Local bound to come close to, above 0, in nats.
    unweighted : xarray.DataTree
        Its unweighted fit.
    draws : int, default 1000
        Kept draws a chain of each attempt, 1 or more.
    random_seed : int or SeedSequence, optional
        Source of randomness; every attempt uses the same stream.
    tolerance : float, default 0.05
        Relative distance from the target that is good enough.
    attempts : int, default 4
        Fits to try at the most, 1 or more.
    progress : bool, default False
        Whether the synthesizer shows how far it is.

    Returns
    -------
    result : MechanismResult
        The attempt whose bound is closest to the target.
    history : tuple of (float, float)
        Weight and local bound of every attempt, in order.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Savitsky, Williams and Hu (2022), sections 3.1 and 5.
    """
    target = check_number("target", target, above=0)
    tolerance = check_number("tolerance", tolerance, above=0)
    attempts = check_count("attempts", attempts)
    log_lik = synthesizer.log_likelihood(unweighted)
    ones = np.ones(synthesizer.records)
    seen = [(1.0, float(record_bounds(log_lik).max()))]
    weight = float(scalar_weights(log_lik, epsilon=2.0 * target)[0])
    best, history = None, []
    for _ in range(attempts):
        mechanism = PseudoPosteriorMechanism(synthesizer, weights=weight * ones)
        result = mechanism.run(draws=draws, random_seed=random_seed, progress=progress)
        history.append((weight, result.local_bound))
        if best is None or _distance(result, target) < _distance(best, target):
            best = result
        if _distance(best, target) <= tolerance or weight == 0 or result.local_bound == 0:
            break
        seen.append(history[-1])
        weight = _next_weight(seen, target)
    return best, tuple(history)


def _distance(result, target):
    return abs(result.local_bound / target - 1.0)


def _next_weight(seen, target):
    """Next scalar weight to try: between the tightest bracket, or in proportion below all."""
    too_low = [pair for pair in seen if pair[1] <= target]
    too_high = [pair for pair in seen if pair[1] > target]
    if not too_low:
        weight, bound = min(too_high)
        return weight * target / bound
    # a small weight leaves a wide posterior, so that the bound need not fall with the weight: the
    # bracket is sought among the weights, not among the bounds
    weight, bound = max(too_low)
    above = [pair for pair in too_high if pair[0] > weight]
    if not above:
        return min(1.0, weight * target / bound)
    ceiling, ceiling_bound = min(above)
    share = np.log(target / bound) / np.log(ceiling_bound / bound)
    return float(weight * (ceiling / weight) ** share)


def _streams(random_seed):
    """Two independent streams, the same ones again for the same seed."""
    if isinstance(random_seed, np.random.Generator):
        return random_seed.spawn(2)
    if not isinstance(random_seed, np.random.SeedSequence):
        random_seed = np.random.SeedSequence(random_seed)
    # a fresh copy: spawning from the caller's object would give other streams at the next run
    return np.random.SeedSequence(
        random_seed.entropy, spawn_key=random_seed.spawn_key, pool_size=random_seed.pool_size
    ).spawn(2)
