"""A reader's run beside the book's: what was set, what came out, which findings changed."""

import numpy as np
import pandas as pd
from ppm_book.page import VALUES_FILE

from ppm.publishing.fingerprints import read_json
from ppm.publishing.ledger import UNJUDGED, judge
from ppm.publishing.notebooks import DEFAULT_PROFILE
from ppm.publishing.staging import claims_of

# differences below are rounding; and as many of the others as a reader looks at
_ROUNDING, _MOST = 1e-9, 15
# numbers that say which row of a table it is
_PLACES = {"scale", "shift", "radius", "size", "components", "K", "ε", "ε, one release", "W", "n"}
HEADING = "## Your run beside the book's"


def beside_the_book(root, folder, record, notebooks):
    """Text for a page: how a run's settings, tables and findings differ from the book's.

    Parameters
    ----------
    root : pathlib.Path
        The repository, with what ``make book`` left in its ``_build``.
    folder : pathlib.Path
        Folder of the run, with its tables.
    record : dict
        What was run, as in ``run.json``.
    notebooks : dict
        What :func:`ppm.publishing.notebooks.find_notebooks` returned, for the ledger.

    Returns
    -------
    str
        Markdown, with a heading. Where this chapter of the book has not been built, it says so.
    """
    name = record["notebook"]
    built = _of_the_book(root, name)
    if built is None:
        return (
            f"{HEADING}\n\nThis chapter of the book has not been built here, so there is nothing "
            "to compare with: `make book` builds it."
        )
    profile, book, tables = built
    parts = [
        HEADING,
        f"The book's chapter was made with profile `{profile}`. It is compared as it lies in "
        "`_build`, whatever has changed since it was built.",
        _settings(record["parameters"], book["parameters"]),
    ]
    if book.get("ce_data_sha256") != record.get("ce_data_sha256"):
        parts.append(
            "**The data are not the same**: differences of numbers come from this, too."
        )
    parts += [_numbers(folder, tables), _findings(root, notebooks, name, folder, tables)]
    return "\n\n".join(part for part in parts if part)


def _of_the_book(root, name):
    """Profile, record and results of the chapter as the book has it, the paper's sizes first."""
    others = sorted(path.name for path in (root / "_build" / "executed").glob("*"))
    for profile in dict.fromkeys([DEFAULT_PROFILE, *others]):
        record = read_json(root / "_build" / "executed" / profile / f"{name}.json")
        tables = root / "_build" / "results" / profile / name
        if record and record.get("record") and tables.is_dir():
            return profile, record["record"], tables
    return None


def _settings(ours, theirs):
    rows = [
        (f"`{name}`", f"`{ours.get(name)!r}`", f"`{theirs.get(name)!r}`")
        for name in dict.fromkeys([*ours, *theirs])
        if ours.get(name) != theirs.get(name)
    ]
    if not rows:
        return "All parameters are the book's."
    return _markdown(("parameter", "your run", "the book"), rows)


def _numbers(folder, tables):
    """Each table that both saved: how many numbers differ, and the largest differences."""
    parts = []
    for path in sorted(folder.glob("*.csv")):
        if not (tables / path.name).is_file():
            continue
        ours, theirs = (_long(source / path.name) for source in (folder, tables))
        both = pd.concat({"ours": ours, "theirs": theirs}, axis=1)
        found = both.dropna()
        scale = found.abs().max(axis=1)
        apart = (found["ours"] - found["theirs"]).abs()
        moved = found[apart > _ROUNDING * scale]
        told = f"**{path.stem}**: {len(moved)} of the {len(found)} numbers in both tables differ."
        missing = len(both) - len(found)
        if missing:
            told += f" Another {missing} {'is' if missing == 1 else 'are'} in one of them only."
        if moved.empty:
            parts.append(told)
            continue
        order = (apart / scale)[moved.index].sort_values(ascending=False, kind="stable")
        rows = [
            (*_place(place), f"{ours:,.4g}", f"{theirs:,.4g}", _change(ours, theirs))
            for place in order.index[:_MOST]
            for ours, theirs in [moved.loc[place]]
        ]
        if len(moved) > _MOST:
            told += f" These {_MOST} changed by the largest share:"
        heads = ("row", "column", "your run", "the book", "change")
        parts.append(f"{told}\n\n{_markdown(heads, rows)}")
    return "\n\n".join(parts)


def _long(path):
    """Numbers of a table by row and column; what is no number says which row it is."""
    table = pd.read_csv(path)
    # the index of a table comes first, as words or numbers
    words = [
        column
        for place, column in enumerate(table.columns)
        if place == 0
        or column in _PLACES
        or not pd.api.types.is_numeric_dtype(table[column])
    ]
    rows = table[words].astype(str).agg(", ".join, axis=1)
    rows += np.where(
        rows.duplicated(keep=False),
        " (" + (rows.groupby(rows).cumcount() + 1).astype(str) + ")",
        "",
    )
    numbers = table.drop(columns=words).select_dtypes("number").astype(float)
    return numbers.set_index(rows).stack()


def _place(place):
    row, column = place
    return str(row), str(column)


def _change(ours, theirs):
    return f"{100 * (ours / theirs - 1):+.1f} %" if theirs else "–"


def _findings(root, notebooks, name, folder, tables):
    """The ledger's rows of this chapter whose verdict is another one."""
    saved = [read_json(source / VALUES_FILE) for source in (folder, tables)]
    claims = [claim for claim in claims_of(root, notebooks) or () if claim.chapter == name]
    if not claims or not all(saved):
        return ""
    ours, theirs = (judge(claims, {name: values}) for values in saved)
    changed = [
        (mine, other)
        for mine, other in zip(ours, theirs, strict=True)
        if mine.spoken != other.spoken
        and not (mine.verdict in UNJUDGED and other.verdict in UNJUDGED)
    ]
    rows = [
        (mine.claim.says, mine.spoken, other.spoken)
        for mine, other in changed
        if mine.verdict not in UNJUDGED
    ]
    told = f"**Findings**: the {{doc}}`../book/ledger` has {len(claims)} rows for this chapter. "
    if not changed:
        return f"{told}By this chapter's own values each has the same verdict in both runs."
    open_ones = len(changed) - len(rows)
    if open_ones:
        told += (
            f"Your run has no verdict on {open_ones} of them where the book's has one: its "
            "settings or data are not those that the comparison needs. "
        )
    if not rows:
        return f"{told}By this chapter's own values no other one has another verdict."
    return (
        f"{told}By this chapter's own values {len(rows)} of them "
        f"{'has' if len(rows) == 1 else 'have'} another verdict:\n\n"
        f"{_markdown(('row of the ledger', 'your run', 'the book'), rows)}"
    )


def _markdown(heads, rows):
    """A table; a bar in a cell would end it."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(
        f"| {' | '.join(str(cell).replace('|', '\\|').replace('\n', ' ') for cell in line)} |"
        for line in lines
    )
