"""Bounds, oscillations, weights and posterior against their definitions, for any matrix."""

import numpy as np
import pytest
import xarray as xr
from hypothesis import example, given
from hypothesis import strategies as st
from layouts import (
    ANY_SIZE,
    HUGE,
    TINY,
    matrices,
    reciprocal,
    threshold,
    unit_interval,
    vectors,
)
from scipy import stats

import ppm
from ppm.bounds import extremes

log_liks = matrices(st.one_of(ANY_SIZE, ANY_SIZE, ANY_SIZE, st.just(-np.inf)))
ends = st.sampled_from([0.0, TINY, 1e-300, 1e300, HUGE, np.inf])
bounds = vectors(st.one_of(st.floats(0.0, 50.0), ends))


def by_hand(log_lik, weights):
    """The definition with loops: (largest, oscillation) of every record."""
    found = []
    for record, weight in enumerate(weights):
        column = [float(value) for value in log_lik[:, record]]
        if weight == 0:
            found.append((0.0, 0.0))
        elif -np.inf in column:
            found.append((np.inf, np.inf))
        else:
            terms = [float(weight) * value for value in column]
            found.append((max(map(abs, terms)), max(terms) - min(terms)))
    return np.array(found).T


@example(np.array([[HUGE, 1.0], [-HUGE, -1.0]]), None)
@given(log_liks, st.data())
def test_bounds_and_oscillations_are_those_of_the_definition(log_lik, data):
    records = log_lik.shape[1]
    weights = data.draw(unit_interval(records)) if data else np.full(records, 0.5)
    largest, spread = by_hand(log_lik, weights)
    assert np.array_equal(ppm.record_bounds(log_lik, weights), largest)
    assert np.array_equal(ppm.record_oscillations(log_lik, weights), spread)
    assert ppm.local_bound(log_lik, weights) == largest.max()
    assert ppm.oscillation_bound(log_lik, weights) == spread.max()
    turned = xr.DataArray(log_lik.T, dims=("household", "sample"))
    assert np.array_equal(ppm.record_bounds(turned, weights), largest)
    maxima = [by_hand(draw[None], weights)[0].max() for draw in log_lik]
    blocks = [(slice(row, row + 1), log_lik[[row]]) for row in range(len(log_lik))]
    found = extremes(blocks, len(log_lik), ppm.Terms(weights))
    assert np.array_equal(found.maxima, maxima)
    assert np.array_equal(
        ppm.record_bounds(log_lik), by_hand(log_lik, np.ones(records))[0]
    )


@pytest.mark.parametrize(
    "kind", ["float16", "float32", "int8", "int16", "int64", "uint8"]
)
def test_other_types_of_numbers_are_read_as_floats(kind):
    # a sum beyond what 16 bits hold, and an integer whose absolute value its type cannot hold
    values = (
        np.full((2, 200), -700.1)
        if "float" in kind
        else [[np.iinfo(kind).min, 3], [7, 100]]
    )
    stored = np.array(values, dtype=kind)
    exact = stored.astype(np.float64)
    for function in (ppm.record_bounds, ppm.record_oscillations):
        assert np.array_equal(function(stored), function(exact))
    assert ppm.local_bound(stored) == np.abs(exact).max()


# ---- weights -------------------------------------------------------------------------------------

RULES = {
    "record_weights": lambda b, **cut: ppm.record_weights(b, **cut),
    "compressed": lambda b, **cut: ppm.record_weights(b, scale=0.7, shift=-0.3, **cut),
    "stretched": lambda b, **cut: ppm.record_weights(
        b, scale=1.7e308, shift=-1.7e307, **cut
    ),
    "lifted": lambda b, **cut: ppm.record_weights(
        b, scale=1.7e308, shift=1.7e308, **cut
    ),
}


@given(
    vectors(st.one_of(st.floats(0.0, 50.0), st.just(np.inf))),
    st.floats(0.1, 3.0),
    st.floats(-1.0, 1.0),
)
def test_linear_weights_are_scaled_shifted_and_cut_and_an_infinite_bound_has_none(
    found, scale, shift
):
    finite = found[found < np.inf]
    lowest, span = (finite.min(), np.ptp(finite)) if finite.size else (0.0, 0.0)
    # shifted before it is scaled, it would be another rule
    uncut = scale * (1.0 - (found - lowest) / (span or 1.0)) + shift
    weights = ppm.record_weights(found, scale=scale, shift=shift)
    assert weights == pytest.approx(np.minimum(1.0, np.maximum(0.0, uncut)), abs=1e-12)


@pytest.mark.parametrize("rule", RULES)
@given(bounds, st.data())
def test_weights_lie_in_0_to_1_fall_with_the_bound_and_follow_their_records(
    rule, found, data
):
    weights = RULES[rule](found)
    assert np.all((weights >= 0) & (weights <= 1))
    assert np.all(np.diff(weights[np.argsort(found, kind="stable")]) <= 0)
    assert not weights[np.isinf(found)].any()
    places = data.draw(st.permutations(range(found.size)))
    assert np.array_equal(RULES[rule](found[places]), weights[places])


@pytest.mark.parametrize("rule", RULES)
@given(bounds, st.floats(0.01, 20.0))
def test_truncation_leaves_no_weighted_bound_above_m_and_all_other_weights_as_they_are(
    rule, found, limit
):
    whole, cut = RULES[rule](found), RULES[rule](found, truncate_at=limit)
    # 0 · inf is no bound: what takes no part has none
    weighted = np.where(whole > 0, whole, 1.0) * np.where(whole > 0, found, 0.0)
    assert np.array_equal(cut, np.where(weighted > limit, 0.0, whole))


class Ranges(ppm.Candidates):
    """Candidates whose records' log p have these ranges."""

    def __init__(self, found):
        self.found, self.records = found, found.size

    def ends(self):
        return np.stack([-self.found, np.zeros(self.records)])


@example(np.random.default_rng(1).uniform(0, 20, size=10_000), 1 / 3)
@given(bounds, st.floats(0.05, 1e3))
def test_a_cap_holds_to_the_last_digit_and_wastes_nothing(found, limit):
    weights = ppm.Capped(limit).terms(Ranges(found), None).weights
    assert not weights[found == np.inf].any() and np.all(weights[found <= limit] == 1)
    finite = found < np.inf
    product = weights[finite] * found[finite]
    assert np.all(product <= limit)
    assert product == pytest.approx(np.minimum(found[finite], limit))
    # the plain quotient goes over it in the last digit
    assert limit != 1 / 3 or np.any(limit / np.maximum(found, limit) * found > limit)


# ---- the posterior that weights make -------------------------------------------------------------

counts = vectors(st.integers(0, 60).map(float), least=2).map(
    lambda values: values.astype(int)
)
priors = st.fixed_dictionaries(
    {"shape": st.floats(0.1, 9.0), "rate": st.floats(0.1, 9.0)}
)


@given(counts, priors, st.data())
def test_posterior_is_prior_times_weighted_likelihood(values, prior, data):
    weights = data.draw(unit_interval(values.size))
    at = np.array([0.01, 0.5, 3.0, 20.0, 70.0])
    exact = stats.gamma.logpdf(at, prior["shape"], scale=1.0 / prior["rate"])
    exact += weights @ stats.poisson.logpmf(values[:, None], at)

    def off(posterior):
        return np.ptp(posterior.logpdf(at) - exact)

    assert off(ppm.GammaPoisson(values, **prior).posterior(weights)) <= 1e-7
    # with weights in the rate alone it would be another distribution
    broken = stats.gamma(
        prior["shape"] + values.sum(), scale=1 / (prior["rate"] + weights.sum())
    )
    assert off(broken) > 1e-7 or np.allclose((1.0 - weights) @ values, 0.0, atol=1e-7)


# ---- what another record moves -------------------------------------------------------------------

COUNTS = np.array([3, 5, 4, 6, 20])


def bounds_at(weight, **prior):
    """Bounds of all counts but the last, from a fit with it and from one without."""
    for counts in (COUNTS, COUNTS[:-1]):
        model = ppm.GammaPoisson(counts, **prior)
        terms = ppm.Terms(np.full(counts.size, weight))
        fit = ppm.fit(model, terms, draws=500, random_seed=1)
        yield ppm.record_bounds(model.log_p(fit.theta))[: COUNTS.size - 1]


def capped(bounds):
    return np.minimum(1, 3.5 / bounds)


def test_record_determined_weights_stay_when_another_record_leaves_and_min_max_weights_do_not():
    public = [
        ppm.GammaPoisson(part).bounds_within(2, 10) for part in (COUNTS, COUNTS[:-1])
    ]
    for mapping in (capped, reciprocal, threshold(3.0)):
        whole, without = map(mapping, public)
        assert np.array_equal(whole[:-1], without)
    whole, without = map(ppm.record_weights, public)
    assert not np.allclose(whole[:-1], without, atol=0.1)
    # bounds at draws from the prior are public as well; at draws from the posterior they are not
    whole, without = bounds_at(0.0, shape=16.0, rate=4.0)
    assert np.array_equal(whole, without)
    assert not np.allclose(*bounds_at(1.0, shape=16.0, rate=4.0))
