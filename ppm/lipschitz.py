"""Lipschitz bounds from a matrix of log-likelihoods (the paper's section 3, steps 1c and 2b-c)."""

import numpy as np

from ppm._validation import check_weights

_DRAW_DIMENSIONS = ("chain", "draw", "sample")
# Rows are read in chunks of about this many numbers, small enough to stay in the processor's cache
_CHUNK = 1 << 16


def record_bounds(log_lik, weights=None):
    r"""Bound of every record: the largest :math:`\alpha_i |\log p(x_i \mid \theta_s)|` over draws.

    With ``weights=None`` these are the :math:`f_i` of step 1c; with weights they are the
    :math:`\Delta_{\alpha,x_i}` whose largest is the local bound.

    Parameters
    ----------
    log_lik : array_like, shape (draws, records), or xarray.DataArray
        Unweighted log-likelihood of every record at every posterior draw, in nats. An xarray
        object has the dimensions ``chain`` and/or ``draw`` (or ``sample``) and one record
        dimension, in any order. It is read once, in chunks, and never copied whole.
    weights : array_like, shape (records,), optional
        Weights α in [0, 1]; all 1 by default.

    Returns
    -------
    numpy.ndarray, shape (records,)
        Bounds in nats. A record whose log-likelihood is infinite has bound ``inf``, or 0 where its
        weight is exactly 0, because it then takes no part in the pseudo likelihood.

    Raises
    ------
    ValueError
        If ``log_lik`` holds NaN, is empty or has no record dimension; if the weights are not one
        number in [0, 1] for every record.

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 3, steps 1c and 2b.
    """
    matrix = _as_matrix(log_lik)
    bounds = np.zeros(matrix.shape[-1])
    weights = _check(weights, bounds.size)
    for chunk in _chunks(matrix):
        # np.maximum carries NaN along, so one check at the end is enough
        np.maximum(bounds, np.abs(chunk).max(axis=0), out=bounds)
    return _weighted(bounds, weights)


def local_bound(log_lik, weights=None):
    r"""Local Lipschitz bound :math:`\Delta_{\alpha,x}`: the largest of the records' bounds.

    Parameters
    ----------
    log_lik : array_like, shape (draws, records), or xarray.DataArray
        Unweighted log-likelihood in nats, as for :func:`record_bounds`.
    weights : array_like, shape (records,), optional
        Weights α in [0, 1]; all 1 by default.

    Returns
    -------
    float
        The bound in nats: the maximum over the draws and records at hand. It grows with the
        number of draws, so report it together with that number.

    Raises
    ------
    ValueError
        As :func:`record_bounds`.

    Notes
    -----
    Savitsky, Williams and Hu (2022), section 3, step 2c.
    """
    return float(record_bounds(log_lik, weights).max())


def record_oscillations(log_lik, weights=None):
    r"""Oscillation of every record: how far its weighted log-likelihood moves over the draws.

    Entry i is :math:`\max_s \alpha_i \log p(x_i \mid \theta_s) - \min_s \alpha_i \log p(x_i \mid
    \theta_s)`. A factor of p that is free of θ, such as the one a change of unit brings, cancels.

    Parameters
    ----------
    log_lik : array_like, shape (draws, records), or xarray.DataArray
        Unweighted log-likelihood in nats, as for :func:`record_bounds`.
    weights : array_like, shape (records,), optional
        Weights α in [0, 1]; all 1 by default.

    Returns
    -------
    numpy.ndarray, shape (records,)
        Oscillations in nats, 0 or more and at most twice the record's bound; at most the bound
        itself where the log-likelihood does not change its sign. A record whose log-likelihood is
        infinite has ``inf``, or 0 where its weight is exactly 0.

    Raises
    ------
    ValueError
        As :func:`record_bounds`.

    Notes
    -----
    Not in Savitsky, Williams and Hu (2022): what the proof of their theorem in section 2 leaves
    when the constant that cancels in the ratio of posteriors is not counted.
    """
    matrix = _as_matrix(log_lik)
    records = matrix.shape[-1]
    weights = _check(weights, records)
    lowest, highest = np.full(records, np.inf), np.full(records, -np.inf)
    for chunk in _chunks(matrix):
        np.minimum(lowest, chunk.min(axis=0), out=lowest)
        np.maximum(highest, chunk.max(axis=0), out=highest)
    infinite = np.isinf(lowest) | np.isinf(highest)
    # an impossible record has -inf at both ends, whose difference says nothing
    spread = np.subtract(highest, lowest, out=np.full(records, np.inf), where=~infinite)
    return _weighted(spread, weights)


def oscillation_bound(log_lik, weights=None):
    r"""Largest oscillation of a record: ε of one release at fixed weights, without a factor 2.

    Parameters
    ----------
    log_lik : array_like, shape (draws, records), or xarray.DataArray
        Unweighted log-likelihood in nats, as for :func:`record_bounds`.
    weights : array_like, shape (records,), optional
        Weights α in [0, 1]; all 1 by default.

    Returns
    -------
    float
        The bound in nats, at most ``ppm.epsilon(ppm.local_bound(log_lik, weights))``.

    Raises
    ------
    ValueError
        As :func:`record_bounds`.

    Notes
    -----
    If the other records keep their weights when a record leaves, the log ratio of the two pseudo
    posteriors *restricted to a set* T of parameters is at most the oscillation over T, in both
    directions. Without the restriction it is at most that plus :math:`-\log(1 - \delta)` for every
    θ in T, where both pseudo posteriors put at most δ outside T. For a finite set of draws T the
    restricted distributions are those on these very draws. The bound says nothing about weights
    that other records' weights react to: see :func:`ppm.record_determined_weights`.
    """
    return float(record_oscillations(log_lik, weights).max())


def _chunks(matrix):
    rows = max(1, _CHUNK // matrix.shape[-1])
    for block in matrix.reshape((-1, *matrix.shape[-2:])):
        for start in range(0, block.shape[0], rows):
            yield block[start : start + rows]


def _check(weights, records):
    return None if weights is None else check_weights(weights, records)


def _weighted(values, weights):
    """Weighted values of the records; NaN among them means that the log-likelihood held NaN."""
    missing = np.flatnonzero(np.isnan(values))
    if missing.size:
        raise ValueError(
            f"log_lik holds NaN (first in record {missing[0]}, {missing.size} of {values.size} "
            "records affected); accepted: finite numbers, or -inf where a record is impossible"
        )
    if weights is None:
        return values
    # 0 * inf would be NaN, where the record contributes nothing
    return np.multiply(weights, values, out=np.zeros(values.size), where=weights > 0)


def _as_matrix(log_lik):
    """View ``log_lik`` as (draws, records) or (chains, draws, records), without copying it."""
    if hasattr(log_lik, "dims"):
        if not hasattr(log_lik, "transpose") or not hasattr(log_lik, "values"):
            raise ValueError("log_lik must be one array; got a collection: pick its variable")
        leading = [d for d in _DRAW_DIMENSIONS if d in log_lik.dims]
        record = [d for d in log_lik.dims if d not in leading]
        if not leading or len(record) != 1:
            raise ValueError(
                f"log_lik has the dimensions {tuple(log_lik.dims)}; accepted: chain and/or draw, "
                "and exactly one record dimension"
            )
        matrix = log_lik.transpose(*leading, record[0]).values
    else:
        matrix = np.asarray(log_lik)
        if matrix.ndim != 2:
            raise ValueError(f"log_lik must have shape (draws, records); got shape {matrix.shape}")
    if matrix.dtype.kind not in "fiu":
        raise ValueError(f"log_lik must hold real numbers; got values of type {matrix.dtype}")
    if matrix.size == 0:
        raise ValueError(f"log_lik is empty: shape {matrix.shape}; give a draw and a record")
    return matrix
