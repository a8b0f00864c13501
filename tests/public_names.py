"""Every public name of the library: those on ``ppm``, and those of its modules and rooms."""

import importlib

import ppm
from ppm_book.chapters import plots, survey

# modules that are not on ``ppm`` themselves, and yet public
FURTHER = ("models.own_terms",)


def public_names():
    """Name without ``ppm.``, such as ``epsilon`` or ``pdp.exceedance``, to what it names."""
    names = {name: getattr(ppm, name) for name in ppm.__all__}
    modules = {name: value for name, value in names.items() if not callable(value)}
    modules |= {name: importlib.import_module(f"ppm.{name}") for name in FURTHER}
    own = {name: value for name, value in names.items() if callable(value)}
    # a name on ``ppm`` itself needs no second one
    known = {id(value) for value in own.values()}
    return own | {
        f"{module_name}.{name}": value
        for module_name, module in modules.items()
        for name in module.__all__
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
