"""Re-sampling against its known spread, and errors by hand."""

import numpy as np
import pandas as pd
import pytest

from ppm.release.measure import gini, release_errors, resample

VALUES = np.random.default_rng(1).lognormal(11, 1, size=900)


def test_the_re_sampled_mean_has_the_standard_error_of_the_mean():
    found = resample(VALUES, "mean", resamples=2_000, random_seed=1)
    assert found.mean() == pytest.approx(VALUES.mean(), rel=0.01)
    # drawing without replacement would give no spread at all
    assert found.std() == pytest.approx(VALUES.std() / np.sqrt(VALUES.size), rel=0.08)


# ---- errors of releases --------------------------------------------------------------------------


def test_errors_of_a_release_are_those_computed_by_hand():
    rng = np.random.default_rng(3)
    area = np.repeat(["north", "south", "islands"], [500, 370, 30])
    # one release too low, one too high, in every area: the errors of groups have no sign
    releases = VALUES * rng.uniform(0.8, 1.3, (3, VALUES.size)) * [[0.8], [1.0], [1.2]]
    # the islands are too few; their means are far off and must not show
    releases[:, area == "islands"] *= 9.0
    found = release_errors(VALUES, releases, groups={"area": area}, smallest=50)
    of = {"mean": np.mean, "median": np.median, "Gini coefficient": gini}
    of |= {f"{n}th percentile": lambda v, n=n: np.percentile(v, n) for n in (10, 90)}
    for row, release in zip(found.to_dict("records"), releases, strict=True):
        for name, statistic in of.items():
            assert row[name] == pytest.approx(
                100 * (statistic(release) / statistic(VALUES) - 1)
            )
        parts = [area == a for a in ("north", "south")]
        worst = max(
            abs(release[part].mean() / VALUES[part].mean() - 1) for part in parts
        )
        assert row["means by area"] == pytest.approx(100 * worst)
        average = np.mean(
            [abs(release[part].mean() / VALUES[part].mean() - 1) for part in parts]
        )
        assert row["average by area"] == pytest.approx(100 * average)
        assert row["top tenth"] == pytest.approx(
            100 * (np.sort(release)[-90:].mean() / np.sort(VALUES)[-90:].mean() - 1)
        )
    # above the data is positive, also where the data are negative
    assert release_errors(-VALUES, [1 - VALUES]).loc[0, "mean"] > 0


def test_groups_of_errors_are_variables_by_name():
    data, twice = np.arange(1.0, 7.0), pd.DataFrame([[1, 2]] * 6, columns=["a", "a"])
    for wrong in [1] * 6, pd.Series([1] * 6), twice, "a":
        with pytest.raises(
            ValueError, match="^groups must be a pandas DataFrame or a dict of pu"
        ):
            release_errors(data, [data], groups=wrong)
    for wrong in (
        [1] * 5,
        [[1]] * 6,
        "abcdef",
        np.ma.array([1] * 6, mask=[1, 0, 0, 0, 0, 0]),
    ):
        with pytest.raises(
            ValueError, match="^groups: a (must have one label|holds masked)"
        ):
            release_errors(data, [data], groups={"a": wrong})
    # a record without a label is in no group, and a category may be empty
    labels = pd.Categorical(["x", "x", "y", "y", "y", None], categories=["x", "y", "z"])
    found = release_errors(data, [[*data[:5], 99.0]], groups={"a": labels}, smallest=2)
    assert found["means by a"].tolist() == [0.0]


def test_no_error_is_relative_to_a_statistic_that_is_0_and_the_others_stay():
    data = np.array([0.0, 0.0, 0.0, 20.0, 30.0, 40.0])
    area = {"area": ["south"] * 3 + ["north"] * 3, "half": ["a", "b"] * 3}
    found = release_errors(data, [data + 1.0, data * 2.0], groups=area, smallest=3)
    assert {*found.columns[found.isna().any()]} == {"10th percentile"}
    # of the group whose mean is 0 nothing counts
    north = [100 / 30, 100.0]
    for name in ("means by area", "average by area"):
        assert found[name].tolist() == pytest.approx(north)
    alone = {"area": ["south"] * 3 + [None] * 3}
    found = release_errors(data, [data + 1.0], groups=alone, smallest=3)
    assert found[["means by area", "average by area"]].isna().all(axis=None)
    found = release_errors(data, [data + 1.0, data * 2.0], groups=area, smallest=3)
    assert found["mean"].tolist() == pytest.approx([100 / 15, 100.0])
    assert found["means by half"].tolist() == pytest.approx([10.0, 100.0])
