"""The page of notation: every symbol leads to where it is defined, and to its name in code."""

import re

import pytest

COLUMN = "In <code"


def tables(page):
    """Rows of tables with a column of names in the library: its place, and the cells in HTML."""
    for table in re.findall(r"<table\b.*?</table>", page, re.DOTALL):
        head, *rows = (
            re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)
            for row in re.findall(r"<tr\b.*?</tr>", table, re.DOTALL)
        )
        if any(COLUMN in name for name in head):
            (column,) = [place for place, name in enumerate(head) if COLUMN in name]
            yield from ((column, row) for row in rows)


def faults(page, folder):
    """Rows that lack a link to a definition or to the reference, and links that lead nowhere."""
    found = []
    for column, row in tables(page):
        name = re.sub(r"<[^>]+>", "", " | ".join(row))
        for cell, wanted in ((row[column], "library/"), (row[-1], "../notebooks/")):
            links = re.findall(r'href="([^"]+)"', cell)
            if not any(link.startswith(wanted) for link in links):
                found.append((name, wanted))
            for link in links:
                file, _, place = link.partition("#")
                target = (folder / file).resolve()
                if not target.is_file() or (
                    place and f'id="{place}"' not in target.read_text("utf-8")
                ):
                    found.append((name, link))
    return found


@pytest.fixture(scope="module")
def notation(this_book):
    folder = this_book / "book"
    return (folder / "notation.html").read_text("utf-8"), folder


def test_every_symbol_leads_to_its_definition_and_to_its_name_in_code(notation):
    page, folder = notation
    assert len(list(tables(page))) > 50
    assert faults(page, folder) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (r'<a [^>]*href="library/[^"]*ppm\.epsilon"[^>]*>(.*?)</a>', r"\1"),
        (r'<a [^>]*href="\.\./notebooks/what_it_means\.html#def-dp"[^>]*>(.*?)</a>', r"\1"),
        (r"what_it_means\.html#def-dp", "what_it_means.html#def-no-such-place"),
        (r"library/pdp\.html", "library/pdq.html"),
    ],
)
def test_a_row_without_a_link_or_with_a_broken_one_is_seen(notation, old, new):
    page, folder = notation
    broken, changed = re.subn(old, new, page, flags=re.DOTALL)
    assert changed
    assert faults(broken, folder)
