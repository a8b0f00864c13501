"""Exercises of the chapter on what ε promises: ε in words, and other people's ε."""

from types import SimpleNamespace

import numpy as np

import ppm
from checks import exercise


def given():
    """Settings of an agency, and what others have published about theirs."""
    return SimpleNamespace(
        budget=2.0,
        bound=0.25,
        prior=0.001,
        false_alarms=0.05,
        epsilon=1.5,
        larger=3.1,
        # ε of whoever answered: of the whole census, or of one day
        census=17.14,
        emoji_a_day=4.0,
        searches_a_day=1.68,
        days=30,
        strict_releases=5,
        width=0.5,
        belief_before=0.01,
        belief_limit=0.05,
    )


@exercise("one probability")
def belief(g):
    odds = g.prior / (1 - g.prior)
    return (
        ppm.pdp.belief_limits(g.prior, g.budget)[1],
        {
            "You multiplied the probability. The limit is about the odds.": g.prior
            * np.exp(g.budget),
            "These are odds. Which probability belongs to them?": odds
            * np.exp(g.budget),
            "You began with the probability. The odds before are a little more than that.": 1
            / (1 + np.exp(-g.budget) / g.prior),
            "This is the limit between two values of the record. Here it is one value against none.": ppm.pdp.belief_limits(
                g.prior, 2 * g.budget
            )[1],
            "This is how far the belief can fall. How far can it rise?": ppm.pdp.belief_limits(
                g.prior, g.budget
            )[0],
        },
        "Odds, times a factor, back to a probability.",
    )


@exercise("one ε, in nats")
def what_epsilon_allows(g):
    before, after = (p / (1 - p) for p in (g.belief_before, g.belief_limit))
    return (
        np.log(after / before),
        {
            "ε limits a ratio of odds, not of probabilities.": np.log(
                g.belief_limit / g.belief_before
            ),
            "Beliefs move by a factor, not by a difference.": g.belief_limit
            - g.belief_before,
        },
        "The limit on odds, solved for ε.",
    )


@exercise("two probabilities, one for each ε")
def detection(g):
    both, a = np.array([g.epsilon, g.larger]), g.false_alarms
    return (
        [ppm.pdp.detection_limit(a, epsilon) for epsilon in both],
        {
            "There are two limits, and the smaller one counts.": 1
            - np.exp(-both) * (1 - a),
            "There are two limits. With the larger ε the other one is the smaller: a probability "
            "is not above 1.": np.exp(both) * a,
            "A limit above 1 says nothing, but the other limit says more than 1 does.": np.minimum(
                np.exp(both) * a, 1
            ),
            "Both limits hold, and you took the larger one.": np.maximum(
                np.exp(both) * a, 1 - np.exp(-both) * (1 - a)
            ),
            "The two rates are tied together by a factor, not by a difference.": a
            + 1
            - np.exp(-both),
            "This is what a coin would detect.": [a, a],
        },
        "The smaller of two expressions in the section on detection.",
    )


@exercise("one whole number of databases")
def budget(g):
    return (
        np.floor(g.budget / ppm.epsilon(g.bound)),
        {
            "A release costs more than that: where is the 2 of the theorem?": g.budget
            / g.bound,
            "This is what one release costs.": ppm.epsilon(g.bound),
            "There is budget left after one.": 1.0,
        },
        ("How much does each release cost?", "ε = m · 2Δ, solved for m."),
    )


@exercise("four numbers, the ε after 30 days: census, emoji, searches, ours")
def deployments(g):
    ours, root = g.strict_releases * g.width, np.sqrt(g.days)
    emoji, searches = g.days * g.emoji_a_day, g.days * g.searches_a_day
    return (
        [g.census, emoji, searches, ours],
        {
            "Two of these are for one day. What do thirty days of taking part cost?": [
                g.census,
                g.emoji_a_day,
                g.searches_a_day,
                ours,
            ],
            "Without a δ costs add up, and no root is taken.": [
                g.census,
                root * g.emoji_a_day,
                root * g.searches_a_day,
                ours,
            ],
            "A census is taken once.": [g.days * g.census, emoji, searches, ours],
            "The last one releases more than one database.": [
                g.census,
                emoji,
                searches,
                g.width,
            ],
            "Does the theorem on censoring have a factor of 2 for the neighbours of this book? It has "
            "one where a value is replaced.": [g.census, emoji, searches, 2 * ours],
        },
        "Multiply where something is repeated.",
    )


@exercise("the letters of the sentences that are wrong", "abcdef")
def read_backwards(g):
    return (
        set("acdf"),
        {
            "There are more.": set("a"),
            "One is missing. Which numbers may be published?": set("acd"),
            "One is missing. What do neighbours have in common, and is it hidden?": set(
                "acf"
            ),
        },
        "The summary of the chapter has a line on each.",
    )
