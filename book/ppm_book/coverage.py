"""Whose intervals cover: two models with exact posteriors, and the releases of one database.

The model that synthesizes is the one that generated the data, and pseudo posteriors are drawn from
exactly: what goes wrong is due to synthesis, weights and rules alone.
"""

import numpy as np
from scipy import special, stats

import ppm
from ppm._random import streams
from ppm._validation import check_count

MECHANISMS = ("Plug-in", "Unweighted", "DPweighted", "EMweighted", "Constant", "Limits")
# each prior is nearly flat: shape and rate, and the precision of coefficients
FLAT = 0.001


class Counts:
    """Poisson counts of mean 100, with the Gamma-Poisson synthesizer."""

    mechanisms, mean = MECHANISMS, 100
    threshold = int(stats.poisson(mean).ppf(0.9))
    truth = {"mean": mean, f"share above {threshold}": stats.poisson(mean).sf(threshold)}

    def simulate(self, n, rng):
        """Values and public predictor, here none."""
        return rng.poisson(self.mean, n), None

    def draw(self, values, predictor, weights, draws, rng, censor=None):
        """Parameters from the pseudo posterior, each an array (draws,)."""
        if censor is None:
            return (rng.gamma(FLAT + weights @ values, 1 / (FLAT + weights.sum()), draws),)
        model = ppm.GammaPoisson(values, shape=FLAT, rate=FLAT)
        return (model.posterior(weights, censor=censor).rvs(draws, random_state=rng),)

    def estimate(self, values, predictor):
        """Parameters without a draw."""
        return (values.mean(),)

    def log_likelihood(self, values, predictor, parameters):
        """Array (draws, records)."""
        mean = parameters[0][:, None]
        return values * np.log(mean) - mean - special.gammaln(values + 1)

    def release(self, parameters, predictor, shape, rng):
        """Synthetic values, an array (releases, records)."""
        return rng.poisson(np.reshape(parameters[0], (-1, 1)), shape)

    def analyse(self, released, predictor):
        """What an analyst of real data computes: estimates and variances by quantity."""
        n, share = released.shape[1], (released > self.threshold).mean(axis=1)
        variances = released.var(axis=1, ddof=1) / n, share * (1 - share) / (n - 1)
        return (released.mean(axis=1), share), variances


class Regression:
    """Normal regression y = 2 + x + e on a public predictor x, with the conjugate prior."""

    mechanisms = MECHANISMS[:-1]
    truth = {
        "mean": 2.0, "90th percentile": 2.0 + np.sqrt(2) * stats.norm.ppf(0.9), "coefficient": 1.0
    }

    def simulate(self, n, rng):
        """Values and public predictor."""
        predictor, error = rng.standard_normal((2, n))
        return 2 + predictor + error, predictor

    def posterior(self, values, predictor, weights):
        """Centre and precision of the coefficients over σ², shape and rate of 1/σ²."""
        x = np.column_stack([np.ones_like(predictor), predictor])
        precision = FLAT * np.eye(2) + (x.T * weights) @ x
        centre = np.linalg.solve(precision, x.T @ (weights * values))
        squares = weights @ (values - x @ centre) ** 2 + FLAT * centre @ centre
        return centre, precision, FLAT + weights.sum() / 2, FLAT + squares / 2

    def draw(self, values, predictor, weights, draws, rng):
        """Parameters from the pseudo posterior, each an array (draws,)."""
        centre, precision, shape, rate = self.posterior(values, predictor, weights)
        variance = rate / rng.gamma(shape, size=draws)
        root = np.linalg.cholesky(np.linalg.inv(precision))
        normal = rng.standard_normal((draws, 2)) @ root.T
        return *(centre + np.sqrt(variance)[:, None] * normal).T, variance

    def estimate(self, values, predictor):
        """Parameters without a draw."""
        slope, _, residual = least_squares(values, predictor)
        return values.mean() - slope * predictor.mean(), slope, residual

    def log_likelihood(self, values, predictor, parameters):
        """Array (draws, records)."""
        intercept, slope, variance = parameters
        # residuals over σ as a product of matrices: the study spends most of its time here
        rows = np.stack([-intercept, -slope, np.ones_like(slope)], axis=1)
        terms = rows / np.sqrt(variance)[:, None] @ [np.ones_like(values), predictor, values]
        return -0.5 * (terms**2 + np.log(2 * np.pi * variance)[:, None])

    def release(self, parameters, predictor, shape, rng):
        """Synthetic values, an array (releases, records)."""
        intercept, slope, variance = (np.reshape(part, (-1, 1)) for part in parameters)
        return intercept + slope * predictor + np.sqrt(variance) * rng.standard_normal(shape)

    def analyse(self, released, predictor):
        """What an analyst of real data computes: estimates and variances by quantity."""
        slope, of_slope, _ = least_squares(released, predictor)
        quantile, of_quantile = quantile_and_variance(released, 0.9)
        of_mean = released.var(axis=1, ddof=1) / released.shape[1]
        return (released.mean(axis=1), quantile, slope), (of_mean, of_quantile, of_slope)


def least_squares(values, predictor):
    """Slope, its estimated variance and that of the residuals, along the last axis."""
    x, y = predictor - predictor.mean(), values - values.mean(axis=-1, keepdims=True)
    slope = y @ x / (x @ x)
    residual = ((y - slope[..., None] * x) ** 2).sum(axis=-1) / (len(x) - 2)
    return slope, residual / (x @ x), residual


def quantile_and_variance(values, probability):
    """Sample quantile, and its variance from Woodruff's interval, 3.92 standard errors wide."""
    z = stats.norm.ppf(0.975)
    step = z * np.sqrt(probability * (1 - probability) / values.shape[-1])
    # beyond the sample's ends there is no order statistic
    ends = np.clip([probability - step, probability, probability + step], 0, 1)
    low, middle, high = np.quantile(values, ends, axis=-1)
    return middle, ((high - low) / (2 * z)) ** 2


def tasks(model, n, *, replicates, releases, draws, scale, shift, random_seed):
    """One task per database of n records, and the public weight that all of them have.

    Limits of width 1, and a weight with which they cut off 2 per cent of the terms, come from a
    public database of the same size.
    """
    check_count("sizes", n, at_least=50)
    check_count("releases", releases, at_least=2)
    public, *seeds = streams(random_seed, 1 + replicates)
    rng = np.random.default_rng(public)
    values, predictor = model.simulate(n, rng)
    parameters = model.draw(values, predictor, np.ones(n), draws, rng)
    reference = model.log_likelihood(values, predictor, parameters)
    limits, weight = ppm.censoring.censoring_limits(1.0, reference, smooth=False)
    common = model, n, releases, draws, scale, shift, limits, weight
    return [(*common, seed) for seed in seeds], weight


def one_database(task):
    """Simulate a database and release it by each mechanism: what a recipient computes."""
    model, n, releases, draws, scale, shift, limits, weight, seed = task
    data, bounding, *others = np.random.default_rng(seed).spawn(2 + len(MECHANISMS))
    values, predictor = model.simulate(n, data)

    def bounds(weights):
        parameters = model.draw(values, predictor, weights, draws, bounding)
        log_lik = model.log_likelihood(values, predictor, parameters)
        return ppm.record_bounds(log_lik, weights)

    ones = np.ones(n)
    unweighted = bounds(ones)
    by_record = ppm.record_weights(unweighted, scale=scale, shift=shift)
    equal = min(1.0, bounds(by_record).max() / unweighted.max())
    weights = {
        "Unweighted": ones, "DPweighted": by_record, "EMweighted": equal * ones,
        "Constant": weight * ones, "Limits": weight * ones,
    }
    found = []
    for name, rng in zip(model.mechanisms, others, strict=False):
        if name == "Plug-in":
            parameters = model.estimate(values, predictor)
        else:
            censor = {"censor": limits} if name == "Limits" else {}
            parameters = model.draw(values, predictor, weights[name], releases, rng, **censor)
        synthetic = model.release(parameters, predictor, (releases, n), rng)
        found.append(model.analyse(synthetic, predictor))
    # estimates and variances, by release, mechanism and quantity
    return np.array(found).transpose(1, 3, 0, 2)
