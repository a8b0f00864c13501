"""The fits that the chapters on incomes share, and one weight with a given Δ."""

import copy
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import xarray as xr

import ppm
from ppm_book.chapters import running

# EMweighted is near enough to its target, or the nearest of so many fits; before them, trials
TOLERANCE, FITS, TRIALS = 0.05, 4, 3
# a trial has this part of the warm-up and of the draws
PART = 5
# a component can collapse onto more equal incomes than this: 17 did no harm, 24 did
EQUAL = 15


class Fitted(NamedTuple):
    """A fit with its bounds and chains, what it releases, and the search for its weight."""

    result: ppm.Fit
    synthetic: np.ndarray  # (releases, records)
    tried: tuple = ()  # weight, Δ and target of each fit of the search


class Found(NamedTuple):
    """A fit with one weight for all, and all fits of the search for it."""

    weight: float
    fit: xr.DataTree
    tried: np.ndarray  # (fits, 3), the weight, the Δ and the target of each


@dataclass(frozen=True)
class IncomeFits:
    """Fits of the mixture to log incomes. A run makes each once, for all chapters."""

    response: np.ndarray
    predictors: np.ndarray
    chains: int
    warmup: int
    draws: int
    releases: int
    seed: int

    def model(self, components, thin=1):
        """The mixture; chains of many records run side by side also in short fits."""
        parallel = True if len(self.response) * self.warmup > 1e6 else None
        return ppm.FiniteMixture(
            self.response,
            self.predictors,
            components=components,
            chains=self.chains,
            warmup=self.warmup,
            parallel=parallel,
            thin=thin,
        )

    def read(self, model, fit, weights, random_seed, tried=()):
        """Bounds of a fit, shown also where its chains disagree, and releases."""
        result = ppm.mechanism.bound_fit(model, fit, weights, allow_disagreement=True)
        synthetic = model.predict(fit, releases=self.releases, random_seed=random_seed)
        return Fitted(result, synthetic.values, tried)

    @running.kept()
    def weighted(self, components, weights, *stream, thin=2, places=None):
        """A fit with these weights; `stream` makes its random numbers its own.

        Chains start anywhere, or at `places`: (chains, …) by name of the parameter.
        """
        seeds = np.random.SeedSequence((self.seed, components, *stream)).spawn(2)
        model = self.model(components, thin=thin)
        initial = None if places is None else {"posterior": _draws(places)}
        fit = model.fit(
            weights, draws=self.draws, random_seed=seeds[0], initial=initial
        )
        return self.read(model, fit, weights, seeds[1])

    def unweighted(self, components):
        """The fit that all weights rest on: five sweeps for each draw."""
        return self.weighted(components, np.ones(len(self.response)), 0, thin=5)

    def dp_weighted(self, components, scale, shift):
        """The paper's mechanism."""
        bounds = self.unweighted(components).result.record_bounds
        weights = ppm.record_weights(bounds, scale=scale, shift=shift)
        return self.weighted(components, weights, 1, *place(scale, shift))

    @running.kept()
    def em_weighted(self, components, scale, shift):
        """The exponential mechanism: one weight for all, whose Δ comes near DPweighted's."""
        stream = self.seed, components, 2, *place(scale, shift)
        of_search, of_release = np.random.SeedSequence(stream).spawn(2)
        target = self.dp_weighted(components, scale, shift).result.draw_maxima
        start = self.unweighted(components).result.local_bound
        model = self.model(components)
        found = search(model, target, start, self.draws, of_search)
        weights = np.full(model.records, found.weight)
        return self.read(model, found.fit, weights, of_release, found.tried)


def _draws(places):
    """One draw of every chain, as a fit has them."""
    return xr.Dataset(
        {
            name: (
                ["chain", *[f"{name}_{axis}" for axis in range(1, values.ndim)]],
                values,
            )
            for name, values in places.items()
        }
    ).expand_dims("draw", axis=1)


def apart(response, low, random_seed):
    """Responses in which many equal incomes at the low end are no longer equal.

    Where more than `EQUAL` units with low incomes share one response, as those raised to a floor
    may, each of them is moved down by up to 0.1, at random and on its own.
    Whether they are moved depends on how many there are, so that no strict ε can rest on them.

    Parameters
    ----------
    response : numpy.ndarray, shape (n,)
        Incomes as the model takes them.
    low : numpy.ndarray of bool, shape (n,)
        Units at the floor or below it.
    random_seed : int
        Source of randomness.

    Returns
    -------
    numpy.ndarray, shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from ppm_book.chapters import application
    >>> few, many = np.zeros(3), np.zeros(30)
    >>> [np.unique(application.apart(one, one == 0, 1)).size for one in (few, many)]
    [1, 30]
    """
    _, which, counts = np.unique(response, return_inverse=True, return_counts=True)
    shift = 0.1 * np.random.default_rng(random_seed).random(len(response))
    return response - np.where(low & (counts[which] > EQUAL), shift, 0.0)


def place(scale, shift):
    """Whole numbers that give a setting random numbers of its own."""
    return round(1000 * scale), round(1000 * (1 + shift))


def next_weight(target, weights, bounds):
    """Where Δ meets the target, if it is a straight line in the weight."""
    if np.ptp(weights) > 0:
        slope, level = np.polyfit(weights, bounds, 1, w=1 / np.array(bounds))
        if slope > 0 and target > level:
            return min(1.0, (target - level) / slope)
    return min(1.0, weights[-1] * target / bounds[-1])


def search(model, largest, unweighted_bound, draws, seed, start=None):
    """Fits with one weight for all, each from where the last one ended, up to one near the target.

    ``largest`` are DPweighted's largest weighted |log-likelihoods|, by chain and draw; the target
    is the largest of them. What is found is the fit with all draws whose Δ comes closest to it. A
    trial has fewer draws, and its target is what DPweighted reaches over as many.
    """
    target, some = largest.max(), max(2, draws // PART)
    short = copy.copy(model)
    short.warmup = max(1, model.warmup // PART)
    starts = range(0, draws - some + 1, some)
    of_trials = np.mean([largest[:, i : i + some].max() for i in starts])
    # a target of 0 has the weight 0, which needs no trial
    trials = [(some, of_trials)] * TRIALS if target > 0 else []
    plan = trials + [(draws, target)] * FITS
    weights, bounds, tried, nearest = [1.0], [unweighted_bound], [], None
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
        off = abs(bound - target)
        if nearest is None or off < nearest:
            nearest, chosen, fit = off, weight, start
        if nearest <= TOLERANCE * target:
            break
    return Found(chosen, fit, np.array(tried))


def diagnosed(result):
    """What is held against the chains of a fit, as a row of a table."""
    of_chains = result.diagnostics
    return {
        "Δ": result.local_bound,
        "smallest Δ of a chain": min(of_chains.by_chain),
        "typical draw": of_chains.typical,
        "R-hat": of_chains.r_hat,
        "R-hat, log-likelihood": of_chains.r_hat_log_likelihood,
        "effective draws": of_chains.effective_draws,
        "chains agree": of_chains.agree,
    }


def median(values):
    """Median over releases; and its standard error, NaN for a single release."""
    again = np.random.default_rng(0).choice(values, (1000, len(values)))
    error = np.median(again, axis=1).std() if len(values) > 1 else np.nan
    return np.median(values), error


def typical(errors):
    """Median size of the releases' errors; and its standard error."""
    return median(np.abs(errors))
