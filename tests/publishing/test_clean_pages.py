"""What is mended on every page of the book."""

from types import SimpleNamespace

from ppm.publishing import clean_pages


def cleaned(**context):
    clean_pages._clean(SimpleNamespace(srcdir="/none"), "page", "page.html", context, None)
    return context


def test_scripts_that_would_fetch_code_are_dropped_and_others_stay():
    def script(name, body=None):
        return SimpleNamespace(filename=name, attributes={"body": body} if body else {})

    own = [script("_static/reading.js"), script(None, "let shown = true;")]
    other = [script(None, 'const THEBE_JS_URL = "x"'), script("_static/sphinx-thebe.js")]
    context = cleaned(script_files=own + other, css_files=["custom.css", "sphinx-thebe.css"])
    assert context["script_files"] == own
    assert context["css_files"] == ["custom.css"]


def test_a_button_that_unfolds_a_part_of_the_contents_says_which():
    part = '<a class="x" href="#">The library</a><details open><summary><span></span></summary>'
    html = cleaned(generate_toctree_html=lambda kind: f"<ul>{part}</ul>")["generate_toctree_html"]
    assert '<summary aria-label="Pages of The library"><span>' in html("sidebar")


def test_roles_that_are_not_filled_and_empty_headings_go_and_all_else_stays():
    sound = '<div role="list" class="bullets"></div><th class="head"><p>size</p></th>'
    assert clean_pages.mended(sound) == sound
    faulty = (
        '<div role="list" class="citation-list"><div class="citation" role="doc-biblioentry">'
        '<th class="blank level0" >&nbsp;</th><th class="head"></th>'
    )
    assert clean_pages.mended(faulty) == (
        '<div class="citation-list"><div class="citation">'
        '<td class="blank level0"></td><td class="head"></td>'
    )


def test_a_figure_gets_its_narrow_picture_and_its_data_where_there_are_any(tmp_path):
    figure = (
        '<figure class="align-default" id="fig-{}"><img alt="A line." src="../_images/a.png" />'
        "<figcaption><p>Caption</p></figcaption></figure>"
    )
    (tmp_path / "fig-a.png").touch()
    (tmp_path / "fig-a.csv").touch()
    page = clean_pages.with_figures(
        figure.format("a") + figure.format("b"), tmp_path, lambda file: f"../{file}"
    )
    first, second = page.split("</figure>")[:2]
    assert (
        '<picture><source media="screen and (max-width: 720px)" srcset="../fig-a.png" /><img '
        in first
    )
    assert '<a href="../fig-a.csv" download>' in first
    assert second + "</figure>" == figure.format("b")


def test_what_extensions_say_of_pages_counts_where_all_are_joined():
    handlers = {"html": {"Fold": 1, "Both": 2}, "singlehtml": {"Both": 3}}
    clean_pages._join(SimpleNamespace(registry=SimpleNamespace(translation_handlers=handlers)))
    assert handlers == {"html": {"Fold": 1, "Both": 2}, "singlehtml": {"Fold": 1, "Both": 3}}
