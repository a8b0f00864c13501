"""A unit of a Consumer Expenditure file, and files of such units."""

import pandas as pd

# nobody asks for the columns OTHER and LAST
UNIT = dict(cell.split("=") for cell in (
    "NEWID=03044961 AGE_REF=45 BLS_URBN=1 EARNCOMP=1 EDUC_REF=12 FAM_SIZE=2 MARITAL1=1 POPSIZE=1 "
    "PSU=S12A REGION=1 SEX_REF=1 SMSASTAT=1 OTHER=x FINCBTXM=50000.5 LAST=0"
).split())


def csv_text(*changes, diary=False):
    """CSV text with one row a dictionary of changes to UNIT."""
    rows = pd.DataFrame([UNIT | change for change in changes], dtype=object)
    return rows.rename(columns={"FINCBTXM": "FINCBEFM"} if diary else {}).to_csv(index=False)


def unit(number, last=1, **changes):
    return {"NEWID": f"{number:07d}{last}", **changes}
