"""What Jupyter Book is to see, and the pages that it makes of it."""

import base64
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from datetime import datetime
from pathlib import Path

import nbformat
from docutils import nodes
from jinja2 import Template

import ppm
from ppm_book.chapters import running
from ppm_book.chapters.page import CLAIMS_TYPE, UNTRUE
from ppm_book.chapters.sentences import (
    CLAIM_MARK,
    NUMBER,
    asked_numbers,
    sentence,
    take_marks,
    texts_of,
)
from ppm_book.chapters.style import NARROW_TYPE
from ppm_book.tools import classroom, exercises, ledger, paper_items, parameters
from ppm_book.tools.plain import Words

# the profile of the paper's sizes
PAPER = "paper"
# editions of figures for phones
FIGURES = "book/_static/figures"
# tags of cells with parameters, which pages fold
PARAMETERS = {
    "parameters": "parameters and their defaults",
    "injected-parameters": "parameters of this run",
}
# the command line of Jupyter Book makes all pages, or one without the others' numbers
JUPYTER_BOOK = (
    "import json, sys; from jupyter_book.sphinx import build_sphinx; "
    "sys.exit(build_sphinx(**json.loads(sys.argv[1])) != 0)"
)
# a picture of one pixel, as PNG
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
# stands behind words that the run contradicts, or about which it cannot tell
MARK = '<sup class="not-here" id="not-here-{}" title="{}">{}</sup>'
MARKS = {
    False: (UNTRUE[False].lower(), "\N{BALLOT X}"),
    None: (UNTRUE[None].lower(), "?"),
}


class Failed(Exception):
    """A notebook failed, or a page cannot be shown as it is: exit status 1."""


def stage(folder, results=None):
    """Fill the folder that Jupyter Book sees, but for the chapters."""
    root = running.ROOT
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(
        root / "book", folder / "book", ignore=shutil.ignore_patterns("ppm_book")
    )
    for place in ("notebooks", "exercises"):
        (folder / place).mkdir()
    classroom.stage_downloads(root, folder / "exercises")
    texts = {
        file: (root / file).read_text("utf-8") for file in ("_config.yml", "_toc.yml")
    }
    texts |= lists() | {
        "book/ledger.md": ledger.page(root, results or folder),
        "book/paper_items.md": paper_items.page(root),
    }
    for file, text in texts.items():
        (folder / file).write_text(text, "utf-8")


def lists():
    """Pages that list what there is: parameters of the notebooks, and names of the library."""
    tables = [
        (parameters.title(name), name, parameters.parameter_table(name))
        for name in parameters.chapters()
    ]
    # in the order of their modules
    names = [name for name in ppm.__all__ if callable(getattr(ppm, name))]
    names.sort(key=lambda name: getattr(ppm, name).__module__)
    models = [
        name
        for name in names
        if hasattr(getattr(ppm, name), "predict") and name != "Model"
    ]
    found = {}
    root = running.ROOT
    for file in (root / "book" / "parameters.md", *root.glob("book/library/*.md")):
        text = file.read_text("utf-8")
        found[str(file.relative_to(root))] = Template(text, trim_blocks=True).render(
            notebooks=tables,
            names=names,
            models=models,
            described=re.findall(r"^\.\. auto\w+:: (ppm[\w.]+)", text, re.M),
        )
    return found


def stage_beside(name, folder):
    """Fill the folder for the page of one chapter alone.

    Pages that the chapter refers to are there, so that the references have their numbers; of all
    others there is the title.
    """
    root, words = running.ROOT, Words(running.ROOT)
    shutil.copytree(root / "book" / "_static", folder / "book" / "_static")
    for file in ("_config.yml", "_toc.yml", "book/references.bib"):
        shutil.copy(root / file, folder / file)
    classroom.stage_downloads(root, folder / "exercises")
    needed = words.pages(name, exercises.section(root, name))
    for place in parameters.pages():
        (target := folder / place).parent.mkdir(parents=True, exist_ok=True)
        page, notebook = root / f"{place}.md", root / f"{place}.ipynb"
        if target.stem not in needed:
            title = words.titles.get(target.stem, target.stem.capitalize())
            target.with_suffix(".md").write_text(f"# {title}\n", "utf-8")
        elif page.is_file():
            shutil.copy(page, target.with_suffix(".md"))
        elif target.stem != name:
            nbformat.write(_unexecuted(notebook), target.with_suffix(".ipynb"))


def _unexecuted(file):
    """A chapter with its exercises, and with a pixel for each figure, so that it has a number."""
    notebook = nbformat.read(file, 4)
    for cell in notebook.cells:
        if "figure" in cell.metadata.get("mystnb", {}):
            cell.outputs = [
                nbformat.v4.new_output("display_data", {"image/png": PIXEL})
            ]
    take_marks(notebook)
    _close(notebook, exercises.section(running.ROOT, file.stem))
    return notebook


def _close(notebook, *sections):
    """Add sections at the end of a chapter, the same each time: pages are built if any differs."""
    notebook.cells += [
        nbformat.v4.new_markdown_cell(text, id=f"section-{number}")
        for number, text in enumerate(sections)
        if text
    ]


def stage_notebook(executed, folder, record, closing="", solutions=True):
    """Prepare an executed notebook for its page, into a staged folder.

    Returns
    -------
    dict of str to bool or None
        Its claims, and whether each holds; None: the run cannot tell.

    Raises
    ------
    Failed
        If a figure has no caption or no alternative text, the page shows a path of this machine, or
        a claim of the text is false at the book's own settings.
    """
    notebook, name = nbformat.read(executed, 4), executed.stem
    claims = _check_claims(notebook, name, record)
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        tags = cell.metadata.setdefault("tags", [])
        for tag, what in PARAMETERS.items():
            if tag in tags and "hide-input" not in tags:
                prompts = {
                    f"code_prompt_{do.lower()}": f"{do} {what}"
                    for do in ("Show", "Hide")
                }
                cell.metadata["mystnb"] = prompts | cell.metadata.get("mystnb", {})
                tags.append("hide-input")
        cell.outputs = [
            output for output in cell.outputs if output.get("name") != "stderr"
        ]
        _check_figure(name, cell, folder / FIGURES)
    # the run's tables, for the reader to download at the page's foot
    tables = sorted(executed.parent.glob("*.csv"))
    for table in tables:
        (beside := folder / "notebooks" / name).mkdir(exist_ok=True)
        shutil.copy(table, beside)
    section = exercises.section(running.ROOT, name, solutions)
    _close(
        notebook, section, closing, how_made(record, [table.name for table in tables])
    )
    text, here = nbformat.writes(notebook), re.escape(str(running.ROOT))
    if shown := re.search(rf"(?<![\w.])({here}|{Path.home()})(?![\w.-])\S*", text):
        raise Failed(f"{name} shows a path of this machine: {shown[0]}")
    (folder / "notebooks" / executed.name).write_text(text, "utf-8")
    return claims


def check_pages(folder, claims, profile):
    """Mark what pages other than chapters say of a chapter, and its run in this book contradicts.

    A page's mark names a chapter and its claim: ``<!--claim: CHAPTER::CLAIM-->``. The front page of a
    smaller book says at its top that it is one.

    Parameters
    ----------
    folder : Path
        What :func:`stage` and :func:`stage_notebook` filled.
    claims : dict of str to dict
        What :func:`stage_notebook` returned, by the chapters' names.
    profile : str
        The sizes of the book's studies.

    Raises
    ------
    Failed
        If a mark names no claim, or stands twice on a page.
    """
    told = {
        f"{name}::{claim}": holds
        for name, own in claims.items()
        for claim, holds in own.items()
    }
    for place in parameters.pages():
        if not (file := folder / f"{place}.md").is_file():
            continue
        text = file.read_text("utf-8")
        front = profile != PAPER and place == parameters.pages()[0]
        if not (front or CLAIM_MARK.search(text)):
            continue
        # the title, below which the box stands, and all else
        title = re.match(r".*?^# .*?$", text, re.M | re.S).end()
        page = nbformat.v4.new_notebook(
            cells=[
                nbformat.v4.new_markdown_cell(part)
                for part in (text[:title], text[title:])
            ]
        )
        marks = take_marks(page)
        names = [claim for *_, claim in marks]
        compare_names(place, names, {*names} & told.keys(), (), ())
        # at the book's own settings the chapter itself has stopped the build
        _mark(page, place, marks, told, profile, own_run=False, always=front)
        file.write_text("\n".join(cell.source for cell in page.cells), "utf-8")


def compare_names(name, marked, claims, asked, numbers):
    """Refuse names that only a chapter's text or only its claims have.

    Parameters
    ----------
    name : str
        The chapter.
    marked, claims : iterable of str
        Names in the marks of its text, and those of its claims.
    asked, numbers : iterable of str
        Names of the numbers that its text asks for, and of those that there are.

    Raises
    ------
    Failed
        If a mark has no claim, stands twice, or is missing; or a number is, or nobody asks for it.
    """
    count = Counter(marked)
    for told, wrong in (
        ("there is no claim for the mark <!--claim: {}-->", count.keys() - {*claims}),
        ("its text has no mark <!--claim: {}-->", {*claims} - count.keys()),
        (
            "its text has twice the mark <!--claim: {}-->",
            {o for o in count if count[o] > 1},
        ),
        ("its text asks for a number that there is not: {}", {*asked} - {*numbers}),
        ("its text does not ask for the number {}", {*numbers} - {*asked}),
    ):
        for each in sorted(wrong):
            raise Failed(f"{name}: {told.format(each)}")


def _check_claims(notebook, name, record):
    """Mark the sentences of a chapter that do not hold in this run; return what holds."""
    claims, given = {}, set()
    for output in (each for cell in notebook.cells for each in cell.get("outputs", ())):
        claims |= output.get("data", {}).pop(CLAIMS_TYPE, {})
        given |= {output.get("metadata", {}).get("scrapbook", {}).get("name")} - {None}
    marks, own_run = take_marks(notebook), not record["changed"]
    asked = asked_numbers(notebook)
    # a rerun may lack a number
    numbers = given if own_run else given | asked
    compare_names(name, [claim for *_, claim in marks], claims, asked, numbers)
    _mark(notebook, name, marks, claims, record["profile"], own_run)
    for owner, key in texts_of(notebook):
        owner[key] = NUMBER.sub(
            lambda role: role[0] if role[1] in given else "–", owner[key]
        )
    return claims


def _mark(notebook, name, marks, claims, profile, own_run, always=False):
    """Mark the sentences that do not hold, and list them below the first cell.

    In a smaller book the list begins with what that is. ``always`` says so without sentences too.
    """
    texts = [*texts_of(notebook)]
    failed = [mark for mark in marks if not claims[mark[-1]]]
    listed = {False: {}, None: {}}
    for number, (place, end, claim) in enumerate(failed, start=1):
        owner, key = texts[place]
        words, holds = sentence(owner[key], end), claims[claim]
        if own_run:
            told = "this is false" if holds is False else "this cannot be computed"
            raise Failed(f"{name}: at the book's settings {told}, {claim}: {words}")
        listed[holds].setdefault(words, number)
    # from the end, so that places stay
    for number, (place, end, claim) in reversed([*enumerate(failed, start=1)]):
        owner, key = texts[place]
        mark = MARK.format(number, *MARKS[claims[claim]])
        owner[key] = f"{owner[key][:end]} {mark}{owner[key][end:]}"
    if failed or always:
        first = notebook.cells[0]
        first.source = exercises.template("not_here").render(
            text=first.source,
            profile="" if profile == PAPER else profile,
            failed=listed[False],
            untold=listed[None],
        )


def _check_figure(name, cell, folder):
    """A figure needs words; its edition for phones goes where the page finds it."""
    about = cell.metadata.get("mystnb", {})
    figure = about.get("figure", {})
    needed = (
        figure.get("caption"),
        figure.get("name"),
        about.get("image", {}).get("alt"),
    )
    for output in cell.outputs:
        if not any(kind.startswith("image/") for kind in output.get("data", {})):
            continue
        if not all(str(words or "").strip() for words in needed):
            raise Failed(
                f"{name} shows a figure without caption, name or alternative text: "
                f"{cell.source.strip().partition(chr(10))[0]}"
            )
        if narrow := output["data"].pop(NARROW_TYPE, None):
            folder.mkdir(parents=True, exist_ok=True)
            file = folder / f"{nodes.make_id(figure['name'])}.png"
            file.write_bytes(base64.b64decode(narrow))


def how_made(record, tables):
    """Box at a chapter's foot that says how it was made, with its tables to download."""
    file = f"chapters/{record['notebook']}.ipynb"
    link = exercises.launch_link(running.ROOT, file, "parameters")
    day = datetime.fromisoformat(record["started"])
    return exercises.template("how_made").render(
        record, tables=tables, day=day, link=link
    )


def sphinx(staged, output, strict=True, only=None):
    """Call Jupyter Book, and leave the pages, or ``only`` the one of this file, in a folder.

    Raises
    ------
    Failed
        If it fails, or warns and ``strict`` holds; the message has its warnings.
    """
    place = output.with_name(f"{output.name}.part")
    shutil.rmtree(place, ignore_errors=True)
    settings = {
        "sourcedir": str(staged),
        "outputdir": str(place / "_build" / "html"),
        "noconfig": True,
        "path_config": str(staged / "_config.yml"),
        "builder": "html",
        "keep_going": True,
        "warningiserror": strict,
        "filenames": [str(staged / only)] if only else [],
        # which its own command line adds
        "confoverrides": {"nitpicky": strict, "latex_individualpages": False},
    }
    command = [sys.executable, "-c", JUPYTER_BOOK, json.dumps(settings)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    pages = place / "_build" / "html"
    if done.returncode or not pages.is_dir():
        said = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr).splitlines()
        faults = [
            line for line in said if re.search(r"\b(WARNING|ERROR|CRITICAL)\b", line)
        ]
        told = "\n".join(["the book was not built", *(faults or said[-15:])])
        raise Failed(told.replace(f"{staged}/", ""))
    # of MathJax's bundles, each with everything in it, pages load this one
    for bundle in (pages / "_static" / "mathjax").glob("*.js"):
        if bundle.name != "tex-chtml.js":
            bundle.unlink()
    shutil.rmtree(output, ignore_errors=True)
    pages.rename(output)
    shutil.rmtree(place)


def offer_plain_notebooks(pages):
    """Put plain editions of the chapters behind the pages' download buttons."""
    words = Words(running.ROOT)
    for file in (pages / "_sources" / "notebooks").glob("*.ipynb"):
        nbformat.write(words.chapter(file.stem, nbformat.read(file, 4)), file)


def alone(html, files):
    """A page of the book that stands alone: its own files, no links to pages that are not there."""
    html = re.sub(r"\.\./(_static|_images|_downloads)/", rf"{files}/\1/", html)
    away = rf'<a\b[^>]*\bhref="(?!#|https?:|mailto:|{files}/)[^"]*"[^>]*>(.*?)</a>'
    html = re.sub(away, r"\1", html, flags=re.S)
    html = re.sub(
        r'<(?:link rel="(?:index|search|prev|next)"|script\b[^>]*"\.\./)[^>]*>',
        "",
        html,
    )
    hidden = ".bd-sidebar-primary, .bd-header-article, .prev-next-footer, label[for*=sidebar]"
    return html.replace(
        "</head>", f"<style>{hidden} {{display: none !important}}</style></head>"
    )
