"""Whether the book that stands is the one that would be built, told before long imports.

    python -m ppm_book.tools.made_from PROFILE CE_DATA SOLUTIONS

says so and ends with 0, or says nothing and ends with 1.
"""

import os
import sys

from ppm_book.chapters import running

# all that results and pages are made of; claims by themselves, because a digest of a folder leaves
# them out
FILES = (
    "book",
    "notebooks",
    "ppm",
    "_config.yml",
    "_toc.yml",
    "requirements.lock",
    "book/ppm_book/chapters/claims",
)


def inputs(profile, ce_data, solutions):
    """What a book is made of, in one line; of the data of a survey only their hash is in it."""
    data = [os.path.abspath(os.path.expanduser(ce_data))] if ce_data else []
    files = [*(running.ROOT / file for file in FILES), *data]
    return f"{profile} {solutions} {len(data)} {running.digest(*files)}"


def results(profile):
    """Hash of what the notebooks left."""
    return running.digest(running.ROOT / "_build" / "results" / profile)


def stamp():
    """The file that a finished build writes, in the folder of its pages."""
    return running.ROOT / "_build" / "html" / "made_from"


def stands(made_from, profile):
    """Whether the book was made from these inputs, and its results are still as they were."""
    file = stamp()
    return (
        file.is_file()
        and file.read_text("utf-8") == f"{made_from}\n{results(profile)}\n"
    )


def leave(made_from, profile):
    """Write the stamp of a book that was made from these inputs."""
    stamp().write_text(f"{made_from}\n{results(profile)}\n", "utf-8")


def tell():
    """Say that the book is up to date."""
    print(f"The book is up to date: {stamp().with_name('index.html')}")


def main(profile, ce_data, solutions):
    """Return the exit status: 0 if the book stands."""
    profile = profile or "paper"
    if not stands(inputs(profile, ce_data, solutions != "no"), profile):
        return 1
    tell()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
