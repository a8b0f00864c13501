"""Whole numbers with noise, and the synthetic values that are made of nothing else."""

from dataclasses import dataclass, field

import numpy as np

from ppm.checks import further
from ppm.release.statement import Guarantee, noisy_statement

__all__ = ["NoisyRelease"]

# below, the noise would not fit into 64-bit integers; above, a count has some once in 5e12 times
LEAST_EPSILON, MOST_EPSILON = 1e-9, 30.0
# scale of noise above which sums of it might not fit, and draws with a seed end at the largest integer
_WIDEST = 2.0**53


@dataclass(frozen=True)
class NoisyRelease:
    """Synthetic values, and the noisy numbers that they were made of.

    Attributes
    ----------
    synthetic : numpy.ndarray or dict of str to numpy.ndarray
        Values of shape (releases, records), of several columns by name. All releases are made of
        the same noisy numbers, so that they cost ε once.
    noisy : dict of str to pandas.DataFrame, array or number
        Counts or sums with noise, and what each of them counts. They may be published as well.
    public : dict
        What was fixed without the confidential values, such as ``edges``.
    guarantee : ppm.release.Guarantee
        ε of all of this together, and what it does not cover.
    sentence : str
        How the values were made, as the statement says it.
    """

    synthetic: object
    noisy: dict
    guarantee: Guarantee
    sentence: str = field(repr=False)
    public: dict = field(repr=False, default_factory=dict)

    def statement(self):
        """Sentences of :func:`ppm.release.release_statement`."""
        return noisy_statement(self)


def noisy_integers(totals, moved, epsilon, *, secure, rng):
    """Add discrete Laplace noise to whole numbers that one record moves by ``moved`` in all.

    Parameters
    ----------
    totals : array_like of int
        Sums or counts of confidential values.
    moved : int
        By how much one record can move all of them together, whatever its value.
    epsilon : float
        ε of all of them together.
    secure : bool
        Whether OpenDP draws the noise.
    rng : numpy.random.Generator
        Source of randomness of noise that is not secure.

    Returns
    -------
    numpy.ndarray of int, of the shape of ``totals``

    Raises
    ------
    ValueError
        If so much noise does not fit into whole numbers.

    Notes
    -----
    Independent noise Z with P(Z = z) in proportion to exp(-ε |z| / moved) makes all of them
    together ε-differentially private (Ghosh, Roughgarden and Sundararajan, 2012).
    """
    totals = np.asarray(totals, dtype=np.int64)
    scale = moved / epsilon
    if not scale <= _WIDEST:
        raise ValueError(
            f"epsilon of a sum must be {moved / _WIDEST:.1g} or more, so that its noise fits into "
            f"whole numbers of 64 bits; got {epsilon:.1g}"
        )
    if not secure:
        return totals + seeded_noise(totals.shape, epsilon / moved, rng)
    dp = further("opendp.prelude", "extra")
    dp.enable_features("contrib")
    vector = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    # the smallest scale at which OpenDP, which rounds ε upwards, still grants this ε
    release = dp.binary_search_chain(
        lambda scale: vector >> dp.m.then_laplace(scale),
        d_in=moved,
        d_out=epsilon,
        bounds=(0.5 * scale, 2.0 * scale),
    )
    noisy = release(totals.ravel().tolist())
    return np.array(noisy, dtype=np.int64).reshape(totals.shape)


def seeded_noise(shape, rate, rng):
    """Discrete Laplace noise: the difference of two geometric variables."""
    return np.subtract(*rng.geometric(-np.expm1(-rate), (2, *np.atleast_1d(shape))))


def noise_variance(moved, epsilon):
    """Variance of what :func:`noisy_integers` adds to each whole number."""
    rate = np.asarray(epsilon) / moved
    return 2.0 * np.exp(-rate) / np.expm1(-rate) ** 2


def nearest_counts(counts, total):
    """Counts of at least 0 with sum ``total`` nearest to the noisy ones in least squares."""
    falling = np.sort(counts)[::-1]
    # amount to subtract from each of the largest 1, 2, … so that these alone have the sum
    excess = (np.cumsum(falling) - total) / np.arange(1, counts.size + 1)
    return np.maximum(counts - excess[np.flatnonzero(falling > excess)[-1]], 0.0)
