"""The book's reference of the library shows every public name, and no name that is not public."""

import inspect
import re

import pytest
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


def test_every_public_name_is_described_once_and_no_other():
    # what audits return has no second name, and the book's package shows what its chapters call
    entries = (entry for page in PAGES.values() for entry in described(page))
    elsewhere = "audits.from_draws.", "ppm_book."
    found = [(kind != "function", name) for kind, name in entries if not name.startswith(elsewhere)]
    names = public_names().items()
    assert sorted(found) == sorted((inspect.isclass(value), name) for name, value in names)
    assert len(found) <= 45


@pytest.mark.parametrize("page", sorted(PAGES.keys() - {OVERVIEW}))
def test_the_table_of_a_page_lists_what_it_describes(page):
    assert listed(PAGES[page]) == [name for _, name in described(PAGES[page])]


def test_the_overview_lists_the_names_on_ppm_and_links_every_page():
    assert sorted(listed(PAGES[OVERVIEW])) == sorted(set(ppm.__all__) - rooms().keys())
    assert set(re.findall(r"\{doc\}`(\w+)`", PAGES[OVERVIEW])) == PAGES.keys() - {OVERVIEW}
    contents = (ROOT / "_toc.yml").read_text("utf-8")
    assert sorted(re.findall(r"file: book/library/(\w+)", contents)) == sorted(PAGES)
