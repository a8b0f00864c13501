"""Any PyMC model with limits: impossible records, the loss, and models that are refused."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.logprob.utils import CheckParameterValue
from scipy.integrate import trapezoid
from test_pymc_any_model import CENSORS, drawn, model_of, quick, with_gradient  # noqa: F401

import ppm
from ppm.synthesizers import pymc_weights
from ppm.synthesizers.pymc_model import PyMCSynthesizer

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


def limited(write, x, censor):
    model = model_of(lambda: write(x, pm.Normal("mu", 1.0, 1.0)))
    return PyMCSynthesizer(model)._limited(censor)


@pytest.mark.parametrize("write", [overflow, no_number, wrong_parameter])
def test_a_record_that_is_impossible_has_the_lowest_term_and_no_gradient(write):
    for censor in CENSORS:
        # as for sampling, with all rewrites
        (density, gradient), (rest, slope) = [
            with_gradient(limited(write, x, censor), mode=pymc_weights.IN_NUMPY)({"mu": 1.0})
            for x in (X, X[:-1])
        ]
        assert density == pytest.approx(rest + censor.low, abs=1e-9)
        assert np.isfinite(gradient).all() and gradient == pytest.approx(slope)


@pytest.mark.parametrize(
    ("write", "censor"),
    [
        (overflow, CENSORS[1]), (no_number, CENSORS[0]), (wrong_parameter, CENSORS[0]),
        (wrong_by_another_response, CENSORS[0]), (elementwise, CENSORS[0]),
        (elementwise, CENSORS[1]),
    ],
)  # fmt: skip
def test_the_loss_by_quadrature_is_within_the_width_whichever_record_is_left_out(write, censor):
    mu = np.linspace(-6.0, 8.0, 141)

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


def y_of(mean, observed=lambda data: data, data=X):
    """A response with this data in it."""
    data = pm.Data("data", data)
    pm.Normal("y", mean(data), observed=observed(data))


def seen_as(observed, data=X):
    return lambda: y_of(lambda d: pm.Normal("mu"), observed, data)


def prior_of(mean):
    return lambda: y_of(lambda d: pm.Normal("mu", mean(d), 0.01))


def next_to(mean, x=X):
    """A second response whose mean the function writes from the first one."""

    def write():
        pm.Normal("y2", mean(pm.Normal("y", pm.Normal("mu"), observed=X)), observed=x)

    return write


def flat(make):
    return lambda: pm.Normal("y", make("mu", initval=1.0), observed=X)


def all_values(value, mean):
    return -((value - value.mean() - mean) ** 2)


def checked(value, top):
    return CheckParameterValue("top < 9")(-(value**2), pt.all(top < 9.0))


def group():
    return pm.Bernoulli("group", 0.5, observed=np.arange(7) % 2)


def one_of(first, size):
    return pt.switch(first, pm.Normal.dist(size=size), pm.Flat.dist(size=size))


PRIOR, TERM, FLAT = "^the prior of .* depends on observed", "^a record's term of", "is improper"
DRAWN = "is drawn with observed values, which a release would"
REFUSED = {
    "response in a prior": (next_to(lambda y: pm.Normal("u", y.mean(), 0.01)), PRIOR),
    "mean": (prior_of(lambda d: d.mean()), PRIOR),
    "selection": (prior_of(lambda d: 5.0 * d[d > 1.0].shape[0]), PRIOR),
    "count as a length": (prior_of(lambda d: pt.zeros((d > 1.0).sum()).shape[0]), PRIOR),
    "cut": (prior_of(lambda d: d[: d[-1].astype("int64")].shape[0]), PRIOR),
    "latent": (lambda: y_of(lambda d: pm.Normal("u", d)), PRIOR),
    "imputed": (next_to(lambda y: y, x=np.ma.masked_array(X, np.arange(7) == 2)), PRIOR),
    "standardised": (seen_as(lambda d: (d - d.mean()) / d.std()), TERM),
    "rows and columns": (seen_as(lambda d: d + d.T, X[:, None] * np.ones(7)), TERM),
    "reshaped": (lambda: pm.Normal("z", pm.Normal("y", pm.Normal(
        "mu"), observed=X[:6].reshape(3, 2)).T.reshape((3, 2)), observed=np.ones((3, 2))), TERM),
    "other mean": (next_to(lambda y: pm.Normal("u") + y.mean()), TERM),
    "record before": (next_to(lambda y: pt.concatenate([y[:1], y[:-1]])), TERM),
    "other order": (next_to(lambda y: y[group()]), TERM),
    "common column": (next_to(lambda y: pm.Normal("m", shape=(7, 2))[:, (y.max() > 1).astype(
        "int64")]), TERM),
    "common check": (lambda: pm.CustomDist("y2", pm.Normal("y", pm.Normal(
        "mu"), observed=X).max(), logp=checked, random=drawn, observed=X), TERM),
    "own density": (lambda: pm.CustomDist(
        "y", pm.Normal("mu"), logp=all_values, random=drawn, observed=X), TERM),
    "selected": (lambda: y_of(lambda d: pm.Normal("mu") * d[d > 1.0].shape[0]), f"^y {DRAWN}"),
    "drawn": (lambda: (seen_as(lambda d: d)(), pm.Normal(
        "y2", pm.Normal("b") * pm.modelcontext(None)["data"], observed=X)), f"^y2 {DRAWN}"),
    "Flat": (flat(pm.Flat), FLAT),
    "Truncated": (
        flat(lambda *a, **k: pm.Truncated(*a, pm.Flat.dist(), lower=0.0, **k)), FLAT),
    "branch": (flat(lambda name, initval: pm.CustomDist(
        name, pm.Bernoulli("first", 0.5), dist=one_of)), FLAT),
    "density": (
        flat(lambda *a, **k: pm.CustomDist(*a, logp=lambda value: 0.0 * value, **k)), FLAT),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_model_in_which_a_record_does_more_than_its_term_is_refused(name):
    write, message = REFUSED[name]
    with pytest.raises(ValueError, match=message) as error:
        ppm.PseudoPosteriorMechanism(model_of(write), censor=CENSORS[0]).run(draws=10)
    assert "\n" not in str(error.value)


def by_group():
    pm.Normal("y", pm.Normal("mu", shape=2)[group()], observed=X)


@pytest.mark.parametrize("write", [by_group, seen_as(lambda d: d[:, 0], X[:, None])])
def test_values_of_the_same_record_may_stand_in_its_term(write):
    assert PyMCSynthesizer(model_of(write))._limited(CENSORS[0]) is not None


def test_a_model_of_pymc_gets_a_strict_result():
    counts = np.r_[np.random.default_rng(5).poisson(5, 40), 30, 30, 30]
    model = model_of(lambda: pm.Poisson("y", pm.Gamma("mu", 2.0, 0.5), observed=counts))
    censor = ppm.Censoring(-4.0, -1.5)
    mechanism = ppm.PseudoPosteriorMechanism(model, censor=censor, warmup=200)
    result = mechanism.run(draws=300, random_seed=4)
    assert result.strict and result.epsilon(4) == 10.0 and result.unweighted is None
    assert result.oscillation_bound <= censor.width
    assert result.synthesize(2, random_seed=1).attrs == {"releases": 2, "epsilon": 5.0}
    # what the fit holds is the log-likelihood itself
    assert result.draws["log_likelihood"]["y"].values.min() < censor.low
