"""Exercises of the chapter on a reader's own model: what the mechanism needs of it."""

from types import SimpleNamespace

import numpy as np
from scipy import stats
from scipy.special import expit

import ppm
from checks import exercise

SEED = 2024


def given():
    """Simulated answers and expenditures, and draws that stand for those of a fit."""
    survey, spending, fits = map(
        np.random.default_rng, np.random.SeedSequence(SEED).spawn(3)
    )

    g = SimpleNamespace(
        prior=(2.0, 3.0), successes=np.array([1, 0, 1, 1, 0, 0, 1, 0, 0, 1])
    )
    g.trust = np.array([1.0, 0.8, 0.9, 1.0, 0.2, 0.0, 0.7, 1.0, 0.5, 0.4])
    g.age = survey.integers(18, 80, 40)
    g.answer = (survey.random(40) < expit(0.4 - 0.05 * (g.age - 45))).astype(int)
    g.intercept, g.slope = survey.normal([[0.4], [-0.05]], [[0.35], [0.015]], (2, 200))
    second_answer = (survey.random(40) < 0.3).astype(int)
    g.second_log_lik = stats.bernoulli.logpmf(
        second_answer, survey.beta(12, 28, (200, 1))
    )

    g.region = spending.choice(4, 60, p=[0.4, 0.3, 0.2, 0.1])
    log_spending = spending.normal(2.0, 0.6, 60)
    level, sigma = (
        spending.normal(2.0, 0.08, (200, 1)),
        spending.gamma(60, 0.01, (200, 1)),
    )
    g.spending_log_lik = stats.norm.logpdf(log_spending, level, sigma) - log_spending
    g.spending_weights = ppm.record_weights(ppm.record_bounds(g.spending_log_lik))

    g.chains_log_lik = -fits.gamma(3.0, 0.7, (4, 100, 25)) - fits.gamma(
        2.0, 0.2, (4, 1, 25)
    )
    asked = (fits.random(20) < 0.5).astype(int)
    g.masked_log_lik = stats.bernoulli.logpmf(asked, fits.beta(8, 4, (150, 1)))
    g.masked_log_lik[:, [3, 11]] = 0.0
    g.chains_weights = fits.uniform(0.1, 1.0, 25)
    return g


def _of_answers(g, age):
    """Probability of a yes, and log-likelihood of the answer, by draw and person."""
    p = expit(g.intercept[:, None] + g.slope[:, None] * age)
    return p, stats.bernoulli.logpmf(g.answer, p)


@exercise("a table of 200 rows (draws) and 40 columns (people)")
def log_likelihood(g):
    p, log_lik = _of_answers(g, g.age - 45)
    return (
        log_lik,
        {
            "People stand in rows. The mechanism wants draws in rows, records in columns.": log_lik.T,
            "This is the log-probability of a yes. Some people said no.": np.log(p),
            "In the model the age is counted from 45.": _of_answers(g, g.age)[1],
            "This is one number for each draw. The mechanism needs one for each record, too.": log_lik.sum(
                axis=1
            ),
        },
        (
            "The log-probability of what each person answered, at every draw.",
            "y log p + (1 - y) log(1 - p), for every draw and person.",
        ),
    )


@exercise("one bound, in nats")
def two_answers(g):
    _, log_lik = _of_answers(g, g.age - 45)
    return (
        ppm.local_bound(log_lik + g.second_log_lik),
        {
            "A record is both answers together, and both leave together.": max(
                ppm.local_bound(log_lik), ppm.local_bound(g.second_log_lik)
            ),
            "The two largest values need not belong to the same person and draw. Add first, then take "
            "the maximum.": ppm.local_bound(log_lik)
            + ppm.local_bound(g.second_log_lik),
            "What became of the first answer?": ppm.local_bound(g.second_log_lik),
        },
        "One term for each person, of both responses.",
    )


@exercise("one weight for each of the twenty people")
def masked(g):
    bounds = np.abs(g.masked_log_lik).max(axis=0)
    missing, known = bounds == 0, bounds[bounds > 0]
    answered = np.zeros(bounds.size)
    answered[~missing] = ppm.record_weights(known)
    return (
        ppm.record_weights(bounds),
        {
            "Nothing is known of these two. Does that make them dangerous or harmless? And their "
            "bounds take part in the scaling.": answered,
            "The smallest bound is that of all twenty.": np.where(
                missing, 1.0, 1 - (bounds - known.min()) / np.ptp(known)
            ),
            "You gave them the average bound. Theirs is known: what is the maximum of zeros?": ppm.record_weights(
                np.where(missing, known.mean(), bounds)
            ),
        },
        "Their columns hold zeros: follow the algorithm as it is.",
    )


@exercise("two numbers, the parameters of the Beta pseudo posterior")
def beta_bernoulli(g):
    alpha, y = g.trust, g.successes
    a, b = g.prior
    return (
        [a + alpha @ y, b + alpha @ (1 - y)],
        {
            "The prior is missing.": [alpha @ y, alpha @ (1 - y)],
            "This is the ordinary posterior.": [a + y.sum(), b + (1 - y).sum()],
            "The second parameter counts the failures.": [
                a + alpha @ y,
                b + alpha.sum(),
            ],
            "A failure has a weight as well.": [a + alpha @ y, b + (1 - y).sum()],
        },
        "Raise each record's likelihood to its weight, and collect exponents.",
    )


@exercise("a table of 4 rows (chains) and 100 columns (draws)")
def what_to_diagnose(g):
    weighted = g.chains_weights * g.chains_log_lik
    return (
        np.abs(weighted).max(axis=-1),
        {
            "This is one number for each chain and record. R-hat needs one for each chain and draw.": np.abs(
                weighted
            ).max(axis=1),
            "This is the weighted log-likelihood of the whole table: worth a look, but Δ is not its "
            "maximum.": weighted.sum(axis=-1),
            "Multiply by the weights first.": np.abs(g.chains_log_lik).max(axis=-1),
            "This is the best fitted record of each draw. Δ belongs to the worst.": weighted.max(
                axis=-1
            ),
        },
        "The quantity whose maximum over all chains and draws is Δ.",
    )


@exercise("one bound, in nats")
def cents(g):
    unit = np.log(1e5)
    return (
        ppm.local_bound(g.spending_log_lik - unit),
        {
            "This is the bound in thousands of dollars.": ppm.local_bound(
                g.spending_log_lik
            ),
            "A cent is a small unit: is the probability per cent larger or smaller than per thousand "
            "dollars?": ppm.local_bound(g.spending_log_lik + unit),
            "This is the bound in dollars.": ppm.local_bound(
                g.spending_log_lik - np.log(1e3)
            ),
            "The density is divided, not its log.": ppm.local_bound(
                g.spending_log_lik / 1e5
            ),
        },
        "How many cents are a thousand dollars?",
    )


@exercise("one number of households for each of the four regions")
def regions(g):
    heads = np.bincount(g.region, minlength=4)
    weight = np.bincount(g.region, g.spending_weights, minlength=4)
    return (
        weight,
        {
            "These are the households, each counted fully.": heads,
            "This is an average weight. How many households do the weights add up to?": weight
            / heads,
            "These are shares of the whole.": weight / g.spending_weights.sum(),
            "A weight between 0 and 1 counts as a part of a household.": np.bincount(
                g.region, g.spending_weights > 0, minlength=4
            ),
        },
        (
            "How many households does a household of weight 0.4 count for?",
            "Add the weights, region by region.",
        ),
    )


@exercise("the letters of what the guarantee covers, if its conditions hold", "abcdef")
def covered(g):
    return (
        set("ad"),
        {
            "You also marked something that entered the model as a plain number.": set(
                "abd"
            ),
            "A region is not a record.": set("acd"),
            "You also marked a number that was computed from the records and is no draw.": set(
                "ade"
            ),
            "Post-processing: what is made from a draw of θ alone?": set("a"),
        },
        "See the box on what the guarantee does not cover.",
    )
