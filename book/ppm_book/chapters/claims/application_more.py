"""Claims of the chapter with more on the application."""

import numpy as np
import pandas as pd

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


def again(gains):
    return gains.filter(like="Reweighted", axis=0)


def gains_for_sure(gains, again):
    """Whether releases of each k are nearer to the data than DPweighted's, by three measures."""
    values = [name for name in again if f"{name}: ±" in again]
    errors = [f"{name}: ±" for name in values]
    before, after = (
        (rows[values].to_numpy(), rows[errors].to_numpy())
        for rows in (gains.loc["DPweighted"], again)
    )
    return pd.DataFrame(surely_less(after, before), again.index, values)


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
    "half-far-below-delta": lambda gains: (
        6 * gains["median bound"]["DPweighted"] < gains["Δ"]["DPweighted"]
    ),
    "nearly-all-weights-1": lambda reweighted: all(
        np.mean(one.result.weights == 1) > 0.9 for one in reweighted.values()
    ),
    "reweighting-gains": lambda gains_for_sure: gains_for_sure.iloc[0][
        ["90th percentile (%)", "pMSE ratio"]
    ].all(),
    "mean-stays": lambda gains_for_sure: not gains_for_sure["mean (%)"].iloc[0],
    "smaller-k-unsure": lambda gains_for_sure: not gains_for_sure.iloc[1].any(),
    "delta-above": lambda gains, again: (again["Δ"] > gains["Δ"]["DPweighted"]).all(),
}
