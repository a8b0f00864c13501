"""Mark what a class handed in, with the checks and answers of this repository.

Every notebook runs anew in a kernel of its own, in a copy of what lies beside it, and under a hard
limit. Its answers come back as plain data and are checked in this process, where nothing of a
student's ever runs: what its own cells say of themselves counts for nothing.
"""

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
import zipfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

import bleach
import nbformat
import pandas as pd
import psutil
from nbclient import NotebookClient
from nbclient.exceptions import DeadKernelError
from nbconvert import HTMLExporter

from ppm_book.chapters import running
from ppm_book.tools.answers import restored
from ppm_book.tools.classroom import ASSESSMENT
from ppm_book.tools.exercises import FOLDER
from ppm_book.tools.pages import Failed
from ppm_book.tools.parameters import Refused

ORIGINALS = running.ROOT / FOLDER
# how cells of a task are named after it, and the heading that an edition gives it
PARTS = ("", "-answer", "-worked", "-check", "-words")
HEADING = re.compile(
    r"## (?:(?:Task|Exercise) [\w.]+: )?(.*?)(?: \(\d+ \w+\))?\r?$", re.M
)
CHECK = re.compile(r'check\("([\w-]+)", (\w+)\)')
READ = "read-"
# what of a student's words and output is shown as HTML
TAGS = {
    *bleach.ALLOWED_TAGS,
    *"p h1 h2 h3 h4 h5 h6 pre div span br hr sub sup".split(),
    *"table thead tbody tr th td".split(),
}
# characters of a cell's output that a page shows at most
SHOWN = 1_000_000
# a bar beside what a check says: a student can write the same words, but not this
BAR = f'<style>[id^="cell-id={READ}"] {{ border-left: 0.6em solid #06c }}</style>'
# a flag of files in a zip file
ENCRYPTED = 1
RIGHT, NO_ANSWER = "right", "no answer"
# runs in the student's kernel, where every name may have another meaning
TELL = '__import__("ppm_book.tools.answers", fromlist=["tell"]).tell(globals(), {!r})'


@dataclass
class Task:
    """A task of a sheet; one without a check has no ``work`` and no ``variable``."""

    label: str
    heading: str
    points: int = 0
    number: int = 0
    work: str = ""
    variable: str = ""


@dataclass
class Handed:
    """One notebook of a student, or the reason why there is none: what a row of the table says."""

    student: str
    file: Path | None = None
    place: str = ""
    note: str = ""
    sheet: str = ""
    notebook: dict | None = None
    name: str = ""
    verdicts: dict = field(default_factory=dict)

    @property
    def right(self):
        """How many answers are right."""
        right = [*self.verdicts.values()].count(RIGHT)
        return f"{right} of {len(self.verdicts)} right" if self.verdicts else ""

    def add_note(self, note):
        """Say one thing more of it."""
        self.note = "; ".join(filter(None, (self.note, note)))


def collect(folder, output=None, *, seconds=240.0, workers=1):
    """Mark the notebooks of a folder, and return the file with the table.

    Parameters
    ----------
    folder : path
        A folder or a zip file, with a folder, a zip file or a notebook for each student.
    output : path, optional
        A new folder, by default ``<folder>-marked``, for ``grades.csv`` and ``pages``.
    seconds : float
        After so many seconds a notebook is stopped, and a cell after a quarter of them.
    workers : int
        How many notebooks run side by side.

    Raises
    ------
    Refused
        If an argument is not accepted, before anything runs.
    Failed
        If there is no notebook with exercises of this book.
    """
    folder = Path(folder).resolve()
    # the name of a folder may have dots
    name = folder.name if folder.is_dir() else folder.stem
    output = Path(output or folder.with_name(f"{name}-marked"))
    if not seconds > 0 or workers < 1:
        raise Refused("--seconds must be above 0, and --workers 1 or more")
    if not folder.is_dir() and not zipfile.is_zipfile(folder):
        raise Refused(
            f"{folder}: there is no such folder, and no zip file of this name"
        )
    if output.exists():
        raise Refused(
            f"{output} exists: give another --output, or remove it and what was typed "
            "into its table"
        )
    sheets, kernels = sheets_of(), {}
    with running.own_kernel() as place, ThreadPoolExecutor(workers) as side_by_side:
        found = list(handed_in(folder, place / "unpacked", sheets))
        if not any(each.sheet for each in found):
            raise Failed(f"{folder}: no notebook with exercises of this book")
        # names and marks of students
        (output / "pages").mkdir(mode=0o700, parents=True)
        output.chmod(0o700)
        jobs = [
            side_by_side.submit(
                _run, each, place / str(number), sheets, seconds, kernels
            )
            for number, each in enumerate(found)
        ]
        try:
            for number, (each, job) in enumerate(
                zip(found, jobs, strict=True), start=1
            ):
                if executed := job.result():
                    _mark(each, executed, sheets[each.sheet], output / "pages")
                _write(table(found[:number], sheets, found), output / "grades.csv")
                told = "; ".join(filter(None, (each.right, each.note)))
                print(
                    _readable(
                        f"{number}/{len(found)} {each.student} {each.sheet}: {told}"
                    ),
                    file=sys.stderr,
                    flush=True,
                )
        finally:
            # after an interrupt nothing goes on, not what is just beginning either
            side_by_side.shutdown(wait=False, cancel_futures=True)
            while any(job.running() for job in jobs):
                for group in [*kernels.values()]:
                    _kill(group)
                time.sleep(0.1)
    return output / "grades.csv"


# ------------------------------------------------------------------------- what was handed in


def sheets_of():
    """The tasks of every sheet of exercises by their labels, the assessment's among them."""
    sheets = {}
    for file in sorted(ORIGINALS.glob("*.ipynb")):
        tasks = sheets[file.stem] = {}
        for cell in nbformat.read(file, 4).cells:
            about = cell.metadata
            if "exercise" in about.get("tags", ()):
                tasks[cell.id] = Task(
                    cell.id,
                    HEADING.match(cell.source)[1],
                    about.get("points", 0),
                    about.get("number", 0),
                )
            if "check" in about.get("tags", ()):
                task = tasks[cell.id.removesuffix("-check")]
                task.work, task.variable = CHECK.match(cell.source).groups()
    return sheets


def handed_in(folder, unpacked, sheets):
    """What there is of each student, in order: one for each sheet, or one that says why none."""
    if folder.is_file():
        folder = _unzip(folder, unpacked / "all")
    # a zip file of all students, as a platform gives it
    while len(entries := _seen(folder)) == 1 and _is_zip(entries[0]):
        folder = _unzip(entries[0], unpacked / entries[0].stem)
    names = [each.name if each.is_dir() else each.stem for each in entries]
    for entry, name in zip(entries, names, strict=True):
        # a zip file may lie beside the folder that it was unpacked to
        student = name if names.count(name) == 1 else entry.name
        if not (entry.is_dir() or _is_zip(entry) or _is_notebook(entry)):
            yield Handed(entry.name, note="neither a folder, a zip file nor a notebook")
            continue
        try:
            files = list(_notebooks(entry, unpacked / "students" / entry.name))
        except Failed as error:
            yield Handed(student, note=str(error))
            continue
        each = [_recognised(student, file, place, sheets) for file, place in files]
        known = [one for one in each if one.sheet or one.note]
        for one in known:
            if versions := [other for other in known if other.sheet == one.sheet != ""][
                1:
            ]:
                one.note = f"one of {len(versions) + 1} with this sheet"
        other = "no exercises of this book in it" if files else "nothing found"
        yield from known or [Handed(student, note=other)]


def _seen(folder):
    """What lies in a folder, without what programs hide there."""
    return sorted(
        each for each in folder.iterdir() if not re.match(r"\.|__", each.name)
    )


def _own(folder):
    """The same without links, which may lead anywhere, or round in circles."""
    return [each for each in _seen(folder) if not each.is_symlink()]


def _is_zip(file):
    return file.is_file() and file.suffix.lower() == ".zip"


def _is_notebook(file):
    # browsers append .txt or .json
    return file.is_file() and ".ipynb" in file.name.lower()


def _unzip(file, folder):
    """Unpack a zip file, or say in one line why it cannot be done."""
    try:
        with zipfile.ZipFile(file) as archive:
            if any(each.flag_bits & ENCRYPTED for each in archive.infolist()):
                raise Failed("it has a password")
            archive.extractall(folder)
    except Exception as error:
        raise Failed(f"{file.name} cannot be unpacked: {error}") from error
    return folder


def _notebooks(entry, unpacked):
    """The notebooks in a folder, a zip file, or zip files in a folder, and their places there."""
    if _is_zip(entry):
        entry = _unzip(entry, unpacked)
    if entry.is_file():
        yield entry, entry.name
        return
    for file in _own(entry):
        if file.is_dir() or _is_zip(file):
            inside = _notebooks(file, unpacked / "inside" / file.name)
            yield from ((each, f"{file.name}/{place}") for each, place in inside)
        elif _is_notebook(file):
            yield file, file.name


def _recognised(student, file, place, sheets):
    """A notebook, its sheet known by its cells; their ids are lost where a program drops them."""
    handed = Handed(student, file, place)
    try:
        with warnings.catch_warnings(action="ignore"):
            # editors of Windows save it in another encoding, or with a mark of it
            data = file.read_bytes()
            text = data.decode(json.detect_encoding(data))
            # with ids of its own, if it came without
            handed.notebook = nbformat.v4.upgrade(nbformat.reads(text, 4))
        cells = {
            name: _places(handed.notebook, tasks) for name, tasks in sheets.items()
        }
    except Exception:
        handed.note = (
            "cannot be read as a notebook: cut off, empty, or of another program"
        )
        return handed
    best = max(cells, key=lambda name: len(cells[name]))
    handed.sheet = best if cells[best] else ""
    return handed


def _places(notebook, tasks):
    """The place of the last cell of each task; a cell without a name belongs to the one before."""
    known = {f"{label}{part}": label for label in tasks for part in PARTS}
    known |= {task.heading: label for label, task in tasks.items()}
    label, last = None, {}
    for place, cell in enumerate(notebook.cells):
        heading = HEADING.match(cell.source)
        label = known.get(cell.id) or known.get(heading and heading[1]) or label
        if label:
            last[label] = place
    return last


# ---------------------------------------------------------------------------------- running it


def _run(handed, copy, sheets, seconds, kernels):
    """Run a student's notebook in a copy of its folder; return it with the answers it told."""
    if not handed.sheet:
        return None
    try:
        notebook = _prepared(handed, copy, sheets[handed.sheet])
        client = _Client(
            notebook,
            kernel_name="python3",
            allow_errors=True,
            shutdown_kernel="immediate",
            # a cell that takes longer is interrupted, and the others run
            timeout=seconds / 4,
            interrupt_on_timeout=True,
            record_timing=False,
            # kernels warn that they talk over TCP, on this machine
            extra_arguments=["--IPKernelApp.log_level=CRITICAL"],
            resources={"metadata": {"path": str(copy)}},
        )
        stops = threading.Timer(seconds, lambda: _kill(kernels.get(copy, 0)))

        def starts(notebook):
            kernels[copy] = client.km.provisioner.pgid
            stops.start()

        client.on_notebook_start = starts
        try:
            variables = os.environ | {"IPYTHONDIR": str(copy)}
            quiet = dict.fromkeys(("stdout", "stderr"), subprocess.DEVNULL)
            asyncio.run(client.async_execute(env=variables, **quiet))
        except DeadKernelError:
            late = stops.finished.is_set()
            why = f"stopped after {seconds:g} s" if late else "it ended its kernel"
            handed.add_note(f"marked as far as it ran: {why}")
        finally:
            stops.cancel()
            _kill(kernels.pop(copy, 0))
            _end_others(copy)
            # what it wrote may be large
            shutil.rmtree(copy, ignore_errors=True)
    except Exception as error:
        handed.add_note(f"cannot be run: {type(error).__name__}")
        return None
    if stopped := sum(
        "KeyboardInterrupt" in str(cell.get("outputs")) for cell in notebook.cells
    ):
        handed.add_note(f"cells stopped after {seconds / 4:g} s: {stopped}")
    return notebook


class _Client(NotebookClient):
    """A client that keeps of a cell's output what a page can show."""

    def __init__(self, *given, **options):
        super().__init__(*given, **options)
        self.log.setLevel("CRITICAL")
        self.shown = Counter()

    def output(self, outs, msg, display_id, cell_index):
        self.shown[cell_index] += len(str(msg["content"]))
        if self.shown[cell_index] <= SHOWN:
            return super().output(outs, msg, display_id, cell_index)
        return None


def _kill(group):
    """End a kernel and the group of its processes, if there is anything left."""
    with contextlib.suppress(ProcessLookupError):
        if group:
            os.killpg(group, signal.SIGKILL)


def _end_others(copy):
    """End what left the group of a notebook's kernel; its environment still names the copy."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("IPYTHONDIR") == str(copy):
                process.kill()


def _prepared(handed, copy, tasks):
    """A copy of a notebook that tells its answers, beside what it needs to run."""
    copy.mkdir()
    for file in _own(handed.file.parent):
        if file.is_file() and not (_is_notebook(file) or _is_zip(file)):
            shutil.copy(file, copy)
    if handed.sheet == ASSESSMENT:
        shutil.copy(ORIGINALS / "assessment_data.py", copy)
    else:
        (copy / "checks").mkdir()
        for name in ("__init__", handed.sheet):
            shutil.copy(ORIGINALS / "checks" / f"{name}.py", copy / "checks")
    notebook, places = handed.notebook, _places(handed.notebook, tasks)
    for cell in notebook.cells:
        if cell.id.startswith(READ):
            cell.id = f"not-{cell.id}"[:64]
        if cell.cell_type == "code":
            cell.outputs = []
    # the last one first, so that the places of the others stay
    for label in sorted(places, key=places.get, reverse=True):
        if tasks[label].work:
            cell = nbformat.v4.new_code_cell(
                TELL.format(tasks[label].variable), id=READ + label
            )
            notebook.cells.insert(places[label] + 1, cell)
    return notebook


# --------------------------------------------------------------------------------- marking it


def _mark(handed, notebook, tasks, pages):
    """Check the answers that an executed notebook told, and make its page."""
    try:
        told = {}
        for cell in notebook.cells:
            if cell.id.startswith(READ) and cell.outputs and "data" in cell.outputs[-1]:
                told[cell.id.removeprefix(READ)] = json.loads(
                    cell.outputs[-1].data["text/plain"]
                )
        handed.name = next((str(each["student"]) for each in told.values()), "")
        with patch("sys.path", [str(ORIGINALS), *sys.path]):
            check = import_module("checks").Chapter(handed.sheet, handed.name)
        for task in filter(lambda task: task.work, tasks.values()):
            answer = restored(told.get(task.label, {"answer": None})["answer"])
            verdict = check(task.work, answer).partition(": ")[2]
            if verdict.startswith(NO_ANSWER):
                begun = isinstance(answer, list) and any(
                    each is not None for each in answer
                )
                # which may be worth some of the points
                verdict = "a part of it is missing" if begun else NO_ANSWER
            handed.verdicts[task.work] = verdict
        _page(handed, notebook, tasks, pages)
    except Exception as error:
        handed.add_note(f"cannot be marked: {type(error).__name__}")


def _page(handed, notebook, tasks, pages):
    """A page with the code and the words of a student, and with what the checks say."""
    for place, cell in enumerate(notebook.cells):
        if cell.id.startswith(READ):
            verdict = handed.verdicts[tasks[cell.id.removeprefix(READ)].work]
            words = f"**{'✔' if verdict == RIGHT else '✘'} marked: {verdict}**"
            notebook.cells[place] = nbformat.v4.new_markdown_cell(words, id=cell.id)
    place = pages / handed.student / handed.place
    # a name has 255 bytes at most
    page = place.with_name(f"{os.fsdecode(os.fsencode(place.name)[:250])}.html")
    page.parent.mkdir(parents=True, exist_ok=True)
    exporter = HTMLExporter(sanitize_html=True)
    # its own lets no paragraph through
    exporter.register_filter("clean_html", _harmless)
    html = exporter.from_notebook_node(notebook)[0].replace(
        "</head>", f"{BAR}</head>", 1
    )
    page.write_text(html, "utf-8", "backslashreplace")


def _harmless(html):
    """A part of a page without what would run, or hide a verdict, in the teacher's browser."""
    text = html.decode() if isinstance(html, bytes) else html
    text = re.sub(r"<(style|script)\b.*?</\1>", "", text, flags=re.S | re.I)
    return bleach.clean(text, TAGS, attributes={"*": ["class"]}, strip=True)


def table(rows, sheets, found):
    """What is known of the rows so far, with the columns of all sheets that were found."""
    tasks = {
        task.label: task
        for name in sheets
        if any(each.sheet == name for each in found)
        for task in sheets[name].values()
        if task.work or task.points
    }
    lines = []
    for each in rows:
        line = {
            "student": each.student,
            "sheet": each.sheet,
            "file": each.place,
            "name": each.name,
            "note": each.note,
            "answers": each.right,
        }
        for task in tasks.values():
            verdict = each.verdicts.get(task.work, "")
            if task.work:
                line[task.work] = verdict
            if task.number:
                # part of them is for the teacher to give
                points = {RIGHT: str(task.number), NO_ANSWER: "0"}.get(verdict, "")
                line[f"{task.work}: number, of {task.number}"] = points
            if task.points:
                words = task.label.removeprefix("ex-")
                line[f"{words}: words, of {task.points - task.number}"] = ""
        lines.append(
            {column: _readable(entry) for column, entry in line.items()}
            | {"remarks": ""}
        )
    return pd.DataFrame(lines)


def _readable(text):
    """A text that can be written, whatever bytes a file's name or an answer has."""
    return text.encode("utf-8", "backslashreplace").decode()


def _write(grades, file):
    """Write a table, whole or not at all, so that a spreadsheet knows its letters."""
    grades.to_csv(part := file.with_suffix(".part"), index=False, encoding="utf-8-sig")
    part.replace(file)
