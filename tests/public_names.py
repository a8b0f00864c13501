"""Every public name of the library: those on ``ppm``, and those of its modules and rooms."""

import importlib
import inspect

import ppm
from ppm_book import audits
from ppm_book.chapters import plots, survey

# modules that are not on ``ppm`` themselves, and yet public
FURTHER = (
    "models.own_terms",
    "release.measure",
)


def names_in(module, place=""):
    """Name, such as ``epsilon`` or ``pdp.exceedance``, to what it names, of a module's own modules too."""
    names = {}
    for name in module.__all__:
        value = getattr(module, name)
        inside = inspect.ismodule(value)
        names |= names_in(value, f"{place}{name}.") if inside else {place + name: value}
    return names


def public_names():
    """Name without ``ppm.`` to what it names; what has two names stands under the shorter one."""
    names = names_in(ppm)
    for name in FURTHER:
        names |= names_in(importlib.import_module(f"ppm.{name}"), f"{name}.")
    longest_first = sorted(names, key=lambda name: name.count("."), reverse=True)
    shortest = {id(names[name]): name for name in longest_first}
    return {name: value for name, value in names.items() if shortest[id(value)] == name}


def kinds_of(base):
    """Name to class of every public kind of model, rule or mechanism."""
    return {
        value.__name__: value
        for value in public_names().values()
        if inspect.isclass(value) and issubclass(value, base) and value is not base
    }


def book_names():
    """The same for the audits, the survey and the figures of the book."""
    return {
        f"{module.__name__.rpartition('.')[2]}.{name}": getattr(module, name)
        for module in (audits, plots, survey)
        for name in module.__all__
    }
