"""Exercises of the chapter on theory: what releases cost."""

from types import SimpleNamespace

import numpy as np
from checks import exercise

import ppm


def given():
    """Nothing: its exercises are about the theorem."""
    return SimpleNamespace()


@exercise("two numbers, [ε as a multiple of Δ, the Δ for a total ε of 1]")
def releases(g):
    return [ppm.epsilon(1.0, 20), 1 / ppm.epsilon(1.0, 20)], {
        "The theorem has a factor in front of Δ. See where its proof divides.": [20, 1 / 20],
        "This holds for one database, or for twenty that share one draw. Here each has a draw of "
        "its own.": [2, 1 / 2],
        "Costs of independent releases add up; no square root is taken.":
            [2 * np.sqrt(20), 1 / (2 * np.sqrt(20))],
    }, "See the corollary on m releases."
