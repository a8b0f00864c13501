"""Claims of the chapter with more on the application."""

import numpy as np

from ppm_book.chapters.page import surely_less


def furthest(typical):
    def furthest(name):
        found = typical[name].drop("Countweighted")
        far = typical.loc["Countweighted", name]
        return surely_less((found["error"], found["±"]), far).all()

    return furthest


def steps(score_of):
    """From one mechanism to the next, in standard errors."""
    order = [
        score_of[who]
        for who in ("Unweighted", "DPweighted", "EMweighted", "Countweighted")
    ]
    return [
        (b - a) / np.hypot(e, f)
        for (a, e), (b, f) in zip(order, order[1:], strict=False)
    ]


def found(risk):
    return risk["expected match risk"]


CLAIMS = {
    "count-is-furthest-off": lambda furthest: (
        furthest("mean") and furthest("90th percentile")
    ),
    "count-has-smallest-delta": lambda four: (
        min(four, key=lambda who: four[who].result.local_bound) == "Countweighted"
    ),
    "score-ranks": lambda steps: min(steps[:2]) > 2,
    "as-few-to-find": lambda found: (
        1.3 * found.drop("Data").min() > found.drop("Data").max()
    ),
}
