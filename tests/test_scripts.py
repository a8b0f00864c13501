"""What stands beside Python: recipes, scripts and packages, each by what it does."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_string
from pathlib import Path

import pytest
from conftest import ROOT
from packaging.requirements import Requirement

import ppm_book
from ppm_book.tools import studio


def program(file, text):
    """An executable file, which a stub is."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")
    file.chmod(0o755)
    return file


# ---- recipes -------------------------------------------------------------------------------------

# no settings
OWN = "VENV", "RUN"
GENERATED = (
    *("_build", "build", ".pytest_cache", ".ruff_cache", ".hypothesis"),
    *("ppm.egg-info", "other.egg-info"),
)


@pytest.fixture
def recipe(tmp_path):
    """A target of the Makefile, whose interpreter tells what it is called with, and in which environment."""
    told = tmp_path / "told"
    script = tmp_path / "stub.py"
    script.write_text(
        f"""
import json, os, sys
with open({str(told)!r}, "a") as file:
    print(json.dumps([sys.argv[1:], dict(os.environ)]), file=file)
# no book is up to date
sys.exit("ppm_book.tools.made_from" in sys.argv)
""",
        "utf-8",
    )
    # a first line cannot name an interpreter with a space in its path
    stub = f'#!/bin/sh\nexec "{sys.executable}" "{script}" "$@"\n'
    program(tmp_path / "an environment" / "bin" / "python", stub)

    def called(*arguments):
        told.write_text("")
        # the environment is there
        command = [
            "make",
            "--silent",
            "--old-file=env",
            f"VENV={tmp_path}/an environment",
        ]
        alone = {"PATH": os.environ["PATH"]}
        subprocess.run([*command, *arguments], cwd=ROOT, env=alone, check=True)
        return [json.loads(line) for line in told.read_text().splitlines()]

    return called


def asked(recipe, *arguments):
    """What the book's command takes from its recipe."""
    *_, (words, _) = recipe(*arguments)
    assert words[:2] == ["-m", "ppm_book.tools.studio"]
    return studio._options(words[2:])


@pytest.mark.parametrize(
    ("settings", "profile", "data", "without"),
    [
        ([], "paper", "", False),
        (["PROFILE=quick", "SOLUTIONS=no"], "quick", "", True),
        (["CE_DATA=a file.zip"], "paper", "a file.zip", False),
        (["SOLUTIONS=no", "CE_DATA=a file.zip"], "paper", "a file.zip", True),
        (["PROFILE=paper", "CE_DATA=a folder"], "paper", "a folder", False),
        # the shell has not expanded it, and so the book does
        (["CE_DATA=~/diary.zip"], "paper", "~/diary.zip", False),
        (["PROFILE=paper", "SOLUTIONS=", "CE_DATA="], "paper", "", False),
    ],
)
def test_settings_of_a_book_reach_its_command(
    recipe, tmp_path, settings, profile, data, without
):
    (tmp_path / "a file.zip").touch()
    (tmp_path / "a folder").mkdir()
    file = str(tmp_path / data) if data[:1] == "a" else data
    settings = [one.replace(data, file) if data else one for one in settings]
    (before, _), (words, _) = recipe("book", *settings)
    # whether the book stands is asked of the same book
    solutions = "no" if without else ""
    assert before == ["-m", "ppm_book.tools.made_from", profile, file, solutions]
    options = studio._options(words[2:])
    assert options.command == "book"
    found = options.profile, options.ce_data, options.no_solutions
    assert found == (profile, file, without)


@pytest.mark.parametrize(
    "setting",
    [f"SOLUTIONS={word}" for word in ("yes", "YES", "on", "1", "none", "No")]
    + ["CE_DATA=/nowhere/diary.zip"],
)
def test_a_slip_in_a_setting_begins_no_book(recipe, setting):
    with pytest.raises(subprocess.CalledProcessError) as refused:
        recipe("book", setting)
    assert refused.value.returncode == 2


def test_settings_of_a_run_reach_its_command(recipe):
    arguments = "ARGS=-p replicates=50 --workers 2"
    options = asked(recipe, "run", "NB=theory", "PROFILE=quick", arguments)
    assert (options.command, options.notebook) == ("run", "theory")
    assert (options.profile, options.p) == ("quick", ["replicates=50"])
    assert options.workers == 2
    options = asked(recipe, "run", "NB=theory")
    assert (options.profile, options.p) == ("paper", [])
    assert asked(recipe, "run").command == "notebooks"
    assert asked(recipe, "classroom").command == "classroom"


def test_settings_of_tests_reach_pytest(recipe):
    ((words, variables),) = recipe("test", "THOROUGH=yes", "ARGS=-k 'one or other'")
    assert words[:2] == ["-m", "pytest"] and words[-2:] == ["-k", "one or other"]
    spread = ["--numprocesses=logical", "--maxprocesses=4", "--dist=worksteal"]
    assert words[2:-2] == spread
    single = variables["OMP_NUM_THREADS"], variables["OPENBLAS_NUM_THREADS"]
    assert variables["THOROUGH"] == "yes" and single == ("1", "1")
    # what is freed stays with the process up to a quarter of a gigabyte
    kept = {variables[f"MALLOC_{name}_THRESHOLD_"] for name in ("MMAP", "TRIM")}
    assert kept == {str(2**28)}
    ((words, variables),) = recipe("browser", "SHOTS=a folder", "ARGS=-x")
    assert words == ["-m", "pytest", "tests/browser", "-x"]
    assert variables["PPM_SHOTS"] == "a folder"
    assert variables["PPM_BOOK"] == "_build/html"
    # left away
    ((words, variables),) = recipe("test")
    assert words[-1] == "--dist=worksteal" and not variables["THOROUGH"]
    ((words, variables),) = recipe("browser")
    assert words == ["-m", "pytest", "tests/browser"] and not variables["PPM_SHOTS"]


def test_a_check_of_style_looks_at_the_format_too_and_a_benchmark_runs_what_there_is(
    recipe,
):
    style = [words for words, _ in recipe("lint")]
    assert style == [
        ["-m", "ruff", "check", "."],
        ["-m", "ruff", "format", "--check", "."],
    ]
    files = [file for (file,), _ in recipe("benchmark")]
    assert files == ["benchmarks/mixture.py", "benchmarks/mechanism.py"]
    assert all((ROOT / file).is_file() for file in files)


@pytest.fixture
def checkout(tmp_path):
    """A folder with the Makefile alone, and what calls make there."""
    shutil.copy(ROOT / "Makefile", tmp_path)

    def make(*arguments):
        alone = {"PATH": os.environ["PATH"]}
        command = ["make", "--silent", *arguments]
        done = subprocess.run(
            command, cwd=tmp_path, env=alone, check=True, capture_output=True, text=True
        )
        return done.stdout.splitlines()

    return tmp_path, make


def test_settings_of_the_environment_and_of_an_audit_reach_their_programs(checkout):
    folder, make = checkout
    program(folder / "scripts" / "environment.sh", 'for one; do echo "<$one>"; done')
    program(folder / "scripts" / "lock.sh", 'echo "lock $1"')
    assert make("env") == ["<.venv>", "<>"]
    assert make("env", "PYTHON=/a path/python") == ["<.venv>", "</a path/python>"]
    assert make("lock", "--old-file=env") == ["lock .venv"]
    # what asks is installed the first time
    place = folder / "_build" / "audit" / "bin"
    program(
        folder / ".venv" / "bin" / "python",
        """#!/bin/sh
echo "$@"; mkdir -p "$3/bin"
printf '#!/bin/sh\\necho "$@"\\n' | tee "$3/bin/pip" >"$3/bin/pip-audit"
chmod +x "$3"/bin/*
""",
    )
    made, installed, _ = make("audit", "--old-file=env")
    assert made == "-m venv _build/audit"
    assert installed == "install --quiet pip-audit>=2.9,<3" and place.is_dir()
    usual = "--strict --disable-pip -r requirements.lock"
    assert make("audit", "--old-file=env") == [usual]
    assert make("audit", "--old-file=env", "ARGS=-s osv") == [f"{usual} -s osv"]


def test_every_setting_and_every_target_is_told(checkout):
    _, make = checkout
    text = (ROOT / "Makefile").read_text("utf-8")
    told = re.findall(r"^#   (\w+)=", text, re.M)
    assert told == [
        name for name in re.findall(r"^(\w+) =", text, re.M) if name not in OWN
    ]
    (phony,) = re.findall(r"^\.PHONY: (.*)", text, re.M)
    targets = [name for name in phony.split() if name[0] != "_"]
    listed = [line.split()[1] for line in make()]
    assert listed == [line.split()[1] for line in make("help")] == targets


def test_what_is_generated_is_cleaned_away_and_nothing_else(checkout):
    folder, make = checkout
    gone = {f"{name}/a folder/file" for name in GENERATED}
    gone |= {f"{name}/__pycache__/file.pyc" for name in ("ppm", "book/ppm_book/tools")}
    gone |= {f"{name}/__pycache__/file.pyc" for name in ("tests/release", "benchmarks")}
    own = {".venv/bin/python", ".venv/lib/__pycache__/file.pyc", "diary.zip"}
    own |= {"runs/theory/run.json", "runs/own/__pycache__/file.pyc", "fits.joblib"}
    own |= {"notebooks/.ipynb_checkpoints/theory.ipynb", "account/_build/file"}
    # whatever lies in the repository, and beside each of its modules
    own |= {
        file.name if file.is_file() else f"{file.name}/a folder/file"
        for file in ROOT.iterdir()
        if file.name not in GENERATED and file.suffix != ".egg-info"
    }
    own |= {str(Path(file).parents[1] / "module.py") for file in gone if ".pyc" in file}
    for file in gone | own - {"Makefile"}:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text("text")
    for _ in range(2):  # nothing is there to be cleaned away the second time
        make("clean")
        left = {
            str(file.relative_to(folder))
            for file in folder.rglob("*")
            if file.is_file()
        }
        assert left == own
        # nor does an empty folder stay
        assert not [name for name in GENERATED if (folder / name).exists()]


# ---- the environment -----------------------------------------------------------------------------

# of a Python: its version, what it can make, and what pip would do
PYTHON = """#!/bin/sh
here='{here}'
case "$*" in
    *version_info*) echo {version} ;;
    *ensurepip*) [ ! -e "$here/no venv" ] ;;
    '-m venv '*) mkdir -p "$3/bin"; echo "{version}" >>"$here/made"
        cp "$0" "$3/bin/python"; echo home >"$3/pyvenv.cfg" ;;
    '-m pip '*) echo "$*" >>"$here/pip"
        case "$*" in *requirements.lock) cat "$here/said" >&2 2>/dev/null ;; esac
        [ ! -e "$here/offline" ] ;;
esac
"""


class Place:
    """A checkout with nothing but what its environment is made from, and some Pythons."""

    def __init__(self, folder, *versions):
        self.folder, self.root = folder, folder / "checkout"
        (self.root / "scripts").mkdir(parents=True)
        for file in ("scripts/environment.sh", "requirements.lock", "pyproject.toml"):
            shutil.copy(ROOT / file, self.root / file)
        for version in versions:
            text = PYTHON.format(here=folder, version=version)
            program(folder / "bin" / f"python{version}", text)

    def call(self, *arguments, root=None):
        """Call the script; returns its exit status."""
        command = ["/bin/sh", str((root or self.root) / "scripts" / "environment.sh")]
        alone = {"PATH": f"{self.folder}/bin:/usr/bin:/bin", "HOME": str(self.folder)}
        self.done = subprocess.run(
            [*command, *arguments], env=alone, capture_output=True, text=True
        )
        return self.done.returncode

    def lines(self, name):
        file = self.folder / name
        return file.read_text().splitlines() if file.exists() else []

    @property
    def made(self):
        """Versions of the Pythons that made an environment, one after the other."""
        return self.lines("made")

    @property
    def pip(self):
        """What pip was called with."""
        return [line.split() for line in self.lines("pip")]


@pytest.mark.parametrize(
    ("versions", "first"),
    [
        (("3.12", "3.13", "3.14"), "3.13"),
        (("3.12", "3.14"), "3.12"),
        (("3.14",), "3.14"),
        # what is older or newer is none
        (("3.11", "3.12", "3.15"), "3.12"),
    ],
)
def test_an_environment_is_made_by_the_python_that_the_book_was_tried_on(
    tmp_path, versions, first
):
    # of the system's own Pythons none is called so
    place = Place(tmp_path, *versions)
    for other in ("3.12", "3.13", "3.14", ""):
        if other not in versions:
            program(tmp_path / "bin" / f"python{other or 3}", "#!/bin/sh\nexit 1\n")
    program(tmp_path / "bin" / "python", "#!/bin/sh\nexit 1\n")
    assert place.call() == 0, place.done.stderr
    assert place.made == [first]
    assert ("Nobody has run this book" in place.done.stdout) == (first == "3.14")


def test_an_environment_is_made_by_a_python_of_pyenv_where_there_is_no_other(tmp_path):
    place = Place(tmp_path)
    for other in ("3.12", "3.13", "3.14", "3"):
        program(tmp_path / "bin" / f"python{other}", "#!/bin/sh\nexit 1\n")
    program(tmp_path / "bin" / "python", "#!/bin/sh\nexit 1\n")
    for version, minor in (("3.12.9", "3.12"), ("3.13.1", "3.13")):
        text = PYTHON.format(here=tmp_path, version=minor)
        versions = tmp_path / ".pyenv" / "versions"
        program(versions / version / "bin" / "python", text)
    assert place.call() == 0 and place.made == ["3.13"]


def test_what_runs_for_every_change_is_the_tests(tmp_path):
    program(tmp_path / "make", '#!/bin/sh\necho "$@" in "$PWD"\n')
    alone = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    command = ["bash", str(ROOT / ".ci" / "run")]
    done = subprocess.run(
        command, cwd=tmp_path, env=alone, check=True, capture_output=True, text=True
    )
    assert done.stdout == f"test in {ROOT}\n"


def test_an_environment_has_the_locked_files_by_their_hashes_and_this_package(tmp_path):
    place = Place(tmp_path, "3.13")
    assert place.call() == 0
    packages, own = place.pip
    assert packages[:3] == own[:3] == ["-m", "pip", "install"]
    assert {"--require-hashes", "--no-compile"} < {*packages}
    assert packages[-2:] == ["-r", "requirements.lock"]
    assert {"--no-deps", "--no-build-isolation"} < {*own}
    assert own[-2:] == ["--editable", "."]
    assert (place.root / ".venv" / "bin" / "python").exists()


@pytest.mark.parametrize(
    "file", ["requirements.lock", "pyproject.toml", "scripts/environment.sh"]
)
def test_an_environment_is_made_again_where_what_it_is_made_from_changed(
    tmp_path, file
):
    place = Place(tmp_path, "3.13")
    assert (place.call(), place.call()) == (0, 0)
    assert place.made == ["3.13"] and len(place.pip) == 2
    with open(place.root / file, "a") as changed:
        changed.write("# more\n")
    assert (place.call(), place.call()) == (0, 0)
    assert place.made == ["3.13"] * 2 and len(place.pip) == 4


def test_an_environment_is_made_again_elsewhere_for_another_python_and_after_a_failure(
    tmp_path,
):
    place = Place(tmp_path, "3.12", "3.13")
    assert place.call() == 0
    # neither an environment nor an editable package survives being moved
    moved = place.root.rename(tmp_path / "moved")
    assert place.call(root=moved) == 0 and place.made == ["3.13"] * 2
    other = str(tmp_path / "bin" / "python3.12")
    assert place.call(".venv", other, root=moved) == 0 and place.made[-1] == "3.12"
    assert place.call(root=moved) == 0 and len(place.made) == 3
    with open(moved / "requirements.lock", "a") as changed:
        changed.write("# more\n")
    # nothing of the old one stays
    old = moved / ".venv" / "old package"
    old.touch()
    (tmp_path / "offline").touch()
    for said, told in (
        ("no network", "the next make starts afresh"),
        ("THESE PACKAGES DO NOT MATCH THE HASHES", "is not one that requirements.lock"),
    ):
        (tmp_path / "said").write_text(f"{said}\n")
        assert place.call(root=moved) == 1
        assert said in place.done.stderr and told in place.done.stderr
        assert not old.exists()
    (tmp_path / "offline").unlink()
    assert place.call(root=moved) == 0 and len(place.made) == 6
    # a warning is passed on, and leaves no file
    assert "DO NOT MATCH" in place.done.stderr and "not one" not in place.done.stderr
    assert not (moved / ".venv" / "pip.log").exists()
    (tmp_path / "no venv").touch()
    assert place.call(".venv", other, root=moved) == 1 and len(place.made) == 6
    assert "apt install python3.12-venv" in place.done.stderr


def test_a_folder_that_is_no_environment_stays_as_it_is(tmp_path):
    place = Place(tmp_path, "3.13")
    (place.root / ".venv").mkdir()
    (place.root / ".venv" / "thesis.md").touch()
    assert place.call() == 1 and "is no Python environment" in place.done.stderr
    assert (place.root / ".venv" / "thesis.md").exists() and not place.made
    # an empty one is nobody's
    (place.root / ".venv" / "thesis.md").unlink()
    assert place.call() == 0 and place.made == ["3.13"]


# ---- the lock ------------------------------------------------------------------------------------

UV = """#!/bin/sh
echo "$*" >>'{here}/uv'
case "$*" in
    *'pip compile'*)
        for last; do :; done; cat "$last" >>'{here}/before' 2>/dev/null
        echo 'numpy==2.0 --hash=sha256:0' >"$last" ;;
    *windows*) [ ! -e '{here}/no wheel' ] ;;
esac
"""


@pytest.mark.parametrize("wheels", [True, False])
def test_a_lock_is_for_all_systems_and_stays_where_one_lacks_a_wheel(tmp_path, wheels):
    root = tmp_path / "checkout"
    (root / "scripts").mkdir(parents=True)
    for file in ("scripts/lock.sh", "pyproject.toml"):
        shutil.copy(ROOT / file, root / file)
    (root / "requirements.lock").write_text("numpy==1.0\n")
    program(root / "_build" / "lock-tools" / "bin" / "uv", UV.format(here=tmp_path))
    if not wheels:
        (tmp_path / "no wheel").touch()
    done = subprocess.run(
        ["/bin/sh", "scripts/lock.sh", ".venv"],
        cwd=root,
        capture_output=True,
        text=True,
    )
    calls = [line.split() for line in (tmp_path / "uv").read_text().splitlines()]
    assert {"--universal", "--generate-hashes", "--all-extras"} < {*calls[0]}
    assert {"--no-emit-index-url", "--no-strip-extras"} < {*calls[0]}
    # the oldest that is accepted, and the fewest versions for all of them
    oldest = calls[0][calls[0].index("--python-version") + 1]
    assert oldest == "3.12" and "--fork-strategy fewest" in " ".join(calls[0])
    # versions stay where they can
    assert (tmp_path / "before").read_text() == "numpy==1.0\n"
    lock = (root / "requirements.lock").read_text("utf-8")
    if not wheels:
        assert done.returncode == 1 and lock == "numpy==1.0\n"
        assert "No wheel for Python 3.12 on x86_64-pc-windows-msvc" in done.stderr
        return
    assert done.returncode == 0
    assert not (root / "requirements.lock.part").exists()
    assert lock.startswith("# ") and lock.endswith("numpy==2.0 --hash=sha256:0\n")
    # without a lock there is nothing to keep to: the newest versions
    (root / "requirements.lock").unlink()
    again = ["/bin/sh", "scripts/lock.sh", ".venv"]
    assert subprocess.run(again, cwd=root, capture_output=True).returncode == 0
    assert (tmp_path / "before").read_text() == "numpy==1.0\n"
    assert (root / "requirements.lock").read_text("utf-8") == lock
    tried = [
        (
            call[call.index("--python-version") + 1],
            call[call.index("--python-platform") + 1],
        )
        for call in calls[1:]
    ]
    assert {version for version, _ in tried} == {"3.12", "3.13", "3.14"}
    assert len(tried) == len({*tried}) == 12
    assert all("--require-hashes" in call for call in calls[1:])
    # nobody builds what no hash covers
    assert all(":all:" in call and "--only-binary" in call for call in calls[1:])


# ---- packages ------------------------------------------------------------------------------------

BUILD = "from setuptools import build_meta as b; b.build_{0}({1!r})"


@pytest.fixture(scope="module")
def tracked(tmp_path_factory):
    """A copy of the files that belong to the repository, and their names."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is no checkout: nothing says which files belong to it")
    command = ["git", "ls-files", "-z"]
    listed = subprocess.run(
        command, cwd=ROOT, check=True, capture_output=True, text=True
    )
    names = [name for name in listed.stdout.split("\0") if (ROOT / name).is_file()]
    folder = tmp_path_factory.mktemp("packages") / "source"
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    return folder, names


def package(tracked, kind):
    """A package of this kind, built without a network, as pip's --no-build-isolation does."""
    folder, _ = tracked
    made = folder.parent / kind
    done = subprocess.run(
        [sys.executable, "-c", BUILD.format(kind, str(made))],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    (file,) = made.iterdir()
    return file


def test_a_wheel_has_every_file_of_both_packages_their_command_and_what_they_need(
    tracked,
):
    _, names = tracked
    with zipfile.ZipFile(package(tracked, "wheel")) as wheel:
        inside = [name for name in wheel.namelist() if ".dist-info/" not in name]
        about = {
            Path(name).name: wheel.read(name).decode()
            for name in wheel.namelist()
            if name.endswith(("METADATA", "entry_points.txt"))
        }
    places = {"ppm/": "ppm/", "book/ppm_book/": "ppm_book/"}
    wanted = [
        name.replace(place, inner, 1)
        for place, inner in places.items()
        for name in names
        if name.startswith(place)
    ]
    assert len(wanted) > 90 and sorted(inside) == sorted(wanted)
    assert "ppm = ppm_book:main" in about["entry_points.txt"] and callable(
        ppm_book.main
    )
    needs = message_from_string(about["METADATA"]).get_all("Requires-Dist")
    needs = {Requirement(one).name for one in needs if "extra ==" not in one}
    assert {"numpy", "pandas", "scipy", "xarray"} <= needs


def test_a_source_distribution_has_every_file(tracked):
    _, names = tracked
    with tarfile.open(package(tracked, "sdist")) as source:
        inside = {name.partition("/")[2] for name in source.getnames()}
    assert not {*names} - inside
