"""Lipschitz bounds of records, from log-likelihoods (the paper's section 3, steps 1c and 2b-c)."""

from dataclasses import dataclass

import numpy as np

from ppm.checks import as_array, check_weights
from ppm.terms import Terms

__all__ = ["record_bounds", "local_bound", "record_oscillations", "oscillation_bound"]

# numbers in a block, which fits a processor's cache
_BLOCK = 1 << 18


def record_bounds(log_lik, weights=None):
    r"""Lipschitz bound of each record: the maximum over draws of α_i \|log p(x_i | θ_s)\|.

    Without weights these are the :math:`f_i` of step 1c, with weights the
    :math:`\Delta_{\alpha,x_i}` of step 2b (Savitsky, Williams and Hu, 2022, section 3), in nats:
    ``inf`` for a record that some draw makes impossible, 0 if its weight is 0.

    Parameters
    ----------
    log_lik : array_like (draws, records) or xarray.DataArray
        Unweighted log-likelihood in nats. A DataArray has ``chain`` and/or ``draw`` (or
        ``sample``) and one record dimension, in any order. A dask array, or a DataArray that holds
        one, is read in bounded memory, each block once.
    weights : array_like (records,), optional
        Weights α, 0 or more; 1 by default.

    Returns
    -------
    numpy.ndarray (records,)

    Raises
    ------
    ValueError
        If there is a NaN, or arguments have other shapes.

    Examples
    --------
    >>> import ppm
    >>> ppm.record_bounds([[-1.0, -2.0], [-3.0, -0.5]], weights=[0.5, 1.0])  # 2 draws, 2 records
    array([1.5, 2. ])
    """
    terms, ends = _terms_and_ends(log_lik, weights)
    return terms.bounds(*ends)


def local_bound(log_lik, weights=None):
    r"""Local Lipschitz bound :math:`\Delta_{\alpha,x}`: the largest of the records' bounds.

    In nats; arguments as for :func:`ppm.record_bounds`. It grows with the number of draws, so
    report it together with that number (step 2c).

    Examples
    --------
    >>> import ppm
    >>> ppm.local_bound([[-1.0, -2.0], [-3.0, -0.5]], weights=[0.5, 1.0])
    2.0
    """
    return float(record_bounds(log_lik, weights).max())


def record_oscillations(log_lik, weights=None):
    r"""Oscillation of each record: the range of its weighted log-likelihood over the draws.

    Arguments and result as for :func:`ppm.record_bounds`. A factor of p that does not depend on θ,
    such as a change of unit, cancels. An oscillation is at most twice the record's bound, and at
    most the bound itself where the log-likelihood keeps its sign. Not in Savitsky, Williams and Hu
    (2022); their proof of the theorem in section 2 gives it if constants that cancel in the ratio
    of posteriors are not counted.

    Examples
    --------
    >>> import ppm
    >>> ppm.record_oscillations([[-1.0, -2.0], [-3.0, -0.5]])  # two draws of two records
    array([2. , 1.5])
    """
    terms, ends = _terms_and_ends(log_lik, weights)
    return terms.oscillations(*ends)


def oscillation_bound(log_lik, weights=None):
    r"""Largest oscillation of a record over these draws, in nats; at most twice the local bound.

    It estimates, from below, the supremum over all records and all parameters that the prior
    allows. That supremum, where it is finite and no weight reacts to another record, is an ε of
    one exact draw, without a factor of 2; this maximum is not (the book's page *What a strict
    release costs*). Arguments as for :func:`ppm.record_bounds`.

    Examples
    --------
    A factor that does not depend on θ, here of 100 nats, changes only the local bound.

    >>> import numpy as np, ppm
    >>> log_lik = np.array([[-1.0, -2.0], [-3.0, -0.5]])
    >>> ppm.oscillation_bound(log_lik), ppm.oscillation_bound(log_lik - 100.0)
    (2.0, 2.0)
    >>> ppm.local_bound(log_lik), ppm.local_bound(log_lik - 100.0)
    (3.0, 103.0)
    """
    return float(record_oscillations(log_lik, weights).max())


def _terms_and_ends(log_lik, weights):
    """Terms of these weights, and each record's lowest and highest log p."""
    values = _matrix(log_lik)
    terms = Terms(check_weights(weights, values.shape[1]))
    ends = values.min(axis=0), values.max(axis=0)  # both carry NaN along
    if not isinstance(values, np.ndarray):
        import dask

        # of both ends at once, so that each block is read once
        ends = dask.compute(*ends)
    missing = np.flatnonzero(np.isnan(ends[0]))
    if missing.size:
        raise ValueError(
            f"log_lik holds NaN (first in record {missing[0]}, {missing.size} of "
            f"{terms.records} records affected); accepted: finite numbers, or -inf where "
            "a record is impossible"
        )
    return terms, ends


def _matrix(log_lik):
    """Log-likelihoods (draws, records), of NumPy, or of dask where they are."""
    if hasattr(log_lik, "dims"):
        draws = [d for d in ("chain", "draw", "sample") if d in log_lik.dims]
        if not hasattr(log_lik, "dtype") or len(log_lik.dims) != len(draws) + 1:
            raise ValueError(
                "log_lik must be one array with chain and/or draw, and one record "
                f"dimension; got {type(log_lik).__name__} {tuple(log_lik.dims)}"
            )
        # `min` of a DataArray would skip NaN, and NumPy's functions would load all of it
        log_lik = log_lik.transpose(*draws, ...).data
        if not np.isnan(log_lik.shape).any():
            log_lik = log_lik.reshape(-1, log_lik.shape[-1])
    if not hasattr(log_lik, "dask"):
        log_lik = as_array("log_lik", log_lik)
    elif isinstance(log_lik._meta, np.ma.MaskedArray) or np.isnan(log_lik.shape).any():
        raise ValueError(
            "log_lik must be a dask array without masked values and with chunks of known sizes"
        )
    if log_lik.ndim != 2 or not log_lik.size or log_lik.dtype.kind not in "fiu":
        raise ValueError(
            "log_lik must hold real numbers of shape (draws, records), at least one; got "
            f"shape {log_lik.shape} of type {log_lik.dtype}"
        )
    return log_lik


@dataclass(frozen=True, eq=False, kw_only=True)
class Extremes:
    """What one pass over a model's log p finds, in nats.

    ``lowest`` and ``highest`` are each record's extremes of log p; ``maxima`` and ``sums``
    (draws,) are each draw's largest absolute term and the sum of its terms.
    """

    lowest: np.ndarray
    highest: np.ndarray
    maxima: np.ndarray
    sums: np.ndarray


def size_of(theta):
    """Number of draws in a dict of arrays (draws, …)."""
    return len(next(iter(theta.values())))


def blocks_of(model, theta):
    """Places among the draws of θ, and log p (draws, records) there, some draws at a time."""
    step = max(1, _BLOCK // model.records)
    for start in range(0, size_of(theta), step):
        block = slice(start, start + step)
        part = {name: values[block] for name, values in theta.items()}
        yield block, checked_log_p(model, part)


def extremes(blocks, draws, terms):
    """Read so many draws of log p, each block of them once."""
    lowest, highest = np.full((2, terms.records), [[np.inf], [-np.inf]])
    maxima, sums = np.empty(draws), np.empty(draws)
    for block, log_p in blocks:
        lowest = np.minimum(lowest, log_p.min(axis=0))
        highest = np.maximum(highest, log_p.max(axis=0))
        values = terms(log_p)
        with np.errstate(over="ignore", invalid="ignore"):
            sums[block] = values.sum(axis=1)
        maxima[block] = np.abs(values, out=values).max(axis=1)
    return Extremes(lowest=lowest, highest=highest, maxima=maxima, sums=sums)


def shaped_log_p(model, theta):
    """Log p (draws, records) of a model, which may be of the user's own making; NaN is let through."""
    log_p = as_array(f"log_p of {type(model).__name__}", model.log_p(theta))
    log_p = np.asarray(log_p, dtype=np.float64)
    shape = size_of(theta), model.records
    if log_p.shape != shape:
        raise ValueError(
            f"log_p of {type(model).__name__} must return (draws, records), here {shape}; "
            f"got {log_p.shape}"
        )
    return log_p


def checked_log_p(model, theta):
    """Log p (draws, records) of a model, which may be of the user's own making; NaN is an error."""
    log_p = shaped_log_p(model, theta)
    if np.isnan(log_p).any():
        record = int(np.flatnonzero(np.isnan(log_p).any(axis=0))[0])
        raise ValueError(
            f"log_p of {type(model).__name__} is NaN (first in record {record}); accepted: "
            "numbers, or -inf where a record is impossible"
        )
    return log_p
