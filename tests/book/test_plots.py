"""What the figures' helpers draw, and what a figure brings to its page."""

import inspect
from base64 import b64decode

import arviz as az
import nbformat
import numpy as np
import pytest
from matplotlib import pyplot
from nbclient import NotebookClient

from ppm_book.chapters import plots, running
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
