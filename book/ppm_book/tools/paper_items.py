"""The paper, item by item: where the book has what the paper numbers, and that it is there."""

import re
from dataclasses import dataclass
from pathlib import Path

import nbformat
import yaml

from ppm_book.tools import parameters
from ppm_book.tools.parameters import Refused
from ppm_book.tools.templates import filled

# where proofs stand, and slips
PROOFS, ERRATA = "errata_proofs", "errata"
STATES = ("in the paper's form", "corrected", "shortened", "on other data")
FENCE = re.compile(r"(`{3,}|:{3,})(?:\{([\w:-]+)\})?")
ANCHOR = re.compile(r"\(([\w-]+)\)=$|:(?:label|name): *([\w-]+)$|\$\$ \(([\w-]+)\)$")
FOLD = re.compile(r":class:.*\b(?:dropdown|toggle)\b")
# of cells: the reader opens them, or never sees them
FOLDING = {"hide-input", "hide-output", "hide-cell", "remove-output", "remove-cell"}
HEADING = re.compile(r"#+ (.*)")


@dataclass
class Place:
    """An anchor of a page: how a text refers to it, and the blocks that are open around it."""

    link: str
    blocks: list

    @property
    def folded(self):
        """Whether a reader has to open something before it shows."""
        return any(block["folded"] for block in self.blocks)


def load(root):
    """Items of ``book/paper_items.yaml``."""
    return yaml.safe_load(Path(root, "book", "paper_items.yaml").read_text("utf-8"))[
        "items"
    ]


def page(root):
    """Fill in ``book/paper_items.md``.

    Raises
    ------
    Refused
        If an item has no place in the body of a page of the course.
    """
    rows, chapters = load(root), parameters.chapters(root)
    found = {name: places(text) for name, text in _texts(root, rows).items()}
    slips = dict(
        re.findall(
            r"^\(erratum-([\w-]+)\)=\n### (E\d+)\.",
            Path(root, "book", f"{ERRATA}.md").read_text("utf-8"),
            re.M,
        )
    )
    if wrong := [*faults(rows, found, course(root), slips)]:
        raise Refused(f"book/paper_items.yaml, {'; '.join(wrong)}")
    return filled(
        root,
        "paper_items",
        rows=rows,
        found=found,
        slips=slips,
        states=STATES,
        number={name: at for at, name in enumerate(chapters, start=1)},
    )


def course(root):
    """Names of the chapters: of the notebooks that no companion has."""
    pages = (
        parameters.pages_of(part["chapters"])
        for part in parameters.contents(root)["parts"]
        if not part.get("caption", "").startswith("Companion")
    )
    return parameters.chapters_among([file for part in pages for file in part])


def faults(rows, found, course, slips):
    """What is wrong with items, in words.

    Parameters
    ----------
    rows : list of dict
        Those of :func:`load`.
    found : dict
        Page to what :func:`places` finds on it.
    course : list of str
        Names of the chapters.
    slips : container of str
        Names of the errata.
    """
    for number, row in enumerate(rows, start=1):
        told = f"item {row['item']}"
        if row["item"] != number:
            yield f"{told} stands where item {number} is expected"
        if not row.get("places"):
            yield f"{told} has no place"
        for place in row.get("places") or ():
            name, _, anchor = place.partition("#")
            if name not in course and not (name == PROOFS and "proof" in row["kind"]):
                yield f"{told}: {name} is no chapter of the course"
            elif anchor not in found[name]:
                yield f"{told}: the page {name} has no anchor {anchor!r}"
            elif found[name][anchor].folded:
                yield f"{told}: {place} is in a fold; a place is in the body of a page"
        if row["state"] not in STATES:
            yield f"{told}: the state must be one of {', '.join(STATES)}"
        for slip in row.get("errata", ()):
            if slip not in slips:
                yield f"{told}: there is no erratum {slip!r}"
        if row["state"] == "corrected" and not row.get("errata"):
            yield f"{told} is corrected, and names no erratum"


def places(text):
    """Anchors of a page's text, in MyST: name -> :class:`Place`."""
    found, blocks, heading, waiting = {}, [], "", []
    for line in map(str.strip, text.splitlines()):
        fence = FENCE.match(line)
        if line.startswith("<details"):
            blocks = [*blocks, {"mark": "<details", "folded": True, "kind": ""}]
        elif line.startswith("</details"):
            blocks = blocks[:-1]
        elif (
            fence
            and blocks
            and line == fence[1]
            and line.startswith(blocks[-1]["mark"])
        ):
            blocks = blocks[:-1]
        elif fence:
            kind = fence[2] or ""
            folded = kind in ("dropdown", "toggle")
            blocks = [*blocks, {"mark": fence[1], "folded": folded, "kind": kind}]
        elif blocks and FOLD.match(line):
            blocks[-1]["folded"] = True
        elif title := HEADING.match(line):
            heading = title[1]
        elif anchor := ANCHOR.match(line):
            target, label, equation = anchor.groups()
            if target:
                waiting.append(target)
                continue
            role = "eq" if equation else "prf:ref"
            if label and blocks and blocks[-1]["kind"] == "figure":
                role = "numref"
            link = f"{{{role}}}`{label or equation}`"
            found[label or equation] = Place(
                f"equation {link}" if equation else link, blocks
            )
        if line:
            # a target is named after the heading that it stands before, or below
            found |= {
                target: Place(f"[{heading}](#{target})", blocks) for target in waiting
            }
            waiting = []
    return found


def _texts(root, rows):
    """Text of the pages that items name: prose, and a block for each figure."""
    names = {place.partition("#")[0] for row in rows for place in row["places"] or ()}
    return {name: _text(Path(root), name) for name in names}


def _text(root, name):
    file = root / "notebooks" / f"{name}.ipynb"
    if not file.is_file():
        return (root / "book" / f"{name}.md").read_text("utf-8")
    parts = []
    for cell in nbformat.read(file, 4).cells:
        part = cell.source if cell.cell_type == "markdown" else ""
        if figure := cell.metadata.get("mystnb", {}).get("figure"):
            part = f"```{{figure}}\n:name: {figure.get('name')}\n```"
        if FOLDING & {*cell.metadata.get("tags", ())}:
            part = f"<details>\n{part}\n</details>"
        parts.append(part)
    return "\n\n".join(parts)
