"""Every page of the built book as a reader meets it: from disk, on a desk and on a phone."""

import io
import os
import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from axe_playwright_python.base import AXE_SCRIPT
from browsers import CHROMIUM, FAINT
from conftest import ROOT, THOROUGH
from playwright.sync_api import sync_playwright

from ppm_book.chapters.page import moving

pytestmark = pytest.mark.skipif(
    not CHROMIUM, reason="no Chromium (apt-get install chromium)"
)
# the front page, two chapters with pictures, a long table, and a page of the reference
SOME = {
    "intro",
    "eight_households",
    "what_it_means",
    "strict_release",
    "ledger",
    "terms",
}
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
# What is too wide for the page, and a box that scrolls where the keyboard gets neither to it nor
# into it: the theme takes its time to give boxes to the keyboard. A cell without its own heading;
# a title that a tap unfolds, with a link on it that leads away; and two buttons of one name. A
# formula at which the keyboard stops, seen whole; the other form of ε, which is for the words of no
# formula; an icon that is not drawn; an answer parted from its question; and a script that a page
# does not need.
FAULTS = {
    "overflow": """() => {
  const width = document.documentElement.clientWidth;
  return document.documentElement.scrollWidth > width && [...document.querySelectorAll('body *')]
    .filter(e => e.getBoundingClientRect().right > width + 1).slice(0, 40).pop()?.outerHTML
}""",
    "keyboard": """async () => {
  const find = () => [...document.querySelectorAll('body *:not(mjx-container *)')].find(box =>
    // what is folded comes under the keyboard's care when it opens
    box.checkVisibility() && (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight)
    && /auto|scroll/.test(getComputedStyle(box).overflow)
    && [box, ...box.querySelectorAll('*')].every(e => e.tabIndex < 0));
  if (find()) await new Promise(resolve => setTimeout(resolve, 350));
  return find()?.outerHTML
}""",
    "headings": """() =>
  [...document.querySelectorAll('main table:not(.dataframe) tbody td')].find(cell => {
    const heads = cell.closest('table').tHead?.rows[0].cells ?? [];
    const head = heads[cell.cellIndex]?.textContent.trim();
    return head && cell.textContent.trim() && cell.dataset.head !== head;
  })?.outerHTML
""",
    "still": "() => document.querySelector('.moving:not(:has(.still img))')?.outerHTML",
    "titles": "() => document.querySelector('.dropdown > .admonition-title a')?.outerHTML",
    "names": """() => {
  const names = [...document.querySelectorAll('summary[aria-label]')].map(e => e.ariaLabel);
  return names.find((name, at) => names.indexOf(name) < at)
}""",
    "stops": """async () => {
  const find = () => [...document.querySelectorAll('mjx-container[tabindex="0"]')]
    .find(formula => formula.scrollWidth <= formula.clientWidth);
  if (find()) await new Promise(resolve => setTimeout(resolve, 350));
  return find()?.outerHTML
}""",
    "letters": """() => [...document.querySelectorAll('mjx-container')]
  .find(formula => formula.textContent.includes('\u03f5'))?.outerHTML""",
    "icons": """() => [...document.querySelectorAll('i[class*=fa-], span[class*=fa-]')].find(icon =>
  icon.checkVisibility() && getComputedStyle(icon, '::before').maskImage === 'none')?.outerHTML""",
    "answers": """() => [...document.querySelectorAll('.dropdown > .admonition-title')].find(title =>
  title.parentElement.previousElementSibling?.textContent.startsWith('Predict before'))?.outerHTML""",
    "scripts": """() => [...document.scripts].find(({src}) => /fontawesome/.test(src)
  || /mathjax/.test(src) && !document.querySelector('mjx-container'))?.src""",
}
# Rules that find nothing serious are left out, and formulas, which look like the text around them.
# Two rules look at one element for every way that text looks, on the first page that has it. Words
# of code that are seen already are plain text for the other rules: axe takes its time by element.
AXE = """async seen => {
  document.querySelectorAll('mjx-container').forEach(formula => formula.textContent = 'x');
  const looks = {'color-contrast': '[data-look]', 'link-in-text-block': 'a[href][data-look]'};
  const serious = ({impact}) => /serious|critical/.test(impact);
  // numbers of rows and columns change no look
  const name = e => e?.getAttribute('class')?.replace(/\\d+/g, '');
  const texts = new Map([...document.querySelectorAll('body *:not(mjx-container *)')]
    .filter(e => e.checkVisibility({visibilityProperty: true})).map(e => [[
      e.tagName, name(e), name(e.parentElement), getComputedStyle(e).color,
      name(e.closest('.admonition, nav, table, pre')),
    ].join(), e]));
  seen.forEach(look => texts.delete(look));
  texts.forEach(e => e.dataset.look = '');
  document.querySelectorAll('pre span:not([id], [data-look], :has(*))')
    .forEach(word => word.replaceWith(word.textContent));
  axe.configure({rules: Object.entries(looks).map(([id, selector]) => ({id, selector}))});
  const {violations} = await axe.run({exclude: [['mjx-container']]}, {
    rules: Object.fromEntries(
      axe._audit.rules.filter(rule => !serious(rule)).map(({id}) => [id, {enabled: false}])),
    resultTypes: ['violations'], preload: false,
  });
  const told = violations.filter(serious)
    .map(v => `${v.id} (${v.nodes.length}) ${v.nodes[0].target}`);
  return [told, [...texts.keys()]];
}"""


@pytest.fixture(scope="module")
def html(request):
    """The book named in PPM_BOOK (`make browser` does), or else the one that the tests build."""
    # the addresses of pages need the whole path
    return Path(
        os.environ.get("PPM_BOOK") or request.getfixturevalue("this_book")
    ).resolve()


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        # to emulate a graphics card, and to optimise what runs once, takes a fifth of the time
        args = ["--disable-gpu", "--js-flags=--no-opt"]
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=args)


def tour(browser, html, shots=None, only=None):
    """Faults of all pages, each a pair of its kind and a line; and how many sliders were moved.

    All pages, or those of these names, are looked at on a phone. A wide screen adds what the pages
    of a folder share; of a book that was built by itself each page is looked at on both.
    """
    faults, looks, seen, moved, here = [], [], set(), 0, None
    page = browser.new_context(offline=True, reduced_motion="reduce").new_page()

    def fault(kind, text):
        faults.append((kind, f"{here}: {text}"))

    own = f"{html.as_uri()}/", "data:", "blob:", "about:"
    page.on(
        "console", lambda m: m.type in ("error", "warning") and fault("console", m.text)
    )
    page.on("pageerror", lambda error: fault("console", error))
    page.on(
        "request",
        lambda r: r.url.startswith(own) or fault("requests", f"asks for {r.url}"),
    )
    page.on(
        "requestfailed", lambda request: fault("requests", f"failed: {request.url}")
    )
    # the first page only leads on, and templates of the theme are none
    for path in sorted(html.rglob("*.html")):
        here = path.relative_to(html).as_posix()
        if here == "index.html" or "_static" in here:
            continue
        if only and path.stem not in only:
            continue
        wide = path.parent not in seen or "PPM_BOOK" in os.environ
        sizes = (PHONE, DESKTOP) if wide else (PHONE,)
        seen.add(path.parent)
        page.goto(path.as_uri(), wait_until="commit", timeout=0)
        page.set_viewport_size(PHONE)
        page.wait_for_load_state(timeout=0)
        page.evaluate("() => window.MathJax?.startup?.promise.then(() => true)")
        for slider in page.locator("input[type=range]").all():
            moved += 1
            outputs = page.locator(f"output[for~='{slider.get_attribute('id')}']")
            at, words = slider.input_value(), outputs.all_text_contents()
            slider.press(
                "ArrowLeft" if at == slider.get_attribute("max") else "ArrowRight"
            )
            if at == slider.input_value() or words == outputs.all_text_contents():
                fault("sliders", f"the arrow keys leave it at {at}: {words}")
        for size in sizes:
            page.set_viewport_size(size)
            for kind, script in FAULTS.items():
                if found := page.evaluate(script):
                    fault(kind, f"{size['width']} px: {found[:120]}")
            if shots:
                name = f"{shots}/{here[:-5].replace('/', '-')}-{size['width']}.png"
                page.screenshot(path=name, full_page=True)
        page.evaluate(AXE_SCRIPT)
        for size in sizes[::-1]:
            page.set_viewport_size(size)
            # as long as the theme takes
            page.evaluate(FAULTS["keyboard"])
            violations, new = page.evaluate(AXE, looks)
            looks += new
            for violation in violations:
                fault("accessibility", f"{size['width']} px: {violation}")
    page.context.close()
    return faults, moved


def test_no_page_of_the_book_has_a_fault(browser, html):
    only = None if THOROUGH or "PPM_BOOK" in os.environ else SOME
    faults, moved = tour(browser, html, os.environ.get("PPM_SHOTS"), only)
    assert not faults, "\n".join(map(": ".join, faults))
    # it saw the pictures that move
    assert moved >= 2


@pytest.mark.thorough
def test_the_tour_sees_every_kind_of_fault_and_no_other(browser, tmp_path):
    slider = '<label>c <input type="range" id="c" {}></label> <output for="c"></output>'
    bodies = {
        "console": "<script>let a = 1</script><script>let a = 2</script>",
        "requests": '<script src="https://localhost:9/x.js"></script>',
        "overflow": '<p style="width: 500px">wide</p>',
        "sliders": slider.format(""),
        "accessibility": '<p style="color: #999; background: #fff">faint</p>',
        "keyboard": '<div style="overflow: auto"><p style="width: 500px">far</p></div>',
        "still": '<div class="moving"><p>A picture</p></div>',
        "titles": '<div class="dropdown"><p class="admonition-title"><a href="#">1</a></p></div>',
        "names": 2 * '<details><summary aria-label="Pages">v</summary></details>',
        "headings": """<table><thead><tr><th>a</th><th>b</th></tr></thead>
            <tbody><tr><td data-head="a">1</td><td data-head="a">2</td></tr></tbody></table>""",
        "stops": '<mjx-container tabindex="0">x</mjx-container>',
        "letters": "<mjx-container>\u03f5</mjx-container><mjx-container>ε</mjx-container>",
        "icons": '<i class="fa-solid fa-ghost" style="display: inline-block">x</i>',
        "answers": """<p>Predict before you read on. Why?</p>
            <div class="dropdown"><p class="admonition-title">Answer</p></div>""",
        "scripts": '<script type="text/plain" src="mathjax/tex-chtml.js"></script>',
        "a sound one": slider.format(
            'oninput="this.parentElement.nextElementSibling.value = value"'
        ),
    }
    start = '<!DOCTYPE html><html lang="en"><title>Page</title><main><h1>Page</h1>'
    for name, body in bodies.items():
        (tmp_path / f"{name}.html").write_text(f"{start}{body}</main></html>", "utf-8")
    faults, moved = tour(browser, tmp_path)
    seen = {(kind, text.partition(".html")[0]) for kind, text in faults}
    # a file that cannot be loaded is a line of the console too
    assert seen - {("console", "requests")} == {(name, name) for name in bodies} - {
        2 * ("a sound one",)
    }
    assert moved == 2


# a page, and what stands on it, or does not, by a setting of the book
SHOWN = [
    ("book/intro", '<html lang="en"', True),
    ("book/intro", 'rel="icon" href="../_static/favicon.svg"', True),
    ("notebooks/theory", "<title>[^<]*The Bayesian Pseudo Posterior Mechanism", True),
    ("book/intro", "By The ppm authors", True),
    # the contents begin with the front page itself
    ("notebooks/theory", "bd-sidenav__home-link", True),
    # numbers of figures, and years of citations
    ("notebooks/theory", r"caption-number\">Fig\. 3\.1 ", True),
    ("notebooks/theory", r"bibliography\.html[^>]*>(?:[^<]*, )?20\d\d<", True),
    # members in the order of the source, with defaults as it has them; contents with short names
    (
        "book/library/mechanism",
        "ppm.Fit.strict.*ppm.Fit.weights.*ppm.Fit.epsilon",
        True,
    ),
    (
        "book/library/mechanism",
        r'toc-entry"><a[^>]*><code[^>]*><span[^>]*>fit\(\)<',
        True,
    ),
    ("book/library/privacy", str(ROOT), False),
    # prompts are not copied, and a page asks others for nothing
    ("_static/copybutton.js", "formatCopyText.text, '>>> ', false", True),
    ("_static/documentation_options.js", "SHOW_SEARCH_SUMMARY: false", True),
]


def test_settings_of_the_book_show_on_its_pages(html):
    for page, words, there in SHOWN:
        file = html / (page if "." in page else f"{page}.html")
        assert bool(re.search(words, file.read_text("utf-8"), re.S)) == there, words
    assert not [*html.glob("*modindex*")]
    # of the repository's other texts none becomes a page
    assert {file.name for file in html.glob("*.html")} == {
        "genindex.html",
        "index.html",
        "search.html",
    }


def heights(path):
    """Of bars, in pixels."""
    drawn = path.get_attribute("d")
    floor = float(re.search(r"V([\d.]+)$", drawn)[1])
    return [floor - float(roof) for roof in re.findall(r"V([\d.]+)H", drawn)]


def test_a_moving_picture_draws_the_bars_of_the_place_that_is_chosen(browser, tmp_path):
    def frame(who, size):
        lines = {"upright": [2, "here"], "across": [2 * size, "level"]}
        return f"{who} is {size}", [
            {"bars": [size, 1], "outline": [1, size]},
            {"bars": [2, 1, size], **lines},
        ]

    # eight names are still buttons
    names = {"<A>": "a", **{name: name.lower() for name in "BCDEFGH"}}
    sliders = {"Who": names, "Size s": {"1": 1, "8 m": 8}}
    panels = [{"names": ["a", "b"]}, {"range": [-1, 5], "axis": "Place", "height": 120}]
    # of all frames, where a frame has none of its own
    panels[1]["outline"] = [1, 0, 2]
    picture = moving("Two", sliders, frame, panels=panels, start=["b", 1]).data
    script = (ROOT / "book" / "_static" / "moving.js").as_uri()
    (tmp_path / "page.html").write_text(
        f'{picture}<script src="{script}"></script>', "utf-8"
    )
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    said, slider = page.locator("output"), page.locator("[type=range]")

    def check(who, place, size):
        assert said.inner_text().startswith(f"Who = {who}, s = {place}: ")
        assert said.inner_text().endswith(f" is {size}")
        assert slider.get_attribute("aria-valuetext") == place
        bars, outlines = (
            page.locator(f"path.{kind}").all() for kind in ("bars", "outline")
        )
        # of a scale that has room for the largest bar of all places, and for the highest line
        high, low = 60 * size / 8, 60 / 8
        assert [*map(heights, outlines)] == [
            pytest.approx([low, high]),
            pytest.approx([low, 0, 2 * low]),
        ]
        assert [*map(heights, bars)] == [
            pytest.approx([high, low]),
            pytest.approx([2 * low, low, high]),
        ]

    check("B", "1", 1)
    page.locator("fieldset input").first.check()
    check("<A>", "1", 1)
    # while it is dragged
    slider.evaluate(
        "of => { of.value = 1; of.dispatchEvent(new Event('input', {bubbles: true})) }"
    )
    check("<A>", "8 m", 8)
    *texts, axis = page.locator("svg text").all()[-10:]
    words = [text.text_content() for text in texts]
    assert words == ["level", "here", "-1", "0", "1", "2", "3", "4", "5"]
    assert axis.text_content() == "Place"
    # a bar in three has a third of the range; lines stand at their place and height
    at = dict(
        zip(words, [float(text.get_attribute("x")) for text in texts], strict=True)
    )
    ends = re.findall(r"H([\d.]+)", page.locator("path.bars").last.get_attribute("d"))
    assert [*map(float, ends)] == pytest.approx([at["1"], at["3"], at["5"]])
    level, upright = page.locator("line.level").all()
    assert float(upright.get_attribute("x1")) == pytest.approx(at["2"])
    assert level.bounding_box()["y"] == pytest.approx(
        upright.bounding_box()["y"] + 4, abs=0.5
    )
    page.close()


def test_a_table_stops_the_keyboard_while_it_scrolls_and_no_empty_cell_has_a_heading(
    browser, tmp_path
):
    table = """<table style="display: block; overflow: auto">
      <thead><tr><th>a</th><th>b</th></tr></thead>
      <tbody><tr><td><p style="width: 500px">wide</p></td><td> </td></tr></tbody></table>"""
    script = (ROOT / "book" / "_static" / "reading.js").as_uri()
    (tmp_path / "page.html").write_text(
        f'<div class="bd-article">{table}</div><div class="solution">'
        f'<p class="admonition-title">Solution to <a href="#one">Exercise <b>1</b></a></p></div>'
        f'<script src="{script}"></script>',
        "utf-8",
    )
    page = browser.new_page(viewport=PHONE)
    page.goto((tmp_path / "page.html").as_uri())
    for size, stops in (PHONE, True), (DESKTOP, False), (PHONE, True):
        page.set_viewport_size(size)
        page.wait_for_selector(f"table{'[tabindex]' if stops else ':not([tabindex])'}")
    # a title that a tap unfolds keeps its words, and leads nowhere
    title = page.locator(".admonition-title")
    assert title.inner_html() == "Solution to Exercise <b>1</b>"
    heads = "cells => cells.map(cell => cell.dataset.head ?? null)"
    assert page.locator("td").evaluate_all(heads) == ["a", None]
    page.close()


@pytest.mark.parametrize("columns", [2, 3, 4, 5])
def test_on_a_phone_a_row_of_sentences_is_a_title_and_lines_with_labels(
    browser, tmp_path, columns
):
    row = "".join(f"<{{0}}><p>word {n}</p></{{0}}>" for n in range(columns))
    static = ROOT / "book" / "_static"
    (tmp_path / "page.html").write_text(
        f"""<link rel="stylesheet" href="{(static / "custom.css").as_uri()}">
        <div class="bd-article"><table><thead><tr>{row.format("th")}</tr></thead>
        <tbody><tr>{row.format("td")}</tr></tbody></table></div>
        <script src="{(static / "reading.js").as_uri()}"></script>""",
        "utf-8",
    )
    page = browser.new_page(viewport=PHONE)
    page.goto((tmp_path / "page.html").as_uri())
    labels = page.locator("td").evaluate_all(
        "cells => cells.map(cell => getComputedStyle(cell, '::before').content)"
    )
    lines = page.locator("td > p").evaluate_all(
        "words => words.map(word => getComputedStyle(word).display)"
    )
    if columns in (3, 4):
        told = [f'"word {n}: "' for n in range(1, columns)]
        assert (labels, lines) == (["none", *told], ["inline"] * columns)
    else:
        assert (labels, lines) == (["none"] * columns, ["block"] * columns)
    page.close()


ROWS = "rows => rows.map(row => [...row.cells].map(cell => cell.textContent.trim()))"


def test_a_moving_picture_says_the_numbers_of_its_chapters_table(browser, html):
    page = browser.new_context(offline=True, viewport=PHONE).new_page()
    page.goto((html / "notebooks" / "eight_households.html").as_uri(), timeout=0)
    said, svg = page.locator(".moving output"), page.locator(".moving svg")
    told = r"Δ = (\S+) nats, ε of one release = (\S+) nats"

    def shown():
        return svg.inner_html(), {*re.search(told, said.inner_text()).groups()}

    drawn, numbers = shown()
    rows = page.locator("tr").evaluate_all(ROWS)
    (row,) = [row for row in rows if {"Weighted"} | numbers <= {*row}][:1]
    controls = (
        page.locator(".moving fieldset").all(),
        page.locator(".moving [type=range]").all(),
    )
    assert [*map(len, controls)] == [1, 1]
    # a place that has a name is chosen by a button
    for buttons in controls[0]:
        start = buttons.locator("label", has=page.locator("input:checked"))
        start = start.inner_text().strip()
        other = buttons.locator("label").filter(has_not_text=start).first
        other.locator("input").check()
        assert svg.inner_html() != drawn
        assert other.inner_text().strip() in said.inner_text()
        buttons.get_by_label(start, exact=True).check()
        assert svg.inner_html() == drawn
    for slider in controls[1]:
        at = slider.input_value()
        for key in ("Home", "End"):
            slider.press(key)
            assert slider.get_attribute("aria-valuetext") in said.inner_text()
            if slider.input_value() != at:
                # a picture that stays as it was would say so as well
                picture, numbers = shown()
                assert picture != drawn and not numbers <= {*row}
        slider.fill(at)
    page.context.close()


def test_without_scripts_and_on_paper_the_static_figure_stays(browser, html):
    for scripts, medium in ((False, "screen"), (True, "print")):
        page = browser.new_context(java_script_enabled=scripts).new_page()
        page.emulate_media(media=medium)
        page.goto((html / "notebooks" / "eight_households.html").as_uri(), timeout=0)
        assert page.locator("figure img").first.is_visible()
        assert page.locator(".moving svg").count() == scripts
        # in its place stands its start, with what it says there
        assert page.locator(".moving img").is_visible()
        assert page.get_by_text("ε of one release").first.is_visible()
        assert not page.locator(".moving .live").is_visible()
        # an answer is folded without a script too, and open on paper
        answer = page.locator("details.answer > p").first
        assert page.locator("details.answer > summary").first.is_visible()
        assert answer.is_visible() == (medium == "print")
        page.context.close()


def ground_and_ink(png):
    """Lightness, from 0 to 1, of the most frequent colour, and of the one furthest from it."""
    # the ground is most of it; words and lines are furthest from it
    pixels = plt.imread(io.BytesIO(png))[..., :3] @ [0.2126, 0.7152, 0.0722]
    shares, edges = np.histogram(pixels, 20, (0, 1))
    ground = edges[shares.argmax()] + 0.025
    return ground, pixels.flat[np.abs(pixels - ground).argmax()]


# the other one is how most pages of the tour are looked at
def test_a_system_that_prefers_dark_gets_dark_pages_with_dark_pictures(browser, html):
    for scheme, names in {
        "dark": ("eight_households", "theory"),
        "light": ("theory",),
    }.items():
        context = browser.new_context(color_scheme=scheme, viewport=DESKTOP)
        page = context.new_page()
        page.route("**/mathjax/**", lambda route: route.abort())
        for name in names:
            path = html / "notebooks" / f"{name}.html"
            page.goto(path.as_uri(), wait_until="domcontentloaded", timeout=0)
            page.wait_for_selector(".live svg text")
            assert page.evaluate("document.documentElement.dataset.theme") == scheme
            assert page.evaluate(FAINT) == []
            figure = page.locator("main figure img").first
            figure.evaluate("image => image.decode()")
            for png in page.screenshot(), figure.screenshot():
                ground, ink = ground_and_ink(png)
                assert (ground > 0.5) == (scheme == "light")
                assert abs(ground - ink) > 0.5
        context.close()


def test_both_menus_open_on_a_phone(browser, html):
    # without our script the buttons that are seen do nothing
    for ours in (True, False):
        page = browser.new_context(viewport=PHONE, has_touch=True).new_page()
        if not ours:
            page.route("**/reading.js*", lambda route: route.abort())
        page.goto((html / "notebooks" / "eight_households.html").as_uri(), timeout=0)
        for kind in ("primary", "secondary"):
            page.locator(f".{kind}-toggle:visible").last.tap()
            menu = page.locator(f"#pst-{kind}-sidebar-modal")
            assert menu.is_visible() == ours
            page.keyboard.press("Escape")
        page.context.close()
