"""What tests share: the executed notebooks and the book made of them, a limit on their time."""

import contextlib
import json
import os
import shutil
import signal
import time
from datetime import datetime
from pathlib import Path
from unittest.mock import patch

import nbformat
import pytest
from filelock import FileLock
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parents[1]


# ends what hangs, and nothing that is slow on a busy machine; nbmake has its own for each cell
SECONDS_FOR_A_TEST = float(os.environ.get("PPM_SECONDS_FOR_A_TEST", 3600))

# The examples of property-based tests: in the suite always the same few. With
# PPM_HYPOTHESIS=thorough they are many, other ones each time, and PPM_EXAMPLES says how many:
#     PPM_HYPOTHESIS=thorough PPM_EXAMPLES=5000 python -m pytest tests/properties
# No test is timed, not by a health check either.
settings.register_profile(
    "suite", derandomize=True, database=None, deadline=None, max_examples=30,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "thorough", settings.get_profile("suite"), derandomize=False,
    max_examples=int(os.environ.get("PPM_EXAMPLES", 1000)),
)
settings.load_profile(os.environ.get("PPM_HYPOTHESIS", "suite"))


def examples(count):
    """Other than the usual number of examples in the suite, where one takes long or little.

    In the thorough profile their share stays the same.
    """
    usual, suite = (settings.get_profile(name).max_examples for name in ("thorough", "suite"))
    if settings.default.derandomize:
        return settings(max_examples=count)
    return settings(max_examples=max(1, usual * count // suite))



def pytest_collection_modifyitems(items):
    """What takes longest is run first, so that several processes end at nearly the same time."""
    items.sort(key=lambda item: not {"notebooks", "this_book"} & {*item.fixturenames})


def pytest_configure(config):
    """A shell without job control has its background jobs ignore interrupts, and ours as well."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextlib.contextmanager
def limited():
    """Fail what takes too long, wherever it hangs: a lock, another process, a loop."""
    if not hasattr(signal, "SIGALRM"):
        yield
        return

    def fail(number, frame):
        pytest.fail(f"not done after {SECONDS_FOR_A_TEST:g} seconds")

    before = signal.signal(signal.SIGALRM, fail)
    # again every second: an event loop may have taken the first one for a callback's own
    signal.setitimer(signal.ITIMER_REAL, SECONDS_FOR_A_TEST, 1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    """Fixtures have the same limit as tests."""
    with limited():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """A test that hangs fails."""
    with limited():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item):
    """So does one that cannot be ended."""
    with limited():
        return (yield)


def by_definition(weights, log_lik):
    """What the paper and the diagnostics say of one fit, from its draws x records matrices.

    Shapes (records,) and (chains, draws, records); the names are those of the tables' columns.
    """
    import arviz as az
    import numpy as np
    import xarray as xr

    weighted = weights * log_lik
    largest, total = np.abs(weighted).max(axis=-1), weighted.sum(axis=-1)
    quantities = xr.Dataset(
        {"largest": (("chain", "draw"), largest), "total": (("chain", "draw"), total)}
    )
    r_hat = {name: float(value) for name, value in az.rhat(quantities).items()}
    return {
        "average weight": np.mean(weights),
        "records removed": int(np.sum(weights == 0)),
        "local bound": largest.max(),
        "epsilon, 1 release": 2.0 * largest.max(),
        "epsilon, 3 releases": 6.0 * largest.max(),
        "oscillation bound": np.ptp(weighted, axis=(0, 1)).max(),
        "chains agree": r_hat["largest"] <= 1.05,
        "R-hat": r_hat["largest"],
        "R-hat, log-likelihood": r_hat["total"],
        "effective draws": float(az.ess(quantities)["largest"]),
        "draws": largest.size,
        "smallest bound of a chain": largest.max(axis=1).min(),
        "typical draw": np.median(largest),
    }


class Notebooks:
    """The notebooks as nbmake executed them, each once for all tests and processes."""

    def __init__(self, folder):
        self.folder = folder

    def executed(self, name):
        """Folder of a notebook with its outputs, tables and ``run.json``."""
        from nbmake.nb_run import NotebookRun

        from ppm_book import studio

        folder = self.folder / "results" / name
        folder.mkdir(parents=True, exist_ok=True)
        notebook = folder / f"{name}.ipynb"
        with FileLock(folder.with_suffix(".lock")):
            if not (folder / "run.json").is_file():
                shutil.copy(ROOT / "notebooks" / f"{name}.ipynb", notebook)
                values = self.values(name)
                started, began = datetime.now().astimezone(), time.perf_counter()
                with patch.dict(os.environ, PPM_RESULTS=str(folder)):
                    done = NotebookRun(notebook, 3600).execute()
                assert not done.error, done.error.trace
                nbformat.write(done.nb, notebook)
                studio.refuse_warnings(notebook)
                record = studio.record_of(name, values, "small", started)
                record["seconds"] = time.perf_counter() - began
                (folder / "run.json").write_text(json.dumps(record), "utf-8")
        return folder

    @staticmethod
    def values(name):
        """Its parameters as nbmake sets them."""
        from ppm_book import parameters

        cells = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", 4).cells
        (cell,) = [c for c in cells if "parameters" in c.metadata.get("tags", ())]
        return parameters.parameters(name, given=cell.metadata["nbmake"]["mock"])


@pytest.fixture(scope="session")
def notebooks(tmp_path_factory):
    """What executes the notebooks; several processes share the results."""
    folder = tmp_path_factory.getbasetemp()
    return Notebooks((folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "book")


@pytest.fixture(scope="session")
def this_book(notebooks):
    """Folder of the book's pages, made of the notebooks that nbmake executed."""
    from ppm_book import pages, parameters

    html = notebooks.folder / "html"
    with FileLock(notebooks.folder.with_suffix(".lock")):
        if not html.is_dir():
            records = [
                (folder, json.loads((folder / "run.json").read_text("utf-8")))
                for folder in map(notebooks.executed, parameters.notebooks())
            ]
            stage = notebooks.folder / "stage"
            pages.stage(stage, notebooks.folder / "results")
            for folder, record in records:
                if folder.name in parameters.chapters():
                    pages.stage_notebook(folder / f"{folder.name}.ipynb", stage, record)
            pages.sphinx(stage, html)
    return html
