"""Files that are spoilt in any way are refused by name in one line, or read as what they say."""

import contextlib
import io
import re
import struct
import zipfile

import numpy as np
import pandas as pd
import pytest
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st
from survey_files import UNIT, csv_text, unit

from ppm_book import survey
from ppm_book.survey import DataFileError, files
from ppm_book.survey.expenditure import LABELS

# no number of a message or of another cell: row numbers, sizes and codes are short
INCOMES = ["987654.5", "876543.25", "765432", "654321.75"]
TEXT = csv_text(*(unit(7654321 + i, FINCBTXM=income) for i, income in enumerate(INCOMES)))
RAW = TEXT.encode()
SECRETS = [income.partition(".")[0] for income in INCOMES] + ["765432", "03044961"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("survey")


def outcome(path, **settings):
    """What is read, or None; a refusal is one line that names the file and shows no record."""
    try:
        data = survey.load(path, **settings)
    except DataFileError as error:
        told = str(error)
        assert path.name in told or "fml" in told.lower()
        assert "\n" not in told and told.isprintable() and len(told) < 1000, repr(told)
        assert not any(secret in told for secret in SECRETS), told
        return None
    table = data.table
    assert len(table) + sum(data.dropped.values()) == data.units_read <= data.rows_read
    assert np.isfinite(table["income"]).all() and not table.isna().any().any()
    assert list(table.columns) == [*LABELS, "income"]
    return data


# ---- bytes ---------------------------------------------------------------------------------------

places = st.integers(0, len(RAW) - 1)


@st.composite
def spoilt(draw, raw=RAW):
    """A file some of whose bytes were cut, repeated, exchanged or made up."""
    for _ in range(draw(st.integers(1, 3))):
        start, stop = sorted((draw(st.integers(0, len(raw))), draw(st.integers(0, len(raw)))))
        kind = draw(st.sampled_from(["cut off", "take out", "repeat", "replace", "insert", "sign"]))
        made_up = draw(
            st.one_of(
                st.binary(max_size=6),
                st.sampled_from(
                    [
                        b"\0",
                        b'"',
                        b",",
                        b"\n",
                        b"\r",
                        b"\r\n",
                        b";",
                        b"\xff",
                        b"-",
                        b" ",
                        b"9" * 400,
                        b"1e400",
                        b"nan",
                        b"NEWID",
                        b"\xef\xbb\xbf",
                        b"\x1a",
                    ]
                ),
            )
        )
        raw = {
            "cut off": raw[:stop],
            "take out": raw[:start] + raw[stop:],
            "repeat": raw[:stop] + raw[start:],
            "replace": raw[:start] + made_up + raw[start + len(made_up) :],
            "insert": raw[:start] + made_up + raw[start:],
            "sign": raw.replace(*draw(st.sampled_from(
                [(b",", b";"), (b",", b"\t"), (b"\n", b"\r"), (b"\n", b"\r\n"), (b",", b",,"),
                 (b"\n", b"\n\n"), (b"1", b"0x1"), (b"7", b"7,"), (b"FAM_SIZE", b"REGION"),
                 (b"0", b"\xd9\xa0"), (b"5", b"5e0"), (b"1", b" 1 "), (b"2", b"2.0")]
            ))),
        }[kind]
    return raw


@examples(200)
@given(spoilt())
def test_a_spoilt_csv_file_is_refused_or_holds_the_incomes_it_says(folder, raw):
    path = folder / "fmli171x.csv"
    path.write_bytes(raw)
    data = outcome(path)
    if data is not None:
        # whatever was done to the file, its incomes are cells of it
        cells = re.split(rb'[,\r\n"]', raw)
        written = set()
        for cell in cells:
            with contextlib.suppress(ValueError):
                written.add(float(cell.decode("utf-8", "replace")))
        assert set(data.table["income"]) <= written
        if b'"' not in raw:
            lines = [line for line in raw.splitlines() if line.strip()]
            assert data.rows_read == len(lines) - 1
            assert len({line.count(b",") for line in lines}) == 1


@examples(60)
@given(
    st.sampled_from(
        [
            "utf-8-sig",
            "utf-16",
            "utf-16-le",
            "utf-16-be",
            "utf-32",
            "cp037",
            "cp1252",
            "utf-7",
            "cp500",
            "shift_jis",
        ]
    ),
    spoilt(),
)
def test_another_encoding_is_refused_or_read_alike(folder, encoding, raw):
    path = folder / "fmli171x.csv"
    path.write_bytes(TEXT.encode(encoding))
    data = outcome(path)
    assert data is None or set(data.table["income"]) == set(map(float, INCOMES))
    path.write_bytes(raw.decode("latin-1").encode(encoding, "replace"))
    outcome(path)


# ---- columns and cells ---------------------------------------------------------------------------

cell_texts = st.one_of(
    st.text(max_size=6), st.integers().map(str), st.floats().map(str),
    st.sampled_from(["", ".", " 1 ", "1.0", "01", "+1", "1e0", "1_0", "0x1", "nan", "inf", "-inf",
                     "NaN", "NA", "１", "1" * 400, "1e308", "-1e308", "1e309", "5e-324", '"', "1,5",
                     "TRUE", "None", "1\n2", "1\0", "=1+1"]),
)


@examples(150)
@given(st.sampled_from(sorted(UNIT)), cell_texts, st.sampled_from(["drop", "category"]))
def test_any_text_in_a_cell_is_refused_by_its_column_or_read(folder, column, text, missing):
    rows = [unit(i, FINCBTXM=income) for i, income in enumerate(INCOMES, start=1)]
    rows[1][column] = text
    path = folder / "fmli171x.csv"
    path.write_bytes(csv_text(*rows).encode("utf-8", "surrogatepass"))
    data = outcome(path, missing=missing)
    if (
        data is not None
        and column == "FINCBTXM"
        and text.strip().lower() not in ("", ".", "na", "nan")
    ):
        assert float(text) in set(data.table["income"])


@examples(60)
@given(st.data())
def test_a_column_that_lacks_or_stands_twice_is_refused_and_another_order_changes_nothing(
    folder, data
):
    frame = pd.DataFrame([line.split(",") for line in TEXT.splitlines()])
    needed = set(UNIT) - {"OTHER", "LAST"}
    path = folder / "fmli171x.csv"
    order = data.draw(st.permutations(range(len(UNIT))))
    changed = frame[list(order)]
    path.write_text(changed.to_csv(index=False, header=False))
    right = outcome(path)
    assert list(right.table["income"]) == list(map(float, INCOMES))
    place = data.draw(st.integers(0, len(UNIT) - 1))
    name = changed.iloc[0, place]
    for spoilt in (
        changed.drop(columns=changed.columns[place]),
        changed.assign(**{"again": changed.iloc[:, place]}),
    ):
        path.write_text(spoilt.to_csv(index=False, header=False))
        found = outcome(path)
        assert (found is None) == (name in needed)


# ---- zip files -----------------------------------------------------------------------------------


def archive(members, method=zipfile.ZIP_DEFLATED):
    """Bytes of a zip file with these names and contents."""
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", method) as stream:
        for name, content in members:
            stream.writestr(zipfile.ZipInfo(name), content, method)
    return raw.getvalue()


WHOLE = archive([("intrvw17/fmli171x.csv", RAW)])
PLAIN = archive([("intrvw17/fmli171x.csv", RAW)], zipfile.ZIP_STORED)


@examples(200)
@given(st.one_of(spoilt(WHOLE), spoilt(PLAIN)))
def test_a_spoilt_zip_file_is_refused_or_holds_the_incomes_it_says(folder, raw):
    path = folder / "intrvw17.zip"
    path.write_bytes(raw)
    outcome(path)


@examples(100)
@given(st.data(), st.sampled_from([WHOLE, PLAIN]))
def test_any_flipped_bits_of_a_zip_file_are_found_out(folder, data, raw):
    changed = bytearray(raw)
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    path = folder / "intrvw17.zip"
    path.write_bytes(bytes(changed))
    found = outcome(path)
    # every byte of a member has its checksum
    assert found is None or set(found.table["income"]) == set(map(float, INCOMES))


member_names = st.one_of(
    st.sampled_from(
        [
            "fmli171x.csv",
            "../../fmli171x.csv",
            "/etc/fmli171x.csv",
            "C:\\fmli171x.csv",
            "a\\b\\fmli172.csv",
            "FMLI173.CSV",
            "fmli171x.csv/",
            "fmli171x.csv\0.txt",
            "fmld171.csv",
            "fmli141.csv",
            "fmli175.csv",
            "intrvw17/expn.csv",
            "",
            "/",
            "\n",
            "fmli171x.csv\nfmli",
            "..",
        ]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=10),
)


@examples(150)
@given(
    st.lists(
        st.tuples(
            member_names, st.sampled_from([RAW, b"", b"\n", RAW[:300], b"<html>", b"PK\3\4"])
        ),
        max_size=4,
    ),
    st.sampled_from([None, "all", "2017Q1", ["2017Q1", "2017Q2"]]),
)
def test_any_members_of_a_zip_are_read_or_refused_and_nothing_is_written(folder, members, quarters):
    inner = folder / "inner"
    inner.mkdir(exist_ok=True)
    path = inner / "intrvw17.zip"
    try:
        with pytest.MonkeyPatch.context() as patch:
            # two members of one name
            patch.setattr("warnings.warn", lambda *_, **__: None)
            path.write_bytes(archive(members))
    except (ValueError, struct.error):
        return
    try:
        outcome(path, quarters=quarters)
    except ValueError as error:
        # an argument that asks for what is not there
        assert str(error).startswith("quarters") and "\n" not in str(error)
    assert [entry.name for entry in inner.iterdir()] == ["intrvw17.zip"]


def test_a_zip_bomb_is_refused_before_it_is_unpacked(folder, monkeypatch):
    monkeypatch.setattr(files, "_MOST_BYTES", 10**6)
    path = folder / "intrvw17.zip"
    path.write_bytes(archive([("fmli171x.csv", b"0" * (2 * 10**6))]))
    assert path.stat().st_size < 10_000
    with pytest.raises(DataFileError, match=r"^intrvw17\.zip: what there is to read comes to"):
        survey.load(path)


@examples(100)
@given(
    st.recursive(
        st.one_of(st.none(), st.text(max_size=8), st.integers(), st.floats(), st.binary(max_size=3),
                  st.sampled_from(["2017Q1", "171", "all", "17Q5", "2017Q1\n"])),
        lambda inner: st.lists(inner, max_size=3),
        max_leaves=4,
    )
)
def test_any_quarters_are_taken_or_refused_by_name(folder, quarters):
    path = folder / "intrvw17.zip"
    path.write_bytes(WHOLE)
    try:
        survey.load(path, quarters=quarters)
    except ValueError as error:
        assert "quarters" in str(error) and "\n" not in str(error) and str(error).isprintable()
