"""A reader's run beside the book's: what was set, what came out, and which findings changed."""

import json

import pandas as pd

from ppm_book.tools import exercises, ledger

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
    name, ours, template = (
        record["notebook"],
        record["parameters"],
        exercises.template("compare"),
    )
    profiles = {
        file.parts[-3]: file for file in root.glob(f"_build/results/*/{name}/run.json")
    }
    if not profiles:
        return template.render()
    file = profiles.get("paper") or min(profiles.values())
    book = json.loads(file.read_text("utf-8"))
    both = [
        (key, ours.get(key), book["parameters"].get(key))
        for key in ours | book["parameters"]
    ]
    tables = [
        path
        for path in sorted(folder.glob("*.csv"))
        if (file.parent / path.name).is_file()
    ]
    return template.render(
        book=book,
        settings=[
            [f"`{key}`", f"`{mine!r}`", f"`{theirs!r}`"]
            for key, mine, theirs in both
            if mine != theirs
        ],
        other_data=book.get("ce_data_hash") != record.get("ce_data_hash"),
        tables=[
            (path.stem, *_differences(path, file.parent / path.name)) for path in tables
        ],
        findings=ledger.changed(root, name, folder, file.parent),
    )


def _differences(ours, theirs):
    """How many numbers two tables share, how many of them differ, and which differ the most."""
    tables = [pd.read_csv(ours), pd.read_csv(theirs)]
    levels = max(map(_levels, tables))
    both = pd.concat([_by_row(table, levels) for table in tables], axis=1).dropna()
    apart = both.diff(axis=1)[1].abs() / both.abs().max(axis=1).replace(0, 1)
    apart = apart[apart > _ROUNDING].sort_values(ascending=False, kind="stable")
    rows = [
        (
            *place,
            f"{mine:,.4g}",
            f"{book:,.4g}",
            f"{100 * (mine / book - 1):+.1f} %" if book else "–",
        )
        for place, mine, book in both.loc[apart.index[:_MOST]].itertuples()
    ]
    return len(both), len(apart), rows


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
