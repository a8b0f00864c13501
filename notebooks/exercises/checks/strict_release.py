"""Exercises of the chapter on a strict release: limits, histograms, and what they cost."""

from types import SimpleNamespace

import numpy as np
from scipy import stats

import ppm
from checks import exercise

SEED = 2025


def given():
    """Limits and their settings, terms of eight households, and counts of a histogram."""
    fits, cells = np.random.SeedSequence(SEED).spawn(2)
    model = ppm.GammaPoisson([3, 4, 4, 5, 5, 6, 7, 18], shape=1.0, rate=0.1)
    log_lik = model.log_likelihood(model.fit(draws=300, random_seed=fits))
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
        log_lik=log_lik.values[0],
        epsilon=0.2,
        counts=counts,
        units=6000,
        bias=3.0,
        spread=4.0,
    )


@exercise("the letters of the choices that make ε = W untrue", "abcdef")
def public_first(g):
    return (
        set("bcf"),
        {
            "One is missing. A number of bins can be a look at the records, too.": set(
                "cf"
            ),
            "One is missing. Whose income is the largest one?": set("bf"),
            "You also marked a table that everybody can read.": set("abcf"),
            "Wanted are the choices that use the confidential records.": set("ade"),
        },
        "Which of them could have been made before the confidential table was opened?",
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
            "What counts is the distance of the limits, not how far they are from 0.": [
                m * abs(g.low),
                2 * m * abs(g.low),
            ],
        },
        "The proof has the width, and nothing else.",
    )


@exercise("one share, between 0 and 1")
def cut_off(g):
    limits = ppm.Censoring(g.low, g.high, smooth=False)
    terms = g.weight * g.log_lik
    return (
        limits.share_clipped(terms),
        {
            "The weight comes first, then the limits.": limits.share_clipped(g.log_lik),
            "There are two limits.": np.mean(terms < g.low),
            "This is the share that the limits leave alone.": 1
            - limits.share_clipped(terms),
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
            "You compared with the scale of the noise.": np.mean(
                g.counts < 1 / g.epsilon, axis=1
            ),
            "These are the bins that stand out of the noise.": np.mean(
                g.counts >= noise.std(), axis=1
            ),
        },
        "Compare each count with the standard deviation of its noise.",
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
