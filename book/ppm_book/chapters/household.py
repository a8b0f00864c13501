"""Take one household away: the picture of the eight households that three chapters move."""

from typing import NamedTuple

import numpy as np
from scipy import stats

import ppm
from ppm_book.chapters import page

HOUSEHOLDS = list("ABCDEFGH")
COUNTS = np.array([3, 4, 4, 5, 5, 6, 7, 18])
SHAPE, RATE = 1.0, 0.1  # of the prior of μ
# what the panels show: values of μ, and numbers of visits
MEANS, VISITS = np.linspace(0.1, 15.9, 80), np.arange(25)
PANELS = {
    "weights": {
        "label": "Weights; outline: before it left",
        "axis": "Household and count",
        "names": [
            f"{name} {count}" for name, count in zip(HOUSEHOLDS, COUNTS, strict=True)
        ],
    },
    "posteriors": {
        "label": "Density of μ; outline: before it left",
        "range": [0, 16],
    },
    "change": {
        "label": "Change of the log density, nats",
        "height": 90,
        "range": [0, 16],
        "axis": "Mean number of visits, μ",
    },
    "released": {
        "label": "Released counts, %; outline: the eight",
        "height": 90,
        "outline": 100 * np.bincount(COUNTS, minlength=VISITS.size) / COUNTS.size,
        "range": [-0.5, VISITS[-1] + 0.5],
        "axis": "Visits",
        "colour": "#009E73",
    },
}


class Leaving(NamedTuple):
    """One household leaves: the weights of all eight before and after, and draws of μ before."""

    place: int
    before: np.ndarray
    after: np.ndarray
    mu: np.ndarray

    def change(self, mu):
        """By how much the log density of μ changes."""
        before, after = posterior(self.before), posterior(self.after)
        return np.abs(before.logpdf(mu) - after.logpdf(mu))

    def local_bound(self):
        """Δ of the eight."""
        log_p = stats.poisson.logpmf(COUNTS, self.mu[:, None])
        return (self.before * np.abs(log_p)).max()


def moving(hint, *, switch=False, scale=1.0, shift=0.0, draws=1000, seed=20220):
    """Picture of what changes when one of the eight households leaves.

    Parameters
    ----------
    hint : str
        What to predict and try.
    switch : bool, default False
        Let the reader choose whether the weights of the others are frozen or computed again
        without the household, and show both posteriors. Without the switch the weights are
        frozen, and the picture shows the released counts instead.
    scale, shift, draws, seed
        Settings of the chapter: c at first, g, S, and the seed of all random numbers.

    Returns
    -------
    What a notebook cell displays, as ``ppm_book.chapters.page.moving`` does.

    Examples
    --------
    >>> from ppm_book.chapters import household
    >>> household.moving("Predict before you press.", draws=50)
    Take one household away (in the book this can be moved: Leaving household, Scale c)
    """
    first, second, _ = np.random.SeedSequence(seed).spawn(3)
    everybody = weights_at_one(COUNTS, draws, first)
    again = [
        np.insert(weights_at_one(np.delete(COUNTS, j), draws, first), j, 0)
        for j in range(COUNTS.size)
    ]

    def frame(place, c, others="frozen"):
        before = np.clip(c * everybody + shift, 0, 1)
        after = (
            before if others == "frozen" else np.clip(c * again[place] + shift, 0, 1)
        )
        after = np.where(np.arange(COUNTS.size) == place, 0, after)
        rng = np.random.default_rng(second)
        mu = posterior(before).rvs(draws, random_state=rng)
        leaving = Leaving(place, before, after, mu)
        more = said_of_weights(leaving) if switch else said_of_release(leaving)
        bars = drawn(leaving)
        return f"{said_of_bounds(leaving)} {more}", [bars[name] for name in shown]

    controls = {
        "Leaving household": {name: place for place, name in enumerate(HOUSEHOLDS)},
        "Scale c": {f"{c:g}": c for c in sorted({0, 0.2, 0.4, 0.6, 0.8, 1, scale})},
    }
    start, shown = [0, scale], ["weights", "change", "released"]
    if switch:
        controls["Other weights"] = {"frozen": "frozen", "computed again": "again"}
        start = [HOUSEHOLDS.index("H"), scale, "frozen"]
        shown = ["weights", "posteriors", "change"]
    return page.moving(
        "Take one household away",
        controls,
        frame,
        start=start,
        hint=hint,
        panels=[PANELS[name] for name in shown],
    )


def weights_at_one(counts, draws, seed):
    """Weights of the records at c = 1 and g = 0."""
    model = ppm.GammaPoisson(counts, shape=SHAPE, rate=RATE)
    drawn = model.fit(draws=draws, random_seed=seed)
    return ppm.record_weights(ppm.record_bounds(model.log_likelihood(drawn)))


def posterior(weights):
    """Distribution of μ when the eight have these weights."""
    return stats.gamma(SHAPE + weights @ COUNTS, scale=1 / (RATE + weights.sum()))


def release(weights):
    """Distribution of a released count."""
    rate = RATE + weights.sum()
    return stats.nbinom(SHAPE + weights @ COUNTS, rate / (1 + rate))


def drawn(leaving):
    """Bars and lines of each panel."""
    twice = 2 * leaving.local_bound()
    reached = (leaving.mu.min() <= MEANS) & (leaving.mu.max() >= MEANS)
    before, after = posterior(leaving.before), posterior(leaving.after)
    return {
        "weights": {"bars": leaving.after, "outline": leaving.before},
        "posteriors": {"bars": after.pdf(MEANS), "outline": before.pdf(MEANS)},
        "change": {
            "bars": leaving.change(MEANS) * reached,
            "across": [round(twice, 3), f"2Δ {twice:.2f}"],
        },
        "released": {"bars": 100 * release(leaving.after).pmf(VISITS)},
    }


def said_of_bounds(leaving):
    delta = leaving.local_bound()
    return (
        f"Δ = {delta:.2f} nats, ε of one release = {2 * delta:.2f} nats. Without "
        f"{HOUSEHOLDS[leaving.place]} the log density of μ changes by "
        f"{leaving.change(leaving.mu).max():.2f} nats at most, over the draws that gave Δ."
    )


def said_of_weights(leaving):
    others = np.delete(np.abs(leaving.after - leaving.before), leaving.place)
    moved = np.count_nonzero(others > 0.01)
    return f"Of the other seven weights {moved} move by more than 0.01."


def said_of_release(leaving):
    released = release(leaving.after)
    return (
        f"A released count is then {released.mean():.1f} on average, and 9 of 10 lie "
        f"between {released.ppf(0.05):.0f} and {released.ppf(0.95):.0f}; the eight "
        f"households' own average is {COUNTS.mean():.1f}."
    )
