"""What cells of the application show of databases and fits that are made up."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from cells import after, known_fit
from scipy import stats

import ppm
from ppm_book.chapters import ledger_values

close = np.testing.assert_allclose
WHO = ["Unweighted", "DPweighted", "EMweighted", "Countweighted"]
STATISTICS = ppm.release.measure.STATISTICS
TAIL = "90th percentile"


def databases(rng, records=6, number=8):
    """Incomes of a few databases of each synthesizer, all at another level."""
    return {
        who: rng.lognormal(10 + 0.1 * level, 0.3, (number, records))
        for level, who in enumerate(WHO)
    }


def test_predictors_have_their_number_of_categories_and_their_most_frequent():
    ten = {
        f"x{i}": pd.Categorical([*"aabcd"[: i % 3 + 3], *"b" * (5 - i % 3)])
        for i in range(10)
    }
    table = pd.DataFrame(ten | {"income": np.arange(8.0)})
    (shown,) = after(
        "ce_application", "table_1 = {", data=SimpleNamespace(table=table)
    ).tables
    for name in ten:
        values, times = np.unique(table[name].astype(str), return_counts=True)
        assert shown.loc[name, "here"] == len(values)
        assert shown.loc[name, "most frequent"] == values[times.argmax()]
    assert [*shown.index] == [*ten]
    # Table 1 of the paper
    assert [*shown["in the paper"]] == [2, 5, 8, 4, 2, 5, 3, 3, 11, 2]


def test_incomes_are_drawn_with_their_density_per_million_dollars():
    income = np.array([-4e3, 1e4, 2.5e4, 9e4, 3e5])
    here = after(
        "ce_application",
        "1000 * gaussian_kde",
        gaussian_kde=stats.gaussian_kde,
        income=income,
    )
    (axes,) = here.figure.axes
    path = axes.collections[0].get_paths()[0].vertices
    x, y = path[path[:, 1] > 0].T
    # normal densities around the incomes, in thousands, by the rule of Scott
    width = np.std(income, ddof=1) / 1000 * 5**-0.2
    close(y, 1000 * stats.norm(income[:, None] / 1000, width).pdf(x).mean(axis=0))
    close(axes.lines[0].get_xdata(), income / 1000)


def test_the_model_takes_incomes_on_the_scale_of_its_unit(capsys):
    income = np.array([-2e3, 0.0, 2e3, 2e4])
    here = after(
        "ce_application",
        "response = np.arcsinh(income / unit)",
        survey=SimpleNamespace(predictor_matrix=lambda _: (None, None)),
        data=None,
        **{"income": income, "unit": 500.0, "seed": 1},
    )
    close(500 * np.sinh(here.response), income, atol=1e-9)
    said = [float(x) for x in capsys.readouterr().out.strip(" []\n").split()]
    close(1000 * np.sinh(said), [-2e3, 0, 2e3, 2e4, 2e5], rtol=0.02)


def test_the_density_of_the_richest_is_that_of_both_components(capsys):
    theta = {
        "pi": np.array([[0.25, 0.75], [0, 1]]),
        "beta": np.array([[[1.0, 2], [3, -1]], np.zeros((2, 2))]),
        "sigma": np.array([[0.5, 2.0], [1, 1]]),
    }
    X, y = np.array([[1.0, 0], [1, 1]]), np.array([9.0, 3.5])
    after(
        "ce_application",
        "richest = income.argmax()",
        fitted=lambda *_: SimpleNamespace(theta=theta),
        norm=stats.norm,
        **{"components": 2, "everybody": None, "income": np.array([4.0, 7.0])},
        **{"X": X, "y": y},
    )
    # of the second unit, in the first draw
    log_p = np.log(
        0.25 * np.exp(-0.5 * (0.5 / 0.5) ** 2) / 0.5
        + 0.75 * np.exp(-0.5 * (1.5 / 2) ** 2) / 2
    ) - 0.5 * np.log(2 * np.pi)
    said = capsys.readouterr().out.splitlines()
    assert said[1] == f"log p = {log_p:.2f}, with weight ½: {log_p / 2:.2f}"
    assert said[0] == "shares [0.25 0.75], widths [0.5 2. ]"


def test_violins_of_bounds_have_delta_at_their_upper_end():
    four = {
        who: known_fit(delta, record_bounds=np.array([0.0, delta / 3, delta]))
        for who, delta in zip(WHO, (40.0, 9.0, 8.0, 60.0), strict=True)
    }
    here = after("ce_application", "bounds_of_four = {", four=four)
    ((groups, _),) = here.violins
    for place, (who, fit) in enumerate(four.items()):
        # without the units of weight 0
        close(groups[who], fit.record_bounds[1:])
        text = here.figure.axes[0].texts[place]
        assert text.get_text() == f"Δ = {fit.local_bound:.1f}"
        assert text.get_position()[0] == pytest.approx(place, abs=0.1)
        assert text.get_position()[1] == pytest.approx(fit.local_bound, rel=0.15)


def test_the_overdetermined_model_has_its_bound_and_both_r_hats(capsys):
    log_income = []

    def mixture(values, predictors, components, **_):
        assert components == 10
        log_income.append(values)

    after(
        "ce_application",
        "def of_the_paper",
        survey=SimpleNamespace(
            log_income=lambda income, floor: (np.log(np.maximum(income, floor)), None)
        ),
        data=SimpleNamespace(table={"income": np.array([0.5, 20.0])}),
        income=np.array([0.5, 20.0]),
        ppm=SimpleNamespace(
            FiniteMixture=mixture,
            Unweighted=ppm.Unweighted,
            fit=lambda *_, **__: known_fit(70.0),
        ),
        running=SimpleNamespace(kept=lambda *_: lambda function: function),
        **dict.fromkeys(["response", "predictors", "chains", "warmup", "draws"]),
        seed=1,
    )
    close(log_income, [[0, np.log(20)]])
    said = capsys.readouterr().out.splitlines()
    assert said[0].endswith("Δ = 70.0 nats")
    assert said[1] == "R-hat 1.07, of the log-likelihood 1.14"


@pytest.fixture(scope="module")
def released():
    """The chapter's cells on databases, in dollars, with an income of the data beside them."""
    rng = np.random.default_rng(3)
    income, of = rng.lognormal(10, 0.3, 6), databases(rng)
    settings = [(0.7, 0.0), (0.5, -0.3)]
    fits = {
        pair: (known_fit(9.0 - 5 * i), known_fit(8.0 - 5 * i))
        for i, pair in enumerate(settings)
    }
    known = iter(
        [
            *of.values(),
            *(
                one * times
                for times in (1, 1.05, 1.1, 1.2)
                for one in [of["DPweighted"]]
            ),
        ]
    )
    four = {}
    for who, delta in zip(WHO, (40.0, 9.0, 8.0, 60.0), strict=True):
        four[who] = known_fit(delta, record_bounds=delta * np.linspace(0.1, 1, 6) ** 2)
    fits[settings[0]] = four["DPweighted"], four["EMweighted"]
    for fit in [*four.values(), *fits[settings[1]]]:
        fit.model, fit.rule = SimpleNamespace(components=2), None
        fit.release = lambda m, random_seed: SimpleNamespace(
            values=np.arcsinh(next(known) / 500)
        )
        fit.draws_used = 77
        if not hasattr(fit, "record_bounds"):
            fit.record_bounds = fit.local_bound * np.linspace(0.1, 1, 6) ** 2
        fit.weights = np.linspace(0.1, 0.9, 6) * fit.local_bound / 60
    four["Countweighted"].weights[0] = 0.0
    four["EMweighted"].weights[:] = 0.3
    table = pd.DataFrame(
        {"education": [*"aaabbb"], "gender": 1, "age": 2, "region": [*"ababab"]}
    )
    data = SimpleNamespace(
        table=table,
        quarter=np.array([1, 1, 2, 2, 2, 2]),
        dropped={},
        income_range=(income.min(), income.max()),
    )
    here = after(
        "ce_application",
        "def drawn(fit)",
        "def near(values, truth)",
        "def errors_of",
        "truth = np.median(of_data[tail])",
        "away = pd.DataFrame",
        "risk = pd.Series",
        "def barycentre",
        four=four,
        fits=fits,
        income=income,
        streams=lambda *_: (None, None),
        settings=settings,
        known=table[["gender", "age", "region"]],
        data=data,
        **{"unit": 500.0, "databases": 8, "resamples": 40, "seed": 1, "radius": 0.2},
        releases=5,
    )
    here.of = of
    return here


def test_databases_are_in_dollars_and_their_statistics_in_thousands(released, capsys):
    for who, values in released.of.items():
        close(released.incomes[who], values)
        for name in ("mean", "median", TAIL):
            drawn = [STATISTICS[name](one, axis=0) / 1000 for one in values]
            close(released.of_drawn[name][who], drawn)
    for name in ("mean", "median", TAIL):
        again = ppm.release.measure.resample(
            released.income, name, resamples=40, random_seed=1
        )
        close(released.of_data[name], again / 1000)


def test_violins_of_statistics_are_those_of_the_panel_s_synthesizer(released):
    panels = released.figures[0].axes
    for axes, name, (groups, _) in zip(
        panels, ("mean", "median", TAIL), released.violins, strict=False
    ):
        assert axes.get_title() == name
        assert [*groups] == ["Data", *WHO]
        middle = np.median(released.of_data[name])
        close(axes.lines[-1].get_ydata(), middle)
        for who, values in groups.items():
            whole = released.of_drawn[name].get(who, released.of_data[name])
            close(values, [x for x in whole if 0.7 * middle < x < 1.3 * middle])


def test_along_the_settings_each_synthesizer_stands_at_dpweighted_s_bound(released):
    middle = np.median(released.of_data[TAIL])
    (band, *_) = released.figures[1].axes[0].patches
    ends = band.get_xy()[1], band.get_xy()[1] + band.get_height()
    close(ends, np.quantile(released.of_data[TAIL], [0.025, 0.975]))
    sides = {"DPweighted": "low", "EMweighted": "high"}
    for which, ((groups, options), who) in enumerate(
        zip(released.violins[3:], sides, strict=True)
    ):
        close(options["at"], [9, 4])
        assert options["side"] == sides[who]
        assert {*options["colours"]} == {released.plots.COLOURS[who]}
        for setting, values in groups.items():
            whole = STATISTICS[TAIL](released.drawn_at[setting][which], axis=1) / 1000
            close(values, whole[np.abs(whole / middle - 1) < 0.3])
    labels = [text.get_text() for text in released.figures[1].legends[0].get_texts()]
    assert labels == [*sides]


def test_the_match_risk_is_that_of_the_published_databases(released):
    for who, values in ({"Data": released.income[None]} | released.of).items():
        found = []
        for one in values[:5]:
            expected = 0.0
            for i, own in enumerate(released.income):
                alike = released.known["region"] == released.known["region"][i]
                near = alike & (np.abs(one - own) <= 0.2 * own)
                if near[i]:
                    expected += 1 / near.sum()
            found.append(expected)
        close(released.risk[who], np.mean(found))


def test_the_median_of_a_barycentre_is_off_that_of_resampled_data(released):
    shown = released.tables[-1]
    for name in ("mean", TAIL):
        truth = np.median(
            ppm.release.measure.resample(
                released.income, name, resamples=40, random_seed=1
            )
        )
        for who, values in released.of.items():
            ours = ppm.release.measure.resample(
                values[:5], name, resamples=40, random_seed=1
            )
            close(shown.loc[who, name], 100 * (np.median(ours) - truth) / truth)


def test_typical_errors_are_those_of_all_units_and_of_the_later_quarters(released):
    education = pd.DataFrame({"education": np.repeat([*"ab"], [60, 80])})
    rng = np.random.default_rng(2)
    income, quarter = rng.lognormal(10, 0.4, 140), np.arange(140) % 5 == 0
    incomes = {
        who: income * rng.normal(1 + i / 9, 0.1, (6, 140)) for i, who in enumerate(WHO)
    }
    alone = income[~quarter] * rng.normal(0.8, 0.1, (6, (~quarter).sum()))
    here = after(
        "ce_application",
        "release_errors = ppm",
        data=SimpleNamespace(table=education),
        **{"income": income, "quarter": quarter, "incomes": incomes, "alone": alone},
        **{
            "ALONE": "First quarter alone",
            "tail": TAIL,
            "groups": "means by education",
        },
    )
    (table,) = here.tables

    def gini(values):
        apart = np.abs(values[:, None] - values)
        return apart.mean() / 2 / values.mean()

    simple = {
        "mean": np.mean,
        "median": np.median,
        TAIL: lambda values: np.quantile(values, 0.9),
    }
    simple |= {"Gini coefficient": gini}
    every = {
        who: (income, values, education["education"]) for who, values in incomes.items()
    }
    every["First quarter alone"] = (
        income[~quarter],
        alone,
        education["education"][~quarter],
    )
    for who, (truth, values, level) in every.items():
        for name, of in simple.items():
            off = [abs(of(one) / of(truth) - 1) for one in values]
            close(table.loc[who, name], 100 * np.median(off), rtol=0.02)
        worst = []
        for one in values:
            worst.append(
                max(
                    abs(one[level == x].mean() / truth[level == x].mean() - 1)
                    for x in "ab"
                    if (level == x).sum() >= 50
                )
            )
        found = table.loc[who, "means by education"]
        assert found == pytest.approx(100 * np.median(worst), rel=0.05)


@pytest.fixture(scope="module")
def ledger(released):
    """The last cell, on fits of everything before it."""
    names = vars(released) | {
        "ledger_values": ledger_values,
        "of_one": {
            rule: known_fit(delta)
            for rule, delta in zip("abc", (50.0, 20.0, 6.0), strict=True)
        },
        "components": 2,
        "ALONE": "First quarter alone",
        "published": known_fit(33.0),
        "over_determined": known_fit(70.0),
        "typical": {("mean", "DPweighted"): (4.0, 0.5), ("mean", "Data"): (3.0, 0.1)},
        "ten": pd.DataFrame({"region": [1, 1, 2], "cbsa": [1, 2, 3]}),
        "pd": pd,
    }
    for fit in [
        *names["of_one"].values(),
        names["published"],
        names["over_determined"],
    ]:
        fit.draws_used = 55
    names.pop("page")
    return after("ce_application", "bounds_table = (", **names)


def test_every_fit_of_the_chapter_is_saved_in_its_row(ledger):
    table = ledger.saved["local_bounds"]
    (dp, em), (last_dp, last_em) = ledger.fits.values()
    none = (np.nan, np.nan)
    one, first, last = ledger.of_one.values()
    expected = {
        (1, "Unweighted", *none): one,
        (1, "DPweighted", 0.7, 0.0): first,
        (1, "DPweighted", 0.5, -0.3): last,
        (2, "Unweighted", *none): ledger.four["Unweighted"],
        (2, "Countweighted", *none): ledger.four["Countweighted"],
        (2, "DPweighted", 0.7, 0.0): dp,
        (2, "EMweighted", 0.7, 0.0): em,
        (2, "DPweighted", 0.5, -0.3): last_dp,
        (2, "EMweighted", 0.5, -0.3): last_em,
        (2, "First quarter alone", *none): ledger.published,
        (10, "Unweighted, log income", *none): ledger.over_determined,
    }
    assert len(table) == len(expected)
    for (place, fit), (index, row) in zip(
        expected.items(), table.iterrows(), strict=True
    ):
        np.testing.assert_equal(index, place)
        told = {
            "average weight": sum(fit.weights) / len(fit.weights),
            "records removed": sum(weight == 0 for weight in fit.weights),
            "epsilon, 1 release": 2 * fit.local_bound,
            "epsilon, 5 releases": 10 * fit.local_bound,
            "oscillation bound": 1.5 * fit.local_bound,
            "draws": fit.draws_used,
            "local bound": fit.local_bound,
            "smallest Δ of a chain": 0.7 * fit.local_bound,
        }
        for column, value in told.items():
            close(row[column], value)


def test_a_percentile_s_distance_from_the_data_is_that_of_its_resamples(
    ledger, released
):
    table = ledger.saved["percentile_utility"]

    def again(values):
        return ppm.release.measure.resample(values, TAIL, resamples=40, random_seed=1)

    real = again(released.income)
    rows = {who: again(released.of[who][:5]) for who in ("Unweighted", "Countweighted")}
    for setting, pair in released.drawn_at.items():
        for who, values in zip(("DPweighted", "EMweighted"), pair, strict=True):
            rows["{} ({:g}, {:g})".format(who, *setting)] = again(values[:5])
    assert {*rows} == {*table.index}
    for name, one in rows.items():
        close(table.loc[name, "median"], np.median(one))
        close(
            table.loc[name, "shift (%)"],
            100 * (np.median(one) - np.median(real)) / np.median(real),
        )
        levels = np.linspace(0, 1, 100_001)[1::2]
        apart = np.mean(
            [
                abs(
                    np.quantile(one, levels, method="inverted_cdf")
                    - np.quantile(real, levels, method="inverted_cdf")
                )
            ]
        )
        close(table.loc[name, "distance (%)"], 100 * apart / np.median(real), rtol=1e-3)


def test_the_ledger_has_the_application_s_numbers(ledger, released):
    told = ledger.saved["values"]
    (dp, em), (last_dp, last_em) = ledger.fits.values()
    count, whole = ledger.four["Countweighted"], ledger.four["Unweighted"]
    deviation = {
        name: np.std(1000 * released.of_data[name], ddof=1) for name in ("mean", TAIL)
    }

    expected = {
        "units": 6,
        "share of the records used": 1,
        "smallest income": released.income.min(),
        "largest income": released.income.max(),
        "skewness of income": np.mean(stats.zscore(released.income) ** 3),
        "predictors": 2,
        "categories": [2],
        "categories of the proxies": [3],
        "releases": 5,
        "Unweighted: local bound": [40],
        "DPweighted: local bounds": [9, 4],
        "DPweighted: reduction of the local bound": [1 - 4 / 9],
        "DPweighted: ratio of ε in all to the local bound": 2 * 5,
        "EMweighted: bound over DPweighted's": [8 / 9, 3 / 4],
        "EMweighted: share of records with a lower bound than under DPweighted": 1,
        "DPweighted: median record bound over the largest": [(0.46**2 + 0.64**2) / 2],
        "DPweighted: share of records with less than half the largest weight": 0.5,
        "DPweighted: smallest and largest weight": [0.1 * 4 / 60, 0.9 * 9 / 60],
        "DPweighted: spread of the weights": np.std(dp.weights),
        "EMweighted: spread of the weights": np.ptp(last_em.weights),
        "DPweighted: spread of the weights without a shift": [np.std(dp.weights)],
        "DPweighted: average weights at scale 0.5 by falling shift": [
            last_dp.weights.mean()
        ],
        "Countweighted: bound over DPweighted's": [60 / 9],
        "rank correlation of count risk and bound": stats.kendalltau(
            -count.weights, whole.record_bounds
        ).statistic,
    }
    for name in ("mean", TAIL):
        far = {}
        for who, values in released.of.items():
            ours = ppm.release.measure.resample(
                values[:5], name, resamples=40, random_seed=1
            )
            real = np.median(1000 * released.of_data[name])
            far[who] = abs(np.median(ours) - real) / deviation[name]
            expected[f"{who}: distance of the {name} from the data"] = far[who]
        expected[
            f"DPweighted and Unweighted: difference of the distances of the {name}"
        ] = far["DPweighted"] - far["Unweighted"]
        drawn = 1000 * released.of_drawn[name]["DPweighted"]
        expected[f"DPweighted: scatter of the {name} over releases"] = (
            np.std(drawn, ddof=1) / deviation[name]
        )
    rows = ledger.saved["percentile_utility"]["median"]
    for who in ("DPweighted", "EMweighted"):
        one, other = rows[f"{who} (0.7, 0)"], rows[f"{who} (0.5, -0.3)"]
        expected[f"{who}: movement of the {TAIL}"] = abs(other - one) / deviation[TAIL]
        real = np.median(1000 * released.of_data[TAIL])
        expected[f"{who}: distances of the {TAIL} along the settings"] = (
            np.abs([one - real, other - real]) / deviation[TAIL]
        )

    for name, value in expected.items():
        close(told[name]["value"], value, err_msg=name)
    for name in ("mean", TAIL):
        # the error of a median of releases, in the same unit
        values = STATISTICS[name](released.incomes["DPweighted"], axis=1)
        error, _ = ledger_values.error_over_releases(values)
        of = told[f"DPweighted: distance of the {name} from the data"]
        close(of["error"], error / deviation[name])
    # errors of quotients of two independent bounds, of which each is a fiftieth
    close(
        told["Countweighted: bound over DPweighted's"]["error"],
        60 / 9 * np.sqrt(2) / 50,
    )
    close(
        told["DPweighted: reduction of the local bound"]["error"],
        4 / 9 * np.sqrt(2) / 50,
    )
    saved = ledger.saved
    assert saved["utility"] is ledger.utility and saved["errors_along"] is ledger.away
    sizes = saved["release_errors"]["error (%)", "mean"]
    close(sizes[["DPweighted", "Data"]], [4, 3])
    close(saved["match_risk"]["expected match risk"], ledger.risk)
