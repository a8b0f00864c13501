"""Exercises of the chapter on what a recipient does with releases: variances and intervals."""

from types import SimpleNamespace

import numpy as np
from scipy import stats

import ppm
from ppm.classroom.checking import Exercise, Mistake

SEED = 2003


def given():
    """Releases of working hours, averages with public predictors, and intervals of a study."""
    hours, regression, many, study = map(
        np.random.default_rng, np.random.SeedSequence(SEED).spawn(4)
    )
    weight = 0.25
    released = _releases(hours, weight, 5, 400)
    averages, variances = _with_predictors(regression, 5, 300)
    repeated = _releases(many, weight, 200, 400)
    intervals = ppm.studies.coverage(
        "regression", [400], replicates=200, draws=50, random_seed=study
    ).dataset.sel(
        quantity="90th percentile", mechanism="DPweighted", rule="partially synthetic", size=400
    )
    return SimpleNamespace(
        weight=weight,
        estimate=38.2,
        variance=0.09,
        released=released,
        averages=averages,
        variances=variances,
        numbers=np.array([1, 2, 5, 20]),
        truth=float(intervals["truth"]),
        estimates=intervals["estimate"].values,
        low=intervals["low"].values,
        high=intervals["high"].values,
        many_averages=repeated.mean(axis=1),
        many_variances=repeated.var(axis=1, ddof=1) / repeated.shape[1],
    )


def _releases(rng, weight, releases, n, *, spread=6.0):
    """Releases of a normal variable, spread known, each from a draw of its mean."""
    confidential = rng.normal(38.0, spread, size=n)
    centre = rng.normal(confidential.mean(), spread / np.sqrt(weight * n), size=(releases, 1))
    return rng.normal(centre, spread, size=(releases, n))


def _with_predictors(rng, releases, n, *, slope=3.0):
    """Averages of releases, and their variances, where a public predictor explains most."""
    predictor = rng.normal(size=n)
    confidential = 20.0 + slope * predictor + rng.normal(size=n)
    by_chance = rng.normal(scale=1.0 / np.sqrt(n), size=(releases, 1))
    response = confidential.mean() + slope * (predictor - predictor.mean()) + by_chance
    response = response + rng.normal(size=(releases, n))
    return response.mean(axis=1), response.var(axis=1, ddof=1) / n


def exercises(g):
    """The exercises that have a check."""
    z = stats.norm.ppf(0.975)
    weights = np.array([1.0, g.weight])
    m, n = g.released.shape
    means, squares = g.released.mean(axis=1), g.released.var(axis=1, ddof=1)
    within, between = squares.mean() / n, means.var(ddof=1)
    combined = ppm.studies.combine_releases(means, squares / n)
    averages = len(g.averages)
    inner, outer = g.variances.mean(), g.averages.var(ddof=1)
    covered = np.mean((g.low <= g.truth) & (g.truth <= g.high))
    error = np.sqrt(covered * (1 - covered) / len(g.low))
    off, scatter = g.estimates.mean() - g.truth, g.estimates.std(ddof=1)
    ratio = g.many_averages.var(ddof=1) / g.many_variances.mean()

    def around(centre, variance, times=z):
        return centre + np.array([-1, 1]) * times * np.sqrt(variance)

    def of_one(factor):
        return around(g.estimate, factor * g.variance)

    return (
        Exercise(
            "rules-recalled",
            "the letters of the sentences that hold",
            lambda: set("bdf"),
            (
                Mistake(
                    "all values synthetic",
                    lambda: set("abdf"),
                    "One too many. What happens to the predictors in a release of this library?",
                ),
                Mistake(
                    "bias repaired",
                    lambda: set("bdef"),
                    "One too many. All rules are centred at the average of the estimates.",
                ),
                Mistake(
                    "scatter overlooked",
                    lambda: set("df"),
                    "One is missing. What would b have to know of the weights?",
                ),
                Mistake(
                    "right and wrong exchanged",
                    lambda: set("ace"),
                    "Wanted are the sentences that hold.",
                ),
            ),
            "Go through the table of the rules: what does each put for A, and what for B?",
            options="abcdef",
        ),
        Exercise(
            "as-real",
            "two shares, [all weights 1, constant weight]",
            lambda: 2 * stats.norm.cdf(z / np.sqrt(2 + 1 / weights)) - 1,
            (
                Mistake(
                    "ratio of variances for one of standard errors",
                    lambda: 2 * stats.norm.cdf(z / (2 + 1 / weights)) - 1,
                    "An interval is as wide as a standard error, not as a variance.",
                ),
                Mistake(
                    "one side",
                    lambda: stats.norm.cdf(z / np.sqrt(2 + 1 / weights)),
                    "The interval has two ends, and can miss on either side.",
                ),
                Mistake(
                    "share that is missed",
                    lambda: 2 * stats.norm.sf(z / np.sqrt(2 + 1 / weights)),
                    "This is how often the truth lies outside.",
                ),
                Mistake(
                    "confidential data forgotten",
                    lambda: 2 * stats.norm.cdf(z / np.sqrt(1 + 1 / weights)) - 1,
                    "Three things vary: the confidential records, the draw of the parameter, and "
                    "the new records.",
                ),
                Mistake(
                    "weight multiplied",
                    lambda: 2 * stats.norm.cdf(z / np.sqrt(2 + weights)) - 1,
                    "A smaller weight makes a posterior wider, not narrower.",
                ),
            ),
            "How many standard errors of the truth are 1.96 of those that the recipient knows?",
        ),
        Exercise(
            "one-release",
            "two numbers, [lower end, upper end]",
            lambda: of_one(2 + 1 / g.weight),
            (
                Mistake(
                    "as if real",
                    lambda: of_one(1),
                    "This is the interval of somebody who takes the release for real records.",
                ),
                Mistake(
                    "weight 1",
                    lambda: of_one(3),
                    "This would be right if all weights were 1.",
                ),
                Mistake(
                    "parameter fixed",
                    lambda: of_one(2),
                    "This rule is for releases without a draw of the parameter.",
                ),
                Mistake(
                    "variance taken for a standard error",
                    lambda: g.estimate
                    + np.array([-1, 1]) * z * (2 + 1 / g.weight) * g.variance,
                    "A variance is the square of a standard error.",
                ),
                Mistake(
                    "weight multiplied",
                    lambda: of_one(2 + g.weight),
                    "A smaller weight makes a posterior wider, not narrower.",
                ),
            ),
            "Which rule of the table does with one release, and has room for a weight?",
        ),
        Exercise(
            "from-tables",
            "two numbers, [lower end, upper end]",
            lambda: [combined.low, combined.high],
            (
                Mistake(
                    "all rows put together",
                    lambda: around(means.mean(), g.released.var(ddof=1) / (m * n)),
                    "Five releases do not have five times the information of the confidential "
                    "records.",
                ),
                Mistake(
                    "variances exchanged",
                    lambda: around(
                        means.mean(),
                        between + within / m,
                        stats.t.ppf(0.975, (m - 1) * (1 + within * m / between) ** 2),
                    ),
                    "You divided the wrong one of the two variances by m.",
                ),
                Mistake(
                    "normal distribution",
                    lambda: around(means.mean(), within + between / m),
                    "The variance is right. But b comes from few releases: the chapter's intervals "
                    "are not normal ones.",
                ),
                Mistake(
                    "m - 1 degrees of freedom",
                    lambda: around(means.mean(), within + between / m, stats.t.ppf(0.975, m - 1)),
                    "Only b comes from few releases; the other part of the variance does not. The "
                    "degrees of freedom take that into account.",
                ),
                Mistake(
                    "interval of one release",
                    lambda: around(means.mean(), within),
                    "The scatter between the releases is missing.",
                ),
            ),
            "Two columns, one row a release: the estimate, and its squared standard error.",
        ),
        Exercise(
            "negative-variance",
            "two variances, [partially synthetic, fully synthetic]",
            lambda: [inner + outer / averages, (1 + 1 / averages) * outer - inner],
            (
                Mistake(
                    "negative variance replaced",
                    lambda: [inner + outer / averages, inner],
                    "You let something stand in for what the second formula gives. What does it "
                    "give?",
                ),
                Mistake(
                    "rules exchanged",
                    lambda: [(1 + 1 / averages) * outer - inner, inner + outer / averages],
                    "The two are right, and in the wrong order.",
                ),
                Mistake(
                    "sign lost",
                    lambda: [inner + outer / averages, abs((1 + 1 / averages) * outer - inner)],
                    "The second number has lost its sign.",
                ),
                Mistake(
                    "b as it is",
                    lambda: [inner + outer / averages, outer - inner],
                    "This is what the second rule puts for A. The variance of the average has "
                    "another part.",
                ),
                Mistake(
                    "divided by m where m - 1 belongs",
                    lambda: [
                        inner + g.averages.var() / averages,
                        (1 + 1 / averages) * g.averages.var() - inner,
                    ],
                    "Look at the divisor of b.",
                ),
            ),
            "Both formulas stand in the table of the rules.",
        ),
        Exercise(
            "shared-epsilon",
            "four ratios of standard errors, one for each number of releases",
            lambda: np.sqrt(1 + 1 / g.numbers + 1 / g.weight),
            (
                Mistake(
                    "full weight for every release",
                    lambda: np.sqrt(1 + (1 + 1 / g.weight) / g.numbers),
                    "Every release has the weight of a release that comes alone. Who pays for it?",
                ),
                Mistake(
                    "ratios of variances",
                    lambda: 1 + 1 / g.numbers + 1 / g.weight,
                    "These are ratios of variances.",
                ),
                Mistake(
                    "confidential data forgotten",
                    lambda: np.sqrt(1 / g.numbers + 1 / g.weight),
                    "The estimate from the real records has a variance as well.",
                ),
                Mistake(
                    "one release of m",
                    lambda: np.sqrt(2 + g.numbers / g.weight),
                    "This is the error of a single one of the m releases, and not of their "
                    "average.",
                ),
            ),
            "With m releases each has the m-th part of the weight, and the average of m is taken.",
        ),
        Exercise(
            "missed",
            "three numbers, [coverage, its Monte Carlo standard error, bias over standard "
            "deviation]",
            lambda: [covered, error, off / scatter],
            (
                Mistake(
                    "share that is missed",
                    lambda: [1 - covered, error, off / scatter],
                    "The first number is the share of intervals that miss the truth.",
                ),
                Mistake(
                    "standard deviation of one interval",
                    lambda: [covered, np.sqrt(covered * (1 - covered)), off / scatter],
                    "The second number does not fall with the number of databases: something is "
                    "missing.",
                ),
                Mistake(
                    "bias with its own scale",
                    lambda: [covered, error, off],
                    "The third number is the bias itself. Measure it in standard deviations of the "
                    "estimate.",
                ),
                Mistake(
                    "bias over its standard error",
                    lambda: [covered, error, off / scatter * np.sqrt(len(g.low))],
                    "The third number grows with the number of databases: you divided by the "
                    "standard error of an average.",
                ),
                Mistake(
                    "truth minus estimate",
                    lambda: [covered, error, -off / scatter],
                    "A bias is the average estimate minus the truth.",
                ),
            ),
            "Each of the three is one line of NumPy over the databases.",
        ),
        Exercise(
            "read-the-weight",
            "one weight, between 0 and 1",
            lambda: 1 / (ratio - 1),
            (
                Mistake(
                    "new records forgotten",
                    lambda: 1 / ratio,
                    "Between releases it is not only the parameter that varies.",
                ),
                Mistake(
                    "upside down",
                    lambda: ratio - 1,
                    "Above 1: turn it round.",
                ),
                Mistake(
                    "confidential data counted",
                    lambda: 1 / (ratio - 2),
                    "All releases come from the same confidential records, so that their chance is "
                    "not in b.",
                ),
                Mistake(
                    "squares forgotten",
                    lambda: 1 / (np.sqrt(ratio) - 1),
                    "Compare variances, not standard deviations.",
                ),
            ),
            "Solve B = (1/α + 1) v for α.",
        ),
    )
