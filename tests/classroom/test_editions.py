"""Editions of the exercises for a class, and the pages of the book that show them."""

import json
import re
import shutil
import sys
import zipfile

import nbformat
import pytest
from conftest import ROOT
from test_classroom import has, run

from ppm.publishing import editions
from ppm.publishing.command_line import main
from ppm.publishing.exercises import (
    exercise_page,
    launch_links,
    read_sheets,
    solutions_page,
    stage_exercises,
)
from ppm.publishing.notebooks import BookError
from ppm.publishing.staging import stage

SHEETS = read_sheets(ROOT)
RECORD = {
    "profile": "paper", "parameters": {"seed": 2}, "changed": [], "seconds": 1.0,
    "started": "2026-03-09T12:00:00+00:00", "python": "3.13.0", "versions": {"ppm": "0.1.0"},
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Folder of both editions."""
    folder = tmp_path_factory.mktemp("class") / "room"
    archives = editions.make_classroom(ROOT, folder)
    assert [archive.name for archive in archives] == ["student.zip", "instructor.zip"]
    return folder


def cells_of(made, edition, chapter):
    notebook = nbformat.read(made / edition / f"{chapter}.ipynb", 4)
    nbformat.validate(notebook)
    return notebook.cells


def sentences(text):
    """Parts of a text that are long enough to be recognised, without markup."""
    plain = re.sub(r"\{[\w:]+\}`[^`]*`", "\n", text)
    return [part.strip() for part in re.split(r"[\n.;:]", plain) if len(part.strip()) > 25]


def leaks(made, chapter):
    """Parts of solutions that the student edition of a chapter holds."""
    shown = "\n".join(cell.source for cell in cells_of(made, "student", chapter))
    tasks = SHEETS[chapter].tasks
    secret = [part for task in tasks for part in sentences(f"{task.worked}\n{task.explained}")]
    assert len(secret) > 20
    given = "\n".join(f"{SHEETS[chapter].setup}\n{task.text}" for task in tasks)
    return [part for part in secret if part in shown and part not in given]


@pytest.mark.parametrize("chapter", SHEETS)
def test_no_solution_survives_in_the_student_edition(made, chapter):
    assert leaks(made, chapter) == []
    cells = cells_of(made, "student", chapter)
    assert not any(has(cell, "solution") or has(cell, "instructor") for cell in cells)
    assert not any("outputs" in cell and cell.outputs for cell in cells)
    assert [c.id for c in cells if has(c, "exercise")] == [t.label for t in SHEETS[chapter].tasks]
    text = (made / "student" / "README.md").read_text("utf-8")
    assert f"`{chapter}.ipynb`" in text


def test_a_solution_that_survives_would_be_seen(tmp_path, monkeypatch):
    monkeypatch.setattr(editions, "TEACHERS", frozenset({"instructor"}))
    editions.make_classroom(ROOT, tmp_path / "out")
    assert all(leaks(tmp_path / "out", chapter) for chapter in SHEETS)


@pytest.mark.parametrize("chapter", SHEETS)
def test_both_editions_run_and_the_checks_say_what_they_should(made, chapter, capsys):
    _, verdicts = run(cells_of(made, "student", chapter))
    assert verdicts and not any(verdict.solved for verdict in verdicts.values())
    assert all(each.message.startswith("no answer yet. Wanted") for each in verdicts.values())
    _, verdicts = run(cells_of(made, "instructor", chapter))
    assert verdicts and all(verdict.solved for verdict in verdicts.values())


@pytest.mark.parametrize("chapter", SHEETS)
def test_the_instructor_edition_has_outputs_times_and_typical_slips(made, chapter):
    cells = cells_of(made, "instructor", chapter)
    checks = [cell for cell in cells if has(cell, "check")]
    assert all(cell.outputs[0].data["text/plain"].startswith("✔") for cell in checks)
    notes = {
        cell.id.removesuffix("-note"): cell.source for cell in cells if has(cell, "instructor")
    }
    exercises = editions.classroom.chapter(chapter).exercises
    assert notes.keys() == {task.label for task in SHEETS[chapter].tasks}
    for task in SHEETS[chapter].tasks:
        assert f"About {task.minutes} minutes." in notes[task.label]
        if task.check:
            exercise = exercises[task.label.removeprefix("ex-")]
            hints = [f"{slip.name}: “{slip.hint}”" for slip in exercise.mistakes]
            assert all(hint in notes[task.label] for hint in hints)


def test_the_expected_answer_is_the_one_that_the_solution_computes(made):
    cells = {cell.id: cell.source for cell in cells_of(made, "instructor", "theory")}
    assert "```text\n[40, 0.025]\n```" in cells["ex-releases-note"]
    assert "```text\nF, G\n```" in cells["ex-whack-a-mole-note"]


@pytest.mark.parametrize("edition", editions.EDITIONS)
def test_an_edition_is_words_that_jupyter_shows_and_lies_in_one_zip_file(made, edition):
    with zipfile.ZipFile(made / f"{edition}.zip") as archive:
        names = set(archive.namelist())
        assert names == {f"{edition}/{name}" for name in [*(f"{c}.ipynb" for c in SHEETS),
                                                          "README.md"]}
        for name in names:
            assert archive.read(name) == (made / name).read_bytes()
    for chapter in SHEETS:
        for cell in cells_of(made, edition, chapter):
            if cell.cell_type == "markdown":
                assert not re.search(r"\{[\w:]+\}`|\]\(#|KeyError", cell.source), cell.source
    text = cells_of(made, "student", "theory")
    task = next(cell.source for cell in text if cell.id == "ex-gamma")
    assert "Derive the formula $\\mu \\mid \\mathbf x \\;\\sim\\;" in task and len(task) < 500
    task = next(cell.source for cell in text if cell.id == "ex-weights")
    assert "of the exercise “Bounds of records” into" in task
    assert "of the algorithm “Pseudo posterior mechanism”" in task
    text = cells_of(made, "student", "what_it_means")
    task = next(cell.source for cell in text if cell.id == "ex-deployments")
    assert "(Abowd et al. 2022)" in task and "(Apple Inc. 2017)" in task


@pytest.mark.parametrize("edition", editions.EDITIONS)
def test_an_exercise_has_the_number_that_the_book_gives_it(made, edition):
    toc = (ROOT / "_toc.yml").read_text("utf-8").partition("caption: Reference")[0]
    chapters = re.findall(r"file: notebooks/(\w+)", toc)
    for chapter, name in enumerate(chapters, start=1):
        tasks = [cell for cell in cells_of(made, edition, name) if has(cell, "exercise")]
        for place, (cell, task) in enumerate(zip(tasks, SHEETS[name].tasks, strict=True), start=1):
            assert cell.source.startswith(f"## Exercise {chapter}.{place}: {task.title}\n")


def test_the_same_exercises_give_the_same_archive(made, tmp_path):
    for archive in editions.make_classroom(ROOT, tmp_path / "again"):
        assert archive.read_bytes() == (made / archive.name).read_bytes()


@pytest.fixture
def small(tmp_path):
    """A repository with the exercises of one chapter."""
    root = tmp_path / "root"
    (root / "notebooks" / "exercises").mkdir(parents=True)
    (root / "_toc.yml").write_text(
        "format: jb-book\nroot: book/intro\nchapters:\n  - file: exercises/theory\n"
        "  - file: notebooks/theory\n  - file: exercises/solutions\n"
    )
    (root / "_config.yml").write_text("title: A book\n")
    for file in ("notebooks/theory.ipynb", "notebooks/exercises/theory.ipynb"):
        (root / file).write_bytes((ROOT / file).read_bytes())
    (root / "book").mkdir()
    (root / "book" / "references.bib").write_bytes((ROOT / "book" / "references.bib").read_bytes())
    return root


def changed(root, old, new):
    path = root / "notebooks" / "exercises" / "theory.ipynb"
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")


def test_a_solution_that_fails_its_check_makes_no_edition_and_leaves_the_last_one(small):
    archives = editions.make_classroom(small)
    assert archives[0] == small / "_build" / "classroom" / "student.zip"
    before = archives[0].read_bytes()
    changed(small, "np.abs(given.log_lik).max(axis=0)", "given.log_lik.max(axis=0)")
    with pytest.raises(BookError, match=r"^theory, cell \d+: the solution does not pass .* ✘ rec"):
        editions.make_classroom(small)
    changed(small, "given.log_lik.max(axis=0)", "given.log_like.max(axis=0)")
    with pytest.raises(BookError, match=r"^theory, cell \d+: AttributeError: .*log_like"):
        editions.make_classroom(small)
    assert archives[0].read_bytes() == before


def test_the_readme_names_the_repository_where_the_settings_have_it(small):
    readme = editions.make_classroom(small)[0].parent / "student" / "README.md"
    assert '"path/to/the/repository"' in readme.read_text("utf-8")
    assert '"path/to/the/repository[pymc]"' in readme.read_text("utf-8")
    (small / "_config.yml").write_text("repository: {url: 'https://github.com/a/b'}\n")
    editions.make_classroom(small)
    assert '"git+https://github.com/a/b"' in readme.read_text("utf-8")
    text = readme.read_text("utf-8")
    assert '"ppm[pymc] @ git+https://github.com/a/b"' in text and "path/to" not in text


def test_the_command_says_which_package_it_lacks_before_it_replaces_anything(
    small, capsys, monkeypatch
):
    archives = editions.make_classroom(small)
    before = archives[0].stat().st_mtime_ns
    monkeypatch.setitem(sys.modules, "yaml", None)
    assert main(["--root", str(small), "classroom"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("ppm: ppm classroom needs yaml: pip install 'ppm[book]'")
    assert archives[0].stat().st_mtime_ns == before


def test_the_command_says_what_it_made(small, capsys):
    assert main(["--root", str(small), "classroom"]) == 0
    assert re.findall(r"Made .*classroom/(\w+)\.zip\n", capsys.readouterr().out) == [
        "student", "instructor"
    ]
    changed(small, "## Bounds of records", "Bounds of records")
    assert main(["--root", str(small), "classroom"]) == 1
    assert "ex-record-bounds needs a label" in capsys.readouterr().err


# ------------------------------------------------------------------------ pages of the book


def test_exercises_and_solutions_lead_to_each_other(small):
    target = small / "stage"
    target.mkdir()
    stage_exercises(small, target)
    page = (target / "exercises" / "theory.md").read_text("utf-8")
    solutions = (target / "exercises" / "solutions.md").read_text("utf-8")
    for task in SHEETS["theory"].tasks:
        assert f"{{exercise}} {task.title}\n:label: {task.label}\n" in page
        assert f"{{ref}}`Solution <{task.solution}>`" in page
        assert (
            f"{{solution}} {task.label}\n:label: {task.solution}\n:class: dropdown\n" in solutions
        )
        assert task.explained.partition("\n")[0] not in page
    assert "```python\nbounds = ...\ncheck(\"record-bounds\", bounds)\n```" in page
    assert "{doc}`../notebooks/theory`" in page and "{doc}`theory`" in solutions
    assert "Binder" not in page


def test_exercises_that_the_contents_list_must_exist(small):
    (small / "_toc.yml").write_text("chapters:\n  - file: exercises/other\n")
    with pytest.raises(BookError, match=r"lists exercises/other, but there is no .*other\.ipynb"):
        read_sheets(small)
    (small / "_toc.yml").write_text("chapters:\n  - file: book/intro\n")
    stage_exercises(small, small / "nowhere")
    assert not (small / "nowhere").exists()


def test_every_label_of_an_exercise_is_used_once_and_the_chapters_link_to_their_exercises():
    labels = [task.label for sheet in SHEETS.values() for task in sheet.tasks]
    assert len(labels) == len(set(labels)) >= 60
    for chapter, sheet in SHEETS.items():
        assert len(sheet.tasks) >= 6
        text = (ROOT / "notebooks" / f"{chapter}.ipynb").read_text("utf-8")
        assert f"{{doc}}`../exercises/{chapter}`" in text
        assert "{exercise}" not in text and "{solution}" not in text


@pytest.mark.parametrize("address", ["", "https://example.org/a/b", "https://github.com/a"])
def test_without_an_address_on_github_there_are_no_links(address):
    assert launch_links(address, "notebooks/theory.ipynb", "parameters") == ""


@pytest.mark.parametrize("end", ["", "/", ".git"])
def test_links_open_the_notebook_at_its_cell(end):
    told = launch_links(f"https://github.com/a/b-c{end}", "notebooks/theory.ipynb", "parameters")
    binder, colab = re.findall(r"\((https://[^)]*)\)", told)
    assert binder == (
        "https://mybinder.org/v2/gh/a/b-c/HEAD?urlpath="
        "lab%2Ftree%2Fnotebooks%2Ftheory.ipynb%23cell-id%3Dparameters"
    )
    assert colab == (
        "https://colab.research.google.com/github/a/b-c/blob/HEAD/notebooks/theory.ipynb"
        "#scrollTo=parameters"
    )
    page = exercise_page(SHEETS["theory"], told)
    assert told in page and told not in solutions_page(SHEETS.values())


@pytest.mark.parametrize("address", ["", "https://github.com/a/b"])
def test_a_chapter_has_links_where_the_settings_have_the_address(tiny_book, address):
    executed = tiny_book / "executed"
    executed.mkdir()
    shutil.copy(tiny_book / "notebooks" / "prose.ipynb", executed)
    (executed / "prose.json").write_text(json.dumps({"record": RECORD}))
    settings = (tiny_book / "_config.yml").read_text("utf-8")
    assert 'url: ""' in settings
    (tiny_book / "_config.yml").write_text(settings.replace('url: ""', f"url: {address!r}"))
    stage(tiny_book, tiny_book / "staged", executed, ["prose"])
    text = (tiny_book / "staged" / "notebooks" / "prose.ipynb").read_text("utf-8")
    link = "https://colab.research.google.com/github/a/b/blob/HEAD/notebooks/prose.ipynb"
    assert (f"({link}#scrollTo=parameters)" in text) == ("mybinder" in text) == bool(address)


def test_the_cells_that_links_open_are_there():
    for chapter in SHEETS:
        for file, cell in ((chapter, "parameters"), (f"exercises/{chapter}", "setup")):
            content = json.loads((ROOT / "notebooks" / f"{file}.ipynb").read_text("utf-8"))
            assert cell in [each["id"] for each in content["cells"]]
