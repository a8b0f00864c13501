"""The ledger's own study: the same numbers as many studies of the paper's size."""

import numpy as np
import pytest
from conftest import ROOT

import ppm
from ppm.publishing.claims import load_ledger
from ppm.publishing.ledger import judge
from ppm.publishing.ledger_study import check_settings, ledger_study, studies_at_1000
from ppm.publishing.notebooks import NotebookError, find_notebooks, ledger_settings, load_profile

SETTINGS = {"studies": 10, "replicates": 12, "seed": 5}
SMALL = {"draws": 30}


@pytest.fixture(scope="module")
def values():
    return ledger_study([40, 160, 2000], **SETTINGS, **SMALL)


def test_it_is_many_studies_each_with_streams_of_its_own(values):
    """The same as so many calls of the study that the chapter makes."""
    studies = [
        ppm.studies.contraction([40, 160, 1000, 2000], replicates=12, draws=30, random_seed=seed)
        for seed in np.random.SeedSequence(5).spawn(10)
    ]
    bounds = np.stack([s.dataset["local_bound"].sel(mechanism="Weighted") for s in studies])
    at = [0, 1, 3]
    largest = values["Weighted: largest bound"]["value"]
    assert largest == pytest.approx(bounds[:, at].max(axis=2).mean(axis=0))
    pooled = np.concatenate(list(bounds), axis=1)[at]
    assert values["Weighted: median bound"]["value"] == pytest.approx(np.median(pooled, axis=1))
    # no study repeats another
    assert np.unique(bounds[:, 0]).size == 120
    assert values["replicates"]["value"] == 120
    assert values["sizes"]["value"] == [40, 160, 2000]
    # the size of the introduction stands apart
    spans = np.ptp(bounds, axis=2).mean(axis=0)
    assert values["Weighted: range of bounds up to n = 1,000"]["value"] == pytest.approx(spans[:3])
    assert values["Weighted: range of bounds"]["value"] == pytest.approx(spans[at])
    ratio = values["Weighted: largest over smallest bound at n = 1,000"]
    one = bounds[:, 2].max(axis=1) / bounds[:, 2].min(axis=1)
    assert ratio["value"] == pytest.approx(one.mean())
    assert ratio["error"] == pytest.approx(one.std(ddof=1) / np.sqrt(10))
    assert ratio["sample"] == [120, "databases of each size"]


def test_some_of_many_studies_have_the_size_of_the_introduction():
    assert [studies_at_1000(studies) for studies in (10, 12, 50, 250)] == [10, 10, 10, 50]
    settings = {"replicates": 6, "seed": 3, "draws": 20}
    found = ledger_study([40], studies=60, **settings)
    bounds = [
        ppm.studies.contraction([40, 1000], replicates=6, draws=20, random_seed=seed).dataset[
            "local_bound"
        ].sel(mechanism="Weighted-M").values
        for seed in np.random.SeedSequence(3).spawn(60)
    ]
    spans = np.array([np.ptp(one, axis=1) for one in bounds])
    near = found["Weighted-M: range of bounds up to n = 1,000"]
    assert near["value"] == pytest.approx(spans[:12].mean(axis=0))
    assert near["sample"] == [72, "databases of each size"]
    # the others have no part in it, and this size none in theirs
    assert found["Weighted-M: range of bounds"]["value"] == pytest.approx([spans[:, 0].mean()])


def test_it_repeats_and_another_seed_gives_others(values):
    again = ledger_study([40, 160, 2000], **SETTINGS, **SMALL, progress=False)
    assert again == values
    other = ledger_study([40, 160, 2000], **{**SETTINGS, "seed": 6}, **SMALL)
    assert other["Weighted: median bound"] != values["Weighted: median bound"]


def test_its_errors_are_those_of_repeated_studies():
    runs = [
        ledger_study([40], studies=20, replicates=15, seed=seed, draws=20) for seed in range(25)
    ]
    for name in ("largest bound", "median bound", "range of bounds"):
        found = [run[f"Weighted-M: {name}"] for run in runs]
        ratio = np.sqrt(np.mean([e["error"][0] ** 2 for e in found])) / np.std(
            [e["value"][0] for e in found], ddof=1
        )
        assert 0.6 < ratio < 1.6, name


def test_it_gives_every_value_that_a_row_of_section_4_compares():
    sizes = [100, 400, 1600, 6400]
    found = ledger_study(sizes, studies=10, replicates=20, seed=1, draws=50)
    claims = load_ledger(ROOT / "book" / "published.yaml")
    chapter = ppm.publishing.contraction_values(
        ppm.studies.contraction(sizes, replicates=20, draws=50, random_seed=2), random_seed=1
    )
    rows = judge(
        claims,
        {"poisson_contraction": {"data": "drawn", "values": chapter}},
        {"poisson_contraction": {"data": "drawn", "values": found}},
    )
    rows = [row for row in rows if row.claim.chapter == "poisson_contraction"]
    assert {row.verdict for row in rows} == {
        "reproduced", "not reproduced", "same setting", "not comparable"
    }
    # how many databases the chapter has, which is not the paper's number
    (odd,) = [row.claim.id for row in rows if row.verdict == "not comparable"]
    assert odd == "simulation-replicates"
    judged = [row for row in rows if row.claim.rule not in ("setting", "rows")]
    new = {row.claim.id for row in judged if not row.beside}
    assert new == {name for name in new if "1000" in name}
    assert len(new) == 4


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"studies": 9}, "studies must be"),
        ({"replicates": 1}, "replicates must be"),
        ({"seed": -1}, "seed must be"),
        ({"studies": 2.5}, "studies must be"),
        ({"sizes": [3]}, "must have studies, replicates, seed, and nothing else"),
        ({"seed": None}, "seed must be"),
    ],
)
def test_settings_that_are_wrong_are_refused(change, told):
    assert check_settings(SETTINGS) == SETTINGS
    with pytest.raises(ValueError, match=told) as caught:
        check_settings({**SETTINGS, **change})
    assert "\n" not in str(caught.value)
    for wrong in (None, 3, [1], {}, {"studies": 10, "seed": 1}):
        with pytest.raises(ValueError, match="must have studies, replicates, seed"):
            check_settings(wrong)


def test_a_profile_names_the_study_and_gives_it_to_no_notebook(tiny_book):
    notebooks = find_notebooks(tiny_book)
    assert ledger_settings(tiny_book, "quick") == {}
    quick = tiny_book / "notebooks" / "profiles" / "quick.yml"
    before = load_profile(tiny_book, "quick", notebooks)
    quick.write_text(quick.read_text() + "ledger: {studies: 10, replicates: 12, seed: 5}\n")
    assert ledger_settings(tiny_book, "quick") == SETTINGS
    assert load_profile(tiny_book, "quick", notebooks) == before
    quick.write_text("ledger: {studies: 3, replicates: 12, seed: 5}\n")
    with pytest.raises(NotebookError, match=r"^notebooks/profiles/quick\.yml: studies must be"):
        ledger_settings(tiny_book, "quick")
    with pytest.raises(NotebookError, match="unknown profile"):
        ledger_settings(tiny_book, "quickly")


def test_this_books_profiles_repeat_the_papers_study():
    for profile, least in (("paper", 40_000), ("quick", 4_000)):
        settings = ledger_settings(ROOT, profile)
        # a smallest or largest bound is that of as many databases as in the paper
        assert settings["replicates"] == 400
        assert settings["studies"] * 400 >= least
