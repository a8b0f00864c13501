"""What Jupyter Book is to see, and the pages that it makes of it."""

import base64
import hashlib
import re
import shutil
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import nbformat
from docutils import nodes
from jinja2 import Template

import ppm
from ppm_book import exercises, ledger
from ppm_book.page import CLAIMS_TYPE, NARROW_TYPE
from ppm_book.parameters import chapters, parameter_table, source, title
from ppm_book.plain import Words
from ppm_book.running import ROOT

# editions of figures for phones
FIGURES = "book/_static/figures"
# stands after a sentence that the run contradicts
NOT_HERE = '<sup class="not-here" title="does not hold in this run">\N{BALLOT X}</sup>'


class Failed(Exception):
    """A notebook failed, or a page cannot be shown as it is: exit status 1."""


def digest(*paths):
    """One hash of files, or of all files in folders, with their names."""
    found = hashlib.sha256()
    for path in map(Path, paths):
        files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
        for file in files:
            if "__pycache__" not in file.parts:
                found.update(f"{file.relative_to(path.parent)}\n".encode() + file.read_bytes())
    return found.hexdigest()


def state_of_pages():
    """Hash of what the pages are made of."""
    files = ROOT / "_build" / "stage", ROOT / "requirements.lock", ROOT / "book" / "ppm_book"
    return digest(*files)


def stage(folder, results=None, solutions=True):
    """Fill the folder that Jupyter Book sees, but for the chapters."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "book", folder / "book", ignore=shutil.ignore_patterns("ppm_book"))
    (folder / "notebooks").mkdir()
    for file in ("_config.yml", "_toc.yml"):
        shutil.copy(ROOT / file, folder)
    pages = lists() | {"book/ledger": ledger.page(ROOT, results or folder)}
    if solutions:
        pages["exercises/solutions"] = exercises.solutions(ROOT)
    (folder / "exercises").mkdir()
    for name, text in pages.items():
        (folder / f"{name}.md").write_text(text, "utf-8")
    for file in [] if solutions else [folder / "_toc.yml", *folder.glob("book/*.md")]:
        text = re.sub(r"^.*exercises/solutions.*\n", "", file.read_text("utf-8"), flags=re.M)
        file.write_text(text, "utf-8")


def lists():
    """Pages that list what there is: parameters of the notebooks, and names of the library."""
    tables = [(title(name), name, parameter_table(name)) for name in chapters()]
    # in the order of their modules, of which the synthesizers' begin with the protocol
    names = [name for name in ppm.__all__ if callable(getattr(ppm, name))]
    names.sort(key=lambda name: getattr(ppm, name).__module__)
    models = [name for name in names if hasattr(getattr(ppm, name), "predict")]
    found = {}
    for file in (ROOT / "book" / "parameters.md", *ROOT.glob("book/library/*.md")):
        text = file.read_text("utf-8")
        described = re.findall(r"^\.\. auto\w+:: (ppm[\w.]+)", text, re.M)
        text = Template(text, trim_blocks=True).render(
            notebooks=tables, names=names, models=models, described=described)
        found[str(file.relative_to(ROOT).with_suffix(""))] = text
    return found


def stage_source(name, folder):
    """A chapter that is only there so that what other pages refer to has its number."""
    notebook = nbformat.read(source(name), 4)
    _close(notebook, exercises.section(ROOT, name))
    nbformat.write(notebook, folder / "notebooks" / f"{name}.ipynb")


def _close(notebook, *sections):
    """Add sections at the end of a chapter, the same each time: pages are built if any differs."""
    notebook.cells += [
        nbformat.v4.new_markdown_cell(text, id=f"section-{number}")
        for number, text in enumerate(sections) if text
    ]


def stage_notebook(executed, folder, record, closing="", solutions=True):
    """Prepare an executed notebook for its page, into a staged folder.

    Raises
    ------
    Failed
        If a figure has no caption or no alternative text, the page shows a path of this machine, or
        a claim of the text is false at the book's own settings.
    """
    notebook = nbformat.read(executed, 4)
    _check_claims(notebook, executed.stem, own_run=not record["changed"])
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        tags = cell.metadata.setdefault("tags", [])
        if {"parameters", "injected-parameters"} & {*tags} and "hide-input" not in tags:
            own = "parameters" in tags
            what = "parameters and their defaults" if own else "parameters of this run"
            prompts = {f"code_prompt_{do.lower()}": f"{do} {what}" for do in ("Show", "Hide")}
            cell.metadata["mystnb"] = prompts | cell.metadata.get("mystnb", {})
            tags.append("hide-input")
        cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
        _check_figure(executed.stem, cell, folder / FIGURES)
    # the run's tables, for the reader to download at the page's foot
    tables = sorted(executed.parent.glob("*.csv"))
    for table in tables:
        (beside := folder / "notebooks" / executed.stem).mkdir(exist_ok=True)
        shutil.copy(table, beside)
    section = exercises.section(ROOT, executed.stem, solutions)
    _close(notebook, section, closing, how_made(record, [table.name for table in tables]))
    text = nbformat.writes(notebook)
    if shown := re.search(rf"(?<![\w.])({re.escape(str(ROOT))}|{Path.home()})(?![\w.-])\S*", text):
        raise Failed(f"{executed.stem} shows a path of this machine: {shown[0]}")
    (folder / "notebooks" / executed.name).write_text(text, "utf-8")


def _check_claims(notebook, name, own_run):
    """Find the sentences that a chapter claims, and mark those that do not hold in this run."""
    outputs = [one for cell in notebook.cells for one in cell.get("outputs", ())]
    claims = {}
    for output in outputs:
        claims |= output.get("data", {}).pop(CLAIMS_TYPE, {})
    failed, texts = [], []
    for cell in notebook.cells:
        figure = cell.metadata.get("mystnb", {}).get("figure", {})
        texts += [(cell, "source")] if cell.cell_type == "markdown" else []
        texts += [(figure, "caption")] if "caption" in figure else []
    for words, holds in claims.items():
        # the text may break its lines anywhere
        pattern = re.compile(r"\s+".join(map(re.escape, words.split())))
        with_words = [(owner, key) for owner, key in texts if pattern.search(owner[key])]
        if not with_words:
            raise Failed(f"{name} claims words that are not in its text: {words}")
        if not holds and own_run:
            raise Failed(f"{name}: at the book's settings this is false: {words}")
        if not holds:
            failed.append(words)
            for owner, key in with_words:
                owner[key] = pattern.sub(lambda found: f"{found[0]} {NOT_HERE}", owner[key])
    if failed:
        notebook.cells[0].source += "\n\n" + "\n".join([
            ":::{admonition} Not in this run", ":class: warning",
            "The text describes the book's own run. With these parameters it was otherwise:", "",
            *(f"- {words}" for words in failed), ":::",
        ])


def _check_figure(name, cell, folder):
    """A figure needs words; its edition for phones goes where the page finds it."""
    about = cell.metadata.get("mystnb", {})
    figure = about.get("figure", {})
    needed = figure.get("caption"), figure.get("name"), about.get("image", {}).get("alt")
    for output in cell.outputs:
        if not any(kind.startswith("image/") for kind in output.get("data", {})):
            continue
        if not all(str(words or "").strip() for words in needed):
            raise Failed(f"{name} shows a figure without caption, name or alternative text: "
                         f"{cell.source.strip().partition(chr(10))[0]}")
        if narrow := output["data"].pop(NARROW_TYPE, None):
            folder.mkdir(parents=True, exist_ok=True)
            file = folder / f"{nodes.make_id(figure['name'])}.png"
            file.write_bytes(base64.b64decode(narrow))


def how_made(record, tables):
    """Box at a chapter's foot that says how it was made, with its tables to download."""
    values, started = record["parameters"], datetime.fromisoformat(record["started"])
    file, address = f"chapters/{record['notebook']}.ipynb", exercises.repository_address(ROOT)
    return exercises.template("how_made").render(
        record, tables=tables, day=f"{started.day} {started:%B %Y}",
        changes=[f"`{key} = {values[key]!r}`" for key in record["changed"] if key != "ce_data"],
        link=exercises.launch_link(address, file, "parameters"),
    )


def sphinx(staged, output, strict=True, builder="html"):
    """Call Jupyter Book, and leave the pages in a folder.

    Raises
    ------
    Failed
        If it fails, or warns and ``strict`` holds; the message has its warnings.
    """
    place = output.with_name(f"{output.name}.part")
    shutil.rmtree(place, ignore_errors=True)
    command = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()", "build"]
    command += ["-W", "-n", "--keep-going"] * strict
    command += ["--builder", builder, "--path-output", str(place), str(staged)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    pages = place / "_build" / builder
    if done.returncode or not pages.is_dir():
        said = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr).splitlines()
        faults = [line for line in said if re.search(r"\b(WARNING|ERROR|CRITICAL)\b", line)]
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
    words = Words(ROOT)
    for file in (pages / "_sources" / "notebooks").glob("*.ipynb"):
        nbformat.write(words.chapter(file.stem, nbformat.read(file, 4)), file)


def alone(html, files):
    """A page of the book that stands alone: its own files, no links to pages that are not there."""
    html = re.sub(r"\.\./(_static|_images|_downloads)/", rf"{files}/\1/", html)
    away = rf'<a\b[^>]*\bhref="(?!#|https?:|mailto:|{files}/)[^"]*"[^>]*>(.*?)</a>'
    html = re.sub(away, r"\1", html, flags=re.S)
    html = re.sub(r'<(?:link rel="(?:index|search|prev|next)"|script\b[^>]*"\.\./)[^>]*>', "", html)
    hidden = ".bd-sidebar-primary, .bd-header-article, .prev-next-footer, label[for*=sidebar]"
    return html.replace("</head>", f"<style>{hidden} {{display: none !important}}</style></head>")
