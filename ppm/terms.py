"""What each record adds to the log of the pseudo posterior: its term."""

from dataclasses import dataclass, replace

import numpy as np

from ppm.brief import Brief
from ppm.checks import as_numbers, check_flag, check_weights, shown

__all__ = ["Terms"]

# where weights come from: all are 1 by the setting alone, from the bounds of all records, from
# whoever gave them, or from the range of each record's own log p over a public set
SOURCES = ("ones", "all records", "caller", "own range")


@dataclass(frozen=True, eq=False, repr=False)
class Terms(Brief):
    r"""Terms :math:`\ell_i(\theta) = h(\alpha_i (\log p(x_i \mid \theta) - b_i))` of all records.

    A model draws θ from prior × :math:`\exp \sum_i \ell_i(\theta)`, the pseudo posterior. Without
    limits h changes nothing, and the terms are the weighted log-likelihoods of Savitsky, Williams
    and Hu (2022), section 2. A record of weight 0 has no term. Every term rises with log p, so that
    the lowest and the highest log p of a record give its bound and its oscillation.

    Parameters
    ----------
    weights : array_like (records,)
        Weights α, 0 or more.
    limits : ppm.Censoring, optional
        The public limits of h.
    levels : array_like (records,), optional
        Levels b, in nats, 0 by default: log p at the center of the limits, for example.
    own : bool, default False
        Whether every weight and level comes from the record itself and public values alone. That
        cannot be checked, and every ε for all databases needs it.
    source : {"caller", "ones", "all records", "own range"}, default "caller"
        Where the weights come from, for the words beside a release: all are 1 by the setting alone,
        for example, or they keep each record's own range over a public set.

    Raises
    ------
    ValueError
        If the arguments are not of these kinds and shapes.

    Notes
    -----
    The rules of ``ppm.rules`` make terms: the paper's weights, one weight for all records,
    limits, or a cap.

    Examples
    --------
    Two draws of θ and three records, the last of weight 0:

    >>> import ppm
    >>> terms = ppm.Terms([1.0, 0.5, 0.0], limits=ppm.Censoring(-3, -1, smooth=False))
    >>> terms([[-0.5, -4.0, -9.0], [-8.0, -4.0, -9.0]]).tolist()
    [[-1.0, -2.0, 0.0], [-3.0, -2.0, 0.0]]
    >>> terms.width
    2.0
    """

    weights: np.ndarray
    limits: object = None
    levels: np.ndarray | None = None
    own: bool = False
    source: str = "caller"

    _public = ("records", "limits", "own", "source")

    def __post_init__(self):
        weights = as_numbers("weights", self.weights)
        self._keep("weights", check_weights(weights, weights.size))
        if self.levels is not None:
            levels = as_numbers("levels", self.levels)
            if levels.shape != weights.shape or not np.isfinite(levels).all():
                raise ValueError(
                    "levels must hold a finite number for each of the "
                    f"{weights.size} records; got shape {levels.shape}"
                )
            self._keep("levels", levels)
        if not hasattr(self.limits, "width") and self.limits is not None:
            raise ValueError(
                f"limits must be a ppm.Censoring; got {type(self.limits).__name__}"
            )
        if self.levels is None and getattr(self.limits, "center", None) is not None:
            raise ValueError(
                "limits with a center need levels: ppm.rules.limited(model, limits) finds them"
            )
        check_flag("own", self.own)
        if self.source not in SOURCES:
            raise ValueError(
                f"source must be one of {SOURCES}; got {shown(self.source)}"
            )
        contradicted = {
            "ones": bool((self.weights != 1).any()),
            "all records": self.own,
            "own range": not (self.own and self.limits and self.levels is not None),
        }
        if contradicted.get(self.source):
            raise ValueError(
                f"source must not be {self.source!r} beside these weights and own={self.own}"
            )

    def _keep(self, name, values):
        """Hold a copy that nobody can change: ε is read from it again and again."""
        values = np.array(values)
        values.setflags(write=False)
        # a frozen dataclass takes no ordinary assignment
        object.__setattr__(self, name, values)

    @property
    def records(self):
        """Number of records."""
        return self.weights.size

    @property
    def width(self):
        """Farthest W, in nats, that any possible term can move; ∞ without limits."""
        return np.inf if self.limits is None else self.limits.width

    @property
    def strict(self):
        """Whether W is an ε of one exact draw for every database, by these terms alone."""
        return self.own and self.limits is not None

    @property
    def capped(self):
        """Whether the limits never cut, because weights keep every record's range within W."""
        return self.source == "own range"

    def __call__(self, log_lik, records=slice(None)):
        """Terms of log-likelihoods (…, records), in nats, of all ``records`` or of some rows.

        With limits NaN counts as -inf.
        """
        weights = self.weights[records]
        levels = 0.0 if self.levels is None else self.levels[records]
        products = weighted(log_lik, weights, levels)
        if self.limits is None:
            return products
        terms = self.limits.term(products)
        return np.where(weights > 0, terms, 0.0)

    def above_low(self, log_lik, records=slice(None)):
        """Terms less the lower limit: from 0 to W, and 0 for a record of weight 0."""
        terms = self(log_lik, records) - self.limits.low
        return np.where(self.weights[records] > 0, terms, 0.0)

    def of(self, records):
        """The terms of some records alone, by their rows."""
        levels = None if self.levels is None else self.levels[records]
        return replace(self, weights=self.weights[records], levels=levels)


def as_terms(terms, records):
    """Terms as they are, of so many records, from weights alone, or with weights of 1 for None.

    Raises
    ------
    ValueError
        If there are not so many, or the weights are no weights.
    """
    if isinstance(terms, Terms):
        check_weights(terms.weights, records)
        return terms
    source = "ones" if terms is None else "caller"
    return Terms(check_weights(terms, records), own=terms is None, source=source)


def weighted(values, weights, levels=0.0):
    """Values less levels times weights; a weight of 0 gives 0 even where the value is infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.subtract(values, levels) if np.any(levels) else values
        products = np.asarray(np.multiply(values, weights, order="C"))
    np.copyto(products, 0.0, where=np.equal(weights, 0))
    return products
