"""Claims and numbers of the chapter on what ε promises."""

import numpy as np
from scipy.special import expit, logit

import ppm


def one_and_total(one_release, releases):
    """What a guess of 1 in 100,000 may become, by one release and by all."""
    return expit(logit(1e-5) + one_release * np.array([1, releases]))


def nearly_certain(one_and_total):
    return one_and_total[0] > 0.99


def at(above, counts):
    """Log ratios above some values."""
    return {
        value: np.log(above(value, counts) / above(value, counts[:-1]))
        for value in (20, 45, 50, 100)
    }


def reported(ours):
    """ε of three tables, as the mechanism of the first chapter says it."""
    return ours.epsilon(3)


def refuted(attacks):
    """By each attack of the first chapter: every ε below this one."""
    return attacks["refutes ε below"]


def caught():
    """Per cent of uses that are detected, by ε."""
    return {
        epsilon: 100 * ppm.pdp.detection_limit(0.05, epsilon) for epsilon in (0.1, 1, 3)
    }


def hardly_more(caught):
    return 5 < caught[0.1] < 6


def almost_every_use(caught):
    return 90 < caught[3] < 100


CLAIMS = {
    "better-than-even": lambda at_most: round(at_most["prior 1 in 100"][2], 1) == 0.6,
    "becomes-0.18": lambda at_most: round(at_most["prior 1 in 100,000"][3], 2) == 0.18,
    "next-to-nothing": nearly_certain,
    "near-certainty": nearly_certain,
    "total-rules-out-nothing": lambda one_and_total: one_and_total[1] > 0.99999,
    "above-8-at-20": lambda at: at[20] > 8,
    "sign-before-45": lambda at: at[45] < 0,
    "beyond-40-at-100": lambda at: at[100] < -40,
    "grows-turns-falls": lambda at: at[20] > at[45] > at[50],
    "hardly-more": hardly_more,
    "hardly-more-in-caption": hardly_more,
    "almost-every-use": almost_every_use,
    "almost-every-use-in-caption": almost_every_use,
    "far-more": lambda reported, refuted: reported > 10 * refuted["with weights"],
}
NUMBERS = {
    "detected at 1": lambda caught: f"{caught[1]:.1f} %",
    "reported": lambda reported: f"{reported:.1f}",
}
for words, place in (
    ("without weights", "ordinary posterior"),
    ("with weights", "with weights"),
):
    NUMBERS |= {
        f"found {words}": lambda attacks, at=place: (
            f"{100 * attacks['detected'][at]:.0f}"
        ),
        f"refuted {words}": lambda refuted, at=place: f"{refuted[at]:.1f}",
    }
