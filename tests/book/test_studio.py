"""The command ``ppm``: what it refuses, what a run leaves, what a build makes again."""

import contextlib
import io
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import nbformat
import pandas as pd
import psutil
import pytest
import yaml
from bs4 import BeautifulSoup
from conftest import ROOT

import ppm
from ppm_book.chapters import page, running
from ppm_book.tools import (
    classroom,
    compare,
    exercises,
    made_from,
    pages,
    parameters,
    studio,
)

FIGURE = "import matplotlib.pyplot as plt\n_ = plt.plot([0, 1], [0, seed])"
WORDS = {
    "figure": {"caption": "A line.", "name": "fig-line"},
    "image": {"alt": "It rises."},
}


def notebook(root, name, *cells, seconds=0, text="Text.", **defaults):
    """Write a notebook with a title, a parameters cell and code cells."""
    lines = [
        f"{key}: {type(value).__name__} = {value!r}  # {key} in words"
        for key, value in defaults.items()
    ]
    title = nbformat.v4.new_markdown_cell(f"# {name.title()}\n\n{text}")
    first, *rest = map(nbformat.v4.new_code_cell, ("\n".join(lines), *cells))
    first.metadata["tags"] = ["parameters"]
    made = nbformat.v4.new_notebook(cells=[title, first, *rest])
    made.metadata["kernelspec"] = {
        "display_name": "3",
        "name": "python3",
        "language": "python",
    }
    made.metadata["seconds"] = seconds
    if FIGURE in cells:
        made.cells[2 + cells.index(FIGURE)].metadata["mystnb"] = json.loads(
            json.dumps(WORDS)
        )
    nbformat.write(made, root / "notebooks" / f"{name}.ipynb")


TABLE = """
import numpy as np, pandas as pd
from ppm_book.chapters import page
drawn = np.random.default_rng(seed).normal(size=replicates)
page.save(pd.DataFrame({"mean": [drawn.mean()], "records": [replicates]}, index=["drawn"]), "drawn")
"""
# a number for the text, and a progress bar
DATA = """
import os, sys
from ppm_book.chapters import page, running
print(open(ce_data).read() if ce_data else "simulated", *running.executor().map(abs, [-7]))
print("from", ce_data and os.path.realpath(ce_data))
page.glue("number", f"{replicates}")
_ = sys.stderr.write("\\r 50 %")
"""


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A repository with a book of two chapters."""
    root = tmp_path / "a book"
    shutil.copytree(ROOT / "book" / "_static", root / "book" / "_static")
    files = {
        file: (ROOT / file).read_text("utf-8")
        for file in ("_config.yml", "notebooks/parameters.yml", "book/parameters.md")
    }
    files |= {
        "book/references.bib": "",
        "ppm/weights.py": "",
        "requirements.lock": "numpy==2.0\n",
    }
    files["book/intro.md"] = "# Introduction\n\nSee {numref}`fig-line`.\n"
    chapters = [
        {"file": f} for f in ("notebooks/counts", "notebooks/prose", "book/parameters")
    ]
    files["_toc.yml"] = yaml.safe_dump(
        {"format": "jb-book", "root": "book/intro", "parts": [{"chapters": chapters}]}
    )
    files["notebooks/profiles/paper.yml"] = "counts: {}\n"
    files["notebooks/profiles/quick.yml"] = "counts: {replicates: 2}\n"
    files["notebooks/profiles/old.yml"] = "count: {replicates: 2}\n"
    for file, text in files.items():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(text, "utf-8")
    monkeypatch.setattr(running, "ROOT", root)
    monkeypatch.setattr(studio, "CORES", 1)  # in this process, where the patches hold
    monkeypatch.setattr(pages.ledger, "page", lambda root, results: "# Ledger\n")
    monkeypatch.setattr(pages.paper_items, "page", lambda root: "# Items\n")
    monkeypatch.setattr(compare.ledger, "changed", lambda *arguments: [])
    notebook(root, "counts", TABLE, FIGURE, replicates=400, seed=1)
    notebook(
        root,
        "prose",
        DATA,
        TABLE,
        ce_data="",
        replicates=400,
        seed=2,
        text="Of {glue:text}`number` records.",
    )
    # a kernel of the same name that another installation left
    kernel = {"argv": ["false"], "display_name": "Python 3", "language": "python"}
    (spec := tmp_path / "theirs" / "kernels" / "python3" / "kernel.json").parent.mkdir(
        parents=True
    )
    spec.write_text(json.dumps(kernel))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "theirs"))
    monkeypatch.chdir(tmp_path)
    return root


# ---- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("run count", "unknown notebook 'count'; did you mean counts?"),
        (
            "run counts -p replicate=3",
            "unknown parameter 'replicate'; did you mean replicates?",
        ),
        (
            "run counts -p replicates=three",
            "'three' is not accepted; replicates: replicates in words",
        ),
        ("run counts -p seed=1 -p seed=2", "a parameter is given twice"),
        ("run counts -p seed", "-p 'seed' is not of the form NAME=VALUE"),
        ("run counts --profile quik", "unknown profile 'quik'; did you mean quick?"),
        (
            "run counts --profile old",
            "unknown notebook in the profile old: 'count'; did you mean cou",
        ),
        (
            "book --ce-data none.csv",
            "none.csv' is not accepted; ce_data: ce_data in words",
        ),
        ("run counts --workers 0", "--workers must be 1 or more; got 0"),
        (
            "run counts --output taken",
            "taken cannot be made: it exists and holds no complete run; "
            "choose another --output",
        ),
        (
            "run counts --output whole",
            "whole cannot be made: it exists; choose another --output",
        ),
        (
            "run counts --output notes.txt/r",
            "notes.txt/r cannot be made: Not a directory",
        ),
        (f"run counts --output {300 * 'r'}", "rrr cannot be made: File name too long"),
        ("run", "run needs the name of a notebook"),
        (
            "run counts -f none.yml",
            "-f none.yml cannot be read: No such file or directory",
        ),
        (
            "run counts -f notes.txt",
            "-f notes.txt must hold parameters, each as NAME: VALUE on a line",
        ),
        (
            "run counts -f two.yml",
            "'two' is not accepted; replicates: replicates in words",
        ),
        ("run counts -f twice.yml", "-f twice.yml gives seed twice"),
        (
            "run counts -f date.yml",
            "-f date.yml cannot be read: it is not YAML in UTF-8",
        ),
        (
            "run counts -f latin.yml",
            "-f latin.yml cannot be read: it is not YAML in UTF-8",
        ),
        (
            "run --like taken",
            "--like taken is no complete run: it has no run.json to read",
        ),
        (
            "run --like whole",
            "the run in whole read survey.csv, and did not note where it lies: give "
            "it again, by -p ce_data=PATH",
        ),
        (
            "run --like whole -p ce_data=a/folder/deep/below/another/one/that/is/absent/none.zip",
            "/a/folder/deep/below/another/one/that/is/absent/none.zip' is not accepted",
        ),
        ("run counts -p ce_data=2018", "unknown parameter 'ce_data'"),
        (
            "run prose -p ce_data=2018",
            "/2018' is not accepted; ce_data: ce_data in words",
        ),
        ("notebooks counts prse", "unknown notebook 'prse'; did you mean prose?"),
    ],
)
def test_a_mistake_is_told_in_one_line_before_a_kernel_starts(
    root, words, told, capsys
):
    # by a run that has only begun
    Path("taken").mkdir()
    Path("whole").mkdir()
    Path("whole/run.json").write_text(
        json.dumps(
            {
                "notebook": "prose",
                "profile": "quick",
                "parameters": {"ce_data": "survey.csv"},
            }
        )
    )
    Path("notes.txt").write_text("mine")
    texts = {
        "two": b"replicates: two",
        "twice": b"seed: 1\n'seed': 2\n",
        "date": b"seed: 2026-02-30",
        "latin": b"seed: 1  # f\xfcr mich",
    }
    for name, text in texts.items():
        Path(f"{name}.yml").write_bytes(text)
    assert studio.main(words.split()) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("ppm") and told in line
    assert not Path("runs").exists() and not (root / "_build").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            "theory scale=0.5",
            "ppm run: error: unknown argument scale=0.5; did you mean -p scale=0.5?",
        ),
        (
            "theory --scale=0.5",
            "unknown argument --scale=0.5; did you mean -p scale=0.5?",
        ),
        ("theory --sclae", "unknown argument --sclae"),
    ],
)
def test_an_argument_that_run_does_not_know_is_told_with_the_usage_of_run(
    words, told, capsys
):
    with pytest.raises(SystemExit, match="2"):
        studio.main(["run", *words.split()])
    usage, *_, last = capsys.readouterr().err.splitlines()
    assert usage.startswith("usage: ppm run") and last.endswith(told)


def test_the_command_says_its_version_lists_one_notebook_and_goes_with_its_reader(
    capsys,
):
    with pytest.raises(SystemExit, match="0"):
        studio.main(["--version"])
    assert capsys.readouterr().out == f"ppm {ppm.__version__}\n"
    assert studio.main(["notebooks", "theory", "privacy_audit"]) == 0
    listed = re.findall(r"^(\w+): ", capsys.readouterr().out, re.M)
    assert listed == ["theory", "privacy_audit"]
    # without a buffer, so that each line meets the closed pipe
    command = f"'{sys.executable}' -u -m ppm_book.tools.studio notebooks | true"
    left = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True
    )
    assert (left.returncode, left.stderr) == (0, "")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", ""])
def test_a_terminal_may_lack_letters_or_be_closed(encoding, monkeypatch):
    told = io.TextIOWrapper(raw := io.BytesIO(), encoding) if encoding else None
    monkeypatch.setattr(sys, "stdout", told)
    assert studio.main(["notebooks", "what_it_means"]) == 0
    assert not encoding or rb"What \u03b5 promises" in raw.getvalue()


def test_outside_a_checkout_the_command_says_where_to_call_it(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(running, "ROOT", tmp_path)
    for command in ("notebooks", "run theory", "book", "classroom"):
        assert studio.main(command.split()) == 2
        assert capsys.readouterr().err == (
            "ppm: call it in the folder of the book's source: there is no _toc.yml here\n"
        )


def test_of_a_parameter_the_last_word_is_that_of_p_then_the_file_then_the_earlier_run(
    root, monkeypatch
):
    Path("earlier").mkdir()
    record = {
        "notebook": "counts",
        "profile": "quick",
        "parameters": {"replicates": 3, "seed": 3},
    }
    Path("earlier/run.json").write_text(json.dumps(record))
    Path("mine.yml").write_text("seed: 4\nreplicates: 4\n")
    runs = []
    monkeypatch.setattr(
        studio,
        "run",
        lambda name, given, profile, **_: (
            runs.append((name, parameters.parameters(name, profile, given), profile))
            or Path(name)
        ),
    )
    for words in (
        "--like earlier",
        "--like earlier/run.json -f mine.yml",
        "--like earlier -f mine.yml -p seed=5 --profile paper",
        "counts -f mine.yml",
    ):
        assert studio.main(["run", *words.split()]) == 0
    assert runs == [
        ("counts", {"replicates": many, "seed": seed}, profile)
        for many, seed, profile in [
            (3, 3, "quick"),
            (4, 4, "quick"),
            (4, 5, "paper"),
            (4, 4, "paper"),
        ]
    ]


def test_a_file_of_parameters_has_numbers_as_the_command_line_has_them(tmp_path):
    (tmp_path / "p.yml").write_text("seed: 1e3\nscale: 1e-1\nwidths: [.5e0, 1E+1]\n")
    found = parameters.from_file(tmp_path / "p.yml")
    assert found == {"seed": 1000, "scale": 0.1, "widths": [0.5, 10]}
    assert found == dict(
        map(parameters.parsed, ["seed=1e3", "scale=1e-1", "widths=[.5e0, 1E+1]"])
    )


def test_a_name_of_data_that_cannot_be_noted_is_refused(tmp_path):
    # as an archive of another system leaves it
    (file := tmp_path / os.fsdecode(b"caf\xe9.zip")).touch()
    with pytest.raises(
        parameters.Refused, match=r"^ce_data = '.*' is not accepted; rename it"
    ):
        parameters.checked("ce_application", "ce_data", str(file))


def test_a_folder_may_be_called_by_a_year(monkeypatch, tmp_path):
    (tmp_path / "2017").mkdir()
    monkeypatch.chdir(tmp_path)
    for text in "ce_data=2017", "ce_data='2017'":
        found = parameters.checked("ce_application", *parameters.parsed(text))
        assert found == str(tmp_path / "2017")


@pytest.mark.parametrize(
    ("notebook", "name", "good", "bad"),
    [
        (
            "poisson_contraction",
            "sizes",
            [[10], [10, 11]],
            [[], [11, 10], [10, 10], [9, 11], [10, 1_000_001], 10, [10.5], [10, "11"]],
        ),
        (
            "ce_application",
            "configurations",
            [[[0.5, 0]], [[1, -1]]],
            [[], [0.5, 0], [[0, 0]], [[0.5, 2]], [[0.5]], [[0.5, math.nan]]],
        ),
        ("theory", "scale", [0.5, 1], [0, math.nan, math.inf]),
        ("strict_release", "widths", [[0.5, 1]], [[math.nan], [1, math.nan]]),
        ("ce_application", "records", [0, 50, 1_000_000], [1, 49, -1, 1_000_001]),
        ("ce_application", "ce_data", ["", "."], ["no such", 3]),
        ("theory", "seed", [0, 2**32 - 1], [-1, 2**32, 1.5, True]),
        ("theory", "releases", [1], [0]),
        # which takes less than others
        ("using_releases", "releases", [2], [1]),
    ],
)
def test_ranges(notebook, name, good, bad):
    for value in good:
        found = parameters.checked(notebook, name, value)
        assert found == (os.getcwd() if value == "." else value)
    for value in bad:
        with pytest.raises(
            parameters.Refused, match=rf"^{name} = .* is not accepted; {name}: "
        ):
            parameters.checked(notebook, name, value)


def test_a_mistake_is_told_by_the_notebook_s_own_range_and_1e3_is_a_whole_number():
    with pytest.raises(parameters.Refused, match="; a whole number from 2 to 1000$"):
        parameters.checked("using_releases", "releases", 1)
    assert repr(parameters.checked("theory", *parameters.parsed("seed=1e3"))) == "1000"


def test_a_comment_says_what_a_parameter_is_and_accepts_in_the_same_words_in_all_notebooks():
    words = {}
    for name in parameters.notebooks():
        for key, about in parameters.described(parameters.source(name)).items():
            meaning, _, accepted = about["help"].rpartition("; ")
            own = f"{name}.{key}" in parameters.schemas()
            assert (
                meaning
                and words.setdefault((key, name if own else ""), accepted) == accepted
            )
            assert words.setdefault(key, meaning) == meaning


@pytest.mark.parametrize("name", parameters.notebooks())
def test_a_parameters_cell_says_how_papermill_takes_a_list_and_the_next_checks_types(
    name,
):
    cells = nbformat.read(parameters.source(name), 4).cells
    (place,) = [
        place
        for place, cell in enumerate(cells)
        if "parameters" in cell.metadata.get("tags", ())
    ]
    kinds = parameters.described(parameters.source(name)).values()
    lists = any(it["inferred_type_name"].startswith("list") for it in kinds)
    told = re.findall(r"^# papermill .* -y '(.+)',", cells[place].source, re.M)
    assert len(told) == lists
    for example in told:
        ((key, value),) = yaml.safe_load(example).items()
        assert parameters.checked(name, key, value) == value
    assert cells[place + 1].source == "page.check_parameters(globals())"


@pytest.mark.parametrize("name", parameters.notebooks())
def test_defaults_and_profiles_are_accepted_themselves(name):
    own = parameters.defaults(name)
    for profile in ("paper", "quick"):
        assert parameters.parameters(name, profile).keys() == own.keys()
        # what is given comes before what the profile says
        assert parameters.parameters(name, profile, own) == own


def test_a_parameter_that_nobody_described_is_told_with_where_to_do_it(root):
    notebook(root, "counts", "print(waits)", waits=3)
    with pytest.raises(
        parameters.Refused, match="^parameter waits of counts has no ran"
    ):
        parameters.checked("counts", "waits", 3)
    notebook(root, "sums", "1 + 1")
    with pytest.raises(parameters.Refused, match="^sums takes no parameters: .* tag$"):
        parameters.checked("sums", "waits", 3)


# ---- a run ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ("1 / 0", r"cell \[2\] \(1 / 0\): ZeroDivisionError: division by zero"),
        ("import warnings; warnings.warn('old')", r"cell \[2\]: UserWarning: old"),
        (
            "import os; os._exit(1)",
            "the kernel died.*; r has what there is of the run$",
        ),
        (f"{FIGURE}\nplt.show()", "counts shows a figure without caption"),
    ],
)
def test_a_cell_at_fault_ends_the_run_which_is_not_complete(root, cell, told, capsys):
    notebook(root, "counts", cell, seed=1)
    assert studio.main(["run", "counts", "--output", "r"]) == 1
    assert re.search(told, capsys.readouterr().err)
    assert not Path("r/run.json").exists()


def test_a_disk_that_is_full_ends_the_run_whose_folder_is_named(
    root, monkeypatch, capsys
):
    def execute(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(studio, "execute", execute)
    monkeypatch.setenv("HOME", str(root.parent))
    assert studio.main(["run", "counts", "--output=~/r"]) == 1
    told = f"No space left on device; {root.parent}/r has what there is of the run\n"
    assert capsys.readouterr().err.endswith(told) and not [*Path("r").iterdir()]


@pytest.mark.usefixtures("heard")
def test_an_interrupt_ends_with_130_and_leaves_no_kernel(root):
    sleeps = (
        "import os, time\nopen(ce_data, 'w').write(str(os.getpid()))\ntime.sleep(600)"
    )
    notebook(root, "counts", sleeps, ce_data="", seed=1)
    (told := root / "pid").write_text("")
    program = f"""import pathlib, sys; from ppm_book.chapters import running
from ppm_book.tools import studio
running.ROOT = pathlib.Path({str(root)!r})
sys.exit(studio.main(['run', 'counts', '-p', 'ce_data={told}']))"""
    process = subprocess.Popen(
        [sys.executable, "-c", program], stderr=subprocess.PIPE, text=True
    )
    while not told.read_text():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.1)
    kernel = psutil.Process(int(told.read_text()))
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130 and said.splitlines()[-1].startswith(
        "ppm: interrupted"
    ), said
    kernel.wait(timeout=10)
    assert not [*Path("runs").iterdir()]


# the second one comes when the terminal is closed
@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_an_interrupt_that_python_drops_counts_at_the_end_of_the_step(
    root, monkeypatch, capsys, number
):
    def execute(*_, **__):
        with contextlib.suppress(KeyboardInterrupt):
            os.kill(os.getpid(), number)
            time.sleep(10)

    monkeypatch.setattr(studio, "execute", execute)
    monkeypatch.setattr(studio, "make_page", lambda *_: None)
    assert (
        studio.main(["run", "counts", "--output", "r"]) == 130
        and not Path("r").exists()
    )
    assert capsys.readouterr().err.endswith(
        "ppm: interrupted; fits that were finished are kept\n"
    )


def test_a_run_is_beside_the_papers_profile_what_changed_most_first(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(
        compare.ledger,
        "changed",
        lambda root, name, *folders: [
            ("a finding", *(folder.parent.name for folder in folders))
        ],
    )
    record = {
        "notebook": "counts",
        "profile": "",
        "parameters": {"n": 1},
        "ce_data_hash": "a",
    }
    ours, book = [1, 0, 4, *range(101, 114)], [10, 5, 2, *13 * [100]]
    for place, numbers in {
        "_build/results/paper": book,
        "_build/results/fast": ours,
        "mine": ours,
    }.items():
        (folder := tmp_path / place / "counts").mkdir(parents=True)
        pd.DataFrame({"x": numbers}, [*"abcdefghijklmnop"]).to_csv(folder / "t.csv")
        # one run has a single number of records, which is in the index all the same
        sizes = pd.MultiIndex.from_product(
            [["a"], [30, 60] if numbers is book else [60]]
        )
        pd.DataFrame({"x": len(sizes), "same": 0}, sizes).to_csv(folder / "u.csv")
        (folder / "run.json").write_text(
            json.dumps(record | {"parameters": {"a": "b|c"}})
        )
    text, other = (
        compare.beside_the_book(tmp_path, folder, record | {"ce_data_hash": data})
        for data in "ab"
    )
    assert ["data are not the same" in each for each in (text, other)] == [False, True]
    assert re.findall(r"^\| (`.*) \|$", text, re.M) == [
        "`n` | `1` | `None`",
        r"`a` | `None` | `'b\|c'`",
    ]
    assert re.findall(r"^\*\*(\w\*\*: .*)$", text, re.M) == [
        "t**: 16 of the 16 numbers in both tables differ. These 15 changed by the largest share:",
        "u**: 1 of the 2 numbers in both tables differ.",
    ]
    assert (
        "| a finding | mine | paper |" in text
        and "\n| a, 60 | x | 1 | 2 | -50.0 % |" in text
    )
    rows = re.findall(r"^\| (\w) \| x \| (.*) \|$", text, re.M)
    assert [*rows[:3], *rows[14:]] == [
        ("b", "0 | 5 | -100.0 %"),
        ("a", "1 | 10 | -90.0 %"),
        ("c", "4 | 2 | +100.0 %"),
        ("e", "102 | 100 | +2.0 %"),
    ]


# ---- the book ---------------------------------------------------------------------------------


@pytest.fixture
def executed(monkeypatch):
    """Names of notebooks that a build executes; nothing is."""
    names = []

    def execute(name, values, folder, profile, workers=None):
        names.append(name)
        shutil.copy(parameters.source(name), folder)
        return studio.record_of(name, values, profile, studio.datetime.now()) | {
            "seconds": 1
        }

    monkeypatch.setattr(studio, "execute", execute)
    monkeypatch.setattr(
        studio, "sphinx", lambda staged, output: output.mkdir(parents=True)
    )
    return names


def test_only_what_changed_is_executed_again(root, executed, capsys):
    def built(file=None, text=""):
        if file:
            (root / file).parent.mkdir(exist_ok=True)
            (root / file).write_text(text)
        executed.clear()
        studio.build(ce_data=str(data))
        return sorted(executed)

    data, results = root.parent / "survey.csv", root / "_build" / "results" / "paper"
    assert built("../survey.csv", "1") == ["counts", "prose"]
    assert built() == [] and "up to date" in capsys.readouterr().out
    notebook(root, "counts", "1 + 1", replicates=400, seed=1)
    assert built() == ["counts"]
    assert built("notebooks/profiles/paper.yml", "counts: {replicates: 7}\n") == [
        "counts"
    ]
    assert built("../survey.csv", "2") == ["prose"]
    # the same file in another folder is the same data
    data = data.rename(root / "notebooks" / "survey.csv")
    assert built() == []
    for file in ("ppm/weights.py", "requirements.lock", "book/ppm_book/kept.csv"):
        capsys.readouterr()
        assert built(file, "# another one") == ["counts", "prose"]
    # this package makes the pages, too
    assert "is ready" in capsys.readouterr().out
    (root / "ppm" / "weights.py").rename(root / "ppm" / "mapping.py")
    assert built() == ["counts", "prose"]
    # a run that was cut off has no record, and what no notebook makes any more goes
    (results / "counts" / "run.json").unlink()
    (results / "gone").mkdir()
    (old := results / "counts" / "old.csv").write_text("1")
    assert (
        built() == ["counts"] and not (results / "gone").exists() and not old.exists()
    )
    capsys.readouterr()
    assert (
        built("book/intro.md", "# Another\n") == []
        and "is ready" in capsys.readouterr().out
    )


def test_a_book_is_up_to_date_only_while_all_that_it_was_made_of_is_as_it_was(
    root, executed, capsys
):
    def asked(profile="", data="", solutions=""):
        """What `make book` asks first."""
        return made_from.main(profile, data, solutions), capsys.readouterr().out

    notebook(root, "prose", TABLE, seed=2)  # no number: nothing is executed
    assert asked() == (1, "")
    studio.build()
    capsys.readouterr()
    stands = 0, f"The book is up to date: {root}/_build/html/index.html\n"
    assert asked() == asked("paper") == stands
    assert asked("quick") == asked(solutions="no") == (1, "")
    (data := root.parent / "survey.csv").write_text("1")
    assert asked(data=str(data)) == asked(data="absent.csv") == (1, "")
    for file in (
        "_config.yml",
        "_toc.yml",
        "book/intro.md",
        "book/ppm_book/chapters/claims/counts.py",
        "notebooks/prose.ipynb",
        "notebooks/profiles/paper.yml",
        "ppm/weights.py",
        "_build/results/paper/counts/values.json",
    ):
        (path := root / file).parent.mkdir(parents=True, exist_ok=True)
        before = path.read_text("utf-8") if path.is_file() else None
        path.write_text(f"{before or ''}\n", "utf-8")
        assert asked() == (1, ""), file
        path.unlink() if before is None else path.write_text(before, "utf-8")
        assert asked() == stands
    # what changes while a book is made is not in it
    execute = studio.execute

    def slow(*given):
        (root / "book" / "intro.md").write_text("# Later\n", "utf-8")
        return execute(*given)

    (root / "ppm" / "weights.py").write_text("# another", "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(studio, "execute", slow)
        studio.build()
    capsys.readouterr()
    assert asked() == (1, "")


@pytest.mark.parametrize(
    ("words", "shown"), [("book", True), ("book --no-solutions", False)]
)
def test_a_book_without_solutions_has_none(root, executed, monkeypatch, words, shown):
    cells = [
        nbformat.v4.new_markdown_cell(text, id=label)
        for label, text in {
            "title": "# 1. Counts",
            "setup": "1",
            "ex-one": "## One\n\nTask.",
            "sol-one": "Because.",
        }.items()
    ]
    cells[2].metadata.update(tags=["exercise"], minutes=5)
    (root / "notebooks" / "exercises").mkdir()
    nbformat.write(
        nbformat.v4.new_notebook(cells=cells), root / "notebooks/exercises/counts.ipynb"
    )
    monkeypatch.setattr(exercises, "_given", lambda root, name: None)
    # these have no checks to pack
    monkeypatch.setattr(classroom, "stage_downloads", lambda root, folder: None)
    notebook(root, "prose", TABLE, seed=2)  # no number: nothing is executed
    assert studio.main(words.split()) == 0
    stage = root / "_build" / "stage"
    text = "".join(file.read_text("utf-8") for file in stage.rglob("*.[im][pd]*"))
    found = [
        words in text
        for words in ("{exercise} One", "Because.", "label: sol-one", ": dropdown")
    ]
    assert found == [True, shown, shown, shown]


def test_a_profiles_data_are_private_and_what_it_names_runs_beside_the_chapters(
    root, executed, monkeypatch
):
    def side_by_side(number, **_):
        """Run in this process what would run in ``number`` others, which share the cores."""

        def run(tasks):
            for refresh, given, _ in tasks:
                assert (number, given[-1]) == (2, 2)
                yield refresh(*given)

        return run

    monkeypatch.setattr(studio, "CORES", 4)
    monkeypatch.setattr(studio.joblib, "Parallel", side_by_side)
    notebook(root, "study", TABLE, seconds=60, replicates=3, seed=5)
    notebook(root, "scratch", TABLE, seed=5)
    (root / "survey.csv").write_text("1")
    profile = {"prose": {"ce_data": f"{root}/survey.csv"}, "study": {"seed": 7}}
    (root / "notebooks" / "profiles" / "paper.yml").write_text(yaml.safe_dump(profile))
    with contextlib.ExitStack() as stack:
        stack.callback(os.umask, os.umask(0o022))
        studio.build()
    html, results = root / "_build" / "html", root / "_build" / "results"
    assert (html / "CONFIDENTIAL.txt").is_file()
    assert not any(file.stat().st_mode & 0o077 for file in (html, results))
    record = json.loads((results / "paper" / "study" / "run.json").read_text("utf-8"))
    assert record["parameters"] == {"replicates": 3, "seed": 7}
    assert executed == ["study", "counts", "prose"]


def test_a_book_stays_when_the_next_fails_and_a_run_beside_it_is_private(
    root, capsys, monkeypatch
):
    # an engine is asked for by the command, and not by the shell
    monkeypatch.setenv("PPM_SCHEDULER", "tcp://127.0.0.1:9")
    html, run, private = root / "_build" / "html", Path("r"), root.parent / "private"
    private.mkdir()
    (data := private / "survey.csv").write_text("income 98765")
    assert studio.main(["book", "--ce-data", str(data)]) == 0
    told = r"counts: executed in \d+ s\nprose: executed in \d+ s\n"
    assert re.fullmatch(told, capsys.readouterr().err)
    shown = (html / "notebooks" / "counts.html").read_text("utf-8")
    assert (
        "All parameters are at their defaults" in shown and 'alt="It rises."' in shown
    )
    assert "replicates in words" in (html / "book" / "parameters.html").read_text(
        "utf-8"
    )
    assert "Of 400 records." in (html / "_sources/notebooks/prose.ipynb").read_text(
        "utf-8"
    )
    for file in (root / "_build").rglob("*"):
        if file.is_file() and b"98765" in file.read_bytes():
            assert not any(
                part.stat().st_mode & 0o007 for part in [file, file.parents[1]]
            )
    # a reference that leads nowhere
    (intro := root / "book" / "intro.md").write_text(
        "# Introduction\n\n{numref}`no-figure`\n"
    )
    assert studio.main(["book", "--ce-data", str(data)]) == 1
    assert "WARNING" in capsys.readouterr().err
    assert "98765" in (html / "notebooks" / "prose.html").read_text("utf-8")

    intro.write_text("# Introduction\n")
    given = f"--output r -p replicates=50 -p ce_data={data}"
    assert studio.main(["run", "prose", *given.split()]) == 0
    assert "Done. Open r/prose.html" in capsys.readouterr().out
    page = (run / "prose.html").read_text("utf-8")
    assert (
        "income 98765 7\nfrom survey.csv\n" in page and "Data: the file <code" in page
    )
    beside = page[page.rindex('id="your-run-beside-the-book-s"') :]
    assert "<code" in beside and "400" in beside
    assert "<strong>drawn</strong>: 2 of the 2 numbers in both tables differ" in beside
    # the data have a line of their own
    text = " ".join(BeautifulSoup(page, "html.parser").get_text().split())
    assert "Different from the defaults: replicates = 50." in text
    # it can be read without a network, by its owner alone, and says nowhere where it was made
    fetched = re.findall(r'<(?:script|link|img)\b[^>]*(?:src|href)="([^"]+)"', page)
    assert fetched and not [
        link for link in fetched if link.startswith(("http", "//", "../"))
    ]
    fetched += re.findall(r'href="(prose_files/_downloads/\w+/drawn.csv)"', page)
    assert all((run / re.sub("[?#].*", "", link)).exists() for link in fetched)
    assert fetched[-1].endswith("csv")
    links = re.findall(r'<a\b[^>]*\bhref="([^"]*)"', page)
    assert links and all(re.match("#|https?:|prose_files/", link) for link in links)
    record = json.loads((run / "run.json").read_text("utf-8"))
    assert record["parameters"] == {
        "ce_data": "survey.csv",
        "replicates": 50,
        "seed": 2,
    }
    assert (run / "CONFIDENTIAL.txt").is_file()
    for file in [run, *run.rglob("*")]:
        assert not file.stat().st_mode & 0o077
        if file.is_file() and not re.search("_static|_images", str(file)):
            assert not any(
                str(path).encode() in file.read_bytes() for path in (private, root)
            )


@pytest.mark.parametrize(
    "changed", ["notebooks/counts.ipynb", "claims/counts.py", "requirements.lock"]
)
def test_a_run_is_made_from_its_notebook_its_claims_and_the_lock(
    root, monkeypatch, changed
):
    monkeypatch.setattr(page, "CLAIMS", root / "claims")
    values, now = parameters.parameters("counts"), datetime.now()

    def code():
        return studio.record_of("counts", values, "paper", now)["code"]

    before = code()
    assert code() == before
    file = root / changed
    file.parent.mkdir(exist_ok=True)
    file.write_text((file.read_text("utf-8") if file.exists() else "") + " \n", "utf-8")
    assert code() != before


def test_what_a_run_writes_is_its_owner_s_alone_whatever_the_shell_lets_others_see(
    root, monkeypatch
):
    def writes(name, *_, **__):
        (folder := Path("r")).mkdir()
        (folder / f"{name}.html").write_text("income 98765")
        return folder

    monkeypatch.setattr(studio, "run", writes)
    assert studio.main(["run", "counts"]) == 0
    assert not any(
        file.stat().st_mode & 0o077 for file in (Path("r"), *Path("r").iterdir())
    )


def staged(made, folder, profile="paper", **given):
    """A notebook of the name counts as a build or a run stages it."""
    (folder / "notebooks").mkdir(exist_ok=True)
    nbformat.write(made, folder / "counts.ipynb")
    values = parameters.parameters("counts", given=given)
    record = studio.record_of("counts", values, profile, studio.datetime.now()) | {
        "seconds": 1
    }
    pages.stage_notebook(folder / "counts.ipynb", folder, record)
    return nbformat.read(folder / "notebooks" / "counts.ipynb", 4).cells


@pytest.mark.parametrize(
    ("words", "text", "told"),
    [
        (
            WORDS | {"image": {"alt": " "}},
            "",
            "without caption, name or alternative text",
        ),
        (WORDS | {"figure": {"name": "fig-line"}}, "", "without caption"),
        (WORDS | {"figure": {"caption": "A line."}}, "", "without caption"),
        (WORDS, "a figure", ""),
        (WORDS, f"{Path.home()}/records", "shows a path"),
        (WORDS, "ROOT/notebooks", "shows a path"),
    ],
)
def test_a_figure_needs_words_and_a_page_shows_no_path(
    root, tmp_path, words, text, told
):
    made = nbformat.read(root / "notebooks" / "counts.ipynb", 4)
    picture = {"image/png": "aGVsbG8=", "text/plain": text.replace("ROOT", str(root))}
    made.cells[-1].outputs = [
        nbformat.v4.new_output("display_data", picture),
        nbformat.v4.new_output("stream", name="stderr", text="50 %"),
    ]
    made.cells[-1].metadata["mystnb"] = words
    with pytest.raises(pages.Failed, match=told) if told else contextlib.nullcontext():
        assert "50 %" not in str(staged(made, tmp_path))


TEXT = """\
At n = 8
F and
G rose<!--claim: f-and-g--><!--claim: g-->, $x = 0.5$ <!--claim: way--> on the way. *all* others
fell<!--claim: others--> (or stayed). H left.<!--claim: h-->

| ε | what we advise |
|---|---|
| 0.1 | take limits<!--claim: limits-->, as {glue:text}`shown` and {glue:text}`absent` say |

:::{admonition} Answer
:class: dropdown
H left<!-- claim: at-once --> at once.
:::
"""
CAPTION = "Here *all* others fell<!--claim: caption-->."
BARE = re.sub(" ?<!--.*?-->", "", TEXT)
SAID = {
    "caption": False,
    "f-and-g": True,
    "g": False,
    "way": False,
    "others": False,
    "h": None,
    "limits": False,
    "at-once": None,
}
TRUE = dict.fromkeys(SAID, True)


def staged_claims(
    root, tmp_path, claims, numbers=("shown", "absent"), text=TEXT, **given
):
    """Text cells of a page whose chapter has this text and two cells of claims."""
    made = nbformat.read(root / "notebooks" / "counts.ipynb", 4)
    made.cells.append(nbformat.v4.new_markdown_cell(text))
    made.cells[-2].metadata["mystnb"] = {"figure": {"caption": CAPTION}}
    made.cells[-2].outputs = [
        nbformat.v4.new_output("display_data", {page.CLAIMS_TYPE: claims}),
        *(
            nbformat.v4.new_output(
                "display_data",
                {"text/plain": "3"},
                metadata={"scrapbook": {"name": number}},
            )
            for number in numbers
        ),
    ]
    cells = staged(made, tmp_path, **given)
    assert not re.search(f"{page.CLAIMS_TYPE}|<!--", str(cells))
    (caption,) = [
        c.metadata["mystnb"]["figure"]["caption"]
        for c in cells
        if "figure" in c.metadata.get("mystnb", {})
    ]
    return [caption, *(cell.source for cell in cells if cell.cell_type == "markdown")]


def test_a_false_claim_stops_the_book_and_is_marked_in_a_rerun(root, tmp_path):
    for given in {}, {"replicates": 7}:
        caption, _, text, *_ = staged_claims(root, tmp_path, TRUE, **given)
        assert (caption, text) == ("Here *all* others fell.", BARE)
    for claim, told in (
        ("others", r"this is false, others: \*all\* others fell \(or stayed\)\."),
        ("h", r"this cannot be computed, h: H left\."),
    ):
        with pytest.raises(pages.Failed, match=rf"settings {told}$"):
            staged_claims(root, tmp_path, TRUE | {claim: SAID[claim]})
    caption, title, text, made = staged_claims(
        root, tmp_path, SAID, ["shown"], replicates=7
    )
    assert "How this chapter was made" in made
    assert "\nDifferent from the defaults: `replicates = 7`.\nSeed: 1." in made
    # each mark has a number, and each sentence that has marks leads to its first
    marks = re.findall(
        r' <sup class="not-here" id="not-here-(\d)" title="([^"]+)">(.)</sup>', text
    )
    otherwise, untold = pages.MARKS[False], pages.MARKS[None]
    assert marks == [
        ("2", *otherwise),
        ("3", *otherwise),
        ("4", *otherwise),
        ("5", *untold),
        ("6", *otherwise),
        ("7", *untold),
    ]
    assert caption == f"Here *all* others fell {pages.MARK.format(1, *otherwise)}."
    bare = re.sub(" <sup.*?</sup>", "", text)
    assert bare == BARE.replace("{glue:text}`absent`", "–")
    listed = re.findall(r'^- (.*) <a href="#not-here-(\d)">', title, re.M)
    assert listed == [
        ("Here *all* others fell.", "1"),
        ("At n = 8 F and G rose, $x = 0.5$ on the way.", "2"),
        ("*all* others fell (or stayed).", "4"),
        ("0.1: take limits, as {glue:text}`shown` and – say", "6"),
        ("H left.", "5"),
        ("H left at once.", "7"),
    ]
    assert title.index("This run cannot tell") > title.index("take limits")
    assert "book's own run" in title and SMALLER not in title
    _, title, *_ = staged_claims(
        root, tmp_path, SAID, ["shown"], profile="quick", replicates=7
    )
    assert "book's own run" not in title and SMALLER in title
    # a list without sentences has no heading
    told = SAID | dict.fromkeys(("h", "at-once"), True)
    _, title, *_ = staged_claims(root, tmp_path, told, replicates=7)
    assert "it was otherwise" in title and "cannot tell" not in title


FRONT = """# The book

Counts rose<!--claim: counts::rose-->, and
prose fell<!--claim: prose::fell-->.

:::{grid-item-card} 3
:link: counts

Counts stayed<!-- claim: counts::stayed -->. Nobody left.
:::
"""
SMALLER = (
    "The profile here is `quick`: its studies are smaller than those that the text describes, so "
    "some sentences do not hold in it. Each of these has a mark, ✗ or ?. `make book` builds the "
    "book at the paper's sizes."
)


def checked_pages(folder, claims, profile, text=FRONT):
    """The front page, and another one, of a staged book whose chapters claim this."""
    (folder / "book").mkdir(exist_ok=True)
    files = [folder / "book" / f"{page}.md" for page in ("intro", "parameters")]
    for file in files:
        file.write_text(text, "utf-8")
    pages.check_pages(folder, claims, profile)
    return [file.read_text("utf-8") for file in files]


def test_a_page_marks_what_chapters_contradict_and_a_smaller_book_says_that_it_is_one(
    root, tmp_path
):
    def claims(rose, fell, stayed):
        return {"counts": {"rose": rose, "stayed": stayed}, "prose": {"fell": fell}}

    bare = re.sub("<!--.*?-->", "", FRONT)
    true = claims(True, True, True)
    front, other = checked_pages(tmp_path, true, "paper")
    assert front.split() == other.split() == bare.split()
    # below the title; another page has nothing to say
    front, other = checked_pages(tmp_path, true, "quick")
    title, box, rest = re.split(
        r":::\{admonition\}|^:::$", front, maxsplit=2, flags=re.M
    )
    assert title == "# The book\n\n" and other.split() == bare.split()
    assert (
        SMALLER in box and "otherwise" not in box and rest.split() == bare.split()[3:]
    )
    for profile in "quick", "paper":
        for text in checked_pages(tmp_path, claims(True, None, False), profile):
            marks = re.findall(
                r'(\w+) <sup[^>]* id="not-here-(\d)"[^>]*>(.)</sup>', text
            )
            assert marks == [("fell", "1", "?"), ("stayed", "2", "✗")]
            listed = re.findall(r'^- (.*) <a href="#not-here-(\d)">', text, re.M)
            assert listed == [
                ("Counts stayed.", "2"),
                ("Counts rose, and prose fell.", "1"),
            ]
            assert (SMALLER in text) == (profile == "quick")
            assert re.sub(" <sup.*?</sup>", "", text).endswith(bare.partition("\n")[2])


@pytest.mark.parametrize("profile", ["paper", "quick"])
def test_only_the_front_page_of_a_smaller_book_says_that_it_is_one(
    root, executed, profile
):
    notebook(root, "prose", TABLE, seed=2)  # no number: nothing is executed
    studio.build(profile)
    found = [
        file.relative_to(root / "_build" / "stage").as_posix()
        for file in (root / "_build" / "stage").rglob("*.[im][pd]*")
        if "The profile here is" in file.read_text("utf-8")
    ]
    assert found == (["book/intro.md"] if profile == "quick" else [])


@pytest.mark.parametrize(
    ("mark", "told"),
    [
        ("counts::fell", "no claim for the mark <!--claim: counts::fell-->"),
        ("rose", "no claim for the mark <!--claim: rose-->"),
        ("prose::rose", "no claim for the mark <!--claim: prose::rose-->"),
        ("counts::rose", "twice the mark <!--claim: counts::rose-->"),
    ],
)
def test_a_page_s_mark_names_a_chapter_s_claim_once(root, tmp_path, mark, told):
    claims = {"counts": {"rose": True}, "prose": {"fell": True}}
    text = f"# Book\n\nIt rose<!--claim: counts::rose-->.\n\nSo<!--claim: {mark}-->.\n"
    with pytest.raises(pages.Failed, match=f"^book/intro: .*{told}"):
        checked_pages(tmp_path, claims, "paper", text)


@pytest.mark.parametrize("given", [{}, {"replicates": 7}])
@pytest.mark.parametrize(
    ("claims", "numbers", "text", "told"),
    [
        (TRUE | {"fell": True}, "shown absent", TEXT, "no mark <!--claim: fell-->"),
        ({"g": True}, "shown absent", TEXT, "no claim for the mark <!--claim: at-once"),
        (
            TRUE,
            "shown absent",
            f"{TEXT}\nH<!--claim: h-->.",
            "twice the mark <!--claim: h",
        ),
        (
            TRUE,
            "shown absent",
            TEXT.replace(": h--", " f--"),
            "for the mark <!--claim: f-",
        ),
        # Jupyter would show the rest of such a line as it stands
        (
            TRUE,
            "shown absent",
            TEXT.replace("H left.<", "H left.\n<"),
            "no mark <!--claim: h",
        ),
        (TRUE, "shown absent other", TEXT, "does not ask for the number other"),
        (TRUE, "shown", TEXT, "asks for a number that there is not: absent"),
    ],
)
def test_names_in_a_text_and_of_its_claims_must_meet(
    root, tmp_path, given, claims, numbers, text, told
):
    # where a rerun lacks a number there is a dash
    fails = "there is not" not in told or not given
    with (
        pytest.raises(pages.Failed, match=f"^counts: .*{re.escape(told)}")
        if fails
        else contextlib.nullcontext()
    ):
        staged_claims(root, tmp_path, claims, numbers.split(), text, **given)


# ---- all notebooks ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", parameters.notebooks())
def test_nbmake_runs_the_notebook_which_has_no_outputs(notebooks, name):
    assert (notebooks.executed(name) / "run.json").is_file()
    cells = nbformat.read(parameters.source(name), 4).cells
    assert not any(cell.get("outputs") for cell in cells)


def test_the_page_of_a_run_has_the_numbers_of_the_book(notebooks, this_book, tmp_path):
    # it refers to figures, theorems, exercises and terms of other pages, and to literature
    name, run = "what_it_means", tmp_path / "run"
    shutil.copytree(notebooks.executed(name), run)
    studio.make_page(run, json.loads((run / "run.json").read_text("utf-8")))
    texts = []
    for file in run / f"{name}.html", this_book / "notebooks" / f"{name}.html":
        article = BeautifulSoup(file.read_text("utf-8"), "html.parser").find("article")
        for own in article.select("#your-run-beside-the-book-s, .provenance"):
            own.decompose()
        texts.append(" ".join(article.get_text().split()))
    assert texts[0] == texts[1]
    assert re.search(r"Theorem \d+\.", texts[0]) and "Fig. 1." in texts[0]


@pytest.mark.parametrize("name", parameters.chapters())
def test_all_tables_of_a_chapter_are_beside_the_book_and_their_rows_meet(
    notebooks, name, tmp_path
):
    run = notebooks.executed(name)
    for name_of in ("book", "_toc.yml"):
        (tmp_path / name_of).symlink_to(ROOT / name_of)
    (tmp_path / "_build" / "results").mkdir(parents=True)
    (tmp_path / "_build" / "results" / "small").symlink_to(run.parent)
    record = json.loads((run / "run.json").read_text("utf-8"))
    text = compare.beside_the_book(tmp_path, run, record)
    told = re.findall(
        r"^\*\*(\w+)\*\*: (?:0 of the [1-9]\d* numbers|no row) ", text, re.M
    )
    assert told == sorted(file.stem for file in run.glob("*.csv"))
