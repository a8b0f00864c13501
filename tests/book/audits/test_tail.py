"""The tail bound: the order statistic that is sure enough, and what it does not promise."""

import numpy as np
import pytest
from scipy import stats

import ppm
from ppm_book import audits


@pytest.mark.parametrize("draws", [59, 299, 1_000])
@pytest.mark.parametrize(
    ("outside", "confidence"), [(0.01, 0.95), (0.05, 0.95), (0.02, 0.5)]
)
def test_the_tail_bound_is_the_lowest_order_statistic_that_is_sure_enough(
    draws, outside, confidence
):
    # the k-th smallest of the draws is k, and the part beneath it Beta(k, S - k + 1)
    def sure(k):
        return stats.beta(k, draws - k + 1).sf(1.0 - outside) if k else 0.0

    maxima = np.random.default_rng(1).permutation(np.arange(1.0, draws + 1))
    if sure(draws) < confidence:
        needed = np.ceil(np.log(1 - confidence) / np.log(1 - outside))
        with pytest.raises(
            ValueError, match=f"needs at least {needed:.0f} draws; got {draws}"
        ):
            audits.tail_bound(maxima, tail_probability=outside, confidence=confidence)
        return
    found = audits.tail_bound(maxima, tail_probability=outside, confidence=confidence)
    assert sure(found.bound) >= confidence > sure(found.bound - 1)
    assert (found.tail_probability, found.confidence, found.draws) == (
        outside,
        confidence,
        draws,
    )
    # beyond the largest lies Beta(1, S), and as much as this with the rest of the confidence only
    assert found.largest == draws
    assert stats.beta(1, draws).cdf(found.beyond_largest) == pytest.approx(confidence)


def test_what_lies_beyond_a_tail_bound_is_small_for_the_records_and_not_for_their_neighbour():
    counts = np.array([0, 0, 18])
    records = ppm.GammaPoisson(counts, shape=1.0, rate=0.1)
    fit = ppm.fit(records, ppm.Terms(np.ones(3)), draws=4_000, random_seed=1)
    found = audits.tail_bound(fit.draw_maxima, tail_probability=0.01)
    mu = np.linspace(0.001, 60, 60_000)
    within = mu[
        np.abs(stats.poisson.logpmf(counts, mu[:, None])).max(axis=1) <= found.bound
    ]
    ends = within.min(), within.max()

    def outside(weights):
        return 1 - np.diff(records.posterior(weights).cdf(ends))[0]

    assert outside([1, 1, 1]) <= found.tail_probability
    assert outside([1, 1, 0]) > 0.99
    # taken for the δ of both, it would promise less than what is lost within the bound
    full, without = records.posterior(), records.posterior([1, 1, 0])
    loss = np.abs(full.logpdf(within) - without.logpdf(within)).max()
    oscillation = records.oscillations_within(*ends)[2]
    assert loss > oscillation - np.log1p(-found.tail_probability) + 0.5
    assert loss <= oscillation - np.log1p(-outside([1, 1, 0]))
