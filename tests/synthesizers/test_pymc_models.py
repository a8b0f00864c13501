"""NUTS on a plain PyMC model against our sampler of the same pseudo posterior."""

import arviz as az
import numpy as np
import pymc as pm
import pytest
import xarray as xr
from plain_pymc_models import finite_mixture, fit_by_nuts
from scipy import stats

import ppm
from ppm.synthesizers.mixture import model as mixture_model

# ---- finite mixture: two routes to one pseudo posterior ----------------------------------------

RECORDS = 60
PRIOR = {"concentration_prior": (2.0, 1.0), "coefficient_scale": (1.0, 0.7), "residual_scale": 0.8}


def two_lines():
    """Records around two overlapping regression lines."""
    rng = np.random.default_rng(12)
    x = rng.standard_normal(RECORDS)
    upper = rng.random(RECORDS) < 0.6
    noise = rng.standard_normal(RECORDS)
    y = np.where(upper, 1.2 - 0.8 * x + 0.6 * noise, -0.8 + 0.6 * x + 0.4 * noise)
    return y, np.column_stack([np.ones(RECORDS), x])


WEIGHTS = np.random.default_rng(8).uniform(0.0, 0.8, RECORDS) ** 1.5


def summaries(fit, weights):
    """Quantities that do not depend on how components are numbered, each (chain, draw)."""
    y, X = two_lines()
    posterior = fit["posterior"].to_dataset()
    pi, beta, sigma = (posterior[name].values for name in ("pi", "beta", "sigma"))
    density = stats.norm.pdf(y[:, None], np.einsum("cdkr,nr->cdnk", beta, X), sigma[:, :, None])
    log_f = np.log(np.einsum("cdnk,cdk->cdn", density, pi))
    quantities = {
        "weighted": log_f @ weights,
        "unweighted": log_f.sum(axis=-1),
        "lowest": log_f.min(axis=-1),
        "sigma_small": np.log(sigma.min(axis=-1)),
        "sigma_large": np.log(sigma.max(axis=-1)),
        "pi_large": pi.max(axis=-1),
        "concentration": np.log(posterior["concentration"].values),
    }
    quantities |= {f"record_{i}": log_f[..., i] for i in range(0, RECORDS, 10)}
    for point in (-1.5, 0.0, 1.5, 3.0):
        # predictive density at an average predictor
        density = stats.norm.pdf(point, beta[..., 0], sigma)
        quantities[f"predictive_{point}"] = (density * pi).sum(axis=-1)
    for r in range(2):
        scale = posterior["coefficient_scale"].values[..., r]
        quantities[f"coefficient_scale_{r}"] = np.log(scale)
    return xr.Dataset({name: (("chain", "draw"), v) for name, v in quantities.items()})


def disagreement(first, second):
    """Difference of the means of every quantity in Monte Carlo errors, from ArviZ's ESS."""
    first_error, second_error = az.mcse(first), az.mcse(second)
    return {
        name: float(
            (first[name].mean() - second[name].mean())
            / np.hypot(first_error[name], second_error[name])
        )
        for name in first
    }


def largest(scores):
    return max(abs(score) for score in scores.values())


def gibbs(weights):
    y, X = two_lines()
    model = ppm.FiniteMixture(y, X, components=2, warmup=500, parallel=False, **PRIOR)
    return summaries(model.fit(weights, draws=4000, random_seed=5), weights)


@pytest.fixture(scope="module")
def nuts():
    """The NUTS fit."""
    y, X = two_lines()
    model = finite_mixture(y, X, components=2, weights=WEIGHTS, **PRIOR)
    return fit_by_nuts(model, draws=2000, warmup=1000, random_seed=3)


def test_both_routes_agree(nuts):
    reference = summaries(nuts, WEIGHTS)
    assert float(az.rhat(reference).to_array().max()) < 1.05
    scores = disagreement(gibbs(WEIGHTS), reference)
    assert largest(scores) < 4.5, scores


class WeightInsideTheSum(mixture_model.Sampler):
    """Gibbs for Σ π_k N_k^α, another mechanism."""

    def sweep(self):
        self.corrected = False
        super().sweep()

    def draw_labels(self):
        self.labels = None
        joint = self.log_pi[:, None] + self.alpha * self.log_density
        cumulative = np.cumsum(np.exp(joint - joint.max(axis=0)), axis=0)
        uniform = self.rng.random(self.y.size) * cumulative[-1]
        self.labels = (cumulative < uniform).sum(axis=0)
        super().draw_labels()
        self.weight = self.count.astype(float)


class NoCorrection(mixture_model.Sampler):
    def thresholds(self, count):
        return np.full(count, -np.inf)


@pytest.mark.parametrize("broken", [WeightInsideTheSum, NoCorrection])
def test_broken_samplers_disagree(monkeypatch, nuts, broken):
    monkeypatch.setattr(mixture_model, "Sampler", broken)
    scores = disagreement(gibbs(WEIGHTS), summaries(nuts, WEIGHTS))
    assert largest(scores) > 5.0, scores


def test_weights_matter_to_the_comparison(nuts):
    other = gibbs(np.ones(RECORDS))
    assert largest(disagreement(other, summaries(nuts, np.ones(RECORDS)))) > 10.0


def test_both_routes_have_one_likelihood(nuts):
    y, X = two_lines()
    posterior = nuts["posterior"].to_dataset()
    expected = ppm.FiniteMixture(y, X, components=2).log_likelihood_at(posterior)
    np.testing.assert_allclose(nuts["log_likelihood"]["response"], expected, rtol=1e-9)


# ---- the prior of both routes ----------------------------------------------------------------


def test_prior_of_the_coefficients():
    """Prior draws: half-t scales, and correlations ρ with a density like (1 - ρ²)^(1/2)."""
    y, X = two_lines()
    model = finite_mixture(y, X, components=2)
    scale, beta = pm.draw(
        [model["coefficient_scale"], model["beta"]], draws=6_000, random_seed=2
    )
    standard = beta / scale[:, None]
    for r in range(2):
        uniform = 2.0 * stats.t(3).cdf(scale[:, r]) - 1.0
        assert stats.kstest(uniform, "uniform").pvalue > 1e-3
        assert stats.kstest(standard[:, 0, r], "norm").pvalue > 1e-3
    # given ρ, the product of both coefficients has mean ρ in either component
    products = standard.prod(axis=(1, 2))
    error = products.std() / np.sqrt(products.size)
    assert abs(products.mean() - 1 / 4) < 3.5 * error
    # E ρ² of a uniform correlation, the paper's
    assert abs(products.mean() - 1 / 3) > 3.5 * error
