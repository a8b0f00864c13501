"""Building the book: what is executed again and why, what is staged, and what must fail."""

import io
import json
import os
import posixpath
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from conftest import ROOT, chapter, code, markdown, needs_file_limit, write_notebook
from public_names import public_names
from sphinx.util.inventory import InventoryFile

from ppm.publishing import book, fingerprints, staging
from ppm.publishing.execution import run_record
from ppm.publishing.files import FolderInUse, alone_in
from ppm.publishing.notebooks import (
    NotebookFailed,
    check,
    describe,
    find_notebooks,
    load_profile,
)
from ppm.publishing.parameters import PARAMETERS


def make(root, **options):
    """Build and return the exit status and the progress lines."""
    out = io.StringIO()
    return book.build(root, out=out, **options), out.getvalue()


class Calls(list):
    """Who was called, and with what."""


@pytest.fixture
def recorder(monkeypatch):
    """Stand-ins for papermill and Sphinx that note who called."""
    calls = Calls()

    def execute(notebook, output, values, *, results=None, fits=None, progress=None):
        calls.append(notebook.name)
        shutil.copyfile(notebook.path, output)
        return 1.0

    def sphinx(source, output, *, strict=True):
        calls.append("sphinx")
        html = output / "_build" / "html"
        html.mkdir(parents=True)
        (html / "index.html").write_text("page")
        return []

    monkeypatch.setattr(book, "execute", execute)
    monkeypatch.setattr(book, "_sphinx", sphinx)
    return calls


def append(path, text="\n# a comment\n"):
    """Change a file."""
    path.write_text(path.read_text("utf-8") + text, "utf-8")


# ------------------------------------------------------------------------------- really built


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A tiny book, built with warnings fatal."""
    from conftest import tiny_book

    root = tiny_book.__wrapped__(tmp_path_factory.mktemp("book"))
    status, told = make(root, profile="quick")
    assert status == 0, told
    return root, told


def test_progress_says_what_runs_and_where_the_book_is(built):
    root, told = built
    assert "counts: executing (for the first time)" in told
    assert told.endswith(f"The book is ready: {root / '_build' / 'html' / 'index.html'}\n")


def test_the_page_shows_figure_caption_number_and_alt_text(built):
    page = (built[0] / "_build" / "html" / "notebooks" / "counts.html").read_text("utf-8")
    assert 'alt="Line from the lower left to the upper right."' in page
    assert re.search(r"Fig\. 1 .*A line that rises\.", page)
    intro = (built[0] / "_build" / "html" / "book" / "intro.html").read_text("utf-8")
    assert re.search(r"<a [^>]*>.*Fig\. 1", intro)


def test_the_page_says_how_it_was_made_and_folds_the_parameters(built):
    page = (built[0] / "_build" / "html" / "notebooks" / "counts.html").read_text("utf-8")
    assert page.index("<h1>Counts") < page.index(staging.BOX_TITLE) < page.index("<h2>Objectives")
    text = re.sub(r"<[^>]+>", "", page)
    assert "Profile quick, executed on" in text
    assert "Different from the defaults: replicates = 2." in text
    # the parameters cell, papermill's, and the check
    assert len(re.findall('class="[^"]*tag_hide-input', page)) == 3


def remote_files(page):
    """Addresses on other machines that a page loads by itself."""
    loaded = re.findall(r'<(?:script|img|iframe)\b[^>]*\bsrc="([^"]+)"', page)
    loaded += re.findall(r'<link\b(?=[^>]*rel="(?:stylesheet|preload)")[^>]*href="([^"]+)"', page)
    return [file for file in loaded if re.match(r"(https?:)?//", file)]


def test_pages_load_nothing_from_other_machines(built):
    html = built[0] / "_build" / "html"
    pages = list(html.rglob("*.html"))
    assert len(pages) >= 6
    for page in pages:
        assert remote_files(page.read_text("utf-8")) == [], page.name
    assert (html / "_static" / "mathjax" / "tex-chtml.js").is_file()
    # what the same check says of a page as Jupyter Book makes it by default
    assert remote_files('<script defer src="https://cdn.example/mathjax.js"></script>')
    assert remote_files('<link rel="stylesheet" href="//cdn.example/x.css" />')


def test_book_and_command_line_show_the_same_parameters(built, capsys):
    from ppm.publishing import command_line as cli

    page = (built[0] / "_build" / "html" / "book" / "parameters.html").read_text("utf-8")
    in_book = " ".join(re.sub(r"<[^>]+>", " ", page).split())
    assert cli.main(["--root", str(built[0]), "run", "--help"]) == 0
    in_help = " ".join(capsys.readouterr().out.split())
    for notebook in find_notebooks(built[0]).values():
        for name in notebook.parameters:
            for text in (PARAMETERS[name].meaning, PARAMETERS[name].accepted, name):
                assert text in in_book
                assert text in in_help


def test_a_second_build_does_no_work(built, monkeypatch):
    def fail(*arguments, **options):
        pytest.fail("work was begun")

    monkeypatch.setattr(book, "execute", fail)
    monkeypatch.setattr(book, "_sphinx", fail)
    monkeypatch.setattr(book, "stage", fail)
    status, told = make(built[0], profile="quick")
    assert status == 0
    assert told == f"The book is up to date: {built[0] / '_build' / 'html' / 'index.html'}\n"
    # ... and the stand-ins would have seen it: a word of prose is enough
    intro = built[0] / "book" / "intro.md"
    before = intro.read_text("utf-8")
    append(intro, "\nMore.\n")
    with pytest.raises(pytest.fail.Exception):
        make(built[0], profile="quick")
    intro.write_text(before, "utf-8")


def test_a_broken_reference_fails_the_build_and_the_old_book_stays(built, tmp_path):
    root = tmp_path / "copy"
    shutil.copytree(built[0], root)
    append(root / "book" / "intro.md", "\nSee {ref}`no-such-place`.\n")
    status, told = make(root, profile="quick")
    assert status == 1
    assert "no-such-place" in told
    assert "book/intro.md:" in told
    assert "The book was not built" in told
    page = root / "_build" / "html" / "book" / "intro.html"
    assert "no-such-place" not in page.read_text("utf-8")
    assert not (root / "_build" / "html.json").exists()


def test_a_failing_cell_fails_the_build(tiny_book, capsys):
    from ppm.publishing import command_line as cli

    write_notebook(
        tiny_book / "notebooks" / "prose.ipynb", chapter("Prose", [code("raise KeyError('lost')")])
    )
    toc = tiny_book / "_toc.yml"
    toc.write_text(toc.read_text().replace("  - file: notebooks/counts\n", ""))
    assert cli.main(["--root", str(tiny_book), "book"]) == 1
    told = capsys.readouterr().err
    assert "prose, cell [4] (raise KeyError('lost')): KeyError: 'lost'" in told
    assert told.count("\n") == 1
    assert not (tiny_book / "_build" / "html").exists()


def test_this_book_builds_without_a_warning(this_book):
    """All chapters and pages, with the small values that nbmake uses too."""
    root = this_book
    small = load_profile(root, "small", find_notebooks(root))
    ledger_page = (root / "_build" / "html" / "book" / "ledger.html").read_text("utf-8")
    assert "of 10 times 3 = 30 databases" in re.sub(r"\s+", " ", ledger_page)
    # the reference describes what a reader may call, and links lead to nothing else
    with (root / "_build" / "html" / "objects.inv").open("rb") as file:
        inventory = InventoryFile.load(file, "", posixpath.join)
    kinds = ("py:function", "py:class", "py:exception")
    # a class has a second entry, by the module that defines it, with the same address
    described = {
        name
        for kind in kinds
        for name, (*_, address, _) in inventory[kind].items()
        if address.endswith(f"#{name}")
    }
    assert described == {f"ppm.{name}" for name in public_names()}
    # a default that is shown as Python prints it may be a module, with its path
    places = [str(place) for place in (root, ROOT, Path(nbformat.__file__).parents[1])]
    for path in (root / "_build" / "html").rglob("*.html"):
        page = path.read_text("utf-8")
        assert not [place for place in places if place in page], path.name
    chapters = root / "_build" / "html" / "notebooks"
    assert {path.stem for path in chapters.glob("*.html")} == small.keys()
    assert len(small) > 3
    said = []
    for name in small:
        page = (chapters / f"{name}.html").read_text("utf-8")
        assert "Profile <code" in page
        # every computed figure has a number, and words for those who do not see it
        figures = re.findall(r"<figure\b.*?</figure>", page, re.DOTALL)
        assert figures
        for figure in figures:
            assert re.search(r'class="caption-number">Fig\. ', figure)
            (words,) = re.findall(r'<img [^>]*\balt="([^"]{20,})"', figure)
            assert "../_images" not in words
            # with its numbers from the data, which are a file that the caption links to
            assert re.search(r"[a-z]\. .*\d", words, re.DOTALL), words
            said.append(words)
            for file in re.findall(r'(?:srcset|href)="\.\./(_static/[^"]+)"', figure):
                assert (chapters.parent / file).is_file()
            assert re.search(r'<source media="[^"]+" srcset="[^"]+\.png"', figure)
            assert re.search(r'<a href="[^"]+\.csv" download', figure)
    assert len(set(said)) == len(said)


# ------------------------------------------------------------------- what is executed again


def test_a_change_runs_again_exactly_what_depends_on_it(tiny_book, recorder):
    def rerun(**options):
        recorder.clear()
        _, told = make(tiny_book, **options)
        return recorder.copy(), told

    assert rerun()[0] == ["counts", "prose", "sphinx"]
    assert rerun()[0] == []

    append(tiny_book / "ppm" / "studies" / "contraction_study.py")
    called, told = rerun()
    assert called == ["counts", "sphinx"]
    assert "counts: executing (ppm/studies/contraction_study.py changed)" in told

    append(tiny_book / "ppm" / "pdp.py")
    assert "prose" in rerun()[0]

    append(tiny_book / "requirements.lock", "scipy==1.0\n")
    assert rerun()[0] == ["counts", "prose", "sphinx"]

    profile = tiny_book / "notebooks" / "profiles" / "paper.yml"
    profile.write_text("prose:\n  seed: 9\n")
    called, told = rerun()
    assert called == ["prose", "sphinx"]
    assert "prose: executing (parameter seed changed)" in told

    notebook = tiny_book / "notebooks" / "counts.ipynb"
    notebook.write_text(notebook.read_text().replace("largest size", "largest size in known.csv"))
    assert rerun()[0] == ["counts", "sphinx"]

    # only the chapter that reads a table depends on it
    table = tiny_book / "book" / "known.csv"
    table.write_text("size\n")
    assert rerun()[0] == ["counts", "sphinx"]
    append(table, "100\n")
    called, told = rerun()
    assert called == ["counts", "sphinx"]
    assert "counts: executing (book/known.csv changed)" in told

    append(tiny_book / "book" / "intro.md")
    assert rerun()[0] == ["sphinx"]

    # profiles do not push each other's notebooks out
    assert rerun(profile="quick")[0] == ["counts", "prose", "sphinx"]
    assert rerun()[0] == ["sphinx"]


def test_what_a_fingerprint_gained_lost_or_changed_is_said():
    before, now = {"a": 1, "b": 2, "c": 3}, {"b": 5, "c": 3, "d": 4}
    assert fingerprints.changes(before, now) == ["a is gone", "b changed", "d is new"]
    assert fingerprints.changes(now, now) == []
    assert fingerprints.changes(None, now) == ["for the first time"]


def test_pages_are_made_again_when_anything_they_show_or_that_makes_them_changes(
    tiny_book, recorder, monkeypatch
):
    library = tiny_book / "ppm" / "publishing"
    monkeypatch.setattr(fingerprints, "__file__", str(library / "fingerprints.py"))
    shown = [
        tiny_book / file for file in (
            # the page of parameters has a column for every profile
            "_config.yml", "_toc.yml", "book/intro.md", "notebooks/profiles/quick.yml",
            "_build/results/paper/prose/values.json", "_build/tests/all.xml",
        )
    ]
    shown += [library / f"{name}.py" for name in ("book", "ledger", "pages", "checks")]
    # its docstrings stand in the reference, and neither chapter uses it
    shown += [library.parent / "utility.py"]
    make(tiny_book)
    for file in shown:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    make(tiny_book)
    for file in shown:
        recorder.clear()
        append(file)
        make(tiny_book)
        assert recorder == ["sphinx"], file
    recorder.clear()
    append(library / "command_line.py")
    make(tiny_book)
    assert recorder == []


def test_the_survey_file_counts_by_its_content(tiny_book, recorder, tmp_path):
    data = tmp_path / "diary.zip"
    data.write_bytes(b"one")
    make(tiny_book)
    recorder.clear()
    make(tiny_book, ce_data=str(data))
    assert recorder == ["prose", "sphinx"]
    recorder.clear()
    moved = tmp_path / "elsewhere" / "diary.zip"
    moved.parent.mkdir()
    shutil.copy(data, moved)
    make(tiny_book, ce_data=str(moved))
    assert recorder == []
    moved.write_bytes(b"two")
    make(tiny_book, ce_data=str(moved))
    assert recorder == ["prose", "sphinx"]


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
def test_a_book_on_a_data_file_can_be_read_by_its_owner_only(tiny_book, recorder, tmp_path):
    data = tmp_path / "diary.zip"
    data.write_bytes(b"one")
    kept = {name: tiny_book / "_build" / name / "paper" for name in ("executed", "results")}
    pages = tiny_book / "_build" / "html"

    def build(**options):
        _, told = make(tiny_book, **options)
        folders = [*kept.values(), kept["results"] / "prose", pages]
        modes = [stat.S_IMODE(folder.stat().st_mode) for folder in folders]
        notes = [(folder / "CONFIDENTIAL.txt").is_file() for folder in (*kept.values(), pages)]
        files = [pages / "index.html", kept["executed"] / "prose.ipynb"]
        return told, modes, notes, [stat.S_IMODE(file.stat().st_mode) for file in files]

    before = os.umask(0o022)
    try:
        # folders of earlier versions
        kept["executed"].mkdir(parents=True)
        told, modes, notes, files = build()
        assert modes == [0o700, 0o700, 0o700, 0o755] and not any(notes)
        assert files[0] == 0o644
        assert "only you" not in told
        told, modes, notes, files = build(ce_data=str(data))
        assert modes == [0o700] * 4 and all(notes)
        assert files == [0o600, 0o600]
        assert "computed from diary.zip, so only you can read it" in told
        assert "diary.zip" in (pages / "CONFIDENTIAL.txt").read_text("utf-8")
        # of simulated records again, and anybody may see the pages
        _, modes, notes, _ = build()
        assert modes == [0o700, 0o700, 0o700, 0o755] and not any(notes)
    finally:
        os.umask(before)


@pytest.mark.parametrize("interrupted", ["execute", "_sphinx"])
def test_an_interrupted_build_is_not_taken_for_done(tiny_book, recorder, monkeypatch, interrupted):
    make(tiny_book)
    append(tiny_book / "ppm" / "studies" / "contraction_study.py")
    with monkeypatch.context() as patch:

        def interrupt(*arguments, **options):
            raise KeyboardInterrupt

        patch.setattr(book, interrupted, interrupt)
        with pytest.raises(KeyboardInterrupt):
            make(tiny_book)
    recorder.clear()
    make(tiny_book)
    assert "sphinx" in recorder
    assert ("counts" in recorder) == (interrupted == "execute")


def test_of_two_builds_at_once_the_second_is_refused(tiny_book, recorder):
    with alone_in(tiny_book / "_build"), pytest.raises(FolderInUse, match="wait for its end"):
        make(tiny_book)
    assert recorder == []
    assert make(tiny_book)[0] == 0


@pytest.mark.parametrize("status", [0, 1], ids=["only warned", "failed"])
def test_pages_that_a_full_disk_cut_short_are_no_book(tmp_path, monkeypatch, status):
    said = "WARNING: cannot copy image file '/x/a.png': [Errno 28] No space left on device: '/x/b'"

    def run(command, **options):
        (tmp_path / "out" / "_build" / "html").mkdir(parents=True)
        return subprocess.CompletedProcess(command, status, said + "\nand so on\n")

    monkeypatch.setattr(book.subprocess, "run", run)
    with pytest.raises(book.BookError) as caught:
        book._sphinx(tmp_path, tmp_path / "out", strict=False)
    assert str(caught.value) == "the pages could not be written: No space left on device"
    # of other errors Sphinx's own lines tell more
    said = said.replace("28", "2")
    assert bool(book._sphinx(tmp_path, tmp_path / "out", strict=False)) == bool(status)


@needs_file_limit
def test_a_page_that_cannot_be_written_is_not_there(
    tiny_book, tmp_path, recorder, monkeypatch, file_limit
):
    executed = tmp_path / "out" / "prose.ipynb"
    executed.parent.mkdir()
    shutil.copy(tiny_book / "notebooks" / "prose.ipynb", executed)
    record = run_record(describe(executed), {}, "paper") | {"seconds": 1.0}

    def sphinx(source, output, *, strict=True):
        html = output / "_build" / "html"
        for file in ("notebooks/prose.html", "_static/a.js"):
            (html / file).parent.mkdir(parents=True)
            (html / file).write_text("</head>")
        return []

    monkeypatch.setattr(book, "_sphinx", sphinx)
    monkeypatch.setattr(book, "_single", lambda html, name: "x" * 300_000)
    with file_limit(200_000), pytest.raises(OSError, match="File too large"):
        book.render_page(tiny_book, executed, record)
    assert list(executed.parent.iterdir()) == [executed]
    book.render_page(tiny_book, executed, record)
    found = {path.name for path in executed.parent.rglob("*")}
    assert found == {"prose.ipynb", "prose.html", "prose_files", "_static", "a.js"}


def test_the_page_of_a_run_is_made_without_the_librarys_reference(tmp_path, monkeypatch):
    """It would only cost time: a chapter alone has no links to other pages."""
    seen = {}

    def look(source, output, *, strict=True):
        seen["pages"] = re.findall(r"file: (\S+)", (source / "_toc.yml").read_text("utf-8"))
        seen["there"] = {path.stem for path in (source / "book").rglob("*.md")}
        return ["seen enough"]

    monkeypatch.setattr(book, "_sphinx", look)
    notebook = find_notebooks(ROOT)["theory"]
    executed = tmp_path / "theory.ipynb"
    shutil.copy(notebook.path, executed)
    record = run_record(notebook, {}, "paper") | {"seconds": 1.0}
    with pytest.raises(book.BookError, match="seen enough"):
        book.render_page(ROOT, executed, record)
    contents = re.findall(r"file: (\S+)", (ROOT / "_toc.yml").read_text("utf-8"))
    assert seen["pages"] == [page for page in contents if "library" not in page]
    assert len(seen["pages"]) > 10 and "notation" in seen["there"]
    assert not seen["there"] & {"lipschitz", "weights"}


def test_in_this_book_a_module_reaches_the_chapters_that_use_it():
    reached = {
        name: fingerprints.reached_modules(ROOT / "ppm", notebook.path)
        for name, notebook in find_notebooks(ROOT).items()
    }
    using = {name for name, files in reached.items() if "studies/contraction_study.py" in files}
    assert "poisson_contraction" in using
    assert not using & {"theory", "ce_application", "your_own_model"}
    # everything rests on the bounds, the command line is nobody's
    assert all("lipschitz.py" in files for files in reached.values())
    assert not any("publishing/command_line.py" in files for files in reached.values())


def library(folder, **modules):
    """A small package ``ppm``."""
    exports = '_EXPORTS = {"public": "ppm.first", "deep": "ppm.inner.leaf"}\n'
    inner = (
        '_EXPORTS = {"table": "ppm.inner.leaf", "save": "ppm.third", "leaf": "ppm.inner.leaf"}\n'
    )
    folder.joinpath("inner").mkdir(parents=True)
    (folder / "__init__.py").write_text(exports)
    (folder / "inner" / "__init__.py").write_text(inner)
    for name, text in modules.items():
        (folder / f"{name.replace('__', '/')}.py").write_text(text)
    return folder


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import ppm\nppm.public()", {"first.py", "second.py", "third.py"}),
        ("import ppm as p\np.public()", {"first.py", "second.py", "third.py"}),
        ("from ppm import public", {"first.py", "second.py", "third.py"}),
        ("from ppm import third", {"third.py"}),
        ("import ppm.third", {"third.py"}),
        ("from ppm.third import x", {"third.py"}),
        ("import ppm\nppm.third.x", {"third.py"}),
        ("import ppm\nppm.deep", {"inner/__init__.py", "inner/leaf.py"}),
        ("from ppm.inner import leaf", {"inner/__init__.py", "inner/leaf.py"}),
        ("import ppm\nppm.inner.table()", {"inner/__init__.py", "inner/leaf.py"}),
        ("import ppm\nppm.inner.leaf(1)", {"inner/__init__.py", "inner/leaf.py"}),
        ("import ppm\nppm.inner.save(1)", {"inner/__init__.py", "third.py"}),
        ("from ppm import inner as page\npage.save(1)", {"inner/__init__.py", "third.py"}),
        ("from ppm import inner\ninner.table(1)", {"inner/__init__.py", "inner/leaf.py"}),
        ("from ppm.inner import save", {"inner/__init__.py", "third.py"}),
        ("%matplotlib inline\nimport ppm\nppm.third.x", {"third.py"}),
        ("import ppm\nfirst = ppm.nothing", set()),
        ("import numpy\nnumpy.public", set()),
    ],
)
def test_modules_that_a_notebook_reaches(tmp_path, source, expected):
    folder = library(
        tmp_path / "ppm",
        first="from ppm.second import x\n",
        # an import that runs only when the function is called counts too
        second="def x():\n    import ppm\n    return ppm.third.x\n",
        third="x = 1\n",
        lonely="from ppm import public\n",
        inner__leaf="deep = 1\n",
    )
    path = write_notebook(tmp_path / "n.ipynb", [code(source)])
    assert fingerprints.reached_modules(folder, path) == expected


# ----------------------------------------------------------------------------------- staging

RECORD = {
    "notebook": "prose",
    "profile": "paper",
    "parameters": {"seed": 2, "ce_data": ""},
    "changed": [],
    "started": "2026-03-09T12:00:00+00:00",
    "seconds": 12.4,
    "python": "3.13.0",
    "versions": {"ppm": "0.1.0"},
}
IMAGE = {"output_type": "display_data", "data": {"image/png": "iVBORw0KGgo="}, "metadata": {}}


def staged(tmp_path, *cells, record=RECORD):
    """The cells as they are staged."""
    title = markdown("(label)=\n# Title\n\nWords.")
    source = write_notebook(tmp_path / "in.ipynb", [title, *cells])
    staging.stage_notebook(source, tmp_path / "prose.ipynb", record)
    return nbformat.read(tmp_path / "prose.ipynb", 4).cells


@pytest.mark.parametrize("missing", ["caption", "name", "alt", None])
def test_a_figure_needs_caption_name_and_alternative_text(tmp_path, missing):
    figure = {"caption": "What to see.", "name": "fig-x"}
    image = {"alt": "A line."}
    figure.pop(missing, None)
    image.pop(missing, None)
    cell = code("figure", mystnb={"figure": figure, "image": image}) | {"outputs": [IMAGE]}
    if missing is None:
        staged(tmp_path, cell)
    else:
        told = rf"prose\.ipynb, cell 2 \(figure\) .*\.{missing}$"
        with pytest.raises(book.BookError, match=told):
            staged(tmp_path, cell)


def test_two_figures_of_one_cell_are_refused(tmp_path):
    with pytest.raises(book.BookError, match="shows 2 figures"):
        staged(tmp_path, code("figures") | {"outputs": [IMAGE, IMAGE]})


def test_what_was_written_on_standard_error_is_left_out(tmp_path):
    streams = [
        {"output_type": "stream", "name": name, "text": name} for name in ("stdout", "stderr")
    ]
    cells = staged(tmp_path, code("x") | {"outputs": streams})
    assert [output.name for output in cells[1].outputs] == ["stdout"]


def test_the_box_stands_behind_the_title_and_its_label(tmp_path):
    text = staged(tmp_path)[0].source
    assert text.startswith(f"(label)=\n# Title\n\n:::{{admonition}} {staging.BOX_TITLE}\n")
    assert text.endswith(":::\n\n\nWords.")
    assert "executed on 9 March 2026 in 12 seconds" in text
    assert "All parameters are at their defaults." in text
    assert "Seed: 2." in text
    assert "**simulated records**" in text


def test_the_page_names_the_survey_file_but_not_its_folder(tmp_path):
    parameters = {"seed": 2, "ce_data": "diary17.zip"}
    source = '# Parameters\nce_data = "/home/somebody/diary17.zip"\n'
    cell = code(source, tags=["injected-parameters"])
    cells = staged(tmp_path, cell, record=RECORD | {"parameters": parameters})
    assert "Data: the file `diary17.zip`." in cells[0].source
    assert "simulated" not in cells[0].source
    assert cells[1].source == "# Parameters\nce_data = 'diary17.zip'\n"
    assert "hide-input" in cells[1].metadata.tags


def test_a_page_shows_no_path_of_this_machine(tmp_path):
    home = str(Path.home() / "secret.csv")
    source = write_notebook(
        tmp_path / "in.ipynb",
        [
            markdown("# Title"),
            code("path")
            | {"outputs": [{"output_type": "stream", "name": "stdout", "text": f"'{home}'"}]},
        ],
    )
    with pytest.raises(book.BookError, match=r"prose\.ipynb, cell 2 .* shows a path of this"):
        staging.stage_notebook(source, tmp_path / "prose.ipynb", RECORD)
    source.write_text(source.read_text("utf-8").replace(home, "secret.csv"), "utf-8")
    staging.stage_notebook(source, tmp_path / "prose.ipynb", RECORD)


def test_a_chapter_that_does_not_exist_is_named(tiny_book):
    append(tiny_book / "_toc.yml", "  - file: notebooks/missing\n")
    with pytest.raises(book.BookError, match=r"notebooks/missing, which does not exist"):
        make(tiny_book)


def test_results_are_kept_with_the_book(tiny_book):
    save = "import pandas as pd\nppm.publishing.save(pd.DataFrame({'a': [1]}), 'one')"
    path = write_notebook(tiny_book / "notebooks" / "prose.ipynb", chapter("Prose", [code(save)]))
    notebook = describe(path)
    assert book.refresh(tiny_book, notebook, check(notebook, {"seed": 3}), "paper", print)
    results = tiny_book / "_build" / "results" / "paper" / "prose" / "one.csv"
    assert results.read_text() == ",a\n0,1\n"
    memory = json.loads((tiny_book / "_build" / "executed" / "paper" / "prose.json").read_text())
    assert memory["record"]["changed"] == ["seed"]
    assert not book.refresh(tiny_book, notebook, check(notebook, {"seed": 3}), "paper", print)


LEDGER_ROW = """
rows:
- {id: a, section: "4.5", where: text, says: It is small., chapter: prose, rule: less,
   values: [size], than: 2}
"""


@pytest.mark.parametrize(("value", "verdict"), [(1, "reproduced"), (3, "**not reproduced**")])
def test_the_ledger_is_computed_from_what_the_notebooks_saved(tiny_book, value, verdict):
    (tiny_book / "book" / "published.yaml").write_text(LEDGER_ROW)
    save = f"ppm.publishing.save_values({{'size': {{'value': {value}, 'error': 0}}}}, data=None)"
    path = write_notebook(tiny_book / "notebooks" / "prose.ipynb", chapter("Prose", [code(save)]))
    book.refresh(tiny_book, describe(path), {}, "quick", lambda line: None)
    build = tiny_book / "_build"
    folders = build / "stage", build / "executed" / "quick"
    staging.stage(tiny_book, *folders, ["prose"], results=build / "results" / "quick")
    page = (build / "stage" / "book" / "ledger.md").read_text("utf-8")
    assert f"`Text <../notebooks/prose>` | {verdict} | – | {value} |" in page
    assert "profile `quick`, run on" in page
    # without what they saved there is nothing to judge
    staging.stage(tiny_book, *folders, ["prose"])
    assert "| not computed |" in (build / "stage" / "book" / "ledger.md").read_text("utf-8")


STUDY = "ledger: {studies: 10, replicates: 3, seed: 1}\n"


@pytest.fixture
def book_with_study(tiny_book, recorder, monkeypatch):
    """The tiny book with a ledger whose rows a study of its own judges."""
    save = "ppm.publishing.save_values({'size': {'value': 3, 'error': 1}}, data=None)"
    described = dict(sizes=[40, 160], mean=100.0, truncate_at=3.5, draws=20)
    write_notebook(
        tiny_book / "notebooks" / "poisson_contraction.ipynb",
        chapter("Contraction", [code(save)], **described),
    )
    append(tiny_book / "_toc.yml", "  - file: notebooks/poisson_contraction\n")
    row = LEDGER_ROW.replace("chapter: prose", "chapter: poisson_contraction")
    (tiny_book / "book" / "published.yaml").write_text(row)
    append(tiny_book / "notebooks" / "profiles" / "quick.yml", STUDY)

    def ledger_study(sizes, **settings):
        recorder.append("study")
        recorder.arguments = {"sizes": sizes, **settings}
        return {"size": {"value": 1.0, "error": 0.1}}

    monkeypatch.setattr(book, "ledger_study", ledger_study)
    return tiny_book


def test_the_ledgers_study_is_kept_until_something_it_depends_on_changes(
    book_with_study, recorder
):
    def rerun(**options):
        recorder.clear()
        _, told = make(book_with_study, **{"profile": "quick", **options})
        return [call for call in recorder if call in ("study", "sphinx")], told

    called, told = rerun()
    assert called == ["study", "sphinx"]
    assert "ledger: 10 studies of section 4 (for the first time)" in told
    assert recorder.arguments == {
        "sizes": [40, 160], "mean": 100.0, "truncate_at": 3.5, "draws": 20, "studies": 10,
        "replicates": 3, "seed": 1,
    }
    page = book_with_study / "_build" / "stage" / "book" / "ledger.md"
    assert "of 10 times 3 = 30 databases" in page.read_text("utf-8")
    shown = page.read_text("utf-8").replace("\N{NO-BREAK SPACE}", " ")
    assert "| reproduced | – | 1 ± 0.10 |" in shown
    assert rerun()[0] == []

    # the study, what it rests on, its settings, the chapter's parameters
    for module in (
        "publishing/ledger_study.py", "studies/contraction_study.py", "weights.py",
        "publishing/ledger_values.py",
    ):
        append(book_with_study / "ppm" / module)
        called, told = rerun()
        assert called == ["study", "sphinx"], module
        assert f"(ppm/{module} changed)" in told
    quick = book_with_study / "notebooks" / "profiles" / "quick.yml"
    quick.write_text(quick.read_text().replace("seed: 1", "seed: 2"))
    assert "(ledger seed changed)" in rerun()[1]
    append(quick, "poisson_contraction: {truncate_at: 4.0}\n")
    called, told = rerun()
    assert called == ["study", "sphinx"]
    assert "(parameter truncate_at changed)" in told
    # how rows are judged and shown, prose, and what no bound rests on are not among it
    for file in ("ppm/publishing/pages.py", "ppm/publishing/command_line.py", "book/intro.md"):
        append(book_with_study / file)
        assert "study" not in rerun()[0]
    # a profile without it has none, and does not show the other's
    assert "study" not in rerun(profile="paper")[0]
    assert "30 databases" not in page.read_text("utf-8")
    quick.write_text(quick.read_text().replace(STUDY.replace("seed: 1", "seed: 2"), ""))
    assert rerun()[0] == ["sphinx"]
    assert "30 databases" not in page.read_text("utf-8")


def test_an_interrupted_study_leaves_the_last_one_and_is_not_taken_for_done(
    book_with_study, recorder, monkeypatch
):
    make(book_with_study, profile="quick")
    file = book_with_study / "_build" / "results" / "quick" / "ledger" / "values.json"
    before = file.read_bytes()
    append(book_with_study / "ppm" / "studies" / "contraction_study.py")
    with monkeypatch.context() as patch:

        def interrupt(*arguments, **options):
            raise KeyboardInterrupt

        patch.setattr(book, "ledger_study", interrupt)
        with pytest.raises(KeyboardInterrupt):
            make(book_with_study, profile="quick")
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]
    recorder.clear()
    make(book_with_study, profile="quick")
    assert "study" in recorder


def test_a_study_of_a_chapter_that_the_book_lacks_is_refused(tiny_book, recorder):
    append(tiny_book / "notebooks" / "profiles" / "quick.yml", STUDY)
    with pytest.raises(book.BookError, match=r"^profile quick: .* is no chapter of this book$"):
        make(tiny_book, profile="quick")
    assert recorder == []


def test_a_run_of_the_chapter_alone_makes_no_study(book_with_study, monkeypatch):
    from ppm.publishing import run as running

    monkeypatch.chdir(book_with_study)
    monkeypatch.setattr(running, "execute", lambda *arguments, **options: 1.0)
    monkeypatch.setattr(running, "render_page", lambda *arguments, **more: None)

    def fail(*arguments, **options):
        pytest.fail("the study was begun")

    monkeypatch.setattr(book, "ledger_study", fail)
    running.run(book_with_study, "poisson_contraction", {"mean": 50.0}, profile="quick")


def test_statements_of_chapters_and_pages_link_to_their_checks(tiny_book):
    said = "```{{prf:theorem}} One\n:label: {}\n\nYes.\n```\n"
    append(tiny_book / "book" / "intro.md", "\n" + said.format("thm-page"))
    write_notebook(
        tiny_book / "notebooks" / "prose.ipynb",
        chapter("Prose", [markdown(said.format("thm-chapter"))]),
    )
    (tiny_book / "book" / "checks.yaml").write_text(
        "thm-page: [tests/test_a.py::test_b]\nthm-chapter: [tests/test_a.py::test_b]\n"
    )
    append(tiny_book / "_toc.yml", "  - file: book/checks\n")
    status, told = make(tiny_book, profile="quick")
    assert status == 0, told
    html = tiny_book / "_build" / "html"
    for page, label in (("book/intro", "thm-page"), ("notebooks/prose", "thm-chapter")):
        text = (html / f"{page}.html").read_text("utf-8")
        assert re.search(rf'<a [^>]*href="[^"]*checks\.html#check-{label}"[^>]*>.*\bb</span>', text)
    checked = (html / "book" / "checks.html").read_text("utf-8")
    assert "test_b" in checked and 'id="check-thm-page"' in checked


def test_new_verdicts_of_tests_make_new_pages(tiny_book, recorder):
    make(tiny_book)
    recorder.clear()
    (tiny_book / "_build" / "tests").mkdir()
    (tiny_book / "_build" / "tests" / "all.xml").write_text("<testsuites/>")
    make(tiny_book)
    assert recorder == ["sphinx"]


def test_a_failed_execution_leaves_no_finished_chapter(tiny_book):
    path = write_notebook(tiny_book / "notebooks" / "prose.ipynb", chapter("Prose", [code("1/0")]))
    notebook = describe(path)
    for _ in range(2):
        with pytest.raises(NotebookFailed, match="executed so far"):
            book.refresh(tiny_book, notebook, {}, "paper", lambda line: None)
