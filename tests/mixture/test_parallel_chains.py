"""Chains run piece by piece: the same draws in any process."""

import os
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from unittest.mock import Mock

import psutil
import pytest

from ppm.models.mixture import chains
from ppm.models.mixture.chains import run_chains


class Counting:
    """A chain whose draws tell what it drew before, and in which process."""

    def __init__(self, left):
        self.left, self.total = left, 0

    def sweep(self):
        time.sleep(0.2)
        if self.left == 90:  # of a long chain, which then has a process
            print(flush=True)
        self.left, self.total = self.left - 1, self.total + self.left
        return (self.total, os.getpid()) if self.left % 2 == 0 else None


def run(parallel=True):
    kept = run_chains([Counting(8), Counting(6)], parallel=parallel)
    return [[total for total, _ in draws] for draws in kept], {
        p for d in kept for _, p in d
    }


def test_chains_go_on_where_they_were_in_whatever_process(monkeypatch):
    made = Mock(side_effect=chains.Parallel)
    monkeypatch.setattr(chains, "Parallel", made)
    (serial, here), (parallel, elsewhere) = run(parallel=False), run()
    assert serial == parallel == [[15, 26, 33, 36], [11, 18, 21]]
    # no array with records goes through a file
    assert [call.kwargs["max_nbytes"] for call in made.call_args_list] == [None, None]
    assert here == {os.getpid()} and os.getpid() not in elsewhere


def test_a_worker_starts_no_processes():
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        assert len(pool.submit(run).result()[1]) == 1


@pytest.mark.parametrize(
    "pool",
    [
        "from test_parallel_chains import Counting, run_chains"
        "; run_chains([Counting(99)] * 2, parallel=True)",
        "import os; os.environ['PPM_WORKERS'] = '2'; from ppm_book.chapters import running; import time"
        "; print(running.executor().submit(os.getpid).result(), flush=True); time.sleep(99)",
    ],
)
def test_workers_end_with_a_process_that_is_killed(pool):
    command = [sys.executable, "-c", pool]
    with subprocess.Popen(command, stdout=-1, cwd=Path(__file__).parent) as parent:
        assert parent.stdout.readline()
        workers = psutil.Process(parent.pid).children(recursive=True)
        parent.kill()
    _, alive = psutil.wait_procs(workers, timeout=30)
    alive = [worker for worker in alive if worker.status() != psutil.STATUS_ZOMBIE]
    for worker in alive:
        worker.kill()
    assert len(workers) >= 2 and not alive
