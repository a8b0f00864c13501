"""Exercises of the chapter on audits: attacks and evidence."""

from types import SimpleNamespace

import numpy as np
from scipy import stats

import ppm
from checks import exercise

SEED = 2023


def given():
    """Eight households once more, and releases with and without one of them."""
    counts = np.array([3, 4, 4, 5, 5, 6, 7, 18])
    model = ppm.GammaPoisson(counts, shape=1.0, rate=0.1)
    streams = np.random.SeedSequence(SEED).spawn(4)

    def means(weights, of_fit, of_release):
        fit = ppm.fit(model, ppm.Terms(weights), draws=2000, random_seed=of_fit)
        return fit.release(400, random_seed=of_release).mean("record").values

    return SimpleNamespace(
        counts=counts,
        others=counts[:-1],
        shape=1.0,
        rate=0.1,
        published_mean=model.posterior().mean(),
        means_with=means(np.ones(8), *streams[:2]),
        means_without=means(np.r_[np.ones(7), 0.0], *streams[2:]),
        threshold=7.0,
        seen_with=60,
        seen_without=5,
        runs=100,
    )


@exercise("one whole number, the visits of household H")
def posterior_mean(g):
    n, total = g.counts.size, g.others.sum()
    return (
        g.counts[-1],
        {
            "You took the published number for the mean of the eight counts. It is a posterior mean: "
            "the prior is in it.": g.published_mean * n - total,
            "The prior has a rate as well: it adds to the number of households.": g.published_mean
            * n
            - total
            - g.shape,
            "The prior has a shape as well: it adds to the number of visits.": g.published_mean
            * (n + g.rate)
            - total,
            "The prior's shape is in the mean: is it added or taken away?": g.published_mean
            * (n + g.rate)
            + g.shape
            - total,
            "How many households are in the published mean?": g.published_mean
            * (n - 1 + g.rate)
            - total
            - g.shape,
        },
        "Write down the formula of the posterior mean, and solve it for one count.",
    )


@exercise("one number, in nats")
def membership(g):
    caught = np.mean(g.means_with >= g.threshold)
    alarms = np.mean(g.means_without >= g.threshold)
    return (
        np.log(caught / alarms),
        {
            "This is the attacker's advantage, a difference. ε is about a ratio.": caught
            - alarms,
            "Which of the two databases sees the event more often?": np.log(
                alarms / caught
            ),
            "The attacker says so at the threshold itself, too.": np.log(
                np.mean(g.means_with > g.threshold)
                / np.mean(g.means_without > g.threshold)
            ),
        },
        "Estimate two probabilities of the same event.",
    )


@exercise("one number, in nats")
def evidence(g):
    def limit(level, seen):
        return stats.beta.ppf(level, seen, g.runs + 1 - seen)

    return (
        np.log(limit(0.025, g.seen_with) / limit(0.975, g.seen_without + 1)),
        {
            "This is the estimate. What is left of it if both shares were lucky?": np.log(
                g.seen_with / g.seen_without
            ),
            "This is an upper limit. Evidence needs the least that is compatible with both counts.": np.log(
                limit(0.975, g.seen_with + 1) / limit(0.025, g.seen_without)
            ),
            "Two limits can each fail. Share the 5 per cent between them.": np.log(
                limit(0.05, g.seen_with) / limit(0.95, g.seen_without + 1)
            ),
        },
        "A lower limit for one probability, an upper limit for the other.",
    )


@exercise("the letters of the sentences that are wrong", "abcdef")
def spot_the_error(g):
    return (
        set("bce"),
        {
            "You also marked the sentence on a refuted claim. What does a lower bound above a claim "
            "show?": set("abce"),
            "One is missing. Read again what the disclosure set of the definition asks of ε, and of "
            "every set B.": set("ce"),
            "One is missing. What can be read off a release without any of its values?": set(
                "bc"
            ),
        },
        "The summary of the chapter has a line on each.",
    )
