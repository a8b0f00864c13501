"""Whenever a signal comes, the kernel ends before the program does, and in silence."""

import os
import signal
import sys
import threading
import time

import pytest
from conftest import chapter, code, is_running, write_notebook
from jupyter_client import AsyncKernelManager
from jupyter_client.provisioning import local_provisioner

from ppm.publishing import execution, kernels, notebooks

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends POSIX signals")


class Ended(BaseException):
    """What SIGTERM raises here."""


@pytest.fixture
def ask(request):
    """Send this process a signal that ends it with an error: SIGINT, unless a test says which."""
    asked = getattr(request, "param", signal.SIGINT)

    def end(number, frame):
        raise Ended

    before = signal.signal(asked, end)
    yield lambda: os.kill(os.getpid(), asked)
    signal.signal(asked, before)


@pytest.fixture
def launched(monkeypatch):
    """Processes of kernels, with what is to be done before and after one is launched."""
    original = local_provisioner.launch_kernel

    class Launched(list):
        before = after = staticmethod(lambda: None)

    found = Launched()

    def launch(*arguments, **options):
        found.before()
        process = original(*arguments, **options)
        found.append(process)
        found.after()
        return process

    monkeypatch.setattr(local_provisioner, "launch_kernel", launch)
    return found


def execute(tmp_path, *cells):
    """Execute a small notebook."""
    path = write_notebook(tmp_path / "small.ipynb", chapter("Small", [code(c) for c in cells]))
    execution.execute(notebooks.describe(path), tmp_path / "out.ipynb", {}, progress=False)


def later(do, *, ready=lambda: True, seconds=0.0):
    """Do something from another thread, once something else is so."""

    def wait():
        while not ready():
            time.sleep(0.01)
        time.sleep(seconds)
        do()

    threading.Thread(target=wait, daemon=True).start()


def ended(process):
    """Whether a process is gone, and has been taken notice of."""
    return process.returncode is not None and not is_running(process.pid)


@pytest.mark.parametrize(
    ("ask", "moment"),
    [(signal.SIGTERM, "before"), (signal.SIGINT, "after"), (signal.SIGTERM, "starting")],
    ids=["before", "after", "starting"],
    indirect=["ask"],
)
def test_a_signal_while_a_kernel_starts_ends_it(tmp_path, capfd, ask, launched, moment):
    if moment == "starting":
        launched.after = lambda: later(ask, seconds=0.3)
    else:
        setattr(launched, moment, ask)
    mark = tmp_path / "mark"
    with pytest.raises(Ended):
        execute(tmp_path, f"from pathlib import Path\nPath({str(mark)!r}).touch()")
    assert len(launched) == 1 and ended(launched[0]) and not mark.exists()
    assert capfd.readouterr() == ("", "")
    # the signal is again what it was
    with pytest.raises(Ended):
        ask()
        time.sleep(1)


def test_a_signal_before_the_kernel_is_launched_leaves_none(
    tmp_path, capfd, ask, launched, monkeypatch
):
    settings = kernels.Kernels.settings

    def asked(self):
        ask()
        return settings(self)

    monkeypatch.setattr(kernels.Kernels, "settings", asked)
    with pytest.raises(Ended):
        execute(tmp_path, "1 + 1")
    assert not launched
    assert capfd.readouterr() == ("", "")


CLEANING = """
import time
from pathlib import Path
mark = Path({mark!r})
try:
    mark.write_text("begun")
    time.sleep(600)
finally:
    mark.write_text("cleaned up")
"""


def test_a_cell_can_clean_up_behind_itself(tmp_path, capfd, ask, launched):
    mark = tmp_path / "mark"
    later(ask, ready=mark.is_file, seconds=0.1)
    with pytest.raises(Ended):
        execute(tmp_path, CLEANING.format(mark=str(mark)), "print('after')")
    assert mark.read_text() == "cleaned up"
    assert ended(launched[0])
    assert capfd.readouterr() == ("", "")
    executed = (tmp_path / "out.ipynb").read_text("utf-8")
    assert '"KeyboardInterrupt"' in executed and '"after\\n"' not in executed


DEAF = """
import signal, subprocess, sys, time
from pathlib import Path
signal.signal(signal.SIGINT, signal.SIG_IGN)
other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
mark = Path({mark!r})
mark.write_text(str(other.pid))
time.sleep(15)
mark.write_text("-1")
"""


@pytest.mark.parametrize(
    ("ask", "again"),
    [(signal.SIGTERM, False), (signal.SIGINT, True)],
    ids=["waiting", "asked again"],
    indirect=["ask"],
)
def test_a_cell_that_does_not_listen_is_killed_with_what_it_started(
    tmp_path, capfd, ask, launched, monkeypatch, again
):
    # asked again, it has no time at all
    monkeypatch.setattr(kernels, "SECONDS_TO_END", 600 if again else 0.3)
    mark = tmp_path / "mark"
    later(ask, ready=lambda: mark.is_file() and mark.read_text())
    if again:
        later(ask, ready=lambda: mark.is_file() and mark.read_text(), seconds=0.5)
    with pytest.raises(Ended):
        execute(tmp_path, DEAF.format(mark=str(mark)))
    other = int(mark.read_text())
    assert other > 0, "it came to its own end"
    assert ended(launched[0]) and not is_running(other)
    assert capfd.readouterr() == ("", "")


def test_a_signal_that_is_ignored_stays_ignored(tmp_path, launched):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        launched.after = lambda: os.kill(os.getpid(), signal.SIGINT)
        execute(tmp_path, "1 + 1")
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_kernel_that_dies_is_told_of_in_the_error_alone(tmp_path, capfd, caplog, launched):
    with pytest.raises(notebooks.NotebookFailed, match=r"^small: the kernel died"):
        execute(tmp_path, "import os\nos._exit(3)")
    with pytest.raises(notebooks.NotebookFailed, match=r"^small: no kernel: "):
        launched.after = lambda: launched[-1].kill()
        execute(tmp_path, "1 + 1")
    assert capfd.readouterr() == ("", "") and not caplog.records


def test_an_error_that_papermill_does_not_expect_leaves_no_kernel(
    tmp_path, monkeypatch, launched
):
    def fail(*arguments, **options):
        raise Ended

    for name in ("_connect_control_socket", "client"):
        with monkeypatch.context() as patch:
            patch.setattr(AsyncKernelManager, name, fail)
            with pytest.raises(Ended):
                execute(tmp_path, "1 + 1")
        assert ended(launched[-1])
    assert len(launched) == 2
