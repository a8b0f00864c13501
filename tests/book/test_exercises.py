"""Exercises: answers and hints, the pages that show them, and the editions for a class."""

import ast
import functools
import itertools
import json
import re
import shutil
import subprocess
import sys
import zipfile
from sysconfig import get_path
from unittest.mock import patch

import checks
import nbformat
import numpy as np
import pandas as pd
import pytest
import xarray as xr
import yaml
from assessment_data import data_of
from conftest import ROOT, examples
from hypothesis import given, strategies
from hypothesis.extra import numpy as npst
from nbconvert.preprocessors import CellExecutionError, ExecutePreprocessor
from scipy import stats
from scipy.special import log_softmax

from ppm_book.chapters import page
from ppm_book.tools import classroom, parameters
from ppm_book.tools.classroom import EDITIONS, make_editions
from ppm_book.tools.exercises import FOLDER, chapters, numbers, section
from ppm_book.tools.pages import stage, stage_notebook
from ppm_book.tools.plain import Words

# one whose exercises stay where they are
CHAPTER = "poisson_contraction"
CHAPTERS = {name: checks.Chapter(name) for name in chapters(ROOT)}
WORKS = [(name, work) for name, check in CHAPTERS.items() for work in check.works]
# with the tasks that are graded
EVERY = CHAPTERS | {"assessment": checks.Chapter("assessment")}


def once(work):
    """The same exercise, which computes its answer from the same data once."""
    found = {}

    @functools.wraps(work)
    def remembered(given):
        if id(given) not in found:
            found[id(given)] = work(given)
        return found[id(given)]

    return remembered


for each in EVERY.values():
    each.works = {name: once(work) for name, work in each.works.items()}
IN_NUMBERS = [
    (name, work)
    for name, check in EVERY.items()
    for work in check.works
    if not check.works[work].options
]


@pytest.fixture(scope="module")
def plain():
    """What gives a chapter in its plain edition."""
    return functools.cache(Words(ROOT).chapter)


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
        cell.source = cell.source.replace(
            'Chapter("', f'Chapter(student="{student}", name="'
        )
    names = [*CHAPTERS[chapter].works]
    assert [*told(cells)] == [
        *(f"✔ {name}: right" for name in names),
        f"{len(names)} of {len(names)} solved",
    ]
    *blank, summary = told(cell for cell in cells if "-worked" not in cell.id)
    assert all("no answer yet" in each for each in blank)
    assert summary.startswith("0 of") and summary.endswith(
        f"; open: {', '.join(names)}"
    )


@pytest.mark.parametrize(("chapter", "name"), WORKS)
def test_a_right_answer_counts_in_any_form_and_a_slip_gets_its_hint(chapter, name):
    check = CHAPTERS[chapter]
    right, slips, _ = check.works[name](check.given)
    if isinstance(right, set):
        letters = sorted(right)
        forms = [
            letters[::-1],
            " and ".join(letters),
            f"({'), ('.join(letters)})".upper(),
        ]
    else:
        array = np.asarray(right, float)
        of_pandas = (pd.DataFrame if array.ndim == 2 else pd.Series)(
            np.atleast_1d(array)
        )
        forms = [
            array.astype("f4"),
            array.tolist(),
            array[None],
            xr.DataArray(array),
            of_pandas,
        ]
    assert {check(name, form) for form in [right, *forms]} == {f"✔ {name}: right"}
    for hint, slip in slips.items():
        assert check(name, slip) == f"✘ {name}: {hint}"


NUMBERS = checks.exercise("three numbers")(
    lambda g: ([2, 3, 0.5], {"Clip.": [2, -3, 0.5]}, "See.")
)


class Tensor:
    """As of another package, which gives its numbers only in its own words."""

    def __array__(self, *settings, **options):
        raise RuntimeError("call detach() first")

    def __iter__(self):
        raise RuntimeError("call detach() first")


LETTERS = checks.exercise("letters", "abcd")(
    lambda g: (set("ab"), {"One.": set("a")}, "See.")
)


@pytest.mark.parametrize(
    ("work", "answer", "hint"),
    [
        (NUMBERS, [1, ..., 2], "no answer yet. Wanted: three numbers"),
        (NUMBERS, "…", "no answer yet"),
        (NUMBERS, np.mean, "this is a function"),
        (NUMBERS, {"a": 2}, "This is of type dict, and"),
        (NUMBERS, Tensor(), "This is of type Tensor, and"),
        (LETTERS, Tensor(), "wanted: letters"),
        (NUMBERS, 2, "one number, where there should be 3. W"),
        (NUMBERS, [1, 2], "2 numbers, where"),
        (NUMBERS, np.ones((5, 3)), "The shape is (5, 3)"),
        (NUMBERS, "2, 3 to 4", "“to” is no number"),
        (
            NUMBERS,
            ["99 %", "3", "1"],
            "“%” is no number: units and other words stay outside. Wanted:",
        ),
        (NUMBERS, [2, np.nan, 0.5], "There are values that"),
        (NUMBERS, [-2, -3, -0.5], "Look at the"),
        (NUMBERS, [4, 6, 1], "Look for a factor of 2."),
        (NUMBERS, [200, 300, 50], "A share lies"),
        (NUMBERS, np.log10(np.exp([2, 3, 0.5])), "Logarithms in"),
        (NUMBERS, [2, -3, 0.5], "Clip."),
        (NUMBERS, np.exp([2, 3, 0.5]), "This is a factor."),
        (NUMBERS, [4, 9, 0.25], "This is the sq"),
        (NUMBERS, [2, 3, 0.25], "2 of 3 entries are right. Look for a"),
        (LETTERS, "cd", "Not these."),
        (NUMBERS, [1 / 2, 1 / 3, 2], "This is the reciprocal"),
        (NUMBERS, "2, -3, 0.5", "Clip."),
        (NUMBERS, [2.01, 3, 0.5], "Close"),
        (NUMBERS, [3, 2, 0.5], "These are the right numbers in"),
        (NUMBERS, "[2.0007, 3; 0.50024]", ""),
        (NUMBERS, "−2, −3 and", "“and” is no number"),
        (NUMBERS, "2, −3, 0.5", "Clip."),
        (NUMBERS, ["2", "−3", "0.5"], "Clip."),
        (NUMBERS, [2, 3, 7], "The shape is right; 2 of 3 entries are. See."),
        (LETTERS, "a", "One."),
        (LETTERS, ["a", "b", "c"], "Not these. See."),
        (LETTERS, 7, "wanted: letters"),
    ],
)
def test_a_wrong_answer_is_told_in_what_respect_and_four_digits_are_right(
    work, answer, hint
):
    fault = checks._fault(answer, work, None)
    assert fault.startswith(hint) and bool(fault) == bool(hint)


def test_a_formula_and_the_number_of_right_letters_come_at_the_second_wrong_answer():
    check = checks.Chapter("strict_release")
    formula = "Not this number. Mean square"
    check.works = {
        "a": checks.exercise("one number")(lambda g: (2, {}, ("Think.", "Add."))),
        "b": LETTERS,
    }
    # the same answer again, and what is no answer, are no second try
    said = [check("a", answer) for answer in ("x", 7.1, "7.1", ..., "x", 7.3, 7.1)]
    assert [formula in each or "Add." in each for each in said] == [False] * 5 + [
        True
    ] * 2
    assert said[1] == "✘ a: Not this number. Think."
    assert [check("b", answer) for answer in ("abc", "cd", "abd")] == [
        "✘ b: Not these. See.",
        "✘ b: These are exactly the others. Wanted: letters.",
        "✘ b: 3 of 4 are judged rightly. See.",
    ]


@pytest.mark.parametrize(("chapter", "name"), IN_NUMBERS)
@examples(12)
@given(data=strategies.data())
def test_no_wrong_answer_warns(chapter, name, data):
    right, slips, look = EVERY[chapter].works[name](EVERY[chapter].given)
    right = np.asarray(right, float)
    wrong = data.draw(
        npst.arrays(
            float, right.shape, elements=strategies.floats(), fill=strategies.floats()
        )
    )
    kept = data.draw(npst.arrays(bool, right.shape, fill=strategies.booleans()))
    judge = EVERY[chapter].works[name].judge
    work = checks.exercise("it", judge=judge)(lambda g: (right, slips, look))
    answer = np.where(kept, right, wrong)
    # warnings are errors
    assert isinstance(checks._fault(answer, work, EVERY[chapter].given), str)


def loss_and_bound(counts, M, away):
    """The loss when a household leaves, and 2Δ, on the grid of the exercise, without the library."""
    mu = np.linspace(2, 12, 101)

    def fitted(counts):
        log_p = stats.poisson.logpmf(np.array(counts)[:, None], mu)
        bounds = np.abs(log_p).max(axis=1)
        weights = 1 - (bounds - bounds.min()) / np.ptp(bounds)
        weights[weights * bounds > M] = 0
        return log_softmax(weights @ log_p), (weights * bounds).max()

    (before, delta), (after, _) = fitted(counts), fitted(np.delete(counts, away))
    return np.abs(before - after).max(), 2 * delta


def test_any_table_that_breaks_the_bound_is_right_and_no_other():
    check, rng, said = CHAPTERS["what_is_weaker"], np.random.default_rng(1), []
    assert loss_and_bound([3, 4, 4, 5, 5, 12, 7, 18], 5, 7) == pytest.approx(
        (10.05, 8.73), abs=0.005
    )
    for _ in range(40):
        counts, away = np.array([3, 4, 4, 5, 5, 6, 7, 18]), 7
        counts[rng.integers(7)], M = rng.integers(2, 13), rng.choice([3, 4, 4.5, 5])
        loss, bound = loss_and_bound(counts, M, away)
        said.append(check("break-it", [*counts, M, away]))
        assert said[-1].startswith("✔") == (loss > bound)
        told = f"The loss is {loss:.2f} nats", "they are frozen"
        assert said[-1].startswith("✔") or any(each in said[-1] for each in told)
    assert 3 <= sum(each.startswith("✔") for each in said) <= 37


def test_hints_that_pages_quote_are_those_of_the_checks():
    pages = [
        *ROOT.glob("book/*.md"),
        *(ROOT / FOLDER).glob("*.ipynb"),
        *ROOT.glob("*.md"),
    ]
    quoted = [
        quote
        for page in pages
        for quote in re.findall(
            r"> ✘ ([\w-]+): (.*?)(?:(?:\\n)?\",?)?$", page.read_text("utf-8"), re.M
        )
    ]
    hints = {
        (name, hint)
        for check in EVERY.values()
        for name, work in check.works.items()
        for hint in work(check.given)[1]
    }
    assert len(quoted) >= 2 and {*quoted} <= hints
    told = re.findall(
        'is told "(.*?)"', (ROOT / FOLDER / "README.md").read_text("utf-8")
    )
    assert told and {*told} <= {*checks._usual_slips(np.ones(1))}


NUMBER = re.compile(r"(?<![\w.])[-−]?\d+(?:[.,]\d+)*(?![\w])")


@pytest.mark.parametrize(("chapter", "name"), IN_NUMBERS)
def test_numbers_that_a_solution_prints_pass_its_check(chapter, name):
    right = np.ravel(EVERY[chapter].works[name](EVERY[chapter].given)[0])
    cells = nbformat.read(ROOT / FOLDER / f"{chapter}.ipynb", 4).cells
    (solution,) = [cell.source for cell in cells if cell.id == f"sol-{name}"]
    printed = NUMBER.findall(solution)
    for place in range(len(printed) - right.size + 1):
        numbers = printed[place : place + right.size]
        values = [float(each.replace("−", "-").replace(",", "")) for each in numbers]
        # what comes as near as this stands for the answer
        if np.allclose(values, right, rtol=0.02, atol=0) and any(
            "." in each for each in numbers
        ):
            assert EVERY[chapter](name, values) == f"✔ {name}: right"


def test_a_students_data_leave_out_those_at_which_a_slip_is_right():
    # a name is the same in small letters
    first, second = (checks.Chapter("ce_application", name) for name in ("Ada", " ada"))
    assert np.array_equal(first.given.income, second.given.income)
    seeds = itertools.chain([False], itertools.repeat(True))
    with patch.object(checks, "_tells_apart", lambda found, work: next(seeds)):
        other = checks.Chapter("ce_application", "Ada")
    assert not np.array_equal(first.given.income, other.given.income)


def test_pages_show_short_data_the_shape_of_long_ones_and_a_hint():
    name = "eight_households"
    text, hint = section(ROOT, name), CHAPTERS[name]("differencing", 0.5)
    assert all(
        each in text
        for each in (
            "`given.mean_of_nine = 7`",
            "`given.subsets` (40 × 8 values)",
            "<../exercises/eight_households_exercises.ipynb>",
            "*15 minutes: **do this one**.*",
            "four tasks that say **do this one** hold what the chapter teaches, and take 60 minutes",
        )
    )
    assert f"\n> {hint}\n" in (ROOT / "book" / "run_it.md").read_text("utf-8")
    # what is shown suffices for a check to four digits
    shown = {
        (chapter, *found)
        for chapter in CHAPTERS
        for found in re.findall(r"`given\.(\w+) = (.*?)`", section(ROOT, chapter))
    }
    for chapter, data, values in shown:
        given = getattr(CHAPTERS[chapter].given, data)
        given = given if isinstance(given, dict) else np.asarray(given)
        assert ast.literal_eval(values) == pytest.approx(given, rel=1e-5)
    assert len({chapter for chapter, *_ in shown}) > 5


def test_four_tasks_of_each_core_chapter_take_about_an_hour():
    minutes = {}
    for name in parameters.chapters(ROOT)[:8]:
        cells = nbformat.read(ROOT / FOLDER / f"{name}.ipynb", 4).cells
        first = [cell for cell in cells if "do" in cell.metadata]
        minutes[name] = [cell.metadata.minutes for cell in first]
        # nothing but the notebook is needed
        assert not any("Needs an installation" in cell.source for cell in first)
    # of the last chapter, which every course can end with, one
    *core, own = minutes.values()
    assert [len(each) for each in core] == [4] * 7 and own == [15]
    assert [sum(each) for each in core] == [60, 65, 60, 55, 60, 65, 55]
    assert "if you have time for one only" in section(ROOT, name)


# what sets of exercises do in a Python that has their libraries alone: -S reads no file that would
# lead to this repository. Each has a process of its own, and leaves what it said beside itself, and
# where what it used came from
RUNS = """
import contextlib, json, os, sys, traceback
from importlib.util import find_spec
from pathlib import Path
sys.path.append(sys.argv[1])
import scipy.stats, xarray

def run(cells):
    # as in a kernel
    sys.path.insert(0, "")
    print(*(name for name in ("ppm", "checks", "ppm_book") if find_spec(name)))
    space = {}
    for cell in cells:
        source = cell["source"]
        if cell["id"].endswith("-check"):
            eval(source, space)
        elif cell["cell_type"] == "code":
            exec(source, space)
        if cell["id"].endswith("unpack"):
            first = source
        # again at once, after the next one as when all cells are run, and between the tasks
        if cell["id"].endswith(("unpack", "setup", "-check")):
            exec(first, space)
    import ppm, ppm_book.audits
    roots = "ppm", "checks", "ppm_book"
    print(*(sys.modules[x].__file__ for x in sys.modules if x.partition(".")[0] in roots))

for file in map(Path, sys.argv[2:]):
    if not os.fork():
        with file.with_suffix(".txt").open("w") as said, contextlib.redirect_stdout(said):
            try:
                run(json.loads(file.read_text("utf-8")))
            except Exception:
                traceback.print_exc(file=said)
        sys.exit()
    os.wait()
"""


@pytest.fixture(scope="module")
def downloads(tmp_path_factory):
    """A folder with the exercises that pages offer."""
    folder = tmp_path_factory.mktemp("downloads")
    classroom.stage_downloads(ROOT, folder)
    return folder


def filled_in(sheet, name, how):
    """Put an answer to each task into a download; return what the checks should say to them."""
    cells, check = {cell.id: cell for cell in sheet.cells}, CHAPTERS[name]
    for cell in nbformat.read(ROOT / FOLDER / f"{name}.ipynb", 4).cells:
        label = cell.id.removesuffix("-worked")
        if label == cell.id:
            continue
        task, variable = re.match(
            r'check\.points\("([\w-]+)", (\w+)\)', cells[f"{label}-check"].source
        ).groups()
        if how == "wrong":
            (hint, slip), *_ = check.works[task](check.given)[1].items()
            cell.source = f"{variable} = {np.asarray(slip).tolist()}"
        cells[f"{label}-answer"].source = cell.source
        yield f"✘ {task}: {hint}" if how == "wrong" else f"✔ {task}: right"


def run_alone(folder, **sheets):
    """What notebooks of exercises say in a folder, where neither library nor checks can be had."""
    for name, cells in sheets.items():
        (folder / f"{name}.json").write_text(json.dumps(cells), "utf-8")
    files = [f"{name}.json" for name in sheets]
    command = [sys.executable, "-I", "-S", "-c", RUNS, get_path("purelib"), *files]
    subprocess.run(command, cwd=folder, check=True)
    return {name: (folder / f"{name}.txt").read_text("utf-8") for name in sheets}


@pytest.mark.parametrize(
    ("how", "names"), [("right", CHAPTERS), ("wrong", ["ce_application"])]
)
def test_downloads_run_without_the_library_and_their_first_cell_again_and_again(
    downloads, tmp_path, how, names
):
    sheets, expected = {}, {}
    for name in names:
        sheet = nbformat.read(downloads / f"{name}_exercises.ipynb", 4)
        expected[name] = [*filled_in(sheet, name, how)]
        sheets[name] = sheet.cells
    # what a notebook brings comes before what there is
    there = {"wrong": ["ppm"], "right": []}[how]
    for module in there:
        (tmp_path / f"{module}.py").write_text("no Python", "utf-8")
    for name, told in run_alone(tmp_path, **sheets).items():
        found, *said, files = told.splitlines()
        assert found.split() == there
        *said, summary = [each for each in said if not each.startswith("Ready. ")]
        assert said == expected[name]
        number = len(said)
        assert summary.startswith(f"{number if how == 'right' else 0} of {number} ")
        # of its own, whatever is installed
        files = files.split()
        assert all(re.search(r"/exercises-\w+/[\w/]+\.py$", file) for file in files)
        assert len({file.partition("/exercises-")[2][:8] for file in files}) == 1
        modules = "ppm", "checks", f"checks/{name}", "ppm_book/audits"
        for module in modules:
            file = re.compile(rf"/{module}(/__init__)?\.py$")
            assert any(map(file.search, files))


# what may happen between two sheets in one session
HAPPENED = {
    "nothing": "",
    # as by %reset
    "cleared": "for name in [*globals()]: del globals()[name]",
    # as by a system that removes old temporary files
    "removed": "import checks, pathlib, shutil\n"
    "shutil.rmtree(pathlib.Path(checks.__file__).parents[1])",
}


def test_a_second_sheet_runs_in_the_session_of_the_first(downloads, tmp_path):
    cells, expected = [], []
    for name in ("theory", "privacy_audit"):
        sheet = nbformat.read(downloads / f"{name}_exercises.ipynb", 4)
        expected += filled_in(sheet, name, "right")
        cells.append([cell | {"id": f"{name}-{cell.id}"} for cell in sheet.cells])
    sheets = {
        name: [*cells[0], nbformat.v4.new_code_cell(source), *cells[1]]
        for name, source in HAPPENED.items()
    }
    # and a sheet without the cell that unpacks
    sheets["nothing packed"] = [c for c in cells[0] if "unpack" not in c["id"]]
    said = run_alone(tmp_path, **sheets)
    assert "No module named 'checks'" in said.pop("nothing packed")
    for told in said.values():
        assert [
            line for line in told.splitlines() if line.startswith(("✔", "✘"))
        ] == expected


def test_the_first_cell_is_folded_and_short(downloads):
    sheet = nbformat.read(downloads / "ce_application_exercises.ipynb", 4)
    cells = {cell.id: cell for cell in sheet.cells}
    assert "".join(cells).count("sol-") == 0 and "solution" not in str(
        [cell.metadata.get("tags") for cell in sheet.cells]
    )
    # folded in JupyterLab and in Colab
    assert cells["unpack"].metadata.jupyter.source_hidden
    lines = cells["unpack"].source.splitlines()
    assert lines[0].startswith("# @title Run this cell first {")
    # what it carries is one line, and the last
    assert len(lines) < 40 and max(map(len, lines[:-1])) < 110 < len(lines[-1])


def test_checks_need_no_more_than_their_first_cell_says():
    files = (ROOT / FOLDER / "checks").glob("*.py")
    nodes = [
        node for file in files for node in ast.walk(ast.parse(file.read_text("utf-8")))
    ]
    needed = {
        each.name
        for node in nodes
        if isinstance(node, ast.Import)
        for each in node.names
    }
    needed |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    needed = {name.partition(".")[0] for name in needed} - sys.stdlib_module_names
    # the last one is the assessment's, which is not handed out with checks
    assert needed <= {"numpy", "scipy", "xarray", "ppm", "checks", "assessment_data"}


@pytest.fixture
def small(tmp_path):
    """A repository whose book has one chapter."""
    left_out = shutil.ignore_patterns("ppm_book", "__pycache__")
    for folder in ("notebooks", "book"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=left_out)
    toc = {
        "root": "book/intro",
        "parts": [{"numbered": True, "chapters": [{"file": f"notebooks/{CHAPTER}"}]}],
    }
    config = {"title": "A book", "repository": {"url": "https://github.com/a/b.git"}}
    for name, content in (("_toc.yml", toc), ("_config.yml", config)):
        (tmp_path / name).write_text(yaml.safe_dump(content))
    return tmp_path


def test_a_book_for_a_class_has_no_solution_anywhere(tmp_path, plain, monkeypatch):
    # they have not run
    monkeypatch.setattr(
        "ppm_book.tools.pages._check_claims", lambda *arguments, **options: None
    )
    record = dict.fromkeys(
        ("notebook", "profile", "python", "changed", "parameters"), ""
    )
    record |= {"started": "2026-01-01", "seconds": 1, "versions": {"ppm": ""}}
    lines = set()
    for name in CHAPTERS:
        chapter = (ROOT / "notebooks" / f"{name}.ipynb").read_text("utf-8")
        for cell in nbformat.read(ROOT / FOLDER / f"{name}.ipynb", 4).cells:
            if "solution" in cell.metadata.get("tags", ()):
                # what only a solution says
                lines |= {
                    x
                    for x in cell.source.split("\n")
                    if len(x) > 50 and x not in chapter
                }
    assert len(lines) > 100
    chapters_alone = [nbformat.writes(plain(name)) for name in CHAPTERS]
    for told in (False, True):
        book = tmp_path / str(told)
        stage(book)
        for name in CHAPTERS:
            stage_notebook(parameters.source(name), book, record, solutions=told)
        texts = [file.read_text("utf-8") for file in book.rglob("*.[imy][pdm]*")]
        shown = "\n".join([*texts, *chapters_alone])
        assert told == any(line in shown for line in lines)
        assert told == (":label: sol-" in shown)


@pytest.mark.parametrize(
    ("word", "status"),
    [
        ("no", 0),
        ("", 0),
        ("NO", 2),
        ("false", 2),
        ("0", 2),
        ("no yes", 2),
    ],
)
def test_a_book_without_solutions_is_asked_for_by_no_and_by_nothing_else(word, status):
    command = ["make", "-s", "_inputs", f"SOLUTIONS={word}"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == status
    assert done.stderr.startswith(
        f"SOLUTIONS={word}: write SOLUTIONS=no" if status else ""
    )


@pytest.mark.parametrize("name", parameters.chapters())
def test_plain_chapters_have_no_syntax_of_the_book(plain, name):
    chapter = plain(name)
    nbformat.validate(chapter)
    text = "\n".join(
        cell.source for cell in chapter.cells if cell.cell_type == "markdown"
    )
    assert not re.search(r"\{[\w:-]+\}`|^ *[`:]{3,}\{|^\(\S+\)=$|<!--", text, re.M)
    calls = [cell.source.count("page.check_claims(") for cell in chapter.cells]
    assert sum(calls) == calls[-1] == (page.CLAIMS / f"{name}.py").is_file()
    # a label without words
    assert not re.search(r"“[./a-z]+([-_][a-z]+)+”", text)
    # a formula that goes on in the next line of a quote would have the quote's mark in it
    assert all(line.count("$$") % 2 == 0 for line in re.findall("^> .*", text, re.M))
    assert not any(cell.outputs for cell in chapter.cells if cell.cell_type == "code")
    cited = "{cite:" in parameters.source(name).read_text("utf-8")
    assert cited == bool(re.search(r"^## Literature\n\n- .*\d{4}", text, re.M))


BOOK = """(here)=
## A heading

```{prf:theorem} Two
:label: thm-two
:class: ours

By {cite:t}`hu2022` and {prf:ref}`thm-two`, for $a
\\le b$,

$$
a = b
$$
```

$$
c
$$ (eq-c)

See {eq}`eq-c` ({ref}`why <here>`).
{numref}`fig-it` in {doc}`theory` shows {term}`it <that>` {cite:p}`hu2022,dwork2014`."""
PLAIN = """## A heading

> **Theorem (Two; ours).**
>
> By Hu et al. (2022) and the theorem “Two”, for $a \\le b$,
>
> $$ a = b $$

$$
c \\tag{1}
$$

See (1) (why [the section “A heading”]).
Figure 1 in the chapter “TITLE” shows it (Hu et al. 2022; Dwork and Roth 2014)."""


def test_what_the_book_says_is_said_in_words(small):
    cells = [nbformat.v4.new_markdown_cell(BOOK), nbformat.v4.new_code_cell("1")]
    cells[1].metadata["mystnb"] = {
        "figure": {"name": "fig-it", "caption": "It, {ref}`here`."}
    }
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbformat.write(notebook, small / "notebooks" / "extra.ipynb")
    Words(small).plain(notebook, "extra")
    book, code, caption = (cell.source for cell in notebook.cells)
    assert book == PLAIN.replace("TITLE", parameters.title("theory"))
    assert caption == "*Figure 1. It, the section “A heading”.*"


def test_a_plain_chapter_has_the_numbers_of_its_run(small):
    told = nbformat.v4.new_markdown_cell("Δ is {glue:text}`Δ at n` nats.")
    output = nbformat.v4.new_output(
        "display_data",
        {"application/papermill.record/text/plain": "'3.50'"},
        metadata={"scrapbook": {"name": "Δ at n"}},
    )
    notebook = nbformat.v4.new_notebook(cells=[told, nbformat.v4.new_code_cell("1")])
    nbformat.write(notebook, small / "notebooks" / "extra.ipynb")
    notebook.cells[1].outputs = [output]
    for executed, number in ((notebook, "3.50"), (None, "–")):
        chapter = Words(small).chapter("extra", executed)
        assert chapter.cells[0].source == f"Δ is {number} nats."


# edition -> every file of its archive, and no other; with the notebooks of one chapter
CHECKS = [
    f"exercises/checks/{file.name}" for file in (ROOT / FOLDER).glob("checks/*.py")
]
FILES = {
    "student": [
        "README.md",
        f"chapters/{CHAPTER}.ipynb",
        f"exercises/{CHAPTER}_exercises.ipynb",
    ],
    "assessment": [
        "README.md",
        "exercises/assessment.ipynb",
        "exercises/assessment_data.py",
    ],
    "instructor": [
        "README.md",
        f"exercises/{CHAPTER}_exercises.ipynb",
        "exercises/assessment.ipynb",
        "exercises/assessment_data.py",
        "exercises/assessment_readme.md",
        *CHECKS,
    ],
    "nbgrader": [
        "nbgrader_config.py",
        f"source/{CHAPTER}/{CHAPTER}_exercises.ipynb",
        "source/assessment/assessment.ipynb",
        "source/assessment/assessment_data.py",
    ],
}


def test_an_edition_has_these_files_and_no_other(small, monkeypatch):
    """Those for students have no answer in any file; thoroughly the sheets run as well."""
    monkeypatch.setattr(ExecutePreprocessor, "preprocess", lambda *_: None)
    made = {file.stem: zipfile.ZipFile(file) for file in make_editions(small)}
    found = {
        edition: {name for name in archive.namelist() if not name.endswith("/")}
        for edition, archive in made.items()
    }
    assert found == {
        edition: {f"{edition}/{file}" for file in files}
        for edition, files in FILES.items()
    }
    solutions = [
        cell.source
        for name in (CHAPTER, "assessment")
        for cell in nbformat.read(small / FOLDER / f"{name}.ipynb", 4).cells
        if "solution" in cell.metadata.get("tags", ()) or cell.id.startswith("sol-")
    ]
    assert len(solutions) > 10 and not {*EDITIONS} - FILES.keys()
    for edition in ("student", "assessment"):
        text = "".join(
            "\n".join(each.source for each in nbformat.reads(sheet, 4).cells)
            for sheet in map(made[edition].read, found[edition])
            if sheet.startswith(b"{")
        )
        assert text and not [one for one in solutions if one in text]
    for edition, title in (("student", "chapters/"), ("assessment", "Due:")):
        assert title in made[edition].read(f"{edition}/README.md").decode()


@pytest.mark.thorough
def test_editions_run_and_a_wrong_solution_makes_none(small):
    for archive in (archives := make_editions(small)):
        zipfile.ZipFile(archive).extractall(small)
    student, instructor, tasks, graded = (
        nbformat.read(small / place.replace("/", "/exercises/"), 4)
        for place in (
            f"student/{CHAPTER}_exercises.ipynb",
            f"instructor/{CHAPTER}_exercises.ipynb",
            "assessment/assessment.ipynb",
            "instructor/assessment.ipynb",
        )
    )
    wanted = "given.study_bounds > given.epsilon"
    assert wanted in str(instructor) and wanted not in str(student)
    assert "## Exercise 1.3: " in str(student) and "minutes)" in str(student)
    assert "(10 minutes: do this one)" in str(student)
    downloaded = small / "downloaded"
    classroom.stage_downloads(small, downloaded)
    (file,) = downloaded.iterdir()
    assert nbformat.read(file, 4) == student
    assert "## Task 8: Two recipients (14 points)" in str(tasks)
    assert not re.search(r"\{[\w:]+\}`", str([student, instructor, tasks, graded]))
    assert [str(each).count("*Your answer:*") for each in (student, tasks)] == [4, 8]
    assert "Points" in str(graded) and not re.search("Points|Chapter", str(tasks))
    # students need the library and what lies beside the notebook
    place = {"metadata": {"path": small / "assessment" / "exercises"}}
    ExecutePreprocessor().preprocess(tasks, place)
    outputs = [cell.outputs for cell in instructor.cells if cell.id.endswith("-check")]
    assert len(outputs) == len(CHAPTERS[CHAPTER].works)
    assert all(r"right\n- " in str(output) for output in outputs)
    path = small / FOLDER / f"{CHAPTER}.ipynb"
    path.write_text(
        path.read_text("utf-8").replace("np.mean(2 * ", "1 - np.mean(2 * "), "utf-8"
    )
    with pytest.raises(CellExecutionError, match="share-above: This is one minus"):
        make_editions(small, editions=["instructor"])
    assert not any(archive.exists() for archive in archives)


def test_an_exercise_has_the_number_of_its_chapter():
    found = numbers(ROOT)
    # the eighth chapter, and the first one beyond the paper
    labels = "ex-differencing", "ex-log-likelihood", "ex-oscillation"
    assert [found[label] for label in labels] == ["1.1", "8.1", "15.1"]


def test_points_of_the_assessment_are_those_of_its_rubrics():
    cells = {
        c.id: c for c in nbformat.read(ROOT / FOLDER / "assessment.ipynb", 4).cells
    }
    points = {
        name: c.metadata.points for name, c in cells.items() if "points" in c.metadata
    }
    rubrics = [cells[name.replace("ex-", "sol-")].source for name in points]
    found = [
        sum(map(int, re.findall(r"^- (\d+):", rubric, re.M))) for rubric in rubrics
    ]
    assert found == [*points.values()] and len(found) == 8 and sum(found) == 100


# with the data of Dies a slip agrees with the answer to four digits
@pytest.mark.parametrize("student", ["Ada", "Dies"])
def test_graded_tasks_check_the_data_that_a_student_got(student):
    check = checks.Chapter("assessment", student)
    assert check.given.terms.tolist() == data_of(student).terms.tolist()
    cells = nbformat.read(ROOT / FOLDER / "assessment.ipynb", 4).cells
    code = [c.source for c in cells if c.cell_type == "code" and c.id != "grading"]
    exec("\n".join(code).replace("your name", student), {"check": check})
    assert check.summary() == "7 of 7 solved"


def tables(text):
    """The tables of a page: for each a list of rows, by the heads of its columns."""
    for table in re.findall(r"(?:^\|.*\n)+", text, re.M):
        head, _, *rows = (
            [cell.strip() for cell in line.strip("|").split("|")]
            for line in table.splitlines()
        )
        yield [dict(zip(head, row, strict=True)) for row in rows]


def reading(document):
    """How many minutes a page takes, at a hundred words or twenty lines of code a minute."""
    if document.startswith("errata"):
        return len((ROOT / "book" / f"{document}.md").read_text("utf-8").split()) / 100
    cells = nbformat.read(ROOT / f"{document}.ipynb".removeprefix("../"), 4).cells
    return sum(
        len(cell.source.split()) / 100
        if cell.cell_type == "markdown"
        else len(cell.source.splitlines()) / 20
        for cell in cells
    )


def test_plans_fit_their_minutes():
    minutes = {
        cell.id: cell.metadata.minutes
        for name in CHAPTERS
        for cell in nbformat.read(ROOT / FOLDER / f"{name}.ipynb", 4).cells
        if "exercise" in cell.metadata.get("tags", ())
    }

    def asked(cell):
        return sum(
            minutes[label] for label in re.findall(r"\{numref}`(ex-[\w-]+)`", cell)
        )

    page = (ROOT / "book" / "teaching.md").read_text("utf-8")
    plans = re.findall(
        r"^### [^\n]* \((\d+) minutes\)\n(.*?)(?=^##)", page, re.M | re.S
    )
    assert [int(whole) for whole, _ in plans] == [90, 180, 720, 1080]
    for whole, plan in plans:
        in_class, *at_home = tables(plan)
        assert sum(int(block["Minutes"]) for block in in_class) == int(whole)
        for block in in_class:
            talk, exercise = (int(block[part] or 0) for part in ("Talk", "Exercise"))
            assert int(block["Minutes"]) == talk + exercise or block["What"] == "Break"
            # one exercise a block
            assert (
                exercise == asked(block["In class"])
                and block["In class"].count("numref") <= 1
            )
        for sheet in (row for table in at_home for row in table):
            assert int(sheet["At home, minutes"]) == asked(sheet["Exercises"])
            read = sum(
                map(reading, re.findall("{doc}`(.*?)`", sheet.get("Chapters", "")))
            )
            assert abs(int(sheet.get("Reading, minutes", 0)) - read) <= 0.25 * read


def test_students_are_offered_their_own_data_where_data_are_drawn(downloads):
    offered = {
        file.stem.removesuffix("_exercises")
        for file in downloads.iterdir()
        if r"student=\"\"" in file.read_text("utf-8")
    }
    same_for_all = {"theory", "what_it_means", "what_is_weaker", "strict_more"}
    assert {*CHAPTERS} - offered == same_for_all


def test_binder_makes_the_student_edition():
    (command,) = re.findall("python -c '(.*)'", (ROOT / "postBuild").read_text("utf-8"))
    with patch.object(classroom, "make_editions") as made:
        exec(command)
    made.assert_called_once_with(ROOT, editions=["student"])


def test_a_student_reads_that_a_number_is_an_equations():
    sheets = "".join(
        file.read_text("utf-8") for file in (ROOT / FOLDER).glob("*.ipynb")
    )
    # in their notebooks only the number is left of the role
    assert "equation {eq}`" in sheets and not re.search("(?<!equation ){eq}`", sheets)
