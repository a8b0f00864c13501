"""Bounds against the definition, written out in full."""

import tracemalloc

import numpy as np
import pytest
import xarray as xr
from scipy import stats

import ppm


@pytest.fixture
def log_lik():
    return np.random.default_rng(1).normal(-2, 3, size=(700, 230))


@pytest.mark.parametrize(
    ("log_lik", "message"),
    [
        (np.zeros(3), r"shape \(draws, records\)"),
        (np.zeros((0, 3)), "empty"),
        (xr.DataArray(np.zeros((2, 2)), dims=("a", "b")), "chain and/or draw"),
        (xr.DataArray(np.zeros((2, 2, 2)), dims=("draw", "a", "b")), "one record dimension"),
    ],
)
def test_wrong_matrices_are_refused(log_lik, message):
    with pytest.raises(ValueError, match=message):
        ppm.record_bounds(log_lik)


def test_oscillations_are_column_ranges_of_weighted_log_likelihoods(log_lik):
    weights = np.random.default_rng(2).uniform(size=230)
    expected = np.ptp(weights * log_lik, axis=0)
    assert np.allclose(ppm.record_oscillations(log_lik, weights), expected)
    assert np.isclose(ppm.oscillation_bound(log_lik, weights), expected.max())


def test_a_constant_in_the_log_likelihood_moves_the_bound_and_not_the_oscillation(log_lik):
    assert np.allclose(ppm.record_oscillations(log_lik - 40), ppm.record_oscillations(log_lik))
    assert ppm.local_bound(log_lik - 40) > 2 * ppm.local_bound(log_lik)


def test_an_oscillation_beyond_the_largest_number_is_infinite():
    log_lik = [[1.7e308, 1.0], [-1.7e308, -1.0]]
    assert ppm.record_oscillations(log_lik, [0.5, 0.5]).tolist() == [np.inf, 1.0]
    assert ppm.record_bounds(log_lik, [0.5, 0.5]).tolist() == [8.5e307, 0.5]


def test_on_a_finite_set_of_draws_the_self_normalised_loss_is_within_the_oscillation(log_lik):
    weights = np.random.default_rng(2).uniform(size=230)
    weighted = weights * log_lik
    # uniform on the draws with the record, in proportion to p^-α without it
    loss = weighted + np.log(np.mean(np.exp(-weighted), axis=0))
    assert np.all(np.abs(loss).max(axis=0) <= ppm.record_oscillations(log_lik, weights) + 1e-12)
    # normalised on one draw more, the ratio can leave the range over the first draws
    far = np.vstack([weighted, weighted.min(axis=0) - 30])
    loss = (far + np.log(np.mean(np.exp(-far), axis=0)))[:-1]
    assert np.all(np.abs(loss).max(axis=0) > ppm.record_oscillations(log_lik, weights))


@pytest.mark.parametrize("unit", [1e3, 1e-3])
def test_the_unit_of_a_continuous_outcome_moves_bound_and_weights_but_not_the_oscillation(unit):
    rng = np.random.default_rng(5)
    income = rng.lognormal(3.0, 0.5, size=60)
    mean = rng.normal(np.mean(income), 1.0, size=(200, 1))
    spread = rng.uniform(8, 12, size=(200, 1))
    one, other = (
        stats.norm.logpdf(factor * income, factor * mean, factor * spread)
        for factor in (1.0, unit)
    )
    weights, others = (
        ppm.record_weights(ppm.record_bounds(one)),
        ppm.record_weights(ppm.record_bounds(other)),
    )
    assert np.allclose(
        ppm.record_oscillations(one, weights), ppm.record_oscillations(other, weights)
    )
    assert abs(ppm.local_bound(one) - ppm.local_bound(other)) > 1
    # the paper's weights follow |log p|; here both ends move alike, and the scaling with them,
    # unless the sign of log p changes
    assert np.allclose(ppm.record_bounds(one) + np.log(unit), ppm.record_bounds(other)) == (
        unit > 1
    )
    assert np.allclose(weights, others) == (unit > 1)
    reciprocal = [
        ppm.mapped_weights(ppm.record_bounds(found), lambda z: 1 / (z + 1))
        for found in (one, other)
    ]
    assert not np.allclose(*reciprocal, rtol=0.05)


# ---- all but a stated part of the posterior -------------------------------------------------


@pytest.mark.parametrize("draws", [59, 299, 300, 1_000, 20_000])
@pytest.mark.parametrize(("outside", "confidence"), [(0.01, 0.95), (0.05, 0.95), (0.02, 0.5)])
def test_the_tail_bound_is_the_lowest_order_statistic_that_is_sure_enough(
    draws, outside, confidence
):
    # the k-th smallest of the draws is k, and the part beneath it Beta(k, S - k + 1)
    def sure(k):
        return stats.beta(k, draws - k + 1).sf(1.0 - outside) if k else 0.0

    log_lik = -np.random.default_rng(1).permutation(np.arange(1.0, draws + 1))[:, None]
    if sure(draws) < confidence:
        with pytest.raises(ValueError, match="needs at least"):
            ppm.tail_bound(log_lik, tail_probability=outside, confidence=confidence)
        return
    found = ppm.tail_bound(log_lik, tail_probability=outside, confidence=confidence)
    assert sure(found.bound) >= confidence > sure(found.bound - 1)
    assert (found.tail_probability, found.confidence, found.draws) == (outside, confidence, draws)
    # beyond the largest lies Beta(1, S), and as much as this with the rest of the confidence only
    assert found.largest == draws
    assert stats.beta(1, draws).cdf(found.beyond_largest) == pytest.approx(confidence)


def test_what_lies_beyond_a_tail_bound_is_small_for_the_records_and_not_for_their_neighbour():
    counts = np.array([0, 0, 18])
    records = ppm.GammaPoisson(counts, shape=1.0, rate=0.1)
    fit = records.fit(draws=4_000, random_seed=1)
    found = ppm.tail_bound(records.log_likelihood(fit), tail_probability=0.01)
    mu = np.linspace(0.001, 60, 60_000)
    within = mu[np.abs(stats.poisson.logpmf(counts, mu[:, None])).max(axis=1) <= found.bound]
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


def test_too_few_draws_for_a_tail_bound_are_told_how_many_would_do():
    with pytest.raises(ValueError, match="at least 299 draws"):
        ppm.tail_bound(np.zeros((298, 2)))
    # more than any whole number says
    with pytest.raises(ValueError, match="^tail_probability=1e-310 with .* inf draws"):
        ppm.tail_bound(np.zeros((298, 2)), tail_probability=1e-310)


def test_the_expected_bound_of_fewer_draws_is_the_mean_over_all_choices():
    from itertools import combinations

    log_lik = -np.random.default_rng(1).exponential(size=(7, 3))
    found = ppm.lipschitz.bound_by_draws(log_lik, [1, 3, 7])
    maxima = ppm.lipschitz.draw_maxima(log_lik)
    expected = [
        np.mean([max(choice) for choice in combinations(maxima, number)]) for number in (1, 3, 7)
    ]
    assert np.allclose(found, expected) and found.index.tolist() == [1, 3, 7]


# ---- log-likelihoods that never exist whole --------------------------------------------------


WEIGHTS = np.random.default_rng(6).uniform(size=130) * (np.arange(130) % 4 > 0)
CHUNKS = [(1, 30, 130), (1, 200, 20), (3, 20, 50), (2, 70, 64)]


def stored(dtype=np.float64):
    """Log-likelihoods of three chains, one of them infinite at a record of weight 0."""
    values = np.random.default_rng(5).normal(-2, 3, size=(3, 200, 130)).astype(dtype)
    values[1, 50, 4] = -np.inf
    return xr.DataArray(values, dims=("chain", "draw", "household"), name="log_lik")


def in_zarr(array, folder, chunks):
    # the store has its dimensions in an order of its own
    chains, draws, records = array.dims
    turned = {records: chunks[2], chains: chunks[0], draws: chunks[1]}
    array.transpose(*turned).to_dataset().to_zarr(
        folder / "store", encoding={"log_lik": {"chunks": tuple(turned.values())}},
        consolidated=False,
    )
    return xr.open_dataset(folder / "store", engine="zarr", consolidated=False)["log_lik"]


def in_netcdf(array, folder, chunks):
    pytest.importorskip("h5py")
    array.to_netcdf(
        folder / "file.nc", engine="h5netcdf", encoding={"log_lik": {"chunksizes": chunks}}
    )
    return xr.open_dataset(folder / "file.nc", engine="h5netcdf")["log_lik"]


def behind_dask(array, folder, chunks):
    return array.chunk(dict(zip(array.dims, chunks, strict=True)))


def unevenly_behind_dask(array, folder, chunks):
    return behind_dask(array, folder, chunks).chunk({"draw": (1, 99, 40, 60)})


def in_memory(array, folder, chunks):
    return array


def numbers(log_lik, weights=WEIGHTS):
    """What is computed from a log-likelihood to the bit, and sums of blocks."""
    found = ppm.lipschitz.read_once(log_lik, weights)
    exact = [found.bounds, found.oscillations, found.largest, ppm.record_bounds(log_lik)]
    return exact, found.total


@pytest.fixture
def in_small_blocks(monkeypatch):
    monkeypatch.setattr(ppm.lipschitz, "BLOCK", 2_500)
    monkeypatch.setattr(ppm.lipschitz, "_TILE", 600)
    monkeypatch.setattr(ppm.lipschitz, "_WIDE", 64)


@pytest.mark.parametrize(
    ("source", "chunks", "dtype"),
    [
        (in_memory, None, np.float64), (in_memory, None, np.float32),
        *((in_zarr, chunks, np.float64) for chunks in CHUNKS), (in_zarr, CHUNKS[3], np.float32),
        (in_netcdf, CHUNKS[1], np.float32), (behind_dask, CHUNKS[2], np.float64),
        (unevenly_behind_dask, CHUNKS[3], np.float32),
    ],
)
def test_what_is_read_in_blocks_is_what_the_definition_says(
    in_small_blocks, tmp_path, source, chunks, dtype
):
    array = stored(dtype)
    with source(array, tmp_path, chunks) as log_lik:
        turned = log_lik.transpose("draw", "household", "chain")
        # a warm-up left out, which no chunk ends with
        for asked, draws in (
            (log_lik, slice(None)),
            (turned, slice(None)),
            (log_lik.isel(draw=slice(13, None)), slice(13, None)),
        ):
            values = array.values[:, draws].astype(np.float64)
            kept = np.where(WEIGHTS > 0, values, 0.0)  # a record of weight 0 counts as none
            exact, total = numbers(asked)
            assert np.array_equal(exact[0], WEIGHTS * np.abs(kept).max(axis=(0, 1)))
            assert np.array_equal(exact[1], WEIGHTS * np.ptp(kept, axis=(0, 1)))
            terms = WEIGHTS * kept
            assert np.array_equal(exact[2], np.abs(terms).max(axis=2).reshape(exact[2].shape))
            assert np.array_equal(exact[3], np.abs(values).max(axis=(0, 1)))
            assert np.allclose(total, terms.sum(axis=2), 1e-12, 1e-12)


def test_not_a_number_in_the_last_block_of_a_store_is_refused_at_any_weight(
    in_small_blocks, tmp_path
):
    array = stored()
    array[-1, -1, -1] = np.nan
    weights = np.r_[np.ones(4), 0, np.ones(124), 0]
    with in_zarr(array, tmp_path, CHUNKS[3]) as log_lik:
        with pytest.raises(ValueError, match=r"NaN \(first in record 129, 1 of 130 records"):
            ppm.record_bounds(log_lik)
        for function in (ppm.record_bounds, ppm.record_oscillations, ppm.lipschitz.draw_maxima,
                         ppm.diagnostics.bound_diagnostics):
            with pytest.raises(ValueError, match="log_lik holds NaN"):
                function(log_lik, weights)
    array[-1, -1, -1] = -np.inf
    assert np.isfinite(ppm.lipschitz.draw_maxima(array, weights)).all()


@pytest.mark.parametrize("chunks", CHUNKS)
def test_no_chunk_is_read_twice(in_small_blocks, chunks):
    dask = pytest.importorskip("dask.array")
    array, read = stored(), []

    def noting(block, block_info=None):
        read.append(block_info[0]["chunk-location"])
        return block

    lazy = dask.from_array(array.values, chunks=chunks).map_blocks(noting, dtype=np.float64)
    log_lik = xr.DataArray(lazy, dims=array.dims)
    ppm.lipschitz.read_once(log_lik.transpose("household", "draw", "chain"), WEIGHTS)
    assert len(read) == len(set(read)) == lazy.npartitions


@pytest.mark.parametrize("chunks", [(1, 10, 20_000), (1, 400, 500), None])
def test_memory_is_set_by_the_block_and_not_by_the_number_of_values(
    monkeypatch, tmp_path, chunks
):
    array = xr.DataArray(
        np.random.default_rng(7).normal(size=(2, 400, 20_000)).astype(np.float32),
        dims=("chain", "draw", "record"), name="log_lik",
    )

    def peak(log_lik):
        tracemalloc.start()
        ppm.lipschitz.read_once(log_lik, np.linspace(0, 1, 20_000))
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    # the values alone take 64 MB, and nothing is copied that lies in memory; in one block they are
    with (in_zarr(array, tmp_path, chunks) if chunks else array) as log_lik:
        monkeypatch.setattr(ppm.lipschitz, "BLOCK" if chunks else "_TILE", 200_000)
        assert peak(log_lik) < 10e6
        for size in "BLOCK", "_TILE", "_WIDE":
            monkeypatch.setattr(ppm.lipschitz, size, 1 << 30)
        assert peak(log_lik) > 60e6


def test_terms_within_limits_are_read_in_double_precision():
    log_lik = np.random.default_rng(8).normal(-2, 3, size=(40, 6)).astype(np.float32)
    # no float of 32 bits
    censor = ppm.Censoring(-3.1, -1.3)
    found = ppm.lipschitz.read_once(log_lik, censor=censor)
    terms = censor.terms(log_lik.astype(np.float64))
    assert np.array_equal(found.lowest, terms.min(axis=0))
    assert np.array_equal(found.highest, terms.max(axis=0))
    assert found.oscillations.max() <= censor.width
