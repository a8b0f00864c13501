"""The parts of a study, run on whatever engine there is: kept, in order, failures told."""

import dataclasses
import functools
import inspect
import sys
import sysconfig
from collections import Counter, deque
from concurrent.futures import BrokenExecutor, CancelledError, wait
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType

import numpy as np

from ppm.studies.engine import (
    Failure,
    Outcome,
    check_executor,
    engine_for,
    engine_of_the_run,
    packed,
)
from ppm.studies.kept_folder import KeptFolder, digest_of, file_hash, library_source, versions
from ppm.synthesizers.chains import is_alone, progress_bar, run_chains

# a task whose process is killed so often has something to do with it
_TRIES = 3
_SECONDS_BETWEEN_LOOKS = 0.5
_LOST = Failure(
    "BrokenProcessPool", f"its process was killed {_TRIES} times, perhaps for want of memory"
)

NOTE = """The files in this folder are CONFIDENTIAL if the study's records are.

Each holds what one part of a study has found: bounds, diagnostics and the like,
which no epsilon covers. Keep the folder where the records themselves may be
kept, and hand nothing out of it.

The files only save time: delete them whenever you like. A file's name is a hash
of everything that its content was computed from, so that none is ever out of
date.
"""


class ResultStore(KeptFolder):
    """A folder of the results of tasks: see :class:`ppm.studies.kept_folder.KeptFolder`.

    Parameters
    ----------
    folder : path-like
        The folder.
    """

    def __init__(self, folder):
        super().__init__(folder, name="store", note=NOTE, what="result")

    def load(self, key):
        """The result with this key, or None if there is none that can be read."""
        return self.read(key, lambda head, arrays: arrays)

    def save(self, key, result):
        """Keep a result."""
        self.write(key, {}, result)


@dataclass(frozen=True)
class Engine:
    """Where a study runs, and where it is kept; all is checked before any work starts.

    Attributes
    ----------
    executor : concurrent.futures.Executor, int or None
        The user's, or how many processes; None for what a study does by itself.
    store : ResultStore or None
        Where results are kept.
    """

    executor: object
    store: ResultStore | None

    @property
    def plain(self):
        """Whether nobody asked for anything."""
        return self.executor is None and self.store is None


def chosen_engine(executor, store, random_seed, *, parallel=True):
    """The :class:`Engine` of a study, from its arguments and, if parallel, from the environment.

    Raises
    ------
    ValueError
        If ``executor`` is none, ``store`` is no folder, or there is a store and no seed.
    """
    check_executor(executor)
    if store is not None and random_seed is None:
        raise ValueError("store needs a random_seed: without one no two runs have the same parts")
    # one of several tasks has a single process, and none of the others' executor
    if is_alone():
        executor = None
    elif executor is None and parallel:
        executor = engine_of_the_run()
    return Engine(executor, None if store is None else ResultStore(store))


def run_tasks(function, tasks, engine, *, here=False, progress=False):
    """Run ``function(task)`` for every task, and return what came of each, in their order.

    Parameters
    ----------
    function : callable
        From a task to a dict of names to arrays or numbers.
    tasks : sequence
        Dataclasses, each with a ``seed`` of its own, and a dict ``place`` that names it in a table.
        Their results hang on nothing else, and so neither on the engine nor on each other.
    engine : Engine
        Where they run, and where results are kept.
    here : bool, default False
        Whether they run in this process where there is no executor. An error is then raised.
    progress : bool, default False
        Whether to show a progress bar on the error stream: tasks done.

    Returns
    -------
    list of Outcome
        Results, as dicts of arrays, or failures.

    Raises
    ------
    RuntimeError
        If every task failed.
    KeyboardInterrupt
        If interrupted. What has not begun does not begin, and finished results are kept.
    """
    tasks = list(tasks)
    store, keys = engine.store, [None] * len(tasks)
    outcomes = [None] * len(tasks)
    if store is not None:
        common = digest_of(
            {"function": content_of(function), "library": library_source(), "versions": versions()}
        )
        for i, task in enumerate(tasks):
            keys[i] = digest_of([common, content_of(task)])
            found = store.load(keys[i])
            outcomes[i] = None if found is None else Outcome(result=found)
    waiting = deque(i for i, outcome in enumerate(outcomes) if outcome is None)
    with progress_bar(progress, len(tasks), "tasks") as advance:
        advance(len(tasks) - len(waiting))

        def finish(i, outcome):
            if outcome.failure is None:
                result = {name: np.asarray(found) for name, found in outcome.result.items()}
                outcome = Outcome(result=result)
                if store is not None:
                    store.save(keys[i], result)
            outcomes[i] = outcome
            advance(sum(found is not None for found in outcomes))

        if is_alone() or (here and engine.executor is None):
            for i in waiting:
                finish(i, Outcome(result=function(tasks[i])))
        elif waiting:
            with engine_for(engine.executor) as used:
                _Window(used, function, tasks, finish).run(waiting)
    failures = [outcome.failure for outcome in outcomes if outcome.failure is not None]
    if failures and len(failures) == len(tasks):
        raise RuntimeError(
            f"none of the {len(tasks)} parts of this study was computed; the first ended with\n"
            f"{failures[0].traceback}"
        )
    return outcomes


class _Window:
    """Hand tasks to an engine, a few for each worker at a time, and take what comes back."""

    def __init__(self, engine, function, tasks, finish):
        self.engine, self.function, self.tasks, self.finish = engine, function, tasks, finish
        self.running, self.killed = {}, Counter()
        # were running when a process was killed, and one of them may be why: they run alone
        self.suspects = deque()

    def run(self, waiting):
        """Run the tasks with these numbers."""
        waiting = deque(waiting)
        try:
            while waiting or self.suspects or self.running:
                self._fill(waiting)
                done, _ = wait(
                    self.running, timeout=_SECONDS_BETWEEN_LOOKS, return_when="FIRST_COMPLETED"
                )
                lost = [i for future in done if (i := self._take(future)) is not None]
                if lost:
                    self._recover(lost)
        except BaseException:
            for future in self.running:
                future.cancel()
            raise

    def _fill(self, waiting):
        while not any(self.killed[i] for i in self.running.values()):
            if self.suspects:
                if self.running:
                    return
                i = self.suspects.popleft()
            elif waiting and len(self.running) < self.engine.window:
                i = waiting.popleft()
            else:
                return
            payload = packed(self.function, self.tasks[i])
            try:
                self.running[self.engine.submit(payload)] = i
            except (BrokenExecutor, RuntimeError) as error:
                # it broke, or was shut down, between two tasks
                self._recover([i], error)

    def _take(self, future):
        """Finish the task of a future; its number, if its process was killed."""
        i = self.running.pop(future)
        try:
            self.finish(i, future.result())
        except BrokenExecutor:
            return i
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except (Exception, CancelledError) as error:
            # of the engine itself: those of tasks are outcomes. Its message may show a task
            self.finish(i, _of_the_engine(error))
        return None

    def _recover(self, lost, error=None):
        if self.engine.restart is None:
            for i in lost:
                self.finish(i, _of_the_engine(error or BrokenExecutor()))
            return
        # the others in a broken pool are lost as well
        for future in list(self.running):
            i = self._take(future)
            lost += [] if i is None else [i]
        self.engine.restart()
        for i in lost:
            self.killed[i] += 1
            if self.killed[i] < _TRIES:
                self.suspects.append(i)
            else:
                self.finish(i, Outcome(failure=_LOST))


def _of_the_engine(error):
    kind = type(error).__name__
    return Outcome(failure=Failure(kind, f"{kind}: the executor gave the task back undone"))


def run_combinations(function, jobs, engine, *, parallel, progress):
    """Run jobs of different sizes, the largest begun first, so that none is left at the end.

    Parameters
    ----------
    function : callable
        ``function(job, report)``, as for :func:`ppm.synthesizers.chains.run_chains`; it returns a
        dict of arrays.
    jobs : sequence
        Tasks, as for :func:`run_tasks`, with numbers of ``components`` and of ``sweeps``.
    engine : Engine
        Where they run. If nobody asked for one, that is the processes of
        :func:`ppm.synthesizers.chains.run_chains`, and an error is raised.
    parallel : bool
        Whether they run in other processes, if there is no executor.
    progress : bool
        Whether to show a bar: of sweeps, or of tasks on an engine.

    Returns
    -------
    list of Outcome
        In the order of the jobs.
    """
    order = sorted(range(len(jobs)), key=lambda i: -jobs[i].components)
    todo = [jobs[i] for i in order]
    if engine.plain:
        with progress_bar(progress, sum(job.sweeps for job in jobs)) as advance:
            found = run_chains(function, todo, advance, parallel=parallel)
        outcomes = [Outcome(result=result) for result in found]
    else:
        outcomes = run_tasks(function, todo, engine, here=not parallel, progress=progress)
    return [outcomes[order.index(i)] for i in range(len(jobs))]


# ---- failures ---------------------------------------------------------------------------------

_COLUMNS = ("error", "entropy", "spawn_key", "traceback")


def failures_of(tasks, outcomes):
    """Table of the tasks that failed: a pandas.DataFrame, one row a failure.

    Columns are those of a task's ``place``, then ``error``, the kind of error; ``entropy`` and
    ``spawn_key`` of the task's SeedSequence; and ``traceback``, which shows lines of code and no
    values. Messages are the library's own alone, since others may repeat a record.
    """
    import pandas as pd

    rows = [
        {
            **task.place, "error": outcome.failure.error, "entropy": task.seed.entropy,
            "spawn_key": task.seed.spawn_key, "traceback": outcome.failure.traceback,
        }
        for task, outcome in zip(tasks, outcomes, strict=True)
        if outcome.failure is not None
    ]
    names = list(tasks[0].place) if tasks else []
    return pd.DataFrame(rows, columns=[*names, *_COLUMNS])


def no_failures():
    """The table of a study in which nothing failed."""
    return failures_of([], [])


# ---- what a task is computed from -------------------------------------------------------------


def content_of(value, seen=()):
    """What a value says to :func:`ppm.studies.kept_folder.digest_of`, functions by their code.

    Raises
    ------
    ValueError
        If something in it cannot be told from another of its kind.
    """
    if hasattr(value, "fingerprint") and not isinstance(value, type):
        from ppm.studies.kept_fits import identity

        return {"synthesizer": identity(value)}
    if isinstance(value, np.random.SeedSequence):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [entry.name for entry in dataclasses.fields(value)]
        return {name: content_of(getattr(value, name), seen) for name in names}
    if isinstance(value, dict):
        return {name: content_of(part, seen) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [content_of(part, seen) for part in value]
    if isinstance(value, (set, frozenset)):
        return sorted(digest_of(content_of(part, seen)) for part in value)
    if isinstance(value, functools.partial):
        return content_of(["partial", value.func, value.args, value.keywords], seen)
    if isinstance(value, MethodType):
        return content_of(["method", value.__self__, value.__func__], seen)
    if isinstance(value, ModuleType):
        return _module(value)
    if isinstance(value, (FunctionType, type)):
        return _code(value, seen)
    if inspect.isbuiltin(value) or isinstance(value, np.ufunc):
        return [getattr(value, "__module__", "") or "", value.__name__]
    if value is Ellipsis or isinstance(value, (slice, range, complex)):
        return repr(value)
    try:
        digest_of(value)
    except ValueError:
        raise ValueError(
            f"store cannot tell one {type(value).__name__} from another: leave store out, or let "
            "functions use numbers, text, arrays, lists, dicts, dataclasses and other functions "
            "alone"
        ) from None
    return value


def _module(module):
    """Name and version of an installed module, or name and hash of another one's file."""
    top = sys.modules.get(module.__name__.partition(".")[0])
    file = getattr(module, "__file__", None)
    if file is None or _installed(file):
        return [module.__name__, str(getattr(top, "__version__", ""))]
    return [module.__name__, file_hash(file)]


@functools.cache
def _installed(file):
    # the library's own files are hashed all together
    homes = [Path(__file__).parents[1]]
    homes += [Path(sysconfig.get_path(name)) for name in ("purelib", "platlib", "stdlib")]
    return any(Path(file).resolve().is_relative_to(home.resolve()) for home in homes)


def _code(function, seen):
    """Name of a function or class, and what it does if it is the user's own."""
    name = [function.__module__, function.__qualname__]
    module = sys.modules.get(function.__module__)
    if function in seen or function.__module__ == "builtins":
        return name
    if module is not None and _installed(getattr(module, "__file__", None) or __file__):
        if function.__module__ != "__main__":
            return [*name, _module(module)]
    seen = (*seen, function)
    if isinstance(function, type):
        parts = [
            (key, content_of(_inner(part), seen))
            for key, part in sorted(vars(function).items())
            if isinstance(_inner(part), FunctionType)
            or not (key.startswith("__") or inspect.isdatadescriptor(part))
        ]
        return [*name, parts, [content_of(base, seen) for base in function.__bases__]]
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    used = {
        key: content_of(function.__globals__[key], seen)
        for key in sorted(_names(function.__code__))
        if key in function.__globals__
    }
    kept = [function.__defaults__, function.__kwdefaults__, cells]
    return [*name, _bytes(function.__code__), content_of(kept, seen), used]


def _inner(part):
    """The function of a method of any kind, and of a property that is read."""
    return getattr(part, "fget", None) or getattr(part, "__func__", part)


def _names(code):
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _names(constant)
    return found


def _bytes(code):
    constants = [
        _bytes(constant) if isinstance(constant, CodeType) else content_of(constant)
        for constant in code.co_consts
    ]
    return [code.co_code, list(code.co_names), list(code.co_varnames), constants]
