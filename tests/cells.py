"""Functions that stand in a chapter's cells, for the tests."""

from types import SimpleNamespace

import nbformat
from conftest import ROOT


def of_chapter(name):
    """What a chapter's cells with the tag ``function`` define."""
    names = {}
    for cell in nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", 4).cells:
        if "function" in cell.metadata.get("tags", ()):
            exec(cell.source, names)
    return SimpleNamespace(**names)
