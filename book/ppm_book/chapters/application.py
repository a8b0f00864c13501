"""The fits that the chapters on incomes share, and one weight with a given Δ."""

import copy
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import xarray as xr
from scipy.stats import gmean

import ppm
from ppm_book.chapters import running

# weights of the ladder of short fits, which begins at the unweighted fit
RUNGS = 10.0 ** -np.arange(0.2, 1.7, 0.2)
# EMweighted is near enough to its target, or the nearest of so many fits
TOLERANCE, FITS = 0.05, 3
# a rung has this part of the draws, and what goes on from another fit this part of the warm-up
PART, SETTLE = 5, 10
# a component can collapse onto more equal incomes than this: 17 did no harm, 24 did
EQUAL = 15


class Fitted(NamedTuple):
    """A fit with its bounds and chains, what it releases, and the search for its weight."""

    result: ppm.Fit
    synthetic: np.ndarray  # (releases, records)
    tried: tuple = ()  # weight and Δ of each fit of the search


class Rung(NamedTuple):
    """A fit with one weight for all, as a point of the curve of Δ over the weight."""

    weight: float
    bounds: np.ndarray  # (chains, parts), the Δ of each part of a chain
    end: xr.DataTree  # the last draw of each chain


class Found(NamedTuple):
    """A fit with one weight for all, and the weight and Δ of every fit of the search for it."""

    weight: float
    fit: xr.DataTree
    tried: tuple


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
    def ladder(self, components):
        """Short fits with one weight for all, on which every EMweighted rests."""
        seed = np.random.SeedSequence((self.seed, components, 7))
        unweighted = self.unweighted(components).result
        return ladder(self.model(components), unweighted, self.draws, seed)

    @running.kept()
    def em_weighted(self, components, scale, shift):
        """The exponential mechanism: one weight for all, whose Δ comes near DPweighted's."""
        stream = self.seed, components, 2, *place(scale, shift)
        of_search, of_release = np.random.SeedSequence(stream).spawn(2)
        target = self.dp_weighted(components, scale, shift).result.draw_maxima
        model, rungs = self.model(components), self.ladder(components)
        found = search(model, target, rungs, self.draws, of_search)
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


def in_parts(largest, draws):
    """Δ of each part of a chain that has so few draws as a rung, an array (chains, parts)."""
    size = max(2, draws // PART)
    starts = np.arange(0, largest.shape[1] - size + 1, size)
    return np.maximum.reduceat(largest[:, : starts[-1] + size], starts, axis=1)


def going_on(model, weight, draws, stream, start):
    """A fit with one weight for all from where another one ended, and its draws' maxima."""
    short = copy.copy(model)
    short.warmup = max(1, model.warmup // SETTLE)
    weights = np.full(model.records, weight)
    fit = short.fit(weights, draws=draws, random_seed=stream, initial=start)
    return fit, weight * np.abs(model.log_likelihood(fit).values).max(axis=2)


def end_of(fit):
    """The last draw of each chain, for another fit to begin with."""
    last = fit["posterior"].dataset.isel(draw=[-1])
    return xr.DataTree.from_dict({"posterior": last})


def ladder(model, unweighted, draws, seed):
    """Short fits along falling weights, each from where the last one ended, as a list of `Rung`.

    The first rung is the unweighted fit, a `ppm.mechanism.MechanismResult`.
    """
    start = end_of(unweighted.draws)
    rungs = [Rung(1.0, in_parts(unweighted.draw_maxima, draws), start)]
    for weight, stream in zip(RUNGS, seed.spawn(len(RUNGS)), strict=True):
        size = max(2, draws // PART)
        fit, largest = going_on(model, weight, size, stream, start)
        start = end_of(fit)
        rungs.append(Rung(weight, in_parts(largest, draws), start))
    return rungs


def weight_at(target, rungs):
    """Where a smooth curve through the rungs meets the target; below them Δ is proportional."""
    weights, bounds = np.transpose(
        [(rung.weight, bound) for rung in rungs for bound in rung.bounds.ravel()]
    )
    curve = np.polynomial.Polynomial.fit(np.log(weights), np.log(bounds), 2)
    along = np.geomspace(weights.min(), 1.0, 1000)
    heights = np.exp(curve(np.log(along)))
    nearest = np.abs(heights - target).argmin()
    return along[nearest] * min(1.0, target / heights[nearest])


def search(model, largest, rungs, draws, seed):
    """The fit with one weight for all whose Δ is near DPweighted's, as `Found`.

    ``largest`` are DPweighted's largest weighted |log-likelihoods|, by chain and draw. A weight
    comes from the curve; each fit becomes a point of the curve, for the next one.
    """
    target, aim = largest.max(), gmean(in_parts(largest, draws), axis=None)
    rungs, tried, nearest = list(rungs), [], None
    for stream in seed.spawn(FITS):
        weight = weight_at(aim, rungs)
        # of equally near ones the last: the fit before
        near = min(rungs[::-1], key=lambda rung: abs(rung.weight - weight))
        fit, reached = going_on(model, weight, draws, stream, near.end)
        rungs.append(Rung(weight, in_parts(reached, draws), end_of(fit)))
        tried.append((weight, reached.max()))
        off = abs(reached.max() - target)
        if nearest is None or off < nearest[0]:
            nearest = off, weight, fit
        if off <= TOLERANCE * target:
            break
    _, weight, fit = nearest
    return Found(weight, fit, tuple(tried))


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
    return np.median(values), np.median(again, axis=1).std() if len(
        values
    ) > 1 else np.nan


def typical(errors):
    """Median size of the releases' errors; and its standard error."""
    return median(np.abs(errors))
