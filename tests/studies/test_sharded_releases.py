"""Releases of shards put together: what each row comes from, what they cost, what is refused."""

import contextlib
import dataclasses
import functools
import traceback
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from types import SimpleNamespace

import numpy as np
import pytest
import threadpoolctl

import ppm
from ppm.studies import random_shards, sharded_release

COUNTS = np.random.default_rng(3).poisson(6, 90)
LIMITS = ppm.Censoring(-3.5, -1.5)


def poisson(counts, rows):
    return ppm.GammaPoisson(counts[rows], shape=2.0, rate=0.4)


def run(counts=COUNTS, shards=3, **settings):
    settings = {"draws": 200, "random_seed": 5, "weights": np.full(counts.size, 0.5)} | settings
    return sharded_release(
        functools.partial(poisson, counts), counts.size, shards, LIMITS, **settings
    )


def test_a_random_assignment_is_a_partition_with_sizes_that_differ_by_one_at_most():
    shards = random_shards(90, 4, random_seed=1)
    assert sorted(rows.size for rows in shards) == [22, 22, 23, 23]
    assert np.array_equal(np.sort(np.concatenate(shards)), np.arange(90))
    assert not np.array_equal(shards[0], random_shards(90, 4, random_seed=2)[0])
    with pytest.raises(ValueError, match="shards must be at most the 3 records"):
        random_shards(3, 4)


def test_each_rows_release_comes_from_the_fit_of_its_own_shard():
    # two populations, one a shard: what is put back in the wrong place is seen
    counts = np.where(np.arange(90) % 2, COUNTS + 500, COUNTS)
    shards = [np.arange(0, 90, 2), np.arange(1, 90, 2)]
    wide = ppm.Censoring(-9.0, 0.0)
    found = sharded_release(
        functools.partial(poisson, counts), 90, shards, wide, releases=4, random_seed=1
    )
    assert found.synthetic.shape == (4, 90)
    assert found.synthetic[:, shards[0]].max() < 100 < found.synthetic[:, shards[1]].min()


def test_a_record_far_from_the_others_moves_its_shard_by_no_more_than_the_limits_allow():
    counts = np.r_[np.full(20, 5), 900]
    found = run(counts, [np.arange(21)], releases=20, weights=None)
    # without limits its mean is above 45
    assert found.synthetic.max() < 30 and found.oscillations.max() <= 2.0
    free = poisson(counts, np.arange(21)).posterior()
    assert free.ppf(0.001) > 40


def test_each_row_takes_its_own_weight_into_its_shard():
    # without weight a shard has the prior, whose mean is 5
    weighs = np.arange(90) % 2 == 1
    shards = [np.flatnonzero(~weighs), np.flatnonzero(weighs)]
    found = sharded_release(
        functools.partial(poisson, COUNTS + 100), 90, shards, ppm.Censoring(-9.0, 0.0),
        weights=weighs.astype(float), draws=50, releases=3, random_seed=1,
    )
    assert found.synthetic[:, ~weighs].max() < 60 < found.synthetic[:, weighs].min()


def test_a_shard_is_the_censored_posterior_of_its_records_alone():
    """Draws of many releases have the mean of each shard's posterior, and not of the whole's."""
    counts = np.sort(COUNTS)
    shards = np.array_split(np.arange(90), 3)
    found = run(counts, shards, releases=400, draws=400)
    for rows in shards:
        posterior = poisson(counts, rows).posterior(np.full(30, 0.5), censor=LIMITS)
        draws = posterior.rvs(4000, random_state=1)
        error = draws.std() / 20
        assert abs(found.synthetic[:, rows].mean() - draws.mean()) < 5 * error
        whole = poisson(counts, np.arange(90)).posterior(np.full(90, 0.5), censor=LIMITS)
        if rows is not shards[1]:
            assert abs(found.synthetic[:, rows].mean() - whole.mean()) > 20 * error


def test_another_records_value_changes_the_release_of_its_shard_alone():
    found = run()
    counts = COUNTS.copy()
    counts[found.shards[1][0]] += 7
    other = run(counts)
    for place, (rows, same) in enumerate(zip(found.shards, other.shards, strict=True)):
        np.testing.assert_array_equal(rows, same)
        equal = np.array_equal(found.synthetic[:, rows], other.synthetic[:, rows])
        assert equal == (place != 1)


def test_the_whole_costs_what_one_shard_costs():
    found = run(releases=5)
    # unless told otherwise, of all that were drawn
    assert found.epsilon() == 10.0 and run().epsilon() == 2.0
    assert found.epsilon(releases=1) == 2.0 and found.epsilon(releases=7) == 14.0
    assert (found.oscillations <= 2.0).all() and found.oscillations.min() > 0.5
    assert found.agree and found.draws_used == 200
    table = found.table()
    assert table["records"].tolist() == [30, 30, 30]
    assert table["oscillation"].tolist() == found.oscillations.tolist()
    checked = SimpleNamespace(
        agree=True, r_hat=3.0, r_hat_log_likelihood=1.01, effective_draws=9.0,
        effective_draws_log_likelihood=80.0,
    )
    table = dataclasses.replace(found, diagnostics=(None, checked, None)).table()
    columns = ["R-hat, sum of terms", "effective draws", "chains agree"]
    assert table.loc[2, columns].tolist() == [1.01, 80.0, True]
    assert table.loc[1, columns[:2]].isna().all() and table.loc[1, "chains agree"]


def test_without_a_seed_the_assignment_says_nothing_of_the_draws(monkeypatch):
    """With the draws' streams held fixed it is another one each time, and with a seed it is not."""
    shards = [np.arange(0, 90, 2), np.arange(1, 90, 2)]
    seeded = [run(), run()]
    held = np.random.SeedSequence(11).spawn(4)
    monkeypatch.setattr("ppm.studies.sharded_releases.streams", lambda seed, count: held[:count])
    first, second = (run(random_seed=None).shards for _ in range(2))
    assert not all(np.array_equal(*pair) for pair in zip(first, second, strict=True))
    assert all(
        np.array_equal(*pair) for pair in zip(*(found.shards for found in seeded), strict=True)
    )
    # held they were: the same rows have the same release
    given = [run(shards=shards, random_seed=None).synthetic for _ in range(2)]
    np.testing.assert_array_equal(*given)


def mixtures(sweeps, **settings):
    """Two shards of a mixture with two chains each; a few sweeps are too few for either."""
    response = np.random.default_rng(1).normal(size=40)

    def make(rows):
        return ppm.FiniteMixture(
            response[rows], np.ones((rows.size, 1)), components=2, warmup=sweeps, chains=2,
            parallel=False,
        )

    limits = ppm.Censoring(-3.0, -1.0, smooth=False)
    return sharded_release(make, 40, 2, limits, draws=sweeps, random_seed=1, **settings)


def test_a_release_is_withheld_where_the_chains_of_a_shard_disagree():
    found = mixtures(4, releases=2)
    assert not found.agree and not found.table()["chains agree"].any()
    for asked in (lambda: found.synthetic, found.epsilon, lambda: found.epsilon(releases=1)):
        with pytest.raises(ppm.ChainsDisagreeError, match=r"withheld.*shard 1: .*, and 1 more"):
            asked()
    for shown in (found.despite_disagreement(), mixtures(4, releases=2, allow_disagreement=True)):
        assert shown.epsilon() == 4.0 and not shown.agree
        with pytest.warns(UserWarning, match="the epsilon of these databases is not known"):
            assert shown.synthetic.shape == (2, 40)


def test_one_shard_that_cannot_be_trusted_withholds_the_whole():
    found = mixtures(300)
    assert found.agree and found.synthetic.shape == (1, 40) and found.epsilon() == 2.0
    poor = mixtures(4).diagnostics[1]
    one = dataclasses.replace(found, diagnostics=(found.diagnostics[0], poor))
    assert one.table()["chains agree"].tolist() == [True, False]
    with pytest.raises(ppm.ChainsDisagreeError, match="chains behind it: shard 2: [^,]*R-hat"):
        one.epsilon()


def test_nothing_is_held_against_a_few_independent_draws():
    found = run(draws=2)
    assert found.diagnostics == (None,) * 3 and found.agree and found.epsilon() == 2.0
    table = found.table()
    assert table["chains agree"].all() and table["R-hat, sum of terms"].isna().all()


class Backwards(Executor):
    """Runs the last task first."""

    def __init__(self):
        self.tasks = []

    def submit(self, task, /, *args):
        self.tasks.append((task, args, Future()))
        if len(self.tasks) == 3:
            for function, arguments, future in reversed(self.tasks):
                future.set_result(function(*arguments))
        return self.tasks[-1][-1]


def test_shards_come_out_the_same_wherever_and_in_whatever_order_they_are_fitted():
    here = run(releases=2)
    turned = run(releases=2, executor=Backwards())
    np.testing.assert_array_equal(here.synthetic, turned.synthetic)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        away = run(releases=2, executor=pool)
    np.testing.assert_array_equal(here.synthetic, away.synthetic)
    with ThreadPoolExecutor(2) as pool:
        chains = [mixtures(20, executor=where).synthetic_found for where in (None, pool)]
    np.testing.assert_array_equal(*chains)
    # two shards share no draws: the same records twice give two releases
    double = np.r_[COUNTS[:30], COUNTS[:30]]
    found = run(double, [np.arange(30), np.arange(30, 60)]).synthetic
    assert not np.array_equal(found[:, :30], found[:, 30:])


def test_a_mixtures_rows_keep_their_own_predictors():
    rng = np.random.default_rng(1)
    predictors = np.column_stack([np.ones(80), rng.integers(0, 2, 80)])
    response = predictors @ [1.0, 5.0] + 0.2 * rng.normal(size=80)

    def make(rows):
        return ppm.FiniteMixture(
            response[rows], predictors[rows], components=2, warmup=100, chains=1, parallel=False
        )

    limits = ppm.Censoring(-6.0, 3.0, smooth=False)
    synthetic = sharded_release(make, 80, 2, limits, draws=400, random_seed=1).synthetic[0]
    high = predictors[:, 1] == 1
    assert np.median(synthetic[high]) > 5 > 2 > np.median(synthetic[~high])
    assert np.mean((synthetic > 3.5) == high) > 0.9


class Plain(ppm.GammaPoisson):
    def fit(self, weights=None, *, draws=1000, random_seed=None, progress=False):
        raise AssertionError("no fit may begin")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shards": [[0, 1], [1, 2, 3]]}, "shards must be disjoint: row 1 is in 2 of them"),
        ({"shards": [[0, 1], [3]]}, "shards must hold every row: row 2 is in none"),
        ({"shards": [[0, 1], [2, 4]]}, "whole numbers from 0 to 3"),
        ({"shards": [[0, 1], [2, -1]]}, "whole numbers from 0 to 3"),
        ({"shards": [[0.0, 1.0], [2.0, 3.0]]}, "whole numbers from 0 to 3"),
        ({"shards": [[0, 1, 2, 3], []]}, "no shard empty"),
        ({"shards": []}, "shards must be a list of the rows"),
        ({"shards": 5}, "shards must be at most the 4 records"),
        ({"shards": 1.5}, "shards must be a whole number"),
        ({"records": 0}, "records must be a whole number"),
        ({"releases": 0}, "releases must be a whole number"),
        ({"draws": 0}, "draws must be a whole number"),
        ({"weights": [1.0]}, "weights has shape"),
        ({"censor": (-3, -1)}, "censor must be a ppm.Censoring"),
        ({"censor": None}, "censor must be a ppm.Censoring; got NoneType"),
        (
            {"shards": [[0, 1], np.ma.array([2, 3, 0], mask=[0, 0, 1])]},
            "shards holds masked values",
        ),
        (
            {"shards": [[0, 1, 2], np.ma.array([3, 3], mask=[0, 1])]}, "shards holds masked values"
        ),
        ({"make": lambda rows: ppm.GammaPoisson([1, 2, 3])}, "make must return a model of the row"),
    ],
)
def test_bad_input_is_told_before_a_fit(monkeypatch, change, message):
    # it must not be reached
    monkeypatch.setattr("ppm.studies.sharded_releases._fit_shard", None)
    arguments = {
        "make": lambda rows: ppm.GammaPoisson(COUNTS[rows]), "records": 4, "shards": 2,
        "censor": LIMITS,
    } | change
    with pytest.raises(ValueError, match=message) as error:
        sharded_release(**arguments)
    assert "\n" not in str(error.value)


def test_what_is_no_function_is_refused_as_make():
    for make in (ppm.GammaPoisson([1, 2]), COUNTS):
        with pytest.raises(TypeError, match="^make must be a function from the rows of a shard"):
            sharded_release(make, 90, 2, LIMITS)


def test_a_synthesizer_without_limits_is_refused():
    with pytest.raises(TypeError, match=r"censor: the fit\(\) of Plain takes none"):
        sharded_release(lambda rows: Plain(COUNTS[rows]), 90, 3, LIMITS)


SECRET = "987654"


class Failing(ppm.GammaPoisson):
    """Fails at its first shard with a record in the message, and counts the fits."""

    began = []

    def fit(self, *arguments, censor=None, **settings):
        self.began.append(self.records)
        raise RuntimeError(f"no fit of {SECRET}")


class Refusing(Executor):
    """Shows what it was given in an error: at once, or as what came of it."""

    def __init__(self, at_once):
        self.at_once = at_once

    def submit(self, task, /, *args):
        error = RuntimeError(f"cannot run {args} for {SECRET}")
        if self.at_once:
            raise error
        future = Future()
        future.set_exception(error)
        return future


@pytest.mark.parametrize("where", ["here", "threads", "refused", "given back"])
def test_a_failing_shard_ends_the_release_and_shows_no_record(where):
    def make(rows):
        return (Failing if 0 in rows else ppm.GammaPoisson)(COUNTS[rows])

    shards = [np.arange(30, 60), np.r_[0:30], np.arange(60, 90)]
    executor = {
        "here": None, "threads": ThreadPoolExecutor(1), "refused": Refusing(True),
        "given back": Refusing(False),
    }[where]
    with executor or contextlib.nullcontext():
        with pytest.raises(RuntimeError, match=r"^shard \d was not computed.*no result") as caught:
            sharded_release(make, 90, shards, LIMITS, draws=20, executor=executor)
    shown = "".join(traceback.format_exception(caught.value))
    assert SECRET not in shown
    if where in ("here", "threads"):
        assert "shard 2" in shown and "not kept, since it may repeat a record" in shown


def test_after_a_failure_here_no_shard_begins():
    Failing.began.clear()
    with pytest.raises(RuntimeError, match="shard 1"):
        sharded_release(lambda rows: Failing(COUNTS[rows]), 90, 3, LIMITS)
    assert Failing.began == [30]


def test_an_executor_is_given_nothing_that_shows_a_record():
    """Also not the weights: a log of what it runs shows neither model nor numbers."""
    executor = Backwards()
    run(executor=executor)
    shown = repr([args for _, args, _ in executor.tasks])
    assert shown.count("Payload()") == 3
    assert not any(name in shown for name in ("GammaPoisson", "Censoring", "array", "0.5"))


def test_the_run_decides_where_shards_are_fitted(monkeypatch):
    with pytest.raises(ValueError, match="^executor must be a concurrent.futures.Executor"):
        run(executor="threads")
    monkeypatch.setenv("PPM_WORKERS", "many")
    with pytest.raises(ValueError, match="^PPM_WORKERS must be a whole number"):
        run()


def test_shards_are_fitted_in_one_thread_wherever():
    seen = []

    class Threads(ppm.GammaPoisson):
        def fit(self, *arguments, censor=None, **settings):
            seen.extend(pool["num_threads"] for pool in threadpoolctl.threadpool_info())
            return super().fit(*arguments, censor=censor, **settings)

    with threadpoolctl.threadpool_limits(2), ThreadPoolExecutor(1) as pool:
        for executor in (None, pool):
            sharded_release(
                lambda rows: Threads(COUNTS[rows], shape=2.0, rate=0.4), 90, 2, LIMITS, draws=20,
                executor=executor,
            )
    assert seen and set(seen) == {1}
