"""The book as one PDF."""

import shutil

import pytest

from ppm_book.tools import pdf


@pytest.mark.skipif(
    not pdf.find_chromium(), reason="no Chromium (apt-get install chromium)"
)
def test_a_page_is_printed_with_an_outline_and_tags(tmp_path):
    page = tmp_path / "page.html"
    page.write_text(
        '<!DOCTYPE html><html lang="en"><title>P</title><h1>One</h1><h2>Two</h2>'
    )
    pdf.print_page(page, tmp_path / "page.pdf")
    printed = (tmp_path / "page.pdf").read_bytes()
    # the outline names both headings, and the structure is there for screen readers
    assert printed.count(b"/Title") >= 3 and b"/StructTreeRoot" in printed


@pytest.mark.parametrize(
    "name",
    [
        "book/library/index",
        "book/parameters",
        "book/teaching",
    ],
)
def test_paper_has_a_title_page_and_the_whole_edition_what_is_looked_up(name):
    book = """<div id="jb-print-toc"><nav><ul><li><a href="#document-notebooks/one">1. One</a></li>
    <li><a href="#document-book/library/index">The library</a><ul><li><a
    href="#gone">In it</a></li></ul></li></ul></nav></div><article><section><h1>Start</h1>
    <span id="document-notebooks/one"></span><section id="one"><h2>One<a class="headerlink"
    href="#one">#</a></h2><a href="intro.html#one">up</a> <a href="intro.html#gone">away</a>
    <a href="#document-book/library/index">library</a><div class="solution">Solution</div>
    <div class="ledger"><table><tr><td>a<br>b</td><td></td>
    <td>1<br>2</td></tr></table></div></section>
    <span id="document-book/library/index"></span><section><h2>The library</h2></section>
    </section></article>""".replace("book/library/index", name)
    short, whole = (pdf.for_paper(book, edition) for edition in (False, True))
    entry = f'<li><a href="#document-{name}">The library</a>'
    assert entry in whole and "The library" not in short
    assert '<li><a href="#document-notebooks/one">1. One</a></li>' in short
    assert '<a href="#one">up</a> <a>away</a>' in short and "<a>library</a>" in short
    # values need no lines of their own, and solutions are not for every reader
    assert "a<br/>b" in short and "1, 2" in short
    assert "Solution" not in short and "Solution" in whole


@pytest.mark.parametrize(("whole", "name"), [(False, "book.pdf"), (True, "whole.pdf")])
def test_a_pdf_is_of_the_last_book_and_for_those_who_may_read_it(
    tmp_path, monkeypatch, whole, name
):
    def sphinx(staged, pages, **_):
        pages.mkdir()
        (pages / "index.html").write_text("the book")

    monkeypatch.setattr(pdf.running, "ROOT", tmp_path)
    for used, instead in {
        "sphinx": sphinx,
        "find_chromium": lambda: "chromium",
        "state_of_pages": lambda: "new",
        "for_paper": lambda html, whole: f"{html}, whole: {whole}",
        "print_page": shutil.copy,
    }.items():
        monkeypatch.setattr(pdf, used, instead)
    with pytest.raises(pdf.Failed, match=r"^a PDF needs the book \(make book\)"):
        pdf.make(whole)
    (html := tmp_path / "_build" / "html").mkdir(parents=True)
    for rights in 0o755, 0o700:
        html.chmod(rights)
        (html / "made_from").write_text("old")
        with pytest.raises(pdf.Failed, match="make book first$"):
            pdf.make(whole)
        (html / "made_from").write_text("new")
        (made,) = pdf.make(whole)
        assert (
            made == tmp_path / "_build" / name
            and made.stat().st_mode & 0o777 == rights & 0o666
        )
        assert made.read_text() == f"the book, whole: {whole}"
