"""What stylesheets do to elements, as a browser computes it: on a screen, on a phone, on paper."""

import pytest
from browsers import CHROMIUM
from conftest import ROOT
from playwright.sync_api import sync_playwright

pytestmark = pytest.mark.skipif(
    not CHROMIUM, reason="no Chromium (apt-get install chromium)"
)
STYLES = "".join(
    f'<link rel="stylesheet" href="{file.as_uri()}">'
    for file in sorted((ROOT / "book" / "_static").glob("*.css"))
)
BODY = """
<header id="pst-header">search</header>
<div class="bd-content"><div class="bd-article">
  <div class="admonition toggle toggle-hidden"><p class="admonition-title" id="title">Proof</p>
    <p id="folded">steps</p></div>
  <div class="admonition toggle"><p class="admonition-title">Proof</p><p id="open">steps</p></div>
  <div class="proof admonition paper"><p class="admonition-title" id="theirs">Theorem</p></div>
  <div class="proof admonition ours"><p class="admonition-title" id="ours">Theorem</p></div>
  <figure><img id="figure"></figure>
  <table id="wide"><tr><td>1</td></tr></table>
  <div class="ledger"><table><tbody><tr hidden id="hidden"><td>a</td></tr>
    <tr id="row"><td>b</td></tr></tbody></table></div>
  <div class="cell_output"><table class="dataframe"><tbody><tr><th id="name">a</th>
    <td id="number">1</td></tr></tbody></table></div>
  <span class="together" id="together">ε.</span><sup class="not-here" id="untrue">x</sup>
  <details class="answer"><summary id="summary">Answer</summary></details>
</div></div>
<div class="moving touch"><div class="still" id="still">still</div><div class="live" id="live">
  <div class="told above"><p class="said" id="above">more than</p></div>
  <div class="told"><p class="said" id="below">less than</p></div>
  <p class="heard" id="heard">B moved</p>
  <button id="here" aria-pressed="false">A</button><button id="away" aria-pressed="true">B</button>
  <svg><g class="disc away"><circle class="edge" id="left"/></g>
    <g class="disc"><circle class="edge" id="stays"/></g>
    <path class="curve" id="curve"/><path class="level" id="level"/></svg></div></div>
<div class="moving"><div class="still" id="alone">still</div></div>
"""
READ = """asked => asked.map(([name, property, part]) =>
  getComputedStyle(document.getElementById(name), part)[property])"""
WHOSE = {"theirs": "the paper’s", "ours": "ours"}
# what is seen -> of which element, and on which medium: screen, print, phone, dark
SEEN = {
    "what is folded is hidden, and its title is not": [
        ("folded", "display", "none", "screen"),
        ("open", "display", "block", "screen"),
    ],
    "the title of a folded box leaves room to its button": [
        ("title", "paddingRight", "136px", "screen"),
    ],
    "of two fields for search there is one": [
        ("pst-header", "display", "none", "screen"),
    ],
    "a row that the filter hides is hidden": [
        ("hidden", "display", "none", "screen"),
        ("hidden", "display", "none", "phone"),
        ("row", "display", "table-row", "screen"),
        ("row", "display", "block", "phone"),
    ],
    "a picture that moves stands in the place of the still one, but on paper": [
        ("still", "display", "none", "screen"),
        ("still", "display", "block", "print"),
        ("live", "display", "block", "screen"),
        ("live", "display", "none", "print"),
        ("alone", "display", "block", "screen"),
    ],
    "who is away looks so": [
        ("away", "textDecorationLine", "line-through", "screen"),
        ("here", "textDecorationLine", "none", "screen"),
        ("left", "strokeDasharray", "3px, 3px", "screen"),
        ("stays", "strokeDasharray", "none", "screen"),
    ],
    "a loss above its bound warns": [
        ("above", "color", "rgb(176, 0, 32)", "screen"),
        ("above", "color", "rgb(255, 143, 138)", "dark"),
    ],
    "lines are no areas, and a level is dashed": [
        ("curve", "fill", "none", "screen"),
        ("level", "strokeDasharray", "6px, 4px", "screen"),
    ],
    "words for those who listen take no room": [
        ("heard", "width", "1px", "screen"),
        ("heard", "position", "absolute", "screen"),
    ],
    "a wide table scrolls by itself": [
        ("wide", "overflowX", "auto", "screen"),
        ("wide", "display", "block", "phone"),
    ],
    "numbers stand at the right, names at the left": [
        ("number", "textAlign", "right", "screen"),
        ("name", "textAlign", "left", "screen"),
    ],
    "a full stop stays, and an untrue sentence has its sign": [
        ("together", "whiteSpace", "nowrap", "screen"),
        ("untrue", "cursor", "help", "screen"),
        ("summary", "cursor", "pointer", "screen"),
    ],
    "figures are turned on a dark page, and there alone": [
        ("figure", "filter", "none", "screen"),
        ("figure", "filter", "invert(0.93) hue-rotate(180deg)", "dark"),
    ],
}


def test_styles_do_what_they_are_for(tmp_path):
    html = f'<!DOCTYPE html><html data-theme="{{}}"><head>{STYLES}</head>{BODY}</html>'
    found = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        for medium in ("screen", "print", "phone", "dark"):
            page = browser.new_page(
                viewport={"width": 390 if medium == "phone" else 1280, "height": 900}
            )
            theme = "dark" if medium == "dark" else "light"
            (tmp_path / f"{medium}.html").write_text(html.format(theme), "utf-8")
            page.emulate_media(media="print" if medium == "print" else "screen")
            page.goto((tmp_path / f"{medium}.html").as_uri())
            rows = [row for row in sum(SEEN.values(), []) if row[-1] == medium]
            asked = [[name, kind, None] for name, kind, *_ in rows]
            found |= zip(rows, page.evaluate(READ, asked), strict=True)
            asked = [[name, "content", "::after"] for name in WHOSE]
            for shown, whose in zip(
                page.evaluate(READ, asked), WHOSE.values(), strict=True
            ):
                # some browsers put both texts together
                assert shown.replace('" "', "") == f'" · {whose}"'
            above, below = page.evaluate(
                READ, [[name, "color", None] for name in ("above", "below")]
            )
            assert above != below
    for words, rows in SEEN.items():
        for row in rows:
            name, _, wanted, on = row
            assert found[row] == wanted, f"{words}: {name} ({on})"
