"""What a newcomer sees first: the README's commands, with the output below them, and its Python."""

import re
import shlex
import subprocess
import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from conftest import ROOT

from ppm_book.tools import studio

README = (ROOT / "README.md").read_text("utf-8")
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?")


def shown_in_the_readme():
    """Commands of the README, each with the output below it."""
    (block,) = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    begins = [
        *(match.start() for match in re.finditer(r"^\$ ", block, re.MULTILINE)),
        len(block),
    ]
    parts = (block[begin:end] for begin, end in pairwise(begins))
    return [part.removeprefix("$ ").partition("\n")[::2] for part in parts]


def test_the_rerun_of_the_readme_gives_the_output_shown_there(
    tmp_path, monkeypatch, capsys
):
    (enter, nothing), (rerun, told), (look, table) = shown_in_the_readme()
    assert (enter, nothing) == ("source .venv/bin/activate", "")

    # pages of a run are tested elsewhere, and take longer than the run
    def sphinx(staged, built, strict, only):
        (page := (built / only).with_suffix(".html")).parent.mkdir(parents=True)
        page.write_text("a page")

    monkeypatch.setattr(studio, "sphinx", sphinx)
    monkeypatch.chdir(tmp_path)
    program, *arguments = shlex.split(rerun)
    assert program == "ppm"
    assert studio.main(arguments) == 0
    printed = capsys.readouterr()
    assert NUMBER.sub("#", printed.err + printed.out) == NUMBER.sub("#", told)
    found = subprocess.run(
        look, shell=True, capture_output=True, text=True, check=True
    ).stdout
    # the same words, and the same numbers up to an error that other machines may make
    assert NUMBER.sub("#", table) == NUMBER.sub("#", found)
    shown, made = (
        [float(number) for number in NUMBER.findall(text)] for text in (table, found)
    )
    np.testing.assert_allclose(shown, made, rtol=1e-6, atol=0.01)
    # six rows, none of them equal
    assert len(set(found.splitlines())) == 7


# which mechanism is best hangs on the made-up tables
@pytest.mark.filterwarnings("ignore:Bins")
def test_the_python_of_the_readme_runs(tmp_path, monkeypatch):
    def year(seed, middle):
        rng = np.random.default_rng(seed)
        incomes = np.round(middle * rng.lognormal(sigma=0.6, size=400))
        incomes[::20] = 0
        return pd.DataFrame(
            {"education": np.tile(["school", "degree"], 200), "income": incomes}
        )

    monkeypatch.chdir(tmp_path)
    names = {"last_year": year(1, 30_000), "this_year": year(2, 36_000)}
    for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL):
        with warnings.catch_warnings():
            # what the best plan is not surely good for
            warnings.filterwarnings("ignore", r"(Means|Bins)\(")
            exec(block, names)
    fit = names["fit"]
    assert not fit.strict and fit.epsilon(releases=3) == 6 * fit.local_bound
    # who reads the files finds the plan, and what may be published
    assert {file.name for file in tmp_path.iterdir()} >= {
        "plan.json",
        "account.jsonl",
        "release.csv",
        "release.txt",
        "release.json",
    }
    synthetic = pd.read_csv("release.csv")
    assert [*synthetic] == ["education", "income"] and len(synthetic) == 400
