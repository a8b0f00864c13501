"""Utility of synthetic data: re-sampled statistics and their Wasserstein barycentre (section 5)."""

import numpy as np

from ppm._validation import check_count

STATISTICS = {
    "mean": np.mean,
    "median": np.median,
    "90th percentile": lambda values, axis: np.quantile(values, 0.9, axis=axis),
}


def resample(values, statistic, *, resamples=500, random_seed=None):
    """Distribution of a statistic over re-samples of the records, with replacement.

    Parameters
    ----------
    values : array_like, shape (records,) or (releases, records)
        One database, or one a row.
    statistic : {"mean", "median", "90th percentile"} or callable
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
    """
    from scipy.stats import bootstrap

    if not callable(statistic):
        if statistic not in STATISTICS:
            raise ValueError(
                f"statistic must be a function or one of {', '.join(STATISTICS)}; got {statistic!r}"
            )
        statistic = STATISTICS[statistic]
    resamples = check_count("resamples", resamples, at_least=2)
    values = np.asarray(values, dtype=np.float64)
    if values.ndim not in (1, 2) or values.shape[-1] < 2 or not np.isfinite(values).all():
        raise ValueError(
            "values must be finite, of shape (records,) or (releases, records), with at least 2 "
            f"records; got shape {values.shape}"
        )
    rng = np.random.default_rng(random_seed)
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
    """
    distributions = resample(releases, statistic, resamples=resamples, random_seed=random_seed)
    return wasserstein_barycentre(np.atleast_2d(distributions))


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
        If the reference's median is 0 or a value is not finite.
    """
    import pandas as pd
    from scipy.stats import wasserstein_distance

    middle = np.median(reference)
    if not np.isfinite(middle) or middle == 0:
        raise ValueError("reference must be finite, with a median other than 0")
    rows = {}
    for label, values in distributions.items():
        values = np.asarray(values, dtype=np.float64)
        if not np.isfinite(values).all():
            raise ValueError(f"distributions must be finite; {label} is not")
        rows[label] = {
            "median": np.median(values),
            "shift (%)": 100.0 * (np.median(values) / middle - 1.0),
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
    """
    samples = np.asarray(samples, dtype=np.float64)
    if samples.ndim != 2 or samples.size == 0 or not np.isfinite(samples).all():
        raise ValueError(
            "samples must be finite numbers of shape (distributions, size); "
            f"got shape {samples.shape}"
        )
    return np.sort(samples, axis=1).mean(axis=0)
