"""Two editions of the exercises: one to hand out, and one with the solutions, run."""

import re
import shutil
from pathlib import Path

import nbformat
from nbconvert.preprocessors import ExecutePreprocessor, TagRemovePreprocessor

from ppm_book.exercises import FOLDER, chapters

# role -> where its target stands, and the words that Jupyter shows for it
REFERENCES = {
    "doc": (r"^LABEL .*\n# (.*)", r"the chapter “\1”"),
    "numref": (r"^\w+ LABEL\n## (.*?) ★", r"the exercise “\1”"),
    "prf:ref": (r"\{prf:(\w+)\} (.*)\n:label: LABEL\n", r"the \1 “\2”"),
    "eq": (r"^(\$)\$\n([^$]*)\n\$\$ \(LABEL\)", r"the formula \1\2\1"),
    "cite:p": (r"\{LABEL,\n +author += \{+([^,}]+)[^@]*? year += \{(\d+)", r"(\1 \2)"),
}


def make_editions(root, out=None):
    """Make both editions anew in ``out``, by default ``_build/classroom``; return the zip files."""
    folder, out = Path(root, FOLDER), Path(out or Path(root, "_build", "classroom"))
    students = TagRemovePreprocessor(remove_cell_tags={"solution"}), 'check("'
    # hints() stops at an answer that is not right
    run = ExecutePreprocessor(record_timing=False, extra_arguments=["--log-level=ERROR"])
    editions = {"student": students, "instructor": (run, 'check.hints("')}
    shutil.rmtree(out, ignore_errors=True)
    for edition, (preprocessor, check) in editions.items():
        shutil.copytree(folder, out / edition, ignore=shutil.ignore_patterns("*.ipynb", "[._]*"))
        for name, sheet in _sheets(root, check):
            preprocessor.preprocess(sheet, {"metadata": {"path": folder}})
            nbformat.write(sheet, out / edition / f"{name}.ipynb")
    return [Path(shutil.make_archive(out / each, "zip", out, each)) for each in editions]


def _sheets(root, check):
    """Each notebook of exercises, its tasks numbered, with words for the book's references."""
    text = Path(root, "book", "references.bib").read_text("utf-8")
    for file in [*Path(root).glob("notebooks/*.ipynb"), *Path(root, FOLDER).glob("*.ipynb")]:
        text += "".join(f"\n{file.stem} {c.id}\n{c.source}" for c in nbformat.read(file, 4).cells)

    def words(match):
        pattern, told = REFERENCES[match[1]]
        return re.search(pattern.replace("LABEL", match[2]), text, re.M).expand(told)

    for number, name in enumerate(chapters(root), start=1):
        sheet, place = nbformat.read(Path(root, FOLDER, f"{name}.ipynb"), 4), 0
        for cell in sheet.cells:
            place += "minutes" in cell.metadata
            minutes = f"({cell.metadata.get('minutes')} minutes)"
            source = re.sub("^## (.*)", rf"## Exercise {number}.{place}: \1 {minutes}", cell.source)
            cell.source = re.sub(r"\{([\w:]+)\}`(.+?)`", words, source.replace('check("', check))
        yield name, sheet
