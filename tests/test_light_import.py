"""``import ppm`` is light, and the core runs where nothing else is installed."""

import subprocess
import sys

import pytest

HEAVY = (
    "pymc", "pytensor", "jax", "numba", "llvmlite", "threadpoolctl", "arviz", "arviz_base", "tqdm",
    "matplotlib", "pooch", "requests", "opendp", "dask", "distributed", "h5netcdf", "zarr",
    "jinja2", "papermill", "nbformat", "nbclient", "IPython", "jupyter_book", "joblib",
)
CORE = """
import sys
for name in %r: sys.modules[name] = None
import ppm
mechanism = ppm.PseudoPosteriorMechanism(ppm.GammaPoisson([3, 4, 4, 5, 18]), scale=0.7)
mechanism.run(draws=50, random_seed=1).synthesize(releases=2, random_seed=2)
"""


@pytest.mark.parametrize(
    ("code", "loads"),
    [("", False), ("ppm.local_bound([[1.0, 2.0]])", False), ("import matplotlib", True)],
)
def test_the_import_alone_is_light(code, loads):
    told = f"import ppm, sys\n{code}\nprint(not {{*{HEAVY}}}.isdisjoint(sys.modules))"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True)
    assert done.stdout == f"{loads}\n", done.stderr


def test_a_core_install_runs_the_mechanism():
    done = subprocess.run([sys.executable, "-c", CORE % (HEAVY,)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
