"""Exercises of the chapter on what a recipient does with releases: variances and intervals."""

from types import SimpleNamespace

import numpy as np
from scipy import stats

import ppm
from checks import exercise

SEED = 2003


def given():
    """Releases of working hours, averages with public predictors, and intervals of a study."""
    *streams, study = np.random.SeedSequence(SEED).spawn(4)
    hours, regression, many = map(np.random.default_rng, streams)
    g = SimpleNamespace(
        weight=0.25, estimate=38.2, variance=0.09, numbers=np.array([1, 2, 5, 20])
    )
    g.released = _releases(hours, g.weight, 5, 400)
    g.averages, g.variances = _with_predictors(regression, 5, 300)
    g.many_averages, g.many_variances = _averages(_releases(many, g.weight, 200, 400))
    g.truth = 38.0 + 6.0 * stats.norm.ppf(0.9)
    databases = map(np.random.default_rng, study.spawn(200))
    g.estimates, g.low, g.high = np.transpose(
        [_combined(*_percentiles(rng)) for rng in databases]
    )
    return g


def _averages(released):
    """Mean and its variance, of each release in a row."""
    return released.mean(axis=1), released.var(axis=1, ddof=1) / released.shape[1]


def _releases(rng, weight, releases, n, *, spread=6.0):
    """Releases of a normal variable, spread known, each from a draw of its mean."""
    confidential = rng.normal(38.0, spread, size=n)
    centre = rng.normal(
        confidential.mean(), spread / np.sqrt(weight * n), size=(releases, 1)
    )
    return rng.normal(centre, spread, size=(releases, n))


def _with_predictors(rng, releases, n, *, slope=3.0):
    """Averages of releases, and their variances, where a public predictor explains most."""
    predictor = rng.normal(size=n)
    confidential = 20.0 + slope * predictor + rng.normal(size=n)
    by_chance = rng.normal(scale=1.0 / np.sqrt(n), size=(releases, 1))
    response = confidential.mean() + slope * (predictor - predictor.mean()) + by_chance
    return _averages(response + rng.normal(size=(releases, n)))


def _percentiles(rng, releases=5, n=200):
    """90th percentiles of releases under the paper's weights, and their variances."""
    confidential = rng.normal(38.0, 6.0, size=n)

    def draw(weights, size):
        centre = np.average(confidential, weights=weights)
        squares = weights @ (confidential - centre) ** 2
        spread = np.sqrt(squares / rng.chisquare(weights.sum() - 1, size=(size, 1)))
        return rng.normal(centre, spread / np.sqrt(weights.sum())), spread

    bounds = ppm.record_bounds(stats.norm.logpdf(confidential, *draw(np.ones(n), 50)))
    released = rng.normal(
        *draw(ppm.record_weights(bounds), releases), size=(releases, n)
    )
    # of a normal sample, for large n
    ratio = 0.09 / stats.norm.pdf(stats.norm.ppf(0.9)) ** 2
    return np.quantile(released, 0.9, axis=1), ratio * released.var(axis=1, ddof=1) / n


def _around(centre, variance, distribution=stats.norm):
    """An interval of 95 per cent."""
    return centre + np.array([-1, 1]) * distribution.ppf(0.975) * np.sqrt(variance)


def _combined(estimates, variances):
    """Estimate and interval by the rule for partially synthetic data."""
    m, within, between = len(estimates), variances.mean(), estimates.var(ddof=1)
    student = stats.t((m - 1) * (1 + within * m / between) ** 2)
    return estimates.mean(), *_around(estimates.mean(), within + between / m, student)


@exercise("two shares, [all weights 1, constant weight]")
def as_real(g):
    z = stats.norm.ppf(0.975)
    weights = np.array([1.0, g.weight])
    return (
        2 * stats.norm.cdf(z / np.sqrt(2 + 1 / weights)) - 1,
        {
            "An interval is as wide as a standard error, not as a variance.": 2
            * stats.norm.cdf(z / (2 + 1 / weights))
            - 1,
            "The interval has two ends, and can miss on either side.": stats.norm.cdf(
                z / np.sqrt(2 + 1 / weights)
            ),
            "Three things vary: the confidential records, the draw of the parameter, and the new "
            "records.": 2 * stats.norm.cdf(z / np.sqrt(1 + 1 / weights)) - 1,
            "A smaller weight makes a posterior wider, not narrower.": 2
            * stats.norm.cdf(z / np.sqrt(2 + weights))
            - 1,
        },
        "How many standard errors of the truth are 1.96 of those that the recipient knows?",
    )


@exercise("two numbers, [lower end, upper end]")
def one_release(g):
    def of_one(factor):
        return _around(g.estimate, factor * g.variance)

    return (
        of_one(2 + 1 / g.weight),
        {
            "This is the interval of somebody who takes the release for real records.": of_one(
                1
            ),
            "This would be right if all weights were 1.": of_one(3),
            "This rule is for releases without a draw of the parameter.": of_one(2),
            "A variance is the square of a standard error.": _around(
                g.estimate, ((2 + 1 / g.weight) * g.variance) ** 2
            ),
            "A standard error is the root of a variance.": _around(
                g.estimate, (2 + 1 / g.weight) * g.variance**2
            ),
            "A smaller weight makes a posterior wider, not narrower.": of_one(
                2 + g.weight
            ),
        },
        "Which rule of the table does with one release, and has room for a weight?",
    )


@exercise("the letters of the sentences that hold", "abcdef")
def rules_recalled(g):
    return (
        set("bdf"),
        {
            "One too many. What happens to the predictors in a release of this library?": set(
                "abdf"
            ),
            "One too many. All rules are centred at the average of the estimates.": set(
                "bdef"
            ),
            "One is missing. What would b have to know of the weights?": set("df"),
        },
        "Go through the table of the rules: what does each put for A, and what for B?",
    )


@exercise("two numbers, [lower end, upper end]")
def from_tables(g):
    m, n = g.released.shape
    means, variances = _averages(g.released)
    within, between = variances.mean(), means.var(ddof=1)
    mean, variance = means.mean(), within + between / m
    freedom = (m - 1) * (1 + within * m / between) ** 2
    return (
        _combined(means, variances)[1:],
        {
            "This takes the variance of the hours for that of their mean.": _combined(
                means, n * variances
            )[1:],
            "You added up the variances of the releases. Their average is wanted.": _combined(
                means, m * variances
            )[1:],
            "Five releases do not have five times the information of the confidential records.": _around(
                mean, g.released.var(ddof=1) / (m * n)
            ),
            "You divided the wrong one of the two variances by m.": _around(
                mean, between + within / m, stats.t(freedom)
            ),
            "The variance is right. But b comes from few releases: the chapter's intervals are not "
            "normal ones.": _around(mean, variance),
            "Only b comes from few releases; the other part of the variance does not. The degrees of "
            "freedom take that into account.": _around(mean, variance, stats.t(m - 1)),
            "The scatter between the releases is missing.": _around(mean, within),
            "A standard error is the root of a variance.": _around(
                mean, variance**2, stats.t(freedom)
            ),
            "What is b, a variance or a standard deviation?": _around(
                mean,
                within + np.sqrt(between) / m,
                stats.t((m - 1) * (1 + within * m / np.sqrt(between)) ** 2),
            ),
        },
        "Two columns, one row a release: the estimate, and its squared standard error.",
    )


@exercise("two variances, [partially synthetic, fully synthetic]")
def negative_variance(g):
    m, inner, outer = len(g.averages), g.variances.mean(), g.averages.var(ddof=1)
    partially, fully = inner + outer / m, (1 + 1 / m) * outer - inner
    divided_by_m = g.averages.var()
    return (
        [partially, fully],
        {
            "You let something stand in. What does the second formula give?": [
                partially,
                inner,
            ],
            "This is what the second rule puts for A. The variance of the average has another part.": [
                partially,
                outer - inner,
            ],
            "You added up the variances of the releases. Their average is wanted.": [
                m * inner + outer / m,
                (1 + 1 / m) * outer - m * inner,
            ],
            "Look at the last sign of the second formula.": [
                partially,
                (1 + 1 / m) * outer + inner,
            ],
            "What is b, a variance or a standard deviation?": [
                inner + np.sqrt(outer) / m,
                (1 + 1 / m) * np.sqrt(outer) - inner,
            ],
            "Look at the divisor of b.": [
                inner + divided_by_m / m,
                (1 + 1 / m) * divided_by_m - inner,
            ],
        },
        "Both formulas stand in the table of the rules.",
    )


@exercise("four ratios of standard errors, one for each number of releases")
def shared_epsilon(g):
    return (
        np.sqrt(1 + 1 / g.numbers + 1 / g.weight),
        {
            "Every release has the weight of a release that comes alone. Who pays for it?": np.sqrt(
                1 + (1 + 1 / g.weight) / g.numbers
            ),
            "Real records have a variance, too.": np.sqrt(1 / g.numbers + 1 / g.weight),
            "This is the error of a single one of the m releases, and not of their average.": np.sqrt(
                2 + g.numbers / g.weight
            ),
        },
        "With m releases each has the m-th part of the weight, and the average of m is taken.",
    )


@exercise("one weight, between 0 and 1")
def read_the_weight(g):
    ratio = g.many_averages.var(ddof=1) / g.many_variances.mean()
    return (
        1 / (ratio - 1),
        {
            "Between releases it is not only the parameter that varies.": 1 / ratio,
            "The chance in the confidential records is the same in all of them.": 1
            / (ratio - 2),
            "Compare variances, not standard deviations.": 1 / (np.sqrt(ratio) - 1),
            "What is b, a variance or a standard deviation?": 1
            / (g.many_averages.std(ddof=1) / g.many_variances.mean() - 1),
            "You added up the variances of the releases. Their average is wanted.": 1
            / (ratio / g.many_variances.size - 1),
        },
        (
            "Which formula of the chapter has the weight in it?",
            "Solve B = (1/α + 1) v for α.",
        ),
    )


@exercise(
    "three numbers, [coverage, its Monte Carlo standard error, bias over standard deviation]"
)
def missed(g):
    covered = np.mean((g.low <= g.truth) & (g.truth <= g.high))
    error = np.sqrt(covered * (1 - covered) / len(g.low))
    off, scatter = g.estimates.mean() - g.truth, g.estimates.std(ddof=1)
    return (
        [covered, error, off / scatter],
        {
            "The second number does not fall with the number of databases: something is missing.": [
                covered,
                np.sqrt(covered * (1 - covered)),
                off / scatter,
            ],
            "The first number counts intervals. Their share is wanted.": [
                covered * len(g.low),
                error,
                off / scatter,
            ],
            "In the third number you divided by a variance.": [
                covered,
                error,
                off / scatter**2,
            ],
            "The third number is the bias itself. Measure it in standard deviations of the estimate.": [
                covered,
                error,
                off,
            ],
            "The third number grows with the number of databases: you divided by the standard error "
            "of an average.": [covered, error, off / scatter * np.sqrt(len(g.low))],
        },
        "Each of the three is one line of NumPy over the databases.",
    )
