"""Properties of utility, risk, scales of income and the histogram."""

import numpy as np
import pandas as pd
import pytest
from conftest import examples
from hypothesis import assume, given
from hypothesis import strategies as st
from layouts import HUGE, TINY, matrices, unit_interval, vectors

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


@given(several, scales, st.floats(-1e3, 1e3), st.data())
def test_a_barycentre_moves_with_its_samples_and_does_not_see_their_order(
    samples, scale, shift, data
):
    found = ppm.utility.wasserstein_barycentre(samples)
    assert np.all(np.diff(found) >= 0)
    assert found.mean() == pytest.approx(samples.mean(), abs=1e-9)
    moved = ppm.utility.wasserstein_barycentre(scale * samples + shift)
    assert moved == pytest.approx(scale * found + shift, rel=1e-9, abs=1e-6)
    rows = data.draw(st.permutations(range(len(samples))))
    columns = data.draw(st.permutations(range(samples.shape[1])))
    again = ppm.utility.wasserstein_barycentre(samples[rows][:, columns])
    assert again == pytest.approx(found, rel=1e-12, abs=1e-9)
    assert np.array_equal(ppm.utility.wasserstein_barycentre(samples[:1]), np.sort(samples[0]))


@examples(10)
@given(several, st.sampled_from(["mean", "median", "90th percentile", "10th percentile"]),
       scales, st.integers(0, 99))
def test_resampled_statistics_stay_in_range_and_move_with_the_values(values, name, scale, seed):
    def resample(values, seed):
        return ppm.utility.resample(values, name, resamples=5, random_seed=seed)

    found = resample(values, seed)
    assert found.shape == (len(values), 5)
    slack = 1e-9 * np.abs(values).max()
    assert np.all(found >= values.min(axis=1, keepdims=True) - slack)
    assert np.all(found <= values.max(axis=1, keepdims=True) + slack)
    assert resample(scale * values + 1.0, seed) == pytest.approx(
        scale * found + 1.0, rel=1e-9, abs=1e-6
    )
    for same in (np.random.SeedSequence(seed), np.random.default_rng(np.random.SeedSequence(seed))):
        assert np.array_equal(resample(values, same), found)
    constant = np.full_like(values, values[0, 0])
    assert resample(constant, seed) == pytest.approx(constant[:, :1] * np.ones(5), rel=1e-12)


@given(vectors(st.floats(-1e3, 1e3), least=2), vectors(st.floats(-1e3, 1e3), least=2), st.data())
def test_pmse_is_within_its_limits_and_symmetric_at_equal_sizes(one, other, data):
    found = ppm.utility.propensity_score(*ppm.utility.rank_powers(one, other))
    share = other.size / (one.size + other.size)
    assert -1e-12 <= found.score <= share * (1 - share) + 1e-9
    orders = [data.draw(st.permutations(range(part.size))) for part in (one, other)]
    mixed = ppm.utility.propensity_score(
        *ppm.utility.rank_powers(one[orders[0]], other[orders[1]])
    )
    assert mixed.score == pytest.approx(found.score, abs=1e-6)
    assert mixed.coefficients == found.coefficients
    size = min(one.size, other.size)
    there, back = (
        ppm.utility.propensity_score(*ppm.utility.rank_powers(*pair))
        for pair in ((one[:size], other[:size]), (other[:size], one[:size]))
    )
    assert there.score == pytest.approx(back.score, abs=1e-6)
    assert there.null == pytest.approx(back.null)
    same = ppm.utility.propensity_score(*ppm.utility.rank_powers(one, one))
    assert same.score == pytest.approx(0.0, abs=1e-9)


@given(vectors(least=1), vectors(least=1), st.integers(1, 4))
def test_ranks_know_no_unit(one, other, powers):
    found = ppm.utility.rank_powers(one, other, powers=powers)
    again = ppm.utility.rank_powers(8.0 * one, 8.0 * other, powers=powers)
    for part, same in zip(found, again, strict=True):
        assert np.array_equal(part, same) and np.all(np.abs(part) <= 1)


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
@given(matrices(st.floats(-9.0, 9.0), rows=(1, 3), columns=(4, 6)), st.data())
def test_a_series_of_groups_is_taken_by_place_and_not_by_its_index(values, data):
    records = values.shape[1]
    groups = data.draw(st.lists(st.sampled_from("ab"), min_size=records, max_size=records))
    index = data.draw(st.permutations(range(records)))
    shuffled = pd.Series(groups, index=index)
    settings = {"resamples": 4, "random_seed": 1}
    found = ppm.utility.grouped_barycentres(values, groups, **settings)
    again = ppm.utility.grouped_barycentres(values, shuffled, **settings)
    assert found.keys() == again.keys()
    assert all(np.array_equal(found[group], again[group]) for group in found)
    risks = ppm.risk.identification_risks(values[0], radius=1.0, groups=groups)
    for other in (
        shuffled,
        pd.DataFrame({"g": shuffled}),
        pd.Categorical(groups),
        np.array(groups),
    ):
        assert np.array_equal(
            ppm.risk.identification_risks(values[0], radius=1.0, groups=other), risks
        )


# ---- risk ----------------------------------------------------------------------------------------


@given(vectors(st.integers(-50, 50).map(float)), st.floats(0.01, 3.0), st.booleans(), st.data())
def test_risks_are_those_of_the_definition_in_any_order_and_unit(values, radius, relative, data):
    groups = np.array(
        data.draw(st.lists(st.sampled_from("ab"), min_size=values.size, max_size=values.size))
    )
    found = ppm.risk.identification_risks(values, radius=radius, relative=relative, groups=groups)
    for i, risk in enumerate(found):
        others = [j for j in range(values.size) if j != i and groups[j] == groups[i]]
        width = radius * abs(values[i]) if relative else radius
        low, high = values[i] - width, values[i] + width
        outside = [not low <= values[j] <= high for j in others]
        assert risk == pytest.approx(np.mean(outside) if others else 1.0)
    order = data.draw(st.permutations(range(values.size)))
    moved = ppm.risk.identification_risks(
        values[order], radius=radius, relative=relative, groups=groups[order]
    )
    assert np.array_equal(moved, found[order])
    # by a power of 2, which rounds nothing
    unit = {"radius": radius if relative else 8 * radius, "relative": relative, "groups": groups}
    assert np.array_equal(ppm.risk.identification_risks(8 * values, **unit), found)
    wider = ppm.risk.identification_risks(
        values, radius=2 * radius, relative=relative, groups=groups
    )
    assert np.all(wider <= found)


@given(vectors(st.floats(1.0, 50.0), least=2), st.floats(0.01, 1.0), st.data())
def test_match_risks_are_counts_of_records_whatever_the_order(values, radius, data):
    synthetic = data.draw(
        matrices(st.floats(1.0, 50.0), rows=(1, 3), columns=(values.size,) * 2)
    )
    found = ppm.risk.match_risk(values, synthetic, radius=radius)
    assert np.all(found["true unique matches"] <= found["unique matches"])
    assert np.all(found["true unique matches"] <= found["expected match risk"] + 1e-12)
    assert np.all(found["expected match risk"] <= found["own record within radius"] + 1e-12)
    assert np.all(found["true match rate (%)"].between(0, 100))
    order = data.draw(st.permutations(range(values.size)))
    moved = ppm.risk.match_risk(values[order], synthetic[:, order], radius=radius)
    pd.testing.assert_frame_equal(found, moved)
    own = ppm.risk.match_risk(values, [values], radius=radius)
    assert own["own record within radius"].item() == values.size
    table = ppm.risk.match_risks(values, {"a": synthetic}, radius=radius)
    assert table.loc["a", "unique matches"] == pytest.approx(found["unique matches"].mean())


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


@given(vectors(st.floats(0.01, 0.99)), unit_interval(3))
def test_noise_free_counts_are_those_of_numpy(values, edges):
    assume(values.size > 1)
    found = ppm.histogram_release(values, (0, 1), bins=4, epsilon=30.0, random_seed=1)
    assert np.array_equal(found.noisy_counts[0], np.histogram(values, 4, (0, 1))[0])
