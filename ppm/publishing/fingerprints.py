"""What chapters and pages are made from, so that only what changed is made again."""

import ast
import functools
import hashlib
import json
import re
from pathlib import Path

from ppm_book.page import VALUES_FILE

from ppm.publishing.notebooks import LEDGER, BookError, cell_source, content_hash, read_cells


def study_file(results):
    return Path(results, LEDGER, VALUES_FILE)


def notebook_fingerprint(root, notebook, values):
    """What an executed notebook is made from.

    Parameters
    ----------
    root : path-like
        The repository.
    notebook : Notebook
        The notebook.
    values : dict
        Its parameters, checked.

    Returns
    -------
    dict
        Name of each input -> hash or value: the notebook, the tables of the folder ``book`` that it
        names, every parameter, the modules of the library that it reaches, and the lock file.
    """
    parts = {f"notebooks/{notebook.path.name}": content_hash(notebook.path)}
    text = notebook.path.read_text("utf-8")
    for table in sorted(Path(root, "book").glob("*.csv")):
        if table.name in text:
            parts[f"book/{table.name}"] = content_hash(table)
    for name, value in {**notebook.parameters, **values}.items():
        if name == "ce_data" and value:
            # the same file in another folder is the same data; its name stands on the page
            value = f"{Path(value).name} {content_hash(value)}"
        parts[f"parameter {name}"] = value
    return parts | code_fingerprint(root, reached_modules(Path(root, "ppm"), notebook.path))


def code_fingerprint(root, modules):
    """Hashes of modules of the library and of the lock file."""
    library = Path(root, "ppm")
    parts = {f"ppm/{module}": content_hash(library / module) for module in sorted(modules)}
    lock = Path(root, "requirements.lock")
    if lock.is_file():
        parts["requirements.lock"] = content_hash(lock)
    return parts


def changes(before, now):
    """Sentences on what differs between two fingerprints; none if they are equal.

    Parameters
    ----------
    before : dict or None
        Earlier fingerprint, if there is one.
    now : dict
        Present fingerprint.
    """
    if not before:
        return ["for the first time"]
    sentences = []
    for part in {**before, **now}:
        if part not in before:
            sentences.append(f"{part} is new")
        elif part not in now:
            sentences.append(f"{part} is gone")
        elif before[part] != now[part]:
            sentences.append(f"{part} changed")
    return sentences


def reached_modules(library, path):
    """Files of the library that a notebook depends on, directly or through other modules.

    Nothing is imported: names such as ``ppm.local_bound`` or ``ppm_book.survey.load`` are looked up
    the tables of exports, and imports inside functions count. ``ppm/__init__.py`` itself does not,
    because it only forwards.

    Parameters
    ----------
    library : path-like
        Folder of the package ``ppm``.
    path : path-like
        The notebook.

    Returns
    -------
    set of str
        Paths relative to ``library``.
    """
    library = Path(library)
    code = "\n".join(
        _without_magics(cell_source(cell))
        for cell in read_cells(path)
        if cell["cell_type"] == "code"
    )
    try:
        names = _mentioned(code)
    except SyntaxError as error:
        raise BookError(f"{Path(path).name} has a code cell that is no Python: {error}") from None
    return library_modules(library, names)


def library_modules(library, names):
    """Files of the library behind dotted names and behind everything that these import.

    Parameters
    ----------
    library : path-like
        Folder of the package ``ppm``.
    names : set of str
        Dotted names, such as ``ppm.lipschitz``.

    Returns
    -------
    set of str
        Paths relative to ``library``.
    """
    library = Path(library)
    exports = _export_table(library)
    found, waiting = set(), set(names)
    while waiting:
        for file in _files(library, waiting.pop(), exports):
            if file not in found:
                found.add(file)
                waiting |= _mentioned((library / file).read_text("utf-8"))
    return found


def _without_magics(source):
    return "\n".join(
        "pass" if re.match(r"[%!?]", line) else line for line in source.splitlines()
    )


def _export_table(library):
    """Public dotted name -> module that defines it, from ``_EXPORTS`` of every package."""
    found = {}
    for file in library.rglob("__init__.py"):
        package = ".".join(["ppm", *file.relative_to(library).parts[:-1]])
        exported = _exported(file.read_text("utf-8"))
        found |= {f"{package}.{name}": module for name, module in exported.items()}
    if not any(name.count(".") == 1 for name in found):
        raise BookError("ppm/__init__.py has no table _EXPORTS")
    return found


# by the text: the chapters of a book all reach the same modules
@functools.cache
def _exported(text):
    """The table ``_EXPORTS`` of a module's text; empty if it has none."""
    table = {}
    for statement in ast.parse(text).body:
        targets = [ast.unparse(target) for target in getattr(statement, "targets", ())]
        if targets == ["_EXPORTS"]:
            table |= ast.literal_eval(statement.value)
    return table


@functools.cache
def _mentioned(text):
    """Dotted names of the package that Python code mentions."""
    tree = ast.parse(text)
    aliases = {"ppm": "ppm"}
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            aliases |= {a.asname: a.name for a in node.names if a.asname and _is_ours(a.name)}
            names |= {a.name for a in node.names if a.name.startswith("ppm.")}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and _is_ours(node.module or ""):
            for a in node.names:
                names.add(f"{node.module}.{a.name}")
                aliases[a.asname or a.name] = f"{node.module}.{a.name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            head, _, rest = ast.unparse(node).partition(".")
            if head in aliases and re.fullmatch(r"[\w.]+", rest):
                names.add(f"{aliases[head]}.{rest}")
    return frozenset(names)


def _is_ours(module):
    return module == "ppm" or module.startswith("ppm.")


def _files(library, dotted, exports):
    """Files behind a dotted name: the module, and the packages that Python imports before it."""
    parts = dotted.split(".")
    files, inside = [], library
    for length, part in enumerate(parts[1:], start=2):
        name = ".".join(parts[:length])
        known = exports.get(name)
        # a function may be called as its module is
        if known and known != name:
            return files + _files(library, known, exports)
        inside = inside / part
        for file in (inside.with_name(f"{part}.py"), inside / "__init__.py"):
            if file.is_file():
                files.append(str(file.relative_to(library).as_posix()))
    return files


def read_json(path):
    try:
        return json.loads(Path(path).read_text("utf-8"))
    except (OSError, ValueError):
        return {}


def book_fingerprint(root, executed, results, chapters):
    """What the pages are made from: chapters, prose, settings, docstrings, and what stages them."""
    files = [root / "_config.yml", root / "_toc.yml", root / "requirements.lock"]
    files += [file for file in sorted((root / "book").rglob("*")) if file.is_file()]
    files += sorted((root / "notebooks" / "profiles").glob("*.yml"))
    files += sorted((root / "notebooks" / "exercises").glob("*.ipynb"))
    files += [executed / f"{name}{end}" for name in chapters for end in (".ipynb", ".json")]
    files += [results / name / VALUES_FILE for name in (*chapters, LEDGER)]
    files += sorted((root / "_build" / "tests").glob("*.xml"))
    # the reference is made from the library that runs, all of it
    library = Path(__file__).parents[1]
    files += sorted(file for file in library.rglob("*.py") if file.stem != "command_line")
    digest = hashlib.sha256()
    for file in files:
        if file.is_file():
            digest.update(f"{file.parent.name}/{file.name} {content_hash(file)}\n".encode())
    return {"sha256": digest.hexdigest()}
