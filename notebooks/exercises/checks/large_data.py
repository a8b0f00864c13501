"""Exercises of the chapter on large data: memory and costs."""

from types import SimpleNamespace

import numpy as np
from scipy import optimize

from checks import exercise

SEED = 2024


def given():
    """Sizes of a survey, and measured seconds."""
    noise = np.random.default_rng(np.random.SeedSequence(SEED).spawn(1)[0])
    sizes = np.array([300, 1000, 3000, 10_000, 30_000])
    return SimpleNamespace(
        draws=4000,
        records=2_500_000,
        sizes=sizes,
        seconds=(0.6 + 2e-4 * sizes) * np.exp(0.01 * noise.normal(size=sizes.size)),
    )


@exercise("two numbers, in units of 10⁹ bytes: [the whole, bounds and weights]")
def gigabytes(g):
    # of one number for each draw and record, and for each record
    whole, one = 8e-9 * g.draws * g.records, 8e-9 * g.records
    right = np.array([whole, 2 * one])
    return (
        right,
        {
            "These are numbers. Each of them takes several bytes.": right / 8,
            "These are numbers in single precision; wanted is double.": right / 2,
            "A bound stays for every record, and what else?": [whole, one],
            "A bound is a maximum over draws: what of the draws stays?": [
                whole,
                2 * whole,
            ],
            "Your unit is 2³⁰ bytes. Wanted are units of 10⁹.": right * 1e9 / 2**30,
        },
        "A number in double precision takes eight bytes.",
    )


@exercise("two numbers: [exponent, hours at 10⁸ records]")
def law(g):
    x, y = np.log(g.sizes), np.log(g.seconds)
    log_a, log_b, c = optimize.least_squares(
        lambda p: np.logaddexp(p[0], p[1] + p[2] * x) - y,
        (y.min() - 1, y.max() - x.max(), 1.0),
    ).x
    hours = (np.exp(log_a) + np.exp(log_b) * 1e8**c) / 3600
    slope, level = np.polyfit(x, y, 1)
    return (
        [c, hours],
        {
            "What does a run cost before it looks at a record? Without that the line is too flat.": [
                slope,
                np.exp(level + slope * np.log(1e8)) / 3600,
            ],
            "The second number is in seconds.": [c, 3600 * hours],
            "You took the largest size and multiplied. Fit the law to all sizes.": [
                1.0,
                g.seconds[-1] / g.sizes[-1] * 1e8 / 3600,
            ],
        },
        "Least squares of the logarithms gives a, b and c; a + b n^c carries the law further.",
    )
