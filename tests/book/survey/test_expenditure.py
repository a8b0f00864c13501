"""The Consumer Expenditure reader, its simulated stand-in, the predictors and the download."""

import hashlib
import io
import os
import struct
import subprocess
import sys
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pandas as pd
import pytest
from conftest import ROOT
from survey_files import UNIT, csv_text, unit

from ppm_book import survey
from ppm_book.survey import files
from ppm_book.survey.design import left_out_columns, log_income, predictor_matrix
from ppm_book.survey.expenditure import LABELS
from ppm_book.survey.files import DataFileError

DIARY = ROOT.parent / "shared" / "data" / "diary17.zip"
needs_diary = pytest.mark.skipif(
    not DIARY.exists(), reason="the real 2017 Diary zip is not at ../shared/data/diary17.zip"
)
PAPER_COUNTS = {
    "gender": 2,
    "age": 5,
    "education": 8,
    "region": 4,
    "urban": 2,
    "marital_status": 5,
    "urban_type": 3,
    "cbsa": 3,
    "family_size": 11,
    "earner": 2,
}


# ------------------------------------------------------------------------------- tiny CE files

def write_zip(path, files, **options):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text, **options)
    return path


@pytest.fixture
def interview_zip(tmp_path):
    """Five quarters and other files, in a folder within the zip, as the Bureau has them."""
    quarters = {
        "fmli171x.csv": [unit(1, 2), unit(2, 1, FINCBTXM="-7000"), unit(3, 4)],
        "fmli172.csv": [unit(1, 3, FINCBTXM="1"), unit(2, 2), unit(4, 1)],
        "fmli173.csv": [unit(5, 1)],
        "fmli174.csv": [unit(6, 1)],
        "fmli181.csv": [unit(7, 1)],
    }
    files = {f"intrvw17/{name}": csv_text(*rows) for name, rows in quarters.items()}
    files["intrvw17/memi171x.csv"] = "NEWID,MEMBNO\n1,1\n"
    files["intrvw17/itbi171x.csv"] = "NEWID,UCC\n1,1\n"
    return write_zip(tmp_path / "intrvw17.zip", files)


def one_line(error):
    text = str(error.value)
    assert "\n" not in text and len(text) < 400
    return text


# ------------------------------------------------------------------------- the real Diary file


@pytest.fixture(scope="module")
def diary():
    return survey.load(DIARY)


@needs_diary
def test_real_diary_counts(diary):
    assert diary.survey == "diary" and not diary.simulated
    assert diary.rows_read == 11_658
    assert diary.units_read == 5_916
    assert diary.dropped == {"region suppressed": 258} and diary.suppressed == {"region": 258}
    assert len(diary.table) == 5_916 - 258
    for text in ("11,658", "5,916", "region suppressed: 258", "5,658", "less among them: 8"):
        assert text in diary.summary()
    assert "SIMULATED" not in diary.summary()


@needs_diary
def test_real_diary_incomes():
    kept = survey.load(DIARY, missing="category")
    income = kept.table["income"]
    assert len(income) == 5_916 and kept.dropped == {}
    assert kept.nonpositive == 8
    assert (round(income.min()), round(income.max())) == (-71_138, 835_531)
    assert round(income.median()) == 54_751
    assert kept.table["region"].cat.categories[-1] == "suppressed"
    assert (kept.table["region"] == "suppressed").sum() == 258
    assert "suppressed" not in kept.table["age"].cat.categories
    X, names = predictor_matrix(kept)
    assert X[:, names.index("region: suppressed")].sum() == 258


@needs_diary
def test_real_diary_first_week(diary):
    """One row a unit, its earliest week; taking the latest week gives other incomes."""
    with zipfile.ZipFile(DIARY) as archive:
        rows = pd.concat(
            pd.read_csv(archive.open(name), usecols=["NEWID", "REGION", "FINCBEFM"])
            for name in archive.namelist()
        ).sort_values("NEWID")
    assert len(rows) == 11_658  # without the rule: two rows for most units
    first = rows.groupby(rows["NEWID"] // 10).head(1).dropna(subset="REGION")
    last = rows.groupby(rows["NEWID"] // 10).tail(1).dropna(subset="REGION")
    np.testing.assert_array_equal(diary.table["income"], first["FINCBEFM"])
    assert not np.array_equal(diary.table["income"], last["FINCBEFM"])


@needs_diary
def test_real_diary_categories(diary):
    for name, count in PAPER_COUNTS.items():
        column = diary.table[name]
        assert column.cat.ordered and len(column.cat.categories) == count
        assert column.nunique() == count, name
    assert diary.table.index.equals(pd.RangeIndex(len(diary.table)))
    assert list(diary.table.columns) == [*PAPER_COUNTS, "income"]


@needs_diary
def test_real_diary_predictors_have_full_rank(diary):
    X, names = predictor_matrix(diary.table)
    assert X.shape == (5_658, 1 + sum(count - 1 for count in PAPER_COUNTS.values()))
    assert len(names) == X.shape[1] == np.linalg.matrix_rank(X)
    assert set(left_out_columns(diary.table).values()) == {"baseline"}
    # with every category of one variable the rank falls short: the check can fail
    full = np.column_stack([X, diary.table["gender"] == "male"])
    assert np.linalg.matrix_rank(full) < full.shape[1]


@needs_diary
def test_real_diary_description(diary):
    description = diary.description().set_index("variable")
    assert dict(description["categories (paper)"].dropna()) == PAPER_COUNTS
    assert dict(description["categories (here)"].dropna()) == PAPER_COUNTS
    assert list(description.index[description["note"] == "proxy"]) == ["urban_type", "cbsa"]
    assert description.loc["income", "source"] == "FINCBEFM"
    assert "about -70,000 to 800,000, rounded" in description.loc["income", "note"]


# ------------------------------------------------------------------------------------ Interview


def test_interview_reads_the_first_quarter(interview_zip):
    data = survey.load(interview_zip)
    assert data.survey == "interview"
    assert data.units_read == data.rows_read == len(data.table) == 3
    assert data.table["income"].tolist() == [50_000.5, -7_000.0, 50_000.5]
    assert data.nonpositive == 1
    assert "2017Q1" in data.source and "fmli171x.csv" in data.source
    assert str(interview_zip.parent) not in data.summary()
    assert len(data.substitutions) == 2 and all("proxy" in text for text in data.substitutions)
    assert data.description()["source"].iloc[-1] == "FINCBTXM"


def test_interview_quarters(interview_zip):
    """A unit seen in two quarters counts once, with its earliest interview."""
    both = survey.load(interview_zip, quarters=["2017Q2", "171"])
    assert (both.rows_read, both.units_read) == (6, 4)
    assert both.table["income"].tolist() == [50_000.5, -7_000.0, 50_000.5, 50_000.5]
    second = survey.load(interview_zip, quarters="2017Q2")
    assert second.table["income"].tolist() == [1.0, 50_000.5, 50_000.5]
    assert "2017Q2" in second.substitutions[0]
    assert survey.load(interview_zip, quarters="all").units_read == 7


@pytest.mark.parametrize(
    ("quarters", "words"),
    [
        ("2019Q1", "no 2019Q1; it has 2017Q1, 2017Q2"),
        ("spring", "'spring' is not a quarter"),
        ("2017Q5", "'2017Q5' is not a quarter"),
        ([], "empty"),
    ],
)
def test_interview_wrong_quarters(interview_zip, quarters, words):
    with pytest.raises(ValueError, match="quarters") as error:
        survey.load(interview_zip, quarters=quarters)
    assert words in one_line(error)


def test_folder_and_single_file_agree_with_the_zip(interview_zip, tmp_path):
    wanted = survey.load(interview_zip).table
    with zipfile.ZipFile(interview_zip) as archive:
        archive.extractall(tmp_path / "unpacked")
    for path in ("unpacked", "unpacked/intrvw17", "unpacked/intrvw17/fmli171x.csv"):
        pd.testing.assert_frame_equal(survey.load(tmp_path / path).table, wanted)
    own_name = tmp_path / "mine.csv"
    own_name.write_bytes((tmp_path / "unpacked/intrvw17/fmli171x.csv").read_bytes())
    pd.testing.assert_frame_equal(survey.load(str(own_name)).table, wanted)
    with pytest.raises(ValueError, match="mine.csv is one CSV file"):
        survey.load(own_name, quarters="2017Q2")


def test_revised_file_wins_over_its_namesake(tmp_path):
    (tmp_path / "z").mkdir()
    (tmp_path / "fmli171x.csv").write_text(csv_text(unit(1, FINCBTXM="2")))
    (tmp_path / "z" / "fmli171.csv").write_text(csv_text(unit(1, FINCBTXM="1")))
    assert survey.load(tmp_path).table["income"].tolist() == [2.0]


# ---------------------------------------------------------------------------------------- codes


def read(tmp_path, *rows, diary=False, **options):
    path = tmp_path / "file.csv"
    path.write_text(csv_text(*rows, diary=diary))
    return survey.load(path, **options)


@pytest.mark.parametrize(
    ("variable", "changes", "label"),
    [
        ("gender", {"SEX_REF": "2"}, "female"),
        ("age", {"AGE_REF": "19"}, "under 20"),
        ("age", {"AGE_REF": "20"}, "20 to 39"),
        ("age", {"AGE_REF": "59"}, "40 to 59"),
        ("age", {"AGE_REF": "79"}, "60 to 79"),
        ("age", {"AGE_REF": "80"}, "80 and over"),
        ("age", {"AGE_REF": "88"}, "80 and over"),
        ("education", {"EDUC_REF": "00"}, "never attended"),
        ("education", {"EDUC_REF": "0"}, "never attended"),
        ("education", {"EDUC_REF": "10"}, "nursery to grade 8"),
        ("education", {"EDUC_REF": "16"}, "master's, professional or doctorate"),
        ("region", {"REGION": " 3 "}, "South"),
        ("region", {"REGION": "4.0"}, "West"),
        ("urban", {"BLS_URBN": "2"}, "rural"),
        ("marital_status", {"MARITAL1": "05"}, "never married"),
        ("urban_type", {"POPSIZE": "2"}, "1 million or more"),
        ("urban_type", {"POPSIZE": "3"}, "100 thousand to 1 million"),
        ("urban_type", {"POPSIZE": "4"}, "100 thousand to 1 million"),
        ("urban_type", {"POPSIZE": "5"}, "under 100 thousand"),
        ("cbsa", {"SMSASTAT": "1", "PSU": "S12A"}, "named metropolitan area"),
        ("cbsa", {"SMSASTAT": "1", "PSU": " "}, "other metropolitan area"),
        ("cbsa", {"SMSASTAT": "2", "PSU": ""}, "outside a metropolitan area"),
        # an area that is named need not be a metropolitan one
        ("cbsa", {"SMSASTAT": "2", "PSU": "S12A"}, "outside a metropolitan area"),
        ("family_size", {"FAM_SIZE": "10"}, "10"),
        ("family_size", {"FAM_SIZE": "13"}, "11 or more"),
        ("earner", {"EARNCOMP": "4"}, "earns"),
        ("earner", {"EARNCOMP": "5"}, "does not earn"),
    ],
)
def test_codes(tmp_path, variable, changes, label):
    data = read(tmp_path, unit(1, **changes))
    assert data.table[variable].tolist() == [label]
    plain = read(tmp_path, unit(1)).table
    others = [name for name in plain if name != variable]
    pd.testing.assert_frame_equal(data.table[others], plain[others])


@pytest.mark.parametrize("blank", ["", " ", ".", "NA"])
def test_suppressed_cells(tmp_path, blank):
    rows = [
        unit(1, FINCBTXM="1000"),
        unit(2, REGION=blank),
        unit(3, REGION=blank, EDUC_REF=blank),
        unit(4, FINCBTXM=blank),
        unit(5, PSU=blank),  # says "not named", nothing is missing
    ]
    data = read(tmp_path, *rows)
    assert data.dropped == {
        "region suppressed": 1,
        "education and region suppressed": 1,
        "income blank": 1,
    }
    assert data.suppressed == {"education": 1, "region": 2}
    assert data.units_read == 5 == len(data.table) + sum(data.dropped.values())
    kept = read(tmp_path, *rows, missing="category")
    assert kept.dropped == {"income blank": 1}
    assert kept.table["region"].tolist().count("suppressed") == 2
    assert "education: 1; region: 2" in kept.summary()
    # what was suppressed is a fact about the file, whatever becomes of the units
    assert kept.suppressed == data.suppressed


def test_suppressed_values_are_counted_in_units_read_and_not_in_rows(tmp_path):
    """The second week of a unit does not count, a unit that is dropped for its income does."""
    data = read(
        tmp_path,
        unit(1, 1),
        unit(1, 2, REGION=""),
        unit(2, 1, REGION="", FINCBTXM=""),
        unit(3, 1, REGION="", FINCBTXM="7"),
        diary=True,
        missing="category",
    )
    assert data.suppressed == {"region": 2} and data.dropped == {"income blank": 1}
    assert (data.table["region"] == "suppressed").sum() == 1


# what the Bureau's dictionary says of every code since 2015
DICTIONARY = {
    "SEX_REF": {"1": "male", "2": "female"},
    "EDUC_REF": {
        "00": "never attended",
        "10": "nursery to grade 8",
        "11": "grades 9 to 12, no degree",
        "12": "high school graduate",
        "13": "some college, no degree",
        "14": "associate's degree",
        "15": "bachelor's degree",
        "16": "master's, professional or doctorate",
    },
    "REGION": {"1": "Northeast", "2": "Midwest", "3": "South", "4": "West"},
    "BLS_URBN": {"1": "urban", "2": "rural"},
    "MARITAL1": {
        "1": "married",
        "2": "widowed",
        "3": "divorced",
        "4": "separated",
        "5": "never married",
    },
    "POPSIZE": {
        "1": "1 million or more",
        "2": "1 million or more",
        "3": "100 thousand to 1 million",
        "4": "100 thousand to 1 million",
        "5": "under 100 thousand",
    },
    "EARNCOMP": {code: "earns" if code <= "4" else "does not earn" for code in "12345678"},
}


@pytest.mark.parametrize(
    ("column", "variable"),
    [
        ("SEX_REF", "gender"),
        ("EDUC_REF", "education"),
        ("REGION", "region"),
        ("BLS_URBN", "urban"),
        ("MARITAL1", "marital_status"),
        ("POPSIZE", "urban_type"),
        ("EARNCOMP", "earner"),
    ],
)
def test_every_code_has_the_label_of_the_bureau_s_dictionary(tmp_path, column, variable):
    """A pair of exchanged labels would put every widow's income among the divorced."""
    labels = DICTIONARY[column]
    rows = [unit(k, **{column: code}, FINCBTXM=str(k)) for k, code in enumerate(labels, start=1)]
    data = read(tmp_path, *rows)
    assert data.table[variable].tolist() == list(labels.values())
    # the order of the categories is that of the codes
    assert list(data.table[variable].cat.categories) == list(dict.fromkeys(labels.values()))


def test_first_week_whatever_the_order_of_rows(tmp_path):
    rows = [unit(2, 2, FINCBTXM="4"), unit(1, 2, FINCBTXM="2"), unit(1, 1, FINCBTXM="1")]
    data = read(tmp_path, *rows, diary=True)
    assert data.survey == "diary"
    assert data.table["income"].tolist() == [1.0, 4.0]  # unit 2 has its second week only
    assert "Diary Survey stands in" in data.summary()


def test_header_in_lower_case_with_byte_order_mark(tmp_path):
    path = tmp_path / "file.csv"
    head, rest = csv_text(unit(1)).split("\n", 1)
    path.write_text("\ufeff" + head.lower() + "\n" + rest, encoding="utf-8")
    assert len(survey.load(path).table) == 1


def test_quoted_cells(tmp_path):
    path = tmp_path / "file.csv"
    quoted = pd.DataFrame([{**UNIT, "OTHER": "a, b\nc"}]).to_csv(index=False, quoting=1)
    path.write_text(quoted)
    pd.testing.assert_frame_equal(survey.load(path).table, read(tmp_path, {}).table)


# ------------------------------------------------------------------------------------ bad input


def test_nothing_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="absent.zip") as error:
        survey.load(tmp_path / "absent.zip")
    one_line(error)
    with pytest.raises(ValueError, match="path is empty"):
        survey.load("")


def test_wrong_missing(interview_zip):
    with pytest.raises(ValueError, match="'drop' or 'category', got 'impute'"):
        survey.load(interview_zip, missing="impute")


def _corrupt(content):
    middle = len(content) // 2
    return (
        content[:middle]
        + bytes(b ^ 0x5A for b in content[middle : middle + 40])
        + content[middle + 40 :]
    )


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("a.zip", lambda c: b"no zip at all", "a.zip is not a whole zip file"),
        ("a.zip", lambda c: c[: len(c) // 2], "a.zip is not a whole zip file"),
        ("a.zip", _corrupt, "a.zip is not a whole zip file"),
        ("a.zip", lambda c: b"", "a.zip is empty"),
        ("a.csv", lambda c: b"", "a.csv is empty"),
        ("a.csv", lambda c: b" \n", "a.csv is empty"),
        ("a.zip", lambda c: b"\n<!DOCTYPE html><html>", "a.zip holds a web page"),
    ],
)
def test_damaged_files(tmp_path, name, change, words):
    rows = [unit(i, FINCBTXM=str(i * 7919 % 100_003)) for i in range(400)]
    whole = write_zip(tmp_path / "whole.zip", {"fmli171x.csv": csv_text(*rows)})
    assert survey.load(whole).units_read == 400
    path = tmp_path / name
    path.write_bytes(change(whole.read_bytes()))
    with pytest.raises(DataFileError) as error:
        survey.load(path)
    assert words in one_line(error)


def test_archives_and_folders_without_survey_files(tmp_path):
    path = write_zip(tmp_path / "other.zip", {"x/": "", "x/fmli171x.dta": "", "x/readme.txt": ""})
    with pytest.raises(DataFileError, match="other.zip has no FMLI or FMLD file") as error:
        survey.load(path)
    assert "x/fmli171x.dta" in one_line(error)
    with pytest.raises(DataFileError, match="it holds other.zip"):
        survey.load(tmp_path)
    both = write_zip(tmp_path / "both.zip", {"fmli171x.csv": "", "fmld171.csv": ""})
    with pytest.raises(DataFileError, match="both.zip has both Interview"):
        survey.load(both)
    old = write_zip(tmp_path / "old.zip", {"fmli121x.csv": csv_text(unit(1))})
    with pytest.raises(DataFileError, match="fmli121x.csv is older than 2015"):
        survey.load(old)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("species,petal\nsetosa,1\n", "no column NEWID, PSU, SEX_REF"),
        (csv_text(unit(1)).replace("FINCBTXM", "INCOME"), "no column FINCBTXM (Interview) or"),
        (csv_text(unit(1)).replace("REGION", "AREA"), "no column REGION"),
        (csv_text(unit(1)).split("\n")[0], "no rows"),
        (
            csv_text(unit(1), unit(2)).rsplit(",", 3)[0] + "\n",
            "row 3 has 12 cells, the header 15 (cut off?)",
        ),
        (csv_text(unit(1)).rstrip("\n") + ",8,9\n", "row 2 has 17 cells"),
        (csv_text(unit(1), unit(2)).replace("x,", '"x,', 1), "not a well-formed CSV"),
        (csv_text(unit(1), unit(2)).rstrip("\n") + ",8,9\n", "not a well-formed CSV"),
        ("\0\1\2\xff" * 50, "not a Consumer Expenditure"),
        (csv_text(unit(1, FINCBTXM="much")), "row 2: column FINCBTXM holds something else"),
        (csv_text(unit(1, FINCBTXM="1_000")), "row 2: column FINCBTXM holds something else"),
        (csv_text(unit(1, REGION="9")), "column REGION holds an unknown code; accepted: 1 to 4"),
        (csv_text(unit(1, EDUC_REF="17")), "EDUC_REF holds an unknown code; accepted: 0, 10"),
        (csv_text(unit(1, AGE_REF="4.5")), "AGE_REF holds an unknown code"),
        (csv_text(unit(1, SEX_REF="F")), "SEX_REF holds an unknown code; accepted: 1 to 2"),
        *(
            (csv_text(unit(1), {"NEWID": text}), "row 3: column NEWID holds no identifier")
            for text in ("abc", "", "-11", "1.5", "3.04E+06", "inf", "1_1", "1" + 18 * "0")
        ),
        (csv_text(unit(1)).replace(",", ";"), "separates its cells by semicolons"),
        (csv_text(unit(1)).replace(",", "\t"), "separates its cells by tabs"),
        ("\xff\xfe" + csv_text(unit(1)), "written in UTF-16"),
        (csv_text(unit(1)).replace("OTHER", "REGION"), "more than one column REGION"),
        (csv_text(unit(1, REGION="")), "every consumer unit lacks"),
    ],
)
def test_wrong_csv(tmp_path, text, words):
    path = tmp_path / "file.csv"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(DataFileError) as error:
        survey.load(path)
    message = one_line(error)
    assert words in message and message.startswith("file.csv")


def test_a_unit_without_metropolitan_status_is_suppressed_though_its_area_has_a_name(tmp_path):
    data = read(tmp_path, unit(1), unit(2, SMSASTAT="", FINCBTXM="7"), missing="category")
    assert data.table["cbsa"].tolist() == ["named metropolitan area", "suppressed"]


def incomes(*values):
    return [unit(k, FINCBTXM=str(value)) for k, value in enumerate(values)]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["1000", "2000", "1e300"], "row 4: column FINCBTXM holds no income, but a number beyond"),
        (["1000", "2000", "-1e10"], "row 4: column FINCBTXM"),
        (["1000", "inf", "2000"], "row 3: column FINCBTXM"),
        (["1000", "1e999", "2000"], "row 3: column FINCBTXM"),
        (["1234"] * 60, "all 60 numbers in column FINCBTXM are equal"),
        (["0", "-50", "-1234"], "no number in column FINCBTXM is above 0 dollars"),
    ],
)
def test_incomes_that_no_survey_has_are_refused_without_being_shown(tmp_path, values, words):
    """A model of their logarithm would fail after its first long fit, or give nonsense."""
    with pytest.raises(DataFileError, match="^file.csv") as error:
        read(tmp_path, *incomes(*values))
    message = one_line(error)
    assert words in message
    for value in {"1e300", "1e+300", "-1e10", "-10000000000", "inf", "1e999", "1234", "2000"}:
        assert value not in message


def test_unusual_incomes_are_read(tmp_path):
    """One unit alone, most incomes equal, most below zero, a very large one."""
    for values in (["7"], ["7"] * 50 + ["8"], ["0"] * 50 + ["1"], ["-1e9", "1e9"]):
        data = read(tmp_path, *incomes(*values))
        assert data.table["income"].tolist() == [float(value) for value in values]


def test_a_row_that_occurs_twice_is_not_dropped_in_silence(tmp_path):
    """60 units and a copy of each: 60 would be kept, and nothing would say so."""
    rows = [unit(k, FINCBTXM=str(k)) for k in range(1, 61)]
    with pytest.raises(DataFileError, match="row 62: its NEWID stands in an earlier") as error:
        read(tmp_path, *rows, *rows)
    assert "60 of 120 rows" in one_line(error)
    # the same number in other characters is the same unit
    with pytest.raises(DataFileError, match="row 3: its NEWID") as error:
        read(tmp_path, {"NEWID": "00011"}, {"NEWID": "11.0"})
    # one unit under all numbers: 61 of 120 would be kept
    with pytest.raises(DataFileError, match="row 63: its NEWID") as error:
        read(tmp_path, *rows, *[unit(99, FINCBTXM=str(k)) for k in range(60)])
    assert "59 of 120 rows" in one_line(error)


def test_long_identifiers_do_not_merge_units(tmp_path):
    """As floats, numbers from 9e15 on become those of their neighbours."""
    rows = [{"NEWID": str(10**17 + 10 * k + 1), "FINCBTXM": str(k)} for k in range(1, 61)]
    data = read(tmp_path, *rows)
    assert data.units_read == 60 and data.table["income"].tolist() == list(range(1, 61))
    # the last digit still counts the interviews of one unit
    later = {"NEWID": str(10**17 + 12), "FINCBTXM": "99"}
    assert read(tmp_path, later, *rows).table["income"].tolist() == list(range(1, 61))


@pytest.mark.skipif(os.name == "nt", reason="makes a pipe")
@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo, lambda path: os.symlink("absent", path)])
def test_a_folder_pipe_or_broken_link_named_like_a_file_is_refused(tmp_path, make):
    """A pipe would be read for ever."""
    make(tmp_path / "fmli171x.csv")
    with pytest.raises(DataFileError, match=r"^fmli171x\.csv (is no file|cannot be read)") as error:
        survey.load(tmp_path)
    one_line(error)
    if (tmp_path / "fmli171x.csv").is_fifo():
        with pytest.raises(DataFileError, match=r"^fmli171x\.csv is no file"):
            survey.load(tmp_path / "fmli171x.csv")


def test_a_name_that_is_too_long_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file"):
        survey.load(tmp_path / ("x" * 300 + ".csv"))


def test_two_files_of_one_quarter_are_not_chosen_between(tmp_path):
    """The last of them would be read; which that is depends on the folders' names."""
    first, second = csv_text(*incomes(1, 2)), csv_text(*incomes(3, 4))
    path = write_zip(tmp_path / "a.zip", {"a/fmli171x.csv": first, "b/FMLI171x.csv": second})
    with pytest.raises(DataFileError, match=r"a\.zip has two files of 2017Q1, a/f.* and b/F") as e:
        survey.load(path)
    one_line(e)
    # of no importance where another quarter is read
    both = {"a/fmli173.csv": first, "b/fmli173.csv": first, "a/fmli171x.csv": second}
    path = write_zip(tmp_path / "b.zip", both)
    assert survey.load(path).table["income"].tolist() == [3, 4]
    with pytest.raises(DataFileError, match="two files of 2017Q3"):
        survey.load(path, quarters="all")


def test_what_would_fill_the_memory_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    rows = csv_text(*incomes(*range(2000)))
    path = write_zip(tmp_path / "a.zip", {"fmli171x.csv": rows, "fmli172.csv": rows})
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path / "unpacked")
    # three times a year of interviews (five quarters of 6,200 units, 800 columns) passes
    assert 3 * 5 * 6_200 * 800 * 12 < files._MOST_BYTES < 8 * 10**9
    monkeypatch.setattr(files, "_MOST_BYTES", len(rows))
    assert survey.load(path).units_read == 2000  # just fits
    with monkeypatch.context() as patch:
        patch.setattr(files, "_unpacked", lambda *_: pytest.fail("it was unpacked"))
        for place in (path, tmp_path / "unpacked"):
            with pytest.raises(DataFileError, match="what there is to read comes to") as error:
                survey.load(place, quarters="all")
            one_line(error)
    # a size that the zip only claims is found out too
    content = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\3\4", 22), (b"PK\1\2", 24)):
        place = content.index(mark) + offset
        content[place : place + 4] = struct.pack("<I", 100)
    path.write_bytes(content)
    with pytest.raises(DataFileError, match="not a whole zip file"):
        survey.load(path)


@pytest.mark.parametrize("flag", ["encrypted", "packed"])
def test_a_zip_that_cannot_be_unpacked_is_named(tmp_path, flag):
    path = write_zip(tmp_path / "a.zip", {"fmli171x.csv": csv_text(unit(1))})
    content = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        place = content.index(mark) + offset
        content[place if flag == "encrypted" else place + 2] = 1 if flag == "encrypted" else 99
    path.write_bytes(content)
    with pytest.raises(DataFileError, match="^a.zip cannot be unpacked: ") as error:
        survey.load(path)
    assert {"encrypted": "is encrypted", "packed": "compression"}[flag] in one_line(error)


def test_names_in_a_zip_cannot_write_lines_of_their_own(tmp_path):
    path = write_zip(tmp_path / "a.zip", {"x\nppm: all is well\x1b[2J" + 500 * "y": ""})
    with pytest.raises(DataFileError, match="it holds x[?]ppm: all is well[?]") as error:
        survey.load(path)
    one_line(error)
    # a name that is no text
    path = write_zip(path, {"é.txt": "", "fmli171x.csv": csv_text(unit(1))})
    path.write_bytes(path.read_bytes().replace("é".encode(), b"\xff\xff"))
    with pytest.raises(DataFileError, match="a.zip is not a whole zip file"):
        survey.load(path)


@pytest.mark.parametrize("end", ["\r", "\r\n"])
def test_other_ends_of_lines_and_letters_that_are_no_utf_8_are_read(tmp_path, end):
    path = tmp_path / "file.csv"
    text = csv_text(unit(1), unit(2, FINCBTXM="7", OTHER="Señor"))
    path.write_bytes(text.replace("\n", end).encode("latin-1"))
    assert survey.load(path).table["income"].tolist() == [50_000.5, 7.0]


# ------------------------------------------------------------------------------------ simulated


@pytest.mark.parametrize(
    ("smallest", "largest", "shown"),
    [
        # the paper's
        (-7_123, 1_834_567, "about -7,000 to 1,800,000,"),
        (-71_138, 835_531, "about -70,000 to 800,000,"),
        (-499, 49_999, "about 0 to 0,"),
        (12, 12_345_678, "about 0 to 12,000,000,"),
        (5_501, 150_001, "about 6,000 to 200,000,"),
    ],
)
def test_extreme_incomes_are_shown_as_roughly_as_in_the_paper(smallest, largest, shown):
    data = survey.simulate(60, random_seed=1)
    data.table["income"] = np.linspace(smallest, largest, 60)
    note = data.description()["note"].iloc[-1]
    assert note == f"{shown} rounded; paper: about -7K to 1,800K"
    assert data.income_range == tuple(float(x.replace(",", "")) for x in shown.split()[1::2])


def test_simulated_repeats_with_its_seed():
    first, again = survey.simulate(500, random_seed=3), survey.simulate(500, random_seed=3)
    pd.testing.assert_frame_equal(first.table, again.table)
    other = survey.simulate(500, random_seed=4).table
    assert not first.table["income"].equals(other["income"])
    from_generator = survey.simulate(500, random_seed=np.random.default_rng(3)).table
    pd.testing.assert_frame_equal(first.table, from_generator)


def interviewed(*when):
    """Units with year and month of their interview."""
    return [
        unit(number, FINCBTXM=str(100 * number), QINTRVYR=year, QINTRVMO=month)
        for number, (year, month) in enumerate(when, start=1)
    ]


def test_quarters_come_from_the_names_of_the_files(tmp_path):
    for quarter in (1, 2):
        text = csv_text(unit(quarter), unit(10 * quarter, FINCBTXM="70000"))
        (tmp_path / f"fmli18{quarter}.csv").write_text(text)
    assert survey.load(tmp_path).quarters == ((2018, 1),)
    both = survey.load(tmp_path, quarters="all")
    assert both.quarters == ((2018, 1), (2018, 2))
    assert any("this is 2018Q1, 2018Q2" in sentence for sentence in both.substitutions)
    assert survey.simulate(20).quarters == ()


def test_quarters_come_from_the_interviews_where_the_name_does_not_say(tmp_path):
    path = tmp_path / "families_2019.csv"
    path.write_text(csv_text(*interviewed(("2019", "12"), ("2019", "1"), ("2019", "02"))))
    data = survey.load(path)
    assert data.quarters == ((2019, 1), (2019, 4))
    assert "Interview Survey, 2019Q1, 2019Q4 (families_2019.csv)" in data.source
    # one row that does not say, or a file without the columns: nothing is claimed
    for units in (interviewed(("2019", "12"), ("2019", "")), interviewed(("2019", "13"))):
        path.write_text(csv_text(*units))
        assert survey.load(path).quarters == ()
    path.write_text(csv_text(unit(1), unit(2, FINCBTXM="70000")))
    data = survey.load(path)
    assert data.quarters == ()
    assert "the file does not say what this is of" in data.substitutions[0]
    path.write_text(csv_text(*interviewed(("2013", "12"), ("2013", "11"))))
    with pytest.raises(DataFileError, match="older than 2015; its codes differ"):
        survey.load(path)


def test_a_subsample_is_a_part():
    whole = survey.simulate(20, random_seed=1)
    assert not whole.part and not whole.subsample(0).part and not whole.subsample(20).part
    assert whole.subsample(19, random_seed=1).part


def test_simulated_schema_is_that_of_the_reader(tmp_path):
    simulated = survey.simulate(50)
    loaded = read(tmp_path, *(unit(i, FINCBTXM=str(i)) for i in range(50)))
    pd.testing.assert_series_equal(simulated.table.dtypes, loaded.table.dtypes)
    assert simulated.table.index.equals(loaded.table.index)
    assert list(simulated.description()) == list(loaded.description())
    assert {name: len(labels) for name, labels in LABELS.items()} == PAPER_COUNTS


def test_simulated_says_so():
    data = survey.simulate(100)
    assert data.simulated and data.summary().startswith("SIMULATED DATA")
    assert "simulated" in data.source and set(data.description()["source"]) == {"simulated"}


def test_simulated_looks_like_the_paper_s_sample():
    data = survey.simulate()
    assert len(data.table) == data.units_read == 6_208
    income = data.table["income"]
    assert data.nonpositive == 9 and -7_000 <= income.min() <= 0
    assert income.max() <= 1_800_000
    assert 40_000 < income.median() < 70_000
    assert income.mean() > 1.2 * income.median()  # skewed to the right
    assert (income > 500_000).mean() < 0.02
    assert all(data.table[name].nunique() == n for name, n in PAPER_COUNTS.items())
    X, _ = predictor_matrix(data)
    assert np.linalg.matrix_rank(X) == X.shape[1] == 36


def test_simulated_income_depends_on_the_predictors():
    """Regression on the traits explains log income; on shuffled traits it does not."""
    data = survey.simulate()
    y, _ = log_income(data.table[data.table["income"] > 0])
    X, _ = predictor_matrix(data.table[data.table["income"] > 0])

    def explained(X):
        fitted = X @ np.linalg.lstsq(X, y, rcond=None)[0]
        return np.var(fitted) / np.var(y)

    shuffled = np.random.default_rng(1).permutation(X)
    assert explained(X) > 0.25
    assert explained(shuffled) < 0.03
    by = data.table.groupby("education", observed=True)["income"].median()
    assert by["bachelor's degree"] > 1.3 * by["high school graduate"]
    same_age = data.table[data.table["age"] == "40 to 59"]
    by = same_age.groupby("earner", observed=True)["income"].median()
    assert by["earns"] > 1.3 * by["does not earn"]


@pytest.mark.parametrize("n", [0, -5, 2.5, "10", True])
def test_simulated_wrong_size(n):
    with pytest.raises(ValueError, match="n must be a whole number of at least 1"):
        survey.simulate(n)


def test_subsample_draws_units_and_counts_the_rest():
    data = survey.simulate(500, random_seed=1)
    some = data.subsample(60, random_seed=2)
    assert len(some.table) == 60 and some.simulated
    assert some.units_read == len(some.table) + sum(some.dropped.values())
    assert "not drawn into the subsample: 440" in some.summary()
    assert max(map(len, some.summary(width=60).splitlines())) <= 60
    # every unit kept is one of the data's, and different seeds keep different ones
    assert set(some.table["income"]) <= set(data.table["income"])
    pd.testing.assert_frame_equal(some.table, data.subsample(60, random_seed=2).table)
    assert not some.table["income"].equals(data.subsample(60, random_seed=3).table["income"])
    assert data.subsample(0) is data
    for wrong in (-1, 501, 1.5):
        with pytest.raises(ValueError, match="records must be"):
            data.subsample(wrong)


def test_simulated_single_unit():
    X, names = predictor_matrix(survey.simulate(1))
    assert X.tolist() == [[1.0]] and names == ["intercept"]


# ----------------------------------------------------------------------------------- predictors


def test_predictors_mean_what_their_names_say():
    table = survey.simulate(2_000, random_seed=5).table
    X, names = predictor_matrix(table)
    assert names[0] == "intercept" and (X[:, 0] == 1).all() and X.dtype == np.float64
    for column, name in zip(X.T[1:], names[1:], strict=True):
        variable, label = name.split(": ", 1)
        np.testing.assert_array_equal(column, table[variable] == label)
        assert 0 < column.sum() < len(table)
    order = [f"{v}: {label}" for v, labels in LABELS.items() for label in labels]
    assert [name for name in order if name in names] == names[1:]
    left_out = left_out_columns(table)
    assert set(left_out) | set(names[1:]) == set(order)
    assert left_out["gender: male"] == "baseline"


def test_categories_not_observed_have_no_column():
    table = survey.simulate(2_000, random_seed=5).table
    part = table[~table["region"].isin(["Northeast", "West"])]
    _, names = predictor_matrix(part)
    assert "region: South" in names
    assert not {"region: Northeast", "region: Midwest", "region: West"} & set(names)
    left_out = left_out_columns(part)
    assert left_out["region: Midwest"] == "baseline"  # the first that occurs
    assert left_out["region: West"] == "not observed"


def test_redundant_columns_are_left_out_in_order():
    """A later dummy that repeats earlier ones goes, and only that one."""
    table = survey.simulate(2_000, random_seed=5).table
    _, before = predictor_matrix(table)
    rural = table["cbsa"] == "outside a metropolitan area"
    table["urban"] = pd.Categorical(
        np.where(rural, "rural", "urban"), categories=LABELS["urban"], ordered=True
    )
    X, names = predictor_matrix(table)
    gone = "cbsa: outside a metropolitan area"
    assert names == [name for name in before if name != gone]
    assert left_out_columns(table)[gone] == "redundant"
    assert np.linalg.matrix_rank(X) == X.shape[1]
    with_it = np.column_stack([X, rural])
    assert np.linalg.matrix_rank(with_it) < with_it.shape[1]


def test_predictors_refuse():
    table = survey.simulate(50).table
    with pytest.raises(ValueError, match="no column age, earner"):
        predictor_matrix(table.drop(columns=["age", "earner"]))
    holes = table.copy()
    holes.loc[3, "region"] = np.nan
    with pytest.raises(ValueError, match="missing values in region"):
        predictor_matrix(holes)
    with pytest.raises(ValueError, match="gender is not categorical"):
        predictor_matrix(table.astype({"gender": str}))
    with pytest.raises(ValueError, match="no rows"):
        predictor_matrix(table.iloc[:0])
    with pytest.raises(ValueError, match="must be a DataFrame"):
        predictor_matrix(table.to_numpy())


def test_a_power_of_income_and_the_way_back():
    income = np.array([-7000.0, -1.0, 0.0, 3.0, 50_000.0, 1.6e6])
    values = survey.power_income(pd.DataFrame({"income": income}), 0.3, 20_000.0)
    assert values[2] == 0.0
    assert values[4] == pytest.approx(2.5**0.3)
    assert np.all(np.diff(values) > 0)
    np.testing.assert_allclose(survey.income_from_power(values, 0.3, 20_000.0), income, atol=1e-9)
    kept = survey.income_from_power(values, 0.3, 20_000.0, lowest=-10.0, highest=60_000.0)
    np.testing.assert_allclose(kept, np.clip(income, -10.0, 60_000.0))


def test_an_income_beyond_the_largest_number_is_kept_by_the_limits_or_refused():
    """2 to the power of 2,000 is such an amount, 0.5 to that power is none."""
    values = [-2.0, 0.5, 1.0, 2.0]
    kept = survey.income_from_power(values, 0.0005, 100.0, lowest=-50.0, highest=1e6)
    assert kept.tolist() == [-50.0, 0.0, 100.0, 1e6]
    for limits, count in (({}, 2), ({"highest": 1e6}, 1), ({"lowest": -50.0}, 1)):
        with pytest.raises(ValueError, match=f"values: {count} of 4 lie beyond the largest number"):
            survey.income_from_power(values, 0.0005, 100.0, **limits)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"power": 0.0}, "power must be a finite number above 0"),
        ({"power": 1.5}, "at most 1"),
        ({"unit": -1.0}, "unit must be"),
        ({"lowest": 5.0, "highest": 2.0}, "highest must be a finite number above 5"),
    ],
)
def test_what_makes_no_power_of_income(settings, words):
    with pytest.raises(ValueError, match=words):
        survey.income_from_power([1.0], **settings)


def test_log_income():
    table = pd.DataFrame({"income": [-5.0, 0.0, 0.5, 1.0, np.e, 100.0]})
    values, floored = log_income(table)
    np.testing.assert_allclose(values, [0, 0, 0, 0, 1, np.log(100)])
    assert floored == 3
    values, floored = log_income(table, floor=50)
    np.testing.assert_allclose(values, np.log([50, 50, 50, 50, 50, 100]))
    assert floored == 5
    assert log_income(survey.simulate())[1] >= 9


@pytest.mark.parametrize("floor", [0, -1.0, np.nan, np.inf, "1", None, True])
def test_log_income_wrong_floor(floor):
    with pytest.raises(ValueError, match="floor must be a positive number"):
        log_income(survey.simulate(5), floor=floor)


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (pd.DataFrame({"x": [1.0]}), "no column income"),
        (pd.DataFrame({"income": [1.0, np.nan]}), "missing values in income"),
        (pd.DataFrame({"income": [1.0, np.inf]}), "infinite"),
    ],
)
def test_log_income_wrong_table(frame, words):
    with pytest.raises(ValueError, match=words):
        log_income(frame)


# ------------------------------------------------------------------------------------- download


@pytest.fixture
def server(monkeypatch):
    """A local stand-in for the Bureau's site: `pages` maps a path to (status, body, promised)."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    class Handler(BaseHTTPRequestHandler):
        pages, requests = {}, []

        def do_GET(self):
            self.requests.append((self.path, self.headers["User-Agent"]))
            status, body, promised = self.pages.get(self.path, (404, b"", 0))
            self.send_response(status)
            self.send_header("Content-Length", str(promised or len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as site:
        thread = threading.Thread(target=site.serve_forever, args=(0.02,))
        thread.start()
        Handler.url = f"http://127.0.0.1:{site.server_port}"
        yield Handler
        site.shutdown()
        thread.join()


def tiny_zip(income="1"):
    stream = io.BytesIO()
    write_zip(stream, {"intrvw17/fmli171x.csv": csv_text(unit(1, FINCBTXM=income))})
    return stream.getvalue()


def test_download_records_and_checks(server, tmp_path, capsys):
    body = tiny_zip()
    digest = hashlib.sha256(body).hexdigest()
    server.pages["/intrvw17.zip"] = (200, body, 0)
    folder = tmp_path / "new" / "folder"
    path = survey.download(folder, base_url=server.url + "/", contact="me@agency.gov")
    assert path == folder / "intrvw17.zip" and path.read_bytes() == body
    assert digest in capsys.readouterr().out
    assert (folder / "intrvw17.zip.sha256").read_text().split() == [digest, "intrvw17.zip"]
    assert survey.load(path).units_read == 1
    assert len(server.requests) == 1 and "me@agency.gov" in server.requests[0][1]

    assert survey.download(folder, base_url=server.url) == path
    assert len(server.requests) == 1  # nothing downloaded twice
    assert capsys.readouterr().out == ""

    path.write_bytes(tiny_zip("2"))
    with pytest.raises(DataFileError, match="intrvw17.zip.sha256 says") as error:
        survey.download(folder, base_url=server.url)
    assert digest in one_line(error)

    path.unlink()  # reissued: the download differs from the record and is not kept
    server.pages["/intrvw17.zip"] = (200, tiny_zip("3"), 0)
    with pytest.raises(DataFileError, match="the download was removed") as error:
        survey.download(folder, base_url=server.url)
    one_line(error)
    assert not path.exists()


def test_download_with_known_hash(server, tmp_path, capsys):
    body = tiny_zip()
    digest = hashlib.sha256(body).hexdigest()
    server.pages["/diary18.zip"] = (200, body, 0)
    options = {"year": 2018, "survey": "diary", "base_url": server.url}
    wrong = "0" * 64
    with pytest.raises(DataFileError, match=f"known_hash says {wrong}"):
        survey.download(tmp_path, known_hash=wrong, **options)
    assert list(tmp_path.iterdir()) == []
    path = survey.download(tmp_path, known_hash=f"sha256:{digest.upper()}", **options)
    assert path.name == "diary18.zip" and capsys.readouterr().out == ""
    assert digest in (tmp_path / "diary18.zip.sha256").read_text()


def test_download_takes_a_file_put_there_by_hand(tmp_path, capsys):
    (tmp_path / "intrvw17.zip").write_bytes(tiny_zip())
    survey.download(tmp_path, base_url="http://127.0.0.1:9")
    assert (tmp_path / "intrvw17.zip.sha256").exists() and "recorded" in capsys.readouterr().out


def test_download_offline(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as closed:
        url = f"http://127.0.0.1:{closed.server_port}"
    with pytest.raises(ConnectionError) as error:
        survey.download(tmp_path, base_url=url)
    text = one_line(error)
    assert f"{url}/intrvw17.zip" in text and f"save it as {tmp_path / 'intrvw17.zip'}" in text
    assert "urllib" not in text and error.value.__suppress_context__
    assert list(tmp_path.iterdir()) == []


def test_download_that_breaks_off_leaves_nothing(server, tmp_path):
    body = tiny_zip()
    server.pages["/intrvw17.zip"] = (200, body[:100], len(body))
    with pytest.raises(ConnectionError, match="broke off"):
        survey.download(tmp_path, base_url=server.url)
    assert list(tmp_path.iterdir()) == []


def test_download_refused_or_a_web_page(server, tmp_path):
    server.pages["/intrvw17.zip"] = (403, b"<html>", 0)
    with pytest.raises(ConnectionError, match="403 Forbidden, try contact=") as error:
        survey.download(tmp_path, base_url=server.url)
    one_line(error)
    server.pages["/intrvw17.zip"] = (200, b"<html>no</html>", 0)
    with pytest.raises(DataFileError, match="intrvw17.zip is no zip file: a web page"):
        survey.download(tmp_path, base_url=server.url)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"year": 2012}, "year must be a whole number of at least 2015"),
        ({"year": "2017"}, "year must be"),
        ({"survey": "census"}, "'interview' or 'diary', got 'census'"),
        ({"known_hash": "abc"}, "64 hexadecimal digits"),
    ],
)
def test_download_wrong_arguments(tmp_path, options, words):
    with pytest.raises(ValueError, match=words):
        survey.download(tmp_path / "not made", **options)
    assert not (tmp_path / "not made").exists()


def test_download_without_pooch(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match="needs pooch"):
        survey.download(tmp_path)


def test_import_is_light():
    """Reading and simulating need no PyMC, matplotlib or pooch."""
    code = (
        "import sys; from ppm_book import survey; survey.predictor_matrix(survey.simulate(20)); "
        "print([m for m in ('pymc', 'jax', 'matplotlib', 'pooch', 'requests') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    assert done.stdout.strip() == "[]"
