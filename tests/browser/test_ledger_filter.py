"""The filter above the ledger, by keyboard, on a phone, offline, and what stays without it."""

import pytest
from browsers import CHROMIUM
from conftest import ROOT
from docutils.core import publish_string
from myst_parser.docutils_ import Parser
from playwright.sync_api import expect, sync_playwright

from ppm_book.tools import ledger

pytestmark = pytest.mark.skipif(
    not CHROMIUM, reason="no Chromium (apt-get install chromium)"
)
STATIC = ROOT / "book" / "_static"
SCRIPT = (STATIC / "ledger.js").read_text("utf-8")
STYLES = {
    f"_static/{file.name}": file.read_text("utf-8") for file in STATIC.glob("*.css")
}
ROWS = [
    ("2", "A bound falls.", "reproduced"),
    ("2", "… and its median.", "open"),
    ("4.1", "A share is 0.", "open"),
    ("4.1", "A rate is met.", "not reproduced"),
    ("4.1", "… or faster.", "reproduced"),
]


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=CHROMIUM)


@pytest.fixture
def page(browser):
    phone = {"width": 390, "height": 844}
    context = browser.new_context(offline=True, viewport=phone)
    yield context.new_page()
    context.close()


def opened(page, folder, monkeypatch, script=SCRIPT):
    """Open the ledger's own page with these few rows, as its part of the book has it."""
    rows = [
        {"id": str(place), "section": section, "says": says, "rule": "none"}
        | {"where": "text", "chapter": "theory"}
        for place, (section, says, _) in enumerate(ROWS)
    ]
    found = {str(place): (verdict, "", []) for place, (*_, verdict) in enumerate(ROWS)}
    monkeypatch.setattr(ledger, "load", lambda root: rows)
    monkeypatch.setattr(ledger, "judged", lambda rows, saved: found)
    html = publish_string(
        ledger.page(ROOT, folder),
        parser=Parser(),
        writer_name="html5",
        # roles of Sphinx are unknown here
        settings_overrides={
            "myst_enable_extensions": ["colon_fence"],
            "report_level": 5,
            "stylesheet_path": None,
            "embed_stylesheet": False,
            "output_encoding": "unicode",
        },
    )
    # in the styles of every page
    linked = [f'<link rel="stylesheet" href="../{file}">' for file in STYLES]
    html = html.replace("</head>", "\n".join([*linked, "</head>"]))
    files = {"book/ledger.html": html, "_static/ledger.js": script} | STYLES
    for file, text in files.items():
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text(text, "utf-8")
    page.goto((folder / "book" / "ledger.html").as_uri())


def shown(page):
    """Claims of the rows that are seen."""
    return [
        row.inner_text().split("\n")[0].strip()
        for row in page.locator(".ledger tbody tr").all()
        if row.is_visible()
    ]


def check(page):
    every = [says for _, says, _ in ROWS]
    verdict, section = page.locator(".ledger-filter select").all()
    said = page.locator(".ledger-filter output")

    def options(select):
        return select.locator("option").all_inner_texts()

    assert shown(page) == every and said.inner_text() == "5 of 5 rows"
    page.keyboard.press("Tab")
    # the list that unfolds what else there is stands before it
    while page.evaluate("document.activeElement.name") != "verdict":
        page.keyboard.press("Tab")
    page.keyboard.type("open")
    assert shown(page) == ["A bound falls. … and its median.", "A share is 0."]
    assert said.inner_text() == "2 of 5 rows"
    assert options(section) == ["all sections (2)", "Section 2 (1)", "Section 4.1 (1)"]
    page.keyboard.press("Tab")
    page.keyboard.type("Section 4")
    assert shown(page) == ["A share is 0."] and said.inner_text() == "1 of 5 rows"
    assert options(verdict)[:2] == ["all verdicts (3)", "reproduced (1)"]
    assert not page.locator("h2", has_text="Section 2").is_visible()
    # a link to what is seen leaves the choice as it is
    page.evaluate("location.hash = 'section-4-1'")
    page.wait_for_timeout(50)
    assert shown(page) == ["A share is 0."]
    assert page.get_by_role("form", name="Rows of the ledger").is_visible()
    verdict.select_option("")
    assert shown(page) == every[2:]
    # a link of the page's contents to what is hidden
    page.evaluate("location.hash = 'section-2'")
    expect(said).to_have_text("5 of 5 rows", timeout=1000)
    assert shown(page) == every


def test_the_ledger_shows_the_rows_that_are_chosen(page, tmp_path, monkeypatch):
    opened(page, tmp_path, monkeypatch)
    check(page)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("one.row.hidden = !found(one)", "one.row.hidden = false"),
        ("selects.every(", "selects.some("),
        ("select === but ||", ""),
        ("rows[place - 1].row.hidden", "true"),
        ("form.reset();", ""),
    ],
)
def test_a_broken_filter_is_seen(page, tmp_path, monkeypatch, right, wrong):
    assert SCRIPT.count(right) == 1
    opened(page, tmp_path, monkeypatch, SCRIPT.replace(right, wrong))
    with pytest.raises(AssertionError):
        check(page)
