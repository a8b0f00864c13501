"""The theorem at fixed weights, on the model in closed form: loss, oscillation, twice the bound."""

import numpy as np
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import ppm


@st.composite
def cases(draw):
    """A database with its prior, and weights."""
    counts = draw(st.lists(st.integers(0, 60), min_size=2, max_size=12))
    weights = st.lists(st.floats(0, 10), min_size=len(counts), max_size=len(counts))
    shape, rate = draw(st.floats(0.01, 20)), draw(st.floats(0.01, 5))
    return ppm.GammaPoisson(counts, shape=shape, rate=rate), np.array(draw(weights))


def on_an_interval(model, weights, lowest, highest, points=40):
    """Losses (points, records), and the mass there of the posteriors with and without a record."""
    mu = xr.Dataset(
        {"mu": (("chain", "draw"), np.linspace(lowest, highest, points)[None])}
    )
    fit = xr.DataTree.from_dict({"posterior": mu})
    # weight 0 is absence
    sides = [weights, *np.where(np.eye(model.records, dtype=bool), 0.0, weights)]
    mass = [np.diff(model.posterior(side).cdf([lowest, highest]))[0] for side in sides]
    return model.leave_one_out_loss(fit, weights).values[0], mass[0], np.array(mass[1:])


@given(case=cases(), level=st.floats(1e-3, 0.4))
def test_the_loss_at_fixed_weights_is_at_most_the_oscillation_and_that_at_most_two_bounds(
    case, level
):
    model, weights = case
    ends = model.posterior(weights).ppf([level, 1 - level])
    if not 1e-6 < ends[0] < ends[1] < 1e6:
        return
    loss, whole, without = on_an_interval(model, weights, *ends)
    oscillations = weights * model.oscillations_within(*ends)
    # a probability has a logarithm of one sign
    assert np.all(oscillations <= weights * model.bounds_within(*ends) + 1e-9)
    # on the interval, and with what either side puts outside of it
    kept = np.minimum(whole, without) > 1e-9
    loss, without, oscillations = loss[:, kept], without[kept], oscillations[kept]
    assert np.all(
        np.abs(loss) <= oscillations - np.log(np.minimum(whole, without)) + 1e-8
    )
    # restricted to it both sides are normalised there, and nothing is added
    assert np.all(np.abs(loss - np.log(whole / without)) <= oscillations + 1e-6)


def test_less_than_the_oscillation_would_be_caught():
    model, weights = ppm.GammaPoisson([2, 5, 4, 40], shape=1.0, rate=0.1), np.ones(4)
    ends = model.posterior(weights).ppf([0.001, 0.999])
    loss, whole, without = on_an_interval(model, weights, *ends, 200)
    loss = np.abs(loss - np.log(whole / without)).max(axis=0)
    oscillations = model.oscillations_within(*ends)
    assert np.all(loss <= oscillations) and np.any(loss > 0.7 * oscillations)
    # and without the mass outside, a narrow set would promise next to nothing
    loss, whole, without = on_an_interval(model, weights, 20.0, 20.01, 3)
    loss, oscillations = (
        np.abs(loss).max(axis=0),
        model.oscillations_within(20.0, 20.01),
    )
    assert np.any(loss > oscillations + 1)
    assert np.all(loss <= oscillations - np.log(np.minimum(whole, without)))


def test_a_little_mass_outside_a_set_costs_its_logarithm():
    rng, passed = np.random.default_rng(1), []
    for _ in range(100):
        counts = np.r_[
            rng.poisson(60), rng.poisson(rng.uniform(1, 30), rng.integers(1, 7))
        ]
        weights = np.r_[rng.uniform(0.3, 1.0), rng.uniform(0.0, 1.0, counts.size - 1)]
        model, tail = (
            ppm.GammaPoisson(counts, shape=1.0, rate=0.1),
            rng.uniform(0.001, 0.6),
        )
        ends = model.posterior(weights).ppf([tail / 4, 1 - tail / 2])
        loss, whole, without = on_an_interval(model, weights, *ends)
        loss = np.abs(loss[:, 0]).max()
        oscillation = weights[0] * model.oscillations_within(*ends)[0]
        with np.errstate(divide="ignore"):
            assert loss <= oscillation - np.log(min(whole, without[0])) + 1e-9
        passed.append(loss <= oscillation)
    # the oscillation alone, as if nothing lay outside, is passed often
    assert np.mean(passed) < 0.5
