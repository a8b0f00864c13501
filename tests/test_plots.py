"""What the figures show: labels, marks and numbers, not pixels."""

import numpy as np
import pytest

import ppm
from ppm.audit import MECHANISMS


@pytest.fixture(scope="module")
def study():
    return ppm.contraction_study([50, 100], replicates=20, draws=50, random_seed=1)


def texts(figure):
    found = [text.get_text() for axes in figure.axes for text in axes.texts]
    found += [axes.get_title() for axes in figure.axes]
    found += [label.get_text() for axes in figure.axes for label in axes.get_xticklabels()]
    suptitle = figure._supxlabel
    return found + ([suptitle.get_text()] if suptitle else [])


def test_one_panel_a_size_and_one_violin_a_mechanism(study):
    for figure in (ppm.plots.contraction_bounds(study), ppm.plots.contraction_means(study)):
        assert [axes.get_title() for axes in figure.axes] == ["n = 50", "n = 100"]
        assert [len(axes.collections) for axes in figure.axes] == [3, 3]
    closer = ppm.plots.contraction_bounds(study, ["Weighted", "Weighted-M"])
    assert [len(axes.collections) for axes in closer.axes] == [2, 2]


def test_exceedance_curves_show_the_estimates(study):
    epsilons = np.array([6.5, 7.0, 7.5])
    figure = ppm.plots.exceedance_curves(study, epsilons)
    estimate = study.exceedance(epsilons)["estimate"].sel(mechanism="Weighted-M", size=100)
    assert figure.axes[1].lines[1].get_ydata() == pytest.approx(estimate.values)


def test_a_synthesizer_without_bounds_keeps_its_place_and_says_so():
    bounds = {"Unweighted": np.array([1.0, 20.0]), "DPweighted": np.array([0.5, 3.25])}
    places = [*bounds, "Countweighted"]
    figure = ppm.plots.record_bound_violins(bounds, places=places, simulated=True)
    shown = texts(figure)
    assert "Δ = 20.00" in shown and "Δ = 3.25" in shown
    assert "Countweighted" in shown and ppm.plots.NOT_COMPUTED in shown
    assert any("Simulated" in text for text in shown)
    complete = texts(ppm.plots.record_bound_violins(bounds))
    assert ppm.plots.NOT_COMPUTED not in complete
    assert not any("Simulated" in text for text in complete)


def test_a_computed_countweighted_is_shown_in_its_place():
    rng = np.random.default_rng(2)
    bounds = {name: rng.gamma(2, 1, 50) for name in ("Unweighted", "Countweighted")}
    places = ["Unweighted", "DPweighted", "Countweighted"]
    shown = texts(ppm.plots.record_bound_violins(bounds, places=places))
    assert f"Δ = {bounds['Countweighted'].max():.2f}" in shown
    assert shown.count(ppm.plots.NOT_COMPUTED) == 1
    complete = {**bounds, "DPweighted": rng.gamma(2, 1, 50)}
    for figure in (
        ppm.plots.record_bound_violins(complete, places=places),
        ppm.plots.statistic_violins(complete, "mean", places=places),
    ):
        assert ppm.plots.NOT_COMPUTED not in texts(figure)
        assert len(figure.axes[0].collections) == 3


def test_a_gini_coefficient_has_no_unit():
    found = {"Data": np.array([0.41, 0.42, 0.43]), "Unweighted": np.array([0.40, 0.41, 0.42])}
    axis = ppm.plots.statistic_violins(found, "Gini coefficient").axes[0]
    assert axis.get_ylabel() == "Gini coefficient of income"
    # in thousands the axis would show 0 everywhere
    assert axis.yaxis.get_major_formatter()(0.41, 0) != "0"
    dollars = ppm.plots.statistic_violins({"Data": 1e5 * found["Data"]}, "90th percentile").axes[0]
    assert dollars.get_ylabel() == "90th percentile of income (thousand dollars)"
    assert dollars.yaxis.get_major_formatter()(41_000.0, 0) == "41"


def test_group_intervals_hold_the_middle_95_per_cent():
    rng = np.random.default_rng(3)
    found = {
        "old": {"Data": rng.normal(50_000, 500, 400)},
        "young": {"Data": rng.normal(30_000, 500, 400), "DPweighted": np.full(400, 31_000.0)},
    }
    figure = ppm.plots.group_intervals(found, "age", simulated=True)
    axes = figure.axes[0]
    ends = axes.collections[1].get_segments()[0][:, 1]
    assert ends == pytest.approx(np.quantile(found["old"]["Data"], (0.025, 0.975)))
    assert {"old", "young"} <= set(texts(figure)) and any("Simulated" in t for t in texts(figure))
    named = [text.get_text() for text in figure.legends[0].get_texts()]
    assert named == ["Data", "DPweighted"]
    figure.canvas.draw()


def test_statistics_and_sweep_mark_simulated_data_and_survive_a_constant():
    rng = np.random.default_rng(1)
    data, other = rng.normal(50_000, 500, 100), np.full(100, 60_000.0)
    figures = [
        ppm.plots.income_density(data, simulated=True),
        ppm.plots.statistic_violins({"Data": data, "Unweighted": other}, "mean", simulated=True),
        ppm.plots.sweep_violins(
            {
                "Data": data, "Unweighted": other, "DPweighted (0.7, 0)": data,
                "EMweighted (0.7, 0)": other,
            },
            [[0.7, 0.0]], "90th percentile", simulated=True,
        ),
    ]
    for figure in figures:
        assert any("Simulated" in text for text in texts(figure))
        figure.canvas.draw()


def test_the_worked_example_shows_both_bounds_and_every_weight():
    counts, bounds, weights = [1, 9], [2.0, 4.0], [1.0, 0.25]
    figure = ppm.plots.worked_example_weights(counts, bounds, weights, [2.0, 1.0], names=["a", "b"])
    assert {"1.00", "0.25"} <= set(texts(figure)) and "b\n9" in texts(figure)
    with pytest.raises(ValueError, match="one value a record"):
        ppm.plots.worked_example_weights(counts, bounds, weights, [2.0])


def test_posterior_densities_are_the_distributions_own():
    posterior = ppm.GammaPoisson([3, 4]).posterior()
    draws = {"Unweighted": posterior.rvs(50, random_state=1)}
    axes = ppm.plots.posterior_densities({"Unweighted": posterior}, draws).axes[0]
    x, y = axes.lines[0].get_data()
    assert np.allclose(y, posterior.pdf(x))
    with pytest.raises(ValueError, match="same labels"):
        ppm.plots.posterior_densities({"Unweighted": posterior}, {})


def test_a_kernel_is_shown_the_picture_not_the_object(study):
    picture = ppm.plots.contraction_means(study)._repr_png_()
    assert picture.startswith(b"\x89PNG")


def test_a_mechanism_has_one_colour_everywhere():
    assert ppm.plots.COLOURS["Weighted"] == ppm.plots.COLOURS["DPweighted"]
    assert len(set(ppm.plots.COLOURS.values())) == len(ppm.plots.COLOURS) - 1


@pytest.fixture(scope="module")
def audited():
    return ppm.audit_study([50, 200], replicates=5, draws=100, weight_draws=5, random_seed=1)


def heights(axes, label):
    return next(line.get_ydata() for line in axes.lines if line.get_label() == label)


def test_losses_by_record_stand_beside_both_bounds(audited):
    found = audited.audit(200, 0)
    figure = ppm.plots.loss_by_record(found)
    assert [axes.get_title() for axes in figure.axes] == ["Weighted", "Weighted-M", "Capped"]
    axes, here = figure.axes[1], found.sel(mechanism="Weighted-M")
    assert set(heights(axes, "2Δ")) == {2 * here["local_bound"].item()}
    assert set(heights(axes, "oscillation")) == {here["oscillation_bound"].item()}
    shown = heights(axes, "weights again, one seed")
    assert shown == pytest.approx(np.maximum(here["loss_common"], 1e-3))
    assert not np.allclose(shown, heights(axes, "weights held fixed"))


def test_the_loss_over_draws_is_that_of_the_worst_record(audited):
    found = audited.audit(50, 2)
    figure = ppm.plots.loss_over_draws({"One": found, "Two": found})
    here = found.sel(mechanism="Weighted")
    worst = here["loss_common"].argmax("left_out")
    line = next(line for line in figure.axes[0].lines if line.get_label() == "Weighted")
    expected = np.sort(np.abs(here["loss_over_draws"].isel(left_out=worst)))
    assert line.get_xdata() == pytest.approx(np.maximum(expected, 1e-3))
    assert np.all(np.diff(line.get_ydata()) < 0)


def test_audited_losses_are_shares_of_each_databases_own_bound(audited):
    figure = ppm.plots.audited_losses(audited)
    data = audited.dataset
    ratio = (data["loss_integrated"] / data["local_bound"] / 2).median("replicate")
    # each seed has a bound of its own
    worst = data["share_worst"].median("replicate")
    assert not np.allclose(worst, (data["loss_common"] / data["local_bound"] / 2).max("replicate"))
    for mechanism in MECHANISMS:
        for axes, expected in ((figure.axes[3], ratio), (figure.axes[2], worst)):
            shown = heights(axes, mechanism)
            assert shown == pytest.approx(expected.sel(mechanism=mechanism).values)


def test_shares_over_their_own_bound_are_estimates_with_their_intervals(audited):
    table = audited.over_own_bound(["fixed", "common"])
    figure = ppm.plots.over_own_bound(table, ["Weighted-M"])
    cell = table.xs(("Weighted-M", "common"), level=("mechanism", "loss"))
    assert heights(figure.axes[1], "Weighted-M") == pytest.approx(cell["estimate"].values)
    ends = [segment[:, 1] for segment in figure.axes[1].collections[0].get_segments()]
    assert np.allclose(ends, cell[["low", "high"]])


def test_bound_growth_has_one_line_for_the_maximum_and_one_for_each_share():
    draws = np.random.default_rng(1).exponential(size=(1_000, 3))
    tails = [
        ppm.tail_bound(draws[:number], outside=outside)
        for outside in (0.05, 0.02) for number in (400, 1_000)
    ]
    figure = ppm.plots.bound_growth(ppm.bound_by_draws(draws, [10, 100]), tails)
    shown = heights(figure.axes[0], "all but 0.02 of the posterior")
    assert shown == pytest.approx([tail.bound for tail in tails[2:]])
    assert len(figure.axes[0].lines) == 3


def test_detection_limits_have_their_corner_where_both_limits_meet():
    figure = ppm.plots.detection_limits({"1": 1.0, "404": 404.0})
    (coin, steep) = (figure.axes[0].lines[0], figure.axes[0].lines[1])
    x, y = coin.get_data()
    assert y[1] == pytest.approx(1 - x[1]) and np.log(y[1] / x[1]) == pytest.approx(1.0)
    assert steep.get_ydata()[1] == pytest.approx(1.0)
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == [
        "1", "404", "a coin",
    ]
