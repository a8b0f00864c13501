"""Sampled audits: leaky mechanisms are caught, correct ones are not, in repeated runs."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

import ppm
from ppm_book import audits
from ppm_book.audits import from_draws

OUTLIER = [5, 4, 6, 7, 3, 5, 6, 4, 5, 40]
MODEL = ppm.GammaPoisson(OUTLIER, shape=1.0, rate=0.1)
RUNS = range(8)


audited = partial(audits.sampled, random_seed=1)


class TwoPoint(ppm.Model):
    """A parameter with two values: the loss comes as near to the oscillation as it can."""

    def __init__(self, outcomes):
        self.records = len(outcomes)
        likely = np.where(np.array(outcomes) == 1, 0.9, 0.1)
        self.both = np.log(np.stack([1 - likely, likely]))
        # the weights of the fits, and the states of the streams that they drew from
        self.heard = []

    def draw(self, terms, draws, rng):
        state = rng.bit_generator.state["state"]["state"]
        self.heard.append((tuple(terms.weights), state))
        odds = terms.weights @ (self.both[1] - self.both[0])
        theta = rng.uniform(size=draws) < 1 / (1 + np.exp(-odds))
        return {"theta": theta.astype(int)}

    def log_p(self, theta):
        return self.both[theta["theta"]]

    def predict(self, theta, rng):
        raise NotImplementedError


@dataclass(frozen=True)
class ByNumber(ppm.Rule):
    """Fewer records, lower weights."""

    def terms(self, model, fit):
        fit(ppm.Unweighted())
        return ppm.Terms(np.full(model.records, model.records / 4))


@dataclass(eq=False)
class Chains(ppm.GammaPoisson):
    """Two chains of the closed form, which a test changes from some fit on."""

    counts: tuple
    change: callable = np.copy
    since: int = 1
    diverging: int = 0
    chains = 2
    sample_stats = ("diverging",)
    fits = 0

    def __post_init__(self):
        super().__init__(self.counts)

    def draw(self, terms, draws, rng, *, warmup=0, start=None):
        self.fits += 1
        mean = self.posterior(terms.weights).rvs(size=(2, draws), random_state=rng)
        mean = self.change(mean) if self.fits >= self.since else mean
        return {"mu": mean.ravel(), "diverging": np.arange(mean.size) < self.diverging}


def test_half_of_epsilon_is_refuted_and_epsilon_is_not():
    rule = ppm.Unweighted()
    found = [
        audited(TwoPoint([1, 1]), [0], rule, draws=8_000, random_seed=seed)
        for seed in RUNS
    ]
    exact = np.log(9)
    assert found[0].oscillation_bound == pytest.approx(exact)
    assert all(one.refutes(exact / 2) for one in found)
    # with and without the record, (1, 1) against (1): 82 to 1 against 9 to 1
    loss = np.log(82 / 10)
    assert [one.estimates[0] for one in found] == pytest.approx([loss] * 8, rel=0.1)
    assert all(one.lower <= loss for one in found)
    # the event is the value that is seldom with the record
    assert all(
        one.evidence[0].with_record < one.evidence[0].without_record for one in found
    )


def test_equal_distributions_give_next_to_no_evidence():
    samples = [np.random.default_rng(seed).normal(size=(2, 400)) for seed in range(50)]
    # every score twice: the event is then chosen on the samples that bound it
    doubled = [np.repeat(both[:, :200], 2, axis=1) for both in samples]

    def share(drawn):
        found = [audits.loss_lower_bound(*both, confidence=0.9) for both in drawn]
        return np.mean([evidence.lower > 0 for evidence in found])

    assert share(samples) <= 0.1 < 0.15 < share(doubled)


def test_both_directions_and_delta():
    rng = np.random.default_rng(1)
    with_record = np.where(rng.uniform(size=4_000) < 0.03, 10.0, rng.normal(size=4_000))
    sides = with_record, rng.normal(size=4_000)
    seen, absent = (audits.loss_lower_bound(*both) for both in (sides, sides[::-1]))
    assert min(seen.lower, absent.lower) > 1.5 and "at least" in seen.event
    # an event of probability 0.03 is what δ = 0.05 allows
    assert audits.loss_lower_bound(*sides, delta=0.05).lower < 0.5
    assert str(seen).startswith("evidence, not proof")
    few = audits.loss_lower_bound(sides[0], sides[1][:1000], delta=0.01)
    assert (few.delta, few.samples) == (0.01, (2000, 500))
    assert f"{few.with_record} of 2000 samples with the record" in str(few)
    assert f"{few.without_record} of 500 without it" in str(few)
    assert f"at least {few.lower:.2f} nats at 95% confidence ({few.event}:" in str(few)


def test_the_limit_is_where_counts_as_extreme_have_the_probability_of_an_error():
    # 75 of 100 against 10 of 100 in the half that chooses and in the one that is counted
    often, seldom = (
        np.repeat(np.arange(100) < ones, 2).astype(float) for ones in (75, 10)
    )
    low = brentq(lambda p: stats.binom.sf(74, 100, p) - 0.025, 0.5, 0.75)
    high = brentq(lambda p: stats.binom.cdf(10, 100, p) - 0.025, 0.1, 0.5)
    for one, other in ((often, seldom), (seldom, often)):
        assert audits.loss_lower_bound(one, other).lower == pytest.approx(
            np.log(low / high)
        )


def test_the_fits_that_are_compared_are_independent_and_those_behind_weights_are_coupled():
    model = TwoPoint([1, 0, 0])
    found = audited(model, [2, 0], ByNumber(), draws=8_000)
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
    settings = {"records": [0, 9], "draws": 500, "delta": 0.01}
    moving, fixed, given = (
        audited(MODEL, rule=rule, **settings)
        for rule in (
            ppm.ByRisk(truncate_at=3.5),
            ppm.Terms(np.full(10, 0.5)),
            ppm.Given([0.5] * 10),
        )
    )
    assert moving.largest_weight_change[9] > 0.2
    assert set(fixed.largest_weight_change.values()) == {0.0}
    assert fixed == given
    # jointly at 95 %: each alone at 97.5 %
    assert moving.confidence == 0.95 and moving.evidence[0].confidence == pytest.approx(
        0.975
    )
    assert moving.evidence[0].delta == 0.01 and moving.claim == 2 * moving.local_bound


def test_any_rule_is_asked_again_without_the_record():
    # its search has fits of its own
    found = audited(MODEL, [9], ppm.OneWeight(epsilon=2.0), draws=500)
    assert found.largest_weight_change[9] > 0.05
    # without the 40 no count is alone
    found = audited(MODEL, [0, 9], ppm.ByCount(0.3), draws=500)
    assert all(found.largest_weight_change[record] > 0 for record in (0, 9))


@pytest.mark.parametrize(
    "rule", [ppm.Limited(ppm.Limits(-3.0, -1.0), weight=0.7), ppm.Capped(2.0)]
)
def test_a_width_keeps_the_loss_within_it_and_the_estimate_is_the_exact_one(rule):
    counts = [5, 4, 6, 7, 3, 40]
    # so few that each is drawn
    model = ppm.Candidates(ppm.GammaPoisson(counts), {"mu": [4.0, 5.0, 6.0, 8.0]})
    found = audited(model, [0, 5], rule, draws=20_000)
    terms = rule.terms(model, None)
    whole = model.probabilities(terms)
    for record in (0, 5):
        without = terms.weights * (np.arange(6) != record)
        rest = model.probabilities(ppm.Terms(without, terms.limits, terms.levels))
        loss = np.abs(np.log(whole / rest)).max()
        assert found.estimates[record] == pytest.approx(loss, rel=0.1, abs=0.02)
        assert found.evidence[record].lower < loss + 1e-9
    assert 0.1 < found.lower and found.claim == 2.0 and not found.refutes()
    assert found.refutes(0.1)
    assert found.oscillation_bound <= 2.0 + 1e-9 and "confidential" in str(found)
    # without them the outlier's loss is above any such width
    free = audited(model, [5], ppm.Given([0.7] * 6), draws=20_000)
    assert free.refutes(2.0) and free.estimates[5] > 5.0


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
    model = Chains(counts, change, **settings)
    return audited(model, [3], ppm.Terms(weights), draws=draws)


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


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"model": [3, 4]}, "model must be a ppm.Model; got list"),
        ({"rule": ppm.record_weights}, "rule must be a ppm.Rule or ppm.Terms; got"),
        ({"records": [10]}, "records must"),
        ({"draws": 39}, "draws must"),
        ({"confidence": 1.0}, "confidence must"),
        ({"rule": ppm.Given([1.0] * 9)}, "weights must have one weight for each"),
    ],
)
def test_what_cannot_be_sampled_is_refused_before_any_fit(wrong, message):
    with pytest.raises((TypeError, ValueError), match=f"^{message}"):
        audited(**{"model": MODEL, "records": [9]} | wrong)
