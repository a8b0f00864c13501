"""What cells of the chapters on strict ε show, against other ways to compute it."""

import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from cells import after
from scipy import stats

import ppm
from ppm_book.chapters import household, strict

close = np.testing.assert_allclose
COUNTS = np.array(household.COUNTS)


def worst_loss(model, terms_of, records):
    """Largest |log ratio| over a list of candidates, if each record leaves."""
    whole = model.probabilities(terms_of(np.ones(records)))
    found = []
    for j in range(records):
        kept = np.arange(records) != j
        found.append(
            np.abs(np.log(whole / model.probabilities(terms_of(kept * 1.0)))).max()
        )
    return np.array(found)


# ---- hard limits ---------------------------------------------------------------------------------


def test_a_loss_stands_beside_its_two_bounds_for_each_household():
    here = after("strict_more", "def losses")
    (table,) = here.tables
    mu = np.linspace(2, 12, 101)
    model = ppm.Candidates(ppm.GammaPoisson(COUNTS), {"mu": mu})
    log_p = stats.poisson(mu[:, None]).logpmf(COUNTS)
    assert [*table.index] == household.HOUSEHOLDS
    close(table["visits"], COUNTS)
    close(table["loss"], worst_loss(model, ppm.Terms, 8))
    close(table["oscillation"], log_p.max(axis=0) - log_p.min(axis=0))
    close(table["twice the largest |log p|"], 2 * ppm.record_bounds(log_p))


def test_limits_of_each_place_have_their_width_their_loss_and_their_posterior():
    here = after("strict_more", "def losses", "placements = {}")
    table, mu = here.tables[1], here.mu
    model = ppm.GammaPoisson(COUNTS)
    log_p = model.log_p({"mu": mu})
    at_five = model.log_p({"mu": np.array([5.0])})
    assert len(table) == 5
    for name, row in table.iterrows():
        low, high = map(float, re.findall(r"-?\d+\.?\d*", name))
        one = log_p - at_five if name.startswith("centred") else log_p
        terms = np.minimum(np.maximum(one, low), high)

        def law(kept, terms=terms):
            density = np.exp(terms[:, kept].sum(axis=1))
            return density / density.sum()

        of_all = law(np.arange(8) < 8)
        lost = [np.abs(np.log(law(np.arange(8) != j) / of_all)).max() for j in range(8)]
        close(row["width W"], high - low)
        close(row["largest loss"], max(lost), atol=1e-9)
        assert max(lost) <= row["width W"] + 1e-9
        close(row["mean of μ"], np.average(mu, weights=of_all))
        spread = stats.rv_discrete(values=(np.arange(101), of_all)).std() / 10
        close(row["sd of μ"], spread)


def test_weights_that_are_read_again_lose_more_than_a_width(capsys):
    after("strict_more", "def losses", "crowd = np.append")
    told = [float(x) for x in re.findall(r": (\d+\.\d) nats", capsys.readouterr().out)]
    crowd = np.r_[np.tile(COUNTS[:-1], 20), 18]
    mu = np.linspace(2, 12, 101)

    def law(records, weights):
        log_p = stats.poisson(mu[:, None]).logpmf(records)
        total = np.clip(log_p * weights, -1, 1).sum(axis=1)
        return total - np.log(np.exp(total - total.max()).sum()) - total.max()

    def by_risk(records):
        log_p = stats.poisson(mu[:, None]).logpmf(records)
        return ppm.record_weights(ppm.record_bounds(log_p))

    before = by_risk(crowd)
    again = [before[:-1], by_risk(crowd[:-1])]
    lost = [np.abs(law(crowd, before) - law(crowd[:-1], kept)).max() for kept in again]
    assert told == [round(one, 1) for one in lost]


def test_a_draw_under_limits_narrows_with_its_records_as_its_density_says():
    here = after(
        "strict_more", "def average_term", "average_term(values, shares, weight, t))"
    )
    (table,) = here.tables
    assert here.saved["draws_under_limits"] is table
    quantiles = stats.norm(0.25).ppf(np.linspace(0, 1, 2001)[1::2])
    columns = {
        "normal": (quantiles, np.ones(1000) / 1000, 4_001),
        "yes or no": (np.array([-0.5, 2.0]), np.array([0.7, 0.3]), 1_000_001),
    }
    assert [*table.index] == [(one, a) for one in columns for a in (0.05, 0.2, 0.5)]
    for (column, weight), row in table.iterrows():
        values, shares, points = columns[column]
        t = np.linspace(-0.5, 0.5, points)
        # log p of a value, less that at 0
        term = (
            sum(
                share
                * np.clip(
                    weight * (stats.norm.logpdf(x - t) - stats.norm.logpdf(x)),
                    -0.05,
                    0.05,
                )
                for x, share in zip(values, shares, strict=True)
            )
            if column != "normal"
            else shares
            @ np.clip(
                weight
                * (
                    stats.norm.logpdf(values[:, None] - t)
                    - stats.norm.logpdf(values)[:, None]
                ),
                -0.05,
                0.05,
            )
        )
        moments = {}
        for n in (10_000, 100_000, 1_000_000):
            density = np.exp(n * (term - term.max()))
            mean = np.average(t, weights=density)
            moments[n] = mean, np.sqrt(np.average((t - mean) ** 2, weights=density))
            assert row[f"sd, n = {n:,}"] == f"{moments[n][1]:.1e}"
        sds = moments[1_000_000][1], moments[10_000][1]
        close(float(row["exponent of n"]), np.log(sds[0] / sds[1]) / np.log(100))
        close(float(row["mean of a draw"]), moments[1_000_000][0], rtol=1e-5)
    # nothing is cut off at the smallest weight: a normal density of variance 1 / nα
    free = table.loc["yes or no", 0.05]
    close(float(free["exponent of n"]), -0.5, atol=1e-4)
    assert free["sd, n = 10,000"] == f"{(10_000 * 0.05) ** -0.5:.1e}"
    close(float(free["mean of a draw"]), 0.25, atol=1e-5)
    # and the average terms of the second column, with its mean
    for axes, weight in zip(here.figure.axes, (0.05, 0.2, 0.5), strict=True):
        assert axes.get_title() == f"weight {weight:g}"
        curve, level = axes.lines
        t, term = curve.get_xydata().T
        ours = [np.clip(weight * (t * x - t**2 / 2), -0.05, 0.05) for x in (2.0, -0.5)]
        close(term, 0.3 * ours[0] + 0.7 * ours[1], atol=1e-12)
        close([t[0], t[-1], *level.get_xdata()], [-0.5, 0.5, 0.25, 0.25])


def test_only_incomes_of_lower_degrees_fall_by_a_fifth(capsys):
    groups = ["bachelor's", "high school graduate", "other", "associate's"]
    table = pd.DataFrame({"group": groups, "income": [10.0, 20.0, 30.0, -40.0]})
    here = after(
        "strict_more",
        "def fall(table)",
        strict=SimpleNamespace(last_and_this_year=lambda *_: (table, table[:3])),
        **{"ce_data": "", "records": 0, "seed": 1},
    )
    close(here.fall(table), [10, 16, 24, -40])
    said = "4 published incomes, 3 confidential ones\n"
    assert capsys.readouterr().out == said


def test_each_mechanism_is_the_one_that_its_name_says():
    here = after(
        "strict_more",
        '"own weights": strict.posterior(power)',
        strict=strict,
        power=0.5,
    )
    own, *limits = [*here.MECHANISMS.values()][2:]
    assert str(own) == str(strict.posterior(0.5)) and own.center is None
    for name, one in [*here.MECHANISMS.items()][3:]:
        assert name == f"limits, α = {one.weight:g}"
    assert sorted(one.weight for one in limits) == [0.1, 0.3, 1, 10, 100]


def test_a_row_of_costs_has_the_averages_of_its_mechanism_at_this_width():
    rng, names = np.random.default_rng(1), ["published", "bins", "own", "free"]
    ends = {"published": [0.0], "free": [np.inf]}
    places = [(one, w) for one in names for w in ends.get(one, [0.1, 0.5])]
    rows = [
        (*place, *rng.exponential(size=2), rng.normal(50, 30))
        for place in places
        for _ in range(3)
    ]
    kept = pd.DataFrame(rows, columns=["mechanism", "ε", "levels", "change", "share"])
    difference = {"levels": (2.0, 0.5), "change": (-3.0, 1.0)}
    here = after(
        "strict_more",
        "def less_bins",
        "def costs(width)",
        BINS="Bins",
        MECHANISMS={"Bins": "bins", "Own": "own"},
        NAMES={"bins": "Bins", "own": "Own"},
        found=SimpleNamespace(
            losses=kept.drop(columns="share"),
            runs=kept.drop(columns=["levels", "change"]),
            difference=lambda row, other, goal: difference[goal],
        ),
        widths=[0.1, 0.5],
        releases=3,
    )
    saved = here.saved["costs_of_limits"]
    assert here.tables[0].equals(saved.loc[0.1])
    for width in (0.1, 0.5):
        table = saved.loc[width]
        rows = {"published": ("published", 0.0), "Bins": ("bins", width)}
        rows |= {"Own": ("own", width), "free": ("free", np.inf)}
        assert [*table.index] == [*rows]
        for name, (mechanism, at) in rows.items():
            own = kept[(kept["mechanism"] == mechanism) & (kept["ε"] == at)]
            row = table.loc[name]
            assert row["levels off by"] == f"{own['levels'].sum() / 3:.1f}"
            assert row["off by"] == f"{own['change'].sum() / 3:.1f}"
            share = own["share"].to_numpy()
            middle = share.sum() / 3
            spread = np.sqrt(((share - middle) ** 2).sum() / 2)
            assert row["fall shown"] == f"{middle:.0f} ± {spread:.0f}"
        assert table.loc["Own", "less Bins'"] == "+1.0 to +3.0"
        assert table.loc["Own", "off by, less Bins'"] == "-5.0 to -1.0"


@pytest.mark.parametrize("widths", [[0.1, 0.25, 1.0], [0.1, 0.5]])
def test_each_table_of_costs_is_that_of_its_caption(widths):
    rows = [
        ("published", 0.0),
        *(("bins", width) for width in widths),
        ("free", np.inf),
    ]
    errors = pd.DataFrame(
        {"levels": [width for _, width in rows], "change": 1.0},
        pd.MultiIndex.from_tuples(rows),
    )
    here = after(
        "strict_more",
        "def costs(width)",
        "if width != planned",
        display=lambda _: None,
        errors=errors,
        shown=pd.DataFrame({"mean": 1.0, "std": 1.0}, errors.index),
        less_bins=lambda *_: "",
        NAMES={"bins": "Bins"},
        widths=widths,
        releases=3,
    )
    # that of the plan in sight, and the others folded
    planned = 0.25 if 0.25 in widths else 0.1
    order = sorted(widths, key=lambda width: width != planned)
    for table, words, width in zip(here.tables, here.captions, order, strict=True):
        assert words.startswith(f"ε = {width:g}: ")
        assert table.loc["Bins", "levels off by"] == f"{width:.1f}"
