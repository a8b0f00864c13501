"""Sampled audits: leaky mechanisms are caught, correct ones are not, in repeated runs."""

from functools import partial

import numpy as np
import pytest
import xarray as xr
from scipy import stats
from scipy.optimize import brentq
from test_mechanism import Chains

import ppm
from ppm.audits import from_draws

OUTLIER = [5, 4, 6, 7, 3, 5, 6, 4, 5, 40]
MODEL = ppm.GammaPoisson(OUTLIER, shape=1.0, rate=0.1)
RUNS = range(8)


audited = partial(ppm.audits.sampled, random_seed=1)


class TwoPoint(ppm.Synthesizer):
    """A parameter with two values: the loss comes as near to the oscillation as it can."""

    independent_draws = True

    def __init__(self, outcomes):
        self.records = len(outcomes)
        likely = np.where(np.array(outcomes) == 1, 0.9, 0.1)
        self.log_p = np.log(np.stack([1 - likely, likely]))
        # the weights of the fits, and the streams that they drew from
        self.heard = []

    def fit(self, terms, *, draws, random_seed, progress=False):
        weights = ppm.terms.as_terms(terms, self.records).weights
        self.heard.append((tuple(weights), random_seed.spawn_key))
        odds = weights @ (self.log_p[1] - self.log_p[0])
        rng = np.random.default_rng(random_seed)
        theta = (rng.uniform(size=draws) < 1 / (1 + np.exp(-odds))).astype(int)
        log_lik = xr.Dataset(
            {"x": (("chain", "draw", "record"), self.log_p[theta][None])}
        )
        return xr.DataTree.from_dict({"posterior": log_lik})

    def log_likelihood(self, fit):
        return fit["posterior"]["x"]

    def predict(self, fit, *, releases, random_seed=None):
        raise NotImplementedError


def test_half_of_epsilon_is_refuted_and_epsilon_is_not():
    settings = {"weighting": np.ones(2), "draws": 8_000}
    audits = [
        audited(TwoPoint([1, 1]), [0], **settings, random_seed=seed) for seed in RUNS
    ]
    exact = np.log(9)
    assert audits[0].oscillation_bound == pytest.approx(exact)
    assert all(found.refutes(exact / 2) for found in audits)
    # with and without the record, (1, 1) against (1): 82 to 1 against 9 to 1
    loss = np.log(82 / 10)
    assert [found.estimates[0] for found in audits] == pytest.approx(
        [loss] * 8, rel=0.1
    )
    assert all(found.lower <= loss for found in audits)
    # the event is the value that is seldom with the record
    assert all(
        one.evidence[0].with_record < one.evidence[0].without_record for one in audits
    )


def test_equal_distributions_give_next_to_no_evidence():
    samples = [np.random.default_rng(seed).normal(size=(2, 400)) for seed in range(50)]
    # every score twice: the event is then chosen on the samples that bound it
    doubled = [np.repeat(both[:, :200], 2, axis=1) for both in samples]

    def share(drawn):
        found = [ppm.audits.loss_lower_bound(*both, confidence=0.9) for both in drawn]
        return np.mean([evidence.lower > 0 for evidence in found])

    assert share(samples) <= 0.1 < 0.15 < share(doubled)


def test_both_directions_and_delta():
    rng = np.random.default_rng(1)
    with_record = np.where(rng.uniform(size=4_000) < 0.03, 10.0, rng.normal(size=4_000))
    sides = with_record, rng.normal(size=4_000)
    seen, absent = (ppm.audits.loss_lower_bound(*both) for both in (sides, sides[::-1]))
    assert min(seen.lower, absent.lower) > 1.5 and "at least" in seen.event
    # an event of probability 0.03 is what δ = 0.05 allows
    assert ppm.audits.loss_lower_bound(*sides, delta=0.05).lower < 0.5
    assert str(seen).startswith("evidence, not proof")


def test_the_limit_is_where_counts_as_extreme_have_the_probability_of_an_error():
    # 75 of 100 against 10 of 100 in the half that chooses and in the one that is counted
    often, seldom = (
        np.repeat(np.arange(100) < ones, 2).astype(float) for ones in (75, 10)
    )
    low = brentq(lambda p: stats.binom.sf(74, 100, p) - 0.025, 0.5, 0.75)
    high = brentq(lambda p: stats.binom.cdf(10, 100, p) - 0.025, 0.1, 0.5)
    for one, other in ((often, seldom), (seldom, often)):
        assert ppm.audits.loss_lower_bound(one, other).lower == pytest.approx(
            np.log(low / high)
        )


def test_the_fits_that_are_compared_are_independent_and_those_behind_weights_are_coupled():
    model = TwoPoint([1, 0, 0])
    # fewer bounds, lower weights
    found = audited(
        model, [2, 0], weighting=lambda b: np.full(b.size, b.size / 4), draws=8_000
    )
    # odds of 9 to 1 for a record: to the power of -3/4, and 0 and -1 without the third and first
    high, low = 1 / (1 + 9**0.75), 1 / 10
    assert found.estimates == pytest.approx(
        {2: np.log(0.5 / high), 0: np.log(high / low)}, rel=0.2
    )
    assert found.largest_weight_change == {2: 0.25, 0: 0.25}
    weights, streams = zip(*model.heard, strict=True)
    # the left-out record is in neither fit of its neighbour, nor among the bounds
    assert weights[:4] == ((1, 1, 1), (0.75, 0.75, 0.75), (1, 1, 0), (0.5, 0.5, 0))
    behind, compared = streams[::2], streams[1::2]
    assert len(behind) == len(compared) == 3 and len(set(behind)) == 1
    # were one stream used twice, samples of the two sides would not be independent
    assert len({*compared, *behind}) == 4


def test_recomputed_weights_move_and_fixed_ones_do_not():
    rules = partial(ppm.record_weights, truncate_at=3.5), np.full(10, 0.5)
    settings = {"records": [0, 9], "draws": 500, "delta": 0.01}
    moving, fixed = (audited(MODEL, weighting=rule, **settings) for rule in rules)
    assert moving.largest_weight_change[9] > 0.2
    assert set(fixed.largest_weight_change.values()) == {0.0}
    # jointly at 95 %: each alone at 97.5 %
    assert moving.confidence == 0.95 and moving.evidence[0].confidence == pytest.approx(
        0.975
    )
    assert moving.evidence[0].delta == 0.01 and moving.claim == 2 * moving.local_bound


def test_limits_keep_the_loss_within_their_width_and_the_estimate_is_the_exact_one():
    counts, prior = [5, 4, 6, 7, 3, 40], {"shape": 2.0, "rate": 0.4}
    model = ppm.GammaPoisson(counts, **prior)
    censor, weights = ppm.Censoring(-3.0, -1.0), np.full(6, 0.7)
    found = audited(model, [0, 5], weighting=weights, censor=censor, draws=20_000)
    exact = ppm.audits.censored(counts, censor, weights=weights, **prior)
    losses = dict(zip(exact["count"].values, exact["loss"].values, strict=True))
    assert found.estimates[0] == pytest.approx(losses[5], rel=0.05)
    assert 0.2 * losses[5] < found.evidence[0].lower < losses[5]
    # the outlier's term moves at μ where no draw is
    assert (
        found.estimates[5] < 0.01 < losses[40]
        and found.lower == found.evidence[0].lower
    )
    assert found.claim == 2.0 and not found.refutes() and found.refutes(0.1)
    assert found.oscillation_bound <= 2.0 and "confidential" in str(found)
    # without them the outlier's loss is above any such width
    free = audited(model, [5], weighting=weights, draws=20_000)
    assert free.refutes(censor.width) and free.estimates[5] > 5.0


def test_the_estimate_is_normalised_also_by_sides_of_different_sizes():
    rng = np.random.default_rng(2)
    here, there = rng.normal(1, 1, 1_000), rng.normal(0, 1, 8_000)
    # the log ratio of the two densities is x - 1 / 2
    loss = np.abs(np.concatenate([here, there]) - 0.5).max()
    assert from_draws._bridged(here, there) == pytest.approx(loss, abs=0.1)


def frozen(mean):
    """The second chain stands still from its middle on."""
    mean[1, mean.shape[1] // 2 :] = mean[1, 0]
    return mean


def apart(mean):
    return mean + [[0.0], [3.0]]


def repeated(mean):
    """Every draw stands twenty times, in the second chain in the reverse order."""
    once = np.repeat(mean[0, ::20], 20)
    return np.stack([once, once[::-1]])


def some_twice(mean):
    """Of every four draws one stands twice, so that five are worth less than four."""
    part = mean[:, : mean.shape[1] // 5 * 4]
    return np.repeat(part, np.resize([1, 1, 1, 2], part.shape[1]), axis=1)


def emptied(mean):
    """A draw of each chain is 0, which allows no count but 0."""
    mean[:, 0] = 0.0
    return mean


def evidence(
    change=np.copy, draws=200, weights=(1.0,) * 4, counts=(5, 4, 6, 9), **settings
):
    return audited(
        Chains(counts, change, **settings), [3], weighting=weights, draws=draws
    )


@pytest.mark.parametrize(
    ("change", "settings", "message"),
    [
        (frozen, {}, "because of the fit of the whole database: a chain stood still"),
        (
            frozen,
            {"since": 2},
            "because of the fit without record 3: a chain stood still",
        ),
        (
            np.copy,
            {"diverging": 41},
            "because of the fit of the whole database: 41 of 400 draws div",
        ),
        (
            apart,
            {"independent_draws": True},
            "because chains disagree: R-hat of the score",
        ),
        (
            apart,
            {},
            "because chains disagree: R-hat of the score is .* in the fit with rec",
        ),
        # the record, which is impossible at two draws, has no weight in the second fit
        (
            emptied,
            {"since": 2, "counts": [0, 0, 0, 9]},
            "because chains disagree: R-hat of the score is nan in the fit without rec",
        ),
    ],
)
def test_chains_that_cannot_be_trusted_give_no_evidence(change, settings, message):
    with pytest.raises(ppm.ChainsDisagreeError, match=f"^no evidence, {message}"):
        evidence(change, **settings)


def test_chains_that_agree_give_evidence_of_as_many_draws_as_are_effectively_independent():
    assert evidence(diverging=40).draws > 100
    # a record whose weight is 0 already has the same score, 0, in every draw
    none = evidence(weights=[1.0, 1.0, 1.0, 0.0])
    assert none.lower == 0.0 and not none.refutes(0.0)
    # two chains of 400 different values
    few, some, many = (
        evidence(of, 8_000).draws for of in (repeated, some_twice, np.copy)
    )
    assert few <= 1_000 < some <= 8_000 <= many
    # the side with fewer of them counts
    assert evidence(repeated, 8_000, since=2).draws <= 1_000
    with pytest.raises(ValueError, match="^draws must be more than 240: of those of"):
        evidence(repeated, 240)
