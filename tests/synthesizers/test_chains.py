"""Chains in a pool that several fits share: the same draws, and nothing left behind."""

import functools
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pytest

import ppm
from ppm.studies.kept_fits import FitProgress
from ppm.synthesizers.chains import ChainPool, ChainsStopped, run_chains, sharing

RNG = np.random.default_rng(5)
RECORDS = 60
X = np.column_stack([np.ones(RECORDS), RNG.standard_normal(RECORDS)])
Y = X @ [1.0, 0.5] + RNG.standard_normal(RECORDS)


@dataclass
class Job:
    sweeps: int
    fails: bool = False


def slow_chain(job, report):
    """Runs in another process, where it can be stopped between sweeps."""
    for sweep in range(job.sweeps):
        time.sleep(0.02)
        report(sweep)
        if job.fails and sweep == 5:
            raise RuntimeError("this chain failed")
    report(job.sweeps)
    return os.getpid()


def children():
    """Processes of this one, without the one that Python keeps for shared memory."""
    found = psutil.Process().children(recursive=True)
    return [p for p in found if "resource_tracker" not in " ".join(p.cmdline())]


def test_fits_share_the_processes_of_a_pool():
    assert not children()
    with ChainPool(2) as pool:
        assert not children()  # none before a chain needs one
        seen, reported = [], []
        for _ in range(3):
            with sharing(pool, reported.append):
                seen += run_chains(slow_chain, [Job(10), Job(10)], reported.append, parallel=True)
        assert len(set(seen)) <= 2 and os.getpid() not in seen
        assert max(reported) <= 20
    assert not children()
    # on their own each fit starts new ones
    apart = [pid for _ in range(2) for pid in run_chains(
        slow_chain, [Job(5), Job(5)], reported.append, parallel=True
    )]
    assert not set(apart) & set(seen)


@dataclass
class Meeting:
    """A chain that goes on only when another one runs too."""

    own: Path
    other: Path
    patience: float
    sweeps: int = 1


def wait_for_the_other(job, report):
    """Whether the other chain began before this one ended."""
    job.own.touch()
    until = time.monotonic() + job.patience
    while not (met := job.other.exists()) and time.monotonic() < until:
        time.sleep(0.01)
    if not met:
        job.own.unlink()
    return met


def meet(workers, folder, patience):
    """Whether the chains of two fits met in a pool, each of them."""
    marks, met = [folder / "one", folder / "two"], []
    with ChainPool(workers) as pool:

        def fit(*pair):
            job = Meeting(*pair, patience)
            met.extend(pool.run(wait_for_the_other, [job], lambda sweeps: None))

        threads = [threading.Thread(target=fit, args=pair) for pair in (marks, marks[::-1])]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return met


def test_chains_of_two_fits_run_side_by_side(tmp_path):
    assert meet(2, tmp_path, patience=60) == [True, True]
    # one after the other they cannot
    (tmp_path / "in turn").mkdir()
    assert meet(1, tmp_path / "in turn", patience=0.2) == [False, False]


def test_a_chain_that_fails_ends_the_others():
    with pytest.raises(RuntimeError, match="this chain failed"), ChainPool(2) as pool:
        pool.run(slow_chain, [Job(10_000), Job(10, fails=True)], lambda sweeps: None)
    assert not children()
    with pytest.raises(ChainsStopped):
        pool.run(slow_chain, [Job(1)], lambda sweeps: None)


def mixture(**settings):
    return ppm.FiniteMixture(Y, X, components=2, warmup=30, **settings)


def sweep(synthesizer, **settings):
    return ppm.studies.sweep(
        synthesizer, [(0.7, 0.0), (0.5, -0.3)], releases=2, draws=40, random_seed=3, attempts=3,
        count_weights=np.full(RECORDS, 0.5), **settings,
    )


def test_a_sweep_gives_the_same_in_one_process_and_in_a_pool(tmp_path, capsys):
    serial = sweep(mixture(parallel=False), progress=True)
    shown = capsys.readouterr()
    parallel = sweep(mixture(parallel=True), fits=tmp_path)
    for one, other in zip(serial.entries, parallel.entries, strict=True):
        assert one.label == other.label and one.history == other.history
        for name in ("weights", "record_bounds", "synthetic"):
            assert np.array_equal(getattr(one, name), getattr(other, name))
    assert not children()
    # where they ran is not in the key
    kept = set(tmp_path.iterdir())
    again = sweep(mixture(parallel=False), fits=tmp_path)
    assert np.array_equal(again.entries[-1].synthetic, serial.entries[-1].synthetic)
    assert set(tmp_path.iterdir()) == kept
    assert not shown.out and shown.err.count("\n") == 1 and "100%" in shown.err


def test_the_fit_that_fails_is_the_one_that_is_told():
    """Others stop because of it, and say so, but that is not what went wrong."""
    collapsing = ppm.FiniteMixture(np.zeros(60), np.ones((60, 2)), components=3, parallel=True)
    with pytest.raises(RuntimeError, match="a mixture component collapsed"):
        sweep(collapsing)
    assert not children()


class Bar:
    """In the place of tqdm: remembers what it was told."""

    def __init__(self, bars, **settings):
        self.n, self.total, self.seen, self.settings = 0, 0, [], settings
        bars.append(self)

    def set_description_str(self, text, refresh):
        self.text = text

    def update(self, sweeps):
        self.n += sweeps
        self.seen.append((self.text, self.n, self.total))

    def close(self):
        pass


def test_the_bar_moves_by_sweeps_and_names_what_runs(monkeypatch):
    bars = []
    monkeypatch.setattr("tqdm.tqdm", functools.partial(Bar, bars))
    sweep(mixture(parallel=False), progress=True)
    (bar,) = bars
    # a fit has 2 chains of 70 sweeps, and the bar moved within it
    assert {0, 10, 30, 70, 100, 140} <= {n for _, n, _ in bar.seen}
    names = " ".join(text for text, _, _ in bar.seen)
    for name in ("Unweighted", "Countweighted", "DPweighted (0.7, 0)", "EMweighted (0.5, -0.3)"):
        assert name in names
    assert [n for _, n, _ in bar.seen] == sorted(n for _, n, _ in bar.seen)
    assert all(n <= total for _, n, total in bar.seen)
    assert bar.n == bar.total
    # all is planned from the start: the searches alone can change the total
    assert bar.seen[-1][2] < 2 * next(total for text, _, total in bar.seen if text)
    # in a notebook, a state every few seconds
    assert bar.settings["mininterval"] >= 1 and bar.settings["file"] is sys.stderr


def test_without_a_bar_nothing_is_shown(capsys):
    progress = FitProgress(False)
    with progress.running("a fit", 10) as advance:
        advance(5)
    progress.close()
    assert capsys.readouterr() == ("", "")


@pytest.mark.skipif(os.name == "nt", reason="sends a signal")
def test_an_interrupt_ends_all_processes_and_keeps_what_is_finished(tmp_path):
    script = tmp_path / "script.py"
    folder = tmp_path / "fits"
    script.write_text(
        textwrap.dedent(
            """
            import sys
            import numpy as np, ppm
            rng = np.random.default_rng(5)
            model = ppm.FiniteMixture(
                rng.standard_normal(300), np.ones((300, 1)), components=2, warmup=100,
                parallel=True,
            )
            ppm.studies.sweep(
                model, [(0.7, 0.0), (0.5, 0.0)], releases=2, draws=int(sys.argv[2]),
                random_seed=3, attempts=2, fits=sys.argv[1],
            )
            """
        )
    )
    command = [sys.executable, "-W", "error", str(script), str(folder), "300"]
    env = os.environ | {"PYTHONPATH": str(Path(ppm.__file__).parents[1])}
    with subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True) as run:
        try:
            while not list(folder.glob("*.npz")):
                assert run.poll() is None, run.stderr.read()
                time.sleep(0.05)
            others = psutil.Process(run.pid).children(recursive=True)
            assert any("spawn" in " ".join(p.cmdline()) for p in others)
            run.send_signal(signal.SIGINT)
            _, told = run.communicate()
        finally:
            run.kill()
    assert run.returncode != 0 and told.rstrip().endswith("KeyboardInterrupt")
    psutil.wait_procs(others)
    kept = {file.name: file.stat().st_mtime_ns for file in folder.glob("*.npz")}
    assert kept
    subprocess.run(command, env=env, check=True)
    after = {file.name: file.stat().st_mtime_ns for file in folder.glob("*.npz")}
    assert len(after) > len(kept)
    assert {name: after[name] for name in kept} == kept
