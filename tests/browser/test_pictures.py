"""Pictures that one can touch or move, by keyboard, mouse and finger, from disk, without a network."""

import re

import numpy as np
import pytest
from axe_playwright_python.base import AXE_SCRIPT
from browsers import CHROMIUM, FAINT
from conftest import ROOT
from playwright.sync_api import sync_playwright

from ppm_book.chapters import household
from ppm_book.chapters.page import moving

pytestmark = pytest.mark.skipif(
    not CHROMIUM, reason="no Chromium (apt-get install chromium)"
)
WITH_M, WITHOUT_M = "Above 2Δ with M", "Above 2Δ without M"
BROKEN = {
    WITH_M: {"counts": [3, 4, 4, 5, 5, 12, 7, 18], "truncate_at": 5},
    WITHOUT_M: {"counts": [3, 4, 4, 5, 3, 3, 7, 18]},
}
for one in BROKEN.values():
    one |= {"away": "H", "again": True}
# the variables that the theme gives, light and dark, and its ground
THEME = """<style>
  html { --pst-color-text-base: #222832; --pst-color-text-muted: #48566b;
    --pst-color-border: #c9ced6; --pst-color-background: #fff; }
  html[data-theme="dark"] { --pst-color-text-base: #ced6dd; --pst-color-text-muted: #9ca4af;
    --pst-color-border: #48566b; --pst-color-background: #14181e; }
  body { margin: 16px; font: 16px sans-serif; color: var(--pst-color-text-base);
    background: var(--pst-color-background); } </style>"""
AXE = """async () => (await axe.run({preload: false})).violations
  .filter(({impact}) => /serious|critical/.test(impact)).map(({id, nodes}) => [id, nodes[0].html])"""


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        args = ["--disable-gpu", "--js-flags=--no-opt"]
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=args)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A page with the picture of chapter 6, one with that of chapter 3, and an unusual one."""
    folder, static = tmp_path_factory.mktemp("pages"), ROOT / "book" / "_static"
    pictures = {
        "six": household.touch(breaking=BROKEN, hint="Predict."),
        "three": household.touch(away="A", switch=False, threshold=False),
        "odd": household.touch(
            counts=[0, *[40] * 9, 61],
            names=["Ann", "<b>", *"CDEFGHIJK"],
            grid=(0.5, 60, 200),
            scale=1 / 3,
            truncate_at=13.37,
            away="<b>",
        ),
    }

    def curve(size):
        line = {"x": [0, 4, 8], "y": [0, size, -size], "colour": "H"}
        dot = {"at": [8, -size], "words": f"{size} down", "below": True}
        rising = {"x": [0, 8], "y": [0, size], "dashed": True, "words": "risen"}
        dots = [
            {"at": [0, 1.5], "words": "from the very left"},
            {"at": [2, 0], "words": "beside", "aside": True},
        ]
        plain = {"lines": [rising], "dots": dots, "upright": [4, ""]}
        return "said", [{"lines": [line], "dots": [dot]}, plain]

    panel = {"range": [0, 8], "axis": "Place", "height": 120}
    panel |= {"ticks": [[4, "the middle of it"], [5, "no room"], [8, "end"]]}
    sizes = {"1": 1, "3": 3}
    panels = [panel, {"range": [0, 8], "plain": True, "height": 90}]
    pictures["curve"] = moving("Curve", {"Size s": sizes}, curve, panels=panels)
    links = [
        f'<link rel="stylesheet" href="{(static / name).as_uri()}">'
        for name in ("moving.css", "touch.css")
    ] + [
        f'<script src="{(static / name).as_uri()}"></script>'
        for name in ("moving.js", "touch.js")
    ]
    for name, picture in pictures.items():
        (folder / f"{name}.html").write_text(
            '<!DOCTYPE html><html lang="en" data-theme="light"><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width"><title>Page</title>'
            f"{THEME}{''.join(links)}<main><h1>Page</h1>{picture.data}"
            '<p style="height: 1500px">More.</p></main></html>',
            "utf-8",
        )
    return folder


@pytest.fixture
def opened(browser, pages):
    """Opens one of the pages, and in the end looks for errors and requests."""
    asked, errors, contexts = [], [], []

    def open_page(name, **options):
        options = {"viewport": {"width": 390, "height": 844}} | options
        contexts.append(browser.new_context(offline=True, **options))
        page = contexts[-1].new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: errors.append(error))
        page.on("console", lambda message: errors.append(message.text))
        page.goto((pages / f"{name}.html").as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not errors and all(url.startswith(("file:", "data:")) for url in asked)


def words(counts, away=None, again=False, **settings):
    """What is to be read of a state."""
    found = household.state(counts, away, again=again, **settings)
    return [*household.said_of(found, household.HOUSEHOLDS, away, again)]


def read(page):
    shown = [page.locator(f".{name}").text_content() for name in ("said", "more")]
    # who listens hears the same
    everything = filter(None, page.locator(".told p").all_text_contents())
    assert page.locator(".heard").text_content() == " ".join(everything)
    return shown


def counts_of(page):
    return [int(field.input_value()) for field in page.locator("[type=number]").all()]


def tab_to(page, label):
    for _ in range(40):
        page.keyboard.press("Tab")
        found = page.evaluate(
            "() => document.activeElement.ariaLabel"
            " ?? document.activeElement.labels?.[0]?.textContent.trim()"
            " ?? document.activeElement.textContent"
        )
        if found == label:
            return
    raise AssertionError(f"no tab stop {label!r}")


def test_the_keyboard_alone_leads_to_a_loss_above_twice_the_bound(opened):
    page, eight = opened("six"), household.COUNTS
    assert read(page) == words(eight)
    tab_to(page, "Visits of F")
    page.keyboard.press("Control+A")
    page.keyboard.type("12")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowDown")
    tab_to(page, "Take H away")
    page.keyboard.press("Enter")
    moved, others = (np.array(one["counts"]) for one in BROKEN.values())
    assert counts_of(page) == moved.tolist()
    assert page.get_by_label("Take H away").get_attribute("aria-pressed") == "true"
    assert read(page) == words(moved, 7)
    tab_to(page, "frozen")
    page.keyboard.press("ArrowRight")
    assert read(page) == words(moved, 7, again=True)
    tab_to(page, "Scale c")
    page.keyboard.press("ArrowLeft")
    assert read(page) == words(moved, 7, again=True, scale=0.95)
    page.keyboard.press("End")
    tab_to(page, "Threshold M")
    page.keyboard.press("Home")
    assert page.get_by_label("Threshold M").get_attribute("aria-valuetext") == "1"
    for _ in range(40):
        page.keyboard.press("ArrowRight")
    assert read(page) == words(moved, 7, again=True, truncate_at=5)
    assert "10.05 nats: more than" in page.locator(".above .said").inner_text()
    assert page.locator(".curve.above").get_attribute("d")
    # the table and the threshold of a button
    told = page.locator(".changed")
    assert told.text_content() == "Changed: F\xa06\xa0→\xa012\xa0visits, M\xa0=\xa05."
    tab_to(page, "Start again")
    page.keyboard.press("Space")
    assert read(page) == words(eight) and not page.locator(".above").count()
    assert told.text_content() == ""
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Space")
    assert read(page) == words(others, 7, again=True)
    assert "15.17 nats: more than" in page.locator(".above .said").inner_text()
    assert told.text_content() == (
        "Changed: E\xa05\xa0→\xa03\xa0visits, F\xa06\xa0→\xa03\xa0visits."
    )
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Space")
    assert read(page) == words(moved, 7, again=True, truncate_at=5)


def test_a_finger_drags_a_disc_takes_it_away_by_a_tap_and_scrolls_the_page(opened):
    page, eight = opened("six", has_touch=True, is_mobile=True), household.COUNTS
    session = page.context.new_cdp_session(page)

    def swipe(name, right, down):
        disc = page.locator("g.disc", has_text=name).locator(".grip").bounding_box()
        x, y = disc["x"] + disc["width"] / 2, disc["y"] + disc["height"] / 2
        # fingers are not exact
        points = [(x + 3 + right * k / 8, y - 3 + down * k / 8) for k in range(9)]
        for kind, at in zip(["Start", *["Move"] * 8], points, strict=True):
            point = [{"x": at[0], "y": at[1]}]
            session.send(
                "Input.dispatchTouchEvent",
                {"type": f"touch{kind}", "touchPoints": point},
            )
        session.send(
            "Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []}
        )

    boxes = [disc.bounding_box() for disc in page.locator(".grip").all()]
    assert min(min(box["width"], box["height"]) for box in boxes) >= 24
    step = (boxes[7]["x"] - boxes[0]["x"]) / (eight[7] - eight[0])
    swipe("H", -6 * step, 2)
    moved = [*eight[:7], 12]
    assert counts_of(page) == moved
    swipe("H", 0, 0)
    assert read(page) == words(moved, 7)
    swipe("H", 0, 0)
    assert read(page) == words(moved)
    assert page.evaluate("scrollY") == 0
    # of discs that overlap the nearest one is meant
    swipe("A", -3 * step, 0)
    assert counts_of(page) == [0, *moved[1:]]
    swipe("G", 1, -150)
    page.wait_for_function("scrollY > 50")
    assert counts_of(page) == [0, *moved[1:]] and read(page) == words([0, *moved[1:]])


def test_a_mouse_drags_a_disc_to_the_end_of_the_axis_and_no_further(opened):
    page = opened("three", viewport={"width": 1280, "height": 900})
    assert read(page) == words(household.COUNTS, 0)
    assert not page.locator("[type=radio]").count()
    assert page.locator("[type=range]").count() == 1
    box = page.locator("g.disc", has_text="H").locator(".grip").bounding_box()
    page.mouse.move(box["x"] + 10, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + 200, box["y"] - 80)
    said = page.locator(".said").text_content()
    # while it moves nothing is said aloud
    assert said not in page.locator(".heard").text_content()
    page.mouse.move(box["x"] + 900, box["y"] - 80)
    page.mouse.up()
    moved = [*household.COUNTS[:7], 25]
    assert counts_of(page) == moved and read(page) == words(moved, 0)
    # an empty field waits, and what is too much becomes the most
    field = page.get_by_label("Visits of A")
    field.fill("")
    assert read(page) == words(moved, 0)
    field.fill("99")
    field.press("Tab")
    assert counts_of(page)[0] == 25


def test_at_both_ends_of_a_slider_or_a_field_what_it_says_is_what_is_computed(opened):
    page = opened("six", viewport={"width": 1280, "height": 900})
    page.get_by_label("Take H away").click()
    # Δ is above 10 with a count of 25, so that the largest M does something
    high, moved = page.get_by_label("Visits of A"), [25, *household.COUNTS[1:]]
    for typed, count in (("-7", 0), ("0", 0), ("99", 25), ("25", 25)):
        high.fill(typed)
        high.press("Tab")
        assert counts_of(page) == [count, *moved[1:]]
        assert read(page) == words([count, *moved[1:]], 7)
    settings = {}
    ends = {
        "Scale c": ("scale", {"End": 1, "Home": 0.05, "ArrowRight": 0.1}),
        "Threshold M": (
            "truncate_at",
            {"Home": 1, "End": None, "ArrowLeft": 9.9, "ArrowRight": None},
        ),
    }
    seen = []
    for label, (name, keys) in ends.items():
        slider = page.get_by_label(label)
        # each end once from where it stood, and once from the other one
        for key, value in [*keys.items()] * 2:
            slider.press(key)
            said = (
                "none"
                if value is None
                else f"{value:.2f}"[: 4 if name == "scale" else 3]
            )
            said = said.removesuffix(".0") if name == "truncate_at" else said
            shown = slider.locator("xpath=preceding-sibling::output").text_content()
            assert shown == slider.get_attribute("aria-valuetext") == said
            settings[name] = value
            seen.append(words(moved, 7, **settings))
            assert read(page) == seen[-1]
        slider.press("End")
        settings[name] = keys["End"]
    # M of 9.9 is another picture than none
    assert seen[-1] != seen[-2]


def test_at_both_ends_of_a_moving_picture_s_slider_its_frame_is_drawn(opened):
    page = opened("curve")
    slider = page.locator("[type=range]")
    for key, size in [("End", 3), ("Home", 1)] * 2:
        slider.press(key)
        assert slider.get_attribute("aria-valuetext") == str(size)
        assert page.locator(".slider span").text_content() == str(size)
        assert page.locator("output").text_content() == f"s = {size}: said"
        assert f"{size} down" in page.locator("svg text").all_text_contents()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", ["six", "odd", "curve"])
def test_words_in_a_picture_are_read_on_their_ground(opened, name, theme):
    page = opened(name)
    page.evaluate("theme => document.documentElement.dataset.theme = theme", theme)
    if name == "six":
        page.get_by_text(WITH_M, exact=True).click()
        assert page.locator("text.above").count()
    assert page.evaluate(FAINT) == []


@pytest.mark.parametrize(("name", "theme"), [("six", "light"), ("odd", "dark")])
def test_the_picture_fits_a_phone_and_axe_finds_nothing_serious(opened, name, theme):
    page = opened(name, reduced_motion="reduce")
    page.evaluate("theme => document.documentElement.dataset.theme = theme", theme)
    if name == "six":
        page.get_by_text(WITH_M, exact=True).click()
        assert page.locator(".told.above").is_visible()
    assert page.evaluate(
        "() => document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )
    page.evaluate(AXE_SCRIPT)
    assert page.evaluate(AXE) == []


@pytest.mark.parametrize("button", BROKEN)
@pytest.mark.parametrize("room", [(390, 700), (1280, 700)])
def test_the_buttons_and_what_they_change_are_on_one_screen(opened, room, button):
    page = opened("six", viewport=dict(zip(("width", "height"), room, strict=True)))
    page.get_by_text(button, exact=True).click()
    parts = ["discs", "people", "ways", "told", "of-ratio"]
    boxes = [page.locator(f".live .{part}").bounding_box() for part in parts]
    tops = [box["y"] for box in boxes]
    assert tops == sorted(tops)
    assert boxes[-1]["y"] + boxes[-1]["height"] - tops[0] < room[1]


def test_on_paper_and_without_scripts_its_start_stands_there(opened):
    for options, medium in (({"java_script_enabled": False}, "screen"), ({}, "print")):
        page = opened("three", **options)
        page.emulate_media(media=medium)
        assert page.locator(".still img").is_visible()
        (said, more) = words(household.COUNTS, 0)
        assert page.get_by_text(f"{said} {more}").first.is_visible()
        assert not page.locator(".live").is_visible()
    page.emulate_media(media="screen")
    assert page.locator(".live").is_visible()
    assert not page.locator(".still").is_visible()


def test_a_curve_goes_through_its_points_and_words_below_have_room(opened):
    page = opened("curve")
    page.locator("[type=range]").press("ArrowRight")
    drawn = page.locator("path.curve").first
    assert drawn.get_attribute("style") == "--own: #B84A00"
    points = [
        [*map(float, point.split(","))]
        for point in re.findall(r"[\d.]+,[\d.]+", drawn.get_attribute("d"))
    ]
    (left, zero), (middle, top), (right, bottom) = points
    # the heights of all frames are from -3 to 3
    assert [bottom - top, bottom - zero] == pytest.approx([120, 60])
    assert middle == pytest.approx((left + right) / 2)
    dot = page.locator("circle.dot").first
    at = [float(dot.get_attribute(name)) for name in ("cx", "cy")]
    assert at == pytest.approx([right, bottom])
    texts = page.locator("svg text").all_text_contents()
    assert {"3 down", "the middle of it", "end"} <= {*texts} and "no room" not in texts


# of a picture to touch: each disc, the words below, and what the panels of μ hold
DRAWN = """() => {
  const numbers = (e, ...names) => names.map(name => Number(e.getAttribute(name)));
  const points = path => [...path.getAttribute('d').matchAll(/([\\d.-]+),([\\d.-]+)/g)]
    .map(([, x, y]) => [Number(x), Number(y)]);
  const all = (what) => [...document.querySelectorAll(`.live ${what}`)];
  const texts = panel => all(`.${panel} > text`).map(e => [
    e.textContent, ...numbers(e, 'x', 'y')]);
  return {
    discs: all('.disc').map(disc => [...numbers(disc.querySelector('.edge'), 'cx', 'cy', 'r'),
      ...numbers(disc.querySelector('.weight'), 'cx', 'cy', 'r'),
      Number(disc.classList.contains('away'))]),
    visits: texts('discs'), ratio: texts('of-ratio'), posteriors: texts('of-posteriors'),
    paths: Object.fromEntries(['.of-posteriors .curve', '.of-posteriors .outline',
      '.of-ratio .curve', '.of-ratio .curve.above'].map(what => [what, all(what).map(points)[0]])),
    band: all('.of-ratio rect').flatMap(e => numbers(e, 'y', 'height')),
    levels: all('.of-ratio .level').flatMap(e => numbers(e, 'y1')),
    dot: all('.of-ratio .dot').flatMap(e => numbers(e, 'cx', 'cy')),
    above: all('.of-ratio .curve.above').map(e => e.getAttribute('d').split('M').length - 1)[0],
  };
}"""
COUNTS_ODD = [0, *[40] * 9, 61]


@pytest.mark.parametrize(
    ("name", "press", "counts", "grid", "settings"),
    [
        ("six", WITH_M, BROKEN[WITH_M]["counts"], household.GRID, {"truncate_at": 5}),
        ("six", "G", [*household.COUNTS], household.GRID, {}),
        (
            "odd",
            None,
            COUNTS_ODD,
            (0.5, 60, 200),
            {"scale": 1 / 3, "truncate_at": 13.37},
        ),
    ],
)
def test_what_is_drawn_is_what_is_computed(opened, name, press, counts, grid, settings):
    page = opened(name, viewport={"width": 1280, "height": 900})
    if press:
        page.locator(".live button").filter(has_text=press).first.click()
    away = {"odd": 1}.get(name, 6 if press == "G" else 7)
    here = household.state(counts, away, again=press == WITH_M, grid=grid, **settings)
    drawn = page.evaluate(DRAWN)

    def places(texts, words):
        return [x for said, x, _ in texts if said in words]

    # discs stand above their counts, the area of each is a weight, and none hides another
    step = 20 if name == "odd" else 5
    ticks = [str(count) for count in range(0, 66 if name == "odd" else 26, step)]
    at = places(drawn["visits"], ticks)
    x, y, radius, *_, inside, gone = np.array(drawn["discs"]).T
    assert [said for said, *_ in drawn["visits"]][1:] == ticks == ticks[: len(at)]
    assert x == pytest.approx(np.interp(counts, [*map(int, ticks)], at), abs=2 * step)
    slope = (at[1] - at[0]) / step
    assert x == pytest.approx(at[0] + slope * np.array(counts))
    assert inside == pytest.approx(radius * np.sqrt(here.left))
    assert np.flatnonzero(gone).tolist() == [away]
    assert len({*zip(x, y, strict=True)}) == len(counts)
    # both panels have one axis of μ
    of_mu = np.linspace(grid[0], grid[1], 6)
    words = [f"{round(mu, 2):g}" for mu in of_mu]
    for panel in ("ratio", "posteriors"):
        at = places(drawn[panel], words)[-6:]
        (curve,) = [drawn["paths"][f".of-{panel} .curve"]]
        expected = np.interp(here.means, of_mu, at)
        assert np.array(curve)[: here.means.size, 0] == pytest.approx(
            expected, abs=0.06
        )
    # the highest of both posteriors reaches the roof
    top = max(here.before.max(), here.after.max())
    before, after = (
        np.array(drawn["paths"][f".of-posteriors .{kind}"])[: here.means.size, 1]
        for kind in ("curve", "outline")
    )
    assert before == pytest.approx(160 - 124 * np.exp(here.before - top), abs=0.06)
    assert after == pytest.approx(160 - 124 * np.exp(here.after - top), abs=0.06)
    if here.delta == 0:
        return
    # ratio, band, levels and dot have one scale, which has room for all of them
    low, high = drawn["levels"][::-1]
    assert 26 < min(low, high) < max(low, high) < 160
    twice = 2 * here.delta
    scale = abs(high - low) / (2 * twice)
    ratio = np.array(drawn["paths"][".of-ratio .curve"])
    assert ratio[:, 1] == pytest.approx(93 - scale * here.ratio, abs=0.06)
    assert ratio.min() > 0 and 26 < ratio[:, 1].min() and ratio[:, 1].max() < 160
    assert drawn["band"] == pytest.approx([93 - scale * twice, 2 * scale * twice])
    place = np.abs(here.ratio).argmax()
    assert drawn["dot"] == pytest.approx(ratio[place], abs=0.06)
    (label,) = [
        (mark, down) for said, mark, down in drawn["ratio"] if said.endswith(" nats")
    ]
    # the words stand beyond the dot
    assert (label[1] > drawn["dot"][1]) == (here.ratio[place] < 0)
    outside = np.abs(here.ratio) > twice
    assert (drawn["above"] or 0) == np.sum(outside[1:] | outside[:-1])


def test_a_pointer_far_from_all_discs_takes_none_and_one_that_is_lost_lets_go(opened):
    page = opened("six", viewport={"width": 1280, "height": 900})
    assert page.get_by_label("Threshold M").get_attribute("max") == "10"
    box = page.locator("g.disc", has_text="H").locator(".grip").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.click(x + 40, y)
    assert read(page) == words(household.COUNTS)
    page.mouse.move(x, y)
    page.mouse.down()
    page.locator(".discs").dispatch_event("pointercancel")
    page.mouse.move(x - 100, y)
    page.mouse.up()
    assert counts_of(page) == [*household.COUNTS]
    assert read(page) == words(household.COUNTS)
    page = opened("odd")
    # beyond the largest M that it begins with
    assert page.get_by_label("Threshold M").get_attribute("max") == "15"


def test_words_stand_beside_what_they_are_about_and_a_plain_panel_has_no_scale(opened):
    page = opened("curve")
    page.locator("[type=range]").press("ArrowRight")
    numbers = "all => all.map(e => [e.textContent, ...['x', 'y'].map(n => +e.getAttribute(n))])"
    texts = page.locator("svg text").evaluate_all(numbers)
    at = {said: (x, y) for said, x, y in texts}
    numbers = "all => all.map(e => ['cx', 'cy'].map(name => +e.getAttribute(name)))"
    dots = page.locator("circle.dot").evaluate_all(numbers)
    below, above, aside = (
        at[name] for name in ("3 down", "from the very left", "beside")
    )
    assert below[1] == dots[0][1] + 20 and above[1] == dots[1][1] - 9
    # they stay between the ends of the panel
    assert below[0] < dots[0][0] and above[0] > dots[1][0] + 50
    assert aside[0] == dots[2][0] + 9 and aside[1] <= dots[2][1] + 14
    dashed = page.locator("path.curve.dashed")
    (end,) = re.findall(r"L([\d.]+),([\d.]+)$", dashed.get_attribute("d"))
    assert at["risen"] == pytest.approx((float(end[0]), float(end[1]) - 6))
    upright = page.locator("line.outline")
    middle = (dots[1][0] + float(end[0])) / 2
    assert float(upright.get_attribute("x1")) == pytest.approx(middle, abs=0.1)
    # the scale of the first panel alone
    heights = [float(said) for said, *_ in texts if re.fullmatch(r"-?[\d.]+", said)]
    assert heights == sorted({*heights})
    # a narrower page has a narrower picture
    before = page.locator("svg").get_attribute("viewBox")
    page.set_viewport_size({"width": 330, "height": 844})
    page.wait_for_function(
        "old => document.querySelector('svg').getAttribute('viewBox') !== old",
        arg=before,
    )
