"""What tables and figures show of fits, in cells that a reader sees, with fits that are known."""

import contextlib
import sys
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from cells import after, known_fit, of_chapter
from scipy import stats

import ppm
from ppm_book.chapters import application, ledger_values

close = np.testing.assert_allclose


# ---- the application -----------------------------------------------------------------------------


def test_a_bound_is_off_by_a_share_of_the_one_that_it_is_held_against():
    fits = {
        (0.7, 0.0): (known_fit(10.0), known_fit(11.0, [0.2, 0.2])),
        (0.4, 0.1): (known_fit(8.0, [0.5, 0.1]), known_fit(6.0, [0.1, 0.1])),
    }
    (table,) = after("ce_application", "PAPER = {(0.7", fits=fits).tables
    assert [*table.index] == ["(0.7, 0)", "(0.4, 0.1)"]
    close(table["DPweighted"], [10, 8])
    close(table["EMweighted"], [11, 6])
    close(table["±"], [0.2, 0.16])
    close(table["off DPweighted's (%)"], [10, -25])
    close(table["weight, DPweighted (%)"], [75, 30])
    close(table["EMweighted (%)"], [20, 10])
    # a setting that the paper does not have
    np.testing.assert_equal(table["the paper"].tolist(), [10.1, np.nan])


def test_the_table_of_four_synthesizers_has_each_one_s_numbers():
    everybody, risk, one, count = (
        *(ppm.Unweighted(), ppm.ByRisk(0.7, 0.0)),
        *("one weight", ppm.ByCount(0.2)),
    )
    fits = {everybody: known_fit(40.0), risk: known_fit(9.0, [0.9, 0.5])}
    fits |= {one: known_fit(8.0, [0.2, 0.2]), count: known_fit(60.0, [0.1, 0.5])}
    (table,) = after(
        "ce_application",
        'four = {\n    "Unweighted"',
        settings=[(0.7, 0.0)],
        one_weights=[one],
        everybody=everybody,
        radius=0.2,
        components=2,
        releases=20,
        further={},
        fitted=lambda k, rule, *behind: fits[rule],
    ).tables
    close(table["Δ"].astype(float), [40, 9, 8, 60])
    close(table["ε of 20 releases"].astype(float), [1600, 360, 320, 2400])
    close(table["average weight"].astype(float), [0.75, 0.7, 0.2, 0.3])
    close(table["R-hat"].astype(float), [1.04, 1.009, 1.008, 1.06])
    close(table["R-hat, log-likelihood"].astype(float), [1.08, 1.018, 1.016, 1.12])
    # the second R-hat decides as well
    assert table["agree"].tolist() == [False, True, True, False]


def test_six_units_have_the_shares_of_neighbours_that_the_library_counts(capsys):
    for radius in 0.2, 0.5:
        here = after("ce_application", "six = np.array", radius=radius)
        risk = ppm.risk.identification_risks(
            here.six, radius=radius, groups=pd.DataFrame({"all": np.zeros(6)})
        )
        assert capsys.readouterr().out == f"{1 - risk}\n"


def test_errors_of_databases_are_off_the_data_s_in_per_cent(capsys):
    income = np.array([10.0, 20.0, 60.0])  # a mean of 30, and a median of 20
    statistics = ppm.release.measure.STATISTICS
    # of a hundred databases 84 are below
    values = 30 * (1 + np.arange(1, 102) / 1000)
    here = after(
        "ce_application",
        "def errors_of",
        STATISTICS=statistics,
        income=income,
        application=application,
        of_drawn={
            "mean": {"A": values / 1000},
            "median": {"A": np.full(9, 0.015)},
        },
    )
    found = here.errors_of(values, "mean")
    close(found["bias"], 5.1)
    close(found["scatter"], 3.4)
    close([found["typical error"], found["±"]], application.typical(values / 0.3 - 100))
    close(here.utility.loc["mean", "A"], [*found.values()])
    close(here.utility.loc[("median", "A"), ["bias", "scatter"]], [-25, 0])
    # one release, of which the first record is half as large
    four = {"DPweighted": SimpleNamespace()}
    released = SimpleNamespace(values=np.arcsinh([[5.0, 20.0, 60.0]]))
    four["DPweighted"].release = lambda m, random_seed: released
    after(
        "ce_application",
        "synthetic = four",
        four=four,
        unit=1.0,
        income=income,
        seed=1,
    )
    assert "error -5.6 %" in capsys.readouterr().out


def test_errors_along_the_settings_stand_under_their_synthesizer_and_statistic():
    drawn_at = {(0.7, 0.0): [[1.0], [2.0]], (0.5, -0.3): [[3.0], [4.0]]}
    (table,) = after(
        "ce_application",
        "away = pd.DataFrame",
        drawn_at=drawn_at,
        STATISTICS={name: (lambda values, axis: values) for name in ("mean", "tail")},
        tail="tail",
        errors_of=lambda values, name: {
            "bias": -values[0],
            "scatter": values[0] + 10 * (name == "tail"),
            "typical error": values[0] + 100 * (name == "tail"),
            "±": 0.1,
        },
    ).tables
    rows = [
        (name, at) for name in ("mean", "tail") for at in ("(0.7, 0)", "(0.5, -0.3)")
    ]
    table = table.loc[rows]
    close(table["DPweighted, error"], [1, 3, 101, 103])
    close(table["EMweighted, error"], [2, 4, 102, 104])
    close(table["DPweighted, scatter"], [1, 3, 11, 13])
    close(table["EMweighted, scatter"], [2, 4, 12, 14])


def test_one_regression_by_hand_stands_beside_the_library_s():
    rules = [ppm.ByRisk(0.7, 0.0), ppm.ByRisk(0.5, -0.3)]
    fits = {ppm.Unweighted(): known_fit(40.0)}
    fits |= dict(zip(rules, (known_fit(10.0), known_fit(5.0)), strict=True))
    f, asked = np.array([2.0, 6.0, 10.0]), []

    def one_regression(weights):
        """Two draws of three units."""
        asked.append(weights)
        return np.outer(weights, [3.0, 4.0])

    here = after(
        "ce_application",
        '"by hand": terms.max()',
        fitted=lambda k, rule, *behind: fits[rule],
        one_regression=one_regression,
        settings=[(0.7, 0.0), (0.5, -0.3)],
        by_risk=rules,
        f=f,
        y=f,
    )
    (table,) = here.tables
    close(asked, [[0.7, 0.35, 0], [0.2, 0, 0]])
    close(table["by hand"], [2.8, 0.8])
    close(table["library"], [10, 5])
    close(table["± "], [0.2, 0.1])
    close([of for of, _ in here.hand.values()], [[2.8, 1.4, 0], [0.8, 0, 0]])
    close([error for _, error in here.hand.values()], table["±"])


def test_a_barycentre_is_off_the_data_s_median_in_per_cent():
    incomes = {"A": np.full((3, 4), 11e3), "B": np.full((3, 4), 9e3)}
    (table,) = after(
        "ce_application",
        "def barycentre",
        incomes=incomes,
        four=incomes,
        releases=2,
        resamples=5,
        seed=1,
        of_data={"mean": np.full(5, 10.0), "90th percentile": np.full(5, 20.0)},
        tail="90th percentile",
    ).tables
    close(table["mean"], [10, -10])
    close(table["90th percentile"], [-45, -55])


# ---- how far to trust a bound --------------------------------------------------------------------


def test_each_miss_is_a_share_of_the_bound_that_was_aimed_at():
    settings, deltas = (
        [[0.7, 0.0], [0.6, 0.0], [0.5, -0.3]],
        iter([10.0, 11.0, 9.0, 12.0, 4.0, 5.0, 3.0, 2.0]),
    )
    streams = []

    def fitted(rule, stream, known=None):
        streams.append(stream)
        return known_fit(next(deltas))

    here = after(
        "trusting_a_bound",
        "misses = {}",
        configurations=settings,
        fits={"Unweighted": known_fit(40.0)},
        fitted=fitted,
    )
    assert [*here.misses] == ["(0.7, 0)", "(0.5, -0.3)"]
    close([*here.misses.values()], [[10, -10, 20], [25, -25, -50]])
    # none has the random numbers of another
    assert len({*streams}) == 8
    assert here.fits["EMweighted (0.5, -0.3)"].local_bound == 5


def test_what_is_held_against_chains_is_what_it_is_called():
    here = after(
        "trusting_a_bound",
        "def reading(fit)",
        fits={},
        fitted=lambda *_: known_fit(10.0),
        radius=0.2,
    )
    assert here.reading(known_fit(10.0)) == {
        "Δ": 10,
        "smallest Δ of a chain": 7,
        "typical draw": 5,
        "R-hat": 1.01,
        "R-hat, log-likelihood": 1.02,
        "effective draws": 100,
        "oscillation bound": 15,
        "chains agree": True,
    }


@pytest.mark.parametrize("chains", [2, 3, 4])
def test_every_second_chain_starts_with_one_component_and_the_others_where_they_ended(
    chains,
):
    rng, k = np.random.default_rng(1), 3
    predictors = np.column_stack([np.ones(40), rng.normal(size=40)])
    response = predictors @ [2.0, 3.0] + rng.normal(size=40)
    ends = {
        "pi": rng.dirichlet(np.ones(k), chains),
        "beta": rng.normal(size=(chains, k, 2)),
        "sigma": rng.uniform(5, 6, (chains, k)),
        "concentration": rng.uniform(5, 6, chains),
    }
    kept = {name: value.copy() for name, value in ends.items()}
    started = []

    def fitted(rule, stream, start):
        started.append((rule, stream, start))
        return known_fit(1.0)

    names = "Unweighted", "DPweighted (0.7, 0)", "EMweighted (0.7, 0)", "Countweighted"
    fits = {name: known_fit(1.0, ends=ends) for name in names}
    here = after(
        "trusting_a_bound",
        "one_component = {",
        fits=fits,
        fitted=fitted,
        predictors=predictors,
        response=response,
        components=k,
    )
    line = stats.linregress(predictors[:, 1], response)
    residuals = response - line.intercept - line.slope * predictors[:, 1]
    one = {
        # 40 units and two components more
        "pi": np.array([40, 1, 1]) / 42,
        "beta": np.tile([line.intercept, line.slope], (k, 1)),
        "sigma": np.full(k, residuals.std()),
        "concentration": 1.0,
    }
    assert [*here.after] == [*here.before] == [*names[:2]]
    assert len({stream for _, stream, _ in started}) == len(started) == 2
    for name, (rule, _, start) in zip(here.before, started, strict=True):
        assert rule is fits[name].terms
        for parameter, value in kept.items():
            for chain in range(chains):
                wanted = value[chain] if chain % 2 else one[parameter]
                close(start[parameter][chain], wanted)
    # where the fits themselves ended is as it was
    for name, value in kept.items():
        assert np.array_equal(ends[name], value)


def test_of_two_components_the_narrower_is_first_with_its_share():
    # draws of two chains; in every second the wide one came first
    sigma = np.array([[[1.0, 3.0], [4.0, 2.0]], [[1.5, 3.5], [4.5, 2.5]]])
    pi = np.array([[[0.1, 0.9], [0.8, 0.2]], [[0.3, 0.7], [0.6, 0.4]]])
    posterior = {
        "sigma": SimpleNamespace(values=sigma, argsort=None),
        "pi": SimpleNamespace(values=pi),
    }
    posterior["sigma"].argsort = lambda axis: SimpleNamespace(
        values=sigma.argsort(axis)
    )
    fit = SimpleNamespace(posterior=posterior, draw_maxima=np.arange(4.0))
    shown = {}
    az = SimpleNamespace(
        from_dict=lambda groups: shown.update(groups["posterior"]),
        summary=lambda *_, **__: pd.DataFrame(
            columns=["mean", "sd", "ess_bulk", "ess_tail", "r_hat"]
        ),
    )
    after("trusting_a_bound", "by_width = {", by_sampler={"PyMC": fit}, az=az)
    close(shown["narrow σ"], [[1, 2], [1.5, 2.5]])
    close(shown["wide σ"], [[3, 4], [3.5, 4.5]])
    close(shown["share of the narrow"], [[0.1, 0.2], [0.3, 0.4]])
    close(shown["largest |α log p|"], [[0, 1], [2, 3]])


def test_two_samplers_stand_beside_each_other_with_their_own_numbers(capsys):
    by_sampler = {
        name: known_fit(delta, unweighted=known_fit(4 * delta))
        for name, delta in {"PyMC": 5.0, "own sampler": 6.0}.items()
    }
    table = after(
        "trusting_a_bound",
        "two_samplers = pd.DataFrame",
        by_sampler=by_sampler,
        seconds={"PyMC": 1.0},
    ).two_samplers
    rows = [("DPweighted", "PyMC"), ("DPweighted", "own sampler")]
    rows += [("Unweighted", "PyMC"), ("Unweighted", "own sampler")]
    close(table.loc[rows, "Δ"], [5, 6, 20, 24])
    close(table.loc[rows, "±"], [0.1, 0.12, 0.4, 0.48])
    close(table.loc[rows, "typical draw"], [2.5, 3, 10, 12])
    close(table.loc[rows, "R-hat"], [1.005, 1.006, 1.02, 1.024])
    close(table.loc[rows, "R-hat, log p"], [1.01, 1.012, 1.04, 1.048])
    close(table["divergences"], 0)


# ---- companions ----------------------------------------------------------------------------------


def test_fewer_draws_have_the_average_of_the_largest_of_their_parts():
    maxima = np.arange(80.0).reshape(2, 40)
    one = SimpleNamespace(draw_maxima=maxima)
    half = SimpleNamespace(draw_maxima=maxima / 2)
    rules = ppm.Unweighted(), ppm.ByRisk(0.7, 0.0)
    (table,) = after(
        "application_settings",
        "by_draws = pd.DataFrame",
        fits={("asinh of thousands", 2): dict(zip(rules, (one, half), strict=True))},
        component_counts=[1, 2, 3],
        chains=2,
        draws=40,
        first=rules[1],
    ).tables
    assert [*table.index] == ["2", "4", "8", "20", "40", "80"]
    close(table["Unweighted"], [40, 41, 43, 49, 59, 79])
    close(table["DPweighted"], table["Unweighted"] / 2)


def test_several_releases_scatter_as_the_chapter_s_variance_says():
    (table,) = after("using_releases", '"coverage_several"', weight=0.25).tables
    # v (1 + 2/m) of all rules at weight 1; three times v with one release
    close(table.loc[1, "weight 1.00"] ** 2, 3)
    for m in table.index:
        for column, a in {"weight 0.25": 0.25, "weight 1.00": 1.0}.items():
            # m releases share ε: each record's weight in one of them is a / m
            a_third = 1 + (1 + m / a) / m
            close(table.loc[m, column] ** 2, a_third)


def test_what_an_error_is_less_that_of_bins_has_its_interval_and_its_sign():
    asked = []

    def difference(row, other, goal):
        asked.append((row, other, goal))
        return -3.0, 1.0

    class Found(SimpleNamespace):
        losses = runs = pd.DataFrame({"mechanism": ["a"], "ε": [1], "share": [1.0]})

    here = after(
        "strict_more",
        "def less_bins",
        BINS="Bins",
        MECHANISMS={"Bins": "bins of 20"},
        found=Found(difference=difference),
    )
    row, bins = ("own", 0.5), ("bins of 20", 0.5)
    assert here.less_bins(row, 0.5, "levels") == "-5.0 to -1.0"
    assert asked == [(row, bins, "levels")]
    assert here.less_bins(bins, 0.5, "levels") == "–"


def unkept(*basis):
    """In place of what keeps fits of a run."""
    return lambda function: function


def test_controls_are_off_the_data_and_have_the_weights_that_they_are_named_for():
    n, rule, plain = 200, ppm.ByRisk(0.7, 0.0), ppm.Unweighted()
    names, given = ["mean", "median", "90th percentile"], []
    bounds, weights = np.arange(float(n)), np.linspace(0, 1, n)

    def read(size, **more):
        return SimpleNamespace(
            of_releases=dict.fromkeys(names, np.full(3, size)), **more
        )

    def fit(model, terms, **_):
        given.append(terms.weights)
        return terms

    single = {plain: read(11.0, record_bounds=bounds), rule: read(9.0, weights=weights)}
    single["partner"] = read(10.5)
    (table,) = after(
        "application_settings",
        "repaired = pd.DataFrame",
        ppm=SimpleNamespace(
            fit=fit, Terms=ppm.Terms, ByRisk=ppm.ByRisk, Unweighted=ppm.Unweighted
        ),
        running=SimpleNamespace(kept=unkept),
        read=lambda terms, scale, stream: read(8.0 + (terms.weights == 1).sum() / n),
        **{"basis": [], "draws": 10, "seed": 1, "income": bounds, "names": names},
        truth=dict.fromkeys(names, 10.0),
        ends=[(0.7, 0.0), (0.5, -0.3)],
        order=[("log", 1)],
        fits={("log", 1): single},
        partner=lambda rule: "partner",
        mixture=lambda *_: None,
    ).tables
    shuffled, trimmed = given
    close(np.sort(shuffled), weights)
    assert (shuffled != weights).any()
    # the two units of two hundred with the largest bounds
    close(trimmed, bounds < 198)
    close(table.loc[["Unweighted", "DPweighted", "EMweighted"], "mean"], [10, -10, 5])
    close(table.loc[["Shuffled", "Trimmed"], "median"], [-19.95, -10.1])


def test_a_rule_holds_the_truth_as_often_as_its_intervals_do():
    off = np.array([0.0, 1.0, -3.0, 3.0])  # of four databases
    databases = iter(off)
    truth = np.array([2.0, 2 + np.sqrt(2) * stats.norm.ppf(0.9), 1.0])

    def one_database(n, releases, *_):
        """Mechanisms state variances of 1, 4, 9 and 16, each quantity is as far off."""
        found = np.empty((2, 4, 3, releases))
        found[0] = (truth + next(databases))[:, None]
        found[1] = (np.arange(1, 5) ** 2)[:, None, None]
        return found

    table = after(
        "using_releases",
        "covers = np.where",
        stats=stats,
        rules=of_chapter("using_releases").rules,
        one_database=one_database,
        **{"sizes": [50], "replicates": 4, "releases": 2, "draws": 9, "seed": 1},
        **{"scale": 1.0, "shift": 0.0, "weight": 0.5},
    ).table.reset_index()
    of = table[table["rule"] == "one release as real"]
    for quantity in "mean", "90th percentile", "coefficient":
        rows = of[of["quantity"] == quantity]
        assert [*rows["mechanism"]] == [
            "Unweighted",
            "Weighted",
            "Constant",
            "Published",
        ]
        close(rows["coverage (%)"], [50, 100, 100, 100])
        close(rows["variance ratio"], np.arange(1, 5) ** 2 / off.var(ddof=1))
        close(rows["bias / standard deviation"], 0.25 / off.std(ddof=1))
        close(rows["error"], np.sqrt(19 / 4))
    # v (2 + 1/α), where the weight is public
    of = table[table["rule"] == "one release, weight known"].head(12)
    ratio = np.repeat([3, np.nan, 9 * 4, np.nan], 3) / off.var(ddof=1)
    close(of["variance ratio"], ratio)


# ---- settings of the application -----------------------------------------------------------------


def test_income_comes_back_from_every_scale():
    table = pd.DataFrame({"income": [-5_000.0, 0.0, 20_000.0, 3e5]})
    data = SimpleNamespace(table=table, nonpositive=2)
    data.subsample = lambda *_, **__: data
    survey = SimpleNamespace(
        load=lambda _: data, predictor_matrix=lambda _: (None, None)
    )
    given = {"survey": survey, "ce_data": "", "records": 0, "seed": 1}
    here = after(
        "application_settings",
        "def dollars(scale, y)",
        **given,
        **{"income_floor": 2.0, "chains": 2, "draws": 3},
    )
    incomes = table["income"].to_numpy()
    # in thousands and in ten thousands, and raised to the floor on the other scale
    close(here.scaled("asinh of thousands"), np.arcsinh([-5, 0, 20, 300]))
    close(here.scaled("asinh of ten thousands"), np.arcsinh([-0.5, 0, 2, 30]))
    close(here.scaled("log"), np.log([2, 2, 2e4, 3e5]))
    for scale in here.units:
        close(here.dollars(scale, here.scaled(scale)), incomes, atol=1e-9)
    close(here.dollars("log", here.scaled("log")), [2, 2, 2e4, 3e5])


DP, LAST = ppm.ByRisk(0.7, 0.0), ppm.ByRisk(0.5, -0.3)
STATISTICS = {"mean": 10.0, "median": 20.0, "90th percentile": 40.0}


def partner(rule):
    return ppm.OneWeight(like=rule, fits=2)


def read_fit(delta, *off, agree=True, **more):
    """A fit whose releases are off the data by so many shares, in turn."""
    fit = known_fit(delta, **more)
    fit.diagnostics.agree = agree
    fit.of_releases = {
        name: truth * (1 + np.array(off)) for name, truth in STATISTICS.items()
    }
    return fit


def test_models_are_tried_with_the_settings_that_the_criterion_needs():
    asked = []

    def tried(*task):
        asked.append(task)
        return task

    pairs = [[0.7, 0.0], [0.6, 0.0], [0.5, -0.3]]
    here = after(
        "application_settings",
        "tasks = [(*one, pairs",
        tried=tried,
        tqdm=lambda done, **_: done,
        running=SimpleNamespace(executor=lambda: SimpleNamespace(map=map)),
        **{"component_counts": [1, 2, 3], "configurations": pairs, "draws": 9},
    )
    first, _, last = map(tuple, pairs)
    ends, every = [first, last], [*map(tuple, pairs)]
    assert asked == [
        *(("log", k, ends, ends, 9) for k in (1, 2, 3)),
        ("asinh of thousands", 1, ends, ends, 9),
        # the one that the application takes
        ("asinh of thousands", 2, every, ends, 9),
        ("asinh of ten thousands", 1, ends, ends, 9),
        # the paper's own model
        ("log", 10, [first], [], 9),
    ]
    assert here.fits == {task[:2]: task for task in asked}


def test_a_model_misses_the_points_of_the_criterion_and_no_others():
    here = after(
        "application_settings",
        "def missed(found)",
        statistics={},
        income=None,
    )
    here.truth.update(STATISTICS)

    def missed(*deltas, off=0.0, agree=True, later=0.0):
        # a wild release moves no median
        fits = [read_fit(10.0, *[off] * 19, 30.0, *[later] * 80, agree=agree)]
        fits += [read_fit(delta) for delta in deltas]
        rules = ppm.Unweighted(), DP, LAST
        return here.missed(dict(zip(rules, fits, strict=False)))

    # errors are a fiftieth of a bound: two of both together are 4 √(10² + 8²) / 100
    assert missed(10.0, 8.0) == "none"
    # apart by more than the noise, and the same but for a tenth at most
    assert missed(10.0, 10 + 0.1) == "none"
    assert missed(10.0, 10 + 0.55) == "2"
    # errors add up as squares
    assert missed(10.0, 10 + 0.7) == "none"
    assert missed(10.0, 8.0, agree=False) == "1"
    assert missed(10.0, 8.0, off=0.11) == "3"
    assert missed(10.0, 8.0, off=-0.11) == "3"
    assert missed(10.0, 8.0, off=0.09) == missed(10.0, 8.0, later=0.2) == "none"
    assert missed(10.0, 10.55, off=0.2, agree=False) == "1, 2, 3"


def test_a_model_s_row_has_its_bounds_r_hats_and_statistics():
    fits = {
        ("log", 1): {
            ppm.Unweighted(): read_fit(80.0, *[0.5] * 19, 9.0, *[0.0] * 80),
            DP: read_fit(9.0),
            LAST: read_fit(3.0, agree=False),
        },
        ("log", 10): {ppm.Unweighted(): read_fit(90.0, -0.2), DP: read_fit(5.0)},
    }
    (table,) = after(
        "application_settings",
        "published = np.array",
        fits=fits,
        ends=[(0.7, 0.0), (0.5, -0.3)],
        truth=STATISTICS,
        missed=lambda found: f"{len(found)} fits",
    ).tables
    row, other = table.loc["log", 1], table.loc["log", 10]
    close(row[["Unweighted", "(0.7, 0)", "(0.5, -0.3)"]].astype(float), [80, 9, 3])
    apart = stats.gmean([78.7 / 80, 10.1 / 9, 2.25 / 3])
    logs = np.log([78.7 / 80, 10.1 / 9, 2.25 / 3])
    spread = np.sqrt(logs.var() + np.log(apart) ** 2)
    close(row["off the paper's"], np.exp(spread))
    close([row["R-hat"], row["R-hat, log-lik."]], [1.08, 1.16])
    assert row["fits agree"] == "1 of 3"  # the first's second R-hat is too high
    # of the first twenty releases
    close([row["mean (%)"], other["mean (%)"]], [50, -20])
    close(row["90th percentile (%)"], 50)
    assert row["misses"] == "3 fits"
    assert np.isnan(other[["(0.5, -0.3)", "off the paper's"]].astype(float)).all()


def test_equal_bounds_have_their_errors_and_a_winner_only_where_it_is_sure():
    rng = np.random.default_rng(1)

    def around(delta, off, **more):
        return read_fit(delta, *rng.normal(off, 0.01, 50), **more)

    sure = {
        ppm.Unweighted(): around(9.0, 0.3),
        DP: around(8.0, -0.1),
        partner(DP): around(10.0, 0.2),
        LAST: around(4.0, 0.3),
        partner(LAST): around(3.0, 0.1),
    }
    unsure = sure | {DP: around(8.0, -0.1, agree=False), partner(LAST): sure[LAST]}
    here = after(
        "application_settings",
        "told = {",
        "def typical(one, name)",
        fits={("log", 1): sure, ("log", 2): unsure, ("log", 3): {DP: None}},
        ends=[(0.7, 0.0), (0.5, -0.3)],
        partner=partner,
        truth=STATISTICS,
    )
    (table,) = here.tables
    winners = {
        ("log, K = 1", "(0.7, 0)"): "DPweighted",
        ("log, K = 1", "(0.5, -0.3)"): "EMweighted",
        ("log, K = 2", "(0.7, 0)"): "",
        ("log, K = 2", "(0.5, -0.3)"): "",
    }
    models = {"log, K = 1": sure, "log, K = 2": unsure}
    rules = {"(0.7, 0)": DP, "(0.5, -0.3)": LAST}
    for (statistic, model, setting), row in table.iterrows():
        found, rule = models[model], rules[setting]
        one, other = found[rule], found[partner(rule)]
        of = [
            application.typical(
                100 * (x.of_releases[statistic] / STATISTICS[statistic] - 1)
            )
            for x in (found[ppm.Unweighted()], one, other)
        ]
        columns = ["Unweighted", "DPweighted", "EMweighted"]
        close(row[columns].astype(float), [size for size, _ in of])
        close(row["difference"], of[1][0] - of[2][0])
        close(row["±"], 2 * np.sqrt(of[1][1] ** 2 + of[2][1] ** 2))
        close(row["Δ of EM over DP's"], other.local_bound / one.local_bound)
        assert row["closer"] == winners[model, setting]
    # the violins of the figure, in thousands
    labels = [
        "Unw.",
        "DP\n(0.7, 0)",
        "EM\n(0.7, 0)",
        "DP\n(0.5, -0.3)",
        "EM\n(0.5, -0.3)",
    ]
    for (groups, options), (model, found) in zip(
        here.violins, models.items(), strict=True
    ):
        assert [*groups] == labels
        for values, fit in zip(groups.values(), found.values(), strict=True):
            close(values, fit.of_releases["90th percentile"] / 1000)
        looks = ["Unweighted", "DPweighted", "EMweighted", "DPweighted", "EMweighted"]
        assert options["colours"] == [here.plots.COLOURS[who] for who in looks]
        assert model in [axes.get_title() for axes in here.figures[0].axes]
    close(here.figures[0].axes[0].lines[0].get_ydata(), 40 / 1000)


def test_a_prior_s_bound_is_told_with_whose_it_is():
    # the third column has one unit of its kind
    predictors = np.array([[1.0, 0, 0], [1, 1, 0], [1, 0, 1], [1, 1, 0]])
    bounds = {0.1: [5.0, 3, 4, 1], 1.0: [1, 2, 9, 3], 10.0: [2, 8, 7, 6]}

    def fit(model, terms, **_):
        return known_fit(max(bounds[model]), record_bounds=np.array(bounds[model]))

    library = SimpleNamespace(fit=fit, Terms=ppm.Terms, ByRisk=ppm.ByRisk)
    (table,) = after(
        "application_settings",
        "def by_prior",
        ppm=library,
        running=SimpleNamespace(kept=unkept),
        read=lambda fit, *_: fit,
        mixture=lambda scale, k, prior: prior,
        component_counts=[1, 2],
        fits={("asinh of thousands", 1): {LAST: known_fit(1.0, np.ones(4))}},
        ends=[(0.7, 0.0), (0.5, -0.3)],
        predictors=predictors,
        income=np.array([10.0, 20.0, 30.0, 40.0]),
        **{"basis": [], "draws": 10, "seed": 1},
    ).tables
    assert [*table.index] == [0.1, 1, 10]
    close(table["Δ"], [5, 9, 8])
    close(table["±"], 2 * np.array([5, 9, 8]) / 50)
    close(table["from an income of"], [10, 30, 20])
    assert table["the only one of its kind"].tolist() == [False, True, False]
    close(table["largest bound of the others"], [5, 3, 8])
    assert table["chains agree"].all()


def test_weights_that_count_neighbours_stand_at_their_radius():
    income = np.array([10.0, 11, 13, 40, 45, 100])
    known = pd.DataFrame(
        {"gender": 1, "age": 2, "region": [*"aaabbb"], "more": [*range(6)]}
    )
    bounds = np.array([9.0, 1, 2, 3, 4, 7])
    (table,) = after(
        "application_settings",
        "effect = pd.DataFrame",
        data=SimpleNamespace(table=known),
        chosen={ppm.Unweighted(): SimpleNamespace(record_bounds=bounds)},
        income=income,
    ).tables
    assert len(table) == 10
    middle = np.median(income)
    for (unit, radius), row in table.iterrows():
        weights = []
        for i in range(6):
            others = [
                j
                for j in range(6)
                if known["region"][j] == known["region"][i] and j != i
            ]
            reach = radius * (income[i] if unit == "share of the income" else 1)
            far = [abs(income[j] - income[i]) > reach for j in others]
            weights.append(1 - np.mean(far))
        close(row["average weight"], np.mean(weights))
        close(row["records removed"], weights.count(0))
        close(row["bound before refitting"], np.max(weights * bounds))
    shares = [0.05, 0.1, 0.2, 0.4, 0.8]
    close(
        [radius for _, radius in table.index], [*shares, *np.multiply(shares, middle)]
    )


def test_the_ledger_has_the_distances_in_standard_deviations_of_resamples():
    rng = np.random.default_rng(1)
    found = {
        rule: read_fit(delta, *rng.normal(off, 0.01, 50))
        for rule, delta, off in [
            (ppm.Unweighted(), 9.0, 0.3),
            (DP, 8.0, -0.1),
            (partner(DP), 10.0, 0.2),
            (LAST, 4.0, 0.4),
            (partner(LAST), 3.0, 0.1),
        ]
    }
    income = np.array([4.0, 9, 12, 15])

    def typical(one, name):
        return application.typical(100 * (one.of_releases[name] / STATISTICS[name] - 1))

    values = after(
        "application_settings",
        "page.save_values(values",
        ledger_values=ledger_values,
        told={("asinh of thousands", 2): found},
        ends=[(0.7, 0.0), (0.5, -0.3)],
        units={"asinh of thousands": 1, "asinh of ten thousands": 1},
        partner=partner,
        truth=STATISTICS,
        statistics={name: ppm.release.measure.STATISTICS[name] for name in STATISTICS},
        income=income,
        typical=typical,
        **{"data": None, "seed": 1},
    ).saved["values"]
    close(values["compared: settings"]["value"], [0.7, 0, 0.5, -0.3])
    close(values["K whose chains agree, asinh of thousands"]["value"], [2])
    assert not np.size(values["K whose chains agree, log"]["value"])
    label = "K = 2, asinh of thousands"
    close(values[f"{label}: local bound of Unweighted"]["value"], 9)
    close(values[f"{label}: local bound of DPweighted"]["value"], [8, 4])
    for name in ("mean", "90th percentile"):
        again = ppm.release.measure.resample(income, name, resamples=200, random_seed=1)
        unit = 100 * np.sqrt(again.var(ddof=1)) / STATISTICS[name]
        base, *dp = (
            typical(found[rule], name) for rule in (ppm.Unweighted(), DP, LAST)
        )
        em = [typical(found[partner(rule)], name) for rule in (DP, LAST)]
        for who, sizes in {"DPweighted": dp, "EMweighted": em}.items():
            told = values[f"{label}: distances of the {name}, {who}"]
            close([told["value"], told["error"]], np.transpose(sizes))
        told = values[f"{label}: DPweighted and Unweighted, difference of the {name}"]
        close(told["value"], [(size - base[0]) / unit for size, _ in dp])
        close(
            told["error"], [np.sqrt(error**2 + base[1] ** 2) / unit for _, error in dp]
        )


# ---- what a recipient does with releases ---------------------------------------------------------


def test_each_rule_s_interval_is_that_of_its_estimate_and_freedom(capsys):
    def rules(q, v, alpha):
        assert alpha == 0.25
        return {"one": (4.0, 0.25, np.inf), "another rule": (3.0, 0.04, 2.0)}

    after("using_releases", "from the three releases", rules=rules, q=None, v=None)
    rows = capsys.readouterr().out.splitlines()[1:]
    half = 0.5 * stats.norm.ppf(0.975), 0.2 * stats.t(2).ppf(0.975)
    assert rows[0].split() == ["one", f"{4 - half[0]:.2f}", "to", f"{4 + half[0]:.2f}"]
    assert rows[1].split()[-3:] == [f"{3 - half[1]:.2f}", "to", f"{3 + half[1]:.2f}"]


def test_coverage_stands_at_its_rule_mechanism_and_quantity():
    rules = ["one release as real", "parameter drawn", "fully synthetic"]
    rules += ["partially synthetic", "one release, weight known"]
    mechanisms = ["Unweighted", "Weighted", "Constant", "Published"]
    quantities = ["mean", "90th percentile", "coefficient"]
    index = pd.MultiIndex.from_product(
        [[20, 80], quantities, mechanisms, rules],
        names=["records", "quantity", "mechanism", "rule"],
    )
    columns = ["coverage (%)", "variance ratio", "bias / standard deviation", "error"]
    numbers = np.random.default_rng(1).uniform(1, 99, (len(index), 4))
    table = pd.DataFrame(numbers, index, columns)
    here = after(
        "using_releases",
        'coverage = largest["coverage (%)"]',
        "styles = [",
        'ratio = largest["variance ratio"]',
        "growing = table.xs",
        table=table,
        largest=table.loc[80],
        mechanisms=mechanisms,
        truth=dict.fromkeys(quantities, 0.0),
        **{"sizes": [20, 80], "replicates": 900, "releases": 5},
    )
    coverage, ratio, growing = here.tables
    # of so many replicates, of which each covers or not
    error = stats.binom(900, 0.95).std() / 9
    assert here.captions[0].endswith(f"The Monte Carlo error of 95 is {error:.1f}.")
    for quantity in quantities:
        for mechanism in mechanisms:
            place = quantity, mechanism
            for rule in rules:
                row = table.loc[80, quantity, mechanism, rule]
                close(coverage.loc[place, rule], row["coverage (%)"])
                if rule in rules[1:4]:
                    close(ratio.loc[place, rule], row["variance ratio"])
            errors = table["error"].loc[80, quantity, :, "partially synthetic"]
            relative = errors[mechanism] / errors["Unweighted"]
            close(ratio.loc[place, "error / Unweighted"], relative)
            for n in (20, 80):
                row = table.loc[n, quantity, mechanism, "partially synthetic"]
                for column in ("coverage (%)", "bias / standard deviation"):
                    close(growing.loc[place, f"{column}, n = {n}"], row[column])
    for axes, quantity in zip(here.figure.axes, quantities, strict=True):
        assert axes.get_title() == quantity
        *marks, level = axes.lines
        close(level.get_xdata(), 95)
        for line, rule in zip(marks, rules, strict=False):
            assert line.get_label() == rule
            close(line.get_xdata(), coverage.loc[quantity, rule])
            assert [*line.get_ydata(orig=True)] == mechanisms
    saved = here.saved
    assert saved["coverage"] is coverage and saved["coverage_variances"] is ratio


def test_other_starts_stand_beside_the_first_ones_by_their_chains():
    readings = {
        (who, how): {
            "Δ": delta,
            "smallest Δ of a chain": delta - 1,
            "R-hat": 1 + delta / 100,
            "R-hat, log-likelihood": 1 + delta / 10,
            "chains agree": delta > 5,
        }
        for delta, (who, how) in enumerate(
            [
                (who, how)
                for how in ("as above", "both sides")
                for who in ("Unweighted", "DP")
            ],
            3,
        )
    }
    before = {"Unweighted": ("Unweighted", "as above"), "DP": ("DP", "as above")}
    later = {who: (who, "both sides") for who in before}
    here = after(
        "trusting_a_bound",
        "starts = pd.DataFrame",
        reading=readings.get,
        before=before,
        after=later,
    )
    (table,) = here.tables
    for place, of in readings.items():
        row = table.loc[place]
        close(row["largest Δ of a chain"], of["Δ"])
        for column in ("smallest Δ of a chain", "R-hat", "R-hat, log-likelihood"):
            close(row[column], of[column])
        assert (
            here.saved["other_starts"].loc[place, "chains agree"] == of["chains agree"]
        )


def test_units_for_both_samplers_are_those_of_the_same_people():
    rng, n = np.random.default_rng(1), 60
    ages = pd.Categorical(rng.choice([*"abc"], n))
    table = pd.DataFrame(
        {"age": ages, "education": pd.Categorical(rng.choice([*"xy"], n))}
    )
    # with many zeros, which are moved apart
    income = pd.Series(np.where(np.arange(n) < 25, 0, rng.lognormal(10, 1, n)))
    # which take seconds to import
    unused = {"arviz": SimpleNamespace(), "pymc": SimpleNamespace()}
    with patch.dict(sys.modules, unused):
        here = after(
            "trusting_a_bound",
            "few_X = np.column_stack",
            data=SimpleNamespace(table=table),
            income=income,
            seed=1,
        )
    chosen, count = np.unique(here.some, return_counts=True)
    assert len(chosen) == n // 2 and count.max() == 1
    poor = (income == 0)[here.some].to_numpy()
    close(here.few_y[~poor], np.arcsinh(income[here.some][~poor] / 1000))
    assert np.unique(here.few_y[poor]).size == poor.sum() > 1
    codes = table.apply(lambda column: column.cat.codes).to_numpy()[here.some]
    close(here.few_X, np.column_stack([np.ones(n // 2), stats.zscore(codes)]))


def test_appendix_b_has_the_paper_s_priors():
    said, X = {}, np.array([[1.0, 2], [1, 3], [1, 5]])
    factor, z = np.array([[2.0, 0], [1, 3]]), np.array([[1.0, -1], [0.5, 2]])
    drawn = {"a": 4.0, "pi": "pi", "sigma": "sigma", "z": z}

    class Half:
        def __call__(self, name, **given):
            said[name] = given
            return drawn[name]

        def dist(self, **given):
            return given

    def one(name, *given, **more):
        said[name] = given, more
        return drawn.get(name)

    def cholesky(name, **given):
        said[name] = given
        return factor, None, None

    pm = SimpleNamespace(
        Model=contextlib.nullcontext,
        HalfStudentT=Half(),
        LKJCholeskyCov=cholesky,
        Deterministic=lambda name, value: value,
        **dict.fromkeys(["Gamma", "Dirichlet", "Normal", "NormalMixture"], one),
    )
    after("trusting_a_bound", "as appendix_b", pm=pm, few_X=X, few_y="incomes")
    assert said["a"] == ((1, 1), {})
    ((concentration,), _) = said["pi"]
    close(concentration, [2, 2])
    half_t = {"nu": 3, "sigma": 1, "shape": 2}
    assert said["sigma"] == half_t
    assert said["covariance"] == {"eta": 1, "n": 2, "sd_dist": half_t}
    assert said["z"] == ((), {"shape": (2, 2)})
    _, mixture = said["y"]
    # covariance factor · factor' of the coefficients
    close(mixture.pop("mu"), X @ (factor @ z.T))
    assert mixture == {"w": "pi", "sigma": "sigma", "observed": "incomes"}


def test_fits_of_repeats_up_to_1000_records_are_those_of_their_studies():
    asked, tables = [], []

    def simulate(sizes, databases, **settings):
        asked.append(([*sizes], [*databases], settings))
        rows = [(n, i) for n in sizes for i in databases]
        return pd.DataFrame(rows, columns=["size", "database"])

    contraction = SimpleNamespace(
        simulate=simulate,
        table=lambda rows, studies, **_: tables.append((rows, studies)) or {},
        named=lambda table, *_: {},
        UP_TO_1000="up to 1,000",
    )
    settings = {"mean": 30.0, "truncate_at": 2.0, "draws": 9, "seed": 1}
    after(
        "poisson_contraction_study",
        "def one_study(study)",
        "table = contraction.table",
        contraction=contraction,
        ledger_values=ledger_values,
        running=SimpleNamespace(executor=lambda: SimpleNamespace(map=map)),
        tqdm=lambda done, **_: done,
        **settings | {"studies": 36, "replicates": 5, "sizes": [50, 2000]},
    )
    assert len(asked) == 36
    for study, (sizes, databases, given) in enumerate(asked):
        # a third of the studies has 1,000 records as well; none shares a database
        assert sizes == ([50, 1000, 2000] if study < 12 else [50, 2000])
        assert databases == [5 * study + i for i in range(5)]
        assert given == settings
    (whole, studies), (near, some) = tables
    assert (studies, some) == (36, 12)
    assert {*whole["size"]} == {50, 2000} and len(whole) == 36 * 5 * 2
    assert {*near["size"]} == {50, 1000} and len(near) == 12 * 5 * 2
    assert near["database"].max() == 59
