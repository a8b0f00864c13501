"""The exact audit against a record-by-record computation, and what it must be able to see."""

import numpy as np
import pytest
import xarray as xr
from scipy import stats

import ppm
from ppm.audits import closed_form as audit

COUNTS = np.array([98, 101, 95, 101, 104, 88, 110, 93, 101, 125])
PUBLIC = (80.0, 120.0)
RULES = {
    "Unweighted": lambda log_lik, records: np.ones(records.records),
    "Weighted": lambda log_lik, records: ppm.record_weights(ppm.record_bounds(log_lik)),
    "Weighted-M": lambda log_lik, records: ppm.record_weights(
        ppm.record_bounds(log_lik), truncate_at=3.5
    ),
    "Capped": lambda log_lik, records: ppm.public_weights(
        records.bounds_within(*PUBLIC), ppm.weights.capped_map(3.5)
    ),
    "Range-capped": lambda log_lik, records: ppm.public_weights(
        records.oscillations_within(*PUBLIC), ppm.weights.capped_map(7.0)
    ),
}


def by_record(counts, draws, weight_draws, seed):
    """The same losses from library calls on whole databases, record after record."""
    rng = np.random.default_rng(seed)
    sets = audit._extreme_levels(draws, len(RULES), rng).T
    levels = audit._extreme_levels(draws, weight_draws, rng).T
    # a set for each further seed, of each mechanism
    further = audit._extreme_levels(draws, (weight_draws - 1) * len(RULES), rng)
    further = further.T.reshape(-1, len(RULES), 2)
    found = {}

    def posteriors(counts, rule):
        """Pseudo posterior, with weights, for every draw of the weights."""
        records = ppm.GammaPoisson(counts)
        for level in levels:
            ends = records.posterior().ppf(level)
            log_lik = stats.poisson.logpmf(counts, ends[:, None])
            weights = rule(log_lik, records)
            yield records.posterior(weights), weights

    for place, (name, rule) in enumerate(RULES.items()):
        ends = sets[place]
        whole = list(posteriors(counts, rule))
        neighbours = [list(posteriors(np.delete(counts, i), rule)) for i in range(counts.size)]
        of_seeds = []
        for one, (density, own) in enumerate(whole):
            here = density.ppf(ends if one == 0 else further[one - 1, place])
            # all weights can be 0, and a quantile of the prior that is left underflow
            mu = np.maximum(np.linspace(*here, 2001), audit._TINY)
            bound = ppm.local_bound(stats.poisson.logpmf(counts, mu[:, None]), own)
            of_seeds.append(
                [
                    max(
                        np.abs(density.logpdf(mu) - part[one][0].logpdf(mu)).max()
                        for part in neighbours
                    ),
                    2 * bound,
                ]
            )
        first, weights = whole[0]
        low, high = first.ppf(ends)
        mu = np.linspace(low, high, audit._GRID)
        fine = np.linspace(low, high, 2001)
        losses = {"fixed": [], "common": [], "integrated": []}
        for record in range(counts.size):
            left, parts = np.delete(counts, record), neighbours[record]
            kept = ppm.GammaPoisson(left).posterior(np.delete(weights, record))
            losses["fixed"].append(np.abs(first.logpdf(fine) - kept.logpdf(fine)).max())
            losses["common"].append(np.abs(first.logpdf(fine) - parts[0][0].logpdf(fine)).max())
            sides = [
                np.log(np.mean([part.pdf(mu) for part, _ in side], axis=0))
                for side in (whole, parts)
            ]
            losses["integrated"].append(np.abs(sides[0] - sides[1]).max())
        log_lik = stats.poisson.logpmf(counts, fine[:, None])
        found[name] = (
            losses, ppm.local_bound(log_lik, weights), ppm.oscillation_bound(log_lik, weights),
            np.array(of_seeds),
        )
    return found


@pytest.mark.parametrize("weight_draws", [1, 7])
def test_the_audit_equals_a_computation_record_by_record(weight_draws):
    found = ppm.audits.exact(
        COUNTS, public=PUBLIC, draws=200, weight_draws=weight_draws, random_seed=5
    )
    place = np.searchsorted(found["left_out"], COUNTS)
    exact = by_record(COUNTS, 200, weight_draws, 5)
    for name, (losses, bound, oscillation, of_seeds) in exact.items():
        here = found.sel(mechanism=name)
        assert np.isclose(here["loss_worst"], of_seeds[:, 0].max(), rtol=1e-4)
        with np.errstate(divide="ignore"):
            shares = of_seeds[:, 0] / of_seeds[:, 1]
        assert np.isclose(here["share_worst"], shares.max(), rtol=1e-4)
        for kind, expected in losses.items():
            if kind == "integrated" and name not in audit.REACTING:
                expected = losses["fixed"]
            assert np.allclose(here[f"loss_{kind}"][place], expected, rtol=1e-4, atol=1e-6), kind
        assert np.isclose(here["local_bound"], bound)
        assert np.isclose(here["oscillation_bound"], oscillation, rtol=1e-4)
    assert found["records"].values.sum() == COUNTS.size
    # the kinds differ where they should
    weighted = found.sel(mechanism="Weighted")
    assert not np.allclose(weighted["loss_fixed"], weighted["loss_common"], rtol=0.05)
    assert np.allclose(weighted["loss_common"], weighted["loss_integrated"]) == (weight_draws == 1)


def test_what_a_leaving_record_changes_is_counted_record_by_record():
    counts, draws = np.random.default_rng(88).poisson(100, 25), 300
    found = ppm.audits.exact(counts, public=PUBLIC, draws=draws, weight_draws=1, random_seed=4)
    rng = np.random.default_rng(4)
    sets = audit._extreme_levels(draws, len(RULES), rng).T
    (level,) = audit._extreme_levels(draws, 1, rng).T

    losses_of, own_of = {}, {}

    def fit(counts, rule):
        records = ppm.GammaPoisson(counts)
        log_lik = stats.poisson.logpmf(counts, records.posterior().ppf(level)[:, None])
        weights = rule(log_lik, records)
        return records.posterior(weights), weights, ppm.record_bounds(log_lik)

    for ends, (name, rule) in zip(sets, RULES.items(), strict=True):
        here = found.sel(mechanism=name)
        whole, weights, bounds = fit(counts, rule)
        neighbours = [fit(np.delete(counts, record), rule) for record in range(counts.size)]
        low, high = whole.ppf(ends)
        leaving = bounds.argmax()
        before, after = np.delete(weights, leaving), neighbours[leaving][1]
        assert here["weights_moved"] == np.sum(np.abs(before - after) > 0.01)
        assert here["weights_switched"] == np.sum((before > 0) != (after > 0))
        densities = [whole, *(density for density, _, _ in neighbours)]
        outside = [1 - density.cdf(high) + density.cdf(low) for density in densities]
        assert here["outside"] == pytest.approx(max(outside))
        public = 1 - whole.cdf(PUBLIC[1]) + whole.cdf(PUBLIC[0])
        assert here["outside_public"] == pytest.approx(public, abs=1e-12)
        own = 2 * float(here["local_bound"])
        losses = here["loss_common"][np.searchsorted(here["left_out"], counts)]
        assert here["records_over"] == pytest.approx(np.mean(losses > own))
        losses_of[name], own_of[name] = losses, own
        mu = whole.ppf(found["level"])
        over = [
            np.mean(np.abs(whole.logpdf(mu) - density.logpdf(mu)) > own)
            for density, _, _ in neighbours
        ]
        assert here["parameters_over"] == max(over)
    moved, switched, records_over, parameters_over = (
        found[name].sel(mechanism="Weighted-M")
        for name in ("weights_moved", "weights_switched", "records_over", "parameters_over")
    )
    assert moved > switched > 1 and 0 < records_over < 1 and 0 < parameters_over < 1
    # Δ for 2Δ would count more records
    assert records_over < np.mean(losses_of["Weighted-M"] > own_of["Weighted-M"] / 2)


def test_levels_of_extremes_are_those_of_draws():
    low, high = audit._extreme_levels(50, 4_000, np.random.default_rng(1))
    draws = np.random.default_rng(2).uniform(size=(4_000, 50))
    assert stats.ks_2samp(low, draws.min(axis=1)).pvalue > 0.001
    assert stats.ks_2samp(high, draws.max(axis=1)).pvalue > 0.001
    assert stats.ks_2samp(high - low, np.ptp(draws, axis=1)).pvalue > 0.001
    assert stats.ks_2samp(low, draws[:, :40].min(axis=1)).pvalue < 1e-6


@pytest.fixture(scope="module")
def study():
    """Twelve databases of two sizes; of each the largest over the records that may leave."""
    rng = np.random.default_rng(3)
    audits = [
        ppm.audits.exact(
            rng.poisson(100, size), public=(90, 110), weight_draws=20, random_seed=rng
        ).drop_dims("level").max("left_out").expand_dims(size=[size])
        for size in (50, 800) for _ in range(12)
    ]
    sizes = [xr.concat(audits[start:start + 12], "replicate") for start in (0, 12)]
    return xr.concat(sizes, "size")


def test_at_fixed_weights_the_loss_is_within_the_oscillation_and_that_within_two_bounds(study):
    data = study
    allowed = data["oscillation_bound"] - np.log1p(-data["outside"])
    assert np.all(data["loss_fixed"] <= allowed + 1e-9)
    assert np.all(data["oscillation_bound"] <= data["local_bound"] + 1e-9)
    assert np.any(data["loss_fixed"] > 0.3 * allowed)


def test_only_reacting_weights_lose_more_when_they_are_recomputed(study):
    data = study
    for mechanism in audit.MECHANISMS:
        cell = data.sel(mechanism=mechanism)
        assert (cell["loss_integrated_error"].sum() > 0) == (mechanism in audit.REACTING)
        same = np.array_equal(cell["loss_fixed"], cell["loss_common"])
        assert same == (mechanism not in audit.REACTING)
        assert (cell["weights_moved"].sum() > 0) == (mechanism in audit.REACTING)
    # truncation is what lets the loss rise above 2Δ
    largest = data["loss_common"].max(["replicate", "size"]) / (2 * data["local_bound"].min())
    assert largest.sel(mechanism="Weighted-M") > 3 * largest.sel(mechanism="Weighted")


def test_capped_weights_keep_the_bound_below_m_in_every_database(study):
    assert np.all(study["local_bound"].sel(mechanism="Capped") <= 3.5)
    assert np.any(study["local_bound"].sel(mechanism="Weighted-M") > 3.5)
    assert np.all(study["oscillation_bound"].sel(mechanism="Range-capped") <= 7.0)


def test_pi_of_the_definition_is_1_unless_the_prior_is_restricted(study):
    def share(losses, epsilon):
        found = ppm.pdp.loss_exceedance(losses.values, epsilon)
        return found.estimate

    everywhere = study["loss_supremum"]
    for mechanism in audit.MECHANISMS:
        here = everywhere.sel(mechanism=mechanism)
        # no larger ε would help where the prior goes on
        restricted = mechanism in audit.RESTRICTED
        assert share(here, 7.0) == share(here, 1e9) == (0 if restricted else 1)
    # half of it is enough for capped bounds of a probability
    assert share(everywhere.sel(mechanism="Capped on T"), 3.5) == 0
    # while over the range of the draws hardly a database is above its own bound
    over = study["loss_common"] > 2 * study["local_bound"]
    assert not over.drop_sel(mechanism="Weighted-M").any() and over.any()


def test_the_loss_grows_without_limit_where_the_prior_goes_on():
    found = ppm.audits.exact(COUNTS, public=PUBLIC, draws=200, weight_draws=3, random_seed=5)
    records, means = ppm.GammaPoisson(COUNTS), np.array([70.0, 100.0, 500.0, 5000.0])
    weights = RULES["Capped"](None, records)
    whole = records.posterior(weights).logpdf(means)
    here = found.sel(mechanism="Capped")
    losses = stats.gamma.logpdf(means, here["shape"], scale=1 / here["rate"]) - stats.gamma.logpdf(
        means[:, None], here["shape_without"], scale=1 / here["rate_without"]
    ).T
    for value, loss in zip(found["left_out"].values, losses, strict=True):
        left = weights * (np.arange(10) != np.argmax(value == COUNTS))
        assert loss == pytest.approx(whole - records.posterior(left).logpdf(means), rel=1e-6)
    assert np.all(np.abs(losses).max(axis=0)[3] > 5 * np.abs(losses).max(axis=0)[2])


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
        assert np.all(np.abs(here["loss_over_draws"]).max("level") <= here["loss_common"] + 1e-9)
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


def test_a_restricted_prior_moves_a_posterior_only_where_it_reaches_the_ends(study):
    data = study.sel(size=800)
    for name in ("Capped", "Range-capped"):
        for of in ("average_mean", "spread"):
            whole, part = (data[of].sel(mechanism=label) for label in (name, f"{name} on T"))
            assert np.allclose(whole, part, rtol=1e-9)
    # far from the interval it stays at the nearer end
    far = ppm.audits.exact([300] * 40, public=PUBLIC, draws=50, weight_draws=1, random_seed=1)
    mean, spread = (far[of].sel(mechanism="Capped on T") for of in ("average_mean", "spread"))
    assert 115 < mean < 120 and spread < 2


# ---- seeds, and the error of an average over them ------------------------------------------


def test_more_seeds_only_raise_the_worst_and_change_nothing_else():
    settings = {"public": PUBLIC, "draws": 100, "random_seed": 2}
    one, some, all_of_them = (
        ppm.audits.exact(COUNTS, weight_draws=30, seeds=seeds, **settings) for seeds in (1, 8, 30)
    )
    for name in one:
        if name not in ("loss_worst", "share_worst"):
            assert one[name].identical(some[name]) and one[name].identical(all_of_them[name]), name
    assert np.array_equal(one["loss_worst"], one["loss_common"].max("left_out"))
    shares = one["loss_common"].max("left_out") / one["local_bound"] / 2
    assert np.allclose(one["share_worst"], shares)
    for name in ("loss_worst", "share_worst"):
        assert np.all(one[name] <= some[name]) and np.all(some[name] <= all_of_them[name])
        reacting = all_of_them[name].sel(mechanism="Weighted-M")
        assert reacting > 1.5 * one[name].sel(mechanism="Weighted-M")
    # by default 20, or as many as there are draws of the weights
    for weight_draws, seeds in ((30, 20), (3, 3)):
        default = ppm.audits.exact(COUNTS, weight_draws=weight_draws, **settings)
        told = ppm.audits.exact(COUNTS, weight_draws=weight_draws, seeds=seeds, **settings)
        assert default.identical(told)
    with pytest.raises(ValueError, match="^seeds must be at most the 3 weight_draws; got 4"):
        ppm.audits.exact(COUNTS, weight_draws=3, seeds=4, **settings)


def test_the_standard_error_of_the_integrated_loss_is_what_other_seeds_show(monkeypatch):
    counts, draws = np.random.default_rng(1).poisson(100, 100), 200
    # the set of μ stays: its levels, and those of the first weights, are the same each time
    kept = audit._extreme_levels(1000, 6, np.random.default_rng(9))
    original = audit._extreme_levels

    def levels(count, size, rng):
        found = original(count, size, rng)
        if size == 5:
            return kept[:, :5]
        if size == draws:
            found[:, 0] = kept[:, 5]
        return found

    monkeypatch.setattr(audit, "_extreme_levels", levels)
    runs = [
        ppm.audits.exact(
            counts, public=(90, 110), weight_draws=draws, seeds=1, random_seed=seed
        ).sel(mechanism=list(audit.REACTING))
        for seed in range(40)
    ]
    losses, errors = (
        np.array([run[name].values for run in runs])
        for name in ("loss_integrated", "loss_integrated_error")
    )
    seen, stated = losses.std(axis=0, ddof=1), np.sqrt((errors**2).mean(axis=0))
    for mechanism in range(2):
        ratio = np.median(seen[mechanism] / stated[mechanism])
        assert 1 / 1.5 < ratio < 1.5
        # at the record with the largest loss too
        place = losses[:, mechanism].mean(axis=0).argmax()
        assert 1 / 1.5 < seen[mechanism, place] / stated[mechanism, place] < 1.5


def test_the_error_uses_that_both_sides_share_their_random_numbers():
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


@pytest.mark.parametrize("mean", [0.01, 0.7, 1e5])
def test_counts_of_any_size_can_be_audited(mean):
    rng, limitless = np.random.default_rng(1), ("loss_supremum", "share_worst")
    for size in (2, 2, 2, 5, 5, 5):
        found = ppm.audits.exact(
            rng.poisson(mean, size), public=(0.9 * mean, 1.1 * mean), weight_draws=3,
            random_seed=rng,
        )
        assert all(np.isfinite(found[name]).all() for name in found if name not in limitless)
        assert not any(np.isnan(found[name]).any() for name in limitless)


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (ppm.audits.exact, {"counts": [1], "public": PUBLIC}, "at least two records"),
        (ppm.audits.exact, {"counts": [1, 2], "public": 3}, "^public must be two"),
        (ppm.audits.exact, {"counts": [1, 2], "public": (3, 2)}, "^public must be"),
        (ppm.audits.exact, {"counts": [1, 2], "public": PUBLIC, "draws": 1}, "^draws must be"),
        (ppm.audits.exact, {"counts": [1, 2], "public": PUBLIC, "truncate_at": -1}, "^truncate_at"),
    ],
)
def test_settings_out_of_range_are_named(function, arguments, message):
    with pytest.raises(ValueError, match=message):
        function(**arguments)


def test_databases_without_any_count_and_priors_near_nothing_are_audited_or_refused():
    # no count at all: μ underflows, and so do its draws
    found = ppm.audits.exact([0, 0], public=(0.5, 2.0), draws=2, weight_draws=1, random_seed=1)
    assert not np.isnan(found["loss_common"]).any()
    found = ppm.audits.exact(
        [3, 4, 5], public=(1.0, 10.0), shape=1e-9, rate=1e-9, draws=20, random_seed=1
    )
    assert not np.isnan(found["loss_common"]).any()
    with pytest.raises(ValueError, match="^rate must be a finite number at least 1e-09"):
        ppm.audits.exact([3, 4, 5], public=(1.0, 10.0), rate=1e-300)
