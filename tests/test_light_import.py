"""``import ppm`` is light, and the core runs where nothing else is installed."""

import subprocess
import sys

import pytest

HEAVY = """pymc pytensor jax numba llvmlite arviz arviz_base tqdm matplotlib
opendp dask distributed h5netcdf zarr jinja2 papermill nbformat nbclient IPython
jupyter_book joblib""".split()
LIGHT = (
    f"import ppm, sys; print(not {{*{HEAVY}, 'threadpoolctl'}}.isdisjoint(sys.modules))"
)
BASE = f"import sys\nfor name in {HEAVY}: sys.modules[name] = None\n"
CORE = (
    BASE
    + """
import ppm
mechanism = ppm.PseudoPosteriorMechanism(ppm.GammaPoisson([3, 4, 4, 5, 18]), scale=0.7)
ppm.utility.propensity_score([1.0, 2.0, 4.0], [1.5, 2.0, 3.0])
print(mechanism.run(draws=50, random_seed=1).synthesize(releases=2, random_seed=2).size)
"""
)
LACKING = (
    BASE
    + """
import pydoc, ppm, ppm_book
shown = pydoc.render_doc(ppm)
print("histogram_release(" in shown)
for name in "FiniteMixture", "PyMCSynthesizer":
    try:
        getattr(ppm, name)
    except ModuleNotFoundError as error:
        print(error)
print(ppm_book.main())
"""
)
WHERE = "in the folder of ppm's source"
TOLD = f"""True
ppm.FiniteMixture needs joblib: pip install '.[extra]' {WHERE}
ppm.PyMCSynthesizer needs pymc: pip install '.[pymc]' {WHERE}
the command ppm needs papermill: pip install '.[book]' {WHERE}
"""


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (LIGHT, "False\n"),
        ("import matplotlib\n" + LIGHT, "True\n"),
        (CORE, "10\n"),
        (LACKING, TOLD),
    ],
)
def test_the_import_alone_is_light_and_a_core_install_runs_the_mechanism(code, told):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == told, done.stderr
