"""What chapters compute by hand, in cells that a reader sees, against the library and exact laws."""

import functools

import numpy as np
import pandas as pd
import pytest
from cells import cell_of, of_chapter, run_chapter
from scipy import stats
from scipy.special import logsumexp

import ppm
from ppm_book.chapters import household, page, plots
from ppm_book.tools import parameters

close = np.testing.assert_allclose
# chapters that take seconds at the paper's sizes
QUICK = "eight_households", "theory", "what_it_means", "poisson_contraction"
PRIOR = {"shape": 1.0, "rate": 0.1}


# none of them the book's own
OTHER = {
    "eight_households": {
        "draws": 300,
        "scale": 0.5,
        "shift": 0.2,
        "releases": 4,
        "seed": 7,
    },
    "theory": {"scale": 0.5, "shift": 0.2, "releases": 2, "seed": 7},
    "what_it_means": {"local_bound": 3.0, "releases": 5},
    "poisson_contraction": {
        "sizes": [60, 240],
        "replicates": 10,
        "mean": 30.0,
        "truncate_at": 2.5,
        "draws": 100,
        "seed": 7,
    },
}
at_other_settings_too = pytest.mark.parametrize("other", [False, True])


def chapter(name, other=False):
    return _chapter(name, other)


@functools.cache
def _chapter(name, other):
    return run_chapter(name, **(OTHER[name] if other else {}))


@pytest.mark.parametrize("name", QUICK)
def test_each_parameter_is_tried_at_another_value_than_the_book_s(name):
    own = parameters.parameters(name)
    assert own.keys() == OTHER[name].keys()
    assert not [key for key in own if own[key] == OTHER[name][key]]


@pytest.mark.parametrize("name", QUICK)
def test_claims_hold_at_the_book_s_own_settings(name):
    (claims,) = [
        one for one in chapter(name).displayed if isinstance(one, page._Claims)
    ]
    assert claims and all(claims.values()), claims


# ---- eight households ----------------------------------------------------------------------------


@at_other_settings_too
def test_the_first_chapter_s_steps_are_those_of_the_library(other):
    here = chapter("eight_households", other)
    assert here.printed.startswith("H made 18 visits\nH made 18 visits\n")
    assert "same Δ:        True" in here.printed and "False" not in here.printed
    close(here.bounds, ppm.record_bounds(here.log_lik))
    line = {"scale": here.scale, "shift": here.shift}
    close(here.weights, ppm.record_weights(here.bounds, **line))
    close(here.delta, here.fit.local_bound)
    close(here.epsilon, here.fit.epsilon())
    # the paper's one weight, from the two bounds
    close(here.scalar, here.fit.local_bound / here.fit.unweighted.local_bound)
    model, comparison = ppm.GammaPoisson(here.counts, **PRIOR), here.comparison
    for name, weights in {
        "Unweighted": np.ones(8),
        "Weighted": here.fit.weights,
        "EMweighted": here.scalar,
    }.items():
        law, row = model.posterior(weights), comparison.loc[name]
        close(row[["mean of μ", "sd of μ"]].astype(float), [law.mean(), law.std()])
        close(row["sum of weights"], weights.sum())
        close(row["ε = 2Δ"], ppm.epsilon(row["Δ"]))


@at_other_settings_too
def test_the_first_chapter_s_attack_is_right_as_often_as_the_law_of_totals_says(
    other,
):
    here = chapter("eight_households", other)
    for (name, m), (with_h, without_h, alarm) in here.attacks.items():
        assert np.mean(without_h > alarm) <= 0.05 < np.mean(without_h >= alarm)
        weigh = here.no_weights if name == "Ordinary posterior" else here.our_weights
        law = ppm.GammaPoisson(here.counts, **PRIOR).posterior(weigh(here.counts))
        # totals of m tables, each of eight counts with a mean of its own
        (shape,), rate = law.args, 1 / law.kwds["scale"]
        exact = stats.nbinom(m * shape, rate / (rate + 8))
        close(here.right[name, m], exact.sf(alarm), atol=5 * 0.5 / 100_000**0.5)
        close(with_h.mean(), exact.mean(), atol=5 * exact.std() / 100_000**0.5)


# ---- theory --------------------------------------------------------------------------------------


@at_other_settings_too
def test_a_household_that_leaves_changes_log_probabilities_as_the_picture_says(other):
    here = chapter("theory", other)
    line = {"scale": here.scale, "shift": here.shift}
    close(here.alpha, ppm.record_weights(np.abs(here.log_p).max(axis=0), **line))
    weighted = ppm.Terms(here.alpha)(here.log_p)
    close(here.alpha * here.log_p, weighted)
    close(here.delta, ppm.local_bound(here.log_p, here.alpha))
    close(here.epsilon, 2 * here.delta * here.releases)
    for away in range(8):
        # computed by other means
        found = household.state(here.counts, away, **line)
        close(here.frozen[away], found.ratio, atol=1e-12)
        close(here.loss[away], found.loss, atol=1e-12)
    others = here.log_p[:, :-1].sum(axis=1)
    law = here.log_p.sum(axis=1) - others
    close(here.h_unweighted, law - logsumexp(law + others) + logsumexp(others))


# ---- what it means -------------------------------------------------------------------------------


@at_other_settings_too
def test_beliefs_and_attacks_are_those_of_the_library(other):
    here = chapter("what_it_means", other)
    assert "to at most 0.027\n" in here.printed
    close(
        here.epsilons[-2:],
        [ppm.epsilon(here.local_bound, m) for m in (1, here.releases)],
    )
    for words, prior in here.priors.items():
        close(
            here.at_most[f"prior {words}"],
            ppm.pdp.belief_limits(prior, here.epsilons)[1],
        )
    close(
        here.at_most["two values, 1 in 2 each"],
        ppm.pdp.belief_limits(0.5, 2 * here.epsilons)[1],
    )
    with_h, without_h = (
        ppm.GammaPoisson(records, **PRIOR).posterior(np.ones(len(records)))
        for records in (here.counts, here.others)
    )
    close([here.with_h, here.without_h], [with_h.sf(7), without_h.sf(7)])
    close(here.losses, with_h.logsf(here.limits) - without_h.logsf(here.limits))
    assert here.losses.max() == here.losses[here.limits == here.top].item()
    # three tables of eight counts, each with a mean of its own
    law = ppm.GammaPoisson(here.counts, **PRIOR).posterior(here.ours.weights)
    found = here.total(here.counts, here.ours.weights)
    close(found.mean(), 3 * 8 * law.mean())
    close(found.var(), 3 * (8 * law.mean() + 64 * law.var()))
    alarms, detected, refuted = here.attacks.to_numpy().T
    assert (alarms <= 0.05).all() and (alarms > 0.04).all()
    close(refuted, np.log(detected / alarms))
    alarm = here.total(here.others, here.ours_without_h.weights).ppf(0.95)
    close(detected[1], found.sf(alarm))


# ---- contraction ---------------------------------------------------------------------------------


class Sums:
    """Random numbers that are known sums."""

    def __init__(self, mean, *sums):
        self.mean, self.sums = mean, np.array(sums)

    def poisson(self, mean, shape):
        # two records of each kind
        assert mean == 2 * self.mean and shape == (1, 2)
        return self.sums[None]


@at_other_settings_too
def test_a_study_s_steps_are_those_of_the_library_and_of_definitions(other):
    here = chapter("poisson_contraction", other)
    records = np.array([90, 110, 104, 99])
    law = here.pseudo_posterior(
        4, 1, Sums(here.mean, *records.reshape(2, 2).sum(axis=0))
    )
    known = ppm.GammaPoisson(records, shape=1, rate=1 / here.mean)
    known = known.posterior(np.tile([0.5, 0.9], 2))
    close([law.mean().item(), law.std().item()], [known.mean(), known.std()])
    of_record = ppm.GammaPoisson([here.record])
    for n, mu in here.twelve.items():
        known = [ppm.local_bound(of_record.log_p({"mu": one}), [0.5]) for one in mu.T]
        close(here.of_record[n], known)
    products = here.bounds * ppm.record_weights(here.bounds)
    assert np.array_equal(here.removed, products > here.truncate_at)
    assert 0 < here.removed.sum() < here.removed.size


def test_a_study_s_summary_has_the_ledger_s_numbers():
    here = chapter("poisson_contraction")
    bias = "Weighted-M: shift of the mean in standard deviations"
    # from Unweighted's estimates there, from μ here: 400 databases' mean is 1/20 off
    shift = np.abs(here.deviations["Weighted-M"])
    close(shift, here.values[bias]["value"], atol=0.2)
    close(
        here.interval.estimate,
        here.values["Weighted-M: share of bounds above M"]["value"][-1],
    )
    close(here.summary["records removed"]["Unweighted"], 0)


# ---- chapters that take longer, to the cells at issue --------------------------------------------


def test_an_attack_on_three_tables_has_five_false_alarms_in_a_hundred_at_most():
    here = run_chapter("strict_release", upto="home.round(1)")
    for name, law_of in {
        "Ordinary posterior": here.ordinary,
        "Paper's mechanism": here.paper,
        "Own weights": here.own_weights,
    }.items():
        one, other = law_of(here.counts), law_of(here.counts[:-1])
        close([one.sum(), other.sum()], 1)
        with_h, without_h = (
            np.convolve(law, np.convolve(law, law)) for law in (one, other)
        )
        row = here.home.loc[name]
        # the most that is detected with so few false alarms
        above = without_h[::-1].cumsum()[::-1] <= 0.05
        close(row["H found, in 100"], 100 * with_h[above].sum())
        if name == "Own weights":
            model = ppm.Candidates(ppm.GammaPoisson(here.counts), {"mu": here.possible})
            fit = ppm.fit(model, ppm.Capped(1 / 3), draws=1)
            chances = model.probabilities(fit.terms)
            mean = chances @ here.possible
            spread = np.sqrt(chances @ (here.possible - mean) ** 2)
        else:
            model = ppm.GammaPoisson(here.counts, **PRIOR)
            weighted = ppm.fit(model, ppm.ByRisk(), random_seed=20220).weights
            law = model.posterior(weighted if name[0] == "P" else np.ones(8))
            mean, spread = law.mean(), law.std()
        close(row[["mean of μ", "± of μ"]].astype(float), [mean, spread], rtol=1e-6)


def test_three_noises_of_a_mean_are_those_of_their_laws():
    names = {"np": np, "stats": stats, "plots": plots, "epsilon": 0.1}
    exec(cell_of("strict_release", '"a noisy sum"'), names)
    n, c, reach, found = (names[name] for name in ("n", "c", "reach", "noises"))
    # a sum that one record moves by c, over the number of records
    close(found["a noisy sum"], stats.laplace(scale=c / 0.1).std() / n)
    close(found["sampling error"], stats.norm().std() / np.sqrt(n))
    # own weights, by the record at c: its term moves by ε over means from -reach to reach
    mu = np.linspace(-reach, reach, 4001)
    weight = 0.1 / np.ptp(stats.norm.logpdf(c, mu))
    for place in (0, 30, 60, 100):
        density = np.exp(-n[place] * weight * mu**2 / 2)
        close(
            found["a draw"][place] ** 2, np.average(mu**2, weights=density), rtol=0.01
        )


def test_a_table_of_widths_has_the_epsilon_of_the_library_with_delta_and_without():
    names = {"np": np, "pd": pd, "page": page}
    exec(cell_of("strict_more", "several = pd.DataFrame"), names)
    several, found = names["several"], ppm.pdp.bounded_range_epsilon
    for m in (1, 5, 20):
        close(several[f"m = {m}"], [found(w, m) for w in several.index])
        with_delta = [found(w, m, delta=1e-6) for w in several.index]
        close(several[f"m = {m}, δ"], with_delta)


def test_three_releases_are_combined_as_the_rule_of_the_next_cell_says():
    here = run_chapter("using_releases", upto="Three releases")
    rule = of_chapter("using_releases").rules(here.q, here.v)["partially synthetic"]
    close([here.q_bar, here.variance, here.freedom], rule)
    close(here.half, stats.t.ppf(0.975, rule[2]) * np.sqrt(rule[1]))


def test_one_regression_by_hand_has_the_library_s_law():
    # a thousand units
    few = {"records": 1000, "chains": 1, "draws": 1000}
    here = run_chapter("ce_application", upto="one_weight = min(1", **few)
    scale, shift = here.configurations[0]
    close(here.weights, ppm.record_weights(here.f, scale=scale, shift=shift))
    close(here.target, here.terms.max())
    assert f"weight {here.target / here.f.max():.3f}:" in here.printed
    # prior precision 0.01 of the coefficients, and 3 / χ² of 3 degrees of the variance
    prior = {"spread": 10.0, "shape": 1.5, "scale": 1.5}
    model = ppm.Normal(here.y, here.X, **prior)
    draws = {"draws": 1000, "random_seed": 1}
    for weights in (np.ones(len(here.y)), here.weights):
        log_p = model.log_p(ppm.fit(model, ppm.Given(weights), **draws).theta)
        found = np.percentile(here.one_regression(weights), [25, 50, 75], axis=1)
        known = np.percentile(np.abs(weights * log_p), [25, 50, 75], axis=0)
        close(found, known, rtol=0.1, atol=0.1)
        close(found.mean(axis=1), known.mean(axis=1), rtol=0.005)
