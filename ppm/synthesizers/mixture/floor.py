"""A point mass at the smallest response, such as incomes of 0, beside the finite mixture.

A record with predictors x is at the floor with probability expit(x'γ), and has a response from the
mixture otherwise. Its likelihood is a product of a factor with γ and one with the mixture's
parameters, and so is the prior: given the weights, the two parts have independent posteriors. This
module has the part with γ, a logistic regression in which record i counts α_i times.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from ppm._validation import check_number
from ppm.synthesizers.mixture.numerics import slice_draw


@dataclass(frozen=True)
class Floor:
    """Which records are at the floor, and the prior of the regression that says so.

    Attributes
    ----------
    value : float
        The floor, on the scale of the response.
    reached : numpy.ndarray of bool, shape (records,)
        Whether a record is at the floor.
    scale : float
        Standard deviation of the normal prior of each coefficient.
    """

    value: float
    reached: np.ndarray
    scale: float

    @property
    def signs(self):
        """1 for a record at the floor, -1 for one above it."""
        return np.where(self.reached, 1.0, -1.0)

    def log_likelihood(self, predictors, coefficients):
        """Log-probability of every record to be on the side where it is, in nats."""
        # log(1 - expit(x)) is log_expit(-x)
        return log_expit(self.signs * (predictors @ coefficients))


def check_floor(value, scale, response):
    """Return the checked :class:`Floor` of a response.

    Raises
    ------
    ValueError
        If a setting is out of range, a response lies below the floor, or none lies above it.
    """
    value = check_number("floor", value)
    scale = check_number("floor_coefficient_scale", scale, at_least=1e-6, at_most=100)
    # a logarithm of one number and of an array of it may differ in the last digit
    slack = 1e-9 * max(1.0, abs(value))
    below = np.count_nonzero(response < value - slack)
    if below:
        raise ValueError(
            f"floor must be the smallest value of response; {below} of {response.size} records lie "
            "below it"
        )
    reached = response <= value + slack
    if reached.all():
        raise ValueError(
            f"floor must leave records above it; all {response.size} values of response are at it"
        )
    return Floor(value, reached, scale)


class FloorRegression:
    r"""Draws of γ from prior × :math:`\prod_i p_i^{\alpha_i u_i} (1 - p_i)^{\alpha_i (1 - u_i)}`.

    Here :math:`u_i` says whether record i is at the floor and :math:`p_i` is expit(x'γ).

    Slice sampling of one coordinate after the other, in coordinates in which the normal
    approximation at the posterior's mode is standard normal. The approximation only decides how
    far one draw lies from the next; the density that is sampled is the pseudo posterior's own.

    Parameters
    ----------
    floor : Floor
        Which records are at the floor, and the prior.
    predictors : numpy.ndarray, shape (records, predictors)
        X.
    weights : numpy.ndarray, shape (records,)
        Weights α in [0, 1].
    rng : numpy.random.Generator
        Source of randomness.
    """

    def __init__(self, floor, predictors, weights, rng):
        used = weights > 0
        self.alpha, self.precision, self.rng = weights[used], floor.scale**-2.0, rng
        # with this sign, log_expit(x'γ) is the log-likelihood on both sides
        signed = predictors[used] * floor.signs[used, None]
        self.mode = minimize(
            self._negative, np.zeros(signed.shape[1]), args=(signed,), jac=self._gradient,
            hess=self._curvature, method="trust-exact",
        ).x
        # γ = mode + e'D, in which e is about standard normal
        self.root = np.linalg.cholesky(self._curvature(self.mode, signed))
        self.directions = solve_triangular(self.root, np.eye(self.mode.size), lower=True)
        self.middle, self.steps = signed @ self.mode, self.directions @ signed.T
        # from further out than the posterior reaches, so that chains start apart
        self.state = 2.0 * rng.standard_normal(self.mode.size)

    @property
    def coefficients(self):
        """Present draw of γ, shape (predictors,)."""
        return self.mode + self.state @ self.directions

    def move_to(self, coefficients):
        """Go on from these coefficients."""
        self.state = (coefficients - self.mode) @ self.root

    def sweep(self):
        """Update every coordinate."""
        # computed anew, so that rounding does not add up
        coefficients, fitted = self.coefficients, self.middle + self.state @ self.steps
        for place in self.rng.permutation(self.state.size):
            x, direction, step = self.state[place], self.directions[place], self.steps[place]

            def log_density(at, x=x, here=coefficients, fitted=fitted, by=direction, step=step):
                moved = here + (at - x) * by
                log_likelihood = self.alpha @ log_expit(fitted + (at - x) * step)
                return log_likelihood - 0.5 * self.precision * (moved @ moved)

            self.state[place] = slice_draw(x, log_density, self.rng, width=3.0)
            coefficients = coefficients + (self.state[place] - x) * direction
            fitted = fitted + (self.state[place] - x) * step

    def _negative(self, coefficients, signed):
        log_likelihood = self.alpha @ log_expit(signed @ coefficients)
        return 0.5 * self.precision * coefficients @ coefficients - log_likelihood

    def _gradient(self, coefficients, signed):
        missed = expit(-(signed @ coefficients))
        return self.precision * coefficients - (self.alpha * missed) @ signed

    def _curvature(self, coefficients, signed):
        fitted = expit(signed @ coefficients)
        curvature = (signed.T * (self.alpha * fitted * (1.0 - fitted))) @ signed
        curvature.flat[:: curvature.shape[0] + 1] += self.precision
        return curvature


# draws of γ are nearly independent after a few sweeps, whatever the mixture needs
_WARMUP = 100


@dataclass(frozen=True)
class FloorJob:
    """What a chain needs to draw γ, in a form that can be sent to another process."""

    floor: Floor
    predictors: np.ndarray
    weights: np.ndarray
    seed: np.random.SeedSequence
    start: np.ndarray | None

    def extend(self, chain, warmup):
        """Add γ to the kept draws of a chain of the mixture, and the floor to its log-likelihoods.

        Parameters
        ----------
        chain : dict of str to numpy.ndarray
            Kept draws; ``response`` (draws, records above the floor), where there is one, is
            replaced by the log-likelihood of all records.
        warmup : int
            Sweeps to throw away, 100 at the most.
        """
        above, draws = chain.get("response"), len(chain["pi"])
        sampler = FloorRegression(
            self.floor, self.predictors, self.weights, np.random.default_rng(self.seed)
        )
        if self.start is not None:
            sampler.move_to(self.start)
        for _ in range(min(warmup, _WARMUP)):
            sampler.sweep()
        chain["floor_coefficients"] = np.empty((draws, self.predictors.shape[1]))
        if above is not None:
            chain["response"] = np.empty((draws, self.weights.size))
        for s in range(draws):
            sampler.sweep()
            chain["floor_coefficients"][s] = sampler.coefficients
            log_lik = self.floor.log_likelihood(self.predictors, sampler.coefficients)
            if above is None:
                chain["weighted_log_likelihood"][s] += log_lik @ self.weights
            else:
                log_lik[~self.floor.reached] += above[s]
                chain["response"][s] = log_lik
        if above is not None:
            chain["weighted_log_likelihood"] = chain["response"] @ self.weights
