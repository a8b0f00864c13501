"""Gamma densities on an interval, against closed forms, also where nearly all their mass is not."""

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import gammainc

from ppm.synthesizers.restricted_gamma import RestrictedGamma

LOW, HIGH = 90.0, 110.0
# shape and rate of distributions with some of their mass on the interval, three records to a
# million; the last two have it at an end
NEAR = [(300.0, 3.0), (0.5, 0.01), (0.001, 0.001), (1e4, 100.0), (1e8, 1e6), (840.0, 10.0)]


def log_mass(found):
    """Log of the share that the unrestricted distribution has on the interval, from the class."""
    point = np.clip(found.shape / found.rate, LOW, HIGH)
    density = stats.gamma(found.shape, scale=1 / found.rate).logpdf(point)
    return found.log_integral + density + np.log(point)


@pytest.mark.parametrize(("shape", "rate"), NEAR)
def test_where_the_distribution_has_mass_it_is_its_part_on_the_interval(shape, rate):
    found = RestrictedGamma(shape, rate, LOW, HIGH)
    whole = stats.gamma(shape, scale=1 / rate)
    inside = gammainc(shape, HIGH * rate) - gammainc(shape, LOW * rate)
    assert log_mass(found) == pytest.approx(np.log(inside), abs=1e-6)
    centre, half = float(np.clip(shape / rate, LOW, HIGH)), 12 * np.sqrt(shape) / rate
    mu = np.linspace(max(LOW, centre - half), min(HIGH, centre + half), 200_001)
    density = whole.pdf(mu) / inside
    mean, second = (integrate.simpson((mu - centre) ** k * density, x=mu) for k in (1, 2))
    assert found.mean - centre == pytest.approx(mean, rel=1e-5, abs=1e-6 * found.spread)
    assert found.spread == pytest.approx(np.sqrt(second - mean**2), rel=1e-5)
    levels = np.array([0.01, 0.3, 0.9])
    exact = whole.ppf(whole.cdf(LOW) + levels * inside)
    assert np.allclose(found.quantile(levels), exact, rtol=0, atol=1e-4 * found.spread)


@pytest.mark.parametrize("rate", [0.5, 100.0, 1e6, 1e9])
def test_far_above_its_mass_an_exponential_distribution_is_exact(rate):
    found = RestrictedGamma(1.0, rate, LOW, HIGH)
    width = HIGH - LOW
    assert found.log_integral == pytest.approx(np.log(-np.expm1(-rate * width) / (rate * LOW)))
    rest = width / np.expm1(min(rate * width, 700.0))
    assert found.mean - LOW == pytest.approx(1 / rate - rest, rel=1e-6, abs=1e-12)
    # what one would write first knows nothing here
    if rate > 1:
        assert gammainc(1.0, HIGH * rate) - gammainc(1.0, LOW * rate) == 0


@pytest.mark.parametrize("shape", [0.001, 0.5, 7.0, 1e4, 1e8])
def test_far_below_its_mass_a_power_of_the_mean_is_exact(shape):
    # a rate of next to nothing leaves the power alone
    found = RestrictedGamma(shape, 1e-12, LOW, HIGH)
    exact = np.log(-np.expm1(shape * np.log(LOW / HIGH)) / shape)
    assert found.log_integral == pytest.approx(exact, rel=1e-9)


def test_all_counts_0_have_a_density_that_falls_from_the_lower_end():
    few, many = (RestrictedGamma(0.001, 0.001 + records, LOW, HIGH) for records in (2, 1_000_000))
    assert LOW < many.mean < LOW + 2e-6 and few.mean == pytest.approx(LOW + 0.5, abs=0.01)
    wide = RestrictedGamma(0.001, 5.0, 1e-9, 1e9)
    exact = integrate.quad(lambda t: np.exp(0.001 * t - 5 * np.exp(t)), np.log(1e-9), 3, limit=200)
    point = np.clip(0.001 / 5.0, 1e-9, 1e9)
    assert wide.log_integral == pytest.approx(
        np.log(exact[0]) - 0.001 * np.log(point) + 5.0 * point, abs=1e-8
    )


@pytest.mark.parametrize("records", [2, 100, 1_000_000])
@pytest.mark.parametrize("mean", [0.0, 100.0, 1e5])
def test_the_log_ratio_is_that_of_both_normalised_densities(records, mean):
    shape, rate = 0.001 + records * mean, 0.001 + records
    counts, weights = np.array([0.0, 80.0, 100.0]), np.array([1.0, 0.4, 0.7])
    dropped = np.minimum(weights * counts, shape - 0.001), weights
    whole = RestrictedGamma(shape, rate, LOW, HIGH)
    points = np.array([[LOW], [97.0], [HIGH]])
    found = whole.log_ratio(points, *dropped)
    # the ratio is a factor of the likelihood over its mean under the other distribution
    for record in range(3):
        other = RestrictedGamma(
            shape - dropped[0][record], rate - dropped[1][record], LOW, HIGH
        )
        steps = np.linspace(*other._ends, 20_001)
        log_mu = np.log(other._point) + steps
        factor = dropped[0][record] * log_mu - dropped[1][record] * np.exp(log_mu)
        density = np.exp(-other._fall(steps))
        top = factor.max()
        average = top + np.log(
            integrate.simpson(density * np.exp(factor - top)) / integrate.simpson(density)
        )
        exact = dropped[0][record] * np.log(points) - dropped[1][record] * points - average
        assert np.allclose(found[:, record], exact[:, 0], atol=1e-7)
    assert np.abs(found).max() > 0.05
