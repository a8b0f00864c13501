"""Diagnostics tell chains that agree from chains that do not, and from those that say nothing.

How many divergent draws are too many is in test_fit.
"""

import arviz_stats
import numpy as np
import pytest

import ppm


def log_lik(shift=0.0):
    values = -np.random.default_rng(1).gamma(2, 1, size=(2, 400, 30))
    values[1] -= shift
    return values


def diagnosed(array, weights=1.0, *, diverged=0):
    diverging = np.arange(array[..., 0].size) < diverged
    weights = weights * np.ones(array.shape[-1])
    return ppm.chains.bound_diagnostics(array, weights, diverging=diverging)


@pytest.mark.parametrize("shape", [(1, 41), (2, 9), (3, 50), (4, 1_001)])
def test_both_quantities_have_the_r_hat_and_the_effective_draws_of_arviz(shape):
    rng = np.random.default_rng(5)
    # a walk, so that there is something to correct for
    array = np.cumsum(rng.standard_normal((*shape, 20)), axis=1)
    weights = rng.random(20)
    found = ppm.chains.bound_diagnostics(array, weights)
    largest, total = abs(array * weights).max(axis=-1), (array * weights).sum(axis=-1)
    half = shape[1] // 2
    for quantity, r_hat, effective in (
        (largest, found.r_hat, found.effective_draws),
        (
            total,
            found.r_hat_log_likelihood,
            found.effective_draws_log_likelihood,
        ),
    ):
        single = np.concatenate([quantity[:, :half], quantity[:, -half:]])
        chains = single if shape[0] == 1 else quantity
        assert r_hat == pytest.approx(float(arviz_stats.rhat(chains)), rel=1e-12)
        assert effective == pytest.approx(float(arviz_stats.ess(quantity)), rel=1e-12)
    assert found.by_chain == pytest.approx(largest.max(axis=1))
    assert found.typical == pytest.approx(np.median(largest))


def drifting(array):
    array = array[:1].copy()
    array[:, 200:] -= 5.0
    return array


@pytest.mark.parametrize(
    ("array", "fault"),
    [
        (log_lik(), None),
        (log_lik()[:1], None),
        (log_lik()[:, :8], None),
        (log_lik(5.0), "R-hat is 1.7"),
        (drifting(log_lik()), "R-hat is 1."),
        (log_lik()[:, :7], "R-hat is undefined (run at least 8 draws"),
    ],
)
def test_chains_that_agree_pass_and_those_that_do_not_or_cannot_be_compared_show(
    array, fault
):
    found = diagnosed(array)
    assert found.agree == (not found.faults) == (fault is None)
    assert fault is None or found.r_hat_faults[0].startswith(fault)
    assert (
        np.isnan(found.r_hat) == np.isnan(found.effective_draws) == (array.shape[1] < 8)
    )
    assert ("\nnan: " in str(found)) == np.isnan(found.effective_draws)


def frozen(start, chains=2):
    """The chains of `log_lik`, the last of which stands still from a draw on."""
    array = log_lik()[:chains].copy()
    array[-1, start:] = array[-1, start]
    return array


@pytest.mark.parametrize("chains", [1, 2])
def test_a_chain_that_stands_still_is_a_fault(chains):
    for start in (0, 200):
        (fault,) = diagnosed(frozen(start, chains)).faults_besides_r_hat
        assert fault.startswith(
            "a chain stood still for half of its draws or more (run a longer"
        )
    assert not diagnosed(frozen(300, chains)).faults_besides_r_hat


def test_a_bound_that_is_the_same_in_all_draws_is_left_to_the_log_likelihood():
    array = log_lik().clip(min=-1.0)
    good = diagnosed(array)
    array[1, :, :15] = -0.5
    poor = diagnosed(array)
    assert (
        good.by_chain == poor.by_chain == (1.0, 1.0)
        and np.isnan([good.r_hat, poor.r_hat]).all()
    )
    assert good.agree and not poor.agree
    assert poor.faults[0].startswith(
        f"R-hat is {poor.r_hat_log_likelihood:.3f}, above 1.05"
    )


def test_nothing_is_held_against_chains_whose_records_all_have_weight_0():
    for array in (log_lik(5.0), frozen(0), log_lik()[:, :3]):
        found = diagnosed(array, np.zeros(30), diverged=800)
        assert found.agree and found.by_chain == (0.0, 0.0)
        # one record is enough
        assert not diagnosed(array, np.eye(30)[0] / 10).agree


def test_an_infinite_log_likelihood_is_a_fault_unless_its_weight_is_0():
    array = log_lik()
    for draws in 3, slice(None):
        array[:, draws, 4] = -np.inf
        (fault,) = diagnosed(array).faults_besides_r_hat
        assert fault.startswith(
            "a log-likelihood is infinite (correct the model, or give"
        )
        assert diagnosed(array, 1.0 - np.eye(30)[4]).agree


@pytest.mark.parametrize("tail", ["exponential", "standard_normal"])
def test_the_error_of_a_bound_is_its_scatter_over_repeated_fits(tail):
    rng = np.random.default_rng(6)
    fits = [abs(getattr(rng, tail)(size=(2, 250, 10))) for _ in range(60)]
    found = [diagnosed(-values) for values in fits]
    scatter = np.std([max(one.by_chain) for one in found], ddof=1)
    assert 0.7 < np.sqrt(np.mean([one.error**2 for one in found])) / scatter < 1.5
    # what would do for an average is far too small for a maximum
    assert (
        np.mean([fit.max(axis=2).std() / np.sqrt(500) for fit in fits]) < 0.3 * scatter
    )
