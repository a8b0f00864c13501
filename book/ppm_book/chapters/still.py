"""What stands in the place of a picture that moves, on paper and where no script can move it."""

import base64
import html
import io

import numpy as np
from PIL import Image

from ppm_book.chapters import plots


def element(figure, title, said, to_do):
    """Element of HTML with a figure, what it says, and what a reader of the web page can do."""
    drawn, png = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, dpi=140)
    plots.check_places(figure)
    # 64 colours are enough, and a quarter of the bytes
    Image.open(drawn).convert("RGB").quantize(64, Image.Quantize.MAXCOVERAGE).save(
        png, "PNG", optimize=True
    )
    source = f"data:image/png;base64,{base64.b64encode(png.getvalue()).decode()}"
    title, said, to_do = map(html.escape, (title, said, to_do))
    return (
        f'<div class="still"><p class="title">{title}</p>'
        f'<img alt="{title}, as described below" width="520" src="{source}">'
        f"<p>{said}</p>"
        f'<p class="hint">On the book’s web page you can {to_do}.</p></div>'
    )


def figure(contents, frame):
    """Figure of the panels of a moving picture at one place, as the script draws them."""
    drawn, axes = plots.panels(
        len(contents),
        size=(5.2, 1.9),
        height_ratios=[60 + panel.get("height", 60) for panel in contents],
    )
    for one, panel, now in zip(axes, contents, frame, strict=True):
        one.set_title(panel.get("label", ""), size=10, loc="left")
        low, high = panel["heights"]
        # room for words on the lines at the ends
        room = 0.12 * (high - low)
        one.set(ylim=(low and low - room, high + room), xlabel=panel.get("axis", ""))
        _draw_bars(one, panel, now)
        for part in (panel, now):
            _draw_lines(one, part, panel.get("x"))
            _draw_levels(one, part)
        if "range" in panel:
            one.set_xlim(panel["range"])
        if "ticks" in panel:
            one.set_xticks(*zip(*panel["ticks"], strict=True), size=9)
        if panel.get("plain"):
            one.set_yticks([])
    return drawn


def heights(panel, *frames):
    """Lowest and highest of all that is drawn in a panel, at least from 0."""
    values = [0]
    for drawn in (panel, *frames):
        values += [height for height, _ in _lines_across(drawn)]
        values += drawn.get("bars", []) + drawn.get("outline", [])
        values += [height for line in drawn.get("lines", []) for height in line["y"]]
        values += [dot["at"][1] for dot in drawn.get("dots", [])]
    low, high = panel.get("heights", (min(values), max(values)))
    return [low, high if high > low else low + 1]


def _lines_across(drawn):
    """The lines across a panel or a frame, each a height and words."""
    across = drawn.get("across", [])
    return [across] if across and not isinstance(across[0], list) else across


def _draw_bars(axes, panel, now):
    bars, outline = now.get("bars"), now.get("outline", panel.get("outline"))
    colour = panel.get("colour", plots.COLOURS["Weighted"])
    for heights, style in (
        (bars, {"color": colour, "fill": True}),
        (outline, {"color": "black", "fill": False}),
    ):
        if heights and "names" in panel:
            axes.bar(panel["names"], heights, width=0.7, **style)
        elif heights:
            first, last = panel.get("range", (0, len(heights)))
            axes.stairs(heights, np.linspace(first, last, len(heights) + 1), **style)


def _draw_lines(axes, drawn, x):
    for line in drawn.get("lines", []):
        colour = line.get("colour", plots.COLOURS["Weighted"])
        dashes = "--" if line.get("dashed") else "-"
        axes.plot(line.get("x", x), line["y"], dashes, color=colour)
        end = line.get("x", x)[-1], line["y"][-1]
        axes.annotate(line.get("words", ""), end, ha="right", va="bottom", color=colour)
    for dot in drawn.get("dots", []):
        colour = dot.get("colour", plots.COLOURS["Weighted"])
        axes.plot(*dot["at"], "o", color=colour)
        place = {"xytext": (8, 8)}
        if dot.get("below") or dot.get("aside"):
            place = {"xytext": (8, -14)}
        axes.annotate(
            dot["words"], dot["at"], textcoords="offset points", color=colour, **place
        )


def _draw_levels(axes, drawn):
    for height, words in _lines_across(drawn):
        axes.axhline(height, **plots.LEVEL)
        place = {"xy": (0.01, height), "xycoords": ("axes fraction", "data")}
        axes.annotate(words, va="bottom", **place)
    if "upright" in drawn:
        place, words = drawn["upright"]
        axes.axvline(place, **plots.LEVEL)
        place = {"xy": (place, 0.98), "xycoords": ("data", "axes fraction")}
        axes.annotate(words, va="top", **place)
