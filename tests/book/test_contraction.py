"""The chapter's study of contraction: against the mechanism, and on every executor."""

import os
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from distributed import LocalCluster, default_client
from scipy import stats

import ppm
from ppm.models.counts import log_likelihood_of_counts
from ppm_book.chapters import contraction, running

SETTINGS = dict(mean=100.0, truncate_at=3.5, draws=50, seed=5)


def simulate(sizes=(30, 60), replicates=6, **given):
    """A small study, on the engine that a chapter would have."""
    return contraction.simulate(
        sizes, range(replicates), running.executor(), **SETTINGS | given
    )


@pytest.fixture(scope="module")
def engines():
    """Nothing, a pool of two processes, and a Dask cluster."""
    one = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(**one) as cluster:
        yield {}, {"PPM_WORKERS": "2"}, {"PPM_SCHEDULER": cluster.scheduler_address}


def run(engine, **settings):
    """The study as ``ppm run`` has it made: with an engine, or without."""
    running.executor.cache_clear()
    try:
        with patch.dict(os.environ, engine):
            if "PPM_WORKERS" in engine:
                # each worker keeps to one core
                assert (
                    running.executor().submit(os.getenv, "NUMBA_NUM_THREADS").result()
                    == "1"
                )
            return simulate(**settings)
    finally:
        running.executor.cache_clear()
        if "PPM_SCHEDULER" in engine:
            default_client().close()


@pytest.mark.thorough
def test_map_a_pool_and_a_dask_cluster_give_the_same_table(engines):
    here, *others = map(run, engines)
    assert len(here) == 3 * 2 * 6
    for other in others:
        pd.testing.assert_frame_equal(here, other, check_exact=True)
    # the databases of a size depend on no other size
    one = simulate(sizes=[60])
    pd.testing.assert_frame_equal(here[here["size"] == 60].reset_index(drop=True), one)


def test_a_database_is_the_mechanism_with_every_draw_and_record():
    rows = contraction.one_database((300, 0), **SETTINGS | {"draws": 200})
    rows = {row[0]: row[3:] for row in rows}
    rng = np.random.default_rng([SETTINGS["seed"], 300, 0])
    counts = rng.poisson(100, 300)

    def fit(weights):
        mu = rng.gamma(0.001 + weights @ counts, 1 / (0.001 + weights.sum()), (200, 1))
        return log_likelihood_of_counts(counts, mu), mu.mean()

    before, average = fit(np.ones(300))
    assert rows["Unweighted"] == pytest.approx((ppm.local_bound(before), average, 0))
    # one of the two extreme draws alone is not enough
    lowest = before[np.argmin(before.sum(axis=1))]
    assert np.abs(lowest).max() <= rows["Unweighted"][0]
    for name, truncate_at in (("Weighted", None), ("Weighted-M", 3.5)):
        weights = ppm.record_weights(ppm.record_bounds(before), truncate_at=truncate_at)
        log_lik, average = fit(weights)
        expected = ppm.local_bound(log_lik, weights), average, np.sum(weights == 0)
        assert rows[name] == pytest.approx(expected)
        # a bound without its weights is another number
        assert rows[name][0] != pytest.approx(ppm.local_bound(log_lik))


def test_every_share_is_one_of_the_other_databases():
    bounds = (
        simulate().query("mechanism == 'Unweighted' and size == 60")["bound"].to_numpy()
    )
    for factor in (1.0, 1.02, 1.1):
        by_hand = np.mean(
            [np.mean(np.delete(bounds, i) > factor * bounds[i]) for i in range(6)]
        )
        assert contraction.not_covered(bounds, factor) == pytest.approx(by_hand)


def test_a_bound_over_draws_nears_the_one_at_the_limit_and_the_global_one_does_not():
    # records with these counts and the weight 1 do not get more extreme as n grows
    rng, kept = np.random.default_rng(1), np.arange(85, 116)
    at_limit = np.abs(stats.poisson.logpmf(kept, 100)).max()
    away = []
    for n in (100, 10_000, 1_000_000):
        mu = rng.gamma(rng.poisson(100 * n), 1 / n, 1000)
        bound = ppm.local_bound(stats.poisson.logpmf(kept, mu[:, None]))
        away.append(abs(bound - at_limit))
    assert away[0] > 3 * away[1] > 9 * away[2]
    # over a public interval of means the global bound is larger, at every n
    ends = np.array([[90.0], [110.0]])
    assert np.abs(stats.poisson.logpmf(kept, ends)).max() > at_limit + 1
    # without weights there is no bound over an endless sequence: each record has its own
    extremes = stats.poisson.isf([1e-3, 1e-6, 1e-12], 100)
    assert np.all(np.diff(-stats.poisson.logpmf(extremes, 100)) > 3)


def of(table, mechanism, statistic):
    """The rows of a statistic."""
    chosen = (table["mechanism"] == mechanism) & (table["statistic"] == statistic)
    return table[chosen].set_index("size")


def test_a_study_of_many_repeats_is_judged_by_their_scatter():
    study = simulate(replicates=8).replace({"size": {60: 1000}})
    settings = {"truncate_at": 3.5, "mean": 100.0}
    found = of(
        contraction.table(study, studies=2, **settings), "Unweighted", "largest bound"
    )
    plain = study[study["mechanism"] == "Unweighted"]
    # by halves of the study, and by quarters
    each, fours = (
        plain.groupby([plain["database"] // size, "size"])["bound"].max().unstack()
        for size in (4, 2)
    )
    assert [*found.index] == [30, 1000]
    assert found["value"].to_numpy() == pytest.approx(each.mean(axis=0))
    assert found["error"].to_numpy() == pytest.approx(np.ptp(each, axis=0) / 2)
    table = contraction.table(study, **settings)
    alone = of(table, "Unweighted", "largest bound")
    assert alone["value"].to_numpy() == pytest.approx(each.max(axis=0))
    # of a single study the scatter of its parts, and not of their average
    assert alone["error"].to_numpy() == pytest.approx(fours.std(axis=0))
    # how far a bound grows from the smallest size to the largest, and the mean moves
    by_size = study.groupby(["mechanism", "size"])
    for which, found in (
        ("largest", by_size["bound"].max()),
        ("median", by_size["bound"].median()),
    ):
        for name, bound in found.unstack().iterrows():
            grown = pytest.approx(bound[1000] - bound[30])
            assert (
                of(table, name, f"growth of the {which} bound")["value"].item() == grown
            )
            # with two sizes the one step is all of it, and stands at the larger
            assert (
                of(table, name, f"steps of the {which} bound")["value"][1000] == grown
            )
    average = study.set_index(["mechanism", "size", "database"])["average"]
    moved = (average["Weighted-M"] - average["Unweighted"]).groupby("size").mean()
    shift = of(table, "Weighted-M", "shift of the mean in standard deviations")["value"]
    assert shift.to_numpy() == pytest.approx(
        abs(moved) / average["Unweighted"].groupby("size").std()
    )
    bias = of(table, "Weighted", "bias of the mean")["value"]
    assert bias.to_numpy() == pytest.approx(
        abs(average["Weighted"].groupby("size").mean() - 100)
    )


def test_shares_of_bounds_are_counted_and_never_sure_to_be_none():
    study = simulate(replicates=8)
    bounds = study[(study["mechanism"] == "Weighted") & (study["size"] == 60)]["bound"]
    limit = bounds.sort_values().iloc[4]
    table = contraction.table(study, truncate_at=limit, mean=100.0)
    found = of(table, "Weighted", "share of bounds above M").loc[60]
    assert found["value"] == 3 / 8 and 0 < found["error"] < 1
    # nobody is above 1.1 times another bound, in any part
    few = study.assign(bound=1.0)
    table = contraction.table(few, truncate_at=limit, mean=100.0)
    found = of(table, "Weighted", "share above 1.1 times a bound")
    assert (found["value"] == 0).all() and (found["error"] > 0).all()


def test_the_ledger_gets_each_statistic_by_its_name_with_the_sizes():
    study, settings = simulate(), {"truncate_at": 3.5, "mean": 100.0}
    values = contraction.values(study, **settings)
    entry = values["Weighted-M: range of bounds"]
    rows = of(contraction.table(study, **settings), "Weighted-M", "range of bounds")
    assert [*entry["at"]] == [30, 60]
    for name in ("value", "error"):
        assert np.array_equal(entry[name], rows[name])
    assert [*values["sizes"]["value"]] == [30, 60] and values["mean"]["value"] == 100
    # the chapter alone has no name less than the study of many repeats
    names = contraction.named(
        contraction.table(study, **settings), contraction.UP_TO_1000
    )
    assert contraction.unknown_at_1000().keys() <= names.keys()


def test_numbers_of_one_study_are_the_statistics_that_they_are_called_by():
    rng = np.random.default_rng(6)
    study = pd.DataFrame(
        [
            {"mechanism": mechanism, "size": size, "database": database}
            | {"bound": rng.gamma(9.0), "average": rng.normal(9.0)}
            | {"removed": rng.integers(1, 9)}
            for mechanism in ("Unweighted", "Weighted-M")
            for size in (100, 400, 900)
            for database in range(40)
        ]
    )
    table = contraction.table(study, truncate_at=8.0, mean=9.5)
    found = table.set_index(["mechanism", "statistic", "size"])["value"].sort_index()
    groups = study.groupby(["mechanism", "size"])
    bounds, averages = groups["bound"], groups["average"]
    shift = (averages.mean() - averages.mean()["Unweighted"]) / averages.std()[
        "Unweighted"
    ]
    known = {
        "smallest bound": bounds.min(),
        "median bound": bounds.median(),
        "largest bound": bounds.max(),
        "range of bounds": bounds.max() - bounds.min(),
        "largest over smallest bound": bounds.max() / bounds.min(),
        "spread of bounds": bounds.std(),
        "average of the mean": averages.mean(),
        "bias of the mean": (averages.mean() - 9.5).abs(),
        "shift of the mean in standard deviations": shift.abs(),
        "distance of the smallest bound from M": (bounds.min() - 8.0).abs(),
        "distance of the largest bound from M": (bounds.max() - 8.0).abs(),
        "share of bounds above M": bounds.apply(lambda bound: (bound > 8.0).mean()),
        "share of bounds above 1.05 M": bounds.apply(
            lambda bound: (bound > 8.4).mean()
        ),
        **{
            f"share above {factor} times a bound": bounds.apply(
                lambda bound, factor=factor: contraction.not_covered(bound, factor)
            )
            for factor in (1.05, 1.1)
        },
    }
    for statistic, values in known.items():
        for (mechanism, size), value in values.items():
            assert found[mechanism, statistic, size] == pytest.approx(value), statistic
    told = {*known}
    for mechanism in ("Unweighted", "Weighted-M"):
        of_sizes = {
            "constant of contraction": stats.gmean(bounds.std()[mechanism]),
            "exponent of the spread of bounds": slope(bounds.std()[mechanism]),
            "exponent of the records removed": slope(
                groups["removed"].mean()[mechanism]
            ),
        }
        for which, bound in (("median", bounds.median()), ("largest", bounds.max())):
            one = bound[mechanism]
            steps = [one[400] - one[100], one[900] - one[400]]
            of_sizes |= {
                f"growth of the {which} bound": sum(steps),
                f"steps of the {which} bound": steps,
                f"changes of the step of the {which} bound": steps[1] - steps[0],
            }
        for statistic, value in of_sizes.items():
            shown = found[mechanism, statistic].to_numpy()
            assert shown == pytest.approx(value), statistic
        told |= {*of_sizes}
    # which power of the size a share has is an estimate of its own
    rest = {
        f"exponent of the share of bounds above {limit}" for limit in ("M", "1.05 M")
    }
    assert {*table["statistic"]} == told | rest


def slope(values):
    """Power of the size that fits best, on logarithms."""
    return np.polyfit(np.log(values.index), np.log(values), 1)[0]
