"""What cells on exact losses show: each number by itself, from audits that are made up."""

import itertools
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from cells import after, cell_of
from scipy import special, stats

import ppm
from ppm_book import audits
from ppm_book.chapters import household

close = np.testing.assert_allclose
COUNTS = np.array(household.COUNTS)
MECHANISMS = ["Unweighted", "Weighted", "Weighted-M", "Capped", "Capped on T"]
OF_A_RECORD = ["loss_fixed", "loss_common", "loss_integrated", "loss_integrated_error"]
OF_A_RECORD += ["shape_without", "rate_without"]
OF_ALL = [
    "local_bound",
    "oscillation_bound",
    "loss_worst",
    "share_worst",
    "loss_supremum",
]
OF_ALL += ["records_over", "parameters_over", "weights_moved", "weights_switched"]
OF_ALL += ["outside", "outside_public", "average_mean", "spread", "shape", "rate"]


def made_up(rng, left_out=(90, 100, 117)):
    """An audit in which each number is another one."""
    dims = "mechanism", "left_out"
    sizes = len(MECHANISMS), len(left_out)
    columns = {name: (dims, rng.exponential(3, sizes)) for name in OF_A_RECORD}
    columns |= {name: (dims[:1], rng.exponential(2, sizes[0])) for name in OF_ALL}
    return xr.Dataset(columns, {"mechanism": MECHANISMS, "left_out": [*left_out]})


class MadeUp:
    """In place of the audits, with those that were asked for, in order."""

    def __init__(self):
        self.made, self.asked = [], []

    def exact(self, counts, **settings):
        self.asked.append((np.array(counts), settings))
        self.made.append(made_up(np.random.default_rng([3, len(self.made)])))
        return self.made[-1]


SETTINGS = {"sizes": [30, 60], "replicates": 7, "mean": 100.0, "truncate_at": 1.5}
SETTINGS |= {"draws": 50, "weight_draws": 6, "public_width": 0.2, "seed": 5}
RUNNING = SimpleNamespace(executor=lambda: SimpleNamespace(map=map))


@pytest.fixture(scope="module")
def audit():
    """The chapter's cells on its study, and the audits by size."""
    ours = MadeUp()
    here = after(
        "privacy_audit",
        "def audit(task)",
        "ratio = (study",
        "panels(3, 3, size=(3.2, 4.2)",
        "losses = by.agg",
        "page.save(losses",
        "def intervals_by_size",
        "exceeded = {",
        "page.save(exceeded",
        "supremum = study",
        "pd.DataFrame(far",
        "reactions = by[",
        "page.save(reactions",
        "utility = pd.DataFrame",
        "comparison.insert",
        audits=ours,
        running=RUNNING,
        **SETTINGS,
    )
    of_study, here.again = ours.made[:14], ours.made[14:]
    here.asked, here.of_size = ours.asked, {30: of_study[:7], 60: of_study[7:]}
    here.ours = ours
    return here


def each(audit, name, mechanism, size):
    """A number of each database, the largest over its records."""
    found = [one[name].sel(mechanism=mechanism) for one in audit.of_size[size]]
    return np.array([one.max().item() for one in found])


WORDS = {
    "fixed": "weights held fixed",
    "common": "weights again, one seed",
    "worst": "weights again, worst seed",
    "integrated": "weights again, integrated out",
}
places = list(itertools.product(MECHANISMS, [30, 60]))


def test_an_audit_has_the_public_interval_around_the_mean(audit):
    for counts, settings in audit.asked:
        close(settings["public"], [80, 120])
        assert settings["truncate_at"] == 1.5 and settings["draws"] == 50
        assert counts.size in (30, 60) and 80 < counts.mean() < 120
    sizes = [counts.size for counts, _ in audit.asked[:14]]
    assert sizes == [30] * 7 + [60] * 7
    # no two databases are one
    assert len({tuple(counts[:30]) for counts, _ in audit.asked[:14]}) == 14


def test_losses_of_databases_are_medians_and_maxima_in_nats(audit):
    table = audit.saved["privacy_losses"]
    medians = {
        "oscillation": "oscillation_bound",
        "weights fixed": "loss_fixed",
        "one seed": "loss_common",
        "integrated out": "loss_integrated",
    }
    largest = {
        "largest, one seed": "loss_common",
        "largest of 6 seeds": "loss_worst",
        "largest, integrated": "loss_integrated",
    }
    for place in places:
        row = table.loc[place]
        close(row["2Δ"], 2 * np.median(each(audit, "local_bound", *place)))
        for column, name in medians.items():
            close(row[column], np.median(each(audit, name, *place)))
        for column, name in largest.items():
            close(row[column], each(audit, name, *place).max())
        records = [
            (one["loss_integrated"].item(), one["loss_integrated_error"].item())
            for database in audit.of_size[place[1]]
            for _, one in database.sel(mechanism=place[0]).groupby("left_out")
        ]
        close(row["its standard error"], max(records)[1])
    shown = audit.tables[0]
    assert shown.equals(table.xs(60, level="size")[[*shown]])
    assert {*table} - {*shown} == {"weights fixed", "one seed", "largest, one seed"}


def test_the_picture_of_a_database_is_that_of_the_largest_share_of_its_bound(audit):
    shares = each(audit, "loss_common", "Weighted-M", 60) / each(
        audit, "local_bound", "Weighted-M", 60
    )
    # its counts, drawn again
    again = audit.asked[14][0]
    assert np.array_equal(again, audit.asked[7 + shares.argmax()][0])
    (worst, *_) = audit.again
    for axes, name in zip(
        audit.figures[0].axes, ["Weighted", "Weighted-M", "Capped"], strict=True
    ):
        here = worst.sel(mechanism=name)
        assert axes.get_title() == name
        curves = {line.get_label(): line.get_ydata() for line in axes.lines}
        known = {
            WORDS[one]: here[f"loss_{one}"] for one in ("fixed", "common", "integrated")
        }
        known |= {"2Δ": [2 * here["local_bound"].item()] * 2}
        known |= {"oscillation": [here["oscillation_bound"].item()] * 2}
        assert {*curves} == {*known}
        for label, values in known.items():
            close(curves[label], np.maximum(values, 1e-3))
        close(axes.lines[0].get_xdata(), [90, 100, 117])


def drawn_intervals(axes):
    """Low end, mark and high end of each interval, by its label."""
    found = {}
    for container in axes.containers:
        line, _, (bars,) = container
        ends = np.array([segment[:, 1] for segment in bars.get_segments()])
        found[container.get_label()] = np.c_[ends, line.get_ydata()][:, [0, 2, 1]]
    return found


def test_shares_of_two_delta_go_from_the_smallest_to_the_largest_database(audit):
    axes = {one.get_title(): one for one in audit.figures[1].axes}
    assert {*axes} == {*WORDS.values()}
    for kind, words in WORDS.items():
        drawn = drawn_intervals(axes[words])
        for mechanism in MECHANISMS:
            for place, size in enumerate((30, 60)):
                shares = each(audit, f"loss_{kind}", mechanism, size)
                shares = shares / (2 * each(audit, "local_bound", mechanism, size))
                if kind == "worst":
                    shares = each(audit, "share_worst", mechanism, size)
                ends = shares.min(), np.median(shares), shares.max()
                close(drawn[mechanism][place], ends)
    ticks = audit.figures[1].axes[-1].get_xticklabels()
    assert [tick.get_text() for tick in ticks] == ["30", "60"]


def test_databases_over_their_own_bound_are_counted_with_their_interval(audit):
    table = audit.saved["databases_over_own_bound"]
    drawn = {one.get_title(): drawn_intervals(one) for one in audit.figures[2].axes}
    for mechanism, size in places:
        two_delta = 2 * each(audit, "local_bound", mechanism, size)
        for kind, words in WORDS.items():
            over = (each(audit, f"loss_{kind}", mechanism, size) > two_delta).sum()
            if kind == "worst":
                over = (each(audit, "share_worst", mechanism, size) > 1).sum()
            low, high = stats.binomtest(int(over), 7).proportion_ci()
            row = table.loc[mechanism, size, kind]
            close(row.astype(float), [over / 7, low, high, over])
            if mechanism != "Unweighted":
                place = [30, 60].index(size)
                close(drawn[words][mechanism][place], [low, over / 7, high])


def test_losses_over_the_whole_prior_are_those_of_two_densities_at_this_mean(audit):
    far = audit.tables[1]
    first = audit.again[1]
    assert np.array_equal(audit.asked[15][0], audit.asked[0][0])
    for name in ("Unweighted", "Weighted", "Weighted-M", "Capped"):
        here = first.sel(mechanism=name)
        for times in (1, 1.5, 2, 5):
            mu, lost = 100 * times, []
            for j in range(3):
                (a, b), (c, d) = (
                    (here["shape"].item(), here["rate"].item()),
                    (here["shape_without"].values[j], here["rate_without"].values[j]),
                )
                ratio = a * np.log(b) - c * np.log(d) - special.gammaln(a)
                ratio += special.gammaln(c) + (a - c) * np.log(mu) - (b - d) * mu
                lost.append(abs(ratio))
            close(far.loc[name, f"μ = {mu:g}"], max(lost))
    for place in places:
        over = each(audit, "loss_supremum", *place) > 2 * 1.5
        close(audit.everywhere[place], over.sum() / 7)


def test_reactions_and_errors_are_averages_over_databases(audit):
    reactions = audit.saved["weights_that_react"]
    utility = audit.saved["errors_of_the_mean"]
    compared = audit.saved["mechanisms_audited"]
    shown = audit.tables[2]
    moved = {
        "moved by more than 0.01": ("weights_moved", 1),
        "switched to or from 0": ("weights_switched", 1),
        "mass outside (%)": ("outside", 100),
    }
    for place in places:
        for name in (
            "weights_moved",
            "weights_switched",
            "records_over",
            "parameters_over",
            "outside",
        ):
            close(reactions.loc[place, name], each(audit, name, *place).mean())
        largest = each(audit, "outside_public", *place).max()
        close(reactions.loc[place, "outside_public"], largest)
        off = each(audit, "average_mean", *place) - 100
        close(utility.loc[place, "bias"], off.mean())
        close(utility.loc[place, "error"], np.hypot(off.mean(), off.std()))
        close(utility.loc[place, "spread"], each(audit, "spread", *place).mean())

    def largest(name, mechanism):
        return max(each(audit, name, mechanism, size).max() for size in (30, 60))

    for mechanism in MECHANISMS:
        for column, (name, times) in moved.items():
            average = each(audit, name, mechanism, 60).mean()
            close(shown.loc[mechanism, column], times * average)
        row = compared.loc[mechanism]
        close(row["2Δ"], 2 * largest("local_bound", mechanism))
        close(row["loss"], largest("loss_integrated", mechanism))
        close(row["whole prior"], largest("loss_supremum", mechanism))
        shares = [
            np.mean(
                each(audit, "loss_integrated", mechanism, size)
                > 2 * each(audit, "local_bound", mechanism, size)
            )
            for size in (30, 60)
        ]
        close(row["over own 2Δ"], max(shares))
        error = [utility["error"][one, 60] for one in (mechanism, "Unweighted")]
        close(row["error"], error[0] / error[1])


def test_a_database_with_a_lone_40_has_its_largest_losses_beside_two_delta():
    ours = MadeUp()
    here = after(
        "privacy_audit", "extreme = audits.exact", audits=ours, words=WORDS, **SETTINGS
    )
    (table,) = here.tables
    values, times = np.unique(ours.asked[0][0], return_counts=True)
    assert dict(zip(values, times, strict=True)) == {3: 100, 12: 50, 40: 1}
    given = ours.asked[0][1]
    assert given["public"] == (2, 12) and given["truncate_at"] == 1.5
    assert (given["shape"], given["rate"]) == (1, 0.1)
    assert [*table.index] == ["Weighted", "Weighted-M"]
    for mechanism, row in table.iterrows():
        one = ours.made[0].sel(mechanism=mechanism)
        close(row["2Δ"], 2 * one["local_bound"].item())
        for kind, words in WORDS.items():
            close(row[words], one[f"loss_{kind}"].max().item())


def test_tails_of_a_bound_are_told_and_drawn_at_their_number_of_draws(capsys):
    given = SETTINGS | {"draws": 60, "sizes": [20]}
    here = after(
        "privacy_audit",
        "many = max(",
        "def expected_bound",
        "expected maximum over S draws",
        audits=audits,
        special=special,
        **given,
    )
    said = capsys.readouterr().out
    maxima = here.maxima
    known = ppm.fit(here.records, ppm.ByRisk(), draws=2000, random_seed=5)
    close(maxima.max(), known.local_bound)
    for outside in 0.05, 0.01:
        curve = {line.get_label(): line for line in here.figure.axes[0].lines}
        x, y = curve[f"all but {outside:g} of the posterior"].get_xydata().T
        close(x, [300, 1000, 2000])
        tails = [
            audits.tail_bound(maxima[:n], tail_probability=outside)
            for n in (300, 1000, 2000)
        ]
        close(y, [tail.bound for tail in tails])
    assert f"2Δ = {2 * tails[-1].bound:.2f} leaves out at most 0.01 of" in said
    assert f"2Δ = {2 * maxima.max():.2f}, the maximum, at most" in said
    assert f"{tails[-1].beyond_largest:.2g}" in said
    assert said.startswith(f"{tails[-1].confidence:.0%} confidence, 2,000 draws")
    x, y = curve["expected maximum over S draws"].get_xydata().T
    close(x, [10, 30, 100, 300, 1000, 2000])
    close(y, [here.expected_bound(maxima, int(number)) for number in x])
    close(y[-1], maxima.max())


def test_a_refit_and_an_attack_have_the_weights_of_their_names(capsys):
    rules, attacks = {}, []

    def sampled(model, records, rule, *, draws, random_seed):
        rules[records[0], len(rules)] = rule
        return SimpleNamespace()

    def membership_test(with_record, without_record, score, *, runs, random_seed):
        attacks.append([run(random_seed) for run in (with_record, without_record)])
        return "it"

    given = SETTINGS | {
        "truncate_at": 2.0,
        "audits": SimpleNamespace(sampled=sampled, membership_test=membership_test),
    }
    here = after("privacy_audit", "refits = {", **given)
    # over all means from 2 to 10
    mu = np.linspace(2, 10, 20_001)
    bounds = np.abs(stats.poisson.logpmf(COUNTS[:, None], mu)).max(axis=1)
    close(here.own, np.minimum(1, 2 / bounds), rtol=1e-6)
    assert [record for record, _ in rules] == [7] * 4
    names = ["weights all 1", "Weighted", "Weighted-M", "Capped"]
    assert [*here.refits] == names
    known = [ppm.Unweighted(), ppm.ByRisk(), ppm.ByRisk(truncate_at=2.0)]
    assert [*rules.values()][:3] == known
    close([*rules.values()][3].weights, here.own)
    weighed = []
    library = SimpleNamespace(
        GammaPoisson=ppm.GammaPoisson,
        Given=lambda weights: weights,
        fit=lambda model, weights, **_: (
            weighed.append(weights) or SimpleNamespace(release=lambda *_, **__: None)
        ),
    )
    given |= {"own": here.own, "households": here.households, "ppm": library}
    after(
        "privacy_audit",
        "left_out[7] = 0.0",
        **given | {"seed": np.random.SeedSequence(1)},
    )
    without_h = np.arange(8) != 7
    known = [np.ones(8), without_h * 1.0, here.own, here.own * without_h]
    close(weighed, known)


# ---- what is weaker ------------------------------------------------------------------------------


def test_weights_of_a_changed_table_and_the_loss_of_its_bound(capsys):
    here = after("what_is_weaker", "beside_h = ppm", log_softmax=special.log_softmax)
    # as the house of the picture has them
    changed = [3, 4, 4, 5, 5, 12, 7, 18]
    found = household.state(changed, 7, again=True, truncate_at=5)
    said = re.findall(r"(\d+\.\d+) nats", capsys.readouterr().out)
    assert said == [f"{found.loss:.2f}", f"{2 * found.delta:.2f}"]
    (table,) = here.tables
    close(table["with H"], found.weights)
    close(table["H away"], found.left)


@pytest.fixture(scope="module")
def weaker():
    """The chapter's cells on one household that leaves."""
    return after(
        "what_is_weaker",
        "def run(records, random_seed, M=None)",
        "log_density = {",
        "words = f\"{'All seven'",
        "def loss_of_draws",
        "def beside(records",
        "growth.items()",
        "def table_total",
        "one_table = {",
        logsumexp=special.logsumexp,
        **SETTINGS | {"draws": 40, "truncate_at": 3.5},
    )


def posterior(records, weights):
    records, weights = np.asarray(records), np.asarray(weights)
    return stats.gamma(1 + weights @ records, scale=1 / (0.1 + weights.sum()))


def test_the_posterior_of_a_household_that_leaves_is_that_of_its_weights(weaker):
    whole, again = (weaker.run(one, 5) for one in (COUNTS, COUNTS[:-1]))
    weights = weaker.tables[0]
    close(weights["with H"], whole.weights)
    close(weights["without H"], [*again.weights, np.nan])
    ways = {
        "with H": (COUNTS, whole.weights),
        "weights frozen": (COUNTS[:-1], whole.weights[:-1]),
        "weights computed again": (COUNTS[:-1], again.weights),
    }
    mu = np.sort(whole.theta["mu"])
    of = {way: posterior(*one).logpdf(mu) for way, one in ways.items()}
    highest = weaker.tables[1]
    close(highest["2Δ"], 2 * whole.local_bound)
    for way in highest.index:
        close(highest.loc[way, "largest loss"], np.abs(of["with H"] - of[way]).max())
    assert [*highest.index] == [*ways][1:]
    left, right = weaker.figures[0].axes
    for line, name in zip(left.lines, "ABCDEFGH", strict=True):
        row = [whole.weights[7]] if name == "H" else weights.loc[name]
        assert line.get_label() == name
        close(line.get_ydata(), row)
    for line, way in zip(right.lines, ways, strict=True):
        assert line.get_label() == way
        close(line.get_xydata(), np.c_[mu, np.exp(of[way])])
    moved = np.abs(whole.weights[:7] - again.weights) > 0.01
    said = "All seven" if moved.all() else f"{moved.sum()} of seven"
    assert left.get_title() == f"{said} weights move"


def test_the_loss_of_a_lone_forty_is_that_of_its_draws(weaker):
    table = weaker.tables[2]
    lone = np.repeat([3, 12, 40], [100, 50, 1])
    assert len(table) == 8
    for (rule, at), row in table.iterrows():
        by_risk = ppm.ByRisk(truncate_at=3.5 if rule == "Weighted-M" else None)
        before, after_it = (
            ppm.fit(
                ppm.GammaPoisson(one, shape=1, rate=0.1),
                by_risk,
                draws=40,
                random_seed=int(at),
            )
            for one in (lone, lone[:-1])
        )
        mu = before.theta["mu"]
        lost = posterior(lone, before.weights).logpdf(mu)
        lost = np.abs(lost - posterior(lone[:-1], after_it.weights).logpdf(mu))
        close(row["weight of a 12"], before.weights[lone == 12].mean())
        close(row["without the 40"], after_it.weights[lone[:-1] == 12].mean())
        close(row["smallest loss"], lost.min())
        close(row["largest loss"], lost.max())
        close(row["2Δ"], 2 * before.local_bound)


def test_a_record_among_many_alike_and_with_the_scale_held(weaker):
    growth = weaker.growth
    assert [*growth.index] == [150 * k + 1 for k in (2, 4, 8, 16, 32, 64)]
    (axes,) = weaker.figures[1].axes
    curves = {line.get_label(): line.get_xydata() for line in axes.lines[:3]}
    for column in growth:
        close(curves[column], np.c_[growth.index, growth[column]])
    for k in (2, 8):
        for column, forties in {
            "a lone 40": 1,
            "one 40 of many": k,
            "a lone 40, scale held": 1,
        }.items():
            records = np.repeat([3, 12, 40], [100 * k, 50 * k, forties])
            before, again = weaker.run(records, 5), weaker.run(records[:-1], 5)
            weights = again.weights
            if column.endswith("held"):
                of = before.unweighted.record_bounds
                ours = again.unweighted.record_bounds
                weights = 1 - (ours - of.min()) / (of.max() - of.min())
                weights = np.minimum(np.maximum(weights, 0), 1)
            mu = before.theta["mu"]
            lost = posterior(records, before.weights).logpdf(mu)
            lost = lost - posterior(records[:-1], weights).logpdf(mu)
            share = np.abs(lost).max() / (2 * before.local_bound)
            close(growth.loc[150 * k + 1, column], share)


def test_totals_of_tables_have_their_law_and_speak_for_the_likelier(weaker):
    weights = np.linspace(0.2, 0.9, 8)
    law, mu = weaker.table_total(COUNTS, weights), posterior(COUNTS, weights)
    # eight counts of one mean
    close([law.mean(), law.var()], [8 * mu.mean(), 8 * mu.mean() + 64 * mu.var()])
    laws, totals = [law, stats.nbinom(3, 0.1)], np.array([[3, 9], [40, 0]])
    known = [[np.prod(one.pmf(row)) for one in laws] for row in totals]
    close(np.exp(weaker.log_likelihood(laws, totals)), np.sum(known, axis=1))
    strips, ratio = weaker.figures[2].axes
    of = {
        "with H": weaker.table_total(COUNTS, weaker.with_h.weights),
        "H away": weaker.table_total(COUNTS[:-1], weaker.without_h.weights),
    }
    dots, words = strips.lines[::2], [text.get_text() for text in strips.texts]
    for (name, law), line, average, text in zip(
        of.items(), dots, strips.lines[1::2], words, strict=True
    ):
        x, heights = line.get_xydata().T
        close(law.cdf(x), (np.arange(20) + 0.5) / 20, atol=law.pmf(x).max() + 1e-9)
        assert (law.cdf(x - 1) < (np.arange(20) + 0.5) / 20).all()
        assert {*heights} == {1.0 if name == "with H" else 0.0}
        close(average.get_xdata(), law.mean())
        assert text == f"{name}: average {law.mean():.0f}"
    totals = np.arange(15, 86)
    says = of["with H"].logpmf(totals) - of["H away"].logpmf(totals)
    close(ratio.lines[0].get_xydata(), np.c_[totals, says])


def test_an_attack_detects_as_often_as_its_law_says():
    cell = cell_of("what_is_weaker", "def detected(known")
    rng, ours = np.random.default_rng(1), SimpleNamespace
    names = {
        "np": np,
        "rng": rng,
        "seed": 1,
        "counts": COUNTS,
        "logsumexp": special.logsumexp,
    }
    exec(cell_of("what_is_weaker", "def table_total"), names | {"stats": stats}, names)
    names |= {"run": lambda x, s: ours(weights=np.full(x.size, 0.5)), "stats": stats}
    exec(cell.replace("100_000", "20_000"), names)
    of, detected = names["power"], names["detected"]
    for (name, m), found in of.items():
        weight = 1.0 if name.startswith("Ordinary") else 0.5
        inside, outside = (
            8
            * posterior(one, np.full(one.size, weight)).rvs(
                (20_000, m), random_state=rng
            )
            for one in (COUNTS, COUNTS[:-1])
        )
        inside, outside = (rng.poisson(one).sum(axis=1) for one in (inside, outside))
        share = np.mean(inside > np.quantile(outside, 0.95))
        close(found["total"], share, atol=0.025)
        # the best attack of all finds no less
        assert found["likelihood ratio"] > found["total"] - 0.03
    # of Poisson totals both attacks are one
    laws = [[stats.poisson(12)], [stats.poisson(8)]]
    found = detected(laws, laws, 3)
    exact = stats.poisson(36).sf(stats.poisson(24).ppf(0.95))
    close([*found.values()], exact, atol=0.015)


def test_own_weights_lose_no_more_than_their_width(capsys):
    mu = np.linspace(2, 12, 101)
    here = after(
        "what_is_weaker",
        "def own(records)",
        log_softmax=special.log_softmax,
        counts=COUNTS,
        means=mu,
        households=household.HOUSEHOLDS,
        **SETTINGS,
    )
    said = re.findall(r"(\d+\.\d+) nats", capsys.readouterr().out)
    bounds = np.abs(stats.poisson.logpmf(COUNTS[:, None], mu)).max(axis=1)
    span = np.ptp(stats.poisson.logpmf(COUNTS[:, None], mu), axis=1)
    (table,) = here.tables
    known = ppm.fit(
        ppm.Candidates(ppm.GammaPoisson(COUNTS), {"mu": mu}), ppm.Capped(1.0), draws=1
    ).weights
    close(table["with H"], known)
    close(table["H away"], [*known[:7], 0])
    assert (known * span <= 1 + 1e-9).all() and bounds.max() > 1
    log_p = stats.poisson.logpmf(COUNTS[:, None], mu)
    laws = [
        np.exp((alpha[:, None] * log_p).sum(axis=0))
        for alpha in (known, known * (np.arange(8) < 7))
    ]
    ratio = np.log(laws[0] / laws[0].sum()) - np.log(laws[1] / laws[1].sum())
    assert said == [f"{np.abs(ratio).max():.2f}", "1.00"]


def test_shares_above_their_own_bound_are_counted_over_databases():
    ours = MadeUp()
    here = after(
        "what_is_weaker",
        'audit[["local_bound", "loss_fixed", "loss_common"]]',
        "again_above = above.xs",
        "jitter = np.random",
        audits=ours,
        running=RUNNING,
        pd=pd,
        **SETTINGS,
    )
    assert all(np.allclose(one["public"], [90, 110]) for _, one in ours.asked)
    rules = ["Unweighted", "Weighted", "Weighted-M"]
    strips, along = here.figure.axes
    for height, rule in enumerate(rules):
        for size, some in {30: ours.made[:7], 60: ours.made[7:]}.items():
            two_delta, fixed, common = (
                np.array([one[name].sel(mechanism=rule).max().item() for one in some])
                for name in ("local_bound", "loss_fixed", "loss_common")
            )
            two_delta = 2 * two_delta
            for kind, lost in {"fixed": fixed, "common": common}.items():
                row = here.above.loc[rule, size, kind]
                close(row["exceeded"], (lost > two_delta).sum())
                close(row["estimate"], (lost > two_delta).sum() / 7)
            medians = here.by_rule.median().loc[rule, size]
            close(
                medians[["2Δ", "fixed", "common"]],
                [np.median(one) for one in (two_delta, fixed, common)],
            )
        # the last size's
        line = strips.lines[height]
        close(np.sort(line.get_xdata()), np.sort(common / two_delta))
        close(line.get_ydata(), height, atol=0.25)
    assert [tick.get_text() for tick in strips.get_yticklabels()] == rules
    (container,) = along.containers
    over = here.again_above.loc["Weighted-M"]
    close(container[0].get_ydata(), 100 * over["estimate"])
    assert [text.get_text() for text in along.texts] == [
        f"{100 * one:.0f} %" for one in over["estimate"]
    ]
    assert f"{over['exceeded'].iloc[-1]:.0f} of 7\nabove" in strips.texts[1].get_text()
    # who crosses the line is in the title
    over = {rule for rule in rules if here.above.loc[rule, 60, "common"]["exceeded"]}
    alone = over == {"Weighted-M"}
    assert (strips.get_title().find("Weighted-M alone") > 0) == alone


def test_seeds_of_an_attacker_are_others_than_the_agency_s():
    asked, known = [], {}

    def laws(weigh, seeds):
        asked.append([*seeds])
        return asked[-1]

    def detected(guessed, used, m, times):
        assert (guessed, used) == tuple(asked) and times >= 1000
        return {"total": m / 100, "likelihood ratio": m / 50}

    for m in (1, 3, 20):
        known["With weights", m] = {"total": m / 200, "likelihood ratio": m / 150}
    here = after(
        "what_is_weaker",
        "guessed, used = (",
        power=known,
        **{"laws": laws, "detected": detected, "run": None},
    )
    guessed, used = map(set, asked)
    assert len(guessed) == len(used) == 200 and not guessed & used
    (table,) = here.tables
    assert [*table] == ["from 1", "from 3", "from 20"]
    for m in (1, 3, 20):
        for attack, shares in {
            "total": (200, 100),
            "likelihood ratio": (150, 50),
        }.items():
            for release, share in zip(
                ("With weights", "Without the seed"), shares, strict=True
            ):
                close(table.loc[(release, attack), f"from {m}"], 100 * m / share)
                close(here.power.loc[(release, attack), m], m / share)
