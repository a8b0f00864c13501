"""Re-weighting: every record's bound comes near the largest."""

from types import SimpleNamespace

import numpy as np
import pytest

import ppm

MODEL = ppm.GammaPoisson([3, 5, 4, 6, 20])
WEIGHTS = np.array([0.5, 0.4, 0.1, 0.3, 0.0])


def raised(weights, bounds, k):
    fit = SimpleNamespace(
        terms=ppm.Terms(weights),
        weights=np.array(weights),
        record_bounds=np.array(bounds),
    )
    return ppm.rules.reweighted(fit, k=k).weights.tolist()


def test_weights_by_hand():
    # Δ is 4: the first aims at 0.8 · 4, the second may have no more than 1, the third stays out
    assert raised([0.2, 0.5, 0.0, 0.3], [2.0, 1.0, 0.0, 4.0], 0.8) == pytest.approx(
        [0.32, 1.0, 0.0, 0.24]
    )
    # what has no bound gets no weight and counts for nobody; what has no term may have all of it
    assert raised([0.2, 0.5, 0.5], [2.0, np.inf, 0.0], 1.0) == [0.2, 0.0, 1.0]
    assert raised([0.0, 0.5], [0.0, 0.0], 1.0) == [0.0, 1.0]
    assert raised([0.5, 0.0], [1e-320, 0.0], 1.0) == [0.5, 0.0]


def evens_out(rule):
    """Whether over a fit's draws no term is above kΔ then, and those of weights below 1 reach it."""
    fit = ppm.fit(MODEL, WEIGHTS, draws=300, random_seed=1)
    weights = rule(fit, 0.9)
    bounds = ppm.record_bounds(MODEL.log_likelihood(fit.draws), weights)
    aim = np.where(weights < 1, 0.9 * fit.local_bound, 0.0)[:-1]
    return (
        weights[-1] == 0
        and bounds.max() < 0.9 * fit.local_bound * (1 + 1e-12)
        and np.all(bounds[:-1] > aim * (1 - 1e-12))
    )


def test_over_the_draws_behind_them_the_weights_even_all_bounds_out():
    terms = ppm.rules.reweighted(ppm.fit(MODEL, WEIGHTS, draws=20, random_seed=1))
    assert terms.source == "all records" and not (terms.own or terms.strict)
    assert evens_out(lambda fit, k: ppm.rules.reweighted(fit, k=k).weights)


@pytest.mark.parametrize(
    "broken",
    [
        lambda fit, k: fit.weights,
        lambda fit, k: k * fit.weights,
        lambda fit, k: np.minimum(
            1, k * fit.weights * fit.record_bounds / fit.local_bound
        ),
        # by the smallest largest term of a draw, not by the record's own
        lambda fit, k: k * fit.weights * fit.local_bound / fit.draw_maxima.min(),
    ],
)
def test_other_weights_do_not(broken):
    assert not evens_out(broken)
