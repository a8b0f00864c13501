"""Exercises of the chapter on a reader's own model: what the mechanism needs of it."""

from types import SimpleNamespace

import numpy as np
import xarray as xr
from scipy import stats

import ppm
from ppm.classroom.checking import Exercise, Mistake

SEED = 2024


def given():
    """Simulated answers and expenditures, and draws that stand for those of a fit."""
    survey, spending, fits = map(np.random.default_rng, np.random.SeedSequence(SEED).spawn(3))
    age = survey.integers(18, 80, 40)
    eta = 0.4 - 0.05 * (age - 45)
    answer = (survey.random(40) < 1 / (1 + np.exp(-eta))).astype(int)
    intercept = survey.normal(0.4, 0.35, 200)
    slope = survey.normal(-0.05, 0.015, 200)
    second = stats.bernoulli.logpmf(
        (survey.random(40) < 0.3).astype(int), survey.beta(12, 28, (200, 1))
    )
    region = spending.choice(4, 60, p=[0.4, 0.3, 0.2, 0.1])
    log_spending = spending.normal(2.0, 0.6, 60)
    level, sigma = spending.normal(2.0, 0.08, (200, 1)), spending.gamma(60, 0.01, (200, 1))
    of_spending = stats.norm.logpdf(log_spending, level, sigma) - log_spending
    of_chains = -fits.gamma(3.0, 0.7, (4, 100, 25)) - fits.gamma(2.0, 0.2, (4, 1, 25))
    masked = stats.bernoulli.logpmf(
        (fits.random(20) < 0.5).astype(int), fits.beta(8, 4, (150, 1))
    )
    masked[:, [3, 11]] = 0.0
    return SimpleNamespace(
        age=age,
        answer=answer,
        intercept=intercept,
        slope=slope,
        second_log_lik=second,
        masked_log_lik=masked,
        chains_log_lik=of_chains,
        chains_weights=fits.uniform(0.1, 1.0, 25),
        successes=np.array([1, 0, 1, 1, 0, 0, 1, 0, 0, 1]),
        trust=np.array([1.0, 0.8, 0.9, 1.0, 0.2, 0.0, 0.7, 1.0, 0.5, 0.4]),
        prior=(2.0, 3.0),
        spending_log_lik=of_spending,
        region=region,
        spending_weights=ppm.record_weights(ppm.record_bounds(of_spending)),
    )


def exercises(g):
    """The exercises that have a check."""
    eta = g.intercept[:, None] + g.slope[:, None] * (g.age - 45)
    p = 1 / (1 + np.exp(-eta))
    log_lik = stats.bernoulli.logpmf(g.answer, p)
    weighted = g.chains_weights * g.chains_log_lik
    chains = xr.DataArray(g.chains_log_lik, dims=("chain", "draw", "record"))
    alpha, y = g.trust, g.successes
    a, b = g.prior
    cents = np.log(1e5)
    masked = np.abs(g.masked_log_lik).max(axis=0)
    filled = np.where(masked == 0, masked[masked > 0].mean(), masked)
    answered = np.zeros(masked.size)
    answered[masked > 0] = ppm.record_weights(masked[masked > 0])
    return (
        Exercise(
            "log-likelihood",
            "a table of 200 rows (draws) and 40 columns (people)",
            lambda: log_lik,
            (
                Mistake(
                    "draws and records exchanged",
                    lambda: log_lik.T,
                    "People stand in rows here. The mechanism wants draws in rows and records in "
                    "columns.",
                ),
                Mistake(
                    "probabilities",
                    lambda: np.exp(log_lik),
                    "These are likelihoods. Where is the logarithm?",
                ),
                Mistake(
                    "everybody said yes",
                    lambda: np.log(p),
                    "This is the log-probability of a yes. Some people said no.",
                ),
                Mistake(
                    "age not centred",
                    lambda: stats.bernoulli.logpmf(
                        g.answer,
                        1 / (1 + np.exp(-g.intercept[:, None] - g.slope[:, None] * g.age)),
                    ),
                    "In the model the age is counted from 45.",
                ),
                Mistake(
                    "summed over people",
                    lambda: log_lik.sum(axis=1),
                    "This is one number for each draw. The mechanism needs one for each record, "
                    "too.",
                ),
            ),
            "y log p + (1 - y) log(1 - p), for every draw and person.",
        ),
        Exercise(
            "two-answers",
            "one bound, in nats",
            lambda: ppm.local_bound(log_lik + g.second_log_lik),
            (
                Mistake(
                    "larger of the two bounds",
                    lambda: max(ppm.local_bound(log_lik), ppm.local_bound(g.second_log_lik)),
                    "A record is both answers together, and both leave together.",
                ),
                Mistake(
                    "sum of the two bounds",
                    lambda: ppm.local_bound(log_lik) + ppm.local_bound(g.second_log_lik),
                    "The two largest values need not belong to the same person and draw. Add "
                    "first, then take the maximum.",
                ),
                Mistake(
                    "second answer only",
                    lambda: ppm.local_bound(g.second_log_lik),
                    "What became of the first answer?",
                ),
                Mistake(
                    "average of the two",
                    lambda: ppm.local_bound((log_lik + g.second_log_lik) / 2),
                    "Log-likelihoods of two responses of a record are added, not averaged.",
                ),
            ),
            "One term for each person, of both responses.",
        ),
        Exercise(
            "masked",
            "one weight for each of the twenty people",
            lambda: ppm.record_weights(masked),
            (
                Mistake(
                    "weight 0 for a missing answer",
                    lambda: answered,
                    "Nothing is known of these two. Does that make them dangerous or harmless? "
                    "And their bounds take part in the scaling.",
                ),
                Mistake(
                    "scaled without them",
                    lambda: np.where(
                        masked == 0, 1.0,
                        1 - (masked - masked[masked > 0].min()) / np.ptp(masked[masked > 0]),
                    ),
                    "The smallest bound is that of all twenty.",
                ),
                Mistake(
                    "missing bounds replaced by the average",
                    lambda: ppm.record_weights(filled),
                    "You gave them the average bound. Theirs is known: what is the maximum of "
                    "zeros?",
                ),
            ),
            "Their columns hold zeros: follow the algorithm as it is.",
        ),
        Exercise(
            "what-to-diagnose",
            "a table of 4 rows (chains) and 100 columns (draws)",
            # the library strings the chains together
            lambda: ppm.lipschitz.draw_maxima(chains, g.chains_weights).reshape(
                chains.shape[:2]
            ),
            (
                Mistake(
                    "bounds of records",
                    lambda: np.abs(weighted).max(axis=1),
                    "This is one number for each chain and record. R-hat needs one for each chain "
                    "and draw.",
                ),
                Mistake(
                    "sum over records",
                    lambda: weighted.sum(axis=-1),
                    "This is the weighted log-likelihood of the whole table: worth a look, but Δ "
                    "is not its maximum.",
                ),
                Mistake(
                    "without the weights",
                    lambda: np.abs(g.chains_log_lik).max(axis=-1),
                    "Multiply by the weights first.",
                ),
                Mistake(
                    "largest log-likelihood with its sign",
                    lambda: weighted.max(axis=-1),
                    "This is the best fitted record of each draw. Δ belongs to the worst.",
                ),
            ),
            "The quantity whose maximum over all chains and draws is Δ.",
        ),
        Exercise(
            "beta-bernoulli",
            "two numbers, the parameters of the Beta pseudo posterior",
            lambda: [a + alpha @ y, b + alpha @ (1 - y)],
            (
                Mistake(
                    "prior left out",
                    lambda: [alpha @ y, alpha @ (1 - y)],
                    "The prior is missing.",
                ),
                Mistake(
                    "weights left out",
                    lambda: [a + y.sum(), b + (1 - y).sum()],
                    "This is the ordinary posterior.",
                ),
                Mistake(
                    "all weights on the failures",
                    lambda: [a + alpha @ y, b + alpha.sum()],
                    "The second parameter counts the failures, not everybody.",
                ),
                Mistake(
                    "unweighted failures",
                    lambda: [a + alpha @ y, b + (1 - y).sum()],
                    "A failure has a weight as well.",
                ),
            ),
            "Raise each record's likelihood to its weight, and collect exponents.",
        ),
        Exercise(
            "cents",
            "one bound, in nats",
            lambda: ppm.local_bound(g.spending_log_lik - cents),
            (
                Mistake(
                    "unit unchanged",
                    lambda: ppm.local_bound(g.spending_log_lik),
                    "This is the bound in thousands of dollars.",
                ),
                Mistake(
                    "wrong direction",
                    lambda: ppm.local_bound(g.spending_log_lik + cents),
                    "A cent is a small unit: is the probability per cent larger or smaller than "
                    "per thousand dollars?",
                ),
                Mistake(
                    "dollars",
                    lambda: ppm.local_bound(g.spending_log_lik - np.log(1e3)),
                    "This is the bound in dollars.",
                ),
                Mistake(
                    "divided",
                    lambda: ppm.local_bound(g.spending_log_lik / 1e5),
                    "The density is divided, so its logarithm is not.",
                ),
            ),
            "How many cents are a thousand dollars?",
        ),
        Exercise(
            "regions",
            "one number of households for each of the four regions",
            lambda: np.bincount(g.region, g.spending_weights, minlength=4),
            (
                Mistake(
                    "heads",
                    lambda: np.bincount(g.region, minlength=4),
                    "These are the households, each counted fully.",
                ),
                Mistake(
                    "average weights",
                    lambda: np.bincount(g.region, g.spending_weights, minlength=4)
                    / np.bincount(g.region, minlength=4),
                    "This is an average weight. How many households do the weights add up to?",
                ),
                Mistake(
                    "shares of the whole",
                    lambda: np.bincount(g.region, g.spending_weights, minlength=4)
                    / g.spending_weights.sum(),
                    "These are shares of the whole.",
                ),
                Mistake(
                    "households with a weight",
                    lambda: np.bincount(g.region, g.spending_weights > 0, minlength=4),
                    "A weight between 0 and 1 counts as a part of a household.",
                ),
            ),
            "Add the weights, region by region.",
        ),
        Exercise(
            "covered",
            "the letters of what the guarantee covers, if its conditions hold",
            lambda: set("ad"),
            (
                Mistake(
                    "predictors",
                    lambda: set("abd"),
                    "You also marked something that entered the model as a plain number.",
                ),
                Mistake(
                    "the region's level",
                    lambda: set("acd"),
                    "A region is not a record.",
                ),
                Mistake(
                    "the bound itself",
                    lambda: set("ade"),
                    "You also marked a number that was computed from the records and is no draw.",
                ),
                Mistake(
                    "single draws only",
                    lambda: set("a"),
                    "Post-processing: what is made from a draw of θ alone?",
                ),
            ),
            "See the box on what the guarantee does not cover.",
            options="abcdef",
        ),
    )
