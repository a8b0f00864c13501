"""What the mechanism asks of a model."""

from abc import ABC, abstractmethod

from ppm.checks import Brief

__all__ = ["Model"]


class Model(Brief, ABC):
    """A Bayesian model of confidential records, which answers three questions.

    A model of your own inherits from this class. It has ``records``, and the methods :meth:`draw`,
    :meth:`log_p` and :meth:`predict`. Parameters θ are a dict of arrays by name. Which θ is
    released, and how bounds are read, is :func:`ppm.fit`'s matter.

    Attributes
    ----------
    records : int
        Number of records n.
    chains : int or None
        Number of Markov chains; None, the default, for exact and independent draws. The chains of a
        fit are compared before a bound is shown.
    warmup : int
        Sweeps that each chain discards.
    sample_stats : tuple of str
        What :meth:`draw` returns besides θ, by name, such as ``"diverging"``; none by default.
    dims : dict
        Names of the further dimensions of parameters and responses, by name, for
        :attr:`ppm.Fit.posterior` and releases.
    coords : dict
        Public labels along these dimensions.
    values, known : array_like or None
        Records' confidential values, and public groups that an intruder knows, for
        :class:`ppm.ByCount`; None, the default, where the model says none.

    Examples
    --------
    The mean of a normal distribution with a standard deviation of 1, under a flat prior:

    >>> import numpy as np, ppm
    >>> from scipy import stats
    >>> class Mean(ppm.Model):
    ...     def __init__(self, values):
    ...         self.values, self.records = np.asarray(values), len(values)
    ...
    ...     def draw(self, terms, draws, rng):
    ...         total = terms.weights.sum()
    ...         mean = terms.weights @ self.values / total
    ...         return {"mean": rng.normal(mean, total**-0.5, draws)}
    ...
    ...     def log_p(self, theta):
    ...         return stats.norm.logpdf(self.values, theta["mean"][:, None])
    ...
    ...     def predict(self, theta, rng):
    ...         return rng.normal(theta["mean"], size=self.records)
    >>> fit = ppm.fit(Mean([0.3, -1.2, 4.0]), ppm.ByRisk(), random_seed=1)
    >>> fit.weights.round(2)
    array([1.  , 0.15, 0.  ])
    """

    records: int
    chains = None
    warmup = 0
    sample_stats = ()
    dims = {}
    coords = {}
    values = None
    known = None

    @abstractmethod
    def draw(self, terms, draws, rng):
        """Draw θ from prior × exp Σ αᵢ log p(xᵢ | θ), with the ``terms.weights`` α.

        A dict of arrays (draws, …) by name, and the ``sample_stats``. A model with ``chains``
        returns so many draws of each, chain after chain, and takes two more settings: ``warmup``,
        sweeps to discard, and ``start``, a dict of θ (chains, …) to begin at. Others may follow:
        :func:`ppm.fit` passes settings of a sampler on.
        """

    @abstractmethod
    def log_p(self, theta):
        """Log-likelihood (draws, records), not weighted, of θ with arrays (draws, …)."""

    @abstractmethod
    def predict(self, theta, rng):
        """A synthetic database (records, …) for one θ; for several responses a dict of these."""

    def check_own_terms(self):
        """Refuse a model in which a record is seen to reach more than its own term."""
