"""Gamma densities of a mean μ which the prior restricts to an interval, normalised there."""

import numpy as np

# nats below its highest point at which a density no longer adds to an integral
_NEGLIGIBLE = 45.0
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(96)
# points of the table that quantiles are read from
_TABLE = 4_001


class RestrictedGamma:
    r"""Densities in proportion to :math:`\mu^{a - 1} e^{-b \mu}` on an interval, 0 outside of it.

    Parameters
    ----------
    shape, rate : array_like
        a and b, above 0, broadcast against each other.
    lowest, highest : float
        Ends of the interval of μ, above 0 and increasing.

    Attributes
    ----------
    log_integral : numpy.ndarray
        Logarithm of the integral of :math:`\mu^{a - 1} e^{-b \mu}` over the interval, as a
        multiple of :math:`\mu^a e^{-b \mu}` at its highest point there.
    mean, spread : numpy.ndarray
        Mean and standard deviation of μ.

    Notes
    -----
    As a density of log μ each of them is log-concave, whatever its shape. Gauss-Legendre
    quadrature from the highest point of the interval outwards therefore works where the
    unrestricted Gamma distribution has so little mass in the interval that it underflows.
    """

    def __init__(self, shape, rate, lowest, highest):
        self.shape, self.rate = np.broadcast_arrays(
            np.asarray(shape, dtype=np.float64), np.asarray(rate, dtype=np.float64)
        )
        self.lowest, self.highest = lowest, highest
        # the highest point; everything else is measured in steps of log μ from it
        self._point = np.clip(self.shape / self.rate, lowest, highest)
        self._ends = [self._reach(np.log(end / self._point)) for end in (lowest, highest)]
        steps, parts = (
            np.concatenate([end[..., None] / 2.0 * part for end in ends], axis=-1)
            for ends, part in (
                (self._ends, 1.0 + _NODES), (np.abs(self._ends), _NODE_WEIGHTS)
            )
        )
        parts *= np.exp(-self._fall(steps, self.shape[..., None], self.rate[..., None]))
        whole = parts.sum(axis=-1)
        self.log_integral = np.log(whole)
        # shares of the highest point: it is close by where a density is narrow
        shares = np.expm1(steps)
        first = (parts * shares).sum(axis=-1) / whole
        second = (parts * (shares - first[..., None]) ** 2).sum(axis=-1) / whole
        self.mean = self._point * (1.0 + first)
        self.spread = self._point * np.sqrt(second)

    def _fall(self, steps, shape=None, rate=None):
        """Nats by which the density of log μ is lower than at its highest point."""
        if shape is None:
            shape, rate = self.shape, self.rate
        point = np.clip(shape / rate, self.lowest, self.highest)
        return rate * point * np.expm1(steps) - shape * steps

    def _reach(self, end):
        """The step to an end of the interval, or a nearer one behind which nothing is left."""
        near, far = np.zeros_like(end), end
        with np.errstate(over="ignore"):
            beyond = self._fall(end) > _NEGLIGIBLE
            for _ in range(30):
                middle = (near + far) / 2.0
                low = self._fall(middle) > _NEGLIGIBLE
                near, far = np.where(low, near, middle), np.where(low, middle, far)
        return np.where(beyond, far, end)

    def quantile(self, levels):
        """Values of μ with these shares of the one distribution below them, to about 1e-6."""
        steps = np.linspace(*self._ends, _TABLE)
        density = np.exp(-self._fall(steps))
        below = np.r_[0.0, np.cumsum(density[1:] + density[:-1])]
        return self._point * np.exp(np.interp(levels, below / below[-1], steps))

    def log_ratio(self, points, shapes, rates):
        """Log ratio of this density to others from which a factor of the likelihood has gone.

        Parameters
        ----------
        points : array_like
            Values of μ inside the interval, broadcast against ``shapes``.
        shapes, rates : array_like
            By how much the others' shape and rate are smaller.

        Returns
        -------
        numpy.ndarray
            Logarithms in nats.
        """
        others = RestrictedGamma(
            self.shape - shapes, self.rate - rates, self.lowest, self.highest
        )
        # all relative to this highest point, so that no large numbers are subtracted
        shift = np.log(others._point / self._point)
        constant = (
            others.log_integral + others.shape * shift
            - others.rate * self._point * np.expm1(shift) - self.log_integral
        )
        return (
            shapes * np.log(points / self._point) - rates * (points - self._point) + constant
        )
