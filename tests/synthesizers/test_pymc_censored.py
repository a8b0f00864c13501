"""Any PyMC model with censored terms: density, gradient and loss as they are defined."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
import test_pymc_any_model as family
from scipy.integrate import trapezoid
from test_pymc_any_model import FAMILY, RECORDS, WEIGHTS, drawn, model_of, of_family, pieces, points

import ppm
from ppm.synthesizers.pymc_model import PyMCSynthesizer

# near the terms of the models of the family, so that some are inside and some far outside
CENSORS = [ppm.Censoring(-2.5, -0.5), ppm.Censoring(-1.6, -1.1, smooth=False)]


@pytest.fixture(autouse=True)
def quick():
    """Functions run by plain Python, which needs no compilation."""
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        yield


def with_gradient(model, density):
    """Function of a point: a log-density, and its gradient by the names of the parameters."""
    values = sorted(model.continuous_value_vars, key=lambda value: value.name)
    gradient = pt.concatenate([part.ravel() for part in pytensor.grad(density, values)])
    return model.compile_fn([density, gradient], inputs=model.value_vars)


def definition(write, censor):
    """The same written down once more on the user's own model, without switches or masks."""
    model, total = model_of(write), pt.zeros(RECORDS)
    parts = model.logp(vars=model.observed_RVs, sum=False)
    for variable, part in zip(model.observed_RVs, parts, strict=True):
        rows = total[family.rows_of(write, variable.name)]
        total = pt.inc_subtensor(rows, part.sum(axis=tuple(range(1, part.ndim))))
    weighted, half = WEIGHTS * total, censor.width / 2
    if censor.smooth:
        terms = censor.low + half + half * pt.tanh((weighted - censor.low - half) / half)
    else:
        terms = pt.minimum(pt.maximum(weighted, censor.low), censor.high)
    prior = model.logp(vars=[*model.free_RVs, *model.potentials])
    return with_gradient(model, prior + terms.sum())


@pytest.mark.parametrize("censor", CENSORS, ids=["smooth", "hard"])
@pytest.mark.parametrize("write", FAMILY)
def test_density_and_gradient_of_any_model_are_those_of_the_definition(write, censor):
    model, by_pieces = pieces(write)
    synthesizer = of_family(model)
    limited = synthesizer._limited(censor)
    found, expected = with_gradient(limited, limited.logp()), definition(write, censor)
    limited.alpha.set_value(WEIGHTS)
    for point in points(model):
        prior, by_record = by_pieces(point)
        density, gradient = found(point)
        terms = censor.term(WEIGHTS * by_record)
        np.testing.assert_allclose(density, prior + terms.sum(), rtol=1e-10, atol=1e-10)
        # PyMC's own gradient of a truncated normal is off by 3e-8, censored or not
        np.testing.assert_allclose(gradient, expected(point)[1], rtol=1e-7, atol=1e-8)
        # it would see terms left as they are, weights outside the limits, or limits of the sum
        for broken in (
            WEIGHTS @ by_record, WEIGHTS @ censor.term(by_record), censor.term(WEIGHTS @ by_record)
        ):
            assert abs(density - prior - broken) > 1e-6
    # without limits it is the model as it was
    without = synthesizer._limited(None)
    density = without.compile_fn(without.logp(), inputs=without.value_vars)(point)
    assert density == pytest.approx(prior + WEIGHTS @ by_record)


def test_several_responses_of_a_record_are_one_term():
    limited = PyMCSynthesizer(model_of(family.two_responses))._limited(CENSORS[0])
    terms = limited.compile_fn(limited.logp(sum=False)[0], inputs=limited.value_vars)
    # two terms a record would move twice as far
    far = {name: value + 50.0 for name, value in limited.initial_point().items()}
    assert terms(far).shape == (RECORDS,) and terms(far).min() >= CENSORS[0].low


# ---- records that are impossible ---------------------------------------------------------------

X = np.r_[np.linspace(-1.0, 0.5, 6), 3.0]


def root(value, mean):
    # no number for values above the mean, and its slope neither
    return pt.sqrt(mean - value) - mean


def overflow(x, mu):
    # exp(1e5) is infinite, and its derivative too
    pm.Poisson("y", pt.exp(mu * np.where(x > 1, 1e5, x)), observed=np.arange(len(x)))


def no_number(x, mu):
    pm.CustomDist("y", mu, logp=root, random=drawn, observed=x)


def wrong_parameter(x, mu):
    pm.Poisson("y", mu * np.where(x > 1, -1.0, 3.0), observed=[2] * len(x))


def wrong_by_another_response(x, mu):
    spread = pm.Normal("spread", mu, 0.5, observed=np.where(x > 1, -1.0, 1.0 + 0.1 * x))
    pm.Normal("y", 0.0, spread, observed=0.1 * x)


def elementwise(x, mu):
    pm.Normal("y", mu, 1.0, observed=pt.log(pm.Data("data", np.exp(x))) / 2.0)


ALONE = [overflow, no_number, wrong_parameter, wrong_by_another_response, elementwise]


def limited(write, x, censor):
    model = model_of(lambda: write(x, pm.Normal("mu", 1.0, 1.0)))
    return PyMCSynthesizer(model)._limited(censor)


@pytest.mark.parametrize("write", ALONE[:3])
def test_a_record_that_is_impossible_has_the_lowest_term_and_no_gradient(write):
    for censor in CENSORS:
        (density, gradient), (rest, slope) = (
            with_gradient(model, model.logp())({"mu": 1.0})
            for model in (limited(write, X, censor), limited(write, X[:-1], censor))
        )
        assert density == pytest.approx(rest + censor.low, abs=1e-9)
        assert np.isfinite(gradient).all() and gradient == pytest.approx(slope)
    if write is no_number:
        # compiled as for sampling, with all rewrites
        with pytensor.config.change_flags(mode="NUMBA"):
            function = limited(write, X, censor).logp_dlogp_function(ravel_inputs=True)
        assert function(np.array([1.0]))[1] == pytest.approx(slope)


@pytest.mark.parametrize("censor", CENSORS, ids=["smooth", "hard"])
@pytest.mark.parametrize("write", ALONE)
def test_the_loss_by_quadrature_is_within_the_width_whichever_record_is_left_out(write, censor):
    mu = np.linspace(-6.0, 8.0, 401)

    def log_posterior(x):
        model = limited(write, x, censor)
        function = model.compile_fn(model.logp(), inputs=model.value_vars)
        density = np.array([function({"mu": value}) for value in mu])
        return density - density.max() - np.log(trapezoid(np.exp(density - density.max()), mu))

    whole = log_posterior(X)
    losses = [np.abs(log_posterior(np.delete(X, record)) - whole).max() for record in (0, 5, 6)]
    # it is a bound that is come near to
    assert 0.2 * censor.width < max(losses) <= censor.width + 1e-9


# ---- a record that does more than its own term -------------------------------------------------


def y_of(data, mean, **settings):
    """A response with this data in it."""
    data = pm.Data("data", data)
    pm.Normal("y", mean(data), observed=settings.get("observed", lambda d: d)(data))


def seen_as(observed, data=X):
    return lambda: y_of(data, lambda d: pm.Normal("mu"), observed=observed)


def prior_of(mean):
    return lambda: y_of(X, lambda d: pm.Normal("mu", mean(d), 0.01))


def next_to(write):
    """Another response whose distribution the function writes from the first one."""
    return lambda: write(pm.Normal("y1", pm.Normal("mu"), observed=X))


def flat(make):
    return lambda: pm.Normal("y", make("mu", initval=1.0), observed=X)


def all_values(value, mean):
    return -((value - value.mean() - mean) ** 2)


def drawn_with_the_data():
    y_of(X, lambda data: pm.Normal("mu"))
    pm.Normal("y2", pm.Normal("b") * pm.modelcontext(None)["data"], observed=X)


def flattened():
    mu = pm.Normal("mu")
    pm.Potential("flat", mu**2 / 2.0)
    pm.Normal("y", mu, observed=X)


def flat_but_not_at_the_start():
    def one_of(first, size):
        return pt.switch(first, pm.Normal.dist(size=size), pm.Flat.dist(size=size))

    mu = pm.CustomDist("mu", pm.Bernoulli("first", 0.5), dist=one_of)
    pm.Normal("y", mu, observed=X)


PRIOR, TERM, FLAT = "^the prior of .* depends on observed", "^a record's term of", "is improper"
REFUSED = {
    "response in a prior": (
        next_to(lambda y: pm.Normal("y2", pm.Normal("u", y.mean(), 0.01), observed=X)), PRIOR),
    "mean": (prior_of(lambda d: d.mean()), PRIOR),
    "support": (lambda: y_of(X, lambda d: pm.Uniform("mu", d.max(), 9.0)), PRIOR),
    "selection": (prior_of(lambda d: 5.0 * d[d > 1.0].shape[0]), PRIOR),
    "nonzero": (prior_of(lambda d: 5.0 * d[pt.gt(d, 1.0).nonzero()].shape[0]), PRIOR),
    "count as a length": (prior_of(lambda d: pt.zeros((d > 1.0).sum()).shape[0]), PRIOR),
    "cut": (prior_of(lambda d: d[: (d > 1.0).sum()].shape[0]), PRIOR),
    "latent": (lambda: y_of(X, lambda d: pm.Normal("u", d)), PRIOR),
    "imputed": (next_to(lambda y: pm.Normal(
        "y2", y, observed=np.ma.masked_array(X, np.arange(7) == 2))), PRIOR),
    "standardised": (seen_as(lambda d: (d - d.mean()) / d.std()), TERM),
    "sorted": (seen_as(pt.sort), TERM),
    "rows and columns": (seen_as(lambda d: d + d.T, X[:, None] * np.ones(7)), TERM),
    "selected": (lambda: y_of(
        X, lambda d: pm.Normal("mu") * d[d > 1.0].shape[0]), "^y is drawn with observed values"),
    "reshaped": (lambda: pm.Normal("z", pm.Normal("y", pm.Normal(
        "mu"), observed=X[:6].reshape(3, 2)).T.reshape((3, 2)), observed=np.ones((3, 2))), TERM),
    "other mean": (next_to(lambda y: pm.Normal("y2", pm.Normal("u") + y.mean(), observed=X)), TERM),
    "record before": (
        next_to(lambda y: pm.Normal("y2", pt.concatenate([y[:1], y[:-1]]), observed=X)), TERM),
    "other order": (next_to(lambda y: pm.Normal("y2", y[np.arange(7)[::-1]], observed=X)), TERM),
    "common check": (next_to(lambda y: pm.Normal(
        "y2", pm.Normal("u"), y.max() * pm.HalfNormal("s"), observed=X)), TERM),
    "own density": (lambda: pm.CustomDist(
        "y", pm.Normal("mu"), logp=all_values, random=drawn, observed=X), TERM),
    "drawn": (drawn_with_the_data, "^y2 is drawn with observed values, which a release would"),
    "potential": (flattened, "^potential flat could hold confidential numbers or"),
    "Flat": (flat(pm.Flat), FLAT),
    "HalfFlat": (flat(pm.HalfFlat), FLAT),
    "Truncated": (
        flat(lambda *a, **k: pm.Truncated(*a, pm.Flat.dist(), lower=0.0, **k)), FLAT),
    "walk": (flat(lambda name, initval: pm.GaussianRandomWalk(
        name, init_dist=pm.Flat.dist(), sigma=1.0, shape=7)), FLAT),
    "ICAR": (flat(lambda name, initval: pm.ICAR(name, W=np.ones((7, 7)) - np.eye(7))), FLAT),
    "branch": (flat_but_not_at_the_start, FLAT),
    "density": (
        flat(lambda *a, **k: pm.CustomDist(*a, logp=lambda value: 0.0 * value, **k)), FLAT),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_model_in_which_a_record_does_more_than_its_term_is_refused(name):
    write, message = REFUSED[name]
    with pytest.raises(ValueError, match=message) as error:
        ppm.PseudoPosteriorMechanism(model_of(write), censor=CENSORS[0]).run(draws=10)
    assert "\n" not in str(error.value)


def test_a_model_of_pymc_gets_a_strict_result():
    counts = np.r_[np.random.default_rng(5).poisson(5, 40), 30, 30, 30]
    model = model_of(lambda: pm.Poisson("y", pm.Gamma("mu", 2.0, 0.5), observed=counts))
    censor = ppm.Censoring(-4.0, -1.5)
    result = ppm.PseudoPosteriorMechanism(model, censor=censor).run(draws=500, random_seed=4)
    assert result.strict and result.epsilon(4) == 10.0 and result.unweighted is None
    assert result.oscillation_bound <= censor.width
    assert result.synthesize(2, random_seed=1).attrs == {"releases": 2, "epsilon": 5.0}
    # what the fit holds is the log-likelihood itself
    assert result.draws["log_likelihood"]["y"].values.min() < censor.low
