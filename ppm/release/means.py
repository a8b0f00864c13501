"""A noisy sum of each group, and published records times the factor that it makes likely."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ppm.checks import check_number
from ppm.release.drawing import places, read_off, rows_of
from ppm.release.mechanisms import OneColumn, check_special, pools_of
from ppm.release.noise import NoisyRelease, noisy_integers
from ppm.release.statement import WORDS, noisy_guarantee
from ppm.seeds import generator, streams

# a value is rounded to a whole number of this part of the cap, so that noise can be a whole number
_STEPS = 2**20
# logarithms of the factors that are thought possible, of a group and, every fifth, of all together
_LOGS, _FIFTH = np.linspace(-np.log(20), np.log(20), 481), 5
_COMMON_LOGS = _LOGS[::_FIFTH]
# standard deviations of the logarithms of the common factor, and of a group's own beside it
_COMMON, _OWN = 0.5, (0.03, 0.1, 0.3, 1.0)
# of the common factors first every few are weighed, and then those near any whose logarithm of the
# weight is not as far below the largest
_STRIDE, _FAR = 6, 40.0
# the least that a common factor says of a group's sum, so that one group never decides alone
_HARDLY = 1e-300
# without a cap, this part of the values at least is not cut off; and of the others so many in a
# group as noise of scale 1 / ε would move
_WHOLE, _CUT = 0.95, 5.0
# and nothing is cut off where noise then moves a mean by no more than this part of it
_NO_MATTER = 0.01
# shares of a special value that are thought possible
_SHARES = np.linspace(0.0, 1.0, 1001)
# beside two samples, by how much a share changes from one table to the next: this part of its
# standard deviation, and a little
_MOVED, _LITTLE = 0.1, 0.003


@dataclass(frozen=True, repr=False)
class Means(OneColumn):
    r"""One noisy sum of each group, and published records times a factor: for levels.

    Parameters
    ----------
    cap : float, optional
        Where values are cut off in the sum: this quantile of the group's published values, other
        than special ones; above 0 and at most 1. Without it, the quantile is
        :math:`\max(0.95, 1 - 5 / (\epsilon n))` for n records of the group, so that the tail counts
        where the noise lets it; and nothing below the upper limit is cut off where the noise of a
        mean is then a hundredth of it at most.
    special : sequence of float, optional
        Values, such as 0, of which the records of each group are counted instead. They stay what
        they are, and their share follows the count.

    Notes
    -----
    Not in Savitsky, Williams and Hu (2022). With the cap c a record that is not special adds
    :math:`\min(\max(x, 0), c) - c/2` to its group's sum, and a record whose value is not used adds
    nothing, so that it moves the sum by at most :math:`c / 2`. Discrete Laplace noise of scale
    :math:`c / (2 \epsilon)` makes all sums together ε-differentially private. A record with a
    special value is in a count instead, which it moves by 1, and in no sum; so counts and sums each
    have all of ε, and together they have ε. Sums are rounded to whole multiples of a small step, so
    that the noise can be a whole number, and exact (Mironov, 2012).

    All else is post-processing. The same capping of *published* values is known whatever they are
    multiplied by, and so is how likely the noisy sum is then. A group's factor is the exponential
    of the mean of its logarithm given all noisy sums, where the factors of all groups scatter
    around a common one, by an amount that the sums decide too, and by what samples of these sizes
    differ. Where the noise drowns the sums, the release is the published table.

    Noisy sums see levels. They are blind to shapes, such as a highest tenth that rises; where a
    heavy tail has grown, even levels can be further off than those of published records. In a group
    of few published records the shape is that of these few. A lower cap has less noise, and shows a
    change of level better; a higher one sees a tail that grew. Counting special values costs some
    of a change of level, and shows their share.

    Examples
    --------
    >>> import ppm
    >>> ppm.release.Means(special=[0])
    Means(special=[0])
    """

    cap: float | None = None
    special: tuple = ()

    def __post_init__(self):
        if self.cap is not None:
            check_number("cap", self.cap, above=0, at_most=1)
        check_special(self.special)

    def check(self, plan):
        """Refuse other columns than one of numbers that are mostly above 0."""
        super().check(plan)
        column = self.column(plan)
        if plan.published[column].isin(self.special).all():
            raise ValueError(
                f"mechanism {self!r} takes a column with published values that are not special"
            )
        for label, pool in pools_of(plan, column).items():
            others = pool[~np.isin(pool, self.special)]
            if others.size and (np.quantile(others, 0.1) < 0 or others.max() <= 0):
                raise ValueError(
                    f"mechanism {self!r} takes a column whose published values are mostly above "
                    f"0 in each group; in {label or 'the table'!r} they are not: use Bins"
                )

    def release(self, table, plan, *, random_seed=None, secure_noise=False):
        """Release one column of numbers; ``noisy["sums"]`` has a row for each group."""
        values, labels, pools = self.given(table, plan)
        for_noise, for_drawing = map(generator, streams(random_seed, 2))
        rows = rows_of(labels)
        everyone = np.concatenate([*pools.values()])
        sizes = {label: own.size for label, own in rows.items()}

        def of_groups():
            groups = [
                _Group(pools[label], records, plan, self, everyone)
                for label, records in sizes.items()
            ]
            return groups, _chances_around(groups)

        groups, around = plan.once(("groups", *sizes.items()), of_groups)
        totals = [
            group.totals(values[own])
            for group, own in zip(groups, rows.values(), strict=True)
        ]
        noise = {"secure": secure_noise, "rng": for_noise}
        sums = noisy_integers(
            [total for total, _ in totals], _STEPS // 2, plan.epsilon, **noise
        )
        counts = noisy_integers(
            [counts for _, counts in totals], 1, plan.epsilon, **noise
        )
        # nothing below looks at a confidential value
        shares = [
            group.special_shares(of_group, plan.epsilon)
            for group, of_group in zip(groups, counts, strict=True)
        ]
        factors = _factors(groups, around, sums / _STEPS, shares, plan.epsilon)
        where = places(labels, plan.releases, for_drawing)
        synthetic = np.empty(where.shape)
        for own, group, special, factor in zip(
            rows.values(), groups, shares, factors, strict=True
        ):
            synthetic[:, own] = group.drawn(where[:, own], special, factor)
        noisy = pd.DataFrame({"group": [*rows]})
        caps = np.array([group.cap for group in groups])
        noisy["sum"] = caps * (sums / _STEPS)
        for value, of_value in zip(self.special, counts.T, strict=True):
            noisy[f"records of {value:g}"] = of_value
        special = WORDS["special"].format(
            values=", ".join(f"{value:g}" for value in self.special)
        )
        sentence = WORDS["statement"]["sums"].format(
            releases=plan.releases,
            records=len(table),
            groups=len(rows),
            special=special if len(self.special) else "",
        )
        return NoisyRelease(
            synthetic,
            {"sums": noisy},
            noisy_guarantee(plan.epsilon, "sums", secure=secure_noise),
            sentence,
            {"caps": dict(zip(rows, caps.tolist(), strict=True))},
        )


class _Group:
    """The published records of one group, and what they say of its sum and counts."""

    def __init__(self, pool, records, plan, settings, everyone):
        self.special = np.asarray(settings.special, dtype=np.float64)
        self.published = np.array([np.mean(pool == value) for value in self.special])
        others = pool[~np.isin(pool, self.special)]
        if not others.size:
            # a group of published special values alone has the others of all groups
            others = np.sort(everyone[~np.isin(everyone, self.special)])
        self.others = others
        cap = settings.cap or max(_WHOLE, 1 - _CUT / (plan.epsilon * records))
        (_, highest) = next(iter(plan.limits.values()))
        small = highest / (plan.epsilon * records) <= _NO_MATTER * others.mean()
        if settings.cap is None and small:
            self.cap = highest
        else:
            self.cap = max(float(np.quantile(others, cap)), np.finfo(float).tiny)
        self.records, self.published_records = records, pool.size
        capped = np.clip(self.others, 0.0, self.cap)
        spread = capped.var() / max(capped.mean(), np.finfo(float).tiny) ** 2
        # variance of the logarithm of the ratio of two such samples' means
        self.sampled = spread * (1 / records + 1 / self.others.size)
        #: mean of what the others add to a sum, in caps, at each factor
        self.added = _capped(self.others / self.cap, np.exp(_LOGS)) - 0.5

    def totals(self, values):
        """Sum of the values that are not special, in whole steps, and counts of those that are."""
        counts = [np.sum(values == value) for value in self.special]
        others = values[~np.isin(values, self.special)]
        added = np.clip(others / self.cap, 0.0, 1.0) - 0.5
        return np.rint(_STEPS * added).astype(np.int64).sum(), counts

    def special_shares(self, counts, epsilon):
        """Median of each special value's share, given its noisy count."""
        medians = []
        for known, count in zip(self.published, counts, strict=True):
            spread = known * (1 - known)
            both = 1 / self.records + 1 / self.published_records
            variance = spread * (both + _MOVED**2) + _LITTLE**2
            # with a wide tail, so that a share may be quite another
            logs = -np.log1p((_SHARES - known) ** 2 / variance)
            logs -= epsilon * np.abs(count - self.records * _SHARES)
            chances = np.exp(logs - logs.max()).cumsum()
            medians.append(_SHARES[np.searchsorted(chances, chances[-1] / 2)])
        medians = np.array(medians)
        return medians / max(1.0, medians.sum())

    def drawn(self, where, special, factor):
        """Special values in their shares, and then the others times a factor."""
        ends = np.cumsum(special)
        share = ends[-1] if ends.size else 0.0
        within = np.clip((where - share) / max(1 - share, 1e-12), 0, np.nextafter(1, 0))
        drawn = factor * read_off(self.others, within)
        for value, end in zip(self.special[::-1], ends[::-1], strict=True):
            drawn = np.where(where < end, value, drawn)
        return drawn


def _capped(values, factors):
    """Mean of increasing values times each factor, cut off at 0 and 1."""
    uncut = np.searchsorted(values, 1.0 / factors, side="right")
    sums = np.cumsum(np.r_[0.0, np.maximum(values, 0.0)])[uncut]
    return (factors * sums + values.size - uncut) / values.size


def _chances_around(groups):
    """Chances of each group's factor around a common one, by their distance: (own, groups, …)."""
    apart = np.append(_LOGS, _LOGS[1:] + np.ptp(_LOGS)) - _LOGS[-1]
    variances = np.add.outer(np.square(_OWN), [group.sampled for group in groups])
    return np.exp(-(apart**2) / 2 / variances[:, :, None])


def _factors(groups, around, sums, shares, epsilon):
    """Factor of each group: the exponential of its logarithm's mean, given all noisy sums."""
    likely = []
    for group, total, special in zip(groups, sums, shares, strict=True):
        others = max(group.records * (1 - np.sum(special)), 0.5)
        # discrete Laplace noise of scale 1 / (2 ε), in caps; no sharper than the grid
        scale = 0.5 / epsilon + 0.5 * others * np.gradient(group.added)
        likely.append(-np.abs(others * group.added - total) / scale - np.log(scale))
    likely = np.array(likely)
    chances = np.exp(likely - likely.max(axis=1, keepdims=True))
    of_logs = chances * _LOGS
    # logarithms of weights, of each own spread and common factor, and means of logarithms there
    weights = np.full((len(_OWN), _COMMON_LOGS.size), -np.inf)
    means = np.zeros((*weights.shape, len(groups)))
    every = np.arange(0, _COMMON_LOGS.size, _STRIDE)

    def weigh(own, some):
        for common in some:
            first = _LOGS.size - 1 - _FIFTH * common
            near = around[own, :, first : first + _LOGS.size]
            total = np.vecdot(chances, near) + _HARDLY
            found = np.log(total / near.sum(axis=1)).sum()
            weights[own, common] = found - _COMMON_LOGS[common] ** 2 / 2 / _COMMON**2
            means[own, common] = np.vecdot(of_logs, near) / total

    for own in range(len(_OWN)):
        weigh(own, every)
    # between those that matter; the logarithms have one summit, and no other common factor counts
    far = weights.max() - _FAR
    for own in range(len(_OWN)):
        near = np.flatnonzero(weights[own, every] > far)
        best = np.argmax(weights[own, every])
        near = every[[min([best, *near]), max([best, *near])]]
        some = np.arange(max(0, near[0] - _STRIDE), near[1] + _STRIDE + 1)
        some = some[some < _COMMON_LOGS.size]
        weigh(own, np.setdiff1d(some, every))
    weights = np.exp(weights - weights.max())
    return np.exp(np.einsum("oc,ocg->g", weights / weights.sum(), means))
