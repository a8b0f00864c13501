"""The sweep on a synthesizer in closed form."""

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
        assert em.local_bound == pytest.approx(dp.local_bound, rel=0.05)
        assert np.ptp(em.weights) == 0 < np.ptp(dp.weights)
        assert em.history[-1][0] in [weight for weight, _ in em.history]
        # at an equal bound the scalar weight is the smaller one for most records
        assert np.mean(em.weights < dp.weights) > 0.5


def test_the_table_shows_bound_epsilon_and_diagnostics(sweep):
    table = sweep.table(releases=4)
    first = table.iloc[0]
    assert first["epsilon, 4 releases"] == pytest.approx(8 * first["local bound"])
    assert table["chains agree"].dtype == bool
    assert first["draws"] == 300 and first["average weight"] == 1.0
    assert table.shape[0] == 5


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
    assert "5/5" in shown.err and not shown.out


@pytest.mark.parametrize("wrong", [[], 3, [(1, 2, 3)], [(0.0, 0.0)], [(0.5, "a")]])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(ValueError, match="configurations|scale|shift"):
        ppm.risk_utility_sweep(ppm.GammaPoisson(COUNTS), wrong)


def test_an_entry_that_does_not_exist_is_named(sweep):
    with pytest.raises(KeyError, match="EMweighted"):
        sweep.entry("EMweighted", 0.1, 0.1)
