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

    An attribute ``concurrent_fits = True`` says that a sweep may make several fits at the same
    time, in threads, as it may where chains are left to
    :func:`ppm.synthesizers.chains.run_chains`.

    A sweep keeps fits in a folder only for a synthesizer with a method ``fingerprint()``. It
    returns a dict of everything that determines a fit beside the arguments of ``fit``: data and
    settings, as numbers, text, arrays of numbers, or lists, dicts and dataclasses of those. A
    class that changes ``__init__`` needs a ``fingerprint`` of its own.

    The ``random_seed`` that the mechanism and everything built on it hand to ``fit`` is a
    ``numpy.random.SeedSequence``, whatever their caller gave. ``numpy.random.default_rng`` takes
    it; spawning from it would change it.
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
