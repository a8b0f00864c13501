"""How the published bounds move with unstated settings."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
import yaml
from conftest import ROOT, by_definition
from scipy import stats

import ppm
from ppm_book import open_settings, plots, survey
from ppm_book.open_settings import PUBLISHED_BOUNDS, TRANSFORMATIONS, SettingsStudy

SMALL = {"chains": 2, "warmup": 20, "draws": 20, "random_seed": 4, "parallel": False}


@pytest.fixture(scope="module")
def data():
    data = survey.simulate(300, random_seed=5)
    table = data.table.copy()
    table.loc[:1, "income"] = -7000.0
    return replace(data, table=table)


class Noted(ppm.FiniteMixture):
    """Notes every fit: response, K, weights, seed, start and the fit itself."""

    fits = []

    def fit(self, weights=None, *, random_seed=None, initial=None, **settings):
        found = super().fit(weights, random_seed=random_seed, initial=initial, **settings)
        weights = np.ones(self.records) if weights is None else weights
        stream = np.random.default_rng(random_seed).random()
        self.fits.append((self.response, self.components, weights, stream, initial, found))
        return found


@pytest.fixture(scope="module")
def noted(data):
    """A small study, and the fits behind it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(open_settings, "FiniteMixture", Noted)
        Noted.fits = []
        found = open_settings.settings(data, (1, 2), transformations=TRANSFORMATIONS[:2], **SMALL)
    return found, Noted.fits


@pytest.fixture
def study(noted):
    return noted[0]


def test_the_published_bounds_are_the_ledgers():
    rows = yaml.safe_load((ROOT / "book" / "published.yaml").read_text("utf-8"))["rows"]
    claims = {row["id"]: row["published"] for row in rows if "published" in row}
    unweighted, *weighted = PUBLISHED_BOUNDS.values()
    assert claims["delta-unweighted"] == unweighted
    assert claims["delta-settings"] == weighted
    pairs = [x for pair in PUBLISHED_BOUNDS if pair for x in pair]
    assert claims["configuration-first"] == pairs


def test_the_transformations_of_incomes_that_have_no_logarithm():
    table = survey.simulate(60, random_seed=1).table.copy()
    table.loc[:3, "income"] = [-71138.0, -7000.0, 0.0, 50_000.0]
    floored, hyperbolic, shifted = (
        open_settings.transformed_income(table, name)[:4] for name in TRANSFORMATIONS
    )
    np.testing.assert_allclose(floored, [0, 0, 0, np.log(50_000)])
    np.testing.assert_allclose(hyperbolic[[0, 3]], [-np.log(2 * 71138), np.log(100_000)])
    assert hyperbolic[2] == 0
    np.testing.assert_allclose(shifted, [0, 0, np.log(7001), np.log(57_001)])
    more = open_settings.transformed_income(table, TRANSFORMATIONS[2], shift=71_139.0)
    assert more[0] == 0 < more[1]
    assert open_settings.transformed_income(table, TRANSFORMATIONS[0], floor=1000.0)[2] == np.log(
        1000
    )


def test_one_component_is_a_normal_regression_of_the_transformed_income(data, noted):
    predictors, _ = survey.predictor_matrix(data)
    responses = [open_settings.transformed_income(data, name) for name in TRANSFORMATIONS[:2]]
    seen = set()
    for response, components, *_, fit in noted[1]:
        (which,) = [i for i, y in enumerate(responses) if np.array_equal(y, response)]
        seen.add((which, components))
        if components == 1:
            posterior = fit["posterior"]
            centre = posterior["beta"].values[:, :, 0] @ predictors.T
            density = stats.norm.logpdf(response, centre, posterior["sigma"].values)
            np.testing.assert_allclose(fit["log_likelihood"]["response"], density, rtol=1e-9)
    assert seen == {(0, 1), (0, 2), (1, 1), (1, 2)}


def test_every_number_of_the_study_is_that_of_its_own_fit(data, noted):
    study, fits = noted
    assert study.draws == 40 and len(fits) == 28
    # no two fits have the same stream
    assert len({stream for *_, stream, _, _ in fits}) == 28
    for name in TRANSFORMATIONS[:2]:
        response = open_settings.transformed_income(data, name)
        for components in (1, 2):
            here = [
                rest for y, k, *rest in fits
                if k == components and np.array_equal(y, response)
            ]
            unweighted = here[0][-1]
            bounds = np.abs(unweighted["log_likelihood"]["response"].values).max(axis=(0, 1))
            risk = (bounds - bounds.min()) / np.ptp(bounds)
            for place, (pair, (weights, _, initial, fit)) in enumerate(
                zip(PUBLISHED_BOUNDS, here, strict=True)
            ):
                rule = np.ones(risk.size)
                if pair is not None:
                    rule = np.clip(pair[0] * (1.0 - risk) + pair[1], 0.0, 1.0)
                assert weights == pytest.approx(rule)
                # weighted fits start where the unweighted one ended
                assert initial is (None if pair is None else unweighted)
                log_lik = fit["log_likelihood"]["response"].values
                expected = by_definition(weights, log_lik)
                largest = np.abs(weights * log_lik).max(axis=-1).ravel()
                tenths = largest.reshape(10, 4).max(axis=1)
                found = study.dataset.sel(transformation=name, components=components).isel(
                    setting=place
                )
                assert found["setting"] == (
                    "Unweighted" if pair is None else f"({pair[0]:g}, {pair[1]:g})"
                )
                assert found["published"] == PUBLISHED_BOUNDS[pair]
                assert found["local_bound"] == pytest.approx(expected["local bound"])
                assert found["r_hat"] == pytest.approx(expected["R-hat"], rel=2e-4)
                assert found["typical"] == pytest.approx(expected["typical draw"])
                # ten maxima of a tenth of the draws each, as ten draws of one normal distribution
                assert found["error"] == pytest.approx(np.ptp(tenths) / 3.078)


def test_weights_lower_the_bounds_along_the_settings(study):
    bounds = study.dataset["local_bound"]
    assert bounds.shape == (2, 2, 7)
    assert (bounds.isel(setting=0) > bounds.isel(setting=1)).all()
    assert (bounds.isel(setting=1) > bounds.isel(setting=6)).all()


def test_a_combination_does_not_depend_on_the_others_or_on_the_cores(data, study):
    alone = open_settings.settings(data, [2], transformations=[TRANSFORMATIONS[1]], **SMALL)
    xr.testing.assert_identical(
        alone.dataset,
        study.dataset.sel(transformation=[TRANSFORMATIONS[1]], components=[2]),
    )
    shared = open_settings.settings(
        data, [1, 2], transformations=[TRANSFORMATIONS[1]], **SMALL | {"parallel": True}
    )
    xr.testing.assert_identical(
        shared.dataset, study.dataset.sel(transformation=[TRANSFORMATIONS[1]])
    )
    other = open_settings.settings(
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


def test_uneven_ratios_count_by_their_squares_and_their_own_errors():
    factors = np.array([2.0, 1.0, 1.0, 0.5, 1.0, 1.0, 3.0])
    study = known([1.0], error=0.1)
    study.dataset["local_bound"] *= xr.DataArray(factors, dims="setting")
    study.dataset["r_hat"][0, 0, 3] = 1.4
    study.dataset["r_hat_log_likelihood"][0, 0, 5] = 1.2
    (row,) = study.distances().to_dict("records")
    logs = np.log(factors)
    distance = np.sqrt(np.mean(logs**2))
    # the errors stay 0.1 of the published bounds, and a ratio's is that over the ratio
    error = np.sqrt(np.sum((logs / 7 / distance * 0.1 / factors) ** 2))
    assert row == pytest.approx(
        {
            "distance": distance, "error": error, "factor": np.exp(distance),
            "Unweighted / published": 2.0, "last / published": 3.0, "largest R-hat": 1.4,
            "largest R-hat, log-likelihood": 1.2,
        }
    )


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


def test_the_table_has_every_bound_and_ends_with_the_published_row(study):
    table = study.table()
    assert table.columns[0] == "Unweighted"
    assert list(table.index) == [
        *((name, k) for name in TRANSFORMATIONS[:2] for k in (1, 2)), ("as published", "")
    ]
    expected = [*study.dataset["local_bound"].values.reshape(4, 7), [*PUBLISHED_BOUNDS.values()]]
    np.testing.assert_array_equal(table.to_numpy(), np.array(expected))


def test_the_figure_has_a_line_for_every_k_and_the_published_one_in_every_panel(study):
    panels = plots.settings_bounds(study, simulated=True).axes
    assert [axes.get_title() for axes in panels] == list(TRANSFORMATIONS[:2])
    bounds = study.dataset["local_bound"]
    for axes in panels:
        here = bounds.sel(transformation=axes.get_title())
        assert [line.get_label() for line in axes.lines] == ["K = 1", "K = 2", "as published"]
        lines = [*here.values, list(PUBLISHED_BOUNDS.values())]
        for line, expected in zip(axes.lines, lines, strict=True):
            assert line.get_xdata().tolist() == list(range(7))
            assert line.get_ydata().tolist() == list(expected)
        ticks = [text.get_text() for text in axes.get_xticklabels()]
        assert ticks == list(study.dataset["setting"].values)


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
        open_settings.settings(data, **{"components": [1], **SMALL, **change})
