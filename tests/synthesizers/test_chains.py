"""Chains in a pool that several fits share: the same draws, and nothing left behind."""

import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pytest

import ppm
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
