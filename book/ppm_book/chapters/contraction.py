"""The simulation study of section 4: its databases, and the values that the ledger compares."""

import functools
import itertools

import numpy as np
import pandas as pd
from scipy import special, stats

import ppm
from ppm_book.chapters import ledger_values
from ppm_book.chapters.ledger_values import last, measured, over, share

# one study alone is cut into so many groups of databases, whose scatter gives the errors
GROUPS = 10
# what depends on how many databases there are
EXTREME = ("smallest bound", "largest bound", "range of bounds")


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


def simulate(sizes, databases, executor=None, **settings):
    """Table of the study: the databases with these numbers, of every size."""
    tasks = list(itertools.product(sizes, databases))
    rows = (executor.map if executor else map)(
        functools.partial(one_database, **settings), tasks
    )
    columns = ["mechanism", "size", "database", "bound", "average", "removed"]
    return pd.DataFrame(itertools.chain.from_iterable(rows), columns=columns)


def not_covered(bounds, factor):
    """Share of the other databases above one's own bound times a factor ≥ 1, on average."""
    ordered = np.sort(bounds)
    within = np.searchsorted(ordered, factor * ordered, side="right")
    return (len(ordered) - within).mean() / (len(ordered) - 1)


def values(study, *, truncate_at, mean, studies=1):
    """Values of the study for the ledger.

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
    dict of str to dict
        Name -> entry. Sequences go over the sample sizes; bounds are in nats. Errors are the
        scatter over the studies or, of a single one, over ten groups of its databases. The
        smallest and the largest bound depend on the number of databases: of several studies they
        are averages, of a single one their error is the scatter of the groups themselves.
    """
    data = study.set_index(["mechanism", "size", "database"]).to_xarray()
    sizes, replicates = data["size"].values, data.sizes["database"]
    number = studies if studies > 1 else min(GROUPS, replicates // 2)
    places = np.array_split(np.arange(replicates), number)
    parts = [_statistics(data.isel(database=place)) for place in places]
    found = {
        "sizes": measured(sizes),
        "mean": measured(mean),
        "truncate_at": measured(truncate_at),
    }
    for name, value in _statistics(data).items():
        each = np.array([part[name] for part in parts])
        error = ledger_values.standard_error(each)
        if name.endswith(EXTREME):
            value, error = (
                (each.mean(axis=0), error)
                if studies > 1
                else (value, error * np.sqrt(number))
            )
        if name.startswith("share above"):
            # that nothing was seen is not known without an error
            error = np.where(
                error == 0, share(replicates * value, replicates)["error"], error
            )
        found[name] = measured(value, error)

    def distance(name, limit):
        return measured(np.abs(found[name]["value"] - limit), found[name]["error"])

    for which in ("smallest", "largest"):
        name = f"Weighted-M: {which} bound"
        found[f"Weighted-M: distance of the {which} bound from M"] = distance(
            name, truncate_at
        )
    for mechanism in data["mechanism"].values:
        bias = distance(f"{mechanism}: average of the mean", mean)
        found[f"{mechanism}: bias of the mean"] = bias
        found[f"{mechanism}: bias of the mean at the largest n"] = last(bias)
    shift = "Weighted-M: shift of the mean in standard deviations"
    found[shift] = distance(shift, 0.0)
    bounds = data["bound"].sel(mechanism="Weighted-M").values
    for limit, factor in (("M", 1.0), ("1.05 M", 1.05)):
        above, name = (
            (bounds > factor * truncate_at).sum(axis=1),
            f"share of bounds above {limit}",
        )
        found[f"Weighted-M: {name}"] = share(above, replicates)
        found[f"Weighted-M: {name} at the largest n"] = share(above[-1], replicates)
        slope = ledger_values.share_exponent(sizes, above, replicates)
        found[f"Weighted-M: exponent of the {name}"] = slope
    return found


def up_to_1000(near=None):
    """Values at n = 1,000, a size that the paper's introduction names and its study does not have.

    ``near`` has the :func:`values` of a study with this size, its largest.
    """
    unknown, found = measured([np.nan], np.nan, "no database has 1,000 records"), {}
    for mechanism in ("Weighted", "Weighted-M"):
        spread, ratio = (
            near[f"{mechanism}: {name}"] if near else unknown
            for name in ("range of bounds", "largest over smallest bound")
        )
        found[f"{mechanism}: range of bounds up to n = 1,000"] = spread
        found[f"{mechanism}: largest over smallest bound at n = 1,000"] = last(ratio)
    return found


def _statistics(data):
    """What has its error from the scatter over parts of the databases."""
    sizes, found = data["size"].values, {}
    for mechanism in data["mechanism"].values:
        part = data.sel(mechanism=mechanism)
        bounds, removed = part["bound"].values, part["removed"].values.mean(axis=1)
        spread = bounds.std(axis=1, ddof=1)
        low, middle, high = (
            bounds.min(axis=1),
            np.median(bounds, axis=1),
            bounds.max(axis=1),
        )
        named = {
            "smallest bound": low,
            "median bound": middle,
            "largest bound": high,
            "range of bounds": high - low,
            "largest over smallest bound": over(high, low),
            "spread of bounds": spread,
            "constant of contraction": stats.gmean(spread),
            "exponent of the spread of bounds": ledger_values.exponent(sizes, spread),
            "exponent of the records removed": ledger_values.exponent(sizes, removed),
            "average of the mean": part["average"].values.mean(axis=1),
        }
        for which, bound in (("median", middle), ("largest", high)):
            steps = np.diff(bound)
            named |= {
                f"growth of the {which} bound": bound[-1] - bound[0],
                f"last step of the {which} bound": steps[-1:],
                f"changes of the step of the {which} bound": np.diff(steps),
            }
        found |= {f"{mechanism}: {name}": value for name, value in named.items()}
    plain, moved = (
        data["average"].sel(mechanism=name).values
        for name in ("Unweighted", "Weighted-M")
    )
    shift = over((moved - plain).mean(axis=1), plain.std(axis=1, ddof=1))
    found["Weighted-M: shift of the mean in standard deviations"] = shift
    bounds = data["bound"].sel(mechanism="Weighted-M").values
    # the recommendation: a factor for samples above 1,000 records, a larger one below
    for which, factor, chosen in (
        ("large", 1.05, sizes > 1000),
        ("small", 1.1, sizes <= 1000),
    ):
        if chosen.any():
            name = f"share above {factor:g} times a bound, {which} n"
            found[name] = np.array([not_covered(row, factor) for row in bounds[chosen]])
    return found
