"""Limits that are placed by a public reference: no others of their width change it less."""

import numpy as np
import pytest

import ppm

RNG = np.random.default_rng(4)
# one level for all records, levels of their own, and a long lower tail
REFERENCES = {
    "normal": RNG.normal(-2.0, 1.0, (60, 40)),
    "levels": RNG.normal(-2.0, 0.3, (60, 40)) - RNG.exponential(1.0, 40),
    "tail": -(RNG.exponential(1.0, (60, 40)) ** 2),
}


def changed(values, low, width):
    """Mean absolute change of terms, but for a change that is the same at every draw."""
    moved = np.clip(values, low, low + width) - values
    return np.mean([np.abs(one - one.mean()).mean() for one in moved.T])


@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.parametrize("width", [0.3, 2.0])
def test_no_limits_of_this_width_change_the_reference_less(name, width):
    values = REFERENCES[name]
    limits = ppm.release.place_limits(width, values)
    assert limits.width == pytest.approx(width)
    places = np.linspace(values.min() - width, values.max(), 500)
    least = min(changed(values, low, width) for low in places)
    found = changed(values, limits.low, width)
    assert found <= 1.005 * least
    # anywhere would not do
    assert found < 0.98 * np.mean([changed(values, low, width) for low in places[::20]])


@pytest.mark.parametrize("share", [0.02, 0.2])
def test_a_weight_is_the_largest_that_leaves_no_larger_share_outside(share):
    values = REFERENCES["tail"]
    limits, weight = ppm.release.limits_and_weight(1.0, values, share_clipped=share)
    ordered = np.sort(values, axis=None)

    def outside(weight):
        """How many values an interval of this width leaves out, at least."""
        upto = np.searchsorted(ordered, ordered + 1.0 / weight + 1e-9, "right")
        return ordered.size - (upto - np.arange(ordered.size)).max()

    most = round(share * ordered.size)
    assert weight < 1 and outside(weight) <= most < outside(1.01 * weight)
    assert limits == ppm.release.place_limits(1.0, weight * values)
    # a width that holds them all takes the whole weight
    wide = np.ptp(values) + 1
    assert ppm.release.limits_and_weight(wide, values, share_clipped=0)[1] == 1.0
