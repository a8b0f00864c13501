"""Exercises of the chapter on theory: costs, and weights on a finite public set."""

from types import SimpleNamespace

import numpy as np
from scipy.special import softmax

import ppm
from checks import exercise


def given():
    """Log-likelihoods of two households at three candidates, their weights, and W."""
    log_lik = np.array([[-1.71, -8.56], [-1.63, -4.33], [-3.55, -2.09]])
    return SimpleNamespace(log_lik=log_lik, weights=np.array([1.0, 0.5]), W=2.0)


@exercise("three probabilities, one for each candidate")
def three_candidates(g):
    sums = g.log_lik @ g.weights
    return (
        softmax(sums),
        {
            "Probabilities add up to 1: divide by the normaliser.": np.exp(sums),
            "These are sums of logarithms, not probabilities.": sums,
            "Every record has counted in full here.": softmax(g.log_lik.sum(axis=1)),
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


@exercise("two weights, one for each household")
def cap_weights(g):
    moves, bounds = np.ptp(g.log_lik, axis=0), ppm.record_bounds(g.log_lik)
    return (
        np.minimum(1, g.W / moves),
        {
            "A weight is at most 1.": g.W / moves,
            "W limits how far a term moves, not its largest absolute value.": g.W
            / bounds,
            "Each household has a weight of its own.": np.full(2, g.W / moves.max()),
        },
        "How far does each column move over the candidates?",
    )


@exercise("the letters of the weights with which ε = W is true", "abcdefg")
def which_is_strict(g):
    return (
        set("bdf"),
        {
            "You also marked one that is record-only, but whose terms move too far.": set(
                "bdfg"
            ),
            "You also marked a grid that has looked at the records.": set("bcdf"),
            "You also marked a weight that is set by the most extreme record.": set(
                "bdef"
            ),
            "One is missing. A smaller weight moves less.": set("bf"),
            "One is missing. How far can a term between −W and 0 move?": set("bd"),
        },
        "Is the weight record-only, and can no term move by more than W?",
    )
