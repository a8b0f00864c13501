"""A normal regression, conjugate: its pseudo posterior is drawn exactly."""

import numpy as np
from scipy import stats

from ppm.checks import as_numbers, check_finite, check_number, check_one_order
from ppm.model import Model

__all__ = ["Normal"]


class Normal(Model):
    r"""Values :math:`y_i \sim \mathrm{Normal}(x_i'\beta, \sigma)`, drawn exactly under weights.

    The prior is conjugate: :math:`\sigma^2 \sim` Inverse-Gamma(shape, scale) and :math:`\beta \mid
    \sigma \sim \mathrm{Normal}(0, \sigma\,\tau)`. With weights α the pseudo posterior is of the
    same form: record i counts :math:`\alpha_i` times. Without predictors it is a normal
    distribution with the mean :math:`\beta`.

    Parameters
    ----------
    values : array_like (records,)
        The confidential values y.
    predictors : array_like (records, predictors), optional
        The predictors X, with a column of ones for an intercept; by default that column alone.
    spread : float, default 100
        The :math:`\tau` of the coefficients, in units of σ, above 0.
    shape, scale : float, default 0.001
        Those of the Inverse-Gamma prior of σ², above 0; the default is nearly flat.

    Raises
    ------
    ValueError
        If these are no finite numbers of such shapes, or no numbers above 0.

    Examples
    --------
    >>> import ppm
    >>> model = ppm.Normal([0.4, -0.2, 1.1, 2.3, 9.0])
    >>> fit = ppm.fit(model, ppm.ByRisk(), draws=500, random_seed=1)
    >>> fit.weights.round(2), fit.theta["beta"].shape, fit.theta["sigma"].shape
    (array([0.93, 0.84, 0.97, 1.  , 0.  ]), (500, 1), (500,))
    """

    dims = {"beta": ["predictor"]}
    _public = ("records", "spread", "shape", "scale")

    def __init__(
        self, values, predictors=None, *, spread=100.0, shape=0.001, scale=0.001
    ):
        check_one_order(values=values, predictors=predictors)
        self.values = _finite("values", values, 1)
        self.records = self.values.size
        if predictors is None:
            predictors = np.ones((self.records, 1))
        self.predictors = _finite("predictors", predictors, 2)
        if len(self.predictors) != self.records:
            raise ValueError(
                f"predictors must have one row for each of the {self.records} records; "
                f"got {len(self.predictors)}"
            )
        self.spread = check_number("spread", spread, above=0)
        self.shape = check_number("shape", shape, above=0)
        self.scale = check_number("scale", scale, above=0)

    def draw(self, terms, draws, rng):
        """Draw β (draws, predictors) and σ (draws,) from the pseudo posterior, exactly."""
        weighted = terms.weights[:, None] * self.predictors
        precision = self.predictors.T @ weighted
        precision += np.eye(len(precision)) / self.spread**2
        projected = weighted.T @ self.values
        mean = np.linalg.solve(precision, projected)
        shape = self.shape + terms.weights.sum() / 2.0
        # the residuals at the mean, and what the prior adds: no difference of large numbers
        residuals = self.values - self.predictors @ mean
        squares = terms.weights @ residuals**2 + mean @ mean / self.spread**2
        variance = (self.scale + squares / 2.0) / rng.gamma(shape, size=draws)
        # L L' = precision, so that a solution of L' b = z has its inverse as covariance
        root = np.linalg.cholesky(precision)
        noise = rng.standard_normal((len(precision), draws))
        directions = np.linalg.solve(root.T, noise).T
        sigma = np.sqrt(variance)
        return {"beta": mean + sigma[:, None] * directions, "sigma": sigma}

    def log_p(self, theta):
        """Log-likelihood (draws, records) of every value at draws of β and σ."""
        beta, sigma = (np.asarray(theta[name], float) for name in ("beta", "sigma"))
        if not (sigma > 0).all():
            raise ValueError("theta must hold sigma above 0")
        return stats.norm.logpdf(self.values, beta @ self.predictors.T, sigma[:, None])

    def predict(self, theta, rng):
        """Synthetic values (records,) for one β and σ."""
        return rng.normal(self.predictors @ theta["beta"], theta["sigma"])


def _finite(name, values, dimensions):
    values = np.array(as_numbers(name, values))
    if values.ndim != dimensions or not values.size:
        shape = "(records,)" if dimensions == 1 else "(records, predictors)"
        raise ValueError(f"{name} must have shape {shape}; got {values.shape}")
    return check_finite(name, values, "finite numbers")
