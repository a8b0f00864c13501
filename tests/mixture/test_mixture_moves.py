"""The moves of the mixture's sampler at weights between 0 and 1, each against an integral.

A few parameters move and the others are held, so that the pseudo posterior prior x prod f_i^α_i is
known on a grid. Weights are near a half, where a correction by another power of α is as wrong as it
can be.
"""

from unittest.mock import Mock

import arviz as az
import numpy as np
import pytest
from scipy import stats

from ppm.models.mixture import numerics, passes
from ppm.models.mixture import sampler as mixture_sampler
from ppm.models.mixture.model import FiniteMixture
from ppm.seeds import one_thread

SAMPLER = mixture_sampler.Sampler
# the broken samplers are found with as many
DRAWS = 8_000


PRIOR = FiniteMixture([0.0], np.ones((1, 1)), concentration_prior=(2.0, 1.0)).prior


def correct(state):
    pass


def correction_squared(state):
    state.one_minus_alpha = state.one_minus_alpha**2


def sampler_at(y, weights, pi, beta, sigma, change=correct):
    """A sampler with an intercept only, at known parameters, and what is wrong with it."""
    design, rng = passes.Design(np.ones((y.size, 1))), np.random.default_rng(6)
    state = SAMPLER(y, design, weights, len(pi), PRIOR, rng)
    start = {
        "pi": np.array(pi),
        "beta": np.array(beta)[:, None],
        "sigma": np.array(sigma),
    }
    state.start(start | {"concentration": 3.0})
    change(state)
    return state


def largest_score(draws, points, density):
    """Largest distance of a first or second moment from an integral, in standard errors."""
    density = density / density.sum()
    scores = []
    for values, grid in zip(draws, points, strict=True):
        for power in (1, 2):
            error = float(az.mcse(values[None] ** power))
            scores.append(
                (np.mean(values**power) - np.sum(density * grid**power)) / error
            )
    return np.abs(scores).max()


def moved(state, step, read, draws=DRAWS):
    """What is read after each of many steps, shape (quantities, draws)."""
    found = []
    with one_thread(), np.errstate(divide="ignore", under="ignore", over="ignore"):
        for _ in range(draws):
            step(state)
            found.append(read(state))
    return np.array(found).T


def test_the_bracket_of_a_slice_lies_at_random_around_the_point():
    # centred on it, the draws would be biased by shrinkage alone, and by too little to be seen
    found, rng = (
        [],
        Mock(**{"random.return_value": 0.8, "standard_exponential.return_value": 1.0}),
    )
    rng.uniform = lambda *ends: np.mean(ends)
    numerics.slice_draw(0.0, lambda x: found.append(x) or -4.0 * abs(x), rng)
    assert found[:3] == pytest.approx([0.0, -0.8, 0.2])


# ---- how two components share their mixture weight ----------------------------------------------

UNEVEN = np.linspace(0.4, 0.6, 5)
FIVE = np.r_[np.random.default_rng(6).normal(0.0, 1.0, 4), 4.2]


def without_labels(state):
    state.share_mixture_weight()


def given_labels(state):
    state.draw_labels()
    state.draw_mixture_weight_pairs()


def share_score(step, change=correct):
    state = sampler_at(FIVE, UNEVEN, [0.2, 0.8], [3.0, 0.2], [1.0, 1.0], change)
    shares = moved(state, step, lambda state: [np.exp(state.log_pi[0])])
    u = np.linspace(0.0, 1.0, 4003)[1:-1]
    normal = stats.norm.pdf(FIVE[:, None], [3.0, 0.2], 1.0)
    log_f = np.log(normal @ np.stack([u, 1.0 - u]))
    return largest_score(
        shares, [u], stats.beta(1.5, 1.5).pdf(u) * np.exp(UNEVEN @ log_f)
    )


def one_jacobian_too_many(x, log_density, rng, width):
    def changed(x):
        return log_density(x) - np.logaddexp(0.0, [-x, x]).sum()

    return numerics.slice_draw(x, changed, rng, width)


def test_shares_of_mixture_weight_have_their_conditional_with_and_without_labels(
    monkeypatch,
):
    assert share_score(without_labels) < 4.0
    assert share_score(given_labels) < 4.0
    assert share_score(given_labels, correction_squared) > 5.0
    monkeypatch.setattr(mixture_sampler, "slice_draw", one_jacobian_too_many)
    assert share_score(without_labels) > 6.0


# ---- coefficient and scale of one component -----------------------------------------------------


def component_score(change):
    state = sampler_at(FIVE, UNEVEN, [0.3, 0.7], [1.0, 0.0], [1.0, 1.0], change)
    # the priors of this one: Normal(0, 2), and inverse Gamma(3/2, 3) of the variance
    state.precision, state.residual_aux = np.array([[0.25]]), np.ones(2)

    def step(state):
        state.draw_labels()
        if state.members[0].size:
            state.draw_component(0, state.members[0])

    draws = moved(state, step, lambda s: [s.beta[0, 0], np.log(s.sigma[0])], 2 * DRAWS)
    beta, log_sigma = np.meshgrid(np.linspace(-10, 12, 661), np.linspace(-4, 4, 241))
    sigma = np.exp(log_sigma)
    log_density = (
        stats.norm(0.0, 2.0).logpdf(beta)
        + stats.invgamma(1.5, scale=3.0).logpdf(sigma**2)
        + 2.0 * log_sigma
    )
    for value, weight in zip(FIVE, UNEVEN, strict=True):
        f = 0.3 * stats.norm.pdf(value, beta, sigma) + 0.7 * stats.norm.pdf(
            value, 0.0, 1.0
        )
        log_density += weight * np.log(f)
    return largest_score(
        draws, [beta, log_sigma], np.exp(log_density - log_density.max())
    )


def test_coefficient_and_scale_of_a_component_have_their_conditional():
    assert component_score(correct) < 4.0
    assert component_score(correction_squared) > 5.0


# ---- what a move leaves behind -------------------------------------------------------------------


def test_what_is_held_by_record_follows_every_move_and_a_rejection_leaves_all_as_it_was():
    state = sampler_at(
        FIVE, UNEVEN, [0.4, 0.3, 0.3], [1.0, 50.0, 60.0], [1.0, 1.0, 1.0]
    )
    state.thresholds = lambda count: np.full(count, np.inf)
    state.draw_labels()
    state.draw_concentration()
    assert state.concentration == 3.0 and np.allclose(
        np.exp(state.log_pi), [0.4, 0.3, 0.3]
    )
    state.thresholds = lambda count: np.full(count, -np.inf)
    for move in (
        SAMPLER.draw_coefficient_covariance,
        SAMPLER.draw_concentration,
        SAMPLER.draw_mixture_weight_pairs,
        SAMPLER.share_mixture_weight,
    ):
        with np.errstate(under="ignore"):
            move(state)
        joint = state.log_pi[:, None] + state.log_density
        np.testing.assert_allclose(
            state.scaled, np.exp(joint - state.offset), atol=1e-12
        )
        np.testing.assert_allclose(state.log_f, numerics.log_sum_exp(joint))
