"""How the published bounds move with unstated settings."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from conftest import ROOT

import ppm
from ppm.ledger import load_ledger
from ppm.open_settings import PUBLISHED_BOUNDS, TRANSFORMATIONS, SettingsStudy

SMALL = {"chains": 2, "warmup": 20, "draws": 20, "random_seed": 4, "parallel": False}


@pytest.fixture(scope="module")
def data():
    data = ppm.simulate_ce(300, random_seed=5)
    table = data.table.copy()
    table.loc[:1, "income"] = -7000.0
    return replace(data, table=table)


@pytest.fixture(scope="module")
def study(data):
    return ppm.settings_study(data, (1, 2), transformations=TRANSFORMATIONS[:2], **SMALL)


def test_the_published_bounds_are_the_ledgers():
    claims = {claim.id: claim for claim in load_ledger(ROOT / "book" / "published.yaml")}
    unweighted, *weighted = PUBLISHED_BOUNDS.values()
    assert claims["delta-unweighted"].published == unweighted
    assert claims["delta-settings"].published == weighted
    pairs = [x for pair in PUBLISHED_BOUNDS if pair for x in pair]
    assert claims["configuration-first"].published == pairs


def test_the_transformations_of_incomes_that_have_no_logarithm():
    table = ppm.simulate_ce(60, random_seed=1).table.copy()
    table.loc[:3, "income"] = [-71138.0, -7000.0, 0.0, 50_000.0]
    floored, hyperbolic, shifted = (
        ppm.transformed_income(table, name)[:4] for name in TRANSFORMATIONS
    )
    np.testing.assert_allclose(floored, [0, 0, 0, np.log(50_000)])
    np.testing.assert_allclose(hyperbolic[[0, 3]], [-np.log(2 * 71138), np.log(100_000)])
    assert hyperbolic[2] == 0
    np.testing.assert_allclose(shifted, [0, 0, np.log(7001), np.log(57_001)])
    more = ppm.transformed_income(table, TRANSFORMATIONS[2], shift=71_139.0)
    assert more[0] == 0 < more[1]
    assert ppm.transformed_income(table, TRANSFORMATIONS[0], floor=1000.0)[2] == np.log(1000)


def test_one_component_is_a_normal_regression(data, study):
    predictors, _ = ppm.predictor_matrix(data)
    largest = {}
    for name in TRANSFORMATIONS[:2]:
        y = ppm.transformed_income(data, name)
        fitted, *_ = np.linalg.lstsq(predictors, y, rcond=None)
        residual = y - predictors @ fitted
        variance = residual @ residual / (y.size - predictors.shape[1])
        log_density = -0.5 * (np.log(2 * np.pi * variance) + residual**2 / variance)
        largest[name] = np.abs(log_density).max()
    bounds = study.dataset["local_bound"].sel(components=1, setting="Unweighted")
    for name in TRANSFORMATIONS[:2]:
        # a maximum over draws around the estimate lies above it, but not by much
        assert 0.95 < bounds.sel(transformation=name) / largest[name] < 1.38
    # ... which tells one transformation from the other
    first, second = TRANSFORMATIONS[:2]
    assert bounds.sel(transformation=second) / largest[first] > 1.38
    assert bounds.sel(transformation=first) / largest[second] < 0.95


def test_weights_lower_the_bounds_along_the_settings(study):
    bounds = study.dataset["local_bound"]
    assert bounds.shape == (2, 2, 7)
    assert (bounds.isel(setting=0) > bounds.isel(setting=1)).all()
    assert (bounds.isel(setting=1) > bounds.isel(setting=6)).all()
    assert (study.dataset["typical"] <= bounds).all()
    assert study.draws == 40


def test_a_combination_does_not_depend_on_the_others_or_on_the_cores(data, study):
    alone = ppm.settings_study(data, [2], transformations=[TRANSFORMATIONS[1]], **SMALL)
    xr.testing.assert_identical(
        alone.dataset,
        study.dataset.sel(transformation=[TRANSFORMATIONS[1]], components=[2]),
    )
    shared = ppm.settings_study(
        data, [1, 2], transformations=[TRANSFORMATIONS[1]], **SMALL | {"parallel": True}
    )
    xr.testing.assert_identical(
        shared.dataset, study.dataset.sel(transformation=[TRANSFORMATIONS[1]])
    )
    other = ppm.settings_study(
        data, [2], transformations=[TRANSFORMATIONS[1]], **SMALL | {"random_seed": 5}
    )
    assert (other.dataset["local_bound"] != alone.dataset["local_bound"]).all()


def known(factors, error=0.0, r_hat=1.0, r_hat_log_likelihood=1.0):
    """A study whose bounds are the published ones times a factor for each K."""
    published = np.array(list(PUBLISHED_BOUNDS.values()))
    bounds = np.array(factors)[None, :, None] * published
    dims = ("transformation", "components", "setting")
    dataset = xr.Dataset(
        {
            "local_bound": (dims, bounds),
            "error": (dims, error * bounds),
            "r_hat": (dims, np.full(bounds.shape, r_hat)),
            "r_hat_log_likelihood": (dims, np.full(bounds.shape, r_hat_log_likelihood)),
            "typical": (dims, bounds),
            "published": ("setting", published),
        },
        {
            "transformation": [TRANSFORMATIONS[0]],
            "components": np.arange(1, 1 + len(factors)),
            "setting": ["Unweighted", *map(str, list(PUBLISHED_BOUNDS)[1:])],
        },
    )
    return SettingsStudy(dataset, draws=10)


def test_the_distance_is_the_root_mean_square_of_log_ratios():
    table = known([4.0, 0.5, 1.1], error=0.1).distances()
    assert table.index.get_level_values("components").tolist() == [3, 2, 1]
    np.testing.assert_allclose(table["distance"], np.log([1.1, 2.0, 4.0]))
    np.testing.assert_allclose(table["factor"], [1.1, 2.0, 4.0])
    np.testing.assert_allclose(table["Unweighted / published"], [1.1, 0.5, 4.0])
    # seven independent errors of a tenth
    np.testing.assert_allclose(table["error"], 0.1 / np.sqrt(7))


def test_the_nearest_is_named_with_what_chance_cannot_tell_from_it():
    told = " ".join(known([1.3, 2.0]).nearest().split())
    assert "K = 1, off by a factor of 1.30 on average" in told
    assert "further off by more than twice the Monte Carlo error" in told
    assert "in 0 of 14 fits" in told
    told = " ".join(known([2.0, 1.3, 1.35], error=0.2, r_hat=1.2).nearest().split())
    assert "K = 2, off by" in told
    assert f"Not told apart from it by these draws: {TRANSFORMATIONS[0]}, K = 3." in told
    assert "in 21 of 21 fits, and that of the log-likelihood in 0." in told


def test_an_r_hat_that_cannot_be_told_counts_as_a_poor_one():
    study = known([2.0, 1.3])
    for name, value in (("r_hat", np.nan), ("r_hat_log_likelihood", 1.2)):
        study.dataset[name][0, 1, 3] = value
    told = " ".join(study.nearest().split())
    assert "R-hat is above 1.05 in 1 of 14 fits, and that of the log-likelihood in 1." in told
    table = study.distances().droplevel("transformation")
    assert np.isnan(table["largest R-hat"][2]) and table["largest R-hat"][1] == 1.0
    assert table["largest R-hat, log-likelihood"].to_dict() == {1: 1.0, 2: 1.2}


def test_the_table_ends_with_the_published_row(study):
    table = study.table()
    assert len(table) == 5
    assert table.iloc[-1].tolist() == list(PUBLISHED_BOUNDS.values())
    assert table.columns[0] == "Unweighted"
    first = study.dataset["local_bound"].isel(transformation=0, components=0)
    assert table.iloc[0].tolist() == first.values.tolist()


def test_the_figure_has_a_panel_a_transformation_and_the_published_line(study):
    panels = ppm.plots.settings_bounds(study, simulated=True).axes
    assert [axes.get_title() for axes in panels] == list(TRANSFORMATIONS[:2])
    for axes in panels:
        assert [line.get_label() for line in axes.lines] == ["K = 1", "K = 2", "as published"]
        assert axes.lines[-1].get_ydata().tolist() == list(PUBLISHED_BOUNDS.values())


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"components": [2, 1]}, "components must increase"),
        ({"components": [0]}, "components must be"),
        ({"components": 3}, "components must be a list"),
        ({"transformations": ["root"]}, "transformation must be one of"),
        ({"transformations": []}, "transformations must be"),
        ({"shift": 0.0}, "shift must be"),
        ({"floor": -1.0}, "floor must be"),
        ({"draws": 0}, "draws must be"),
    ],
)
def test_wrong_settings_are_named(data, change, told):
    with pytest.raises(ValueError, match=told):
        ppm.settings_study(data, **{"components": [1], **SMALL, **change})
