"""Exercises of the chapter on what is weaker than it looks: losses, own weights, units."""

from types import SimpleNamespace

import numpy as np
from checks import exercise
from scipy import stats

import ppm


def given():
    """Eight households once more, and what is public."""
    counts = np.array([3, 4, 4, 5, 5, 6, 7, 18])
    return SimpleNamespace(
        counts=counts,
        others=counts[:-1],
        shape=1.0,
        rate=0.1,
        mu=np.linspace(3.5, 8.0, 451),
        public=(4.0, 12.0),
        cap=4.0,
        income=50_000.0,
        spread=30_000.0,
    )


def _log_ratio(g, shape, rate, power=-1):
    """Log ratio of the posteriors with and without household H, on the grid.

    SciPy's scale is the rate to the power of minus one.
    """

    def density(counts):
        return stats.gamma.logpdf(g.mu, shape + counts.sum(), scale=(rate + counts.size) ** power)

    return density(g.counts) - density(g.others)


@exercise("one number, in nats")
def exact_loss(g):
    term = stats.poisson.logpmf(g.counts[-1], g.mu)
    losses = _log_ratio(g, g.shape, g.rate)
    return np.abs(losses).max(), {
        "The ratio can be small as well as large, and both tell the two apart.": losses.max(),
        "This is the change of the log-likelihood. The two posteriors have different normalisers, "
        "too.": np.abs(term).max(),
        "This is the width of the interval in which the loss moves. It bounds the loss, and is "
        "not the loss.": np.ptp(losses),
        "An average is no guarantee: the definition asks about every set.": np.abs(losses).mean(),
        "SciPy speaks of the scale, the book of the rate.":
            np.abs(_log_ratio(g, g.shape, g.rate, power=1)).max(),
        "Both posteriors have a prior.": np.abs(_log_ratio(g, 0.0, 0.0)).max(),
    }, "Two Gamma densities, on the same grid."


@exercise("one oscillation for each of the eight households")
def public_oscillations(g):
    model = ppm.GammaPoisson(g.counts, shape=g.shape, rate=g.rate)
    bounds = model.bounds_within(*g.public)
    ends = stats.poisson.logpmf(g.counts[:, None], np.array(g.public))
    return model.oscillations_within(*g.public), {
        "You compared the two ends. Where, between them, is a count the most likely?":
            np.abs(ends[:, 0] - ends[:, 1]),
        "These are bounds: the largest distance from 0. An oscillation is the distance of the "
        "largest from the smallest value.": bounds,
        "Twice the bound is an upper limit to the oscillation, and not a sharp one.": 2 * bounds,
        "This is how close log p comes to 0. How far away does it get?":
            -stats.poisson.logpmf(g.counts, np.clip(g.counts, *g.public)),
    }, "log p is concave in μ, with its top at μ = x."


@exercise("one weight for each of the eight households")
def capped(g):
    model = ppm.GammaPoisson(g.counts, shape=g.shape, rate=g.rate)
    bounds = model.bounds_within(*g.public)
    return ppm.mapped_weights(bounds, ppm.weights.capped_map(g.cap)), {
        "Some of these are no weights: they count a household more than once.": g.cap / bounds,
        "The household with the largest bound has the largest of your weights.":
            np.minimum(1, bounds / g.cap),
        "This keeps a household or drops it. A cap takes away only as much as it must.":
            np.where(bounds <= g.cap, 1.0, 0.0),
        "These depend on the smallest and the largest bound in the table. Which weights depend on "
        "the household's own bound alone?": ppm.record_weights(bounds),
    }, "How large may α be, so that α · b is at most the cap?"


@exercise("two numbers, in nats: [dollars, thousands of dollars]")
def unit(g):
    in_dollars = -stats.norm.logpdf(g.income, g.income, g.spread)
    return [in_dollars, in_dollars - np.log(1000)], {
        "In the second case the standard deviation is in thousands of dollars, too.":
            [in_dollars, in_dollars],
        "A density is divided or multiplied by a thousand. What does its logarithm do?":
            [in_dollars, in_dollars / 1000],
        "Is a thousand dollars a wider or a narrower unit? A density is a probability per unit.":
            [in_dollars, in_dollars + np.log(1000)],
    }, "At its own mean a normal density is 1 / (σ √(2π))."
