"""Every public name of the library: those on ``ppm``, and those of its rooms."""

import ppm
from ppm_book.chapters import plots, survey


def public_names():
    """Name without ``ppm.``, such as ``epsilon`` or ``survey.load``, to function or class."""
    found = {name: getattr(ppm, name) for name in ppm.__all__}
    inner = {name: value for name, value in found.items() if not callable(value)}
    own = {name: value for name, value in found.items() if callable(value)}
    # a name on ``ppm`` itself needs no second one
    known = {id(value) for value in own.values()}
    return own | {
        f"{room}.{name}": value
        for room, module in inner.items()
        for name in getattr(module, "__all__", ())
        if id(value := getattr(module, name)) not in known
    }


def book_names():
    """The same for the survey and the figures of the book."""
    return {
        f"{module.__name__.removeprefix('ppm_book.chapters.')}.{name}": getattr(
            module, name
        )
        for module in (plots, survey)
        for name in module.__all__
    }
