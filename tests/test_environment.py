"""One environment for everybody: the lock, pyproject.toml and environment.yml agree."""

import hashlib
import inspect
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.12", "3.13")
UNTRIED = ("3.14",)
# what is made from the repository, and what only git reads
GENERATED = (
    ".git", ".venv", "_build", "runs", "dist", "build", "__pycache__", ".pytest_cache",
    ".ruff_cache", ".hypothesis", ".ipynb_checkpoints", "*.egg-info", "*.zip",
)  # fmt: skip


def read(root):
    """The three files of a repository."""
    return {
        "lock": (root / "requirements.lock").read_text("utf-8"),
        "project": (root / "pyproject.toml").read_text("utf-8"),
        "conda": (root / "environment.yml").read_text("utf-8"),
    }


def disagreements(files):
    """Sentences on where the three files contradict each other."""
    problems = []
    for name, text in files.items():
        if re.search(r"https?://|--(extra-)?index-url|--find-links", text):
            problems.append(f"{name} names a host or an index")
    locked = {}
    for line in files["lock"].replace("\\\n", " ").splitlines():
        if line and not line.startswith(("#", "-")):
            line, *hashes = line.split("--hash=")
            requirement = Requirement(line)
            if not hashes or any(not re.fullmatch(r"sha256:[0-9a-f]{64} *", h) for h in hashes):
                problems.append(f"the lock has not a hash of every file of {requirement.name}")
            pins = list(requirement.specifier)
            if len(pins) != 1 or pins[0].operator != "==" or "*" in pins[0].version:
                problems.append(f"the lock does not fix {requirement.name}")
                continue
            locked[canonicalize_name(requirement.name)] = pins[0].version
    project = tomllib.loads(files["project"])["project"]
    groups = {"core": project["dependencies"], **project["optional-dependencies"]}
    for group, entries in groups.items():
        for requirement in map(Requirement, entries):
            version = locked.get(canonicalize_name(requirement.name))
            if version is None or not requirement.specifier.contains(version):
                problems.append(f"{group}: {requirement} is locked as {version}")
    pythons = SpecifierSet(project["requires-python"])
    problems += [f"Python {v} does not fit {pythons}" for v in PYTHONS if v not in pythons]
    dependencies = yaml.safe_load(files["conda"])["dependencies"]
    conda_python = [e for e in dependencies if isinstance(e, str) and e.startswith("python=")]
    if [e.removeprefix("python=") in PYTHONS for e in conda_python] != [True]:
        problems.append(f"environment.yml has Python {conda_python}")
    pip = next((e["pip"] for e in dependencies if isinstance(e, dict)), [])
    # a folder has no hash, which pip asks of everything that it installs with the lock
    if pip != ["-r requirements.lock"]:
        problems.append(f"environment.yml installs {pip}, not the lock")
    if [e for e in dependencies if isinstance(e, str)] != [*conda_python, "pip"]:
        problems.append("environment.yml fixes versions that the lock knows nothing of")
    return problems


def test_the_files_agree():
    assert disagreements(read(ROOT)) == []


@pytest.mark.parametrize(
    ("name", "old", "new", "told"),
    [
        ("lock", "\nnumpy==2", "\nnumpy==1", "core: numpy>=2 is locked as 1"),
        ("lock", "\npymc==6", "\npymc>=6", "the lock does not fix pymc"),
        ("lock", "\njupyter-book==1.", "\njupyter-book==2.", "jupyter-book"),
        ("lock", "# ", "--index-url https://packages.example\n# ", "names a host"),
        ("lock", " \\\n    --hash=", "\n# ", "the lock has not a hash of every file of accessible"),
        ("lock", "--hash=sha256:", "--hash=md5:", "the lock has not a hash of every file"),
        ("project", '"scipy', '"scipyx', "scipyx"),
        ("project", ">=3.12", ">=3.13", "Python 3.12 does not fit"),
        ("conda", "python=3.13", "python=3.11", "environment.yml has Python"),
        ("conda", "requirements.lock", "other.txt", "environment.yml installs"),
        ("conda", "- pip\n", "- pip\n  - numpy=2.0\n", "lock knows nothing of"),
    ],
)
def test_a_disagreement_is_found(name, old, new, told):
    files = read(ROOT)
    assert old in files[name]
    files[name] = files[name].replace(old, new, 1)
    assert told in "\n".join(disagreements(files))


def test_the_finder_and_the_lock_name_the_same_pythons():
    script = (ROOT / "scripts" / "environment.sh").read_text("utf-8")
    tried = re.search(r"for minor in ([\d. ]+);", script).group(1).split()
    # a newer one is the last resort
    assert sorted(tried[:2]) == list(PYTHONS) and tried[2:] == list(UNTRIED)
    assert all(version in files_head() for version in (*PYTHONS, *UNTRIED))
    accepted = re.search(r"^ *([\d. |]+)\) ;;$", script, re.M).group(1).split(" | ")
    assert accepted == [*PYTHONS, *UNTRIED]


@pytest.mark.parametrize("tampered", [False, True], ids=["the file", "another file"])
def test_an_environment_is_made_of_the_locked_files_only(tmp_path, tampered):
    """A repository whose lock has one package, served from a folder as it was or changed."""
    root = tmp_path / "repository"
    shutil.copytree(ROOT / "scripts", root / "scripts")
    # the package of the repository, with the build backend that is there
    (root / "pyproject.toml").write_text(
        "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"
        "[project]\nname = 'own'\nversion = '1'\n"
    )
    (root / "backend.py").write_text(BACKEND)
    served = tmp_path / "served"
    served.mkdir()
    wheel = served / "locked-1-py3-none-any.whl"
    wheel_of("locked", wheel)
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    (root / "requirements.lock").write_text(f"locked==1 --hash=sha256:{digest}\n")
    if tampered:
        wheel_of("locked", wheel, "SMUGGLED = True\n")
    done = subprocess.run(
        ["sh", "scripts/environment.sh", "environment", sys.executable],
        cwd=root, capture_output=True, text=True,
        env=os.environ | {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(served)},
    )
    python = root / "environment" / "bin" / "python"
    look = [python, "-c", "import locked, own; print(locked.__file__)"]
    if tampered:
        assert done.returncode == 1
        told = " ".join(done.stderr.split())
        assert "A package's file is not one that requirements.lock names" in told
        assert "nothing was installed" in told
        assert subprocess.run(look, capture_output=True).returncode != 0
        assert not (root / "environment" / ".ready").exists()
    else:
        assert done.returncode == 0, done.stderr
        assert subprocess.run(look, capture_output=True).returncode == 0
        assert (root / "environment" / ".ready").exists()


def wheel_of(name, path, text=""):
    """A wheel of one module."""
    information = f"{name}-1.dist-info"
    files = {
        f"{name}.py": text,
        f"{information}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n",
        f"{information}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{information}/RECORD"] = "".join(f"{n},,\n" for n in [*files, information + "/RECORD"])
    with zipfile.ZipFile(path, "w") as archive:
        for file, content in files.items():
            archive.writestr(file, content)


BACKEND = f"""
import sys, zipfile
def build_editable(folder, settings=None, metadata=None):
    name = "own-1-py3-none-any.whl"
    wheel_of("own", folder + "/" + name)
    return name
{inspect.getsource(wheel_of)}
"""


def files_head():
    """First line of the lock, which says whom it is for."""
    return (ROOT / "requirements.lock").read_text("utf-8").splitlines()[0]


def files_below(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def archive_of(folder, kind):
    """The sdist or the wheel that is made of a copy of the repository."""
    code = f"from setuptools import build_meta; build_meta.build_{kind}('dist')"
    subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, check=True)
    (archive,) = (folder / "dist").iterdir()
    return archive


def source_distribution(folder):
    """Files of the source distribution."""
    archive = archive_of(folder, "sdist")
    with tarfile.open(archive) as content:
        names = [member.name for member in content if member.isfile()]
    return {name.partition("/")[2] for name in names}


def test_the_source_distribution_holds_the_whole_repository(tmp_path):
    """Library, notebooks, book and what the tests read: from it everything can be run."""
    shutil.copytree(ROOT, tmp_path / "copy", ignore=shutil.ignore_patterns(*GENERATED))
    there = files_below(tmp_path / "copy")
    assert {"ppm/_validation.py", "tests/conftest.py", "_toc.yml", "scripts/lock.sh"} <= there
    packed = source_distribution(tmp_path / "copy")
    assert there - packed == set()
    assert {name for name in packed - there if "egg-info" not in name} <= {"PKG-INFO", "setup.cfg"}
    # without its list setuptools packs the library and part of the tests
    shutil.copytree(ROOT, tmp_path / "bare", ignore=shutil.ignore_patterns(*GENERATED))
    (tmp_path / "bare" / "MANIFEST.in").unlink()
    bare = source_distribution(tmp_path / "bare")
    assert {"tests/conftest.py", "_toc.yml"} <= there - bare


def test_the_wheel_holds_the_library_and_nothing_else(tmp_path):
    shutil.copytree(ROOT, tmp_path / "copy", ignore=shutil.ignore_patterns(*GENERATED))
    with zipfile.ZipFile(archive_of(tmp_path / "copy", "wheel")) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        (entry,) = (n for n in archive.namelist() if n.endswith("entry_points.txt"))
        assert "ppm = ppm.publishing.command_line:main" in archive.read(entry).decode()
    library = (ROOT / "ppm").rglob("*.py")
    assert names == {path.relative_to(ROOT).as_posix() for path in library}


def test_every_folder_of_the_library_is_a_package_that_is_installed():
    project = tomllib.loads(read(ROOT)["project"])
    packages = {path.parent.relative_to(ROOT) for path in (ROOT / "ppm").rglob("*.py")}
    found = {".".join(path.parts) for path in packages}
    assert set(project["tool"]["setuptools"]["packages"]) == found
