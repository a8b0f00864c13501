"""The chapter on settings: its tables and values against each other, by other means."""

import json
import re

import numpy as np
import pandas as pd
import pytest


@pytest.fixture(scope="module")
def results(notebooks):
    return notebooks.executed("application_settings")


def table(results, name, levels):
    return pd.read_csv(results / f"{name}.csv", index_col=[*range(levels)])


def test_the_distance_of_a_setting_is_the_typical_factor_between_its_bounds_and_the_papers(
    results,
):
    *bounds, paper = table(results, "open_settings", 2).T.items()
    nearest = table(results, "open_settings_distance", 2)
    assert nearest["factor"].is_monotonic_increasing and len(nearest) == len(bounds)
    for (name, components), row in bounds:
        apart = np.abs(np.log2(row / paper[1]))
        found = nearest.loc[(name, int(components))]
        assert found["factor"] == pytest.approx(
            2 ** np.sqrt(np.mean(apart**2)), rel=1e-9
        )
        assert found["error"] > 0


def test_the_ledger_has_the_distances_of_the_table(results):
    fits = table(results, "equal_bounds_by_components", 3).xs(
        "EMweighted", level="mechanism"
    )
    values = json.loads((results / "values.json").read_text("utf-8"))["values"]
    seen = set()
    for (combination, _), row in fits.iterrows():
        for statistic in ("mean", "90th percentile"):
            seen.add(name := f"{combination}: distances of the {statistic}, EMweighted")
            told = values[name]
            assert told == {
                "value": [pytest.approx(abs(row[statistic]))],
                "error": [pytest.approx(row[f"{statistic}, error"])],
            }
    assert seen and seen == {
        each for each in values if re.search("distances .* EMweighted", each)
    }


def test_every_row_has_the_weights_of_its_mechanism(results):
    fits = table(results, "equal_bounds_by_components", 3)
    weights = fits["average weight"].unstack("mechanism")
    assert (weights["Unweighted"] == 1).all()
    # 0 for a hundredth of 150 records, rounded
    assert weights["Trimmed"].to_numpy() == pytest.approx(148 / 150)
    # the same weights, dealt again
    assert weights["Shuffled"].to_numpy() == pytest.approx(weights["DPweighted"])
    assert (weights[["DPweighted", "EMweighted"]] < 1).all(axis=None)
    assert fits["local bound"].unstack("mechanism").nunique(axis=1).eq(5).all()
