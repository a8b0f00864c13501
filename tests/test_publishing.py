"""What the public sees of the repository agrees with what is in it."""

import os
import re
import shlex
import shutil
import subprocess
import tomllib

import pytest
import yaml
from conftest import ROOT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from pybtex.database import parse_string

import ppm

README = (ROOT / "README.md").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))


def test_the_citation_is_of_this_book_its_authors_and_its_version():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    paper = yaml.safe_load((ROOT / "paper.md").read_text("utf-8").split("---\n")[1])
    # a collective has one name, a person two
    names = [
        author.get("name") or f"{author['given-names']} {author['family-names']}"
        for author in cited["authors"]
    ]
    assert names == [author["name"] for author in PROJECT["authors"]]
    assert names == [author["name"] for author in paper["authors"]]
    assert all(name in config["author"] for name in names)
    assert cited["title"] == config["title"]
    assert cited["version"] == ppm.__version__
    assert re.search(
        rf"^> .*\*{cited['title']}\*, version {ppm.__version__}", README, re.MULTILINE
    )
    # GitHub's button would show it in place of the book
    assert "preferred-citation" not in cited


def brought(readme):
    """Names of the packages that an installation without extras brings, and of the extras."""
    (text,) = re.findall(
        r"^`pip install \.`.*?(?=^#)", readme, re.MULTILINE | re.DOTALL
    )
    (names,) = re.findall(r"It brings (.*?), and what these need", text)
    extras = re.findall(r"`'\.\[(\w+)\]'`", text)
    return {canonicalize_name(name) for name in re.split(", | and ", names)}, {*extras}


def test_the_readme_says_what_an_installation_brings():
    needed = {
        canonicalize_name(Requirement(each).name) for each in PROJECT["dependencies"]
    }
    assert brought(README) == (needed, {*PROJECT["optional-dependencies"]})


def steps(text):
    """Commands of a workflow."""
    jobs = yaml.safe_load(text)["jobs"].values()
    return [step["run"] for job in jobs for step in job["steps"] if "run" in step]


def dry_run(command):
    """What a call of make would do."""
    program, *arguments = shlex.split(command)
    assert program == "make"
    alone = {"PATH": os.environ["PATH"]}
    return subprocess.run(
        ["make", "--dry-run", *arguments],
        cwd=ROOT,
        env=alone,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def test_a_push_publishes_the_book_at_the_papers_sizes():
    text = (GITHUB / "workflows" / "book.yml").read_text("utf-8")
    (build,) = [dry_run(step) for step in steps(text) if step.startswith("make book")]
    assert 'ppm_book.tools.studio book --profile "paper"' in build


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_the_commands_of_a_workflow_exist(file, tmp_path):
    shutil.copy(ROOT / "requirements.lock", tmp_path)
    commands = steps(file.read_text("utf-8"))
    assert commands
    for command in commands:
        program = command.split()[0]
        if program == "make":
            assert dry_run(command)
        elif program == "sed":
            subprocess.run(command, shell=True, cwd=tmp_path, check=True)
            first, *hashes = (tmp_path / "ruff.lock").read_text("utf-8").splitlines()
            assert first.startswith("ruff==") and hashes
            assert all(line.startswith("    --hash=sha256:") for line in hashes)
        else:
            assert program in ("pip", "ruff")
    # nobody may write to the repository; a job that must write elsewhere says so itself
    assert yaml.safe_load(file.read_text("utf-8"))["permissions"] == {
        "contents": "read"
    }


def test_the_paper_cites_what_its_bibliography_has():
    paper = (ROOT / "paper.md").read_text("utf-8")
    about = yaml.safe_load(paper.split("---\n")[1])
    entries = parse_string(
        (ROOT / about["bibliography"]).read_text("utf-8"), "bibtex"
    ).entries
    assert {*re.findall(r"@(\w+)", paper.split("---\n", 2)[2])} == {*entries}
