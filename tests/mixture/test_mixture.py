"""Fits of the finite mixture: what a fit holds, where labels come from.

Its moves are in test_mixture_moves.py, its prior and its pseudo posterior in
test_mixture_posterior.py.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from scipy import stats

import ppm
from ppm.mixture.model import FiniteMixture
from ppm.mixture.sampler import Sampler

RNG = np.random.default_rng(0)
# around two overlapping regression lines
X = np.column_stack([np.ones(60), RNG.standard_normal(60)])
Y = np.where(RNG.random(60) < 0.6, X @ [1.0, -0.8], X @ [-0.6, 0.5]) + RNG.normal(
    0.0, 0.5, 60
)


def model_of(response=Y, predictors=X, **settings):
    settings = {
        "components": 3,
        "warmup": 50,
        "parallel": False,
    } | settings
    return FiniteMixture(response, predictors, **settings)


@pytest.fixture(scope="module")
def weighted():
    """A small fit at unequal weights, some of them 0."""
    weights = np.maximum(np.linspace(-0.05, 1.0, 60), 0.0)
    return model_of(), weights, model_of().fit(weights, draws=40, random_seed=7)


def test_log_likelihood_belongs_to_the_draws(weighted):
    model, weights, fit = weighted
    log_lik = model.log_likelihood(fit)
    assert log_lik.dims == ("chain", "draw", "record") and log_lik.dtype == np.float64
    pi, beta, sigma = (
        fit["posterior"][name].values for name in ("pi", "beta", "sigma")
    )
    density = stats.norm.pdf(Y, beta @ X.T, sigma[..., None])
    # also for the three records of weight 0, and unweighted for all
    np.testing.assert_allclose(
        log_lik, np.log((pi[..., None] * density).sum(2)), rtol=1e-9
    )
    np.testing.assert_allclose(
        fit["sample_stats"]["weighted_log_likelihood"],
        log_lik.values @ weights,
        rtol=1e-11,
    )
    posterior = fit["posterior"].dataset
    narrow = posterior.assign(sigma=1e-200 * posterior["sigma"])
    assert np.all(model.log_likelihood_at(narrow) == -np.inf)


def test_chains_are_independent_even_from_one_start(weighted):
    model, weights, fit = weighted
    # chains with the same random numbers would agree whatever they do, and R-hat be near 1
    for found in (
        fit,
        model.fit(weights, draws=20, random_seed=1, initial=fit.isel(chain=[0])),
    ):
        first, second = found["posterior"]["sigma"].values
        assert not np.isin(first, second).any()


def test_every_kept_sweep_has_the_correction_and_rough_ones_only_begin_the_warm_up(
    monkeypatch, weighted
):
    (_, weights, fit), corrected, sweep = weighted, [], Sampler.sweep
    counts, thresholds = set(), Sampler.thresholds

    def noting(self):
        corrected.append(self.corrected)
        sweep(self)

    def counting(self, count):
        counts.add(count)
        return thresholds(self, count)

    monkeypatch.setattr(Sampler, "sweep", noting)
    monkeypatch.setattr(Sampler, "thresholds", counting)
    for warmup, rough in ((0, 0), (1, 0), (10, 5), (250, 100)):
        short = model_of(chains=1, warmup=warmup)
        for initial, without in ((None, rough), (fit, 0)):
            corrected.clear()
            short.fit(weights, draws=7, random_seed=1, initial=initial)
            assert corrected == [False] * without + [True] * (warmup - without + 7)
    # the two coefficients begin in blocks of their own, each with a threshold of its own
    assert counts == {1, 2}
    # at weights of 1 there is nothing to correct
    corrected.clear()
    short.fit(draws=7, random_seed=1)
    assert not any(corrected)


def test_thinning_keeps_every_third_sweep(weighted):
    _, weights, fit = weighted
    sigma = model_of(thin=3).fit(weights, draws=13, random_seed=7)["posterior"]["sigma"]
    np.testing.assert_array_equal(sigma, fit["posterior"]["sigma"][:, 2:39:3])


def test_chains_run_from_a_script_without_main_guard_and_elsewhere_as_here(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np, ppm\n"
        "print('started')\n"
        "for way in (True, False):\n"
        "    model = ppm.FiniteMixture(np.arange(9), np.ones((9, 1)), warmup=5, parallel=way)\n"
        "    sigma = model.fit(draws=5, random_seed=1)['posterior']['sigma']\n"
        "    print(sigma.shape, float(sigma.sum()))\n"
    )
    # -W error: starting processes must not warn either
    done = subprocess.run(
        [sys.executable, "-W", "error", script],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(ppm.__file__).parents[1])},
    )
    started, elsewhere, here = done.stdout.splitlines() or [done.stderr, "", ""]
    assert started == "started"
    assert elsewhere == here and here.startswith("(2, 5, 10)")


def test_initial_continues_where_a_fit_ended(weighted):
    fit = weighted[2]
    with pytest.raises(ValueError, match="initial has 3 components and 2 predictors"):
        model_of(components=4).fit(initial=fit)
    # a share that was stored as 0 comes back
    none = fit["posterior"].to_dataset()
    none["pi"] = xr.zeros_like(none["pi"]) + [1.0, 0.0, 0.0]
    again = model_of().fit(
        weighted[1], draws=5, initial={"posterior": none}, random_seed=1
    )
    assert (again["posterior"]["pi"][..., 1:] > 0.0).any()
    starts = [start["sigma"] for start in model_of(chains=3)._starting_points(fit)]
    np.testing.assert_array_equal(starts, fit["posterior"]["sigma"][[0, 1, 0], -1])


@pytest.mark.parametrize("weight", [1.0, 0.4])
def test_records_far_out_stay_finite(weight):
    # log-densities near -1e10: their exponentials are 0 in double precision
    model = model_of(np.r_[1e5, -1e5, Y[2:]], components=4, warmup=30)
    fit = model.fit(np.full(60, weight), draws=60, random_seed=1)
    for group in ("posterior", "log_likelihood"):
        assert np.isfinite(fit[group].dataset.to_dataarray()).all()


@pytest.mark.parametrize("weight", [1.0, 0.0])
def test_what_an_outlier_makes_small_has_not_collapsed(weight):
    model = model_of(np.r_[1e10, Y[1:]], components=3, warmup=100)
    fit = model.fit(np.r_[weight, np.full(59, 0.7)], draws=20, random_seed=1)[
        "posterior"
    ].dataset
    assert np.isfinite(fit.to_dataarray()).all() and (fit["sigma"] > 0.0).all()


@pytest.mark.parametrize(
    ("response", "scale", "message"),
    [
        (np.zeros(30), 2.5, "collapsed onto records that it fits exactly"),
        # beyond what the constructor takes: a pivot that is 0 whichever way a processor rounds
        (Y[:30], np.inf, "covariance of the coefficients is singular"),
    ],
)
def test_a_chain_that_breaks_off_says_why(response, scale, message):
    model = model_of(response, np.ones((30, 2)))
    model.prior.coefficient_scale[:] = scale
    with pytest.raises(RuntimeError, match=message):
        model.fit(draws=20, random_seed=1)


# ---- where the labels of synthetic records come from --------------------------------------------

PI, CENTRES, SIGMA = (
    np.array([0.9, 0.1, 0.0]),
    np.array([0.0, 8.0, 40.0]),
    np.array([0.5, 0.8, 9]),
)
# the first record sits at the rare component, the second between the two
RESPONSE = np.concatenate([[8.2, 3.25], np.zeros(18)])


def drawn(response, **settings):
    """Releases from draws of one and the same θ."""
    dims = {
        "pi": ["component"],
        "beta": ["component", "predictor"],
        "sigma": ["component"],
    }
    values = {"pi": PI, "beta": CENTRES[:, None], "sigma": SIGMA}
    posterior = xr.Dataset(
        {
            name: (
                ["chain", "draw", *dims[name]],
                np.broadcast_to(values[name], (1, 9, *np.shape(v))),
            )
            for name, v in values.items()
        }
    )
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
        one, other = (
            drawn(y, releases=3, labels=labels) for y in (RESPONSE, RESPONSE[::-1])
        )
        assert np.array_equal(one, other) == same
