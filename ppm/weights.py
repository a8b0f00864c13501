"""Record weights from disclosure risks (the paper's sections 2.2.1, 3 and 4)."""

import numpy as np

from ppm._validation import as_numbers, check_number, shown
from ppm.lipschitz import weighted
from ppm.risk import identification_risks

__all__ = [
    "record_weights", "mapped_weights", "public_weights", "reciprocal_map", "threshold_map",
    "capped_map", "linear_map", "scalar_weights", "count_weights", "radius_effect",
]


def record_weights(bounds, *, scale=1.0, shift=0.0, truncate_at=None):
    r"""Weights :math:`\alpha_i = c\,(1 - \tilde f_i) + g`, cut to [0, 1].

    The risk :math:`\tilde f_i` is the record's bound :math:`f_i`, min-max scaled over the records.

    Parameters
    ----------
    bounds : array_like, shape (records,)
        Bounds :math:`f_i` under the *unweighted* posterior, in nats: what
        :func:`ppm.record_bounds` returns.
    scale : float, default 1
        The paper's c, above 0: below 1 it compresses the weights.
    shift : float, default 0
        The paper's g: below 0 it moves all weights down, and more of them to 0.
    truncate_at : float, optional
        The paper's M, above 0, in nats: a record with :math:`\alpha_i f_i > M` gets weight 0.

    Returns
    -------
    numpy.ndarray, shape (records,)
        Weights in [0, 1]. A record with an infinite bound gets 0 and takes no part in the scaling;
        where all bounds are equal, no record is riskier than another and :math:`\tilde f_i = 0` for
        all.

    Raises
    ------
    ValueError
        If ``bounds`` are not one number of at least 0 for every record, or ``scale``, ``shift`` or
        ``truncate_at`` is out of range.

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 3, steps 1d-e, and the truncation of the simulation
    study in section 4. The smallest and the largest bound enter every weight, so each weight
    depends on the whole database and not on its own record alone.

    Examples
    --------
    >>> import ppm
    >>> ppm.record_weights([1.0, 2.0, 5.0])
    array([1.  , 0.75, 0.  ])
    >>> ppm.record_weights([1.0, 2.0, 5.0], scale=0.6, shift=-0.1)
    array([0.5 , 0.35, 0.  ])
    >>> ppm.record_weights([1.0, 2.0, 5.0], truncate_at=1.2)
    array([1., 0., 0.])
    """
    scale = check_number("scale", scale, above=0)
    shift = check_number("shift", shift)
    truncate_at = _check_truncation(truncate_at)
    bounds = _check_bounds(bounds)
    finite = np.isfinite(bounds)
    weights = np.zeros(bounds.size)
    if finite.any():
        lowest, highest = bounds[finite].min(), bounds[finite].max()
        weights[finite] = linear_weights(
            bounds[finite], lowest, highest, scale=scale, shift=shift
        )
    return truncated(weights, bounds, truncate_at)


def truncated(weights, bounds, truncate_at):
    """Weights with 0 for every record whose weighted bound is above M, the paper's truncation.

    Parameters
    ----------
    weights, bounds : array_like
        Of the same shape, in [0, 1] and in nats.
    truncate_at : float or None
        M, in nats; None leaves the weights as they are.
    """
    if truncate_at is None:
        return weights
    return np.where(weighted(bounds, weights) > truncate_at, 0.0, weights)


def linear_weights(bounds, lowest, highest, *, scale=1.0, shift=0.0):
    """Weights from finite bounds whose smallest and largest value is known.

    Parameters
    ----------
    bounds : array_like
        Finite bounds f, in nats, of any shape.
    lowest, highest : array_like
        Smallest and largest bound of the database, broadcast against ``bounds``.
    scale, shift
        As for :func:`ppm.record_weights`, already checked.

    Returns
    -------
    numpy.ndarray
        Weights in [0, 1], of the broadcast shape.

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 3, steps 1c-d.
    """
    span = np.subtract(highest, lowest)
    # what overflows is cut to 0 or 1
    with np.errstate(over="ignore"):
        risk = np.subtract(bounds, lowest) / np.where(span > 0, span, 1.0)
        return np.clip(scale * (1.0 - risk) + shift, 0.0, 1.0)


def mapped_weights(bounds, mapping, *, truncate_at=None):
    r"""Weights :math:`\alpha_i = m(\sup_\theta |\log p(x_i \mid \theta)|)` by a monotone map m.

    The supremum is taken over the draws at hand. Unlike :func:`ppm.record_weights`, one record's
    bound does not enter another record's weight, except through the draws themselves.

    Parameters
    ----------
    bounds : array_like, shape (records,)
        Bounds under the *unweighted* posterior, in nats: what :func:`ppm.record_bounds` returns.
    mapping : callable
        Decreasing map from bounds in [0, inf] to [0, 1] that takes an array, such as
        :func:`ppm.weights.reciprocal_map` or what :func:`ppm.weights.threshold_map` returns.
    truncate_at : float, optional
        The paper's M, above 0, in nats: a record with :math:`\alpha_i f_i > M` gets weight 0.

    Returns
    -------
    numpy.ndarray, shape (records,)
        Weights in [0, 1]; 0 for a record with an infinite bound.

    Raises
    ------
    ValueError
        If a bound is negative or NaN, or the map is not decreasing, or leaves [0, 1].

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 2, the assumption of risk-based weighting.

    Examples
    --------
    >>> import ppm
    >>> ppm.mapped_weights([0.0, 1.0, 3.0], ppm.weights.reciprocal_map)
    array([1.  , 0.5 , 0.25])
    """
    return _map_bounds(_check_bounds(bounds), mapping, truncate_at)


def public_weights(public_bounds, mapping, *, truncate_at=None):
    r"""Weights :math:`\alpha_i = m(b_i)` from bounds over a *public* set of parameters.

    Every weight is a fixed function of its own record, so that the others keep their weights when
    a record takes no part. With :func:`ppm.record_weights` they do not.

    Parameters
    ----------
    public_bounds : array_like, shape (records,)
        For each record the supremum of :math:`|\log p(x_i \mid \theta)|` over a public set of
        parameters, in nats, or its oscillation there. In closed form from
        :meth:`ppm.GammaPoisson.bounds_within` and :meth:`ppm.GammaPoisson.oscillations_within`; for
        another model from its formula, or by maximising over the set. The largest value at
        parameters drawn from the prior, as :func:`ppm.record_bounds` of a fit with all weights 0
        has it, is only an estimate from below: weights made from it depend on their own records
        alone, and promise no bound.
    mapping : callable
        Decreasing map from bounds in [0, inf] to [0, 1] without constants computed from the
        records: :func:`ppm.weights.capped_map`, :func:`ppm.weights.linear_map`,
        :func:`ppm.weights.reciprocal_map`, :func:`ppm.weights.threshold_map`.
    truncate_at : float, optional
        The paper's M, above 0, in nats: a record with :math:`\alpha_i b_i > M` gets weight 0.

    Returns
    -------
    numpy.ndarray, shape (records,)
        Weights in [0, 1]; 0 for a record with an infinite bound.

    Raises
    ------
    ValueError
        If a bound is negative or NaN, or the map is not decreasing, or leaves [0, 1].

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 2, the assumption of risk-based weighting. Public
    must be: the set of parameters, the map with every constant in it, M, and the model with its
    prior. A set or a constant that was tuned on the confidential records breaks the argument, and
    nothing in the numbers shows it.

    If moreover the bounds are suprema over the set, and no possible record has :math:`m(b)\,b`
    above M, as with ``capped_map(M)``, then Δ over that set is at most M for *every* database. If
    the prior gives the set probability 1 as well, one exact draw of the pseudo posterior has
    ε = 2M; with oscillations in the place of bounds, ε = M. A prior that reaches beyond the set
    takes this away: over all parameters the loss may have no limit, and within the set it may be
    larger by :math:`-\log(1 - \delta)`, where both pseudo posteriors have at most δ outside.

    Draws miss what they miss. Let one record be -80, normal around θ with standard deviation 1, and
    the prior of θ standard normal on [-6, 6]. The oscillation over 1,000 prior draws comes to some
    500 nats, that over the interval is 960. A cap at 3.5 nats then lets the weighted log-likelihood
    move by more than 6.

    Examples
    --------
    The interval from 2 to 8 was fixed before the counts were seen. Over it, no weighted bound of
    any
    count is above 3.5 nats.

    >>> import ppm
    >>> bounds = ppm.GammaPoisson([3, 5, 20]).bounds_within(2.0, 8.0)
    >>> weights = ppm.public_weights(bounds, ppm.weights.capped_map(3.5))
    >>> weights.round(2), (weights * bounds).round(2)
    (array([0.98, 1.  , 0.11]), array([3.5 , 3.32, 3.5 ]))
    """
    return _map_bounds(_check_bounds(public_bounds, "public_bounds"), mapping, truncate_at)


def _map_bounds(bounds, mapping, truncate_at):
    if not callable(mapping):
        raise ValueError(
            f"mapping must be a function of the bounds, such as ppm.weights.reciprocal_map or "
            f"ppm.weights.threshold_map(10.0); got {shown(mapping)}"
        )
    truncate_at = _check_truncation(truncate_at)
    finite = np.isfinite(bounds)
    weights = np.zeros(bounds.size)
    mapped = np.asarray(mapping(bounds[finite]), dtype=np.float64)
    if mapped.shape != (finite.sum(),) or not np.all((mapped >= 0) & (mapped <= 1)):
        raise ValueError("mapping must return one weight in [0, 1] for every bound it is given")
    if np.any(np.diff(mapped[np.argsort(bounds[finite], kind="stable")]) > 0):
        raise ValueError("mapping must be decreasing: a larger bound never gets a larger weight")
    weights[finite] = mapped
    return truncated(weights, bounds, truncate_at)


def reciprocal_map(bounds):
    """Smooth map m(z) = 1 / (z + 1) of bounds z >= 0, with m(0) = 1 and m(inf) = 0.

    Parameters
    ----------
    bounds : array_like
        Bounds in nats, 0 or more.

    Returns
    -------
    numpy.ndarray
        Weights in [0, 1].

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 2, after the assumption of risk-based weighting.

    Examples
    --------
    >>> import ppm
    >>> ppm.weights.reciprocal_map([0.0, 1.0, 3.0])
    array([1.  , 0.5 , 0.25])
    """
    return 1.0 / (as_numbers("bounds", bounds) + 1.0)


def threshold_map(threshold):
    """Map m(z) = 1 for z below ``threshold`` and 0 from there on.

    Parameters
    ----------
    threshold : float
        Above 0, in nats.

    Returns
    -------
    callable
        The map, for :func:`ppm.mapped_weights`.

    Raises
    ------
    ValueError
        If ``threshold`` is not above 0.

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 2, after the assumption of risk-based weighting.

    Examples
    --------
    >>> import ppm
    >>> mapping = ppm.weights.threshold_map(10.0)
    >>> mapping([3.0, 12.0])
    array([1., 0.])
    """
    threshold = check_number("threshold", threshold, above=0)

    def mapping(bounds):
        return (as_numbers("bounds", bounds) < threshold).astype(np.float64)

    return mapping


def capped_map(limit):
    """Map m(z) = min(1, limit / z): as much weight as keeps every weighted bound within a limit.

    Parameters
    ----------
    limit : float
        Largest weighted bound, above 0, in nats.

    Returns
    -------
    callable
        The map, for :func:`ppm.public_weights` or :func:`ppm.mapped_weights`.

    Raises
    ------
    ValueError
        If ``limit`` is not above 0.

    Notes
    -----
    A map of the kind that Savitsky, Williams and Hu (2022), section 2, ask for, with the weight in
    inverse proportion to the bound as their introduction has it. No record is removed.

    Examples
    --------
    >>> import ppm
    >>> mapping = ppm.weights.capped_map(2.0)
    >>> mapping([1.0, 2.0, 8.0])
    array([1.  , 1.  , 0.25])
    """
    limit = check_number("limit", limit, above=0)

    def mapping(bounds):
        bounds = as_numbers("bounds", bounds)
        weights = limit / np.maximum(bounds, limit)
        # the rounded quotient can carry the product a last digit above the limit
        above = weighted(bounds, weights) > limit
        return np.where(above, np.nextafter(weights, 0.0), weights)

    return mapping


def linear_map(smallest, largest, *, scale=1.0, shift=0.0):
    r"""The paper's linear weights with *public* constants in the place of the data's extremes.

    Parameters
    ----------
    smallest, largest : float
        Bounds that count as risk 0 and risk 1, in nats; 0 or more, and increasing.
    scale, shift : float, default 1 and 0
        The paper's c, above 0, and g.

    Returns
    -------
    callable
        The map :math:`m(z) = c\,(1 - \tilde z) + g`, cut to [0, 1], in which :math:`\tilde z` is z
        scaled from [smallest, largest] to [0, 1].

    Raises
    ------
    ValueError
        If a constant is out of range.

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 3, step 1d.

    Examples
    --------
    >>> import ppm
    >>> mapping = ppm.weights.linear_map(1.0, 5.0)
    >>> mapping([0.0, 1.0, 3.0, 9.0])
    array([1. , 1. , 0.5, 0. ])
    """
    smallest = check_number("smallest", smallest, at_least=0)
    largest = check_number("largest", largest, above=smallest)
    scale = check_number("scale", scale, above=0)
    shift = check_number("shift", shift)

    def mapping(bounds):
        # below `smallest` the risk would be negative, and the weight above c + g
        return linear_weights(
            np.maximum(as_numbers("bounds", bounds), smallest),
            smallest,
            largest,
            scale=scale,
            shift=shift,
        )

    return mapping


def scalar_weights(bounds, *, epsilon):
    r"""Exponential mechanism: the same weight :math:`\min(1, \epsilon / (2 \Delta))` everywhere.

    Parameters
    ----------
    bounds : array_like, shape (records,)
        Bounds under the *unweighted* posterior, in nats, as :func:`ppm.record_bounds` returns them;
        the largest is Δ.
    epsilon : float
        Target ε, 0 or more, in nats, for one release.

    Returns
    -------
    numpy.ndarray, shape (records,)
        One and the same weight for every record: never above 1, and 0 if Δ is infinite.

    Raises
    ------
    ValueError
        If a bound is negative or NaN, or ``epsilon`` is negative.

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 3.1. The refitted posterior is wider than the one
    that gave Δ, so the bound after refitting can differ from ε / 2: compute it.

    Examples
    --------
    >>> import ppm
    >>> ppm.scalar_weights([2.0, 5.0], epsilon=4.0)
    array([0.4, 0.4])
    """
    epsilon = check_number("epsilon", epsilon, at_least=0)
    bounds = _check_bounds(bounds)
    # a Python float, whose quotients overflow without a warning
    sensitivity = float(bounds.max())
    weight = 1.0 if sensitivity == 0 else min(1.0, epsilon / 2.0 / sensitivity)
    return np.full(bounds.size, weight)


def count_weights(values, *, radius, relative=True, groups=None, scale=1.0, shift=0.0):
    r"""Weights of Countweighted, :math:`c\,(1 - \mathrm{risk}_i) + g`, cut to [0, 1].

    The risk is not a bound: it is the share of comparable records whose value lies outside a
    radius around record i's own, :func:`ppm.risk.identification_risks`.

    Parameters
    ----------
    values : array_like, shape (records,)
        Confidential values, such as incomes in dollars.
    radius : float
        Radius r, above 0: a share of the true value, or in the unit of ``values``.
    relative : bool, default True
        Whether the radius is a share of the true value.
    groups : array_like, shape (records,) or (records, columns), or DataFrame, optional
        What an intruder knows of every record: only records that agree are comparable.
    scale, shift : float, default 1 and 0
        The paper's c, above 0, and g.

    Returns
    -------
    numpy.ndarray, shape (records,)
        Weights in [0, 1].

    Raises
    ------
    ValueError
        If an argument has the wrong shape or is out of range.

    Notes
    -----
    The fourth synthesizer of Savitsky, Williams and Hu (2022), section 5, after Hu, Savitsky and
    Williams (2022). The risks are shares already and are not scaled between their smallest and
    largest value; that, and what :func:`ppm.risk.identification_risks` says of its two
    details, is our reading. These weights come from no bound: a small Δ is not what they aim at.

    Examples
    --------
    The last income has no other within 20 per cent of it.

    >>> import ppm
    >>> ppm.count_weights([100.0, 105.0, 110.0, 300.0], radius=0.2).round(2)
    array([0.67, 0.67, 0.67, 0.  ])
    """
    scale = check_number("scale", scale, above=0)
    shift = check_number("shift", shift)
    risks = identification_risks(values, radius=radius, relative=relative, groups=groups)
    return np.clip(scale * (1.0 - risks) + shift, 0.0, 1.0)


def radius_effect(values, radii, *, relative=True, groups=None, record_bounds=None):
    """What the radius does to the weights of Countweighted, without a fit.

    Parameters
    ----------
    values, relative, groups
        As for :func:`ppm.count_weights`.
    radii : sequence of float
        Radii to try, at least one.
    record_bounds : array_like, shape (records,), optional
        Bounds under the *unweighted* posterior, in nats.

    Returns
    -------
    pandas.DataFrame
        One row a radius: ``average weight``, ``records removed`` (those of weight 0) and, if
        bounds are given, ``bound before refitting``: the largest weight times bound, in nats. The
        refitted posterior is wider and has another bound.

    Raises
    ------
    ValueError
        As :func:`ppm.count_weights`, or if there is no radius, or not one bound a record.

    Examples
    --------
    >>> import ppm
    >>> incomes = [100.0, 105.0, 110.0, 300.0]
    >>> ppm.weights.radius_effect(incomes, [0.1, 2.0]).round(2)
            average weight  records removed
    radius
    0.1                0.5                1
    2.0                1.0                0
    """
    import pandas as pd

    radii = list(radii)
    if not radii:
        raise ValueError("radii must hold at least one radius")
    if record_bounds is not None:
        record_bounds = _check_bounds(record_bounds, "record_bounds")
        if record_bounds.shape != np.shape(values):
            raise ValueError(
                f"record_bounds must have one bound for each of the {np.size(values)} records; got "
                f"shape {record_bounds.shape}"
            )
    rows = []
    for radius in radii:
        weights = count_weights(values, radius=radius, relative=relative, groups=groups)
        row = {
            "average weight": weights.mean(),
            "records removed": int(np.count_nonzero(weights == 0)),
        }
        if record_bounds is not None:
            row["bound before refitting"] = weighted(record_bounds, weights).max()
        rows.append(row)
    return pd.DataFrame(rows, index=pd.Index(radii, name="radius"))


def _check_bounds(bounds, name="bounds"):
    values = as_numbers(name, bounds)
    # written so that NaN fails the comparison too
    if values.ndim != 1 or values.size == 0 or not np.all(values >= 0):
        raise ValueError(
            f"{name} must hold one bound for every record, 0 or more and not NaN, in nats, as "
            f"ppm.record_bounds returns them; got shape {values.shape}"
        )
    return values


def _check_truncation(truncate_at):
    return None if truncate_at is None else check_number("truncate_at", truncate_at, above=0)
