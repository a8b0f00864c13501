"""What nbgrader has to know of a sheet, to hand it out and to mark it.

A check is a locked cell that ends in its points, because nbgrader gives all of them for an output
that is no number. The checks of the assessment are hidden tests, which students do not get.
"""

import re

SCHEMA = 3
LATER = "# This cell has its code when the sheet is marked."
# what nbgrader takes out again, by the lines around it
SOLUTION = "\n### BEGIN SOLUTION\n{}\n### END SOLUTION"
HIDDEN = "\n### BEGIN HIDDEN TESTS\n{}\n### END HIDDEN TESTS"
# the cell of the assessment that makes its checks ready
GRADING = "grading"


def is_hidden(cell):
    """Whether a cell checks what students hand in, and is not for them."""
    return cell.id == GRADING or {"check", "solution"} <= {
        *cell.metadata.get("tags", ())
    }


def add_metadata(sheet):
    """Say of the cells of a students' sheet which are locked, which are answers, and the points."""
    tasks = {cell.id: cell.metadata for cell in sheet.cells}
    for cell in sheet.cells:
        label, _, part = cell.id.rpartition("-")
        about = tasks.get(label, {})
        words = about.get("points", 0) - about.get("number", 0)
        if part == "answer":
            kind = {"solution": True}
        elif part == "check":
            kind = {"grade": True, "locked": True, "points": about.get("number", 1)}
        elif part == "words" and words:
            kind = {"grade": True, "solution": True, "points": words}
        elif cell.id == GRADING:
            kind = {"grade": True, "locked": True, "points": 0}
        elif cell.id == "unpack":
            kind = {"locked": True}
        else:
            continue
        every = {"grade": False, "locked": False, "solution": False}
        cell.metadata["nbgrader"] = (
            {"schema_version": SCHEMA, "grade_id": cell.id} | every | kind
        )


def add_solutions(sheet, original, unpacking):
    """Turn a students' sheet into the source that nbgrader makes it from."""
    source = {cell.id: cell.source for cell in original.cells}
    points = {cell.id: cell.metadata.get("number") for cell in original.cells}
    for cell in sheet.cells:
        label, _, part = cell.id.rpartition("-")
        if part == "answer":
            cell.source += SOLUTION.format(source[f"{label}-worked"])
        elif part == "words" and "nbgrader" in cell.metadata:
            cell.source = source[label.replace("ex-", "sol-", 1)]
        elif cell.source == LATER and part == "check":
            check = re.sub(
                r"^check\((.*)\)", r"check.points(\1, of={})", source[cell.id]
            )
            cell.source += HIDDEN.format(check.format(points[label]))
        elif cell.source == LATER:
            cell.source += HIDDEN.format(f"{unpacking}\n{source[cell.id]}")
