"""The pseudo posterior of a Poisson mean whose records' terms are censored, in one dimension."""

import numpy as np
from scipy.special import gammaln, logsumexp, xlogy

from ppm._random import generator

# nats below the highest point known at which a part of the density is left out; what is left out
# is added up in `outside`
_NEGLIGIBLE = 60.0
# how far terms may still be from their limits where the left tail is that of the prior
_CONSTANT = 1e-14
# a panel is narrow enough where curvature times squared width and the fall across it are small
_BEND, _FALL = 2.0, 16.0
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(20)
_NODES, _NODE_WEIGHTS = (1.0 + _NODES) / 2.0, _NODE_WEIGHTS / 2.0
# largest |tanh s| / cosh² s
_STEEPEST = 2.0 / np.sqrt(27.0)
# numbers in a table of records and values of u
_LARGEST_TABLE = 4_000_000
# exp(u) is still a number
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
        Bound on the share of the distribution that draws and integrals leave out: their distance
        from the exact distribution in total variation, but for rounding.
    nodes, edges : numpy.ndarray
        Values of u at which the quadrature evaluates the density, and ends of its panels.
    breaks : numpy.ndarray
        Values of u at which a term is largest, or meets a limit of hard censoring.

    Notes
    -----
    Everything is a density of u = log μ, on panels within which its logarithm bends little. On each
    of them a bound on the second derivative gives straight lines above and below the logarithm.
    They tell which panels may be left out, and draws by rejection beneath the upper line are exact:
    no quantile is interpolated. The normaliser is Gauss-Legendre quadrature. Where u is so low that
    all terms are at their limits, to 1e-14 together, the density is that of the prior there,
    :math:`e^{a u}`. A nearly flat prior has much of its mass in this tail.
    """

    def __init__(self, counts, weights, censor, shape, rate):
        pairs, self.position, self.numbers = np.unique(
            np.stack([np.asarray(counts, dtype=np.float64), weights]), axis=1,
            return_inverse=True, return_counts=True,
        )
        self.position = self.position.ravel()
        self.counts, self.weights = pairs
        self.censor, self.shape, self.rate = censor, shape, rate
        self._factorials = gammaln(self.counts + 1.0)
        used = self.weights > 0
        # limits of the terms: μ to 0, μ to infinity, and μ where the count is likeliest
        nothing, low = censor.term(0.0), censor.term(-np.inf)
        self.term_at_zero = np.where(used & (self.counts > 0), low, nothing)
        self.term_at_infinity = np.where(used, low, nothing)
        with np.errstate(divide="ignore"):
            self._peaks = np.log(self.counts)
        self._highest = self.weights * (
            xlogy(self.counts, self.counts) - self.counts - self._factorials
        )
        self.largest_term = censor.term(self._highest)
        self._lay_out()
        self._integrate()

    # ---- the density ---------------------------------------------------------------------------

    def terms(self, log_mean):
        """Terms of the distinct records at values of u = log μ, shape (distinct, values)."""
        return self.censor.term(self._weighted(log_mean))

    def _weighted(self, log_mean):
        counts, factorials, weights = (
            part[:, None] for part in (self.counts, self._factorials, self.weights)
        )
        return weights * (counts * log_mean - np.exp(log_mean) - factorials)

    def total(self, log_mean):
        """Sum of all records' terms at values of u."""
        return np.concatenate([self.numbers @ self.terms(part) for part in self._parts(log_mean)])

    def _unscaled(self, log_mean):
        """Logarithm of prior times exponential of the terms, without constants."""
        return self.shape * log_mean - self.rate * np.exp(log_mean) + self.total(log_mean)

    def _parts(self, values):
        """Values along the last axis, in parts of which no table gets large."""
        parts = -(-values.shape[-1] * self.counts.size // _LARGEST_TABLE)
        return np.array_split(values, max(parts, 1), axis=-1)

    def log_density(self, log_mean):
        """Logarithm of the density of u = log μ, any shape."""
        log_mean = np.asarray(log_mean, dtype=np.float64)
        flat = log_mean.ravel()
        return (self._unscaled(flat) - self.log_integral).reshape(log_mean.shape)[()]

    def logpdf(self, mean):
        """Logarithm of the density of μ > 0, any shape."""
        log_mean = np.log(mean)
        return self.log_density(log_mean) - log_mean

    # ---- panels --------------------------------------------------------------------------------

    def _lay_out(self):
        """Choose the panels, and bound what they leave out."""
        above = self.numbers @ self.largest_term
        points = np.r_[self._peaks[self.counts > 0], np.log(self.shape) - np.log(self.rate)]
        points = np.clip(points, -_LARGEST, _LARGEST)
        best = self._unscaled(points).max()
        goal = best - _NEGLIGIBLE - 10.0
        right = (self.shape + 1.0) / self.rate
        while self.shape * np.log(right) - self.rate * right + above > goal:
            right *= 2.0
        right = min(np.log(right), _LARGEST)
        # either all terms are constant further left, or next to nothing is there
        empty = (goal - above + np.log(self.shape)) / self.shape
        constant = self._constant_below()
        left = min(max(constant, empty), right - 1.0)
        self._left = left
        self.breaks = breaks = np.r_[points, self._crossings()]
        edges = np.unique(np.r_[left, breaks[(breaks > left) & (breaks < right)], right])
        edges = np.unique(np.r_[edges, (edges[1:] + edges[:-1]) / 2.0])
        left, right = edges[:-1], edges[1:]
        # to the right the density falls by a factor e at least for every step of u
        kept, lost = [], [self.shape * edges[-1] - self.rate * np.exp(edges[-1]) + above]
        while left.size:
            ends, bend = (
                np.concatenate(found, axis=-1)
                for found in zip(
                    *(self._bounds(*part) for part in self._parts(np.stack([left, right]))),
                    strict=True,
                )
            )
            best = max(best, ends.max())
            width = right - left
            upper = ends.max(axis=0) + bend / 8.0 + np.log(width)
            negligible = upper < best - _NEGLIGIBLE
            lost.append(logsumexp(upper[negligible]) if negligible.any() else -np.inf)
            fall = np.abs(ends[1] - ends[0])
            narrow = (bend <= min(_BEND, self.censor.width)) & (fall <= _FALL)
            # nothing lies between neighbouring numbers
            middle = (left + right) / 2.0
            narrow |= (middle <= left) | (middle >= right)
            done = narrow & ~negligible
            kept.append(np.stack([left, right, *ends, bend])[:, done])
            rest = ~narrow & ~negligible
            left, right = (
                np.r_[left[rest], middle[rest]], np.r_[middle[rest], right[rest]]
            )
        kept = np.concatenate(kept, axis=1)
        self._panels = kept[:, np.argsort(kept[0])]
        if empty > constant:
            lost.append(self.shape * self._left + above - np.log(self.shape))
        self._lost = logsumexp(lost)

    def _bounds(self, left, right):
        """Log density at both ends of panels, and curvature there at most, by squared width."""
        ends = self._unscaled(np.r_[left, right]).reshape(2, -1)
        first, last = self._weighted(left), self._weighted(right)
        lowest, highest = np.minimum(first, last), np.maximum(first, last)
        turns = (left < self._peaks[:, None]) & (self._peaks[:, None] < right)
        highest = np.where(turns, self._highest[:, None], highest)
        mean = np.exp(right)
        weights, counts = self.weights[:, None], self.counts[:, None]
        if self.censor.smooth:
            half = self.censor.width / 2.0
            middle = self.censor.low + half
            nearest = np.maximum(np.maximum(lowest - middle, middle - highest), 0.0) / half
            # 1 / cosh², and a square, that cannot overflow
            small = np.exp(-2.0 * nearest)
            slope = 4.0 * small / (1.0 + small) ** 2
            steep = weights * np.maximum(np.abs(counts - np.exp(left)), np.abs(counts - mean))
            steep = np.minimum(steep, 1e150)
            bends = slope * weights * mean + np.minimum(slope, _STEEPEST) * steep**2 * 2.0 / half
        else:
            # no panel has a limit inside
            inside = (highest > self.censor.low) & (lowest < self.censor.high)
            bends = inside * weights * mean
        return ends, (self.rate * mean + self.numbers @ bends) * (right - left) ** 2

    def _crossings(self):
        """Values of u at which a hard term meets its limits."""
        if self.censor.smooth:
            return np.zeros(0)
        used = self.weights > 0
        counts, weights = self.counts[used, None], self.weights[used, None]
        with np.errstate(over="ignore"):
            # a weight of next to nothing meets its limits where no μ is
            level = np.array([self.censor.low, self.censor.high]) / weights
        level = np.clip(level, -1e300, 1e300) + self._factorials[used, None]
        # counts · u - exp(u) = level, to the left and to the right of where the left side turns
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            turn = np.log(counts)
            met = (xlogy(counts, counts) - counts > level) & (counts > 0)
            sides = []
            for far in (level / counts - 1.0, np.full(level.shape, _LARGEST)):
                near, far = np.where(met, turn, 0.0), np.where(met, far, 0.0)
                for _ in range(80):
                    middle = (near + far) / 2.0
                    below = counts * middle - np.exp(middle) < level
                    near, far = np.where(below, near, middle), np.where(below, middle, far)
                sides.append(((near + far) / 2.0)[met])
            # without a count the term falls from its value at 0
            falling = (counts == 0) & (level < 0)
            sides.append(np.log(-level[falling]))
        return np.concatenate(sides)

    def _constant_below(self):
        """A value of u below which terms and prior differ from their limits by next to nothing."""
        used = self.weights > 0
        counts, weights, numbers = self.counts[used], self.weights[used], self.numbers[used]
        share = _CONSTANT / (1.0 + used.sum())
        width = self.censor.width
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            falling = np.log(share / (numbers * weights))
            if self.censor.smooth:
                # the distance from the lower limit is at most W exp(4 (z - c) / W)
                level = self.censor.low + width / 2.0
                level = level + np.minimum(np.log(share / (numbers * width)), 0.0) * width / 4.0
            else:
                level = self.censor.low
            rising = (level / weights + self._factorials[used]) / counts
            points = np.where(counts > 0, rising, falling)
        return min(points.min(initial=np.inf), np.log(share / self.rate))

    # ---- integrals -----------------------------------------------------------------------------

    def _integrate(self):
        left, right = self.edges = self._panels[:2]
        width = right - left
        self.nodes = (left[:, None] + width[:, None] * _NODES).ravel()
        log_parts = np.log(width[:, None] * _NODE_WEIGHTS).ravel()
        self.log_parts = log_parts + self._unscaled(self.nodes)
        self.log_tail = (
            self.shape * self._left - np.log(self.shape) + self.numbers @ self.term_at_zero
        )
        self.log_integral = logsumexp(np.r_[self.log_tail, self.log_parts])
        self.outside = float(np.exp(min(self._lost - self.log_integral, 0.0)))

    def log_integral_without(self):
        """Logarithms of the normalisers without one of each of the distinct records."""
        sums = [self.log_tail - self.term_at_zero] + [
            logsumexp(log_part - self.terms(nodes), axis=1)
            for nodes, log_part in zip(
                self._parts(self.nodes), self._parts(self.log_parts), strict=True
            )
        ]
        return logsumexp(np.stack(sums), axis=0)

    def mean(self):
        """Mean of μ."""
        return float(np.exp(self.log_parts + self.nodes - self.log_integral).sum())

    def var(self):
        """Variance of μ."""
        mean = self.mean()
        # what lies to the left of the panels is as good as 0
        tail = np.exp(self.log_tail - self.log_integral)
        masses = np.exp(self.log_parts - self.log_integral)
        return float(masses @ (np.exp(self.nodes) - mean) ** 2 + tail * mean**2)

    def cdf(self, mean):
        """Probability of values of μ up to these, any shape."""
        log_mean = np.log(np.asarray(mean, dtype=np.float64))
        left, right = self._panels[:2]
        masses = np.exp(self.log_parts - self.log_integral).reshape(left.size, -1).sum(axis=1)
        tail = np.exp(self.log_tail - self.log_integral)
        below = np.r_[0.0, np.cumsum(masses)]
        flat = log_mean.ravel()
        place = np.clip(np.searchsorted(left, flat, side="right") - 1, 0, left.size - 1)
        width = np.clip(flat, left[place], right[place]) - left[place]
        points = left[place][:, None] + width[:, None] * _NODES
        part = (np.exp(self.log_density(points)) * _NODE_WEIGHTS).sum(axis=1) * width
        found = tail + below[place] + part
        in_tail = tail * np.exp(self.shape * np.minimum(flat - self._left, 0.0))
        return np.where(flat < self._left, in_tail, found).reshape(log_mean.shape)[()]

    # ---- draws ---------------------------------------------------------------------------------

    def rvs(self, size=1, random_state=None):
        """Draw μ independently and exactly, but for rounding and what is `outside`.

        A μ below the smallest number comes out as 0.
        """
        rng = generator(random_state)
        wanted = int(np.prod(size))
        left, right, first, last, bend = self._panels
        rise = last - first
        # integrals of the upper lines
        flat = np.abs(rise) < 1e-12
        slopes = np.where(flat, 1.0, rise)
        lines = first + bend / 8.0 + np.log(right - left) + np.log(
            np.where(flat, 1.0, np.expm1(slopes) / slopes)
        )
        masses = np.r_[self.log_tail, lines]
        masses = np.cumsum(np.exp(masses - masses.max()))
        found = np.zeros(0)
        while found.size < wanted:
            batch = min(2 * (wanted - found.size) + 16, 20_000)
            panel = np.searchsorted(masses, rng.random(batch) * masses[-1], side="right") - 1
            level, accept = rng.random(batch), rng.random(batch)
            panel = np.minimum(panel, left.size - 1)
            step = np.where(
                flat[panel], level, np.log1p(level * np.expm1(slopes[panel])) / slopes[panel]
            )
            points = left[panel] + (right - left)[panel] * step
            line = first[panel] + rise[panel] * step + bend[panel] / 8.0
            tail = panel < 0
            points[tail] = self._left + np.log1p(-level[tail]) / self.shape
            kept = tail.copy()
            rest = np.flatnonzero(~tail)
            kept[rest] = np.log1p(-accept[rest]) <= self._unscaled(points[rest]) - line[rest]
            found = np.r_[found, points[kept]]
        return np.exp(found[:wanted]).reshape(size)
