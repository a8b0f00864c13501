"""Where limits lose least: placed by a public reference."""

import math

import numpy as np

from ppm.checks import as_numbers, check_number
from ppm.terms import Limits

__all__ = ["place_limits", "limits_and_weight"]

# nats, as of limits
_NARROWEST, _FAR = 1e-6, 1e9


def place_limits(width, reference):
    r"""Place limits of a given width where a *public* reference loses least.

    With the change :math:`d_{is} = h(z_{is}) - z_{is}` that limits make to the reference's
    log-likelihood of record i at draw s, the loss is the average over records and draws of
    :math:`|d_{is} - \bar d_i|`, where :math:`\bar d_i` is the record's mean over the draws: a
    change that is the same for all θ loses nothing.

    Parameters
    ----------
    width : float
        Width W, from 1e-6 to 1e9 nats: ε of one release.
    reference : array_like, shape (draws, records)
        Finite log-likelihoods in nats of *public* records at two or more draws of θ from their own
        fit: of last year's file, of a simulated stand-in, or of records drawn from the prior
        predictive distribution; for limits around a center, less their level there. **It must not
        come from the confidential table**: limits that follow the confidential records cost more
        than W, and nothing shows how much. If the release is to have weights, multiply by the
        weights of the reference's records.

    Returns
    -------
    ppm.Limits

    Notes
    -----
    Absolute rather than squared changes keep a few records far below any limits from deciding
    where they lie. The best of a grid of places is refined; if the loss has several minima, the
    grid may miss the lowest one. Not in Savitsky, Williams and Hu (2022).

    Examples
    --------
    >>> import ppm
    >>> last_year = ppm.GammaPoisson([4, 5, 5, 6, 7, 9])    # a public table
    >>> fit = ppm.fit(last_year, ppm.Unweighted(), draws=500, random_seed=1)
    >>> limits = ppm.release.place_limits(1.0, last_year.log_p(fit.theta))
    >>> round(limits.width, 6), -5 < limits.low < limits.high < 0
    (1.0, True)
    """
    half = check_number("width", width, at_least=_NARROWEST, at_most=_FAR) / 2.0
    values = _public_reference(reference)

    def loss(middle):
        change = Limits(middle - half, middle + half)(values)
        change -= values
        change -= change.mean(axis=0)
        return float(np.abs(change, out=change).mean())

    # the median comes first, so that it wins ties
    levels = np.linspace(0.0, 1.0, 63)
    middles = np.r_[np.median(values), np.quantile(values, levels), values.max() - half]
    best = min(middles, key=loss)
    around = np.unique(np.r_[middles, values.min() - 2 * half, values.max() + 2 * half])
    place = int(np.searchsorted(around, best))
    left, right = around[place - 1], around[place + 1]
    for _ in range(5):
        best = min(best, *np.linspace(left, right, 9), key=loss)
        step = (right - left) / 4.0
        left, right = max(left, best - step), min(right, best + step)
    return Limits(best - half, best + half)


def limits_and_weight(width, reference, *, share_clipped=0.02):
    r"""Limits of a given width, and one weight for all records to use inside them.

    Limits that clip many terms leave the tails out of the fit, a bias that more records do not
    remove. A weight α below 1 shrinks the terms before they are clipped. The cost is precision: the
    fit behaves about as if it had only a share α of the records. The weight is a public constant,
    so ε stays the width.

    Parameters
    ----------
    width, reference
        As for :func:`place_limits`, the reference unweighted. **It must not come from the
        confidential table.**
    share_clipped : float, default 0.02
        Share of the reference's weighted values that an interval may leave out, from 0 to 0.5. A
        release clips a little more: its draws scatter more, and the limits that change least are
        not the shortest interval.

    Returns
    -------
    limits : ppm.Limits
        The limits that change the weighted reference least.
    weight : float
        The largest weight, at most 1, at which such an interval holds all other values.

    Examples
    --------
    >>> import ppm
    >>> last_year = ppm.GammaPoisson([4, 5, 5, 6, 7, 9])    # a public table
    >>> fit = ppm.fit(last_year, ppm.Unweighted(), draws=500, random_seed=1)
    >>> limits, weight = ppm.release.limits_and_weight(0.5, last_year.log_p(fit.theta))
    >>> round(weight, 2), round(limits.low, 2), round(limits.high, 2)
    (0.28, -0.97, -0.47)
    """
    width = check_number("width", width, above=0)
    share_clipped = check_number(
        "share_clipped", share_clipped, at_least=0, at_most=0.5
    )
    values = _public_reference(reference)
    ordered = np.sort(values, axis=None)
    # rounding must not include one more value
    inside = math.ceil((1.0 - share_clipped) * ordered.size - 1e-9)
    shortest = float(
        (ordered[inside - 1 :] - ordered[: ordered.size - inside + 1]).min()
    )
    weight = 1.0 if shortest <= width else width / shortest
    return place_limits(width, weight * values), weight


def _public_reference(reference):
    """Log-likelihoods of a reference, checked, shape (draws, records)."""
    values = as_numbers("reference", reference)
    if values.ndim != 2 or len(values) < 2 or not values.size:
        raise ValueError(
            "reference must have shape (draws, records), with two draws or more: with one, "
            f"no change depends on the parameters; got {values.shape}"
        )
    if not np.isfinite(values).all():
        raise ValueError(
            "reference must hold finite numbers: leave out records that are "
            "impossible at a draw"
        )
    if np.array_equal(values, np.rint(values)):
        raise ValueError(
            "reference must hold log-likelihoods, as model.log_p(fit.theta) "
            "gives them; got whole numbers, which may be records"
        )
    return values
