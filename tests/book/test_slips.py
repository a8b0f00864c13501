"""Slips in exercises: code with a slip gets a hint that names it, and gives nothing away."""

import re

import checks
import numpy as np
import pytest
from conftest import ROOT
from scipy import stats

from ppm_book.tools.exercises import chapters

EVERY = {name: checks.Chapter(name) for name in [*chapters(ROOT), "assessment"]}
# code with a slip, as somebody writes it into the place of the dots, and what the check says of it
SLIPS = {
    "eight_households": """
reconstruction | groups @ totals / groups.sum(axis=1) | The average of
reconstruction | np.rint([totals[row == 1].mean() for row in groups]) | The average
reconstruction | [by_head[row == 1].mean() for row in groups] | A total divided by
reconstruction | np.rint([totals[r == 1].mean() - totals[r == 0].mean() for r in groups]) | The totals with
reconstruction | groups @ totals | You added up the totals
reconstruction | np.linalg.lstsq(groups.T, totals)[0].astype(int) | The nearest whole
record-bounds | np.abs(given.log_lik).sum(0) | Draws are compared
record-bounds | np.argmax(np.abs(given.log_lik), axis=0) | These are places of draws
record-bounds | np.min(np.abs(given.log_lik), axis=0) | This is the draw at which
record-bounds | given.log_lik.min(0) | Look at the sign
weights | line(given.log_lik.max(axis=0)) | The line is right, and the bounds are not: the largest
weights | line(given.log_lik.min(axis=0)) | The riskiest household has
weights | line(np.abs(given.log_lik).mean(axis=0)) | The line is right, and the bounds are not: you took
whose-bounds-rise | "ABDEFGH" | The largest log-likelihoods
local-epsilon | 2 * given.releases * terms.max() | Of negative numbers
local-epsilon | 2 * given.releases * np.abs(terms.sum(axis=1)).max() | You added up
local-epsilon | 2 * given.releases * np.mean(np.abs(terms)) | This is an average
weights | line(np.abs(given.log_lik).argmax(axis=0)) | The line is right, and the bounds are not: you took p
local-epsilon | 2 * given.releases * np.abs(terms).sum() | You added up the whole
""",
    "what_it_means": """
detection | [max(np.exp(e) * 0.05, 1 - np.exp(-e) * 0.95) for e in (1.5, 3.1)] | Both limits hold
what-epsilon-allows | np.log2(0.05 / 0.95 / (0.01 / 0.99)) | Logarithms in this book are natural ones. Yours
what-epsilon-allows | np.log10(0.05 / 0.95 / (0.01 / 0.99)) | Logarithms in this book are natural ones.
""",
    "theory": """
three-candidates | share(np.exp(given.log_lik) @ given.weights) | You added up
three-candidates | share(np.exp(np.mean(given.log_lik * given.weights, axis=1))) | You averaged
three-candidates | share(np.exp(np.average(given.log_lik, axis=1, weights=given.weights))) | You divided
three-candidates | unscaled / unscaled.max() | Probabilities add
""",
    "poisson_contraction": """
posterior | [20 + np.mean(given.weights * given.counts), 0.2 + given.weights.mean()] | You averaged
extreme-draws | stats.poisson(given.mu_draws).logpmf(given.count).max() | The largest log-probability
removed | np.mean(np.where(given.weights * given.bounds > given.M, 0, given.weights) == 0) | This is a share
safety | np.sum(given.study_bounds > 1.02 * given.study_bounds[:, None]) | This is a number of pairs
safety | np.sum(given.study_bounds > 1.02 * given.study_bounds[:, None], axis=1).mean() | This is how many
posterior | [20 + given.weights @ given.counts, 0.2 + np.mean(given.weights)] | In the second number
extreme-draws | np.argmax(np.abs(stats.poisson.logpmf(130, given.mu_draws))) | This is a place
extreme-draws | sum(-log_p(f(given.mu_draws)) for f in (min, max)) | Of the two extreme draws one
""",
    "ce_application": """
gini | np.mean(given.income[:, None] - given.income) / 2 / given.income.mean() | Without absolute
gini | np.abs(given.income[:, None] - given.income).sum() / 2 / given.income.mean() | This is a sum
gini | 100 * np.mean(np.abs(given.income[:, None] - given.income)) / 2 / given.income.mean() | A share lies
combining | np.sqrt(np.sum(given.variances) + np.var(given.estimates, ddof=1) / 20) | The average of the
combining | np.sqrt(np.mean(given.variances) + np.std(given.estimates, ddof=1) / 20) | What is b
combining | np.mean(given.variances) + np.var(given.estimates, ddof=1) / 20 | This is the square
several-releases | np.ceil(((stats.norm.ppf(0.95) + stats.norm.ppf(0.8)) / (2.5 / 16)) ** 2) | The spread is
neighbours | np.sum(np.abs(six[:, None] - six) > 0.2 * six[:, None], axis=1) | These are numbers of
match-risk | sum(own / np.maximum(below.sum(axis=1), 1)) | A match may lie
several-releases | np.ceil((sum(stats.norm.ppf([0.05, 0.8])) / 0.625) ** 2) | The quantile of a small
neighbours | np.sum(six[:, None] - six > 0.2 * six[:, None], axis=1) / 5 | Units with a larger
""",
    "what_is_weaker": """
exact-loss | given.mu[np.argmax(np.abs(loss))] | This is the μ at which
exact-loss | np.argmax(np.abs(loss)) | This is a place
unit | [-stats.norm(5e4, 3e4**2).logpdf(5e4), -stats.norm(50, 30**2).logpdf(50)] | The spread is
capped | np.minimum(1, 4 / ends.max(axis=1)) | The largest
capped | np.minimum(1, 4 / ends.min(axis=1)) | A weight is not
exact-loss | np.sum(np.abs(loss)) | You added up over
capped | np.minimum(1, 4 / -ends.sum(axis=1)) | You added up both
capped | np.minimum(1, 4 / -ends.mean(axis=1)) | You averaged both
""",
    "strict_release": """
which-epsilon | [0, 2, 4] | These are places in the list. W
which-epsilon | [1, 3, 5] | These are places in the list, counted from 1
cut-off | np.sum(~((terms >= -1.25) & (terms <= -0.75))) | This is a number
cut-off | (terms > -0.75).mean() | There are two limits, and the terms below
laplace | [1 / 0.2, 2 / 0.2**2] | The second number is a variance
strict-epsilon | [8 * (-0.75 + -1.25), 16 * (-0.75 + -1.25)] | The width is a distance
drowned | (given.counts < 2 / 0.2**2).mean(axis=1) | You compared with the variance
""",
    "strict_more": """
bounded-range | 40 / 32 + 2 * np.sqrt(40 / 32 * np.log2(1e6)) | Nats are natural logarithms, and bits
""",
    "using_releases": """
one-release | 38.2 + np.array([-1, 1]) * stats.norm.ppf(0.975) * np.sqrt(6) * 0.09 | A standard error
from-tables | around(stats.t(4)) | Only b comes from few releases
from-tables | around(stats.norm()) | The variance is right. But b comes
negative-variance | mix(given.variances.sum(), given.averages.var(ddof=1)) | You added up
negative-variance | mix(given.variances.mean(), given.averages.std(ddof=1)) | What is b
read-the-weight | 1 / (given.many_averages.var(ddof=1) / given.many_variances.sum() - 1) | You added up
""",
    "your_own_model": """
what-to-diagnose | np.abs(weighted).mean(-1) | This is an average
what-to-diagnose | np.abs(weighted).argmax(-1) | These are places
what-to-diagnose | -weighted.sum(-1) | You added up
cents | np.max(given.spending_log_lik - np.log(1e5)) | The largest log-likelihood
cents | np.abs(given.spending_log_lik - 5).max() | The log-likelihoods are natural
cents | np.mean(np.abs(given.spending_log_lik - np.log(1e5))) | This is an average
cents | np.max(np.abs(given.spending_log_lik - np.log2(1e5))) | The log-likelihoods are natural logarithms, a
""",
    "application_settings": """
used-components | np.exp(stats.entropy(given.weights_of_components, base=2)) | This entropy has
used-components | 1 / np.sum(given.weights_of_components**2) | One over
distance | [np.std(ratios), np.exp(np.std(ratios))] | A standard deviation
distance | [right / np.log(10), np.exp(right)] | 1 of 2 entries are right. Log
change-of-scale | -of_ten + np.array([0, np.log10(6e4)]) | The model is about the natural
distance | [right**2, np.exp(right**2)] | The mean of the squares
distance | [right / np.log(2), np.exp(right / np.log(2))] | The logarithms have the base 2
""",
    "assessment": """
weigh-and-bound | 2 * given.releases * (tens * given.weighted_log_lik).max() | The absolute
share-and-interval | [above / 250, *stats.binomtest(above, 250).proportion_ci()] | This compares
""",
}


def names_of(chapter, given):
    """What the code with a slip uses besides the exercise's data."""
    names = {"given": given, "np": np, "stats": stats}
    if chapter == "eight_households":

        def line(bounds):
            risk = (bounds - bounds.min()) / (bounds.max() - bounds.min())
            return np.clip(given.scale * (1 - risk) + given.shift, 0, 1)

        names |= {"line": line, "groups": given.subsets.T, "totals": given.noisy_totals}
        # one group may be empty
        names["by_head"] = given.noisy_totals / given.subsets.sum(axis=1).clip(1)
        names["terms"] = given.weights * given.weighted_log_lik
    elif chapter == "theory":
        names["unscaled"] = np.exp(given.log_lik @ given.weights)
        names["share"] = lambda values: values / values.sum()
    elif chapter == "poisson_contraction":
        names["log_p"] = lambda mu: stats.poisson.logpmf(given.count, mu)
    elif chapter == "ce_application":
        names["six"] = given.incomes_of_a_pattern
        away = given.released_incomes - given.true_incomes[:, None]
        below = away <= 0.2 * given.true_incomes[:, None]
        names |= {"below": below, "own": below.diagonal()}
    elif chapter == "what_is_weaker":
        with_h, without = (
            stats.gamma(1 + counts.sum(), scale=1 / (0.1 + counts.size))
            for counts in (given.counts, given.others)
        )
        ends = stats.poisson.logpmf(given.counts[:, None], [4, 12])
        names["ends"] = ends
        names["loss"] = with_h.logpdf(given.mu) - without.logpdf(given.mu)
    elif chapter == "strict_release":
        names["terms"] = given.weight * given.log_lik
    elif chapter == "using_releases":
        q = given.released.mean(axis=1)
        v = given.released.var(axis=1, ddof=1).mean() / given.released.shape[1]
        half = np.sqrt(v + q.var(ddof=1) / q.size)
        names["around"] = lambda law: q.mean() + np.array(law.interval(0.95)) * half
        names["mix"] = lambda v, b: [v + b / 5, (1 + 1 / 5) * b - v]
    elif chapter == "your_own_model":
        names["weighted"] = given.chains_weights * given.chains_log_lik
    elif chapter == "application_settings":
        ratios = np.log(given.ours) - np.log(given.published)
        names["of_ten"] = stats.norm.logpdf(np.log10(given.income), 10.9, 0.9)
        names |= {"ratios": ratios, "right": np.sqrt(np.mean(ratios**2))}
    elif chapter == "assessment":
        bounds = np.abs(given.log_lik).max(axis=0)
        names["above"] = int(np.sum(given.bounds > given.large_epsilon))
        names["tens"] = given.scale * (bounds.max() - bounds) / np.ptp(bounds)
    return names


@pytest.mark.parametrize(
    ("chapter", "name", "code", "hint"),
    [
        (chapter, *line.split(" | "))
        for chapter, lines in SLIPS.items()
        for line in lines.strip().splitlines()
    ],
)
def test_code_with_a_slip_gets_the_hint_that_names_it(chapter, name, code, hint):
    check = EVERY[chapter]
    answer = eval(code, names_of(chapter, check.given))
    assert check(name, answer).startswith(f"✘ {name}: {hint}")


@pytest.mark.parametrize("chapter", EVERY)
def test_no_hint_has_a_right_number_in_it(chapter):
    check = EVERY[chapter]
    for work in check.works.values():
        right, slips, look = work(check.given)
        if work.options or work.judge:
            continue
        # the first of two pointers; the second one is a formula
        look = look if isinstance(look, str) else look[0]
        told = {
            float(x) for x in re.findall(r"\d+(?:\.\d+)?", " ".join([*slips, look]))
        }
        # 0, 1 and 2 are words of any sentence
        assert not (told - {0, 1, 2}) & {*np.ravel(np.asarray(right, float)).tolist()}
