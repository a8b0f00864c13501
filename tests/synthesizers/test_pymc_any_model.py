"""Any PyMC model as a synthesizer: its weighted copy against the user's own model, untouched."""

import itertools
import logging
import re
import warnings
from functools import partial

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
import pytensor
import pytensor.sparse as ps
import pytensor.tensor as pt
import pytest
import xarray as xr
from pymc.logprob.utils import CheckParameterValue
from pytensor.graph.op import Apply, Op
from pytensor.tensor.blockwise import Blockwise
from scipy import special, stats
from scipy.integrate import trapezoid
from scipy.sparse import csr_matrix

import ppm
from ppm.censoring import limited
from ppm.synthesizers.pymc_model import PyMCSynthesizer

RECORDS = 12
WEIGHTS = np.random.default_rng(4).uniform(0.1, 1.0, RECORDS)
WEIGHTS[[2, 5, 7]] = 0.0, 3.0, 1.0
RNG = np.random.default_rng(7)
X, Y, PAIRS = (
    RNG.normal(size=RECORDS),
    RNG.normal(1, 0.7, RECORDS),
    RNG.normal(size=(RECORDS, 2)),
)
COUNTS, THIRD = RNG.poisson(3.0, RECORDS), np.arange(RECORDS) % 3
Y_MASK, PAIRS_MASK = np.arange(RECORDS) % 5 == 1, RNG.random((RECORDS, 2)) < 0.3
ROW_MASK = np.isin(np.arange(RECORDS), [3, 9])
IDS, ONES = RNG.integers(1e8, 2e8, RECORDS), np.ones(5)
# limits near the terms, so that some are inside and some far outside
CENSORS = [ppm.Censoring(-2.5, -0.5), ppm.Censoring(-1.6, -1.1, smooth=False)]


@pytest.fixture(scope="module", autouse=True)
def quick():
    """Functions run by plain Python, which needs no compilation."""
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        yield


def model_of(write, *data):
    """The model that a function writes."""
    coords = {"person": IDS, "item": ["food", "rent"], "region": ["N", "S", "W"]}
    with pm.Model(coords=coords) as model, warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.exceptions.ImputationWarning)
        write(*data)
    return model


# ---- a family of models -----------------------------------------------------------------------


def poisson():
    x, y = pm.Data("x", X, dims="person"), pm.Data("counts", COUNTS, dims="person")
    beta = pm.Normal("beta", shape=2)
    rate = pm.Deterministic("rate", pt.exp(beta[0] + beta[1] * x), dims="person")
    pm.Poisson("y", rate, observed=y, dims="person")


def logistic():
    beta = pm.Normal("beta", shape=2, initval=[0.3, -0.2])
    mu = np.column_stack([np.ones(RECORDS), X]) @ beta
    pm.Bernoulli("yes", logit_p=mu, observed=(Y > 1).astype(int))
    pm.Potential("soft_constraint", -(pt.sum(beta) ** 2))
    ordered = {
        "transform": pm.distributions.transforms.ordered,
        "default_transform": None,
    }
    cuts = pm.Normal("cuts", shape=3, initval=[-1.0, 0.0, 1.0], **ordered)
    pm.OrderedLogistic("grade", eta=mu, cutpoints=cuts, observed=COUNTS % 4)


def hierarchical():
    effect = pm.Normal("effect", pm.Normal("mu"), pm.HalfNormal("tau"), dims="region")
    pm.Normal("spending", effect[THIRD], pm.HalfNormal("sigma"), observed=Y)


def marginal_mixture():
    share, mu = pm.Dirichlet("share", np.ones(2)), pm.Normal("mu", [-1.0, 1.0], 1.0)
    pm.NormalMixture("y", share, mu, [0.5, 0.8], observed=Y)


def two_responses():
    income = pm.Normal(
        "income", pm.Normal("beta") * X, pm.HalfNormal("sigma"), observed=Y
    )
    pm.Poisson("children", pt.exp(0.3 * income), observed=COUNTS)


def multivariate():
    chol, *_ = pm.LKJCholeskyCov(
        "chol", eta=2.0, n=2, sd_dist=pm.HalfNormal.dist(size=2)
    )
    mu = X[:, None] * pm.Normal("beta", shape=2)
    pm.MvNormal("y", mu, chol=chol, observed=PAIRS, dims=("person", "item"))


def record_level_parameters():
    pm.TruncatedNormal(
        "y", pm.Normal("mu", shape=RECORDS), 1.0, lower=0.0, observed=np.exp(X)
    )


def missing_values():
    beta = pm.Normal("beta")
    y = pm.Normal("y", beta * X, 1.0, observed=np.ma.masked_array(Y, Y_MASK))
    pm.Poisson("children", pt.exp(0.3 * y), observed=COUNTS)
    pm.Normal("z", beta, 2.0, observed=np.ma.masked_array(PAIRS, PAIRS_MASK))


def missing_rows():
    rows = np.ma.masked_array(PAIRS, np.column_stack([ROW_MASK, ROW_MASK]))
    pm.MvNormal("y", pm.Normal("mu", shape=2), np.eye(2), observed=rows)


def sparse_design():
    design = ps.as_sparse_variable(
        csr_matrix(np.where(X > 0, X, 0.0)[:, None] * [1.0, 0.0, X[0]])
    )
    mu = ps.structured_dot(design, pm.Normal("beta", shape=(3, 1)))[:, 0]
    pm.Normal("y", mu, pm.HalfNormal("sigma"), observed=Y)


FAMILY = [
    poisson,
    logistic,
    hierarchical,
    marginal_mixture,
    two_responses,
    multivariate,
    record_level_parameters,
    missing_values,
    missing_rows,
    sparse_design,
]
MASKS = {
    (missing_values, "y_observed"): ~Y_MASK,
    (missing_values, "z_observed"): ~PAIRS_MASK,
    (missing_rows, "y_observed"): ~ROW_MASK,
}


def of_family(model, **settings):
    """Its synthesizer, with the user's word for all potentials."""
    return PyMCSynthesizer(
        model, public_potentials=[v.name for v in model.potentials], **settings
    )


@pytest.fixture(scope="module", params=FAMILY)
def member(request):
    """The function that writes a model, the user's model, and its synthesizer."""
    model = model_of(request.param)
    return request.param, model, of_family(model)


def points(model, number=2):
    rng = np.random.default_rng(11)
    for _ in range(number):
        start = model.initial_point()
        yield {k: v + 0.3 * rng.standard_normal(v.shape) for k, v in start.items()}


def posterior_of(draws):
    """One chain of these draws, each a dict of values."""
    stacked = {
        name: np.stack([draw[name] for draw in draws])[None] for name in draws[0]
    }
    return pm.backends.arviz.dict_to_dataset(stacked, sample_dims=["chain", "draw"])


def gradient(model, density):
    """The gradient of a log-density by the names of the parameters."""
    values = sorted(model.continuous_value_vars, key=lambda value: value.name)
    return pt.concatenate([part.ravel() for part in pytensor.grad(density, values)])


def with_gradient(model, **settings):
    """Function of a point: the log-density and its gradient."""
    density = model.logp()
    outputs = [density, gradient(model, density)]
    return model.compile_fn(outputs, inputs=model.value_vars, **settings)


def by_definition(write, model):
    """Log-prior with potentials, and log-likelihoods of records, by the user's own model."""
    total, parts = pt.zeros(RECORDS), model.logp(vars=model.observed_RVs, sum=False)
    for variable, part in zip(model.observed_RVs, parts, strict=True):
        rows = np.nonzero(MASKS.get((write, variable.name), np.ones(RECORDS)))[0]
        total = pt.inc_subtensor(total[rows], part.sum(axis=tuple(range(1, part.ndim))))
    return model.logp(vars=[*model.free_RVs, *model.potentials]), total


def test_the_density_has_the_weighted_terms_and_the_log_likelihood_is_unweighted(
    member,
):
    write, model, synthesizer = member
    before = [
        *map(dict, (model.named_vars, model.rvs_to_values, model.rvs_to_initial_values))
    ]
    prior, by_record = by_definition(write, model)
    names = [v.name for v in model.free_RVs]
    written = [v for v in model.unobserved_value_vars if v.name in names]
    terms = WEIGHTS * by_record
    kept = [limited(terms, c.low, c.high, c.smooth, pt) for c in CENSORS]
    slopes = [gradient(model, prior + each.sum()) for each in (*kept, terms)]
    evaluate = model.compile_fn(
        [prior, by_record, *slopes, *written], inputs=model.value_vars
    )
    # none at last: limits do not stay
    for number, censor in enumerate([*CENSORS, None]):
        copy = synthesizer._with(ppm.Terms(WEIGHTS, censor))
        found = with_gradient(copy)
        for point in points(model):
            density, slope = found(point)
            start, log_lik, *expected = evaluate(point)
            expected, draw = expected[number], expected[len(slopes) :]
            # PyMC's own gradient of a truncated normal is off by 3e-8
            np.testing.assert_allclose(slope, expected, rtol=1e-7, atol=1e-8)
            assert np.isfinite(log_lik).all()
            h = censor.term if censor else lambda value: value
            right = start + h(WEIGHTS * log_lik).sum()
            np.testing.assert_allclose(density, right, rtol=1e-10, atol=1e-10)
            # terms left as they are, weights of others, weights outside the limits, limits of the
            # sum, and weights on the prior would be seen
            wrong = [
                log_lik.sum(),
                density - WEIGHTS[0] * start,
                WEIGHTS[::-1] @ log_lik,
            ]
            if censor:
                wrong += [WEIGHTS @ log_lik, WEIGHTS @ h(log_lik), h(WEIGHTS @ log_lik)]
            assert np.abs(density - start - wrong).min() > 1e-6
    draw = dict(zip([v.name for v in written], draw, strict=True))
    log_liks = synthesizer.log_likelihood_at(posterior_of([draw, draw]))
    assert log_liks.dims == ("chain", "draw", "record")
    np.testing.assert_allclose(log_liks[0], [log_lik] * 2, rtol=1e-10, atol=1e-10)
    assert before == [
        *map(dict, (model.named_vars, model.rvs_to_values, model.rvs_to_initial_values))
    ]


def test_releases_are_predictive_draws_of_the_users_model(member):
    _, model, synthesizer = member
    names = [v.name for v in model.free_RVs if not v.name.endswith("_unobserved")]
    start = dict(
        zip(names, pm.draw([model[name] for name in names], random_seed=3), strict=True)
    )
    posterior = xr.DataTree.from_dict({"posterior": posterior_of([start] * 5)})
    settings = {
        "var_names": synthesizer.responses,
        "freeze_vars": names,
        "progressbar": False,
    }
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The effect of Potentials")
        mine, same = [
            pm.sample_posterior_predictive(
                posterior, model=m, random_seed=5, **settings
            )
            for m in (model, synthesizer._plain)
        ]
    released = synthesizer.predict(posterior, releases=5, random_seed=1)
    released = released if len(synthesizer.responses) > 1 else released.to_dataset()
    for name in synthesizer.responses:
        expected = mine["posterior_predictive"][name]
        assert expected.equals(same["posterior_predictive"][name])
        # no coordinate of a record goes along, and every entry is drawn
        assert released[name].dims == ("release", "record", *expected.dims[3:])
        assert (
            "record" not in released[name].coords and not np.isnan(released[name]).any()
        )
        # nor is what a trace has imputed released again
        assert not np.isclose(*released[name].values[:2, Y_MASK]).all()


def drawn(*parameters, rng=None, size=None):
    return rng.normal(size=size)


def own(log_density, mu=None, **settings):
    settings = {"observed": ONES} | settings
    pm.CustomDist(
        "y", pm.Normal("mu") if mu is None else mu, logp=log_density, **settings
    )


def between(value, mean):
    check = CheckParameterValue("between", can_be_replaced_by_ninf=True)
    return check(mean - value, pt.all(value > -9.0), pt.all(value < 9.0))


def of_two_numbers(value, mean):
    return pt.special.xlogy(value**2, 2.0 + mean) - pt.logaddexp(value, mean)


@pytest.mark.parametrize(
    ("write", "mu", "expected"),
    [
        # each record has every condition of a check to itself
        (
            partial(
                own, between, random=drawn, observed=np.array([-99.0, 0.0, 99.0, 1.0])
            ),
            0.0,
            [-np.inf, 0.0, -np.inf, -1.0],
        ),
        # a function of two numbers may have one for all records
        (
            partial(own, of_two_numbers, random=drawn, observed=Y),
            1.0,
            Y**2 * np.log(3) - np.logaddexp(Y, 1),
        ),
        # probabilities of next to 0 and 1 have exact logarithms
        (
            lambda: pm.Bernoulli("y", logit_p=X * pm.Normal("mu"), observed=COUNTS % 2),
            900.0,
            special.log_expit(np.where(COUNTS % 2, 900.0 * X, -900.0 * X)),
        ),
    ],
)
def test_each_record_has_its_own_term_to_the_last_digits(write, mu, expected):
    posterior = posterior_of([{"mu": np.array(mu)}])
    found = PyMCSynthesizer(model_of(write)).log_likelihood_at(posterior)
    np.testing.assert_allclose(found[0, 0], expected, rtol=1e-12)


# ---- fits and releases ------------------------------------------------------------------------

VISITS = np.array([3, 5, 4, 6, 20, 2, 3, 7])


def visits():
    mu = pm.Gamma("mu", 2.0, 0.5)
    pm.Deterministic("twice", 2.0 * mu)
    pm.Poisson("y", mu, observed=VISITS)


def test_other_terms_need_no_compilation_and_chains_differ(monkeypatch):
    synthesizer = PyMCSynthesizer(model_of(visits), warmup=20)
    synthesizer.fit(ppm.Terms(np.ones(8), CENSORS[1]), draws=20, random_seed=3)
    monkeypatch.setattr("pymc.pytensorf.pytensor.function", None)
    for terms in ppm.Terms(np.full(8, 0.5), CENSORS[1]), np.full(8, 0.5):
        fit = synthesizer.fit(terms, draws=20, random_seed=5)
        # chains with the same random numbers would agree whatever they do
        assert not np.isin(*fit["posterior"]["mu"].values).any()


def test_an_interrupted_draw_of_releases_has_made_none():
    left = itertools.count(-3)

    def interrupted(*parameters, rng=None, size=None):
        if next(left) == 0:
            raise KeyboardInterrupt
        return np.ones(size)

    model = model_of(lambda: own(lambda value, mu: mu - value, random=interrupted))
    synthesizer = PyMCSynthesizer(model)
    fit = xr.DataTree.from_dict(
        {"posterior": posterior_of([{"mu": mu} for mu in np.arange(9.0)])}
    )
    for first in -3, 0:
        left = itertools.count(first)
        with pytest.raises(KeyboardInterrupt):
            synthesizer.predict(fit, releases=9, random_seed=1)
    assert synthesizer.predict(fit, releases=9, random_seed=2).values.min() == 1
    # PyMC is as talkative as before
    assert logging.getLogger("pymc.sampling.forward").level == logging.NOTSET


class Scalar(Op):
    """Log-density of one value, whose gradient is not known."""

    def make_node(self, value, mean):
        return Apply(self, [pt.as_tensor(value), pt.as_tensor(mean)], [pt.dscalar()])

    def perform(self, node, given, outputs):
        outputs[0][0] = np.asarray(-((given[0] - given[1]) ** 2))


black_box = Blockwise(Scalar(), signature="(),()->()")


FEW = np.array([-1.0, 0.0, 2.0, 3.0])


def without_gradient(choice):
    mean = pm.Normal("mean") + (0.5 * pm.Bernoulli("choice", 0.5) if choice else 0.0)
    pm.CustomDist("y", mean, logp=black_box, random=drawn, observed=FEW)


@pytest.mark.parametrize(("choice", "censor"), [(False, CENSORS[0]), (True, None)])
def test_a_density_without_a_gradient_has_the_right_posterior(choice, censor):
    model, weights = (
        model_of(partial(without_gradient, choice)),
        np.array([1.5, 1.0, 0.2, 0.1]),
    )
    mechanism = ppm.PseudoPosteriorMechanism(
        model, weights=weights, censor=censor, warmup=50
    )
    result = mechanism.run(draws=300, random_seed=np.random.default_rng(8))
    mean, found = np.linspace(-4.0, 4.0, 801), result.draws["posterior"]["mean"]

    def expected(weights):
        h = censor.term if censor else lambda terms: terms
        shifts = [0.0, 0.5] if choice else [0.0]
        terms = [
            h(-weights * (FEW - mean[:, None] - shift) ** 2).sum(1) for shift in shifts
        ]
        density = np.exp(stats.norm.logpdf(mean) + special.logsumexp(terms, axis=0))
        return trapezoid(density * mean) / trapezoid(density)

    error = float(az.mcse(found))
    assert abs(float(found.mean()) - expected(weights)) < 4.0 * error
    assert abs(expected(weights) - expected(weights[::-1])) > 8.0 * error


# of PyMC's own code
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_simulator_has_a_fit_and_no_strict_epsilon():
    def draw(rng, mean, size):
        return rng.normal(mean, size=size)

    model = model_of(lambda: pm.Simulator("y", draw, pm.Normal("mean"), observed=FEW))
    settings = {"warmup": 20, "weights": np.ones(4)}
    result = ppm.PseudoPosteriorMechanism(model, **settings).run(
        draws=20, random_seed=1
    )
    assert not result.strict and np.isfinite(result.draws["posterior"]["mean"]).all()
    strict = ppm.PseudoPosteriorMechanism(model, censor=CENSORS[0], **settings)
    with pytest.raises(
        ValueError, match="^the density of a pm.Simulator is drawn anew"
    ):
        strict.run(draws=20)


def test_an_impossible_start_is_seen_where_nuts_moves_nothing():
    def log_density(value, mean):
        return pt.switch(value > 5.0, -np.inf, black_box(value, mean))

    model = model_of(partial(own, log_density, random=drawn, observed=np.r_[1.0, 9.0]))
    with pytest.raises(
        ValueError, match="^record 1 is impossible at the model's initial"
    ):
        PyMCSynthesizer(model).fit(draws=5)
    assert PyMCSynthesizer(model, warmup=5).fit([1.0, 0.0], draws=5, random_seed=1)


def test_what_pymc_is_given_to_draw_from_has_full_entropy(monkeypatch):
    given, others = [], []

    def sample(*arguments, random_seed, **settings):
        given.append(random_seed)
        others.append({"arguments": arguments} | settings)
        raise KeyboardInterrupt

    monkeypatch.setattr(pm, "sample", sample)
    monkeypatch.setattr(pm, "sample_posterior_predictive", sample)
    settings = {"chains": 3, "target_accept": 0.7}
    synthesizer = PyMCSynthesizer(model_of(visits), warmup=5, **settings)
    fit = xr.DataTree.from_dict({"posterior": posterior_of([{"mu": np.ones(())}] * 2)})
    predict = partial(synthesizer.predict, fit, releases=1)
    for draw in (partial(synthesizer.fit, np.full(8, 1.5), draws=9), predict):
        with pytest.raises(KeyboardInterrupt):
            draw()
    # all that was asked for goes along, weights above 1 too
    settings |= {"arguments": (9,), "tune": 5, "quiet": True, "progressbar": False}
    # whatever other sampler is installed, which PyMC would give a seed of 30 bits
    settings |= {"nuts_sampler": "pymc"}
    assert others[0] == others[0] | settings
    assert (others[0]["model"].alpha.get_value() == 1.5).all()
    given[0] = given[0].bit_generator.seed_seq.entropy
    # numbers of 31 or 64 bits would not come near
    assert all(2**96 < number < 2**128 for number in given)


def test_what_is_no_number_is_not_released():
    model = model_of(
        lambda: pm.Normal("y", pt.sqrt(pm.Normal("mu", initval=1.0)), observed=ONES)
    )
    fit = xr.DataTree.from_dict({"posterior": posterior_of([{"mu": np.array(-1.0)}])})
    with pytest.raises(ValueError, match="^model draws NaN for y, which is no release"):
        PyMCSynthesizer(model).predict(fit, releases=1)


# ---- what is taken and what is refused ---------------------------------------------------------


def one_normal(mu=0.0, **settings):
    pm.Normal("y", pm.Normal("mu") + mu, **({"observed": ONES} | settings))


def row_by_row(observed, distribution=pm.Normal):
    """A response with a parameter for each of five rows."""
    distribution("y", pm.Normal("mu") * X[:5], observed=observed)


def yes_or_no(name, mu, observed):
    pm.Bernoulli(name, logit_p=mu, observed=observed)


def grade(name, mu, observed):
    pm.OrderedLogistic(name, eta=mu, cutpoints=[-1.0, 1.0], observed=observed)


def hurdle(name, mu, observed):
    pm.HurdleLogNormal(name, psi=0.5, mu=mu, sigma=1.0, observed=observed)


def squares(name, mu, observed):
    own(lambda value, mean: -((value - mean) ** 2), mu, random=drawn, observed=observed)


def one_data():
    data = pm.Data("data", ONES)
    one_normal(observed=data)
    pm.Cauchy("z", pm.Normal("nu"), 1.0, observed=data)


def two_lengths(response):
    x, z = pm.Data("x", X), pm.Data("z", ONES)
    pm.Normal(
        "y",
        pm.Normal("mu") * x + (0.0 if response else z),
        observed=z if response else Y,
    )


def sparse_with_nan():
    design = csr_matrix([[1.0, 0.0], [0.0, 2.0], [0.0, np.nan]])
    mu = ps.structured_dot(ps.as_sparse_variable(design), pm.Normal("b", shape=(2, 1)))
    pm.Normal("y", mu[:, 0], observed=ONES[:3])


def computed_start():
    data = pm.Data("data", Y)
    pm.Normal("y", pm.Normal("mu", initval=data.mean()), observed=data)


def open_interval(observed):
    def log_density(value, mean):
        ends = [
            pt.exp(pm.logcdf(pm.Normal.dist(mean), value[:, end])) for end in (0, 1)
        ]
        return pt.log(ends[1] - ends[0])

    own(log_density, random=drawn, observed=observed, signature="()->(2)")


def weighted_potential(values, observed=Y):
    """Survey weights as they are often written: by a potential with the response's values."""
    mu = pm.Normal("mu")
    y = None if observed is None else pm.Normal("y", mu, observed=observed)
    of = y if values is None else values
    pm.Potential("p", (WEIGHTS * pm.logp(pm.Normal.dist(mu), of)).sum())


def unfit(shape, other=r"its parameters \(5,\)"):
    return rf"^y has shape {re.escape(str(shape))} and {other}: give both one row per record"


SURVEY = r"survey weights go to PseudoPosteriorMechanism\(weights=...\)"


def potential(of, data):
    values = pm.Data("values", data)
    mu = pm.Normal("mu")
    y = pm.Normal("y", mu, observed=ONES if data.dtype == float else values)
    pm.Potential("second", of(mu, values, y))


def partly_missing_rows():
    y = np.ma.masked_array(np.ones((5, 2)), np.arange(10).reshape(5, 2) == 2)
    pm.MvNormal("y", pm.Normal("mu", shape=2), np.eye(2), observed=y)


def data_not_given():
    data = pm.Data("data", ONES)
    own(lambda value, mu: mu * data.sum() - value**2, random=drawn)


def insisted(value, mu):
    return CheckParameterValue("mu > 0")(-((value - mu) ** 2), pt.all(mu > 5.0))


def bounded_by_data():
    low = pm.Data("low", 0.0)
    above = pm.distributions.transforms.Interval(bounds_fn=lambda *given: (low, None))
    pm.Normal("y", pm.Normal("u", transform=above, initval=1.0), observed=ONES)


of_the_response = partial(potential, lambda mu, values, y: y[:2].sum(), ONES)
# what the model observes is a copy of another type
of_its_values = partial(
    potential, lambda mu, values, y: values.sum() * mu, np.ones(5, int)
)
of_other_data = partial(potential, lambda mu, values, y: (mu * values).sum(), ONES)

REFUSED = [
    (
        lambda: pm.Potential("p", -(pm.Normal("mu") ** 2)),
        "no observed variable: give its response",
    ),
    (
        lambda: pm.Normal("y", pm.Poisson("n", 3.0), observed=ONES),
        "no continuous parameter",
    ),
    (
        partial(own, lambda value, mu: -((value - mu) ** 2)),
        "y cannot be drawn, and nothing could",
    ),
    (
        of_other_data,
        r'potential second could hold.*neither, pass public_potentials=\["second"\]',
    ),
    (
        lambda: pm.GaussianRandomWalk(
            "y", init_dist=pm.Normal.dist(), sigma=pm.HalfNormal("s"), observed=ONES
        ),
        "y has one density for all its 5 rows",
    ),
    (
        partial(own, lambda value, mu: (mu - value)[:1], random=drawn),
        "y has one density for all",
    ),
    (
        lambda: (one_normal(), pm.Normal("z", observed=np.ones(7))),
        "y, z have different lengths",
    ),
    (partial(one_normal, observed=3.0), "y must be observed as an array"),
    (partial(one_normal, total_size=50), "y is a minibatch or has total_size"),
    (
        lambda: one_normal(
            observed=pm.Minibatch(np.ones(50), batch_size=5), total_size=50
        ),
        "y is a minibatch",
    ),
    (
        lambda: one_normal(observed=pytensor.shared(ONES)),
        "holds a pytensor.shared variable",
    ),
    (data_not_given, "pm.Data, and give it to a CustomDist as a parameter"),
    (partly_missing_rows, "y has missing values that PyMC cannot separate"),
    (
        partial(own, insisted, random=drawn),
        r"y has no density at .* \(ParameterValueError\): corr",
    ),
    (
        lambda: pm.Normal("y", pm.Normal("mu", shape=3)[np.arange(5)], observed=ONES),
        r"y has no density at the model's initial values \(IndexError\): correct the model, or",
    ),
    (
        lambda: pm.Poisson(
            "y", pt.exp(pm.Normal("b") * np.r_[0, 0, 0, np.nan, 0]), observed=ONES
        ),
        "^a constant of the model has NaN, or an index below 0 .*, in row 3",
    ),
    (
        lambda: pm.Normal(
            "y",
            pm.Normal("m", shape=3)[pm.Data("k", np.arange(5) % 4 - 1)],
            observed=ONES,
        ),
        "^k has NaN, or an index below 0 .*, in row 0: correct",
    ),
    (
        partial(
            one_normal,
            observed=pd.Series(pd.date_range("1950-01-01", periods=5, freq="YS")),
        ),
        "^y has numbers as large as PyMC makes of dates",
    ),
    (bounded_by_data, "^model has no density .ValueError.: give a CustomDist its logp"),
    (
        lambda: pm.MvNormal("y", np.zeros(5), np.eye(5), observed=ONES),
        "y has one density for all",
    ),
    # shapes that do not fit, and are shown
    (partial(row_by_row, ONES[:, None]), unfit((5, 1))),
    (partial(row_by_row, pd.DataFrame({"y": ONES}), yes_or_no), unfit((5, 1))),
    (partial(row_by_row, np.ones(6)), unfit((6,))),
    (
        partial(row_by_row, np.ma.masked_array(ONES, np.arange(5) == 2)[:, None]),
        unfit((5, 1)),
    ),
    (
        partial(row_by_row, np.zeros((5, 1), int), grade),
        unfit((5, 1), r"its parameters \(5, 3\)"),
    ),
    (partial(row_by_row, ONES[:, None], hurdle), unfit((5, 1))),
    (
        partial(row_by_row, ONES[:, None], squares),
        r"^y has shape \(5, 1\) .* density \(5, 5\)",
    ),
    (partial(one_normal, shape=3), unfit((5,), r"shape=\(3,\)")),
    (partial(two_lengths, True), unfit((5,), r"its parameters \(12,\)")),
    (
        partial(two_lengths, False),
        r"^model combines arrays .*: x \(12,\), z \(5,\). Give each",
    ),
    (one_data, "^y and z are observed as the same data, for which PyMC has no density"),
    (
        sparse_with_nan,
        "^a constant of the model has NaN, or an index below 0 .*, in row 2",
    ),
    (computed_start, "^the initval of mu is computed by the model"),
    *[
        (
            partial(one_normal, observed=data),
            "^y is infinite in row 3, where it has no density",
        )
        for data in (
            np.r_[ONES[:3], np.inf],
            pd.Series(np.r_[ONES[:3], -np.inf]),
            np.ma.masked_array(np.r_[ONES[:3], np.inf], np.arange(4) == 1),
        )
    ],
    (
        partial(open_interval, np.c_[[1.0, 2.0], [np.inf, -np.inf]]),
        "^y is infinite in row 1",
    ),
    # survey weights
    (
        partial(weighted_potential, Y, None),
        f"^model has no observed variable: .*{SURVEY}",
    ),
    (
        partial(weighted_potential, None),
        f"^potential p depends on a response, .*{SURVEY}",
    ),
    (
        partial(weighted_potential, Y),
        f"^potential p holds the values of y, .*{SURVEY}$",
    ),
    (
        partial(weighted_potential, np.exp(Y)),
        f"^potential p could hold .*{SURVEY}.*neither, pass",
    ),
]


@pytest.mark.parametrize(("write", "message"), REFUSED)
def test_models_without_by_record_terms_are_refused(write, message):
    with pytest.raises(ValueError, match=message) as error:
        ppm.PseudoPosteriorMechanism(model_of(write))
    assert "\n" not in str(error.value)
    assert error.value.__context__ is None or error.value.__suppress_context__


def test_what_is_said_to_be_public_or_is_moved_by_other_steps_is_taken():
    assert (
        PyMCSynthesizer(model_of(of_other_data), public_potentials=["second"]).records
        == 5
    )
    for wrong in (["third"], "second"):
        with pytest.raises(
            ValueError, match=r"^public_potentials must be a list from .'second'"
        ):
            PyMCSynthesizer(model_of(of_other_data), public_potentials=wrong)
    for write in (of_the_response, of_its_values):
        with pytest.raises(ValueError, match="potential second depends on"):
            PyMCSynthesizer(model_of(write), public_potentials=["second"])
    # whoever names a potential need not know what it holds
    masked = np.ma.masked_array(Y, Y_MASK)
    for values, observed in (
        (Y[None, :], Y),
        (Y.astype("float32"), Y),
        (Y, masked),
    ):
        with pytest.raises(ValueError, match="^potential p holds the values of y"):
            PyMCSynthesizer(
                model_of(partial(weighted_potential, values, observed)),
                public_potentials=["p"],
            )
    other = model_of(partial(weighted_potential, np.exp(Y)))
    assert PyMCSynthesizer(other, public_potentials=["p"]).records == RECORDS
    # the open end of an interval is no number, and has a density
    ends = np.c_[[1.0, 2.0, -np.inf], [np.inf, 3.0, 0.0]]
    assert PyMCSynthesizer(model_of(partial(open_interval, ends))).records == 3

    def mixed():
        pm.Normal("y", pm.Normal("mu") + pm.Bernoulli("z", 0.5), observed=ONES)
        dist = {"dist": lambda mu, size: pm.Normal.dist(mu, size=size)}
        pm.CustomDist("x", pm.Normal("nu"), observed=ONES, **dist)
        pm.Poisson(
            "n", 3.0, observed=np.ma.masked_array(np.ones(5, int), np.arange(5) == 2)
        )
        # a name as PyMC gives it to the observed part of a masked response
        pm.Normal("y_observed", observed=ONES)

    assert PyMCSynthesizer(model_of(mixed)).responses == ("y", "x", "n", "y_observed")


def test_later_changes_of_the_users_data_have_no_effect():
    model = model_of(poisson)
    synthesizer, posterior = (
        PyMCSynthesizer(model),
        posterior_of([{"beta": np.ones(2)}]),
    )
    pm.set_data({"counts": COUNTS + 9, "x": X + 9.0}, model=model)
    with pytest.raises(TypeError, match="data"):
        pm.set_data({"x": X + 9.0}, model=synthesizer.model)
    expected = stats.poisson.logpmf(COUNTS, np.exp(1.0 + X))
    np.testing.assert_allclose(synthesizer.log_likelihood_at(posterior)[0, 0], expected)


def test_settings_reach_the_model_and_wrong_ones_are_refused():
    with pm.Model() as outer:
        mu = pm.Normal("mu", 2.0, 1.0, initval=5.0)
        with pm.Model("inner") as inner:
            pm.Normal("y", mu, observed=ONES)
        # a prior may hold a response, as long as there are no limits
        pm.Normal("average", outer["inner::y"].mean(), 1.0)
    synthesizer = ppm.PseudoPosteriorMechanism(
        outer, scale=0.5, warmup=7, chains=3
    ).model
    assert (synthesizer.responses, synthesizer.warmup, synthesizer.chains) == (
        ("inner::y",),
        7,
        3,
    )
    assert synthesizer.model.initial_point()["mu"] == 5.0
    with pytest.raises(
        ValueError, match="^model inner is part of another one, .* the outermost$"
    ):
        ppm.PseudoPosteriorMechanism(inner)
    with pytest.raises(
        TypeError, match=r"^warm_up: neither a setting of the mechanism .*warmup"
    ):
        ppm.PseudoPosteriorMechanism(outer, warm_up=7)
