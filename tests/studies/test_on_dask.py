"""Studies on a local Dask cluster: the tables of any number of processes, and of none."""

import os
import re
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor

import engine_jobs
import numpy as np
import pytest
import study_models
from conftest import ROOT
from engine_jobs import SECRET, jobs

import ppm
from ppm.studies import engine, tasks
from ppm.studies.tasks import chosen_engine, failures_of, run_tasks

distributed = pytest.importorskip("distributed")
dask_config = pytest.importorskip("dask.config")


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        processes=True, n_workers=2, threads_per_worker=1, dashboard_address=":0"
    ) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def dask(cluster):
    with distributed.Client(cluster) as client:
        yield client.get_executor()


def gamma_poisson(**settings):
    return ppm.studies.contraction_by_fits(
        study_models.counts, ppm.GammaPoisson, [30, 40], replicates=3, draws=40, random_seed=4,
        **settings,
    ).dataset


def test_tables_of_1_2_and_4_workers_and_of_dask_are_the_same(dask, monkeypatch, tmp_path):
    found = [gamma_poisson(executor=dask, store=tmp_path)]
    for workers in "124":
        monkeypatch.setenv(engine.WORKERS, workers)
        found.append(gamma_poisson())
    for other in found[1:]:
        assert other.identical(found[0])
    # and what Dask computed is found again by whoever comes next
    assert gamma_poisson(store=tmp_path).identical(found[0])
    assert len(list(tmp_path.glob("*.npz"))) == 6


def test_a_pymc_model_has_the_same_table_on_dask(dask):
    def study(executor):
        return ppm.studies.contraction_by_fits(
            study_models.counts, study_models.pymc_counts, [20], replicates=2, draws=20,
            random_seed=4, executor=executor,
        )

    with ThreadPoolExecutor(2) as threads:
        here, there = study(threads), study(dask)
    assert here.failures.empty and there.dataset.identical(here.dataset)
    assert np.isfinite(there.dataset["r_hat"]).all() and there.draws == 40
    assert np.unique(there.dataset["local_bound"]).size == 6


def test_a_worker_has_one_thread_and_a_folder_of_its_own(dask, tmp_path):
    found = [
        outcome.result
        for outcome in run_tasks(
            engine_jobs.where, jobs(6, tmp_path), chosen_engine(dask, None, 1)
        )
    ]
    assert {int(result["threads"]) for result in found} == {1}
    folders = {int(result["process"]): str(result["folder"]) for result in found}
    assert len(folders) == 2 and len(set(folders.values())) == 2 and all(folders.values())


def test_failures_and_killed_workers(dask, tmp_path, caplog, capfd):
    todo, chosen = jobs(5, tmp_path), chosen_engine(dask, None, 1)
    found = run_tasks(engine_jobs.fail_at_two, todo, chosen)
    (row,) = failures_of(todo, found).to_dict("records")
    assert row["number"] == 2 and "in fail_at_two" in row["traceback"]
    # Dask logs a task that fails with what it was given, and none does
    assert SECRET not in str(row) + caplog.text + "".join(capfd.readouterr())
    found = run_tasks(engine_jobs.killed_once, todo, chosen)
    assert (tmp_path / "killed-3").exists() and failures_of(todo, found).empty
    expected = [engine_jobs.draw(job)["drawn"] for job in todo]
    assert np.array_equal([outcome.result["drawn"] for outcome in found], expected)


class Losing:
    """A client whose results come to these ends, one after the other."""

    def __init__(self, *ends):
        self.ends, self.cancelled = list(ends), 0

    def nthreads(self):
        return {"worker": 1}

    def submit(self, function, payload, **settings):
        assert settings == {"retries": 2, "pure": False}
        return Asked(self, self.ends.pop(0), lambda: function(payload))


class Asked:
    """A future of such a client, which has ended when somebody asks for its result."""

    def __init__(self, client, end, compute):
        self.client, self.end, self.compute = client, end, compute

    def add_done_callback(self, tell):
        tell(self)

    def cancel(self):
        self.client.cancelled += 1

    def result(self, timeout):
        if self.end == "lost":
            raise TimeoutError
        if self.end == "killed":
            raise distributed.scheduler.KilledWorker("a task", None, 3)
        return self.compute()


def test_what_was_lost_with_its_worker_is_asked_for_again_and_given_up_in_the_end():
    client = Losing("lost", "there", "killed", "lost", "lost", "lost", "there")
    executor = distributed.cfexecutor.ClientExecutor(client, retries=2)
    todo = jobs(4)
    found = run_tasks(engine_jobs.draw, todo, chosen_engine(executor, None, 1))
    for i in (0, 3):
        assert np.array_equal(found[i].result["drawn"], engine_jobs.draw(todo[i])["drawn"])
    failed = failures_of(todo, found)
    assert failed["number"].tolist() == [1, 2] and not client.ends and client.cancelled == 4
    assert failed["error"].tolist() == ["KilledWorker", "TimeoutError"]
    assert failed["traceback"][0].endswith("the workers that it was on died again and again")
    executor._shutdown = True
    with pytest.raises(RuntimeError, match="the executor has been shut down$"):
        run_tasks(engine_jobs.draw, todo, chosen_engine(executor, None, 1))


class Leaving:
    """A client whose workers leave after the first task, and may come back."""

    def __init__(self, come_back):
        self.come_back, self.asked, self.held, self.there = come_back, 0, [], True

    def nthreads(self):
        self.asked += not self.there
        if self.come_back and self.asked == 3:
            self.there = True
            for told, payload in self.held:
                told.set_result(engine.run_payload(payload))
        return {"worker": 1} if self.there else {}

    def submit(self, function, payload, **settings):
        told = Future()
        if self.there:
            told.set_result(function(payload))
            self.there = self.asked > 0
        else:
            self.held.append((told, payload))
        return told


@pytest.mark.parametrize("come_back", [False, True])
def test_a_study_ends_when_no_worker_comes_back(come_back, monkeypatch, tmp_path):
    monkeypatch.setattr(engine, "_SECONDS_BETWEEN_QUESTIONS", 0)
    monkeypatch.setattr(tasks, "_SECONDS_BETWEEN_LOOKS", 0.05)
    client, todo = Leaving(come_back), jobs(5)
    executor = distributed.cfexecutor.ClientExecutor(client)
    with dask_config.set({"distributed.scheduler.no-workers-timeout": "0.5 s"}):
        found = run_tasks(engine_jobs.draw, todo, chosen_engine(executor, tmp_path, 1))
    failed, kept = failures_of(todo, found), len(list(tmp_path.glob("*.npz")))
    if come_back:
        assert failed.empty and kept == 5
        return
    # those that were never handed over too
    assert failed["number"].tolist() == [1, 2, 3, 4] and kept == 1
    assert set(failed["error"]) == {"WorkersGone"}
    assert all(told.cancelled() for told, _ in client.held)
    assert failed["traceback"].str.contains("no worker of the Dask cluster was left").all()


def test_a_sweep_ends_when_no_worker_comes_back(monkeypatch):
    monkeypatch.setattr(engine, "_SECONDS_BETWEEN_QUESTIONS", 0)
    executor = distributed.cfexecutor.ClientExecutor(Leaving(come_back=False))
    with dask_config.set({"distributed.scheduler.no-workers-timeout": "0.3 s"}):
        found = ppm.studies.sweep(
            ppm.GammaPoisson([3, 5, 4]), [(0.7, 0.0)], releases=1, draws=20, random_seed=1,
            executor=executor,
        )
    assert set(found.failures["error"]) == {"WorkersGone"}


def test_a_task_that_kills_every_worker_is_a_row(tmp_path):
    with (
        distributed.LocalCluster(
            processes=True, n_workers=1, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.run_on_scheduler(_forgive_nothing)
        todo = jobs(5, tmp_path)[2:]
        found = run_tasks(
            engine_jobs.killed_always, todo, chosen_engine(client.get_executor(), None, 1)
        )
        failed = failures_of(todo, found)
        # whatever waited in that worker may be given up with it
        assert 3 in failed["number"].tolist() and set(failed["error"]) == {"KilledWorker"}


def _forgive_nothing(dask_scheduler):
    dask_scheduler.allowed_failures = 0


def test_the_scheduler_of_the_environment_is_used(cluster, monkeypatch, tmp_path):
    monkeypatch.setenv(engine.SCHEDULER, cluster.scheduler_address)
    todo = jobs(3, tmp_path)
    try:
        chosen = chosen_engine(None, None, None)
        found = run_tasks(engine_jobs.where, todo, chosen)
        assert chosen_engine(None, None, None).executor._client is chosen.executor._client
        workers = {info["pid"] for info in _workers(chosen.executor._client)}
        assert {int(outcome.result["process"]) for outcome in found} <= workers
    finally:
        for client in engine._clients.values():
            client.close()
        engine._clients.clear()


def test_a_run_asks_the_scheduler_before_it_begins(cluster):
    address = cluster.scheduler_address
    assert engine.environment_of(scheduler=address) == {
        engine.WORKERS: "", engine.SCHEDULER: address
    }
    assert not engine._clients
    with pytest.raises(ValueError, match="exclude each other"):
        engine.environment_of(2, address)


def test_a_scheduler_with_other_versions_is_refused(cluster, monkeypatch):
    real = distributed.Client.get_versions

    def older(client):
        found = real(client)
        found["scheduler"]["packages"] |= {"distributed": "2020.1.0", "numpy": None}
        return found

    with monkeypatch.context() as change:
        change.setattr(distributed.Client, "get_versions", older)
        with pytest.raises(ValueError, match="^the Dask scheduler at .* of distributed: make th"):
            engine.environment_of(scheduler=cluster.scheduler_address)
    assert not engine._clients


def test_the_books_example_runs_as_it_stands(tmp_path):
    page = (ROOT / "book" / "library" / "studies.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    script = tmp_path / "script.py"
    # fewer databases than a reader would take
    script.write_text(code.replace("replicates=20", "replicates=2"))
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)], cwd=tmp_path, capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    assert "Weighted-M 50" in done.stdout and "missing" not in done.stdout
    assert len(list((tmp_path / "contraction-study").glob("*.npz"))) == 4


def _workers(client):
    processes = client.run(engine_jobs.process_of, None)
    return [{"pid": process} for process in processes.values()]


def test_a_scheduler_that_does_not_answer_is_told_soon(monkeypatch):
    monkeypatch.setattr(engine, "_SECONDS_TO_CONNECT", 0.5)
    for address in ("tcp://127.0.0.1:9", "nonsense://x", "a-word", "127.0.0.1", "a:b"):
        monkeypatch.setenv(engine.SCHEDULER, address)
        with pytest.raises(ValueError, match=f"^no Dask scheduler answers at '?{address}"):
            chosen_engine(None, None, None)
