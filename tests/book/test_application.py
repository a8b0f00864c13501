"""What the chapters on incomes share: fits, the equal bound, and who was closer."""

import functools
import pickle

import cloudpickle
import numpy as np
import pandas as pd
import pytest

import ppm
from ppm.synthesizers.chains import ChainPool
from ppm_book import application, page
from ppm_book.application import (
    TRIES,
    chains,
    chains_in_one_pool,
    closer,
    equal_bound,
    fit,
    typical,
)

COUNTS = np.random.default_rng(5).poisson(20.0, 40)
MODEL = ppm.GammaPoisson(COUNTS)


def fitted(weights):
    return fit(MODEL, np.broadcast_to(weights, COUNTS.shape), 300, 4, (1, 2))


def test_what_is_kept_of_a_fit_is_what_the_library_says_of_it():
    weights = np.linspace(0.2, 1.0, COUNTS.size)
    found, of_fit = fitted(weights), np.random.SeedSequence((1, 2)).spawn(2)[0]
    log_lik = MODEL.log_likelihood(MODEL.fit(weights, draws=300, random_seed=of_fit))
    assert found["bounds"] == pytest.approx(ppm.record_bounds(log_lik, weights))
    assert found["oscillations"] == pytest.approx(ppm.record_oscillations(log_lik, weights))
    assert found["bounds"] != pytest.approx(ppm.record_bounds(log_lik))
    assert found["synthetic"].shape == (4, COUNTS.size)
    told, same = chains(found), ppm.diagnostics.bound_diagnostics(log_lik, weights)
    assert (told.r_hat, told.typical, told.error) == (
        pytest.approx(same.r_hat), pytest.approx(same.typical), pytest.approx(same.error)
    )
    assert told.agree


def test_a_fit_that_a_notebook_defines_can_be_sent_to_its_workers(monkeypatch):
    def one(weight):
        return {"bound": weight}

    # what a notebook defines is sent by value, with all that it refers to
    monkeypatch.setattr(one, "__module__", "__main__", raising=False)
    sent = cloudpickle.dumps(page.kept()(chains_in_one_pool(one)))
    assert cloudpickle.loads(sent)(0.5) == {"bound": 0.5}
    # a cache of a class, as the pool once was, cannot be sent
    monkeypatch.setattr(application, "_pool", functools.cache(ChainPool))
    with pytest.raises(pickle.PicklingError):
        cloudpickle.dumps(chains_in_one_pool(one))


def test_chains_that_stand_still_are_held_against_a_fit():
    found = fitted(1.0)
    found |= {name: np.repeat(found[name][:, :1], 300, axis=1) for name in ("largest", "total")}
    assert not chains(found).agree


def with_one_weight(response):
    """Fits whose bound is a function of the weight and of how many were made before."""
    weights = []

    def fit_with(weight):
        weights.append(weight)
        return {"bounds": np.array([0.1, 1.0]) * response(weight, len(weights))}

    return fit_with, weights


def test_the_equal_bound_is_met_within_three_per_cent():
    fit_with, weights = with_one_weight(lambda weight, _: 20.0 * weight**0.8)
    found, tries = equal_bound(fit_with, 5.0, 20.0)
    assert found["bounds"].max() == pytest.approx(5.0, rel=0.03)
    # the paper's formula comes first, and misses
    assert weights[0] == 0.25 and len(tries) == len(weights) > 1
    assert tries[0]["bounds"].max() != pytest.approx(5.0, rel=0.03)


def test_a_bound_that_is_not_met_is_the_closest_of_all_tries():
    bounds = [9.0, 4.0, 6.0, 5.4, 7.0, 3.0, 8.0, 4.4, 5.7, 6.1]
    fit_with, _ = with_one_weight(lambda _, number: bounds[number - 1])
    found, tries = equal_bound(fit_with, 5.0, 20.0)
    assert len(tries) == TRIES == len(bounds) and found["bounds"].max() == 5.4


def test_no_weight_is_above_1_and_a_target_of_0_takes_one_fit():
    fit_with, weights = with_one_weight(lambda weight, _: weight)
    equal_bound(fit_with, 5.0, 20.0)
    assert max(weights) == 1.0
    found, tries = equal_bound(fit_with, 0.0, 20.0)
    assert found["bounds"].max() == 0.0 and len(tries) == 1


def off(first, second):
    return pd.DataFrame({"DPweighted": first, "EMweighted": second})


def test_a_true_difference_is_told_and_one_within_its_errors_is_not():
    told = closer("Mean", off([7.0, 6.0], [2.0, 0.8]), off([0.4] * 2, [0.3] * 2))
    assert told == (
        "Mean: EMweighted was closer at 2 of 2 settings, by 5.0 to 5.2 percentage points."
    )
    # nothing but the errors changes, and then nothing but the sign
    assert closer("Mean", off([7.0, 6.0], [2.0, 0.8]), off([4.0] * 2, [3.0] * 2)) == (
        "Mean: undecided whether DPweighted or EMweighted was closer at 2 of 2."
    )
    flipped = closer("Mean", off([2.0, 0.8], [7.0, 6.0]), off([0.4] * 2, [0.3] * 2))
    assert flipped == told.replace("EMweighted", "DPweighted")


def test_settings_that_differ_are_counted_and_an_unknown_error_decides_nothing():
    told = closer("Gini", off([1.0, 9.0, 1.0], [9.0, 1.0, 9.0]), off([0.1] * 3, [0.1, 0.1, np.nan]))
    assert told == (
        "Gini: DPweighted was closer at 1 of 3 settings, by 8.0 percentage points; "
        "EMweighted was closer at 1 of 3 settings, by 8.0 percentage points; undecided at 1 of 3."
    )


def test_one_wild_release_moves_neither_the_typical_error_nor_its_standard_error():
    errors = np.random.default_rng(1).normal(-4.0, 0.5, 20)
    size, error = typical(errors)
    assert size == pytest.approx(4.0, abs=0.3) and error == pytest.approx(0.14, abs=0.08)
    wild = typical(np.r_[errors[:-1], 1e6])
    assert wild == (pytest.approx(size, abs=0.3), pytest.approx(error, abs=0.1))
    assert np.isnan(typical([3.0])[1])
