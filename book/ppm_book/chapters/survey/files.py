"""The Bureau's files: found in a zip or a folder by their names, and read as text."""

import csv
import io
import os
import re
import zipfile
import zlib
from pathlib import PurePath

import pandas as pd

from ppm.checks import listed

# such as fmli171x.csv: the survey, two digits of the year, the quarter, and x if it was revised
_FILE_NAME = re.compile(r"fml([id])([0-9]{2})([1-4])(x?)\.csv", re.IGNORECASE)
# the first with the codes that are read
FIRST_YEAR = 2015
OLD = f"{FIRST_YEAR}; the codes of these years differ: give a later file"
# what holds files and must be unpacked first, alone or inside a zip or a folder
_PACKED = {".7z", ".bz2", ".gz", ".rar", ".tar", ".tgz", ".xz", ".zip", ".zst"}
# what zipfile raises where it cannot unpack: damaged, encrypted, or packed by another method
_NOT_UNPACKED = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    RuntimeError,
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
    ...     print(str(error).partition(" (")[0])
    notes.csv has no FMLI or FMLD file of the comma-separated release
    """


def select(path, every):
    """The survey ("i" or "d"), and label of each quarter to read -> name and bytes of its file.

    Of the Interview it is the first quarter alone, unless ``every`` one is wanted.
    """
    quarters, surveys, contents = {}, set(), _contents(path)
    for place, content in contents:
        if not (match := _FILE_NAME.fullmatch(PurePath(place).name)):
            continue
        survey, year, quarter, revised = match.groups()
        surveys.add(survey.lower())
        label = f"{'19' if year >= '80' else '20'}{year}Q{quarter}"
        editions = quarters.setdefault(label, {})
        if revised.lower() in editions:
            raise DataFileError(
                f"{name_of(path)} has {match[0]} in two places; give one release"
            )
        editions[revised.lower()] = match[0], content
    if not quarters:
        names = [PurePath(place) for place, _ in contents]
        packed = [name.name for name in names if name.suffix.lower() in _PACKED]
        told = f"; unpack {listed(packed)} first" if packed else ""
        raise DataFileError(
            f"{name_of(path)} has no FMLI or FMLD file of the comma-separated release "
            f"(such as fmli171x.csv){told}"
        )
    if len(surveys) > 1:
        raise DataFileError(
            f"{name_of(path)} has both Interview (FMLI) and Diary (FMLD) files; give one survey"
        )
    (survey,) = surveys
    labels = sorted(quarters)
    if survey == "i" and not every:
        labels = labels[:1]
    # a revised x file is taken in place of its namesake
    files = {label: quarters[label].get("x") or quarters[label][""] for label in labels}
    if labels[0] < f"{FIRST_YEAR}":
        later = [label for label in sorted(quarters) if label >= f"{FIRST_YEAR}"]
        told = f"; here {_runs(later)} can be read, in a folder of their own"
        raise DataFileError(
            f"{files[labels[0]][0]} is older than {OLD}{told if later else ''}"
        )
    return survey, {label: (name, read()) for label, (name, read) in files.items()}


def _runs(labels):
    """Increasing quarters in words, such as "2017Q1 to 2018Q1 and 2020Q4"."""
    runs = []
    for label in labels:
        number = 4 * int(label[:4]) + int(label[5])
        if runs and runs[-1][2] == number - 1:
            runs[-1][1:] = label, number
        else:
            runs.append([label, label, number])
    words = [f"{first} to {last}" if first < last else first for first, last, _ in runs]
    return " and ".join(words)


def _contents(path):
    """Name of each file in a zip or a folder, or of this one file, and what reads it."""
    if path.is_dir():
        return [
            (file.name, file.read_bytes) for file in path.rglob("*") if file.is_file()
        ]
    if path.suffix.lower() != ".zip":
        return [(path.name, path.read_bytes)]
    return [
        (name, lambda name=name: _unzip(path, lambda archive: archive.read(name)))
        for name in _unzip(path, zipfile.ZipFile.namelist)
    ]


def _unzip(path, read):
    """What a function reads from a zip."""
    try:
        with zipfile.ZipFile(path) as archive:
            return read(archive)
    except _NOT_UNPACKED as error:
        raise DataFileError(
            f"{name_of(path)} cannot be unpacked ({error}): get it again, or unpack it "
            "with another program and give the folder"
        ) from None


def name_of(path):
    """The name of a file as text to print and to save, also if it was not written in UTF-8."""
    return os.fsencode(path.name).decode(errors="replace")


def read_columns(raw, name, columns):
    """Some columns of a file, as text.

    Parameters
    ----------
    raw : bytes
        Contents of the file.
    name : str
        What messages call it.
    columns : sequence of str
        Columns that must be there.
    """
    text = io.StringIO(raw.decode("utf-8-sig", errors="replace"), newline="")
    try:
        lines = [line for line in csv.reader(text, strict=True) if line]
    except csv.Error as error:
        raise DataFileError(
            f"{name} is not a well-formed CSV file (cut off?): {error}"
        ) from None
    header = [cell.strip().upper() for cell in lines[0]] if lines else []
    if wrong := [column for column in columns if header.count(column) != 1]:
        raise DataFileError(
            f"{name} is not a Consumer Expenditure FMLI or FMLD file: it needs commas between "
            f"its cells and, in its first line, one column {', '.join(wrong)}"
        )
    if len(lines) == 1:
        raise DataFileError(f"{name} has column names but no rows")
    for row, line in enumerate(lines, start=1):
        if len(line) != len(header):
            raise DataFileError(
                f"{name}, row {row} has {len(line)} cells, the header {len(header)} (cut off?)"
            )
    return pd.DataFrame(lines[1:], columns=header, dtype=str)[columns]
