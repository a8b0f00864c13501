"""The same numbers stored in another way, and numbers at the ends of what is taken, are taken."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from test_messages import ARGUMENTS, FUNCTIONS, PLACES

import ppm

# ---- the same numbers in another storage ---------------------------------------------------------


def _pandas(values):
    index = np.random.default_rng(values.size).permutation(len(values))
    return (pd.Series if values.ndim == 1 else pd.DataFrame)(values, index=index)


# name -> function of a NumPy array of numbers
SAME = {
    "read-only": lambda values: np.broadcast_to(values, values.shape),
    "every other element": lambda values: np.stack([values, values - 7], axis=-1)[
        ..., 0
    ],
    "backwards in memory": lambda values: np.ascontiguousarray(values[::-1])[::-1],
    "column by column": lambda values: np.array(values, order="F"),
    "the other byte order": lambda values: values.astype(values.dtype.newbyteorder()),
    "a list": lambda values: values.tolist(),
    "a tuple": lambda values: tuple(values.tolist()),
    "pandas, another index": _pandas,
    "a mask that hides nothing": lambda values: np.ma.array(values, mask=False),
    "objects": lambda values: values.astype(object),
    "pandas, nullable": lambda values: _pandas(values).astype("Float64"),
    "xarray": lambda values: xr.DataArray(values),
}


def same(one, other):
    """Whether two results are equal to the bit, whatever they are made of."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, pd.DataFrame | pd.Series):
        return one.equals(other)
    if isinstance(one, xr.DataArray | xr.Dataset | xr.DataTree):
        return one.identical(other)
    if type(one).__module__.startswith("ppm") and hasattr(one, "__dict__"):
        return same(vars(one), vars(other))
    one, other = np.asarray(one), np.asarray(other)
    return one.dtype == other.dtype and np.array_equal(
        one, other, equal_nan=one.dtype.kind in "fc"
    )


ARRAYS = [
    (name, argument)
    for name, argument in PLACES
    if isinstance(ARGUMENTS[name][argument], np.ndarray)
]


@pytest.mark.parametrize("place", ARRAYS, ids=".".join)
def test_another_storage_of_the_same_numbers_changes_nothing_and_is_not_written_to(
    place,
):
    name, argument = place
    function, given = FUNCTIONS[name], ARGUMENTS[name]
    values = given[argument].copy()
    right = function(**given)
    for kind, store in SAME.items():
        stored = store(values)
        try:
            found = function(**given | {argument: stored})
        except ValueError as error:
            # an array with dimensions is a log-likelihood with names of its own
            assert kind == "xarray" and "dimensions" in str(error), f"{kind}: {error}"
        else:
            assert same(right, found), kind
        assert np.array_equal(np.asarray(stored), values), kind


# ---- the ends of what is taken -------------------------------------------------------------------


def test_a_record_without_weight_has_no_bound_even_where_the_mean_underflows():
    model, no_weight = ppm.GammaPoisson([3, 4]), np.zeros(2)
    fit = ppm.fit(model, ppm.Terms(no_weight), draws=200, random_seed=1)
    assert (fit.theta["mu"] == 0).any()
    assert not fit.record_bounds.any() and not fit.record_oscillations.any()


@pytest.mark.parametrize(
    "setting",
    [
        *(
            {"concentration_prior": pair}
            for pair in ((1e300, 1.0), (1e-300, 1.0), (1.0, 1e300))
        ),
        *(
            {"coefficient_scale": scale, "residual_scale": scale}
            for scale in (1e-6, 1e6)
        ),
    ],
)
def test_any_prior_that_is_taken_gives_a_fit(setting):
    X, values = (
        np.vander(np.linspace(-1.0, 1.0, 12), 2),
        np.random.default_rng(6).normal(size=12),
    )
    setting = setting | {"components": 2, "chains": 1, "warmup": 10, "parallel": False}
    model = ppm.FiniteMixture(values, X, **setting)
    for weight in (0.0, 1.0):
        terms = ppm.Terms(np.full(12, weight))
        fit = ppm.fit(model, terms, draws=5, random_seed=1)
        assert np.isfinite(model.log_p(fit.theta)).all()
