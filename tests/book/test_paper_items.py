"""Every item of the paper has a place in the body of a chapter, and a build refuses one without."""

import copy
import re

import nbformat
import pytest
from conftest import ROOT

from ppm_book.tools import paper_items
from ppm_book.tools.parameters import Refused

PROSE = """# Title

(open-target)=
## A heading

:::{admonition} Answer
:class: note dropdown

(folded-target)=
A sentence.

```{prf:lemma} L
:label: lemma-folded
```
:::

(told-target)=
A sentence.

::::{admonition} Open
:class: note

:::{dropdown} More
(nested-target)=
A sentence.
:::

(open-in-box)=
A sentence.
::::

```{prf:theorem} Two
:label: thm-two
:class: paper

$$
a
$$ (eq-two)
```

<details>
<summary>More</summary>

(html-target)=
A sentence.
</details>

```python
(not_a_target) = 1
```
"""
WANTED = {
    "open-target": ("[A heading](#open-target)", False),
    "folded-target": ("[A heading](#folded-target)", True),
    "lemma-folded": ("{prf:ref}`lemma-folded`", True),
    "told-target": ("[A heading](#told-target)", False),
    "nested-target": ("[A heading](#nested-target)", True),
    "open-in-box": ("[A heading](#open-in-box)", False),
    "thm-two": ("{prf:ref}`thm-two`", False),
    "eq-two": ("equation {eq}`eq-two`", False),
    "html-target": ("[A heading](#html-target)", True),
    "fig-open": ("{numref}`fig-open`", False),
    "fig-folded": ("{numref}`fig-folded`", True),
    "hidden-target": ("[A heading](#hidden-target)", True),
}


@pytest.fixture
def book(tmp_path):
    """A book of one chapter, with an item whose place is sound."""

    def figure(name, tags=()):
        cell = nbformat.v4.new_code_cell("1")
        cell.metadata["tags"] = [*tags]
        cell.metadata["mystnb"] = {"figure": {"name": name, "caption": "It."}}
        return cell

    hidden = nbformat.v4.new_markdown_cell("(hidden-target)=\nA sentence.")
    hidden.metadata["tags"] = ["hide-cell"]
    cells = [
        nbformat.v4.new_markdown_cell(PROSE),
        figure("fig-open"),
        figure("fig-folded", ["hide-input"]),
        hidden,
    ]
    for folder in ("notebooks", "book"):
        (tmp_path / folder).mkdir()
    for name in ("one", "extra"):
        nbformat.write(
            nbformat.v4.new_notebook(cells=cells), tmp_path / f"notebooks/{name}.ipynb"
        )
    files = {
        "_toc.yml": """
format: jb-book
root: book/intro
parts:
- caption: The course
  chapters: [file: notebooks/one]
- caption: "Companion: more"
  chapters: [file: notebooks/extra]
""",
        "book/errata.md": "(erratum-slip)=\n### E7. A slip (gap)\n",
        "book/errata_proofs.md": "(proof-two)=\n## A proof\n",
        "book/paper_items.md": (ROOT / "book" / "paper_items.md").read_text("utf-8"),
    }
    for file, text in files.items():
        (tmp_path / file).write_text(text, "utf-8")
    return tmp_path


ROW = {
    "item": 1,
    "section": "Section 1",
    "kind": "theorem",
    "name": "two",
    "where": "section 1.1",
    "words": "It holds.",
    "places": ["one#thm-two"],
    "state": "in the paper's form",
}


def page(book, monkeypatch, *rows):
    monkeypatch.setattr(paper_items, "load", lambda root: copy.deepcopy([*rows]))
    return paper_items.page(book)


def test_anchors_are_found_with_their_folds(book, monkeypatch):
    found = paper_items.places(paper_items._text(book, "one"))
    assert {name: (it.link, it.folded) for name, it in found.items()} == WANTED


def test_the_page_has_a_row_for_each_item(book, monkeypatch):
    slip = ROW | {"item": 2, "state": "corrected", "errata": ["slip"], "note": "now"}
    proof = {"item": 3, "kind": "proof", "places": ["errata_proofs#proof-two"]}
    text = page(book, monkeypatch, ROW, slip, ROW | proof)
    assert (
        "| 1. Theorem: two (section 1.1) | It holds. | chapter 1: {prf:ref}`thm-two` "
        "| in the paper's form |\n"
    ) in text
    assert "| corrected ({ref}`E7 <erratum-slip>`): now |\n" in text
    assert "| {doc}`Proofs <errata_proofs>`: [A proof](#proof-two) |" in text
    assert "- in the paper's form: 2 of 3\n" in text


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"places": []}, "item 1 has no place"),
        ({"places": None}, "item 1 has no place"),
        ({"places": ["one#thm-three"]}, "the page one has no anchor 'thm-three'"),
        # every place counts, not the first alone
        ({"places": ["one#thm-two", "one#lemma-folded"]}, "one#lemma-folded is in a f"),
        ({"places": ["one#html-target"]}, "a place is in the body of a page"),
        ({"places": ["one#fig-folded"]}, "a place is in the body of a page"),
        ({"places": ["one#hidden-target"]}, "a place is in the body of a page"),
        ({"places": ["extra#thm-two"]}, "extra is no chapter of the course"),
        ({"places": ["errata_proofs#proof-two"]}, "errata_proofs is no chapter"),
        ({"places": ["errata#erratum-slip"]}, "errata is no chapter of the course"),
        ({"state": "about the same"}, "the state must be one of"),
        ({"state": "corrected"}, "is corrected, and names no erratum"),
        ({"state": "corrected", "errata": ["other"]}, "there is no erratum 'other'"),
        ({"item": 2}, "item 2 stands where item 1 is expected"),
    ],
)
def test_a_build_refuses(book, monkeypatch, change, told):
    assert page(book, monkeypatch, ROW)
    with pytest.raises(Refused, match="^book/paper_items.yaml, item ") as refused:
        page(book, monkeypatch, ROW | change)
    assert told in str(refused.value)


def test_all_57_items_of_the_paper_have_a_place():
    rows = paper_items.load(ROOT)
    assert [row["item"] for row in rows] == [*range(1, 58)]
    keys = "item section kind name where label words places state errata note"
    assert all(row.keys() <= {*keys.split()} for row in rows)
    text = paper_items.page(ROOT)
    listed = re.findall(r"^\| (\d+)\. [^|]+ \| [^|]+ \| [^|]+ \| [^|]+ \|$", text, re.M)
    assert sorted(map(int, listed)) == [*range(1, 58)]
    # a statement that is an item's place is the paper's, and says so
    for place in {place for row in rows for place in row["places"]}:
        name, _, anchor = place.partition("#")
        source = paper_items._text(ROOT, name)
        if f"\n:label: {anchor}\n" in source:
            assert f"\n:label: {anchor}\n:class: paper\n" in source, place
