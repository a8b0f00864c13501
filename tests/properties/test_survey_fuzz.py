"""Files that are spoilt in any way are refused by name in one line, or read as what they say."""

import contextlib
import re

import pytest
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st
from survey_files import csv_text, unit

from ppm_book import survey
from ppm_book.survey.expenditure import LABELS

# no number of a message or of another cell: row numbers, sizes and codes are short
INCOMES = ["987654.5", "876543.25", "765432", "654321.75"]
RAW = csv_text(*(unit(7654321 + i, FINCBTXM=v) for i, v in enumerate(INCOMES))).encode()
SECRETS = [income.partition(".")[0] for income in INCOMES] + ["765432", "03044961"]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("survey") / "fmli171x.csv"


def outcome(path, content):
    """What is read, or None; a refusal is one line that names the file and shows no record."""
    path.write_bytes(content)
    try:
        data = survey.load(path)
    except survey.DataFileError as error:
        told = str(error)
        assert (path.name in told or "fmli" in told) and told.isprintable() and len(told) < 1000
        assert not any(secret in told for secret in SECRETS), told
        return None
    assert len(data.table) + sum(data.dropped.values()) == data.units_read <= data.rows_read
    assert not data.table.isna().any().any() and [*data.table] == [*LABELS, "income"]
    return data


SIGNS = [b"\0", b'"', b",", b"\n", b"\r", b"\r\n", b";", b"\xff", b"-", b" ", b"9" * 400, b"1e400",
         b"nan", b"NEWID", b"\xef\xbb\xbf", b"\x1a"]
CHANGES = [(b",", b";"), (b"\n", b"\r"), (b"\n", b"\r\n"), (b",", b",,"), (b"\n", b"\n\n"),
           (b"1", b"0x1"), (b"7", b"7,"), (b"FAM_SIZE", b"REGION"), (b"0", b"\xd9\xa0"),
           (b"5", b"5e0"), (b"1", b" 1 "), (b"2", b"2.0")]


@st.composite
def spoilt(draw):
    """A file some of whose bytes were cut, repeated, exchanged or made up."""
    raw = RAW
    for _ in range(draw(st.integers(1, 3))):
        start, stop = sorted(draw(st.integers(0, len(raw))) for _ in range(2))
        made_up = draw(st.binary(max_size=6) | st.sampled_from(SIGNS))
        raw = draw(st.sampled_from([
            raw[:stop], raw[:start] + raw[stop:], raw[:stop] + raw[start:],
            raw[:start] + made_up + raw[start:], raw.replace(*draw(st.sampled_from(CHANGES))),
            raw[:start] + made_up + raw[start + len(made_up) :]]))
    return raw


@examples(100)
@given(spoilt())
def test_a_spoilt_csv_file_is_refused_or_holds_the_incomes_it_says(path, raw):
    if (data := outcome(path, raw)) is not None:
        # whatever was done to the file, its incomes are cells of it
        written = set()
        for cell in re.split(rb'[,\r\n"]', raw):
            with contextlib.suppress(ValueError):
                written.add(float(cell.decode("utf-8", "replace")))
        assert set(data.table["income"]) <= written
        if b'"' not in raw:
            lines = [*filter(None, raw.splitlines())]
            assert data.rows_read == len(lines) - 1
            assert len({line.count(b",") for line in lines}) == 1
