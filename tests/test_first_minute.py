"""What a newcomer sees first: the output that the README shows below its commands."""

import re
import shlex
import subprocess
from itertools import pairwise

import numpy as np
from conftest import ROOT

from ppm_book.tools import studio

NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?")


def shown_in_the_readme():
    """Commands of the README, each with the output below it."""
    text = (ROOT / "README.md").read_text("utf-8")
    (block,) = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
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
    assert capsys.readouterr().out == told
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
