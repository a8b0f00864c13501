"""The three steps in order, on the synthesizer whose every step is known."""

import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

import ppm

COUNTS = np.r_[np.random.default_rng(7).poisson(100, 60), 160]


@pytest.fixture(scope="module")
def result():
    mechanism = ppm.PseudoPosteriorMechanism(ppm.GammaPoisson(COUNTS), truncate_at=4.0)
    return mechanism.run(draws=500, random_seed=11)


def test_the_steps_follow_the_paper(result):
    synthesizer = result.synthesizer
    # step 1: weights from the unweighted fit
    before = synthesizer.log_likelihood(result.unweighted)
    assert np.array_equal(
        result.weights, ppm.record_weights(ppm.record_bounds(before), truncate_at=4.0)
    )
    # step 2: bounds from the weighted fit, weighted
    after = synthesizer.log_likelihood(result.draws)
    assert np.array_equal(result.record_bounds, ppm.record_bounds(after, result.weights))
    assert result.local_bound == result.record_bounds.max()
    # bounds of the first fit, or of the second without weights, are other numbers
    assert not np.array_equal(result.record_bounds, ppm.record_bounds(before, result.weights))
    assert result.local_bound < ppm.local_bound(after)
    assert result.draws_used == 500


@pytest.mark.parametrize(
    ("scale", "shift", "truncate_at"), [(0.5, -0.3, None), (0.7, 0.2, 5.0), (1.0, 0.0, 3.0)]
)
def test_the_weights_are_scaled_and_shifted_risks_cut_at_m(result, scale, shift, truncate_at):
    settings = {"scale": scale, "shift": shift, "truncate_at": truncate_at}
    found = ppm.PseudoPosteriorMechanism(result.synthesizer, **settings).run(
        draws=50, random_seed=1, unweighted=result.unweighted
    )
    log_lik = result.synthesizer.log_likelihood(result.unweighted).values
    bounds = np.abs(log_lik).max(axis=(0, 1))
    risk = (bounds - bounds.min()) / np.ptp(bounds)
    weights = np.clip(scale * (1.0 - risk) + shift, 0.0, 1.0)
    if truncate_at is not None:
        over = weights * bounds > truncate_at
        assert 0 < over.sum() < over.size
        weights = np.where(over, 0.0, weights)
    assert found.weights == pytest.approx(weights)
    # without the shift the bounds would be others
    unshifted = np.clip(scale * (1.0 - risk), 0.0, 1.0)
    assert (shift == 0.0) == bool(np.allclose(weights[weights > 0], unshifted[weights > 0]))


def test_results_are_told_apart_as_objects_and_not_by_their_arrays(result):
    # arrays have no truth value, and no hash
    assert result != replace(result) and len({result, replace(result)}) == 2


def test_the_weighted_fit_follows_the_weighted_posterior(result):
    draws = result.draws["posterior"]["mu"].values
    weighted = result.synthesizer.posterior(result.weights)
    error = weighted.std() / np.sqrt(draws.size)
    assert abs(draws.mean() - weighted.mean()) < 4 * error
    assert abs(draws.mean() - result.synthesizer.posterior().mean()) > 4 * error


def test_the_two_fits_use_independent_draws():
    # with weights all 1 both fits have the same posterior, and must still differ
    same = ppm.PseudoPosteriorMechanism(ppm.GammaPoisson([5, 5, 5])).run(draws=50, random_seed=1)
    assert same.weights.tolist() == [1.0] * 3
    first, second = (fit["posterior"]["mu"].values for fit in (same.unweighted, same.draws))
    assert not np.array_equal(first, second)


def test_releases_and_their_epsilon(result):
    assert result.epsilon() == 2 * result.local_bound
    assert result.epsilon(releases=20) == pytest.approx(40 * result.local_bound)
    synthetic = result.synthesize(3, random_seed=5)
    assert synthetic.shape == (3, COUNTS.size)
    assert synthetic.attrs == {"releases": 3}


def test_an_earlier_unweighted_fit_is_used_again(result):
    other = ppm.PseudoPosteriorMechanism(result.synthesizer, scale=0.5)
    reused = other.run(draws=20, random_seed=1, unweighted=result.unweighted)
    before = result.synthesizer.log_likelihood(result.unweighted)
    assert np.array_equal(reused.weights, ppm.record_weights(ppm.record_bounds(before), scale=0.5))
    assert reused.unweighted is result.unweighted


def test_weights_given_are_used_as_they_are():
    weights = np.full(COUNTS.size, 0.25)
    mechanism = ppm.PseudoPosteriorMechanism(ppm.GammaPoisson(COUNTS), weights=weights)
    result = mechanism.run(draws=20, random_seed=1)
    assert np.array_equal(result.weights, weights) and result.unweighted is None


def test_a_record_of_weight_0_cannot_be_seen_in_the_release():
    """Leaving out a record with weight 0, weights held fixed, changes nothing at all."""
    weights = np.ones(COUNTS.size)
    weights[-1] = 0
    seen = ppm.PseudoPosteriorMechanism(ppm.GammaPoisson(COUNTS), weights=weights)
    changed = np.r_[COUNTS[:-1], 9_999]
    hidden = ppm.PseudoPosteriorMechanism(ppm.GammaPoisson(changed), weights=weights)
    runs = [m.run(draws=20, random_seed=1).synthesize(2, random_seed=2) for m in (seen, hidden)]
    assert np.array_equal(*runs)
    weights[-1] = 0.01  # and with any other weight it can
    hidden = ppm.PseudoPosteriorMechanism(ppm.GammaPoisson(changed), weights=weights)
    assert not np.array_equal(
        runs[0], hidden.run(draws=20, random_seed=1).synthesize(2, random_seed=2)
    )


class Chains(ppm.GammaPoisson):
    """Two chains; from its second fit on, or always, the second one is stuck elsewhere."""

    independent_draws = False

    def __init__(self, counts, stuck_from):
        super().__init__(counts)
        self.stuck_from, self.fits = stuck_from, 0

    def fit(self, weights=None, *, draws=1000, random_seed=None, progress=False):
        self.fits += 1
        rng = np.random.default_rng(random_seed)
        mean = self.posterior(weights).rvs(size=(2, draws), random_state=rng)
        mean[1] += 30.0 * (self.fits >= self.stuck_from)
        log_lik = ppm.synthesizers.gamma_poisson.log_likelihood_of_counts(
            self.counts, mean[..., None]
        )
        return xr.DataTree.from_dict(
            {
                "posterior": xr.Dataset({"mu": (("chain", "draw"), mean)}),
                "log_likelihood": xr.Dataset({"counts": (("chain", "draw", "record"), log_lik)}),
            }
        )


@pytest.mark.parametrize(("stuck_from", "named"), [(1, "unweighted"), (2, "weighted")])
def test_a_bound_is_withheld_where_chains_disagree(stuck_from, named):
    mechanism = ppm.PseudoPosteriorMechanism(Chains(COUNTS, stuck_from))
    result = mechanism.run(draws=200, random_seed=1)
    assert not result.chains_agree
    for ask in (
        lambda: result.local_bound,
        lambda: result.record_bounds,
        lambda: result.epsilon(2),
        lambda: result.synthesize(2),
        lambda: result.oscillation_bound,
        lambda: result.confidential(),
    ):
        with pytest.raises(ppm.ChainsDisagreeError, match=f"[: ]{named} fit: R-hat is 1.8"):
            ask()
    # printed it says why, and neither way of showing it tells a withheld number
    told = " ".join(str(result).split())
    assert "withheld" in told and f"{named} fit: R-hat is 1.8" in told
    # nothing is lost: the same numbers, marked
    shown = result.despite_disagreement()
    for text in (str(result), repr(result)):
        assert f"{shown.local_bound:.2f}" not in text and "by_chain" not in text
    assert shown.local_bound == shown.record_bounds.max() > 0
    # and no field that a reader may look at has one
    fields = [value for name, value in vars(result).items() if not name.startswith("_")]
    numbers = [value for value in fields if isinstance(value, (float, np.ndarray))]
    for held in shown.record_bounds, shown.oscillation_bound, shown.summary()["Δ, unweighted"]:
        assert numbers and not any(np.array_equal(value, held) for value in numbers)
    assert f"CHAINS DISAGREE, shown all the same: {named} fit: R-hat is 1.8" in str(shown)
    assert shown.oscillation_bound == ppm.oscillation_bound(
        shown.synthesizer.log_likelihood(shown.draws), shown.weights
    )
    # a file that somebody saves says it, too
    assert shown.confidential().attrs["chains_agree"] == 0
    with pytest.warns(UserWarning, match="released although chains disagree"):
        assert shown.synthesize(2, random_seed=1).shape == (2, COUNTS.size)


def test_a_bound_is_shown_with_its_diagnostics_where_chains_agree():
    result = ppm.PseudoPosteriorMechanism(Chains(COUNTS, 99)).run(draws=200, random_seed=1)
    assert result.chains_agree and result.diagnostics.r_hat < 1.05
    assert result.unweighted_diagnostics.effective_draws > 100
    low, high = result.diagnostics.spread
    assert low < high == pytest.approx(result.local_bound)
    assert "R-hat" in str(result) and "DISAGREE" not in str(result)


def test_each_fit_is_diagnosed_by_its_own_draws_and_weights():
    result = ppm.PseudoPosteriorMechanism(Chains(COUNTS, 99)).run(draws=200, random_seed=1)
    log_lik, ones = result.synthesizer.log_likelihood, np.ones(COUNTS.size)
    found = result.diagnostics, result.unweighted_diagnostics
    assert found == (
        ppm.diagnostics.bound_diagnostics(log_lik(result.draws), result.weights),
        ppm.diagnostics.bound_diagnostics(log_lik(result.unweighted), ones),
    )
    # the weights matter for both
    assert found[0] != ppm.diagnostics.bound_diagnostics(log_lik(result.draws), ones)
    assert found[1] != ppm.diagnostics.bound_diagnostics(log_lik(result.unweighted), result.weights)
    # both chains count
    assert result.draws_used == 400
    assert result.confidential().attrs["draws_used"] == 400
    assert "over 400 draws" in str(result)


class Anyhow(ppm.GammaPoisson):
    """Draws that a test makes of those of the closed form, an array (chain, draw)."""

    independent_draws = False

    def __init__(self, counts, change, diverging=None):
        super().__init__(counts)
        self.change, self.diverging = change, diverging

    def fit(self, weights=None, *, draws=1000, random_seed=None, progress=False):
        rng = np.random.default_rng(random_seed)
        mean = self.change(self.posterior(weights).rvs(size=(2, draws), random_state=rng))
        posterior = xr.Dataset({"mu": (("chain", "draw"), mean)})
        groups = {
            "posterior": posterior,
            "log_likelihood": self.log_likelihood_at(posterior).to_dataset(name="counts"),
        }
        if self.diverging is not None:
            diverging = np.arange(mean.size).reshape(mean.shape) < self.diverging
            groups["sample_stats"] = xr.Dataset({"diverging": (("chain", "draw"), diverging)})
        return xr.DataTree.from_dict(groups)


def one_value(mean):
    """A single chain that never moves."""
    return np.full_like(mean[:1], 1e-3)


def half_frozen(mean):
    mean[1, 100:] = mean[1, 100]
    return mean


@pytest.mark.parametrize(
    ("change", "diverging", "message"),
    [
        (one_value, None, "weighted fit: a chain stood still for half of its draws"),
        (one_value, 200, "; weighted fit: 200 of 200 draws diverged, more than 10%"),
        (half_frozen, None, "weighted fit: a chain stood still for half of its draws"),
        (np.copy, 41, "unweighted fit: 41 of 400 draws diverged, more than 10%"),
        (lambda mean: mean[:, :7], None, "weighted fit: R-hat is undefined"),
    ],
)
def test_a_bound_is_withheld_where_its_chains_say_nothing(change, diverging, message):
    mechanism = ppm.PseudoPosteriorMechanism(Anyhow(COUNTS, change, diverging))
    result = mechanism.run(draws=200, random_seed=1)
    assert not result.chains_agree
    assert message.strip("; ") in " ".join(str(result).split())
    for ask in (lambda: result.local_bound, lambda: result.synthesize(1)):
        with pytest.raises(ppm.ChainsDisagreeError, match=message) as raised:
            ask()
        assert "\n" not in str(raised.value)
    assert message.strip("; ") in " ".join(str(result.despite_disagreement()).split())


def test_few_divergences_are_printed_and_withhold_nothing():
    mechanism = ppm.PseudoPosteriorMechanism(Anyhow(COUNTS, np.copy, 40))
    assert "\n40 divergent transitions\n" in str(mechanism.run(draws=200, random_seed=1))


def test_chains_that_are_called_independent_are_compared_where_there_are_several():
    def apart(mean):
        mean[1] += 30.0
        return mean

    for change, agree in ((apart, False), (np.copy, True)):
        synthesizer = Anyhow(COUNTS, change)
        synthesizer.independent_draws = True
        result = ppm.PseudoPosteriorMechanism(synthesizer).run(draws=200, random_seed=1)
        assert result.chains_agree == agree
        assert result.diagnostics.agree == result.unweighted_diagnostics.agree == agree


def test_one_chain_of_independent_draws_says_that_nobody_checked_it(result):
    assert result.diagnostics is None and result.chains_agree
    assert "R-hat not checked: one chain of draws that are called independent" in str(result)
    # a fit that there was not needs no check
    given = ppm.PseudoPosteriorMechanism(Chains(COUNTS, 99), weights=np.ones(COUNTS.size))
    assert given.run(draws=200, random_seed=1).unweighted_diagnostics is None
    assert given.run(draws=200, random_seed=1).chains_agree


CORE_ONLY = """
import sys
for name in ("arviz", "arviz_base", "xarray_einstats", "pymc", "numba", *{missing}):
    sys.modules[name] = None
import numpy as np, xarray as xr, ppm

class Two(ppm.GammaPoisson):
    independent_draws = False
    apart = {apart}
    def fit(self, weights=None, *, draws=1000, random_seed=None, progress=False):
        rng = np.random.default_rng(random_seed)
        mean = self.posterior(weights).rvs(size=(2, draws), random_state=rng)
        mean[1] += self.apart
        posterior = xr.Dataset(dict(mu=(("chain", "draw"), mean)))
        log_lik = self.log_likelihood_at(posterior).to_dataset(name="counts")
        return xr.DataTree.from_dict(dict(posterior=posterior, log_likelihood=log_lik))

result = ppm.PseudoPosteriorMechanism(Two([3, 5, 4, 6, 7])).run(draws=200, random_seed=1)
try:
    print("epsilon", result.epsilon())
except ppm.ChainsDisagreeError:
    print("withheld")
"""


@pytest.mark.parametrize(
    ("apart", "missing", "told"),
    [(5.0, (), "withheld"), (0.0, (), "epsilon"), (0.0, ("arviz_stats",), "arviz_stats")],
)
def test_no_bound_passes_unchecked_where_only_the_core_is_installed(apart, missing, told):
    code = CORE_ONLY.format(apart=apart, missing=missing)
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    # without what compares the chains there is an error, not a bound
    assert (finished.returncode != 0) == bool(missing)
    assert told in (finished.stderr.splitlines()[-1] if missing else finished.stdout)


def test_disagreement_can_be_allowed_from_the_start():
    stuck = ppm.PseudoPosteriorMechanism(Chains(COUNTS, 1))
    assert stuck.run(draws=200, random_seed=1, allow_disagreement=True).local_bound > 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scale": 0}, "^scale must be"),
        ({"shift": np.nan}, "^shift must be"),
        ({"truncate_at": 0}, "^truncate_at must be"),
        ({"weights": [0.5]}, "shape"),
        ({"weights": np.ones(COUNTS.size), "scale": 0.5}, "^weights replaces"),
        ({"weights": np.ones(COUNTS.size), "shift": 0.5}, "^weights replaces"),
        ({"weights": np.ones(COUNTS.size), "truncate_at": 4.0}, "^weights replaces"),
        # what was asked for by name is not dropped in silence, also where it is the default
        ({"weights": np.ones(COUNTS.size), "scale": 1.0}, "^weights replaces"),
    ],
)
def test_wrong_settings_are_refused_before_any_fit(settings, message):
    with pytest.raises(ValueError, match=message):
        ppm.PseudoPosteriorMechanism(ppm.GammaPoisson(COUNTS), **settings)


def test_a_model_that_is_no_synthesizer_is_refused():
    with pytest.raises(TypeError, match="synthesizer must have records"):
        ppm.PseudoPosteriorMechanism(COUNTS)
    mechanism = ppm.PseudoPosteriorMechanism(ppm.GammaPoisson(COUNTS))
    with pytest.raises(ValueError, match="^draws must be"):
        mechanism.run(draws=0)


def test_the_oscillation_bound_of_a_result_is_that_of_its_own_draws_and_weights():
    synthesizer = ppm.GammaPoisson([3, 5, 4, 6, 20])
    result = ppm.PseudoPosteriorMechanism(synthesizer).run(draws=300, random_seed=1)
    log_lik = synthesizer.log_likelihood(result.draws)
    assert result.oscillation_bound == ppm.oscillation_bound(log_lik, result.weights)
    assert result.oscillation_bound < result.local_bound < result.epsilon()
    # the weights matter
    assert result.oscillation_bound != ppm.oscillation_bound(log_lik)


def test_printing_or_saving_the_confidential_parts_says_so(tmp_path):
    result = ppm.PseudoPosteriorMechanism(ppm.GammaPoisson(COUNTS)).run(draws=50, random_seed=1)
    assert "\nconfidential: weights, bounds" in str(result)
    inside = result.confidential()
    assert np.array_equal(inside["weights"], result.weights)
    assert np.array_equal(inside["record_bounds"], result.record_bounds)
    inside.to_netcdf(tmp_path / "inside.nc", engine="scipy")
    saved = xr.load_dataset(tmp_path / "inside.nc", engine="scipy")
    assert "only what synthesize() returns" in saved.attrs["confidential"]


class Talkative(ppm.GammaPoisson):
    """Leaves notes on what it predicts."""

    def predict(self, fit, *, releases, random_seed=None):
        found = super().predict(fit, releases=releases, random_seed=random_seed)
        found = found.assign_coords(
            release=("release", np.arange(releases), {"mean": 6.5}),
            record=COUNTS,
            household=("record", [f"household {count}" for count in COUNTS]),
            largest=COUNTS.max(),
        )
        found.encoding["largest"] = float(COUNTS.max())
        return found.assign_attrs(largest_count=int(COUNTS.max()))


def test_a_release_carries_nothing_that_was_computed_from_the_records(tmp_path):
    for synthesizer in (ppm.GammaPoisson(COUNTS), Talkative(COUNTS)):
        result = ppm.PseudoPosteriorMechanism(synthesizer).run(draws=50, random_seed=1)
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


def test_the_summary_is_what_the_parts_say():
    result = ppm.PseudoPosteriorMechanism(ppm.GammaPoisson(COUNTS)).run(draws=50, random_seed=1)
    found = result.summary(releases=3)
    unweighted = result.synthesizer.log_likelihood(result.unweighted)
    expected = {
        "Δ, unweighted": ppm.local_bound(unweighted), "Δ": result.local_bound, "draws S": 50,
        "ε, one release": 2 * result.local_bound, "ε, all releases": 6 * result.local_bound,
    }
    # nobody counted them
    assert np.isnan(found["divergences"])
    assert {name: found[name] for name in expected} == expected
    # one chain of independent draws is not checked, and weights may come from elsewhere
    assert found[["R-hat, largest", "ESS, largest", "R-hat, sum", "ESS, sum"]].isna().all()
    given = ppm.PseudoPosteriorMechanism(ppm.GammaPoisson(COUNTS), weights=np.ones(COUNTS.size))
    assert np.isnan(given.run(draws=50, random_seed=1).summary()["Δ, unweighted"])


def test_the_summary_names_each_diagnostic_as_what_it_is():
    mixture = ppm.FiniteMixture(
        np.random.default_rng(1).standard_normal(40), np.ones((40, 1)), components=1, warmup=50,
        parallel=False,
    )
    result = ppm.PseudoPosteriorMechanism(mixture).run(
        draws=100, random_seed=1, allow_disagreement=True
    )
    found, parts = result.summary(), result.diagnostics
    assert found["R-hat, largest"] == parts.r_hat != parts.r_hat_log_likelihood
    assert found["ESS, largest"] == parts.effective_draws
    assert found["R-hat, sum"] == parts.r_hat_log_likelihood
    assert found["ESS, sum"] == parts.effective_draws_log_likelihood


def test_settings_of_the_model_go_with_a_pymc_model_only():
    with pytest.raises(
        TypeError, match="^warmup, chains: no setting of the mechanism .scale, shift"
    ):
        ppm.PseudoPosteriorMechanism(ppm.GammaPoisson(COUNTS), warmup=5, chains=2)


def test_a_class_in_the_place_of_a_synthesizer_is_refused_at_once():
    with pytest.raises(TypeError, match=r"^synthesizer must have .*; got the class GammaPoisson$"):
        ppm.PseudoPosteriorMechanism(ppm.GammaPoisson)


def test_a_log_likelihood_is_not_asked_for_again_to_compare_the_chains():
    asked = []

    class Chains(ppm.GammaPoisson):
        independent_draws = False

        def log_likelihood(self, fit):
            asked.append(fit)
            return super().log_likelihood(fit)

    model, weights = Chains([3, 5, 4, 20]), np.ones(4)
    fits = [model.fit(weights, draws=100, random_seed=seed) for seed in (1, 2)]
    result = ppm.mechanism.bound_fit(
        model, fits[0], weights, unweighted=fits[1], allow_disagreement=True
    )
    # once to see whether what somebody hands over is a fit of the model, and once to read it
    assert [sum(fit is one for fit in asked) for one in fits] == [2, 2]
    assert len(result.diagnostics.by_chain) == 1
