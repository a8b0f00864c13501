"""Synthetic values from a differentially private histogram in public bins."""

from collections.abc import Mapping

import numpy as np

from ppm.checks import as_ends, as_labels, as_list, check_count, check_flag
from ppm.release.noise import (
    NoisyRelease,
    check_epsilon,
    nearest_counts,
    noisy_integers,
)
from ppm.release.statement import WORDS, noisy_guarantee
from ppm.seeds import generator, streams

__all__ = ["histogram_release", "public_edges"]


def public_edges(published, limits, *, bins, special=(), tail=0, above=1):
    """Edges of bins that hold about equally many published values.

    Parameters
    ----------
    published : array_like, shape (published records,)
        **Published** values.
    limits : (float, float)
        The lowest and the highest value allowed, increasing; public.
    bins : int
        Number of bins between quantiles of the published values.
    special : sequence of float, optional
        Values, such as 0, that get a bin of their own, because many records may have exactly them.
    tail : int, default 0
        How often the last of these bins is halved, so that a change of the highest values is seen.
    above : int, default 1
        Number of bins from the last quantile to the upper limit, each wider than the one before by
        the same factor (of the same width, if a quantile or limit is not above 0).

    Returns
    -------
    numpy.ndarray, shape (edges,)
        Increasing. Fewer than asked for where quantiles agree.

    Examples
    --------
    >>> import ppm
    >>> ppm.release.histogram.public_edges(range(1, 101), (0, 300), bins=4, special=[50], above=2)
    array([  0.,  25.,  50.,  50.,  75., 150., 300.])
    """
    published, ends = as_list("published", published), as_ends("limits", limits)
    check_bins(bins, special, tail, above)
    return edges_at_quantiles(
        published, ends, bins=bins, special=special, tail=tail, above=above
    )


def check_bins(bins, special, tail, above):
    """Refuse settings that make no bins."""
    check_count("bins", bins)
    check_count("tail", tail, at_least=0)
    check_count("above", above)
    if len(special):
        as_list("special", special)


def edges_at_quantiles(published, ends, *, bins, special, tail, above):
    """What :func:`public_edges` returns, of arguments that were checked."""
    shares = [*np.arange(1, bins) / bins, *(1 - 0.5 ** np.arange(1, tail + 1) / bins)]
    inner = np.quantile(published, shares, method="inverted_cdf")
    last = np.clip(inner[-1] if inner.size else ends[0], *ends)
    spaced = np.geomspace if last > 0 else np.linspace
    # without last digits, which would decide on which side a round value lies
    further = [float(f"{edge:.12g}") for edge in spaced(last, ends[1], above + 1)[1:-1]]
    alone = np.asarray(special, dtype=np.float64)
    inner = np.concatenate([inner, further, alone, np.nextafter(alone, np.inf)])
    inner = inner[(inner > ends[0]) & (inner < ends[1])]
    return np.unique(np.concatenate([ends, inner]))


def histogram_release(
    values,
    edges,
    *,
    epsilon,
    groups=None,
    published=None,
    published_groups=None,
    releases=1,
    secure_noise=False,
    random_seed=None,
):
    r"""Draw synthetic values from a histogram whose counts carry discrete Laplace noise.

    Parameters
    ----------
    values : array_like, shape (records,)
        Confidential values, such as incomes. Values outside the edges count in the first or the
        last bin.
    edges : array_like (bins + 1,) or dict
        Edges of the bins, increasing; **public**: for example ``numpy.linspace(0, 20, 41)``, or
        :func:`ppm.release.histogram.public_edges` of a published table. With ``groups`` either the
        same for all, or a dict of edges by label.
    epsilon : float
        ε of everything that is returned, together, from 1e-9 to 30 nats. Above, noise other than 0
        would be too rare to be seen.
    groups : array_like, shape (records,), optional
        **Public** labels of the records, none missing. Each group has a histogram of its own; ε
        does not change. Without groups values do not depend on any predictor.
    published : array_like, shape (published records,), optional
        **Published** values. Within a bin a published one is drawn at random, of the same group if
        it has one there, else of any group. Where the bin has none, and without this argument, the
        value is uniform within the bin.
    published_groups : array_like, shape (published records,), optional
        Their labels; needed with ``published`` and ``groups``.
    releases : int, default 1
        Number m of synthetic databases, all drawn from the same noisy counts.
    secure_noise : bool, default False
        Whether OpenDP draws the noise: for an actual release, yes. See the notes.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness. With ``secure_noise`` it fixes only the draws from the noisy counts.

    Returns
    -------
    ppm.release.NoisyRelease
        ``synthetic``, shape (releases, records), each value from its record's own group;
        ``noisy["counts"]``, which may be negative, group after group; ``public["edges"]``, by
        label; and ``guarantee``, ε for all of this together, with what it does not cover.

    Notes
    -----
    Not in Savitsky, Williams and Hu (2022). A neighbour is what it is throughout the library: one
    record's confidential value is left out, while the number of records and the groups are public.
    This lowers one count by 1. Independent noise Z with :math:`P(Z = z) \propto e^{-\epsilon |z|}`
    on every count therefore makes all counts of all groups together ε-differentially private, for
    every database (Ghosh, Roughgarden and Sundararajan, 2012). Replacing a value moves two counts,
    and costs 2ε.

    All that follows the noise is post-processing, so m databases cost as much as one: the counts of
    a group are replaced by the nearest ones in least squares that are not negative and add up to
    the group's public number of records. Every record draws a bin in these proportions, and a value
    within it.

    The standard deviation of the noise is about :math:`\sqrt{2} / \epsilon`, whatever the count.
    In a group with fewer records than bins, or than a few times :math:`1 / \epsilon`, released
    values are mostly noise, which all releases share. Fewer bins or larger groups help. A change
    inside a bin is not seen: its values are published ones, or uniform.

    Counts and noise are whole numbers, because Laplace noise in floating-point numbers can reveal
    the value in its last digits (Mironov, 2012). By default NumPy draws the noise from
    ``random_seed``, so that a study can be repeated; anyone who knows the seed can subtract it, and
    NumPy's generator is not made for secrets. With ``secure_noise`` OpenDP draws it by an exact
    algorithm from the operating system's randomness, as it can choose the candidates of
    :class:`ppm.Candidates`. The OpenDP functions used belong to its feature ``contrib``:
    not all of their proofs have been reviewed.

    Examples
    --------
    >>> import numpy as np, ppm
    >>> values = np.r_[np.full(500, 2.5), np.full(500, 7.5)]
    >>> found = ppm.release.histogram.histogram_release(
    ...     values, np.arange(11), epsilon=1.0, groups=values > 5, releases=3, random_seed=1
    ... )
    >>> found.synthetic.shape, found.synthetic[:, :500].mean().round(1)
    ((3, 1000), np.float64(2.5))
    >>> found.guarantee.kind, found.guarantee.epsilon
    ('strict', 1.0)
    """
    values = as_list("values", values)
    epsilon = check_epsilon(epsilon)
    releases = check_count("releases", releases)
    secure = check_flag("secure_noise", secure_noise)
    rows, pools = by_group(values.size, groups, published, published_groups)
    edges = _edges_by_label(edges, rows)
    for_noise, for_drawing = map(generator, streams(random_seed, 2))

    counts = [
        np.bincount(
            bin_of(values[members], edges[label]), minlength=edges[label].size - 1
        )
        for label, members in rows.items()
    ]
    noisy = noisy_integers(
        np.concatenate(counts), 1, epsilon, secure=secure, rng=for_noise
    )
    synthetic = np.empty((releases, values.size))
    starts = np.cumsum([of_group.size for of_group in counts])[:-1]
    split = np.split(noisy, starts)
    for (label, members), of_group in zip(rows.items(), split, strict=True):
        shares = nearest_counts(of_group, members.size) / members.size
        places = for_drawing.choice(
            of_group.size, (releases, members.size), p=shares / shares.sum()
        )
        synthetic[:, members] = _within(places, edges[label], pools[label], for_drawing)
    sentence = WORDS["statement"]["counts"].format(
        releases=releases,
        records=values.size,
        bins=noisy.size,
        groups=len(rows),
        inside=WORDS["inside"]["uniform" if published is None else "published"],
    )
    return NoisyRelease(
        synthetic,
        {"counts": noisy},
        noisy_guarantee(epsilon, "counts", secure=secure),
        sentence,
        {"edges": edges},
    )


def by_group(records, groups, published=None, published_groups=None):
    """Rows of each group by label (of all by None), and published values: its own, then all."""
    import pandas as pd

    if groups is None:
        rows = {None: np.arange(records)}
    else:
        labels = as_labels("groups", groups, records)
        rows = pd.Series(labels).groupby(labels, sort=False).indices
    if published is None:
        return rows, dict.fromkeys(rows)
    published = as_list("published", published)
    if groups is None:
        return rows, {None: [np.sort(published)]}
    if published_groups is None:
        raise ValueError("published_groups must be given with published and groups")
    labels = as_labels("published_groups", published_groups, published.size)
    pools = {label: [np.sort(published[labels == label])] for label in rows}
    # a group that nobody published has the values of all
    everyone = np.sort(published)
    return rows, {
        label: [pool for pool in (*of_group, everyone) if pool.size]
        for label, of_group in pools.items()
    }


def _edges_by_label(edges, rows):
    """Edges of each group's bins."""
    given = edges if isinstance(edges, Mapping) else dict.fromkeys(rows, edges)
    if lacking := [label for label in rows if label not in given]:
        raise ValueError(
            f"edges must have an entry for each label in groups; none for {lacking[0]}"
        )
    by_label = {label: as_list("edges", given[label]) for label in rows}
    if not all(
        ends.size > 1 and np.all(np.diff(ends) > 0) for ends in by_label.values()
    ):
        raise ValueError("edges must be two or more finite numbers that increase")
    return by_label


def bin_of(values, edges):
    """Number of each value's bin; values beyond the outermost edges belong to the outer bins."""
    return np.searchsorted(edges[1:-1], values, side="right")


def _within(places, edges, pools, rng):
    """Values in these bins: published ones from the first pool that has any there, or uniform."""
    lowest, highest = edges[places], edges[places + 1]
    # below the upper edge, so that the bin of a special value holds nothing else
    values = np.minimum(rng.uniform(lowest, highest), np.nextafter(highest, lowest))
    shares = rng.random(places.shape)
    # the last pool first, so that the first one has the last word
    for pool in reversed(pools or ()):
        starts = np.searchsorted(bin_of(pool, edges), np.arange(edges.size))
        counts = np.diff(starts)[places]
        chosen = starts[places] + (shares * counts).astype(np.intp)
        values = np.where(counts > 0, pool[np.minimum(chosen, pool.size - 1)], values)
    return values
