"""Plain editions of notebooks for Jupyter, which knows nothing of MyST or of a book's references.

Definitions, theorems and boxes become quoted paragraphs, captions become text, and references
become words. What a cell computes stays as it is.
"""

import itertools
import json
import re
from pathlib import Path

import nbformat
from pybtex.database import parse_file
from pybtex.plugin import find_plugin
from pybtex.richtext import Text

from ppm_book.chapters.sentences import CLAIM_MARK, of_claims
from ppm_book.tools import exercises

# a directive: its fence, kind, argument, options and body
BLOCK = re.compile(
    r"^(`{3,}|:{3,})\{([\w:]+)\} *(.*)\n((?::[\w-]+:.*\n)*)((?s:.*?))\n?\1$", re.M
)
# a role, {kind}`label` or {kind}`words <label>`
ROLE = re.compile(r"\{([\w:]+)\}`(?:([^`<]*?)\s*<)?([^`>]+)>?`")
# whose a statement is, by its class
WHOSE = {"paper": "the paper’s", "ours": "ours", "field": "from the literature"}
# the label of a formula
TAG = re.compile(r"\n\$\$ \((.+)\)")
# where a sentence begins
START = re.compile(r"(?:^|[.!?]\)?\s+|\n\s*\n\s*|\n *(?:[-*]|\d+\.) +|\*\* )$")
NOTE = """\
*A chapter of “{}”, in its plain edition for Jupyter. It needs the library `ppm` with its extras:
`python -m pip install "path/to/the/repository[jupyter]"`. Near the top it has parameters, each with
its type and a comment: change their values, then choose Run → Run All Cells.*"""
NUMBERS = "*The numbers in the text are those of the book’s own run.*"
NO_NUMBERS = """\
*This file was made without a built book, so a dash, –, stands where the text has a number. The last
cell prints those of your run.*"""
LAST = """\
## What your run contradicts

The text above describes the book’s own run. The next cell, the last one, prints its sentences that
your run contradicts, and the numbers that your run has for the text."""


class Words:
    """Words for the references of the book's notebooks."""

    def __init__(self, root):
        self.root, self.works = (
            Path(root),
            parse_file(str(Path(root, "book", "references.bib"))),
        )
        # label, or name of a file -> name of the file, and words
        self.names, self.titles = {}, {}
        for files in (
            f"{exercises.FOLDER}/*.ipynb",
            "book/**/*.md",
            "notebooks/*.ipynb",
        ):
            for file in self.root.glob(files):
                words = _labels(_text(file))
                kind = "chapter" if file.suffix == ".ipynb" else "page"
                self.titles[file.stem] = words.pop("")
                words[file.stem] = f"the {kind} “{self.titles[file.stem]}”"
                self.names |= {
                    label: (file.stem, told) for label, told in words.items()
                }

    def pages(self, name, more=""):
        """Names of the pages that a chapter, and more text, refer to by more than their titles."""
        found = set()
        text = _text(self.root / "notebooks" / f"{name}.ipynb")
        for role, _, label in ROLE.findall(f"{text}\n{more}"):
            if role.startswith("cite"):
                found.add("bibliography")
            elif role == "term":
                found.add("notation")
            elif role in ("eq", "numref", "prf:ref", "ref") and label in self.names:
                found.add(self.names[label][0])
        return found

    def work(self, key):
        """Who wrote a work, and when."""
        entry = self.works.entries[key]
        names = [
            " ".join(p.prelast_names + p.last_names) for p in entry.persons["author"]
        ]
        names = f"{names[0]} et al." if len(names) > 2 else " and ".join(names)
        return str(Text.from_latex(names)), entry.fields["year"]

    def word(self, match, name, numbers):
        """What a role says in the notebook of this name."""
        role, words, label = match.groups()
        if role.startswith("cite"):
            works = [self.work(key.strip()) for key in label.split(",")]
            if role == "cite:t":
                return ", ".join(f"{names} ({year})" for names, year in works)
            return f"({'; '.join(map(' '.join, works))})"
        if role == "term":
            return words or label
        if role == "glue:text":
            return numbers.get(label, "–")
        label = Path(label).name
        # what is not in the book is a name of the library
        file, found = self.names.get(label, (name, f"`{label}`"))
        if file not in (name, label):
            found += f" of {self.names[file][1]}"
        if words:
            return f"{words} [{found}]"
        begins = START.search(match.string[: match.start()])
        return found[0].upper() + found[1:] if begins else found

    def say(self, text, name, numbers):
        """Text of the notebook of this name, said plainly."""
        text = re.sub(r"^\(\S+\)=\n", "", CLAIM_MARK.sub("", text), flags=re.M)
        text = TAG.sub(lambda tag: f" \\tag{{{self.names[tag[1]][1][1:-1]}}}\n$$", text)
        text = re.sub(
            r"\[([^\]]+)\]\((?!https?:)[^)]*\)", r"\1", BLOCK.sub(_quoted, text)
        )
        return ROLE.sub(lambda role: self.word(role, name, numbers), text)

    def plain(self, notebook, name, numbers=None):
        """Say the text of a notebook plainly, in place, with the numbers that a run gave."""
        cells, numbers = [], numbers or {}
        for cell in notebook.cells:
            cells.append(cell)
            if cell.cell_type == "markdown":
                cell.source = self.say(cell.source, name, numbers)
            if figure := cell.metadata.pop("mystnb", {}).get("figure"):
                caption = f"*{self.names[figure['name']][1]}. {figure['caption']}*"
                caption = self.say(caption, name, numbers)
                cells.append(
                    nbformat.v4.new_markdown_cell(caption, id=f"{cell.id}-caption")
                )
        notebook.cells = cells

    def chapter(self, name, executed=None):
        """A chapter's notebook in its plain edition, with the numbers of an executed one.

        Its last cell says which sentences a run of it contradicts.
        """
        file = self.root / "notebooks" / f"{name}.ipynb"
        notebook = nbformat.read(file, 4)
        last = [c for c in notebook.cells if "claims" in c.metadata.get("tags", ())]
        notebook.cells = [cell for cell in notebook.cells if cell not in last]
        cited = re.findall(r"\{cite:.\}`([^`]+)`", _text(file))
        numbers = numbers_of(executed) if executed else {}
        self.plain(notebook, name, numbers)
        for cell in notebook.cells:
            if "remove-input" in cell.metadata.get("tags", ()):
                cell.metadata["jupyter"] = {"source_hidden": True}
        note, ends = NOTE.format(exercises.settings(self.root)["title"]), {}
        if last:
            note += f"\n\n{NUMBERS if executed else NO_NUMBERS}"
        if name in exercises.chapters(self.root):
            ends["Exercises"] = (
                f"The exercises of this chapter are the notebook "
                f"`exercises/{name}.ipynb` of the student edition. The chapter's page offers "
                "the same notebook."
            )
        if cited:
            keys = dict.fromkeys(re.split(r", *", ",".join(cited)))
            style = find_plugin("pybtex.style.formatting", "plain")()
            works = style.format_bibliography(self.works, list(keys))
            markdown = find_plugin("pybtex.backends", "markdown")()
            listed = [
                " ".join(f"- {each.text.render(markdown)}".split()) for each in works
            ]
            ends["Literature"] = "\n".join(listed)
        notebook.cells.insert(
            1, nbformat.v4.new_markdown_cell(note, id="plain-edition")
        )
        notebook.cells += [
            nbformat.v4.new_markdown_cell(f"## {title}\n\n{text}", id=title.lower())
            for title, text in ends.items()
        ]
        if last:
            told = {
                claim: " ".join(self.say(words, name, numbers).split())
                for claim, words in of_claims(file).items()
            }
            # as this edition has them
            told = json.dumps(told, indent=4, ensure_ascii=False)
            source = last[0].source.replace("globals()", f"globals(), sentences={told}")
            folded = {"jupyter": {"source_hidden": True}}
            notebook.cells += [
                nbformat.v4.new_markdown_cell(LAST, id="claims-text"),
                nbformat.v4.new_code_cell(source, id="claims", metadata=folded),
            ]
        return notebook


def _text(file):
    """All text of a page or a notebook, with figures and exercises of cells as MyST has them."""
    if file.suffix == ".md":
        return file.read_text("utf-8")
    parts = []
    for cell in nbformat.read(file, 4).cells:
        if "exercise" in cell.metadata.get("tags", ()):
            parts.append(f"({cell.id})=")
        parts.append(f"{cell.source}\n" if cell.cell_type == "markdown" else "")
        if figure := cell.metadata.get("mystnb", {}).get("figure"):
            parts.append(
                f"```{{figure}}\n:name: {figure['name']}\n{figure['caption']}\n```\n"
            )
    return "\n".join(parts)


def numbers_of(notebook):
    """Numbers that cells gave to the text, by `glue`, as text."""
    outputs = [one for cell in notebook.cells for one in cell.get("outputs", ())]
    glued = {
        one.get("metadata", {}).get("scrapbook", {}).get("name"): one for one in outputs
    }
    return {
        name: one["data"]["application/papermill.record/text/plain"].strip("'")
        for name, one in glued.items()
        if name
    }


def _labels(text):
    """Words for every label in a text, and for "" its title."""
    figures, equations = itertools.count(1), itertools.count(1)
    title = re.search(r"^# (.*)", text, re.M)
    words = {"": title[1] if title else ""}
    for label, heading in re.findall(r"^\((\S+)\)=\n+(?:#+ ([^★\n]*))?", text, re.M):
        kind = "exercise" if label.startswith("ex-") else "section"
        words[label] = f"the {kind} “{heading.strip()}”" if heading else "the passage"
    for _, kind, argument, options, _ in BLOCK.findall(text):
        if label := re.search(r":(?:label|name): *(\S+)", options):
            told = f"the {kind.removeprefix('prf:')} “{argument}”".removesuffix(" “”")
            words[label[1]] = f"Figure {next(figures)}" if kind == "figure" else told
    for label in TAG.findall(text):
        words[label] = f"({next(equations)})"
    return words


def _quoted(block):
    """A directive as a quoted paragraph."""
    _, kind, words, options, body = block.groups()
    kind = kind.removeprefix("prf:").capitalize()
    if kind != "Admonition":
        whose = re.search(r":class: (paper|ours|field)$", options, re.M)
        told = [words, *([WHOSE[whose[1]]] if whose else [])]
        words = f"{kind} ({'; '.join(filter(None, told))}).".replace(" ()", "")
    text = f"**{words}**\n\n{body.strip()}{' ∎' if kind == 'Proof' else ''}"
    # Jupyter takes formulas out before it reads Markdown: a quote's mark must not stand in them
    text = re.sub(
        r"\$\$.+?\$\$|\$[^$]+\$",
        lambda formula: " ".join(formula[0].split()),
        text,
        flags=re.S,
    )
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))
