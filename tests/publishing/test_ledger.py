"""The ledger: every verdict is computed, and wrong values change it."""

import copy

import numpy as np
import pytest
import yaml
from conftest import ROOT

from ppm.publishing import claims, ledger, rules
from ppm.publishing.claims import Claim, LedgerError, load_ledger
from ppm.publishing.ledger import judge
from ppm.publishing.ledger_values import measured
from ppm.publishing.notebooks import find_notebooks
from ppm.publishing.rules import power_law, share_power_law

PUBLISHED = ROOT / "book" / "published.yaml"
CLAIMS = load_ledger(PUBLISHED, find_notebooks(ROOT))


def verdict(
    rule, *entries, published=None, needs=None, unlike=None, data="drawn", construction="",
    **options,
):
    """Row of a claim about the values a, b, … of a chapter."""
    values = dict(zip("abcd", entries, strict=False))
    claim = Claim(
        "x", "4.5", "text", "It is so.", "study", rule, tuple(values), published, options,
        needs or {}, unlike or {}, by_construction=construction,
    )
    (row,) = judge([claim], {"study": {"data": data, "values": values}})
    return row


def number(value, error=0.0, **told):
    return measured(value, error, **told)


# ------------------------------------------------------------------------------ rule by rule

SIZES = number([100, 400, 1600, 6400])


def powers(exponent, error=0.02):
    values = np.power([100.0, 400.0, 1600.0, 6400.0], exponent)
    return number(values, error * values)


@pytest.mark.parametrize(
    ("good", "wrong"),
    [
        (
            ("near", [number(10.29, 0.1)], {"published": 10.0, "tolerance": 0.5}),
            # further off; near, but not surely; as near, but by luck
            [[number(10.9, 0.1)], [number(10.31, 0.1)], [number(10.29, 5.0)],
             [number([10.3, 10.3])]],
        ),
        (
            ("near", [number([9.5, 2.1])], {"published": [10.0, 2.0], "relative": 0.1}),
            [[number([9.5, 2.3])], [number([2.1, 9.5])]],
        ),
        (("greater", [number(3.0, 0.4), number(2.0, 0.2)], {}),
         [[number(3.0, 0.5), number(2.0, 0.2)], [number(2.0), number(3.0)]]),
        (("greater", [number([3.0, 4.0], 0.1)], {"than": 2.5}), [[number([3.0, 2.4], 0.1)]]),
        (("greater", [number(5.0), number(2.0)], {"factor": 2}), [[number(3.9), number(2.0)]]),
        # half of a number has half of its error
        (("less", [number(1.2), number(5.0, 0.8)], {"factor": 0.5}),
         [[number(1.2), number(5.0, 1.5)]]),
        (("less", [number(2.0, 0.2), number(3.0, 0.4)], {}),
         [[number(3.0), number(2.0)], [number(2.0, 0.2), number(3.0, 0.5)]]),
        (("between", [number([0.9, 1.1], 0.04)], {"low": 0.8, "high": 1.2}),
         [[number([0.7, 1.1])], [number([0.9, 1.3])], [number([0.9, 1.1], 0.06)]]),
        (("increasing", [number([1, 2, 2.3, 3], 0.1)], {}),
         [[number([1, 2, 1.6, 3], 0.1)], [number([3, 2, 1, 0], 0.1)], [number([1, 1.2], 0.1)],
          # it rises as a whole, and no step surely falls: neither is enough
          [number([1, 2, 1.9, 3], 0.1)], [number([1, 2, 2.2, 3], 0.1)]]),
        (("decreasing", [number(3, 0.1), number(2, 0.1), number(1, 0.1)], {}),
         [[number(1), number(2), number(3)], [number(3, 2), number(2, 2), number(1, 2)]]),
        (("decreasing", [number([3.1, 3.6, 3.45])], {"towards": 3.5}),
         [[number([3.1, 3.0, 2.9])], [number([3.1, 3.95, 3.45])]]),
        (("reduction", [number([10.1, 7.0, 2.25], 0.05)], {"published": 0.8, "tolerance": 0.1}),
         [[number([10.1, 7.0, 5.0])], [number([2.25, 10.1])], [number([10.1, 2.25], 3.0)]]),
        (("rate", [SIZES, powers(-0.5)], {"published": -0.5, "tolerance": 0.1}),
         [[SIZES, powers(-0.3)], [SIZES, powers(-1)], [SIZES, powers(-0.5, 2.0)],
          [SIZES, powers(-0.59)], [SIZES, powers(-0.41)]]),
        (("rate", [SIZES, powers(-0.8)], {"published": -0.5, "tolerance": 0.1, "at_most": True}),
         [[SIZES, powers(-0.3)], [SIZES, powers(0.0)], [SIZES, powers(-0.8, 9.0)],
          [SIZES, powers(-0.41)]]),
        (("faster", [SIZES, powers(-0.5), powers(-0.4)], {}),
         [[SIZES, powers(-0.4), powers(-0.5)], [SIZES, powers(-0.5), powers(-0.49)]]),
        (("share_rate", [SIZES, measured([0.4, 0.2, 0.1, 0.05], of=1000)],
          {"published": -0.5, "tolerance": 0.2}),
         [[SIZES, measured([0.4, 0.4, 0.4, 0.4], of=1000)],
          [SIZES, measured([0.4, 0.02, 0.0, 0.0], of=1000)],
          [SIZES, measured([0.4, 0.2, 0.1, 0.05], of=20)]]),
        (("share_rate", [SIZES, measured([0.4, 0.02, 0.0, 0.0], of=1000)],
          {"published": -0.5, "tolerance": 0.2, "at_most": True}),
         [[SIZES, measured([0.4, 0.4, 0.4, 0.4], of=1000)],
          [SIZES, measured([0.4, 0.2, 0.1, 0.05], of=5)]]),
    ],
    ids=lambda case: case[0] if isinstance(case, tuple) else "",
)
def test_each_rule_holds_for_right_values_and_not_for_wrong_ones(good, wrong):
    rule, entries, options = good
    row = verdict(rule, *entries, **options)
    assert row.verdict == "reproduced", row.reason
    for values in wrong:
        row = verdict(rule, *values, **options)
        assert row.verdict == "not reproduced", values
        assert row.reason


def test_a_number_that_may_lie_outside_the_tolerance_is_not_reproduced():
    """12.0 ± 0.5 against 10.1 ± 10 %: neither surely within the tolerance, nor surely outside."""
    row = verdict("near", number(12.0, 0.5), published=10.1, relative=0.1)
    assert (row.verdict, row.open) == ("not reproduced", True)
    assert row.reason.startswith("differs by 1.900 ± 0.50, not surely within the tolerance 1.01;")
    row = verdict("near", number(12.2, 0.5), published=10.1, relative=0.1)
    assert row.reason == "differs by 2.100 ± 0.50, more than the tolerance 1.01"
    row = verdict("near", number(10.1, 0.5), published=10.1, relative=0.1)
    assert row.reason == "differs by 0 ± 0.50, within the tolerance 1.01"
    # a share by which something falls is judged alike
    for last, error, expected in ((2.0, 0.1, "reproduced"), (2.9, 0.1, "not reproduced")):
        row = verdict(
            "reduction", number([10.0, last], [0.0, error]), published=0.8, tolerance=0.1
        )
        assert row.verdict == expected
    assert row.open


def test_the_error_of_a_reduction_is_that_of_the_ratio():
    row = verdict(
        "reduction", number([10.0, 7.0, 2.5], [0.5, 9.0, 0.25]), published=0.8, tolerance=0.1
    )
    # 0.25 times the root of 0.1² + 0.05²
    assert row.ours == ("0.75 ± 0.028",)


OPEN_AND_REFUTED = [
    ("less", [number(2.5, 0.5)], [number(2.5, 0.1)], {"than": 2.0}),
    ("greater", [number(2.5, 0.5)], [number(1.5, 0.1)], {"than": 2.0}),
    ("between", [number(0.5, 0.3)], [number(1.5, 0.1)], {"low": 0.0, "high": 1.0}),
    ("near", [number(10.0, 1.0)], [number(12.0, 0.1)], {"published": 10.0, "tolerance": 1.0}),
    ("increasing", [number([1.0, 2.0], 0.6)], [number([2.0, 1.0], 0.1)], {}),
    ("decreasing", [number([2.0, 1.0], 0.6)], [number([1.0, 2.0], 0.1)], {}),
    # each step is judged by the errors of both its ends
    ("increasing", [number([1.0, 1.7], 0.3)], [number([1.0, 0.1], 0.3)], {}),
    ("reduction", [number([10.0, 2.0], 0.6)], [number([10.0, 5.0], 0.6)],
     {"published": 0.8, "tolerance": 0.1}),
    ("rate", [SIZES, powers(-0.5, 0.2)], [SIZES, powers(0.0, 0.2)],
     {"published": -0.5, "tolerance": 0.1}),
    # an upper limit: surely slower is refuted, and nothing else
    ("rate", [SIZES, powers(-0.42, 0.1)], [SIZES, powers(-0.3, 0.1)],
     {"published": -0.5, "tolerance": 0.1, "at_most": True}),
    ("rate", [SIZES, powers(-0.38, 0.1)], [SIZES, powers(0.2, 0.1)],
     {"published": -0.5, "tolerance": 0.1, "at_most": True}),
    ("share_rate", [SIZES, measured([0.4, 0.2, 0.1, 0.05], of=20)],
     [SIZES, measured([0.1, 0.2, 0.3, 0.4], of=1000)], {"published": -0.5, "tolerance": 0.1}),
    ("faster", [SIZES, powers(-0.5, 0.2), powers(-0.4, 0.2)],
     [SIZES, powers(-0.5), powers(-1.0)], {}),
    # either curve's error is enough
    ("faster", [SIZES, powers(-0.5, 0.2), powers(-0.4)], [SIZES, powers(-0.3), powers(-0.4)], {}),
    ("faster", [SIZES, powers(-0.5), powers(-0.4, 0.2)], [SIZES, powers(-0.3), powers(-0.4)], {}),
    # one comparison that surely fails settles it, however uncertain another is
    ("greater", [number([3.0, 0.0], [0.1, 10.0])], [number([1.0, 0.0], [0.1, 10.0])],
     {"than": 2.0}),
    ("near", [number([10.0, 2.0], [0.1, 9.0])], [number([15.0, 2.0], [0.1, 9.0])],
     {"published": [10.0, 2.0], "tolerance": 1.0}),
    ("decreasing", [number([3.0, 2.0, 1.9], [0.1, 0.1, 5.0])],
     [number([3.0, 4.0, 3.9], [0.1, 0.1, 5.0])], {}),
]


@pytest.mark.parametrize(("rule", "undecided", "refuted", "options"), OPEN_AND_REFUTED)
def test_what_monte_carlo_error_leaves_open_is_told_from_what_is_refuted(
    rule, undecided, refuted, options
):
    for entries, is_open in ((undecided, True), (refuted, False)):
        row = verdict(rule, *entries, **options)
        assert (row.verdict, row.open) == ("not reproduced", is_open), row.reason
        assert ("would decide it" in row.reason) == is_open


OF_ALL_KINDS = {
    "near": {"published": [1.0, 2.0, 3.0, 4.0], "tolerance": 1.0},
    "greater": {"than": 1.5}, "less": {"than": 1.5, "factor": 1.2},
    "between": {"low": 0.0, "high": 3.0}, "increasing": {}, "decreasing": {"towards": 1.0},
    "reduction": {"published": 0.5, "tolerance": 0.3},
    "rate": {"published": -0.5, "tolerance": 0.4},
    "share_rate": {"published": -0.5, "tolerance": 0.4, "at_most": True}, "faster": {},
}


@pytest.mark.parametrize("rule", sorted(ledger.RULES.keys() - {"setting", "rows", "cited"}))
def test_a_settled_verdict_is_the_one_that_the_same_numbers_without_error_have(rule):
    """No row is both, and smaller errors about the same numbers overturn no settled verdict."""
    rng = np.random.default_rng(11)
    options, seen = OF_ALL_KINDS[rule], set()
    # the intervals of shares take long
    for _ in range(40 if rule == "share_rate" else 300):
        base = rng.uniform(0.0, 3.0, size=4) if rng.random() < 0.6 else 1.0 + np.arange(4.0)
        if rule in ("rate", "faster"):
            base = 3.0 * np.power([100.0, 400.0, 1600.0, 6400.0], rng.uniform(-1.2, 0.2))
        if rule == "increasing" or rng.random() < 0.5:
            base = np.sort(base)
        base = base if rng.random() < 0.5 else base[::-1]
        error = 10.0 ** rng.uniform(-3, 0, size=4) * base
        rows = []
        for shrink in (1.0, 0.1, 0.0):
            entries = [number(base, shrink * error)]
            if rule in ("rate", "faster"):
                entries = [SIZES, *entries]
            if rule == "faster":
                entries.append(powers(-0.5, 0.0))
            if rule == "share_rate":
                # of more and more, where the other rules have smaller and smaller errors
                of = {1.0: 40, 0.1: 4000, 0.0: 400000}[shrink]
                entries = [SIZES, measured(np.clip(base / 3.0, 0.05, 1.0), of=of)]
            rows.append(verdict(rule, *entries, **options))
        for row in rows:
            assert not (row.verdict == "reproduced" and row.open)
            assert row.verdict in ("reproduced", "not reproduced")
        for wide, narrow in zip(rows, rows[1:], strict=False):
            if not wide.open and rule != "share_rate":
                assert (narrow.verdict, narrow.open) == (wide.verdict, False)
        if rule != "share_rate":
            assert not rows[-1].open
        seen |= {row.spoken for row in rows}
    assert seen == {"reproduced", "not reproduced", "not reproduced (open)"}


@pytest.mark.parametrize("rule", ["near", "greater", "between", "increasing", "rate"])
def test_a_run_as_large_as_the_open_row_asks_for_decides_it(rule):
    """Errors fall with the root of the run; the number is the smallest that decides."""
    rng = np.random.default_rng(12)
    tried = 0
    while tried < 40:
        base = np.sort(rng.uniform(0.0, 3.0, size=4)) + 0.05
        error = 10.0 ** rng.uniform(-1, 0, size=4) * base
        before = [SIZES] if rule == "rate" else []

        def row_with(times, base=base, error=error, before=before):
            entry = number(base, error / np.sqrt(times), sample=(1000, "databases"))
            return verdict(rule, *before, entry, **OF_ALL_KINDS[rule])

        row = row_with(1.0)
        if not row.open:
            continue
        tried += 1
        wanted = float(row.reason.split("about ")[1].split(" databases would")[0].replace(",", ""))
        assert "(here 1,000)" in row.reason
        # rounded up to two digits
        assert not row_with(wanted / 1000 * 1.0001).open
        assert row_with(wanted / 1000 / 1.12).open


def test_what_no_run_would_decide_is_said():
    row = verdict("greater", number(2.0, 0.1, sample=(400, "databases")), than=2.0)
    assert row.reason.endswith("; no run that could be made would decide it")
    row = verdict("greater", number(2.1, 0.1), than=2.0)
    assert row.reason.endswith("; about 4 times the run would decide it")


@pytest.mark.parametrize("rule", sorted(OF_ALL_KINDS.keys() - {"rate", "share_rate", "faster"}))
@pytest.mark.parametrize("error", [np.nan, None, [0.1, np.nan, 0.1, 0.1]])
def test_an_unknown_error_is_not_taken_for_exact(rule, error):
    options = OF_ALL_KINDS[rule]
    entry = {**number([1.0, 2.0, 3.0, 4.0]), "error": error}
    row = verdict(rule, entry, **options)
    assert row.verdict == "not computed"
    assert row.reason == "the Monte Carlo error of a is unknown"
    doubtful = verdict(rule, {**entry, "doubt": "too few"}, **options)
    assert doubtful.reason == "the Monte Carlo error of a is unknown: too few"
    assert "± unknown" in "".join(row.ours)
    # the number of a setting has none
    assert verdict("setting", {"value": 3, "error": None}, published=3).verdict == "same setting"


def test_a_share_without_its_trials_is_not_computed():
    row = verdict("share_rate", SIZES, number([0.4, 0.2, 0.1, 0.1]), published=-0.5, tolerance=0.2)
    assert (row.verdict, row.reason) == (
        "not computed", "the chapter did not say of how many b is a share"
    )


def test_what_cannot_fail_is_no_finding():
    why = "it is defined so"
    row = verdict("greater", number(1.0), than=0, construction=why)
    assert (row.verdict, row.reason, row.open) == ("by construction", why, False)
    # it failed all the same: that is the book's defect, and counts against it
    row = verdict("greater", number(-1.0, 0.1), than=0, construction=why)
    assert (row.verdict, row.open) == ("not reproduced", False)
    assert row.reason.endswith("it holds by construction, so that this shows a defect of the book")
    # there is nothing for a longer run to decide
    row = verdict("greater", number(1.0, 5.0), than=0, construction=why)
    assert (row.verdict, row.open) == ("by construction", False)
    assert row.reason.startswith(why) and "not surely above" in row.reason
    # a value that is missing, or another survey, comes first
    assert verdict("greater", None, than=0, construction=why).verdict == "not computed"
    row = verdict("greater", number(1.0), than=0, construction=why, unlike={"drawn": "other data"})
    assert row.verdict == "not comparable"


def test_the_larger_study_judges_and_the_chapter_stands_beside():
    claims = [
        Claim("low", "4.5", "t", "s", "c", "less", ("a",), None, {"than": 2}),
        Claim("alone", "4.5", "t", "s", "c", "less", ("b",), None, {"than": 2}),
        Claim("size", "4.5", "t", "s", "c", "setting", ("n",), 400),
        Claim("other", "4.5", "t", "s", "c", "less", ("a",), None, {"than": 2}, {"n": 400}),
        Claim("all", "4.5", "t", "s", "c", "rows", options={"rows": ["low"]}),
    ]
    chapter = {"a": number(1.9, 0.2), "b": number(1.0), "n": number(400)}
    larger = {"a": number(1.8, 0.01), "n": number(80000)}
    computed, more = ({"c": {"data": "drawn", "values": v}} for v in (chapter, larger))
    before = {row.claim.id: row for row in judge(claims, computed)}
    assert before["low"].open and before["all"].open
    rows = {row.claim.id: row for row in judge(claims, computed, more)}
    assert (rows["low"].verdict, rows["low"].ours, rows["low"].beside, rows["low"].alone) == (
        "reproduced", ("1.8 ± 0.010",), ("1.9 ± 0.20",), "not reproduced (open)"
    )
    assert rows["all"].verdict == "reproduced"
    # what the larger study does not have, and how the chapter was run, are the chapter's
    assert (rows["alone"].verdict, rows["alone"].beside) == ("reproduced", ())
    assert rows["size"].verdict == "same setting"
    assert rows["other"] == before["other"]
    chapter["n"], larger["n"] = number(100), number(400)
    assert judge([claims[2]], computed, more)[0].verdict == "not comparable"
    # where both agree there is nothing to say about the chapter alone
    chapter["a"] = number(1.0, 0.1)
    assert judge(claims, computed, more)[0].alone == ""


def test_another_setting_is_not_comparable():
    assert verdict("setting", number(400), published=400).verdict == "same setting"
    row = verdict("setting", number(100), published=400)
    assert (row.verdict, row.reason) == ("not comparable", "run with a = 100; the paper has 400")
    row = verdict("less", number(1), than=2, needs={"b": 3})
    assert (row.verdict, row.reason) == ("not computed", "the chapter did not compute b")
    row = verdict("less", number(1), number(4), needs={"b": 3})
    assert row.verdict == "not comparable"
    assert verdict("less", number(1), number(3), needs={"b": 3}).verdict == "reproduced"


def test_other_data_are_not_comparable_and_the_value_is_shown():
    unlike = {"diary": "another survey"}
    row = verdict("less", number(1.5, 0.1), than=2, unlike=unlike, data="diary")
    assert (row.verdict, row.reason, row.ours) == (
        "not comparable", "another survey", ("1.5 ± 0.10",)
    )
    assert verdict("less", number(1.5), than=2, unlike=unlike, data="interview").verdict == (
        "reproduced"
    )


@pytest.mark.parametrize("entry", [None, {"value": None, "error": 0}, {"value": [1, None]}])
def test_a_value_that_is_missing_is_not_computed(entry):
    assert verdict("less", entry, than=2).verdict == "not computed"


def test_a_chapter_that_was_not_run_is_not_computed():
    rows = judge(CLAIMS, {})
    assert {row.verdict for row in rows} == {"not computed", "not comparable"}
    # what no run can compare
    assert {row.claim.rule for row in rows if row.verdict == "not comparable"} == {"cited"}


def test_a_conclusion_is_as_good_as_its_worst_part():
    def conclusion(*values):
        parts = [
            Claim(
                f"p{i}", "5.2", "t", "s", "c", "less", (f"v{i}",), None, {"than": 1},
                not_comparable={"drawn": "other data"} if value == "other" else {},
            )
            for i, value in enumerate(values)
        ]
        whole = Claim("w", "5.2", "t", "s", "c", "rows", options={"rows": [p.id for p in parts]})
        found = {
            f"v{i}": number(*value) if isinstance(value, tuple) else number(value)
            for i, value in enumerate(values)
            if value not in (None, "other")
        }
        row = judge([whole, *parts], {"c": {"data": "drawn", "values": found}})[0]
        assert row.reason.endswith(" open: see there") == row.open
        return row.spoken

    assert conclusion(0, 0) == "reproduced"
    assert conclusion(0, 2) == "not reproduced"
    assert conclusion(0, None) == "not computed"
    assert conclusion(2, None) == "not reproduced"
    assert conclusion(0, "other") == "not comparable"
    assert conclusion("other", None, 0) == "not computed"
    assert conclusion("other", 2) == "not reproduced"
    # a part that fails settles it; one that is open leaves it open
    unsure = (0.9, 1.0)
    assert conclusion(0, unsure) == "not reproduced (open)"
    assert conclusion(unsure, unsure) == "not reproduced (open)"
    assert conclusion(2, unsure) == "not reproduced"


# ------------------------------------------------------------------------------------- rates


def test_the_interval_of_a_rate_covers_and_narrows():
    rng = np.random.default_rng(4)
    sizes = np.array([100.0, 400.0, 1600.0, 6400.0])
    truth, error = 3.0 * sizes**-0.5, np.array([0.05, 0.02, 0.08, 0.03])
    covered = 0
    for _ in range(1000):
        values = truth * np.exp(error * rng.standard_normal(4))
        _, low, high = power_law(sizes, values, error * values)
        covered += low <= -0.5 <= high
    # two standard errors
    assert covered / 1000 == pytest.approx(0.954, abs=0.02)
    narrow, wide = (power_law(sizes, truth, e * truth) for e in (0.01, 0.1))
    assert narrow[0] == pytest.approx(-0.5)
    assert (wide[2] - wide[1]) == pytest.approx(10 * (narrow[2] - narrow[1]))
    # a bend is no Monte Carlo error: the average slope is as sure as before
    bent = truth * np.array([1.0, 2.0, 2.0, 1.0])
    slope, low, high = power_law(sizes, bent, 0.01 * bent)
    assert slope == pytest.approx(-0.5)
    assert high - low == pytest.approx(narrow[2] - narrow[1])
    row = verdict("rate", SIZES, number(bent, 0.01 * bent), published=-0.5, tolerance=0.1)
    assert row.verdict == "reproduced"
    assert row.reason.endswith("step by step 0, −0.5, −1")


def test_the_interval_of_a_share_rate_covers():
    rng = np.random.default_rng(5)
    sizes = np.array([100, 400, 1600, 6400])
    share = 4.0 * sizes**-0.5
    covered = 0
    for _ in range(150):
        slope, low, high = share_power_law(sizes, rng.binomial(300, share), 300)
        assert low <= slope <= high
        covered += low <= -0.5 <= high
    assert covered / 150 > 0.9
    # zeros are no obstacle, and constant shares have exponent 0
    assert share_power_law(sizes, [38, 2, 0, 0], 400)[2] < -1
    slope, low, high = share_power_law(sizes, [100, 100, 100, 100], 400)
    assert low < 0 < high and slope == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_share_rate_is_cut_at_one(sign):
    """400 / n is above 1 at the first size: -1, and -0.36 for a law that has to stay below 1."""
    sizes = np.array([100.0, 400.0, 1600.0, 6400.0])
    counts = [400, 400, 100, 25]
    slope, low, high = share_power_law(sizes**-sign, counts, 400)
    assert slope == pytest.approx(sign, abs=0.01) and low < sign < high
    # where no share is near 1 there is nothing to cut
    slope = share_power_law(sizes**sign, [320, 80, 20, 5], 400)[0]
    assert slope == pytest.approx(-sign, abs=0.01)


def test_a_limit_of_an_exponent_is_decided_where_the_interval_ends():
    """The interval of a share's exponent is lopsided: the half on the limit's side counts."""
    share = measured([0.3, 0.2, 0.05, 0.0], of=40)
    slope, low, high = share_power_law(SIZES["value"], [12, 8, 2, 0], 40)
    assert slope - low > 1.2 * (high - slope)
    settled, is_open = ("reproduced", "not reproduced"), "not reproduced (open)"
    for sign, beyond in ((1.0, high), (-1.0, low)):
        before = low if sign > 0 else high
        cases = [
            (beyond + sign * 0.01, settled[0]), (beyond - sign * 0.01, is_open),
            (before + sign * 0.01, is_open), (before - sign * 0.01, settled[1]),
        ]
        for limit, expected in cases:
            # the other limit lies far away
            options = {"published": limit - sign * 50.0, "tolerance": 50.0}
            assert verdict("share_rate", SIZES, share, **options).spoken == expected
            if sign > 0:
                row = verdict("share_rate", SIZES, share, **options, at_most=True)
                assert row.spoken == expected


@pytest.mark.parametrize(
    "arguments", [([1, 2], [1, 2], [1, 1]), ([1, 2, 3], [1, 0, 2], [1, 1, 1])]
)
def test_no_rate_from_too_little(arguments):
    with pytest.raises(ValueError, match="three points"):
        power_law(*arguments)
    with pytest.raises(ValueError, match="something that happened"):
        share_power_law([1, 2], [0, 0], 10)
    with pytest.raises(ValueError, match="not always"):
        share_power_law([1, 2], [10, 10], 10)


# ---------------------------------------------------------------------------- the real file


def satisfying(claim):
    """Values under which the rule of a claim holds."""
    options, published = claim.options, claim.published
    numbers = np.atleast_1d(np.asarray(published if published is not None else 0.0, dtype=float))
    if claim.rule in ("near", "setting"):
        return [number(numbers)]
    if claim.rule in ("greater", "less"):
        sign = 1.0 if claim.rule == "greater" else -1.0
        if "than" in options:
            return [number([options["than"] + sign * 2.0])]
        return [number([6.0 + sign * 5.5], 0.01), number([6.0 - sign * 5.5], 0.01)]
    if claim.rule == "between":
        low = options.get("low", options.get("high", 0.0) - 1.0)
        return [number([(low + options.get("high", low + 1.0)) / 2])]
    if claim.rule in ("increasing", "decreasing"):
        rising = np.arange(1.0, 5.0)
        away = rising if claim.rule == "increasing" else rising[::-1]
        return [number(options.get("towards", 0.0) + away, 0.01)]
    if claim.rule == "reduction":
        return [number([10.0, 10.0 * (1.0 - published)])]
    if claim.rule == "rate":
        return [SIZES, powers(published)]
    if claim.rule == "faster":
        return [SIZES, powers(-0.5), powers(0.1)]
    if claim.rule == "share_rate":
        shares = np.power([1.0, 4.0, 16.0, 64.0], published - 0.01) * 0.4
        return [SIZES, measured(shares, of=40000)]
    raise AssertionError(claim.rule)


def computed_for(claims):
    """For every chapter, values under which these claims hold; each claim has its own names."""
    chapters, own = {}, []
    for claim in claims:
        values = chapters.setdefault(claim.chapter, {"data": "interview", "values": {}})["values"]
        if claim.rule in ("rows", "cited"):
            own.append(claim)
            continue
        names = tuple(f"{claim.id}: {name}" for name in claim.values)
        for name, wanted in claim.needs.items():
            values[name] = number(wanted)
        values.update(zip(names, satisfying(claim), strict=True))
        unlike = {k: v for k, v in claim.not_comparable.items() if k != "all"}
        fields = {**claim.__dict__, "values": names, "not_comparable": unlike}
        own.append(Claim(**fields))
    return own, chapters


# without looking at the rule: what may befall a value
BLIND = (
    lambda v, e: (-v - 1.0, e),
    lambda v, e: (v * 30.0 + 7.0, e),
    lambda v, e: (v / 30.0 - 7.0, e),
    lambda v, e: (v[::-1], e[::-1]),
    lambda v, e: (np.abs(v[::-1]) ** 0.2, e),
    lambda v, e: (v, e + 1e4),
    lambda v, e: (np.full_like(v, np.nan), e),
)
JUDGED = [claim for claim in CLAIMS if claim.rule not in ("rows", "cited")]


def flips(entry, change):
    value, error = (np.atleast_1d(np.asarray(entry[k], dtype=float)) for k in ("value", "error"))
    new = dict(zip(("value", "error"), change(value, error), strict=True))
    return measured(new["value"], new["error"], of=entry.get("of"))


@pytest.mark.parametrize("claim", JUDGED, ids=lambda claim: claim.id)
def test_every_row_turns_when_its_values_are_wrong(claim):
    (own,), chapters = computed_for([claim])
    (row,) = judge([own], chapters)
    expected = "by construction" if claim.by_construction else "reproduced"
    expected = "same setting" if claim.rule == "setting" else expected
    assert row.verdict == expected, row.reason
    seen = set()
    for name in own.values:
        values = chapters[own.chapter]["values"]
        verdicts = set()
        for change in BLIND:
            changed = {"data": "interview", "values": {**values, name: flips(values[name], change)}}
            verdicts.add(judge([own], {own.chapter: changed})[0].verdict)
        # each of the values by itself decides
        assert "not computed" in verdicts
        if not (claim.rule.endswith("rate") and name.endswith(": sizes")):
            # over other sizes there is no rate to judge
            assert verdicts & {"not reproduced", "not comparable"}, name
        seen |= verdicts
    if claim.rule != "setting":
        assert "not reproduced" in seen


@pytest.mark.parametrize(
    "claim", [claim for claim in CLAIMS if claim.needs], ids=lambda claim: claim.id
)
def test_a_run_with_other_settings_is_not_comparable(claim):
    (own,), chapters = computed_for([claim])
    for name, wanted in own.needs.items():
        values = dict(chapters[own.chapter]["values"])
        values[name] = number(np.asarray(wanted) + 1)
        (row,) = judge([own], {own.chapter: {"data": "interview", "values": values}})
        assert row.verdict == "not comparable"
        assert name in row.reason


def test_values_that_do_not_fit_a_rule_are_not_judged():
    sizes, none = number([100, 400, 1600, 6400]), {**number([0, 0, 0, 0], 0.01), "of": 400}
    row = verdict("share_rate", sizes, none, published=-0.5, tolerance=0.1, at_most=True)
    # nothing was counted, which agrees with every upper limit
    assert row.verdict == "not computed" and "something that happened" in row.reason
    row = verdict("rate", sizes, number([0, 1, 2, 3], 0.1), published=0.5, tolerance=0.1)
    assert row.verdict == "not computed"
    assert verdict("increasing", number([1.0])).verdict == "not computed"
    row = verdict("less", number([1.0, 2.0, 3.0]), number([4.0, 5.0]))
    assert row.verdict == "not computed" and row.reason == "3 numbers against 2"


def test_conclusions_follow_their_rows():
    own, chapters = computed_for(CLAIMS)
    verdicts = {row.claim.id: row.verdict for row in judge(own, chapters)}
    for claim in own:
        if claim.rule == "rows":
            assert verdicts[claim.id] == "reproduced"
            part = next(c for c in own if c.id == claim.options["rows"][-1])
            wrong = copy.deepcopy(chapters)
            name = part.values[0]
            entry = wrong[part.chapter]["values"][name]
            wrong[part.chapter]["values"][name] = flips(entry, BLIND[3 if len(
                np.atleast_1d(entry["value"])) > 1 else 1])
            again = {row.claim.id: row.verdict for row in judge(own, wrong)}
            assert again[claim.id] == "not reproduced"


@pytest.mark.parametrize("kind", ["simulated", "diary", "other"])
def test_published_numbers_of_the_survey_are_compared_with_the_papers_sample_only(kind):
    numbers = [c for c in CLAIMS if c.id.startswith("delta-") and c.rule == "near"]
    assert {tuple(np.atleast_1d(c.published)) for c in numbers} == {
        (78.7,), (10.1,), (10.2,), (11.17,), (10.10, 8.16, 7.30, 6.09, 5.71, 2.25),
    }
    for claim in numbers:
        (own,), chapters = computed_for([claim])
        chapters[claim.chapter]["data"] = kind
        (row,) = judge([own], chapters)
        assert row.verdict == "not comparable"
        assert "stand-in" in row.reason or "other data" in row.reason


def test_the_ledger_holds_all_sections():
    sections = {claim.section for claim in CLAIMS}
    assert sections == {
        "1", "4.1", "4.2", "4.3", "4.5", "4.6", "5.1", "5.2", "5.3", "6"
    }
    # no verdict can be written into the file
    assert not {"verdict", "ours"} & claims._ROW["properties"].keys()


def test_every_rate_is_read_as_a_rate_and_as_an_upper_limit():
    rates = [c for c in CLAIMS if c.rule in ("rate", "share_rate") and c.published < 0]
    readings = {}
    for claim in rates:
        readings.setdefault((claim.values, claim.published), []).append(claim.options)
    assert len(readings) == 4
    for both in readings.values():
        assert sorted(options.get("at_most", False) for options in both) == [False, True]
        # the same allowance, so that what is reproduced as a rate is so as a limit
        assert len({options["tolerance"] for options in both}) == 1


def test_what_cannot_come_out_otherwise_is_set_apart():
    apart = {claim.id for claim in CLAIMS if claim.by_construction or claim.rule == "setting"}
    assert apart == {
        "simulation-sizes", "simulation-replicates", "simulation-mean", "simulation-threshold",
        "configuration-first", "releases", "ce-predictors", "emweighted-same-bound",
        "emweighted-one-weight", "dpweighted-own-weights", "total-expenditure", "scale-compresses",
        "shift-lowers", "weights-cut",
    }


# ---------------------------------------------------------------------------- what is refused

ROW = {
    "id": "a", "section": "4.5", "where": "text", "says": "It is so.", "chapter": "study",
    "rule": "less", "values": ["x"], "than": 2,
}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"verdict": "reproduced"}, "('verdict' was unexpected)"),
        ({"says": ""}, "says: '' must be a text that is not empty"),
        ({"rule": "lesser"}, "rule: 'lesser' is not one of ['near', "),
        ({"chapter": "other"}, "unknown chapter 'other'"),
        ({"values": "x"}, "values: 'x' is not of type 'array'"),
        ({"values": []}, "takes 1 or 2 values; got 0"),
        ({"values": ["x", "y"]}, "needs two values, or one and than"),
        ({"than": "two"}, "than: 'two' is not of type 'number'"),
        ({"tolerance": 1}, "has no option tolerance"),
        ({"rule": "near", "than": None}, "needs published"),
        ({"published": "10"}, "published: '10' is not"),
        ({"not_comparable": {"sky": "why"}}, "not_comparable: 'sky' is not one of"),
        ({"not_comparable": {"diary": "no"}}, "there is no reason 'no'"),
        ({"rule": "rate", "values": ["x", "y"], "published": 1}, "needs tolerance"),
        (
            {"rule": "reduction", "published": [1, 2], "tolerance": 1, "than": None},
            "takes one published number",
        ),
        ({"needs": {"sizes": "all"}}, "needs: sizes: 'all' is not"),
        ({"needs": [1]}, "needs: [1] is not of type 'object'"),
        ({"by_construction": True}, "by_construction: True is not of type"),
        ({"by_construction": " "}, "by_construction: ' ' must be a text"),
        (
            {"rule": "setting", "published": 1, "than": None, "by_construction": "so"},
            "rule setting takes no by_construction",
        ),
    ],
)
def test_a_wrong_row_is_refused_in_one_line(tmp_path, change, told):
    def write(row):
        path = tmp_path / "published.yaml"
        path.write_text(yaml.safe_dump({"reasons": {"why": "because"}, "rows": [row]}))
        return path

    assert load_ledger(write(ROW), ["study"])[0].id == "a"
    row = {key: value for key, value in {**ROW, **change}.items() if value is not None}
    with pytest.raises(LedgerError, match=r"^published\.yaml, row a: [^\n]*$") as caught:
        load_ledger(write(row), ["study"])
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("rows: [", "cannot be read"),
        ("reasons: {}", "must hold a list of rows"),
        ("rows: [3]", "row 1: 3 is not of type 'object'"),
        (yaml.safe_dump({"rows": [ROW, ROW]}), "row a: its id is used twice"),
        (
            yaml.safe_dump({"rows": [
                {**{k: v for k, v in ROW.items() if k not in ("values", "than")},
                 "rule": "rows", "rows": ["b"]},
            ]}),
            "rows: 'b' is no other row",
        ),
        *(
            (yaml.safe_dump({"reasons": {"why": "because"}, "rows": [
                part,
                {**{k: v for k, v in ROW.items() if k not in ("values", "than")},
                 "id": "b", "rule": "rows", "rows": ["a"]},
            ]}), told)
            for part, told in (
                ({**ROW, "by_construction": "so"}, "rows: 'a' is no finding"),
                (
                    {**{k: v for k, v in ROW.items() if k != "than"}, "rule": "setting",
                     "published": 2},
                    "rows: 'a' is no finding",
                ),
                (
                    {**{k: v for k, v in ROW.items() if k not in ("values", "than")},
                     "rule": "cited", "not_comparable": {"all": "why"}},
                    "rows: 'a' computes nothing itself",
                ),
            )
        ),
    ],
)
def test_a_file_that_is_wrong_is_refused_in_one_line(tmp_path, text, told):
    path = tmp_path / "published.yaml"
    path.write_text(text)
    with pytest.raises(LedgerError, match=r"^published\.yaml[^\n]*$") as caught:
        load_ledger(path)
    assert told in str(caught.value)


def test_numbers_are_shown_with_the_digits_that_count():
    assert rules.shown([6208, -7000, 0.5, 10.1, 1234.5678, np.nan, 0.02135]) == (
        "6,208, −7,000, 0.5, 10.1, 1,235, –, 0.0214"
    )
