"""Pages of the book that are filled in when it is built: ledger, parameters."""

from collections import Counter
from pathlib import Path

import numpy as np
from ppm_book.open_settings import PUBLISHED_BOUNDS

from ppm._validation import needed_for
from ppm.publishing.ledger import VERDICTS
from ppm.publishing.notebooks import parameter_rows
from ppm.publishing.rules import SURE, shown

_DATA = {
    "drawn": "data drawn by the study itself",
    "simulated": "the **simulated stand-in**, not survey data",
    "diary": "the Diary survey, where the paper has the Interview survey",
    "interview": "the Interview survey of the paper's quarter",
    "other": "survey data that are not the paper's quarter, or a part of it",
}


def render(template, **values):
    """Fill in a page's template.

    Parameters
    ----------
    template : path-like
        A page of ``book/`` in MyST Markdown with Jinja's placeholders.
    **values
        What stands in their places.

    Returns
    -------
    str
        The page.
    """
    with needed_for("a page of the book"):
        import jinja2

    environment = jinja2.Environment(
        trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    return environment.from_string(Path(template).read_text("utf-8")).render(values)


def ledger_page(template, rows, chapters, *, settings_chapter="", study=None):
    """The book's page of the ledger, in MyST Markdown.

    Parameters
    ----------
    template : path-like
        Its template.
    rows : sequence of ppm.publishing.ledger.Row
        What :func:`ppm.publishing.ledger.judge` returned.
    chapters : dict of str to dict
        Chapter that was run -> ``profile``, ``day``, ``data`` and ``part``.
    settings_chapter : str, default ""
        Chapter on the settings that the paper leaves open, if the book has it.
    study : dict, optional
        The ledger's own study, if there is one: ``chapter`` that it repeats, ``studies``,
        ``at_1000`` (how many of them have that size), ``replicates``, ``seed``, ``seconds``,
        ``day``, and ``beside``: how many databases the chapter itself has.

    Returns
    -------
    str
        The page.
    """
    sources = []
    for name in dict.fromkeys(row.claim.chapter for row in rows):
        source = {"profile": "", "part": False, **chapters.get(name, {}), "chapter": name}
        sources.append({**source, "data": _DATA.get(source.get("data"), "")})
    sections = sorted({row.claim.section for row in rows})
    return render(
        template,
        sources=sources,
        study={"beside": None, **study} if study else None,
        settings_chapter=settings_chapter,
        counts=_counts(rows, sections),
        waiting=_waiting(rows),
        sections=[
            {"name": name, "lines": [_line(row) for row in rows if row.claim.section == name]}
            for name in sections
        ],
    )


def _waiting(rows):
    """The open rows, one line each."""
    text, begun = [], ""
    for row in rows:
        says = row.claim.says
        if not says.startswith("…"):
            begun = says
        if row.open:
            said = says if says is begun else f"{begun} {says}"
            text.append(f"Section {row.claim.section}: {said} *{_sentence([row.reason])}*")
    return text


def _counts(rows, sections):
    """Table of the verdicts: one line each, and one column a section behind that of all."""
    parts = [rows, *([row for row in rows if row.claim.section == one] for one in sections)]
    counted = [Counter(row.verdict for row in part) for part in parts]
    lines = [[verdict, *(one[verdict] for one in counted)] for verdict in VERDICTS]
    lines.insert(2, ["of these open", *(sum(row.open for row in part) for part in parts)])
    lines.append(["**rows**", *map(len, parts)])
    return table(["Verdict", "all", *sections], [map(str, line) for line in lines])


def _line(row):
    claim = row.claim
    where = claim.where[0].upper() + claim.where[1:]
    where = f"{{doc}}`{where} <../notebooks/{claim.chapter}>`"
    paper = "–" if claim.published is None else shown(claim.published).replace(", ", "<br>")
    why = [row.reason]
    why += [f"*The chapter alone:* {row.alone}"] if row.alone else []
    why += [f"*Read as:* {claim.reading}"] if claim.reading else []
    why += [f"*Unstated:* {claim.remark}"] if claim.remark else []
    return table_line(
        [
            f"{claim.says}<br>{where}",
            f"**{row.spoken}**" if row.verdict == "not reproduced" else row.spoken,
            paper,
            "<br>".join(_beside(row)) or "–",
            _sentence(why),
        ]
    )


def _beside(row):
    """The computed values, with the chapter's own in brackets behind those of a larger study."""
    ours, beside = (
        [text.replace(" ", "\N{NO-BREAK SPACE}") for text in texts]
        for texts in (row.ours, row.beside)
    )
    if len(beside) != len(ours):
        return ours
    return [
        one if one == other else f"{one} \\[{other}\\]"
        for one, other in zip(ours, beside, strict=True)
    ]


def _sentence(parts):
    return ". ".join(part[0].upper() + part[1:] for part in parts if part) + "."


def table_line(cells):
    """One line of a table in Markdown."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def table(heads, lines):
    """A table in Markdown."""
    heads = list(heads)
    return "\n".join(map(table_line, [heads, ["---"] * len(heads), *lines]))


def parameters_page(template, notebooks, profiles):
    """The book's page of parameters, in MyST Markdown.

    Parameters
    ----------
    template : path-like
        Its template.
    notebooks : dict of str to ppm.publishing.notebooks.Notebook
        Every notebook.
    profiles : dict of str to dict
        Name of a profile to what it sets for each of them.

    Returns
    -------
    str
        The page.
    """
    described = []
    for notebook in notebooks.values():
        lines = []
        for row in parameter_rows(notebook, profiles):
            code = [row["name"], row["default"], *(row[name] for name in profiles), row["type"]]
            name, *cells = [f"`{entry}`" if entry else "" for entry in code]
            lines.append([name, row["meaning"], row["accepted"], *cells])
        # the words come first: on a phone the other columns are scrolled to
        heads = ["Parameter", "Meaning", "Accepted", "Default", *profiles, "Type"]
        described.append(
            {"title": notebook.title, "name": notebook.name, "table": table(heads, lines)}
        )
    return render(template, notebooks=described)


def finding_part(template, saved=None, record=None):
    """The part of the introduction on the paper's main finding, in MyST Markdown.

    Parameters
    ----------
    template : path-like
        Its template.
    saved : dict, optional
        ``data`` and ``values`` that the chapter on the settings saved, if it was run.
    record : dict, optional
        What was run, as in ``run.json``.

    Returns
    -------
    str
        What the introduction includes; nothing but white space where the chapter was not run.
    """
    return render(template, found=_finding(saved, record) if saved and record else None)


def _finding(saved, record):
    """The comparison at equal bounds in a table, and in words; None without its values."""
    values = saved["values"]
    ending = ": local bound of Unweighted"
    labels = [name.removesuffix(ending) for name in values if name.endswith(ending)]
    if not labels:
        return None
    flat = values["compared: settings"]["value"]
    settings = list(zip(flat[::2], flat[1::2], strict=True))
    lines, won = [], {name: {"DPweighted": [], "EMweighted": [], "": []} for name in _VERDICTS}
    for label in labels:
        bound, counts = values[label + ending]["value"], []
        above = f"{label}: the {_VERDICTS[0]} of {{}} above the data"
        off = [_by_setting(values[above.format(name)], settings)[0] for name in _COMPARED]
        for statistic in _VERDICTS:
            (dp, dp_error), (em, em_error) = (
                _by_setting(values[f"{label}: distances of the {statistic}, {name}"], settings)
                for name in _COMPARED[1:]
            )
            margin, sure = em - dp, SURE * np.hypot(dp_error, em_error)
            closer = {"DPweighted": margin > sure, "EMweighted": -margin > sure}
            who = next((name for name, where in closer.items() if where.all()), "")
            won[statistic][who].append(label)
            in_runs = (where.sum(axis=1) for where in closer.values())
            counts.append([f"{dp} : {em}" for dp, em in zip(*in_runs, strict=True)])
        for place, pair in enumerate(settings):
            setting = f"({pair[0]:g}, {pair[1]:g})".replace("-", "−")
            # neither is broken in a narrow column
            names = [one.replace(" ", "\N{NO-BREAK SPACE}") for one in (label, setting)]
            lines.append(
                [
                    names[0], f"{bound:.1f}", names[1],
                    *(f"{found[place].mean():+.0f} %".replace("-", "−") for found in off),
                    *(by_setting[place] for by_setting in counts),
                ]
            )
    heads = ["K", "Δ", "(c, g)", *_COMPARED, *(f"closer, {name}" for name in _VERDICTS)]
    return {
        "table": table(heads, lines),
        "won": won,
        "data": _DATA.get(saved["data"], "other data"),
        "part": saved["part"],
        "published": PUBLISHED_BOUNDS[None],
        "repeats": int(values["compared: repeats"]["value"]),
        "seed": record["parameters"]["seed"],
        "profile": record["profile"],
    }


_COMPARED = ("Unweighted", "DPweighted", "EMweighted")
# what the paper compares, the one that it shows first
_VERDICTS = ("90th percentile", "mean")


def _by_setting(entry, settings):
    """Numbers and errors of a value with a row for each setting; unknown ones are NaN."""
    return [
        np.array(entry[part], dtype=np.float64).reshape(len(settings), -1)
        for part in ("value", "error")
    ]
