"""What the privacy audit computes in its own cells."""

from itertools import combinations

import numpy as np
import pytest
from cells import of_chapter

chapter = of_chapter("privacy_audit")


def test_the_expected_bound_of_fewer_draws_is_the_mean_over_all_choices():
    largest = np.random.default_rng(1).exponential(size=7)
    for number in range(1, 8):
        by_hand = np.mean([max(choice) for choice in combinations(largest, number)])
        assert chapter.expected_bound(largest, number) == pytest.approx(by_hand)
    # of thousands of draws there are more choices than a float can count
    many = chapter.expected_bound(np.arange(20_000.0), 1_000)
    assert many == pytest.approx(1_000 * 20_001 / 1_001 - 1)
