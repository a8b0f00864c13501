"""Moving pictures in a browser: with the keyboard, on a phone, without scripts, and on paper."""

import numpy as np
import pytest
from conftest import ROOT
from ppm_book import page
from ppm_book.pdf import find_chromium
from tour import PHONE, Tour, opened

import ppm
from ppm.publishing.moving import on_the_page

CHROMIUM = find_chromium()
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium was found (apt-get install chromium)"
)
# text that reaches out of its drawing
OUTSIDE = """() => [...document.querySelectorAll('.moving svg')].flatMap(svg => {
  const frame = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text')].filter(text => {
    const own = text.getBoundingClientRect();
    return own.left < frame.left - 9 || own.right > frame.right + 9 || own.bottom > frame.bottom;
  }).map(text => text.textContent);
})"""


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """A folder with one page that holds the three pictures."""
    rng = np.random.default_rng(1)
    counts = ppm.GammaPoisson([3, 4, 4, 5, 18], shape=1.0, rate=0.1)
    bounds = ppm.record_bounds(counts.log_likelihood(counts.fit(random_seed=1)))
    income, widths = rng.lognormal(10.5, 1.0, 200), (0.25, 0.5, 1.0, 2.0, 4.0)
    releases = {
        name: {width: rng.lognormal(10.5, 1.0, (2, 200)) for width in widths}
        for name in ("Limits", "Histogram")
    }
    errors = {
        name: {width: ppm.utility.release_errors(income, found) for width, found in group.items()}
        for name, group in releases.items()
    }
    pictures = (
        page.moving_weights(counts, bounds, names="ABCDE", draws=20, random_seed=1),
        page.moving_contraction(
            ppm.studies.contraction([30, 60], replicates=20, draws=20, random_seed=1)
        ),
        page.moving_release(income, releases, errors, statistics=["mean"], simulated=True),
    )
    folder = tmp_path_factory.mktemp("moving")
    for name in ("moving.js", "moving.css"):
        (folder / name).write_bytes((ROOT / "book" / "_static" / name).read_bytes())
    colours = (
        ":root { color-scheme: light dark; --pst-color-text-base: CanvasText; "
        "--pst-color-text-muted: GrayText; --pst-color-border: #999 }"
    )
    (folder / "page.html").write_text(
        '<!DOCTYPE html><html lang="en"><title>Page</title><meta charset="utf-8">'
        '<link rel="stylesheet" href="moving.css"><script src="moving.js"></script>'
        f"<style>{colours} body {{ margin: 8px }}</style><main><h1>Page</h1>"
        f"{''.join(on_the_page(picture.content) for picture in pictures)}</main></html>",
        "utf-8",
    )
    return folder


def test_every_slider_moves_with_the_keyboard_and_nothing_is_at_fault(book):
    with opened(CHROMIUM) as browser:
        tour = Tour(browser, book, thorough=True).take()
    assert tour.sliders == 6
    assert not {kind: found for kind, found in tour.faults.items() if found}


def test_no_word_of_a_picture_reaches_out_of_it_at_any_place_on_a_phone(book):
    with opened(CHROMIUM) as browser:
        browser.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
        browser.goto((book / "page.html").as_uri())
        for slider in browser.locator("input[type=range]").all():
            for key in ("Home", "End"):
                slider.press(key)
                assert not browser.evaluate(OUTSIDE)
        slider = browser.locator("input").first
        slider.press("Home")
        assert slider.get_attribute("aria-valuetext") == "0.1"
        width = slider.evaluate("slider => parseFloat(getComputedStyle(slider).outlineWidth)")
        assert width >= 2
        # the words of a picture are what it says, and it is said once
        assert browser.locator("output[aria-live=polite]").count() == 3


def test_without_scripts_and_on_paper_there_is_no_empty_picture(book):
    with opened(CHROMIUM) as browser:
        browser.goto((book / "page.html").as_uri())
        assert browser.locator(".moving").first.is_visible()
        browser.emulate_media(media="print")
        assert not any(place.is_visible() for place in browser.locator(".moving").all())
        bare = browser.context.browser.new_context(java_script_enabled=False).new_page()
        bare.goto((book / "page.html").as_uri())
        assert not any(place.is_visible() for place in bare.locator(".moving").all())
        assert "Δ" not in bare.locator("main").inner_text()


def test_a_picture_is_drawn_again_when_its_room_changes_and_the_window_does_not(book):
    drawn = "svg => Number(svg.getAttribute('viewBox').split(' ')[2]) - svg.clientWidth"
    with opened(CHROMIUM) as browser:
        browser.set_viewport_size({"width": 1280, "height": 900})
        browser.goto((book / "page.html").as_uri())
        # as when a sidebar unfolds: words would shrink with the picture
        browser.add_style_tag(content="main { max-width: 500px }")
        browser.wait_for_function(
            f"() => [...document.querySelectorAll('.moving svg')].every("
            f"svg => svg.clientWidth < 500 && Math.abs(({drawn})(svg)) < 3)", timeout=3000
        )
