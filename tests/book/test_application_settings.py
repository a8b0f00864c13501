"""The chapter on settings: its tables and values against each other, by other means."""

import json

import numpy as np
import pandas as pd
import pytest


@pytest.fixture(scope="module")
def results(notebooks):
    return notebooks.executed("application_settings")


def table(results, name, levels):
    return pd.read_csv(results / f"{name}.csv", index_col=[*range(levels)])


def test_the_distance_of_a_setting_is_the_typical_factor_between_its_bounds_and_the_papers(results):
    *bounds, paper = table(results, "open_settings", 2).T.items()
    nearest = table(results, "open_settings_distance", 2)
    assert nearest["factor"].is_monotonic_increasing and len(nearest) == len(bounds)
    for (name, components), row in bounds:
        apart = np.abs(np.log2(row / paper[1]))
        found = nearest.loc[(name, int(components))]
        assert found["factor"] == pytest.approx(2 ** np.sqrt(np.mean(apart**2)), rel=1e-9)
        assert found["error"] > 0


def test_who_is_closer_is_told_only_where_the_errors_decide(results):
    fits = table(results, "equal_bounds_by_components", 3)
    comparisons = table(results, "equal_bounds_comparisons", 3)
    values = json.loads((results / "values.json").read_text("utf-8"))["values"]
    for (statistic, *place), row in comparisons.iterrows():
        off = fits.loc[tuple(place), [statistic, f"{statistic}, error"]].T
        (dp, dp_error), (em, em_error) = (off[name].abs() for name in ("DPweighted", "EMweighted"))
        sure = np.abs(em - dp) > 2 * np.hypot(dp_error, em_error)
        assert row["DPweighted closer"] == (sure and dp < em)
        assert row["EMweighted closer"] == (sure and em < dp)
        assert row["Unweighted (%)"] == pytest.approx(off["Unweighted"].iloc[0])
        if statistic != "10th percentile":
            told = values[f"{place[0]}: distances of the {statistic}, EMweighted"]
            assert told == {"value": [pytest.approx(em)], "error": [pytest.approx(em_error)]}
    # one that is closer is among them
    assert comparisons.filter(like="closer").to_numpy().any()
