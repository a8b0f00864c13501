"""What tests share: tiny repositories, a kernel that is ours, a limit on their time."""

import contextlib
import io
import json
import os
import shutil
import signal
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

try:
    import resource
except ImportError:
    # Windows
    resource = None

from ppm.publishing.execution import kernel_environment
from ppm.publishing.parameters import PARAMETERS, check_values

ROOT = Path(__file__).resolve().parents[1]


# ends what hangs, and nothing that is slow on a busy machine; nbmake has its own for each cell
SECONDS_FOR_A_TEST = float(os.environ.get("PPM_SECONDS_FOR_A_TEST", 3600))

_running = contextlib.ExitStack()

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
    longest = "test_no_page_has_a_fault_and_search_works_from_disk"
    items.sort(key=lambda item: (item.name != longest, item.path.suffix != ".ipynb"))


def pytest_configure(config):
    """The kernel ``python3`` is this interpreter, whatever kernels the user has installed.

    Notebooks that nbmake collects use no fixtures, therefore this is none. A shell without job
    control has its background jobs ignore interrupts, and so would the programs that tests start
    and interrupt.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    _running.enter_context(kernel_environment())


def pytest_unconfigure(config):
    """Remove the kernel."""
    _running.close()


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


def is_running(process):
    """Whether a process is there, giving it a moment to go."""
    import psutil

    for _ in range(50):
        if not psutil.pid_exists(process) or (
            psutil.Process(process).status() == psutil.STATUS_ZOMBIE
        ):
            return False
        time.sleep(0.1)
    return True


needs_file_limit = pytest.mark.skipif(resource is None, reason="needs a limit on files")


@pytest.fixture
def file_limit():
    """Context in which no file can grow beyond some bytes: what a full disk does, for everybody."""

    @contextlib.contextmanager
    def limit(size):
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return limit


def markdown(text):
    """A Markdown cell."""
    return {"cell_type": "markdown", "id": "", "metadata": {}, "source": text}


def code(text, **metadata):
    """A code cell without outputs."""
    return {
        "cell_type": "code",
        "id": "",
        "metadata": metadata,
        "source": text,
        "execution_count": None,
        "outputs": [],
    }


def write_notebook(path, cells):
    """Write a notebook; its cells are numbered."""
    numbered = [{**cell, "id": f"cell-{number}"} for number, cell in enumerate(cells)]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {
        "cells": numbered,
        "metadata": {"kernelspec": kernel},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1), "utf-8")
    return path


def parameters_cell(**values):
    """Source of a parameters cell, as every notebook has it: one line a parameter."""
    return "\n".join(
        f"{name}: {PARAMETERS[name].type} = {value!r}  # {PARAMETERS[name].comment}"
        for name, value in check_values(values, PARAMETERS).items()
    )


def checking_cell(names):
    """Source of the cell behind the parameters cell, which refuses bad values."""
    arguments = "".join(f"    {name}={name},\n" for name in names)
    return f"page.check(\n{arguments})"


def chapter(title, cells=(), **defaults):
    """Cells of a small chapter with parameters."""
    defaults = defaults or {"seed": 1}
    return [
        markdown(f"# {title}\n\n## Objectives\n\n- See how {title.lower()} works.\n"),
        code("import ppm\nfrom ppm_book import page"),
        code(parameters_cell(**defaults), tags=["parameters"]),
        code(checking_cell(defaults)),
        *cells,
    ]


FIGURE = code(
    "import matplotlib.pyplot as plt\n"
    "figure, axes = plt.subplots(figsize=(2, 1))\n"
    "axes.plot([0, 1], [0, seed])\n"
    "plt.close(figure)\n"
    "figure",
    mystnb={
        "figure": {"caption": "A line that rises.", "name": "fig-line"},
        "image": {"alt": "Line from the lower left to the upper right."},
    },
)


@pytest.fixture(scope="module")
def no_compiler():
    """No C compiler for PyTensor, as in the library: few functions are called often enough."""
    import pytensor

    with pytensor.config.change_flags(cxx=""):
        yield


@pytest.fixture
def tiny_book(tmp_path):
    """A repository with two small notebooks, and this one's settings and library."""
    root = tmp_path / "a repository"
    shutil.copytree(
        ROOT / "ppm", root / "ppm", ignore=shutil.ignore_patterns("__pycache__", "*.pyc")
    )
    shutil.copy(ROOT / "_config.yml", root)
    shutil.copytree(ROOT / "book" / "_static", root / "book" / "_static")
    for template in ("parameters", "ledger", "checks"):
        shutil.copy(ROOT / "book" / f"{template}.md", root / "book")
    (root / "requirements.lock").write_text("numpy==2.0\n")
    (root / "_toc.yml").write_text(
        "format: jb-book\nroot: book/intro\nchapters:\n"
        "  - file: notebooks/counts\n  - file: notebooks/prose\n  - file: book/parameters\n"
    )
    (root / "book" / "intro.md").write_text("# Introduction\n\nSee {numref}`fig-line`.\n")
    (root / "book" / "references.bib").write_text("")
    study = code(
        "study = ppm.studies.contraction(sizes=sizes, replicates=replicates, random_seed=seed)\n"
        "print('largest size', max(sizes))"
    )
    write_notebook(
        root / "notebooks" / "counts.ipynb",
        chapter(
            "Counts", [study, FIGURE], replicates=400, sizes=[100, 400], truncate_at=3.5, seed=1
        ),
    )
    write_notebook(
        root / "notebooks" / "prose.ipynb",
        chapter("Prose", [code("print(ppm.epsilon(1.5))")], ce_data="", seed=2),
    )
    profiles = root / "notebooks" / "profiles"
    profiles.mkdir()
    (profiles / "paper.yml").write_text("counts: {}\n")
    (profiles / "quick.yml").write_text("counts:\n  replicates: 2\n")
    return root


@pytest.fixture(scope="session")
def this_book(tmp_path_factory):
    """The repository, with its book built once for all tests from the values that nbmake uses.

    Where several processes share the tests, the first one that needs it builds it for all.
    """
    from ppm.publishing.files import FolderInUse, alone_in

    folder = tmp_path_factory.getbasetemp()
    folder = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "this"
    root = folder / "book"
    while True:
        try:
            with alone_in(folder):
                if not (root / "_build" / "html" / "index.html").is_file():
                    _build_this_book(root)
                return root
        except FolderInUse:
            time.sleep(0.5)


def _build_this_book(root):
    from ppm.publishing import book
    from ppm.publishing.notebooks import cell_tags, find_notebooks, read_cells

    shutil.rmtree(root, ignore_errors=True)
    for folder in ("book", "notebooks", "ppm"):
        shutil.copytree(ROOT / folder, root / folder)
    for file in ("_config.yml", "_toc.yml", "requirements.lock"):
        shutil.copy(ROOT / file, root)
    small = {}
    for name, notebook in find_notebooks(root).items():
        (cell,) = [c for c in read_cells(notebook.path) if "parameters" in cell_tags(c)]
        small[name] = cell["metadata"]["nbmake"]["mock"]
    study = {"ledger": {"studies": 10, "replicates": 3, "seed": 1}}
    (root / "notebooks" / "profiles" / "small.yml").write_text(json.dumps(small | study))
    told = io.StringIO()
    assert book.build(root, profile="small", out=told) == 0, told.getvalue()
