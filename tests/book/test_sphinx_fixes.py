"""What a page's form is changed to, where the theme leaves it undone."""

from types import SimpleNamespace

import pytest
from docutils import nodes
from docutils.core import publish_doctree

from ppm_book.tools import sphinx_fixes

QUESTION = "**Predict before you read on.** Why?\n\n"
ANSWER = ".. admonition:: Answer\n   :class: dropdown\n\n   Because.\n"


@pytest.mark.parametrize(
    ("text", "boxes"),
    [
        (QUESTION + ANSWER, ["Predict before you read on. Why? Because."]),
        (
            f"Title\n=====\n\nWords.\n\n{QUESTION}{ANSWER}\nMore.",
            ["Predict before you read on. Why? Because."],
        ),
        (
            2 * f"{QUESTION}{ANSWER}\n",
            2 * ["Predict before you read on. Why? Because."],
        ),
        # an answer whose question stands further above has the same form
        (
            QUESTION + "Words between.\n\n" + ANSWER,
            ["Predict before you read on. Why?", "Because."],
        ),
        (QUESTION, ["Predict before you read on. Why?"]),
        (ANSWER, ["Because."]),
        ("**Exercise.** Why?\n\n" + ANSWER, ["Because."]),
        (ANSWER.replace("Answer", "The other limits"), []),
        # what is open stays a box of its own
        (
            QUESTION + ANSWER.replace("dropdown", "note"),
            ["Predict before you read on. Why?"],
        ),
    ],
)
def test_a_prediction_and_its_answer_make_one_box(text, boxes):
    doctree = publish_doctree(text)
    sphinx_fixes._arrange(None, doctree)
    found = [
        box for box in doctree.findall(nodes.container) if "predict" in box["classes"]
    ]
    words = [
        " ".join(part.astext() for part in box.findall(nodes.paragraph))
        for box in found
    ]
    assert words == boxes
    folds = [[part.astext() for part in box.findall(nodes.raw)] for box in found]
    begin = '<details class="answer"><summary>Answer</summary>'
    assert folds == [
        [begin, "</details>"] if "Because" in words else [] for words in boxes
    ]
    left = text.count("::") - sum("Because" in words for words in boxes)
    assert len([*doctree.findall(nodes.admonition)]) == left


@pytest.mark.parametrize(
    ("text", "lettered"),
    [
        (r"- \(a) one" "\n" r"- \(b) two", True),
        (r"- \(a) one" "\n" "- two", False),
        ("- one", False),
    ],
)
def test_choices_with_letters_have_no_bullets(text, lettered):
    doctree = publish_doctree(text)
    sphinx_fixes._arrange(None, doctree)
    assert ("lettered" in doctree.next_node(nodes.bullet_list)["classes"]) == lettered


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("Show code cell {type}", "Show the code"),
        ("Show the code of both", "Show the code of both"),
    ],
)
def test_a_chapter_s_own_words_for_folded_code_stay(given, shown):
    doctree = publish_doctree("Words.")
    doctree += nodes.container("", hide_mode="input", prompt_show=given)
    sphinx_fixes._arrange(None, doctree)
    assert doctree.next_node(nodes.container)["prompt_show"] == shown


BOOK = SimpleNamespace(
    external_site_map={
        name: SimpleNamespace(title=title)
        for name, title in {"one": "Short", "two": None, "end": "The end"}.items()
    },
    toc_secnumbers={"one": {"": (9, 2)}, "two": {"": (2,)}},
)
RELATIONS = {
    "page": [None, "one", "two"],
    "two": [None, "two", "end"],
}


def mended(body, doctree=None, page="alone", **config):
    """A page of this body, as the theme's template would get it."""
    files = {
        "script_files": ["thebe.js", "mathjax/tex-chtml.js", "reading.js", "moving.js"],
        "css_files": ["custom.css", "moving.css", "touch.css"],
    }
    context = {"title": "A <em>page</em> &amp; more", "body": body} | {
        kind: [SimpleNamespace(filename=name, attributes={}) for name in names]
        for kind, names in files.items()
    }
    settings = {"html_title": "The book", "html_baseurl": ""} | config
    app = SimpleNamespace(
        srcdir=".",
        config=SimpleNamespace(**settings),
        builder=SimpleNamespace(relations=RELATIONS),
        env=BOOK,
    )
    sphinx_fixes._mend(app, page, "page.html", context, doctree)
    return context


FORMULA = r'<span class="math notranslate nohighlight">\(\Delta\)</span>'


def test_a_stop_stays_with_its_formula():
    made = mended(f"<p>{FORMULA}. And {FORMULA} is {FORMULA}-private</p>")
    together = '<span class="together">{}</span>'.format
    assert made["body"] == (
        f"<p>{together(f'{FORMULA}.')} And {FORMULA} is {together(f'{FORMULA}-private')}</p>"
    )


@pytest.mark.parametrize(
    ("body", "files"),
    [
        ("<p>moving math, a touch</p>", ["reading.js", "custom.css"]),
        (FORMULA, ["mathjax/tex-chtml.js", "reading.js", "custom.css"]),
        (
            '<div class="moving"></div>',
            ["reading.js", "moving.js", "custom.css", "moving.css"],
        ),
        (
            '<div class="touch moving"></div>',
            ["reading.js", "moving.js", "custom.css", "moving.css", "touch.css"],
        ),
    ],
)
def test_a_page_loads_what_it_needs(body, files):
    made = mended(body)
    loaded = [
        file.filename for kind in ("script", "css") for file in made[f"{kind}_files"]
    ]
    assert loaded == files


def test_a_page_says_what_it_is_about():
    doctree = publish_doctree(
        "Page\n====\n\nAfter this you can\n\n"
        "For every μ there is :math:`f_i`, which is a formula that nobody can say.\n\n"
        'An :math:`\\epsilon` is "a number" that tells how much a single household can change.',
        # a title is that of a section, as in Sphinx
        settings_overrides={"doctitle_xform": False},
    )
    about = mended("", doctree)["metatags"]
    told = "An ε is &quot;a number&quot; that tells how much a single household can change."
    for line in (
        f'<meta name="description" content="{told}" />',
        f'<meta property="og:description" content="{told}" />',
        '<meta property="og:title" content="A page &amp; more" />',
        '<meta property="og:site_name" content="The book" />',
    ):
        assert line in about.splitlines()
    # whose address must be a whole one
    assert "og:image" not in about
    address = "https://books.example/ppm"
    about = mended("", html_baseurl=f"{address}/")["metatags"]
    assert f'"og:image" content="{address}/_static/first.png"' in about


@pytest.mark.parametrize(
    ("page", "titles"),
    [("page", {"prev_title": "9.2. Short"}), ("two", {"next_title": "The end"})],
)
def test_the_way_on_has_the_short_titles_of_the_contents(page, titles):
    made = mended("", page=page)
    assert {key: made[key] for key in made if key[4:] == "_title"} == titles
