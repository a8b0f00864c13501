"""Limits around a public value of the parameters; counts' quadrature and audit are beside theirs."""

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import ppm

Y, X = np.random.default_rng(1).normal(1, 1, (2, 8))
MANY = np.r_[np.random.default_rng(2).poisson(5, 38), 0, 40]


def limits(width, center, smooth=True):
    return ppm.Censoring(-width / 2, width / 2, smooth, center)


@pytest.mark.parametrize("smooth", [True, False])
def test_chains_have_the_centred_terms_as_target(smooth):
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu", 0, 3), 1.0, observed=Y)
    synthesizer, weights = ppm.PyMCSynthesizer(model), np.linspace(0.0, 1.4, 8)
    censor, at = limits(1.0, {"mu": 0.8}, smooth), np.r_[-40.0, -1.0, 0.8, 2.0, 1e3]
    # a fit without limits has no level left
    log_p, prior = stats.norm.logpdf(Y[:, None], at), stats.norm.logpdf(at, 0, 3)
    for used, terms in (
        (
            censor,
            censor.term(
                weights[:, None] * (log_p - stats.norm.logpdf(Y, 0.8)[:, None])
            ),
        ),
        (None, weights[:, None] * log_p),
    ):
        limited = synthesizer._limited(used)
        limited.alpha.set_value(weights)
        density = limited.compile_logp()
        assert [density({"mu": mu}) for mu in at] == pytest.approx(
            prior + terms.sum(axis=0)
        )
    columns = np.c_[np.ones(8), X]
    mixture = ppm.FiniteMixture(Y, columns, components=1, warmup=30, parallel=False)
    center = {"pi": [1.0], "beta": [[1.0, 0.5]], "sigma": [2.0]}
    levels = stats.norm.logpdf(Y, columns @ [1.0, 0.5], 2.0)
    for used, right in (
        (limits(1.0, center, smooth), True),
        (limits(1.0, None, smooth), False),
    ):
        fit = mixture.fit(weights, draws=20, random_seed=1, censor=used)
        terms = used.terms(mixture.log_likelihood(fit), weights, levels)[..., 1:].sum(
            axis=-1
        )
        total = fit["sample_stats"]["weighted_log_likelihood"].values
        assert np.allclose(total, terms) == right


def test_a_finite_set_takes_one_center_or_one_for_each_group():
    sets, labels = (
        {g: {"mu": np.linspace(1, 12, 30)} for g in "ab"},
        np.repeat(["b", "a"], 20),
    )
    log_lik = stats.poisson.logpmf(MANY, sets["a"]["mu"][:, None])
    model = ppm.CandidateSynthesizer(ppm.GammaPoisson(MANY), sets, groups=labels)
    for center, mu in (
        ({"mu": 5.0}, 5.0),
        ({"a": {"mu": 6.0}, "b": {"mu": 4.0}}, [4.0, 6.0]),
    ):
        censor = limits(0.8, center)
        terms = censor.term(
            log_lik - stats.poisson.logpmf(MANY, np.resize(mu, 2).repeat(20))
        )
        expected = np.exp(terms[:, :20].sum(axis=1))
        assert np.allclose(
            model.probabilities(censor=censor)["b"], expected / expected.sum()
        )
        assert np.allclose(
            model.extremes(censor=censor).oscillations, np.ptp(terms, axis=0)
        )
    for wrong in {"mean": 5.0}, {"a": {"mu": 6.0}}:
        with pytest.raises(
            ValueError, match="^center must hold one value of every parameter"
        ):
            model.fit(censor=limits(1.0, wrong))


def test_what_a_center_can_be_and_what_is_said_of_it():
    model = ppm.GammaPoisson(MANY, shape=0.5, rate=0.1)
    posterior = model.fit(draws=9, random_seed=1)["posterior"]
    one = posterior.isel(draw=[3])
    expected = limits(1.0, {"mu": one["mu"].item()})
    assert expected == limits(1.0, one) == limits(1.0, one.mean()) != limits(1.0, None)
    for wrong in posterior, {}, {"mu": np.nan}, "mu", 4.0, {"mu": "4"}:
        with pytest.raises(ValueError, match="^center(: mu)? must "):
            limits(1.0, wrong)
    with pytest.raises(ValueError, match="^levels must be given with a center"):
        expected.terms([[1.0]])
    result = ppm.PseudoPosteriorMechanism(model, censor=expected).run(
        draws=50, random_seed=1
    )
    told = ppm.disclosure.release_statement(result, result.synthesize(1))
    assert result.strict and result.epsilon() == 1.0 >= result.oscillation_bound
    assert "less its value at public parameters" in told and "with their center" in told


def test_a_center_with_few_records_warns_that_the_prior_decides():
    # under a flat prior most of the posterior is far from the center
    censor, near = limits(0.5, {"mu": 5.0}, smooth=False), []
    few, many = models = [
        ppm.GammaPoisson(np.full(records, 5)) for records in (30, 200)
    ]
    for model in models:
        found = model.posterior(np.full(model.records, 0.2), censor=censor)
        close = np.abs(found.nodes - np.log(5)) < 0.7
        near.append(np.exp(found.log_parts[close] - found.log_integral).sum())
    assert near[0] < 0.5 < 0.999 < near[1]
    with pytest.warns(
        UserWarning, match="^censor: at the center all terms together are 7.5 nats"
    ):
        ppm.PseudoPosteriorMechanism(few, censor=censor)
    # warnings are errors here
    ppm.PseudoPosteriorMechanism(many, censor=censor)


@pytest.mark.parametrize(
    ("records", "least", "most"), [(8, 0.95, 0.97), (40, 1e-5, 0.001)]
)
def test_the_share_of_draws_far_from_a_center_is_the_one_that_the_notes_tell(
    records, least, most
):
    """By quadrature over a factor of 2 on both sides, in the median of 15 tables."""
    near, far = np.log(5.0) + np.linspace(-np.log(2.0), np.log(2.0), 4001), []
    for seed in range(15):
        counts = np.random.default_rng(seed).poisson(5, records)
        model = ppm.GammaPoisson(counts, shape=0.001, rate=0.001)
        found = model.posterior(np.full(records, 0.3), censor=limits(1.0, {"mu": 5.0}))
        far.append(1.0 - np.trapezoid(np.exp(found.logpdf(np.exp(near)) + near), near))
    assert least < np.median(far) < most


def test_limits_from_a_public_table_are_placed_around_its_center():
    public = ppm.GammaPoisson(MANY)
    reference = public.log_likelihood(public.fit(draws=200, random_seed=1))
    around = {"center": {"mu": 5.0}, "synthesizer": public}
    both = [
        ppm.censoring.censoring_limits(0.5, reference, **used) for used in ({}, around)
    ]
    (level, weight), (centred, larger) = both
    # movement takes less room than the level
    assert (
        larger > 2 * weight and centred.center == {"mu": 5.0} and level.center is None
    )
    with pytest.raises(ValueError, match="^synthesizer must be given with center"):
        ppm.censoring.censoring_limits(0.5, reference, center={"mu": 5.0})
