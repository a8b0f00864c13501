"""The study of contraction by fits: against closed forms, and against the mechanism by hand."""

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
import study_models
import xarray as xr
from scipy import stats
from study_models import counts

import ppm
from ppm.studies import fitted_contraction
from ppm.studies.contraction_study import MECHANISMS


@pytest.fixture(scope="module")
def threads():
    with ThreadPoolExecutor(2) as executor:
        yield executor


def by_fits(executor, sizes=(40, 120), simulate=counts, **settings):
    settings = {"replicates": 80, "draws": 300, "random_seed": 8, **settings}
    return ppm.studies.contraction_by_fits(
        simulate, ppm.GammaPoisson, sizes, executor=executor, **settings
    )


@pytest.fixture(scope="module")
def study(threads):
    return by_fits(threads)


def alike(one, other, mechanism, size, other_size=None):
    """p-value of the two-sample test of Kolmogorov and Smirnov on the bounds."""
    bounds = one.dataset["local_bound"].sel(mechanism=mechanism, size=size)
    others = other.dataset["local_bound"].sel(mechanism=mechanism, size=other_size or size)
    return stats.ks_2samp(bounds.values, others.values).pvalue


def test_bounds_are_distributed_as_in_the_closed_form(study, threads):
    closed = ppm.studies.contraction([40, 120], replicates=400, draws=300, random_seed=3)
    for mechanism in MECHANISMS:
        for size in (40, 120):
            assert alike(study, closed, mechanism, size) > 0.001
    # where the size, M or the weights are others, the same test says so
    assert alike(study, closed, "Unweighted", 40, 120) < 1e-4
    wrong = ppm.studies.contraction([120], replicates=400, truncate_at=3.3, random_seed=3)
    assert alike(study, wrong, "Weighted-M", 120) < 1e-6
    shifted = by_fits(threads, [120], shift=-0.1)
    assert alike(shifted, closed, "Weighted", 120) < 1e-6
    assert alike(shifted, closed, "Unweighted", 120) > 0.001


def test_every_database_is_one_run_of_the_mechanism(threads):
    study = by_fits(threads, [30, 50], replicates=2, draws=60, scale=0.9, truncate_at=3.3)
    seen = set()
    for size in (30, 50):
        for replicate in range(2):
            seed = np.random.SeedSequence(8, spawn_key=(size, replicate))
            data, first, *others = seed.spawn(4)
            model = ppm.GammaPoisson(counts(size, data))
            fit = model.fit(draws=60, random_seed=first)
            found = study.dataset.sel(size=size, replicate=replicate)
            log_lik = model.log_likelihood(fit)
            expected = [(ppm.local_bound(log_lik), 0)]
            for stream, limit in zip(others, (None, 3.3), strict=True):
                weights = ppm.record_weights(
                    ppm.record_bounds(log_lik), scale=0.9, truncate_at=limit
                )
                again = model.log_likelihood(model.fit(weights, draws=60, random_seed=stream))
                expected.append((ppm.local_bound(again, weights), np.sum(weights == 0)))
            assert found["local_bound"].values == pytest.approx([b for b, _ in expected], rel=1e-12)
            assert found["records_removed"].values.tolist() == [r for _, r in expected]
            seen.update(found["local_bound"].values)
    assert len(seen) == 12
    assert study.draws == 60 and study.truncate_at == 3.3 and study.failures.empty


def test_each_number_of_a_fit_has_its_own_name():
    of_chains = SimpleNamespace(r_hat=1.5, r_hat_log_likelihood=1.6, effective_draws=70.0)
    found = SimpleNamespace(
        local_bound=4.0, weights=np.array([0.0, 0.5]), diagnostics=of_chains, chains_agree=False
    )
    numbers = fitted_contraction._of_a_fit(found)
    assert dict(zip(fitted_contraction._OF_A_FIT, numbers, strict=True)) == {
        "local_bound": 4.0, "records_removed": 1, "r_hat": 1.5, "r_hat_log_likelihood": 1.6,
        "effective_draws": 70.0, "chains_agree": False,
    }


def test_a_database_is_the_same_whichever_others_there_are(study, threads):
    alone = by_fits(threads, [120], replicates=3)
    assert alone.dataset.identical(study.dataset.sel(size=[120], replicate=slice(0, 2)))
    assert not alone.dataset.equals(by_fits(threads, [120], replicates=3, random_seed=9).dataset)


def test_a_database_that_cannot_be_fitted_is_a_row_and_left_out_of_the_tables(threads):
    study = by_fits(threads, [40], simulate=study_models.sometimes_impossible, replicates=12)
    whole = by_fits(threads, [40], replicates=12)
    failed = study.failures
    assert 0 < len(failed) < 12
    assert "987654" not in failed.to_string() + "".join(failed["traceback"])
    lost = failed["replicate"].to_numpy()
    for row in failed.to_dict("records"):
        seed = np.random.SeedSequence(row["entropy"], spawn_key=row["spawn_key"])
        assert study_models.sometimes_impossible(row["size"], seed.spawn(4)[0]).min() < 0
    bounds = study.dataset["local_bound"]
    missing = np.isin(np.arange(12), lost)
    assert np.array_equal(bounds.isnull().any("mechanism").values[0], missing)
    assert study.summary()["missing"].unique().tolist() == [len(lost)]
    assert "missing" not in whole.summary()
    assert f"{len(lost)} of 12 databases missing: see failures" in repr(study)
    assert "missing" not in repr(whole) and "draws=300, dataset=<xarray.Dataset" in repr(whole)
    # the tables are those of the others alone
    rest = xr.Dataset.drop_isel(study.dataset, replicate=lost)
    kept = ppm.studies.ContractionStudy(rest, truncate_at=3.5, mean=None, draws=study.draws)
    assert kept.summary().equals(study.summary().drop(columns="missing"))
    assert kept.safety_factors().equals(study.safety_factors())
    assert kept.exceedance([6.8, 7.0]).identical(study.exceedance([6.8, 7.0]))


def test_more_replicates_compute_only_what_is_new(tmp_path, monkeypatch, threads):
    marks, store = tmp_path / "marks", tmp_path / "store"
    marks.mkdir()
    monkeypatch.setenv("PPM_TEST_MARKS", str(marks))
    settings = {"simulate": study_models.marked_counts, "store": store, "draws": 50}
    few = by_fits(threads, [40], replicates=3, **settings)
    more = by_fits(threads, [40, 50], replicates=4, **settings)
    # each study makes its first database once more, to count its records
    assert len(list(marks.iterdir())) == 10
    assert more.dataset.sel(size=[40]).isel(replicate=slice(3)).identical(few.dataset)
    assert by_fits(threads, [40, 50], replicates=4, **settings).dataset.identical(more.dataset)
    assert len(list(marks.iterdir())) == 11
    for change in ({"draws": 51}, {"random_seed": 9}, {"scale": 0.9}, {"simulate": counts}):
        by_fits(threads, [40], replicates=2, **{**settings, **change})
    # the databases of the first three, while the fourth leaves no marks
    assert len(list(marks.iterdir())) == 20
    assert len(list(store.glob("*.npz"))) == 16


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"simulate": [1, 2]}, "^simulate must be a function; got a list"),
        ({"sizes": [1]}, "^sizes must"),
        ({"replicates": 1}, "^replicates must"),
        ({"draws": 0}, "^draws must"),
        ({"truncate_at": 0}, "^truncate_at must"),
        ({"scale": 0}, "^scale must"),
        ({"shift": np.nan}, "^shift must"),
        ({"random_seed": None, "store": "somewhere"}, "^store needs a random_seed"),
    ],
)
def test_impossible_settings_are_named(threads, change, told):
    with pytest.raises(ValueError, match=told):
        by_fits(threads, **change)
    with pytest.raises(ValueError, match="^executor must be"):
        by_fits(4)


def test_another_number_of_records_than_asked_for_is_refused_before_any_fit(threads, monkeypatch):
    def five(n, random_seed):
        return counts(5, random_seed)

    # it must not be reached
    monkeypatch.setattr("ppm.studies.fitted_contraction.run_tasks", None)
    told = "^simulate returned 5 records where 40 were asked for$"
    with pytest.raises(ValueError, match=told):
        by_fits(threads, [40], simulate=five)
    # and a later one, which is not tried before, is a failure
    monkeypatch.undo()

    def five_of_50(n, random_seed):
        return counts(5 if n == 50 else n, random_seed)

    study = by_fits(threads, [40, 50], simulate=five_of_50, replicates=2, draws=20)
    assert study.failures["size"].tolist() == [50, 50]
    missing = study.dataset["local_bound"].isnull().sum(["mechanism", "replicate"])
    assert missing.values.tolist() == [0, 6]


def test_a_seed_that_is_taken_for_a_generator_is_told_before_any_fit(threads, monkeypatch):
    monkeypatch.setattr("ppm.studies.fitted_contraction.run_tasks", None)
    with pytest.raises(ValueError, match=r"^simulate is given a SeedSequence.*default_rng\(random"):
        by_fits(threads, [40], simulate=lambda n, rng: rng.poisson(8, n))


def test_what_is_no_model_is_told(threads):
    with pytest.raises(TypeError, match="^synthesizer must have records"):
        ppm.studies.contraction_by_fits(
            counts, np.asarray, [40], replicates=2, random_seed=1, executor=threads
        )


def test_the_closed_form_is_the_same_on_an_engine_and_from_a_store(tmp_path, threads):
    settings = {"replicates": 6, "draws": 20, "random_seed": 1}
    plain = ppm.studies.contraction([50, 80], **settings).dataset
    for where in ({"executor": threads}, {"store": tmp_path}, {"store": tmp_path}):
        assert ppm.studies.contraction([50, 80], **settings, **where).dataset.identical(plain)
    assert len(list(tmp_path.glob("*.npz"))) == 2
    other = ppm.studies.contraction([50, 80], **{**settings, "draws": 21}, store=tmp_path).dataset
    assert not other.equals(plain)
