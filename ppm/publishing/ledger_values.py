"""What the chapters hand to the ledger: numbers with their Monte Carlo errors, by name."""

import numpy as np
from ppm_book.survey.expenditure import NOT_DRAWN

from ppm import pdp
from ppm._random import generator
from ppm.diagnostics import R_HAT_LIMIT
from ppm.utility import STATISTICS, resample

_GROUPS = 10
# how often one release among normal ones is taken for an outlier
_OUTLIER = 1e-3
_REPEATS = 200
_DISAGREE = f"chains behind a bound disagree (R-hat above {R_HAT_LIMIT}, or not to be told)"


def measured(value, error=0.0, *, of=None, doubt="", sample=None):
    """An entry of a values file.

    Parameters
    ----------
    value : float or array_like
        One number or several.
    error : float or array_like, default 0
        Standard errors: 0 for what is exact, NaN for what is unknown.
    of : int, optional
        For a share: out of how many.
    doubt : str, default ""
        Why the error may not be trusted; the ledger repeats it.
    sample : tuple of int and str, optional
        How large the sample is whose growth would shrink the error, and what it consists of.

    Returns
    -------
    dict
        ``value`` and ``error``, and ``of``, ``doubt`` and ``sample`` if given, as plain numbers,
        lists and text. Numbers that are not finite become None, which JSON can hold.
    """
    value = np.asarray(value, dtype=np.float64)
    error = np.broadcast_to(np.asarray(error, dtype=np.float64), value.shape)
    entry = {"value": _plain(value), "error": _plain(error)}
    if of is not None:
        entry["of"] = int(of)
    if doubt:
        entry["doubt"] = doubt
    if sample:
        entry["sample"] = [int(sample[0]), str(sample[1])]
    return entry


def _plain(numbers):
    numbers = np.where(np.isfinite(numbers), numbers.astype(object), None)
    return numbers.tolist() if numbers.ndim else numbers.item()


def contraction_values(study, *, studies=1, random_seed=None):
    """Values of the simulation study for the ledger.

    Parameters
    ----------
    study : ppm.studies.ContractionStudy
        The study.
    studies : int, default 1
        Of how many studies of the same size, one behind the other, it consists. The smallest and
        the largest bound depend on the number of databases: with several studies their averages
        over the studies are taken. Everything else is that of all databases together.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness of the standard errors; with several studies there is none.

    Returns
    -------
    dict of str to dict
        Name -> value, with its Monte Carlo error. Sequences go over the sample sizes; bounds in
        nats.

    Raises
    ------
    ValueError
        If the databases cannot be divided evenly among the studies.

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 4. With one study, standard errors of medians,
    averages and standard deviations come from re-sampling the databases. That of a smallest or
    largest bound is the standard deviation over ten groups of databases, each with its own extreme:
    re-sampling would say too little about an extreme. With several studies, all come from the
    standard deviation over the studies.

    Examples
    --------
    >>> import ppm
    >>> study = ppm.studies.contraction([100], replicates=20, random_seed=1)
    >>> values = ppm.publishing.contraction_values(study, random_seed=2)
    >>> sorted(values["Weighted-M: average of the mean"])
    ['error', 'sample', 'value']
    """
    data = study.dataset
    sizes = data["size"].values
    replicates = data.sizes["replicate"]
    if studies < 1 or replicates % studies:
        raise ValueError(f"studies must divide the {replicates} databases evenly; got {studies}")
    errors = _Errors(studies, generator(random_seed))
    extremes, over_sizes = errors.extremes, errors.over_sizes
    found = {
        "sizes": measured(sizes),
        "replicates": measured(replicates),
        "mean": measured(study.mean),
        "truncate_at": measured(study.truncate_at),
    }
    for mechanism in data["mechanism"].values:
        bounds = data["local_bound"].sel(mechanism=mechanism).values
        found[f"{mechanism}: smallest bound"] = extremes(bounds, np.min)
        found[f"{mechanism}: median bound"] = over_sizes(bounds, np.median)
        found[f"{mechanism}: largest bound"] = extremes(bounds, np.max)
        found[f"{mechanism}: range of bounds"] = extremes(bounds, np.ptp)
        found[f"{mechanism}: largest over smallest bound"] = extremes(bounds, _ratio_of_extremes)
        for which in ("median", "largest"):
            entry = found[f"{mechanism}: {which} bound"]
            found[f"{mechanism}: growth of the {which} bound"] = _difference(entry, 0)
            found[f"{mechanism}: last step of the {which} bound"] = _difference(entry, -2)
            found[f"{mechanism}: changes of the step of the {which} bound"] = _bends(entry)
        found[f"{mechanism}: spread of bounds"] = over_sizes(bounds, _spread)
        spread = found[f"{mechanism}: spread of bounds"]
        found[f"{mechanism}: constant of contraction"] = _geometric_mean(spread)
        averages = data["average_mean"].sel(mechanism=mechanism).values
        found[f"{mechanism}: average of the mean"] = over_sizes(averages, np.mean)
        found[f"{mechanism}: bias of the mean"] = _absolute(
            found[f"{mechanism}: average of the mean"], study.mean
        )
        found[f"{mechanism}: bias of the mean at the largest n"] = _last(
            found[f"{mechanism}: bias of the mean"]
        )
        removed = data["records_removed"].sel(mechanism=mechanism).values
        found[f"{mechanism}: records removed"] = over_sizes(removed, np.mean)
        found[f"{mechanism}: share of records removed"] = over_sizes(
            removed / sizes[:, None], np.mean
        )
        for factor in (1.0, 1.05):
            above = np.sum(bounds > factor * study.truncate_at, axis=1)
            name = "M" if factor == 1.0 else f"{factor:g} M"
            found[f"{mechanism}: share of bounds above {name}"] = _share(above, replicates)
            found[f"{mechanism}: share of bounds above {name} at the largest n"] = _share(
                above[-1], replicates
            )
    averages = data["average_mean"]
    plain = averages.sel(mechanism="Unweighted").values
    shift = averages.sel(mechanism="Weighted-M").values - plain
    unit = plain.std(axis=1, ddof=1)
    away = _over(np.abs(shift.mean(axis=1)), unit)
    found["Weighted-M: shift of the mean in standard deviations"] = measured(
        # the unit is estimated as well; averages of draws are close to normal
        away,
        np.hypot(
            _over(_error_of_average(shift.T), unit), away / np.sqrt(2.0 * (replicates - 1))
        ),
    )
    # the recommendation: a factor for samples above 1,000 records, a larger one below
    for large, factor in ((True, 1.05), (False, 1.10)):
        chosen = [size for size in sizes if (size > 1000) == large]
        if chosen:
            held = data["local_bound"].sel(mechanism="Weighted-M", size=chosen).values
            entry = over_sizes(held, _share_above(factor))
            # that nothing was seen, or in no study by itself, is not known without an error
            least = _share(replicates * np.array(entry["value"]), replicates)["error"]
            entry["error"] = [a or b for a, b in zip(entry["error"], least, strict=True)]
            found[f"share above {factor:g} times a bound, {'large' if large else 'small'} n"] = (
                entry
            )
    for entry in found.values():
        if np.any(np.asarray(entry["error"], dtype=np.float64) > 0):
            entry["sample"] = [replicates, "databases of each size"]
    return found


class _Errors:
    """Statistics of every row of databases with their errors: of one study, or over several."""

    def __init__(self, studies, rng):
        self.studies = studies
        self.rng = rng

    def _by_study(self, values, statistic):
        return np.stack([statistic(v, axis=1) for v in np.split(values, self.studies, axis=1)])

    def extremes(self, bounds, statistic):
        """A statistic that depends on how many databases there are."""
        if self.studies > 1:
            parts = self._by_study(bounds, statistic)
            return measured(parts.mean(axis=0), _error_of_average(parts))
        groups = np.array_split(bounds, min(_GROUPS, bounds.shape[1]), axis=1)
        parts = np.stack([statistic(group, axis=1) for group in groups])
        return measured(statistic(bounds, axis=1), parts.std(axis=0, ddof=1))

    def over_sizes(self, values, statistic):
        """A statistic that does not."""
        if self.studies > 1:
            error = _error_of_average(self._by_study(values, statistic))
        else:
            error = [_resampled_error(row, statistic, self.rng) for row in values]
        return measured([statistic(row, axis=-1) for row in values], error)


def _spread(values, axis=-1):
    return np.std(values, axis=axis, ddof=1)


def _ratio_of_extremes(values, axis=-1):
    """The ratio; NaN where a database has lost all records, so that its bound is 0."""
    largest, smallest = np.max(values, axis=axis), np.min(values, axis=axis)
    return np.divide(largest, smallest, out=np.full(largest.shape, np.nan), where=smallest > 0)


def _resampled_error(values, statistic, rng):
    if np.ptp(values) == 0:
        return 0.0
    return float(np.std(resample(values, statistic, resamples=_REPEATS, random_seed=rng), ddof=1))


def _share(count, of, **told):
    """A share with its standard error, which is not 0 where nothing, or everything, was counted."""
    typical = (count + 0.5) / (of + 1.0)
    error = np.sqrt(typical * (1.0 - typical) / of)
    return measured(count / of, error, of=of, **told)


def _bends(entry):
    """By how much each step of a sequence differs from the step before."""
    value, error = (np.asarray(entry[key], dtype=np.float64) for key in ("value", "error"))
    if value.size < 3:
        return measured(np.nan, np.nan)
    # the number in the middle belongs to both steps
    variance = error**2
    return measured(
        np.diff(value, 2), np.sqrt(variance[:-2] + 4.0 * variance[1:-1] + variance[2:])
    )


def _difference(entry, start):
    """Last number of a sequence minus the one at ``start``; not finite if that is the same one."""
    value, error = (np.asarray(entry[key], dtype=np.float64) for key in ("value", "error"))
    if value.size < 2:
        return measured(np.nan, np.nan)
    return measured(value[-1] - value[start], np.hypot(error[start], error[-1]))


def _last(entry):
    return measured(entry["value"][-1], entry["error"][-1])


def _geometric_mean(entry):
    value, error = (np.asarray(entry[key], dtype=np.float64) for key in ("value", "error"))
    if not (value > 0).all():
        return measured(np.nan, np.nan)
    middle = np.exp(np.log(value).mean())
    return measured(middle, middle * np.sqrt(np.sum((error / value) ** 2)) / value.size)


def _absolute(entry, reference):
    return measured(np.abs(np.asarray(entry["value"]) - reference), entry["error"])


def _share_above(factor):
    """Share of the other databases above one's own bound times a factor, averaged over all."""

    def share(values, axis=-1):
        values = np.sort(np.moveaxis(values, axis, -1), axis=-1)
        flat = values.reshape(-1, values.shape[-1])
        above = [row.size - np.searchsorted(row, factor * row, side="right") for row in flat]
        return np.mean(above, axis=1).reshape(values.shape[:-1]) / (values.shape[-1] - 1)

    return share


def application_values(sweep, data, distributions, along, *, releases, random_seed=None):
    """Values of the application for the ledger.

    Parameters
    ----------
    sweep : ppm.studies.Sweep
        The synthesizers, with Countweighted.
    data : ppm_book.survey.ConsumerExpenditure
        The table.
    distributions : dict of str to dict
        Statistic -> what :meth:`ppm.studies.Sweep.distributions` returned for it at the first
        setting, with ``Data``; mean and 90th percentile are used.
    along : dict of str to array_like
        What :meth:`ppm.studies.Sweep.distributions` returned for the 90th percentile at all
        settings.
    releases : int
        Synthetic databases m.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness of the standard errors.

    Returns
    -------
    dict of str to dict
        Name -> value, with its Monte Carlo error. Bounds in nats, incomes in dollars; distances of
        a statistic are counted in standard deviations of the confidential data's re-samples.

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 5. The standard error of a local bound is taken from
    the ten bounds that a tenth of the draws each would have given. That of a statistic of the
    releases is their standard deviation over the root of m; it is unknown where one release makes
    up most of it.

    Examples
    --------
    >>> import numpy as np, ppm
    >>> data = ppm_book.survey.simulate(60, random_seed=1)
    >>> y, _ = ppm_book.survey.log_income(data)
    >>> model = ppm.FiniteMixture(y, np.ones((60, 1)), components=2, warmup=50)
    >>> sweep = ppm.studies.sweep(model, [(0.5, 0.0)], releases=2, draws=50, attempts=1,
    ...                           random_seed=1)
    >>> settings = {"data": np.exp(y), "transform": np.exp, "resamples": 20, "random_seed": 2}
    >>> found = {name: sweep.distributions(name, configuration=(0.5, 0.0), **settings)
    ...          for name in ("mean", "90th percentile")}
    >>> along = sweep.distributions("90th percentile", **settings)
    >>> values = ppm.publishing.application_values(sweep, data, found, along, releases=2,
    ...                                            random_seed=3)
    >>> values["units"]["value"], values["DPweighted: local bound"]["sample"]
    (60.0, [1, 'fits of 100 draws, averaged,'])
    """
    rng = generator(random_seed)
    weighted = [entry for entry in sweep.entries if entry.mechanism == "DPweighted"]
    scalar = [sweep.entry("EMweighted", entry.scale, entry.shift) for entry in weighted]
    first = sweep.chosen((weighted[0].scale, weighted[0].shift))
    found = _table_values(data, rng)
    found["releases"] = measured(releases)
    found["configurations"] = measured([x for e in weighted for x in (e.scale, e.shift)])
    for name, entry in first.items():
        found[f"{name}: local bound"] = measured(
            entry.local_bound, entry.diagnostics.error, doubt=_doubt(entry), sample=_fits(entry)
        )
    dp, em = first["DPweighted"], first["EMweighted"]
    found["DPweighted: ratio of ε in all to the local bound"] = measured(
        _over(pdp.epsilon(dp.local_bound, releases), dp.local_bound)
    )
    found["DPweighted: local bounds"] = _bounds(weighted)
    found["EMweighted: local bounds"] = _bounds(scalar)
    found["EMweighted: bound over DPweighted's"] = _ratio(
        found["EMweighted: local bounds"], found["DPweighted: local bounds"]
    )
    records = dp.record_bounds.size
    found["EMweighted: share of records with a lower bound than under DPweighted"] = _share(
        np.sum(em.record_bounds < dp.record_bounds), records, sample=(records, "records")
    )
    found["DPweighted: share of records with less than half the largest weight"] = _share(
        np.sum(dp.weights < 0.5 * dp.weights.max()), records, sample=(records, "records")
    )
    for name, entry in (("DPweighted", dp), ("EMweighted", em)):
        found[f"{name}: median record bound over the largest"] = measured(
            _over(np.median(entry.record_bounds), entry.local_bound),
            _over(np.median(entry.record_bounds), entry.local_bound**2) * entry.diagnostics.error,
            sample=_fits(entry),
        )
    _weight_values(found, weighted, scalar)
    if "Countweighted" in first:
        found["Countweighted: bound over DPweighted's"] = _ratio(
            found["Countweighted: local bound"], found["DPweighted: local bound"]
        )
        found["rank correlation of count risk and bound"] = _rank_correlation(
            1.0 - first["Countweighted"].weights, first["Unweighted"].record_bounds
        )
    for statistic in ("mean", "90th percentile"):
        _utility_values(found, statistic, distributions[statistic], first)
    _along_values(found, distributions["90th percentile"]["Data"], along, weighted, scalar)
    return found


def _table_values(data, rng):
    from scipy.stats import skew

    income = data.table["income"].to_numpy(dtype=np.float64)
    described = data.description().set_index("variable")["categories (here)"].dropna()
    left_out = data.dropped.get(NOT_DRAWN, 0)
    return {
        "units": measured(len(income)),
        "share of the records used": measured(len(income) / (len(income) + left_out)),
        "smallest income": measured(data.income_range[0]),
        "largest income": measured(data.income_range[1]),
        "skewness of income": measured(skew(income), _resampled_error(income, skew, rng)),
        "predictors": measured(len(described)),
        "categories": measured(
            described.drop(index=["urban_type", "cbsa"], errors="ignore").to_numpy(dtype=np.float64)
        ),
        "categories of the proxies": measured(
            described.loc[[n for n in ("urban_type", "cbsa") if n in described.index]].to_numpy(
                dtype=np.float64
            )
        ),
    }


def _doubt(*entries):
    found = [entry.diagnostics for entry in entries]
    if all(diagnostics.agree for diagnostics in found):
        return ""
    if any(diagnostics.faults_besides_r_hat for diagnostics in found):
        return "chains behind a bound stood still or diverged"
    return _DISAGREE


def _fits(*entries):
    """What the error of a bound shrinks with: a maximum gains nothing from a longer run."""
    draws = max(entry.draws_used for entry in entries)
    return 1, f"fits of {draws:,} draws, averaged,"


def _bounds(entries):
    return measured(
        [entry.local_bound for entry in entries],
        [entry.diagnostics.error for entry in entries],
        doubt=_doubt(*entries),
        sample=_fits(*entries),
    )


def _ratio(above, below):
    a, b = (np.asarray(entry["value"], dtype=np.float64) for entry in (above, below))
    ea, eb = (np.asarray(entry["error"], dtype=np.float64) for entry in (above, below))
    doubt = above.get("doubt", "") or below.get("doubt", "")
    ratio = _over(a, b)
    error = _over(np.hypot(ea, ratio * eb), b)
    return measured(ratio, error, doubt=doubt, sample=above["sample"])


def _over(above, below):
    """A quotient, NaN where the divisor is 0, as a bound is where no record has any weight."""
    above, below = np.broadcast_arrays(np.asarray(above, dtype=np.float64), below)
    return np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0)


def _weight_values(found, weighted, scalar):
    found["DPweighted: average weights"] = measured([e.weights.mean() for e in weighted])
    found["DPweighted: smallest and largest weight"] = measured(
        [min(e.weights.min() for e in weighted), max(e.weights.max() for e in weighted)]
    )
    found["DPweighted: spread of the weights"] = measured(weighted[0].weights.std())
    found["EMweighted: spread of the weights"] = measured(max(np.ptp(e.weights) for e in scalar))
    found["DPweighted: spread of the weights without a shift"] = measured(
        [e.weights.std() for e in weighted if e.shift == 0]
    )
    for scale in sorted({e.scale for e in weighted if e.shift < 0}):
        chosen = sorted((e for e in weighted if e.scale == scale), key=lambda e: -e.shift)
        found[f"DPweighted: average weights at scale {scale:g} by falling shift"] = measured(
            [e.weights.mean() for e in chosen]
        )


def _rank_correlation(first, second):
    from scipy.stats import spearmanr

    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return measured(np.nan, np.nan)
    correlation = float(spearmanr(first, second).statistic)
    return measured(
        correlation, (1.0 - correlation**2) / np.sqrt(first.size - 1),
        sample=(first.size, "records"),
    )


def _of_releases(entry, statistic):
    """Statistic of every release, in dollars."""
    return STATISTICS[statistic](np.exp(entry.synthetic), axis=1)


def _error_of_average(values):
    """Standard error of the average along the first dimension; unknown for a single value."""
    if len(values) < 2:
        return np.full(np.shape(values)[1:], np.nan)
    return np.std(values, axis=0, ddof=1) / np.sqrt(len(values))


def _error_over_releases(by_release):
    """Standard error of the average over releases, and why it is unknown if it is.

    An average of incomes has so heavy a tail that one release can make up most of the scatter. The
    scatter of a few then says nothing about the error, and more of them would change the average.
    """
    from scipy.stats import t

    m = by_release.size
    if m > 2 and np.ptp(by_release) > 0:
        # the test of Grubbs for one outlier among normal values
        limit = t.isf(_OUTLIER / (2 * m), m - 2) ** 2
        farthest = np.abs(by_release - by_release.mean()).max() / by_release.std(ddof=1)
        if farthest > (m - 1) / np.sqrt(m) * np.sqrt(limit / (m - 2 + limit)):
            return np.nan, f"one of the {m} releases makes up most of their scatter"
    return _error_of_average(by_release), ""


def _utility_values(found, statistic, distributions, first):
    data = np.asarray(distributions["Data"])
    unit, middle = data.std(ddof=1), np.median(data)
    away = {}
    for name, entry in first.items():
        by_release = _of_releases(entry, statistic)
        sample = by_release.size, "releases m"
        shift = (np.median(distributions[name]) - middle) / unit
        error, doubt = _error_over_releases(by_release)
        error = error / unit
        away[name] = abs(shift), error, doubt
        found[f"{name}: distance of the {statistic} from the data"] = measured(
            abs(shift), error, sample=sample, doubt=doubt
        )
        if name == "DPweighted":
            found[f"{name}: scatter of the {statistic} over releases"] = measured(
                by_release.std(ddof=1) / unit if by_release.size > 1 else np.nan,
                by_release.std() / unit / np.sqrt(2.0 * max(1, by_release.size - 1)),
                sample=sample,
            )
    dp, dp_error, doubt = away["DPweighted"]
    plain, plain_error, other = away["Unweighted"]
    found[f"DPweighted and Unweighted: difference of the distances of the {statistic}"] = measured(
        dp - plain, np.hypot(dp_error, plain_error), sample=sample, doubt=doubt or other
    )


def _along_values(found, data, along, weighted, scalar):
    unit, middle = np.std(data, ddof=1), np.median(data)
    for name, entries in (("DPweighted", weighted), ("EMweighted", scalar)):
        medians = np.array([np.median(along[entry.label]) for entry in entries])
        by_release = [_of_releases(entry, "90th percentile") for entry in entries]
        errors = np.array([_error_of_average(one) for one in by_release])
        sample = by_release[0].size, "releases m"
        found[f"{name}: distances of the 90th percentile along the settings"] = measured(
            np.abs(medians - middle) / unit, errors / unit, sample=sample
        )
        found[f"{name}: movement of the 90th percentile"] = measured(
            abs(medians[-1] - medians[0]) / unit, np.hypot(errors[0], errors[-1]) / unit,
            sample=sample,
        )


def equal_bound_values(study):
    """Values of the comparison at equal bounds for the ledger, and for the introduction.

    Parameters
    ----------
    study : ppm_book.equal_bound_study.EqualBoundStudy
        The study.

    Returns
    -------
    dict of str to dict
        Name -> value, with its Monte Carlo error; a name begins with the combination, such as
        ``K = 1, log``. Bounds in nats, averaged over the repeats; the rest goes over settings and
        repeats, the repeats of one setting side by side: distances from the data in per cent of the
        data's, of a typical release, and differences of distances in standard deviations of the
        data's re-samples.

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 5. The error of a bound is that of an average over
    repeats, from their standard deviation.

    Examples
    --------
    >>> import ppm
    >>> data = ppm_book.survey.simulate(60, random_seed=1)
    >>> study = ppm_book.equal_bound_study.equal_bounds(
    ...     data, [(1, "logarithm, floored")], [(0.5, -0.3)], repeats=2, warmup=10, draws=20,
    ...     releases=4, attempts=2, random_seed=1, parallel=False)
    >>> values = ppm.publishing.equal_bound_values(study)
    >>> len(values["K = 1, log: distances of the mean, EMweighted"]["value"])
    2
    """
    data = study.dataset
    repeats = data.sizes["repeat"]
    compared = [float(x) for s in data["setting"].values for x in s.strip("()").split(",")]
    found = {"compared: settings": measured(compared), "compared: repeats": measured(repeats)}
    for place, label in enumerate(study.labels):
        here = data.isel(combination=place)
        for name in ("Unweighted", "DPweighted", "EMweighted"):
            bounds = here["local_bound"].sel(mechanism=name).values
            error = _error_of_average(bounds)
            if name == "Unweighted":
                # the same fit at every setting
                bounds, error = bounds[:, 0], error[0]
            chains = here["r_hat"].sel(mechanism=name).values
            doubt = "" if (chains <= R_HAT_LIMIT).all() else _DISAGREE
            found[f"{label}: local bound of {name}"] = measured(
                bounds.mean(axis=0), error, doubt=doubt,
                sample=(repeats, "repeats"),
            )
        for statistic in ("mean", "10th percentile", "90th percentile"):
            unit = here["spread"].sel(statistic=statistic).item()
            away = {}
            for name in ("Unweighted", "DPweighted", "EMweighted", "Trimmed"):
                typical = here.sel(statistic=statistic, mechanism=name)
                # the repeats of a setting side by side
                off, error = (typical[x].transpose("setting", "repeat").values.ravel()
                              for x in ("off", "off_error"))
                away[name] = np.abs(off), error
                sample = study.releases, "releases m"
                found[f"{label}: distances of the {statistic}, {name}"] = measured(
                    *away[name], sample=sample
                )
                found[f"{label}: the {statistic} of {name} above the data"] = measured(
                    off, error, sample=sample
                )
            (dp, dp_error), (plain, plain_error) = away["DPweighted"], away["Unweighted"]
            found[f"{label}: DPweighted and Unweighted, difference of the {statistic}"] = measured(
                _over(dp - plain, unit), _over(np.hypot(dp_error, plain_error), unit), sample=sample
            )
    return found
