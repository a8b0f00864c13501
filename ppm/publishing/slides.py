"""Slides of every chapter, from the pages of the built book: ``make slides``.

What a lecturer points at stays (statements, figures, tables, lists), each on a slide under the
title of its section. What a lecturer says goes: sentences and code. A slide is a part of one page
that fills the screen, so that nothing but the book's own files is needed to show it.
"""

import re
import sys
from pathlib import Path

from ppm._validation import needed_for
from ppm.publishing.files import write_whole
from ppm.publishing.notebooks import BookError

# what becomes a slide; lists only where they stand by themselves in a section
SHOWN = (
    "div.proof.admonition:not(.proof-type-proof)", "figure", "table.dataframe",
    ":scope > ul", ":scope > ol", ":scope > div.pst-scrollable-table-container",
)
_STYLE = """
html { scroll-snap-type: y mandatory; scroll-padding: 0; }
body { margin: 0; }
section.slide { box-sizing: border-box; height: 100vh; padding: 4vh 6vw; overflow: hidden;
  scroll-snap-align: start; break-after: page; }
section.slide > h2 { margin: 0 0 3vh; font-size: 1.6rem; }
section.slide > .shown { transform-origin: top left; font-size: 1.25rem; width: 100%; }
section.slide img { display: block; margin: auto; max-height: 62vh; width: auto; }
section.slide > h1 { margin-top: 35vh; text-align: center; font-size: 2.4rem; }
section.slide table { margin: auto; border-collapse: collapse; }
section.slide :is(td, th) { padding: 0.2rem 0.8rem; vertical-align: top; }
.headerlink, p.data { display: none; }
@page { size: 297mm 167mm; margin: 0; }
"""
_SCRIPT = """
const slides = [...document.querySelectorAll("section.slide")];
const here = () => Math.round(scrollY / innerHeight);
const fit = () => {
  for (const slide of slides) {
    const shown = slide.querySelector(".shown");
    if (!shown) continue;
    shown.style.transform = "";
    const room = slide.clientHeight - shown.offsetTop + slide.offsetTop - 0.04 * innerHeight;
    const wide = slide.clientWidth * 0.88;
    const scale = Math.min(1, room / shown.scrollHeight, wide / shown.scrollWidth);
    if (scale < 1) shown.style.transform = `scale(${scale})`;
  }
};
addEventListener("load", () => {
  (window.MathJax?.startup?.promise ?? Promise.resolve()).then(fit);
});
addEventListener("resize", fit);
addEventListener("keydown", (event) => {
  const steps = { ArrowRight: 1, ArrowDown: 1, PageDown: 1, " ": 1,
    ArrowLeft: -1, ArrowUp: -1, PageUp: -1 };
  if (!(event.key in steps)) return;
  event.preventDefault();
  const next = Math.max(0, Math.min(slides.length - 1, here() + steps[event.key]));
  scrollTo({ top: slides[next].offsetTop });
});
"""


def slides_of(page, name):
    """Slides of one chapter.

    Parameters
    ----------
    page : str
        HTML of the chapter's page.
    name : str
        Name of its file.

    Returns
    -------
    str
        HTML of a page for a folder beside the chapter's own.
    """
    with needed_for("slides"):
        from bs4 import BeautifulSoup

    soup = BeautifulSoup(page, "html.parser")
    article = soup.select_one("article")
    title = article.select_one("h1")
    slides = [f"<h1>{_inner(title)}</h1>"]
    for section in article.select("section"):
        heading = section.find("h2", recursive=False)
        if heading is None:
            continue
        shown = [item for item in section.select(", ".join(SHOWN)) if not _inside(item, section)]
        slides += [f'<h2>{_inner(heading)}</h2><div class="shown">{item}</div>' for item in shown]
    head = [str(link) for link in soup.head.select('link[rel="stylesheet"]')]
    head += [str(script) for script in soup.find_all("script") if "mathjax" in str(script).lower()]
    # numbers stand on the right and words on the left, as each table says in a style of its own
    head += [str(style) for style in article.select("style")]
    body = "\n".join(
        f'<section class="slide" aria-label="{number} of {len(slides)}">{slide}</section>'
        for number, slide in enumerate(slides, start=1)
    )
    # its neighbours are in another folder now
    body = re.sub(r'href="(?=[\w-]+\.html)', 'href="../notebooks/', body)
    body = re.sub(r'href="(?=#)', f'href="../notebooks/{name}', body)
    return (
        f'<!DOCTYPE html>\n<html lang="en" data-theme="light"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title.get_text()}</title>{''.join(head)}<style>{_STYLE}</style></head>\n"
        f'<body><main class="tex2jax_ignore mathjax_ignore">{body}</main>\n'
        f"<script>{_SCRIPT}</script></body></html>\n"
    )


def _inner(heading):
    return re.sub(r'<a class="headerlink".*?</a>', "", heading.decode_contents())


def _inside(item, section):
    """Whether an item is part of another one, or of a section within the section's own ones."""
    for parent in item.parents:
        if parent is section:
            return False
        classes = parent.get("class") or []
        if parent.name in ("figure", "table") or "admonition" in classes or "proof" in classes:
            return True
    return False


def book_as_slides(root):
    """Write slides of every chapter of the built book into ``_build/html/slides``.

    Parameters
    ----------
    root : path-like
        The repository.

    Returns
    -------
    list of pathlib.Path

    Raises
    ------
    BookError
        If there is no book.
    """
    html = Path(root, "_build", "html")
    pages = sorted((html / "notebooks").glob("*.html"))
    if not pages:
        raise BookError("there is no book to make slides of: make book")
    folder = html / "slides"
    folder.mkdir(exist_ok=True)
    for page in pages:
        write_whole(folder / page.name, slides_of(page.read_text("utf-8"), page.name))
    return [folder / page.name for page in pages]


if __name__ == "__main__":
    try:
        made = book_as_slides(Path.cwd())
        print(f"Slides of {len(made)} chapters: {made[0].parent}")
    except BookError as error:
        sys.exit(f"ppm: {error}")
