"""The book's reference of the library shows every public name, and no name that is not public."""

import inspect
import re
from pathlib import Path

from conftest import ROOT
from public_names import public_names

from ppm_book.tools.pages import lists

PAGES = {Path(name).stem: text for name, text in lists().items() if "library" in name}


def described(page):
    """Names that a page describes, without ``ppm.``, each with the kind that it is called."""
    return re.findall(
        r"^\.\. auto(function|class|exception|data):: (?:ppm\.)?([\w.]+)", page, re.M
    )


def test_every_public_name_is_described_once_and_no_other():
    # what audits return has no second name, and the book's package shows what its chapters call
    entries = [
        (name, kind)
        for page in PAGES.values()
        for kind, name in described(page)
        if not name.startswith(("audits.from_draws.", "ppm_book."))
    ]
    names = public_names()
    assert sorted(name for name, _ in entries) == sorted(names)
    for name, kind in entries:
        assert inspect.isclass(names[name]) == (kind in ("class", "exception"))
        assert callable(names[name]) == (kind != "data")


def test_the_overview_links_every_page():
    assert set(re.findall(r"\{doc\}`(\w+)`", PAGES["index"])) == PAGES.keys() - {
        "index"
    }
    contents = (ROOT / "_toc.yml").read_text("utf-8")
    assert sorted(re.findall(r"file: book/library/(\w+)", contents)) == sorted(PAGES)
