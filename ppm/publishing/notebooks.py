"""Find, describe, check and run the notebooks: the one module of the library that knows them."""

import ast
import contextlib
import datetime
import hashlib
import io
import itertools
import json
import os
import re
import sys
import tempfile
import time
import tokenize
from dataclasses import dataclass
from pathlib import Path

from ppm._imports import install_line, needed_for, require
from ppm.disclosure import leave_note, own_folder, owner_only
from ppm.publishing.files import one_line, shortened, write_whole
from ppm.publishing.kernels import ending_kernels
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
        return json.loads(Path(path).read_text("utf-8"))["cells"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NotebookError(f"{path} is not a notebook that can be read: {error}") from None


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
        refuse(error.lineno, error.msg)
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
        except (ValueError, SyntaxError):
            refuse(line, f"{name} needs a literal value")
    return defaults


def cell_comments(source):
    """Comment behind each parameter of a parameters cell.

    Parameters
    ----------
    source : str
        Text of the cell.

    Returns
    -------
    dict
        Parameter name -> comment, without ``#``; empty text where there is none.
    """
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    on_line = {t.start[0]: t.string[1:].strip() for t in tokens if t.type == tokenize.COMMENT}
    return {
        statement.target.id: on_line.get(statement.end_lineno, "")
        for statement in ast.parse(source).body
        if isinstance(statement, ast.AnnAssign)
    }


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
    try:
        return where, yaml.safe_load(paths[profile].read_text("utf-8")) or {}
    except yaml.YAMLError as error:
        first = str(error).splitlines()[0]
        raise NotebookError(f"{where} cannot be read: {first}") from None


@contextlib.contextmanager
def kernel_environment(results=None, fits=None):
    """Make ``python3`` the kernel of the running interpreter and of this library.

    A kernel of the same name in the user's home would otherwise be able to take its place, and
    start-up files of the user's IPython would run before the notebook.

    Parameters
    ----------
    results : path-like, optional
        Folder for :func:`ppm.publishing.save`; without it tables are not saved.
    fits : path-like, optional
        Folder for :func:`ppm.publishing.fits_folder`; without it fits are not kept.
    """
    library = str(Path(__file__).resolve().parents[2])
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        spec = {
            "display_name": "Python 3",
            "language": "python",
            "argv": [
                sys.executable,
                "-Xfrozen_modules=off",
                "-m",
                "ipykernel_launcher",
                # kernels warn that they talk over TCP, on this machine, and that they were stopped
                "--IPKernelApp.log_level=CRITICAL",
                "-f",
                "{connection_file}",
            ],
            "env": {
                "IPYTHONDIR": str(Path(folder, "ipython")),
                # elsewhere figures would not reach the page
                "MPLBACKEND": "module://matplotlib_inline.backend_inline",
                "PYTHONPATH": _first(library, os.environ.get("PYTHONPATH")),
                "PPM_RESULTS": str(Path(results).resolve()) if results else "",
                "PPM_FITS": str(Path(fits).resolve()) if fits else "",
            },
        }
        file = Path(folder, "kernels", "python3", "kernel.json")
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(spec), "utf-8")
        changes = {
            "JUPYTER_PATH": _first(folder, os.environ.get("JUPYTER_PATH")),
            "JUPYTER_RUNTIME_DIR": str(Path(folder, "runtime")),
        }
        before = {name: os.environ.get(name) for name in changes}
        os.environ.update(changes)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


def _first(entry, path):
    return entry + os.pathsep + path if path else entry


def execute(notebook, output, values, *, results=None, fits=None, progress=None):
    """Execute a notebook with papermill.

    What is written can be read by its owner only. Where the data file lies is not in it.

    Parameters
    ----------
    notebook : Notebook
        The notebook.
    output : path-like
        Where the executed notebook goes, also when a cell fails.
    values : dict
        Parameters that :func:`check` has returned.
    results : path-like, optional
        Folder for the tables that the notebook saves.
    fits : path-like, optional
        Folder for the fits that it keeps, which are confidential.
    progress : bool, optional
        Show a progress bar on standard error; by default where that is a terminal. What the
        kernel writes on standard error is passed on either way.

    Returns
    -------
    float
        Seconds that it took.

    Raises
    ------
    NotebookFailed
        If a cell raises an error, warns, or its kernel dies.
    """
    import nbformat
    import papermill
    from nbclient.exceptions import DeadKernelError

    output = Path(output).resolve()
    source = nbformat.read(notebook.path, 4)
    start = time.perf_counter()
    with (
        owner_only(),
        kernel_environment(results, fits),
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        ending_kernels() as kernels,
    ):
        try:
            papermill.execute_notebook(
                source,
                # papermill takes braces in a path for places to fill in
                str(output).replace("{", "{{").replace("}", "}}"),
                parameters=_with_link(values, folder),
                kernel_name="python3",
                progress_bar=sys.stderr.isatty() if progress is None else progress,
                stderr_file=sys.stderr,
                cwd=folder,
                **kernels.settings(),
            )
        except papermill.PapermillExecutionError as error:
            first = (error.source.strip().splitlines() or [""])[0]
            told = (str(error.evalue).strip().splitlines() or [""])[0]
            absent = re.fullmatch(r"No module named '(\w+)[\w.]*'", told)
            if absent and install_line(absent[1]):
                told += f": {install_line(absent[1])}"
            raise NotebookFailed(
                f"{notebook.name}, cell [{error.exec_count}] ({first}): {error.ename}: {told}"
            ) from None
        except DeadKernelError:
            raise NotebookFailed(f"{notebook.name}: the kernel died (out of memory?)") from None
        except RuntimeError as error:
            # it ended before it was there, as where its own folder is full
            raise NotebookFailed(f"{notebook.name}: no kernel: {one_line(error)}") from None
        finally:
            _strip_paths(output, values)
    for cell in nbformat.read(output, 4).cells:
        warned = re.search(r"^.*\b\w*Warning: .*$", _stderr(cell), re.MULTILINE)
        if warned:
            line = re.sub(r"^\S+?:\d+: ", "", warned.group())
            raise NotebookFailed(f"{notebook.name}, cell [{cell.execution_count}]: {line}")
    return time.perf_counter() - start


def fits_of(root):
    """Folder of a repository in which runs keep their fits, so that none is made twice."""
    return Path(root, "_build", "fits")


def _stderr(cell):
    return "".join(
        output.text
        for output in cell.get("outputs", [])
        if output.output_type == "stream" and output.name == "stderr"
    )


def _with_link(values, folder):
    """Parameters with the data file's name alone; in the folder it leads to the file."""
    path = values.get("ce_data")
    if not path:
        return values
    link = Path(folder, Path(path).name or "data")
    try:
        link.symlink_to(path)
    except OSError:
        # not every system lets its users make links
        return values
    return {**values, "ce_data": link.name}


def _strip_paths(path, values):
    """Papermill notes where it read and wrote, and the data's folder; that is nobody's business."""
    import nbformat

    if not path.is_file():
        return
    try:
        notebook = nbformat.read(path, 4)
        notebook.metadata.get("papermill", {}).update(input_path=path.name, output_path=path.name)
        if values.get("ce_data"):
            notebook = _without_path(notebook, values["ce_data"])
        write_whole(path, nbformat.writes(notebook) + "\n")
    except ValueError:
        # half of a notebook, where the disk is full
        path.unlink()
    except OSError:
        # nor may one stay that names the folders
        path.unlink()
        raise


def _without_path(content, path):
    """The content with the name of a file wherever its path stands."""
    if isinstance(content, str):
        return content.replace(path, Path(path).name)
    if isinstance(content, dict):
        return type(content)({key: _without_path(part, path) for key, part in content.items()})
    if isinstance(content, list):
        return [_without_path(part, path) for part in content]
    return content


@owner_only()
def run(root, name, values, *, profile=DEFAULT_PROFILE, output=None, progress=None):
    """Run a notebook with new parameters and leave a folder with everything about the run.

    Parameters
    ----------
    root : path-like
        The repository.
    name : str
        Name of the notebook.
    values : dict
        Parameters; they take precedence over the profile's.
    profile : str, default "paper"
        Profile of ``notebooks/profiles``.
    output : path-like, optional
        Folder to fill, which must be empty or not exist; by default ``runs/<name>-<time>``. One
        that is made can be opened by its owner only; one that exists keeps its permissions, but
        what is put into it is its owner's alone.
    progress : bool, optional
        As for :func:`execute`.

    Returns
    -------
    pathlib.Path
        The folder, with the executed notebook, a page to open, the tables, and ``run.json``: what
        was run. ``CONFIDENTIAL.txt`` is among them where a data file was given.

    Raises
    ------
    ParameterError, NotebookError
        If a name or a value is not accepted, or the folder is not empty, belongs to another run
        or cannot be written into; nothing has been written then.
    NotebookFailed
        If a cell fails; the folder keeps the half-executed notebook.
    OSError
        If a file cannot be written, as on a full disk. However a run ends, its ``run.json`` says
        ``complete`` only if everything is there.
    """
    notebooks = find_notebooks(root)
    notebook = pick_notebook(notebooks, name)
    values = check(notebook, values)
    require("book", "ppm run")
    values = {**load_profile(root, profile, notebooks)[notebook.name], **values}
    record = run_record(notebook, values, profile)
    # what a run says that was killed, or could not write at its end
    record["status"] = "unfinished"
    folder = _folder_of_the_run(output, notebook.name, record)
    executed = folder / f"{notebook.name}.ipynb"
    start = time.perf_counter()
    try:
        if values.get("ce_data"):
            leave_note(folder, Path(values["ce_data"]).name)
        execute(
            notebook, executed, values, results=folder, fits=fits_of(root), progress=progress
        )
        record["seconds"] = round(time.perf_counter() - start, 1)
        from ppm.publishing.book import render_page

        render_page(root, executed, record)
        write_json(folder / "run.json", {**record, "status": "complete"})
    except BaseException as error:
        record["seconds"] = round(time.perf_counter() - start, 1)
        failed = isinstance(error, Exception)
        record["status"] = (
            f"failed: {one_line(error, with_file=False)}" if failed else "interrupted"
        )
        with contextlib.suppress(OSError):
            write_json(folder / "run.json", record)
        raise
    return folder


def _folder_of_the_run(output, name, record):
    """A folder for one run alone: of several it belongs to the one that makes ``run.json``."""
    start = Path("runs", f"{name}-{datetime.datetime.now():%Y%m%d-%H%M%S}")
    others = (Path(f"{start}-{number}") for number in itertools.count(2))
    for folder in [Path(output)] if output else itertools.chain([start], others):
        mark = folder / "run.json"
        try:
            # not Path.exists, which raises an error for a name that is too long
            if not os.path.exists(folder):
                own_folder(folder)
            if any(folder.iterdir()) or not _made(mark):
                continue
        except OSError as error:
            told = f"the output folder {shortened(folder)} cannot be used: {error.strerror}"
            raise NotebookError(told) from None
        try:
            write_json(mark, record)
        except BaseException:
            mark.unlink()
            raise
        return folder
    raise NotebookError(f"the output folder {output} exists and is not empty")


def _made(path):
    """Whether this process made a file, and no other before."""
    try:
        path.open("x").close()
    except FileExistsError:
        return False
    return True


def run_record(notebook, values, profile):
    """What was run, for ``run.json`` and the box at a chapter's beginning; holds no paths."""
    import platform
    from importlib import metadata

    import ppm

    parameters = {**notebook.parameters, **values}
    record = {
        "notebook": notebook.name,
        "profile": profile,
        "parameters": dict(parameters),
        "changed": [name for name in values if values[name] != notebook.parameters[name]],
        "started": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "versions": {"ppm": ppm.__version__},
    }
    if parameters.get("ce_data"):
        record["parameters"]["ce_data"] = os.path.basename(parameters["ce_data"])
        record["ce_data_sha256"] = content_hash(parameters["ce_data"])
    for package in ("numpy", "scipy", "pandas", "xarray", "matplotlib", "pymc", "papermill"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            record["versions"][package] = metadata.version(package)
    return record


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
