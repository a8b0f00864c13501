"""The ledger: its rules, the values with their errors, and the pages made from them."""

import json
import re
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from conftest import ROOT
from scipy import stats

import ppm
from ppm_book.chapters import ledger_values
from ppm_book.chapters.ledger_values import measured
from ppm_book.tools import ledger
from ppm_book.tools.parameters import Refused

ROWS = {row["id"]: row for row in ledger.load(ROOT)}
SETTING = {"rule": "setting", "published": 1}
SIZES = np.array([100, 400, 1600])


def verdict(row, *pairs):
    """Verdict on a row whose values are pairs of numbers and errors, on the Diary file; and why."""
    values = {
        f"value {i}": {"value": v, "error": e, "at": [*range(np.size(v))]}
        for i, (v, e) in enumerate(pairs)
    }
    row = {"id": "one", "chapter": "study", "values": [*values]} | row
    values["sizes"] = measured([1, 2])
    return ledger.judge(row, {"data": "diary", "values": values})[:2]


@pytest.mark.parametrize(
    ("rule", "options", "pairs"),
    [
        ("near", {"published": 3, "tolerance": 0.5}, lambda m: [(3.5 - m, 0.1)]),
        (
            "near",
            {"published": [1, 10], "relative": 0.1},
            lambda m: [([1, 9 + m], [0, 0.1])],
        ),
        ("greater", {"than": 2}, lambda m: [(2 + m, 0.1)]),
        ("less", {"factor": 0.5}, lambda m: [(1 - m, 0.06), (2, 0.16)]),
        ("less", {}, lambda m: [([0, 1], [0.01, 0.06]), ([9, 1 + m], [0.01, 0.08])]),
        ("between", {"low": 0, "high": 1}, lambda m: [([0.5, m], [0.01, 0.1])]),
        ("between", {"low": 0, "high": 1}, lambda m: [(1 - m, 0.1)]),
        ("increasing", {}, lambda m: [([0, 1, 1 + m], [0, 0.06, 0.08])]),
        ("decreasing", {}, lambda m: [([2, 2 - m, 0], [0.06, 0.08, 0])]),
    ],
)
def test_a_rule_holds_fails_or_is_open_by_two_standard_errors(rule, options, pairs):
    for m, wanted in {
        0.21: "reproduced: Holds by 0.21 ± 0.10",
        0.19: "open: Undecided: the margin is 0.19 ± 0.10",
        -0.19: "open: Undecided: the margin is −0.19 ± 0.10",
        -0.21: "not reproduced: Fails by 0.21 ± 0.10",
    }.items():
        # of several comparisons the one that decides is told
        found = ": ".join(verdict({"rule": rule} | options, *pairs(m)))
        assert found.replace("\xa0", " ").startswith(wanted)


@pytest.mark.parametrize(
    ("wanted", "value", "error", "options"),
    [
        # equal numbers are near, but neither greater nor falling
        ("reproduced", 2, 0, [{"rule": "near", "published": 2, "tolerance": 0}]),
        ("not reproduced", 0, 0, [{}]),
        ("not reproduced", [2, 2], [0, 0], [{"rule": "decreasing"}]),
        # of several numbers some are compared
        ("reproduced", [-1, 1, 2], [0, 0, 0], [{"at": 1}, {"at": [1, 2]}]),
        ("not reproduced", [-1, 1, 2], [0, 0, 0], [{}, {"at": [0, 2]}]),
        ("not computed", 1, None, [{}]),
        ("not computed", None, 0, [{}]),
        ("not computed", 1, 0, [{"rule": "increasing"}]),
        # a run that lacks what it would come from may lack a name
        ("not comparable", 1, 0, [{"values": ["other"], "needs": {"sizes": [2]}}]),
        (
            "reproduced",
            1,
            0,
            [
                {"needs": {"sizes": [1, 2]}},
                {"needs": {"sizes": 2}},
                {"not_comparable": {"simulated": "no"}},
            ],
        ),
        (
            "not comparable",
            1,
            0,
            [
                {"needs": {"sizes": [1, 3]}},
                {"needs": {"sizes": 3}},
                {"not_comparable": {"diary": "other"}},
                {"not_comparable": {"all": "a proxy"}},
                SETTING | {"published": 2},
            ],
        ),
        ("same setting", 1, 0, [SETTING]),
        ("by construction", 0, 1, [{"by_construction": "it must"}]),
        ("not reproduced", -1, 0, [{"by_construction": "it must"}]),
    ],
)
def test_what_decides_beside_the_errors(wanted, value, error, options):
    for option in options:
        assert (
            verdict({"rule": "greater", "than": 0} | option, (value, error))[0]
            == wanted
        )


@pytest.mark.parametrize("value", [9, -9])
def test_no_verdict_rests_on_chains_that_disagree(value):
    values = {"a": measured(value, 0.1, ledger_values.DISAGREE)}
    row = {"id": "one", "chapter": "study", "rule": "greater", "than": 0}
    row |= {"values": ["a"]}
    found, why, _ = ledger.judge(row, {"data": "diary", "values": values})
    assert found == "open" and "disagree" in why


def test_a_conclusion_is_its_worst_part_and_a_study_counts_before_its_chapter():
    row = {"chapter": "poisson_contraction", "rule": "greater", "than": 0}
    rows = [row | {"id": name, "values": [name]} for name in "ab"]
    rows += [
        row | {"id": "all", "rule": "rows", "rows": ["a", "b"]},
        row | {"id": "r", "rule": "setting", "values": ["a"], "published": 9},
    ]

    def judged(study=None, **own):
        found = ledger.judged(
            rows,
            {
                row["chapter"] + name: {
                    "values": {key: measured(v, 1) for key, v in of.items()}
                }
                for name, of in (("_study", study), ("", own))
                if of
            },
        )
        return [found[name][0] for name in ("all", "r", "a")]

    for a, worst in ((9, "reproduced"), (0, "open"), (-9, "not reproduced")):
        assert judged(a=a, b=9)[0] == worst
    assert judged(a=-9, b=0)[0] == "not reproduced"
    assert judged(a=9, b=np.nan)[0] == "not computed"
    # a name that was not saved is a fault
    with pytest.raises(
        Refused, match="^book/published.yaml, row b: poisson_contraction saves no"
    ):
        judged(a=9)
    found = judged({"a": 9, "b": np.nan}, a=-9, b=-9)
    assert found == ["not reproduced", "not comparable", "reproduced"]


def test_exponents_shares_and_ratios_against_closed_forms():
    assert ledger_values.exponent(SIZES, 3.0 * SIZES**0.7) == pytest.approx(0.7)
    assert np.isnan(ledger_values.exponent(SIZES, np.array([0.0, 1.0, 2.0])))
    of, counts = 1000, np.array([400, 100])
    entry = ledger_values.share_exponent(SIZES[:2], counts, of)
    error = np.sqrt(np.sum(1 / counts - 1 / of)) / np.log(4)
    assert list(entry.values()) == [
        pytest.approx(-1, abs=1e-5),
        pytest.approx(error, rel=0.05),
    ]
    # counts of 0 leave an interval that tells it from the paper's exponent
    four = ledger_values.share_exponent(
        np.array([100, 400, 1600, 6400]), [400, 5, 0, 0], 400
    )
    assert four["value"] + 2 * four["error"] == pytest.approx(-2.64, abs=0.01)
    # the probability is cut at 1: the first size says nothing of the exponent
    cut = ledger_values.share_exponent(SIZES, np.array([1000, 800, 200]), of)
    assert cut["value"] == pytest.approx(-1, abs=1e-3)
    assert np.isnan(ledger_values.share_exponent(SIZES, np.zeros(3), of)["error"])
    assert ledger_values.share(0, of)["error"] > 0
    entry = ledger_values.ratio(measured([6, 0, 1], 0.3), measured([2, 4, 0], 0.2))
    np.testing.assert_allclose(
        [*entry.values()], [[3, 0, np.nan], [3 * np.hypot(0.05, 0.1), 0.075, np.nan]]
    )
    usual = np.array([1.0, 2.0, 3.0, 2.5, 1.5, 2.2])
    error, doubt = ledger_values.error_over_releases(usual)
    assert error == pytest.approx(usual.std(ddof=1) / np.sqrt(6)) and not doubt
    # an outlier by the test of Grubbs, in its form with a p-value
    far, doubted = np.linspace(4.0, 60.0, 60), []
    for values in ([*usual, value] for value in far):
        g = np.abs(stats.zscore(values, ddof=1)).max()
        p = 14 * stats.t.sf(g * np.sqrt(35 / (36 - 7 * g**2)), 5)
        error, doubt = ledger_values.error_over_releases(values)
        assert bool(doubt) == np.isnan(error) == (p < 1e-3)
        doubted.append(doubt)
    assert not doubted[0] and doubted[-1].startswith("one of the 7 releases")


def test_bounds_are_in_doubt_where_the_chains_of_one_of_them_are():
    usual = -np.random.default_rng(1).gamma(2, 1, size=(2, 400, 3))
    still, apart = usual.copy(), usual - [[[0.0]], [[5.0]]]
    still[1] = still[1, :1]
    good, frozen, other = [
        SimpleNamespace(
            local_bound=i,
            diagnostics=ppm.chains.bound_diagnostics(values, None),
        )
        for i, values in enumerate((usual, still, apart))
    ]
    for results, doubt in (
        ([good, good], None),
        ([good, other], ledger_values.DISAGREE),
        ([good, frozen], "chains behind a bound stood still or diverged"),
    ):
        entry = ledger_values.bounds_of(*results)
        assert entry.get("doubt") == doubt
        assert entry["value"].tolist() == [one.local_bound for one in results]
        assert entry["error"].tolist() == [one.diagnostics.error for one in results]


@pytest.mark.parametrize(
    ("value", "error", "told"),
    [
        (3.14159, 0.0123, "3.142 ± 0.012"),
        (-2571.4, 38.2, "−2,571 ± 38"),
        (0.5, 0.0, "0.5"),
        (0.5, np.nan, "0.5 ± unknown"),
        (np.nan, 0.1, "–"),
    ],
)
def test_two_digits_of_an_error_count(value, error, told):
    assert ledger.told(value, error) == told.replace(" ", "\xa0")


@pytest.fixture(scope="module")
def results(notebooks):
    """Folder with what the chapters and the study of many repeats saved."""
    names = {"poisson_contraction_study", *(row["chapter"] for row in ROWS.values())}
    return [notebooks.executed(name) for name in sorted(names)][0].parent


def read(results):
    return {
        p.parent.name: json.loads(p.read_text("utf-8"))
        for p in results.glob("*/values.json")
    }


def test_every_row_is_one_that_the_judge_reads_and_names_what_is_saved(
    results, monkeypatch
):
    keys = "id section where says chapter rule values at published tolerance relative than factor "
    keys += "low high rows needs not_comparable by_construction reading remark"
    assert len(ROWS) == len(ledger.load(ROOT))
    for row in ROWS.values():
        assert row.keys() <= {*keys.split()}
    # few models agree in tests: a row on another one is judged in the book alone
    saved = {name for of in read(results).values() for name in of["values"]}
    for row in ROWS.values():
        for name in (*row.get("values", ()), *row.get("needs", ())):
            agreeing = "K = 1, asinh of ten thousands:"
            assert re.sub("K = [0-9]+, [a-z ]+:", agreeing, name) in saved
    for key, value in {"values": ["median"], "needs": {"median": 1}}.items():
        wrong = {
            "id": "a-slip",
            "chapter": "poisson_contraction",
            "rule": "greater",
            "than": 0,
            "values": ["mean"],
            key: value,
        }
        monkeypatch.setattr(ledger, "load", lambda root, wrong=wrong: [wrong])
        with pytest.raises(
            Refused, match="row a-slip: poisson_contraction saves no .*'median'$"
        ):
            ledger.page(ROOT, results)


def test_a_rule_and_a_chapter_that_there_are_not_are_told_with_those_that_there_are(
    tmp_path,
):
    (tmp_path / "book").mkdir()
    shutil.copy(ROOT / "_toc.yml", tmp_path)
    right = {"id": "a-slip", "chapter": "theory", "rule": "less", "values": ["x"]}
    for slip, told in {
        ("rule", "lesss"): "rule in .*'lesss'; did you mean less. .accepted: near, ",
        ("rule", None): "rule in .*None",
        ("rule", "rows"): "rows in .*None",
        ("chapter", "theorie"): "chapter in .*'theorie'; did you mean theory.* .acc",
        ("chapter", "poisson_contraction_study"): "chapter in .*mean poisson_contract",
        ("rows", ("a-slip", "b")): "rows in .* 'b' .accepted: a-slip.$",
        ("id", "b"): "",
    }.items():
        rows = {"rows": [json.loads(json.dumps(right | dict([slip])))]}
        (tmp_path / "book" / "published.yaml").write_text(yaml.safe_dump(rows))
        if not told:
            assert ledger.load(tmp_path) == rows["rows"]
            continue
        with pytest.raises(Refused, match=f"^unknown {told}") as refused:
            ledger.load(tmp_path)
        assert "published.yaml, row a-slip:" in str(refused.value)
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("rule", "keys"),
    [
        ("near", {"published": 1}),
        ("near", {"tolerance": 1}),
        ("near", {"published": "1,5", "tolerance": 1}),
        ("near", {"published": 1, "tolerance": "0,1"}),
        ("less", {}),
        ("less", {"than": 1, "values": []}),
        ("between", {"low": 0}),
        ("increasing", {"values": ["x", "x"]}),
    ],
)
def test_a_row_that_lacks_what_its_rule_needs_is_told_with_its_name(rule, keys):
    row = {"id": "a-slip", "chapter": "theory", "rule": rule, "values": ["x"]} | keys
    saved = {"values": {"x": {"value": [1.0, 2.0], "error": [0.1, 0.1]}}}
    words = (
        f"^book/published.yaml, row a-slip: rule '{rule}' needs other keys or values"
    )
    with pytest.raises(Refused, match=words) as refused:
        ledger.judge(row, saved)
    assert "\n" not in str(refused.value)


def test_the_page_shows_counts_verdicts_and_where_values_come_from(results):
    text = ledger.page(ROOT, results)
    assert (
        "profile `small`, run on " in text
        and "on data drawn by the study itself." in text
    )
    assert "of 10 times 5 = 50 databases of\neach size (seed 41, " in text
    verdicts = [
        outcome[0] for outcome in ledger.judged(ROWS.values(), read(results)).values()
    ]
    for verdict in verdicts:
        assert f"\n| {verdict} | {verdicts.count(verdict)} | " in text
    assert text.count("\n- Section ") == verdicts.count("open") > 0
    rows = [line for line in text.splitlines() if "<br>{doc}`" in line]
    assert [line.count(" | ") for line in rows] == [4] * len(ROWS)
    # what a chapter alone found stands where it differs from the study's
    both = re.findall(r"([^|<>]+) \\\[([^|<>]+)\\\]", text)
    assert both and all(study != alone for study, alone in both)
    chapters = {row["chapter"] for row in ROWS.values()}
    assert ledger.page(ROOT, ROOT / "tests").count(": not run.") == len(chapters)


def test_rows_on_which_two_runs_differ(results, tmp_path):
    ours = results / "poisson_contraction"
    assert ledger.changed(ROOT, ours.name, ours, ours) == []
    other = read(results)[ours.name]
    other["values"]["mean"]["value"] = 50.0
    (tmp_path / "values.json").write_text(json.dumps(other))
    says = ROWS["simulation-mean"]["says"], "not comparable", "same setting"
    assert says in ledger.changed(ROOT, ours.name, tmp_path, ours)
    # what neither run decides has not changed
    rows = ledger.changed(ROOT, ours.name, tmp_path / "none", ours)
    assert {mine for _, mine, _ in rows} == {"not computed"}
    assert not {book for *_, book in rows} & {"not computed", "not comparable"}
