"""Match risks of releases without own information, and odd patterns of groups.

The definition, record by record, is in properties/test_utility_and_risk.
"""

import numpy as np
import pandas as pd
import pytest

import ppm


def test_data_released_as_they_are_and_data_without_own_information():
    rng = np.random.default_rng(1)
    values, groups = rng.lognormal(10, 1, 400), rng.integers(20, size=400)
    as_they_are = ppm.risk.match_risk(values, values[None], radius=0.2, groups=groups).loc[0]
    assert as_they_are["own record within radius"] == 400
    assert as_they_are["true unique matches"] == as_they_are["unique matches"] > 50
    # shuffled inside the groups, a record's own value is no better a guess than any other's
    shuffled = np.stack([values] * 60)
    for row in shuffled:
        for group in range(20):
            row[groups == group] = rng.permutation(row[groups == group])
    table = ppm.risk.match_risk(values, shuffled, radius=0.2, groups=groups)
    found = table["expected match risk"]
    # on average one record of each group: every one of its n records is found with chance 1 / n
    assert found.mean() == pytest.approx(20, abs=4 * found.std() / np.sqrt(60))
    assert as_they_are["expected match risk"] > 5 * found.mean()


def test_missing_values_are_a_pattern_and_many_columns_do_not_overflow():
    def risks(groups):
        return ppm.risk.identification_risks(np.ones(len(groups)), radius=1.0, groups=groups)

    missing = pd.DataFrame({"a": ["x", None, None, "x"], "b": [1.0, np.nan, np.nan, 1.0]})
    assert risks(missing).tolist() == [0] * 4
    wide = np.random.default_rng(0).integers(50, size=(40, 60))
    wide[1] = wide[0]
    assert risks(wide).tolist() == [0.0, 0.0] + [1.0] * 38
    # rows count, and not their index
    series = pd.Series(["x", "y", "x"], index=[1, 0, 2])
    assert risks(series).tolist() == [0.0, 1.0, 0.0]
