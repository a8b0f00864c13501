"""What is handed out to a class, and what stays with its teacher.

The exercises of a chapter are handed out as one file. Its first cell unpacks the data, the checks
and the library, so that it runs wherever NumPy, SciPy, pandas and xarray are installed.
"""

import base64
import io
import lzma
import re
import shutil
import sys
import tarfile
from functools import cache
from pathlib import Path

import nbformat
from nbconvert.preprocessors import ExecutePreprocessor

import ppm
import ppm_book
from ppm_book.chapters import running
from ppm_book.chapters.sentences import asked_numbers
from ppm_book.tools import marking, parameters
from ppm_book.tools.exercises import FOLDER, chapters, numbers, template
from ppm_book.tools.plain import Words, numbers_of

ASSESSMENT = "assessment"
SPACE = "*Your answer:*"
FIRST_CELL = """\
Run the first two cells. The first one is folded: it carries the data, the checks and the library, so
that this file is all you need. You may run it again whenever you like. Then put your answer in the
place of three dots, run that cell, and run the check below it: it says whether the answer is right
or, if not, in what respect it is wrong."""
DO = "do this one"
NO_BOOK = (
    "a dash in place of each number: make book first, of the data that come with it"
)
# edition -> files beside the notebooks that it must not have
WITHOUT = {
    "student": ["assessment*", "checks"],
    "assessment": ["checks", "README.md"],
    "instructor": [],
}
EDITIONS = *WITHOUT, "nbgrader"


def make_editions(root, out=None, editions=EDITIONS):
    """Make editions anew in ``out``, by default ``_build/classroom``; return their zip files.

    *student* has plain chapters, and exercises without solutions; *assessment* has the tasks that
    are graded, without theirs; *instructor* has all exercises and tasks with solutions, run;
    *nbgrader* is a course folder, from which nbgrader makes what students get, and marks it.
    """
    root, out = Path(root), Path(out or Path(root, "_build", "classroom"))
    words, number, names = Words(root), numbers(root), chapters(root)
    sheets = {
        "student": names,
        "assessment": [ASSESSMENT],
        "instructor": [*names, ASSESSMENT],
    }
    grades = out / "nbgrader" / "gradebook.db"
    if grades.exists():
        raise parameters.Refused(
            f"{grades.parent} has grades and would be made anew: move it to another place"
        )
    shutil.rmtree(out, ignore_errors=True)
    for edition in editions:
        if edition == "nbgrader":
            _course(root, out / edition, words, number)
            continue
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
            nbformat.write(sheet, place / _file(name))
        if edition == "student":
            _write_chapters(words, out / edition / "chapters")
    return [
        Path(shutil.make_archive(out / each, "zip", out, each)) for each in editions
    ]


def _write_chapters(words, folder):
    """Write the chapters in their plain edition, with the numbers of the built book."""
    folder.mkdir()
    book = parameters.of_book(words.root)
    told = f"the numbers of the profile {book.name}" if book else NO_BOOK
    print(f"student: chapters, with {told}", file=sys.stderr)
    for name in parameters.chapters(words.root):
        file = folder / f"{name}.ipynb"
        executed = nbformat.read(book / name / file.name, 4) if book else None
        nbformat.write(words.chapter(name, executed), file)
        asked = asked_numbers(nbformat.read(words.root / "notebooks" / file.name, 4))
        if executed and (lacking := asked - numbers_of(executed).keys()):
            told = f"a dash for what the built book lacks: {', '.join(sorted(lacking))}"
            print(f"student: {name} has {told}", file=sys.stderr)


def stage_downloads(root, folder):
    """Write the exercises of each chapter, as one file that needs no other, for its page.

    They are plain notebooks for students, without solutions.
    """
    words, number = Words(root), numbers(root)
    folder.mkdir(parents=True, exist_ok=True)
    for name in chapters(root):
        sheet = _sheet(root, name, number, solved=False)
        words.plain(sheet, name)
        nbformat.write(sheet, folder / _file(name))


def _file(name):
    """The file of a sheet, by which nbgrader knows it: the same in all editions and on pages."""
    return f"{name}.ipynb" if name == ASSESSMENT else f"{name}_exercises.ipynb"


def _course(root, folder, words, number):
    """Write a course folder of nbgrader: every sheet with what is not for students in regions."""
    for name in (*chapters(root), ASSESSMENT):
        place = folder / "source" / name
        place.mkdir(parents=True)
        sheet = _sheet(root, name, number, solved=False)
        original = nbformat.read(Path(root, FOLDER, f"{name}.ipynb"), 4)
        unpacked = ""
        if name == ASSESSMENT:
            shutil.copy(Path(root, FOLDER, "assessment_data.py"), place)
            packed = _packed_checks(root, name)
            unpacked = template("unpack").render(packed=packed)
        marking.add_solutions(sheet, original, unpacked)
        words.plain(sheet, name)
        nbformat.write(sheet, place / _file(name))
    settings = template("nbgrader_config").render() + "\n"
    Path(folder, "nbgrader_config.py").write_text(settings, "utf-8")


def unpacking(root, name):
    """A cell that makes the checks of a chapter and the library ready; notebooks fold it."""
    packed = [_packed_checks(root, name), _library(), _audits()]
    # on one line, so that a program that does not fold the cell shows little of it
    source = template("unpack").render(packed=" ".join(packed))
    # folded in JupyterLab, and in Colab
    folded = {"jupyter": {"source_hidden": True}, "cellView": "form"}
    return nbformat.v4.new_code_cell(source, id="unpack", metadata=folded)


def _packed_checks(root, name):
    checks = [Path(root, FOLDER, "checks", f"{each}.py") for each in ("__init__", name)]
    return _packed(checks, Path(root, FOLDER))


@cache
def _library():
    place = Path(ppm.__file__).parent
    files = sorted(file for file in place.rglob("*") if file.suffix in (".py", ".toml"))
    return _packed(files, place.parent)


@cache
def _audits():
    """The book's audits, which need nothing else of its package."""
    place = Path(ppm_book.__file__).parent
    files = [place / "__init__.py", *sorted(Path(place, "audits").glob("*.py"))]
    return _packed(files, place.parent)


def _packed(files, place):
    """Files as text, the same each time: their owners and dates are left out."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for file in files:
            content = file.read_bytes()
            about = tarfile.TarInfo(file.relative_to(place).as_posix())
            about.size = len(content)
            archive.addfile(about, io.BytesIO(content))
    return base64.b64encode(lzma.compress(buffer.getvalue(), preset=9)).decode()


def draws_data(root, name):
    """Whether the data of a chapter's exercises are drawn, so that a student can have own ones."""
    return "\nSEED = " in Path(root, FOLDER, "checks", f"{name}.py").read_text("utf-8")


def _sheet(root, name, number, solved):
    """A notebook of exercises, its tasks numbered: with solutions, or with room for answers."""
    sheet = nbformat.read(Path(root, FOLDER, f"{name}.ipynb"), 4)
    ids, cells, task = {cell.id for cell in sheet.cells}, [], 0
    for cell in sheet.cells:
        tags, about = cell.metadata.get("tags", ()), cell.metadata
        if not solved and marking.is_hidden(cell):
            cell.source = marking.LATER
        elif not solved and (
            "solution" in tags or re.search("^sol-|-worked$", cell.id)
        ):
            continue
        cells.append(cell)
        # hints() stops at an answer that is not right
        cell.source = cell.source.replace(
            'check("', 'check.hints("' if solved else 'check.points("'
        )
        if cell.id == "title" and not solved and name != ASSESSMENT:
            cell.source += f"\n\n{FIRST_CELL}{_first_tasks(sheet)}"
            cells.append(unpacking(root, name))
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
            of += f": {DO}" * ("do" in about)
            cell.source = re.sub("^## (.*)", rf"## {head}: \1 ({of})", cell.source)
            if not solved and ("points" in about or f"{cell.id}-check" not in ids):
                cells.append(
                    nbformat.v4.new_markdown_cell(SPACE, id=f"{cell.id}-words")
                )
    sheet.cells = cells
    if not solved:
        marking.add_metadata(sheet)
    return sheet


def _first_tasks(sheet):
    """What the words mean that mark the most important tasks; nothing where there are none."""
    minutes = [
        cell.metadata["minutes"] for cell in sheet.cells if "do" in cell.metadata
    ]
    if len(minutes) == 1:
        return f" If you have time for one task only, take the one that says *{DO}*."
    told = (
        f" The tasks that say *{DO}* hold what the chapter teaches, and take {sum(minutes)} "
        "minutes together."
    )
    return told if minutes else ""
