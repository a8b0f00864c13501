"""The ledger: what the paper reports, what came out here, and a verdict from the two."""

import json
import math
from datetime import datetime
from pathlib import Path

import numpy as np
import yaml
from jinja2 import StrictUndefined, Template

from ppm_book.chapters.page import DATA_KINDS, SURE, VALUES_FILE
from ppm_book.tools.parameters import Refused

# verdicts that decide nothing
UNJUDGED = ("not comparable", "not computed")
# the verdicts on parts of a conclusion, which is as good as the worst of them
FROM_WORST = ("not reproduced", "open", "not computed", "not comparable", "reproduced")
# the notebook, called after its chapter, that repeats its study many times; its verdicts count
STUDY = "{}_study"


def load(root):
    """Rows of ``book/published.yaml``."""
    return yaml.safe_load(Path(root, "book", "published.yaml").read_text("utf-8"))[
        "rows"
    ]


def margins(row, value, other=None):
    """By how much each comparison of a row holds, above 0 where it does, and its standard error.

    ``value`` and ``other`` are arrays of two rows: numbers, and their standard errors.
    """
    (value, error), rule = value, row["rule"]
    if rule == "near":
        published = np.atleast_1d(row["published"])
        tolerance = (
            row["relative"] * np.abs(published)
            if "relative" in row
            else row["tolerance"]
        )
        return tolerance - np.abs(value - published), error
    if rule == "between":
        return np.minimum(value - row["low"], row["high"] - value), error
    if rule.endswith("creasing"):
        margin, error = np.diff(value), np.hypot(error[1:], error[:-1])
    else:
        limit = np.array([[row["than"]], [0.0]]) if other is None else other
        limit, spread = row.get("factor", 1.0) * limit
        margin, error = value - limit, np.hypot(error, spread)
    # numbers that are equal are neither greater nor less
    return np.nextafter(
        -margin if rule in ("less", "decreasing") else margin, -np.inf
    ), error


def judge(row, chapter):
    """Judge a row by what its chapter saved.

    Parameters
    ----------
    row : dict
        One of :func:`load`; any rule but ``rows``.
    chapter : dict
        What ``page.save_values`` wrote; empty if the chapter was not run.

    Returns
    -------
    tuple
        Verdict, why, and our numbers in words, a list for each value. *Reproduced*
        if every comparison holds by two standard errors, *not reproduced* if one fails by as many,
        *open* otherwise.

    Raises
    ------
    Refused
        If the row names a value that its chapter does not save.
    """
    names, needs, unlike = (
        row.get(key, {}) for key in ("values", "needs", "not_comparable")
    )
    entries = chapter.get("values", {})
    if row["rule"] == "setting":
        needs = {names[0]: row["published"]}
    found = {name: _numbers(entries.get(name, {})) for name in (*names, *needs)}
    ours = [[told(*pair) for pair in found[name].T] for name in names]
    unmet = [name for name, wanted in needs.items() if not _met(wanted, found[name][0])]
    unknown = [
        name for name in (*needs, *(() if unmet else names)) if name not in entries
    ]
    if chapter and unknown:
        # the name is written in one way in the file, and in another one in the chapter
        raise Refused(
            f"book/published.yaml, row {row['id']}: {row['chapter']} saves no value "
            f"{unknown[0]!r}"
        )
    if why := unlike.get("all") or unlike.get(chapter.get("data")):
        return "not comparable", why, ours
    if not chapter:
        return "not computed", f"chapter {row['chapter']} was not run", ours
    for name in unmet:
        why = f"run with {name} = {listed(found[name][0])}; the row needs {listed(needs[name])}"
        return "not comparable", why, ours
    if row["rule"] == "setting":
        return "same setting", "the run has the paper's setting", ours
    doubts = [entries.get(name, {}).get("doubt") for name in names]
    if unknown := [name for name in names if not np.isfinite(found[name]).all()]:
        return (
            "not computed",
            joined(f"{unknown[0]}, or its error, is unknown", *doubts),
            ours,
        )
    margin, error = np.broadcast_arrays(*margins(row, *map(found.get, names)))
    if not margin.size:
        return "not computed", "there is nothing to compare", ours
    low, high = margin - SURE * error, margin + SURE * error
    verdict, why, at = "open", "undecided: the margin is", low.argmin()
    if (low >= 0).all():
        verdict, why = "reproduced", "holds by"
    elif (high < 0).any():
        verdict, why, at, margin = "not reproduced", "fails by", high.argmin(), -margin
    why = f"{why} {told(margin[at], error[at])}"
    why += f" (comparison {at + 1} of {margin.size})" if margin.size > 1 else ""
    if "by_construction" in row and verdict != "not reproduced":
        verdict, why = "by construction", row["by_construction"]
    return verdict, joined(why, *doubts), ours


def _met(wanted, values):
    """Whether a run has what a row needs: all of a list, or a number among others."""
    return (
        np.array_equal(values, wanted) if isinstance(wanted, list) else wanted in values
    )


def _numbers(entry):
    """Numbers and standard errors in two rows; NaN for what is unknown."""
    return np.array([entry.get("value"), entry.get("error")], dtype=np.float64).reshape(
        2, -1
    )


def judged(rows, saved):
    """Judge all rows by what chapters and studies saved: id -> what :func:`judge` returns.

    Where a study of many repeats has a verdict, it counts; settings are the chapter's.
    """
    found = {}
    # conclusions come after their parts
    for row in sorted(rows, key=lambda row: row["rule"] == "rows"):
        if row["rule"] == "rows":
            parts = [found[name][0] for name in row["rows"]]
            why = f"{parts.count('reproduced')} of its {len(parts)} parts reproduced"
            found[row["id"]] = min(parts, key=FROM_WORST.index), joined(why), []
            continue
        own, large = judge(row, saved.get(row["chapter"], {})), UNJUDGED
        if row["rule"] != "setting":
            large = judge(row, saved.get(STUDY.format(row["chapter"]), {}))
        found[row["id"]] = own if large[0] in UNJUDGED else large
    return found


def changed(root, name, ours, theirs):
    """Rows of a chapter that two runs judge differently.

    Parameters
    ----------
    root : path-like
        The repository.
    name : str
        The chapter.
    ours, theirs : path-like
        Folders of the two runs, with their ``values.json``.

    Returns
    -------
    list of tuple of str
        What the row says, our verdict, and theirs.
    """
    # all rows are judged: some have parts in other chapters
    rows = load(root)
    mine, others = (
        judged(rows, {name: _read(folder, VALUES_FILE)}) for folder in (ours, theirs)
    )
    rows = [
        (row["says"], mine[row["id"]][0], others[row["id"]][0])
        for row in rows
        if row["chapter"] == name
    ]
    return [
        row for row in rows if row[1] != row[2] and not set(row[1:]) <= set(UNJUDGED)
    ]


def page(root, results):
    """Fill in ``book/ledger.md`` from the folder with the chapters' results."""
    rows = load(root)
    names = list(dict.fromkeys(row["chapter"] for row in rows))
    studies = {name: STUDY.format(name) for name in names}
    saved = {
        name: _read(results, name, VALUES_FILE) for name in (*names, *studies.values())
    }
    runs = {name: _read(results, name, "run.json") for name in saved}
    text = Path(root, "book", "ledger.md").read_text("utf-8")
    return Template(
        text, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    ).render(
        rows=rows,
        names=names,
        saved=saved,
        runs=runs,
        studies=studies,
        kinds=DATA_KINDS,
        found=judged(rows, saved),
        alone=judged(rows, {name: saved[name] for name in names}),
        datetime=datetime,
        joined=joined,
        listed=listed,
    )


def _read(*path):
    return (
        json.loads(file.read_text("utf-8")) if (file := Path(*path)).is_file() else {}
    )


def joined(*parts):
    """Sentences from parts, of which some may be empty and some the same."""
    parts = [
        part[0].upper() + part[1:].rstrip(".") for part in dict.fromkeys(parts) if part
    ]
    return "".join(f"{part}. " for part in parts).strip()


def listed(numbers, between=", "):
    """Numbers in words."""
    return between.join(told(float(number)) for number in np.atleast_1d(numbers))


def told(value, error=0.0):
    """A number with its standard error, of which two digits count."""
    if error > 0:
        digits = max(0, 1 - math.floor(math.log10(error)))
        text = f"{value:,.{digits}f} ± {error:,.{digits}f}"
    else:
        text = f"{round(value, 4):,.12g}" + " ± unknown" * math.isnan(error)
    return "–" if math.isnan(value) else text.replace("-", "−").replace(" ", "\xa0")
