"""Sphinx extension: what figures bring besides their pictures, and scripts that fail left out."""

import re
from pathlib import Path

FIGURE = re.compile(r'<figure [^>]*id="([^"]+)".*?</figure>', re.S)
NARROW = r'<picture><source media="screen and (max-width: 720px)" srcset="{}" />\g<0></picture>'
DATA = r'<p class="data"><a href="{}" download>What it shows, as numbers (CSV)</a></p>\g<0>'


def setup(app):
    """Register with Sphinx, after everything else that has a say on a page."""
    app.connect("html-page-context", _mend, priority=900)
    app.connect("builder-inited", _join)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _join(app):
    """What extensions say of pages holds for all pages in one, if one names that builder, too."""
    handlers = app.registry.translation_handlers
    handlers["singlehtml"] = handlers.get("html", {}) | handlers.get("singlehtml", {})


def _mend(app, page, template, context, doctree):
    def with_files(match):
        figure, name = match.group(0, 1)
        for file in Path(app.srcdir, "book/_static/figures").glob(f"{name}.*"):
            data = file.suffix == ".csv"
            place, more = ("</figcaption>", DATA) if data else ("<img [^>]*>", NARROW)
            address = context["pathto"](f"_static/figures/{file.name}", 1)
            figure = re.sub(place, more.format(address), figure, count=1)
        return figure

    context["body"] = FIGURE.sub(with_files, context.get("body", ""))
    if page.startswith("exercises/"):
        # made from notebooks, which the classroom's editions have
        buttons = context.get("header_buttons", ())
        context["header_buttons"] = [b for b in buttons if b.get("label") != "download-buttons"]
    # for running cells elsewhere: it fails on every page though it is switched off
    context["script_files"] = [
        file for file in context.get("script_files", ())
        if "thebe" not in f"{file.filename} {file.attributes}".lower()
    ]
