"""A reader's run beside the book's: what was set, what came out, and which findings changed."""

import json

import numpy as np
import pandas as pd

from ppm_book import ledger

HEADING = "## Your run beside the book's"
# smaller differences are rounding; and so many of the others does a reader look at
_ROUNDING, _MOST = 1e-9, 15
# numbers that say which row of a table it is
_PLACES = {"scale", "shift", "radius", "size", "components", "K", "ε", "ε, one release", "W", "n"}


def beside_the_book(root, folder, record):
    """Markdown that a run's page ends with.

    Parameters
    ----------
    root : pathlib.Path
        The repository, with what ``make book`` left in its ``_build``.
    folder : pathlib.Path
        Folder of the run, with its tables.
    record : dict
        What was run, as in ``run.json``.

    Returns
    -------
    str
        The settings, numbers and findings that differ.
    """
    name, ours = record["notebook"], record["parameters"]
    found = sorted(
        root.glob(f"_build/results/*/{name}/run.json"), key=lambda file: file.parts[-3] != "paper"
    )
    if not found:
        return (f"{HEADING}\n\nThis chapter of the book has not been built here, so there is "
                "nothing to compare with: `make book` builds it.")
    built, book = found[0].parent, json.loads(found[0].read_text("utf-8"))
    theirs = book["parameters"]
    rows = [
        (f"`{key}`", f"`{ours.get(key)!r}`", f"`{theirs.get(key)!r}`")
        for key in {**ours, **theirs} if ours.get(key) != theirs.get(key)
    ]
    parts = [
        HEADING,
        f"The book's chapter was made with profile `{book['profile']}`. It is compared as it lies "
        "in `_build`, whatever has changed since it was built.",
        _markdown(("parameter", "your run", "the book"), rows) if rows
        else "All parameters are the book's.",
    ]
    if book.get("ce_data_sha256") != record.get("ce_data_sha256"):
        parts.append("**The data are not the same**: differences of numbers come from this, too.")
    for table, both in _tables(folder, built):
        moved = both[_apart(both) > _ROUNDING]
        told = f"**{table}**: {len(moved)} of the {len(both)} numbers in both tables differ."
        told = told if len(both) else f"**{table}**: no row is in both tables."
        if len(moved) > _MOST:
            told += f" These {_MOST} changed by the largest share:"
        largest = moved.loc[_apart(moved).sort_values(ascending=False, kind="stable").index[:_MOST]]
        rows = [
            (*place, f"{mine:,.4g}", f"{other:,.4g}",
             f"{100 * (mine / other - 1):+.1f} %" if other else "–")
            for place, mine, other in largest.itertuples()
        ]
        heads = ("row", "column", "your run", "the book", "change")
        parts += [told, *([_markdown(heads, rows)] if rows else [])]
    if turned := ledger.changed(root, name, folder, built):
        parts += ["**Findings** of the {doc}`../book/ledger` whose verdict is another one:",
                  _markdown(("row of the ledger", "your run", "the book"), turned)]
    return "\n\n".join(parts)


def _tables(ours, theirs):
    """Name of each table that both folders have, and the numbers that both tables have."""
    for file in sorted(ours.glob("*.csv")):
        if (theirs / file.name).is_file():
            both = {"ours": _long(file), "theirs": _long(theirs / file.name)}
            yield file.stem, pd.concat(both, axis=1).dropna()


def _apart(both):
    """Difference of two columns as a share of the larger number."""
    scale = both.abs().max(axis=1).replace(0, 1)
    return (both["ours"] - both["theirs"]).abs() / scale


def _long(file):
    """Numbers of a table by row and column; what is no number says which row it is."""
    table = pd.read_csv(file)
    words = [
        column for place, column in enumerate(table)
        if place == 0 or column in _PLACES or not pd.api.types.is_numeric_dtype(table[column])
    ]
    # pandas keeps an empty cell as a number, which is no text
    rows = table[words].astype(str).fillna("–").agg(", ".join, axis=1)
    twice = " (" + (rows.groupby(rows).cumcount() + 1).astype(str) + ")"
    rows += np.where(rows.duplicated(keep=False), twice, "")
    return table.drop(columns=words).astype(float).set_index(rows).stack()


def _markdown(heads, rows):
    """A table; a bar in a cell would end it."""
    lines = [[str(cell).replace("|", r"\|") for cell in row] for row in rows]
    lines = [heads, ["---"] * len(heads), *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
