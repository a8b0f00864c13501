"""Every public name has an Example in its docstring, and every Example is run."""

import dataclasses
import doctest
import inspect
import zipfile

import pytest
from public_names import book_names, public_names
from survey_files import csv_text, unit

from ppm_book import audits
from ppm_book.audits import from_draws
from ppm_book.chapters import pmse

NAMES = {
    name: it for name, it in (public_names() | book_names()).items() if callable(it)
}
NAMES |= {f"audits.{name}": getattr(audits, name) for name in audits.__all__}
# what audits return is described, but has no name of its own on ppm_book.audits
NAMES |= {name: getattr(from_draws, name) for name in ("LossEvidence", "SampledAudit")}
NAMES |= {"propensity_score": pmse.propensity_score}


def run(name, docstring):
    """What goes wrong in the Examples of a docstring, which may be folded and end in blanks."""
    test = doctest.DocTestParser().get_doctest(docstring, {}, name, name, 0)
    if not test.examples:
        return f"{name} has no Example"
    told = []
    runner = doctest.DocTestRunner(
        verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE
    )
    runner.run(test, out=told.append)
    skipped = [
        example.source for example in test.examples if doctest.SKIP in example.options
    ]
    return "".join(told) or "".join(skipped)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A folder with the files that Examples read."""
    monkeypatch.chdir(tmp_path)
    with zipfile.ZipFile("intrvw17.zip", "w") as archive:
        archive.writestr("fmli171x.csv", csv_text(unit(1), unit(2, FINCBTXM="-7000")))
    (tmp_path / "notes.csv").write_text("day,note\n1,none\n", "utf-8")
    for variable in ("PPM_RESULTS", "PPM_FITS"):
        monkeypatch.delenv(variable, raising=False)


@pytest.mark.parametrize("name", NAMES)
def test_the_example_gives_what_it_shows(name, files):
    docstring = inspect.getdoc(NAMES[name])
    # what a function returns is in the function's Example
    if "Examples\n" in docstring or not dataclasses.is_dataclass(NAMES[name]):
        assert run(name, docstring) == ""
