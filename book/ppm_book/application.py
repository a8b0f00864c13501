"""What the chapters on incomes share: a fit that a run keeps, an equal bound, and a verdict."""

import copy

import numpy as np

from ppm.diagnostics import compare_chains
from ppm_book import page
from ppm_book.ledger import SURE

# EMweighted is near enough to its target, or the nearest of so many fits; before them, trials
TOLERANCE, FITS, TRIALS = 0.05, 6, 3
# a trial has this part of the warm-up and of the draws
PART = 5


def side_by_side(model):
    """The model; if it is large, with chains that run side by side also in short fits."""
    if getattr(model, "parallel", False) is None and model.records * model.warmup > 1e6:
        model = copy.copy(model)
        model.parallel = True
    return model


def summary(model, weights, posterior, releases, seed):
    """What bounds and releases need of a fit."""
    terms = weights * model.log_likelihood(posterior).values  # chain, draw, record
    synthetic = model.predict(posterior, releases=releases, random_seed=seed)
    return {
        "weights": weights,
        "bounds": np.abs(terms).max(axis=(0, 1)),  # the largest is Δ
        "oscillations": np.ptp(terms, axis=(0, 1)),
        "largest": np.abs(terms).max(axis=2),
        "total": terms.sum(axis=2),
        "synthetic": synthetic.values,
    }


@page.kept(summary)
def fit(model, weights, draws, releases, seed):
    """Draw from the pseudo posterior, and keep what bounds and releases need."""
    of_fit, of_release = np.random.SeedSequence(seed).spawn(2)
    posterior = side_by_side(model).fit(weights, draws=draws, random_seed=of_fit)
    return summary(model, weights, posterior, releases, of_release)


def next_weight(target, weights, bounds):
    """Where Δ meets the target, if it is a straight line in the weight."""
    if np.ptp(weights) > 0:
        slope, level = np.polyfit(weights, bounds, 1, w=1 / np.array(bounds))
        if slope > 0 and target > level:
            return min(1.0, (target - level) / slope)
    return min(1.0, weights[-1] * target / bounds[-1])


def search(model, largest, unweighted_bound, draws, seed, start=None):
    """Fits with one weight for all, each from where the last one ended, up to one near the target.

    ``largest`` are DPweighted's largest weighted |log-likelihoods|, by chain and draw. Returns the
    weight and the draws of the fit whose Δ comes closest to the largest of them; and, for each
    fit, its weight, its Δ and DPweighted's over as many draws.
    """
    target, some = largest.max(), max(2, draws // PART)
    short = copy.copy(model)
    short.warmup = max(1, model.warmup // PART)
    parts = [largest[:, i : i + some].max() for i in range(0, draws - some + 1, some)]
    plan = [(some, np.mean(parts))] * TRIALS * int(target > 0) + [(draws, target)] * FITS
    weights, bounds, tried, best = [1.0], [unweighted_bound], [], None
    for (size, aim), stream in zip(plan, seed.spawn(len(plan)), strict=True):
        weight = next_weight(target, weights, bounds)
        alike = np.full(model.records, weight)
        start = short.fit(alike, draws=size, random_seed=stream, initial=start)
        bound = weight * np.abs(model.log_likelihood(start).values).max()
        tried.append((weight, bound, aim))
        weights.append(weight)
        bounds.append(bound * target / aim if aim else bound)
        if size < draws:
            continue
        if best is None or abs(bound - target) < best[0]:
            best = abs(bound - target), weight, start
        if best[0] <= TOLERANCE * target:
            break
    return *best[1:], tried


# what a kept result of the search depends on
SEARCH = (next_weight, search, TOLERANCE, FITS, TRIALS, PART)


@page.kept(summary, *SEARCH)
def equal_bound(model, largest, unweighted_bound, draws, releases, seed):
    """EMweighted: one weight for all whose Δ comes near DPweighted's, found by `search`."""
    of_search, of_release = np.random.SeedSequence(seed).spawn(2)
    model = side_by_side(model)
    weight, posterior, tried = search(model, largest, unweighted_bound, draws, of_search)
    weights = np.full(model.records, weight)
    return summary(model, weights, posterior, releases, of_release) | {"tried": tried}


def chains(found):
    """What is held against the chains of a fit: a `ppm.diagnostics.BoundDiagnostics`."""
    return compare_chains(found["largest"], found["total"], weights=found["weights"])


def diagnosed(found):
    """The same, as a row of a table."""
    of_chains = chains(found)
    return {
        "Δ": found["bounds"].max(),
        "smallest Δ of a chain": min(of_chains.by_chain),
        "typical draw": of_chains.typical,
        "R-hat": of_chains.r_hat,
        "R-hat, log-likelihood": of_chains.r_hat_log_likelihood,
        "effective draws": of_chains.effective_draws,
        "chains agree": of_chains.agree,
    }


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
