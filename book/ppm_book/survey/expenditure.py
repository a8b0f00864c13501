"""The Consumer Expenditure sample of the application (Section 5): its table, and the reader.

The paper synthesizes family income before tax given ten categorical variables of the Consumer
Expenditure Surveys of the U.S. Bureau of Labor Statistics (its Table of variables). This module
turns the Bureau's public files into that table.
"""

import os
import textwrap
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from ppm._random import generator
from ppm._validation import check_count, shown
from ppm_book.survey.files import DataFileError, parse_quarters, read_columns, select

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
# year and month of an interview: they are asked where the name of a file does not say
_INTERVIEWED = ("QINTRVYR", "QINTRVMO")
_BLANK = {"", ".", "na", "nan"}
# far beyond the paper's largest income, 1.8 million dollars
_MOST_DOLLARS = 10**9

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
# reason under which `dropped` counts what a subsample leaves out
NOT_DRAWN = "not drawn into the subsample"
# the paper's sample: the Interview Survey of these years and quarters
PAPER_QUARTERS = ((2017, 1),)


@dataclass(frozen=True, eq=False)
class ConsumerExpenditure:
    """The application's table and where it came from (Section 5.1 and its table of variables).

    Attributes
    ----------
    table : pandas.DataFrame
        One row a consumer unit: ten ordered categorical columns (the keys of
        ``ppm_book.survey.expenditure.LABELS``) and ``income`` in dollars, float64. The index is
        0, 1, …; the survey's identifiers are not kept.
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
    quarters : tuple of (int, int)
        Years and quarters of the survey that the rows are from, as the Bureau's names of the files
        say or, of a file under another name, its columns QINTRVYR and QINTRVMO; empty if neither
        says. The paper's are ``ppm_book.survey.expenditure.PAPER_QUARTERS``.
    part : bool
        True if :meth:`subsample` left some units out.

    Examples
    --------
    >>> from ppm_book import survey
    >>> data = survey.simulate(100, random_seed=1)
    >>> print(data.subsample(40, random_seed=2).summary(width=80))
    SIMULATED DATA: no survey record stands behind these numbers.
    Source: simulated stand-in, 100 consumer units.
    Consumer units read: 100.
    Dropped: 60 (not drawn into the subsample: 60).
    Consumer units kept: 40.
    Incomes of zero or less among them: 0 (kept in the table; they have no
      logarithm).
    Substitution: Every value is simulated in place of the survey the paper used.
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
    quarters: tuple = ()
    part: bool = False

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
            dropped={**self.dropped, NOT_DRAWN: kept - records},
            part=True,
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
            f"Incomes of zero or less among them: {self.nonpositive:,} (kept in the table; they "
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
        There is nothing at ``path``.
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

    Examples
    --------
    >>> from ppm_book import survey
    >>> data = survey.load("intrvw17.zip")
    >>> data.survey, data.simulated
    ('interview', False)
    """
    if missing not in ("drop", "category"):
        raise ValueError(f"missing must be 'drop' or 'category', got {shown(missing)}")
    wanted = parse_quarters(quarters)
    if str(path) == "":
        raise ValueError("path is empty; give a zip, a folder or a CSV file")
    path = Path(path).expanduser().absolute()
    if not os.path.exists(path):  # Path.exists raises an error for a name that is too long
        raise FileNotFoundError(f"no such file or folder: {path}")
    chosen, contents = select(path, wanted)
    found = tuple((int(label[:4]), int(label[5])) for label in chosen)
    _check_years(found, path.name, contents[0][0])

    frames, income_columns = [], set()
    for name, raw in contents:
        frame, income_column = read_columns(raw, name, _ALWAYS, _INCOME, _INTERVIEWED)
        frames.append(frame)
        income_columns.add(income_column)
    if len(income_columns) > 1:
        raise DataFileError(f"{path.name} mixes {' and '.join(sorted(income_columns))} files")
    survey = _INCOME[income_column]
    names = [name for name, _ in contents]
    rows = pd.concat(frames, keys=names)
    if not found:
        found = _interviewed(rows)
        _check_years(found, path.name, names[0])
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

    table = as_table({name: values[keep] for name, values in codes.items()}, income[keep])
    title = f"Consumer Expenditure {survey.capitalize()} Survey"
    files = ", ".join(names)
    where = files if names == [path.name] else f"{path.name}: {files}"
    period = _labels(found)
    return ConsumerExpenditure(
        table=table,
        simulated=False,
        source=f"{title}{', ' + period if period else ''} ({where})",
        units_read=units_read,
        dropped={reason: int(count) for reason, count in dropped.items()},
        substitutions=(*_other_sample(survey, found), *_PROXIES),
        survey=survey,
        rows_read=rows_read,
        suppressed=suppressed,
        quarters=found,
    )


def _check_years(quarters, where, name):
    if any(not 2015 <= year < 2080 for year, _ in quarters):
        raise DataFileError(f"{where}: {name} is older than 2015; its codes differ")


def _interviewed(rows):
    """Years and quarters of the interviews, if the file has them; empty if a row does not say."""
    if not {*_INTERVIEWED} <= {*rows.columns}:
        return ()
    year, month = (pd.to_numeric(rows[name], errors="coerce") for name in _INTERVIEWED)
    if not (year.between(1980, 2100) & month.between(1, 12) & (month % 1 == 0)).all():
        return ()
    return tuple(sorted({*zip(year.astype(int), (month.astype(int) + 2) // 3, strict=True)}))


def _labels(quarters):
    return ", ".join(f"{year}Q{quarter}" for year, quarter in quarters)


def _other_sample(survey, quarters):
    """Sentences on how the sample read differs from the paper's, 2017 Q1 Interview."""
    if survey == "diary":
        return (
            "The Diary Survey stands in for the paper's Interview Survey (2017 Q1): other "
            "consumer units, and income is FINCBEFM where the Interview has FINCBTXM.",
        )
    if quarters == PAPER_QUARTERS:
        return ()
    this = f"this is {_labels(quarters)}" if quarters else "the file does not say what this is of"
    return (f"The paper used the Interview Survey of 2017 Q1; {this}.",)


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


def as_table(codes, income):
    """The tidy table from category positions (-1: suppressed) and incomes in dollars."""
    columns = {}
    for name, labels in LABELS.items():
        positions = codes[name]
        if (positions < 0).any():
            positions = np.where(positions < 0, len(labels), positions)
            labels = (*labels, "suppressed")
        columns[name] = pd.Categorical.from_codes(positions, categories=labels, ordered=True)
    return pd.DataFrame({**columns, "income": np.asarray(income, dtype=np.float64)})
