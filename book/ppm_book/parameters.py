"""What the notebooks are, and which parameters they take: names, types and ranges."""

import ast
import contextlib
import difflib
import functools
import json
import math
import operator
import os
import re
import reprlib
from pathlib import Path

import nbformat
import yaml
from jsonschema import Draft202012Validator, validators

from ppm_book.running import ROOT


class Refused(Exception):
    """The reader's own mistake, told in one line: exit status 2."""


def chapters(root=None):
    """Names of the notebooks that are chapters, in the order of the book."""
    toc = Path(root or ROOT, "_toc.yml").read_text("utf-8")
    return re.findall(r"file: notebooks/(\w+)$", toc, re.M)


def notebooks():
    """Names of all notebooks, the chapters first."""
    others = sorted(file.stem for file in ROOT.glob("notebooks/*.ipynb"))
    return list(dict.fromkeys([*chapters(), *others]))


def source(name):
    """The file of a notebook."""
    return ROOT / "notebooks" / f"{name}.ipynb"


def metadata(name):
    """What a notebook says of itself; ``runs: first`` if a build is to begin with it."""
    return nbformat.read(source(name), 4).metadata


@functools.cache
def described(file):
    """What the parameters cell says: name -> type, default and comment."""
    import papermill

    return papermill.inspect_notebook(str(file))


def defaults(name):
    """Parameters of a notebook, with their defaults."""
    return {key: ast.literal_eval(it["default"]) for key, it in described(source(name)).items()}


@functools.cache
def _entries():
    return yaml.safe_load((ROOT / "notebooks" / "parameters.yml").read_text("utf-8"))


@functools.cache
def vocabulary(notebook=None):
    """Every parameter: what it is, and what a notebook accepts in words and as a JSON Schema."""
    entries = _entries().items()
    return {key: about | about.get("in", {}).get(notebook, {}) for key, about in entries}


# a line of a parameters cell
_PARAMETER = re.compile(r"^(?P<code>(?P<name>\w+): [^#\n]*)(#.*)?$", re.M)
# a number is finite, and a whole number has no point
_TYPES = Draft202012Validator.TYPE_CHECKER.redefine_many({
    "number": lambda _, value: type(value) in (int, float) and abs(value) < math.inf,
    "integer": lambda _, value: type(value) is int,
})
_Validator = validators.extend(Draft202012Validator, type_checker=_TYPES)


def _accepted(value, schema):
    """Whether a schema accepts a value; two of its words are our own."""
    return (
        _Validator(schema).is_valid(value)
        and not (schema.get("increasing") and any(map(operator.ge, value, value[1:])))
        and not (schema.get("path") and value and not os.path.exists(value))
    )


def _unknown(kind, name, accepted):
    close = difflib.get_close_matches(str(name), list(accepted), 1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return Refused(f"unknown {kind} {reprlib.repr(name)}{hint} (accepted: {', '.join(accepted)})")


def checked(name, value, accepted, notebook=None):
    if name not in accepted:
        raise _unknown("parameter", name, accepted)
    about = vocabulary(notebook)[name]
    if name == "ce_data" and isinstance(value, str) and value:
        value = os.path.abspath(os.path.expanduser(value))
    if not _accepted(value, about["schema"]):
        told = f"{name} = {reprlib.repr(value)} is not accepted"
        raise Refused(f"{told}; {name}: {about['description']}; {about['accepts']}")
    # a number that was typed without its point is one all the same
    numbers = "number" in json.dumps(about["schema"])
    return json.loads(json.dumps(value), parse_int=float if numbers else int)


def profile_of(profile):
    """What a profile sets: notebook -> parameters."""
    files = {file.stem: file for file in sorted(ROOT.glob("notebooks/profiles/*.yml"))}
    if profile not in files:
        raise _unknown("profile", profile, files)
    settings = yaml.safe_load(files[profile].read_text("utf-8")) or {}
    for name in settings:
        if name not in notebooks():
            raise _unknown(f"notebook in the profile {profile}:", name, notebooks())
    return settings


def parameters(name, profile="paper", given=()):
    """All parameters of a notebook: its own, the profile's, and those that were given.

    Raises
    ------
    Refused
        If a name, a type or a value is not accepted.
    """
    if name not in notebooks():
        raise _unknown("notebook", name, notebooks())
    own = defaults(name)
    values = own | (profile_of(profile).get(name) or {}) | dict(given)
    return {key: checked(key, value, own, name) for key, value in values.items()}


def parsed(text):
    """Name and value of ``NAME=VALUE``; what is no Python literal stays text."""
    name, equals, value = text.partition("=")
    if not equals:
        raise Refused(f"-p {text!r} is not of the form NAME=VALUE")
    with contextlib.suppress(ValueError, SyntaxError):
        found = ast.literal_eval(value.strip())
        return name.strip(), list(found) if isinstance(found, tuple) else found
    return name.strip(), value


def parameter_table(name):
    """Rows on the parameters of a notebook, for the command line and for the book's page."""
    words, quick = vocabulary(name), profile_of("quick").get(name) or {}
    return [
        {
            "name": key, "type": it["inferred_type_name"], "default": it["default"],
            "quick": repr(quick[key]) if key in quick else "", **words[key],
        }
        for key, it in described(source(name)).items()
    ]


def write_comments():
    """Write the words of the vocabulary in parameters cells: ``python -m ppm_book.parameters``."""
    for name in notebooks():
        made, words = nbformat.read(source(name), 4), vocabulary(name)

        def comment(line, words=words):
            if line["name"] not in words:
                raise _unknown("parameter", line["name"], words)
            about = words[line["name"]]
            return f"{line['code'].rstrip()}  # {about['description']}; {about['accepts']}"

        (cell,) = [c for c in made.cells if "parameters" in c.metadata.get("tags", ())]
        text = re.sub(_PARAMETER, comment, cell.source)
        if text != cell.source:
            cell.source = text
            nbformat.write(made, source(name))


def title(name):
    """First heading of a notebook."""
    cells = nbformat.read(source(name), 4).cells
    return re.search(r"^# (.*)$", "\n".join(cell.source for cell in cells), re.M)[1]


if __name__ == "__main__":
    write_comments()
