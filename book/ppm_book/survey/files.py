"""The Bureau's files: found in a zip or a folder, and read without trusting what they hold."""

import codecs
import contextlib
import csv
import lzma
import os
import re
import stat
import zipfile
import zlib
from io import BytesIO, StringIO
from pathlib import Path

import pandas as pd

from ppm._validation import shown

# What is far beyond a survey is refused: a year's quarters come to about 150 MB
_MOST_BYTES = 2 * 10**9
_OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
_FILE_NAME = re.compile(r"fml([id])(\d\d)([1-4])(x?)\.csv", re.IGNORECASE)


class DataFileError(ValueError):
    """A data file that cannot be read as Consumer Expenditure microdata, or is not the one meant.

    Always one line that names the file and what is wrong with it.

    Examples
    --------
    >>> from ppm_book import survey
    >>> try:
    ...     survey.load("notes.csv")
    ... except survey.DataFileError as error:
    ...     print(str(error).partition(":")[0])
    notes.csv is not a Consumer Expenditure FMLI or FMLD file
    """


def parse_quarters(quarters):
    """None, "all" or a list of labels such as 2017Q1."""
    if quarters is None or (isinstance(quarters, str) and quarters == "all"):
        return quarters
    try:
        asked = [quarters] if isinstance(quarters, str | int) else list(quarters)
    except TypeError:
        asked = [quarters]
    labels = []
    for item in asked:
        match = re.fullmatch(r"(?:20)?(\d\d)[Qq]?([1-4])x?", str(item))
        if match is None:
            raise ValueError(f"quarters: {shown(item)} is not a quarter; write it like '2017Q1'")
        labels.append(f"20{match[1]}Q{match[2]}")
    if not labels:
        raise ValueError("quarters is empty; give labels like '2017Q1', 'all' or None")
    return sorted(set(labels))


def select(path, wanted):
    """Labels of the quarters to read, and (file name, bytes) of each."""
    if path.is_dir():
        files = {str(f.relative_to(path)): f for f in (*path.glob("*"), *path.glob("*/*"))}
        names = _pick(files, wanted, path.name)
        chosen = [files[name] for name in names.values()]
        return list(names), _contents(chosen, path.name)
    with _open(path) as stream:
        start = stream.read(512)
    if not start:
        raise DataFileError(f"{path.name} is empty")
    if start.lstrip()[:1] == b"<":
        raise DataFileError(f"{path.name} holds a web page, not data: was its download refused?")
    if path.suffix.lower() == ".zip" or start.startswith(b"PK"):
        return _select_from_zip(path, wanted)
    match = _FILE_NAME.fullmatch(path.name)
    label = [f"20{match[2]}Q{match[3]}"] if match else []
    if wanted not in (None, "all", label):
        raise ValueError(f"quarters chooses among several files, but {path.name} is one CSV file")
    return label, _contents([path], path.name)


def _open(path):
    """Open a file for reading, but not a pipe of that name, which would never end."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise DataFileError(f"{path.name} is no file: a folder, a pipe or a device")
        return path.open("rb")
    except OSError as error:
        raise DataFileError(f"{path.name} cannot be read: {error.strerror}") from None


def _contents(paths, where):
    """(file name, bytes) of each file."""
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(_open(path)) for path in paths]
        _check_size(sum(os.fstat(file.fileno()).st_size for file in files), where)
        return [(path.name, file.read()) for path, file in zip(paths, files, strict=True)]


def _check_size(size, where):
    if size > _MOST_BYTES:
        raise DataFileError(
            f"{where}: what there is to read comes to {size / 1e9:,.1f} GB, far more than a "
            f"survey; at most {_MOST_BYTES / 1e9:g} GB are read at a time"
        )


def _select_from_zip(path, wanted):
    try:
        with zipfile.ZipFile(path) as archive:
            names = _pick(archive.namelist(), wanted, path.name)
            _check_size(sum(archive.getinfo(name).file_size for name in names.values()), path.name)
            return list(names), [(Path(n).name, _unpacked(archive, n)) for n in names.values()]
    except (
        zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, UnicodeDecodeError
    ) as error:
        raise DataFileError(
            f"{path.name} is not a whole zip file ({error}); download it again"
        ) from None
    except (NotImplementedError, RuntimeError) as error:  # odd compression, password
        raise DataFileError(f"{path.name} cannot be unpacked: {error}") from None


def _unpacked(archive, name):
    """Bytes of a file in a zip; one that holds more than it declares is found out on the way."""
    with archive.open(name) as stream:
        # in small pieces: a single one of a bomb can fill the memory
        return b"".join(iter(lambda: stream.read(1 << 14), b""))


def _pick(names, wanted, where):
    """Quarter label -> name of the file to read, in order of time."""
    found, twice = {"i": {}, "d": {}}, {}
    # a revised x file comes last, so that it wins over its namesake
    names = sorted(names, key=lambda name: (name.lower().endswith("x.csv"), name))
    for name in names:
        match = _FILE_NAME.fullmatch(_base(name))
        if match:
            label = f"20{match[2]}Q{match[3]}"
            before = found[match[1].lower()].get(label, "")
            if _base(before).lower() == _base(name).lower():
                twice[label] = before
            found[match[1].lower()][label] = name
    if not found["i"] and not found["d"]:
        there = [n for n in names if not n.endswith("/")][:3]
        what = f"; it holds {_printable(', '.join(there))}" if there else ""
        raise DataFileError(
            f"{where} has no FMLI or FMLD file of the comma-separated release "
            f"(such as fmli171x.csv){what}"
        )
    if found["i"] and found["d"]:
        raise DataFileError(
            f"{where} has both Interview (FMLI) and Diary (FMLD) files; give one survey"
        )
    files = dict(sorted((found["i"] or found["d"]).items()))
    if wanted is None:
        labels = list(files)[:1] if found["i"] else list(files)
    else:
        labels = list(files) if wanted == "all" else wanted
    for label in labels:
        if label not in files:
            raise ValueError(f"quarters: {where} has no {label}; it has {', '.join(files)}")
        if label in twice:
            both = _printable(f"{twice[label]} and {files[label]}")
            raise DataFileError(f"{where} has two files of {label}, {both}; leave one")
    return {label: files[label] for label in labels}


def _printable(text):
    """Names that stand in a zip, on one line."""
    text = text if len(text) <= 200 else f"{text[:200]} …"
    return "".join(sign if sign.isprintable() else "?" for sign in text)


def _base(name):
    """Name of a file without its folders, which a zip may separate by either slash."""
    return name.replace("\\", "/").rsplit("/", 1)[-1]


def read_columns(raw, name, always, incomes, optional=()):
    """Some columns of a file as text (income renamed), and the income column's name.

    Parameters
    ----------
    raw : bytes
        Contents of the file.
    name : str
        What messages call it.
    always : sequence of str
        Columns that must be there.
    incomes : dict of str to str
        Columns of income, of which one must be there -> the survey that has it.
    optional : sequence of str
        Columns that are read if they are there once.
    """
    if not raw.strip():
        raise DataFileError(f"{name} is empty")
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataFileError(f"{name} is written in UTF-16; save it as UTF-8")
    first_line = re.split(rb"[\r\n]", raw, maxsplit=1)[0].decode("utf-8-sig", errors="replace")
    header = [cell.strip().strip('"').strip().upper() for cell in first_line.split(",")]
    income = next((column for column in incomes if column in header), None)
    absent = [column for column in always if column not in header]
    if income is None:
        absent.append(" or ".join(f"{c} ({s.capitalize()})" for c, s in incomes.items()))
    signs = [word for sign, word in _OTHER_SEPARATORS.items() if sign in first_line]
    if absent and len(header) == 1 and signs:
        raise DataFileError(f"{name} separates its cells by {signs[0]}; it must be commas")
    if absent:
        raise DataFileError(
            f"{name} is not a Consumer Expenditure FMLI or FMLD file: no column {', '.join(absent)}"
        )
    needed = (*always, income)
    if repeated := [column for column in needed if header.count(column) > 1]:
        raise DataFileError(f"{name} has more than one column {', '.join(repeated)}")
    there = [column for column in optional if header.count(column) == 1]
    positions = {column: header.index(column) for column in (*needed, *there)}
    try:
        counts = _cells_per_row(raw)
        odd = next((k for k, count in enumerate(counts) if count not in (0, len(header))), None)
        if odd is not None:
            raise ValueError(
                f"row {odd + 1} has {counts[odd]} cells, the header {len(header)} (cut off?)"
            )
        frame = pd.read_csv(
            BytesIO(raw),
            header=0,
            names=range(len(header)),
            usecols=list(positions.values()),
            dtype=str,
            keep_default_na=False,
            encoding="utf-8-sig",
            encoding_errors="replace",
        )
    except (ValueError, csv.Error) as error:
        reason = " ".join(str(error).split())
        raise DataFileError(f"{name} is not a well-formed CSV file: {reason}") from None
    if frame.empty:
        raise DataFileError(f"{name} has column names but no rows")
    frame = frame[list(positions.values())].set_axis([*always, "income", *there], axis=1)
    return frame, income


def _cells_per_row(raw):
    """Number of cells of every row, 0 for an empty one; pandas would fill or drop cells."""
    if b'"' in raw:
        return [len(row) for row in csv.reader(StringIO(raw.decode("utf-8-sig", "replace")))]
    return [line.count(b",") + 1 if line.strip() else 0 for line in raw.splitlines()]
