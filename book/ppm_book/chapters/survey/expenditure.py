"""The Consumer Expenditure sample of the application (Section 5): its table, and the reader.

The paper synthesizes family income before tax given ten categorical variables of the Consumer
Expenditure Surveys of the U.S. Bureau of Labor Statistics (its Table of variables). This module
turns the Bureau's public files into that table.
"""

import textwrap
import tomllib
import zipfile
from dataclasses import dataclass, field, replace
from itertools import compress
from os import PathLike
from pathlib import Path

import numpy as np
import pandas as pd

from ppm.checks import check_count, shown
from ppm.seeds import generator
from ppm_book.chapters.survey.files import (
    OLD,
    DataFileError,
    name_of,
    read_columns,
    select,
)

_VARIABLES = tomllib.loads(
    Path(__file__).with_name("variables.toml").read_text("utf-8")
)
LABELS = {name: tuple(about["labels"]) for name, about in _VARIABLES.items()}
# variable -> (column of the file, code -> position in LABELS); codes are compared as whole
# numbers, so "0" and "00" are the same
_CODES = {
    name: (
        about["column"],
        {
            code: place
            for place, codes in enumerate(about["codes"])
            if codes
            for code in range(codes[0], codes[-1] + 1)
        },
    )
    for name, about in _VARIABLES.items()
}
# letter in the name of a file -> survey, and its column of income
_SURVEYS = {"i": ("interview", "FINCBTXM"), "d": ("diary", "FINCBEFM")}
# the columns of the 2017 Diary that `load` reads, made by `condense`; SOURCE.txt has its terms
ON_BOARD = Path(__file__).with_name("diary17.zip")
_SUMMARY = Path(__file__).with_name("summary.jinja")
_ALWAYS = ("NEWID", "PSU", *(column for column, _ in _CODES.values()))
_BLANK = {"", ".", "na", "nan"}
_PROXIES = tuple(about["proxy"] for about in _VARIABLES.values() if "proxy" in about)

# reason under which `dropped` counts what a subsample leaves out
NOT_DRAWN = "not drawn into the subsample"
# the paper's sample: the Interview Survey of this quarter
PAPER_QUARTER = "2017Q1"


@dataclass(frozen=True, eq=False)
class ConsumerExpenditure:
    """The application's table and where it came from (Section 5.1 and its table of variables).

    Attributes
    ----------
    table : pandas.DataFrame
        One row per consumer unit: ten ordered categorical columns (the keys of
        ``ppm_book.chapters.survey.expenditure.LABELS``) and ``income`` in dollars, float64. The index is
        0, 1, …; the survey's identifiers are not kept.
    source : str
        Survey, quarters and files.
    units_read : int
        Consumer units read; ``len(table) + sum(dropped.values())``.
    dropped : dict
        Reason -> number of units dropped for it. Each unit is counted under one reason.
    substitutions : tuple of str
        What stands in for something the paper used, one sentence each.
    survey : {"interview", "diary"}
        Which of the two.
    rows_read : int
        Rows read, of which only the earliest of each consumer unit counts.
    part : bool
        True if :meth:`subsample` or :meth:`by_quarter` left some units out.
    quarter : numpy.ndarray
        Label of each unit's quarter, such as ``"2017Q1"``, from the names of the files.

    Examples
    --------
    >>> from ppm_book.chapters import survey
    >>> data = survey.load().subsample(40, random_seed=2)
    >>> len(data.table), data.dropped["not drawn into the subsample"]
    (40, 5618)
    """

    table: pd.DataFrame = field(repr=False)
    source: str
    units_read: int
    dropped: dict
    substitutions: tuple
    survey: str
    rows_read: int
    part: bool = False
    quarter: np.ndarray = field(kw_only=True, repr=False)

    @property
    def nonpositive(self):
        """Number of units in the table with an income of zero or less, dollars."""
        return int((self.table["income"] <= 0).sum())

    @property
    def income_range(self):
        """Smallest and largest income, dollars, rounded as in the paper's table of variables.

        The exact ones are two households' own. The smallest has one significant digit and is
        rounded to a thousand at least, the largest has two and is rounded to a hundred thousand.
        """

        def rounded(dollars, digits, unit):
            unit = max(unit, 10 ** (len(str(int(abs(dollars)))) - digits))
            return float(unit * round(dollars / unit))

        income = self.table["income"]
        return rounded(income.min(), 1, 1_000), rounded(income.max(), 2, 100_000)

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
            ``dropped`` counts the units left out.
        """
        records = check_count("records", records, at_least=0)
        kept = len(self.table)
        if records > kept:
            raise ValueError(
                f"records must be at most {kept}, the units there are; got {records}"
            )
        if records in (0, kept):
            return self
        rows = np.sort(generator(random_seed).choice(kept, records, replace=False))
        return self._only(rows, NOT_DRAWN)

    def by_quarter(self):
        """Two tables: the units of the first quarter, and those of all later ones.

        The first can stand in for a published table, the other for the confidential one. They
        share no unit, because a unit of several quarters counts once, in its earliest. Of an
        Interview file :func:`load` reads one quarter unless it is given ``quarters="all"``.

        Returns
        -------
        tuple of ConsumerExpenditure
        """
        first = self.quarter == min(self.quarter)
        if first.all():
            raise ValueError(
                "a table of several quarters is needed: give load a zip or folder of "
                f"several quarterly files, and quarters='all'; this is {self.source}"
            )
        return (
            self._only(np.flatnonzero(first), "of a later quarter"),
            self._only(np.flatnonzero(~first), "of the first quarter"),
        )

    def summary(self, *, width=72):
        """Say what was read, dropped, kept and substituted, in lines of at most ``width`` letters.

        Returns
        -------
        str
        """
        from jinja2 import Template

        text = Template(_SUMMARY.read_text("utf-8"), trim_blocks=True).render(data=self)
        fold = textwrap.TextWrapper(width, subsequent_indent="  ").fill
        return "\n".join(map(fold, text.splitlines()))

    def _only(self, rows, reason):
        """Some of the units; ``reason`` is why the others were dropped."""
        return replace(
            self,
            table=self.table.iloc[rows].reset_index(drop=True),
            part=True,
            quarter=self.quarter[rows],
            dropped={**self.dropped, reason: len(self.table) - len(rows)},
        )


# ------------------------------------------------------------------------------------ reading


def load(path=None, *, quarters=None):
    """Read Consumer Expenditure microdata as the Bureau of Labor Statistics publishes them.

    Parameters
    ----------
    path : str or path-like, optional
        By default the Diary of 2017, which comes with this package. Otherwise the Interview or
        Diary zip of a year (2015 or later, comma-separated release), a folder with FMLI or FMLD
        files, or one such CSV file. In a zip or a folder they may lie in subfolders, at any depth.
    quarters : None or "all"
        Which quarterly files to read. None reads the first quarter of the Interview, as the paper
        did (2017 Q1, ``fmli171x.csv``), and every quarter of the Diary. A unit in several quarters
        counts once, with its earliest interview or week among those read.

    Returns
    -------
    ConsumerExpenditure
        A unit without income or with a suppressed predictor is dropped. Incomes of zero or less
        are kept. Both are counted.

    Raises
    ------
    DataFileError
        The file is not, or not wholly, Consumer Expenditure microdata of 2015 or later. The message
        names file, row and column, and shows no value.
    FileNotFoundError
        There is nothing at ``path``.

    Notes
    -----
    Section 5.1. The public files lack two of the paper's variables; see ``substitutions``
    of the result for what stands in.

    Survey and quarter of a file are known from its name: ``fmli171x.csv`` is of the Interview, of
    the first quarter of 2017, as the release of 2017 revised it (x). An x file is read in place of
    its namesake without x. Files of before 2015 have other codes and are refused.

    Examples
    --------
    >>> from ppm_book.chapters import survey
    >>> data = survey.load()
    >>> data.survey, len(data.table)
    ('diary', 5658)
    >>> survey.load("intrvw17.zip").survey
    'interview'
    """
    if quarters not in (None, "all"):
        raise ValueError("quarters must be None or 'all'")
    if not isinstance(path, (str, PathLike, type(None))):
        raise TypeError(
            f"path must be a path or None, got {shown(path)}; of several files give "
            "their folder"
        )
    path = Path(path or ON_BOARD).expanduser().absolute()
    if not path.exists():
        raise FileNotFoundError(f"no such file or folder: {path}")
    letter, files = select(path, every=quarters == "all")
    which, income = _SURVEYS[letter]
    rows = _rows(files, income)
    units = _earliest_of_each_unit(rows)
    table = _table(units)
    lacking = table.isna()
    keep = ~lacking.any(axis="columns")
    if not keep.any():
        raise DataFileError(
            f"{name_of(path)}: every consumer unit lacks income or a predictor"
        )
    labels = {name: label for label, (name, _) in files.items()}
    period, names = ", ".join(files), ", ".join(labels)
    place = names if names == name_of(path) else f"{name_of(path)}: {names}"
    return ConsumerExpenditure(
        table=table[keep].reset_index(drop=True),
        source=f"Consumer Expenditure {which.capitalize()} Survey, {period} ({place})",
        units_read=len(units),
        dropped=_reasons(lacking[~keep]),
        substitutions=(*_other_sample(which, period), *_PROXIES),
        survey=which,
        rows_read=len(rows),
        quarter=np.array([labels[name] for name, _ in units.index[keep]]),
    )


def _rows(files, income):
    """The rows of all files, by file and row; the last column is the survey's income."""
    rows = pd.concat(
        {
            name: read_columns(raw, name, [*_ALWAYS, income])
            for name, raw in files.values()
        }
    )
    # also in the first quarter of 2015 as the release of 2014 has it, fmli151.csv
    _refuse(
        rows,
        rows["PSU"].str.strip().str.fullmatch("[1-4][0-9]{3}"),
        f"column PSU holds a code of before {OLD}",
    )
    return rows


def _table(units):
    """Tidy table of the units: categories, missing where suppressed, and incomes in dollars."""
    columns = {
        name: pd.Categorical.from_codes(_encode(units, name), words, ordered=True)
        for name, words in LABELS.items()
    }
    income = _numbers(units, units.columns[-1]).to_numpy()
    return pd.DataFrame(columns | {"income": income})


def _reasons(lacking):
    """How many units are dropped for what they lack."""
    dropped = {}
    for flags, count in lacking.value_counts().items():
        names = " and ".join(compress(lacking.columns, flags))
        dropped[f"{names} {'blank' if names == 'income' else 'suppressed'}"] = count
    return dropped


def condense(path, target):
    """Write the columns that :func:`load` reads into a smaller zip, as for the file on board."""
    letter, files = select(Path(path), every=True)
    columns = [*_ALWAYS, _SURVEYS[letter][1]]
    with zipfile.ZipFile(target, "w") as archive:
        for name, raw in files.values():
            text = read_columns(raw, name, columns).to_csv(index=False)
            # without a date: the same content gives the same file
            archive.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED, 9)


def _other_sample(survey, period):
    """Sentences on how the sample read differs from the paper's, 2017 Q1 Interview."""
    if survey == "diary":
        return (
            "The Diary Survey stands in for the paper's Interview Survey (2017 Q1): other "
            "consumer units, and income is FINCBEFM where the Interview has FINCBTXM.",
        )
    if period == PAPER_QUARTER:
        return ()
    return (f"The paper used the Interview Survey of 2017 Q1; this is {period}.",)


def _refuse(rows, flags, what):
    """Name file and row, counted from the header, of the first row with a flag."""
    if flags.any():
        file, row = rows.index[np.argmax(flags)]
        raise DataFileError(f"{file}, row {row + 2}: {what}")


def _numbers(rows, column):
    """A column as floats, NaN where blank."""
    texts = rows[column].str.strip().str.lower()
    blank = texts.isin(_BLANK)
    # so few digits that none is infinite
    number = texts.str.fullmatch(r"[-+]?[0-9]{1,99}(\.[0-9]*)?(e[-+]?[0-9]{1,2})?")
    _refuse(
        rows, ~(blank | number), f"column {column} holds something else than a number"
    )
    return texts.mask(blank, "nan").astype(np.float64)


def _earliest_of_each_unit(rows):
    """Keep the row with the lowest NEWID of each consumer unit.

    The last digit of NEWID counts the unit's weeks (Diary) or interviews (Interview).
    """
    # as whole numbers: as floats, identifiers of 17 digits and more become their neighbours'
    texts = rows["NEWID"].str.strip()
    odd = ~texts.str.fullmatch("[0-9]{1,18}")
    _refuse(rows, odd, "column NEWID holds no identifier; accepted: at most 18 digits")
    newid = texts.astype(np.int64)
    repeated = (
        "its NEWID stands in an earlier row too; each week or interview has one row"
    )
    _refuse(rows, newid.duplicated(), repeated)
    newid = newid.sort_values()
    return rows.loc[newid.index[~(newid // 10).duplicated()]]


def _encode(rows, name):
    """Positions in LABELS[name], -1 where suppressed or blank, shape (units,)."""
    column, known = _CODES[name]
    values = _numbers(rows, column)
    codes = values.map(known)
    unknown = f"column {column} holds a code that the Bureau's dictionary does not have"
    _refuse(rows, codes.isna() & values.notna(), unknown)
    codes = codes.fillna(-1).to_numpy(dtype=np.int64)
    if name == "cbsa":
        named = ~rows["PSU"].str.strip().str.lower().isin(_BLANK)
        codes = np.where((codes == 1) & named, 0, codes)
    return codes
