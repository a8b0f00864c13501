"""Tasks on engines: the same results in the same order, whatever happens on the way."""

import contextlib
import copyreg
import functools
import multiprocessing
import os
import pickle
import re
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from pathlib import Path

import engine_jobs
import numpy as np
import psutil
import pytest
import study_models
from engine_jobs import SECRET, draw, jobs, times_run

import ppm
from ppm.studies import engine, kept_folder, origins, tasks
from ppm.studies.kept_folder import DamagedFit
from ppm.studies.tasks import chosen_engine, failures_of, run_tasks

POSIX = pytest.mark.skipif(os.name == "nt", reason="signals and permissions of POSIX")


def run(function, todo, workers=None, executor=None, store=None, **settings):
    """Outcomes of tasks on an engine."""
    chosen = chosen_engine(executor, store, 1)
    if workers is not None:
        chosen = tasks.Engine(workers, chosen.store)
    return run_tasks(function, todo, chosen, **settings)


def drawn(outcomes):
    return np.array([outcome.result["drawn"] for outcome in outcomes])


def expected(todo):
    return np.array([draw(job)["drawn"] for job in todo])


def processes():
    found = psutil.Process().children(recursive=True)
    return [p for p in found if "resource_tracker" not in " ".join(p.cmdline())]


# ---- the same results everywhere --------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_results_come_in_the_order_of_the_tasks_from_any_number_of_workers(workers):
    todo = jobs(7)
    assert np.array_equal(drawn(run(engine_jobs.draw_late, todo, workers)), expected(todo))
    assert not processes()
    # in another order they would be others
    assert not np.array_equal(expected(todo), expected(todo[::-1]))


def test_any_executor_of_the_standard_library_will_do():
    todo = jobs(5)
    spawn = multiprocessing.get_context("spawn")
    with ThreadPoolExecutor(3) as threads, ProcessPoolExecutor(1, spawn) as pool:
        for executor in (threads, pool):
            found = run(engine_jobs.draw_late, todo, executor=executor)
            assert np.array_equal(drawn(found), expected(todo))
            # it is the user's, and goes on
            assert executor.submit(int, "3").result() == 3
    assert np.array_equal(drawn(run(draw, todo, here=True)), expected(todo))


def test_threads_of_one_process_take_turns():
    with ThreadPoolExecutor(3) as executor:
        found = run(engine_jobs.beside, jobs(4), executor=executor)
    assert [outcome.result["others"] for outcome in found] == 4 * [0]


class Watched(Executor):
    """Runs a task when somebody waits, and remembers how many waited at the same time."""

    def __init__(self, workers):
        self._max_workers, self.most, self.waiting = workers, 0, []
        self.submitted = []

    def submit(self, function, *arguments):
        future = Future()
        self.submitted.append(arguments)
        self.waiting.append((future, function, arguments))
        self.most = max(self.most, len(self.waiting))
        threading.Timer(0.01, self.one).start()
        return future

    def one(self):
        # the last one first
        future, function, arguments = self.waiting.pop()
        future.set_result(function(*arguments))


@pytest.mark.parametrize("workers", [1, 3])
def test_no_more_than_a_window_of_tasks_is_handed_over(workers):
    todo, executor = jobs(20), Watched(workers)
    assert np.array_equal(drawn(run(draw, todo, executor=executor)), expected(todo))
    assert 2 * workers <= executor.most <= 4 * workers


def test_a_process_has_one_thread_and_a_folder_of_its_own_that_goes(tmp_path):
    seen = {}
    for outcome in run(engine_jobs.where, jobs(6, tmp_path), 2):
        found = outcome.result
        assert found["threads"] == 1
        seen[int(found["process"])] = str(found["folder"])
    assert os.getpid() not in seen and len(set(seen.values())) == len(seen)
    for process, folder in seen.items():
        assert folder.endswith(str(process)) and not Path(folder).parent.exists()
    if os.name != "nt":
        # nor is anything for others to read that a user's function writes
        assert {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()} == {0o600}


def test_an_interrupt_while_the_pool_ends_leaves_no_folder(monkeypatch):
    pool = engine.OwnPool(1)

    def shutdown(**settings):
        raise KeyboardInterrupt

    monkeypatch.setattr(pool._executor, "shutdown", shutdown)
    with pytest.raises(KeyboardInterrupt):
        pool.close()
    assert not os.path.exists(pool._folder) and pool._writer.closed


@POSIX
def test_the_compile_folder_is_its_owners():
    pool = engine.OwnPool(1)
    assert stat.S_IMODE(os.stat(pool._folder).st_mode) == 0o700
    pool.close()
    assert not os.path.exists(pool._folder)


def test_a_study_within_a_task_starts_no_processes():
    found = run(engine_jobs.runs_chains_and_tasks, jobs(1), 1)[0].result
    assert found["process"] != os.getpid()
    assert set(found["chains"]) == set(found["tasks"]) == {int(found["process"])}


@pytest.mark.parametrize("how", ["script", "standard input"])
def test_a_script_without_a_guard_does_not_run_itself_again(tmp_path, how):
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            from dataclasses import dataclass
            import numpy as np
            from ppm.studies.tasks import Engine, run_tasks

            print("begun", flush=True)
            FACTOR = 3

            @dataclass
            class Job:
                number: int
                seed: object

            def times(job):
                return {"found": FACTOR * job.number}

            found = run_tasks(times, [Job(i, None) for i in range(3)], Engine(2, None))
            print([int(one.result["found"]) for one in found])
            """
        )
    )
    env = os.environ | {"PYTHONPATH": str(Path(ppm.__file__).parents[1])}
    command = [sys.executable, "-W", "error", *([str(script)] if how == "script" else ["-"])]
    with script.open() as stream:
        done = subprocess.run(command, env=env, stdin=stream, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["begun", "[0, 3, 6]"], done.stderr


def test_what_is_no_executor_is_refused():
    with pytest.raises(
        ValueError, match="^executor must be a concurrent.futures.Executor.*got int"
    ):
        chosen_engine(4, None, 1)
    holds = functools.partial(lambda lock, job: {}, threading.Lock())
    with ThreadPoolExecutor(1) as executor, pytest.raises(ValueError, match="these cannot"):
        run(holds, jobs(1), executor=executor)


def test_the_environment_says_how_many_workers(monkeypatch):
    for name in (engine.WORKERS, engine.SCHEDULER):
        monkeypatch.delenv(name, raising=False)
    assert chosen_engine(None, None, None).plain
    monkeypatch.setenv(engine.WORKERS, "3")
    assert chosen_engine(None, None, None).executor == 3
    with ThreadPoolExecutor(1) as executor:
        # what a function is given goes before what its surroundings say
        assert chosen_engine(executor, None, None).executor is executor
    for wrong in ("0", "-1", "1.5", "many", "1001"):
        monkeypatch.setenv(engine.WORKERS, wrong)
        with pytest.raises(ValueError, match="^PPM_WORKERS must be"):
            chosen_engine(None, None, None)


# ---- failures ---------------------------------------------------------------------------------


@pytest.mark.parametrize("function", ["fail_at_two", "leave_at_two"])
@pytest.mark.parametrize("threads", [False, True])
def test_a_failure_is_a_row_with_its_seed_and_the_others_are_there(function, threads):
    todo = jobs(4)
    with ThreadPoolExecutor(2) if threads else contextlib.nullcontext() as executor:
        found = run(getattr(engine_jobs, function), todo, executor=executor)
    table = failures_of(todo, found)
    (row,) = table.to_dict("records")
    assert row["number"] == 2 and row["error"] in ("ValueError", "SystemExit")
    seed = np.random.SeedSequence(row["entropy"], spawn_key=row["spawn_key"])
    assert np.array_equal(seed.generate_state(4), todo[2].seed.generate_state(4))
    assert f"in {function}" in row["traceback"] and "engine_jobs.py" in row["traceback"]
    others = [outcome for i, outcome in enumerate(found) if i != 2]
    assert np.array_equal(drawn(others), np.delete(expected(todo), 2, axis=0))
    assert tasks.no_failures().empty


@pytest.mark.parametrize(
    ("function", "error"),
    [
        ("fail_at_two", "ValueError"),
        ("fail_at_two_in_the_library", "ValueError"),
        ("fail_at_two_by_a_name", "an error of the study's own code"),
        ("fail_at_two_in_several_lines", "ValueError"),
        ("fail_at_two_in_generated_code", "ZeroDivisionError"),
    ],
)
def test_a_failure_repeats_no_value(function, error):
    todo = jobs(4)
    with ThreadPoolExecutor(1) as executor:
        found = run(getattr(engine_jobs, function), todo, executor=executor)
    (row,) = failures_of(todo, found).to_dict("records")
    assert "987654" not in str(row) and "not kept" in row["traceback"]
    assert row["error"] == error and f"\n{error}: (" in row["traceback"]
    assert re.search(rf"engine_jobs.py\", line [0-9]+, in {function}\n", row["traceback"])


@pytest.mark.parametrize("how", ["from", "within", "from None"])
def test_a_failure_names_the_error_that_caused_it_unless_that_was_hidden(how):
    try:
        try:
            raise KeyError(SECRET)
        except KeyError as cause:
            if how == "within":
                float("none")
            raise ValueError(SECRET) from (cause if how == "from" else None)
    except ValueError as error:
        told = engine.failure_of(error)
    assert told.error == "ValueError" and "987654" not in told.traceback
    causes = re.findall(r"caused by\n.*\n(\w+): ", told.traceback)
    assert causes == ([] if how == "from None" else ["KeyError"])


def test_an_executor_that_shows_its_tasks_shows_no_record():
    executor = Watched(1)
    run(draw, jobs(2, folder=SECRET), executor=executor)
    shown = repr(executor.submitted)
    assert "Payload()" in shown and "987654" not in shown and "record" not in shown


def test_if_all_fail_the_first_is_told():
    with pytest.raises(RuntimeError, match="none of the 3 parts.*\n(.*\n)*.*in fail") as caught:
        run(engine_jobs.fail, jobs(3), 1)
    assert SECRET not in str(caught.value)


class Broken(Watched):
    """Breaks after two tasks, as a pool does whose process was killed."""

    def submit(self, function, *arguments):
        if len(self.submitted) >= 2:
            raise BrokenExecutor("a process died")
        return super().submit(function, *arguments)


def test_the_users_executor_is_not_mended_and_what_it_did_is_there():
    todo = jobs(5)
    found = run(draw, todo, executor=Broken(1))
    assert np.array_equal(drawn(found[:2]), expected(todo[:2]))
    failed = failures_of(todo, found)
    assert failed["number"].tolist() == [2, 3, 4]
    assert failed["traceback"].str.contains("was killed.*cannot go on.*if there is a store").all()
    with ThreadPoolExecutor(1) as ended:
        pass
    with pytest.raises(RuntimeError, match="none of the 5(.*\n)*.*has been shut down$"):
        run(draw, todo, executor=ended)


@POSIX
def test_a_killed_process_of_the_users_pool_is_told():
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context) as pool:
        with pytest.raises(RuntimeError, match="none of the 2(.*\n)*.*processes was killed"):
            run(engine_jobs.killed_always, jobs(5)[3:], executor=pool)


# ---- faults -----------------------------------------------------------------------------------


@POSIX
def test_a_killed_worker_costs_time_and_no_result(tmp_path):
    todo = jobs(9, tmp_path)
    found = run(engine_jobs.killed_once, todo, 2)
    assert (tmp_path / "killed-3").exists()
    assert np.array_equal(drawn(found), expected(todo))
    assert not processes()


@POSIX
def test_a_task_that_kills_its_worker_fails_alone():
    todo = jobs(9)
    found = run(engine_jobs.killed_always, todo, 2)
    (row,) = failures_of(todo, found).to_dict("records")
    assert row["number"] == 3 and "killed 3 times" in row["traceback"]
    others = [outcome for outcome in found if outcome.failure is None]
    assert np.array_equal(drawn(others), np.delete(expected(todo), 3, axis=0))


def test_what_is_kept_is_not_computed_again(tmp_path):
    todo, store = jobs(5, tmp_path), tmp_path / "store"
    first = run(engine_jobs.counted, todo[:3], store=store, here=True)
    with ThreadPoolExecutor(2) as executor:
        both = run(engine_jobs.counted, todo, executor=executor, store=store)
    assert times_run(tmp_path) == dict.fromkeys(range(5), 1)
    assert np.array_equal(drawn(both), expected(todo))
    assert np.array_equal(drawn(first), expected(todo[:3]))
    # other seeds are other tasks
    run(engine_jobs.counted, jobs(5, tmp_path, seed=6), store=store, here=True)
    assert times_run(tmp_path) == dict.fromkeys(range(5), 2)


def test_a_study_that_was_kept_whole_shows_that_it_is_done(tmp_path, capsys):
    todo = jobs(3)
    run(draw, todo, store=tmp_path, here=True)
    run(draw, todo, store=tmp_path, here=True, progress=True)
    assert "3/3" in capsys.readouterr().err


def test_a_failure_is_not_kept(tmp_path):
    run(engine_jobs.fail_at_two, jobs(4), 1, store=tmp_path)
    assert len(list(tmp_path.glob("*.npz"))) == 3


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(path.read_bytes()[:-100]),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(next(
            other for other in path.parent.glob("*.npz") if other != path
        ).read_bytes()),
    ],
    ids=["cut short", "empty", "another's"],
)
def test_a_damaged_result_is_computed_again(tmp_path, damage):
    todo, store = jobs(3, tmp_path), tmp_path / "store"
    run(engine_jobs.counted, todo, store=store, here=True)
    damage(min(store.glob("*.npz")))
    with pytest.warns(DamagedFit, match="among the kept results is damaged"):
        found = run(engine_jobs.counted, todo, store=store, here=True)
    assert sum(times_run(tmp_path).values()) == 4
    assert np.array_equal(drawn(found), expected(todo))


class RunsWhenRead:
    """What a stranger could put into a file: reading it as a pickle runs code."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (self.mark,)


def test_nothing_in_a_kept_file_is_run(tmp_path):
    todo, store, mark = jobs(1), tmp_path / "store", tmp_path / "mark"
    run(draw, todo, store=store, here=True)
    (path,) = store.glob("*.npz")
    with np.load(path) as kept:
        head = kept["head"]
    np.savez(path, head=head, drawn=np.array([RunsWhenRead(mark)]))
    with pytest.warns(DamagedFit, match="is damaged"):
        found = run(draw, todo, store=store, here=True)
    assert np.array_equal(drawn(found), expected(todo)) and not mark.exists()


def test_a_full_disk_costs_the_file_and_not_the_result(tmp_path, monkeypatch):
    real, written = np.savez, []

    def full(stream, **arrays):
        written.append(stream)
        if len(written) > 2:
            stream.write(b"half of it")
            raise OSError(28, "No space left on device")
        real(stream, **arrays)

    monkeypatch.setattr(kept_folder.np, "savez", full)
    todo, store = jobs(4, tmp_path), tmp_path / "store"
    with pytest.warns(DamagedFit, match="a result could not be kept.*No space"):
        found = run(engine_jobs.counted, todo, store=store, here=True)
    assert np.array_equal(drawn(found), expected(todo))
    assert len(list(store.glob("*"))) == 3
    monkeypatch.undo()
    run(engine_jobs.counted, todo, store=store, here=True)
    assert times_run(tmp_path) == {0: 1, 1: 1, 2: 2, 3: 2}


def test_a_disk_that_turns_read_only_costs_the_file_and_not_the_result(tmp_path, monkeypatch):
    real = {name: getattr(Path, name) for name in ("touch", "unlink")}
    saved = []

    def refused(name, path, **settings):
        saved.append(path)
        if len(saved) > 4 and path.suffix == ".part":
            # also of a file that is not there
            raise OSError(30, "Read-only file system")
        return real[name](path, **settings)

    for name in real:
        monkeypatch.setattr(
            Path, name, lambda path, name=name, **settings: refused(name, path, **settings)
        )
    todo = jobs(5)
    with ThreadPoolExecutor(1) as executor:
        with pytest.warns(DamagedFit, match="could not be kept.*Read-only"):
            found = run(draw, todo, executor=executor, store=tmp_path)
    assert np.array_equal(drawn(found), expected(todo))
    assert 0 < len(list(tmp_path.glob("*.npz"))) < 5


@pytest.mark.filterwarnings("error::ppm.studies.kept_folder.DamagedFit")
def test_what_cannot_be_kept_is_no_failure_of_its_task_where_warnings_are_errors(
    tmp_path, monkeypatch
):
    def full(stream, **arrays):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kept_folder.np, "savez", full)
    with ThreadPoolExecutor(1) as executor, pytest.raises(DamagedFit, match="No space left"):
        run(draw, jobs(3), executor=executor, store=tmp_path)


def test_a_note_that_a_full_disk_left_empty_is_written_when_there_is_room(tmp_path, monkeypatch):
    def full(path, *arguments):
        raise OSError(28, "No space left on device")

    note = tmp_path / "CONFIDENTIAL.txt"
    with (
        monkeypatch.context() as patch,
        pytest.raises(ValueError, match="^store: cannot write.*sp"),
    ):
        patch.setattr(Path, "write_text", full)
        chosen_engine(None, tmp_path, 1)
    assert not note.read_text()
    chosen_engine(None, tmp_path, 1)
    assert "CONFIDENTIAL" in note.read_text()
    # what somebody wrote there stays
    note.write_text("ours")
    chosen_engine(None, tmp_path, 1)
    assert note.read_text() == "ours"


@pytest.mark.parametrize("stage", ["before", "while writing", "after renaming"])
def test_an_interrupt_at_any_stage_keeps_what_is_finished(tmp_path, monkeypatch, stage):
    todo, store = jobs(12, tmp_path), tmp_path / "store"
    saved, real, write = [], tasks.ResultStore.save, np.savez

    def save(self, key, result):
        saved.append(key)
        if len(saved) == 3:
            if stage == "before":
                raise KeyboardInterrupt
            if stage == "while writing":
                monkeypatch.setattr(kept_folder.np, "savez", half)
        real(self, key, result)
        if len(saved) == 3:
            raise KeyboardInterrupt

    def half(stream, **arrays):
        write(stream, **arrays)
        stream.seek(-5, 1)
        stream.truncate()
        raise KeyboardInterrupt

    monkeypatch.setattr(tasks.ResultStore, "save", save)
    with ThreadPoolExecutor(1) as executor, pytest.raises(KeyboardInterrupt):
        run(engine_jobs.slow, todo, executor=executor, store=store)
    monkeypatch.undo()
    # the window had three tasks in it, of which at most one had begun
    assert len(times_run(tmp_path)) <= 5
    kept = 2 + (stage == "after renaming")
    assert len(list(store.glob("*.npz"))) == kept and not list(store.glob("*.part"))
    before = times_run(tmp_path)
    found = run(engine_jobs.slow, todo, store=store, workers=2)
    assert np.array_equal(drawn(found), expected(todo))
    again = times_run(tmp_path)
    assert sum(again.values()) - sum(before.values()) == 12 - kept


@POSIX
def test_an_interrupt_ends_the_processes_of_the_pool_at_once(tmp_path, monkeypatch):
    def save(self, key, result):
        raise KeyboardInterrupt

    monkeypatch.setattr(tasks.ResultStore, "save", save)
    with pytest.raises(KeyboardInterrupt):
        run(engine_jobs.first_at_once, jobs(9, tmp_path), 2, store=tmp_path / "store")
    assert not processes() and not list(tmp_path.glob("ended-*"))


class Held(Watched):
    """Runs nothing but its first task."""

    def submit(self, function, *arguments):
        future = Future()
        self.waiting.append(future)
        if len(self.waiting) == 1:
            future.set_result(function(*arguments))
        return future


def interrupted(self, key, result):
    raise KeyboardInterrupt


def test_an_interrupt_cancels_what_has_not_begun(tmp_path, monkeypatch):
    monkeypatch.setattr(tasks.ResultStore, "save", interrupted)
    executor = Held(2)
    with pytest.raises(KeyboardInterrupt):
        run(draw, jobs(9), executor=executor, store=tmp_path)
    assert [future.cancelled() for future in executor.waiting] == [False] + 5 * [True]


class Endless(Future):
    """Cannot be cancelled, as a future of Parsl's."""

    def cancel(self):
        raise NotImplementedError("Cancel not implemented")


class WorkerLost(Exception):
    """What such an executor says of a worker that was killed."""


class OfAnotherKind(Executor):
    """As Parsl's: plain pickle, futures and errors of its own, and no word of how many workers."""

    def __init__(self):
        self.most, self.running, self.ended = 0, 0, False

    def submit(self, function, *arguments):
        if self.ended:
            raise RuntimeError("Executor has been shut down.")
        self.running += 1
        self.most = max(self.most, self.running)
        future, sent = Endless(), pickle.dumps((function, arguments))
        threading.Timer(0.02, self.one, (future, sent)).start()
        return future

    def one(self, future, sent):
        function, arguments = pickle.loads(sent)
        self.running -= 1
        found = function(*arguments)
        if found.failure is not None and found.failure.error == "SystemExit":
            future.set_exception(WorkerLost(SECRET))
        else:
            future.set_result(pickle.loads(pickle.dumps(found)))


def test_an_executor_of_another_library_will_do(tmp_path, monkeypatch):
    todo, executor = jobs(5), OfAnotherKind()
    assert np.array_equal(drawn(run(draw, todo, executor=executor)), expected(todo))
    executor.max_workers = 1
    executor.most = 0
    run(draw, jobs(6), executor=executor)
    assert executor.most <= 3
    (row,) = failures_of(todo, run(engine_jobs.leave_at_two, todo, executor=executor)).to_dict(
        "records"
    )
    assert row["number"] == 2 and SECRET not in str(row)
    assert row["traceback"].endswith("undone, perhaps since its process was killed")
    with pytest.raises(tasks.PartFailed, match="^number 2 was not computed"):
        run(engine_jobs.fail_at_two, todo, executor=executor, whole=True)
    monkeypatch.setattr(tasks.ResultStore, "save", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(draw, todo, executor=executor, store=tmp_path)
    executor.ended = True
    with pytest.raises(RuntimeError, match="the executor has been shut down$"):
        run(draw, todo, executor=executor)


DRIVER = """
import sys
sys.path.insert(0, sys.argv[2])
from engine_jobs import jobs, slow
from ppm.studies.tasks import Engine, ResultStore, run_tasks
run_tasks(slow, jobs(12, sys.argv[1]), Engine(2, ResultStore(sys.argv[1] + "/store")))
"""


@POSIX
def test_a_killed_driver_leaves_no_process_and_the_next_one_goes_on(tmp_path):
    command = [sys.executable, "-c", DRIVER, str(tmp_path), str(Path(engine_jobs.__file__).parent)]
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    env = os.environ | {
        "PYTHONPATH": str(Path(ppm.__file__).parents[1]), "TMPDIR": str(temporary)
    }
    store = tmp_path / "store"
    with subprocess.Popen(command, env=env) as driver:
        while len(list(store.glob("*.npz"))) < 3:
            assert driver.poll() is None
            time.sleep(0.02)
        workers = psutil.Process(driver.pid).children(recursive=True)
        driver.send_signal(signal.SIGKILL)
    assert len(workers) >= 2
    psutil.wait_procs(workers)
    # where its processes would have compiled
    assert not list(temporary.glob("ppm-compiled-*"))
    todo, before = jobs(12, tmp_path), times_run(tmp_path)
    kept = len(list(store.glob("*.npz")))
    assert 3 <= kept < 12
    found = run(engine_jobs.slow, todo, 2, store=store)
    assert np.array_equal(drawn(found), expected(todo))
    assert sum(times_run(tmp_path).values()) - sum(before.values()) == 12 - kept


@POSIX
def test_a_kept_file_that_goes_while_the_store_is_opened_is_none(tmp_path):
    # a link to nothing is in the list of files, and cannot be closed to others
    (tmp_path / f"{40 * 'a'}.npz").symlink_to(tmp_path / "gone")
    todo = jobs(2)
    assert np.array_equal(drawn(run(draw, todo, store=tmp_path, here=True)), expected(todo))


def test_two_drivers_in_one_store_do_not_disturb_each_other(tmp_path, monkeypatch):
    todo, found, real = jobs(3), {}, np.savez
    barrier = threading.Barrier(2)

    def half_and_half(stream, **arrays):
        # both have begun to write the same result before the first of them ends
        stream.write(b"PK")
        barrier.wait()
        stream.seek(0)
        real(stream, **arrays)

    def drive(name):
        found[name] = drawn(run(draw, todo, store=tmp_path, here=True))

    monkeypatch.setattr(kept_folder.np, "savez", half_and_half)
    drivers = [threading.Thread(target=drive, args=name) for name in "ab"]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join()
    for name in "ab":
        assert np.array_equal(found[name], expected(todo))
    assert len(list(tmp_path.glob("*.npz"))) == 3 and not list(tmp_path.glob("*.part"))
    monkeypatch.undo()
    assert np.array_equal(drawn(run(draw, todo, store=tmp_path, here=True)), expected(todo))


@POSIX
def test_the_store_is_its_owners_and_says_what_it_is(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    store = tmp_path / "new" / "store"
    before = os.umask(0o022)
    try:
        run(draw, jobs(2), store=store, here=True)
    finally:
        os.umask(before)
    assert stat.S_IMODE(store.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in store.iterdir()} == {0o600}
    assert "CONFIDENTIAL" in (store / "CONFIDENTIAL.txt").read_text()
    for wrong in (3, "", "  ", b"", "a\0", "~nobody-of-this-name/a"):
        with pytest.raises(ValueError, match="^store must be a folder; got "):
            chosen_engine(None, wrong, 1)
    file = store / "CONFIDENTIAL.txt"
    with pytest.raises(ValueError, match="^store: cannot write into .*CONFIDENTIAL.txt: Not a dir"):
        chosen_engine(None, file, 1)
    # as a shell would read it
    assert chosen_engine(None, "~/no", 1).store.folder == tmp_path / "no"
    with pytest.raises(ValueError, match="^store needs a random_seed"):
        chosen_engine(None, store, None)


# ---- what a result is found by ----------------------------------------------------------------


def made(source, name="function"):
    """A function of a module that is not installed, as a notebook's."""
    space = {"__name__": "__main__", "np": np}
    exec(textwrap.dedent(source), space)
    return space[name]


COUNTER = """
from dataclasses import dataclass
@dataclass
class Counter:
    k: int
    def more(self): return self.k
"""

ALIKE = [
    "def function(n): return n + 1",
    "def function(n): return n + 2",
    "def function(n): return n - 1",
    "def function(n, by=1): return n + by",
    "def function(n, by=2): return n + by",
    "K = 1\ndef function(n): return n + K",
    "K = 2\ndef function(n): return n + K",
    "def inner(n): return n + 1\ndef function(n): return inner(n)",
    "def inner(n): return n + 2\ndef function(n): return inner(n)",
    "def make(k):\n    return lambda n: n + k\nfunction = make(1)",
    "def make(k):\n    return lambda n: n + k\nfunction = make(2)",
    "def function(n): return np.sin(n)",
    "def function(n): return np.cos(n)",
    "class function:\n    def fit(self): return 1",
    "class function:\n    def fit(self): return 2",
    "class function:\n    k = 1\n    def fit(self): return self.k",
    "class function:\n    k = 2\n    def fit(self): return self.k",
    "class function:\n    @property\n    def k(self): return 1",
    "class function:\n    @property\n    def k(self): return 2",
    "def function(n): return n in {'a', 'b'}",
    "def function(n): return function(n - 1) if n else 0",
    "K = (1, 2)\ndef function(n): return n[K]",
    "K = [1, 2]\ndef function(n): return n[K]",
    "K = np.float32(0.5)\ndef function(n): return n + K",
    "K = 0.5\ndef function(n): return n + K",
    "def function(n, k): return k",
    "def function(n, *k): return k",
    "def function(n): return function.mean\nfunction.mean = 10",
    "def function(n): return function.mean\nfunction.mean = 20",
    "class function:\n    def fit(self): return 1\n    fit = staticmethod(fit)",
    "class Meta(type):\n    k = 1\nclass function(metaclass=Meta):\n    pass",
    "class Meta(type):\n    k = 2\nclass function(metaclass=Meta):\n    pass",
    "def function(n, *, by=1): return n + by",
    "def function(n, *, by=2): return n + by",
    "class Base:\n    k = 1\nclass function(Base):\n    pass",
    "class Base:\n    k = 2\nclass function(Base):\n    pass",
    "K = 1\ndef function(n):\n    def inner(): return K\n    return inner()",
    "K = 2\ndef function(n):\n    def inner(): return K\n    return inner()",
    "from functools import partial\ndef f(n, k): return n\nfunction = partial(f, k=1)",
    "from functools import partial\ndef f(n, k): return n\nfunction = partial(f, k=2)",
    "function = slice(1, 5, 2)",
    "function = slice(1, 5, 3)",
    f"{COUNTER}function = Counter(1)",
    f"{COUNTER}function = Counter(1)\nfunction.extra = 1",
    f"{COUNTER}function = Counter(1).more",
    f"{COUNTER}function = Counter(2).more",
    "function = {1: 2}",
    "function = {2: 2}",
    "function = [[1, 2]]",
    "function = {1, 2}",
    "function = frozenset({1, 2})",
    "function = len",
    "function = np.sin",
    "function = np.cos",
    "function = np.concatenate",
    "function = open",
    "from scipy.special import gammaln as function",
    "from math import sin as function",
]


def key(value):
    return origins.digest_of(origins.content_of(value))


def test_functions_are_told_apart_by_what_they_do():
    keys = [key(made(source)) for source in ALIKE]
    assert len(set(keys)) == len(keys)
    # and not by where they lie or what stands around them
    for source, known in zip(ALIKE, keys, strict=True):
        assert key(made(f"# comment\n\n{source}\n\nother = 3")) == known
    one, other = (functools.partial(draw, k) for k in (1, 2))
    assert key(one) != key(other) and key(one) == key(functools.partial(draw, 1))
    assert key(ppm.GammaPoisson) != key(ppm.FiniteMixture)
    assert key(ppm.GammaPoisson([1, 2])) != key(ppm.GammaPoisson([1, 3]))


SIMULATION = """
from dataclasses import dataclass, field
@dataclass(frozen=True)
class Poisson:
    mean: float
    seen: list = field(default_factory=list)
    def __call__(self, n, random_seed): return self.helper(random_seed).poisson(self.mean, n)
    def helper(self, random_seed): return np.random.default_rng(random_seed)
"""


@pytest.mark.parametrize(
    "change",
    [("class Poisson", "class Geometric"), (".poisson", ".geometric"), ("default_rng", "Philox"),
     ("default_factory=list", "default_factory=dict")],
    ids=["name", "method", "helper", "default"],
)
def test_instances_of_dataclasses_are_told_apart_by_their_class(change):
    other = SIMULATION.replace(*change)
    plain = made(SIMULATION, "Poisson")
    changed = made(other, "Geometric" if "Geometric" in other else "Poisson")
    assert key(plain(10, [])) != key(changed(10, []))
    assert key(plain) != key(changed)
    known = key(plain(10))
    assert known == key(made(SIMULATION, "Poisson")(10)) != key(plain(11))
    # pickling leaves a mark on a class
    copyreg._slotnames(plain)
    assert "__slotnames__" in vars(plain) and key(plain(10)) == known


def test_a_synthesizer_is_known_by_what_its_class_calls(monkeypatch):
    model = study_models.ShiftedCounts([1, 2])
    before = key(model)
    assert key(study_models.ShiftedCounts([1, 2])) == before
    monkeypatch.setattr(study_models, "shifted", lambda log_lik: log_lik - 2.0)
    assert key(model) != before


def test_packages_below_this_environment_are_known_by_their_version(tmp_path, monkeypatch):
    # all their files, and those of all that they import, would take minutes
    for shelf, name in (("site-packages", "ppm_test_below"), ("own", "ppm_test_mine")):
        file = tmp_path / shelf / f"{name}.py"
        file.parent.mkdir()
        file.write_text("__version__ = '1'\nclass Odd(ValueError): pass\n")
        monkeypatch.syspath_prepend(file.parent)
    import ppm_test_below
    import ppm_test_mine

    kept = [key(ppm_test_below), key(ppm_test_mine)]
    for module in (ppm_test_below, ppm_test_mine):
        Path(module.__file__).write_text("__version__ = '1'\n")
    assert [key(ppm_test_below) == kept[0], key(ppm_test_mine) == kept[1]] == [True, False]
    assert engine.name_of(ppm_test_below.Odd()) == "Odd"
    assert engine.name_of(ppm_test_mine.Odd()) == "an error of the study's own code"


@pytest.mark.parametrize(
    "use",
    [
        "import helper_a\ndef function(n): return helper_a.f(n)",
        "def function(n):\n    import helper_a\n    return helper_a.f(n)",
        "def function(n):\n    from helper_a import f\n    return f(n)",
        "def function(n):\n    from package_a import deep\n    return deep.f(n)",
        "def function(n):\n    import package_a.late\n    return package_a.late.f(n)",
        "import package_a.late\ndef function(n): return package_a.late.f(n)",
        "from package_a.inner import function",
    ],
)
@pytest.mark.parametrize("imports", ["from helper_b import K", "import helper_b",
                                     "def g():\n    from helper_b import K"])
def test_a_module_is_known_with_all_that_it_imports(tmp_path, monkeypatch, use, imports):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "package_a").mkdir()
    (tmp_path / "package_a" / "__init__.py").touch()
    source = f"{imports}\ndef f(n): return n\n"
    for name in ("helper_a", "package_a/deep", "package_a/late"):
        (tmp_path / f"{name}.py").write_text(source)
    inner = "def function(n):\n    from .deep import f\n    return f(n)"
    (tmp_path / "package_a" / "inner.py").write_text(inner)
    # they import each other
    (tmp_path / "helper_b.py").write_text("def g():\n    import helper_a\nK = 1\n")
    try:
        function = made(use)
        before = key(function)
        assert key(function) == before
        (tmp_path / "helper_b.py").write_text("def g():\n    import helper_a\nK = 2\n")
        assert key(function) != before
    finally:
        for name in [n for n in sys.modules if n.startswith(("helper_", "package_a"))]:
            del sys.modules[name]


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("function = np.frompyfunc(lambda x: x + 1, 1, 1)", "ufunc"),
        ("function = {1: 2}.get", "builtin_function_or_method"),
        ("function = np.arange(3).take", "builtin_function_or_method"),
        ("function = np.random.default_rng(1).poisson", ".*"),
        ("function = np.ma.array([1, 2], mask=[0, 1])", "MaskedArray"),
        ("class Number(float):\n    pass\nfunction = Number(1)", "Number"),
        ("from collections import defaultdict\nfunction = defaultdict(int)", "defaultdict"),
        ("from types import ModuleType\nfunction = ModuleType('other')", "module.*"),
    ],
)
def test_what_has_something_within_that_cannot_be_seen_is_refused(source, kind):
    with pytest.raises(ValueError, match=f"^store cannot tell one {kind} from another"):
        key(made(source))


def test_what_cannot_be_told_apart_is_refused():
    model = made("import threading\nK = threading.Lock()\ndef function(n): return K")
    with pytest.raises(ValueError, match="^store cannot tell one lock from another"):
        key(model)


def test_another_library_finds_nothing(tmp_path, monkeypatch):
    todo, store = jobs(2, tmp_path), tmp_path / "store"
    for change in ("library_source", "versions", None):
        run(engine_jobs.counted, todo, store=store, here=True)
        if change:
            monkeypatch.setattr(tasks, change, lambda: ["another"])
    assert times_run(tmp_path) == {0: 3, 1: 3}
    library = Path(ppm.__file__).parent
    files = {str(file.relative_to(library)) for file in library.rglob("*.py")}
    assert {name for name, _ in origins.library_source()} == files


def test_a_payload_comes_back_as_it_went():
    function, task = pickle.loads(engine.packed(draw, jobs(1)[0]).content)
    assert np.array_equal(function(task)["drawn"], expected(jobs(1))[0])


def test_the_largest_begins_first_and_results_are_put_back(capsys):
    begun = []

    def function(job, report=lambda sweeps: None):
        begun.append(job.components)
        report(job.sweeps)
        return {"found": 10 * job.components}

    todo = [engine_jobs.Sized(k) for k in (2, 5, 1, 5)]
    for executor in (None, Watched(1)):
        chosen = chosen_engine(executor, None, 1)
        found = tasks.run_combinations(function, todo, chosen, parallel=False, progress=True)
        assert [int(outcome.result["found"]) for outcome in found] == [20, 50, 10, 50]
    # on an executor that counts elsewhere
    assert begun == [5, 5, 2, 1]
    shown = capsys.readouterr().err
    assert "40/40" in shown and "sweeps" in shown and "4/4" in shown and "tasks" in shown
