"""Exercises of the chapter on theory: eight households, by hand."""

from types import SimpleNamespace

import numpy as np

import ppm
from ppm.classroom.checking import Exercise, Mistake

SEED = 20220


def given():
    """The eight households, fits with and without weights, and what an attacker has seen."""
    counts = np.array([3, 4, 4, 5, 5, 6, 7, 18])
    model = ppm.GammaPoisson(counts, shape=1.0, rate=0.1)
    first, second, attack = np.random.SeedSequence(SEED).spawn(3)
    log_lik = model.log_likelihood(model.fit(draws=500, random_seed=first))
    weights = ppm.record_weights(ppm.record_bounds(log_lik))
    weighted = model.log_likelihood(model.fit(weights, draws=500, random_seed=second))
    rng = np.random.default_rng(attack)
    subsets = rng.integers(0, 2, (40, 8))
    return SimpleNamespace(
        households=list("ABCDEFGH"),
        counts=counts,
        log_lik=log_lik.values[0],
        weights=weights,
        weighted_log_lik=weighted.values[0],
        scale=0.9,
        shift=-0.1,
        releases=3,
        total_of_all=int(counts.sum()),
        mean_without_h=float(counts[:-1].mean()),
        subsets=subsets,
        noisy_totals=subsets @ counts + rng.integers(-1, 2, 40),
    )


def exercises(g):
    """The exercises that have a check."""
    bounds = ppm.record_bounds(g.log_lik)
    delta = ppm.local_bound(g.weighted_log_lik, g.weights)
    weighted = ppm.record_bounds(g.weighted_log_lik, g.weights)

    def letters(rises):
        return {house for house, does in zip(g.households, rises, strict=True) if does}

    def least_squares():
        return np.linalg.lstsq(g.subsets, g.noisy_totals, rcond=None)[0]

    def first_eight():
        return np.linalg.lstsq(g.subsets[:8], g.noisy_totals[:8], rcond=None)[0]

    risk = (bounds - bounds.min()) / np.ptp(bounds)
    return (
        Exercise(
            "differencing",
            "one number, the visits of household H",
            lambda: g.counts[-1],
            (
                Mistake(
                    "difference of means",
                    lambda: g.counts.mean() - g.mean_without_h,
                    "A difference of two means is not a household's count: how many households "
                    "stand behind each mean?",
                ),
                Mistake(
                    "mean subtracted from the total",
                    lambda: g.total_of_all - g.mean_without_h,
                    "You subtracted the mean of the others from a total. Compare like with like.",
                ),
                Mistake(
                    "eight others",
                    lambda: g.total_of_all - 8 * g.mean_without_h,
                    "Over how many households is the second number a mean?",
                ),
            ),
            "Turn both published numbers into totals first.",
        ),
        Exercise(
            "reconstruction",
            "one whole number for each of the eight households",
            lambda: np.rint(least_squares()),
            (
                Mistake(
                    "not rounded",
                    least_squares,
                    "You know something of these values that least squares does not: counts are "
                    "whole numbers.",
                ),
                Mistake(
                    "first eight totals only",
                    first_eight,
                    "Eight equations are enough only without noise. Use all of the totals.",
                ),
                Mistake(
                    "first eight totals only, rounded",
                    lambda: np.rint(first_eight()),
                    "With as many equations as unknowns the noise is taken for signal. Use all of "
                    "the totals.",
                ),
                Mistake(
                    "average total of the subsets with the household",
                    lambda: g.subsets.T @ g.noisy_totals / g.subsets.sum(axis=0),
                    "The average of the totals that contain a household contains the others too. "
                    "Solve for all eight at once.",
                ),
            ),
            "Each total is one linear equation in eight unknowns.",
        ),
        Exercise(
            "record-bounds",
            "one bound for each of the eight households",
            lambda: bounds,
            (
                Mistake(
                    "the log-likelihood with its sign",
                    lambda: g.log_lik.max(axis=0),
                    "The largest log-likelihood belongs to the most likely draw. A bound is about "
                    "the largest absolute value.",
                ),
                Mistake(
                    "smallest log-likelihood",
                    lambda: g.log_lik.min(axis=0),
                    "You found the right draws, and kept the sign. A bound is not negative.",
                ),
                Mistake(
                    "draws and records exchanged",
                    lambda: np.abs(g.log_lik).max(axis=1),
                    "This is one number for each draw. Draws stand in rows and records in columns: "
                    "the maximum runs over draws.",
                ),
                Mistake(
                    "average over draws",
                    lambda: np.abs(g.log_lik).mean(axis=0),
                    "This is an average over draws. A promise needs the worst of them.",
                ),
            ),
            "See step 1.2 of the algorithm.",
        ),
        Exercise(
            "weights",
            "one weight for each of the eight households",
            lambda: ppm.record_weights(bounds, scale=g.scale, shift=g.shift),
            (
                Mistake(
                    "forgot to clip",
                    lambda: g.scale * (1 - risk) + g.shift,
                    "At least one of these is no weight: look at the end of step 1.4.",
                ),
                Mistake(
                    "risk in the place of one minus risk",
                    lambda: np.clip(g.scale * risk + g.shift, 0, 1),
                    "The riskiest household has the largest of your weights. It should be the "
                    "other way round.",
                ),
                Mistake(
                    "divided by the largest bound",
                    lambda: np.clip(g.scale * (1 - bounds / bounds.max()) + g.shift, 0, 1),
                    "Scaling goes from the smallest to the largest bound: the safest household "
                    "has risk 0.",
                ),
                Mistake(
                    "scale and shift left out",
                    lambda: 1 - risk,
                    "These are the weights for c = 1 and g = 0. The exercise has others.",
                ),
                Mistake(
                    "shift inside the bracket",
                    lambda: np.clip(g.scale * (1 - risk + g.shift), 0, 1),
                    "Does the scale multiply the shift as well? Look at the order in step 1.4.",
                ),
            ),
            "See steps 1.3 and 1.4 of the algorithm.",
        ),
        Exercise(
            "local-epsilon",
            "one number, in nats",
            lambda: ppm.epsilon(delta, g.releases),
            (
                Mistake(
                    "Δ without the factor 2",
                    lambda: g.releases * delta,
                    "One Δ pays for the likelihood. What does the normaliser cost?",
                ),
                Mistake(
                    "Δ itself",
                    lambda: delta,
                    "This is Δ, the bound of the weighted fit. What does a release with it cost?",
                ),
                Mistake(
                    "one release",
                    lambda: 2 * delta,
                    "This is what one release costs. How many are there?",
                ),
                Mistake(
                    "bound of the unweighted fit",
                    lambda: 2 * g.releases * ppm.local_bound(g.log_lik),
                    "These draws come from the unweighted posterior. Which posterior is released?",
                ),
                Mistake(
                    "weights left out",
                    lambda: 2 * g.releases * ppm.local_bound(g.weighted_log_lik),
                    "The draws are the right ones. By what is a household's log-likelihood "
                    "multiplied before the maximum?",
                ),
                Mistake(
                    "weights on the unweighted fit",
                    lambda: 2 * g.releases * ppm.local_bound(g.log_lik, g.weights),
                    "Multiplying the bounds of step 1 by the weights is not step 2: the posterior "
                    "has moved.",
                ),
            ),
            "See steps 2 and 3 of the algorithm.",
        ),
        Exercise(
            "releases",
            "two numbers, [ε as a multiple of Δ, the Δ for a total ε of 1]",
            lambda: [ppm.epsilon(1.0, 20), 1 / ppm.epsilon(1.0, 20)],
            (
                Mistake(
                    "Δ without the factor 2",
                    lambda: [20, 1 / 20],
                    "The theorem has a factor in front of Δ. See where its proof divides.",
                ),
                Mistake(
                    "one release",
                    lambda: [2, 1 / 2],
                    "This holds for one database, or for twenty that share one draw. Here each has "
                    "a draw of its own.",
                ),
                Mistake(
                    "root of the number of releases",
                    lambda: [2 * np.sqrt(20), 1 / (2 * np.sqrt(20))],
                    "Costs of independent releases add up; no square root is taken.",
                ),
            ),
            "See the corollary on m releases.",
        ),
        Exercise(
            "whack-a-mole",
            "the letters of the households",
            lambda: letters(weighted > bounds),
            (
                Mistake(
                    "weights left out",
                    lambda: letters(ppm.record_bounds(g.weighted_log_lik) > bounds),
                    "You compared the bounds before they are multiplied by the weights.",
                ),
                Mistake(
                    "the outlier",
                    lambda: {"H"},
                    "What is the weight of household H, and what does that do to its bound?",
                ),
                Mistake(
                    "the reverse",
                    lambda: letters(weighted <= bounds),
                    "These are the households whose bound fell or stayed.",
                ),
                Mistake(
                    "the posterior did not move",
                    lambda: letters(ppm.record_bounds(g.log_lik, g.weights) >= bounds),
                    "With draws from the same posterior no weighted bound can rise. Use the "
                    "draws of the weighted fit.",
                ),
            ),
            "Compare two lists of bounds, household by household.",
            options="".join(g.households).lower(),
        ),
    )
