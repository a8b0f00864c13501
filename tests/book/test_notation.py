"""The page of notation: every symbol leads to where it is defined, and to its name in code."""

import re

import pytest
from bs4 import BeautifulSoup

ROWS = "table:has(th:-soup-contains('In ppm')) tbody tr"
PLACES = {"td:nth-child(2)": "library/", "td:last-child": "../notebooks/"}


def faults(page, folder):
    """Cells without a link to the reference or to a definition, and links that lead nowhere."""
    rows, found = BeautifulSoup(page, "html.parser").select(ROWS), []
    assert len(rows) > 50
    for row in rows:
        for cell, wanted in PLACES.items():
            links = [link["href"] for link in row.select(f"{cell} a[href]")]
            found += [] if any(link.startswith(wanted) for link in links) else [row.get_text()]
            for link in links:
                file, _, place = link.partition("#")
                anchor, target = f'id="{place}"' * bool(place), folder / file
                if not target.is_file() or anchor not in target.read_text("utf-8"):
                    found.append(link)
    return found


@pytest.mark.parametrize(("old", "new"), [
    (r'<a [^>]*href="library/[^"]*ppm\.epsilon"[^>]*>(.*?)</a>', r"\1"),
    (r'<a [^>]*href="\.\./notebooks/what_it_means\.html#def-dp"[^>]*>(.*?)</a>', r"\1"),
    (r"what_it_means\.html#def-dp", "what_it_means.html#def-no-such-place"),
    (r"library/pdp\.html", "library/pdq.html"),
])
def test_every_symbol_leads_to_its_definition_and_a_broken_link_is_seen(this_book, old, new):
    page = (this_book / "book" / "notation.html").read_text("utf-8")
    assert faults(page, this_book / "book") == []
    assert faults(re.sub(old, new, page, flags=re.DOTALL), this_book / "book")
