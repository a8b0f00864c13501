"""Build the book: execute the notebooks whose inputs changed, stage everything, call Jupyter Book.

All that is generated lies in ``_build`` at the root of the repository:

``executed/<profile>/``
    executed notebooks, each with the fingerprint of what it was made from;
``results/<profile>/<notebook>/``
    the tables and values that the notebooks saved;
``results/<profile>/ledger/``
    the values of the ledger's own study, with the fingerprint of what they were made from;
``fits/``
    the fits that the notebooks keep, so that a run that was interrupted goes on: confidential;
``tests/``
    verdicts that ``make test`` left, which the page of checks shows;
``stage/``
    the folder that Jupyter Book sees;
``html/``
    the finished book.
"""

import ast
import contextlib
import datetime
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ppm._imports import require
from ppm.disclosure import NOTE_FILE, leave_note, own_folder, owner_only
from ppm.publishing import checks, ledger
from ppm.publishing.claims import LedgerError, load_ledger
from ppm.publishing.ledger_study import CHAPTER as STUDY_CHAPTER
from ppm.publishing.ledger_study import ledger_study, studies_at_1000
from ppm.publishing.notebooks import (
    DEFAULT_PROFILE,
    LEDGER,
    NotebookFailed,
    cell_source,
    cell_tags,
    check,
    content_hash,
    execute,
    find_notebooks,
    fits_of,
    ledger_settings,
    load_profile,
    read_cells,
    run_record,
    write_json,
)
from ppm.publishing.pages import checks_page, ledger_page, parameters_page
from ppm.publishing.results import VALUES_FILE

# the ledger refers to this chapter if the book has it
SETTINGS_CHAPTER = "application_settings"
BOX_TITLE = "How this chapter was made"
IMAGE_TYPES = ("image/png", "image/svg+xml", "image/jpeg", "image/gif")


class BookError(NotebookFailed):
    """The book's sources are not what they have to be; the message is one line."""


def build(root, *, profile=DEFAULT_PROFILE, ce_data="", out=None):
    """Execute what changed, then build the book unless it is up to date.

    Parameters
    ----------
    root : path-like
        The repository.
    profile : str, default "paper"
        Profile of ``notebooks/profiles``.
    ce_data : str, default ""
        Consumer Expenditure file for the notebooks that have this parameter. A book that shows
        what was computed from it can be read by its owner only; a text file in it says so.
    out : text stream, optional
        Where progress lines go, by default standard output.

    Returns
    -------
    int
        Exit status: 0 if the book stands in ``_build/html``, 1 if it could not be built.

    Raises
    ------
    NotebookError, ParameterError
        If something is wrong that can be seen beforehand.
    NotebookFailed
        If a cell fails, or a chapter cannot be shown as it is.
    """
    root = Path(root)
    notebooks = find_notebooks(root)
    require("book", "ppm book")
    settings = load_profile(root, profile, notebooks)
    study = ledger_settings(root, profile)
    chapters = _chapters(root, notebooks)
    if study and STUDY_CHAPTER not in chapters:
        raise BookError(f"profile {profile}: the ledger's study repeats {STUDY_CHAPTER}, which is "
                        "no chapter of this book")
    _claims(root, notebooks)
    _statement_checks(root)
    plan = {}
    for name in chapters:
        values = dict(settings[name])
        if ce_data and "ce_data" in notebooks[name].parameters:
            values["ce_data"] = ce_data
        plan[name] = check(notebooks[name], values)

    def say(text):
        print(text, file=out or sys.stdout, flush=True)

    data = next((values["ce_data"] for values in plan.values() if values.get("ce_data")), "")
    data = Path(data).name
    executed = root / "_build" / "executed" / profile
    results = root / "_build" / "results" / profile
    for folder in (executed, results):
        _note(own_folder(folder), data)
    for name, values in plan.items():
        refresh(root, notebooks[name], values, profile, say)
    if study:
        given = {**notebooks[STUDY_CHAPTER].parameters, **plan[STUDY_CHAPTER]}
        refresh_study(root, study, given, profile, say)
    else:
        _study_file(root / "_build" / "results" / profile).unlink(missing_ok=True)
    page = root / "_build" / "html" / "index.html"
    stamp = root / "_build" / "html.json"
    fingerprint = _book_fingerprint(root, executed, results, chapters)
    if page.is_file() and _read_json(stamp) == fingerprint:
        say(f"The book is up to date: {page}")
        return 0
    stamp.unlink(missing_ok=True)
    say("Building the pages")
    # of simulated records anybody may see the pages
    with owner_only() if data else contextlib.nullcontext():
        stage(root, root / "_build" / "stage", executed, chapters, results=results)
        problems = _sphinx(root / "_build" / "stage", root / "_build" / "sphinx")
    if problems:
        say("\n".join(problems))
        say(f"The book was not built: see above, or all of it in {root / '_build' / 'sphinx.log'}")
        return 1
    # the old book stays readable until the new one is complete
    _replace(root / "_build" / "sphinx" / "_build" / "html", root / "_build" / "html")
    _note(root / "_build" / "html", data)
    write_json(stamp, fingerprint)
    say(f"The book is ready: {page}")
    if data:
        say(f"It shows what was computed from {data}, so only you can read it: see {NOTE_FILE}")
    return 0


def _note(folder, data):
    """Say in a folder which file's records it was computed from, if any."""
    if data:
        leave_note(folder, data)
    else:
        (folder / NOTE_FILE).unlink(missing_ok=True)


def _chapters(root, notebooks):
    """Notebooks of the table of contents, in its order."""
    toc = (root / "_toc.yml").read_text("utf-8")
    names = re.findall(r"^[ -]*(?:file|root): *notebooks/([\w-]+?)(?:\.ipynb)?\s*$", toc, re.M)
    for name in names:
        if name not in notebooks:
            raise BookError(f"_toc.yml lists notebooks/{name}, which does not exist")
    return names


# ------------------------------------------------------------------ what a notebook is made from


@owner_only()
def refresh(root, notebook, values, profile, say=print):
    """Execute a notebook if anything it is made from changed since the last time.

    Parameters
    ----------
    root : path-like
        The repository.
    notebook : Notebook
        The notebook.
    values : dict
        Its parameters, checked.
    profile : str
        Name of the profile they come from.
    say : callable
        Takes one line on what is done and why.

    Returns
    -------
    bool
        Whether it was executed.
    """
    folder = own_folder(Path(root, "_build", "executed", profile))
    executed = folder / f"{notebook.name}.ipynb"
    memory = folder / f"{notebook.name}.json"
    now = notebook_fingerprint(root, notebook, values)
    before = _read_json(memory).get("fingerprint") if executed.is_file() else None
    reasons = changes(before, now)
    if not reasons:
        return False
    say(f"{notebook.name}: executing ({', '.join(reasons[:3])}{' …' if reasons[3:] else ''})")
    results = Path(root, "_build", "results", profile, notebook.name)
    shutil.rmtree(results, ignore_errors=True)
    own_folder(results.parent)
    results.mkdir()
    memory.unlink(missing_ok=True)
    record = run_record(notebook, values, profile)
    partial = executed.with_suffix(".part.ipynb")
    try:
        seconds = execute(notebook, partial, values, results=results, fits=fits_of(root))
    except NotebookFailed as error:
        raise NotebookFailed(f"{error} (executed so far: {partial})") from None
    record["seconds"] = round(seconds, 1)
    partial.replace(executed)
    write_json(memory, {"fingerprint": now, "record": record})
    say(f"{notebook.name}: done in {seconds:.0f} s")
    return True


def refresh_study(root, settings, given, profile, say=print):
    """Make the ledger's own study if anything it is made from changed since the last time.

    Parameters
    ----------
    root : path-like
        The repository.
    settings : dict
        Studies, replicates and seed, checked.
    given : dict
        Parameters of the chapter whose study is repeated, with their defaults.
    profile : str
        Name of the profile.
    say : callable
        Takes one line on what is done and why.

    Returns
    -------
    bool
        Whether it was made. Its file is replaced when it is complete, and never before.
    """
    file = _study_file(Path(root, "_build", "results", profile))
    arguments = {name: given[name] for name in ("sizes", "mean", "truncate_at", "draws")}
    library = Path(root, "ppm")
    now = {
        **{f"{LEDGER} {name}": value for name, value in settings.items()},
        **{f"parameter {name}": value for name, value in arguments.items()},
        **_code_fingerprint(root, library_modules(library, {"ppm.publishing.ledger_study"})),
    }
    saved = _read_json(file)
    reasons = changes(saved.get("fingerprint"), now)
    if not reasons:
        return False
    say(f"{LEDGER}: {settings['studies']} studies of section 4 ({', '.join(reasons[:3])}"
        f"{' …' if reasons[3:] else ''})")
    started = datetime.datetime.now().astimezone()
    clock = time.perf_counter()
    values = ledger_study(**arguments, **settings)
    record = {
        "started": started.isoformat(timespec="seconds"),
        "seconds": round(time.perf_counter() - clock, 1),
        "profile": profile,
        **settings,
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    content = {"fingerprint": now, "record": record, "data": "drawn", "values": values}
    write_json(file, content)
    say(f"{LEDGER}: done in {record['seconds']:.0f} s")
    return True


def _study_file(results):
    return Path(results, LEDGER, VALUES_FILE)


def notebook_fingerprint(root, notebook, values):
    """What an executed notebook is made from.

    Parameters
    ----------
    root : path-like
        The repository.
    notebook : Notebook
        The notebook.
    values : dict
        Its parameters, checked.

    Returns
    -------
    dict
        Name of each input -> hash or value: the notebook, every parameter, the modules of the
        library that the notebook reaches, and the lock file.
    """
    parts = {f"notebooks/{notebook.path.name}": content_hash(notebook.path)}
    for name, value in {**notebook.parameters, **values}.items():
        if name == "ce_data" and value:
            # the same file in another folder is the same data; its name stands on the page
            value = f"{Path(value).name} {content_hash(value)}"
        parts[f"parameter {name}"] = value
    return parts | _code_fingerprint(root, reached_modules(Path(root, "ppm"), notebook.path))


def _code_fingerprint(root, modules):
    """Hashes of modules of the library and of the lock file."""
    library = Path(root, "ppm")
    parts = {f"ppm/{module}": content_hash(library / module) for module in sorted(modules)}
    lock = Path(root, "requirements.lock")
    if lock.is_file():
        parts["requirements.lock"] = content_hash(lock)
    return parts


def changes(before, now):
    """Sentences on what differs between two fingerprints; none if they are equal.

    Parameters
    ----------
    before : dict or None
        Earlier fingerprint, if there is one.
    now : dict
        Present fingerprint.
    """
    if not before:
        return ["for the first time"]
    sentences = []
    for part in {**before, **now}:
        if part not in before:
            sentences.append(f"{part} is new")
        elif part not in now:
            sentences.append(f"{part} is gone")
        elif before[part] != now[part]:
            sentences.append(f"{part} changed")
    return sentences


def reached_modules(library, path):
    """Files of the library that a notebook depends on, directly or through other modules.

    Nothing is imported: names such as ``ppm.local_bound`` or ``ppm.survey.load`` are looked up in
    the tables of exports, and imports inside functions count. ``ppm/__init__.py`` itself does not,
    because it only forwards.

    Parameters
    ----------
    library : path-like
        Folder of the package ``ppm``.
    path : path-like
        The notebook.

    Returns
    -------
    set of str
        Paths relative to ``library``.
    """
    library = Path(library)
    code = "\n".join(
        _without_magics(cell_source(cell))
        for cell in read_cells(path)
        if cell["cell_type"] == "code"
    )
    try:
        names = _mentioned(ast.parse(code))
    except SyntaxError as error:
        raise BookError(f"{Path(path).name} has a code cell that is no Python: {error}") from None
    return library_modules(library, names)


def library_modules(library, names):
    """Files of the library behind dotted names and behind everything that these import.

    Parameters
    ----------
    library : path-like
        Folder of the package ``ppm``.
    names : set of str
        Dotted names, such as ``ppm.lipschitz``.

    Returns
    -------
    set of str
        Paths relative to ``library``.
    """
    library = Path(library)
    exports = _export_table(library)
    found, waiting = set(), set(names)
    while waiting:
        for file in _files(library, waiting.pop(), exports):
            if file not in found:
                found.add(file)
                waiting |= _mentioned(ast.parse((library / file).read_text("utf-8")))
    return found


def _without_magics(source):
    return "\n".join(
        "pass" if re.match(r"[%!?]", line) else line for line in source.splitlines()
    )


def _export_table(library):
    """Public dotted name -> module that defines it, from ``_EXPORTS`` of every package."""
    found = {}
    for file in library.rglob("__init__.py"):
        package = ".".join(["ppm", *file.relative_to(library).parts[:-1]])
        for statement in ast.parse(file.read_text("utf-8")).body:
            targets = [ast.unparse(target) for target in getattr(statement, "targets", ())]
            if targets == ["_EXPORTS"]:
                table = ast.literal_eval(statement.value)
                found |= {f"{package}.{name}": module for name, module in table.items()}
    if not any(name.count(".") == 1 for name in found):
        raise BookError("ppm/__init__.py has no table _EXPORTS")
    return found


def _mentioned(tree):
    """Dotted names of the package that a syntax tree mentions."""
    aliases = {"ppm": "ppm"}
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            aliases |= {a.asname: a.name for a in node.names if a.asname and _is_ours(a.name)}
            names |= {a.name for a in node.names if a.name.startswith("ppm.")}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and _is_ours(node.module or ""):
            for a in node.names:
                names.add(f"{node.module}.{a.name}")
                aliases[a.asname or a.name] = f"{node.module}.{a.name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            head, _, rest = ast.unparse(node).partition(".")
            if head in aliases and re.fullmatch(r"[\w.]+", rest):
                names.add(f"{aliases[head]}.{rest}")
    return names


def _is_ours(module):
    return module == "ppm" or module.startswith("ppm.")


def _files(library, dotted, exports):
    """Files behind a dotted name: the module, and the packages that Python imports before it."""
    parts = dotted.split(".")
    files, inside = [], library
    for length, part in enumerate(parts[1:], start=2):
        known = exports.get(".".join(parts[:length]))
        if known:
            return files + _files(library, known, exports)
        inside = inside / part
        for file in (inside.with_name(f"{part}.py"), inside / "__init__.py"):
            if file.is_file():
                files.append(str(file.relative_to(library).as_posix()))
    return files


def _read_json(path):
    try:
        return json.loads(Path(path).read_text("utf-8"))
    except (OSError, ValueError):
        return {}


def _book_fingerprint(root, executed, results, chapters):
    """What the pages are made from: chapters, prose, settings and the code that stages them."""
    files = [root / "_config.yml", root / "_toc.yml", root / "requirements.lock"]
    files += [file for file in sorted((root / "book").rglob("*")) if file.is_file()]
    files += sorted((root / "notebooks" / "profiles").glob("*.yml"))
    files += [executed / f"{name}{end}" for name in chapters for end in (".ipynb", ".json")]
    files += [results / name / VALUES_FILE for name in (*chapters, LEDGER)]
    files += sorted((root / "_build" / "tests").glob("*.xml"))
    here = Path(__file__).parent
    modules = ("book", "notebooks", "parameters", "ledger", "pages", "checks")
    files += [here / f"{name}.py" for name in modules]
    digest = hashlib.sha256()
    for file in files:
        if file.is_file():
            digest.update(f"{file.parent.name}/{file.name} {content_hash(file)}\n".encode())
    return {"sha256": digest.hexdigest()}


# ------------------------------------------------------------------------------------ staging


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
    records = {name: _read_json(executed / f"{name}.json")["record"] for name in chapters}
    _stage_prose(root, target, records, results)
    statement_checks = _statement_checks(root)
    for name, record in records.items():
        target_file = target / "notebooks" / f"{name}.ipynb"
        stage_notebook(
            executed / f"{name}.ipynb", target_file, record, private=[root],
            statement_checks=statement_checks,
        )


def _statement_checks(root):
    """Map from statements to tests, and the tests' last verdicts; two empty ones without a map."""
    path = root / "book" / "checks.yaml"
    if not path.is_file():
        return {}, {}
    try:
        return checks.load_checks(path), checks.read_verdicts(root / "_build" / "tests")
    except checks.ChecksError as error:
        raise BookError(str(error)) from None


def _claims(root, notebooks):
    """Rows of the ledger; none without its file."""
    path = root / "book" / "published.yaml"
    if not path.is_file():
        return ()
    try:
        return load_ledger(path, notebooks)
    except LedgerError as error:
        raise BookError(str(error)) from None


def _stage_prose(root, target, records=None, results=None):
    shutil.rmtree(target, ignore_errors=True)
    (target / "notebooks").mkdir(parents=True)
    for name in ("_config.yml", "_toc.yml"):
        shutil.copy(root / name, target / name)
    shutil.copytree(root / "book", target / "book")
    notebooks = find_notebooks(root)
    names = ("parameters", "ledger", "checks")
    templates = {name: target / "book" / f"{name}.md" for name in names}
    pages = {"parameters": parameters_page(templates["parameters"], notebooks, _profiles(root))}
    claims = _claims(root, notebooks)
    if claims:
        settings = SETTINGS_CHAPTER if SETTINGS_CHAPTER in _chapters(root, notebooks) else ""
        pages["ledger"] = _ledger(templates["ledger"], claims, records or {}, results, settings)
    tests, verdicts = _statement_checks(root)
    if tests:
        pages["checks"] = checks_page(
            templates["checks"], checks.find_statements(root), tests, verdicts,
            repository=_repository_address(root),
        )
    for name, template in templates.items():
        template.unlink(missing_ok=True)
        if name in pages:
            template.write_text(pages[name], "utf-8")
    if tests:
        for prose in (target / "book").rglob("*.md"):
            text = checks.with_checks(prose.read_text("utf-8"), tests, verdicts)
            prose.write_text(text, "utf-8")


def _profiles(root):
    """What every profile but the default sets, by its name."""
    notebooks = find_notebooks(root)
    return {
        path.stem: load_profile(root, path.stem, notebooks)
        for path in sorted(Path(root, "notebooks", "profiles").glob("*.yml"))
        if path.stem != DEFAULT_PROFILE
    }


def _ledger(template, claims, records, results, settings_chapter):
    """The page of the ledger, from what the chapters saved."""
    computed, sources = {}, {}
    for name, record in records.items():
        saved = _read_json(Path(results, name, VALUES_FILE)) if results else {}
        if saved:
            computed[name] = saved
            sources[name] = {
                "profile": record["profile"],
                "day": _day(record["started"]),
                "data": saved["data"],
                "part": saved["part"],
            }
    larger = _read_json(_study_file(results)) if results else {}
    study = {}
    if larger:
        record = larger["record"]
        study = {**record, "chapter": STUDY_CHAPTER, "day": _day(record["started"])}
        study["at_1000"] = studies_at_1000(record["studies"])
        alone = computed.get(STUDY_CHAPTER, {}).get("values", {}).get("replicates", {})
        study["beside"] = alone.get("value")
    rows = ledger.judge(claims, computed, {STUDY_CHAPTER: larger} if larger else None)
    return ledger_page(template, rows, sources, settings_chapter=settings_chapter, study=study)


def _repository_address(root):
    """Address of the repository in the book's settings, or empty text."""
    import yaml

    settings = yaml.safe_load((root / "_config.yml").read_text("utf-8"))
    return (settings.get("repository") or {}).get("url") or ""


def stage_notebook(source, target, record, *, private=(), statement_checks=({}, {})):
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

    Raises
    ------
    BookError
        As for :func:`stage`.
    """
    import nbformat

    notebook = nbformat.read(source, 4)
    notebook.metadata.pop("papermill", None)
    name = Path(target).name
    folders = "|".join(re.escape(str(folder)) for folder in (*private, Path.home()))
    hidden = re.compile(rf"(?<![\w.])({folders})(?![\w.-])\S*")
    boxed = False
    for number, cell in enumerate(notebook.cells, start=1):
        if cell.cell_type == "markdown":
            cell.source = checks.with_checks(cell.source, *statement_checks)
        if cell.cell_type == "markdown" and not boxed:
            cell.source, boxed = _with_box(cell.source, provenance(record))
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
        where = f"{name}, cell {number} ({cell.source.strip().partition('\n')[0]})"
        _check_figures(where, cell)
        shown = hidden.search("\n".join([cell.source, *_texts(cell)]))
        if shown:
            raise BookError(f"{where} shows a path of this machine: {shown.group()}")
    if not boxed:
        raise BookError(f"{name} has no title (a line that starts with '# ')")
    nbformat.write(notebook, target)


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


def provenance(record):
    """Box that says how a chapter was made.

    Parameters
    ----------
    record : dict
        What was run, as in ``run.json``.

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
    body = "\n".join(lines)
    return f":::{{admonition}} {BOX_TITLE}\n:class: note provenance\n{body}\n:::"


def _day(started):
    return checks.day_in_words(datetime.datetime.fromisoformat(started))


# ------------------------------------------------------------------------------------- pages


def _sphinx(source, output, *, strict=True):
    """Call Jupyter Book; return lines on what is wrong, none if the book was built."""
    shutil.rmtree(output, ignore_errors=True)
    command = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()", "build"]
    command += ["-W", "-n", "--keep-going"] if strict else []
    command += ["--path-output", str(output), str(source)]
    finished = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    text = re.sub(r"\x1b\[[0-9;]*m", "", finished.stdout).replace(f"{source}/", "")
    log = Path(output).parent / "sphinx.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(text, "utf-8")
    html = Path(output) / "_build" / "html"
    if finished.returncode == 0 and html.is_dir():
        # of MathJax's bundles, each with everything in it, pages load this one
        for bundle in (html / "_static" / "mathjax").glob("*.js"):
            if bundle.name != "tex-chtml.js":
                bundle.unlink()
        return []
    lines = [line for line in text.splitlines() if re.search(r"\b(WARNING|ERROR|CRITICAL)\b", line)]
    # what stops Sphinx before it warns ends in a message box of blank lines and rules
    said = [line for line in text.splitlines() if re.search(r"\w", line)]
    return lines or [line for line in said if "Could not" in line] or said[-15:]


def _replace(new, old):
    """Put a folder where another one may stand."""
    gone = old.with_name(old.name + ".old")
    shutil.rmtree(gone, ignore_errors=True)
    if old.exists():
        old.rename(gone)
    new.rename(old)
    shutil.rmtree(gone, ignore_errors=True)


def render_page(root, executed, record):
    """Make a page to open from an executed notebook, beside it and readable without a network.

    Parameters
    ----------
    root : path-like
        The repository, whose settings and prose (for what the chapter refers to) are used.
    executed : path-like
        The executed notebook.
    record : dict
        What was run, as in ``run.json``.

    Returns
    -------
    pathlib.Path
        The page; what it shows lies beside it in ``<name>_files``.

    Raises
    ------
    BookError
        If the page cannot be made.
    """
    executed = Path(executed)
    name = executed.stem
    notebooks = find_notebooks(root)
    page = executed.with_suffix(".html")
    with tempfile.TemporaryDirectory() as folder:
        source, output = Path(folder, "stage"), Path(folder, "sphinx")
        _stage_prose(Path(root), source)
        # the other chapters are there so that references to their theorems get numbers
        for other, notebook in notebooks.items():
            if other != name:
                shutil.copy(notebook.path, source / "notebooks")
        target = source / "notebooks" / executed.name
        stage_notebook(
            executed, target, record, private=[root], statement_checks=_statement_checks(Path(root))
        )
        problems = _sphinx(source, output, strict=False)
        if problems:
            raise BookError(f"no page could be made: {problems[-1]}")
        built = output / "_build" / "html"
        files = executed.with_name(f"{name}_files")
        for part in ("_static", "_images"):
            if (built / part).is_dir():
                unread = shutil.ignore_patterns("*.map", "locales", "sre")
                shutil.copytree(built / part, files / part, ignore=unread)
        html = (built / "notebooks" / f"{name}.html").read_text("utf-8")
        page.write_text(_single(html, name), "utf-8")
    return page


def _single(html, name):
    """Make a page of the book stand alone: its own files, no links to pages that are not there."""
    html = re.sub(r"\.\./(_static|_images)/", rf"{name}_files/\1/", html)
    html = re.sub(
        r'<a\b[^>]*\bhref="(?!#|https?:|mailto:)[^"]*"[^>]*>(.*?)</a>', r"\1", html, flags=re.DOTALL
    )
    style = (
        "<style>.bd-sidebar-primary, .bd-header-article, .prev-next-footer, "
        "label[for*=sidebar] {display: none !important}</style>"
    )
    return html.replace("</head>", f"{style}</head>", 1)
