"""Running the chains of a sampler: in this process or in one each, with one progress bar."""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, wait


def run_chains(function, jobs, advance, *, parallel):
    """Run ``function(job, report)`` for every job and return the results in order.

    Parameters
    ----------
    function : callable
        A function of a module, so that other processes can find it. It runs one chain, and calls
        ``report`` now and then with the number of its sweeps done so far.
    jobs : sequence
        What each chain needs to run, with the number of its ``sweeps``; sent to other processes.
    advance : callable
        Called with the number of sweeps done so far by all chains.
    parallel : bool
        Whether each job runs in a process of its own. The results do not depend on that.
    """
    run = _run_parallel if parallel and len(jobs) > 1 else _run_serial
    return run(function, jobs, advance)


def _run_serial(function, jobs, advance):
    done = 0

    def report(sweeps):
        advance(done + sweeps)

    results = []
    for job in jobs:
        results.append(function(job, report))
        done += job.sweeps
    return results


_channel = {}


class _Stopped(Exception):
    pass


def _initialise_worker(counters, stop):
    # the main process decides what an interrupt means; a worker must not outlive it
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _channel.update(counters=counters, stop=stop)
    parent = multiprocessing.parent_process()

    def follow():
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def _run_in_worker(function, number, job):
    def report(sweeps):
        _channel["counters"][number] = sweeps
        if _channel["stop"].value:
            raise _Stopped

    return function(job, report)


@contextlib.contextmanager
def _clean_start():
    """Start processes with one thread, and without running the user's script in them again."""
    threads = {name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    before = {name: os.environ.get(name) for name in threads}
    main = sys.modules["__main__"]
    hidden = {name: vars(main).pop(name) for name in ("__file__", "__spec__") if name in vars(main)}
    main.__spec__ = None
    os.environ.update(threads)
    try:
        yield
    finally:
        vars(main).update(hidden)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _run_parallel(function, jobs, advance):
    context = multiprocessing.get_context("spawn")
    counters = context.Array("q", len(jobs), lock=False)
    stop = context.Value("b", 0, lock=False)
    workers = min(len(jobs), os.cpu_count() or 1)
    with ProcessPoolExecutor(workers, context, _initialise_worker, (counters, stop)) as pool:
        try:
            with _clean_start():
                futures = [
                    pool.submit(_run_in_worker, function, number, job)
                    for number, job in enumerate(jobs)
                ]
            waiting = futures
            while waiting:
                waiting = wait(waiting, timeout=0.2, return_when="FIRST_EXCEPTION").not_done
                advance(sum(counters))
        except BaseException:
            stop.value = 1
            raise
        return [future.result() for future in futures]


@contextlib.contextmanager
def progress_bar(show, total):
    """Yield a function that takes the number of sweeps done so far, of all chains."""
    if not show:
        yield lambda sweeps: None
        return
    from tqdm import tqdm

    with tqdm(total=total, unit=" sweeps", file=sys.stderr) as bar:
        yield lambda sweeps: bar.update(sweeps - bar.n)
