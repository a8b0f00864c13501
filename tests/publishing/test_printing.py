"""The book as one PDF."""

import shutil

import pytest

from ppm.publishing import printing
from ppm.publishing.notebooks import BookError
from ppm.publishing.printing import find_chromium


def test_chromium_is_looked_for_under_its_usual_names(monkeypatch):
    found = {"google-chrome": "/opt/chrome"}
    monkeypatch.setattr(printing.shutil, "which", found.get)
    assert find_chromium() == "/opt/chrome"
    found.clear()
    assert find_chromium() is None


@pytest.mark.skipif(
    find_chromium() is None, reason="no Chromium was found (apt-get install chromium)"
)
def test_a_page_is_printed_with_an_outline_and_tags(tmp_path):
    (tmp_path / "page.html").write_text(
        '<!DOCTYPE html><html lang="en"><title>Page</title><h1>One</h1><h2>Two</h2><p>Text.</p>'
    )
    printing.print_page(tmp_path / "page.html", tmp_path / "page.pdf", find_chromium())
    pdf = (tmp_path / "page.pdf").read_bytes()
    assert pdf.startswith(b"%PDF-")
    # the outline names both headings, and the structure is there for screen readers
    assert b"/Outlines" in pdf and b"/StructTreeRoot" in pdf
    assert pdf.count(b"/Title") >= 3


def test_what_is_missing_for_a_pdf_is_said(tmp_path, monkeypatch):
    with pytest.raises(BookError, match="^there is no book to print: make book$"):
        printing.book_as_pdf(tmp_path)
    (tmp_path / "_build" / "html").mkdir(parents=True)
    (tmp_path / "_build" / "stage").mkdir()
    (tmp_path / "_build" / "stage" / "_config.yml").touch()
    monkeypatch.setattr(printing, "find_chromium", lambda: None)
    with pytest.raises(BookError, match="^a PDF needs Chromium"):
        printing.book_as_pdf(tmp_path)


def test_a_browser_that_prints_nothing_is_no_pdf(tmp_path):
    with pytest.raises(BookError, match="^false printed nothing, exit status 1$"):
        printing.print_page(tmp_path / "page.html", tmp_path / "page.pdf", shutil.which("false"))


def test_links_of_the_joined_page_stay_on_it_or_lead_to_the_web():
    html = (
        '<a class="x" href="book/intro.html#document-a">a</a><a href="#b">b</a>'
        '<a href="_static/c.csv">c</a><a href="https://example.org/#d">d</a><link href="e.css">'
    )
    assert printing.with_own_links(html) == (
        '<a class="x" href="#document-a">a</a><a href="#b">b</a>'
        '<a>c</a><a href="https://example.org/#d">d</a><link href="e.css">'
    )
