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
    survey, spending, fits, public = map(
        np.random.default_rng, np.random.SeedSequence(SEED).spawn(4)
    )

    g = SimpleNamespace(
        prior=(2.0, 3.0), successes=np.array([1, 0, 1, 1, 0, 0, 1, 0, 0, 1])
    )
    g.trust = np.array([1.0, 0.8, 0.9, 1.0, 0.2, 0.0, 0.7, 1.0, 0.5, 0.4])
    g.age = survey.integers(18, 80, 40)
    g.answer = (survey.random(40) < expit(0.4 - 0.05 * (g.age - 45))).astype(int)
    g.intercept, g.slope = survey.normal([[0.4], [-0.05]], [[0.35], [0.015]], (2, 200))

    log_spending = spending.normal(2.0, 0.6, 60)
    level, sigma = (
        spending.normal(2.0, 0.08, (200, 1)),
        spending.gamma(60, 0.01, (200, 1)),
    )
    g.spending_log_lik = stats.norm.logpdf(log_spending, level, sigma) - log_spending

    g.chains_log_lik = -fits.gamma(3.0, 0.7, (4, 100, 25)) - fits.gamma(
        2.0, 0.2, (4, 1, 25)
    )
    g.chains_weights = fits.uniform(0.1, 1.0, 25)

    candidates = public.normal(0.0, 4.0, (1000, 3))
    g.totals = -40.0 - ((candidates - 2.0) ** 2).sum(axis=1) / 2
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
            "You added up the records. Δ is the bound of a single one.": np.abs(
                weighted
            ).sum(axis=-1),
            "This is the record that each draw suits best. Δ belongs to the worst.": np.abs(
                weighted
            ).min(axis=-1),
            "This is an average over records. Δ belongs to the worst.": np.abs(
                weighted
            ).mean(axis=-1),
            "These are places of records. Wanted are the values that stand there.": np.abs(
                weighted
            ).argmax(axis=-1),
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
            "The largest log-likelihood is no largest absolute value.": (
                g.spending_log_lik - unit
            ).max(),
            "This is an average. A bound belongs to the worst draw of the worst record.": np.abs(
                g.spending_log_lik - unit
            ).mean(),
            "You added up the whole matrix. A bound belongs to a single record at one draw.": np.abs(
                g.spending_log_lik - unit
            ).sum(),
            "The log-likelihoods are natural logarithms, and that of the unit has the base 2.": ppm.local_bound(
                g.spending_log_lik - np.log2(1e5)
            ),
            "The log-likelihoods are natural logarithms. Which one did you take of the unit?": ppm.local_bound(
                g.spending_log_lik - np.log10(1e5)
            ),
            "The density is divided, not its log.": ppm.local_bound(
                g.spending_log_lik / 1e5
            ),
        },
        "How many cents are a thousand dollars?",
    )


@exercise("three numbers: candidates left, a factor, and the length of a list")
def left_of_a_list(g):
    ratios = np.exp(g.totals - g.totals.max())
    p = ratios / ratios.sum()

    def from_left(left, parameters=3):
        factor = (1000 / left) ** (1 / parameters)
        return [left, factor, 10 * factor**6]

    left = 1 / (p**2).sum()
    right = from_left(left)
    return (
        right,
        {
            "Probabilities add up to 1: divide by their sum before you square them.": from_left(
                1 / (ratios**2).sum()
            ),
            "This is the sum of squares. Its reciprocal counts candidates.": from_left(
                (p**2).sum()
            ),
            "You averaged the squares, which add up.": from_left(1 / (p**2).mean()),
            "You took one over the largest probability, and not over the sum of squares.": from_left(
                1 / p.max()
            ),
            "All three parameters together divide the list so. What does each of them do, if all do "
            "the same?": from_left(left, 1),
            "You took a third of the whole division. Each parameter divides what the others leave.": [
                left,
                1000 / left / 3,
                10 * (1000 / left / 3) ** 6,
            ],
            "With six parameters the list is divided six times, one after another: factors multiply.": [
                *right[:2],
                10 * 6 * right[1],
            ],
            "Six parameters divide this list of 1,000 so. How long must it be for ten to be left?": [
                *right[:2],
                1000 / right[1] ** 6,
            ],
            "With a list of this length one candidate is left, and ten are wanted.": [
                *right[:2],
                right[1] ** 6,
            ],
        },
        (
            "From sums of terms to probabilities, and then as the chapter counts candidates.",
            "p = exp(totals) / sum, left = 1 / Σ p², factor³ = 1000 / left.",
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
