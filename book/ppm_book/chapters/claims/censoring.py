"""Claims and numbers of the chapter on limits."""

import numpy as np
import pandas as pd


def grid(placements):
    return pd.DataFrame(placements).T


def keep(largest):
    """Largest losses where the others keep their weights, with hard and with smooth limits."""
    return largest.to_numpy()[0]


def again(largest):
    """Largest losses where weights are computed again, with hard and with smooth limits."""
    return largest.to_numpy()[1]


CLAIMS = {
    "within-its-oscillation": lambda largest_loss, oscillations: np.all(
        largest_loss <= oscillations * (1 + 1e-9)
    ),
    "far-below-the-bound": lambda oscillations, bounds: (
        oscillations.max() < bounds.max()
    ),
    "within-its-width": lambda grid: np.all(grid["largest loss"] <= grid["width W"]),
    "then-the-prior": lambda grid: np.isclose(grid["largest loss"].iloc[0], 0),
    "weights-break-the-limit": lambda limits, again: limits.width < again[0],
    "larger-with-smooth": lambda again: again[0] < again[1],
    "within-it": lambda keep, limits: keep.max() <= limits.width,
    "the-count-of-18": lambda audit: (
        audit["count"][audit["loss"].argmax("left_out")] == 18
    ),
    "its-weight-is-0": lambda audit: audit["weight"][-1] == 0,
}
NUMBERS = {"hard": lambda again: f"{again[0]:.1f}"}
