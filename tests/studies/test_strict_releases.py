"""Releases at several strict ε: what is public, what each costs, and that they come out again."""

import numpy as np
import pytest
from study_models import Chains

import ppm
from ppm.studies import kept_fits, strict_releases

COUNTS = np.array([3, 5, 4, 6, 2, 7, 4, 40])
PRIOR = {"shape": 2.0, "rate": 0.4}


@pytest.fixture(scope="module")
def reference():
    public = ppm.GammaPoisson([4, 5, 5, 6, 7, 9, 3, 2], **PRIOR)
    return public.log_likelihood(public.fit(draws=400, random_seed=1))


def run(reference, widths=(0.5, 2.0), **settings):
    model = ppm.GammaPoisson(COUNTS, **PRIOR)
    settings = {"draws": 300, "releases": 3, "random_seed": 5} | settings
    return strict_releases(model, widths, reference, **settings)


def test_limits_and_weights_are_those_of_the_reference_alone(reference):
    found = run(reference)
    for entry, width in zip(found.entries, (0.5, 2.0), strict=True):
        both = ppm.censoring.censoring_limits(width, reference)
        assert (entry.censor, entry.weight) == both
        assert 0 < entry.oscillation <= width * (1 + 1e-12)
    other = strict_releases(
        ppm.GammaPoisson(COUNTS * 3, **PRIOR), [0.5], reference, draws=50, random_seed=9
    )
    assert other.entries[0].censor == found.entries[0].censor
    assert other.entries[0].weight == found.entries[0].weight


def test_smooth_limits_have_the_weight_that_smooth_limits_need(reference):
    (hard,), (smooth,) = (
        run(reference, [0.5], smooth=smooth).entries for smooth in (False, True)
    )
    assert smooth.censor.smooth and not hard.censor.smooth
    assert smooth.weight == pytest.approx(hard.weight / 2)


def test_no_release_is_gated_by_the_records_and_the_guarantee_says_so(reference):
    for kind, agree in ((Chains, False), (ppm.GammaPoisson, True)):
        model = kind(COUNTS, **PRIOR)
        model.stuck = True
        found = strict_releases(model, [0.5], reference, draws=400, releases=3, random_seed=5)
        (entry,), told = found.entries, " ".join(str(found.entries[0].guarantee).split())
        assert entry.diagnostics.agree == agree and entry.synthetic.shape == (3, COUNTS.size)
        assert entry.guarantee.kind == "strict" and entry.guarantee.epsilon == entry.width
        # of a single chain of independent draws there is nothing to say
        assert ("agreement was not consulted" in told) == (not agree)
        assert "because the chains" not in told and "chains agreed" not in told


def test_what_releases_cost(reference):
    table = run(reference).table(releases=20)
    assert table.index.tolist() == pytest.approx([0.5, 2.0])
    assert table["ε, 20 releases"].tolist() == pytest.approx([10.0, 40.0])
    by_hand = 20 * 0.5**2 / 8
    by_hand += 2 * np.sqrt(by_hand * np.log(1e6))
    assert table["ε, 20 releases, δ = 1e-06"].iloc[0] == pytest.approx(by_hand)
    assert table["chains agree"].all()


def test_releases_are_those_of_the_censored_posterior(reference):
    """The outlier moves the mean of the censored fit less than that of the counts."""
    found = run(reference, (1.0,), releases=400, draws=1000)
    model = ppm.GammaPoisson(COUNTS, **PRIOR)
    entry = found.entries[0]
    mu = model.fit(
        np.full(COUNTS.size, entry.weight), draws=4000, random_seed=2, censor=entry.censor
    )["posterior"]["mu"]
    error = float(mu.std()) / np.sqrt(400)
    assert entry.synthetic.mean() == pytest.approx(float(mu.mean()), abs=5 * error)
    free = model.fit(np.full(COUNTS.size, entry.weight), draws=4000, random_seed=2)
    assert abs(entry.synthetic.mean() - float(free["posterior"]["mu"].mean())) > 10 * error


def test_an_entry_depends_on_its_own_width_only(reference, tmp_path):
    first, both = run(reference, (2.0,), fits=tmp_path), run(reference)
    np.testing.assert_array_equal(first.entries[0].synthetic, both.entries[1].synthetic)
    assert not np.array_equal(both.entries[0].synthetic, both.entries[1].synthetic)


def test_kept_fits_are_found_again_and_limits_are_part_of_their_name(
    reference, tmp_path, monkeypatch
):
    first = run(reference, fits=tmp_path)
    ran = []
    real = kept_fits.FitRunner._run
    monkeypatch.setattr(
        kept_fits.FitRunner, "_run", lambda self, *a: ran.append(1) or real(self, *a)
    )
    again = run(reference, fits=tmp_path)
    assert not ran
    np.testing.assert_array_equal(first.entries[0].synthetic, again.entries[0].synthetic)
    assert again.table().equals(first.table())
    run(reference, fits=tmp_path, outside=0.1)
    assert len(ran) == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"widths": []}, "widths must be a list of finite numbers"),
        ({"widths": [1.0, 1.0]}, "widths must be .* more than 1e-6 apart"),
        ({"widths": [0.0]}, "widths must be above 0"),
        ({"widths": 1.0}, "widths must be a list of finite numbers"),
        ({"outside": 0.7}, "outside must be"),
        ({"releases": 0}, "releases must be"),
        ({"draws": 0}, "draws must be"),
        ({"reference": [[-1.0, -2.0]]}, "reference must have two draws"),
    ],
)
def test_bad_input_is_told_before_a_fit(reference, monkeypatch, change, message):
    monkeypatch.setattr(ppm.GammaPoisson, "fit", None)
    with pytest.raises(ValueError, match=message):
        run(**{"reference": reference} | change)


def test_a_synthesizer_without_limits_is_refused(reference):
    class Plain(ppm.GammaPoisson):
        def fit(self, weights=None, *, draws=1000, random_seed=None, progress=False):
            raise AssertionError("no fit may begin")

    with pytest.raises(TypeError, match=r"censor: the fit\(\) of Plain takes none"):
        strict_releases(Plain(COUNTS), [1.0], reference)


def test_a_reference_may_be_a_list_as_well():
    model = ppm.GammaPoisson(COUNTS, shape=2, rate=0.4)
    public = np.random.default_rng(3).normal(-2.0, 0.4, (20, 6))
    given, listed = (
        strict_releases(model, [0.5], reference, releases=2, draws=50, random_seed=1)
        for reference in (public, public.tolist())
    )
    np.testing.assert_array_equal(listed.entries[0].synthetic, given.entries[0].synthetic)


def test_terms_are_those_of_the_records_whatever_the_order_of_the_dimensions(reference):
    class Turned(ppm.GammaPoisson):
        def log_likelihood(self, fit):
            return super().log_likelihood(fit).transpose("record", "draw", "chain")

    turned, plain = (
        strict_releases(kind(COUNTS, **PRIOR), [1.0], reference, draws=200, random_seed=3)
        for kind in (Turned, ppm.GammaPoisson)
    )
    assert turned.entries[0].oscillation == plain.entries[0].oscillation
