"""Tail bounds in closed form, and log-likelihoods that are read block by block.

What a bound and an oscillation are is in properties/test_bounds_and_weights.
"""

import tracemalloc

import numpy as np
import pytest
import xarray as xr
from scipy import stats

import ppm
from ppm.scan import scan


@pytest.mark.parametrize("unit", [1e3, 1e-3])
def test_the_unit_of_a_continuous_outcome_moves_bound_and_weights_but_not_the_oscillation(
    unit,
):
    rng = np.random.default_rng(5)
    income = rng.lognormal(3.0, 0.5, size=60)
    mean, spread = (
        rng.normal(np.mean(income), 1.0, (200, 1)),
        rng.uniform(8, 12, (200, 1)),
    )
    one, other = (
        stats.norm.logpdf(factor * income, factor * mean, factor * spread)
        for factor in (1, unit)
    )
    bounds, others = ppm.record_bounds(one), ppm.record_bounds(other)
    assert np.allclose(ppm.record_oscillations(one), ppm.record_oscillations(other))
    assert abs(bounds.max() - others.max()) > 1
    # the paper's weights follow |log p|; here both ends move alike, and the scaling with them,
    # unless the sign of log p changes
    assert np.allclose(bounds + np.log(unit), others) == (unit > 1)
    assert np.allclose(*map(ppm.record_weights, (bounds, others))) == (unit > 1)
    mapped = (
        ppm.mapped_weights(found, lambda z: 1 / (z + 1)) for found in (bounds, others)
    )
    assert not np.allclose(*mapped, rtol=0.05)


# ---- log-likelihoods that never exist whole --------------------------------------------------


WEIGHTS = np.random.default_rng(6).uniform(0.0, 3.0, 130) * (np.arange(130) % 4 > 0)
CHUNKS = [(1, 30, 130), (3, 20, 50), (2, 70, 64)]


def stored(dtype=np.float64):
    """Log-likelihoods of three chains, one of them infinite at a record of weight 0."""
    values = np.random.default_rng(5).normal(-2, 3, size=(3, 200, 130)).astype(dtype)
    values[1, 50, 4] = -np.inf
    return xr.DataArray(values, dims=("chain", "draw", "household"), name="log_lik")


def in_zarr(array, folder, chunks):
    # the store has its dimensions in an order of its own
    chains, draws, records = array.dims
    turned = {records: chunks[2], chains: chunks[0], draws: chunks[1]}
    store, encoding = folder / "store", {"log_lik": {"chunks": tuple(turned.values())}}
    array.transpose(*turned).to_dataset().to_zarr(
        store, encoding=encoding, consolidated=False
    )
    return xr.open_dataset(store, engine="zarr", consolidated=False)["log_lik"]


def unevenly_behind_dask(array, folder, chunks):
    pytest.importorskip("dask")
    return array.chunk(dict(zip(array.dims, chunks, strict=True))).chunk(
        draw=(1, 99, 40, 60)
    )


@pytest.fixture
def in_small_blocks(monkeypatch):
    for name, size in {"BLOCK": 2_500, "_TILE": 600, "_WIDE": 64}.items():
        monkeypatch.setattr(ppm.scan, name, size)


@pytest.mark.parametrize(
    ("source", "chunks", "dtype"),
    [
        (lambda array, *_: array, None, np.float64),
        *((in_zarr, chunks, np.float64) for chunks in CHUNKS),
        (unevenly_behind_dask, CHUNKS[2], np.float32),
    ],
)
def test_what_is_read_in_blocks_is_what_the_definition_says(
    in_small_blocks, tmp_path, source, chunks, dtype
):
    array = stored(dtype)
    with source(array, tmp_path, chunks) as log_lik:
        turned = log_lik.transpose("draw", "household", "chain")
        # with a warm-up left out, which no chunk ends with
        for asked, start in (
            (log_lik, 0),
            (turned, 0),
            (log_lik.isel(draw=slice(13, None)), 13),
        ):
            values = array.values[:, start:].astype(np.float64)
            kept = np.where(
                WEIGHTS > 0, values, 0.0
            )  # a record of weight 0 counts as none
            found = scan(asked, WEIGHTS)
            assert np.array_equal(found.bounds, WEIGHTS * np.abs(kept).max(axis=(0, 1)))
            assert np.array_equal(
                found.oscillations, np.ptp(WEIGHTS * kept, axis=(0, 1))
            )
            assert np.array_equal(found.draw_maxima, np.abs(WEIGHTS * kept).max(axis=2))
            assert np.allclose(
                found.draw_sums, (WEIGHTS * kept).sum(axis=2), 1e-12, 1e-12
            )
            assert np.array_equal(
                ppm.record_bounds(asked), np.abs(values).max(axis=(0, 1))
            )


def test_not_a_number_in_the_last_block_is_refused_at_any_weight(
    in_small_blocks, tmp_path
):
    array, weights = stored(), np.r_[np.ones(4), 0, np.ones(124), 0]
    array[-1, -1, -1] = np.nan
    with in_zarr(array, tmp_path, CHUNKS[2]) as log_lik:
        for function in (
            ppm.record_bounds,
            ppm.record_oscillations,
            ppm.lipschitz.draw_maxima,
        ):
            with pytest.raises(
                ValueError, match=r"NaN \(first in record 129, 1 of 130 records"
            ):
                function(log_lik, weights)


@pytest.mark.parametrize("chunks", CHUNKS)
def test_no_chunk_is_read_twice(in_small_blocks, chunks):
    dask = pytest.importorskip("dask.array")
    array, read = stored(), []

    def noting(block, block_info=None):
        read.append(block_info[0]["chunk-location"])
        return block

    lazy = dask.from_array(array.values, chunks=chunks).map_blocks(
        noting, dtype=np.float64
    )
    log_lik = xr.DataArray(lazy, dims=array.dims)
    scan(log_lik.transpose("household", "draw", "chain"), WEIGHTS)
    assert len(read) == len(set(read)) == lazy.npartitions


@pytest.mark.parametrize("chunks", [(1, 10, 10_000), (1, 200, 500), None])
def test_memory_is_set_by_the_block_and_not_by_the_values(
    monkeypatch, tmp_path, chunks
):
    values = np.random.default_rng(7).normal(size=(2, 200, 10_000)).astype(np.float32)
    array = xr.DataArray(values, dims=("chain", "draw", "record"), name="log_lik")

    def peak(log_lik):
        tracemalloc.start()
        scan(log_lik, np.linspace(0, 1, 10_000))
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    # the values alone take 16 MB, and nothing is copied that lies in memory; in one block they are
    with in_zarr(array, tmp_path, chunks) if chunks else array as log_lik:
        monkeypatch.setattr(ppm.scan, "BLOCK" if chunks else "_TILE", 100_000)
        assert peak(log_lik) < 5e6
        for size in "BLOCK", "_TILE", "_WIDE":
            monkeypatch.setattr(ppm.scan, size, 1 << 30)
        assert peak(log_lik) > 15e6


def test_terms_within_limits_are_read_in_double_precision_and_weight_0_has_none():
    log_lik = np.random.default_rng(8).normal(-2, 3, size=(40, 6)).astype(np.float32)
    weights = np.array([0.0, 0.5, 1.0, 1.0, 2.0, 3.0])
    # no float of 32 bits
    censor = ppm.Censoring(-3.1, -1.3)
    found = scan(log_lik, ppm.Terms(weights, limits=censor))
    terms = censor.term(log_lik.astype(np.float64) * weights)
    assert np.array_equal(found.bounds, np.abs(terms).max(axis=0) * (weights > 0))
    assert np.array_equal(found.oscillations, np.ptp(terms, axis=0) * (weights > 0))
    assert np.allclose(found.draw_sums, terms[:, 1:].sum(axis=1))
    assert found.oscillations.max() <= censor.width
