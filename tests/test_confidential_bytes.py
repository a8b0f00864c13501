"""Nothing that is written while models are fitted holds a record's value."""

import contextlib
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytensor
import pytest
from models_that_could_write import MODELS, needles, search

from ppm.synthesizers.pymc_rewriting import nothing_written

SCRIPT = Path(__file__).with_name("models_that_could_write.py")


def fit_in_an_empty_home(folder, remedy, names):
    """What the script prints; everything that it writes lies in the folder."""
    places = {name: folder / name for name in ("home", "temporary", "compile", "numba", "work")}
    for place in places.values():
        place.mkdir()
    environment = os.environ | {
        "HOME": str(places["home"]),
        "XDG_CACHE_HOME": str(places["home"]),
        "TMPDIR": str(places["temporary"]),
        "PYTENSOR_FLAGS": f"base_compiledir={places['compile']}",
        "NUMBA_CACHE_DIR": str(places["numba"]),
        "PYTHONPATH": str(SCRIPT.parents[1]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    finished = subprocess.run(
        [sys.executable, str(SCRIPT), str(folder), remedy, *names],
        cwd=places["work"], env=environment, stdout=subprocess.PIPE, text=True, check=True,
    )
    return json.loads(finished.stdout)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """What is found after fits of all models."""
    return fit_in_an_empty_home(tmp_path_factory.mktemp("with"), "with", MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_no_file_holds_a_record_of_the_model(written, name):
    found = written["found"][name]
    assert len(found) >= 2
    assert all(counts and not any(counts.values()) for counts in found.values()), found


def test_every_file_was_searched(written):
    assert written["files"] > 20
    assert written["elsewhere"] == []


def test_the_search_finds_the_records_when_the_remedy_is_taken_out(tmp_path):
    names = ["normal", "hierarchical"]
    found = fit_in_an_empty_home(tmp_path, "without", names)["found"]
    # constants of compiled functions, and what of an array a comment shows
    assert found["normal"]["y"]["float64"] == 24
    assert found["normal"]["y"]["text"] == 2
    for column in ("y", "x", "age"):
        assert max(found["hierarchical"][column].values()) == 24
    assert max(found["hierarchical"]["region"].values()) == 1


@pytest.mark.parametrize(
    "kind", ["float64", "float32", "int64", "int32", "text", "logarithm"]
)
def test_the_search_knows_every_encoding(tmp_path, kind):
    counts = np.random.default_rng(1).integers(1e8, 2e8, 24)
    kinds = {"text": "U20"}
    column = np.log(counts) if kind == "logarithm" else counts.astype(kinds.get(kind, kind))
    (tmp_path / "file").write_bytes(
        "\n".join(column).encode() if kind == "text" else b"..." + column.tobytes() + b"."
    )
    found = search(tmp_path, {"y": counts})["y"]
    assert found[kind] == len(needles(counts)[kind])
    (tmp_path / "file").write_bytes(b"")
    assert not any(search(tmp_path, {"y": counts})["y"].values())


# ---- settings of the whole process -------------------------------------------------------------


def settings():
    """What the library changes while it compiles."""
    writers = [m.write_generated_src for m in (pytensor.link.utils, pytensor.link.numba.cache)]
    return pytensor.config.numba__cache, pytensor.config.cxx, *writers


def test_settings_come_back_after_an_error():
    before = settings()
    with pytest.raises(ZeroDivisionError), nothing_written():
        assert settings()[:2] == (False, "")
        raise ZeroDivisionError
    assert settings() == before


def test_settings_hold_until_the_last_thread_has_left():
    before, entered, leave = settings(), threading.Barrier(2), threading.Event()

    def compile_slowly():
        with nothing_written():
            entered.wait(10)
            leave.wait(10)

    thread = threading.Thread(target=compile_slowly)
    with contextlib.ExitStack() as stack:
        stack.enter_context(nothing_written())
        thread.start()
        entered.wait(10)
    # the first thread has left; the cache may not come back under the other one's hands
    assert settings()[:2] == (False, "")
    leave.set()
    thread.join()
    assert settings() == before


def test_a_cache_asked_for_by_another_thread_does_not_reach_the_library():
    with nothing_written(), pytensor.config.change_flags(numba__cache=True):
        with nothing_written():
            assert pytensor.config.numba__cache is False
