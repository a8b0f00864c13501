"""The pseudo posterior of a Poisson mean whose records' terms are censored, in one dimension."""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp, xlogy

from ppm.seeds import generator

# nats below the highest point at which a panel is left out: all of them together weigh nothing
_NEGLIGIBLE = 70.0
# distance of prior and terms from their limits below which the left tail is that of the prior
_SETTLED = 1e-14
# on a panel the log density changes by at most _STEP, and two quadratures differ by at most
# _QUADRATURE of the integral; otherwise it is cut into _CUTS
_STEP, _QUADRATURE, _CUTS = 2.0, 1e-11, 4
_RULES = [
    ((nodes + 1.0) / 2.0, parts / 2.0)
    for nodes, parts in map(np.polynomial.legendre.leggauss, (20, 12))
]
# numbers in a table of records and values of u
_LARGEST_TABLE = 4_000_000
# largest u, at which exp(u) does not overflow
_LARGEST = 700.0


class Panels(NamedTuple):
    """Intervals of u, and bounds of the log density on each."""

    # left and right: (2, panels)
    ends: np.ndarray
    # above the whole panel, and the smaller value at its ends: (panels,)
    upper: np.ndarray
    lower: np.ndarray

    @property
    def width(self):
        return self.ends[1] - self.ends[0]

    @property
    def even(self):
        """Where the density changes little enough for quadrature and rejection."""
        return self.upper - self.lower <= _STEP

    @property
    def narrow(self):
        """Panels that cannot be cut in floating point."""
        middle = self.ends.mean(axis=0)
        return (middle <= self.ends[0]) | (middle >= self.ends[1])

    def keep(self, which):
        """Some of the panels."""
        return Panels(*(part[..., which] for part in self))

    def cut(self, which):
        """Ends of the parts into which some of the panels are cut."""
        cuts = np.linspace(*self.ends[:, which], _CUTS + 1)
        ends = np.stack([cuts[:-1].ravel(), cuts[1:].ravel()])
        # rounding may leave a part no width
        return ends[:, ends[0] < ends[1]]


class CensoredGamma:
    r"""Gamma prior of μ times :math:`\exp \sum_i h(\alpha_i \log p(y_i \mid \mu))`.

    Parameters
    ----------
    counts : numpy.ndarray, shape (records,)
        Counts y, already checked.
    terms : ppm.Terms
        Their terms, with limits.
    shape, rate : float
        Gamma prior of μ.

    Attributes
    ----------
    nodes, edges, breaks : numpy.ndarray
        Values of u = log μ: nodes of the quadrature, ends of its panels, and where a term peaks or
        meets a hard limit.

    Notes
    -----
    Each term rises with u up to log y and falls from there, so its extremes on a panel are known,
    and its curvature is bounded. This gives an upper bound of the density on each panel, beneath
    which rejection sampling is exact. Gauss-Legendre quadrature on the same panels, cut until two
    orders agree, gives the normaliser. To the left of all panels every term is at its limit, and u
    has the prior's density :math:`e^{a u}`: a nearly flat prior has much of its mass there.
    """

    def __init__(self, counts, terms, *, shape, rate):
        counts, censor = np.asarray(counts, dtype=np.float64), terms.limits
        levels = np.zeros(counts.size) if terms.levels is None else terms.levels
        # the distinct records; np.unique does this along an axis in several times the time
        columns = np.stack([counts, terms.weights, levels])
        order = np.lexsort(columns[::-1])
        first = np.diff(columns[:, order], prepend=np.nan).any(axis=0)
        self.position = (np.cumsum(first) - 1)[np.argsort(order)]
        self.numbers = np.bincount(self.position)
        self.counts, self.weights, levels = columns[:, order[first]]
        self.censor, self.shape, self.rate = censor, shape, rate
        self._constants = gammaln(self.counts + 1.0) + levels
        # limits of the terms: μ to 0, μ to infinity, and μ where the count is likeliest
        at_zero = np.where(
            self.weights * self.counts > 0, -np.inf, -self.weights * self._constants
        )
        self.term_at_zero = censor.term(at_zero)
        self.term_at_infinity = censor.term(np.where(self.weights > 0, -np.inf, 0.0))
        likeliest = xlogy(self.counts, self.counts) - self.counts - self._constants
        self.largest_term = censor.term(self.weights * likeliest)
        with np.errstate(divide="ignore"):
            self._peaks = np.log(self.counts)
        self.breaks = np.append(self._peaks, np.log(shape) - np.log(rate))
        self.breaks = np.clip(self.breaks, -_LARGEST, _LARGEST)
        self._integrate()

    def terms(self, log_mean):
        """Terms of the distinct records at values of u, (values,) or (distinct, values)."""
        return self.censor.term(self._weighted(log_mean))

    def _weighted(self, log_mean):
        log_p = (
            self.counts[:, None] * log_mean
            - np.exp(log_mean)
            - self._constants[:, None]
        )
        return self.weights[:, None] * log_p

    def _in_parts(self, function, values):
        """Apply a function along the last axis, in parts small enough for its tables."""
        parts = 1 + values.shape[-1] * self.counts.size // _LARGEST_TABLE
        found = [function(part) for part in np.array_split(values, parts, axis=-1)]
        return np.concatenate(found, axis=-1)

    def total(self, log_mean):
        """Sum of all records' terms at values of u."""
        return self._in_parts(lambda part: self.numbers @ self.terms(part), log_mean)

    def totals_at_ends(self):
        """Limits of that sum for μ to 0 and to infinity."""
        return self.numbers @ np.c_[self.term_at_zero, self.term_at_infinity]

    def _prior(self, log_mean):
        return self.shape * log_mean - self.rate * np.exp(log_mean)

    def _unscaled(self, log_mean):
        return self._prior(log_mean) + self.total(log_mean.ravel()).reshape(
            log_mean.shape
        )

    def logpdf(self, mean):
        """Logarithm of the density of μ > 0, any shape."""
        log_mean = np.log(np.asarray(mean, dtype=np.float64))
        return (self._unscaled(log_mean) - self.log_integral - log_mean)[()]

    def _extremes(self, panels):
        """Upper bound of the log density on each panel, and its smaller value at the ends."""
        counts, weights = self.counts[:, None], self.weights[:, None]
        ends = np.stack([self.terms(end) for end in panels])
        with np.errstate(over="ignore"):
            means = np.exp(panels)
            slopes = weights * np.abs(counts - means[:, None]).max(axis=0)
            # bound on a term's second derivative; no panel has a hard limit inside
            bends = weights * means[1]
            if self.censor.smooth:
                bends = bends + 1.54 / self.censor.width * slopes**2
            bends = bends * (panels[1] - panels[0]) ** 2 / 8.0
        # a term exceeds the chord between its ends by at most the smaller of these
        tops = self.terms(np.clip(self._peaks[:, None], *panels))
        above = self.numbers @ np.minimum(bends, tops - ends.min(axis=0))
        values = self._prior(panels) + self.numbers @ ends
        above += self.rate * means[1] * (panels[1] - panels[0]) ** 2 / 8.0
        return np.stack([values.max(axis=0) + above, values.min(axis=0)])

    def crossings(self, values, *ends):
        """Where α log p meets each of the values between two values of u, by bisection from peaks."""
        # a column for each value and end
        columns, far = np.tile(values, len(ends)), np.repeat(ends, len(values))
        near = np.stack([self.breaks[: self.counts.size]] * columns.size, axis=-1)
        met = (self.weights[:, None] > 0) & (self._weighted(near) > columns)
        for _ in range(64):
            middle = (near + far) / 2.0
            below = self._weighted(middle) < columns
            near, far = np.where(below, near, middle), np.where(below, middle, far)
        return far[met]

    def _integrate(self):
        """Choose the panels, and integrate over them."""
        # wide enough for the densities without one record too
        reach = _NEGLIGIBLE + (self.largest_term - self.term_at_infinity).max()
        highest = self._unscaled(self.breaks).max()
        left, right = self._outer_limits(highest - reach)
        if not self.censor.smooth:
            limits = np.array([self.censor.low, self.censor.high])
            self.breaks = np.r_[self.breaks, self.crossings(limits, left, right)]
        self._left = left
        self.log_tail = (
            self.shape * left - np.log(self.shape) + self.numbers @ self.term_at_zero
        )
        edges = np.unique(np.clip(np.r_[left, self.breaks, right], left, right))
        self._refine(np.stack([edges[:-1], edges[1:]]), highest, reach)
        self.log_integral = logsumexp(np.r_[self.log_tail, self.log_parts])

    def _outer_limits(self, negligible):
        """Ends of all panels; ``negligible`` is the log density below which nothing counts."""
        log_mode, above = (
            np.log(self.shape) - np.log(self.rate),
            self.numbers @ self.largest_term,
        )
        right = np.log(self.shape + 1.0) - np.log(self.rate)
        while right < _LARGEST and self._prior(right) + above > negligible:
            right += np.log(2.0)
        right = min(right, _LARGEST)
        # further left there is no noticeable mass, or all terms are at their limits
        empty = (negligible - above + np.log(self.shape)) / self.shape
        left, step = min(log_mode, right) - 1.0, 1.0
        while left > empty and not self._is_settled(left):
            left, step = left - step, 2.0 * step
        return left, right

    def _refine(self, ends, highest, reach):
        """Cut panels until two quadratures agree on each; keep the accepted ones as attributes.

        Left out are those more than ``reach`` below ``highest``, the largest log density so far.
        """
        # no finer panel removes the rounding of the sum of terms
        limits = max(abs(self.censor.low), abs(self.censor.high))
        tolerance = max(_QUADRATURE, 4e-16 * limits * self.numbers.sum())
        accepted, log_parts, log_integrals = [], [], [self.log_tail]
        while ends.size:
            panels = self._bound(ends)
            highest = max(highest, panels.lower.max())
            negligible = panels.upper + np.log(panels.width) < highest - reach
            panels = panels.keep(~negligible)
            ready = np.flatnonzero(panels.even | panels.narrow)
            fine, coarse = (
                self._log_parts(panels.ends[:, ready], *rule) for rule in _RULES
            )
            one, other = (np.logaddexp.reduce(rule, axis=1) for rule in (fine, coarse))
            total = np.logaddexp.reduce(np.r_[log_integrals, one])
            apart = np.abs(np.exp(one - total) - np.exp(other - total))
            agree = (apart <= tolerance) | panels.narrow[ready]
            accepted.append(panels.keep(ready[agree]))
            log_parts.append(fine[agree])
            log_integrals += [*one[agree]]
            ends = panels.cut(np.delete(np.arange(panels.upper.size), ready[agree]))
        self.log_parts = np.concatenate(log_parts).ravel()
        self.edges, self._upper, _ = (
            np.concatenate(parts, axis=-1) for parts in zip(*accepted, strict=True)
        )
        left, right = self.edges[..., None]
        self.nodes = (left + (right - left) * _RULES[0][0]).ravel()

    def _bound(self, ends):
        """Panels with these ends, and bounds of the log density on each."""
        return Panels(ends, *self._in_parts(self._extremes, ends))

    def _log_parts(self, panels, nodes, parts):
        """Logarithms of what each node of a rule adds to the integral over its panel."""
        left, width = panels[0][:, None], (panels[1] - panels[0])[:, None]
        return np.log(width * parts) + self._unscaled(left + width * nodes)

    def _is_settled(self, log_mean):
        """Whether prior and terms have reached their limits for μ to 0, but for rounding."""
        away = np.abs(self.terms(np.array([log_mean]))[:, 0] - self.term_at_zero)
        return self.numbers @ away + self.rate * np.exp(log_mean) <= _SETTLED

    def log_integral_without(self):
        """Logarithms of the normalisers when one of each distinct record is left out."""

        def of_panels(part):
            return logsumexp(part[1] - self.terms(part[0]), axis=1, keepdims=True)

        panels = self._in_parts(of_panels, np.stack([self.nodes, self.log_parts]))
        return logsumexp(np.c_[self.log_tail - self.term_at_zero, panels], axis=1)

    def mean(self):
        """Mean of μ."""
        return float(np.exp(self.log_parts + self.nodes - self.log_integral).sum())

    def var(self):
        """Variance of μ."""
        mean = self.mean()
        # μ to the left of the panels counts as 0
        tail = np.exp(self.log_tail - self.log_integral)
        masses = np.exp(self.log_parts - self.log_integral)
        return float(masses @ (np.exp(self.nodes) - mean) ** 2 + tail * mean**2)

    def rvs(self, size=1, random_state=None):
        """Draw μ independently and exactly, but for rounding and panels that weigh nothing.

        A μ that underflows is returned as 0.
        """
        rng = generator(random_state)
        wanted, found = int(np.prod(size)), np.zeros(0)
        left, right = self.edges
        masses = np.r_[self.log_tail, self._upper + np.log(right - left)]
        masses = np.cumsum(np.exp(masses - masses.max()))
        while found.size < wanted:
            batch = min(2 * (wanted - found.size) + 16, 20_000)
            panel = (
                np.searchsorted(masses, rng.random(batch) * masses[-1], side="right")
                - 1
            )
            level, accept = rng.random(batch), np.log1p(-rng.random(batch))
            panel, tail = np.minimum(panel, left.size - 1), panel < 0
            points = left[panel] + (right - left)[panel] * level
            points[tail] = self._left + np.log1p(-level[tail]) / self.shape
            kept = tail | (accept <= self._unscaled(points) - self._upper[panel])
            found = np.r_[found, points[kept]]
        return np.exp(found[:wanted]).reshape(size)
