"""Bounds of arrays, also of those that never exist whole. Of fits they are in laws.

What a bound and an oscillation are is in properties/test_bounds_and_weights.
"""

import tracemalloc

import dask.array
import numpy as np
import pytest
import xarray as xr
from scipy import stats

import ppm
from ppm.bounds import blocks_of, extremes

WEIGHTS = np.random.default_rng(6).uniform(0.0, 3.0, 130) * (np.arange(130) % 4 > 0)


@pytest.mark.parametrize("unit", [1e3, 1e-3])
def test_the_unit_of_a_continuous_outcome_moves_bound_and_weights_but_not_the_oscillation(
    unit,
):
    rng = np.random.default_rng(5)
    income = rng.lognormal(3.0, 0.5, size=60)
    mean = rng.normal(np.mean(income), 1.0, (200, 1))
    spread = rng.uniform(8, 12, (200, 1))
    own, other = (
        stats.norm.logpdf(factor * income, factor * mean, factor * spread)
        for factor in (1, unit)
    )
    bounds, others = ppm.record_bounds(own), ppm.record_bounds(other)
    assert np.allclose(ppm.record_oscillations(own), ppm.record_oscillations(other))
    assert abs(bounds.max() - others.max()) > 1
    # the paper's weights follow |log p|; here both ends move alike, and the scaling with them,
    # unless the sign of log p changes
    assert np.allclose(bounds + np.log(unit), others) == (unit > 1)
    assert np.allclose(*map(ppm.record_weights, (bounds, others))) == (unit > 1)


def log_lik():
    """Log-likelihoods of three chains, one of them infinite at a record of weight 0."""
    values = np.random.default_rng(5).normal(-2, 3, size=(3, 200, 130))
    values[1, 50, 4] = -np.inf
    return xr.DataArray(values, dims=("chain", "draw", "household"))


FORMS = {
    "NumPy": lambda array: array.values.reshape(600, 130),
    "a DataArray": lambda array: array,
    "records first": lambda array: array.transpose("household", "draw", "chain"),
    "dask": lambda array: dask.array.from_array(
        array.values.reshape(600, 130), (70, 50)
    ),
    "a DataArray on dask": lambda array: array.chunk(chain=1, draw=30, household=50),
    "on dask, records first": lambda array: array.chunk(draw=(1, 99, 40, 60)).transpose(
        "household", "draw", "chain"
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_an_array_has_the_bounds_of_the_definition(form):
    array, values = FORMS[form](log_lik()), log_lik().values.reshape(600, 130)
    kept = np.where(WEIGHTS > 0, values, 0.0)  # a record of weight 0 counts as none
    bounds = ppm.record_bounds(array, WEIGHTS)
    assert type(bounds) is np.ndarray
    assert np.array_equal(bounds, np.abs(WEIGHTS * kept).max(axis=0))
    assert ppm.local_bound(array, WEIGHTS) == bounds.max()
    oscillations = ppm.record_oscillations(array, WEIGHTS)
    assert np.array_equal(oscillations, np.ptp(WEIGHTS * kept, axis=0))
    assert np.array_equal(ppm.record_bounds(array), np.abs(values).max(axis=0))
    # at any weight, also in the last block
    missing = log_lik()
    missing[-1, -1, -1] = np.nan
    for function in ppm.record_bounds, ppm.record_oscillations:
        with pytest.raises(
            ValueError, match=r"NaN \(first in record 129, 1 of 130 rec"
        ):
            function(FORMS[form](missing), WEIGHTS * 0)


def test_each_block_of_a_dask_array_is_read_once_and_memory_is_bounded_by_some():
    read, shape, chunks = [], (400, 40_000), (50, 5_000)

    def block(block_info=None):
        place = block_info[None]["array-location"]
        read.append(tuple(map(tuple, place)))
        sizes = [stop - start for start, stop in place]
        return np.full(sizes, -1.0 - place[0][0])

    # computed when it is read, and never held: 128 MB
    array = dask.array.map_blocks(
        block,
        chunks=dask.array.core.normalize_chunks(chunks, shape),
        meta=np.empty((0, 0)),
    )
    with dask.config.set(scheduler="synchronous"):
        tracemalloc.start()
        bounds = ppm.record_bounds(xr.DataArray(array, dims=("draw", "record")))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert len(read) == len({*read}) == array.npartitions
    assert (bounds == 351.0).all() and peak < 30e6


def test_what_is_gathered_from_blocks_of_draws_is_that_of_the_whole_matrix():
    model = ppm.GammaPoisson(np.random.default_rng(1).poisson(5, 400))
    grid, rng = {"mu": np.linspace(3.0, 8.0, 2000)}, np.random.default_rng(2)
    terms = ppm.Terms(rng.uniform(0.1, 1.0, 400))
    assert len([*blocks_of(model, grid)]) > 2
    log_p = model.log_p(grid)
    for read in (
        extremes(blocks_of(model, grid), 2000, terms),
        ppm.Candidates(model, grid).extremes(terms),
    ):
        np.testing.assert_array_equal(read.lowest, log_p.min(axis=0))
        np.testing.assert_array_equal(read.highest, log_p.max(axis=0))
        np.testing.assert_allclose(read.maxima, np.abs(terms(log_p)).max(axis=1))
        np.testing.assert_allclose(read.sums, terms(log_p).sum(axis=1))
    ends = ppm.Candidates(model, grid).ends()
    np.testing.assert_array_equal(ends, [log_p.min(axis=0), log_p.max(axis=0)])
    fit = ppm.fit(model, terms, draws=2000, random_seed=1)
    log_p = model.log_p(fit.theta)
    for found, of_matrix in (
        (fit.record_bounds, ppm.record_bounds),
        (fit.record_oscillations, ppm.record_oscillations),
    ):
        np.testing.assert_allclose(found, of_matrix(log_p, fit.weights), rtol=1e-12)


@pytest.mark.parametrize(
    "array",
    [
        log_lik().rename(chain="walk", draw="step"),
        log_lik().to_dataset(name="y"),
        log_lik().values,
        np.empty((0, 3)),
        [["a"]],
        [1.0, 2.0],
        dask.array.zeros((2, 3), dtype=complex),
    ],
)
def test_what_is_no_matrix_of_numbers_is_refused(array):
    with pytest.raises(ValueError, match="^log_lik must "):
        ppm.record_bounds(array)
