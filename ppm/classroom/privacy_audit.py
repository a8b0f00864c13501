"""Exercises of the chapter on audits: attacks, losses and evidence."""

from types import SimpleNamespace

import numpy as np
from scipy import stats

import ppm
from ppm.classroom.checking import Exercise, Mistake

SEED = 2023


def given():
    """Eight households once more, releases with and without one of them, and what is public."""
    counts = np.array([3, 4, 4, 5, 5, 6, 7, 18])
    model = ppm.GammaPoisson(counts, shape=1.0, rate=0.1)
    takes_part = np.ones(8)
    left_out = np.array([1.0] * 7 + [0.0])
    streams = np.random.SeedSequence(SEED).spawn(4)

    def means(weights, of_fit, of_release):
        fit = model.fit(weights, draws=2000, random_seed=of_fit)
        return model.predict(fit, releases=400, random_seed=of_release).mean("record").values

    return SimpleNamespace(
        counts=counts,
        others=counts[:-1],
        shape=1.0,
        rate=0.1,
        published_mean=float(model.posterior().mean()),
        means_with=means(takes_part, *streams[:2]),
        means_without=means(left_out, *streams[2:]),
        threshold=7.0,
        seen_with=60,
        seen_without=5,
        runs=100,
        mu=np.linspace(3.5, 8.0, 451),
        public=(4.0, 12.0),
        cap=4.0,
        income=50_000.0,
        spread=30_000.0,
    )


def _losses(g):
    """Log ratio of the posteriors with and without household H, on the grid."""
    model = ppm.GammaPoisson(g.counts, shape=g.shape, rate=g.rate)
    without = ppm.GammaPoisson(g.others, shape=g.shape, rate=g.rate)
    return model.posterior().logpdf(g.mu) - without.posterior().logpdf(g.mu)


def _log_ratio(g, shape, rate, power):
    """The same from two densities of SciPy; its scale is the rate to the power of minus one."""

    def density(counts):
        return stats.gamma.logpdf(g.mu, shape + counts.sum(), scale=(rate + counts.size) ** power)

    return density(g.counts) - density(g.others)


def exercises(g):
    """The exercises that have a check."""
    model = ppm.GammaPoisson(g.counts, shape=g.shape, rate=g.rate)
    caught = np.mean(g.means_with >= g.threshold)
    alarms = np.mean(g.means_without >= g.threshold)
    n, total = g.counts.size, g.others.sum()
    low = stats.beta.ppf(0.025, g.seen_with, g.runs - g.seen_with + 1)
    high = stats.beta.ppf(0.975, g.seen_without + 1, g.runs - g.seen_without)
    term = stats.poisson.logpmf(g.counts[-1], g.mu)
    bounds = model.bounds_within(*g.public)
    ends = stats.poisson.logpmf(g.counts[:, None], np.array(g.public))
    in_dollars = -stats.norm.logpdf(g.income, g.income, g.spread)
    return (
        Exercise(
            "posterior-mean",
            "one whole number, the visits of household H",
            lambda: g.counts[-1],
            (
                Mistake(
                    "an ordinary mean",
                    lambda: g.published_mean * n - total,
                    "You took the published number for the mean of the eight counts. It is a "
                    "posterior mean: the prior is in it.",
                ),
                Mistake(
                    "prior rate left out",
                    lambda: g.published_mean * n - total - g.shape,
                    "The prior has a rate as well: it adds to the number of households.",
                ),
                Mistake(
                    "prior shape left out",
                    lambda: g.published_mean * (n + g.rate) - total,
                    "The prior has a shape as well: it adds to the number of visits.",
                ),
                Mistake(
                    "seven households",
                    lambda: g.published_mean * (n - 1 + g.rate) - total - g.shape,
                    "How many households are in the published mean?",
                ),
            ),
            "Write down the formula of the posterior mean, and solve it for one count.",
        ),
        Exercise(
            "membership",
            "one number, in nats",
            lambda: np.log(caught / alarms),
            (
                Mistake(
                    "difference of the shares",
                    lambda: caught - alarms,
                    "This is the attacker's advantage, a difference. ε is about a ratio.",
                ),
                Mistake(
                    "ratio without its logarithm",
                    lambda: caught / alarms,
                    "This is the factor itself. ε is its logarithm.",
                ),
                Mistake(
                    "the other way round",
                    lambda: np.log(alarms / caught),
                    "Which of the two databases sees the event more often?",
                ),
                Mistake(
                    "logarithm to base 10",
                    lambda: np.log10(caught / alarms),
                    "Nats are natural logarithms.",
                ),
                Mistake(
                    "above the threshold only",
                    lambda: np.log(
                        np.mean(g.means_with > g.threshold) / np.mean(g.means_without > g.threshold)
                    ),
                    "The attacker says so at the threshold itself, too.",
                ),
            ),
            "Estimate two probabilities of the same event.",
        ),
        Exercise(
            "evidence",
            "one number, in nats",
            lambda: np.log(low / high),
            (
                Mistake(
                    "the estimate",
                    lambda: np.log(g.seen_with / g.seen_without),
                    "This is the estimate. What is left of it if both shares were lucky?",
                ),
                Mistake(
                    "limits on the wrong sides",
                    lambda: np.log(
                        stats.beta.ppf(0.975, g.seen_with + 1, g.runs - g.seen_with)
                        / stats.beta.ppf(0.025, g.seen_without, g.runs - g.seen_without + 1)
                    ),
                    "This is an upper limit. Evidence needs the least that is compatible with "
                    "both counts.",
                ),
                Mistake(
                    "five per cent at each limit",
                    lambda: np.log(
                        stats.beta.ppf(0.05, g.seen_with, g.runs - g.seen_with + 1)
                        / stats.beta.ppf(0.95, g.seen_without + 1, g.runs - g.seen_without)
                    ),
                    "Two limits can each fail. Share the 5 per cent between them.",
                ),
            ),
            "A lower limit for one probability, an upper limit for the other.",
        ),
        Exercise(
            "exact-loss",
            "one number, in nats",
            lambda: np.abs(_losses(g)).max(),
            (
                Mistake(
                    "largest loss with its sign",
                    lambda: _losses(g).max(),
                    "The ratio can be small as well as large, and both tell the two apart.",
                ),
                Mistake(
                    "the record's own term",
                    lambda: np.abs(term).max(),
                    "This is the change of the log-likelihood. The two posteriors have different "
                    "normalisers, too.",
                ),
                Mistake(
                    "oscillation",
                    lambda: np.ptp(_losses(g)),
                    "This is the width of the interval in which the loss moves. It bounds the "
                    "loss, and is not the loss.",
                ),
                Mistake(
                    "average over the grid",
                    lambda: np.abs(_losses(g)).mean(),
                    "An average is no guarantee: the definition asks about every set.",
                ),
                Mistake(
                    "rate taken for SciPy's scale",
                    lambda: np.abs(_log_ratio(g, g.shape, g.rate, 1)).max(),
                    "SciPy speaks of the scale, the book of the rate.",
                ),
                Mistake(
                    "prior left out",
                    lambda: np.abs(_log_ratio(g, 0.0, 0.0, -1)).max(),
                    "Both posteriors have a prior.",
                ),
            ),
            "Two Gamma densities, on the same grid.",
        ),
        Exercise(
            "public-oscillations",
            "one oscillation for each of the eight households",
            lambda: model.oscillations_within(*g.public),
            (
                Mistake(
                    "the two ends only",
                    lambda: np.abs(ends[:, 0] - ends[:, 1]),
                    "You compared the two ends. Where, between them, is a count the most likely?",
                ),
                Mistake(
                    "bounds",
                    lambda: bounds,
                    "These are bounds: the largest distance from 0. An oscillation is the "
                    "distance of the largest from the smallest value.",
                ),
                Mistake(
                    "twice the bounds",
                    lambda: 2 * bounds,
                    "Twice the bound is an upper limit to the oscillation, and not a sharp one.",
                ),
                Mistake(
                    "largest value over the interval",
                    lambda: -stats.poisson.logpmf(g.counts, np.clip(g.counts, *g.public)),
                    "This is how close log p comes to 0. How far away does it get?",
                ),
            ),
            "log p is concave in μ, with its top at μ = x.",
        ),
        Exercise(
            "capped",
            "one weight for each of the eight households",
            lambda: ppm.public_weights(bounds, ppm.weights.capped_map(g.cap)),
            (
                Mistake(
                    "cap over bound, not cut at 1",
                    lambda: g.cap / bounds,
                    "Some of these are no weights: they count a household more than once.",
                ),
                Mistake(
                    "upside down",
                    lambda: np.minimum(1, bounds / g.cap),
                    "The household with the largest bound has the largest of your weights.",
                ),
                Mistake(
                    "threshold",
                    lambda: np.where(bounds <= g.cap, 1.0, 0.0),
                    "This keeps a household or drops it. A cap takes away only as much as it must.",
                ),
                Mistake(
                    "min–max weights",
                    lambda: ppm.record_weights(bounds),
                    "These depend on the smallest and the largest bound in the table. Which "
                    "weights depend on the household's own bound alone?",
                ),
            ),
            "How large may α be, so that α · b is at most the cap?",
        ),
        Exercise(
            "unit",
            "two numbers, in nats: [dollars, thousands of dollars]",
            lambda: [in_dollars, in_dollars - np.log(1000)],
            (
                Mistake(
                    "spread not converted",
                    lambda: [in_dollars, in_dollars],
                    "In the second case the standard deviation is in thousands of dollars, too.",
                ),
                Mistake(
                    "divided by a thousand",
                    lambda: [in_dollars, in_dollars / 1000],
                    "A density is divided or multiplied by a thousand. What does its logarithm do?",
                ),
                Mistake(
                    "the wrong direction",
                    lambda: [in_dollars, in_dollars + np.log(1000)],
                    "Is a thousand dollars a wider or a narrower unit? A density is a probability "
                    "per unit.",
                ),
                Mistake(
                    "with its sign",
                    lambda: [-in_dollars, -in_dollars + np.log(1000)],
                    "A bound is an absolute value.",
                ),
            ),
            "At its own mean a normal density is 1 / (σ √(2π)).",
        ),
        Exercise(
            "spot-the-error",
            "the letters of the sentences that are wrong",
            lambda: set("bce"),
            (
                Mistake(
                    "a large lower bound takes the claim back",
                    lambda: set("abce"),
                    "You also marked the sentence on a refuted claim. What does a lower bound "
                    "above a claim show?",
                ),
                Mistake(
                    "π overlooked",
                    lambda: set("ce"),
                    "One is missing. Read again what the disclosure set of the definition asks "
                    "of ε, and of every set B.",
                ),
                Mistake(
                    "rows overlooked",
                    lambda: set("bc"),
                    "One is missing. What can be read off a release without any of its values?",
                ),
                Mistake(
                    "right and wrong exchanged",
                    lambda: set("adf"),
                    "Wanted are the sentences that are wrong.",
                ),
            ),
            "The summary of the chapter has a line on each.",
            options="abcdef",
        ),
    )
