"""The width of a draw: proposition and corollary against sums over fine grids."""

import numpy as np
import pytest
from scipy import stats

POINTS = 200_001
# a slope or a density at a grid's point is off by about its step
CLOSE = {"rtol": 2e-3, "atol": 2e-3}


class Density:
    """exp(-U) between a and b on a fine grid; infinite ends lie where it has vanished."""

    def __init__(self, potential, a, b, kinks=()):
        self.t, step = np.linspace(a, b, POINTS, retstep=True)
        height = potential(self.t)
        weight = np.full(POINTS, step)
        weight[[0, -1]] /= 2
        p = np.exp(height.min() - height)
        self.p = p / (p @ weight)
        self.weight = weight * self.p
        self.slope = np.gradient(height, step, edge_order=2)
        self.mean = self.weight @ self.t
        self.variance = self.weight @ (self.t - self.mean) ** 2
        self.beta = (b - self.mean) * self.p[-1] + (self.mean - a) * self.p[0]
        self.slopes = self.weight @ self.slope**2
        # the second derivative without the kinks, and what they add
        curved = np.gradient(self.slope, step)
        jumps = 0.0
        for kink in kinks:
            place = np.searchsorted(self.t, kink)
            near = slice(max(place - 3, 0), place + 4)
            curved[near] = curved[max(place - 6, 0)]
            jumps += (self.slope[place + 4] - self.slope[place - 4]) * self.p[place]
        self.smooth = self.weight @ curved
        self.curvature = self.smooth + jumps
        self.edges = self.slope[-1] * self.p[-1] - self.slope[0] * self.p[0]


def clipped_sum(t):
    """Minus a sum of centred normal terms between hard limits."""
    values = np.array([-3.1, -0.4, 0.2, 0.9, 2.2, 4.0])[:, None]
    return -np.clip(values * t - t**2 / 2, -0.6, 0.6).sum(axis=0)


def kinks_of_clipped_sum():
    t = np.linspace(-1.5, 1.5, POINTS)
    values = np.array([-3.1, -0.4, 0.2, 0.9, 2.2, 4.0])
    roots = [
        np.roots([-0.5, value, -limit]) for value in values for limit in (-0.6, 0.6)
    ]
    real = np.concatenate([r[np.isreal(r)].real for r in roots])
    return np.sort(real[np.abs(real) < t[-1]])


FALLING = {
    "normal": Density(lambda t: t**2 / 2, -9, 9),
    "normal, cut off": Density(lambda t: (t - 0.3) ** 2, -1, 1),
    "hardly curved": Density(lambda t: (t - 0.1) ** 2 / 50, -1, 1),
    "logistic": Density(lambda t: 2 * np.log(np.cosh(t / 2)), -40, 40),
    "two tops": Density(lambda t: 3 * (t**2 - 1) ** 2, -4, 4),
    "quartic": Density(lambda t: t**4 - t, -4, 4),
    "double exponential": Density(np.abs, -40, 40, kinks=[0.0]),
    "two kinks": Density(
        lambda t: 3 * np.abs(t) + 5 * np.abs(t - 0.5) + t**2, -6, 6, kinks=[0, 0.5]
    ),
    "limits": Density(clipped_sum, -1.5, 1.5, kinks=kinks_of_clipped_sum()),
}
RISING = {
    "pressed against an end": Density(lambda t: (t - 1.5) ** 2 * 8, -1, 1),
    "exponential, rising": Density(lambda t: -4 * t, 0, 1),
    "heavy ends": Density(lambda t: -2 * t**2, -1, 1),
}
ALL = FALLING | RISING | {"uniform": Density(np.zeros_like, -1, 1)}


@pytest.mark.parametrize("one", ALL.values(), ids=ALL)
def test_variance_slopes_and_ends_are_those_of_the_proposition(one):
    left = one.weight @ ((one.t - one.mean) * one.slope)
    np.testing.assert_allclose(left, 1 - one.beta, **CLOSE)
    assert one.variance * one.slopes >= (1 - one.beta) ** 2 * (1 - 1e-3) - 1e-9


def test_without_its_ends_the_bound_of_the_proposition_is_wrong():
    for name in ("uniform", "hardly curved", "pressed against an end"):
        assert ALL[name].variance * ALL[name].slopes < 0.9
    # where the density vanishes at its ends, they add nothing
    assert abs(ALL["normal"].beta) < 1e-9


@pytest.mark.parametrize("one", FALLING.values(), ids=FALLING)
def test_curvature_bounds_the_width_if_kinks_are_counted_and_the_density_falls_to_its_ends(
    one,
):
    np.testing.assert_allclose(one.slopes, one.curvature - one.edges, **CLOSE)
    assert one.edges >= -1e-9 and one.slopes <= one.curvature * (1 + 2e-3)
    assert one.variance * one.curvature >= (1 - one.beta) ** 2 * (1 - 2e-3)


def test_without_kinks_or_with_a_density_that_rises_curvature_bounds_nothing():
    sharp = FALLING["double exponential"], FALLING["two kinks"]
    assert all(one.variance * one.smooth < 0.6 for one in sharp)
    assert all(one.slopes > 1.1 * one.curvature for one in RISING.values())
    heavy = RISING["heavy ends"]
    assert heavy.variance * heavy.curvature < 0 < (1 - heavy.beta) ** 2


@pytest.mark.parametrize(
    ("one", "least"),
    [
        (FALLING["normal"], 1.0),
        (FALLING["normal, cut off"], 2.0),
        (FALLING["hardly curved"], 1 / 25),
        (FALLING["two kinks"], 2.0),
        (RISING["pressed against an end"], 16.0),
    ],
)
def test_a_log_concave_density_is_no_wider_than_its_least_curvature_says(one, least):
    assert one.variance <= (1 - one.beta) / least * (1 + 1e-3)
    # it is reached by normal densities, also cut off ones, and by no others
    normal = one is not FALLING["two kinks"]
    assert normal == np.isclose(one.variance, (1 - one.beta) / least, rtol=1e-3)
    # curvature at one place is not enough
    two = FALLING["two tops"]
    assert two.variance > 1 / (3 * 8)


# ---- the corollary -----------------------------------------------------------------------------


def kappa(c, reach):
    """Largest curvature, as the corollary gives it."""
    return 1 / (2 * c * reach) if c >= reach else 2 / (c + reach) ** 2


def draw(y, epsilon, c, reach):
    """Density of the draw, given the values."""
    y = np.clip(y, -c, c)
    curved = y.size * epsilon * kappa(c, reach)
    return Density(lambda t: curved * (t - y.mean()) ** 2 / 2, -reach, reach)


PUBLIC = [(3.0, 0.5), (1.0, 1.0), (0.4, 2.0), (20.0, 0.1)]
each_public = pytest.mark.parametrize(("c", "reach"), PUBLIC)


@each_public
def test_no_normal_term_moves_by_more_than_epsilon_and_none_may_be_more_curved(
    c, reach
):
    t, y = np.linspace(-reach, reach, 4001), np.linspace(-c, c, 401)[:, None]
    moved = np.ptp((t - y) ** 2, axis=1) / 2
    assert moved.max() * kappa(c, reach) == pytest.approx(1.0, abs=1e-6)
    # the formula of the other case is too large or not the largest, but where both meet
    other = 1 / (2 * c * reach) if c < reach else 2 / (c + reach) ** 2
    assert np.sign(round(moved.max() * other - 1, 6)) == np.sign(reach - c)


@each_public
def test_the_draw_has_the_width_of_the_corollary_and_keeps_pace_with_the_sampling_error(
    c, reach
):
    epsilon, ratios = 0.5, []
    for n in (4, 100, 10_000, 1_000_000):
        # the mean of the values inside the interval, and at last far inside
        y = np.full(n, 0.3 * min(c, reach))
        found, line = draw(y, epsilon, c, reach), 1 / (n * epsilon * kappa(c, reach))
        assert found.variance == pytest.approx(line * (1 - found.beta), rel=1e-3)
        ratios.append(np.sqrt(n * found.variance))
    constant = 1 / np.sqrt(epsilon * kappa(c, reach))
    assert ratios[-1] == pytest.approx(constant, rel=1e-3)
    # with few records the interval is what bounds the draw
    assert ratios[0] < 0.8 * constant


def test_where_the_lines_meet_is_the_corollary_s_place_and_the_draw_is_narrower_there():
    for c, reach in PUBLIC:
        product = 2 * c**2 * kappa(c, reach)
        line, noise = 1 / np.sqrt(product * kappa(c, reach)), np.sqrt(2) * c / product
        assert line == pytest.approx(noise)
        assert product == pytest.approx(c / reach) if c >= reach else product < 1
        # no density on the interval is as wide as that
        assert line > reach


def longest(first, second):
    """Largest |log ratio| of two densities on a grid."""
    return np.abs(np.log(first / second)).max()


def sum_density(y, epsilon, c, cut):
    z = np.linspace(-40, 40, 4001)
    return stats.laplace.pdf(z, np.clip(y, -cut, cut).sum(), c / epsilon)


@each_public
def test_both_ways_have_the_same_epsilon_for_every_record(c, reach):
    epsilon, t = 0.7, np.linspace(-reach, reach, 4001)

    def drawn(y, factor=1.0):
        curved = factor * epsilon * kappa(c, reach)
        terms = -curved * (t - np.clip(y, -c, c)[:, None]) ** 2 / 2
        p = np.exp(terms.sum(axis=0))
        return p / p.sum()

    tables = [np.array([-c, 0.2 * c, 9 * c, value]) for value in (-99, 0, 0.7 * c, 99)]
    losses, doubled = [], []
    for y in tables:
        for i in range(y.size):
            # a record that is not used has no term, and adds 0 to the sum
            unused = np.where(np.arange(y.size) == i, 0.0, y)
            losses.append(longest(drawn(y), drawn(np.delete(y, i))))
            sums = [sum_density(each, epsilon, c, c) for each in (y, unused)]
            losses.append(longest(*sums))
            sums = [sum_density(each, epsilon, c, 2 * c) for each in (y, unused)]
            doubled.append(longest(*sums))
    assert max(losses) <= epsilon + 1e-9 < max(doubled)
    # one record alone, which the interval's far end speaks against, needs nearly all of ε
    alone = longest(drawn(np.array([c])), np.full(t.size, 1 / t.size))
    assert 0.4 * epsilon < alone <= epsilon
    assert longest(drawn(np.array([c]), 3.0), np.full(t.size, 1 / t.size)) > epsilon


# ---- limits -------------------------------------------------------------------------------------


def sd_under_limits(values, shares, weight, n, points):
    """Standard deviation of a draw under centred limits of width 0.1, n records in all."""
    t = np.linspace(-0.5, 0.5, points)
    terms = weight * (t * values[:, None] - t**2 / 2)
    height = n * (shares @ np.clip(terms, -0.05, 0.05))
    p = np.exp(height - height.max())
    p /= p.sum()
    return np.sqrt(p @ (t - p @ t) ** 2)


@pytest.mark.parametrize(
    ("weight", "spread", "yes_or_no"),
    [(0.05, -0.5, -0.5), (0.2, -0.5, -1), (0.5, -0.5, 0)],
)
def test_limits_keep_the_root_where_values_are_spread_and_not_in_a_yes_no_column(
    weight, spread, yes_or_no
):
    quantiles = 0.25 + stats.norm.ppf((np.arange(1_000) + 0.5) / 1_000)
    columns = (
        (quantiles, np.full(1_000, 1e-3), 4_001, spread),
        (np.array([2.0, -0.5]), np.array([0.3, 0.7]), 1_000_001, yes_or_no),
    )
    for values, shares, points, exponent in columns:
        few, many = (
            sd_under_limits(values, shares, weight, n, points) for n in (10**5, 10**6)
        )
        assert np.log10(many / few) == pytest.approx(exponent, abs=0.03)
