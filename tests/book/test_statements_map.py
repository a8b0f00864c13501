"""Every definition, theorem and the like of the book names tests that exist, and whose it is."""

import json
import re

import yaml
from conftest import ROOT

KINDS = "definition|theorem|lemma|proposition|corollary|assumption|property|algorithm"
HEAD = rf"^[`:]{{3,}}\{{prf:(?:{KINDS})\}}.*\n"
LABEL = re.compile(HEAD + r"(?::label: (\S+))?", re.M)
OPTIONS = re.compile(HEAD + r"((?::[\w-]+:.*\n)*)", re.M)
MARK = re.compile(r"^:class: (?:paper|ours|field)$", re.M)


def exists(name):
    """Whether ``file::function`` is a test."""
    file, test = name.split("::")
    return f"\ndef {test}(" in (ROOT / file).read_text("utf-8")


def texts():
    """Text of every chapter and page."""
    chapters = [
        json.loads(p.read_text("utf-8")) for p in (ROOT / "notebooks").glob("*.ipynb")
    ]
    sources = [
        "".join(cell["source"]) for chapter in chapters for cell in chapter["cells"]
    ]
    return sources + [path.read_text("utf-8") for path in (ROOT / "book").glob("*.md")]


def unmarked(text):
    """Options of the statements that do not say, once, whose they are."""
    return [each for each in OPTIONS.findall(text) if len(MARK.findall(each)) != 1]


def test_every_statement_says_whose_it_is():
    assert [each for text in texts() for each in unmarked(text)] == []
    statement = "```{prf:lemma} L\n:label: a\n:class: paper\n"
    assert not unmarked(statement) and not unmarked("```{prf:proof}\n")
    for wrong in (
        statement.replace(":class: paper\n", ""),
        statement.replace("paper", "theirs"),
        statement.replace("paper", "paper ours"),
        statement + ":class: ours\n",
    ):
        assert unmarked(wrong)


def test_every_statement_names_tests_that_exist():
    tests = yaml.safe_load((ROOT / "book" / "checks.yaml").read_text("utf-8"))
    # a statement without a label is ""
    assert tests.keys() == {label for text in texts() for label in LABEL.findall(text)}
    assert all(tests.values())
    assert [
        name for names in tests.values() for name in names if not exists(name)
    ] == []
    assert not exists("tests/test_statements.py::test_nothing")
