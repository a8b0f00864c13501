"""Where the tasks of a study run: a pool of processes of its own, or the executor that one has."""

import atexit
import contextlib
import importlib.util
import multiprocessing
import os
import pickle
import platform
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
import warnings
from concurrent.futures import CancelledError, Executor, Future, ProcessPoolExecutor
from dataclasses import dataclass, field

from ppm._validation import check_count, needed_for, one_thread, shown
from ppm.studies.origins import stands_in_a_library
from ppm.synthesizers.chains import alone_in_this_process, clean_start, cores

#: read by :func:`engine_of_the_run` alone; ``ppm run --workers`` and ``--scheduler`` set them
WORKERS, SCHEDULER = "PPM_WORKERS", "PPM_SCHEDULER"
# tasks that were handed over and are not finished, for each worker: one runs, the others wait
_WINDOW = 3
# for an executor that does not say how many workers it has
_UNKNOWN_WORKERS = 16
_SECONDS_TO_CONNECT = 5
_MOST_WORKERS = 1000
# a result of Dask's that is there is small; one that was lost is computed again, so often
_SECONDS_TO_FETCH, _FETCHES = 10, 3
# a Dask cluster whose workers all went may get new ones; its own setting goes before the second
_SECONDS_BETWEEN_QUESTIONS, _SECONDS_WITHOUT_WORKERS = 2, 600
WITHHELD = "(its message is not kept, since it may repeat a record; run it here to see it)"


# ---- in the worker ----------------------------------------------------------------------------

# one task after the other, whatever threads a process has: PyTensor cannot compile in two
_turn = threading.Lock()
_prepared = False


@dataclass(frozen=True)
class Payload:
    """A function and its task, as bytes: an executor that logs what it runs shows none of them."""

    content: bytes = field(repr=False)
    driver: tuple = field(repr=False)


@dataclass(frozen=True)
class Failure:
    """Why a task has no result: name of the error, and where it was raised, without any values."""

    error: str
    traceback: str


@dataclass(frozen=True)
class Outcome:
    """What came of a task: its result or its failure."""

    result: object = field(default=None, repr=False)
    failure: Failure | None = None


def this_process():
    """A name that no other process has, on this machine or another."""
    return platform.node(), os.getpid()


def run_payload(payload):
    """Run a task in whatever process an executor has chosen, and return its :class:`Outcome`."""
    with _turn:
        if payload.driver != this_process():
            _prepare()
        with one_thread(), alone_in_this_process():
            try:
                function, task = pickle.loads(payload.content)
                return Outcome(result=function(task))
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                # also a SystemExit: it ends the task and not the worker
                return Outcome(failure=failure_of(error))


def run_here(function, task):
    """Run a task in this process, as :func:`run_payload` does, but for the chains of a fit."""
    with one_thread():
        try:
            return Outcome(result=function(task))
        except Exception as error:
            return Outcome(failure=failure_of(error))


def _prepare(folder=None):
    """Give this process a compile folder of its own, if PyTensor has none yet."""
    global _prepared
    if _prepared or "pytensor" in sys.modules:
        return
    _prepared = True
    os.environ.setdefault("NUMBA_NUM_THREADS", "1")
    if folder is None:
        folder = tempfile.mkdtemp(prefix="ppm-compiled-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    before = os.environ.get("PYTENSOR_FLAGS")
    own = f"base_compiledir={folder}"
    os.environ["PYTENSOR_FLAGS"] = f"{before},{own}" if before else own


def _initialise(reader, folder):
    """Begin a worker of :class:`OwnPool`, which must not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # nothing that runs here is for others to read
    os.umask(0o077)

    def follow():
        # nothing is ever sent: this ends when the other end is closed, or its process has ended
        with contextlib.suppress(EOFError, OSError):
            reader.recv()
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
    _prepare(os.path.join(folder, str(os.getpid())))


def failure_of(error):
    """The :class:`Failure` of an error: names of code and numbers of lines, and no message."""
    parts, names = [], []
    while error is not None and len(parts) < 5:
        names.append(name_of(error))
        # without the lines themselves: those of generated code may have values in them
        frames = [
            f'  File "{frame.f_code.co_filename}", line {line}, in {frame.f_code.co_name}\n'
            for frame, line in traceback.walk_tb(error.__traceback__)
            if frame.f_code.co_filename != __file__
        ]
        parts.append("".join(frames) + f"{names[-1]}: {WITHHELD}")
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return Failure(names[0], "\n\ncaused by\n".join(parts))


def name_of(error):
    """Name of an error's class, if it is one of Python's or of an installed library's."""
    kind = type(error)
    # a class that is made while a study runs can have any name
    return kind.__name__ if stands_in_a_library(kind) else "an error of the study's own code"


# ---- in the driver ----------------------------------------------------------------------------


def give_up(futures):
    """Cancel what has not begun, on engines that can: on Parsl it runs to its end."""
    for future in futures:
        with contextlib.suppress(NotImplementedError):
            future.cancel()


def packed(function, task):
    """A function and its task in a form that any process of the same library can run.

    Raises
    ------
    ValueError
        If they cannot be sent to another process.
    """
    by_value = importlib.util.find_spec("cloudpickle") is not None
    try:
        if by_value:
            # functions of a script or of a notebook travel with their code
            import cloudpickle

            content = cloudpickle.dumps((function, task))
        else:
            content = pickle.dumps((function, task))
    except Exception as error:
        raise ValueError(
            "a study on an executor needs functions and models that can be sent to other "
            f"processes, and these cannot ({type(error).__name__}): define them in a module, and "
            "open files and connections inside the functions"
        ) from None
    if not by_value and b"__main__" in content:
        raise ValueError(
            "functions of a script or a notebook reach other processes with the help of "
            "cloudpickle: pip install cloudpickle, or define them in a module that is imported"
        )
    return Payload(content, this_process())


class WorkersGone(Exception):
    """A Dask cluster had workers, and has had none for long."""


class OwnPool:
    """Processes that are spawned for one study, each with one thread and a compile folder.

    Parameters
    ----------
    workers : int
        How many at the most.
    """

    def __init__(self, workers):
        self.workers = workers
        self.window = _WINDOW * workers
        self._start()

    def _start(self):
        context = multiprocessing.get_context("spawn")
        self._reader, self._writer = context.Pipe(duplex=False)
        self._folder = tempfile.mkdtemp(prefix="ppm-compiled-")
        self._executor = ProcessPoolExecutor(
            self.workers, context, _initialise, (self._reader, self._folder)
        )

    def submit(self, payload):
        """Hand a task over: a Future of its :class:`Outcome`."""
        # processes start here, one by one
        with clean_start():
            return self._executor.submit(run_payload, payload)

    def gone(self):
        """Never: a process that was killed breaks the pool."""
        return False

    def restart(self):
        """New processes, after one was killed and took the others with it."""
        self.stop()
        self._start()

    def stop(self):
        """End all processes at once."""
        self._writer.close()
        self.close()

    def close(self):
        """End the processes, when what runs in them has ended."""
        try:
            self._executor.shutdown(cancel_futures=True)
        finally:
            # also where an interrupt comes in between: this ends whatever still runs
            self._writer.close()
            self._reader.close()
            shutil.rmtree(self._folder, ignore_errors=True)


class GivenExecutor:
    """The executor of the user, which nobody here starts, restarts or ends.

    Parameters
    ----------
    executor : concurrent.futures.Executor
        The executor.
    """

    restart = None

    def __init__(self, executor):
        self.executor = executor
        self.workers = _workers_of(executor)
        self.window = _WINDOW * (self.workers or _UNKNOWN_WORKERS)

    def submit(self, payload):
        """Hand a task over: a Future of its :class:`Outcome`."""
        return self.executor.submit(run_payload, payload)

    def gone(self):
        """Whether nobody is left to run what was handed over: an executor says that itself."""
        return False

    def stop(self):
        """Nothing: tasks that run end by themselves."""

    close = stop


class DaskExecutor(GivenExecutor):
    """The executor of a Dask client, whose own futures may never end.

    A result that is lost with its worker, just before it is fetched, may be waited for in vain; and
    if it is not computed again, the executor's coroutine ends without a word to its future. So the
    client is asked here, and asked again for what does not come.

    Parameters
    ----------
    executor : distributed.cfexecutor.ClientExecutor
        The executor.
    """

    def __init__(self, executor):
        super().__init__(executor)
        import dask
        from dask.utils import parse_timedelta

        own = dask.config.get("distributed.scheduler.no-workers-timeout", None)
        self._patience = parse_timedelta(own) if own else _SECONDS_WITHOUT_WORKERS
        # a cluster may have no workers yet, for as long as it takes
        self._seen = time.monotonic() if self.workers else None
        self._next = 0.0

    def gone(self):
        """Whether there were workers, and have been none for so long that none may come."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _SECONDS_BETWEEN_QUESTIONS
            # a scheduler that does not answer has none for us
            with contextlib.suppress(Exception):
                if self.executor._client.nthreads():
                    self._seen = now
        return self._seen is not None and now - self._seen > self._patience

    def submit(self, payload):
        """Hand a task over: a Future of its :class:`Outcome`."""
        if self.executor._shutdown:
            raise RuntimeError("cannot schedule new futures after shutdown")
        told = Future()
        self._ask(payload, told, _FETCHES)
        return told

    def _ask(self, payload, told, left):
        # not pure: each has a key of its own, and none is that of a result that was lost
        settings = self.executor._kwargs | {"pure": False}
        asked = self.executor._client.submit(run_payload, payload, **settings)

        def tell(asked):
            error = outcome = None
            try:
                try:
                    outcome = asked.result(timeout=_SECONDS_TO_FETCH)
                except TimeoutError:
                    asked.cancel()
                    if told.cancelled() or left == 1:
                        raise
                    self._ask(payload, told, left - 1)
                    return
            except (Exception, CancelledError) as caught:
                error = caught
            if not told.set_running_or_notify_cancel():
                return
            if error is None:
                told.set_result(outcome)
            else:
                told.set_exception(error)

        def cancel(told):
            if told.cancelled():
                asked.cancel()

        told.add_done_callback(cancel)
        asked.add_done_callback(tell)


def _is_of_dask(executor):
    # whoever has one has imported it
    module = sys.modules.get("distributed.cfexecutor")
    return module is not None and isinstance(executor, module.ClientExecutor)


def _workers_of(executor):
    # Python's own pools say it by the first name, others by the second, or whoever made them
    workers = getattr(executor, "_max_workers", None) or getattr(executor, "max_workers", None)
    client = getattr(executor, "_client", None)
    if workers is None and hasattr(client, "nthreads"):
        # of Dask
        workers = sum(client.nthreads().values())
    return workers if isinstance(workers, int) else None


def given(executor):
    """The user's executor, as an engine."""
    return DaskExecutor(executor) if _is_of_dask(executor) else GivenExecutor(executor)


def check_executor(executor):
    """Refuse what is no executor, before any work starts."""
    if executor is not None and not isinstance(executor, Executor):
        raise ValueError(
            "executor must be a concurrent.futures.Executor, such as ProcessPoolExecutor(4) or "
            f"Dask's client.get_executor(); got {type(executor).__name__}"
        )


def engine_of_the_run():
    """What the environment asks for: a number of workers, an executor of Dask's, or None.

    ``ppm run`` sets these two variables. They say where studies run, and change no number: that is
    why they are no parameters.

    Returns
    -------
    int, concurrent.futures.Executor or None
        From ``PPM_SCHEDULER``, the address of a Dask scheduler, or else ``PPM_WORKERS``.

    Raises
    ------
    ValueError
        If the number is none, or nobody answers at the address.
    """
    address, workers = os.environ.get(SCHEDULER, ""), os.environ.get(WORKERS, "")
    if address:
        return connected(address).get_executor()
    if not workers:
        return None
    number = int(workers) if workers.isdecimal() else workers
    return _checked(WORKERS, number)


def _checked(name, workers):
    workers = check_count(name, workers)
    if workers > _MOST_WORKERS:
        raise ValueError(
            f"{name} must be at most {_MOST_WORKERS}, since they are processes of this machine; "
            f"got {shown(workers)}"
        )
    return workers


_clients = {}


def _disconnect():
    for client in _clients.values():
        client.close()


def connected(address):
    """The Dask client of a scheduler's address, the same one again in a process.

    Raises
    ------
    ppm._validation.MissingExtraError
        If distributed is not installed.
    ValueError
        If nobody answers within a few seconds, or somebody with other versions.
    """
    client = _clients.get(address)
    if client is None or client.status != "running":
        with needed_for("a Dask scheduler"):
            from distributed import Client
            from distributed.comm import get_address_host_port
            from distributed.versions import VersionMismatchWarning
        try:
            # a client that is made with an address of another kind complains once more later
            get_address_host_port(address)
            with warnings.catch_warnings():
                # in many lines what is refused below in one
                warnings.simplefilter("ignore", VersionMismatchWarning)
                client = Client(address, timeout=_SECONDS_TO_CONNECT, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            raise ValueError(
                f"no Dask scheduler answers at {shown(address)} ({type(error).__name__}); "
                "accepted: an address such as tcp://127.0.0.1:8786, of a scheduler that runs"
            ) from None
        differ = _differing(client.get_versions())
        if differ:
            client.close()
            raise ValueError(
                f"the Dask scheduler at {shown(address)}, or a worker of it, has other versions "
                f"than this environment, of {', '.join(differ)}: make them the same"
            )
        if not _clients:
            atexit.register(_disconnect)
        _clients[address] = client
    return client


def _differing(versions):
    """Names of what a scheduler or one of its workers has in another version."""
    mine, *others = (
        {"python": ".".join(found["host"]["python"].split(".")[:2]), **found["packages"]}
        for found in (versions["client"], versions["scheduler"], *versions["workers"].values())
    )
    # what a scheduler alone lacks it does not need
    return sorted(
        {
            name
            for other in others
            for name, version in other.items()
            if version is not None and version != mine.get(name)
        }
    )


def environment_of(workers=None, scheduler=None):
    """Variables that tell studies in another process where to run; both, so that none is inherited.

    Parameters
    ----------
    workers : int, optional
        Number of processes.
    scheduler : str, optional
        Address of a Dask scheduler. Whether it answers is tried.

    Raises
    ------
    ppm._validation.MissingExtraError
        If distributed is not installed.
    ValueError
        If both are given, one of them is none, or nobody answers.
    """
    if workers is not None:
        if scheduler is not None:
            raise ValueError("workers and scheduler exclude each other: give one of them")
        workers = _checked("workers", workers)
    if scheduler is not None:
        connected(scheduler).close()
        del _clients[scheduler]
    return {WORKERS: str(workers or ""), SCHEDULER: scheduler or ""}


@contextlib.contextmanager
def engine_for(executor):
    """Yield where tasks are handed over, and end it if it was made here.

    Parameters
    ----------
    executor : concurrent.futures.Executor, int or None
        The user's, or a number of workers; None for one for each core.
    """
    if isinstance(executor, Executor):
        engine = given(executor)
    else:
        engine = OwnPool(executor or cores())
    try:
        yield engine
    except BaseException:
        engine.stop()
        raise
    engine.close()
