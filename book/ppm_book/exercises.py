"""Exercises at the end of chapters and the page of solutions, from one notebook for each chapter.

A task is a cell tagged ``exercise`` whose id is the exercise's label. Cells whose ids begin with it
hold the place for an answer, its check and the worked solution; ``sol-…`` explains the solution.
"""

import re
from pathlib import Path
from urllib.parse import quote

import nbformat
import yaml
from jinja2 import Template

from ppm_book import parameters

FOLDER = "notebooks/exercises"


def chapters(root):
    """The chapters that have exercises, in the order of the table of contents."""
    return [
        name for name in parameters.chapters(root) if Path(root, FOLDER, f"{name}.ipynb").is_file()
    ]


def numbers(root):
    """The number that each exercise has on the book's pages: of its chapter, and within it."""
    found, place = {}, 0
    for part in yaml.safe_load(Path(root, "_toc.yml").read_text("utf-8"))["parts"]:
        for chapter in part["chapters"]:
            numbered = part.get("numbered", False)
            place += numbered
            # with those in its sections
            names = re.findall(r"'notebooks/(\w+)'", str(chapter))
            labels = [label for name in names if name in chapters(root)
                      for label in _cells(root, name)[1]]
            for count, label in enumerate(labels, start=1):
                found[label] = f"{place}.{count}" if numbered else str(count)
    return found


def section(root, name, solutions=True):
    """Markdown of a chapter's exercises, its last section; empty text if it has none."""
    if name not in chapters(root):
        return ""
    text, _ = _cells(root, name)
    return template("exercises").render(
        name=name, about=text["title"].partition(".")[2].strip(), setup=text["setup"],
        link=launch_link(repository_address(root), f"exercises/{name}.ipynb", "setup"),
        tasks=_tasks(root, name), solutions=solutions,
    )


def solutions(root):
    """Markdown of the page with all solutions."""
    titles = {name: _cells(root, name)[0]["title"].partition("\n")[0] for name in chapters(root)}
    return template("solutions").render(chapters=[
        (name, title.replace("# Exercises:", "##"), _tasks(root, name))
        for name, title in titles.items()
    ])


def template(name):
    """A template of this package."""
    file = Path(__file__).with_name(f"{name}.jinja")
    return Template(file.read_text("utf-8"), trim_blocks=True)


def _cells(root, name):
    """Sources of a notebook of exercises by their cells' ids, and the labels of its tasks."""
    cells = nbformat.read(Path(root, FOLDER, f"{name}.ipynb"), 4).cells
    tasks = [c.id for c in cells if "exercise" in c.metadata.get("tags", ())]
    return {c.id: c.source for c in cells}, tasks


def _tasks(root, name):
    """What the templates say of each exercise of a chapter."""
    text, labels = _cells(root, name)
    for label in labels:
        heading, _, words = text[label].removeprefix("## ").partition("\n")
        solution = label.replace("ex-", "sol-", 1)
        # chapters as seen from the page of solutions
        explained = re.sub(r"(\{doc\}`)(?=\w+`)", r"\1../notebooks/", text[solution])
        code = {part: text.get(f"{label}-{part}") for part in ("answer", "check", "worked")}
        yield {"label": label, "heading": heading, "words": words.strip(), "solution": solution,
               "explained": explained, **code}


def settings(root):
    """The book's settings."""
    return yaml.safe_load(Path(root, "_config.yml").read_text("utf-8"))


def repository_address(root):
    """Address of the repository in the book's settings, or empty text."""
    return (settings(root).get("repository") or {}).get("url") or ""


def launch_link(repository, notebook, cell):
    """A sentence with a link that opens a notebook of the student edition at one of its cells.

    Binder makes that edition by ``postBuild``. Colab would open what the repository itself holds.
    """
    found = re.fullmatch(r"https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?/?", repository)
    if not found:
        return ""
    place = quote(f"lab/tree/_build/classroom/student/{notebook}#cell-id={cell}", safe="")
    return f"Open it in [Binder](https://mybinder.org/v2/gh/{found[1]}/HEAD?urlpath={place})."
