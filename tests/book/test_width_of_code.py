"""Code that a page shows can be read there."""

import nbformat
import pytest
from conftest import ROOT

from ppm_book.tools import parameters

# what has room on a screen of 1280 pixels, and what `ruff format` breaks code at
WIDTH = 88
HIDDEN = {"hide-input", "hide-cell", "remove-input", "remove-cell"}
SHEETS = [file.stem for file in (ROOT / "notebooks" / "exercises").glob("*.ipynb")]


def too_wide(notebook):
    """Lines of shown cells that are wider than the page."""
    return [
        line
        for cell in notebook.cells
        if cell.cell_type == "code"
        and not HIDDEN & {*cell.metadata.get("tags", ())}
        # parameters are folded, and their comments say what they accept
        and "parameters" not in cell.metadata.get("tags", ())
        for line in cell.source.splitlines()
        if len(line) > WIDTH
    ]


@pytest.mark.parametrize(
    "file", [*parameters.chapters(), *(f"exercises/{name}" for name in SHEETS)]
)
def test_no_line_of_shown_code_is_wider_than_the_page(file):
    notebook = nbformat.read(ROOT / "notebooks" / f"{file}.ipynb", 4)
    assert not too_wide(notebook)
