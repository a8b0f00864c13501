"""What the mechanism accepts: a synthesizer or a PyMC model, limits that it takes, and its fits."""

import inspect
import sys
import warnings

import numpy as np

from ppm.censoring import Censoring
from ppm.synthesizers.base import Synthesizer

# settings of the mechanism, for messages
_OWN = "scale, shift, truncate_at, weights, censor, cap, independent_weights"
# nats; with less, a tenth of the draws and more are far off even under a prior of moderate width
_HEIGHT = 10.0
# tolerance between two computations of one log-likelihood, absolute and relative
_ROUNDING = 1e-6


def as_synthesizer(model, **settings):
    """Return a synthesizer as it is, and a PyMC model as a :class:`ppm.PyMCSynthesizer`."""
    # a PyMC model exists only where PyMC has been imported
    pymc = sys.modules.get("pymc")
    if pymc is not None and isinstance(model, pymc.Model):
        from ppm.synthesizers.pymc_model import PyMCSynthesizer

        known = [*inspect.signature(PyMCSynthesizer).parameters][1:]
        if unknown := ", ".join(name for name in settings if name not in known):
            raise TypeError(
                f"{unknown}: neither a setting of the mechanism ({_OWN}) nor of "
                f"PyMCSynthesizer ({', '.join(known)})"
            )
        return PyMCSynthesizer(model, **settings)
    if isinstance(model, type) or not isinstance(model, Synthesizer):
        kind = (
            f"the class {model.__name__}"
            if isinstance(model, type)
            else type(model).__name__
        )
        raise TypeError(
            "synthesizer must have records, fit, log_likelihood and predict, as "
            f"ppm.GammaPoisson(counts) has, or be a PyMC model; got {kind}"
        )
    if settings:
        raise TypeError(
            f"{', '.join(settings)}: no setting of the mechanism ({_OWN}); settings of "
            f"a model go with a PyMC model only, not with {type(model).__name__}"
        )
    return model


def check_censor(synthesizer, censor):
    """Return limits that the synthesizer's ``fit`` takes, or None."""
    if censor is None:
        return None
    if not isinstance(censor, Censoring):
        raise ValueError(f"censor must be a ppm.Censoring; got {type(censor).__name__}")
    # by name: a fit() with **kwargs might ignore it silently
    if "censor" not in inspect.signature(synthesizer.fit).parameters:
        raise TypeError(
            f"censor: the fit() of {type(synthesizer).__name__} takes none; accepted: "
            "ppm.GammaPoisson, ppm.FiniteMixture, a PyMC model, or a synthesizer "
            "whose fit() has the argument censor"
        )
    # public numbers alone
    height = synthesizer.records * float(censor.term(0.0) - censor.low)
    if censor.center is not None and height < _HEIGHT:
        warnings.warn(
            f"censor: at the center all terms together are {height:.2g} nats above the "
            "lower limits, so that the prior may keep most draws far from it; limits "
            "farther apart, more records or a narrower prior prevent that",
            stacklevel=3,
        )
    return censor


def check_fit(synthesizer, fit, name):
    """Refuse a fit of other records than the synthesizer's, where it has ``log_likelihood_at``.

    The log-likelihood of the first and last draw of each chain is computed again and compared.
    """
    if not hasattr(synthesizer, "log_likelihood_at"):
        return
    try:
        kept = synthesizer.log_likelihood(fit)
        ends = sorted({0, kept.sizes["draw"] - 1})
        kept = kept.isel(draw=ends).transpose("chain", "draw", ...).values
        posterior = fit["posterior"].to_dataset().isel(draw=ends)
        own = (
            synthesizer.log_likelihood_at(posterior)
            .transpose("chain", "draw", ...)
            .values
        )
        same = kept.shape == own.shape and np.allclose(
            kept, own, rtol=_ROUNDING, atol=_ROUNDING, equal_nan=True
        )
        fault = None
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        # the fit of another model lacks what this one looks for
        same, fault = False, error
    if not same:
        raise ValueError(
            f"{name} is no fit of this synthesizer: its log-likelihoods are not those "
            "of the synthesizer's records; accepted: what its own fit() returned for "
            "these very records"
        ) from fault
