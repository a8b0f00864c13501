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
# of the theme's colours each is another one
THEME = """<style>html { --pst-color-border: rgb(1, 1, 1); --pst-color-text-base: rgb(2, 2, 2);
  --pst-color-text-muted: rgb(3, 3, 3); --pst-color-background: rgb(4, 4, 4);
  --pst-color-danger: rgb(5, 5, 5); font-size: 16px; } </style>"""
BODY = """
<header id="pst-header">search</header>
<nav class="bd-sidebar-primary"><p class="caption">1</p><p class="caption">2</p>
  <p class="caption" id="course">3</p><p class="caption" id="companion">4</p></nav>
<div class="tooltip" id="tooltip">Copy</div><button id="pst-back-to-top">up</button>
<div class="bd-content"><div class="bd-article">
  <section id="who-was-in-the-data"><h1 id="heading">Who?</h1><p id="asked">You.</p></section>
  <div class="findings"><p class="sd-card-title" id="finding">9</p></div>
  <div class="front"><figure><figcaption id="front">a</figcaption></figure></div>
  <div class="admonition warning" id="warning"><p>careful</p></div>
  <div class="exercise admonition" id="exercise"></div>
  <div class="solution admonition" id="solution"><p class="admonition-title" id="of-solution">S</p></div>
  <div class="admonition provenance" id="provenance">made</div>
  <div class="math" id="math">x</div>
  <ul class="lettered" id="letters"><li id="letter">(a)</li></ul>
  <p><code id="program"><span class="pre" id="long">a_name</span></code>
    <a class="reference download" id="file"><code class="download" id="of-file">a</code></a>
    <span class="pasted-text" id="pasted">9</span></p>
  <div class="parameters"><table><tr><td><code id="whole">a_b</code></td><td id="meaning">a</td>
    <td id="values">b</td><td>c</td></tr></table></div>
  <div class="symbols"><table id="symbols"><thead id="of-symbols"><tr><th>a</th></tr></thead>
    <tbody><tr id="symbol"><td id="letter-of">a</td><td id="is">b</td><td id="where">c</td>
    <td id="code">d</td></tr></tbody></table></div>
  <div class="ledger-counts"><table id="counts"><tr><td id="what">a</td><td id="count">1</td></tr>
    </table></div>
  <table id="five"><thead><tr><th>1</th><th>2</th><th>3</th><th>4</th><th id="fifth">5</th></tr>
    </thead></table>
  <dl class="py"><dt id="entry"><code class="literal" id="default">1</code></dt>
    <dd id="described">a <dl class="simple"><dt id="parameter">a</dt></dl></dd></dl>
  <table class="autosummary"><tbody><tr><td id="summarized">a</td></tr></tbody></table>
  <div class="cell"><div class="cell_input" id="input"><div class="highlight"><pre id="lines">x</pre>
    </div></div><details class="hide" id="hide"><summary>Show</summary></details></div>
  <div class="cell_output"><pre id="printed">x</pre>
    <div class="highlight-python"><pre id="module">x</pre></div></div>
  <div class="admonition toggle toggle-hidden"><p class="admonition-title" id="title">Proof</p>
    <p id="folded">steps</p></div>
  <div class="admonition toggle"><p class="admonition-title">Proof</p><p id="open">steps</p></div>
  <div class="proof admonition paper"><p class="admonition-title" id="theirs">Theorem</p></div>
  <div class="proof admonition field"><p class="admonition-title" id="others">Theorem</p></div>
  <div class="proof admonition ours" id="box"><p class="admonition-title" id="ours">Theorem</p></div>
  <figure id="drawn"><img id="figure"><figcaption id="words">a</figcaption></figure>
  <table id="wide"><caption id="caption">a</caption><tr><td>1</td></tr></table>
  <div class="ledger"><table id="ledger"><thead id="heads"><tr><th>a</th></tr></thead>
    <tbody><tr hidden id="hidden"><td>a</td></tr><tr id="row"><td id="claim">b</td>
    <td id="verdict">c</td><td id="paper">d</td><td id="value">e</td><td id="last">f</td></tr>
    </tbody></table></div><form class="ledger-filter" id="filter"></form>
  <div class="cell_output"><table class="dataframe"><thead><tr><th id="head">a</th>
    </tr></thead><tbody><tr><th id="name">a</th><td id="number">1</td></tr></tbody></table>
    <table class="dataframe" id="styled"><tbody><tr><th id="row-name">a</th><td>1</td></tr></tbody>
    </table></div>
  <span class="together" id="together">ε.</span><sup class="not-here" id="untrue">x</sup>
  <details class="answer" open><summary id="opened">Answer</summary></details>
  <details class="answer"><summary id="summary">Answer</summary></details>
</div></div>
<div class="moving touch"><div class="still" id="still">still</div><div class="live" id="live">
  <div class="told above"><p class="said" id="above">more than</p></div>
  <div class="told"><p class="said" id="below">less than</p></div>
  <p class="heard" id="heard">B moved</p><input type="number" id="visits"><output id="says"></output>
  <input type="range" id="slider"><svg class="discs" id="discs"><text id="drawn-words">a</text></svg>
  <div class="told" id="told"></div><img id="in-picture">
  <button id="here" aria-pressed="false">A</button><button id="away" aria-pressed="true">B</button>
  <svg><g class="disc away"><circle class="edge" id="left"/>
    <circle class="weight" id="weight"/></g>
    <g class="disc"><circle class="edge" id="stays"/></g>
    <path class="curve" id="curve"/><path class="level" id="level"/></svg></div></div>
<div class="moving"><div class="still" id="alone">still</div></div>
"""
READ = """asked => asked.map(([name, property, part]) =>
  getComputedStyle(document.getElementById(name), part)[property])"""
WHOSE = {"theirs": "the paper’s", "ours": "ours", "others": "from the literature"}
# what stands before a cell of the ledger on a phone
CARD = {"claim": "none", "verdict": "Verdict: ", "paper": "Paper: ", "value": "Ours: "}
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
    "a finger moves a disc or a slider, or the page": [
        ("discs", "touchAction", "pan-y", "screen"),
        ("slider", "touchAction", "pan-y", "screen"),
    ],
    "nothing jumps when words change, and words are read where they cross a line": [
        ("told", "minHeight", "76.8px", "screen"),
        ("says", "minHeight", "72px", "screen"),
        ("drawn-words", "paintOrder", "stroke", "screen"),
        ("weight", "opacity", "0.35", "screen"),
        ("visits", "appearance", "textfield", "screen"),
        ("in-picture", "maxWidth", "100%", "screen"),
        ("opened", "marginBottom", "6.4px", "screen"),
        ("wide", "animationTimeline", "scroll(self inline)", "screen"),
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
    "a box has a line at its left and no ground": [
        ("box", "borderLeftWidth", "3px", "screen"),
        ("box", "borderTopWidth", "0px", "screen"),
        ("box", "borderLeftColor", "rgb(2, 2, 2)", "screen"),
        ("box", "backgroundColor", "rgba(0, 0, 0, 0)", "screen"),
        ("box", "boxShadow", "none", "screen"),
        ("box", "paddingLeft", "16px", "screen"),
        ("box", "paddingLeft", "11.2px", "phone"),
        ("exercise", "borderLeftColor", "rgb(16, 89, 191)", "screen"),
        ("exercise", "marginBottom", "0px", "screen"),
        ("solution", "marginTop", "6.4px", "screen"),
        ("solution", "borderLeftColor", "rgb(1, 1, 1)", "screen"),
        ("warning", "borderLeftColor", "rgb(184, 74, 0)", "screen"),
        ("warning", "borderLeftColor", "rgb(240, 149, 90)", "dark"),
        ("ours", "fontWeight", "700", "screen"),
        ("ours", "breakInside", "avoid", "print"),
        ("of-solution", "fontWeight", "400", "screen"),
        ("of-solution", "fontSize", "13.6px", "screen"),
        ("title", "marginBottom", "0px", "screen"),
        ("title", "paddingRight", "40px", "phone"),
        ("provenance", "fontSize", "14.4px", "screen"),
    ],
    "links are seen on every ground": [
        ("summary", "color", "rgb(16, 89, 191)", "screen"),
        ("summary", "color", "rgb(107, 162, 238)", "dark"),
        ("summary", "fontWeight", "700", "screen"),
        ("summary", "minHeight", "24px", "screen"),
        ("summary", "listStyleType", "none", "print"),
        ("untrue", "color", "rgb(5, 5, 5)", "screen"),
        ("words", "color", "rgb(2, 2, 2)", "screen"),
        ("words", "fontWeight", "400", "screen"),
    ],
    "the front page asks in larger letters": [
        ("asked", "fontSize", "18.4px", "screen"),
        ("finding", "fontSize", "25.6px", "screen"),
        ("finding", "color", "rgb(184, 74, 0)", "screen"),
        ("finding", "color", "rgb(240, 149, 90)", "dark"),
        ("front", "fontSize", "13.6px", "screen"),
    ],
    "a line parts the course from its companion": [
        ("companion", "borderTopWidth", "1px", "screen"),
        ("course", "borderTopWidth", "0px", "screen"),
    ],
    "a caption stays where its table scrolls": [
        ("caption", "position", "sticky", "screen"),
        ("caption", "left", "0px", "screen"),
        ("caption", "paddingRight", "32px", "phone"),
        ("math", "overflowX", "auto", "screen"),
        ("math", "overflowY", "hidden", "screen"),
        ("name", "position", "sticky", "phone"),
        ("name", "backgroundColor", "rgb(4, 4, 4)", "phone"),
        ("name", "position", "static", "screen"),
    ],
    "columns of words have their room": [
        ("whole", "whiteSpace", "nowrap", "screen"),
        ("meaning", "minWidth", "144px", "screen"),
        ("values", "minWidth", "144px", "screen"),
        ("symbols", "fontSize", "13.6px", "screen"),
        ("is", "minWidth", "200px", "screen"),
        ("where", "minWidth", "144px", "screen"),
        ("code", "minWidth", "112px", "screen"),
        ("is", "minWidth", "0px", "phone"),
        ("is", "display", "block", "phone"),
        ("of-symbols", "display", "none", "phone"),
        ("claim", "minWidth", "160px", "screen"),
        ("last", "minWidth", "160px", "screen"),
        ("value", "minWidth", "112px", "screen"),
        ("value", "minWidth", "154px", "print"),
        ("ledger", "fontSize", "13.6px", "screen"),
        ("ledger", "display", "table", "print"),
        ("heads", "display", "none", "phone"),
        ("claim", "display", "block", "phone"),
        ("filter", "display", "flex", "screen"),
        ("filter", "display", "none", "print"),
        ("counts", "fontSize", "13.6px", "screen"),
        ("counts", "fontSize", "11.2px", "phone"),
        ("count", "textAlign", "right", "screen"),
        ("what", "textAlign", "start", "screen"),
        ("fifth", "fontSize", "16px", "screen"),
        ("fifth", "fontSize", "12.8px", "phone"),
        ("summarized", "display", "block", "phone"),
        ("parameter", "display", "block", "screen"),
    ],
    "computed tables are in small type": [
        ("name", "fontSize", "12.8px", "screen"),
        ("name", "fontSize", "11.84px", "phone"),
        ("name", "paddingLeft", "5.6px", "screen"),
        ("name", "paddingLeft", "3.2px", "phone"),
        ("name", "verticalAlign", "top", "screen"),
        ("head", "verticalAlign", "bottom", "screen"),
        ("head", "textAlign", "right", "screen"),
        ("row-name", "textAlign", "left", "screen"),
    ],
    "long names break, and code does not": [
        ("long", "whiteSpace", "normal", "screen"),
        ("long", "overflowWrap", "anywhere", "screen"),
        ("default", "whiteSpace", "normal", "screen"),
        ("entry", "overflowWrap", "anywhere", "screen"),
        ("heading", "overflowWrap", "anywhere", "screen"),
        ("heading", "hyphens", "auto", "screen"),
        ("lines", "fontSize", "12.8px", "screen"),
        ("lines", "whiteSpace", "pre", "screen"),
        ("printed", "whiteSpace", "pre-wrap", "screen"),
        ("printed", "overflowWrap", "anywhere", "phone"),
        ("module", "whiteSpace", "pre", "screen"),
    ],
    "choices bring their letters, and a file is no program": [
        ("letters", "listStyleType", "none", "screen"),
        ("letters", "paddingLeft", "0px", "screen"),
        ("of-file", "backgroundColor", "rgba(0, 0, 0, 0)", "screen"),
    ],
    "nothing covers what one looks at": [
        ("pst-back-to-top", "display", "none", "phone"),
        ("pst-back-to-top", "display", "inline-block", "screen"),
        ("tooltip", "display", "block", "screen"),
        ("tooltip", "display", "none", "touch"),
    ],
    "paper has small letters, and no line that does nothing": [
        ("drawn", "fontSize", "11px", "print"),
        ("drawn", "breakInside", "avoid", "print"),
        ("figure", "maxWidth", "80%", "print"),
        ("hide", "display", "none", "print"),
        ("hide", "display", "block", "screen"),
        ("heading", "breakAfter", "avoid", "print"),
        ("heading", "fontSize", "17.6px", "print"),
        ("lines", "overflowX", "visible", "print"),
        ("lines", "orphans", "5", "print"),
        ("input", "breakInside", "auto", "print"),
    ],
    "figures are turned on a dark page, and there alone": [
        ("figure", "filter", "none", "screen"),
        ("figure", "filter", "invert(0.93) hue-rotate(180deg)", "dark"),
    ],
}


def test_styles_do_what_they_are_for(tmp_path):
    html = f'<!DOCTYPE html><html data-theme="THEME"><head>{THEME}{STYLES}</head>{BODY}</html>'
    found = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        for medium in ("screen", "print", "phone", "dark", "touch"):
            page = browser.new_page(
                viewport={"width": 390 if medium == "phone" else 1280, "height": 900},
                **({"has_touch": True, "is_mobile": True} if medium == "touch" else {}),
            )
            theme = "dark" if medium == "dark" else "light"
            (tmp_path / f"{medium}.html").write_text(
                html.replace("THEME", theme), "utf-8"
            )
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
            if medium == "phone":
                asked = [[name, "content", "::before"] for name in CARD]
                shown = [words.strip('"') for words in page.evaluate(READ, asked)]
                assert shown == [*CARD.values()]
            above, below = page.evaluate(
                READ, [[name, "color", None] for name in ("above", "below")]
            )
            assert above != below
    wrong = [
        f"{words}: {name} ({on}): {kind} {found[name, kind, wanted, on]}, not {wanted}"
        for words, rows in SEEN.items()
        for name, kind, wanted, on in rows
        if found[name, kind, wanted, on] != wanted
    ]
    assert not wrong, "\n".join(wrong)
