"""What needs more than the base install, and the message where that is absent."""

from importlib.util import find_spec

# a package that stands for those it needs, and the extra that brings them
_NEEDS = {
    "ppm.FiniteMixture": ("joblib", "extra"),
    "ppm.PyMCSynthesizer": ("pymc", "pymc"),
}


def lacking(name):
    """Say in one line what to install for a name, or "" if all is there."""
    package, extra = _NEEDS.get(name, ("sys", ""))
    told = f"{name} needs {package}: pip install '.[{extra}]' in the folder of ppm's source"
    return "" if find_spec(package) else told
