"""NUTS on a plain PyMC model against our sampler of the same pseudo posterior."""

import arviz as az
import numpy as np
import pytest
import xarray as xr
from plain_pymc_models import finite_mixture, fit_by_nuts
from scipy import stats

import ppm
from ppm.synthesizers.mixture import model as mixture_model

RECORDS = 60
PRIOR = {"concentration_prior": (2.0, 1.0), "coefficient_scale": (1.0, 0.7), "residual_scale": 0.8}

# records around two overlapping regression lines
RNG = np.random.default_rng(12)
AT, UPPER, NOISE = RNG.normal(size=RECORDS), RNG.random(RECORDS) < 0.6, RNG.normal(size=RECORDS)
Y = np.where(UPPER, 1.2 - 0.8 * AT + 0.6 * NOISE, -0.8 + 0.6 * AT + 0.4 * NOISE)
X = np.column_stack([np.ones(RECORDS), AT])
WEIGHTS = np.random.default_rng(8).uniform(0.0, 0.8, RECORDS) ** 1.5


def summaries(posterior):
    """Quantities that do not depend on how components are numbered, each (chain, draw)."""
    names = ("pi", "beta", "sigma", "concentration", "coefficient_scale")
    pi, beta, sigma, concentration, scale = (posterior[name].values for name in names)
    density = stats.norm.pdf(Y[:, None], np.einsum("cdkr,nr->cdnk", beta, X), sigma[:, :, None])
    log_f = np.log(np.einsum("cdnk,cdk->cdn", density, pi))
    # predictive density at an average predictor
    predictive = (stats.norm.pdf(0.0, beta[..., 0], sigma) * pi).sum(axis=-1)
    quantities = [predictive, log_f @ WEIGHTS, log_f.sum(axis=-1), log_f.min(axis=-1),
                  pi.max(axis=-1), *np.log([concentration, sigma.min(axis=-1), sigma.max(axis=-1)]),
                  *np.moveaxis(log_f[..., ::20], -1, 0), *np.moveaxis(np.log(scale), -1, 0)]
    return xr.Dataset({f"{i}": (("chain", "draw"), v) for i, v in enumerate(quantities)})


def disagreement(first, second):
    """Largest difference of two means in Monte Carlo errors, from ArviZ's ESS."""
    errors = az.mcse(first) ** 2 + az.mcse(second) ** 2
    scores = (first.mean(["chain", "draw"]) - second.mean(["chain", "draw"])) / errors**0.5
    return float(np.abs(scores.to_array()).max())


def gibbs():
    model = ppm.FiniteMixture(Y, X, components=2, warmup=300, parallel=False, **PRIOR)
    return summaries(model.fit(WEIGHTS, draws=2500, random_seed=5)["posterior"])


@pytest.fixture(scope="module")
def nuts():
    model = finite_mixture(Y, X, components=2, weights=WEIGHTS, **PRIOR)
    return summaries(fit_by_nuts(model, draws=4000, warmup=1000, random_seed=3))


def test_both_routes_agree(nuts):
    assert float(az.rhat(nuts).to_array().max()) < 1.05
    assert disagreement(gibbs(), nuts) < 4.0


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
    assert disagreement(gibbs(), nuts) > 4.5
