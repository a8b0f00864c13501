"""One environment for everybody: the lock, pyproject.toml and environment.yml agree."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from itertools import chain

import pytest
import yaml
from conftest import ROOT
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import ppm

FILES = ("requirements.lock", "pyproject.toml", "environment.yml")


def disagreements(lock, project, conda):
    """Sentences on where the texts of the three files contradict each other."""
    # the project may say where it lives itself
    installing = project
    for address in tomllib.loads(project)["project"].get("urls", {}).values():
        installing = installing.replace(address, "")
    host = r"https?://|--(extra-)?index-url|--find-links"
    told = [
        "a file names a host"
        for text in (lock, installing, conda)
        if re.search(host, text)
    ]
    pinned = re.findall(
        r"^([\w.-]+)(?:\[[^]]*\])?==([\w.!+-]+)[^\n]*((?:\n .*)*)", lock, re.M
    )
    versions = {"ppm": ppm.__version__}
    versions |= {canonicalize_name(name): version for name, version, _ in pinned}
    told += [
        f"no hash of {name}"
        for name, _, hashes in pinned
        if "--hash=sha256:" not in hashes
    ]
    project = tomllib.loads(project)["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    for wanted in map(Requirement, chain(*groups)):
        version = versions.get(canonicalize_name(wanted.name))
        if version is None or version not in wanted.specifier:
            told.append(f"{wanted} is locked as {version}")
    accepted = SpecifierSet(project["requires-python"])
    pythons = "3.12", "3.13", "3.14"
    told += [
        f"Python {python} is not {accepted}"
        for python in pythons
        if python not in accepted
    ]
    conda = yaml.safe_load(conda)
    if conda["dependencies"] != [
        # the one that the book is made on
        "python=3.13",
        "pip",
        {"pip": ["-r requirements.lock"]},
    ] or conda["channels"] != ["conda-forge", "nodefaults"]:
        told.append("environment.yml installs something else than the lock")
    return told


def test_the_lock_the_project_and_conda_agree():
    assert not disagreements(*((ROOT / name).read_text("utf-8") for name in FILES))


# imported by another name than the package's own, or come with one that is asked for
COMES_WITH = {
    "bs4": "beautifulsoup4",
    "yaml": "pyyaml",
    "pil": "matplotlib",
    "ipython": "ipykernel",
    **dict.fromkeys(("docutils", "myst-parser", "pybtex"), "jupyter-book"),
    "pytensor": "pymc",
    "cloudpickle": "distributed",
}
# no file imports them: what commands, Sphinx, Jupyter and pytest load by themselves
BY_NAME = {
    *(
        "jupyter-book",
        "numpydoc",
        "sphinx-exercise",
        "sphinx-mathjax-offline",
        "sphinx-proof",
    ),
    *("jupyterlab", "nbmake", "pytest-xdist", "ruff", "ppm"),
}


def imported(folder):
    """Packages of others that the files of a folder import, wherever in them."""
    found = set()
    for file in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                found |= {each.name for each in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add(node.module)
    own = {file.stem for file in (ROOT / folder).rglob("*")} | {"ppm", "ppm_book"}
    found = {name.partition(".")[0] for name in found} - sys.stdlib_module_names - own
    return {COMES_WITH.get(name, name) for name in map(canonicalize_name, found)}


def test_an_installation_has_what_its_code_imports_and_nothing_else():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    groups = {"core": project["dependencies"], **project["optional-dependencies"]}
    asked = {
        group: {canonicalize_name(Requirement(each).name) for each in needed}
        for group, needed in groups.items()
    }
    library = set.union(*map(asked.get, ("core", "pymc", "extra", "large")))
    needed = {
        "ppm": library,
        "book/ppm_book": library | asked["book"],
        "tests": library | asked["book"] | asked["test"],
    }
    found = {folder: imported(folder) for folder in needed}
    # a test's own modules lie beside it
    found["tests"] -= {"checks", "assessment-data", "processes"}
    for folder, names in found.items():
        assert names <= needed[folder], folder
    # ArviZ is PyMC's own
    assert set.union(*asked.values()) - BY_NAME - {"arviz"} <= set.union(
        *found.values()
    )


@pytest.mark.parametrize(
    ("python", "told"),
    [
        ("", "No Python 3.12, 3.13 or 3.14 found on PATH or in pyenv. Install one"),
        ("#!/bin/sh\necho 3.9", "is Python 3.9; this book needs 3.12, 3.13 or 3.14."),
        (
            "#!/bin/sh\nexit 1",
            "does not run; give the path of a Python 3.12, 3.13 or 3.14.",
        ),
    ],
)
def test_without_a_python_that_fits_setting_up_says_what_to_do(tmp_path, python, told):
    for name in ("dirname", "cat", "cksum"):
        (tmp_path / name).symlink_to(shutil.which(name))
    (tmp_path / "old").write_text(python)
    (tmp_path / "old").chmod(0o755)
    command = ["/bin/sh", ROOT / "scripts" / "environment.sh", tmp_path / "environment"]
    command += [tmp_path / "old"] if python else []
    alone = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run(command, env=alone, capture_output=True, text=True)
    assert done.returncode == 1 and told in done.stderr
    assert not (tmp_path / "environment").exists()
