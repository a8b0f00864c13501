"""Run one notebook with new parameters: ``ppm run``."""

import contextlib
import datetime
import itertools
import os
import time
from pathlib import Path

from ppm._validation import require
from ppm.disclosure import leave_note, own_folder, owner_only
from ppm.publishing.beside import beside_the_book
from ppm.publishing.book import render_page
from ppm.publishing.execution import execute, fits_of, run_record
from ppm.publishing.files import one_line, shortened
from ppm.publishing.notebooks import (
    DEFAULT_PROFILE,
    NotebookError,
    check,
    find_notebooks,
    load_profile,
    pick_notebook,
    write_json,
)
from ppm.studies.engine import environment_of


@owner_only()
def run(
    root, name, values, *, profile=DEFAULT_PROFILE, output=None, workers=None, scheduler=None,
    progress=None,
):
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
    workers : int, optional
        Number of processes on which the notebook's studies run. Neither this nor ``scheduler``
        changes a number, and so they are no parameters.
    scheduler : str, optional
        Address of a Dask scheduler, on whose workers they run instead.
    progress : bool, optional
        As for :func:`ppm.publishing.execution.execute`.

    Returns
    -------
    pathlib.Path
        The folder, with the executed notebook, a page to open, the tables, and ``run.json``: what
        was run. The page ends with the run beside the book's, where that has been built.
        ``CONFIDENTIAL.txt`` is in the folder where a data file was given.

    Raises
    ------
    ParameterError, NotebookError
        If a name or a value is not accepted, no scheduler answers, or the folder is not empty,
        belongs to another run or cannot be written into; nothing has been written then.
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
    try:
        engine = environment_of(workers, scheduler)
    except ValueError as error:
        raise NotebookError(str(error)) from None
    record = run_record(notebook, values, profile)
    given = {"workers": workers, "scheduler": scheduler}
    if engine != environment_of():
        record["engine"] = {key: value for key, value in given.items() if value is not None}
    # what a run says that was killed, or could not write at its end
    record["status"] = "unfinished"
    folder = _folder_of_the_run(output, notebook.name, record)
    executed = folder / f"{notebook.name}.ipynb"
    start = time.perf_counter()
    try:
        if values.get("ce_data"):
            leave_note(folder, Path(values["ce_data"]).name)
        execute(
            notebook, executed, values, results=folder, fits=fits_of(root), engine=engine,
            progress=progress,
        )
        record["seconds"] = round(time.perf_counter() - start, 1)
        closing = beside_the_book(Path(root), folder, record, notebooks)
        render_page(root, executed, record, closing=closing)
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
