"""Censoring: the term of a record, and where a public reference places its limits.

Properties and refusals are in properties/test_privacy_arithmetic, tensors in test_pymc_censored.
"""

import numpy as np
import pytest
import xarray as xr

from ppm.censoring import Censoring, censoring_interval
from ppm.synthesizers.gamma_poisson import log_likelihood_of_counts
from ppm.terms import Terms


def test_hard_censoring_cuts_and_smooth_censoring_is_the_formula():
    z = np.linspace(-9.0, 5.0, 57)
    assert np.array_equal(
        Censoring(-3, -1, False).term(z), np.minimum(np.maximum(z, -3), -1)
    )
    assert np.allclose(
        Censoring(-3, -1).term(z), -2 + np.tanh(z + 2), rtol=0, atol=1e-15
    )
    # slope 1 in the middle, whatever the width
    wide = Censoring(-5, -1)
    assert (
        wide.term(-1.0) == pytest.approx(-3 + 2 * np.tanh(1.0))
        and wide.slope(-3.0) == 1
    )


@pytest.mark.parametrize("smooth", [True, False])
def test_a_log_likelihood_that_is_no_number_counts_as_the_lower_limit_and_as_clipped(
    smooth,
):
    censor = Censoring(-3, -1, smooth)
    assert censor.term(np.array([np.nan, -2.0])).tolist() == [-3.0, -2.0]
    terms = Terms([1.0, 0.0], limits=censor)
    assert terms([[np.nan, np.nan]]).tolist() == [[-3.0, 0.0]]
    assert censor.slope([np.nan, -2.0]).tolist() == [0.0, 1.0]
    assert censor.share_clipped([[np.nan, -2.0]]) == 0.5
    # a value at a limit is not between them
    assert censor.share_clipped([[-3.0, -2.0, -1.0, -1.5]]) == 0.5


def lost(low, width, smooth, reference):
    """The loss of the docstring."""
    change = Censoring(low, low + width, smooth).term(reference) - reference
    return np.abs(change - change.mean(axis=0)).mean()


def references():
    """Log-likelihoods of public records: a bulk with outliers, prior predictive, two bulks."""
    rng = np.random.default_rng(5)
    records, draws = (
        np.r_[rng.normal(size=60), 12.0, -30.0],
        rng.normal(0.0, 0.2, size=(50, 1)),
    )
    yield -0.9 - (records - draws) ** 2 / 2
    draws = rng.gamma(2.0, 2.0, size=(60, 1))
    yield log_likelihood_of_counts(rng.poisson(4, 40), draws)
    yield np.c_[rng.normal(-9, 1, (40, 20)), rng.normal(-2, 0.3, (40, 30))]


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize("width", [0.25, 1.0, 4.0, 30.0])
def test_no_other_place_of_the_interval_loses_visibly_less(width, smooth):
    for reference in references():
        # draws of all chains count
        chains = np.swapaxes(reference.reshape(2, -1, reference.shape[1]), 0, 2)
        chains = xr.DataArray(chains, dims=("record", "draw", "chain"))
        censor = censoring_interval(width, chains, smooth=smooth)
        assert censor.width == pytest.approx(width) and censor.smooth is smooth
        lows = np.linspace(reference.min() - width, reference.max() + width, 200)
        own = lost(censor.low, width, smooth, reference)
        assert (
            own
            <= min(lost(low, width, smooth, reference) for low in lows) * 1.001 + 1e-9
        )
        # limits around 0, wherever the log-likelihoods lie, lose more
        assert width > 4 or own < 0.99 * lost(-width / 2, width, smooth, reference)
