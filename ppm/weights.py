"""Record weights from disclosure risks (the paper's sections 2.2.1, 3 and 4)."""

import numpy as np

from ppm.checks import as_amounts, as_numbers, check_number, shown
from ppm.risk import identification_risks
from ppm.terms import weighted

__all__ = [
    "record_weights",
    "mapped_weights",
    "capped_map",
    "scalar_weights",
    "count_weights",
]


def record_weights(bounds, *, scale=1.0, shift=0.0, truncate_at=None):
    r"""Weights :math:`\alpha_i = c\,(1 - \tilde f_i) + g`, cut to [0, 1].

    The risk :math:`\tilde f_i` is the record's bound :math:`f_i`, min-max scaled over the records
    (Savitsky, Williams and Hu, 2022, section 3, steps 1d-e; section 4 for the truncation). The
    smallest and the largest bound enter every weight, so each weight depends on the whole database
    and not on its own record alone.

    Parameters
    ----------
    bounds : array_like, shape (records,)
        Bounds :math:`f_i` under the *unweighted* posterior, in nats, from
        :func:`ppm.record_bounds`. A record with an infinite bound gets weight 0 and is left out of
        the scaling; where all bounds are equal, :math:`\tilde f_i = 0` for all.
    scale, shift : float
        The paper's c, above 0, and g: a c below 1 compresses the weights; a g below 0 lowers all of
        them, and sets more of them to 0.
    truncate_at : float, optional
        The paper's M, above 0, in nats: a record with :math:`\alpha_i f_i > M` gets weight 0.

    Examples
    --------
    >>> import ppm
    >>> ppm.record_weights([1.0, 2.0, 5.0], scale=0.6, shift=-0.1)
    array([0.5 , 0.35, 0.  ])
    >>> ppm.record_weights([1.0, 2.0, 5.0], truncate_at=1.2)
    array([1., 0., 0.])
    """
    scale = check_number("scale", scale, above=0)
    shift = check_number("shift", shift)
    bounds = _check_bounds(bounds)
    finite = bounds[np.isfinite(bounds)]
    if not finite.size:
        return np.zeros(bounds.size)
    # the risk of an infinite bound is infinite, and its weight 0
    weights = linear_weights(
        bounds, finite.min(), finite.max(), scale=scale, shift=shift
    )
    return truncated(weights, bounds, truncate_at)


def linear_weights(bounds, lowest, highest, *, scale=1.0, shift=0.0):
    """Linear weights of bounds of any shape, with given finite extremes, broadcast."""
    span = np.subtract(highest, lowest)
    # overflow is clipped to 0 or 1
    with np.errstate(over="ignore"):
        risk = np.subtract(bounds, lowest) / np.where(span > 0, span, 1.0)
        return np.clip(scale * (1.0 - risk) + shift, 0.0, 1.0)


def truncated(weights, bounds, truncate_at):
    """Weights with 0 where the weighted bound is above M, if there is an M."""
    if truncate_at is None:
        return weights
    truncate_at = check_number("truncate_at", truncate_at, above=0)
    return np.where(weighted(bounds, weights) > truncate_at, 0.0, weights)


def mapped_weights(bounds, mapping, *, truncate_at=None):
    r"""Weights :math:`\alpha_i = m(b_i)` by a decreasing map m of the records' bounds.

    Parameters
    ----------
    bounds : array_like, shape (records,)
        Bounds in nats: those of the unweighted fit, from :func:`ppm.record_bounds`; or suprema of
        :math:`|\log p(x_i \mid \theta)|` (or oscillations) over a *public* set of parameters, from
        :meth:`ppm.GammaPoisson.bounds_within` or from another model's formula. An infinite bound
        gives weight 0.
    mapping : callable
        Decreasing map of an array of bounds to [0, 1], such as ``lambda z: 1 / (z + 1)`` or
        :func:`ppm.weights.capped_map`.
    truncate_at : float, optional
        As for :func:`ppm.record_weights`.

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 2, the assumption of risk-based weighting. Bounds over
    posterior draws depend on all records, and so do their weights. Each weight depends on its own
    record alone if the bounds are suprema over a public set, and the map with its constants, M,
    and the model with its prior are public too. A constant that was tuned on the confidential
    records breaks the argument, and the numbers do not show it.

    If moreover no possible record has :math:`m(b)\,b` above M, as with ``capped_map(M)``, then Δ
    over the set is at most M for *every* database. If the prior also gives the set probability 1,
    one exact draw of the pseudo posterior has ε = 2M; with oscillations as bounds, ε = M, which
    ``cap`` of :class:`ppm.PseudoPosteriorMechanism` does for a finite set.

    Examples
    --------
    The interval from 2 to 8 was fixed before anyone saw the counts. Over it, every weighted bound
    is at most 3.5 nats, whatever the count.

    >>> import ppm
    >>> bounds = ppm.GammaPoisson([3, 5, 20]).bounds_within(2.0, 8.0)
    >>> weights = ppm.mapped_weights(bounds, ppm.weights.capped_map(3.5))
    >>> weights.round(2), (weights * bounds).round(2)
    (array([0.98, 1.  , 0.11]), array([3.5 , 3.32, 3.5 ]))
    """
    if not callable(mapping):
        raise ValueError(
            "mapping must be a function of the bounds, such as "
            f"ppm.weights.capped_map(3.5); got {shown(mapping)}"
        )
    bounds = _check_bounds(bounds)
    weights, is_finite = np.zeros(bounds.size), np.isfinite(bounds)
    if is_finite.any():
        finite = bounds[is_finite]
        mapped = np.asarray(mapping(finite), dtype=np.float64)
        if mapped.shape != finite.shape or not np.all((mapped >= 0) & (mapped <= 1)):
            raise ValueError(
                "mapping must return one weight in [0, 1] for every bound it is given"
            )
        if np.any(np.diff(mapped[np.argsort(finite, kind="stable")]) > 0):
            raise ValueError(
                "mapping must be decreasing: a larger bound never gets a larger weight"
            )
        weights[is_finite] = mapped
    return truncated(weights, bounds, truncate_at)


def capped_map(limit):
    """Map m(z) = min(1, limit / z): the largest weight that keeps a weighted bound within a limit.

    It is made for :func:`ppm.mapped_weights`, and gives no finite bound weight 0. The limit, above
    0, is in nats.

    Examples
    --------
    >>> import ppm
    >>> ppm.weights.capped_map(2.0)([1.0, 2.0, 8.0])
    array([1.  , 1.  , 0.25])
    """
    limit = check_number("limit", limit, above=0)

    def mapping(bounds):
        bounds = as_numbers("bounds", bounds)
        weights = limit / np.maximum(bounds, limit)
        # the rounded quotient can carry the product a last digit above the limit
        return np.where(
            weighted(bounds, weights) > limit, np.nextafter(weights, 0.0), weights
        )

    return mapping


def scalar_weights(bounds, *, epsilon):
    r"""Exponential mechanism: the same weight :math:`\min(1, \epsilon / (2 \Delta))` everywhere.

    ``bounds`` as for :func:`ppm.record_weights`; the largest is Δ, and if it is infinite the weight
    is 0. ``epsilon``, 0 or more, is the target of one release, in nats. The weighted posterior is
    wider than the one that gave Δ, so the bound of the second fit can differ from ε / 2: compute
    it (Savitsky, Williams and Hu, 2022, section 3.1).

    Examples
    --------
    >>> import ppm
    >>> ppm.scalar_weights([2.0, 5.0], epsilon=4.0)
    array([0.4, 0.4])
    """
    epsilon = check_number("epsilon", epsilon, at_least=0)
    bounds = _check_bounds(bounds)
    # quotients of Python floats overflow without a warning
    largest = float(bounds.max())
    return np.full(
        bounds.size, 1.0 if largest == 0 else min(1.0, epsilon / 2.0 / largest)
    )


def _check_bounds(bounds):
    values = as_amounts(
        "bounds", bounds, "a bound for each record, as ppm.record_bounds gives it"
    )
    if values.ndim != 1:
        raise ValueError(f"bounds must have shape (records,); got {values.shape}")
    return values


def count_weights(values, *, radius, relative=True, groups=None, scale=1.0, shift=0.0):
    r"""Weights of Countweighted, :math:`c\,(1 - \mathrm{risk}_i) + g`, cut to [0, 1].

    The risk is not a bound but the share of comparable records outside a radius around record i's
    value, :func:`ppm.risk.identification_risks` with these arguments. These weights therefore do
    not aim at a small Δ. ``scale`` (c) and ``shift`` (g) as for :func:`ppm.record_weights`.

    The fourth synthesizer of Savitsky, Williams and Hu (2022), section 5, after Hu, Savitsky and
    Williams (2022). We assume that the risks, which are shares already, are not min-max scaled.

    Examples
    --------
    The last income has no other within 20 per cent of it.

    >>> import ppm
    >>> ppm.count_weights([100.0, 105.0, 110.0, 300.0], radius=0.2).round(2)
    array([0.67, 0.67, 0.67, 0.  ])
    """
    scale, shift = check_number("scale", scale, above=0), check_number("shift", shift)
    risks = identification_risks(
        values, radius=radius, relative=relative, groups=groups
    )
    return np.clip(scale * (1.0 - risks) + shift, 0.0, 1.0)
