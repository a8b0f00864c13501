"""The Bureau's files: found in a zip or a folder, and read without trusting what they hold."""

import lzma
import os
import re
import zipfile
import zlib
from functools import partial
from io import BytesIO
from operator import itemgetter
from pathlib import PureWindowsPath

import numpy as np
import pandas as pd

_FILE_NAME = re.compile(r"fml([id])([0-9]{2})([1-4])(x?)\.csv", re.IGNORECASE)
# from the first with the codes that are read to the last that two digits can tell
FIRST_YEAR, LAST_YEAR = 2015, 2079
# what zipfile raises for a damaged file
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    ValueError,
)


class DataFileError(ValueError):
    """A data file that cannot be read as Consumer Expenditure microdata, or is not the one meant.

    Always one line that names the file and what is wrong with it.

    Examples
    --------
    >>> from ppm_book.chapters import survey
    >>> try:
    ...     survey.load("notes.csv")
    ... except survey.DataFileError as error:
    ...     print(str(error).partition(":")[0])
    notes.csv is not a Consumer Expenditure FMLI or FMLD file
    """


def parse_quarters(quarters):
    """None, "all" or a sorted list of labels such as 2017Q1."""
    if quarters is None or isinstance(quarters, str) and quarters == "all":
        return quarters
    labels = {str(label) for label in np.atleast_1d(quarters)}
    if not labels or not all(re.fullmatch("[0-9]{4}Q[1-4]", label) for label in labels):
        raise ValueError(
            "quarters must be None, 'all', or quarters written like '2017Q1'"
        )
    return sorted(labels)


def select(path, wanted):
    """(Quarter, file name, bytes) of each file to read; the quarter is "" if no name says it."""
    if path.is_dir():
        files = [
            (file.relative_to(path).as_posix(), file.read_bytes)
            for place, _, names in path.walk(on_error=_raise)
            for file in map(place.joinpath, names)
            if file.is_file()
        ]
    elif path.suffix.lower() == ".zip":
        files = [
            (info.filename, partial(unzip, path, info))
            for info in unzip(path)
            if not info.is_dir()
        ]
    else:
        match = _FILE_NAME.fullmatch(path.name)
        label = _quarter(match) if match else ""
        if wanted not in (None, "all", [label]):
            raise ValueError(
                f"quarters chooses among several files, but {name_of(path)} is one CSV file"
            )
        return [(label, name_of(path), path.read_bytes())]
    chosen = _pick(files, wanted, name_of(path))
    return [
        (label, _last_part(copies[0][0]), _content(copies, f"{name_of(path)}, {label}"))
        for label, copies in chosen.items()
    ]


def unzip(path, info=None):
    """What a zip holds, or the bytes of one file in it."""
    with path.open("rb") as file:
        try:
            archive = zipfile.ZipFile(file)
            return archive.read(info) if info else archive.infolist()
        except RuntimeError:
            encrypted = info and info.flag_bits & 1
            fault = (
                "encrypted"
                if encrypted
                else "packed by a method that Python does not have"
            )
            raise DataFileError(
                f"{name_of(path)} is {fault}: unpack it with another program and give the folder"
            ) from None
        except _DAMAGED as error:
            raise DataFileError(
                f"{not_a_zip(path, error)}; remove it and download it again"
            ) from None


def not_a_zip(path, why="cut off?"):
    """What is wrong with a file that should be a zip."""
    with path.open("rb") as file:
        other = _other(file.read(100))
    fault = f"zip file but {other}" if other else f"whole zip file ({why})"
    return f"{name_of(path)} is not a {fault}"


def _other(start):
    """What was saved in place of the file, if its first bytes tell; else ""."""
    start = start.lstrip(b"\xef\xbb\xbf \r\n\t")
    if start.startswith(b"version https://git-lfs"):
        return "a Git LFS pointer to one"
    return "looks like a web page" if start.startswith(b"<") else ""


def name_of(path):
    """The name of a file as text to print and to save, also if it was not written in UTF-8."""
    return os.fsencode(path.name).decode(errors="replace")


def _raise(error):
    # walk is silent about a folder that may not be read, unless it is told what to do
    raise error


def _quarter(match):
    """Label of a file, from its name: two digits of the year, the quarter."""
    return f"{'19' if match[2] >= '80' else '20'}{match[2]}Q{match[3]}"


def _last_part(name):
    # some programs write backslashes into a zip
    return PureWindowsPath(name).name


def _pick(files, wanted, where):
    """Label -> the copies to read, from pairs of a name and of what reads it."""
    found = {"i": {}, "d": {}}
    for file in sorted(files, key=itemgetter(0)):
        if match := _FILE_NAME.fullmatch(_last_part(file[0])):
            copies = found[match[1].lower()].setdefault(_quarter(match), {})
            copies.setdefault(match[4].lower(), []).append(file)
    if found["i"] and found["d"]:
        raise DataFileError(
            f"{where} has both Interview (FMLI) and Diary (FMLD) files; give one survey"
        )
    quarters = dict(sorted((found["i"] or found["d"]).items()))
    if not quarters:
        zips = sorted(name for name, _ in files if name.lower().endswith(".zip"))
        inside = f"; it holds {zips[0]}: give that file by itself" if zips else ""
        raise DataFileError(
            f"{where} has no FMLI or FMLD file of the comma-separated release "
            f"(such as fmli171x.csv){inside}"
        )
    if wanted is None and found["i"]:
        wanted = [min(quarters)]
    elif wanted in (None, "all"):
        wanted = [*quarters]
    if absent := [label for label in wanted if label not in quarters]:
        raise ValueError(
            f"quarters: {where} has no {absent[0]}; it has {', '.join(quarters)}"
        )
    # a revised x file is taken in place of its namesake
    return {label: quarters[label].get("x") or quarters[label][""] for label in wanted}


def _content(copies, what):
    """The bytes of a file, which may be there several times, but only in one version."""
    first, *others = [(name, read()) for name, read in copies]
    for name, raw in others:
        if raw != first[1]:
            raise DataFileError(
                f"{what}: {first[0]} and {name} differ; keep one of them"
            )
    return first[1]


def read_columns(raw, name, always, incomes):
    """Some columns of a file, as text.

    Parameters
    ----------
    raw : bytes
        Contents of the file.
    name : str
        What messages call it.
    always : sequence of str
        Columns that must be there.
    incomes : sequence of str
        Columns of income, of which one must be there.
    """
    _refuse_no_csv(raw, name)
    # a cell that is empty is empty text; one that is not there has no value
    read = partial(
        pd.read_csv,
        header=None,
        dtype=str,
        keep_default_na=False,
        engine="python",
        encoding="utf-8-sig",
        encoding_errors="replace",
    )
    try:
        header = [cell.strip().upper() for cell in read(BytesIO(raw), nrows=1).iloc[0]]
        income = next(
            (column for column in incomes if column in header), " or ".join(incomes)
        )
        columns = [*always, income]
        if wrong := [column for column in columns if header.count(column) != 1]:
            raise DataFileError(
                f"{name} is not a Consumer Expenditure FMLI or FMLD file: it needs commas between "
                f"its cells and, in its first line, one column {', '.join(wrong)}"
            )
        table = read(BytesIO(raw))
    except pd.errors.EmptyDataError:
        raise DataFileError(f"{name} is empty: copy or download it again") from None
    except pd.errors.ParserError as error:
        raise DataFileError(
            f"{name} is not a well-formed CSV file (cut off, or a quotation mark "
            f"without its pair?): {error}".strip()
        ) from None
    _refuse_cut_off(table, name)
    rows = table.iloc[1:].reset_index(drop=True)
    return rows.set_axis(header, axis="columns")[columns]


def _refuse_no_csv(raw, name):
    """Say what was saved in place of a text file."""
    try:
        text = re.split(rb"[\r\n]", raw.lstrip(), maxsplit=1)[0].decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise DataFileError(
            f"{name} is not a text file in UTF-8: give a file of the "
            "comma-separated release, or save this one as CSV in UTF-8"
        )
    if other := _other(raw[:100]):
        raise DataFileError(
            f"{name} is not a CSV file but {other}; remove it and download it again"
        )


def _refuse_cut_off(table, name):
    """Say where a table ends before its time; its first row has the column names."""
    if len(table) == 1:
        raise DataFileError(f"{name} has column names but no rows")
    cells = table.notna().sum(axis="columns")
    if (cut := cells < cells[0]).any():
        raise DataFileError(
            f"{name}, row {cut.idxmax() + 1} has {cells[cut.idxmax()]} cells, the "
            f"header {cells[0]} (cut off?)"
        )
