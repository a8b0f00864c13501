"""The simulation study of section 4: its databases, and the values that the ledger compares."""

import functools
import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import special, stats

import ppm
from ppm_book.chapters import ledger_values, running
from ppm_book.chapters.ledger_values import measured, over, share

# one study alone is cut into so many groups of databases, whose scatter gives the errors
GROUPS = 10
# ends the names of values from the databases of at most 1,000 records
UP_TO_1000 = " up to n = 1,000"


def fit(y, weights, draws, rng):
    """Bound of every record, and the average of μ, under the pseudo posterior."""
    shape, rate = 0.001 + weights @ y, 0.001 + weights.sum()
    mu = rng.gamma(shape, 1 / rate, draws)
    ends = np.array([[mu.min()], [mu.max()]])
    # log p = y log μ - μ - log y!
    log_p = special.xlogy(y, ends) - ends - special.gammaln(y + 1)
    return np.abs(log_p).max(axis=0), mu.mean()


def one_database(task, *, mean, truncate_at, draws, seed):
    """The three mechanisms on one simulated database, a row for each."""
    n, number = task
    rng = np.random.default_rng([seed, n, number])
    # equal counts have equal bounds and weights
    y, times = np.unique(rng.poisson(mean, n), return_counts=True)
    bounds, average = fit(y, times, draws, rng)
    rows = [("Unweighted", n, number, bounds.max(), average, 0)]
    rules = {
        "Weighted": ppm.record_weights(bounds),
        "Weighted-M": ppm.record_weights(bounds, truncate_at=truncate_at),
    }
    for name, weights in rules.items():
        found, average = fit(y, times * weights, draws, rng)
        kept = weights > 0
        local_bound = (weights[kept] * found[kept]).max(initial=0)
        rows.append((name, n, number, local_bound, average, times[~kept].sum()))
    return rows


def simulate(sizes, databases, executor=running.HERE, **settings):
    """Table of the study: the databases with these numbers, of every size."""
    tasks = list(itertools.product(sizes, databases))
    rows = executor.map(functools.partial(one_database, **settings), tasks)
    columns = ["mechanism", "size", "database", "bound", "average", "removed"]
    return pd.DataFrame(itertools.chain.from_iterable(rows), columns=columns)


def not_covered(bounds, factor):
    """Share of the other databases above one's own bound times a factor ≥ 1, on average."""
    ordered = np.sort(bounds)
    within = np.searchsorted(ordered, factor * ordered, side="right")
    return (len(ordered) - within).mean() / (len(ordered) - 1)


class Extent(NamedTuple):
    """How large a study is."""

    sizes: np.ndarray
    databases: int  # of each size, in all studies
    studies: int  # of as many databases, one after the other


def by_scatter(value, parts, extent):
    """An entry whose error is the scatter over parts of the databases."""
    return measured(value, ledger_values.standard_error(parts))


def by_extremes(value, parts, extent):
    """The same of what depends on how many databases there are.

    Of several studies it is an average; of a single one the error is the scatter of its parts.
    """
    error = ledger_values.standard_error(parts)
    if extent.studies > 1:
        return measured(parts.mean(axis=0), error)
    return measured(value, error * np.sqrt(len(parts)))


def by_share(value, parts, extent):
    """The same of a share: that nothing was seen is not known without an error."""
    error = ledger_values.standard_error(parts)
    least = share(extent.databases * value, extent.databases)["error"]
    return measured(value, np.where(error == 0, least, error))


def by_count(count, parts, extent):
    """The share of the databases that were counted, with its own error."""
    return share(count, extent.databases)


def by_power(count, parts, extent):
    """Which power of the size such a share is most likely."""
    return ledger_values.share_exponent(extent.sizes, count, extent.databases)


def distance_from(limit, measure=by_scatter):
    """How far a number lies from a limit, with the number's error."""

    def distance(value, parts, extent):
        entry = measure(value, parts, extent)
        return entry | {"value": np.abs(entry["value"] - limit)}

    return distance


def smallest(one):
    return one["bound"].values.min(axis=1)


def median(one):
    return np.median(one["bound"].values, axis=1)


def largest(one):
    return one["bound"].values.max(axis=1)


def spread(one):
    return one["bound"].values.std(axis=1, ddof=1)


def average(one):
    return one["average"].values.mean(axis=1)


def exponent(one, values):
    return ledger_values.exponent(one["size"].values, values)


def shift(one):
    """How far the mean lies from that of Unweighted."""
    plain = one["unweighted"].values
    moved = (one["average"].values - plain).mean(axis=1)
    return over(moved, plain.std(axis=1, ddof=1))


class Statistic(NamedTuple):
    """What a study says of a mechanism: one number, or one for each size or each step up to it."""

    name: str
    of: Callable  # of the databases of the mechanism, a Dataset (size, database)
    measure: Callable = by_scatter  # of the number and its parts: value and error


def growth(which, bound, measure=by_scatter):
    """How a bound grows with the size: in all, by steps, and faster or slower."""
    return (
        Statistic(
            f"growth of the {which} bound",
            lambda one: bound(one)[-1] - bound(one)[0],
            measure,
        ),
        Statistic(
            f"steps of the {which} bound", lambda one: np.diff(bound(one)), measure
        ),
        Statistic(
            f"changes of the step of the {which} bound",
            lambda one: np.diff(bound(one), 2),
            measure,
        ),
    )


def shares(which, limit):
    """How many bounds lie above a limit, and how this depends on the size."""

    def above(one):
        return (one["bound"].values > limit).sum(axis=1)

    name = f"share of bounds above {which}"
    return (
        Statistic(name, above, by_count),
        Statistic(f"exponent of the {name}", above, by_power),
    )


def other_bounds(factor):
    """How often another database exceeds one's bound times a factor of safety."""

    def above(one):
        return np.array([not_covered(bounds, factor) for bounds in one["bound"].values])

    return Statistic(f"share above {factor:g} times a bound", above, by_share)


def statistics(truncate_at, mean):
    """What the study says of each mechanism."""
    return (
        Statistic("smallest bound", smallest, by_extremes),
        Statistic("median bound", median),
        Statistic("largest bound", largest, by_extremes),
        Statistic(
            "range of bounds", lambda one: largest(one) - smallest(one), by_extremes
        ),
        Statistic(
            "largest over smallest bound",
            lambda one: over(largest(one), smallest(one)),
            by_extremes,
        ),
        *growth("median", median),
        *growth("largest", largest, by_extremes),
        Statistic("spread of bounds", spread),
        Statistic("constant of contraction", lambda one: stats.gmean(spread(one))),
        Statistic(
            "exponent of the spread of bounds", lambda one: exponent(one, spread(one))
        ),
        Statistic(
            "exponent of the records removed",
            lambda one: exponent(one, one["removed"].values.mean(axis=1)),
        ),
        Statistic("average of the mean", average),
        Statistic("bias of the mean", average, distance_from(mean)),
        Statistic(
            "shift of the mean in standard deviations", shift, distance_from(0.0)
        ),
        Statistic(
            "distance of the smallest bound from M",
            smallest,
            distance_from(truncate_at, by_extremes),
        ),
        Statistic(
            "distance of the largest bound from M",
            largest,
            distance_from(truncate_at, by_extremes),
        ),
        *shares("M", truncate_at),
        *shares("1.05 M", 1.05 * truncate_at),
        # the recommendation: a factor for large samples, a larger one for small ones
        other_bounds(1.05),
        other_bounds(1.1),
    )


def table(study, *, truncate_at, mean, studies=1):
    """What the study says, a number a row.

    Parameters
    ----------
    study : pandas.DataFrame
        Columns ``mechanism``, ``size``, ``database`` (numbers), ``bound`` in nats, ``average`` of
        μ and ``removed`` records; as many databases of each size.
    truncate_at, mean : float
        Its M, in nats, and its μ.
    studies : int, default 1
        How many studies of as many databases follow each other in it.

    Returns
    -------
    pandas.DataFrame
        Columns ``mechanism``, ``statistic``, ``size``, ``value`` and ``error``. The size of a step
        is the one that it leads to, that of a number over all sizes is NaN; bounds are in nats.
        Errors are the scatter over the studies or, of a single one, over ten groups of its
        databases. The smallest and the largest bound depend on the number of databases: of several
        studies they are averages, of a single one their error is the scatter of the groups
        themselves.
    """
    data = study.set_index(["mechanism", "size", "database"]).to_xarray()
    data["unweighted"] = data["average"].sel(mechanism="Unweighted", drop=True)
    sizes, databases = data["size"].values, data.sizes["database"]
    extent = Extent(sizes, databases, studies)
    number = studies if studies > 1 else min(GROUPS, databases // 2)
    places = np.array_split(np.arange(databases), number)
    rows = []
    for mechanism in data["mechanism"].values:
        one = data.sel(mechanism=mechanism)
        parts = [one.isel(database=place) for place in places]
        for name, of, measure in statistics(truncate_at, mean):
            entry = measure(of(one), np.array([of(part) for part in parts]), extent)
            value = entry["value"]
            at = sizes[len(sizes) - value.size :] if value.ndim else [np.nan]
            about = {"mechanism": mechanism, "statistic": name, "size": at}
            rows.append(pd.DataFrame(about | entry))
    return pd.concat(rows, ignore_index=True)


def named(table, more=""):
    """The same for the ledger: mechanism and statistic -> entry, and the sizes of its numbers."""
    return {
        f"{mechanism}: {statistic}{more}": measured(rows["value"], rows["error"])
        | {"at": rows["size"].to_numpy()}
        for (mechanism, statistic), rows in table.groupby(
            ["mechanism", "statistic"], sort=False
        )
    }


def values(study, **settings):
    """Values of one study for the ledger: the :func:`named` ones, and what was set."""
    given = settings | {"sizes": np.unique(study["size"])}
    return named(table(study, **settings)) | {
        name: measured(value) for name, value in given.items()
    }


def unknown_at_1000():
    """Values for the ledger at a size that the paper's introduction names and its study lacks."""
    unknown = measured([np.nan], np.nan, "no database has 1,000 records")
    return {
        f"{mechanism}: {statistic}{UP_TO_1000}": unknown | {"at": [1000]}
        for mechanism in ("Weighted", "Weighted-M")
        for statistic in ("range of bounds", "largest over smallest bound")
    }
