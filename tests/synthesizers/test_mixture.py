"""The finite mixture sampler against integrals, its prior, and deliberately broken variants.

The moves at weights between 0 and 1 are in test_mixture_moves.py, the comparison with NUTS in
test_pymc_models.py.
"""

import os
import subprocess
import sys
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
from ppm.synthesizers.mixture.model import FiniteMixture


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


SAMPLER = finite_mixture.Sampler
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
    sampler = finite_mixture.Sampler(y[:0], X[:0], y[:0], 3, prior, None, np.random.default_rng(1))
    sampler.start(None)
    correlation = np.empty((2, 3000))
    with one_thread():
        for value in np.nditer(correlation, op_flags=["writeonly"]):
            sampler.sweep()
            root = sampler.covariance[0]
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
        fit["sample_stats"]["weighted_log_likelihood"], log_lik.values @ weights, rtol=1e-11
    )


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
    # chains with the same random numbers would agree whatever they do, and R-hat be near 1
    for found in (fit, model.fit(weights, draws=20, random_seed=1, initial=fit.isel(chain=[0]))):
        first, second = found["posterior"]["sigma"].values
        assert not np.isin(first, second).any()


def test_every_kept_sweep_has_the_correction_and_rough_ones_only_begin_the_warm_up(
    monkeypatch, weighted
):
    model, weights, fit = weighted
    corrected = []

    class Noting(finite_mixture.Sampler):
        def sweep(self):
            corrected.append(self.corrected)
            super().sweep()

    monkeypatch.setattr(finite_mixture, "Sampler", Noting)
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
        "import numpy as np, ppm\n"
        "print('started')\n"
        "model = ppm.FiniteMixture(np.arange(9.0), np.ones((9, 1)), warmup=5, parallel=True)\n"
        "print(model.fit(draws=5, random_seed=1)['posterior']['sigma'].shape)\n"
    )
    # -W error: starting processes must not warn either
    done = subprocess.run(
        [sys.executable, "-W", "error", script], capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": str(Path(ppm.__file__).parents[1])},
    )
    assert done.stdout == "started\n(2, 5, 10)\n", done.stderr


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
    with pytest.raises(ValueError, match="initial has 3 components and 2 predictors"):
        FiniteMixture(model.response, model.predictors).fit(initial=fit)
    starts = other._starting_points(fit)
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


def test_collapse_onto_equal_records_is_an_error():
    model = FiniteMixture(np.zeros(30), np.ones((30, 2)), components=3, parallel=False)
    with pytest.raises(RuntimeError, match="collapsed onto records that it fits exactly"):
        model.fit(draws=20, random_seed=1)


def test_columns_of_very_different_size_are_not_called_a_collapse():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 2)) * [1.0, 0.0]
    model = FiniteMixture(rng.normal(size=40), X, components=2, warmup=50, parallel=False)
    # beyond what the constructor takes: a pivot that is 0 whichever way a processor rounds
    model.prior.coefficient_scale[:] = np.inf
    with pytest.raises(RuntimeError, match="covariance of the coefficients is singular"):
        model.fit(draws=10, random_seed=1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"response": [np.nan, *np.ones(9)]}, "response must be finite; record 0"),
        ({"response": np.ones(9)}, "predictors has 10 rows for the 9 records"),
        ({"coefficient_scale": [1.0] * 3}, "one for each of the 2 predictors"),
        ({"starting_components": [1, 2, 3]}, "one for each of the 2 chains"),
        ({"starting_components": 11}, "whole number from 1 to 10"),
        ({"starting_components": [0, 1]}, "starting_components"),
        ({"weights": np.full(10, 1.5)}, r"weights must lie in \[0, 1\], because outside limits"),
        ({"initial": "last"}, "initial must be what an earlier call of fit returned"),
        ({"censor": (-1, 1)}, r"censor must be a ppm\.Censoring; got tuple"),
    ],
)
def test_bad_input(change, message):
    settings = {"response": np.arange(10.0), "predictors": np.ones((10, 2))} | change
    of_fit = {name: settings.pop(name) for name in {"weights", "initial", "censor"} & {*change}}
    with pytest.raises(ValueError, match=message):
        FiniteMixture(**settings).fit(**of_fit)


def test_chains_start_with_the_components_they_are_told():
    y = np.repeat([0.0, 4.0], 45) + np.random.default_rng(5).normal(0.0, 0.3, 90)
    settings = {"components": 4, "warmup": 0, "parallel": False, "starting_components": [1, 4]}
    fit = FiniteMixture(y, np.ones((90, 1)), **settings).fit(np.full(90, 0.6), draws=1)
    few, many = fit["sample_stats"]["occupied_components"].values[:, 0]
    assert few < many


# ---- where the labels of synthetic records come from --------------------------------------------

PI, CENTRES, SIGMA = np.array([0.9, 0.1, 0.0]), np.array([0.0, 8.0, 40.0]), np.full(3, 0.5)
# the first record sits at the rare component, the second between the two
RESPONSE = np.concatenate([[8.2, 4.1], np.zeros(18)])


@pytest.fixture(scope="module")
def model():
    return FiniteMixture(RESPONSE, np.ones((RESPONSE.size, 1)), components=3)


@pytest.fixture(scope="module")
def fit():
    """Forty draws of one and the same θ."""
    draws = (1, 40)
    posterior = xr.Dataset(
        {
            "pi": (("chain", "draw", "component"), np.broadcast_to(PI, (*draws, 3))),
            "beta": (
                ("chain", "draw", "component", "predictor"),
                np.broadcast_to(CENTRES[:, None], (*draws, 3, 1)),
            ),
            "sigma": (("chain", "draw", "component"), np.broadcast_to(SIGMA, (*draws, 3))),
        }
    )
    return xr.DataTree.from_dict({"posterior": posterior})


def share_near(values, centre):
    return float(np.mean(np.abs(values - centre) < 4 * SIGMA[0]))


def test_an_outlying_record_follows_its_own_value_only_under_conditional_labels(model, fit):
    drawn = {
        labels: model.predict(fit, releases=800, random_seed=1, labels=labels).values
        for labels in ("prior", "conditional")
    }
    # from π the outlying record is like any other; from its full conditional it is always itself
    assert share_near(drawn["prior"][:, 0], 8.0) == pytest.approx(PI[1], abs=0.04)
    assert share_near(drawn["prior"][:, 5], 8.0) == pytest.approx(PI[1], abs=0.04)
    assert share_near(drawn["conditional"][:, 0], 8.0) > 0.99
    assert share_near(drawn["conditional"][:, 5], 8.0) == 0
    # the distance to the confidential value tells the two apart
    assert np.abs(drawn["conditional"][:, 0] - RESPONSE[0]).mean() < 1
    assert np.abs(drawn["prior"][:, 0] - RESPONSE[0]).mean() > 6


def test_conditional_labels_have_the_full_conditional_probabilities(model, fit):
    drawn = model.predict(fit, releases=4_000, random_seed=2, labels="conditional").values
    joint = PI * stats.norm.pdf(RESPONSE[1], CENTRES, SIGMA)
    expected = joint[1] / joint.sum()
    assert 0.2 < expected < 0.9
    spread = np.sqrt(expected * (1 - expected) / 4_000)
    assert abs(share_near(drawn[:, 1], 8.0) - expected) < 4 * spread
    # leaving π out of the conditional would be another distribution
    without = stats.norm.pdf(RESPONSE[1], CENTRES, SIGMA)
    assert abs(share_near(drawn[:, 1], 8.0) - without[1] / without.sum()) > 10 * spread


def test_labels_from_pi_look_at_no_response(fit):
    first, second = (
        FiniteMixture(response, np.ones((RESPONSE.size, 1)), components=3)
        for response in (RESPONSE, RESPONSE[::-1])
    )
    settings = {"releases": 3, "random_seed": 4}
    assert np.array_equal(first.predict(fit, **settings), second.predict(fit, **settings))
    settings["labels"] = "conditional"
    assert not np.array_equal(first.predict(fit, **settings), second.predict(fit, **settings))
