"""Any PyMC model as a synthesizer: the rewritten model against the user's own, untouched."""

import warnings

import arviz as az
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
import xarray as xr
from pytensor.compile.ops import wrap_py
from scipy import stats

import ppm
from ppm.synthesizers import pymc_rewriting
from ppm.synthesizers.pymc_model import PyMCSynthesizer

RECORDS = 12
WEIGHTS = np.random.default_rng(4).uniform(0.1, 1.0, RECORDS)
WEIGHTS[[2, 5, 7]] = 0.0, 3.0, 1.0

pytestmark = pytest.mark.usefixtures("no_compiler")


@pytest.fixture
def quick():
    """Functions run by plain Python, which needs no compilation."""
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        yield


# ---- a family of models -----------------------------------------------------------------------


def _data():
    rng = np.random.default_rng(7)
    return rng, rng.standard_normal(RECORDS), np.arange(RECORDS) % 3


def normal():
    rng, _, _ = _data()
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 2.0)
        sigma = pm.HalfNormal("sigma", 1.0)
        pm.Normal("y", mu, sigma, observed=rng.normal(1.0, 0.7, RECORDS))
    return model


def poisson():
    rng, x, _ = _data()
    with pm.Model(coords={"person": np.arange(RECORDS)}) as model:
        x = pm.Data("x", x, dims="person")
        y = pm.Data("counts", rng.poisson(3.0, RECORDS), dims="person")
        beta = pm.Normal("beta", shape=2)
        rate = pm.Deterministic("rate", pt.exp(beta[0] + beta[1] * x), dims="person")
        pm.Poisson("y", rate, observed=y, dims="person")
    return model


def negative_binomial():
    rng, x, _ = _data()
    with pm.Model() as model:
        beta = pm.Normal("beta")
        alpha = pm.Exponential("alpha", 1.0)
        y = rng.negative_binomial(2, 0.4, RECORDS)
        pm.NegativeBinomial("y", mu=pt.exp(beta * x), alpha=alpha, observed=y)
    return model


def student_t_regression():
    rng, x, _ = _data()
    X = np.column_stack([np.ones(RECORDS), x])
    with pm.Model() as model:
        beta = pm.Normal("beta", shape=2, initval=[0.3, -0.2])
        sigma = pm.HalfCauchy("sigma", 1.0)
        nu = pm.Gamma("nu", 2.0, 0.1)
        pm.StudentT("y", nu=nu, mu=X @ beta, sigma=sigma, observed=rng.standard_t(3, RECORDS))
    return model


def logistic():
    rng, x, _ = _data()
    with pm.Model() as model:
        beta = pm.Normal("beta", shape=2)
        yes = (rng.random(RECORDS) < 0.5).astype(int)
        pm.Bernoulli("yes", logit_p=beta[0] + beta[1] * x, observed=yes)
        pm.Potential("soft_constraint", -pt.sum(beta) ** 2)
    return model


def of_family(model):
    """Its synthesizer, with the user's word for all potentials."""
    return PyMCSynthesizer(model, public_potentials=[v.name for v in model.potentials])


def ordered_logistic():
    rng, x, _ = _data()
    with pm.Model() as model:
        beta = pm.Normal("beta")
        cuts = pm.Normal(
            "cuts", shape=3, transform=pm.distributions.transforms.ordered,
            initval=[-1.0, 0.0, 1.0], default_transform=None,
        )
        grade = rng.integers(0, 4, RECORDS)
        pm.OrderedLogistic("grade", eta=beta * x, cutpoints=cuts, observed=grade)
    return model


def hierarchical():
    rng, x, region = _data()
    coords = {"region": ["north", "south", "west"]}
    with pm.Model(coords=coords) as model:
        mu, tau = pm.Normal("mu"), pm.HalfNormal("tau")
        effect = pm.Normal("effect", mu, tau, dims="region")
        sigma = pm.HalfNormal("sigma")
        y = rng.normal(2.0, 1.0, RECORDS)
        pm.Normal("spending", effect[region], sigma, observed=y)
    return model


def marginal_mixture():
    rng, _, _ = _data()
    with pm.Model() as model:
        share = pm.Dirichlet("share", np.ones(2))
        mu = pm.Normal("mu", [-1.0, 1.0], 1.0)
        pm.NormalMixture("y", share, mu, [0.5, 0.8], observed=rng.normal(0.0, 2.0, RECORDS))
    return model


def two_responses():
    rng, x, _ = _data()
    with pm.Model() as model:
        beta, sigma = pm.Normal("beta"), pm.HalfNormal("sigma")
        income = pm.Normal("income", beta * x, sigma, observed=rng.normal(size=RECORDS))
        # the second response depends on the first
        pm.Poisson("children", pt.exp(0.3 * income), observed=rng.poisson(1.0, RECORDS))
    return model


def multivariate():
    rng, x, _ = _data()
    with pm.Model(coords={"person": np.arange(RECORDS), "item": ["food", "rent"]}) as model:
        beta = pm.Normal("beta", shape=2)
        chol, *_ = pm.LKJCholeskyCov("chol", eta=2.0, n=2, sd_dist=pm.HalfNormal.dist(size=2))
        mu = x[:, None] * beta
        y = rng.normal(size=(RECORDS, 2))
        pm.MvNormal("y", mu, chol=chol, observed=y, dims=("person", "item"))
    return model


def matrix():
    rng, _, _ = _data()
    with pm.Model() as model:
        mu = pm.Normal("mu", shape=3)
        pm.Normal("y", mu, 1.0, observed=rng.normal(size=(RECORDS, 3)))
    return model


def record_level_parameters():
    rng, _, _ = _data()
    with pm.Model() as model:
        mu = pm.Normal("mu", shape=RECORDS)
        pm.TruncatedNormal("y", mu, 1.0, lower=0.0, observed=rng.exponential(size=RECORDS))
    return model


def _masked(make):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.exceptions.ImputationWarning)
        return make()


def missing_values():
    rng, x, _ = _data()
    y = np.ma.masked_array(rng.normal(size=RECORDS), np.arange(RECORDS) % 5 == 1)
    z = np.ma.masked_array(rng.normal(size=(RECORDS, 2)), rng.random((RECORDS, 2)) < 0.3)

    def make():
        with pm.Model() as model:
            beta = pm.Normal("beta")
            pm.Normal("y", beta * x, 1.0, observed=y)
            pm.Normal("z", beta, 2.0, observed=z)
        return model

    return _masked(make)


def missing_rows():
    rng, _, _ = _data()
    mask = np.zeros((RECORDS, 2), dtype=bool)
    mask[[3, 9]] = True
    y = np.ma.masked_array(rng.normal(size=(RECORDS, 2)), mask)

    def make():
        with pm.Model() as model:
            mu = pm.Normal("mu", shape=2)
            pm.MvNormal("y", mu, np.eye(2), observed=y)
        return model

    return _masked(make)


FAMILY = [
    normal, poisson, negative_binomial, student_t_regression, logistic, ordered_logistic,
    hierarchical, marginal_mixture, two_responses, multivariate, matrix, record_level_parameters,
    missing_values, missing_rows,
]
# which record every observed entry belongs to, where that is not plain
_Y_OBSERVED = np.flatnonzero(np.arange(RECORDS) % 5 != 1)
_ROWS = {
    "missing_rows": {"y_observed": np.setdiff1d(np.arange(RECORDS), [3, 9])},
    "missing_values": {"y_observed": _Y_OBSERVED},
}


def _rows(make, model, name, size):
    if make is missing_values and name == "z_observed":
        rng = np.random.default_rng(7)
        rng.standard_normal(RECORDS)
        rng.normal(size=RECORDS), rng.normal(size=(RECORDS, 2))
        return np.nonzero(rng.random((RECORDS, 2)) >= 0.3)[0]
    return _ROWS.get(make.__name__, {}).get(name, np.arange(size))


def pieces(make):
    """Function of a point: prior with potentials, and by-record log-likelihood, one by one."""
    model = make()
    prior = model.logp(vars=[*model.free_RVs, *model.potentials])
    terms = model.logp(vars=model.observed_RVs, sum=False)
    function = model.compile_fn([prior, *terms], inputs=model.value_vars, on_unused_input="ignore")

    def evaluate(point):
        prior, *parts = function(point)
        by_record = np.zeros(RECORDS)
        for variable, part in zip(model.observed_RVs, parts, strict=True):
            by_entry = part.reshape(len(part), -1).sum(axis=1)
            np.add.at(by_record, _rows(make, model, variable.name, len(part)), by_entry)
        return float(prior), by_record

    return model, evaluate


def points(model, number=3):
    rng = np.random.default_rng(11)
    start = model.initial_point()
    for _ in range(number):
        yield {k: v + 0.3 * rng.standard_normal(v.shape) for k, v in start.items()}


def log_density(synthesizer):
    """Function of a point and weights, compiled once for all weights."""
    function = synthesizer.model.compile_logp()

    def evaluate(point, weights):
        pm.set_data({synthesizer.weights_name: weights}, model=synthesizer.model)
        return float(function(point))

    return evaluate


@pytest.mark.parametrize("make", FAMILY)
def test_rewritten_log_density(quick, make):
    model, by_pieces = pieces(make)
    untouched = model.compile_logp()
    synthesizer = of_family(model)
    assert synthesizer.records == RECORDS
    rewritten = log_density(synthesizer)
    for point in points(model):
        prior, by_record = by_pieces(point)
        assert np.isfinite(by_record).all()
        tolerance = {"rtol": 1e-10, "atol": 1e-10}
        expected = prior + WEIGHTS @ by_record
        np.testing.assert_allclose(rewritten(point, WEIGHTS), expected, **tolerance)
        ones, zeros = np.ones(RECORDS), np.zeros(RECORDS)
        np.testing.assert_allclose(rewritten(point, ones), untouched(point), **tolerance)
        np.testing.assert_allclose(rewritten(point, zeros), prior, **tolerance)
        # the comparison would see weights on the prior too, and weights of other records
        broken = WEIGHTS.mean() * prior + WEIGHTS @ by_record
        assert abs(broken - expected) > 1e-6
        assert abs(prior + WEIGHTS[::-1] @ by_record - expected) > 1e-6


@pytest.mark.parametrize("make", FAMILY)
def test_by_record_log_likelihood(quick, make):
    model, by_pieces = pieces(make)
    synthesizer = of_family(model)
    chosen = list(points(model, 4))
    # the posterior holds parameters as the user wrote them
    to_parameters = model.compile_fn(
        model.unobserved_value_vars, inputs=model.value_vars, on_unused_input="ignore"
    )
    names = [v.name for v in model.unobserved_value_vars]
    draws = [dict(zip(names, to_parameters(point), strict=True)) for point in chosen]
    posterior = xr.Dataset(
        {
            v.name: (
                ("chain", "draw", *(f"{v.name}_{i}" for i in range(v.ndim))),
                np.stack([d[v.name] for d in draws]).reshape(2, 2, *draws[0][v.name].shape),
            )
            for v in model.free_RVs
        }
    )
    log_lik = synthesizer._log_likelihood(posterior)
    assert log_lik.dims == ("chain", "draw", "record")
    expected = np.stack([by_pieces(point)[1] for point in chosen]).reshape(2, 2, RECORDS)
    np.testing.assert_allclose(log_lik, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("make", FAMILY)
def test_predictive_draws_are_the_originals(quick, make):
    model = make()
    synthesizer = of_family(model)
    pm.set_data({synthesizer.weights_name: WEIGHTS}, model=synthesizer.model)
    draws = {v.name: pm.draw(v, random_seed=3)[None, None] for v in model.free_RVs}
    posterior = pm.backends.arviz.dict_to_dataset(draws, sample_dims=["chain", "draw"])
    settings = {
        "var_names": list(synthesizer.responses), "freeze_vars": list(draws), "progressbar": False
    }
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The effect of Potentials")
        first, same, other = (
            pm.sample_posterior_predictive(
                xr.DataTree.from_dict({"posterior": posterior}), model=m, random_seed=seed,
                **settings,
            )["posterior_predictive"]
            for m, seed in ((model, 5), (synthesizer.model, 5), (synthesizer.model, 6))
        )
    for name in synthesizer.responses:
        np.testing.assert_array_equal(first[name], same[name])
        assert first[name].dims == same[name].dims
        assert not np.array_equal(first[name], other[name])


@pytest.mark.parametrize("make", FAMILY)
def test_the_users_model_is_left_alone(quick, make):
    model = make()
    # keys of the table of initial values, and their values
    before = (
        list(model.named_vars.items()), list(model.observed_RVs), list(model.rvs_to_values.items()),
        list(model.rvs_to_initial_values.items()), dict(model.coords),
    )
    synthesizer = of_family(model)
    pm.set_data({synthesizer.weights_name: WEIGHTS}, model=synthesizer.model)
    after = (
        list(model.named_vars.items()), list(model.observed_RVs), list(model.rvs_to_values.items()),
        list(model.rvs_to_initial_values.items()), dict(model.coords),
    )
    for one, other in zip(before, after, strict=True):
        for a, b in zip(one, other, strict=True):
            assert a is b or all(x is y for x, y in zip(a, b, strict=True))
    copy = synthesizer.model
    assert set(copy.named_vars) == set(model.named_vars) | {"record_weights", "record_limits"}
    assert dict(copy.coords) == dict(model.coords)
    assert copy.named_vars_to_dims == model.named_vars_to_dims
    first, second = model.initial_point(random_seed=1), copy.initial_point(random_seed=1)
    for name in first:
        np.testing.assert_array_equal(first[name], second[name])


# ---- impossible records of weight 0 ------------------------------------------------------------

_IMPOSSIBLE = np.arange(RECORDS) == 2


def far_away():
    _, x, _ = _data()
    with pm.Model() as model:
        mu, sigma = pm.Normal("mu"), pm.HalfNormal("sigma")
        pm.Normal("y", mu, sigma, observed=np.where(_IMPOSSIBLE, 1e200, x))
    return model


def outside_the_support():
    _, x, _ = _data()
    with pm.Model() as model:
        rate = pm.HalfNormal("rate")
        pm.Gamma("y", 2.0, rate, observed=np.where(_IMPOSSIBLE, -1.0, np.abs(x)))
    return model


def overflowing_rate():
    _, x, _ = _data()
    with pm.Model() as model:
        beta = pm.Normal("beta", 1.0, 1.0)
        x = np.where(_IMPOSSIBLE, 1e5, x)
        pm.Poisson("y", pt.exp(beta * x), observed=np.arange(RECORDS))
    return model


def far_mixture():
    _, x, _ = _data()
    with pm.Model() as model:
        mu, sigma = pm.Normal("mu", [-1.0, 1.0], 1.0), pm.HalfNormal("sigma", shape=2)
        y = np.where(_IMPOSSIBLE, 1e200, x)
        pm.NormalMixture("y", [0.5, 0.5], mu, sigma, observed=y)
    return model


def far_rows():
    _, x, _ = _data()
    with pm.Model() as model:
        scale = pm.HalfNormal("scale", 1.0)
        y = np.where(_IMPOSSIBLE, 1e200, x)[:, None] * np.ones(2)
        pm.MvNormal("y", np.zeros(2), scale * np.eye(2), observed=y)
    return model


def flat_index():
    _, x, region = _data()
    with pm.Model() as model:
        scale = pm.HalfNormal("scale", shape=3)
        x = np.where(_IMPOSSIBLE, 1e200, x)
        # an index and a matrix product stand between parameters and records
        mu = pt.sqrt(pt.as_tensor(x)[:, None] ** 2 @ pt.atleast_1d(scale[0]))
        pm.Normal("y", mu, pt.exp(scale[region]), observed=x)
    return model


def far_grade():
    with pm.Model() as model:
        beta = pm.HalfNormal("beta")
        eta = beta * np.where(_IMPOSSIBLE, 1e5, 1.0)
        grade = np.where(_IMPOSSIBLE, 0, np.arange(RECORDS) % 3)
        pm.OrderedLogistic("grade", eta=eta, cutpoints=[-1.0, 1.0], observed=grade)
    return model


IMPOSSIBLE = [
    far_grade, far_away, outside_the_support, overflowing_rate, far_mixture, far_rows, flat_index
]


def density_with_gradient(synthesizer, weights):
    """Function of a point, and a point."""
    pm.set_data({synthesizer.weights_name: weights}, model=synthesizer.model)
    model = synthesizer.model
    function = model.compile_fn(
        [model.logp(), model.dlogp()], inputs=model.value_vars, on_unused_input="ignore"
    )
    return function, next(points(model, 1))


def gradient(synthesizer, weights):
    function, point = density_with_gradient(synthesizer, weights)
    value, slope = function(point)
    return float(value), slope, point


@pytest.mark.parametrize(
    ("make", "mode"),
    # compiled as for sampling too, with all of PyTensor's rewrites
    [(make, "FAST_COMPILE") for make in IMPOSSIBLE] + [(far_away, "NUMBA"), (far_mixture, "NUMBA")],
)
def test_gradient_where_a_record_of_weight_zero_is_impossible(make, mode):
    with pytensor.config.change_flags(mode=mode):
        model, by_pieces = pieces(make)
        weights = np.where(_IMPOSSIBLE, 0.0, WEIGHTS)
        value, slope, point = gradient(PyMCSynthesizer(model), weights)
        prior, by_record = by_pieces(point)
    assert not np.isfinite(by_record[2])
    possible = weights > 0
    expected = prior + weights[possible] @ by_record[possible]
    np.testing.assert_allclose(value, expected, rtol=1e-10)
    assert np.isfinite(slope).all() and np.any(slope != 0)


def test_gradient_is_that_of_the_other_records(quick):
    weights = np.where(_IMPOSSIBLE, 0.0, WEIGHTS)
    slopes = []
    for x_impossible in (1e200, 0.3):
        _, x, _ = _data()
        with pm.Model() as model:
            mu, sigma = pm.Normal("mu"), pm.HalfNormal("sigma")
            pm.Normal("y", mu, sigma, observed=np.where(_IMPOSSIBLE, x_impossible, x))
        slopes.append(gradient(PyMCSynthesizer(model), weights)[1])
    np.testing.assert_allclose(*slopes, rtol=1e-12)


def test_a_switch_of_the_log_likelihood_alone_would_not_do(quick, monkeypatch):
    monkeypatch.setattr(pymc_rewriting, "_apart", lambda model, log_lik: log_lik)
    weights = np.where(_IMPOSSIBLE, 0.0, WEIGHTS)
    value, slope, _ = gradient(PyMCSynthesizer(far_mixture()), weights)
    assert np.isfinite(value) and not np.isfinite(slope).all()


def test_gradient_of_possible_records_is_untouched(quick):
    """Against finite differences, for every model of the family at uneven weights."""
    for make in FAMILY:
        synthesizer = of_family(make())
        function, point = density_with_gradient(synthesizer, WEIGHTS)
        _, slope = function(point)
        rng = np.random.default_rng(2)
        direction = {k: rng.standard_normal(v.shape) for k, v in point.items()}
        up, down = (
            float(function({k: v + step * direction[k] for k, v in point.items()})[0])
            for step in (1e-5, -1e-5)
        )
        names = [v.name for v in synthesizer.model.continuous_value_vars]
        along = np.concatenate([direction[name].ravel() for name in names]) @ slope
        np.testing.assert_allclose(along, (up - down) / 2e-5, rtol=1e-5, atol=1e-6)


# ---- through the mechanism --------------------------------------------------------------------

COUNTS = np.array([3, 5, 4, 6, 20, 2, 3, 7])


@pytest.fixture(scope="module")
def counts_run():
    with pm.Model() as model:
        mu = pm.Gamma("mu", 2.0, 0.5)
        pm.Deterministic("twice", 2.0 * mu)
        pm.Poisson("y", mu, observed=COUNTS)
    mechanism = ppm.PseudoPosteriorMechanism(model)
    return mechanism, mechanism.run(draws=2000, random_seed=3)


def test_gamma_poisson_through_the_mechanism(counts_run):
    _, result = counts_run
    closed = ppm.GammaPoisson(COUNTS, shape=2.0, rate=0.5)
    reference = ppm.PseudoPosteriorMechanism(closed).run(draws=100_000, random_seed=4)
    mu = result.draws["posterior"]["mu"]

    def distance(weights):
        exact = closed.posterior(weights)
        return max(
            abs(float(mu.mean()) - exact.mean()) / float(az.mcse(mu)),
            abs(float(mu.std()) - exact.std()) / float(az.mcse(mu, method="sd")),
        )

    assert distance(result.weights) < 4.0
    assert distance(np.ones(8)) > 10.0
    # weights come from maxima over draws, which reach further in more draws
    np.testing.assert_allclose(result.weights, reference.weights, atol=0.05)
    assert result.weights[4] == 0.0
    expected = stats.poisson.logpmf(COUNTS, mu.values[..., None])
    np.testing.assert_allclose(result.synthesizer.log_likelihood(result.draws), expected, rtol=1e-9)
    np.testing.assert_allclose(result.record_bounds, np.abs(expected).max((0, 1)) * result.weights)


def test_the_protocol(counts_run):
    mechanism, result = counts_run
    synthesizer = mechanism.synthesizer
    assert isinstance(synthesizer, PyMCSynthesizer) and isinstance(synthesizer, ppm.Synthesizer)
    assert set(result.draws["posterior"].data_vars) == {"mu", "twice"}
    assert "diverging" in result.draws["sample_stats"]
    again = synthesizer.fit(result.weights, draws=50, random_seed=5)
    same = synthesizer.fit(result.weights, draws=50, random_seed=5)
    xr.testing.assert_equal(again["posterior"].to_dataset(), same["posterior"].to_dataset())
    # chains with the same random numbers would agree whatever they do, and R-hat be near 1
    for fit in (result.draws, again):
        first, second = fit["posterior"]["mu"].values
        assert not np.isin(first, second).any()
    synthetic = result.synthesize(400, random_seed=1)
    assert synthetic.dims == ("release", "record") and synthetic.shape == (400, 8)
    assert synthetic.dtype.kind == "i" and synthetic.attrs["releases"] == 400
    np.testing.assert_array_equal(synthetic, result.synthesize(400, random_seed=1))
    assert not np.array_equal(synthetic, result.synthesize(400, random_seed=2))
    # every record from the same distribution: mean and variance of the predictive one
    mu = result.draws["posterior"]["mu"].values
    error = np.sqrt((mu.mean() / 8 + mu.var()) / 400)
    assert abs(float(synthetic.mean()) - mu.mean()) < 4.5 * error
    assert float(synthetic[:, 4].mean()) < 10


def test_what_pymc_is_given_to_draw_from_has_full_entropy(counts_run, monkeypatch):
    given = []

    def sample(*arguments, random_seed, **settings):
        given.append(random_seed)
        raise KeyboardInterrupt

    monkeypatch.setattr(pm, "sample", sample)
    monkeypatch.setattr(pm, "sample_posterior_predictive", sample)
    _, result = counts_run
    generator = np.random.default_rng(2)
    for seed in (1, 1, np.random.SeedSequence(1), 2, generator, generator, None, None):
        with pytest.raises(KeyboardInterrupt):
            result.synthesizer.fit(draws=5, random_seed=seed)
    one, again, sequence, *others = [tuple(rng.integers(2**63, size=3)) for rng in given]
    assert one == again == sequence and len({one, *others}) == 6
    given.clear()
    for _ in range(40):
        with pytest.raises(KeyboardInterrupt):
            result.synthesize(1)
    # the largest of 40 numbers of 31 bits would not come near
    assert 2**120 < max(given) < 2**128


def test_a_fit_without_weights_forgets_those_of_the_fit_before(counts_run):
    mechanism, _ = counts_run
    synthesizer, settings = mechanism.synthesizer, {"draws": 50, "random_seed": 5}
    ones = synthesizer.fit(np.ones(8), **settings)["posterior"]["mu"]
    low = synthesizer.fit(np.full(8, 0.1), **settings)["posterior"]["mu"]
    plain = synthesizer.fit(**settings)["posterior"]["mu"]
    np.testing.assert_array_equal(plain, ones)
    assert not np.array_equal(plain, low)


def test_new_weights_do_not_compile_again(counts_run, monkeypatch):
    mechanism, _ = counts_run

    def refuse(*args, **kwargs):
        raise AssertionError("compiled again")

    monkeypatch.setattr("pymc.pytensorf.pytensor.function", refuse)
    mechanism.synthesizer.fit(np.full(8, 0.5), draws=20, random_seed=1)
    # the check works: another model does need compiling
    other = PyMCSynthesizer.__new__(PyMCSynthesizer)
    with pytest.raises(AssertionError, match="compiled again"):
        other.__init__(poisson())
        other.fit(draws=20)


def test_an_impossible_record_is_named(quick):
    synthesizer = PyMCSynthesizer(outside_the_support(), chains=1, warmup=20)
    with pytest.raises(ValueError, match="record 2 of y is impossible at the model's initial"):
        synthesizer.fit(draws=5)
    fit = synthesizer.fit(np.where(_IMPOSSIBLE, 0.0, 1.0), draws=5, random_seed=1)
    log_lik = synthesizer.log_likelihood(fit)
    assert np.all(log_lik[..., 2] == -np.inf) and np.isfinite(log_lik[..., :2]).all()
    bounds = ppm.record_bounds(log_lik, np.where(_IMPOSSIBLE, 0.0, 1.0))
    assert bounds[2] == 0.0 and np.isfinite(bounds).all()


# ---- what comes out ---------------------------------------------------------------------------


def _fake_fit(model, draws=3):
    """Draws of the prior in the place of a fit."""
    values = {
        v.name: np.stack([pm.draw(v, random_seed=seed) for seed in range(draws)])[None]
        for v in model.free_RVs
    }
    posterior = pm.backends.arviz.dict_to_dataset(values, sample_dims=["chain", "draw"])
    return xr.DataTree.from_dict({"posterior": posterior})


@pytest.mark.parametrize("make", FAMILY)
def test_synthetic_data(quick, make):
    model = make()
    synthesizer = of_family(model)
    synthetic = synthesizer.predict(_fake_fit(model), releases=5, random_seed=1)
    if len(synthesizer.responses) == 1:
        synthetic = synthetic.to_dataset()
    assert tuple(synthetic.data_vars) == synthesizer.responses
    for array in synthetic.values():
        assert array.dims[:2] == ("release", "record")
        assert array.sizes["release"] == 5 and array.sizes["record"] == RECORDS
        # no coordinate of a record goes along
        assert "record" not in array.coords and not np.isnan(array).any()
    if make is multivariate:
        assert synthetic["y"].dims == ("release", "record", "item")


def test_releases_come_from_different_draws_of_the_parameters(quick):
    with pm.Model() as model:
        centre = pm.Normal("centre")
        pm.Normal("y", centre, 1e-6, observed=np.zeros(RECORDS))
    places = np.arange(12.0).reshape(2, 6)
    fit = xr.DataTree.from_dict(
        {"posterior": xr.Dataset({"centre": (("chain", "draw"), places)})}
    )
    synthetic = PyMCSynthesizer(model).predict(fit, releases=12, random_seed=1).values
    # each release is near the one draw that it was made from, and no two share one
    assert np.abs(synthetic - synthetic.round()).max() < 1e-4
    assert sorted(synthetic[:, 0].round()) == list(places.ravel())
    assert np.all(synthetic.round() == synthetic[:, :1].round())


def test_missing_entries_are_drawn_too(quick):
    model = missing_values()
    fit = _fake_fit(model, draws=1)
    stored = fit["posterior"]["y_unobserved"].values.ravel()
    synthesizer = PyMCSynthesizer(model)
    y = synthesizer.predict(fit, releases=2, random_seed=1)["y"].values
    missing = np.setdiff1d(np.arange(RECORDS), _Y_OBSERVED)
    # the trace's own imputation is not released, and both releases draw another one
    assert not np.isin(y[:, missing], stored).any()
    assert not np.isin(y[0], y[1]).any()


def test_a_response_without_a_fit_of_its_own_name(quick):
    synthesizer = PyMCSynthesizer(two_responses())
    assert synthesizer.responses == ("income", "children")
    with pm.Model() as model:
        record_weights = pm.HalfNormal("record_weights")
        pm.Normal("y", 0.0, record_weights, observed=np.ones(RECORDS))
    assert PyMCSynthesizer(model).weights_name == "_record_weights"


def test_initial_values_and_outer_models(quick):
    with pm.Model() as model:
        data = pm.Data("data", np.array(2.0))
        mu = pm.Normal("mu", 2.0, 1.0, initval=data + 3.0)
        pm.Normal("by_strategy", 4.0, 1.0, initval="support_point")
        with pm.Model("inner"):
            sigma = pm.HalfNormal("sigma")
        pm.Normal("y", mu, sigma, observed=np.ones(RECORDS))
    synthesizer = PyMCSynthesizer(model)
    start = synthesizer.model.initial_point()
    assert start["mu"] == 5.0 and start["by_strategy"] == 4.0
    assert "inner::sigma" in synthesizer.model.named_vars
    with pm.Model() as model:
        mu = pm.Normal("mu")
        other = pm.Normal("other", initval=mu + 3.0)
        pm.Normal("y", other, 1.0, observed=np.ones(RECORDS))
    with pytest.raises(ValueError, match="initial value of other depends on other variables"):
        PyMCSynthesizer(model)


def test_a_parameter_whose_prior_holds_a_response(quick):
    with pm.Model() as model:
        mu = pm.Normal("mu")
        y = pm.Normal("y", mu, 1.0, observed=np.arange(RECORDS) / 4.0)
        pm.Normal("average", y.mean(), 1.0)
    density, plain = log_density(PyMCSynthesizer(model)), model.compile_logp()
    point = next(points(model, 1))
    np.testing.assert_allclose(density(point, np.ones(RECORDS)), plain(point), rtol=1e-12)
    assert abs(density(point, WEIGHTS) - plain(point)) > 0.1


# ---- what is refused --------------------------------------------------------------------------


def _only_priors():
    pm.Normal("mu")


def _only_a_potential():
    mu = pm.Normal("mu")
    pm.Potential("likelihood", pm.logp(pm.Normal.dist(mu), np.ones(5)).sum())


def _random_walk():
    pm.GaussianRandomWalk(
        "y", sigma=pm.HalfNormal("sigma"), init_dist=pm.Normal.dist(), observed=np.arange(5.0)
    )


def _one_normal_over_the_records():
    pm.MvNormal("y", np.zeros(5), np.eye(5) * pm.HalfNormal("s"), observed=np.ones(5))


def _different_lengths():
    mu = pm.Normal("mu")
    pm.Normal("y", mu, observed=np.ones(5))
    pm.Normal("z", mu, observed=np.ones(7))


def _one_number():
    pm.Normal("y", pm.Normal("mu"), observed=3.0)


def _not_a_number():
    data = pt.as_tensor(np.array([1.0, np.nan, 2.0]))
    pm.Normal("y", pm.Normal("mu"), observed=data)


def _no_records():
    pm.Normal("y", pm.Normal("mu"), observed=np.empty(0))


def _total_size():
    pm.Normal("y", pm.Normal("mu"), observed=np.ones(5), total_size=50)


def _minibatch():
    batch = pm.Minibatch(np.ones(50), batch_size=5)
    pm.Normal("y", pm.Normal("mu"), observed=batch, total_size=50)


def _partly_missing_rows():
    mask = np.zeros((5, 2), dtype=bool)
    mask[1, 0] = True
    y = np.ma.masked_array(np.ones((5, 2)), mask)
    pm.MvNormal("y", pm.Normal("mu", shape=2), np.eye(2), observed=y)


def _discrete_only():
    number = pm.Poisson("number", 3.0)
    pm.Normal("y", number * pm.Bernoulli("sign", 0.5), observed=np.ones(5))


def _no_parameter():
    pm.Normal("y", 0.0, observed=np.ones(5))


def _no_gradient():
    square = wrap_py(itypes=[pt.dscalar], otypes=[pt.dscalar])(lambda x: np.array(x**2))
    pm.Normal("y", square(pm.Normal("mu")), observed=np.ones(5))


def _square_loss(value, mu):
    return -((value - mu) ** 2)


def _nothing_to_release():
    pm.CustomDist("y", pm.Normal("mu"), logp=_square_loss, observed=np.ones(5))


def _potential_of_other_data(data=pt.as_tensor):
    mu = pm.Normal("mu")
    pm.Normal("y", mu, observed=np.ones(5))
    rate = pm.Deterministic("rate", mu * data(np.arange(5.0)))
    pm.Potential("second", rate.sum())


def _potential_of_changeable_data():
    _potential_of_other_data(lambda values: pm.Data("x", values))


def _potential_of_the_response():
    y = pm.Normal("y", pm.Normal("mu"), observed=np.ones(5))
    pm.Potential("again", -y[:2].sum())


def _potential_of_the_observed_values():
    values = pm.Data("values", np.ones(5, dtype=int))
    mu = pm.Normal("mu")
    pm.Normal("y", mu, observed=values)  # what the model observes is a copy of another type
    pm.Potential("again", -(values[:2].sum() - mu) ** 2)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (_discrete_only, r"discrete parameters only \(number, sign\), which NUTS cannot move: sum"),
        (_no_parameter, "model has no parameter"),
        (_no_gradient, "log-density without a gradient, which NUTS cannot do without"),
        (_nothing_to_release, "y rests on a CustomDist that cannot be drawn from"),
        (_potential_of_other_data, "potential second may hold records, which would be neither"),
        (_potential_of_changeable_data, r'say public_potentials=\["second"\] to ppm.PyMCSynth'),
        (_potential_of_the_response, "potential again depends on a response, where the records"),
        (_potential_of_the_observed_values, "potential again depends on a response, where"),
        (_only_priors, "no observed variable: give its response observed="),
        (_only_a_potential, "only potentials: write the likelihood as a distribution"),
        (_random_walk, "y has one density for all its 5 rows together"),
        (_one_normal_over_the_records, "y has one density for all its 5 rows together"),
        (_different_lengths, r"different lengths \(y has 5, z has 7\)"),
        (_one_number, "y must be observed as an array of numbers with one row a record"),
        (_not_a_number, r"y holds NaN \(first in record 1\)"),
        (_no_records, "y is empty"),
        (_total_size, "y is a minibatch or has total_size"),
        (_minibatch, "y is a minibatch or has total_size"),
        (_partly_missing_rows, "y has missing values that PyMC cannot separate"),
    ],
)
def test_models_without_by_record_terms_are_refused(quick, build, message):
    def make():
        with pm.Model() as model:
            build()
        return model

    with pytest.raises(ValueError, match=message) as error:
        ppm.PseudoPosteriorMechanism(_masked(make))
    assert "\n" not in str(error.value)


def test_what_nuts_shares_with_other_steps_can_be_drawn_or_is_said_to_be_public_is_taken(quick):
    def missing_counts():
        y = np.ma.masked_array(np.ones(5, dtype=int), np.arange(5) == 2)
        pm.Poisson("y", pm.math.exp(pm.Normal("mu")), observed=y)

    def mixed():
        pm.Normal("y", pm.Normal("mu") + pm.Bernoulli("z", 0.5), observed=np.ones(5))

    def drawn():
        def random(mu, rng=None, size=None):
            return rng.normal(mu, size=size)

        pm.CustomDist("y", pm.Normal("mu"), logp=_square_loss, random=random, observed=np.ones(5))

    def by_distribution():
        pm.CustomDist(
            "y", pm.Normal("mu"), dist=lambda mu, size: pm.Normal.dist(mu, size=size),
            observed=np.ones(5),
        )

    def make(build):
        with pm.Model() as model:
            build()
        return model

    for build in (missing_counts, mixed, drawn, by_distribution):
        assert PyMCSynthesizer(_masked(lambda build=build: make(build))).records == 5
    for build in (_potential_of_other_data, _potential_of_changeable_data):
        assert PyMCSynthesizer(make(build), public_potentials=["second"]).records == 5
        with pytest.raises(ValueError, match="^public_potentials must .*; accepted: second$"):
            PyMCSynthesizer(make(build), public_potentials=["third"])
        with pytest.raises(ValueError, match="^public_potentials must .*; got 'second'; accepted"):
            PyMCSynthesizer(make(build), public_potentials="second")
    for build in (_potential_of_the_response, _potential_of_the_observed_values):
        # nobody can say that of a response
        with pytest.raises(ValueError, match="potential again depends on"):
            PyMCSynthesizer(make(build), public_potentials=["again"])


def _with_data():
    with pm.Model(coords={"person": np.arange(6)}) as model:
        x = pm.Data("x", np.arange(6.0), dims="person")
        values = pm.Data("values", np.arange(6.0), dims="person")
        beta = pm.Normal("beta", initval=0.5)
        pm.Normal("y", beta * x, 1.0, observed=values, dims="person")
    return model


@pytest.mark.parametrize("name", ["x", "values"])
def test_data_changed_in_the_rewritten_model_are_refused(quick, name):
    model = _with_data()
    synthesizer = PyMCSynthesizer(model, chains=1, warmup=10)
    fit = _fake_fit(model)
    # neither the user's own model nor new weights are such a change
    pm.set_data({name: np.arange(6.0) + 9.0}, model=model)
    pm.set_data({synthesizer.weights_name: np.zeros(6)}, model=synthesizer.model)
    synthesizer.predict(fit, releases=1, random_seed=1)
    for value in (-np.arange(6.0), np.r_[0.0, 1, 2, 3, 4, 5 + 1e-12]):
        pm.set_data({name: value}, model=synthesizer.model)
        for call in (
            lambda: synthesizer.fit(draws=5, random_seed=1),
            lambda: synthesizer.predict(fit, releases=1, random_seed=1),
            lambda: ppm.PseudoPosteriorMechanism(synthesizer).run(draws=5, random_seed=1),
        ):
            with pytest.raises(ValueError, match=f"^{name} of the rewritten model was changed"):
                call()
    pm.set_data({name: np.arange(6.0)}, model=synthesizer.model)
    synthesizer.predict(fit, releases=1, random_seed=1)


def test_a_bound_withheld_of_a_bare_model_says_how_to_set_warm_up_and_chains(quick):
    model = normal()
    posterior = xr.Dataset(
        {name: (("chain", "draw"), np.ones((2, 9))) for name in ("mu", "sigma")}
    )
    log_lik = PyMCSynthesizer(model).log_likelihood_at(posterior)
    fit = xr.DataTree.from_dict(
        {"posterior": posterior, "log_likelihood": log_lik.to_dataset(name="y")}
    )
    how = r"; set warm-up and chains by ppm\.PyMCSynthesizer\(model, warmup=2000, chains=4\);"
    with pytest.raises(ppm.ChainsDisagreeError, match=how):
        _ = ppm.mechanism.bound_fit(model, fit, np.ones(RECORDS)).local_bound
    longer = PyMCSynthesizer(model, warmup=3_000, chains=6)
    with pytest.raises(ppm.ChainsDisagreeError, match=r"\(model, warmup=6000, chains=6\)"):
        _ = ppm.mechanism.bound_fit(longer, fit, np.ones(RECORDS)).local_bound


def test_other_bad_input(quick):
    with pm.Model() as outer:
        mu = pm.Normal("mu")
        with pm.Model("inner") as inner:
            pm.Normal("y", mu, observed=np.ones(5))
    with pytest.raises(ValueError, match="nested in another model: hand over the outer one"):
        PyMCSynthesizer(inner)
    assert PyMCSynthesizer(outer).responses == ("inner::y",)
    with pytest.raises(TypeError, match=r"model must be a pymc\.Model; got int"):
        PyMCSynthesizer(3)
    with pytest.raises(TypeError, match="or be a PyMC model; got int"):
        ppm.PseudoPosteriorMechanism(3)
    with pytest.raises(ValueError, match="chains must be a whole number"):
        PyMCSynthesizer(outer, chains=0)
    with pytest.raises(ValueError, match="target_accept must be below 1"):
        PyMCSynthesizer(outer, target_accept=1)
    synthesizer = PyMCSynthesizer(outer)
    with pytest.raises(ValueError, match="weights has shape"):
        synthesizer.fit(np.ones(4))
    with pytest.raises(ValueError, match="draws must be a whole number"):
        synthesizer.fit(draws=0)
    with pytest.raises(ValueError, match="releases must be a whole number"):
        synthesizer.predict(_fake_fit(outer), releases=0)


def test_settings_beside_a_bare_model_are_those_of_its_synthesizer():
    with pm.Model() as model:
        mu = pm.Normal("mu")
        pm.Normal("y", mu, 1.0, observed=np.arange(5.0))
    mechanism = ppm.PseudoPosteriorMechanism(model, scale=0.5, warmup=7, chains=3)
    assert (mechanism.synthesizer.warmup, mechanism.synthesizer.chains) == (7, 3)
    told = r"^warm_up: neither a setting of the mechanism .* nor of PyMCSynthesizer .*warmup"
    with pytest.raises(TypeError, match=told):
        ppm.PseudoPosteriorMechanism(model, warm_up=7)
