"""Exercises of the chapter on the application: incomes, neighbours, releases and intruders."""

from types import SimpleNamespace

import numpy as np
import ppm_book

import ppm
from ppm.classroom.checking import Exercise, Mistake

SEED = 2017


def given():
    """Simulated incomes, releases of them, and the paper's published bounds."""
    data, model, statistics = np.random.SeedSequence(SEED).spawn(3)
    table = ppm_book.survey.simulate(300, random_seed=np.random.default_rng(data)).table
    income = table["income"].to_numpy()
    rng = np.random.default_rng(model)
    log_income = np.log(np.maximum(income, 1000.0))
    drawn = rng.normal(log_income.mean(), log_income.std(), (5, income.size))
    regions = table["region"].astype(str).to_numpy()
    others = np.random.default_rng(statistics)
    return SimpleNamespace(
        income=income,
        region=regions,
        synthetic=np.exp(drawn),
        incomes_of_a_pattern=np.array([21.0, 24.5, 30.0, 33.0, 90.0, 100.0]),
        radius=0.2,
        true_incomes=np.array([30.0, 50.0, 52.0, 80.0, 200.0]),
        released_incomes=np.array([50.0, 51.0, 33.0, 83.0, 164.0]),
        medians_one=np.array([41.0, 55.0, 47.0, 60.0]),
        medians_two=np.array([52.0, 44.0, 71.0, 49.0]),
        estimates=others.normal(62.0, 1.2, 20).round(2),
        variances=others.normal(2.9, 0.1, 20).round(3),
        delta_unweighted=78.7,
        delta_first=10.10,
        delta_last=2.25,
        probabilities=others.beta(8, 8, 400),
    )


def exercises(g):
    """The exercises that have a check."""
    pattern, radius = g.incomes_of_a_pattern, g.radius
    distance = np.abs(pattern[:, None] - pattern)
    outside = distance > radius * pattern[:, None]
    near = np.abs(g.released_incomes - g.true_incomes[:, None]) <= radius * g.true_incomes[:, None]
    own, matches = near.diagonal(), near.sum(axis=1)

    def by_released():
        close = np.abs(g.released_incomes - g.true_incomes[:, None]) <= radius * g.released_incomes
        return (close.diagonal() / np.maximum(close.sum(axis=1), 1)).sum()

    m = g.estimates.size
    within, between = g.variances.mean(), g.estimates.var(ddof=1)
    pooled = np.concatenate([g.medians_one, g.medians_two])
    p = g.probabilities
    sorted_income = np.sort(g.income)
    ranks = np.arange(1, sorted_income.size + 1)
    gini = float(ppm.utility.gini(g.income))
    return (
        Exercise(
            "neighbours",
            "one risk for each of the six units",
            lambda: ppm.risk.identification_risks(pattern, radius=radius),
            (
                Mistake(
                    "a unit among its own neighbours",
                    lambda: outside.mean(axis=1),
                    "How many *other* units share the pattern? A unit is not its own neighbour.",
                ),
                Mistake(
                    "share inside the radius",
                    lambda: 1 - outside.sum(axis=1) / 5,
                    "This is the share within the radius. A unit with many others near it is "
                    "safe.",
                ),
                Mistake(
                    "radius of the other unit",
                    lambda: (distance > radius * pattern).sum(axis=1) / 5,
                    "Whose income is the radius a share of: the unit's own, or the other one's?",
                ),
                Mistake(
                    "radius in dollars",
                    lambda: (distance > radius).sum(axis=1) / 5,
                    "This radius is a share of the income, not an amount.",
                ),
            ),
            "See the definition of the identification risk.",
        ),
        Exercise(
            "match-risk",
            "one number of units",
            lambda: ppm.risk.match_risk(
                g.true_incomes, g.released_incomes[None], radius=radius
            )["expected match risk"].iloc[0],
            (
                Mistake(
                    "own record within the radius",
                    lambda: own.sum(),
                    "The intruder sees several matches for some units, and must pick one of them.",
                ),
                Mistake(
                    "any match at all",
                    lambda: (matches > 0).sum(),
                    "A match that belongs to another unit finds nobody.",
                ),
                Mistake(
                    "share of the units",
                    lambda: (own / np.maximum(matches, 1)).mean(),
                    "Wanted is a number of units, not a share of them.",
                ),
                Mistake(
                    "one over the matches, own or not",
                    lambda: (1 / matches[matches > 0]).sum(),
                    "Who has matches, but not the own record among them?",
                ),
                Mistake(
                    "radius of the released income",
                    by_released,
                    "The intruder knows the true income up to the radius. Of which income is the "
                    "radius a share?",
                ),
            ),
            "Sum T / c over the units.",
        ),
        Exercise(
            "barycentre",
            "four numbers, the barycentre's values",
            lambda: ppm.utility.wasserstein_barycentre([g.medians_one, g.medians_two]),
            (
                Mistake(
                    "averaged in the order given",
                    lambda: (g.medians_one + g.medians_two) / 2,
                    "You paired the values in the order in which they happen to stand. Which "
                    "value of one goes with which of the other?",
                ),
                Mistake(
                    "pooled",
                    lambda: np.sort(pooled),
                    "This is a mixture of the two: it is wider than either. A barycentre averages "
                    "quantiles.",
                ),
                Mistake(
                    "mean of the means",
                    lambda: pooled.mean(),
                    "This is the barycentre's mean. Its whole distribution is wanted.",
                ),
            ),
            "Average the quantiles.",
        ),
        Exercise(
            "bill",
            "one whole number of releases",
            lambda: np.floor(
                ppm.epsilon(g.delta_first) / ppm.epsilon(g.delta_last)
            ),
            (
                Mistake(
                    "not a whole number",
                    lambda: g.delta_first / g.delta_last,
                    "Half a database cannot be released.",
                ),
                Mistake(
                    "rounded up",
                    lambda: np.ceil(g.delta_first / g.delta_last),
                    "So many cost more than the one release.",
                ),
                Mistake(
                    "beside the unweighted model",
                    lambda: np.floor(g.delta_unweighted / g.delta_last),
                    "You compared with Unweighted. Compare with the first setting.",
                ),
                Mistake(
                    "upside down",
                    lambda: g.delta_last / g.delta_first,
                    "Which of the two bounds is the smaller one?",
                ),
            ),
            "m · 2Δ of the last setting, at most 2Δ of the first.",
        ),
        Exercise(
            "scalar-weight",
            "one weight",
            lambda: ppm.scalar_weights(
                [g.delta_unweighted], epsilon=ppm.epsilon(g.delta_first)
            )[0],
            (
                Mistake(
                    "factor 2 forgotten in ε",
                    lambda: g.delta_first / (2 * g.delta_unweighted),
                    "The ε of DPweighted is not its Δ.",
                ),
                Mistake(
                    "factor 2 forgotten below",
                    lambda: 2 * g.delta_first / g.delta_unweighted,
                    "The exponent is ε over *twice* the bound.",
                ),
                Mistake(
                    "cut at 1",
                    lambda: 1.0,
                    "The rule stops at 1, but here it does not get there.",
                ),
                Mistake(
                    "upside down",
                    lambda: g.delta_unweighted / g.delta_first,
                    "A weight above 1 would count a record more than once.",
                ),
            ),
            "The exponential mechanism raises the likelihood to the power ε / (2Δ).",
        ),
        Exercise(
            "combining",
            "one standard error",
            lambda: np.sqrt(within + between / m),
            (
                Mistake(
                    "analysed as if real",
                    lambda: np.sqrt(within),
                    "This takes the releases for real data: the spread between them is missing.",
                ),
                Mistake(
                    "rule for missing data",
                    lambda: np.sqrt(within + (1 + 1 / m) * between),
                    "This is the rule for multiple imputation of *missing* data. Synthetic data "
                    "have another one.",
                ),
                Mistake(
                    "spread between the releases alone",
                    lambda: np.sqrt(between / m),
                    "This is the error of the average over releases. The sample itself has an "
                    "error, too.",
                ),
                Mistake(
                    "variance",
                    lambda: within + between / m,
                    "This is a variance. The standard error is its root.",
                ),
            ),
            "One term for the sample, one for the number of releases.",
        ),
        Exercise(
            "gini",
            "one number",
            lambda: gini,
            (
                Mistake(
                    "in per cent",
                    lambda: 100 * gini,
                    "The coefficient of this book is no percentage.",
                ),
                Mistake(
                    "mean difference, not halved",
                    lambda: 2 * gini,
                    "Half the mean difference between two records, over the mean.",
                ),
                Mistake(
                    "incomes not sorted",
                    lambda: 2 * (ranks * g.income).sum() / (ranks.size * g.income.sum())
                    - (ranks.size + 1) / ranks.size,
                    "The formula with ranks needs sorted incomes.",
                ),
                Mistake(
                    "median in the place of the mean",
                    lambda: gini * g.income.mean() / np.median(g.income),
                    "What do you divide by: the mean or the median?",
                ),
            ),
            "Average |xᵢ - xⱼ| over all pairs, a record with itself among them.",
        ),
        Exercise(
            "pmse",
            "one number",
            lambda: np.mean((p - 0.5) ** 2),
            (
                Mistake(
                    "not squared",
                    lambda: np.mean(np.abs(p - 0.5)),
                    "The S in pMSE stands for squared.",
                ),
                Mistake(
                    "around their own mean",
                    lambda: np.var(p),
                    "The distance is from the value that says nothing, not from their average.",
                ),
                Mistake(
                    "sum",
                    lambda: np.sum((p - 0.5) ** 2),
                    "The M stands for mean.",
                ),
                Mistake(
                    "root",
                    lambda: np.sqrt(np.mean((p - 0.5) ** 2)),
                    "No root is taken.",
                ),
            ),
            "With as many synthetic as confidential records, a useless score is 1/2.",
        ),
    )
