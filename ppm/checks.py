"""Checks of arguments.

Their messages may end in a log: they never show a record's value.
"""

import contextlib
import functools
import importlib
import math
import numbers

import numpy as np


def further(module, extra):
    """A module of a package that an installation may lack: then the message has its extra."""
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name.partition(".")[0] != package:
            raise  # what the package itself needs
        raise ModuleNotFoundError(
            f"this needs {package}: pip install '.[{extra}]' in the folder of ppm's source",
            name=package,
        ) from None


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
    refuse_masked(name, values)
    array, odd = _numbers(values)
    if array is None:
        of_type = f" of type {values.dtype}" if hasattr(values, "dtype") else ""
        got = f"{type(values).__name__}{of_type}{odd}"
        raise ValueError(f"{name} must be an array of numbers; got {got}")
    # row by row in memory, so that sums are reproducible
    return np.asarray(array, dtype, order=None if dtype is None else "C")


def _numbers(values):
    """An array of real numbers, and ""; or None, and what is in their place as far as it is known."""
    try:
        array = np.asarray(values)
        if array.dtype.kind == "O":
            if odd := _first_odd(array, getattr(values, "columns", None)):
                return None, odd
            array = array.astype(np.float64)
    # whatever an object of another package raises: its words may hold its value
    except Exception:
        return None, ""
    if array.dtype.kind in "biuf":
        return array, ""
    return None, " with text" if array.dtype.kind in "US" else ""


def _first_odd(objects, columns):
    """Kind and place of the first object that is no number, in words, or nothing."""
    for place, value in np.ndenumerate(objects):
        kind = type(value).__name__
        try:
            # NumPy reads text as a number, and None as NaN
            float(None if isinstance(value, (str, bytes)) else value)
        except Exception:
            known = {"NoneType": "None", "str": "text", "bytes": "text"}
            return f" with {known.get(kind, kind)}" + (
                f" at {_told(place, columns=columns)}" if place else ""
            )
    return ""


as_numbers = functools.partial(as_array, dtype=np.float64)


def refuse_masked(name, values):
    """Refuse masked entries, which NumPy would take as they stand behind their mask."""
    parts = values if isinstance(values, (list, tuple)) else [values]
    if any(
        [
            isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part)
            for part in parts
        ]
    ):
        raise ValueError(f"{name} holds masked values: leave those records out")


def how_many(wrong, *axes, columns=None):
    """How many entries are wrong, and where the first is, from 0: never what it is.

    ``axes`` say what the axes count, ``columns`` are names of what the last one counts.
    """
    first = _told(np.argwhere(wrong)[0], axes, columns)
    return (
        f"(wrong: {np.count_nonzero(wrong):,} of {wrong.size:,}, the first at {first})"
    )


def listed(names):
    """The first few of some public names, for a message of one line."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    plain = [
        name.item() if isinstance(name, np.generic) else name for name in names[:3]
    ]
    return ", ".join([repr(name)[:100] for name in plain]) + more


def _told(place, axes=(), columns=None):
    place = [*map(int, place)]
    if columns is not None:
        # text, so that a name cannot break the line
        place[-1] = listed([columns[place[-1]]])
    axes = axes or (["position"] if len(place) < 2 else ["row", "column"])
    return ", ".join(
        [f"{axis} {number}" for axis, number in zip(axes, place, strict=False)]
    )


def as_list(name, values):
    """Return ``values`` as a one-dimensional float64 array of finite numbers, at least one."""
    values = as_numbers(name, values)
    if values.ndim != 1 or values.size == 0:
        raise ValueError(
            f"{name} must be a list of finite numbers; got shape {values.shape}"
        )
    return check_finite(name, values, "a list of finite numbers")


def as_ends(name, values):
    """Return two finite numbers, the first below the second, as an array."""
    ends = as_list(name, values)
    if ends.size != 2 or not ends[0] < ends[1]:
        raise ValueError(
            f"{name} must be two finite numbers, the first below the second; got "
            f"{shown(values)}"
        )
    return ends


def check_finite(name, values, accepted, *axes, columns=None):
    """Return the ``values`` if all are finite; ``accepted`` says what they must be."""
    wrong = ~np.isfinite(values)
    if wrong.any():
        raise ValueError(
            f"{name} must be {accepted}, not NaN or infinite "
            f"{how_many(wrong, *axes, columns=columns)}"
        )
    return values


def as_amounts(name, values, what="numbers"):
    """Return ``values`` as a float64 array of numbers of at least 0, ∞ included; one or more."""
    values = as_numbers(name, values)
    # written so that NaN fails the comparison too
    wrong = np.atleast_1d(~(values >= 0))
    if values.size == 0 or wrong.any():
        got = f" {how_many(wrong)}" if values.size else f"; got shape {values.shape}"
        raise ValueError(f"{name} must hold {what}, 0 or more and not NaN{got}")
    return values


def check_flag(name, value):
    """Return ``value`` as a bool if it is one."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False; got {shown(value)}")
    return bool(value)


def as_weights(name, weights):
    """Return weights of records as a float64 array: their order is what pairs them with records."""
    index = _index_of(weights)
    if index is not None and not index.equals(_numbered(index)):
        raise ValueError(
            f"{name} must be in the order of the records: an object of pandas or xarray needs the "
            f"index 0, 1, 2, …; {name}.to_numpy() takes the values as they stand"
        )
    return as_numbers(name, weights)


def _index_of(values):
    """The index of a pandas object, or of an xarray one along its first dimension, or None."""
    if hasattr(values, "iloc"):
        return values.index
    dims = getattr(values, "dims", None)
    # a data set has no first dimension
    if isinstance(dims, tuple) and dims:
        return values.indexes.get(dims[0])
    return None


def _numbered(values):
    import pandas as pd

    return pd.RangeIndex(len(values))


def check_one_order(**given):
    """Refuse objects of the same records whose indexes differ: none is put in order."""
    indexed = {name: _index_of(values) for name, values in given.items()}
    indexed = {name: index for name, index in indexed.items() if index is not None}
    for name, index in indexed.items():
        first, its = next(iter(indexed.items()))
        # of other lengths other checks tell
        if len(index) == len(its) and not index.equals(its):
            raise ValueError(
                f"{name} must have the index of {first}, whose records it is of; "
                f"{name}.to_numpy() takes it as it stands"
            )


def check_weights(weights, records, *, at_most_1=""):
    """Return ``weights`` as floats, one per record, or ones in the place of None.

    ``at_most_1`` says why none may be above 1.
    """
    weights = np.ones(records) if weights is None else as_weights("weights", weights)
    if weights.shape != (records,):
        raise ValueError(
            f"weights has shape {weights.shape}, but must have one weight for each of "
            f"the {records} records"
        )
    # written so that NaN fails the comparison too
    wrong = ~((weights >= 0) & (weights <= 1 if at_most_1 else weights < np.inf))
    if wrong.any():
        accepted = (
            f"between 0 and 1, because {at_most_1}"
            if at_most_1
            else "finite and 0 or more"
        )
        raise ValueError(f"weights must be {accepted} {how_many(wrong, 'record')}")
    return weights


def check_number(
    name,
    value,
    *,
    above=-math.inf,
    at_least=-math.inf,
    at_most=math.inf,
    below=math.inf,
    infinite=False,
):
    """Return ``value`` as a float if it is within the limits: finite, or ∞ with ``infinite``."""
    number = math.nan
    if isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_)):
        with contextlib.suppress(OverflowError):
            number = float(value)
    if infinite and number == math.inf:
        return number
    inside = above < number < below and at_least <= number <= at_most
    if not (inside and math.isfinite(number)):
        limits = {
            "above": above,
            "of at least": at_least,
            "at most": at_most,
            "below": below,
        }
        told = [
            f"{what} {limit}" for what, limit in limits.items() if math.isfinite(limit)
        ]
        accepted = f"a finite number {' and '.join(told)}".rstrip()
        raise ValueError(f"{name} must be {accepted}; got {shown(value)}")
    return number


def check_share(name, value):
    """Return ``value`` as a float if it lies strictly between 0 and 1."""
    return check_number(name, value, above=0, below=1)


def check_count(name, value, *, at_least=1):
    """Return ``value`` as an int if it is a whole number of at least ``at_least``."""
    is_whole = isinstance(value, numbers.Integral) and not isinstance(
        value, (bool, np.bool_)
    )
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
        raise ValueError(
            f"{name} must be a non-empty list of counts; got shape {values.shape}"
        )
    # NaN fails the comparisons too; counts must fit into int64
    wrong = ~((values >= 0) & (values == np.floor(values)) & (values < 2.0**63))
    if wrong.any():
        raise ValueError(
            f"{name} must be whole numbers of at least 0 {how_many(wrong)}"
        )
    return values.astype(np.int64)


def check_rows(name, values, size):
    """Return numbers of rows as a list of ints from 0 to ``size`` - 1, all different."""
    found = as_array(name, values)
    whole = found.ndim == 1 and found.size and found.dtype.kind in "iu"
    if (
        not whole
        or found.min() < 0
        or found.max() >= size
        or np.unique(found).size < found.size
    ):
        raise ValueError(
            f"{name} must name different positions from 0 to {size - 1}, at least one "
            "of them in each list"
        )
    return found.tolist()


def as_releases(name, values, records):
    """Return ``values`` as finite numbers of shape (releases, records), at least one release."""
    values = as_numbers(name, values)
    accepted = f"finite numbers of shape (releases, {records})"
    if not (values.ndim == 2 and values.shape[1] == records and values.size):
        raise ValueError(f"{name} must be {accepted}; got {values.shape}")
    return check_finite(name, values, accepted, "release", "record")


def as_labels(name, labels, records, *, missing=False):
    """Return labels as an object array (records,), which may have ``missing`` ones or not."""
    import pandas as pd

    refuse_masked(name, labels)
    labels = np.asarray(labels, dtype=object)
    if labels.shape != (records,):
        raise ValueError(
            f"{name} must have one label for each of the {records} records; got shape "
            f"{labels.shape}"
        )
    lacking = pd.isna(labels)
    if lacking.any() and not missing:
        raise ValueError(
            f"{name} must have no missing label {how_many(lacking, 'record')}"
        )
    return labels


def pattern_codes(groups, records):
    """Number of each record's pattern in ``groups``, from 0; equal for equal patterns.

    Missing labels are labels of their own.
    """
    import pandas as pd

    codes = np.zeros(records, dtype=np.intp)
    if groups is None:
        return codes
    refuse_masked("groups", groups)
    try:
        frame = groups if isinstance(groups, pd.DataFrame) else pd.DataFrame(groups)
    except (TypeError, ValueError):
        raise ValueError(
            "groups must be a list, an array or a pandas DataFrame of labels; got "
            f"{type(groups).__name__}"
        ) from None
    if len(frame) != records or frame.shape[1] == 0:
        raise ValueError(
            f"groups must have one row for each of the {records} records and at least "
            f"one column; got shape {frame.shape}"
        )
    for place in range(frame.shape[1]):
        # numbered anew after each column, so that the product cannot overflow
        single = pd.factorize(frame.iloc[:, place].to_numpy(), use_na_sentinel=False)[0]
        codes = pd.factorize(codes * (single.max() + 1) + single)[0]
    return codes


class Brief:
    """An object whose ``repr`` shows, in one line, the public settings that it names, alone."""

    _public = ()

    def __repr__(self):
        def words(value):
            # not its own __repr__: a user's model may show its records there
            if isinstance(value, Brief):
                return Brief.__repr__(value)
            return repr(value) if isinstance(value, dict) else shown(value)

        settings = ", ".join(
            f"{name}={words(getattr(self, name))}" for name in self._public
        )
        return f"{type(self).__name__}({settings})"
