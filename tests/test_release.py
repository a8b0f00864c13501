"""What goes with a release: how it is cited, what is known of the packages."""

import json
import re
from pathlib import Path

import audit
import pytest
import yaml

import ppm

ROOT = Path(__file__).resolve().parents[1]

# ---- citation ------------------------------------------------------------------------------------


def faults(text):
    """What is wrong with a citation file: its required fields, and what it says twice."""
    found, cited = [], yaml.safe_load(text)
    required = {"cff-version", "message", "title", "authors"}
    found += [f"no {name}" for name in sorted(required - set(cited))]
    paper = cited.get("preferred-citation", {})
    found += [
        f"the paper has no {name}" for name in ("type", "title", "authors") if name not in paper
    ]
    for person in [*cited.get("authors", ()), *paper.get("authors", ())]:
        if set(person) not in ({"name"}, {"family-names", "given-names"}):
            found.append(f"an author with {sorted(person)}")
    if cited.get("cff-version") != "1.2.0":
        found.append("another version of the format")
    if cited.get("version") != ppm.__version__:
        found.append("another version than the library's")
    intro = (ROOT / "book" / "intro.md").read_text("utf-8")
    names = re.search(r"author += {(.*)}", intro).group(1).split(" and ")
    listed = [f"{p['family-names']}, {p['given-names']}" for p in paper.get("authors", ())]
    if listed != names:
        found.append("other authors of the paper than in the book")
    title = re.search(r"title += {(.*)},", intro).group(1).replace("{", "").replace("}", "")
    if paper.get("title") != title or paper.get("year") != 2022 or paper.get("volume") != 23:
        found.append("another paper than in the book")
    readme = " ".join((ROOT / "README.md").read_text("utf-8").replace("\n> ", " ").split())
    if f"{title}. *{paper.get('journal')}*, {paper.get('volume')}" not in readme:
        found.append("another paper than in README.md")
    book = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    if cited.get("authors") != [{"name": book["author"]}] or cited.get("title") != book["title"]:
        found.append("another title or author than the book's")
    return found


def test_the_citation_file_is_valid_and_agrees_with_the_book():
    assert faults((ROOT / "CITATION.cff").read_text("utf-8")) == []


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("cff-version: 1.2.0", "cff-version: 1.1", "another version of the format"),
        ("message: ", "note: ", "no message"),
        ("Hu\n", "Who\n", "other authors of the paper"),
        ("volume: 23", "volume: 22", "another paper than in README.md"),
        (f"version: {ppm.__version__}", "version: 9", "another version than the library's"),
        ("name: The ppm authors", "surname: Nobody", "an author with ['surname']"),
    ],
)
def test_a_fault_of_the_citation_is_found(old, new, told):
    text = (ROOT / "CITATION.cff").read_text("utf-8")
    assert old in text
    assert told in "\n".join(faults(text.replace(old, new)))


# ---- known vulnerabilities -----------------------------------------------------------------------


def test_every_package_of_the_lock_is_asked_about():
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    asked = audit.pins(lock)
    starts = [line for line in lock.splitlines() if re.match(r"\w", line)]
    assert len(asked) == len(starts) == len(set(asked))
    assert any(pin.startswith("colorama==") for pin in asked)
    assert audit.pins("a[b]==1.0 ; x\\\n    --hash=sha256:0\nc==2!1+d\n") == ["a==1.0", "c==2!1+d"]


def answer(*packages):
    return json.dumps({"dependencies": packages, "fixes": []})


SAFE = {"name": "safe", "version": "1", "vulns": []}
OPEN = {
    "name": "open", "version": "2",
    "vulns": [{"id": "PYSEC-1", "aliases": ["CVE-1"], "fix_versions": ["3"], "description": ""}],
}  # fmt: skip
UNKNOWN = {"name": "unknown", "skip_reason": "Dependency not found"}


@pytest.mark.parametrize(
    ("text", "status", "told"),
    [
        (answer(SAFE, SAFE), 0, "None of the 2 packages is known to be vulnerable"),
        (answer(SAFE, OPEN), 1, "open 2: PYSEC-1 (CVE-1), mended in 3"),
        # pip-audit says of both that it found no known vulnerability
        (answer(SAFE, UNKNOWN), 2, "knew 1 of the 2 packages; nothing is known of the others"),
        (answer(UNKNOWN, UNKNOWN), 2, "knew 0 of the 2 packages"),
        (answer(SAFE), 2, "knew 1 of the 2 packages"),
        (answer(OPEN, UNKNOWN), 1, "knew 1 of the 2 packages"),
        ("", 2, "could not be reached"),
        ("[]", 2, "could not be reached"),
    ],
)
def test_no_answer_is_not_taken_for_a_good_one(text, status, told):
    found, lines = audit.verdict(text, 2, "pypi")
    assert found == status
    assert told in "\n".join(lines)
    assert ("None of the" in "\n".join(lines)) is (status == 0)
