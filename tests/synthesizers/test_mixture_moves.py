"""The moves of the mixture's sampler at weights between 0 and 1, each against an integral.

A few parameters move and the others are held, so that the pseudo posterior prior x prod f_i^α_i is
known on a grid. Weights are near a half, where a correction by another power of α is as wrong as it
can be.
"""

import arviz as az
import numpy as np
from scipy import special, stats

import ppm
from ppm._validation import one_thread
from ppm.synthesizers.mixture import numerics
from ppm.synthesizers.mixture import sampler as mixture_sampler
from ppm.synthesizers.mixture.censored import CensoredSampler
from ppm.synthesizers.mixture.model import FiniteMixture

SAMPLER = mixture_sampler.Sampler
# the broken samplers are found with as many
DRAWS = 8_000


class CorrectionSquared(SAMPLER):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.rest_alpha = self.rest_alpha**2


class WrongScaleConditional(SAMPLER):
    def propose_sigma(self, k, residual, alpha):
        return 1.07 * super().propose_sigma(k, residual, alpha)


def sampler_at(sampler, y, weights, pi, beta, sigma):
    """A sampler with an intercept only, at known parameters."""
    X = np.ones((y.size, 1))
    prior = FiniteMixture(y, X, components=len(pi), concentration_prior=(2.0, 1.0)).prior
    state = sampler(y, X, weights, len(pi), prior, None, np.random.default_rng(6))
    state.start(
        {
            "pi": np.array(pi), "beta": np.array(beta)[:, None], "sigma": np.array(sigma),
            "concentration": 3.0,
        }
    )
    return state


def largest_score(draws, points, density):
    """Largest distance of a first or second moment from an integral, in standard errors."""
    density = density / density.sum()
    scores = []
    for values, grid in zip(draws, points, strict=True):
        for power in (1, 2):
            error = float(az.mcse(values[None] ** power))
            scores.append((np.mean(values**power) - np.sum(density * grid**power)) / error)
    return np.abs(scores).max()


def moved(state, step, read, draws=DRAWS):
    """What is read after each of many steps, shape (quantities, draws)."""
    found = []
    with one_thread(), np.errstate(divide="ignore", under="ignore", over="ignore"):
        for _ in range(draws):
            step(state)
            found.append(read(state))
    return np.array(found).T


# ---- how two components share their mixture weight ----------------------------------------------

UNEVEN = np.linspace(0.4, 0.6, 5)
FIVE = np.r_[np.random.default_rng(6).normal(0.0, 1.0, 4), 4.2]


def without_labels(state):
    state.share_mixture_weight()


def given_labels(state):
    state.draw_labels()
    state.draw_mixture_weight_pairs()


def share_score(step, sampler=SAMPLER):
    state = sampler_at(sampler, FIVE, UNEVEN, [0.2, 0.8], [3.0, 0.2], [1.0, 1.0])
    shares = moved(state, step, lambda state: [np.exp(state.log_pi[0])])
    u = np.linspace(0.0, 1.0, 4003)[1:-1]
    normal = stats.norm.pdf(FIVE[:, None], [3.0, 0.2], 1.0)
    log_f = np.log(normal @ np.stack([u, 1.0 - u]))
    return largest_score(shares, [u], stats.beta(1.5, 1.5).pdf(u) * np.exp(UNEVEN @ log_f))


def one_jacobian_too_many(x, log_density, rng, width):
    def changed(x):
        return log_density(x) - np.logaddexp(0.0, [-x, x]).sum()

    return numerics.slice_draw(x, changed, rng, width)


def test_shares_of_mixture_weight_have_their_conditional_with_and_without_labels(monkeypatch):
    assert share_score(without_labels) < 4.0
    assert share_score(given_labels) < 4.0
    assert share_score(given_labels, CorrectionSquared) > 5.0
    monkeypatch.setattr(mixture_sampler, "slice_draw", one_jacobian_too_many)
    assert share_score(without_labels) > 6.0


# ---- coefficient and scale of one component -----------------------------------------------------


def component_score(sampler):
    state = sampler_at(sampler, FIVE, UNEVEN, [0.3, 0.7], [1.0, 0.0], [1.0, 1.0])
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
        stats.norm(0.0, 2.0).logpdf(beta) + stats.invgamma(1.5, scale=3.0).logpdf(sigma**2)
        + 2.0 * log_sigma
    )
    for value, weight in zip(FIVE, UNEVEN, strict=True):
        f = 0.3 * stats.norm.pdf(value, beta, sigma) + 0.7 * stats.norm.pdf(value, 0.0, 1.0)
        log_density += weight * np.log(f)
    return largest_score(draws, [beta, log_sigma], np.exp(log_density - log_density.max()))


def test_coefficient_and_scale_of_a_component_have_their_conditional():
    assert component_score(SAMPLER) < 4.0
    for broken in (CorrectionSquared, WrongScaleConditional):
        assert component_score(broken) > 5.0, broken


# ---- mixture weights and concentration, with empty components -----------------------------------


def mixture_weight_score(sampler):
    y, weights = np.array([-0.5, 0.35, 1.2]), np.array([0.25, 0.5, 0.25])
    beta, sigma = np.array([0.35, 0.35, 6.0]), np.array([1.0, 0.5, 1.0])
    state = sampler_at(sampler, y, weights, [0.4, 0.3, 0.3], beta, sigma)

    def step(state):
        state.update_reference()
        state.draw_labels()
        state.draw_concentration()
        state.draw_mixture_weight_pairs()

    draws = moved(state, step, lambda s: [*np.exp(s.log_pi), np.log(s.concentration)])
    # draws from the prior, Gamma draws in logs: those of small shapes underflow
    rng = np.random.default_rng(5)
    concentration = rng.gamma(2.0, 1.0, 500_000)
    share = concentration[:, None] / 3.0
    log_pi = np.log(rng.standard_gamma(share + 1.0, (500_000, 3)))
    log_pi -= rng.standard_exponential((500_000, 3)) / share
    log_pi -= special.logsumexp(log_pi, axis=1, keepdims=True)
    log_f = np.log(np.exp(log_pi) @ stats.norm.pdf(y[:, None], beta, sigma).T)
    return largest_score(
        draws, [*np.exp(log_pi).T, np.log(concentration)], np.exp(log_f @ weights)
    )


def test_mixture_weights_and_concentration_have_their_conditional():
    assert mixture_weight_score(SAMPLER) < 4.0
    assert mixture_weight_score(CorrectionSquared) > 6.0


# ---- the auxiliary scale of the coefficients, with their variance integrated out ----------------


def test_the_auxiliary_scale_under_limits_has_its_conditional():
    beta, ones = np.array([[0.5], [1.5], [-2.0]]), np.ones((1, 1))
    state = CensoredSampler(
        ones[:0, 0], ones[:0], ones[:0, 0], 3, FiniteMixture([0.0], ones).prior, None,
        np.random.default_rng(6), censor=ppm.Censoring(-1.0, 0.0),
    )
    state.start(None)
    state.beta = beta
    draws = moved(
        state, CensoredSampler.draw_coefficient_aux, lambda s: np.log(s.coefficient_aux)
    )
    x = np.linspace(-8.0, 14.0, 4001)
    scaled = np.exp(0.5 * x)[:, None] / np.sqrt(2.0) * beta.T

    def score(df):
        student = stats.multivariate_t(np.zeros(3), np.eye(3), df).logpdf(scaled)
        # the prior is inverse Gamma(1/2, 1)
        return largest_score(draws, [x], np.exp(student + 1.5 * x - 0.5 * x - np.exp(-x)))

    assert score(3.0) < 4.0
    assert score(4.0) > 5.0
