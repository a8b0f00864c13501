"""The book as one PDF."""

import pytest

from ppm_book import pdf

needs_chromium = pytest.mark.skipif(
    pdf.find_chromium() is None, reason="no Chromium was found (apt-get install chromium)"
)


@needs_chromium
def test_a_page_is_printed_with_an_outline_and_tags(tmp_path):
    page = tmp_path / "page.html"
    page.write_text('<!DOCTYPE html><html lang="en"><title>P</title><h1>One</h1><h2>Two</h2>')
    pdf.print_page(page, tmp_path / "page.pdf")
    printed = (tmp_path / "page.pdf").read_bytes()
    # the outline names both headings, and the structure is there for screen readers
    assert printed.count(b"/Title") >= 3 and b"/StructTreeRoot" in printed
