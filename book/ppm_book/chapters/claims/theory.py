"""Claims and numbers of the chapter on the theory."""

import numpy as np


def share(loss, bounds):
    """What a household's loss uses of twice its own bound."""
    return loss / np.where(bounds > 0, 2 * bounds, np.inf)


def a_has_largest_bound(bounds):
    return bounds[0] > bounds[1:].max()


def h_is_still(alpha, loss):
    return alpha[7] == 0 == loss[7]


def leaves_the_band(h_unweighted, delta):
    return h_unweighted.min() < -2 * delta


CLAIMS = {
    "a-sets-delta": a_has_largest_bound,
    "no-loss-exceeds": lambda loss, frozen, bounds: (
        np.array_equal(loss, np.abs(frozen).max(axis=1))
        and np.all(loss <= 2 * bounds + 1e-9)
    ),
    "none-comes-near": lambda share: 0.3 < share.max() < 0.5,
    "h-has-weight-0": lambda alpha: alpha[7] == 0,
    "h-exactly-0": h_is_still,
    "leaves-the-band": leaves_the_band,
    "leaves-the-band-in-answer": leaves_the_band,
    "leaves-the-band-in-text": leaves_the_band,
}
NUMBERS = {
    "nearest": lambda share: f"{100 * share.max():.0f} %",
    "H unweighted": lambda h_unweighted: f"{np.abs(h_unweighted).max():.1f}",
}
