"""What the mechanism asks of a model that is to be made private."""

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
    Savitsky, Williams and Hu (2022), section 3: this is all their algorithm asks of a model. A
    synthesizer whose draws are independent, not a Markov chain's, may say so by an attribute
    ``independent_draws = True``; the fits of all others are diagnosed before a bound is shown.

    A method ``log_likelihood_at(posterior)`` returns the log-likelihood of the synthesizer's own
    records, an array (chain, draw, record), at draws given as an ``xarray.Dataset`` like a fit's
    ``posterior``. Where there is one, a fit that somebody hands over is compared with it, and
    refused if it belongs to other records: nothing that identifies the records is kept in a fit. A
    class that changes what ``fit`` returns must change this method, too.

    A method ``fingerprint()`` returns a dict of everything that determines a fit beside the
    arguments of ``fit``: data and settings, as numbers, text, arrays of numbers, or lists, dicts
    and dataclasses of those.

    A ``fit`` with the optional argument ``censor``, a :class:`ppm.Censoring`, draws from the prior
    times the exponential of the sum of ``censor.term(weight * log-likelihood)`` over the records,
    one term a record. Its ``log_likelihood`` stays the uncensored one. The mechanism refuses to
    censor with a ``fit`` that does not name the argument.

    The ``random_seed`` that the mechanism and everything built on it hand to ``fit`` is a
    ``numpy.random.SeedSequence``, whatever their caller gave. ``numpy.random.default_rng`` takes
    it; spawning from it would change it.

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
        and ``log_likelihood`` (one variable with the dimensions chain, draw, record: the
        *unweighted* log-likelihood of every record); ``draws`` counts kept draws a chain.
        """

    def log_likelihood(self, fit):
        """Return that log-likelihood, an ``xarray.DataArray`` (chain, draw, record)."""

    def predict(self, fit, *, releases, random_seed=None):
        """Draw ``releases`` synthetic databases, each from one randomly chosen draw of θ.

        Returns an ``xarray.DataArray`` with the dimensions release and record.
        """


# what two computations of one log-likelihood may differ by, beside 1 and beside its size
_ROUNDING = 1e-6


def check_fit(synthesizer, fit, name):
    """Refuse a fit of other records than the synthesizer's, where it can tell.

    The log-likelihood of the first and the last draw of every chain is computed again from the
    synthesizer's own records and compared with the one that the fit holds.

    Parameters
    ----------
    synthesizer : ppm.Synthesizer
        The model. Without a method ``log_likelihood_at`` nothing is checked.
    fit : xarray.DataTree
        What its ``fit`` is said to have returned.
    name : str
        What the message calls it.

    Raises
    ------
    ValueError
        If the fit belongs to other records or to another model.
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
    """Pick draws of θ for the releases: (chain, draw) indices, different ones while they last.

    Parameters
    ----------
    posterior : xarray.Dataset
        Posterior draws with the dimensions chain and draw.
    releases : int
        How many to pick, 1 or more.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    tuple of numpy.ndarray
        Chain and draw index of every release.

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 3, step 3a.
    """
    shape = (posterior.sizes["chain"], posterior.sizes["draw"])
    total = int(np.prod(shape))
    picked = rng.choice(total, size=releases, replace=releases > total)
    return np.unravel_index(picked, shape)
