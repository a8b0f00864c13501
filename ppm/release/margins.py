"""Published records, raked to noisy margins of a confidential table."""

import itertools
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from ppm.checks import as_list, check_count, check_number, listed
from ppm.release.bins import Bins, bin_of, edges_of, told_edges, told_special
from ppm.release.drawing import places
from ppm.release.mechanisms import (
    Mechanism,
    as_names,
    categories,
    check_within,
    has_numbers,
)
from ppm.release.noise import NoisyRelease, noise_variance, noisy_integers
from ppm.release.statement import WORDS, noisy_guarantee
from ppm.seeds import generator, streams

# a score between -1 and 1 is counted in thousandths, so that its noise can be a whole number
_UNIT = 1000
# all published records together count as one more of each stratum, so that any cell can be drawn
_SHARED = 1.0
# a bin without a published record counts as half a record
_NOBODY = 0.5
# public guess by how much a total changes for reasons other than a change of its own factor,
# as a part of its level's records
_ADDED = 0.01
# how near the raked totals are to their aim, in standard deviations of a draw of all records
_NEAR = 0.02
# computed numbers this near, of a scale near 1, may be equal but for rounding
_ROUNDING = 1e-9
# matrices of fewer entries are not kept as sparse ones, which would take longer
_FULL = 200_000


@dataclass(frozen=True, repr=False)
class Margins(Mechanism):
    r"""Published records, raked to noisy margins: for several confidential columns, or many tables.

    Every record gets all confidential values of one published record that is predicted to be like
    it. Factors make some published records more likely than others, so that counts and sums by the
    ``margins`` come near those of the confidential records, to which noise is added.

    Parameters
    ----------
    margins : list of tuple of str
        Which columns are seen together, each with a confidential one: ``("income",)``, ``("region",
        "income")``, ``("income", "spending")``. A column of numbers alone is counted in its bins.
        Otherwise a margin has a count for each combination of its categories, public or
        confidential; and if it has confidential numbers, in place of a count the sum of their
        scores, or of the products of their scores: see the notes.
    bins, special, tail, above
        As of :class:`ppm.release.Bins`, for each confidential column of numbers, in all groups
        together.
    shares : list of float, optional
        Share of ε for each margin, together 1; **public**. Without it they are equal.
    strata : int or list of str, default 8
        Number of strata of about equally many published records with similar predictions, which
        are made by least squares from all public columns; or names of public columns.
    reach : float, default 1.0
        Where scores end, in standard deviations from the published median of the stratum;
        **public**. Shorter, noise disturbs a change of level less; longer, tails take part in it.
    change : float, default 0.3
        Standard deviation of the logarithms of the factors that is expected; **public**. A noisy
        total is trusted as far as noise alone would change the factors less than this.

    Notes
    -----
    A private form of raking (Deming and Stephan, 1940; Deville and Särndal, 1992). Measuring a
    confidential table and reweighting published records by exponential factors is private
    multiplicative weights with public data, PMW\ :sup:`Pub` (Liu, Vietri, Steinke, Ullman and Wu,
    2021); there margins are chosen one after another, here all are fixed beforehand.

    The *score* of a value is the normal quantile of its bin's middle in the published distribution
    of the row's stratum, divided by ``reach`` and cut off at ±1; thousandths are counted. So one
    record changes each margin by at most 1, by nothing if its values are not used. A margin with
    the share s gets discrete Laplace noise of scale :math:`1 / (s \epsilon)`, and all margins
    together are ε-differentially private for every table.

    All that follows is post-processing. With the published chance :math:`q_{ij}` of a cell j (a
    combination of bins) in the stratum of row i, and :math:`f_{jk}` what the cell adds to the total
    k, the chances :math:`p_{ij} \propto q_{ij} \exp(\sum_k \lambda_k f_{jk})` have the smallest
    :math:`\sum_i KL(p_i \| q_i) + \sum_k (t_k - \hat t_k)^2 / (2 a_k)`, where :math:`\hat t_k` is
    the noisy total, and :math:`a_k` its noise variance times (published variance of the total) /
    (expected squared change of the total): without noise, raking until totals agree; with much
    noise, none. The factors are :math:`e^{\lambda_k}`. Each row then draws a cell and, within it, a
    published record, of its stratum where there is one.

    Margins share ε, so that fewer have less noise each: columns with few levels do better together
    in one margin, ``("sex", "earner", "income")``, than in two. A change shows as far as a margin
    sees it: one that cuts across all margins does not. Where a
    table needs shapes by level, add a column of classes, such as ``pandas.cut`` of the income, to
    both tables as another confidential column, with a margin by level.

    Examples
    --------
    >>> import ppm
    >>> ppm.release.Margins([("region", "income"), ("region", "owner")], bins=10)
    Margins(margins=[('region', 'income'), ('region', 'owner')], bins=10)
    """

    margins: tuple
    bins: int = 20
    special: tuple = ()
    tail: int = 0
    above: int = 1
    shares: tuple | None = None
    strata: object = 8
    reach: float = 1.0
    change: float = 0.3

    def __post_init__(self):
        # checked as bins are
        Bins(self.bins, self.special, self.tail, self.above)
        check_number("reach", self.reach, above=0)
        check_number("change", self.change, above=0)

    def check(self, plan):
        """Refuse margins and strata of columns that are not the plan's."""
        strata = ()
        if np.iterable(self.strata):
            strata = as_names(self.strata)
        else:
            check_count("strata", self.strata)
        margins = [as_names(margin) for margin in as_names(self.margins)]
        for name, named in {"margins": sum(margins, ()), "strata": strata}.items():
            if unknown := [column for column in named if column not in plan.published]:
                raise ValueError(
                    f"{name}: there must be a column {listed(unknown)} in confidential, "
                    "groups or public"
                )
        public = [name for name in plan.published if name not in plan.confidential]
        check_shares(self.shares, check_margins(margins, public, plan.confidential))
        # of a release's numbers, which have the cells by these names beside their totals
        names = [" × ".join(margin) for margin in margins]
        if len({*names}) < len(names) or any("total" in margin for margin in margins):
            raise ValueError(
                "margins must have names that differ, joined by ' × ', and no column 'total': "
                f"got {listed(names)}"
            )
        check_within(self.special, plan)
        for name in public:
            if plan.published[name].isna().any():
                raise ValueError(
                    f"published has missing values in {name!r}, of which "
                    "Margins takes none"
                )

    def release(self, table, plan, *, random_seed=None, secure_noise=False):
        """Release all confidential columns; ``noisy`` has the totals of each margin by its name."""
        published, confidential = plan.published, [*plan.confidential]
        table = table[[*published]]
        if table.isna().to_numpy().any():
            wrong = table.columns[table.isna().any()]
            raise ValueError(f"table has missing values in {listed([*wrong])}")
        public = [name for name in table if name not in confidential]
        margins = [as_names(margin) for margin in as_names(self.margins)]
        shares = check_shares(self.shares, margins)
        edges = {
            name: edges_of(published[name], ends, self)
            for name, ends in plan.limits.items()
        }
        kinds = {name: _kind(name, plan, edges, self.special) for name in confidential}
        own, theirs = _strata(self.strata, table[public], published, kinds)
        for_noise, for_drawing = map(generator, streams(random_seed, 2))

        donors = _donors(
            published[confidential], theirs, max(own.max(), theirs.max()) + 1, kinds
        )
        scores = {
            name: donors.scores(place, kind.size, self.reach)
            for place, (name, kind) in enumerate(kinds.items())
            if kind.numeric
        }
        views, levels = zip(
            *[_seen(names, table[public], kinds, scores) for names in margins],
            strict=True,
        )
        codes = np.transpose([kind.codes(table[name]) for name, kind in kinds.items()])
        rates = plan.epsilon * shares
        noisy = []
        for view, level, rate in zip(views, levels, rates, strict=True):
            totals = view.totals(level, codes, own)
            found = noisy_integers(
                totals, view.moved, rate, secure=secure_noise, rng=for_noise
            )
            noisy.append(found / view.moved)
        # nothing below looks at a confidential value
        chances, pattern = _raked(
            views, np.transpose(levels), noisy, rates, donors, own, self.change
        )
        rows = donors.draw(chances, pattern, own, plan.releases, for_drawing)
        names = [" × ".join(margin) for margin in margins]
        made = WORDS["statement"]["raked"].format(
            releases=plan.releases,
            records=len(table),
            margins="; ".join(names),
            scores=WORDS["scores"] if any(view.scores for view in views) else "",
        )
        told = {name: told_edges(ends, self.special) for name, ends in edges.items()}
        totals = {
            name: _labelled(margin, found, table, plan, told)
            for name, margin, found in zip(names, margins, noisy, strict=True)
        }
        return NoisyRelease(
            {name: column.to_numpy()[rows] for name, column in donors.values.items()},
            totals,
            noisy_guarantee(plan.epsilon, "margins", secure=secure_noise),
            made,
            {"edges": told, "shares": dict(zip(names, shares.tolist(), strict=True))}
            | told_special(self.special),
        )


def _labelled(names, totals, table, plan, edges):
    """Totals by the classes of a margin; of a column of numbers alone by its bins."""
    public = [name for name in names if name not in plan.confidential]
    levels = table.groupby(public, observed=True).size().index if public else [()]
    inside = [name for name in names if name in plan.confidential]
    columns = [name for name in inside if name not in plan.limits]
    classes = [categories(plan, name) for name in columns]
    if len(names) == 1 and names[0] in plan.limits:
        ends = edges[names[0]]
        columns, classes = [names[0]], [zip(ends, ends[1:], strict=False)]
    rows = itertools.product(
        [level if isinstance(level, tuple) else (level,) for level in levels],
        itertools.product(*classes),
    )
    cells = pd.DataFrame(
        [(*level, *kind) for level, kind in rows], columns=[*public, *columns]
    )
    return cells.assign(total=totals.ravel())


# ---- columns and their bins ----------------------------------------------------------------------


@dataclass(frozen=True)
class _Kind:
    """Bins of one confidential column: between edges, or its categories."""

    name: str
    numeric: bool
    labels: np.ndarray
    special: tuple = ()

    @property
    def size(self):
        return self.labels.size - self.numeric

    def codes(self, column):
        """Number of each value's bin; values beyond the outermost edges are in the outer bins."""
        if self.numeric:
            values = as_list(self.name, column)
            return bin_of(values, self.labels)
        codes = pd.Index(self.labels).get_indexer(column)
        if (codes < 0).any():
            raise ValueError(
                f"table must have the published categories in column {self.name!r}, and "
                "no other: declare all possible ones there, as a pandas Categorical"
            )
        return codes

    def typical(self, code):
        """A value in a bin that holds no published one."""
        if not self.numeric:
            return self.labels[code]
        low, high = self.labels[code : code + 2]
        if low in self.special:
            return low
        return min(low + (high - low) / 2, np.nextafter(high, low))


def _kind(name, plan, edges, special=()):
    if name in edges:
        return _Kind(name, True, edges[name], tuple(special))
    return _Kind(name, False, categories(plan, name))


def _names(what, names):
    names = [names] if isinstance(names, str) else names
    if not (
        isinstance(names, list | tuple)
        and names
        and all(isinstance(name, str) for name in names)
    ):
        raise ValueError(
            f"{what} must have names of columns, as text; got {type(names).__name__}"
        )
    return [*names]


def check_margins(margins, public, confidential):
    """Margins as tuples of names, each with a confidential one."""
    if not isinstance(margins, list | tuple):
        raise ValueError(
            f"margins must be a list of tuples of columns; got {type(margins).__name__}"
        )
    margins = [tuple(_names("margins", names)) for names in margins]
    known = {*public, *confidential}
    wrong = [
        names
        for names in margins
        if not {*names} <= known
        or len({*names}) < len(names)
        or not {*names} & {*confidential}
    ]
    if wrong or not margins or len({*margins}) < len(margins):
        raise ValueError(
            "margins must be different tuples of different columns of table, each with "
            f"a confidential one; got {listed(wrong or margins)}"
        )
    return margins


def check_shares(shares, margins):
    """Shares of the margins, together 1."""
    shares = as_list(
        "shares", [1 / len(margins)] * len(margins) if shares is None else shares
    )
    if (
        shares.size != len(margins)
        or (shares <= 0).any()
        or not np.isclose(shares.sum(), 1)
    ):
        raise ValueError(
            f"shares must be {len(margins)} numbers above 0 that add up to 1, one for "
            "each margin"
        )
    return shares / shares.sum()


# ---- public strata, donors and their scores ------------------------------------------------------


def _strata(strata, table, published, kinds):
    """Stratum of each row of both tables."""
    both = pd.concat([table, published[[*table]]], ignore_index=True)
    rows = len(table)
    if isinstance(strata, str | list | tuple):
        names = _names("strata", strata)
        if lacking := [name for name in names if name not in table]:
            raise ValueError(f"strata must be public columns; got {listed(lacking)}")
        codes = both.groupby(names, sort=True, observed=True).ngroup().to_numpy()
        return codes[:rows], codes[rows:]
    strata = check_count("strata", strata)
    if not table.shape[1]:
        return np.zeros(rows, dtype=np.intp), np.zeros(len(published), dtype=np.intp)
    # one prediction for each pattern of public values: equal values are in equal strata, though
    # the last digits of a product may differ from row to row
    pattern = both.groupby([*both], sort=False, observed=True).ngroup().to_numpy()
    X = _design(both)
    spread = np.where(np.ptp(X[rows:], axis=0) > 0, X[rows:].std(axis=0), np.inf)
    X = (X - X[rows:].mean(axis=0)) / spread
    known, X = X[rows:], X[np.unique(pattern, return_index=True)[1]]
    # ranks, or categories, of every confidential column, each column with variance 1 in all
    responses = []
    for name, kind in kinds.items():
        column = published[name]
        found = column.rank() if kind.numeric else pd.get_dummies(column, dtype=float)
        found = found.to_numpy(dtype=float).reshape(len(published), -1)
        found = found - found.mean(axis=0)
        responses.append(found / max(np.sqrt(np.sum(found**2)), 1e-300))
    responses = np.concatenate(responses, axis=1)
    fitted = np.linalg.solve(known.T @ known + np.eye(X.shape[1]), known.T @ responses)
    # what is predicted of all of them, in one number
    prediction = X @ (fitted @ _leading(known @ fitted))
    order = np.argsort(prediction)
    # what differs by rounding alone is equal
    steps = np.diff(prediction[order]) > _ROUNDING / np.sqrt(len(published))
    place = np.empty(order.size, dtype=np.intp)
    place[order] = np.cumsum(np.r_[0, steps])
    # published records up to each prediction, cut in whole numbers
    place = place[pattern]
    upto = np.cumsum(np.bincount(place[rows:], minlength=place.max() + 1))
    codes = strata * (upto - 1) // max(len(published) - 1, 1)
    codes = np.clip(codes, 0, strata - 1)[place]
    return codes[:rows], codes[rows:]


def _design(public):
    """Numbers of public columns as they are, and an indicator of each other value."""
    numbers = [name for name in public if has_numbers(public[name])]
    others = [name for name in public if name not in numbers]
    public = public.astype(dict.fromkeys(numbers, float))
    return pd.get_dummies(public, columns=others, dtype=float).to_numpy()


def _leading(responses):
    """Direction in which the responses vary most.

    Of two opposite ones, or of several in which they vary as much, it is the one that is nearest
    to a fixed direction, and not the one that rounding chooses.
    """
    _, sizes, directions = np.linalg.svd(responses, full_matrices=False)
    most = directions[sizes >= (1 - _ROUNDING) * sizes[0]]
    nearest = most.T @ (most @ np.sin(np.arange(1, responses.shape[1] + 1)))
    return nearest / np.linalg.norm(nearest)


@dataclass(frozen=True)
class _Donors:
    """Published records, those made up for empty bins, and the cells that they fall into."""

    values: object
    stratum: np.ndarray
    cell: np.ndarray
    cells: np.ndarray
    base: np.ndarray

    def scores(self, place, size, reach):
        """Score of each stratum and bin: normal quantile of its middle, from -1 at -reach to 1."""
        from scipy.special import ndtri

        shares = np.zeros((len(self.base), size))
        np.add.at(shares.T, self.cells[:, place], self.base.T)
        middles = np.cumsum(shares, axis=1) - shares / 2
        return np.clip(ndtri(np.clip(middles, 0.0, 1.0)) / reach, -1.0, 1.0)

    def draw(self, chances, pattern, own, releases, rng):
        """Row of a donor for each record of each release."""
        ends = np.cumsum(chances, axis=1)
        ends = ends / ends[:, -1:]
        starts = np.hstack([np.zeros((len(ends), 1)), ends[:, :-1]])
        # one list for all patterns, in which those of pattern k lie between k and k + 1
        together = (ends + np.arange(len(ends))[:, None]).ravel()
        where = places(pattern, releases, rng)
        cell = np.searchsorted(together, pattern + where, side="right")
        cell = np.minimum(cell - pattern * len(self.cells), len(self.cells) - 1)
        low, high = starts[pattern, cell], ends[pattern, cell]
        share = (where - low) / np.maximum(high - low, np.finfo(float).tiny)
        share = np.clip(share, 0.0, np.nextafter(1.0, 0.0))
        # any donor of the cell, unless there is one of the own stratum
        chosen = self._among(cell, share, 0 * self.stratum, 0)[0]
        near, found = self._among(cell, share, self.stratum, own)
        return np.where(found, near, chosen)

    def _among(self, cell, share, strata, stratum):
        """A donor of each cell and stratum, and whether there is one."""
        order = np.lexsort((strata, self.cell))
        keys = (self.cell * (len(self.base) + 1) + strata)[order]
        wanted = cell * (len(self.base) + 1) + stratum
        first = np.searchsorted(keys, wanted, side="left")
        count = np.searchsorted(keys, wanted, side="right") - first
        place = first + (share * count).astype(np.intp)
        return order[np.minimum(place, order.size - 1)], count > 0


def _donors(published, strata, number, kinds):
    codes = np.transpose([kind.codes(published[name]) for name, kind in kinds.items()])
    values, weights = [published.astype(object)], [np.ones(len(published))]
    for place, (name, kind) in enumerate(kinds.items()):
        for empty in np.setdiff1d(np.arange(kind.size), codes[:, place]):
            far = np.abs(codes[:, place] - empty)
            # the records of the nearest bin, with a value of this one
            near = published[far == far.min()].astype(object)
            values.append(near.assign(**{name: kind.typical(empty)}))
            weights.append(np.full(len(near), _NOBODY / len(near)))
    values = pd.concat(values, ignore_index=True)
    values = values.astype(
        {name: float for name, kind in kinds.items() if kind.numeric}
    )
    weights = np.concatenate(weights)
    codes = np.transpose([kind.codes(values[name]) for name, kind in kinds.items()])
    cells, cell = np.unique(codes, axis=0, return_inverse=True)
    shared = np.bincount(cell, weights)
    base = np.tile(_SHARED * shared / shared.sum(), (number, 1))
    np.add.at(base, (strata, cell[: strata.size]), 1.0)
    # those made up belong to no stratum
    stratum = np.full(len(values), number)
    stratum[: strata.size] = strata
    return _Donors(values, stratum, cell, cells, base / base.sum(axis=1, keepdims=True))


# ---- margins -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _View:
    """What a margin sees of a record's confidential values: a class, and a score within it."""

    classes: tuple
    scored: tuple
    scores: list = field(compare=False)

    @classmethod
    def of(cls, inside, alone, kinds, scores):
        places = {name: place for place, name in enumerate(kinds)}
        # of a column alone its bins, else only its score
        scored = [name for name in inside if kinds[name].numeric and not alone]
        return cls(
            tuple([(places[n], kinds[n].size) for n in inside if n not in scored]),
            tuple([places[n] for n in scored]),
            [scores[n] for n in scored],
        )

    @property
    def size(self):
        return int(np.prod([size for _, size in self.classes]))

    @property
    def moved(self):
        """By how much one record can move all totals together."""
        return _UNIT if self.scores else 1

    def of_codes(self, codes, stratum):
        """Class of each record, and its score in whole units."""
        kind = np.zeros(len(codes), dtype=np.intp)
        for place, size in self.classes:
            kind = kind * size + codes[:, place]
        score = np.full(len(codes), float(self.moved))
        for place, scores in zip(self.scored, self.scores, strict=True):
            score *= scores[stratum, codes[:, place]]
        return kind, np.rint(score).astype(np.int64)

    def totals(self, level, codes, stratum):
        """Sum of the scores by level and class."""
        kind, score = self.of_codes(codes, stratum)
        totals = np.zeros((level.max() + 1, self.size), dtype=np.int64)
        np.add.at(totals, (level, kind), score)
        return totals


def _seen(names, public, kinds, scores):
    """A margin's view of the confidential columns, and every record's public level."""
    outside = [name for name in names if name not in kinds]
    inside = [name for name in names if name in kinds]
    level = np.zeros(len(public), dtype=np.intp)
    if outside:
        level = public.groupby(outside, observed=True).ngroup().to_numpy()
    return _View.of(inside, len(names) == 1, kinds, scores), level


def _raked(views, levels, noisy, rates, donors, own, change):
    """Chances of each cell for each pattern of public values, and the pattern of each record.

    They are nearest to the published ones in Kullback-Leibler divergence, penalized by what the
    totals differ from the noisy ones.
    """
    from scipy.linalg import cholesky, solve_triangular
    from scipy.optimize import minimize

    patterns, pattern, counts = np.unique(
        np.column_stack([own, levels]), axis=0, return_inverse=True, return_counts=True
    )
    stratum, levels = patterns[:, 0], patterns[:, 1:]
    # every total belongs to one column of levels and to one of features
    different = [*dict.fromkeys(views)]
    starts = np.cumsum([0, *[view.size for view in different]])
    firsts = np.cumsum([0, *levels.max(axis=0) + 1])
    a, b = np.concatenate(
        [
            np.indices(one.shape).reshape(2, -1)
            + [[first], [starts[different.index(view)]]]
            for one, first, view in zip(noisy, firsts, views, strict=False)
        ],
        axis=1,
    )
    at_level = _indicators(levels + firsts[:-1], firsts[-1])
    members = [np.flatnonzero(stratum == one) for one in range(len(donors.base))]
    at_level = [at_level[rows] for rows in members]
    counts = [counts[rows, None] for rows in members]
    features = []
    for one in range(len(members)):
        kinds, scores = zip(
            *[view.of_codes(donors.cells, one) for view in different], strict=True
        )
        units = [[view.moved] for view in different]
        features.append(
            _indicators(
                np.transpose(kinds) + starts[:-1],
                starts[-1],
                np.transpose(scores / np.array(units)),
            )
        )

    def totals(chances, power=1):
        parts = zip(at_level, counts, chances, features, strict=True)
        return sum([x.T @ (n * (p @ f**power)) for x, n, p, f in parts])[a, b]

    def tilted(logs):
        factors, chances, value = np.zeros((firsts[-1], starts[-1])), [], 0.0
        factors[a, b] = logs
        for x, n, f, base in zip(at_level, counts, features, donors.base, strict=True):
            tilt = (x @ factors) @ f.T
            highest = tilt.max(axis=1, keepdims=True)
            mine = base * np.exp(tilt - highest)
            norm = mine.sum(axis=1, keepdims=True)
            chances.append(mine / norm)
            value += np.sum(n * (np.log(norm) + highest))
        return chances, value

    published = tilted(np.zeros(a.size))[0]
    information = np.maximum(totals(published, 2), 0.5)
    records = sum([x.T @ n[:, 0] for x, n in zip(at_level, counts, strict=True)])
    # the totals are in units of what one record can move
    moved = np.array([view.moved for view in views])
    noise = noise_variance(moved, rates) / moved**2
    noise = np.repeat(noise, [one.size for one in noisy])
    expected = (change * information) ** 2 + (_ADDED * records[a]) ** 2
    penalty = information * noise / expected
    # covariances of the totals: the steps of the minimization are uncorrelated
    curvature = np.diag(penalty + 1e-6 * information)
    for x, n, f, base in zip(at_level, counts, features, donors.base, strict=True):
        together = (x.T @ (n * x))[np.ix_(a, a)]
        mean = base @ f
        covariance = (f.T @ (base[:, None] * f)) - np.outer(mean, mean)
        curvature += together * covariance[np.ix_(b, b)]
    root = cholesky(curvature)
    wanted = np.concatenate([one.ravel() for one in noisy])

    def distance(steps):
        logs = solve_triangular(root, steps)
        chances, value = tilted(logs)
        gradient = totals(chances) - wanted + penalty * logs
        value += penalty @ logs**2 / 2 - wanted @ logs
        return value, solve_triangular(root, gradient, trans="T")

    found = minimize(
        distance,
        np.zeros(a.size),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 200, "ftol": 0.0, "gtol": _NEAR},
    )
    chances = np.empty((len(patterns), len(donors.cells)))
    for rows, one in zip(
        members, tilted(solve_triangular(root, found.x))[0], strict=True
    ):
        chances[rows] = one
    return chances, pattern


def _indicators(columns, size, values=None):
    """Sparse matrix with one entry for each of the ``columns`` of a row."""
    from scipy.sparse import csr_array

    rows = np.repeat(np.arange(len(columns)), columns.shape[1])
    values = np.ones(columns.size) if values is None else values.ravel()
    found = csr_array((values, (rows, columns.ravel())), shape=(len(columns), size))
    return found.toarray() if len(columns) * size < _FULL else found
