"""The first page and its picture say what the chapters compute."""

import doctest
import re
import runpy

import numpy as np
import pandas as pd
import pytest
from conftest import ROOT
from scipy import stats

import ppm
from ppm_book.chapters import page
from ppm_book.tools import parameters, sphinx_fixes

COUNTS = np.array([3, 4, 4, 5, 5, 6, 7, 18])
PICTURE = (ROOT / "book/_static/first.svg").read_text("utf-8")
INTRO = (ROOT / "book/intro.md").read_text("utf-8")


def no_weights(records):
    return np.ones(records.size)


def our_weights(records):
    model = ppm.GammaPoisson(records, shape=1.0, rate=0.1)
    return ppm.fit(model, ppm.ByRisk(), draws=1000, random_seed=20220).weights


def totals(weigh, tables=3):
    """Exact distributions of the total of released tables, without H and with H."""
    for records in (COUNTS[:-1], COUNTS):
        weights = weigh(records)
        shape, rate = 1 + weights @ records, 0.1 + weights.sum()
        yield stats.nbinom(tables * shape, rate / (rate + COUNTS.size))


def detected(weigh):
    """How often the attacker of chapter 1 is right, at 5 % false alarms."""
    without_h, with_h = totals(weigh)
    return with_h.sf(without_h.ppf(0.95))


@pytest.mark.parametrize(
    ("weigh", "words"),
    [
        (
            no_weights,
            ("the ordinary posterior {} %", "ordinary posterior: right in {} of"),
        ),
        (
            our_weights,
            ("mechanism's weights {} %", "with the mechanism: right in {} of"),
        ),
    ],
)
def test_words_and_picture_have_the_chapters_numbers(weigh, words):
    share, title = (said.format(round(100 * detected(weigh))) for said in words)
    assert title in PICTURE.lower()
    for text in (PICTURE, INTRO, (ROOT / "README.md").read_text("utf-8")):
        assert share in text


def test_caption_has_the_chapters_numbers():
    plain, ours = (round(100 * detected(weigh)) for weigh in (no_weights, our_weights))
    assert f"in {plain} of 100 cases under the ordinary posterior" in INTRO
    assert f"and in {ours} of 100 under the mechanism" in INTRO


@pytest.mark.parametrize(
    ("weigh", "name", "base"),
    [
        (no_weights, "Ordinary posterior", 214),
        (our_weights, "With weights", 460),
    ],
)
def test_bars_and_data_are_the_exact_distributions(weigh, name, base):
    data = (
        pd.read_csv(ROOT / "book/_static/figures/fig-first.csv")
        .set_index("weights")
        .loc[name]
    )
    for column, total in zip(
        ("share without H", "share with H"), totals(weigh), strict=True
    ):
        exact = total.cdf(data["total to"] - 1) - total.cdf(data["total from"] - 1)
        np.testing.assert_allclose(data[column], exact, atol=6e-5)
    bars = re.findall(
        r'y="([\d.]+)" width="([\d.]+)" height="([\d.]+)" fill="(#\w+)"', PICTURE
    )
    areas = {"#E3B799": 0, "#B84A00": 0}  # before the alarm, and beyond it
    for y, width, height, colour in bars[1:]:  # the first is the paper
        if float(y) + float(height) == pytest.approx(base):
            areas[colour] += float(width) * float(height)
    assert areas["#B84A00"] / sum(areas.values()) == pytest.approx(
        detected(weigh), abs=0.005
    )


def test_the_lines_of_code_print_what_stands_below_them():
    (code,) = re.findall(r"```python\n(.*?)```", INTRO, re.S)
    lines = doctest.DocTestParser().get_doctest(code, {}, "front page", None, 0)
    told = []
    doctest.DocTestRunner().run(lines, out=told.append)
    assert len(lines.examples) == 6 and not told
    # which is the number of the first finding too
    assert "card} ε = 23.6\n" in INTRO and "ε = 23.6\n" in code


def test_numbers_of_the_findings_come_from_their_chapters():
    asked = re.findall(r"\{glue:text\}`\.\./notebooks/(\w+)\.ipynb::([^`]+):s`", INTRO)
    assert len(asked) == INTRO.count("glue:text") == 6
    for chapter, number in asked:
        numbers = runpy.run_path(str(page.CLAIMS / f"{chapter}.py"))["NUMBERS"]
        assert number in numbers


def test_the_front_page_lists_the_chapters_of_the_course_by_their_numbers():
    course = [
        chapter["file"]
        for part in parameters.contents()["parts"]
        if part["caption"].startswith("The course")
        for chapter in part["chapters"]
    ]
    listed = re.findall(r"^(\d)\. \{doc\}`[^`]*<\.\./([\w/]+)>`", INTRO, re.M)
    assert listed == [(str(n), file) for n, file in enumerate(course, start=1)]
    assert len(course) == 8 and "## Eight chapters" in INTRO


def test_the_picture_for_sharing_has_the_size_that_others_show():
    picture = (ROOT / "book" / sphinx_fixes.PICTURE).read_bytes()
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    sides = int.from_bytes(picture[16:20]), int.from_bytes(picture[20:24])
    assert sides == (1200, 630)
