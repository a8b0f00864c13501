"""What each record adds to the log of the pseudo posterior: its term."""

from dataclasses import dataclass

import numpy as np

from ppm.checks import Brief, as_numbers, as_weights, check_number, check_weights

__all__ = ["Limits", "Terms"]

# nats: so narrow that differences round to nothing, and so far that a width does
_NARROWEST, _FAR = 1e-6, 1e9


@dataclass(frozen=True)
class Limits:
    r"""Two public limits of a record's term, in nats.

    A value z is clipped to :math:`h(z) = \min(\max(z, \text{low}), \text{high})`. Hu, Williams and
    Savitsky (2022, arXiv:2205.05003) call it censoring; it is not in Savitsky, Williams and Hu
    (2022).

    Parameters
    ----------
    low, high : float
        Ends, increasing, at least 1e-6 nats apart and at most 1e9 from 0. They must be public:
        fixed without looking at the confidential records.

    Raises
    ------
    ValueError
        If they are not such numbers.

    Examples
    --------
    >>> import ppm
    >>> limits = ppm.Limits(-3, -1)
    >>> limits([-0.5, -2.0, -80.0]).tolist(), limits.width
    ([-1.0, -2.0, -3.0], 2.0)
    """

    low: float
    high: float

    def __post_init__(self):
        # high must fit above it
        low = check_number("low", self.low, at_least=-_FAR, at_most=_FAR - 1.0)
        high = check_number("high", self.high, above=low, at_most=_FAR)
        # a frozen dataclass takes no ordinary assignment; -0.0 and 0.0 are one limit
        object.__setattr__(self, "low", low + 0.0)
        object.__setattr__(self, "high", high + 0.0)
        least = max(_NARROWEST, max(abs(low), abs(high)) / _FAR)
        if self.width < least:
            raise ValueError(
                f"high must be at least {least:g} above low; got {self.width:.3g}"
            )

    @property
    def width(self):
        """W = high - low in nats: the farthest that a term between them can move."""
        return self.high - self.low

    def __call__(self, values):
        """Values z in nats, clipped; NaN counts as -inf."""
        values = np.where(np.isnan(values), -np.inf, values)
        return np.clip(values, self.low, self.high)


@dataclass(frozen=True, eq=False, repr=False)
class Terms(Brief):
    r"""Terms :math:`\ell_i(\theta) = h(\alpha_i (\log p(x_i \mid \theta) - b_i))` of all records.

    A model draws θ from prior × :math:`\exp \sum_i \ell_i(\theta)`, the pseudo posterior. Without
    limits h changes nothing, and the terms are the weighted log-likelihoods of Savitsky, Williams
    and Hu (2022), section 2. A record of weight 0 has no term. Every term rises with log p, so that
    the lowest and the highest log p of a record give its bound and its oscillation. A rule makes
    terms from a model; terms that you make yourself are local, whatever they hold.

    Parameters
    ----------
    weights : array_like (records,)
        Weights α, 0 or more.
    limits : ppm.Limits, optional
        The public limits of h.
    levels : array_like (records,), optional
        Levels b, in nats, 0 by default: log p at the center of the limits, for example.

    Raises
    ------
    ValueError
        If the arguments are not of these kinds and shapes.

    Examples
    --------
    Two draws of θ and three records, the last of weight 0:

    >>> import ppm
    >>> terms = ppm.Terms([1.0, 0.5, 0.0], limits=ppm.Limits(-3, -1))
    >>> terms([[-0.5, -4.0, -9.0], [-8.0, -4.0, -9.0]]).tolist()
    [[-1.0, -2.0, 0.0], [-3.0, -2.0, 0.0]]
    >>> terms.width
    2.0
    """

    weights: np.ndarray
    limits: Limits | None = None
    levels: np.ndarray | None = None

    _public = ("records", "limits")

    def __post_init__(self):
        weights = as_weights("weights", self.weights)
        weights = check_weights(weights, weights.size)
        levels = np.zeros(weights.size) if self.levels is None else self.levels
        levels = as_numbers("levels", levels)
        if levels.shape != weights.shape or not np.isfinite(levels).all():
            raise ValueError(
                "levels must hold a finite number for each of the "
                f"{weights.size} records; got shape {levels.shape}"
            )
        # a subclass may cut elsewhere, and ε is the width
        if self.limits is not None and type(self.limits) is not Limits:
            raise ValueError(
                f"limits must be a ppm.Limits; got {type(self.limits).__name__}"
            )
        for name, values in (("weights", weights), ("levels", levels)):
            # a copy that nobody can change: ε is read from it again and again
            values = values.copy()
            values.setflags(write=False)
            object.__setattr__(self, name, values)

    def __setstate__(self, state):
        # a pickle is checked as well: another version may have made it
        self.__init__(**state)

    @property
    def records(self):
        """Number of records."""
        return self.weights.size

    @property
    def width(self):
        """Farthest W, in nats, that any possible term can move; ∞ without limits."""
        return np.inf if self.limits is None else self.limits.width

    def __call__(self, log_p):
        """Terms of log p (…, records), in nats. Between limits NaN counts as -inf."""
        values = weighted(log_p, self.weights, self.levels)
        if self.limits is None:
            return values
        return np.where(self.weights > 0, self.limits(values), 0.0)

    def bounds(self, lowest, highest):
        """Largest absolute term of each record whose log p has these extremes."""
        return np.maximum(np.abs(self(lowest)), np.abs(self(highest)))

    def oscillations(self, lowest, highest):
        """Largest term less the smallest of each record whose log p has these extremes."""
        with np.errstate(over="ignore", invalid="ignore"):
            ranges = self(highest) - self(lowest)
        return np.where(np.isnan(ranges), np.inf, ranges)  # ∞ - ∞

    def of(self, rows):
        """The terms of some records alone, by their rows."""
        return Terms(self.weights[rows], self.limits, self.levels[rows])


def weighted(values, weights, levels=0.0):
    """Values less levels times weights; a weight of 0 gives 0 even where the value is infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.any(levels):
            values = np.subtract(values, levels)
        products = np.asarray(np.multiply(values, weights, order="C"))
    np.copyto(products, 0.0, where=np.equal(weights, 0))
    return products
