"""Identification risk: records isolated in the data, and matches in a release."""

import numpy as np

from ppm.checks import (
    as_list,
    as_releases,
    check_flag,
    check_number,
    check_one_order,
    pattern_codes,
)

__all__ = ["identification_risks", "match_risk"]


def identification_risks(values, *, radius, relative=True, groups=None):
    r"""Share of the comparable records whose value lies outside a radius around a record's own.

    A record with few others near it is easy to recognise: its risk is near 1.

    Parameters
    ----------
    values : array_like, shape (records,)
        Confidential values :math:`y_i`, such as incomes in dollars.
    radius : float
        Radius r, above 0: a share of the true value, or in the unit of ``values``.
    relative : bool, default True
        Whether the radius is a share: :math:`|y_j - y_i| \le r\,|y_i|` is inside. Otherwise
        :math:`|y_j - y_i| \le r` is.
    groups : array_like, shape (records,) or (records, columns), or DataFrame, optional
        What an intruder knows of every record. Only records that agree in all columns are
        comparable, also in what is missing; without it all records are.

    Notes
    -----
    The marginal identification risk of Hu, Savitsky and Williams (2022), which Savitsky, Williams
    and Hu (2022) use for their Countweighted without stating a formula or the radius. Two details
    are our reading: the record itself does not count as comparable, and a record without any gets
    the highest risk, because its pattern identifies it.

    Examples
    --------
    >>> import ppm
    >>> ppm.risk.identification_risks([100.0, 105.0, 110.0, 300.0], radius=0.2)
    array([0.33333333, 0.33333333, 0.33333333, 1.        ])
    """
    check_one_order(values=values, groups=groups)
    values, low, high = _intervals(values, radius, relative)
    codes = pattern_codes(groups, values.size)
    inside = count_within(low, high, values, codes) - 1
    others = np.bincount(codes)[codes] - 1
    return np.where(others > 0, 1.0 - inside / np.maximum(others, 1), 1.0)


def match_risk(values, synthetic, *, radius, relative=True, groups=None):
    r"""Matches that an intruder finds who looks for every record in each release.

    The intruder knows a record's ``groups``, which are released as they are, and its true value up
    to a radius, and takes as matches all synthetic records with the same groups and a value within
    that radius. ``synthetic`` has shape (releases, records): the values of the same records in the
    same order and unit. Other arguments as for :func:`identification_risks`.

    Returns
    -------
    pandas.DataFrame, one row per release
        With :math:`c_i` the number of matches of record i, and :math:`T_i = 1` if its own synthetic
        record is one of them:

        - ``expected match risk``: :math:`\sum_i T_i / c_i`, the number of records that an
          intruder finds who picks one match at random;
        - ``own record within radius``: :math:`\sum_i T_i`;
        - ``unique matches``: the number of records with :math:`c_i = 1`;
        - ``true unique matches``: those of them with :math:`T_i = 1`;
        - ``true match rate (%)``: the same, in per cent of all records;
        - ``true among unique (%)``: the same, in per cent of the unique matches; NaN without any.
          100 minus it is the *false match rate*.

    Notes
    -----
    After Reiter and Mitra (2009), for continuous values with a radius as in Hornby and Hu (2021).
    Each release is judged alone: an intruder who combines several may find more.

    Examples
    --------
    >>> import ppm
    >>> found = ppm.risk.match_risk([100.0, 105.0, 300.0], [[102.0, 180.0, 310.0]], radius=0.1)
    >>> found.loc[0, ["unique matches", "true unique matches"]].tolist()
    [3, 2]
    """
    import pandas as pd

    check_one_order(values=values, groups=groups)
    values, low, high = _intervals(values, radius, relative)
    synthetic = as_releases("synthetic", synthetic, values.size)
    codes = pattern_codes(groups, values.size)
    rows = []
    for release in synthetic:
        matches = count_within(low, high, release, codes)
        own, unique = (low <= release) & (release <= high), matches == 1
        true = int(np.count_nonzero(unique & own))
        rows.append(
            {
                "expected match risk": float(np.sum(1.0 / matches[own])),
                "own record within radius": int(np.count_nonzero(own)),
                "unique matches": int(np.count_nonzero(unique)),
                "true unique matches": true,
                "true match rate (%)": 100.0 * true / values.size,
                "true among unique (%)": 100.0 * true / unique.sum()
                if unique.any()
                else np.nan,
            }
        )
    return pd.DataFrame(rows).rename_axis("release")


def count_within(low, high, candidates, codes):
    """Number of candidates with a record's code in [low, high], for every record."""
    # sorted, not compared pair by pair: memory is linear in the number of records
    order = np.lexsort((candidates, codes))
    counts = np.empty(codes.size, dtype=np.intp)
    for members in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
        own = candidates[members]
        counts[members] = np.searchsorted(own, high[members], side="right")
        counts[members] -= np.searchsorted(own, low[members], side="left")
    return counts


def _intervals(values, radius, relative):
    """Checked values, and the ends of the interval around each."""
    radius = check_number("radius", radius, above=0)
    check_flag("relative", relative)
    values = as_list("values", values)
    # if the width overflows, the interval holds every number
    with np.errstate(over="ignore"):
        width = radius * np.abs(values) if relative else radius
        return values, values - width, values + width
