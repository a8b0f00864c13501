"""Marking a class with nbgrader: what its metadata say, and the points that answers get."""

import ast
import copy
import csv
import io
import os
import re
import shutil
import subprocess
import sys
import venv
import warnings
import zipfile
from contextlib import redirect_stderr, redirect_stdout

import nbformat
import pytest
from conftest import ROOT

from ppm_book.tools import classroom
from ppm_book.tools.exercises import chapters
from ppm_book.tools.parameters import Refused

SHEETS = [*chapters(ROOT), "assessment"]
# points that a machine gives
NUMBERS = {"assessment": 44}
WRONG = 987.5


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with nbgrader's course, the assessment, and the exercises that pages offer."""
    folder = tmp_path_factory.mktemp("classroom")
    classroom.make_editions(ROOT, folder, ["assessment", "nbgrader"])
    classroom.stage_downloads(ROOT, folder / "assessment" / "exercises")
    return folder


def sheet_of(made, name):
    """What students get, by its page or in the edition."""
    return nbformat.read(made / "assessment" / "exercises" / classroom._file(name), 4)


def source_of(made, name):
    """What nbgrader makes it from."""
    return nbformat.read(made / "nbgrader" / "source" / name / classroom._file(name), 4)


def answered(sheet, how, source):
    """A sheet of a student whose answers are right, wrong or left empty."""
    sheet, solved = copy.deepcopy(sheet), {cell.id: cell for cell in source.cells}
    for cell in sheet.cells:
        if cell.id.endswith("-answer") and how == "right":
            cell.source = solved[cell.id].source
        elif cell.id.endswith("-answer") and how == "wrong":
            cell.source += (
                f"\n{cell.source.splitlines()[-1].partition(' = ')[0]} = {WRONG}"
            )
    return sheet


@pytest.mark.parametrize("name", SHEETS)
def test_metadata_keep_the_rules_of_nbgraders_schema(made, name):
    types = dict.fromkeys(("grade", "locked", "solution"), bool)
    types |= {"schema_version": int, "grade_id": str}
    for sheet in (sheet_of(made, name), source_of(made, name)):
        about = {c.id: c.metadata.get("nbgrader") for c in sheet.cells}
        about = {label: found for label, found in about.items() if found}
        for cell in sheet.cells:
            if cell.id not in about:
                continue
            found = dict(about[cell.id])
            points = found.pop("points", None)
            assert {key: type(value) for key, value in found.items()} == types
            assert found["schema_version"] == 3
            assert re.fullmatch(r"[\w-]+", found["grade_id"], re.ASCII)
            assert (points is not None) == found["grade"]
            if cell.cell_type == "markdown":
                assert found["grade"] == found["solution"]
            else:
                assert found["locked"] != found["solution"]
        ids = [found["grade_id"] for found in about.values()]
        assert len(ids) == len({*ids})
        # a sheet that is made anew is known by the same ids
        assert ids == [*about]
        checked = [c.id for c in sheet.cells if c.id.endswith("-check")]
        assert checked and all(
            about[label]["grade"]
            and about[label]["locked"]
            and about[label.replace("-check", "-answer")]["solution"]
            for label in checked
        )
        machine = [c for c in about.values() if c["grade"] and not c["solution"]]
        points = sum(cell["points"] for cell in machine)
        assert points == NUMBERS.get(name, len(checked))


def test_points_of_words_and_numbers_are_those_of_the_assessment(made):
    cells = sheet_of(made, "assessment").cells
    points = {c.id: c.metadata.get("nbgrader", {}).get("points", 0) for c in cells}
    assert sum(points.values()) == 100
    words = sum(of for label, of in points.items() if label.endswith("-words"))
    assert words == 100 - NUMBERS["assessment"]
    # and wherever their share is told
    for file, times in {
        "book/teaching.md": 2,
        "notebooks/exercises/assessment.ipynb": 1,
        "notebooks/exercises/assessment_readme.md": 1,
    }.items():
        told = re.findall(
            r"(\S+) (?:of the )?points are for (?:the )?words",
            (ROOT / file).read_text("utf-8"),
        )
        assert told == [str(words)] * times, file


@pytest.mark.parametrize("name", SHEETS)
def test_what_students_get_is_the_source_without_its_regions(made, name):
    region = r"\n### BEGIN (SOLUTION|HIDDEN TESTS)\n.*\n### END \1$"
    sheet, source = sheet_of(made, name), source_of(made, name)
    for cell, given in zip(source.cells, sheet.cells, strict=True):
        kept = re.sub(region, "", cell.source, flags=re.S)
        about = given.metadata.get("nbgrader", {})
        assert cell.metadata == given.metadata
        if cell.cell_type == "markdown" and about:
            # the model answer, with its rubric
            assert given.source == "*Your answer:*" != kept and "Points" in kept
        else:
            assert kept == given.source
        hidden = about.get("grade") and name == "assessment" or about.get("solution")
        assert bool(hidden) == (cell.source != given.source)
    if name == "assessment":
        assert not re.search(r"points\(|Chapter", str(sheet))


def points_of(cell, space):
    """Points of a check and what it prints, by the rules of nbgrader's `determine_grade`."""
    most = float(cell.metadata.nbgrader.points)
    # what the first check of the assessment unpacks is on the path of tests
    source = re.sub(r"# @title.*(?=from checks)", "", cell.source, flags=re.S)
    *lines, last = ast.parse(source).body or ast.parse("None").body
    printed, complaints = io.StringIO(), io.StringIO()
    with redirect_stdout(printed), redirect_stderr(complaints):
        exec(ast.unparse(ast.Module(lines, [])), space)
        output = eval(ast.unparse(last), space)
    if complaints.getvalue():
        return 0, printed.getvalue()
    try:
        return float(repr(output)), printed.getvalue()
    except ValueError:
        # what is no number, or nothing at all
        return most, printed.getvalue()


def marked(sheet):
    """Points of the checks of a sheet that runs from top to bottom, and what they print."""
    space = {}
    for cell in sheet.cells:
        if cell.id.endswith("-check"):
            yield points_of(cell, space)
        elif cell.cell_type == "code" and cell.id != "unpack":
            exec(cell.source, space)


@pytest.mark.parametrize("how", ["right", "wrong", "empty"])
@pytest.mark.parametrize("name", SHEETS)
def test_points_are_all_for_right_answers_and_none_for_others(made, name, how):
    source = source_of(made, name)
    sheet = answered(source if how == "right" else hidden_back(made, name), how, source)
    points, printed = zip(*marked(sheet), strict=True)
    most = NUMBERS.get(name, len(points))
    assert sum(points) == (most if how == "right" else 0)
    assert all(each.startswith("✔" if how == "right" else "✘") for each in printed)


def hidden_back(made, name):
    """What a student got, with the locked cells of the source, as nbgrader puts them back."""
    sheet = sheet_of(made, name)
    locked = {
        cell.id: cell.source
        for cell in source_of(made, name).cells
        if cell.metadata.get("nbgrader", {}).get("locked")
    }
    for cell in sheet.cells:
        cell.source = locked.get(cell.id, cell.source)
    return sheet


LOUD = """import sys, warnings
warnings.simplefilter("always")
class Loud:
    def __array__(self, *arguments, **options):
        warnings.warn("loud")
        print("loud", file=sys.stderr)
        return np.asarray(9 * given.mean_of_nine - given.total_of_all)
    def __float__(self):
        return float(self.__array__())
visits_of_i = Loud()"""


def test_an_answer_that_warns_keeps_its_points(made):
    sheet = sheet_of(made, "eight_households")
    (cell,) = (cell for cell in sheet.cells if cell.id == "ex-differencing-answer")
    cell.source = LOUD
    with warnings.catch_warnings():
        # pytest would keep them from stderr
        warnings.showwarning = lambda *about, **_: print(*about, file=sys.stderr)
        first, *others = marked(sheet)
    assert first == (1, "✔ differencing: right\n")
    assert not any(points for points, _ in others)


def test_grades_are_never_removed(tmp_path):
    grades = tmp_path / "nbgrader" / "gradebook.db"
    grades.parent.mkdir()
    grades.write_text("grades", "utf-8")
    with pytest.raises(Refused, match="has grades and would be made anew: move it"):
        classroom.make_editions(ROOT, tmp_path)
    assert grades.read_text("utf-8") == "grades"


def without_ids(sheet):
    """What a program of an older format leaves."""
    for cell in sheet.cells:
        del cell["id"]
    sheet.nbformat_minor = 4
    return sheet


def without_checks(sheet):
    sheet.cells = [cell for cell in sheet.cells if not cell.id.endswith("-check")]
    return sheet


def loud(sheet):
    """A sheet with one right answer, that warns."""
    for cell in sheet.cells:
        if cell.id == "ex-differencing-answer":
            cell.source = LOUD
    return sheet


@pytest.fixture(scope="module")
def nbgrader(tmp_path_factory):
    """A command in an environment of nbgrader, which has no `ppm`."""
    place = tmp_path_factory.mktemp("environment")
    venv.create(place, with_pip=True)
    packages = "nbgrader>=0.9.5,<1 numpy scipy pandas xarray threadpoolctl".split()
    pip = [place / "bin" / "python", "-m", "pip", "install", "--quiet", *packages]
    subprocess.run(pip, check=True)
    path = f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}"

    def run(course, *words, python_path=""):
        done = subprocess.run(
            ["nbgrader", *words],
            cwd=course,
            env=os.environ | {"PATH": path, "PYTHONPATH": python_path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0 or words[0] == "autograde", done.stderr
        return done.stderr

    return run


@pytest.mark.thorough
# the assessment's data need the library
@pytest.mark.parametrize(
    ("name", "python_path"), [("eight_households", ""), ("assessment", str(ROOT))]
)
def test_nbgrader_itself_gives_these_points(
    made, nbgrader, tmp_path, name, python_path
):
    course = tmp_path / "course"
    shutil.copytree(made / "nbgrader", course)
    nbgrader(course, "generate_assignment", name)
    file = classroom._file(name)
    source, sheet = source_of(made, name), sheet_of(made, name)
    released = nbformat.read(course / "release" / name / file, 4)
    # an answer that nbgrader takes out leaves an empty line
    assert [cell.source.rstrip("\n") for cell in released.cells] == [
        cell.source for cell in sheet.cells
    ]
    right, most = answered(released, "right", source), NUMBERS.get(name, 7)
    handed_in = {
        "right": (right, most),
        "wrong": (answered(released, "wrong", source), 0),
        "empty": (released, 0),
        "from_the_page": (answered(sheet, "right", source), most),
        "without_ids": (without_ids(copy.deepcopy(right)), most),
        "without_checks": (without_checks(copy.deepcopy(right)), most),
    }
    if name != "assessment":
        handed_in["loud"] = loud(copy.deepcopy(released)), 1
    archive = course / "downloaded" / name / "archive"
    for student, (notebook, _) in handed_in.items():
        (archive / student / "work").mkdir(parents=True)
        nbformat.write(notebook, archive / student / "work" / file)
    (archive / "broken").mkdir()
    text = nbformat.writes(right)
    (archive / "broken" / file).write_text(text[:-300], "utf-8")
    zipfile.ZipFile(archive / "nothing.zip", "w").close()
    # neither stops the class
    (archive / "damaged.zip").write_text("no archive", "utf-8")
    shutil.copytree(archive / "right" / "work", archive / "right" / "before")
    nbgrader(course, "zip_collect", name)
    said = nbgrader(course, "autograde", name, python_path=python_path)
    assert re.findall("for student '(.*)'", said) == ["broken"]
    nbgrader(course, "generate_feedback", name)
    nbgrader(course, "export")
    with (course / "grades.csv").open(encoding="utf-8") as table:
        scores = {
            row["student_id"]: float(row["score"]) for row in csv.DictReader(table)
        }
    assert scores == {"broken": 0} | {
        student: points for student, (_, points) in handed_in.items()
    }
    pages = course.glob(f"feedback/*/{name}/*.html")
    assert {page.parts[-3] for page in pages} == {*handed_in}
