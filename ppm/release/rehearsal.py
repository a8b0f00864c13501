"""A rehearsal of a release on published records, of which one half plays the confidential table."""

import itertools
import warnings
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from ppm.checks import Brief, check_count, shown
from ppm.release.measure import STATISTICS
from ppm.release.mechanisms import (
    Mechanism,
    Published,
    Records,
    clipped,
    columns_of,
    draw,
)
from ppm.seeds import generator, streams

# a level with fewer records has no mean worth rehearsing
_SMALLEST = 20
# fractions of its multiples are spread evenly between 0 and 1
_GOLDEN = 5**0.5 / 2 - 0.5
#: What a release may be for, and what is then to be small, in per cent.
GOALS = {
    "levels": "average error of the means of levels",
    "change": "RMSE of the share of a change that is shown",
    "tail": "error of the mean of the top tenth",
}
PUBLISHED, RECORDS = ("published records", 0.0), ("the records, unprotected", np.inf)


@dataclass(frozen=True, eq=False, repr=False)
class Rehearsal(Brief):
    """Errors of mechanisms in a rehearsal, between both ends; computed from public things alone.

    Attributes
    ----------
    plan : ppm.release.ReleasePlan
        The plan that was rehearsed.
    tried : dict
        Plans by mechanism and ε, as the rows of the table name them.
    runs : pandas.DataFrame
        Errors of each repeat, in per cent, and shares of changes that were shown.
    settings : dict
        Numbers of repeats and records, levels, the column that is changed, names of the changes.
    """

    plan: object
    tried: dict
    runs: pd.DataFrame
    settings: dict
    _public = ("settings",)

    @property
    def table(self):
        """Errors by mechanism and ε, in per cent, the two ends first and last.

        ``levels``, ``worst level``, ``mean``, percentiles and ``tail``, the mean of the top tenth,
        are averages of absolute errors over repeats, changed tables and confidential columns.
        ``change`` is the root mean squared error of the share of a change that a release shows,
        over all changes; for each change there are the median share, 100 at best, and its RMSE.
        """
        changes = self.settings["changes"]
        squares = (self.runs[changes] - 100) ** 2
        runs = self.runs.assign(**squares.add_suffix(", RMSE"))
        by = runs.groupby(["mechanism", "ε"], sort=False)
        table = by.mean().drop(columns="repeat")
        table[changes] = by[changes].median()
        roots = ["change", *squares.add_suffix(", RMSE")]
        return table.assign(**table[roots] ** 0.5)

    def surely_nearer(self, row, goal):
        """Whether a row is nearer than published records alone, by two standard errors."""
        losses = self.runs.pivot(
            index="repeat", columns=["mechanism", "ε"], values=goal
        )
        gained = losses[PUBLISHED] - losses[row]
        return bool(gained.mean() > 2 * gained.sem())

    def best(self, goal, *, epsilon=None):
        """The plan whose mechanism was nearest for a goal, with what was rehearsed noted in it.

        Warns where it is not surely nearer than published records alone, at ε = 0, and where a
        setting is at the edge of what was tried.

        Parameters
        ----------
        goal : {"levels", "change", "tail"}
            What the release is for.
        epsilon : float, optional
            One of those rehearsed; by default that of the plan.
        """
        if goal not in GOALS:
            raise ValueError(
                f"goal must be one of {', '.join(GOALS)}; got {shown(goal)}"
            )
        epsilon = self.plan.epsilon if epsilon is None else epsilon
        errors = self.table[goal]
        rows = [row for row in self.tried if row[1] == epsilon]
        if not rows:
            raise ValueError(f"epsilon must be one that was rehearsed; got {epsilon}")
        best = min(rows, key=errors.get)
        notes = [*_edges(*(self.tried[row].mechanism for row in (best, *rows)))]
        if not self.surely_nearer(best, goal):
            notes.append("not surely nearer than published records alone")
        for note in notes:
            warnings.warn(f"{best[0]}: {note}", stacklevel=2)
        rows = (PUBLISHED, *rows, RECORDS)
        noted = self.settings | {"goal": goal, "notes": notes}
        noted["errors"] = {row[0]: errors[row].round(4) for row in rows}
        return replace(self.tried[best], rehearsed=noted)

    def plot(self):
        """Draw the errors for each goal, in per cent; returns the figure of matplotlib."""
        table = self.table[[*GOALS]].rename(columns=GOALS)[::-1]
        table.index = [f"{name}, ε = {epsilon:g}" for name, epsilon in table.index]
        size = (15, 1.5 + 0.3 * len(table))
        shared = {"layout": (1, -1), "sharex": False, "sharey": True, "figsize": size}
        axes = table.plot.barh(subplots=True, legend=False, xlabel="%", **shared)
        axes[0, 0].figure.set_layout_engine("constrained")
        return axes[0, 0].figure


def _edges(best, *tried):
    """Sentences on settings that are the lowest or the highest of those tried with this kind."""
    for name, value in vars(best).items():
        values = [vars(other)[name] for other in tried if type(other) is type(best)]
        if isinstance(value, int | float) and len({*values}) > 1:
            if value in (min(values), max(values)):
                yield f"{name} = {value} is at the edge of what was tried"


def rehearse(
    plan,
    alternatives=(),
    *,
    epsilons=None,
    changes=None,
    levels=None,
    records=None,
    repeats=20,
    random_seed=None,
):
    """Try mechanisms on random halves of the published table.

    One half of each group plays the published table; the confidential one is drawn from the
    other half, as it is and with known changes.

    Parameters
    ----------
    alternatives : ppm.release.Mechanism or sequence of them
        What to try beside the mechanism of this plan.
    epsilons : sequence of float, optional
        Values of ε to try; by default that of this plan.
    changes : dict, optional
        Changes by name: functions of a table that return other values of the first confidential
        column of numbers, or pairs of such a function and of the statistic of these values that
        shows the change; by default the mean in all groups that changed. Without this argument
        they are a group × 0.8, a tenth that becomes 0, the top tenth × 1.3 and a spread × 1.25;
        whole numbers stay whole ones.
    levels : str or sequence of str, optional
        Columns of ``groups`` or ``public`` for whose levels users will ask for means; by default
        the groups.
    records : int, optional
        Size of the confidential table, if it is public; by default that of the published one.
    repeats : int, default 20
        Number of random halves, 2 or more.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness.

    Returns
    -------
    ppm.release.Rehearsal
    """
    # shown in a terminal; ``import ppm`` does without it
    from tqdm import tqdm

    levels = columns_of(
        "levels, of groups or public",
        plan.groups if levels is None else levels,
        plan.published[[*plan.groups, *plan.public]],
    )
    if isinstance(alternatives, Mechanism):
        alternatives = [alternatives]
    changes = default_changes(plan) if changes is None else changes
    records = check_count("records", records or len(plan.published))
    repeats = check_count("repeats", repeats, at_least=2)
    # drawn again within the levels that are asked for, so that these are right
    within = [*dict.fromkeys((*plan.groups, *levels))]
    once = replace(plan, releases=1, rehearsed=None)
    tried = {
        (str(mechanism), float(epsilon)): replace(
            once, mechanism=mechanism, epsilon=epsilon
        )
        for mechanism in (plan.mechanism, *alternatives)
        for epsilon in epsilons or [plan.epsilon]
    }
    first = {PUBLISHED: replace(once, mechanism=Published(), epsilon=0)}
    last = {RECORDS: replace(once, mechanism=Records(), epsilon=1, groups=within)}
    everything, runs = first | tried | last, []
    with tqdm(total=repeats * len(everything), unit=" plans", disable=None) as bar:
        for repeat, seed in enumerate(streams(random_seed, repeats)):
            for_table, *seeds = streams(seed, 2 + len(changes))
            half, table = _halves(plan, records, generator(for_table))
            tables = {"": (table, None)}
            for name, change in changes.items():
                tables[name] = _changed(plan, table, change)
            for (mechanism, epsilon), variant in everything.items():
                of_half = replace(variant, published=half)
                errors = _run(of_half, tables, seeds, levels)
                where = {"mechanism": mechanism, "ε": epsilon, "repeat": repeat}
                runs.append(where | errors)
                bar.update()
    tried = {
        row: replace(variant, releases=plan.releases) for row, variant in tried.items()
    }
    settings = {"repeats": repeats, "records": records, "levels": levels}
    settings |= {"changed": _changed_column(plan), "changes": [*changes]}
    return Rehearsal(plan, tried, pd.DataFrame(runs), settings)


def _run(plan, tables, seeds, levels):
    """Errors of a plan's releases, averages over all tables, and the shares of changes shown."""
    errors, drawn, shares = [], {}, {}
    for (name, (table, statistic)), seed in zip(tables.items(), seeds, strict=True):
        drawn[name] = draw(plan, table, random_seed=seed)[0]
        errors.append(_errors(plan, table, drawn[name], levels))
        if statistic:
            change = statistic(table) - statistic(tables[""][0])
            shown = statistic(drawn[name]) - statistic(drawn[""])
            # in whole numbers a median or a quartile may stay where it was
            shares[name] = 100 * shown / change if change else np.nan
    squares = [(share - 100) ** 2 for share in shares.values() if share == share]
    averages = pd.DataFrame(errors).mean().to_dict()
    return averages | {"change": np.mean(squares) if squares else np.nan} | shares


def _halves(plan, records, rng):
    """Published records of one half, and a table drawn from the other; halves of each group."""
    published = plan.published.astype(dict.fromkeys(plan.limits, np.float64))
    order = pd.Series(rng.random(len(published)))
    second = order.groupby(plan.labels(published)).rank() % 2 == 0
    other = published[second]
    rows = rng.integers(len(other), size=records)
    return published[~second], clipped(plan, other.iloc[rows])


def default_changes(plan):
    """A change of a group's level and three of shape, of the first confidential column of numbers.

    Values of a changed table, and the statistic of values that shows the change.
    """
    column = _changed_column(plan)
    if column is None:
        return {}
    published = plan.published[column]
    largest = pd.Series(plan.labels(plan.published)).mode()[0]
    low = published.abs().median() / 100
    whole = (published % 1 == 0).all()

    def kept(table, changed):
        """Whole numbers again, whose mean is that of the changed values."""
        if not whole:
            return changed
        # rows are in random order
        spread = table.index * _GOLDEN % 1
        return np.floor(changed + spread).where(changed != table[column], table[column])

    def level(table):
        members = plan.labels(table) == largest
        return kept(table, table[column].mask(members, 0.8 * table[column]))

    def raised(table):
        top = table[column] > table[column].quantile(0.9)
        return kept(table, table[column].mask(top, 1.3 * table[column]))

    def spread(table):
        return kept(table, 1.25 * table[column] - 0.25 * table[column].median())

    return {
        f"{largest or 'all'} × 0.8": level,
        "a tenth becomes 0": (
            lambda t: t[column].where(t.index % 10 > 0, 0.0),
            lambda values: np.mean(np.abs(values) <= low),
        ),
        "top tenth × 1.3": (raised, top_tenth),
        "spread × 1.25": (
            spread,
            lambda values: np.subtract(*np.quantile(values, [0.75, 0.25])),
        ),
    }


def _changed_column(plan):
    """The first confidential column of numbers, in the order of ``confidential``."""
    return next(iter(plan.limits), None)


def _changed(plan, table, change):
    """A changed table, and the statistic of a table that shows the change."""
    column = _changed_column(plan)
    function, statistic = change if isinstance(change, tuple) else (change, None)
    changed = clipped(plan, table.assign(**{column: function(table)}))
    labels = plan.labels(table)
    # of the groups that changed, unless something else is to be shown
    moved = {*labels[changed[column] != table[column]]}
    rows = slice(None) if statistic else [label in moved for label in labels]
    statistic = statistic or np.mean
    return changed, lambda other: statistic(other[column].to_numpy(np.float64)[rows])


def top_tenth(values, axis=-1):
    """Mean of the largest tenth of values along the last axis."""
    return np.sort(values)[..., -max(1, values.shape[-1] // 10) :].mean(axis=axis)


def _errors(plan, table, synthetic, levels):
    """Errors of a release in per cent, averages over confidential columns."""
    both = _numbers(plan, table), _numbers(plan, synthetic)
    truth, _ = both
    least = np.abs(truth).mean(axis=1) / 100

    def error(statistic, rows=slice(None), columns=None):
        true, drawn = (statistic(numbers[:columns, rows], axis=-1) for numbers in both)
        sizes = pd.Series(np.abs(true))
        # what is nearly 0 has no relative error
        known = sizes.where(sizes > least[:columns])
        return (100 * np.abs(drawn - true) / known).mean()

    groups = (table.groupby(level, observed=True).indices for level in levels)
    means = [
        error(np.mean, rows)
        for rows in itertools.chain(
            *(rows_by_label.values() for rows_by_label in groups)
        )
        if rows.size >= _SMALLEST
    ] or [error(np.mean)]
    shapes = {
        name: error(statistic, columns=len(plan.limits))
        for name, statistic in SHAPES.items()
    }
    return {"levels": np.mean(means), "worst level": np.max(means)} | shapes


# statistics in the unit of the values
SHAPES = STATISTICS | {"tail": top_tenth}
del SHAPES["Gini coefficient"]


def _numbers(plan, table):
    """Confidential columns of numbers, and indicators of categories: (columns, records)."""
    rows = [table[name] for name in plan.limits]
    for name in plan.confidential:
        if name not in plan.limits:
            rows += [table[name] == label for label in plan.published[name].unique()]
    return np.array(rows, dtype=np.float64)
