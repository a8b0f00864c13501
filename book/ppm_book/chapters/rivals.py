"""What mechanisms make of a confidential table, in hindsight: their errors, and the changes they show.

All of it is computed from the confidential table, and stays inside an agency.
"""

from dataclasses import replace

import numpy as np
import pandas as pd

import ppm

# a level with fewer records has no mean worth comparing
SMALLEST = 50
#: The errors of a release, in per cent but for the share of values near 0, in points.
ERRORS = (
    "average level",
    "worst level",
    "mean",
    "median",
    "10th percentile",
    "90th percentile",
    "top tenth",
    "near 0",
)


def lower_levels(table, column, labels, factor):
    """Values of a column, times a factor where another column has one of these labels."""
    name, wanted = labels
    return table[column].where(~table[name].isin(wanted), factor * table[column])


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


def releases_of(plan, table, number, random_seed):
    """Independent releases by a plan, each at its ε, of its column: (releases, records)."""
    (column,) = plan.confidential
    if isinstance(plan.mechanism, ppm.plan.Posterior):
        # exact draws, each of which would be a release of its own
        fit = plan.mechanism.mechanism(table, plan).run(
            draws=number, random_seed=random_seed
        )
        values = fit.synthesize(number, random_seed=random_seed).values
        back = plan.mechanism.back
        return np.clip(values if back is None else back(values), *plan.limits[column])
    seeds = np.random.SeedSequence(random_seed).spawn(number)
    drawn = [plan.mechanism.release(table, plan, random_seed=seed) for seed in seeds]
    drawn = np.concatenate([np.asarray(given_column(one, column)) for one in drawn])
    return np.clip(drawn, *plan.limits[column])


def given_column(release, column):
    """Values of a column, where a release has several or one."""
    synthetic = release.synthetic
    return synthetic if isinstance(synthetic, np.ndarray) else synthetic[column]


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
            errors_of(plain, truth, levels).assign(change="none", share=np.nan, seed=seed)
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


def released_by(plan, table):
    """Function of confidential values and a seed: releases by this plan of a table that has them."""
    (column,) = plan.confidential

    def draws(values, seed, number):
        return releases_of(plan, table.assign(**{column: values}), number, seed)

    return draws
