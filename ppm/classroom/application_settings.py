"""Exercises of the chapter on settings: what a bound depends on."""

from types import SimpleNamespace

import numpy as np
from scipy import stats

import ppm
from ppm.classroom.checking import Exercise, Mistake

SEED = 2018


def given():
    """A few incomes, the published bounds beside made-up ones, and draws of one record."""
    rng = np.random.default_rng(SEED)
    draws = rng.normal(0.0, 1.0, (200, 1))
    return SimpleNamespace(
        incomes=np.array([-8_500.0, 0.0, 800.0, 60_000.0]),
        floor=1_000.0,
        shift=7_001.0,
        published=np.array([78.7, 10.10, 8.16, 7.30, 6.09, 5.71, 2.25]),
        ours=np.array([52.0, 9.1, 8.8, 6.2, 6.9, 4.1, 3.3]),
        log_lik=stats.norm.logpdf(3.0, draws, 1.0),
        fewer=20,
        line=10.9,
        spread=0.9,
        weights_of_components=np.array(
            [0.86, 0.07, 0.04, 0.015, 0.008, 0.004, 0.002, 0.0007, 0.0002, 0.0001]
        ),
        units=5_658,
        income=60_000.0,
    )


def exercises(g):
    """The exercises that have a check."""
    x, ratio = g.incomes, g.ours / g.published
    logs = np.log(ratio)
    distance = np.sqrt(np.mean(logs**2))
    f = np.abs(g.log_lik[:, 0])
    floored = -stats.norm.logpdf(0.0, g.line, g.spread)
    on_logs = stats.norm.logpdf(np.log(g.income), g.line, g.spread)
    pi = g.weights_of_components
    entropy = -(pi * np.log(pi)).sum()
    fall = g.published[0] / g.published[-1]
    return (
        Exercise(
            "transformations",
            "a table of three rows and four columns: floored logarithm, inverse hyperbolic sine, "
            "shifted logarithm; one column for each income",
            lambda: np.array([
                np.log(np.maximum(x, g.floor)),
                np.arcsinh(x),
                np.log(np.maximum(x + g.shift, 1.0)),
            ]),
            (
                Mistake(
                    "logarithm to base 10",
                    lambda: np.array([
                        np.log10(np.maximum(x, g.floor)),
                        np.arcsinh(x),
                        np.log10(np.maximum(x + g.shift, 1.0)),
                    ]),
                    "Two of the rows are in another base. The book's logarithms are natural.",
                ),
                Mistake(
                    "floor of 1 dollar",
                    lambda: np.array([
                        np.log(np.maximum(x, 1.0)),
                        np.arcsinh(x),
                        np.log(np.maximum(x + g.shift, 1.0)),
                    ]),
                    "The first row has the chapter's default floor. The exercise has another one.",
                ),
                Mistake(
                    "absolute values",
                    lambda: np.array([
                        np.log(np.maximum(np.abs(x), g.floor)),
                        np.arcsinh(np.abs(x)),
                        np.log(np.abs(x) + g.shift),
                    ]),
                    "A loss is not a gain: you took absolute values.",
                ),
                Mistake(
                    "losses raised to 0 before the shift",
                    lambda: np.array([
                        np.log(np.maximum(x, g.floor)),
                        np.arcsinh(x),
                        np.log(np.maximum(x, 0.0) + g.shift),
                    ]),
                    "In the third row the shift comes first, and then what is raised.",
                ),
                Mistake(
                    "only zero and less are floored",
                    lambda: np.array([
                        np.log(np.where(x <= 0, g.floor, x)),
                        np.arcsinh(x),
                        np.log(np.maximum(x + g.shift, 1.0)),
                    ]),
                    "A floor raises everything below it, not only what has no logarithm.",
                ),
            ),
            "Three NumPy functions: log, arcsinh, log.",
        ),
        Exercise(
            "distance",
            "one number",
            lambda: distance,
            (
                Mistake(
                    "ratios without logarithms",
                    lambda: np.sqrt(np.mean((ratio - 1) ** 2)),
                    "A bound that is half as large and one that is twice as large should be "
                    "equally far off.",
                ),
                Mistake(
                    "mean of the logarithms",
                    lambda: logs.mean(),
                    "In this mean, too large and too small cancel.",
                ),
                Mistake(
                    "mean absolute logarithm",
                    lambda: np.abs(logs).mean(),
                    "This is the mean absolute logarithm. Root mean square is wanted.",
                ),
                Mistake(
                    "sum in the place of the mean",
                    lambda: np.sqrt(np.sum(logs**2)),
                    "A distance that grows with the number of settings cannot be read as a factor.",
                ),
            ),
            "Logarithm, square, mean, root.",
        ),
        Exercise(
            "factor",
            "one factor, above 1",
            lambda: np.exp(distance),
            (
                Mistake(
                    "the distance itself",
                    lambda: distance,
                    "This is still a logarithm.",
                ),
                Mistake(
                    "one plus the distance",
                    lambda: 1 + distance,
                    "That is close to the factor for a small distance only.",
                ),
                Mistake(
                    "largest ratio",
                    lambda: np.maximum(ratio, 1 / ratio).max(),
                    "This is the factor of the worst of the seven settings.",
                ),
            ),
            "Undo the logarithm.",
        ),
        Exercise(
            "fewer-draws",
            "one number, in nats",
            lambda: ppm.lipschitz.bound_by_draws(g.log_lik, [g.fewer])[g.fewer],
            (
                Mistake(
                    "all draws",
                    lambda: f.max(),
                    "This is the bound over all of the draws.",
                ),
                Mistake(
                    "the first draws",
                    lambda: f[: g.fewer].max(),
                    "This is one choice of so many draws. What is to be expected, over all of "
                    "them?",
                ),
                Mistake(
                    "mean over draws",
                    lambda: f.mean(),
                    "This is what a single draw gives on average.",
                ),
                Mistake(
                    "a share of the bound",
                    lambda: f.max() * g.fewer / f.size,
                    "A maximum is not proportional to the number of draws.",
                ),
            ),
            "In how many of all choices is the r-th smallest value the largest?",
        ),
        Exercise(
            "floored-unit",
            "one number, in nats",
            lambda: floored,
            (
                Mistake(
                    "constant left out",
                    lambda: ((0.0 - g.line) / g.spread) ** 2 / 2,
                    "The square is right. A normal density has a factor in front, too.",
                ),
                Mistake(
                    "floor not transformed",
                    lambda: -stats.norm.logpdf(1.0, g.line, g.spread),
                    "The model is about the logarithm of income. What is it at one dollar?",
                ),
                Mistake(
                    "variance for standard deviation",
                    lambda: -stats.norm.logpdf(0.0, g.line, g.spread**2),
                    "The spread that is given is a standard deviation, not a variance.",
                ),
                Mistake(
                    "with its sign",
                    lambda: -floored,
                    "A bound is an absolute value.",
                ),
            ),
            "A normal log-density, far from its mean.",
        ),
        Exercise(
            "change-of-scale",
            "two numbers, in nats: |log p| for the logarithm of income, and for income in dollars",
            lambda: np.abs([on_logs, on_logs - np.log(g.income)]),
            (
                Mistake(
                    "the same density",
                    lambda: np.abs([on_logs, on_logs]),
                    "A density is a probability per unit, and the unit changes from one log "
                    "dollar to one dollar.",
                ),
                Mistake(
                    "derivative on the wrong side",
                    lambda: np.abs([on_logs, on_logs + np.log(g.income)]),
                    "Near this income, is a dollar more or less than a unit of the logarithm?",
                ),
                Mistake(
                    "normal in dollars",
                    lambda: np.abs([
                        on_logs, stats.norm.logpdf(g.income, np.exp(g.line), np.exp(g.spread))
                    ]),
                    "If the logarithm is normal, income itself is not.",
                ),
                Mistake(
                    "with their signs",
                    lambda: [on_logs, on_logs - np.log(g.income)],
                    "A bound is an absolute value.",
                ),
            ),
            "p(income) = p(log income) · |d log income / d income|.",
        ),
        Exercise(
            "used-components",
            "one number of components",
            lambda: np.exp(entropy),
            (
                Mistake(
                    "all that were set",
                    lambda: float(pi.size),
                    "This is the K that was set. How many carry weight?",
                ),
                Mistake(
                    "entropy",
                    lambda: entropy,
                    "This is the entropy. Equal weights of 1/K have the entropy log K: which "
                    "number of components belongs to it?",
                ),
                Mistake(
                    "components that hold a unit",
                    lambda: float(np.sum(pi * g.units >= 1)),
                    "This counts a component with one unit like one with thousands.",
                ),
                Mistake(
                    "logarithm to base 2",
                    lambda: 2**entropy,
                    "Base of logarithm and base of power must agree.",
                ),
            ),
            "The exponential of the entropy of the mixture's weights.",
        ),
        Exercise(
            "fall",
            "one factor, for each of the steps",
            lambda: fall ** (1 / 6),
            (
                Mistake(
                    "the whole way",
                    lambda: fall,
                    "This is the factor from the first to the last value. How many steps are "
                    "between them?",
                ),
                Mistake(
                    "seven steps",
                    lambda: fall ** (1 / 7),
                    "Seven values have how many steps between them?",
                ),
                Mistake(
                    "arithmetic mean of the ratios",
                    lambda: np.mean(g.published[:-1] / g.published[1:]),
                    "Factors multiply: their average is a geometric one.",
                ),
                Mistake(
                    "difference per step",
                    lambda: (g.published[0] - g.published[-1]) / 6,
                    "This is a difference in nats per step. A factor is wanted.",
                ),
            ),
            "The product of the six factors is the ratio of the ends.",
        ),
    )
