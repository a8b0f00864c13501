"""Identification risk: records isolated in the data, and records matched in a release."""

import numpy as np

from ppm._validation import as_numbers, check_flag, check_number

__all__ = ["identification_risks", "match_risk", "match_risks"]


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
        comparable; without it all records are.

    Returns
    -------
    numpy.ndarray, shape (records,)
        Risks in [0, 1]. A record that is not comparable with any other has risk 1.

    Raises
    ------
    ValueError
        If an argument has the wrong shape or is out of range.

    Notes
    -----
    The marginal identification risk of Hu, Savitsky and Williams (2022), which Savitsky, Williams
    and Hu (2022), sections 1 and 5, use for their Countweighted without stating a formula or the
    radius. Two details are our reading: the record itself is not counted among the comparable
    ones, and a record without any gets the highest risk, because its pattern gives it away.
    Memory is linear in the number of records: values are sorted, not compared pair by pair.

    Examples
    --------
    >>> import ppm
    >>> ppm.risk.identification_risks([100.0, 105.0, 110.0, 300.0], radius=0.2)
    array([0.33333333, 0.33333333, 0.33333333, 1.        ])
    """
    values, low, high = _intervals(values, radius, relative)
    codes = pattern_codes(groups, values.size)
    inside = count_within(low, high, values, codes) - 1
    others = np.bincount(codes)[codes] - 1
    return np.where(others > 0, 1.0 - inside / np.maximum(others, 1), 1.0)


def match_risk(values, synthetic, *, radius, relative=True, groups=None):
    r"""What an intruder finds who looks for every record in each release.

    The intruder knows a record's ``groups`` and its true value up to a radius, and takes as
    matches all synthetic records with the same groups and a value within that radius.

    Parameters
    ----------
    values : array_like, shape (records,)
        Confidential values :math:`y_i`.
    synthetic : array_like, shape (releases, records)
        Synthetic values :math:`\zeta_{\ell i}` of the same records in the same order, in the same
        unit.
    radius, relative, groups
        As for :func:`identification_risks`. The groups are released as they are.

    Returns
    -------
    pandas.DataFrame
        One row a release. With :math:`c_i` the number of matches of record i, and :math:`T_i = 1`
        if its own synthetic record is among them:

        - ``expected match risk``: :math:`\sum_i T_i / c_i`, the number of records that an
          intruder finds who picks one match at random;
        - ``own record within radius``: :math:`\sum_i T_i`;
        - ``unique matches``: the number of records with :math:`c_i = 1`;
        - ``true unique matches``: those of them with :math:`T_i = 1`;
        - ``true match rate (%)``: the same, in per cent of all records;
        - ``true among unique (%)``: the same, in per cent of the unique matches; NaN without any.
          100 minus it is the *false match rate*.

    Raises
    ------
    ValueError
        If an argument has the wrong shape or is out of range.

    Notes
    -----
    After Reiter and Mitra (2009), for continuous values with a radius as in Hornby and Hu (2021).
    A release is judged on its own: an intruder who combines several may find more.

    Examples
    --------
    >>> import ppm
    >>> found = ppm.risk.match_risk([100.0, 105.0, 300.0], [[102.0, 180.0, 310.0]], radius=0.1)
    >>> found[["expected match risk", "unique matches", "true unique matches"]]
             expected match risk  unique matches  true unique matches
    release
    0                        2.0               3                    2
    """
    import pandas as pd

    values, low, high = _intervals(values, radius, relative)
    synthetic = as_numbers("synthetic", synthetic)
    if (
        synthetic.ndim != 2
        or synthetic.shape[1] != values.size
        or not synthetic.size
        or not np.isfinite(synthetic).all()
    ):
        raise ValueError(
            f"synthetic must be finite numbers of shape (releases, {values.size}); "
            f"got shape {synthetic.shape}"
        )
    codes = pattern_codes(groups, values.size)
    rows = []
    for release in synthetic:
        matches = count_within(low, high, release, codes)
        own = (low <= release) & (release <= high)
        unique = matches == 1
        true = int(np.count_nonzero(unique & own))
        rows.append(
            {
                "expected match risk": float(np.sum(1.0 / matches[own])),
                "own record within radius": int(np.count_nonzero(own)),
                "unique matches": int(np.count_nonzero(unique)),
                "true unique matches": true,
                "true match rate (%)": 100.0 * true / values.size,
                "true among unique (%)": 100.0 * true / unique.sum() if unique.any() else np.nan,
            }
        )
    return pd.DataFrame(rows).rename_axis("release")


def match_risks(values, releases, *, radius, relative=True, groups=None):
    """Match risks of several synthesizers, averaged over their releases.

    Parameters
    ----------
    values : array_like, shape (records,)
        Confidential values.
    releases : dict of str to array_like, shape (releases, records)
        Synthetic values by label.
    radius, relative, groups
        As for :func:`identification_risks`.

    Returns
    -------
    pandas.DataFrame
        One row a label, with the columns of :func:`match_risk`. The last column is the average of
        the releases that have a unique match.

    Raises
    ------
    ValueError
        As :func:`match_risk`.

    Examples
    --------
    >>> import ppm
    >>> releases = {"Unweighted": [[101.0, 205.0]], "Weighted": [[190.0, 110.0]]}
    >>> ppm.risk.match_risks([100.0, 200.0], releases, radius=0.1)["expected match risk"].to_dict()
    {'Unweighted': 2.0, 'Weighted': 0.0}
    """
    import pandas as pd

    settings = {"radius": radius, "relative": relative, "groups": groups}
    return pd.DataFrame.from_dict(
        {
            label: match_risk(values, synthetic, **settings).mean()
            for label, synthetic in releases.items()
        },
        orient="index",
    )


def pattern_codes(groups, records):
    """Number the patterns of ``groups`` from 0: equal numbers for records that agree everywhere.

    Raises
    ------
    ValueError
        If there is not one row a record.
    """
    import pandas as pd

    if groups is None:
        return np.zeros(records, dtype=np.intp)
    frame = groups if isinstance(groups, pd.DataFrame) else pd.DataFrame(groups)
    if len(frame) != records or frame.shape[1] == 0:
        raise ValueError(
            f"groups must have one row for each of the {records} records and at least one column; "
            f"got shape {frame.shape}"
        )
    columns = [frame.iloc[:, place].to_numpy() for place in range(frame.shape[1])]
    codes = np.zeros(records, dtype=np.intp)
    for column in columns:
        # numbered anew after each column, so that the product can't overflow
        single = pd.factorize(column, use_na_sentinel=False)[0]
        codes = pd.factorize(codes * (single.max() + 1) + single)[0]
    return codes


def count_within(low, high, candidates, codes):
    """Number of candidates with a record's code in [low, high], for every record."""
    order = np.lexsort((candidates, codes))
    candidates, ranked = candidates[order], codes[order]
    starts = np.flatnonzero(np.r_[True, np.diff(ranked) > 0])
    counts = np.empty(codes.size, dtype=np.intp)
    for start, stop in zip(starts, np.r_[starts[1:], codes.size], strict=True):
        members, own = order[start:stop], candidates[start:stop]
        counts[members] = np.searchsorted(own, high[members], side="right")
        counts[members] -= np.searchsorted(own, low[members], side="left")
    return counts


def _intervals(values, radius, relative):
    """Checked values, and the ends of the interval around each."""
    radius = check_number("radius", radius, above=0)
    check_flag("relative", relative)
    values = as_numbers("values", values)
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        raise ValueError(
            f"values must be finite numbers, one for every record; got shape {values.shape}"
        )
    # a radius beyond all numbers is one that holds all of them
    with np.errstate(over="ignore"):
        width = radius * np.abs(values) if relative else radius
        return values, values - width, values + width
