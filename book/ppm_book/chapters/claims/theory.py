"""Claims and numbers of the chapter on the theory."""

from typing import NamedTuple

import numpy as np
from scipy import stats


class ByDraws(NamedTuple):
    """What chapter 1 finds from 1,000 draws: the highest weighted one, and Δ."""

    highest: float
    delta: float


def by_draws(counts, scale, shift, seed):
    weights = np.ones(counts.size)
    for stream in np.random.SeedSequence(seed).spawn(3)[:2]:
        before = weights
        posterior = stats.gamma(1 + before @ counts, scale=1 / (0.1 + before.sum()))
        mu = posterior.rvs(1000, random_state=np.random.default_rng(stream))
        bounds = np.abs(stats.poisson.logpmf(counts, mu[:, None])).max(axis=0)
        risks = (bounds - bounds.min()) / np.ptp(bounds)
        weights = np.clip(scale * (1 - risks) + shift, 0, 1)
    return ByDraws(mu.max(), (before * bounds).max())


def share(loss, bounds):
    """What a household's loss uses of twice its own bound."""
    return loss / np.where(bounds > 0, 2 * bounds, np.inf)


def a_has_largest_bound(bounds):
    return bounds[0] > bounds[1:].max()


def lift_below_delta(lift, delta):
    return lift < delta


def uses_a_part(ratio, delta):
    return np.abs(ratio).max() < delta


def h_is_still(alpha, loss):
    return alpha[7] == 0 == loss[7]


def touches_and_lift_below(bounds, lift, delta):
    return a_has_largest_bound(bounds) and lift_below_delta(lift, delta)


def leaves_the_band(h_unweighted, delta):
    return h_unweighted.min() < -2 * delta


CLAIMS = {
    "a-has-largest-bound": a_has_largest_bound,
    "a-sets-delta": a_has_largest_bound,
    "draws-reach-less-far": lambda by_draws, means, delta: (
        by_draws.highest < means[-1] and by_draws.delta < delta
    ),
    "uses-a-part": uses_a_part,
    "uses-a-part-in-caption": uses_a_part,
    "same-curve": lambda ratio, term, lift: np.ptp(ratio - term) < 1e-9 and 0 < lift,
    "lift-below-delta": lift_below_delta,
    "lift-below-delta-in-text": touches_and_lift_below,
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
    "lift": lambda lift: f"{lift:.2f}",
    "Δ": lambda delta: f"{delta:.2f}",
    "Δ of chapter 1": lambda by_draws: f"{by_draws.delta:.2f}",
    "highest draw": lambda by_draws: f"{by_draws.highest:.1f}",
    "used": lambda ratio: f"{np.abs(ratio).max():.2f}",
    "nearest": lambda share: f"{100 * share.max():.0f} %",
    "H unweighted": lambda h_unweighted: f"{np.abs(h_unweighted).max():.1f}",
}
