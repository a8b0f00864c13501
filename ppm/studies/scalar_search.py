"""Search for the scalar weight whose local bound comes close to a target."""

import itertools

import numpy as np

# scatter of log Δ between fits with nearly the same weight: about a tenth on the survey data
NOISE = 0.09
# slope of log Δ against log weight: 1 if refitting changed nothing, less because it widens
SLOPE, SLOPE_SPREAD = 0.8, 0.3
# how far log Δ may lie from a straight line, by log weight away from where the line is wanted
BEND = 0.3
# attempts at nearly the same weight differ by chance alone, but at the same weight not at all
APART = 0.004


def search_weight(target, unweighted_bound, attempt, *, tolerance, attempts, tried=()):
    """Look for the weight at which a noisy, nearly decreasing bound meets a target.

    Parameters
    ----------
    target : float
        Local bound to come close to, 0 or more, in nats. Only weight 0 has a bound of 0; where the
        target is infinite, weight 1 is tried.
    unweighted_bound : float
        Local bound at weight 1.
    attempt : callable
        From a scalar weight to an object with the ``local_bound`` that it leads to.
    tolerance : float
        Relative distance from the target that is good enough.
    attempts : int
        Calls of ``attempt`` at the most, 1 or more.
    tried : sequence of (float, object)
        Attempts made already, which count like the others.

    Returns
    -------
    result : object
        What ``attempt`` returned, or was tried, with the bound closest to the target.
    history : tuple of (float, float)
        Weight and local bound of everything tried, in order.

    Notes
    -----
    Each weight is where :func:`line_root` puts the target, given all attempts so far.
    """
    tried = list(tried)

    def distance(pair):
        bound = pair[1].local_bound
        if bound == target:
            return 0.0
        return abs(bound / target - 1.0) if 0 < target < np.inf else np.inf

    for _ in range(attempts):
        if tried and distance(min(tried, key=distance)) <= tolerance:
            break
        seen = [(1.0, unweighted_bound), *((weight, fit.local_bound) for weight, fit in tried)]
        weight = next_weight(seen, target)
        if weight is None:
            break
        tried.append((weight, attempt(weight)))
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
