"""The Consumer Expenditure sample of the application (Section 5): reader, stand-in, download.

The paper synthesizes family income before tax given ten categorical variables of the Consumer
Expenditure Surveys of the U.S. Bureau of Labor Statistics (its Table of variables). This module
turns the Bureau's public files into that table, simulates a stand-in with the same columns when
no file is at hand, and builds the predictor matrix of the synthesizer.
"""

import codecs
import contextlib
import csv
import hashlib
import lzma
import os
import re
import stat
import textwrap
import zipfile
import zlib
from dataclasses import dataclass, field, replace
from io import BytesIO, StringIO
from pathlib import Path

import numpy as np
import pandas as pd

from ppm._imports import needed_for
from ppm._random import generator
from ppm._validation import as_numbers, check_count, shown

BUREAU_URL = "https://www.bls.gov/cex/pumd/data/comma"

# The public files carry these codes since 2015; they were compared with the Bureau's dictionary.
LABELS = {
    "gender": ("male", "female"),
    "age": ("under 20", "20 to 39", "40 to 59", "60 to 79", "80 and over"),
    "education": (
        "never attended",
        "nursery to grade 8",
        "grades 9 to 12, no degree",
        "high school graduate",
        "some college, no degree",
        "associate's degree",
        "bachelor's degree",
        "master's, professional or doctorate",
    ),
    "region": ("Northeast", "Midwest", "South", "West"),
    "urban": ("urban", "rural"),
    "marital_status": ("married", "widowed", "divorced", "separated", "never married"),
    "urban_type": ("1 million or more", "100 thousand to 1 million", "under 100 thousand"),
    "cbsa": (
        "named metropolitan area",
        "other metropolitan area",
        "outside a metropolitan area",
    ),
    "family_size": (*(str(size) for size in range(1, 11)), "11 or more"),
    "earner": ("earns", "does not earn"),
}

# variable -> (column of the file, code -> position in LABELS); codes are compared as whole
# numbers, so "0" and "00" are the same
_CODES = {
    "gender": ("SEX_REF", {1: 0, 2: 1}),
    "age": ("AGE_REF", {age: min(age // 20, 4) for age in range(121)}),
    "education": ("EDUC_REF", {0: 0, **{code: code - 9 for code in range(10, 17)}}),
    "region": ("REGION", {code: code - 1 for code in range(1, 5)}),
    "urban": ("BLS_URBN", {1: 0, 2: 1}),
    "marital_status": ("MARITAL1", {code: code - 1 for code in range(1, 6)}),
    "urban_type": ("POPSIZE", {1: 0, 2: 0, 3: 1, 4: 1, 5: 2}),
    "cbsa": ("SMSASTAT", {1: 1, 2: 2}),  # PSU then moves named areas to 0
    "family_size": ("FAM_SIZE", {size: min(size, 11) - 1 for size in range(1, 100)}),
    "earner": ("EARNCOMP", {code: int(code > 4) for code in range(1, 9)}),
}
_INCOME = {"FINCBTXM": "interview", "FINCBEFM": "diary"}
_ALWAYS = ("NEWID", "PSU", *(column for column, _ in _CODES.values()))
_BLANK = {"", ".", "na", "nan"}
# What is far beyond a survey is refused: a year's quarters come to about 150 MB, and the paper's
# largest income is 1.8 million dollars.
_MOST_BYTES = 2 * 10**9
_MOST_DOLLARS = 10**9
_OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
_FILE_NAME = re.compile(r"fml([id])(\d\d)([1-4])(x?)\.csv", re.IGNORECASE)

_DESCRIPTIONS = {
    "gender": "Gender of the reference person",
    "age": "Age of the reference person",
    "education": "Education level of the reference person",
    "region": "Region of the consumer unit",
    "urban": "Urban status of the consumer unit",
    "marital_status": "Marital status of the reference person",
    "urban_type": "Urban area type of the consumer unit",
    "cbsa": "Core-based statistical area (CBSA) status",
    "family_size": "Size of the consumer unit",
    "earner": "Earner status of the reference person",
    "income": "Imputed and reported income before tax of the consumer unit, dollars",
}
_NOTES = {
    "age": "grouped in steps of 20 years",
    "urban_type": "proxy",
    "cbsa": "proxy",
    "family_size": "top-coded at 11",
    "earner": "codes 1 to 4: the reference person earns",
}
_PROXIES = (
    "Urban type is a proxy: the public 2017 files have no urban area type, so the population of "
    "the sampling area (POPSIZE) stands in, in three groups: 1 million or more (codes 1 and 2), "
    "100 thousand to 1 million (codes 3 and 4), under 100 thousand (code 5).",
    "CBSA status is a proxy: the public 2017 files have none, so SMSASTAT and PSU stand in: a "
    "metropolitan area (SMSASTAT 1) that the file names (PSU given), another metropolitan area "
    "(SMSASTAT 1, PSU blank), outside any metropolitan area (SMSASTAT 2).",
)


# stands under every figure and table of the stand-in
SIMULATED = "Simulated stand-in, not survey data."


class DataFileError(ValueError):
    """A data file that cannot be read as Consumer Expenditure microdata, or is not the one meant.

    Always one line that names the file and what is wrong with it.
    """


@dataclass(frozen=True, eq=False)
class ConsumerExpenditure:
    """The application's table and where it came from (Section 5.1 and its table of variables).

    Attributes
    ----------
    table : pandas.DataFrame
        One row a consumer unit: ten ordered categorical columns (the keys of
        `ppm.survey.expenditure.LABELS`) and ``income`` in dollars, float64. The index is 0, 1, …;
        the survey's identifiers are not kept.
    simulated : bool
        True when no survey record stands behind the numbers.
    source : str
        Survey, quarters and files, or how it was simulated.
    units_read : int
        Consumer units read; ``len(table) + sum(dropped.values())``.
    dropped : dict
        Reason -> number of units dropped for it. A unit is counted under one reason only.
    substitutions : tuple of str
        What stands in for something the paper used, a sentence each.
    survey : {"interview", "diary", "simulated"}
    rows_read : int
        Rows read, of which only the earliest of each consumer unit counts.
    suppressed : dict
        Variable -> number of units read whose value is suppressed or blank, dropped or not.
    """

    table: pd.DataFrame = field(repr=False)
    simulated: bool
    source: str
    units_read: int
    dropped: dict
    substitutions: tuple
    survey: str
    rows_read: int
    suppressed: dict

    @property
    def nonpositive(self):
        """Number of units in the table with an income of zero or less, dollars."""
        return int((self.table["income"] <= 0).sum())

    @property
    def income_range(self):
        """Smallest and largest income, dollars, as roughly as the paper's table of variables.

        The exact ones are two households' own. The smallest is rounded to one digit that counts
        and to a thousand at least, the largest to two digits and to a hundred thousand at least.
        """
        income = self.table["income"]
        return (
            _rounded(float(income.min()), digits=1, at_least=1_000),
            _rounded(float(income.max()), digits=2, at_least=100_000),
        )

    def subsample(self, records, *, random_seed=None):
        """Draw some of the consumer units at random, without replacement.

        Parameters
        ----------
        records : int
            Units to keep, from 1 to all of them; 0 keeps all.
        random_seed : int, SeedSequence or Generator, optional
            Source of randomness.

        Returns
        -------
        ConsumerExpenditure
            The same kind of object; the units left out are counted in ``dropped``.

        Raises
        ------
        ValueError
            If ``records`` is no whole number in that range.
        """
        records = check_count("records", records, at_least=0)
        kept = len(self.table)
        if records > kept:
            raise ValueError(f"records must be at most {kept}, the units there are; got {records}")
        if records in (0, kept):
            return self
        rows = np.sort(generator(random_seed).choice(kept, records, replace=False))
        return replace(
            self,
            table=self.table.iloc[rows].reset_index(drop=True),
            dropped={**self.dropped, "not drawn into the subsample": kept - records},
        )

    def summary(self, *, width=None):
        """Say in plain English what was read, dropped, kept and substituted.

        Parameters
        ----------
        width : int, optional
            Fold lines after so many characters.

        Returns
        -------
        str
            A few lines of text.
        """
        kept = len(self.table)
        lines = []
        if self.simulated:
            lines.append("SIMULATED DATA: no survey record stands behind these numbers.")
        lines.append(f"Source: {self.source}.")
        if self.rows_read > self.units_read:
            what = "week" if self.survey == "diary" else "interview"
            lines.append(
                f"Rows read: {self.rows_read:,}; only the earliest {what} of each consumer unit "
                f"counts."
            )
        lines.append(f"Consumer units read: {self.units_read:,}.")
        reasons = "; ".join(f"{reason}: {count:,}" for reason, count in self.dropped.items())
        lines.append(
            f"Dropped: {sum(self.dropped.values()):,}" + (f" ({reasons})." if reasons else ".")
        )
        shown = [
            f"{name}: {count:,}"
            for name, count in self.suppressed.items()
            if name in LABELS and "suppressed" in self.table[name].cat.categories
        ]
        if shown:
            lines.append(f"Kept with the added category 'suppressed': {'; '.join(shown)}.")
        lines.append(f"Consumer units kept: {kept:,}.")
        lines.append(
            f"Incomes of zero or less among them: {self.nonpositive:,} (kept as they are; they "
            f"have no logarithm)."
        )
        lines += [f"Substitution: {sentence}" for sentence in self.substitutions]
        if width is not None:
            lines = [textwrap.fill(line, width, subsequent_indent="  ") for line in lines]
        return "\n".join(lines)

    def description(self):
        """Tabulate the variables as the paper does, beside what is in this table.

        Returns
        -------
        pandas.DataFrame
            One row a variable: ``variable``, ``description``, ``categories (paper)`` and
            ``categories (here)`` (missing for income), ``source`` (column of the file),
            ``note``.
        """
        income_column = next((c for c, survey in _INCOME.items() if survey == self.survey), "")
        rows = []
        for name, text in _DESCRIPTIONS.items():
            column = _CODES[name][0] if name in _CODES else income_column
            note = _NOTES.get(name, "")
            if name == "cbsa":
                column += " and PSU"
            if name == "income":
                low, high = self.income_range
                note = f"about {low:,.0f} to {high:,.0f}, rounded; paper: about -7K to 1,800K"
                counts = (pd.NA, pd.NA)
            else:
                counts = (len(LABELS[name]), self.table[name].nunique())
            if self.simulated:
                column, note = "simulated", note if name == "income" else ""
            rows.append((name, text, *counts, column, note))
        frame = pd.DataFrame(
            rows,
            columns=[
                "variable",
                "description",
                "categories (paper)",
                "categories (here)",
                "source",
                "note",
            ],
        )
        counted = ["categories (paper)", "categories (here)"]
        return frame.astype({name: "Int64" for name in counted})


def _rounded(dollars, *, digits, at_least):
    unit = max(at_least, 10 ** (len(str(int(abs(dollars)))) - digits))
    return float(unit * round(dollars / unit))


# ------------------------------------------------------------------------------------ reading


def load(path, *, missing="drop", quarters=None):
    """Read Consumer Expenditure microdata as the Bureau of Labor Statistics publishes them.

    Parameters
    ----------
    path : str or path-like
        The Interview or Diary zip of a year (2015 or later, comma-separated release), a folder
        that holds its FMLI or FMLD files (or whose subfolders do), or one such CSV file.
    missing : {"drop", "category"}
        What becomes of a unit with a suppressed or blank predictor: dropped, or kept under the
        added last category "suppressed". A unit without income is dropped either way.
    quarters : None, "all", str or sequence of str
        Which quarterly files to read, such as ``"2017Q1"`` or ``["2017Q1", "2017Q2"]``. None
        reads the first quarter of an Interview zip, as the paper did (2017 Q1, the file
        ``fmli171x.csv``), and every quarter of a Diary zip. A unit interviewed in several
        quarters counts once, with its earliest interview among those read; a Diary unit counts
        once, with its earliest week.

    Returns
    -------
    ConsumerExpenditure
        Incomes of zero or less are kept and counted.

    Raises
    ------
    FileNotFoundError
        There is nothing at `path`.
    DataFileError
        The file is not, or not wholly, Consumer Expenditure microdata: damaged or encrypted, of
        more than 2 GB, two files of one quarter, a ``NEWID`` twice, or incomes that are all equal,
        none above zero or beyond a billion dollars.
    ValueError
        An argument outside what is accepted.

    Notes
    -----
    Section 5.1. The public 2017 files lack two of the paper's variables; see ``substitutions``
    of the result for what stands in.
    """
    if missing not in ("drop", "category"):
        raise ValueError(f"missing must be 'drop' or 'category', got {shown(missing)}")
    wanted = _parse_quarters(quarters)
    if str(path) == "":
        raise ValueError("path is empty; give a zip, a folder or a CSV file")
    path = Path(path).expanduser().absolute()
    if not os.path.exists(path):  # Path.exists raises an error for a name that is too long
        raise FileNotFoundError(f"no such file or folder: {path}")
    chosen, contents = _select(path, wanted)
    if any(not "2015" <= label < "2080" for label in chosen):
        raise DataFileError(f"{path.name}: {contents[0][0]} is older than 2015; its codes differ")

    frames, income_columns = [], set()
    for name, raw in contents:
        frame, income_column = _read_columns(raw, name)
        frames.append(frame)
        income_columns.add(income_column)
    if len(income_columns) > 1:
        raise DataFileError(f"{path.name} mixes {' and '.join(sorted(income_columns))} files")
    survey = _INCOME[income_column]
    names = [name for name, _ in contents]
    rows = pd.concat(frames, keys=names)
    rows_read = len(rows)
    rows = _earliest_of_each_unit(rows)
    units_read = len(rows)

    codes = {name: _encode(rows, name) for name in LABELS}
    income = _parse_income(rows, income_column)
    absurd = np.abs(income) > _MOST_DOLLARS
    if absurd.any():
        raise DataFileError(
            f"{_place(rows, absurd)}: column {income_column} holds no income, but a number beyond "
            f"{_MOST_DOLLARS:,} dollars"
        )
    absent = {name: values < 0 for name, values in codes.items()}
    suppressed = {name: int(flags.sum()) for name, flags in absent.items() if flags.any()}
    absent["income"] = np.isnan(income)
    why = _reasons(absent if missing == "drop" else {"income": absent["income"]}, units_read)
    keep = np.array([reason is None for reason in why], dtype=bool)
    if not keep.any():
        raise DataFileError(f"{path.name}: every consumer unit lacks income or a predictor")
    _check_incomes(income[keep], income_column, path.name)
    dropped = pd.Series(why, dtype=object).dropna().value_counts()

    table = _as_table({name: values[keep] for name, values in codes.items()}, income[keep])
    title = f"Consumer Expenditure {survey.capitalize()} Survey"
    files = ", ".join(names)
    where = files if names == [path.name] else f"{path.name}: {files}"
    period = ", ".join(chosen)
    return ConsumerExpenditure(
        table=table,
        simulated=False,
        source=f"{title}{', ' + period if period else ''} ({where})",
        units_read=units_read,
        dropped={reason: int(count) for reason, count in dropped.items()},
        substitutions=(*_other_sample(survey, chosen), *_PROXIES),
        survey=survey,
        rows_read=rows_read,
        suppressed=suppressed,
    )


def _other_sample(survey, chosen):
    """Sentences on how the sample read differs from the paper's, 2017 Q1 Interview."""
    if survey == "diary":
        return (
            "The Diary Survey stands in for the paper's Interview Survey (2017 Q1): other "
            "consumer units, and income is FINCBEFM where the Interview has FINCBTXM.",
        )
    if chosen and chosen != ["2017Q1"]:
        return (f"The paper used the Interview Survey of 2017 Q1; this is {', '.join(chosen)}.",)
    return ()


def _parse_quarters(quarters):
    """None, "all" or a list of labels such as 2017Q1."""
    if quarters is None or (isinstance(quarters, str) and quarters == "all"):
        return quarters
    asked = [quarters] if isinstance(quarters, str | int) else list(quarters)
    labels = []
    for item in asked:
        match = re.fullmatch(r"(?:20)?(\d\d)[Qq]?([1-4])x?", str(item))
        if match is None:
            raise ValueError(f"quarters: {item!r} is not a quarter; write it like '2017Q1'")
        labels.append(f"20{match[1]}Q{match[2]}")
    if not labels:
        raise ValueError("quarters is empty; give labels like '2017Q1', 'all' or None")
    return sorted(set(labels))


def _select(path, wanted):
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


def _read_columns(raw, name):
    """The columns needed, as stripped text (income renamed), and the income column's name."""
    if not raw.strip():
        raise DataFileError(f"{name} is empty")
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataFileError(f"{name} is written in UTF-16; save it as UTF-8")
    first_line = re.split(rb"[\r\n]", raw, maxsplit=1)[0].decode("utf-8-sig", errors="replace")
    header = [cell.strip().strip('"').strip().upper() for cell in first_line.split(",")]
    income = next((column for column in _INCOME if column in header), None)
    absent = [column for column in _ALWAYS if column not in header]
    if income is None:
        absent.append("FINCBTXM (Interview) or FINCBEFM (Diary)")
    signs = [word for sign, word in _OTHER_SEPARATORS.items() if sign in first_line]
    if absent and len(header) == 1 and signs:
        raise DataFileError(f"{name} separates its cells by {signs[0]}; it must be commas")
    if absent:
        raise DataFileError(
            f"{name} is not a Consumer Expenditure FMLI or FMLD file: no column {', '.join(absent)}"
        )
    needed = (*_ALWAYS, income)
    if repeated := [column for column in needed if header.count(column) > 1]:
        raise DataFileError(f"{name} has more than one column {', '.join(repeated)}")
    positions = {column: header.index(column) for column in needed}
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
    frame = frame[list(positions.values())].set_axis([*_ALWAYS, "income"], axis=1)
    return frame, income


def _cells_per_row(raw):
    """Number of cells of every row, 0 for an empty one; pandas would fill or drop cells."""
    if b'"' in raw:
        return [len(row) for row in csv.reader(StringIO(raw.decode("utf-8-sig", "replace")))]
    return [line.count(b",") + 1 if line.strip() else 0 for line in raw.splitlines()]


def _numbers(texts):
    """Floats of an array of cell texts: nan where blank, None where not a number."""
    values = {}
    for text in pd.unique(texts):
        bare = text.strip()
        if bare.lower() in _BLANK:
            values[text] = np.nan
            continue
        try:
            values[text] = None if "_" in bare else float(bare)  # float() takes "1_000"
        except ValueError:
            values[text] = None
    return values


def _earliest_of_each_unit(rows):
    """Keep the row with the lowest NEWID of each consumer unit.

    The last digit of NEWID counts the unit's weeks (Diary) or interviews (Interview).
    """
    # as text: as a float, identifiers of 17 digits and more become those of their neighbours
    texts = rows["NEWID"].str.strip().str.removesuffix(".0")
    odd = ~texts.str.fullmatch("0*[0-9]{1,18}").to_numpy(dtype=bool)
    if odd.any():
        raise DataFileError(
            f"{_place(rows, odd)}: column NEWID holds no identifier; accepted: whole numbers of at "
            f"most 18 digits"
        )
    newid = texts.to_numpy(dtype=object).astype(np.int64)
    repeated = pd.Series(newid).duplicated().to_numpy()
    if repeated.any():
        raise DataFileError(
            f"{_place(rows, repeated)}: its NEWID stands in an earlier row too, and so for "
            f"{repeated.sum():,} of {len(rows):,} rows; each week or interview has one row"
        )
    order = np.argsort(newid, kind="stable")
    _, first = np.unique(newid[order] // 10, return_index=True)
    return rows.iloc[order[first]]


def _place(rows, flags):
    """File and row, counted from the header, of the first row with a flag."""
    file, row = rows.index[np.argmax(flags)]
    return f"{file}, row {row + 2}"


def _encode(rows, name):
    """Positions in LABELS[name], -1 where suppressed or blank, shape (units,)."""
    column, known = _CODES[name]
    positions, unknown = {}, []
    for text, value in _numbers(rows[column]).items():
        if value is not None and np.isnan(value):
            positions[text] = -1
        elif value in known:
            positions[text] = known[value]
        else:
            unknown.append(text)
    if unknown:
        codes = list(known)
        ranges = f"{codes[0]} to {codes[-1]}"
        accepted = f"0, {codes[1]} to {codes[-1]}" if name == "education" else ranges
        flags = rows[column].isin(unknown).to_numpy()
        raise DataFileError(
            f"{_place(rows, flags)}: column {column} holds an unknown code; accepted: {accepted}"
        )
    codes = rows[column].map(positions).to_numpy(dtype=np.int64)
    if name == "cbsa":
        named = ~rows["PSU"].str.strip().str.lower().isin(_BLANK).to_numpy()
        codes = np.where((codes == 1) & named, 0, codes)
    return codes


def _parse_income(rows, column):
    values = _numbers(rows["income"])
    wrong = [text for text, value in values.items() if value is None]
    if wrong:
        flags = rows["income"].isin(wrong).to_numpy()
        raise DataFileError(
            f"{_place(rows, flags)}: column {column} holds something else than a number of dollars"
        )
    return rows["income"].map(values).to_numpy(dtype=np.float64)


def _check_incomes(income, column, where):
    """Refuse what no model of log income can be fitted to, before hours go into the attempt."""
    if (income <= 0).all():
        raise DataFileError(f"{where}: no number in column {column} is above 0 dollars")
    if len(income) > 1 and (income == income[0]).all():
        raise DataFileError(f"{where}: all {len(income):,} numbers in column {column} are equal")


def _reasons(absent, units):
    """One reason a unit, None for a unit that stays: "region suppressed", "income blank" …"""
    why = [None] * units
    flags = np.column_stack(list(absent.values()))
    names = np.array(list(absent))
    for row in np.flatnonzero(flags.any(axis=1)):
        lacking = list(names[flags[row]])
        word = "blank" if lacking == ["income"] else "suppressed"
        why[row] = f"{' and '.join(lacking)} {word}"
    return why


def _as_table(codes, income):
    """The tidy table from category positions (-1: suppressed) and incomes in dollars."""
    columns = {}
    for name, labels in LABELS.items():
        positions = codes[name]
        if (positions < 0).any():
            positions = np.where(positions < 0, len(labels), positions)
            labels = (*labels, "suppressed")
        columns[name] = pd.Categorical.from_codes(positions, categories=labels, ordered=True)
    return pd.DataFrame({**columns, "income": np.asarray(income, dtype=np.float64)})


# --------------------------------------------------------------------------------- simulating

# Shares rounded from margins of the published 2017 survey, many of them altered, and effects
# made up: they give the stand-in a plausible look and are no estimates of anything.
_AGE_SHARES = (0.01, 0.28, 0.35, 0.30, 0.06)
_EDUCATION_GIVEN_AGE = (
    (0.00, 0.00, 0.15, 0.35, 0.42, 0.07, 0.01, 0.00),
    (0.005, 0.02, 0.06, 0.20, 0.20, 0.115, 0.27, 0.13),
    (0.005, 0.03, 0.06, 0.23, 0.19, 0.11, 0.225, 0.15),
    (0.005, 0.03, 0.06, 0.25, 0.21, 0.095, 0.20, 0.15),
    (0.01, 0.04, 0.11, 0.33, 0.18, 0.05, 0.16, 0.12),
)
_MARITAL_GIVEN_AGE = (
    (0.03, 0.00, 0.00, 0.00, 0.97),
    (0.49, 0.01, 0.07, 0.02, 0.41),
    (0.59, 0.03, 0.20, 0.03, 0.15),
    (0.53, 0.16, 0.20, 0.02, 0.09),
    (0.35, 0.50, 0.10, 0.01, 0.04),
)
_FEMALE_GIVEN_MARITAL = (0.50, 0.80, 0.60, 0.60, 0.55)
_SIZE_GIVEN_MARITAL = (
    (0.02, 0.46, 0.19, 0.18, 0.09, 0.036, 0.012, 0.006, 0.003, 0.0015, 0.0015),
    (0.70, 0.18, 0.065, 0.03, 0.013, 0.006, 0.002, 0.002, 0.001, 0.0005, 0.0005),
    (0.56, 0.24, 0.12, 0.045, 0.02, 0.009, 0.003, 0.001, 0.001, 0.0005, 0.0005),
    (0.38, 0.25, 0.17, 0.10, 0.06, 0.025, 0.008, 0.004, 0.002, 0.0005, 0.0005),
    (0.55, 0.23, 0.12, 0.05, 0.03, 0.012, 0.004, 0.002, 0.001, 0.0005, 0.0005),
)
_EARNS_GIVEN_AGE = (0.75, 0.85, 0.80, 0.40, 0.10)
_REGION_SHARES = (0.18, 0.21, 0.37, 0.24)
_CBSA_SHARES = (0.40, 0.48, 0.12)
_URBAN_TYPE_GIVEN_CBSA = ((0.95, 0.05, 0.00), (0.40, 0.57, 0.03), (0.00, 0.25, 0.75))
_RURAL_GIVEN_CBSA = (0.00, 0.01, 0.60)
_LOG_INCOME_EFFECTS = {
    "gender": (0.0, -0.08),
    "age": (-0.5, 0.0, 0.25, 0.30, 0.25),
    "education": (-0.5, -0.35, -0.25, 0.0, 0.12, 0.22, 0.50, 0.75),
    "region": (0.05, 0.0, -0.06, 0.02),
    "urban": (0.0, -0.15),
    "marital_status": (0.0, -0.20, -0.30, -0.50, -0.40),
    "urban_type": (0.05, 0.0, -0.05),
    "cbsa": (0.10, 0.0, -0.05),
    "family_size": (-0.45, 0.0, 0.12, 0.22, 0.25, 0.28, 0.30, 0.35, 0.40, 0.40, 0.40),
    "earner": (0.0, -0.65),
}
_LOG_INCOME_LEVEL = 10.93
# share, shift and standard deviation of the noise's parts on the log scale: most units, units
# with next to no income in the year, the thin upper tail
_NOISE = ((0.91, 0.0, 0.58), (0.06, -1.5, 1.3), (0.03, 1.0, 0.60))
_INCOME_FLOOR, _INCOME_CAP = -7_000.0, 1_800_000.0  # the range the paper gives, dollars
_NONPOSITIVE_SHARE = 0.0014


def simulate(n=6208, *, random_seed=2017):
    """Simulate a stand-in for the paper's sample, with the columns :func:`load` gives.

    Household traits depend on one another (education and marital status on age, family size on
    marital status, urban type on CBSA status, …). Log income is a regression on them plus a
    mixture of three normals; it is skewed, capped at 1.8 million dollars, and about 0.14 % of
    the incomes are zero or a loss of up to 7,000 dollars.

    Parameters
    ----------
    n : int
        Consumer units, at least 1. The default is the paper's.
    random_seed : int, SeedSequence or numpy.random.Generator
        Repeats the same table exactly.

    Returns
    -------
    ConsumerExpenditure
        With ``simulated=True``: good for learning the method, not for statements on incomes.

    Raises
    ------
    ValueError
        `n` is not a whole number of at least 1.

    Notes
    -----
    Stands in for the sample of Section 5.1 where the Bureau's file is not at hand.
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"n must be a whole number of at least 1, got {shown(n)}")
    rng = generator(random_seed)
    n = int(n)

    age = _draw(rng, np.tile(_AGE_SHARES, (n, 1)))
    marital = _draw(rng, np.asarray(_MARITAL_GIVEN_AGE)[age])
    cbsa = _draw(rng, np.tile(_CBSA_SHARES, (n, 1)))
    codes = {
        "gender": _draw(rng, _two(_FEMALE_GIVEN_MARITAL)[marital]),
        "age": age,
        "education": _draw(rng, np.asarray(_EDUCATION_GIVEN_AGE)[age]),
        "region": _draw(rng, np.tile(_REGION_SHARES, (n, 1))),
        "urban": _draw(rng, _two(_RURAL_GIVEN_CBSA)[cbsa]),
        "marital_status": marital,
        "urban_type": _draw(rng, np.asarray(_URBAN_TYPE_GIVEN_CBSA)[cbsa]),
        "cbsa": cbsa,
        "family_size": _draw(rng, np.asarray(_SIZE_GIVEN_MARITAL)[marital]),
        "earner": 1 - _draw(rng, _two(_EARNS_GIVEN_AGE)[age]),
    }
    mean = _LOG_INCOME_LEVEL + sum(
        np.asarray(effects)[codes[name]] for name, effects in _LOG_INCOME_EFFECTS.items()
    )
    share, shift, spread = np.array(_NOISE).T
    part = _draw(rng, np.tile(share, (n, 1)))
    log_income = mean + shift[part] + spread[part] * rng.standard_normal(n)
    income = np.clip(np.round(np.exp(log_income)), 1.0, _INCOME_CAP)
    without = rng.choice(n, size=round(_NONPOSITIVE_SHARE * n), replace=False)
    losses = np.round(rng.uniform(_INCOME_FLOOR, 0.0, size=without.size))
    losses[rng.random(without.size) < 0.5] = 0.0
    income[without] = losses
    return ConsumerExpenditure(
        table=_as_table(codes, income),
        simulated=True,
        source=f"simulated stand-in, {n:,} consumer units",
        units_read=n,
        dropped={},
        substitutions=("Every value is simulated in place of the survey the paper used.",),
        survey="simulated",
        rows_read=n,
        suppressed={},
    )


def _two(share_of_second):
    second = np.asarray(share_of_second)
    return np.column_stack([1.0 - second, second])


def _draw(rng, probabilities):
    """One category a row of `probabilities` (rows, categories), by inverting the sums."""
    sums = np.cumsum(probabilities, axis=1)
    return (rng.random(len(sums))[:, None] * sums[:, -1:] >= sums).sum(axis=1)


# ------------------------------------------------------------------------- predictors, response


def predictor_matrix(table):
    """Build the predictors of the synthesizer: intercept and drop-first dummies.

    Parameters
    ----------
    table : pandas.DataFrame or ConsumerExpenditure
        With the ten categorical columns of :func:`load`, in which no value is missing. Other
        columns are ignored.

    Returns
    -------
    X : ndarray of float64, shape (n, R)
        Of full column rank.
    names : list of str
        ``"intercept"``, then ``"variable: category"`` for each dummy.

    Raises
    ------
    ValueError
        Columns absent or not categorical, missing values, no rows.

    See Also
    --------
    left_out_columns : which categories have no column, and why.

    Notes
    -----
    The predictor vector x_i of Appendix B. Within each variable the first category that occurs
    is the baseline; categories that do not occur have no column. A dummy that is a linear
    combination of the columns before it is left out, in the order of the variables and of their
    categories, so that the same table always gives the same columns.
    """
    X, names, _ = _design(table)
    return X, names


def left_out_columns(table):
    """Say which categories have no column in `predictor_matrix`, and why.

    Parameters
    ----------
    table : pandas.DataFrame or ConsumerExpenditure
        As for `predictor_matrix`.

    Returns
    -------
    dict
        ``"variable: category"`` -> ``"baseline"``, ``"not observed"`` or ``"redundant"`` (a
        linear combination of columns before it).

    Raises
    ------
    ValueError
        As `predictor_matrix`.
    """
    return _design(table)[2]


def _design(table):
    table = _checked(table, LABELS)
    columns, names, left_out = [np.ones(len(table))], ["intercept"], {}
    for name in LABELS:
        if not isinstance(table[name].dtype, pd.CategoricalDtype):
            raise ValueError(
                f"table: column {name} is not categorical; ppm.survey.load makes it so"
            )
        positions = table[name].cat.codes.to_numpy()
        baseline = positions.min()
        observed = set(np.unique(positions))
        for position, label in enumerate(table[name].cat.categories):
            title = f"{name}: {label}"
            if position == baseline:
                left_out[title] = "baseline"
            elif position not in observed:
                left_out[title] = "not observed"
            else:
                columns.append((positions == position).astype(np.float64))
                names.append(title)
    X = np.column_stack(columns)
    keep = _independent(X)
    left_out.update({names[j]: "redundant" for j in range(len(names)) if j not in keep})
    return np.ascontiguousarray(X[:, keep]), [names[j] for j in keep], left_out


def _independent(X):
    """Positions of the columns that are no linear combination of columns before them."""
    basis, keep = np.empty((0, len(X))), []
    for j in range(X.shape[1]):
        rest = X[:, j]
        for _ in range(2):  # the second pass removes what rounding left in
            rest = rest - basis.T @ (basis @ rest)
        size = np.linalg.norm(rest)
        if size > 1e-8 * np.linalg.norm(X[:, j]):
            basis = np.vstack([basis, rest / size])
            keep.append(j)
    return keep


def log_income(table, floor=1.0):
    """Take natural logarithms of income, with incomes below a floor set to it.

    Parameters
    ----------
    table : pandas.DataFrame or ConsumerExpenditure
        With the column ``income``, dollars.
    floor : float
        Dollars, above 0.

    Returns
    -------
    values : ndarray of float64, shape (n,)
        Log dollars: the response y_i of Appendix B.
    floored : int
        Number of incomes below the floor.

    Raises
    ------
    ValueError
        `floor` is not a positive number; no income column, or missing or infinite incomes.

    Notes
    -----
    The paper models the logarithm of income and does not say what became of incomes of zero or
    less. The floor is a choice of ours, and the Lipschitz bounds of these records depend on it.
    """
    number = isinstance(floor, int | float | np.number) and not isinstance(floor, bool)
    if not (number and np.isfinite(floor) and floor > 0):
        raise ValueError(f"floor must be a positive number of dollars, got {shown(floor)}")
    income = as_numbers("table: column income", _checked(table, ["income"])["income"])
    if not np.isfinite(income).all():
        raise ValueError("table: column income has an infinite value")
    return np.log(np.maximum(income, floor)), int((income < floor).sum())


def _checked(table, columns):
    if isinstance(table, ConsumerExpenditure):
        table = table.table
    if not isinstance(table, pd.DataFrame):
        raise ValueError(
            f"table must be a DataFrame as ppm.survey.load makes it, got {type(table).__name__}"
        )
    absent = [name for name in columns if name not in table.columns]
    if absent:
        raise ValueError(f"table has no column {', '.join(absent)}")
    if len(table) == 0:
        raise ValueError("table has no rows")
    lacking = [name for name in columns if table[name].isna().any()]
    if lacking:
        raise ValueError(f"table has missing values in {', '.join(lacking)}")
    return table


# -------------------------------------------------------------------------------- downloading


def download(
    folder, *, year=2017, survey="interview", known_hash=None, contact=None, base_url=BUREAU_URL
):
    """Download a year's microdata from the Bureau of Labor Statistics, once.

    The Bureau publishes no checksum and may reissue a file. Unless `known_hash` is given, the
    SHA256 of the first download is printed and recorded beside the file (``….zip.sha256``, in
    the format of sha256sum), and every later call checks the file against that record.

    Parameters
    ----------
    folder : str or path-like
        Where the zip goes; made if absent. A zip put there by hand is used as it is.
    year : int
        2015 or later (earlier files use other codes). The paper's is 2017.
    survey : {"interview", "diary"}
        The paper's is the Interview, about 6,200 consumer units a quarter.
    known_hash : str, optional
        The SHA256 the file must have, 64 hexadecimal digits, with or without ``sha256:``.
    contact : str, optional
        An e-mail address to send along: the Bureau may refuse automated requests that do not
        say whom to contact.
    base_url : str
        Where to download from instead, such as a mirror within an agency.

    Returns
    -------
    pathlib.Path
        The zip, for :func:`load`.

    Raises
    ------
    ImportError
        pooch is not installed.
    ConnectionError
        The file could not be had; the message says what to download by hand and where to put
        it. Nothing half-downloaded is left.
    DataFileError
        The file is no zip or does not have the SHA256 it must have.
    ValueError
        An argument outside what is accepted.
    """
    if isinstance(year, bool) or not isinstance(year, int | np.integer) or not 2015 <= year < 2100:
        raise ValueError(f"year must be a whole number of at least 2015, got {year!r}")
    if survey not in ("interview", "diary"):
        raise ValueError(f"survey must be 'interview' or 'diary', got {survey!r}")
    expected = None if known_hash is None else _sha256_digits(known_hash)
    if known_hash is not None and expected is None:
        raise ValueError(f"known_hash must be 64 hexadecimal digits of a SHA256: {known_hash!r}")

    folder = Path(folder).expanduser()
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{'intrvw' if survey == 'interview' else 'diary'}{year % 100:02d}.zip"
    target, record = folder / name, folder / f"{name}.sha256"
    whence = "known_hash"
    if expected is None and record.exists():
        whence = record.name
        expected = _sha256_digits((record.read_text(errors="replace").split() or [""])[0])
        if expected is None:
            raise DataFileError(f"{record.name} holds no SHA256; delete it to start afresh")

    fresh = not target.exists()
    if fresh:
        _fetch(f"{base_url.rstrip('/')}/{name}", target, contact)
    found = _sha256_of(target)
    trouble = ""
    if not zipfile.is_zipfile(target):
        trouble = f"{name} is no zip file: a web page, or cut off"
    elif expected is not None and found != expected:
        trouble = f"{name} has SHA256 {found}, but {whence} says {expected}: damaged, or reissued"
    if trouble and fresh:
        target.unlink()
        trouble += "; the download was removed"
    elif trouble:
        trouble += f"; delete {name} to download it again"
    if trouble and whence == record.name:
        trouble += f", delete {whence} to accept another issue"
    if trouble:
        raise DataFileError(trouble)
    if known_hash is not None or not record.exists():
        record.write_text(f"{found}  {name}\n", encoding="ascii")
    if expected is None:
        print(f"{name}: SHA256 {found}, recorded in {record.name} for later checks")
    return target


def _fetch(url, target, contact):
    """Download `url` to `target`, or leave nothing and raise one ConnectionError."""
    with needed_for("ppm.survey.download"):
        import pooch
        import requests

    agent = "ppm (Python package)" + (f" {contact}" if contact else "")

    def stream(url, output, _):
        # closes the connection whatever happens, which pooch's own downloader does not
        with (
            requests.get(url, headers={"User-Agent": agent}, stream=True, timeout=30) as response,
            open(output, "wb") as file,
        ):
            response.raise_for_status()
            for chunk in response.iter_content(1 << 20):
                file.write(chunk)

    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel("ERROR")
    try:
        pooch.retrieve(
            url,
            known_hash=None,  # checked by the caller, whose messages name the record
            fname=target.name,
            path=target.parent,
            downloader=stream,
        )
    except requests.exceptions.RequestException as error:
        answer = getattr(error, "response", None)
        if answer is None:
            reason = "no connection, or it broke off"
        else:
            reason = f"the server answered {answer.status_code} {answer.reason}".rstrip()
            if answer.status_code == 403 and contact is None:
                reason += ", try contact='your e-mail address'"
        raise ConnectionError(
            f"could not download {url} ({reason}); fetch it in a browser, save it as {target} "
            f"and call again"
        ) from None
    finally:
        logger.setLevel(level)


def _sha256_digits(text):
    digits = str(text).strip().lower().removeprefix("sha256:")
    return digits if re.fullmatch(r"[0-9a-f]{64}", digits) else None


def _sha256_of(path):
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
