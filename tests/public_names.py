"""Every public name of the library: those on ``ppm``, and those of its rooms."""

import inspect
from types import ModuleType

import ppm


def public_names():
    """Name without ``ppm.``, such as ``epsilon`` or ``survey.load``, to function or class."""
    found = {}
    for name in ppm.__all__:
        value = getattr(ppm, name)
        if not isinstance(value, ModuleType):
            found[name] = value
            continue
        for inner in getattr(value, "__all__", None) or _defined(value):
            found[f"{name}.{inner}"] = getattr(value, inner)
    # a name on ``ppm`` itself needs no second one
    own = {id(value) for name, value in found.items() if "." not in name}
    return {
        name: value for name, value in found.items() if "." not in name or id(value) not in own
    }


def _defined(module):
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isfunction(value) or inspect.isclass(value))
        and value.__module__ == module.__name__
    ]
