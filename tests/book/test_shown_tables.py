"""What tables and figures show of fits, in cells that a reader sees, with fits that are known."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from cells import after, known_fit, of_chapter
from scipy import stats

import ppm
from ppm_book.chapters import application

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
