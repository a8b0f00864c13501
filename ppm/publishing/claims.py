"""The ledger's rows: what the paper reports, and by which rule it is checked."""

from dataclasses import dataclass, field
from pathlib import Path

from ppm._validation import needed_for
from ppm.publishing.rules import RULES
from ppm.publishing.schema import first_fault

# where the values of a chapter come from: drawn by a study; a simulated table; survey files
DATA_KINDS = ("drawn", "simulated", "diary", "interview", "other")


class LedgerError(ValueError):
    """The ledger's file is not what it has to be; the message is one line."""


@dataclass(frozen=True)
class Claim:
    """One number or statement of the paper, and how it is checked.

    Attributes
    ----------
    id : str
        Its name, unique in the ledger.
    section, where : str
        Section of the paper, and the figure, table or text in it.
    says : str
        What it says, in our words.
    chapter : str
        The notebook that computes its values.
    rule : str
        One of `RULES`.
    values : tuple of str
        Names of the computed values that the rule compares.
    published : float, list of float or None
        The paper's number or numbers.
    options : dict
        What the rule needs besides, such as ``tolerance``.
    needs : dict of str to float or list
        Computed settings that must be the paper's for the comparison to make sense.
    not_comparable : dict of str to str
        Kind of data -> why the claim cannot be compared on it.
    reading : str
        How we read a word such as "slightly" that has no number.
    remark : str
        What the paper leaves unstated.
    by_construction : str
        Why the claim cannot fail here, whatever the paper's mechanism does; empty for a claim
        that can.
    """

    id: str
    section: str
    where: str
    says: str
    chapter: str
    rule: str
    values: tuple = ()
    published: object = None
    options: dict = field(default_factory=dict)
    needs: dict = field(default_factory=dict)
    not_comparable: dict = field(default_factory=dict)
    reading: str = ""
    remark: str = ""
    by_construction: str = ""


_TEXT = {"type": "string", "pattern": r"\S", "title": "must be a text that is not empty"}
_NUMBER = {"type": "number", "minimum": -1e300, "maximum": 1e300}
_NUMBERS = {"anyOf": [_NUMBER, {"type": "array", "items": _NUMBER, "minItems": 1}]}
_TEXTS = ("id", "section", "where", "says", "chapter", "rule")
_OPTIONS = {
    **dict.fromkeys(("tolerance", "relative", "than", "factor", "low", "high", "towards"), _NUMBER),
    "at_most": {"type": "boolean"},
    "rows": {"type": "array", "items": _TEXT, "minItems": 1},
}
# what a row may hold; which options a rule takes stands in RULES
_ROW = {
    "type": "object",
    "required": list(_TEXTS),
    "additionalProperties": False,
    "properties": {
        **dict.fromkeys(_TEXTS, _TEXT),
        "rule": {"enum": list(RULES)},
        "values": {"type": "array", "items": _TEXT},
        "published": _NUMBERS,
        "needs": {"type": "object", "additionalProperties": _NUMBERS},
        "not_comparable": {
            "type": "object",
            "propertyNames": {"enum": [*DATA_KINDS, "all"]},
            "additionalProperties": _TEXT,
        },
        "by_construction": _TEXT,
        "reading": {"type": "string"},
        "remark": {"type": "string"},
        **_OPTIONS,
    },
}


def load_ledger(path, chapters=None):
    """Read the ledger's file and check every row of it.

    Parameters
    ----------
    path : path-like
        A YAML file with ``reasons`` (name -> sentence) and ``rows``.
    chapters : collection of str, optional
        Names of notebooks that rows may refer to.

    Returns
    -------
    tuple of Claim
        In the order of the file.

    Raises
    ------
    LedgerError
        One line that names the row and what is wrong with it.
    """
    with needed_for("the ledger"):
        import yaml

    path = Path(path)
    try:
        content = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise LedgerError(f"{path.name} cannot be read: {str(error).splitlines()[0]}") from None
    fault = first_fault(content, {"type": "object", "required": ["rows"],
                                  "properties": {"rows": {"type": "array"}}})
    if fault:
        raise LedgerError(f"{path.name} must hold a list of rows under 'rows': {fault}")
    reasons = content.get("reasons") or {}
    claims = []
    for number, row in enumerate(content["rows"], start=1):
        name = row.get("id", number) if isinstance(row, dict) else number
        try:
            claim = _claim(row, reasons, chapters)
            if claim.id in {other.id for other in claims}:
                raise LedgerError("its id is used twice")
        except LedgerError as error:
            raise LedgerError(f"{path.name}, row {name}: {error}") from None
        claims.append(claim)
    known = {claim.id: claim for claim in claims}
    for claim in claims:
        for other in claim.options.get("rows", ()):
            why = ""
            if other not in known or other == claim.id:
                why = "is no other row"
            elif known[other].rule in ("rows", "cited"):
                why = "computes nothing itself"
            elif known[other].rule == "setting" or known[other].by_construction:
                why = "is no finding, so that nothing can follow from it"
            if why:
                raise LedgerError(f"{path.name}, row {claim.id}: rows: {other!r} {why}")
    return tuple(claims)


def _claim(row, reasons, chapters):
    fault = first_fault(row, _ROW)
    if fault:
        raise LedgerError(fault)
    if chapters is not None and row["chapter"] not in chapters:
        raise LedgerError(f"unknown chapter {row['chapter']!r}")
    rule, values = RULES[row["rule"]], row.get("values", [])
    if rule.counts is None and not values or rule.counts and len(values) not in rule.counts:
        wanted = "at least 1" if rule.counts is None else " or ".join(map(str, rule.counts))
        raise LedgerError(f"rule {row['rule']} takes {wanted} values; got {len(values)}")
    for key in rule.required:
        if key not in row:
            raise LedgerError(f"rule {row['rule']} needs {key}")
    options = {key: row[key] for key in _OPTIONS if key in row}
    for key in options:
        if key not in (*rule.required, *rule.optional):
            raise LedgerError(f"rule {row['rule']} has no option {key}")
    if row["rule"] == "near" and ("tolerance" in row) == ("relative" in row):
        raise LedgerError("rule near needs one of tolerance and relative")
    if row["rule"] in ("greater", "less") and ("than" in row) == (len(values) == 2):
        raise LedgerError(f"rule {row['rule']} needs two values, or one and than")
    if row["rule"] == "between" and not {"low", "high"} & row.keys():
        raise LedgerError("rule between needs low or high")
    if row["rule"] in ("reduction", "rate", "share_rate") and isinstance(row["published"], list):
        raise LedgerError(f"rule {row['rule']} takes one published number")
    unlike = row.get("not_comparable") or {}
    for reason in unlike.values():
        if reason not in reasons:
            raise LedgerError(f"not_comparable: there is no reason {reason!r}")
    if row["rule"] == "cited" and "all" not in unlike:
        raise LedgerError("rule cited needs not_comparable: all")
    if "by_construction" in row and row["rule"] in ("setting", "rows", "cited"):
        raise LedgerError(f"rule {row['rule']} takes no by_construction")
    return Claim(
        **{key: row[key].strip() for key in _TEXTS},
        values=tuple(values),
        published=row.get("published"),
        options=options,
        needs=dict(row.get("needs") or {}),
        not_comparable={kind: str(reasons[reason]) for kind, reason in unlike.items()},
        reading=str(row.get("reading", "")),
        remark=str(row.get("remark", "")),
        by_construction=row.get("by_construction", "").strip(),
    )
