"""A run beside the book's: settings, numbers and findings that differ, and none that do not."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from ppm.publishing.beside import HEADING, beside_the_book
from ppm.publishing.notebooks import find_notebooks

ROOT = Path(__file__).resolve().parents[2]
TABLE = pd.DataFrame(
    {
        "mechanism": ["Weighted", "EMweighted", "EMweighted"],
        "scale": [0.7, 0.7, 0.5],
        "local bound": [2.0, 4.0, 3.0],
        "chains agree": [True, True, False],
    }
)


@pytest.fixture
def places(tmp_path):
    """A repository's folder with a built chapter, and a run's folder with the same numbers."""
    book = tmp_path / "_build" / "results" / "paper" / "theory"
    run = tmp_path / "run"
    executed = tmp_path / "_build" / "executed" / "paper"
    for folder in (book, run, executed):
        folder.mkdir(parents=True)
    for folder in (book, run):
        TABLE.to_csv(folder / "bounds.csv", index=False)
    record = {"notebook": "theory", "profile": "paper", "parameters": {"draws": 1000, "seed": 1}}
    (executed / "theory.json").write_text(json.dumps({"record": record}))
    return tmp_path, run, record


def text(places, **record):
    root, run, base = places
    return beside_the_book(root, run, base | record, {})


def test_a_run_like_the_books_says_so(places):
    found = text(places)
    assert found.startswith(HEADING)
    assert "All parameters are the book's." in found
    assert "**bounds**: 0 of the 3 numbers in both tables differ.\n" in f"{found}\n"
    assert "data are not the same" not in found


def test_settings_and_numbers_that_differ_are_named_with_their_row(places):
    changed = TABLE.assign(**{"local bound": [2.0, 5.0, 3.0 * (1 + 1e-13)]})
    changed.to_csv(places[1] / "bounds.csv", index=False)
    found = text(places, parameters={"draws": 50, "seed": 1}, ce_data_sha256="ab")
    assert "| `draws` | `50` | `1000` |" in found
    assert "`seed`" not in found
    assert "data are not the same" in found
    assert "**bounds**: 1 of the 3 numbers in both tables differ." in found
    assert "| EMweighted, 0.7 | local bound | 5 | 4 | +25.0 % |" in found


def test_rows_are_found_by_what_they_are_called_and_not_by_their_number(places):
    TABLE.iloc[::-1].to_csv(places[1] / "bounds.csv", index=False)
    assert "**bounds**: 0 of the 3 numbers in both tables differ." in text(places)
    TABLE.iloc[:2].to_csv(places[1] / "bounds.csv", index=False)
    found = text(places)
    assert "0 of the 2 numbers in both tables differ. Another 1 is in one of them only." in found


def test_of_many_numbers_that_differ_the_largest_changes_are_shown(places):
    root, run, _ = places
    many = pd.DataFrame({"row": [f"r{i}" for i in range(20)], "value": 100.0})
    many.to_csv(root / "_build" / "results" / "paper" / "theory" / "many.csv", index=False)
    many.assign(value=[100.0 + i for i in range(20)]).to_csv(run / "many.csv", index=False)
    found = text(places)
    assert "19 of the 20 numbers in both tables differ." in found
    assert "These 15 changed by the largest share:" in found
    assert "| r19 |" in found and "| r5 |" in found and "| r4 |" not in found


def test_without_a_built_chapter_it_says_what_builds_it(places):
    shutil.rmtree(places[0] / "_build")
    found = text(places)
    assert "`make book` builds it" in found
    assert "differ" not in found


LEDGER = """
rows:
- id: bound
  section: "4"
  where: figure 1
  says: The bound is 3.4.
  chapter: poisson_contraction
  rule: near
  values: [bound]
  published: 3.4
  tolerance: 0.1
- id: other
  section: "4"
  where: figure 1
  says: The other is 1.
  chapter: poisson_contraction
  rule: near
  values: [other]
  published: 1.0
  tolerance: 0.1
"""


def test_findings_with_another_verdict_are_named(tmp_path):
    notebooks = find_notebooks(ROOT)
    folders = {}
    for name, bound in (("book", 3.4), ("run", 5.0)):
        folder = tmp_path / "run"
        if name == "book":
            folder = tmp_path / "_build" / "results" / "paper" / "poisson_contraction"
        folder.mkdir(parents=True)
        values = {"bound": {"value": bound, "error": 0.01}, "other": {"value": 1.0, "error": 0.01}}
        (folder / "values.json").write_text(json.dumps({"data": "drawn", "values": values}))
        folders[name] = folder
    executed = tmp_path / "_build" / "executed" / "paper"
    executed.mkdir(parents=True)
    record = {"notebook": "poisson_contraction", "parameters": {}}
    (executed / "poisson_contraction.json").write_text(json.dumps({"record": record}))
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "published.yaml").write_text(LEDGER)
    found = beside_the_book(tmp_path, folders["run"], record, notebooks)
    assert "1 of them has another verdict" in found
    assert "no verdict" not in found
    assert "| The bound is 3.4. | not reproduced | reproduced |" in found
    assert "The other is 1." not in found
    shutil.copy(folders["book"] / "values.json", folders["run"])
    found = beside_the_book(tmp_path, folders["run"], record, notebooks)
    assert "each has the same verdict" in found
    # a run with other settings than a row needs has no other verdict on it: it has none
    values = json.loads((folders["run"] / "values.json").read_text())
    del values["values"]["bound"]
    (folders["run"] / "values.json").write_text(json.dumps(values))
    found = beside_the_book(tmp_path, folders["run"], record, notebooks)
    assert "Your run has no verdict on 1 of them where the book's has one" in found
    assert "no other one has another verdict" in found and "The bound is 3.4." not in found
