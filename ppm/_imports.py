"""What is imported when: names on first use, and packages that may not be there."""

import contextlib
from importlib import import_module
from importlib.util import find_spec

# extra of pyproject.toml -> modules of it that the library cannot do without; numba and
# threadpoolctl are used where they are installed
EXTRAS = {
    "pymc": ("pymc", "pytensor"),
    "extra": ("matplotlib", "pooch", "requests", "tqdm"),
    "book": (
        "ipykernel",
        "jinja2",
        "jsonschema",
        "jupyter_client",
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


def lazily(package, exports, rooms=()):
    """``__getattr__`` and ``__dir__`` of a package whose names are loaded when first used.

    Parameters
    ----------
    package : dict
        The package's ``globals()``.
    exports : dict of str to str
        Public name -> the module that defines it.
    rooms : sequence of str, optional
        Modules and folders of the package, reached as its attributes.
    """
    dotted = package["__name__"]

    def getattribute(name):
        if name in exports:
            with needed_for(f"{dotted}.{name}"):
                value = getattr(import_module(exports[name]), name)
        elif name in rooms:
            value = import_module(f"{dotted}.{name}")
        else:
            raise AttributeError(f"module {dotted!r} has no attribute {name!r}")
        package[name] = value
        return value

    def names():
        return sorted({*package, *exports, *rooms})

    return getattribute, names


def one_thread():
    """Limit linear algebra to one thread, as a context, where threadpoolctl is installed.

    On matrices with a few hundred columns threads gain little, and cost a multiple where they wait
    for a core that something else is using. One thread also keeps the order of sums, and so the
    last digits.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        return contextlib.nullcontext()
    return threadpool_limits(1)
