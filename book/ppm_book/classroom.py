"""What is handed out to a class, what stays with its teacher, and what comes back.

Notebooks that were handed in run anew, with the exercises' own checks in place of the students'.
The code of the students runs with the rights of whoever collects it.
"""

import re
import shutil
import tempfile
from pathlib import Path

import nbformat
import pandas as pd
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbconvert.preprocessors import ExecutePreprocessor

from ppm_book import parameters
from ppm_book.exercises import FOLDER, chapters, numbers
from ppm_book.plain import Words

ASSESSMENT = "assessment"
SPACE = "*Your answer:*"
# the name that a notebook's data were drawn from, and files without any cell of an exercise
NOTES = ["data of", "unread files"]
# edition -> files beside the notebooks that it must not have
WITHOUT = {
    "student": ["assessment*"], "assessment": ["checks.py", "*_answers.py"], "instructor": []
}


def make_editions(root, out=None, editions=tuple(WITHOUT)):
    """Make editions anew in ``out``, by default ``_build/classroom``; return their zip files.

    *student* has plain chapters, and exercises without solutions; *assessment* has the tasks that
    are graded, without theirs; *instructor* has all exercises and tasks with solutions, run.
    """
    root, out = Path(root), Path(out or Path(root, "_build", "classroom"))
    words, number = Words(root), numbers(root)
    sheets = {"student": chapters(root), "assessment": [ASSESSMENT]}
    sheets["instructor"] = sheets["student"] + sheets["assessment"]
    shutil.rmtree(out, ignore_errors=True)
    for edition in editions:
        place = out / edition / "exercises"
        others = shutil.ignore_patterns("*.ipynb", "[._]*", *WITHOUT[edition])
        shutil.copytree(root / FOLDER, place, ignore=others)
        shutil.move(place / "README.md", out / edition)
        for name in sheets[edition]:
            sheet = _sheet(root, name, number, edition == "instructor")
            words.plain(sheet, name)
            if edition == "instructor":
                quiet = ["--log-level=ERROR"]
                run = ExecutePreprocessor(record_timing=False, extra_arguments=quiet)
                run.preprocess(sheet, {"metadata": {"path": root / FOLDER}})
            nbformat.write(sheet, place / f"{name}.ipynb")
        if edition == "student":
            (out / edition / "chapters").mkdir()
            for name in parameters.chapters(root):
                chapter = words.chapter(name)
                nbformat.write(chapter, out / edition / "chapters" / f"{name}.ipynb")
    return [Path(shutil.make_archive(out / each, "zip", out, each)) for each in editions]


def _sheet(root, name, number, solved):
    """A notebook of exercises, its tasks numbered: with solutions, or with room for answers."""
    sheet = nbformat.read(Path(root, FOLDER, f"{name}.ipynb"), 4)
    ids, cells, task = {cell.id for cell in sheet.cells}, [], 0
    for cell in sheet.cells:
        tags, about = cell.metadata.get("tags", ()), cell.metadata
        if "solution" in tags and not solved:
            continue
        cells.append(cell)
        # hints() stops at an answer that is not right
        cell.source = cell.source.replace('check("', 'check.hints("' if solved else 'check("')
        if "setup" in tags and not solved:
            own = f'Chapter("{name}", student="")  # your name here gives data of your own'
            cell.source = cell.source.replace(f'Chapter("{name}")', own)
        if "exercise" in tags:
            task += 1
            head, of = (f"Task {task}", f"{about['points']} points") if "points" in about else (
                f"Exercise {number[cell.id]}", f"{about['minutes']} minutes")
            cell.source = re.sub("^## (.*)", rf"## {head}: \1 ({of})", cell.source)
            if not solved and ("points" in about or f"{cell.id}-check" not in ids):
                cells.append(nbformat.v4.new_markdown_cell(SPACE, id=f"{cell.id}-words"))
    sheet.cells = cells
    return sheet


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
    sheets = {}
    for name in [*chapters(root), ASSESSMENT]:
        file = root / FOLDER / f"{name}.ipynb"
        cells = nbformat.read(file, 4).cells if file.is_file() else []
        sheets[name] = {cell.id: cell for cell in cells if cell.id.startswith("ex-")}
    columns = [
        f"{name}/{_work(label)}" for name, sheet in sheets.items() for label in sheet
        if label.endswith("-check")
    ]
    grades, answers = {}, {}
    files = (f for f in folder.rglob("*.ipynb") if ".ipynb_checkpoints" not in f.parts)
    # of two notebooks of one chapter the newer one counts
    for file in sorted(files, key=lambda f: f.stat().st_mtime):
        cells = _handed_in(file)
        name = max(sheets, key=lambda name: len(sheets[name].keys() & cells.keys()))
        student = file.relative_to(folder).parts[0]
        if file.parent == folder:
            student = re.sub(rf"{name}|\(\d+\)", "", file.stem).strip(" _-.,") or file.stem
        row = grades.setdefault(student, dict.fromkeys([*columns, *NOTES], ""))
        if sheets[name].keys().isdisjoint(cells):
            row["unread files"] += f"{file.relative_to(folder)} "
            continue
        text = "\n".join(cell.source for cell in cells.values())
        own = re.search(r"""student\s*=\s*(["'])(.*?)\1""", text)
        row["data of"] = own[2] if own else ""
        verdicts = _graded(root, name, sheets[name], cells, row["data of"], seconds)
        row |= {f"{name}/{_work(label)}": verdict for label, verdict in verdicts.items()}
        for label, task in sheets[name].items():
            told = [cells[each].source.replace(SPACE, "").strip()
                    for each in (f"{label}-words", f"{label}-answer") if each in cells]
            if "exercise" in task.metadata.get("tags", ()) and (
                    name == ASSESSMENT or f"{label}-check" not in sheets[name]):
                title = f"{name}: {task.source.partition(chr(10))[0].strip('# ★')}"
                answers[title, student] = "\n\n".join(filter(None, told)) or "no answer"
    table = pd.DataFrame.from_dict(grades, orient="index", columns=[*columns, *NOTES])
    # what nobody handed in is left out
    table = table.loc[:, (table != "").any()].sort_index().rename_axis("student")
    table.to_csv(folder / "grades.csv")
    page = pd.Series(answers, name="answer", dtype=object).sort_index().to_frame().style
    page = page.format(escape="html").format_index(escape="html").set_caption("Answers in words")
    page = page.set_table_styles([{"selector": "td", "props": "white-space: pre-wrap"}])
    page.to_html(folder / "answers.html", doctype_html=True, encoding="utf-8")
    return [folder / "grades.csv", folder / "answers.html"]


def _work(label):
    """Name of the exercise that a cell belongs to."""
    return label.removeprefix("ex-").removesuffix("-check")


def _handed_in(file):
    """Cells of a notebook by their ids, none if it cannot be read."""
    try:
        cells = nbformat.read(file, 4).cells
    except Exception:
        return {}
    # some programs keep a cell's id among its metadata
    return {cell.metadata.get("id") or cell.get("id") or f"cell {place}": cell
            for place, cell in enumerate(cells)}


def _graded(root, name, sheet, cells, student, seconds):
    """Right, wrong, no answer or error for each cell of a sheet that checks an answer."""
    code = {label: cell.source for label, cell in cells.items()
            if cell.cell_type == "code" and cell.source.strip()}
    # the checks that were handed out, whatever became of them
    checks = {label: f"_{c.source}" for label, c in sheet.items() if label.endswith("-check")}
    run = {"": f"import checks\n_check = checks.Chapter({name!r}, student={student!r})"}
    for label, source in code.items():
        run[label] = checks.get(label, source)
        check = label.replace("-answer", "-check")
        if check in checks and check not in code:
            run[check] = checks[check]
    with tempfile.TemporaryDirectory() as place:
        for file in Path(root, FOLDER).glob("*.py"):
            shutil.copy(file, place)
        done = dict(zip(run, _run([*run.values()], place, seconds), strict=True))
    return {label: _verdict(done[label]) if label in done else "no answer" for label in checks}


def _verdict(cell):
    """What a check that was run says in one or two words."""
    said = [o["data"]["text/plain"] for o in cell.outputs if o.output_type == "execute_result"]
    if not said:
        return "error"
    if said[0].startswith("✔"):
        return "right"
    return "no answer" if "no answer yet" in said[0] else "wrong"


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
        try:
            return client.execute().cells
        except (CellTimeoutError, DeadKernelError):
            sources[client.code_cells_executed - 1] = "raise TimeoutError"
