"""What the mechanism asks of a model."""

import inspect
import sys
from typing import Protocol, runtime_checkable

import numpy as np


@runtime_checkable
class Synthesizer(Protocol):
    """A Bayesian model of a database that can be fitted with record weights.

    Attributes
    ----------
    records : int
        Number of records n.

    Notes
    -----
    Four more things are optional:

    - An attribute ``independent_draws = True`` says that draws come from no Markov chain. The fits
      of all other synthesizers are diagnosed before a bound is shown.
    - A method ``log_likelihood_at(posterior)`` returns the log-likelihood of the synthesizer's own
      records, (chain, draw, record), at the draws of a fit's ``posterior``. A fit that the caller
      supplies is compared with it, and refused if it belongs to other records.
    - A ``fit`` with an argument ``censor``, a :class:`ppm.Censoring`, draws from the prior times
      the exponential of the sum over records of ``censor.term(weight * log-likelihood)``. Its
      ``log_likelihood`` stays uncensored. Without the argument the mechanism refuses to censor.
    - Attributes ``warmup`` and ``chains`` appear in the advice given where chains disagree.

    ``random_seed`` reaches ``fit`` as a ``numpy.random.SeedSequence``, for
    ``numpy.random.default_rng``; do not spawn from it.

    Examples
    --------
    >>> import ppm
    >>> isinstance(ppm.GammaPoisson([3, 5, 4]), ppm.Synthesizer)
    True
    >>> isinstance([3, 5, 4], ppm.Synthesizer)
    False
    """

    @property
    def records(self): ...

    def fit(self, weights=None, *, draws=1000, random_seed=None, progress=False):
        """Draw θ from the pseudo posterior with these weights (all 1 by default).

        Returns an ``xarray.DataTree`` with the groups ``posterior`` (dimensions chain, draw, …)
        and ``log_likelihood`` (one variable, chain, draw, record: *unweighted*); ``draws`` counts
        kept draws per chain.
        """

    def log_likelihood(self, fit):
        """Return that log-likelihood, an ``xarray.DataArray`` (chain, draw, record)."""

    def predict(self, fit, *, releases, random_seed=None):
        """Draw synthetic databases, (release, record), each from one randomly chosen draw of θ."""


# settings of the mechanism, for messages
_OWN = "scale, shift, truncate_at, weights, censor, independent_weights"
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
            raise TypeError(f"{unknown}: neither a setting of the mechanism ({_OWN}) nor of "
                            f"PyMCSynthesizer ({', '.join(known)})")
        return PyMCSynthesizer(model, **settings)
    if isinstance(model, type) or not isinstance(model, Synthesizer):
        kind = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
        raise TypeError("synthesizer must have records, fit, log_likelihood and predict, as "
                        f"ppm.GammaPoisson(counts) has, or be a PyMC model; got {kind}")
    if settings:
        raise TypeError(f"{', '.join(settings)}: no setting of the mechanism ({_OWN}); settings of "
                        f"a model go with a PyMC model only, not with {type(model).__name__}")
    return model


def check_fit(synthesizer, fit, name):
    """Refuse a fit of other records than the synthesizer's, where it has ``log_likelihood_at``.

    The log-likelihood of the first and last draw of each chain is computed again from the
    synthesizer's own records and compared with that in the fit.
    """
    if not hasattr(synthesizer, "log_likelihood_at"):
        return
    refusal = (
        f"{name} is no fit of this synthesizer: its log-likelihoods are not those of the "
        "synthesizer's records; accepted: what its own fit() returned for these very records"
    )
    try:
        kept = synthesizer.log_likelihood(fit)
        ends = sorted({0, kept.sizes["draw"] - 1})
        kept = kept.isel(draw=ends).transpose("chain", "draw", ...).values
        posterior = fit["posterior"].to_dataset().isel(draw=ends)
        own = synthesizer.log_likelihood_at(posterior).transpose("chain", "draw", ...).values
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        # the fit of another model lacks what this one looks for
        raise ValueError(refusal) from error
    if kept.shape != own.shape or not np.allclose(
        kept, own, rtol=_ROUNDING, atol=_ROUNDING, equal_nan=True
    ):
        raise ValueError(refusal)


def choose_draws(posterior, releases, rng):
    """Pick draws of θ for the releases (step 3a), different ones while they last.

    Returns the chain and draw index of each release.
    """
    shape = (posterior.sizes["chain"], posterior.sizes["draw"])
    total = shape[0] * shape[1]
    return np.unravel_index(rng.choice(total, size=releases, replace=releases > total), shape)
