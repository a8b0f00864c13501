"""What a newcomer sees first: the picture of the README and the book, and a command's output."""

import importlib.util
import re
import shlex
import subprocess
from itertools import pairwise

import numpy as np
import pytest
from conftest import ROOT

from ppm.publishing import command_line as cli
from ppm.publishing import run as running

NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?")


def first_picture():
    """The script that draws it."""
    spec = importlib.util.spec_from_file_location(
        "first_picture", ROOT / "scripts" / "first_picture.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def assert_alike(shown, made, apart):
    """The same words, and the same numbers up to an error that other machines may make."""
    assert NUMBER.sub("#", shown) == NUMBER.sub("#", made)
    pair = ([float(number) for number in NUMBER.findall(text)] for text in (shown, made))
    np.testing.assert_allclose(*pair, rtol=1e-6, atol=apart)


def test_the_first_picture_is_what_its_script_draws():
    script = first_picture()
    for name, made in script.files().items():
        # a tenth of a pixel, or the last digit
        apart = 0.11 if name.endswith("svg") else 2e-4
        assert_alike((script.FOLDER / name).read_text("utf-8"), made, apart)


def test_the_first_picture_shows_the_numbers_of_the_theory_chapter():
    script = first_picture()
    source = (ROOT / "notebooks" / "theory.ipynb").read_text("utf-8")
    assert f"draws: int = {script.DRAWS} " in source
    assert f"seed: int = {script.SEED} " in source
    assert f"counts = np.array([{', '.join(map(str, script.COUNTS))}])" in source
    found = script.numbers()
    _, bounds, weights, after, _ = map(np.array, zip(*found["households"], strict=True))
    risk = (bounds - bounds.min()) / np.ptp(bounds)
    np.testing.assert_allclose(weights, 1 - risk)
    epsilons = [epsilon for _, epsilon, _, _ in found["promises"]]
    assert epsilons[:2] == pytest.approx([2 * bounds.max(), 2 * after.max()])
    for _, epsilon, detected, holds in found["promises"]:
        # the best test at 5 % false alarms, by the two lines that bound it
        best = min(0.05 * np.exp(epsilon), 1 - np.exp(-epsilon) * 0.95)
        assert detected == pytest.approx(best)
        assert (holds == "every database") == (epsilon in script.STRICT)


def test_who_does_not_see_the_first_picture_is_told_what_it_shows():
    script = first_picture()
    told = script.words(script.numbers())
    for page in ("README.md", "book/intro.md"):
        text = (ROOT / page).read_text("utf-8")
        (shown,) = re.findall(r"!\[([^]]*)\]\(book/_static/first\.svg\)|^:alt: (Left: .*)$", text,
                              re.MULTILINE)
        assert_alike("".join(shown), told, 0.11)


def shown_in_the_readme():
    """Commands of the README, each with the output below it."""
    text = (ROOT / "README.md").read_text("utf-8")
    (block,) = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    begins = [*(match.start() for match in re.finditer(r"^\$ ", block, re.MULTILINE)), len(block)]
    parts = (block[begin:end] for begin, end in pairwise(begins))
    return [part.removeprefix("$ ").partition("\n")[::2] for part in parts]


def test_the_rerun_of_the_readme_gives_the_output_shown_there(tmp_path, monkeypatch, capsys):
    (enter, nothing), (rerun, told), (look, table) = shown_in_the_readme()
    assert (enter, nothing) == ("source .venv/bin/activate", "")
    # pages of a run are tested elsewhere, and take longer than the run
    monkeypatch.setattr(running, "render_page", lambda *arguments, **options: None)
    monkeypatch.chdir(tmp_path)
    program, *arguments = shlex.split(rerun)
    assert program == "ppm"
    assert cli.main(["--root", str(ROOT), *arguments]) == 0
    assert capsys.readouterr().out == told
    found = subprocess.run(look, shell=True, capture_output=True, text=True, check=True).stdout
    assert_alike(table, found, 0.01)
    # six rows, none of them equal
    assert len(set(found.splitlines())) == 7
