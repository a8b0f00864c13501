"""Find, describe and check the notebooks, and what profiles set for them."""

import ast
import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

from ppm._validation import needed_for
from ppm.publishing.files import write_whole
from ppm.publishing.parameters import PARAMETERS, ParameterError, check_values, unknown_name

#: the profile of the paper's sizes, which are the notebooks' own defaults
DEFAULT_PROFILE = "paper"
# what a profile calls the study that belongs to the ledger and to no notebook
LEDGER = "ledger"


class NotebookError(ValueError):
    """A notebook, a profile or a folder is not what it has to be; the message is one line."""


class NotebookFailed(RuntimeError):
    """A cell of a notebook raised an error; the message is one line."""


class BookError(NotebookFailed):
    """The book's sources are not what they have to be; the message is one line."""


@dataclass(frozen=True)
class Notebook:
    """What a notebook says about itself.

    Attributes
    ----------
    name : str
        File name without its ending.
    path : pathlib.Path
        The file.
    title : str
        Its first heading.
    objective : str
        First line of its objectives.
    parameters : dict
        Parameter name -> default, in the order of its parameters cell.
    """

    name: str
    path: Path
    title: str
    objective: str
    parameters: dict


def find_root(root=None):
    """Folder of the repository, which holds ``_config.yml`` and ``notebooks/``.

    Parameters
    ----------
    root : path-like, optional
        Where it is. By default the checkout that holds this library is taken, or else the working
        folder or the nearest folder above it that fits.

    Raises
    ------
    NotebookError
        If there is none.
    """
    if root is not None:
        candidates = [Path(root).resolve()]
    else:
        here = Path.cwd()
        candidates = [Path(__file__).resolve().parents[2], here, *here.parents]
    for folder in candidates:
        if (folder / "_config.yml").is_file() and (folder / "notebooks").is_dir():
            return folder
    where = f"{root} is not it" if root is not None else "go into it, or name it with --root"
    raise NotebookError(
        f"cannot find the book's repository (a folder with _config.yml and notebooks/): {where}"
    )


def find_notebooks(root):
    """Notebooks of a repository, in the order of the book.

    Parameters
    ----------
    root : path-like
        The repository.

    Returns
    -------
    dict
        Notebook name -> :class:`Notebook`.

    Raises
    ------
    NotebookError
        If there is no notebook or one has no usable parameters cell.
    """
    paths = sorted(Path(root, "notebooks").glob("*.ipynb"))
    if not paths:
        raise NotebookError(f"there is no notebook in {Path(root, 'notebooks')}")
    toc = Path(root, "_toc.yml")
    order = re.findall(r"notebooks/([\w-]+)", toc.read_text("utf-8")) if toc.is_file() else []
    paths.sort(key=lambda path: order.index(path.stem) if path.stem in order else len(order))
    return {path.stem: describe(path) for path in paths}


def pick_notebook(notebooks, name):
    """The notebook called ``name``; raises :class:`NotebookError` with the names there are."""
    stem = Path(name).stem if str(name).endswith(".ipynb") else str(name)
    if stem not in notebooks:
        raise NotebookError(unknown_name("notebook", name, notebooks))
    return notebooks[stem]


def describe(path):
    """Read a notebook's title, objective and parameters without executing anything.

    Parameters
    ----------
    path : path-like
        The notebook.

    Returns
    -------
    Notebook

    Raises
    ------
    NotebookError
        If the file is no notebook, or its parameters cell holds anything but lines of the form
        ``name: type = value`` with names and types of :mod:`ppm.publishing.parameters`.
    """
    path = Path(path)
    cells = read_cells(path)
    tagged = [cell for cell in cells if "parameters" in cell_tags(cell)]
    if len(tagged) != 1:
        raise NotebookError(
            f"{path.name} has {len(tagged)} cells tagged 'parameters'; it needs exactly one"
        )
    prose = [cell_source(cell) for cell in cells if cell["cell_type"] == "markdown"]
    return Notebook(
        path.stem,
        path,
        _title(prose) or path.stem,
        _objective(prose),
        _defaults(path, cell_source(tagged[0])),
    )


def read_cells(path):
    """Cells of a notebook file; raises :class:`NotebookError` if it is none."""
    try:
        cells = json.loads(Path(path).read_text("utf-8"))["cells"]
        if not (isinstance(cells, list) and all(map(_is_cell, cells))):
            raise ValueError("its cells are none")
        return cells
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise NotebookError(f"{path} is not a notebook that can be read: {error}") from None


def _is_cell(cell):
    """Whether a cell has what is asked of it here; nbformat asks for more."""
    if not isinstance(cell, dict) or not {"cell_type", "source"} <= cell.keys():
        return False
    metadata = cell.get("metadata", {})
    return (
        all(isinstance(text, str) for text in cell["source"])
        and isinstance(cell["source"], (str, list))
        and isinstance(metadata, dict)
        and isinstance(metadata.get("tags", []), list)
    )


def cell_tags(cell):
    """Tags of a cell."""
    return cell.get("metadata", {}).get("tags", [])


def cell_source(cell):
    """Text of a cell, which a notebook file may hold as lines or as one string."""
    return "".join(cell["source"])


def _title(prose):
    for text in prose:
        heading = re.search(r"^# +(.+?)\s*$", text, re.MULTILINE)
        if heading:
            return heading.group(1)
    return ""


def _objective(prose):
    """First line of the objectives (a heading says so), else the first line that is no markup."""
    lines = [line.strip() for text in prose for line in text.splitlines()]
    for number, line in enumerate(lines):
        if re.match(r"(#|\*\*|:::|```).*(objectives|you will learn)", line.lower()):
            lines = lines[number + 1 :]
            break
    for line in lines:
        text = re.sub(r"^([-*+]|\d+[.)]) +", "", line)
        if text and not re.match(r"[#:`(<|]", text) and not text.lower().startswith("after "):
            return text
    return ""


def _defaults(path, source):
    def refuse(line, why):
        raise NotebookError(f"{path.name}, parameters cell, line {line}: {why}")

    try:
        statements = ast.parse(source).body
    except SyntaxError as error:
        refuse(error.lineno or 1, error.msg)
    except (ValueError, MemoryError, RecursionError):
        refuse(1, "it cannot be read as Python")
    defaults = {}
    for statement in statements:
        line = statement.lineno
        if not (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and statement.value is not None
        ):
            refuse(line, "expected name: type = value")
        name, kind = statement.target.id, ast.unparse(statement.annotation)
        if name not in PARAMETERS:
            known = unknown_name("parameter", name, PARAMETERS)
            refuse(line, f"{known}; see ppm/publishing/parameters.py")
        if kind != PARAMETERS[name].type:
            refuse(line, f"{name} has type {PARAMETERS[name].type}, not {kind}")
        try:
            defaults[name] = PARAMETERS[name].check(ast.literal_eval(statement.value))
        except ParameterError as error:
            refuse(line, str(error))
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            refuse(line, f"{name} needs a literal value")
    return defaults


def check(notebook, values):
    """Return parameters for a notebook in their own types, before any kernel starts.

    Parameters
    ----------
    notebook : Notebook
        The notebook they are for.
    values : dict
        Parameter name -> value.

    Raises
    ------
    ParameterError
        One line on the first name that the notebook does not have, or the first value that is not
        accepted.
    """
    for name in values:
        if name not in notebook.parameters:
            known = unknown_name("parameter", name, notebook.parameters)
            raise ParameterError(f"{notebook.name}: {known}")
    values = check_values(values, notebook.parameters)
    if values.get("ce_data"):
        # the kernel works in another folder
        values["ce_data"] = os.path.abspath(os.path.expanduser(values["ce_data"]))
    return values


def load_profile(root, profile, notebooks):
    """Parameters that a profile sets.

    Parameters
    ----------
    root : path-like
        The repository, whose ``notebooks/profiles`` holds one file a profile.
    profile : str
        Name of the profile.
    notebooks : dict
        As :func:`find_notebooks` returns it.

    Returns
    -------
    dict
        Notebook name -> parameters, for every notebook.

    Raises
    ------
    NotebookError
        If there is no such profile or it does not fit the notebooks.
    """
    where, content = _read_profile(root, profile)
    content.pop(LEDGER, None)
    for name in content:
        if name not in notebooks:
            raise NotebookError(f"{where}: {unknown_name('notebook', name, notebooks)}")
    try:
        return {
            name: check(notebook, content.get(name) or {}) for name, notebook in notebooks.items()
        }
    except ParameterError as error:
        raise NotebookError(f"{where}: {error}") from None


def ledger_settings(root, profile):
    """Settings of the ledger's own study in a profile, checked; none without it.

    Parameters
    ----------
    root : path-like
        The repository.
    profile : str
        Name of the profile.

    Raises
    ------
    NotebookError
        If there is no such profile, or its settings are not accepted.
    """
    from ppm.publishing.ledger_study import check_settings

    where, content = _read_profile(root, profile)
    if LEDGER not in content:
        return {}
    try:
        return check_settings(content[LEDGER])
    except ValueError as error:
        raise NotebookError(f"{where}: {error}") from None


def _read_profile(root, profile):
    """Name of a profile's file, and what it holds."""
    with needed_for("a profile"):
        import yaml

    paths = {path.stem: path for path in sorted(Path(root, "notebooks/profiles").glob("*.yml"))}
    if profile not in paths:
        raise NotebookError(unknown_name("profile", profile, paths))
    where = f"notebooks/profiles/{profile}.yml"
    # what PyYAML raises for a wrong value or encoding, and for brackets without end
    faults = (
        yaml.YAMLError, OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError,
    )
    try:
        text = paths[profile].read_text("utf-8")
        twice = _given_twice(yaml.compose(text, yaml.SafeLoader))
        content = yaml.safe_load(text) or {}
    except faults as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise NotebookError(f"{where} cannot be read: {first[:200]}") from None
    if twice is not None:
        raise NotebookError(f"{where}: {twice[:60]!a} is given twice")
    if not isinstance(content, dict):
        raise NotebookError(f"{where} must have names of notebooks, and below each its parameters")
    for name, values in content.items():
        if not (values is None or isinstance(values, dict)):
            raise NotebookError(f"{where}: below {str(name)[:60]!a} there must be parameters")
    return where, content


def _given_twice(node):
    """The first name that stands twice in a profile, on either of its levels; YAML takes the last.
    """
    levels = [node]
    if getattr(node, "id", "") == "mapping":
        levels += [value for _, value in node.value]
    for level in levels:
        seen = set()
        for key, _ in level.value if getattr(level, "id", "") == "mapping" else ():
            if key.id == "scalar" and key.value in seen:
                return key.value
            seen.add(key.value if key.id == "scalar" else id(key))
    return None


def content_hash(path):
    """SHA-256 of a file, or of the files of a folder with their names, as hexadecimal digits."""
    path = Path(path)
    if path.is_file():
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    digest = hashlib.sha256()
    for entry in sorted(entry for entry in path.rglob("*") if entry.is_file()):
        digest.update(f"{entry.relative_to(path).as_posix()} {content_hash(entry)}\n".encode())
    return digest.hexdigest()


def write_json(path, content):
    """Write JSON so that no reader ever sees half of it."""
    write_whole(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def parameter_rows(notebook, profiles=None):
    """Rows of the table of parameters, the same for the command line and the book.

    Parameters
    ----------
    notebook : Notebook
        The notebook.
    profiles : dict, optional
        Profile name -> what :func:`load_profile` returns; one more column each.

    Returns
    -------
    list of dict
        Keys ``name``, ``type``, ``default``, ``meaning``, ``accepted`` and the profiles' names;
        an empty text where a profile leaves the default.
    """
    rows = []
    for name, default in notebook.parameters.items():
        parameter = PARAMETERS[name]
        row = {
            "name": name,
            "type": parameter.type,
            "default": repr(default),
            "meaning": parameter.meaning,
            "accepted": parameter.accepted,
        }
        for profile, settings in (profiles or {}).items():
            values = settings[notebook.name]
            row[profile] = repr(values[name]) if name in values else ""
        rows.append(row)
    return rows
