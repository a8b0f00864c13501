"""Files as they come: in zips and folders, of other years, damaged, encrypted, of another kind."""

import gzip
import os
import zipfile
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
from survey_files import csv_text, packed, unit, write_zip

from ppm_book.chapters import survey

ONE, TWO = csv_text(unit(1)), csv_text(unit(1), unit(2))
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "has no FMLI or FMLD file"),
        (
            {"x/": "", "x/fmli171x.dta": ONE, "x/fmli172.csv/": ""},
            "has no FMLI or FMLD file",
        ),
        # a folder of zips, and a zip of zips
        (
            {"a/intrvw17.zip": ONE},
            "has no FMLI or FMLD file.*; it holds a/intrvw17.zip: give that",
        ),
        ({"fmli171x.csv": ONE, "fmld171.csv": ONE}, "has both Interview"),
        (
            {"a/fmli171.csv": ONE, "b/FMLI171.csv": ONE + ONE},
            "2017Q1: a/fmli171.csv and b/FMLI171.csv differ; keep one",
        ),
    ],
)
def test_folders_and_zips_that_are_not_one_survey_are_refused(tmp_path, files, words):
    path = write_zip(tmp_path / "a.zip", files)
    # a folder may be called so as well
    (folder := tmp_path / "b" / "a.zip").mkdir(parents=True)
    zipfile.ZipFile(path).extractall(folder)
    for given in (path, folder):
        with pytest.raises(survey.DataFileError, match=rf"^a\.zip,? {words}"):
            survey.load(given)
    with pytest.raises(ValueError, match="missing must be 'drop' or 'category'"):
        survey.load(tmp_path, missing="impute")


@pytest.mark.parametrize(
    ("name", "psu"),
    [
        ("fmli144.csv", "S12A"),
        ("fmld801.csv", ""),
        ("fmli997.csv", "1102"),
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


def test_two_digits_of_a_year_from_80_on_are_of_the_last_century(tmp_path):
    path = write_zip(tmp_path / "a.zip", {"fmli971x.csv": ONE, "fmli171x.csv": ONE})
    with pytest.raises(ValueError, match="no 2097Q1; it has 1997Q1, 2017Q1"):
        survey.load(path, quarters="2097Q1")
    with pytest.raises(survey.DataFileError, match="^fmli971x.csv is older than 2015"):
        survey.load(path, quarters="1997Q1")
    assert len(survey.load(path, quarters="2017Q1").table) == 1


def patched(raw, place, value):
    """A zip in which both headers of its first file have another value of two bytes."""
    for header, start in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        at = raw.index(header) + start + place
        raw = raw[:at] + value.to_bytes(2, "little") + raw[at + 2 :]
    return raw


def scratched(method):
    """A zip whose contents, but not their headers, are damaged."""
    raw = packed(method)
    at = raw.index(b"fmli171x.csv") + 20
    return raw[:at] + bytes(255 - byte for byte in raw[at : at + 20]) + raw[at + 20 :]


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (patched(packed(), 0, 1), "is encrypted: unpack it .* and give the folder"),
        (patched(patched(packed(), 0, 1), 2, 99), "is encrypted: unpack it"),
        (
            patched(packed(), 2, 9),
            "is packed by a method that Python does not have: unpack it",
        ),
        (
            b"\xef\xbb\xbf\n<!doctype html>",
            "is not a zip file but looks like a web page; remove",
        ),
        (packed()[:-30], "is not a whole zip file .*; remove it and download it again"),
        (
            LFS,
            "is not a zip file but a Git LFS pointer to one; remove it and download it again",
        ),
        (b"", "is not a whole zip file"),
        (b"PK", "is not a whole zip file"),
        # the name is told to be UTF-8, and is not
        (
            patched(packed(), 0, 2048).replace(b"fmli", b"fml\xff"),
            "is not a whole zip file",
        ),
        *((scratched(method), "is not a whole zip file") for method in (0, 8, 12, 14)),
    ],
)
def test_a_zip_that_cannot_be_unpacked_is_told_with_what_to_do(tmp_path, raw, words):
    (tmp_path / "a.zip").write_bytes(raw)
    with pytest.raises(survey.DataFileError, match=rf"^a\.zip {words}") as refused:
        survey.load(tmp_path / "a.zip")
    assert str(refused.value).isprintable()


def rewritten(name, text, **about):
    """A zip with one file, written without the help that mends its name."""

    def write(path):
        with zipfile.ZipFile(path, "w") as archive:
            info = zipfile.ZipInfo("x")
            info.filename = name
            with archive.open(info, "w", **about) as file:
                file.write(text.encode())

    return write


@pytest.mark.parametrize(
    "write",
    [
        rewritten("INTRVW17/FMLI171X.CSV", TWO),
        # nothing is unpacked to where such a name leads
        rewritten("/../../fmli171x.csv", TWO),
        rewritten("intrvw17\\fmli171x.csv", TWO),
        rewritten("fmli171x.csv", TWO, force_zip64=True),
        rewritten("fmli171x.csv", TWO.replace("\n", "\r")),
        rewritten("fmli171x.csv", TWO.replace("OTHER", "LAST")),
        partial(
            write_zip, files={"fmli171x.csv": TWO, "__MACOSX/._fmli171x.csv": "\0\1"}
        ),
        # copies, and what the year before has of this quarter
        partial(
            write_zip,
            files={
                "a/fmli171x.csv": TWO,
                "b/fmli171x.csv": TWO,
                "c/fmli171.csv": ONE,
                "d/FMLI171.csv": "",
                "fmli172.csv": ONE,
            },
        ),
    ],
)
def test_a_file_is_found_however_it_is_packed(tmp_path, write):
    write(tmp_path / "Year.ZIP")
    data = survey.load(tmp_path / "Year.ZIP")
    assert len(data.table) == 2 and {*data.quarter} == {"2017Q1"}
    assert "fmli171x.csv" in data.source.lower() and "/" not in data.source


def test_files_of_the_two_surveys_under_names_of_one_are_refused(tmp_path):
    (tmp_path / "fmli171x.csv").write_text(ONE)
    (tmp_path / "fmli172.csv").write_text(csv_text(unit(2), diary=True))
    with pytest.raises(
        survey.DataFileError,
        match="^fmli171x.csv has FINCBTXM and fmli172.csv "
        "has FINCBEFM, .* give files of one survey",
    ):
        survey.load(tmp_path, quarters="all")
    assert len(survey.load(tmp_path).table) == 1


def test_what_is_no_file_is_left_out_of_a_folder(tmp_path):
    (tmp_path / "fmli171x.csv").symlink_to(tmp_path / "gone.csv")
    (tmp_path / "fmli172.csv").mkdir()
    for path in (tmp_path, tmp_path / "fmli172.csv"):
        with pytest.raises(survey.DataFileError, match="has no FMLI or FMLD file"):
            survey.load(path)
    with pytest.raises(
        FileNotFoundError, match="^no such file or folder: .*fmli171x.csv$"
    ):
        survey.load(tmp_path / "fmli171x.csv")
    (tmp_path / "fmli173.csv").write_text(ONE)
    assert [*survey.load(tmp_path, quarters="all").quarter] == ["2017Q3"]


def test_what_may_not_be_read_is_named_and_not_left_out(tmp_path, monkeypatch):
    """A quarter in a folder that may not be read would be missing, and nothing would say so."""
    (tmp_path / "fmli171x.csv").write_text(ONE)
    (tmp_path / "later").mkdir()

    def scandir(folder, listed=os.scandir):
        if Path(folder).name == "later":
            raise PermissionError(13, "Permission denied", str(folder))
        return listed(folder)

    # the user who runs the tests may be one who may read everything
    monkeypatch.setattr(os, "scandir", scandir)
    for folder in tmp_path, tmp_path / "later":
        with pytest.raises(PermissionError, match="later"):
            survey.load(folder)


@pytest.mark.parametrize(
    "raw",
    [
        ONE.encode("utf-16"),
        ONE.encode("utf-16-le"),
        gzip.compress(ONE.encode()),
        packed(8),
        b"\0\0\xc2\xea\x81\x60\xb3\x14\x11\xcf",
        b"<stata_dta>\0\1",
    ],
)
def test_a_file_that_is_no_text_is_told_so(tmp_path, raw):
    (tmp_path / "fmli171x.csv").write_bytes(raw)
    with pytest.raises(
        survey.DataFileError, match="^fmli171x.csv is not a text file in UTF-8: "
    ):
        survey.load(tmp_path / "fmli171x.csv")
    # letters of another alphabet in a column that nobody reads do no harm
    (tmp_path / "fmli171x.csv").write_bytes(ONE.replace("x,", "ü,").encode("latin-1"))
    assert len(survey.load(tmp_path / "fmli171x.csv").table) == 1


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (
            LFS,
            "is not a CSV file but a Git LFS pointer to one; remove it and download it again",
        ),
        (
            b"\n<!DOCTYPE html>",
            "is not a CSV file but looks like a web page; remove it",
        ),
        *(
            (raw, "is empty: copy or download it again")
            for raw in (b"", b"\xef\xbb\xbf\r\n", b" \n")
        ),
        # a line that spreadsheets put before the names, a comment, a title
        *(
            (
                line + TWO.encode(),
                "needs commas between its cells and, in its first line, one column",
            )
            for line in (b"sep=,\r\n", b"# of 2017\n", b"Survey" + 14 * b"," + b"\n")
        ),
        # in a file as long as the Bureau's
        (
            csv_text(*map(unit, range(4_000))).replace("x,", '"x,', 1).encode(),
            "is not a well-formed CSV file .cut off, or a quotation mark without its pair.*: ",
        ),
    ],
)
def test_a_file_that_is_no_table_is_told_what_it_looks_like(tmp_path, raw, words):
    (tmp_path / "fmli171x.csv").write_bytes(raw)
    with pytest.raises(
        survey.DataFileError, match=f"^fmli171x.csv .*{words}"
    ) as refused:
        survey.load(tmp_path / "fmli171x.csv")
    assert str(refused.value).isprintable()


@pytest.mark.parametrize("name", [b"caf\xe9.csv", b"caf\xe9.zip", b"caf\xe9"])
def test_a_name_that_is_not_utf_8_can_be_printed(tmp_path, name):
    path = tmp_path / os.fsdecode(name)
    if path.suffix == ".csv":
        path.write_text(ONE)
    elif path.suffix == ".zip":
        path.write_bytes(packed())
    else:
        path.mkdir()
        (path / "fmli171x.csv").write_text(ONE)
    told = survey.load(path).summary()
    assert "caf\N{REPLACEMENT CHARACTER}" in told and told.encode()


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (
            ["fmli171x.csv", "fmli172.csv"],
            "got list of length 2; of several files give their folder",
        ),
        (pd.DataFrame({"NEWID": [1, 2]}), "got DataFrame of shape .2, 1."),
        (3, "got 3"),
    ],
)
def test_what_is_no_path_is_told_by_its_type(path, words):
    with pytest.raises(TypeError, match=f"^path must be a path or None, {words}"):
        survey.load(path)
