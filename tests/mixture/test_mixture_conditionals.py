"""What the mixture's sampler draws from, given the rest, against closed forms.

Every prior setting is far from 1, and each part of a conditional tells about as much as the others:
no term can be another power of a setting, or be left out.
"""

import numpy as np
import pytest
from scipy import special, stats

import ppm
from ppm.models.mixture.passes import Design
from ppm.models.mixture.sampler import Sampler

DRAWS = 3000
SETTINGS = {
    "wide": {
        "concentration_prior": (6.0, 0.2),
        "coefficient_df": 7.0,
        "coefficient_scale": (0.04, 30.0),
        "residual_df": 5.0,
        "residual_scale": 9.0,
    },
    "narrow": {
        "concentration_prior": (0.4, 8.0),
        "coefficient_df": 0.6,
        "coefficient_scale": (12.0, 0.3),
        "residual_df": 0.7,
        "residual_scale": 0.1,
    },
}


def sampler_of(setting, components):
    response, X = np.arange(4.0), np.column_stack([np.ones(4), np.arange(4.0)])
    prior = ppm.FiniteMixture(response, X, **setting).prior
    rng = np.random.default_rng(5)
    found = Sampler(response, Design(X), np.ones(4), components, prior, rng)
    found.residual_aux = np.ones(components)
    return found


def given_scales(setting):
    """Auxiliary scales given the σ of the components, so many at once."""
    df, scale = setting["residual_df"], setting["residual_scale"]
    one = sampler_of(setting, DRAWS)
    one.sigma = np.full(DRAWS, scale * np.sqrt(2.0 * df))
    one.draw_residual_aux()
    yield one.residual_aux, stats.invgamma(0.5 * (df + 1), scale=1.5 / scale**2)


def scale_of_a_component(setting):
    df, scale = setting["residual_df"], setting["residual_scale"]
    one = sampler_of(setting, 1)
    one.residual_aux = np.array([1 / scale**2])
    alpha = np.array([0.3, 0.9, 1.0])
    residual = scale * np.sqrt(df) * np.array([0.5, -1.0, 1.2])
    drawn = [one.propose_sigma(0, residual, alpha) for _ in range(DRAWS)]
    rate = df * scale**2 + 0.5 * (alpha @ residual**2)
    yield np.square(drawn), stats.invgamma(0.5 * (df + alpha.sum()), scale=rate)


def covariance_of_coefficients(setting):
    """Of a Wishart matrix any v'Pv, and any 1 / v'P⁻¹v, is chi-squared but for a factor."""
    df, scale = setting["coefficient_df"], np.array(setting["coefficient_scale"])
    one = sampler_of(setting, 3)
    one.beta = scale * np.sqrt(df) * np.array([[1.0, 0.4], [-0.5, 1.1], [0.3, 0.2]])
    one.coefficient_aux = np.array([0.7, 2.0]) / scale**2
    some = np.array([0, 2])
    S = one.beta[some].T @ one.beta[some] + np.diag(2 * df / one.coefficient_aux)
    precisions = np.array([one.propose_covariance(some)[1] for _ in range(DRAWS)])
    degrees = df + 2 - 1 + some.size
    for v in (np.array([1.0, 0.0]), np.array([0.0, 1.0]), 1 / scale):
        inside = v @ precisions @ v / (v @ np.linalg.solve(S, v))
        yield inside, stats.chi2(degrees)
        inverse = np.linalg.solve(precisions, v[None, :, None])[..., 0] @ v
        yield v @ S @ v / inverse, stats.chi2(degrees - 1)


def scales_of_coefficients(setting):
    """Auxiliary scales of the coefficients, given the covariance that was drawn with them."""
    df, scale = setting["coefficient_df"], np.array(setting["coefficient_scale"])
    one = sampler_of(setting, 2)
    one.beta = scale * np.sqrt(df) * np.array([[0.9, 0.4], [-0.5, 1.1]])
    one.count, standard = np.array([2, 2]), []
    for _ in range(DRAWS):
        one.coefficient_aux = 1 / scale**2
        one.draw_coefficient_covariance()
        rate = df * np.diag(one.precision) + 1 / scale**2
        standard.append(rate / one.coefficient_aux)
    for column in np.transpose(standard):
        yield column, stats.gamma(0.5 * (df + 2))


def empty_components(setting):
    """Coefficients, scales and auxiliary scales without records, of the prior."""
    df, scale = setting["residual_df"], setting["residual_scale"]
    one = sampler_of(setting, DRAWS + 1)
    one.count = np.r_[4, np.zeros(DRAWS, dtype=int)]
    one.beta, one.sigma = np.ones((DRAWS + 1, 2)), np.ones(DRAWS + 1)
    one.coefficient_aux = 1 / np.square(setting["coefficient_scale"])
    one.draw_empty_components(np.arange(1, DRAWS + 1))
    yield one.residual_aux[1:], stats.invgamma(0.5, scale=1 / scale**2)
    half_t = stats.t(df, scale=scale)
    yield half_t.cdf(one.sigma[1:]) * 2 - 1, stats.uniform()
    root = one.covariance[0]
    for column, of in zip(one.beta[1:].T, root, strict=True):
        yield column, stats.norm(scale=np.linalg.norm(of))


def concentration(setting):
    """A step that begins at a draw of the conditional, found by quadrature, ends at one."""
    shape, rate = setting["concentration_prior"]
    for count, log_pi in (
        ([3, 1, 2], np.log([0.5, 0.2, 0.3])),
        ([3, 1, 0, 0], np.log([0.6, 0.3, 0.06, 0.04])),
    ):
        count, K = np.array(count), len(count)
        one = sampler_of(setting, K)
        one.count, occupied, empty = count, count > 0, np.sum(count == 0)
        x = np.linspace(-60, np.log(200 * (shape + 1) / rate), 400_001)
        a = np.exp(x)
        logs = special.gammaln(a) - occupied.sum() * special.gammaln(a / K)
        logs += a / K * log_pi[occupied].sum() + shape * x - rate * a
        if empty:
            total = np.logaddexp.reduce(log_pi[~occupied])
            logs += empty * a / K * total - special.gammaln(empty * a / K)
        below = np.cumsum(np.exp(logs - logs.max()))
        below /= below[-1]
        uniforms = (np.random.default_rng(2).permutation(DRAWS) + 0.5) / DRAWS
        drawn = []
        for begin in np.interp(uniforms, below, x):
            one.concentration, one.log_pi = np.exp(begin), log_pi.copy()
            # more than one, so that little of the beginning is left
            for _ in range(3):
                one.draw_concentration()
                if empty:
                    one.log_pi = log_pi.copy()
            drawn.append(np.log(one.concentration))
        yield np.interp(drawn, x, below), stats.uniform()


CONDITIONALS = [
    given_scales,
    scale_of_a_component,
    covariance_of_coefficients,
    scales_of_coefficients,
    empty_components,
    concentration,
]


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("conditional", CONDITIONALS, ids=lambda one: one.__name__)
def test_what_is_drawn_has_its_conditional(conditional, setting):
    for place, (drawn, law) in enumerate(conditional(SETTINGS[setting])):
        assert stats.kstest(drawn, law.cdf).pvalue > 1e-5, place
