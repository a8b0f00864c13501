"""Exercises: the pages of the book that show them, from one notebook for each chapter.

A notebook of exercises holds, for each of them, a task (a cell tagged ``exercise`` whose id is the
exercise's label), a cell to fill in (``answer``), its solution in code and in words (``solution``)
and a call of the checker (``check``). The book's pages and the editions for a class are made from
these cells alone.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from ppm.publishing.notebooks import BookError, cell_source, cell_tags, read_cells

# of the repository, and of the pages of the book
FOLDER = Path("notebooks", "exercises")
PAGES = "exercises"
SOLUTIONS = f"{PAGES}/solutions"


@dataclass(frozen=True)
class Task:
    """One exercise.

    Attributes
    ----------
    label : str
        Its label, which starts with ``ex-``.
    title, text : str
        Heading and task, in MyST Markdown.
    minutes : int
        How long it takes.
    answer, check, worked : str
        Cell to fill in, call of the checker and solution in code; empty without a check.
    explained : str
        The solution in words, in MyST Markdown.
    """

    label: str
    title: str
    text: str
    minutes: int
    answer: str
    check: str
    worked: str
    explained: str

    @property
    def solution(self):
        """Label of the solution."""
        return self.label.replace("ex-", "sol-", 1)


@dataclass(frozen=True)
class Sheet:
    """The exercises of one chapter.

    Attributes
    ----------
    chapter : str
        Name of the chapter's notebook.
    title, intro : str
        Heading and what stands below it.
    setup : str
        The first code cell.
    tasks : tuple of Task
        The exercises.
    """

    chapter: str
    title: str
    intro: str
    setup: str
    tasks: tuple[Task, ...]


def read_sheets(root):
    """Exercises of every chapter that the table of contents has a page for, in its order.

    Parameters
    ----------
    root : path-like
        The repository.

    Returns
    -------
    dict of str to Sheet

    Raises
    ------
    BookError
        If the table of contents lists exercises that do not exist, or a notebook of exercises is
        not what it has to be.
    """
    toc = Path(root, "_toc.yml").read_text("utf-8")
    names = re.findall(rf"^[ -]*file: *{PAGES}/([\w-]+)\s*$", toc, re.M)
    return {
        name: read_sheet(Path(root, FOLDER, f"{name}.ipynb"))
        for name in names if f"{PAGES}/{name}" != SOLUTIONS
    }


def read_sheet(path):
    """Exercises of one notebook.

    Raises
    ------
    BookError
        If there is no such notebook, or a task has no heading, minutes or solution.
    """
    path = Path(path)
    if not path.is_file():
        raise BookError(f"_toc.yml lists {PAGES}/{path.stem}, but there is no {FOLDER / path.name}")
    cells = {cell["id"]: cell for cell in read_cells(path)}
    sources = {label: cell_source(cell) for label, cell in cells.items()}
    title, _, intro = sources.get("title", "").partition("\n")
    tasks = []
    for label, cell in cells.items():
        if "exercise" not in cell_tags(cell):
            continue
        heading, _, text = sources[label].partition("\n")
        explained = sources.get(label.replace("ex-", "sol-", 1), "")
        minutes = cell["metadata"].get("minutes")
        if not (label.startswith("ex-") and heading.startswith("## ") and minutes and explained):
            raise BookError(f"{path.name}: {label} needs a label ex-…, a heading, its minutes and "
                            "a solution")
        code = (sources.get(f"{label}-{part}", "") for part in ("answer", "check", "worked"))
        parts = heading.removeprefix("## "), text.strip(), minutes, *code, explained
        tasks.append(Task(label, *parts))
    return Sheet(path.stem, title.removeprefix("# "), intro.strip(), sources["setup"], tuple(tasks))


def stage_exercises(root, target, repository=""):
    """Write the pages of exercises, and that of their solutions, into the staged book.

    Parameters
    ----------
    root, target : path-like
        The repository, and the folder that Jupyter Book sees.
    repository : str, default ""
        Address of the repository.
    """
    sheets = read_sheets(root)
    if not sheets:
        return
    folder = Path(target, PAGES)
    folder.mkdir()
    for name, sheet in sheets.items():
        links = launch_links(repository, FOLDER / f"{name}.ipynb", "setup")
        (folder / f"{name}.md").write_text(exercise_page(sheet, links), "utf-8")
    solutions = solutions_page(sheets.values())
    Path(target, f"{SOLUTIONS}.md").write_text(solutions, "utf-8")


def exercise_page(sheet, links=""):
    """A chapter's page of exercises, in MyST Markdown.

    Parameters
    ----------
    sheet : Sheet
        The exercises.
    links : str, default ""
        Links that open the notebook somewhere.
    """
    parts = [
        f"# {sheet.title}",
        _of_the_book(sheet.intro),
        f"The tasks stand in the notebook `{(FOLDER / sheet.chapter).as_posix()}.ipynb` of the "
        "repository as well, with their solutions; `make classroom` makes an edition without them. "
        f"{{doc}}`solutions` has all solutions of the book. {links}".strip(),
        f"Every check below needs these lines first.\n\n{_python(sheet.setup)}",
    ]
    for task in sheet.tasks:
        body = _of_the_book(task.text)
        if task.check:
            body += f"\n\n{_python(task.answer, task.check)}"
        body += f"\n\n{{ref}}`Solution <{task.solution}>`"
        parts.append(_directive("exercise", task.title, [f":label: {task.label}"], body))
    return "\n\n".join(parts) + "\n"


def solutions_page(sheets):
    """The page of all solutions, in MyST Markdown.

    Parameters
    ----------
    sheets : iterable of Sheet
        The exercises.
    """
    parts = [
        "# Solutions",
        "Every title below leads back to its exercise. The code of a solution goes behind the "
        "first lines of its chapter's page of exercises.",
    ]
    for sheet in sheets:
        parts.append(f"## {sheet.title.removeprefix('Exercises: ')}")
        parts.append(f"From {{doc}}`{sheet.chapter}`.")
        for task in sheet.tasks:
            body = _of_the_book(task.explained)
            if task.worked:
                body = f"{_python(task.worked)}\n\n{body}"
            options = [f":label: {task.solution}", ":class: dropdown"]
            parts.append(_directive("solution", task.label, options, body))
    return "\n\n".join(parts) + "\n"


def _directive(name, argument, options, body):
    fence = "`" * 5
    return "\n".join([f"{fence}{{{name}}} {argument}", *options, "", body, fence])


def _python(*cells):
    return "```python\n" + "\n".join(cells) + "\n```"


def _of_the_book(text):
    """Chapters are in another folder of the book."""
    return re.sub(r"\{doc\}`(\w+)`", r"{doc}`../notebooks/\1`", text)


def repository_address(root):
    """Address of the repository in the book's settings, or empty text."""
    import yaml

    settings = yaml.safe_load(Path(root, "_config.yml").read_text("utf-8"))
    return (settings.get("repository") or {}).get("url") or ""


def launch_links(repository, notebook, cell):
    """Links that open a notebook at one of its cells, in Binder and in Colab.

    Parameters
    ----------
    repository : str
        Address of the repository on GitHub; no links without one.
    notebook : path-like
        The notebook, relative to the repository.
    cell : str
        Id of the cell.

    Returns
    -------
    str
        A sentence in Markdown, or empty text.
    """
    found = re.fullmatch(r"https://github\.com/([\w.-]+)/([\w.-]+?)(?:\.git)?/?", repository)
    if not found:
        return ""
    owner, name = found.groups()
    path = Path(notebook).as_posix()
    place = quote(f"lab/tree/{path}#cell-id={cell}", safe="")
    binder = f"https://mybinder.org/v2/gh/{owner}/{name}/HEAD?urlpath={place}"
    colab = f"https://colab.research.google.com/github/{owner}/{name}/blob/HEAD/{path}"
    return f"Open it in [Binder]({binder}) or [Colab]({colab}#scrollTo={cell})."
