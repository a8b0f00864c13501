"""What is handed out to a class, and what stays with its teacher."""

import re
import shutil
import sys
from pathlib import Path

import nbformat
from nbconvert.preprocessors import ExecutePreprocessor

from ppm_book.chapters import running
from ppm_book.tools import parameters
from ppm_book.tools.exercises import FOLDER, chapters, numbers
from ppm_book.tools.plain import Words

ASSESSMENT = "assessment"
SPACE = "*Your answer:*"
# edition -> files beside the notebooks that it must not have
WITHOUT = {
    "student": ["assessment*"],
    "assessment": ["checks", "README.md"],
    "instructor": [],
}


def make_editions(root, out=None, editions=tuple(WITHOUT)):
    """Make editions anew in ``out``, by default ``_build/classroom``; return their zip files.

    *student* has plain chapters, and exercises without solutions; *assessment* has the tasks that
    are graded, without theirs; *instructor* has all exercises and tasks with solutions, run.
    """
    root, out = Path(root), Path(out or Path(root, "_build", "classroom"))
    words, number, names = Words(root), numbers(root), chapters(root)
    sheets = {
        "student": names,
        "assessment": [ASSESSMENT],
        "instructor": [*names, ASSESSMENT],
    }
    shutil.rmtree(out, ignore_errors=True)
    for edition in editions:
        place = out / edition / "exercises"
        others = shutil.ignore_patterns(
            "*.ipynb", ".*", "__pycache__", *WITHOUT[edition]
        )
        shutil.copytree(root / FOLDER, place, ignore=others)
        read_me = f"{ASSESSMENT}_readme.md" if edition == ASSESSMENT else "README.md"
        shutil.move(place / read_me, out / edition / "README.md")
        for name in sheets[edition]:
            print(f"{edition}: {name}", file=sys.stderr, flush=True)
            sheet = _sheet(root, name, number, edition == "instructor")
            words.plain(sheet, name)
            if edition == "instructor":
                quiet = ["--log-level=ERROR"]
                run = ExecutePreprocessor(record_timing=False, extra_arguments=quiet)
                with running.own_kernel():
                    run.preprocess(sheet, {"metadata": {"path": root / FOLDER}})
            nbformat.write(sheet, place / f"{name}.ipynb")
        if edition == "student":
            (out / edition / "chapters").mkdir()
            for name in parameters.chapters(root):
                chapter = words.chapter(name)
                nbformat.write(chapter, out / edition / "chapters" / f"{name}.ipynb")
    return [
        Path(shutil.make_archive(out / each, "zip", out, each)) for each in editions
    ]


def draws_data(root, name):
    """Whether the data of a chapter's exercises are drawn, so that a student can have own ones."""
    return "\nSEED = " in Path(root, FOLDER, "checks", f"{name}.py").read_text("utf-8")


def _sheet(root, name, number, solved):
    """A notebook of exercises, its tasks numbered: with solutions, or with room for answers."""
    sheet = nbformat.read(Path(root, FOLDER, f"{name}.ipynb"), 4)
    ids, cells, task = {cell.id for cell in sheet.cells}, [], 0
    for cell in sheet.cells:
        tags, about = cell.metadata.get("tags", ()), cell.metadata
        if not solved and ("solution" in tags or re.search("^sol-|-worked$", cell.id)):
            continue
        cells.append(cell)
        # hints() stops at an answer that is not right
        cell.source = cell.source.replace(
            'check("', 'check.hints("' if solved else 'check("'
        )
        if "setup" in tags and not solved and draws_data(root, name):
            own = f'Chapter("{name}", student="")  # your name here gives data of your own'
            cell.source = cell.source.replace(f'Chapter("{name}")', own)
        if "exercise" in tags:
            task += 1
            head, of = (
                (f"Task {task}", f"{about['points']} points")
                if "points" in about
                else (f"Exercise {number[cell.id]}", f"{about['minutes']} minutes")
            )
            cell.source = re.sub("^## (.*)", rf"## {head}: \1 ({of})", cell.source)
            if not solved and ("points" in about or f"{cell.id}-check" not in ids):
                cells.append(
                    nbformat.v4.new_markdown_cell(SPACE, id=f"{cell.id}-words")
                )
    sheet.cells = cells
    return sheet
