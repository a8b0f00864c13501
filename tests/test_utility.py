"""Re-sampling against its known distribution, and the barycentre against its definition."""

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, special, stats

from ppm.utility import (
    compare_distributions,
    gini,
    grouped_barycentres,
    median_errors,
    propensity_score,
    propensity_scores,
    rank_powers,
    release_errors,
    resample,
    resampled_barycentre,
    wasserstein_barycentre,
)

VALUES = np.random.default_rng(1).lognormal(11, 1, size=900)


def test_the_re_sampled_mean_has_the_standard_error_of_the_mean():
    distribution = resample(VALUES, "mean", resamples=2_000, random_seed=1)
    assert distribution.mean() == pytest.approx(VALUES.mean(), rel=0.01)
    assert distribution.std() == pytest.approx(VALUES.std() / np.sqrt(VALUES.size), rel=0.08)
    # drawing without replacement would give no spread at all
    without = [np.random.default_rng(s).permutation(VALUES).mean() for s in range(20)]
    assert np.std(without) < 1e-6 * distribution.std()


def test_the_re_sampled_percentile_has_the_binomial_order_statistics():
    distribution = resample(VALUES, "90th percentile", resamples=4_000, random_seed=1)
    # P(re-sampled quantile <= k-th value) = P(at least 90 % of the draws among the k smallest)
    kth = np.sort(VALUES)[819]
    expected = stats.binom.sf(0.9 * 899, 900, 820 / 900)
    assert np.mean(distribution <= kth) == pytest.approx(expected, abs=0.03)
    median = resample(VALUES, "median", resamples=200, random_seed=1)
    assert np.abs(median.mean() / np.median(VALUES) - 1) < 0.05


def test_databases_are_re_sampled_one_by_one():
    both = resample(np.stack([VALUES, VALUES + 1e6]), "mean", resamples=50, random_seed=3)
    assert both.shape == (2, 50)
    assert both[1].min() - both[0].max() > 9e5
    assert not np.allclose(both[1] - 1e6, both[0])
    again = resample(np.stack([VALUES, VALUES + 1e6]), "mean", resamples=50, random_seed=3)
    assert np.array_equal(both, again)


def test_a_function_is_taken_as_the_statistic():
    spread = resample(VALUES, lambda x, axis: np.ptp(x, axis=axis), resamples=20, random_seed=1)
    assert spread.max() <= np.ptp(VALUES)


def test_barycentre_of_normals_averages_mean_and_standard_deviation():
    levels = (np.arange(4_000) + 0.5) / 4_000
    samples = np.stack([stats.norm.ppf(levels, 0, 1), stats.norm.ppf(levels, 10, 3)])
    rng = np.random.default_rng(1)
    shuffled = np.stack([rng.permutation(row) for row in samples])
    barycentre = wasserstein_barycentre(shuffled)
    assert barycentre.mean() == pytest.approx(5)
    assert barycentre.std() == pytest.approx(2, rel=0.01)
    assert stats.kstest(barycentre, stats.norm(5, 2).cdf).pvalue > 0.99
    # pooling the values would give a mixture, averaging without sorting too little spread
    assert np.concatenate(samples).std() > 5
    assert shuffled.mean(axis=0).std() < 1.7


def test_the_barycentre_is_the_average_of_quantiles_and_not_their_median():
    # three point masses, and three pairs: of more than two distributions the two differ
    assert wasserstein_barycentre([[0.0], [1.0], [8.0]]).tolist() == [3.0]
    samples = [[5.0, 1.0], [2.0, 3.0], [30.0, 2.0]]
    assert wasserstein_barycentre(samples) == pytest.approx([5 / 3, 38 / 3])
    # releases: the mean of a barycentre of means is the mean over all of them
    rng = np.random.default_rng(5)
    releases = rng.lognormal(0, 1, size=(5, 400)) * np.array([1, 1, 1, 1, 20.0])[:, None]
    found = resampled_barycentre(releases, "mean", resamples=4_000, random_seed=1)
    spread = np.mean(releases.std(axis=1)) / np.sqrt(400)
    assert found.mean() == pytest.approx(releases.mean(), abs=4 * spread / np.sqrt(4_000))
    assert found.std() == pytest.approx(spread, rel=0.06)
    assert np.median(releases.mean(axis=1)) < 0.5 * found.mean()


def test_comparison_tells_a_shift_from_a_spread():
    reference = np.linspace(90.0, 110.0, 201)
    table = compare_distributions(
        reference, {"same": reference, "shifted": reference + 5, "wider": 3 * reference - 200}
    )
    assert table["median"].to_list() == pytest.approx([100, 105, 100])
    assert table["shift (%)"].to_list() == pytest.approx([0, 5, 0])
    # a shift moves every quantile by 5; tripling the spread moves them by 2 * |q - 100|, 10 on
    # average: the median alone would not show it
    expected = [0, 5, np.mean(2 * np.abs(reference - 100))]
    assert table["distance (%)"].to_list() == pytest.approx(expected)
    # per cent of the reference's median, which may be negative
    doubled = compare_distributions(-2 * reference, {"shifted": -2 * reference - 5})
    assert doubled.loc["shifted"].to_list() == pytest.approx([-205, 2.5, 2.5])
    with pytest.raises(ValueError, match="reference must be a list with a median other than 0"):
        compare_distributions([0.0, 0.0], {})
    with pytest.raises(ValueError, match="distributions: wrong must be"):
        compare_distributions(reference, {"wrong": [np.inf]})


@pytest.mark.parametrize(
    "arguments",
    [([1.0], "mean"), ([1.0, np.nan], "mean"), (VALUES, "mode"), (np.zeros((2, 2, 2)), "mean")],
)
def test_wrong_input_is_refused(arguments):
    with pytest.raises(ValueError, match="must be"):
        resample(*arguments)


def test_wrong_numbers_of_re_samples_and_samples_are_refused():
    with pytest.raises(ValueError, match="^resamples must be"):
        resample(VALUES, "mean", resamples=1)
    for wrong in (VALUES, np.full((2, 3), np.nan), np.zeros((0, 2))):
        with pytest.raises(ValueError, match="^samples must be"):
            wasserstein_barycentre(wrong)


def test_gini_is_half_the_relative_mean_difference():
    values = VALUES[:60]
    differences = np.abs(values[:, None] - values[None, :]).mean()
    assert gini(values) == pytest.approx(differences / (2 * values.mean()))
    assert gini(np.full(5, 3.0)) == 0
    assert gini([0.0, 0, 0, 1]) == pytest.approx(3 / 4)
    # of a log-normal distribution it is 2 Φ(σ / √2) − 1, whatever the unit
    large = np.random.default_rng(2).lognormal(3, 0.8, 200_000)
    assert gini(large) == pytest.approx(2 * stats.norm.cdf(0.8 / np.sqrt(2)) - 1, abs=0.005)
    assert gini(1000 * large) == pytest.approx(gini(large))
    assert gini(large + 1000) < gini(large) / 10
    assert np.isnan(gini([-1.0, 1.0]))


def test_gini_works_along_an_axis_and_is_re_sampled():
    table = np.abs(np.random.default_rng(3).normal(size=(4, 30)))
    assert gini(table) == pytest.approx([gini(row) for row in table])
    assert gini(table.T, axis=0) == pytest.approx(gini(table))
    distribution = resample(VALUES, "Gini coefficient", resamples=300, random_seed=1)
    assert distribution.mean() == pytest.approx(gini(VALUES), abs=0.01)


def test_groups_are_re_sampled_on_their_own():
    groups = pd.Categorical(
        np.repeat(["old", "young", "alone"], [400, 499, 1]),
        categories=["young", "old", "alone", "nobody"], ordered=True,
    )
    releases = np.stack([VALUES, 2 * VALUES])
    found = grouped_barycentres(releases, groups, resamples=40, random_seed=1)
    # in the order of the categories; a single record has no distribution
    assert list(found) == ["young", "old"]
    for group in found:
        expected = resampled_barycentre(
            releases[:, groups == group], "mean", resamples=40, random_seed=1
        )
        assert np.array_equal(found[group], expected)
        assert np.median(found[group]) == pytest.approx(
            1.5 * VALUES[groups == group].mean(), rel=0.05
        )
    generators = [np.random.default_rng(5) for _ in range(2)]
    again = [grouped_barycentres(releases, groups, random_seed=rng) for rng in generators]
    assert np.array_equal(again[0]["old"], again[1]["old"])
    for wrong in (groups[:5], [None] * 900):
        with pytest.raises(ValueError, match="^groups must"):
            grouped_barycentres(VALUES, wrong)


def powers(values):
    return np.column_stack([values, values**2, values**3])


def average_ratio(draw, repeats=500, **settings):
    ratios = [propensity_score(*draw(), **settings).ratio for _ in range(repeats)]
    return np.mean(ratios), 4 * np.std(ratios) / np.sqrt(repeats)


def test_re_sampled_records_have_a_ratio_of_1_and_independent_samples_of_2():
    rng = np.random.default_rng(1)
    real = rng.normal(size=400)
    ratio, error = average_ratio(lambda: (powers(real), powers(rng.choice(real, 400))))
    assert ratio == pytest.approx(1, abs=error) and error < 0.25
    ratio, error = average_ratio(
        lambda: (powers(rng.normal(size=400)), powers(rng.normal(size=400)))
    )
    assert ratio == pytest.approx(2, abs=error) and ratio > 1.3
    # at other sizes the expectation still is that of a re-sample
    ratio, error = average_ratio(lambda: (powers(real), powers(rng.choice(real, 1200))))
    assert ratio == pytest.approx(1, abs=error) and error < 0.25


def test_what_differs_has_a_large_ratio():
    rng = np.random.default_rng(2)
    real = rng.normal(size=400)
    shifted = propensity_score(real, rng.choice(real, 400) + 0.5)
    assert shifted.ratio > 10
    # a difference in spread alone shows in the squares and not in the values themselves
    wider = 2 * rng.choice(real - real.mean(), 400) + real.mean()
    wider += real.mean() - wider.mean()
    assert propensity_score(powers(real), powers(wider)).ratio > 10
    assert propensity_score(real, wider).ratio < 0.1
    # records that can be told apart for certain reach the largest score, without a warning
    apart = propensity_score(powers(real), powers(real + 100))
    assert apart.score == pytest.approx(0.25, abs=1e-3)
    assert propensity_score(real, real).ratio == 0


def test_the_score_is_the_logistic_regressions_own():
    rng = np.random.default_rng(3)
    real, synthetic = rng.normal(size=50), rng.normal(0.7, 1, size=80)
    x, t = np.concatenate([real, synthetic]), np.repeat([0.0, 1.0], [50, 80])

    def loss(b):
        return np.sum(np.logaddexp(0, b[0] + b[1] * x) - t * (b[0] + b[1] * x))

    b = optimize.minimize(loss, [0.0, 0.0], method="BFGS", options={"gtol": 1e-6}).x
    expected = np.mean((special.expit(b[0] + b[1] * x) - 80 / 130) ** 2)
    found = propensity_score(real, synthetic)
    assert found.score == pytest.approx(expected, rel=1e-5)
    assert found.null == pytest.approx((50 / 130) ** 2 * (80 / 130) / 130)
    # the unit does not matter, nor does a column that says nothing new
    again = propensity_score(
        np.column_stack([1e6 * real, real, 0 * real]),
        np.column_stack([1e6 * synthetic, synthetic, 0 * synthetic]),
    )
    assert again.coefficients == 1 and again.score == pytest.approx(expected, rel=1e-5)


def test_known_columns_carry_the_interactions_and_no_count():
    rng = np.random.default_rng(4)
    known = np.column_stack([rng.integers(2, size=500), rng.normal(size=500)])
    slope = known @ [1.0, 3.0]
    ratio, error = average_ratio(
        lambda: (powers(slope + rng.normal(size=500)), powers(slope + rng.normal(size=500))),
        known=known,
    )
    assert ratio == pytest.approx(2, abs=error) and error < 0.3
    # the coefficients' number alone would call them far too alike
    score = propensity_score(
        powers(slope + rng.normal(size=500)), powers(slope + rng.normal(size=500)), known=known
    )
    assert score.coefficients == 9
    assert score.null < 0.8 * 9 * 0.125 / 1000
    # the same values on other records: only what goes with the known columns can show it
    values = slope + rng.normal(size=500)
    shuffled = rng.permutation(values)
    assert propensity_score(values, shuffled).ratio < 1e-9
    assert propensity_score(values, shuffled, known=known).ratio > 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, np.nan], [1.0, 2.0]), "^confidential must be"),
        (([1.0, 2.0], [1.0]), "^synthetic must be"),
        (([1.0, 2.0], [[1.0, 2.0], [1.0, 2.0]]), "same variables"),
        (([1.0, 2.0], [1.0, 2.0, 3.0], [1.0, 2.0]), "^known must have"),
    ],
)
def test_scores_name_what_is_wrong(arguments, message):
    confidential, synthetic, *known = arguments
    with pytest.raises(ValueError, match=message):
        propensity_score(confidential, synthetic, known=known[0] if known else None)


def test_equal_values_share_their_rank_whichever_database_they_are_in():
    # among the six values 1, 2, 2, 2, 2, 9 the ranks are 1, 3.5 four times, and 6
    columns = rank_powers([2.0, 1.0, 2.0], [9.0, 2.0, 2.0], powers=2)
    ranks = [np.array([3.5, 1.0, 3.5]), np.array([6.0, 3.5, 3.5])]
    for found, expected in zip(columns, ranks, strict=True):
        scaled = (2.0 * expected - 1.0) / 6.0 - 1.0
        np.testing.assert_allclose(found, np.column_stack([scaled, scaled**2]), atol=1e-15)
    # a release that copies every record can't be told from the data
    copied = np.round(np.random.default_rng(1).normal(size=400), 1)
    assert propensity_score(*rank_powers(copied, copied)).score < 1e-12


def test_rank_powers_do_not_depend_on_the_scale_and_share_one_ranking():
    rng = np.random.default_rng(6)
    real, synthetic = rng.lognormal(size=300), rng.lognormal(size=200)
    columns = rank_powers(real, synthetic)
    assert [part.shape for part in columns] == [(300, 3), (200, 3)]
    both = np.concatenate(columns)
    assert np.array_equal(both[:, 2], both[:, 0] ** 3) and np.abs(both).max() < 1
    for one, other in zip(columns, rank_powers(np.log(real), np.log(synthetic)), strict=True):
        assert np.array_equal(one, other)
    # ranked one by one, two databases of one size could never be told apart
    shifted = propensity_score(*rank_powers(real, real + 3))
    assert shifted.ratio > 10
    ranked = np.linspace(-1, 1, 300)
    assert propensity_score(ranked, ranked).ratio == 0
    with pytest.raises(ValueError, match="^synthetic must be"):
        rank_powers(real, [np.nan])
    with pytest.raises(ValueError, match="^powers must be"):
        rank_powers(real, synthetic, powers=0)


def test_errors_of_a_release_are_those_computed_by_hand():
    rng = np.random.default_rng(3)
    area = np.repeat(["north", "south", "islands"], [500, 370, 30])
    releases = VALUES * rng.uniform(0.8, 1.3, (3, VALUES.size))
    # the islands are too few; their means are far off and must not show
    releases[:, area == "islands"] *= 9.0
    found = release_errors(VALUES, releases, groups={"area": area}, smallest=50)
    assert found.shape == (3, 6)
    for row, release in zip(found.to_dict("records"), releases, strict=True):
        by_hand = {
            "mean": release.mean() / VALUES.mean(),
            "median": np.median(release) / np.median(VALUES),
            "90th percentile": np.quantile(release, 0.9) / np.quantile(VALUES, 0.9),
            "10th percentile": np.quantile(release, 0.1) / np.quantile(VALUES, 0.1),
            "Gini coefficient": gini(release) / gini(VALUES),
        }
        for name, ratio in by_hand.items():
            assert row[name] == pytest.approx(100 * (ratio - 1))
        means = [
            100 * (release[area == a].mean() / VALUES[area == a].mean() - 1)
            for a in ("north", "south")
        ]
        assert row["means by area"] == pytest.approx(max(map(abs, means)))
    islands = release_errors(VALUES, releases, groups={"area": area}, smallest=30)
    assert np.all(islands["means by area"] > 500)


def test_errors_of_both_signs_do_not_cancel_in_the_median_of_single_releases():
    data = np.array([-40.0, 10.0, 20.0, 30.0])
    area = {"area": ["north", "north", "south", "south"]}
    # the worst group is now too high, now too low, by as much
    releases = np.array([data + [0, 0, 5, 5], data - [0, 0, 5, 5]])
    errors = release_errors(data, releases, groups=area, smallest=2)
    assert errors["means by area"].tolist() == [20.0, 20.0]
    table = median_errors({"Limits": {1.0: errors}})
    assert table.loc[("Limits", "1"), "means by area"] == 20.0
    assert table.loc[("Limits", "1"), "mean"] == pytest.approx(50.0)


def test_a_release_above_the_data_has_a_positive_error_where_the_data_are_negative():
    found = release_errors([-40.0, -30.0, -20.0, 10.0], [[-30.0, -20.0, -10.0, 20.0]])
    assert found.loc[0, "mean"] == pytest.approx(50.0)
    assert found.loc[0, "10th percentile"] > 0


def test_no_error_is_relative_to_a_statistic_that_is_0_and_the_others_stay():
    data = np.array([0.0, 0.0, 0.0, 20.0, 30.0, 40.0])
    area = {"area": ["south"] * 3 + ["north"] * 3, "half": ["a", "b"] * 3}
    found = release_errors(data, [data + 1.0, data * 2.0], groups=area, smallest=3)
    # the means by area have a group whose mean is 0
    missing = {name for name in found if found[name].isna().any()}
    assert missing == {"10th percentile", "means by area"}
    assert all(found[name].isna().all() for name in missing)
    assert found["mean"].tolist() == pytest.approx([100 / 15, 100.0])
    assert found["means by half"].tolist() == pytest.approx([10.0, 100.0])
    table = median_errors({"Limits": {1.0: found}})
    assert np.isnan(table.loc[("Limits", "1"), "10th percentile"])
    assert table.loc[("Limits", "1"), "mean"] == pytest.approx((100 / 15 + 100) / 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"releases": [1.0, 2.0]}, r"releases must have shape \(releases, 4\)"),
        ({"releases": [[1.0, 2.0, 3.0, np.nan]]}, "releases must be finite"),
        ({"confidential": [[1.0, 2.0, 3.0, 4.0]]}, "confidential must be a list of finite numbers"),
        ({"groups": {"area": [1, 1, 2]}}, "area must have one value for each of 4 records"),
        ({"groups": {"area": [1, 1, 2, 2]}}, "no group of area has 50 records"),
    ],
)
def test_errors_that_cannot_be_told_are_refused(change, message):
    given = {"confidential": [1.0, 2.0, 3.0, 4.0], "releases": [[1.0, 2.0, 3.0, 4.0]]} | change
    with pytest.raises(ValueError, match=message):
        release_errors(**given)


def test_scores_are_averages_over_the_releases_asked_for():
    rng = np.random.default_rng(4)
    known = rng.integers(0, 2, (VALUES.size, 1)).astype(float)
    releases = VALUES * rng.uniform(0.9, 1.2, (3, VALUES.size))
    one = [
        propensity_score(*rank_powers(VALUES, release), known=known).ratio for release in releases
    ]
    for most, expected in ((None, np.mean(one)), (2, np.mean(one[:2]))):
        found = propensity_scores(VALUES, {"a": releases}, known=known, most=most)
        assert found.loc["a", "ratio"] == pytest.approx(expected)
    assert propensity_scores(VALUES, {"a": releases}).loc["a", "ratio"] != pytest.approx(one[0])
    with pytest.raises(ValueError, match="most must be"):
        propensity_scores(VALUES, {"a": releases}, most=0)
