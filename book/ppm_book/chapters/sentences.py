"""The sentences of a chapter that claim something, and the numbers that its text asks for."""

import itertools
import re

# stands behind the words that a claim holds; at the begin of a line Jupyter would show what follows
# as it is
CLAIM_MARK = re.compile(r"(?<=\S)[ \t]*<!--\s*claim\b:?\s*(.*?)\s*-->", re.S)
# where a paragraph or an entry of a list begins or ends, and where a sentence ends
EDGE = re.compile(
    r"\A|\n\s*\n|^ *(?:[-*]|\d+\.) |^(?::::|```).*(?:\n:[\w-]+:.*)*\n?|\Z", re.M
)
END = re.compile(r"\A|(?<=[.!?])[*_”)]*\s+|\Z")
# a number that the text has from a cell
NUMBER = re.compile(r"\{glue:text\}`([^`]+)`")


def texts_of(notebook):
    """Prose and captions of a chapter, in reading order: what holds each, and its key there."""
    for cell in notebook.cells:
        figure = cell.metadata.get("mystnb", {}).get("figure", {})
        if cell.cell_type == "markdown":
            yield cell, "source"
        if "caption" in figure:
            yield figure, "caption"


def take_marks(notebook):
    """Take the marks of claims out of a chapter's text: place of the text, of the mark, and name."""
    marks = []
    for place, (owner, key) in enumerate(texts_of(notebook)):
        # names of claims stand between the pieces
        pieces = CLAIM_MARK.split(owner[key])
        ends = itertools.accumulate(map(len, pieces[::2]))
        marks += [(place, *mark) for mark in zip(ends, pieces[1::2], strict=False)]
        owner[key] = "".join(pieces[::2])
    return marks


def asked_numbers(notebook):
    """Names of the numbers that a chapter's text has from a cell."""
    return {
        number
        for owner, key in texts_of(notebook)
        for number in NUMBER.findall(owner[key])
    }


def of_claims(file):
    """The sentence of each claim of a notebook's file, by the claim's name."""
    import nbformat

    notebook = nbformat.read(file, 4)
    marks, texts = take_marks(notebook), [*texts_of(notebook)]
    return {
        claim: sentence(owner[key], end)
        for place, end, claim in marks
        for owner, key in [texts[place]]
    }


def sentence(text, end):
    """The sentence that a mark stands in or behind, or the table's cell with the head of its row."""
    start = len(text[:end].rstrip(" \t*_”)")) - 1
    line = text.rfind("\n", 0, start) + 1
    if text.startswith("|", line):
        cells = text[line:].partition("\n")[0].strip("|").split("|")
        place = text.count("|", line, start) - 1
        return ": ".join(
            dict.fromkeys(cell.strip() for cell in (cells[0], cells[place]))
        )
    for border in EDGE, END:
        # what lies between the last border before the place and the next one behind it
        begin = max(each.end() for each in border.finditer(text) if each.end() <= start)
        end = min(
            each.start() for each in border.finditer(text) if each.start() > start
        )
        text, start = text[begin:end], start - begin
    return " ".join(text.split())
