"""Match risks counted by hand, and what broken counts would give."""

import numpy as np
import pandas as pd
import pytest

import ppm

VALUES = np.array([100.0, 104.0, 200.0, 500.0])
# one release; with a radius of 10 dollars the intruder looks at
#   record 0 (90 to 110):  synthetic 108, 95    own is 108: c = 2, T = 1
#   record 1 (94 to 114):  synthetic 108, 95    own is 95:  c = 2, T = 1
#   record 2 (190 to 210): synthetic 205        own is 205: c = 1, T = 1
#   record 3 (490 to 510): synthetic none       own is 211
RELEASE = np.array([108.0, 95.0, 205.0, 211.0])


def counted(values, synthetic, **settings):
    table = ppm.risk.match_risk(values, np.atleast_2d(synthetic), **settings)
    return table.iloc[0].to_dict()


def test_matches_counted_by_hand():
    found = counted(VALUES, RELEASE, radius=10, relative=False)
    assert found == {
        "expected match risk": pytest.approx(0.5 + 0.5 + 1),
        "own record within radius": 3,
        "unique matches": 1,
        "true unique matches": 1,
        "true match rate (%)": 25.0,
        "true among unique (%)": 100.0,
    }


def test_a_false_unique_match_is_a_match_but_not_a_true_one():
    # record 2's synthetic value leaves, record 3's takes its place
    found = counted(VALUES, [108.0, 95.0, 300.0, 205.0], radius=10, relative=False)
    assert found["unique matches"] == 1 and found["true unique matches"] == 0
    assert found["true among unique (%)"] == 0
    # an intruder's count that took any match for a true one would give 1 more
    assert found["expected match risk"] == pytest.approx(0.5 + 0.5)


def test_the_intruder_compares_only_records_with_known_groups():
    groups = pd.DataFrame({"region": ["N", "S", "N", "N"], "age": [1, 1, 1, 2]})
    found = counted(VALUES, RELEASE, radius=10, relative=False, groups=groups)
    # 0 and 1 no longer hide each other
    assert found["expected match risk"] == pytest.approx(3)
    assert found["unique matches"] == found["true unique matches"] == 3
    fewer = counted(VALUES, RELEASE, radius=10, relative=False, groups=groups["age"])
    assert fewer["expected match risk"] == pytest.approx(2)


def test_a_relative_radius_grows_with_the_value():
    found = counted(VALUES, [108.0, 95.0, 205.0, 460.0], radius=0.1)
    assert found["expected match risk"] == pytest.approx(0.5 + 0.5 + 1 + 1)
    absolute = counted(VALUES, [108.0, 95.0, 205.0, 460.0], radius=0.1, relative=False)
    assert absolute["expected match risk"] == 0 and np.isnan(absolute["true among unique (%)"])


def test_the_radius_is_around_the_confidential_value():
    # 10 % of 100 does not reach 111, 10 % of 111 would reach 100
    assert counted([100.0], [111.0], radius=0.1)["own record within radius"] == 0
    assert counted([111.0], [100.0], radius=0.1)["own record within radius"] == 1


def test_data_released_as_they_are_and_data_without_own_information():
    rng = np.random.default_rng(1)
    values = rng.lognormal(10, 1, 400)
    groups = rng.integers(20, size=400)
    settings = {"radius": 0.2, "groups": groups}
    as_they_are = counted(values, values, **settings)
    assert as_they_are["own record within radius"] == 400
    assert as_they_are["true unique matches"] == as_they_are["unique matches"] > 50
    # shuffled inside the groups, a record's own value is no better a guess than any other's
    shuffled = np.stack([values] * 60)
    for row in shuffled:
        for group in range(20):
            row[groups == group] = rng.permutation(row[groups == group])
    table = ppm.risk.match_risk(values, shuffled, **settings)
    found = table["expected match risk"]
    # on average one record of each group: every one of its n records is found with chance 1 / n
    assert found.mean() == pytest.approx(20, abs=4 * found.std() / np.sqrt(60))
    assert as_they_are["expected match risk"] > 5 * found.mean()


def test_rows_are_releases_and_averages_are_taken_over_them():
    both = np.stack([RELEASE, VALUES + 1000])
    table = ppm.risk.match_risk(VALUES, both, radius=10, relative=False)
    assert table["expected match risk"].to_list() == pytest.approx([2, 0])
    average = ppm.risk.match_risks(
        VALUES, {"A": both, "Data": VALUES[None]}, radius=10, relative=False
    )
    assert average.loc["A", "expected match risk"] == pytest.approx(1)
    assert average.loc["A", "true among unique (%)"] == 100
    assert average.loc["Data", "expected match risk"] == pytest.approx(3)


def test_risks_are_shares_outside():
    risks = ppm.risk.identification_risks(VALUES, radius=0.05)
    assert risks == pytest.approx([2 / 3, 2 / 3, 1, 1])
    assert ppm.risk.identification_risks([3.0], radius=1.0).tolist() == [1.0]


def test_missing_values_are_a_pattern_and_many_columns_do_not_overflow():
    groups = pd.DataFrame({"a": ["x", None, None, "x"], "b": [1.0, np.nan, np.nan, 1.0]})
    assert ppm.risk.identification_risks(VALUES, radius=10.0, groups=groups).tolist() == [0] * 4
    wide = np.random.default_rng(0).integers(50, size=(40, 60))
    wide[1] = wide[0]
    risks = ppm.risk.identification_risks(np.ones(40), radius=1.0, groups=wide)
    assert risks.tolist() == [0.0, 0.0] + [1.0] * 38


@pytest.mark.parametrize(
    "synthetic", [RELEASE, RELEASE[None, :3], np.full((1, 4), np.nan), np.zeros((0, 4))]
)
def test_wrong_releases_are_refused(synthetic):
    with pytest.raises(ValueError, match="^synthetic must be"):
        ppm.risk.match_risk(VALUES, synthetic, radius=0.1)


@pytest.mark.parametrize(
    ("name", "wrong"), [("radius", 0), ("radius", True), ("relative", 1), ("groups", [[1, 2]])]
)
def test_wrong_settings_are_named(name, wrong):
    with pytest.raises(ValueError, match=f"^{name} must"):
        ppm.risk.match_risk(VALUES, RELEASE[None], **{"radius": 0.1, name: wrong})
