"""The fast study against the mechanism run database by database, and against the paper."""

import numpy as np
import pytest
from scipy import stats

import ppm
from ppm.studies import contraction_study as contraction


@pytest.fixture(scope="module")
def study():
    return ppm.studies.contraction(random_seed=2022)


def bounds(study, mechanism):
    return study.dataset["local_bound"].sel(mechanism=mechanism)


def test_tabulated_bounds_equal_those_of_the_full_matrix():
    """One group of databases by hand: same draws, but every record and every draw."""
    counts = np.random.default_rng(1).poisson(100, size=(5, 300))
    values, table = contraction._tabulate(counts)
    assert np.array_equal(table @ values, counts.sum(axis=1))

    def streams():
        return [np.random.default_rng(seed) for seed in (10, 20, 30)]

    fast = contraction._bounds_of_tables(values, table, 3.5, 200, (0.001, 0.001), streams())
    rngs = streams()
    for place, database in enumerate(counts):
        synthesizer = ppm.GammaPoisson(database)
        ones = np.ones(database.size)
        for row, truncate_at in enumerate((None, None, 3.5)):
            if row == 0:
                weights = ones
                before = _matrix(synthesizer, weights, rngs[0])
                log_lik = before
            else:
                weights = ppm.record_weights(ppm.record_bounds(before), truncate_at=truncate_at)
                log_lik = _matrix(synthesizer, weights, rngs[row])
            assert fast[0, row, place] == pytest.approx(ppm.local_bound(log_lik, weights))
            assert fast[2, row, place] == np.sum(weights == 0)
        # a bound without its weights is another number
        assert fast[0, 2, place] != pytest.approx(ppm.local_bound(log_lik))


def _matrix(synthesizer, weights, rng):
    shape = synthesizer.shape + weights @ synthesizer.counts
    rate = synthesizer.rate + weights.sum()
    mu = rng.standard_gamma(shape, size=200) / rate
    return contraction.log_likelihood_of_counts(synthesizer.counts, mu[:, None])


def test_unweighted_bounds_drift_upward_with_n(study):
    medians = bounds(study, "Unweighted").median("replicate").values
    assert np.allclose(medians, [7.6, 8.7, 9.7, 11.0], atol=0.35)
    assert np.all(np.diff(medians) > 0.5)


def test_weighted_bounds_drift_far_less(study):
    medians = bounds(study, "Weighted").median("replicate").values
    assert np.all((medians > 3.3) & (medians < 4.0))
    drift = bounds(study, "Unweighted").median("replicate").values
    assert np.ptp(medians) < 0.25 * np.ptp(drift)


def test_truncated_bounds_contract_onto_m_and_pass_it_slightly(study):
    truncated = bounds(study, "Weighted-M")
    at_6400 = truncated.sel(size=6400).values
    assert np.quantile(np.abs(at_6400 - 3.5), 0.95) < 0.08
    assert 0 < truncated.max() - 3.5 < 0.6 and at_6400.max() > 3.5
    spread = truncated.max("replicate") - truncated.min("replicate")
    assert np.all(np.diff(spread.values) < 0)
    # without truncation the spread does not close like this: the check can fail
    weighted = bounds(study, "Weighted")
    assert (weighted.max("replicate") - weighted.min("replicate")).values[-1] > 5 * spread[-1]


def test_a_threshold_below_every_records_bound_leaves_the_extreme_ones_and_holds_nothing():
    """No |log p| of a count is below half the logarithm of 2πμ: M has to lie above that."""
    least = 0.5 * np.log(2 * np.pi * 100)
    spread, removed = {}, {}
    for limit in (2.5, 3.3):
        found = ppm.studies.contraction(
            [1600], replicates=60, truncate_at=limit, draws=100, random_seed=1
        )
        truncated = bounds(found, "Weighted-M").sel(size=1600)
        spread[limit] = truncated.quantile(0.9) - truncated.quantile(0.1)
        gone = found.dataset["records_removed"].sel(mechanism="Weighted-M")
        removed[limit] = gone.mean() / 1600
        assert (truncated.median() < 1.05 * limit) == (limit > least)
    assert removed[2.5] > 0.98 and removed[3.3] < 0.8
    assert spread[2.5] > 10 * spread[3.3]


def test_truncation_costs_utility_that_grows_with_n(study):
    average = study.dataset["average_mean"].mean("replicate")
    distance = np.abs(average.sel(mechanism="Weighted-M") - average.sel(mechanism="Unweighted"))
    standard_error = np.sqrt(100 / study.dataset["size"])
    assert np.all(np.diff(distance / standard_error) > 0)
    removed = study.dataset["records_removed"].mean("replicate").sel(mechanism="Weighted-M")
    assert np.all(np.diff(removed / study.dataset["size"]) > 0)


def held(study):
    """The bounds of every mechanism and size, one array each."""
    bound = study.dataset["local_bound"]
    for mechanism in bound["mechanism"].values:
        for size in bound["size"].values:
            yield (mechanism, size), bound.sel(mechanism=mechanism, size=size).values


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_every_exceedance_is_a_share_with_its_exact_binomial_interval(study, confidence):
    epsilons = np.array([6.9, 7.0, 7.3, 8.0, 20.0])
    found = study.exceedance(epsilons, confidence=confidence)
    assert found["epsilon"].values.tolist() == epsilons.tolist()
    assert dict(found.sizes) == {"mechanism": 3, "size": 4, "epsilon": 5}
    inside = 0
    for (mechanism, size), bounds in held(study):
        cell = found.sel(mechanism=mechanism, size=size)
        for place, epsilon in enumerate(epsilons):
            above = int(np.sum(2 * bounds > epsilon))
            low, high = stats.binomtest(above, bounds.size).proportion_ci(confidence)
            shown = [float(cell[name][place]) for name in ("estimate", "low", "high")]
            assert shown == pytest.approx([above / bounds.size, low, high])
            inside += 0 < above < bounds.size
    assert inside > 10
    # a single ε may be given as a number
    single = study.exceedance(7.3, confidence=confidence)
    assert np.array_equal(single["estimate"][..., 0], found["estimate"][..., 2])


def test_every_safety_factor_is_a_share_of_the_other_replicates(study):
    factors = (0.98, 1.0, 1.02, 1.1)
    table = study.safety_factors(factors)
    assert list(table.columns) == list(factors) and table.shape[0] == 12
    for key, bounds in held(study):
        # below a factor of 1 a replicate lies above its own reduced bound, and is no other one
        by_hand = [
            np.mean([np.mean(np.delete(bounds, i) > s * bounds[i]) for i in range(bounds.size)])
            for s in factors
        ]
        assert table.loc[key].to_list() == pytest.approx(by_hand)
    assert study.safety_factors().columns.to_list() == [1.0, 1.01, 1.02, 1.05, 1.10]
    with pytest.raises(ValueError, match="^factors must be"):
        study.safety_factors((0.0,))


def test_the_whole_summary_is_that_of_the_replicates(study):
    summary = study.summary()
    assert list(summary.index) == [key for key, _ in held(study)]
    for (mechanism, size), bounds in held(study):
        cell = study.dataset.sel(mechanism=mechanism, size=size)
        assert summary.loc[(mechanism, size)].to_dict() == pytest.approx(
            {
                "smallest": bounds.min(),
                "median": np.median(bounds),
                "largest": bounds.max(),
                "largest - smallest": np.ptp(bounds),
                "average of the mean": np.mean(cell["average_mean"].values),
                "records removed": np.mean(cell["records_removed"].values),
            },
            rel=1e-12,
        )
    # averages and medians of the same replicates are other numbers, which the tolerance tells
    medians = study.dataset[["average_mean", "records_removed"]].median("replicate")
    means = study.dataset[["average_mean", "records_removed"]].mean("replicate")
    for name in medians:
        assert float(abs(medians[name] / means[name].where(means[name] > 0) - 1).max()) > 1e-6


def test_databases_posteriors_and_draws_are_those_asked_for():
    study = ppm.studies.contraction(
        [30, 60], replicates=300, mean=20.0, draws=40, truncate_at=2.0, shape=50.0, rate=10.0,
        random_seed=4,
    )
    # the prior pulls the mean of n counts towards 5: (50 + 20 n) / (10 + n)
    averages = study.dataset["average_mean"].sel(mechanism="Unweighted")
    for size in (30, 60):
        here, expected = averages.sel(size=size).values, (50.0 + 20.0 * size) / (10.0 + size)
        assert abs(here.mean() - expected) < 4 * here.std() / np.sqrt(300)
    assert (study.mean, study.draws, study.truncate_at) == (20.0, 40, 2.0)
    more = ppm.studies.contraction([30], replicates=300, mean=20.0, draws=400, random_seed=4)
    few = ppm.studies.contraction([30], replicates=300, mean=20.0, draws=40, random_seed=4)
    for mechanism in contraction.MECHANISMS[:2]:
        assert (bounds(more, mechanism).mean() > bounds(few, mechanism).mean()).item()


def test_seed_size_and_grouping(monkeypatch):
    def run(sizes, seed=1):
        study = ppm.studies.contraction(sizes, replicates=6, draws=20, random_seed=seed)
        return study.dataset["local_bound"]

    both = run([50, 80])
    assert both.identical(run([50, 80]))
    assert both.sel(size=80).identical(run([80]).sel(size=80))
    assert not both.identical(run([50, 80], seed=2))
    monkeypatch.setattr(contraction, "_CHUNK", 100)  # one database a group
    assert np.allclose(both, run([50, 80]), rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"sizes": []}, "sizes"),
        ({"sizes": [1, 10]}, "sizes"),
        ({"sizes": [400, 100]}, "sizes"),
        ({"sizes": 100}, "sizes"),
        ({"sizes": ["a"]}, "sizes"),
        ({"replicates": 1}, "replicates"),
        ({"truncate_at": 0}, "truncate_at"),
        ({"mean": -1}, "mean"),
        ({"draws": 1}, "draws"),
    ],
)
def test_impossible_settings_are_named(arguments, name):
    with pytest.raises(ValueError, match=f"^{name} must"):
        ppm.studies.contraction(**arguments)
