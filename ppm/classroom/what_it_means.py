"""Exercises of the chapter on what the guarantee means: ε in words, and other people's ε."""

from types import SimpleNamespace

import numpy as np

import ppm
from ppm.classroom.checking import Exercise, Mistake


def given():
    """Settings of an agency, and what others have published about theirs."""
    return SimpleNamespace(
        budget=2.0,
        bound=0.25,
        prior=0.001,
        false_alarms=0.05,
        epsilon=1.5,
        width=0.5,
        releases=40,
        delta=1e-6,
        tau=1e-4,
        # ε of whoever answered: of the whole census, or of one day
        census=17.14,
        emoji_a_day=4.0,
        searches_a_day=1.68,
        days=30,
        strict_releases=5,
        belief_before=0.01,
        belief_limit=0.05,
    )


def exercises(g):
    """The exercises that have a check."""
    odds = g.prior / (1 - g.prior)
    detected = ppm.disclosure.detection_limit(g.false_alarms, g.epsilon)
    rho = g.releases * g.width**2 / 8
    ours = g.strict_releases * g.width
    before, after = (p / (1 - p) for p in (g.belief_before, g.belief_limit))

    def month(emoji, searches, census=g.census, own=ours):
        return [census, emoji, searches, own]

    return (
        Exercise(
            "budget",
            "one whole number of databases",
            lambda: np.floor(g.budget / ppm.epsilon(g.bound)),
            (
                Mistake(
                    "Δ without the factor 2",
                    lambda: g.budget / g.bound,
                    "A release costs more than that: where is the 2 of the theorem?",
                ),
                Mistake(
                    "cost of one release",
                    lambda: ppm.epsilon(g.bound),
                    "This is what one release costs.",
                ),
                Mistake(
                    "one release for the whole budget",
                    lambda: 1.0,
                    "There is budget left after one.",
                ),
            ),
            "ε = m · 2Δ, solved for m.",
        ),
        Exercise(
            "belief",
            "one probability",
            lambda: ppm.disclosure.belief_limits(g.prior, g.budget)[1],
            (
                Mistake(
                    "probability multiplied",
                    lambda: g.prior * np.exp(g.budget),
                    "You multiplied the probability. The limit is about the odds.",
                ),
                Mistake(
                    "odds not turned back",
                    lambda: odds * np.exp(g.budget),
                    "These are odds. Which probability belongs to them?",
                ),
                Mistake(
                    "probability for the odds before",
                    lambda: 1 / (1 + np.exp(-g.budget) / g.prior),
                    "You began with the probability. The odds before are a little more than that.",
                ),
                Mistake(
                    "two values",
                    lambda: ppm.disclosure.belief_limits(g.prior, 2 * g.budget)[1],
                    "This is the limit between two values of the record. Here it is one value "
                    "against none.",
                ),
                Mistake(
                    "the other direction",
                    lambda: ppm.disclosure.belief_limits(g.prior, g.budget)[0],
                    "This is how far the belief can fall. How far can it rise?",
                ),
            ),
            "Odds, times a factor, back to a probability.",
        ),
        Exercise(
            "detection",
            "one probability",
            lambda: detected,
            (
                Mistake(
                    "upper branch only",
                    lambda: 1 - np.exp(-g.epsilon) * (1 - g.false_alarms),
                    "There are two limits, and the smaller one counts.",
                ),
                Mistake(
                    "additive",
                    lambda: g.false_alarms + 1 - np.exp(-g.epsilon),
                    "The two rates are tied together by a factor, not by a difference.",
                ),
                Mistake(
                    "missed in the place of detected",
                    lambda: 1 - detected,
                    "This is the rate at which the value is missed.",
                ),
                Mistake(
                    "coin",
                    lambda: g.false_alarms,
                    "This is what a coin would detect.",
                ),
            ),
            "The smaller of two expressions in the section on detection.",
        ),
        Exercise(
            "what-epsilon-allows",
            "one ε, in nats",
            lambda: np.log(after / before),
            (
                Mistake(
                    "ratio of probabilities",
                    lambda: np.log(g.belief_limit / g.belief_before),
                    "ε limits a ratio of odds, not of probabilities.",
                ),
                Mistake(
                    "without the logarithm",
                    lambda: after / before,
                    "This is the factor. ε is its logarithm.",
                ),
                Mistake(
                    "difference",
                    lambda: g.belief_limit - g.belief_before,
                    "Beliefs move by a factor, not by a difference.",
                ),
                Mistake(
                    "upside down",
                    lambda: np.log(before / after),
                    "An ε is not negative.",
                ),
            ),
            "The formula for belief, solved for ε.",
        ),
        Exercise(
            "bounded-range",
            "one ε, in nats",
            lambda: ppm.pdp.bounded_range_epsilon(g.width, g.releases, delta=g.delta),
            (
                Mistake(
                    "added up",
                    lambda: g.releases * g.width,
                    "This is the cost without an exception. What does δ buy?",
                ),
                Mistake(
                    "width not squared",
                    lambda: (r := g.releases * g.width / 8)
                    + 2 * np.sqrt(r * np.log(1 / g.delta)),
                    "How does ρ depend on the width?",
                ),
                Mistake(
                    "ρ of a loss without bounded range",
                    lambda: (r := g.releases * g.width**2 / 2)
                    + 2 * np.sqrt(r * np.log(1 / g.delta)),
                    "This is the formula for a loss of which only the absolute value is limited. "
                    "Bounded range is more: look at the divisor.",
                ),
                Mistake(
                    "logarithm to base 10",
                    lambda: rho + 2 * np.sqrt(rho * np.log10(1 / g.delta)),
                    "Nats are natural logarithms.",
                ),
                Mistake(
                    "first term left out",
                    lambda: 2 * np.sqrt(rho * np.log(1 / g.delta)),
                    "One term of the sum is missing.",
                ),
            ),
            "See the corollary on bounded range in the chapter on theory.",
        ),
        Exercise(
            "chain",
            "one δ",
            lambda: (1 + np.exp(g.epsilon)) * g.tau,
            (
                Mistake(
                    "distance itself",
                    lambda: g.tau,
                    "The other database has draws that are not exact, too.",
                ),
                Mistake(
                    "twice the distance",
                    lambda: 2 * g.tau,
                    "The two distances do not count alike: one of them stands behind a factor.",
                ),
                Mistake(
                    "one side only",
                    lambda: np.exp(g.epsilon) * g.tau,
                    "This is the distance of one of the two databases.",
                ),
                Mistake(
                    "ε not in the exponent",
                    lambda: (1 + g.epsilon) * g.tau,
                    "The factor of ε-differential privacy is not ε itself.",
                ),
            ),
            "See the proposition on draws that are not exact.",
        ),
        Exercise(
            "deployments",
            "four numbers, the ε after 30 days: census, emoji, searches, ours",
            lambda: month(g.days * g.emoji_a_day, g.days * g.searches_a_day),
            (
                Mistake(
                    "one day",
                    lambda: month(g.emoji_a_day, g.searches_a_day),
                    "Two of these are for one day. What do thirty days of taking part cost?",
                ),
                Mistake(
                    "root of the number of days",
                    lambda: month(
                        np.sqrt(g.days) * g.emoji_a_day, np.sqrt(g.days) * g.searches_a_day
                    ),
                    "Without a δ costs add up, and no root is taken.",
                ),
                Mistake(
                    "census every day",
                    lambda: month(
                        g.days * g.emoji_a_day, g.days * g.searches_a_day, g.days * g.census
                    ),
                    "A census is taken once.",
                ),
                Mistake(
                    "one release of ours",
                    lambda: month(g.days * g.emoji_a_day, g.days * g.searches_a_day, own=g.width),
                    "The last one releases more than one database.",
                ),
                Mistake(
                    "factor 2 for a width",
                    lambda: month(
                        g.days * g.emoji_a_day, g.days * g.searches_a_day, own=2 * ours
                    ),
                    "Does the theorem on censoring have a factor of 2 for the neighbours of this "
                    "book? It has one where a value is replaced.",
                ),
            ),
            "Multiply where something is repeated.",
        ),
        Exercise(
            "read-backwards",
            "the letters of the sentences that are wrong",
            lambda: set("acdf"),
            (
                Mistake(
                    "the first sentence only",
                    lambda: set("a"),
                    "There are more.",
                ),
                Mistake(
                    "a local ε may be printed",
                    lambda: set("acd"),
                    "One is missing. Which numbers may leave the building?",
                ),
                Mistake(
                    "a large ε taken for a leak",
                    lambda: set("acf"),
                    "One is missing. Is an ε a limit or a finding?",
                ),
                Mistake(
                    "right and wrong exchanged",
                    lambda: set("be"),
                    "Wanted are the sentences that are wrong.",
                ),
            ),
            "The summary of the chapter has a line on each.",
            options="abcdef",
        ),
    )
