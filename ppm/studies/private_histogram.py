"""The baseline: synthetic values from a differentially private histogram."""

from dataclasses import dataclass

import numpy as np

from ppm._random import generator, streams
from ppm._validation import (
    as_numbers,
    check_count,
    check_flag,
    check_number,
    needed_for,
    shown,
)
from ppm.disclosure import Guarantee, histogram_guarantee
from ppm.risk import pattern_codes

# noise of a smaller ε would not fit into whole numbers of 64 bits, and that of a larger one is 0
# to double precision
_LEAST_EPSILON, _MOST_EPSILON = 1e-9, 30.0


@dataclass(frozen=True, eq=False)
class HistogramRelease:
    """A noisy histogram, and databases drawn from it.

    Attributes
    ----------
    synthetic : numpy.ndarray, shape (releases, records)
        Synthetic values, in the unit of the values given.
    noisy_counts : numpy.ndarray of int, shape (groups, bins)
        Counts with their noise, negative ones among them. One row a group, in the order in which
        the groups first occur. They may be published as well: ε covers them.
    edges : numpy.ndarray, shape (bins + 1,)
        Ends of the bins.
    guarantee : ppm.disclosure.Guarantee
        ε, for the noisy counts and all releases together, and what is outside it.

    Examples
    --------
    >>> import ppm
    >>> found = ppm.studies.histogram_release(
    ...     [1.2, 1.4, 3.9], [0, 4], bins=4, epsilon=9.0, random_seed=1
    ... )
    >>> found.noisy_counts.tolist(), found.edges.tolist()
    ([[0, 2, 0, 1]], [0.0, 1.0, 2.0, 3.0, 4.0])
    """

    synthetic: np.ndarray
    noisy_counts: np.ndarray
    edges: np.ndarray
    guarantee: Guarantee


def histogram_release(
    values, limits, *, bins, epsilon, groups=None, releases=1, secure_noise=False, random_seed=None
):
    r"""Draw synthetic values from a histogram whose counts carry discrete Laplace noise.

    What one would try first, and so what a mechanism has to be compared with at the same ε.

    Parameters
    ----------
    values : array_like, shape (records,)
        Confidential values, such as logarithms of incomes. One outside the limits counts in the
        first or the last bin.
    limits : (float, float)
        Ends of the histogram, increasing. They must be public.
    bins : int
        Number of bins of equal width, 1 or more; public.
    epsilon : float
        ε, from 1e-9 to 30, in nats: of all that is returned, together. Above, the noise is 0.
    groups : array_like, shape (records,) or (records, columns), or DataFrame, optional
        Public predictors. Records that agree in all columns have a histogram of their own, of the
        same ε; without it all records share one, and values know nothing of the predictors.
    releases : int, default 1
        Number m of synthetic databases. All are drawn from the same noisy counts.
    secure_noise : bool, default False
        Whether OpenDP counts, and draws the noise. See the notes; for an actual release, yes.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness. With ``secure_noise`` of the drawing from the noisy counts only: the
        noise is then another one each time.

    Returns
    -------
    HistogramRelease
        Synthetic values, each record's in its own group, with the noisy counts and what ε promises.

    Raises
    ------
    ppm._validation.MissingExtraError
        With ``secure_noise``, if the package opendp is not installed.
    ValueError
        If an argument has the wrong shape or is out of range.

    Notes
    -----
    Not in Savitsky, Williams and Hu (2022). The neighbour is the same as everywhere in this
    library: one record's confidential value takes no part, while the number of records and the
    predictors are public. It lowers one count by 1 and leaves all others as they are, in whatever
    group the record is. Independent noise Z with :math:`P(Z = z) \propto e^{-\epsilon |z|}` on
    every count therefore makes all counts of all groups together ε-differentially private, for
    every database (Ghosh, Roughgarden and Sundararajan, 2012). Replacing a value moves two counts,
    and costs 2ε.

    **Several releases cost nothing more.** Everything after the noise is post-processing, so that
    m databases cost what one does. Posterior draws of a mechanism have no such advantage: each
    looks at the records anew, and their ε add up.

    After the noise, the counts of a group are replaced by the nearest ones (in squares) that are
    not negative and add up to the group's public number of records. Every record draws a bin with
    these shares, and a value within it uniformly. Cutting negative counts off at 0 instead would
    keep all the noise above 0, and with many nearly empty bins most of the shares would be noise.

    **Few records a count.** The standard deviation of the noise is about
    :math:`\sqrt{2} / \epsilon` whatever a count is. Where a group has about as many bins as
    records, or fewer records than a few times :math:`1 / \epsilon`, its released values are mostly
    noise, from bins anywhere in the interval. All releases share this noise, so that no average
    over them takes it away. Fewer bins or larger groups help; they must be chosen without looking
    at the values. Within a bin values are spread evenly, so that few bins misplace percentiles
    whatever ε is.

    **Floating point.** Laplace noise added in floating-point numbers can give the value away in
    its last digits (Mironov, 2012). Here counts and noise are whole numbers, so there are no such
    digits. Into which bin a value falls is subject to rounding, but depends on this value alone.

    **Which noise.** By default it is the difference of two geometric variables that NumPy draws
    from ``random_seed``, so that a study can be repeated. The probabilities are right to double
    precision, but the generator is not made for secrets, and whoever knows the seed can take the
    noise away. With ``secure_noise`` OpenDP counts, chooses the scale and draws the noise by an
    exact algorithm from the operating system's randomness, for which it takes no seed. Of OpenDP's
    functions, those used here are behind its feature ``contrib``: not all proofs are reviewed.

    Examples
    --------
    >>> import numpy as np, ppm
    >>> values = np.r_[np.full(500, 2.5), np.full(500, 7.5)]
    >>> found = ppm.studies.histogram_release(
    ...     values, [0, 10], bins=10, epsilon=1.0, groups=values > 5, releases=3, random_seed=1
    ... )
    >>> found.synthetic.shape, found.synthetic[:, :500].mean().round(1)
    ((3, 1000), np.float64(2.5))
    >>> found.guarantee.kind, found.guarantee.epsilon
    ('strict', 1.0)
    """
    values = as_numbers("values", values)
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        raise ValueError(
            f"values must be finite numbers, one for every record; got shape {values.shape}"
        )
    low, high = _limits(limits)
    bins = check_count("bins", bins)
    epsilon = check_number("epsilon", epsilon, at_least=_LEAST_EPSILON, at_most=_MOST_EPSILON)
    releases = check_count("releases", releases)
    check_flag("secure_noise", secure_noise)
    group = pattern_codes(groups, values.size)
    for_noise, for_drawing = map(generator, streams(random_seed, 2))

    edges = np.linspace(low, high, bins + 1)
    # the outermost edges take no part: what lies beyond them is in the outermost bins
    cells = group * bins + np.searchsorted(edges[1:-1], values, side="right")
    size = (group.max() + 1) * bins
    if secure_noise:
        noisy = secure_counts(cells, size, epsilon)
    else:
        noisy = np.bincount(cells, minlength=size) + seeded_noise(size, epsilon, for_noise)
    noisy = noisy.reshape(-1, bins)

    synthetic = np.empty((releases, values.size))
    for row, counts in enumerate(noisy):
        members = np.flatnonzero(group == row)
        shares = nearest_counts(counts, members.size) / members.size
        places = for_drawing.choice(bins, (releases, members.size), p=shares / shares.sum())
        synthetic[:, members] = for_drawing.uniform(edges[places], edges[places + 1])
    return HistogramRelease(
        synthetic, noisy, edges, histogram_guarantee(epsilon, secure=bool(secure_noise))
    )


def _limits(limits):
    """The two ends, checked."""
    ends = as_numbers("limits", limits)
    if ends.shape != (2,) or not np.isfinite(ends).all() or not ends[0] < ends[1]:
        raise ValueError(
            "limits must be two finite numbers, the first below the second; "
            f"got {shown(limits)}"
        )
    with np.errstate(over="ignore"):
        if not np.isfinite(ends[1] - ends[0]):
            raise ValueError("limits must lie less than 1.8e308 apart")
    return ends


def seeded_noise(size, epsilon, rng):
    """Discrete Laplace noise: the difference of two geometric variables.

    Parameters
    ----------
    size : int
        How many.
    epsilon : float
        Probabilities fall by :math:`e^{-\\epsilon}` a step.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    numpy.ndarray of int, shape (size,)
    """
    first, second = rng.geometric(-np.expm1(-epsilon), (2, size))
    return first - second


def secure_counts(cells, size, epsilon):
    """Count, and add noise of the same distribution, by OpenDP.

    Parameters
    ----------
    cells : numpy.ndarray of int, shape (records,)
        Each record's cell, from 0 to ``size`` - 1.
    size : int
        Number of cells.
    epsilon : float
        ε that OpenDP grants for one record more or fewer.

    Returns
    -------
    numpy.ndarray of int, shape (size,)
    """
    with needed_for("secure_noise=True"):
        import opendp.prelude as dp
    # a caller who has not asked for unreviewed functions gets them here only
    known = "contrib" in dp.GLOBAL_FEATURES
    dp.enable_features("contrib")
    try:
        records = dp.vector_domain(dp.atom_domain(T="i64")), dp.symmetric_distance()
        counts = records >> dp.t.then_count_by_categories(
            list(range(size)), null_category=False, MO="L1Distance<i64>", TOA="i64"
        )
        # the smallest scale that keeps ε, rounding of ε in OpenDP's favour included
        release = dp.binary_search_chain(
            lambda scale: counts >> dp.m.then_laplace(scale), d_in=1, d_out=epsilon
        )
        return np.array(release(cells.tolist()), dtype=np.int64)
    finally:
        if not known:
            dp.disable_features("contrib")


def nearest_counts(counts, total):
    """Counts of at least 0 with the given sum that lie nearest to the noisy ones.

    Parameters
    ----------
    counts : numpy.ndarray, shape (bins,)
        Noisy counts.
    total : int
        What they must add up to, above 0.

    Returns
    -------
    numpy.ndarray, shape (bins,)
        The noisy ones less a constant, and 0 where that is negative.
    """
    falling = np.sort(counts)[::-1]
    # what each of the largest 1, 2, … must give away for these alone to have the sum
    excess = (np.cumsum(falling) - total) / np.arange(1, counts.size + 1)
    return np.maximum(counts - excess[np.flatnonzero(falling > excess)[-1]], 0.0)
