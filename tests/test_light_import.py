"""``import ppm`` must stay light."""

import json
import subprocess
import sys

import pytest

HEAVY = (
    "pymc", "pytensor", "jax", "numba", "arviz", "arviz_stats", "arviz_base", "matplotlib", "tqdm",
    "pooch", "opendp", "dask", "distributed", "h5netcdf", "zarr",
)
NOTEBOOK = ("papermill", "nbformat", "nbclient", "IPython", "jupyter_book", "sphinx")


def loaded(statement):
    """Top-level modules that a fresh interpreter has loaded after a statement."""
    code = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    finished = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return {name.partition(".")[0] for name in json.loads(finished.stdout.splitlines()[-1])}


def test_the_import_alone_is_light():
    assert not loaded("import ppm") & {*HEAVY, *NOTEBOOK}


def test_the_core_computes_without_the_heavy_packages():
    code = "import ppm\nppm.epsilon(ppm.local_bound([[1.0, 2.0]]))"
    assert not loaded(code) & {*HEAVY, *NOTEBOOK}


@pytest.mark.parametrize("name", ["matplotlib", "papermill"])
def test_the_check_sees_a_heavy_import(name):
    assert name in loaded(f"import ppm, {name}")
