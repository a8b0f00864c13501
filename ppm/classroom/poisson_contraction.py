"""Exercises of the chapter on contraction: many databases of counts."""

from types import SimpleNamespace

import numpy as np
from scipy import stats

import ppm
from ppm.classroom.checking import Exercise, Mistake

SEED = 2022


def given():
    """One database of counts with its weights, and the bounds of many."""
    data, draws, study = np.random.SeedSequence(SEED).spawn(3)
    counts = np.random.default_rng(data).poisson(100, 400)
    model = ppm.GammaPoisson(counts, shape=20.0, rate=0.2)
    fit = model.fit(draws=500, random_seed=draws)
    bounds = ppm.record_bounds(model.log_likelihood(fit))
    found = ppm.studies.contraction([100, 400], replicates=100, draws=200, random_seed=study)
    return SimpleNamespace(
        counts=counts,
        shape=20.0,
        rate=0.2,
        mu_draws=fit["posterior"]["mu"].values[0],
        bounds=bounds,
        weights=ppm.record_weights(bounds),
        count=130,
        M=3.5,
        study_bounds=found.dataset["local_bound"].sel(mechanism="Weighted-M", size=400).values,
        epsilon=7.15,
        databases=400,
        factor=1.02,
    )


def exercises(g):
    """The exercises that have a check."""
    model = ppm.GammaPoisson(g.counts, shape=g.shape, rate=g.rate)
    posterior = model.posterior(g.weights)
    total, records = g.weights.sum(), g.counts.size
    at_draws = stats.poisson.logpmf(g.count, g.mu_draws)
    exceedance = ppm.exceedance(g.study_bounds, g.epsilon).estimate
    limit = 1 - 0.025 ** (1 / g.databases)
    kept = ppm.record_weights(g.bounds, truncate_at=g.M)
    truncated = model.posterior(kept)
    capped = model.posterior(np.minimum(g.weights, g.M / g.bounds))
    sorted_bounds = np.sort(g.study_bounds)

    def share_above(factor):
        above = g.study_bounds[None] > factor * g.study_bounds[:, None]
        return above.sum() / (above.size - above.shape[0])

    return (
        Exercise(
            "posterior",
            "two numbers, [shape, rate] of the pseudo posterior",
            lambda: [posterior.args[0], 1 / posterior.kwds["scale"]],
            (
                Mistake(
                    "prior left out",
                    lambda: [g.weights @ g.counts, total],
                    "The records' part is there. What did the prior bring along?",
                ),
                Mistake(
                    "prior's rate left out",
                    lambda: [g.shape + g.weights @ g.counts, total],
                    "The prior has a rate as well: it adds to the second number.",
                ),
                Mistake(
                    "prior's shape left out",
                    lambda: [g.weights @ g.counts, g.rate + total],
                    "The prior has a shape as well: it adds to the first number.",
                ),
                Mistake(
                    "all weights 1",
                    lambda: [g.shape + g.counts.sum(), g.rate + records],
                    "This is the ordinary posterior: every record counts fully in it.",
                ),
                Mistake(
                    "number of records in the rate",
                    lambda: [g.shape + g.weights @ g.counts, g.rate + records],
                    "The shape is right. How many records' worth of counts does the rate count?",
                ),
                Mistake(
                    "scale for rate",
                    lambda: [g.shape + g.weights @ g.counts, 1 / (g.rate + total)],
                    "SciPy speaks of the scale, the book of the rate.",
                ),
            ),
            "See the proposition on the Gamma pseudo posterior.",
        ),
        Exercise(
            "extreme-draws",
            "one number, in nats",
            lambda: np.abs(at_draws).max(),
            (
                Mistake(
                    "at the mean of the draws",
                    lambda: -stats.poisson.logpmf(g.count, g.mu_draws.mean()),
                    "This is the value at the average draw. A bound looks at the worst draw.",
                ),
                Mistake(
                    "at the largest draw",
                    lambda: -stats.poisson.logpmf(g.count, g.mu_draws.max()),
                    "One of the two extreme draws is the worst one, but not this one: the count "
                    "lies far above the mean.",
                ),
                Mistake(
                    "probability in the place of its logarithm",
                    lambda: stats.poisson.pmf(g.count, g.mu_draws).max(),
                    "This is a probability. The bound is about its logarithm.",
                ),
            ),
            "Only the smallest and the largest draw matter.",
        ),
        Exercise(
            "share-above",
            "one share, between 0 and 1",
            lambda: exceedance,
            (
                Mistake(
                    "Δ without the factor 2",
                    lambda: np.mean(g.study_bounds > g.epsilon),
                    "You compared Δ with ε. What is the ε of a bound?",
                ),
                Mistake(
                    "databases below",
                    lambda: 1 - exceedance,
                    "This is the share that keeps to ε.",
                ),
                Mistake(
                    "number of databases",
                    lambda: exceedance * g.study_bounds.size,
                    "This is a number of databases, not a share of them.",
                ),
            ),
            "Count the databases whose 2Δ is above ε.",
        ),
        Exercise(
            "none-of-400",
            "one probability, the upper end of the interval",
            lambda: limit,
            (
                Mistake(
                    "the estimate itself",
                    lambda: 0.0,
                    "Nothing was seen, but that does not make it impossible. Which share would "
                    "still be compatible with seeing nothing?",
                ),
                Mistake(
                    "rule of three",
                    lambda: 3 / g.databases,
                    "The rule of three approximates the upper end of a one-sided interval. Here "
                    "the exact end of a two-sided one is asked for.",
                ),
                Mistake(
                    "five per cent at the upper end",
                    lambda: 1 - 0.05 ** (1 / g.databases),
                    "A two-sided interval of 95 per cent leaves how much at each end?",
                ),
                Mistake(
                    "probability of no exceedance",
                    lambda: 0.025 ** (1 / g.databases),
                    "This is the share of databases that keep to ε.",
                ),
            ),
            "Solve (1 - p)^R = α/2 for p.",
        ),
        Exercise(
            "removed",
            "one whole number of records",
            lambda: np.sum(kept == 0),
            (
                Mistake(
                    "bounds in the place of weighted bounds",
                    lambda: np.sum(g.bounds > g.M),
                    "You compared the unweighted bounds with M. What is compared is the product "
                    "with the weight.",
                ),
                Mistake(
                    "records that stay",
                    lambda: np.sum(kept > 0),
                    "These are the records that stay.",
                ),
                Mistake(
                    "the most extreme record forgotten",
                    lambda: np.sum(g.weights * g.bounds > g.M),
                    "The threshold removes these. Which record had lost its weight before?",
                ),
            ),
            "A record is removed if its weight is 0 in the end.",
        ),
        Exercise(
            "bias",
            "one number, the distance in standard deviations of the truncated posterior",
            lambda: (truncated.mean() - g.counts.mean()) / truncated.std(),
            (
                Mistake(
                    "not divided",
                    lambda: truncated.mean() - g.counts.mean(),
                    "This is the distance in visits. How large is it beside the spread of the "
                    "posterior?",
                ),
                Mistake(
                    "divided by the variance",
                    lambda: (truncated.mean() - g.counts.mean()) / truncated.var(),
                    "You divided by the variance.",
                ),
                Mistake(
                    "weights without truncation",
                    lambda: (posterior.mean() - g.counts.mean()) / posterior.std(),
                    "This is Weighted, not Weighted-M.",
                ),
                Mistake(
                    "spread of the counts",
                    lambda: (truncated.mean() - g.counts.mean()) / g.counts.std(),
                    "The counts spread far more than the posterior of their mean.",
                ),
                Mistake(
                    "the other sign",
                    lambda: (g.counts.mean() - truncated.mean()) / truncated.std(),
                    "Look at the sign: below the mean of the counts the distance is negative.",
                ),
                Mistake(
                    "weights cut down, not to 0",
                    lambda: (capped.mean() - g.counts.mean()) / capped.std(),
                    "You lowered weights until the records just keep to M. What does Weighted-M "
                    "do with a record above M?",
                ),
                Mistake(
                    "mean that the counts were drawn with",
                    lambda: (truncated.mean() - 100) / truncated.std(),
                    "Counts are not exactly on the mean that they were drawn with. Take their own.",
                ),
            ),
            "Mean and standard deviation are those of the Weighted-M pseudo posterior.",
        ),
        Exercise(
            "safety",
            "one share, between 0 and 1",
            lambda: share_above(g.factor),
            (
                Mistake(
                    "without the factor",
                    lambda: share_above(1.0),
                    "This is the share for a factor of 1.",
                ),
                Mistake(
                    "factor on the wrong side",
                    lambda: share_above(1 / g.factor),
                    "The factor belongs to the bound of the agency's own database, not to those "
                    "of the others.",
                ),
                Mistake(
                    "the median database only",
                    lambda: np.mean(sorted_bounds > g.factor * np.median(sorted_bounds)),
                    "You took one database as the agency's. Take every one in turn.",
                ),
                Mistake(
                    "a database among its own others",
                    lambda: share_above(g.factor) * (g.study_bounds.size - 1)
                    / g.study_bounds.size,
                    "How many *other* databases does a database have?",
                ),
            ),
            "Take every database in turn as the agency's own, and average.",
        ),
    )
