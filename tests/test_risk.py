"""Match risks counted by hand, and what broken counts would give.

The definition, record by record, is in properties/test_utility_and_risk.
"""

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


def test_missing_values_are_a_pattern_and_many_columns_do_not_overflow():
    groups = pd.DataFrame({"a": ["x", None, None, "x"], "b": [1.0, np.nan, np.nan, 1.0]})
    assert ppm.risk.identification_risks(VALUES, radius=10.0, groups=groups).tolist() == [0] * 4
    wide = np.random.default_rng(0).integers(50, size=(40, 60))
    wide[1] = wide[0]
    risks = ppm.risk.identification_risks(np.ones(40), radius=1.0, groups=wide)
    assert risks.tolist() == [0.0, 0.0] + [1.0] * 38
