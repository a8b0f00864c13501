"""Files as they come: in zips and folders, of other years, damaged, of another kind."""

import zipfile

import pandas as pd
import pytest
from survey_files import csv_text, unit, write_zip

from ppm_book.chapters import survey

ONE, TWO = csv_text(unit(1)), csv_text(unit(1), unit(2))


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"x/": "", "x/fmli171x.dta": ONE, "x/mine.csv": ONE}, "has no FMLI or FMLD"),
        ({"fmli171x.csv": ONE, "fmld171.csv": ONE}, "has both Interview"),
        (
            {"a/fmli171x.csv": ONE, "b/FMLI171X.csv": TWO},
            "has .* in two places; give one release",
        ),
    ],
)
def test_folders_and_zips_that_are_not_one_survey_are_refused(tmp_path, files, words):
    path = write_zip(tmp_path / "a.zip", files)
    # a folder may be called so as well
    (folder := tmp_path / "b" / "a.zip").mkdir(parents=True)
    zipfile.ZipFile(path).extractall(folder)
    for given in (path, folder):
        with pytest.raises(survey.DataFileError, match=rf"^a\.zip {words}"):
            survey.load(given)


@pytest.mark.parametrize(
    "name",
    ["fmli171x.csv", "INTRVW17/FMLI171X.CSV", "a/b/fmli171x.csv", "a/fmli171.csv"],
)
def test_a_file_is_found_however_it_is_packed(tmp_path, name):
    path = write_zip(
        tmp_path / "Year.ZIP",
        {name: TWO, "readme.txt": "", "fmli172.csv": ONE, "old/fmli171.csv": ONE}
        if "x" in name.lower()
        else {name: TWO},
    )
    data = survey.load(path)
    assert len(data.table) == 2 and {*data.quarter} == {"2017Q1"}
    assert "fmli171" in data.source.lower() and "/" not in data.source


@pytest.mark.parametrize(
    ("name", "psu"),
    [
        ("fmli144.csv", "S12A"),
        ("fmli971.csv", "1102"),
        # the first quarter of 2015 as the release of 2014 has it
        ("fmli151.csv", "1102"),
    ],
)
def test_a_file_of_before_2015_is_refused_by_its_name_or_its_codes(tmp_path, name, psu):
    (tmp_path / name).write_text(csv_text(unit(1), unit(2, PSU=psu)))
    with pytest.raises(
        survey.DataFileError, match=f"^{name}.* 2015; the codes of these years"
    ):
        survey.load(tmp_path / name)


def test_a_folder_of_many_years_says_which_quarters_can_be_read(tmp_path):
    years = ("141x", "142", "191x", "192", "193", "204", "211", "221", "224")
    path = write_zip(tmp_path / "a.zip", {f"y/fmli{year}.csv": ONE for year in years})
    words = "2019Q1 to 2019Q3 and 2020Q4 to 2021Q1 and 2022Q1 and 2022Q4 can be read"
    for quarters in (None, "all"):
        with pytest.raises(
            survey.DataFileError, match=f"^fmli141x.csv is older.* here {words}, in a"
        ):
            survey.load(path, quarters=quarters)
    # and these can
    (folder := tmp_path / "b").mkdir()
    with zipfile.ZipFile(path) as archive:
        for year in years[2:]:
            archive.extract(f"y/fmli{year}.csv", folder)
    assert {*survey.load(folder).quarter} == {"2019Q1"}


@pytest.mark.parametrize("name", ["fmli171x.csv.gz", "intrvw17.ZIP", "a/fmli17.tar"])
def test_what_is_packed_inside_is_told_by_its_name(tmp_path, name):
    path = write_zip(tmp_path / "a.zip", {name: "1", "readme.txt": ""})
    packed = name.rpartition("/")[2]
    words = rf"has no FMLI or FMLD .*; unpack '{packed}' first$"
    (single := tmp_path / packed).write_text("1")
    for given in (path, *([] if packed.endswith("ZIP") else [single])):
        with pytest.raises(survey.DataFileError, match=rf"^{given.name} {words}"):
            survey.load(given)


def test_a_zip_that_cannot_be_unpacked_is_told_with_what_to_do(tmp_path):
    path = write_zip(tmp_path / "a.zip", {"fmli171x.csv": TWO})
    raw = path.read_bytes()
    place = raw.index(b"fmli171x.csv") + 20
    for damaged in (
        b"<!doctype html>",
        raw[:-30],
        raw[:place] + bytes(20) + raw[place + 20 :],
    ):
        path.write_bytes(damaged)
        with pytest.raises(
            survey.DataFileError, match=r"^a\.zip cannot be unpacked \(.*\): get it"
        ):
            survey.load(path)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (ONE.encode("utf-16"), "is not a Consumer Expenditure FMLI or FMLD file"),
        (b"\n<!DOCTYPE html>", "is not a Consumer Expenditure FMLI or FMLD file"),
        (b"", "is not a Consumer Expenditure FMLI or FMLD file"),
        (TWO.replace("x,", '"x,', 1).encode(), "is not a well-formed CSV file"),
    ],
)
def test_a_file_that_is_no_table_is_told_so(tmp_path, raw, words):
    (tmp_path / "fmli171x.csv").write_bytes(raw)
    with pytest.raises(survey.DataFileError, match=f"^fmli171x.csv {words}") as refused:
        survey.load(tmp_path / "fmli171x.csv")
    assert str(refused.value).isprintable()


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (["fmli171x.csv"], "got list of length 1; of several files give their folder"),
        (pd.DataFrame({"NEWID": [1, 2]}), "got DataFrame of shape .2, 1."),
    ],
)
def test_what_is_no_path_is_told_by_its_type(path, words):
    with pytest.raises(TypeError, match=f"^path must be a path or None, {words}"):
        survey.load(path)
    with pytest.raises(FileNotFoundError, match="^no such file or folder: .*none.csv$"):
        survey.load("none.csv")
