"""Noisy counts in public bins, moved towards the published shares, which published records fill."""

import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.linalg import cho_factor, cho_solve
from scipy.special import ndtri

from ppm.checks import check_count
from ppm.release.drawing import places, rows_of
from ppm.release.mechanisms import OneColumn, check_special
from ppm.release.noise import (
    NoisyRelease,
    nearest_counts,
    noise_variance,
    noisy_integers,
)
from ppm.release.statement import WORDS, noisy_guarantee
from ppm.seeds import generator, streams

# published records are half a record more in all bins of a group together
_NOBODY = 0.5
# a bin of few published records may yet come to hold this part of a group
_NEW = 0.005
# standard deviations of relative changes that are thought possible: of shares that change smoothly
# along the values, and of special values
_SMOOTH = (0.01, 0.05, 0.15, 0.4, 1.0)
_ALONE = (0.02, 0.3, 1.5)
# groups are moved together, so many at a time as have this many bins
_TOGETHER = 300


@dataclass(frozen=True, repr=False)
class Bins(OneColumn):
    r"""Noisy counts in public bins of each group, filled with published records: for shapes.

    Parameters
    ----------
    bins : int
        Number of bins between quantiles of a group's published values other than special ones.
    special : sequence of float, optional
        Values, such as 0, that get a bin of their own, because many records may have exactly them.
    tail : int, default 0
        How often the last of these bins is halved, so that a change of the highest values is seen.
    above : int, default 1
        Number of bins from the last quantile to the upper limit, each wider than the one before by
        the same factor (of the same width, if a quantile or limit is not above 0).

    Notes
    -----
    Not in Savitsky, Williams and Hu (2022). A neighbour is what it is throughout the library: one
    record's confidential value is left out, while the number of records and the groups are public.
    This lowers one count by 1. Independent noise Z with :math:`P(Z = z) \propto e^{-\epsilon |z|}`
    on every count therefore makes all counts of all groups together ε-differentially private, for
    every database (Ghosh, Roughgarden and Sundararajan, 2012). Replacing a value moves two counts,
    and costs 2ε. Counts and noise are whole numbers, because Laplace noise in floating-point
    numbers can reveal the value in its last digits (Mironov, 2012).

    All that follows the noise is post-processing, so m databases cost as much as one. The counts
    are moved towards what the published shares say, as far as the noise makes it likely: they are
    the mean of a normal distribution given the noisy counts, in which counts differ from the
    expected ones by sampling, and by a relative change that is smooth along the values, half of it
    common to all groups, with a size of its own for special values. Over the sizes of these changes
    the mean is taken too, by their likelihood given the noisy counts. The counts are then made the
    nearest ones in least squares that are not negative and add up to the group's public number of
    records, and values are drawn from them by systematic sampling.

    A change inside a bin is not seen: its values are published ones. In a bin where nobody
    published any they are its special value or, if it has none, spread evenly, above 0 in their
    logarithm. Between two special values between which a group has no published value there is no
    bin: what lies there counts as the lower one.

    Examples
    --------
    >>> import ppm
    >>> ppm.release.Bins(10, special=[0], tail=2)
    Bins(bins=10, special=[0], tail=2)
    """

    bins: int
    special: tuple = ()
    tail: int = 0
    above: int = 1

    def __post_init__(self):
        check_count("bins", self.bins)
        check_count("tail", self.tail, at_least=0)
        check_count("above", self.above)
        check_special(self.special)

    def check(self, plan):
        """Refuse other columns than one of numbers; warn where fewer bins result than asked for."""
        super().check(plan)
        column = self.column(plan)
        published = plan.published.groupby(plan.labels(plan.published))[column]
        fewer = sum(
            np.unique(_quantiles(values, plan.limits[column], self)).size
            < self.bins - 1 + self.tail
            for _, values in published
        )
        if fewer:
            warnings.warn(
                f"{self}: fewer bins than asked for in {fewer} of {published.ngroups} groups, "
                "because published values are few, equal or beyond the limits",
                stacklevel=2,
            )

    def edges(self, plan):
        """Edges of each group's bins by label: functions of the published table alone."""
        column = self.column(plan)
        values = plan.published[column].to_numpy()
        rows = rows_of(plan.coded(plan.published))
        return {
            label: edges_of(values[rows[label]], plan.limits[column], self)
            for label in sorted(rows)
        }

    def release(self, table, plan, *, random_seed=None, secure_noise=False):
        """Release one column of numbers; ``noisy["counts"]`` has a row for each bin."""
        values, labels, pools = self.given(table, plan)
        for_noise, for_drawing = map(generator, streams(random_seed, 2))
        edges = plan.once("edges", lambda: self.edges(plan))
        rows = rows_of(labels)
        counts = [counted(values[rows[label]], edges[label]) for label in rows]
        noisy = noisy_integers(
            np.concatenate(counts), 1, plan.epsilon, secure=secure_noise, rng=for_noise
        )
        # nothing below looks at a confidential value
        split = np.split(noisy, np.cumsum([one.size for one in counts])[:-1])
        variance = noise_variance(1, plan.epsilon)
        sizes = {label: own.size for label, own in rows.items()}
        batches, contents = plan.once(
            ("groups", *sizes.items()),
            lambda: (
                [*_batches(sizes, edges, pools, self.special, variance)],
                _Contents([*rows], edges, pools, self.special),
            ),
        )
        shares = [
            nearest_counts(one, size)
            for one, size in zip(
                _moved(batches, split, variance), sizes.values(), strict=True
            )
        ]
        where = places(labels, plan.releases, for_drawing)
        synthetic = contents.drawn(where, rows.values(), shares)
        sentence = WORDS["statement"]["counts"].format(
            releases=plan.releases,
            records=len(table),
            bins=noisy.size,
            groups=len(rows),
        )
        return NoisyRelease(
            synthetic,
            {"counts": contents.bins.assign(count=noisy)},
            noisy_guarantee(plan.epsilon, "counts", secure=secure_noise),
            sentence,
            {"edges": contents.told} | told_special(self.special),
        )


def _quantiles(values, ends, settings):
    """Quantiles of published values other than special ones, within the limits."""
    halves = 1 - 0.5 ** np.arange(1, settings.tail + 1) / settings.bins
    shares = [*np.arange(1, settings.bins) / settings.bins, *halves]
    values = np.asarray(values, dtype=np.float64)
    others = values[~np.isin(values, settings.special)]
    if not others.size or not shares:
        return np.array([])
    inner = np.quantile(others, shares, method="inverted_cdf")
    return inner[(inner > ends[0]) & (inner < ends[1])]


def edges_of(published, ends, settings):
    """Increasing edges of bins that hold about equally many published values.

    ``settings`` has the attributes of :class:`Bins`. There are fewer where quantiles agree.
    """
    inner = _quantiles(published, ends, settings)
    last = np.clip(inner[-1] if inner.size else ends[0], *ends)
    spaced = np.geomspace if last > 0 else np.linspace
    # without last digits, which would decide on which side a round value lies
    further = spaced(last, ends[1], settings.above + 1)[1:-1]
    further = [float(f"{edge:.12g}") for edge in further]
    alone = np.asarray(settings.special, dtype=np.float64)
    inner = np.concatenate([inner, further, alone, np.nextafter(alone, np.inf)])
    inner = inner[(inner > ends[0]) & (inner < ends[1])]
    values, alone = np.asarray(published, dtype=np.float64), np.sort(alone)
    for low, high in zip(alone, alone[1:], strict=False):
        # that nobody published anything between them is public
        if not np.any((values > low) & (values < high)):
            inner = inner[(inner <= low) | (inner >= high)]
    return np.unique(np.concatenate([ends, inner]))


def told_edges(edges, special):
    """Edges for publication: that just above a special value is told as the value once more."""
    above = np.nextafter(np.asarray(special, dtype=np.float64), np.inf)
    return np.where(np.isin(edges, above), np.nextafter(edges, -np.inf), edges)


def told_special(special):
    """What is said of the special values beside the edges, if there are any."""
    values = ", ".join(f"{value:g}" for value in special)
    return {"special": WORDS["alone"].format(values=values)} if values else {}


def bin_of(values, edges):
    """Number of each value's bin; values beyond the outermost edges belong to the outer bins."""
    return np.searchsorted(edges[1:-1], values, side="right")


def counted(values, edges):
    """Number of values in each bin."""
    return np.bincount(bin_of(values, edges), minlength=len(edges) - 1)


class _Group:
    """What is expected of the counts of one group's bins before the noisy ones are seen."""

    def __init__(self, records, edges, pool, special):
        published = counted(pool, edges) + _NOBODY / (len(edges) - 1)
        shares = published / published.sum()
        self.expected = records * shares
        self.ranks = ndtri(np.cumsum(shares) - shares / 2)
        self.alone = np.isin(edges[:-1], special)
        # of the difference between two samples of these sizes
        both = records * (1 + records / pool.size)
        self.sampled = both * (np.diag(shares) - np.outer(shares, shares))
        # a relative change of each bin, so that the sum over the bins stays
        sizes = np.maximum(self.expected, _NEW * records)
        self.changed = np.diag(sizes) - np.outer(shares, sizes)


def _batches(sizes, edges, pools, special, variance):
    """Groups that are moved together: what is expected of them, and each thinkable covariance."""
    together = []
    for label, records in sizes.items():
        if together and sum(one.expected.size for one in together) > _TOGETHER:
            yield _covariances(together, variance)
            together = []
        together.append(_Group(records, edges[label], pools[label], special))
    yield _covariances(together, variance)


def _covariances(groups, variance):
    """Counts that are expected in each group; and Cholesky factors of all sizes of changes.

    With each of these there is half the logarithm of the determinant.
    """
    expected = [group.expected for group in groups]
    ends = np.cumsum([0, *[one.size for one in expected]])
    number = np.repeat(np.arange(len(groups)), np.diff(ends))
    ranks, alone = (
        np.concatenate([getattr(group, name) for group in groups])
        for name in ("ranks", "alone")
    )
    shared = 0.5 + 0.5 * (number[:, None] == number)
    near = np.exp(-((ranks[:, None] - ranks) ** 2) / 2)
    smooth = shared * near * ~(alone[:, None] | alone)
    special = shared * (alone[:, None] & alone)
    noisy = variance * np.eye(number.size)
    places = [slice(*pair) for pair in zip(ends, ends[1:], strict=False)]
    for group, own in zip(groups, places, strict=True):
        noisy[own, own] += group.sampled
        for part in (smooth, special):
            # a group's changes have an effect on no other's counts
            part[own] = group.changed @ part[own]
            part[:, own] = part[:, own] @ group.changed.T
    factors = []
    for of_all in _SMOOTH:
        changed = noisy + of_all**2 * smooth
        for of_alone in _ALONE if alone.any() else _ALONE[:1]:
            covariance = changed + of_alone**2 * special
            factor = cho_factor(covariance, lower=True, check_finite=False)
            factors.append((factor, np.log(np.diag(factor[0])).sum()))
    return expected, factors


def _moved(batches, noisy, variance):
    """Counts of each group (bins,), between the noisy and the expected ones.

    They are their mean given the noisy ones, over all sizes of their changes.
    """
    moved, noisy = [], iter(noisy)
    for expected, factors in batches:
        seen = np.concatenate([next(noisy) for _ in expected])
        off = seen - np.concatenate(expected)
        likelihoods, means = [], []
        for factor, log_size in factors:
            solved = cho_solve(factor, off, check_finite=False)
            likelihoods.append(-off @ solved / 2 - log_size)
            # the noise is taken off
            means.append(seen - variance * solved)
        weights = np.exp(np.array(likelihoods) - max(likelihoods))
        found = weights @ means / weights.sum()
        moved += np.split(found, np.cumsum([one.size for one in expected])[:-1])
    return moved


class _Contents:
    """What the bins of all groups hold: published values or, where there are none, even ones."""

    def __init__(self, labels, edges, pools, special):
        self.told = {label: told_edges(edges[label], special) for label in labels}
        told = [*self.told.values()]
        self.bins = pd.DataFrame(
            {
                "group": np.repeat(
                    np.array(labels, object), [one.size - 1 for one in told]
                ),
                "from": np.concatenate([one[:-1] for one in told]),
                "below": np.concatenate([one[1:] for one in told]),
            }
        )
        self.low = np.concatenate([edges[label][:-1] for label in labels])
        self.high = np.concatenate([edges[label][1:] for label in labels])
        self.alone = np.isin(self.low, special)
        # all published values, and how many there are in each bin
        self.pool = np.concatenate([pools[label] for label in labels])
        self.held = np.concatenate(
            [counted(pools[label], edges[label]) for label in labels]
        )

    def drawn(self, where, rows, counts):
        """Values at these places (releases, records) of groups whose bins have these counts."""
        ends = [np.cumsum(one) / np.sum(one) for one in counts]
        first = np.cumsum([0, *[one.size for one in ends]])
        bins = np.empty(where.shape, dtype=np.intp)
        for own, own_ends, of_group, before in zip(
            rows, ends, counts, first[:-1], strict=True
        ):
            inside = np.flatnonzero(of_group > 0)
            found = np.searchsorted(own_ends[inside[:-1]], where[:, own], side="right")
            bins[:, own] = before + inside[found]
        lowest = np.concatenate([np.r_[0.0, one[:-1]] for one in ends])
        widths = np.concatenate(ends) - lowest
        share = (where - lowest[bins]) / widths[bins]
        share = np.clip(share, 0.0, np.nextafter(1.0, 0.0))
        held = self.held[bins]
        chosen = np.minimum((share * held).astype(np.intp), held - 1)
        chosen += (np.cumsum(self.held) - self.held)[bins]
        drawn, empty = self.pool[chosen], held == 0
        drawn[empty] = self._spread(bins[empty], share[empty])
        return drawn

    def _spread(self, bins, share):
        """Values of bins where nobody published any, at these shares of their widths."""
        low, high = self.low[bins], self.high[bins]
        spread = low + share * (high - low)
        # above 0 evenly in the logarithm, where few of the values are high
        above = low > np.finfo(float).tiny
        grown = np.log(low[above]) + share[above] * np.log(high[above] / low[above])
        spread[above] = np.exp(grown)
        # below the upper edge, so that the bin of a special value holds nothing else
        spread = np.clip(spread, low, np.nextafter(high, low))
        return np.where(self.alone[bins], low, spread)
