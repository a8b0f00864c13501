"""Every page of the built book as a reader meets it: from disk, on a desk and on a phone."""

import os
from pathlib import Path

import pytest
from ppm_book.pdf import find_chromium
from tour import KINDS, Tour, opened, pages_of, search

CHROMIUM = find_chromium()
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium was found (apt-get install chromium)"
)


@pytest.fixture(scope="module")
def html(request):
    """The book named in PPM_BOOK (`make browser` does), or else the one that the tests build."""
    named = os.environ.get("PPM_BOOK")
    if not named:
        return request.getfixturevalue("this_book") / "_build" / "html"
    if not Path(named, "index.html").is_file():
        pytest.skip(f"no book is built in {named} (make book)")
    # the addresses of pages need the whole path
    return Path(named).resolve()


def test_no_page_has_a_fault_and_search_works_from_disk(html):
    # one test, because where several processes share the tests each would take the tour again
    named, shots = os.environ.get("PPM_BOOK"), os.environ.get("PPM_SHOTS")
    if shots:
        Path(shots).mkdir(parents=True, exist_ok=True)
    # closed before other tests run: it keeps an event loop
    with opened(CHROMIUM) as page:
        tour = Tour(
            page, html, thorough=bool(named), shots=Path(shots) if shots else None
        ).take()
        page.goto((html.resolve() / "index.html").as_uri())
        page.wait_for_url("**/book/intro.html")
        found = {word: search(page, html, word) for word in ("Lipschitz", "oscillation")}
    faults = [f"{kind}: {fault}" for kind in KINDS for fault in tour.faults[kind]]
    assert not faults, "\n".join(faults)
    # it saw the whole book
    assert len(pages_of(html)) > 30
    assert tour.links > 1000
    # the solutions alone are more
    assert tour.folded > 20
    for word, (titles, first) in found.items():
        assert len(titles) > 2, word
        assert first.startswith(html.resolve().as_uri())


FAULTY = {
    "console": "<script>let a = 1</script><script>let a = 2</script>",
    "requests": '<link rel="stylesheet" href="http://localhost:9/style.css">',
    "overflow": '<p style="width: 500px">wide</p>',
    "links": '<a href="#nowhere">link</a><a href="../out.html">out</a><a href="gone.html">gone</a>',
    "images": '<img src="data:image/png;base64,AAAA" alt="broken">',
    "folded": (
        '<div class="bd-article"><details><summary>Solution</summary>'
        '<p style="display: none">hidden for good</p></details></div>'
    ),
    "sliders": '<label>c <input type="range"><output>1</output></label>',
    "theme": "<script>document.documentElement.dataset.theme = 'light'</script>",
    "accessibility": (
        '<p style="color: #999; background: #fff">faint</p><p style="color: #000">A line of text '
        'with <a href="accessibility.html" style="color: #00f; text-decoration: none">a link</a>'
    ),
}
SOUND = """
<a id="here" href="#here">link</a> <a href="https://localhost:9/">outside</a>
<div class="bd-article"><details><summary>Solution</summary><p>shown</p></details></div>
<label>c <input type="range" oninput="this.nextElementSibling.value = this.value">
<output>50</output></label>
"""


@pytest.mark.parametrize("thorough", [False, True])
def test_the_tour_sees_every_kind_of_fault_and_no_other(tmp_path, thorough):
    start = '<!DOCTYPE html><html lang="en"><title>Page</title><main><h1>Page</h1>'
    assert sorted(FAULTY) == sorted(KINDS)
    for name, body in {**FAULTY, "sound": SOUND}.items():
        (tmp_path / f"{name}.html").write_text(f"{start}{body}</main></html>", "utf-8")
    with opened(CHROMIUM) as page:
        faults = Tour(page, tmp_path, thorough=thorough).take().faults
    for kind in KINDS:
        pages = {fault.partition(":")[0] for fault in faults[kind]}
        # a file that cannot be loaded is a line of the console too
        also = {"requests.html"} if kind == "console" else set()
        assert pages - also == {f"{kind}.html"}, (kind, faults[kind])
    assert len(faults["links"]) == 3
    told = " ".join(faults["accessibility"])
    assert "color-contrast" in told and "link-in-text-block" in told
