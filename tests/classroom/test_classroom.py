"""Exercises that check themselves: the right answer in every form, and a hint for typical slips."""

import json
import re

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from conftest import ROOT

from ppm import classroom
from ppm.classroom.chapters import CHAPTERS

NOTEBOOKS = {path.stem: path for path in (ROOT / "notebooks" / "exercises").glob("*.ipynb")}
WORK = {name: classroom.chapter(name) for name in CHAPTERS}
EXERCISES = {
    f"{chapter}: {name}": exercise
    for chapter, work in WORK.items()
    for name, exercise in work.exercises.items()
}
NUMERIC = {name: each for name, each in EXERCISES.items() if not each.options}
LETTERS = {name: each for name, each in EXERCISES.items() if each.options}
SLIPS = [
    (name, mistake.name) for name, each in EXERCISES.items() for mistake in each.mistakes
]


def cells_of(chapter):
    return json.loads(NOTEBOOKS[chapter].read_text("utf-8"))["cells"]


def has(cell, tag):
    return tag in cell["metadata"].get("tags", ())


def run(cells):
    """Run code cells in one namespace; return it, and what the checks said, by exercise."""
    space, verdicts = {}, {}
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        source = "".join(cell["source"])
        if has(cell, "check"):
            verdict = eval(source, space)
            verdicts[verdict.name] = verdict
        else:
            exec(source, space)
    return space, verdicts


# ------------------------------------------------------------------------------- the notebooks


def test_every_chapter_has_exercises_and_there_are_enough_of_them():
    assert NOTEBOOKS.keys() == WORK.keys() == set(CHAPTERS)
    assert all(len(work.exercises) >= 6 for work in WORK.values())
    assert len(EXERCISES) >= 40
    assert len(SLIPS) >= 3 * len(EXERCISES)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_solutions_pass_and_the_cells_with_dots_do_not(chapter, capsys):
    work = WORK[chapter]
    cells = cells_of(chapter)
    space, verdicts = run(cells)
    assert {name: str(verdict) for name, verdict in verdicts.items()} == {
        name: f"✔ {name}: right" for name in work.exercises
    }
    assert space["work"].summary() == f"{len(verdicts)} of {len(verdicts)} solved"
    _, verdicts = run(cell for cell in cells if not has(cell, "solution"))
    assert verdicts.keys() == work.exercises.keys()
    for name, verdict in verdicts.items():
        assert not verdict.solved
        assert verdict.message.startswith("no answer yet. Wanted: ")
        assert work.exercises[name].asks in verdict.message
    assert "open: " in capsys.readouterr().out


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_an_exercise_is_a_task_and_a_solution_with_its_code_and_check_between(chapter):
    cells = cells_of(chapter)
    labels = [cell["id"] for cell in cells if has(cell, "exercise")]
    checked = [f"ex-{name}" for name in WORK[chapter].exercises]
    assert [label for label in labels if label in checked] == checked
    expected = ["title", "setup"]
    for label in labels:
        expected.append(label)
        if label in checked:
            expected += [f"{label}-answer", f"{label}-worked", f"{label}-check"]
        expected.append(f"sol-{label.removeprefix('ex-')}")
    assert [cell["id"] for cell in cells] == [*expected, "summary"]
    for cell in cells:
        source = "".join(cell["source"])
        if has(cell, "exercise"):
            assert re.match(r"## \S.* ★{1,3}\n\n", source), source
            assert 1 <= cell["metadata"]["minutes"] <= 120
        if has(cell, "answer"):
            assert "..." in source
        assert not cell.get("outputs") and not cell.get("execution_count")


# --------------------------------------------------------------------------------- the answers


def forms(right):
    """The right answer as students may hold it."""
    array = np.asarray(right, dtype=float)
    yield "float32", array.astype(np.float32)
    yield "list", array.tolist()
    if array.ndim == 1:
        yield "pandas", pd.Series(array, index=[f"row {i}" for i in range(array.size)])
        yield "one row", array[None]
    if array.ndim == 2:
        yield "pandas", pd.DataFrame(array)
    if array.ndim == 0:
        yield "pandas", pd.Series([float(array)])
        yield "in a list", [float(array)]
    yield "xarray", xr.DataArray(array)


@pytest.mark.parametrize("name", NUMERIC)
def test_the_right_answer_is_right_in_any_form(name):
    exercise = NUMERIC[name]
    for form, answer in forms(exercise.right()):
        assert exercise.judge(answer).solved, form


@pytest.mark.parametrize("name", LETTERS)
def test_letters_may_come_as_text_list_or_set(name):
    exercise = LETTERS[name]
    right = sorted(exercise.right())
    for answer in (set(right), right[::-1], ", ".join(right), "".join(right).upper()):
        assert exercise.judge(answer).solved
    assert "wanted" in exercise.judge("zz").message


@pytest.mark.parametrize(("name", "slip"), SLIPS)
def test_a_typical_slip_gets_the_hint_meant_for_it(name, slip):
    exercise = EXERCISES[name]
    (mistake,) = [each for each in exercise.mistakes if each.name == slip]
    verdict = exercise.judge(mistake.answer())
    assert (verdict.solved, verdict.message) == (False, mistake.hint)


# what students type in the notebook, and the slip that it is
TYPED = [
    ("theory", "record-bounds", "given.log_lik.max(axis=0)", "the log-likelihood with its sign"),
    ("theory", "record-bounds", "abs(given.log_lik).max(1)", "draws and records exchanged"),
    ("theory", "weights", "given.scale * (1 - risk) + given.shift", "forgot to clip"),
    ("theory", "local-epsilon", "given.releases * delta", "Δ without the factor 2"),
    ("theory", "reconstruction", "found", "not rounded"),
    ("theory", "whack-a-mole", "['H']", "the outlier"),
    ("poisson_contraction", "posterior", "[20 + given.counts.sum(), 0.2 + 400]", "all weights 1"),
    (
        "poisson_contraction",
        "share-above",
        "np.mean(given.study_bounds > given.epsilon)",
        "Δ without the factor 2",
    ),
    ("poisson_contraction", "none-of-400", "3 / 400", "rule of three"),
    (
        "poisson_contraction",
        "posterior",
        "[20 + given.weights @ given.counts, given.weights.sum()]",
        "prior's rate left out",
    ),
    (
        "privacy_audit",
        "exact-loss",
        "abs(stats.gamma.logpdf(given.mu, 53, scale=8.1)"
        " - stats.gamma.logpdf(given.mu, 35, scale=7.1)).max()",
        "rate taken for SciPy's scale",
    ),
    (
        "what_it_means",
        "belief",
        "(odds := 0.001 * np.exp(2)) / (1 + odds)",
        "probability for the odds before",
    ),
    ("privacy_audit", "membership", "caught - false_alarms", "difference of the shares"),
    ("privacy_audit", "public-oscillations", "2 * bounds", "twice the bounds"),
    ("privacy_audit", "capped", "given.cap / bounds", "cap over bound, not cut at 1"),
    ("ce_application", "neighbours", "too_far.mean(axis=1)", "a unit among its own neighbours"),
    ("ce_application", "combining", "given.variances.mean() ** 0.5", "analysed as if real"),
    (
        "ce_application",
        "barycentre",
        "(given.medians_one + given.medians_two) / 2",
        "averaged in the order given",
    ),
    (
        "using_releases",
        "from-tables",
        "np.mean(given.released) + np.array([-1, 1]) * stats.norm.ppf(0.975)"
        " * np.std(given.released, ddof=1) / given.released.size ** 0.5",
        "all rows put together",
    ),
    (
        "using_releases",
        "one-release",
        "given.estimate + np.array([-1.96, 1.96]) * given.variance ** 0.5",
        "as if real",
    ),
    (
        "using_releases",
        "shared-epsilon",
        "[(1 + 5 / m) ** 0.5 for m in given.numbers]",
        "full weight for every release",
    ),
    (
        "large_data",
        "law",
        "[np.polyfit(np.log(given.sizes), np.log(given.seconds), 1)[0], np.exp(np.polyval("
        "np.polyfit(np.log(given.sizes), np.log(given.seconds), 1), np.log(1e8))) / 3600]",
        "no fixed part",
    ),
    ("large_data", "assignments", "'abcdef'.replace('b', '').replace('f', '')",
     "new assignment for chains that disagree"),
    ("application_settings", "distance", "np.abs(logs).mean()", "mean absolute logarithm"),
    (
        "application_settings",
        "transformations",
        "[np.log(np.maximum(x, given.floor)), np.arcsinh(x),"
        " np.log(np.maximum(x, 0) + given.shift)]",
        "losses raised to 0 before the shift",
    ),
    ("application_settings", "fewer-draws", "np.abs(given.log_lik)[:20].max()", "the first draws"),
    ("your_own_model", "log-likelihood", "log_lik.T", "draws and records exchanged"),
    (
        "your_own_model",
        "two-answers",
        "abs(first).max() + abs(given.second_log_lik).max()",
        "sum of the two bounds",
    ),
    (
        "your_own_model",
        "cents",
        "abs(given.spending_log_lik + np.log(1e5)).max()",
        "wrong direction",
    ),
    ("what_it_means", "budget", "given.budget / given.bound", "Δ without the factor 2"),
    ("what_it_means", "belief", "given.prior * np.exp(given.budget)", "probability multiplied"),
    ("what_it_means", "bounded-range", "given.releases * given.width", "added up"),
]


@pytest.mark.parametrize(("chapter", "name", "typed", "slip"), TYPED)
def test_a_slip_as_students_type_it_is_recognised(chapter, name, typed, slip, capsys):
    space, _ = run(cells_of(chapter))
    verdict = space["check"](name, eval(typed, space))
    (mistake,) = [each for each in WORK[chapter].exercises[name].mistakes if each.name == slip]
    assert (verdict.solved, verdict.message) == (False, mistake.hint)


def test_a_loss_below_the_shift_must_be_raised_before_its_logarithm():
    given = WORK["application_settings"].given
    x = given.incomes
    with np.errstate(invalid="ignore"):
        third = np.log(x + given.shift)
    rows = [np.log(np.maximum(x, given.floor)), np.arcsinh(x), third]
    told = WORK["application_settings"].check("transformations", rows).message
    assert told.startswith("There are values that are infinite or no number")


@pytest.mark.parametrize("name", EXERCISES)
def test_hints_differ_and_do_not_hold_the_answer(name):
    exercise = EXERCISES[name]
    hints = [mistake.hint for mistake in exercise.mistakes]
    assert len(set(hints)) == len(hints) >= 3
    told = " ".join([*hints, exercise.look, exercise.asks, repr(exercise)])
    assert found_in(exercise.right(), told) == set()


def found_in(right, text):
    """Numbers of an answer that a text shows, to three or more digits; of letters, their list."""
    if isinstance(right, (set, frozenset)):
        shown = {"".join(sorted(right)), ", ".join(sorted(right)), repr(right)}
        return {entry for entry in shown if re.search(rf"\b{re.escape(entry)}\b", text)}
    numbers = set(re.findall(r"-?\d+(?:\.\d+)?", text))
    values = np.atleast_1d(np.asarray(right, dtype=float)).ravel()
    if values.size > 10:
        return set()
    shown = {format(value, f".{digits}g") for value in values for digits in range(3, 8)}
    return {entry for entry in shown & numbers if entry not in ("0", "1")}


def test_an_answer_in_a_hint_would_be_seen():
    assert found_in(2.3456, "It is 2.35.") == {"2.35"}
    assert found_in([1.0, 18.0], "Is it 18?") == {"18"}
    assert found_in({"b", "d"}, "Those are b, d.") == {"b, d"}


# ------------------------------------------------------------------- what any exercise can tell


@pytest.fixture
def three():
    """An exercise that asks for three numbers and knows one mistake."""
    slip = classroom.Mistake("no clip", lambda: [2.0, -3.0, 0.5], "Clip.")
    return classroom.Exercise(
        "three", "three numbers", lambda: [2.0, 3.0, 0.5], (slip,), "See step 1."
    )


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (..., "no answer yet. Wanted: three numbers"),
        (None, "no answer yet"),
        ([1.0, ..., 2.0], "no answer yet"),
        ([], "no answer yet"),
        ("…", "no answer yet"),
        ("2, 3, 0.5", "a str that is not made of numbers. Wanted: three numbers"),
        ({"a": 2.0}, "a dict that is not made of numbers"),
        (np.mean, "a function, not what it returns"),
        ([2.0, -3.0, 0.5], "Clip."),
        (2.0, "one number, where there should be several. Wanted: three numbers"),
        (np.ones(500), "along the wrong axis"),
        ([2.0, np.nan, 0.5], "infinite or no number"),
        ([-2.0, -3.0, -0.5], "Look at the sign."),
        ([4.0, 6.0, 1.0], "Look for a factor of 2."),
        ([1.0, 1.5, 0.25], "Look for a factor of 2"),
        ([200.0, 300.0, 50.0], "percentage"),
        ([0.02, 0.03, 0.005], "percentage?"),
        (np.array([2.0, 3.0, 0.5]) / np.log(10), "natural"),
        ([2.01, 3.0, 0.5], "Close, but not the number."),
        ([3.0, 2.0, 0.5], "in another order"),
        ([2.0, 3.0, 7.0], "The shape is right; 2 of 3 entries are. See step 1."),
    ],
)
def test_a_wrong_answer_is_told_in_what_respect(three, answer, told):
    verdict = three.judge(answer)
    assert not verdict.solved
    assert told in verdict.message


def test_a_small_number_beside_a_large_one_must_be_right_by_itself():
    exercise = classroom.Exercise("q", "two", lambda: [2400.0, 1.58], (), "Each by itself.")
    assert exercise.judge(np.float32([2400.0, 1.58])).solved
    for small, told in ((1.585, "Close"), (1.4, "1 of 2 entries"), (3.16, "1 of 2 entries")):
        verdict = exercise.judge([2400.0, small])
        assert not verdict.solved and told in verdict.message
    # but what is nothing may be left with the rounding error of the others
    zero = classroom.Exercise("z", "two", lambda: [2400.0, 0.0], (), "")
    assert zero.judge([2400.0, 1e-5]).solved and not zero.judge([2400.0, 0.1]).solved


def test_ends_of_an_interval_are_close_beside_its_width_and_not_beside_its_level():
    exercise = classroom.Exercise("i", "two ends", lambda: np.array([37.0, 39.0]), (), "Widths.")
    assert "Close" in exercise.judge([37.01, 39.01]).message
    assert "Close" not in exercise.judge([37.3, 38.7]).message


def test_rows_and_columns_that_are_exchanged_are_seen():
    table = np.arange(6.0).reshape(2, 3)
    exercise = classroom.Exercise("t", "a table", lambda: table, (), "")
    assert exercise.judge(table).solved
    assert exercise.judge(table.T).message.startswith("Rows and columns are exchanged")
    assert "where one number belongs" in classroom.Exercise(
        "n", "one number", lambda: 1.0, (), ""
    ).judge(table).message


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("a", "Only one."), ("abc", "3 of 4 are judged rightly. See the box."), ("c", "1 of 4"),
        (["a1"], "wanted: letters, out of a, b, c, d"), ("ax", "wanted: letters"), (7, "wanted"),
        ([0, 1], "wanted"), ([True, True, False], "wanted"), ("none", "wanted"), ("and", "wanted"),
    ],
)
def test_of_wrong_letters_it_is_told_how_many_are_judged_rightly(answer, told):
    slip = classroom.Mistake("one", lambda: {"a"}, "Only one.")
    exercise = classroom.Exercise(
        "l", "letters", lambda: {"a", "b"}, (slip,), "See the box.", options="abcd"
    )
    verdict = exercise.judge(answer)
    assert not verdict.solved and verdict.message.startswith(told)


@pytest.mark.parametrize(
    "answer",
    [
        "ba",
        "A and B",
        "(a), (b)",
        "a) b)",
        "a; b",
        "a & b",
        "a\nb",
        ["(a)", "(b)"],
        ["A, B"],
        ("b", "a"),
    ],
)
def test_letters_are_read_however_they_are_listed(answer):
    exercise = classroom.Exercise("l", "letters", lambda: {"a", "b"}, (), "", options="abcd")
    assert exercise.judge(answer).solved
    assert not classroom.Exercise(
        "l", "letters", lambda: {"a"}, (), "", options="abcd"
    ).judge(answer).solved


def test_a_chapter_counts_what_is_solved_and_an_answer_can_be_taken_back():
    work = classroom.chapter("theory")
    every = len(work.exercises)
    right = work.exercises["releases"].right()
    assert work.check("releases", right).solved
    assert work.summary().startswith(f"1 of {every} solved; open: differencing")
    assert "releases" not in work.summary()
    work.check("releases", ...)
    assert work.summary().startswith(f"0 of {every} solved")


def test_an_unknown_name_is_told_with_the_nearest():
    with pytest.raises(ValueError, match=r"unknown chapter 'theorie'; did you mean theory\?"):
        classroom.chapter("theorie")
    with pytest.raises(ValueError, match=r"unknown exercise 'weight'; did you mean weights\?"):
        classroom.chapter("theory").check("weight", 1)
