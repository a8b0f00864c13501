"""Every definition, theorem and the like of the book names tests that exist."""

import json
import re

import yaml
from conftest import ROOT

KINDS = "definition|theorem|lemma|proposition|corollary|assumption|property|algorithm"
LABEL = re.compile(rf"^[`:]{{3,}}\{{prf:(?:{KINDS})\}}.*\n(?::label: (\S+))?", re.M)


def exists(name):
    """Whether ``file::function`` is a test."""
    file, test = name.split("::")
    return f"\ndef {test}(" in (ROOT / file).read_text("utf-8")


def test_every_statement_names_tests_that_exist():
    chapters = [
        json.loads(p.read_text("utf-8")) for p in (ROOT / "notebooks").glob("*.ipynb")
    ]
    texts = [
        "".join(cell["source"]) for chapter in chapters for cell in chapter["cells"]
    ]
    texts += [path.read_text("utf-8") for path in (ROOT / "book").glob("*.md")]
    tests = yaml.safe_load((ROOT / "book" / "checks.yaml").read_text("utf-8"))
    # a statement without a label is ""
    assert tests.keys() == {label for text in texts for label in LABEL.findall(text)}
    assert all(tests.values())
    assert [
        name for names in tests.values() for name in names if not exists(name)
    ] == []
    assert not exists("tests/test_statements.py::test_nothing")
