"""Search for the scalar weight whose local bound comes close to a target."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from ppm._random import generator, seed_sequence, streams
from ppm._validation import check_count, check_number
from ppm.lipschitz import local_bound
from ppm.mechanism import refit
from ppm.studies.kept_fits import warm_copy
from ppm.synthesizers.accepted import as_synthesizer
from ppm.synthesizers.base import check_fit

# scatter of log Δ between fits with nearly the same weight: about a tenth on the survey data
NOISE = 0.09
# slope of log Δ against log weight: 1 if refitting changed nothing, less because it widens
SLOPE, SLOPE_SPREAD = 0.8, 0.3
# how far log Δ may lie from a straight line, by log weight away from where the line is wanted
BEND = 0.3
# attempts at nearly the same weight differ by chance alone, but at the same weight not at all
APART = 0.004


def match_local_bound(
    synthesizer, target, *, unweighted, draws=1000, random_seed=None, tolerance=0.03, attempts=30,
    allow_disagreement=False, progress=False,
):
    """Exponential mechanism whose local bound comes close to a target.

    The paper's scalar weight, target / Δ of the unweighted fit, supposes that refitting leaves
    the records' bounds as they are. It does not: a smaller weight leaves a wider posterior. So each
    weight is tried where a line through log Δ against log weight, fitted to all attempts so far,
    meets the target.

    Parameters
    ----------
    synthesizer : ppm.Synthesizer or pymc.Model
        The model. If its ``fit`` takes ``initial`` and it has a ``warmup``, as
        :class:`ppm.FiniteMixture`, each attempt starts where the fit with the nearest weight
        ended, with a fifth of the warm-up.
    target : float
        Local bound to come close to, above 0, in nats.
    unweighted : xarray.DataTree
        Its unweighted fit.
    draws : int, default 1000
        Kept draws a chain of each attempt, 1 or more: as many as the target was taken over.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness; every attempt uses the same stream.
    tolerance : float, default 0.03
        Relative distance from the target that is good enough.
    attempts : int, default 30
        Fits to try at the most, 1 or more.
    allow_disagreement : bool, default False
        Go on, and show the bound, where chains disagree, marked as such.
    progress : bool, default False
        Whether the synthesizer shows how far it is.

    Returns
    -------
    result : MechanismResult
        The attempt whose bound is closest to the target. Its bound is its own, never the target.
    history : tuple of (float, float)
        Weight and local bound of every attempt, in order.

    Raises
    ------
    TypeError
        If ``synthesizer`` is neither a synthesizer nor a PyMC model.
    ValueError
        If an argument is out of range, or ``unweighted`` is a fit of other records.
    ChainsDisagreeError
        If the chains of an attempt disagree.

    Notes
    -----
    Savitsky, Williams and Hu (2022), sections 3.1 and 5.

    A local bound is a maximum over draws, and scatters: on the survey data by about a tenth between
    fits that differ in nothing but chance. No weight has *the* bound, and coming within 3 % of
    a target is partly a matter of luck: near the target, attempts at nearly the same weight are
    made until one hits, about five on average. The result is therefore a chosen one. Its bound is
    true for its own draws, which its releases come from, but the same weight with another
    seed would miss the target by that tenth, to either side. The history shows the attempts that
    were not chosen. The choice itself looks at confidential records, and no ε covers it.

    Examples
    --------
    >>> import ppm
    >>> model = ppm.GammaPoisson([3, 5, 4, 6, 20])
    >>> fit = model.fit(draws=500, random_seed=1)
    >>> result, history = ppm.studies.match_local_bound(
    ...     model, 5.0, unweighted=fit, draws=500, random_seed=2)
    >>> [(round(weight, 2), round(bound, 2)) for weight, bound in history]
    [(0.19, 5.46), (0.17, 5.17), (0.17, 5.11)]
    """
    synthesizer = as_synthesizer(synthesizer)
    target = check_number("target", target, above=0)
    draws = check_count("draws", draws)
    tolerance = check_number("tolerance", tolerance, above=0)
    attempts = check_count("attempts", attempts)
    check_fit(synthesizer, unweighted, "unweighted")
    # a seed, because a Generator would give another stream to every attempt
    seed = seed_sequence(generator(streams(random_seed, 2)[1]))
    warm = warm_copy(synthesizer)

    def attempt(weight, start):
        # a synthesizer without a warm-up to shorten starts where it likes
        near = {} if warm is synthesizer else {"initial": start.draws}
        found = refit(
            warm, np.full(synthesizer.records, weight), draws=draws, random_seed=seed,
            allow_disagreement=allow_disagreement, progress=progress, **near,
        )
        return replace(found, synthesizer=synthesizer)

    # where the search begins, and no attempt: nothing hangs on what its chains say
    log_lik = synthesizer.log_likelihood(unweighted)
    bound = local_bound(log_lik, np.ones(synthesizer.records))
    first = SimpleNamespace(draws=unweighted, local_bound=bound)
    return search_weight(target, first, attempt, tolerance=tolerance, attempts=attempts)


def search_weight(target, unweighted, attempt, *, tolerance, attempts, shared=()):
    """Look for the weight at which a noisy, nearly decreasing bound meets a target.

    Parameters
    ----------
    target : float
        Local bound to come close to, 0 or more, in nats. Only weight 0 has a bound of 0; where the
        target is infinite, weight 1 is tried.
    unweighted : object
        The fit at weight 1, with its ``local_bound``.
    attempt : callable
        From a scalar weight, and a fit with a weight near it to start from or None, to a fit: an
        object with the ``local_bound`` that the weight leads to.
    tolerance : float
        Relative distance from the target that is good enough.
    attempts : int
        Calls of ``attempt`` at the most, 1 or more.
    shared : sequence of float
        Weights to try first, from no starting fit, because other searches try them too.

    Returns
    -------
    result : object
        What ``attempt`` returned with the bound closest to the target.
    history : tuple of (float, float)
        Weight and local bound of everything tried, in order.

    Notes
    -----
    Each weight is where :func:`line_root` puts the target, given all attempts so far.
    """
    finished, tried = {1.0: unweighted}, []

    def distance(pair):
        bound = pair[1].local_bound
        if bound == target:
            return 0.0
        return abs(bound / target - 1.0) if 0 < target < np.inf else np.inf

    def make(weight, start):
        fit = attempt(weight, start)
        tried.append((weight, fit))
        if weight > 0:
            finished[weight] = fit

    for weight in shared:
        make(weight, None)
    while len(tried) < attempts:
        if tried and distance(min(tried, key=distance)) <= tolerance:
            break
        seen = [(1.0, unweighted.local_bound), *((w, fit.local_bound) for w, fit in tried)]
        weight = next_weight(seen, target)
        if weight is None:
            break
        make(weight, finished[min(finished, key=lambda w: abs(np.log(max(weight, 1e-9) / w)))])
    _, best = min(tried, key=distance)
    return best, tuple((weight, fit.local_bound) for weight, fit in tried)


def rungs(target, unweighted_bound):
    """Weights 1/3, 1/9, … down to where the target is expected, for searches to share.

    Parameters
    ----------
    target, unweighted_bound : float
        As for :func:`search_weight`.

    Returns
    -------
    list of float
        Largest first; none where the target is 0 or not below the unweighted bound, six at the
        most.
    """
    if not 0 < target < unweighted_bound < np.inf:
        return []
    steps = np.log(unweighted_bound / target) / SLOPE / np.log(3.0)
    return [3.0**-step for step in range(1, min(6, int(np.ceil(steps))) + 1)]


def next_weight(seen, target):
    """Weight to try next, given weights and bounds seen so far; None where it is no use.

    Parameters
    ----------
    seen : sequence of (float, float)
        Weights in [0, 1] and their bounds, weight 1 first.
    target : float
        Bound looked for.

    Returns
    -------
    float or None
        A weight that was not tried before, in [0, 1].
    """
    usable = [(w, b) for w, b in seen if w > 0 and 0 < b < np.inf]
    if not usable or not 0 < target < np.inf:
        # an impossible record: only leaving everybody out has a bound, and once is enough. The same
        # goes for a target of 0, and nothing need be done to reach an infinite one
        return float(target == np.inf) if len(seen) == 1 else None
    wanted = line_root(usable, target)
    tried = np.array([weight for weight, _ in seen[1:]])
    for step in itertools.chain([0], *([k, -k] for k in range(1, 200))):
        weight = min(1.0, wanted * np.exp(0.007 * step))
        with np.errstate(divide="ignore"):
            if not np.any(np.abs(np.log(weight) - np.log(tried)) < APART):
                return float(weight)
        if weight == 1.0 and step == 0:
            # no weight gives a larger bound than 1 does
            return None
    return None


def line_root(seen, target):
    """Weight at which a line through log bound against log weight meets the target.

    Every point counts as far as its scatter and its distance allow, and a prior on the slope
    stands in where there are few points or all lie together.

    Parameters
    ----------
    seen : sequence of (float, float)
        Weights and bounds, all above 0.
    target : float
        Bound looked for.

    Returns
    -------
    float
        A weight of at most 1, no more than ten times below or above those seen.
    """
    x = np.log([weight for weight, _ in seen])
    y = np.log([bound / target for _, bound in seen])
    root = x[np.argmin(np.abs(y))]
    for _ in range(8):
        precision = 1.0 / (NOISE**2 + (BEND * (x - root)) ** 2)
        total = precision.sum()
        centre, level = precision @ x / total, precision @ y / total
        cross = precision @ ((x - centre) * (y - level)) + SLOPE / SLOPE_SPREAD**2
        slope = cross / (precision @ (x - centre) ** 2 + 1.0 / SLOPE_SPREAD**2)
        # a bound that hardly falls, or rises, as the weight falls is followed downwards slowly
        root = centre - level / np.clip(slope, 0.2, 2.0)
        root = np.clip(root, x.min() - np.log(10.0), min(0.0, x.max() + np.log(10.0)))
    return float(np.exp(root))
