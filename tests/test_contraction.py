"""The fast study against the mechanism run database by database, and against the paper."""

import numpy as np
import pytest

import ppm
from ppm import contraction


@pytest.fixture(scope="module")
def study():
    return ppm.contraction_study(random_seed=2022)


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
                weights = ppm.record_weights(before, truncate_at=truncate_at)
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


def test_truncation_costs_utility_that_grows_with_n(study):
    average = study.dataset["average_mean"].mean("replicate")
    distance = np.abs(average.sel(mechanism="Weighted-M") - average.sel(mechanism="Unweighted"))
    standard_error = np.sqrt(100 / study.dataset["size"])
    assert np.all(np.diff(distance / standard_error) > 0)
    removed = study.dataset["records_removed"].mean("replicate").sel(mechanism="Weighted-M")
    assert np.all(np.diff(removed / study.dataset["size"]) > 0)


def test_exceedance_and_safety_factors_follow_from_the_bounds(study):
    found = study.exceedance([7.0, 7.5])
    held = bounds(study, "Weighted-M").sel(size=400).values
    cell = found.sel(mechanism="Weighted-M", size=400, epsilon=7.5)
    single = ppm.exceedance(held, 7.5)
    assert [float(cell[name]) for name in ("estimate", "low", "high")] == [
        single.estimate, single.low, single.high
    ]
    share = study.safety_factors((1.05,)).loc[("Weighted-M", 400), 1.05]
    by_hand = np.mean([np.mean(np.delete(held, i) > 1.05 * held[i]) for i in range(held.size)])
    assert share == pytest.approx(by_hand)


def test_summary_names_every_mechanism_and_size(study):
    summary = study.summary()
    assert summary.shape[0] == 12
    assert summary.loc[("Unweighted", 100), "largest"] == bounds(study, "Unweighted")[0].max()


def test_seed_size_and_grouping(monkeypatch):
    def run(sizes, seed=1):
        study = ppm.contraction_study(sizes, replicates=6, draws=20, random_seed=seed)
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
        ppm.contraction_study(**arguments)
