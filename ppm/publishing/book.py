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

import contextlib
import datetime
import errno
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ppm._validation import require
from ppm.disclosure import NOTE_FILE, leave_note, own_folder, owner_only
from ppm.publishing.execution import execute, fits_of, run_record
from ppm.publishing.files import alone_in, write_whole
from ppm.publishing.fingerprints import (
    book_fingerprint,
    changes,
    code_fingerprint,
    library_modules,
    notebook_fingerprint,
    read_json,
    study_file,
)
from ppm.publishing.ledger_study import CHAPTER as STUDY_CHAPTER
from ppm.publishing.ledger_study import ledger_study
from ppm.publishing.notebooks import (
    DEFAULT_PROFILE,
    LEDGER,
    BookError,
    NotebookFailed,
    check,
    find_notebooks,
    ledger_settings,
    load_profile,
    write_json,
)
from ppm.publishing.staging import (
    chapters_of,
    claims_of,
    leave_out_reference,
    stage,
    stage_notebook,
    stage_prose,
    statement_checks_of,
)

# errors of a disk that takes no more: no space, no quota, too large a file, read-only
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


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
    FolderInUse
        If another build is at work in the same ``_build``.
    OSError
        If a file cannot be written, as on a full disk. The book that stands stays.
    """
    root = Path(root)
    notebooks = find_notebooks(root)
    require("book", "ppm book")
    settings = load_profile(root, profile, notebooks)
    study = ledger_settings(root, profile)
    chapters = chapters_of(root, notebooks)
    if study and STUDY_CHAPTER not in chapters:
        raise BookError(f"profile {profile}: the ledger's study repeats {STUDY_CHAPTER}, which is "
                        "no chapter of this book")
    claims_of(root, notebooks)
    statement_checks_of(root)
    plan = {}
    for name in chapters:
        values = dict(settings[name])
        if ce_data and "ce_data" in notebooks[name].parameters:
            values["ce_data"] = ce_data
        plan[name] = check(notebooks[name], values)
    with alone_in(root / "_build"):
        return _build(root, notebooks, plan, study, profile, out)


def _build(root, notebooks, plan, study, profile, out):
    """Execute what changed, then build unless the book is up to date; return the exit status."""
    chapters = list(plan)

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
        study_file(root / "_build" / "results" / profile).unlink(missing_ok=True)
    page = root / "_build" / "html" / "index.html"
    stamp = root / "_build" / "html.json"
    fingerprint = book_fingerprint(root, executed, results, chapters)
    if page.is_file() and read_json(stamp) == fingerprint:
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
    before = read_json(memory).get("fingerprint") if executed.is_file() else None
    reasons = changes(before, now)
    if not reasons:
        return False
    say(f"{notebook.name}: executing ({_in_short(reasons)})")
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


def _in_short(reasons):
    """The first reasons of what may be many."""
    return f"{', '.join(reasons[:3])}{' …' if reasons[3:] else ''}"


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
    file = study_file(Path(root, "_build", "results", profile))
    arguments = {name: given[name] for name in ("sizes", "mean", "truncate_at", "draws")}
    library = Path(root, "ppm")
    now = {
        **{f"{LEDGER} {name}": value for name, value in settings.items()},
        **{f"parameter {name}": value for name, value in arguments.items()},
        **code_fingerprint(root, library_modules(library, {"ppm.publishing.ledger_study"})),
    }
    saved = read_json(file)
    reasons = changes(saved.get("fingerprint"), now)
    if not reasons:
        return False
    say(f"{LEDGER}: {settings['studies']} studies of section 4 ({_in_short(reasons)})")
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


# ------------------------------------------------------------------------------------- pages


def _sphinx(source, output, *, strict=True, builder="html"):
    """Call Jupyter Book; return lines on what is wrong, none if the book was built."""
    shutil.rmtree(output, ignore_errors=True)
    command = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()", "build"]
    command += ["-W", "-n", "--keep-going"] if strict else []
    command += ["--builder", builder, "--path-output", str(output), str(source)]
    finished = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    text = re.sub(r"\x1b\[[0-9;]*m", "", finished.stdout).replace(f"{source}/", "")
    log = Path(output).parent / "sphinx.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(text, "utf-8")
    # Sphinx warns of a picture that it could not copy, and goes on
    full = re.search(rf"\[Errno (?:{'|'.join(map(str, FULL))})\] ([^:'\n]+)", text)
    if full:
        raise BookError(f"the pages could not be written: {full[1]}")
    html = Path(output) / "_build" / builder
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


def render_page(root, executed, record, *, closing=""):
    """Make a page to open from an executed notebook, beside it and readable without a network.

    Parameters
    ----------
    root : path-like
        The repository, whose settings and prose (for what the chapter refers to) are used.
    executed : path-like
        The executed notebook.
    record : dict
        What was run, as in ``run.json``.
    closing : str, default ""
        Markdown that the page ends with.

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
        checked = stage_prose(root, source)
        leave_out_reference(source)
        # the other chapters are there so that references to their theorems get numbers
        for other, notebook in notebooks.items():
            if other != name:
                shutil.copy(notebook.path, source / "notebooks")
        target = source / "notebooks" / executed.name
        stage_notebook(
            executed, target, record, private=[root], statement_checks=checked, closing=closing
        )
        problems = _sphinx(source, output, strict=False)
        if problems:
            raise BookError(f"no page could be made: {problems[-1]}")
        built = output / "_build" / "html"
        files = executed.with_name(f"{name}_files")
        try:
            for part in ("_static", "_images"):
                if (built / part).is_dir():
                    unread = shutil.ignore_patterns("*.map", "locales", "sre")
                    shutil.copytree(built / part, files / part, ignore=unread)
            html = (built / "notebooks" / f"{name}.html").read_text("utf-8")
            write_whole(page, _single(html, name))
        except BaseException:
            # without its page all this is of no use
            shutil.rmtree(files, ignore_errors=True)
            raise
    return page


def _single(html, name):
    """Make a page of the book stand alone: its own files, no links to pages that are not there."""
    html = re.sub(r"\.\./(_static|_images)/", rf"{name}_files/\1/", html)
    html = re.sub(
        rf'<a\b[^>]*\bhref="(?!#|https?:|mailto:|{name}_files/)[^"]*"[^>]*>(.*?)</a>', r"\1", html,
        flags=re.DOTALL,
    )
    style = (
        "<style>.bd-sidebar-primary, .bd-header-article, .prev-next-footer, "
        "label[for*=sidebar] {display: none !important}</style>"
    )
    return html.replace("</head>", f"{style}</head>", 1)
