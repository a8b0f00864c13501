"""The Bayesian pseudo posterior mechanism of Savitsky, Williams and Hu (JMLR 2022).

The names on ``ppm`` itself are the method's own; everything else is reached by its room, such as
``ppm.audits.exact`` or ``ppm.utility.gini``. All are loaded when first used, so that ``import ppm``
needs no PyMC, matplotlib or notebook machinery.
"""

from ppm._validation import lazily

__version__ = "0.1.0"

# name -> the module that defines it; the book's dependency tracking reads this table too
_EXPORTS = {
    "record_bounds": "ppm.lipschitz",
    "local_bound": "ppm.lipschitz",
    "record_oscillations": "ppm.lipschitz",
    "oscillation_bound": "ppm.lipschitz",
    "tail_bound": "ppm.lipschitz",
    "record_weights": "ppm.weights",
    "mapped_weights": "ppm.weights",
    "public_weights": "ppm.weights",
    "scalar_weights": "ppm.weights",
    "count_weights": "ppm.weights",
    "Censoring": "ppm.censoring",
    "epsilon": "ppm.pdp",
    "exceedance": "ppm.pdp",
    "PseudoPosteriorMechanism": "ppm.mechanism",
    "ChainsDisagreeError": "ppm.diagnostics",
    "Synthesizer": "ppm.synthesizers.base",
    "GammaPoisson": "ppm.synthesizers.gamma_poisson",
    "FiniteMixture": "ppm.synthesizers.mixture.model",
    "PyMCSynthesizer": "ppm.synthesizers.pymc_model",
    "histogram_release": "ppm.histogram",
}
_ROOMS = (
    "lipschitz",
    "weights",
    "censoring",
    "pdp",
    "diagnostics",
    "mechanism",
    "histogram",
    "disclosure",
    "utility",
    "risk",
    "synthesizers",
    "audits",
)

__all__ = [*_EXPORTS, *_ROOMS]
__getattr__, __dir__ = lazily(globals(), _EXPORTS, _ROOMS)
