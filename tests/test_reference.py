"""The book's reference of the library shows every public name, and no name that is not public."""

import inspect
import re

import pytest
import yaml
from conftest import ROOT
from public_names import public_names, rooms

import ppm

PAGES = {path.stem: path.read_text("utf-8") for path in (ROOT / "book" / "library").glob("*.md")}
OVERVIEW = "index"


def described(page):
    """Names that a page describes, without ``ppm.``, each with the kind that it is called."""
    entry = r"^\.\. auto(function|class|exception):: (?:ppm\.)?([\w.]+)"
    return re.findall(entry, page, re.MULTILINE)


def listed(page):
    """Names in the table at the head of a page."""
    (table,) = re.findall(r"\.\. autosummary::\n   :nosignatures:\n\n((?:   ppm[\w.]+\n)+)", page)
    return [line.strip().removeprefix("ppm.") for line in table.splitlines()]


def kind(value):
    if not inspect.isclass(value):
        return "function"
    return "exception" if issubclass(value, BaseException) else "class"


def faults(pages):
    """What is missing from the pages, twice in them, no public name or called by a wrong kind."""
    public = {(kind(value), name) for name, value in public_names().items()}
    found = [entry for page in pages.values() for entry in described(page)]
    twice = {name for _, name in found if [other for _, other in found].count(name) > 1}
    # the book's own package shows what its chapters call
    found = {(kind, name) for kind, name in found if not name.startswith("ppm_book.")}
    return twice | {name for _, name in public ^ found}


def test_every_public_name_is_described_once_and_no_other():
    assert faults(PAGES) == set()


@pytest.mark.parametrize("new", ["class:: ppm.epsilon", "function:: ppm.exceedance"])
def test_a_wrong_page_is_seen(new):
    page = PAGES["pdp"].replace("function:: ppm.epsilon", new)
    assert "epsilon" in faults(PAGES | {"pdp": page})


@pytest.mark.parametrize("page", sorted(PAGES.keys() - {OVERVIEW}))
def test_the_table_of_a_page_lists_what_it_describes(page):
    assert listed(PAGES[page]) == [name for _, name in described(PAGES[page])]


def test_the_overview_lists_the_names_on_ppm_and_links_every_page():
    assert sorted(listed(PAGES[OVERVIEW])) == sorted(set(ppm.__all__) - rooms().keys())
    assert set(re.findall(r"\{doc\}`(\w+)`", PAGES[OVERVIEW])) == PAGES.keys() - {OVERVIEW}


def test_every_page_is_in_the_table_of_contents():
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))
    (overview,) = [
        entry
        for part in contents["parts"]
        for chapter in part["chapters"]
        for entry in chapter.get("sections", ())
        if entry["file"] == "book/library/index"
    ]
    pages = [overview["file"], *(entry["file"] for entry in overview["sections"])]
    assert sorted(pages) == sorted(f"book/library/{page}" for page in PAGES)
