"""The PyMC route against closed forms and against our sampler of the same pseudo posterior."""

import arviz as az
import numpy as np
import pymc as pm
import pytensor
import pytest
import xarray as xr
from plain_pymc_models import finite_mixture, fit_by_nuts, gamma_poisson
from positions import mixture_positions, start_from
from scipy import stats

import ppm
from ppm.synthesizers.mixture import model as mixture_model

pytestmark = pytest.mark.usefixtures("no_compiler")


# ---- Gamma-Poisson: known in closed form ------------------------------------------------------

COUNTS = np.array([3, 5, 4, 6, 20, 2, 3, 7])
COUNT_WEIGHTS = np.array([1.0, 0.8, 0.9, 0.5, 0.0, 0.7, 1.0, 0.3])


@pytest.fixture(scope="module")
def counts_synthesizer():
    return ppm.PyMCSynthesizer(gamma_poisson(COUNTS, shape=2.0, rate=0.5), target_accept=0.95)


def distance(draws, exact):
    """Largest distance of mean, standard deviation and a quantile, in Monte Carlo errors."""
    return max(
        abs(float(draws.mean()) - exact.mean()) / float(az.mcse(draws)),
        abs(float(draws.std()) - exact.std()) / float(az.mcse(draws, method="sd")),
        abs(float(draws.quantile(0.9)) - exact.ppf(0.9))
        / float(az.mcse(draws, method="quantile", prob=0.9)),
    )


@pytest.mark.parametrize("weights", [np.ones(8), COUNT_WEIGHTS], ids=["equal", "unequal"])
def test_gamma_poisson_agrees_with_the_closed_form(counts_synthesizer, weights):
    fit = counts_synthesizer.fit(weights, draws=2000, random_seed=1)
    mu = fit["posterior"]["mu"]
    closed = ppm.GammaPoisson(COUNTS, shape=2.0, rate=0.5)
    assert distance(mu, closed.posterior(weights)) < 4.0
    # the check sees weights that are ignored, and weights where there should be none
    others = COUNT_WEIGHTS if np.all(weights == 1) else np.ones(8)
    assert distance(mu, closed.posterior(others)) > 10.0
    # unweighted, also for the record of weight 0
    log_lik = counts_synthesizer.log_likelihood(fit)
    expected = stats.poisson.logpmf(COUNTS, mu.values[..., None])
    np.testing.assert_allclose(log_lik, expected, rtol=1e-9)


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


class WeightInsideTheSum(mixture_model._Sampler):
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


class NoCorrection(mixture_model._Sampler):
    def thresholds(self, count):
        return np.full(count, -np.inf)


@pytest.mark.parametrize("broken", [WeightInsideTheSum, NoCorrection])
def test_broken_samplers_disagree(monkeypatch, nuts, broken):
    monkeypatch.setattr(mixture_model, "_Sampler", broken)
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


# ---- NUTS started at draws of the other sampler ------------------------------------------------


def gibbs_fit(draws, weights=WEIGHTS):
    y, X = two_lines()
    model = ppm.FiniteMixture(y, X, components=2, warmup=500, parallel=False, **PRIOR)
    return model.prior, model.fit(weights, draws=draws, random_seed=21)


@pytest.mark.parametrize("centred", [False, True])
def test_positions_are_the_draws(centred):
    y, X = two_lines()
    model = finite_mixture(y, X, components=2, centred=centred, **PRIOR)
    names = ("pi", "beta", "sigma", "concentration")
    quantities = [model[name] for name in names]
    back = pytensor.function(
        model.free_RVs, quantities, mode="FAST_COMPILE", on_unused_input="ignore"
    )
    prior, fit = gibbs_fit(draws=5)
    positions = mixture_positions(fit, prior, centred=centred, random_seed=1)
    assert set(positions) == {v.name for v in model.free_RVs}

    def parameters(at, positions=positions):
        return dict(zip(names, back(*[positions[v.name][at] for v in model.free_RVs]), strict=True))

    for chain in range(2):
        given = {name: fit["posterior"][name].values[chain] for name in names}
        # the same components in another order, the same one for all draws of a chain
        order = np.argsort(-given["pi"].mean(axis=0))
        for draw in range(5):
            found = parameters((chain, draw))
            for name in names:
                expected = given[name][draw]
                expected = expected if name == "concentration" else expected[order]
                np.testing.assert_allclose(found[name], expected, rtol=1e-7, err_msg=name)
    # the comparison depends on every variable; a factor common to all pi_gamma would cancel
    for name, values in positions.items():
        changed = np.array(values, order="C")
        changed.reshape(2, 5, -1)[..., 0] += 0.5
        changed = parameters((1, 4), positions | {name: changed})
        moved = [not np.allclose(changed[x], found[x], rtol=1e-3) for x in names]
        needless = centred and ("coefficient" in name or "bartlett" in name)
        assert any(moved) != needless, name


def in_the_models_variables(values):
    """What a fit says of the variables that only the model has, whatever the numbering."""
    quantities = {
        "log_pi_gamma": np.log(values["pi_gamma"]).sum(axis=-1),
        "log_pi_exponential": np.log(values["pi_exponential"]).sum(axis=-1),
        "beta_standard": np.log((values["beta_standard"] ** 2).sum(axis=(-1, -2))),
        "bartlett_below": values["bartlett_below"][..., 0],
        "concentration": np.log(values["concentration"]),
    }
    for name in ("coefficient_aux", "bartlett_squares"):
        for r in range(2):
            quantities[f"{name}_{r}"] = np.log(values[name][..., r])
    return xr.Dataset({name: (("chain", "draw"), v) for name, v in quantities.items()})


def test_positions_follow_the_posterior(nuts):
    """What a fit of Gibbs draws leaves open is drawn from the posterior that NUTS finds."""
    reference = nuts["posterior"]
    reference = in_the_models_variables({name: reference[name].values for name in reference})
    prior, fit = gibbs_fit(draws=6000)

    def largest_score(prior):
        found = mixture_positions(fit, prior, draws=1000, random_seed=2)
        scores = disagreement(in_the_models_variables(found), reference)
        return largest(scores), scores

    score, scores = largest_score(prior)
    assert score < 4.5, scores
    wrong = {**vars(prior), "coefficient_df": 2.0 * prior.coefficient_df}
    assert largest_score(mixture_model.Prior(**wrong))[0] > 6.0
    positions = mixture_positions(fit, prior, draws=1000, random_seed=2)
    positions["pi_gamma"] = positions["pi_gamma"] * 1.5
    scores = disagreement(in_the_models_variables(positions), reference)
    assert scores["log_pi_gamma"] > 6.0


def test_a_start_at_gibbs_draws():
    """A short warm-up from Gibbs draws leads to the same posterior."""
    rng = np.random.default_rng(3)
    records = 400
    x, upper = rng.standard_normal(records), rng.random(records) < 0.5
    y = np.where(upper, 2.0 + 0.5 * x, -2.0 - 0.5 * x) + 0.3 * rng.standard_normal(records)
    X, weights = np.column_stack([np.ones(records), x]), rng.uniform(0.3, 1.0, records)
    gibbs_model = ppm.FiniteMixture(y, X, components=2, warmup=300, parallel=False)
    initial = gibbs_model.fit(weights, draws=1000, random_seed=1)
    model = finite_mixture(y, X, components=2, weights=weights, centred=True)
    positions = mixture_positions(initial, gibbs_model.prior, centred=True, random_seed=2)

    def pseudo_likelihood(fit):
        log_f = fit["log_likelihood"]["response"]
        return xr.Dataset({
            "weighted": (log_f * weights).sum("record"),
            "largest": abs(log_f * weights).max("record"),
            "sigma": np.log(fit["posterior"]["sigma"]).sum("component"),
        })

    start = start_from(model, positions)
    fit = fit_by_nuts(model, draws=150, warmup=60, random_seed=3, **start)
    assert float(az.rhat(pseudo_likelihood(fit)).to_array().max()) < 1.05
    scores = disagreement(pseudo_likelihood(fit), pseudo_likelihood(initial))
    assert largest(scores) < 4.5, scores
    # the comparison of posteriors sees one that is a little off
    shifted = pseudo_likelihood(fit) + 0.3
    assert largest(disagreement(shifted, pseudo_likelihood(initial))) > 6.0


def test_the_first_mass_matrix_holds_the_variances_of_the_draws():
    y, X = two_lines()
    model = finite_mixture(y, X, components=2, **PRIOR)
    prior, fit = gibbs_fit(draws=400)
    positions = mixture_positions(fit, prior, draws=400, random_seed=1)
    step = start_from(model, positions)["step"]
    place, found = 0, {}
    for name, value in model.initial_point().items():
        found[name] = step.potential._var[place : place + value.size]
        place += value.size
    assert place == step.potential._var.size
    sigma = np.log(positions["sigma"])
    np.testing.assert_allclose(found["sigma_log__"], sigma.var(axis=1).mean(axis=0), rtol=0.02)
    standard = positions["beta_standard"].var(axis=1).mean(axis=0).ravel()
    np.testing.assert_allclose(found["beta_standard"], standard, rtol=0.02)
    # not those of sigma itself, nor those of another order
    plain = positions["sigma"].var(axis=1).mean(axis=0)
    assert not np.allclose(found["sigma_log__"], plain, rtol=0.02)
    assert not np.allclose(found["beta_standard"], standard[::-1], rtol=0.02)


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
