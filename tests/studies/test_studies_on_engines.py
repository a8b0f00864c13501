"""The studies that existed before engines did: the same numbers on one, kept and told apart."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

import ppm
from ppm_book import equal_bound_study, open_settings, survey
from ppm_book.open_settings import TRANSFORMATIONS

LOG, ASINH = TRANSFORMATIONS[:2]
COUNTS = np.random.default_rng(2).poisson(20, 30)
MARK = 987654
SHORT = {"warmup": 5, "draws": 10, "random_seed": 3, "parallel": False}


@pytest.fixture(scope="module")
def threads():
    with ThreadPoolExecutor(2) as executor:
        yield executor


@pytest.fixture(scope="module")
def households():
    return survey.simulate(40, random_seed=1)


@pytest.fixture(scope="module")
def studies(households):
    """Name to a study of two parts, and one of the first part alone, each a function."""

    def settings(components, **where):
        return open_settings.settings(
            households, components, transformations=[ASINH], **SHORT, **where
        ).dataset

    def equal(pairs, **where):
        return equal_bound_study.equal_bounds(
            households, pairs, [(0.7, 0.0)], repeats=1, releases=2, attempts=1, **SHORT, **where
        ).dataset

    return {
        "settings": (partial(settings, [1, 2]), partial(settings, [1])),
        "equal bounds": (partial(equal, [(1, LOG), (2, ASINH)]), partial(equal, [(1, LOG)])),
    }


@pytest.mark.parametrize("name", ["settings", "equal bounds"])
def test_numbers_are_those_without_an_engine(studies, name, threads, tmp_path):
    both, first = studies[name]
    plain = both()
    assert both(executor=threads).identical(plain)
    first(store=tmp_path)
    (kept,) = (path.stat().st_mtime_ns for path in tmp_path.glob("*.npz"))
    assert both(store=tmp_path, executor=threads).identical(plain)
    times = {path.stat().st_mtime_ns for path in tmp_path.glob("*.npz")}
    # what was there was taken as it was
    assert len(times) == 2 and kept in times
    assert both(store=tmp_path).identical(plain)
    assert {path.stat().st_mtime_ns for path in tmp_path.glob("*.npz")} == times


class FailsWithTwo(ppm.FiniteMixture):
    """Cannot be made with two components."""

    def __init__(self, *arguments, components, **settings):
        if components == 2:
            raise ValueError(f"record {MARK}")
        super().__init__(*arguments, components=components, **settings)


def test_a_combination_that_fails_is_a_row_and_its_numbers_are_missing(
    households, threads, monkeypatch
):
    for module in (open_settings, equal_bound_study):
        monkeypatch.setattr(module, "FiniteMixture", FailsWithTwo)
    settings = partial(open_settings.settings, households, [1, 2], transformations=[LOG], **SHORT)
    equal = partial(
        equal_bound_study.equal_bounds, households, [(2, LOG), (1, LOG)], [(0.7, 0.0)], repeats=1,
        releases=2, attempts=1, **SHORT,
    )
    for study in (settings, equal):
        # without an engine it is an error
        with pytest.raises(ValueError, match=f"record {MARK}"):
            study()
        found = study(executor=threads)
        (row,) = found.failures.to_dict("records")
        assert (row["components"], row["transformation"], row["error"]) == (2, LOG, "ValueError")
        assert str(MARK) not in row["traceback"]
        bound = found.dataset["local_bound"]
        missing = bound.isnull().any([dim for dim in bound.dims if dim not in (
            "components", "combination"
        )])
        assert missing["components"].values[missing.values].tolist() == [2]
        found.table()
    assert np.isfinite(settings(executor=threads).distances().loc[(LOG, 1), "distance"])
    assert equal(executor=threads).comparisons().shape[0] == 4


# ---- the sampled audit ------------------------------------------------------------------------


def audit(**where):
    return ppm.audits.sampled(
        ppm.GammaPoisson(COUNTS), (0, 1, 2), weighting=partial(ppm.record_weights, scale=0.5),
        draws=60, random_seed=5, **where,
    )


def test_an_audit_is_the_same_on_an_engine(threads):
    assert audit(executor=threads) == audit()


# ---- the sweep --------------------------------------------------------------------------------

PAIRS = [(0.7, 0.0), (0.5, -0.3)]


class FailsWhenStrict(ppm.GammaPoisson):
    """Cannot be fitted with the small weights of the second setting."""

    def fit(self, weights=None, **settings):
        if weights is not None and np.ptp(weights) > 0 and np.mean(weights) < 0.3:
            raise ArithmeticError(f"record {MARK}")
        return super().fit(weights, **settings)


def sweep(kind=ppm.GammaPoisson, pairs=PAIRS, **where):
    return ppm.studies.sweep(
        kind(COUNTS), pairs, releases=2, draws=60, random_seed=5, attempts=3,
        count_weights=np.full(COUNTS.size, 0.5), **where,
    )


def same(one, other):
    return [entry.label for entry in one.entries] == [entry.label for entry in other.entries] and (
        all(
            np.array_equal(getattr(first, name), getattr(second, name))
            for first, second in zip(one.entries, other.entries, strict=True)
            for name in ("weights", "record_bounds", "synthetic", "history")
        )
    )


def test_a_sweep_is_the_same_on_an_engine_and_its_fits_are_kept(threads, tmp_path):
    plain = sweep()
    assert same(sweep(executor=threads), plain) and plain.failures.empty
    assert same(sweep(pairs=PAIRS[:1], fits=tmp_path, executor=threads), sweep(pairs=PAIRS[:1]))
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.npz")}
    assert kept and same(sweep(fits=tmp_path), plain)
    assert kept.items() <= {p: p.stat().st_mtime_ns for p in tmp_path.glob("*.npz")}.items()


def test_a_setting_that_fails_is_a_row_and_the_others_are_there(threads):
    with pytest.raises(ArithmeticError):
        sweep(FailsWhenStrict)
    found, plain = sweep(FailsWhenStrict, executor=threads), sweep()
    (row,) = found.failures.to_dict("records")
    assert (row["scale"], row["shift"], row["error"]) == (0.5, -0.3, "ArithmeticError")
    assert str(MARK) not in row["traceback"]
    assert [entry.label for entry in found.entries] == [
        entry.label for entry in plain.entries if entry.scale != 0.5
    ]
    found.table()


class NeverFits(ppm.GammaPoisson):
    def fit(self, weights=None, **settings):
        raise ArithmeticError(f"record {MARK}")


def test_a_sweep_without_its_unweighted_fit_is_an_error(threads):
    with pytest.raises(RuntimeError, match="a fit failed on the executor:\n(.*\n)*Arithm") as told:
        sweep(NeverFits, executor=threads)
    assert str(MARK) not in str(told.value)


def test_a_sweep_on_an_executor_that_has_ended_says_so():
    with ThreadPoolExecutor(1) as ended:
        pass
    with pytest.raises(RuntimeError, match="a fit failed on the executor:\n.*has been shut down"):
        sweep(executor=ended)
