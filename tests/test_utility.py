"""Re-sampling against its known distribution, and the barycentre against its definition."""

import numpy as np
import pytest
from scipy import stats

from ppm.utility import compare_distributions, resample, wasserstein_barycentre

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


def test_comparison_tells_a_shift_from_a_spread():
    reference = np.linspace(90.0, 110.0, 201)
    table = compare_distributions(
        reference, {"same": reference, "shifted": reference + 5, "wider": 3 * reference - 200}
    )
    assert table["shift (%)"].to_list() == pytest.approx([0, 5, 0])
    # a shift moves every quantile by 5; tripling the spread moves them by 2 * |q - 100|, 10 on
    # average: the median alone would not show it
    expected = [0, 5, np.mean(2 * np.abs(reference - 100))]
    assert table["distance (%)"].to_list() == pytest.approx(expected)
    with pytest.raises(ValueError, match="reference must be"):
        compare_distributions([0.0, 0.0], {})
    with pytest.raises(ValueError, match="wrong is not"):
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
