"""Take one household away: the picture of the eight households that three chapters move."""

import numpy as np
from scipy import stats

import ppm
from ppm_book.chapters import page

HOUSEHOLDS = list("ABCDEFGH")
COUNTS = np.array([3, 4, 4, 5, 5, 6, 7, 18])
# what the panels show: values of μ, and numbers of visits
MEANS, VISITS = np.linspace(0.1, 15.9, 80), np.arange(25)


def moving(hint, *, switch=False, scale=1.0, shift=0.0, draws=1000, seed=20220):
    """Picture of what changes when one of the eight households leaves.

    Parameters
    ----------
    hint : str
        What to predict and try.
    switch : bool, default False
        Let the reader choose whether the weights of the others are frozen or computed again
        without the household, and show both posteriors. Without the switch the weights are
        frozen, and the picture shows the released counts instead.
    scale, shift, draws, seed
        Settings of the chapter: c at first, g, S, and the seed of all random numbers.

    Returns
    -------
    What a notebook cell displays, as ``ppm_book.chapters.page.moving`` does.

    Examples
    --------
    >>> from ppm_book.chapters import household
    >>> household.moving("Predict before you press.", draws=50)
    Take one household away (in the book this can be moved: Leaving household, Scale c)
    """
    first, second, _ = np.random.SeedSequence(seed).spawn(3)

    def weights_at_one(records):
        model = ppm.GammaPoisson(records, shape=1.0, rate=0.1)
        drawn = model.fit(draws=draws, random_seed=first)
        return ppm.record_weights(ppm.record_bounds(model.log_likelihood(drawn)))

    everybody = weights_at_one(COUNTS)
    again = [
        np.insert(weights_at_one(np.delete(COUNTS, j)), j, 0)
        for j in range(COUNTS.size)
    ]

    def frame(away, c, others="frozen"):
        weights = np.clip(c * everybody + shift, 0, 1)
        left = weights if others == "frozen" else np.clip(c * again[away] + shift, 0, 1)
        left = np.where(np.arange(COUNTS.size) == away, 0, left)
        before, after = (
            stats.gamma(1.0 + alpha @ COUNTS, scale=1 / (0.1 + alpha.sum()))
            for alpha in (weights, left)
        )
        mu = before.rvs(draws, random_state=np.random.default_rng(second))
        delta = (weights * np.abs(stats.poisson.logpmf(COUNTS, mu[:, None]))).max()

        def change(values):
            return np.abs(before.logpdf(values) - after.logpdf(values))

        drawn = (mu.min() <= MEANS) & (mu.max() >= MEANS)
        said = (
            f"Δ = {delta:.2f} nats, ε of one release = {2 * delta:.2f} nats. Without "
            f"{HOUSEHOLDS[away]} the log density of μ changes by {change(mu).max():.2f} nats at "
            "most, over the draws that gave Δ."
        )
        told = {
            "weights": {"bars": left, "outline": weights},
            "posteriors": {"bars": after.pdf(MEANS), "outline": before.pdf(MEANS)},
            "change": {
                "bars": change(MEANS) * drawn,
                "across": [round(2 * delta, 3), f"2Δ {2 * delta:.2f}"],
            },
        }
        if switch:
            moved = np.count_nonzero(np.abs(left - weights) > 0.01) - (
                weights[away] > 0.01
            )
            said += f" Of the other seven weights {moved} move by more than 0.01."
        else:
            shape, rate = 1.0 + left @ COUNTS, 0.1 + left.sum()
            released = stats.nbinom(shape, rate / (1 + rate))
            told["released"] = {"bars": 100 * released.pmf(VISITS)}
            said += (
                f" A released count is then {released.mean():.1f} on average, and 9 of 10 lie "
                f"between {released.ppf(0.05):.0f} and {released.ppf(0.95):.0f}; the eight "
                f"households' own average is {COUNTS.mean():.1f}."
            )
        return said, [told[name] for name in shown]

    controls = {
        "Leaving household": {name: place for place, name in enumerate(HOUSEHOLDS)},
        "Scale c": {f"{c:g}": c for c in sorted({0, 0.2, 0.4, 0.6, 0.8, 1, scale})},
    }
    start = [0, scale]
    if switch:
        controls["Other weights"] = {"frozen": "frozen", "computed again": "again"}
        start = [HOUSEHOLDS.index("H"), scale, "frozen"]
    panels = {
        "weights": {
            "label": "Weights; outline: before it left",
            "axis": "Household and count",
            "names": [
                f"{name} {count}"
                for name, count in zip(HOUSEHOLDS, COUNTS, strict=True)
            ],
        },
        "posteriors": {
            "label": "Density of μ; outline: before it left",
            "range": [0, 16],
        },
        "change": {
            "label": "Change of the log density, nats",
            "height": 90,
            "range": [0, 16],
            "axis": "Mean number of visits, μ",
        },
        "released": {
            "label": "Released counts, %; outline: the eight",
            "height": 90,
            "outline": 100 * np.bincount(COUNTS, minlength=VISITS.size) / COUNTS.size,
            "range": [-0.5, VISITS[-1] + 0.5],
            "axis": "Visits",
            "colour": "#009E73",
        },
    }
    shown = (
        ["weights", "posteriors", "change"]
        if switch
        else ["weights", "change", "released"]
    )
    return page.moving(
        "Take one household away",
        controls,
        frame,
        start=start,
        hint=hint,
        panels=[panels[name] for name in shown],
    )
