"""A sentence that says again what a claim holds has a mark of its own.

A claim is mostly said twice: in a chapter's body and in its summary or a caption, and again on the
pages in front. Two sentences say the same if they share enough rare words.
"""

import itertools
import math
import re
from collections import Counter

import nbformat
import pytest
from conftest import ROOT

from ppm_book.chapters import sentences
from ppm_book.tools import parameters

# two sentences at least as alike as this say the same
ALIKE = 0.43
# words of so much weight in common are enough to judge by; of less, two short sentences may be
# alike by chance
ENOUGH = 12.0
# a reference: its words, if it has some, and not its label
ROLE = re.compile(r"\{(?:term\}`([^`<]*)|[\w:]+\}`(?:([^`<]*)<)?)[^`]*`")
# a heading, with an anchor or without, and a formula
NO_SENTENCE = re.compile(r"\s*(?:\([\w-]+\)=\s+)?(?:#|\$\$)")
# a few words in bold at the begin of a paragraph are its title
TITLE = re.compile(r"\*\*(?:[^\s*]+\s*){1,6}$")
CODE = re.compile(r"^( *)(`{3,})(?:python|bash|console)\n.*?^\1\2$", re.M | re.S)

# first words of what needs no mark, by its page: it is the same in every run
EXCEPTIONS = {
    "book/intro.md": {
        "At an ε of 1 nobody then finds H": "a limit that ε alone gives",
    },
    "book/ledger.md": {
        "Look at Unweighted first.": "advice",
    },
    "ce_application": {
        "For the 90th percentile EMweighted is surely closer at": "only its numbers are the run's",
    },
    "poisson_contraction": {
        "The paper's argument:": "the paper's words",
    },
    "privacy_audit": {
        "This is about one database, one record": "what a statement says",
        "**Weights held fixed**, as": "a definition",
    },
    "strict_release": {
        "They ask for the mean income of each group": "what users need",
        "Others ask how the *shape* changed": "what users need",
        "Then it is 0:": "advice",
        "The sampling error of a mean falls": "a law",
        "**for levels and how they changed**": "advice",
    },
    "theory": {
        "A record that leaves takes its own term": "holds for all weights",
    },
    "what_is_weaker": {
        "| **A supremum** over": "only its numbers are the run's",
        "With the seed and twenty tables": "only its numbers are the run's",
        "When the record with the largest bound leaves": "a fact of min–max weights",
        "Beside the 40 a twelve has": "only its number is the run's",
    },
    "what_it_means": {
        "In {doc}`the first chapter <eight_households>` we": "only its number is the run's",
    },
    "your_own_model": {
        "At 61 to 79": "only its numbers are the run's",
    },
    "application_settings": {
        "The paper's 78.7 is on that of the log.": "the paper's",
    },
}
PAGES = ["book/intro.md", "README.md", "book/ledger.md"]


def read(page):
    """Sentences of a chapter, by its name, or of a page, by its file, with the names of their marks."""
    if page not in PAGES:
        return [*sentences_of(nbformat.read(parameters.source(page), 4))]
    text = CODE.sub("", (ROOT / page).read_text("utf-8"))
    cell = nbformat.v4.new_markdown_cell(text)
    return [*sentences_of(nbformat.v4.new_notebook(cells=[cell]))]


@pytest.fixture(scope="module")
def chapters():
    return {name: read(name) for name in parameters.chapters()}


@pytest.fixture(scope="module")
def alike(chapters):
    return Likeness([words_of(one) for said in chapters.values() for one, _ in said])


def unmarked(page, said, marked, alike):
    """What a page says again without a mark, as lines to read."""
    again = said_again(said, marked, alike)
    known = EXCEPTIONS.get(page, {})
    for words in known:
        assert any(one.startswith(words) for one, _ in said), f"it is gone: {words}"
    return [
        f"{one}\n  is said with the mark {claim}:\n{other}\n"
        for one, other, claim, _ in again
        if not one.startswith((*known,))
    ]


@pytest.mark.parametrize("name", parameters.chapters())
def test_what_a_chapter_says_again_has_a_mark_again(chapters, alike, name):
    marked = [one for one in chapters[name] if one[1]]
    found = unmarked(name, chapters[name], marked, alike)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_says_of_a_chapter_has_a_mark(chapters, alike, page):
    marked = [one for said in chapters.values() for one in said if one[1]]
    found = unmarked(page, read(page), marked, alike)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("page", ["book/intro.md", "book/ledger.md"])
def test_marks_of_a_page_name_claims_of_chapters_that_say_the_same(
    chapters, alike, page
):
    marked = [(words, mark) for words, marks in read(page) for mark in marks]
    assert marked
    for words, mark in marked:
        chapter, _, claim = mark.partition("::")
        (own,) = (one for one, names in chapters[chapter] if claim in names)
        # one half of a sentence may be a sentence of the chapter
        assert alike(words_of(words), words_of(own)) > ALIKE / 3, (words, own)


SMALL = """
# Bounds

The bounds of F and G rose<!--claim: rose-->. H fell to {glue:text}`fell` nats.
Why did the threshold remove the moderately unusual records?

| rule | what it does |
|---|---|
| threshold | removes the moderately unusual records<!--claim: removes--> |

## Summary

- __SUMMARY__
"""


def small(summary):
    """Sentences of a small chapter with this summary, and their likeness with it."""
    cells = [nbformat.v4.new_markdown_cell(SMALL.replace("__SUMMARY__", summary))]
    said = [*sentences_of(nbformat.v4.new_notebook(cells=cells))]
    # a book of other words around it
    others = [{f"other{i}", "the", "of"} for i in range(100)]
    alike = Likeness(others + [words_of(one) for one, _ in said])
    marked = [one for one in said if one[1]]
    return [(one, claim) for one, _, claim, _ in said_again(said, marked, alike)]


@pytest.mark.parametrize(
    ("summary", "claim"),
    [
        ("The threshold removes the *moderately* unusual records.", "removes"),
        ("So moderately unusual records are removed, by the threshold.", "removes"),
        ("The bounds of F and G *rose* in both fits.", "rose"),
        ("F and G: their bounds {term}`rose <bound>`.", "rose"),
    ],
)
def test_what_is_said_again_in_other_words_is_found_and_with_a_mark_is_not(
    summary, claim
):
    assert small(summary) == [(summary, claim)]
    assert not small(f"{summary[:-1]}<!--claim: again-->.")


@pytest.mark.parametrize(
    "summary",
    [
        "The number of draws decides how large a bound is.",
        "Which moderately unusual records does the threshold remove?",
        "Records are unusual.",
    ],
)
def test_what_is_not_said_again_and_what_is_asked_are_not_found(summary):
    assert not small(summary)


def sentences_of(notebook):
    """Each sentence of a notebook's text, and the names in its marks."""
    marks = sentences.take_marks(notebook)
    for place, (owner, key) in enumerate(sentences.texts_of(notebook)):
        text = owner[key]
        # a mark belongs to the word before it
        here = [
            (len(text[:end].rstrip(" \t*_”)")) - 1, name)
            for at, end, name in marks
            if at == place
        ]
        for begin, end in spans(text):
            names = [name for word, name in here if begin <= word < end]
            yield " ".join(text[begin:end].split()), names


def spans(text):
    """Begin and end of each sentence of a text, and of each row of its tables."""
    for begin, end in between(sentences.EDGE, text):
        part = text[begin:end]
        if NO_SENTENCE.match(part):
            continue
        row = re.compile(r"\A|\n|\Z")
        border = row if part.lstrip().startswith("|") else sentences.END
        for first, last in between(border, part):
            yield begin + first, begin + last


def between(border, text):
    """Begin and end of what lies between two borders of a text, and is not blank."""
    places = sorted({found.span() for found in border.finditer(text)})
    for (_, begin), (end, _) in itertools.pairwise(places):
        if text[begin:end].strip():
            yield begin, end


def words_of(sentence):
    """The stems of a sentence's words, its numbers, and names of the numbers that a cell gives."""
    sentence = sentences.NUMBER.sub(
        # "page::name:s" on a page, "name" in a chapter
        lambda role: f" number{re.sub(r'^.*::|:s$|\W', '', role[1])} ",
        sentence,
    )
    sentence = ROLE.sub(lambda role: f" {role[1] or role[2] or ''} ", sentence)
    sentence = re.sub(r"\]\([^)]*\)|’s\b|'s\b", " ", sentence)
    sentence = sentence.replace("$\\", "").lower()
    found = re.findall(r"[^\W\d_]+|\d+(?:[.,]\d+)*", sentence)
    return {re.sub(r"(?<=\w{3})(?:ing|ed|es|ly|s|e)$", "", word) for word in found}


class Likeness:
    """How alike two sentences are: by the words they share, each as heavy as it is rare."""

    def __init__(self, known):
        self.count, self.known = Counter(itertools.chain(*known)), len(known)

    def weight(self, words):
        return [math.log(self.known / max(self.count[word], 1)) for word in words]

    def __call__(self, one, other):
        """Cosine of two sets of words, less if they share little: from 0 to 1."""
        shared = self.weight(one & other)
        sizes = [math.hypot(*self.weight(words)) for words in (one, other)]
        if not all(sizes):
            return 0.0
        cosine = sum(weight**2 for weight in shared) / math.prod(sizes)
        return cosine * min(1.0, sum(shared) / ENOUGH)


def said_again(said, marked, alike):
    """What says again, without a mark, what a marked sentence says: both, and how alike they are.

    ``said`` and ``marked`` are pairs of a sentence and the names in its marks.
    """
    claims = [(sentence, words_of(sentence), names) for sentence, names in marked]
    for sentence, names in said:
        words = words_of(sentence)
        if not (names or sentence.endswith("?") or TITLE.match(sentence)):
            twins = (
                (alike(words, others), other, claim)
                for other, others, (claim, *_) in claims
            )
            score, other, claim = max(twins, default=(0.0, "", ""))
            if score >= ALIKE:
                yield sentence, other, claim, score
