"""At the ends of what they accept, public functions work, or refuse in one line."""

import numpy as np
import pytest

import ppm
from ppm_book import plots

RNG = np.random.default_rng(6)
VALUES = RNG.normal(size=12)


def mixture(response=VALUES, **settings):
    X = np.column_stack([np.ones(len(response)), np.linspace(-1.0, 1.0, len(response))])
    settings = {"components": 2, "chains": 2, "warmup": 10, "parallel": False} | settings
    return ppm.FiniteMixture(response, X, **settings)


# ---- settings ---------------------------------------------------------------------------------


@pytest.mark.parametrize("relative", [True, False])
def test_a_radius_that_holds_nobody_or_everybody(relative):
    values = np.linspace(1.0, 40.0, 12)
    for radius, weight, matches in ((1e-300, 0.0, 12), (1e-9, 0.0, 12), (1e308, 1.0, 0)):
        assert np.all(ppm.count_weights(values, radius=radius, relative=relative) == weight)
        risk = ppm.risk.match_risk(values, values[None], radius=radius, relative=relative)
        assert risk["true unique matches"].item() == matches


def test_weights_are_cut_to_0_or_1_where_numbers_overflow():
    bounds, steep = np.linspace(1.0, 9.0, 5), {"scale": 1.7e308}
    assert np.all(ppm.record_weights(bounds, shift=1.7e308, **steep) == 1.0)
    assert np.all(ppm.record_weights(bounds, shift=-1.7e308, **steep) == 0.0)
    assert np.all(ppm.scalar_weights([1e-310, 1e-310], epsilon=9.0) == 1.0)
    assert ppm.exceedance([1.7e308, 1.0], 1e308).estimate == 0.5


# ---- counts -----------------------------------------------------------------------------------


def test_counts_and_means_that_fit_into_no_whole_number_are_refused():
    with pytest.raises(ValueError, match="^counts must hold whole numbers"):
        ppm.GammaPoisson([3.0, 1e19])
    synthesizer = ppm.GammaPoisson([3, 4], shape=1.0, rate=1e-300)
    fit = synthesizer.fit(np.zeros(2), draws=5, random_seed=1)
    with pytest.raises(ValueError, match="^lam value too large"):
        synthesizer.predict(fit, releases=1)


def test_a_record_without_weight_has_no_loss_even_where_the_mean_underflows():
    synthesizer = ppm.GammaPoisson([3, 4])
    fit = synthesizer.fit(np.zeros(2), draws=200, random_seed=1)
    assert (fit["posterior"]["mu"] == 0).any()
    assert not synthesizer.leave_one_out_loss(fit, np.zeros(2)).values.any()


# ---- incomes and the mixture ------------------------------------------------------------------


def test_a_gini_coefficient_of_nothing_is_not_a_number_and_no_warning():
    assert np.isnan(ppm.utility.resample(np.zeros(5), "Gini coefficient", resamples=3)).all()


def test_equal_incomes_have_no_density():
    for income in ([], [5.0], np.full(9, 5.0)):
        with pytest.raises(ValueError, match="^income must hold at least two different values"):
            plots.income_density(income)


def test_infinite_bounds_are_written_and_not_drawn():
    figure = plots.record_bound_violins(
        {"Unweighted": [1.0, np.inf, 2.0], "DPweighted": [np.inf] * 3}
    )
    assert [text.get_text() for text in figure.axes[0].texts] == ["Δ = inf"] * 2
    assert figure.axes[0].get_ylim() == (0.0, 4.0)
    figure._repr_png_()


@pytest.mark.parametrize(
    "name", ["coefficient_df", "residual_df", "coefficient_scale", "residual_scale"]
)
@pytest.mark.parametrize("value", [1e-300, 1e300])
def test_priors_that_double_precision_cannot_hold_are_refused(name, value):
    with pytest.raises(ValueError, match=f"^{name} must be"):
        mixture(**{name: value})


@pytest.mark.parametrize("prior", [(1e300, 1.0), (1e-300, 1.0), (1.0, 1e300), (1.0, 1e-300)])
@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0])
def test_any_prior_of_the_concentration_comes_to_an_end(prior, weight):
    fit = mixture(concentration_prior=prior, chains=1).fit(
        np.full(12, weight), draws=5, random_seed=1
    )
    assert np.isfinite(fit["log_likelihood"]["response"]).all()


def test_the_widest_prior_and_the_largest_numbers_still_give_a_fit():
    for value in (1e-6, 1e6):
        synthesizer = mixture(coefficient_scale=value, residual_scale=value)
        assert np.isfinite(synthesizer.fit(draws=5, random_seed=1)["posterior"]["beta"]).all()
    with pytest.raises(ValueError, match="^response must be finite; record 3 .* above 1e50"):
        mixture(np.where(np.arange(12) == 3, 1e51, VALUES))
