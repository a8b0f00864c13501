"""A rehearsal of a release on published records; or, inside an agency, on the table itself."""

import copy
import functools
import warnings
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from ppm.checks import Brief, check_count, further, listed, shown
from ppm.release.drawing import rows_of
from ppm.release.means import Means
from ppm.release.measure import Truth, top_tenth
from ppm.release.mechanisms import (
    GOLDEN,
    Mechanism,
    Published,
    Records,
    categories,
    clipped,
    columns_of,
    draw,
    tables_of,
)
from ppm.release.posterior import Posterior
from ppm.seeds import generator, streams

#: What a release may be for, and what is then to be small, in per cent.
GOALS = {
    "levels": "average error of groups' means, as it is or after a drift",
    "change": "RMSE of the share of a change of level that is shown",
    "shapes": "RMSE of the share of a change of shape that is shown",
    "tail": "average error of the mean of the top tenth, as it is or after a change",
}
PUBLISHED, RECORDS = ("published records", 0.0), ("the records, unprotected", np.inf)
_AS_IT_IS = ""
_DRIFTS = ("all × 0.7", "all × 1.4")


@dataclass(frozen=True, eq=False, repr=False)
class Rehearsal(Brief):
    """Errors of mechanisms in a rehearsal, between both ends; computed from public things alone.

    A rehearsal that was given the confidential table itself is computed from that, and is as
    confidential.

    Attributes
    ----------
    plan : ppm.release.ReleasePlan
        The plan that was rehearsed.
    tried : dict
        Plans by mechanism and ε, as the rows of the table name them.
    runs : pandas.DataFrame
        Errors of each repeat and table in per cent, and the share of its change that was shown.
    settings : dict
        Numbers of repeats and records, levels, the column that is changed, names of the changes,
        and groups whose means are left out.
    """

    plan: object
    tried: dict
    runs: pd.DataFrame
    settings: dict
    _public = ("plan",)

    @functools.cached_property
    def losses(self):
        """What is to be small for each goal, of each repeat: by mechanism, ε and repeat."""
        by = ["mechanism", "ε", "repeat"]
        runs = self.runs
        level, shape = (
            runs["change"].isin(self.settings[kind])
            for kind in ("of level", "of shape")
        )
        drifted = runs["change"].isin([_AS_IT_IS, *_DRIFTS])
        as_it_is = runs["change"] == _AS_IT_IS
        squares = (runs["share"] - 100) ** 2
        found = {
            "levels": _mean(runs["levels"][drifted], runs, by),
            "change": _mean(squares[level], runs, by) ** 0.5,
            "shapes": _mean(squares[shape], runs, by) ** 0.5,
            "tail": _mean(runs["tail"], runs, by),
        }
        for name in ("levels", "worst level", "tail", "mean", "median"):
            found[f"{name}, unchanged"] = _mean(runs[name][as_it_is], runs, by)
        for name in self.settings["changes"]:
            found[name] = _mean(squares[runs["change"] == name], runs, by) ** 0.5
        order = runs[by].drop_duplicates()
        return pd.DataFrame(found).reindex(pd.MultiIndex.from_frame(order))

    @property
    def table(self):
        """Medians over repeats by mechanism and ε, in per cent, the two ends first and last.

        For each goal ("levels", "change", "shapes", "tail") there is the median of what is to be
        small, and, as "levels ±" and so on, its standard error. "levels" is an average of the table
        as it is and of two in which all values drifted, and "tail" of all tables; "levels,
        unchanged" and so on are of the table as it is. For each change there is the RMSE of the
        share that is shown.
        """
        by = self.losses.groupby(["mechanism", "ε"], sort=False)
        table = by.median()
        half = 0.5 / np.sqrt(self.settings["repeats"])
        for name in GOALS:
            low, high = (by[name].quantile(0.5 + sign * half) for sign in (-1, 1))
            table.insert(table.columns.get_loc(name) + 1, f"{name} ±", (high - low) / 2)
        return table

    def difference(self, row, other, goal):
        """Mean difference of two rows over repeats, with its standard error: (float, float)."""
        losses = self.losses[goal].unstack("repeat")
        gained = (losses.loc[row] - losses.loc[other]).dropna()
        return gained.mean(), gained.sem()

    def best(self, goal, *, epsilon=None):
        """The plan whose mechanism was nearest for a goal, with what was rehearsed noted in it.

        It is published records at ε = 0 where nothing that was tried at this ε is nearer. Warns
        where the plan is not surely nearer than published records, if nothing changed or for the
        goal, where groups are left out, and where a setting is at the edge of what was tried.

        Parameters
        ----------
        goal : {"levels", "change", "shapes", "tail"}
            What the release is for.
        epsilon : float, optional
            One of those rehearsed; by default that of the plan.
        """
        if goal not in GOALS:
            raise ValueError(
                f"goal must be one of {', '.join(GOALS)}; got {shown(goal)}"
            )
        if self.settings["of the table itself"]:
            raise ValueError(
                "best must not choose by the confidential table: rehearse on published records, "
                "without confidential"
            )
        epsilon = self.plan.epsilon if epsilon is None else epsilon
        table = self.table
        rows = [row for row in self.tried if row[1] == epsilon]
        if not rows:
            raise ValueError(f"epsilon must be one that was rehearsed; got {epsilon}")
        if table[goal][rows].isna().all():
            raise ValueError(f"goal must be one that was rehearsed; {goal} was not")
        best = min((PUBLISHED, *rows), key=table[goal].get)
        notes = [*self._notes(best, goal, table, rows)]
        if notes:
            warnings.warn(f"{best[0]}: {'; '.join(notes)}", stacklevel=2)
        noted = self.settings | {"goal": goal, "notes": notes}
        shown_rows = (PUBLISHED, *rows, RECORDS)
        noted["errors"] = {row[0]: table[goal][row].round(4) for row in shown_rows}
        plan = self.tried.get(best)
        if plan is None:
            plan = quietly(self.plan, mechanism=Published(), epsilon=0)
        return quietly(plan, rehearsed=noted)

    def _notes(self, best, goal, table, rows):
        """Sentences on a plan, those that matter most first."""
        if best == PUBLISHED:
            yield f"nothing that was tried at ε = {rows[0][1]:g} is nearer"
        else:
            apart = f"{goal}, unchanged"
            if apart in table:
                mean, error = self.difference(best, PUBLISHED, apart)
                if not mean < -2 * error:
                    yield (
                        "if nothing changed, it is not surely nearer than published records at "
                        f"ε = 0: {table[apart][best]:.1f} % against "
                        f"{table[apart][PUBLISHED]:.1f} %"
                    )
            mean, error = self.difference(best, PUBLISHED, goal)
            if not mean < -2 * error:
                yield (
                    "not surely nearer than published records at ε = 0: the difference is "
                    f"{mean:.1f} ± {2 * error:.1f} points"
                )
        changed, *others = self.plan.limits or [None]
        others += [one for one in self.plan.confidential if one not in self.plan.limits]
        if others and goal in ("change", "shapes"):
            yield (
                f"only {changed!r} was changed, the first confidential column of numbers: of "
                f"{listed(others)}, and of how columns go together, this says nothing"
            )
        if goal == "tail":
            yield "a rehearsal knows last year's highest values alone"
        mechanism = self.tried[best].mechanism if best in self.tried else None
        if goal == "levels" and isinstance(mechanism, Means):
            yield (
                "where shapes change further than was rehearsed, published records at ε = 0 may "
                "be nearer"
            )
        if left_out := self.settings["left out"]:
            yield f"means of {listed(left_out)} are left out: small groups or means near 0"
        if best in self.tried:
            edges = [*_edges(*(self.tried[row].mechanism for row in (best, *rows)))]
            if edges:
                yield f"at the edge of what was tried: {', '.join(edges)}"

    def plot(self):
        """Draw the errors for each goal, in per cent; returns the figure of matplotlib."""
        table = self.table[[*GOALS]].rename(columns=GOALS)[::-1]
        table.index = [f"{name}, ε = {epsilon:g}" for name, epsilon in table.index]
        size = (18, 1.5 + 0.3 * len(table))
        shared = {"layout": (1, -1), "sharex": False, "sharey": True, "figsize": size}
        axes = table.plot.barh(subplots=True, legend=False, xlabel="%", **shared)
        axes[0, 0].figure.set_layout_engine("constrained")
        return axes[0, 0].figure


def _mean(values, runs, by):
    return values.groupby([runs[name] for name in by], sort=False).mean()


def _edges(best, *tried):
    """Settings that are the lowest or the highest of those tried with this kind."""
    for name, value in vars(best).items():
        values = [vars(other)[name] for other in tried if type(other) is type(best)]
        numbers = [one for one in values if isinstance(one, int | float)]
        if len({*numbers}) > 1 and value in (min(numbers), max(numbers)):
            yield f"{name} = {value}"


def rehearse(
    plan,
    alternatives=(),
    *,
    epsilons=None,
    changes=None,
    levels=None,
    public=None,
    confidential=None,
    smallest=50,
    repeats=20,
    random_seed=None,
):
    """Try mechanisms on a pair of samples of the published table, as it is and changed.

    In each repeat one sample of the published table, of its size, plays the published table, and
    another plays the confidential one: drawn with replacement from the records of each group, as
    many as this year's public columns say. So both differ by as much as two years' samples would.

    Parameters
    ----------
    alternatives : ppm.release.Mechanism or sequence of them
        What to try beside the mechanism of this plan.
    epsilons : sequence of float, optional
        Values of ε to try; by default that of this plan.
    changes : dict, optional
        Changes by name: functions of a table that return other values of the first confidential
        column of numbers, which are changes of level, shown by the mean in all groups that changed;
        or pairs of such a function and of the statistic of these values that shows the change,
        which are changes of shape. Without this argument they are a drift of all values (× 0.7 and
        × 1.4) and a group × 0.8; and a tenth that becomes 0, the top tenth × 1.3 and a spread
        × 1.25; whole numbers stay whole ones.
    levels : str or sequence of str, optional
        Columns of ``groups`` or ``public`` for whose levels users will ask for means; by default
        the groups.
    public : pandas.DataFrame, optional
        This year's **public** columns, which say how many records each group has; by default those
        of the published table.
    confidential : pandas.DataFrame, optional
        The confidential table itself, in place of ``public``: for an agency that compares in
        hindsight. Nothing of this rehearsal may then be published.
    smallest : int, default 50
        Groups of fewer records are left out, because their means are too noisy in any release.
    repeats : int, default 20
        Number of repeats, 2 or more.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness.

    Returns
    -------
    ppm.release.Rehearsal
    """
    # shown in a terminal; ``import ppm`` does without it
    tqdm = further("tqdm", "extra").tqdm

    levels = columns_of(
        "levels, of groups or public",
        plan.groups if levels is None else levels,
        plan.published[[*plan.groups, *plan.public]],
    )
    if isinstance(alternatives, Mechanism):
        alternatives = [alternatives]
    changes = default_changes(plan) if changes is None else changes
    repeats = check_count("repeats", repeats, at_least=2)
    smallest = check_count("smallest", smallest)
    if public is not None and confidential is not None:
        raise ValueError("public must be left out with confidential, which has it")
    if confidential is not None:
        plan._check_columns("confidential", confidential)
        table = clipped(plan, confidential[[*plan.published]])
        table = table.astype(dict.fromkeys(plan.limits, np.float64))
    elif public is not None:
        if public.empty:
            raise ValueError("public must have a row or more")
        columns_of("public", (*plan.groups, *plan.public), public)
        plan.check_groups("public", public)
    once = quietly(plan, releases=1, rehearsed=None)
    epsilons = [float(one) for one in epsilons or [plan.epsilon]]
    tried = {}
    for mechanism in (plan.mechanism, *alternatives):
        # a mechanism warns once of what the plan makes of its settings
        with warnings.catch_warnings():
            # which the plan has told when it was made
            warnings.filterwarnings("ignore", "limits of ")
            first = replace(once, mechanism=mechanism, epsilon=epsilons[0])
        for epsilon in epsilons:
            tried[str(mechanism), epsilon] = quietly(first, epsilon=epsilon)
    within = [*dict.fromkeys((*plan.groups, *levels))]
    first = {PUBLISHED: quietly(once, mechanism=Published(), epsilon=0)}
    last = {RECORDS: quietly(once, mechanism=Records(), epsilon=1, groups=within)}
    everything, runs = first | tried | last, []
    # one number, so that all rows have the same random numbers
    entropy = int(generator(random_seed).integers(2**63))
    seeds = streams(entropy, repeats)
    if confidential is None:
        samples = [_pair(plan, public, generator(seed)) for seed in seeds]
        batches = [(*pair, 1) for pair in samples]
    else:
        batches = [(plan.published, table, repeats)]
    left_out = set()
    with tqdm(total=len(batches) * len(everything), unit=" plans", disable=None) as bar:
        for batch, (published, table, number) in enumerate(batches):
            counted, without = _groups(plan, table, levels, smallest)
            left_out |= {*without}
            # whose categories are those of the sample, as for all that is measured
            sampled = _on_sample(once, published, plan.releases)
            tables = {_AS_IT_IS: (table, None, _truths(sampled, table, counted))}
            for name, change in changes.items():
                changed, statistic = _changed(plan, table, change)
                tables[name] = changed, statistic, _truths(sampled, changed, counted)
            for (mechanism, epsilon), variant in everything.items():
                variant = _on_sample(variant, published, plan.releases)
                # others than those of the samples
                seed_of_row = np.random.SeedSequence(entropy, spawn_key=(1, batch))
                errors = _errors(variant, tables, number, seed_of_row)
                first_repeat = batch * number
                runs += [
                    {
                        "mechanism": mechanism,
                        "ε": epsilon,
                        "repeat": first_repeat + one.pop("release"),
                    }
                    | one
                    for one in errors
                ]
                bar.update()
    tried = {
        row: quietly(variant, releases=plan.releases) for row, variant in tried.items()
    }
    shapes = [name for name, change in changes.items() if isinstance(change, tuple)]
    settings = {"repeats": repeats, "records": len(table), "levels": levels}
    settings |= {"changed": _changed_column(plan), "changes": [*changes]}
    settings |= {
        "of level": [name for name in changes if name not in shapes],
        "of shape": shapes,
        "left out": sorted(left_out),
        "of the table itself": confidential is not None,
    }
    return Rehearsal(plan, tried, pd.DataFrame(runs), settings)


def quietly(plan, **changes):
    """The plan with changes, without what it has warned of already."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return replace(plan, **changes)


def _on_sample(plan, published, releases):
    """The plan of one of several releases, with a sample of its published table.

    The sample is not checked again: by chance it may lack what the table has.
    """
    one = copy.copy(plan)
    object.__setattr__(one, "published", published)
    object.__setattr__(one, "_kept", {})
    if isinstance(plan.mechanism, Posterior):
        # each of several draws has a part of ε; noisy numbers have all of it
        object.__setattr__(one, "epsilon", plan.epsilon / releases)
    return one


def _pair(plan, public, rng):
    """Two samples of the published records of each group: of their number, and of this year's."""
    published = plan.published.astype(dict.fromkeys(plan.limits, np.float64))
    # whose labels are found sooner
    published = published.astype(dict.fromkeys(plan.groups, "category"))
    # a sample may lack a category
    for name in plan.confidential:
        if name not in plan.limits:
            kinds = categories(plan, name)
            published[name] = pd.Categorical(published[name], categories=kinds)
    rows = dict(sorted(rows_of(plan.coded(published)).items()))
    this_year = rows if public is None else rows_of(plan.coded(public))
    first = [rng.choice(own, own.size) for own in rows.values()]
    second = [
        rng.choice(own, np.size(this_year.get(label, ())))
        for label, own in rows.items()
    ]
    first, second = (_numbered(published, rows) for rows in (first, second))
    return first, clipped(plan, second)


def _numbered(table, rows):
    return table.iloc[np.concatenate(rows)].reset_index(drop=True)


def _groups(plan, table, levels, smallest):
    """Numbers of the groups whose means count, of each level; and names of those that do not."""
    counted, without = {}, []
    overall = {name: np.abs(table[name]).mean() for name in plan.limits}
    for level in levels:
        labels = table[level].map(str).astype(object)
        for label, rows in labels.groupby(labels).indices.items():
            means = [abs(table[name].iloc[rows].mean()) for name in plan.limits]
            tiny = any(
                mean < size / 100
                for mean, size in zip(means, overall.values(), strict=True)
            )
            if rows.size < smallest or tiny:
                labels.iloc[rows] = None
                without.append(label)
        if labels.notna().any():
            counted[level], _ = pd.factorize(labels)
    if not counted:
        counted["all"] = np.zeros(len(table), dtype=np.intp)
    return counted, without


def _errors(plan, tables, number, seed):
    """Errors of so many releases of each table, and the shares of changes that they show."""
    found, plain = [], None
    for (name, (table, statistic, truths)), own_seed in zip(
        tables.items(), streams(seed, len(tables)), strict=True
    ):
        drawn = _drawn(plan, table, number, own_seed)
        share = np.full(number, np.nan)
        if name == _AS_IT_IS:
            plain = drawn
        else:
            change = statistic(table) - statistic(tables[_AS_IT_IS][0])
            shows = [
                statistic(one) - statistic(other)
                for one, other in zip(drawn, plain, strict=True)
            ]
            # in whole numbers a median or a quartile may stay where it was
            share = 100 * np.array(shows) / change if change else share
        sizes = _sizes(plan, truths, drawn) | {"share": share}
        for release in range(number):
            of_one = {
                measure: float(of_all[release]) for measure, of_all in sizes.items()
            }
            found.append({"release": release, "change": name} | of_one)
    return found


def _drawn(plan, table, number, seed):
    """So many releases of one table, each at the plan's ε."""
    if isinstance(plan.mechanism, Posterior) and number > 1:
        # exact draws are independent: one fit has those of all releases
        drawn = plan.mechanism.released(table, plan, random_seed=seed, draws=number)
        return tables_of(plan, table, drawn, number)
    return [draw(plan, table, random_seed=own)[0] for own in streams(seed, number)]


def _truths(plan, table, codes):
    """What releases of a table are measured by, of each confidential column."""
    names = "mean", "median", "top tenth"
    return [Truth(values, codes, names) for values in _numbers(plan, table)]


def _sizes(plan, truths, drawn):
    """Sizes of the errors of each release, in per cent, averages over confidential columns."""
    found = []
    synthetic = np.swapaxes([_numbers(plan, one) for one in drawn], 0, 1)
    for truth, releases in zip(truths, synthetic, strict=True):
        errors = {name: np.abs(of) for name, of in truth.errors(releases).items()}
        average, worst = (
            np.ma.masked_invalid(
                [errors[f"{kind} by {level}"] for level in truth.means]
            )
            for kind in ("average", "means")
        )
        found.append(
            {
                "levels": average.mean(axis=0).filled(np.nan),
                "worst level": worst.max(axis=0).filled(np.nan),
                "tail": errors["top tenth"],
                "mean": errors["mean"],
                "median": errors["median"],
            }
        )
    return {name: np.mean([one[name] for one in found], axis=0) for name in found[0]}


def default_changes(plan):
    """Changes of level and of shape, of the first confidential column of numbers.

    Values of a changed table; and, of a change of shape, the statistic of values that shows it.
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
        spread = table.index * GOLDEN % 1
        return np.floor(changed + spread).where(changed != table[column], table[column])

    def times(factor):
        return lambda table: kept(table, factor * table[column])

    def level(table):
        members = plan.labels(table) == largest
        return kept(table, table[column].mask(members, 0.8 * table[column]))

    def raised(table):
        top = table[column] > table[column].quantile(0.9)
        return kept(table, table[column].mask(top, 1.3 * table[column]))

    def spread(table):
        return kept(table, 1.25 * table[column] - 0.25 * table[column].median())

    changes = {name: times(float(name.split()[-1])) for name in _DRIFTS}
    if largest:
        changes[f"{largest} × 0.8"] = level
    return changes | {
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
    # of the groups that changed, unless something else is to be shown
    codes = plan.coded(table).codes
    moved = codes[(changed[column] != table[column]).to_numpy()]
    rows = slice(None) if statistic else np.isin(codes, moved)
    statistic = statistic or np.mean
    return changed, lambda other: statistic(other[column].to_numpy(np.float64)[rows])


def _numbers(plan, table):
    """Confidential columns of numbers, and indicators of categories: (columns, records)."""
    rows = [table[name] for name in plan.limits]
    for name in plan.confidential:
        if name not in plan.limits:
            rows += [table[name] == label for label in plan.published[name].unique()]
    return np.array(rows, dtype=np.float64)
