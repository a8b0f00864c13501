"""Plain editions of notebooks for Jupyter, which knows nothing of MyST or of a book's references.

Definitions, theorems and boxes become quoted paragraphs, captions become text, and references
become words. What a cell computes stays as it is.
"""

import re
from pathlib import Path

import nbformat
from pybtex.database import parse_file
from pybtex.plugin import find_plugin
from pybtex.richtext import Text

from ppm_book import exercises

OPENING = re.compile(r"^ *(`{3,}|:{3,})\{([\w:-]+)\} *(.*)$")
MATHS = re.compile(r"\$\$.+?\$\$|\$[^$]+\$", re.S)
ROLE = re.compile(r"\{([\w:-]+)\}`([^`]+)`")
# where a sentence begins
START = re.compile(r"(?:^|[.!?]\)?\s+|\n\s*\n\s*|\n *(?:[-*]|\d+\.) +|\*\* )$")
NOTE = """\
*A chapter of “{}”, in its plain edition for Jupyter. It needs the library `ppm` with its extras:
`python -m pip install "path/to/the/repository[jupyter]"`. Change values in the first cell of code,
then choose Run → Run All Cells.*"""


class Words:
    """Words for the references of the book's notebooks."""

    def __init__(self, root):
        self.root, self.works = Path(root), parse_file(str(Path(root, "book", "references.bib")))
        self.titles, self.labels = {}, {}
        files = [*self.root.glob("notebooks/*.ipynb"), *self.root.glob("book/**/*.md"),
                 *self.root.glob(f"{exercises.FOLDER}/*.ipynb")]
        for file in files:
            self._learn(file)

    def _learn(self, file):
        name, notebook = file.stem, file.suffix == ".ipynb"
        cells = nbformat.read(file, 4).cells if notebook else ()
        text = "\n\n".join(c.source for c in cells) if notebook else file.read_text("utf-8")
        heading = re.search(r"^# (.*)", text, re.M)
        if exercises.FOLDER in file.as_posix():
            for cell in cells:
                if "exercise" in cell.metadata.get("tags", ()):
                    told = re.match(r"## ([^★\n]+)", cell.source)[1].strip()
                    self.labels[cell.id] = name, f"the exercise “{told}”"
        elif heading:
            kind = "chapter" if notebook else "page"
            self.titles[name] = f"the {kind} “{heading[1]}”"
        for kind, told, label in re.findall(
            r"\{prf:(\w+)\} *(.*)\n(?::\w+:.*\n)*?:label: *(\S+)", text
        ):
            self.labels[label] = name, f"the {kind} “{told}”" if told else f"the {kind}"
        for label, told in re.findall(r"^\((\S+)\)=\n+(?:#+ (.*))?", text, re.M):
            self.labels[label] = name, f"the section “{told}”" if told else "the passage"
        for formula, label in re.findall(r"\$\$\n([^$]*)\n\$\$ \((.+)\)", text):
            self.labels[label] = name, f"${formula}$"
        for label in re.findall(r"^:name: *(fig-\S+)", text, re.M):
            self.labels[label] = name, "a figure"
        for cell in cells:
            if label := cell.metadata.get("mystnb", {}).get("figure", {}).get("name"):
                self.labels[label] = name, "a figure"

    def plain(self, notebook, name):
        """Say a notebook's text plainly, in place; return the keys of the works it cites."""
        numbers, cited = {}, {}
        figures = (c.metadata.get("mystnb", {}).get("figure") for c in notebook.cells)
        for number, figure in enumerate(filter(None, figures), start=1):
            numbers[figure.get("name")] = f"Figure {number}"
        text = "\n\n".join(cell.source for cell in notebook.cells)
        for number, label in enumerate(re.findall(r"^\$\$ \((.+)\)", text, re.M), start=1):
            numbers[label] = f"({number})"

        def word(match):
            role, (told, label) = match[1], re.fullmatch(
                r"(?:(.*?)\s*<)?(.*?)>?", match[2], re.S
            ).groups()
            if role.startswith("cite"):
                cited.update(dict.fromkeys(keys := re.split(r", *", label)))
                works = [self._work(key, role == "cite:t") for key in keys]
                return ", ".join(works) if role == "cite:t" else f"({'; '.join(works)})"
            before, after = match.string[:match.start()], match.string[match.end():]
            alone = before.endswith("(") and after.startswith(")") and role != "term"
            if role == "term" or told and not alone:
                return told or label
            if role not in ("doc", "ref", "numref", "prf:ref", "eq"):
                # a name of the library
                return f"`{label}`"
            if role == "doc":
                found = self.titles.get(Path(label).name, f"“{label}”")
            elif label in numbers:
                found = numbers[label]
            else:
                place, found = self.labels.get(label, (name, f"“{label}”"))
                if place != name and role in ("ref", "numref", "prf:ref") and place in self.titles:
                    # exercises stand at the end of their chapter
                    found += f" of {self.titles[place]}" * ("exercise" not in found)
            if told:
                return f"{told}: {found}"
            return found[0].upper() + found[1:] if START.search(before) else found

        def tagged(match):
            return f" \\tag{{{numbers[match[1]][1:-1]}}}\n$$"

        cells = []
        for cell in notebook.cells:
            figure = cell.metadata.pop("mystnb", {}).get("figure")
            if cell.cell_type == "markdown":
                source = re.sub(r"^\(\S+\)=\n", "", cell.source, flags=re.M)
                source = re.sub(r"\n\$\$ \((.+)\)", tagged, source)
                source = "\n".join(_blocks(source.split("\n")))
                source = re.sub(r"\[([^\]]+)\]\((?!https?:)[^)]*\)", r"\1", source)
                cell.source = ROLE.sub(word, source)
            cells.append(cell)
            if figure:
                told = f"*{numbers[figure['name']]}. {ROLE.sub(word, figure['caption'])}*"
                cells.append(nbformat.v4.new_markdown_cell(told, id=f"{cell.id}-caption"))
        notebook.cells = cells
        return list(cited)

    def _work(self, key, in_text):
        entry = self.works.entries[key]
        names = [" ".join(p.prelast_names + p.last_names) for p in entry.persons["author"]]
        names = f"{names[0]} et al." if len(names) > 2 else " and ".join(names)
        names, year = str(Text.from_latex(names)), entry.fields["year"]
        return f"{names} ({year})" if in_text else f"{names} {year}"

    def literature(self, keys):
        """Markdown of a list of works."""
        style = find_plugin("pybtex.style.formatting", "plain")()
        markdown = find_plugin("pybtex.backends", "markdown")()
        works = style.format_bibliography(self.works, keys)
        return "\n".join(f"- {each.text.render(markdown)}".replace("\n", " ") for each in works)

    def chapter(self, name):
        """A chapter's notebook in its plain edition: its parameters first, and no outputs."""
        notebook = nbformat.read(self.root / "notebooks" / f"{name}.ipynb", 4)
        cited = self.plain(notebook, name)
        for cell in notebook.cells:
            tags = cell.metadata.get("tags", [])
            cell.metadata = nbformat.NotebookNode(tags=tags) if tags else nbformat.NotebookNode()
            if "remove-input" in tags:
                cell.metadata["jupyter"] = {"source_hidden": True}
        cells = notebook.cells
        place = ["parameters" in c.metadata.get("tags", ()) for c in cells].index(True)
        first = cells[place - 1:place + 1]
        if first[0].cell_type != "markdown" or first[0].source.startswith("#"):
            del first[0]
        title = re.search(r"^title: (.*)$", (self.root / "_config.yml").read_text("utf-8"), re.M)[1]
        note = nbformat.v4.new_markdown_cell(NOTE.format(title), id="plain-edition")
        notebook.cells = [cells[0], note, *first, *(c for c in cells[1:] if c not in first)]
        ends = []
        if name in exercises.chapters(self.root):
            ends.append(f"## Exercises\n\nThe exercises of this chapter are the notebook "
                        f"`exercises/{name}.ipynb` of the student edition.")
        if cited:
            ends.append(f"## Literature\n\n{self.literature(cited)}")
        for text in ends:
            notebook.cells.append(nbformat.v4.new_markdown_cell(text, id=text[3:13].lower()))
        return notebook


def _blocks(lines):
    """Lines of Markdown in which MyST's blocks are quoted paragraphs."""
    lines = list(lines)
    while lines:
        line = lines.pop(0)
        if not (found := OPENING.match(line)):
            yield line
            continue
        end = [each.strip() for each in lines].index(found[1])
        body, lines = lines[:end], lines[end + 1:]
        while body and re.match(r" *:[\w-]+:", body[0]):
            body.pop(0)
        yield from _block(found[2], found[3], "\n".join(_blocks(body)).strip())


def _block(kind, told, body):
    if kind == "math":
        return ["$$", *body.split("\n"), "$$"]
    head = kind.rpartition(":")[2].capitalize()
    if kind.startswith("prf:"):
        told = f"{head} ({told})." if told else f"{head}."
        body += " ∎" * (kind == "prf:proof")
    elif kind != "admonition":
        told, body = f"{head}.", f"{told}\n{body}".strip()
    apart = "\n\n" if kind == "admonition" or re.match(r"[-*$|`>]|\d\.", body) else " "
    # Jupyter takes formulas out before it reads Markdown: a quote's mark must not stand in them
    text = MATHS.sub(lambda formula: " ".join(formula[0].split()), f"**{told}**{apart}{body}")
    return [f"> {line}".rstrip() for line in text.split("\n")]
