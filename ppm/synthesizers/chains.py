"""Running the chains of a sampler: in this process, or in a pool that several fits share."""

import contextlib
import contextvars
import multiprocessing
import os
import signal
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, wait
from dataclasses import dataclass, field

from ppm._validation import needed_for

# chains that may wait or run at the same time in one pool
_SLOTS = 4096


def cores():
    """Number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_chains(function, jobs, advance, *, parallel):
    """Run ``function(job, report)`` for every job and return the results in order.

    Within :func:`sharing` the chains run in the shared pool, beside those of other fits.

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
        Whether jobs run in other processes. The results do not depend on that. A job of a study
        that runs beside others starts no further processes.
    """
    shared = _shared.get()
    if _alone.get():
        return _run_serial(function, jobs, advance)
    if shared is not None:

        def advance_both(sweeps):
            advance(sweeps)
            shared.advance(sweeps)

        if parallel:
            return shared.pool.run(function, jobs, advance_both)
        # one fit at a time: limits on threads hold for the whole process
        with shared.pool.one_at_a_time:
            return _run_serial(function, jobs, advance_both, shared.pool)
    if parallel and len(jobs) > 1:
        with ChainPool(min(len(jobs), cores())) as pool:
            return pool.run(function, jobs, advance)
    return _run_serial(function, jobs, advance)


def _run_serial(function, jobs, advance, pool=None):
    done = 0

    def report(sweeps):
        advance(done + sweeps)
        if pool is not None and pool.stopped:
            raise ChainsStopped

    results = []
    for job in jobs:
        results.append(function(job, report))
        done += job.sweeps
    return results


class ChainsStopped(Exception):
    """Chains ended because something else that shares their pool failed or was interrupted."""


class ChainPool:
    """Processes that run chains, started when first needed and ended by :meth:`close`.

    Several threads may :meth:`run` chains at the same time: a core that one fit leaves idle goes
    to the next one's chains.

    Parameters
    ----------
    workers : int, optional
        Number of processes at the most; by default one for each core.
    """

    def __init__(self, workers=None):
        self.workers = workers or cores()
        self.stopped = False
        self.one_at_a_time = threading.Lock()
        self._lock = threading.Lock()
        self._executor = None

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        if kind is not None:
            self.stop()
        self.close()

    def stop(self):
        """Tell all chains to end at their next report."""
        with self._lock:
            self.stopped = True
            if self._executor is not None:
                self._stop.value = 1

    def close(self):
        """End the processes, when the chains that run in them have ended."""
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)

    def run(self, function, jobs, advance):
        """Run chains as :func:`run_chains` does, in this pool.

        Raises
        ------
        ChainsStopped
            If :meth:`stop` is called meanwhile.
        """
        slots, futures = self._submit(function, jobs)
        try:
            waiting = futures
            while waiting:
                done, waiting = wait(waiting, timeout=0.2)
                for future in done:
                    future.result()
                if self.stopped:
                    raise ChainsStopped
                advance(sum(self._counters[slot] for slot in slots))
            return [future.result() for future in futures]
        except BaseException:
            # one chain is worth nothing without the others
            self.stop()
            raise
        finally:
            with self._lock:
                self._free += slots

    def _submit(self, function, jobs):
        with self._lock, clean_start():
            if self.stopped:
                raise ChainsStopped
            if self._executor is None:
                context = multiprocessing.get_context("spawn")
                self._counters = context.Array("q", _SLOTS, lock=False)
                self._stop = context.Value("b", 0, lock=False)
                self._free = list(range(_SLOTS))
                self._executor = ProcessPoolExecutor(
                    self.workers, context, _initialise_worker, (self._counters, self._stop)
                )
            slots = [self._free.pop() for _ in jobs]
            for slot in slots:
                self._counters[slot] = 0
            return slots, [
                self._executor.submit(_run_in_worker, function, slot, job)
                for slot, job in zip(slots, jobs, strict=True)
            ]


@dataclass(frozen=True)
class _Sharing:
    pool: ChainPool
    advance: object = field(repr=False)


_shared = contextvars.ContextVar("shared", default=None)


@contextlib.contextmanager
def sharing(pool, advance):
    """Let fits that are made within, in this thread, run their chains in a pool.

    Parameters
    ----------
    pool : ChainPool
        The pool, which outlives the fits.
    advance : callable
        Called with the number of sweeps done so far by all chains of a fit.
    """
    token = _shared.set(_Sharing(pool, advance))
    try:
        yield
    finally:
        _shared.reset(token)


_alone = contextvars.ContextVar("alone", default=False)


@contextlib.contextmanager
def alone_in_this_process():
    """Let whatever runs within, in this thread, start no processes: it is one of several."""
    token = _alone.set(True)
    try:
        yield
    finally:
        _alone.reset(token)


def is_alone():
    """Whether this is within :func:`alone_in_this_process`."""
    return _alone.get()


_channel = {}


def _initialise_worker(counters, stop):
    # the main process decides what an interrupt means; a worker must not outlive it
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _channel.update(counters=counters, stop=stop)
    parent = multiprocessing.parent_process()

    def follow():
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def _run_in_worker(function, slot, job):
    def report(sweeps):
        _channel["counters"][slot] = sweeps
        if _channel["stop"].value:
            raise ChainsStopped

    return function(job, report)


@contextlib.contextmanager
def clean_start():
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


@contextlib.contextmanager
def progress_bar(show, total, unit="sweeps"):
    """Yield a function that takes the number of sweeps, or whatever is counted, done so far."""
    if not show:
        yield lambda sweeps: None
        return
    with needed_for("progress=True"):
        from tqdm import tqdm

    with tqdm(
        total=total, unit=f" {unit}", file=sys.stderr, mininterval=seconds_between_states()
    ) as bar:

        def advance(sweeps):
            if sweeps > bar.n:
                bar.update(sweeps - bar.n)

        yield advance


def with_bar(steps, description, *, show):
    """The steps of a loop, with a progress bar if one is to be shown."""
    if not show:
        return steps
    with needed_for("progress=True"):
        from tqdm.auto import tqdm

    return tqdm(steps, desc=description)


def seconds_between_states():
    """How often a progress bar is drawn: a notebook that is executed keeps every state of it."""
    return 0.1 if sys.stderr.isatty() else 5.0
