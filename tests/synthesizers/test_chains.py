"""Chains run piece by piece: the same draws in any process, and nothing left behind."""

import os
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from ppm.synthesizers.chains import run_chains


class Counting:
    """A chain whose draws tell what it drew before, and in which process."""

    def __init__(self, left, fails=False):
        self.left, self.fails, self.total = left, fails, 0

    def sweep(self):
        time.sleep(0.2)
        self.left, self.total = self.left - 1, self.total + self.left
        if self.fails and not self.left:
            raise RuntimeError("this chain failed")
        return (self.total, os.getpid()) if self.left % 2 == 0 else None


def run(parallel=True, **settings):
    reported = []
    kept = run_chains(
        [Counting(8, **settings), Counting(6)], reported.append, parallel=parallel
    )
    assert sum(reported) == 14 and len(reported) > 1
    return [[total for total, _ in draws] for draws in kept], {p for d in kept for _, p in d}


def test_chains_go_on_where_they_were_in_whatever_process():
    (serial, here), (parallel, elsewhere) = run(parallel=False), run()
    assert serial == parallel == [[15, 26, 33, 36], [11, 18, 21]]
    assert here == {os.getpid()} and os.getpid() not in elsewhere
    # the next fit finds the same processes
    assert run()[1] & elsewhere


def test_a_worker_starts_no_processes():
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        assert len(pool.submit(run).result()[1]) == 1


def test_a_chain_that_fails_is_an_error():
    with pytest.raises(RuntimeError, match="this chain failed"):
        run(fails=True)
