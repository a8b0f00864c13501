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
model = ppm.GammaPoisson([3, 4, 4, 5, 18])
fit = ppm.fit(model, ppm.ByRisk(scale=0.7), draws=50, random_seed=1)
print(fit.local_bound < fit.unweighted.local_bound, fit.release(2, random_seed=2).size)
rule = ppm.Limited(ppm.Limits(-3, -1))
strict = ppm.fit(ppm.Candidates(model, {"mu": [3.0, 5.0, 8.0]}), rule, draws=1)
print(strict.epsilon(), ppm.release.guarantee(strict).kind)
"""
)
LACKING = (
    BASE
    + """
import pydoc, pandas as pd, ppm, ppm_book
from ppm.release import noise
print("class Fit(" in pydoc.plain(pydoc.render_doc(ppm)))
for name in "FiniteMixture", "PyMCModel":
    try:
        getattr(ppm, name)
    except ModuleNotFoundError as error:
        print(name, error.name, error)
income = {"income": [1.0, 2.0, 3.0] * 9}
plan = ppm.release.ReleasePlan(
    pd.DataFrame(income), confidential="income", mechanism=ppm.release.Bins(2), limits=(0, 9), epsilon=1
)
for do in plan.rehearse, lambda: noise.noisy_integers([1], 1, 1.0, secure=True, rng=None):
    try:
        do()
    except ModuleNotFoundError as error:
        print(error)
print(ppm_book.main())
"""
)
# what `make book` asks before anything else
UP_TO_DATE = """
import sys
from ppm_book.tools import made_from
print({"ppm", "nbformat", "jsonschema", "nbconvert"} & {*sys.modules})
"""
TOLD = """True
FiniteMixture numba this needs numba: pip install '.[extra]' in the folder of ppm's source
PyMCModel pymc this needs pymc: pip install '.[pymc]' in the folder of ppm's source
this needs tqdm: pip install '.[extra]' in the folder of ppm's source
this needs opendp: pip install '.[extra]' in the folder of ppm's source
the command ppm needs papermill: pip install '.[book]' in the folder of ppm's source
"""


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (LIGHT, "False\n"),
        ("import matplotlib\n" + LIGHT, "True\n"),
        (CORE, "True 10\n2.0 strict\n"),
        (LACKING, TOLD),
        (UP_TO_DATE, "set()\n"),
    ],
)
def test_the_import_alone_is_light_and_a_core_install_runs_the_mechanism(code, told):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == told, done.stderr
