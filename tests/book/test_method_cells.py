"""What chapters compute by hand, in cells that a reader sees, against the library and exact laws."""

import ast
import functools
import re
from types import SimpleNamespace
from unittest.mock import patch

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


# ---- what quick chapters show --------------------------------------------------------------------


def figure_of(name, words, other=True):
    """A figure of a chapter that has run, its panels, and the chapter's names."""
    here = chapter(name, other)
    names = dict(vars(here))
    exec(cell_of(name, words), names)
    return names["figure"], names["figure"].axes, here


def curves(axes):
    """Points of lines that have a label."""
    return {line.get_label(): line.get_xydata() for line in axes.lines}


def shown_by(name, words, other=True):
    """What the last expression of a chapter's cell gives, or the table that it shows."""
    shown, names = [], dict(vars(chapter(name, other)))
    names["page"] = SimpleNamespace(
        table=lambda table, *_, **__: shown.append(table), save=lambda *_: None
    )
    tree = ast.parse(cell_of(name, words))
    last = tree.body.pop()
    exec(compile(tree, name, "exec"), names)
    value = eval(compile(ast.Expression(last.value), name, "eval"), names)
    return shown[-1] if shown else value


def test_the_first_chapter_s_tables_have_what_their_columns_say():
    here = chapter("eight_households", True)
    log_p = here.log_lik
    close(shown_by("eight_households", "pd.DataFrame(log_lik[:3]"), log_p[:3].round(1))
    known = stats.poisson.logpmf(here.counts, here.unweighted[:, None])
    close(log_p, known)
    table = shown_by("eight_households", '"weighted bound": weighted_bounds')
    bounds = np.maximum(known.max(axis=0), -known.min(axis=0))
    shares = (bounds - min(bounds)) / (max(bounds) - min(bounds))
    close(table["count"], here.counts)
    close(table["bound"], bounds.round(2))
    close(table["risk"], shares.round(2))
    close(table["weight"], np.clip(0.5 * (1 - shares) + 0.2, 0, 1).round(2))
    weighted = here.fit.weights * -stats.poisson.logpmf(
        here.counts, here.weighted[:, None]
    )
    close(table["weighted bound"], weighted.max(axis=0).round(2))
    # one database a row, in which each count is drawn from its own release of μ
    release = shown_by("eight_households", "chosen = rng.choice")
    assert release.shape == (here.releases, 8)
    said = f"ε of m = 4 together: {4 * 2 * weighted.max():.1f} nats"
    assert said in here.printed
    rates = shown_by("eight_households", "pd.Series(right).unstack()")
    for (name, m), share in here.right.items():
        if m < 20:
            close(rates.loc[name, m], share, atol=0.02)
    assert [*rates] == [1, 3]


def test_the_first_chapter_s_figures_draw_its_numbers():
    _, (axes,), here = figure_of("eight_households", "axes.hlines(rows, bounds")
    of = curves(axes)
    close(of["before"][:, 0], here.bounds)
    close(of["after"][:, 0], here.weighted_bounds)
    close(of[f"Δ = {here.delta:.2f}"][:, 0], here.delta)
    ends = [segment[:, 0] for segment in axes.collections[0].get_segments()]
    close(ends, np.c_[here.bounds, here.weighted_bounds])
    _, (axes,), here = figure_of("eight_households", "depths = -0.03")
    laws = {
        "Unweighted": np.ones(8),
        "Weighted": here.fit.weights,
        "EMweighted": here.scalar,
    }
    model = ppm.GammaPoisson(here.counts, **PRIOR)
    for line, (name, weights) in zip(axes.lines, laws.items(), strict=False):
        law, (x, y) = model.posterior(weights), line.get_xydata().T
        close(y, law.pdf(x))
        said = f"{name}: mean {law.mean():.1f}, sd {law.std():.1f}"
        assert line.get_label() == said
        assert line.get_color() == plots.COLOURS[name]
    assert sorted(axes.lines[3].get_xdata()) == sorted(here.counts)
    _, four, here = figure_of("eight_households", "axes.hist(with_h, bins")
    for axes, (name, m) in zip(
        four,
        [(name, m) for m in (3, 20) for name in ("Ordinary posterior", "With weights")],
        strict=True,
    ):
        with_h, without_h, alarm = here.attacks[name, m]
        share = 100 * np.mean(with_h > alarm)
        assert axes.get_title() == f"{name}: right in {share:.0f} of 100"
        assert f"in {m} tables" in axes.get_xlabel()
        close(axes.lines[0].get_xdata(), alarm)
        (filled,) = axes.containers
        assert filled[0].get_label() == "with H"
        counted = sum(bar.get_height() for bar in filled if bar.get_x() >= alarm)
        # but for those beyond the picture's ends
        assert 0 <= (with_h > alarm).sum() - counted < 0.05 * with_h.size
        (outline,) = (one for one in axes.patches if one.get_label() == "without H")
        edges = [bar.get_x() for bar in filled]
        edges.append(edges[-1] + filled[-1].get_width())
        heights = np.histogram(without_h, edges)[0]
        close(outline.get_xy()[:, 1].max(), heights.max())


def test_the_band_of_theory_holds_each_household_s_curve():
    _, (axes,), here = figure_of("theory", "orange = {")
    levels = sorted(line.get_ydata()[0] for line in axes.lines[:2])
    close(levels, [-2 * here.delta, 2 * here.delta])
    for text in axes.texts:
        sign = -1 if text.get_text() == "−2Δ" else 1
        close(text.get_position()[1], sign * 2 * here.delta)
    for j in range(7):
        close(axes.lines[2 + j].get_xydata(), np.c_[here.means, here.frozen[j]])
    of = curves(axes)
    close(of["H"][:, 1], here.frozen[7])
    close(of["H without weights"][:, 1], here.h_unweighted)
    largest = np.abs(here.log_p).max()
    assert (
        f"Δ without weights {largest:.2f} nats, with weights {here.delta:.2f}"
        in here.printed
    )
    assert f"m = 2 releases together: {4 * here.delta:.2f} nats" in here.printed


@at_other_settings_too
def test_beliefs_are_shown_at_their_epsilon_and_prior(other):
    here = chapter("what_it_means", other)
    table = shown_by("what_it_means", 'rows = [f"{epsilon:.4g}"', other)
    local, m = (3.0, 5) if other else (10.1, 20)
    sizes = [0.1, 1, 5, 10, 2 * local, 2 * local * m]
    words = [f"{one:.4g}" for one in sizes]
    words[4] += " (one release, local)"
    words[5] += " (all releases, local)"
    assert [*table.index] == words

    def number(text):
        if text.startswith("1 in"):
            return 1 / float(text[5:].replace(",", ""))
        return float(text.removeprefix("over ").removesuffix(" %")) / 100

    priors = {"prior 1 in 100,000": 1e-5, "prior 1 in 100": 0.01, "prior 1 in 2": 0.5}
    for row, epsilon in zip(table.to_numpy(), sizes, strict=True):
        for text, (name, prior) in zip(
            row, (priors | {"two values, 1 in 2 each": 0.5}).items(), strict=True
        ):
            step = epsilon * (1 + name.startswith("two"))
            share = 1 / (1 + np.exp(-step) * (1 - prior) / prior)
            assert number(text) == pytest.approx(share, rel=0.05)
            assert text.startswith("over") == (share >= 0.999)
    (with_h, without_h) = (
        stats.gamma(1 + one.sum(), scale=1 / (0.1 + one.size)).sf(7)
        for one in (here.counts, here.others)
    )
    assert f"above 7: {with_h:.3f} with H, {without_h:.3f} without" in here.printed
    assert f"log ratio: {np.log(with_h / without_h):.2f} nats" in here.printed
    assert (
        f"largest: {here.losses.max():.1f} nats, above {here.top:.0f}" in here.printed
    )
    zero = np.interp(
        0, -here.losses[here.losses.argmax() :], here.limits[here.losses.argmax() :]
    )
    assert f"the sign changes at {zero:.0f}\n" in here.printed
    loss = 3 * ppm.epsilon(here.ours.local_bound)
    assert f"as the mechanism reports it: {loss:.1f} nats" in here.printed


def test_pictures_of_beliefs_draw_their_limits():
    _, (axes,), here = figure_of("what_it_means", "likelier {name}")
    close(axes.lines[0].get_xydata(), np.c_[here.limits, here.losses])
    sides = {
        one.get_label(): one.get_paths()[0].vertices[:, 1] for one in axes.collections
    }
    assert sides["likelier with H"].max() > 0.1 > sides["likelier with H"].min() > -0.1
    assert (
        sides["likelier without H"].min() < -0.1
        and sides["likelier without H"].max() < 0.1
    )
    _, (axes,), here = figure_of(
        "what_it_means", "limit = ppm.pdp.detection_limit(alarms, eps)"
    )
    for line, eps, text in zip(
        axes.lines, (0.1, 0.5, 1, 2, 3), axes.texts, strict=False
    ):
        x, y = line.get_xydata().T
        known = np.minimum(np.exp(eps) * x, 1 - np.exp(-eps) * (1 - x))
        close(y, known, atol=1e-9)
        assert text.get_text() == f" ε = {eps}"
        close(text.xy, [0.5, y[-1]])
    of = curves(axes)
    for name, (alarm, detected, _) in here.attacks.iterrows():
        close(of[f"chapter 1, {name}"], [[alarm, detected]])
    names = dict(vars(here))
    for eps, prior in (0.5, 0.01), (3, 1e-5):
        words, (belief, test) = here.promise(eps, prior)
        after = 1 / (1 + np.exp(-eps) * (1 - prior) / prior)
        power = 100 * min(np.exp(eps) * 0.05, 1 - np.exp(-eps) * 0.95)
        assert words.startswith(
            f"a belief of {here.chance(prior)} may become {here.chance(after)} at"
        )
        assert f"is {here.chance(power / 100)} at most" in words
        ends = [np.log(one / (1 - one)) for one in (prior, after)]
        close(belief["lines"][0]["x"], ends)
        close([dot["at"][0] for dot in belief["dots"]], ends)
        close(test["dots"][0]["at"], [5, power])
        limit = test["lines"][0]
        close(np.interp(5, limit["x"], limit["y"]), power)
    assert names["belief"]["ticks"] and names["test"]["lines"][0]["y"] == [0, 100]


def test_contraction_is_drawn_for_each_size():
    _, (left, right), here = figure_of("poisson_contraction", "left.vlines(places")
    for place, n in enumerate(here.sizes):
        segments = left.collections[place].get_segments()
        ends = [[*segment[:, 1]] for segment in segments]
        close(ends, np.c_[here.twelve[n].min(axis=0), here.twelve[n].max(axis=0)])
        close(right.lines[place].get_ydata(), here.of_record[n])
    close(left.lines[-1].get_ydata(), here.mean)
    at_mean = -0.5 * stats.poisson.logpmf(here.record, here.mean)
    close(right.lines[-1].get_ydata(), at_mean)
    assert here.record == round(30 + 2 * 30**0.5)
    _, (axes,), here = figure_of("poisson_contraction", "line.max() - line")
    of = curves(axes)
    products = here.weights * here.bounds
    for name, chosen in {"kept": products <= 2.5, "removed": products > 2.5}.items():
        close(of[name], np.c_[here.bounds, products][chosen])
    close(of["M = 2.5"][:, 1], 2.5)
    x, y = axes.lines[0].get_xydata().T
    close(np.interp(here.bounds, x, y), products, atol=0.01)
    number = here.times[products > 2.5].sum()
    assert f"removed: {number} of 1,600 records" in here.printed
    assert here.times.sum() == 1600


def test_a_study_s_tables_have_the_averages_of_their_mechanism_and_size():
    here = chapter("poisson_contraction", True)
    price = shown_by("poisson_contraction", "price = pd.DataFrame")
    above = shown_by("poisson_contraction", "above = pd.DataFrame")
    factors = shown_by("poisson_contraction", "factors = pd.DataFrame")
    of = here.study.set_index(["mechanism", "size"])
    for place in [(who, n) for who in ("Weighted", "Weighted-M") for n in here.sizes]:
        rows, plain = of.loc[[place]], of.loc[[("Unweighted", place[1])]]
        off = rows["average"] - 30
        close(price.loc[place, "in units of μ"], off.mean())
        deviation = np.std(plain["average"], ddof=1)
        close(price.loc[place, "in standard deviations"], off.mean() / deviation)
        bounds = rows["bound"].to_numpy()
        for column, times in {
            "2M": 1,
            "2M × 1.02": 1.02,
            "2M × 1.05": 1.05,
            "2M × 1.1": 1.1,
        }.items():
            close(above.loc[place, column], 100 * np.mean(bounds > times * 2.5))
        for times in (1.05, 1.1):
            over = [
                np.mean(np.delete(bounds, j) > times * one)
                for j, one in enumerate(bounds)
            ]
            close(factors.loc[place, f"times {times}"], 100 * np.mean(over))
        row = here.summary.loc[place]
        close(row[["smallest", "median", "largest"]], np.quantile(bounds, [0, 0.5, 1]))
        close(row["average of the mean"], rows["average"].mean())
        close(row["records removed"], rows["removed"].mean())
    last = of.loc[[("Weighted-M", 240)]]["bound"]
    low, high = stats.binomtest(int((last > 2.5).sum()), 10).proportion_ci()
    said = f"{np.mean(last > 2.5):.1%} ({low:.1%} to {high:.1%})".replace("%", " %")
    assert said in here.printed


def test_violins_of_a_study_are_those_of_the_panel_s_mechanism():
    here = chapter("poisson_contraction", True)
    drawn = []
    names = vars(here)["by_size"].__globals__
    with patch.object(
        plots, "violins", lambda axes, groups, **_: drawn.append((axes, groups))
    ):
        assert names["plots"] is plots
        here.by_size("average", 30, "words")
    assert len(drawn) == 3
    for axes, groups in drawn:
        rows = here.study[here.study["mechanism"] == axes.get_title()]
        for n in here.sizes:
            close(groups[f"{n:,}"], rows["average"][rows["size"] == n])
        close(axes.lines[0].get_ydata(), 30)


def test_a_moved_threshold_has_its_share_of_removed_records_and_its_bounds():
    here = chapter("poisson_contraction", True)
    said, (left, right) = here.at_threshold(2.0)
    found = here.contraction.simulate(
        [240], range(10), here.executor, **here.settings | {"truncate_at": 2.0}
    )
    rows = found[found["mechanism"] == "Weighted-M"]
    numbers = [float(one) for one in re.findall(r"\d+\.\d+", said)]
    ends = [
        100 * rows["removed"].mean() / 240,
        *np.quantile(rows["bound"], [0.05, 0.95]),
    ]
    close(numbers[:3], ends, atol=0.051)
    close(numbers[3:], [rows["average"].min(), rows["average"].max()], atol=0.051)
    close(sum(right["bars"]), 100)
    assert left["across"][0] == right["upright"][0] == 2.0
    stays = np.array(left["bars"])
    close(stays, np.where(here.products > 2.0, 0, here.products))


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
    # prior precision of the coefficients, and 3 / χ² of 3 degrees of the variance
    draws = {"draws": 1000, "random_seed": 1}
    for weights, prior in (
        (np.ones(len(here.y)), 0.01),
        (here.weights, 0.01),
        (here.weights, 50.0),
    ):
        model = ppm.Normal(here.y, here.X, spread=prior**-0.5, shape=1.5, scale=1.5)
        log_p = model.log_p(ppm.fit(model, ppm.Given(weights), **draws).theta)
        found = here.one_regression(weights, prior)
        found = np.percentile(found, [25, 50, 75], axis=1)
        known = np.percentile(np.abs(weights * log_p), [25, 50, 75], axis=0)
        close(found, known, rtol=0.1, atol=0.1)
        close(found.mean(axis=1), known.mean(axis=1), rtol=0.005)
