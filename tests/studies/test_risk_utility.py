"""The sweep, mostly on a synthesizer in closed form."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from conftest import by_definition
from scipy import stats

import ppm

COUNTS = np.random.default_rng(7).poisson(100, 80)
CONFIGURATIONS = [(0.7, 0.0), (0.5, -0.3)]


@pytest.fixture(scope="module")
def sweep():
    return ppm.studies.sweep(
        ppm.GammaPoisson(COUNTS), CONFIGURATIONS, releases=4, draws=300, random_seed=1
    )


def test_one_unweighted_and_two_entries_a_setting(sweep):
    assert [entry.mechanism for entry in sweep.entries] == [
        "Unweighted", "DPweighted", "EMweighted", "DPweighted", "EMweighted"
    ]
    assert all(entry.synthetic.shape == (4, 80) for entry in sweep.entries)


def test_the_weights_of_a_setting_are_scaled_and_shifted_risks_of_the_unweighted_fit(sweep):
    bounds = sweep.entry("Unweighted").record_bounds
    risk = (bounds - bounds.min()) / np.ptp(bounds)
    for scale, shift in CONFIGURATIONS:
        weights = np.clip(scale * (1.0 - risk) + shift, 0.0, 1.0)
        assert sweep.entry("DPweighted", scale, shift).weights == pytest.approx(weights)
    # the shift decides about the published bound: without it Δ would be more than twice as large
    without = ppm.PseudoPosteriorMechanism(ppm.GammaPoisson(COUNTS), scale=0.5)
    shifted = sweep.entry("DPweighted", 0.5, -0.3).local_bound
    assert without.run(draws=300, random_seed=1).local_bound > 2 * shifted


def test_the_exponential_mechanism_matches_the_bound_of_every_setting(sweep):
    for pair in CONFIGURATIONS:
        dp, em = (sweep.entry(name, *pair) for name in ("DPweighted", "EMweighted"))
        assert em.local_bound == pytest.approx(dp.local_bound, rel=0.03)
        assert np.ptp(em.weights) == 0 < np.ptp(dp.weights)
        # its bound is its own, of one of the attempts, and no attempt came closer
        assert (em.weights[0], em.local_bound) in em.history
        distances = [abs(bound - dp.local_bound) for _, bound in em.history]
        assert abs(em.local_bound - dp.local_bound) == min(distances) > 0
        # at an equal bound the scalar weight is the smaller one for most records
        assert np.mean(em.weights < dp.weights) > 0.5


class Noted(ppm.GammaPoisson):
    """Three chains, the last of them elsewhere where weights are small; notes what it is asked."""

    independent_draws = False

    def __init__(self, counts):
        super().__init__(counts)
        self.fits, self.fit_streams, self.release_streams = [], [], []

    def fit(self, weights=None, *, draws=1000, random_seed=None, progress=False):
        rng = np.random.default_rng(random_seed)
        mean = self.posterior(weights).rvs(size=(3, draws), random_state=rng)
        mean[2] += 8.0 * (weights.mean() < 0.3)
        log_lik = stats.poisson.logpmf(self.counts, mean[..., None])
        self.fits.append((weights, log_lik))
        self.fit_streams.append(first_number(random_seed))
        return xr.DataTree.from_dict(
            {
                "posterior": xr.Dataset({"mu": (("chain", "draw"), mean)}),
                "log_likelihood": xr.Dataset({"counts": (("chain", "draw", "record"), log_lik)}),
            }
        )

    def predict(self, fit, *, releases, random_seed=None):
        self.release_streams.append(first_number(random_seed))
        return super().predict(fit, releases=releases, random_seed=random_seed)


def first_number(seed):
    return np.random.default_rng(seed).random()


@pytest.fixture(scope="module")
def noted():
    """A sweep of all four mechanisms, and what its synthesizer was asked."""
    model = Noted(COUNTS)
    weights = ppm.count_weights(COUNTS, radius=0.1)
    found = ppm.studies.sweep(
        model, CONFIGURATIONS, releases=3, draws=100, random_seed=1, count_weights=weights
    )
    return model, found


def expected_rows(model, found):
    """Rows of the definition's numbers for every entry, from the fit that had its weights."""
    rows = []
    for entry in found.entries:
        (fit,) = [fit for fit in model.fits if np.array_equal(fit[0], entry.weights)]
        rows.append(by_definition(*fit))
    return rows


def test_the_whole_table_is_that_of_the_definitions_on_the_fits_own_draws(noted):
    model, found = noted
    rows = expected_rows(model, found)
    index = pd.MultiIndex.from_tuples(
        [
            ("Unweighted", np.nan, np.nan),
            *((name, *pair) for pair in CONFIGURATIONS for name in ("DPweighted", "EMweighted")),
            ("Countweighted", np.nan, np.nan),
        ],
        names=["mechanism", "scale", "shift"],
    )
    table = found.table(releases=3)
    # ranks of nearly equal values depend on rounding, and R-hat on ranks
    pd.testing.assert_frame_equal(table, pd.DataFrame(rows, index), rtol=2e-4)
    # no two columns hold the same numbers, and none the same number in every row but the draws
    assert len(set(map(tuple, table.T.to_numpy().tolist()))) == table.shape[1]
    assert [name for name in table if table[name].nunique() == 1] == ["draws"]


def test_every_fit_and_every_release_has_a_stream_of_its_own_but_the_attempts(noted):
    model, found = noted
    streams = dict(zip((tuple(w) for w, _ in model.fits), model.fit_streams, strict=True))
    attempts = {streams[key] for key in streams if len(set(key)) == 1 and key[0] != 1.0}
    others = [streams[key] for key in streams if len(set(key)) > 1 or key[0] == 1.0]
    # Unweighted, two settings of DPweighted and Countweighted; every attempt of EMweighted
    assert len(others) == len(set(others)) == 4
    assert len(attempts) == 1 and attempts.isdisjoint(others)
    # a release never comes from the numbers that drew its parameters, or another's
    assert set(model.release_streams).isdisjoint(model.fit_streams)
    assert len(set(model.release_streams)) == 5


def test_the_attempts_that_settings_share_count_against_their_budget():
    settings = {"releases": 1, "draws": 50, "random_seed": 1, "tolerance": 1e-12}
    for attempts in (1, 2, 5):
        found = ppm.studies.sweep(
            ppm.GammaPoisson(COUNTS), CONFIGURATIONS, attempts=attempts, **settings
        )
        for pair in CONFIGURATIONS:
            assert len(found.entry("EMweighted", *pair).history) == attempts


def test_the_distribution_of_a_mean_is_that_of_the_entrys_releases(sweep):
    settings = {"resamples": 10_000, "random_seed": 1}
    found = sweep.distributions("mean", data=COUNTS, **settings)
    assert list(found) == ["Data", *(entry.label for entry in sweep.entries)]
    for name, distribution in found.items():
        values = COUNTS[None] if name == "Data" else sweep.chosen()[name].synthetic
        # of a barycentre both the mean and the standard deviation are averages over the releases
        spread = np.mean(values.std(axis=1)) / np.sqrt(COUNTS.size)
        middle, error = values.mean(), 4 * spread / np.sqrt(10_000)
        assert distribution.mean() == pytest.approx(middle, abs=error)
        assert distribution.std() == pytest.approx(spread, rel=0.05)
        # that tells every entry from every other
        others = [entry.synthetic.mean() for entry in sweep.entries if entry.label != name]
        assert np.min(np.abs(np.array(others) - middle)) > error
    doubled = sweep.distributions("mean", transform=lambda x: 2 * x, **settings)
    assert np.allclose(doubled["Unweighted"], 2 * found["Unweighted"])


class StandingStill(ppm.GammaPoisson):
    """A chain that keeps its first value."""

    def fit(self, weights=None, *, draws=1000, random_seed=None, progress=False):
        posterior = super().fit(weights, draws=draws, random_seed=random_seed)["posterior"]
        posterior = posterior.to_dataset()
        posterior["mu"][:] = posterior["mu"].values[:, :1]
        log_lik = self.log_likelihood_at(posterior).to_dataset(name="counts")
        return xr.DataTree.from_dict({"posterior": posterior, "log_likelihood": log_lik})


def test_the_table_marks_chains_that_stand_still(sweep):
    table = ppm.studies.sweep(
        StandingStill([3, 5, 4, 6, 20]), [(0.7, 0.0)], releases=1, draws=100, random_seed=1,
        attempts=1,
    ).table()
    assert not table["chains agree"].any()
    # here no R-hat can be told, and a column of it alone would not show anything
    assert table[["R-hat", "R-hat, log-likelihood"]].isna().all(axis=None)
    assert sweep.table()["chains agree"].all()


def test_the_distributions_of_one_setting_go_by_mechanism(sweep):
    settings = {"resamples": 50, "random_seed": 1}
    every = sweep.distributions("mean", **settings)
    one = sweep.distributions("mean", configuration=[0.5, -0.3], **settings)
    assert list(one) == ["Unweighted", "DPweighted", "EMweighted"]
    assert np.array_equal(one["DPweighted"], every["DPweighted (0.5, -0.3)"])
    assert not np.array_equal(one["DPweighted"], every["DPweighted (0.7, 0)"])


def test_the_sweep_repeats_and_shows_progress(sweep, capsys):
    again = ppm.studies.sweep(
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
        ppm.studies.sweep(ppm.GammaPoisson(COUNTS), wrong)


@pytest.fixture(scope="module")
def four():
    """The same sweep with Countweighted."""
    weights = ppm.count_weights(COUNTS, radius=0.1)
    return ppm.studies.sweep(
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
        ppm.studies.sweep(Unused(COUNTS), CONFIGURATIONS, count_weights=wrong)


def test_the_whole_summary_is_that_of_the_definitions(noted):
    model, found = noted
    names = ["average weight", "local bound", "epsilon, 1 release", "oscillation bound", "R-hat",
             "R-hat, log-likelihood"]
    mechanisms = ["Unweighted", "DPweighted", "EMweighted", "Countweighted"]
    rows = dict(zip(found.chosen(), expected_rows(model, found), strict=True))
    for scale, shift in CONFIGURATIONS:
        here = f"({scale:g}, {shift:g})"
        labels = ["Unweighted", f"DPweighted {here}", f"EMweighted {here}", "Countweighted"]
        expected = pd.DataFrame([rows[label] for label in labels], mechanisms)[names]
        expected["mean (%)"] = [10.0, -50.0, 0.0, 25.0]
        expected["median (%)"] = [0.0, 100.0, 50.0, 300.0]
        means = {"Data": [80, 100, 900.0]}
        medians = {"Data": [1.0, 2.0, 7.0]}
        means |= {name: [110.0 - 1, 110, 111] for name in mechanisms[:1]}
        means |= {"DPweighted": [50.0], "EMweighted": [0, 100, 101], "Countweighted": [125.0]}
        medians |= dict(zip(mechanisms, ([2.0], [4.0], [3.0], [8.0]), strict=True))
        table = found.summary({"mean": means, "median": medians}, configuration=(scale, shift))
        pd.testing.assert_frame_equal(
            table, expected.rename_axis("synthesizer"), rtol=2e-4, check_dtype=False
        )


def test_equal_bounds_measure_the_distance_from_the_target_and_from_both_references(sweep):
    table = sweep.equal_bounds(
        {
            "Data": [100.0], "Unweighted": [110.0],
            "DPweighted (0.7, 0)": [99.0], "EMweighted (0.7, 0)": [88.0],
            # a mechanism that lands on the data by accident is closer, and the table says so
            "DPweighted (0.5, -0.3)": [121.0], "EMweighted (0.5, -0.3)": [101.0],
        }
    )
    rows = []
    away = ([10.0, 20.0, 10.0, 1.0, 12.0, 11.0], [10.0, 100 * 9 / 110, 100 * 9 / 110 - 10, 21.0,
                                                  1.0, -20.0])
    for pair, shifts in zip(CONFIGURATIONS, away, strict=True):
        dp, em = (sweep.entry(name, *pair) for name in ("DPweighted", "EMweighted"))
        off = 100 * (em.local_bound - dp.local_bound) / dp.local_bound
        rows.append(
            [dp.local_bound, em.weights[0], em.local_bound, off, len(em.history), *shifts]
        )
    columns = ["target", "scalar weight", "local bound", "off target (%)", "attempts"]
    for reference in ("Unweighted", "Data"):
        columns += [f"{name} from {reference} (%)" for name in ("DPweighted", "EMweighted")]
        columns += [f"EMweighted further from {reference}"]
    index = pd.MultiIndex.from_tuples(CONFIGURATIONS, names=["scale", "shift"])
    pd.testing.assert_frame_equal(table, pd.DataFrame(rows, index, columns))


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
    expected = ppm.utility.resampled_barycentre(releases, "mean", resamples=50, random_seed=1)
    assert np.array_equal(found["first"]["EMweighted"], expected)
    assert found["first"]["Data"].mean() == pytest.approx(COUNTS[:30].mean(), rel=0.05)


@pytest.mark.parametrize("known", [None, (COUNTS > 95).astype(float)[:, None]])
def test_propensity_scores_are_averages_over_the_releases(four, known):
    settings = {"configuration": (0.7, 0.0), "known": known}
    every = four.propensity_scores(COUNTS, known=known)
    assert list(every.index) == [entry.label for entry in four.entries]
    two = four.propensity_scores(COUNTS, releases=2, **settings)
    assert list(two.index) == ["Unweighted", "DPweighted", "EMweighted", "Countweighted"]
    for found, number in ((every, 4), (two, 2)):
        assert list(found) == ["pMSE", "null", "ratio"]
        chosen = four.chosen() if number == 4 else four.chosen((0.7, 0.0))
        for name, row in found.iterrows():
            single = [
                ppm.utility.propensity_score(
                    *ppm.utility.rank_powers(COUNTS, synthetic), known=known
                )
                for synthetic in chosen[name].synthetic
            ]
            single = np.array([[one.score, one.null, one.ratio] for one in single])
            assert row.to_list() == pytest.approx(single[:number].mean(axis=0))
    # the known column counts: what goes with it can be told apart as well
    assert (every["pMSE"] != four.propensity_scores(COUNTS)["pMSE"]).all() == (known is not None)
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
    both = ppm.studies.sweep(model, CONFIGURATIONS[:1], conditional_labels=True, **settings)
    return y, both, ppm.studies.sweep(model, CONFIGURATIONS[:1], **settings)


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
        data = np.median(ppm.utility.resample(np.exp(y), "median", resamples=50, random_seed=1))
        for name, releases in (
            ("labels from pi (%)", entry.synthetic),
            ("conditional labels (%)", entry.conditional),
        ):
            middle = np.median(
                ppm.utility.resampled_barycentre(
                    np.exp(releases), "median", resamples=50, random_seed=1
                )
            )
            assert row[name] == pytest.approx(100 * (middle / data - 1))
        assert row["local bound"] == entry.local_bound
    assert not np.allclose(table["labels from pi (%)"], table["conditional labels (%)"])
    with pytest.raises(ValueError, match="conditional_labels=True"):
        plain.label_effect("median", **settings)


def test_a_synthesizer_without_labels_has_no_conditional_ones():
    with pytest.raises(ValueError, match="takes labels.*GammaPoisson has none"):
        ppm.studies.sweep(
            ppm.GammaPoisson(COUNTS), CONFIGURATIONS, conditional_labels=True
        )


def test_the_unweighted_fit_can_explore_further_than_the_others():
    rng = np.random.default_rng(4)
    model = ppm.FiniteMixture(
        rng.standard_normal(60), np.ones((60, 1)), components=2, warmup=20, parallel=False
    )
    settings = {"releases": 1, "draws": 20, "random_seed": 1, "attempts": 1}
    plain, longer = (
        ppm.studies.sweep(model, [(0.7, 0.0)], unweighted_thin=thin, **settings)
        for thin in (1, 3)
    )
    thinned = ppm.FiniteMixture(
        rng.standard_normal(60), np.ones((60, 1)), components=2, warmup=20, thin=3, parallel=False
    )
    thinned.response = model.response
    expected = ppm.studies.sweep(thinned, [(0.7, 0.0)], **settings)
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
        ppm.studies.sweep(ppm.GammaPoisson(COUNTS), CONFIGURATIONS, unweighted_thin=2)
