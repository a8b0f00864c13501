"""Slips in exercises: code with a slip gets a hint that names it, and gives nothing away."""

import re

import numpy as np
import pytest
from scipy import special, stats
from test_exercises import EVERY

# code with a slip, as somebody writes it into the place of the dots, and what the check says of it
SLIPS = {
    "eight_households": """
reconstruction | groups @ totals / groups.sum(axis=1) | The average of
reconstruction | [by_head[row == 1].mean() for row in groups] | A total divided by
reconstruction | groups @ totals | You added up the totals
reconstruction | np.linalg.lstsq(groups.T, totals)[0].astype(int) | The nearest whole
reconstruction | np.linalg.lstsq(groups.T, totals)[0] | Counts are whole numbers
reconstruction | np.linalg.lstsq(groups.T[:8], totals[:8])[0] | Eight equations are enough
reconstruction | np.rint(np.linalg.lstsq(groups.T[:8], totals[:8])[0]) | With as many equations
reconstruction | [totals[row == 1].mean() for row in groups] | The average of the totals that contain a household contains the others too. S
reconstruction | np.rint([totals[row == 1].mean() for row in groups]) | The average of the totals that contain a household contains the others too, r
reconstruction | np.rint([by_head[row == 1].mean() for row in groups]) | A total divided by the number of its households is their average, r
reconstruction | [totals[r == 1].mean() - totals[r == 0].mean() for r in groups] | The totals with a household and those without it differ by the other households as well. S
reconstruction | np.rint([totals[r == 1].mean() - totals[r == 0].mean() for r in groups]) | The totals with a household and those without it differ by the other households as well, r
record-bounds | np.abs(given.log_lik).sum(0) | Draws are compared
record-bounds | np.argmax(np.abs(given.log_lik), axis=0) | These are places of draws
record-bounds | np.min(np.abs(given.log_lik), axis=0) | This is the draw at which
record-bounds | given.log_lik.min(0) | Look at the sign
record-bounds | np.max(given.log_lik, axis=0) | The largest log-likelihood belongs
record-bounds | np.abs(given.log_lik).max(axis=1) | This is one number for each draw
record-bounds | np.mean(-given.log_lik, axis=0) | This is an average
weights | line(given.log_lik.max(axis=0)) | The line is right, and the bounds are not: the largest
weights | line(given.log_lik.min(axis=0)) | The riskiest household has
weights | line(np.abs(given.log_lik).mean(axis=0)) | The line is right, and the bounds are not: you took
weights | line(np.abs(given.log_lik).argmax(axis=0)) | The line is right, and the bounds are not: you took p
weights | np.clip(0.9 * (1 - risk) + 0.1, 0, 1) | The shift comes with its sign
weights | 0.9 * (1 - risk) - 0.1 | At least one is no weight
weights | np.clip(0.9 * (1 - bounds / max(bounds)) - 0.1, 0, 1) | Scaling goes from
weights | 1 - risk | These are the weights for c = 1
weights | np.clip(0.9 * (1 - risk - 0.1), 0, 1) | Does the scale multiply
weights | np.clip(0.9 * risk - 0.1, 0, 1) | The riskiest household
weights | line(np.abs(given.log_lik).min(axis=0)) | The line is right, and the bounds are not: you took the draws
whose-bounds-rise | "ABDEFGH" | The largest log-likelihoods
whose-bounds-rise | "FG" | In the chapter the unusual count
whose-bounds-rise | "a" | What is the weight of household A
whose-bounds-rise | letters(after < before) | These are the households whose bound fell
whose-bounds-rise | letters(np.abs(given.street_weighted_log_lik).max(axis=0) > before) | These bounds are compared before
local-epsilon | 2 * given.releases * terms.max() | Of negative numbers
local-epsilon | 2 * given.releases * np.abs(terms.sum(axis=1)).max() | You added up
local-epsilon | 2 * given.releases * np.mean(np.abs(terms)) | This is an average
local-epsilon | 2 * given.releases * np.abs(terms).sum() | You added up the whole
local-epsilon | 3 * np.abs(terms).max() | This counts Δ once
local-epsilon | -terms.min() | This is Δ
local-epsilon | -2 * terms.min() | This is what one release costs
local-epsilon | 6 * np.abs(given.log_lik).max() | These draws come from
local-epsilon | 6 * np.abs(given.weighted_log_lik).max() | The draws are the right ones
local-epsilon | 6 * np.abs(given.weights * given.log_lik).max() | Multiplying the bounds of step 1
differencing | given.mean_of_nine - np.mean(given.counts) | A difference of two means
differencing | given.total_of_all - given.mean_of_nine | One is a mean
differencing | 8 * 7 - 52 | Over how many is the second one a mean?
differencing | given.mean_of_nine * 9 | This is the total of all nine
three-tables | np.exp(log_odds(sums).sum()) | These are odds
three-tables | log_odds(sums).sum() | These are log odds
three-tables | 1 / (1 + law(given.counts[:-1]).pmf(sums).sum() / law(given.counts).pmf(sums).sum()) | The tables are independent
three-tables | 1 / (1 + np.exp(-log_odds(sums).mean())) | Log-probabilities of independent tables
three-tables | 1 / (1 + np.exp(-log_odds(given.tables.sum(axis=0)).sum())) | A table has a total
three-tables | 1 / (1 + np.exp(-log_odds(sums[0]))) | This is what the first table tells
three-tables | 1 / (1 + np.exp(-log_odds(sums.sum(), rows=24))) | Each table has a draw
three-tables | 1 / (1 + np.exp(-log_odds(sums, a=0, b=0).sum())) | The prior is missing
""",  # noqa: E501
    "what_it_means": """
detection | [max(np.exp(e) * 0.05, 1 - np.exp(-e) * 0.95) for e in (1.5, 3.1)] | Both limits hold
detection | [1 - np.exp(-e) * 0.95 for e in (1.5, 3.1)] | There are two limits, and
detection | [0.05 * np.exp(e) for e in (1.5, 3.1)] | There are two limits. With
detection | [min(1, 0.05 * np.exp(e)) for e in (1.5, 3.1)] | A limit above 1
detection | [1.05 - np.exp(-e) for e in (1.5, 3.1)] | The two rates are tied
detection | [0.05, 0.05] | This is what a coin
what-epsilon-allows | np.log2(0.05 / 0.95 / (0.01 / 0.99)) | Logarithms in this book are natural ones. Yours
what-epsilon-allows | np.log10(0.05 / 0.95 / (0.01 / 0.99)) | Logarithms in this book are natural ones.
what-epsilon-allows | np.log(5) | ε limits a ratio of odds
what-epsilon-allows | 0.05 - 0.01 | Beliefs move by a factor
belief | 0.001 * np.e**2 | You multiplied the probability
belief | 0.001 / 0.999 * np.exp(2) | These are odds
belief | 0.001 * np.exp(2) / (1 + 0.001 * np.exp(2)) | You began with the probability
belief | 1 / (1 + 999 * np.exp(-4)) | This is the limit between two values
belief | 1 / (1 + 999 * np.exp(2)) | This is how far the belief can fall
budget | 2 / 0.25 | A release costs more
budget | 2 * 0.25 | This is what one release costs
budget | 1 | There is budget left
deployments | [17.14, 4, 1.68, 2.5] | Two of these are for one day
deployments | [17.14, 4 * 30**0.5, 1.68 * 30**0.5, 2.5] | Without a δ
deployments | [17.14 * 30, 120, 50.4, 2.5] | A census is taken once
deployments | [17.14, 120, 50.4, 0.5] | The last one releases more
deployments | [17.14, 120, 50.4, 5] | Does the theorem on censoring
read-backwards | "a" | There are more
read-backwards | "acd" | One is missing. Which numbers
read-backwards | "acf" | One is missing. What do neighbours
""",
    "theory": """
three-candidates | share(np.exp(given.log_lik) @ given.weights) | You added up
three-candidates | share(np.exp(np.mean(given.log_lik * given.weights, axis=1))) | You averaged
three-candidates | share(np.exp(np.average(given.log_lik, axis=1, weights=given.weights))) | You divided
three-candidates | unscaled | Probabilities add up to 1: divide by the normaliser
three-candidates | given.log_lik @ given.weights | These are sums of logarithms
three-candidates | share(np.exp(given.log_lik.sum(axis=1))) | Every record has counted in full
three-candidates | unscaled / unscaled.max() | Probabilities add up to 1, and you divided by the largest
three-candidates | unscaled / unscaled.mean() | Probabilities add up to 1, and you divided by the average
releases | [20, 1 / 20] | The theorem has a factor
releases | [2, 1 / 2] | This holds for one database
releases | [2 * 20**0.5, 0.5 / 20**0.5] | Costs add up
record-only | "bcdfg" | You also marked a grid
record-only | "bdefg" | You also marked a weight
record-only | "abdfg" | You also marked weights that need
record-only | "bdg" | One is missing. Does a constant
record-only | "bdf" | One is missing. The rule
""",
    "poisson_contraction": """
posterior | [20 + np.mean(given.weights * given.counts), 0.2 + given.weights.mean()] | You averaged
posterior | [20 + given.weights @ given.counts, 0.2 + np.mean(given.weights)] | In the second number
posterior | [visits, given.weights.sum()] | The records' part is there
posterior | [20 + visits, given.weights.sum()] | The prior has a rate as well
posterior | [visits, 0.2 + given.weights.sum()] | The prior has a shape as well
posterior | [20 + given.counts.sum(), 400.2] | This is the ordinary posterior
posterior | [20 + visits, 400.2] | The shape is right
posterior | [20 + visits, 1 / (0.2 + given.weights.sum())] | SciPy has the scale
extreme-draws | stats.poisson(given.mu_draws).logpmf(given.count).max() | The largest log-probability
extreme-draws | np.argmax(np.abs(stats.poisson.logpmf(130, given.mu_draws))) | This is a place
extreme-draws | -log_p(np.mean(given.mu_draws)) | This is the value at the average draw
extreme-draws | -log_p(max(given.mu_draws)) | One of the two extreme draws
extreme-draws | np.mean([-log_p(f(given.mu_draws)) for f in (min, max)]) | Of the two extreme draws one is the worst. They are not averaged
extreme-draws | sum(-log_p(f(given.mu_draws)) for f in (min, max)) | Of the two extreme draws one is the worst. They are not added
extreme-draws | stats.poisson(given.mu_draws).pmf(130).max() | This is a probability
removed | np.mean(np.where(given.weights * given.bounds > given.M, 0, given.weights) == 0) | This is a share
removed | np.sum(given.bounds > 3.5) | You compared the unweighted bounds
removed | np.sum(left > 0) | These are the records that stay
removed | np.sum(given.weights * given.bounds > 3.5) | Which record had lost its weight
safety | np.sum(given.study_bounds > 1.02 * given.study_bounds[:, None]) | This is a number of pairs
safety | np.sum(given.study_bounds > 1.02 * given.study_bounds[:, None], axis=1).mean() | This is how many
safety | np.sum(given.study_bounds > given.study_bounds[:, None]) / 9900 | This is the share for a factor of 1
safety | np.sum(1.02 * given.study_bounds > given.study_bounds[:, None]) / 9900 | The factor belongs to
safety | np.mean(given.study_bounds > 1.02 * np.median(given.study_bounds)) | You took one database
safety | np.mean(given.study_bounds > 1.02 * given.study_bounds[:, None]) | How many *other* databases
three-bounds | [far(given.counts, given.mu_draws), *three[1:]] | The first looks at every count
three-bounds | [three[0], far(kept, given.mu_draws), three[2]] | The second looks at one μ only
three-bounds | [three[0], 5, three[2]] | The threshold is a limit
three-bounds | [*three[:2], far(kept, given.mu_draws)] | The third does not look
three-bounds | [*three[:2], min(far(kept, [95]), far(kept, [105]))] | Both ends of the interval
three-bounds | [three[1], three[0], three[2]] | The first two are in each other's place
three-bounds | [-near(*of) for of in ((seen, given.mu_draws), (kept, [100]), (kept, [95, 105]))] | The largest log-probability is no
three-bounds | [near(*of) for of in ((seen, given.mu_draws), (kept, [100]), (kept, [95, 105]))] | These belong to the most ordinary count
hump-on-paper | [1, 0.875, 0.75, 0.5, 0.25, 0] | These are the weights without
hump-on-paper | [1, 0, 0, 0, 0, 0] | You compared the bounds with M
hump-on-paper | [4, 0, 0, 4, 2.5, 0] | These are products
hump-on-paper | [1, 0.84, 0.7, 0.5, 0.25, 0] | You lowered weights
hump-on-paper | [0, 0.125, 0.25, 0.5, 0.75, 1] | The largest bound has the largest
smallest-threshold | [np.log(50 * np.pi) / 2, np.log(200 * np.pi) / 2] | Wanted second is by how much
smallest-threshold | [np.log(50 * np.pi), np.log(4)] | A root inside a logarithm
smallest-threshold | [np.log(50 * np.pi) / 2, np.log(4)] | The root belongs to the four
smallest-threshold | [(50 * np.pi) ** -0.5, np.log(2)] | This is a probability
smallest-threshold | [np.log(50 * np.pi) / 2, np.log(200 * np.pi) / np.log(50 * np.pi)] | This is the rise by a factor
bias | mean(left) - given.counts.mean() | This is the distance in visits
bias | (mean(left) - given.counts.mean()) / sd(left) ** 2 | You divided by the variance
bias | (mean(given.weights) - given.counts.mean()) / sd(given.weights) | This is Weighted, not
bias | (mean(left) - given.counts.mean()) / np.std(given.counts) | The counts spread far more
bias | (mean(lowered) - given.counts.mean()) / sd(lowered) | You lowered weights until
bias | (mean(left) - 100) / sd(left) | Counts are not exactly
share-above | np.mean(given.study_bounds > 7.15) | You compared Δ with ε
share-above | np.sum(2 * given.study_bounds > 7.15) | This is a number of databases
none-of-400 | 0 | Nothing was seen
none-of-400 | 3 / 400 | The rule of three
none-of-400 | 1 - 0.05 ** (1 / 400) | How much does a two-sided
""",  # noqa: E501
    "ce_application": """
gini | np.mean(given.income[:, None] - given.income) / 2 / given.income.mean() | Without absolute
gini | np.abs(given.income[:, None] - given.income).sum() / 2 / given.income.mean() | This is a sum
gini | 100 * np.mean(np.abs(given.income[:, None] - given.income)) / 2 / given.income.mean() | A share lies
gini | 2 * np.arange(1, 301) @ given.income / given.income.sum() / 300 - 301 / 300 | The formula with ranks
gini | np.abs(given.income[:, None] - given.income).sum() / 300 / 299 / 2 / given.income.mean() | The pairs of a record
gini | np.abs(given.income[:, None] - given.income).mean() / 2 / np.median(given.income) | Do you divide by the mean
combining | np.sqrt(np.sum(given.variances) + np.var(given.estimates, ddof=1) / 20) | The average of the
combining | np.sqrt(np.mean(given.variances) + np.std(given.estimates, ddof=1) / 20) | What is b
combining | np.mean(given.variances) + np.var(given.estimates, ddof=1) / 20 | This is the square
combining | np.mean(given.variances) ** 0.5 | This takes releases for real data
combining | (np.mean(given.variances) + 21 / 20 * np.var(given.estimates, ddof=1)) ** 0.5 | This is the rule for multiple
combining | (np.mean(given.variances) + np.var(given.estimates, ddof=1)) ** 0.5 | This is the error of a single release
combining | (np.var(given.estimates, ddof=1) / 20) ** 0.5 | This is the error of the average
several-releases | np.ceil(((stats.norm.ppf(0.95) + stats.norm.ppf(0.8)) / (2.5 / 16)) ** 2) | The spread is
several-releases | np.ceil((sum(stats.norm.ppf([0.05, 0.8])) / 0.625) ** 2) | The quantile of a small
several-releases | 15 | Is one release fewer enough?
several-releases | (sum(stats.norm.ppf([0.95, 0.8])) / 0.625) ** 2 | A release is whole
several-releases | np.ceil((stats.norm.ppf(0.95) / 0.625) ** 2) | With so many the intruder
several-releases | np.ceil(sum(stats.norm.ppf([0.95, 0.8])) / 0.625) | An average's standard error
several-releases | np.ceil((sum(stats.norm.ppf([0.975, 0.8])) / 0.625) ** 2) | The intruder only looks
neighbours | np.sum(np.abs(six[:, None] - six) > 0.2 * six[:, None], axis=1) | These are numbers of
neighbours | np.sum(six[:, None] - six > 0.2 * six[:, None], axis=1) / 5 | Units with a larger
neighbours | [0.8, 0.6, 0.8, 0.8, 0.8, 0.8] | Whose income is the rad
neighbours | np.mean(np.abs(six[:, None] - six) > 0.2 * six[:, None], axis=1) | How many *other* units
neighbours | np.sum(six - six[:, None] > 0.2 * six[:, None], axis=1) / 5 | Units with a smaller income
neighbours | np.sum(np.abs(six[:, None] - six) > 0.2, axis=1) / 5 | This radius is a share of the income
match-risk | sum(own / np.maximum(below.sum(axis=1), 1)) | A match may lie
match-risk | np.trace(close) | The intruder sees several
match-risk | np.sum(close.any(axis=1)) | A match that belongs
match-risk | np.mean(np.diag(close) / close.sum(axis=1).clip(1)) | Wanted is a number of units
match-risk | 0 | This radius is a share
match-risk | sum(1 / n for n in close.sum(axis=1) if n) | Who has matches, but not
match-risk | np.sum(np.diag(of_released) / of_released.sum(axis=1).clip(1)) | The intruder knows the true income
scalar-weight | 10.1 / (2 * 78.7) | The ε of DPweighted is not
scalar-weight | 2 * 10.1 / 78.7 | The exponent is ε over
scalar-weight | 1 | The rule stops at 1
bill | 10.1 / 2.25 | Half a database
bill | 5 | So many cost more
bill | 78.7 // 2.25 | You compared with Unweighted
bill | 2.25 / 10.1 | Which of the two bounds
barycentre | (41 + 55 + 47 + 60 + 52 + 44 + 71 + 49) / 8 | This is the barycentre's mean
barycentre | [46.5, 49.5, 59, 54.5] | You paired the values
barycentre | [41, 44, 47, 49, 52, 55, 60, 71] | This is a mixture
""",  # noqa: E501
    "what_is_weaker": """
exact-loss | given.mu[np.argmax(np.abs(loss))] | This is the μ at which
exact-loss | np.argmax(np.abs(loss)) | This is a place
exact-loss | np.sum(np.abs(loss)) | You added up over
exact-loss | max(loss) | The ratio can be small
exact-loss | -stats.poisson.logpmf(18, given.mu).min() | This is the change of the log-likelihood
exact-loss | max(loss) - min(loss) | This is the width of the interval
exact-loss | np.mean(np.abs(loss)) | An average is no guarantee
exact-loss | np.min(np.abs(loss)) | This is the smallest loss
exact-loss | np.abs(loss_of(scale=lambda rate: rate)).max() | SciPy speaks of the scale
exact-loss | np.abs(loss_of(a=0, b=0)).max() | Both posteriors have a prior
unit | [-stats.norm(5e4, 3e4**2).logpdf(5e4), -stats.norm(50, 30**2).logpdf(50)] | The spread is
unit | [np.log(3e4 * np.sqrt(2 * np.pi))] * 2 | In the second case
unit | np.log(3e4 * np.sqrt(2 * np.pi)) / [1, 1000] | A density is divided
unit | np.log(3e4 * np.sqrt(2 * np.pi)) + [0, np.log(1000)] | Is a thousand dollars a wider
capped | np.minimum(1, 4 / ends.max(axis=1)) | The largest
capped | np.minimum(1, 4 / ends.min(axis=1)) | A weight is not
capped | np.minimum(1, 4 / -ends.sum(axis=1)) | You added up both
capped | np.minimum(1, 4 / -ends.mean(axis=1)) | You averaged both
capped | -4 / ends.min(axis=1) | Some of these are no weights
capped | np.minimum(1, 4 / -ends.max(axis=1)) | You took the end
capped | np.minimum(1, 4 / (top - ends.min(axis=1))) | These weights keep the *oscillation*
capped | np.minimum(1, -ends.min(axis=1) / 4) | The household with the largest bound
capped | ends.min(axis=1) >= -4.0 | This keeps a household or drops it
capped | (ends.min(axis=1) - ends.min()) / np.ptp(ends.min(axis=1)) | These depend on
twin | [np.abs(moved).max()] * 2 | Which household has the largest
twin | [max(moved), 0] | A weight can fall
twin | [np.abs(moved).sum(), 0] | Wanted is the largest change, not all
twin | [np.abs(moved).mean(), 0] | Wanted is the largest change, not the average
public-oscillations | np.abs(ends @ [1, -1]) | You compared the two ends
public-oscillations | -ends.min(axis=1) | These are bounds
public-oscillations | -2 * ends.min(axis=1) | Twice the bound
public-oscillations | -top | This is how close log p
repairs | "b" | One is missing. Limits
repairs | "e" | One is missing. A set
repairs | "bce" | One too many. Where did
repairs | "bde" | One too many. How large
repairs | "bef" | One too many. Bounds over
repairs | "abe" | One too many. A factor
repairs | "acdf" | Wanted are those whose number
""",
    "strict_release": """
which-epsilon | [1, 3, 5] | These are places in the list, counted from 1
which-epsilon | [0.25, 0.1, 1] | For one of them the publ
which-epsilon | [0, 2, 4] | These are places in the list. W
which-epsilon | [4, 4, 4] | Larger than needed
which-epsilon | [1, 1, 1] | Each user gets a release
which-epsilon | [0, 0.05, 0.25] | These are the last ε
which-epsilon | [7.4, 33, 3.2] | These are errors
cut-off | np.sum(~((terms >= -1.25) & (terms <= -0.75))) | This is a number
cut-off | (terms > -0.75).mean() | There are two limits, and the terms below
cut-off | np.mean((given.log_lik < -1.25) + (given.log_lik > -0.75)) | The weight comes first
cut-off | (terms < -1.25).mean() | There are two limits.
cut-off | np.mean((terms >= -1.25) * (terms <= -0.75)) | This is the share that the limits
cut-off | ((terms < -1.25) + (terms > -0.75)).any(axis=0).mean() | This is the share of households
laplace | [1 / 0.2, 2 / 0.2**2] | The second number is a variance
laplace | [10, 10 * 2**0.5] | Here a unit's income
laplace | [5, 5] | The scale of a Laplace
laplace | [5, 10] | A variance is twice
laplace | [0.2, 0.2 * 2**0.5] | With a smaller ε
strict-epsilon | [8 * (-0.75 + -1.25), 16 * (-0.75 + -1.25)] | The width is a distance
strict-epsilon | [8 * 2 * 0.5, 8 * 4 * 0.5] | The 2 belongs to a bound
strict-epsilon | [0.5, 1] | This is the price of one release
strict-epsilon | [4, 4] | Replacing is two steps
strict-epsilon | [8 * 1.25, 16 * 1.25] | What counts is the distance
drowned | (given.counts < 2 / 0.2**2).mean(axis=1) | You compared with the variance
drowned | np.sum(given.counts < 50**0.5, axis=1) | These are numbers of bins
drowned | np.mean(given.counts < 50**0.5, axis=0) | This is one share for each bin
drowned | np.mean(given.counts < 5, axis=1) | You compared with the scale
drowned | np.mean(given.counts > 50**0.5, axis=1) | These are the bins that stand out
public-first | "cf" | One is missing. A number of bins
public-first | "bf" | One is missing. Where did somebody
public-first | "abcf" | You also marked a table
public-first | "ade" | Wanted are the choices
edges | "ace" | One is missing. What may be done
edges | "acefg" | One is too many: it tells
edges | "acdeg" | One is too many: whose
edges | "aeg" | One is missing. Does a bin
edges | "bdf" | Wanted are the edges
account | [2.8, -1.8] | Do tables from the same
account | [0.25 + 0.3, 0.45] | The first plan was used
account | [0.6, 0.4] | Each of the tables
account | [0.5, 0.5] | These are two of the three
account | [0.3, 0.7] | The values of ε of several
precision | [2400, 2.5] | A standard deviation falls
precision | [2400, 0.4**0.5] | With less information
precision | [3600, 0.6**-0.5] | This is about what the weight
more-records | [[1, 1 / 2, 1 / 2], [1 / 4, 1 / 2, 1]] | This is the noise of the sum
more-records | [[1 / 2, 1 / 2, 1 / 2], [1 / 2, 1 / 2, 1]] | The noise of a sum does not
more-records | [[1 / 4, 1 / 4, 1 / 2], [1 / 4, 1 / 4, 1]] | The draw pays with its width
more-records | [[4, 2, 2], [4, 2, 1]] | With more records
more-records | [[1 / 4, 1 / 2, 1 / 2]] * 2 | What does the sampling error
more-records | [[1 / 16, 1 / 4, 1 / 4], [1 / 16, 1 / 4, 1]] | These are variances
more-records | np.transpose([[1 / 4, 1 / 2, 1 / 2], [1 / 4, 1 / 2, 1]]) | Rows and columns
average-of-releases | [5, 5 / 8**0.5] | Does the bias differ
average-of-releases | [7, 3 + 2**0.5] | Bias and spread add up
average-of-releases | [5, np.hypot(3, 1 / 2)] | How does the standard deviation
average-of-releases | [4, 2**0.5] | This is the spread alone
""",
    "strict_more": """
bounded-range | 40 / 32 + 2 * np.sqrt(40 / 32 * np.log2(1e6)) | Nats are natural logarithms, and bits
bounded-range | 40 * 0.5 | This is the cost without
bounded-range | 2.5 + 2 * np.sqrt(2.5 * np.log(1e6)) | How does ρ depend
bounded-range | 5 + 2 * np.sqrt(5 * np.log(1e6)) | This is the formula for a loss
bounded-range | 1.25 + 2 * np.sqrt(1.25 * 6) | Nats are natural logarithms.
bounded-range | 2 * np.sqrt(1.25 * np.log(1e6)) | One term of the sum
chain | 1e-4 | The other database has draws
chain | 2e-4 | The two distances
chain | np.exp(1.5) * 1e-4 | This is the distance of one
chain | 2.5e-4 | The factor of ε-differential
""",
    "using_releases": """
one-release | 38.2 + np.array([-1, 1]) * stats.norm.ppf(0.975) * np.sqrt(6) * 0.09 | A standard error
one-release | [38.2 - z * 0.3, 38.2 + z * 0.3] | This is the interval of somebody
one-release | [38.2 - z * 0.27**0.5, 38.2 + z * 0.27**0.5] | This would be right if
one-release | [38.2 - z * 0.18**0.5, 38.2 + z * 0.18**0.5] | This rule is for releases
one-release | [38.2 - z * 0.54, 38.2 + z * 0.54] | A variance is the square
one-release | [38.2 - z * 2.25**0.5 * 0.3, 38.2 + z * 2.25**0.5 * 0.3] | A smaller weight makes
from-tables | around(stats.t(4)) | Only b comes from few releases
from-tables | around(stats.norm()) | The variance is right. But b comes
from-tables | student(400 * v, b) | This takes the variance
from-tables | student(5 * v, b) | You added up the variances
from-tables | around(stats.norm(), given.released.var(ddof=1) / 2000) | Five releases do not
from-tables | around(stats.t(freedom(v, b)), b + v / 5) | You divided the wrong one
from-tables | around(stats.norm(), v) | The scatter between
from-tables | around(stats.t(freedom(v, b)), (v + b / 5) ** 2) | A standard error is the root
from-tables | student(v, b**0.5) | What is b, a variance
negative-variance | mix(given.variances.sum(), given.averages.var(ddof=1)) | You added up
negative-variance | mix(given.variances.mean(), given.averages.std(ddof=1)) | What is b
negative-variance | [inner + outer / 5, inner] | You let something stand in
negative-variance | [inner + outer / 5, outer - inner] | This is what the second rule
negative-variance | [inner + outer / 5, 1.2 * outer + inner] | Look at the last sign
negative-variance | mix(inner, np.var(given.averages)) | Look at the divisor
read-the-weight | 1 / (given.many_averages.var(ddof=1) / given.many_variances.sum() - 1) | You added up
read-the-weight | given.many_variances.mean() / np.var(given.many_averages, ddof=1) | Between releases
read-the-weight | 1 / (np.var(given.many_averages, ddof=1) / given.many_variances.mean() - 2) | The chance in the
read-the-weight | 1 / (np.std(given.many_averages, ddof=1) / given.many_variances.mean() ** 0.5 - 1) | Compare variances
read-the-weight | 1 / (np.std(given.many_averages, ddof=1) / given.many_variances.mean() - 1) | What is b, a variance
as-real | 2 * stats.norm.cdf(z / np.array([3, 6])) - 1 | An interval is as wide
as-real | stats.norm.cdf(z / np.array([3, 6]) ** 0.5) | The interval has two ends
as-real | 2 * stats.norm.cdf(z / np.array([2, 5]) ** 0.5) - 1 | Three things vary
as-real | 2 * stats.norm.cdf(z / np.array([3, 2.25]) ** 0.5) - 1 | A smaller weight makes
rules-recalled | "abdf" | One too many. What happens
rules-recalled | "bdef" | One too many. All rules
rules-recalled | "df" | One is missing. What would
shared-epsilon | [(1 + 5 / m) ** 0.5 for m in (1, 2, 5, 20)] | Every release has the weight
shared-epsilon | [(1 / m + 4) ** 0.5 for m in (1, 2, 5, 20)] | Real records have a variance
shared-epsilon | [(2 + 4 * m) ** 0.5 for m in (1, 2, 5, 20)] | This is the error of a single one
missed | [covers.mean(), covers.std(), off / scatter] | The second number does not fall
missed | [covers.sum(), covers.std() / 200**0.5, off / scatter] | The first number counts
missed | [covers.mean(), covers.std() / 200**0.5, off / scatter**2] | In the third number
missed | [covers.mean(), covers.std() / 200**0.5, off] | The third number is the bias
missed | [covers.mean(), covers.std() / 200**0.5, off / (scatter / 200**0.5)] | The third number grows
""",  # noqa: E501
    "your_own_model": """
what-to-diagnose | np.abs(weighted).mean(-1) | This is an average
what-to-diagnose | np.abs(weighted).argmax(-1) | These are places
what-to-diagnose | -weighted.sum(-1) | You added up
what-to-diagnose | np.abs(weighted).max(axis=1) | This is one number for each chain
what-to-diagnose | weighted.sum(axis=2) | This is the weighted log-likelihood
what-to-diagnose | np.abs(given.chains_log_lik).max(axis=2) | Multiply by the weights
what-to-diagnose | -weighted.max(axis=2) | This is the record that each draw
what-to-diagnose | weighted.max(axis=2) | This is the best fitted record
cents | np.max(given.spending_log_lik - np.log(1e5)) | The largest log-likelihood
cents | np.abs(given.spending_log_lik - 5).max() | The log-likelihoods are natural
cents | np.mean(np.abs(given.spending_log_lik - np.log(1e5))) | This is an average
cents | np.max(np.abs(given.spending_log_lik - np.log2(1e5))) | The log-likelihoods are natural logarithms, a
cents | np.abs(given.spending_log_lik).max() | This is the bound in thousands
cents | np.abs(given.spending_log_lik + np.log(1e5)).max() | A cent is a small unit
cents | np.abs(given.spending_log_lik - np.log(1e3)).max() | This is the bound in dollars
cents | np.sum(np.abs(given.spending_log_lik - np.log(1e5))) | You added up the whole matrix
cents | np.abs(given.spending_log_lik / 1e5).max() | The density is divided
log-likelihood | of_answer(given.age - 45).T | People stand in rows
log-likelihood | np.log(yes(given.age - 45)) | This is the log-probability of a yes
log-likelihood | of_answer(given.age) | In the model the age
log-likelihood | of_answer(given.age - 45).sum(axis=1) | This is one number for each draw
beta-bernoulli | [given.trust[given.successes == x].sum() for x in (1, 0)] | The prior is missing
beta-bernoulli | [2 + 5, 3 + 5] | This is the ordinary posterior
beta-bernoulli | [2 + given.trust @ given.successes, 3 + given.trust.sum()] | The second parameter
beta-bernoulli | [2 + given.trust @ given.successes, 3 + 5] | A failure has a weight
left-of-a-list | three(1 / np.sum(np.exp(2 * (given.totals - max(given.totals))))) | Probabilities add up
left-of-a-list | three(chances @ chances) | This is the sum of squares
left-of-a-list | three(1000 / (chances @ chances)) | You averaged the squares
left-of-a-list | three(1 / max(chances)) | You took one over the largest
left-of-a-list | [left, 1000 / left, 10 * (1000 / left) ** 6] | All three parameters together
left-of-a-list | [left, 1000 / left / 3, 10 * (1000 / left / 3) ** 6] | You took a third
left-of-a-list | [left, (1000 / left) ** (1 / 3), 60 * (1000 / left) ** (1 / 3)] | With six parameters
left-of-a-list | [left, (1000 / left) ** (1 / 3), left**2 / 1000] | Six parameters divide
left-of-a-list | [left, (1000 / left) ** (1 / 3), (1000 / left) ** 2] | With a list of this length
covered | "abd" | You also marked something
covered | "acd" | A region is not
covered | "ade" | You also marked a number
covered | "a" | Post-processing
""",
    "application_settings": """
used-components | np.exp(stats.entropy(given.weights_of_components, base=2)) | This entropy has
used-components | 1 / np.sum(given.weights_of_components**2) | One over
used-components | 10 | This is the K that was set
used-components | np.sum(given.weights_of_components * 5658 >= 1) | This counts a component
used-components | 2 ** stats.entropy(given.weights_of_components) | Base of logarithm
used-components | np.exp(stats.entropy(given.weights_of_components, base=10)) | This entropy has logarithms of base 10
used-components | np.exp(stats.entropy(given.weights_of_components) / 10) | You averaged the terms
distance | [np.std(ratios), np.exp(np.std(ratios))] | A standard deviation
distance | [right / np.log(10), np.exp(right)] | 1 of 2 entries are right. Log
distance | [right**2, np.exp(right**2)] | The mean of the squares
distance | [right / np.log(2), np.exp(right / np.log(2))] | The logarithms have the base 2
distance | np.sqrt(np.mean((given.ours / given.published - 1) ** 2)) * np.array([1, 0]) + [0, np.exp(np.sqrt(np.mean((given.ours / given.published - 1) ** 2)))] | A bound that is half
distance | [ratios.mean(), np.exp(ratios.mean())] | In this mean
distance | [np.abs(ratios).mean(), np.exp(np.abs(ratios).mean())] | This is the mean absolute
distance | [np.abs(ratios).max(), np.exp(np.abs(ratios).max())] | This is the largest of the seven
distance | [right / np.log(10), np.exp(right / np.log(10))] | The logarithms have the base 10
distance | [right * 7**0.5, np.exp(right * 7**0.5)] | A distance that grows
distance | [right, 1 + right] | The second number is close
transformations | [np.log10(floored), np.arcsinh(x), np.log10(shifted)] | Two of the rows
transformations | [np.log([1, 1, 800, 6e4]), np.arcsinh(x), np.log(shifted)] | The first row has
transformations | [np.log([8500, 1000, 1000, 6e4]), np.arcsinh(abs(x)), np.log(abs(x) + 7001)] | A loss is not a gain
transformations | [np.log(floored), np.arcsinh(x), np.log([7001, 7001, 7801, 67001])] | In the third row
transformations | [np.log([1000, 1000, 800, 6e4]), np.arcsinh(x), np.log(shifted)] | A floor raises everything
floored-unit | (10.9 / 0.9) ** 2 / 2 | The square is right
floored-unit | -stats.norm(10.9, 0.9).logpdf(1) | The model is about
floored-unit | -stats.norm(10.9, 0.81).logpdf(0) | The spread that is given
change-of-scale | [-stats.norm(10.9, 0.9).logpdf(np.log(6e4))] * 2 | A density is a probability
change-of-scale | -stats.norm(10.9, 0.81).logpdf(np.log(6e4)) + [0, np.log(6e4)] | The spread that is given
change-of-scale | np.abs(-stats.norm(10.9, 0.9).logpdf(np.log2(6e4)) + [0, np.log2(6e4)]) | The model is about the natural logarithm of income. Yours has the base 2
change-of-scale | -of_ten + np.array([0, np.log10(6e4)]) | The model is about the natural logarithm of income. Yours has the base 10
change-of-scale | np.abs(-stats.norm(10.9, 0.9).logpdf(np.log(6e4)) - [0, np.log(6e4)]) | Near this income
change-of-scale | [-stats.norm(10.9, 0.9).logpdf(np.log(6e4)), -stats.norm(np.exp(10.9), np.exp(0.9)).logpdf(6e4)] | If the logarithm is normal
fewer-draws | np.abs(given.log_lik).max() | This is the bound over all
fewer-draws | np.abs(given.log_lik[:20]).max() | This is one choice
fewer-draws | np.abs(given.log_lik).mean() | This is what a single draw
fewer-draws | largest_of_20(given.log_lik.ravel()) | Bounds are about absolute
fewer-draws | np.abs(given.log_lik).max() / 10 | A maximum is not proportional
fall | 78.7 / 2.25 | This is the factor from
fall | (78.7 / 2.25) ** (1 / 7) | Seven values have
fall | np.mean([a / b for a, b in zip(given.published, given.published[1:])]) | Factors multiply
fall | (78.7 - 2.25) / 6 | This is a difference
""",  # noqa: E501
    "privacy_audit": """
posterior-mean | 8 * given.published_mean - 34 | You took the published number
posterior-mean | 8 * given.published_mean - 1 - 34 | The prior has a rate
posterior-mean | 8.1 * given.published_mean - 34 | The prior has a shape
posterior-mean | 8.1 * given.published_mean - 34 + 1 | The prior's shape is in the mean
posterior-mean | 7.1 * given.published_mean - 1 - 34 | How many households
membership | caught - alarms | This is the attacker's advantage
membership | np.log(alarms) - np.log(caught) | Which of the two databases
membership | np.log(np.sum(given.means_with > 7) / np.sum(given.means_without > 7)) | The attacker says so
evidence | np.log(60 / 5) | This is the estimate
evidence | np.log(ends(60)[1] / ends(5)[0]) | This is an upper limit
evidence | np.log(ends(60, 0.9)[0] / ends(5, 0.9)[1]) | Two limits can each fail
spot-the-error | "abce" | You also marked the sentence
spot-the-error | "ce" | One is missing. Read again
spot-the-error | "bc" | One is missing. What can be read
""",
    "assessment": """
weigh-and-bound | 2 * given.releases * (tens * given.weighted_log_lik).max() | The absolute
weigh-and-bound | 2 * given.releases * np.abs((tens * given.weighted_log_lik).sum(axis=1)).max() | This adds up
weigh-and-bound | np.abs(tens * given.weighted_log_lik).max() | This is Δ
weigh-and-bound | 2 * np.abs(tens * given.weighted_log_lik).max() | This is one release
weigh-and-bound | 2 * given.releases * np.abs(given.weighted_log_lik).max() | Where are the weights
weigh-and-bound | 2 * given.releases * np.abs(tens * given.weighted_log_lik).mean() | This is an average
weigh-and-bound | 2 * given.releases * np.abs(tens * given.log_lik).max() | These draws are
share-and-interval | [above / 250, *stats.binomtest(above, 250).proportion_ci()] | This compares
share-and-interval | [two / 250, *(two / 250 + 1.96 * np.array([-1, 1]) * np.sqrt(two / 250 * (1 - two / 250) / 250))] | This is the normal interval
share-and-interval | [1 - two / 250, *stats.binomtest(250 - two, 250).proportion_ci()] | These are the databases
five-at-once | 1 / (1 + (1 / given.prior - 1) * np.exp(-given.epsilon)) | This is one release
five-at-once | given.prior * np.exp(given.epsilon * given.releases) | This multiplies
undecided | [np.sum(gap > 0), np.sum(gap < 0), 0] | This counts every
undecided | [np.sum(gap > sums), np.sum(-gap > sums), np.sum(np.abs(gap) <= sums)] | This adds up errors
evidence-both-ways | np.log(given.seen_with / given.seen_without) | This is the estimate
evidence-both-ways | min(np.log(seen[0] / unseen[1]), np.log((1 - unseen[1]) / (1 - seen[0]))) | This is the other direction
room-for-each | [given.budget, np.mean((given.terms > -1) + (given.terms < -1 - given.budget))] | This is the width of a single
room-for-each | [width / 2, np.mean((given.terms > -1) + (given.terms < -1 - width / 2))] | This halves
room-for-each | [width, np.mean((given.terms <= -1) * (given.terms >= -1 - width))] | These are the terms
room-for-each | [width, np.sum((given.terms > -1) + (given.terms < -1 - width))] | This is a number
two-recipients | [np.sqrt(given.variances.sum() + b / 5), alone] | The variances are added
two-recipients | [np.sqrt(given.variances.mean() + b**0.5 / 5), alone] | A standard deviation
two-recipients | [np.sqrt(b + given.variances.mean() / 5), alone] | The wrong variance
two-recipients | [np.sqrt(given.variances.mean() / 5), np.sqrt(given.variances[0])] | This takes the releases
""",  # noqa: E501
}


def poisson(counts, mu):
    """Largest and smallest |log p| of counts at means."""
    found = np.abs(stats.poisson.logpmf(counts, np.reshape(mu, (-1, 1))))
    return found.max(), found.min()


def names_of(chapter, given):
    """What the code with a slip uses besides the exercise's data."""
    names = {"given": given, "np": np, "stats": stats}
    if chapter == "eight_households":

        def line(bounds):
            risk = (bounds - bounds.min()) / (bounds.max() - bounds.min())
            return np.clip(given.scale * (1 - risk) + given.shift, 0, 1)

        def law(counts, a=1, b=0.1, rows=8):
            """Of the total of a table."""
            rate = b + counts.size
            return stats.nbinom(a + counts.sum(), rate / (rate + rows))

        def log_odds(totals, **prior):
            one, other = (law(x, **prior) for x in (given.counts, given.counts[:-1]))
            return one.logpmf(totals) - other.logpmf(totals)

        def letters(chosen):
            return "".join(np.array([*"ABCDEFGH"])[chosen])

        names |= {"line": line, "law": law, "log_odds": log_odds, "letters": letters}
        names |= {"groups": given.subsets.T, "totals": given.noisy_totals}
        # one group may be empty
        names["by_head"] = given.noisy_totals / given.subsets.sum(axis=1).clip(1)
        names["terms"] = given.weights * given.weighted_log_lik
        names["bounds"] = bounds = -given.log_lik.min(axis=0)
        names["risk"] = (bounds - min(bounds)) / (max(bounds) - min(bounds))
        names["sums"] = given.tables.sum(axis=1)
        names["before"] = -given.street_log_lik.min(axis=0)
        terms = given.street_weights * given.street_weighted_log_lik
        names["after"] = -terms.min(axis=0)
    elif chapter == "theory":
        names["unscaled"] = np.exp(given.log_lik @ given.weights)
        names["share"] = lambda values: values / values.sum()
    elif chapter == "poisson_contraction":
        left = np.where(given.weights * given.bounds > 3.5, 0, given.weights)
        counts = np.arange(301)
        kept = counts[stats.poisson.logpmf(counts, 100) >= -5]
        seen = kept[np.isin(kept, given.counts)]
        names |= {
            "log_p": lambda mu: stats.poisson.logpmf(given.count, mu),
            "visits": (given.weights * given.counts).sum(),
            "left": left,
            "lowered": np.minimum(given.weights, 3.5 / given.bounds),
            "mean": lambda w: (20 + w @ given.counts) / (0.2 + w.sum()),
            "sd": lambda w: np.sqrt(20 + w @ given.counts) / (0.2 + w.sum()),
            "kept": kept,
            "seen": seen,
            "far": lambda counts, mu: poisson(counts, mu)[0],
            "near": lambda counts, mu: poisson(counts, mu)[1],
        }
        of = (seen, given.mu_draws), (kept, 100), (kept, [95, 105])
        names["three"] = [poisson(*one)[0] for one in of]
    elif chapter == "ce_application":
        names["six"] = given.incomes_of_a_pattern
        away = given.released_incomes - given.true_incomes[:, None]
        below = away <= 0.2 * given.true_incomes[:, None]
        names |= {"below": below, "own": below.diagonal()}
        names["close"] = np.abs(away) <= 0.2 * given.true_incomes[:, None]
        names["of_released"] = np.abs(away) <= 0.2 * given.released_incomes
    elif chapter == "what_is_weaker":

        def loss_of(a=1, b=0.1, scale=lambda rate: 1 / rate):
            with_h, without = (
                stats.gamma(a + one.sum(), scale=scale(b + one.size)).logpdf(given.mu)
                for one in (given.counts, given.others)
            )
            return with_h - without

        def weights(counts):
            bounds = -stats.poisson.logpmf(counts[:, None], [2, 12]).min(axis=1)
            return (max(bounds) - bounds) / (max(bounds) - min(bounds))

        names["ends"] = stats.poisson.logpmf(given.counts[:, None], [4, 12])
        # where, between the ends, a count is the most likely
        names["top"] = stats.poisson.logpmf(given.counts, [4, 4, 4, 5, 5, 6, 7, 12])
        names |= {"loss_of": loss_of, "loss": loss_of()}
        names["moved"] = weights(given.others) - weights(given.counts)[:-1]
    elif chapter == "strict_release":
        names["terms"] = given.weight * given.log_lik
    elif chapter == "privacy_audit":

        def ends(seen, confidence=0.95):
            found = stats.binomtest(seen, 100).proportion_ci(confidence)
            return found.low, found.high

        names |= {
            "caught": np.mean(given.means_with >= 7),
            "alarms": np.mean(given.means_without >= 7),
            "ends": ends,
        }
    elif chapter == "using_releases":
        q = given.released.mean(axis=1)
        v = given.released.var(axis=1, ddof=1).mean() / given.released.shape[1]
        b = q.var(ddof=1)

        def around(law, variance=v + b / q.size):
            return q.mean() + np.array(law.interval(0.95)) * np.sqrt(variance)

        def freedom(v, b):
            return 4 * (1 + 5 * v / b) ** 2

        names |= {"v": v, "b": b, "z": stats.norm.ppf(0.975), "freedom": freedom}
        names["around"] = around
        names["student"] = lambda v, b: around(stats.t(freedom(v, b)), v + b / 5)
        names["mix"] = lambda v, b: [v + b / 5, (1 + 1 / 5) * b - v]
        names["inner"] = given.variances.mean()
        names["outer"] = given.averages.var(ddof=1)
        names["covers"] = (given.low < given.truth) * (given.truth < given.high)
        names["off"] = np.mean(given.estimates - given.truth)
        names["scatter"] = np.std(given.estimates, ddof=1)
    elif chapter == "your_own_model":

        def yes(age):
            return 1 / (
                1 + np.exp(-given.intercept[:, None] - given.slope[:, None] * age)
            )

        names |= {
            "yes": yes,
            "of_answer": lambda age: np.log(
                np.where(given.answer == 1, yes(age), 1 - yes(age))
            ),
            "three": lambda left: [left, (1000 / left) ** (1 / 3), 1e7 / left**2],
        }
        names["weighted"] = given.chains_weights * given.chains_log_lik
        names["chances"] = special.softmax(given.totals)
        names["left"] = 1 / np.sum(names["chances"] ** 2)
    elif chapter == "application_settings":

        def largest_of_20(values):
            """Average over all choices of 20 of the 200 draws, from the largest on."""
            left, found, chance = 1.0, 0.0, 0.0
            for place, value in enumerate(np.sort(values)[::-1]):
                # that it is chosen, and none of the larger ones
                chance = left * 20 / (200 - place)
                found, left = found + chance * value, left - chance
            return found

        ratios = np.log(given.ours) - np.log(given.published)
        names["of_ten"] = stats.norm.logpdf(np.log10(given.income), 10.9, 0.9)
        names |= {"ratios": ratios, "right": np.sqrt(np.mean(ratios**2))}
        names |= {"x": given.incomes, "largest_of_20": largest_of_20}
        names["floored"] = np.array([1000, 1000, 1000, 6e4])
        names["shifted"] = np.array([1, 7001, 7801, 67001])
    elif chapter == "assessment":
        bounds = np.abs(given.log_lik).max(axis=0)
        names["above"] = int(np.sum(given.bounds > given.large_epsilon))
        names["two"] = int(np.sum(2 * given.bounds > given.large_epsilon))
        names["tens"] = given.scale * (bounds.max() - bounds) / np.ptp(bounds)
        one, its, other, of_that = given.distances.to_numpy().T
        names |= {"gap": other - one, "sums": 2 * its + 2 * of_that}
        for name in "seen", "unseen":
            times = given.seen_with if name == "seen" else given.seen_without
            found = stats.binomtest(times, given.runs).proportion_ci()
            names[name] = found.low, found.high
        names["width"] = given.budget / given.releases
        names["b"] = given.estimates.var(ddof=1)
        names["alone"] = np.sqrt(given.variances[0] * (2 + 1 / given.weight))
    return names


@pytest.mark.parametrize("chapter", EVERY)
def test_code_with_a_slip_gets_the_hint_that_names_it(chapter):
    check = EVERY[chapter]
    names = names_of(chapter, check.given)
    for line in SLIPS[chapter].strip().splitlines():
        name, code, hint = line.split(" | ")
        told = check(name, eval(code, names))
        assert told.startswith(f"✘ {name}: {hint}"), f"{line}\n{told}"


@pytest.mark.parametrize("chapter", EVERY)
def test_every_hint_is_tried_with_code_that_has_its_slip(chapter):
    tried = [line.split(" | ") for line in SLIPS[chapter].strip().splitlines()]
    for name, work in EVERY[chapter].works.items():
        if work.judge:
            continue
        _, slips, _ = work(EVERY[chapter].given)
        starts = [start for other, _, start in tried if other == name]
        for hint in slips:
            assert any(hint.startswith(start) for start in starts), (name, hint)


@pytest.mark.parametrize("chapter", EVERY)
def test_what_is_nearly_right_or_in_another_unit_is_wrong(chapter):
    check = EVERY[chapter]
    for name, work in check.works.items():
        if work.options or work.judge:
            continue
        right = np.asarray(work(check.given)[0], float)
        assert check(name, right * 1.0004).startswith("✔")
        for times in (0.99, 1.002, 100, 0.01, 2, 0.5):
            assert check(name, right * times).startswith("✘"), (name, times)
        # each entry counts
        for place in [*np.ndindex(right.shape)][:20]:
            other = right.copy()
            other[place] = 1.1 * right[place] or np.abs(right).max() / 10
            assert check(name, other).startswith("✘"), (name, place)


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
