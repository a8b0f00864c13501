"""Exercises on count weights, barycentres and distinguishability."""

from types import SimpleNamespace

import numpy as np

import ppm
from checks import exercise

SEED = 2017


def given():
    """Six units with one pattern, medians of two releases, and a regression's probabilities."""
    return SimpleNamespace(
        incomes_of_a_pattern=np.array([21.0, 24.5, 30.0, 33.0, 90.0, 100.0]),
        radius=0.2,
        medians_one=np.array([41.0, 55.0, 47.0, 60.0]),
        medians_two=np.array([52.0, 44.0, 71.0, 49.0]),
        probabilities=np.random.default_rng(SEED).beta(8, 8, 400),
    )


@exercise("one risk for each of the six units")
def neighbours(g):
    income, radius = g.incomes_of_a_pattern, g.radius
    distance = np.abs(income[:, None] - income)
    outside = distance > radius * income[:, None]
    return (
        ppm.risk.identification_risks(income, radius=radius),
        {
            "How many *other* units are there? None is its own neighbour.": outside.mean(
                axis=1
            ),
            "Whose income is the radius a share of: the unit's own, or the other one's?": (
                distance > radius * income
            ).sum(axis=1)
            / 5,
            "This radius is a share of the income, not an amount.": (
                distance > radius
            ).sum(axis=1)
            / 5,
        },
        "See the definition of the identification risk.",
    )


@exercise("four numbers, the barycentre's values")
def barycentre(g):
    pooled = np.concatenate([g.medians_one, g.medians_two])
    return (
        np.sort([g.medians_one, g.medians_two], axis=1).mean(axis=0),
        {
            "You paired the values in the order in which they happen to stand. Which value of one "
            "goes with which of the other?": (g.medians_one + g.medians_two) / 2,
            "This is a mixture of the two, which is wider. Average quantiles.": np.sort(
                pooled
            ),
            "This is the barycentre's mean. Its whole distribution is wanted.": pooled.mean(),
        },
        (
            "A barycentre is between the two. What of a distribution is averaged?",
            "Average the quantiles.",
        ),
    )


@exercise("one number")
def pmse(g):
    p = g.probabilities
    return (
        np.mean((p - 0.5) ** 2),
        {
            "The S in pMSE stands for squared.": np.mean(np.abs(p - 0.5)),
            "The distance is from the value that says nothing, not from their average.": np.var(
                p
            ),
            "The M stands for mean.": np.sum((p - 0.5) ** 2),
        },
        "With as many synthetic as confidential records, a useless score is 1/2.",
    )
