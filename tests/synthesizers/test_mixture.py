"""Fits of the finite mixture: a known posterior, what a fit holds, where labels come from.

Its moves are in test_mixture_moves.py, its prior and limits in test_mixture_posterior.py, the
comparison with NUTS in test_pymc_models.py.
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
from ppm.synthesizers.mixture import model as finite_mixture
from ppm.synthesizers.mixture.model import FiniteMixture


def two_lines(records=60, seed=0):
    """Records around two overlapping regression lines."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(records)
    upper = rng.random(records) < 0.6
    noise = rng.standard_normal(records)
    y = np.where(upper, 1.0 - 0.8 * x + 0.7 * noise, -0.6 + 0.5 * x + 0.4 * noise)
    return y, np.column_stack([np.ones(records), x])


# ---- one component: an integral on a grid -----------------------------------------------------


def one_component_expectations(y, weights):
    """Posterior means of β, β², log σ with an intercept only, by numerical integration."""
    scale = stats.t(3).ppf(np.linspace(0.5, 1.0, 2002)[1:-1])
    beta, log_sigma = np.linspace(-3.0, 4.0, 701), np.linspace(-2.5, 2.5, 251)
    # half-t(3) scales at equal probabilities turn the integral over the scale into an average
    prior_beta = (stats.norm.pdf(beta[:, None] / scale) / scale).mean(axis=1)
    sigma = np.exp(log_sigma)
    squares = (weights[:, None] * (y[:, None] - beta) ** 2).sum(axis=0)
    log_density = np.log(prior_beta)[:, None] - 0.5 * squares[:, None] / sigma**2
    log_density += log_sigma - weights.sum() * log_sigma + stats.t(3).logpdf(sigma)
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
    model = FiniteMixture(y, np.ones((20, 1)), components=1, warmup=100, parallel=False)
    posterior = model.fit(weights, draws=1500, random_seed=1)["posterior"]
    beta, log_sigma = posterior["beta"][..., 0, 0], np.log(posterior["sigma"][..., 0])
    draws = {"beta": beta, "beta_squared": beta**2, "log_sigma": log_sigma}

    def largest_score(expected):
        return max(
            abs(float(values.mean() - expected[name])) / float(az.mcse(values.values))
            for name, values in draws.items()
        )

    assert largest_score(one_component_expectations(y, weights)) < 4.0
    # the same draws do not pass for the posterior in which every record counts once
    assert largest_score(one_component_expectations(y, np.ones(20))) > 10.0


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
    log_lik = model.log_likelihood(fit)
    assert log_lik.dims == ("chain", "draw", "record") and log_lik.dtype == np.float64
    pi, beta, sigma = (fit["posterior"][name].values for name in ("pi", "beta", "sigma"))
    mean = beta @ model.predictors.T
    density = stats.norm.pdf(model.response, mean, sigma[..., None])
    # also for the three records of weight 0, and unweighted for all
    np.testing.assert_allclose(log_lik, np.log((pi[..., None] * density).sum(2)), rtol=1e-9)
    np.testing.assert_allclose(
        fit["sample_stats"]["weighted_log_likelihood"], log_lik.values @ weights, rtol=1e-11
    )


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


def test_chains_run_from_a_script_without_main_guard_and_elsewhere_as_here(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np, ppm\n"
        "print('started')\n"
        "for parallel in (True, False):\n"
        "    model = ppm.FiniteMixture(\n"
        "        np.arange(9.0), np.ones((9, 1)), warmup=5, parallel=parallel)\n"
        "    sigma = model.fit(draws=5, random_seed=1)['posterior']['sigma'].values\n"
        "    print(sigma.shape, float(sigma.sum()))\n"
    )
    # -W error: starting processes must not warn either
    done = subprocess.run(
        [sys.executable, "-W", "error", script], capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": str(Path(ppm.__file__).parents[1])},
    )
    started, elsewhere, here = done.stdout.splitlines() or [done.stderr, "", ""]
    assert started == "started"
    assert elsewhere == here and here.startswith("(2, 5, 10)")


def test_progress_shows_one_bar_on_the_error_stream(weighted, capsys):
    model, weights, _ = weighted
    model.fit(weights, draws=5, random_seed=7, progress=True)
    out, err = capsys.readouterr()
    assert out == "" and "110/110" in err
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


@pytest.mark.parametrize(("change", "message"), [
    ({"weights": np.full(60, 1.5)}, r"^weights must be between 0 and 1, because outside limits"),
    ({"initial": "last"}, "^initial must be what an earlier call of fit returned"),
    ({"censor": (-1, 1)}, r"^censor must be a ppm\.Censoring; got tuple"),
])
def test_a_fit_refuses_weights_above_1_and_what_is_no_fit_and_no_limit(weighted, change, message):
    with pytest.raises(ValueError, match=message):
        weighted[0].fit(**change)


def test_chains_start_with_the_components_they_are_told():
    y = np.repeat([0.0, 4.0], 45) + np.random.default_rng(5).normal(0.0, 0.3, 90)
    settings = {"components": 4, "warmup": 0, "parallel": False, "starting_components": [1, 4]}
    fit = FiniteMixture(y, np.ones((90, 1)), **settings).fit(np.full(90, 0.6), draws=1)
    few, many = fit["sample_stats"]["occupied_components"].values[:, 0]
    assert few < many


# ---- where the labels of synthetic records come from --------------------------------------------

PI, CENTRES, SIGMA = np.array([0.9, 0.1, 0.0]), np.array([0.0, 8.0, 40.0]), np.array([0.5, 0.8, 9])
# the first record sits at the rare component, the second between the two
RESPONSE = np.concatenate([[8.2, 3.25], np.zeros(18)])


def drawn(response, **settings):
    """Releases from draws of one and the same θ."""
    dims = {"pi": ["component"], "beta": ["component", "predictor"], "sigma": ["component"]}
    values = {"pi": PI, "beta": CENTRES[:, None], "sigma": SIGMA}
    posterior = xr.Dataset({
        name: (["chain", "draw", *dims[name]], np.broadcast_to(values[name], (1, 9, *np.shape(v))))
        for name, v in values.items()
    })
    fit = xr.DataTree.from_dict({"posterior": posterior})
    model = FiniteMixture(response, np.ones((response.size, 1)), components=3)
    return model.predict(fit, random_seed=1, **settings).values


@pytest.mark.parametrize("labels", ["prior", "conditional"])
def test_labels_have_their_probabilities_and_responses_their_components(labels):
    found = drawn(RESPONSE, releases=4_000, labels=labels)[:, :3]
    # from π an outlying record is like any other; from its full conditional it is always itself
    density = stats.norm.pdf(RESPONSE[:3, None], CENTRES, SIGMA)
    joint = PI * (density if labels == "conditional" else np.ones((3, 3)))
    expected = joint[:, 1] / joint.sum(axis=1)
    upper = found > 4.0
    errors = np.sqrt(expected * (1.0 - expected) / 4_000) + 1e-4
    assert np.all(np.abs(upper.mean(axis=0) - expected) < 4.0 * errors)
    assert labels == "prior" or (expected[0] > 0.99 and 0.1 < expected[1] < 0.9)
    for k, here in enumerate([~upper, upper]):
        values = found[here]
        assert abs(values.mean() - CENTRES[k]) < 4.0 * SIGMA[k] / np.sqrt(values.size)
        assert values.std() == pytest.approx(SIGMA[k], rel=0.1)


def test_labels_from_pi_look_at_no_response():
    for labels, same in (("prior", True), ("conditional", False)):
        one, other = (drawn(y, releases=3, labels=labels) for y in (RESPONSE, RESPONSE[::-1]))
        assert np.array_equal(one, other) == same
