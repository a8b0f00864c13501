"""What the chapters on incomes share: a fit that a run keeps, an equal bound, and a verdict."""

import functools
import multiprocessing

import numpy as np

from ppm.diagnostics import diagnose
from ppm.lipschitz import Reading
from ppm.synthesizers.chains import ChainPool, alone_in_this_process, sharing
from ppm_book import page
from ppm_book.ledger import SURE

# EMweighted is near enough to its target, or it is the nearest of so many tries
TOLERANCE, TRIES = 0.03, 10


@functools.cache
def _pool():
    return ChainPool()


def chains_in_one_pool(function):
    """Let the chains of all fits run in the same processes, which take seconds to start."""

    @functools.wraps(function)
    def call(*arguments):
        # one of several tasks, side by side, starts no processes
        worker = multiprocessing.parent_process() is not None
        where = alone_in_this_process() if worker else sharing(_pool(), lambda sweeps: None)
        with where:
            return function(*arguments)

    return call


@page.kept()
@chains_in_one_pool
def fit(model, weights, draws, releases, seed):
    """Draw from the pseudo posterior, and keep what bounds and releases need."""
    of_fit, of_release = np.random.SeedSequence(seed).spawn(2)
    posterior = model.fit(weights, draws=draws, random_seed=of_fit)
    terms = weights * model.log_likelihood(posterior).values  # chain, draw, record
    synthetic = model.predict(posterior, releases=releases, random_seed=of_release)
    return {
        "weights": weights,
        "bounds": np.abs(terms).max(axis=(0, 1)),  # the largest is Δ
        "oscillations": np.ptp(terms, axis=(0, 1)),
        "largest": np.abs(terms).max(axis=2),
        "total": terms.sum(axis=2),
        "synthetic": synthetic.values,
    }


def equal_bound(fit_with, target, unweighted_bound):
    """EMweighted: the one weight for all whose Δ comes closest to a target; and all tries."""
    weight, tries = target / unweighted_bound, []
    for _ in range(TRIES):
        tries.append(fit_with(weight))
        bound = tries[-1]["bounds"].max()
        if abs(bound - target) <= TOLERANCE * target:
            break
        weight = min(1.0, weight * target / bound)
    return min(tries, key=lambda found: abs(found["bounds"].max() - target)), tries


def chains(found):
    """What is held against the chains of a fit: a `ppm.diagnostics.BoundDiagnostics`."""
    largest, total, weights = (found[name] for name in ("largest", "total", "weights"))
    sizes = {"chain": largest.shape[0], "draw": largest.shape[1], "record": weights.size}
    reading = Reading(weights, sizes, largest=largest.ravel(), total=total.ravel())
    return diagnose({}, reading)


def typical(errors):
    """Median size of the releases' errors; and its standard error, NaN for a single release."""
    sizes = np.abs(errors)
    again = np.random.default_rng(0).choice(sizes, (1000, len(sizes)))
    return np.median(sizes), np.median(again, axis=1).std() if len(sizes) > 1 else np.nan


def closer(what, distances, errors):
    """Say which of two mechanisms was closer to the data, at how many settings and by how much.

    Parameters
    ----------
    what : str
        The statistic.
    distances, errors : pandas.DataFrame
        A column for each of the two, a row for each setting: distances from the data, and their
        standard errors, in per cent of the data's value.

    Returns
    -------
    str
        A sentence; *undecided* where they differ by less than two standard errors.

    Examples
    --------
    >>> import pandas as pd
    >>> from ppm_book import application
    >>> off = pd.DataFrame({"DPweighted": [1.0, 2.0], "EMweighted": [5.0, 2.1]})
    >>> application.closer("Mean", off, 0 * off + 0.5)
    'Mean: DPweighted was closer at 1 of 2 settings, by 4.0 percentage points; undecided at 1 of 2.'
    """
    first, second = distances
    gap = distances[second] - distances[first]
    sure = gap.abs() > SURE * np.hypot(errors[first], errors[second])
    parts = []
    for name, ahead in ((first, gap > 0), (second, gap < 0)):
        by = gap[sure & ahead].abs()
        if len(by):
            by = " to ".join(dict.fromkeys(f"{end:.1f}" for end in (by.min(), by.max())))
            where = f"{np.count_nonzero(sure & ahead)} of {len(gap)} settings"
            parts.append(f"{name} was closer at {where}, by {by} percentage points")
    if len(gap) == 1 and not sure.all():
        return f"{what}: undecided at this setting whether {first} or {second} was closer."
    if not sure.all():
        what_of = "" if parts else f" whether {first} or {second} was closer"
        parts.append(f"undecided{what_of} at {np.count_nonzero(~sure)} of {len(gap)}")
    return f"{what}: {'; '.join(parts)}."
