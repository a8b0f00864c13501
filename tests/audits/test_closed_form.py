"""The exact audit against a record-by-record computation, and what it must be able to see."""

import numpy as np
import pytest
import xarray as xr
from scipy import stats

import ppm
from ppm.audits import closed_form as audit

COUNTS = np.array([98, 101, 95, 101, 104, 88, 110, 93, 101, 125])
MANY = np.random.default_rng(88).poisson(100, 25)
PUBLIC = (80.0, 120.0)
REACTING = ("Weighted", "Weighted-M")
RULES = {
    "Unweighted": lambda log_lik, records: np.ones(records.records),
    "Weighted": lambda log_lik, records: ppm.record_weights(ppm.record_bounds(log_lik)),
    "Weighted-M": lambda log_lik, records: ppm.record_weights(
        ppm.record_bounds(log_lik), truncate_at=3.5
    ),
    "Capped": lambda log_lik, records: ppm.mapped_weights(
        records.bounds_within(*PUBLIC), ppm.weights.capped_map(3.5)
    ),
    "Range-capped": lambda log_lik, records: ppm.mapped_weights(
        records.oscillations_within(*PUBLIC), ppm.weights.capped_map(7.0)
    ),
}


def by_record(counts, draws, weight_draws, seed):
    """What the audit says of each mechanism, from library calls, record after record."""
    rng, mechanisms = np.random.default_rng(seed), len(RULES)
    sets = audit._extreme_levels(draws, mechanisms, rng).T
    levels = audit._extreme_levels(draws, weight_draws, rng).T
    # a set for each further seed, of each mechanism
    further = audit._extreme_levels(draws, (weight_draws - 1) * mechanisms, rng).T
    sets = np.concatenate([sets, further]).reshape(-1, mechanisms, 2)

    def posteriors(counts, rule):
        """Pseudo posterior, weights and unweighted bounds, for every draw of the weights."""
        records = ppm.GammaPoisson(counts)
        for level in levels:
            log_lik = stats.poisson.logpmf(counts, records.posterior().ppf(level)[:, None])
            weights = rule(log_lik, records)
            yield records.posterior(weights), weights, ppm.record_bounds(log_lik)

    for place, (name, rule) in enumerate(RULES.items()):
        whole = list(posteriors(counts, rule))
        others = [list(posteriors(np.delete(counts, i), rule)) for i in range(counts.size)]
        density, weights, bounds = whole[0]
        kept = [
            ppm.GammaPoisson(np.delete(counts, i)).posterior(np.delete(weights, i))
            for i in range(counts.size)
        ]
        seeds = []
        for one, (here, own, _) in enumerate(whole):
            # all weights can be 0, and a quantile of the prior that is left underflow
            mu = np.maximum(np.linspace(*here.ppf(sets[one, place]), 2001), audit._TINY)
            log_lik = stats.poisson.logpmf(counts, mu[:, None])
            losses = np.abs([here.logpdf(mu) - part[one][0].logpdf(mu) for part in others])
            seeds.append((losses.max(axis=1), ppm.local_bound(log_lik, own), log_lik, mu))
        (common, bound, log_lik, mu), worst = seeds[0], [found.max() for found, *_ in seeds]
        inside = [side[0][0].cdf(mu[[0, -1]]) for side in (whole, *others)]
        grid, drawn = np.linspace(mu[0], mu[-1], 41), density.ppf((np.arange(41) + 0.5) / 41)
        log_means = [
            np.log(np.mean([one.pdf(grid) for one, *_ in side], axis=0))
            for side in (whole, *others)
        ]
        leaving = bounds.argmax()
        before, after = np.delete(weights, leaving), others[leaving][0][1]
        with np.errstate(divide="ignore"):
            shares = np.array(worst) / [2 * found[1] for found in seeds]
        far = np.abs([density.logpdf(drawn) - part[0][0].logpdf(drawn) for part in others])
        yield name, {
            "loss_common": common,
            "loss_fixed": [np.abs(density.logpdf(mu) - one.logpdf(mu)).max() for one in kept],
            "loss_integrated": np.abs(log_means[0] - log_means[1:]).max(axis=1),
            "local_bound": bound,
            "oscillation_bound": ppm.oscillation_bound(log_lik, weights),
            "loss_worst": max(worst),
            "share_worst": shares.max(),
            "weights_moved": np.sum(np.abs(before - after) > 0.01),
            "weights_switched": np.sum((before > 0) != (after > 0)),
            "records_over": np.mean(common > 2 * bound),
            "parameters_over": np.mean(far > 2 * bound, axis=1).max(),
            "outside": 1 - np.diff(inside).min(),
            "outside_public": 1 - density.cdf(PUBLIC[1]) + density.cdf(PUBLIC[0]),
            "average_mean": density.mean(),
            "spread": density.std(),
        }


@pytest.mark.parametrize(
    ("counts", "draws", "weight_draws", "seed"),
    [(COUNTS, 200, 1, 5), (COUNTS, 200, 7, 5), (MANY, 300, 1, 4)],
)
def test_the_audit_equals_a_computation_record_by_record(counts, draws, weight_draws, seed):
    found = ppm.audits.exact(
        counts, public=PUBLIC, draws=draws, weight_draws=weight_draws, random_seed=seed
    )
    place = np.searchsorted(found["left_out"], counts)
    for name, expected in by_record(counts, draws, weight_draws, seed):
        here = found.sel(mechanism=name)
        for of, exact in expected.items():
            if of == "loss_integrated" and name not in REACTING:
                exact = expected["loss_fixed"]
            value = here[of][place] if here[of].ndim else here[of]
            assert np.allclose(value, exact, rtol=1e-4, atol=1e-6), (name, of)
    assert found["records"].values.sum() == counts.size
    # the kinds differ where they should
    weighted = found.sel(mechanism="Weighted")
    assert not np.allclose(weighted["loss_fixed"], weighted["loss_common"], rtol=0.05)
    assert np.allclose(weighted["loss_common"], weighted["loss_integrated"]) == (weight_draws == 1)
    if counts.size > 10:
        over = found.sel(mechanism="Weighted-M")
        assert over["weights_moved"] > over["weights_switched"] > 1
        assert 0 < over["records_over"] < 1 and 0 < over["parameters_over"] < 1


def test_levels_of_extremes_are_those_of_draws():
    low, high = audit._extreme_levels(50, 4_000, np.random.default_rng(1))
    draws = np.random.default_rng(2).uniform(size=(4_000, 50))
    assert stats.ks_2samp(low, draws.min(axis=1)).pvalue > 0.001
    assert stats.ks_2samp(high - low, np.ptp(draws, axis=1)).pvalue > 0.001
    assert stats.ks_2samp(low, draws[:, :40].min(axis=1)).pvalue < 1e-6


@pytest.fixture(scope="module")
def study():
    """Twelve databases of two sizes; of each the largest over the records that may leave."""
    rng = np.random.default_rng(3)
    audits = [
        ppm.audits.exact(rng.poisson(100, size), public=(90, 110), weight_draws=20, random_seed=rng)
        for size in (50, 800) for _ in range(12)
    ]
    return xr.concat([found.max("left_out") for found in audits], "database")


def test_at_fixed_weights_the_loss_is_within_the_oscillation_and_that_within_two_bounds(study):
    allowed = study["oscillation_bound"] - np.log1p(-study["outside"])
    assert np.all(study["loss_fixed"] <= allowed + 1e-9)
    assert np.all(study["oscillation_bound"] <= study["local_bound"] + 1e-9)
    assert np.any(study["loss_fixed"] > 0.3 * allowed)
    assert np.all(study["local_bound"].sel(mechanism="Capped") <= 3.5)
    assert np.any(study["local_bound"].sel(mechanism="Weighted-M") > 3.5)
    assert np.all(study["oscillation_bound"].sel(mechanism="Range-capped") <= 7.0)


def test_only_reacting_weights_lose_more_when_they_are_recomputed(study):
    for mechanism in audit.MECHANISMS:
        cell, reacts = study.sel(mechanism=mechanism), mechanism in REACTING
        assert (cell["loss_integrated_error"].sum() > 0) == reacts
        assert np.array_equal(cell["loss_fixed"], cell["loss_common"]) != reacts
        assert (cell["weights_moved"].sum() > 0) == reacts
    # truncation is what lets the loss rise above 2Δ
    over = study["loss_common"] > 2 * study["local_bound"]
    assert over.sel(mechanism="Weighted-M").any()
    assert not over.drop_sel(mechanism="Weighted-M").any()


def test_pi_of_the_definition_is_1_unless_the_prior_is_restricted(study):
    everywhere = study["loss_supremum"]
    for mechanism in audit.MECHANISMS:
        # no larger ε would help where the prior goes on
        shares = [np.mean(everywhere.sel(mechanism=mechanism) > limit) for limit in (7.0, 1e9)]
        assert shares == ([0, 0] if mechanism.endswith("on T") else [1, 1])
    # half of it is enough for capped bounds of a probability
    assert np.all(everywhere.sel(mechanism="Capped on T") <= 3.5)


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
LIMITS = {"Capped on T": 3.5, "Range-capped on T": 7.0}


def restricted_losses(counts, rule, points=400_001):
    """Losses on the interval by a sum over a fine grid, weights computed again for each record."""
    mu = np.linspace(*PUBLIC, points)
    ends = np.r_[0.5, np.ones(points - 2), 0.5]

    def log_density(counts, weights):
        log_density = (0.001 + weights @ counts - 1) * np.log(mu) - (0.001 + weights.sum()) * mu
        log_density -= log_density.max()
        return log_density - np.log(np.sum(ends * np.exp(log_density)))

    def fit(counts):
        return log_density(counts, rule(ppm.GammaPoisson(counts)))

    whole = fit(counts)
    return {
        int(value): np.abs(whole - fit(np.delete(counts, np.argmax(counts == value)))).max()
        for value in np.unique(counts)
    }


@pytest.mark.parametrize("case", ADVERSARIAL)
def test_no_database_is_above_one_epsilon_if_the_prior_is_restricted(case):
    counts = np.array(ADVERSARIAL[case])
    found = ppm.audits.exact(counts, public=PUBLIC, draws=50, weight_draws=2, random_seed=1)
    for name, limit in LIMITS.items():
        here = found.sel(mechanism=name)
        assert np.all(here["loss_common"] <= here["oscillation"] + 1e-9)
        assert np.all(here["oscillation"] <= limit)
        assert here["loss_supremum"] <= limit and here["outside"] == 0
        assert PUBLIC[0] < here["average_mean"] < PUBLIC[1] and here["spread"] > 0
        assert here["records_over"] == here["parameters_over"] == 0
        rule = RULES[name.removesuffix(" on T")]
        exact = restricted_losses(counts, lambda records, rule=rule: rule(None, records))
        assert np.allclose(here["loss_common"], list(exact.values()), rtol=1e-4, atol=1e-5)


def test_without_the_restriction_its_normaliser_or_own_weights_databases_are_above_it(monkeypatch):
    def largest(name):
        return {
            case: float(
                ppm.audits.exact(counts, public=PUBLIC, draws=50, weight_draws=2, random_seed=1)[
                    "loss_supremum"
                ].sel(mechanism=name)
            )
            for case, counts in ADVERSARIAL.items()
        }

    # it comes close to the limit, so that less would not do
    assert max(largest("Range-capped on T").values()) > 6.5
    assert min(largest("Range-capped").values()) == np.inf
    # the two densities without their normalisers on T
    gamma = audit._log_gamma

    def without(self, points, shapes, rates):
        return gamma(points, self.shape, self.rate) - gamma(
            points, self.shape - shapes, self.rate - rates
        )

    monkeypatch.setattr(audit.RestrictedGamma, "log_ratio", without)
    for name, limit in LIMITS.items():
        assert sum(loss > limit for loss in largest(name).values()) >= 3
    # weights that are scaled between the extremes, on the same T, with the right normaliser
    log_lik = np.array(PUBLIC)[:, None]

    def minmax(records):
        return ppm.record_weights(ppm.record_bounds(stats.poisson.logpmf(records.counts, log_lik)))

    reacting = max(restricted_losses(np.array(ADVERSARIAL["an outlier"]), minmax).values())
    assert reacting > max(LIMITS.values())


def test_the_error_of_an_average_uses_that_both_sides_share_their_random_numbers():
    rng = np.random.default_rng(1)
    shared = rng.normal(size=(1, 500, 1))
    apart = rng.normal(size=(2, 500, 1))
    together = np.concatenate([shared, shared + 0.01 * apart[:1] + 1.0])
    loss, error = audit._integrated_loss(together.copy())
    assert loss == pytest.approx(1.0, abs=0.01) and error < 0.01 * 3 / np.sqrt(500)
    loss, error = audit._integrated_loss(apart.copy())
    ratio = np.exp(apart[:, :, 0])
    ratio /= ratio.mean(axis=1, keepdims=True)
    assert error == pytest.approx(np.std(ratio[0] - ratio[1], ddof=1) / np.sqrt(500))
    assert np.isnan(audit._integrated_loss(apart[:, :1].copy())[1])


def test_the_standard_error_of_the_integrated_loss_is_what_other_seeds_show(monkeypatch):
    counts, draws, original = np.random.default_rng(1).poisson(100, 100), 200, audit._extreme_levels
    # the set of μ stays: its levels, and those of the first weights, are the same each time
    kept = original(1000, 6, np.random.default_rng(9))

    def levels(count, size, rng):
        found = original(count, size, rng)
        found[:, : size if size == 5 else 1] = kept[:, :5] if size == 5 else kept[:, 5:]
        return found

    monkeypatch.setattr(audit, "_extreme_levels", levels)
    runs = [
        ppm.audits.exact(counts, public=(90, 110), weight_draws=draws, random_seed=seed)
        .sel(mechanism=list(REACTING))
        for seed in range(25)
    ]
    runs = xr.concat(runs, "run")
    stated = np.sqrt((runs["loss_integrated_error"] ** 2).mean("run"))
    ratio = (runs["loss_integrated"].std("run", ddof=1) / stated).median("left_out")
    assert np.all((1 / 1.5 < ratio) & (ratio < 1.5))


@pytest.mark.parametrize("mean", [0.0, 0.01, 0.7, 1e5])
def test_counts_of_any_size_can_be_audited(mean):
    public = 0.9 * mean + 1e-3, 1.1 * mean + 2e-3
    for size in (2, 2, 5, 5):
        counts = np.random.default_rng(size).poisson(mean, size)
        found = ppm.audits.exact(
            counts, public=public, weight_draws=3, shape=1e-9, rate=1e-9, random_seed=1
        )
        assert not any(np.isnan(found[name]).any() for name in found)
        limited = found.drop_vars(["loss_supremum", "share_worst"])
        assert mean == 0 or all(np.isfinite(limited[name]).all() for name in limited)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"counts": [1]}, "at least two records"),
        ({"public": 3}, "^public must be two"),
        ({"public": (3, 2)}, "^public must be"),
        ({"draws": 1}, "^draws must be"),
        ({"truncate_at": -1}, "^truncate_at"),
        ({"rate": 1e-300}, "^rate must be a finite number at least 1e-09"),
    ],
)
def test_settings_out_of_range_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        ppm.audits.exact(**{"counts": [1, 2], "public": PUBLIC} | change)
