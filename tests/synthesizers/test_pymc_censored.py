"""Any PyMC model with censored terms: log-density, gradient and draws as they are defined."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import stats
from test_pymc_any_model import FAMILY, RECORDS, WEIGHTS, _rows, pieces, points

import ppm
from ppm.diagnostics import effective_draws
from ppm.synthesizers.pymc_model import PyMCSynthesizer

# near the terms of the models of the family, so that some are inside and some far outside
CENSORS = [ppm.Censoring(-2.5, -0.5), ppm.Censoring(-1.6, -1.1, smooth=False)]


@pytest.fixture
def quick():
    """Functions run by plain Python, which needs no compilation."""
    with pytensor.config.change_flags(mode="FAST_COMPILE", cxx=""):
        yield


def with_gradient(model, density):
    """Function of a point: a log-density, and its gradient by the names of the parameters."""
    values = sorted(model.continuous_value_vars, key=lambda value: value.name)
    gradient = pt.concatenate([part.ravel() for part in pytensor.grad(density, values)])
    return model.compile_fn([density, gradient], inputs=model.value_vars)


def definition(make, censor):
    """The same written down once more on the user's own model, without switches or masks."""
    model = make()
    parts = model.logp(vars=model.observed_RVs, sum=False)
    at_start = model.compile_fn(parts, inputs=model.value_vars, on_unused_input="ignore")(
        model.initial_point()
    )
    total = pt.zeros(RECORDS)
    for variable, part, numbers in zip(model.observed_RVs, parts, at_start, strict=True):
        rows = _rows(make, model, variable.name, len(numbers))
        total = pt.inc_subtensor(total[rows], part.sum(axis=tuple(range(1, part.ndim))))
    weighted, half = WEIGHTS * total, censor.width / 2
    if censor.smooth:
        middle = censor.low + half
        terms = middle + half * pt.tanh((weighted - middle) / half)
    else:
        terms = pt.minimum(pt.maximum(weighted, censor.low), censor.high)
    prior = model.logp(vars=[*model.free_RVs, *model.potentials])
    return with_gradient(model, prior + terms.sum())


@pytest.mark.parametrize("censor", CENSORS, ids=["smooth", "hard"])
@pytest.mark.parametrize("make", FAMILY)
def test_density_and_gradient_of_any_model_are_those_of_the_definition(quick, make, censor):
    model, by_pieces = pieces(make)
    synthesizer = PyMCSynthesizer(model)
    rewritten = synthesizer._limited(censor)
    found = with_gradient(rewritten, rewritten.logp())
    pm.set_data({synthesizer.weights_name: WEIGHTS}, model=synthesizer.model)
    expected = definition(make, censor)
    for point in points(model):
        prior, by_record = by_pieces(point)
        density, gradient = found(point)
        terms = censor.term(WEIGHTS * by_record)
        tolerance = {"rtol": 1e-10, "atol": 1e-10}
        np.testing.assert_allclose(density, prior + terms.sum(), **tolerance)
        if make.__name__ == "record_level_parameters":
            # PyMC's own gradient of a truncated normal is off by 3e-8, censored or not
            tolerance = {"rtol": 1e-8, "atol": 1e-8}
        np.testing.assert_allclose(gradient, expected(point)[1], **tolerance)
        # it would see terms left as they are, weights outside the limits, or limits of the sum
        broken = (
            WEIGHTS @ by_record, WEIGHTS @ censor.term(by_record),
            censor.term(WEIGHTS @ by_record),
        )
        assert all(abs(density - prior - total) > 1e-6 for total in broken)


def test_several_responses_of_a_record_are_one_term(quick):
    make = next(make for make in FAMILY if make.__name__ == "two_responses")
    model, by_pieces = pieces(make)
    censor = CENSORS[0]
    rewritten = PyMCSynthesizer(model)._limited(censor)
    (terms, *_) = rewritten.logp(sum=False)
    found = rewritten.compile_fn(terms, inputs=rewritten.value_vars)
    point = model.initial_point()
    by_record = by_pieces(point)[1]
    assert found(point) == pytest.approx(censor.term(by_record))
    # two terms a record would move twice as far
    far = {name: value + 50.0 for name, value in point.items()}
    assert found(far).shape == (RECORDS,) and found(far).min() >= censor.low


def test_a_record_that_is_impossible_has_the_lowest_term_and_no_gradient(quick):
    x = np.linspace(-1.0, 1.0, 6)

    def make(x, y):
        with pm.Model() as model:
            beta = pm.Normal("beta", 1.0, 1.0)
            pm.Poisson("y", pt.exp(beta * x), observed=y)
        return model

    # exp(1e5) is infinite, and its derivative too
    model = make(np.append(x, 1e5), np.arange(7))
    for censor in CENSORS:
        rewritten = PyMCSynthesizer(model)._limited(censor)
        density, gradient = with_gradient(rewritten, rewritten.logp())({"beta": 1.0})
        without = PyMCSynthesizer(make(x, np.arange(6)))._limited(censor)
        rest, slope = with_gradient(without, without.logp())({"beta": 1.0})
        assert density == pytest.approx(rest + censor.low, abs=1e-9)
        assert np.isfinite(gradient).all() and gradient == pytest.approx(slope)


def test_other_limits_are_another_model_and_none_leave_the_first_as_it_was(quick):
    model, by_pieces = pieces(FAMILY[0])
    synthesizer = PyMCSynthesizer(model)
    point = model.initial_point()
    prior, by_record = by_pieces(point)

    def density(rewritten):
        # by the function that NUTS asks for, which is kept with the model
        function = rewritten.logp_dlogp_function(ravel_inputs=True)
        function.set_extra_values({})
        return float(function(pm.blocking.DictToArrayBijection.map(point))[0])

    before = density(synthesizer.model)
    for censor in (*CENSORS, CENSORS[0]):
        assert density(synthesizer._limited(censor)) == pytest.approx(
            prior + censor.term(by_record).sum()
        )
        assert synthesizer._limited(censor) is synthesizer._limited(ppm.Censoring(
            censor.low, censor.high, censor.smooth
        ))
    assert density(synthesizer.model) == before == pytest.approx(prior + by_record.sum())


@pytest.mark.parametrize("prior", [pm.Flat, pm.HalfFlat])
def test_an_improper_prior_is_refused_before_sampling(quick, prior):
    with pm.Model() as model:
        mu = prior("mu", initval=1.0)
        pm.Normal("y", mu, 1.0, observed=np.arange(5.0))
    with pytest.raises(ValueError, match="^the prior of mu is improper") as error:
        ppm.PseudoPosteriorMechanism(model, censor=CENSORS[0]).run(draws=10)
    assert "\n" not in str(error.value)


COUNTS = np.r_[np.random.default_rng(5).poisson(5, 40), 30, 30, 30]
LIMITS = ppm.Censoring(-4.0, -1.5)


def gamma_poisson():
    with pm.Model() as model:
        mu = pm.Gamma("mu", 2.0, 0.5)
        pm.Poisson("y", mu, observed=COUNTS)
    return model


@pytest.fixture(scope="module")
def sampled():
    mechanism = ppm.PseudoPosteriorMechanism(gamma_poisson(), censor=LIMITS)
    return mechanism.run(draws=1_500, random_seed=4)


def test_nuts_agrees_with_the_exact_censored_posterior(sampled):
    mu = sampled.draws["posterior"]["mu"].values
    effective = effective_draws(mu)
    assert effective > 300
    exact = ppm.GammaPoisson(COUNTS, shape=2.0, rate=0.5)
    thinned = mu.ravel()[:: int(np.ceil(mu.size / effective))]
    error = mu.std() / np.sqrt(effective)
    censored = exact.posterior(censor=LIMITS)
    assert abs(mu.mean() - censored.mean()) < 4 * error
    assert stats.kstest(thinned, censored.cdf).pvalue > 1e-3
    # not so the uncensored one, limits half as far apart, or limits of weighted terms
    assert abs(mu.mean() - exact.posterior().mean()) > 8 * error
    half = np.full(COUNTS.size, 0.5)
    for broken in (
        exact.posterior(), exact.posterior(censor=ppm.Censoring(-2.75, -1.5)),
        exact.posterior(half, censor=LIMITS),
    ):
        assert stats.kstest(thinned, broken.cdf).pvalue < 1e-3


def test_a_model_of_pymc_gets_a_strict_result(sampled):
    assert sampled.strict and sampled.epsilon(4) == 10.0 and sampled.unweighted is None
    assert sampled.oscillation_bound <= LIMITS.width
    assert sampled.synthesize(2, random_seed=1).attrs == {"releases": 2, "epsilon": 5.0}
    assert sampled.diagnostics.r_hat_log_likelihood < 1.05
    # what the fit holds is the log-likelihood itself
    assert sampled.draws["log_likelihood"]["y"].values.min() < LIMITS.low
