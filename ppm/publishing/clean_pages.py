"""Sphinx extension of the book: mends on its pages what the theme and other extensions leave."""

import re
from pathlib import Path

from ppm.publishing.staging import FIGURES

# a script for cells that run in the browser, from another machine; the book switches them off
_THEBE = re.compile(r"thebe", re.IGNORECASE)

_FIGURE = re.compile(r'<figure [^>]*id="(?P<id>[^"]+)".*?</figure>', re.DOTALL)


def setup(app):
    """Register with Sphinx."""
    # behind everything else that has a say on a page
    app.connect("html-page-context", _clean, priority=900)
    app.connect("builder-inited", _join)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _join(app):
    """Let all that is shown on pages be shown on one that holds them all.

    What an extension says of pages counts there, too, unless another one speaks of that builder by
    name; then Sphinx forgets the first.
    """
    handlers = app.registry.translation_handlers
    handlers["singlehtml"] = {**handlers.get("html", {}), **handlers.get("singlehtml", {})}


def _clean(app, name, template, context, doctree):
    for kind in ("script_files", "css_files"):
        context[kind] = [file for file in context.get(kind, ()) if not _THEBE.search(_said(file))]
    if "generate_toctree_html" in context:
        context["generate_toctree_html"] = _labelled(context["generate_toctree_html"])
    if context.get("body"):
        folder = Path(app.srcdir) / FIGURES
        pathto = context["pathto"]
        context["body"] = with_figures(
            mended(context["body"]), folder, lambda file: pathto(f"_static/figures/{file}", 1)
        )


def _said(file):
    """Name of a script or style sheet, and what it says itself."""
    body = (getattr(file, "attributes", None) or {}).get("body")
    return f"{getattr(file, 'filename', None) or file} {body or ''}"


def mended(body):
    """The body of a page without roles that it does not fill, and without empty headings.

    Parameters
    ----------
    body : str
        HTML.

    Returns
    -------
    str
    """
    # a list must hold its items only, and browsers have given these roles up
    body = body.replace('<div role="list" class="citation-list">', '<div class="citation-list">')
    body = body.replace(' role="doc-biblioentry"', "")
    # the corner of a table is no heading
    corner = r'<th class="(blank|head)([^"]*)" ?>\s*(?:&nbsp;|<p>\s*</p>)?\s*</th>'
    return re.sub(corner, r'<td class="\1\2"></td>', body)


def with_figures(body, folder, address):
    """The body of a page with a narrow picture of every figure for phones, and its data.

    Parameters
    ----------
    body : str
        HTML.
    folder : path-like
        Where the files of figures lie, by their ids.
    address : callable
        Takes the name of a file and returns its address, as seen from the page.

    Returns
    -------
    str
    """

    def add(match):
        figure, name = match[0], match["id"]
        narrow = [file for end in ("png", "svg") if Path(folder, file := f"{name}.{end}").is_file()]
        for file in narrow:
            media = "screen and (max-width: 720px)"
            source = f'<source media="{media}" srcset="{address(file)}" />'
            figure = re.sub(r"<img [^>]*>", rf"<picture>{source}\g<0></picture>", figure, count=1)
        if Path(folder, f"{name}.csv").is_file():
            link = (
                f'<a href="{address(f"{name}.csv")}" download>What it shows, as numbers (CSV)</a>'
            )
            figure = figure.replace("</figcaption>", f'<p class="data">{link}</p></figcaption>')
        return figure

    return _FIGURE.sub(add, body)


def _labelled(toctree):
    """What makes the contents of the sidebar, with a name for every button that unfolds a part."""

    def labelled(*arguments, **options):
        part = re.compile(r"(<a\b[^>]*>([^<]*)</a>\s*<details[^>]*>\s*<summary)>")
        return part.sub(r'\1 aria-label="Pages of \2">', str(toctree(*arguments, **options)))

    return labelled
