"""A rehearsal of a release on published records, of which one half plays the confidential table."""

import warnings
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from ppm.brief import Brief
from ppm.checks import check_count, shown
from ppm.plan.mechanisms import Published, Records, columns_of
from ppm.seeds import generator, streams
from ppm.synthesizers.progress import progress_bar

# a level with fewer records has no mean worth rehearsing
_SMALLEST = 20
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
    plan : ppm.ReleasePlan
        The plan that was rehearsed.
    tried : dict
        Plans by mechanism and ε, as the rows of the table name them.
    runs : pandas.DataFrame
        Errors of each repeat, in per cent, and shares of changes that were shown.
    settings : dict
        Numbers of repeats and records, levels, names of the changes.
    """

    plan: object
    tried: dict
    runs: pd.DataFrame
    settings: dict
    _public = ("settings",)

    @property
    def table(self):
        """Errors by mechanism and ε, in per cent, the two ends first and last.

        ``levels``, ``worst level``, ``mean``, ``median``, percentiles and ``tail`` are averages of
        absolute errors over repeats, changed tables and confidential columns. ``change`` is the
        root mean squared error of the share of a change that a release shows, over all changes; for
        each change there are the median share, 100 at best, and its RMSE.
        """
        changes = self.settings["changes"]
        squares = (self.runs[changes] - 100) ** 2
        runs = self.runs.assign(**squares.add_suffix(", RMSE"))
        by = runs.groupby(["mechanism", "ε"], sort=False)
        found = by.mean().drop(columns="repeat")
        found[changes] = by[changes].median()
        roots = ["change", *squares.add_suffix(", RMSE")]
        return found.assign(**found[roots] ** 0.5)

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
        errors, rows = (
            self.table[goal],
            [row for row in self.tried if row[1] == epsilon],
        )
        if not rows:
            raise ValueError(f"epsilon must be one that was rehearsed; got {epsilon}")
        best = min(rows, key=errors.get)
        notes = [*_edges(*(self.tried[row].mechanism for row in (best, *rows)))]
        if not self.surely_nearer(best, goal):
            notes.append("not surely nearer than published records alone")
        for note in notes:
            warnings.warn(f"{best[0]}: {note}", stacklevel=2)
        found = {row[0]: errors[row].round(4) for row in (PUBLISHED, *rows, RECORDS)}
        noted = self.settings | {"goal": goal, "errors": found, "notes": notes}
        return replace(self.tried[best], rehearsed=noted)

    def plot(self):
        """Draw the errors for each goal; returns the axes of matplotlib."""
        table = self.table[[*GOALS]].rename(columns=GOALS)[::-1]
        size = (15, 1.5 + 0.3 * len(table))
        settings = {"layout": (1, -1), "sharey": True, "figsize": size}
        return table.plot.barh(subplots=True, legend=False, xlabel="", **settings)


def _edges(best, *tried):
    """Sentences on settings that are the lowest or the highest of those tried with this kind."""
    for name, value in vars(best).items():
        values = [vars(one)[name] for one in tried if type(one) is type(best)]
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
    progress=None,
):
    """Try mechanisms on random halves of the published table.

    One half of each group plays the published table; the confidential one is drawn from the
    other half, as it is and with known changes.

    Parameters
    ----------
    alternatives : sequence of ppm.plan.Mechanism
        What to try beside the mechanism of this plan.
    epsilons : sequence of float, optional
        Values of ε to try; by default that of this plan.
    changes : dict, optional
        Changes by name: functions of a table that return other values of the first confidential
        column of numbers, or pairs of such a function and of the statistic of these values that
        shows the change; by default the mean in all groups that changed. Without this argument
        they are a group × 0.8, a tenth that becomes 0, the top tenth × 1.3 and a spread × 1.25.
    levels : str or sequence of str, optional
        Public columns for whose levels users will ask for means; by default the groups.
    records : int, optional
        Size of the confidential table, if it is public; by default that of the published one.
    repeats : int, default 20
        Number of random halves, 2 or more.
    random_seed, progress
        As for :meth:`ppm.Synthesizer.fit`.

    Returns
    -------
    ppm.plan.Rehearsal
    """
    levels = columns_of(
        "levels", plan.groups if levels is None else levels, plan.published
    )
    changes = default_changes(plan) if changes is None else changes
    records = check_count("records", records or len(plan.published))
    repeats = check_count("repeats", repeats, at_least=2)
    plain = {"releases": 1, "rehearsed": None}
    tried = {
        (str(one), float(epsilon)): replace(
            plan, mechanism=one, epsilon=epsilon, **plain
        )
        for one in (plan.mechanism, *alternatives)
        for epsilon in epsilons or [plan.epsilon]
    }
    first = {PUBLISHED: replace(plan, mechanism=Published(), epsilon=0, **plain)}
    last = {RECORDS: replace(plan, mechanism=Records(), epsilon=1, **plain)}
    everything, runs = first | tried | last, []
    with progress_bar(progress, repeats * len(everything), "plans") as advance:
        for repeat, seed in enumerate(streams(random_seed, repeats)):
            for_table, *seeds = streams(seed, 2 + len(changes))
            half, table = _halves(plan, records, generator(for_table))
            tables = [
                (table, None),
                *(_changed(plan, table, c) for c in changes.values()),
            ]
            for row, one in everything.items():
                own = replace(one, published=half)
                drawn = [
                    own.draw(changed, random_seed=each)[0]
                    for (changed, _), each in zip(tables, seeds, strict=True)
                ]
                pairs = zip(tables, drawn, strict=True)
                errors = pd.DataFrame(
                    [_errors(plan, true, found, levels) for (true, _), found in pairs]
                )
                errors = errors.mean().to_dict()
                shares = dict(zip(changes, _shares(tables, drawn), strict=True))
                if shares:
                    errors["change"] = np.mean(
                        (np.array([*shares.values()]) - 100) ** 2
                    )
                where = dict(
                    zip(("mechanism", "ε", "repeat"), (*row, repeat), strict=True)
                )
                runs.append(where | errors | shares)
                advance(1)
    tried = {row: replace(one, releases=plan.releases) for row, one in tried.items()}
    settings = {"repeats": repeats, "records": records, "levels": levels}
    return Rehearsal(
        plan, tried, pd.DataFrame(runs), settings | {"changes": [*changes]}
    )


def _halves(plan, records, rng):
    """Published records of one half, and a table drawn from the other; halves of each group."""
    published = plan.published.astype(dict.fromkeys(plan.limits, np.float64))
    order = pd.Series(rng.random(len(published)))
    second = order.groupby(plan.labels(published)).rank() % 2 == 0
    other = published[second]
    rows = rng.integers(len(other), size=records)
    return published[~second], plan.clipped(other.iloc[rows])


def default_changes(plan):
    """A change of a group's level and three of shape, of the first confidential column of numbers.

    Values of a changed table, and the statistic of values that shows the change.
    """
    column = next(iter(plan.limits))
    largest = pd.Series(plan.labels(plan.published)).mode()[0]
    low = plan.published[column].abs().median() / 100
    shapes = {
        # rows are in random order
        "a tenth becomes 0": (
            lambda t: t[column].where(t.index % 10 > 0, 0.0),
            lambda values: np.mean(np.abs(values) <= low),
        ),
        "top tenth × 1.3": (
            lambda t: t[column].mask(
                t[column] > t[column].quantile(0.9), t[column] * 1.3
            ),
            top_tenth,
        ),
        "spread × 1.25": (
            lambda t: 1.25 * t[column] - 0.25 * t[column].median(),
            lambda values: np.subtract(*np.quantile(values, [0.75, 0.25])),
        ),
    }

    def level(table):
        return table[column].mask(plan.labels(table) == largest, 0.8 * table[column])

    return {f"{largest or 'all'} × 0.8": level} | shapes


def _changed(plan, table, change):
    """A changed table, and the statistic of a table that shows the change."""
    column = next(iter(plan.limits))
    function, statistic = change if isinstance(change, tuple) else (change, None)
    changed = plan.clipped(table.assign(**{column: function(table)}))
    labels = plan.labels(table)
    # of the groups that changed, unless something else is to be shown
    moved = {*labels[changed[column] != table[column]]}
    rows = slice(None) if statistic else [label in moved for label in labels]
    statistic = statistic or np.mean
    return changed, lambda one: statistic(one[column].to_numpy(np.float64)[rows])


def _shares(tables, drawn):
    """Share of each change that the releases show, in per cent."""
    for (table, statistic), synthetic in zip(tables[1:], drawn[1:], strict=True):
        change = statistic(table) - statistic(tables[0][0])
        yield 100 * (statistic(synthetic) - statistic(drawn[0])) / change


def top_tenth(values):
    """Mean of the largest tenth of values."""
    return np.sort(values)[-max(1, values.size // 10) :].mean()


def _errors(plan, table, synthetic, levels):
    """Errors of a release in per cent, averages over confidential columns."""
    truth, found = _numbers(plan, table), _numbers(plan, synthetic)
    least = truth.abs().mean() / 100

    def error(statistic):
        true, drawn = statistic(truth), statistic(found)
        # what is nearly 0 has no relative error
        sizes = true.abs().where(true.abs().gt(least))
        return (100 * (drawn - true).abs() / sizes).mean(axis=true.ndim - 1)

    by_level = [] if levels else [error(pd.DataFrame.mean)]
    for name in levels:
        large = table[name].map(table[name].value_counts()) >= _SMALLEST
        groups = table[name][large]
        by_level += [*error(lambda one, groups=groups: one.groupby(groups).mean())]
    amounts = [*plan.limits]
    return {
        "levels": np.nanmean(by_level),
        "worst level": np.nanmax(by_level),
        "mean": error(pd.DataFrame.mean),
        "median": error(lambda one: one[amounts].median()),
        "10th percentile": error(lambda one: one[amounts].quantile(0.1)),
        "90th percentile": error(lambda one: one[amounts].quantile(0.9)),
        "tail": error(lambda one: one[amounts].apply(top_tenth, raw=True)),
    }


def _numbers(plan, table):
    """Confidential columns of numbers, and an indicator of each published category."""
    columns = {name: table[name] for name in plan.limits}
    for name in plan.confidential:
        if name not in plan.limits:
            for one in plan.published[name].unique():
                columns[f"{name}: {one}"] = table[name] == one
    return pd.DataFrame(columns).astype(np.float64)
