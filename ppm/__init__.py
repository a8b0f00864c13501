"""The Bayesian pseudo posterior mechanism of Savitsky, Williams and Hu (JMLR 2022).

A *model* holds the confidential records; a *rule*, which is public, says what each of them adds; its
*terms* are what they add; and :func:`ppm.fit` makes a *fit*, from which bounds, ε and releases
follow. What a release needs beyond the paper is in ``ppm.release``.
"""

from importlib.util import find_spec

from ppm import chains, pdp, release, risk
from ppm.bounds import (
    local_bound,
    oscillation_bound,
    record_bounds,
    record_oscillations,
)
from ppm.candidates import Candidates
from ppm.chains import ChainsDisagreeError
from ppm.checks import further as _further
from ppm.fit import Fit, fit
from ppm.model import Model
from ppm.models.counts import GammaPoisson
from ppm.models.normal import Normal
from ppm.pdp import epsilon, exceedance
from ppm.rules import (
    ByCount,
    ByRisk,
    Capped,
    Given,
    Limited,
    OneWeight,
    Reweighted,
    Rule,
    Unweighted,
    record_weights,
)
from ppm.terms import Limits, Terms

__version__ = "0.1.0"

__all__ = [
    "ByCount",
    "ByRisk",
    "Candidates",
    "Capped",
    "ChainsDisagreeError",
    "FiniteMixture",
    "Fit",
    "GammaPoisson",
    "Given",
    "Limited",
    "Limits",
    "Model",
    "Normal",
    "OneWeight",
    "PyMCModel",
    "Reweighted",
    "Rule",
    "Terms",
    "Unweighted",
    "chains",
    "epsilon",
    "exceedance",
    "fit",
    "local_bound",
    "oscillation_bound",
    "pdp",
    "record_bounds",
    "record_oscillations",
    "record_weights",
    "release",
    "risk",
]

# names that need a package which is heavy, and may not be there
_FURTHER = {"FiniteMixture": ("numba", "extra"), "PyMCModel": ("pymc", "pymc")}


def __getattr__(name):
    if name in _FURTHER:
        _further(*_FURTHER[name])
    if name == "FiniteMixture":
        from ppm.models.mixture.model import FiniteMixture

        return FiniteMixture
    if name == "PyMCModel":
        from ppm.models.pymc import PyMCModel

        return PyMCModel
    raise AttributeError(f"module 'ppm' has no attribute {name!r}")


def __dir__():
    # help(ppm) reads each of them, also where their packages are not there
    absent = {name for name, (package, _) in _FURTHER.items() if not find_spec(package)}
    return [name for name in __all__ if name not in absent]
