"""Checks of arguments. Each raises one clear error before any work starts.

A message names the argument, the position and the kind of fault, but never a record's value: others
may read the log in which it ends.
"""

import contextlib
import math
import numbers

import numpy as np


def shown(value):
    """Show a setting in a message: one number or word as it is, anything longer by its type.

    A caller may have passed the records in place of a setting.
    """
    kind = type(value).__name__
    if value is None or isinstance(value, (bool, numbers.Number, str)):
        try:
            text = repr(value)
        except ValueError:  # an int of more than 4,300 digits
            text = ""
        return text if 0 < len(text) <= 100 else f"{kind} of more than 100 characters"
    if hasattr(value, "shape"):
        return f"{kind} of shape {tuple(value.shape)}"
    return f"{kind} of length {len(value)}" if hasattr(value, "__len__") else kind


def as_array(name, values):
    """Return ``values`` as a NumPy array of real numbers, of their own type and without a copy.

    NumPy alone would read dates and digits in text as numbers, drop a mask or an imaginary part,
    and show a value in its message.
    """
    parts = values if isinstance(values, (list, tuple)) else [values]
    if any([isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part) for part in parts]):
        raise ValueError(f"{name} holds masked values; accepted: an array without a mask (leave "
                         "the masked records out)")
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
        kind = getattr(getattr(values, "dtype", None), "name", "")
        of_type = f" of type {kind}" if kind else ""
        raise ValueError(
            f"{name} must be an array of numbers; got {type(values).__name__}{of_type}{within}"
        ) from None
    return array


def as_numbers(name, values):
    """Return ``values`` as a float64 array, row by row in memory, so that sums are reproducible."""
    return np.asarray(as_array(name, values), dtype=np.float64, order="C")


def as_list(name, values):
    """Return ``values`` as a one-dimensional float64 array of finite numbers, at least one."""
    values = as_numbers(name, values)
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        raise ValueError(f"{name} must be a list of finite numbers; got shape {values.shape}")
    return values


def check_flag(name, value):
    """Return ``value`` as a bool if it is one."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False; got {shown(value)}")
    return bool(value)


def check_weights(weights, records, *, at_most_1=""):
    """Return ``weights`` as a float64 array of length ``records``.

    Weights above 1, such as sampling weights, count a record more than once. ``at_most_1``, if
    given, is the reason why they are refused.
    """
    weights = as_numbers("weights", weights)
    if weights.shape != (records,):
        raise ValueError(f"weights has shape {weights.shape}; accepted: one weight for each of the "
                         f"{records} records, shape ({records},)")
    # written so that NaN fails the comparison too
    wrong = np.flatnonzero(~((weights >= 0) & (weights <= 1 if at_most_1 else weights < np.inf)))
    if wrong.size:
        accepted = f"lie in [0, 1], because {at_most_1}" if at_most_1 else "be 0 or more and finite"
        raise ValueError(f"weights must {accepted}; that of record {wrong[0]} does not "
                         f"({wrong.size} of {records} are outside)")
    return weights


def check_number(name, value, *, above=-math.inf, at_least=-math.inf, at_most=math.inf,
                 infinite=False):
    """Return ``value`` as a float if it is a finite number within the limits.

    With ``infinite`` it may be positive infinity too.
    """
    number = math.nan
    if isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_)):
        with contextlib.suppress(OverflowError):
            number = float(value)
    if infinite and number == math.inf:
        return number
    if not (math.isfinite(number) and number > above and at_least <= number <= at_most):
        limits = {"above": above, "at least": at_least, "at most": at_most}
        told = [f"{what} {limit}" for what, limit in limits.items() if math.isfinite(limit)]
        accepted = " ".join(["a finite number", " and ".join(told)]).rstrip()
        raise ValueError(f"{name} must be {accepted}; got {shown(value)}")
    return number


def check_share(name, value):
    """Return ``value`` as a float if it lies strictly between 0 and 1."""
    value = check_number(name, value, above=0)
    if value >= 1:
        raise ValueError(f"{name} must be between 0 and 1; got {shown(value)}")
    return value


def check_count(name, value, *, at_least=1):
    """Return ``value`` as an int if it is a whole number of at least ``at_least``."""
    is_whole = isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.bool_))
    if not is_whole or value < at_least:
        raise ValueError(
            f"{name} must be a whole number of at least {at_least}; got {shown(value)}"
        )
    return int(value)


def check_counts(name, values):
    """Return ``values`` as a one-dimensional int64 array of counts 0, 1, 2, …."""
    values = as_array(name, values)
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"{name} must be a non-empty list of counts; got shape {values.shape}")
    if values.dtype.kind not in "iuf" or not np.all(np.isfinite(values)):
        raise ValueError(f"{name} must hold whole numbers >= 0; got values of type {values.dtype}")
    # they must fit into int64
    wrong = np.flatnonzero((values < 0) | (values != np.floor(values)) | (values >= 2.0**63))
    if wrong.size:
        raise ValueError(f"{name} must hold whole numbers >= 0; that at position {wrong[0]} is "
                         f"none ({wrong.size} of {values.size} are not)")
    return values.astype(np.int64)


def one_thread():
    """Context in which linear algebra uses one thread, if threadpoolctl is installed.

    With a few hundred columns threads gain little, and may wait for a busy core. One thread also
    fixes the order of sums, and so the last digits.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        return contextlib.nullcontext()
    return threadpool_limits(1)
