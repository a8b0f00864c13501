"""Any PyMC model as a synthesizer: its weighted copy against the user's own model, untouched."""

import warnings
from functools import partial

import arviz as az
import numpy as np
import nutpie
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
import xarray as xr
from pytensor.link.numba.linker import NumbaLinker
from scipy import special, stats

import ppm
from ppm.synthesizers import pymc_weights
from ppm.synthesizers.pymc_model import PyMCSynthesizer

RECORDS = 12
WEIGHTS = np.random.default_rng(4).uniform(0.1, 1.0, RECORDS)
WEIGHTS[[2, 5, 7]] = 0.0, 3.0, 1.0
RNG = np.random.default_rng(7)
X, Y, PAIRS = RNG.normal(size=RECORDS), RNG.normal(1, 0.7, RECORDS), RNG.normal(size=(RECORDS, 2))
COUNTS, THIRD = RNG.poisson(3.0, RECORDS), np.arange(RECORDS) % 3
Y_MASK, PAIRS_MASK = np.arange(RECORDS) % 5 == 1, RNG.random((RECORDS, 2)) < 0.3
ROW_MASK = np.isin(np.arange(RECORDS), [3, 9])
IDS, FIVE = RNG.integers(1e8, 2e8, RECORDS), np.arange(5.0)


@pytest.fixture
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


def normal():
    pm.Normal("y", pm.Normal("mu", 0.0, 2.0), pm.HalfNormal("sigma", 1.0), observed=Y)


def poisson():
    x, y = pm.Data("x", X, dims="person"), pm.Data("counts", COUNTS, dims="person")
    beta = pm.Normal("beta", shape=2)
    rate = pm.Deterministic("rate", pt.exp(beta[0] + beta[1] * x), dims="person")
    pm.Poisson("y", rate, observed=y, dims="person")


def negative_binomial():
    mu, alpha = pt.exp(pm.Normal("beta") * X), pm.Exponential("alpha", 1.0)
    pm.NegativeBinomial("y", mu=mu, alpha=alpha, observed=COUNTS)


def student_t_regression():
    beta = pm.Normal("beta", shape=2, initval=[0.3, -0.2])
    mu, nu = np.column_stack([np.ones(RECORDS), X]) @ beta, pm.Gamma("nu", 2.0, 0.1)
    pm.StudentT("y", nu=nu, mu=mu, sigma=pm.HalfCauchy("sigma", 1.0), observed=Y)


def logistic():
    beta = pm.Normal("beta", shape=2)
    pm.Bernoulli("yes", logit_p=beta[0] + beta[1] * X, observed=(Y > 1).astype(int))
    pm.Potential("soft_constraint", -pt.sum(beta) ** 2)


def ordered_logistic():
    ordered = {"transform": pm.distributions.transforms.ordered, "default_transform": None}
    cuts = pm.Normal("cuts", shape=3, initval=[-1.0, 0.0, 1.0], **ordered)
    pm.OrderedLogistic("grade", eta=pm.Normal("beta") * X, cutpoints=cuts, observed=COUNTS % 4)


def hierarchical():
    effect = pm.Normal("effect", pm.Normal("mu"), pm.HalfNormal("tau"), dims="region")
    pm.Normal("spending", effect[THIRD], pm.HalfNormal("sigma"), observed=Y)


def marginal_mixture():
    share, mu = pm.Dirichlet("share", np.ones(2)), pm.Normal("mu", [-1.0, 1.0], 1.0)
    pm.NormalMixture("y", share, mu, [0.5, 0.8], observed=Y)


def two_responses():
    income = pm.Normal("income", pm.Normal("beta") * X, pm.HalfNormal("sigma"), observed=Y)
    pm.Poisson("children", pt.exp(0.3 * income), observed=COUNTS)


def multivariate():
    chol, *_ = pm.LKJCholeskyCov("chol", eta=2.0, n=2, sd_dist=pm.HalfNormal.dist(size=2))
    mu = X[:, None] * pm.Normal("beta", shape=2)
    pm.MvNormal("y", mu, chol=chol, observed=PAIRS, dims=("person", "item"))


def record_level_parameters():
    pm.TruncatedNormal("y", pm.Normal("mu", shape=RECORDS), 1.0, lower=0.0, observed=np.exp(X))


def missing_values():
    beta = pm.Normal("beta")
    pm.Normal("y", beta * X, 1.0, observed=np.ma.masked_array(Y, Y_MASK))
    pm.Normal("z", beta, 2.0, observed=np.ma.masked_array(PAIRS, PAIRS_MASK))


def missing_rows():
    rows = np.ma.masked_array(PAIRS, np.column_stack([ROW_MASK, ROW_MASK]))
    pm.MvNormal("y", pm.Normal("mu", shape=2), np.eye(2), observed=rows)


FAMILY = [
    normal, poisson, negative_binomial, student_t_regression, logistic, ordered_logistic,
    hierarchical, marginal_mixture, two_responses, multivariate, record_level_parameters,
    missing_values, missing_rows,
]


def of_family(model, **settings):
    """Its synthesizer, with the user's word for all potentials."""
    return PyMCSynthesizer(model, public_potentials=[v.name for v in model.potentials], **settings)


def rows_of(write, name):
    """The record of every observed entry."""
    masked = {
        (missing_values, "y_observed"): ~Y_MASK, (missing_rows, "y_observed"): ~ROW_MASK,
        (missing_values, "z_observed"): ~PAIRS_MASK,
    }
    return np.nonzero(masked.get((write, name), np.ones(RECORDS)))[0]


def pieces(write):
    """The user's model, and a function of a point: prior with potentials, and log-likelihoods."""
    model = model_of(write)
    prior = model.logp(vars=[*model.free_RVs, *model.potentials])
    terms = model.logp(vars=model.observed_RVs, sum=False)
    function = model.compile_fn([prior, *terms], inputs=model.value_vars, on_unused_input="ignore")

    def evaluate(point):
        prior, *parts = function(point)
        by_record = np.zeros(RECORDS)
        for variable, part in zip(model.observed_RVs, parts, strict=True):
            by_entry = part.reshape(len(part), -1).sum(axis=1)
            np.add.at(by_record, rows_of(write, variable.name), by_entry)
        return float(prior), by_record

    return model, evaluate


def points(model, number=3):
    rng = np.random.default_rng(11)
    for _ in range(number):
        start = model.initial_point()
        yield {k: v + 0.3 * rng.standard_normal(v.shape) for k, v in start.items()}


def posterior_of(draws):
    """One chain of these draws, each a dict of values."""
    stacked = {name: np.stack([draw[name] for draw in draws])[None] for name in draws[0]}
    return pm.backends.arviz.dict_to_dataset(stacked, sample_dims=["chain", "draw"])


@pytest.mark.parametrize("write", FAMILY)
def test_the_density_has_the_weighted_terms_and_the_log_likelihood_is_unweighted(quick, write):
    model, by_pieces = pieces(write)
    before = [*map(dict, (model.named_vars, model.rvs_to_values, model.rvs_to_initial_values))]
    synthesizer = of_family(model)
    function = synthesizer.model.compile_logp()
    free = {v.name for v in model.free_RVs}
    as_written = [v for v in model.unobserved_value_vars if v.name in free]
    to_user = model.compile_fn(as_written, inputs=model.value_vars)
    for point in points(model):
        prior, by_record = by_pieces(point)
        assert np.isfinite(by_record).all()
        for weights in (WEIGHTS, np.ones(RECORDS), np.zeros(RECORDS)):
            synthesizer.model.alpha.set_value(weights)
            expected = prior + weights @ by_record
            assert function(point) == pytest.approx(expected, rel=1e-10, abs=1e-10)
        # the comparison would see weights on the prior too, and weights of other records
        assert abs((WEIGHTS.mean() - 1.0) * prior) > 1e-6
        assert abs((WEIGHTS[::-1] - WEIGHTS) @ by_record) > 1e-6
        draw = dict(zip([v.name for v in as_written], to_user(point), strict=True))
        log_lik = synthesizer.log_likelihood_at(posterior_of([draw, draw]))
        assert log_lik.dims == ("chain", "draw", "record")
        np.testing.assert_allclose(log_lik[0], [by_record] * 2, rtol=1e-10, atol=1e-10)
    assert before == [*map(dict, (model.named_vars, model.rvs_to_values,
                                  model.rvs_to_initial_values))]  # fmt: skip


@pytest.mark.parametrize("write", FAMILY)
def test_releases_are_predictive_draws_of_the_users_model(quick, write):
    model = model_of(write)
    synthesizer = of_family(model)
    names = [v.name for v in model.free_RVs if not v.name.endswith("_unobserved")]
    start = dict(zip(names, pm.draw([model[name] for name in names], random_seed=3), strict=True))
    posterior = xr.DataTree.from_dict({"posterior": posterior_of([start] * 5)})
    settings = {"var_names": synthesizer.responses, "freeze_vars": names, "progressbar": False}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The effect of Potentials")
        found = [
            pm.sample_posterior_predictive(posterior, model=m, random_seed=s, **settings)
            for m, s in ((model, 5), (synthesizer._plain, 5), (synthesizer._plain, 6))
        ]
    released = synthesizer.predict(posterior, releases=5, random_seed=1)
    released = released if len(synthesizer.responses) > 1 else released.to_dataset()
    for name in synthesizer.responses:
        mine, same, other = (trace["posterior_predictive"][name] for trace in found)
        assert mine.equals(same) and not mine.equals(other)
        # no coordinate of a record goes along, and every entry is drawn
        assert released[name].dims == ("release", "record", *mine.dims[3:])
        assert "record" not in released[name].coords and not np.isnan(released[name]).any()
        # nor is what a trace has imputed released again
        assert not np.isclose(*released[name].values[:2, Y_MASK]).all()


# ---- impossible records of weight 0 ------------------------------------------------------------

FAR = np.arange(RECORDS) == 2


def far_away():
    pm.Normal("y", pm.Normal("mu"), pm.HalfNormal("sigma"), observed=np.where(FAR, 1e200, X))


def outside_the_support():
    pm.Gamma("y", 2.0, pm.HalfNormal("rate"), observed=np.where(FAR, -1.0, np.abs(X)))


def overflowing_rate():
    rate = pt.exp(pm.Normal("beta", 1.0, 1.0) * np.where(FAR, 1e5, X))
    pm.Poisson("y", rate, observed=np.arange(RECORDS))


def far_mixture():
    mu, sigma = pm.Normal("mu", [-1.0, 1.0], 1.0), pm.HalfNormal("sigma", shape=2)
    pm.NormalMixture("y", [0.5, 0.5], mu, sigma, observed=np.where(FAR, 1e200, X))


def far_rows():
    y = np.where(FAR, 1e200, X)[:, None] * np.ones(2)
    pm.MvNormal("y", np.zeros(2), pm.HalfNormal("scale", 1.0) * np.eye(2), observed=y)


def far_index():
    scale, x = pm.HalfNormal("scale", shape=3), np.where(FAR, 1e200, X)
    # an index and a matrix product stand between parameters and records
    mu = pt.sqrt(pt.as_tensor(x)[:, None] ** 2 @ pt.atleast_1d(scale[0]))
    pm.Normal("y", mu, pt.exp(scale[THIRD]), observed=x)


def far_grade():
    eta = pm.HalfNormal("beta") * np.where(FAR, 1e5, 1.0)
    pm.OrderedLogistic("y", eta=eta, cutpoints=[-1.0, 1.0], observed=np.where(FAR, 0, THIRD))


IMPOSSIBLE = [
    far_away, outside_the_support, overflowing_rate, far_mixture, far_rows, far_index, far_grade
]


def density_and_gradient(synthesizer, point):
    synthesizer.model.alpha.set_value(np.where(FAR, 0.0, WEIGHTS))
    model = synthesizer.model
    return model.compile_fn([model.logp(), model.dlogp()], inputs=model.value_vars)(point)


@pytest.mark.parametrize("write", IMPOSSIBLE)
def test_a_record_of_weight_zero_may_be_impossible(quick, write):
    model, by_pieces = pieces(write)
    point = next(points(model))
    prior, by_record = by_pieces(point)
    assert not np.isfinite(by_record[2])
    value, slope = density_and_gradient(PyMCSynthesizer(model), point)
    rest = np.delete(WEIGHTS, 2) @ np.delete(by_record, 2)
    np.testing.assert_allclose(value, prior + rest, rtol=1e-10)
    assert np.isfinite(slope).all() and np.any(slope != 0)


def test_a_switch_of_the_log_likelihood_alone_would_not_do(quick, monkeypatch):
    monkeypatch.setattr(pymc_weights, "_finite_gradient", lambda x: x)
    model = model_of(far_mixture)
    value, slope = density_and_gradient(PyMCSynthesizer(model), next(points(model)))
    assert np.isfinite(value) and not np.isfinite(slope).all()


def test_an_impossible_record_is_named(quick):
    synthesizer = PyMCSynthesizer(model_of(outside_the_support), chains=1, warmup=20)
    with pytest.raises(ValueError, match="record 2 is impossible at the model's initial") as error:
        synthesizer.fit(draws=5)
    assert error.value.__suppress_context__
    fit = synthesizer.fit(np.where(FAR, 0.0, 1.0), draws=5, random_seed=1)
    bounds = ppm.record_bounds(synthesizer.log_likelihood(fit), np.where(FAR, 0.0, 1.0))
    assert bounds[2] == 0.0 and np.isfinite(bounds).all()


# ---- through the mechanism --------------------------------------------------------------------

VISITS = np.array([3, 5, 4, 6, 20, 2, 3, 7])
CLOSED = ppm.GammaPoisson(VISITS, shape=2.0, rate=0.5)


def visits():
    mu = pm.Gamma("mu", 2.0, 0.5)
    pm.Deterministic("twice", 2.0 * mu)
    pm.Poisson("y", mu, observed=VISITS)


def distance(mu, weights=None, censor=None):
    """How far places of draws in the exact posterior are from uniform, in Monte Carlo errors."""
    grid = np.linspace(1e-6, 60.0, 60_001)
    below = np.cumsum(np.exp(CLOSED.posterior(weights, censor=censor).logpdf(grid))) * grid[1]
    places = mu.copy(data=np.interp(mu.values, grid, below))
    errors = [float(az.mcse(places**power)) for power in (1, 2)]
    return max(abs(float((places**k).mean()) - 1 / (k + 1)) / errors[k - 1] for k in (1, 2))


@pytest.mark.parametrize("nuts_sampler", ["pymc", "nutpie"])
def test_gamma_poisson_through_the_mechanism(nuts_sampler, monkeypatch):
    mechanism = ppm.PseudoPosteriorMechanism(model_of(visits), nuts_sampler=nuts_sampler)
    synthesizer = mechanism.synthesizer
    assert isinstance(synthesizer, PyMCSynthesizer) and isinstance(synthesizer, ppm.Synthesizer)
    result = mechanism.run(draws=2000, random_seed=3)
    mu = result.draws["posterior"]["mu"]
    assert distance(mu, result.weights) < 4.0
    # weights that are ignored, or those of the fit before, would be seen
    assert distance(mu) > 10.0
    assert distance(result.unweighted["posterior"]["mu"]) < 4.0
    limits = ppm.Censoring(-3.0, -1.0)
    if nuts_sampler == "nutpie":
        with pytest.raises(ValueError, match="nutpie gets a seed of 30 bits"):
            synthesizer.fit(censor=limits)
    else:
        within = synthesizer.fit(draws=2000, random_seed=2, censor=limits)["posterior"]["mu"]
        assert distance(within, censor=limits) < 4.0
    expected = stats.poisson.logpmf(VISITS, mu.values[..., None])
    np.testing.assert_allclose(synthesizer.log_likelihood(result.draws), expected, rtol=1e-9)
    np.testing.assert_allclose(result.record_bounds, np.abs(expected).max((0, 1)) * result.weights)
    assert {*result.draws["posterior"].data_vars} == {"mu", "twice"}
    assert "diverging" in result.draws["sample_stats"]
    # chains with the same random numbers would agree whatever they do
    assert not np.isin(*mu.values).any()
    if nuts_sampler == "pymc":
        # nothing is compiled again for other weights, but for another model
        monkeypatch.setattr("pymc.pytensorf.pytensor.function", None)
    ones, low, plain = (
        synthesizer.fit(*weights, draws=50, random_seed=5)["posterior"]["mu"]
        for weights in ([np.ones(8)], [np.full(8, 0.1)], [])
    )
    assert plain.equals(ones) and not plain.equals(low)
    if nuts_sampler == "pymc":
        with pytest.raises(TypeError):
            PyMCSynthesizer(model_of(normal)).fit(draws=20)


def test_an_interrupted_nutpie_has_made_no_fit(monkeypatch):
    synthesizer = PyMCSynthesizer(model_of(visits), nuts_sampler="nutpie", warmup=20)
    sample = nutpie.sample

    def interrupted(*arguments, draws, **settings):
        return sample(*arguments, draws=draws - 1, **settings)

    monkeypatch.setattr(nutpie, "sample", interrupted)
    with pytest.raises(KeyboardInterrupt):
        synthesizer.fit(draws=20, random_seed=1)


def test_what_pymc_is_given_to_draw_from_has_full_entropy(quick, monkeypatch):
    given = []

    def sample(*arguments, random_seed, **settings):
        given.append(random_seed)
        raise KeyboardInterrupt

    monkeypatch.setattr(pm, "sample", sample)
    monkeypatch.setattr(pm, "sample_posterior_predictive", sample)
    synthesizer = PyMCSynthesizer(model_of(visits))
    seeds = np.random.default_rng(2)
    for seed in (1, 1, np.random.SeedSequence(1), 2, seeds, seeds, None, None):
        with pytest.raises(KeyboardInterrupt):
            synthesizer.fit(draws=5, random_seed=seed)
    one, again, sequence, *others = [tuple(rng.integers(2**63, size=3)) for rng in given]
    assert one == again == sequence and len({one, *others}) == 6
    given.clear()
    fit = xr.DataTree.from_dict({"posterior": posterior_of([{"mu": np.ones(())}] * 2)})
    for _ in range(40):
        with pytest.raises(KeyboardInterrupt):
            synthesizer.predict(fit, releases=1)
    # the largest of 40 numbers of 31 bits would not come near
    assert 2**120 < max(given) < 2**128


def test_releases_come_from_different_draws_of_the_parameters(quick):
    synthesizer = PyMCSynthesizer(
        model_of(lambda: pm.Normal("y", pm.Normal("centre"), 1e-6, observed=np.zeros(RECORDS)))
    )
    centre = xr.Dataset({"centre": (("chain", "draw"), np.arange(12.0).reshape(2, 6))})
    fit = xr.DataTree.from_dict({"posterior": centre})
    synthetic = synthesizer.predict(fit, releases=12, random_seed=1).values
    # each release is near the one draw that it was made from, and no two share one
    assert np.abs(synthetic - synthetic[:, :1].round()).max() < 1e-4
    assert sorted(synthetic[:, 0].round()) == [*range(12)]


# ---- what computes the log-likelihood ----------------------------------------------------------


def far_logistic():
    pm.Bernoulli("y", logit_p=X * pm.Normal("b"), observed=COUNTS % 2)


def drawn(*parameters, rng=None, size=None):
    return rng.normal(size=size)


def own_density(of):
    def log_density(value, mean):
        return of(-1.0 - (value - mean) ** 2)

    pm.CustomDist("y", pm.Normal("b"), logp=log_density, random=drawn, observed=Y)


@pytest.mark.parametrize(
    ("write", "limit", "numba"),
    [
        (far_logistic, 40_000, False), (far_logistic, 0, True),
        # what NumPy would do number by number
        (partial(own_density, pt.log1p), 40_000, False),
        (partial(own_density, pt.log1mexp), 40_000, True),
    ],
)  # fmt: skip
def test_numpy_computes_what_is_little(monkeypatch, write, limit, numba):
    monkeypatch.setattr(pymc_weights, "FEW_NUMBERS", limit)
    synthesizer = PyMCSynthesizer(model_of(write))
    found = synthesizer.log_likelihood_at(posterior_of([{"b": np.array(900.0)}]))
    assert isinstance(synthesizer._read.f.maker.mode.linker, NumbaLinker) is numba
    if write is far_logistic:
        # so far out that a probability of 0 or 1 has no logarithm of its own
        expected = special.log_expit(np.where(COUNTS % 2, 900.0 * X, -900.0 * X))
        np.testing.assert_allclose(found[0, 0], expected, rtol=1e-12)


# ---- what is taken and what is refused ---------------------------------------------------------


def one_normal(**settings):
    pm.Normal("y", pm.Normal("mu"), **({"observed": np.ones(5)} | settings))


def potential(of, data=FIVE):
    values = pm.Data("values", data)
    mu = pm.Normal("mu")
    y = pm.Normal("y", mu, observed=np.ones(5) if data.dtype == float else values)
    pm.Potential("second", of(mu, values, y))


def partly_missing_rows():
    y = np.ma.masked_array(np.ones((5, 2)), np.arange(10).reshape(5, 2) == 2)
    pm.MvNormal("y", pm.Normal("mu", shape=2), np.eye(2), observed=y)


def lost(value, mu):
    return -((value - mu) ** 2)


def different_lengths():
    pm.Normal("y", pm.Normal("mu"), observed=np.ones(5))
    pm.Normal("z", model_mu := pm.Normal("nu"), observed=np.ones(7)), model_mu


of_the_response = partial(potential, lambda mu, values, y: y[:2].sum())
# what the model observes is a copy of another type
of_its_values = partial(
    potential, lambda mu, values, y: -((values[:2].sum() - mu) ** 2), np.ones(5, int)
)
of_other_data = partial(potential, lambda mu, values, y: (mu * values).sum())
def of_data_not_given():
    data = pm.Data("data", np.ones(5))
    pm.CustomDist("y", pm.Normal("mu"), logp=lambda value, mu: mu * data.sum() - value**2,
                  random=lambda mu, rng=None, size=None: rng.normal(mu, size=size),
                  observed=np.ones(5))  # fmt: skip


REFUSED = [
    (lambda: pm.Normal("mu"), "no observed variable: give its response observed="),
    (lambda: pm.Potential("p", -(pm.Normal("mu") ** 2)), "no observed variable"),
    (lambda: pm.Normal("y", pm.Poisson("n", 3.0), observed=np.ones(5)), "no continuous parameter"),
    (lambda: pm.Normal("y", 0.0, observed=np.ones(5)), "no continuous parameter"),
    (lambda: pm.CustomDist("y", pm.Normal("mu"), logp=lost, observed=np.ones(5)),
     "y cannot be drawn, and nothing could be released"),
    (of_other_data, r'potential second could hold.*pass public_potentials=\["second"\]'),
    (of_the_response, "potential second depends on a response"),
    (of_its_values, "potential second depends on a response"),
    (lambda: pm.GaussianRandomWalk("y", init_dist=pm.Normal.dist(), sigma=pm.HalfNormal("s"),
                                   observed=np.ones(5)), "y has one density for all its 5 rows"),
    (lambda: pm.MvNormal("y", np.zeros(5), np.eye(5) * pm.HalfNormal("s"), observed=np.ones(5)),
     "y has one density for all its 5 rows"),
    (different_lengths, "responses y, z have different lengths"),
    (partial(one_normal, observed=3.0), "y must be observed as an array"),
    (partial(one_normal, observed=np.empty(0)), "y must be observed as an array"),
    (partial(one_normal, total_size=50), "y is a minibatch or has total_size"),
    (lambda: one_normal(observed=pm.Minibatch(np.ones(50), batch_size=5), total_size=50),
     "y is a minibatch"),
    (lambda: one_normal(observed=pytensor.shared(np.ones(5))), "holds a pytensor.shared variable"),
    (lambda: one_normal(sigma=pytensor.shared(np.ones(5))), "holds a pytensor.shared variable"),
    (of_data_not_given, "pm.Data, and give it to a CustomDist as a parameter"),
    (partly_missing_rows, "y has missing values that PyMC cannot separate"),
]  # fmt: skip


@pytest.mark.parametrize(("write", "message"), REFUSED)
def test_models_without_by_record_terms_are_refused(quick, write, message):
    with pytest.raises(ValueError, match=message) as error:
        ppm.PseudoPosteriorMechanism(model_of(write))
    assert "\n" not in str(error.value)


def test_what_is_said_to_be_public_or_is_moved_by_other_steps_is_taken(quick):
    assert PyMCSynthesizer(model_of(of_other_data), public_potentials=["second"]).records == 5
    for wrong in (["third"], "second"):
        with pytest.raises(ValueError, match=r"^public_potentials must be a list from .'second'"):
            PyMCSynthesizer(model_of(of_other_data), public_potentials=wrong)
    for write in (of_the_response, of_its_values):
        with pytest.raises(ValueError, match="potential second depends on"):
            PyMCSynthesizer(model_of(write), public_potentials=["second"])

    def mixed():
        pm.Normal("y", pm.Normal("mu") + pm.Bernoulli("z", 0.5), observed=np.ones(5))
        dist = {"dist": lambda mu, size: pm.Normal.dist(mu, size=size)}
        pm.CustomDist("x", pm.Normal("nu"), observed=np.ones(5), **dist)
        pm.Poisson("n", 3.0, observed=np.ma.masked_array(np.ones(5, int), np.arange(5) == 2))

    assert PyMCSynthesizer(model_of(mixed)).responses == ("y", "x", "n")


def test_data_of_the_copy_stay_as_they_are(quick):
    model = model_of(poisson)
    synthesizer = PyMCSynthesizer(model, chains=1, warmup=10)
    first = synthesizer.fit(draws=5, random_seed=1)["posterior"].to_dataset()
    pm.set_data({"counts": COUNTS + 9, "x": X + 9.0}, model=model)
    with pytest.raises(TypeError, match="data"):
        pm.set_data({"x": X + 9.0}, model=synthesizer.model)
    assert first.equals(synthesizer.fit(draws=5, random_seed=1)["posterior"].to_dataset())


def test_other_bad_input(quick):
    with pm.Model() as outer:
        mu = pm.Normal("mu", 2.0, 1.0, initval=5.0)
        with pm.Model("inner") as inner:
            pm.Normal("y", mu, observed=np.ones(5))
        # a prior may hold a response, as long as there are no limits
        pm.Normal("average", outer["inner::y"].mean(), 1.0)
    with pytest.raises(ValueError, match="Nested sub-models"):
        PyMCSynthesizer(inner)
    synthesizer = PyMCSynthesizer(outer)
    assert synthesizer.responses == ("inner::y",)
    assert synthesizer.model.initial_point()["mu"] == 5.0
    for kind in (PyMCSynthesizer, ppm.PseudoPosteriorMechanism):
        with pytest.raises(TypeError, match="PyMC model; got int|pymc.Model; got int"):
            kind(3)
    wrong = {"chains": 0, "target_accept": 1, "nuts_sampler": "stan", "warmup": -1}
    for name, value in wrong.items():
        with pytest.raises(ValueError, match=f"{name} must be"):
            PyMCSynthesizer(outer, **{name: value})
    with pytest.raises(ValueError, match="weights has shape"):
        synthesizer.fit(np.ones(4))
    mechanism = ppm.PseudoPosteriorMechanism(outer, scale=0.5, warmup=7, chains=3)
    assert (mechanism.synthesizer.warmup, mechanism.synthesizer.chains) == (7, 3)
    with pytest.raises(TypeError, match=r"^warm_up: neither a setting of the mechanism .*warmup"):
        ppm.PseudoPosteriorMechanism(outer, warm_up=7)
