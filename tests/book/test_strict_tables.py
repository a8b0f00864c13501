"""What cells of the chapters on strict ε show, against other ways to compute it."""

import contextlib
import re
import tempfile
import warnings
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from cells import after, cell_of
from scipy import stats

import ppm
from ppm_book.chapters import household, strict, survey

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
    places = ["-0.5 to 0.5", "-2.5 to -1.5", "-6 to -5", "-3.5 to -1.5"]
    assert [*table.index] == [*places, "centred, -0.5 to 0.5"]
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
    def coarser(*place):
        # as many points as the narrowest draw needs take seconds
        return cell_of(*place).replace("1_000_001", "50_001")

    with patch("cells.cell_of", coarser):
        here = after(
            "strict_more",
            "def average_term",
            "average_term(values, shares, weight, t))",
        )
    (table,) = here.tables
    assert here.saved["draws_under_limits"] is table
    quantiles = stats.norm(0.25).ppf(np.linspace(0, 1, 2001)[1::2])
    columns = {
        "normal": (quantiles, np.ones(1000) / 1000, 4_001),
        "yes or no": (np.array([-0.5, 2.0]), np.array([0.7, 0.3]), 50_001),
    }
    assert [*table.index] == [(one, a) for one in columns for a in (0.05, 0.2, 0.5)]
    # log p of each value, less that at 0
    moved = {}
    for column, (values, _, points) in columns.items():
        t = np.linspace(-0.5, 0.5, points)
        at_0 = stats.norm.logpdf(values)[:, None]
        moved[column] = t, stats.norm.logpdf(values[:, None] - t) - at_0
    for (column, weight), row in table.iterrows():
        t, change = moved[column]
        term = columns[column][1] @ np.clip(weight * change, -0.05, 0.05)
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
    of_release = {"ppm": ppm, "pd": pd}
    source = cell_of("strict_release", "bins = ppm.release.Bins")
    exec("\n".join(source.splitlines()[:2]), of_release)
    first = [of_release["bins"], of_release["means"]]
    assert [*here.MECHANISMS.values()][:2] == first
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


# ---- the strict release --------------------------------------------------------------------------


def survey_of(education, income):
    table = pd.DataFrame({"education": education, "income": income})
    return SimpleNamespace(
        table=table, subsample=lambda *_, **__: survey_of(education, income)
    )


def test_groups_of_a_release_are_those_of_the_next_chapter(monkeypatch, capsys):
    sizes = {"a": 99, "b": 100, "c": 101}
    first = survey_of(np.repeat([*sizes], [*sizes.values()]), np.arange(300.0))
    second = survey_of([*"abcd"], [1.0, 2.0, 3.0, 4.0])
    whole = SimpleNamespace(by_quarter=lambda: (first, second))
    survey = SimpleNamespace(load=lambda *_, **__: whole)
    monkeypatch.setattr(strict, "survey", survey)
    given = {"ce_data": "", "records": 0, "seed": 1}
    here = after("strict_release", "def with_groups", survey=survey, **given)
    known = strict.last_and_this_year(**given)
    assert here.last_year.equals(known[0])
    assert here.with_groups(here.confidential).equals(known[1])
    assert [*known[1]["group"]] == ["other", "b", "c", "other"]
    said = "300 published incomes, in 3 groups\n"
    assert capsys.readouterr().out == said


def test_released_means_of_groups_stand_beside_the_published_ones(tmp_path, capsys):
    def table(*incomes):
        return pd.DataFrame({"group": [*"aab"], "income": np.array(incomes)})

    asked = []
    release = SimpleNamespace(
        statement="One. Two; three.", synthetic=table(5e3, 7e3, 9e3)
    )
    chosen = SimpleNamespace(
        mechanism="Means", save=lambda _: None, release=lambda *_, **__: release
    )

    def best(goal, epsilon):
        asked.append((goal, epsilon))
        return chosen

    for widths in [0.05, 0.1, 0.25], [0.5, 1.0]:
        source = cell_of("strict_release", "chosen = rehearsal.best")
        *_, last = source.partition("incomes = {")
        names = {
            **{"np": np, "pd": pd, "Path": Path, "tempfile": tempfile},
            **{"warnings": warnings, "widths": widths, "confidential": None},
            "ppm": SimpleNamespace(release=SimpleNamespace(Confidential=lambda _: _)),
            "rehearsal": SimpleNamespace(best=best),
            "with_groups": lambda _: None,
            "last_year": table(1e3, 4e3, 2e3),
        }
        exec(source, names)
        shown = eval(last[last.index("pd.DataFrame") :], names)
        close(shown.loc[["a", "b"], "published"], [2500, 2000])
        close(shown.loc[["a", "b"], "released"], [6000, 9000])
    assert asked == [("change", 0.1), ("change", 0.5)]


def test_own_weights_have_the_list_of_the_next_chapter():
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"income": rng.lognormal(11, 1, 50)})
    limits = SimpleNamespace(limits={"income": strict.LIMITS})
    given = {"power": 0.3, "plan": limits, "survey": survey}
    here = after("strict_release", "def candidates(table", **given)
    known, found = strict.posterior(0.3), here.candidates(table)
    assert found.keys() == {"beta", "sigma"}
    for name, values in known.candidates(table).items():
        close(found[name], values)
    values = survey.power_income(table["income"].to_numpy(), 0.3)
    close(here.dollars(values), table["income"])
    far = np.array([-1e3, 1e3])
    close(here.dollars(far), known.back(far))
    fits = [
        ppm.fit(of(table), ppm.Unweighted(), draws=5, random_seed=1)
        for of in (here.own.build, known.build)
    ]
    close(*(fit.record_bounds for fit in fits))


def test_each_mark_of_the_comparison_is_the_error_of_its_mechanism_and_width():
    goals, widths = ["levels, unchanged", "change", "shapes"], [0.1, 0.5]
    names = {"Own weights": "own", "Bins": "bins", "Means": "means"}
    places = [("published", 0.0)]
    places += [(one, width) for one in names.values() for width in widths]
    places += [("free", np.inf)]
    numbers = np.random.default_rng(1).exponential(size=(8, 3))
    index = pd.MultiIndex.from_tuples(places)
    table = pd.DataFrame(numbers, index, goals)
    here = after(
        "strict_release",
        "questions = {",
        compared=SimpleNamespace(table=table),
        widths=widths,
        **{"own": "own", "bins": "bins", "means": "means"},
    )
    titles = "means:", "level changed", "shape changed"
    for axes, goal, words in zip(here.figure.axes, goals, titles, strict=True):
        assert words in axes.get_title()
        ends = {line.get_label(): line.get_xdata()[0] for line in axes.lines}
        assert ends == {
            "published": table[goal]["published", 0.0],
            "unprotected": table[goal]["free", np.inf],
        }
        assert len(axes.collections) == 2
        for marks, width in zip(axes.collections, widths, strict=True):
            assert marks.get_label() == f"ε = {width:g}"
            errors = marks.get_offsets()[:, 0]
            close(errors, [table[goal][one, width] for one in names.values()])
    ticks = here.figure.axes[0].get_yticklabels()
    assert [tick.get_text() for tick in ticks] == [*names]


def test_each_curve_of_noise_has_its_name_at_its_end():
    here = after("strict_release", '"a noisy sum"', epsilon=0.1)
    (axes,) = here.figure.axes
    for line, text in zip(axes.lines, axes.texts, strict=True):
        x, y = line.get_xydata().T
        close(x, here.n)
        close(y, here.noises[text.get_text()])
        close(text.get_position()[1], y[-1])
        assert text.get_color() == line.get_color()


# ---- your own model ------------------------------------------------------------------------------


class Recorder:
    """In place of PyMC: keeps priors, and what the answers are said to depend on."""

    def __init__(self):
        self.priors = {}

    def Model(self):
        return contextlib.nullcontext(self)

    def Normal(self, name, mean, sd, shape=None):
        self.priors[name] = mean, sd, shape
        return {"intercept": 0.5, "slope": np.array([-0.7, 1.1])}[name]

    def Bernoulli(self, name, logit_p, observed):
        self.logit, self.observed = logit_p, observed


def test_a_model_has_the_answers_that_the_survey_asks_for():
    pm = Recorder()
    here = after("your_own_model", "def asked(", "def build(table)", pm=pm, seed=1)
    crowd = here.asked(200_000, -1.4, np.random.default_rng(2))
    for age, insured in (20, 0), (45, 1), (79, 1):
        alike = crowd[(crowd["age"] == age) & (crowd["insured"] == insured)]
        logit = 0.3 - 0.03 * (age - 45) - 1.4 * insured
        law = stats.bernoulli(1 / (1 + np.exp(-logit)))
        close(
            alike["answer"].mean(), law.mean(), atol=5 * law.std() / len(alike) ** 0.5
        )
    assert crowd["age"].agg(["min", "max"]).tolist() == [18, 79]
    close(crowd["insured"].mean(), 0.8, atol=0.01)
    table = crowd.head(5)
    here.build(table)
    logit = 0.5 - 0.7 * (table["age"] - 45) / 10 + 1.1 * table["insured"]
    close(pm.logit, logit)
    assert np.array_equal(pm.observed, table["answer"])
    assert pm.priors == {"intercept": (0, 2, None), "slope": (0, 1, 2)}


def test_a_prior_around_the_table_s_share_is_the_one_that_is_refused(capsys):
    pm, refused = Recorder(), ValueError("a prior that reads the records")

    def from_records(build, table, **_):
        build(table)
        return SimpleNamespace(check_own_terms=lambda: (_ for _ in ()).throw(refused))

    after(
        "your_own_model",
        "def build_with_centred_prior",
        pm=pm,
        ppm=SimpleNamespace(PyMCModel=SimpleNamespace(from_records=from_records)),
        new_table=pd.DataFrame({"answer": [1, 0, 0, 1, 0]}),
        own={},
    )
    mean, sd, _ = pm.priors["intercept"]
    close([mean, sd], [stats.logistic.ppf(2 / 5), 2])
    assert capsys.readouterr().out == f"{refused}\n"


def test_a_strict_fit_has_its_list_and_its_center_from_published_answers(capsys):
    fits, tables = [], []
    theta = {
        "intercept": np.array([1.0, 2.0, 6.0]),
        "slope": np.arange(6.0).reshape(3, 2),
    }

    def fit(model, rule, draws, random_seed):
        fits.append((model, rule, draws))
        strict = SimpleNamespace(epsilon=lambda: 1.0, strict=True, theta=theta)
        strict.release = lambda m, random_seed: m
        return strict

    def from_records(build, table, **own):
        tables.append(table)
        return own

    library = {name: getattr(ppm, name) for name in ("Given", "Limited", "Limits")}
    published = pd.DataFrame({"age": range(30), "answer": 1})
    after(
        "your_own_model",
        "tenth = ppm.Given",
        ppm=SimpleNamespace(
            **library,
            fit=fit,
            Candidates=lambda model, candidates: ("listed", candidates),
            PyMCModel=SimpleNamespace(from_records=from_records),
        ),
        asked=lambda people, insurance, rng: (people, insurance),
        table=published,
        model="published",
        build=None,
        **{"draws": 8, "seed": 1, "release_seeds": [0, 1]},
    )
    (first, weights, draws), (listed, limited, one) = fits
    assert (first, draws, one) == ("published", 40, 1)
    close(weights.weights, np.full(30, 0.1))
    assert listed == ("listed", theta) and tables == [(1000, -0.6)]
    center = {"intercept": 3.0, "slope": np.array([2.0, 3.0])}
    known = ppm.Limited(ppm.Limits(-0.5, 0.5), center=center, weight=0.5)
    assert limited == known
    assert capsys.readouterr().out == "epsilon 1, for every database: True\n"


def test_shares_by_age_are_those_of_the_group_s_people():
    ages = [18, 30, 31, 45, 46, 60, 61, 79]
    table = pd.DataFrame({"age": ages, "answer": [0, 1, 0, 0, 1, 1, 1, 0]})
    answers = np.array([[0, 0, 1, 0, 1, 0, 1, 1], [1, 0, 1, 1, 1, 0, 1, 1]])
    shares = after(
        "your_own_model",
        "groups_of_age = pd.cut",
        table=table,
        synthetic_answers=xr.DataArray(answers, dims=["release", "record"]),
    ).shares
    assert [*shares.index] == ["18–30", "31–45", "46–60", "61–79"]
    close(shares["confidential"], [0.5, 0, 1, 0.5])
    close(shares["synthetic"], [0.25, 0.75, 0.5, 1])


def test_a_bound_in_another_unit_is_that_of_a_fit_in_this_unit():
    here = after("your_own_model", "factors = {", draws=40, seed=3)
    (beta,), sigma = here.fit.theta["beta"].T, here.fit.theta["sigma"]
    units = here.units.set_index("Unit of expenditures")
    known = {
        "million dollars": 1e-3,
        "thousand dollars": 1,
        "dollars": 1e3,
        "cents": 1e5,
    }
    assert {*units.index} == {*known}
    for unit, k in known.items():
        log_p = stats.norm(k * beta[:, None], k * sigma[:, None]).logpdf(
            k * here.spending
        )
        close(units.loc[unit], [np.abs(log_p).max(), 2 * np.abs(log_p).max()])


def test_diagnostics_stand_under_the_number_of_draws_of_their_fit():
    asked = []

    def a_fit(draws):
        return SimpleNamespace(draws=draws, summary=lambda m: {"ε": m * draws})

    def fit(model, rule, draws, **_):
        asked.append(draws)
        return a_fit(draws)

    for draws, few in (500, 20), (100, 10):
        table = after(
            "your_own_model",
            "diagnostics = pd.DataFrame",
            ppm=SimpleNamespace(fit=fit),
            survey=a_fit(draws),
            **dict.fromkeys(["model", "rule"]),
            **{"chains": 3, "draws": draws, "seed": 1, "releases": 5},
        ).diagnostics
        assert asked[-1] == few
        assert table.loc["ε"].to_dict() == {
            f"{3 * draws:,} draws": 5 * draws,
            f"{3 * few:,} draws": 5 * few,
        }


def test_the_chance_of_a_yes_is_that_of_the_insured_at_45_under_each_rule():
    def theta(*logits):
        logits = np.array(logits)
        # 10 and -3 cancel out at 45 alone
        slopes = np.column_stack([np.full(len(logits), -3.0), logits - 10])
        return {"intercept": np.full(len(logits), 10.0), "slope": slopes}

    where = {"limits": [1.0, 0, 0], "capped": [0, 1.0, 0], "free": [0, 0, 1.0]}
    rules = SimpleNamespace(
        Capped=lambda width: {1.0: "capped"}[width],
        Unweighted=lambda: "free",
        fit=lambda model, rule, draws: SimpleNamespace(terms=rule),
    )
    of_published = SimpleNamespace(theta=theta(-1.0, 3.0))
    here = after(
        "your_own_model",
        "def yes_of_insured",
        "rng.choice(of_insured",
        ppm=rules,
        limited="limits",
        listed=SimpleNamespace(probabilities=where.get),
        candidates=theta(-2.0, 0.0, 2.0),
        survey=SimpleNamespace(unweighted=of_published),
        seed=1,
    )
    law = stats.logistic.cdf
    close([*here.shown.values()], law([-2, 0, 2]))
    assert [*here.shown] == ["Limits", "Own weights", "Data"]
    ((groups, _),) = here.violins
    said = ["published\nalone, ε = 0", "limits,\nε = 1", "own weights,\nε = 1"]
    assert [*groups] == [*said, "nothing\nprotected"]
    for values, logits in zip(groups.values(), ([-1, 3], -2, 0, 2), strict=True):
        close(np.unique(values), law(logits))


def test_what_a_list_carries_is_read_off_its_probabilities():
    lists = {}
    library = SimpleNamespace(
        Normal=ppm.Normal,
        fit=ppm.fit,
        Candidates=lambda model, values: lists.update(values) or model,
    )
    here = after("your_own_model", "def list_of(d, r", ppm=library, seed=1)
    for d, r in (1, 2.0), (3, 4.0):
        model, nearest = here.list_of(d, r, people=100, size=400)
        # in standard errors 1/10 of a coefficient, of which the true ones are r each
        close(lists["beta"].std(axis=0), r / 10, rtol=0.15)
        estimate = np.linalg.lstsq(model.predictors, model.values)[0]
        close(estimate, r / 10, atol=0.5)
        apart = [np.sqrt(np.mean((one - estimate) ** 2)) * 10 for one in lists["beta"]]
        close(nearest, min(apart))
        public = ppm.Candidates(model, lists)
        chances = public.probabilities(ppm.fit(public, ppm.Unweighted(), draws=1).terms)
        close(here.left(public, ppm.Unweighted()), 1 / np.sum(chances * chances))

    def left(public, rule):
        d, r = public
        if rule == ppm.Unweighted():
            return 10 * d + r
        last_year = {"beta": np.zeros(d), "sigma": 1.0}
        limits = ppm.Limits(-0.5, 0.5)
        assert rule == ppm.Limited(limits, center=last_year, weight=0.5)
        return 1000 + 10 * d + r

    rows = after(
        "your_own_model",
        "rows.append([d, *free",
        list_of=lambda d, r: ((d, r), d + r / 10),
        left=left,
    ).carried.set_index("parameters")
    for d in (1, 2, 4, 8):
        expected = [10 * d + 3, 10 * d + 5, 1000 + 10 * d + 5, d + 0.5]
        close(rows.loc[d].astype(float), expected)
    assert [*rows][2:] == ["left under limits, r = 5", "nearest, r = 5"]
    assert [*rows][:2] == ["left, r = 3", "left, r = 5"]
