"""The command line: ``ppm notebooks``, ``ppm run``, ``ppm book`` and ``ppm classroom``."""

import argparse
import logging
import os
import shutil
import signal
import sys
import textwrap

from ppm import __version__
from ppm._validation import MissingExtraError, needed_for
from ppm.disclosure import NOTE_FILE
from ppm.publishing import notebooks
from ppm.publishing.files import FolderInUse, one_line
from ppm.publishing.parameters import ParameterError, check_values, parse_value

USAGE_ERROR = 2


class Terminated(KeyboardInterrupt):
    """The program was asked to end, by ``kill`` or by the system: it ends as after Ctrl-C."""


class _Parser(argparse.ArgumentParser):
    """A wrong command line ends with one line, like a wrong parameter."""

    def error(self, message):
        self.exit(USAGE_ERROR, f"{self.prog}: {message} (see {self.prog} --help)\n")


def main(arguments=None):
    """Run the command line and return its exit status.

    Parameters
    ----------
    arguments : list of str, optional
        Words behind ``ppm``; by default those the program was started with.

    Returns
    -------
    int
        0, or 1 if a notebook or the book failed or a package is missing, 2 if the command line is
        not accepted, 130 if it was interrupted, 143 if it was terminated.
    """
    program = arguments is None
    if program:
        _end_quietly()
    for stream in (sys.stdout, sys.stderr):
        # a terminal without Greek letters shall show a question mark, not a traceback
        stream.reconfigure(errors="replace") if hasattr(stream, "reconfigure") else None
    options = _parser().parse_args(arguments)
    try:
        status = options.command(options)
        sys.stdout.flush()
        return status
    except (ParameterError, notebooks.NotebookError) as error:
        print(f"ppm: {error}", file=sys.stderr)
        return USAGE_ERROR
    except (notebooks.NotebookFailed, MissingExtraError, FolderInUse) as error:
        print(f"ppm: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # the reader of our output left, as `ppm notebooks | head` does
        _give_up_output()
        return 1
    except OSError as error:
        # a full disk, a folder that cannot be written into
        print(f"ppm: {one_line(error)}", file=sys.stderr)
        _give_up_output()
        return 1
    except KeyboardInterrupt as error:
        if program:
            # nothing is left that a second Ctrl-C could end sooner
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        word, status = (
            ("terminated", 143) if isinstance(error, Terminated) else ("interrupted", 130)
        )
        # behind the terminal's own ^C, or a progress bar
        start = "\n" if sys.stderr.isatty() else ""
        print(f"{start}ppm: {word}; what was done so far is kept", file=sys.stderr)
        return status


def _end_quietly():
    """Take SIGTERM for an interrupt, and keep asyncio from telling of every task cut off."""

    def end(number, frame):
        raise Terminated

    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, end)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)


def _give_up_output():
    """Let nobody try again, when the program ends, to write what cannot be written."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser():
    parser = _Parser(prog="ppm", description="Run the book's notebooks, or build the book.")
    parser.add_argument("--version", action="version", version=f"ppm {__version__}")
    parser.add_argument("--root", help="the book's repository, if it cannot be found by itself")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = commands.add_parser("notebooks", help="list the notebooks and their parameters")
    command.set_defaults(command=_notebooks)

    command = commands.add_parser(
        "run",
        help="run a notebook with new parameters",
        description="Run a notebook with new parameters. Leaves a folder with the executed "
        "notebook, a page to open, its tables, and run.json: what was run. Only its owner can "
        "open it, since on a data file the tables are computed from confidential records.",
        epilog="example: ppm run poisson_contraction -p replicates=50 -p sizes='[100, 400]'",
        add_help=False,
    )
    command.add_argument(
        "-h", "--help", action="store_true", help="show this, and every parameter"
    )
    command.add_argument(
        "notebook", metavar="NOTEBOOK", nargs="?", help="its name, see `ppm notebooks`"
    )
    command.add_argument(
        "-p",
        "--parameter",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="set a parameter; may be given several times",
    )
    command.add_argument(
        "--profile",
        default=notebooks.DEFAULT_PROFILE,
        help="start from this profile's parameters (default: %(default)s)",
    )
    command.add_argument("--output", metavar="DIR", help="default: runs/NOTEBOOK-TIME")
    engine = command.add_mutually_exclusive_group()
    engine.add_argument(
        "--workers", metavar="N", help="run the notebook's studies on N processes"
    )
    engine.add_argument(
        "--scheduler", metavar="ADDRESS",
        help="run them on a Dask cluster, such as tcp://127.0.0.1:8786",
    )
    command.set_defaults(command=_run, parser=command)

    command = commands.add_parser("book", help="execute what changed and build the book")
    command.add_argument("--profile", default=notebooks.DEFAULT_PROFILE)
    command.add_argument(
        "--ce-data", metavar="PATH", default="", help="Consumer Expenditure file, else simulated"
    )
    command.set_defaults(command=_book)

    command = commands.add_parser(
        "classroom", help="make the exercises to hand out, and the same with solutions"
    )
    command.set_defaults(command=_classroom)
    return parser


def _notebooks(options):
    print(_table(notebooks.find_root(options.root)))
    return 0


def _run(options):
    if options.help:
        options.parser.print_help()
        print("\nparameters:\n")
        return _notebooks(options)
    if options.notebook is None:
        options.parser.error("name a notebook")
    root = notebooks.find_root(options.root)
    notebook = notebooks.pick_notebook(notebooks.find_notebooks(root), options.notebook)
    values = {}
    for setting in options.parameter:
        name, equals, text = setting.partition("=")
        name = name.strip()
        if not equals:
            raise ParameterError(f"-p {setting!r} is not of the form NAME=VALUE")
        if name in values:
            raise ParameterError(f"parameter {name} is given twice")
        if name in notebook.parameters:
            text = parse_value(name, text)
        values[name] = text
    workers = options.workers
    if workers is not None and workers.isdecimal():
        # what is no number is refused where numbers out of range are
        workers = int(workers)
    from ppm.publishing.run import run

    folder = run(
        root, notebook.name, values, profile=options.profile, output=options.output,
        workers=workers, scheduler=options.scheduler,
    )
    print(f"Done. Open {folder / (notebook.name + '.html')}")
    if (folder / NOTE_FILE).is_file():
        print(f"It was computed from records, so only you can read it: see {NOTE_FILE}")
    return 0


def _book(options):
    from ppm.publishing import book

    root = notebooks.find_root(options.root)
    # an impossible file is refused before anything else is looked at
    check_values({"ce_data": options.ce_data}, ["ce_data"])
    return book.build(root, profile=options.profile, ce_data=options.ce_data)


def _classroom(options):
    from ppm.publishing.editions import make_classroom

    with needed_for("ppm classroom"):
        archives = make_classroom(notebooks.find_root(options.root))
    for archive in archives:
        print(f"Made {archive}")
    return 0


def _table(root):
    """The notebooks and their parameters, as wide as the terminal."""
    described = notebooks.find_notebooks(root)
    width = max(60, min(shutil.get_terminal_size((100, 24)).columns, 120))
    lines = []
    for notebook in described.values():
        lines.append(f"{notebook.name}: {notebook.title}")
        if notebook.objective:
            lines += _wrapped(notebook.objective, width, "  ", "  ")
        for row in notebooks.parameter_rows(notebook):
            lines += _wrapped(
                f"{row['name']}: {row['type']} = {row['default']}", width, "    ", "      "
            )
            lines += _wrapped(f"{row['meaning']}; {row['accepted']}", width, "        ", "        ")
        lines.append("")
    return "\n".join(lines).rstrip()


def _wrapped(text, width, first, rest):
    return textwrap.wrap(text, width, initial_indent=first, subsequent_indent=rest) or [first]
