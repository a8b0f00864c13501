"""Exercises of the chapter that takes one household away: losses, a search, and repairs."""

from types import SimpleNamespace

import numpy as np
from scipy import special, stats

import ppm
from checks import exercise


def given():
    """Eight households once more, what is public, and a table that breaks 2Δ."""
    counts = np.array([3, 4, 4, 5, 5, 6, 7, 18])
    return SimpleNamespace(
        counts=counts,
        others=counts[:-1],
        nine=np.append(counts, 18),
        interval=(2.0, 12.0),
        counts_of_the_example=np.array([3, 4, 4, 5, 5, 12, 7, 18]),
        shape=1.0,
        rate=0.1,
        mu=np.linspace(3.5, 8.0, 451),
        public=(4.0, 12.0),
        M=4.0,
        income=50_000.0,
        spread=30_000.0,
    )


def _log_ratio(g, shape, rate, power=-1):
    """Log ratio of the posteriors with and without household H, on the grid.

    SciPy's scale is the rate to the power of minus one.
    """

    def density(counts):
        return stats.gamma.logpdf(
            g.mu, shape + counts.sum(), scale=(rate + counts.size) ** power
        )

    return density(g.counts) - density(g.others)


def _changes(records, place, interval):
    """How the other weights change when a record leaves."""

    def weights(counts):
        return ppm.record_weights(ppm.GammaPoisson(counts).bounds_within(*interval))

    return weights(np.delete(records, place)) - np.delete(weights(records), place)


@exercise("two numbers: [of the eight households, of the nine]")
def twin(g):
    changes = _changes(g.counts, -1, g.interval)
    largest = np.abs(changes).max()
    return (
        [largest, 0.0],
        {
            "Which household has the largest bound of the nine after H has left?": [
                largest,
                largest,
            ],
            "A weight can fall as well as rise, and both are changes.": [
                changes.max(),
                0.0,
            ],
            "Wanted is the largest change, not all of them together.": [
                np.abs(changes).sum(),
                0.0,
            ],
            "Wanted is the largest change, not the average.": [
                np.abs(changes).mean(),
                0.0,
            ],
        },
        "Bounds over the interval, min–max weights, with H and without it.",
    )


@exercise("one number, in nats")
def exact_loss(g):
    term = stats.poisson.logpmf(g.counts[-1], g.mu)
    losses = _log_ratio(g, g.shape, g.rate)
    return (
        np.abs(losses).max(),
        {
            "The ratio can be small as well as large, and both tell the two apart.": losses.max(),
            "This is the change of the log-likelihood. The two posteriors have different normalisers, "
            "too.": np.abs(term).max(),
            "This is the width of the interval in which the loss moves. It bounds the loss, and is "
            "not the loss.": np.ptp(losses),
            "An average is no guarantee: the definition asks about every set.": np.abs(
                losses
            ).mean(),
            "This is the μ at which the loss is the largest. Wanted is the loss there.": g.mu[
                np.abs(losses).argmax()
            ],
            "You added up over the grid. Wanted is the largest loss on it.": np.abs(
                losses
            ).sum(),
            "This is the smallest loss on the grid.": np.abs(losses).min(),
            "This is a place on the grid. Wanted is the loss there.": np.abs(
                losses
            ).argmax(),
            "SciPy speaks of the scale, the book of the rate.": np.abs(
                _log_ratio(g, g.shape, g.rate, power=1)
            ).max(),
            "Both posteriors have a prior.": np.abs(_log_ratio(g, 0.0, 0.0)).max(),
        },
        "Two Gamma densities, on the same grid.",
    )


def _away(counts, M, away):
    """The loss when a household leaves, 2Δ, and the weights of the others before and after."""

    def fitted(counts):
        log_p = stats.poisson.logpmf(counts, np.linspace(2, 12, 101)[:, None])
        weights = ppm.record_weights(ppm.record_bounds(log_p), truncate_at=M)
        delta = ppm.local_bound(log_p, weights)
        return special.log_softmax(log_p @ weights), delta, weights

    with_it, delta, before = fitted(counts)
    without, _, after = fitted(np.delete(counts, away))
    return np.abs(with_it - without).max(), 2 * delta, np.delete(before, away), after


def _not_broken(g, answer):
    """Why the leaving of a household costs no more than 2Δ; empty text if it does."""
    counts, M, away = answer[:8], answer[8], answer[9]
    if not (np.isin(counts, range(26)).all() and M > 0 and np.isin(away, range(8))):
        return (
            "Counts are whole numbers from 0 to 25, M is above 0, and a household has a place from "
            "0 to 7."
        )
    counts, away = counts.astype(int), int(away)
    of_the_example = (
        sorted(counts) == sorted(g.counts_of_the_example) and counts[away] == 18
    )
    if of_the_example and M == 5:
        return "This is the example of the task. Find another one."
    loss, two_delta, before, after = _away(counts, M, away)
    if loss > two_delta:
        return ""
    if np.allclose(before, after, rtol=0, atol=1e-9):
        return (
            "When this household leaves, no other weight moves: they are frozen, and then no loss is "
            "above 2Δ. Whose bound sets the scale?"
        )
    returns = (before == 0) & (after > 0)
    return (
        f"The loss is {loss:.2f} nats, and 2Δ is {two_delta:.2f}. "
        f"Of the others {returns.sum()} get a weight back: can M do more?"
    )


@exercise(
    "ten numbers: eight counts, M, and the place of the household that leaves",
    judge=_not_broken,
)
def break_it(g):
    first = [3, 4, 4, 5, 5, 6, 7, 18]
    return (
        [3, 4, 4, 5, 10, 6, 7, 18, 4.5, 7],
        {
            _not_broken(g, np.array(wrong)): wrong
            for wrong in (
                [*g.counts_of_the_example, 5, 7],
                # a twin of H stays, and keeps the scale
                [3, 4, 4, 5, 5, 18, 7, 18, 20, 7],
                [*first, 20, 7],
                [*first, 5, 8],
            )
        },
        "Which counts does the threshold take out while H is in, and no longer when it has left?",
    )


@exercise("two numbers, in nats: [dollars, thousands of dollars]")
def unit(g):
    in_dollars = -stats.norm.logpdf(g.income, g.income, g.spread)
    return (
        [in_dollars, in_dollars - np.log(1000)],
        {
            "In the second case the standard deviation is in thousands of dollars, too.": [
                in_dollars,
                in_dollars,
            ],
            "A density is divided or multiplied by a thousand. What does its logarithm do?": [
                in_dollars,
                in_dollars / 1000,
            ],
            "The spread is a standard deviation, not a variance.": [
                in_dollars + np.log(g.spread),
                in_dollars - np.log(1000) + np.log(g.spread / 1000),
            ],
            "Is a thousand dollars a wider or a narrower unit? A density is a probability per unit.": [
                in_dollars,
                in_dollars + np.log(1000),
            ],
        },
        (
            "How high is a normal density at its own mean?",
            "At its own mean a normal density is 1 / (σ √(2π)).",
        ),
    )


@exercise("one oscillation for each of the eight households")
def public_oscillations(g):
    model = ppm.GammaPoisson(g.counts, shape=g.shape, rate=g.rate)
    bounds = model.bounds_within(*g.public)
    ends = stats.poisson.logpmf(g.counts[:, None], np.array(g.public))
    return (
        model.oscillations_within(*g.public),
        {
            "You compared the two ends. Where, between them, is a count the most likely?": np.abs(
                ends[:, 0] - ends[:, 1]
            ),
            "These are bounds: the largest distance from 0. An oscillation is the distance of the "
            "largest from the smallest value.": bounds,
            "Twice the bound is an upper limit to the oscillation, and not a sharp one.": 2
            * bounds,
            "This is how close log p comes to 0. How far away does it get?": -stats.poisson.logpmf(
                g.counts, np.clip(g.counts, *g.public)
            ),
        },
        "log p is concave in μ, with its top at μ = x.",
    )


@exercise("one weight for each of the eight households")
def capped(g):
    model = ppm.GammaPoisson(g.counts, shape=g.shape, rate=g.rate)
    bounds = model.bounds_within(*g.public)
    ends = stats.poisson.logpmf(g.counts[:, None], np.array(g.public))
    return (
        np.minimum(1, g.M / bounds),
        {
            "Some of these are no weights: they count a household more than once.": g.M
            / bounds,
            "The largest log-probability is no largest absolute value: your bounds are below 0.": np.minimum(
                1, g.M / ends.max(axis=1)
            ),
            "A weight is not below 0. Neither is a bound.": -g.M / bounds,
            "You added up both ends. A bound is the larger of the two.": np.minimum(
                1, g.M / np.abs(ends).sum(axis=1)
            ),
            "You averaged both ends. A bound is the larger of the two.": np.minimum(
                1, g.M / np.abs(ends).mean(axis=1)
            ),
            "You took the end that suits the household best. A bound belongs to the other one.": np.minimum(
                1, g.M / np.abs(ends).min(axis=1)
            ),
            "These weights keep the *oscillation* at M or below.": np.minimum(
                1, g.M / model.oscillations_within(*g.public)
            ),
            "The household with the largest bound has the largest of your weights.": np.minimum(
                1, bounds / g.M
            ),
            "This keeps a household or drops it. A weight has to take away only as much as it must.": np.where(
                bounds <= g.M, 1.0, 0.0
            ),
            "These depend on the smallest and the largest bound in the table. Which weights depend on "
            "the household's own bound alone?": ppm.record_weights(bounds),
        },
        "How large may α be, so that α · b is at most M?",
    )


@exercise("the letters of the proposals whose number may be printed", "abcdef")
def repairs(g):
    return (
        set("be"),
        {
            "One is missing. Limits of a record's term were a repair, too.": set("b"),
            "One is missing. A set of parameters can be fixed in public.": set("e"),
            "One too many. Where did the interval come from?": set("bce"),
            "One too many. How large is the loss outside T?": set("bde"),
            "One too many. Bounds over an interval are not random, but what do the weights look at?": set(
                "bef"
            ),
            "One too many. A factor makes a number larger. Does it change whose number it is?": set(
                "abe"
            ),
            "Wanted are those whose number may be printed.": set("acdf"),
        },
        "What does each weight look at, where does T come from, and what does the prior allow?",
    )
