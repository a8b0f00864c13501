"""Names of the library in code lead to where they are described, and nothing else does."""

import pytest

from ppm.publishing.code_links import described, with_links

PLACES = {
    name: ("book/library/page", name) for name in (
        "ppm.local_bound", "ppm.PseudoPosteriorMechanism", "ppm_book.plots.violins", "ppm.pdp.add",
        "ppm.utility.add", "ppm.publishing.table", "ppm.mechanism.MechanismResult.epsilon",
        "ppm.Synthesizer.fit",
    )
}


def block(*words):
    return '<span class="o">.</span>'.join(f'<span class="n">{word}</span>' for word in words)


def linked(html):
    return with_links(html, PLACES, lambda page: f"../{page}.html")


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("ppm", "local_bound"), "ppm.local_bound"),
        (("page", "table"), "ppm.publishing.table"),
        (("ppm", "plots", "violins"), "ppm_book.plots.violins"),
        (("ppm", "plots"), None),
        (("table", "local_bound"), None),
    ],
)
def test_a_dotted_name_in_a_code_cell_links_to_its_description(words, name):
    html = f'{block(*words)}<span class="p">(</span>'
    link = f'<a class="code-link" href="../book/library/page.html#{name}">{block(*words)}</a>'
    assert linked(html) == (f'{link}<span class="p">(</span>' if name else html)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("local_bound(log_lik, weights)", "ppm.local_bound"),
        ("ppm.local_bound", "ppm.local_bound"),
        ("PseudoPosteriorMechanism", "ppm.PseudoPosteriorMechanism"),
        ("violins(draws)", "ppm_book.plots.violins"),
        ("result.epsilon(releases)", "ppm.mechanism.MechanismResult.epsilon"),
        ("synthesizer.fit(weights)", "ppm.Synthesizer.fit"),
        # a variable that is called like a function, one of two, and no name at all
        ("local_bound", None),
        ("add(1)", None),
        ("fit(1)", None),
        ("draws=100", None),
        ("make book", None),
    ],
)
def test_code_in_a_sentence_is_known_by_its_name(text, name):
    assert described(text, PLACES) == name
    spans = " ".join(f'<span class="pre">{word}</span>' for word in text.split())
    html = f'<code class="docutils literal notranslate">{spans}</code>'
    assert ("<a " in linked(html)) == (name is not None)
    # what is a link already stays one
    assert linked(f'<a href="#x">{html}</a>') == f'<a href="#x">{html}</a>'


def test_a_page_links_to_its_own_places():
    html = with_links(block("ppm", "local_bound"), PLACES, lambda page: "#")
    assert 'href="#ppm.local_bound"' in html
