"""The exact audit against a record-by-record computation, and what it must be able to see."""

import numpy as np
import pytest
from scipy import stats

import ppm
from ppm import audit

COUNTS = np.array([98, 101, 95, 101, 104, 88, 110, 93, 101, 125])
PUBLIC = (80.0, 120.0)
RULES = {
    "Unweighted": lambda log_lik, records: np.ones(records.records),
    "Weighted": lambda log_lik, records: ppm.record_weights(log_lik),
    "Weighted-M": lambda log_lik, records: ppm.record_weights(log_lik, truncate_at=3.5),
    "Capped": lambda log_lik, records: ppm.record_determined_weights(
        records.bounds_within(*PUBLIC), ppm.capped_map(3.5)
    ),
    "Range-capped": lambda log_lik, records: ppm.record_determined_weights(
        records.oscillations_within(*PUBLIC), ppm.capped_map(7.0)
    ),
}


def by_record(counts, draws, weight_draws, seed):
    """The same losses from library calls on whole databases, record after record."""
    rng = np.random.default_rng(seed)
    sets = audit._extreme_levels(draws, len(RULES), rng).T
    levels = audit._extreme_levels(draws, weight_draws, rng).T
    found = {}

    def posteriors(counts, rule):
        """Pseudo posterior, with weights, for every draw of the weights."""
        records = ppm.GammaPoisson(counts)
        for level in levels:
            ends = records.posterior().ppf(level)
            log_lik = stats.poisson.logpmf(counts, ends[:, None])
            weights = rule(log_lik, records)
            yield records.posterior(weights), weights

    for (name, rule), ends in zip(RULES.items(), sets, strict=True):
        whole = list(posteriors(counts, rule))
        first, weights = whole[0]
        low, high = first.ppf(ends)
        mu = np.linspace(low, high, audit._GRID)
        fine = np.linspace(low, high, 2001)
        losses = {"fixed": [], "common": [], "integrated": []}
        for record in range(counts.size):
            left = np.delete(counts, record)
            parts = list(posteriors(left, rule))
            kept = ppm.GammaPoisson(left).posterior(np.delete(weights, record))
            losses["fixed"].append(np.abs(first.logpdf(fine) - kept.logpdf(fine)).max())
            losses["common"].append(np.abs(first.logpdf(fine) - parts[0][0].logpdf(fine)).max())
            sides = [
                np.log(np.mean([part.pdf(mu) for part, _ in side], axis=0))
                for side in (whole, parts)
            ]
            losses["integrated"].append(np.abs(sides[0] - sides[1]).max())
        log_lik = stats.poisson.logpmf(counts, fine[:, None])
        found[name] = losses, ppm.local_bound(log_lik, weights), ppm.oscillation_bound(
            log_lik, weights
        )
    return found


@pytest.mark.parametrize("weight_draws", [1, 7])
def test_the_audit_equals_a_computation_record_by_record(weight_draws):
    found = ppm.exact_audit(
        COUNTS, public=PUBLIC, draws=200, weight_draws=weight_draws, random_seed=5
    )
    place = np.searchsorted(found["left_out"], COUNTS)
    for name, (losses, bound, oscillation) in by_record(COUNTS, 200, weight_draws, 5).items():
        here = found.sel(mechanism=name)
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


def test_levels_of_extremes_are_those_of_draws():
    low, high = audit._extreme_levels(50, 4_000, np.random.default_rng(1))
    draws = np.random.default_rng(2).uniform(size=(4_000, 50))
    assert stats.ks_2samp(low, draws.min(axis=1)).pvalue > 0.001
    assert stats.ks_2samp(high, draws.max(axis=1)).pvalue > 0.001
    assert stats.ks_2samp(high - low, np.ptp(draws, axis=1)).pvalue > 0.001
    assert stats.ks_2samp(low, draws[:, :40].min(axis=1)).pvalue < 1e-6


@pytest.fixture(scope="module")
def study():
    return ppm.audit_study([50, 800], replicates=12, weight_draws=20, random_seed=3)


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
    other = ppm.contraction_study([50, 800], replicates=12, random_seed=3)
    ours = study.dataset["average_mean"].sel(mechanism="Unweighted")
    theirs = other.dataset["average_mean"].sel(mechanism="Unweighted")
    error = 4 * np.sqrt(100 / ours["size"] / other.draws)
    assert np.all(np.abs(ours - theirs) < error)
    assert not np.all(np.abs(ours - theirs.roll(replicate=1)) < error)


def test_the_study_repeats_and_a_size_does_not_depend_on_the_others(study):
    again = ppm.audit_study([800], replicates=12, weight_draws=20, random_seed=3)
    assert study.dataset.sel(size=[800]).identical(again.dataset)
    other = ppm.audit_study([800], replicates=12, weight_draws=20, random_seed=4)
    assert not again.dataset.equals(other.dataset)


def test_pi_counts_databases_whose_loss_exceeds_their_own_two_bounds(study):
    table = study.exceedance(["fixed", "common"])
    cell = study.dataset.sel(mechanism="Weighted-M", size=800)
    expected = int((cell["loss_common"] > 2 * cell["local_bound"]).sum())
    row = table.loc[("Weighted-M", 800, "common")]
    assert row["exceeded"] == expected and row["estimate"] == expected / 12
    interval = stats.binomtest(expected, 12).proportion_ci(method="exact")
    assert (row["low"], row["high"]) == pytest.approx(interval)
    assert (table.xs("fixed", level="loss")["exceeded"] == 0).all()
    with pytest.raises(ValueError, match="^losses must be among"):
        study.exceedance(["typical"])


def test_a_database_of_the_study_can_be_audited_again_record_by_record(study):
    worst = study.worst("Weighted-M", 800)
    again = study.audit(800, worst)
    cell = study.dataset.sel(size=800, replicate=worst)
    for kind in ("fixed", "common", "integrated"):
        largest = again[f"loss_{kind}"].max("left_out")
        assert np.array_equal(largest, cell[f"loss_{kind}"])
    assert np.array_equal(again["local_bound"], cell["local_bound"])
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


@pytest.mark.parametrize("mean", [0.01, 0.7, 1e5])
def test_counts_of_any_size_can_be_audited(mean):
    data = ppm.audit_study([2, 5], replicates=4, mean=mean, weight_draws=3, random_seed=1).dataset
    assert all(np.isfinite(data[name]).all() for name in data)


def test_tables_have_a_row_for_every_mechanism_and_size(study):
    for table in (study.losses(), study.reactions(), study.utility()):
        assert len(table) == len(audit.MECHANISMS) * 2 and not table.isna().any(axis=None)
    bias = study.utility()["bias"]
    error = study.dataset["average_mean"].mean("replicate") - 100
    assert bias.loc[("Capped", 800)] == pytest.approx(
        error.sel(mechanism="Capped", size=800).item()
    )


def test_the_comparison_reads_the_study(study):
    table = study.comparison()
    assert table["weights depend on"].tolist() == [
        "no record", "all records", "all records", "the record alone", "the record alone"
    ]
    cell = study.dataset.sel(mechanism="Weighted-M")
    over = (cell["loss_integrated"] > 2 * cell["local_bound"]).mean("replicate").max()
    assert table.loc["Weighted-M", "databases over"] == float(over)
    assert table.loc["Unweighted", "error"] == 1 and table.loc["Capped", "largest 2Δ"] <= 7
    error = study.utility()["root mean square error"]
    assert table.loc["Capped", "error"] == error["Capped", 800] / error["Unweighted", 800]


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (ppm.exact_audit, {"counts": [1], "public": PUBLIC}, "at least two records"),
        (ppm.exact_audit, {"counts": [1, 2], "public": 3}, "^public must be two"),
        (ppm.exact_audit, {"counts": [1, 2], "public": (3, 2)}, "^public must be"),
        (ppm.exact_audit, {"counts": [1, 2], "public": PUBLIC, "draws": 1}, "^draws must be"),
        (ppm.audit_study, {"sizes": [20, 10]}, "^sizes must increase"),
        (ppm.audit_study, {"weight_draws": 0}, "^weight_draws must be"),
        (ppm.audit_study, {"truncate_at": -1}, "^truncate_at must be"),
    ],
)
def test_settings_out_of_range_are_named(function, arguments, message):
    with pytest.raises(ValueError, match=message):
        function(**arguments)


def test_a_unit_moves_the_bound_by_its_logarithm_and_the_oscillation_not_at_all():
    values = np.array([10.0, 20.0, 70.0, 300.0]) * 1000
    table = ppm.bounds_by_unit(values, {"dollars": 1.0, "thousands": 1000.0}, random_seed=1)
    dollars, thousands = table.loc["dollars"], table.loc["thousands"]
    # every density is below 1 in both units, so that the constant adds to every |log p|
    assert dollars["2Δ"] - thousands["2Δ"] == pytest.approx(2 * np.log(1000))
    assert dollars["oscillation"] == pytest.approx(thousands["oscillation"])
    assert dollars["average reciprocal weight"] < thousands["average reciprocal weight"]
    for wrong, told in (([1.0, 1.0], "not all the same"), ([1.0, np.nan], "finite")):
        with pytest.raises(ValueError, match=told):
            ppm.bounds_by_unit(wrong, {"dollars": 1.0})
    with pytest.raises(ValueError, match="units"):
        ppm.bounds_by_unit(values, {"nothing": 0.0})
