"""Sphinx extension: what the theme, and those that make boxes and cells, leave undone on a page."""

import re
from html import escape, unescape
from pathlib import Path
from textwrap import shorten

from docutils import nodes

FIGURE = re.compile(r'<figure [^>]*id="([^"]+)".*?</figure>', re.S)
NARROW = r'<picture><source media="screen and (max-width: 720px)" srcset="{}" />\g<0></picture>'
# a formula, and what must not begin a line of its own behind it
FORMULA = re.compile(r'(<span class="math [^>]*>[^<]*</span>)([.,;:!?)’”]+|-\w+)')
PREDICT = "Predict before you read on."
# a file of this name is for pages with such an element
NEEDED = {
    name: rf'class="[^"]*\b{mark}\b'
    for name, mark in {"mathjax": "math", "moving": "moving", "touch": "touch"}.items()
}
LETTERS = {r"\epsilon": "ε", r"\Delta": "Δ"}
# of the book, for whoever shares a page
PICTURE = "_static/first.png"


def setup(app):
    """Register with Sphinx, after everything else that has a say on a page."""
    app.connect("config-inited", _use_templates)
    app.connect("doctree-read", _arrange)
    app.connect("html-page-context", _mend, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _use_templates(app, config):
    """Let a template beside this file stand before the theme's of the same name."""
    config.templates_path.append(str(Path(__file__).parent))


def _arrange(app, doctree):
    """Change what a page says by its form alone; notebooks that are handed out stay as they are."""
    for answer in [*doctree.findall(nodes.admonition)]:
        _fold(answer)
    for question in [*doctree.findall(nodes.paragraph)]:
        # its answer may stand further down, or be the next section
        boxed = "predict" in question.parent.get("classes", ())
        if question.astext().startswith(PREDICT) and not boxed:
            box = nodes.container(classes=["predict"])
            question.replace_self(box)
            box += question
    for items in doctree.findall(nodes.bullet_list):
        # (a), (b), (c) need no other bullets
        if all(re.match(r"\(\w\)", item.astext()) for item in items):
            items["classes"].append("lettered")
    for cell in doctree.findall(nodes.container):
        if cell.get("hide_mode") == "input":
            of_what = " of the figure" if cell.next_node(nodes.figure) else ""
            for do in ("show", "hide"):
                # in place of myst-nb's words; a chapter's own stay
                if "code cell" in cell.get(f"prompt_{do}", ""):
                    cell[f"prompt_{do}"] = f"{do.capitalize()} the code{of_what}"


def _fold(answer):
    """Put a prediction and the answer below it into one box, which opens without a script."""
    title, *text = answer.children
    if "dropdown" not in answer["classes"] or title.astext() != "Answer":
        return
    parent, place = answer.parent, answer.parent.index(answer)
    # a picture or code may stand between both
    above = parent[place - 1] if place else answer
    question = [above] if above.astext().startswith(PREDICT) else []
    begin = f'<details class="answer"><summary>{escape(title.astext())}</summary>'
    box = [
        *question,
        nodes.raw("", begin, format="html"),
        *text,
        nodes.raw("", "</details>", format="html"),
    ]
    first = place - len(question)
    parent[first : place + 1] = [nodes.container("", *box, classes=["predict"])]


def _mend(app, page, template, context, doctree):
    def with_narrow(match):
        figure, name = match.group(0, 1)
        if Path(app.srcdir, "book/_static/figures", f"{name}.png").is_file():
            address = context["pathto"](f"_static/figures/{name}.png", 1)
            figure = re.sub("<img [^>]*>", NARROW.format(address), figure, count=1)
        return figure

    body = FIGURE.sub(with_narrow, context.get("body", ""))
    context["body"] = FORMULA.sub(r'<span class="together">\1\2</span>', body)
    # scripts and styles of what the page does not have; what runs cells elsewhere fails on every page
    needless = ["thebe"]
    needless += [n for n, mark in NEEDED.items() if not re.search(mark, body)]
    for kind in ("script_files", "css_files"):
        context[kind] = [
            file
            for file in context.get(kind, ())
            if not re.search(
                "|".join(needless), f"{file.filename} {file.attributes}".lower()
            )
        ]
    context |= _short(app, page)
    context["metatags"] = context.get("metatags", "") + "".join(
        f'<meta {"name" if name == "description" else "property"}="{name}" '
        f'content="{escape(said)}" />\n'
        for name, said in _about(app, context, doctree).items()
    )


def _short(app, page):
    """Titles of the pages before and after this one, where the table of contents has shorter ones."""
    titles, contents = {}, app.env.external_site_map
    _, *beside = app.builder.relations.get(page, (None, None, None))
    for way, name in zip(("prev", "next"), beside, strict=True):
        if name and (title := contents[name].title):
            numbers = app.env.toc_secnumbers.get(name, {}).get("", ())
            number = "".join(f"{n}." for n in numbers)
            titles[f"{way}_title"] = f"{number} {title}".strip()
    return titles


def _about(app, context, doctree):
    """What a page says to those who search or share it: its title and first words."""
    about = {
        "og:title": unescape(re.sub("<[^>]*>", "", context.get("title", ""))),
        "og:type": "article",
        "og:site_name": app.config.html_title,
    }
    for paragraph in doctree.findall(nodes.paragraph) if doctree else ():
        words = paragraph.astext()
        for formula, letter in LETTERS.items():
            words = words.replace(formula, letter)
        # of a few words is what leads to a list; a formula cannot be said
        if isinstance(paragraph.parent, nodes.section) and re.fullmatch(
            r"[^\\{}_]{60,}", words
        ):
            words = shorten(words, 200, placeholder=" …")
            about |= {"description": words, "og:description": words}
            break
    if address := app.config.html_baseurl:
        about["og:image"] = f"{address.rstrip('/')}/{PICTURE}"
    return about
