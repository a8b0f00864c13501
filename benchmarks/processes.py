"""What benchmarks share: the processor's time, and a process of its own with its peak of memory."""

import os
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context


def seconds(function, *arguments):
    """Seconds of this process's processor time, and what the function returns."""
    begin = time.process_time()
    found = function(*arguments)
    return time.process_time() - begin, found


def alone(function, *arguments, **environment):
    """What a function returns in a fresh process with these variables in its environment."""
    before = dict(os.environ)
    os.environ.update(environment)
    try:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            return pool.submit(function, *arguments).result()
    finally:
        os.environ.clear()
        os.environ.update(before)


def peak_megabytes():
    """The most that this process has held so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # bytes on a Mac, kilobytes on Linux
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)
