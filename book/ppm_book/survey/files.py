"""The Bureau's files: found in a zip or a folder, and read without trusting what they hold."""

import re
import zipfile
import zlib
from io import BytesIO

import numpy as np
import pandas as pd

_FILE_NAME = re.compile(r"fml([id])(\d\d)([1-4])x?\.csv", re.IGNORECASE)


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
    """None, "all" or a sorted list of labels such as 2017Q1."""
    if quarters is None or isinstance(quarters, str) and quarters == "all":
        return quarters
    labels = {str(label) for label in np.atleast_1d(quarters)}
    if not all(re.fullmatch("20[0-9]{2}Q[1-4]", label) for label in labels):
        raise ValueError("quarters must be None, 'all', or quarters written like '2017Q1'")
    return sorted(labels)


def select(path, wanted):
    """(Quarter, file name, bytes) of each file to read; the quarter is "" if no name says it."""
    if path.is_dir():
        return _pick(path, wanted, path.name)
    if path.suffix.lower() == ".zip":
        try:
            with zipfile.ZipFile(path) as archive:
                return _pick(zipfile.Path(archive), wanted, path.name)
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise DataFileError(
                f"{path.name} is not a whole zip file ({error}); download it again"
            ) from None
    match = _FILE_NAME.fullmatch(path.name)
    label = f"20{match[2]}Q{match[3]}" if match else ""
    if wanted not in (None, "all", [label]):
        raise ValueError(f"quarters chooses among several files, but {path.name} is one CSV file")
    return [(label, path.name, path.read_bytes())]


def _pick(folder, wanted, where):
    """As :func:`select`, from a folder or a zip."""
    found = {"i": {}, "d": {}}
    # a revised x file comes after its namesake, and wins
    # in a zip, rglob leaves out the top level
    for file in sorted([*folder.glob("*"), *folder.rglob("*")], key=lambda f: f.name.lower()):
        if match := _FILE_NAME.fullmatch(file.name):
            found[match[1].lower()][f"20{match[2]}Q{match[3]}"] = file
    if found["i"] and found["d"]:
        raise DataFileError(
            f"{where} has both Interview (FMLI) and Diary (FMLD) files; give one survey"
        )
    files = found["i"] or found["d"]
    if not files:
        raise DataFileError(
            f"{where} has no FMLI or FMLD file of the comma-separated release "
            "(such as fmli171x.csv)"
        )
    if wanted in (None, "all"):
        wanted = [*files][: 1 if found["i"] and wanted is None else None]
    if absent := [label for label in wanted if label not in files]:
        raise ValueError(f"quarters: {where} has no {absent[0]}; it has {', '.join(files)}")
    return [(label, files[label].name, files[label].read_bytes()) for label in wanted]


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
    try:
        # a cell that is empty is empty text; one that is not there has no value
        table = pd.read_csv(BytesIO(raw), header=None, dtype=str, keep_default_na=False,
                            encoding="utf-8-sig", encoding_errors="replace", engine="python")
    except (pd.errors.EmptyDataError, pd.errors.ParserError) as error:
        raise DataFileError(f"{name} is not a well-formed CSV file: {error}".strip()) from None
    header = [cell.strip().upper() for cell in table.iloc[0].fillna("")]
    income = next((column for column in incomes if column in header), " or ".join(incomes))
    columns = [*always, income]
    if wrong := [column for column in columns if header.count(column) != 1]:
        raise DataFileError(
            f"{name} is not a Consumer Expenditure FMLI or FMLD file: it needs commas between "
            f"its cells and one column {', '.join(wrong)}"
        )
    if len(table) == 1:
        raise DataFileError(f"{name} has column names but no rows")
    cells = table.notna().sum(axis="columns")
    if (cut := cells < len(header)).any():
        raise DataFileError(f"{name}, row {cut.idxmax() + 1} has {cells[cut.idxmax()]} cells, the "
                            f"header {len(header)} (cut off?)")
    return table.iloc[1:].reset_index(drop=True).set_axis(header, axis="columns")[columns]
