"""Result tables: how a notebook shows them and hands them to whoever ran it."""

import os
import re
from pathlib import Path

import pandas as pd

# the folder a run collects its tables in, set by ``ppm run`` and by the book's builder
RESULTS_VARIABLE = "PPM_RESULTS"
SIMULATED = "Simulated stand-in, not survey data."


def save_table(table, name):
    """Write a result table as CSV into the folder of the run, if there is one.

    Without the environment variable ``PPM_RESULTS``, which names that folder, nothing is written:
    somebody is reading along in the notebook.

    Parameters
    ----------
    table : pandas.DataFrame
        The table, index included in the file.
    name : str
        File name without its ending: lower-case letters, digits and underscores.

    Raises
    ------
    ValueError
        If ``name`` holds other characters.
    """
    if not re.fullmatch(r"[a-z0-9_]+", name):
        raise ValueError(f"name must be lower-case letters, digits and underscores; got {name!r}")
    folder = os.environ.get(RESULTS_VARIABLE)
    if not folder:
        return
    path = Path(folder) / f"{name}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(path)


def show_table(table, caption, *, digits=2, simulated=False):
    """Style a table for the page: caption, rounded numbers, and a mark if the data are simulated.

    Parameters
    ----------
    table : pandas.DataFrame
        The table to show.
    caption : str
        What to see in it.
    digits : int, default 2
        Digits after the point of every float.
    simulated : bool, default False
        Whether the caption must say that the data are simulated.

    Returns
    -------
    pandas.io.formats.style.Styler
        What a notebook cell displays.
    """
    if any(name is not None for name in table.index.names):
        # named indices become columns: one row of headings, not two
        table = table.reset_index()
    plain = isinstance(table.index, pd.RangeIndex)
    styler = table.style.hide(axis="index") if plain else table.style
    styler = styler.format(precision=digits, thousands=",", na_rep="–")
    right = [{"selector": "", "props": "text-align: right"}]
    numeric = {column: right for column in table.select_dtypes("number")}
    if numeric:
        styler = styler.set_table_styles(numeric)
    # the book's theme knows how to lay out tables of this class
    styler = styler.set_table_attributes('class="dataframe"')
    return styler.set_caption(f"{caption} {SIMULATED}" if simulated else caption)


def entry_label(mechanism, configuration=None):
    """Label of an entry: ``DPweighted (0.7, 0)``, or the mechanism alone."""
    if configuration is None:
        return mechanism
    return f"{mechanism} ({configuration[0]:g}, {configuration[1]:g})"
