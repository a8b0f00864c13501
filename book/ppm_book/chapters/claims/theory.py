"""Claims and numbers of the chapter on the theory."""

import numpy as np


def share(loss, bounds):
    """What a household's loss uses of twice its own bound."""
    return loss / np.where(bounds > 0, 2 * bounds, np.inf)


def a_has_largest_bound(bounds):
    return bounds.argmax() == 0


def lift_below_delta(lift, delta):
    return lift < delta


def leaves_the_band(h_unweighted, delta):
    return h_unweighted.min() < -2 * delta


CLAIMS = {
    "a-has-largest-bound": a_has_largest_bound,
    "a-has-largest-bound-in-text": a_has_largest_bound,
    "uses-a-part": lambda ratio, delta: np.abs(ratio).max() < delta,
    "same-curve": lambda ratio, term, lift: np.ptp(ratio - term) < 1e-9 and 0 < lift,
    "lift-below-delta": lift_below_delta,
    "lift-below-delta-in-text": lift_below_delta,
    "no-loss-exceeds": lambda loss, bounds: np.all(loss <= 2 * bounds + 1e-9),
    "none-comes-near": lambda share: share.max() < 0.5,
    "h-exactly-0": lambda alpha, loss: alpha[7] == 0 == loss[7],
    "leaves-the-band": leaves_the_band,
    "leaves-the-band-in-text": leaves_the_band,
    "cap-holds": lambda capped_loss, capped_again, cap: (
        max(*capped_loss, *capped_again) <= cap + 1e-9
    ),
    "two-losses-agree": lambda capped_loss, capped_again: np.allclose(
        capped_loss, capped_again
    ),
    "h-keeps-some": lambda capped: 0 < capped[7] < capped.max(),
}
NUMBERS = {
    "lift": lambda lift: f"{lift:.2f}",
    "Δ": lambda delta: f"{delta:.2f}",
    "nearest": lambda share: f"{100 * share.max():.0f} %",
    "H unweighted": lambda h_unweighted: f"{np.abs(h_unweighted).max():.1f}",
}
