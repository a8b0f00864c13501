"""Exercises of the chapter on theory: three candidates, costs, and record-only weights."""

from types import SimpleNamespace

import numpy as np
from scipy.special import softmax

import ppm
from checks import exercise


def given():
    """Log-likelihoods of two households at three candidates, and their weights."""
    log_lik = np.array([[-1.71, -8.56], [-1.63, -4.33], [-3.55, -2.09]])
    return SimpleNamespace(log_lik=log_lik, weights=np.array([1.0, 0.5]))


@exercise("three probabilities, one for each candidate")
def three_candidates(g):
    sums = g.log_lik @ g.weights
    return (
        softmax(sums),
        {
            "Probabilities add up to 1: divide by the normaliser.": np.exp(sums),
            "These are sums of logarithms, not probabilities.": sums,
            "Every record has counted in full here.": softmax(g.log_lik.sum(axis=1)),
            "Probabilities add up to 1, and you divided by the largest.": np.exp(
                sums - sums.max()
            ),
            "Probabilities add up to 1, and you divided by the average.": softmax(sums)
            * 3,
            "You added up likelihoods. What adds up over records?": (
                np.exp(g.log_lik) @ g.weights
            )
            / (np.exp(g.log_lik) @ g.weights).sum(),
            "You averaged over the households, whose terms add up.": softmax(sums / 2),
            "You divided by the sum of the weights. Terms add up, and are not averaged.": softmax(
                sums / g.weights.sum()
            ),
        },
        (
            "See the definition of the pseudo posterior, with a uniform prior.",
            "Add up weighted log-likelihoods by candidate, then exponentiate.",
        ),
    )


@exercise("two numbers, [ε as a multiple of Δ, the Δ for a total ε of 1]")
def releases(g):
    return (
        [ppm.epsilon(1.0, 20), 1 / ppm.epsilon(1.0, 20)],
        {
            "The theorem has a factor in front of Δ. See where its proof divides.": [
                20,
                1 / 20,
            ],
            "This holds for one database, or for twenty that share one draw. Here each has a draw of "
            "its own.": [2, 1 / 2],
            "Costs add up; no square root is taken.": [
                2 * np.sqrt(20),
                1 / (2 * np.sqrt(20)),
            ],
        },
        "See the corollary on m releases.",
    )


@exercise("the letters of the record-only weights", "abcdefg")
def record_only(g):
    return (
        set("bdfg"),
        {
            "You also marked a grid that has looked at the records.": set("bcdfg"),
            "You also marked a weight that is set by the most extreme record.": set(
                "bdefg"
            ),
            "You also marked weights that need the ends of the table.": set("abdfg"),
            "One is missing. Does a constant look at anybody?": set("bdg"),
            "One is missing. The rule need not know the model.": set("bdf"),
        },
        "Can each weight be found without seeing the other households?",
    )
