"""Nothing that is written while models are fitted holds a record's value."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from models_that_could_write import BESIDE

import ppm.models.mixture.passes  # noqa: F401

SCRIPT = Path(__file__).with_name("models_that_could_write.py")
# counts with predictors and labels, and others
NAMES = ("poisson", *BESIDE)


def fit_in_an_empty_home(folder, remedy, names):
    """What the script prints; everything that it writes lies in the folder.

    The mixture's passes were compiled by this process, which has read no record.
    """
    variables = (
        "HOME",
        "XDG_CACHE_HOME",
        "TMPDIR",
        "COMPILE",
        "WORK",
    )
    places = {name: str(folder / name.lower()) for name in variables}
    for place in places.values():
        os.mkdir(place)
    environment = (
        os.environ
        | places
        | {
            "PYTENSOR_FLAGS": f"base_compiledir={places['COMPILE']}",
            "PYTHONPATH": f"{SCRIPT.parents[2]}:{SCRIPT.parent}",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
    )
    command = [sys.executable, str(SCRIPT), str(folder), remedy, *names]
    return json.loads(
        subprocess.check_output(command, cwd=places["WORK"], env=environment)
    )


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """What is found after fits of all models."""
    return fit_in_an_empty_home(tmp_path_factory.mktemp("with"), "with", NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_no_file_holds_a_record_of_the_model(written, name):
    assert not any(sum(counts.values()) for counts in written["found"][name].values())
    assert written["elsewhere"] == []


def test_the_search_finds_the_records_when_the_remedy_is_taken_out(tmp_path):
    written = fit_in_an_empty_home(tmp_path, "without", ["own sampling"])
    assert written["files"] > 20
    # constants of compiled functions, and what of an array a comment shows
    sampled = written["found"]["own sampling"]
    assert sampled["Y"]["float64"] == 12 and sampled["Y"]["text"] > 0
    assert sampled["X"]["float64"] == 0
