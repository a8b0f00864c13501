"""The ledger: what the paper reports, what came out here, and a verdict from the two."""

import json
import math
from datetime import datetime
from pathlib import Path

import numpy as np
import yaml

from ppm_book.chapters.page import DATA_KINDS, SURE, VALUES_FILE, surely_less
from ppm_book.tools import parameters
from ppm_book.tools.parameters import Refused
from ppm_book.tools.templates import filled

# verdicts that decide nothing
UNJUDGED = ("not comparable", "not computed")
# the verdicts on parts of a conclusion, which is as good as the worst of them
FROM_WORST = ("not reproduced", "open", "not computed", "not comparable", "reproduced")
# the notebook, called after its chapter, that repeats its study many times; its verdicts count
STUDY = "{}_study"


def load(root):
    """Rows of ``book/published.yaml``.

    Raises
    ------
    Refused
        If a row has a rule or a chapter that there is not, or builds on such a row.
    """
    file = "book/published.yaml"
    rows = yaml.safe_load(Path(root, file).read_text("utf-8"))["rows"]
    accepted = {
        "rule": [*RULES, "setting", "rows", "cited"],
        "chapter": parameters.chapters(root),
        "rows": [row["id"] for row in rows],
    }
    for row in rows:
        for key, names in accepted.items():
            given = [row.get(key)]
            if key == "rows":
                given = row.get(key) or given * (row["rule"] == "rows")
            for name in given:
                if name not in names:
                    kind = f"{key} in {file}, row {row['id']}:"
                    raise parameters.unknown(kind, name, names)
    return rows


def _near(row, number):
    value, error = number
    published = np.atleast_1d(row["published"])
    tolerance = (
        row["relative"] * np.abs(published) if "relative" in row else row["tolerance"]
    )
    return (np.abs(value - published), error), (tolerance, 0.0)


def _between(row, number):
    value, error = number
    outside = np.maximum(row["low"] - value, value - row["high"])
    return (outside, error), (0.0, 0.0)


def _less(row, number, other=None):
    limit = np.array([[row["than"]], [0.0]]) if other is None else other
    return number, row.get("factor", 1.0) * limit


def _greater(row, *numbers):
    return _less(row, *numbers)[::-1]


def _increasing(row, number):
    return number[:, :-1], number[:, 1:]


def _decreasing(row, number):
    return _increasing(row, number)[::-1]


# rule -> of a row and its values, numbers and standard errors: what must be less than what
RULES = {
    "near": _near,
    "between": _between,
    "less": _less,
    "greater": _greater,
    "increasing": _increasing,
    "decreasing": _decreasing,
}
# the rules that equal numbers keep
INCLUSIVE = ("near", "between")


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
        *open* otherwise, and wherever the errors may not be trusted.

    Raises
    ------
    Refused
        If the row names a value that its chapter does not save, or lacks what its rule needs.
    """
    row = {"values": [], "needs": {}} | row
    if row["rule"] == "setting":
        row["needs"] = {row["values"][0]: row["published"]}
    entries = chapter.get("values", {})
    found = {name: _numbers(entries.get(name, {})) for name in row["needs"]}
    found |= {
        name: _numbers(entries.get(name, {}), row.get("at")) for name in row["values"]
    }
    ours = [[told(*one) for one in found[name].T] for name in row["values"]]
    needs = row["needs"].items()
    unmet = [name for name, wanted in needs if not _met(wanted, found[name][0])]
    names = [*row["needs"], *([] if unmet else row["values"])]
    if chapter and (unknown := [name for name in names if name not in entries]):
        # the name is written in one way in the file, and in another one in the chapter
        raise Refused(
            f"book/published.yaml, row {row['id']}: {row['chapter']} saves no value "
            f"{unknown[0]!r}"
        )
    stops = _what_stops(row, chapter, found, unmet)
    verdict, why = next(stops, None) or _compared(row, entries, found)
    return verdict, why, ours


def _what_stops(row, chapter, found, unmet):
    """Verdict and reason of all that keeps a row from being compared; the first one counts."""
    unlike = row.get("not_comparable", {})
    for kind in ("all", chapter.get("data")):
        if kind in unlike:
            yield "not comparable", unlike[kind]
    if not chapter:
        yield "not computed", f"chapter {row['chapter']} was not run"
    for name in unmet:
        ours, needed = listed(found[name][0]), listed(row["needs"][name])
        yield "not comparable", f"run with {name} = {ours}; the row needs {needed}"
    if row["rule"] == "setting":
        yield "same setting", "the run has the paper's setting"
    for name in row["values"]:
        if not np.isfinite(found[name]).all():
            unknown = f"{name}, or its error, is unknown"
            yield "not computed", joined(unknown, *_doubts(row, chapter["values"]))


def _compared(row, entries, found):
    """Verdict and reason by the numbers."""
    try:
        low, high = RULES[row["rule"]](row, *(found[name] for name in row["values"]))
        margin, error = np.broadcast_arrays(high[0] - low[0], np.hypot(low[1], high[1]))
    except (KeyError, TypeError) as error:
        raise Refused(
            f"book/published.yaml, row {row['id']}: rule {row['rule']!r} needs other keys or values, "
            f"which the head of the file explains ({type(error).__name__}: {error})"
        ) from None
    if not margin.size:
        return "not computed", "there is nothing to compare"
    holds, fails = surely_less(low, high), surely_less(high, low)
    equal = (margin == 0) & (error == 0)
    if row["rule"] in INCLUSIVE:
        holds |= equal
    else:
        fails |= equal
    doubts = _doubts(row, entries)
    if any(doubts) and "by_construction" not in row:
        return "open", joined("undecided, whatever the numbers say", *doubts)

    def by(words, amount, at):
        which = f" (comparison {at + 1} of {margin.size})" if margin.size > 1 else ""
        return joined(f"{words} {told(amount[at], error[at])}{which}", *doubts)

    if fails.any():
        at = (margin + SURE * error).argmin()
        return "not reproduced", by("fails by", np.abs(margin), at)
    if "by_construction" in row:
        return "by construction", joined(row["by_construction"], *doubts)
    at = (margin - SURE * error).argmin()
    if holds.all():
        return "reproduced", by("holds by", margin, at)
    return "open", by("undecided: the margin is", margin, at)


def _doubts(row, entries):
    """Why the errors of a row's values may not be trusted."""
    return [entries[name].get("doubt") for name in row["values"]]


def _met(wanted, values):
    """Whether a run has what a row needs: all of a list, or a number among others."""
    return (
        np.array_equal(values, wanted) if isinstance(wanted, list) else wanted in values
    )


def _numbers(entry, at=None):
    """Numbers and standard errors in two rows, of these sizes; NaN for what is unknown."""
    pairs = [entry.get("value"), entry.get("error")]
    numbers = np.array(pairs, dtype=np.float64).reshape(2, -1)
    if at is None or not entry:
        return numbers
    return numbers[:, np.isin(np.array(entry["at"], dtype=np.float64), at)]


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
    return filled(
        root,
        "ledger",
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
    if math.isnan(value):
        return "–"
    if error > 0:
        digits = max(0, 1 - math.floor(math.log10(error)))
        text = f"{value:,.{digits}f} ± {error:,.{digits}f}"
    else:
        text = f"{round(value, 4):,.12g}"
    if math.isnan(error):
        text += " ± unknown"
    return text.replace("-", "−").replace(" ", "\xa0")
