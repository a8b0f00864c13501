"""Prepare what Jupyter Book is to see: prose, pages that are filled in, executed notebooks."""

import base64
import datetime
import re
import shutil
from pathlib import Path

from ppm_book.page import VALUES_FILE

from ppm.publishing import checks, ledger
from ppm.publishing.claims import LedgerError, load_ledger
from ppm.publishing.exercises import launch_links, repository_address, stage_exercises
from ppm.publishing.fingerprints import read_json, study_file
from ppm.publishing.ledger_study import CHAPTER as STUDY_CHAPTER
from ppm.publishing.ledger_study import studies_at_1000
from ppm.publishing.moving import show_moving
from ppm.publishing.notebooks import (
    DEFAULT_PROFILE,
    BookError,
    cell_tags,
    find_notebooks,
    load_profile,
)
from ppm.publishing.pages import checks_page, finding_part, ledger_page, parameters_page

# the ledger refers to this chapter if the book has it, and the introduction shows what it found
SETTINGS_CHAPTER = "application_settings"
BOX_TITLE = "How this chapter was made"
# what figures bring besides their pictures, within the folder that Jupyter Book sees
FIGURES = "book/_static/figures"
# as ppm_book.plots names it
FIGURE_TYPE = "application/vnd.ppm.figure+json"
IMAGE_TYPES = ("image/png", "image/svg+xml", "image/jpeg", "image/gif")


def chapters_of(root, notebooks):
    """Notebooks of the table of contents, in its order."""
    toc = (root / "_toc.yml").read_text("utf-8")
    names = re.findall(r"^[ -]*(?:file|root): *notebooks/([\w-]+?)(?:\.ipynb)?\s*$", toc, re.M)
    for name in names:
        if name not in notebooks:
            raise BookError(f"_toc.yml lists notebooks/{name}, which does not exist")
    return names


def stage(root, target, executed, chapters, *, results=None):
    """Fill the folder that Jupyter Book sees.

    Parameters
    ----------
    root : path-like
        The repository.
    target : path-like
        The folder; what it holds is removed first.
    executed : path-like
        Folder of the executed notebooks and their records.
    chapters : list of str
        Names of the notebooks.
    results : path-like, optional
        Folder of what the notebooks saved, for the ledger.

    Raises
    ------
    BookError
        If a figure has no caption or no alternative text, or a page would show a path of this
        machine, or the ledger's file or the map of checks is not what it has to be.
    """
    root, target, executed = Path(root), Path(target), Path(executed)
    records = {name: read_json(executed / f"{name}.json")["record"] for name in chapters}
    statement_checks = stage_prose(root, target, records, results)
    repository = repository_address(root)
    for name, record in records.items():
        target_file = target / "notebooks" / f"{name}.ipynb"
        stage_notebook(
            executed / f"{name}.ipynb", target_file, record, private=[root],
            statement_checks=statement_checks,
            links=launch_links(repository, f"notebooks/{name}.ipynb", "parameters"),
        )


def statement_checks_of(root):
    """Map from statements to tests, and the tests' last verdicts; two empty ones without a map."""
    path = root / "book" / "checks.yaml"
    if not path.is_file():
        return {}, {}
    try:
        return checks.load_checks(path), checks.read_verdicts(root / "_build" / "tests")
    except checks.ChecksError as error:
        raise BookError(str(error)) from None


def claims_of(root, notebooks):
    """Rows of the ledger; none without its file."""
    path = root / "book" / "published.yaml"
    if not path.is_file():
        return ()
    try:
        return load_ledger(path, notebooks)
    except LedgerError as error:
        raise BookError(str(error)) from None


def stage_prose(root, target, records=None, results=None):
    """Fill the folder with the settings and the prose, and the pages that are made from data.

    Parameters
    ----------
    root : path-like
        The repository.
    target : path-like
        The folder; what it holds is removed first. It gets an empty folder ``notebooks``.
    records : dict, optional
        Chapter -> what was run, as in ``run.json``, for the ledger and the introduction.
    results : path-like, optional
        Folder of what the notebooks saved, for the same.

    Returns
    -------
    tuple of dict
        The checks of statements, as :func:`stage_notebook` takes them.

    Raises
    ------
    BookError
        If the ledger's file, the map of checks or the table of contents is not what it has to be.
    """
    root, target = Path(root), Path(target)
    shutil.rmtree(target, ignore_errors=True)
    (target / "notebooks").mkdir(parents=True)
    repository = repository_address(root)
    for name in ("_config.yml", "_toc.yml"):
        shutil.copy(root / name, target / name)
    shutil.copytree(root / "book", target / "book")
    notebooks = find_notebooks(root)
    names = ("parameters", "ledger", "checks", "where_it_holds")
    templates = {name: target / "book" / f"{name}.md" for name in names}
    profiles = _profiles(root, notebooks)
    pages = {"parameters": parameters_page(templates["parameters"], notebooks, profiles)}
    claims = claims_of(root, notebooks)
    if claims:
        settings = SETTINGS_CHAPTER if SETTINGS_CHAPTER in chapters_of(root, notebooks) else ""
        pages["ledger"] = _ledger(templates["ledger"], claims, records or {}, results, settings)
    if templates["where_it_holds"].is_file():
        record = (records or {}).get(SETTINGS_CHAPTER)
        saved = (
            read_json(Path(results, SETTINGS_CHAPTER, VALUES_FILE)) if record and results else {}
        )
        pages["where_it_holds"] = finding_part(templates["where_it_holds"], saved, record)
    tests, verdicts = statement_checks_of(root)
    if tests:
        pages["checks"] = checks_page(
            templates["checks"], checks.find_statements(root), tests, verdicts,
            repository=repository,
        )
    for name, template in templates.items():
        template.unlink(missing_ok=True)
        if name in pages:
            template.write_text(pages[name], "utf-8")
    if tests:
        for prose in (target / "book").rglob("*.md"):
            text = checks.with_checks(prose.read_text("utf-8"), tests, verdicts)
            prose.write_text(text, "utf-8")
    stage_exercises(root, target, repository)
    return tests, verdicts


def leave_out_reference(staged):
    """Take the library's pages out of a staged book: a chapter alone has no use for them.

    Parameters
    ----------
    staged : path-like
        Folder with the settings and the prose.
    """
    contents = Path(staged, "_toc.yml")
    entries = r"^ *- file: book/library/.*\n(?: *sections:\n)?"
    contents.write_text(re.sub(entries, "", contents.read_text("utf-8"), flags=re.M), "utf-8")
    shutil.rmtree(Path(staged, "book", "library"), ignore_errors=True)


def _profiles(root, notebooks):
    """What every profile but the default sets, by its name."""
    return {
        path.stem: load_profile(root, path.stem, notebooks)
        for path in sorted(Path(root, "notebooks", "profiles").glob("*.yml"))
        if path.stem != DEFAULT_PROFILE
    }


def _ledger(template, claims, records, results, settings_chapter):
    """The page of the ledger, from what the chapters saved."""
    computed, sources = {}, {}
    for name, record in records.items():
        saved = read_json(Path(results, name, VALUES_FILE)) if results else {}
        if saved:
            computed[name] = saved
            sources[name] = {
                "profile": record["profile"],
                "day": _day(record["started"]),
                "data": saved["data"],
                "part": saved["part"],
            }
    larger = read_json(study_file(results)) if results else {}
    study = {}
    if larger:
        record = larger["record"]
        study = {**record, "chapter": STUDY_CHAPTER, "day": _day(record["started"])}
        study["at_1000"] = studies_at_1000(record["studies"])
        alone = computed.get(STUDY_CHAPTER, {}).get("values", {}).get("replicates", {})
        study["beside"] = alone.get("value")
    rows = ledger.judge(claims, computed, {STUDY_CHAPTER: larger} if larger else None)
    return ledger_page(template, rows, sources, settings_chapter=settings_chapter, study=study)


def stage_notebook(
    source, target, record, *, private=(), statement_checks=({}, {}), links="", closing=""
):
    """Prepare an executed notebook for the page.

    The parameters cells and their check are folded, a box says how the chapter was made, and what
    was written on standard error is left out.

    Parameters
    ----------
    source, target : path-like
        Executed notebook and where the prepared one goes.
    record : dict
        What was run, as in ``run.json``.
    private : list of path-like
        Folders that no page may show, beside the user's home.
    statement_checks : tuple of dict
        Label of a statement -> tests, and test -> :class:`ppm.publishing.checks.Verdict`;
        statements end with them.
    links : str, default ""
        Links that open the notebook somewhere, for the box.
    closing : str, default ""
        Markdown that the page ends with.

    Raises
    ------
    BookError
        As for :func:`stage`.
    """
    import nbformat

    notebook = nbformat.read(source, 4)
    notebook.metadata.pop("papermill", None)
    name = Path(target).name
    figures = Path(target).parents[1] / FIGURES
    folders = "|".join(re.escape(str(folder)) for folder in (*private, Path.home()))
    hidden = re.compile(rf"(?<![\w.])({folders})(?![\w.-])\S*")
    boxed = False
    for number, cell in enumerate(notebook.cells, start=1):
        if cell.cell_type == "markdown":
            cell.source = checks.with_checks(cell.source, *statement_checks)
        if cell.cell_type == "markdown" and not boxed:
            cell.source, boxed = _with_box(cell.source, provenance(record, links))
        if cell.cell_type != "code":
            continue
        tags = cell_tags(cell)
        if "injected-parameters" in tags:
            cell.source = _without_folder(cell.source, record)
            _fold(cell, "parameters of this run")
        elif "parameters" in tags:
            _fold(cell, "parameters and their defaults")
        elif cell.source.startswith("page.check("):
            _fold(cell, "check of the parameters")
        cell.outputs = [
            output for output in cell.outputs if output.get("name") != "stderr"
        ]
        _give_figure(cell, figures)
        show_moving(cell.outputs)
        where = f"{name}, cell {number} ({cell.source.strip().partition('\n')[0]})"
        _check_figures(where, cell)
        shown = hidden.search("\n".join([cell.source, *_texts(cell)]))
        if shown:
            raise BookError(f"{where} shows a path of this machine: {shown.group()}")
    if not boxed:
        raise BookError(f"{name} has no title (a line that starts with '# ')")
    if closing:
        notebook.cells.append(nbformat.v4.new_markdown_cell(closing))
    nbformat.write(notebook, target)


def figure_id(name):
    """What the page calls a figure: its name with nothing but letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _give_figure(cell, folder):
    """Put what a figure brings besides its picture where the page finds it.

    The numbers end its alternative text; the narrow picture and the data become files, which
    :mod:`ppm.publishing.clean_pages` refers to.
    """
    settings = cell.metadata.get("mystnb", {})
    for output in cell.outputs:
        brought = output.get("data", {}).pop(FIGURE_TYPE, None)
        name = settings.get("figure", {}).get("name")
        if not brought or not name:
            continue
        if brought["numbers"] and settings.get("image", {}).get("alt"):
            settings["image"]["alt"] += f" {brought['numbers']}"
        folder.mkdir(parents=True, exist_ok=True)
        stem = folder / figure_id(name)
        stem.with_suffix(".png").write_bytes(base64.b64decode(brought["narrow"]))
        stem.with_suffix(".csv").write_text(brought["data"], "utf-8")


def _fold(cell, what):
    tags = cell_tags(cell)
    cell.metadata.tags = tags if "hide-input" in tags else [*tags, "hide-input"]
    prompts = {"code_prompt_show": f"Show {what}", "code_prompt_hide": f"Hide {what}"}
    cell.metadata.mystnb = {**prompts, **cell.metadata.get("mystnb", {})}


def _with_box(source, box):
    heading = re.search(r"^# .*$", source, re.MULTILINE)
    if not heading:
        return source, False
    return f"{source[: heading.end()]}\n\n{box}\n{source[heading.end() :]}", True


def _without_folder(source, record):
    """Show the data file's name only: the builder's folders mean nothing to the reader."""
    shown = record["parameters"].get("ce_data", "")
    return re.sub(r"^ce_data = .*$", lambda _: f"ce_data = {shown!r}", source, flags=re.MULTILINE)


def _texts(cell):
    """What the outputs of a cell say in words."""
    for output in cell.outputs:
        yield output.get("text", "")
        yield from (text for kind, text in output.get("data", {}).items() if "text/" in kind)


def _check_figures(where, cell):
    images = [o for o in cell.outputs if any(kind in o.get("data", {}) for kind in IMAGE_TYPES)]
    if not images:
        return
    if len(images) > 1:
        raise BookError(f"{where} shows {len(images)} figures; a cell can show one")
    settings = cell.metadata.get("mystnb", {})
    needed = {
        "figure.caption": settings.get("figure", {}).get("caption"),
        "figure.name": settings.get("figure", {}).get("name"),
        "image.alt": settings.get("image", {}).get("alt"),
    }
    missing = [key for key, text in needed.items() if not str(text or "").strip()]
    if missing:
        raise BookError(f"{where} shows a figure without mystnb metadata {', '.join(missing)}")


def provenance(record, links=""):
    """Box that says how a chapter was made.

    Parameters
    ----------
    record : dict
        What was run, as in ``run.json``.
    links : str, default ""
        Links that open the notebook somewhere.

    Returns
    -------
    str
        An admonition in MyST Markdown.
    """
    parameters = record["parameters"]
    seconds = record["seconds"]
    took = f"{seconds:.0f} seconds" if seconds >= 2 else f"{seconds:.1f} seconds"
    lines = [
        f"Profile `{record['profile']}`, executed on {_day(record['started'])} in {took} "
        f"with ppm {record['versions']['ppm']} and Python {record['python']}."
    ]
    names = [name for name in record["changed"] if name != "ce_data"]
    changed = [f"`{name} = {parameters[name]!r}`" for name in names]
    if changed:
        lines.append(f"Different from the defaults: {', '.join(changed)}.")
    else:
        lines.append("All parameters are at their defaults.")
    if "seed" in parameters:
        lines.append(f"Seed: {parameters['seed']}.")
    if parameters.get("ce_data"):
        lines.append(f"Data: the file `{parameters['ce_data']}`.")
    elif "ce_data" in parameters:
        lines.append("Data: **simulated records**, not the survey.")
    body = "\n".join([*lines, links] if links else lines)
    return f":::{{admonition}} {BOX_TITLE}\n:class: note provenance\n{body}\n:::"


def _day(started):
    return checks.day_in_words(datetime.datetime.fromisoformat(started))
