"""What tests share: the executed notebooks and the book made of them."""

import json
import os
import resource
import shutil
import signal
import sys
from datetime import datetime
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parents[1]

# with `make test THOROUGH=yes`, or THOROUGH=yes in front of pytest, tests that have the mark
# `thorough` run too: long ones, and those that break something to see that it is noticed
THOROUGH = os.environ.get("THOROUGH") == "yes"
# The examples of property-based tests: always the same few, and thoroughly many, other ones each
# time. PPM_EXAMPLES says how many. No test is timed, not by a health check either.
UNTIMED = {
    "database": None,
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow],
}
settings.register_profile("suite", derandomize=True, max_examples=30, **UNTIMED)
EXAMPLES = int(os.environ.get("PPM_EXAMPLES", 300))
settings.register_profile(
    "thorough", derandomize=False, max_examples=EXAMPLES, **UNTIMED
)
settings.load_profile("thorough" if THOROUGH else "suite")


def examples(count):
    """Other than the usual number of examples in the suite, where one takes long or little.

    Thoroughly their share stays the same.
    """
    usual, suite = (
        settings.get_profile(name).max_examples for name in ("thorough", "suite")
    )
    if not THOROUGH:
        return settings(max_examples=count)
    return settings(max_examples=max(1, usual * count // suite))


def pytest_configure(config):
    """A shell without job control has its background jobs ignore interrupts, and ours as well."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def full_disk(monkeypatch):
    """A function that sets how many bytes a file may have: what exceeds them is cut short."""
    # what is imported meanwhile would be cut short too, for good
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    own = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda most: resource.setrlimit(resource.RLIMIT_FSIZE, (most, own[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, own)


@pytest.fixture
def heard():
    """Signals that end a command, heard even where a shell or ``nohup`` has them ignored."""
    before = {
        number: signal.signal(number, signal.SIG_DFL)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(autouse=True)
def own_state():
    """What a command sets for its process, which here is that of all tests, ends with the test.

    Each begins with the usual umask, and with no open figure. What a library sets when it is
    imported stays.
    """
    umask, folder, before = os.umask(0o022), os.getcwd(), dict(os.environ)
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")
    os.umask(umask)
    os.chdir(folder)
    own = {name for name in os.environ if name.startswith("PPM_")} - before.keys()
    for name in own:
        del os.environ[name]
    del before["PYTEST_CURRENT_TEST"]
    os.environ.update(before)


def pytest_xdist_auto_num_workers(config):
    """One process more than cores: some wait for a browser, a clock or another one's notebook."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(config, items):
    """Leave out what only a thorough run has; begin with the book in a browser, which takes longest."""
    if not THOROUGH:
        kept, left = [], []
        for item in items:
            (left if item.get_closest_marker("thorough") else kept).append(item)
        config.hook.pytest_deselected(items=left)
        items[:] = kept
    items.sort(key=lambda item: "browser" not in item.fixturenames)


# as `pytest --nbmake notebooks` runs them, on copies that keep their outputs
NBMAKE = (
    "--disable-plugin-autoload",
    "-p",
    "nbmake.pytest_plugin",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:faulthandler",
    "--nbmake",
    "--nbmake-timeout=3600",
    "--overwrite",
)


class Notebooks:
    """The notebooks as nbmake executes them, each once for all tests and processes."""

    def __init__(self, folder):
        self.folder = folder

    def executed(self, name):
        """Folder of a notebook with its outputs, tables and ``run.json``."""
        import nbformat

        from ppm_book.chapters import running
        from ppm_book.tools import parameters, studio

        folder = self.folder / "results" / name
        notebook = folder / f"{name}.ipynb"
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_suffix(".lock")):
            if not (folder / "run.json").is_file():
                shutil.copy(parameters.source(name), notebook)
                began = datetime.now().astimezone()
                with running.own_kernel(PPM_RESULTS=str(folder)):
                    assert pytest.main([str(notebook), *NBMAKE]) == 0
                studio.refuse_warnings(notebook)
                cells = nbformat.read(notebook, 4).cells
                (cell,) = [
                    c for c in cells if "parameters" in c.metadata.get("tags", ())
                ]
                values = parameters.parameters(
                    name, given=cell.metadata["nbmake"]["mock"]
                )
                record = studio.record_of(name, values, "small", began)
                record["seconds"] = (
                    datetime.now().astimezone() - began
                ).total_seconds()
                studio.complete(folder, record)
        return folder


@pytest.fixture(scope="session")
def notebooks(tmp_path_factory):
    """What executes the notebooks; several processes share the results."""
    folder = tmp_path_factory.getbasetemp()
    return Notebooks(
        (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "book"
    )


@pytest.fixture(scope="session")
def this_book(notebooks):
    """Folder of the book's pages, made of the notebooks that nbmake executed."""
    from ppm_book.tools import pages, parameters

    html, stage = notebooks.folder / "html", notebooks.folder / "stage"
    with FileLock(notebooks.folder.with_suffix(".lock")):
        if not html.is_dir():
            folders = {
                name: notebooks.executed(name) for name in parameters.notebooks()
            }
            pages.stage(stage, notebooks.folder / "results")
            claims = {}
            for name in parameters.chapters():
                record = json.loads((folders[name] / "run.json").read_text("utf-8"))
                claims[name] = pages.stage_notebook(
                    folders[name] / f"{name}.ipynb", stage, record
                )
            pages.check_pages(stage, claims, "small")
            pages.sphinx(stage, html)
    return html
