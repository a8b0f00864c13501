"""A fit shows its progress where somebody can see it, without being asked."""

import os
import pty
import subprocess
import sys

import numpy as np
import pymc as pm
import pytensor
import pytest
from jupyter_client.manager import run_kernel

import ppm
from ppm.synthesizers import progress

STEPS = """
import sys, time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from ppm.synthesizers import progress
from ppm.synthesizers.progress import progress_bar

def steps(shown, pause):
    with progress_bar(shown, 12, "steps") as advance:
        for _ in range(12):
            time.sleep(pause)
            advance(1)

def elsewhere(*given):
    with ProcessPoolExecutor(1, get_context("fork")) as pool:
        pool.submit(steps, *given).result()

"""
LONG, ASKED = "steps(None, 0.15)", "steps(True, 0.0)"
# a busy machine can make any fit long
SHORT = "progress._SHORT = 600.0; steps(None, 0.0)"


def in_terminal(code):
    """What a script writes to a terminal."""
    ours, its = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=its, stderr=its, stdin=its
    ):
        os.close(its)
        said = []
        # Linux ends a terminal with an error
        try:
            while text := os.read(ours, 4096):
                said.append(text)
        except OSError:
            pass
    os.close(ours)
    return b"".join(said).decode()


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        (LONG, True),
        (SHORT, False),
        (ASKED, True),
        ("steps(False, 0.15)", False),
        ("elsewhere(None, 0.15)", False),
        ("sys.modules['tqdm'] = None; " + LONG, False),
        ("sys.stdout = open('/dev/null', 'w'); " + LONG, False),
    ],
)
def test_a_terminal_shows_long_fits(call, shown):
    said = in_terminal(STEPS + call)
    assert ("12/12" in said) == shown and (shown or not said)


@pytest.mark.parametrize(("call", "shown"), [(LONG, False), (ASKED, True)])
def test_a_pipe_shows_what_is_asked_for(call, shown):
    done = subprocess.run(
        [sys.executable, "-c", STEPS + call], capture_output=True, text=True
    )
    assert (
        ("12/12" in done.stderr) == shown
        and not done.stdout
        and (shown or not done.stderr)
    )


def test_an_open_notebook_shows_long_fits_and_an_executed_one_does_not():
    said = {True: "", False: ""}
    with run_kernel(kernel_name="python3", startup_timeout=120) as kernel:
        for somebody in said:
            # JupyterLab says True here, and papermill and nbmake False
            def note(message, somebody=somebody):
                said[somebody] += message["content"].get("text", "")

            kernel.execute_interactive(
                STEPS + LONG, allow_stdin=somebody, output_hook=note, timeout=120
            )
    assert "12/12" in said[True] and not said[False]


def mixture():
    return ppm.FiniteMixture(
        np.arange(9.0) ** 2, np.ones((9, 1)), warmup=3, parallel=False
    )


def pymc_model():
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu"), observed=np.ones(3))
    return ppm.PyMCSynthesizer(model, warmup=3, chains=1)


@pytest.mark.parametrize(
    ("make", "said"), [(mixture, " sweeps"), (pymc_model, " draws")]
)
def test_every_fit_that_takes_long_shows_its_progress(make, said, monkeypatch, capsys):
    monkeypatch.setattr(progress, "is_watched", lambda: True)
    monkeypatch.setattr(progress, "_SHORT", 0.0)
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        make().fit(draws=2, random_seed=1)
    shown = capsys.readouterr().err
    assert "100%" in shown and said in shown
