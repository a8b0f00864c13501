"""The ledger: every verdict is computed, and wrong values change it."""

import copy
import json
import math

import numpy as np
import pytest
import yaml
from conftest import ROOT

import ppm
from ppm import ledger
from ppm.ledger import Claim, LedgerError, judge, load_ledger, power_law, share_power_law
from ppm.ledger_values import measured
from ppm.notebooks import find_notebooks

PUBLISHED = ROOT / "book" / "published.yaml"
CLAIMS = load_ledger(PUBLISHED, find_notebooks(ROOT))


def verdict(rule, *entries, published=None, needs=None, unlike=None, data="drawn", **options):
    """Row of a claim about the values a, b, … of a chapter."""
    values = dict(zip("abcd", entries, strict=False))
    claim = Claim(
        "x", "4.5", "text", "It is so.", "study", rule, tuple(values), published, options,
        needs or {}, unlike or {},
    )
    (row,) = judge([claim], {"study": {"data": data, "values": values}})
    return row


def number(value, error=0.0):
    return measured(value, error)


# ------------------------------------------------------------------------------ rule by rule

SIZES = number([100, 400, 1600, 6400])


def powers(exponent, error=0.02):
    values = np.power([100.0, 400.0, 1600.0, 6400.0], exponent)
    return number(values, error * values)


@pytest.mark.parametrize(
    ("good", "wrong"),
    [
        (
            ("near", [number(10.4, 0.1)], {"published": 10.0, "tolerance": 0.5}),
            # further off; as near, but by luck
            [[number(10.9, 0.1)], [number(10.4, 5.0)], [number([10.4, 10.4])]],
        ),
        (
            ("near", [number([9.5, 2.1])], {"published": [10.0, 2.0], "relative": 0.1}),
            [[number([9.5, 2.3])], [number([2.1, 9.5])]],
        ),
        (("greater", [number(3.0, 0.4), number(2.0, 0.2)], {}),
         [[number(3.0, 0.5), number(2.0, 0.2)], [number(2.0), number(3.0)]]),
        (("greater", [number([3.0, 4.0], 0.1)], {"than": 2.5}), [[number([3.0, 2.4], 0.1)]]),
        (("greater", [number(5.0), number(2.0)], {"factor": 2}), [[number(3.9), number(2.0)]]),
        (("less", [number(2.0, 0.2), number(3.0, 0.4)], {}),
         [[number(3.0), number(2.0)], [number(2.0, 0.2), number(3.0, 0.5)]]),
        (("between", [number([0.9, 1.1], 0.04)], {"low": 0.8, "high": 1.2}),
         [[number([0.7, 1.1])], [number([0.9, 1.3])], [number([0.9, 1.1], 0.06)]]),
        (("increasing", [number([1, 2, 1.9, 3], 0.1)], {}),
         [[number([1, 2, 1.6, 3], 0.1)], [number([3, 2, 1, 0], 0.1)], [number([1, 1.2], 0.1)]]),
        (("decreasing", [number(3, 0.1), number(2, 0.1), number(1, 0.1)], {}),
         [[number(1), number(2), number(3)], [number(3, 2), number(2, 2), number(1, 2)]]),
        (("decreasing", [number([3.1, 3.6, 3.45])], {"towards": 3.5}),
         [[number([3.1, 3.0, 2.9])], [number([3.1, 3.95, 3.45])]]),
        (("reduction", [number([10.1, 7.0, 2.25], 0.05)], {"published": 0.8, "tolerance": 0.1}),
         [[number([10.1, 7.0, 5.0])], [number([2.25, 10.1])], [number([10.1, 2.25], 3.0)]]),
        (("rate", [SIZES, powers(-0.5)], {"published": -0.5, "tolerance": 0.1}),
         [[SIZES, powers(-0.3)], [SIZES, powers(-1)], [SIZES, powers(-0.5, 2.0)]]),
        (("rate", [SIZES, powers(-0.8)], {"published": -0.5, "tolerance": 0.1, "at_most": True}),
         [[SIZES, powers(-0.3)], [SIZES, powers(0.0)], [SIZES, powers(-0.8, 9.0)]]),
        (("share_rate", [SIZES, measured([0.4, 0.2, 0.1, 0.05], of=1000)],
          {"published": -0.5, "tolerance": 0.2}),
         [[SIZES, measured([0.4, 0.4, 0.4, 0.4], of=1000)],
          [SIZES, measured([0.4, 0.02, 0.0, 0.0], of=1000)],
          [SIZES, measured([0.4, 0.2, 0.1, 0.05], of=20)]]),
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


@pytest.mark.parametrize(
    ("rule", "undecided", "refuted", "options"),
    [
        ("less", number(2.5, 0.5), number(2.5, 0.1), {"than": 2.0}),
        ("greater", number(2.5, 0.5), number(1.5, 0.1), {"than": 2.0}),
        ("between", number(0.5, 0.3), number(1.5, 0.1), {"low": 0.0, "high": 1.0}),
        ("near", number(10.0, 1.0), number(12.0, 0.1), {"published": 10.0, "tolerance": 1.0}),
        ("increasing", number([1.0, 2.0], 0.6), number([2.0, 1.0], 0.1), {}),
        ("decreasing", number([2.0, 1.0], 0.6), number([1.0, 2.0], 0.1), {}),
    ],
)
def test_what_monte_carlo_error_leaves_open_is_told_from_what_is_refuted(
    rule, undecided, refuted, options
):
    for entry, is_open in ((undecided, True), (refuted, False)):
        row = verdict(rule, entry, **options)
        assert (row.verdict, row.open) == ("not reproduced", is_open)


def test_another_setting_is_not_comparable():
    assert verdict("setting", number(400), published=400).verdict == "reproduced"
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
        "not comparable", "another survey", ("1.5 ± 0.1",)
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
            Claim(f"p{i}", "5.2", "t", "s", "c", "less", (f"v{i}",), None, {"than": 1})
            for i in range(len(values))
        ]
        whole = Claim("w", "5.2", "t", "s", "c", "rows", options={"rows": [p.id for p in parts]})
        found = {f"v{i}": number(value) for i, value in enumerate(values) if value is not None}
        return judge([whole, *parts], {"c": {"data": "drawn", "values": found}})[0].verdict

    assert conclusion(0, 0) == "reproduced"
    assert conclusion(0, 2) == "not reproduced"
    assert conclusion(0, None) == "not computed"
    assert conclusion(2, None) == "not reproduced"


# ------------------------------------------------------------------------------------- rates


def test_the_interval_of_a_rate_covers_and_narrows():
    rng = np.random.default_rng(4)
    sizes = np.array([100.0, 400.0, 1600.0, 6400.0])
    truth, error = 3.0 * sizes**-0.5, 0.05
    covered = {1.0: 0, 0.4: 0}
    for _ in range(400):
        values = truth * np.exp(error * rng.standard_normal(4))
        for stated in covered:
            # errors that are stated too small are found out by the scatter, in part
            _, low, high = power_law(sizes, values, stated * error * values)
            covered[stated] += low <= -0.5 <= high
    assert covered[1.0] / 400 > 0.93
    assert covered[0.4] / 400 > 0.75
    narrow, wide = (power_law(sizes, truth, e * truth) for e in (0.01, 0.1))
    assert narrow[0] == pytest.approx(-0.5)
    assert (wide[2] - wide[1]) == pytest.approx(10 * (narrow[2] - narrow[1]))


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


@pytest.mark.parametrize(
    "arguments", [([1, 2], [1, 2], [1, 1]), ([1, 2, 3], [1, 0, 2], [1, 1, 1])]
)
def test_no_rate_from_too_little(arguments):
    with pytest.raises(ValueError, match="three points"):
        power_law(*arguments)
    with pytest.raises(ValueError, match="something that happened"):
        share_power_law([1, 2], [0, 0], 10)


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
    if claim.rule == "share_rate":
        shares = np.power([1.0, 4.0, 16.0, 64.0], published - 0.01) * 0.4
        return [SIZES, measured(shares, of=4000)]
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
    assert row.verdict == "reproduced", row.reason
    seen = set()
    for name in own.values:
        values = chapters[own.chapter]["values"]
        verdicts = set()
        for change in BLIND:
            changed = {"data": "interview", "values": {**values, name: flips(values[name], change)}}
            verdicts.add(judge([own], {own.chapter: changed})[0].verdict)
        # each of the values by itself decides
        assert "not computed" in verdicts
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
    assert sections == {"4.1", "4.3", "4.5", "4.6", "5.1", "5.2", "5.3"}
    # no verdict can be written into the file
    assert not {"verdict", "ours"} & set(ledger._KEYS)


# ---------------------------------------------------------------------------- what is refused

ROW = {
    "id": "a", "section": "4.5", "where": "text", "says": "It is so.", "chapter": "study",
    "rule": "less", "values": ["x"], "than": 2,
}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"verdict": "reproduced"}, "unknown key 'verdict'"),
        ({"says": ""}, "says must be a text"),
        ({"rule": "lesser"}, "unknown rule 'lesser'"),
        ({"chapter": "other"}, "unknown chapter 'other'"),
        ({"values": "x"}, "values must be a list of names"),
        ({"values": []}, "takes 1 or 2 values; got 0"),
        ({"values": ["x", "y"]}, "needs two values, or one and than"),
        ({"than": "two"}, "than = 'two' is not accepted"),
        ({"tolerance": 1}, "has no option tolerance"),
        ({"rule": "near", "than": None}, "needs published"),
        ({"published": "10"}, "is no number"),
        ({"not_comparable": {"sky": "why"}}, "unknown data 'sky'"),
        ({"not_comparable": {"diary": "no"}}, "there is no reason 'no'"),
        ({"rule": "rate", "values": ["x", "y"], "published": 1}, "needs tolerance"),
        (
            {"rule": "reduction", "published": [1, 2], "tolerance": 1, "than": None},
            "takes one published number",
        ),
        ({"needs": {"sizes": "all"}}, "needs must map"),
        ({"needs": [1]}, "needs must map"),
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
        ("rows: [3]", "row 1: expected keys"),
        (yaml.safe_dump({"rows": [ROW, ROW]}), "row a: its id is used twice"),
        (
            yaml.safe_dump({"rows": [
                {**{k: v for k, v in ROW.items() if k not in ("values", "than")},
                 "rule": "rows", "rows": ["b"]},
            ]}),
            "rows: 'b' is no other row",
        ),
    ],
)
def test_a_file_that_is_wrong_is_refused_in_one_line(tmp_path, text, told):
    path = tmp_path / "published.yaml"
    path.write_text(text)
    with pytest.raises(LedgerError, match=r"^published\.yaml[^\n]*$") as caught:
        load_ledger(path)
    assert told in str(caught.value)


# ----------------------------------------------------------------------- values


def test_the_study_gives_every_value_of_its_rows():
    study = ppm.contraction_study([100, 400, 1600, 6400], replicates=60, draws=50, random_seed=3)
    values = ppm.contraction_values(study, random_seed=1)
    rows = judge(CLAIMS, {"poisson_contraction": {"data": "drawn", "values": values}})
    rows = [row for row in rows if row.claim.chapter == "poisson_contraction"]
    verdicts = {row.claim.id: row.verdict for row in rows}
    assert "not computed" not in verdicts.values()
    assert verdicts["simulation-replicates"] == "not comparable"
    assert verdicts["unweighted-drifts"] == "reproduced"
    # a study without truncation says that M held nothing
    loose = ppm.contraction_study(
        [100, 400, 1600, 6400], replicates=60, draws=50, truncate_at=1000.0, random_seed=3
    )
    values = ppm.contraction_values(loose, random_seed=1)
    rows = judge(CLAIMS, {"poisson_contraction": {"data": "drawn", "values": values}})
    verdicts = {row.claim.id: row.verdict for row in rows}
    assert verdicts["truncation-stabilizes"] == "not comparable"
    values["truncate_at"] = number(3.5)
    rows = judge(CLAIMS, {"poisson_contraction": {"data": "drawn", "values": values}})
    verdicts = {row.claim.id: row.verdict for row in rows}
    assert verdicts["truncation-stabilizes"] == "not reproduced"
    assert verdicts["rate-truncated"] == "not reproduced"


def test_standard_errors_are_those_of_repeated_studies():
    def one(seed):
        study = ppm.contraction_study([50], replicates=100, draws=50, random_seed=seed)
        return ppm.contraction_values(study, random_seed=1)

    runs = [one(seed) for seed in range(30)]
    for name in ("median bound", "average of the mean", "spread of bounds", "largest bound"):
        name = f"Weighted: {name}"
        values, errors = (np.array([run[name][k][0] for run in runs]) for k in ("value", "error"))
        ratio = np.sqrt(np.mean(errors**2)) / values.std(ddof=1)
        # thirty studies know a standard deviation to about 13 %
        assert 0.6 < ratio < 1.7, name


def test_values_are_json_and_repeat(tmp_path, monkeypatch):
    monkeypatch.setenv("PPM_RESULTS", str(tmp_path))
    study = ppm.contraction_study([30], replicates=5, draws=20, random_seed=3)
    texts = []
    for _ in range(2):
        ppm.save_values(ppm.contraction_values(study, random_seed=1), data=None)
        texts.append((tmp_path / "values.json").read_text("utf-8"))
    assert texts[0] == texts[1]
    saved = json.loads(texts[0])
    assert saved["data"] == "drawn"
    # one size has no growth
    assert saved["values"]["Weighted: growth of the median bound"]["value"] is None
    assert not math.isnan(saved["values"]["Weighted: median bound"]["error"][0])


def test_numbers_are_shown_with_the_digits_that_count():
    assert ledger.shown([6208, -7000, 0.5, 10.1, 1234.5678, np.nan, 0.02135]) == (
        "6,208, −7,000, 0.5, 10.1, 1,235, –, 0.0214"
    )
