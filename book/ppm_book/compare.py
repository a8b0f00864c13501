"""A reader's run beside the book's: what was set, what came out, and which findings changed."""

import json

import pandas as pd

from ppm_book import ledger

HEADING = "## Your run beside the book's"
# smaller differences are rounding; and so many of the others does a reader look at
_ROUNDING, _MOST = 1e-9, 15


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
        apart = (both["ours"] - both["theirs"]).abs() / both.abs().max(axis=1).replace(0, 1)
        apart = apart[apart > _ROUNDING].sort_values(ascending=False, kind="stable")
        moved = both.loc[apart.index]
        told = f"**{table}**: {len(moved)} of the {len(both)} numbers in both tables differ."
        told = told if len(both) else f"**{table}**: no row is in both tables."
        if len(moved) > _MOST:
            told += f" These {_MOST} changed by the largest share:"
        rows = [
            (*place, f"{mine:,.4g}", f"{other:,.4g}",
             f"{100 * (mine / other - 1):+.1f} %" if other else "–")
            for place, mine, other in moved[:_MOST].itertuples()
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
            read = {"ours": pd.read_csv(file), "theirs": pd.read_csv(theirs / file.name)}
            levels = max(map(_levels, read.values()))
            both = {whose: _by_row(table, levels) for whose, table in read.items()}
            yield file.stem, pd.concat(both, axis=1).dropna()


def _levels(table):
    """How many columns, of those in front, tell its rows apart: its index was saved before all."""
    fewer = range(1, table.shape[1])
    return next((n for n in fewer if not table.duplicated(table.columns[:n]).any()), 1)


def _by_row(table, levels):
    """Numbers by row and column; the index and what is no number say which row it is."""
    words = table.select_dtypes(exclude=["number", "bool"]).columns
    words = table.columns[:levels].union(words, sort=False)
    # pandas keeps an empty cell as a number, which is no text
    rows = table[words].astype(str).fillna("–").agg(", ".join, axis=1)
    return table.drop(columns=words).astype(float).set_index(rows).stack()


def _markdown(heads, rows):
    """A table; a bar in a cell would end it."""
    lines = [[str(cell).replace("|", r"\|") for cell in row] for row in rows]
    lines = [heads, ["---"] * len(heads), *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
