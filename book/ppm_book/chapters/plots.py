"""What the chapters' figures share: one style, one colour per mechanism, and narrow editions."""

import pickle
import warnings
from pathlib import Path

import numpy as np
from IPython.core.pylabtools import print_figure
from matplotlib import colormaps, style
from matplotlib.colors import ListedColormap, to_rgba
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Annotation, Text
from matplotlib.ticker import LogLocator

from ppm_book.chapters.style import COLOURS, NARROW_TYPE

__all__ = [
    "panels",
    "by_arviz",
    "legend",
    "interval",
    "violins",
    "log_axis",
    "cut_off",
    "check_places",
]

# for an order, from the lightest that can be read (1) to dark (0)
SHADES = ListedColormap(colormaps["viridis"](np.linspace(0, 0.43, 256)))
# a violin of so many values or fewer shows them, too
POINTS = 20
# a level that marks are compared with
LEVEL = {"color": "0.3", "linestyle": "--", "linewidth": 1}
# what may reach out of its panel, because the figure's words say so
CUT_OFF = "cut off"
style.use(Path(__file__).with_name("book.mplstyle"))


class _Shown(Figure):
    """A figure that brings its page an edition for phones."""

    def _repr_mimebundle_(self, include=None, exclude=None):
        _hide_strays(self)
        asked = {"bbox_inches": None, "base64": True}
        pictures = {
            "image/png": print_figure(self, dpi=120, **asked),
            NARROW_TYPE: print_figure(_narrow(self), dpi=200, **asked),
        }
        _check_words(self)
        check_places(self)
        return pictures


def _hide_strays(figure):
    """Hide words that stand at places far outside their panel, where a run's values moved on."""
    for axes in figure.axes:
        axes.autoscale_view()  # limits may wait for it
        for text in axes.texts:
            if not isinstance(text, Annotation):  # these hide by themselves
                place = text.get_transform().transform(text.get_position())
                across = axes.transAxes.inverted().transform(place)
                text.set_visible(bool(np.abs(across - 0.5).max() < 1))


def _check_words(figure):
    """Warn of words that are hard to read: Jupyter hides an error here, and builds refuse a warning."""
    for text in figure.findobj(Text):
        contrast, size = _contrast(text), text.get_fontsize()
        shown = text.get_visible() and text.get_text().strip()
        if shown and (contrast < 4.5 or size < 9):
            warnings.warn(
                f"words of a figure need a contrast of 4.5 : 1 on white and 9 points; {shown!r} "
                f"has {contrast:.1f} : 1 and {size:g} points",
                stacklevel=2,
            )


def _contrast(text):
    """Of a text's colour on white, from 1 to 21, as the guidelines for accessible pages define it."""
    *colour, opacity = to_rgba(text.get_color(), text.get_alpha())
    channels = opacity * np.array(colour) + 1 - opacity
    linear = np.where(
        channels > 0.04045, ((channels + 0.055) / 1.055) ** 2.4, channels / 12.92
    )
    return 1.05 / (linear @ [0.2126, 0.7152, 0.0722] + 0.05)


class PlaceWarning(UserWarning):
    """A line, a bar or a mark reaches out of its panel, where nobody sees it."""


def check_places(figure):
    """Warn of lines, bars and marks that reach out of their panel.

    Jupyter hides an error here, and builds refuse a warning. Words, what spans a panel as
    ``axhline`` does, and what :func:`cut_off` was told of are left out.

    Parameters
    ----------
    figure : matplotlib.figure.Figure

    Examples
    --------
    >>> import warnings
    >>> from ppm_book.chapters import plots
    >>> figure, (axes,) = plots.panels(size=(3, 3))
    >>> _ = axes.plot([1, 2], [3, 5], label="Weighted")
    >>> _ = axes.set(title="Bounds", ylim=(0, 4))
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     plots.check_places(figure)
    >>> print(told[0].message)
    panel 'Bounds' ends before 1 of 2 points of 'Weighted', for example (2, 5)
    """
    for axes in figure.axes:
        axes.autoscale_view()  # limits may wait for it
        to_panel = axes.transAxes.inverted()
        for artist in (*axes.lines, *axes.collections, *axes.patches):
            if not artist.get_visible() or artist.get_gid() == CUT_OFF:
                continue
            points = _points(artist, axes)
            across = to_panel.transform(axes.transData.transform(points))
            outside = ~(np.abs(across - 0.5) <= 0.5 + 1e-6).all(axis=1)
            if outside.any():
                panel = axes.get_title() or axes.get_title("left") or axes.get_ylabel()
                name = artist.get_label()
                if name.startswith("_"):  # it has none of its own
                    name = type(artist).__name__
                first = ", ".join(f"{number:g}" for number in points[outside][0])
                warnings.warn(
                    f"panel {panel!r} ends before {outside.sum()} of {len(points)} points of "
                    f"{name!r}, for example ({first})",
                    PlaceWarning,
                    stacklevel=2,
                )


def _points(artist, axes):
    """Finite points of what is drawn in a panel's coordinates; else none."""
    place, points = artist.get_transform(), []
    if isinstance(artist, Line2D):
        points = [artist.get_xydata()]
    elif isinstance(artist, Patch):
        place = (
            axes.transData if artist.get_data_transform() == axes.transData else None
        )
        corners = artist.get_patch_transform().transform(artist.get_path().vertices)
        # a bar stands on 0, which a logarithmic axis does not have
        for values, axis in zip(corners.T, (axes.xaxis, axes.yaxis), strict=True):
            values[(values <= 0) & (axis.get_scale() == "log")] = np.nan
        points = [corners]
    elif artist.get_offset_transform() == axes.transData:
        place, points = axes.transData, [np.ma.filled(artist.get_offsets(), np.nan)]
    else:
        points = [path.vertices for path in artist.get_paths()]
    if not points or place is None:
        return np.empty((0, 2))
    if not all(place.contains_branch_seperately(axes.transData)):
        return np.empty((0, 2))
    points = np.concatenate(points)
    return points[np.isfinite(points).all(axis=1)]


def cut_off(artists):
    """Let a line or marks reach out of their panel; the figure's words then have to say so.

    Parameters
    ----------
    artists : matplotlib.artist.Artist or list of these
        As ``Axes.plot``, ``Axes.scatter`` and ``Axes.fill_between`` return them.

    Returns
    -------
    matplotlib.artist.Artist or list of these
        As given.

    Examples
    --------
    >>> from ppm_book.chapters import plots
    >>> figure, (axes,) = plots.panels(size=(3, 3))
    >>> _ = plots.cut_off(axes.plot([1, 2], [3, 5]))
    >>> _ = axes.set_ylim(0, 4)
    >>> plots.check_places(figure)
    """
    for artist in artists if isinstance(artists, (list, tuple)) else [artists]:
        artist.set_gid(CUT_OFF)
    return artists


def _narrow(figure):
    """The figure for a phone: panels one below the other, and the words as large."""
    figure = pickle.loads(pickle.dumps(figure))
    width, height = figure.get_size_inches()
    if figure.axes[0].get_gridspec().ncols > 1:
        height = 2.9 * len(figure.axes)
        for axes, place in zip(
            figure.axes, GridSpec(len(figure.axes), 1, figure), strict=True
        ):
            axes.set_subplotspec(place)
            axes.tick_params(labelbottom=True, labelleft=True)
            axes.set_ylabel(axes.get_ylabel() or figure.axes[0].get_ylabel())
    if figure.legends:  # of two columns, which have room
        figure.legends.clear()
        legend(figure)
    figure.set_size_inches(min(width, 4.4), max(height, 3.6))
    return figure


def panels(number=1, columns=1, *, size, **options):
    """Figure of the book, and the axes of its panels, row by row.

    Parameters
    ----------
    number, columns : int, default 1
        Of panels, and of those beside each other.
    size : (float, float)
        Width and height of one panel in inches.
    **options
        Passed to ``Figure.subplots``.

    Examples
    --------
    >>> from ppm_book.chapters import plots
    >>> figure, axes = plots.panels(3, 2, size=(4, 3))
    >>> len(axes)
    3
    """
    rows = -(-number // columns)
    figure = _Shown((columns * size[0], rows * size[1]), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **options).ravel().tolist()
    for surplus in axes[number:]:
        surplus.remove()
    for lowest in axes[number - columns : number]:
        lowest.tick_params(labelbottom=True)
    return figure, axes[:number]


def by_arviz(plot, posterior, *, size, **options):
    """Let ArviZ draw a figure of the book.

    Parameters
    ----------
    plot : callable
        Such as ``arviz.plot_rank``.
    posterior : xarray.DataTree
    size : (float, float)
        Width and height of the whole figure in inches.
    **options
        Passed to ``plot``.

    Examples
    --------
    >>> import arviz as az, numpy as np
    >>> from ppm_book.chapters import plots
    >>> values = np.random.default_rng(1).normal(size=(2, 50))
    >>> posterior = az.from_dict({"posterior": {"mean": values}})
    >>> figure = plots.by_arviz(az.plot_rank, posterior, size=(3, 3))
    >>> len(figure.axes)
    1
    """
    from matplotlib import pyplot

    kind = {"FigureClass": _Shown, "layout": "constrained", "figsize": size}
    drawn = plot(posterior, backend="matplotlib", figure_kwargs=kind, **options)
    figure = drawn.viz["figure"].item()
    pyplot.close(figure)  # Jupyter would show it twice
    return figure


def legend(figure, columns=2):
    """Put one legend above all panels, with each name once.

    Examples
    --------
    >>> from ppm_book.chapters import plots
    >>> figure, axes = plots.panels(2, 2, size=(3, 3))
    >>> for one in axes:
    ...     _ = one.plot([1, 2], label="a line")
    >>> plots.legend(figure)
    >>> [text.get_text() for text in figure.legends[0].get_texts()]
    ['a line']
    """
    found = {}
    for axes in figure.axes:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(name, handle)
    figure.legend(
        found.values(), found.keys(), loc="outside upper center", ncols=columns
    )


def interval(axes, x, low, middle, high, label, **style):
    """Draw marks, each with a line from low to high.

    Examples
    --------
    >>> from ppm_book.chapters import plots
    >>> figure, (axes,) = plots.panels(size=(3, 3))
    >>> plots.interval(axes, [1], 0.1, 0.2, 0.4, "Weighted")
    >>> [line.get_ydata().tolist() for line in axes.lines]
    [[0.2]]
    """
    # what is infinite, as a share of 0 may be, has no place
    low, middle, high = np.where(
        np.isfinite([low, middle, high]), [low, middle, high], np.nan
    )
    # rounding may leave the middle outside
    reach = np.maximum([middle - low, high - middle], 0).reshape(2, -1)
    style = {"fmt": "o", "color": COLOURS.get(label)} | style
    axes.errorbar(x, np.reshape(middle, -1), reach, label=label, **style)


def violins(axes, groups, *, at=None, colours=None, **options):
    """Draw a violin for each group of values, with its median, minimum and maximum.

    A violin ends where its values end. One of at most 20 values shows them as points.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    groups : dict of str to array_like
        Name -> values; what is not finite has no place.
    at : sequence of float, optional
        Places of the violins: 0, 1, ... if not given, with the names as labels.
    colours : sequence, optional
        Of the violins; by default those of the names, from the book's colours.
    **options
        Passed to ``Axes.violinplot``: ``side="low"`` draws the left halves alone.

    Examples
    --------
    >>> from ppm_book.chapters import plots
    >>> figure, (axes,) = plots.panels(size=(3, 3))
    >>> plots.violins(axes, {"Weighted": [3.4, 3.5, 3.9]})
    >>> axes.lines[0].get_ydata().tolist()
    [3.4, 3.5, 3.9]
    """
    if at is None:
        axes.set_xticks(range(len(groups)), groups)
        at = range(len(groups))
    if colours is None:
        colours = [COLOURS.get(name, "#666666") for name in groups]
    aside = {"low": -0.02, "high": 0.02}.get(options.get("side"), 0)
    for place, values, colour in zip(at, groups.values(), colours, strict=True):
        values = np.asarray(values, dtype=np.float64)
        values = values[np.isfinite(values)]
        if not values.size:
            continue
        parts = axes.violinplot([values], [place], showmedians=True, **options)
        for body in parts.pop("bodies"):
            body.set(facecolor=colour, alpha=0.35)
        for lines in parts.values():
            lines.set(color=colour, linewidth=1.2)
        if len(values) <= POINTS:
            places = np.full(len(values), place + aside)
            axes.plot(places, values, "o", color=colour, markersize=3, alpha=0.8)


def log_axis(axes, which="y"):
    """Give a panel a logarithmic axis, ``"x"`` or ``"y"``, with plain numbers.

    Examples
    --------
    >>> from ppm_book.chapters import plots
    >>> figure, (axes,) = plots.panels(size=(3, 3))
    >>> plots.log_axis(axes)
    >>> axes.yaxis.get_major_formatter()(20)
    '20'
    """
    axes.set(**{f"{which}scale": "log"})
    axis = getattr(axes, f"{which}axis")
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter("{x:g}")
    axes.minorticks_off()
