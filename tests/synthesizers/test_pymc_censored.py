"""Any PyMC model with limits: impossible records, the loss, and models that are refused."""

from functools import cache, partial

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


FAR = X > 1


def root(value, mean):
    # no number for values above the mean, and its slope neither
    return pt.sqrt(mean - value) - mean


def overflow(x, mu):
    # exp(1e5) is infinite, and its derivative too
    pm.Poisson("y", pt.exp(mu * np.where(x > 1, 1e5, x)), observed=np.arange(len(x)))


def no_number(x, mu):
    pm.CustomDist("y", mu, logp=root, random=drawn, observed=x)


def wrong_parameter(x, mu):
    # a condition on whole rows, whose number PyTensor does not know
    a = pt.as_tensor(np.where(x > 1, -1.0, 3.0))
    a = pt.exp(mu) * a[a > -2.0, None] * np.ones(2)
    pm.Dirichlet("y", a, observed=np.full((len(x), 2), 0.5))


def wrong_by_another_response(x, mu):
    spread = pm.Normal("spread", mu, 0.5, observed=np.where(x > 1, -1.0, 1.0 + 0.1 * x))
    pm.Normal("y", 0.0, spread, observed=0.1 * x)


def outside_the_support(x, mu):
    pm.Gamma("y", 2.0, pt.exp(mu), observed=np.where(x > 1, -1.0, np.abs(x)))


def far_mixture(x, mu):
    means, sigma = pt.stack([mu, -mu]), pm.HalfNormal("sigma", shape=2)
    pm.NormalMixture("y", [0.5, 0.5], means, sigma, observed=np.where(x > 1, 1e200, x))


def far_rows(x, mu):
    y = np.where(x > 1, 1e200, x)[:, None] * np.ones(2)
    pm.MvNormal("y", np.zeros(2), pt.exp(mu) * np.eye(2), observed=y)


def far_index(x, mu):
    scale, x = pm.HalfNormal("scale", shape=3), np.where(x > 1, 1e200, x)
    # an index and a matrix product stand between parameters and records
    mean = pt.sqrt(pt.as_tensor(x)[:, None] ** 2 @ pt.atleast_1d(scale[0]))
    pm.Normal("y", mean, pt.exp(scale[np.arange(len(x)) % 3]), observed=-x)


def far_grade(x, mu):
    eta, grade = (
        mu * np.where(x > 1, 1e5, 1.0),
        np.where(x > 1, 0, np.arange(len(x)) % 3),
    )
    pm.OrderedLogistic("y", eta=eta, cutpoints=[-1.0, 1.0], observed=grade)


def nan(x, mu):
    y = pt.as_tensor(np.where(x > 1, np.nan, x))
    pm.Normal("y", mu, pm.HalfNormal("sigma"), observed=y)


IMPOSSIBLE = [
    overflow,
    no_number,
    wrong_parameter,
    outside_the_support,
    far_mixture,
    far_rows,
    far_index,
    far_grade,
    nan,
]


def of(write, x=X, **settings):
    model = model_of(lambda: write(x, pm.Normal("mu", 1.0, 1.0)))
    return PyMCSynthesizer(model, **settings)


def with_terms(synthesizer, limits, weights=None):
    """The model whose density a fit with these limits and weights draws from."""
    weights = np.ones(synthesizer.records) if weights is None else weights
    return synthesizer._with(ppm.Terms(weights, limits))


# hard limits and none share a function; smooth ones have the same gradients of records, and are
# tried on a density that is 0 and on one that is no number
@pytest.mark.parametrize(
    ("write", "censors"),
    [
        *[(write, (CENSORS[1], None)) for write in IMPOSSIBLE],
        (far_mixture, CENSORS[:1]),
        (no_number, CENSORS[:1]),
    ],
)
def test_an_impossible_record_has_no_gradient_and_weight_zero_or_the_lowest_term(
    write, censors
):
    synthesizers, found = [of(write), of(write, X[:-1])], {}
    # as for sampling, with all rewrites
    compiled = cache(partial(with_gradient, mode=pymc_weights.IN_NUMPY))
    for censor in censors:
        weights = np.where(FAR, 0.5 if censor else 0.0, X + 1.3)
        for synthesizer in synthesizers:
            model = with_terms(synthesizer, censor, weights[: synthesizer.records])
            found[synthesizer.records] = compiled(model)(model.initial_point())
        (density, gradient), (rest, slope) = found[7], found[6]
        assert density == pytest.approx(
            rest + (censor.low if censor else 0.0), abs=1e-9
        )
        assert np.isfinite(gradient).all() and gradient == pytest.approx(slope)
        assert censor or np.any(slope)


def test_a_switch_of_the_log_likelihood_alone_would_not_do(monkeypatch):
    monkeypatch.setattr(pymc_weights, "_finite_gradient", lambda x: x)
    with pytest.raises(AssertionError):
        test_an_impossible_record_has_no_gradient_and_weight_zero_or_the_lowest_term(
            far_mixture, CENSORS
        )


def test_an_impossible_record_is_named():
    for write in (nan, outside_the_support):
        synthesizer = of(write, chains=1, warmup=20)
        with pytest.raises(
            ValueError, match="record 6 is impossible at the model's"
        ) as error:
            synthesizer.fit(draws=5)
        assert error.value.__suppress_context__
    fit = synthesizer.fit(1.0 - FAR, draws=5, random_seed=1)
    bounds = ppm.record_bounds(synthesizer.log_likelihood(fit), 1.0 - FAR)
    assert bounds[6] == 0.0 and np.isfinite(bounds).all()


@pytest.mark.parametrize(
    ("write", "censor"),
    [
        (overflow, CENSORS[1]),
        (no_number, CENSORS[0]),
        (wrong_parameter, CENSORS[0]),
        (wrong_by_another_response, CENSORS[0]),
    ],
)
def test_the_loss_by_quadrature_is_within_the_width_whichever_record_is_left_out(
    write, censor
):
    mu = np.linspace(-6.0, 8.0, 141)

    def log_posterior(x):
        model = with_terms(of(write, x), censor)
        function = model.compile_fn(model.logp(), inputs=model.value_vars)
        density = np.array([function({"mu": value}) for value in mu])
        return (
            density
            - density.max()
            - np.log(trapezoid(np.exp(density - density.max()), mu))
        )

    whole = log_posterior(X)
    losses = [
        np.abs(log_posterior(np.delete(X, record)) - whole).max()
        for record in (0, 5, 6)
    ]
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


# values that differ, on a fine scale
FINE = np.random.default_rng(2).normal(size=9)


def holding(constant, y=FINE):
    """The response, and a constant of any shape in its mean."""

    def write():
        held = pt.as_tensor(constant)
        whole = held if held.ndim == 1 else held.sum()
        pm.Normal("y", pm.Normal("b") * whole, observed=y)

    return write


def imputed(places, of=lambda y: y):
    """A predictor of seven records whose entry 2 is missing: what was observed, in these places."""

    def write():
        pm.Normal(
            "y", pm.Normal("mu"), observed=np.ma.masked_array(X, np.arange(7) == 2)
        )
        observed = of(pm.modelcontext(None)["y_observed"])
        whole = pt.set_subtensor(pt.zeros(7)[np.array(places)], observed)
        pm.Normal("y2", pm.Normal("b") * whole, observed=X + 0.1)

    return write


def flat(make):
    return lambda: pm.Normal("y", make("mu", initval=1.0), observed=X)


def all_values(value, mean):
    return -((value - value.mean() - mean) ** 2)


def checked(value, top):
    return CheckParameterValue("top < 9")(-(value**2), pt.all(top < 9.0))


def group():
    return pm.Bernoulli("group", 0.5, observed=np.arange(7) % 2)


def looked_up(shape, *before):
    """The mean of each record from every record's group."""
    return lambda: pm.Normal(
        "y", pm.Normal("m", shape=shape)[*before, group()].sum(1), observed=X
    )


def one_of(first, size):
    return pt.switch(first, pm.Normal.dist(size=size), pm.Flat.dist(size=size))


PRIOR, TERM, FLAT = (
    "^the prior of .* depends on observed",
    "^a record's term of",
    "is improper",
)
TWICE = "^a constant of the model holds the values of y"
DRAWN = "is drawn with observed values, which a release would"
REFUSED = {
    "response in a prior": (next_to(lambda y: pm.Normal("u", y.mean(), 0.01)), PRIOR),
    "mean": (prior_of(lambda d: d.mean()), PRIOR),
    "selection": (prior_of(lambda d: 5.0 * d[d > 1.0].shape[0]), PRIOR),
    "count as a length": (
        prior_of(lambda d: pt.zeros((d > 1.0).sum()).shape[0]),
        PRIOR,
    ),
    "cut": (prior_of(lambda d: d[: d[-1].astype("int64")].shape[0]), PRIOR),
    "latent": (lambda: y_of(lambda d: pm.Normal("u", d)), PRIOR),
    "imputed": (
        next_to(lambda y: y, x=np.ma.masked_array(X, np.arange(7) == 2)),
        PRIOR,
    ),
    "standardised": (seen_as(lambda d: (d - d.mean()) / d.std()), TERM),
    "rows and columns": (seen_as(lambda d: d + d.T, X[:, None] * np.ones(7)), TERM),
    "inverse": (seen_as(pt.linalg.inv, np.eye(7)), TERM),
    "reshaped": (
        lambda: pm.Normal(
            "z",
            pm.Normal("y", pm.Normal("mu"), observed=X[:6].reshape(3, 2)).T.reshape(
                (3, 2)
            ),
            observed=np.ones((3, 2)),
        ),
        TERM,
    ),
    "the one observed": (
        lambda: (
            pm.Normal("y", pm.Normal("mu"), observed=np.ma.masked_array(X, ~FAR)),
            pm.Normal("y2", pm.modelcontext(None)["y_observed"], observed=X),
        ),
        TERM,
    ),
    "imputed, in other rows": (imputed([1, 0, 3, 4, 5, 6]), TERM),
    "imputed, from others": (imputed([0, 1, 3, 4, 5, 6], lambda y: y.sum()), TERM),
    "other mean": (next_to(lambda y: pm.Normal("u") + y.mean()), TERM),
    "record before": (next_to(lambda y: pt.concatenate([y[:1], y[:-1]])), TERM),
    "reversed": (next_to(lambda y: y[::-1]), TERM),
    "filled": (next_to(lambda y: pt.alloc(y, 7, 7)[:, 0]), TERM),
    "set in every row": (
        next_to(
            lambda y: pt.set_subtensor(pt.zeros((7, 7))[np.arange(7)], y).sum(axis=1)
        ),
        TERM,
    ),
    "mask": (next_to(lambda y: pm.Normal("m", shape=7)[y > -9.0]), TERM),
    "other order": (next_to(lambda y: y[group()]), TERM),
    "slice of a table": (looked_up((8, 2), slice(1, None)), TERM),
    "three axes": (looked_up((8, 3, 2), slice(1, None), 0), TERM),
    "scalars": (
        lambda: pm.Normal(
            "y",
            pm.Normal("mu"),
            observed=pt.stack([pm.Data("first", 0.3), pm.Data("second", 0.7)]),
        ),
        TERM,
    ),
    "predictor": (lambda: pm.Normal("y", pm.Normal("b") * X, observed=X), TWICE),
    "column": (
        lambda: pm.Normal("y", np.c_[X, X] @ pm.Normal("b", shape=2), observed=X),
        TWICE,
    ),
    "row": (holding(FINE[None, :]), TWICE),
    "cube": (holding(FINE[:, None, None] * np.ones((2, 3))), TWICE),
    "last axis": (holding(np.ones((2, 3, 1)) * FINE), TWICE),
    "single precision": (holding(FINE.astype("float32")), TWICE),
    "its double": (holding(FINE.astype("float32").astype(float)), TWICE),
    "whole numbers": (
        holding(np.array([3, 1, 4, 1, 5]), np.array([3.0, 1, 4, 1, 5])),
        TWICE,
    ),
    "common column": (
        next_to(
            lambda y: pm.Normal("m", shape=(7, 2))[:, (y.max() > 1).astype("int64")]
        ),
        TERM,
    ),
    "common check": (
        lambda: pm.CustomDist(
            "y2",
            pm.Normal("y", pm.Normal("mu"), observed=X).max(),
            logp=checked,
            random=drawn,
            observed=X,
        ),
        TERM,
    ),
    "own density": (
        lambda: pm.CustomDist(
            "y", pm.Normal("mu"), logp=all_values, random=drawn, observed=X
        ),
        TERM,
    ),
    "selected": (
        lambda: y_of(lambda d: pm.Normal("mu") * d[d > 1.0].shape[0]),
        f"^y {DRAWN}",
    ),
    "drawn": (
        lambda: (
            seen_as(lambda d: d)(),
            pm.Normal("y2", pm.Normal("b") * pm.modelcontext(None)["data"], observed=X),
        ),
        f"^y2 {DRAWN}",
    ),
    "Flat": (flat(pm.Flat), FLAT),
    "Truncated": (
        flat(lambda *a, **k: pm.Truncated(*a, pm.Flat.dist(), lower=0.0, **k)),
        FLAT,
    ),
    "branch": (
        flat(
            lambda name, initval: pm.CustomDist(
                name, pm.Bernoulli("first", 0.5), dist=one_of
            )
        ),
        FLAT,
    ),
    "density": (
        flat(lambda *a, **k: pm.CustomDist(*a, logp=lambda value: 0.0 * value, **k)),
        FLAT,
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_model_in_which_a_record_does_more_than_its_term_is_refused(name):
    write, message = REFUSED[name]
    mechanism = ppm.PseudoPosteriorMechanism(model_of(write), censor=CENSORS[0])
    # one of them also when it is tried a second time
    for _ in range(1 + (name == "mean")):
        with pytest.raises(ValueError, match=message) as error:
            mechanism.run(draws=10)
        assert "\n" not in str(error.value)


def by_group():
    pm.Normal("y", pm.Normal("mu", shape=2)[group()], observed=X)


def covariance_by_group():
    table = pm.HalfNormal("s", shape=2)[:, None, None] * np.eye(2)
    pm.MvNormal("y", np.zeros(2), table[group()], observed=X[:, None] * [1, 2])


def summed_within():
    y = pm.Normal("y", pm.Normal("mu"), observed=X[:, None] * [1, 2])
    pm.Normal("y2", pt.cumsum(y, axis=1)[:, 1], observed=X + 0.1)


def elementwise():
    logs = pt.log(pm.Data("data", np.exp(X))) / 2.0
    pm.Normal("y", pm.Normal("mu"), 1.0, observed=logs)


def walks():
    start = pm.Normal.dist()
    pm.GaussianRandomWalk(
        "y", sigma=pm.HalfNormal("s"), init_dist=start, observed=X[:, None] * [1, 2, 4]
    )


# of last year, and changed for one or two of nine
LAST = np.where(np.arange(9) < 2, 0.5 * FINE, FINE)


@pytest.mark.parametrize(
    "write",
    [
        by_group,
        covariance_by_group,
        seen_as(lambda d: d[:, 0], X[:, None]),
        summed_within,
        walks,
        elementwise,
        imputed([0, 1, 3, 4, 5, 6]),
        # values that others have too
        holding(LAST),
        # a predictor that equals the response by chance
        lambda: pm.Normal("y", pm.Normal("b") * np.arange(7), observed=np.arange(7)),
    ],
)
def test_values_of_the_same_record_may_stand_in_its_term(write):
    assert with_terms(PyMCSynthesizer(model_of(write)), CENSORS[0]) is not None
