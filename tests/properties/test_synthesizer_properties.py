"""Properties of the synthesizer in closed form, and of what a statement says of a run."""

import re
import warnings

import numpy as np
import pytest
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st
from layouts import unit_interval, vectors

import ppm

counts = vectors(st.integers(0, 60).map(float), least=2).map(lambda values: values.astype(int))
priors = st.fixed_dictionaries({"shape": st.floats(0.1, 9.0), "rate": st.floats(0.1, 9.0)})
seeds = st.integers(0, 2**64)
MU = np.array([0.01, 0.5, 3.0, 20.0, 70.0])


def drawn(model, weights, seed, draws=4, **settings):
    return model.fit(weights, draws=draws, random_seed=seed, **settings)["posterior"]["mu"].values


@given(counts, priors, seeds, st.data())
def test_the_posterior_knows_records_and_weights_and_not_their_order(values, prior, seed, data):
    weights = data.draw(unit_interval(values.size))
    order = data.draw(st.permutations(range(values.size)))
    model, moved = (ppm.GammaPoisson(v, **prior) for v in (values, values[order]))
    one, other = drawn(model, weights, seed), drawn(moved, weights[order], seed)
    assert other == pytest.approx(one, rel=1e-9)
    used = weights > 0
    if used.any():
        left = ppm.GammaPoisson(values[used], **prior)
        assert drawn(left, weights[used], seed) == pytest.approx(one, rel=1e-9)
    twice = ppm.GammaPoisson(np.tile(values, 2), **prior)
    assert drawn(twice, np.tile(weights / 2, 2), seed) == pytest.approx(one, rel=1e-9)
    double = drawn(model, np.full(values.size, 2.0), seed)
    assert drawn(twice, None, seed) == pytest.approx(double, rel=1e-9)
    nothing = drawn(model, np.zeros(values.size), seed)
    assert nothing == pytest.approx(drawn(twice, np.zeros(2 * values.size), seed), rel=1e-12)


@examples(10)
@given(counts, priors, st.floats(-8.0, -2.0), st.floats(0.1, 6.0), st.booleans(), st.data())
def test_so_does_the_posterior_under_limits(values, prior, low, width, smooth, data):
    censor = ppm.Censoring(low, low + width, smooth)
    weights = data.draw(unit_interval(values.size))
    order = data.draw(st.permutations(range(values.size)))
    density = ppm.GammaPoisson(values, **prior).posterior(weights, censor=censor).logpdf(MU)
    moved = ppm.GammaPoisson(values[order], **prior).posterior(weights[order], censor=censor)
    assert moved.logpdf(MU) == pytest.approx(density, abs=1e-7)
    # a record that takes no part has a constant term
    less = weights.copy()
    less[0] = 0.0
    rest = ppm.GammaPoisson(values[1:], **prior).posterior(weights[1:], censor=censor)
    without = ppm.GammaPoisson(values, **prior).posterior(less, censor=censor)
    assert without.logpdf(MU) == pytest.approx(rest.logpdf(MU), abs=1e-7)
    whole = ppm.GammaPoisson(values, **prior).posterior(weights, censor=censor)
    # both directions, everywhere: what the width promises
    assert np.all(np.abs(whole.logpdf(MU) - without.logpdf(MU)) <= width + 1e-7)


@given(counts, seeds)
def test_an_int_its_seed_sequence_and_a_generator_repeat_themselves(values, seed):
    model = ppm.GammaPoisson(values)
    sequence = np.random.SeedSequence(seed)
    found = drawn(model, None, seed)
    assert np.array_equal(drawn(model, None, seed), found)
    assert np.array_equal(drawn(model, None, sequence), found)
    # the sequence is read, and not spawned from
    assert np.array_equal(drawn(model, None, sequence), found)
    assert sequence.n_children_spawned == 0
    one, other = (np.random.default_rng(seed) for _ in range(2))
    assert np.array_equal(drawn(model, None, one), drawn(model, None, other))
    assert not np.array_equal(drawn(model, None, one), found)
    fit = model.fit(draws=4, random_seed=seed)
    assert np.array_equal(
        *(model.predict(fit, releases=2, random_seed=s).values for s in (seed, sequence))
    )


@given(counts, priors, st.data())
def test_losses_stay_within_the_oscillations_and_weight_0_has_none(values, prior, data):
    model = ppm.GammaPoisson(values, **prior)
    weights = data.draw(unit_interval(values.size))
    fit = model.fit(weights, draws=6, random_seed=1)
    loss = model.leave_one_out_loss(fit, weights).values
    assert np.all(np.abs(loss[..., weights == 0]) <= 1e-12)
    log_lik = model.log_likelihood(fit)
    # the loss moves by what the term moves by
    moved = np.ptp(loss, axis=(0, 1))
    assert moved == pytest.approx(ppm.record_oscillations(log_lik, weights), abs=1e-6)
    lowest, highest = fit["posterior"]["mu"].values.min(), fit["posterior"]["mu"].values.max()
    if 1e-6 < lowest < highest:
        within = model.oscillations_within(float(lowest), float(highest))
        assert np.all(ppm.record_oscillations(log_lik) <= within + 1e-9)
        assert np.all(ppm.record_bounds(log_lik) <= model.bounds_within(lowest, highest) + 1e-9)


@examples(15)
@given(vectors(st.integers(101, 998).map(float), least=3).map(lambda v: v.astype(int)),
       st.integers(1, 5), st.booleans(), seeds)
def test_no_statement_on_a_release_holds_a_record_or_a_weight(values, releases, strict, seed):
    censor = ppm.Censoring(-4.0, -1.0) if strict else None
    mechanism = ppm.PseudoPosteriorMechanism(
        ppm.GammaPoisson(values, shape=2.0, rate=0.01), censor=censor
    )
    with warnings.catch_warnings():
        # that limits placed without public data cut everything off
        warnings.simplefilter("ignore", UserWarning)
        result = mechanism.run(draws=20, random_seed=seed)
    release = result.synthesize(releases, random_seed=seed)
    statement = ppm.disclosure.release_statement(result, release)
    numbers = set(re.findall(r"\d+(?:\.\d+)?", statement))
    confidential = {str(value) for value in values} | {
        f"{number:.{digits}f}"
        for number in (*result.record_bounds, *(() if strict else (result.local_bound,)))
        for digits in range(1, 7)
    }
    assert not numbers & confidential
