"""The parts of a study, run on whatever engine there is: kept, in order, failures told."""

import re
from collections import Counter, deque
from concurrent.futures import BrokenExecutor, CancelledError, wait
from dataclasses import dataclass

import numpy as np

from ppm.studies.engine import (
    Failure,
    Outcome,
    WorkersGone,
    check_executor,
    engine_for,
    engine_of_the_run,
    give_up,
    name_of,
    packed,
    run_here,
)
from ppm.studies.kept_folder import KeptFolder
from ppm.studies.origins import content_of, digest_of, library_source, versions
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
of seed, settings, data, code and library. Of files and environment variables that
your own code reads, and of what it sets while it runs, nothing is known: take a
new folder when those change.
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


class PartFailed(RuntimeError):
    """A task failed, and without it the others are worth nothing.

    Attributes
    ----------
    failure : ppm.studies.engine.Failure
        Why.
    """

    def __init__(self, task, failure):
        place = " ".join(f"{name} {value}" for name, value in task.place.items())
        super().__init__(
            f"{place} was not computed, and without it there is no result; it ended with\n"
            f"{failure.traceback}"
        )
        self.failure = failure


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


def run_tasks(function, tasks, engine, *, here=False, whole=False, progress=False):
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
    whole : bool, default False
        Whether the first failure, wherever it happens, ends everything: no values are told of it.
    progress : bool, default False
        Whether to show a progress bar on the error stream: tasks done.

    Returns
    -------
    list of Outcome
        Results, as dicts of arrays, or failures.

    Raises
    ------
    RuntimeError
        If every task failed, or any where ``whole``: :class:`PartFailed`.
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
    done = len(tasks) - len(waiting)
    with progress_bar(progress, len(tasks), "tasks") as advance:
        advance(done)

        def finish(i, outcome):
            nonlocal done
            if whole and outcome.failure is not None:
                # what an executor says of it may show a task
                raise PartFailed(tasks[i], outcome.failure) from None
            if outcome.failure is None:
                result = {name: np.asarray(found) for name, found in outcome.result.items()}
                outcome = Outcome(result=result)
                if store is not None:
                    store.save(keys[i], result)
            outcomes[i] = outcome
            done += 1
            advance(done)

        if is_alone() or (here and engine.executor is None):
            for i in waiting:
                told = run_here(function, tasks[i]) if whole else Outcome(function(tasks[i]))
                finish(i, told)
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
                elif not done and self.engine.gone():
                    self._end(waiting)
        except BaseException:
            give_up(self.running)
            raise

    def _end(self, waiting):
        """Nobody is left to run anything."""
        give_up(self.running)
        left = [*self.running.values(), *waiting]
        for those in (self.running, waiting):
            those.clear()
        for i in left:
            self.finish(i, given_back(WorkersGone()))

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
            outcome = future.result()
        except BrokenExecutor:
            return i
        except (Exception, CancelledError) as error:
            # of the engine itself: those of tasks are outcomes. Its message may show a task
            outcome = given_back(error)
        # an error of keeping a result is none of the engine
        self.finish(i, outcome)
        return None

    def _recover(self, lost, error=None):
        if self.engine.restart is None:
            for i in lost:
                self.finish(i, given_back(error or BrokenExecutor()))
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


_BROKEN = (
    "one of the executor's processes was killed, or did not start, and the executor cannot go on. "
    "Finished parts are kept if there is a store; without executor= the library's own processes "
    "survive this"
)


def given_back(error):
    """What is said of a task that an executor did not run, whose message may show the task."""
    kind = name_of(error)
    if isinstance(error, BrokenExecutor):
        told = _BROKEN
    elif isinstance(error, RuntimeError) and re.search("after shutdown|shut down", str(error)):
        told = "the executor has been shut down"
    elif isinstance(error, WorkersGone):
        told = (
            "no worker of the Dask cluster was left, and none came for as long as "
            "distributed.scheduler.no-workers-timeout says, 10 minutes where it says nothing"
        )
    elif kind == "KilledWorker":
        told = "Dask gave it up, since the workers that it was on died again and again"
    else:
        told = "the executor gave the task back undone, perhaps since its process was killed"
    return Outcome(failure=Failure(kind, f"{kind}: {told}"))


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
    return [outcome for _, outcome in sorted(zip(order, outcomes, strict=True))]


# ---- failures ---------------------------------------------------------------------------------

_COLUMNS = ("error", "entropy", "spawn_key", "traceback")


def failures_of(tasks, outcomes):
    """Table of the tasks that failed: a pandas.DataFrame, one row a failure.

    Columns are those of a task's ``place``, then ``error``, the kind of error; ``entropy`` and
    ``spawn_key`` of the task's SeedSequence; and ``traceback``, with names of files and functions
    and numbers of lines. No message is kept, since any may repeat a record, and no name of an error
    that the user's own code defines.
    """
    found = [
        (task.place, task.seed, outcome.failure)
        for task, outcome in zip(tasks, outcomes, strict=True)
        if outcome.failure is not None
    ]
    return failure_table(list(tasks[0].place) if tasks else [], found)


def failure_table(names, found):
    """The same from (place, seed, :class:`ppm.studies.engine.Failure`) of each."""
    import pandas as pd

    rows = [
        {
            **place, "error": failure.error, "entropy": seed.entropy,
            "spawn_key": seed.spawn_key, "traceback": failure.traceback,
        }
        for place, seed, failure in found
    ]
    return pd.DataFrame(rows, columns=[*names, *_COLUMNS])


def no_failures():
    """The table of a study in which nothing failed."""
    return failures_of([], [])
