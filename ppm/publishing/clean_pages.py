"""Sphinx extension of the book: mends on its pages what the theme and other extensions leave."""

import re

# a script for cells that run in the browser, from another machine; the book switches them off
_THEBE = re.compile(r"thebe", re.IGNORECASE)


def setup(app):
    """Register with Sphinx."""
    # behind everything else that has a say on a page
    app.connect("html-page-context", _clean, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _clean(app, name, template, context, doctree):
    for kind in ("script_files", "css_files"):
        context[kind] = [file for file in context.get(kind, ()) if not _THEBE.search(_said(file))]
    if "generate_toctree_html" in context:
        context["generate_toctree_html"] = _labelled(context["generate_toctree_html"])
    if context.get("body"):
        context["body"] = mended(context["body"])


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


def _labelled(toctree):
    """What makes the contents of the sidebar, with a name for every button that unfolds a part."""

    def labelled(*arguments, **options):
        part = re.compile(r"(<a\b[^>]*>([^<]*)</a>\s*<details[^>]*>\s*<summary)>")
        return part.sub(r'\1 aria-label="Pages of \2">', str(toctree(*arguments, **options)))

    return labelled
