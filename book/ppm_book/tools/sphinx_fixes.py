"""Sphinx extension: editions of figures for phones, and scripts that fail left out."""

import re
from pathlib import Path

FIGURE = re.compile(r'<figure [^>]*id="([^"]+)".*?</figure>', re.S)
NARROW = r'<picture><source media="screen and (max-width: 720px)" srcset="{}" />\g<0></picture>'


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
    def with_narrow(match):
        figure, name = match.group(0, 1)
        if Path(app.srcdir, "book/_static/figures", f"{name}.png").is_file():
            address = context["pathto"](f"_static/figures/{name}.png", 1)
            figure = re.sub("<img [^>]*>", NARROW.format(address), figure, count=1)
        return figure

    context["body"] = FIGURE.sub(with_narrow, context.get("body", ""))
    if page.startswith("exercises/"):
        # made from notebooks, which the classroom's editions have
        buttons = context.get("header_buttons", ())
        context["header_buttons"] = [
            b for b in buttons if b.get("label") != "download-buttons"
        ]
    # for running cells elsewhere: it fails on every page though it is switched off
    context["script_files"] = [
        file
        for file in context.get("script_files", ())
        if "thebe" not in f"{file.filename} {file.attributes}".lower()
    ]
