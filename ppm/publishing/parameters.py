"""The vocabulary of notebook parameters: one place for their types, meanings and ranges.

The parameters cell of a notebook, the command line, the book's table of parameters and the check
that runs inside a notebook all read this one table.
"""

import difflib
import math
import numbers
import os
import reprlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


class ParameterError(ValueError):
    """A parameter's name, type or value is not accepted; the message is one line."""


@dataclass(frozen=True)
class Parameter:
    """One parameter that notebooks share.

    Attributes
    ----------
    name : str
        The library's name for it.
    type : str
        Annotation in the parameters cell: ``bool``, ``int``, ``float``, ``str``, ``list[int]`` or
        ``list[list[float]]``.
    meaning : str
        What it is, with the paper's symbol in brackets.
    accepted : str
        The accepted values in words.
    fits : callable
        True for an accepted value that already has the right type.
    """

    name: str
    type: str
    meaning: str
    accepted: str
    fits: Callable[[Any], bool]

    @property
    def comment(self):
        """The text that stands behind the parameter in a parameters cell."""
        return f"{self.meaning}; {self.accepted}"

    def check(self, value):
        """Return ``value`` in the parameter's own type.

        Raises
        ------
        ParameterError
            If the type is wrong or the value is out of range.
        """
        try:
            converted = _CONVERTERS[self.type](value)
            fits = self.fits(converted)
        except (TypeError, ValueError, OverflowError):
            fits = False
        if not fits:
            raise ParameterError(
                f"{self.name} = {_told(value)} is not accepted; "
                f"{self.name}: {self.comment}"
            )
        return converted


_shown = reprlib.Repr()
_shown.maxstring = _shown.maxother = 60
_shown.maxlist = _shown.maxtuple = 6


def _told(value):
    try:
        return _shown.repr(value)
    except ValueError:
        # of a whole number with more than 4,300 digits Python makes no text
        return "a number of thousands of digits"


def _whole(value):
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return int(value)
    raise TypeError


def _number(value):
    # a boolean is an Integral and a Real too; numpy's own boolean is neither
    if isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    raise TypeError


def _only(kind):
    def converter(value):
        if isinstance(value, kind):
            return value
        raise TypeError

    return converter


def _list_of(convert):
    def converter(value):
        if not isinstance(value, (list, tuple)):
            raise TypeError
        return [convert(entry) for entry in value]

    return converter


_CONVERTERS = {
    "bool": _only(bool),
    "int": _whole,
    "float": _number,
    "str": _only(str),
    "list[int]": _list_of(_whole),
    "list[float]": _list_of(_number),
    "list[list[float]]": _list_of(_list_of(_number)),
}


def _integer(name, meaning, low, high):
    return Parameter(
        name,
        "int",
        meaning,
        f"a whole number from {low} to {high}",
        lambda value: low <= value <= high,
    )


def _positive(name, meaning, high):
    return Parameter(
        name,
        "float",
        meaning,
        f"a number above 0 and at most {high}",
        lambda value: 0 < value <= high,
    )


def _increasing(values):
    return bool(values) and all(a < b for a, b in zip(values, values[1:], strict=False))


def _increasing_counts(counts):
    return _increasing(counts) and 1 <= counts[0] and counts[-1] <= 200


def _is_pair(pair):
    return len(pair) == 2 and 0 < pair[0] <= 1 and -1 <= pair[1] <= 1


# The upper limits are no statement about the method: they stop a slip of the finger (R = 10**12)
# before it starts to fill the memory.
_ALL = (
    _integer("replicates", "data sets drawn at each size (R)", 2, 100_000),
    Parameter(
        "sizes",
        "list[int]",
        "numbers of records in a data set (n)",
        "a list of increasing whole numbers from 2 to 1000000",
        lambda sizes: _increasing(sizes) and 2 <= sizes[0] and sizes[-1] <= 1_000_000,
    ),
    _positive("mean", "mean of the counts (μ)", 1_000_000),
    _positive("truncate_at", "a record whose weighted bound exceeds it gets weight 0 (M)", 1000),
    Parameter(
        "scale",
        "float",
        "slope of the weights (c)",
        "a number above 0 and at most 1",
        lambda value: 0 < value <= 1,
    ),
    Parameter(
        "shift",
        "float",
        "added to every weight (g)",
        "a number from -1 to 1",
        lambda value: -1 <= value <= 1,
    ),
    Parameter(
        "configurations",
        "list[list[float]]",
        "pairs of scale and shift to compare (c, g)",
        "a list of pairs [c, g], c above 0 and at most 1, g from -1 to 1",
        lambda pairs: bool(pairs) and all(_is_pair(pair) for pair in pairs),
    ),
    _positive("local_bound", "largest weighted |log-likelihood| of a record, in nats (Δ)", 10_000),
    _integer("releases", "synthetic databases released (m)", 1, 1000),
    _integer("draws", "posterior draws a chain keeps (S)", 2, 100_000),
    _integer("weight_draws", "draws of the weights to average over", 1, 100_000),
    Parameter(
        "public_width",
        "float",
        "half the width of the public interval of the mean, as a share of it",
        "a number above 0 and below 1",
        lambda value: 0 < value < 1,
    ),
    _integer("warmup", "posterior draws a chain discards first", 1, 100_000),
    _integer("chains", "independent chains", 1, 64),
    _integer("components", "components of the mixture (K)", 1, 200),
    _integer("strict_components", "components of the mixture under limits", 1, 200),
    Parameter(
        "component_counts",
        "list[int]",
        "numbers of components to compare (K)",
        "a list of increasing whole numbers from 1 to 200",
        _increasing_counts,
    ),
    Parameter(
        "widths",
        "list[float]",
        "widths of the limits (W), the ε of one release",
        "a list of increasing numbers above 0 and at most 100",
        lambda widths: _increasing(widths) and 0 < widths[0] and widths[-1] <= 100,
    ),
    Parameter(
        "outside",
        "float",
        "share of the public table that the limits may cut off",
        "a number from 0 to 0.5",
        lambda value: 0 <= value <= 0.5,
    ),
    _positive("power", "power of income that is modelled (p)", 1),
    _integer("shards", "disjoint parts of a table, each fitted by itself (K)", 2, 100),
    Parameter(
        "measured_sizes",
        "list[int]",
        "numbers of records at which the time of a run is measured",
        "a list of three or more increasing whole numbers from 10 to 10000000",
        lambda sizes: (
            _increasing(sizes) and len(sizes) > 2 and 10 <= sizes[0] and sizes[-1] <= 10_000_000
        ),
    ),
    _integer("bins", "bins of the histogram of all units", 2, 10_000),
    _integer("cell_bins", "bins of the histogram of each group of units", 2, 10_000),
    Parameter(
        "compared_counts",
        "list[int]",
        "numbers of components at which mechanisms are compared (K)",
        "a list of increasing whole numbers from 1 to 200",
        _increasing_counts,
    ),
    _integer("repeats", "how often a comparison is repeated, with other random numbers", 1, 100),
    _integer("resamples", "re-samples of each synthetic database", 2, 100_000),
    Parameter(
        "ce_data",
        "str",
        "Consumer Expenditure file or folder",
        "a path that exists, or empty text for simulated records",
        lambda path: path == "" or os.path.exists(os.path.expanduser(path)),
    ),
    Parameter(
        "records",
        "int",
        "consumer units to use, drawn at random",
        "0 for all of them, or a whole number from 50 to 1000000",
        lambda value: value == 0 or 50 <= value <= 1_000_000,
    ),
    _positive("income_floor", "smaller incomes are raised to it, in dollars", 1_000_000),
    Parameter(
        "point_mass",
        "bool",
        "incomes at the floor have a probability of their own",
        "True or False",
        lambda value: value in (True, False),
    ),
    _positive("radius", "incomes this near count as alike, as a share of the true one (r)", 10),
    _integer("seed", "seed of everything random", 0, 2**32 - 1),
)

#: name -> :class:`Parameter`, in the order in which tables list them
PARAMETERS = {parameter.name: parameter for parameter in _ALL}


def check(**values):
    """Check notebook parameters by name, type and range.

    Parameters
    ----------
    **values
        Parameters as in a notebook's parameters cell.

    Raises
    ------
    ParameterError
        One line that names the first parameter that is unknown, has the wrong type or an
        impossible value, and says what is accepted.

    Examples
    --------
    >>> from ppm_book import page
    >>> page.check(seed=1)
    >>> try:
    ...     page.check(seed=-1)
    ... except ValueError as error:
    ...     print(error)
    seed = -1 is not accepted; seed: seed of everything random; a whole number from 0 to 4294967295
    """
    check_values(values, PARAMETERS)


def check_values(values, accepted):
    """Return ``values`` in the parameters' own types.

    Parameters
    ----------
    values : dict
        Parameter name -> value.
    accepted : collection of str
        The names that are allowed here, all from the vocabulary.

    Raises
    ------
    ParameterError
        As for :func:`check`.
    """
    for name in values:
        if name not in accepted:
            raise ParameterError(unknown_name("parameter", name, accepted))
    return {name: PARAMETERS[name].check(value) for name, value in values.items()}


def unknown_name(kind, name, accepted):
    """One line on a name that is not known: the nearest accepted one, and all of them."""
    close = difflib.get_close_matches(str(name), list(accepted), n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    listed = ", ".join(accepted) or "none"
    return f"unknown {kind} {_told(name)}{hint} (accepted: {listed})"


def parse_value(name, text):
    """Read a value typed on a command line; text that is no Python literal stays text.

    Parameters
    ----------
    name : str
        Name of a parameter of the vocabulary; for a ``str`` parameter the text is the value.
    text : str
        What was typed, for example ``50`` or ``[100, 400]``.
    """
    import ast

    if PARAMETERS[name].type == "str":
        return text
    if PARAMETERS[name].type == "bool" and text.strip() in ("true", "false"):
        # as profiles spell them
        return text.strip() == "true"
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
