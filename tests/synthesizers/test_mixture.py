"""The finite mixture sampler against integrals, its prior, and deliberately broken variants.

The moves at weights between 0 and 1 are in test_mixture_moves.py, the comparison with NUTS in
test_pymc_models.py.
"""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import arviz as az
import numpy as np
import pytest
import xarray as xr
from scipy import stats

import ppm
from ppm._validation import one_thread
from ppm.synthesizers.mixture import model as finite_mixture
from ppm.synthesizers.mixture import sampler as mixture_sampler
from ppm.synthesizers.mixture.fits import starting_points
from ppm.synthesizers.mixture.model import FiniteMixture
from ppm.synthesizers.mixture.predictive import (
    component_log_densities,
    mixture_log_likelihood,
)


def two_lines(records=60, seed=0):
    """Records around two overlapping regression lines."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(records)
    upper = rng.random(records) < 0.6
    noise = rng.standard_normal(records)
    y = np.where(upper, 1.0 - 0.8 * x + 0.7 * noise, -0.6 + 0.5 * x + 0.4 * noise)
    return y, np.column_stack([np.ones(records), x])


def z_scores(draws, expected):
    """Distance of the mean of each variable from its expectation in Monte Carlo errors."""
    errors = az.mcse(draws)
    return {
        name: float((draws[name].mean() - expected[name]) / errors[name]) for name in draws
    }


def largest(scores):
    return max(abs(score) for score in scores.values())


# ---- at weights of 1 --------------------------------------------------------------------------


def forced_sampler(weights, **changes):
    """A sampler that evaluates the correction whatever the weights are."""
    y, X = two_lines()
    prior = FiniteMixture(y, X, components=4).prior
    sampler = finite_mixture._Sampler(y, X, weights, 4, prior, 2, np.random.default_rng(3))
    sampler.start(None)
    sampler.corrected = True
    for name, value in changes.items():
        setattr(sampler, name, value)
    return sampler


def test_correction_vanishes_at_weights_of_one():
    acceptance = {}
    for weight in (1.0, 0.5):
        sampler = forced_sampler(np.full(60, weight))
        accepted, proposed = np.zeros(4), np.zeros(4)
        for _ in range(100):
            sampler.sweep()
            accepted += sampler.accepted
            proposed += sampler.proposed
        assert np.all(proposed > 20)
        acceptance[weight] = accepted / proposed
    assert np.all(acceptance[1.0] == 1.0)
    assert np.all(acceptance[0.5][:3] < 1.0)


def test_acceptance_rate_is_reported():
    y, X = two_lines()
    model = FiniteMixture(y, X, components=3, chains=1, warmup=20)
    rate = model.fit(draws=50, random_seed=1)["sample_stats"]["acceptance_rate"]
    assert np.nanmin(rate.values) == 1.0
    rate = model.fit(np.full(60, 0.5), draws=50, random_seed=1)["sample_stats"]["acceptance_rate"]
    assert 0.0 < rate.sel(block_kind="coefficients").mean() < 1.0


# ---- one component: an integral on a grid -----------------------------------------------------


def one_component_expectations(y, weights):
    """Posterior means of β, β², log σ with an intercept only, by numerical integration."""
    scale = stats.t(3).ppf(np.linspace(0.5, 1.0, 4002)[1:-1])
    beta = np.linspace(-3.0, 4.0, 1401)
    log_sigma = np.linspace(-2.5, 2.5, 501)
    # half-t(3) scales at equal probabilities turn the integral over the scale into an average
    prior_beta = stats.norm.pdf(beta[:, None] / scale) / scale
    log_prior_beta = np.log(prior_beta.mean(axis=1))
    sigma = np.exp(log_sigma)
    squares = (weights[:, None] * (y[:, None] - beta) ** 2).sum(axis=0)
    log_density = (
        log_prior_beta[:, None]
        - 0.5 * squares[:, None] / sigma**2
        - weights.sum() * log_sigma
        + stats.t(3).logpdf(sigma)
        + log_sigma
    )
    density = np.exp(log_density - log_density.max())
    density /= density.sum()
    return {
        "beta": density.sum(axis=1) @ beta,
        "beta_squared": density.sum(axis=1) @ beta**2,
        "log_sigma": density.sum(axis=0) @ log_sigma,
    }


def test_one_component_is_weighted_regression():
    rng = np.random.default_rng(5)
    y = np.concatenate([rng.normal(0.0, 1.0, 15), rng.normal(3.0, 0.5, 5)])
    weights = np.concatenate([rng.uniform(0.5, 1.0, 15), np.zeros(2), rng.uniform(0.0, 0.3, 3)])
    model = FiniteMixture(y, np.ones((20, 1)), components=1, warmup=100)
    posterior = model.fit(weights, draws=5000, random_seed=1)["posterior"]
    beta = posterior["beta"].squeeze(("component", "predictor"), drop=True)
    sigma = posterior["sigma"].squeeze("component", drop=True)
    draws = xr.Dataset({"beta": beta, "beta_squared": beta**2, "log_sigma": np.log(sigma)})
    assert largest(z_scores(draws, one_component_expectations(y, weights))) < 4.0
    # the same draws do not pass for the posterior in which every record counts once
    assert largest(z_scores(draws, one_component_expectations(y, np.ones(20)))) > 20.0


# ---- no information: the prior comes back -----------------------------------------------------

PRIOR = {"concentration_prior": (2.0, 1.5), "coefficient_scale": (0.5, 2.0), "residual_scale": 1.5}


def half_t_cdf(values, scale):
    return 2.0 * stats.t(3).cdf(values / scale) - 1.0


def normal_density(values, mean, sigma):
    """SciPy's, without its checks: called ten thousands of times, they take most of the time."""
    return np.exp(-0.5 * ((values - mean) / sigma) ** 2) / (sigma * np.sqrt(2.0 * np.pi))


@pytest.fixture(scope="module")
def prior_log_likelihoods():
    """Log-likelihoods of the records at 20,000 independent draws from the prior, in order."""
    y, X = two_lines(12)
    rng = np.random.default_rng(11)
    values = np.empty(20_000)
    roots = np.linalg.cholesky(stats.invwishart.rvs(4, np.eye(2), values.size, random_state=rng))
    for value, root in zip(np.nditer(values, op_flags=["writeonly"]), roots, strict=True):
        pi = rng.dirichlet(np.full(3, rng.gamma(2.0, 1 / 1.5) / 3.0))
        aux = np.array([0.5, 2.0]) ** -2.0 / rng.gamma(0.5, size=2)
        # an inverse Wishart scaled by diag(6 / aux)
        beta = rng.standard_normal((3, 2)) @ root.T * np.sqrt(6.0 / aux)
        sigma = np.abs(1.5 * rng.standard_t(3, 3))
        density = normal_density(y[:, None], X @ beta.T, sigma)
        with np.errstate(divide="ignore"):
            value[...] = np.log(density @ pi).sum()
    return np.sort(values)


def prior_probabilities(fit, log_likelihoods):
    """Draws turned into probabilities by their prior's distribution function: uniform if right."""
    posterior = fit["posterior"]
    scale, sigma = posterior["coefficient_scale"], posterior["sigma"]
    uniform = {
        "sigma": half_t_cdf(sigma.isel(component=0), 1.5),
        "scale_0": half_t_cdf(scale.isel(predictor=0), 0.5),
        "scale_1": half_t_cdf(scale.isel(predictor=1), 2.0),
        "concentration": stats.gamma(2.0, scale=1 / 1.5).cdf(posterior["concentration"]),
        "beta": stats.norm.cdf(
            posterior["beta"].isel(component=0, predictor=0) / scale.isel(predictor=0)
        ),
        "log_likelihood": np.searchsorted(
            log_likelihoods, fit["log_likelihood"]["response"].sum("record")
        )
        / log_likelihoods.size,
    }
    dims = ("chain", "draw")
    # the sum of two independent uniforms is uniform again, modulo 1
    uniform["two_sigmas"] = (uniform["sigma"] + half_t_cdf(sigma.isel(component=1), 1.5)) % 1.0
    draws = {}
    for name, values in uniform.items():
        # the first three moments and a tail say more than a mean alone
        values = np.asarray(values)
        for power in (1, 2, 3):
            draws[f"{name}^{power}"] = (dims, values**power)
        draws[f"{name}>0.95"] = (dims, (values > 0.95).astype(float))
    # of a Dirichlet(a/K, a/K, a/K) weight given a: E π² = (a/K + 1) / (K (a + 1))
    a = posterior["concentration"].values
    pi = posterior["pi"].isel(component=0).values
    draws["pi^2"] = (dims, pi**2 - (a / 3.0 + 1.0) / (3.0 * (a + 1.0)))
    draws["pi<1e-6"] = (dims, (pi < 1e-6) - stats.beta(a / 3.0, 2.0 * a / 3.0).cdf(1e-6))
    expected = {
        name: 0.05 if ">" in name else 1.0 / (1.0 + int(name[-1]))
        for name in draws
        if not name.startswith("pi")
    }
    return xr.Dataset(draws), expected | {"pi^2": 0.0, "pi<1e-6": 0.0}


def prior_fit(weight, draws):
    y, X = two_lines(12)
    model = FiniteMixture(y, X, components=3, warmup=300, parallel=False, **PRIOR)
    return model.fit(np.full(12, weight), draws=draws, random_seed=2)


@pytest.mark.parametrize("weight", [0.0, 1e-9], ids=["left out", "almost nothing"])
def test_prior_comes_back(weight, prior_log_likelihoods):
    # at 1e-9 all records take part: labels are drawn, and only the correction undoes their pull
    scores = z_scores(*prior_probabilities(prior_fit(weight, 7000), prior_log_likelihoods))
    assert largest(scores) < 4.5, scores


SAMPLER = finite_mixture._Sampler
BREAKAGES = {
    "no correction": (1e-9, SAMPLER, "thresholds", lambda self, count: np.full(count, -np.inf)),
    "a residual auxiliary short of one degree of freedom": (
        1e-9,
        SAMPLER,
        "draw_residual_aux",
        lambda self: setattr(
            self, "residual_aux", (3.0 / self.sigma**2 + 1.5**-2) / self.rng.gamma(1.5, size=3)
        ),
    ),
    "one random number for all components": (
        0.0,
        mixture_sampler,
        "inverse_gamma",
        lambda shape, scale, rng: scale / rng.standard_gamma(shape),
    ),
}


@pytest.mark.parametrize("breakage", BREAKAGES)
def test_prior_does_not_come_back_from_a_broken_sampler(
    monkeypatch, breakage, prior_log_likelihoods
):
    weight, *change = BREAKAGES[breakage]
    monkeypatch.setattr(*change)
    scores = z_scores(*prior_probabilities(prior_fit(weight, 7000), prior_log_likelihoods))
    assert largest(scores) > 6.0, scores


@pytest.mark.parametrize("df", [2.0, 3.0])
def test_prior_of_a_correlation_is_the_documented_one(df):
    y, X = two_lines(5)
    prior = FiniteMixture(y, X, coefficient_df=df).prior
    sampler = finite_mixture._Sampler(y[:0], X[:0], y[:0], 3, prior, None, np.random.default_rng(1))
    sampler.start(None)
    correlation = np.empty((2, 3000))
    with one_thread():
        for value in np.nditer(correlation, op_flags=["writeonly"]):
            sampler.sweep()
            root = sampler.covariance.root()
            covariance = root @ root.T
            value[...] = covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
    dims = ("chain", "draw")
    draws = xr.Dataset(
        {"mean": (dims, correlation), "square": (dims, correlation**2)}
    )
    # ρ² is Beta(1/2, ν/2) if ρ has a density proportional to (1 - ρ²)^(ν/2 - 1)
    expected = {"mean": 0.0, "square": 1.0 / (1.0 + df)}
    assert largest(z_scores(draws, expected)) < 4.0
    other = {"mean": 0.0, "square": 1.0 / (1.0 + (5.0 - df))}
    assert largest(z_scores(draws, other)) > 6.0


# ---- output -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def weighted():
    """A small fit at unequal weights, some of them 0."""
    y, X = two_lines()
    weights = np.random.default_rng(4).uniform(0.0, 1.0, 60)
    weights[:3] = 0.0
    model = FiniteMixture(y, X, components=3, warmup=50, blocks=2, parallel=False)
    return model, weights, model.fit(weights, draws=40, random_seed=7)


def test_log_likelihood_belongs_to_the_draws(weighted):
    model, weights, fit = weighted
    posterior = fit["posterior"]
    log_lik = model.log_likelihood(fit)
    assert log_lik.dims == ("chain", "draw", "record")
    assert log_lik.dtype == np.float64
    for chain, draw in [(0, 0), (1, 39), (0, 20)]:
        at = {"chain": chain, "draw": draw}
        expected = stats.norm.pdf(
            model.response[:, None],
            model.predictors @ posterior["beta"][at].values.T,
            posterior["sigma"][at].values,
        ) @ posterior["pi"][at].values
        # also for the three records of weight 0, and unweighted for all
        np.testing.assert_allclose(log_lik[at], np.log(expected), rtol=1e-9)
    np.testing.assert_allclose(
        fit["sample_stats"]["weighted_log_likelihood"], log_lik.values @ weights, rtol=1e-12
    )


def test_shapes_and_names(weighted):
    model, _, fit = weighted
    assert isinstance(model, ppm.Synthesizer)
    assert model.records == 60
    posterior = fit["posterior"]
    assert posterior["pi"].dims == ("chain", "draw", "component")
    assert posterior["beta"].dims == ("chain", "draw", "component", "predictor")
    assert posterior["sigma"].shape == (2, 40, 3)
    assert posterior["coefficient_scale"].shape == (2, 40, 2)
    np.testing.assert_allclose(posterior["pi"].sum("component"), 1.0)
    stats_group = fit["sample_stats"]
    assert set(stats_group["occupied_components"].values.ravel()) <= {1, 2, 3}
    assert list(stats_group["block_kind"].values)[0] == "coefficients"


def test_same_seed_same_draws_serial_and_parallel(weighted):
    model, weights, fit = weighted
    settings = {"components": 3, "warmup": 50, "blocks": 2}
    parallel = FiniteMixture(model.response, model.predictors, parallel=True, **settings)
    again = parallel.fit(weights, draws=40, random_seed=7)
    xr.testing.assert_identical(again, fit)
    other = model.fit(weights, draws=40, random_seed=8)
    assert not np.allclose(other["posterior"]["beta"], fit["posterior"]["beta"])
    # the caller's SeedSequence is not used up
    seed = np.random.SeedSequence(7)
    first, second = (model.fit(weights, draws=5, random_seed=seed) for _ in range(2))
    xr.testing.assert_identical(first, second)


def test_chains_are_independent_even_from_one_start(weighted):
    model, weights, fit = weighted
    one_end = fit.isel(chain=[0])
    fits = [
        fit,
        model.fit(draws=20, random_seed=1),
        model.fit(weights, draws=20, random_seed=1, initial=one_end),
        model.fit(draws=20, random_seed=1, initial=one_end),
    ]
    # chains with the same random numbers would agree whatever they do, and R-hat be near 1
    for found in fits:
        for name in ("sigma", "concentration"):
            first, second = found["posterior"][name].values
            assert not np.isin(first, second).any()


def test_every_kept_sweep_has_the_correction_and_rough_ones_only_begin_the_warm_up(
    monkeypatch, weighted
):
    model, weights, fit = weighted
    corrected = []

    class Noting(finite_mixture._Sampler):
        def sweep(self):
            corrected.append(self.corrected)
            super().sweep()

    monkeypatch.setattr(finite_mixture, "_Sampler", Noting)
    for warmup, rough in ((0, 0), (1, 0), (10, 5), (250, 100)):
        settings = {"components": 3, "chains": 1, "warmup": warmup, "parallel": False}
        short = FiniteMixture(model.response, model.predictors, **settings)
        for initial, without in ((None, rough), (fit, 0)):
            corrected.clear()
            short.fit(weights, draws=7, random_seed=1, initial=initial)
            assert corrected == [False] * without + [True] * (warmup - without + 7)
    # at weights of 1 there is nothing to correct
    corrected.clear()
    short.fit(draws=7, random_seed=1)
    assert not any(corrected)


def test_thinning_keeps_every_third_sweep(weighted):
    model, weights, fit = weighted
    settings = {"components": 3, "warmup": 50, "blocks": 2, "thin": 3, "parallel": False}
    thinned = FiniteMixture(model.response, model.predictors, **settings)
    sigma = thinned.fit(weights, draws=13, random_seed=7)["posterior"]["sigma"]
    np.testing.assert_array_equal(sigma, fit["posterior"]["sigma"][:, 2:39:3])


def test_chains_run_from_a_script_without_main_guard(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import numpy as np
            import ppm

            print("started")
            y = np.random.default_rng(0).standard_normal(30)
            model = ppm.FiniteMixture(y, np.ones((30, 1)), components=2, warmup=5, parallel=True)
            print(model.fit(draws=5, random_seed=1)["posterior"]["sigma"].shape)
            """
        )
    )
    # -W error: starting processes must not warn either
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        env=os.environ | {"PYTHONPATH": str(Path(ppm.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "started\n(2, 5, 2)\n", done.stderr


def test_progress_shows_one_bar_on_the_error_stream(weighted, capsys):
    model, weights, _ = weighted
    model.fit(weights, draws=5, random_seed=7, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "110/110" in err
    model.fit(weights, draws=5, random_seed=7)
    assert capsys.readouterr().err == ""


def test_initial_continues_where_a_fit_ended(weighted):
    model, weights, fit = weighted
    other = FiniteMixture(model.response, model.predictors, components=3, warmup=0, chains=3)
    assert other.fit(weights, draws=5, random_seed=1, initial=fit)["posterior"].sizes["chain"] == 3
    starts = starting_points(fit, 3, 3, 2)
    np.testing.assert_array_equal(starts[1]["sigma"], fit["posterior"]["sigma"][1, -1])
    np.testing.assert_array_equal(starts[2]["sigma"], fit["posterior"]["sigma"][0, -1])


@pytest.mark.parametrize("weight", [1.0, 0.4])
def test_records_far_out_stay_finite(weight):
    y, X = two_lines()
    # log-densities near -1e10: their exponentials are 0 in double precision
    y[:2] = 1e5, -1e5
    fit = FiniteMixture(y, X, components=4, warmup=30, parallel=False).fit(
        np.full(60, weight), draws=60, random_seed=1
    )
    for group in ("posterior", "log_likelihood"):
        for name, values in fit[group].data_vars.items():
            assert np.all(np.isfinite(values)), name
    log_lik = mixture_log_likelihood(
        np.array([1e5]), np.ones((1, 1)), np.log([0.5, 0.5]), np.zeros((2, 1)), np.ones(2)
    )
    np.testing.assert_allclose(log_lik, stats.norm.logpdf(1e5), rtol=1e-12)


def test_collinear_predictors_are_survived():
    y, X = two_lines(30)
    X = np.column_stack([X, X, np.zeros(30)])
    fit = FiniteMixture(y, X, components=3, warmup=20, parallel=False).fit(
        np.full(30, 0.7), draws=20, random_seed=1
    )
    assert np.all(np.isfinite(fit["posterior"]["beta"]))


def test_collapse_onto_equal_records_is_an_error():
    model = FiniteMixture(np.zeros(30), np.ones((30, 2)), components=3, parallel=False)
    with pytest.raises(RuntimeError, match="collapsed onto records that it fits exactly"):
        model.fit(draws=20, random_seed=1)


# ---- synthetic data ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def two_clouds():
    """Two narrow clouds far apart, a quarter of the records in the upper one."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(80) < 20, 10.0, -10.0) + 0.1 * rng.standard_normal(80)
    model = FiniteMixture(y, np.ones((80, 1)), components=2, warmup=50, parallel=False)
    return model, model.fit(draws=200, random_seed=1)


def follows_own_value(synthetic):
    """Share of the upper cloud's records whose synthetic value is in the upper cloud."""
    return float((synthetic[:, :20] > 0).mean())


def test_prediction_draws_the_component_from_the_mixture_weights(two_clouds):
    model, fit = two_clouds
    synthetic = model.predict(fit, releases=100, random_seed=3)
    assert synthetic.dims == ("release", "record")
    assert synthetic.shape == (100, 80)
    # 2,000 draws with a probability near 1/4
    assert abs(follows_own_value(synthetic) - 0.25) < 0.06
    assert abs(float((synthetic > 0).mean()) - 0.25) < 0.04

    # the full conditional, as in the paper's appendix, would copy every record's cloud
    posterior = fit["posterior"]
    at = {"chain": 0, "draw": 0}
    log_density = component_log_densities(
        model.response,
        model.predictors,
        posterior["beta"][at].values,
        posterior["sigma"][at].values,
    )
    label = log_density.argmax(axis=0)
    copied = (model.predictors @ posterior["beta"][at].values.T)[np.arange(80), label]
    assert follows_own_value(copied[None]) > 0.99


def test_prediction_repeats_and_uses_different_draws(two_clouds):
    model, fit = two_clouds
    first, second = (model.predict(fit, releases=400, random_seed=3) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    short = fit.isel(draw=slice(0, 1))
    many = model.predict(short, releases=5, random_seed=3)
    assert np.unique(many.values[:, 0]).size == 5


def test_predictive_moments_of_known_parameters():
    pi = np.array([0.2, 0.8])
    posterior = xr.Dataset(
        {
            "pi": (("chain", "draw", "component"), pi[None, None]),
            "beta": (("chain", "draw", "component", "predictor"), [[[[1.0, 2.0], [0.0, -1.0]]]]),
            "sigma": (("chain", "draw", "component"), [[[0.5, 2.0]]]),
        }
    )
    X = np.column_stack([np.ones(2), [0.0, 3.0]])
    model = FiniteMixture(np.zeros(2), X, components=2)
    fit = xr.DataTree.from_dict({"posterior": posterior})
    synthetic = model.predict(fit, releases=20_000, random_seed=1).values
    means = X @ np.array([[1.0, 2.0], [0.0, -1.0]]).T
    expected = means @ pi
    variance = (means**2 + np.array([0.5, 2.0]) ** 2) @ pi - expected**2
    np.testing.assert_allclose(synthetic.mean(axis=0), expected, atol=0.15)
    np.testing.assert_allclose(synthetic.var(axis=0), variance, rtol=0.05)


# ---- bad input --------------------------------------------------------------------------------

Y, PREDICTORS = two_lines(10)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"response": [np.nan, *Y[1:]]}, "response must be finite; record 0"),
        ({"response": [*Y[:9], np.inf]}, "response must be finite; record 9"),
        ({"response": ["much"] * 10}, "response must be an array of numbers"),
        ({"response": np.zeros((10, 1))}, "response must be a non-empty 1-dimensional"),
        ({"response": []}, "response must be a non-empty"),
        ({"response": Y[:9]}, "predictors has 10 rows for the 9 records"),
        ({"predictors": Y}, "predictors must be a non-empty 2-dimensional"),
        ({"predictors": np.full((10, 2), np.nan)}, "predictors must be finite"),
        ({"components": 0}, "components must be a whole number of at least 1"),
        ({"components": 2.5}, "components must be a whole number"),
        ({"chains": 0}, "chains must be a whole number of at least 1"),
        ({"warmup": -1}, "warmup must be a whole number of at least 0"),
        ({"thin": 0}, "thin must be a whole number of at least 1"),
        ({"blocks": 0}, "blocks must be a whole number of at least 1"),
        ({"parallel": "yes"}, "parallel must be True, False or None"),
        ({"concentration_prior": 1.0}, "concentration_prior must be a pair"),
        ({"concentration_prior": (0.0, 1.0)}, r"concentration_prior\[0\] must be .* above 0"),
        ({"coefficient_df": 0}, "coefficient_df must be .* at least 0.1"),
        ({"coefficient_scale": -1.0}, "coefficient_scale must be a finite number from 1e-6"),
        ({"coefficient_scale": [1.0] * 3}, "one for each of the 2 predictors"),
        ({"residual_df": np.inf}, "residual_df must be a finite number"),
        ({"residual_scale": "wide"}, "residual_scale must be a finite number"),
    ],
)
def test_bad_model(change, message):
    settings = {"response": Y, "predictors": PREDICTORS} | change
    with pytest.raises(ValueError, match=message):
        FiniteMixture(**settings)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": np.ones(9)}, "weights has shape"),
        ({"weights": np.full(10, 1.5)}, r"weights must lie in \[0, 1\], because outside limits"),
        ({"weights": np.full(10, np.nan)}, r"weights must lie in \[0, 1\]"),
        ({"draws": 0}, "draws must be a whole number of at least 1"),
        ({"initial": "last"}, "initial must be what an earlier call of fit returned"),
    ],
)
def test_bad_fit(change, message):
    with pytest.raises(ValueError, match=message):
        FiniteMixture(Y, PREDICTORS, components=2).fit(**change)


def test_bad_releases_and_initial_of_another_size(weighted):
    model, _, fit = weighted
    with pytest.raises(ValueError, match="releases must be a whole number of at least 1"):
        model.predict(fit, releases=0)
    with pytest.raises(ValueError, match="initial has 3 components and 2 predictors"):
        FiniteMixture(Y, PREDICTORS, components=2).fit(initial=fit)


def test_chains_start_with_the_components_they_are_told():
    rng = np.random.default_rng(5)
    X = np.column_stack([np.ones(90), rng.integers(0, 2, 90)])
    y = np.concatenate([rng.normal(0.0, 0.3, 45), rng.normal(4.0, 0.3, 45)])

    def occupied(starting):
        model = ppm.FiniteMixture(
            y, X, components=4, chains=2, warmup=0, starting_components=starting, parallel=False
        )
        fit = model.fit(np.full(90, 0.6), draws=1, random_seed=1)
        return fit["sample_stats"]["occupied_components"].values[:, 0], model.fingerprint()

    (few, many), told = occupied([1, 4])
    assert few < many
    everywhere, default = occupied(None)
    assert everywhere[1] == many and everywhere[0] > few
    # a kept fit of other starts is another fit
    assert told["starting_components"] != default["starting_components"]
    # and more than one start can reach the same posterior
    model = ppm.FiniteMixture(
        y, X, components=2, chains=2, warmup=400, starting_components=[1, 2], parallel=False
    )
    fit = model.fit(draws=400, random_seed=2)
    assert ppm.diagnostics.bound_diagnostics(model.log_likelihood(fit), np.ones(90)).r_hat < 1.1


@pytest.mark.parametrize(
    ("starting", "told"),
    [
        ([1, 2, 3], "one for each of the 2 chains"),
        ("two", "starting_components must be"),
        (5, "at most the 4 components"),
        ([0, 1], "starting_components"),
    ],
)
def test_impossible_starts_are_refused(starting, told):
    with pytest.raises(ValueError, match=told):
        ppm.FiniteMixture(
            np.zeros(5), np.ones((5, 1)), components=4, starting_components=starting
        )
