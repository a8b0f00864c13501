"""Print the book that was built: all pages as one PDF, from a headless Chromium."""

import re
import shutil
import tempfile
from pathlib import Path

from ppm_book.page import ROOT
from ppm_book.pages import Failed, sphinx
from ppm_book.studio import state_of_pages

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "msedge")


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


def make():
    """Print ``_build/html`` into ``_build/book.pdf``, for its owner only if the book is."""
    build = ROOT / "_build"
    if not (build / "html").is_dir() or find_chromium() is None:
        raise Failed("a PDF needs the book (make book) and Chromium or Chrome")
    if (build / "html" / "made_from").read_text("utf-8") != state_of_pages():
        raise Failed("the pages are not those of the last book: make book first")
    with tempfile.TemporaryDirectory() as folder:
        pages = Path(folder, "pages")
        sphinx(build / "stage", pages, strict=False, builder="singlehtml")
        # Sphinx writes it where the introduction lies, with addresses as seen from the top
        html = max(pages.rglob("*.html"), key=lambda file: file.stat().st_size).read_text("utf-8")
        # links lead to places on this page or to the web
        html = re.sub(r'(<a\b[^>]*\bhref=")[^"#:]*(#[^"]*")', r"\1\2", html)
        html = re.sub(r'(<a\b[^>]*?) href="(?!#|https?:|mailto:)[^"]*"', r"\1", html)
        (pages / "book.html").write_text(html, "utf-8")
        print_page(pages / "book.html", pages / "book.pdf")
        (pages / "book.pdf").chmod((build / "html").stat().st_mode & 0o666)
        return [shutil.move(pages / "book.pdf", build / "book.pdf")]
