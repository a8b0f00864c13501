"""What the notebooks are, and which parameters they take: names, types and ranges."""

import ast
import contextlib
import difflib
import functools
import itertools
import json
import operator
import os
import re
import reprlib
from pathlib import Path

import nbformat
import yaml
from jsonschema import Draft202012Validator, validators

from ppm_book.chapters import running


class Refused(Exception):
    """The reader's own mistake, told in one line: exit status 2."""


class Values(yaml.SafeLoader):
    """YAML in which 1e3 is a number, as on the command line."""


Values.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?[0-9.]+[eE][-+]?[0-9]+$"),
    list("-+.0123456789"),
)

# a number is one only if it is not NaN, which no bound keeps out
NUMBERS = Draft202012Validator.TYPE_CHECKER
Schema = validators.extend(
    Draft202012Validator,
    type_checker=NUMBERS.redefine(
        "number", lambda _, value: NUMBERS.is_type(value, "number") and value == value
    ),
)


def contents(root=None):
    """The table of contents."""
    return yaml.safe_load(Path(root or running.ROOT, "_toc.yml").read_text("utf-8"))


def pages_of(entries):
    """Files of some entries of the table of contents, each before those in its sections."""
    for entry in entries:
        yield entry["file"]
        yield from pages_of(entry.get("sections", []))


def pages(root=None):
    """Files of the book's pages without their endings, in the order of the book."""
    toc = contents(root)
    parts = (pages_of(part["chapters"]) for part in toc["parts"])
    return [toc["root"], *itertools.chain.from_iterable(parts)]


def chapters(root=None):
    """Names of the notebooks that are chapters, in the order of the book."""
    return chapters_among(pages(root))


def chapters_among(pages):
    """Names of the pages that are chapters."""
    return [Path(page).name for page in pages if page.startswith("notebooks/")]


def notebooks():
    """Names of all notebooks, the chapters first."""
    others = sorted(file.stem for file in running.ROOT.glob("notebooks/*.ipynb"))
    return list(dict.fromkeys([*chapters(), *others]))


def source(name):
    """The file of a notebook."""
    return running.ROOT / "notebooks" / f"{name}.ipynb"


def seconds(name):
    """How long a notebook takes on one core, about, as its metadata say of a long one."""
    return nbformat.read(source(name), 4).metadata.get("seconds", 0)


@functools.cache
def described(file):
    """What the parameters cell says: name -> type, default and comment."""
    import papermill

    return papermill.inspect_notebook(str(file))


def defaults(name):
    """Parameters of a notebook, with their defaults."""
    return {
        key: ast.literal_eval(it["default"])
        for key, it in described(known(name)).items()
    }


def known(name):
    """The file of a notebook, if there is one of this name.

    Raises
    ------
    Refused
        If there is none.
    """
    if name not in notebooks():
        raise unknown("notebook", name, notebooks())
    return source(name)


@functools.cache
def schemas():
    """What parameters accept, as JSON Schemas; of one notebook alone by ``NOTEBOOK.PARAMETER``."""
    return yaml.safe_load(
        (running.ROOT / "notebooks" / "parameters.yml").read_text("utf-8")
    )


def unknown(kind, name, accepted):
    """What refuses a name, with those that are accepted and the one that was meant, perhaps."""
    close = difflib.get_close_matches(str(name), list(accepted), 1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return Refused(
        f"unknown {kind} {reprlib.repr(name)}{hint} (accepted: {', '.join(accepted)})"
    )


def checked(notebook, name, value):
    """The value of a parameter as a notebook takes it: paths whole, numbers of one type."""
    accepted = described(source(notebook))
    if not accepted:
        raise Refused(f"{notebook} takes no parameters: it has no cell with that tag")
    if name not in accepted:
        raise unknown("parameter", name, accepted)
    schema = schemas().get(f"{notebook}.{name}") or schemas().get(name)
    if schema is None:
        raise Refused(
            f"parameter {name} of {notebook} has no range in notebooks/parameters.yml: add what it "
            "accepts"
        )
    if "path" in schema and isinstance(value, str) and value:
        value = os.path.abspath(os.path.expanduser(value))
        try:
            os.path.basename(value).encode()
        except UnicodeEncodeError:
            raise Refused(
                f"{name} = {value!r} is not accepted; rename it, in UTF-8"
            ) from None
    # two words of a schema are our own
    if (
        not Schema(schema).is_valid(value)
        or "increasing" in schema
        and any(map(operator.ge, value, value[1:]))
        or "path" in schema
        and value
        and not os.path.exists(value)
    ):
        # a path is shown whole: its end is where one looks for the slip
        shown = repr(value) if "path" in schema else reprlib.repr(value)
        told = f"{name} = {shown} is not accepted"
        raise Refused(f"{told}; {name}: {accepted[name]['help']}")
    # with a point or without one, a number is of the type that the notebook takes
    kind = float if "number" in json.dumps(schema) else int
    return json.loads(
        json.dumps(value), parse_int=kind, parse_float=lambda text: kind(float(text))
    )


def profile_of(profile):
    """What a profile sets: notebook -> parameters."""
    files = {
        file.stem: file
        for file in sorted(running.ROOT.glob("notebooks/profiles/*.yml"))
    }
    if profile not in files:
        raise unknown("profile", profile, files)
    settings = yaml.load(files[profile].read_text("utf-8"), Values) or {}
    if others := sorted(settings.keys() - {*notebooks()}):
        raise unknown(f"notebook in the profile {profile}:", others[0], notebooks())
    return settings


def parameters(name, profile="paper", given=()):
    """All parameters of a notebook: its own, the profile's, and those that were given.

    Raises
    ------
    Refused
        If a name, a type or a value is not accepted.
    """
    values = defaults(name) | (profile_of(profile).get(name) or {}) | dict(given)
    return {key: checked(name, key, value) for key, value in values.items()}


def parsed(text):
    """Name and value of ``NAME=VALUE``; what is no Python literal, or no path, stays text."""
    name, equals, value = text.partition("=")
    if not equals:
        raise Refused(f"-p {text!r} is not of the form NAME=VALUE")
    with contextlib.suppress(ValueError, SyntaxError, TypeError):
        # a tuple becomes a list
        literal = json.loads(json.dumps(ast.literal_eval(value.strip())))
        # a folder may be called 2017
        if isinstance(literal, str) or "path" not in schemas().get(name.strip(), ()):
            value = literal
    return name.strip(), value


def from_file(file):
    """Parameters in a YAML file: name -> value."""
    try:
        text = Path(file).read_text("utf-8")
        values = yaml.load(text, Values)
    # of a date that does not exist comes a plain ValueError
    except (OSError, ValueError, yaml.YAMLError) as error:
        told = getattr(error, "strerror", None) or "it is not YAML in UTF-8"
        raise Refused(f"-f {file} cannot be read: {told}") from None
    if not isinstance(values, dict):
        raise Refused(f"-f {file} must hold parameters, each as NAME: VALUE on a line")
    names = [key.value for key, _ in yaml.compose(text).value]
    if len({*names}) < len(names):
        raise Refused(f"-f {file} gives {max(names, key=names.count)} twice")
    return values


def of_run(folder):
    """The record of an earlier run, from its folder or its ``run.json``."""
    file = Path(folder, "run.json") if Path(folder).is_dir() else Path(folder)
    try:
        record = json.loads(file.read_text("utf-8"))
        record["notebook"], record["profile"], record["parameters"] = (
            str(record["notebook"]),
            str(record["profile"]),
            dict(record["parameters"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        raise Refused(
            f"--like {folder} is no complete run: it has no run.json to read"
        ) from None
    return record


def of_book(root):
    """Folder of the results that the built book shows, of the profile paper if that is there.

    None if no book is built, or if it is made from other data than the file on board, which are their
    owner's alone.
    """
    made = sorted(Path(root, "_build", "results").glob("*"))
    for folder in sorted(made, key=lambda folder: folder.name != "paper"):
        records = [folder / name / "run.json" for name in chapters(root)]
        if all(map(Path.is_file, records)) and not any(
            "ce_data_hash" in json.loads(file.read_text("utf-8")) for file in records
        ):
            return folder
    return None


def parameter_table(name):
    """Rows on the parameters of a notebook, for the command line and for the book's page."""
    quick = profile_of("quick").get(name) or {}
    return [
        it | {"quick": repr(quick[key]) if key in quick else ""}
        for key, it in described(source(name)).items()
    ]


def listing(name):
    """Lines on a notebook and its parameters, for the command line."""
    known(name)
    return "\n".join(
        [
            f"{name}: {title(name)}",
            *(
                "    {name}: {inferred_type_name} = {default}\n        {help}".format_map(
                    row
                )
                for row in parameter_table(name)
            ),
        ]
    )


def title(name):
    """First heading of a notebook."""
    cells = nbformat.read(source(name), 4).cells
    return re.search(r"^# (.*)$", "\n".join(cell.source for cell in cells), re.M)[1]
