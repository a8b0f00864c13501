"""The library's layout: what stands where, and which way the arrows point."""

import ast
import inspect
import json
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import public_names as surface
import pytest
from conftest import ROOT

import ppm

LIBRARY = ROOT / "ppm"


def modules(library=LIBRARY):
    """Dotted name of every module, to its file."""
    found = {}
    for path in library.rglob("*.py"):
        parts = path.relative_to(library.parent).with_suffix("").parts
        found[".".join(part for part in parts if part != "__init__")] = path
    return found


def imports(library=LIBRARY):
    """Every module to those that it imports anywhere, inside functions too.

    What a package forwards lazily is none of its imports.
    """
    known = modules(library)
    found = {}
    for name, path in known.items():
        reached = set()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                reached |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                inner = {f"{node.module}.{alias.name}" for alias in node.names}
                reached |= inner & known.keys() or {node.module}
        found[name] = {other for other in reached & known.keys() if other != name}
    return found


def wrong_arrows(found):
    """Modules outside ``publishing`` that import it; the program's entry may."""
    return {
        name
        for name, reached in found.items()
        if not name.startswith("ppm.publishing") and name != "ppm.__main__"
        and any(other.startswith("ppm.publishing") for other in reached)
    }


# the order of design: a room imports those to its right only
LEVELS = [
    {"ppm.publishing"},
    {"ppm.classroom"},
    {"ppm_book.plots"},
    {"ppm.audits"},
    {"ppm.studies"},
    {"ppm.mechanism", "ppm_book.survey"},
    {"ppm.synthesizers", "ppm.weights", "ppm.diagnostics"},
    {
        "ppm.lipschitz", "ppm.censoring", "ppm.pdp", "ppm.risk", "ppm.utility", "ppm.disclosure",
    },
]


def level(name):
    for place, rooms in enumerate(LEVELS):
        if any(name == room or name.startswith(f"{room}.") for room in rooms):
            return place
    return None


def upward(found):
    """Arrows from the inside out."""
    return {
        (name, other)
        for name, reached in found.items()
        for other in reached
        if None not in (level(name), level(other)) and level(other) < level(name)
    }


def circle(found):
    """A circle of imports, or None."""
    try:
        tuple(TopologicalSorter(found).static_order())
    except CycleError as error:
        return error.args[1]
    return None


def test_the_ground_floor_and_its_rooms_can_be_taken_in_at_a_glance():
    files = [path for path in LIBRARY.iterdir() if path.suffix == ".py"]
    folders = [path for path in LIBRARY.iterdir() if (path / "__init__.py").is_file()]
    assert len(files) <= 14 and len(folders) <= 6


def test_no_file_is_longer_than_a_reader_can_hold():
    long = {
        name: length
        for name, path in modules().items()
        if (length := len(path.read_text("utf-8").splitlines())) > 700 and name != "ppm_book.plots"
    }
    assert not long


def test_no_circle_and_no_arrow_out_of_publishing():
    found = imports()
    assert circle(found) is None
    assert not wrong_arrows(found)
    assert not upward(found)
    # the graph is not empty because a name was misread
    assert "ppm.lipschitz" in found["ppm.mechanism"]
    assert "ppm.publishing.ledger_values" in found["ppm.publishing.ledger_study"]


@pytest.mark.parametrize(
    ("file", "line", "caught"),
    [
        ("lipschitz.py", "def late():\n    from ppm.mechanism import refit", circle),
        ("risk.py", "from ppm.publishing import results", wrong_arrows),
        ("pdp.py", "import ppm.studies.contraction_study", upward),
    ],
)
def test_a_wrong_arrow_is_seen(tmp_path, file, line, caught):
    library = tmp_path / "ppm"
    for path in modules().values():
        target = library / path.relative_to(LIBRARY)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(path.read_text("utf-8"), "utf-8")
    target = library / file
    target.write_text(f"{target.read_text('utf-8')}\n{line}\n", "utf-8")
    assert caught(imports(library))


def test_the_surface_is_small():
    own = [name for name in ppm.__all__ if not isinstance(getattr(ppm, name), type(ppm))]
    assert len(own) <= 19
    assert all(Path(LIBRARY, name).exists() or Path(LIBRARY, f"{name}.py").exists()
               for name in set(ppm.__all__) - set(own))


def test_every_room_says_what_a_reader_may_call():
    # the synthesizers stand on ppm itself
    assert {name for name, room in surface.rooms().items() if not hasattr(room, "__all__")} == {
        "synthesizers"
    }
    for name, value in surface.public_names().items():
        assert inspect.isfunction(value) or inspect.isclass(value), name
        assert value.__name__ == name.rpartition(".")[2] and value.__doc__, name
    for helper in ("mechanism.refit", "lipschitz.weighted", "disclosure.own_folder"):
        assert helper not in surface.public_names()


def called(source):
    """Names of the library that code calls, without ``ppm.``; ``page`` is ``ppm.publishing``."""
    source = re.sub(r"\bpage\.", "ppm.publishing.", source)
    for node in ast.walk(ast.parse(source)):
        parts = ast.unparse(node).split(".") if isinstance(node, ast.Attribute) else []
        if parts[:1] == ["ppm"] and all(map(str.isidentifier, parts)):
            length = 3 if parts[1] in ppm._ROOMS else 2
            yield ".".join(parts[1:length])


def test_chapters_call_public_names_only():
    open_to_readers = surface.public_names().keys() | surface.rooms().keys() | {"__version__"}
    found = set()
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for cell in json.loads(path.read_text("utf-8"))["cells"]:
            if cell["cell_type"] == "code":
                names = set(called("".join(cell["source"])))
                assert names <= open_to_readers, path.name
                found |= names
    assert {"local_bound", "plots.sweep_violins", "publishing.table"} <= found
    assert not set(called("ppm.mechanism.refit(1)")) <= open_to_readers
