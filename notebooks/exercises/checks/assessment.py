"""Tasks to be graded: right answers, for whoever grades."""

import numpy as np
from assessment_data import data, data_of  # noqa: F401
from scipy import stats

import ppm
from checks import exercise

SEED = 1


def given():
    """Data of one student, by the seed that the student's name gives."""
    return data(SEED)


def _limits(seen, runs):
    found = stats.binomtest(seen, runs).proportion_ci(0.95, "exact")
    return np.array([found.low, found.high])


@exercise("one number, in nats")
def weigh_and_bound(g):
    weights = ppm.record_weights(ppm.record_bounds(g.log_lik), scale=g.scale)
    delta = ppm.local_bound(g.weighted_log_lik, weights)
    total = np.abs(g.weighted_log_lik @ weights).max()
    return (
        2 * g.releases * delta,
        {
            "The absolute value is missing.": 0.0,
            "This adds up the households.": 2 * g.releases * total,
            "This is Δ.": delta,
            "This is one release.": 2 * delta,
            "Where are the weights?": 2
            * g.releases
            * ppm.local_bound(g.weighted_log_lik),
            "This is an average.": 2
            * g.releases
            * np.abs(g.weighted_log_lik * weights).mean(),
            "These draws are of the first fit.": 2
            * g.releases
            * ppm.local_bound(g.log_lik, weights),
        },
        "Steps 1 to 3 of the algorithm.",
    )


@exercise("one probability")
def five_at_once(g):
    return (
        ppm.pdp.belief_limits(g.prior, g.releases * g.epsilon)[1],
        {
            "This is one release.": ppm.pdp.belief_limits(g.prior, g.epsilon)[1],
            "This multiplies the probability.": g.prior
            * np.exp(g.releases * g.epsilon),
        },
        "Odds.",
    )


@exercise("three shares, [estimate, lower end, upper end]")
def share_and_interval(g):
    above = int((2 * g.bounds > g.large_epsilon).sum())
    share, n = above / g.bounds.size, g.bounds.size
    without_two = int((g.bounds > g.large_epsilon).sum())
    normal = share + np.array([-1.96, 1.96]) * np.sqrt(share * (1 - share) / n)
    return (
        [share, *_limits(above, n)],
        {
            "This is the normal interval, not the exact one.": [share, *normal],
            "This compares Δ with ε.": [without_two / n, *_limits(without_two, n)],
            "These are the databases that keep to ε.": [
                1 - share,
                *(1 - _limits(above, n))[::-1],
            ],
        },
        "A binomial interval.",
    )


@exercise(
    "three whole numbers of settings, [DPweighted closer, EMweighted closer, undecided]"
)
def undecided(g):
    one, its, other, of_that = g.distances.to_numpy().T
    gap, room = other - one, 2 * np.hypot(its, of_that)
    sums = 2 * (its + of_that)
    return (
        [(gap > room).sum(), (gap < -room).sum(), (np.abs(gap) <= room).sum()],
        {
            "This counts every difference.": [(gap > 0).sum(), (gap < 0).sum(), 0],
            "This adds up errors, and not their squares.": [
                (gap > sums).sum(),
                (gap < -sums).sum(),
                (np.abs(gap) <= sums).sum(),
            ],
        },
        "The error of a difference.",
    )


@exercise("one number, in nats")
def evidence_both_ways(g):
    seen, unseen = _limits(g.seen_with, g.runs), _limits(g.seen_without, g.runs)
    ratios = seen[0] / unseen[1], (1 - unseen[1]) / (1 - seen[0])
    return (
        np.log(max(ratios)),
        {
            "This is the estimate.": np.log(g.seen_with / g.seen_without),
            "This is the other direction.": np.log(min(ratios)),
        },
        "The least that agrees with both counts, in the better direction.",
    )


@exercise("two numbers, [width in nats, share of the terms]")
def room_for_each(g):
    width = g.budget / g.releases

    def cut(w):
        return np.mean((g.terms > g.highest) | (g.terms < g.highest - w))

    return (
        [width, cut(width)],
        {
            "This is the width of a single release.": [g.budget, cut(g.budget)],
            "This halves the width, as for a value that is replaced.": [
                width / 2,
                cut(width / 2),
            ],
            "These are the terms inside.": [width, 1 - cut(width)],
            "This is a number of terms.": [width, g.terms.size * cut(width)],
        },
        ("The theorem on censoring, for several releases.", "ε = m · W."),
    )


@exercise("two standard errors, [five releases, the first alone]")
def two_recipients(g):
    within, between = g.variances.mean(), g.estimates.var(ddof=1)
    alone = np.sqrt(g.variances[0] * (2 + 1 / g.weight))
    return (
        [np.sqrt(within + between / 5), alone],
        {
            "The variances are added up, and not averaged.": [
                np.sqrt(5 * within + between / 5),
                alone,
            ],
            "A standard deviation stands for b.": [
                np.sqrt(within + np.sqrt(between) / 5),
                alone,
            ],
            "The wrong variance is divided.": [np.sqrt(between + within / 5), alone],
            "This takes the releases for real records.": [
                np.sqrt(within / 5),
                np.sqrt(g.variances[0]),
            ],
        },
        "The table of rules.",
    )
