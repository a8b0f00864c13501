"""Tasks for tests of engines, in a module that other processes can import."""

import linecache
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import ppm
from ppm.studies.tasks import chosen_engine, run_tasks
from ppm.synthesizers.chains import run_chains

SECRET = "record 987654.321"


@dataclass(frozen=True)
class Job:
    """One task: its number, its seed, and a folder where it can leave a mark."""

    number: int
    seed: object
    folder: str = ""

    @property
    def place(self):
        return {"number": self.number}


def jobs(count, folder="", seed=5):
    return [
        Job(i, np.random.SeedSequence(seed, spawn_key=(i,)), str(folder)) for i in range(count)
    ]


def draw(job):
    return {"drawn": np.random.default_rng(job.seed).normal(size=3)}


def draw_late(job):
    """The first tasks are the last to end."""
    time.sleep(0.3 if job.number < 2 else 0.0)
    return draw(job)


def where(job):
    """Process, threads of its linear algebra, and compile folder."""
    from threadpoolctl import threadpool_info

    np.ones((2, 2)) @ np.ones((2, 2))
    Path(job.folder, f"written-{job.number}").touch()
    threads = max((pool["num_threads"] for pool in threadpool_info()), default=1)
    return {
        **draw(job),
        "process": os.getpid(),
        "threads": threads,
        "folder": os.environ.get("PYTENSOR_FLAGS", "").rpartition("base_compiledir=")[2],
    }


def fail_at_two(job):
    if job.number == 2:
        confidential = SECRET
        raise ValueError(f"cannot take {confidential}")
    return draw(job)


def fail_at_two_in_the_library(job):
    """What the library says of an argument that comes from a record repeats the record."""
    if job.number == 2:
        record = float(SECRET.split()[1])
        ppm.GammaPoisson([1, 2], shape=-record)
    return draw(job)


def fail_at_two_by_a_name(job):
    if job.number == 2:
        raise type(SECRET, (ValueError,), {"__module__": "builtins"})
    return draw(job)


def fail_at_two_in_several_lines(job):
    if job.number == 2:
        raise ValueError(f"of two lines\n{SECRET}: the second") from KeyError(SECRET)
    return draw(job)


def fail_at_two_in_generated_code(job):
    if job.number == 2:
        source = f"1 / 0  # {SECRET}\n"
        linecache.cache["<made>"] = (len(source), None, [source], "<made>")
        exec(compile(source, "<made>", "exec"))
    return draw(job)


def leave_at_two(job):
    if job.number == 2:
        sys.exit(3)
    return draw(job)


def fail(job):
    raise ValueError(SECRET)


def killed_once(job):
    """The process of task 3 is killed, the first time."""
    mark = Path(job.folder, f"killed-{job.number}")
    if job.number == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return draw(job)


def killed_always(job):
    if job.number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    # whoever runs beside that task does not end in time
    time.sleep(0.15)
    return draw(job)


def first_at_once(job):
    """Task 0 is done at once; the others leave a mark if they are let run to their end."""
    if job.number:
        time.sleep(2.0)
        Path(job.folder, f"ended-{job.number}").touch()
    return draw(job)


def counted(job):
    """Leaves a mark each time that it runs."""
    with open(Path(job.folder, f"ran-{job.number}"), "a") as stream:
        stream.write("x")
    return draw(job)


_at_work = []


def beside(job):
    """How many others are at work in this process at the same time."""
    _at_work.append(job.number)
    time.sleep(0.05)
    others = len(_at_work) - 1
    _at_work.remove(job.number)
    return {"others": others}


def slow(job):
    counted(job)
    time.sleep(0.1)
    return draw(job)


@dataclass
class Chain:
    sweeps: int = 1


@dataclass(frozen=True)
class Sized:
    """A combination of a study, with its size."""

    components: int
    sweeps: int = 10
    seed: object = None
    place = {}


def process_of(job, report=None):
    return os.getpid()


def process_of_a_task(job):
    return {"process": os.getpid()}


def runs_chains_and_tasks(job):
    """What would have processes of its own elsewhere."""
    inner = run_tasks(process_of_a_task, jobs(2), chosen_engine(None, None, 1))
    return {
        "process": os.getpid(),
        "chains": run_chains(process_of, [Chain(), Chain()], lambda sweeps: None, parallel=True),
        "tasks": [outcome.result["process"] for outcome in inner],
    }


def times_run(folder):
    """Number of each task that ran, to how often."""
    return {
        int(path.name.partition("-")[2]): len(path.read_text()) for path in folder.glob("ran-*")
    }
