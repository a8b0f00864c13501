"""Diagnostics tell chains that agree from chains that do not, and from those that say nothing."""

import arviz_stats
import numpy as np
import pytest
import xarray as xr

import ppm


def log_lik(shift=0.0):
    values = -np.random.default_rng(1).gamma(2, 1, size=(2, 400, 30))
    values[1] -= shift
    return xr.DataArray(values, dims=("chain", "draw", "record"))


def diagnosed(array, weights=None, **settings):
    weights = np.ones(array.sizes["record"]) if weights is None else weights
    return ppm.diagnostics.bound_diagnostics(array, weights, **settings)


def test_agreeing_chains_pass_and_a_stuck_one_shows():
    good = diagnosed(log_lik())
    stuck = diagnosed(log_lik(5.0))
    assert good.r_hat < 1.02 and good.r_hat_log_likelihood < 1.02
    assert stuck.r_hat > 1.5 and stuck.r_hat_log_likelihood > 1.5
    assert good.effective_draws > 500 > 50 > stuck.effective_draws


def test_what_is_undefined_is_nan_and_withholds():
    few = diagnosed(log_lik()[:, :7])
    assert np.isnan([few.r_hat, few.effective_draws, few.r_hat_log_likelihood]).all()
    assert few.faults == ("R-hat is undefined (run at least 8 draws per chain)",)
    assert not few.agree and "R-hat nan" in str(few)
    assert np.isfinite(diagnosed(log_lik()[:, :8]).r_hat)


@pytest.mark.parametrize("shape", [(1, 40), (2, 9), (2, 300), (3, 50), (4, 1_001)])
def test_both_quantities_have_the_r_hat_and_the_effective_draws_of_arviz(shape):
    rng = np.random.default_rng(5)
    # a walk, so that there is something to correct for
    values = np.cumsum(rng.standard_normal((*shape, 20)), axis=1)
    array = xr.DataArray(values, dims=("chain", "draw", "record"))
    weights = rng.random(20)
    found = ppm.diagnostics.bound_diagnostics(array.transpose("record", "draw", "chain"), weights)
    largest, total = abs(array * weights).max("record"), (array * weights).sum("record")
    halves = shape[1] // 2
    for quantity, r_hat, effective in (
        (largest, found.r_hat, found.effective_draws),
        (total, found.r_hat_log_likelihood, found.effective_draws_log_likelihood),
    ):
        chains = quantity.values
        if len(chains) == 1:
            chains = np.concatenate([chains[:, :halves], chains[:, -halves:]])
        assert r_hat == pytest.approx(float(arviz_stats.rhat(chains)), rel=1e-12)
        assert effective == pytest.approx(float(arviz_stats.ess(quantity.values)), rel=1e-12)


def frozen(start, chains=2):
    """The chains of `log_lik`, the last of which stands still from a draw on."""
    array = log_lik()[:chains].copy()
    array[-1, start:] = array[-1, start].values
    return array


@pytest.mark.parametrize("chains", [1, 2])
@pytest.mark.parametrize("start", [0, 200])
def test_a_chain_that_stands_still_is_a_fault(start, chains):
    (fault,) = diagnosed(frozen(start, chains)).faults
    assert fault.startswith("a chain stood still for half of its draws or more (run a longer")
    assert not any("still" in fault for fault in diagnosed(frozen(300, chains)).faults)


def test_a_bound_that_is_the_same_in_all_draws_is_left_to_the_log_likelihood():
    array = log_lik().clip(min=-1.0)  # as a censored term may be
    good = diagnosed(array)
    assert np.isnan(good.r_hat) and good.by_chain == (1.0, 1.0)
    assert good.agree
    array[1, :, :15] = -0.5
    poor = diagnosed(array)
    assert np.isnan(poor.r_hat) and poor.by_chain == (1.0, 1.0) and not poor.agree
    assert poor.faults[0].startswith(f"R-hat is {poor.r_hat_log_likelihood:.3f}, above 1.05")


def test_nothing_is_held_against_chains_whose_records_all_have_weight_0():
    diverging = xr.Dataset({"diverging": (("chain", "draw"), np.ones((2, 400), dtype=bool))})
    for array in (log_lik(5.0), frozen(0), log_lik()[:, :3]):
        stats = diverging.isel(draw=slice(array.sizes["draw"]))
        found = ppm.diagnostics.bound_diagnostics(array, np.zeros(30), sample_stats=stats)
        assert found.agree and found.by_chain == (0.0, 0.0)
        # one record is enough
        found = ppm.diagnostics.bound_diagnostics(array, np.eye(30)[0] / 10, sample_stats=stats)
        assert not found.agree


@pytest.mark.parametrize("draws", [slice(3, 4), slice(None)])
def test_an_infinite_log_likelihood_is_a_fault_unless_its_weight_is_0(draws):
    array, weights = log_lik(), np.ones(30)
    array[:, draws, 4] = -np.inf
    found = ppm.diagnostics.bound_diagnostics(array, weights)
    assert found.faults == (
        "a log-likelihood is infinite (correct the model, or give an impossible record weight 0)",
    )
    assert not found.agree
    weights[4] = 0.0
    assert ppm.diagnostics.bound_diagnostics(array, weights).agree


def test_more_than_a_tenth_of_divergent_draws_withholds_and_fewer_are_printed():
    def diverged(number):
        diverging = (np.arange(800) < number).reshape(2, 400)
        stats = xr.Dataset({"diverging": (("chain", "draw"), diverging)})
        return ppm.diagnostics.bound_diagnostics(log_lik(), np.ones(30), sample_stats=stats)

    few, many = diverged(80), diverged(81)
    assert few.agree and "\n80 divergent transitions" in str(few)
    assert not many.agree
    assert many.faults == (
        "81 of 800 draws diverged, more than 10% (raise target_accept, or reparametrise the "
        "model)",
    )
    assert "divergent" not in str(diverged(0))


@pytest.mark.parametrize("both", [False, True])
def test_only_the_first_r_hat_decides_unless_both_are_asked_for(both):
    array = log_lik() * 0.01
    array[1] -= 0.5
    # the bound is that of one record, on which the chains agree
    array[..., 0] = log_lik()[..., 0] - 2.0
    found = diagnosed(array, total_decides=both)
    assert found.r_hat < 1.02 and found.r_hat_log_likelihood > 1.5 and found.agree != both
    assert f"of the log-likelihood {found.r_hat_log_likelihood:.3f}" in str(found)


def test_the_log_likelihood_must_have_chains_and_draws():
    with pytest.raises(ValueError, match="^log_lik must be an xarray.DataArray with the dim"):
        ppm.diagnostics.bound_diagnostics(np.ones((9, 3)), np.ones(3))


def test_a_single_chain_is_compared_with_itself():
    one_chain = diagnosed(log_lik()[:1])
    assert one_chain.r_hat < 1.02 and one_chain.agree
    drifting = log_lik()[:1].copy()
    drifting[:, 200:] -= 5.0
    assert not diagnosed(drifting).agree


@pytest.mark.parametrize("tail", ["exponential", "standard_normal"])
def test_the_error_of_a_bound_is_its_scatter_over_repeated_fits(tail):
    rng = np.random.default_rng(6)
    bounds, errors, by_root = [], [], []
    for _ in range(60):
        values = getattr(rng, tail)(size=(2, 250, 10))
        array = xr.DataArray(-abs(values), dims=("chain", "draw", "record"))
        bounds.append(ppm.local_bound(array))
        errors.append(ppm.diagnostics.bound_diagnostics(array, np.ones(10)).error)
        # what would do for an average is far too small for a maximum
        by_root.append(abs(values).max(axis=2).std() / np.sqrt(500))
    scatter = np.std(bounds, ddof=1)
    assert 0.7 < np.sqrt(np.mean(np.square(errors))) / scatter < 1.5
    assert np.mean(by_root) < 0.3 * scatter
