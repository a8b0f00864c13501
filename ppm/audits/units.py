"""What a change of unit does to bounds: a log density has one."""

import numpy as np

from ppm import pdp
from ppm._random import generator
from ppm._validation import as_numbers, check_count, check_number
from ppm.lipschitz import oscillation_bound, record_bounds
from ppm.weights import mapped_weights, reciprocal_map


def bounds_by_unit(values, units, *, draws=1000, random_seed=None):
    """Bounds and reciprocal-map weights of the same values in several units of measurement.

    The model is a normal distribution with the values' own standard deviation, and a mean that is
    drawn from its posterior under a flat prior. All units use the same draws.

    Parameters
    ----------
    values : array_like, shape (records,)
        Values in the first unit, two or more that differ.
    units : dict of str to float
        Name of a unit, and how much of the values' unit one of it is, above 0.
    draws : int, default 1000
        Draws S of the mean, 2 or more.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness.

    Returns
    -------
    pandas.DataFrame
        One row a unit: ``2Δ`` and ``oscillation`` with all weights 1, in nats; ``average`` and
        ``smallest reciprocal weight``.

    Raises
    ------
    ValueError
        If the values or a unit are out of range.

    Notes
    -----
    On section 2 of Savitsky, Williams and Hu (2022), whose bound is one on the logarithm of a
    density: that has a unit.

    Examples
    --------
    >>> import ppm
    >>> incomes = [20_000.0, 50_000.0, 90_000.0]
    >>> units = {"dollar": 1.0, "thousand dollars": 1000.0}
    >>> ppm.audits.bounds_by_unit(incomes, units, random_seed=1)[["2Δ", "oscillation"]].round(1)
                        2Δ  oscillation
    unit
    dollar            33.4          5.5
    thousand dollars  19.6          5.5
    """
    import pandas as pd
    from scipy import stats

    values = as_numbers("values", values)
    if (
        values.ndim != 1
        or not values.size
        or not np.all(np.isfinite(values))
        or np.ptp(values) == 0
    ):
        raise ValueError("values must be finite numbers that are not all the same")
    draws = check_count("draws", draws, at_least=2)
    units = {name: check_number(f"units[{name!r}]", size, above=0) for name, size in units.items()}
    scale = values.std()
    rng = generator(random_seed)
    centre = rng.normal(values.mean(), scale / np.sqrt(values.size), (draws, 1))
    rows = {}
    for name, size in units.items():
        log_lik = stats.norm.logpdf(values / size, centre / size, scale / size)
        bounds = record_bounds(log_lik)
        weights = mapped_weights(bounds, reciprocal_map)
        rows[name] = {
            "2Δ": pdp.epsilon(bounds.max()),
            "oscillation": oscillation_bound(log_lik),
            "average reciprocal weight": weights.mean(),
            "smallest reciprocal weight": weights.min(),
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("unit")
