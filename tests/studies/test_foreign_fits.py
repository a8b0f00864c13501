"""A fit of other records than the synthesizer's own is refused, whoever hands it over."""

import numpy as np
import pymc as pm
import pytensor
import pytest
import xarray as xr

import ppm
import ppm.synthesizers.pymc_model

RNG = np.random.default_rng(5)
COUNTS = RNG.poisson(20, 12)
INCOME = RNG.standard_normal(12)
X = np.column_stack([np.ones(12), RNG.standard_normal(12)])
MIXTURE = {"components": 2, "warmup": 20}


def pymc_model(y):
    with pm.Model() as model:
        mu = pm.Normal("mu")
        pm.Normal("y", mu, 1.0, observed=y)
    return model


def two_responses(y):
    with pm.Model() as model:
        mu = pm.Normal("mu")
        pm.Normal("y", mu, 1.0, observed=y)
        pm.Poisson("children", pm.math.exp(mu), observed=COUNTS)
    return model


MAKERS = {
    "GammaPoisson": (ppm.GammaPoisson, COUNTS, ("mu",)),
    "FiniteMixture": (lambda y: ppm.FiniteMixture(y, X, **MIXTURE), INCOME, None),
    "PyMCSynthesizer": (lambda y: ppm.PyMCSynthesizer(pymc_model(y)), INCOME, ("mu",)),
    "two responses": (lambda y: ppm.PyMCSynthesizer(two_responses(y)), INCOME, ("mu",)),
}


@pytest.fixture(autouse=True)
def quick():
    """Functions run by plain Python, which needs no compilation."""
    with pytensor.config.change_flags(mode="FAST_COMPILE", cxx=""):
        yield


def fit_of(synthesizer, parameters):
    """What a fit looks like, without running a sampler."""
    if parameters is None:
        draws = ppm.FiniteMixture(INCOME, X, **MIXTURE).fit(draws=5, random_seed=1)
        posterior = draws["posterior"].to_dataset()
    else:
        mean = np.random.default_rng(1).gamma(20.0, 0.1, size=(2, 5))
        posterior = xr.Dataset({name: (("chain", "draw"), mean) for name in parameters})
    log_lik = synthesizer.log_likelihood_at(posterior)
    name = {"GammaPoisson": "counts"}.get(
        type(synthesizer).__name__, "_and_".join(getattr(synthesizer, "responses", ["response"]))
    )
    return xr.DataTree.from_dict(
        {"posterior": posterior, "log_likelihood": log_lik.to_dataset(name=name)}
    )


@pytest.mark.parametrize("name", MAKERS)
def test_every_synthesizer_knows_its_own_fit_from_one_of_other_records(name, tmp_path):
    make, records, parameters = MAKERS[name]
    own = make(records)
    fit = fit_of(own, parameters)
    groups = {}
    for group in fit.children:
        fit[group].to_dataset().to_netcdf(tmp_path / f"{group}.nc", engine="scipy")
        groups[group] = xr.load_dataset(tmp_path / f"{group}.nc", engine="scipy")
    kept = xr.DataTree.from_dict(groups)
    weights = np.full(12, 0.5)
    for good in (fit, kept):
        bound = ppm.mechanism.bound_fit(
            make(records.copy()), good, weights, unweighted=good, allow_disagreement=True
        )
        assert bound.local_bound == ppm.local_bound(own.log_likelihood(fit), weights)
    changed = records.copy()
    changed[7] += 1
    for other in (changed, records[::-1]):
        other = make(other.copy())
        for settings in ({"fit": fit}, {"fit": fit_of(other, parameters), "unweighted": fit}):
            with pytest.raises(ValueError, match="is no fit of this synthesizer") as error:
                ppm.mechanism.bound_fit(other, weights=weights, **settings)
            named = "unweighted" if "unweighted" in settings else "fit"
            assert str(error.value).startswith(f"{named} is no fit") and "\n" not in str(error)


def test_a_fit_of_other_records_is_refused_before_a_run_starts(monkeypatch):
    fit = ppm.GammaPoisson(COUNTS).fit(draws=20, random_seed=1)
    other = ppm.GammaPoisson(COUNTS + 1)
    mechanism = ppm.PseudoPosteriorMechanism(other)

    def refuse(*arguments, **settings):
        raise AssertionError("fitted")

    monkeypatch.setattr(ppm.GammaPoisson, "fit", refuse)
    for call in (
        lambda: mechanism.run(draws=20, unweighted=fit),
        lambda: ppm.studies.match_local_bound(other, 1.0, unweighted=fit, draws=20),
    ):
        with pytest.raises(ValueError, match="^unweighted is no fit of this synthesizer: its log"):
            call()
    # its own fit goes through the check
    with pytest.raises(AssertionError, match="fitted"):
        ppm.PseudoPosteriorMechanism(ppm.GammaPoisson(COUNTS)).run(draws=20, unweighted=fit)


def test_a_fit_of_another_model_or_length_is_refused():
    counts = ppm.GammaPoisson(COUNTS).fit(draws=20, random_seed=1)
    for other in (
        ppm.FiniteMixture(INCOME, X, **MIXTURE), ppm.GammaPoisson(COUNTS[:5]),
        ppm.PyMCSynthesizer(pymc_model(INCOME)),
    ):
        for wrong in (counts, xr.DataTree(), {"posterior": 3}, None):
            with pytest.raises(ValueError, match="^fit is no fit of this synthesizer"):
                ppm.mechanism.bound_fit(other, wrong, np.ones(other.records))


def test_the_first_and_the_last_draw_are_compared():
    synthesizer = ppm.GammaPoisson(COUNTS)
    for place in (0, -1):
        fit = synthesizer.fit(draws=20, random_seed=1)
        fit["log_likelihood"]["counts"][0, place, 3] += 0.01
        with pytest.raises(ValueError, match="^fit is no fit"):
            ppm.mechanism.bound_fit(synthesizer, fit, np.ones(12))


def test_a_synthesizer_that_cannot_compute_it_again_is_taken_at_its_word():
    class Plain:
        """The protocol and nothing else."""

        independent_draws = True
        records = 12

        def __init__(self, counts):
            self.inner = ppm.GammaPoisson(counts)
            self.fit, self.predict = self.inner.fit, self.inner.predict
            self.log_likelihood = self.inner.log_likelihood

    fit = Plain(COUNTS).fit(draws=20, random_seed=1)
    mechanism = ppm.PseudoPosteriorMechanism(Plain(COUNTS + 1))
    assert mechanism.run(draws=20, random_seed=1, unweighted=fit).local_bound > 0


def test_nothing_in_a_fit_is_computed_from_the_records_but_its_draws_and_log_likelihoods():
    fit = ppm.GammaPoisson(COUNTS).fit(draws=20, random_seed=1)
    assert fit.attrs == {} and set(fit.children) == {"posterior", "log_likelihood"}
    for group in fit.children.values():
        assert group.attrs == {} and all(v.attrs == {} for v in group.data_vars.values())
