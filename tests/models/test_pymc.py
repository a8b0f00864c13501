"""Any PyMC model, as written: its weighted copy against the user's own model, untouched."""

import sys
import warnings
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pymc as pm
import pytensor
import pytensor.sparse as ps
import pytensor.tensor as pt
import pytest
import xarray as xr
from pytensor.graph.op import Apply, Op
from pytensor.link.numba.dispatch import elemwise
from pytensor.tensor.blockwise import Blockwise
from scipy import special, stats
from scipy.integrate import trapezoid
from scipy.sparse import csr_matrix

import ppm
from ppm.chains import effective_draws

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
    # of each record two numbers, whose densities are multiplied
    mu, pairs = pm.Normal("mu", shape=RECORDS), np.exp(0.5 * PAIRS)
    pm.TruncatedNormal("y", mu[:, None], 1.0, lower=0.0, observed=pairs)


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


@pytest.fixture(scope="module", params=FAMILY)
def member(request):
    """The function that writes a model, the user's model, and ours."""
    model = model_of(request.param)
    return request.param, model, ppm.PyMCModel(model, warmup=5)


def by_definition(write, model):
    """Log-prior with potentials, and log-likelihoods of records, by the user's own model."""
    total, parts = pt.zeros(RECORDS), model.logp(vars=model.observed_RVs, sum=False)
    for variable, part in zip(model.observed_RVs, parts, strict=True):
        rows = np.nonzero(MASKS.get((write, variable.name), np.ones(RECORDS)))[0]
        total = pt.inc_subtensor(total[rows], part.sum(axis=tuple(range(1, part.ndim))))
    return model.logp(vars=[*model.free_RVs, *model.potentials]), total


def contents(model):
    """What a user could see of a model."""
    dicts = (model.named_vars, model.rvs_to_values, model.rvs_to_initial_values)
    lists = (model.free_RVs, model.observed_RVs, model.potentials)
    states = [
        x.get_value().bit_generator.state
        for x in pytensor.graph.ancestors(model.basic_RVs)
        if isinstance(x.type, pt.random.type.RandomType) and hasattr(x, "get_value")
    ]
    return [*map(dict, dicts)], [*map(list, lists)], states


def gradient(model, density):
    """The gradient of a log-density by the names of the parameters."""
    values = sorted(model.continuous_value_vars, key=lambda value: value.name)
    return pt.concatenate([part.ravel() for part in pytensor.grad(density, values)])


def test_the_density_has_the_weighted_terms_and_log_p_is_unweighted(member):
    write, model, ours = member
    prior, by_record = by_definition(write, model)
    weighted = prior + (WEIGHTS * by_record).sum()
    names = ours.parameters
    theta = model.replace_rvs_by_values([model[name] for name in names])
    evaluate = model.compile_fn(
        [prior, by_record, gradient(model, weighted), *theta], inputs=model.value_vars
    )
    ours._alpha.set_value(WEIGHTS)
    copy = ours._weighted
    found = copy.compile_fn(
        [copy.logp(), gradient(copy, copy.logp())], inputs=copy.value_vars
    )
    rng, read = np.random.default_rng(11), []
    for _ in range(2):
        start = model.initial_point(1)
        point = {k: v + 0.3 * rng.standard_normal(v.shape) for k, v in start.items()}
        log_prior, log_p, slope, *theta = evaluate(point)
        assert np.isfinite(log_p).all()
        density, own_slope = found(point)
        right = log_prior + (WEIGHTS * log_p).sum()
        np.testing.assert_allclose(density, right, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(own_slope, slope, rtol=1e-9, atol=1e-9)
        # terms left as they are, and weights of others or on the prior, would be seen
        wrong = [
            log_p.sum(),
            WEIGHTS[::-1] @ log_p,
            right - (1 - WEIGHTS[0]) * log_prior,
        ]
        assert np.abs(density - log_prior - wrong[:2]).min() > 1e-6
        assert np.abs(density - wrong[2]) > 1e-6
        np.testing.assert_allclose(ours._theta(point)[0], theta[0], rtol=1e-12)
        read.append((log_p, dict(zip(names, theta, strict=True))))
    both = {name: np.stack([theta[name] for _, theta in read]) for name in names}
    expected = np.stack([log_p for log_p, _ in read])
    np.testing.assert_allclose(ours.log_p(both), expected, rtol=1e-12, atol=1e-12)


def test_releases_are_predictive_draws_of_the_users_model(member):
    _, model, ours = member
    kept = [name for name in ours.parameters if not name.endswith("_unobserved")]
    values = pm.draw([model[name] for name in kept], random_seed=3)
    theta = dict(zip(kept, values, strict=True))
    before = contents(model)
    rng, imputed = np.random.default_rng(1), set(ours.parameters) - set(kept)
    # what a trace has imputed is not released
    given = theta | {name: np.full(model[name].shape.eval(), 1e3) for name in imputed}
    mine = [ours.predict(given, rng) for _ in range(300)]
    assert contents(model) == before
    if len(ours.responses) == 1:
        mine = [{ours.responses[0]: database} for database in mine]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The effect of Potentials")
        variables = {
            name: (["chain", "draw", *[f"{name}_{k}" for k in range(value.ndim)]], v)
            for name, value in theta.items()
            for v in [np.broadcast_to(value, (1, 300, *value.shape))]
        }
        theirs = pm.sample_posterior_predictive(
            xr.DataTree.from_dict({"posterior": xr.Dataset(variables)}),
            model=model,
            var_names=[*ours.responses],
            # a trace that lacks labels would have them drawn anew
            freeze_vars=kept,
            random_seed=5,
            progressbar=False,
        )["posterior_predictive"]
    for name in ours.responses:
        drawn = np.stack([database[name] for database in mine])
        expected = theirs[name].values[0]
        assert drawn.shape == expected.shape and drawn.dtype == expected.dtype
        assert not np.isnan(drawn).any() and (drawn[0] != drawn[1]).any()
        # p-values of the same distribution are above 1e-5 in each of at most 24 entries
        drawn, expected = drawn.reshape(300, -1), expected.reshape(300, -1)
        same = stats.ks_2samp(drawn, expected, axis=0, method="asymp")
        assert same.pvalue.min() > 1e-5


def test_a_fit_has_every_parameter_and_public_names_alone(member):
    _, model, ours = member
    before = contents(model)
    fit = ppm.fit(
        ours, ppm.ByRisk(), draws=3, random_seed=1, warmup=3, allow_disagreement=True
    )
    assert {*fit.theta} == {variable.name for variable in model.free_RVs}
    for name, values in fit.theta.items():
        assert values.shape == (6, *model[name].shape.eval())
    assert fit.sample_stats["diverging"].shape == (6,)
    released = fit.release(2, random_seed=1)
    if len(ours.responses) == 1:
        released = released.to_dataset(name=ours.responses[0])
    assert {*released.data_vars} == {*ours.responses}
    for name in ours.responses:
        dims = [*model.named_vars_to_dims.get(name, ())][1:]
        assert [*released[name].dims][:2] == ["release", "record"]
        assert [*released[name].dims][2:] == dims or not dims
    for dataset in (fit.posterior, released):
        # labels of records identify them
        assert not any(np.isin(IDS, x).any() for x in dataset.coords.values())
    assert contents(model) == before


def test_public_labels_go_along():
    ours = ppm.PyMCModel(model_of(hierarchical), warmup=3)
    fit = ppm.fit(ours, ppm.Unweighted(), draws=2, random_seed=1)
    assert [*fit.posterior["effect"].coords["region"].values] == ["N", "S", "W"]
    ours = ppm.PyMCModel(model_of(multivariate), warmup=3)
    settings = {"random_seed": 1, "allow_disagreement": True}
    fit = ppm.fit(ours, ppm.Unweighted(), draws=2, **settings)
    assert [*fit.release(1).coords["item"].values] == ["food", "rent"]


def test_a_product_of_matrices_is_numba_s_which_compiles_sooner(monkeypatch):
    assert ppm.PyMCModel.__module__ in sys.modules  # imported with the class
    monkeypatch.setattr(elemwise, "_gemm", None)
    left, right = pt.matrix("left"), pt.matrix("right")
    product = pytensor.function([left, right], left.T @ right, mode="NUMBA")
    values = np.arange(12.0).reshape(4, 3), np.arange(8.0).reshape(4, 2)
    np.testing.assert_allclose(product(*values), values[0].T @ values[1])


# ---- exactness --------------------------------------------------------------------------------


def within_error(fit, name, mean, variance):
    """Whether moments of draws are the closed form's, within Monte Carlo error."""
    draws = fit.posterior[name].values
    for values, expected in (draws, mean), ((draws - mean) ** 2, variance):
        error = values.std() / np.sqrt(effective_draws(values))
        assert abs(values.mean() - expected) < 4.5 * error


def test_a_conjugate_posterior_is_the_closed_form():
    terms = ppm.Terms(WEIGHTS)
    model = model_of(lambda: pm.Normal("y", pm.Normal("mu", 0.5, 2.0), 0.7, observed=Y))
    fit = ppm.fit(ppm.PyMCModel(model), terms, draws=500, random_seed=1, warmup=200)
    precision = 1 / 4 + WEIGHTS.sum() / 0.49
    within_error(fit, "mu", (0.5 / 4 + WEIGHTS @ Y / 0.49) / precision, 1 / precision)

    def counts():
        pm.Poisson("y", pm.Gamma("mu", 2.0, 0.5), observed=COUNTS)

    model = ppm.PyMCModel(model_of(counts))
    fit = ppm.fit(model, terms, draws=500, random_seed=2, warmup=200)
    exact = ppm.GammaPoisson(COUNTS, shape=2.0, rate=0.5).posterior(WEIGHTS)
    within_error(fit, "mu", exact.mean(), exact.var())
    assert fit.chains_agree


def test_an_impossible_record_of_weight_0_adds_nothing():
    y = np.array([0.5, 1.0, 2.0, -1.0, 0.3, 0.8])

    def write(y):
        pm.HalfNormal("y", pm.HalfNormal("s", 2.0), observed=y)

    model, rest = (ppm.PyMCModel(model_of(write, values)) for values in (y, y[y > 0]))
    with pytest.raises(ValueError, match="^record 3 is impossible at the model's"):
        ppm.fit(model, ppm.Unweighted(), draws=5)
    weights = np.where(y > 0, 0.7, 0.0)
    fit = ppm.fit(model, ppm.Terms(weights), draws=40, random_seed=1, warmup=40)
    assert fit.record_bounds[3] == 0 and np.isfinite(fit.record_bounds).all()
    # the same density, so the same draws
    same = ppm.fit(rest, ppm.Terms(weights[y > 0]), draws=40, random_seed=1, warmup=40)
    np.testing.assert_allclose(fit.theta["s"], same.theta["s"], rtol=1e-6)


def test_a_draw_has_diverged_where_any_of_its_steps_has():
    # as with a discrete parameter, whose own step has no such number
    stats = [
        [{}, {"diverging": True}],
        [{"diverging": False}, {"diverging": False}],
        [{"diverging": True}, {}],
        [{}, {}],
        [{"diverging": False}, {"diverging": True}],
    ]
    numbers = iter(range(5))
    step = SimpleNamespace(
        setup_chain=lambda *_: None,
        stop_tuning=lambda: None,
        step=lambda point: (point, stats[next(numbers)]),
    )
    model = ppm.PyMCModel(model_of(lambda: pm.Normal("y", pm.Normal("mu"), observed=Y)))
    vars(model)["_step"] = step, None
    bar = SimpleNamespace(update=lambda: None)
    kept = model._chain(4, 1, np.random.default_rng(1), {}, bar)
    assert [diverged for _, diverged in kept] == [False, True, False, True]


class Scalar(Op):
    """Log-density of one value, whose gradient is not known."""

    def make_node(self, value, mean):
        return Apply(self, [pt.as_tensor(value), pt.as_tensor(mean)], [pt.dscalar()])

    def perform(self, node, given, outputs):
        outputs[0][0] = np.asarray(-((given[0] - given[1]) ** 2))


black_box = Blockwise(Scalar(), signature="(),()->()")
FEW = np.array([-1.0, 0.0, 2.0, 3.0])


def drawn(*parameters, rng=None, size=None):
    return rng.normal(size=size)


def without_gradient(choice):
    mean = pm.Normal("mean") + (0.5 * pm.Bernoulli("choice", 0.5) if choice else 0.0)
    pm.CustomDist("y", mean, logp=black_box, random=drawn, observed=FEW)


@pytest.mark.parametrize("choice", [False, True])
def test_a_density_without_a_gradient_has_the_right_posterior(choice):
    weights = np.array([1.5, 1.0, 0.2, 0.1])
    model = ppm.PyMCModel(model_of(partial(without_gradient, choice)), warmup=100)
    fit = ppm.fit(model, ppm.Terms(weights), draws=1500, random_seed=8)
    # no step method that could diverge
    assert not fit.sample_stats["diverging"].any()
    mean, draws = np.linspace(-4.0, 4.0, 801), fit.posterior["mean"].values

    def expected(weights):
        shifts = [0.0, 0.5] if choice else [0.0]
        terms = [
            (-weights * (FEW - mean[:, None] - shift) ** 2).sum(1) for shift in shifts
        ]
        density = np.exp(stats.norm.logpdf(mean) + special.logsumexp(terms, axis=0))
        return trapezoid(density * mean) / trapezoid(density)

    error = draws.std() / np.sqrt(effective_draws(draws))
    assert abs(draws.mean() - expected(weights)) < 4.0 * error
    assert abs(expected(weights) - expected(weights[::-1])) > 8.0 * error


def test_an_impossible_start_is_seen_where_nuts_moves_nothing():
    def log_density(value, mean):
        return pt.switch(value > 5.0, -np.inf, black_box(value, mean))

    write = partial(own, log_density, random=drawn, observed=np.r_[1.0, 9.0])
    model = ppm.PyMCModel(model_of(write), warmup=5)
    with pytest.raises(ValueError, match="^record 1 is impossible at the model's"):
        ppm.fit(model, ppm.Unweighted(), draws=5)
    assert ppm.fit(model, ppm.Terms([1.0, 0.0]), draws=5, random_seed=1)


# ---- how it is sampled ------------------------------------------------------------------------

VISITS = np.array([3, 5, 4, 6, 20, 2, 3, 7])


def visits():
    mu = pm.Gamma("mu", 2.0, 0.5)
    pm.Deterministic("twice", 2.0 * mu)
    pm.Poisson("y", mu, observed=VISITS)


def test_other_terms_and_releases_need_no_compilation(monkeypatch):
    model = ppm.PyMCModel(model_of(visits), warmup=20)
    settings = {"draws": 20, "random_seed": 5, "allow_disagreement": True}
    first = ppm.fit(model, ppm.ByRisk(), **settings)
    released = first.release(3, random_seed=1)
    monkeypatch.setattr("pymc.pytensorf.pytensor.function", None)
    again = ppm.fit(model, ppm.ByRisk(), **settings)
    # what the step methods learned is forgotten
    assert np.array_equal(first.theta["mu"], again.theta["mu"])
    assert np.array_equal(released, again.release(3, random_seed=1))
    other = ppm.fit(model, ppm.ByRisk(0.5), **settings | {"random_seed": 6})
    assert not np.isin(other.theta["mu"], again.theta["mu"]).any()


def test_chains_start_apart_and_differ():
    model = ppm.PyMCModel(model_of(visits), chains=4, warmup=1)
    fit = ppm.fit(model, ppm.Unweighted(), draws=1, random_seed=1, warmup=1)
    assert np.unique(fit.theta["mu"]).size == 4
    points = [model._moved(np.random.default_rng(seed)) for seed in range(50)]
    starts = np.log([model._theta(point)[0] for point in points])
    # uniform on (-1, 1) around the initial value, on the scale of NUTS
    assert 1.7 < np.ptp(starts) < 2.0
    fit = ppm.fit(model, ppm.Unweighted(), draws=5, random_seed=1, warmup=20)
    chains = fit.theta["mu"].reshape(4, 5)
    # with the same random numbers they would agree whatever they do
    assert np.unique(chains).size > 15


def test_a_chain_starts_where_it_is_told():
    model = ppm.PyMCModel(model_of(marginal_mixture), chains=3)
    rng = np.random.default_rng(2)
    start = {
        "share": rng.dirichlet(np.ones(2), 3),
        "mu": rng.normal(size=(3, 2)),
    }
    for theta in model._typed("start", start):
        for same, value in zip(model._theta(model._point(theta)), theta, strict=True):
            np.testing.assert_allclose(same, value, rtol=1e-12)
    fit = ppm.fit(
        model, ppm.Unweighted(), draws=2, warmup=1, start=start, allow_disagreement=True
    )
    assert fit.ends["mu"].shape == (3, 2)
    with pytest.raises(ValueError, match="^start must hold θ for each of 3 chains$"):
        model.draw(
            ppm.Terms(np.ones(12)), 2, rng, start={k: v[:2] for k, v in start.items()}
        )
    with pytest.raises(ValueError, match="^start must hold 'mu'$"):
        model.draw(ppm.Terms(np.ones(12)), 2, rng, start={"share": start["share"]})


def test_what_a_release_is_drawn_from_has_full_entropy(monkeypatch):
    given = []
    monkeypatch.setattr(
        "ppm.models.pymc.reseed_rngs", lambda states, seed: given.append(seed)
    )
    model = ppm.PyMCModel(model_of(visits))
    rng = np.random.default_rng(3)
    for _ in range(5):
        model.predict({"mu": 1.0}, rng)
    # numbers of 31 or 64 bits would not come near
    assert all(2**100 < number < 2**128 for number in given)


def test_later_changes_to_the_model_have_no_effect():
    model = model_of(poisson)
    ours, theta = ppm.PyMCModel(model), {"beta": np.ones((1, 2))}
    pm.set_data({"counts": COUNTS + 9, "x": X + 9.0}, model=model)
    expected = stats.poisson.logpmf(COUNTS, np.exp(1.0 + X))
    np.testing.assert_allclose(ours.log_p(theta)[0], expected)


def test_a_model_can_be_given_inside_of_its_own_context():
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu", initval=5.0), observed=ONES)
        ours = ppm.PyMCModel(model, warmup=3, chains=3)
        settings = {"random_seed": 1, "allow_disagreement": True}
        fit = ppm.fit(ours, ppm.Unweighted(), draws=2, **settings)
        assert len(fit.theta["mu"]) == 6 and fit.release(1).sizes["record"] == 5
    assert [*model.named_vars] == ["mu", "y"] and ours._initial == {"mu": 5.0}
    assert repr(ours) == ("PyMCModel(records=5, chains=3, warmup=3, target_accept=0.9)")


def test_functions_of_many_kinds_read_exact_logarithms():
    # probabilities of next to 0 and 1
    model = model_of(
        lambda: pm.Bernoulli("y", logit_p=X * pm.Normal("mu"), observed=COUNTS % 2)
    )
    expected = special.log_expit(np.where(COUNTS % 2, 900.0 * X, -900.0 * X))
    for mode in ("FAST_COMPILE", "FAST_RUN"):
        with pytensor.config.change_flags(mode=mode):
            log_p = ppm.PyMCModel(model).log_p({"mu": np.array([900.0])})
        np.testing.assert_allclose(log_p[0], expected, rtol=1e-12)


# ---- what is refused --------------------------------------------------------------------------


def own(log_density, mu=None, **settings):
    settings = {"observed": ONES} | settings
    pm.CustomDist(
        "y", pm.Normal("mu") if mu is None else mu, logp=log_density, **settings
    )


def one_normal(mu=0.0, **settings):
    pm.Normal("y", pm.Normal("mu") + mu, **({"observed": ONES} | settings))


def row_by_row(observed, distribution=pm.Normal):
    """A response with a parameter for each of five rows."""
    distribution("y", pm.Normal("mu") * X[:5], observed=observed)


def weighted_potential(values, observed=Y):
    """Survey weights as they are often written: by a potential with the response's values."""
    mu = pm.Normal("mu")
    y = None if observed is None else pm.Normal("y", mu, observed=observed)
    of = y if values is None else values
    pm.Potential("p", (WEIGHTS * pm.logp(pm.Normal.dist(mu), of)).sum())


def of_data():
    """A potential that takes the response's values from where the response takes them."""
    values = pm.Data("values", np.ones(5, int))
    mu = pm.Normal("mu")
    pm.Normal("y", mu, observed=values)
    pm.Potential("p", values.sum() * mu)


def partly_missing_rows():
    y = np.ma.masked_array(np.ones((5, 2)), np.arange(10).reshape(5, 2) == 2)
    pm.MvNormal("y", pm.Normal("mu", shape=2), np.eye(2), observed=y)


def sparse_with_nan():
    design = csr_matrix([[1.0, 0.0], [0.0, 2.0], [0.0, np.nan]])
    mu = ps.structured_dot(ps.as_sparse_variable(design), pm.Normal("b", shape=(2, 1)))
    pm.Normal("y", mu[:, 0], observed=ONES[:3])


def computed_start():
    data = pm.Data("data", Y)
    pm.Normal("y", pm.Normal("mu", initval=data.mean()), observed=data)


def squares(name, mu, observed):
    own(lambda value, mean: -((value - mean) ** 2), mu, random=drawn, observed=observed)


SURVEY = r"survey weights are ppm.Given\(weights\)$"
TOGETHER = (
    r"^y has one density for several rows: its shape is \(5,.*of its density \(.*\);"
)
MINIBATCH = "^y is a minibatch, has total_size, or is a shared variable"
REFUSED = [
    (
        lambda: pm.Potential("p", -(pm.Normal("mu") ** 2)),
        f"^model has no observed variable: give .*{SURVEY}",
    ),
    (partial(weighted_potential, Y, None), "^model has no observed variable: "),
    (partial(weighted_potential, None), f"^potential p depends on a resp.*{SURVEY}"),
    (partial(weighted_potential, Y), "^potential p depends on a response or holds"),
    (partial(weighted_potential, np.exp(Y)), "^potential p depends on a response"),
    (of_data, "^potential p depends on a response"),
    (
        lambda: pm.GaussianRandomWalk(
            "y", init_dist=pm.Normal.dist(), sigma=pm.HalfNormal("s"), observed=ONES
        ),
        TOGETHER,
    ),
    (lambda: pm.MvNormal("y", np.zeros(5), np.eye(5), observed=ONES), TOGETHER),
    (partial(own, lambda value, mu: (mu - value)[:1], random=drawn), TOGETHER),
    # a density of every record with every other one's parameters
    (partial(row_by_row, ONES[:, None], squares), TOGETHER),
    (partial(row_by_row, ONES[:, None]), "^y has one density for sev|^PyMC cannot"),
    (
        lambda: (one_normal(), pm.Normal("z", observed=np.ones(7))),
        "^responses 'y', 'z' have different lengths",
    ),
    (partial(one_normal, observed=3.0), "^y must be observed as an array"),
    (partial(one_normal, total_size=50), MINIBATCH),
    (
        lambda: one_normal(
            observed=pm.Minibatch(np.ones(50), batch_size=5), total_size=50
        ),
        MINIBATCH,
    ),
    (lambda: one_normal(observed=pytensor.shared(ONES)), MINIBATCH),
    (partly_missing_rows, "^y has missing values that PyMC cannot separate: leave"),
    (
        lambda: pm.Poisson(
            "y", pt.exp(pm.Normal("b") * np.r_[0, 0, 0, np.nan, 0]), observed=ONES
        ),
        r"^a predictor holds NaN \(wrong: 1 of 5, the first at position 3\): correct",
    ),
    (sparse_with_nan, "^a predictor holds NaN"),
    (computed_start, "^the initval of mu is computed by the model"),
    (
        lambda: pm.Normal("y", pm.Normal("mu", shape=3)[np.arange(5)], observed=ONES),
        r"^PyMC cannot compute the density of y at the initial values \(IndexError\)",
    ),
]


def of_cells(labels, observed=(), **mu):
    """A mean for each cell, and what the cells and the columns of a response are called."""

    def write():
        model = pm.modelcontext(None)
        model.add_coords({"cell": labels, "more": range(13), "release": ["a", "b"]})
        means = pm.Normal("mu", dims="cell", **mu)
        pm.Normal("y", means[THIRD][:, None], observed=PAIRS, dims=observed or None)

    return write


TUPLES = [("N", "1"), ("N", "2"), ("S", "1")]
AGREE = "along it; they must agree$"
NAMED_WRONG = [
    (of_cells("abc", ("person", "item")), ""),
    (of_cells(pd.interval_range(0, 3)), ""),
    (of_cells("abcd", shape=3), f"^dims of mu: 'cell' has 4 .* the array 3 {AGREE}"),
    (of_cells("abc", ("more", "item")), f"^dims of y: 'more' has 13 .* 12 {AGREE}"),
    (of_cells("abc", ("person", "region")), f"^dims of y: 'region' has 3 .* 2 {AGREE}"),
    (of_cells(TUPLES), "^coords of 'cell' must have one text or number"),
    (of_cells([*map(list, TUPLES)]), "^coords of 'cell' must have one text or"),
    (of_cells(pd.MultiIndex.from_tuples(TUPLES)), "^coords of 'cell' must have"),
    (of_cells("abc", ("person", "release")), "^dims of the responses must not be call"),
]


@pytest.mark.parametrize(("write", "message"), NAMED_WRONG)
def test_dims_and_coords_that_disagree_are_told_before_a_fit(write, message):
    if not message:
        model = ppm.PyMCModel(model_of(write), chains=1, warmup=2)
        fit = ppm.fit(model, ppm.Unweighted(), draws=2, allow_disagreement=True)
        assert fit.posterior.sizes["cell"] == 3
        assert fit.release(2).dims[:2] == ("release", "record")
        return
    with pytest.raises(ValueError, match=message) as error:
        ppm.PyMCModel(model_of(write))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("write", "message"), REFUSED)
def test_models_without_a_term_for_each_record_are_refused(write, message):
    with pytest.raises(ValueError, match=message) as error:
        ppm.PyMCModel(model_of(write))
    assert "\n" not in str(error.value)
    assert error.value.__context__ is None or error.value.__suppress_context__


def test_other_potentials_are_part_of_the_prior():
    def write():
        beta = pm.Normal("beta", shape=3)
        pm.Potential("sum", -50.0 * pt.sum(beta * np.array([1.0, 2.0, 3.0])) ** 2)
        pm.Normal("y", beta[THIRD], observed=Y)

    model = ppm.PyMCModel(model_of(write), warmup=100)
    fit = ppm.fit(model, ppm.Unweighted(), draws=50, random_seed=1)
    # without the potential its standard deviation is above 1, with it at most 0.1
    assert np.std(fit.theta["beta"] @ [1.0, 2.0, 3.0]) < 0.2


def test_no_record_is_in_a_message():
    secret = 123456.789

    def write():
        pm.Normal("y", pm.Normal("mu"), pm.Normal("s", 1.0), observed=[secret, 1.0])

    model = ppm.PyMCModel(model_of(write), warmup=3)

    def narrow():
        y = pm.Normal("y", pm.Normal("mu"), 1e-160, observed=[secret, 1.0])
        assert y is not None

    calls = [
        lambda: model.predict({"mu": 0.0, "s": -1.0}, np.random.default_rng()),
        lambda: model.log_p({"mu": np.zeros((1, 3)), "s": np.ones((1, 4))}),
        lambda: model.log_p({"mu": np.zeros(1)}),
        lambda: ppm.fit(ppm.PyMCModel(model_of(narrow)), ppm.Unweighted(), draws=3),
    ]
    for call in calls:
        with pytest.raises(ValueError) as error:
            call()
        text = str(error.value)
        assert "\n" not in text and "123456" not in text and "1.2345" not in text
        assert error.value.__context__ is None or error.value.__suppress_context__


def test_limits_need_candidates_of_a_built_model(monkeypatch):
    model, limits = ppm.PyMCModel(model_of(visits)), ppm.Limits(-3.0, -1.0)
    for rule in ppm.Limited(limits), ppm.Capped(1.0):
        with pytest.raises(TypeError, match="Candidates"):
            ppm.fit(model, rule)
    with pytest.raises(TypeError, match="^PyMCModel takes no limits"):
        ppm.fit(model, ppm.Terms(np.ones(8), limits))
    candidates = ppm.Candidates(model, {"mu": np.linspace(1.0, 9.0, 5)})
    monkeypatch.setattr(ppm.Candidates, "draw", None)
    for rule in ppm.Limited(limits), ppm.Capped(1.0):
        with pytest.raises(
            ValueError, match="a PyMC model must be .*from_records"
        ) as e:
            ppm.fit(candidates, rule)
        assert "\n" not in str(e.value)


def test_candidates_take_parameters_of_any_type():
    model = ppm.PyMCModel(model_of(partial(without_gradient, True)))
    candidates = ppm.Candidates(model, {"mean": [0.0, 1.0], "choice": [0, 1]})
    fit = ppm.fit(candidates, ppm.Unweighted(), draws=4, random_seed=1)
    assert fit.release(2).shape == (2, 4)


@pytest.mark.parametrize(
    ("settings", "kind", "message"),
    [
        ({"model": ONES}, TypeError, "^model must be a pymc.Model; got ndarray"),
        ({"chains": 0}, ValueError, "^chains must be"),
        ({"warmup": -1}, ValueError, "^warmup must be"),
        ({"target_accept": 1.0}, ValueError, "^target_accept must be"),
    ],
)
def test_wrong_settings_are_refused(settings, kind, message):
    with pytest.raises(kind, match=message):
        ppm.PyMCModel(**{"model": model_of(visits)} | settings)
