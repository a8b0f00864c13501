"""The command line: what it lists, what it refuses, and that the documented commands exist."""

import errno
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from test_parameters import REFUSED

import ppm
from ppm.publishing import command_line as cli
from ppm.publishing import notebooks
from ppm.publishing import run as running
from ppm.publishing.parameters import PARAMETERS

# the parameters of the tiny book's notebook
COUNTS = ("replicates", "sizes", "truncate_at", "seed")


def refused(capsys, root, *arguments):
    """Error line of a command that must end with status 2 and write nothing."""
    before = sorted(root.parent.rglob("*"))
    try:
        status = cli.main(["--root", str(root), *arguments])
    except SystemExit as error:
        status = error.code
    output = capsys.readouterr()
    assert status == 2
    assert output.out == ""
    assert output.err.count("\n") == 1
    assert sorted(root.parent.rglob("*")) == before
    return output.err


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    """The working folder is not the repository."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def no_kernel(monkeypatch):
    """Executing a notebook, or calling Sphinx, fails the test."""

    def fail(*arguments, **options):
        pytest.fail("work was begun")

    monkeypatch.setattr(running, "execute", fail)
    monkeypatch.setattr("ppm.publishing.book.execute", fail)
    monkeypatch.setattr("ppm.publishing.book._sphinx", fail)


@pytest.mark.parametrize(
    ("name", "value"),
    # on a command line everything is text, so text is no wrong type there
    [case for case in REFUSED if case[0] in COUNTS and not isinstance(case[1], str)],
    ids=str,
)
def test_run_refuses_an_impossible_value(capsys, no_kernel, tiny_book, name, value):
    told = refused(capsys, tiny_book, "run", "counts", "-p", f"{name}={value}")
    assert f"{name} = " in told
    assert PARAMETERS[name].accepted in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["run", "count"], "unknown notebook 'count'; did you mean counts? (accepted: counts"),
        (["run", "counts", "-p", "replicate=3"], "unknown parameter 'replicate'; did you mean"),
        (["run", "counts", "-p", "ce_data="], "(accepted: replicates, sizes, truncate_at, seed)"),
        (["run", "counts", "-p", "replicates=many"], "replicates = 'many' is not accepted"),
        (["run", "counts", "-p", "replicates"], "NAME=VALUE"),
        (["run", "counts", "-p", "seed=1", "-p", "seed=2"], "given twice"),
        (["run", "counts", "--profile", "fast"], "unknown profile 'fast' (accepted: paper, quick)"),
        (["run", "counts", "--output", "."], "exists and is not empty"),
        (["run", "counts", "--output", "x" * 300], f"{'x' * 100}… cannot be used: File name too"),
        (["run", "counts", "--output", "a file"], "folder a file cannot be used: Not a directory"),
        (["run", "counts", "--output", "a file/in"], "cannot be used: Not a directory"),
        (["run", "prose", "-p", "ce_data=no.zip"], "ce_data = 'no.zip' is not accepted"),
        (
            ["run", "counts", "--workers", "0"],
            "workers must be a whole number of at least 1; got 0",
        ),
        (
            ["run", "counts", "--workers", "many"],
            "must be a whole number of at least 1; got 'many'",
        ),
        (["run", "counts", "--workers", "2", "--scheduler", "tcp://x:1"], "not allowed with"),
        (["run", "counts", "--scheduler", "x://y"], "no Dask scheduler answers at 'x://y'"),
        (["run"], "name a notebook"),
        (["rum"], "invalid choice: 'rum'"),
        (["book", "--profile", "fast"], "unknown profile 'fast'"),
        (["book", "--ce-data", "no.zip"], "ce_data = 'no.zip' is not accepted"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
)
def test_a_wrong_command_line_is_refused(
    capsys, no_kernel, tiny_book, tmp_path, arguments, told
):
    (tmp_path / "a file").touch()
    assert told in refused(capsys, tiny_book, *arguments)


def test_a_run_needs_distributed_for_a_scheduler_and_says_so(
    capsys, no_kernel, tiny_book, monkeypatch
):
    monkeypatch.setitem(sys.modules, "distributed", None)
    status = cli.main(["--root", str(tiny_book), "run", "counts", "--scheduler", "tcp://x:1"])
    told = capsys.readouterr().err
    assert status == 1 and told.count("\n") == 1
    assert "a Dask scheduler needs distributed: pip install" in told


@pytest.mark.parametrize("exists", [True, False])
def test_a_folder_that_cannot_be_written_into_is_refused(
    capsys, no_kernel, tiny_book, tmp_path, monkeypatch, exists
):
    if exists:
        (tmp_path / "out").mkdir()
    # permissions mean nothing to the superuser, as whom tests may run
    name = "open" if exists else "mkdir"
    original = getattr(Path, name)

    def denied(path, *arguments, **options):
        if path in (Path("out"), Path("out", "run.json")):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return original(path, *arguments, **options)

    monkeypatch.setattr(Path, name, denied)
    told = refused(capsys, tiny_book, "run", "counts", "--output", "out")
    assert told == "ppm: the output folder out cannot be used: Permission denied\n"


@pytest.mark.parametrize("command", ["run", "book"])
def test_an_error_of_the_system_has_one_line_and_status_1(
    capsys, monkeypatch, tiny_book, command
):
    def full(*arguments, **options):
        raise OSError(errno.ENOSPC, "No space left on device", "/somewhere/table.csv")

    monkeypatch.setattr(running, "run", full)
    monkeypatch.setattr("ppm.publishing.book.build", full)
    arguments = [command, "counts"] if command == "run" else [command]
    assert cli.main(["--root", str(tiny_book), *arguments]) == 1
    assert capsys.readouterr() == ("", "ppm: No space left on device: /somewhere/table.csv\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("buffered", ["", "1"], ids=["buffered", "unbuffered"])
def test_what_cannot_be_printed_is_told_in_one_line(tiny_book, buffered):
    with open("/dev/full", "w") as full:
        finished = subprocess.run(
            [sys.executable, "-m", "ppm", "--root", tiny_book, "notebooks"],
            cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True,
            env=os.environ | {"PYTHONUNBUFFERED": buffered},
        )
    assert finished.returncode == 1
    assert finished.stderr == "ppm: No space left on device\n"


@pytest.mark.parametrize(
    ("error", "status", "word"),
    [(KeyboardInterrupt, 130, "interrupted"), (cli.Terminated, 143, "terminated")],
)
def test_an_interrupt_has_one_line(capsys, monkeypatch, tiny_book, error, status, word):
    def interrupt(*arguments, **options):
        raise error

    monkeypatch.setattr(running, "run", interrupt)
    assert cli.main(["--root", str(tiny_book), "run", "counts"]) == status
    assert capsys.readouterr().err == f"ppm: {word}; what was done so far is kept\n"


def test_an_interrupt_before_the_library_is_read_has_one_line(capsys, monkeypatch):
    class Unread:
        def __getattr__(self, name):
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "ppm.publishing.command_line", Unread())
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("ppm", run_name="__main__")
    assert ended.value.code == 130
    assert capsys.readouterr() == ("", "ppm: interrupted\n")


def test_a_right_command_line_is_not_refused(capsys, no_kernel, tiny_book, tmp_path):
    arguments = ["--root", str(tiny_book), "run", "counts", "-p", "replicates=50"]
    with pytest.raises(pytest.fail.Exception, match="work was begun"):
        cli.main([*arguments, "-p", "sizes=[100, 400]", "--output", str(tmp_path / "out")])


def test_the_version_is_that_of_the_library(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"ppm {ppm.__version__}\n"


def test_a_folder_without_the_book_is_named(capsys, tmp_path):
    folder = tmp_path / "empty"
    folder.mkdir()
    assert "cannot find the book's repository" in refused(capsys, folder, "notebooks")


def test_the_repository_is_found_from_anywhere(capsys):
    assert cli.main(["notebooks"]) == 0
    assert "poisson_contraction" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["notebooks"], ["run", "--help"]], ids=" ".join)
def test_every_parameter_is_listed_with_its_default_and_range(
    capsys, monkeypatch, tiny_book, arguments
):
    monkeypatch.setenv("COLUMNS", "70")
    assert cli.main(["--root", str(tiny_book), *arguments]) == 0
    listed = " ".join(capsys.readouterr().out.split())
    for notebook in notebooks.find_notebooks(tiny_book).values():
        assert f"{notebook.name}: {notebook.title}" in listed
        assert notebook.objective in listed
        for name, default in notebook.parameters.items():
            parameter = PARAMETERS[name]
            assert f"{name}: {parameter.type} = {default!r} {parameter.comment}" in listed


def test_a_failed_notebook_gives_status_1_and_one_line(capsys, monkeypatch, tiny_book, tmp_path):
    def fail(*arguments, **options):
        raise notebooks.NotebookFailed("counts, cell [3] (x): ValueError: no")

    monkeypatch.setattr(running, "execute", fail)
    arguments = ["--root", str(tiny_book), "run", "counts", "--output", str(tmp_path / "out")]
    assert cli.main(arguments) == 1
    assert capsys.readouterr().err == "ppm: counts, cell [3] (x): ValueError: no\n"


@pytest.mark.parametrize("confidential", [False, True])
def test_a_run_on_a_data_file_says_that_only_its_owner_can_read_it(
    capsys, monkeypatch, tiny_book, tmp_path, confidential
):
    def run(root, name, values, **options):
        if confidential:
            (tmp_path / "CONFIDENTIAL.txt").touch()
        return tmp_path

    monkeypatch.setattr(running, "run", run)
    assert cli.main(["--root", str(tiny_book), "run", "counts"]) == 0
    told = capsys.readouterr().out
    assert told.startswith(f"Done. Open {tmp_path / 'counts.html'}\n")
    assert ("only you can read it: see CONFIDENTIAL.txt" in told) == confidential


# ------------------------------------------------------------------------------------- make


def targets():
    """Target of the Makefile -> its line of explanation."""
    text = (ROOT / "Makefile").read_text("utf-8")
    return dict(re.findall(r"^([a-z]+):.*?## (.+)$", text, re.MULTILINE))


def test_make_help_lists_every_target():
    listed = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    for target, explanation in targets().items():
        assert re.search(rf"^make {target} +{re.escape(explanation)}$", listed.stdout, re.MULTILINE)
    phony = re.search(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE).group(1)
    assert sorted(name for name in phony.split() if name[0] != "_") == sorted(targets())
    assert targets().keys() >= {"help", "book", "test", "lint", "clean", "lock", "env"}


def documented():
    """Commands `make …` and `ppm …` that the README shows."""
    text = (ROOT / "README.md").read_text("utf-8")
    blocks = re.findall(r"```.*?\n(.*?)```", text, re.DOTALL) + re.findall(r"`([^`\n]+)`", text)
    return [
        line.strip().removeprefix("$ ")
        for block in blocks
        for line in block.splitlines()
        if re.match(r"\s*(\$ )?(make|ppm) ", line)
    ]


def test_the_commands_of_the_readme_exist():
    commands = documented()
    assert {"make book", "make test"} <= {" ".join(c.split()[:2]) for c in commands}
    for command in commands:
        program, first = command.split()[:2]
        known = targets() if program == "make" else ("notebooks", "run", "book")
        assert first in known or "=" in first, command
