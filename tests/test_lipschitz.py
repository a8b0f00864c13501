"""Bounds against the definition, written out in full."""

import tracemalloc

import numpy as np
import pytest
import xarray as xr

import ppm


@pytest.fixture
def log_lik():
    return np.random.default_rng(1).normal(-2, 3, size=(700, 230))


def by_definition(log_lik, weights=1.0):
    return np.max(np.abs(weights * log_lik), axis=0)


def test_record_bounds_are_the_column_maxima_of_absolute_values(log_lik):
    assert np.array_equal(ppm.record_bounds(log_lik), by_definition(log_lik))
    # the matrix holds both signs, so leaving out either of them must show
    assert not np.array_equal(ppm.record_bounds(log_lik), log_lik.max(axis=0))
    assert not np.array_equal(ppm.record_bounds(log_lik), -log_lik.min(axis=0))


def test_weights_multiply_before_the_maximum_over_records(log_lik):
    weights = np.random.default_rng(2).uniform(size=230)
    assert np.allclose(ppm.record_bounds(log_lik, weights), by_definition(log_lik, weights))
    assert np.isclose(ppm.local_bound(log_lik, weights), by_definition(log_lik, weights).max())
    assert ppm.local_bound(log_lik, weights) < ppm.local_bound(log_lik)


@pytest.mark.parametrize("rows", [1, 2, 500])
def test_the_chunks_cover_every_row(rows):
    # wider than one chunk: each row is then a chunk of its own
    log_lik = np.random.default_rng(3).normal(size=(rows, 70_000))
    assert np.array_equal(ppm.record_bounds(log_lik), by_definition(log_lik))


def test_xarray_dimensions_may_come_in_any_order(log_lik):
    array = xr.DataArray(log_lik.reshape(7, 100, 230), dims=("chain", "draw", "household"))
    expected = by_definition(log_lik)
    assert np.array_equal(ppm.record_bounds(array), expected)
    turned = array.transpose("household", "draw", "chain")
    assert np.array_equal(ppm.record_bounds(turned), expected)
    assert np.array_equal(ppm.record_bounds(array.isel(chain=0)), by_definition(log_lik[:100]))


def test_no_second_copy_of_the_matrix():
    log_lik = np.random.default_rng(4).normal(size=(2_000, 1_000))

    def peak(function):
        tracemalloc.start()
        function()
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    assert peak(lambda: ppm.record_bounds(log_lik)) < 0.1 * log_lik.nbytes
    assert peak(lambda: by_definition(log_lik)) > 0.9 * log_lik.nbytes  # the check can fail


def test_an_impossible_record_has_an_infinite_bound_unless_it_is_removed():
    log_lik = np.array([[-1.0, -np.inf], [-3.0, -2.0]])
    assert ppm.record_bounds(log_lik).tolist() == [3.0, np.inf]
    assert ppm.record_bounds(log_lik, [1.0, 0.0]).tolist() == [3.0, 0.0]
    assert ppm.local_bound(log_lik, [1.0, 1e-9]) == np.inf


def test_nan_is_refused_and_named():
    log_lik = np.full((3, 4), -1.0)
    log_lik[1, 2] = np.nan
    with pytest.raises(ValueError, match=r"log_lik holds NaN \(first in record 2"):
        ppm.record_bounds(log_lik)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([0.5, 1.5], "record 1 has 1.5"),
        ([-0.1, 1.0], "record 0 has -0.1"),
        ([0.5, np.nan], "record 1 has nan"),
        ([0.5], r"shape \(1,\).*shape \(2,\)"),
        ("many", "numbers in"),
    ],
)
def test_wrong_weights_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        ppm.record_bounds(np.zeros((3, 2)), weights)


@pytest.mark.parametrize(
    ("log_lik", "message"),
    [
        (np.zeros(3), r"shape \(draws, records\)"),
        (np.zeros((0, 3)), "empty"),
        (np.zeros((3, 0)), "empty"),
        (np.array([["a"]]), "real numbers"),
        (xr.DataArray(np.zeros((2, 2)), dims=("a", "b")), "chain and/or draw"),
        (xr.DataArray(np.zeros((2, 2, 2)), dims=("draw", "a", "b")), "one record dimension"),
    ],
)
def test_wrong_matrices_are_refused(log_lik, message):
    with pytest.raises(ValueError, match=message):
        ppm.record_bounds(log_lik)
