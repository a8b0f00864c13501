"""The sweep, mostly on a synthesizer in closed form."""

import numpy as np
import pytest

import ppm

COUNTS = np.random.default_rng(7).poisson(100, 80)
CONFIGURATIONS = [(0.7, 0.0), (0.5, -0.3)]


@pytest.fixture(scope="module")
def sweep():
    return ppm.risk_utility_sweep(
        ppm.GammaPoisson(COUNTS), CONFIGURATIONS, releases=4, draws=300, random_seed=1
    )


def test_one_unweighted_and_two_entries_a_setting(sweep):
    assert [entry.mechanism for entry in sweep.entries] == [
        "Unweighted", "DPweighted", "EMweighted", "DPweighted", "EMweighted"
    ]
    assert all(entry.synthetic.shape == (4, 80) for entry in sweep.entries)


def test_bounds_fall_along_the_settings_and_the_exponential_mechanism_matches_them(sweep):
    weighted = [sweep.entry("DPweighted", *pair) for pair in CONFIGURATIONS]
    exponential = [sweep.entry("EMweighted", *pair) for pair in CONFIGURATIONS]
    bounds = [sweep.entry("Unweighted").local_bound, *(entry.local_bound for entry in weighted)]
    assert bounds[0] > bounds[1] > bounds[2]
    for dp, em in zip(weighted, exponential, strict=True):
        assert em.local_bound == pytest.approx(dp.local_bound, rel=0.03)
        assert np.ptp(em.weights) == 0 < np.ptp(dp.weights)
        # its bound is its own, of one of the attempts, and no attempt came closer
        assert (em.weights[0], em.local_bound) in em.history
        distances = [abs(bound - dp.local_bound) for _, bound in em.history]
        assert abs(em.local_bound - dp.local_bound) == min(distances) > 0
        # at an equal bound the scalar weight is the smaller one for most records
        assert np.mean(em.weights < dp.weights) > 0.5


def test_the_table_shows_bound_epsilon_and_diagnostics(sweep):
    table = sweep.table(releases=4)
    first = table.iloc[0]
    assert first["epsilon, 4 releases"] == pytest.approx(8 * first["local bound"])
    assert table["chains agree"].dtype == bool
    assert first["draws"] == 300 and first["average weight"] == 1.0
    assert table.shape[0] == 5
    # counts: log p has one sign, so that a record moves by less than its bound
    assert (table["oscillation bound"] > 0).all()
    assert (table["oscillation bound"] < table["local bound"]).all()


def test_the_distribution_of_an_entry_is_the_barycentre_over_its_releases(sweep):
    settings = {"resamples": 50, "random_seed": 1}
    found = sweep.distributions("mean", data=COUNTS, **settings)
    assert list(found) == ["Data", *(entry.label for entry in sweep.entries)]
    assert found["Data"].mean() == pytest.approx(COUNTS.mean(), rel=0.05)
    entry = sweep.entry("EMweighted", 0.5, -0.3)
    single = ppm.resample(entry.synthetic, "mean", **settings)
    assert np.array_equal(found["EMweighted (0.5, -0.3)"], ppm.wasserstein_barycentre(single))
    doubled = sweep.distributions("mean", transform=lambda x: 2 * x, **settings)
    assert np.allclose(doubled["Unweighted"], 2 * found["Unweighted"])


def test_the_distributions_of_one_setting_go_by_mechanism(sweep):
    settings = {"resamples": 50, "random_seed": 1}
    every = sweep.distributions("mean", **settings)
    one = sweep.distributions("mean", configuration=[0.5, -0.3], **settings)
    assert list(one) == ["Unweighted", "DPweighted", "EMweighted"]
    assert np.array_equal(one["DPweighted"], every["DPweighted (0.5, -0.3)"])
    assert not np.array_equal(one["DPweighted"], every["DPweighted (0.7, 0)"])


def test_the_sweep_repeats_and_shows_progress(sweep, capsys):
    again = ppm.risk_utility_sweep(
        ppm.GammaPoisson(COUNTS), CONFIGURATIONS, releases=4, draws=300, random_seed=1,
        progress=True,
    )
    for one, other in zip(sweep.entries, again.entries, strict=True):
        assert np.array_equal(one.synthetic, other.synthetic)
        assert one.local_bound == other.local_bound
    shown = capsys.readouterr()
    # attempts that two settings share are made once
    fits = 3 + len({weight for entry in sweep.entries for weight, _ in entry.history})
    assert f"{300 * fits}/{300 * fits}" in shown.err and not shown.out


@pytest.mark.parametrize("wrong", [[], 3, [(1, 2, 3)], [(0.0, 0.0)], [(0.5, "a")]])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(ValueError, match="configurations|scale|shift"):
        ppm.risk_utility_sweep(ppm.GammaPoisson(COUNTS), wrong)


@pytest.fixture(scope="module")
def four():
    """The same sweep with Countweighted."""
    weights = ppm.count_weights(COUNTS, radius=0.1)
    return ppm.risk_utility_sweep(
        ppm.GammaPoisson(COUNTS), CONFIGURATIONS, releases=4, draws=300, random_seed=1,
        count_weights=weights,
    )


def test_countweighted_is_one_more_fit_and_changes_no_other(sweep, four):
    assert [entry.mechanism for entry in four.entries] == [
        *(entry.mechanism for entry in sweep.entries), "Countweighted"
    ]
    for one, other in zip(sweep.entries, four.entries, strict=False):
        assert np.array_equal(one.synthetic, other.synthetic)
        assert one.local_bound == other.local_bound
    counted = four.entry("Countweighted")
    assert np.array_equal(counted.weights, ppm.count_weights(COUNTS, radius=0.1))
    assert counted.label == "Countweighted" and counted.synthetic.shape == (4, 80)
    # its bound is that of its weights in its own fit
    again = ppm.PseudoPosteriorMechanism(ppm.GammaPoisson(COUNTS), weights=counted.weights)
    bound = again.run(draws=300, random_seed=5).local_bound
    assert counted.local_bound == pytest.approx(bound, rel=0.1)
    assert counted.local_bound < four.entry("Unweighted").local_bound / 1.5
    with pytest.raises(KeyError, match="Countweighted"):
        sweep.entry("Countweighted")


@pytest.mark.parametrize("wrong", [np.ones(79), np.full(80, 1.5), "a"])
def test_wrong_count_weights_are_refused_before_any_fit(wrong):
    class Unused(ppm.GammaPoisson):
        def fit(self, *arguments, **settings):
            raise AssertionError("the fit must not start")

    with pytest.raises(ValueError, match="^count_weights "):
        ppm.risk_utility_sweep(Unused(COUNTS), CONFIGURATIONS, count_weights=wrong)


def test_the_summary_has_bounds_and_utility_of_all_four(four):
    settings = {"configuration": (0.7, 0.0), "resamples": 50, "random_seed": 1}
    means = four.distributions("mean", data=COUNTS, **settings)
    table = four.summary({"mean": means}, configuration=(0.7, 0.0))
    assert list(table.index) == ["Unweighted", "DPweighted", "EMweighted", "Countweighted"]
    dp = four.entry("DPweighted", 0.7, 0.0)
    row = table.loc["DPweighted"]
    assert row["local bound"] == dp.local_bound
    assert row["epsilon, 1 release"] == 2 * dp.local_bound
    assert row["average weight"] == dp.weights.mean()
    expected = 100 * (np.median(means["DPweighted"]) / np.median(means["Data"]) - 1)
    assert row["mean (%)"] == pytest.approx(expected)
    other = four.summary({}, configuration=(0.5, -0.3))
    assert other.loc["DPweighted", "local bound"] != row["local bound"]


def test_equal_bounds_measure_the_distance_from_the_target_and_from_both_references(sweep):
    table = sweep.equal_bounds(
        {
            "Data": [100.0], "Unweighted": [110.0],
            "DPweighted (0.7, 0)": [99.0], "EMweighted (0.7, 0)": [88.0],
            "DPweighted (0.5, -0.3)": [121.0], "EMweighted (0.5, -0.3)": [101.0],
        }
    )
    dp, em = (sweep.entry(name, 0.7, 0.0) for name in ("DPweighted", "EMweighted"))
    first = table.loc[(0.7, 0.0)]
    assert first["target"] == dp.local_bound and first["local bound"] == em.local_bound
    assert first["off target (%)"] == pytest.approx(100 * (em.local_bound / dp.local_bound - 1))
    assert first["scalar weight"] == em.weights[0]
    assert first["attempts"] == len(em.history)
    assert first["DPweighted from Unweighted (%)"] == pytest.approx(10)
    assert first["EMweighted from Unweighted (%)"] == pytest.approx(20)
    assert first["EMweighted further from Unweighted"] == pytest.approx(10)
    assert first["EMweighted further from Data"] == pytest.approx(12 - 1)
    assert not any("pMSE" in column for column in table)
    # a mechanism that lands on the data by accident is closer, and the table says so
    last = table.loc[(0.5, -0.3)]
    assert last["EMweighted further from Data"] == pytest.approx(1 - 21)
    assert last["EMweighted further from Unweighted"] == pytest.approx(100 * 9 / 110 - 10)


def test_equal_bounds_take_the_scores_of_their_own_setting(sweep):
    settings = {"resamples": 50, "random_seed": 1}
    means = sweep.distributions("mean", data=COUNTS, **settings)
    scores = sweep.propensity_scores(COUNTS)
    table = sweep.equal_bounds(means, scores)
    for pair in CONFIGURATIONS:
        for name in ("DPweighted", "EMweighted"):
            label = sweep.entry(name, *pair).label
            assert table.loc[pair, f"{name} pMSE ratio"] == scores.loc[label, "ratio"]
    assert table["EMweighted pMSE ratio"].nunique() == 2


def test_grouped_distributions_are_those_of_the_groups_records(four):
    groups = np.where(np.arange(80) < 30, "first", "second")
    settings = {"resamples": 50, "random_seed": 1, "configuration": (0.5, -0.3)}
    found = four.grouped_distributions(groups, data=COUNTS, transform=np.sqrt, **settings)
    assert list(found) == ["first", "second"]
    assert list(found["first"]) == [
        "Data", "Unweighted", "DPweighted", "EMweighted", "Countweighted"
    ]
    releases = np.sqrt(four.entry("EMweighted", 0.5, -0.3).synthetic[:, :30])
    expected = ppm.resampled_barycentre(releases, "mean", resamples=50, random_seed=1)
    assert np.array_equal(found["first"]["EMweighted"], expected)
    assert found["first"]["Data"].mean() == pytest.approx(COUNTS[:30].mean(), rel=0.05)


def test_propensity_scores_are_averages_over_the_releases(four):
    scores = four.propensity_scores(COUNTS, configuration=(0.7, 0.0), releases=2)
    assert list(scores.index) == ["Unweighted", "DPweighted", "EMweighted", "Countweighted"]
    synthetic = four.entry("Unweighted").synthetic
    single = [ppm.propensity_score(*ppm.rank_powers(COUNTS, row)).ratio for row in synthetic]
    assert scores.loc["Unweighted", "ratio"] == pytest.approx(np.mean(single[:2]))
    every = four.propensity_scores(COUNTS)
    assert every.loc["Unweighted", "ratio"] == pytest.approx(np.mean(single))
    assert "EMweighted (0.5, -0.3)" in every.index
    with pytest.raises(ValueError, match="^releases must be"):
        four.propensity_scores(COUNTS, releases=0)


def test_an_entry_that_does_not_exist_is_named(sweep):
    with pytest.raises(KeyError, match="EMweighted"):
        sweep.entry("EMweighted", 0.1, 0.1)


@pytest.fixture(scope="module")
def labelled():
    """A mixture of two distant groups, with and without releases from conditional labels."""
    rng = np.random.default_rng(2)
    y = np.where(np.arange(80) % 2, 4.0, -4.0) + rng.standard_normal(80)
    model = ppm.FiniteMixture(y, np.ones((80, 1)), components=2, warmup=50, parallel=False)
    settings = {"releases": 3, "draws": 30, "random_seed": 1, "attempts": 1}
    both = ppm.risk_utility_sweep(model, CONFIGURATIONS[:1], conditional_labels=True, **settings)
    return y, both, ppm.risk_utility_sweep(model, CONFIGURATIONS[:1], **settings)


def test_conditional_labels_come_beside_the_releases_and_change_none(labelled):
    y, both, plain = labelled
    for one, other in zip(both.entries, plain.entries, strict=True):
        assert np.array_equal(one.synthetic, other.synthetic)
        assert one.releases() is one.synthetic and one.conditional.shape == (3, 80)
        # those labels look at the record's own value, the ones from pi do not
        follows = [
            np.mean(np.sign(releases) == np.sign(y))
            for releases in (one.releases("conditional"), one.releases("prior"))
        ]
        assert follows[0] > 0.75 and follows[1] < 0.65
        with pytest.raises(ValueError, match="conditional_labels=True"):
            other.releases("conditional")
        with pytest.raises(ValueError, match="labels must be"):
            one.releases("both")


def test_the_effect_of_the_labels_is_that_on_the_medians(labelled):
    y, both, plain = labelled
    settings = {"data": np.exp(y), "transform": np.exp, "resamples": 50, "random_seed": 1}
    table = both.label_effect("median", **settings)
    assert list(table.index) == [
        (entry.mechanism, pytest.approx(entry.scale, nan_ok=True),
         pytest.approx(entry.shift, nan_ok=True)) for entry in both.entries
    ]
    for row, entry in zip(table.to_dict("records"), both.entries, strict=True):
        data = np.median(ppm.resample(np.exp(y), "median", resamples=50, random_seed=1))
        for name, releases in (
            ("labels from pi (%)", entry.synthetic),
            ("conditional labels (%)", entry.conditional),
        ):
            middle = np.median(
                ppm.resampled_barycentre(np.exp(releases), "median", resamples=50, random_seed=1)
            )
            assert row[name] == pytest.approx(100 * (middle / data - 1))
        assert row["local bound"] == entry.local_bound
    assert not np.allclose(table["labels from pi (%)"], table["conditional labels (%)"])
    with pytest.raises(ValueError, match="conditional_labels=True"):
        plain.label_effect("median", **settings)


def test_a_synthesizer_without_labels_has_no_conditional_ones():
    with pytest.raises(ValueError, match="takes labels.*GammaPoisson has none"):
        ppm.risk_utility_sweep(
            ppm.GammaPoisson(COUNTS), CONFIGURATIONS, conditional_labels=True
        )


def test_the_unweighted_fit_can_explore_further_than_the_others():
    rng = np.random.default_rng(4)
    model = ppm.FiniteMixture(
        rng.standard_normal(60), np.ones((60, 1)), components=2, warmup=20, parallel=False
    )
    settings = {"releases": 1, "draws": 20, "random_seed": 1, "attempts": 1}
    plain, longer = (
        ppm.risk_utility_sweep(model, [(0.7, 0.0)], unweighted_thin=thin, **settings)
        for thin in (1, 3)
    )
    thinned = ppm.FiniteMixture(
        rng.standard_normal(60), np.ones((60, 1)), components=2, warmup=20, thin=3, parallel=False
    )
    thinned.response = model.response
    expected = ppm.risk_utility_sweep(thinned, [(0.7, 0.0)], **settings)
    bounds = [found.entry("Unweighted").record_bounds for found in (plain, longer, expected)]
    assert np.array_equal(bounds[1], bounds[2])
    assert not np.array_equal(bounds[0], bounds[1])
    # the others keep every sweep: given its weights, DPweighted is fitted as before
    entry = longer.entry("DPweighted", 0.7, 0.0)
    assert entry.draws_used == plain.entry("DPweighted", 0.7, 0.0).draws_used
    assert not np.array_equal(
        entry.record_bounds, expected.entry("DPweighted", 0.7, 0.0).record_bounds
    )
    with pytest.raises(ValueError, match="unweighted_thin needs a synthesizer that thins"):
        ppm.risk_utility_sweep(ppm.GammaPoisson(COUNTS), CONFIGURATIONS, unweighted_thin=2)
