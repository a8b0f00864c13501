"""Reruns: every chapter that reads the survey's table, with tables that the book does not have."""

import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from conftest import ROOT
from survey_files import interview_zip

from ppm_book.chapters import page, running, sentences
from ppm_book.tools import pages, parameters, studio

READERS = [
    name for name in parameters.chapters() if "ce_data" in parameters.defaults(name)
]
# chapter, and whether a tenth of the incomes are zeros; all but one run thoroughly
RERUNS = [(name, name == "application_settings") for name in READERS]
RERUNS += [("ce_application", True)]
# the least of everything
LEAST = {
    "records": 100,
    "components": 2,
    "component_counts": [1, 2],
    "configurations": [[0.7, 0.0]],
    "chains": 1,
    "warmup": 2,
    "draws": 4,
    "releases": 2,
    "resamples": 2,
    "rehearsals": 2,
    "replicates": 2,
    "widths": [0.5],
}


def claims_of(notebook):
    """What an executed notebook claims, and what its last cell says of faults of its claims."""
    outputs = nbformat.read(notebook, 4).cells[-1].get("outputs", ())
    told = {}
    for output in outputs:
        told |= output.get("data", {}).get(page.CLAIMS_TYPE, {})
    return told, [output.text for output in outputs if output.output_type == "stream"]


@pytest.mark.parametrize(
    ("name", "zeros"),
    [
        pytest.param(
            *rerun,
            marks=[pytest.mark.thorough] * (rerun != ("ce_application", False)),
        )
        for rerun in RERUNS
    ],
)
def test_a_chapter_ends_with_another_table(name, zeros, tmp_path, monkeypatch):
    # fits are kept beside the notebooks
    for part in ("notebooks", "ppm", "book", "_toc.yml", "requirements.lock"):
        (tmp_path / part).symlink_to(ROOT / part)
    monkeypatch.setattr(running, "ROOT", tmp_path)
    # five quarters without an income of zero or less, where no level of education has a hundred
    # units; and a table with a tenth of zeros
    about = (
        {"zeros": 0.1, "diary": True, "quarters": 4} if zeros else {"positive": True}
    )
    table = interview_zip(tmp_path / "survey.zip", units=400, **about)
    known = parameters.defaults(name)
    given = {key: value for key, value in LEAST.items() if key in known} | {
        "ce_data": str(table)
    }
    if name.startswith("strict"):
        given["records"] = 300
    if name == "ce_application" and zeros:
        # enough for a component to collapse onto the zeros
        given |= {"records": 0, "components": 4, "warmup": 20}
    (folder := tmp_path / "run").mkdir()
    studio.execute(name, parameters.parameters(name, given=given), folder, "paper")
    told, faults = claims_of(folder / f"{name}.ipynb")
    assert not faults and set(told.values()) <= {True, False, None}
    # of what goes further than the paper some pages claim nothing: a cell prints the number
    assert len(told) >= 3 or not tables_of(name)


def tables_of(name):
    """What a chapter's module of claims defines."""
    file = page.CLAIMS / f"{name}.py"
    return runpy.run_path(str(file)) if file.is_file() else {}


# the chapters that the paper has, by papermill and nothing else
PLAIN = [
    Path(each["file"]).name for each in parameters.contents()["parts"][0]["chapters"]
]


def by_papermill(name, folder, *given):
    """What the command papermill says of a run of a notebook, whose output is ``out.ipynb``."""
    command = (
        sys.executable,
        "-m",
        "papermill",
        str(parameters.source(name)),
        "out.ipynb",
    )
    with running.own_kernel():
        return subprocess.run(
            [*command, *given],
            cwd=folder,
            env={key: it for key, it in os.environ.items() if key != "PPM_RESULTS"},
            capture_output=True,
            text=True,
        )


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name, marks=[pytest.mark.thorough] * (name != "poisson_contraction")
        )
        for name in PLAIN
    ],
)
def test_plain_papermill_leaves_tables_numbers_and_the_sentences_that_do_not_hold(
    name, tmp_path
):
    cells = nbformat.read(parameters.source(name), 4).cells
    (cell,) = [c for c in cells if "parameters" in c.metadata.get("tags", ())]
    given = json.dumps(cell.metadata["nbmake"]["mock"])
    done = by_papermill(name, tmp_path, "-y", given)
    assert done.returncode == 0, done.stderr
    told, faults = claims_of(tmp_path / "out.ipynb")
    assert not faults and told.keys() == tables_of(name)["CLAIMS"].keys()
    *_, last = nbformat.read(tmp_path / "out.ipynb", 4).cells
    claims, *_, numbers = [o.data.get("text/plain", "") for o in last.outputs]
    _, *listed = claims.splitlines()
    # sentences, with numbers in them, and no names
    listed = [line.removeprefix("- ") for line in listed if line.startswith("- ")]
    assert bool(listed) == (not all(told.values())) and not {*listed} & told.keys()
    assert not re.search(r"\{[\w:]+\}`", claims)
    names = [*tables_of(name).get("NUMBERS", ())]
    shown = numbers.splitlines()[1:]
    assert all(map(str.__contains__, shown, names)) and len(shown) == len(names)
    saved = "".join(cell.source for cell in cells).count("page.save(")
    assert len([*tmp_path.glob("out_results/*.csv")]) == saved


def test_plain_papermill_refuses_a_list_as_text_in_one_line(tmp_path):
    done = by_papermill("poisson_contraction", tmp_path, "-p", "sizes", "[50, 200]")
    assert done.returncode == 1
    *_, shown, line = done.stderr.rstrip().splitlines()
    assert shown.startswith("Exception encountered at")
    assert line.startswith("TypeError: sizes must be list[int], and str was given")
    assert "-y 'sizes: […]'" in line and not (tmp_path / "out_results").exists()


# from the last, so that two workers do not wait for the same notebook one after the other
@pytest.mark.parametrize("name", [*parameters.chapters()][::-1])
def test_every_claim_can_be_computed_with_the_table_on_board(notebooks, name):
    told, faults = claims_of(notebooks.executed(name) / f"{name}.ipynb")
    assert not faults
    assert told.keys() == tables_of(name).get("CLAIMS", {}).keys()


@pytest.mark.parametrize("name", parameters.chapters())
def test_a_chapter_s_text_and_its_claims_have_the_same_names(name):
    notebook, tables = nbformat.read(parameters.source(name), 4), tables_of(name)
    marked = [claim for *_, claim in sentences.take_marks(notebook)]
    claims, numbers = (tables.get(table, ()) for table in ("CLAIMS", "NUMBERS"))
    pages.compare_names(
        name, marked, claims, sentences.asked_numbers(notebook), numbers
    )
    *others, last = notebook.cells
    call = f'page.check_claims("{name}", globals())'
    assert last.source.endswith(call) == bool(tables)
    assert not tables or last.metadata["tags"] == ["remove-cell", "claims"]
    assert not any("page.check_claims" in cell.source for cell in others)


def test_each_module_of_claims_has_a_chapter():
    names = {file.stem for file in page.CLAIMS.glob("[!_]*.py")}
    assert names and names <= {*parameters.chapters()}
