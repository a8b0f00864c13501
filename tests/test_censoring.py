"""Censoring: the term of a record, its limits, and where a public reference places them."""

import numpy as np
import pytest
import xarray as xr

from ppm.censoring import Censoring, censoring_interval, censoring_limits
from ppm.synthesizers.gamma_poisson import log_likelihood_of_counts

VALUES = np.r_[-np.inf, -1e300, np.linspace(-80.0, 40.0, 2_001), 1e300, np.inf]
# ends that are no binary fractions, so that rounding could carry a term over
INTERVALS = [(-3.0, -1.0), (-0.8, -0.3), (0.1, 7.7), (-1e-3, 1e-3), (-700.1, 1e5 / 3)]


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize("interval", INTERVALS)
def test_every_term_lies_between_the_limits_and_rises(interval, smooth):
    censor = Censoring(*interval, smooth)
    terms = censor.term(VALUES)
    assert censor.low <= terms.min() and terms.max() <= censor.high
    assert np.all(np.diff(terms) >= 0)
    assert terms.max() - terms.min() <= censor.width == interval[1] - interval[0]
    # the least favourable record comes as near to W as rounding lets it
    assert np.ptp(terms) == pytest.approx(censor.width, rel=1e-12)


def test_hard_censoring_cuts_and_smooth_censoring_is_the_formula():
    z = np.linspace(-9.0, 5.0, 57)
    assert np.array_equal(Censoring(-3, -1, False).term(z), np.minimum(np.maximum(z, -3), -1))
    smooth = Censoring(-3, -1)
    assert np.allclose(smooth.term(z), -2 + np.tanh(z + 2), rtol=0, atol=1e-15)
    wide = Censoring(-5, -1)
    # slope 1 in the middle, by central differences, whatever the width
    slopes = [(c.term(m + 1e-5) - c.term(m - 1e-5)) / 2e-5 for c, m in ((smooth, -2), (wide, -3))]
    assert np.allclose(slopes, 1.0, atol=1e-8)
    assert wide.term(-3.0 + 2.0) == pytest.approx(-3 + 2 * np.tanh(1.0))


@pytest.mark.parametrize("smooth", [True, False])
def test_a_log_likelihood_that_is_no_number_counts_as_the_lower_limit(smooth):
    censor = Censoring(-3, -1, smooth)
    assert censor.term(np.array([np.nan, -2.0])).tolist() == [-3.0, -2.0]
    assert censor.terms([[np.nan, np.nan], [-2.0, -2.0]], [1.0, 0.0]).tolist() == [
        [-3.0, censor.term(0.0)], [-2.0, censor.term(0.0)]
    ]
    assert censor.slope([np.nan, -2.0]).tolist() == [0.0, 1.0]
    assert censor.share_outside([[np.nan, -2.0]]) == 0.5


def test_log_likelihoods_near_the_largest_number_have_the_term_of_a_limit():
    censor = Censoring(0.0, 1.0)
    far = np.array([-1.7e308, 1.7e308])
    assert censor.term(far).tolist() == [0.0, 1.0] and censor.slope(far).tolist() == [0.0, 0.0]


def test_a_record_of_weight_zero_has_a_constant_term_also_where_it_is_impossible():
    for smooth in True, False:
        censor = Censoring(-3, -1, smooth)
        terms = censor.terms([[-np.inf, -np.inf], [-2.0, -2.0]], [0.0, 0.5])
        assert np.ptp(terms[:, 0]) == 0 and terms[0, 0] == censor.term(0.0)
        assert terms[0, 1] == -3 and terms[1, 1] == censor.term(-1.0)


def test_tensors_of_pymc_get_the_same_terms_with_a_slope():
    pytensor = pytest.importorskip("pytensor")
    pt = pytensor.tensor
    z = pt.dvector("z")
    for smooth in True, False:
        censor = Censoring(-0.8, -0.3, smooth)
        term = censor.term(z, pt)
        inside = np.linspace(-2.0, 1.0, 40)
        both = pytensor.function([z], [term, pt.grad(term.sum(), z)])
        found, slope = both(inside)
        assert np.allclose(found, censor.term(inside), rtol=0, atol=1e-14)
        steps = (censor.term(inside + 1e-6) - censor.term(inside - 1e-6)) / 2e-6
        assert np.allclose(slope, steps, atol=1e-6)
        for value in (-np.inf, np.nan):
            found, slope = both(np.array([value]))
            assert found == pytest.approx(censor.low) and slope == 0.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1, -3), "high must be a finite number above -1"),
        ((-1, -1), "high must be a finite number above -1"),
        ((-np.inf, 0), "low must be a finite number"),
        ((0, np.nan), "high must be a finite number"),
        # closer or farther out, terms are mostly rounding, and quadrature takes forever
        ((-1.7e308, 1.7e308), "low must be a finite number at least -1"),
        # no other end has room beyond it
        ((1e9, 1e9), "low must be a finite number at least .* at most 9{9}.0; got 1000000000.0"),
        ((0, 2e9), "high must be a finite number above 0.0 and at most 1"),
        ((-1, -1 + 1e-9), "high must be at least 1e-06 above low"),
        ((-1e8, -1e8 + 0.01), "high must be at least 0.1 above low"),
        ((-3, -1, "no"), "smooth must be True or False"),
    ],
)
def test_an_interval_that_is_none_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message) as error:
        Censoring(*arguments)
    assert "\n" not in str(error.value)


def lost(censor, reference):
    """The loss of the docstring, record by record."""
    total = 0.0
    for record in reference.T:
        change = censor.term(record) - record
        total += np.abs(change - change.mean()).mean()
    return total / reference.shape[1]


def references():
    """Log-likelihoods of public records: a bulk with outliers, prior predictive, two bulks."""
    rng = np.random.default_rng(5)
    records, draws = np.r_[rng.normal(size=60), 12.0, -30.0], rng.normal(0.0, 0.2, size=(50, 1))
    yield -0.9 - (records - draws) ** 2 / 2
    draws = rng.gamma(2.0, 2.0, size=(60, 1))
    yield log_likelihood_of_counts(rng.poisson(4, 40), draws)
    yield np.c_[rng.normal(-9, 1, (40, 20)), rng.normal(-2, 0.3, (40, 30))]


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize("width", [0.25, 1.0, 4.0, 30.0])
def test_no_other_place_of_the_interval_loses_visibly_less(width, smooth):
    for reference in references():
        censor = censoring_interval(width, reference, smooth=smooth)
        assert censor.width == pytest.approx(width) and censor.smooth is smooth
        lows = np.linspace(reference.min() - width, reference.max() + width, 400)
        brute = min(lost(Censoring(low, low + width, smooth), reference) for low in lows)
        assert lost(censor, reference) <= brute * 1.001 + 1e-9


def test_the_symmetric_interval_loses_more_than_the_placed_one():
    for reference in references():
        placed = censoring_interval(2.0, reference)
        assert lost(placed, reference) < 0.98 * lost(Censoring(-1, 1), reference)


def test_a_constant_in_the_log_density_moves_the_interval_and_an_array_may_have_dimensions():
    reference = next(references())
    censor = censoring_interval(1.0, reference)
    moved = censoring_interval(1.0, reference + 7.0)
    assert moved.low == pytest.approx(censor.low + 7.0, abs=0.02)
    array = xr.DataArray(
        reference.reshape(2, 25, -1), dims=("chain", "draw", "record")
    ).transpose("record", "draw", "chain")
    # the mean over the draws is taken in another order
    assert censoring_interval(1.0, array).low == pytest.approx(censor.low, abs=1e-9)


@pytest.mark.parametrize(
    ("width", "reference", "message"),
    [
        (0.0, [[-1.0], [-2.0]], "width must be a finite number above 0"),
        (1.0, [[-1.0, -2.0]], "two draws or more"),
        (1.0, [[-1.0], [-np.inf]], "finite numbers"),
        (1.0, [-1.0, -2.0], "reference must have shape"),
        (1.0, np.zeros((0, 2)), "reference is empty"),
    ],
)
@pytest.mark.parametrize("function", [censoring_interval, censoring_limits])
def test_a_reference_that_places_nothing_is_refused(function, width, reference, message):
    with pytest.raises(ValueError, match=message) as error:
        function(width, reference)
    assert "\n" not in str(error.value)


def test_a_weight_brings_all_but_a_share_of_the_terms_between_limits():
    rng = np.random.default_rng(4)
    reference = -rng.gamma(2.0, size=(20, 300)) - 5.0
    for width in (0.25, 1.0, 3.0):
        for outside in (0.0, 0.02, 0.3):
            limits, weight = censoring_limits(width, reference, outside=outside, smooth=False)
            assert limits == censoring_interval(width, weight * reference, smooth=False)
            values = np.sort(weight * reference, axis=None)
            # whether some interval of this width holds so many, and with a larger weight none does
            for factor, holds in ((1.0 + 1e-9, True), (0.98, False)):
                count = np.searchsorted(values, values + width * factor, side="right")
                most = (count - np.arange(values.size)).max()
                if holds or weight < 1.0:
                    assert (most >= (1.0 - outside) * values.size) == holds
    assert censoring_limits(100.0, reference)[1] == 1.0
    # what all values have in common does not count
    assert censoring_limits(1.0, reference + 40.0)[1] == pytest.approx(
        censoring_limits(1.0, reference)[1]
    )


def test_smooth_limits_have_the_weight_of_half_their_width_and_bend_little_with_it():
    reference = -np.random.default_rng(4).gamma(2.0, size=(20, 300)) - 5.0
    (smooth, weight), (hard, of_hard), (_, of_half) = (
        censoring_limits(width, reference, smooth=smooth)
        for width, smooth in ((1.0, True), (1.0, False), (0.5, False))
    )
    assert smooth.smooth and not hard.smooth
    assert weight == of_half == pytest.approx(of_hard / 2)

    def lost(limits, weight):
        """Average of 1 less the slope: of hard limits the share that they cut off."""
        return 1.0 - limits.slope(weight * reference).mean()

    # with the weight of hard limits smooth ones bend terms several times as much
    placed = censoring_interval(1.0, of_hard * reference)
    assert lost(smooth, weight) < 2 * lost(hard, of_hard) < 0.5 * lost(placed, of_hard)


@pytest.mark.parametrize("outside", [-0.1, 0.6, np.nan, "few"])
def test_a_share_outside_is_a_share(outside):
    with pytest.raises(ValueError, match="outside must be a finite number"):
        censoring_limits(1.0, [[-1.5, -2.0], [-1.0, -3.0]], outside=outside)


def test_the_share_outside_counts_weighted_values_beyond_the_limits():
    log_lik = np.array([[-6.0, -3.0, -0.5, 0.5], [-4.0, -2.5, -1.0, -np.inf]])
    censor = Censoring(-3.0, 0.0, smooth=False)
    assert censor.share_outside(log_lik) == pytest.approx(5 / 8)
    assert censor.share_outside(log_lik, [0.5, 1.0, 1.0, 0.0]) == pytest.approx(4 / 8)
