"""Exercises at the end of chapters, from one notebook for each chapter.

A task is a cell tagged ``exercise`` whose id is the exercise's label. Cells whose ids begin with it
hold the place for an answer, its check and the worked solution; ``sol-…`` explains the solution.
Where a task names data, the page shows them, or the shape of what is too long. A chapter's most
important tasks have ``do`` in their metadata.
"""

import re
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from unittest.mock import patch
from urllib.parse import quote

import nbformat
import numpy as np
import yaml
from jinja2 import Template

from ppm_book.tools import parameters

FOLDER = "notebooks/exercises"
# data of more values are too long for a sentence
SHORT = 24
FORMATS = {"float": "{:.6g}".format, "int": str}
# of tasks for which the notebook of exercises is not enough
ELSEWHERE = "*Needs an installation"


def chapters(root):
    """The chapters that have exercises, in the order of the table of contents."""
    return [
        name
        for name in parameters.chapters(root)
        if Path(root, FOLDER, f"{name}.ipynb").is_file()
    ]


def numbers(root):
    """The number that each exercise has on the book's pages: of its chapter, and within it."""
    found, place, known = {}, 0, chapters(root)
    for part in parameters.contents(root)["parts"]:
        numbered = part.get("numbered", False)
        for entry in part["chapters"]:
            place += 1 if numbered else 0
            # with those in its sections
            names = parameters.chapters_among(parameters.pages_of([entry]))
            labels = [
                label
                for name in names
                if name in known
                for label in _cells(root, name)[1]
            ]
            for count, label in enumerate(labels, start=1):
                found[label] = f"{place}.{count}" if numbered else str(count)
    return found


def section(root, name, solutions=True):
    """Markdown of a chapter's exercises, its last section; empty text if it has none."""
    if not Path(root, FOLDER, f"{name}.ipynb").is_file():
        return ""
    text, _ = _cells(root, name)
    tasks = [*_tasks(root, name)]
    return template("exercises").render(
        name=name,
        about=text["title"].partition(".")[2].strip(),
        link=launch_link(root, f"exercises/{name}_exercises.ipynb", "setup"),
        tasks=tasks,
        first=[task["minutes"] for task in tasks if task["do"]],
        elsewhere=any(ELSEWHERE in task["words"] for task in tasks),
        solutions=solutions,
    )


def template(name):
    """A template of this package."""
    file = Path(__file__).with_name(f"{name}.jinja")
    return Template(file.read_text("utf-8"), trim_blocks=True)


def _cells(root, name):
    """Cells of a notebook of exercises by their ids: sources, and metadata of its tasks."""
    cells = nbformat.read(Path(root, FOLDER, f"{name}.ipynb"), 4).cells
    tasks = [c for c in cells if "exercise" in c.metadata.get("tags", ())]
    return {c.id: c.source for c in cells}, {c.id: c.metadata for c in tasks}


def _tasks(root, name):
    """What the templates say of each exercise of a chapter."""
    text, tasks = _cells(root, name)
    for label, about in tasks.items():
        heading, _, words = text[label].removeprefix("## ").partition("\n")
        code = {
            part: text.get(f"{label}-{part}") for part in ("answer", "check", "worked")
        }
        yield {
            "label": label,
            "heading": heading,
            "minutes": about["minutes"],
            "do": about.get("do", False),
            **code,
            "words": _with_data(words.strip(), _given(root, name)),
            "explained": text[label.replace("ex-", "sol-", 1)],
        }


@cache
def _given(root, name):
    """The data of a chapter's exercises."""
    with patch("sys.path", [str(Path(root, FOLDER)), *sys.path]):
        return import_module(f"checks.{name}").given()


def _with_data(words, given):
    """A task with the data that it names: short ones themselves, and the shape of the others."""
    for name in dict.fromkeys(re.findall(r"`given\.(\w+)`", words)):
        value = np.asarray(getattr(given, name))
        shown = f"`given.{name}` ({' × '.join(map(str, value.shape))} values)"
        if value.size <= SHORT:
            text = np.array2string(value, separator=", ", formatter=FORMATS)
            shown = f"`given.{name} = {' '.join(text.split())}`"
        # where it is named first
        words = words.replace(f"`given.{name}`", shown, 1)
    return words


def settings(root):
    """The book's settings."""
    return yaml.safe_load(Path(root, "_config.yml").read_text("utf-8"))


def launch_link(root, notebook, cell):
    """A sentence with a link that opens a notebook of the student edition at one of its cells.

    Binder makes that edition by ``postBuild``. Colab would open what the repository itself holds.
    """
    address = (settings(root).get("repository") or {}).get("url") or ""
    found = re.fullmatch(r"https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?/?", address)
    if not found:
        return ""
    place = quote(
        f"lab/tree/_build/classroom/student/{notebook}#cell-id={cell}", safe=""
    )
    return f"Open it in [Binder](https://mybinder.org/v2/gh/{found[1]}/HEAD?urlpath={place})."
