"""Fits of the finite mixture: what a fit holds, where chains begin, what a release is drawn from.

Its moves are in test_mixture_moves.py, its prior and its pseudo posterior in
test_mixture_posterior.py.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import ppm
from ppm.models.mixture.model import FiniteMixture
from ppm.models.mixture.sampler import Sampler

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


WEIGHTS = np.maximum(np.linspace(-0.05, 1.0, 60), 0.0)


def fitted(model, weights=WEIGHTS, **settings):
    settings = {"draws": 40, "random_seed": 7} | settings
    return ppm.fit(model, ppm.Terms(weights), allow_disagreement=True, **settings)


@pytest.fixture(scope="module")
def fit():
    """A small fit at unequal weights, some of them 0."""
    return fitted(model_of())


def test_log_p_belongs_to_the_draws(fit):
    pi, beta, sigma = (fit.theta[name] for name in ("pi", "beta", "sigma"))
    density = stats.norm.pdf(Y, beta @ X.T, sigma[..., None])
    # also for the three records of weight 0, and unweighted for all
    log_p = fit.model.log_p(fit.theta)
    expected = np.log((pi[..., None] * density).sum(axis=1))
    np.testing.assert_allclose(log_p, expected, rtol=1e-9)
    assert fit.posterior["beta"].dims == ("chain", "draw", "component", "predictor")
    bounds = WEIGHTS * np.abs(log_p).max(axis=0)
    np.testing.assert_allclose(fit.record_bounds, bounds, rtol=1e-14)
    narrow = fit.theta | {"sigma": 1e-200 * sigma}
    assert np.all(fit.model.log_p(narrow) == -np.inf)


def test_chains_are_independent_even_from_one_start(fit):
    start = {name: ends[[0, 0]] for name, ends in fit.ends.items()}
    # chains with the same random numbers would agree whatever they do, and R-hat be near 1
    for made in (fit, fitted(fit.model, start=start)):
        first, second = made.theta["sigma"].reshape(2, 40, -1)
        assert not np.isin(first, second).any()


def test_every_kept_sweep_has_the_correction_and_rough_ones_only_begin_the_warm_up(
    monkeypatch, fit
):
    corrected, sweep = [], Sampler.sweep
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
        short = model_of(chains=1)
        one_end = {name: ends[:1] for name, ends in fit.ends.items()}
        for start, without in ((None, rough), (one_end, 0)):
            corrected.clear()
            fitted(short, draws=7, warmup=warmup, start=start)
            assert corrected == [False] * without + [True] * (warmup - without + 7)
    # the two coefficients begin in blocks of their own, each with a threshold of its own
    assert counts == {1, 2}
    # at weights of 1 there is nothing to correct
    corrected.clear()
    fitted(short, np.ones(60), draws=7)
    assert not any(corrected)


def test_thinning_keeps_every_third_sweep(fit):
    sigma = fitted(fit.model, draws=13, thin=3).posterior["sigma"]
    np.testing.assert_array_equal(sigma, fit.posterior["sigma"][:, 2:39:3])


def test_chains_run_from_a_script_without_main_guard_and_elsewhere_as_here(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np, ppm\n"
        "print('started')\n"
        "for way in (True, False):\n"
        "    model = ppm.FiniteMixture(np.arange(9), np.ones((9, 1)), warmup=5, parallel=way)\n"
        "    sigma = ppm.fit(model, ppm.Unweighted(), draws=5, random_seed=1).theta['sigma']\n"
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
    assert elsewhere == here and here.startswith("(10, 10)")


def test_a_start_is_where_each_chain_begins(fit, monkeypatch):
    starts, start = [], Sampler.start
    monkeypatch.setattr(
        Sampler, "start", lambda self, at: starts.append(at) or start(self, at)
    )
    fitted(fit.model, draws=1, start=fit.ends)
    sigma = fit.posterior["sigma"].values[:, -1]
    np.testing.assert_array_equal([at["sigma"] for at in starts], sigma)
    # a share that was stored as 0 comes back
    none = fit.ends | {"pi": np.array([[1.0, 0.0, 0.0]] * 2)}
    again = fitted(fit.model, draws=5, start=none)
    assert (again.theta["pi"][:, 1:] > 0.0).any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"beta": np.zeros((2, 4, 2))}, "start must hold pi and sigma of shape"),
        ({"pi": np.full((2, 3), 0.5)}, "start must hold pi of at least 0 that sums"),
        ({"sigma": np.zeros((2, 3))}, "start must hold sigma above 0"),
        ({"concentration": np.zeros(2)}, "start must hold concentration above 0"),
        (
            {"concentration": np.ones(3)},
            "start must hold one θ for each of the 2 chains",
        ),
    ],
)
def test_a_start_that_cannot_be_one_is_refused(fit, change, message):
    with pytest.raises(ValueError, match=message):
        fitted(fit.model, draws=1, start=fit.ends | change)


def test_weights_above_1_are_refused():
    with pytest.raises(ValueError, match="weights must be between 0 and 1"):
        fitted(model_of(), np.full(60, 1.5))


def test_risks_by_count_take_the_values_and_labels_that_the_model_is_given():
    incomes, groups = np.exp(Y), np.arange(60) % 2
    model = model_of(values=incomes, known=groups)
    rule = ppm.ByCount(0.3)
    made = ppm.fit(model, rule, draws=8, random_seed=1, allow_disagreement=True)
    risks = ppm.risk.identification_risks(incomes, radius=0.3, groups=groups)
    np.testing.assert_array_equal(made.weights, 1.0 - risks)
    with pytest.raises(TypeError, match="give it `values`"):
        ppm.fit(model_of(), rule, draws=8)
    with pytest.raises(ValueError, match="values must hold one number for each"):
        model_of(values=incomes[1:])


@pytest.mark.parametrize("weight", [1.0, 0.4])
def test_records_far_out_stay_finite(weight):
    # log-densities near -1e10: their exponentials are 0 in double precision
    model = model_of(np.r_[1e5, -1e5, Y[2:]], components=4, warmup=30)
    fit = fitted(model, np.full(60, weight), draws=60)
    for values in (*fit.theta.values(), model.log_p(fit.theta)):
        assert np.isfinite(values).all()


@pytest.mark.parametrize("weight", [1.0, 0.0])
def test_what_an_outlier_makes_small_has_not_collapsed(weight):
    model = model_of(np.r_[1e10, Y[1:]], components=3, warmup=100)
    # draws that are not finite would be refused
    fit = fitted(model, np.r_[weight, np.full(59, 0.7)], draws=20)
    assert (fit.theta["sigma"] > 0.0).all()


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
        fitted(model, np.ones(30), draws=20)


# ---- releases ----------------------------------------------------------------------------------

PI, CENTRES, SIGMA = (
    np.array([0.9, 0.1, 0.0]),
    np.array([0.0, 8.0, 40.0]),
    np.array([0.5, 0.8, 9]),
)


def drawn(response, releases):
    """Releases from draws of one and the same θ."""
    theta = {"pi": PI, "beta": CENTRES[:, None], "sigma": SIGMA}
    model = FiniteMixture(response, np.ones((response.size, 1)), components=3)
    rng = np.random.default_rng(1)
    return np.array([model.predict(theta, rng) for _ in range(releases)])


def test_labels_have_their_probabilities_and_responses_their_components():
    found = drawn(np.zeros(20), 4_000)[:, :3]
    upper = found > 4.0
    errors = np.sqrt(0.1 * 0.9 / 4_000) + 1e-4
    assert np.all(np.abs(upper.mean(axis=0) - 0.1) < 4.0 * errors)
    for k, here in enumerate([~upper, upper]):
        values = found[here]
        assert abs(values.mean() - CENTRES[k]) < 4.0 * SIGMA[k] / np.sqrt(values.size)
        assert values.std() == pytest.approx(SIGMA[k], rel=0.1)


def test_a_release_looks_at_no_response():
    # an outlying record is like any other
    one, other = (drawn(y, 3) for y in (np.r_[8.2, np.zeros(19)], np.zeros(20)))
    assert np.array_equal(one, other)
