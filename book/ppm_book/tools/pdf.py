"""Print the book that was built as one PDF, from a headless Chromium."""

import shutil
import tempfile
from pathlib import Path

from bs4 import BeautifulSoup

from ppm_book.chapters import running
from ppm_book.tools import exercises
from ppm_book.tools.pages import Failed, sphinx, state_of_pages

NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "msedge",
)
# pages that only the whole edition has, with those below them
REFERENCE = ("book/library/index", "book/parameters", "book/teaching")


def find_chromium():
    """Path of a Chromium or a relative of it, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def print_page(page, target):
    """Print a page on disk, with an outline and the tags that screen readers need."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        tab = playwright.chromium.launch(executable_path=find_chromium()).new_page()
        tab.goto(Path(page).resolve().as_uri(), timeout=600_000)
        tab.evaluate("() => window.MathJax?.startup.promise.then(() => null)")
        tab.pdf(path=target, tagged=True, outline=True, prefer_css_page_size=True)


def for_paper(html, whole=False):
    """The page that holds the book, with a title page, and links to places on it or on the web."""
    soup = BeautifulSoup(html, "html.parser")
    for name in () if whole else REFERENCE:
        if start := soup.find(id=f"document-{name}"):
            start.find_next_sibling("section").decompose()
            start.decompose()
    # which on a screen are folded
    for solution in () if whole else soup.select("div.solution"):
        solution.decompose()
    # on a screen a value has its line, which on paper takes pages
    for end in soup.select(".ledger td:nth-child(n + 3) br"):
        end.replace_with(", ")
    settings = exercises.settings(running.ROOT)
    front = soup.new_tag("div", attrs={"class": "title-page"})
    front.append(soup.new_tag("p", attrs={"class": "title"}, string=settings["title"]))
    front.append(
        soup.new_tag("p", string=f"{settings['author']}, {settings['copyright']}")
    )
    # the theme's list of contents
    front.append(soup.select_one("#jb-print-toc nav").extract())
    soup.select_one("article").insert(0, front)
    places = {element["id"] for element in soup.find_all(id=True)}
    for link in soup.select("a[href]:not([href^=http], [href^='mailto:'])"):
        place = link["href"].partition("#")[2]
        link["href"] = f"#{place}"
        if place not in places:
            del link["href"]
            if front in link.parents:
                link.parent.extract()
    return str(soup)


def make(whole=False):
    """Print ``_build/html`` into a PDF, for its owner only if the book is.

    Parameters
    ----------
    whole : bool, default False
        Whether the pages for looking things up are printed too: the library, parameters, and
        the guide for instructors, with all solutions.
    """
    build = running.ROOT / "_build"
    if not (build / "html").is_dir() or find_chromium() is None:
        raise Failed("a PDF needs the book (make book) and Chromium or Chrome")
    if (build / "html" / "made_from").read_text("utf-8") != state_of_pages():
        raise Failed("the pages are not those of the last book: make book first")
    with tempfile.TemporaryDirectory() as folder:
        pages = Path(folder, "pages")
        sphinx(build / "stage", pages, strict=False, builder="singlehtml")
        # Sphinx writes it where the introduction lies, with addresses as seen from the top
        html = max(
            pages.rglob("*.html"), key=lambda file: file.stat().st_size
        ).read_text("utf-8")
        (pages / "book.html").write_text(for_paper(html, whole), "utf-8")
        print_page(pages / "book.html", pages / "book.pdf")
        (pages / "book.pdf").chmod((build / "html").stat().st_mode & 0o666)
        return [
            shutil.move(
                pages / "book.pdf", build / ("whole.pdf" if whole else "book.pdf")
            )
        ]
