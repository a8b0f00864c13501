"""Exercises of the chapter on contraction: many databases of counts."""

from types import SimpleNamespace

import numpy as np
from scipy import stats

import ppm
from checks import exercise

SEED = 2022


def given():
    """One database of counts with its weights, and the bounds of many."""
    data, draws, study = np.random.SeedSequence(SEED).spawn(3)
    g = SimpleNamespace(count=130, M=3.5, epsilon=7.15, databases=400, factor=1.02)
    g.shape, g.rate = 20.0, 0.2
    g.threshold = 5.0
    # for paper
    g.six_bounds, g.low_M, g.small_mean = [4.0, 5.0, 6.0, 8.0, 10.0, 12.0], 4.2, 25.0
    g.counts = np.random.default_rng(data).poisson(100, 400)
    model = ppm.GammaPoisson(g.counts, shape=g.shape, rate=g.rate)
    fit = ppm.fit(model, ppm.Terms(np.ones(400)), draws=500, random_seed=draws)
    g.mu_draws, g.bounds = fit.theta["mu"], fit.record_bounds
    g.weights = ppm.record_weights(g.bounds)
    databases = map(np.random.default_rng, study.spawn(100))
    g.study_bounds = np.array([_truncated_bound(rng) for rng in databases])
    return g


def _truncated_bound(rng):
    """Local bound of one database of 400 counts under Weighted-M, from the extreme draws of μ."""
    counts = rng.poisson(100, 400)

    def log_lik(weights):
        shape, rate = 0.001 + weights @ counts, 0.001 + weights.sum()
        mu = rng.standard_gamma(shape, 200) / rate
        return stats.poisson.logpmf(counts, [[mu.min()], [mu.max()]])

    bounds = ppm.record_bounds(log_lik(np.ones(400)))
    weights = ppm.record_weights(bounds, truncate_at=3.5)
    return ppm.local_bound(log_lik(weights), weights)


@exercise("two numbers, [shape, rate] of the pseudo posterior")
def posterior(g):
    found = ppm.GammaPoisson(g.counts, shape=g.shape, rate=g.rate).posterior(g.weights)
    visits, total, records = g.weights @ g.counts, g.weights.sum(), g.counts.size
    return (
        [found.args[0], 1 / found.kwds["scale"]],
        {
            "The records' part is there. What did the prior bring along?": [
                visits,
                total,
            ],
            "The prior has a rate as well: it adds to the second number.": [
                g.shape + visits,
                total,
            ],
            "The prior has a shape as well: it adds to the first number.": [
                visits,
                g.rate + total,
            ],
            "This is the ordinary posterior: every record counts fully in it.": [
                g.shape + g.counts.sum(),
                g.rate + records,
            ],
            "The shape is right. How many records' worth of counts does the rate count?": [
                g.shape + visits,
                g.rate + records,
            ],
            "In the second number the weights add up, and are not averaged.": [
                g.shape + visits,
                g.rate + total / records,
            ],
            "You averaged what adds up over the records.": [
                g.shape + visits / records,
                g.rate + total / records,
            ],
            "SciPy has the scale, the book the rate.": [
                g.shape + visits,
                1 / (g.rate + total),
            ],
        },
        "See the proposition on the Gamma pseudo posterior.",
    )


@exercise("one number, in nats")
def extreme_draws(g):
    at_draws = stats.poisson.logpmf(g.count, g.mu_draws)
    at_ends = np.abs([at_draws.min(), at_draws.max()])
    return (
        np.abs(at_draws).max(),
        {
            "This is the value at the average draw. A bound looks at the worst draw.": -stats.poisson.logpmf(
                g.count, g.mu_draws.mean()
            ),
            "One of the two extreme draws is the worst one, but not this one: the count lies far "
            "above the mean.": -stats.poisson.logpmf(g.count, g.mu_draws.max()),
            "Of the two extreme draws one is the worst. They are not added up.": at_ends.sum(),
            "Of the two extreme draws one is the worst. They are not averaged.": at_ends.mean(),
            "This is a place of a draw. Wanted is the value there.": np.abs(
                at_draws
            ).argmax(),
            "The largest log-probability is no largest absolute value: it belongs to the draw that "
            "suits the count best.": at_draws.max(),
            "This is a probability. The bound is about its logarithm.": stats.poisson.pmf(
                g.count, g.mu_draws
            ).max(),
        },
        "Only the smallest and the largest draw matter.",
    )


@exercise("three bounds in nats: [local, at the limit, global]")
def three_bounds(g):
    counts, ends = np.arange(301), np.array([95.0, 105.0])
    kept = counts[np.abs(stats.poisson.logpmf(counts, 100)) <= g.threshold]
    seen = np.intersect1d(kept, g.counts)

    def bound(counts, mu):
        return np.abs(stats.poisson.logpmf(counts, np.reshape(mu, (-1, 1)))).max()

    def smallest(counts, mu):
        return np.abs(stats.poisson.logpmf(counts, np.reshape(mu, (-1, 1)))).min()

    local, limit, public = (
        bound(seen, g.mu_draws),
        bound(kept, 100.0),
        bound(kept, ends),
    )
    return (
        [local, limit, public],
        {
            "The first looks at every count of the database. Which of them have the weight 0?": [
                bound(g.counts, g.mu_draws),
                limit,
                public,
            ],
            "The second looks at one μ only. Which one is the limit?": [
                local,
                bound(kept, g.mu_draws),
                public,
            ],
            "The threshold is a limit for the second, but is there a count that reaches it?": [
                local,
                g.threshold,
                public,
            ],
            "The third does not look at the draws. Over which μ is it taken?": [
                local,
                limit,
                bound(kept, g.mu_draws),
            ],
            "Both ends of the interval count in the third.": [
                local,
                limit,
                min(bound(kept, end) for end in ends),
            ],
            "The first two are in each other's place.": [limit, local, public],
            "The largest log-probability is no largest absolute value: it belongs to the most "
            "ordinary count.": [
                -smallest(seen, g.mu_draws),
                -smallest(kept, 100.0),
                -smallest(kept, ends),
            ],
            "These belong to the most ordinary count. A bound is about the least likely one.": [
                smallest(seen, g.mu_draws),
                smallest(kept, 100.0),
                smallest(kept, ends),
            ],
        },
        "Local: its records, its draws. At the limit: every kept count, one μ. Global: every kept "
        "count, every μ.",
    )


@exercise("six weights")
def hump_on_paper(g):
    bounds = np.array(g.six_bounds)
    weights = ppm.record_weights(bounds)
    right = ppm.record_weights(bounds, truncate_at=g.low_M)
    return (
        right,
        {
            "These are the weights without a threshold.": weights,
            "You compared the bounds with M. What is compared is the product with the "
            "weight.": np.where(bounds > g.low_M, 0, weights),
            "These are products, not weights.": right * bounds,
            "You lowered weights until the records just keep to M. What does Weighted-M do with a "
            "record above M?": np.minimum(weights, g.low_M / bounds),
            "The largest bound has the largest of your weights. It should be the other way "
            "round.": 1 - weights,
        },
        "First the line, then the products, then the threshold.",
    )


@exercise("one whole number of records")
def removed(g):
    kept = ppm.record_weights(g.bounds, truncate_at=g.M)
    return (
        np.sum(kept == 0),
        {
            "You compared the unweighted bounds with M. What is compared is the product with the "
            "weight.": np.sum(g.bounds > g.M),
            "These are the records that stay.": np.sum(kept > 0),
            "This is a share. Wanted is how many records they are.": np.mean(kept == 0),
            "Which record had lost its weight before?": np.sum(
                g.weights * g.bounds > g.M
            ),
        },
        "A record is removed if its weight is 0 in the end.",
    )


@exercise("two numbers: [the smallest M, by how much it rises]")
def smallest_threshold(g):
    def bound(mean):
        return np.log(2 * np.pi * mean) / 2

    smallest, rise = bound(g.small_mean), np.log(4) / 2
    return (
        [smallest, rise],
        {
            "Wanted second is by how much M rises, not where it is then.": [
                smallest,
                bound(4 * g.small_mean),
            ],
            "A root inside a logarithm is a factor of one half.": [
                2 * smallest,
                2 * rise,
            ],
            "The root belongs to the four, too.": [smallest, 2 * rise],
            "This is a probability. A bound is about its logarithm.": [
                np.exp(-smallest),
                rise,
            ],
            "This is the rise by a factor. Does a logarithm multiply or add?": [
                smallest,
                bound(4 * g.small_mean) / smallest,
            ],
        },
        (
            "Which bound has a record whose probability is the largest possible?",
            "Take minus the logarithm of 1 / √(2πμ).",
        ),
    )


@exercise("one number, the distance in standard deviations of the truncated posterior")
def bias(g):
    model = ppm.GammaPoisson(g.counts, shape=g.shape, rate=g.rate)
    weighted = model.posterior(g.weights)
    truncated = model.posterior(ppm.record_weights(g.bounds, truncate_at=g.M))
    capped = model.posterior(np.minimum(g.weights, g.M / g.bounds))
    mean = g.counts.mean()
    return (
        (truncated.mean() - mean) / truncated.std(),
        {
            "This is the distance in visits. How large is it beside the spread of the posterior?": truncated.mean()
            - mean,
            "You divided by the variance.": (truncated.mean() - mean) / truncated.var(),
            "This is Weighted, not Weighted-M.": (weighted.mean() - mean)
            / weighted.std(),
            "The counts spread far more than the posterior of their mean.": (
                truncated.mean() - mean
            )
            / g.counts.std(),
            "You lowered weights until the records just keep to M. What does Weighted-M do with a "
            "record above M?": (capped.mean() - mean) / capped.std(),
            "Counts are not exactly on the mean that they were drawn with. Take their own.": (
                truncated.mean() - 100
            )
            / truncated.std(),
        },
        "Mean and standard deviation are those of the Weighted-M pseudo posterior.",
    )


@exercise("one share, between 0 and 1")
def share_above(g):
    exceedance = ppm.exceedance(2 * g.study_bounds, g.epsilon).estimate
    return (
        exceedance,
        {
            "You compared Δ with ε. What is the ε of a bound?": np.mean(
                g.study_bounds > g.epsilon
            ),
            "This is a number of databases, not a share of them.": exceedance
            * g.study_bounds.size,
        },
        ("Which databases are counted?", "Count the databases whose 2Δ is above ε."),
    )


@exercise("one probability, the upper end of the interval")
def none_of_400(g):
    return (
        1 - 0.025 ** (1 / g.databases),
        {
            "Nothing was seen, but that does not make it impossible. Which share would still be "
            "compatible with seeing nothing?": 0.0,
            "The rule of three approximates the upper end of a one-sided interval. Here the exact end "
            "of a two-sided one is asked for.": 3 / g.databases,
            "How much does a two-sided interval leave at each end?": 1
            - 0.05 ** (1 / g.databases),
        },
        (
            "If the share were p, how probable would it be to see none?",
            "Solve (1 - p)^R = α/2 for p.",
        ),
    )


@exercise("one share, between 0 and 1")
def safety(g):
    bounds = g.study_bounds

    def above(factor):
        return np.sum(bounds > factor * bounds[:, None]) / (
            bounds.size * (bounds.size - 1)
        )

    return (
        above(g.factor),
        {
            "This is the share for a factor of 1.": above(1.0),
            "The factor belongs to the bound of the agency's own database, not to those of the others.": above(
                1 / g.factor
            ),
            "You took one database as the agency's. Take every one in turn.": np.mean(
                bounds > g.factor * np.median(bounds)
            ),
            "This is a number of pairs of databases, and not a share of them.": above(
                g.factor
            )
            * bounds.size
            * (bounds.size - 1),
            "This is how many databases there are on average. Wanted is a share of the others.": above(
                g.factor
            )
            * (bounds.size - 1),
            "How many *other* databases does a database have?": above(g.factor)
            * (bounds.size - 1)
            / bounds.size,
        },
        "Take every database in turn as the agency's own, and average.",
    )
