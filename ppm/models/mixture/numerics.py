"""Log-scale sums and random draws for the sampler of the finite mixture."""

import numpy as np

LOG_2PI = float(np.log(2.0 * np.pi))


def log_sum_exp(values):
    """Log of the sum of exponentials over axis 0; finite wherever one term is."""
    top = values.max(axis=0)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.log(np.exp(values - top).sum(axis=0)) + top


def log_gamma_draws(shape, rng):
    """Logs of Gamma(shape, 1) draws, which underflow for shapes near 0."""
    return (
        np.log(rng.standard_gamma(shape + 1.0))
        - rng.standard_exponential(shape.shape) / shape
    )


def inverse_gamma(shape, scale, rng):
    """Inverse Gamma draws, one for each scale."""
    return scale / rng.standard_gamma(shape, size=np.shape(scale))


def slice_draw(x, log_density, rng, width=1.0):
    """One slice sampling update of the number x: stepping out, then shrinkage."""
    level = log_density(x) - rng.standard_exponential()
    low = x - width * rng.random()
    high = low + width
    while log_density(low) > level:
        low -= width
    while log_density(high) > level:
        high += width
    while True:
        proposal = rng.uniform(low, high)
        # >=, so that x itself is accepted where rounding leaves nothing above the level
        if log_density(proposal) >= level:
            return proposal
        low, high = (proposal, high) if proposal < x else (low, proposal)
