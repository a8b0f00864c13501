"""What is missing from a core install is named, with the line that installs it."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib import metadata

import pytest
from conftest import ROOT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ppm._validation import EXTRAS, install_line, needed_for

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
OPTIONAL = PROJECT["optional-dependencies"]


def without(modules, code, *arguments):
    """Run code where modules cannot be imported; what it says and its exit status."""
    hide = f"import sys\nfor name in {sorted(modules)!r}: sys.modules[name] = None\n"
    return subprocess.run(
        [sys.executable, "-c", hide + code, *arguments], cwd=ROOT, capture_output=True, text=True
    )


# used where they are installed; llvmlite comes with numba
UNNAMED = {"numba", "llvmlite", "threadpoolctl"}
ALL = {module for modules in EXTRAS.values() for module in modules} | UNNAMED
COMMAND = "from ppm.publishing.command_line import main\nsys.exit(main(sys.argv[1:]))"


@pytest.mark.parametrize("arguments", [["run", "poisson_contraction"], ["book"]], ids=" ".join)
def test_a_command_that_needs_the_book_s_packages_says_so_in_one_line(arguments, tmp_path):
    where = ["--output", str(tmp_path / "out")] if arguments[0] == "run" else []
    for modules, name in (ALL, "ipykernel"), ({"yaml"}, "yaml"), ({"jupyter_book"}, "jupyter_book"):
        done = without(modules, COMMAND, *arguments, *where)
        told = f"ppm: ppm {arguments[0]} needs {name}: pip install 'ppm[book]'\n"
        assert (done.returncode, done.stdout, done.stderr) == (1, "", told)
        # nothing was begun: no hour of fits before the page cannot be made
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("arguments", [["notebooks"], ["run", "--help"], ["--help"]], ids=" ".join)
def test_a_core_install_lists_the_notebooks(arguments):
    done = without(ALL, COMMAND, *arguments)
    assert done.returncode == 0 and done.stderr == ""
    assert "notebooks" in done.stdout if arguments == ["--help"] else "theory" in done.stdout


def test_a_core_install_still_refuses_a_wrong_name():
    done = without(ALL, COMMAND, "run", "poisson_contract")
    assert done.returncode == 2 and "did you mean" in done.stderr


MIXTURE = (
    "rng = np.random.default_rng(1)\n"
    "y, X = rng.standard_normal(40), np.ones((40, 1))\n"
    "model = ppm.FiniteMixture(y, X, components=1, warmup=10, chains=1, parallel=False)\n"
)


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("ppm.PyMCSynthesizer", "ppm.PyMCSynthesizer needs pymc: pip install 'ppm[pymc]'"),
        ("from ppm import PyMCSynthesizer", "PyMCSynthesizer needs pymc: pip install 'ppm[pymc]'"),
        ("ppm_book.plots", "ppm_book.plots needs matplotlib: pip install 'ppm[extra]'"),
        (
            "ppm_book.survey.download(sys.argv[1])",
            "survey.download needs pooch: pip install 'ppm[extra]'",
        ),
        (
            "ppm.publishing.table(survey.simulate(5).description(), 'A table.')",
            "page.table needs jinja2: pip install 'ppm[book]'",
        ),
        (
            MIXTURE + "model.fit(np.ones(40), draws=10, random_seed=1, progress=True)",
            "progress=True needs tqdm: pip install 'ppm[extra]'",
        ),
        (
            MIXTURE + "ppm.studies.sweep(model, [(0.7, 0.0)], draws=10, progress=True)",
            "progress=True needs tqdm: pip install 'ppm[extra]'",
        ),
        (
            "ppm.studies.histogram_release([1.0], (0, 2), bins=2, epsilon=1, secure_noise=True)",
            "secure_noise=True needs opendp: pip install 'ppm[extra]'",
        ),
        ("ppm.audits.study(progress=True)", "progress=True needs tqdm: pip install 'ppm[extra]'"),
        (
            "ppm.audits.membership_test(lambda seed: seed, lambda seed: seed, id, progress=True)",
            "progress=True needs tqdm: pip install 'ppm[extra]'",
        ),
        (
            "from ppm.publishing import claims\nclaims.load_ledger('book/published.yaml', {})",
            "the ledger needs yaml: pip install 'ppm[book]'",
        ),
    ],
    ids=lambda value: value.splitlines()[-1][:40],
)
def test_what_a_core_install_cannot_do_names_the_extra(tmp_path, code, told):
    done = without(ALL, f"import numpy as np, ppm\n{code}", str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(told)
    assert not any(tmp_path.iterdir())


def test_the_core_does_what_the_readme_says():
    """The mechanism on a model in closed form and on the finite mixture, a study, a survey."""
    code = (
        "import numpy as np, ppm\n"
        "counts = ppm.GammaPoisson([3, 4, 4, 5, 5, 6, 7, 18])\n"
        "mechanism = ppm.PseudoPosteriorMechanism(counts, scale=0.7, shift=0.0)\n"
        "mechanism.run(draws=50, random_seed=1).synthesize(releases=2, random_seed=2)\n"
        "ppm.studies.contraction(sizes=[50], replicates=2, random_seed=1)\n"
        "ppm_book.survey.predictor_matrix(survey.simulate(50))\n"
        "ppm.studies.histogram_release([1.0, 2.0], (0, 4), bins=4, epsilon=1.0)\n"
        + MIXTURE
        + "model.fit(np.ones(40), draws=10, random_seed=1)\n"
    )
    done = without(ALL, code)
    assert done.returncode == 0, done.stderr


def test_an_error_of_another_kind_stays_as_it_is():
    with pytest.raises(ModuleNotFoundError, match="ppm.nothing"), needed_for("a test"):
        import ppm.nothing  # noqa: F401
    assert install_line("nothing") == ""


def imported_modules():
    """Top-level modules from elsewhere that the library imports anywhere."""
    found = set()
    for path in (ROOT / "ppm").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                found.add(node.module.partition(".")[0])
    return found - {"ppm", *sys.stdlib_module_names}


def names(requirements):
    return {canonicalize_name(Requirement(text).name) for text in requirements}


def test_the_table_of_extras_is_that_of_the_project():
    """Each module comes with the extra that is named, and each that is imported has its place."""
    packages = metadata.packages_distributions()
    for extra, modules in EXTRAS.items():
        declared = names(OPTIONAL[extra])
        brought = set().union(*(names(metadata.requires(package) or ()) for package in declared))
        for module in modules:
            assert {canonicalize_name(name) for name in packages[module]} & (declared | brought)
    core = {name.replace("-", "_") for name in names(PROJECT["dependencies"])}
    assert imported_modules() <= core | ALL


def test_the_readme_names_the_dependencies_of_the_core_and_the_extras():
    text = " ".join((ROOT / "README.md").read_text("utf-8").split())
    said = re.search(r"`pip install \.` brings ([\w, -]+) only", text).group(1)
    assert names(re.split(r", | and ", said)) == names(PROJECT["dependencies"])
    assert set(re.findall(r"'\.\[(\w+)\]'", text)) == set(EXTRAS)
