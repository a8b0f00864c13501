"""A chapter's cells, run here for the tests: without a kernel, and so in seconds."""

import contextlib
import io
from types import SimpleNamespace
from unittest.mock import patch

import nbformat
from conftest import ROOT


def _cells(name):
    notebook = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", 4)
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def cell_of(name, words):
    """Text of the one cell of a chapter that has these words."""
    (text,) = [cell.source for cell in _cells(name) if words in cell.source]
    return text


def of_chapter(name):
    """What a chapter's cells with the tag ``function`` define."""
    names = {}
    for cell in _cells(name):
        if "function" in cell.metadata.get("tags", ()):
            exec(cell.source, names)
    return SimpleNamespace(**names)


def run_chapter(name, upto=None, without=(), **given):
    """What a chapter's cells define, to the last or to one with these words.

    Cells with some of the words ``without`` are left out. Parameters are the book's own, but for
    those given. Of the result ``printed`` is what the cells printed, and ``displayed`` what they
    displayed, such as the claims.
    """
    names, displayed, printed = {"__name__": "__main__"}, [], io.StringIO()
    with (
        patch("IPython.display.display", lambda one, **_: displayed.append(one)),
        contextlib.redirect_stdout(printed),
    ):
        for cell in _cells(name):
            if any(words in cell.source for words in without):
                continue
            exec(compile(cell.source, f"<{name}>", "exec"), names)
            if "parameters" in cell.metadata.get("tags", ()):
                names |= given
            if upto and upto in cell.source:
                break
    return SimpleNamespace(
        **names | {"printed": printed.getvalue(), "displayed": displayed}
    )
