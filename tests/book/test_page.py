"""Result tables on the page and in the folder of a run."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from survey_files import csv_text, unit

from ppm_book import page, survey
from ppm_book.page import data_kind

TABLE = pd.DataFrame({"bound": [10.1234, 1234.5]}, index=["a", "b"])


def test_a_table_goes_to_the_folder_of_the_run(tmp_path, monkeypatch):
    monkeypatch.setenv("PPM_RESULTS", str(tmp_path))
    page.save(TABLE, "bounds")
    written = pd.read_csv(tmp_path / "bounds.csv", index_col=0)
    pd.testing.assert_frame_equal(written, TABLE)


def test_without_a_run_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.delenv("PPM_RESULTS", raising=False)
    monkeypatch.chdir(tmp_path)
    page.save(TABLE, "bounds")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["", "../bounds", "Bounds", "a.csv"])
def test_names_that_are_no_file_names_are_refused(name):
    with pytest.raises(ValueError, match="name must be"):
        page.save(TABLE, name)


def test_named_indices_stand_in_the_one_row_of_headings():
    html = page.table(TABLE.rename_axis("setting"), "Bounds.").to_html()
    assert html.count("<tr>") == 3 and ">setting</th>" in html


def test_only_columns_of_sentences_are_kept_wide():
    why = "one number for each record, by how rare it is"
    words = {"name": ["weights"], "why": [why], "n": [3]}
    html = page.table(pd.DataFrame(words), "What may leave.").to_html()
    wide = re.findall(r"\.col(\d) \{\s*min-width", html)
    assert wide == ["1"]
    assert re.findall(r"\.col(\d) \{\s*text-align: right", html) == ["2"]


def test_a_simulated_table_says_so():
    html = page.table(TABLE, "Bounds.", digits=1, simulated=True).to_html()
    assert "Simulated stand-in" in html and "10.1" in html and "1,234.5" in html
    assert "Simulated" not in page.table(TABLE, "Bounds.").to_html()


VALUES = {"a bound": {"value": [1.5, None], "error": [0.1, None]}}


def test_values_say_which_data_they_come_from(tmp_path, monkeypatch):
    monkeypatch.setenv("PPM_RESULTS", str(tmp_path))
    page.save_values(VALUES, data=survey.simulate(50, random_seed=1))
    saved = json.loads((tmp_path / "values.json").read_text("utf-8"))
    assert saved["data"] == "simulated" and "stand-in" in saved["source"]
    assert saved["values"] == VALUES and not saved["part"]
    part = survey.simulate(80, random_seed=1).subsample(60, random_seed=1)
    page.save_values(VALUES, data=part)
    assert json.loads((tmp_path / "values.json").read_text("utf-8"))["part"]
    page.save_values(VALUES, data=None)
    assert json.loads((tmp_path / "values.json").read_text("utf-8"))["data"] == "drawn"


def test_values_without_a_run_or_without_an_error(tmp_path, monkeypatch):
    monkeypatch.delenv("PPM_RESULTS", raising=False)
    monkeypatch.chdir(tmp_path)
    page.save_values(VALUES, data=None)
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="'b' must have a value and an error"):
        page.save_values({"b": 3.0}, data=None)


def test_what_is_not_finite_is_saved_as_null_and_text_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setenv("PPM_RESULTS", str(tmp_path))
    entry = {"value": [1.0, float("inf")], "error": float("nan"), "doubt": "few"}
    page.save_values({"b": entry}, data=None)
    saved = json.loads((tmp_path / "values.json").read_text("utf-8"))["values"]
    assert saved == {"b": {"value": [1.0, None], "error": None, "doubt": "few"}}
    page.save_text("part", "Δ is large.\n")
    assert (tmp_path / "part.md").read_text("utf-8") == "Δ is large.\n"


def kept(text, *given):
    """A function of this text, kept, and the arguments that it was really called with."""
    called = []

    def function(*arguments):
        called.append(arguments)
        return {"sum": np.sum(arguments), "parts": np.array(arguments)}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page.inspect, "getsource", lambda function: text)
        return page.kept(*given)(function), called


def test_a_kept_result_comes_back_only_for_the_same_text_arguments_and_library(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("PPM_FITS", str(tmp_path / "fits"))
    first, called = kept("def f", 2022)
    result = first(1.0, 2.0)
    again, not_called = kept("def f", 2022)
    found = again(1.0, 2.0)
    assert found["sum"] == result["sum"] == 3.0 and found["parts"].tolist() == [1.0, 2.0]
    assert called == [(1.0, 2.0)] and not not_called
    others = [kept("def f, changed", 2022), kept("def f", 2023), kept("def f", 2022)]
    for (function, calls), argument in zip(others, (2.0, 2.0, 3.0), strict=True):
        function(1.0, argument)
        assert len(calls) == 1
    monkeypatch.setattr(page, "_library", lambda: "another version")
    changed, calls = kept("def f", 2022)
    changed(1.0, 2.0)
    assert len(calls) == 1


def test_what_is_kept_is_the_owners_and_says_that_it_is_confidential(tmp_path, monkeypatch):
    folder = tmp_path / "fits"
    monkeypatch.setenv("PPM_FITS", str(folder))
    kept("def f")[0](1.0)
    files = sorted(folder.iterdir())
    assert [file.suffix for file in files] == [".txt", ".npz"]
    assert folder.stat().st_mode & 0o077 == 0 and files[1].stat().st_mode & 0o077 == 0


def test_a_fit_that_stops_leaves_nothing_and_outside_a_run_nothing_is_kept(tmp_path, monkeypatch):
    def stops(_):
        raise KeyboardInterrupt

    monkeypatch.setenv("PPM_FITS", str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        page.kept()(stops)(1.0)
    monkeypatch.delenv("PPM_FITS")
    monkeypatch.chdir(tmp_path)
    kept("def f")[0](1.0)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "year", "month", "kind"),
    [
        ("fmli171x.csv", None, None, "interview"),
        ("families.csv", "2017", "03", "interview"),
        ("families.csv", "2017", "04", "other"),
        # counted as the paper's when its kind was looked up in a sentence
        ("families_2019.csv", "2019", "02", "other"),
        ("families.csv", None, None, "other"),
        ("fmli172.csv", None, None, "other"),
    ],
)
def test_only_the_papers_own_quarter_counts_as_the_papers(tmp_path, name, year, month, kind):
    units = [unit(1, FINCBTXM="100"), unit(2, FINCBTXM="200"), unit(3, FINCBTXM="300")]
    if year is not None:
        units = [{**row, "QINTRVYR": year, "QINTRVMO": month} for row in units]
    (tmp_path / name).write_text(csv_text(*units))
    data = survey.load(tmp_path / name)
    assert data_kind(data) == kind
    # the sentence that a reader sees says the same
    own = not any("2017 Q1" in sentence for sentence in data.substitutions)
    assert own == (kind == "interview")
    assert data_kind(data.subsample(2, random_seed=1)) == "other"


def test_columns_that_are_called_by_numbers_are_written_without_zeros():
    shown = page.table(
        pd.DataFrame({1.0: [2.0], 1.05: [3.0], "n": [4]}), "Shares."
    ).to_html()
    assert re.findall(r"<th [^>]*col_heading[^>]*>([^<]*)</th>", shown) == ["1", "1.05", "n"]


def test_a_moving_picture_computes_each_frame_once_and_no_word_of_it_ends_its_script():
    def frame(a, b):
        return f"{min(a, b)} </script><b>", [{"bars": np.array([a / 3, 1.0])}]

    picture = page.moving(
        "Two", {"One a": {"1": 1, "2": 2}, "Other b": {"4": 4, "5": 5, "6": 6}}, frame,
        panels=[{"outline": np.array([2 / 3])}], start=[2, 5], hint="Try.", simulated=True,
    )
    content = picture.content
    # row by row, the last slider moves first
    assert content["at"] == [0, 0, 0, 1, 1, 1]
    assert [now[0]["bars"] for _, now in content["frames"]] == [[0.333, 1.0], [0.667, 1.0]]
    assert content["panels"] == [{"outline": [0.667]}]
    assert [slider["at"] for slider in content["sliders"]] == [1, 1]
    assert content["hint"] == "Try. Simulated stand-in, not survey data."
    shown = picture._repr_html_()
    assert shown.count("</script>") == 1 and "<b>" not in shown
    data = re.search(r"<script[^>]*>(.*)</script>", shown)[1]
    assert json.loads(data) == json.loads(json.dumps(content))
    with pytest.raises(ValueError, match="Out of range float"):
        page.moving("Bad", {"a": {"1": float("nan")}}, lambda a: ("", [{"bars": [a]}]), panels=[{}])
