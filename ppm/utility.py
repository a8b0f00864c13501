"""Utility of synthetic data: re-sampled statistics, and how far one can tell them from the data."""

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from ppm._random import generator, seed_sequence
from ppm._validation import as_list, as_numbers, check_count, one_thread, shown

__all__ = [
    "gini",
    "resample",
    "resampled_barycentre",
    "grouped_barycentres",
    "wasserstein_barycentre",
    "compare_distributions",
    "release_errors",
    "median_errors",
    "propensity_score",
    "propensity_scores",
    "PropensityScore",
    "rank_powers",
]


def gini(values, axis=-1):
    """Gini coefficient: half the mean absolute difference between two records, over the mean.

    Parameters
    ----------
    values : array_like
        Values with a mean above 0, such as incomes.
    axis : int, default -1
        The axis of the records.

    Returns
    -------
    numpy.ndarray or float
        0 where all values are equal. Below 1 if no value is negative; NaN where the mean is not
        above 0.

    Examples
    --------
    >>> import ppm
    >>> float(ppm.utility.gini([1.0, 1.0, 1.0])), float(ppm.utility.gini([0.0, 0.0, 0.0, 8.0]))
    (0.0, 0.75)
    """
    values = np.sort(as_numbers("values", values), axis=axis)
    # in proportion to a power of 2, which rounds nothing: sums of huge incomes would overflow
    _, power = np.frexp(np.abs(values).max(axis=axis, keepdims=True, initial=0.0))
    values = np.ldexp(values, -power)
    size = values.shape[axis]
    ranks = 2.0 * np.arange(1, size + 1) - size - 1.0
    total = values.sum(axis=axis)
    differences = np.moveaxis(values, axis, -1) @ ranks
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(total > 0, differences / (size * total), np.nan)[()]


STATISTICS = {
    "mean": np.mean,
    "median": np.median,
    "90th percentile": lambda values, axis: np.quantile(values, 0.9, axis=axis),
    "10th percentile": lambda values, axis: np.quantile(values, 0.1, axis=axis),
    "Gini coefficient": gini,
}


def resample(values, statistic, *, resamples=500, random_seed=None):
    """Distribution of a statistic over re-samples of the records, with replacement.

    Parameters
    ----------
    values : array_like, shape (records,) or (releases, records)
        One database, or one a row.
    statistic : {"mean", "median", "90th percentile", "Gini coefficient"} or callable
        A callable takes an array and ``axis``.
    resamples : int, default 500
        Number of re-samples of each database, 2 or more.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness.

    Returns
    -------
    numpy.ndarray, shape (resamples,) or (releases, resamples)
        The statistic of every re-sample, in the unit of ``values``.

    Raises
    ------
    ValueError
        If the statistic is unknown, or the values are empty or not finite.

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 5, risk and utility comparisons.

    Examples
    --------
    >>> import ppm
    >>> means = ppm.utility.resample([1.0, 2.0, 3.0, 6.0], "mean", resamples=100, random_seed=1)
    >>> means.shape, float(means.mean().round(1))
    ((100,), 3.2)
    """
    from scipy.stats import DegenerateDataWarning, bootstrap

    if not callable(statistic):
        if not isinstance(statistic, str) or statistic not in STATISTICS:
            raise ValueError(
                f"statistic must be a function or one of {', '.join(STATISTICS)}; "
                f"got {shown(statistic)}"
            )
        statistic = STATISTICS[statistic]
    resamples = check_count("resamples", resamples, at_least=2)
    values = as_numbers("values", values)
    if (
        values.ndim not in (1, 2) or values.shape[-1] < 2 or not values.size
        or not np.isfinite(values).all()
    ):
        raise ValueError(
            "values must be finite, of shape (records,) or (releases, records), with at least 2 "
            f"records; got shape {values.shape}"
        )
    rng = generator(random_seed)
    with warnings.catch_warnings():
        # of an interval that is not used, where the statistic is NaN
        warnings.simplefilter("ignore", DegenerateDataWarning)
        distributions = [
            bootstrap(
                (database,), statistic, n_resamples=resamples, batch=64, method="percentile",
                vectorized=True, rng=rng,
            ).bootstrap_distribution
            for database in np.atleast_2d(values)
        ]
    return distributions[0] if values.ndim == 1 else np.stack(distributions)


def resampled_barycentre(releases, statistic, *, resamples=500, random_seed=None):
    """Distribution of a statistic over m releases: re-sampled in each, then averaged.

    Parameters
    ----------
    releases : array_like, shape (releases, records)
        Synthetic databases, in the unit the statistic is wanted in.
    statistic, resamples, random_seed
        As for :func:`resample`.

    Returns
    -------
    numpy.ndarray, shape (resamples,)
        Quantiles of the Wasserstein barycentre over the releases, increasing.

    Raises
    ------
    ValueError
        As :func:`resample`.

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 5.

    Examples
    --------
    >>> import numpy as np, ppm
    >>> releases = [[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]]
    >>> found = ppm.utility.resampled_barycentre(releases, "mean", resamples=50, random_seed=1)
    >>> found.shape, float(np.median(found).round(1))
    ((50,), 2.5)
    """
    distributions = resample(releases, statistic, resamples=resamples, random_seed=random_seed)
    return wasserstein_barycentre(np.atleast_2d(distributions))


def grouped_barycentres(values, groups, statistic="mean", *, resamples=500, random_seed=None):
    """Distribution of a statistic within each group of records, such as conditional means.

    Parameters
    ----------
    values : array_like, shape (records,) or (releases, records)
        One database, or one a row.
    groups : array_like or pandas.Series, shape (records,)
        A known variable of the same records, without missing values.
    statistic, resamples, random_seed
        As for :func:`resample`; every group uses the same stream.

    Returns
    -------
    dict of group to numpy.ndarray, shape (resamples,)
        In the order of a categorical variable, or sorted. Records are re-sampled within the group,
        whose size stays as it is, and averaged over the releases as by
        :func:`resampled_barycentre`. A group with a single record is left out.

    Raises
    ------
    ValueError
        As :func:`resample`, or if there is not one group a record.

    Notes
    -----
    The statistics of Savitsky, Williams and Hu (2022), section 5, given a predictor. The predictor
    is released as it is, so that the records of a group are the same ones in data and releases.

    Examples
    --------
    >>> import ppm
    >>> incomes, regions = [10.0, 12.0, 40.0, 44.0], ["east", "east", "west", "west"]
    >>> found = ppm.utility.grouped_barycentres(incomes, regions, resamples=50, random_seed=1)
    >>> {group: (float(values.min()), float(values.max())) for group, values in found.items()}
    {'east': (10.0, 12.0), 'west': (40.0, 44.0)}
    """
    import pandas as pd

    values = np.atleast_2d(as_numbers("values", values))
    column = pd.Series(groups).reset_index(drop=True)
    if values.ndim != 2 or len(column) != values.shape[1] or column.isna().any():
        raise ValueError(
            "groups must have one value for every record and none missing; got "
            f"{len(column)} for values of shape {values.shape}"
        )
    seed = seed_sequence(random_seed)
    found = {}
    for group, members in column.groupby(column, observed=True).groups.items():
        if len(members) > 1:
            found[group] = resampled_barycentre(
                values[:, members], statistic, resamples=resamples, random_seed=seed
            )
    return found


def propensity_score(confidential, synthetic, *, known=None):
    r"""How well a logistic regression tells synthetic from confidential records: pMSE.

    Both databases are stacked, and the probability :math:`\hat p_i` of being synthetic is regressed
    on an intercept, the ``known`` columns, the variables, and the products of the two.

    Parameters
    ----------
    confidential, synthetic : array_like, shape (records,) or (records, variables)
        The synthesized variables and what is made of them (powers), on a scale on which a linear
        model makes sense; as many columns in both.
    known : array_like, shape (records, columns), optional
        Columns that were not synthesized, such as dummies of predictors. Then both databases
        have the same records in the same order.

    Returns
    -------
    PropensityScore
        The score, its null expectation, and their ratio.

    Raises
    ------
    ValueError
        If the arrays do not fit together or hold no finite numbers.

    Notes
    -----
    Snoke and others (2018). With N stacked records of which a share c is synthetic,

    .. math::

        \mathrm{pMSE} = \frac{1}{N} \sum_i (\hat p_i - c)^2, \qquad
        \mathrm E_0 = \frac{(k - 1)(1 - c)^2 c}{N},

    where :math:`k - 1` is the number of coefficients beside the intercept.

    Known columns are equal in both databases and can't tell them apart: only the other
    coefficients count, and of these as many as are linearly independent. Besides, two values of
    one record differ less than two records do. With ``known``, :math:`\mathrm E_0` is therefore
    :math:`1 - c` times the average of the (linearised) score over all exchanges of a record's two
    values. Where the known columns explain the means of the variables, this is
    the formula above.

    A ratio to :math:`\mathrm E_0` of about 1 belongs to synthetic records drawn from the
    confidential ones' own distribution. Two independent samples of one population have
    1 / (1 - c), 2 at equal sizes, and so have draws from the posterior predictive distribution of
    a correct model, whose parameters vary as the estimate does.

    Examples
    --------
    >>> import numpy as np, ppm
    >>> data = np.arange(40.0)
    >>> near, far = (ppm.utility.propensity_score(data, data + step) for step in (1.0, 30.0))
    >>> round(near.ratio, 2), round(far.ratio, 2)
    (0.3, 116.54)
    """
    confidential = _columns("confidential", confidential)
    synthetic = _columns("synthetic", synthetic)
    if confidential.shape[1] != synthetic.shape[1]:
        raise ValueError(
            "confidential and synthetic must have the same variables; got "
            f"{confidential.shape[1]} and {synthetic.shape[1]} columns"
        )
    sizes = confidential.shape[0], synthetic.shape[0]
    total, share = sum(sizes), sizes[1] / sum(sizes)
    variables = _standardised(np.concatenate([confidential, synthetic]))
    fixed = np.ones((total, 1))
    if known is not None:
        known = _columns("known", known)
        if not sizes[0] == sizes[1] == known.shape[0]:
            raise ValueError(
                "known must have one row for every record of both databases; got "
                f"{known.shape[0]}, {sizes[0]} and {sizes[1]} rows"
            )
        known = _standardised(np.concatenate([known, known]))
        fixed = np.column_stack([fixed, known])
        crossed = (variables[:, :, None] * known[:, None, :]).reshape(total, -1)
        variables = np.column_stack([variables, crossed])
    is_synthetic = np.repeat([0.0, 1.0], sizes)
    with one_thread():
        fixed = _orthonormal(fixed)
        # what the fixed columns explain is taken out: the rest counts the coefficients
        free = _orthonormal(variables - fixed @ (fixed.T @ variables))
        design = np.column_stack([fixed, free]) * np.sqrt(total)
        score = float(np.mean((_logistic_fit(design, is_synthetic) - share) ** 2))
    null = free.shape[1] * (1.0 - share) ** 2 * share / total
    if known is not None:
        differences = free[: sizes[0]] - free[sizes[0] :]
        null = (1.0 - share) * float(np.sum(differences**2)) / (4 * total)
    return PropensityScore(score, null, free.shape[1])


def propensity_scores(confidential, releases, *, known=None, most=None):
    """Distinguishability of several mechanisms' releases from the data, averaged over releases.

    Parameters
    ----------
    confidential : array_like, shape (records,)
        Confidential values.
    releases : dict of str to array_like, shape (releases, records)
        Synthetic values of the same kind, by label.
    known : array_like, shape (records, columns), optional
        Columns that were not synthesized.
    most : int, optional
        How many releases to use of each, 1 or more; all of them by default.

    Returns
    -------
    pandas.DataFrame
        One row a label: ``pMSE``, its expectation ``null`` and ``ratio`` of
        :func:`ppm.utility.propensity_score`, on :func:`ppm.utility.rank_powers`.

    Raises
    ------
    ValueError
        As :func:`ppm.utility.propensity_score`, or if ``most`` is not a whole number of at least 1.

    Examples
    --------
    >>> import numpy as np, ppm
    >>> data = np.arange(40.0)
    >>> releases = {"near": [data + 1.0, data - 1.0], "far": [data + 30.0]}
    >>> ppm.utility.propensity_scores(data, releases)["ratio"].round(1).to_dict()
    {'near': 0.3, 'far': 39.7}
    """
    import pandas as pd

    if most is not None:
        most = check_count("most", most)
    rows = {}
    for name, synthetic in releases.items():
        synthetic = as_numbers(f"releases: {name}", synthetic)
        if synthetic.ndim != 2 or not len(synthetic):
            raise ValueError(
                f"releases: {name} must have shape (releases, records); got {synthetic.shape}"
            )
        scores = [
            propensity_score(*rank_powers(confidential, one), known=known)
            for one in synthetic[:most]
        ]
        rows[name] = {
            "pMSE": np.mean([score.score for score in scores]),
            "null": np.mean([score.null for score in scores]),
            "ratio": np.mean([score.ratio for score in scores]),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def rank_powers(confidential, synthetic, *, powers=3):
    """Powers of the ranks in both databases together, for :func:`ppm.utility.propensity_score`.

    Ranks do not depend on the unit or on a logarithm, and no single extreme value decides the
    score; differences far out in a tail show little in them.

    Parameters
    ----------
    confidential, synthetic : array_like, shape (records,)
        Values of both databases.
    powers : int, default 3
        Highest power, 1 or more.

    Returns
    -------
    tuple of numpy.ndarray, shape (records, powers)
        Powers of the ranks, scaled to lie between -1 and 1, for each of the two.

    Raises
    ------
    ValueError
        If the values are not one-dimensional and finite, or ``powers`` is out of range.

    Examples
    --------
    >>> import ppm
    >>> confidential, synthetic = ppm.utility.rank_powers([1.0, 3.0], [2.0, 900.0], powers=1)
    >>> confidential.ravel(), synthetic.ravel()
    (array([-0.75,  0.25]), array([-0.25,  0.75]))
    """
    from scipy.stats import rankdata

    powers = check_count("powers", powers)
    confidential = as_list("confidential", confidential)
    synthetic = as_list("synthetic", synthetic)
    ranks = rankdata(np.concatenate([confidential, synthetic]))
    scaled = (2.0 * ranks - 1.0) / ranks.size - 1.0
    columns = scaled[:, None] ** np.arange(1, powers + 1)
    return columns[: confidential.size], columns[confidential.size :]


@dataclass(frozen=True)
class PropensityScore:
    """How far synthetic records can be told from confidential ones.

    Attributes
    ----------
    score : float
        pMSE: 0 if the two can't be told apart, c(1 - c) if every record can.
    null : float
        Its expectation if synthetic records are drawn from the confidential ones' own distribution.
    coefficients : int
        Number of coefficients that can tell the two apart.

    Examples
    --------
    >>> import numpy as np, ppm
    >>> found = ppm.utility.propensity_score(np.arange(40.0), np.arange(40.0) + 100.0)
    >>> round(found.score, 3), round(found.null, 4), found.coefficients
    (0.25, 0.0016, 1)
    """

    score: float
    null: float
    coefficients: int

    @property
    def ratio(self):
        """Score over null expectation; NaN if no coefficient can tell the two apart."""
        return self.score / self.null if self.null > 0 else np.nan


def _columns(name, values):
    values = as_numbers(name, values)
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or values.shape[0] < 2 or not np.isfinite(values).all():
        raise ValueError(
            f"{name} must be finite numbers with at least 2 rows; got shape {values.shape}"
        )
    return values


def _standardised(columns):
    centred = columns - columns.mean(axis=0)
    spread = centred.std(axis=0)
    return centred / np.where(spread > 0, spread, 1.0)


def _orthonormal(columns):
    """Orthonormal basis of the span of standardised columns."""
    sizes, directions = np.linalg.eigh(columns.T @ columns)
    used = sizes > 1e-10 * columns.shape[0]
    return columns @ (directions[:, used] / np.sqrt(sizes[used]))


def _logistic_fit(design, outcome, *, iterations=50):
    """Fitted probabilities of a logistic regression, by Newton steps that never fit worse."""
    coefficients = np.zeros(design.shape[1])

    def log_likelihood(values):
        predictor = design @ values
        return float(np.sum(outcome * predictor - np.logaddexp(0.0, predictor)))

    reached = log_likelihood(coefficients)
    for _ in range(iterations):
        fitted = expit(design @ coefficients)
        curvature = (design * (fitted * (1.0 - fitted))[:, None]).T @ design
        # where some records are told apart for certain, the curvature vanishes
        curvature[np.diag_indices_from(curvature)] += 1e-9 * outcome.size
        step = np.linalg.solve(curvature, design.T @ (outcome - fitted))
        moved = log_likelihood(coefficients + step)
        while moved < reached and np.abs(step).max() > 1e-9:
            step /= 2.0
            moved = log_likelihood(coefficients + step)
        if moved < reached:
            break
        gain, reached = moved - reached, moved
        coefficients = coefficients + step
        if gain <= 1e-9 * abs(reached):
            break
    return expit(design @ coefficients)


def release_errors(confidential, releases, *, groups=None, smallest=50):
    """Errors of the statistics of every release against those of the data, in per cent.

    Parameters
    ----------
    confidential : array_like, shape (records,)
        Confidential values, such as incomes in dollars.
    releases : array_like, shape (releases, records)
        Synthetic values of the same records.
    groups : pandas.DataFrame or dict of str to array_like, optional
        Public variables by name, each of shape (records,), whose groups have a mean each.
    smallest : int, default 50
        Groups of fewer records are left out: their means say little in any release.

    Returns
    -------
    pandas.DataFrame, one row a release
        Errors of the mean, the median, the 90th and the 10th percentile and the Gini coefficient,
        with the sign of release less data; then for each variable the size of the largest error
        of a group's mean, as ``means by variable``. NaN where what the data have is 0, as the
        10th percentile of incomes may be, or no number: no error is relative to that.

    Raises
    ------
    ValueError
        If shapes disagree, a value is not finite, or no group of a variable is large enough.

    Examples
    --------
    >>> import ppm
    >>> data = [10.0, 20.0, 30.0, 40.0, 50.0]
    >>> found = ppm.utility.release_errors(data, [[11.0, 22.0, 33.0, 44.0, 55.0]])
    >>> found.loc[0, ["mean", "median", "Gini coefficient"]].round(6).tolist()
    [10.0, 10.0, 0.0]
    """
    import pandas as pd

    confidential = as_list("confidential", confidential)
    releases = as_numbers("releases", releases)
    if releases.ndim != 2 or releases.shape[1] != confidential.size or not len(releases):
        raise ValueError(
            f"releases must have shape (releases, {confidential.size}); got {releases.shape}"
        )
    if not np.isfinite(releases).all():
        raise ValueError("releases must be finite numbers")
    smallest = check_count("smallest", smallest)

    def error(found, truth):
        return 100.0 * (found - truth) / (abs(truth) or np.nan)

    columns = {
        name: error(statistic(releases, axis=-1), statistic(confidential, axis=-1))
        for name, statistic in STATISTICS.items()
    }
    for variable, codes in ({} if groups is None else groups).items():
        codes = pd.Series(np.asarray(codes), name=str(variable))
        if codes.size != confidential.size:
            raise ValueError(
                f"groups: {variable} must have one value for each of {confidential.size} records"
            )
        members = [rows for rows in codes.groupby(codes).indices.values() if rows.size >= smallest]
        if not members:
            raise ValueError(f"groups: no group of {variable} has {smallest} records")
        means = ((releases[:, rows].mean(axis=1), confidential[rows].mean()) for rows in members)
        found = np.array([error(*pair) for pair in means])
        # without a sign, which may change from release to release
        columns[f"means by {variable}"] = np.abs(found).max(axis=0)
    return pd.DataFrame(columns).rename_axis("release")


def median_errors(errors):
    """Medians over the releases of the sizes of errors, for several mechanisms at several ε.

    Parameters
    ----------
    errors : dict of str to dict of float to pandas.DataFrame
        Name of a mechanism to its ε in nats to what :func:`release_errors` returned.

    Returns
    -------
    pandas.DataFrame
        One row a mechanism and ε, with the columns of the errors, in per cent, without signs.

    Notes
    -----
    The size is what a user of one release has to expect. A median with signs would average the
    noise of many releases away, which together cost more than one.

    Examples
    --------
    >>> import ppm
    >>> data = [10.0, 20.0, 30.0]
    >>> errors = {0.5: ppm.utility.release_errors(data, [[11.0, 22.0, 33.0], [13.0, 26.0, 39.0]])}
    >>> ppm.utility.median_errors({"Limits": errors})["median"].round(1).to_dict()
    {('Limits', '0.5'): 20.0}
    """
    import pandas as pd

    # as text, so that a table does not round them with the errors
    rows = {
        (name, f"{epsilon:g}"): found.abs().median()
        for name, by_epsilon in errors.items()
        for epsilon, found in by_epsilon.items()
    }
    table = pd.DataFrame.from_dict(rows, orient="index")
    table.index = pd.MultiIndex.from_tuples(rows, names=["mechanism", "ε"])
    return table


def median_shift(values, reference):
    """Distance of the median of ``values`` from the reference's, in per cent of that."""
    return 100.0 * (np.median(values) / np.median(reference) - 1.0)


def compare_distributions(reference, distributions):
    """How far distributions of a statistic lie from a reference, such as the confidential data's.

    Parameters
    ----------
    reference : array_like
        Re-sampled statistic of the reference; its median is not 0.
    distributions : dict of str to array_like
        The same statistic of each synthesizer, by label.

    Returns
    -------
    pandas.DataFrame
        One row a label: ``median``; ``shift (%)`` of the median, in per cent of the reference's
        median; ``distance (%)``, the Wasserstein distance between the two, in per cent of the same.

    Raises
    ------
    ValueError
        If the reference's median is 0, or a distribution is no list of finite numbers.

    Examples
    --------
    >>> import ppm
    >>> ppm.utility.compare_distributions([9.0, 10.0, 11.0], {"Weighted": [10.0, 11.0, 12.0]})
              median  shift (%)  distance (%)
    Weighted    11.0       10.0          10.0
    """
    import pandas as pd
    from scipy.stats import wasserstein_distance

    reference = as_list("reference", reference)
    middle = np.median(reference)
    if middle == 0:
        raise ValueError("reference must be a list with a median other than 0")
    rows = {}
    for label, values in distributions.items():
        values = as_list(f"distributions: {label}", values)
        rows[label] = {
            "median": np.median(values),
            "shift (%)": median_shift(values, reference),
            "distance (%)": 100.0 * wasserstein_distance(reference, values) / abs(middle),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def wasserstein_barycentre(samples):
    """Barycentre of one-dimensional distributions in Wasserstein space: the average of quantiles.

    Parameters
    ----------
    samples : array_like, shape (distributions, size)
        Equally many values from every distribution, in any order.

    Returns
    -------
    numpy.ndarray, shape (size,)
        Quantiles of the barycentre, increasing.

    Raises
    ------
    ValueError
        If ``samples`` is not a two-dimensional array of finite numbers.

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 5, after Srivastava and others (2015). In one
    dimension the average of the quantile functions is the barycentre exactly.

    Examples
    --------
    >>> import ppm
    >>> ppm.utility.wasserstein_barycentre([[1.0, 2.0, 6.0], [5.0, 3.0, 10.0]])
    array([2. , 3.5, 8. ])
    """
    samples = as_numbers("samples", samples)
    if samples.ndim != 2 or samples.size == 0 or not np.isfinite(samples).all():
        raise ValueError(
            "samples must be finite numbers of shape (distributions, size); "
            f"got shape {samples.shape}"
        )
    return np.sort(samples, axis=1).mean(axis=0)
