"""Exercises: answers and hints, the pages that show them, and the editions for a class."""

import re
import shutil
import zipfile

import checks
import nbformat
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from conftest import ROOT
from nbconvert.preprocessors import CellExecutionError, ExecutePreprocessor

from ppm_book.classroom import make_editions
from ppm_book.exercises import FOLDER, chapters, section, solutions

CHAPTERS = {name: checks.Chapter(name) for name in chapters(ROOT)}
WORKS = [(name, work) for name, check in CHAPTERS.items() for work in check.works]


def told(cells):
    """What the checks of code cells say, run in one namespace."""
    space = {}
    for cell in cells:
        if cell.id.endswith("-check"):
            yield eval(cell.source, space)
        elif cell.cell_type == "code":
            exec(cell.source, space)
    yield space["check"].summary()


@pytest.mark.parametrize("student", ["", "Ada"])
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_solutions_are_right_and_three_dots_are_no_answer(chapter, student):
    cells = nbformat.read(ROOT / FOLDER / f"{chapter}.ipynb", 4).cells
    for cell in cells:
        cell.source = cell.source.replace('Chapter("', f'Chapter(student="{student}", name="')
    names = [*CHAPTERS[chapter].works]
    right = [f"✔ {name}: right" for name in names]
    assert [*told(cells)] == [*right, f"{len(names)} of {len(names)} solved"]
    *blank, summary = told(cell for cell in cells if "-worked" not in cell.id)
    assert all("no answer yet" in each for each in blank)
    assert summary.startswith("0 of") and summary.endswith(f"; open: {', '.join(names)}")


@pytest.mark.parametrize(("chapter", "name"), WORKS)
def test_a_right_answer_counts_in_any_form_and_a_slip_gets_its_hint(chapter, name):
    check = CHAPTERS[chapter]
    right, slips, _ = check.works[name](check.given)
    if isinstance(right, set):
        letters = sorted(right)
        forms = [letters[::-1], " and ".join(letters), f"({'), ('.join(letters)})".upper()]
    else:
        array = np.asarray(right, float)
        of_pandas = (pd.DataFrame if array.ndim == 2 else pd.Series)(np.atleast_1d(array))
        forms = [array.astype("f4"), array.tolist(), array[None], xr.DataArray(array), of_pandas]
    assert {check(name, form) for form in [right, *forms]} == {f"✔ {name}: right"}
    for hint, slip in slips.items():
        assert check(name, slip) == f"✘ {name}: {hint}"


NUMBERS = checks.exercise("three numbers")(lambda g: ([2, 3, 0.5], {"Clip.": [2, -3, 0.5]}, "See."))
LETTERS = checks.exercise("letters", "abcd")(lambda g: (set("ab"), {"One.": set("a")}, "See."))


@pytest.mark.parametrize(("work", "answer", "hint"), [
    (NUMBERS, [1, ..., 2], "no answer yet. Wanted: three numbers"), (NUMBERS, "…", "no answer yet"),
    (NUMBERS, np.mean, "this is a function"), (NUMBERS, {"a": 2}, "a dict that is not made of"),
    (NUMBERS, 2, "This is one number"), (NUMBERS, np.ones(500), "The shape is (500,)"),
    (NUMBERS, [2, np.nan, 0.5], "There are values that"), (NUMBERS, [-2, -3, -0.5], "Look at the"),
    (NUMBERS, [4, 6, 1], "Look for a factor of 2."), (NUMBERS, [200, 300, 50], "A share lies"),
    (NUMBERS, np.log10(np.exp([2, 3, 0.5])), "Logarithms in"), (NUMBERS, [2, -3, 0.5], "Clip."),
    (NUMBERS, [1 / 2, 1 / 3, 2], "This is the reciprocal"), (NUMBERS, "2, -3, 0.5", "Clip."),
    (NUMBERS, [2.01, 3, 0.5], "Close"), (NUMBERS, [3, 2, 0.5], "These are the right numbers in"),
    (NUMBERS, [2, 3, 7], "The shape is right; 2 of 3 entries are. See."), (LETTERS, "a", "One."),
    (LETTERS, ["a", "b", "c"], "3 of 4 are judged rightly. See."), (LETTERS, 7, "wanted: letters"),
])
def test_a_wrong_answer_is_told_in_what_respect(work, answer, hint):
    assert checks._fault(answer, work, None).startswith(hint)


def test_data_of_ones_own_and_what_was_solved_stay():
    book, ada, same = (checks.Chapter("privacy_audit", name) for name in ("", "Ada", " ada"))
    first, second, third = (each.given.means_with.tolist() for each in (book, ada, same))
    assert first != second == third
    right = ada.works["exact-loss"](ada.given)[0]
    assert "right" in ada("exact-loss", right) and "✘" in ada("exact-loss", 7.5)
    assert ada.summary().startswith("1 of")


def test_four_digits_and_text_are_right_answers():
    assert not checks._fault("[2.0007, 3; 0.50024]", NUMBERS, None)


def test_an_unknown_exercise_is_refused_with_the_accepted_names():
    with pytest.raises(ValueError, match=r"exercise 'weight' \(accepted: differencing, .*weights"):
        CHAPTERS["theory"]("weight", 1)


@pytest.fixture
def small(tmp_path):
    """A repository with the exercises of one chapter."""
    skip = shutil.ignore_patterns("[!t]*.ipynb", "__pycache__")
    shutil.copytree(ROOT / "notebooks", tmp_path / "notebooks", ignore=skip)
    shutil.copytree(ROOT / "book", tmp_path / "book", ignore=shutil.ignore_patterns("[!r]*"))
    (tmp_path / "_toc.yml").write_text("- file: notebooks/theory\n")
    (tmp_path / "_config.yml").write_text("repository: {url: 'https://github.com/a/b.git'}\n")
    return tmp_path


def test_exercises_and_solutions_lead_to_each_other(small):
    page, worked = section(small, "theory"), solutions(small)
    labels = re.findall(r"\{exercise\} .*\n:label: ex-(\S+)\n", page)
    assert len(labels) == 14 and labels == re.findall(r"\{ref\}`Solution <sol-(.*)>`", page)
    assert labels == re.findall(r"\{solution\} ex-(\S+)\n:label: sol-\1\n", worked)
    assert "axis=0" in worked and "axis=0" not in page
    assert "blob/HEAD/notebooks/exercises/theory.ipynb#scrollTo=setup" in page


def test_both_editions_run_and_a_wrong_solution_makes_none(small):
    for archive in (archives := make_editions(small)):
        zipfile.ZipFile(archive).extractall(small)
    student = nbformat.read(small / "student" / "theory.ipynb", 4)
    instructor = nbformat.read(small / "instructor" / "theory.ipynb", 4)
    assert "axis=0" in str(instructor) and "axis=0" not in str(student)
    assert "## Exercise 1.4: Weights from bounds ★ (10 minutes)" in str(student)
    assert "the exercise “Bounds of records” into weights by steps 1.3 and" in str(student)
    assert not re.search(r"\{[\w:]+\}`", str(instructor))
    # students need the library and what lies beside the notebook
    ExecutePreprocessor().preprocess(student, {"metadata": {"path": small / "student"}})
    for notebook, said in ((student, "no answer yet"), (instructor, r"right\n- ")):
        outputs = [str(cell.outputs) for cell in notebook.cells if cell.id.endswith("-check")]
        assert len(outputs) == 7 and all(said in output for output in outputs)
    path = small / FOLDER / "theory.ipynb"
    wrong = path.read_text("utf-8").replace("np.abs(given.log_lik).max", "given.log_lik.max", 1)
    path.write_text(wrong, "utf-8")
    with pytest.raises(CellExecutionError, match="record-bounds: The largest log-likelihood"):
        make_editions(small)
    assert not any(archive.exists() for archive in archives)
