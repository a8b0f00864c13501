"""Slides of the chapters, from their pages."""

import re

import pytest

from ppm.publishing import slides
from ppm.publishing.notebooks import BookError

PAGE = """<html><head><link rel="stylesheet" href="../_static/a.css" />
<script>window.MathJax = {}</script><script src="theme.js"></script></head>
<body><nav><figure>elsewhere</figure></nav><article><section><h1>2. Title
<a class="headerlink" href="#title">#</a></h1>
<section id="one"><h2>2.1. One<a class="headerlink" href="#one">#</a></h2>
<p>What the lecturer says.</p><pre>code</pre><ul><li>a point</li></ul>
<div class="proof theorem admonition" id="thm"><p>Holds.</p><ul><li>inside</li></ul>
<a href="#def">below</a> <a href="theory.html#x">there</a> <a href="../book/a.html">book</a></div>
</section><section id="two"><h2>2.2. Two</h2><p>Only said.</p></section>
<section id="three"><h2>2.3. Three</h2><figure><img src="../_images/f.png" alt="A line." />
<table class="dataframe"><tr><td>in the figure</td></tr></table></figure></section>
</section></article></body></html>"""


def test_what_is_pointed_at_becomes_a_slide_and_what_is_said_does_not():
    made = slides.slides_of(PAGE, "chapter.html")
    parts = re.findall(r'<section class="slide".*?</section>', made, re.DOTALL)
    # title, list, theorem with its own list, figure with its own table
    assert len(parts) == 4
    assert "2. Title" in parts[0] and "headerlink" not in parts[0]
    for part, heading, shown in zip(
        parts[1:], ("2.1. One", "2.1. One", "2.3. Three"), ("a point", "Holds.", "A line."),
        strict=True,
    ):
        assert f"<h2>{heading}</h2>" in part and shown in part
    for said in ("What the lecturer says", "code", "2.2. Two", "elsewhere", "theme.js"):
        assert said not in made
    assert "window.MathJax" in made and "../_static/a.css" in made


def test_a_table_on_a_slide_is_aligned_as_on_its_page():
    # words that stand on the right are hard to read, so only what the table itself says counts
    table = (
        "<style>#T_1 .col2 { text-align: right; }</style>"
        '<table id="T_1" class="dataframe"><tr><td class="col2">1.5</td></tr></table>'
    )
    made = slides.slides_of(PAGE.replace("<pre>code</pre>", table), "chapter.html")
    assert '<td class="col2">1.5</td>' in made
    assert re.findall(r"([^{}>]+){[^}]*text-align: right", made) == ["#T_1 .col2 "]


def test_links_of_a_slide_lead_to_the_chapters():
    made = slides.slides_of(PAGE, "chapter.html")
    assert 'href="../notebooks/chapter.html#def"' in made
    assert 'href="../notebooks/theory.html#x"' in made
    assert 'href="../book/a.html"' in made


def test_slides_lie_in_the_built_book_and_need_one(tmp_path):
    with pytest.raises(BookError, match="^there is no book to make slides of: make book$"):
        slides.book_as_slides(tmp_path)
    chapters = tmp_path / "_build" / "html" / "notebooks"
    chapters.mkdir(parents=True)
    (chapters / "one.html").write_text(PAGE, "utf-8")
    (made,) = slides.book_as_slides(tmp_path)
    assert made == tmp_path / "_build" / "html" / "slides" / "one.html"
    assert "A line." in made.read_text("utf-8")
