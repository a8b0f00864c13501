"""Exercises of the chapter on a strict release: plans, noisy counts, limits, and their cost."""

from types import SimpleNamespace

import numpy as np
from scipy import stats

import ppm
from checks import exercise

SEED = 2025


def given():
    """Limits, terms of eight households, counts in bins, an account and a rehearsal."""
    fits, cells = np.random.SeedSequence(SEED).spawn(2)
    model = ppm.GammaPoisson([3, 4, 4, 5, 5, 6, 7, 18], shape=1.0, rate=0.1)
    fit = ppm.fit(model, ppm.Unweighted(), draws=300, random_seed=fits)
    log_lik = model.log_p(fit.theta)
    shares = stats.norm(0.5, 0.18).pdf(np.linspace(0.02, 0.98, 20))
    sizes = np.array([900, 450, 220, 90, 45, 18])
    counts = np.random.default_rng(cells).poisson(
        sizes[:, None] * shares / shares.sum()
    )
    return SimpleNamespace(
        low=-1.25,
        high=-0.75,
        releases=8,
        weight=0.4,
        log_lik=log_lik,
        epsilon=0.2,
        counts=counts,
        units=6000,
        bias=3.0,
        spread=4.0,
        # an account
        budget=1.0,
        counts_epsilon=0.25,
        tables=5,
        width=0.1,
        drawn_tables=3,
        # a rehearsal
        epsilons=np.array([0.0, 0.05, 0.1, 0.25, 1.0, 4.0]),
        levels=[7.4, 12.5, 9.2, 6.6, 5.8, 3.7],
        change=[101.0, 48.0, 33.0, 24.0, 18.0, 15.0],
        tail=[11.8, 8.4, 6.5, 5.7, 3.2, 2.1],
        levels_within=8.0,
        change_within=35.0,
        tail_within=4.0,
        times=4,
    )


@exercise("the letters of the choices that make ε = W untrue", "abcdef")
def public_first(g):
    return (
        set("bcf"),
        {
            "One is missing. A number of bins can be a look at the records, too.": set(
                "cf"
            ),
            "One is missing. Where did somebody look at this year's records to choose?": set(
                "bf"
            ),
            "You also marked a table that everybody can read.": set("abcf"),
            "Wanted are the choices that use the confidential records.": set("ade"),
        },
        "Which of them could have been made before the confidential table was opened?",
    )


@exercise("the letters of the edges that it may use", "abcdefg")
def edges(g):
    return (
        set("aceg"),
        {
            "One is missing. What may be done with numbers that already have their noise?": set(
                "ace"
            ),
            "One is too many: it tells, without noise, where nobody was.": set("acefg"),
            "One is too many: whose income is it?": set("acdeg"),
            "One is missing. Does a bin for 0 need a look at the records?": set("aeg"),
            "Wanted are the edges that nobody needs this year's records for.": set(
                "bdf"
            ),
        },
        "Which of them could be computed by somebody who never sees this year's table?",
    )


@exercise(
    "two numbers, in nats: [one income takes part or not, one income is replaced]"
)
def strict_epsilon(g):
    width, m = g.high - g.low, g.releases
    return (
        [
            ppm.pdp.bounded_range_epsilon(width, m),
            ppm.pdp.bounded_range_epsilon(2 * width, m),
        ],
        {
            "The 2 belongs to a bound on |log p|. Limits already have a lower and an upper end.": [
                2 * m * width,
                4 * m * width,
            ],
            "This is the price of one release.": [width, 2 * width],
            "Replacing is two steps: one income leaves, another one comes.": [
                m * width,
                m * width,
            ],
            "The width is a distance: look at the sign of the lower limit.": [
                m * (g.high + g.low),
                2 * m * (g.high + g.low),
            ],
            "What counts is the distance of the limits, not how far they are from 0.": [
                m * abs(g.low),
                2 * m * abs(g.low),
            ],
        },
        "The proof has the width, and nothing else.",
    )


@exercise("two numbers, in nats: [spent, left]")
def account(g):
    counts, draws = g.counts_epsilon, g.drawn_tables * g.width

    def left(spent):
        return [spent, g.budget - spent]

    return (
        left(2 * counts + draws),
        {
            "Do tables from the same noisy counts look at the records again?": left(
                2 * g.tables * counts + draws
            ),
            "The first plan was used twice, with new noise.": left(counts + draws),
            "Each of the tables from the posterior has a draw of its own.": left(
                2 * counts + g.width
            ),
            "These are two of the three releases.": left(2 * counts),
            "The values of ε of several releases add up; the largest is not enough.": left(
                max(counts, draws)
            ),
        },
        "For each release: how often were the records looked at?",
    )


@exercise("one share, between 0 and 1")
def cut_off(g):
    def outside(values):
        return np.mean((values < g.low) | (values > g.high))

    terms = g.weight * g.log_lik
    return (
        outside(terms),
        {
            "The weight comes first, then the limits.": outside(g.log_lik),
            "There are two limits.": np.mean(terms < g.low),
            "There are two limits, and the terms below the lower one are cut off as well.": np.mean(
                terms > g.high
            ),
            "This is a number of terms, not a share of them.": outside(terms)
            * terms.size,
            "This is the share that the limits leave alone.": 1 - outside(terms),
            "This is the share of households that some draw cuts off. A term is one household at one "
            "draw.": np.mean(((terms < g.low) | (terms > g.high)).any(axis=0)),
        },
        "Multiply, then count what lies outside.",
    )


@exercise("two numbers, [units' worth of information, how many times as wide]")
def precision(g):
    return (
        [g.weight * g.units, 1 / np.sqrt(g.weight)],
        {
            "A standard deviation falls with the root of the number of units.": [
                g.weight * g.units,
                1 / g.weight,
            ],
            "With less information a posterior is wider, not narrower.": [
                g.weight * g.units,
                np.sqrt(g.weight),
            ],
            "This is about what the weight takes away. What does it leave?": [
                (1 - g.weight) * g.units,
                1 / np.sqrt(1 - g.weight),
            ],
        },
        (
            "What does a record of weight 1 count for, and one of this weight?",
            "Sum the weights.",
        ),
    )


@exercise("two numbers, [scale, standard deviation] of the noise of one bin")
def laplace(g):
    noise = stats.laplace(scale=1 / g.epsilon)
    return (
        [1 / g.epsilon, noise.std()],
        {
            "Here a unit's income takes part or does not: how many bins change?": [
                2 / g.epsilon,
                2 * noise.std(),
            ],
            "The scale of a Laplace distribution is not its standard deviation.": [
                1 / g.epsilon,
                1 / g.epsilon,
            ],
            "The second number is a variance.": [1 / g.epsilon, noise.var()],
            "A variance is twice a squared scale. What is its root?": [
                1 / g.epsilon,
                2 / g.epsilon,
            ],
            "With a smaller ε there is more noise.": [
                g.epsilon,
                np.sqrt(2) * g.epsilon,
            ],
        },
        "Sensitivity over ε; then look up the variance of a Laplace distribution.",
    )


@exercise("six shares, one for each group")
def drowned(g):
    noise = stats.laplace(scale=1 / g.epsilon)
    return (
        np.mean(g.counts < noise.std(), axis=1),
        {
            "These are numbers of bins, not shares.": np.sum(
                g.counts < noise.std(), axis=1
            ),
            "This is one share for each bin. Groups stand in rows.": np.mean(
                g.counts < noise.std(), axis=0
            ),
            "You compared with the variance of the noise.": np.mean(
                g.counts < noise.var(), axis=1
            ),
            "You compared with the scale of the noise.": np.mean(
                g.counts < 1 / g.epsilon, axis=1
            ),
            "These are the bins that stand out of the noise.": np.mean(
                g.counts >= noise.std(), axis=1
            ),
        },
        "Compare each count with the standard deviation of its noise.",
    )


@exercise("three values of ε, [for levels, for a change, for the tail]")
def which_epsilon(g):
    errors = np.array([g.levels, g.change, g.tail])
    needs = np.array([g.levels_within, g.change_within, g.tail_within])
    enough, epsilons = errors <= needs[:, None], g.epsilons
    first = epsilons[enough.argmax(axis=1)]
    above = epsilons[1:][enough[:, 1:].argmax(axis=1)]
    return (
        first,
        {
            "For one of them the published records alone are near enough.": above,
            "These are places in the list. Wanted are the values of ε that stand there.": enough.argmax(
                axis=1
            ),
            "These are places in the list, counted from 1. Wanted are the values of ε that stand "
            "there.": enough.argmax(axis=1) + 1,
            "Larger than needed: what is nearer than that is paid for, and nobody uses it.": [
                epsilons[-1]
            ]
            * 3,
            "Each user gets a release for one use; nobody needs the ε of the others.": [
                first.max()
            ]
            * 3,
            "These are the last ε that are not enough.": epsilons[
                np.maximum(enough.argmax(axis=1) - 1, 0)
            ],
            "These are errors. Wanted is the ε that has them.": errors[
                range(3), enough.argmax(axis=1)
            ],
        },
        "In each row go from ε = 0 to the right, and stop where the error is small enough.",
    )


@exercise(
    "two rows, [n times as large, ε times as large], of three factors: [noisy mean, draw, "
    "sampling error]"
)
def more_records(g):
    whole, root = 1 / g.times, 1 / np.sqrt(g.times)
    return (
        [[whole, root, root], [whole, root, 1]],
        {
            "This is the noise of the sum. A mean is divided by n.": [
                [1, root, root],
                [whole, root, 1],
            ],
            "The noise of a sum does not follow a root.": [
                [root, root, root],
                [root, root, 1],
            ],
            "The draw pays with its width, and that follows a root.": [
                [whole, whole, root],
                [whole, whole, 1],
            ],
            "With more records or a larger ε there is less noise.": [
                [1 / whole, 1 / root, 1 / root],
                [1 / whole, 1 / root, 1],
            ],
            "What does the sampling error know of ε?": [
                [whole, root, root],
                [whole, root, root],
            ],
            "These are variances.": [
                [whole**2, whole, whole],
                [whole**2, whole, 1],
            ],
            "Rows and columns are exchanged.": [
                [whole, whole],
                [root, root],
                [root, 1],
            ],
        },
        (
            "Which of the three has n, √n, ε or √ε in the denominator?",
            "√2 c/(nε), 1/√(nεκ) and σ/√n.",
        ),
    )


@exercise("two root mean square errors, [of one release, of the average of all]")
def average_of_releases(g):
    m = g.releases
    return (
        [np.hypot(g.bias, g.spread), np.hypot(g.bias, g.spread / np.sqrt(m))],
        {
            "Does the bias differ from release to release?": [
                np.hypot(g.bias, g.spread),
                np.hypot(g.bias, g.spread) / np.sqrt(m),
            ],
            "Bias and spread add up as squares.": [
                g.bias + g.spread,
                g.bias + g.spread / np.sqrt(m),
            ],
            "How does the standard deviation of an average fall with the number?": [
                np.hypot(g.bias, g.spread),
                np.hypot(g.bias, g.spread / m),
            ],
            "This is the spread alone.": [g.spread, g.spread / np.sqrt(m)],
        },
        (
            "How do a bias and a spread add up, and which of them does an average lower?",
            "Mean square error is squared bias plus variance.",
        ),
    )
