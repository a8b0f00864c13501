"""Fits that are kept: found again when nothing changed, never when something did."""

import os
import stat
import sys

import numpy as np
import pytest

import ppm
from ppm.studies import kept_folder, origins
from ppm.studies.kept_fits import FitRunner, FitStore
from ppm.studies.kept_folder import DamagedFit
from ppm.studies.origins import digest_of
from ppm_book import page

COUNTS = np.random.default_rng(7).poisson(100, 40)
PAIRS = [(0.7, 0.0), (0.5, -0.3)]
SETTINGS = {"releases": 2, "draws": 100, "random_seed": 1, "attempts": 3}


class Counted(ppm.GammaPoisson):
    """Counts its fits, and is interrupted in one of them."""

    fits, interrupted_at, entropies = 0, None, set()

    def fit(self, *arguments, **settings):
        type(self).fits += 1
        type(self).entropies.add(settings["random_seed"].entropy)
        if type(self).fits == self.interrupted_at:
            raise KeyboardInterrupt
        return super().fit(*arguments, **settings)


def sweep(folder=None, pairs=PAIRS, interrupted_at=None, **changes):
    """A sweep and the number of fits that it computed."""
    Counted.fits, Counted.interrupted_at, Counted.entropies = 0, interrupted_at, set()
    found = ppm.studies.sweep(
        Counted(COUNTS), pairs, fits=folder, **{**SETTINGS, **changes}
    )
    return found, Counted.fits


def same(one, other):
    return all(
        np.array_equal(getattr(first, name), getattr(second, name))
        for first, second in zip(one.entries, other.entries, strict=True)
        for name in ("weights", "record_bounds", "synthetic")
    ) and [(e.history, e.diagnostics) for e in one.entries] == [
        (e.history, e.diagnostics) for e in other.entries
    ]


def test_an_interrupted_sweep_goes_on_where_it_stopped(tmp_path):
    plain, total = sweep()
    with pytest.raises(KeyboardInterrupt):
        sweep(tmp_path, interrupted_at=4)
    resumed, computed = sweep(tmp_path)
    assert computed == total - 3
    assert same(resumed, plain)
    again, computed = sweep(tmp_path)
    assert computed == 0 and same(again, plain)


def test_other_configurations_compute_only_what_is_new(tmp_path):
    first, total = sweep(tmp_path, PAIRS[:1])
    both, new = sweep(tmp_path, PAIRS[::-1])
    alone, both_anew = sweep(None, PAIRS[::-1])
    assert new == both_anew - total > 0
    assert same(both, alone)
    for mechanism in ("DPweighted", "EMweighted"):
        pair = first.entry(mechanism, *PAIRS[0]), both.entry(mechanism, *PAIRS[0])
        assert np.array_equal(pair[0].synthetic, pair[1].synthetic)
    # fewer configurations are the same folder's
    assert sweep(tmp_path, PAIRS[1:])[1] == 0


@pytest.mark.parametrize(
    "changes", [{"random_seed": 2}, {"draws": 101}, {"releases": 3}]
)
def test_another_setting_is_another_fit(tmp_path, changes):
    sweep(tmp_path)
    found, computed = sweep(tmp_path, **changes)
    plain, total = sweep(None, **changes)
    assert computed == total and same(found, plain)


def key(synthesizer=None, weights=None, seed=1, draws=20, releases=2, labels=("prior",)):
    """Key of a fit, which depends on the store being there, not on what is in it."""

    class Nothing:
        def load(self, key):
            return None

        def save(self, summary):
            pass

    synthesizer = synthesizer or ppm.GammaPoisson(COUNTS)
    weights = np.ones(synthesizer.records) if weights is None else weights
    runner = FitRunner(
        synthesizer, draws=draws, releases=releases, labels=labels, store=Nothing()
    )
    return runner.fit("fit", weights, np.random.SeedSequence(seed)).key


def test_the_key_depends_on_data_settings_weights_and_seed():
    weights = np.ones(40)
    weights[3] = np.nextafter(1.0, 0.0)
    changed = COUNTS.copy()
    changed[0] += 1
    keys = [
        key(),
        key(ppm.GammaPoisson(changed)),
        key(ppm.GammaPoisson(COUNTS, shape=0.002)),
        key(ppm.GammaPoisson(COUNTS, rate=0.002)),
        key(Counted(COUNTS)),
        key(weights=weights),
        key(seed=2),
        key(draws=21),
        key(releases=3),
    ]
    assert len(set(keys)) == len(keys)
    assert key(ppm.GammaPoisson(COUNTS.copy())) == keys[0]


def test_the_key_depends_on_the_code_and_on_numpy(monkeypatch):
    before = key()
    sources = {name for name, _ in origins.library_source(origins._SOURCES)}
    assert {"lipschitz.py", "censoring.py", "synthesizers/mixture/model.py"} <= sources
    monkeypatch.setattr(origins, "library_source", lambda names: [("lipschitz.py", "0")])
    other_code = key()
    monkeypatch.undo()
    assert origins.versions()["numpy"] == np.__version__
    monkeypatch.setattr(origins, "versions", lambda: {"numpy": "0"})
    assert len({before, other_code, key()}) == 3


@pytest.mark.parametrize(
    "change",
    [
        {"components": 3}, {"chains": 1}, {"warmup": 6}, {"thin": 2}, {"blocks": 1},
        {"concentration_prior": (1, 2)}, {"coefficient_df": 4}, {"coefficient_scale": 2},
        {"residual_df": 4}, {"residual_scale": 2},
    ],
)
def test_every_setting_of_the_mixture_counts(change):
    y, X = COUNTS / 10.0, np.ones((40, 1))
    plain = origins.identity(ppm.FiniteMixture(y, X, components=2, warmup=5))
    other = ppm.FiniteMixture(y, X, **{"components": 2, "warmup": 5, **change})
    assert origins.identity(other) != plain
    # where the chains run does not
    assert origins.identity(ppm.FiniteMixture(y, X, components=2, warmup=5, parallel=True)) == plain
    assert origins.identity(ppm.FiniteMixture(y + 1, X, components=2, warmup=5)) != plain


class WithoutFingerprint:
    """Follows the protocol and no more."""

    def __init__(self):
        self.inner = ppm.GammaPoisson(COUNTS)
        self.records = self.inner.records
        self.log_likelihood, self.predict = self.inner.log_likelihood, self.inner.predict

    def fit(self, *arguments, **settings):
        raise AssertionError("the fit must not start")


class WithNewSettings(ppm.GammaPoisson):
    """Inherits a fingerprint that knows nothing of its settings."""

    def __init__(self, counts, power):
        super().__init__(counts)
        self.power = power


class WithOwnFingerprint(WithNewSettings):
    def fingerprint(self):
        return {**super().fingerprint(), "power": self.power}


class WithAnObject(WithNewSettings):
    def fingerprint(self):
        return {"power": self.power}


def test_what_has_no_fingerprint_is_refused_before_any_fit(tmp_path):
    run = {"configurations": PAIRS, "fits": tmp_path, **SETTINGS}
    with pytest.raises(ValueError, match=r"WithoutFingerprint cannot be kept.*no fingerprint\(\)"):
        ppm.studies.sweep(WithoutFingerprint(), **run)
    with pytest.raises(ValueError, match="inherits from GammaPoisson does not know its __init__"):
        ppm.studies.sweep(WithNewSettings(COUNTS, 2), **run)
    with pytest.raises(ValueError, match="no hash can be taken of a function"):
        ppm.studies.sweep(WithAnObject(COUNTS, lambda x: x), **run)
    assert key(WithOwnFingerprint(COUNTS, 2)) != key(WithOwnFingerprint(COUNTS, 3))
    # without a folder nothing is asked of it
    ppm.studies.sweep(WithNewSettings(COUNTS, 2), PAIRS, **SETTINGS)


def test_values_that_look_alike_have_other_hashes():
    values = [
        1, 1.0, True, "1", b"1", None, [1], [[1]], {"1": 1}, np.array([1]), np.array([1.0]),
        np.array([[1]]), ["a", "b"], ["ab"], ["a b"], [], [[], []], np.random.SeedSequence(1),
        np.random.SeedSequence(1, spawn_key=(0,)), np.random.SeedSequence(1, pool_size=8),
        # the same bytes of another type, and the same numbers in other lists
        np.array([1], np.uint64), [[1, 2], 3], [[1], 2, 3],
        # the same names and numbers in the same order, at other depths
        {"a": {"b": 1, "c": 2}}, {"a": {"b": 1}, "c": 2}, {"a": {}, "b": 1, "c": 2},
    ]
    assert len({digest_of(value) for value in values}) == len(values)
    assert digest_of(np.float64(1)) == digest_of(1.0)


def cut_short(path):
    path.write_bytes(path.read_bytes()[:-200])


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    where = content.find(b"weights.npy") + 400
    content[where] ^= 1
    path.write_bytes(content)


def swap(path):
    other = next(file for file in path.parent.glob("*.npz") if file != path)
    path.write_bytes(other.read_bytes())


def empty(path):
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [cut_short, flip_a_bit, swap, empty])
def test_a_damaged_file_is_computed_again_with_a_warning(tmp_path, damage):
    plain, _ = sweep(tmp_path)
    damage(sorted(tmp_path.glob("*.npz"))[0])
    with pytest.warns(DamagedFit, match="is damaged and is computed again"):
        repaired, computed = sweep(tmp_path)
    assert computed == 1 and same(repaired, plain)
    assert sweep(tmp_path)[1] == 0


def test_a_half_written_file_is_never_seen(tmp_path, monkeypatch):
    def half(stream, **arrays):
        stream.write(b"half of it")
        raise KeyboardInterrupt

    monkeypatch.setattr(kept_folder.np, "savez", half)
    with pytest.raises(KeyboardInterrupt):
        sweep(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["CONFIDENTIAL.txt"]
    monkeypatch.undo()
    plain, total = sweep()
    found, computed = sweep(tmp_path)
    assert computed == total and same(found, plain)


def test_what_a_killed_process_left_half_written_goes_when_it_is_old(tmp_path):
    part, other = (tmp_path / f"{40 * 'a'}.{32 * letter}.part" for letter in "bc")
    foreign = tmp_path / "film.mkv.part"
    for path in (part, other, foreign):
        path.write_text("half")
    for path in (part, foreign):
        os.utime(path, (1e9, 1e9))
    FitStore(tmp_path)
    # another process may be writing the one, and nobody knows what the third is
    assert not part.exists() and other.exists() and foreign.exists()


def test_a_full_disk_costs_the_file_and_not_the_fit(tmp_path, monkeypatch):
    def full(stream, **arrays):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kept_folder.np, "savez", full)
    with pytest.warns(DamagedFit, match="could not be kept.*No space"):
        found, _ = sweep(tmp_path)
    assert same(found, sweep()[0])


def test_the_folder_says_that_it_is_confidential(tmp_path):
    folder = tmp_path / "new" / "fits"
    sweep(folder, PAIRS[:1])
    assert "CONFIDENTIAL" in (folder / "CONFIDENTIAL.txt").read_text()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
def test_kept_fits_are_for_their_owner_whoever_may_open_the_folder(tmp_path):
    before = os.umask(0o022)
    try:
        tmp_path.chmod(0o755)
        sweep(tmp_path, PAIRS[:1])
        kept = sorted(tmp_path.glob("*.npz"))
        assert kept
        assert {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()} == {0o600}
        # a folder of somebody else's stays as it is, and so do other files in it
        assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
        other = tmp_path / "other.npz"
        other.touch(mode=0o644)
        # fits of earlier versions of the library
        kept[0].chmod(0o644)
        sweep(tmp_path, PAIRS[:1])
        assert stat.S_IMODE(kept[0].stat().st_mode) == 0o600
        assert stat.S_IMODE(other.stat().st_mode) == 0o644
    finally:
        os.umask(before)


def test_a_folder_that_cannot_be_used_is_refused(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(ValueError, match="fits: cannot write into"):
        sweep(file)
    with pytest.raises(ValueError, match="fits must be a folder; got 3"):
        sweep(3)


def test_fits_without_a_seed_are_found_again_and_nobody_knows_their_seeds(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        sweep(tmp_path, random_seed=None, interrupted_at=4)
    (interrupted,) = Counted.entropies
    first, computed = sweep(tmp_path, random_seed=None)
    (resumed,) = Counted.entropies
    again, none = sweep(tmp_path, random_seed=None)
    assert none == 0 < computed and same(first, again)
    # fresh ones: two tables that share a folder share no random numbers
    assert interrupted != resumed and min(interrupted, resumed) > 2**64
    assert not any(
        number in file.read_bytes()
        for file in tmp_path.iterdir()
        for seed in (interrupted, resumed)
        for number in (str(seed).encode(), seed.to_bytes(16, "little"))
    )
    assert not same(first, sweep(random_seed=None)[0])


def test_the_folder_of_a_run_comes_from_the_environment(monkeypatch):
    monkeypatch.delenv("PPM_FITS", raising=False)
    assert page.fits_folder() is None
    monkeypatch.setenv("PPM_FITS", "")
    assert page.fits_folder() is None
    monkeypatch.setenv("PPM_FITS", "somewhere")
    assert page.fits_folder() == "somewhere"


def test_a_fit_of_the_mixture_comes_back_whole_and_can_be_started_from(tmp_path):
    rng = np.random.default_rng(1)
    model = ppm.FiniteMixture(
        rng.standard_normal(50), np.ones((50, 1)), components=2, warmup=20, parallel=False
    )
    ones, half = np.ones(50), np.full(50, 0.5)
    seeds = np.random.SeedSequence(1), np.random.SeedSequence(2)
    settings = {"draws": 30, "releases": 2, "labels": ("prior", "conditional")}

    def run(store):
        runner = FitRunner(model, store=store, **settings)
        first = runner.fit("first", ones, seeds[0])
        return (
            first,
            runner.fit("warm", half, seeds[1], start=first),
            runner.fit("cold", half, seeds[1]),
        )

    store = FitStore(tmp_path)
    fresh, kept = run(store), run(store)
    assert len(list(tmp_path.glob("*.npz"))) == 3
    for one, other in zip(fresh, kept, strict=True):
        assert one is not other and one.diagnostics == other.diagnostics
        assert np.array_equal(one.record_bounds, other.record_bounds)
        assert one.draws_used == other.draws_used == 60
        for labels in settings["labels"]:
            assert np.array_equal(one.releases[labels], other.releases[labels])
    # where the last chain ended, and a start of its own, make another fit
    assert not np.array_equal(fresh[1].largest, fresh[2].largest)
    plain = model.fit(ones, draws=30, random_seed=seeds[0].spawn(2)[0])
    assert np.array_equal(kept[0].largest, ppm.record_bounds(model.log_likelihood(plain)))
    half_bound = ppm.oscillation_bound(model.log_likelihood(plain), half)
    assert kept[0].oscillation_bound == pytest.approx(2 * half_bound)
    assert kept[0].oscillation_bound != kept[0].local_bound
    assert np.array_equal(kept[0].end["posterior"]["beta"], plain["posterior"]["beta"][:, -1:])
    weights = ppm.record_weights(ppm.record_bounds(model.log_likelihood(plain)), scale=0.7)
    assert np.array_equal(
        ppm.record_weights(kept[0].largest, scale=0.7), weights
    )
