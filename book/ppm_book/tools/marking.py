"""What nbgrader has to know of a sheet, to hand it out and to mark it.

A check is a locked cell that ends in its points, because nbgrader gives all of them for an output
that is no number. The checks of the assessment are hidden tests, which students do not get.
"""

SCHEMA = 3
LATER = "# The number above is checked when this sheet is marked."
# what nbgrader takes out again, by the lines around it
SOLUTION = "\n### BEGIN SOLUTION\n{}\n### END SOLUTION"
HIDDEN = "\n### BEGIN HIDDEN TESTS\n{}\n### END HIDDEN TESTS"


def is_hidden(cell):
    """Whether a cell checks what students hand in, and is not for them."""
    return {"check", "solution"} <= {*cell.metadata.get("tags", ())}


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
        elif cell.id == "unpack":
            # what is graded comes back where it was deleted
            kind = {"grade": True, "locked": True, "points": 0}
        else:
            continue
        every = {"grade": False, "locked": False, "solution": False}
        cell.metadata["nbgrader"] = (
            {"schema_version": SCHEMA, "grade_id": cell.id} | every | kind
        )


def add_solutions(sheet, original, unpacking):
    """Turn a students' sheet into the source that nbgrader makes it from."""
    cells = {cell.id: cell for cell in original.cells}
    # in the first check of all, because a cell of its own would come back above the student's name
    ready = f"{unpacking}\n{cells['grading'].source}\n" if unpacking else ""
    for cell in sheet.cells:
        label, _, part = cell.id.rpartition("-")
        if part == "answer":
            cell.source += SOLUTION.format(cells[f"{label}-worked"].source)
        elif part == "words" and "nbgrader" in cell.metadata:
            cell.source = cells[label.replace("ex-", "sol-", 1)].source
        elif part == "check" and cell.source == LATER:
            asked = cells[cell.id].source.removeprefix("check(").removesuffix(")")
            points = cells[label].metadata["number"]
            cell.source += HIDDEN.format(f"{ready}check.points({asked}, of={points})")
            ready = ""
