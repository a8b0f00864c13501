"""Exercises of the chapter on the application: bounds, releases, intruders and count weights."""

from types import SimpleNamespace

import numpy as np
from scipy import stats

import ppm
from checks import exercise

SEED = 2017


def given():
    """Incomes with a long tail, an intruder's five units, and the paper's published bounds."""
    data, _, statistics = map(
        np.random.default_rng, np.random.SeedSequence(SEED).spawn(3)
    )
    return SimpleNamespace(
        # in dollars; one in thirty households has none
        income=np.where(
            data.random(300) < 1 / 30, 0, data.lognormal(10.9, 0.9, 300)
        ).round(-2),
        radius=0.2,
        true_incomes=np.array([30.0, 50.0, 52.0, 80.0, 200.0]),
        released_incomes=np.array([50.0, 51.0, 33.0, 83.0, 164.0]),
        incomes_of_a_pattern=np.array([21.0, 24.5, 30.0, 33.0, 90.0, 100.0]),
        medians_one=np.array([41.0, 55.0, 47.0, 60.0]),
        medians_two=np.array([52.0, 44.0, 71.0, 49.0]),
        estimates=statistics.normal(62.0, 1.2, 20).round(2),
        variances=statistics.normal(2.9, 0.1, 20).round(3),
        with_household=131.0,
        without_household=128.5,
        spread=4.0,
        false_alarms=0.05,
        detected=0.8,
        delta_unweighted=78.7,
        delta_first=10.10,
        delta_last=2.25,
    )


@exercise("one weight")
def scalar_weight(g):
    return (
        min(1.0, ppm.epsilon(g.delta_first) / (2 * g.delta_unweighted)),
        {
            "The ε of DPweighted is not its Δ.": g.delta_first
            / (2 * g.delta_unweighted),
            "The exponent is ε over *twice* the bound.": 2
            * g.delta_first
            / g.delta_unweighted,
            "The rule stops at 1, but here it does not get there.": 1.0,
        },
        (
            "To which power does the exponential mechanism raise the likelihood?",
            "The exponential mechanism raises the likelihood to the power ε / (2Δ).",
        ),
    )


@exercise("one whole number of releases")
def bill(g):
    return (
        np.floor(ppm.epsilon(g.delta_first) / ppm.epsilon(g.delta_last)),
        {
            "Half a database cannot be released.": g.delta_first / g.delta_last,
            "So many cost more than the one release.": np.ceil(
                g.delta_first / g.delta_last
            ),
            "You compared with Unweighted. Compare with the first setting.": np.floor(
                g.delta_unweighted / g.delta_last
            ),
            "Which of the two bounds is the smaller one?": g.delta_last / g.delta_first,
        },
        (
            "Write down the cost of m releases, and what they may cost at most.",
            "m · 2Δ of the last setting, at most 2Δ of the first.",
        ),
    )


@exercise("one number")
def gini(g):
    right = float(ppm.release.measure.gini(g.income))
    n, ranks = g.income.size, np.arange(1, g.income.size + 1)
    return (
        right,
        {
            "The formula with ranks needs sorted incomes.": 2
            * (ranks * g.income).sum()
            / (n * g.income.sum())
            - (n + 1) / n,
            "Without absolute values the differences cancel.": 0.0,
            "This is a sum over all pairs. Their average is wanted.": right * n**2,
            "The pairs of a record with itself count, too.": right * n / (n - 1),
            "Do you divide by the mean or the median?": right
            * g.income.mean()
            / np.median(g.income),
        },
        (
            "Which pairs does the average run over?",
            "Average |xᵢ - xⱼ| over all pairs, a record with itself among them.",
        ),
    )


@exercise("one standard error")
def combining(g):
    m = g.estimates.size
    within, between = g.variances.mean(), g.estimates.var(ddof=1)
    return (
        np.sqrt(within + between / m),
        {
            "This takes releases for real data: the spread between them is missing.": np.sqrt(
                within
            ),
            "This is the rule for multiple imputation of *missing* data. Synthetic data have another "
            "one.": np.sqrt(within + (1 + 1 / m) * between),
            "The average of the variances is wanted, not their sum.": np.sqrt(
                g.variances.sum() + between / m
            ),
            "What is b, a variance or a standard deviation?": np.sqrt(
                within + np.sqrt(between) / m
            ),
            "This is the error of a single release. What does averaging do to b?": np.sqrt(
                within + between
            ),
            "This is the error of the average over releases. The sample itself has an error, too.": np.sqrt(
                between / m
            ),
        },
        "One term for the sample, one for the number of releases.",
    )


@exercise("one number of units")
def match_risk(g):
    true, released = g.true_incomes, g.released_incomes
    distance = np.abs(released - true[:, None])
    near, close = distance <= g.radius * true[:, None], distance <= g.radius * released
    own, matches = near.diagonal(), near.sum(axis=1)
    below = released - true[:, None] <= g.radius * true[:, None]
    risk = ppm.risk.match_risk(true, released[None], radius=g.radius)
    return (
        risk["expected match risk"].iloc[0],
        {
            "The intruder sees several matches for some units, and must pick one of them.": own.sum(),
            "A match that belongs to another unit finds nobody.": (matches > 0).sum(),
            "Wanted is a number of units, not a share of them.": (
                own / np.maximum(matches, 1)
            ).mean(),
            "This radius is a share of an income, not an amount.": 0.0,
            "A match may lie on either side of the true income: what is missing?": (
                below.diagonal() / np.maximum(below.sum(axis=1), 1)
            ).sum(),
            "Who has matches, but not the own record among them?": (
                1 / matches[matches > 0]
            ).sum(),
            "The intruder knows the true income up to the radius. Of which income is the radius a "
            "share?": (close.diagonal() / np.maximum(close.sum(axis=1), 1)).sum(),
        },
        (
            "How probable is it that the intruder picks the right one, for each unit?",
            "Sum T / c over the units.",
        ),
    )


@exercise("one whole number of releases")
def several_releases(g):
    apart = (g.with_household - g.without_household) / g.spread
    alarms, power = stats.norm.ppf(1 - g.false_alarms), stats.norm.ppf(g.detected)
    needed = ((alarms + power) / apart) ** 2
    two_sided = ((stats.norm.ppf(1 - g.false_alarms / 2) + power) / apart) ** 2
    return (
        np.ceil(needed),
        {
            "Is one release fewer enough?": np.floor(needed),
            "A release is whole: round up.": needed,
            "With so many the intruder detects every second time.": np.ceil(
                (alarms / apart) ** 2
            ),
            "An average's standard error falls with √m.": np.ceil(
                (alarms + power) / apart
            ),
            "The quantile of a small probability is negative. How far are the two apart?": np.ceil(
                ((power - alarms) / apart) ** 2
            ),
            "The spread is a standard deviation, not a variance.": np.ceil(
                needed * g.spread**2
            ),
            "The intruder only looks upwards: all false alarms are on one side.": np.ceil(
                two_sided
            ),
        },
        "How far apart are the two means, in standard errors of an average over m releases?",
    )


@exercise("one risk for each of the six units")
def neighbours(g):
    income, radius = g.incomes_of_a_pattern, g.radius
    distance = np.abs(income[:, None] - income)
    outside = distance > radius * income[:, None]
    return (
        ppm.risk.identification_risks(income, radius=radius),
        {
            "How many *other* units are there? None is its own neighbour.": outside.mean(
                axis=1
            ),
            "Whose income is the radius a share of: the unit's own, or the other one's?": (
                distance > radius * income
            ).sum(axis=1)
            / 5,
            "Units with a larger income can be too far away as well.": (
                income[:, None] - income > radius * income[:, None]
            ).sum(axis=1)
            / 5,
            "Units with a smaller income can be too far away as well.": (
                income - income[:, None] > radius * income[:, None]
            ).sum(axis=1)
            / 5,
            "These are numbers of units. Wanted are shares of the others.": outside.sum(
                axis=1
            ),
            "This radius is a share of the income, not an amount.": (
                distance > radius
            ).sum(axis=1)
            / 5,
        },
        "See the definition of the identification risk.",
    )


@exercise("four numbers, the barycentre's values")
def barycentre(g):
    pooled = np.concatenate([g.medians_one, g.medians_two])
    return (
        np.sort([g.medians_one, g.medians_two], axis=1).mean(axis=0),
        {
            "You paired the values in the order in which they happen to stand. Which value of one "
            "goes with which of the other?": (g.medians_one + g.medians_two) / 2,
            "This is a mixture of the two, which is wider. Average quantiles.": np.sort(
                pooled
            ),
            "This is the barycentre's mean. Its whole distribution is wanted.": pooled.mean(),
        },
        (
            "A barycentre is between the two. What of a distribution is averaged?",
            "Average the quantiles.",
        ),
    )
