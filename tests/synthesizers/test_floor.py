"""A point mass at the smallest response: its posterior on a grid, and files with many zeros."""

from types import SimpleNamespace

import arviz as az
import numpy as np
import pytest
import xarray as xr
from scipy import stats
from scipy.special import expit, log_expit
from survey_files import csv_text, unit

import ppm
from ppm.synthesizers.mixture import floor as floor_module
from ppm.synthesizers.mixture.floor import Floor, FloorJob, FloorRegression
from ppm.synthesizers.mixture.model import FiniteMixture
from ppm_book import survey

FLOOR = -2.0


def floored(records=45, seed=3):
    """Records of which a third, those with large x, are at the floor."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(records), rng.standard_normal(records)])
    y = X @ [1.0, -0.5] + 0.6 * rng.standard_normal(records)
    at = rng.random(records) < expit(X @ [-1.0, 1.5])
    return np.where(at, FLOOR, np.maximum(y, FLOOR + 0.1)), X, at


Y, X, AT = floored()
# records at the floor count for less, so that leaving their weights out moves the posterior
WEIGHTS = np.where(AT, 0.3, 0.9) * np.random.default_rng(1).uniform(0.2, 1.0, Y.size)
WEIGHTS[[0, 7, 20]] = 0.0


def mixture(**settings):
    settings = {"components": 2, "warmup": 50, "parallel": False, "floor": FLOOR} | settings
    return FiniteMixture(Y, X, **settings)


# ---- the posterior ----------------------------------------------------------------------------

GRID = np.stack(np.meshgrid(*2 * [np.linspace(-11.0, 11.0, 881)], indexing="ij"), axis=-1)
QUANTITIES = {
    "intercept": lambda gamma: gamma[..., 0],
    "slope": lambda gamma: gamma[..., 1],
    "intercept squared": lambda gamma: gamma[..., 0] ** 2,
    "slope squared": lambda gamma: gamma[..., 1] ** 2,
    "product": lambda gamma: gamma[..., 0] * gamma[..., 1],
    "chance of the first": lambda gamma: expit(gamma @ X[0]),
    "upper tail": lambda gamma: (gamma[..., 1] > 2.5).astype(float),
}


def expectations(weights, scale=2.5):
    """Means of the quantities under the pseudo posterior of γ, summed over a grid."""
    log_density = stats.norm.logpdf(GRID / scale).sum(axis=-1)
    for weight, x, at in zip(weights, X, AT, strict=True):
        log_density += weight * log_expit((1.0 if at else -1.0) * (GRID @ x))
    density = np.exp(log_density - log_density.max())
    density /= density.sum()
    return {name: (density * function(GRID)).sum() for name, function in QUANTITIES.items()}


def largest_score(gamma, expected):
    """Largest distance of a mean from its expectation, in Monte Carlo errors."""
    scores = []
    for name, function in QUANTITIES.items():
        values = function(gamma)
        error = float(az.mcse(xr.Dataset({"x": (("chain", "draw"), values)}))["x"])
        # a quantity that is the same in all draws has no error
        scores.append(abs(values.mean() - expected[name]) / max(error, 1e-3))
    return max(scores)


def draws(**settings):
    fit = mixture(warmup=100, components=1, **settings).fit(WEIGHTS, draws=2500, random_seed=5)
    return fit["posterior"]["floor_coefficients"].values


@pytest.mark.parametrize("scale", [2.5, 0.4])
def test_the_draws_are_those_of_the_pseudo_posterior_summed_over_a_grid(scale):
    gamma = draws(floor_coefficient_scale=scale)
    assert largest_score(gamma, expectations(WEIGHTS, scale)) < 4.0
    # with all records counted once, or with the other prior, it is another posterior
    assert largest_score(gamma, expectations(np.ones(Y.size), scale)) > 10.0
    assert largest_score(gamma, expectations(WEIGHTS, 2.9 - scale)) > 10.0


def without_weights(self, floor, predictors, weights, rng):
    original(self, floor, predictors, np.ones(len(weights)), rng)


def one_weight_for_all(self, floor, predictors, weights, rng):
    original(self, floor, predictors, np.full(len(weights), weights.mean()), rng)


def other_side(self, floor, predictors, weights, rng):
    original(self, SimpleNamespace(signs=-floor.signs, scale=floor.scale), predictors, weights, rng)


original = FloorRegression.__init__


@pytest.mark.parametrize("broken", [without_weights, one_weight_for_all, other_side])
def test_a_floor_part_that_drops_the_weights_or_turns_sides_is_found(monkeypatch, broken):
    monkeypatch.setattr(FloorRegression, "__init__", broken)
    assert largest_score(draws(), expectations(WEIGHTS)) > 8.0


def test_without_information_the_prior_comes_back():
    nobody = FloorRegression(
        Floor(FLOOR, AT, 2.5), X, np.zeros(Y.size), np.random.default_rng(1)
    )
    gamma = []
    for _ in range(4000):
        nobody.sweep()
        gamma.append(nobody.coefficients)
    assert stats.kstest(np.ravel(gamma[::2]) / 2.5, "norm").pvalue > 1e-3


def test_the_mixture_is_that_of_the_records_above_the_floor():
    fit = mixture().fit(WEIGHTS, draws=30, random_seed=4)
    alone = FiniteMixture(Y[~AT], X[~AT], components=2, warmup=50, parallel=False)
    above = alone.fit(WEIGHTS[~AT], draws=30, random_seed=4)
    for name in above["posterior"].data_vars:
        np.testing.assert_array_equal(fit["posterior"][name], above["posterior"][name])


# ---- calibration ------------------------------------------------------------------------------


def change_over_sweeps(weight=1.0, replicates=300):
    """Mean change of functions of γ and the data over some sweeps, in standard errors.

    γ comes from its prior and the data from γ, so that γ is a draw of the posterior: sweeps that
    leave that as it is change no mean, however slowly they move.
    """
    rng = np.random.default_rng(2)
    changes = []
    for _ in range(replicates):
        gamma = 1.5 * rng.standard_normal(2)
        at = rng.random(Y.size) < expit(X @ gamma)
        floor = Floor(FLOOR, at, 1.5)
        sampler = FloorRegression(floor, X, np.full(Y.size, weight), rng)
        sampler.move_to(gamma)
        np.testing.assert_allclose(sampler.coefficients, gamma)
        for _ in range(3):
            sampler.sweep()
        before, after = (
            [*g, g[0] * g[1], g @ g, log_expit(floor.signs * (X @ g)).sum(), g[1] * at.mean()]
            for g in (gamma, sampler.coefficients)
        )
        changes.append(np.subtract(after, before))
    changes = np.array(changes)
    return np.abs(changes.mean(axis=0) / (changes.std(axis=0, ddof=1) / replicates**0.5)).max()


def test_coefficients_and_data_keep_their_joint_distribution():
    assert change_over_sweeps() < 4.0


def test_a_record_that_counts_for_less_would_not_keep_it():
    assert change_over_sweeps(weight=0.5) > 5.0


# ---- log-likelihood and predictions -----------------------------------------------------------


@pytest.fixture(scope="module")
def fitted():
    model = mixture(chains=2)
    return model, model.fit(WEIGHTS, draws=60, random_seed=7)


def test_the_log_likelihood_is_a_probability_at_the_floor_and_a_density_above(fitted):
    model, fit = fitted
    log_lik, posterior = model.log_likelihood(fit), fit["posterior"]
    assert log_lik.shape == (2, 60, Y.size)
    for chain, draw in ((0, 0), (1, 59)):
        at = {"chain": chain, "draw": draw}
        chance = expit(X @ posterior["floor_coefficients"][at].values)
        density = stats.norm.pdf(
            Y[:, None], X @ posterior["beta"][at].values.T, posterior["sigma"][at].values
        ) @ posterior["pi"][at].values
        # also for records of weight 0
        expected = np.where(AT, chance, (1.0 - chance) * density)
        np.testing.assert_allclose(log_lik[at], np.log(expected), rtol=1e-9)
    assert log_lik.values[..., AT].max() <= 0.0
    np.testing.assert_allclose(
        fit["sample_stats"]["weighted_log_likelihood"], log_lik.values @ WEIGHTS, rtol=1e-12
    )


def known(chance):
    """A fit with one known draw, in which records with x = 1 are at the floor by chance."""
    slope = np.log(chance / (1.0 - chance)) + 50.0
    posterior = {
        "pi": (("component",), [0.3, 0.7]),
        "beta": (("component", "predictor"), [[4.0, 0.0], [6.0, 0.0]]),
        "sigma": (("component",), [0.1, 0.1]),
        # next to nobody with x = 0
        "floor_coefficients": (("predictor",), [-50.0, slope]),
    }
    posterior = {
        name: (("chain", "draw", *dims), np.asarray(values)[None, None])
        for name, (dims, values) in posterior.items()
    }
    return xr.DataTree.from_dict({"posterior": xr.Dataset(posterior)})


def test_predictions_are_at_the_floor_with_the_records_own_probability():
    here = np.repeat([0.0, 1.0], 50)
    response = np.where(np.arange(100) % 4 == 0, FLOOR, 5.0 + 0.01 * np.arange(100))
    model = FiniteMixture(response, np.column_stack([np.ones(100), here]), floor=FLOOR)
    synthetic = model.predict(known(0.25), releases=400, random_seed=1).values
    reached = synthetic == FLOOR
    assert not reached[:, here == 0].any()
    assert reached[:, here == 1].mean() == pytest.approx(0.25, abs=0.015)
    # all others come from the mixture
    others = synthetic[~reached]
    assert others.min() > 3.0 and (others < 5.0).mean() == pytest.approx(0.3, abs=0.02)
    # not the record's own side, which the full conditional would copy
    own = response == FLOOR
    assert reached[:, own & (here == 1)].mean() == pytest.approx(0.25, abs=0.03)
    copied = model.predict(known(0.25), releases=3, random_seed=1, labels="conditional").values
    assert np.all((copied == FLOOR) == own)


def test_releases_of_the_mechanism_hold_the_floor_about_as_often_as_the_data(fitted):
    model, fit = fitted
    synthetic = model.predict(fit, releases=200, random_seed=3).values
    chance = expit(X @ fit["posterior"]["floor_coefficients"].values.reshape(-1, 2).T)
    assert (synthetic == FLOOR).mean() == pytest.approx(chance.mean(), abs=0.02)
    for side in (X[:, 1] > 0.5, X[:, 1] < -0.5):
        assert (synthetic[:, side] == FLOOR).mean() == pytest.approx(
            chance[side].mean(), abs=0.03
        )


# ---- a chain's bookkeeping --------------------------------------------------------------------


def test_chains_repeat_in_processes_and_differ_from_each_other(fitted):
    model, fit = fitted
    xr.testing.assert_identical(
        mixture(parallel=True).fit(WEIGHTS, draws=60, random_seed=7), fit
    )
    gamma = fit["posterior"]["floor_coefficients"].values
    assert not np.array_equal(gamma[0], gamma[1])
    assert np.unique(gamma[0, :, 0]).size == 60


def test_chains_start_apart_and_go_on_where_a_fit_ended(fitted):
    model, fit = fitted
    started = [
        FloorRegression(model.floor, X, WEIGHTS, np.random.default_rng(seed)).coefficients
        for seed in range(200)
    ]
    spread = fit["posterior"]["floor_coefficients"].values.reshape(-1, 2).std(axis=0)
    assert np.all(np.std(started, axis=0) > 1.2 * spread)
    jobs = []

    class Noted(FloorJob):
        def extend(self, chain, warmup):
            jobs.append((self, warmup))
            super().extend(chain, warmup)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ppm.synthesizers.mixture.model.FloorJob", Noted)
        mixture(warmup=0).fit(WEIGHTS, draws=2, random_seed=1, initial=fit)
    last = fit["posterior"]["floor_coefficients"].values[:, -1]
    np.testing.assert_array_equal([job.start for job, _ in jobs], last)
    assert [warmup for _, warmup in jobs] == [0, 0]
    with pytest.raises(ValueError, match="^initial must be .*, with a floor"):
        plain = FiniteMixture(Y + AT * np.arange(Y.size), X, components=2, warmup=5)
        mixture().fit(initial=plain.fit(draws=2, random_seed=1))


def test_another_floor_is_another_model():
    told = [mixture(**changes).fingerprint()["floor"] for changes in ({}, {"floor": None})]
    assert told[1] is None and told[0].value == FLOOR
    np.testing.assert_array_equal(told[0].reached, AT)


@pytest.mark.parametrize("dollars", [1.0, 0.01, 7.0, 1000.0, 12345.678])
def test_the_logarithm_of_a_floor_is_found_whatever_way_it_was_computed(dollars):
    data = survey.simulate(300, random_seed=2)
    data.table.loc[:40, "income"] = 0.0
    response, count = survey.log_income(data, dollars)
    predictors, _ = survey.predictor_matrix(data)
    model = FiniteMixture(response, predictors, floor=np.log(dollars))
    at = model.floor.reached
    np.testing.assert_array_equal(at, data.table["income"] <= dollars)
    assert at.sum() >= count >= 41


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"floor": FLOOR + 0.5}, f"^floor must be the smallest .*; {AT.sum()} of 45 records lie"),
        ({"floor": np.nan}, "^floor must be a finite number"),
        ({"floor": "low"}, "^floor must be a finite number"),
        ({"floor_coefficient_scale": 0.0}, "^floor_coefficient_scale must be"),
        ({"floor_coefficient_scale": 1e9}, "^floor_coefficient_scale must be .* at most 100"),
    ],
)
def test_wrong_floors_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        mixture(**changes)


def test_a_floor_with_everybody_at_it_is_refused_and_one_with_nobody_is_not():
    with pytest.raises(ValueError, match="^floor must leave records above it"):
        FiniteMixture(np.full(9, 1.0), np.ones((9, 1)), floor=1.0)
    model = mixture(floor=FLOOR - 10.0)
    fit = model.fit(draws=100, random_seed=1)
    # 45 records, none of them there
    assert (model.predict(fit, releases=50, random_seed=1) < FLOOR - 5.0).mean() < 0.05


# ---- a file with zeros ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def households(tmp_path_factory):
    """A file as the Bureau's, of 240 households of which 13 % have no income."""
    rng = np.random.default_rng(8)
    earns = rng.random(240) < 0.7
    chance = np.where(earns, 0.06, 0.30)
    zero = np.argsort(rng.random(240) / chance)[:31]
    income = np.exp(rng.normal(10.4, 0.9, 240)) * np.where(earns, 1.6, 0.7)
    income[zero] = rng.choice([0.0, 0.0, -250.0], 31)
    rows = [
        unit(
            number, EARNCOMP="1" if works else "8", AGE_REF=str(rng.integers(20, 90)),
            SEX_REF=str(rng.integers(1, 3)), FINCBTXM=f"{dollars:.0f}",
        )
        for number, (works, dollars) in enumerate(zip(earns, income, strict=True), start=1)
    ]
    path = tmp_path_factory.mktemp("ce") / "fmli171x.csv"
    path.write_text(csv_text(*rows))
    return survey.load(path)


SHORT = {"components": 3, "warmup": 60, "parallel": False}


def model_of(data, **settings):
    response, count = survey.log_income(data, 1.0)
    assert count == data.nonpositive == 31
    predictors, _ = survey.predictor_matrix(data)
    return FiniteMixture(response, predictors, **SHORT | settings)


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_without_a_floor_a_component_collapses_and_the_remedy_is_named(households, seed):
    with pytest.raises(RuntimeError) as refusal:
        model_of(households, warmup=1000).fit(draws=10, random_seed=seed)
    text = str(refusal.value)
    assert "\n" not in text and "collapsed" in text and "floor= gives them a probability" in text
    assert "point_mass=true" in text
    # where there is one already, or nothing has collapsed, another sentence is right
    for changes, words in (
        ({"floor": 0.0}, "records that agree in response and predictors can do that$"),
        ({}, "floor="),
    ):
        model = FiniteMixture(
            np.where(np.arange(60) < 20, 0.0, 1.0), np.ones((60, 1)), **SHORT, **changes
        )
        with pytest.raises(RuntimeError, match=words):
            model.fit(draws=10, random_seed=seed)


def test_columns_of_very_different_size_are_not_called_a_collapse():
    rng = np.random.default_rng(1)
    model = FiniteMixture(
        rng.normal(size=40), rng.normal(size=(40, 2)) * [1.0, 0.0], components=2, warmup=50,
        parallel=False,
    )
    # beyond what the constructor takes: a pivot that is 0 whichever way a processor rounds
    model.prior.coefficient_scale[:] = np.inf
    with pytest.raises(RuntimeError, match="covariance of the coefficients is singular"):
        model.fit(draws=10, random_seed=1)


def test_a_file_with_zeros_runs_from_end_to_end(households):
    model = model_of(households, floor=np.log(1.0))
    share = model.floor.reached.mean()
    assert share == pytest.approx(31 / 240)
    result = ppm.PseudoPosteriorMechanism(model, scale=0.7).run(
        draws=150, random_seed=1, allow_disagreement=True
    )
    assert np.isfinite(result.local_bound) and result.diagnostics.r_hat < 1.2
    released = result.synthesize(40, random_seed=2).values
    assert (released == 0.0).mean() == pytest.approx(share, abs=0.04)
    earns = (households.table["earner"] == "earns").to_numpy()
    ratio = (released[:, ~earns] == 0.0).mean() / (released[:, earns] == 0.0).mean()
    assert 1.5 < ratio < 15.0  # 5 in the file


def test_few_warm_up_sweeps_are_enough_for_this_part():
    assert floor_module._WARMUP == 100
    # three predictors nobody at the floor has: the tail of the posterior is the prior's
    rng = np.random.default_rng(6)
    groups = np.repeat(np.arange(4), 60)
    predictors = np.column_stack([np.ones(240), *(groups == k for k in (1, 2, 3))]).astype(float)
    at = (groups == 0) & (rng.random(240) < 0.4)
    sampler = FloorRegression(Floor(0.0, at, 2.5), predictors, np.full(240, 0.6), rng)
    for _ in range(10):
        sampler.sweep()
    gamma = []
    for _ in range(600):
        sampler.sweep()
        gamma.append(sampler.coefficients)
    drawn = xr.Dataset({"gamma": (("chain", "draw", "place"), np.array(gamma)[None])})
    assert float(az.ess(drawn)["gamma"].min()) > 150
