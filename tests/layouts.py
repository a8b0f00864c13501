"""Numbers for property-based tests, and the same numbers stored in other ways."""

import numpy as np
import pandas as pd
import xarray as xr
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

# ordinary numbers, and those at the ends of what a float can hold
TINY, HUGE = 5e-324, 1.7e308
ORDINARY = st.floats(-50.0, 50.0)
EXTREME = st.sampled_from([0.0, -0.0, TINY, -TINY, 1e-300, -1e-300, 1e300, -1e300, HUGE, -HUGE])
ANY_SIZE = st.one_of(ORDINARY, ORDINARY, EXTREME)


def vectors(elements=ORDINARY, *, least=1, most=8):
    """Arrays of records."""
    return hnp.arrays(np.float64, st.integers(least, most), elements=elements)


def matrices(elements=ORDINARY, *, rows=(1, 6), columns=(1, 6)):
    """Arrays (draws or releases, records)."""
    return hnp.arrays(
        np.float64, st.tuples(st.integers(*rows), st.integers(*columns)), elements=elements
    )


def unit_interval(count):
    """Weights for so many records, 0 and 1 among them."""
    share = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0.0, 1.0))
    return hnp.arrays(np.float64, count, elements=share)


# ---- maps of bounds to weights -------------------------------------------------------------------


def reciprocal(bounds):
    return 1.0 / (bounds + 1.0)


def threshold(limit):
    return lambda bounds: (bounds < limit).astype(float)


# ---- the same numbers in other clothes ----------------------------------------------------------


def _read_only(values):
    values = values.copy()
    values.flags.writeable = False
    return values


def _strided(values):
    wide = np.full(
        tuple(2 * size for size in values.shape), np.nan if values.dtype.kind == "f" else 7
    )
    wide = wide.astype(values.dtype)
    places = (slice(None, None, 2),) * values.ndim
    wide[places] = values
    return wide[places]


def _backwards(values):
    places = (slice(None, None, -1),) * values.ndim
    return np.ascontiguousarray(values[places])[places]


def _pandas(values):
    index = np.random.default_rng(values.size).permutation(len(values))
    if values.ndim == 1:
        return pd.Series(values, index=index)
    return pd.DataFrame(values, index=index)


# name -> function of a NumPy array of numbers; what stands here has to give the same results
SAME = {
    "read-only": _read_only,
    "every other element": _strided,
    "backwards in memory": _backwards,
    "column by column": lambda values: np.array(values, order="F"),
    "the other byte order": lambda values: values.astype(values.dtype.newbyteorder()),
    "a list": lambda values: values.tolist(),
    "a tuple": lambda values: tuple(values.tolist()),
    "pandas, another index": _pandas,
    "a mask that hides nothing": lambda values: np.ma.array(values, mask=False),
}
# what may be refused, but if it is taken gives the same results
SAME_OR_REFUSED = {
    "objects": lambda values: values.astype(object),
    "pandas, nullable": lambda values: _pandas(values).astype("Float64"),
    "xarray": lambda values: xr.DataArray(values),
}
# what is refused: it holds no number, or hides one
REFUSED = {
    "one masked": lambda values: np.ma.array(
        values, mask=np.arange(values.size).reshape(values.shape) == 0
    ),
    "all masked": lambda values: np.ma.masked_all_like(values),
    "masked in a list": lambda values: [np.ma.masked, *values.tolist()[1:]],
    "text of digits": lambda values: values.astype(str),
    "a list of digits": lambda values: values.astype(str).tolist(),
    "objects, digits among them": lambda values: np.where(
        np.arange(values.size).reshape(values.shape) == 0, "1", values.astype(object)
    ),
    "bytes": lambda values: values.astype("S"),
    "dates": lambda values: np.zeros(values.shape, "M8[D]"),
    "lengths of time": lambda values: np.ones(values.shape, "m8[s]"),
    "complex numbers": lambda values: values.astype(complex),
    "NaN": lambda values: np.full(values.shape, np.nan),
    "nothing": lambda values: values[:0],
    "one missing": lambda values: [None, *values.tolist()[1:]],
    "nested too deeply": lambda values: values[None, None],
    "ragged": lambda values: [values.tolist(), [1.0]],
}


def same(one, other):
    """Whether two results are equal to the bit, whatever they are made of."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, (tuple, list)) and not isinstance(one, str):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, (pd.DataFrame, pd.Series)):
        return one.equals(other)
    if isinstance(one, (xr.DataArray, xr.Dataset, xr.DataTree)):
        return one.identical(other)
    if hasattr(one, "__dataclass_fields__"):
        return all(same(getattr(one, k), getattr(other, k)) for k in one.__dataclass_fields__)
    one, other = np.asarray(one), np.asarray(other)
    return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind in "fc")
