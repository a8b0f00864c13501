"""Ask a public service for known vulnerabilities of every package in requirements.lock.

    python scripts/audit.py [--service osv] [--tools FOLDER]

pip-audit, in an environment of its own, asks about the pinned versions for all systems and Pythons,
installs nothing and sends nothing but names and versions. Exit status 0: all were looked up and
none is known to be vulnerable; 1: some are; 2: nobody knows, because the service could not be
reached or knew only some of the packages. A mirror of a package index often serves files only, and
pip-audit alone would then report that it found nothing.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tools import tool

ROOT = Path(__file__).resolve().parents[1]


def pins(lock):
    """``name==version`` of every package of a lock, whatever system or Python it is for."""
    found = re.findall(r"^([\w.-]+)(?:\[[^\]]*\])?==([\w.!+-]+)", lock, re.MULTILINE)
    return [f"{name}=={version}" for name, version in found]


def verdict(answer, asked, service):
    """Exit status and lines on what pip-audit answered.

    Parameters
    ----------
    answer : str
        What pip-audit printed with ``--format json``; empty text if it gave up.
    asked : int
        Number of packages it was asked about.
    service : str
        Name of the service.

    Returns
    -------
    tuple of int and list of str
        0 none is vulnerable, 1 some are, 2 not known.
    """
    try:
        packages = json.loads(answer)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return 2, [
            f"The vulnerability service {service} could not be reached, or gave no answer that can "
            "be read: nothing is known of any package. Try again, or another one: "
            "make audit ARGS='--service osv'"
        ]
    lines = []
    for package in packages:
        for known in package.get("vulns", ()):
            mended = ", ".join(known.get("fix_versions", ())) or "no version yet"
            also = ", ".join(known.get("aliases", ()))
            lines.append(
                f"{package['name']} {package['version']}: {known['id']}"
                f"{f' ({also})' if also else ''}, mended in {mended}"
            )
    answered = sum("vulns" in package for package in packages)
    vulnerable = sum(bool(package.get("vulns")) for package in packages)
    if lines:
        lines.append(f"{vulnerable} of {answered} packages looked up are vulnerable ({service}).")
    if answered < asked:
        lines.append(
            f"The vulnerability service {service} knew {answered} of the {asked} packages; nothing "
            "is known of the others. A mirror of the index often serves files only; try another "
            "service: make audit ARGS='--service osv'"
        )
    if not lines:
        lines.append(f"None of the {asked} packages is known to be vulnerable ({service}).")
    return (1 if vulnerable else 2 if answered < asked else 0), lines


def main(arguments=None):
    """Print what is known, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--service", choices=("pypi", "osv"), default="pypi")
    parser.add_argument("--osv-url", help="another address of the service osv")
    parser.add_argument("--tools", type=Path, default=ROOT / "_build" / "audit-tools")
    options = parser.parse_args(arguments)
    asked = pins((ROOT / "requirements.lock").read_text("utf-8"))
    command = [tool(options.tools, "pip-audit", "pip-audit>=2.9,<3")]
    command += ["--format", "json", "--no-deps", "--disable-pip"]
    command += ["--progress-spinner", "off", "--vulnerability-service", options.service]
    if options.osv_url:
        command += ["--osv-url", options.osv_url]
    with tempfile.TemporaryDirectory() as folder:
        # without the markers, which would leave out what other systems get
        listed = Path(folder) / "requirements.txt"
        listed.write_text("\n".join(asked) + "\n", "utf-8")
        done = subprocess.run([*command, "--requirement", listed], capture_output=True, text=True)
    status, lines = verdict(done.stdout, len(asked), options.service)
    if not done.stdout and done.stderr:
        # the last line names what went wrong
        lines.insert(0, done.stderr.strip().splitlines()[-1])
    print("\n".join(lines), file=sys.stderr if status else sys.stdout)
    return status


if __name__ == "__main__":
    sys.exit(main())
