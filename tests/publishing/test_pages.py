"""Pages that are written when the book is built."""

import re

import pytest
from conftest import ROOT
from known_studies import equal_bound_study

import ppm
from ppm.publishing import ledger
from ppm.publishing.claims import Claim, load_ledger
from ppm.publishing.ledger import Row, judge
from ppm.publishing.pages import finding_part, ledger_page

TEMPLATE = ROOT / "book" / "ledger.md"
CLAIMS = load_ledger(ROOT / "book" / "published.yaml")


def test_the_page_shows_counts_verdicts_and_where_values_come_from():
    study = ppm.studies.contraction([100, 400, 1600, 6400], replicates=20, draws=50, random_seed=3)
    values = ppm.publishing.contraction_values(study, random_seed=1)
    rows = judge(CLAIMS, {"poisson_contraction": {"data": "drawn", "values": values}})
    source = {"profile": "quick", "day": "1 March 2026", "data": "drawn", "part": False}
    page = ledger_page(TEMPLATE, rows, {"poisson_contraction": source})
    assert "profile `quick`, run on 1 March 2026, on data drawn by the study itself." in page
    assert "{doc}`../notebooks/ce_application`: not run." in page
    part = ledger_page(TEMPLATE, rows, {"poisson_contraction": source | {"part": True}})
    assert "by the study itself (some of the records, drawn at random)." in part
    assert "leaves settings of the application open" not in page
    assert "`../notebooks/open`" in ledger_page(TEMPLATE, rows, {}, settings_chapter="open")
    for row in rows:
        assert page.count(f"| {row.claim.says}<br>{{doc}}`") >= 1
    found = counts(page)
    sections = sorted({claim.section for claim in CLAIMS})
    assert list(found["rows"]) == ["all", *sections]
    for section in ("all", *sections):
        there = [row for row in rows if section in ("all", row.claim.section)]
        assert found["rows"][section] == len(there)
        assert found["of these open"][section] == sum(row.open for row in there)
        for verdict in ledger.VERDICTS:
            assert found[verdict][section] == sum(row.verdict == verdict for row in there)
    lines = [line for line in page.splitlines() if line.startswith("| ")]
    # the counts, and the rows
    assert {line.count("|") for line in lines} == {len(sections) + 3, 6}


def counts(page):
    """The table of verdicts: verdict -> section -> number."""
    begin = page.index(":::{container} ledger-counts")
    lines = [
        [cell.strip(" *") for cell in line.strip("|").split(" | ")]
        for line in page[begin : page.index(":::\n", begin + 3)].splitlines()
        if line.startswith("| ")
    ]
    heads, _, *lines = lines
    return {
        name: dict(zip(heads[1:], map(int, numbers), strict=True)) for name, *numbers in lines
    }


def rows_of(*told):
    """Rows with a verdict each; the claims say a, b, …"""
    return [
        Row(Claim(name, "4.5", "text", says, "study", "less"), verdict, *more)
        for name, says, verdict, *more in told
    ]


def test_every_verdict_is_explained_and_counted_apart():
    rows = rows_of(*((f"r{i}", "It is.", v, "so") for i, v in enumerate(ledger.VERDICTS)))
    rows += rows_of(
        ("x", "It is.", "by construction", "so"), ("y", "It is.", "not reproduced", "so", (), True)
    )
    page = ledger_page(TEMPLATE, rows, {})
    for verdict in ledger.VERDICTS:
        assert f"\n- *{verdict}*: " in page
    found = {name: numbers["all"] for name, numbers in counts(page).items()}
    assert (found["reproduced"], found["by construction"], found["same setting"]) == (1, 2, 1)
    assert (found["not reproduced"], found["of these open"]) == (2, 1)


def test_open_rows_are_listed_with_the_run_that_would_decide_them():
    rows = rows_of(
        ("a", "The mean is low.", "reproduced", "below by 2"),
        ("b", "… and the median.", "not reproduced", "not surely below; about 90 runs", (), True),
        ("c", "All is low.", "not reproduced", "not below"),
    )
    page = ledger_page(TEMPLATE, rows, {})
    listed = [line for line in page.splitlines() if line.startswith("- Section")]
    # in the words of the row that it goes on from
    assert listed == [
        "- Section 4.5: The mean is low. … and the median. *Not surely below; about 90 runs.*"
    ]
    assert "These rows are open:" not in ledger_page(TEMPLATE, rows[:1], {})


STUDY = {
    "chapter": "study", "studies": 200, "at_1000": 40, "replicates": 400, "seed": 7,
    "seconds": 61.2, "day": "1 March 2026", "beside": 400.0,
}


def test_the_chapters_value_stands_in_brackets_beside_that_of_the_larger_study():
    rows = rows_of(
        ("a", "It falls.", "reproduced", "falls", ("2.0 ± 0.1", "1.0 ± 0.1"), False,
         ("2.2 ± 0.9", "1.1 ± 0.9"), "not reproduced (open)"),
        ("b", "It is low.", "reproduced", "low", ("3.0",)),
    )
    page = ledger_page(TEMPLATE, rows, {}, study=STUDY)
    line = next(line for line in page.splitlines() if "| It falls.<br>" in line)
    # a number and its error stay together
    assert "2.0\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}0.1 \\[2.2" in line
    plain = line.replace("\N{NO-BREAK SPACE}", " ")
    assert r"| 2.0 ± 0.1 \[2.2 ± 0.9\]<br>1.0 ± 0.1 \[1.1 ± 0.9\] | Falls. *The chap" in plain
    assert "*The chapter alone:* not reproduced (open)." in page
    # a row that the chapter judges by itself has no brackets
    assert "| 3.0 | Low. |" in page
    told = re.sub(r"\s+", " ", page)
    assert "of 200 times 400 = 80,000 databases of each size (seed 7, 61 seconds on 1 March" in told
    assert (
        "Square brackets show what the chapter itself found, with 400 databases of each size"
        in told
    )
    assert "Square brackets" not in ledger_page(TEMPLATE, rows, {})


FINDING = ROOT / "book" / "where_it_holds.md"
RECORD = {"profile": "paper", "parameters": {"seed": 7}}


def finding(off, error=0.3, **saved):
    study = equal_bound_study(off, error=error)
    values = ppm.publishing.equal_bound_values(study)
    saved = {"data": "diary", "part": False, "values": values} | saved
    return finding_part(FINDING, saved, RECORD).replace("\N{NO-BREAK SPACE}", " ")


def test_the_introduction_says_where_the_main_finding_holds():
    page = finding([[9, 2, 5, 9, 1], [1, 5, 2, 1, 1], [-1, -4, -2, 1, 1], [0, 4, -4, 1, 1]])
    for statistic in ("90th percentile", "mean"):
        assert (
            f"**For the {statistic}** DPweighted was closer at each of these settings $(c, g)$ and "
            "in every run with K = 1, log; EMweighted with K = 2, log; K = 2, asinh. Neither was "
            "so throughout with K = 10, log." in page
        )
    assert "computed from the Diary survey" in page and "profile `paper`" in page
    assert "3 runs for each line, all from seed 7" in page and "reports 78.7 for" in page
    lines = [line for line in page.splitlines() if line.startswith("| K = ")]
    assert lines[0] == "| K = 1, log | 80.0 | (0.7, 0) | +9 % | +2 % | +5 % | 3 : 0 | 3 : 0 |"
    assert lines[5] == "| K = 2, asinh | 80.0 | (0.5, −0.3) | −1 % | −4 % | −2 % | 0 : 3 | 0 : 3 |"
    assert len(lines) == 8


def test_the_introduction_tells_the_mean_by_its_own_distances():
    study = equal_bound_study([1, 5, 2, 1, 1], error=0.3)
    study.dataset["off"].loc[{"statistic": "mean", "mechanism": "DPweighted"}] = 1.0
    # one run that errors do not decide
    study.dataset["off_error"].loc[{"statistic": "mean", "combination": 3, "repeat": 0}] = 2.0
    page = finding_part(FINDING, {
        "data": "diary", "part": False, "values": ppm.publishing.equal_bound_values(study),
    }, RECORD).replace("\N{NO-BREAK SPACE}", " ")
    everywhere = "K = 1, log; K = 2, log; K = 2, asinh"
    assert f"with no $K$; EMweighted with {everywhere}; K = 10, log." in page
    assert f"with {everywhere}; EMweighted with no $K$. Neither was so throughout with" in page
    lines = [line for line in page.splitlines() if line.startswith("| K = ")]
    assert lines[0].endswith("| 0 : 3 | 3 : 0 |") and lines[6].endswith("| 0 : 3 | 2 : 0 |")


def test_what_chance_could_have_done_is_no_finding_for_the_introduction():
    # the same numbers, less surely
    page = finding([9, 2, 5, 9, 1], error=2.0)
    assert "with no $K$; EMweighted with no $K$. Neither was so throughout with K = 1" in page


@pytest.mark.parametrize("saved", [None, {}, {"data": "diary", "part": False, "values": {}}])
def test_the_introduction_says_nothing_of_a_chapter_that_was_not_run(saved):
    assert not finding_part(FINDING, saved, RECORD).strip()
    assert "some of the records" in finding([9, 2, 5, 9, 1], part=True)
