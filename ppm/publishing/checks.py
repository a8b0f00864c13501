"""Statements of the book (definitions, theorems, …), the tests that exercise them, and verdicts."""

import datetime
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

from ppm._validation import needed_for
from ppm.publishing.notebooks import cell_source, read_cells
from ppm.publishing.schema import first_fault

KINDS = (
    "definition", "theorem", "lemma", "proposition", "corollary", "assumption", "property",
    "algorithm",
)
NOT_RUN = "not run here"
_MAP = {
    "type": "object",
    "additionalProperties": {
        "type": "array",
        "minItems": 1,
        "items": {
            "type": "string",
            "pattern": r"^tests/(\w+/)?test_\w+\.py::test_\w+$",
            "title": "is no test of the form tests/test_x.py::test_y",
        },
    },
}
_DIRECTIVE = re.compile(
    r"^(?P<fence>`{3,}|:{3,})\{prf:(?P<kind>\w+)\}[ ]*(?P<title>[^\n]*)\n"
    r"(?P<body>.*?)^(?P=fence)[ ]*$",
    re.MULTILINE | re.DOTALL,
)


class ChecksError(ValueError):
    """The map from statements to tests is not what it has to be; the message is one line."""


@dataclass(frozen=True)
class Statement:
    """A definition, theorem or the like.

    Attributes
    ----------
    label : str
        Its label, empty if it has none.
    kind : str
        One of `KINDS`.
    title : str
        Its title.
    document : str
        The file it stands in, relative to the repository, without ending.
    chapter : str
        The title of that file.
    """

    label: str
    kind: str
    title: str
    document: str
    chapter: str = ""


@dataclass(frozen=True)
class Verdict:
    """What the last run of a test said.

    Attributes
    ----------
    outcome : str
        ``passed``, ``failed``, ``skipped`` or ``not run here``.
    day : datetime.datetime or None
        When; None if it was not run.
    """

    outcome: str
    day: datetime.datetime | None = None


def find_statements(root):
    """Statements of the chapters and pages in the table of contents, in its order.

    Parameters
    ----------
    root : path-like
        The repository.

    Returns
    -------
    list of Statement
    """
    root = Path(root)
    toc = (root / "_toc.yml").read_text("utf-8")
    found = []
    for document in re.findall(r"^[ -]*(?:file|root): *([\w/-]+)", toc, re.MULTILINE):
        text = "\n\n".join(_markdown(root / document))
        heading = re.search(r"^# +(.+?) *$", text, re.MULTILINE)
        chapter = heading[1] if heading else document
        for match in _DIRECTIVE.finditer(text):
            if match["kind"] in KINDS:
                label = _label(match) or ""
                found.append(Statement(label, match["kind"], match["title"], document, chapter))
    return found


def _markdown(path):
    notebook, page = path.with_suffix(".ipynb"), path.with_suffix(".md")
    if notebook.is_file():
        return [
            cell_source(cell) for cell in read_cells(notebook) if cell["cell_type"] == "markdown"
        ]
    # a page that is generated when the book is built states nothing
    return [page.read_text("utf-8")] if page.is_file() else []


def _label(match):
    label = re.search(r"^:label: *(\S+)", match["body"], re.MULTILINE)
    return label and label[1]


def load_checks(path):
    """Read the map from statements to tests.

    Parameters
    ----------
    path : path-like
        A YAML file: label -> list of pytest node ids, ``tests/test_x.py::test_y``.

    Returns
    -------
    dict of str to list of str

    Raises
    ------
    ChecksError
        One line that names the label and what is wrong.
    """
    with needed_for("the map of checks"):
        import yaml

    path = Path(path)
    try:
        content = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise ChecksError(f"{path.name} cannot be read: {str(error).splitlines()[0]}") from None
    fault = first_fault(content, _MAP)
    if fault:
        raise ChecksError(f"{path.name}: {fault}")
    return content


def read_verdicts(folder):
    """Last verdict of every test function, from the JUnit files that ``make test`` leaves.

    Parameters
    ----------
    folder : path-like
        Folder of the files, which need not exist.

    Returns
    -------
    dict of str to Verdict
        By node id without parameters. Of a test with several parameters one failure is enough for
        ``failed``; later files take precedence, test by test.
    """
    runs = []
    for file in Path(folder).glob("*.xml"):
        try:
            suites = list(ElementTree.parse(file).getroot().iter("testsuite"))
            runs += [(datetime.datetime.fromisoformat(s.get("timestamp")), s) for s in suites]
        except (ElementTree.ParseError, TypeError, ValueError):
            # a run that was interrupted while it wrote
            continue
    found = {}
    for day, suite in sorted(runs, key=lambda run: run[0].timestamp()):
        outcomes = {}
        for case in suite.iter("testcase"):
            name = f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name', '')}"
            outcomes.setdefault(name.partition("[")[0], set()).add(_outcome(case))
        for name, seen in outcomes.items():
            worst = next(outcome for outcome in ("failed", "passed", "skipped") if outcome in seen)
            found[name] = Verdict(worst, day)
    return found


def _outcome(case):
    tags = {child.tag for child in case}
    if tags & {"failure", "error"}:
        return "failed"
    return "skipped" if "skipped" in tags else "passed"


def verdict_of(tests, verdicts):
    """One verdict for several tests: the worst outcome, with the oldest day.

    Parameters
    ----------
    tests : list of str
        Node ids.
    verdicts : dict of str to Verdict
        What :func:`read_verdicts` returned.
    """
    each = [verdicts.get(test, Verdict(NOT_RUN)) for test in tests]
    for outcome in ("failed", NOT_RUN, "skipped", "passed"):
        if any(verdict.outcome == outcome for verdict in each):
            days = [verdict.day for verdict in each if verdict.day is not None]
            return Verdict(outcome, None if outcome == NOT_RUN else min(days))


def spoken(verdict):
    """A verdict in words: ``passed on 3 May 2026``."""
    if verdict.day is None:
        return verdict.outcome
    return f"{verdict.outcome} on {day_in_words(verdict.day)}"


def in_words(test):
    """The name of a test as the sentence that it is.

    Parameters
    ----------
    test : str
        A node id.
    """
    return test.partition("::test_")[2].replace("_", " ")


def day_in_words(day):
    """A date as the book writes it: ``3 May 2026``."""
    return f"{day.day} {day:%B %Y}"


def with_checks(text, checks, verdicts):
    """End every statement of a Markdown text with a link to its checks and their verdict.

    Parameters
    ----------
    text : str
        The text.
    checks : dict of str to list of str
        What :func:`load_checks` returned.
    verdicts : dict of str to Verdict
        What :func:`read_verdicts` returned.
    """

    def add(match):
        label = _label(match)
        if match["kind"] not in KINDS or label not in checks:
            return match[0]
        first, *others = checks[label]
        more = f" and {len(others)} more" if others else ""
        link = f"{{ref}}`{in_words(first)}{more} <check-{label}>`"
        verdict = verdict_of(checks[label], verdicts)
        told = "" if verdict.outcome == NOT_RUN else f": {spoken(verdict)}"
        line = f"*Check:* {link}{told}"
        body = match["body"].rstrip("\n")
        start = f"{match['fence']}{{prf:{match['kind']}}} {match['title']}".rstrip()
        return f"{start}\n{body}\n\n{line}\n{match['fence']}"

    return _DIRECTIVE.sub(add, text)
