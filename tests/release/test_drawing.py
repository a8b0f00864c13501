"""Systematic draws: a single value has its law, and means and shares hardly vary."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ppm.release.drawing import places, read_off

LABELS = np.random.default_rng(1).choice(
    ["a", "b", "c", "alone"], 300, p=[0.5, 0.3, 0.195, 0.005]
)
LABELS[-1] = "alone"


def drawn(labels=LABELS, releases=1, seed=2):
    return places(labels, releases, np.random.default_rng(seed))


@given(
    st.lists(st.sampled_from("abcd"), min_size=1, max_size=60),
    st.integers(1, 4),
    st.integers(0, 999),
)
def test_each_part_of_a_label_has_one_record(labels, releases, seed):
    found = drawn(labels, releases, seed)
    assert found.shape == (releases, len(labels))
    assert found.min() >= 0 and found.max() < 1
    for label in {*labels}:
        own = found[:, np.array(labels) == label]
        size = own.shape[1]
        parts = np.sort(np.floor(own * size + 1e-9 * (own > 0)), axis=1)
        np.testing.assert_array_equal(parts, np.tile(np.arange(size), (releases, 1)))


def test_each_place_is_uniform_and_releases_are_independent():
    found = drawn(releases=4_000)
    for label in np.unique(LABELS):
        # of the first record of a label, over releases
        of_one = found[:, np.argmax(LABELS == label)]
        assert stats.kstest(of_one, "uniform").pvalue > 1e-4
        first, second = of_one[::2], of_one[1::2]
        together = np.histogram2d(first, second, bins=5, range=[[0, 1], [0, 1]])[0]
        assert stats.chisquare(together.ravel()).pvalue > 1e-4
    # in one release the first record may be in any part
    one = np.floor(found[:, np.argmax(LABELS == "b")] * np.sum(LABELS == "b"))
    assert stats.chisquare(np.bincount(one.astype(int))).pvalue > 1e-4


def test_a_value_has_the_law_of_an_independent_draw_and_means_vary_far_less():
    values = np.sort(np.random.default_rng(3).lognormal(0.0, 1.0, 37))
    where = drawn(releases=3_000)
    systematic = read_off(values, where)
    independent = read_off(values, np.random.default_rng(4).random(where.shape))
    for record in (0, 1, -1):
        counts = np.bincount(
            np.searchsorted(values, systematic[:, record]), minlength=37
        )
        assert stats.chisquare(counts).pvalue > 1e-4
    own = LABELS == "a"
    of_a, of_others = (one[:, own].mean(axis=1) for one in (systematic, independent))
    assert of_a.mean() == pytest.approx(values.mean(), rel=0.005)
    assert of_others.std() == pytest.approx(values.std() / np.sqrt(own.sum()), rel=0.1)
    assert of_a.std() < of_others.std() / 5
    # a share is exact but for one record
    shares = (systematic[:, own] <= values[9]).sum(axis=1)
    assert np.abs(shares - own.sum() * 10 / 37).max() < 1 + 1e-9


def test_places_at_an_end_read_the_last_value():
    values = np.arange(7.0)
    assert read_off(values, np.array([0.0, np.nextafter(1.0, 0.0)])).tolist() == [0, 6]
    # an order that rounding could break: sizes of which multiples are not exact
    for size in (3, 7, 49, 1001):
        assert drawn(["x"] * size, 50).max() < 1.0
