"""Every statement of the book has tests that exist, and shows what their last run said."""

import ast
import datetime
import shutil

import pytest
from conftest import ROOT

from ppm.publishing import book, checks
from ppm.publishing.checks import ChecksError, Statement, Verdict
from ppm.publishing.notebooks import NotebookFailed
from ppm.publishing.pages import checks_page

TEMPLATE = ROOT / "book" / "checks.md"
TEXT = """Before.

```{prf:definition} One thing
:label: def-one

It is $1$.
```

```{prf:proof}
Nothing.
```

::::{prf:theorem} Two
:label: thm-two

:::{note}
Inside.
:::
::::
"""


def functions_of(path):
    """Names of the test functions of a file."""
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def problems(statements, mapped, tests):
    """Sentences on statements without checks, checks without statements, tests that are gone."""
    labels = {statement.label for statement in statements}
    found = [f"{s.document}: {s.title} has no label" for s in statements if not s.label]
    found += [f"{label} has no entry" for label in sorted(labels - mapped.keys() - {""})]
    found += [f"{label} is no statement" for label in sorted(mapped.keys() - labels)]
    for label, names in mapped.items():
        for name in names:
            file, _, function = name.partition("::")
            if function not in tests(file):
                found.append(f"{label}: {name} does not exist")
    return found


def test_every_statement_of_this_book_names_existing_tests():
    statements = checks.find_statements(ROOT)
    mapped = checks.load_checks(ROOT / "book" / "checks.yaml")
    assert problems(statements, mapped, functions_of) == []
    assert {"thm-epsilon", "lemma-synthetic", "def-dp"} <= mapped.keys()


def test_what_is_missing_is_seen():
    statements = checks.find_statements(ROOT)
    mapped = checks.load_checks(ROOT / "book" / "checks.yaml")
    without = {label: names for label, names in mapped.items() if label != "thm-epsilon"}
    assert problems(statements, without, functions_of) == ["thm-epsilon has no entry"]
    more = mapped | {"thm-other": ["tests/test_pdp.py::test_nothing"]}
    assert problems(statements, more, functions_of) == [
        "thm-other is no statement",
        "thm-other: tests/test_pdp.py::test_nothing does not exist",
    ]
    unnamed = [*statements, Statement("", "lemma", "Odd", "notebooks/theory")]
    assert problems(unnamed, mapped, functions_of) == ["notebooks/theory: Odd has no label"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("- a", "['a'] is not of type 'object'"),
        ("thm: []", "thm: [] should be non-empty"),
        ("thm: tests/test_a.py::test_b", "thm: 'tests/test_a.py::test_b' is not of type"),
        ("thm: [test_b]", "thm: 0: 'test_b' is no test of the form"),
        ("thm: [", "cannot be read"),
    ],
)
def test_a_map_that_is_wrong_is_refused_in_one_line(tmp_path, text, told):
    path = tmp_path / "checks.yaml"
    path.write_text(text)
    with pytest.raises(ChecksError, match=r"^checks\.yaml[^\n]*$") as caught:
        checks.load_checks(path)
    assert told in str(caught.value)


def junit(path, day, *cases):
    """A JUnit file with cases (class name, name, child element)."""
    inside = "".join(
        f'<testcase classname="{where}" name="{name}">{child}</testcase>'
        for where, name, child in cases
    )
    path.write_text(
        f'<testsuites><testsuite timestamp="{day}">{inside}</testsuite></testsuites>', "utf-8"
    )


def test_verdicts_are_read_test_by_test_the_latest_first(tmp_path):
    junit(
        tmp_path / "all.xml",
        "2026-03-01T10:00:00+00:00",
        ("tests.test_a", "test_one[1]", ""),
        ("tests.test_a", "test_one[2]", '<failure message="no">no</failure>'),
        ("tests.test_a", "test_two", ""),
        ("tests.test_a", "test_three", "<skipped/>"),
        ("tests.test_a", "test_four", "<error/>"),
    )
    found = checks.read_verdicts(tmp_path)
    first = datetime.datetime(2026, 3, 1, 10, tzinfo=datetime.UTC)
    assert found == {
        "tests/test_a.py::test_one": Verdict("failed", first),
        "tests/test_a.py::test_two": Verdict("passed", first),
        "tests/test_a.py::test_three": Verdict("skipped", first),
        "tests/test_a.py::test_four": Verdict("failed", first),
    }
    # a part of the tests, run later, replaces only its own verdicts
    junit(tmp_path / "a.xml", "2026-03-02T10:00:00+00:00", ("tests.test_a", "test_one[2]", ""))
    (tmp_path / "half.xml").write_text("<testsuites><tests")
    found = checks.read_verdicts(tmp_path)
    assert found["tests/test_a.py::test_one"].outcome == "passed"
    assert found["tests/test_a.py::test_two"] == Verdict("passed", first)
    assert checks.read_verdicts(tmp_path / "nowhere") == {}


@pytest.mark.parametrize("workers", [[], ["--numprocesses=2", "--dist=worksteal"]])
def test_pytest_writes_what_is_read(tmp_path, workers):
    import subprocess
    import sys

    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").write_text(
        "def test_good(): pass\ndef test_bad(): assert False\n"
    )
    command = [sys.executable, "-m", "pytest", "--junit-xml=out/all.xml", "-p", "no:cacheprovider"]
    subprocess.run([*command, *workers], cwd=tmp_path, capture_output=True)
    found = checks.read_verdicts(tmp_path / "out")
    outcomes = {name: verdict.outcome for name, verdict in found.items()}
    assert outcomes == {
        "tests/test_a.py::test_good": "passed",
        "tests/test_a.py::test_bad": "failed",
    }
    assert checks.spoken(found["tests/test_a.py::test_good"]).startswith("passed on ")


def test_one_test_that_fails_or_was_not_run_decides_for_a_statement():
    old, new = (datetime.datetime(2026, 3, day, tzinfo=datetime.UTC) for day in (1, 2))
    seen = {"a": Verdict("passed", new), "b": Verdict("failed", old), "c": Verdict("passed", old)}
    assert checks.spoken(checks.verdict_of(["a", "c"], seen)) == "passed on 1 March 2026"
    assert checks.verdict_of(["a", "b", "d"], seen).outcome == "failed"
    assert checks.spoken(checks.verdict_of(["a", "d"], seen)) == "not run here"


def test_statements_end_with_their_check():
    seen = {
        "tests/test_a.py::test_it_is_one": Verdict(
            "passed", datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)
        )
    }
    tests = {
        "def-one": ["tests/test_a.py::test_it_is_one"],
        "thm-two": ["tests/b/test_c.py::test_no_two_are_one", "tests/b/test_c.py::test_nor_three"],
    }
    text = checks.with_checks(TEXT, tests, seen)
    told = "{ref}`it is one <check-def-one>`: passed on 1 March 2026"
    assert f"It is $1$.\n\n*Check:* {told}\n```\n" in text
    # which tests they are is known where they were not run, too
    told = "{ref}`no two are one and 1 more <check-thm-two>`"
    assert f":::\n\n*Check:* {told}\n::::\n" in text
    assert text.count("*Check:*") == 2
    assert "```{prf:proof}\nNothing.\n```" in text
    assert checks.with_checks(TEXT, {}, seen) == TEXT


def test_the_page_links_to_the_source_where_it_is_known():
    statements = [Statement("def-one", "definition", "One thing", "notebooks/theory")]
    mapped = {"def-one": ["tests/test_a.py::test_b"]}
    day = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)
    seen = {"tests/test_a.py::test_b": Verdict("failed", day)}
    page = checks_page(TEMPLATE, statements, mapped, seen)
    assert "(check-def-one)=\n### One thing" in page
    assert "- `test_b` in `tests/test_a.py`: **failed on 1 March 2026**" in page
    page = checks_page(TEMPLATE, statements, mapped, {}, repository="https://example.org/it/")
    assert "[`test_b`](https://example.org/it/blob/HEAD/tests/test_a.py): **not run here**" in page


def test_a_wrong_map_stops_the_build_before_anything_runs(tiny_book, monkeypatch):
    monkeypatch.setattr(book, "execute", lambda *_, **__: pytest.fail("work was begun"))
    (tiny_book / "book" / "checks.yaml").write_text("thm: []")
    with pytest.raises(NotebookFailed, match="thm: .* should be non-empty"):
        book.build(tiny_book)
    shutil.copy(ROOT / "book" / "published.yaml", tiny_book / "book")
    (tiny_book / "book" / "checks.yaml").unlink()
    # this repository's chapters are not the tiny book's
    with pytest.raises(NotebookFailed, match=r"row [\w-]+: unknown chapter"):
        book.build(tiny_book)
