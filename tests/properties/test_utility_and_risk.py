"""Properties of statistics of releases, risk, scales of income and noisy bins."""

import itertools
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from conftest import examples
from hypothesis import example, given
from hypothesis import strategies as st
from layouts import HUGE, TINY, matrices, vectors

import ppm
from ppm.release import Bins, ReleasePlan, measure
from ppm.release.measure import gini
from ppm_book.chapters import survey

# any scale of these keeps all of their digits
incomes = st.one_of(st.floats(1e-290, 1e6), st.sampled_from([0.0, 1e-300, 1e100]))
scales = st.floats(1e-3, 1e3)
several = matrices(st.floats(-1e3, 1e3), rows=(1, 4), columns=(2, 8))


# ---- statistics of releases ----------------------------------------------------------------------


@given(vectors(incomes), scales)
def test_gini_is_half_the_mean_difference_over_the_mean_without_a_unit(values, scale):
    found = gini(values)
    if not values.any():
        assert np.isnan(found)
        return
    pairs = np.abs(values[:, None] - values).mean() / (2 * values.mean())
    assert found == pytest.approx(pairs, abs=1e-9) and found < 1
    assert gini(values * scale) == pytest.approx(found, abs=1e-9)
    assert np.isnan(gini(-values))  # of a mean below 0 there are no shares
    both = np.stack([values, np.ones(values.size)])
    assert gini(both) == pytest.approx([found, 0.0], abs=1e-15)
    assert gini(both.T, axis=0) == pytest.approx([found, 0.0], abs=1e-15)


@examples(10)
@given(
    several,
    st.sampled_from(["mean", "median", "90th percentile", np.ptp]),
    scales,
    st.integers(0, 99),
)
def test_resampled_statistics_are_averages_of_quantiles_and_move_with_the_values(
    values, statistic, scale, seed
):
    def resample(values, seed=seed):
        return measure.resample(values, statistic, resamples=70, random_seed=seed)

    rng = np.random.default_rng(np.random.SeedSequence(seed))
    apart = np.array([resample(one, rng) for one in values])
    # of several releases the average of quantiles, which is not that of pairs of values
    found = resample(values)
    assert np.array_equal(
        found, np.sort(apart, axis=1).mean(axis=0)
    ) and found.shape == (70,)
    moved = scale * found + (statistic is not np.ptp)
    assert resample(scale * values + 1.0) == pytest.approx(moved, rel=1e-9, abs=1e-6)


# ---- risk ----------------------------------------------------------------------------------------


whole = st.integers(-50, 50).map(float)


@given(
    vectors(whole),
    st.one_of(st.floats(0.01, 3.0), st.sampled_from([1e-300, 1e306])),
    st.booleans(),
    st.floats(0.1, 3.0),
    st.floats(-1.0, 1.0),
    st.data(),
)
def test_risks_and_count_weights_are_those_of_the_definition(
    values, radius, relative, scale, shift, data
):
    size = values.size
    groups = np.array(
        data.draw(st.lists(st.sampled_from("ab"), min_size=size, max_size=size))
    )
    synthetic = data.draw(matrices(whole, rows=(1, 3), columns=(size, size)))
    settings = {"radius": radius, "relative": relative, "groups": groups}

    width = radius * np.abs(values) if relative else np.full(size, radius)
    # a value at an end is within the radius
    synthetic = np.vstack([synthetic, values - width, values + width])
    low, high = (values - width)[:, None], (values + width)[:, None]
    alike = groups[:, None] == groups
    others = alike & ~np.eye(size, dtype=bool)
    outside = others & ((values < low) | (values > high))
    expected = np.where(
        others.any(axis=1), outside.sum(axis=1) / np.maximum(1, others.sum(1)), 1
    )
    assert ppm.risk.identification_risks(values, **settings) == pytest.approx(expected)
    # scaled before it is shifted, and not preceded by min-max scaling
    rule = ppm.ByCount(radius, relative, scale, shift)
    weights = rule.terms(SimpleNamespace(values=values, known=groups), None).weights
    cut = np.minimum(1.0, np.maximum(0.0, scale * (1.0 - expected) + shift))
    assert weights == pytest.approx(cut, abs=1e-12)

    matches = ppm.risk.match_risk(values, synthetic, **settings)
    for (_, row), release in zip(matches.iterrows(), synthetic, strict=True):
        match = alike & (low <= release) & (release <= high)
        count, own = match.sum(axis=1), match.diagonal()
        true, unique = np.sum(own & (count == 1)), np.sum(count == 1)
        assert row.to_dict() == pytest.approx(
            {
                "expected match risk": np.sum(own / np.maximum(count, 1)),
                "own record within radius": own.sum(),
                "unique matches": unique,
                "true unique matches": true,
                "true match rate (%)": 100 * true / size,
                "true among unique (%)": 100 * true / unique if unique else np.nan,
            },
            nan_ok=True,
        )


def test_missing_values_are_a_pattern_and_many_columns_do_not_overflow():
    def risks(groups):
        return ppm.risk.identification_risks(
            np.ones(len(groups)), radius=1.0, groups=groups
        )

    # in either column, and patterns that share a column stay apart
    pairs = [*itertools.product(["x", "y", None], [1.0, np.nan, 2.0])]
    for once in pairs, [pair[::-1] for pair in pairs]:
        assert (
            risks(once).tolist() == [1.0] * 9 and risks(2 * once).tolist() == [0.0] * 18
        )
    wide = np.random.default_rng(0).integers(50, size=(40, 60))
    wide[1] = wide[0]
    assert risks(wide).tolist() == [0.0, 0.0] + [1.0] * 38
    # rows count, and not their index
    series = pd.Series(["x", "y", "x"], index=[1, 0, 2])
    assert risks(series).tolist() == [0.0, 1.0, 0.0]


# ---- scales of income ----------------------------------------------------------------------------

dollars = st.one_of(st.floats(-1e7, 1e7), st.sampled_from([0.0, 1e-300, 1e200, -1e200]))


@given(vectors(dollars), st.floats(0.05, 1.0), st.floats(1.0, 1e6))
def test_scales_of_income_have_a_way_back_and_keep_the_order(income, power, unit):
    found = survey.power_income(income, power, unit)
    assert np.array_equal(np.sign(found), np.sign(income / unit))
    assert np.all(np.diff(found[np.argsort(income)]) >= 0)
    back = survey.income_from_power(found, power, unit)
    assert back == pytest.approx(income, rel=1e-9, abs=1e-290)
    # limits take back what lies beyond the largest number
    kept = survey.income_from_power(
        [*found, 1e300], power, unit, lowest=0.0, highest=1e5
    )
    assert kept == pytest.approx([*np.clip(income, 0, 1e5), 1e5], rel=1e-9, abs=1e-290)
    # logarithms have one above their floor
    values, floored = survey.log_income(income, unit)
    assert np.exp(values) == pytest.approx(np.maximum(income, unit), rel=1e-9)
    assert floored == np.count_nonzero(income < unit)


# ---- noisy bins ----------------------------------------------------------------------------------


# at this ε there is no noise
@example(np.array([-5.0, -2.5, 0.0, 5.0]), 4, 1, None)
@given(
    vectors(st.one_of(st.floats(-20.0, 20.0), st.sampled_from([HUGE, -HUGE, TINY]))),
    st.integers(1, 9),
    st.integers(1, 3),
    st.data(),
)
def test_counts_are_those_of_numpy_in_each_group_and_releases_lie_within_the_limits(
    values, bins, releases, data
):
    groups = [data.draw(st.sampled_from("ab")) if data else "a" for _ in values]
    published = pd.DataFrame(
        {"group": list("ab") * 50, "value": np.repeat(np.linspace(-4.9, 4.9, 50), 2)}
    )
    mechanism = Bins(bins)
    plan = ReleasePlan(
        published,
        confidential="value",
        groups="group",
        limits=(-5, 5),
        mechanism=mechanism,
        epsilon=30,
        releases=releases,
    )
    table = pd.DataFrame({"group": groups, "value": np.clip(values, -5, 5)})
    found = mechanism.release(table, plan, random_seed=3)
    assert found.synthetic.shape == (releases, values.size)
    assert np.all((found.synthetic >= -5) & (found.synthetic <= 5))
    counted = found.noisy["counts"]
    for group, own in table.groupby("group")["value"]:
        edges = mechanism.edges(plan)[group]
        counts = counted.loc[counted["group"] == group, "count"]
        assert np.array_equal(counts, np.histogram(own, edges)[0])
        assert np.array_equal(found.public["edges"][group], edges)
