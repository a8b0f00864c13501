"""Gamma densities on an interval, against closed forms, also where nearly all their mass is not."""

import numpy as np
import pytest
from scipy import integrate, stats

from ppm_book.audits.restricted_gamma import RestrictedGamma

LOW, HIGH = 90.0, 110.0
POINTS = np.array([LOW, 97.0, HIGH])
# with some of their mass on the interval, three records to a million; the last two at an end
NEAR = [
    (300.0, 3.0),
    (0.5, 0.01),
    (0.001, 0.001),
    (1e4, 100.0),
    (1e8, 1e6),
    (840.0, 10.0),
]


@pytest.mark.parametrize(("shape", "rate"), NEAR)
def test_where_the_distribution_has_mass_it_is_its_part_on_the_interval(shape, rate):
    found, whole = (
        RestrictedGamma(shape, rate, LOW, HIGH),
        stats.gamma(shape, scale=1 / rate),
    )
    inside = whole.cdf(HIGH) - whole.cdf(LOW)
    centre, half = float(np.clip(shape / rate, LOW, HIGH)), 12 * np.sqrt(shape) / rate
    log_mass = found.log_integral + whole.logpdf(centre) + np.log(centre)
    assert log_mass == pytest.approx(np.log(inside), abs=1e-6)
    mu = np.linspace(max(LOW, centre - half), min(HIGH, centre + half), 200_001)
    density = whole.pdf(mu) / inside
    mean, second = (
        integrate.simpson((mu - centre) ** k * density, x=mu) for k in (1, 2)
    )
    assert found.mean - centre == pytest.approx(mean, rel=1e-5, abs=1e-6 * found.spread)
    assert found.spread == pytest.approx(np.sqrt(second - mean**2), rel=1e-5)
    # against a density without some of its shape and rate
    shapes, rates = min(5.0, shape / 2), min(0.04, rate / 2)
    other = stats.gamma(shape - shapes, scale=1 / (rate - rates))
    exact = whole.logpdf(POINTS) - other.logpdf(POINTS)
    exact += np.log(other.cdf(HIGH) - other.cdf(LOW)) - np.log(inside)
    assert found.log_ratio(POINTS, shapes, rates) == pytest.approx(
        exact, rel=1e-6, abs=1e-6
    )
