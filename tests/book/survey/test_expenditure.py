"""The Consumer Expenditure reader and the predictors."""

import zipfile

import numpy as np
import pandas as pd
import pytest
from conftest import ROOT
from survey_files import UNIT, csv_text, interview_zip, unit, write_zip

from ppm_book.chapters import survey
from ppm_book.chapters.survey.expenditure import LABELS, ON_BOARD, condense

DIARY = ROOT.parent / "shared" / "data" / "diary17.zip"
PAPER_COUNTS = dict(zip(LABELS, (2, 5, 8, 4, 2, 5, 3, 3, 11, 2), strict=True))


@pytest.fixture
def three_quarters(tmp_path):
    """Three quarters and another file, in a folder within the zip, as the Bureau has them.

    The second quarter is written as some programs do: with a byte order mark, a header in lower
    case and quoted cells.
    """
    second = csv_text(unit(1, 3, FINCBTXM="1"), unit(2, 2), unit(4)).lower()
    second = "\ufeff" + second.replace(",x,", ',"a, b\nc",')
    return write_zip(
        tmp_path / "intrvw17.zip",
        {
            "intrvw17/memi171x.csv": "NEWID\n1\n",
            "intrvw17/fmli181.csv": csv_text(unit(7)),
            "intrvw17/fmli171x.csv": csv_text(
                unit(1, 2), unit(2, FINCBTXM="-7000"), unit(3, 4)
            ),
            "intrvw17/fmli172.csv": second,
        },
    )


def read(tmp_path, *rows, diary=False):
    file = tmp_path / ("fmld171.csv" if diary else "fmli171x.csv")
    file.write_text(csv_text(*rows, diary=diary))
    return survey.load(file)


# ------------------------------------------------------------------------- the real Diary file


@pytest.mark.skipif(
    not DIARY.exists(), reason="no real file ../shared/data/diary17.zip"
)
def test_the_file_on_board_is_the_bureaus_without_the_columns_that_are_not_read(
    tmp_path,
):
    condense(DIARY, tmp_path / "diary17.zip")
    told, *others = map(survey.load, (None, DIARY, tmp_path / "diary17.zip"))
    for data in others:
        pd.testing.assert_frame_equal(data.table, told.table)
        assert data.summary() == told.summary()


def test_real_diary():
    """One row per unit, its earliest week; taking the latest week gives other incomes."""
    data = survey.load()
    assert (data.rows_read, data.units_read, len(data.table)) == (11_658, 5_916, 5_658)
    assert data.dropped == {"region suppressed": 258} and data.income_range == (
        -70_000,
        800_000,
    )
    with zipfile.ZipFile(ON_BOARD) as archive:
        weeks = [
            pd.read_csv(archive.open(name), usecols=["NEWID", "REGION", "FINCBEFM"])
            for name in archive.namelist()
        ]
    rows = pd.concat(weeks).set_index("NEWID").sort_index()
    units = rows.groupby(rows.index // 10)
    for week, same in ((0, True), (-1, False)):
        incomes = units.nth(week).dropna()["FINCBEFM"]
        assert np.array_equal(data.table["income"], incomes) == same
    traits = data.table.drop(columns="income")
    assert (
        all(kind.ordered for kind in traits.dtypes)
        and dict(traits.nunique()) == PAPER_COUNTS
    )
    assert (
        traits.dtypes.map(lambda kind: len(kind.categories)).to_dict() == PAPER_COUNTS
    )
    X, names = survey.predictor_matrix(data)
    assert (
        len(names)
        == X.shape[1]
        == np.linalg.matrix_rank(X)
        == sum(PAPER_COUNTS.values()) - 9
    )
    assert data.nonpositive == (data.table["income"] <= 0).sum() > 0


def test_the_first_quarter_and_the_later_ones_share_no_unit():
    data = survey.load()
    published, confidential = data.by_quarter()
    assert len(published.table) + len(confidential.table) == len(data.table)
    assert {*published.quarter} == {"2017Q1"} and len({*confidential.quarter}) == 3
    assert published.part and confidential.dropped["of the first quarter"] == len(
        published.table
    )


@pytest.mark.parametrize(
    ("layout", "units", "after"),
    [
        ({}, 24 + 4 * 18, "2018Q1"),
        ({"diary": True, "quarters": 4, "year": 2019}, 4 * 24, "2019Q4"),
    ],
)
def test_a_unit_of_several_quarters_is_of_its_first_one_alone(
    tmp_path, layout, units, after
):
    path = interview_zip(tmp_path / "year.zip", units=24, **layout)
    data = survey.load(path, quarters="all")
    # 24 rows a quarter, of which a fourth are second interviews in the Interview
    assert data.rows_read == 24 * len({*data.quarter}) and data.units_read == units
    assert not any("2017 files" in told for told in data.substitutions)
    published, confidential = data.by_quarter()
    kept = len(data.table)
    assert len(published.table) + len(confidential.table) == kept
    assert kept + sum(data.dropped.values()) == units
    assert max(confidential.quarter) == after and "Q1" in published.quarter[0]
    # of 24 rows the Interview has six later interviews
    last = np.sum(data.quarter == after)
    assert (18 if layout == {} else 24) - last in range(5)


def test_one_quarter_is_told_that_several_are_needed_and_how(tmp_path):
    path = interview_zip(tmp_path / "intrvw17.zip", units=9)
    zipfile.ZipFile(path).extractall(tmp_path / "2017")
    for given in (
        path,
        tmp_path / "2017",
        tmp_path / "2017" / "intrvw17" / "fmli171x.csv",
    ):
        said = "^a table of several quarters is needed: .* quarters='all'; this is .*fmli171x.csv"
        with pytest.raises(ValueError, match=said):
            survey.load(given).by_quarter()


# ------------------------------------------------------------------------- quarters and files


def test_interview_reads_the_first_quarter_or_all(three_quarters):
    """A unit seen in two quarters counts once, with its earliest interview."""
    data = survey.load(three_quarters)
    assert data.survey == "interview" and {*data.quarter} == {"2017Q1"}
    assert data.units_read == data.rows_read == len(data.table) == 3
    assert data.table["income"].tolist() == [50_000.5, -7_000.0, 50_000.5]
    assert "2017Q1" in data.source and "fmli171x.csv" in data.source
    assert str(three_quarters.parent) not in data.summary()
    assert ["proxy" in text for text in data.substitutions] == [True, True]
    every = survey.load(three_quarters, quarters="all")
    assert (every.rows_read, every.units_read) == (7, 5)
    assert [*every.quarter] == 3 * ["2017Q1"] + ["2017Q2", "2018Q1"]
    assert "2017Q1, 2017Q2, 2018Q1" in every.substitutions[0]
    assert every.table["income"].tolist() == [50_000.5, -7_000.0, *3 * [50_000.5]]
    with pytest.raises(ValueError, match="^quarters must be None or 'all'"):
        survey.load(three_quarters, quarters="2017Q2")


def test_folder_and_file_agree_with_the_zip_and_a_revised_file_wins(
    three_quarters, tmp_path
):
    wanted, folder = survey.load(three_quarters).table, tmp_path / "unpacked"
    zipfile.ZipFile(three_quarters).extractall(folder)
    revised = folder / "intrvw17" / "fmli171x.csv"
    (folder / "fmli171.csv").write_text(csv_text(unit(1)))
    # the Bureau's zips of some years have a folder within a folder
    deep = write_zip(
        tmp_path / "d.zip", {"a/intrvw17/intrvw17/fmli171x.csv": revised.read_bytes()}
    )
    zipfile.ZipFile(deep).extractall(tmp_path / "deep")
    paths = (
        folder,
        folder / "intrvw17",
        str(revised),
        deep,
        tmp_path / "deep",
    )
    for path in paths:
        pd.testing.assert_frame_equal(survey.load(path).table, wanted)


# ---------------------------------------------------------------------------------------- codes

# what the Bureau's dictionary says of the codes since 2015, and how ages and sizes are grouped
DICTIONARY = """
gender SEX_REF: 1 male; 2 female
age AGE_REF: 19 under 20; 20 20 to 39; 59 40 to 59; 79 60 to 79; 80 80 and over
education EDUC_REF: 00 never attended; 10 nursery to grade 8; 11 grades 9 to 12, no degree; \
12 high school graduate; 13 some college, no degree; 14 associate's degree; \
15 bachelor's degree; 16 master's, professional or doctorate
region REGION: 1 Northeast; 02 Midwest; 3 South; 4.0 West
urban BLS_URBN: 1 urban; 2 rural
marital_status MARITAL1: 1 married; 02 widowed; 3 divorced; 4 separated; 5 never married
urban_type POPSIZE: 1 1 million or more; 2 1 million or more; 3 100 thousand to 1 million; \
4 100 thousand to 1 million; 5 under 100 thousand
family_size FAM_SIZE: 1 1; 10 10; 11 11 or more; 13 11 or more
earner EARNCOMP: 1 earns; 2 earns; 3 earns; 4 earns; 5 does not earn; 6 does not earn; \
7 does not earn; 8 does not earn
"""


@pytest.mark.parametrize("line", DICTIONARY.strip().split("\n"))
def test_every_code_has_the_label_of_the_bureau_s_dictionary(tmp_path, line):
    """A pair of exchanged labels would put every widow's income among the divorced."""
    names, _, told = line.partition(": ")
    variable, column = names.split()
    labels = dict(pair.split(" ", 1) for pair in told.split("; "))
    rows = [unit(k, **{column: f" {code} "}) for k, code in enumerate(labels)]
    table = read(tmp_path, *rows).table
    assert table[variable].tolist() == [*labels.values()]
    # the order of the categories is that of the codes
    assert table[variable].cat.codes.is_monotonic_increasing
    assert set(table.drop(columns=variable).nunique()) == {1}


def test_areas_are_named_other_or_none(tmp_path):
    cells = [("1", "S12A"), ("1", " "), ("2", ""), ("2", "S12A"), ("", "S12A")]
    rows = [unit(k, SMSASTAT=code, PSU=psu) for k, (code, psu) in enumerate(cells)]
    data = read(tmp_path, *rows)
    assert data.table["cbsa"].tolist() == [*LABELS["cbsa"], LABELS["cbsa"][2]]
    assert data.dropped == {"cbsa suppressed": 1}


@pytest.mark.parametrize("blank", ["", " ", ".", "NA"])
def test_suppressed_cells(tmp_path, blank):
    # an area that is not named is not missing
    rows = [
        unit(1, PSU=blank),
        unit(2, REGION=blank),
        unit(3, REGION=blank, EDUC_REF=blank),
        unit(4, FINCBTXM=blank),
        unit(6, REGION=blank, FINCBTXM=blank),
    ]
    data = read(tmp_path, *rows)
    reasons = (
        "region {0}; education and region {0}; region and income {0}; income blank"
    )
    assert data.dropped == dict.fromkeys(reasons.format("suppressed").split("; "), 1)
    assert data.units_read == 5 == len(data.table) + sum(data.dropped.values())


def test_first_week_whatever_the_order_of_rows(tmp_path):
    rows = [
        unit(2, 2, FINCBTXM="4"),
        unit(1, 2, FINCBTXM="2"),
        unit(1, 1, FINCBTXM="1"),
    ]
    data = read(tmp_path, *rows, diary=True)
    # unit 2 has its second week only
    assert data.survey == "diary" and data.table["income"].tolist() == [1.0, 4.0]
    assert "The Diary Survey stands in" in data.substitutions[0]
    # as floats, numbers from 9e15 on become those of their neighbours
    rows = [unit(10**16 + k, FINCBTXM=str(k)) for k in range(60)]
    assert read(tmp_path, *rows).table["income"].tolist() == [*range(60)]


# ------------------------------------------------------------------------------------ bad input


TWO = csv_text(unit(1), unit(2))
NEEDED = sorted(UNIT.keys() - {"OTHER", "LAST"})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        *((TWO.replace(name, "X"), f"one column {name}") for name in NEEDED),
        *((TWO.replace("LAST", name), f"one column {name}") for name in NEEDED),
        # also with a comma in an income
        *(
            (TWO.replace(",", mark).replace(".5", ",5"), "it needs commas")
            for mark in ";\t"
        ),
        (TWO.split("\n")[0], "no rows"),
        (TWO.replace("x,", '"x,', 1), "not a well-formed CSV"),
        (TWO.rsplit(",", 3)[0], "row 3 has 12 cells, the header 15 .cut"),
        (
            csv_text(unit(1), unit(2, FINCBTXM="1_0")),
            "row 3: column FINCBTXM holds something",
        ),
        (
            csv_text(unit(1, FINCBTXM=400 * "9"), unit(2)),
            "row 2: column FINCBTXM holds something",
        ),
        (csv_text(unit(1, REGION="9")), "row 2: column REGION holds a code that"),
        (
            csv_text(unit(1), {"NEWID": "3.04E+06"}),
            "row 3: column NEWID holds no identifier",
        ),
        (
            csv_text(unit(1), {"NEWID": 19 * "1"}),
            "row 3: column NEWID holds no identifier",
        ),
        # two units and a copy of each: two would be kept, and nothing would say so
        (TWO + TWO.split("\n", 1)[1], "row 4: its NEWID stands in an earlier"),
        (csv_text(unit(1, REGION="")), "every consumer unit lacks"),
    ],
)
def test_a_wrong_csv_file_is_told_with_its_row_and_column(tmp_path, text, words):
    (tmp_path / "fmli171x.csv").write_text(text)
    with pytest.raises(
        survey.DataFileError, match=rf"^fmli171x\.csv.*{words}"
    ) as refused:
        survey.load(tmp_path / "fmli171x.csv")
    # one line, with no cell of a record
    assert str(refused.value).isprintable()
    assert not any(
        cell in str(refused.value) for cell in ("50000", "0000001", "1_0", "3.04E")
    )


# ------------------------------------------------------------------------------------- its parts


def test_extreme_incomes_are_shown_as_roughly_as_in_the_paper():
    data = survey.load().subsample(2, random_seed=1)
    for *exact, low, high in (
        (-7_123, 1_834_567, -7_000, 1_800_000),
        (-499, 49_999, 0, 0),
    ):
        data.table["income"] = exact
        assert data.income_range == (low, high)


def test_subsample_draws_units_and_counts_the_rest():
    data = survey.load()
    data.table["income"] = np.arange(5_658.0)
    some = data.subsample(60, random_seed=2)
    assert some.survey == "diary" and some.part and not data.part
    assert some.units_read - sum(some.dropped.values()) == len(some.table) == 60
    assert some.dropped == {
        "region suppressed": 258,
        "not drawn into the subsample": 5_598,
    }
    # every unit kept is one of the data's, and different seeds keep different ones
    assert some.table["income"].is_unique
    assert not some.table["income"].equals(
        data.subsample(60, random_seed=3).table["income"]
    )
    assert data.subsample(0) is data is data.subsample(5_658)
    with pytest.raises(ValueError, match="records must be at most 5658"):
        data.subsample(5_659)


# ----------------------------------------------------------------------------------- predictors


def test_predictors_mean_what_their_names_say():
    table = survey.load().subsample(2_000, random_seed=5).table
    part = table[~table["region"].isin(["Northeast", "West"])]
    for rows in (table, part):
        X, names = survey.predictor_matrix(rows)
        assert (
            names[0] == "intercept" and (X[:, 0] == 1).all() and X.dtype == np.float64
        )
        for column, name in zip(X.T[1:], names[1:], strict=True):
            variable, label = name.split(": ", 1)
            assert np.array_equal(
                column, rows[variable] == label
            ) and 0 < column.sum() < len(rows)
    # the first category that occurs is the baseline, and what does not occur has no column
    assert [name for name in names if name.startswith("region")] == ["region: South"]


def test_a_dummy_that_repeats_earlier_ones_is_left_out_and_no_other():
    table = survey.load().subsample(2_000, random_seed=5).table
    _, before = survey.predictor_matrix(table)
    rural = table["cbsa"] == "outside a metropolitan area"
    table["urban"] = pd.Categorical.from_codes(
        rural.astype(int), LABELS["urban"], ordered=True
    )
    X, names = survey.predictor_matrix(table)
    assert names == [
        name for name in before if name != "cbsa: outside a metropolitan area"
    ]
    for columns in (X, np.column_stack([X, rural])):
        assert np.linalg.matrix_rank(columns) == X.shape[1]
