"""The pseudo posterior of a Poisson mean whose records' terms are censored, in one dimension."""

import numpy as np
from scipy.special import gammaln, logsumexp, xlogy

from ppm._validation import generator

# nats below the highest point at which a panel is left out; `outside` bounds the sum of these
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


class CensoredGamma:
    r"""Gamma prior of μ times :math:`\exp \sum_i h(\alpha_i \log p(y_i \mid \mu))`.

    Parameters
    ----------
    counts, weights : numpy.ndarray, shape (records,)
        Counts y and weights α, already checked.
    censor : ppm.Censoring
        The limits, and h.
    shape, rate : float
        Gamma prior of μ.

    Attributes
    ----------
    outside : float
        Bound on the share of the distribution that draws and integrals leave out.
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

    def __init__(self, counts, weights, censor, shape, rate):
        pairs, position, self.numbers = np.unique(
            np.stack([np.asarray(counts, dtype=np.float64), weights]), axis=1,
            return_inverse=True, return_counts=True,
        )
        self.position = position.ravel()
        self.counts, self.weights = pairs
        self.censor, self.shape, self.rate = censor, shape, rate
        self._factorials = gammaln(self.counts + 1.0)
        # limits of the terms: μ to 0, μ to infinity, and μ where the count is likeliest
        nothing, low = censor.term(0.0), censor.term(-np.inf)
        self.term_at_zero = np.where(self.weights * self.counts > 0, low, nothing)
        self.term_at_infinity = np.where(self.weights > 0, low, nothing)
        likeliest = xlogy(self.counts, self.counts) - self.counts - self._factorials
        self.largest_term = censor.term(self.weights * likeliest)
        with np.errstate(divide="ignore"):
            self._peaks = np.log(self.counts)
        self.breaks = np.append(self._peaks, np.log(shape) - np.log(rate))
        self.breaks = np.clip(self.breaks, -_LARGEST, _LARGEST)
        self._lay_out()

    def terms(self, log_mean):
        """Terms of the distinct records at values of u, (values,) or (distinct, values)."""
        return self.censor.term(self._weighted(log_mean))

    def _weighted(self, log_mean):
        log_p = self.counts[:, None] * log_mean - np.exp(log_mean) - self._factorials[:, None]
        return self.weights[:, None] * log_p

    def _in_parts(self, function, values):
        """Apply a function along the last axis, in parts small enough for its tables."""
        parts = 1 + values.shape[-1] * self.counts.size // _LARGEST_TABLE
        found = [function(part) for part in np.array_split(values, parts, axis=-1)]
        return np.concatenate(found, axis=-1)

    def total(self, log_mean):
        """Sum of all records' terms at values of u."""
        return self._in_parts(lambda part: self.numbers @ self.terms(part), log_mean)

    def _prior(self, log_mean):
        return self.shape * log_mean - self.rate * np.exp(log_mean)

    def _unscaled(self, log_mean):
        return self._prior(log_mean) + self.total(log_mean.ravel()).reshape(log_mean.shape)

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

    def _crossings(self, *ends):
        """Where hard terms meet their limits between two values of u, by bisection from peaks."""
        if self.censor.smooth:
            return np.zeros(0)
        found, limits = [], np.array([self.censor.low, self.censor.high])
        peaks = self.breaks[:-1, None] + 0.0 * limits
        met = (self.weights[:, None] > 0) & (self._weighted(peaks) > limits)
        for end in ends:
            near, far = peaks, np.full(peaks.shape, end)
            for _ in range(100):
                middle = (near + far) / 2.0
                below = self._weighted(middle) < limits
                near, far = np.where(below, near, middle), np.where(below, middle, far)
            found.append(far[met])
        return np.concatenate(found)

    def _lay_out(self):
        """Choose the panels, integrate over them, and bound what they leave out."""
        above = self.numbers @ self.largest_term
        # wide enough for the densities without one record too
        reach = _NEGLIGIBLE + (self.largest_term - self.term_at_infinity).max()
        best = self._unscaled(self.breaks).max()
        right = np.log(self.shape + 1.0) - np.log(self.rate)
        while right < _LARGEST and self._prior(right) + above > best - reach:
            right += np.log(2.0)
        right = min(right, _LARGEST)
        # further left there is no noticeable mass, or all terms are at their limits
        empty = (best - reach - above + np.log(self.shape)) / self.shape
        left, step = min(np.log(self.shape) - np.log(self.rate), right) - 1.0, 1.0
        while left > empty and not self._is_settled(left):
            left, step = left - step, 2.0 * step
        # to the right the density falls at least by a factor e per unit of u
        lost = [self._prior(right) + above]
        if left <= empty:
            lost.append(self.shape * left + above - np.log(self.shape))
        self.breaks, self._left = np.r_[self.breaks, self._crossings(left, right)], left
        edges = np.unique(np.clip(np.r_[left, self.breaks, right], left, right))
        self.log_tail = self.shape * left - np.log(self.shape) + self.numbers @ self.term_at_zero
        # no finer panel removes the rounding of the sum of terms
        limits = max(abs(self.censor.low), abs(self.censor.high))
        share = max(_QUADRATURE, 4e-16 * limits * self.numbers.sum())
        panels, kept, integrals = np.stack([edges[:-1], edges[1:]]), [], [self.log_tail]
        while panels.size:
            upper, lower = self._in_parts(self._extremes, panels)
            width, middle = panels[1] - panels[0], panels.mean(axis=0)
            best = max(best, lower.max())
            negligible = upper + np.log(width) < best - reach
            lost += [*(upper + np.log(width))[negligible]]
            # panels that cannot be cut in floating point
            last = (middle <= panels[0]) | (middle >= panels[1])
            done = ~negligible & ((upper - lower <= _STEP) | last)
            tried = [self._log_parts(panels[:, done], *rule) for rule in _RULES]
            fine, coarse = (np.logaddexp.reduce(parts, axis=1) for parts in tried)
            whole = np.logaddexp.reduce(np.r_[integrals, fine])
            accepted = np.abs(np.exp(fine - whole) - np.exp(coarse - whole)) <= share
            accepted |= last[done]
            integrals += [*fine[accepted]]
            done[done] = accepted
            kept.append(np.vstack([*panels[:, done], upper[done], tried[0][accepted].T]))
            rest = ~negligible & ~done
            cuts = np.linspace(*panels[:, rest], _CUTS + 1)
            panels = np.stack([cuts[:-1].ravel(), cuts[1:].ravel()])
        left, right, self._upper, *log_parts = np.concatenate(kept, axis=1)
        self.edges, nodes = np.stack([left, right]), _RULES[0][0]
        self.nodes = (left[:, None] + (right - left)[:, None] * nodes).ravel()
        self.log_parts = np.transpose(log_parts).ravel()
        self.log_integral = logsumexp(np.r_[self.log_tail, self.log_parts])
        self.outside = float(np.exp(min(np.logaddexp.reduce(lost) - self.log_integral, 0.0)))

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
        """Draw μ independently and exactly, but for rounding and the share `outside`.

        A μ that underflows is returned as 0.
        """
        rng = generator(random_state)
        wanted, found = int(np.prod(size)), np.zeros(0)
        left, right = self.edges
        masses = np.r_[self.log_tail, self._upper + np.log(right - left)]
        masses = np.cumsum(np.exp(masses - masses.max()))
        while found.size < wanted:
            batch = min(2 * (wanted - found.size) + 16, 20_000)
            panel = np.searchsorted(masses, rng.random(batch) * masses[-1], side="right") - 1
            level, accept = rng.random(batch), np.log1p(-rng.random(batch))
            panel, tail = np.minimum(panel, left.size - 1), panel < 0
            points = left[panel] + (right - left)[panel] * level
            points[tail] = self._left + np.log1p(-level[tail]) / self.shape
            kept = tail | (accept <= self._unscaled(points) - self._upper[panel])
            found = np.r_[found, points[kept]]
        return np.exp(found[:wanted]).reshape(size)
