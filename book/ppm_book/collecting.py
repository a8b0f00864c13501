"""Check what a class handed in: every notebook runs anew, beside the exercises' own checks.

The code of the students runs with the rights of whoever collects it.
"""

import re
import shutil
import tempfile
from pathlib import Path

import nbformat
import pandas as pd
from jinja2 import Template
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError

from ppm_book.classroom import ASSESSMENT, SPACE
from ppm_book.exercises import FOLDER, chapters

# the name that a notebook's data were drawn from, and files without any cell of an exercise
NOTES = ["data of", "unread files"]
PAGE = """\
<!doctype html><html lang="en"><meta charset="utf-8"><title>Answers in words</title>
<style>body {font-family: sans-serif; max-width: 75rem; margin: auto}
td, th {border: 1px solid #bbb; padding: .4rem; text-align: left; vertical-align: top}
table {border-collapse: collapse; width: 100%} td {white-space: pre-wrap} th {width: 9rem}
</style><h1>Answers in words</h1>
{% for task, answers in tasks.items() %}<h2>{{ task }}</h2><table>
{% for student, answer in answers %}<tr><th scope="row">{{ student }}</th><td>{{ answer }}</td></tr>
{% endfor %}</table>{% endfor %}</html>
"""


def collect(root, folder, seconds=60):
    """Check the notebooks in a folder; leave ``grades.csv`` and ``answers.html`` there.

    A student is a folder, or a file whose name has the student's name and the chapter's. Which
    chapter a notebook belongs to is seen by its cells, whatever its name.

    Parameters
    ----------
    root, folder : pathlib.Path
        The repository, and what was handed in.
    seconds : float
        The longest that a cell may run. One that takes longer is left out and counts as an error.

    Returns
    -------
    list of pathlib.Path
        The table of students and exercises, and the page.
    """
    originals = {
        name: nbformat.read(Path(root, FOLDER, f"{name}.ipynb"), 4)
        for name in [*chapters(root), ASSESSMENT] if Path(root, FOLDER, f"{name}.ipynb").is_file()
    }
    columns = [f"{name}/{each}" for name, sheet in originals.items() for each in _checks(sheet)]
    tasks = {
        cell.id: f"{name}: {cell.source.partition(chr(10))[0].strip('# ★')}"
        for name, sheet in originals.items() for cell in sheet.cells
        if "exercise" in cell.metadata.get("tags", ())
    }
    grades, answers = {}, {}
    files = (f for f in folder.rglob("*.ipynb") if ".ipynb_checkpoints" not in f.parts)
    # of two notebooks of one chapter the newer one counts
    for file in sorted(files, key=lambda f: f.stat().st_mtime):
        student = file.relative_to(folder).parts[0]
        try:
            notebook = nbformat.read(file, 4)
            # some programs keep a cell's id among its metadata
            cells = {cell.metadata.get("id") or cell.get("id") or f"cell {place}": cell
                     for place, cell in enumerate(notebook.cells)}
        except Exception:
            name, cells = None, {}
        else:
            shared = {name: len(cells.keys() & _own(each)) for name, each in originals.items()}
            name = max(shared, key=shared.get) if any(shared.values()) else None
        if file.parent == folder:
            student = re.sub(rf"{name}|\(\d+\)", "", file.stem).strip(" _-.,") or file.stem
        row = grades.setdefault(student, dict.fromkeys([*columns, *NOTES], ""))
        if name is None:
            row["unread files"] += f"{file.relative_to(folder)} "
            continue
        text = "\n".join(cell.source for cell in cells.values())
        own = (re.search(r"""student\s*=\s*(["'])(.*?)\1""", text) or ("", "", ""))[2]
        row["data of"] = own
        found = _graded(root, name, originals[name], cells, own, seconds)
        row |= {f"{name}/{each}": told for each, told in found.items()}
        for label in tasks.keys() & _own(originals[name]):
            told = cells.get(f"{label}-words", {}).get("source", "").replace(SPACE, "").strip()
            if name == ASSESSMENT and f"{label}-answer" in cells:
                told = f"{told}\n\n{cells[f'{label}-answer'].source}".strip()
            if f"{label}-check" not in _own(originals[name]) or name == ASSESSMENT:
                answers.setdefault(label, {})[student] = told or "no answer"
    made = folder / "grades.csv", folder / "answers.html"
    table = pd.DataFrame.from_dict(grades, orient="index", columns=[*columns, *NOTES])
    # what nobody handed in is left out
    table = table.loc[:, (table != "").any()].sort_index().rename_axis("student")
    table.to_csv(made[0])
    shown = {tasks[label]: sorted(answers[label].items()) for label in tasks if label in answers}
    made[1].write_text(Template(PAGE, autoescape=True).render(tasks=shown), "utf-8")
    return list(made)


def _own(sheet):
    """Ids of the cells that belong to exercises."""
    return {cell.id for cell in sheet.cells if cell.id.startswith("ex-")}


def _checks(sheet):
    """Name of an exercise -> the cell that checks it."""
    found = {cell.id: re.match(r'check\("([\w-]+)"', cell.source) for cell in sheet.cells}
    return {match[1]: label for label, match in found.items() if match}


def _graded(root, name, original, cells, student, seconds):
    """Right, wrong, no answer or error for each exercise with a check."""
    wanted, checks = {cell.id: cell for cell in original.cells}, _checks(original)
    run = [f"import checks as _checks\n_check = _checks.Chapter({name!r}, student={student!r})"]
    places = {}
    for label, cell in cells.items():
        if cell.cell_type == "code" and label not in checks.values() and label != "summary":
            run.append(cell.source)
        answered = re.sub("-(answer|check)$", "-check", label)
        if answered in checks.values() and (label == answered or answered not in cells):
            # the check that was handed out, whatever became of it
            places[answered] = len(run)
            run.append("_" + wanted[answered].source)
    with tempfile.TemporaryDirectory() as place:
        for file in Path(root, FOLDER).glob("*.py"):
            shutil.copy(file, place)
        done = _run(run, place, seconds)
    return {each: _verdict(done[places[label]]) if label in places else "no answer"
            for each, label in checks.items()}


def _verdict(cell):
    """What a check that was run says in one or two words."""
    told = next((o["data"]["text/plain"] for o in cell.outputs
                 if o.output_type == "execute_result"), "")
    if not told:
        return "error"
    return "right" if told.startswith("✔") else "no answer" if "no answer yet" in told else "wrong"


def _run(sources, place, seconds):
    """Run cells in a kernel of their own; one that hangs or ends it is left out of the next try."""
    while True:
        notebook = nbformat.v4.new_notebook(cells=[*map(nbformat.v4.new_code_cell, sources)])
        client = NotebookClient(
            notebook, timeout=seconds, allow_errors=True, kernel_name="python3",
            resources={"metadata": {"path": place}}, shutdown_kernel="immediate",
            extra_arguments=["--IPKernelApp.log_level=CRITICAL"],
        )
        client.log.disabled = True
        with client.setup_kernel():
            for index, cell in enumerate(notebook.cells):
                try:
                    client.execute_cell(cell, index)
                except (CellTimeoutError, DeadKernelError):
                    break
            else:
                return notebook.cells
        sources[index] = "raise TimeoutError"
