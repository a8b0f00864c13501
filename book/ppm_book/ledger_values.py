"""Values with their Monte Carlo errors, as the chapters hand them to the ledger."""

import numpy as np

from ppm.diagnostics import R_HAT_LIMIT

DISAGREE = f"chains behind a bound disagree (R-hat above {R_HAT_LIMIT}, or not to be told)"
# how often one release among normal ones is taken for an outlier
OUTLIER = 1e-3
# one study alone is cut into so many groups of databases, whose scatter gives the errors
GROUPS = 10
# what depends on how many databases there are
EXTREME = ("smallest bound", "largest bound", "range of bounds")


def measured(value, error=0.0, doubt=""):
    """An entry of ``page.save_values``.

    Parameters
    ----------
    value, error : float or array_like
        Numbers and their standard errors: 0 for what is exact, NaN for what is unknown.
    doubt : str, default ""
        Why the errors may not be trusted; the ledger repeats it.

    Returns
    -------
    dict
        ``value`` and ``error``, arrays of one shape, and ``doubt`` if there is one.
    """
    value = np.asarray(value, dtype=np.float64)
    entry = {"value": value, "error": np.broadcast_to(error, value.shape)}
    return {**entry, "doubt": doubt} if doubt else entry


def standard_error(parts):
    """Standard error of the average along the first dimension; NaN for a single part."""
    parts = np.asarray(parts, dtype=np.float64)
    if len(parts) < 2:
        return np.full(parts.shape[1:], np.nan)
    return parts.std(axis=0, ddof=1) / np.sqrt(len(parts))


def error_over_releases(values):
    """Standard error of the average over releases, and why it is unknown if it is.

    An average of incomes has so heavy a tail that one release can make up most of the scatter. The
    scatter of a few then says nothing about the error, and more of them would change the average.
    """
    from scipy.stats import t

    m = len(values)
    if m > 2 and np.ptp(values) > 0:
        # the test of Grubbs for one outlier among normal values
        limit = t.isf(OUTLIER / (2 * m), m - 2) ** 2
        farthest = np.abs(values - np.mean(values)).max() / np.std(values, ddof=1)
        if farthest > (m - 1) / np.sqrt(m) * np.sqrt(limit / (m - 2 + limit)):
            return np.nan, f"one of the {m} releases makes up most of their scatter"
    return standard_error(values), ""


def share(count, of):
    """A share with its standard error, which is not 0 where nothing or everything was counted."""
    typical = (np.asarray(count) + 0.5) / (of + 1.0)
    return measured(np.asarray(count) / of, np.sqrt(typical * (1.0 - typical) / of))


def last(entry):
    """The last number of a sequence."""
    return measured(entry["value"][-1], entry["error"][-1])


def over(above, below):
    """A quotient, NaN where the divisor is 0, as the bound of records without weight is."""
    above, below = np.broadcast_arrays(np.asarray(above, dtype=np.float64), below)
    return np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0)


def ratio(above, below):
    """The quotient of two independent entries."""
    value = over(above["value"], below["value"])
    error = over(np.hypot(above["error"], value * below["error"]), below["value"])
    return measured(value, error, above.get("doubt") or below.get("doubt", ""))


def exponent(sizes, values):
    """Exponent of a power law: the slope of the least-squares line through the logarithms.

    It is NaN where a value is 0, which has no logarithm.
    """
    x = np.log(sizes) - np.log(sizes).mean()
    with np.errstate(all="ignore"):
        return x @ np.log(np.where(values > 0, values, np.nan)) / (x @ x)


def share_exponent(sizes, counts, of, published=-0.5):
    """Exponent b of a probability min(1, exp(a) n^b) under which the counts are most likely.

    Its error is half the profile likelihood's interval of two standard errors, on the side that
    faces the published exponent, so that counts of 0 are no obstacle; it is NaN if everything or
    nothing was counted. The exponent is looked for between -10 and 10.
    """
    from scipy.optimize import brentq, minimize_scalar

    x, counts = np.log(sizes) - np.log(sizes).mean(), np.asarray(counts)
    below = counts < of
    if len(x) < 2 or not counts.any() or not below.any():
        return measured(np.nan, np.nan)

    def profile(b):
        # the probability is 1 only where nothing speaks against it
        top = -np.max(b * x[below]) - 1e-9

        def misfit(a):
            log_p = np.minimum(a + b * x, -1e-9)
            return -(counts @ log_p + (of - counts) @ np.log(-np.expm1(log_p)))

        return minimize_scalar(misfit, bounds=(top - 40.0, top), method="bounded").fun

    best = minimize_scalar(profile, bounds=(-10.0, 10.0), method="bounded")
    limit, end = best.fun + 2.0, np.copysign(10.0, published - best.x)
    inside = profile(end) <= limit
    end = end if inside else brentq(lambda b: profile(b) - limit, *sorted((best.x, end)))
    return measured(best.x, abs(end - best.x) / 2.0)


def share_above(bounds, factor):
    """Share of the other databases above one's own bound times a factor, averaged over all."""
    ordered = np.sort(bounds, axis=1)
    above = [row.size - np.searchsorted(row, factor * row, side="right") for row in ordered]
    return np.mean(above, axis=1) / (ordered.shape[1] - 1)


def contraction(study, *, truncate_at, mean, studies=1):
    """Values of the simulation study (section 4 of the paper).

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
    whole = _statistics(data)
    parts = [_statistics(data.isel(database=place)) for place in places]
    found = {
        "sizes": measured(sizes), "mean": measured(mean), "truncate_at": measured(truncate_at),
    }
    for name, value in whole.items():
        each = np.array([part[name] for part in parts])
        error = standard_error(each)
        if name.endswith(EXTREME) and studies > 1:
            value = each.mean(axis=0)
        elif name.endswith(EXTREME):
            error = error * np.sqrt(len(parts))
        found[name] = measured(value, error)

    def distance(name, limit):
        return measured(np.abs(found[name]["value"] - limit), found[name]["error"])

    for which in ("smallest", "largest"):
        name = f"Weighted-M: {which} bound"
        found[f"Weighted-M: distance of the {which} bound from M"] = distance(name, truncate_at)
    for mechanism in data["mechanism"].values:
        bias = distance(f"{mechanism}: average of the mean", mean)
        found[f"{mechanism}: bias of the mean"] = bias
        found[f"{mechanism}: bias of the mean at the largest n"] = last(bias)
    shift = "Weighted-M: shift of the mean in standard deviations"
    found[shift] = distance(shift, 0.0)
    bounds = data["bound"].sel(mechanism="Weighted-M").values
    for limit, factor in (("M", 1.0), ("1.05 M", 1.05)):
        above, name = (bounds > factor * truncate_at).sum(axis=1), f"share of bounds above {limit}"
        found[f"Weighted-M: {name}"] = share(above, replicates)
        found[f"Weighted-M: {name} at the largest n"] = share(above[-1], replicates)
        found[f"Weighted-M: exponent of the {name}"] = share_exponent(sizes, above, replicates)
    for name in (name for name in found if name.startswith("share above")):
        # that nothing was seen is not known without an error
        least = share(replicates * found[name]["value"], replicates)["error"]
        error = found[name]["error"]
        found[name] = measured(found[name]["value"], np.where(error == 0, least, error))
    return found


def _statistics(data):
    """What has its error from the scatter over parts of the databases."""
    sizes, found = data["size"].values, {}
    for mechanism in data["mechanism"].values:
        part = data.sel(mechanism=mechanism)
        bounds = part["bound"].values
        smallest, median, largest = (f(bounds, axis=1) for f in (np.min, np.median, np.max))
        spread = bounds.std(axis=1, ddof=1)
        removed = part["removed"].values.mean(axis=1)
        with np.errstate(divide="ignore"):
            constant = np.exp(np.log(spread).mean())
        found |= {
            f"{mechanism}: {name}": value
            for name, value in {
                "smallest bound": smallest,
                "median bound": median,
                "largest bound": largest,
                "range of bounds": largest - smallest,
                "largest over smallest bound": over(largest, smallest),
                "growth of the median bound": median[-1] - median[0],
                "growth of the largest bound": largest[-1] - largest[0],
                "last step of the median bound": np.diff(median)[-1:],
                "last step of the largest bound": np.diff(largest)[-1:],
                "changes of the step of the median bound": np.diff(median, 2),
                "changes of the step of the largest bound": np.diff(largest, 2),
                "spread of bounds": spread,
                "constant of contraction": constant,
                "exponent of the spread of bounds": exponent(sizes, spread),
                "exponent of the records removed": exponent(sizes, removed),
                "average of the mean": part["average"].values.mean(axis=1),
            }.items()
        }
    plain, moved = (
        data["average"].sel(mechanism=name).values for name in ("Unweighted", "Weighted-M")
    )
    shift = over((moved - plain).mean(axis=1), plain.std(axis=1, ddof=1))
    found["Weighted-M: shift of the mean in standard deviations"] = shift
    bounds = data["bound"].sel(mechanism="Weighted-M").values
    # the recommendation: a factor for samples above 1,000 records, a larger one below
    for which, factor, chosen in (("large", 1.05, sizes > 1000), ("small", 1.1, sizes <= 1000)):
        if chosen.any():
            name = f"share above {factor:g} times a bound, {which} n"
            found[name] = share_above(bounds[chosen], factor)
    return found
