"""Numbers for property-based tests, and maps from bounds to weights."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

# ordinary numbers, and those at the ends of what a float can hold
TINY, HUGE = 5e-324, 1.7e308
ORDINARY = st.floats(-50.0, 50.0)
EXTREME = st.sampled_from(
    [0.0, -0.0, TINY, -TINY, 1e-300, -1e-300, 1e300, -1e300, HUGE, -HUGE]
)
ANY_SIZE = st.one_of(ORDINARY, ORDINARY, EXTREME)


def vectors(elements=ORDINARY, *, least=1, most=8):
    """Arrays of records."""
    return hnp.arrays(np.float64, st.integers(least, most), elements=elements)


def matrices(elements=ORDINARY, *, rows=(1, 6), columns=(1, 6)):
    """Arrays (draws or releases, records)."""
    sizes = st.tuples(st.integers(*rows), st.integers(*columns))
    return hnp.arrays(np.float64, sizes, elements=elements)


def unit_interval(count):
    """Weights for so many records, 0 and 1 among them."""
    share = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0.0, 1.0))
    return hnp.arrays(np.float64, count, elements=share)


# ---- maps of bounds to weights -------------------------------------------------------------------


def reciprocal(bounds):
    return 1.0 / (bounds + 1.0)


def threshold(limit):
    return lambda bounds: (bounds < limit).astype(float)
