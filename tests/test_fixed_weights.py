"""The theorem at fixed weights, on the model in closed form: loss, oscillation, twice the bound."""

import numpy as np
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import ppm

databases = st.lists(st.integers(0, 60), min_size=2, max_size=12)
priors = st.tuples(st.floats(0.01, 20), st.floats(0.01, 5))


@st.composite
def cases(draw):
    """A database, its weights, its prior and a set of μ as two levels of the pseudo posterior."""
    counts = draw(databases)
    weights = draw(
        st.lists(st.floats(0, 1), min_size=len(counts), max_size=len(counts)).map(np.array)
    )
    shape, rate = draw(priors)
    return ppm.GammaPoisson(counts, shape=shape, rate=rate), weights


def masses_and_losses(synthesizer, weights, lowest, highest, points):
    """Closed-form losses on an interval, and the smaller mass either posterior has there."""
    mu = np.linspace(lowest, highest, points)
    fit = xr.DataTree.from_dict(
        {"posterior": xr.Dataset({"mu": (("chain", "draw"), mu[None])})}
    )
    loss = synthesizer.leave_one_out_loss(fit, weights).values[0]
    mass = []
    for record in range(synthesizer.records):
        left = weights.copy()
        left[record] = 0  # weight 0 is absence
        sides = [synthesizer.posterior(w) for w in (weights, left)]
        mass.append(min(side.cdf(highest) - side.cdf(lowest) for side in sides))
    return loss, np.array(mass)


@settings(max_examples=150, deadline=None)
@given(case=cases(), level=st.floats(1e-3, 0.4))
def test_the_loss_at_fixed_weights_is_at_most_the_oscillation_and_that_at_most_two_bounds(
    case, level
):
    synthesizer, weights = case
    lowest, highest = synthesizer.posterior(weights).ppf([level, 1 - level])
    if not 1e-6 < lowest < highest < 1e6:
        return
    loss, mass = masses_and_losses(synthesizer, weights, lowest, highest, 40)
    oscillations = weights * synthesizer.oscillations_within(lowest, highest)
    bounds = weights * synthesizer.bounds_within(lowest, highest)
    assert np.all(oscillations <= bounds + 1e-9)  # a probability has a logarithm of one sign
    # on the set, and with what either side puts outside of it
    kept = mass > 1e-9
    allowed = oscillations[kept] - np.log(mass[kept])
    assert np.all(np.abs(loss[:, kept]) <= allowed + 1e-8)
    # restricted to the set both sides are normalised there, and nothing is added
    restricted = loss - restriction(synthesizer, weights, lowest, highest)
    assert np.all(np.abs(restricted[:, kept]) <= oscillations[kept] + 1e-6)


def restriction(synthesizer, weights, lowest, highest):
    """Log ratio of the masses with and without each record."""
    full = synthesizer.posterior(weights)
    ratios = []
    for record in range(synthesizer.records):
        left = weights.copy()
        left[record] = 0
        part = synthesizer.posterior(left)
        mass = part.cdf(highest) - part.cdf(lowest)
        ratios.append(
            np.log((full.cdf(highest) - full.cdf(lowest)) / mass) if mass > 1e-9 else np.nan
        )
    return np.array(ratios)


def test_less_than_the_oscillation_would_be_caught():
    synthesizer = ppm.GammaPoisson([2, 5, 4, 40], shape=1.0, rate=0.1)
    weights = np.ones(4)
    lowest, highest = synthesizer.posterior(weights).ppf([0.001, 0.999])
    loss, mass = masses_and_losses(synthesizer, weights, lowest, highest, 200)
    loss = np.abs(loss - restriction(synthesizer, weights, lowest, highest)).max(axis=0)
    oscillations = synthesizer.oscillations_within(lowest, highest)
    assert np.all(loss <= oscillations) and np.any(loss > 0.7 * oscillations)
    # and without the mass outside, a narrow set would promise next to nothing
    lowest, highest = 20.0, 20.01
    loss, mass = masses_and_losses(synthesizer, weights, lowest, highest, 3)
    oscillations = synthesizer.oscillations_within(lowest, highest)
    assert np.any(np.abs(loss).max(axis=0) > oscillations + 1)
    assert np.all(np.abs(loss).max(axis=0) <= oscillations - np.log(mass))
