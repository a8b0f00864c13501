"""What is missing from a core install is named, with the line that installs it."""

import re
import subprocess
import sys
import tomllib
from importlib import metadata

import pytest
from conftest import ROOT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ppm._validation import EXTRAS

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
# used where they are installed; llvmlite comes with numba
ALL = {module for modules in EXTRAS.values() for module in modules}
ALL |= {"numba", "llvmlite", "threadpoolctl"}
MODEL = """
import sys
for name in %r: sys.modules[name] = None
import numpy as np, ppm
model = ppm.FiniteMixture(
    np.random.default_rng(1).standard_normal(40), np.ones((40, 1)), components=1, warmup=10,
    chains=1, parallel=False,
)
"""


def core_install(code):
    """Run code where nothing but the core is installed."""
    command = [sys.executable, "-c", MODEL % sorted(ALL) + code]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("ppm.PyMCSynthesizer", "ppm.PyMCSynthesizer needs pymc: pip install 'ppm[pymc]'"),
        (
            "model.fit(np.ones(40), draws=10, random_seed=1, progress=True)",
            "progress=True needs tqdm: pip install 'ppm[extra]'",
        ),
    ],
)
def test_what_a_core_install_cannot_do_names_the_extra(code, told):
    done = core_install(code)
    assert done.returncode == 1 and done.stderr.splitlines()[-1].endswith(told)


def test_a_core_install_runs_the_mechanism():
    done = core_install(
        "model.fit(np.ones(40), draws=10, random_seed=1)\n"
        "counts = ppm.GammaPoisson([3, 4, 4, 5, 5, 6, 7, 18])\n"
        "mechanism = ppm.PseudoPosteriorMechanism(counts, scale=0.7, shift=0.0)\n"
        "mechanism.run(draws=50, random_seed=1).synthesize(releases=2, random_seed=2)\n"
    )
    assert done.returncode == 0, done.stderr


def names(requirements):
    return {canonicalize_name(Requirement(text).name) for text in requirements}


def test_the_extras_bring_what_messages_and_readme_say():
    packages = metadata.packages_distributions()
    for extra, modules in EXTRAS.items():
        declared = names(PROJECT["optional-dependencies"][extra])
        brought = declared.union(*(names(metadata.requires(name) or ()) for name in declared))
        for module in modules:
            assert {canonicalize_name(name) for name in packages[module]} & brought, module
    text = " ".join((ROOT / "README.md").read_text("utf-8").split())
    said = re.search(r"`pip install \.` brings ([\w, -]+) only", text).group(1)
    assert names(re.split(r", | and ", said)) == names(PROJECT["dependencies"])
    assert set(re.findall(r"'\.\[(\w+)\]'", text)) == {"jupyter", *EXTRAS}
