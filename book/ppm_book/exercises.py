"""The book's pages of exercises and solutions, from one notebook for each chapter.

A task is a cell tagged ``exercise`` whose id is the exercise's label. Cells whose ids begin with it
hold the place for an answer, its check and the worked solution; ``sol-…`` explains the solution.
"""

import re
from pathlib import Path
from urllib.parse import quote

import nbformat
import yaml

FOLDER = "notebooks/exercises"


def chapters(root):
    """The chapters that the table of contents has a page of exercises for, in its order."""
    toc = Path(root, "_toc.yml").read_text("utf-8")
    names = re.findall(r"^[ -]*file: *exercises/([\w-]+)\s*$", toc, re.M)
    return [name for name in names if name != "solutions"]


def stage_exercises(root, stage):
    """Write the pages of exercises, and that of their solutions, into ``stage / "exercises"``."""
    solutions = [
        "# Solutions",
        "Every title below leads back to its exercise. The code of a solution goes behind the "
        "first lines of its chapter's page of exercises.",
    ]
    for name in chapters(root):
        cells = nbformat.read(Path(root, FOLDER, f"{name}.ipynb"), 4).cells
        # a notebook names chapters beside it, a page those in another folder of the book
        text = {c.id: re.sub(r"(\{doc\}`)(?=\w+`)", r"\1../notebooks/", c.source) for c in cells}
        title, _, intro = text["title"].partition("\n")
        links = launch_links(repository_address(root), f"{FOLDER}/{name}.ipynb", "setup")
        page = [
            title,
            intro.strip(),
            f"The tasks stand in the notebook `{FOLDER}/{name}.ipynb` of the "
            "repository as well, with their solutions; `make classroom` makes an edition without "
            f"them. {{doc}}`solutions` has all solutions of the book. {links}".strip(),
            f"Every check below needs these lines first.\n\n{_python(text['setup'])}",
        ]
        solutions += [title.replace("# Exercises:", "##"), f"From {{doc}}`{name}`."]
        for label in (c.id for c in cells if "exercise" in c.metadata.get("tags", ())):
            heading, _, task = text[label].removeprefix("## ").partition("\n")
            solution = label.replace("ex-", "sol-", 1)
            told = text[solution]
            if f"{label}-check" in text:
                task += "\n\n" + _python(text[f"{label}-answer"], text[f"{label}-check"])
                told = f"{_python(text[f'{label}-worked'])}\n\n{told}"
            task = f"{task.strip()}\n\n{{ref}}`Solution <{solution}>`"
            page.append(_directive(f"{{exercise}} {heading}\n:label: {label}", task))
            opening = f"{{solution}} {label}\n:label: {solution}\n:class: dropdown"
            solutions.append(_directive(opening, told))
        for file, parts in ((name, page), ("solutions", solutions)):
            path = Path(stage, "exercises", f"{file}.md")
            path.parent.mkdir(exist_ok=True)
            path.write_text("\n\n".join(parts) + "\n", "utf-8")


def _python(*cells):
    return "```python\n" + "\n".join(cells) + "\n```"


def _directive(opening, body):
    return f"`````{opening}\n\n{body}\n`````"


def repository_address(root):
    """Address of the repository in the book's settings, or empty text."""
    settings = yaml.safe_load(Path(root, "_config.yml").read_text("utf-8"))
    return (settings.get("repository") or {}).get("url") or ""


def launch_links(repository, notebook, cell):
    """A sentence with links that open a notebook of a GitHub repository at one of its cells."""
    found = re.fullmatch(r"https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?/?", repository)
    if not found:
        return ""
    place = quote(f"lab/tree/{notebook}#cell-id={cell}", safe="")
    binder = f"https://mybinder.org/v2/gh/{found[1]}/HEAD?urlpath={place}"
    colab = f"https://colab.research.google.com/github/{found[1]}/blob/HEAD/{notebook}"
    return f"Open it in [Binder]({binder}) or [Colab]({colab}#scrollTo={cell})."
