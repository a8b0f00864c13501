"""Exercises of the chapter on shards of a table."""

from types import SimpleNamespace

import numpy as np
from scipy import stats

import ppm
from checks import exercise

SEED = 2024


def given():
    """Shards of counts, and means of a release's shards."""
    _, table, released = map(
        np.random.default_rng, np.random.SeedSequence(SEED).spawn(3)
    )
    return SimpleNamespace(
        width=0.75,
        shards=5,
        releases=4,
        counts=table.poisson(8.0, 12),
        prior={"shape": 2.0, "rate": 0.25},
        low=-3.2,
        high=-1.9,
        rows=[[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 8, 11]],
        means=released.normal(38.0, 0.6, 5),
    )


@exercise("the letters of the assignments that keep ε = W", "abcdef")
def assignments(g):
    return (
        set("ace"),
        {
            "One is missing. What may an assignment look at?": set("ae"),
            "One is missing. Does the theorem need the assignment to be secret?": set(
                "ac"
            ),
            "One too many. On what does it depend whether chains agree?": set("acde"),
        },
        "Does it look at the records, and is every record in exactly one shard?",
    )


@exercise("two numbers, in nats: [one record is used or not, one record is replaced]")
def whole_epsilon(g):
    one = g.releases * g.width
    return (
        [one, 2 * one],
        {
            "In how many shards is a record?": [g.shards * one, 2 * g.shards * one],
            "A small part protects nobody.": [one / g.shards, 2 * one / g.shards],
            "This is the price of one release of the whole.": [g.width, 2 * g.width],
            "Replacing is two steps.": [one, one],
        },
        "The theorem on disjoint shards has the cost of one release, its corollary that of several.",
    )


@exercise("two losses, in nats: [disjoint, one record in two shards]")
def audit_shards(g):
    limits = ppm.Censoring(g.low, g.high)
    largest = int(np.argmax(g.counts))
    twice = [[*part] for part in g.rows]
    twice[1 if largest in g.rows[0] else 0].append(largest)

    def losses(censor=limits, **prior):
        return [
            ppm.audits.censored(
                g.counts, censor, shards=rows, **(prior or g.prior)
            ).attrs["loss"]
            for rows in (g.rows, twice)
        ]

    return (
        losses(),
        {
            "No database exceeds this. What does this one reach?": [
                limits.width,
                2 * limits.width,
            ],
            "The prior is given, too.": losses(shape=0.001, rate=0.001),
            "These are hard limits. The given ones are smooth.": losses(
                ppm.Censoring(g.low, g.high, smooth=False)
            ),
        },
        "ppm.audits.censored takes the rows of each shard; a row may be in two.",
    )


@exercise("two ends of an interval, [low, high]")
def between_shards(g):
    def interval(reach):
        return g.means.mean() + np.array([-1, 1]) * reach

    spread, root = g.means.std(ddof=1), np.sqrt(g.means.size)
    student = stats.t(g.means.size - 1).ppf(0.975)
    return (
        interval(student * spread / root),
        {
            "With so few shards the normal distribution is too optimistic.": interval(
                stats.norm.ppf(0.975) * spread / root
            ),
            "This is an interval for the next shard, not for the mean.": interval(
                student * spread
            ),
            "Look at the divisor of the standard deviation.": interval(
                student * g.means.std() / root
            ),
            "One degree of freedom went into the mean.": interval(
                stats.t(g.means.size).ppf(0.975) * spread / root
            ),
        },
        (
            "Five means, and the chapter's interval for the mean of so few.",
            "Mean, plus and minus Student's quantile times the standard error.",
        ),
    )
