"""The page of notation: every symbol leads to where it is defined, and to its name in code."""

import re

import pytest
from bs4 import BeautifulSoup


def faults(page, folder):
    """Rows without a link to the reference or to a definition, and links that lead nowhere."""
    soup, found, rows = BeautifulSoup(page, "html.parser"), [], 0
    for table in soup.find_all("table"):
        names = [cell.get_text() for cell in table.find_all("th")]
        for row in table.select("tbody tr") if "In ppm" in names else ():
            rows += 1
            cells = row.find_all("td")
            for cell, wanted in ((names.index("In ppm"), "library/"), (-1, "../notebooks/")):
                links = [link["href"] for link in cells[cell].select("a[href]")]
                missing = [] if any(link.startswith(wanted) for link in links) else [wanted]
                for link in links:
                    file, _, place = link.partition("#")
                    anchor, target = f'id="{place}"' * bool(place), folder / file
                    if not target.is_file() or anchor not in target.read_text("utf-8"):
                        missing.append(link)
                found += [(row.get_text(" ", strip=True), link) for link in missing]
    assert rows > 50
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
