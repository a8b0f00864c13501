"""``import ppm`` is light, and the core runs where nothing else is installed."""

import subprocess
import sys

import pytest

HEAVY = """pymc pytensor jax numba llvmlite threadpoolctl arviz arviz_base tqdm matplotlib pooch
requests opendp dask distributed h5netcdf zarr jinja2 papermill nbformat nbclient IPython
jupyter_book joblib""".split()
LIGHT = f"import ppm, sys; print(not {{*{HEAVY}}}.isdisjoint(sys.modules))"
CORE = f"""
import sys
for name in {HEAVY}: sys.modules[name] = None
import ppm
mechanism = ppm.PseudoPosteriorMechanism(ppm.GammaPoisson([3, 4, 4, 5, 18]), scale=0.7)
print(mechanism.run(draws=50, random_seed=1).synthesize(releases=2, random_seed=2).size)
"""


@pytest.mark.parametrize(("code", "told"), [
    (LIGHT, "False\n"), ("import matplotlib\n" + LIGHT, "True\n"), (CORE, "10\n")
])
def test_the_import_alone_is_light_and_a_core_install_runs_the_mechanism(code, told):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == told, done.stderr
