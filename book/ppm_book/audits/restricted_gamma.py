"""Gamma densities of a mean μ restricted to an interval by the prior, normalised there."""

import numpy as np

# nats below its highest point at which a density no longer contributes to an integral
_NEGLIGIBLE = 45.0
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(96)


class RestrictedGamma:
    r"""Densities proportional to :math:`\mu^{a - 1} e^{-b \mu}` on an interval, 0 outside it.

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
    """

    # As a density of log μ each is log-concave. Quadrature from the highest point outwards works
    # even where so little mass of the unrestricted Gamma is in the interval that it underflows.

    def __init__(self, shape, rate, lowest, highest):
        self.shape, self.rate = np.broadcast_arrays(shape, rate)
        self.ends = lowest, highest
        # the highest point, from which steps of log μ are measured
        self._point = np.clip(self.shape / self.rate, lowest, highest)
        halves = [self._reach(np.log(end / self._point)) / 2.0 for end in self.ends]
        steps = np.concatenate(
            [np.multiply.outer(1.0 + _NODES, half) for half in halves]
        )
        parts = np.concatenate(
            [np.multiply.outer(_NODE_WEIGHTS, abs(half)) for half in halves]
        )
        parts *= np.exp(-self._fall(steps))
        whole = parts.sum(axis=0)
        self.log_integral = np.log(whole)
        # relative to the highest point, which is close to the mean of a narrow density
        shares = np.expm1(steps)
        first = (parts * shares).sum(axis=0) / whole
        self.mean = self._point * (1.0 + first)
        self.spread = self._point * np.sqrt(
            (parts * (shares - first) ** 2).sum(axis=0) / whole
        )

    def _fall(self, steps):
        """Nats by which the density of log μ is lower than at its highest point."""
        return self.rate * self._point * np.expm1(steps) - self.shape * steps

    def _reach(self, end):
        """The step to an end of the interval, or a nearer one with negligible mass beyond it."""
        near, far = np.zeros_like(end), end
        with np.errstate(over="ignore"):
            for _ in range(30):
                middle = (near + far) / 2.0
                low = self._fall(middle) > _NEGLIGIBLE
                near, far = np.where(low, near, middle), np.where(low, middle, far)
        return far

    def log_ratio(self, points, shapes, rates):
        """Log ratio, in nats, at values of μ, of this density to others.

        The others' shape and rate are smaller by ``shapes`` and ``rates``.
        """
        others = RestrictedGamma(self.shape - shapes, self.rate - rates, *self.ends)
        # relative to this density's highest point, so that no large numbers are subtracted
        shift = np.log(others._point / self._point)
        constant = others.log_integral - self.log_integral
        constant += others.shape * shift - others.rate * self._point * np.expm1(shift)
        return (
            shapes * np.log(points / self._point)
            - rates * (points - self._point)
            + constant
        )
