"""Execute notebooks: with a kernel of this interpreter, papermill, and nobody else looking on."""

import contextlib
import datetime
import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path

from ppm._validation import install_line
from ppm.disclosure import owner_only
from ppm.publishing.files import one_line, write_whole
from ppm.publishing.kernels import ending_kernels
from ppm.publishing.notebooks import NotebookFailed, content_hash
from ppm.studies.engine import environment_of


@contextlib.contextmanager
def kernel_environment(results=None, fits=None, engine=None):
    """Make ``python3`` the kernel of the running interpreter and of this library.

    A kernel of the same name in the user's home would otherwise be able to take its place, and
    start-up files of the user's IPython would run before the notebook.

    Parameters
    ----------
    results : path-like, optional
        Folder for :func:`ppm.publishing.save`; without it tables are not saved.
    fits : path-like, optional
        Folder for :func:`ppm.publishing.fits_folder`; without it fits are not kept.
    engine : dict, optional
        What :func:`ppm.studies.engine.environment_of` returned: where studies run.
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
                **(engine or environment_of()),
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


def execute(
    notebook, output, values, *, results=None, fits=None, engine=None, progress=None
):
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
    engine : dict, optional
        As for :func:`kernel_environment`.
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
        kernel_environment(results, fits, engine),
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
