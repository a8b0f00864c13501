"""Code that a page shows runs as it is shown: no name comes from a cell that the page leaves out."""

import builtins
import symtable

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from ppm_book.tools import parameters

HIDDEN = {"remove-cell", "remove-input"}


def unknown_names(code):
    """Names that code reads without defining or importing them."""
    tables = [symtable.symtable(code, "page", "exec")]
    known, read = {*dir(builtins), "display"}, set()  # as in a notebook
    for table in tables:
        tables.extend(table.get_children())
        for symbol in table.get_symbols():
            if symbol.is_global() or table.get_type() == "module":
                if symbol.is_assigned() or symbol.is_imported():
                    known.add(symbol.get_name())
                if symbol.is_referenced():
                    read.add(symbol.get_name())
    return read - known


def unknown_to_readers(notebook):
    """By the id of a cell, names that neither it nor what a page shows above it defines.

    Folded cells are shown, and so are parameters.
    """
    above, unknown = "", {}
    for cell in notebook.cells:
        if cell.cell_type == "code" and not HIDDEN & {*cell.metadata.get("tags", ())}:
            above += f"{cell.source}\n"
            if names := unknown_names(above) - set().union(*unknown.values()):
                unknown[cell.id] = names
    return unknown


@pytest.mark.parametrize("name", parameters.chapters())
def test_shown_code_runs_as_it_is_shown(name):
    assert unknown_to_readers(nbformat.read(parameters.source(name), 4)) == {}


def test_names_from_removed_cells_or_from_further_down_are_noticed():
    def cell(name, source, *tags):
        return new_code_cell(source, id=name, metadata={"tags": [*tags]})

    parts = {
        "parameters": cell("parameters", "seed: int = 1", "parameters"),
        "imports": cell("imports", "import numpy as np\nfrom math import pi as circle"),
        "removed": cell("removed", "table = np.zeros(seed)", "remove-cell"),
        "quiet": cell("quiet", "words = 'mean'", "remove-input"),
        "folded": cell(
            "folded",
            "def area(r):\n    return [circle * r * s for s in table]",
            "hide-input",
        ),
        "shown": cell("shown", "display(area(r=2), words)"),
    }
    broken = new_notebook(cells=[*parts.values()])
    assert unknown_to_readers(broken) == {"folded": {"table"}, "shown": {"words"}}
    for name in "removed", "quiet":
        parts[name].metadata["tags"] = ["hide-input"]
    assert unknown_to_readers(broken) == {}
    last = cell("last", "table = words = 1")
    parts["removed"].metadata["tags"] = ["remove-cell"]
    assert unknown_to_readers(new_notebook(cells=[*parts.values(), last])) == {
        "folded": {"table"}
    }
