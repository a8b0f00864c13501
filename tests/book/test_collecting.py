"""The script of the page on teaching that runs what students hand in."""

import re
import subprocess
import sys

import nbformat
import pandas as pd
from conftest import ROOT

from ppm_book.exercises import FOLDER


def test_the_script_runs_what_was_handed_in_with_the_original_checks(tmp_path):
    page = (ROOT / "book" / "teaching.md").read_text("utf-8")
    (script,) = re.findall(r"```python\n(import shutil.*?)```", page, re.S)
    (tmp_path / "collect.py").write_text(script, "utf-8")
    for student, answers in {
        "Zoë": {}, "wrong": {"budget": "databases = 3", "belief": "at_most = ..."},
        "broken": {"budget": "databases =", "belief": "import os; os.kill(os.getpid(), 2)"},
    }.items():
        notebook = nbformat.read(ROOT / FOLDER / "what_it_means.ipynb", 4)
        cells = {cell.id: cell for cell in notebook.cells}
        for work in ("budget", "belief", "detection"):
            worked = cells.pop(f"ex-{work}-worked").source
            cells[f"ex-{work}-answer"].source = answers.get(work, worked)
        notebook.cells = [
            cell for label, cell in cells.items()
            if label == "setup" or re.match("ex-(budget|belief|detection)", label)
        ]
        (tmp_path / "in" / student).mkdir(parents=True)
        (tmp_path / "in" / student / "checks.py").write_text("no Python")
        nbformat.write(notebook, tmp_path / "in" / student / "sheet.ipynb")
    command = [sys.executable, str(tmp_path / "collect.py"), str(tmp_path / "in")]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    table = pd.read_csv(tmp_path / "in" / "grades.csv", index_col=0, keep_default_na=False)
    table = table.rename(index=lambda file: file.split("/")[-2])
    assert dict(table.loc["Zoë"]) == dict.fromkeys(("budget", "belief", "detection"), "right")
    assert table.loc["wrong", "budget"].startswith("✘")
    assert "no answer yet" in table.loc["wrong", "belief"]
    assert table.loc["broken", "budget"] == ""
    assert set(table["detection"]) == {"right"}
    assert "at_most" in (tmp_path / "in" / "wrong" / "sheet.html").read_text("utf-8")
