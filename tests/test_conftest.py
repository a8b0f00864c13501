"""The tests themselves: one that hangs fails, and what they interrupt can be interrupted."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent

HANGING = """
    import asyncio, subprocess, sys, threading, time
    import pytest

    def test_a_lock():
        lock = threading.Lock()
        lock.acquire()
        lock.acquire(timeout=600)

    def test_a_process():
        subprocess.run([sys.executable, "-c", "import time; time.sleep(600)"])

    def test_a_loop():
        async def never():
            # as a notebook's kernel is waited for
            for _ in range(6000):
                await asyncio.sleep(0.1)

        asyncio.run(never())

    @pytest.fixture
    def fixture():
        time.sleep(600)

    def test_a_fixture(fixture):
        pass

    @pytest.fixture
    def afterwards():
        yield
        time.sleep(600)

    def test_an_end(afterwards):
        pass

    def test_that_ends():
        pass
"""

INTERRUPTED = """
    import signal, subprocess, sys
    import pytest

    CODE = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"

    def test_here():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)

    def test_in_a_program_that_is_started():
        started = subprocess.run([sys.executable, "-c", CODE], stdout=subprocess.PIPE, text=True)
        assert started.stdout == "True\\n"
"""


def pytest_on(folder, text, *before, plugin="conftest", **environment):
    """What pytest says of tests, under our conftest or another plugin."""
    (folder / "test_it.py").write_text(textwrap.dedent(text))
    paths = [str(TESTS), str(TESTS.parent)]
    command = [sys.executable, "-m", "pytest", "-q", "-rA", "-p", plugin, "-p", "no:cacheprovider"]
    return subprocess.run(
        [*before, *command, "test_it.py"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)} | environment,
        capture_output=True,
        text=True,
    ).stdout


@pytest.mark.skipif(os.name == "nt", reason="needs an alarm")
def test_a_test_that_hangs_fails_and_the_next_one_runs(tmp_path):
    told = pytest_on(tmp_path, HANGING, PPM_SECONDS_FOR_A_TEST="1")
    assert "3 failed, 2 passed, 2 errors" in told
    for name in (
        "FAILED test_it.py::test_a_lock",
        "FAILED test_it.py::test_a_process",
        "FAILED test_it.py::test_a_loop",
        "ERROR test_it.py::test_a_fixture",
        "ERROR test_it.py::test_an_end",
    ):
        assert f"{name} - Failed: not done after 1 seconds" in told
    assert "PASSED test_it.py::test_that_ends" in told


@pytest.mark.skipif(os.name == "nt", reason="needs a shell")
def test_interrupts_arrive_where_the_shell_has_them_ignored(tmp_path):
    """As a background job of a script without job control, and some CI, does."""
    ignoring = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh"]
    assert "2 passed" in pytest_on(tmp_path, INTERRUPTED, *ignoring)
    # without our conftest the tests are right to fail
    assert "2 failed" in pytest_on(tmp_path, INTERRUPTED, *ignoring, plugin="no:nbmake")
