"""Any PyMC model with censored terms: log-density, gradient and draws as they are defined."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import stats
from scipy.integrate import trapezoid
from test_pymc_any_model import FAMILY, RECORDS, WEIGHTS, _rows, of_family, pieces, points

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
    synthesizer = of_family(model)
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


def root(value, mean):
    # no number for values above the mean, and its slope neither
    return pt.sqrt(mean - value) - mean


def drawn(*parameters, rng=None, size=None):
    return rng.normal(size=size)


def overflow(x):
    beta = pm.Normal("mu", 1.0, 1.0)
    # exp(1e5) is infinite, and its derivative too
    pm.Poisson("y", pt.exp(beta * np.where(x > 1, 1e5, x)), observed=np.arange(len(x)))


def no_number(x):
    pm.CustomDist("y", pm.Normal("mu", 1.0, 1.0), logp=root, random=drawn, observed=x)


def wrong_parameter(x):
    pm.Poisson("y", pm.Normal("mu", 1.0, 1.0) * np.where(x > 1, -1.0, 3.0), observed=[2] * len(x))


def wrong_by_another_response(x):
    mu = pm.Normal("mu", 1.0, 1.0)
    spread = pm.Normal("spread", mu, 0.5, observed=np.where(x > 1, -1.0, 1.0 + 0.1 * x))
    pm.Normal("y", 0.0, spread, observed=0.1 * x)


def elementwise(x):
    data = pm.Data("data", np.exp(x))
    pm.Normal("y", pm.Normal("mu", 1.0, 1.0), 1.0, observed=pt.log(data) / 2.0)


X = np.r_[np.linspace(-1.0, 0.5, 6), 3.0]
ALONE = [overflow, no_number, wrong_parameter, wrong_by_another_response, elementwise]


def limited(build, x, censor):
    with pm.Model() as model:
        build(x)
    return PyMCSynthesizer(model)._limited(censor)


@pytest.mark.parametrize("build", ALONE[:-2])
def test_a_record_that_is_impossible_has_the_lowest_term_and_no_gradient(quick, build):
    for censor in CENSORS:
        rewritten, without = limited(build, X, censor), limited(build, X[:-1], censor)
        density, gradient = with_gradient(rewritten, rewritten.logp())({"mu": 1.0})
        rest, slope = with_gradient(without, without.logp())({"mu": 1.0})
        assert density == pytest.approx(rest + censor.low, abs=1e-9)
        assert np.isfinite(gradient).all() and gradient == pytest.approx(slope)


def test_what_is_no_number_is_seen_by_the_compiled_gradient_too():
    rewritten = limited(no_number, X, CENSORS[0])
    value = rewritten.logp_dlogp_function(ravel_inputs=True)(np.array([1.0]))
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        expected = with_gradient(rewritten, rewritten.logp())({"mu": 1.0})
    assert np.isfinite(value[0]) and value[0] == pytest.approx(expected[0])
    assert value[1] == pytest.approx(expected[1])


@pytest.mark.parametrize("censor", CENSORS, ids=["smooth", "hard"])
@pytest.mark.parametrize("build", ALONE)
def test_the_loss_by_quadrature_is_within_the_width_whichever_record_is_left_out(
    quick, build, censor
):
    mu = np.linspace(-6.0, 8.0, 401)

    def log_posterior(x):
        rewritten = limited(build, x, censor)
        function = rewritten.compile_fn(rewritten.logp(), inputs=rewritten.value_vars)
        density = np.array([function({"mu": value}) for value in mu])
        return density - density.max() - np.log(trapezoid(np.exp(density - density.max()), mu))

    whole, losses = log_posterior(X), []
    for record in (0, 5, 6):
        losses.append(np.abs(log_posterior(np.delete(X, record)) - whole).max())
    assert max(losses) <= censor.width + 1e-9
    # it is a bound that is come near to
    assert max(losses) > 0.2 * censor.width


def prior_of_a_response():
    y1 = pm.Normal("y1", pm.Normal("mu"), observed=X)
    pm.Normal("y2", pm.Normal("u", y1.mean(), 0.01), observed=X)


def prior_of_the_data():
    data = pm.Data("data", X)
    pm.Normal("y", pm.Normal("mu", data.mean(), 0.01), observed=data)


def prior_cut_by_the_data():
    data = pm.Data("data", X)
    pm.Normal("y", pm.Uniform("mu", data.max(), 9.0), observed=data)


def prior_of_a_count():
    data = pm.Data("data", X)
    above = data[pt.gt(data, 1.0).nonzero()].shape[0]
    pm.Normal("y", pm.Normal("mu", 5.0 * above), observed=data)


def latent_values_of_the_records():
    data = pm.Data("data", X)
    pm.Normal("y", pm.Normal("u", data), observed=data)


def imputed_from_a_response():
    y1 = pm.Normal("y1", pm.Normal("mu"), observed=X)
    pm.Normal("y2", y1, observed=np.ma.masked_array(X, np.arange(7) == 2))


def standardised():
    data = pm.Data("data", X)
    pm.Normal("y", pm.Normal("mu"), observed=(data - data.mean()) / data.std())


def sorted_values():
    pm.Normal("y", pm.Normal("mu"), observed=pt.sort(pm.Data("data", X)))


def rows_and_columns():
    data = pm.Data("data", X[:, None] * np.ones(7))
    pm.Normal("y", pm.Normal("mu"), observed=data + data.T)


def mean_of_another_response():
    y1 = pm.Normal("y1", pm.Normal("mu"), observed=X)
    pm.Normal("y2", pm.Normal("u") + y1.mean(), observed=X)


def the_record_before():
    y1 = pm.Normal("y1", pm.Normal("mu"), observed=X)
    pm.Normal("y2", pt.concatenate([y1[:1], y1[:-1]]), observed=X)


def records_of_another_order():
    y1 = pm.Normal("y1", pm.Normal("mu"), observed=X)
    pm.Normal("y2", y1[np.arange(7)[::-1]], observed=X)


def density_of_all_values():
    def log_density(value, mean):
        return -((value - value.mean() - mean) ** 2)

    pm.CustomDist("y", pm.Normal("mu"), logp=log_density, random=drawn, observed=X)


def drawn_with_the_data():
    data = pm.Data("data", X)
    pm.Normal("y1", pm.Normal("mu"), observed=data)
    pm.Normal("y2", pm.Normal("beta") * data, observed=X)


def flattened():
    mu = pm.Normal("mu", initval=1.0)
    pm.Potential("flat", mu**2 / 2.0)
    pm.Normal("y", mu, observed=X)


def flat():
    pm.Normal("y", pm.Flat("mu", initval=1.0), observed=X)


def half_flat():
    pm.Normal("y", pm.HalfFlat("mu", initval=1.0), observed=X)


def flat_above_0():
    pm.Normal("y", pm.Truncated("mu", pm.Flat.dist(), lower=0.0, initval=1.0), observed=X)


def flat_by_its_own_density():
    mu = pm.CustomDist("mu", logp=lambda value: 0.0 * value, initval=1.0)
    pm.Normal("y", mu, observed=X)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (prior_of_a_response, "^the prior of u depends on observed values: with censor,"),
        (prior_of_the_data, "^the prior of mu depends on observed values"),
        (prior_of_a_count, "^the prior of mu depends on observed values"),
        (prior_cut_by_the_data, "^the prior of mu depends on observed values"),
        (latent_values_of_the_records, "^the prior of u depends on observed values"),
        (imputed_from_a_response, "^the prior of y2_unobserved depends on observed values"),
        (standardised, "^a record's term of y holds observed values of other records, or in"),
        (sorted_values, "^a record's term of y holds"),
        (rows_and_columns, "^a record's term of y holds"),
        (mean_of_another_response, "^a record's term of y2 holds"),
        (the_record_before, "^a record's term of y2 holds"),
        (records_of_another_order, "^a record's term of y2 holds"),
        (density_of_all_values, "^a record's term of y holds"),
        (drawn_with_the_data, "^y2 is drawn with observed values, which a release would hold"),
        (flattened, "^potential flat may hold records, .* or make a prior improper"),
        (flat, "^the prior of mu is improper"),
        (half_flat, "^the prior of mu is improper"),
        (flat_above_0, "^the prior of mu is improper"),
        (flat_by_its_own_density, "^the prior of mu is improper, .* or cannot be drawn from"),
    ],
)
@pytest.mark.filterwarnings("ignore::pymc.exceptions.ImputationWarning")
def test_a_model_in_which_a_record_does_more_than_its_term_is_refused(quick, build, message):
    with pm.Model() as model:
        build()
    with pytest.raises(ValueError, match=message) as error:
        ppm.PseudoPosteriorMechanism(model, censor=CENSORS[0]).run(draws=10)
    assert "\n" not in str(error.value)


def test_other_limits_do_not_compile_again_and_none_are_the_model_as_it_was(monkeypatch):
    model, by_pieces = pieces(FAMILY[0])
    synthesizer = PyMCSynthesizer(model)
    point = model.initial_point()
    prior, by_record = by_pieces(point)

    def density(censor):
        # by the function that NUTS asks for, which is kept with the model
        function = synthesizer._limited(censor).logp_dlogp_function(ravel_inputs=True)
        function.set_extra_values({})
        return float(function(pm.blocking.DictToArrayBijection.map(point))[0])

    def refuse(*args, **kwargs):
        raise AssertionError("compiled again")

    others = [ppm.Censoring(-9.0, -1.0), ppm.Censoring(-2.0, 0.0, smooth=False)]
    for censor in (*CENSORS, None, *others, *CENSORS, None):
        if censor == others[0]:
            monkeypatch.setattr("pymc.pytensorf.pytensor.function", refuse)
        terms = by_record if censor is None else censor.term(by_record)
        assert density(censor) == pytest.approx(prior + terms.sum())
    with pytest.raises(AssertionError, match="compiled again"):
        PyMCSynthesizer(FAMILY[0]()).model.logp_dlogp_function(ravel_inputs=True)


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
