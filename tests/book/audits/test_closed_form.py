"""The exact audit against a record-by-record computation, and what it must be able to see."""

from functools import partial

import numpy as np
import pytest
import xarray as xr
from layouts import reciprocal
from scipy import special, stats

import ppm
from ppm_book import audits
from ppm_book.audits import closed_form as audit

COUNTS = np.array([98, 101, 95, 101, 88, 110, 125])
MANY = np.random.default_rng(27).poisson(100, 25)
PUBLIC = (80.0, 120.0)
REACTING = ("Weighted", "Weighted-M")
# of bounds in a fit and a model
RULES = {
    "Unweighted": lambda bounds, model: np.ones(model.records),
    "Weighted": lambda bounds, model: ppm.record_weights(bounds),
    "Weighted-M": lambda bounds, model: ppm.record_weights(bounds, truncate_at=3.5),
    "Capped": lambda _, model: np.minimum(1, 3.5 / model.bounds_within(*PUBLIC)),
    "Range-capped": lambda _, model: np.minimum(
        1, 7.0 / model.oscillations_within(*PUBLIC)
    ),
    # given to the audit
    "Own": lambda _, model: reciprocal(model.bounds_within(*PUBLIC)),
}
OWN = {"mappings": {"Own": reciprocal}, "public": PUBLIC}


def largest(density, others, mu):
    """Largest absolute log ratio of a density to each of others on a grid."""
    return np.array(
        [np.abs(density.logpdf(mu) - other.logpdf(mu)).max() for other in others]
    )


# levels of the ends of all sets of μ, and of the extreme draws that weights are computed from
ENDS = 0.004, 0.995
LEVELS = np.linspace(ENDS, (0.02, 0.97), 22)


def fits(counts, rule, levels):
    """Pseudo posterior, weights and unweighted bounds, for every draw of the weights."""
    records = ppm.GammaPoisson(counts)
    for level in levels:
        means = records.posterior().ppf(level)[:, None]
        bounds = ppm.record_bounds(stats.poisson.logpmf(counts, means))
        weights = rule(bounds, records)
        yield records.posterior(weights), weights, bounds


def by_record(counts, rule, reacts, levels):
    """What the audit says of a mechanism, from library calls, record after record."""
    left = [np.delete(counts, i) for i in range(counts.size)]
    # fits by draw of the weights, and those of the neighbours
    whole, *others = ([*fits(part, rule, levels)] for part in (counts, *left))
    seeds = []
    for number, (density, weights, _) in enumerate(whole[:20]):
        # all weights can be 0, and a quantile of the prior that is left underflow
        mu = np.maximum(np.linspace(*density.ppf(ENDS), 1001), audit._TINY)
        log_lik = stats.poisson.logpmf(counts, mu[:, None])
        losses = largest(density, [side[number][0] for side in others], mu)
        seeds.append((losses, ppm.local_bound(log_lik, weights), log_lik, mu))
    (common, bound, log_lik, mu), (density, weights, bounds) = seeds[0], whole[0]
    stayed = [np.delete(weights, i) for i in range(counts.size)]
    kept = [
        ppm.GammaPoisson(part).posterior(a)
        for part, a in zip(left, stayed, strict=True)
    ]
    fixed = integrated = largest(density, kept, mu)
    if reacts:
        on_grid = (
            [one.logpdf(np.linspace(mu[0], mu[-1], 41)) for one, *_ in side]
            for side in (whole, *others)
        )
        log_mean, *log_means = (special.logsumexp(values, axis=0) for values in on_grid)
        integrated = np.abs(log_mean - log_means).max(axis=1)
    neighbours, leaving = [side[0][0] for side in others], bounds.argmax()
    drawn = density.ppf((np.arange(41) + 0.5) / 41)
    far = [largest(density, neighbours, np.array([one])) > 2 * bound for one in drawn]
    before, after = stayed[leaving], others[leaving][0][1]
    with np.errstate(divide="ignore"):
        shares = [losses.max() / np.float64(2 * delta) for losses, delta, *_ in seeds]
    return {
        "loss_common": common,
        "loss_fixed": fixed,
        "loss_integrated": integrated,
        "local_bound": bound,
        "oscillation_bound": ppm.oscillation_bound(log_lik, weights),
        "loss_worst": max(losses.max() for losses, *_ in seeds),
        "share_worst": max(shares),
        "weights_moved": np.sum(np.abs(before - after) > 0.01),
        "weights_switched": np.sum((before > 0) != (after > 0)),
        "records_over": np.mean(common > 2 * bound),
        "parameters_over": np.mean(far, axis=0).max(),
        "outside": 1
        - min(np.ptp(one.cdf(mu[[0, -1]])) for one in (density, *neighbours)),
        "outside_public": 1 - np.ptp(density.cdf(PUBLIC)),
        "average_mean": density.mean(),
        "spread": density.std(),
    }


@pytest.mark.parametrize(("counts", "weight_draws"), [(COUNTS, 22), (MANY, 1)])
def test_the_audit_equals_a_computation_record_by_record(
    counts, weight_draws, monkeypatch
):
    # the same for all mechanisms and seeds: no order of random numbers is assumed
    monkeypatch.setattr(
        audit,
        "_extreme_levels",
        lambda draws, size, rng: (
            (LEVELS[:size] if size == weight_draws else np.tile(ENDS, (size, 1))).T
        ),
    )
    found = audits.exact(counts, weight_draws=weight_draws, **OWN)
    place = np.searchsorted(found["left_out"], counts)
    for name, rule in RULES.items():
        expected = by_record(counts, rule, name in REACTING, LEVELS[:weight_draws])
        for of, exact in expected.items():
            value = found[of].sel(mechanism=name)
            value = value[place] if value.ndim else value
            assert np.allclose(value, exact, rtol=1e-4, atol=1e-6), (name, of)
    assert found["records"].values.sum() == counts.size
    # the kinds differ where they should
    weighted, over = (found.sel(mechanism=name) for name in REACTING)
    assert not np.allclose(weighted["loss_fixed"], weighted["loss_common"], rtol=0.05)
    assert np.allclose(weighted["loss_common"], weighted["loss_integrated"]) == (
        weight_draws == 1
    )
    if counts is MANY:
        assert over["weights_moved"] > over["weights_switched"] > 1
        assert 0 < over["records_over"] < 1 and 0 < over["parameters_over"] < 1


@pytest.mark.parametrize("count", [3, 50])
def test_levels_of_extremes_are_those_of_draws(count):
    low, high = audit._extreme_levels(count, 4_000, np.random.default_rng(1))
    draws = np.random.default_rng(2).uniform(size=(4_000, count))
    assert stats.ks_2samp(low, draws.min(axis=1)).pvalue > 0.001
    assert stats.ks_2samp(high - low, np.ptp(draws, axis=1)).pvalue > 0.001
    assert stats.ks_2samp(low, draws[:, : 4 * count // 5].min(axis=1)).pvalue < 1e-6


def test_neither_a_further_mechanism_nor_a_further_seed_changes_what_is_said_of_the_first():
    audited = partial(audits.exact, MANY, public=PUBLIC, random_seed=1)
    few = audited(weight_draws=3)
    more = audited(weight_draws=30, mappings={"Ones": np.ones_like})
    shared = more.sel(mechanism=few["mechanism"])
    of_all_seeds = {name for name in few if not np.allclose(few[name], shared[name])}
    assert of_all_seeds == {
        "loss_worst",
        "share_worst",
        "loss_integrated",
        "loss_integrated_error",
    }
    # and each has random numbers of its own
    one, other = (more.sel(mechanism=name) for name in ("Unweighted", "Ones"))
    assert one["shape"] == other["shape"] and one["local_bound"] != other["local_bound"]


@pytest.fixture(scope="module")
def study():
    """Twelve databases of two sizes; of each the largest over the records that may leave."""
    rng = np.random.default_rng(5)
    settings = {"public": (90, 110), "weight_draws": 20, "random_seed": rng}
    sizes = np.repeat([50, 800], 6)
    found = [audits.exact(rng.poisson(100, size), **settings) for size in sizes]
    return xr.concat([one.max("left_out") for one in found], "database")


def test_only_reacting_weights_lose_more_when_they_are_recomputed(study):
    for mechanism in audit.MECHANISMS:
        cell, reacts = study.sel(mechanism=mechanism), mechanism in REACTING
        assert (cell["loss_integrated_error"].sum() > 0) == reacts
        assert np.array_equal(cell["loss_fixed"], cell["loss_common"]) != reacts
        assert (cell["weights_moved"].sum() > 0) == reacts
    # a cap holds, and a limit on the bounds of another fit does not
    largest = study["local_bound"].max("database")
    assert largest.sel(mechanism="Capped") <= 3.5 < largest.sel(mechanism="Weighted-M")
    assert np.all(study["oscillation_bound"].sel(mechanism="Range-capped") <= 7.0)
    # truncation is what lets the loss rise above 2Δ, of one of 20 seeds
    over = study["share_worst"] > 1
    assert over.sel(mechanism="Weighted-M").any()
    assert not over.drop_sel(mechanism="Weighted-M").any()


def test_pi_of_the_definition_is_1_unless_the_prior_is_restricted(study):
    everywhere = study["loss_supremum"]
    for mechanism in audit.MECHANISMS:
        # no larger ε would help where the prior goes on
        shares = [
            np.mean(everywhere.sel(mechanism=mechanism) > limit) for limit in (7.0, 1e9)
        ]
        assert shares == ([0, 0] if mechanism.endswith("on T") else [1, 1])
    # half of it is enough for capped bounds of a probability
    assert everywhere.sel(mechanism="Capped on T").max() <= 3.5


# ---- a prior that is restricted to the public interval ------------------------------------

# as bad as databases come, for an interval of μ from 80 to 120
ADVERSARIAL = {
    "an outlier": [*COUNTS, 1_000_000],
    "an outlier that outweighs all": [0, 10**9],
    "all equal": [100] * 30,
    "all 0": [0] * 40,
    "two records": [0, 200],
    "two at the ends": [80, 120],
    "far above": [500] * 50 + [3],
    "far below": [3] * 300 + [130],
    "many far above": [120] * 20_000 + [80],
    "many on either side": [60] * 1_000 + [170] * 1_000,
}
LIMITS = {"Capped on T": 3.5, "Range-capped on T": 7.0, "Own on T": 1.0}


def restricted_losses(counts, rule, points=400_001):
    """Losses on the interval by a sum over a fine grid, weights computed again for each record."""
    mu = np.linspace(*PUBLIC, points)
    ends = np.r_[0.5, np.ones(points - 2), 0.5]

    def fit(counts):
        weights = rule(ppm.GammaPoisson(counts))
        log_density = (0.001 + weights @ counts - 1) * np.log(mu) - (
            0.001 + weights.sum()
        ) * mu
        log_density -= log_density.max()
        return log_density - np.log(np.sum(ends * np.exp(log_density)))

    whole = fit(counts)
    others = [
        np.delete(counts, np.argmax(counts == value)) for value in np.unique(counts)
    ]
    return [np.abs(whole - fit(other)).max() for other in others]


def audited(case):
    counts = ADVERSARIAL[case]
    return audits.exact(counts, draws=50, weight_draws=2, random_seed=1, **OWN)


@pytest.mark.parametrize("case", ADVERSARIAL)
def test_no_database_is_above_one_epsilon_if_the_prior_is_restricted(case):
    found = audited(case)
    for name, limit in LIMITS.items():
        here, rule = found.sel(mechanism=name), RULES[name.removesuffix(" on T")]
        assert np.all(here["loss_common"] <= here["oscillation"] + 1e-9)
        assert np.all(here["oscillation"] <= limit)
        assert here["loss_supremum"] <= limit and here["outside"] == 0
        assert PUBLIC[0] < here["average_mean"] < PUBLIC[1] and here["spread"] > 0
        assert here["records_over"] == here["parameters_over"] == 0
        exact = restricted_losses(np.array(ADVERSARIAL[case]), partial(rule, None))
        assert np.allclose(here["loss_common"], exact, rtol=1e-4, atol=1e-5)


def test_without_the_restriction_its_normaliser_or_own_weights_databases_are_above_it(
    monkeypatch,
):
    def largest(name):
        return [
            audited(case)["loss_supremum"].sel(mechanism=name).item()
            for case in ADVERSARIAL
        ]

    # it comes close to the limit, so that less would not do
    assert max(largest("Range-capped on T")) > 6.5
    assert min(largest("Range-capped")) == np.inf

    # the two densities without their normalisers on T
    def without(self, points, shapes, rates):
        others = audit.log_gamma(points, self.shape - shapes, self.rate - rates)
        return audit.log_gamma(points, self.shape, self.rate) - others

    monkeypatch.setattr(audit.RestrictedGamma, "log_ratio", without)
    for name, limit in LIMITS.items():
        assert np.sum(np.array(largest(name)) > limit) >= 3

    # weights that are scaled between the extremes, on the same T, with the right normaliser
    reacting = restricted_losses(
        np.array(ADVERSARIAL["an outlier"]),
        lambda model: ppm.record_weights(model.bounds_within(*PUBLIC)),
    )
    assert max(reacting) > max(LIMITS.values())


def test_the_error_of_an_average_is_that_of_repetitions_whose_sides_share_random_numbers():
    rng = np.random.default_rng(1)

    def repeated(shared):
        both = rng.normal(size=(400, 2, 200, 1))
        both[:, 1] = shared * both[:, 0] + np.sqrt(1 - shared**2) * both[:, 1] + 1.0
        losses, errors = np.array([audit._integrated_loss(one) for one in both])[
            ..., 0
        ].T
        return losses.mean(), losses.std(), np.sqrt(np.mean(errors**2))

    for shared in (0.99, 0.0):
        average, spread, error = repeated(shared)
        assert average == pytest.approx(1.0, abs=0.02) and error == pytest.approx(
            spread, rel=0.1
        )
        # without what they share the errors would be several times as large
        assert (spread < 0.3 * np.sqrt(2 * (np.e - 1) / 200)) == (shared > 0)
    assert np.isnan(audit._integrated_loss(np.zeros((2, 1, 1)))[1])


@pytest.mark.parametrize("mean", [0.0, 0.01, 0.7, 1e5])
def test_counts_of_any_size_can_be_audited(mean):
    public = 0.9 * mean + 1e-3, 1.1 * mean + 2e-3
    for size in (2, 5):
        counts = np.random.default_rng(size).poisson(mean, size)
        settings = {"weight_draws": 3, "shape": 1e-9, "rate": 1e-9, "random_seed": 1}
        found = audits.exact(counts, public=public, **settings)
        assert not any(np.isnan(found[name]).any() for name in found)
        # no loss is no share, also of a bound of 0
        assert not found["share_worst"].values[found["loss_worst"] == 0].any()
        limited = found.drop_vars(["loss_supremum", "share_worst"])
        assert mean == 0 or all(np.isfinite(limited[name]).all() for name in limited)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"counts": [3]}, "counts must hold at least two records"),
        ({"counts": [3, 4.5]}, "counts must"),
        ({"public": (8.0, 2.0)}, "public must be two finite numbers above 0"),
        ({"draws": 1}, "draws must"),
        ({"rate": 1e-300}, "rate must"),
        ({"mappings": {"Capped": reciprocal}}, "mappings must be a dict of functions"),
        ({"mappings": {"Mine": np.sqrt}}, "mappings must return one weight in"),
        ({"mappings": {"Mine": lambda z: z / 100}}, "mappings must be decreasing"),
    ],
)
def test_what_cannot_be_audited_is_refused_in_one_line(wrong, message):
    given = {"counts": [3, 4, 20], "public": (2.0, 8.0), "random_seed": 1} | wrong
    with pytest.raises(ValueError, match=f"^{message}") as refused:
        audits.exact(**given)
    assert "\n" not in str(refused.value)
