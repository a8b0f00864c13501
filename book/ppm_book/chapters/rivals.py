"""What mechanisms make of a confidential table, in hindsight: their errors, and the changes they show.

All of it is computed from the confidential table, and stays inside an agency.
"""

import functools
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

import ppm
from ppm.release.histogram import histogram_release
from ppm_book.chapters import application, running, survey

# a level with fewer records has no mean worth comparing
SMALLEST = 50


def tenth_becomes_0(values, seed=0):
    """Values of which a random tenth is 0."""
    zero = np.random.default_rng(seed).permutation(values.size) < values.size // 10
    return np.where(zero, 0.0, values)


def top_tenth_raised(values):
    """Values of which the highest tenth is raised by three tenths."""
    return np.where(values > np.quantile(values, 0.9), 1.3 * values, values)


def spread(values):
    """Values a quarter further from their median."""
    return 1.25 * values - 0.25 * np.median(values)


def top_mean(values):
    """Means of the highest tenth, along the last axis."""
    size = max(1, values.shape[-1] // 10)
    return np.partition(values, -size, axis=-1)[..., -size:].mean(axis=-1)


def near_0(values):
    """Shares of values of 100 at most, in per cent, along the last axis."""
    return 100.0 * np.mean(np.abs(values) <= 100.0, axis=-1)


def middle_half(values):
    """Distances of the quartiles, along the last axis."""
    return np.subtract(*np.quantile(values, [0.75, 0.25], axis=-1))


def at(plan, mechanism, epsilon):
    """The plan with another mechanism, at another ε."""
    return replace(plan, mechanism=mechanism, epsilon=epsilon, rehearsed=None)


def releases_of(plan, table, number, random_seed):
    """Independent releases by a plan, each at its ε, of its column: (releases, records)."""
    (column,), mechanism = plan.confidential, plan.mechanism
    if isinstance(mechanism, ppm.release.Posterior):
        # exact draws, each of which would be a release of its own
        model, rule = mechanism.model(table, plan), mechanism.rule(plan)
        fit = ppm.fit(model, rule, draws=number, random_seed=random_seed)
        values = fit.release(number, random_seed=random_seed).values
        values = values if mechanism.back is None else mechanism.back(values)
        return np.clip(values, *plan.limits[column])
    release = functools.partial(mechanism.release, table, plan)
    if isinstance(mechanism, ppm.release.Bins):
        # what is public is computed once
        release = functools.partial(
            histogram_release,
            edges=mechanism.edges(plan),
            **mechanism.given(table, plan),
        )
    seeds = np.random.SeedSequence(random_seed).spawn(number)
    drawn = [given_column(release(random_seed=seed), column) for seed in seeds]
    return np.clip(np.concatenate(drawn), *plan.limits[column])


def given_column(release, column):
    """Values of a column, where a release has several or one."""
    synthetic = release.synthetic
    return np.asarray(
        synthetic if isinstance(synthetic, np.ndarray) else synthetic[column]
    )


def errors_of(values, truth, levels):
    """Sizes of the errors of releases (releases, records): a column for each statistic."""
    by_level = []
    for labels in levels:
        for label in np.unique(labels):
            own = labels == label
            if own.sum() >= SMALLEST:
                by_level.append(values[:, own].mean(axis=1) / truth[own].mean() - 1)
    found = {
        "average level": np.mean(np.abs(by_level), axis=0),
        "worst level": np.max(np.abs(by_level), axis=0),
    }
    for name, statistic in {
        "mean": lambda some: some.mean(axis=-1),
        "median": lambda some: np.median(some, axis=-1),
        "10th percentile": lambda some: np.quantile(some, 0.1, axis=-1),
        "90th percentile": lambda some: np.quantile(some, 0.9, axis=-1),
        "top tenth": top_mean,
    }.items():
        at = statistic(truth)
        # what is nearly 0 has no relative error
        size = abs(at) if abs(at) > 0.01 * abs(truth.mean()) else np.nan
        found[name] = np.abs(statistic(values) - at) / size
    found = pd.DataFrame(found) * 100.0
    found["near 0"] = np.abs(near_0(values) - near_0(truth))
    return found


@dataclass(frozen=True, repr=False)
class EqualBins(ppm.release.Mechanism):
    """Noisy counts in bins of equal width on the scale of a power, filled evenly."""

    bins: int
    power: float

    def release(self, table, plan, **noise):
        """Release by :func:`ppm.release.histogram.histogram_release`, without published records."""
        (column,) = plan.confidential
        lowest, highest = plan.limits[column]
        edges = np.linspace(
            *survey.power_income([lowest, highest], self.power), self.bins + 1
        )
        found = histogram_release(
            survey.power_income(table[column].to_numpy(), self.power),
            edges,
            groups=plan.labels(table),
            epsilon=plan.epsilon,
            **noise,
        )
        back = survey.income_from_power(
            found.synthetic, self.power, lowest=lowest, highest=highest
        )
        return replace(found, synthetic=back)


def changes(table, lower):
    """Changed incomes by name, and a function of incomes that shows the change.

    Two are changes of level, of the groups ``lower`` and of the smallest; three are of shape.
    """
    incomes, low = table["income"].to_numpy(), table["group"].isin(lower).to_numpy()
    small = (table["group"] == table["group"].value_counts().index[-1]).to_numpy()
    return {
        "lower × 0.8": (
            np.where(low, 0.8, 1.0) * incomes,
            lambda values: values[..., low].mean(axis=-1),
        ),
        "smallest × 0.8": (
            np.where(small, 0.8, 1.0) * incomes,
            lambda values: values[..., small].mean(axis=-1),
        ),
        "a tenth becomes 0": (tenth_becomes_0(incomes), near_0),
        "top tenth × 1.3": (top_tenth_raised(incomes), top_mean),
        "spread × 1.25": (spread(incomes), middle_half),
    }


SHAPES = ("a tenth becomes 0", "top tenth × 1.3", "spread × 1.25")


def compared(plan, mechanisms, table, changes, *, ends, number, seeds, slow=()):
    """Errors and shares of changes of several mechanisms, release by release.

    Parameters
    ----------
    plan : ppm.release.ReleasePlan
        Everything public but mechanism and ε.
    mechanisms : dict of dict
        A mechanism by its name and by ε.
    table : pandas.DataFrame
        The confidential table, with a column ``income``.
    changes : dict
        As of :func:`changes`.
    ends : (str, str, str)
        Names of the ends: published records, the records themselves, and a normal model of each
        group with nothing protected.
    number : int
        Releases of each table with each seed.
    seeds : list of int
        Each gives releases of its own.
    slow : list of str, optional
        Names of mechanisms that make a third of the releases only.

    Returns
    -------
    pandas.DataFrame
        As of :func:`hindsight`, with ``mechanism`` and ``ε``, NaN for the ends.
    """
    truth = table["income"].to_numpy()
    levels = [plan.labels(table)]
    alone, free, model = ends
    plans = {
        (name, width): at(plan, one, width)
        for name, by_width in mechanisms.items()
        for width, one in by_width.items()
    }
    plans[alone, np.nan] = at(plan, ppm.release.Published(), 0)
    # exact draws are independent: one run has those of all seeds
    exact = {
        place
        for place, one in plans.items()
        if isinstance(one.mechanism, ppm.release.Posterior)
    }
    draws = {}
    for place, one in plans.items():
        own = number * len(seeds) if place in exact else number
        own = -(-number // 3) if place[0] in slow else own
        draws[place] = by_plan(one, table, own)
    draws[free, np.nan] = lambda values, seed: again(values, levels[0], number, seed)
    draws[model, np.nan] = lambda values, seed: normals(
        values, levels[0], number, seed, plan.limits["income"]
    )
    executor = running.executor()
    tasks = [
        (draw, truth, changes, levels, seeds[:1] if place in exact else seeds, *place)
        for place, draw in draws.items()
    ]
    return pd.concat(executor.map(one_row, tasks), ignore_index=True)


def one_row(task):
    """All releases of one mechanism at one ε."""
    draw, truth, changes, levels, seeds, name, width = task
    found = hindsight(draw, truth, changes, levels, seeds=seeds)
    return found.assign(mechanism=name, ε=width)


def again(values, labels, number, seed):
    """The records of each group, drawn again."""
    rng, drawn = np.random.default_rng(seed), np.empty((number, values.size))
    for label in np.unique(labels):
        own = labels == label
        drawn[:, own] = rng.choice(values[own], (number, own.sum()))
    return drawn


def normals(values, labels, number, seed, limits, power=0.2):
    """A normal model of the power of each group's values, with nothing protected."""
    scaled = survey.power_income(values, power)
    noise = np.random.default_rng(seed).standard_normal((number, values.size))
    for label in np.unique(labels):
        own = labels == label
        noise[:, own] = scaled[own].mean() + scaled[own].std() * noise[:, own]
    lowest, highest = limits
    return survey.income_from_power(noise, power, lowest=lowest, highest=highest)


def hindsight(draws, truth, changes, levels, *, seeds):
    """Errors and shares of changes, release by release.

    Parameters
    ----------
    draws : callable
        Function of confidential values and a seed that gives releases of them.
    truth : numpy.ndarray, shape (records,)
        The confidential values.
    changes : dict
        By name, changed values and a function of values that shows the change.
    levels : list of numpy.ndarray
        Labels of the records, for whose levels there are means.
    seeds : list of int
        Each gives releases of its own of every table.

    Returns
    -------
    pandas.DataFrame
        A row for each release of each table, with its ``seed`` and ``change`` ("none" for the table
        as it is), its errors, and the ``share`` of the change that it shows beside another release
        of the table as it is, in per cent.
    """
    rows = []
    for seed in seeds:
        plain = draws(truth, [seed, 0])
        rows.append(
            errors_of(plain, truth, levels).assign(
                change="none", share=np.nan, seed=seed
            )
        )
        for number, (name, (changed, statistic)) in enumerate(changes.items(), start=1):
            other = draws(changed, [seed, number])
            moved = statistic(other) - statistic(plain)
            share = 100 * moved / (statistic(changed) - statistic(truth))
            rows.append(
                errors_of(other, changed, levels).assign(
                    change=name, share=share, seed=seed
                )
            )
    return pd.concat(rows, ignore_index=True)


def by_plan(plan, table, number):
    """Function of confidential values and a seed: releases by this plan of a table that has them."""
    (column,) = plan.confidential

    def draws(values, seed):
        return releases_of(plan, table.assign(**{column: values}), number, seed)

    return draws


def typical(found, name, width, column="average level", change="none"):
    """Median of an error over the releases of one mechanism; and its standard error."""
    return application.median(of(found, name, width, change)[column].to_numpy())


def squared(found, name, width, *changes):
    """Mean squared error of the share of changes that a release shows; and its standard error."""
    shares = pd.concat([of(found, name, width, change)["share"] for change in changes])
    errors = (shares.to_numpy() - 100.0) ** 2
    return errors.mean(), errors.std() / errors.size**0.5


def of(found, name, width, change):
    """Rows of one mechanism, at one ε, of one table."""
    at = found["ε"].isna() if np.isnan(width) else found["ε"] == width
    return found[(found["mechanism"] == name) & at & (found["change"] == change)]


def has_widths(widths):
    """What claims ask of a run: whether it has all values of ε that a sentence speaks of."""

    def has(*needed):
        return {*needed} <= {*widths} or None

    return has


def by_epsilon(found, compute, ends):
    """What a function computes of each mechanism (columns) at each ε (rows), between the ends."""
    alone, *free = ends
    places = found[["mechanism", "ε"]].drop_duplicates()
    names = [name for name in places["mechanism"].unique() if name not in ends]
    widths = [*places["ε"].dropna().unique()]
    rows = {alone: dict.fromkeys(names, compute(alone, np.nan))}
    for width in widths:
        rows[f"{width:g}"] = {name: compute(name, width) for name in names}
    rows |= {end: dict.fromkeys(names, compute(end, np.nan)) for end in free}
    return pd.DataFrame(rows).T.rename_axis("ε")
