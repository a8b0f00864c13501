"""Every figure of the book, one function each, with one colour for a mechanism everywhere."""

from base64 import b64encode
from functools import cache, partial
from io import BytesIO
from textwrap import fill

import numpy as np

from ppm._validation import as_array, as_numbers
from ppm._validation import shown as quoted
from ppm_book.survey.expenditure import SIMULATED

__all__ = [
    "by_size", "exceedance_curves", "loss_by_record",
    "audited_losses", "over_own_bound", "bound_growth", "worked_example_weights",
    "posterior_densities", "income_density", "record_bound_violins", "statistic_violins",
    "bounds_along", "sweep_violins", "settings_bounds", "equal_bounds", "detection_limits",
    "utility_by_epsilon", "coverage_by_rule", "losses_by_rule",
    "bias_and_spread",
]

# Okabe and Ito's palette, told apart by colour-blind readers too
COLOURS = {
    "Data": "#000000",
    "Unweighted": "#7f7f7f",
    "Weighted": "#0072B2",
    "DPweighted": "#0072B2",
    "Weighted-M": "#009E73",
    "EMweighted": "#D55E00",
    "Countweighted": "#CC79A7",
    # controls beside DPweighted
    "Shuffled": "#882255",
    "Trimmed": "#117733",
    "Capped": "#E69F00",
    "Range-capped": "#56B4E9",
    # darker: the same weights with another prior
    "Capped on T": "#7A4B00",
    "Range-capped on T": "#1F3A5F",
}
MARKERS = {
    "Data": "o",
    "Unweighted": "s",
    "DPweighted": "^",
    "EMweighted": "v",
    "Countweighted": "D",
    "Shuffled": "P",
    "Trimmed": "*",
}
# of mechanisms with a strict ε, in the order in which they are drawn
STRICT_STYLES = (
    {"color": "#0072B2", "marker": "o", "markersize": 5},
    {"color": "#E69F00", "marker": "s", "markersize": 4.5, "linestyle": "--"},
    {"color": "#009E73", "marker": "^", "markersize": 5, "linestyle": ":"},
    {"color": "0.35", "marker": "D", "markersize": 4, "linestyle": "-."},
)
# statistics that have no unit
UNITLESS = ("Gini coefficient",)
# what a figure hands to the page besides its picture
FIGURE_TYPE = "application/vnd.ppm.figure+json"
NO_ERROR = "it is 0 in the data:\nno error in per cent"
# a mark of a fit whose chains disagree
HOLLOW = {"markerfacecolor": "white", "linestyle": "none"}


@cache
def _figure_class():
    from matplotlib.figure import Figure

    class ShownFigure(Figure):
        # a kernel that never imported pyplot would show a bare Figure as text
        def _repr_png_(self):
            return _png(self)

        def _repr_mimebundle_(self, include=None, exclude=None):
            # for the page: on a phone, for those who do not see it, and for a table calculation
            return {
                "image/png": b64encode(_png(self)).decode(),
                FIGURE_TYPE: {
                    "narrow": b64encode(_narrow(self)).decode(),
                    "numbers": numbers_in_words(self),
                    "data": drawn_data(self).to_csv(index=False),
                },
            }

    return ShownFigure


def _png(figure, **options):
    buffer = BytesIO()
    figure.savefig(buffer, format="png", **options)
    return buffer.getvalue()


def _narrow(figure):
    """The figure as PNG for a phone: panels one below the other, and the words as large."""
    from matplotlib.gridspec import GridSpec

    width, height = figure.get_size_inches()
    panels = figure.axes
    rows, columns = panels[0].get_gridspec().get_geometry()
    undo = [partial(figure.set_size_inches, width, height)]
    grid = GridSpec(len(panels), 1, figure=figure)
    for number, axes in enumerate(panels):
        for axis, size in ((axes.xaxis, "labelbottom"), (axes.yaxis, "labelleft")):
            if columns > 1:
                shown = axis.get_tick_params()[size]
                undo.append(partial(axes.tick_params, **{size: shown}))
                axes.tick_params(**{size: True})
                text = axis.get_label_text()
                undo.append(partial(axis.set_label_text, text))
                outer = panels[0].yaxis if axis is axes.yaxis else panels[-1].xaxis
                axis.set_label_text(text or outer.get_label_text())
        if len(panels) > 1:
            # a label longer than its panel runs into the next one's
            undo.append(partial(axes.set_ylabel, axes.get_ylabel()))
            axes.set_ylabel(fill(axes.get_ylabel(), 24))
        if columns > 1:
            undo.append(partial(axes.set_subplotspec, axes.get_subplotspec()))
            axes.set_subplotspec(grid[number])
        names = axes.get_xticklabels() if _named(axes.xaxis) else []
        lines = [line for tick in names for line in tick.get_text().splitlines()]
        for tick in names if max(map(len, lines), default=0) > 6 else ():
            if tick.get_rotation() == 0:
                size = tick.get_fontsize()
                undo.append(partial(tick.set, rotation=0, ha=tick.get_ha(), fontsize=size))
                tick.set(rotation=35, ha="right")
    for legend in list(figure.legends):
        # the number of its columns is settled when it is made
        title = legend.get_title().get_text()
        names = [text.get_text() for text in legend.get_texts()]
        other = figure.legend(legend.legend_handles, names, loc="outside upper center",
                              ncols=2, frameon=False, fontsize=9, title=title)
        undo.append(other.remove)
        for change in (legend.set_visible, legend.set_in_layout):
            change(False)
            undo.append(partial(change, True))
    tall = 2.9 * len(panels) if columns > 1 else max(3.6, 0.8 * height)
    figure.set_size_inches(min(width, 4.4), tall)
    try:
        return _png(figure, dpi=200)
    finally:
        for step in reversed(undo):
            step()


def _named(axis):
    """Whether ticks are names instead of numbers."""
    from matplotlib.ticker import FixedLocator, FuncFormatter

    named = isinstance(axis.get_major_formatter(), FuncFormatter)
    return named and isinstance(axis.get_major_locator(), FixedLocator)


def _place(axes, x):
    """Where on the horizontal axis: the name of the tick, or the number."""
    if not _named(axes.xaxis):
        return x
    ticks = axes.get_xticks()
    nearest = int(np.argmin(np.abs(np.asarray(ticks) - x)))
    return axes.xaxis.get_major_formatter()(ticks[nearest], nearest).replace("\n", " ")


def drawn_data(figure):
    """What a figure shows, as a table: one row for every mark, with its panel and series.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        A figure of this module.

    Returns
    -------
    pandas.DataFrame
        Columns ``panel``, ``series``, ``x``, ``y``, ``low``, ``high``; a distribution has its
        median in ``y`` and its extremes in ``low`` and ``high``.

    Examples
    --------
    >>> from ppm_book import plots
    >>> figure = plots.detection_limits({"ε = 2": 2.0})
    >>> plots.drawn_data(figure)[["series", "x", "y"]].round(2).values.tolist()[1]
    ['ε = 2', 0.12, 0.88]
    """
    import pandas as pd

    rows = [row for axes in figure.axes for row in _rows(axes)]
    return pd.DataFrame(rows, columns=["panel", "series", "x", "y", "low", "high"])


def _distributions(axes):
    """Label, place, and smallest, median and largest value of what is drawn as violins."""
    return [entry[1:] for entry in getattr(axes.figure, "distributions", ()) if entry[0] is axes]


def _rows(axes):
    panel = axes.get_title()
    for label, x, (low, median, high) in _distributions(axes):
        yield panel, label, _place(axes, x), median, low, high
    for line in axes.lines:
        label, points = str(line.get_label()), list(line.get_xydata())
        if label.startswith("_") and len(points) < 3:
            # a mark that belongs to another one
            continue
        level = line.get_transform() != axes.transData
        for x, y in points[:1] if level else points:
            place = None if level else _place(axes, x)
            yield panel, "curve" if label.startswith("_") else label, place, y, None, None
    for collection in axes.collections:
        for segment in getattr(collection, "get_segments", list)():
            # of an interval without numbers nothing is left
            if len(segment):
                (x, low), (_, high) = segment[0], segment[-1]
                yield panel, "interval", _place(axes, x), None, low, high
    for bars in axes.containers:
        for bar in getattr(bars, "patches", ()):
            x = bar.get_x() + bar.get_width() / 2
            yield panel, "bar", _place(axes, x), bar.get_height(), None, None


def numbers_in_words(figure):
    """What a figure shows, in a sentence of its numbers, for those who do not see it.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        A figure of this module.

    Returns
    -------
    str
        For every panel the medians of its distributions, or else the range of its marks.

    Examples
    --------
    >>> from ppm_book import plots
    >>> plots.numbers_in_words(plots.detection_limits({"ε = 2": 2.0}))
    'Probability of a yes where it did, at the most: from 0 to 1.'
    """
    told = []
    for axes in figure.axes:
        rows = list(_rows(axes))
        label = axes.get_ylabel() or figure.axes[0].get_ylabel()
        label = " ".join((axes.get_title() or label[:1].upper() + label[1:]).split())
        shown = _shown(axes.yaxis)
        medians = [
            f"{name} {shown(median)}" if _place(axes, x) in (x, name)
            else f"{name} at {_place(axes, x)} {shown(median)}"
            for name, x, (_, median, _) in _distributions(axes)
        ]
        if medians:
            told.append(f"{label}: medians {', '.join(medians)}")
        elif "ensity" in label:
            _, _, x, *_ = max((row for row in rows if row[3] is not None), key=lambda row: row[3])
            told.append(f"{label}: highest where {axes.get_xlabel()} is {_shown(axes.xaxis)(x)}")
        elif rows:
            marks = np.array([row[3:] for row in rows], dtype=np.float64)
            marks = marks[np.isfinite(marks)]
            if marks.size:
                told.append(f"{label}: from {shown(marks.min())} to {shown(marks.max())}")
    return f"{'; '.join(told)}." if told else ""


def _shown(axis):
    """How an axis writes a number."""
    from matplotlib.ticker import FuncFormatter

    formatter = axis.get_major_formatter()
    return formatter if isinstance(formatter, FuncFormatter) and not _named(axis) else _number


def _number(value, position=None):
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _figure(width, height, **options):
    # drawn without pyplot: nothing global is changed, and no figure is shown twice
    figure = _figure_class()(figsize=(width, height), layout="constrained", dpi=120)
    figure.distributions = []
    return figure, figure.subplots(**options)


def _tidy(axes):
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)


def _violins(axes, samples, labels, *, positions=None, width=0.8, side="both"):
    """Violins with the median and the extremes marked, coloured by label."""
    positions = np.arange(len(samples)) if positions is None else positions
    for sample, label, position in zip(samples, labels, positions, strict=True):
        sample = as_numbers("a distribution", sample)
        colour = COLOURS[label]
        ends = sample.min(), np.median(sample), sample.max()
        axes.figure.distributions.append((axes, label, position, ends))
        # a spread that vanishes when squared has no density to draw
        if np.ptp(sample) > 1e-150:
            parts = axes.violinplot(
                [sample], [position], widths=width, showextrema=False, points=200, side=side
            )
            for body in parts["bodies"]:
                body.set(facecolor=colour, edgecolor=colour, alpha=0.55)
        tick = width / 8
        ends = (0 if side == "high" else -tick, 0 if side == "low" else tick)
        axes.plot([position] * 2, [sample.min(), sample.max()], color=colour, linewidth=1)
        axes.plot(
            [position + end for end in ends], [np.median(sample)] * 2, color="black", linewidth=1.5
        )


def _mark_simulated(figure, simulated):
    if simulated:
        figure.supxlabel(SIMULATED, fontsize=9, color="#D55E00", fontweight="bold")


def _thousands(axis):
    from matplotlib.ticker import FuncFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / 1000:,.0f}"))


def _income_axis(axes, statistic, title=""):
    # beside the axis the whole title would be longer than a panel
    title += f"{statistic} of income"
    axes.set_title(f"{title[0].upper()}{title[1:]}", fontsize=11)
    if statistic in UNITLESS:
        axes.set_ylabel(statistic)
        return
    axes.set_ylabel("thousand dollars")
    _thousands(axes.yaxis)


def by_size(study, column, label, line):
    """Distribution of a column over databases by mechanism, one panel a sample size.

    Parameters
    ----------
    study : pandas.DataFrame
        Columns ``mechanism`` and ``size``, and the one that is shown; one row a database.
    column, label : str
        What is shown, and in words.
    line : dict of str to float
        Name and height of a dashed line.

    Returns
    -------
    matplotlib.figure.Figure
        One violin a mechanism, in the order of their first rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from ppm_book import plots
    >>> study = pd.DataFrame({"mechanism": "Weighted", "size": [50, 50, 90], "bound": [3, 4, 3]})
    >>> [axes.get_title() for axes in plots.by_size(study, "bound", "Δ", {"M": 3.5}).axes]
    ['n = 50', 'n = 90']
    """
    sizes = np.unique(study["size"])
    figure, panels = _figure(
        max(3.0, 2.3 * sizes.size), 4.2, ncols=sizes.size, sharey=True, squeeze=False
    )
    mechanisms = list(study["mechanism"].unique())
    for axes, size in zip(panels[0], sizes, strict=True):
        _tidy(axes)
        for name, height in line.items():
            axes.axhline(height, color="0.3", linestyle="--", linewidth=1, label=name)
        here = study[study["size"] == size]
        _violins(axes, [here[here["mechanism"] == m][column] for m in mechanisms], mechanisms)
        axes.set_xticks(range(len(mechanisms)), mechanisms, rotation=35, ha="right")
        axes.set_title(f"n = {size:,}", fontsize=11)
    panels[0, 0].set_ylabel(label)
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper right",
                  frameon=False, handlelength=1.6)
    return figure


def exceedance_curves(shares, line):
    """Share of databases whose 2Δ exceeds ε, against ε, with intervals.

    Parameters
    ----------
    shares : pandas.DataFrame
        Columns ``mechanism``, ``size``, ``ε``, ``share``, ``low`` and ``high``.
    line : float
        An ε, 2M, for a dashed line.

    Returns
    -------
    matplotlib.figure.Figure
        One panel a mechanism, one line a sample size.

    Examples
    --------
    >>> import pandas as pd
    >>> from ppm_book import plots
    >>> shares = pd.DataFrame({"mechanism": "Weighted", "size": 50, "ε": [6, 7], "share": [1, 0],
    ...                        "low": [0.7, 0], "high": [1, 0.3]})
    >>> [axes.get_title() for axes in plots.exceedance_curves(shares, 7.0).axes]
    ['Weighted']
    """
    from matplotlib import colormaps

    names, sizes = shares["mechanism"].unique(), shares["size"].unique()
    figure, panels = _figure(9.2, 4.0, ncols=names.size, sharey=True, squeeze=False)
    # the larger the size, the darker
    colours = colormaps["viridis"](np.linspace(0.7, 0.0, sizes.size))
    for axes, name in zip(panels[0], names, strict=True):
        _tidy(axes)
        for size, colour, style in zip(
            sizes, colours, ((":", "-.", "--", "-") * sizes.size)[-sizes.size :], strict=True
        ):
            curve = shares[(shares["mechanism"] == name) & (shares["size"] == size)]
            axes.fill_between(
                curve["ε"], curve["low"], curve["high"], color=colour, alpha=0.2, lw=0
            )
            axes.plot(
                curve["ε"], curve["share"], color=colour, linestyle=style, label=f"n = {size:,}"
            )
        axes.axvline(line, color="0.3", linestyle="--", linewidth=1)
        axes.annotate(
            "2M", (line, 0.1), xytext=(-4, 0), textcoords="offset points", color="0.3", ha="right"
        )
        axes.set_title(name, fontsize=11)
        axes.set_xlabel("ε of one release (nats)")
    panels[0, 0].set_ylabel("Share of databases with 2Δ > ε")
    panels[0, -1].legend(frameon=False)
    return figure


# how a loss is drawn: label, marker, line
_LOSSES = {
    "fixed": ("weights held fixed", "o", "-"),
    "common": ("weights again, one seed", "^", "--"),
    "worst": ("weights again, worst seed", "v", "-."),
    "integrated": ("weights again, integrated out", "D", ":"),
}


def loss_by_record(audit, mechanisms=("Weighted", "Weighted-M", "Capped")):
    """Largest privacy loss against the count that is left out, one panel a mechanism.

    Parameters
    ----------
    audit : xarray.Dataset
        What :func:`ppm.audits.exact` returned for one database.
    mechanisms : sequence of str, optional
        Labels, one panel each.

    Returns
    -------
    matplotlib.figure.Figure
        Three losses over the set of μ, with the database's own 2Δ and oscillation over that set as
        lines.

    Examples
    --------
    >>> import ppm
    >>> from ppm_book import plots
    >>> audit = ppm.audits.exact([3, 5, 4, 6, 20], public=(2.0, 8.0), weight_draws=9, random_seed=1)
    >>> figure = plots.loss_by_record(audit, ["Weighted", "Capped"])
    >>> [axes.get_title() for axes in figure.axes]
    ['Weighted', 'Capped']
    """
    figure, panels = _figure(9.6, 4.2, ncols=len(mechanisms), sharey=True, squeeze=False)
    for axes, mechanism in zip(panels[0], mechanisms, strict=True):
        _tidy(axes)
        here = audit.sel(mechanism=mechanism)
        for kind, (label, marker, line) in _LOSSES.items():
            if f"loss_{kind}" not in here or "left_out" not in here[f"loss_{kind}"].dims:
                continue
            axes.plot(
                here["left_out"], _visible(here[f"loss_{kind}"]), marker, linestyle=line,
                linewidth=0.8, markersize=3.5, color=COLOURS[mechanism], label=label,
                markerfacecolor="none" if kind == "fixed" else COLOURS[mechanism],
                alpha=1.0 if kind == "fixed" else 0.6,
            )
        for bound, style, label in (
            (2 * here["local_bound"], "--", "2Δ"),
            (here["oscillation_bound"], ":", "oscillation"),
        ):
            axes.axhline(float(bound), color="0.2", linestyle=style, linewidth=1.2, label=label)
        axes.set_title(mechanism, fontsize=11)
        axes.set_xlabel("Count that is left out")
        axes.set_yscale("log")
    panels[0, 0].set_ylabel("Largest privacy loss (nats)")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    return figure


def _visible(values):
    # on a logarithmic axis a loss of 0 would vanish, and the line with it
    return np.maximum(np.asarray(values, dtype=np.float64), 1e-3)


def audited_losses(shares):
    """Largest loss of every database over its set of μ, against twice its local bound.

    Parameters
    ----------
    shares : pandas.DataFrame
        Losses as shares of 2Δ: a column a kind of loss, indexed by mechanism, size and database.

    Returns
    -------
    matplotlib.figure.Figure
        One panel a kind of loss: median (mark), smallest and largest (line) over databases. Open
        marks: prior restricted to T.

    Examples
    --------
    >>> import pandas as pd
    >>> from ppm_book import plots
    >>> index = pd.MultiIndex.from_product([["Weighted"], [100], range(3)])
    >>> shares = pd.DataFrame({"fixed": [0.1, 0.2, 0.3], "common": [0.1, 0.3, 1.1]}, index)
    >>> [axes.get_title() for axes in plots.audited_losses(shares).axes]
    ['weights held fixed', 'weights again, one seed']
    """
    mechanisms, sizes = (list(dict.fromkeys(shares.index.get_level_values(i))) for i in (0, 1))
    figure, panels = _figure(
        9.8, 7.0, nrows=-(-shares.shape[1] // 2), ncols=2, sharey=True, sharex=True, squeeze=False
    )
    for axes, kind in zip(panels.flat, shares, strict=True):
        _tidy(axes)
        label, marker, _ = _LOSSES[kind]
        axes.axhline(1.0, color="0.2", linestyle="--", linewidth=1.2)
        ends = shares[kind].groupby(level=[0, 1]).agg(["min", "median", "max"])
        for number, mechanism in enumerate(mechanisms):
            colour, here = COLOURS[mechanism], ends.loc[mechanism].loc[sizes]
            place = np.arange(len(sizes)) + np.linspace(-0.33, 0.33, len(mechanisms))[number]
            axes.vlines(place, here["min"], here["max"], color=colour)
            axes.plot(
                place, here["median"], marker, color=colour, markersize=5, label=mechanism,
                markerfacecolor="white" if mechanism.endswith("on T") else colour,
            )
        axes.set_xticks(range(len(sizes)), [f"{size:,}" for size in sizes])
        axes.set_title(label, fontsize=10)
        axes.set_yscale("log")
    for axes in panels[-1]:
        axes.set_xlabel("Sample size n")
    for axes in panels[:, 0]:
        axes.set_ylabel("Largest loss of a database / its 2Δ")
    figure.legend(
        *panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4,
        frameon=False,
    )
    return figure


def over_own_bound(table, mechanisms=("Weighted", "Weighted-M", "Capped", "Capped on T")):
    """Share of databases whose loss over their set of μ exceeds their own 2Δ, against n.

    Parameters
    ----------
    table : pandas.DataFrame
        Columns ``estimate``, ``low`` and ``high``, indexed by mechanism, size and loss.
    mechanisms : sequence of str, optional
        Labels to show.

    Returns
    -------
    matplotlib.figure.Figure
        One panel a kind of loss, with exact intervals.

    Examples
    --------
    >>> import pandas as pd
    >>> from ppm_book import plots
    >>> names = ["mechanism", "size", "loss"]
    >>> index = pd.MultiIndex.from_tuples([("Weighted", 100, "worst")], names=names)
    >>> table = pd.DataFrame({"estimate": [0.2], "low": [0.1], "high": [0.3]}, index)
    >>> [axes.get_title() for axes in plots.over_own_bound(table, ["Weighted"]).axes]
    ['weights again, worst seed']
    """
    kinds = list(dict.fromkeys(table.index.get_level_values("loss")))
    sizes = list(dict.fromkeys(table.index.get_level_values("size")))
    figure, panels = _figure(
        max(4.0, 2.7 * len(kinds)), 4.0, ncols=len(kinds), sharey=True, squeeze=False
    )
    offsets = np.linspace(-0.24, 0.24, len(mechanisms))
    for axes, kind in zip(panels[0], kinds, strict=True):
        _tidy(axes)
        label, *_ = _LOSSES[kind]
        for mechanism, offset in zip(mechanisms, offsets, strict=True):
            found = table.xs((mechanism, kind), level=("mechanism", "loss"))
            place = np.arange(len(sizes)) + offset
            axes.vlines(place, found["low"], found["high"], color=COLOURS[mechanism], linewidth=2)
            axes.plot(
                place, found["estimate"], "o", color=COLOURS[mechanism], label=mechanism,
                markerfacecolor="white" if mechanism.endswith("on T") else COLOURS[mechanism],
            )
        axes.set_xticks(range(len(sizes)), [f"{size:,}" for size in sizes])
        axes.set_xlabel("Sample size n")
        axes.set_title(label, fontsize=10)
    panels[0, 0].set_ylabel("Share of databases with\nloss over their set > their own 2Δ")
    panels[0, 0].legend(frameon=False, loc="upper left")
    return figure


def bound_growth(expected, tails):
    """Local bound against the number of draws, beside bounds with a stated part beyond them.

    Parameters
    ----------
    expected : pandas.Series
        What :func:`ppm.lipschitz.bound_by_draws` returned.
    tails : sequence of ppm.lipschitz.TailBound
        Bounds from several numbers of draws, one or more values of ``tail_probability``.

    Returns
    -------
    matplotlib.figure.Figure
        The expected maximum as a rising line; one line of tail bounds per probability.

    Examples
    --------
    >>> from ppm_book import plots
    >>> import numpy as np, ppm
    >>> log_lik = -np.random.default_rng(1).exponential(size=(1000, 1))
    >>> expected = ppm.lipschitz.bound_by_draws(log_lik, [10, 100, 1000])
    >>> figure = plots.bound_growth(expected, [ppm.tail_bound(log_lik)])
    >>> figure.axes[0].get_xlabel()
    'Number of draws S'
    """
    figure, axes = _figure(6.8, 4.0)
    _tidy(axes)
    axes.plot(
        expected.index, expected, "-", color=COLOURS["Data"], label="expected maximum over S draws"
    )
    colours = (COLOURS["Weighted"], COLOURS["EMweighted"], COLOURS["Weighted-M"])
    shares = list(dict.fromkeys(tail.tail_probability for tail in tails))
    for share, colour, marker in zip(shares, colours, ("o", "s", "^"), strict=False):
        here = [tail for tail in tails if tail.tail_probability == share]
        axes.plot(
            [tail.draws for tail in here], [tail.bound for tail in here], marker, color=colour,
            linestyle="--", label=f"all but {share:g} of the posterior",
        )
    axes.set_xscale("log")
    axes.set_xlabel("Number of draws S")
    axes.set_ylabel("Local bound Δ (nats)")
    axes.legend(frameon=False)
    return figure


def worked_example_weights(counts, bounds, weights, weighted_bounds, *, names=None):
    """Every record's bound before and after weighting, above the weight it was given.

    Parameters
    ----------
    counts : array_like of int, shape (records,)
        The confidential counts; they label the records.
    bounds : array_like, shape (records,)
        Record bounds f_i under the unweighted posterior, in nats.
    weights : array_like, shape (records,)
        Weights α in [0, 1].
    weighted_bounds : array_like, shape (records,)
        Record bounds α_i \\|log p\\| under the weighted pseudo posterior, in nats.
    names : sequence of str, optional
        Names of the records, put above the counts.

    Returns
    -------
    matplotlib.figure.Figure
        Upper panel: both bounds of each record. Lower panel: its weight.

    Raises
    ------
    ValueError
        If there is not one value a record in every array.

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 3, steps 1 and 2.

    Examples
    --------
    >>> from ppm_book import plots
    >>> import numpy as np, ppm
    >>> bounds = np.array([2.0, 2.5, 12.0])
    >>> weights = ppm.record_weights(bounds)
    >>> figure = plots.worked_example_weights([3, 5, 20], bounds, weights, weights * bounds)
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['Record bound (nats)', 'Weight']
    """
    counts, bounds = as_array("counts", counts), as_numbers("bounds", bounds)
    weights = as_numbers("weights", weights)
    weighted_bounds = as_numbers("weighted_bounds", weighted_bounds)
    if not counts.shape == bounds.shape == weights.shape == weighted_bounds.shape:
        raise ValueError("counts, bounds, weights and weighted_bounds must have one value a record")
    names = [""] * counts.size if names is None else names
    figure, (upper, lower) = _figure(7.2, 5.4, nrows=2, sharex=True, height_ratios=(2.4, 1))
    place = np.arange(counts.size)
    upper.vlines(place, weighted_bounds, bounds, color="0.8", linewidth=3, zorder=1)
    for label, values, marker, line in (
        ("Unweighted", bounds, "o", "-"),
        ("Weighted", weighted_bounds, "s", "--"),
    ):
        # the largest bound is the local bound: the line shows which record sets it
        upper.axhline(values.max(), color=COLOURS[label], linestyle=line, linewidth=1.2, zorder=0)
        upper.annotate(
            f"local bound, {label}",
            (0.5, values.max()),
            xycoords=("axes fraction", "data"),
            xytext=(0, 3),
            textcoords="offset points",
            ha="center",
            fontsize=10,
        )
        upper.plot(place, values, marker, color=COLOURS[label], markersize=8, label=label)
    highest = max(bounds.max(), weighted_bounds.max()) or 1.0
    upper.set_ylim(-0.04 * bounds.max(), 1.12 * highest)
    upper.set_ylabel("Record bound (nats)")
    upper.legend(frameon=False, loc="upper left", bbox_to_anchor=(0.0, 0.9))
    bars = lower.bar(place, weights, width=0.55, color=COLOURS["Weighted"], alpha=0.55)
    lower.bar_label(bars, fmt="%.2f", padding=2, fontsize=10)
    lower.set(ylim=(0, 1.3), yticks=[0, 0.5, 1], ylabel="Weight")
    lower.set_xticks(
        place, [f"{name}\n{count}".strip() for name, count in zip(names, counts, strict=True)]
    )
    lower.set_xlabel("Record and its confidential count")
    for axes in (upper, lower):
        _tidy(axes)
    upper.grid(False)
    return figure


def posterior_densities(posteriors, draws, *, label="Mean count"):
    """Exact posterior densities of one parameter, with a histogram of the draws from each.

    Parameters
    ----------
    posteriors : dict of str to frozen SciPy distribution
        Mechanism label to its exact (pseudo) posterior.
    draws : dict of str to array_like
        The same labels to posterior draws of any shape.
    label : str, default "Mean count"
        The parameter, in words.

    Returns
    -------
    matplotlib.figure.Figure
        One density and one histogram for each label.

    Raises
    ------
    ValueError
        If the two dictionaries have different labels.

    Notes
    -----
    Savitsky, Williams and Hu (2022), the pseudo posterior of section 2.

    Examples
    --------
    >>> import ppm
    >>> from ppm_book import plots
    >>> exact = ppm.GammaPoisson([3, 5, 4]).posterior()
    >>> draws = exact.rvs(500, random_state=1)
    >>> figure = plots.posterior_densities({"Unweighted": exact}, {"Unweighted": draws})
    >>> figure.axes[0].get_xlabel()
    'Mean count'
    """
    if set(posteriors) != set(draws):
        raise ValueError("posteriors and draws must have the same labels")
    ends = np.array([posterior.ppf((1e-4, 1 - 1e-4)) for posterior in posteriors.values()])
    low, high = ends[:, 0].min(), ends[:, 1].max()
    grid = np.linspace(low, high, 400)
    figure, axes = _figure(7.2, 3.8)
    for (name, posterior), line in zip(posteriors.items(), ("-", "--", "-.", ":"), strict=False):
        axes.hist(
            np.ravel(draws[name]),
            bins=np.linspace(low, high, 61),
            density=True,
            alpha=0.2,
            color=COLOURS[name],
        )
        axes.plot(grid, posterior.pdf(grid), line, color=COLOURS[name], linewidth=2.2, label=name)
    axes.set(xlim=(low, high), xlabel=label, ylabel="Posterior density")
    axes.legend(frameon=False)
    _tidy(axes)
    return figure


def income_density(income, *, simulated=False):
    """Density of family income, with its long right tail.

    Parameters
    ----------
    income : array_like
        Dollars.
    simulated : bool, default False
        Whether to mark the figure as simulated.

    Returns
    -------
    matplotlib.figure.Figure
        The paper's figure of family income (section 5).

    Raises
    ------
    ValueError
        If there are not two different incomes.

    Examples
    --------
    >>> from ppm_book import plots, survey
    >>> income = survey.simulate(200, random_seed=1).table["income"]
    >>> figure = plots.income_density(income, simulated=True)
    >>> figure.axes[0].get_xlabel()
    'Family income (thousand dollars)'
    """
    from scipy.stats import gaussian_kde

    income = as_numbers("income", income)
    if income.size == 0 or np.ptp(income) == 0:
        raise ValueError("income must hold at least two different values to have a density")
    grid = np.linspace(min(income.min(), 0.0), income.max(), 1000)
    figure, axes = _figure(7.0, 3.6)
    _tidy(axes)
    density = gaussian_kde(income, bw_method=0.1)(grid)
    axes.fill_between(grid, density, color=COLOURS["Data"], alpha=0.25, linewidth=0)
    axes.plot(grid, density, color=COLOURS["Data"])
    for share, style, height in ((0.5, "--", 1.0), (0.9, ":", 0.85)):
        value = np.quantile(income, share)
        axes.axvline(value, color="0.35", linestyle=style, linewidth=1)
        axes.annotate(
            f"{share:.0%} below {value:,.0f}", (value, height * density.max()),
            xytext=(5, 0), textcoords="offset points", fontsize=9, color="0.25",
        )
    axes.set(xlabel="Family income (thousand dollars)", ylabel="Density", yticks=[], ylim=(0, None))
    _thousands(axes.xaxis)
    _mark_simulated(figure, simulated)
    return figure


def record_bound_violins(bounds, *, simulated=False):
    """Distribution of the records' bounds under several synthesizers.

    Parameters
    ----------
    bounds : dict of str to array_like, shape (records,)
        Bounds in nats by mechanism label, in order.
    simulated : bool, default False
        Whether to mark the figure as simulated.

    Returns
    -------
    matplotlib.figure.Figure
        The paper's figure of Lipschitz bounds (section 5). The largest bound, Δ, is written above
        each violin; the axis is linear up to 1 and logarithmic beyond.

    Examples
    --------
    >>> from ppm_book import plots
    >>> bounds = {"Unweighted": [2.0, 5.0, 20.0], "DPweighted": [1.0, 1.5, 2.0]}
    >>> figure = plots.record_bound_violins(bounds)
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['Δ = 20.00', 'Δ = 2.00']
    """
    # the infinite bound of an impossible record is written, but has no place on the axis
    finite = {label: as_numbers(f"bounds: {label}", values) for label, values in bounds.items()}
    finite = {label: values[np.isfinite(values)] for label, values in finite.items()}
    figure, axes = _figure(7.4, 4.4)
    _tidy(axes)
    axes.set_yscale("symlog", linthresh=1.0)
    for position, (label, values) in enumerate(finite.items()):
        if values.size:
            _violins(axes, [values], [label], positions=[position])
        axes.annotate(
            f"Δ = {np.max(bounds[label]):.2f}", (position, values.max(initial=0.0)),
            xytext=(0, 4), textcoords="offset points", ha="center", fontsize=10,
        )
    axes.set_xticks(range(len(bounds)), [*bounds])
    axes.set_xlim(-0.6, len(bounds) - 0.4)
    # where no record has any weight, all bounds are 0
    largest = max(float(values.max(initial=0.0)) for values in finite.values()) or 0.5
    axes.set_ylim(0, 2 * largest)
    ticks = [value for value in (0, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500) if value < 2 * largest]
    axes.set_yticks(ticks, [f"{value:g}" for value in ticks])
    axes.minorticks_off()
    axes.set_ylabel("Bound of a record (nats)")
    _mark_simulated(figure, simulated)
    return figure


def statistic_violins(distributions, *, simulated=False):
    """Distributions of statistics on the data and on the synthetic data of several synthesizers.

    Parameters
    ----------
    distributions : dict of str to dict of str to array_like
        Name of a statistic to its re-samples by label; ``"Data"`` is the confidential data.
    simulated : bool, default False
        Whether to mark the figure as simulated.

    Returns
    -------
    matplotlib.figure.Figure
        The paper's utility figures (section 5), a panel each.

    Examples
    --------
    >>> from ppm_book import plots
    >>> means = {"Data": [60e3, 61e3, 62e3], "DPweighted": [58e3, 60e3, 63e3]}
    >>> figure = plots.statistic_violins({"mean": means})
    >>> figure.axes[0].get_title()
    'Mean of income'
    """
    columns = min(2, len(distributions))
    rows = -(-len(distributions) // columns)
    figure, panels = _figure(5.2 * columns, 3.4 * rows, nrows=rows, ncols=columns, squeeze=False)
    for axes, (statistic, found) in zip(panels.flat, distributions.items(), strict=False):
        _tidy(axes)
        _violins(axes, list(found.values()), list(found))
        axes.axhline(np.median(found["Data"]), color="0.5", linestyle="--", linewidth=1)
        axes.set_xticks(range(len(found)), [*found], rotation=20)
        _income_axis(axes, statistic)
    for axes in panels.flat[len(distributions):]:
        axes.set_visible(False)
    _mark_simulated(figure, simulated)
    return figure


def bounds_along(bounds, *, simulated=False):
    """Local bounds along a sequence of settings, on a logarithmic scale.

    Parameters
    ----------
    bounds : pandas.DataFrame
        Bounds in nats: a row for each setting, a column for each line, ``Mechanism, what``.
    simulated : bool, default False
        Whether to mark the figure as simulated.

    Returns
    -------
    matplotlib.figure.Figure
        What is in the paper's table of bounds (section 5); what is the paper's is dashed.

    Examples
    --------
    >>> import pandas as pd
    >>> from ppm_book import plots
    >>> bounds = pd.DataFrame({"DPweighted, K = 1": [9.0, 4.0]}, index=["(1, 0)", "(0.5, 0)"])
    >>> [line.get_label() for line in plots.bounds_along(bounds).axes[0].lines]
    ['DPweighted, K = 1']
    """
    from matplotlib.ticker import LogFormatter

    figure, axes = _figure(7.4, 4.0)
    _tidy(axes)
    for (name, values), marker in zip(bounds.items(), "osD^v<>P" * 9, strict=False):
        style = {"color": COLOURS[name.partition(",")[0]], "marker": marker}
        if name.endswith("paper"):
            style |= {"color": "black", "linestyle": "--"}
        axes.plot(range(len(values)), values, label=name, linewidth=1.2, **style)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    # some of the numbers between, and not as powers
    axes.yaxis.set_minor_formatter(LogFormatter())
    axes.set_xticks(range(len(bounds)), bounds.index)
    axes.set(xlabel="Setting (c, g)", ylabel="Local bound Δ (nats)")
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    _mark_simulated(figure, simulated)
    return figure


def sweep_violins(panels, statistic, *, simulated=False):
    """A statistic over a sequence of settings: DPweighted and EMweighted, left and right halves.

    Parameters
    ----------
    panels : dict of str to dict of (str, str) to array_like
        Title -> mechanism or ``Data``, and place on the axis -> re-sampled statistic in dollars.
    statistic : str
        Its name, for the axis.
    simulated : bool, default False
        Whether to mark the figure as simulated.

    Returns
    -------
    matplotlib.figure.Figure
        The paper's comparison over (c, g) (section 5).

    Examples
    --------
    >>> from ppm_book import plots
    >>> places = [("Data", "Data"), ("DPweighted", "(0.7, 0)"), ("EMweighted", "(0.7, 0)")]
    >>> means = {place: [60e3, 61e3, 62e3] for place in places}
    >>> figure = plots.sweep_violins({"K = 1": means}, "mean")
    >>> [text.get_text() for text in figure.axes[0].get_xticklabels()]
    ['Data', '(0.7, 0)']
    """
    from matplotlib.patches import Patch

    figure, rows = _figure(9.6, 0.6 + 3.6 * len(panels), nrows=len(panels), squeeze=False)
    halves = {"DPweighted": ("low", -0.03), "EMweighted": ("high", 0.03)}
    for axes, (title, found) in zip(rows[:, 0], panels.items(), strict=True):
        _tidy(axes)
        axes.axhline(np.median(found["Data", "Data"]), color="0.5", linestyle="--", linewidth=1)
        places = list(dict.fromkeys(place for _, place in found))
        for (name, place), sample in found.items():
            side, offset = halves.get(name, ("both", 0.0))
            _violins(axes, [sample], [name], positions=[places.index(place) + offset], side=side)
        axes.set_xticks(range(len(places)), places)
        _income_axis(axes, statistic, f"{title}: ")
    figure.legend(
        handles=[Patch(color=COLOURS[name], alpha=0.55, label=name) for name in halves],
        loc="outside upper center", ncols=2, frameon=False, title="equal local bound Δ",
    )
    _mark_simulated(figure, simulated)
    return figure


def settings_bounds(bounds, published, *, simulated=False):
    """Local bounds over the paper's settings, one panel a transformation and one line a K.

    Parameters
    ----------
    bounds : pandas.DataFrame
        Bounds in nats, a row for each transformation and K and a column for each setting.
    published : array_like
        The paper's, a number for each column.
    simulated : bool, default False
        Whether the figure must say that the data are simulated.

    Returns
    -------
    matplotlib.figure.Figure
        Bounds on a logarithmic scale, with the published ones in black (section 5).

    Examples
    --------
    >>> import pandas as pd
    >>> from ppm_book import plots
    >>> index = pd.MultiIndex.from_tuples([("log", 1)])
    >>> bounds = pd.DataFrame({"Unweighted": [80.0], "(1, 0)": [9.0]}, index)
    >>> plots.settings_bounds(bounds, [78.7, 10.1]).axes[0].get_title()
    'log'
    """
    from matplotlib import colormaps

    names = list(dict.fromkeys(bounds.index.get_level_values(0)))
    figure, panels = _figure(3.1 * max(2, len(names)), 4.4, ncols=len(names), sharey=True,
                             squeeze=False)
    places = np.arange(bounds.shape[1])
    for axes, name in zip(panels[0], names, strict=True):
        _tidy(axes)
        axes.set_yscale("log")
        rows = bounds.loc[name]
        shades = colormaps["viridis"](np.linspace(0.0, 0.85, len(rows)))
        for (k, row), shade, marker in zip(
            rows.iterrows(), shades, "osD^v<>Pp" * 23, strict=False
        ):
            axes.plot(places, row, color=shade, marker=marker, markersize=4, linewidth=1.2,
                      label=f"K = {k}")
        axes.plot(places, published, color="black", linestyle="--", marker="*", markersize=8,
                  label="as published")
        axes.set_xticks(places, bounds.columns, rotation=60, ha="right")
        axes.set_title(name, fontsize=10)
    panels[0, 0].set_ylabel("Local bound Δ (nats)")
    panels[0, -1].legend(frameon=False, fontsize=8)
    _mark_simulated(figure, simulated)
    return figure


def equal_bounds(off, *, simulated=False):
    """How far releases are from the data, one panel for each combination and setting.

    Parameters
    ----------
    off : pandas.DataFrame
        Distances in per cent of the data's, a column for each statistic; levels of the index are
        combination, repeat, setting and mechanism.
    simulated : bool, default False
        Whether the figure must say that the data are simulated.

    Returns
    -------
    matplotlib.figure.Figure
        A point for each repeat, mechanism and statistic, on a scale that is linear up to 10 per
        cent and logarithmic beyond.

    Examples
    --------
    >>> import pandas as pd
    >>> from ppm_book import plots
    >>> levels = ["combination", "repeat", "setting", "mechanism"]
    >>> place = pd.MultiIndex.from_tuples([("K = 1, log", 0, "(1, 0)", "DPweighted")], names=levels)
    >>> plots.equal_bounds(pd.DataFrame({"mean": [-3.0]}, place)).axes[0].get_title()
    'K = 1, log\\n(1, 0)'
    """
    names, settings, mechanisms = (
        list(off.index.unique(level)) for level in ("combination", "setting", "mechanism")
    )
    figure, panels = _figure(
        2.3 * max(2, len(names)), 2.9 * len(settings), nrows=len(settings), ncols=len(names),
        sharex=True, sharey=True, squeeze=False,
    )
    places = np.arange(off.shape[1])
    for row, setting in zip(panels, settings, strict=True):
        for axes, name in zip(row, names, strict=True):
            _tidy(axes)
            axes.axhline(0.0, color="black", linestyle="--", linewidth=1)
            axes.set_yscale("symlog", linthresh=10.0)
            for j, mechanism in enumerate(mechanisms):
                beside = 0.15 * (j - (len(mechanisms) - 1) / 2)
                points = off.xs((name, setting, mechanism), level=[0, 2, 3]).to_numpy()
                axes.plot(
                    np.tile(places + beside, len(points)), points.ravel(), linestyle="none",
                    color=COLOURS[mechanism], marker=MARKERS[mechanism], markersize=4.5, alpha=0.8,
                    label=mechanism,
                )
            axes.set_title(f"{name}\n{setting}", fontsize=9)
            axes.set_xticks(places, off.columns, rotation=60, ha="right", fontsize=8)
            ticks = [-100, -30, -10, -5, 0, 5, 10, 30, 100, 1000]
            axes.set_yticks(ticks, [f"{tick:+d}" if tick else "0" for tick in ticks], fontsize=8)
            axes.minorticks_off()
        row[0].set_ylabel("Off the data (%)")
    low, high = np.nanmin(off.to_numpy()), np.nanmax(off.replace(np.inf, np.nan).to_numpy())
    panels[0, 0].set_ylim(min(-12.0, 1.3 * low), max(12.0, 1.3 * high))
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False,
                  fontsize=8)
    _mark_simulated(figure, simulated)
    return figure


def detection_limits(epsilons):
    """How surely a test can detect a value, against its false alarms: a curve for each ε.

    Parameters
    ----------
    epsilons : dict of str to float
        What the legend calls it, and ε in nats.

    Returns
    -------
    matplotlib.figure.Figure
        Limits of :func:`ppm.disclosure.detection_limit`.

    Examples
    --------
    >>> from ppm_book import plots
    >>> figure = plots.detection_limits({"ε = 0.5": 0.5, "ε = 2": 2.0})
    >>> [line.get_label() for line in figure.axes[0].lines]
    ['ε = 0.5', 'ε = 2', 'a coin']
    """
    from matplotlib import colormaps

    from ppm.disclosure import detection_limit

    # straight lines between the ends and one corner
    rates = {name: [0.0, 1.0 / (1.0 + np.exp(min(e, 700.0))), 1.0] for name, e in epsilons.items()}
    figure, axes = _figure(5.6, 4.4)
    shades = colormaps["viridis"](np.linspace(0.85, 0.1, len(epsilons)))
    for (name, epsilon), shade in zip(epsilons.items(), shades, strict=True):
        limit = detection_limit(rates[name], epsilon)
        axes.plot(rates[name], limit, color=shade, linewidth=2, label=name)
    axes.plot([0, 1], [0, 1], color="0.6", linestyle=":", label="a coin")
    axes.set(
        xlabel="Rate of false alarms", ylabel="Largest rate of detection",
        xlim=(0, 1), ylim=(0, 1.02),
    )
    axes.legend(title="ε (nats)", frameon=False, loc="lower right")
    _tidy(axes)
    return figure


def utility_by_epsilon(strict, local, statistics, *, disagree=(), simulated=False):
    """Errors of single releases against the ε of one: lines for strict ε, points for local ones.

    Parameters
    ----------
    strict : dict of str to dict of float to pandas.DataFrame
        Name of a mechanism to its ε in nats to what :func:`ppm.utility.release_errors` returned.
    local : dict of str to (float, pandas.DataFrame)
        Name of a mechanism to its local ε in nats and the errors of its releases.
    statistics : sequence of str
        Columns of the errors, one panel each; a column of NaN has a panel that says so.
    disagree : collection, default ()
        Fits whose chains disagree: pairs of a name and an ε of ``strict``, and names of ``local``.
        Their marks are hollow, and the legend says why.
    simulated : bool, default False
        Whether to mark the figure as simulated.

    Returns
    -------
    matplotlib.figure.Figure
        Medians over the releases, with the range of the middle 80 per cent of them.

    Raises
    ------
    ValueError
        If ``disagree`` names what is not drawn.

    Examples
    --------
    >>> import ppm
    >>> from ppm_book import plots
    >>> data, near, far = [10.0, 20.0, 40.0], [[11.0, 22.0, 41.0]], [[30.0, 40.0, 50.0]]
    >>> errors = {1.0: ppm.utility.release_errors(data, near)}
    >>> figure = plots.utility_by_epsilon(
    ...     {"limits": errors}, {"DPweighted": (20.0, ppm.utility.release_errors(data, far))},
    ...     ["mean"], disagree=["DPweighted"],
    ... )
    >>> figure.axes[0].get_title()
    'mean'
    """
    disagree = set(disagree)
    drawn = {*local, *((name, epsilon) for name, found in strict.items() for epsilon in found)}
    if not disagree <= drawn:
        raise ValueError(
            "disagree must hold names of local, or pairs of a name and an ε of strict; got "
            f"{quoted(min(disagree - drawn, key=str))}"
        )
    columns = min(2, len(statistics))
    rows = -(-len(statistics) // columns)
    styles = STRICT_STYLES[: len(strict)]
    figure, panels = _figure(
        4.4 * columns, 0.6 + 2.7 * rows, nrows=rows, ncols=columns, squeeze=False, sharex=True
    )
    ends = (0.1, 0.5, 0.9)
    for axes, statistic in zip(panels.flat, statistics, strict=False):
        _tidy(axes)
        axes.set_xscale("log")
        every = [found for errors in strict.values() for found in errors.values()]
        every += [found for _, found in local.values()]
        if all(found[statistic].isna().all() for found in every):
            axes.text(0.5, 0.5, NO_ERROR, transform=axes.transAxes, ha="center", va="center")
        else:
            axes.axhline(0.0, color="0.5", linestyle="--", linewidth=1)
        for (name, errors), style in zip(strict.items(), styles, strict=True):
            low, middle, high = np.array(
                [np.quantile(found[statistic], ends) for found in errors.values()]
            ).T
            axes.fill_between([*errors], low, high, color=style["color"], alpha=0.2, linewidth=0)
            axes.plot([*errors], middle, label=f"{name} (strict)", linewidth=1.6, **style)
            for epsilon, value in zip(errors, middle, strict=True):
                if (name, epsilon) in disagree:
                    axes.plot([epsilon], [value], **style | HOLLOW, label="_hollow")
        seen = set()
        for name, (epsilon, found) in local.items():
            kind = name.split()[0]
            # of two settings of one mechanism the second is half filled
            face = {"fillstyle": "left", "markerfacecoloralt": "white"} if kind in seen else {}
            face = HOLLOW if name in disagree else face
            seen.add(kind)
            low, middle, high = np.quantile(found[statistic], ends)
            axes.vlines(epsilon, low, high, color=COLOURS[kind], linewidth=2)
            axes.plot(
                [epsilon], [middle],
                **{"color": COLOURS[kind], "marker": MARKERS[kind], "markersize": 7} | face
                | {"linestyle": "none", "label": f"{name} (local)"},
            )
        if disagree:
            axes.plot([], [], "o", color="0.35", **HOLLOW, label="hollow: chains disagree")
        axes.set_title(statistic, fontsize=10)
        axes.xaxis.set_major_formatter("{x:g}")
        # one large error must not press all others onto the axis
        if np.abs(axes.get_ylim()).max() > 100:
            axes.set_yscale("symlog", linthresh=20)
            axes.yaxis.set_major_formatter("{x:g}")
    for axes in panels[-1]:
        axes.set_xlabel("ε of one release (nats)")
    for axes in panels[:, 0]:
        axes.set_ylabel("error (%)")
    for axes in panels.flat[len(statistics):]:
        axes.set_visible(False)
    figure.legend(
        *panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=2,
        frameon=False, fontsize=9,
    )
    _mark_simulated(figure, simulated)
    return figure


def coverage_by_rule(coverage, rules, *, nominal=0.95):
    """Coverage of intervals by mechanism, one panel a quantity and one mark a combining rule.

    Parameters
    ----------
    coverage : pandas.Series
        Shares from 0 to 1, with the index levels ``model``, ``quantity``, ``mechanism`` and
        ``rule``.
    rules : sequence of str
        Rules to show, at most six.
    nominal : float, default 0.95
        The share that the intervals claim.

    Returns
    -------
    matplotlib.figure.Figure
        Coverage in per cent; a dashed line is at what is claimed.

    Examples
    --------
    >>> from ppm_book import plots
    >>> import pandas as pd, ppm
    >>> place = ("counts", "mean", "Unweighted", "partially synthetic")
    >>> index = pd.MultiIndex.from_tuples([place], names=["model", "quantity", "mechanism", "rule"])
    >>> figure = plots.coverage_by_rule(pd.Series([0.94], index), ["partially synthetic"])
    >>> figure.axes[0].get_title()
    'counts: mean'
    """
    styles = list(zip(["#000000", "#56B4E9", "#0072B2", "#E69F00", "#009E73", "#CC79A7"], "xvsD^o",
                      strict=True))[: len(rules)]
    places = coverage.index.droplevel(["mechanism", "rule"]).unique()
    rows = -(-len(places) // 2)
    figure, panels = _figure(8.8, 0.8 + 2.3 * rows, nrows=rows, ncols=2, squeeze=False, sharex=True)
    for axes, place in zip(panels.flat, places, strict=False):
        _tidy(axes)
        found = coverage.xs(place, level=["model", "quantity"]).unstack("rule", sort=False)
        axes.axvline(100 * nominal, color="0.5", linestyle="--", linewidth=1)
        for rule, (colour, marker) in zip(rules, styles, strict=True):
            axes.plot(100 * found[rule], range(len(found)), marker, color=colour, markersize=6,
                      label=rule)
        axes.set_yticks(range(len(found)), found.index)
        axes.set_ylim(len(found) - 0.5, -0.5)
        axes.set_title(": ".join(place), fontsize=10)
    for axes in panels.flat[: len(places)][-2:]:
        axes.set_xlabel("coverage (%)")
        axes.tick_params(labelbottom=True)
    for axes in panels.flat[len(places):]:
        axes.set_visible(False)
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3,
                  frameon=False, fontsize=9)
    return figure


def losses_by_rule(losses, width):
    """Exact losses of databases under several rules, against the width that limits them.

    Parameters
    ----------
    losses : dict of str to array_like
        Name of a rule to the largest loss of each database, in nats; at most four rules.
    width : float
        Width W of the limits, in nats.

    Returns
    -------
    matplotlib.figure.Figure
        One column a rule, one mark a database; a dashed line at W.

    Examples
    --------
    >>> from ppm_book import plots
    >>> figure = plots.losses_by_rule({"disjoint": [0.8, 0.9], "twice": [1.6]}, 1.0)
    >>> [label.get_text() for label in figure.axes[0].get_xticklabels()]
    ['disjoint', 'twice']
    """
    figure, axes = _figure(7.6, 3.6)
    _tidy(axes)
    axes.axhline(width, color="0.4", linestyle="--", linewidth=1.2)
    for place, ((name, found), style) in enumerate(
        zip(losses.items(), STRICT_STYLES, strict=False)
    ):
        found = as_numbers("losses", found)
        # side by side where many are alike
        aside = 0.2 * np.linspace(-1, 1, found.size) if found.size > 1 else 0.0
        axes.plot(place + aside, found, style["marker"], color=style["color"], markersize=4.5,
                  alpha=0.7, linestyle="none", label=name)
        ends = found.min(), np.median(found), found.max()
        figure.distributions.append((axes, name, place, ends))
    axes.set_xticks(range(len(losses)), [fill(name, 14) for name in losses])
    axes.set_xlim(-0.5, len(losses) - 0.5)
    highest = max(width, *(np.max(found) for found in losses.values()))
    axes.set_ylim(0, 1.08 * highest)
    axes.set_ylabel("largest loss (nats)")
    return figure


def bias_and_spread(table):
    """Bias and standard deviation of a release's mean against ε, for several ways to spend it.

    Parameters
    ----------
    table : pandas.DataFrame
        Index levels ``way``, at most four of them, and ``ε``; columns ``bias (%)`` and
        ``standard deviation (%)``.

    Returns
    -------
    matplotlib.figure.Figure
        Two panels with one line a way.

    Examples
    --------
    >>> from ppm_book import plots
    >>> import pandas as pd, ppm
    >>> index = pd.MultiIndex.from_product([["whole"], [0.5, 1.0]], names=["way", "ε"])
    >>> table = pd.DataFrame({"bias (%)": [1, 2], "standard deviation (%)": [3, 2]}, index)
    >>> [axes.get_title() for axes in plots.bias_and_spread(table).axes]
    ['bias (%)', 'standard deviation (%)']
    """
    columns = ["bias (%)", "standard deviation (%)"]
    figure, panels = _figure(8.8, 3.4, ncols=2)
    for axes, column in zip(panels, columns, strict=True):
        _tidy(axes)
        axes.set_xscale("log")
        axes.axhline(0.0, color="0.5", linestyle="--", linewidth=1)
        ways = table[column].groupby(level="way", sort=False)
        for (way, found), style in zip(ways, STRICT_STYLES, strict=False):
            axes.plot(found.index.get_level_values("ε"), found, label=way, linewidth=1.6, **style)
        axes.set_title(column, fontsize=10)
        axes.set_xlabel("ε in all (nats)")
        epsilons = [*dict.fromkeys(table.index.get_level_values("ε"))]
        axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
        axes.set_xticks([], minor=True)
    panels[0].set_ylabel("of the mean of a release")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2,
                  frameon=False, fontsize=9)
    return figure
