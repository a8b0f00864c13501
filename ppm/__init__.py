"""The Bayesian pseudo posterior mechanism of Savitsky, Williams and Hu (JMLR 2022).

The names on ``ppm`` are the method's own; everything else is reached by its module, such as
``ppm.audits.exact`` or ``ppm.utility.gini``. All are loaded when first used, so that ``import ppm``
needs no PyMC. ``dir(ppm)`` leaves out names whose packages are not installed.
"""

import lazy_loader

from ppm._extras import lacking as _lacking

__version__ = "0.1.0"

_load, _, __all__ = lazy_loader.attach(
    __name__,
    [
        "account",
        "audits",
        "censoring",
        "diagnostics",
        "disclosure",
        "histogram",
        "lipschitz",
        "mechanism",
        "noisy",
        "own_terms",
        "pdp",
        "plan",
        "raking",
        "risk",
        "rules",
        "sums",
        "synthesizers",
        "terms",
        "utility",
        "weights",
    ],
    {
        "lipschitz": [
            "record_bounds",
            "local_bound",
            "record_oscillations",
            "oscillation_bound",
            "tail_bound",
        ],
        "weights": [
            "record_weights",
            "mapped_weights",
            "scalar_weights",
            "count_weights",
        ],
        "censoring": ["Censoring"],
        "pdp": ["epsilon", "exceedance"],
        "terms": ["Terms"],
        "mechanism": ["Fit", "PseudoPosteriorMechanism", "fit"],
        "diagnostics": ["ChainsDisagreeError"],
        "synthesizers.base": ["Synthesizer"],
        "synthesizers.gamma_poisson": ["GammaPoisson"],
        "mixture.model": ["FiniteMixture"],
        "synthesizers.candidates": ["CandidateSynthesizer"],
        "synthesizers.pymc_model": ["PyMCSynthesizer"],
        "histogram": ["histogram_release"],
        "sums": ["sums_release"],
        "plan": ["Confidential", "ReleasePlan"],
    },
)


def __getattr__(name):
    if message := _lacking(f"ppm.{name}"):
        raise ModuleNotFoundError(message)
    return _load(name)


def __dir__():
    # help() loads all of these
    return [name for name in __all__ if not _lacking(f"ppm.{name}")]
