"""Pages that are written when the book is built."""

from conftest import ROOT

import ppm
from ppm import ledger
from ppm.ledger import judge, load_ledger
from ppm.pages import ledger_page

CLAIMS = load_ledger(ROOT / "book" / "published.yaml")


def test_the_page_shows_counts_verdicts_and_where_values_come_from():
    study = ppm.contraction_study([100, 400, 1600, 6400], replicates=20, draws=50, random_seed=3)
    values = ppm.contraction_values(study, random_seed=1)
    rows = judge(CLAIMS, {"poisson_contraction": {"data": "drawn", "values": values}})
    source = {"profile": "quick", "day": "1 March 2026", "data": "drawn", "part": False}
    page = ledger_page(rows, {"poisson_contraction": source})
    assert "profile `quick`, run on 1 March 2026, on data drawn by the study itself." in page
    assert "{doc}`../notebooks/ce_application`: not run." in page
    part = ledger_page(rows, {"poisson_contraction": source | {"part": True}})
    assert "by the study itself (some of the records, drawn at random)." in part
    assert "application_settings" not in page
    assert "`../notebooks/open`" in ledger_page(rows, {}, settings_chapter="open")
    for row in rows:
        assert page.count(f"| {row.claim.says}<br>{{doc}}`") >= 1
    total = [sum(row.verdict == v for row in rows) for v in ledger.VERDICTS]
    total.insert(2, sum(row.open for row in rows))
    assert f"| **all** | {len(rows)} | {' | '.join(map(str, total))} |" in page
    lines = [line for line in page.splitlines() if line.startswith("| ")]
    assert {line.count("|") for line in lines} == {6, 8}
