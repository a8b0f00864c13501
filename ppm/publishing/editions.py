"""Editions of the exercises for a class: notebooks to hand out, and the same with solutions."""

import ast
import contextlib
import io
import json
import re
import shutil
import textwrap
import zipfile
from pathlib import Path

import numpy as np

from ppm import classroom
from ppm.publishing.exercises import FOLDER, read_sheets, repository_address
from ppm.publishing.notebooks import BookError, cell_source, cell_tags, find_notebooks

# cells with these tags are the teacher's; nbconvert's TagRemovePreprocessor can take them out too
TEACHERS = frozenset({"solution"})
EDITIONS = ("student", "instructor")


def make_classroom(root, out=None):
    """Make the student's and the instructor's edition of all exercises, and zip both.

    Parameters
    ----------
    root : path-like
        The repository.
    out : path-like, optional
        Where they go; by default ``_build/classroom`` of the repository. What lies there is
        replaced.

    Returns
    -------
    list of pathlib.Path
        The two zip files.

    Raises
    ------
    BookError
        If a solution does not pass its check, or a notebook is not what it has to be.
    """
    root = Path(root)
    out = Path(out) if out else root / "_build" / "classroom"
    # first, since it may lack a package
    address = repository_address(root)
    sheets = read_sheets(root)
    words = _Words(root, sheets)
    # as the book's pages and the guide for teachers number them
    numbers = {
        task.label: f"{chapter}.{place}"
        for chapter, sheet in enumerate(sheets.values(), start=1)
        for place, task in enumerate(sheet.tasks, start=1)
    }
    # everything is made before anything is replaced
    made = {edition: {} for edition in EDITIONS}
    for name, sheet in sheets.items():
        source = json.loads(Path(root, FOLDER, f"{name}.ipynb").read_text("utf-8"))
        made["student"][name] = without_solutions(source)
        made["instructor"][name] = with_expectations(source, sheet)
    shutil.rmtree(out, ignore_errors=True)
    archives = []
    for edition, notebooks in made.items():
        folder = out / edition
        folder.mkdir(parents=True)
        for name, notebook in notebooks.items():
            for cell in notebook["cells"]:
                if cell["cell_type"] == "markdown":
                    text = words.plain(cell_source(cell))
                    if cell["id"] in numbers:
                        text = text.replace("## ", f"## Exercise {numbers[cell['id']]}: ", 1)
                    cell["source"] = _lines(text)
            text = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
            (folder / f"{name}.ipynb").write_text(text, "utf-8")
        (folder / "README.md").write_text(_readme(edition, sheets, root, address), "utf-8")
        archives.append(_zipped(folder))
    return archives


def without_solutions(notebook):
    """A notebook without the teacher's cells.

    Parameters
    ----------
    notebook : dict
        A notebook of exercises.

    Returns
    -------
    dict
        A new one; the cells are copies.
    """
    cells = [dict(cell) for cell in notebook["cells"] if not TEACHERS & set(cell_tags(cell))]
    return {**notebook, "cells": cells}


def with_expectations(notebook, sheet):
    """A notebook with the outputs of its cells, and a note for the teacher behind every task.

    Parameters
    ----------
    notebook : dict
        A notebook of exercises.
    sheet : ppm.publishing.exercises.Sheet
        The same exercises.

    Returns
    -------
    dict
        A new one; the cells are copies.

    Raises
    ------
    BookError
        If a solution does not pass its check, or a cell fails.
    """
    work = classroom.chapter(sheet.chapter)
    tasks = {task.label: task for task in sheet.tasks}
    space, cells, task = {}, [], None
    for number, cell in enumerate(notebook["cells"], start=1):
        cell = dict(cell)
        if cell["cell_type"] == "code":
            where = f"{sheet.chapter}, cell {number}"
            cell["execution_count"] = number
            cell["outputs"], value = _executed(cell_source(cell), space, number, where)
            if "check" in cell_tags(cell) and not value.solved:
                raise BookError(f"{where}: the solution does not pass its check: {value}")
        cells.append(cell)
        task = tasks.get(cell["id"], task)
        if task and cell["id"] == task.solution:
            exercise = work.exercises.get(task.label.removeprefix("ex-"))
            answer = space.get(_name(task.check)) if exercise else None
            cells.append(_note(task, exercise, answer))
    return {**notebook, "cells": cells}


def _executed(source, space, number, where):
    """Run a cell as a notebook would; return its outputs, and the value of its last line."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(ast.Module(body, []), where, "exec"), space)
            if last:
                value = eval(compile(ast.Expression(last.value), where, "eval"), space)
    except Exception as error:
        raise BookError(f"{where}: {type(error).__name__}: {error}") from None
    outputs = []
    if printed.getvalue():
        text = _lines(printed.getvalue())
        outputs.append({"name": "stdout", "output_type": "stream", "text": text})
    if value is not None:
        outputs.append({
            "data": {"text/plain": _lines(repr(value))},
            "execution_count": number,
            "metadata": {},
            "output_type": "execute_result",
        })
    return outputs, value


def _name(check):
    """The variable that a call of the checker is given."""
    call = ast.parse(check).body[0].value
    return ast.unparse(call.args[1])


def _note(task, exercise, answer):
    """What the teacher wants to know of an exercise: time, expected answer, typical slips."""
    lines = [f"**For the teacher.** About {task.minutes} minutes."]
    if exercise:
        lines += ["", f"Expected: {exercise.asks}.", "", "```text", _shown(answer), "```", ""]
        lines.append("Typical slips, and what the check says:")
        lines.append("")
        lines += [f"- {mistake.name}: “{mistake.hint}”" for mistake in exercise.mistakes]
    else:
        lines.append("No check: the solution above says what a good answer holds.")
    return {
        "cell_type": "markdown",
        "id": f"{task.label}-note",
        "metadata": {"tags": ["instructor"]},
        "source": _lines("\n".join(lines)),
    }


def _shown(answer):
    if isinstance(answer, (set, frozenset)):
        return ", ".join(sorted(answer))
    if isinstance(answer, list) and all(isinstance(entry, str) for entry in answer):
        return ", ".join(answer)
    digits = {"float_kind": "{:.5g}".format}
    return np.array2string(np.asarray(answer), formatter=digits, threshold=20, separator=", ")


def _lines(text):
    return text.splitlines(keepends=True)


def _zipped(folder):
    archive = folder.with_suffix(".zip")
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as content:
        for file in sorted(folder.iterdir()):
            # the same files give the same archive on any day
            entry = zipfile.ZipInfo(f"{folder.name}/{file.name}")
            content.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)
    return archive


_README = {
    "student": """
        # Exercises

        One notebook a chapter. Each task has a cell with three dots: put your answer in their
        place, run the cell, and run the check below it. The check says whether the answer is
        right, and gives a hint if it is not. It accepts a number, a list, a NumPy array, or an
        object of pandas or xarray. Nothing is sent anywhere, and nothing has to be restarted.
        """,
    "instructor": """
        # Exercises, with solutions

        The notebooks of the student edition, run, with everything that is taken out of it:
        solutions in code and in words, the expected answers, about how long a task takes, and
        typical slips with the hint that each gets. Do not hand this folder out.

        The checks compute the right answers in the library that students install, and anybody who
        reads its code can find them there. They are for practising, and not for a mark.
        """,
}


def _readme(edition, sheets, root, address):
    source, with_pymc = "path/to/the/repository", '"path/to/the/repository[pymc]"'
    asked = [
        f"Here `{source}` stands for the folder of the book's repository. Ask whoever gave you "
        "these notebooks for it."
    ]
    if address:
        source, with_pymc, asked = f"git+{address}", f'"ppm[pymc] @ git+{address}"', []
    titles = {name: notebook.title for name, notebook in find_notebooks(root).items()}
    rows = [
        f"| `{name}.ipynb` | {titles.get(name, name)} | {len(sheet.tasks)} | "
        f"{sum(bool(task.check) for task in sheet.tasks)} | "
        f"{sum(task.minutes for task in sheet.tasks)} |"
        for name, sheet in sheets.items()
    ]
    install = [
        "## What you need", "",
        "Python 3.12 or newer, Jupyter, and the library `ppm`:", "",
        "```", f'python -m pip install jupyterlab "{source}"', "jupyter lab", "```", "",
        *asked,
        "The last three exercises of `your_own_model.ipynb` need PyMC as well: install "
        f"`{with_pymc}` for them. A few exercises without a check ask you to run a chapter of the "
        "book. They need the whole repository.",
    ]
    contents = [
        "## What is in it",
        "",
        "| Notebook | Chapter | Exercises | with a check | Minutes |",
        "|---|---|---|---|---|",
        *rows,
    ]
    head = textwrap.dedent(_README[edition]).strip()
    return "\n".join([head, "", *install, "", *contents]) + "\n"


# ------------------------------------------------------------------------- words for roles


class _Words:
    """Plain words for the book's cross-references, which Jupyter shows as they are typed."""

    def __init__(self, root, sheets):
        self.titles = {name: each.title for name, each in find_notebooks(root).items()}
        self.tasks = {task.label: task.title for sheet in sheets.values() for task in sheet.tasks}
        text = "\n".join(
            cell_source(cell)
            for notebook in find_notebooks(root).values()
            for cell in json.loads(notebook.path.read_text("utf-8"))["cells"]
            if cell["cell_type"] == "markdown"
        )
        statements = re.findall(r"^[`:]{3,}\{prf:(\w+)\} *(.*)\n:label: (\S+)$", text, re.M)
        self.statements = {label: f"the {kind} “{title}”" for kind, title, label in statements}
        formulas = re.findall(r"^\$\$\n([^$]*)\n\$\$ \((eq-[\w-]+)\)$", text, re.M)
        self.formulas = {label: " ".join(formula.split()) for formula, label in formulas}
        bibliography = Path(root, "book", "references.bib")
        entries = bibliography.read_text("utf-8") if bibliography.is_file() else ""
        self.sources = dict(_short_citations(entries))

    def plain(self, text):
        """Text without roles and without links into the book."""
        text = re.sub(r"\{([\w:]+)\}`([^`]+)`", self._word, text)
        return re.sub(r"\[([^]]+)\]\(#[\w-]+\)", r"\1", text)

    def _word(self, match):
        role, target = match.groups()
        explicit = re.fullmatch(r"(.*?) *<.*>", target)
        if explicit:
            return explicit[1]
        if role.startswith("cite:"):
            cited = "; ".join(self.sources[key] for key in target.split(","))
            return f"({cited})" if role == "cite:p" else cited
        if role == "prf:ref":
            return self.statements[target]
        if role == "doc":
            return f"the chapter “{self.titles[Path(target).name]}”"
        if role == "numref":
            return f"the exercise “{self.tasks[target].rstrip(' ★')}”"
        if role == "eq":
            return f"the formula ${self.formulas[target]}$"
        return target


def _short_citations(entries):
    """Key of each entry of a bibliography, and authors with year."""
    for key, body in re.findall(r"^@\w+\{([\w-]+),\n(.*?)^\}", entries, re.M | re.S):
        author = re.search(r"^ *author *= *\{(.*?)\},?$", body, re.M | re.S)
        year = re.search(r"^ *year *= *\{(\d+)\}", body, re.M)
        names = re.split(r"\s+and\s+", author[1])
        names = [name.partition(",")[0].strip("{} \n") for name in names]
        shown = names[0] if len(names) == 1 else " and ".join(names)
        yield key, f"{shown if len(names) < 3 else f'{names[0]} et al.'} {year[1]}"
