"""Exercises of the chapter on eight households: two attacks, and the mechanism by hand."""

from types import SimpleNamespace

import numpy as np
from scipy import stats
from scipy.special import expit

import ppm
from checks import exercise

SEED = 20220


def given():
    """The eight households, fits with and without weights, and what an attacker has seen."""
    counts = np.array([3, 4, 4, 5, 5, 6, 7, 18])
    g = SimpleNamespace(
        households=list("ABCDEFGH"), counts=counts, scale=0.9, shift=-0.1
    )
    first, second, attack, released, street, moved = np.random.SeedSequence(SEED).spawn(
        6
    )

    model = ppm.GammaPoisson(counts, shape=1.0, rate=0.1)
    fit = ppm.fit(model, ppm.Terms(np.ones(8)), draws=500, random_seed=first)
    g.log_lik = model.log_p(fit.theta)
    g.weights = ppm.record_weights(fit.record_bounds)
    weighted = ppm.fit(model, ppm.Terms(g.weights), draws=500, random_seed=second)
    g.weighted_log_lik = model.log_p(weighted.theta)
    g.releases = 3
    g.tables = fit.release(g.releases, random_seed=released).values

    g.street = np.array([1, 11, 12, 14, 14, 15, 16, 18])
    model = ppm.GammaPoisson(g.street, shape=1.0, rate=0.1)
    fit = ppm.fit(model, ppm.Terms(np.ones(8)), draws=500, random_seed=street)
    g.street_log_lik = model.log_p(fit.theta)
    g.street_weights = ppm.record_weights(fit.record_bounds)
    fit = ppm.fit(model, ppm.Terms(g.street_weights), draws=500, random_seed=moved)
    g.street_weighted_log_lik = model.log_p(fit.theta)

    rng = np.random.default_rng(attack)
    g.total_of_all, g.mean_of_nine = counts.sum(), np.append(counts, 11).mean()
    g.subsets = rng.integers(0, 2, (40, 8))
    g.noisy_totals = g.subsets @ counts + rng.integers(-1, 2, 40)
    return g


@exercise("one number, the visits of household I")
def differencing(g):
    return (
        9 * g.mean_of_nine - g.total_of_all,
        {
            "A difference of two means is not a household's count: how many households stand behind "
            "each mean?": g.mean_of_nine - g.counts.mean(),
            "One is a mean and the other a total.": g.total_of_all - g.mean_of_nine,
            "Over how many is the second one a mean?": 8 * g.mean_of_nine
            - g.total_of_all,
            "This is the total of all nine.": 9 * g.mean_of_nine,
        },
        "Turn both published numbers into totals first.",
    )


@exercise("one whole number for each of the eight households")
def reconstruction(g):
    least_squares = np.linalg.lstsq(g.subsets, g.noisy_totals, rcond=None)[0]
    first_eight = np.linalg.lstsq(g.subsets[:8], g.noisy_totals[:8], rcond=None)[0]
    groups, sums = g.subsets.sum(axis=0), g.subsets.T @ g.noisy_totals
    averages = sums / groups
    others = (g.noisy_totals.sum() - sums) / (len(g.subsets) - groups)
    # of a group of nobody the total is not used
    by_head = g.noisy_totals / np.maximum(g.subsets.sum(axis=1), 1)
    by_head = g.subsets.T @ by_head / groups
    return (
        np.rint(least_squares),
        {
            "Counts are whole numbers, which least squares does not know.": least_squares,
            "Eight equations are enough only without noise. Use all of the totals.": first_eight,
            "With as many equations as unknowns the noise is taken for signal. Use all of the totals.": np.rint(
                first_eight
            ),
            "The nearest whole number may lie above.": np.floor(least_squares),
            "The average of the totals that contain a household contains the others too. Solve for "
            "all eight at once.": averages,
            "The average of the totals that contain a household contains the others too, rounded or "
            "not. Solve for all eight at once.": np.rint(averages),
            "A total divided by the number of its households is their average, and not yet one of "
            "them. Solve for all eight at once.": by_head,
            "A total divided by the number of its households is their average, rounded or not. Solve "
            "for all eight at once.": np.rint(by_head),
            "The totals with a household and those without it differ by the other households as "
            "well. Solve for all eight at once.": averages - others,
            "The totals with a household and those without it differ by the other households as "
            "well, rounded or not. Solve for all eight at once.": np.rint(
                averages - others
            ),
            "You added up the totals that contain a household. Solve for all eight at once.": sums,
        },
        "Each total is one linear equation in eight unknowns.",
    )


@exercise("one bound for each of the eight households")
def record_bounds(g):
    bounds = ppm.record_bounds(g.log_lik)
    return (
        bounds,
        {
            "The largest log-likelihood belongs to the most likely draw. A bound is about the largest "
            "absolute value.": g.log_lik.max(axis=0),
            "This is one number for each draw. Draws stand in rows and records in columns: the "
            "maximum runs over draws.": np.abs(g.log_lik).max(axis=1),
            "This is an average. A promise needs the worst draw.": np.abs(
                g.log_lik
            ).mean(axis=0),
            "Draws are compared, and not added up.": np.abs(g.log_lik).sum(axis=0),
            "This is the draw at which a household is the most likely. A bound belongs to the worst "
            "one.": np.abs(g.log_lik).min(axis=0),
            "These are places of draws. Wanted are the values that stand there.": np.abs(
                g.log_lik
            ).argmax(axis=0),
        },
        "See the idea, and step 1 of the chapter.",
    )


def _risk(bounds):
    return (bounds - bounds.min()) / np.ptp(bounds)


@exercise("one weight for each of the eight households")
def weights(g):
    bounds = ppm.record_bounds(g.log_lik)
    risk = _risk(bounds)

    def weighed(bounds):
        return ppm.record_weights(bounds, scale=g.scale, shift=g.shift)

    return (
        weighed(bounds),
        {
            "The line is right, and the bounds are not: the largest log-likelihood is no largest "
            "absolute value.": np.clip(
                g.scale * (1 - _risk(g.log_lik.max(axis=0))) + g.shift, 0, 1
            ),
            "The line is right, and the bounds are not: you took averages over draws.": weighed(
                np.abs(g.log_lik).mean(axis=0)
            ),
            "The line is right, and the bounds are not: you took places of draws.": weighed(
                np.abs(g.log_lik).argmax(axis=0)
            ),
            "The line is right, and the bounds are not: you took the draws that suit best.": weighed(
                np.abs(g.log_lik).min(axis=0)
            ),
            "The shift comes with its sign. Is it added?": np.clip(
                g.scale * (1 - risk) - g.shift, 0, 1
            ),
            "At least one is no weight: see the end of step 1.": g.scale * (1 - risk)
            + g.shift,
            "The riskiest household has the largest of your weights. It should be the other way round.": np.clip(
                g.scale * risk + g.shift, 0, 1
            ),
            "Scaling goes from the smallest to the largest bound: the safest household has risk 0.": np.clip(
                g.scale * (1 - bounds / bounds.max()) + g.shift, 0, 1
            ),
            "These are the weights for c = 1 and g = 0. The exercise has others.": 1
            - risk,
            "Does the scale multiply the shift as well? Look at the order in step 1.": np.clip(
                g.scale * (1 - risk + g.shift), 0, 1
            ),
        },
        "See the second cell of step 1.",
    )


@exercise("one number, in nats")
def local_epsilon(g):
    delta = ppm.local_bound(g.weighted_log_lik, g.weights)
    return (
        ppm.epsilon(delta, g.releases),
        {
            "This counts Δ once for each release. How often does it count?": g.releases
            * delta,
            "This is Δ, the bound of the weighted fit. What does a release with it cost?": delta,
            "This is what one release costs. How many are there?": 2 * delta,
            "These draws come from the unweighted posterior. Which posterior is released?": 2
            * g.releases
            * ppm.local_bound(g.log_lik),
            "The draws are the right ones. By what is a household's log-likelihood multiplied before "
            "the maximum?": 2 * g.releases * ppm.local_bound(g.weighted_log_lik),
            "Multiplying the bounds of step 1 by the weights is not step 2: the posterior has moved.": 2
            * g.releases
            * ppm.local_bound(g.log_lik, g.weights),
            "Of negative numbers the largest is the one nearest to 0. What comes before the "
            "maximum?": 0.0,
            "You added up the households. Δ is the bound of a single one.": 2
            * g.releases
            * np.abs(g.weighted_log_lik @ g.weights).max(),
            "You added up the whole matrix. Δ is the bound of a single household.": 2
            * g.releases
            * np.abs(g.weights * g.weighted_log_lik).sum(),
            "This is an average. A promise needs the worst draw of the worst household.": 2
            * g.releases
            * np.abs(g.weights * g.weighted_log_lik).mean(),
        },
        "See steps 2 and 3 of the chapter.",
    )


@exercise("the letters of the households", "abcdefgh")
def whose_bounds_rise(g):
    before = ppm.record_bounds(g.street_log_lik)
    after = ppm.record_bounds(g.street_weighted_log_lik, g.street_weights)

    def letters(rises):
        return {house for house, does in zip(g.households, rises, strict=True) if does}

    return (
        letters(after > before),
        {
            "In the chapter the unusual count was the largest. Where is it here, and to which side "
            "does the posterior move?": set("FG"),
            "What is the weight of household A, and what does that do to its bound?": {
                "A"
            },
            "These are the households whose bound fell.": letters(after < before),
            "The largest log-likelihoods are no largest absolute values.": letters(
                (g.street_weights * g.street_weighted_log_lik).max(axis=0)
                > g.street_log_lik.max(axis=0)
            ),
            "These bounds are compared before they are multiplied by the weights.": letters(
                ppm.record_bounds(g.street_weighted_log_lik) > before
            ),
        },
        "Compare two lists of bounds, household by household.",
    )


@exercise("one probability")
def three_tables(g):
    totals, known = g.tables.sum(axis=1), g.counts[:-1]

    def log_p(totals, prior=(1, 0.1), rows=8):
        """Of each total, with H and without."""
        records = np.array([[g.counts.sum(), g.counts.size], [known.sum(), known.size]])
        shape, rate = (records + prior).T
        return stats.nbinom.logpmf(totals[:, None], shape, rate / (rate + rows))

    def probability(*arguments, **options):
        with_h, without = log_p(*arguments, **options).sum(axis=0)
        return expit(with_h - without)

    added = np.exp(log_p(totals)).sum(axis=0)

    right = probability(totals)
    return (
        right,
        {
            "These are odds. Which probability belongs to them?": right / (1 - right),
            "These are log odds. Which probability belongs to them?": np.log(
                right / (1 - right)
            ),
            "The tables are independent of each other, and you added up their probabilities.": added[
                0
            ]
            / added.sum(),
            "Log-probabilities of independent tables add up, and are not averaged.": expit(
                np.log(right / (1 - right)) / len(totals)
            ),
            "A table has a total, and you added up over the tables.": probability(
                g.tables.sum(axis=0)
            ),
            "This is what the first table tells. There are three.": probability(
                totals[:1]
            ),
            "Each table has a draw of μ of its own, so the three totals are independent.": probability(
                totals.sum(keepdims=True), rows=24
            ),
            "The prior is missing in your posteriors.": probability(totals, (0, 0)),
        },
        "Two posteriors, two probabilities of the totals; their ratio is the odds.",
    )
