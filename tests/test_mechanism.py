"""The three steps in order, on the synthesizer whose every step is known, and the gate."""

import pickle

import numpy as np
import pytest
import xarray as xr

import ppm

COUNTS = np.r_[np.random.default_rng(7).poisson(100, 60), 160]
ONES = np.ones(COUNTS.size)


def run(synthesizer=None, *, draws=200, seed=1, allow_disagreement=False, **settings):
    synthesizer = ppm.GammaPoisson(COUNTS) if synthesizer is None else synthesizer
    mechanism = ppm.PseudoPosteriorMechanism(synthesizer, **settings)
    return mechanism.run(draws=draws, random_seed=seed, allow_disagreement=allow_disagreement)


@pytest.fixture(scope="module")
def result():
    return run(draws=500, truncate_at=4.0)


def test_the_steps_follow_the_paper(result):
    synthesizer = result.synthesizer
    # step 1: weights from the unweighted fit
    before = synthesizer.log_likelihood(result.unweighted)
    rule = ppm.record_weights(ppm.record_bounds(before), truncate_at=4.0)
    assert np.array_equal(result.weights, rule)
    # step 2: bounds from the weighted fit, weighted
    after = synthesizer.log_likelihood(result.draws)
    assert np.array_equal(result.record_bounds, ppm.record_bounds(after, result.weights))
    assert result.local_bound == result.record_bounds.max()
    assert result.oscillation_bound == ppm.oscillation_bound(after, result.weights)
    # bounds of the first fit, or of the second without weights, are other numbers
    assert not np.array_equal(result.record_bounds, ppm.record_bounds(before, result.weights))
    assert result.local_bound < ppm.local_bound(after)
    assert result.oscillation_bound < ppm.oscillation_bound(after)
    # step 3: what a release costs
    assert result.epsilon(releases=20) == pytest.approx(40 * result.local_bound)
    synthetic = result.synthesize(3, random_seed=5)
    assert synthetic.shape == (3, COUNTS.size) and synthetic.attrs == {"releases": 3}
    found = result.summary(releases=3)
    bounds = [ppm.local_bound(before), result.local_bound, 500]
    assert found.iloc[:5].tolist() == bounds + [2 * result.local_bound, 6 * result.local_bound]
    # one chain of independent draws is not checked, and nobody counted divergences
    assert found.iloc[5:].isna().all() and result.diagnostics is None and result.chains_agree
    assert "R-hat not computed: one chain, whose draws the synthesizer declares" in str(result)


def test_both_fits_follow_their_posterior_with_draws_of_their_own(result):
    mu = result.draws["posterior"]["mu"].values
    weighted = result.synthesizer.posterior(result.weights)
    error = weighted.std() / np.sqrt(mu.size)
    assert abs(mu.mean() - weighted.mean()) < 4 * error
    assert abs(mu.mean() - result.synthesizer.posterior().mean()) > 4 * error
    # with weights all 1 both have the same posterior, and must still differ
    same = run(ppm.GammaPoisson([5, 5, 5]))
    assert same.weights.tolist() == [1.0] * 3
    assert not np.array_equal(*(fit["posterior"]["mu"] for fit in (same.unweighted, same.draws)))


def test_a_record_of_weight_0_cannot_be_seen_in_the_release():
    """Leaving out a record with weight 0, weights held fixed, changes nothing at all."""
    models = ppm.GammaPoisson(COUNTS), ppm.GammaPoisson(np.r_[COUNTS[:-1], 9_999])

    def releases(weight):
        weights = np.r_[ONES[:-1], weight]
        return [run(one, weights=weights).synthesize(2, random_seed=2) for one in models]

    assert np.array_equal(*releases(0.0))
    assert not np.array_equal(*releases(0.01))


@pytest.mark.parametrize("counts", [COUNTS + 1, COUNTS[::-1], COUNTS[:-1]])
def test_a_fit_of_other_records_is_refused(result, counts):
    other, ones = ppm.GammaPoisson(counts), np.ones(counts.size)
    own, bound_fit = other.fit(draws=9, random_seed=1), ppm.mechanism.bound_fit
    for use in (
        lambda fit: ppm.PseudoPosteriorMechanism(other).run(unweighted=fit),
        lambda fit: bound_fit(other, fit, ones),
        lambda fit: bound_fit(other, own, ones, unweighted=fit),
    ):
        assert use(own).epsilon() > 0
        for wrong in result.unweighted, xr.DataTree():
            with pytest.raises(ValueError, match="^(fit|unweighted) is no fit of this synth"):
                use(wrong)


# ---- the gate --------------------------------------------------------------------------------


class Chains(ppm.GammaPoisson):
    """Two chains of the closed form, which a test changes from some fit on."""

    independent_draws = False

    def __init__(self, counts, change=np.copy, *, since=1, diverging=None, **prior):
        super().__init__(counts, **prior)
        self.change, self.since, self.diverging, self.fits = change, since, diverging, 0

    def fit(self, weights=None, *, draws=1000, random_seed=None, progress=False, censor=None):
        self.fits += 1
        rng, dims = np.random.default_rng(random_seed), ("chain", "draw")
        mean = self.posterior(weights, censor=censor).rvs(size=(2, draws), random_state=rng)
        mean = self.change(mean) if self.fits >= self.since else mean
        posterior = xr.Dataset({"mu": (dims, mean)})
        log_lik = self.log_likelihood_at(posterior).to_dataset(name="counts")
        groups = {"posterior": posterior, "log_likelihood": log_lik}
        if self.diverging is not None:
            diverging = np.arange(mean.size).reshape(mean.shape) < self.diverging
            groups["sample_stats"] = xr.Dataset({"diverging": (dims, diverging)})
        return xr.DataTree.from_dict(groups)


def apart(mean):
    mean[1] += 30.0
    return mean


def one_value(mean):
    """A single chain that never moves."""
    return np.full_like(mean[:1], 1e-3)


ASKED = (
    lambda result: result.local_bound,
    lambda result: result.record_bounds,
    lambda result: result.oscillation_bound,
    lambda result: result.epsilon(2),
    lambda result: result.guarantee,
    lambda result: result.summary(),
    lambda result: result.synthesize(2),
)


@pytest.mark.parametrize(("since", "named"), [(1, "unweighted"), (2, "weighted")])
def test_a_bound_is_withheld_where_chains_disagree(since, named):
    result = run(Chains(COUNTS, apart, since=since))
    assert not result.chains_agree
    for ask in ASKED:
        with pytest.raises(ppm.ChainsDisagreeError, match=f"[: ]{named} fit: R-hat is 1.8") as told:
            ask(result)
        assert "\n" not in str(told.value)
    # nothing is lost: the same numbers, marked
    shown = run(Chains(COUNTS, apart, since=since), allow_disagreement=True)
    again = ppm.mechanism.bound_fit(
        result.synthesizer, result.draws, result.weights, unweighted=result.unweighted,
        allow_disagreement=True,
    )
    assert all(np.array_equal(ask(shown), ask(again)) for ask in ASKED[:4])
    assert f"DISAGREE, shown all the same: {named} fit: R-hat is 1.8" in str(shown)
    assert "disagree" in shown.guarantee.not_covered[0]
    with pytest.warns(UserWarning, match="released although chains disagree"):
        release = shown.synthesize(2, random_seed=1)
    with pytest.raises(ppm.ChainsDisagreeError, match="^no statement can be made"):
        ppm.disclosure.release_statement(shown, release)
    # printed it says why, and no way of showing it, and no public field, has a withheld number
    assert f"{named} fit: R-hat is 1.8" in " ".join(str(result).split())
    for text in (str(result), repr(result)):
        assert f"{shown.local_bound:.2f}" not in text and "by_chain" not in text
    fields = [value for name, value in vars(result).items() if not name.startswith("_")]
    for held in shown.record_bounds, shown.oscillation_bound, shown.summary()["Δ, unweighted"]:
        assert not any(np.array_equal(value, held) for value in fields)


@pytest.mark.parametrize(
    ("change", "diverging", "message"),
    [
        (one_value, 200, " still .*; weighted fit: 200 of 200 draws diverged, more than 10%"),
        (np.copy, 41, "unweighted fit: 41 of 400 draws diverged, more than 10%"),
        (np.copy, 40, None),
    ],
)
def test_a_bound_is_withheld_where_its_chains_say_nothing(change, diverging, message):
    result = run(Chains(COUNTS, change, diverging=diverging))
    if message is None:  # few divergences are printed and withhold nothing
        assert f"\n{diverging} divergent transitions\n" in str(result) and result.epsilon() > 0
        assert result.summary()["divergences"] == 2 * diverging
        return
    with pytest.raises(ppm.ChainsDisagreeError, match=message):
        result.synthesize(1)


def test_chains_that_are_called_independent_are_compared_where_there_are_several():
    for change in apart, np.copy:
        synthesizer = Chains(COUNTS, change)
        synthesizer.independent_draws = True
        result = run(synthesizer)
        both = result.diagnostics, result.unweighted_diagnostics
        assert {result.chains_agree, *(one.agree for one in both)} == {change is np.copy}


def test_each_fit_is_diagnosed_by_its_own_draws_and_weights():
    result = run(Chains(COUNTS))
    log_lik, diagnosed = result.synthesizer.log_likelihood, ppm.diagnostics.bound_diagnostics
    parts = result.diagnostics
    assert parts == diagnosed(log_lik(result.draws), result.weights)
    assert parts != diagnosed(log_lik(result.draws), ONES)
    assert result.unweighted_diagnostics == diagnosed(log_lik(result.unweighted), ONES)
    # both chains count
    assert result.draws_used == 400 and parts.spread[1] == pytest.approx(result.local_bound)
    quantities = (parts.r_hat, parts.effective_draws, parts.r_hat_log_likelihood,
                  parts.effective_draws_log_likelihood)
    assert tuple(result.summary().iloc[5:9]) == quantities


# ---- what may be published -------------------------------------------------------------------


class Talkative(ppm.GammaPoisson):
    """Leaves notes on what it predicts."""

    def predict(self, fit, *, releases, random_seed=None):
        found = super().predict(fit, releases=releases, random_seed=random_seed)
        names = [f"household {count}" for count in COUNTS]
        found = found.assign_coords(
            release=("release", np.arange(releases), {"mean": 6.5}), record=COUNTS,
            household=("record", names), largest=COUNTS.max(),
        )
        found.encoding["largest"] = float(COUNTS.max())
        return found.assign_attrs(largest_count=int(COUNTS.max()))


@pytest.mark.parametrize("kind", [ppm.GammaPoisson, Talkative])
def test_a_release_carries_nothing_that_was_computed_from_the_records(kind, tmp_path):
    result = run(kind(COUNTS))
    assert "\nconfidential: weights, bounds" in str(result)
    released = result.synthesize(2, random_seed=2)
    released.to_netcdf(tmp_path / "release.nc", engine="scipy")
    saved = xr.load_dataarray(tmp_path / "release.nc", engine="scipy")
    for found in (released, pickle.loads(pickle.dumps(released)), saved):
        assert set(found.attrs) == {"releases"} and found.attrs["releases"] == 2
        assert not found.coords and "largest" not in found.encoding
    raw = pickle.dumps(released) + (tmp_path / "release.nc").read_bytes()
    assert b"household" not in raw
    for inside in (result.epsilon(2), result.local_bound, *result.weights[result.weights > 0]):
        assert np.float64(inside).tobytes() not in raw
        assert np.float64(inside).byteswap().tobytes() not in raw


class Strange(ppm.GammaPoisson):
    """Takes no limits, and must not be fitted."""

    def fit(self, weights=None, *, draws=1000, random_seed=None, progress=False):
        raise AssertionError("no fit may be started")


LIMITS = ppm.Censoring(-3.0, -1.0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        # what was asked for by name is not dropped in silence, also where it is the default
        ({"weights": ONES, "scale": 1.0}, "^weights replaces"),
        ({"allow_disagreement": "no"}, "^allow_disagreement must be True or False"),
        ({"synthesizer": ppm.GammaPoisson}, "got the class GammaPoisson$"),
        ({"warmup": 5, "chains": 2}, "^warmup, chains: no setting of the mechanism"),
        ({"censor": (-3, -1)}, "^censor must be a ppm.Censoring"),
        ({"censor": LIMITS}, r"^censor: the fit\(\) of Strange takes none"),
        ({"independent_weights": True}, "^independent_weights says"),
        ({"weights": ONES, "independent_weights": "yes"}, "^independent_weights must be True"),
    ],
)
def test_wrong_settings_are_refused_in_one_line_before_any_fit(settings, message):
    with pytest.raises((ValueError, TypeError), match=message) as refused:
        run(**{"synthesizer": Strange(COUNTS)} | settings)
    assert "\n" not in str(refused.value)
