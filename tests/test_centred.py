"""Limits around a public value of the parameters: what it can be, and where the prior decides."""

import numpy as np
import pytest

import ppm
from ppm.rules import limited

MANY = np.r_[np.random.default_rng(2).poisson(5, 38), 0, 40]


def limits(width, center, smooth=True):
    return ppm.Censoring(-width / 2, width / 2, smooth, center)


def test_what_a_center_can_be_and_what_is_said_of_it():
    model = ppm.GammaPoisson(MANY, shape=0.5, rate=0.1)
    posterior = model.fit(draws=9, random_seed=1)["posterior"]
    one = posterior.isel(draw=[3])
    expected = limits(1.0, {"mu": one["mu"].item()})
    assert expected == limits(1.0, one) == limits(1.0, one.mean()) != limits(1.0, None)
    for wrong in posterior, {}, {"mu": np.nan}, "mu", 4.0, {"mu": "4"}:
        with pytest.raises(ValueError, match="^center(: mu)? must "):
            limits(1.0, wrong)
    with pytest.raises(ValueError, match="^limits with a center need levels"):
        ppm.Terms(np.ones(40), expected)
    # one for each group, or one for all
    sets, labels = dict.fromkeys("ab", {"mu": [4.0, 5.0]}), ["b", "a"] * 20
    groups = ppm.CandidateSynthesizer(model, sets, groups=labels)
    for center in {"mu": 5.0}, {"a": {"mu": 5.0}, "b": {"mu": 5.0}}:
        levels = limited(groups, limits(1.0, center)).levels
        assert np.array_equal(levels, limited(model, limits(1.0, {"mu": 5.0})).levels)
    for wrong in {"mean": 5.0}, {"a": {"mu": 6.0}}:
        with pytest.raises(
            ValueError, match="^center must hold one value of every parameter"
        ):
            limited(groups, limits(1.0, wrong))
    result = ppm.PseudoPosteriorMechanism(model, censor=expected).run(
        draws=50, random_seed=1
    )
    told = ppm.disclosure.release_statement(result, result.synthesize(1))
    assert "less its value at public parameters" in told and "with their center" in told


def test_a_center_with_few_records_warns_that_the_prior_decides():
    # under a flat prior most of the posterior is far from the center
    censor, near = limits(0.5, {"mu": 5.0}, smooth=False), []
    few, many = models = [
        ppm.GammaPoisson(np.full(records, 5)) for records in (30, 200)
    ]
    for model in models:
        weights, levels = np.full(model.records, 0.2), censor.levels(model)
        found = model.posterior(ppm.Terms(weights, censor, levels))
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
    around_5 = limits(1.0, {"mu": 5.0})
    for seed in range(15):
        counts = np.random.default_rng(seed).poisson(5, records)
        model = ppm.GammaPoisson(counts, shape=0.001, rate=0.001)
        terms = ppm.Terms(np.full(records, 0.3), around_5, around_5.levels(model))
        found = model.posterior(terms)
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
