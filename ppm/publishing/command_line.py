"""The command line: ``ppm notebooks``, ``ppm run`` and ``ppm book``."""

import argparse
import os
import shutil
import sys
import textwrap

from ppm import __version__
from ppm._imports import MissingExtraError
from ppm.disclosure import NOTE_FILE
from ppm.publishing import notebooks
from ppm.publishing.parameters import ParameterError, check_values, parse_value

USAGE_ERROR = 2


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
        not accepted, 130 if it was interrupted.
    """
    for stream in (sys.stdout, sys.stderr):
        # a terminal without Greek letters shall show a question mark, not a traceback
        stream.reconfigure(errors="replace") if hasattr(stream, "reconfigure") else None
    options = _parser().parse_args(arguments)
    try:
        return options.command(options)
    except (ParameterError, notebooks.NotebookError) as error:
        print(f"ppm: {error}", file=sys.stderr)
        return USAGE_ERROR
    except (notebooks.NotebookFailed, MissingExtraError) as error:
        print(f"ppm: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # the reader of our output left, as `ppm notebooks | head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print("\nppm: interrupted; what was done so far is kept", file=sys.stderr)
        return 130


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
    command.set_defaults(command=_run, parser=command)

    command = commands.add_parser("book", help="execute what changed and build the book")
    command.add_argument("--profile", default=notebooks.DEFAULT_PROFILE)
    command.add_argument(
        "--ce-data", metavar="PATH", default="", help="Consumer Expenditure file, else simulated"
    )
    command.set_defaults(command=_book)
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
    folder = notebooks.run(
        root, notebook.name, values, profile=options.profile, output=options.output
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
