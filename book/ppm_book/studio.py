"""The command ``ppm``: run notebooks with new parameters, and build the book.

papermill executes and Jupyter Book makes the pages. All that is generated lies in ``_build``:
``results/<profile>/<notebook>/`` has an executed notebook, its tables and, written last, its
``run.json``; ``fits/`` has what an interrupted run goes on from; ``html/`` is the book.
"""

import argparse
import base64
import contextlib
import hashlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from unittest.mock import patch

import nbformat
from filelock import FileLock, Timeout
from jinja2 import Template

from ppm.disclosure import NOTE_FILE, leave_note
from ppm.studies.engine import environment_of
from ppm_book import compare, exercises, ledger
from ppm_book.page import ROOT
from ppm_book.parameters import (
    Refused,
    chapters,
    defaults,
    notebooks,
    parameter_table,
    parameters,
    parsed,
    profile_of,
    source,
    title,
)

PACKAGES = ("numpy", "scipy", "pandas", "xarray", "matplotlib", "pymc", "papermill")
# what figures bring besides their pictures: a narrow one for phones, and their data
FIGURES = "book/_static/figures"


class Failed(Exception):
    """A notebook failed, or a page cannot be shown as it is: exit status 1."""


# ------------------------------------------------------------------------------- one notebook


def digest(*paths):
    """One hash of files, or of all files in folders, with their names."""
    found = hashlib.sha256()
    for path in map(Path, paths):
        files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
        for file in files:
            if "__pycache__" not in file.parts:
                found.update(f"{file.relative_to(path.parent)}\n".encode() + file.read_bytes())
    return found.hexdigest()


def made_from(name, values):
    """What a result depends on: notebook, parameters, library, lock file and data."""
    data = [values["ce_data"]] if values.get("ce_data") else []
    beside = [ROOT / "ppm", ROOT / "book" / "ppm_book", ROOT / "requirements.lock"]
    files = digest(source(name), *beside, *sorted(ROOT.glob("book/*.csv")), *data)
    shown = json.dumps(values | {"ce_data": [Path(file).name for file in data]}, sort_keys=True)
    return hashlib.sha256(f"{files} {shown}".encode()).hexdigest()


def record_of(name, values, profile, started):
    """What is run, for ``run.json`` and the box at a chapter's beginning; it holds no path."""
    data = values.get("ce_data")
    return {
        "notebook": name, "profile": profile,
        "parameters": values | ({"ce_data": Path(data).name} if data else {}),
        "changed": [key for key, value in defaults(name).items() if values[key] != value],
        "made_from": made_from(name, values), "started": started.isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "versions": {package: version(package) for package in ("ppm", *PACKAGES)},
        **({"ce_data_sha256": digest(data)} if data else {}),
    }


def execute(name, values, folder, profile, engine=None):
    """Execute a notebook into a folder, which holds ``run.json`` only when all is done.

    Raises
    ------
    Failed
        If a cell raises an error or warns.
    """
    import papermill
    from nbclient.exceptions import DeadKernelError

    began, shown, data = time.perf_counter(), dict(values), values.get("ce_data")
    record = record_of(name, values, profile, datetime.now().astimezone())
    output = folder / f"{name}.ipynb"
    with tempfile.TemporaryDirectory() as place:
        if data:
            # the notebook learns the file's name, and not where it lies
            shown["ce_data"] = record["parameters"]["ce_data"]
            Path(place, shown["ce_data"]).symlink_to(data)
            leave_note(folder, shown["ce_data"])
        variables = {
            "PPM_RESULTS": str(folder.absolute()), "PPM_FITS": str(ROOT / "_build" / "fits"),
            "IPYTHONDIR": place, "MPLBACKEND": "module://matplotlib_inline.backend_inline",
            **(engine or environment_of()),
        }
        try:
            with patch.dict(os.environ, variables):
                papermill.execute_notebook(
                    str(source(name)), str(output), shown, kernel_name="python3", cwd=place,
                    progress_bar=sys.stderr.isatty(), stderr_file=sys.stderr,
                    # kernels warn that they talk over TCP, on this machine
                    extra_arguments=["--IPKernelApp.log_level=CRITICAL"],
                )
        except papermill.PapermillExecutionError as error:
            told = (str(error.evalue).strip() or "no message").splitlines()[0]
            cell = f"cell [{error.exec_count}] ({error.source.strip().partition(chr(10))[0]})"
            raise Failed(f"{name}, {cell}: {error.ename}: {told}") from None
        except DeadKernelError:
            raise Failed(f"{name}: the kernel died (out of memory?)") from None
    for cell in nbformat.read(output, 4).cells:
        said = "".join(o.text for o in cell.get("outputs", ()) if o.get("name") == "stderr")
        if warned := re.search(r"\b\w*Warning: .*", said):
            raise Failed(f"{name}, cell [{cell.execution_count}]: {warned[0]}")
    record["seconds"] = round(time.perf_counter() - began, 1)
    (folder / "run.json").write_text(json.dumps(record, indent=1, ensure_ascii=False), "utf-8")
    return record


def run(name, given=(), *, profile="paper", output=None, engine=None):
    """A reader's run: a folder with the executed notebook, a page to open, tables and ``run.json``.

    Returns
    -------
    pathlib.Path
        The folder.
    """
    values = parameters(name, profile, given)
    folder = Path(output or f"runs/{name}-{datetime.now():%Y%m%d-%H%M%S}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Refused(f"the output folder {folder} exists and is not empty")
    folder.mkdir(parents=True, exist_ok=True)
    record = execute(name, values, folder, profile, engine)
    closing = compare.beside_the_book(ROOT, folder, record)
    with tempfile.TemporaryDirectory() as place:
        staged, built = Path(place, "stage"), Path(place, "built")
        stage(staged)
        # the other chapters are there so that references to their theorems get numbers
        for other in chapters():
            shutil.copy(source(other), staged / "notebooks")
        stage_notebook(folder / f"{name}.ipynb", staged, record, closing)
        sphinx(staged, built, strict=False)
        html = (built / "notebooks" / f"{name}.html").read_text("utf-8")
        for part in ("_static", "_images"):
            if (built / part).is_dir():
                shutil.copytree(built / part, folder / f"{name}_files" / part)
    (folder / f"{name}.html").write_text(_alone(html, f"{name}_files"), "utf-8")
    return folder


def _alone(html, files):
    """A page of the book that stands alone: its own files, no links to pages that are not there."""
    html = re.sub(r"\.\./(_static|_images)/", rf"{files}/\1/", html)
    away = rf'<a\b[^>]*\bhref="(?!#|https?:|mailto:|{files}/)[^"]*"[^>]*>(.*?)</a>'
    html = re.sub(away, r"\1", html, flags=re.S)
    html = re.sub(r'<(?:link rel="(?:index|search|prev|next)"|script\b[^>]*"\.\./)[^>]*>', "", html)
    hidden = ".bd-sidebar-primary, .bd-header-article, .prev-next-footer, label[for*=sidebar]"
    return html.replace("</head>", f"<style>{hidden} {{display: none !important}}</style></head>")


# ------------------------------------------------------------------------------------ the book


def build(profile="paper", ce_data=""):
    """Execute what changed, then make the pages; the book that stands stays if one fails.

    Raises
    ------
    Refused, Failed
        As :func:`parameters` and :func:`execute` do, and if a page has a fault.
    """
    of_profile, planned = profile_of(profile), {}
    for name in notebooks():
        if name in chapters() or name in of_profile:
            wanted = {"ce_data": ce_data} if ce_data and "ce_data" in defaults(name) else {}
            planned[name] = parameters(name, profile, wanted)
    built, results = ROOT / "_build" / "html", ROOT / "_build" / "results" / profile
    results.mkdir(parents=True, exist_ok=True)
    try:
        lock = FileLock(ROOT / "_build" / "lock").acquire(timeout=0)
    except Timeout:
        raise Failed("another build is at work in _build; wait for its end") from None
    with lock:
        records = {
            name: refresh(name, values, results / name, profile)
            for name, values in planned.items()
        }
        staged, stamp = ROOT / "_build" / "stage", built / "made_from"
        stage(staged, results)
        for name in chapters():
            stage_notebook(results / name / f"{name}.ipynb", staged, records[name])
        state = digest(staged, ROOT / "requirements.lock", ROOT / "book" / "ppm_book")
        if stamp.is_file() and stamp.read_text("utf-8") == state:
            print(f"The book is up to date: {built / 'index.html'}")
            return
        print("Building the pages", flush=True)
        sphinx(staged, ROOT / "_build" / "pages")
        shutil.rmtree(built, ignore_errors=True)
        (ROOT / "_build" / "pages").rename(built)
        stamp.write_text(state, "utf-8")
    print(f"The book is ready: {built / 'index.html'}")
    if ce_data:
        leave_note(built, Path(ce_data).name)
        print(f"It shows what was computed from {Path(ce_data).name}, so only you can read it: "
              f"see {NOTE_FILE}")


def refresh(name, values, folder, profile):
    """Execute a notebook unless its results are those of the same notebook, library and data."""
    with contextlib.suppress(OSError, ValueError):
        record = json.loads((folder / "run.json").read_text("utf-8"))
        if record["made_from"] == made_from(name, values):
            return record
    print(f"{name}: executing", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    record = execute(name, values, folder, profile)
    print(f"{name}: done in {record['seconds']:.0f} s", flush=True)
    return record


def stage(folder, results=None):
    """Fill the folder that Jupyter Book sees, but for the chapters."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "book", folder / "book", ignore=shutil.ignore_patterns("ppm_book"))
    (folder / "notebooks").mkdir()
    for file in ("_config.yml", "_toc.yml"):
        shutil.copy(ROOT / file, folder)
    tables = [(title(name), name, parameter_table(name)) for name in chapters()]
    template = Template((ROOT / "book" / "parameters.md").read_text("utf-8"), trim_blocks=True)
    pages = {"parameters": template.render(notebooks=tables)}
    pages["ledger"] = ledger.page(ROOT, results)
    # parts of pages that a chapter wrote
    for file in Path(results).glob("*/*.md") if results else ():
        pages[file.stem] = file.read_text("utf-8")
    for name, text in pages.items():
        (folder / "book" / f"{name}.md").write_text(text, "utf-8")
    exercises.stage_exercises(ROOT, folder)


def stage_notebook(executed, folder, record, closing=""):
    """Prepare an executed notebook for its page, into a staged folder.

    Raises
    ------
    Failed
        If a figure has no caption or no alternative text, or the page shows a path of this machine.
    """
    notebook = nbformat.read(executed, 4)
    notebook.metadata.pop("papermill", None)
    first = next(cell for cell in notebook.cells if cell.source.startswith("# "))
    heading, _, rest = first.source.partition("\n")
    first.source = f"{heading}\n\n{how_made(record)}\n{rest}"
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        tags = cell.metadata.setdefault("tags", [])
        if {"parameters", "injected-parameters"} & {*tags} and "hide-input" not in tags:
            what = "parameters of this run" if "injected-parameters" in tags else "parameters"
            prompts = {f"code_prompt_{do.lower()}": f"{do} {what}" for do in ("Show", "Hide")}
            cell.metadata["mystnb"] = prompts | cell.metadata.get("mystnb", {})
            tags.append("hide-input")
        cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
        _check_figure(executed.stem, cell, folder / FIGURES)
    if closing:
        notebook.cells.append(nbformat.v4.new_markdown_cell(closing))
    text = nbformat.writes(notebook)
    if shown := re.search(rf"(?<![\w.])({re.escape(str(ROOT))}|{Path.home()})(?![\w.-])\S*", text):
        raise Failed(f"{executed.stem} shows a path of this machine: {shown[0]}")
    (folder / "notebooks" / executed.name).write_text(text, "utf-8")


def _check_figure(name, cell, folder):
    """A figure needs words; what it brings besides its picture goes where the page finds it."""
    about = cell.metadata.get("mystnb", {})
    figure, image = about.get("figure", {}), about.get("image", {})
    needed = figure.get("caption"), figure.get("name"), image.get("alt")
    for output in cell.outputs:
        if not any(kind.startswith("image/") for kind in output.get("data", {})):
            continue
        if not all(str(words or "").strip() for words in needed):
            raise Failed(f"{name} shows a figure without caption, name or alternative text: "
                         f"{cell.source.strip().partition(chr(10))[0]}")
        if brought := output["data"].pop("application/vnd.ppm.figure+json", None):
            image["alt"] = f"{image['alt']} {brought['numbers']}".strip()
            folder.mkdir(parents=True, exist_ok=True)
            stem = folder / re.sub(r"[^a-z0-9]+", "-", figure["name"].lower()).strip("-")
            stem.with_suffix(".png").write_bytes(base64.b64decode(brought["narrow"]))
            stem.with_suffix(".csv").write_text(brought["data"], "utf-8")


def how_made(record):
    """Box that says how a chapter was made."""
    values, started = record["parameters"], datetime.fromisoformat(record["started"])
    changed = [f"`{key} = {values[key]!r}`" for key in record["changed"] if key != "ce_data"]
    lines = [
        f"Profile `{record['profile']}`, executed on {started.day} {started:%B %Y} in "
        f"{record['seconds']:.0f} seconds with ppm {record['versions']['ppm']} and Python "
        f"{record['python']}.",
        f"Different from the defaults: {', '.join(changed)}." if changed
        else "All parameters are at their defaults.",
    ]
    lines += [f"Seed: {values['seed']}."] if "seed" in values else []
    if "ce_data" in values:
        file = values["ce_data"]
        lines.append(f"Data: the file `{file}`." if file else
                     "Data: **simulated records**, not the survey.")
    file, address = f"notebooks/{record['notebook']}.ipynb", exercises.repository_address(ROOT)
    lines.append(exercises.launch_links(address, file, "parameters"))
    return "\n".join([
        ":::{admonition} How this chapter was made", ":class: note provenance", *lines, ":::"
    ])


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


# ---------------------------------------------------------------------------- the command line


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def main(arguments=None):
    """Run the command line and return its exit status: 0, 1 failed, 2 refused, 130 interrupted."""
    parser = _Parser(prog="ppm", description="Run the book's notebooks, or build the book.")
    commands = parser.add_subparsers(required=True, dest="command", metavar="COMMAND")
    commands.add_parser("notebooks", help="list the notebooks and their parameters")
    one = commands.add_parser(
        "run", help="run a notebook with new parameters",
        epilog="example: ppm run poisson_contraction -p replicates=50 -p sizes='[100, 400]'",
    )
    one.add_argument("notebook", metavar="NOTEBOOK", help="its name, see `ppm notebooks`")
    one.add_argument("-p", metavar="NAME=VALUE", action="append", default=[], type=str,
                     help="set a parameter; may be given several times")
    one.add_argument("--output", metavar="FOLDER", help="default: runs/NOTEBOOK-TIME")
    engine = one.add_mutually_exclusive_group()
    engine.add_argument("--workers", metavar="N", type=int, help="run studies on N processes")
    engine.add_argument("--scheduler", metavar="ADDRESS", help="run studies on a Dask cluster")
    book = commands.add_parser("book", help="execute what changed and build the book")
    book.add_argument("--ce-data", metavar="FILE", default="",
                      help="Consumer Expenditure file; without it records are simulated")
    for command in (one, book):
        command.add_argument("--profile", default="paper")
    commands.add_parser("classroom", help="make the exercises to hand out, and their solutions")
    commands.add_parser("pdf", help="print the book that was built into one file")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return _do(options) or 0
    except Refused as error:
        print(f"ppm: {error}", file=sys.stderr)
        return 2
    except Failed as error:
        print(f"ppm: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("ppm: interrupted; fits that were finished are kept", file=sys.stderr)
        return 130


def _do(options):
    """Carry out a command."""
    # of simulated records anybody may see the pages; all else is its owner's alone
    if options.command == "run" or getattr(options, "ce_data", ""):
        os.umask(0o077)
    if options.command == "run":
        try:
            engine = environment_of(options.workers, options.scheduler)
        except ValueError as error:
            raise Refused(error) from None
        given = dict(map(parsed, options.p))
        folder = run(options.notebook.removesuffix(".ipynb"), given, profile=options.profile,
                     output=options.output, engine=engine)
        print(f"Done. Open {folder / options.notebook}.html")
    elif options.command == "book":
        build(options.profile, options.ce_data)
    elif options.command == "notebooks":
        for name in notebooks():
            print(f"{name}: {title(name)}")
            for row in parameter_table(name):
                print(f"    {row['name']}: {row['type']} = {row['default']}"
                      f"\n        {row['description']}; {row['accepts']}")
    else:
        from ppm_book import classroom, pdf

        made = classroom.make_editions(ROOT) if options.command == "classroom" else pdf.make()
        print(*(f"Made {file}" for file in made), sep="\n")


if __name__ == "__main__":
    sys.exit(main())
