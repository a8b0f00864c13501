"""Units of Consumer Expenditure files, and files of such units, made up or of real households."""

import io
import zipfile
from itertools import pairwise

import numpy as np
import pandas as pd

from ppm_book.chapters.survey.expenditure import ON_BOARD

# nobody asks for the columns OTHER and LAST
UNIT = dict(
    cell.split("=")
    for cell in (
        "NEWID=03044961 AGE_REF=45 BLS_URBN=1 EARNCOMP=1 EDUC_REF=12 FAM_SIZE=2 MARITAL1=1 POPSIZE=1 "
        "PSU=S12A REGION=1 SEX_REF=1 SMSASTAT=1 OTHER=x FINCBTXM=50000.5 LAST=0"
    ).split()
)


def csv_text(*changes, diary=False):
    """CSV text with one row a dictionary of changes to UNIT."""
    rows = pd.DataFrame([UNIT | change for change in changes], dtype=object)
    return rows.rename(columns={"FINCBTXM": "FINCBEFM"} if diary else {}).to_csv(
        index=False
    )


def unit(number, last=1, **changes):
    return {"NEWID": f"{number:07d}{last}", **changes}


def write_zip(path, files):
    """A zip of texts by their names."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def interview_zip(
    path,
    *,
    year=2017,
    quarters=5,
    units=600,
    again=0.25,
    zeros=0.0,
    positive=False,
    diary=False,
    random_seed=1,
):
    """Write a zip of quarterly files of real households, as the Bureau names and lays them out.

    Five quarters of 2017 are ``fmli171x.csv``, ``fmli172.csv``, …, ``fmli174.csv``,
    ``fmli181.csv``, in a folder ``intrvw17``.

    Parameters
    ----------
    units : int
        Rows a quarter; at most 5,900 households in all. From 600 on, some level of education has
        a hundred households in the first quarter, as chapters ask for.
    again : float
        Share of a quarter's rows that are the later interviews of households that entered in the
        quarter before (the survey's panel). The Diary has none.
    diary : bool
        Write ``diary17/fmld171.csv`` and so on, with the Diary's column of incomes.
    zeros : float
        Share of the households whose income becomes 0.
    positive : bool
        Whether households with an income of zero or less are left out (before ``zeros``).
    random_seed : int
        Of the households that are drawn.

    Returns
    -------
    path
    """
    seen = 0 if diary else round(again * units)
    ends = units + (units - seen) * np.arange(quarters)
    rows = _households(ends[-1], zeros, positive, random_seed)
    if diary:
        rows = rows.rename(columns={"FINCBTXM": "FINCBEFM"})
    kind, folder = ("d", "diary") if diary else ("i", "intrvw")
    files, before = (
        {f"{folder}{year % 100:02d}/readme.txt": "Consumer Expenditure Surveys"},
        None,
    )
    for place, (start, end) in enumerate(pairwise([0, *ends])):
        entering = rows[start:end]
        table = entering.assign(NEWID=entering["NEWID"] + "1")
        if place:
            later = before[:seen]
            table = pd.concat([table, later.assign(NEWID=later["NEWID"] + "2")])
        revised = "" if place or diary else "x"
        name = f"fml{kind}{(year + place // 4) % 100:02d}{place % 4 + 1}{revised}.csv"
        files[f"{folder}{year % 100:02d}/{name}"] = table.to_csv(index=False)
        before = entering
    return write_zip(path, files)


def _households(units, zeros, positive, random_seed):
    """Some households of the Diary on board in the columns of an Interview file, as text."""
    with zipfile.ZipFile(ON_BOARD) as archive:
        weeks = [
            pd.read_csv(
                io.BytesIO(archive.read(name)), dtype=str, keep_default_na=False
            )
            for name in archive.namelist()
        ]
    rows = pd.concat(weeks).rename(columns={"FINCBEFM": "FINCBTXM"})
    rows = rows[~rows["NEWID"].str[:-1].duplicated()]
    if positive:
        rows = rows[rows["FINCBTXM"].astype(float) > 0]
    rows = rows.sample(units, random_state=random_seed).reset_index(drop=True)
    rows["NEWID"] = [f"{3_000_000 + k}" for k in range(units)]
    rows.loc[: round(zeros * units) - 1, "FINCBTXM"] = "0.0"
    # in no order: a part of the rows has its share of zeros
    return rows.sample(frac=1, random_state=random_seed)
