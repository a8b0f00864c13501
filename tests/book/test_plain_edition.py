"""Chapters in their plain edition: numbers of the built book, and what a run of one contradicts."""

import ast
import json
import re
import shutil

import nbformat
import pytest
import yaml
from conftest import ROOT
from nbconvert.preprocessors import ExecutePreprocessor

from ppm_book.chapters import page, running
from ppm_book.chapters.sentences import asked_numbers, of_claims
from ppm_book.tools import parameters
from ppm_book.tools.classroom import make_editions
from ppm_book.tools.exercises import FOLDER
from ppm_book.tools.plain import Words

CHAPTER = "eight_households"


def source(name):
    return nbformat.read(parameters.source(name), 4)


def with_numbers(name):
    """A run of a chapter that gave its text all numbers, each as its own name in brackets."""
    outputs = [
        nbformat.v4.new_output(
            "display_data",
            {"application/papermill.record/text/plain": repr(f"⟨{number}⟩")},
            metadata={"scrapbook": {"name": number}},
        )
        for number in sorted(asked_numbers(source(name)))
    ]
    cell = nbformat.v4.new_code_cell("", outputs=outputs)
    return nbformat.v4.new_notebook(cells=[cell])


def text_of(notebook):
    """Prose on one line, without the marks of quotes."""
    prose = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    return " ".join(re.sub("^> ?", "", "\n".join(prose), flags=re.M).split())


def sentences_in(notebook):
    """The sentences that the last cell has by heart."""
    *_, call = ast.parse(notebook.cells[-1].source).body
    (given,) = call.value.keywords
    return ast.literal_eval(given.value)


@pytest.mark.parametrize("name", parameters.chapters())
def test_a_plain_chapter_has_every_number_and_its_last_cell_every_claim(name):
    asked, claims = asked_numbers(source(name)), of_claims(parameters.source(name))
    chapter = Words(ROOT).chapter(name, with_numbers(name))
    text = text_of(chapter)
    assert {*re.findall("⟨(.*?)⟩", text)} == asked
    # three dots are an answer's place, or those of a list in the source
    assert text.count("…") == text_of(source(name)).count("…")
    assert bool(claims) == ("## What your run contradicts" in text)
    assert not claims or sentences_in(chapter).keys() == claims.keys()
    for words in sentences_in(chapter).values() if claims else ():
        # a reader finds it; of a cell of a table there is the row as well
        assert words in text or all(part in text for part in words.split(": ", 1))


@pytest.fixture
def repository(tmp_path):
    """A repository whose book has one chapter."""
    left_out = shutil.ignore_patterns("ppm_book", "__pycache__")
    for folder in ("notebooks", "book"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=left_out)
    chapters = [{"file": f"notebooks/{CHAPTER}"}]
    toc = {"root": "book/intro", "parts": [{"chapters": chapters}]}
    for name, content in (("_toc.yml", toc), ("_config.yml", {"title": "A book"})):
        (tmp_path / name).write_text(yaml.safe_dump(content), "utf-8")
    return tmp_path


def build(root, profile, executed, **record):
    """Leave the results of a book that was built of a repository."""
    folder = root / "_build" / "results" / profile / CHAPTER
    folder.mkdir(parents=True)
    nbformat.write(executed, folder / f"{CHAPTER}.ipynb")
    (folder / "run.json").write_text(json.dumps(record), "utf-8")


@pytest.mark.parametrize("own", [[CHAPTER], ["theory"], [CHAPTER, "theory"]])
def test_a_book_with_any_chapter_of_other_data_is_no_book_to_show(repository, own):
    parts = [
        {"chapters": [{"file": f"notebooks/{CHAPTER}"}, {"file": "notebooks/theory"}]}
    ]
    toc = yaml.safe_dump({"root": "book/intro", "parts": parts})
    (repository / "_toc.yml").write_text(toc, "utf-8")
    results = repository / "_build" / "results"

    def build(profile, own):
        for name in CHAPTER, "theory":
            (folder := results / profile / name).mkdir(parents=True, exist_ok=True)
            record = {"ce_data_hash": "1"} if name in own else {}
            (folder / "run.json").write_text(json.dumps(record), "utf-8")

    assert parameters.of_book(repository) is None
    build("paper", own)
    assert parameters.of_book(repository) is None
    build("quick", [])
    assert parameters.of_book(repository) == results / "quick"
    build("paper", [])
    assert parameters.of_book(repository) == results / "paper"
    # a chapter is lacking
    shutil.rmtree(results / "paper" / "theory")
    assert parameters.of_book(repository) == results / "quick"


def test_students_get_the_numbers_of_the_built_book_and_nothing_that_is_graded(
    repository, capsys
):
    def handed_out():
        make_editions(repository, editions=["student"])
        file = f"_build/classroom/student/chapters/{CHAPTER}.ipynb"
        text = text_of(nbformat.read(repository / file, 4))
        return text, capsys.readouterr().err

    asked = asked_numbers(source(CHAPTER))
    # of other data than the file on board a book is its owner's alone
    build(repository, "own", with_numbers(CHAPTER), ce_data_hash="1")
    text, said = handed_out()
    assert "a dash in place of each number: make book first" in said
    assert "without a built book, so a dash, –," in text and "⟨" not in text
    # the profile paper comes before another one
    stale = with_numbers(CHAPTER)
    lost = stale.cells[0].outputs.pop().metadata.scrapbook.name
    build(repository, "quick", stale)
    text, said = handed_out()
    assert f"{CHAPTER} has a dash for what the built book lacks: {lost}\n" in said
    assert {*re.findall("⟨(.*?)⟩", text)} == asked - {lost}
    build(repository, "paper", with_numbers(CHAPTER))
    text, said = handed_out()
    assert "the numbers of the profile paper" in said and "lacks" not in said
    assert {*re.findall("⟨(.*?)⟩", text)} == asked
    assert "those of the book’s own run" in text
    # nothing of the assessment, and no checks, beside which the exercises lie
    assert [*(repository / FOLDER).glob("*assessment*")]
    student = repository / "_build" / "classroom" / "student"
    assert {file.relative_to(student).as_posix() for file in student.rglob("*.*")} == {
        "README.md",
        f"chapters/{CHAPTER}.ipynb",
        f"exercises/{CHAPTER}_exercises.ipynb",
    }


def test_a_rerun_of_a_plain_chapter_lists_the_sentences_that_it_contradicts(tmp_path):
    chapter = Words(ROOT).chapter(CHAPTER, with_numbers(CHAPTER))
    (cell,) = [c for c in chapter.cells if "parameters" in c.metadata.get("tags", ())]
    cell.source += "\nscale, shift, draws = 0.3, 0.4, 200"
    with running.own_kernel():
        run = ExecutePreprocessor(extra_arguments=["--log-level=CRITICAL"])
        run.preprocess(chapter, {"metadata": {"path": tmp_path}})
    claims, *_, numbers = (output["data"] for output in chapter.cells[-1].outputs)
    lines = claims["text/plain"].splitlines()
    listed = [line.removeprefix("- ") for line in lines if line.startswith("- ")]
    # as the text above has them, with the book's numbers
    words, holds = sentences_in(chapter), claims[page.CLAIMS_TYPE]
    assert {*listed} == {words[claim] for claim in words if not holds[claim]}
    assert 5 < len(listed) < len(words) and any("⟨" in each for each in listed)
    # and those of this run
    shown = numbers["text/plain"]
    assert all(number in shown for number in asked_numbers(source(CHAPTER)))
