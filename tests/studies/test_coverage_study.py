"""The coverage study, against closed forms and against the library's own mechanism."""

import dataclasses
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import ppm
from ppm.studies import coverage_study
from ppm.studies.coverage_study import Counts, Regression, least_squares, quantile_and_variance

SIZE = 200


@pytest.fixture(scope="module")
def regression():
    return ppm.studies.coverage("regression", [SIZE], replicates=2000, draws=10, random_seed=5)


@pytest.fixture(scope="module")
def counts():
    return ppm.studies.coverage("counts", [SIZE], replicates=120, draws=30, random_seed=5)


def row(study, quantity, mechanism, rule):
    return study.table([rule]).loc[(quantity, SIZE, mechanism, rule)]


def near(found, exact, *, errors=3.5):
    return abs(found["coverage"] - exact) <= errors * found["Monte Carlo error"]


def covers(ratio):
    """Coverage of a nominal 95 % interval whose variance is too small by a factor."""
    return 2 * stats.norm.cdf(stats.norm.ppf(0.975) / math.sqrt(ratio)) - 1


# ---- theory --------------------------------------------------------------------------------------


def test_one_release_taken_for_real_covers_as_often_as_theory_says(regression):
    weight = regression.dataset["weight"].sel(mechanism="Constant").values[0, 0]
    assert 0.2 < weight < 0.7
    # variances over what the analyst takes them for: data, posterior, records
    exact = {
        # half of the variance of y is the predictor's, which is not drawn anew
        "mean": {"Plug-in": 1.5, "Unweighted": 2.0, "Constant": 1 + (1 / weight + 1) / 2},
        "coefficient": {"Plug-in": 2.0, "Unweighted": 3.0, "Constant": 2 + 1 / weight},
    }
    for quantity, ratios in exact.items():
        for mechanism, ratio in ratios.items():
            found = row(regression, quantity, mechanism, "one release as real")
            assert near(found, covers(ratio)), (quantity, mechanism)
            # a variance of a third less would be seen
            assert not near(found, covers(0.7 * ratio)), (quantity, mechanism)


@pytest.mark.parametrize("quantity", ["mean", "coefficient"])
@pytest.mark.parametrize("mechanism", ["Plug-in", "Unweighted", "EMweighted", "Constant"])
def test_the_rule_for_partially_synthetic_data_is_right(regression, quantity, mechanism):
    found = row(regression, quantity, mechanism, "partially synthetic")
    assert abs(found["coverage"] - 0.95) < 0.02
    assert abs(found["variance ratio"] - 1) < 0.12


def test_other_rules_are_wrong_where_theory_says_so(regression):
    weight = regression.dataset["weight"].sel(mechanism="Constant").values[0, 0]

    def ratio(quantity, mechanism, rule):
        return row(regression, quantity, mechanism, rule)["variance ratio"]

    truth = 1 + (1 + 1 / weight) / 5
    assert ratio("coefficient", "Constant", "parameter drawn") == pytest.approx(
        (1 + 2 / 5) / truth, rel=0.12
    )
    assert ratio("coefficient", "Constant", "fully synthetic") > 1.4
    assert ratio("coefficient", "Unweighted", "parameter drawn") == pytest.approx(1, abs=0.1)
    assert ratio("coefficient", "Unweighted", "parameter fixed") < 0.92
    assert ratio("coefficient", "Plug-in", "parameter fixed") == pytest.approx(1, abs=0.1)
    assert ratio("coefficient", "Constant", "one release, weight known") == pytest.approx(
        1, abs=0.1
    )


def test_the_papers_weights_move_a_quantile_and_no_rule_knows(regression):
    rules = ["partially synthetic", "parameter drawn"]
    table = regression.table(rules)["coverage"].unstack("mechanism").loc["90th percentile"]
    # the sample percentile is less efficient than the model, which makes the rule cautious
    assert (table[["Unweighted", "EMweighted", "Constant"]] > 0.95).all(axis=None)
    assert (table["DPweighted"] < table["EMweighted"] - 0.02).all()
    bias = regression.table(rules)["bias"].unstack("mechanism").loc["90th percentile"]
    assert (bias["DPweighted"] < -0.08).all() and (bias["Unweighted"].abs() < 0.03).all()


def test_the_error_of_a_ratio_is_how_far_it_scatters(regression):
    parts = [
        dataclasses.replace(regression, dataset=regression.dataset.isel(replicate=part))
        for part in np.arange(2000).reshape(20, 100)
    ]
    tables = pd.concat([part.table(["partially synthetic"]) for part in parts])
    by_row = tables.groupby(["quantity", "mechanism"])
    scatter = by_row["variance ratio"].std() / by_row["error of the ratio"].mean()
    # a standard deviation of 20 ratios is itself off by a sixth
    assert scatter.mean() == pytest.approx(1, abs=0.2) and scatter.between(0.6, 1.5).all()


# ---- the study is the mechanism ------------------------------------------------------------------


@pytest.fixture(scope="module")
def example():
    rng = np.random.default_rng(2)
    values, predictor = Regression().simulate(3, 60, rng)
    return values, predictor, rng.uniform(0.1, 1, (3, 60))


def test_the_regressions_pseudo_posterior_is_prior_times_weighted_likelihood(example):
    values, predictor, weights = example
    model = Regression()
    centre, precision, shape, rate = model.posterior(values, predictor, weights)
    coefficients = centre[:, None, :] + [[0.0, 0.0], [0.3, -0.2], [-0.1, 0.5]]
    variance = np.array([0.7, 1.0, 1.6]) * np.ones((3, 3))

    def log_density(centre, precision, shape, rate):
        off = coefficients - centre[:, None, :]
        squares = np.einsum("rsi,rij,rsj->rs", off, precision, off)
        return (
            stats.invgamma(shape[:, None], scale=rate[:, None]).logpdf(variance)
            - np.log(variance) - squares / (2 * variance)
        )

    terms = model.log_likelihood(
        values, predictor, (coefficients[..., 0], coefficients[..., 1], variance)
    )
    prior = log_density(
        np.zeros((3, 2)), 0.001 * np.eye(2) * np.ones((3, 1, 1)),
        np.full(3, 0.001), np.full(3, 0.001),
    )
    difference = log_density(centre, precision, shape, rate) - prior - (
        weights[:, None, :] * terms
    ).sum(axis=2)
    # a constant of the database, whatever the parameters
    assert np.allclose(difference, difference[:, :1])


def test_draws_have_the_pseudo_posteriors_moments(example):
    values, predictor, weights = example
    model, draws = Regression(), 40_000
    centre, precision, shape, rate = model.posterior(values, predictor, weights)
    *coefficients, variance = model.posterior_draws(
        values, predictor, weights, draws, np.random.default_rng(3)
    )
    expected = rate / (shape - 1)
    assert np.allclose(variance.mean(axis=1), expected, rtol=0.02)
    for place in range(3):
        covariance = expected[place] * np.linalg.inv(precision[place])
        found = np.cov(coefficients[0][place], coefficients[1][place])
        assert np.allclose(found, covariance, atol=0.05 * covariance.diagonal().max())
        assert np.allclose([part[place].mean() for part in coefficients], centre[place], atol=0.01)


def test_bounds_and_weights_are_those_of_the_library(monkeypatch):
    seen = {}
    model = Counts()
    rng = np.random.default_rng(4)
    values, _ = model.simulate(2, SIZE, rng)
    parameters = model.posterior_draws(values, None, np.ones(values.shape), 50, rng)
    bounds = model.bounds(values, None, parameters)
    log_lik = model.log_likelihood(values, None, parameters)
    for place in range(2):
        assert np.allclose(bounds[place], ppm.record_bounds(log_lik[place]))
    plain = coverage_study.linear_weights

    def noted(bounds, *ends, **settings):
        seen["bounds"], seen["weights"] = bounds, plain(bounds, *ends, **settings)
        return seen["weights"]

    def products(values, weights):
        seen["of DPweighted"] = ppm.lipschitz.weighted(values, weights)
        return seen["of DPweighted"]

    monkeypatch.setattr(coverage_study, "linear_weights", noted)
    monkeypatch.setattr(coverage_study, "weighted", products)
    study = ppm.studies.coverage(
        "regression", [50], replicates=4, draws=20, scale=0.6, shift=-0.1, random_seed=1
    )
    # times the largest bound of Unweighted it is that of DPweighted
    scalar = study.dataset["weight"].sel(mechanism="EMweighted", size=50)
    largest = seen["of DPweighted"].max(axis=1)
    assert np.allclose(scalar * seen["bounds"].max(axis=1), largest) and scalar.max() < 1
    for bounds, weights in zip(seen["bounds"], seen["weights"], strict=True):
        assert np.allclose(weights, ppm.record_weights(bounds, scale=0.6, shift=-0.1))


def test_limits_wide_enough_to_cut_nothing_leave_the_pseudo_posterior_as_it_is():
    model = Counts()
    values = np.random.default_rng(6).poisson(100.0, (1, SIZE)).astype(float)
    rng = np.random.default_rng(7)
    limits = ppm.Censoring(-500.0, 0.0, smooth=False)
    (free,) = model.limited_draws(values, 0.3, limits, 4000, rng)
    exact = ppm.GammaPoisson(values[0].astype(int)).posterior(np.full(SIZE, 0.3))
    assert stats.kstest(free[0], exact.cdf).pvalue > 0.001
    (cut,) = model.limited_draws(values, 0.3, ppm.Censoring(-1.3, -1.0, smooth=False), 4000, rng)
    assert stats.kstest(cut[0], exact.cdf).pvalue < 1e-6


def test_limits_are_only_where_they_can_be_computed(regression, counts):
    assert "Limits" in counts.dataset["mechanism"] and counts.releases == 5
    assert "Limits" not in regression.dataset["mechanism"]
    weight = counts.dataset["weight"].squeeze("size")
    assert (weight.sel(mechanism="Limits") == weight.sel(mechanism="Constant")).all()
    table = counts.table()["coverage"].unstack("rule")
    assert not table["partially synthetic"].isna().any()
    without = table["one release, weight known"].isna().groupby("mechanism").all()
    assert set(without.index[without]) == {"Plug-in", "DPweighted", "EMweighted"}
    assert (table["partially synthetic"] > 0.85).all()
    real = table["one release as real"].loc["mean"].droplevel("size")
    assert real["Limits"] < 0.8


# ---- what the recipient computes -----------------------------------------------------------------


def test_the_analysts_regression_is_that_of_a_textbook(example):
    values, predictor, _ = example
    intercept, slope, variance, _ = least_squares(values, predictor)
    for place in range(3):
        known = stats.linregress(predictor[place], values[place])
        assert np.allclose(
            [intercept[place], slope[place], variance[place]],
            [known.intercept, known.slope, known.stderr**2],
        )


def test_woodruffs_variance_is_that_of_the_percentile():
    rng = np.random.default_rng(8)
    estimate, variance = quantile_and_variance(rng.standard_normal((4000, 400)), 0.9)
    assert estimate.var() == pytest.approx(variance.mean(), rel=0.1)
    asymptotic = 0.09 / stats.norm.pdf(stats.norm.ppf(0.9)) ** 2 / 400
    assert variance.mean() == pytest.approx(asymptotic, rel=0.1)


def test_the_truth_is_that_of_the_model():
    rng = np.random.default_rng(9)
    for model in (Regression(), Counts()):
        values, predictor = model.simulate(1, 400_000, rng)
        estimates, variances = model.analyse(values[:, None, :], predictor)
        off = estimates[:, 0, 0] - list(model.truth.values())
        assert (np.abs(off) < 3.5 * np.sqrt(variances[:, 0, 0])).all()


# ---- seeds and bad input -------------------------------------------------------------------------


def test_the_seed_decides_and_not_the_other_sizes(monkeypatch):
    settings = dict(replicates=7, draws=10, random_seed=3)
    both = ppm.studies.coverage("counts", [50, 60], **settings).dataset
    alone = ppm.studies.coverage("counts", [60], **settings).dataset
    assert both.sel(size=[60]).equals(alone)
    other = ppm.studies.coverage("counts", [60], **settings | {"random_seed": 4}).dataset
    assert not np.allclose(other["estimate"], alone["estimate"])


def test_a_size_that_fails_is_a_row_and_the_others_keep_their_names(monkeypatch):
    real = coverage_study._one_size

    def fails_with_60(task):
        if task.n == 60:
            raise ArithmeticError
        return real(task)

    settings = dict(replicates=3, draws=10, random_seed=3)
    plain = ppm.studies.coverage("counts", [50, 60, 70], **settings).dataset
    monkeypatch.setattr(coverage_study, "_one_size", fails_with_60)
    with ThreadPoolExecutor(1) as executor:
        found = ppm.studies.coverage("counts", [50, 60, 70], executor=executor, **settings)
    assert found.failures["size"].tolist() == [60]
    assert found.dataset.equals(plain.sel(size=[50, 70]))


@pytest.mark.parametrize("model", ["counts", "regression"])
def test_databases_are_the_same_whatever_is_drawn_from_them(model, monkeypatch):
    databases = {}
    work = coverage_study.MODELS[model]
    plain = work.estimate

    def noted(self, values, predictor):
        databases.setdefault(group, []).append(values)
        return plain(self, values, predictor)

    monkeypatch.setattr(work, "estimate", noted)
    for group in (7, 2):
        # so many databases are worked on at once
        monkeypatch.setattr(coverage_study, "_CHUNK", 60 * 10 * group)
        study = ppm.studies.coverage(model, [60], replicates=7, draws=10, random_seed=3)
        assert study.table()["coverage"].notna().all()
    assert [len(part) for part in databases[2]] == [2, 2, 2, 1]
    assert np.array_equal(np.concatenate(databases[7]), np.concatenate(databases[2]))


def test_limits_make_the_centre_vary_by_more_than_the_same_weight_alone():
    """Its variance by the pull of one more record, over that of real records' mean and share."""
    law, counts = stats.poisson(100), Counts()
    values = np.arange(72, 132)
    chance = law.pmf(values) / law.pmf(values).sum()
    usual = law.ppf((np.arange(400) + 0.5) / 400).astype(np.int64)
    above = law.sf(counts.threshold)
    # the share moves with the mean by the probability of the threshold itself
    efficiency = law.pmf(counts.threshold) ** 2 * law.var() / (above * (1 - above))

    def of_the_mean(limits):
        def centre(records):
            model = ppm.GammaPoisson(records, shape=counts.shape, rate=counts.rate)
            return model.posterior(np.full(records.size, 0.38), censor=limits).mean()

        start = centre(usual)
        pull = (usual.size + 1) * np.array([
            centre(np.append(usual, value)) - start for value in values
        ])
        return chance @ (pull - chance @ pull) ** 2 / law.var()

    alone, limited = of_the_mean(None), of_the_mean(ppm.Censoring(-2.23, -1.23, smooth=False))
    assert alone == pytest.approx(1, abs=0.05) and limited > 1.08
    # of a share real records tell less than the model, with limits or without
    assert limited * efficiency < 0.5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "normal"}, "model must be one of counts, regression; got 'normal'"),
        ({"sizes": [10]}, "sizes must be a whole number of at least 50"),
        ({"sizes": [200, 100]}, "sizes must increase"),
        ({"replicates": 1}, "replicates must be"),
        ({"releases": 1}, "releases must be"),
        ({"draws": 1}, "draws must be"),
        ({"scale": 0}, "scale must be"),
        ({"width": 0}, "width must be"),
        ({"confidence": 95}, "confidence must be"),
        ({"random_seed": -1}, "random_seed must be"),
    ],
    ids=str,
)
def test_settings_out_of_range_are_refused_before_anything_is_drawn(change, message, monkeypatch):
    monkeypatch.setattr(coverage_study, "_one_size", None)
    with pytest.raises(ValueError, match=message):
        ppm.studies.coverage(**{"model": "counts", "sizes": [100]} | change)


def test_an_unknown_rule_is_refused(counts):
    with pytest.raises(ValueError, match="rules must be among one release as real, .*'rubin'"):
        counts.table(["rubin"])
