"""Print the book: all pages as one PDF with an outline, from a headless Chromium.

``make pdf`` calls it behind ``make book``, whose staged pages it takes.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from ppm.publishing import book
from ppm.publishing.files import alone_in
from ppm.publishing.notebooks import BookError

NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "msedge",
)
# by the page's own clock, which runs while nothing loads: formulas are typeset within
MILLISECONDS = 60_000
# by ours
SECONDS = 600


def find_chromium():
    """Path of a Chromium or a relative of it, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def print_page(page, target, chromium):
    """Print a page on disk, with an outline and the tags that screen readers need.

    Parameters
    ----------
    page : path-like
        The page.
    target : path-like
        The PDF.
    chromium : str
        Path of the browser.

    Raises
    ------
    BookError
        If it prints nothing, or takes too long.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [
            chromium, "--headless", "--disable-gpu", "--no-first-run", "--disable-sync",
            "--disable-background-networking", "--disable-component-update",
            f"--user-data-dir={profile}", f"--virtual-time-budget={MILLISECONDS}",
            "--export-tagged-pdf", "--generate-pdf-document-outline", "--no-pdf-header-footer",
            f"--print-to-pdf={Path(target).resolve()}", Path(page).resolve().as_uri(),
        ]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            # its sandbox is not for the system's owner, as in a container
            command.insert(1, "--no-sandbox")
        try:
            done = subprocess.run(command, capture_output=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            raise BookError(f"{Path(chromium).name} took longer than {SECONDS} seconds") from None
    if done.returncode or not Path(target).is_file():
        raise BookError(f"{Path(chromium).name} printed nothing, exit status {done.returncode}")


def with_own_links(html):
    """The joined page with links to places on it, and none to files of this machine.

    Parameters
    ----------
    html : str
        The page.
    """
    html = re.sub(r'(<a\b[^>]*\bhref=")[^"#:]*(#[^"]*")', r"\1\2", html)
    return re.sub(r'(<a\b[^>]*?) href="(?!#|https?:|mailto:)[^"]*"', r"\1", html)


def book_as_pdf(root):
    """Print the book that stands in ``_build``.

    Parameters
    ----------
    root : path-like
        The repository.

    Returns
    -------
    pathlib.Path
        ``_build/book.pdf``, for its owner only if the book is.

    Raises
    ------
    BookError
        If there is no book, or no Chromium, or the pages could not be joined.
    """
    root = Path(root)
    staged = root / "_build" / "stage"
    html = root / "_build" / "html"
    if not (staged / "_config.yml").is_file() or not html.is_dir():
        raise BookError("there is no book to print: make book")
    chromium = find_chromium()
    if chromium is None:
        raise BookError(f"a PDF needs Chromium or one of its relatives ({', '.join(NAMES)})")
    target = root / "_build" / "book.pdf"
    with alone_in(root / "_build"), tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "sphinx")
        problems = book._sphinx(staged, output, builder="singlehtml", strict=False)
        if problems:
            raise BookError(f"the pages could not be joined: {problems[-1]}")
        pages = output / "_build" / "singlehtml"
        # Sphinx writes it where the introduction lies, with addresses as seen from the top
        joined = max(pages.rglob("*.html"), key=lambda file: file.stat().st_size)
        page = pages / "book.html"
        page.write_text(with_own_links(joined.read_text("utf-8")), "utf-8")
        part = target.with_suffix(".part.pdf")
        print_page(page, part, chromium)
        part.chmod(html.stat().st_mode & 0o666)
        part.replace(target)
    return target


if __name__ == "__main__":
    try:
        print(f"The book is printed: {book_as_pdf(Path.cwd())}")
    except BookError as error:
        sys.exit(f"ppm: {error}")
