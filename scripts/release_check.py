"""Build wheel and sdist, install each in an empty environment, and let it do something.

    python scripts/release_check.py [EXTRA ...]

Extras are those of pyproject.toml, and ``none``; without any, all are tried. Packages come in the
newest versions that pyproject.toml allows, as a user would get them, not in those of the lock. The
sdist is installed without extras, and has to hold what git has. The two archives stay in
``_build/dist``.
"""

import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path

from tools import tool

ROOT = Path(__file__).resolve().parents[1]

CORE = """
import ppm
counts = ppm.GammaPoisson([3, 4, 4, 5, 5, 6, 7, 18])
result = ppm.PseudoPosteriorMechanism(counts, scale=0.7, shift=0.0).run(draws=200, random_seed=1)
assert result.synthesize(releases=2, random_seed=2).shape == (2, 8)
"""
EXAMPLES = {
    "none": CORE + """
import importlib.util
for name in ("pymc", "matplotlib", "dask", "papermill"):
    assert importlib.util.find_spec(name) is None, name
""",
    "pymc": CORE + """
import numpy as np, pymc as pm
with pm.Model() as model:
    pm.Poisson("y", pm.Gamma("rate", 2.0, 0.5), observed=np.array([3, 5, 4, 6, 20]))
mechanism = ppm.PseudoPosteriorMechanism(model, warmup=300)
result = mechanism.run(draws=300, random_seed=1, allow_disagreement=True)
assert result.record_bounds.shape == (5,)
""",
    "nutpie": CORE + """
import numpy as np, pymc as pm
with pm.Model() as model:
    pm.Poisson("y", pm.Gamma("rate", 2.0, 0.5), observed=np.array([3, 5, 4, 6, 20]))
ppm.PyMCSynthesizer(model, warmup=300, nuts_sampler="nutpie").fit(draws=300, random_seed=1)
""",
    "extra": CORE + """
import matplotlib
matplotlib.use("Agg")
import numpy as np
rng = np.random.default_rng(1)
y, X = rng.standard_normal(40), np.ones((40, 1))
model = ppm.FiniteMixture(y, X, components=2, warmup=20, chains=1, parallel=False)
model.fit(np.ones(40), draws=20, random_seed=1, progress=True)
ppm.studies.histogram_release([1.0], (0, 2), bins=2, epsilon=1, secure_noise=True)
import ppm.plots
""",
    "large": CORE + """
import dask.array, distributed, numpy as np, os, tempfile, xarray as xr
with tempfile.TemporaryDirectory() as folder:
    data = xr.Dataset({"y": (("draw", "record"), np.arange(12.0).reshape(4, 3))})
    data.to_netcdf(os.path.join(folder, "a.nc"), engine="h5netcdf")
    data.to_zarr(os.path.join(folder, "a.zarr"), consolidated=False)
    for lazy in (
        xr.open_dataset(os.path.join(folder, "a.nc"), engine="h5netcdf", chunks={"record": 1}),
        xr.open_zarr(os.path.join(folder, "a.zarr"), consolidated=False, chunks={"record": 1}),
    ):
        assert float(lazy["y"].max().compute()) == 11.0
        lazy.close()
with distributed.Client(processes=False, dashboard_address=None) as client:
    assert client.get_executor().submit(pow, 2, 5).result() == 32
""",
    "book": CORE + """
import importlib, ppm.publishing
for name in ("execution", "book", "run", "staging", "notebooks"):
    importlib.import_module(f"ppm.publishing.{name}")
import jupyter_book, papermill, sphinx_exercise, sphinx_proof
""",
}  # fmt: skip


def run(*command, **settings):
    """Run a command, or end with what it was."""
    done = subprocess.run([str(part) for part in command], **settings)
    if done.returncode:
        sys.exit(f"failed: {' '.join(map(str, command))[:300]}")


# what is made from the repository, and what only git reads
GENERATED = (
    ".git", ".venv", "_build", "runs", "dist", "build", "__pycache__", ".pytest_cache",
    ".ruff_cache", ".hypothesis", ".ipynb_checkpoints", "*.egg-info", "*.zip",
)  # fmt: skip


def copy(folder):
    """Copy the repository without what is generated from it."""
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*GENERATED))


def wheel_of(folder):
    """Wheel of a copy of the repository, built with the setuptools that is there."""
    code = "from setuptools import build_meta; build_meta.build_wheel('dist')"
    run(sys.executable, "-c", code, cwd=folder, capture_output=True)
    (wheel,) = Path(folder, "dist").glob("*.whl")
    return wheel


def build(folder):
    """Wheel and sdist of the repository."""
    builder = tool(ROOT / "_build" / "release-tools", "pyproject-build", "build")
    shutil.rmtree(folder, ignore_errors=True)
    run(builder, "--outdir", folder, ROOT, stdout=subprocess.DEVNULL)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


def left_out(sdist):
    """Files that git has and the sdist has not."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    ).stdout.splitlines()
    with tarfile.open(sdist) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    return sorted(set(listed) - packed)


def check(archive, extra):
    """Install an archive with an extra in an empty environment and run its example there."""
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder, "environment", "bin", "python")
        venv.create(python.parents[1], with_pip=True)
        wanted = str(archive) if extra == "none" else f"{archive}[{extra}]"
        run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wanted)
        run(python, "-m", "pip", "check", stdout=subprocess.DEVNULL)
        # nothing of the repository may be in reach
        run(python, "-I", "-c", EXAMPLES[extra], cwd=folder, stderr=subprocess.DEVNULL)
        run(python.with_name("ppm"), "--help", cwd=folder, stdout=subprocess.DEVNULL)
    print(
        f"{archive.suffix.removeprefix('.'):4s} {extra:6s} installs, imports and runs", flush=True
    )


def main():
    """Check what was asked for."""
    extras = sys.argv[1:] or list(EXAMPLES)
    unknown = sorted(set(extras) - set(EXAMPLES))
    if unknown:
        sys.exit(f"no such extra: {', '.join(unknown)}; accepted: {', '.join(EXAMPLES)}")
    wheel, sdist = build(ROOT / "_build" / "dist")
    missing = left_out(sdist)
    if missing:
        sys.exit(f"not in the sdist: {', '.join(missing)}")
    check(sdist, "none")
    for extra in extras:
        check(wheel, extra)


if __name__ == "__main__":
    main()
