"""The command ``ppm``: run notebooks with new parameters, and build the book.

papermill executes and Jupyter Book makes the pages. All that is generated lies in ``_build``:
``results/<profile>/<notebook>/`` has an executed notebook, its tables and, written last, its
``run.json``; ``fits/`` has what an interrupted run goes on from; ``html/`` is the book.
"""

import argparse
import contextlib
import json
import logging
import os
import platform
import re
import shutil
import signal
import sys
import tempfile
import time
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

import joblib
import nbformat
from filelock import FileLock, Timeout

import ppm
from ppm.models.mixture.chains import end_with_parent
from ppm_book.chapters import page, running
from ppm_book.tools import compare, made_from, pages, parameters
from ppm_book.tools.classroom import make_editions
from ppm_book.tools.pages import Failed, sphinx
from ppm_book.tools.parameters import Refused

CORES = joblib.cpu_count()
# what a result depends on, of its record
MADE_FROM = "code", "parameters", "ce_data_hash"
PACKAGES = (
    "numpy",
    "scipy",
    "pandas",
    "xarray",
    "matplotlib",
    "pymc",
    "opendp",
    "papermill",
)
# interrupts so far: Python drops an exception that comes while it cleans up memory
INTERRUPTS = []


# ------------------------------------------------------------------------------- one notebook


def record_of(name, values, profile, started):
    """What is run, for ``run.json`` and the box at a chapter's foot; it holds no path."""
    data, defaults = values.get("ce_data"), parameters.defaults(name)
    # all that the notebook may call or read but data
    files = "ppm", "book/ppm_book", "requirements.lock"
    called = [running.ROOT / file for file in files] + [page.CLAIMS / f"{name}.py"]
    return {
        "notebook": name,
        "profile": profile,
        "parameters": values | ({"ce_data": Path(data).name} if data else {}),
        "changed": [key for key, value in defaults.items() if values[key] != value],
        "code": running.digest(parameters.source(name), *called),
        "started": started.isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "versions": {package: version(package) for package in ("ppm", *PACKAGES)},
        **({"ce_data_hash": running.digest(data)} if data else {}),
    }


def execute(
    name,
    values,
    folder,
    profile,
    workers=None,
    scheduler=None,
    bars=False,
    allowed=(),
):
    """Execute a notebook into a folder, and return what was run; ``bars`` show its progress.

    A cell may warn of what is ``allowed``, by its category's name.

    Raises
    ------
    Failed
        If a cell raises an error or warns.
    """
    began, shown, data = time.perf_counter(), dict(values), values.get("ce_data")
    record = record_of(name, values, profile, datetime.now().astimezone())
    output = folder / f"{name}.ipynb"
    variables = {
        "PPM_RESULTS": str(folder.absolute()),
        "PPM_FITS": str(running.ROOT / "_build" / "fits"),
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        # both, so that none is inherited
        "PPM_WORKERS": str(workers or ""),
        "PPM_SCHEDULER": scheduler or "",
        "LOKY_MAX_CPU_COUNT": str(workers or CORES),
    }
    with running.own_kernel(**variables) as place:
        if data:
            # the notebook learns the file's name, and not where it lies
            shown["ce_data"] = record["parameters"]["ce_data"]
            (place / shown["ce_data"]).symlink_to(data)
            running.leave_note(folder, shown["ce_data"])
        given = {key: shown[key] for key in record["changed"]}
        _run_cells(name, output, given, place, bars)
    refuse_warnings(output, allowed)
    executed = nbformat.read(output, 4)
    # papermill notes where it read and wrote
    executed.metadata.pop("papermill", None)
    text = nbformat.writes(executed)
    output.write_text(text.replace(data, shown["ce_data"]) if data else text, "utf-8")
    seconds = time.perf_counter() - began
    print(f"{name}: executed in {seconds:.0f} s", file=sys.stderr, flush=True)
    return record | {"seconds": round(seconds, 1)}


def _run_cells(name, output, given, place, bars):
    """Let papermill run a notebook's cells in a folder, with some parameters."""
    import papermill

    try:
        papermill.execute_notebook(
            str(parameters.source(name)),
            str(output),
            given,
            kernel_name="python3",
            cwd=str(place),
            progress_bar=bars,
            stderr_file=sys.stderr if bars else None,
            # kernels warn that they talk over TCP, on this machine
            extra_arguments=["--IPKernelApp.log_level=CRITICAL"],
        )
    except papermill.PapermillExecutionError as error:
        told = (str(error.evalue).strip() or "no message").splitlines()[0]
        cell = (
            f"cell [{error.exec_count}] ({error.source.strip().partition(chr(10))[0]})"
        )
        raise Failed(f"{name}, {cell}: {error.ename}: {told}") from None
    # of a kernel that died while it worked, or before it began
    except RuntimeError:
        raise Failed(f"{name}: the kernel died (out of memory?)") from None


def complete(folder, record):
    """Say that a folder has all of a run, by its ``run.json``, and return the record."""
    (folder / "run.json").write_text(
        json.dumps(record, indent=1, ensure_ascii=False), "utf-8"
    )
    return record


def refuse_warnings(executed, allowed=()):
    """Fail if a cell of an executed notebook warned; what is allowed is told, and no fault."""
    for cell in nbformat.read(executed, 4).cells:
        said = "".join(
            o.text for o in cell.get("outputs", ()) if o.get("name") == "stderr"
        )
        for warned in re.finditer(r"\b(\w*Warning): .*", said):
            figure = cell.metadata.get("mystnb", {}).get("figure", {})
            label = f" ({figure['name']})" if "name" in figure else ""
            told = f"{executed.stem}, cell [{cell.execution_count}]{label}: {warned[0]}"
            if warned[1] not in allowed:
                raise Failed(told)
            print(told, file=sys.stderr)


def run(name, given=(), *, profile="paper", output=None, workers=None, scheduler=None):
    """A reader's run: a folder with the executed notebook, a page to open, tables and ``run.json``.

    Returns
    -------
    pathlib.Path
        The folder.
    """
    values = parameters.parameters(name, profile, given)
    folder = Path(
        os.path.expanduser(output or f"runs/{name}-{datetime.now():%Y%m%d-%H%M%S}")
    )
    try:
        # of two runs that start together, one makes it
        folder.mkdir(parents=True)
    except OSError as error:
        told = error.strerror
        if os.path.isdir(folder):
            complete_run = (folder / "run.json").is_file()
            told = (
                "it exists" if complete_run else "it exists and holds no complete run"
            )
            told += "; choose another --output"
        raise Refused(f"the output folder {folder} cannot be made: {told}") from None
    try:
        record = execute(
            name,
            values,
            folder,
            profile,
            workers,
            scheduler,
            bars=sys.stderr.isatty(),
            # other parameters may put a point outside its panel
            allowed=["PlaceWarning"],
        )
        if name in parameters.chapters():
            print("Making the page", file=sys.stderr, flush=True)
            make_page(folder, record)
        if INTERRUPTS:
            raise KeyboardInterrupt
        complete(folder, record)
    except KeyboardInterrupt:
        # what it had to keep are the fits, which lie elsewhere
        shutil.rmtree(folder)
        raise
    # also of a full disk
    except (Failed, OSError) as error:
        raise Failed(f"{error}; {folder} has what there is of the run") from None
    return folder


def make_page(folder, record):
    """Make the page of a run, which can be read without a network."""
    name = record["notebook"]
    closing = compare.beside_the_book(running.ROOT, folder, record)
    with tempfile.TemporaryDirectory() as place:
        staged, built = Path(place, "stage"), Path(place, "built")
        pages.stage_beside(name, staged)
        pages.stage_notebook(folder / f"{name}.ipynb", staged, record, closing)
        sphinx(staged, built, strict=False, only=f"notebooks/{name}.ipynb")
        html = (built / "notebooks" / f"{name}.html").read_text("utf-8")
        for part in ("_static", "_images", "_downloads"):
            if (built / part).is_dir():
                shutil.copytree(built / part, folder / f"{name}_files" / part)
    (folder / f"{name}.html").write_text(pages.alone(html, f"{name}_files"), "utf-8")


# ------------------------------------------------------------------------------------ the book


def build(profile="paper", ce_data="", solutions=True):
    """Execute what changed, then make the pages; the book that stands stays if one fails.

    Without ``solutions`` no page, source or index has any solution of an exercise.

    Raises
    ------
    Refused, Failed
        As :func:`parameters` and :func:`execute` do, and if a page has a fault.
    """
    asked = made_from.inputs(profile, ce_data, solutions)
    if made_from.stands(asked, profile):
        made_from.tell()
        return
    planned, given = _planned(profile, ce_data), ce_data
    # anybody may see pages made of the file on board; all else is its owner's alone
    ce_data = next(
        (each["ce_data"] for each in planned.values() if each.get("ce_data")), ""
    )
    if ce_data:
        os.umask(0o077)
    folder = running.ROOT / "_build"
    built, results, made, staged = (
        folder / name for name in ("html", f"results/{profile}", "pages", "stage")
    )
    results.mkdir(parents=True, exist_ok=True)
    try:
        lock = FileLock(folder / "lock").acquire(timeout=0)
    except Timeout:
        raise Failed("another build is at work in _build; wait for its end") from None
    with lock:
        records = _executed(planned, results, profile)
        pages.stage(staged, results)
        claims = {}
        for name in parameters.chapters():
            executed = results / name / f"{name}.ipynb"
            claims[name] = pages.stage_notebook(
                executed, staged, records[name], solutions=solutions
            )
        pages.check_pages(staged, claims, profile)
        print("Building the pages", flush=True)
        sphinx(staged, made)
        pages.offer_plain_notebooks(made)
        shutil.rmtree(built, ignore_errors=True)
        made.rename(built)
        # a file that the profile itself names is not among what was asked for
        if given or not ce_data:
            made_from.leave(asked, profile)
    running.forget_fits(folder / "fits")
    print(f"The book is ready: {built / 'index.html'}")
    if ce_data:
        running.leave_note(built, Path(ce_data).name)
        print(
            f"It shows what was computed from {Path(ce_data).name}, so only you can read it: "
            f"see {running.NOTE_FILE}"
        )


def _planned(profile, ce_data):
    """All notebooks of a book, and the parameters of each."""
    planned = {}
    for name in dict.fromkeys(
        [*parameters.chapters(), *parameters.profile_of(profile)]
    ):
        reads = ce_data and "ce_data" in parameters.defaults(name)
        given = {"ce_data": ce_data} if reads else {}
        planned[name] = parameters.parameters(name, profile, given)
    return planned


def _executed(planned, results, profile):
    """Records of all these notebooks, of which what changed is executed."""
    for old in results.iterdir():
        if old.name not in planned:
            shutil.rmtree(old)
    records = {
        name: standing(name, planned[name], results / name, profile) for name in planned
    }
    # what takes longest comes first: it also makes fits that others go on with
    order = sorted(planned, key=parameters.seconds, reverse=True)
    stale = [name for name in order if not records[name]]
    # two at a time, because parts of a notebook keep one core; each has its share of the cores
    number = min(2, CORES, len(stale) or 1)
    done = joblib.Parallel(number, initializer=end_with_parent)(
        joblib.delayed(refresh)(
            name, planned[name], results / name, profile, CORES // number
        )
        for name in stale
    )
    records |= zip(stale, done, strict=True)
    return records


def standing(name, values, folder, profile):
    """The record of results of the same notebook, library and data; or None."""
    with contextlib.suppress(OSError, ValueError):
        record = json.loads((folder / "run.json").read_text("utf-8"))
        wanted = record_of(name, values, profile, datetime.now())
        if all(record.get(key) == wanted.get(key) for key in MADE_FROM):
            return record
    return None


def refresh(name, values, folder, profile, workers):
    """Execute a notebook into its emptied folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return complete(folder, execute(name, values, folder, profile, workers))


# ---------------------------------------------------------------------------- the command line


def main(arguments=None):
    """Run the command line and return its exit status: 0, 1 failed, 2 refused, 130 interrupted."""
    options = _options(arguments)
    # a letter that the terminal does not have is shown by its number
    with contextlib.suppress(AttributeError):
        sys.stdout.reconfigure(errors="backslashreplace")
    _listen()
    try:
        if not (running.ROOT / "_toc.yml").is_file():
            raise Refused(
                "call it in the folder of the book's source: there is no _toc.yml here"
            )
        _do(options)
        # which may be closed
        print(end="", flush=True)
        return 0
    except BrokenPipeError:
        # a reader such as `head` has seen enough; what Python flushes at its end goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (Refused, Failed, OSError) as error:
        print(f"ppm: {error}", file=sys.stderr)
        return 2 if isinstance(error, Refused) else 1
    except KeyboardInterrupt:
        print("ppm: interrupted; fits that were finished are kept", file=sys.stderr)
        return 130


def _options(arguments):
    """What the command line says; an argument that no command has ends the program."""
    parser = argparse.ArgumentParser(
        prog="ppm", description="Run notebooks, or build the book."
    )
    parser.add_argument("--version", action="version", version=f"ppm {ppm.__version__}")
    commands = parser.add_subparsers(required=True, dest="command", metavar="COMMAND")
    listing = commands.add_parser(
        "notebooks", help="list the notebooks and their parameters"
    )
    listing.add_argument("notebook", metavar="NOTEBOOK", nargs="*", help="these alone")
    one = commands.add_parser(
        "run",
        help="run a notebook with new parameters",
        epilog="example: ppm run poisson_contraction -p replicates=50 -p sizes='[100, 400]'",
    )
    one.add_argument(
        "notebook",
        metavar="NOTEBOOK",
        nargs="?",
        help="its name, see `ppm notebooks`; with --like that of the earlier run",
    )
    one.add_argument(
        "-p",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        type=str,
        help="set a parameter; may be given several times",
    )
    one.add_argument("-f", metavar="FILE", help="set the parameters in a YAML file")
    one.add_argument(
        "--like",
        metavar="FOLDER",
        help="begin with the parameters of an earlier run; -f and -p come after it",
    )
    one.add_argument("--output", metavar="FOLDER", help="default: runs/NOTEBOOK-TIME")
    engine = one.add_mutually_exclusive_group()
    engine.add_argument(
        "--workers", metavar="N", type=int, help="run studies on N processes"
    )
    engine.add_argument(
        "--scheduler", metavar="ADDRESS", help="run studies on a Dask cluster"
    )
    book = commands.add_parser("book", help="execute what changed and build the book")
    book.add_argument(
        "--ce-data",
        metavar="FILE",
        default="",
        help="Consumer Expenditure file, in place of the Diary on board",
    )
    for command in (one, book):
        command.add_argument(
            "--profile",
            help="paper, the default, or quick for a look with small studies",
        )
    book.add_argument(
        "--no-solutions", action="store_true", help="leave out all solutions"
    )
    commands.add_parser(
        "classroom",
        help="make what a class gets, its solutions, and a course for nbgrader",
    )
    options, stray = parser.parse_known_args(arguments)
    if stray:
        word = stray[0].lstrip("-")
        hint = f"; did you mean -p {word}?" if "=" in word else ""
        commands.choices[options.command].error(f"unknown argument {stray[0]}{hint}")
    return options


def _listen():
    """Let signals interrupt the command."""
    INTERRUPTS.clear()
    # the last one comes when the terminal is closed; not every system has it
    for number in (
        signal.SIGINT,
        signal.SIGTERM,
        getattr(signal, "SIGHUP", signal.SIGTERM),
    ):
        # where a shell has its background jobs ignore interrupts, or nohup, they are ignored
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


def _interrupt(number, frame):
    """Note an interrupt, so that it counts even if Python drops the exception."""
    INTERRUPTS.append(number)
    # what waited for a kernel that is ended would tell of it, after the command's last word
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    raise KeyboardInterrupt


def _wanted(options):
    """Notebook, parameters and profile that a command line asks for.

    Of a parameter that is given several times, ``-p`` counts before the file, and the file before
    the earlier run.
    """
    name, profile, given = options.notebook, options.profile, {}
    if options.like:
        record = parameters.of_run(options.like)
        name, profile = name or record["notebook"], profile or record["profile"]
        given = record["parameters"]
    if not name:
        raise Refused("run needs the name of a notebook; `ppm notebooks` lists them")
    single = dict(map(parameters.parsed, options.p))
    if len(single) < len(options.p):
        raise Refused("a parameter is given twice")
    several = parameters.from_file(options.f) if options.f else {}
    if given.get("ce_data") and "ce_data" not in single | several:
        raise Refused(
            f"the run in {options.like} read {given['ce_data']}, and did not note where "
            "it lies: give it again, by -p ce_data=PATH"
        )
    return name.removesuffix(".ipynb"), given | several | single, profile or "paper"


def _do(options):
    """Carry out a command."""
    if options.command == "run":
        if options.workers is not None and options.workers < 1:
            raise Refused(f"--workers must be 1 or more; got {options.workers}")
        os.umask(0o077)
        name, given, profile = _wanted(options)
        folder = run(
            name,
            given,
            profile=profile,
            output=options.output,
            workers=options.workers,
            scheduler=options.scheduler,
        )
        page = folder / f"{name}.html"
        print(f"Done. Open {page if page.is_file() else folder}")
    elif options.command == "book":
        build(options.profile or "paper", options.ce_data, not options.no_solutions)
    elif options.command == "notebooks":
        print(
            "\n".join(
                map(parameters.listing, options.notebook or parameters.notebooks())
            )
        )
    else:
        print(*(f"Made {file}" for file in make_editions(running.ROOT)), sep="\n")


if __name__ == "__main__":
    sys.exit(main())
