"""The chapter on settings: its distances and the sentences that it computes."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from conftest import ROOT

import ppm
from ppm_book import application, ledger_values, page, survey

NAMES = ["mean", "10th percentile", "median", "90th percentile"]
LABELS = ["K = 1, log", "K = 2, log", "K = 2, asinh", "K = 10, log"]
MECHANISMS = ["Unweighted", "DPweighted", "EMweighted", "Shuffled", "Trimmed"]


def run(given, *cells):
    """What the chapter's cells with these names make of what is given."""
    chapter = json.loads((ROOT / "notebooks" / "application_settings.ipynb").read_text("utf-8"))
    source = {cell["id"]: "".join(cell["source"]) for cell in chapter["cells"]}
    data = survey.simulate(60, random_seed=1)
    space = {"np": np, "pd": pd, "ppm": ppm, "page": page, "ledger_values": ledger_values,
             "application": application, "data": data,
             "income": data.table["income"].to_numpy(), "seed": 7} | given
    for name in cells:
        exec(source[name], space)
    return space


def study(off, error=0.3, labels=LABELS):
    """Fits whose statistics are off as given, by combination and mechanism, with three seeds."""
    settings = ["(0.7, 0)", "(0.5, -0.3)"]
    levels = ["combination", "repeat", "setting", "mechanism"]
    index = pd.MultiIndex.from_product([labels, range(3), settings, MECHANISMS], names=levels)
    values = np.repeat(np.asarray(off, float)[:, None], 6, axis=1).ravel()
    columns = {name: values for name in NAMES} | {f"{name}, error": error for name in NAMES}
    columns |= {"local bound": 80.0, "R-hat": 1.0, "R-hat of the sum": 1.0}
    fits = pd.DataFrame(columns, index)
    return {"fits": fits, "labels": labels, "names": NAMES, "mechanisms": MECHANISMS,
            "pairs": settings, "configurations": [[0.7, 0.0], [0.5, -0.3]], "repeats": 3,
            "published": np.array([78.7]),
            "statistics": {name: ppm.utility.STATISTICS[name] for name in NAMES}}


OFF = [[9, 2, 5, 9, 1], [1, 5, 2, 1, 1], [-1, -4, -2, 1, 1], [0, 4, -4, 1, 1]]


@pytest.mark.parametrize(("off", "error", "told"), [
    ([9, 2, 5, 9, 1], 0.3, "DPweighted closer in all of 6 runs. Unweighted is off by +9 %"),
    ([-9, 5, -2, 9, 1], 0.3, "EMweighted closer in all of 6 runs. Unweighted is off by −9 %"),
    ([9, 2, 2.5, 9, 1], 0.3, "closer in 0, EMweighted in 0, undecided in 6"),
    ([9, 2, 5, 9, 1], 3.0, "closer in 0, EMweighted in 0, undecided in 6"),
])
def test_who_is_closer_is_told_only_where_the_errors_decide(off, error, told):
    said = []
    given = study([off], error, ["K = 1, log"])
    given["page"] = SimpleNamespace(save=page.save, shows=lambda *lines, **_: said.extend(lines))
    run(given, "headline-comparisons", "headline-verdict", "headline-reasons")
    assert all(told in line for line in said[:3])
    assert f"DPweighted {off[1] - off[0]:+.1f}".replace("-", "−") in said[-1]


def test_the_research_file_says_where_the_main_finding_holds(tmp_path, monkeypatch):
    monkeypatch.setenv("PPM_RESULTS", str(tmp_path))
    run(study(OFF), "headline-comparisons", "ledger-values", "ledger-finding")
    text = (tmp_path / "where_it_holds.md").read_text("utf-8").replace("\xa0", " ")
    won = "and in every run with K = 1, log; EMweighted with K = 2, log; K = 2, asinh. Neither was "
    assert text.count(f"{won}so throughout with K = 10, log.\n") == 2
    assert "| K = 2, asinh | 80.0 | (0.5, −0.3) | −1 % | −4 % | −2 % | 0 : 3 | 0 : 3 |\n" in text
    short = "- mean: DPweighted with K = 1, log; EMweighted with K = 2, log and with K = 2, asinh;"
    found = (tmp_path / "main_finding.md").read_text("utf-8")
    assert f"{short} neither with K = 10, log\n" in found
    values = json.loads((tmp_path / "values.json").read_text("utf-8"))["values"]
    assert values["K = 2, log: distances of the mean, DPweighted"]["value"] == [5] * 6
    difference = values["K = 2, log: DPweighted and Unweighted, difference of the 90th percentile"]
    assert np.all(np.array(difference["value"]) > 0)


def test_the_distance_of_bounds_that_are_all_off_by_a_factor_is_this_factor():
    index, settings = pd.MultiIndex.from_tuples([("log", 1), ("asinh", 2)]), list("abcdefg")
    published = np.array([8.0, 4, 2, 1, 1, 1, 1])
    bounds = np.array([[3.0] * 7, [1.0] * 6 + [2.0]]) * published
    given = {"index": index, "published": published, "settings": settings}
    given["study"] = [{"error": 0.1 * row} for row in bounds]
    given["bounds"] = pd.DataFrame(bounds, index, settings)
    nearest = run(given, "distance")["nearest"]
    assert list(nearest.index) == [("asinh", 2), ("log", 1)]
    np.testing.assert_allclose(nearest["factor"], [2 ** (1 / np.sqrt(7)), 3])
    # of seven independent relative errors of a tenth
    assert nearest.loc[("log", 1), "error"] == pytest.approx(0.1 / np.sqrt(7))


def test_ways_into_the_model_have_a_way_back():
    given = {"ce_data": "", "records": 0, "income_floor": 5.0, "chains": 2, "draws": 10}
    space = run(given | {"survey": survey}, "data")
    dollars = np.array([-7000.0, 0.0, 3.0, 50_000.0])
    lowest = {"log": 5.0, "asinh": -np.inf, "shifted log": -7000.0}
    for name, into in space["into"].items():
        there = into(dollars)
        assert np.isfinite(there).all() and np.all(np.diff(there) >= 0)
        back = space["back"][name](there)
        np.testing.assert_allclose(back, np.maximum(dollars, lowest[name]), atol=1e-6)
