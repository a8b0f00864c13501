"""Checks that several modules share, of arguments and of packages that may not be there.

Each gives one clear error, before any work starts. A message names the argument, the position and
the kind of fault, and never a record's value: it may end in a log that others read.
"""

import contextlib
import math
import numbers
import os
from importlib import import_module
from pathlib import Path

import numpy as np


def shown(value):
    """A setting as a message may show it: one number or word, and of anything longer its kind.

    What was given in the place of a setting may be the records.
    """
    kind = type(value).__name__
    if value is None or isinstance(value, (bool, numbers.Number, str)):
        try:
            text = repr(value)
        except ValueError:
            # of a whole number with more than 4,300 digits Python makes no text
            text = ""
        return text if 0 < len(text) <= 100 else f"{kind} of more than 100 characters"
    if hasattr(value, "shape"):
        return f"{kind} of shape {tuple(value.shape)}"
    return f"{kind} of length {len(value)}" if hasattr(value, "__len__") else kind


def refuse_masked(name, values):
    """Refuse an array with masked values, or a list of such."""
    parts = values if isinstance(values, (list, tuple)) else [values]
    if any(isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part) for part in parts):
        raise ValueError(
            f"{name} holds masked values; accepted: an array without a mask (leave the masked "
            "records out)"
        )


def as_array(name, values):
    """Return ``values`` as a NumPy array of real numbers, of their own type and without a copy.

    Raises
    ------
    ValueError
        If they are not numbers, or some are masked. NumPy would read digits in text and dates as
        numbers, drop a mask and an imaginary part, and show a value in its own message.
    """
    refuse_masked(name, values)
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
        raise ValueError(
            f"{name} must be an array of numbers; got {type(values).__name__}"
            f"{_kind_of(values)}{within}"
        ) from None
    return array


def _kind_of(values):
    kind = getattr(getattr(values, "dtype", None), "name", "")
    return f" of type {kind}" if kind else ""


def as_numbers(name, values):
    """Return ``values`` as a float64 array whose rows lie one after the other.

    Sums of the same numbers stored in another order would differ in their last digits.

    Raises
    ------
    ValueError
        As :func:`as_array`.
    """
    return np.asarray(as_array(name, values), dtype=np.float64, order="C")


def as_list(name, values):
    """Return ``values`` as a one-dimensional float64 array of finite numbers, at least one.

    Raises
    ------
    ValueError
        If they are something else.
    """
    values = as_numbers(name, values)
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        raise ValueError(f"{name} must be a list of finite numbers; got shape {values.shape}")
    return values


def check_flag(name, value):
    """Return ``value`` as a bool if it is one.

    Raises
    ------
    ValueError
        If ``value`` is neither True nor False.
    """
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False; got {shown(value)}")
    return bool(value)


def check_weights(weights, records, *, at_most_1=""):
    """Return ``weights`` as a float64 array of length ``records``.

    Weights above 1 count a record more than once, as sampling weights do; ``at_most_1`` says why
    there must be none.

    Raises
    ------
    ValueError
        If the weights are not one finite number of at least 0 for every record, or one is above 1
        where none may be.
    """
    weights = as_numbers("weights", weights)
    if weights.shape != (records,):
        raise ValueError(
            f"weights has shape {weights.shape}; accepted: one weight for each of the "
            f"{records} records, shape ({records},)"
        )
    # written so that NaN fails the comparison too
    wrong = np.flatnonzero(~((weights >= 0) & (weights <= 1 if at_most_1 else weights < np.inf)))
    if wrong.size:
        accepted = f"lie in [0, 1], because {at_most_1}" if at_most_1 else "be 0 or more and finite"
        raise ValueError(
            f"weights must {accepted}; that of record {wrong[0]} does not "
            f"({wrong.size} of {records} are outside)"
        )
    return weights


def check_number(name, value, *, above=None, at_least=None, at_most=None, infinite=False):
    """Return ``value`` as a float if it is a finite number within the limits.

    With ``infinite`` it may be positive infinity too.

    Raises
    ------
    ValueError
        If ``value`` is not a finite number or lies outside the limits.
    """
    limits = [
        text
        for limit, text in (
            (above, f"above {above}"),
            (at_least, f"at least {at_least}"),
            (at_most, f"at most {at_most}"),
        )
        if limit is not None
    ]
    accepted = "a finite number" + (" " + " and ".join(limits) if limits else "")
    number = math.nan
    if isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_)):
        with contextlib.suppress(OverflowError):
            number = float(value)
    if infinite and number == math.inf:
        return number
    if (
        not math.isfinite(number)
        or (above is not None and number <= above)
        or (at_least is not None and number < at_least)
        or (at_most is not None and number > at_most)
    ):
        raise ValueError(f"{name} must be {accepted}; got {shown(value)}")
    return number


def check_share(name, value):
    """Return ``value`` as a float if it lies strictly between 0 and 1.

    Raises
    ------
    ValueError
        If it does not.
    """
    value = check_number(name, value, above=0)
    if value >= 1:
        raise ValueError(f"{name} must be between 0 and 1; got {shown(value)}")
    return value


def check_count(name, value, *, at_least=1):
    """Return ``value`` as an int if it is a whole number of at least ``at_least``.

    Raises
    ------
    ValueError
        If ``value`` is not such a number.
    """
    is_whole = isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.bool_))
    if not is_whole or value < at_least:
        raise ValueError(
            f"{name} must be a whole number of at least {at_least}; got {shown(value)}"
        )
    return int(value)


def check_counts(name, values):
    """Return ``values`` as a one-dimensional int64 array of counts 0, 1, 2, ….

    Raises
    ------
    ValueError
        If ``values`` is empty, not one-dimensional, or holds anything but whole numbers >= 0.
    """
    values = as_array(name, values)
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"{name} must be a non-empty list of counts; got shape {values.shape}")
    if values.dtype.kind not in "iuf" or not np.all(np.isfinite(values)):
        raise ValueError(f"{name} must hold whole numbers >= 0; got values of type {values.dtype}")
    # as whole numbers they must fit into 64 bits
    wrong = np.flatnonzero((values < 0) | (values != np.floor(values)) | (values >= 2.0**63))
    if wrong.size:
        raise ValueError(
            f"{name} must hold whole numbers >= 0; that at position {wrong[0]} is none "
            f"({wrong.size} of {values.size} are not)"
        )
    return values.astype(np.int64)


def check_folder(name, value):
    """Return the name of a folder as a Path, with the home folder in the place of ``~``.

    Raises
    ------
    ValueError
        If it names nothing. An empty text would be the folder where one stands.
    """
    if isinstance(value, (str, os.PathLike)):
        text = os.fsdecode(value)
        if text.strip() and "\0" not in text:
            # RuntimeError: whose home is not known
            with contextlib.suppress(RuntimeError):
                return Path(text).expanduser()
    raise ValueError(f"{name} must be a folder; got {shown(value)}")


# ---- what is imported when -----------------------------------------------------------------------

# extra of pyproject.toml -> modules of it that the library cannot do without; numba and
# threadpoolctl are used where they are installed
EXTRAS = {
    "pymc": ("pymc", "pytensor"),
    "nutpie": ("nutpie",),
    "extra": ("matplotlib", "opendp", "pooch", "requests", "tqdm"),
    "large": ("cloudpickle", "dask", "distributed", "h5netcdf", "zarr"),
    "book": ("jinja2",),
}


class MissingExtraError(ImportError):
    """A package of an optional group is not installed; the message is one line."""


def install_line(module):
    """What to type where a module is missing; empty text if it belongs to no optional group."""
    for extra, modules in EXTRAS.items():
        if module in modules:
            return f"pip install 'ppm[{extra}]'"
    return ""


@contextlib.contextmanager
def needed_for(what):
    """Say what needs a module that is imported within, and how to get it.

    Parameters
    ----------
    what : str
        What cannot be done without it.

    Raises
    ------
    MissingExtraError
        If a module of an optional group is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        name = (error.name or "").partition(".")[0]
        if not install_line(name):
            raise
        raise MissingExtraError(f"{what} needs {name}: {install_line(name)}", name=name) from None


def lazily(package, exports, rooms=()):
    """``__getattr__`` and ``__dir__`` of a package whose names are loaded when first used.

    Parameters
    ----------
    package : dict
        The package's ``globals()``.
    exports : dict of str to str
        Public name -> the module that defines it.
    rooms : sequence of str, optional
        Modules and folders of the package, reached as its attributes.
    """
    dotted = package["__name__"]

    def getattribute(name):
        if name in exports:
            with needed_for(f"{dotted}.{name}"):
                value = getattr(import_module(exports[name]), name)
        elif name in rooms:
            value = import_module(f"{dotted}.{name}")
        else:
            raise AttributeError(f"module {dotted!r} has no attribute {name!r}")
        package[name] = value
        return value

    def names():
        return sorted({*package, *exports, *rooms})

    return getattribute, names


def one_thread():
    """Limit linear algebra to one thread, as a context, where threadpoolctl is installed.

    On matrices with a few hundred columns threads gain little, and cost a multiple where they wait
    for a core that something else is using. One thread also keeps the order of sums, and so the
    last digits.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        return contextlib.nullcontext()
    return threadpool_limits(1)
