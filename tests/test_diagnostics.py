"""Diagnostics tell chains that agree from chains that do not."""

import numpy as np
import pytest
import xarray as xr

import ppm


def log_lik(shift=0.0):
    values = -np.random.default_rng(1).gamma(2, 1, size=(2, 400, 30))
    values[1] -= shift
    return xr.DataArray(values, dims=("chain", "draw", "record"))


def test_agreeing_chains_pass_and_a_stuck_one_shows():
    good = ppm.bound_diagnostics(log_lik(), np.ones(30))
    stuck = ppm.bound_diagnostics(log_lik(5.0), np.ones(30))
    assert good.r_hat < 1.02 and good.r_hat_log_likelihood < 1.02
    assert stuck.r_hat > 1.5 and stuck.r_hat_log_likelihood > 1.5
    assert good.effective_draws > 500 > 50 > stuck.effective_draws


def test_the_weighted_quantities_are_diagnosed():
    array = log_lik()
    array[1, :, 0] -= 50  # one record differs between chains
    weights = np.ones(30)
    assert ppm.bound_diagnostics(array, weights).r_hat > 1.5
    weights[0] = 0
    assert ppm.bound_diagnostics(array, weights).r_hat < 1.02


def test_bounds_by_chain_have_the_local_bound_as_their_maximum():
    array, weights = log_lik(), np.linspace(0, 1, 30)
    found = ppm.bound_diagnostics(array, weights)
    assert max(found.by_chain) == pytest.approx(ppm.local_bound(array, weights))
    assert found.by_chain[0] == pytest.approx(ppm.local_bound(array[0], weights))


def test_the_typical_value_barely_moves_with_the_number_of_draws_and_the_bound_does():
    array = xr.DataArray(
        -np.random.default_rng(2).exponential(size=(1, 4_000, 5)), dims=("chain", "draw", "record")
    )
    few, many = (ppm.bound_diagnostics(array[:, :size], np.ones(5)) for size in (100, 4_000))
    assert many.typical == pytest.approx(few.typical, rel=0.1)
    assert many.by_chain[0] > 1.3 * few.by_chain[0]


def test_what_cannot_be_said_is_nan():
    assert np.isnan(ppm.bound_diagnostics(log_lik()[:, :2], np.ones(30)).effective_draws)


def test_a_single_chain_is_compared_with_itself():
    one_chain = ppm.bound_diagnostics(log_lik()[:1], np.ones(30))
    assert one_chain.r_hat < 1.02 and one_chain.agree
    drifting = log_lik()[:1].copy()
    drifting[:, 200:] -= 5.0
    assert not ppm.bound_diagnostics(drifting, np.ones(30)).agree


def test_agreement_divergences_and_spread():
    good, stuck = (ppm.bound_diagnostics(log_lik(shift), np.ones(30)) for shift in (0.0, 5.0))
    assert good.agree and not stuck.agree
    assert good.divergences is None
    diverging = xr.Dataset({"diverging": (("chain", "draw"), np.eye(2, 400, dtype=bool))})
    counted = ppm.bound_diagnostics(log_lik(), np.ones(30), sample_stats=diverging)
    assert counted.divergences == 2
    low, high = good.spread
    assert low < high == max(good.by_chain)
    # all weights 0: a bound of 0 that never moves is no disagreement
    assert ppm.bound_diagnostics(log_lik(), np.zeros(30)).agree


@pytest.mark.parametrize("tail", ["exponential", "standard_normal"])
def test_the_error_of_a_bound_is_its_scatter_over_repeated_fits(tail):
    rng = np.random.default_rng(6)
    bounds, errors, by_root = [], [], []
    for _ in range(60):
        values = getattr(rng, tail)(size=(2, 250, 10))
        array = xr.DataArray(-abs(values), dims=("chain", "draw", "record"))
        bounds.append(ppm.local_bound(array))
        errors.append(ppm.bound_diagnostics(array, np.ones(10)).error)
        # what would do for an average is far too small for a maximum
        by_root.append(abs(values).max(axis=2).std() / np.sqrt(500))
    scatter = np.std(bounds, ddof=1)
    assert 0.7 < np.sqrt(np.mean(np.square(errors))) / scatter < 1.5
    assert np.mean(by_root) < 0.3 * scatter
