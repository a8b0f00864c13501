"""Packages of the optional groups, and what to install where one is missing."""

import contextlib
from importlib.util import find_spec

# extra of pyproject.toml -> modules of it that the library cannot do without; numba and
# threadpoolctl are used where they are installed
EXTRAS = {
    "pymc": ("pymc", "pytensor"),
    "extra": ("matplotlib", "pooch", "requests", "tqdm"),
    "book": (
        "ipykernel",
        "jinja2",
        "jupyter_book",
        "nbclient",
        "nbformat",
        "papermill",
        "psutil",
        "yaml",
    ),
}


class MissingExtraError(ImportError):
    """A package of an optional group is not installed; the message is one line."""


def install_line(module):
    """What to type where a module is missing; empty text if it belongs to no optional group."""
    for extra, modules in EXTRAS.items():
        if module in modules:
            return f"pip install 'ppm[{extra}]'"
    return ""


@contextlib.contextmanager
def needed_for(what):
    """Say what needs a module that is imported within, and how to get it.

    Parameters
    ----------
    what : str
        What cannot be done without it.

    Raises
    ------
    MissingExtraError
        If a module of an optional group is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        name = (error.name or "").partition(".")[0]
        if not install_line(name):
            raise
        raise MissingExtraError(f"{what} needs {name}: {install_line(name)}", name=name) from None


def require(extra, what):
    """Refuse what would find out only later that a module of an extra is missing."""
    for module in EXTRAS[extra]:
        if find_spec(module) is None:
            raise MissingExtraError(f"{what} needs {module}: {install_line(module)}", name=module)
