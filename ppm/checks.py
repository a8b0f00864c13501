"""Checks of arguments.

Their messages may end in a log: they never show a record's value.
"""

import contextlib
import functools
import math
import numbers

import numpy as np


def shown(value):
    """Show one number or word as it is, anything longer by its type: it may be the records."""
    kind = type(value).__name__
    if value is None or isinstance(value, (bool, numbers.Number, str)):
        text = ""
        with contextlib.suppress(ValueError):  # an int of more than 4,300 digits
            text = repr(value)
        return text if 0 < len(text) <= 100 else f"{kind} of more than 100 characters"
    if hasattr(value, "shape"):
        return f"{kind} of shape {tuple(value.shape)}"
    return f"{kind} of length {len(value)}" if hasattr(value, "__len__") else kind


def as_array(name, values, dtype=None):
    """Return ``values`` as a NumPy array of real numbers.

    Without ``dtype`` they keep their own type and place in memory.

    NumPy alone would read dates and digits in text as numbers, drop a mask or an imaginary part,
    and show a value in its message.
    """
    parts = values if isinstance(values, (list, tuple)) else [values]
    if any([isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part) for part in parts]):
        raise ValueError(f"{name} holds masked values: leave those records out")
    within = ""
    try:
        array = np.asarray(values)
        if array.dtype.kind == "O":
            # NumPy reads text as a number, and None as NaN
            for position, value in enumerate(array.flat):
                if value is None or isinstance(value, (str, bytes)):
                    what = "None" if value is None else "text"
                    within = f" with {what} at position {position}"
                    raise TypeError
            array = array.astype(np.float64)
        if array.dtype.kind in "US":
            within = " with text"
        if array.dtype.kind not in "biuf":
            raise TypeError
    except (TypeError, ValueError, OverflowError):
        of_type = f" of type {values.dtype}" if hasattr(values, "dtype") else ""
        got = f"{type(values).__name__}{of_type}{within}"
        raise ValueError(f"{name} must be an array of numbers; got {got}") from None
    # row by row in memory, so that sums are reproducible
    return np.asarray(array, dtype, order=None if dtype is None else "C")


as_numbers = functools.partial(as_array, dtype=np.float64)


def as_list(name, values):
    """Return ``values`` as a one-dimensional float64 array of finite numbers, at least one."""
    values = as_numbers(name, values)
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        raise ValueError(f"{name} must be a list of finite numbers; got shape {values.shape}")
    return values


def as_amounts(name, values, what="numbers"):
    """Return ``values`` as a float64 array of numbers of at least 0, ∞ included; one or more."""
    values = as_numbers(name, values)
    # written so that NaN fails the comparison too
    if values.size == 0 or not np.all(values >= 0):
        raise ValueError(f"{name} must hold {what}, 0 or more and not NaN; got shape "
                         f"{values.shape}")
    return values


def check_flag(name, value):
    """Return ``value`` as a bool if it is one."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False; got {shown(value)}")
    return bool(value)


def check_weights(weights, records, *, at_most_1=""):
    """Return ``weights`` as floats, one per record, or ones in the place of None.

    ``at_most_1`` says why none may be above 1.
    """
    weights = np.ones(records) if weights is None else as_numbers("weights", weights)
    if weights.shape != (records,):
        raise ValueError(f"weights has shape {weights.shape}, but must have one weight for each of "
                         f"the {records} records")
    # written so that NaN fails the comparison too
    wrong = np.flatnonzero(~((weights >= 0) & (weights <= 1 if at_most_1 else weights < np.inf)))
    if wrong.size:
        accepted = f"between 0 and 1, because {at_most_1}" if at_most_1 else "finite and 0 or more"
        raise ValueError(f"weights must be {accepted} (wrong: {wrong.size} of {records}, the first "
                         f"at record {wrong[0]})")
    return weights


def check_number(name, value, *, above=-math.inf, at_least=-math.inf, at_most=math.inf,
                 below=math.inf, infinite=False):
    """Return ``value`` as a float if it is within the limits: finite, or ∞ with ``infinite``."""
    number = math.nan
    if isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_)):
        with contextlib.suppress(OverflowError):
            number = float(value)
    if infinite and number == math.inf:
        return number
    inside = above < number < below and at_least <= number <= at_most
    if not (inside and math.isfinite(number)):
        limits = {"above": above, "of at least": at_least, "at most": at_most, "below": below}
        told = [f"{what} {limit}" for what, limit in limits.items() if math.isfinite(limit)]
        accepted = f"a finite number {' and '.join(told)}".rstrip()
        raise ValueError(f"{name} must be {accepted}; got {shown(value)}")
    return number


def check_share(name, value):
    """Return ``value`` as a float if it lies strictly between 0 and 1."""
    return check_number(name, value, above=0, below=1)


def check_count(name, value, *, at_least=1):
    """Return ``value`` as an int if it is a whole number of at least ``at_least``."""
    is_whole = isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.bool_))
    if not is_whole or value < at_least:
        accepted = f"a whole number of at least {at_least}"
        raise ValueError(f"{name} must be {accepted}; got {shown(value)}")
    return int(value)


def check_counts(name, values):
    """Return ``values`` as a one-dimensional int64 array of counts 0, 1, 2, …."""
    values = as_array(name, values)
    if values.dtype.kind == "b":
        raise ValueError(f"{name} must be counts; got true and false")
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"{name} must be a non-empty list of counts; got shape {values.shape}")
    # NaN fails the comparisons too; counts must fit into int64
    wrong = np.flatnonzero(~((values >= 0) & (values == np.floor(values)) & (values < 2.0**63)))
    if wrong.size:
        raise ValueError(f"{name} must be whole numbers of at least 0 (wrong: {wrong.size} of "
                         f"{values.size}, the first at position {wrong[0]})")
    return values.astype(np.int64)


def check_rows(name, values, size):
    """Return numbers of rows as a list of ints from 0 to ``size`` - 1, all different."""
    found = as_array(name, values)
    whole = found.ndim == 1 and found.size and found.dtype.kind in "iu"
    if not whole or found.min() < 0 or found.max() >= size or np.unique(found).size < found.size:
        raise ValueError(f"{name} must name different positions from 0 to {size - 1}, at least one "
                         "of them in each list")
    return found.tolist()


def as_releases(name, values, records):
    """Return ``values`` as finite numbers of shape (releases, records), at least one release."""
    values = as_numbers(name, values)
    fits = values.ndim == 2 and values.shape[1] == records and values.size
    if not fits or not np.isfinite(values).all():
        raise ValueError(f"{name} must be finite numbers of shape (releases, {records}); got "
                         f"{values.shape}")
    return values


def pattern_codes(groups, records):
    """Number of each record's pattern in ``groups``, from 0; equal for equal patterns."""
    import pandas as pd

    codes = np.zeros(records, dtype=np.intp)
    if groups is None:
        return codes
    frame = groups if isinstance(groups, pd.DataFrame) else pd.DataFrame(groups)
    if len(frame) != records or frame.shape[1] == 0:
        raise ValueError(f"groups must have one row for each of the {records} records and at least "
                         f"one column; got shape {frame.shape}")
    for place in range(frame.shape[1]):
        # numbered anew after each column, so that the product cannot overflow
        single = pd.factorize(frame.iloc[:, place].to_numpy(), use_na_sentinel=False)[0]
        codes = pd.factorize(codes * (single.max() + 1) + single)[0]
    return codes


def check_draws(name, values):
    """Return values of θ as a dataset (chain 1, draw, …), without coordinates."""
    import xarray as xr

    if isinstance(values, xr.DataTree):
        values = values.children.get("posterior", values).to_dataset()
    try:
        if not isinstance(values, xr.Dataset):
            values = xr.Dataset({
                key: (["draw", *[f"{key}_{axis}" for axis in range(1, np.ndim(array))]], array)
                for key, array in [(key, as_array(key, draws)) for key, draws in values.items()]
            })
        draws = [dim for dim in ("chain", "draw") if dim in values.dims]
        found = values.drop_vars(values.coords).load().stack(number=draws, create_index=False)
        finite = [np.isfinite(x).all() and "number" in x.dims for x in found.values()]
    except (AttributeError, TypeError, ValueError):
        finite = []
    if not all(finite or [False]) or not found.sizes["number"]:
        raise ValueError(f"{name} must be a fit, its posterior, or a dict from the names of "
                         "parameters to arrays, with finite values, as many of each parameter")
    found = found.rename(number="draw").expand_dims("chain").transpose("chain", "draw", ...)
    return found.copy(deep=True)  # later changes to the caller's arrays have no effect
