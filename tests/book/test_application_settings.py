"""The chapter on settings: its tables and values against each other, by other means."""

import json

import numpy as np
import pandas as pd
import pytest

PAPER = {"Unweighted": 78.7, "(0.7, 0)": 10.1, "(0.5, -0.3)": 2.25}
STATISTICS = ("mean", "90th percentile")


@pytest.fixture(scope="module")
def results(notebooks):
    return notebooks.executed("application_settings")


def table(results, name, levels):
    # what misses no point says none, which is no missing value
    return pd.read_csv(
        results / f"{name}.csv", index_col=[*range(levels)], keep_default_na=False
    )


def test_the_points_that_a_model_misses_are_those_that_its_numbers_show(results):
    models = table(results, "models_tried", 2)
    assert {*models["misses"]} - {"none"}
    for _, row in models.iterrows():
        missed = set(row["misses"].replace("none", "").split(", ")) - {""}
        assert missed <= {"1", "2", "3"}
        assert ("1" in missed) >= (max(row["R-hat"], row["R-hat, log-lik."]) > 1.05)
        within, of = row["fits agree"].split(" of ")
        assert ("1" in missed) == (int(within) < int(of))
        assert ("3" in missed) >= any(
            abs(row[f"{name} (%)"]) > 10 for name in STATISTICS
        )


def test_the_distance_of_a_model_is_the_typical_factor_between_its_bounds_and_the_papers(
    results,
):
    models = table(results, "models_tried", 2).replace("", np.nan)
    whole = models.dropna(subset=["off the paper's"])
    assert len(whole)
    for _, row in whole.iterrows():
        apart = [np.log2(float(row[name]) / paper) for name, paper in PAPER.items()]
        factor = 2 ** np.sqrt(np.mean(np.square(apart)))
        assert float(row["off the paper's"]) == pytest.approx(factor, rel=1e-9)


def test_a_mechanism_is_closer_where_two_standard_errors_leave_no_doubt(results):
    verdicts = table(results, "equal_bounds_by_model", 3)
    assert len(verdicts)
    for _, row in verdicts.iterrows():
        gap, margin = row["difference"], row["±"]
        assert gap == pytest.approx(row["DPweighted"] - row["EMweighted"])
        sides = {"DPweighted": gap < -margin, "EMweighted": gap > margin, "": True}
        assert sides[row["closer"]]


def test_the_ledger_has_the_distances_of_the_table(results):
    verdicts = table(results, "equal_bounds_by_model", 3)
    values = json.loads((results / "values.json").read_text("utf-8"))["values"]
    for who in ("DPweighted", "EMweighted"):
        for (statistic, model), rows in verdicts.groupby(level=[0, 1], sort=False):
            scale, components = model.split(", ")
            told = values[f"{components}, {scale}: distances of the {statistic}, {who}"]
            assert told["value"] == pytest.approx(rows[who].tolist())
    named = [name for name in values if "distances of" in name]
    assert len(named) == 2 * len(verdicts.groupby(level=[0, 1]))
