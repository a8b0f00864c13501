"""Terms and their limits. Every model's terms are in laws, refusals in test_messages."""

import numpy as np
import pytest

import ppm

COUNTS = np.array([3, 5, 4, 6, 20])
MODEL = ppm.GammaPoisson(COUNTS, shape=2, rate=0.4)


def test_limits_cut_and_what_is_no_number_counts_as_the_lower_one():
    limits, values = ppm.Limits(-3, -1), np.linspace(-9.0, 5.0, 57)
    assert np.array_equal(limits(values), np.minimum(np.maximum(values, -3), -1))
    assert limits(np.array([np.nan, -2.0])).tolist() == [-3.0, -2.0]
    terms = ppm.Terms([1.0, 0.0], limits=limits)
    assert terms([[np.nan, np.nan]]).tolist() == [[-3.0, 0.0]]


def test_limits_are_values():
    assert ppm.Limits(-1, 1) == ppm.Limits(-1.0, 1.0) != ppm.Limits(-1, 2)
    assert repr(ppm.Limits(-0.0, 1)) == repr(ppm.Limits(0, 1))


def test_nobody_changes_weights_behind_an_epsilon():
    given = np.full(5, 0.5)
    fit = ppm.fit(MODEL, ppm.Terms(given), draws=50, random_seed=1)
    before = fit.epsilon()
    given[:] = 0.01
    for values in fit.weights, fit.terms.levels:
        with pytest.raises(ValueError, match="read-only"):
            values[:] = 0.0
    assert fit.epsilon() == before > 0


def test_a_term_is_computed_in_double_precision():
    log_p = np.random.default_rng(8).normal(-2, 3, size=(40, 6)).astype(np.float32)
    weights = np.array([0.0, 0.5, 1.0, 1.0, 2.0, 3.0])
    # no float of 32 bits
    limits = ppm.Limits(-3.1, -1.3)
    expected = limits(log_p.astype(np.float64) * weights) * (weights > 0)
    assert np.array_equal(ppm.Terms(weights, limits)(log_p), expected)


def test_the_terms_of_some_records_are_theirs():
    terms = ppm.Terms([0.1, 0.2, 0.3], ppm.Limits(-9, 0), [1.0, 2.0, 3.0])
    log_p = -np.arange(6.0).reshape(2, 3)
    assert np.array_equal(terms.of([2, 0])(log_p[:, [2, 0]]), terms(log_p)[:, [2, 0]])
