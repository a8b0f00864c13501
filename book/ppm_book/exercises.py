"""Exercises at the end of chapters and the page of solutions, from one notebook for each chapter.

A task is a cell tagged ``exercise`` whose id is the exercise's label. Cells whose ids begin with it
hold the place for an answer, its check and the worked solution; ``sol-…`` explains the solution.
"""

import re
from collections import Counter
from pathlib import Path
from urllib.parse import quote

import nbformat
import yaml

from ppm_book import parameters

FOLDER = "notebooks/exercises"


def chapters(root):
    """The chapters that have exercises, in the order of the table of contents."""
    return [
        name for name in parameters.chapters(root) if Path(root, FOLDER, f"{name}.ipynb").is_file()
    ]


def numbers(root):
    """The number that each exercise has on the book's pages: of its chapter, and within it."""
    toc = yaml.safe_load(Path(root, "_toc.yml").read_text("utf-8"))
    found, counted, place = {}, Counter(), 0

    def files(entry):
        yield entry["file"]
        for each in entry.get("sections", ()):
            yield from files(each)

    for part in toc["parts"]:
        for chapter in part["chapters"]:
            place += bool(part.get("numbered"))
            of = f"{place}." if part.get("numbered") else ""
            for file in files(chapter):
                name = Path(file).name
                for label in _cells(root, name)[1] if name in chapters(root) else ():
                    counted[of] += 1
                    found[label] = f"{of}{counted[of]}"
    return found


def section(root, name, solutions=True):
    """Markdown of a chapter's exercises, its last section; empty text if it has none."""
    if name not in chapters(root):
        return ""
    text, labels = _cells(root, name)
    _, _, told = text["title"].partition(".")
    file = f"exercises/{name}.ipynb"
    link = launch_link(repository_address(root), file, "setup")
    parts = [
        "## Exercises", told.strip(),
        f"The notebook `{file}` of the student edition, which "
        "`make classroom` makes ({doc}`how <../book/run_it>`), has the tasks as well. "
        f"{link}".rstrip(),
        f"Every check needs these lines first.\n\n{_python(text['setup'])}",
    ]
    for label in labels:
        heading, task, solution = _task(text, label)
        task += f"\n\n{{ref}}`Solution <{solution}>`" if solutions else ""
        parts.append(_directive(f"{{exercise}} {heading}\n:label: {label}", task))
    return "\n\n".join(parts)


def solutions(root):
    """Markdown of the page with all solutions."""
    parts = ["# Solutions", "Every title below leads back to its exercise."]
    for name in chapters(root):
        text, labels = _cells(root, name)
        parts += [text["title"].partition("\n")[0].replace("# Exercises:", "##"),
                  f"From {{doc}}`../notebooks/{name}`."]
        for label in labels:
            solution = _task(text, label)[2]
            told = re.sub(r"(\{doc\}`)(?=\w+`)", r"\1../notebooks/", text[solution])
            if f"{label}-worked" in text:
                told = f"{_python(text[f'{label}-worked'])}\n\n{told}"
            opening = f"{{solution}} {label}\n:label: {solution}\n:class: dropdown"
            parts.append(_directive(opening, told))
    return "\n\n".join(parts) + "\n"


def _cells(root, name):
    """Sources of a notebook of exercises by their cells' ids, and the labels of its tasks."""
    cells = nbformat.read(Path(root, FOLDER, f"{name}.ipynb"), 4).cells
    tasks = [c.id for c in cells if "exercise" in c.metadata.get("tags", ())]
    return {c.id: c.source for c in cells}, tasks


def _task(text, label):
    """Heading and words of a task, and the label of its solution."""
    heading, _, task = text[label].removeprefix("## ").partition("\n")
    if f"{label}-check" in text:
        task += "\n\n" + _python(text[f"{label}-answer"], text[f"{label}-check"])
    return heading, task.strip(), label.replace("ex-", "sol-", 1)


def _python(*cells):
    return "```python\n" + "\n".join(cells) + "\n```"


def _directive(opening, body):
    return f"`````{opening}\n\n{body}\n`````"


def repository_address(root):
    """Address of the repository in the book's settings, or empty text."""
    settings = yaml.safe_load(Path(root, "_config.yml").read_text("utf-8"))
    return (settings.get("repository") or {}).get("url") or ""


def launch_link(repository, notebook, cell):
    """A sentence with a link that opens a notebook of the student edition at one of its cells.

    Binder makes that edition by ``postBuild``. Colab would open what the repository itself holds.
    """
    found = re.fullmatch(r"https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?/?", repository)
    if not found:
        return ""
    place = quote(f"lab/tree/_build/classroom/student/{notebook}#cell-id={cell}", safe="")
    return f"Open it in [Binder](https://mybinder.org/v2/gh/{found[1]}/HEAD?urlpath={place})."
