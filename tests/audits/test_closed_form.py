"""The exact audit against a record-by-record computation, and what it must be able to see."""

from itertools import product

import numpy as np
import pytest
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
    return ppm.audits.study([50, 800], replicates=12, weight_draws=20, random_seed=3)


def test_at_fixed_weights_the_loss_is_within_the_oscillation_and_that_within_two_bounds(study):
    data = study.dataset
    allowed = data["oscillation_bound"] - np.log1p(-data["outside"])
    assert np.all(data["loss_fixed"] <= allowed + 1e-9)
    assert np.all(data["oscillation_bound"] <= data["local_bound"] + 1e-9)
    assert np.any(data["loss_fixed"] > 0.3 * allowed)


def test_only_reacting_weights_lose_more_when_they_are_recomputed(study):
    data = study.dataset
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
    capped = study.dataset.sel(mechanism="Capped")
    assert np.all(capped["local_bound"] <= study.truncate_at)
    assert np.any(study.dataset.sel(mechanism="Weighted-M")["local_bound"] > study.truncate_at)
    limit = 2 * study.truncate_at
    assert np.all(study.dataset.sel(mechanism="Range-capped")["oscillation_bound"] <= limit)


def test_the_databases_are_those_of_the_study_of_contraction(study):
    other = ppm.studies.contraction([50, 800], replicates=12, random_seed=3)
    ours = study.dataset["average_mean"].sel(mechanism="Unweighted")
    theirs = other.dataset["average_mean"].sel(mechanism="Unweighted")
    error = 4 * np.sqrt(100 / ours["size"] / other.draws)
    assert np.all(np.abs(ours - theirs) < error)
    assert not np.all(np.abs(ours - theirs.roll(replicate=1)) < error)


def test_the_study_repeats_and_a_size_does_not_depend_on_the_others(study):
    again = ppm.audits.study([800], replicates=12, weight_draws=20, random_seed=3)
    assert study.dataset.sel(size=[800]).identical(again.dataset)
    other = ppm.audits.study([800], replicates=12, weight_draws=20, random_seed=4)
    assert not again.dataset.equals(other.dataset)


def test_databases_above_their_own_two_bounds_are_counted_and_surely_above_apart(study):
    table = study.over_own_bound()
    cell = study.dataset.sel(mechanism="Weighted-M", size=50)
    own = 2 * cell["local_bound"]
    expected = int((cell["loss_common"] > own).sum())
    row = table.loc[("Weighted-M", 50, "common")]
    assert row["exceeded"] == row["surely"] == expected and row["estimate"] == expected / 12
    interval = stats.binomtest(expected, 12).proportion_ci(method="exact")
    assert (row["low"], row["high"]) == pytest.approx(interval)
    assert (table.xs("fixed", level="loss")["exceeded"] == 0).all()
    # averages over draws have an error, and one of them is above by less than two of it
    row = table.loc[("Weighted-M", 50, "integrated")]
    least = cell["loss_integrated"] - 2 * cell["loss_integrated_error"]
    assert row["surely"] == int((least > own).sum()) < row["exceeded"]
    # each seed has its own bound, and one that is above is enough
    assert study.shares_of_own_bound("worst").equals(study.dataset["share_worst"])
    shares = study.shares_of_own_bound("integrated").sel(mechanism="Weighted-M", size=50)
    assert np.array_equal(shares, cell["loss_integrated"] / own)
    worst = table.xs("worst", level="loss")["exceeded"]
    assert worst["Weighted-M", 50] == int((cell["share_worst"] > 1).sum()) > expected
    assert (worst >= table.xs("common", level="loss")["exceeded"]).all()
    with pytest.raises(ValueError, match="^losses must be among"):
        study.over_own_bound(["typical"])


def test_shares_stand_side_by_side_with_their_intervals(study):
    shown, table = study.shares_side_by_side(), study.over_own_bound()
    assert shown.columns.tolist() == [
        "one seed", "worst of 20 seeds", "integrated out", "above", "surely"
    ]
    assert shown.index.tolist() == list(product(audit.MECHANISMS, (50, 800)))
    row = shown.loc["Weighted-M", 50]
    for column, kind in zip(shown.columns[:3], ("common", "worst", "integrated"), strict=True):
        found = table.loc[("Weighted-M", 50, kind)]
        numbers = (100 * found[name] for name in ("estimate", "low", "high"))
        assert row[column] == "{:.1f} % ({:.1f}–{:.1f})".format(*numbers)
    found = table.loc[("Weighted-M", 50, "integrated")]
    assert (row["above"], row["surely"]) == (found["exceeded"], found["surely"])
    assert row["worst of 20 seeds"] != row["one seed"]


def test_pi_of_the_definition_is_1_unless_the_prior_is_restricted(study):
    limit = 2 * study.truncate_at
    table = study.exceedance(limit)["estimate"].unstack("size")
    for mechanism in audit.MECHANISMS:
        assert (table.loc[mechanism] == (0 if mechanism in audit.RESTRICTED else 1)).all()
    # nor would a larger ε help, and half of it is enough for capped bounds of a probability
    assert (study.exceedance(1e9)["estimate"].loc[list(RULES)] == 1).all()
    assert (study.exceedance(limit / 2)["estimate"].loc["Capped on T"] == 0).all()
    found = study.dataset["loss_supremum"].sel(mechanism="Range-capped on T", size=800)
    row = study.exceedance(float(found.median())).loc["Range-capped on T", 800]
    assert row["exceeded"] == 6
    # while over the range of the draws hardly a database is above its own bound
    over = study.over_own_bound(["common"])["estimate"]
    assert over.unstack("mechanism").drop(columns="Weighted-M").max(axis=None) == 0


def test_the_loss_grows_without_limit_where_the_prior_goes_on_and_ends_where_it_ends():
    found = ppm.audits.exact(COUNTS, public=PUBLIC, draws=200, weight_draws=3, random_seed=5)
    means = [70.0, 100.0, 500.0, 5000.0]
    table = ppm.audits.losses_at(found, means)
    records = ppm.GammaPoisson(COUNTS)
    weights = RULES["Capped"](None, records)
    whole = records.posterior(weights)
    for mean in means:
        exact = [
            abs(whole.logpdf(mean) - records.posterior(weights * (np.arange(10) != i)).logpdf(mean))
            for i in range(10)
        ]
        assert table.loc["Capped", mean] == pytest.approx(max(exact), rel=1e-6)
    assert np.all(table.loc[list(RULES), 5000.0] > 5 * table.loc[list(RULES), 500.0])
    restricted = table.loc[list(audit.RESTRICTED)]
    assert restricted.isna().equals(restricted.apply(lambda column: column * 0 + 1).isna())
    assert restricted[100.0].notna().all() and restricted.drop(columns=100.0).isna().all(axis=None)
    # inside, the ratio of the two masses on T comes in
    assert np.abs(restricted[100.0].values - table.loc[["Capped", "Range-capped"], 100.0]).max() > 0
    with pytest.raises(ValueError, match="^means must be"):
        ppm.audits.losses_at(found, [0.0])


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
    data = study.dataset.sel(size=800)
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


def test_a_database_of_the_study_can_be_audited_again_record_by_record(study):
    worst = study.worst("Weighted-M", 800)
    again = study.audit(800, worst)
    cell = study.dataset.sel(size=800, replicate=worst)
    for kind in ("fixed", "common", "integrated"):
        largest = again[f"loss_{kind}"].max("left_out")
        assert np.array_equal(largest, cell[f"loss_{kind}"])
    assert np.array_equal(again["local_bound"], cell["local_bound"])
    # the error is that of the record with the largest loss, which need not be the largest error
    of_other = study.audit(50, 0)
    errors = of_other["loss_integrated_error"].values
    stated = study.dataset.sel(size=50, replicate=0)["loss_integrated_error"].values
    places = of_other["loss_integrated"].values.argmax(axis=-1)
    assert np.array_equal(errors[range(7), places], stated)
    assert np.any(errors.max(axis=-1) > stated)
    ratio = study.dataset["loss_common"] / study.dataset["local_bound"]
    assert np.argmax(ratio.sel(mechanism="Weighted-M", size=800).values) == worst
    # over the draws the loss is at most what it is over the set of all of them
    inside = np.abs(again["loss_over_draws"]).max("level")
    assert np.all(inside <= again["loss_common"] + 1e-9) and np.any(inside > 0.3)
    with pytest.raises(ValueError, match="^replicate must be below 12"):
        study.audit(800, 12)
    with pytest.raises(ValueError, match="^size must be among 50, 800"):
        study.audit(100, 0)
    with pytest.raises(ValueError, match="^mechanism must be among"):
        study.worst("Weighted-N", 800)
    worst = study.worst("Weighted-M", 50, "worst")
    shares = study.dataset["share_worst"].sel(mechanism="Weighted-M", size=50)
    assert np.argmax(shares.values) == worst


@pytest.mark.parametrize("mean", [0.01, 0.7, 1e5])
def test_counts_of_any_size_can_be_audited(mean):
    data = ppm.audits.study([2, 5], replicates=4, mean=mean, weight_draws=3, random_seed=1).dataset
    limitless = "loss_supremum", "share_worst"
    assert all(np.isfinite(data[name]).all() for name in data if name not in limitless)
    assert not any(np.isnan(data[name]).any() for name in limitless)


def test_every_column_of_the_tables_is_what_its_name_says(study):
    data = study.dataset.sel(mechanism="Weighted-M", size=50)
    row = study.losses().loc["Weighted-M", 50]
    largest = int(np.argmax(data["loss_integrated"].values))
    expected = {
        "2Δ": 2 * data["local_bound"].median(),
        "oscillation": data["oscillation_bound"].median(),
        "weights fixed": data["loss_fixed"].median(),
        "one seed": data["loss_common"].median(),
        "integrated out": data["loss_integrated"].median(),
        "largest, one seed": data["loss_common"].max(),
        "largest of 20 seeds": data["loss_worst"].max(),
        "largest, integrated": data["loss_integrated"].max(),
        "its standard error": data["loss_integrated_error"][largest],
    }
    assert row.to_dict() == pytest.approx({name: float(of) for name, of in expected.items()})
    assert len(set(row)) == len(row)  # no two of them are told apart by name only
    row = study.reactions().loc["Weighted-M", 50]
    expected = {
        "weights moved": data["weights_moved"].mean(),
        "weights switched": data["weights_switched"].mean(),
        "share of records over": data["records_over"].mean(),
        "share of μ over": data["parameters_over"].mean(),
        "mass outside draws": data["outside"].mean(),
        "mass outside public": data["outside_public"].max(),
    }
    assert row.to_dict() == pytest.approx({name: float(of) for name, of in expected.items()})
    row = study.utility().loc["Weighted-M", 50]
    error = data["average_mean"] - 100
    assert row["bias"] == pytest.approx(float(error.mean()))
    assert row["root mean square error"] == pytest.approx(float(np.sqrt((error**2).mean())))
    assert row["spread"] == pytest.approx(float(data["spread"].mean()))
    for table in (study.losses(), study.reactions(), study.utility()):
        assert len(table) == len(audit.MECHANISMS) * 2 and not table.isna().any(axis=None)


def test_the_comparison_reads_the_study(study):
    table = study.comparison()
    assert table["weights from"].tolist() == ["none", "all", "all", "own", "own", "own", "own"]
    assert table["set of μ"].tolist() == ["draws"] * 5 + ["T"] * 2
    cell = study.dataset.sel(mechanism="Weighted-M")
    row = table.loc["Weighted-M"]
    over = (cell["loss_integrated"] > 2 * cell["local_bound"]).mean("replicate").max()
    assert row["over own 2Δ"] == float(over) > 0
    assert row["2Δ"] == 2 * float(cell["local_bound"].max())
    assert row["oscillation"] == float(cell["oscillation_bound"].max())
    assert row["loss"] == float(cell["loss_integrated"].max())
    place = cell["loss_integrated"].argmax(["size", "replicate"])
    assert row["standard error"] == float(cell["loss_integrated_error"].isel(place)) > 0
    assert table.loc["Unweighted", "error"] == 1 and table.loc["Capped", "2Δ"] <= 7
    restricted = table["set of μ"] == "T"
    assert np.isinf(table["whole prior"]).equals(~restricted)
    exact = study.dataset["loss_fixed"].max(["size", "replicate"]).sel(mechanism="Capped on T")
    assert table.loc["Capped on T", "whole prior"] == float(exact)
    error = study.utility()["root mean square error"]
    assert table.loc["Capped", "error"] == error["Capped", 800] / error["Unweighted", 800]


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (ppm.audits.exact, {"counts": [1], "public": PUBLIC}, "at least two records"),
        (ppm.audits.exact, {"counts": [1, 2], "public": 3}, "^public must be two"),
        (ppm.audits.exact, {"counts": [1, 2], "public": (3, 2)}, "^public must be"),
        (ppm.audits.exact, {"counts": [1, 2], "public": PUBLIC, "draws": 1}, "^draws must be"),
        (ppm.audits.study, {"sizes": [20, 10]}, "^sizes must increase"),
        (ppm.audits.study, {"weight_draws": 0}, "^weight_draws must be"),
        (ppm.audits.study, {"truncate_at": -1}, "^truncate_at must be"),
    ],
)
def test_settings_out_of_range_are_named(function, arguments, message):
    with pytest.raises(ValueError, match=message):
        function(**arguments)


def test_a_unit_moves_the_bound_by_its_logarithm_and_the_oscillation_not_at_all():
    values = np.array([10.0, 20.0, 70.0, 300.0]) * 1000
    table = ppm.audits.bounds_by_unit(values, {"dollars": 1.0, "thousands": 1000.0}, random_seed=1)
    dollars, thousands = table.loc["dollars"], table.loc["thousands"]
    # every density is below 1 in both units, so that the constant adds to every |log p|
    assert dollars["2Δ"] - thousands["2Δ"] == pytest.approx(2 * np.log(1000))
    assert dollars["oscillation"] == pytest.approx(thousands["oscillation"])
    assert dollars["average reciprocal weight"] < thousands["average reciprocal weight"]
    for wrong, told in (([1.0, 1.0], "not all the same"), ([1.0, np.nan], "finite")):
        with pytest.raises(ValueError, match=told):
            ppm.audits.bounds_by_unit(wrong, {"dollars": 1.0})
    with pytest.raises(ValueError, match="units"):
        ppm.audits.bounds_by_unit(values, {"nothing": 0.0})


def test_databases_without_any_count_and_priors_near_nothing_are_audited_or_refused():
    # no count at all: μ underflows, and so do its draws
    study = ppm.audits.study(
        [2], replicates=2, mean=1e-3, public=(0.5, 2.0), draws=2, weight_draws=1, random_seed=1
    )
    assert not np.isnan(study.dataset["loss_common"]).any()
    found = ppm.audits.exact(
        [3, 4, 5], public=(1.0, 10.0), shape=1e-9, rate=1e-9, draws=20, random_seed=1
    )
    assert not np.isnan(found["loss_common"]).any()
    with pytest.raises(ValueError, match="^rate must be a finite number at least 1e-09"):
        ppm.audits.exact([3, 4, 5], public=(1.0, 10.0), rate=1e-300)
