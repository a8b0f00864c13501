"""Code that a page shows runs as it is shown: no name comes from a cell that the page leaves out."""

import builtins
import symtable

import nbformat
import pytest

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
