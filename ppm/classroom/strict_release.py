"""Exercises of the chapter on a strict release: limits, histograms, and what they cost."""

from types import SimpleNamespace

import numpy as np
from scipy import stats

import ppm
from ppm.classroom.checking import Exercise, Mistake

SEED = 2025


def given():
    """Limits and their settings, terms of eight households, and counts of a histogram."""
    fits, cells = np.random.SeedSequence(SEED).spawn(2)
    model = ppm.GammaPoisson([3, 4, 4, 5, 5, 6, 7, 18], shape=1.0, rate=0.1)
    log_lik = model.log_likelihood(model.fit(draws=300, random_seed=fits))
    shares = stats.norm(0.5, 0.18).pdf(np.linspace(0.02, 0.98, 20))
    sizes = np.array([900, 450, 220, 90, 45, 18])
    counts = np.random.default_rng(cells).poisson(sizes[:, None] * shares / shares.sum())
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


def exercises(g):
    """The exercises that have a check."""
    width = g.high - g.low
    limits = ppm.Censoring(g.low, g.high, smooth=False)
    terms = g.weight * g.log_lik
    noise = stats.laplace(scale=1 / g.epsilon)
    m = g.releases
    return (
        Exercise(
            "public-first",
            "the letters of the choices that make ε = W untrue",
            lambda: set("bcf"),
            (
                Mistake(
                    "bins overlooked",
                    lambda: set("cf"),
                    "One is missing. A number of bins can be a look at the records, too.",
                ),
                Mistake(
                    "ends overlooked",
                    lambda: set("bf"),
                    "One is missing. Whose income is the largest one?",
                ),
                Mistake(
                    "last year's table",
                    lambda: set("abcf"),
                    "You also marked a table that everybody can read.",
                ),
                Mistake(
                    "right and wrong exchanged",
                    lambda: set("ade"),
                    "Wanted are the choices that use the confidential records.",
                ),
            ),
            "Which of them could have been made before the confidential table was opened?",
            options="abcdef",
        ),
        Exercise(
            "strict-epsilon",
            "two numbers, in nats: [one income takes part or not, one income is replaced]",
            lambda: [
                ppm.pdp.bounded_range_epsilon(width, m), ppm.pdp.bounded_range_epsilon(2 * width, m)
            ],
            (
                Mistake(
                    "twice the width",
                    lambda: [2 * m * width, 4 * m * width],
                    "The 2 belongs to a bound on |log p|. Limits already have a lower and an upper "
                    "end.",
                ),
                Mistake(
                    "one release",
                    lambda: [width, 2 * width],
                    "This is the price of one release.",
                ),
                Mistake(
                    "replaced is the same",
                    lambda: [m * width, m * width],
                    "Replacing is two steps: one income leaves, another one comes.",
                ),
                Mistake(
                    "largest absolute limit",
                    lambda: [m * abs(g.low), 2 * m * abs(g.low)],
                    "What counts is the distance of the limits, not how far they are from 0.",
                ),
            ),
            "The theorem on censoring has the width, and nothing else.",
        ),
        Exercise(
            "cut-off",
            "one share, between 0 and 1",
            lambda: limits.share_outside(terms),
            (
                Mistake(
                    "weight left out",
                    lambda: limits.share_outside(g.log_lik),
                    "The weight comes first, then the limits.",
                ),
                Mistake(
                    "lower limit only",
                    lambda: np.mean(terms < g.low),
                    "There are two limits.",
                ),
                Mistake(
                    "share inside",
                    lambda: 1 - limits.share_outside(terms),
                    "This is the share that the limits leave alone.",
                ),
                Mistake(
                    "households ever cut off",
                    lambda: np.mean(((terms < g.low) | (terms > g.high)).any(axis=0)),
                    "This is the share of households that some draw cuts off. A term is one "
                    "household at one draw.",
                ),
            ),
            "Multiply, then count what lies outside.",
        ),
        Exercise(
            "laplace",
            "two numbers, [scale, standard deviation] of the noise of one bin",
            lambda: [1 / g.epsilon, noise.std()],
            (
                Mistake(
                    "two bins change",
                    lambda: [2 / g.epsilon, 2 * noise.std()],
                    "Here a unit's income takes part or does not: how many bins change?",
                ),
                Mistake(
                    "standard deviation equal to the scale",
                    lambda: [1 / g.epsilon, 1 / g.epsilon],
                    "The scale of a Laplace distribution is not its standard deviation.",
                ),
                Mistake(
                    "variance",
                    lambda: [1 / g.epsilon, noise.var()],
                    "The second number is a variance.",
                ),
                Mistake(
                    "upside down",
                    lambda: [g.epsilon, np.sqrt(2) * g.epsilon],
                    "With a smaller ε there is more noise.",
                ),
            ),
            "Sensitivity over ε; then look up the variance of a Laplace distribution.",
        ),
        Exercise(
            "drowned",
            "six shares, one for each group",
            lambda: np.mean(g.counts < noise.std(), axis=1),
            (
                Mistake(
                    "numbers of bins",
                    lambda: np.sum(g.counts < noise.std(), axis=1),
                    "These are numbers of bins, not shares.",
                ),
                Mistake(
                    "bins in the place of groups",
                    lambda: np.mean(g.counts < noise.std(), axis=0),
                    "This is one share for each bin. Groups stand in rows.",
                ),
                Mistake(
                    "scale in the place of the standard deviation",
                    lambda: np.mean(g.counts < 1 / g.epsilon, axis=1),
                    "You compared with the scale of the noise.",
                ),
                Mistake(
                    "above the noise",
                    lambda: np.mean(g.counts >= noise.std(), axis=1),
                    "These are the bins that stand out of the noise.",
                ),
            ),
            "Compare each count with the standard deviation of its noise.",
        ),
        Exercise(
            "precision",
            "two numbers, [units' worth of information, how many times as wide]",
            lambda: [g.weight * g.units, 1 / np.sqrt(g.weight)],
            (
                Mistake(
                    "one over the weight",
                    lambda: [g.weight * g.units, 1 / g.weight],
                    "A standard deviation falls with the root of the number of units.",
                ),
                Mistake(
                    "narrower",
                    lambda: [g.weight * g.units, np.sqrt(g.weight)],
                    "With less information a posterior is wider, not narrower.",
                ),
                Mistake(
                    "units taken away",
                    lambda: [(1 - g.weight) * g.units, 1 / np.sqrt(1 - g.weight)],
                    "This is about what the weight takes away. What does it leave?",
                ),
            ),
            "Sum the weights.",
        ),
        Exercise(
            "average-of-releases",
            "two root mean square errors, [of one release, of the average of all]",
            lambda: [np.hypot(g.bias, g.spread), np.hypot(g.bias, g.spread / np.sqrt(m))],
            (
                Mistake(
                    "bias averaged away",
                    lambda: [
                        np.hypot(g.bias, g.spread), np.hypot(g.bias, g.spread) / np.sqrt(m)
                    ],
                    "Does the bias differ from release to release?",
                ),
                Mistake(
                    "added without squares",
                    lambda: [g.bias + g.spread, g.bias + g.spread / np.sqrt(m)],
                    "Bias and spread add up as squares.",
                ),
                Mistake(
                    "spread divided by the number of releases",
                    lambda: [np.hypot(g.bias, g.spread), np.hypot(g.bias, g.spread / m)],
                    "How does the standard deviation of an average fall with the number?",
                ),
                Mistake(
                    "bias left out",
                    lambda: [g.spread, g.spread / np.sqrt(m)],
                    "This is the spread alone.",
                ),
            ),
            "Mean square error is squared bias plus variance.",
        ),
    )
