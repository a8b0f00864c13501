"""Marking what a class handed in: `ppm collect`."""

import json
import os
import shutil
import zipfile
from decimal import Decimal
from fractions import Fraction

import nbformat
import numpy as np
import pandas as pd
import psutil
import pytest
from conftest import ROOT

from ppm_book.tools import collecting
from ppm_book.tools.answers import plain, restored, tell
from ppm_book.tools.classroom import make_editions
from ppm_book.tools.exercises import FOLDER
from ppm_book.tools.pages import Failed
from ppm_book.tools.parameters import Refused

FORGED = """import checks
checks._fault = lambda *a, **b: ""
print = sum = list = str = check = None
from IPython.display import display, Markdown
display(Markdown("✔ chain: right<Script>hide()</script>"))"""
SWALLOWS = """while True:
    try:
        while True:
            pass
    except:
        pass"""


# a program that outlives the kernel and its group, and a number to know it by
NAP = f"600.{os.getpid()}"
LEAVES = f"""import subprocess
subprocess.Popen(["sleep", "{NAP}"], start_new_session=True)"""


@pytest.fixture(scope="module")
def handed_out(tmp_path_factory):
    """A folder with the editions that students get."""
    folder = tmp_path_factory.mktemp("editions")
    make_editions(ROOT, folder, ["student", "assessment"])
    return folder


class Student:
    """Somebody who works on a sheet that was handed out."""

    def __init__(self, handed_out, sheet="strict_more", name=""):
        edition = "assessment" if sheet == "assessment" else "student"
        self.notebook = nbformat.read(
            handed_out / edition / "exercises" / f"{sheet}.ipynb", 4
        )
        self.worked = {
            cell.id.removesuffix("-worked"): cell.source
            for cell in nbformat.read(ROOT / FOLDER / f"{sheet}.ipynb", 4).cells
            if cell.id.endswith("-worked")
        }
        setup = self["setup"]
        setup.source = setup.source.replace('student=""', f'student="{name}"')
        setup.source = setup.source.replace("your name", name)

    def __getitem__(self, label):
        return next(cell for cell in self.notebook.cells if cell.id == label)

    def solve(self, *but):
        """Answer all tasks, but for some."""
        for label, source in self.worked.items():
            if label.removeprefix("ex-") not in but:
                self[f"{label}-answer"].source = source
        return self

    def answer(self, **answers):
        """Give some answers, by the names of the tasks."""
        for task, source in answers.items():
            self[f"ex-{task.replace('_', '-')}-answer"].source = source
        return self

    def change(self, how):
        """Do something else to the notebook."""
        how(self.notebook)
        return self

    def hand_in(self, file, version=4):
        """Write a file; one beside it has the programs that the student has."""
        file.parent.mkdir(parents=True, exist_ok=True)
        (file.parent / "checks.py").write_text("no Python", "utf-8")
        nbformat.write(nbformat.convert(self.notebook, version), file, version)


def _without_ids(notebook):
    """What a program of an older format leaves."""
    notebook.nbformat_minor = 4
    for cell in notebook.cells:
        del cell["id"]


def _without_checks(notebook):
    notebook.cells = [cell for cell in notebook.cells if "check(" not in cell.source]
    said = "**✔ marked: right**"
    notebook.cells.append(nbformat.v4.new_markdown_cell(said, id="read-ex-chain"))


def _with_lines_of_windows(notebook):
    _without_ids(notebook)
    for cell in notebook.cells:
        cell.source = cell.source.replace("\n", "\r\n")


def _foreign_and_large(notebook):
    notebook.metadata.kernelspec.name = "an-environment-of-mine"
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [nbformat.v4.new_output("stream", text="x" * 2_000_000)]


def broken_ones(handed_out, folder):
    """Folders or files that are not as they should be, each in its own way."""

    def student(**options):
        return Student(handed_out, **options)

    whole = student().solve()
    whole.hand_in(folder / "cut" / "a.ipynb")
    text = (folder / "cut" / "a.ipynb").read_text("utf-8")
    (folder / "cut" / "a.ipynb").write_text(text[:-300], "utf-8")
    (folder / "empty").mkdir()
    (folder / "empty" / "strict_more.ipynb").touch()
    (folder / "nothing").mkdir()
    whole.hand_in(folder / "three" / "strict_more.ipynb", 3)
    student().change(_foreign_and_large).solve().hand_in(
        folder / "Zoë" / "my [2] sheet.ipynb.txt"
    )
    shutil.copytree(folder / "Zoë", folder / "Zoë" / ".ipynb_checkpoints")
    student().answer(bounded_range="import os; os._exit(1)").hand_in(
        folder / "dies" / "a.ipynb"
    )
    student().solve("chain").answer(
        bounded_range=f"{student().worked['ex-bounded-range']}\nimport sys; sys.exit()",
        chain="delta_of_chain = input()",
    ).hand_in(folder / "asks" / "a.ipynb")
    # two versions, in a folder of a zip file
    for version, sheet in (("old", student()), ("new", student().solve())):
        sheet.hand_in(folder / "twice" / "work" / version / "strict_more.ipynb")
    shutil.make_archive(folder / "twice", "zip", folder / "twice")
    shutil.rmtree(folder / "twice")
    # the same name again, in the zip file that a folder came in
    shutil.make_archive(folder / "cut", "zip", folder / "empty")
    (folder / "other.7z").touch()
    with_password(folder / "locked.zip")
    # letters of an old computer, links, and a name with as many bytes as there can be
    old = folder / os.fsdecode(b"M\xfcller")
    long = f"{'ü' * 124}.ipynb"
    whole.hand_in(old / long)
    (old / "round").symlink_to(old)
    (old / "another.ipynb").symlink_to(old / long)
    student().solve().change(_with_lines_of_windows).hand_in(
        folder / "mark" / "a.ipynb"
    )
    text = (folder / "mark" / "a.ipynb").read_text("utf-8")
    (folder / "mark" / "a.ipynb").write_text(text, "utf-8-sig")
    student().solve().answer(chain=f"{LEAVES}\ndelta_of_chain = 2").hand_in(
        folder / "leaves" / "a.ipynb"
    )
    student().change(_without_checks).answer(
        bounded_range=FORGED, chain="x = 2"
    ).hand_in(folder / "forger" / "a.ipynb")


def with_password(file):
    """Write a zip file that says of itself that it has a password."""
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.ipynb", "{}")
    written = bytearray(file.read_bytes())
    # the flag stands in the head of the member and in the directory at the end
    written[6] |= 1
    written[written.rindex(b"PK\x01\x02") + 8] |= 1
    file.write_bytes(written)


def read(file):
    """A table as text, by student and file."""
    return pd.read_csv(file, dtype=str, keep_default_na=False).set_index(
        ["student", "file"]
    )


@pytest.mark.thorough
def test_each_of_a_class_has_a_row_and_a_bad_file_costs_one(
    handed_out, tmp_path, capsys
):
    folder = tmp_path / "autumn 25.26"
    broken_ones(handed_out, folder)
    Student(handed_out).solve().answer(chain="delta_of_chain = '7 %'").change(
        _without_ids
    ).hand_in(folder / "good" / "a.ipynb")
    before = {file: file.stat().st_mtime_ns for file in folder.rglob("*")}
    made = collecting.collect(folder, workers=2)
    assert made == tmp_path / "autumn 25.26-marked" / "grades.csv"
    assert {file: file.stat().st_mtime_ns for file in folder.rglob("*")} == before
    grades = read(made).droplevel("file")
    assert grades["note"].to_dict() | {"twice": ""} == {
        "cut": "cannot be read as a notebook: cut off, empty, or of another program",
        "empty": "cannot be read as a notebook: cut off, empty, or of another program",
        "nothing": "nothing found",
        "three": "",
        "Zoë": "",
        "asks": "",
        "forger": "",
        "good": "",
        "dies": "marked as far as it ran: it ended its kernel",
        "twice": "",
        "cut.zip": "cannot be read as a notebook: cut off, empty, or of another program",
        "other.7z": "neither a folder, a zip file nor a notebook",
        "locked": "locked.zip cannot be unpacked: it has a password",
        "M\\udcfcller": "",
        "mark": "",
        "leaves": "",
    }
    right = grades["answers"].drop("twice").to_dict()
    assert right == {
        "cut": "",
        "empty": "",
        "nothing": "",
        "three": "2 of 2 right",
        "Zoë": "2 of 2 right",
        "asks": "1 of 2 right",
        "forger": "0 of 2 right",
        "good": "1 of 2 right",
        "dies": "0 of 2 right",
        "cut.zip": "",
        "other.7z": "",
        "locked": "",
        "M\\udcfcller": "2 of 2 right",
        "mark": "2 of 2 right",
        "leaves": "1 of 2 right",
    }
    assert not [
        each
        for each in psutil.process_iter(["cmdline"])
        if NAP in (each.info["cmdline"] or ())
    ]
    assert list(grades.loc["twice", "answers"]) == ["2 of 2 right", "0 of 2 right"]
    assert set(grades.loc["twice", "note"]) == {"one of 2 with this sheet"}
    assert grades.loc["good", "chain"].startswith("“%” is no number")
    page = (made.parent / "pages" / "forger" / "a.ipynb.html").read_text("utf-8")
    assert page.count("<p><strong>✘ marked: no answer</strong></p>") == 2
    # what she wrote herself has no bar beside it
    assert page.count('id="cell-id=read-ex-') == 2 and "✔ marked: right" in page
    assert f"{collecting.BAR}</head>" in page
    # her code is shown, and none of it runs
    assert page.count("hide()") == 1 and "<script>hide()" not in page.lower()
    # names and marks are the teacher's alone
    assert not any(
        file.stat().st_mode & 0o077 for file in (made.parent, made.parent / "pages")
    )
    assert f"/{len(grades)} good strict_more: 1 of 2 right\n" in capsys.readouterr().err


def test_a_loop_that_swallows_interrupts_is_stopped(handed_out, tmp_path):
    Student(handed_out).answer(chain=SWALLOWS).hand_in(
        tmp_path / "in" / "hangs" / "a.ipynb"
    )
    # one that can be stopped costs its cell, and the row says so
    loop = Student(handed_out).answer(bounded_range="while True: pass", chain="2")
    loop.hand_in(tmp_path / "in" / "loops" / "a.ipynb")
    (tmp_path / "in" / "nothing").mkdir()
    grades = read(collecting.collect(tmp_path / "in", seconds=8))
    hangs, loops, nothing = grades["note"]
    assert hangs.startswith("marked as far as it ran: stopped after 8 s")
    assert "cells stopped after 2 s: " in loops and nothing == "nothing found"
    assert list(grades["answers"]) == ["0 of 2 right", "0 of 2 right", ""]


def test_an_assessment_is_marked_with_the_students_own_data(handed_out, tmp_path):
    solved = Student(handed_out, "assessment", "Ada").solve(
        "undecided", "two-recipients"
    )
    solved.answer(
        two_recipients="two_errors = [1, 2]",
        share_and_interval="from scipy import stats\nshare_low_high = [0.1, ..., ...]",
    )
    solved["ex-prove-capped-words"].source = "By the lemma."
    solved.hand_in(tmp_path / "in" / "Ada_1_file" / "assessment.ipynb")
    # as a platform gives them: one zip file of all folders
    shutil.make_archive(tmp_path / "all", "zip", tmp_path / "in")
    made = collecting.collect(tmp_path / "all.zip", tmp_path / "out")
    (row,) = read(made).to_dict("records")
    assert row["name"] == "Ada" and row["answers"] == "4 of 7 right"
    points = {column: entry for column, entry in row.items() if ", of " in column}
    assert sum(int(column.partition(", of ")[2]) for column in points) == 100
    assert points["weigh-and-bound: number, of 6"] == "6"
    assert points["undecided: number, of 5"] == "0"
    # part of them may be given
    assert points["share-and-interval: number, of 7"] == ""
    assert row["share-and-interval"] == "a part of it is missing"
    assert (
        points["two-recipients: number, of 10"]
        == points["prove-capped: words, of 15"]
        == ""
    )
    page = (made.parent / "pages" / "Ada_1_file" / "assessment.ipynb.html").read_text(
        "utf-8"
    )
    assert "By the lemma." in page and page.count("marked: right") == 4
    # nothing that was typed into a table is lost
    with pytest.raises(Refused, match="exists"):
        collecting.collect(tmp_path / "all.zip", tmp_path / "out")


def test_a_folder_without_a_sheet_is_an_error_and_leaves_nothing(tmp_path):
    (tmp_path / "in" / "Ada").mkdir(parents=True)
    with zipfile.ZipFile(tmp_path / "in" / "Bo.zip", "w") as archive:
        for chapter in ROOT.glob("notebooks/*.ipynb"):
            archive.write(chapter, chapter.name)
    with pytest.raises(Failed, match="no notebook with exercises"):
        collecting.collect(tmp_path / "in")
    with pytest.raises(Refused, match="no such folder"):
        collecting.collect(tmp_path / "out")
    with_password(tmp_path / "all.zip")
    with pytest.raises(Failed, match="^all.zip cannot be unpacked: it has a password$"):
        collecting.collect(tmp_path / "all.zip")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["all.zip", "in"]


@pytest.mark.parametrize(
    "answer",
    [
        3,
        "1, 2",
        None,
        [1, "b"],
        {"a", "b"},
        [[1.0, float("inf")], [2.0, 3.0]],
    ],
)
def test_an_answer_comes_out_of_a_kernel_as_it_is(answer):
    assert restored(json.loads(json.dumps(plain(answer)))) == answer
    assert callable(restored(plain(print)))
    assert type(restored(plain({"a": 1}))).__name__ == "dict"
    assert restored(plain(pd.DataFrame({"a": [1, 2]}))) == [[1], [2]]
    assert restored(plain(np.array(["1", "b"]))) == ["1", "b"]


class Refuses:
    """What cannot be read at all, though it stands in the place of an answer."""

    def __array__(self, *given, **options):
        raise ValueError


HOLDS_ITSELF = []
HOLDS_ITSELF.append(HOLDS_ITSELF)


@pytest.mark.parametrize(
    "answer, told",
    [
        (Fraction(1, 4), 0.25),
        ([Decimal("0.5"), np.float32(2)], [0.5, 2.0]),
        ([10**6000], {"type": "list"}),
        (3j, {"type": "complex"}),
        (Refuses(), {"type": "Refuses"}),
        (HOLDS_ITSELF, {"type": "list"}),
    ],
)
def test_every_number_comes_out_and_of_anything_else_its_type(
    monkeypatch, answer, told
):
    shown = []
    monkeypatch.setattr("ppm_book.tools.answers.publish_display_data", shown.append)
    group = "Ada Lovelace, " * 20
    tell({"answer": answer, "student": group}, "answer")
    assert json.loads(shown[0]["text/plain"]) == {"student": group, "answer": told}
