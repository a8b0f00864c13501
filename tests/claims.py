"""Claims of chapters, computed from given values as a notebook's last cell computes them."""

import inspect
import runpy
from types import SimpleNamespace

from ppm_book.chapters import page

# what has attributes, such as an interval its ends
ends = SimpleNamespace
MODULES = {
    file.stem: runpy.run_path(str(file)) for file in page.CLAIMS.glob("[!_]*.py")
}


def evaluated(chapter, name, given, called=None):
    """What an entry or a function of a module returns, as ``page.check_claims`` computes it."""
    module = MODULES[chapter]

    def value(name):
        if name in given:
            return given[name]
        return computed(module[name])

    def computed(function):
        if not inspect.isfunction(function):
            return function
        if called is not None:
            called.add(function)
        needed = inspect.signature(function).parameters.values()
        return function(
            **{one.name: value(one.name) for one in needed if one.default is one.empty}
        )

    found = [module.get(table, {}).get(name) for table in ("CLAIMS", "NUMBERS")]
    return computed(next(filter(None, [*found, module.get(name)])))
