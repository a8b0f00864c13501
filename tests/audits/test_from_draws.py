"""Sampled audits: leaky mechanisms are caught, correct ones are not, in repeated runs."""

from functools import partial

import numpy as np
import pytest
import xarray as xr
from scipy import stats
from scipy.optimize import brentq

import ppm

OUTLIER = [5, 4, 6, 7, 3, 5, 6, 4, 5, 40]
RUNS = range(12)


class TwoPoint:
    """A parameter with two values: the loss comes as near to the oscillation as it can."""

    independent_draws = True

    def __init__(self, outcomes):
        self.outcomes = np.asarray(outcomes)
        self.records = self.outcomes.size
        likely = np.where(self.outcomes == 1, 0.9, 0.1)
        self.log_p = np.log(np.stack([1 - likely, likely]))

    def fit(self, weights=None, *, draws=1000, random_seed=None, progress=False):
        weights = np.ones(self.records) if weights is None else weights
        odds = weights @ (self.log_p[1] - self.log_p[0])
        rng = np.random.default_rng(random_seed)
        theta = (rng.uniform(size=draws) < 1 / (1 + np.exp(-odds))).astype(int)
        return xr.DataTree.from_dict(
            {
                "posterior": xr.Dataset({"theta": (("chain", "draw"), theta[None])}),
                "log_likelihood": xr.Dataset(
                    {"x": (("chain", "draw", "record"), self.log_p[theta][None])}
                ),
            }
        )

    def log_likelihood(self, fit):
        return fit["log_likelihood"]["x"]

    def predict(self, fit, *, releases, random_seed=None):
        raise NotImplementedError


def test_half_of_epsilon_is_refuted_and_epsilon_is_not():
    synthesizer, weights = TwoPoint([1, 1]), np.ones(2)
    audits = [
        ppm.audits.sampled(synthesizer, [0], weighting=weights, draws=8_000, random_seed=seed)
        for seed in RUNS
    ]
    exact = np.log(9)
    assert audits[0].oscillation_bound == pytest.approx(exact)
    assert all(found.refutes(exact / 2) for found in audits)
    assert sum(found.refutes(exact) for found in audits) <= 1
    # with and without the record, (1, 1) against (1): 82 to 1 against 9 to 1
    loss = np.log(82 / 10)
    assert [found.estimates[0] for found in audits] == pytest.approx([loss] * 12, rel=0.1)
    assert all(found.lower <= loss for found in audits)


def test_an_outlier_with_weight_1_is_caught_and_with_its_papers_weight_it_is_not():
    synthesizer = ppm.GammaPoisson(OUTLIER, shape=1.0, rate=0.1)
    promised = ppm.PseudoPosteriorMechanism(synthesizer).run(random_seed=1).epsilon()
    assert promised < 10

    def runs(weighting):
        return [
            ppm.audits.sampled(
                synthesizer, [9], weighting=weighting, draws=4_000, random_seed=seed
            )
            for seed in RUNS
        ]

    leaky = runs(np.ones(10))
    # 4,000 draws cannot show all of it, but more than a claim of 4 nats
    assert all(found.refutes(4.0) for found in leaky)
    correct = runs(ppm.record_weights)
    assert not any(found.refutes(promised) or found.refutes() for found in correct)
    assert sum(found.refutes(4.0) for found in correct) <= 1


def test_the_bound_holds_for_normal_scores_whose_ratio_is_known():
    # two normal densities one apart: the log ratio of P(X >= t) is known for every t
    held, found = 0, []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        evidence = ppm.audits.loss_lower_bound(rng.normal(1, 1, 400), rng.normal(0, 1, 400))
        level = float(evidence.event.split()[-1])
        tail = stats.norm.sf if "least" in evidence.event else stats.norm.cdf
        truth = abs(np.log(tail(level, 1) / tail(level, 0)))
        held += evidence.lower <= truth
        found.append(evidence.lower)
    assert held >= 186  # 190 expected at 95 %
    assert np.mean(found) > 0.5


def test_equal_distributions_give_next_to_no_evidence():
    samples = [np.random.default_rng(seed).normal(size=(2, 400)) for seed in range(100)]
    alarms = np.mean(
        [ppm.audits.loss_lower_bound(*both, confidence=0.9).lower > 0 for both in samples]
    )
    assert alarms <= 0.1
    # every score twice: the event is then chosen on the samples that bound it
    doubled = [np.repeat(both[:, :200], 2, axis=1) for both in samples]
    alarms = np.mean(
        [ppm.audits.loss_lower_bound(*both, confidence=0.9).lower > 0 for both in doubled]
    )
    assert alarms > 0.2


def test_both_directions_and_delta():
    rng = np.random.default_rng(1)
    with_record = np.where(rng.uniform(size=4_000) < 0.03, 10.0, rng.normal(size=4_000))
    without = rng.normal(size=4_000)
    seen = ppm.audits.loss_lower_bound(with_record, without)
    assert seen.lower > 1.5 and "at least" in seen.event
    assert ppm.audits.loss_lower_bound(without, with_record).lower > 1.5  # the absence can show too
    # an event of probability 0.03 is what δ = 0.05 allows
    assert ppm.audits.loss_lower_bound(with_record, without, delta=0.05).lower < 0.5
    assert str(seen).startswith("evidence, not proof")
    assert "proof" not in str(seen).replace("not proof", "")


def test_the_limit_is_where_counts_as_extreme_have_the_probability_of_an_error():
    # 75 of 100 against 10 of 100 in the half that chooses and in the one that is counted
    often, seldom = (np.repeat(np.arange(100) < ones, 2).astype(float) for ones in (75, 10))
    low = brentq(lambda p: stats.binom.sf(74, 100, p) - 0.025, 0.5, 0.75)
    high = brentq(lambda p: stats.binom.cdf(10, 100, p) - 0.025, 0.1, 0.5)
    for one, other in ((often, seldom), (seldom, often)):
        assert ppm.audits.loss_lower_bound(one, other).lower == pytest.approx(np.log(low / high))


def test_the_table_shows_the_weighted_bounds_of_both_values():
    # α log p is α log 0.1 or α log 0.9, so that 2Δ is not the oscillation
    weights = np.array([0.5, 0.3, 0.4])
    found = ppm.audits.sampled(
        TwoPoint([1, 0, 0]), [2, 0], weighting=weights, draws=2_000, random_seed=1
    )
    table = found.table()
    assert table.index.tolist() == [2, 0]
    assert table["2Δ"].tolist() == pytest.approx(2 * [2 * 0.5 * np.log(10)])
    assert table["oscillation"].tolist() == pytest.approx(2 * [0.5 * np.log(9)])
    # the posterior odds are 9 to the powers of the weights, of opposite sign for the first record
    odds = {left_out: 9.0 ** np.delete([0.5, -0.3, -0.4], left_out).sum() for left_out in (2, 0)}
    whole = 9.0**-0.2
    for left_out, other in odds.items():
        ratios = np.log([(1 + other) / (1 + whole), whole / other * (1 + other) / (1 + whole)])
        loss = np.abs(ratios).max()
        row = table.loc[left_out]
        assert row["estimate"] == pytest.approx(loss, rel=0.15)
        assert 0.2 * loss < row["lower bound"] < loss


class Heard(TwoPoint):
    """Notes the weights of its fits, and the streams that they drew from."""

    def fit(self, weights=None, *, draws=1000, random_seed=None, progress=False):
        self.heard.append((weights.tolist(), random_seed.spawn_key))
        return super().fit(weights, draws=draws, random_seed=random_seed)


def test_the_fits_that_are_compared_are_independent_and_those_behind_weights_are_coupled():
    synthesizer = Heard([1, 0, 0])
    synthesizer.heard = []
    ppm.audits.sampled(
        synthesizer, [2, 0], weighting=lambda log_lik: np.full(log_lik.shape[-1], 0.5), draws=100,
        random_seed=1,
    )
    behind = [key for weights, key in synthesizer.heard if max(weights) == 1.0]
    compared = [key for weights, key in synthesizer.heard if max(weights) == 0.5]
    assert len(behind) == len(compared) == 3
    assert len(set(behind)) == 1
    # were one stream used twice, samples of the two sides would not be independent
    assert len({*compared, *behind}) == 4


@pytest.mark.parametrize(("lower", "refuted"), [(1.9, False), (2.1, True)])
def test_the_claim_that_is_refuted_by_default_is_twice_the_bound(lower, refuted):
    few, most = (
        ppm.audits.LossEvidence(
            lower=value, confidence=0.95, event="", with_record=1, without_record=0,
            samples=(20, 20),
        )
        for value in (0.0, lower)
    )
    found = ppm.audits.SampledAudit(
        evidence={0: few, 7: most}, estimates={}, moved={}, local_bound=1.0, oscillation_bound=0.5,
        confidence=0.95, draws=20,
    )
    assert found.refutes() == refuted and found.lower == lower
    assert found.refutes(lower - 0.1) and not found.refutes(lower)


def test_recomputed_weights_move_and_fixed_ones_do_not():
    synthesizer = ppm.GammaPoisson(OUTLIER, shape=1.0, rate=0.1)
    rule = partial(ppm.record_weights, truncate_at=3.5)
    found = ppm.audits.sampled(synthesizer, [0, 9], weighting=rule, draws=500, random_seed=1)
    assert found.moved[9] > 0.2
    assert found.table().index.tolist() == [0, 9]
    # jointly at 95 %: each alone at 97.5 %
    assert found.confidence == 0.95 and found.evidence[0].confidence == pytest.approx(0.975)
    fixed = ppm.audits.sampled(
        synthesizer, [0, 9], weighting=np.full(10, 0.5), draws=500, random_seed=1
    )
    assert set(fixed.moved.values()) == {0.0}
    again = ppm.audits.sampled(synthesizer, [0, 9], weighting=rule, draws=500, random_seed=1)
    assert again.table().equals(found.table())


def test_the_estimate_is_the_closed_form_loss():
    synthesizer = ppm.GammaPoisson([5, 4, 6, 7, 3, 12], shape=1.0, rate=0.1)
    weights = np.full(6, 0.7)
    found = ppm.audits.sampled(
        synthesizer, [5], weighting=weights, draws=20_000, random_seed=1
    )
    fit = synthesizer.fit(weights, draws=20_000, random_seed=2)
    left = weights * (np.arange(6) != 5)
    other = synthesizer.fit(left, draws=20_000, random_seed=3)
    exact = max(
        float(np.abs(synthesizer.leave_one_out_loss(part, weights).isel(record=5)).max())
        for part in (fit, other)
    )
    assert found.estimates[5] == pytest.approx(exact, rel=0.15)
    assert 0.2 * exact < found.lower < exact


def test_limits_keep_the_loss_within_their_width_and_the_estimate_is_the_exact_one():
    counts, prior = [5, 4, 6, 7, 3, 40], {"shape": 2.0, "rate": 0.4}
    model = ppm.GammaPoisson(counts, **prior)
    censor, weights = ppm.Censoring(-3.0, -1.0), np.full(6, 0.7)
    found = ppm.audits.sampled(
        model, [0, 5], weighting=weights, censor=censor, draws=20_000, random_seed=1
    )
    exact = ppm.audits.censored(counts, censor, weights=weights, **prior)
    losses = dict(zip(exact["count"].values, exact["loss"].values, strict=True))
    assert found.estimates[0] == pytest.approx(losses[5], rel=0.05)
    assert 0.2 * losses[5] < found.evidence[0].lower < losses[5]
    # the outlier's term moves at μ where no draw is
    assert found.estimates[5] < 0.01 < losses[40]
    assert found.claim == 2.0 and not found.refutes() and found.refutes(0.1)
    assert found.table()["W"].tolist() == [2.0, 2.0] and "width of the limits: 2.00" in str(found)
    assert found.oscillation_bound <= 2.0
    # without them the outlier's loss is above any such width
    free = ppm.audits.sampled(model, [5], weighting=weights, draws=20_000, random_seed=1)
    assert free.refutes(censor.width) and free.estimates[5] > 5.0
    with pytest.raises(TypeError, match=r"^censor: the fit\(\) of TwoPoint takes none"):
        ppm.audits.sampled(TwoPoint([1, 1]), [0], censor=censor)


class Sticky(ppm.GammaPoisson):
    """Every draw twenty times in a row, and chains that may sit at different places."""

    independent_draws = False
    apart = 0.0

    def fit(self, weights=None, *, draws=1000, random_seed=None, progress=False):
        few = super().fit(weights, draws=draws // 20, random_seed=random_seed)
        mean = np.repeat(few["posterior"]["mu"].values[0], 20)
        mean = np.stack([mean, mean[::-1] + self.apart])
        log_lik = stats.poisson.logpmf(self.counts, mean[..., None])
        return xr.DataTree.from_dict(
            {
                "posterior": xr.Dataset({"mu": (("chain", "draw"), mean)}),
                "log_likelihood": xr.Dataset({"counts": (("chain", "draw", "record"), log_lik)}),
            }
        )


def test_a_markov_chain_is_thinned_before_it_counts_as_independent():
    counts, weights = [5, 4, 6, 9], np.ones(4)
    settings = {"weighting": weights, "draws": 8_000, "random_seed": 1}
    found = ppm.audits.sampled(Sticky(counts), [3], **settings)
    assert found.draws <= 1_200
    # half of the draws choose the event; what is told is the side that has fewer
    tested = found.evidence[3].samples
    assert min(tested) < max(tested) and found.draws == 2 * min(tested)
    assert ppm.audits.sampled(ppm.GammaPoisson(counts), [3], **settings).draws == 8_000


def test_chains_that_disagree_or_hardly_move_give_no_evidence():
    synthesizer = Sticky([5, 4, 6, 9])
    synthesizer.apart = 3.0
    settings = {"weighting": np.ones(4), "draws": 2_000, "random_seed": 1}
    with pytest.raises(ppm.ChainsDisagreeError, match="in the fit with record 3"):
        ppm.audits.sampled(synthesizer, [3], **settings)
    synthesizer.apart = 0.0
    with pytest.raises(ValueError, match="^draws must be more than 100: the fit with record 3"):
        ppm.audits.sampled(synthesizer, [3], **{**settings, "draws": 100})


class Doubtful(Sticky):
    """Two chains that a test spoils, or calls independent."""

    diverging = 0
    frozen = False

    def fit(self, weights=None, *, draws=1000, random_seed=None, progress=False):
        rng = np.random.default_rng(random_seed)
        mean = self.posterior(weights).rvs(size=(2, draws), random_state=rng)
        mean[1] += self.apart
        if self.frozen:
            mean[1, draws // 2 :] = mean[1, 0]
        posterior = xr.Dataset({"mu": (("chain", "draw"), mean)})
        diverging = np.arange(mean.size).reshape(mean.shape) < self.diverging
        return xr.DataTree.from_dict(
            {
                "posterior": posterior,
                "log_likelihood": self.log_likelihood_at(posterior).to_dataset(name="counts"),
                "sample_stats": xr.Dataset({"diverging": (("chain", "draw"), diverging)}),
            }
        )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"frozen": True}, "because of the fit of the whole database: a chain stood still"),
        ({"diverging": 41}, "because of the fit of the whole database: 41 of 400 draws diverged"),
        (
            {"independent_draws": True, "apart": 3.0},
            "because chains disagree: R-hat of the score is .* in the fit with record 3",
        ),
    ],
)
def test_chains_that_cannot_be_trusted_give_no_evidence(settings, message):
    synthesizer = Doubtful([5, 4, 6, 9])
    for name, value in settings.items():
        setattr(synthesizer, name, value)
    with pytest.raises(ppm.ChainsDisagreeError, match=f"^no evidence, {message}"):
        ppm.audits.sampled(synthesizer, [3], weighting=np.ones(4), draws=200, random_seed=1)


def test_chains_that_agree_give_evidence_whatever_they_are_called():
    synthesizer = Doubtful([5, 4, 6, 9])
    synthesizer.diverging = 40
    settings = {"weighting": np.ones(4), "draws": 200, "random_seed": 1}
    assert ppm.audits.sampled(synthesizer, [3], **settings).draws > 100
    # a record whose weight is 0 already has the same score, 0, in every draw
    settings["weighting"] = np.r_[np.ones(3), 0.0]
    assert ppm.audits.sampled(synthesizer, [3], **settings).lower == 0.0


def runner(counts, weights):
    """Releases of as many rows as there are counts, fit and release from streams of their own."""
    mechanism = ppm.PseudoPosteriorMechanism(ppm.GammaPoisson(counts), weights=weights)

    def run(seed):
        of_fit, of_release = seed.spawn(2)
        return mechanism.run(draws=40, random_seed=of_fit).synthesize(1, random_seed=of_release)

    return run


def test_an_unprotected_outlier_shows_in_releases_and_one_of_weight_0_does_not():
    without = runner(OUTLIER, np.r_[np.ones(9), 0.0])
    leaky = ppm.audits.membership_test(
        runner(OUTLIER, np.ones(10)), without, np.mean, runs=300, random_seed=1
    )
    assert leaky.refutes(1.5) and str(leaky).startswith("evidence")
    # of weight 0 in both, whatever its value is
    removed = ppm.audits.membership_test(
        runner([*OUTLIER[:-1], 4_000], np.r_[np.ones(9), 0.0]), without, np.mean, runs=300,
        random_seed=1,
    )
    assert not removed.refutes(0.5)


def test_a_row_less_tells_without_any_weight_and_as_many_rows_do_not():
    # nothing of the records is left in a release with all weights 0
    silent = runner(OUTLIER, np.zeros(10))
    a_row_less = runner(OUTLIER[:-1], np.zeros(9))
    found = ppm.audits.membership_test(silent, a_row_less, np.size, random_seed=1)
    # 100 of 100 against none of 100, each limit erring in 2.5 %
    low, high = stats.beta.ppf(0.025, 100, 1), stats.beta.ppf(0.975, 1, 100)
    assert found.lower == pytest.approx(np.log(low / high)) and found.lower > 3.28
    assert (found.with_record, found.without_record) == (100, 0)
    as_many = ppm.audits.membership_test(silent, silent, np.size, random_seed=1)
    assert as_many.lower == 0


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (
            ppm.audits.loss_lower_bound,
            (np.zeros(5), np.zeros(50)),
            "^with_record must hold at least 20",
        ),
        (
            ppm.audits.loss_lower_bound,
            (np.zeros(50), np.full(50, np.nan)),
            "^without_record must hold",
        ),
        (ppm.audits.sampled, (ppm.GammaPoisson(OUTLIER), []), "^records must name"),
        (ppm.audits.sampled, (ppm.GammaPoisson(OUTLIER), [1, 1]), "^records must name"),
        (ppm.audits.sampled, (ppm.GammaPoisson(OUTLIER), [10]), "^records must name"),
        (ppm.audits.membership_test, (np.mean, 3, np.mean), "^run_without must be a function"),
    ],
)
def test_wrong_arguments_are_named(function, arguments, message):
    with pytest.raises(ValueError, match=message):
        function(*arguments)


def test_confidence_must_be_a_share():
    with pytest.raises(ValueError, match="^confidence must be between 0 and 1"):
        ppm.audits.loss_lower_bound(np.zeros(50), np.zeros(50), confidence=1.0)


def test_a_pymc_model_is_audited_at_weights_from_its_own_public_prior():
    pm = pytest.importorskip("pymc")
    counts = np.array([98, 101, 95, 104, 88, 110, 160])
    with pm.Model() as model:
        pm.Poisson("y", pm.Uniform("mu", 80.0, 120.0), observed=counts)
    synthesizer = ppm.PyMCSynthesizer(model)
    prior = synthesizer.fit(np.zeros(7), draws=300, random_seed=3)
    public = ppm.record_oscillations(synthesizer.log_likelihood(prior))
    # draws from the prior come near the ends of the interval, and not beyond them
    exact = ppm.GammaPoisson(counts).oscillations_within(80, 120)
    assert np.all(public <= exact + 1e-9) and np.all(public > 0.8 * exact)
    weights = ppm.mapped_weights(public, ppm.weights.capped_map(2.0))

    def audit(weighting):
        return ppm.audits.sampled(
            synthesizer, [6], weighting=weighting, draws=800, random_seed=1
        )

    assert audit(np.ones(7)).refutes(1.5) and not audit(weights).refutes(2.0)


def test_a_printed_audit_says_that_it_stays_inside():
    found = ppm.audits.sampled(ppm.GammaPoisson(OUTLIER), [0], draws=60, random_seed=1)
    told = str(found)
    assert told.startswith("evidence, not proof: the loss of a record is at least ")
    assert f"2Δ over these draws: {2 * found.local_bound:.2f}" in told and "confidential" in told
