"""The baseline: synthetic values from a differentially private histogram."""

from typing import NamedTuple

import numpy as np

from ppm.checks import (
    as_list,
    check_count,
    check_flag,
    check_number,
    pattern_codes,
    shown,
)
from ppm.disclosure import Guarantee, histogram_guarantee, histogram_statement
from ppm.seeds import generator, streams

__all__ = ["histogram_release"]

# below, the noise would not fit into 64-bit integers; above, a count has some once in 5e12 times
_LEAST_EPSILON, _MOST_EPSILON = 1e-9, 30.0


class HistogramRelease(NamedTuple):
    """A noisy histogram, and databases drawn from it."""

    synthetic: np.ndarray
    noisy_counts: np.ndarray
    edges: np.ndarray
    guarantee: Guarantee

    def statement(self, release=None):
        """Sentences of :func:`ppm.disclosure.release_statement`."""
        return histogram_statement(self)


def histogram_release(
    values,
    limits,
    *,
    bins,
    epsilon,
    groups=None,
    releases=1,
    secure_noise=False,
    random_seed=None,
):
    r"""Draw synthetic values from a histogram whose counts carry discrete Laplace noise.

    The simplest alternative to compare a mechanism with, at the same ε.

    Parameters
    ----------
    values : array_like, shape (records,)
        Confidential values, such as logarithms of incomes. Values outside the limits count in the
        first or the last bin.
    limits : (float, float)
        Ends of the histogram, increasing; public.
    bins : int
        Number of bins of equal width, 1 or more; public.
    epsilon : float
        ε of everything that is returned, together, from 1e-9 to 30 nats. Above, noise other than 0
        would be too rare to be seen.
    groups : array_like, shape (records,) or (records, columns), or DataFrame, optional
        Public predictors, none missing. Records that agree in all columns share a histogram; ε does
        not change. Without groups there is one histogram, and values do not depend on the
        predictors.
    releases : int, default 1
        Number m of synthetic databases, all drawn from the same noisy counts.
    secure_noise : bool, default False
        Whether OpenDP counts and draws the noise: for an actual release, yes. See the notes.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness. With ``secure_noise`` it fixes only the draws from the noisy counts.

    Returns
    -------
    HistogramRelease
        ``synthetic``, shape (releases, records), each value from its record's own group;
        ``noisy_counts``, shape (groups, bins), groups in the order in which they first occur, which
        may be negative and may be published as well; ``edges`` of the bins; and ``guarantee``, ε
        for all of this together, with what it does not cover.

    Notes
    -----
    Not in Savitsky, Williams and Hu (2022). A neighbour is what it is throughout the library: one
    record's confidential value is left out, while the number of records and the predictors are
    public. This lowers one count by 1. Independent noise Z with :math:`P(Z = z) \propto
    e^{-\epsilon |z|}` on every count therefore makes all counts of all groups together
    ε-differentially private, for every database (Ghosh, Roughgarden and Sundararajan, 2012).
    Replacing a value moves two counts, and costs 2ε.

    All that follows the noise is post-processing, so m databases cost as much as one: the counts of
    a group are replaced by the nearest ones in least squares that are not negative and add up to
    the group's public number of records. Every record draws a bin in these proportions, and a value
    within it uniformly.

    The standard deviation of the noise is about :math:`\sqrt{2} / \epsilon`, whatever the count.
    In a group with fewer records than bins, or than a few times :math:`1 / \epsilon`, released
    values are mostly noise, which all releases share. Fewer bins or larger groups help, but few
    bins misplace percentiles at any ε; choose them without looking at the values.

    Counts and noise are whole numbers, because Laplace noise in floating-point numbers can reveal
    the value in its last digits (Mironov, 2012). By default NumPy draws the noise from
    ``random_seed``, so that a study can be repeated; anyone who knows the seed can subtract it, and
    NumPy's generator is not made for secrets. With ``secure_noise`` OpenDP draws it by an exact
    algorithm from the operating system's randomness, as it can choose the candidates of
    :class:`ppm.CandidateSynthesizer`. The OpenDP functions used belong to its feature ``contrib``:
    not all of their proofs have been reviewed.

    Examples
    --------
    >>> import numpy as np, ppm
    >>> values = np.r_[np.full(500, 2.5), np.full(500, 7.5)]
    >>> found = ppm.histogram_release(
    ...     values, [0, 10], bins=10, epsilon=1.0, groups=values > 5, releases=3, random_seed=1
    ... )
    >>> found.synthetic.shape, found.synthetic[:, :500].mean().round(1)
    ((3, 1000), np.float64(2.5))
    >>> found.guarantee.kind, found.guarantee.epsilon
    ('strict', 1.0)
    """
    values, ends = as_list("values", values), as_list("limits", limits)
    if ends.size != 2 or not ends[0] < ends[1]:
        raise ValueError(
            "limits must be two finite numbers, the first below the second; got "
            f"{shown(limits)}"
        )
    bins = check_count("bins", bins)
    epsilon = check_number(
        "epsilon", epsilon, at_least=_LEAST_EPSILON, at_most=_MOST_EPSILON
    )
    releases = check_count("releases", releases)
    secure = check_flag("secure_noise", secure_noise)
    group = pattern_codes(groups, values.size, missing=False)
    for_noise, for_drawing = map(generator, streams(random_seed, 2))

    edges = np.linspace(*ends, bins + 1)
    # without the outermost edges: values beyond them belong to the outermost bins
    cells = group * bins + np.searchsorted(edges[1:-1], values, side="right")
    size = (group.max() + 1) * bins
    if secure:
        noisy = secure_counts(cells, size, epsilon)
    else:
        noisy = np.bincount(cells, minlength=size) + seeded_noise(
            size, epsilon, for_noise
        )
    noisy = noisy.reshape(-1, bins)

    synthetic = np.empty((releases, values.size))
    for row, counts in enumerate(noisy):
        members = np.flatnonzero(group == row)
        shares = nearest_counts(counts, members.size) / members.size
        places = for_drawing.choice(
            bins, (releases, members.size), p=shares / shares.sum()
        )
        synthetic[:, members] = for_drawing.uniform(edges[places], edges[places + 1])
    return HistogramRelease(
        synthetic, noisy, edges, histogram_guarantee(epsilon, secure=secure)
    )


def seeded_noise(size, epsilon, rng):
    """Discrete Laplace noise: the difference of two geometric variables."""
    return np.subtract(*rng.geometric(-np.expm1(-epsilon), (2, size)))


def secure_counts(cells, size, epsilon):
    """Count the records of each cell, and add noise of the same distribution, by OpenDP."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    records = dp.vector_domain(dp.atom_domain(T="i64")), dp.symmetric_distance()
    counts = records >> dp.t.then_count_by_categories(
        list(range(size)), null_category=False, MO="L1Distance<i64>", TOA="i64"
    )
    # the smallest scale at which OpenDP, which rounds ε upwards, still grants this ε
    release = dp.binary_search_chain(
        lambda scale: counts >> dp.m.then_laplace(scale), d_in=1, d_out=epsilon
    )
    return np.array(release(cells.tolist()), dtype=np.int64)


def nearest_counts(counts, total):
    """Counts of at least 0 with sum ``total`` nearest to the noisy ones in least squares."""
    falling = np.sort(counts)[::-1]
    # amount to subtract from each of the largest 1, 2, … so that these alone have the sum
    excess = (np.cumsum(falling) - total) / np.arange(1, counts.size + 1)
    return np.maximum(counts - excess[np.flatnonzero(falling > excess)[-1]], 0.0)
