"""What the figures show: labels, marks and numbers, not pixels."""

import base64
import io
import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb
from matplotlib.image import imread
from scipy import stats

import ppm
from ppm_book import plots

NAMES = ["Unweighted", "Weighted", "Weighted-M"]


@pytest.fixture(scope="module")
def study():
    """A study of contraction as its chapter has it, of made-up numbers."""
    rng = np.random.default_rng(1)
    rows = itertools.product(NAMES, [50, 100], range(20))
    study = pd.DataFrame(rows, columns=["mechanism", "size", "database"])
    return study.assign(bound=rng.gamma(9, 0.4, 120), average=rng.normal(100, 1, 120))


def texts(figure):
    found = [text.get_text() for axes in figure.axes for text in axes.texts]
    found += [axes.get_title() for axes in figure.axes]
    found += [label.get_text() for axes in figure.axes for label in axes.get_xticklabels()]
    suptitle = figure._supxlabel
    return found + ([suptitle.get_text()] if suptitle else [])


def violins(axes):
    """Every violin as it is drawn: place, smallest, median and largest value, colour."""
    stems = [line for line in axes.lines if np.ptp(line.get_xdata()) == 0]
    marks = [line for line in axes.lines if line.get_linewidth() == 1.5]
    found = []
    for stem, mark in zip(stems, marks, strict=True):
        (place, _), (low, high) = stem.get_data()
        (middle,) = set(mark.get_ydata())
        assert min(mark.get_xdata()) <= place <= max(mark.get_xdata())
        found.append((place, low, middle, high, stem.get_color()))
    return found


def bodies(axes):
    """Extent of every violin's body: (left, right, bottom, top)."""
    extents = [c.get_paths()[0].get_extents() for c in axes.collections]
    return [(box.x0, box.x1, box.y0, box.y1) for box in extents]


def violin_of(place, sample, label):
    """What a violin of a sample must look like."""
    return (
        place, *(pytest.approx(float(f(sample))) for f in (np.min, np.median, np.max)),
        plots.COLOURS[label],
    )


def tick_labels(axis):
    """Texts of an axis by their places."""
    return dict(
        zip(axis.get_ticklocs(), (text.get_text() for text in axis.get_ticklabels()), strict=True)
    )


def heights(axes, label):
    return next(line.get_ydata() for line in axes.lines if line.get_label() == label)


def segments(axes):
    """Both ends of every vertical line of ``vlines``: (place, low, high)."""
    return [
        (segment[0, 0], segment[0, 1], segment[1, 1])
        for collection in axes.collections if hasattr(collection, "get_segments")
        for segment in collection.get_segments()
    ]


@pytest.mark.parametrize(("column", "line"), [("bound", {"M": 3.5}), ("average", {"true μ": 100})])
def test_every_violin_of_the_simulation_stands_over_its_own_name(study, column, line):
    for mechanisms in (NAMES, ["Weighted-M", "Unweighted"]):
        chosen = pd.concat(study[study["mechanism"] == name] for name in mechanisms)
        figure = plots.by_size(chosen, column, "its label", line)
        assert [axes.get_title() for axes in figure.axes] == ["n = 50", "n = 100"]
        for axes, size in zip(figure.axes, (50, 100), strict=True):
            names = tick_labels(axes.xaxis)
            assert names == dict(enumerate(mechanisms))
            here = study[study["size"] == size].groupby("mechanism")[column]
            expected = [
                violin_of(place, here.get_group(label), label) for place, label in names.items()
            ]
            assert violins(axes) == expected
            for body, (place, low, _, high, _) in zip(bodies(axes), expected, strict=True):
                assert body == pytest.approx((place - 0.4, place + 0.4, low.expected,
                                              high.expected))
            for name, height in line.items():
                assert set(heights(axes, name)) == {height}


def test_every_exceedance_curve_and_band_is_that_of_its_panel_and_size(study):
    shares = study.rename(columns={"database": "ε", "bound": "share"})
    shares = shares.assign(low=shares["share"] - 1, high=shares["share"] + 2)
    figure = plots.exceedance_curves(shares, 7.0)
    assert [axes.get_title() for axes in figure.axes] == NAMES
    for axes in figure.axes:
        *curves, dashed = axes.lines
        assert list(dashed.get_xdata()) == [7.0, 7.0]
        for curve, band, size in zip(curves, axes.collections, (50, 100), strict=True):
            assert curve.get_label() == f"n = {size}"
            cell = shares[(shares["mechanism"] == axes.get_title()) & (shares["size"] == size)]
            assert np.allclose(curve.get_xydata(), cell[["ε", "share"]])
            corners = {tuple(corner) for corner in band.get_paths()[0].vertices}
            assert corners == {tuple(c) for end in ("low", "high") for c in cell[["ε", end]].values}


@pytest.mark.parametrize("draw", ["bounds", "statistic"])
def test_every_synthesizers_violin_stands_in_its_place(draw):
    rng = np.random.default_rng(2)
    places = ["Data", "Unweighted", "EMweighted", "Countweighted"]
    samples = {name: rng.gamma(2, k, 50) for k, name in enumerate(places, start=1)}
    if draw == "bounds":
        figure = plots.record_bound_violins(samples, simulated=True)
        axes = figure.axes[0]
        # Δ is written above the violin that it belongs to
        notes = {text.get_text(): text.xy for text in axes.texts if "Δ" in text.get_text()}
        assert notes == {
            f"Δ = {sample.max():.2f}": (places.index(name), pytest.approx(sample.max()))
            for name, sample in samples.items()
        }
        assert axes.get_ylim()[0] == 0 and axes.get_ylim()[1] > max(map(np.max, samples.values()))
        ticks = tick_labels(axes.yaxis)
        assert len(ticks) > 3 and all(float(text) == place for place, text in ticks.items())
    else:
        figure = plots.statistic_violins({"Gini coefficient": samples, "mean": samples})
        axes = figure.axes[1]
        # a gamma distribution is skewed: its median is not its mean
        (line,) = [line for line in axes.lines if line.get_linestyle() == "--"]
        assert set(line.get_ydata()) == {np.median(samples["Data"])}
    assert any("Simulated" in text for text in texts(figure)) == (draw == "bounds")
    assert tick_labels(axes.xaxis) == dict(enumerate(places))
    assert violins(axes) == [
        violin_of(place, samples[name], name) for place, name in enumerate(places)
    ]


def test_a_gini_coefficient_has_no_unit():
    found = {"Data": np.array([0.41, 0.42, 0.43]), "Unweighted": np.array([0.40, 0.41, 0.42])}
    thousands = {"Data": 1e5 * found["Data"]}
    axis, dollars = plots.statistic_violins(
        {"Gini coefficient": found, "90th percentile": thousands}
    ).axes
    assert axis.get_title() == "Gini coefficient of income"
    assert axis.get_ylabel() == "Gini coefficient"
    # in thousands the axis would show 0 everywhere
    assert axis.yaxis.get_major_formatter()(0.41, 0) != "0"
    assert dollars.get_ylabel() == "thousand dollars"
    assert dollars.yaxis.get_major_formatter()(41_000.0, 0) == "41"


def test_the_sweep_has_dpweighted_to_the_left_and_emweighted_to_the_right_of_each_setting():
    rng = np.random.default_rng(5)
    pairs = [(0.7, 0.0), (0.5, -0.3)]
    names = ["Data", "Unweighted"] + [
        f"{mechanism} ({scale:g}, {shift:g})"
        for scale, shift in pairs for mechanism in ("DPweighted", "EMweighted")
    ]
    samples = {name: rng.gamma(2, 1e4 * k, 80) for k, name in enumerate(names, start=1)}
    placed = {
        (name.partition(" ")[0], name.partition(" ")[2] or name): sample
        for name, sample in samples.items()
    }
    figure = plots.sweep_violins({"K = 10": placed, "K = 1": placed}, "mean", simulated=True)
    axes, other = figure.axes
    assert axes.get_title() == "K = 10: mean of income" and other.get_title()[:5] == "K = 1"
    assert any("Simulated" in text for text in texts(figure))
    assert tick_labels(axes.xaxis) == {
        0: "Data", 1: "Unweighted", 2: "(0.7, 0)", 3: "(0.5, -0.3)"
    }
    places = {
        "Data": 0, "Unweighted": 1, "DPweighted (0.7, 0)": 1.97, "EMweighted (0.7, 0)": 2.03,
        "DPweighted (0.5, -0.3)": 2.97, "EMweighted (0.5, -0.3)": 3.03,
    }
    assert violins(axes) == [
        violin_of(pytest.approx(place), samples[name], name.partition(" ")[0])
        for name, place in places.items()
    ]
    for (left, right, low, high), (name, place) in zip(
        bodies(axes), places.items(), strict=True
    ):
        sides = (0.0 if name[:2] == "EM" else 0.4, 0.0 if name[:2] == "DP" else 0.4)
        assert (left, right) == pytest.approx((place - sides[0], place + sides[1]), abs=1e-6)
        assert (low, high) == pytest.approx((samples[name].min(), samples[name].max()))
    (line,) = [line for line in axes.lines if line.get_linestyle() == "--"]
    assert set(line.get_ydata()) == {np.median(samples["Data"])}
    (legend,) = figure.legends
    shown = [
        (text.get_text(), patch.get_facecolor()[:3])
        for text, patch in zip(legend.get_texts(), legend.get_patches(), strict=True)
    ]
    assert shown == [
        (name, to_rgb(plots.COLOURS[name])) for name in ("DPweighted", "EMweighted")
    ]


def test_bounds_along_the_settings_have_a_line_each_and_the_papers_is_dashed():
    bounds = pd.DataFrame(
        {"DPweighted, K = 1": [9.0, 4.0], "DPweighted, the paper": [10.1, np.nan]}, ["a", "b"]
    )
    axes = plots.bounds_along(bounds, simulated=True).axes[0]
    assert [line.get_ydata().tolist() for line in axes.lines[:1]] == [[9.0, 4.0]]
    assert [line.get_linestyle() for line in axes.lines] == ["-", "--"]
    assert tick_labels(axes.xaxis) == {0: "a", 1: "b"} and axes.get_yscale() == "log"


def test_the_density_of_income_is_drawn_with_its_median_and_its_ninth_decile():
    income = np.random.default_rng(6).lognormal(11, 0.8, 500)
    axes = plots.income_density(income).axes[0]
    curve, middle, upper = axes.lines
    x, y = curve.get_data()
    # a density: it integrates to 1 over the line, and lies where the records are
    assert np.trapezoid(y, x) == pytest.approx(1.0, abs=0.01)
    # smoothed by a tenth of the spread
    density = stats.norm.pdf(x[:, None], income, 0.1 * income.std(ddof=1)).mean(axis=1)
    assert y == pytest.approx(density, rel=1e-6, abs=1e-12)
    assert set(middle.get_xdata()) == {np.median(income)}
    assert set(upper.get_xdata()) == {np.quantile(income, 0.9)}
    assert [(text.get_text(), text.xy[0]) for text in axes.texts] == [
        (f"50% below {np.median(income):,.0f}", np.median(income)),
        (f"90% below {np.quantile(income, 0.9):,.0f}", np.quantile(income, 0.9)),
    ]
    assert axes.xaxis.get_major_formatter()(41_000.0, 0) == "41"


def test_statistics_mark_simulated_data_and_survive_a_constant():
    rng = np.random.default_rng(1)
    data, other = rng.normal(50_000, 500, 100), np.full(100, 60_000.0)
    figures = [
        plots.income_density(data, simulated=True),
        plots.statistic_violins({"mean": {"Data": data, "Unweighted": other}}, simulated=True),
    ]
    for figure in figures:
        assert any("Simulated" in text for text in texts(figure))
        figure.canvas.draw()


def test_the_worked_example_shows_both_bounds_and_every_weight():
    counts, bounds, weights, weighted = [1, 9, 4], [2.0, 4.0, 1.0], [1.0, 0.25, 0.8], [2.5, 1.0, .7]
    figure = plots.worked_example_weights(counts, bounds, weights, weighted, names="abc")
    upper, lower = figure.axes
    for label, values in (("Unweighted", bounds), ("Weighted", weighted)):
        colour = plots.COLOURS[label]
        (marks,) = [line for line in upper.lines if line.get_label() == label]
        assert marks.get_xdata().tolist() == [0, 1, 2] and marks.get_color() == colour
        assert marks.get_ydata().tolist() == values
        level, = [
            line.get_ydata()[0] for line in upper.lines
            if line.get_label().startswith("_") and line.get_color() == colour
        ]
        assert level == max(values)
        (note,) = [text for text in upper.texts if text.get_text() == f"local bound, {label}"]
        assert note.xy[1] == max(values)
    # which marks are which is told by the legend alone
    named = [text.get_text() for text in upper.get_legend().get_texts()]
    assert named == ["Unweighted", "Weighted"]
    assert segments(upper) == list(zip((0, 1, 2), weighted, bounds, strict=True))
    assert upper.get_ylim()[0] < 0 and upper.get_ylim()[1] > max(bounds)
    bars = [(bar.get_x() + bar.get_width() / 2, bar.get_height()) for bar in lower.patches]
    assert bars == [pytest.approx(pair) for pair in zip((0, 1, 2), weights, strict=True)]
    assert [text.get_text() for text in lower.texts] == ["1.00", "0.25", "0.80"]
    assert tick_labels(lower.xaxis) == {0: "a\n1", 1: "b\n9", 2: "c\n4"}
    with pytest.raises(ValueError, match="one value a record"):
        plots.worked_example_weights(counts, bounds, weights, [2.0])


def test_posterior_densities_are_the_distributions_own_over_the_draws_histograms():
    posteriors = {
        "Unweighted": ppm.GammaPoisson([3, 4]).posterior(),
        "Weighted": ppm.GammaPoisson([3, 4, 9]).posterior([1.0, 0.5, 0.1]),
    }
    draws = {
        name: posterior.rvs((2, 50), random_state=1) for name, posterior in posteriors.items()
    }
    axes = plots.posterior_densities(posteriors, draws).axes[0]
    edges = np.linspace(*axes.get_xlim(), 61)
    bars = np.array([bar.get_height() for bar in axes.patches]).reshape(2, 60)
    for line, heights_of, (name, posterior) in zip(
        axes.lines, bars, posteriors.items(), strict=True
    ):
        x, y = line.get_data()
        assert line.get_label() == name and np.allclose(y, posterior.pdf(x))
        histogram, _ = np.histogram(draws[name], edges, density=True)
        assert heights_of == pytest.approx(histogram)
        # the axis reaches to where next to nothing is left of either
        assert posterior.cdf(edges[0]) <= 1.0001e-4 and posterior.sf(edges[-1]) <= 1.0001e-4
    with pytest.raises(ValueError, match="same labels"):
        plots.posterior_densities(posteriors, {})


def test_a_kernel_is_shown_the_picture_not_the_object(study):
    picture = plots.by_size(study, "average", "μ", {})._repr_png_()
    assert picture.startswith(b"\x89PNG")


def test_a_mechanism_has_one_colour_everywhere():
    assert plots.COLOURS["Weighted"] == plots.COLOURS["DPweighted"]
    assert len(set(plots.COLOURS.values())) == len(plots.COLOURS) - 1


SHOWN = ["Range-capped on T", "Weighted", "Weighted-M"]


@pytest.fixture(scope="module")
def shares():
    index = pd.MultiIndex.from_product([SHOWN, [50, 200], range(5)])
    values = np.random.default_rng(1).exponential(0.4, (len(index), 4))
    return pd.DataFrame(values, index, columns=[*KINDS])


KINDS = {
    "fixed": "weights held fixed",
    "common": "weights again, one seed",
    "worst": "weights again, worst seed",
    "integrated": "weights again, integrated out",
}


def test_losses_by_record_stand_beside_both_bounds():
    counts = np.random.default_rng(1).poisson(100, 200)
    found = ppm.audits.exact(counts, public=(90, 110), draws=100, weight_draws=5, random_seed=1)
    figure = plots.loss_by_record(found)
    assert [axes.get_title() for axes in figure.axes] == ["Weighted", "Weighted-M", "Capped"]
    for axes in figure.axes:
        here = found.sel(mechanism=axes.get_title())
        assert set(heights(axes, "2Δ")) == {2 * here["local_bound"].item()}
        assert set(heights(axes, "oscillation")) == {here["oscillation_bound"].item()}
        for kind in ("fixed", "common", "integrated"):
            (line,) = [line for line in axes.lines if line.get_label() == KINDS[kind]]
            assert line.get_xdata().tolist() == found["left_out"].values.tolist()
            # on a logarithmic axis a loss of 0 would vanish
            assert line.get_ydata() == pytest.approx(np.maximum(here[f"loss_{kind}"], 1e-3))
    axes = figure.axes[1]
    shown = [heights(axes, KINDS[kind]) for kind in ("fixed", "common", "integrated")]
    assert not any(np.allclose(one, other) for one, other in zip(shown, shown[1:], strict=False))


def test_audited_losses_are_shares_of_each_databases_own_bound(shares):
    figure = plots.audited_losses(shares)
    for axes, (kind, label) in zip(figure.axes, KINDS.items(), strict=True):
        assert axes.get_title() == label
        # a hundredth of a bound can be told from none of it
        assert axes.get_yscale() == "log" and set(axes.lines[0].get_ydata()) == {1.0}
        expected = [
            (place + offset, *(function(shares.loc[mechanism, size][kind])
                               for function in (np.min, np.max)))
            for mechanism, offset in zip(SHOWN, (-0.33, 0, 0.33), strict=True)
            for place, size in enumerate((50, 200))
        ]
        assert segments(axes) == [pytest.approx(tuple(map(float, cell))) for cell in expected]
        for mechanism in SHOWN:
            middle = [shares.loc[mechanism, size][kind].median() for size in (50, 200)]
            assert heights(axes, mechanism) == pytest.approx(middle)
    # the panels share their axis, named below
    for axes in figure.axes[2:]:
        assert tick_labels(axes.xaxis) == {0: "50", 1: "200"}


def test_shares_over_their_own_bound_are_estimates_with_their_intervals():
    shown, kinds = ("Weighted", "Weighted-M", "Capped", "Capped on T"), ("fixed", "common")
    index = pd.MultiIndex.from_product(
        [shown, [50, 200], kinds], names=["mechanism", "size", "loss"]
    )
    values = np.sort(np.random.default_rng(1).uniform(size=(len(index), 3)), axis=1)
    table = pd.DataFrame(values, index, columns=["low", "estimate", "high"])
    figure = plots.over_own_bound(table)
    for axes, kind in zip(figure.axes, kinds, strict=True):
        assert axes.get_title() == KINDS[kind] and tick_labels(axes.xaxis) == {0: "50", 1: "200"}
        # the one legend is true of every panel
        assert {line.get_marker() for line in axes.lines} == {"o"}
        ends = segments(axes)
        for number, mechanism in enumerate(shown):
            cell = table.xs((mechanism, kind), level=("mechanism", "loss"))
            assert heights(axes, mechanism) == pytest.approx(cell["estimate"].values)
            here = np.array(ends[2 * number : 2 * number + 2])
            np.testing.assert_allclose(here[:, 1:], cell[["low", "high"]])
            np.testing.assert_allclose(here[:, 0], np.arange(2) - 0.24 + 0.16 * number)


def test_bound_growth_has_one_line_for_the_maximum_and_one_for_each_share():
    draws = np.random.default_rng(1).exponential(size=(1_000, 3))
    tails = [
        ppm.tail_bound(draws[:number], tail_probability=outside)
        for outside in (0.05, 0.02) for number in (400, 1_000)
    ]
    expected = ppm.lipschitz.bound_by_draws(draws, [10, 100])
    axes = plots.bound_growth(expected, tails).axes[0]
    rising, *others = axes.lines
    assert rising.get_xdata().tolist() == [10, 100]
    assert rising.get_ydata().tolist() == expected.tolist()
    assert [line.get_label() for line in others] == [
        "all but 0.05 of the posterior", "all but 0.02 of the posterior"
    ]
    for line, here in zip(others, (tails[:2], tails[2:]), strict=True):
        assert line.get_xdata().tolist() == [400, 1_000]
        assert line.get_ydata().tolist() == [tail.bound for tail in here]


def test_detection_limits_have_their_corner_where_both_limits_meet():
    figure = plots.detection_limits({"1": 1.0, "404": 404.0})
    (coin, steep) = (figure.axes[0].lines[0], figure.axes[0].lines[1])
    x, y = coin.get_data()
    assert y[1] == pytest.approx(1 - x[1]) and np.log(y[1] / x[1]) == pytest.approx(1.0)
    assert steep.get_ydata()[1] == pytest.approx(1.0)
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == [
        "1", "404", "a coin",
    ]


def test_errors_over_epsilon_are_medians_and_say_of_which_kind_they_are():
    data = np.random.default_rng(1).lognormal(10, 1, 300)
    releases = data * np.random.default_rng(2).uniform(0.8, 1.1, (5, 300))
    near, far = (ppm.utility.release_errors(data, releases * by) for by in (1.0, 1.5))
    figure = plots.utility_by_epsilon(
        {"Limits": {0.5: far, 2.0: near}},
        {"DPweighted (0.7, 0)": (30.0, near)},
        ["mean", "median", "Gini coefficient"],
    )
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title() for axes in shown] == ["mean", "median", "Gini coefficient"]
    for axes in shown:
        (line,) = (part for part in axes.lines if part.get_label() == "Limits (strict)")
        (point,) = (
            part for part in axes.lines if part.get_label() == "DPweighted (0.7, 0) (local)"
        )
        np.testing.assert_allclose(line.get_xdata(), [0.5, 2.0])
        medians = [found[axes.get_title()].median() for found in (far, near)]
        np.testing.assert_allclose(line.get_ydata(), medians)
        np.testing.assert_allclose(point.get_xdata(), [30.0])
        np.testing.assert_allclose(point.get_ydata(), medians[1:])


def of_three_mechanisms(errors, **options):
    """Errors over ε of two strict mechanisms and three local fits."""
    strict = {name: {0.5: errors, 2.0: errors} for name in ("Limits", "Histogram")}
    names = ("Unweighted", "DPweighted (0.7, 0)", "DPweighted (0.5, -0.3)")
    local = {name: (30.0 - place, errors) for place, name in enumerate(names)}
    return plots.utility_by_epsilon(strict, local, ["mean", "10th percentile"], **options)


def hollow(axes):
    """Places of the marks that are hollow."""
    return {
        (x, y)
        for line in axes.lines
        if line.get_marker() != "None"
        and line.get_markerfacecolor() == "white"
        and line.get_fillstyle() == "full"
        for x, y in line.get_xydata().tolist()
    }


def test_marks_of_fits_whose_chains_disagree_are_hollow_and_the_legend_says_so():
    data = np.random.default_rng(1).lognormal(10, 1, 300)
    errors = ppm.utility.release_errors(data, data * np.linspace(0.8, 1.1, 5)[:, None])
    found = of_three_mechanisms(errors, disagree=[("Limits", 2.0), "DPweighted (0.7, 0)"])
    legend = "hollow: chains disagree"
    for axes in found.axes:
        middle = errors[axes.get_title()].median()
        assert hollow(axes) == {(2.0, middle), (29.0, middle)}
    assert legend in [text.get_text() for text in found.legends[0].get_texts()]
    # the marks of the others are full, or half full, and there is nothing to say
    plain = of_three_mechanisms(errors)
    assert not any(hollow(axes) for axes in plain.axes)
    assert legend not in [text.get_text() for text in plain.legends[0].get_texts()]
    # a mark is not a further row of the data
    pd.testing.assert_frame_equal(plots.drawn_data(found), plots.drawn_data(plain))


@pytest.mark.parametrize("name", ["Limits", ("Limits", 3.0), ("Cells", 0.5), "EMweighted"])
def test_chains_of_a_fit_that_is_not_drawn_are_refused(name):
    errors = ppm.utility.release_errors([1.0, 2.0, 4.0], [[1.0, 2.0, 5.0]])
    with pytest.raises(ValueError, match="disagree must hold names of local, or pairs"):
        of_three_mechanisms(errors, disagree=[name])


def test_a_statistic_that_is_0_in_the_data_has_a_panel_that_says_so():
    data = np.array([0.0, 0.0, 0.0, 20.0, 30.0, 40.0])
    errors = ppm.utility.release_errors(data, [data + 1.0, data + 2.0])
    figure = of_three_mechanisms(errors)
    mean, percentile = figure.axes
    assert [text.get_text() for text in percentile.texts] == [plots.NO_ERROR]
    assert not mean.texts
    brought = shown(figure)
    assert brought["numbers"].startswith("mean: from ")
    assert "10th" not in brought["numbers"]


def shown(figure):
    """What a figure brings to a page besides its picture."""
    return figure._repr_mimebundle_()[plots.FIGURE_TYPE]


def test_a_figure_brings_its_numbers_its_data_and_a_narrow_picture(study):
    figure = plots.by_size(study, "bound", "Δ", {"M": 3.5})
    before = figure._repr_png_()
    brought = shown(figure)
    # showing it twice is showing the same
    assert figure._repr_png_() == before
    data = pd.read_csv(io.StringIO(brought["data"]))
    bounds = study.groupby(["mechanism", "size"])["bound"].get_group(("Weighted", 100))
    (row,) = data[(data["panel"] == "n = 100") & (data["series"] == "Weighted")].to_dict("records")
    assert row["low"] == pytest.approx(bounds.min())
    assert row["y"] == pytest.approx(np.median(bounds))
    assert row["high"] == pytest.approx(bounds.max())
    assert f"Weighted {np.median(bounds):.3g}" in brought["numbers"].partition("n = 100")[2]
    wide, narrow = (
        imread(io.BytesIO(picture))
        for picture in (before, base64.b64decode(brought["narrow"]))
    )
    # two panels side by side become two one below the other
    assert wide.shape[1] > wide.shape[0] and narrow.shape[0] > narrow.shape[1]


def test_lines_and_bars_are_among_the_data_of_a_figure_and_marks_of_others_are_not():
    data = plots.drawn_data(plots.detection_limits({"ε = 2": 2.0}))
    assert set(data["series"]) == {"ε = 2", "a coin"}
    limit = data[data["series"] == "ε = 2"]
    corner = 1 / (1 + np.exp(2.0))
    np.testing.assert_allclose(limit["x"].astype(float), [0, corner, 1])
    np.testing.assert_allclose(limit["y"], [0, 1 - corner, 1])
    bounds = np.array([3.0, 2.0, 9.0])
    weights = ppm.record_weights(bounds)
    figure = plots.worked_example_weights([3, 5, 20], bounds, weights, weights * bounds)
    bars = plots.drawn_data(figure).query("series == 'bar'")
    np.testing.assert_allclose(bars["y"], weights)
    assert list(bars["x"]) == ["3", "5", "20"]


def test_coverage_stands_in_the_panel_and_row_it_belongs_to():
    rules = ["one release as real", "partially synthetic"]
    levels = {
        "model": ["counts"], "quantity": ["mean", "share above 113"],
        "mechanism": ["Plug-in", "Unweighted", "Limits"], "rule": rules,
    }
    index = pd.MultiIndex.from_product(levels.values(), names=levels)
    coverage = pd.Series(np.linspace(0.6, 0.99, len(index)), index)
    figure = plots.coverage_by_rule(coverage, rules)
    titles = [axes.get_title() for axes in figure.axes if axes.get_visible()]
    assert titles == ["counts: mean", "counts: share above 113"]
    axes = figure.axes[1]
    rows = [label.get_text() for label in axes.get_yticklabels()]
    for line in axes.lines[1:]:
        for name, x in zip(rows, line.get_xdata(), strict=True):
            place = ("counts", "share above 113", name, line.get_label())
            assert x == pytest.approx(100 * coverage[place])
    assert [line.get_label() for line in axes.lines[1:]] == rules


def test_the_figure_of_rules_marks_every_database_and_the_width():
    losses = {"disjoint": [0.5, 0.9, 0.7], "twice": [1.8, 1.2]}
    figure = plots.losses_by_rule(losses, 1.0)
    axes = figure.axes[0]
    dashed, *marks = axes.lines
    assert list(dashed.get_ydata()) == [1.0, 1.0]
    for line, (name, found) in zip(marks, losses.items(), strict=True):
        assert line.get_label() == name and list(line.get_ydata()) == found
    assert plots.numbers_in_words(figure) == (
        "Largest loss (nats): medians disjoint 0.7, twice 1.5."
    )


def test_the_figure_of_bias_and_spread_has_a_line_for_every_way():
    index = pd.MultiIndex.from_product([["whole", "shards"], [0.5, 1.0]], names=["way", "ε"])
    table = pd.DataFrame(
        {"bias (%)": [1, 2, 3, 4], "standard deviation (%)": [8, 7, 6, 5]}, index
    )
    figure = plots.bias_and_spread(table)
    for axes, column in zip(figure.axes, table, strict=True):
        assert axes.get_title() == column
        for line, way in zip(axes.lines[1:], ["whole", "shards"], strict=True):
            assert line.get_label() == way
            assert list(line.get_ydata()) == table[column][way].tolist()


def test_labels_of_panels_for_a_phone_are_no_longer_than_a_panel(monkeypatch):
    figure, panels = plt.subplots(2, 1)
    for axes in panels:
        axes.set_ylabel("90th percentile of income (thousand dollars)")
    monkeypatch.setattr(plots, "_png", lambda figure, **_: panels[0].get_ylabel())
    assert plots._narrow(figure) == "90th percentile of\nincome (thousand\ndollars)"
    assert "\n" not in panels[0].get_ylabel()
