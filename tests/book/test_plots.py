"""What the figures' helpers draw, and what a figure brings to its page."""

import inspect
import re
import warnings
from base64 import b64decode

import arviz as az
import nbformat
import numpy as np
import pytest
from matplotlib import pyplot
from nbclient import NotebookClient

from ppm_book.chapters import plots, running, still
from ppm_book.chapters.style import NARROW_TYPE
from ppm_book.tools import studio


def test_what_has_no_number_has_no_place_and_rounding_turns_no_interval_around():
    _, (axes,) = plots.panels(size=(3, 3))
    plots.interval(axes, [0, 1], [2, 0.1], [3, np.inf], [7, np.inf], "Weighted")
    plots.interval(axes, [2], 0.3, 0.1 + 0.2, 0.3, "Capped")
    found = {marks.get_label(): marks[2][0].get_segments() for marks in axes.containers}
    drawn, nothing = found["Weighted"]
    assert drawn.tolist() == [[0, 2], [0, 7]] and not len(nothing)
    assert np.allclose(found["Capped"], [[[2, 0.3], [2, 0.3]]])


def test_a_violin_ends_where_its_values_end_and_few_values_are_shown_as_points():
    rng = np.random.default_rng(1)
    groups = {"Weighted": rng.gamma(2, size=20), "Data": rng.gamma(2, size=21)}
    groups |= {"infinite": [np.inf, 1.0, 2.0], "nothing": [np.nan], "alike": [3.0, 3.0]}
    _, (axes,) = plots.panels(size=(3, 3))
    plots.violins(axes, groups)
    bodies = [
        one.get_paths()[0].vertices[:, 1]
        for one in axes.collections
        if one.get_facecolor().size
    ]
    drawn = [groups["Weighted"], groups["Data"], [1.0, 2.0], [3.0]]
    for body, values in zip(bodies, drawn, strict=True):
        assert np.isclose([body.min(), body.max()], [min(values), max(values)]).all()
    assert [len(line.get_ydata()) for line in axes.lines] == [20, 2, 2]
    assert [one.get_text() for one in axes.get_xticklabels()] == [*groups]


def test_a_figure_brings_a_narrow_picture_and_stays_as_it_is(monkeypatch):
    figure, (left, _) = plots.panels(2, 2, size=(3, 3))
    left.plot([1, 2], [3, 5], label="line")
    left.set_ylabel("nats")
    shown = figure._repr_mimebundle_()
    assert all(b64decode(picture).startswith(b"\x89PNG") for picture in shown.values())

    def places(figure, **asked):
        return [
            (*axes.get_subplotspec().get_geometry(), axes.get_ylabel())
            for axes in figure.axes
        ]

    monkeypatch.setattr(plots, "print_figure", places)
    shown = figure._repr_mimebundle_()
    # two panels side by side become two one below the other, each with the words on its height
    assert (
        shown["image/png"] == places(figure) == [(1, 2, 0, 0, "nats"), (1, 2, 1, 1, "")]
    )
    assert shown[NARROW_TYPE] == [(2, 1, 0, 0, "nats"), (2, 1, 1, 1, "nats")]


def test_words_far_outside_their_panel_do_not_break_a_figure():
    figure, (axes,) = plots.panels(size=(3, 3))
    axes.plot([1, 2], [1, 2])
    margin, *strays = (axes.text(1, y, "words") for y in (2.2, 200, np.nan))
    on_axes = axes.text(0.5, 0.5, "words", transform=axes.transAxes)
    figure._repr_mimebundle_()  # a warning is an error
    assert margin.get_visible() and on_axes.get_visible()
    assert not any(one.get_visible() for one in strays)


@pytest.mark.parametrize(
    ("style", "told"),
    [
        ({"color": "0.46"}, None),
        ({"color": "0.47"}, "'words' has 4.4 : 1"),
        ({"color": "black", "alpha": 0.5}, "'words' has 4.0 : 1"),
        ({"color": "#E69F00"}, "'words' has 2.3 : 1"),
        ({"fontsize": 8.9}, "'words' has 21.0 : 1 and 8.9 points"),
    ],
)
def test_words_that_are_hard_to_read_are_told(style, told):
    figure, (axes,) = plots.panels(size=(3, 3))
    axes.set_title("words", **style)
    axes.text(0.5, 0.5, "hidden", color="yellow", visible=False)
    if told is None:
        figure._repr_mimebundle_()  # a warning is an error
    else:
        with pytest.warns(UserWarning, match=told):
            figure._repr_mimebundle_()


def test_every_colour_of_the_book_can_write_words():
    figure, (axes,) = plots.panels(size=(3, 3))
    for colour in (*plots.COLOURS.values(), *plots.SHADES([0.0, 1.0])):
        axes.text(0.5, 0.5, "words", color=colour)
    figure._repr_mimebundle_()  # a warning is an error


def test_a_build_stops_at_words_that_are_hard_to_read(tmp_path):
    code = """
        from ppm_book.chapters import plots
        figure, (axes,) = plots.panels(size=(3, 3))
        axes.set_title("words", color="{}")
        figure"""
    cells = [
        nbformat.v4.new_code_cell(inspect.cleandoc(code.format(colour)))
        for colour in ("0.3", "0.6")
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    with running.own_kernel():
        NotebookClient(notebook).execute()
    nbformat.write(notebook, tmp_path / "chapter.ipynb")
    with pytest.raises(studio.Failed, match=r"cell \[2\]: UserWarning: words of a fig"):
        studio.refuse_warnings(tmp_path / "chapter.ipynb")


def test_a_figure_by_arviz_has_both_editions_and_is_shown_once():
    values = np.random.default_rng(1).normal(size=(2, 50))
    posterior = az.from_dict({"posterior": {"one": values, "other": -values}})
    figure = plots.by_arviz(az.plot_rank, posterior, size=(6, 3))
    assert {"image/png", NARROW_TYPE} == {*figure._repr_mimebundle_()}
    assert [axes.get_title() for axes in figure.axes] == ["one", "other"]
    assert not pyplot.get_fignums()  # Jupyter shows what is open


def told_of(figure):
    """What a figure warns of, by its words, as it is shown."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        figure._repr_mimebundle_()
    assert all(one.category is plots.PlaceWarning for one in told)
    return [str(one.message) for one in told]


DRAWN = {
    "a line": lambda axes: axes.plot([1, 2], [1, 4], label="all"),
    "marks": lambda axes: axes.scatter([1, 2], [1, 4], label="all"),
    "a band": lambda axes: axes.fill_between([1, 2], [1, 1], [4, 4], label="all"),
    "an interval": lambda axes: plots.interval(axes, [1], [1], [2], [4], "Weighted"),
    "a violin": lambda axes: plots.violins(axes, {"Weighted": [1.0, 2.0, 4.0]}),
    "bars": lambda axes: axes.bar([1, 2], [1, 4], label="all"),
    "steps": lambda axes: axes.stairs([1, 4], [0, 1, 2], label="all"),
    "lines": lambda axes: axes.vlines([1], [1], [4], label="all"),
}


@pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN)
@pytest.mark.parametrize("scale", ["linear", "log"])
def test_what_is_drawn_outside_its_panel_is_told(draw, scale):
    for top, outside in ((4, False), (3.9, True)):
        figure, (axes,) = plots.panels(size=(3, 3))
        draw(axes)
        bottom = 0.1 if scale == "log" else 0
        axes.set(title="Bounds", yscale=scale, xlim=(-1, 5), ylim=(bottom, top))
        found = told_of(figure)
        assert bool(found) == outside
        assert all("panel 'Bounds' ends before" in one for one in found)


def test_a_point_is_told_on_either_side_and_on_a_logarithmic_axis_a_zero():
    for limits in ({"xlim": (1.5, 3)}, {"xlim": (0, 1.9)}, {"ylim": (1.1, 5)}):
        figure, (axes,) = plots.panels(size=(3, 3))
        axes.plot([1, 2], [1, 4], "o")
        axes.set(**limits)
        (found,) = told_of(figure)
        assert "ends before 1 of 2 points" in found
    figure, (axes,) = plots.panels(size=(3, 3))
    axes.plot([1, 2, 3], [0, 10, np.nan], "o")
    plots.log_axis(axes)
    (found,) = told_of(figure)
    assert "1 of 2 points" in found and found.endswith("(1, 0)")


def test_what_is_cut_off_on_purpose_what_spans_a_panel_and_words_are_not_told():
    figure, (axes, _) = plots.panels(2, 2, size=(3, 3))
    plots.cut_off(axes.plot([1, 2], [1, 9]))
    plots.cut_off(axes.scatter([1, 2], [1, 9]))
    axes.axhline(9), axes.axvline(9), axes.axhspan(4, 9), axes.axvspan(4, 9)
    axes.text(9, 9, "words")
    axes.plot([1, 9], [1, 9], visible=False)
    axes.set(xlim=(0, 5), ylim=(0, 5))
    # a place in the panel's own coordinates is inside
    axes.plot([0.5], [0.5], "o", transform=axes.transAxes)
    assert not told_of(figure)


def test_a_moving_picture_s_still_one_tells_too():
    figure, (axes,) = plots.panels(size=(3, 3))
    axes.plot([1, 2], [1, 4])
    axes.set(ylim=(0, 3))
    with pytest.warns(plots.PlaceWarning, match="1 of 2 points"):
        still.element(figure, "title", "said", "move it")


def test_a_build_stops_at_a_point_outside_and_a_reader_s_run_tells_it(tmp_path, capsys):
    code = """
        from ppm_book.chapters import plots
        figure, (axes,) = plots.panels(size=(3, 3))
        axes.plot([1, 2], [1, 4], "o", label="Weighted")
        axes.set(title="Bounds", ylim=(0, 3))
        figure"""
    cell = nbformat.v4.new_code_cell(inspect.cleandoc(code))
    cell.metadata["mystnb"] = {"figure": {"name": "fig-bounds"}}
    notebook = nbformat.v4.new_notebook(cells=[cell])
    with running.own_kernel():
        NotebookClient(notebook).execute()
    nbformat.write(notebook, tmp_path / "chapter.ipynb")
    told = r"chapter, cell \[1\] \(fig-bounds\): PlaceWarning: panel 'Bounds' ends before 1"
    with pytest.raises(studio.Failed, match=told):
        studio.refuse_warnings(tmp_path / "chapter.ipynb")
    studio.refuse_warnings(tmp_path / "chapter.ipynb", allowed=["PlaceWarning"])
    assert re.match(told, capsys.readouterr().err)
