"""Exercises of the chapter on settings: what a bound depends on."""

from types import SimpleNamespace

import numpy as np
from scipy import special, stats

from checks import exercise

SEED = 2018


def given():
    """A few incomes, the published bounds beside made-up ones, and draws of one record."""
    draws = np.random.default_rng(SEED).normal(0.0, 1.0, (200, 1))
    return SimpleNamespace(
        incomes=np.array([-8_500.0, 0.0, 800.0, 60_000.0]),
        floor=1_000.0,
        shift=7_001.0,
        published=np.array([78.7, 10.10, 8.16, 7.30, 6.09, 5.71, 2.25]),
        ours=np.array([52.0, 9.1, 8.8, 6.2, 6.9, 4.1, 3.3]),
        log_lik=stats.norm.logpdf(3.0, draws, 1.0),
        fewer=20,
        line=10.9,
        spread=0.9,
        income=60_000.0,
        weights_of_components=np.array(
            [0.86, 0.07, 0.04, 0.015, 0.008, 0.004, 0.002, 0.0007, 0.0002, 0.0001]
        ),
        units=5_658,
    )


@exercise(
    "a table of three rows and four columns: floored logarithm, inverse hyperbolic sine, "
    "shifted logarithm; one column for each income"
)
def transformations(g):
    x, gain = g.incomes, np.abs(g.incomes)
    floored, shifted = np.maximum(x, g.floor), np.maximum(x + g.shift, 1.0)
    return (
        np.array([np.log(floored), np.arcsinh(x), np.log(shifted)]),
        {
            "Two of the rows are in another base. The book's logarithms are natural.": np.array(
                [np.log10(floored), np.arcsinh(x), np.log10(shifted)]
            ),
            "The first row has the chapter's default floor. The exercise has another one.": np.array(
                [np.log(np.maximum(x, 1.0)), np.arcsinh(x), np.log(shifted)]
            ),
            "A loss is not a gain: you took absolute values.": np.array(
                [
                    np.log(np.maximum(gain, g.floor)),
                    np.arcsinh(gain),
                    np.log(gain + g.shift),
                ]
            ),
            "In the third row the shift comes first, and then what is raised.": np.array(
                [np.log(floored), np.arcsinh(x), np.log(np.maximum(x, 0.0) + g.shift)]
            ),
            "A floor raises everything below it, not only what has no logarithm.": np.array(
                [np.log(np.where(x <= 0, g.floor, x)), np.arcsinh(x), np.log(shifted)]
            ),
        },
        "Three NumPy functions: log, arcsinh, log.",
    )


@exercise("one number, in nats")
def floored_unit(g):
    return (
        -stats.norm.logpdf(0.0, g.line, g.spread),
        {
            "The square is right. A normal density has a factor in front, too.": (
                (0.0 - g.line) / g.spread
            )
            ** 2
            / 2,
            "The model is about the logarithm of income. What is it at one dollar?": -stats.norm.logpdf(
                1.0, g.line, g.spread
            ),
            "The spread that is given is a standard deviation, not a variance.": -stats.norm.logpdf(
                0.0, g.line, g.spread**2
            ),
        },
        "A normal log-density, far from its mean.",
    )


@exercise(
    "two numbers, in nats: |log p| for the logarithm of income, and for income in dollars"
)
def change_of_scale(g):
    on_logs = stats.norm.logpdf(np.log(g.income), g.line, g.spread)
    of_ten, of_two = (
        stats.norm.logpdf(log(g.income), g.line, g.spread)
        for log in (np.log10, np.log2)
    )
    with_variance = stats.norm.logpdf(np.log(g.income), g.line, g.spread**2)
    return (
        np.abs([on_logs, on_logs - np.log(g.income)]),
        {
            "A density is a probability per unit, and the unit changes from one log dollar to one "
            "dollar.": np.abs([on_logs, on_logs]),
            "The spread that is given is a standard deviation, not a variance.": np.abs(
                [with_variance, with_variance - np.log(g.income)]
            ),
            "The model is about the natural logarithm of income. Yours has the base 10.": np.abs(
                [of_ten, of_ten - np.log10(g.income)]
            ),
            "The model is about the natural logarithm of income. Yours has the base 2.": np.abs(
                [of_two, of_two - np.log2(g.income)]
            ),
            "Near this income, is a dollar more or less than a unit of the logarithm?": np.abs(
                [on_logs, on_logs + np.log(g.income)]
            ),
            "If the logarithm is normal, income itself is not.": np.abs(
                [on_logs, stats.norm.logpdf(g.income, np.exp(g.line), np.exp(g.spread))]
            ),
        },
        (
            "What does a change of variable do to a density?",
            "p(income) = p(log income) · |d log income / d income|.",
        ),
    )


@exercise("one number of components")
def used_components(g):
    pi = g.weights_of_components
    entropy = -(pi * np.log(pi)).sum()
    return (
        np.exp(entropy),
        {
            "This is the K that was set. How many carry weight?": float(pi.size),
            "This counts a component of one unit like a large one.": float(
                np.sum(pi * g.units >= 1)
            ),
            "Base of logarithm and base of power must agree.": 2**entropy,
            "This entropy has logarithms of base 2, and the exponential has the base e.": np.exp(
                entropy / np.log(2)
            ),
            "This entropy has logarithms of base 10, and the exponential has the base e.": np.exp(
                entropy / np.log(10)
            ),
            "You averaged the terms of the entropy, which add up.": np.exp(
                entropy / pi.size
            ),
            "One over the sum of squares is another count of components.": 1
            / (pi**2).sum(),
        },
        (
            "See how the chapter counts components that are in use.",
            "The exponential of the entropy of the mixture's weights.",
        ),
    )


@exercise("one number, in nats")
def fewer_draws(g):
    f = np.abs(g.log_lik[:, 0])
    # the chance that all of a choice come from the i smallest
    chance = special.comb(np.arange(f.size + 1), g.fewer) / special.comb(
        f.size, g.fewer
    )
    return (
        np.sort(f) @ np.diff(chance),
        {
            "This is the bound over all of the draws.": f.max(),
            "This is one choice of the draws. What is the average over all?": f[
                : g.fewer
            ].max(),
            "This is what a single draw gives on average.": f.mean(),
            "Bounds are about absolute values.": np.sort(g.log_lik[:, 0])
            @ np.diff(chance),
            "A maximum is not proportional to the number of draws.": f.max()
            * g.fewer
            / f.size,
        },
        "In how many of all choices is the r-th smallest value the largest?",
    )


@exercise("one factor, for each of the steps")
def fall(g):
    whole = g.published[0] / g.published[-1]
    return (
        whole ** (1 / 6),
        {
            "This is the factor from the first to the last value. How many steps lead there?": whole,
            "Seven values have how many steps between them?": whole ** (1 / 7),
            "Factors multiply: their average is a geometric one.": np.mean(
                g.published[:-1] / g.published[1:]
            ),
            "This is a difference in nats per step. A factor is wanted.": (
                g.published[0] - g.published[-1]
            )
            / 6,
        },
        (
            "What do all the factors make together?",
            "The product of the six factors is the ratio of the ends.",
        ),
    )


@exercise("two numbers: [the distance, the factor that belongs to it]")
def distance(g):
    ratio = g.ours / g.published
    logs = np.log(ratio)
    right = np.sqrt(np.mean(logs**2))

    def both(distance):
        return [distance, np.exp(distance)]

    return (
        both(right),
        {
            "A bound that is half as large and one that is twice as large should be equally far off.": both(
                np.sqrt(np.mean((ratio - 1) ** 2))
            ),
            "In this mean, too large and too small cancel.": both(logs.mean()),
            "This is the mean absolute logarithm, not the root mean square.": both(
                np.abs(logs).mean()
            ),
            "A standard deviation takes the average off first. Here the average error counts.": both(
                logs.std()
            ),
            "The mean of the squares is no distance yet: what undoes the square?": both(
                right**2
            ),
            "This is the largest of the seven errors. Wanted is their root mean square.": both(
                np.abs(logs).max()
            ),
            "The logarithms have the base 10, and the factor the base e.": both(
                right / np.log(10)
            ),
            "The logarithms have the base 2, and the factor the base e.": both(
                right / np.log(2)
            ),
            "A distance that grows with the number of settings cannot be read as a factor.": both(
                np.sqrt(np.sum(logs**2))
            ),
            "The second number is close to the factor for a small distance only.": [
                right,
                1 + right,
            ],
        },
        (
            "Which scale makes a half and a double equally far away?",
            "Logarithm, square, mean, root; then undo the logarithm.",
        ),
    )
