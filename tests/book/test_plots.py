"""What the figures' helpers draw, and what a figure brings to its page."""

from base64 import b64decode

import numpy as np
import pandas as pd
import pytest

from ppm_book import plots

COLUMNS = ["series", "x", "y", "low", "high"]


@pytest.fixture
def drawn():
    """A figure with every kind of mark: in two panels, and with names below the second."""
    figure, (left, right) = plots.panels(2, 2, size=(3, 3))
    left.plot([1, 2], [3, 5], label="line")
    left.plot([1, 2], [30, 50])
    left.axhline(4, label="level")
    left.axvline(1.5, label="place")
    left.set_title("one")
    plots.interval(right, [0], 2, 3, 7, "Weighted")
    plots.interval(right, [1.2], 0.1, np.inf, np.inf, "Capped")
    right.bar([0, 1], [7, 8], label="bars")
    right.set_xticks([0, 1], ["Weighted", "the\nother"])
    right.set_title("two")
    return figure


def test_the_data_are_every_mark_with_a_label_at_the_name_of_its_place(drawn):
    data = plots.drawn_data(drawn)
    rows = [["line", 1, 3], ["line", 2, 5], ["level", np.nan, 4], ["place", 1.5],
            ["Weighted", "Weighted", 3, 2, 7], ["Capped", "the other"],
            ["bars", "Weighted", 7], ["bars", "the other", 8]]
    expected = pd.DataFrame([(row + 3 * [np.nan])[:5] for row in rows], columns=COLUMNS)
    pd.testing.assert_frame_equal(data[COLUMNS], expected, check_dtype=False)
    assert data["panel"].tolist() == ["one"] * 4 + ["two"] * 4


def test_intervals_stand_over_their_size_in_their_panel():
    levels = {"loss": ["fixed", "again"], "mechanism": ["Weighted-M", "Capped on T"]}
    index = pd.MultiIndex.from_product([*levels.values(), [50, 1000]], names=[*levels, "size"])
    table = np.sort(np.random.default_rng(2).uniform(size=(8, 3)), axis=1)
    table = pd.DataFrame(table, index, columns=["low", "estimate", "high"])
    figure = plots.intervals_by_size(table, "share", columns=2, size=(3, 3))
    data = plots.drawn_data(figure).set_index(["panel", "series", "x"])
    told = table.rename(lambda size: f"{size:,}", level="size")
    np.testing.assert_allclose(data.loc[told.index, ["low", "y", "high"]], table)


def test_a_figure_brings_its_data_and_a_narrow_picture_and_stays_as_it_is(drawn, monkeypatch):
    shown = drawn._repr_mimebundle_()
    assert shown == drawn._repr_mimebundle_()
    assert b64decode(shown["image/png"]).startswith(b"\x89PNG")

    def places(figure, **asked):
        return [axes.get_subplotspec().get_geometry() for axes in figure.axes]

    monkeypatch.setattr(plots, "print_figure", places)
    shown = drawn._repr_mimebundle_()
    brought = shown["application/vnd.ppm.figure+json"]
    # two panels side by side become two one below the other
    assert shown["image/png"] == places(drawn) == [(1, 2, 0, 0), (1, 2, 1, 1)]
    assert brought["narrow"] == [(2, 1, 0, 0), (2, 1, 1, 1)]
    assert brought["data"] == plots.drawn_data(drawn).to_csv(index=False)
