"""Properties of utility, risk, scales of income and the histogram."""

import numpy as np
import pandas as pd
import pytest
from conftest import examples
from hypothesis import example, given
from hypothesis import strategies as st
from layouts import HUGE, TINY, matrices, vectors

import ppm
from ppm_book import survey

# any scale of these keeps all of their digits
incomes = st.one_of(st.floats(1e-290, 1e6), st.sampled_from([0.0, 1e-300, 1e100]))
scales = st.floats(1e-3, 1e3)
several = matrices(st.floats(-1e3, 1e3), rows=(1, 4), columns=(2, 8))


# ---- utility -------------------------------------------------------------------------------------


@given(vectors(incomes), scales, st.data())
def test_gini_is_a_share_without_a_unit_or_an_order(values, scale, data):
    found = ppm.utility.gini(values)
    if not values.any():
        assert np.isnan(found)
        return
    assert -1e-12 <= found < 1
    order = data.draw(st.permutations(range(values.size)))
    assert ppm.utility.gini(values[order]) == found
    assert ppm.utility.gini(values * scale) == pytest.approx(found, abs=1e-9)
    assert ppm.utility.gini(np.tile(values, 3)) == pytest.approx(found, abs=1e-9)
    # the definition: mean difference of all pairs, over twice the mean
    pairs = np.abs(values[:, None] - values).mean() / (2 * values.mean())
    assert found == pytest.approx(pairs, abs=1e-9)
    assert ppm.utility.gini(np.tile(values, (2, 1))) == pytest.approx([found] * 2, abs=1e-15)


@given(vectors(st.sampled_from([1e307, HUGE, TINY, 1e-320, 1.0])), st.integers(1, 3))
def test_gini_of_huge_and_tiny_incomes_is_that_of_their_proportions(values, times):
    values = np.tile(values, times)
    shares = values / values.max()
    assert ppm.utility.gini(values) == pytest.approx(ppm.utility.gini(shares), abs=1e-9)


@examples(10)
@given(several, st.sampled_from(["mean", "median", "90th percentile", "10th percentile"]),
       scales, st.integers(0, 99))
def test_resampled_statistics_stay_in_range_and_move_with_the_values(values, name, scale, seed):
    def resample(values, seed=seed):
        return ppm.utility.resample(values, name, resamples=5, random_seed=seed)

    rng = np.random.default_rng(np.random.SeedSequence(seed))
    apart = np.array([resample(one, rng) for one in values])
    slack = 1e-9 * np.abs(values).max()
    assert np.all(apart >= values.min(axis=1, keepdims=True) - slack)
    assert np.all(apart <= values.max(axis=1, keepdims=True) + slack)
    # of several releases the average of quantiles, which is not that of pairs of values
    found = resample(values)
    assert np.array_equal(found, np.sort(apart, axis=1).mean(axis=0))
    assert resample(scale * values + 1.0) == pytest.approx(scale * found + 1.0, rel=1e-9, abs=1e-6)
    assert np.array_equal(resample(values, np.random.SeedSequence(seed)), found)
    constant = np.full_like(values, values[0, 0])
    assert resample(constant) == pytest.approx(np.full(5, values[0, 0]), rel=1e-12)


@given(vectors(st.floats(-1e3, 1e3), least=2), vectors(st.floats(-1e3, 1e3), least=2), st.data())
def test_pmse_is_within_its_limits_and_symmetric_at_equal_sizes(one, other, data):
    def score(one, other):
        return ppm.utility.propensity_score(one, other, rank_powers=3)

    found = score(one, other)
    share = other.size / (one.size + other.size)
    assert -1e-12 <= found.score <= share * (1 - share) + 1e-9
    # ranks know no unit
    assert score(8.0 * one, 8.0 * other) == pytest.approx(found, nan_ok=True)
    orders = [data.draw(st.permutations(range(part.size))) for part in (one, other)]
    mixed = score(one[orders[0]], other[orders[1]])
    assert mixed.score == pytest.approx(found.score, abs=1e-6)
    size = min(one.size, other.size)
    there, back = score(one[:size], other[:size]), score(other[:size], one[:size])
    assert there.score == pytest.approx(back.score, abs=1e-6)
    assert there.null == pytest.approx(back.null)
    assert score(one, one).score == pytest.approx(0.0, abs=1e-9)


@given(vectors(st.floats(1.0, 1e3)), vectors(st.floats(1.0, 1e3)), scales)
def test_distances_of_distributions_know_no_unit_and_are_at_least_the_shift_of_means(
    reference, values, scale
):
    found = ppm.utility.compare_distributions(reference, {"a": values}).loc["a"]
    again = ppm.utility.compare_distributions(scale * reference, {"a": scale * values}).loc["a"]
    for name in ("shift (%)", "distance (%)"):
        assert again[name] == pytest.approx(found[name], rel=1e-6, abs=1e-6)
    least = 100 * abs(values.mean() - reference.mean()) / np.median(reference)
    assert found["distance (%)"] >= least - 1e-9 * (1 + least)
    own = ppm.utility.compare_distributions(reference, {"a": reference}).loc["a"]
    assert own["distance (%)"] == own["shift (%)"] == 0


@given(st.integers(3, 8), st.integers(1, 3), scales, st.data())
def test_release_errors_know_no_unit_and_no_order_of_records(records, releases, scale, data):
    positive = st.floats(1.0, 1e3)
    confidential = data.draw(vectors(positive, least=records, most=records)) + np.arange(records)
    synthetic = data.draw(matrices(positive, rows=(releases,) * 2, columns=(records,) * 2))
    groups = {"g": data.draw(st.lists(st.sampled_from("ab"), min_size=records, max_size=records))}
    found = ppm.utility.release_errors(confidential, synthetic, groups=groups, smallest=1)
    again = ppm.utility.release_errors(scale * confidential, scale * synthetic, groups=groups,
                                       smallest=1)
    pd.testing.assert_frame_equal(found, again, atol=1e-6)
    order = list(data.draw(st.permutations(range(records))))
    moved = ppm.utility.release_errors(
        confidential[order], synthetic[:, order],
        groups=pd.DataFrame(groups).iloc[order], smallest=1,
    )
    pd.testing.assert_frame_equal(found, moved, atol=1e-6)
    own = ppm.utility.release_errors(confidential, [confidential], groups=groups, smallest=1)
    assert own.abs().to_numpy().max() < 1e-9


@examples(10)
@given(vectors(st.floats(-9.0, 9.0), least=6, most=6), st.data())
def test_a_series_of_groups_is_taken_by_place_and_not_by_its_index(values, data):
    groups = data.draw(st.lists(st.sampled_from("ab"), min_size=6, max_size=6))
    shuffled = pd.Series(groups, index=data.draw(st.permutations(range(6))))
    risks = ppm.risk.identification_risks(values, radius=1.0, groups=groups)
    for other in (shuffled, shuffled.to_frame(), pd.Categorical(groups), np.array(groups)):
        found = ppm.risk.identification_risks(values, radius=1.0, groups=other)
        assert np.array_equal(found, risks)


# ---- risk ----------------------------------------------------------------------------------------


whole = st.integers(-50, 50).map(float)


@given(vectors(whole), st.floats(0.01, 3.0), st.booleans(), st.data())
def test_risks_are_those_of_the_definition_in_any_order_and_unit(values, radius, relative, data):
    size = values.size
    groups = np.array(data.draw(st.lists(st.sampled_from("ab"), min_size=size, max_size=size)))
    synthetic = data.draw(matrices(whole, rows=(1, 3), columns=(size, size)))
    settings = {"radius": radius, "relative": relative}
    settings["groups"] = groups
    found = ppm.risk.identification_risks(values, **settings)
    matches = ppm.risk.match_risk(values, synthetic, **settings)

    width = radius * np.abs(values) if relative else np.full(size, radius)
    low, high = (values - width)[:, None], (values + width)[:, None]
    alike = groups[:, None] == groups
    others = alike & ~np.eye(size, dtype=bool)
    outside = others & ((values < low) | (values > high))
    for i, risk in enumerate(found):
        assert risk == pytest.approx(outside[i].sum() / others[i].sum() if others[i].any() else 1)
    for (_, row), release in zip(matches.iterrows(), synthetic, strict=True):
        match = alike & (low <= release) & (release <= high)
        count, own = match.sum(axis=1), match.diagonal()
        true = np.sum(own & (count == 1))
        unique = np.sum(count == 1)
        assert row.to_list() == pytest.approx([
            np.sum(own / np.maximum(count, 1)), own.sum(), unique, true, 100 * true / size,
            100 * true / unique if unique else np.nan,
        ], nan_ok=True)

    order = data.draw(st.permutations(range(size)))
    moved = settings | {"groups": groups[order]}
    assert np.array_equal(ppm.risk.identification_risks(values[order], **moved), found[order])
    again = ppm.risk.match_risk(values[order], synthetic[:, order], **moved)
    pd.testing.assert_frame_equal(again, matches)
    # by a power of 2, which rounds nothing
    unit = settings | {"radius": radius if relative else 8 * radius}
    assert np.array_equal(ppm.risk.identification_risks(8 * values, **unit), found)


@given(
    vectors(st.sampled_from([HUGE, -HUGE, TINY, 0.0, 1e300])), st.sampled_from([TINY, 1.0, HUGE])
)
def test_huge_and_tiny_values_have_risks_too(values, radius):
    for relative in (True, False):
        found = ppm.risk.identification_risks(values, radius=radius, relative=relative)
        assert np.all((found >= 0) & (found <= 1))


# ---- scales of income ----------------------------------------------------------------------------

dollars = st.one_of(st.floats(-1e7, 1e7), st.sampled_from([0.0, 1e-300, 1e200, -1e200]))


@given(vectors(dollars), st.floats(0.05, 1.0), st.floats(1.0, 1e6))
def test_the_power_of_income_has_a_way_back_and_keeps_the_order(income, power, unit):
    table = pd.DataFrame({"income": income})
    found = survey.power_income(table, power, unit)
    assert np.array_equal(np.sign(found), np.sign(income / unit))
    assert np.all(np.diff(found[np.argsort(income)]) >= 0)
    back = survey.income_from_power(found, power, unit)
    assert back == pytest.approx(income, rel=1e-9, abs=1e-290)
    kept = survey.income_from_power(found, power, unit, lowest=0.0, highest=1e5)
    assert np.all((kept >= 0) & (kept <= 1e5))


@given(vectors(dollars), st.floats(1e-3, 1e6))
def test_logarithms_of_income_have_a_way_back_above_the_floor(income, floor):
    table = pd.DataFrame({"income": income}, index=np.arange(income.size)[::-1])
    values, floored = survey.log_income(table, floor)
    assert np.exp(values) == pytest.approx(np.maximum(income, floor), rel=1e-9)
    assert floored == np.count_nonzero(income < floor)


@pytest.mark.parametrize("values", [[1e100], [-1e308], [np.inf]])
def test_a_transformed_value_beyond_all_dollars_stays_within_the_limits_that_are_given(values):
    found = survey.income_from_power(values, lowest=-7_000.0, highest=2e6)
    assert found.tolist() == [2e6 if values[0] > 0 else -7_000.0]
    with pytest.raises(
        ValueError, match="^values: 1 of 1 lie beyond the largest number in dollars"
    ):
        survey.income_from_power(values)


# ---- histogram -----------------------------------------------------------------------------------


@given(vectors(st.one_of(st.floats(-20.0, 20.0), st.sampled_from([HUGE, -HUGE, TINY]))),
       st.integers(1, 9), st.floats(0.01, 20.0), st.integers(1, 3), st.data())
def test_a_histogram_release_lies_within_the_limits_and_counts_each_group(
    values, bins, epsilon, releases, data
):
    groups = data.draw(st.lists(st.sampled_from("ab"), min_size=values.size, max_size=values.size))
    settings = {"bins": bins, "epsilon": epsilon, "groups": groups, "releases": releases}
    found = ppm.histogram_release(values, (-5, 5), **settings, random_seed=3)
    assert found.synthetic.shape == (releases, values.size)
    assert np.all((found.synthetic >= -5) & (found.synthetic <= 5))
    assert found.noisy_counts.shape == (len(set(groups)), bins)
    assert found.guarantee.epsilon == epsilon
    again = ppm.histogram_release(
        values, (-5, 5), **settings, random_seed=np.random.SeedSequence(3)
    )
    assert np.array_equal(found.synthetic, again.synthetic)


@example(np.array([0.25, 1.0]))
@given(vectors(st.floats(-1.0, 2.0), least=2))
def test_noise_free_counts_are_those_of_numpy_with_what_lies_outside_at_the_ends(values):
    found = ppm.histogram_release(values, (0, 1), bins=4, epsilon=30.0, random_seed=1)
    counts, edges = np.histogram(np.clip(values, 0, 1), 4, (0, 1))
    assert np.array_equal(found.noisy_counts[0], counts) and np.array_equal(found.edges, edges)
