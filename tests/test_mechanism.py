"""The three steps in order, on the synthesizer whose every step is known, and the gate."""

import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter, methodcaller

import numpy as np
import pytest
import xarray as xr

import ppm

COUNTS = np.r_[np.random.default_rng(7).poisson(100, 60), 160]
ONES = np.ones(COUNTS.size)
DIMS = ("chain", "draw")


def run(synthesizer=None, *, draws=200, allow_disagreement=False, **settings):
    synthesizer = ppm.GammaPoisson(COUNTS) if synthesizer is None else synthesizer
    mechanism = ppm.PseudoPosteriorMechanism(synthesizer, **settings)
    return mechanism.run(
        draws=draws, random_seed=1, allow_disagreement=allow_disagreement
    )


def words(text):
    """A text without its line breaks."""
    return " ".join(str(text).split())


@pytest.fixture(scope="module")
def result():
    return run(draws=500, truncate_at=4.0)


def test_the_summary_has_both_bounds_and_what_releases_cost(result):
    before = ppm.local_bound(result.model.log_likelihood(result.unweighted.draws))
    bound, found = result.local_bound, result.summary(releases=3)
    assert found.iloc[:5].tolist() == [before, bound, 500, 2 * bound, 6 * bound]
    # one chain of independent draws is not checked, and nobody counted divergences
    assert (
        found.iloc[5:].isna().all()
        and result.diagnostics is None
        and result.chains_agree
    )


def test_a_record_of_weight_0_cannot_be_seen_in_the_release():
    """Leaving out a record with weight 0, weights held fixed, changes nothing at all."""
    models = ppm.GammaPoisson(COUNTS), ppm.GammaPoisson(np.r_[COUNTS[:-1], 9_999])

    def releases(weight):
        results = [run(one, weights=np.r_[ONES[:-1], weight]) for one in models]
        return [result.synthesize(2, random_seed=2) for result in results]

    assert np.array_equal(*releases(0.0))
    assert not np.array_equal(*releases(0.01))


def test_a_fit_of_other_records_is_refused(result):
    other, ones = ppm.GammaPoisson(COUNTS + 1), np.ones(COUNTS.size)
    own, bound_fit = other.fit(draws=9, random_seed=1), ppm.mechanism.bound_fit
    # whose first draw alone is its own
    first = own["log_likelihood"].dataset.isel(draw=[0] * 9)
    partly = xr.DataTree.from_dict(
        {"posterior": own["posterior"].dataset, "log_likelihood": first}
    )
    with pytest.raises(ValueError, match="^fit is no fit of this synthesizer"):
        bound_fit(other, partly, ones)
    for use in (
        lambda fit: ppm.PseudoPosteriorMechanism(other).run(unweighted=fit),
        lambda fit: bound_fit(other, own, ones, unweighted=fit),
    ):
        assert use(ppm.fit(other, draws=9, random_seed=1)).epsilon() > 0
        with pytest.raises(ValueError, match="^unweighted is no fit of this synth"):
            use(result.unweighted)
        with pytest.raises(ValueError, match="^unweighted must be a ppm.Fit.*DataTree"):
            use(own)


# ---- the gate --------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class Chains(ppm.GammaPoisson):
    """Two chains of the closed form, which a test changes from some fit on."""

    counts: np.ndarray
    change: Callable = np.copy
    prior: dict = field(default_factory=dict)
    since: int = 1
    diverging: int = 0
    independent_draws: bool = False
    fits: int = field(default=0, init=False)

    def __post_init__(self):
        super().__init__(self.counts, **self.prior)

    def fit(self, terms=None, *, draws=1000, random_seed=None, progress=False):
        self.fits += 1
        rng = np.random.default_rng(random_seed)
        mean = self.posterior(terms).rvs(size=(2, draws), random_state=rng)
        mean = self.change(mean) if self.fits >= self.since else mean
        diverging = np.arange(mean.size).reshape(mean.shape) < self.diverging
        both = xr.Dataset({"mu": (DIMS, mean), "diverging": (DIMS, diverging)})
        return xr.DataTree.from_dict({"posterior": both, "sample_stats": both})

    def log_likelihood(self, fit):
        return self.log_likelihood_at(fit["posterior"].dataset)


def apart(mean):
    return mean + [[0.0], [30.0]]


def one_value(mean):
    """A single chain that never moves."""
    return np.full_like(mean[:1], 1e-3)


ASKED = [
    attrgetter(name) for name in ("local_bound", "record_bounds", "oscillation_bound")
]
ASKED += [
    methodcaller("epsilon", 2),
    methodcaller("synthesize", 2),
    methodcaller("summary"),
]
ASKED += [attrgetter("guarantee")]


@pytest.mark.parametrize(
    ("change", "settings", "fault"),
    [
        (apart, {}, "unweighted fit: R-hat is 1.8"),
        (apart, {"since": 2}, "weighted fit: R-hat is 1.8"),
        # also where several chains are called independent
        (apart, {"independent_draws": True}, "unweighted fit: R-hat is 1.8"),
        (one_value, {}, "unweighted fit: a chain stood still"),
        (
            np.copy,
            {"diverging": 41},
            "unweighted fit: 41 of 400 draws diverged, more than 10%",
        ),
    ],
)
def test_a_bound_is_withheld_where_chains_disagree_or_say_nothing(
    change, settings, fault
):
    result = run(Chains(COUNTS, change, **settings))
    shown = run(Chains(COUNTS, change, **settings), allow_disagreement=True)
    assert not result.chains_agree
    for ask in ASKED:
        with pytest.raises(ppm.ChainsDisagreeError, match=f"[: ]{fault}") as told:
            ask(result)
        assert "\n" not in str(told.value)
    # nothing is lost: the same numbers, marked
    fits = {
        "fit": result.draws,
        "unweighted": result.unweighted,
        "allow_disagreement": True,
    }
    again = ppm.mechanism.bound_fit(result.model, terms=result.terms, **fits)
    assert all(np.array_equal(ask(shown), ask(again)) for ask in ASKED[:4])
    assert str(shown) == str(again) and shown.summary().equals(again.summary())
    assert f"DISAGREE, shown all the same: {fault}" in words(shown)
    assert "disagree" in shown.guarantee.not_covered[0]
    with pytest.warns(UserWarning, match="released although chains disagree"):
        release = shown.synthesize(2, random_seed=1)
    with pytest.raises(ppm.ChainsDisagreeError, match="^no statement can be made"):
        ppm.disclosure.release_statement(shown, release)
    # printed it says why, and no way of showing it, and no public field, has a withheld number
    assert fault in words(result)
    for text in (str(result), repr(result)):
        assert f"{shown.local_bound:.2f}" not in text and "by_chain" not in text
    fields = [value for name, value in vars(result).items() if not name.startswith("_")]
    for held in (
        shown.record_bounds,
        shown.local_bound,
        shown.summary()["Δ, unweighted"],
    ):
        assert not any(np.array_equal(value, held) for value in fields)


def test_each_fit_is_diagnosed_by_its_own_draws_and_weights():
    def diagnosed(fit, weights):
        log_lik, statistics = (
            result.model.log_likelihood(fit),
            fit["sample_stats"],
        )
        return ppm.diagnostics.bound_diagnostics(
            log_lik, weights, sample_stats=statistics
        )

    result = run(Chains(COUNTS, diverging=40))
    parts = result.diagnostics
    assert (
        parts
        == diagnosed(result.draws, result.weights)
        != diagnosed(result.draws, ONES)
    )
    first = result.unweighted
    assert first.diagnostics == diagnosed(first.draws, ONES)
    # both chains count
    assert result.draws_used == 400 and parts.spread[1] == pytest.approx(
        result.local_bound
    )
    shown = (
        parts.r_hat,
        parts.effective_draws,
        parts.r_hat_log_likelihood,
        parts.effective_draws_log_likelihood,
        80,
    )
    assert tuple(result.summary().iloc[5:]) == shown


# ---- what may be published -------------------------------------------------------------------


class Talkative(ppm.GammaPoisson):
    """Leaves notes on what it predicts."""

    def predict(self, fit, *, releases, random_seed=None):
        found = super().predict(fit, releases=releases, random_seed=random_seed)
        names, means = [f"household {count}" for count in COUNTS], {"mean": 6.5}
        found = found.assign_coords(
            record=COUNTS, household=("record", names), largest=COUNTS[-1]
        )
        found = found.assign_coords(release=("release", np.arange(releases), means))
        found.encoding["largest"] = float(COUNTS.max())
        return found.assign_attrs(largest_count=int(COUNTS.max()))


def test_a_release_carries_nothing_that_was_computed_from_the_records(tmp_path):
    result, file = run(Talkative(COUNTS)), tmp_path / "release.nc"
    released = result.synthesize(2, random_seed=2)
    released.to_netcdf(file, engine="scipy")
    raw = pickle.dumps(released) + file.read_bytes()
    for found in (released, pickle.loads(raw), xr.load_dataarray(file, engine="scipy")):
        assert found.attrs == {"releases": 2}
        assert not found.coords and "largest" not in found.encoding
    assert b"household" not in raw
    for inside in (
        result.epsilon(2),
        result.local_bound,
        *result.weights[result.weights > 0],
    ):
        for value in np.float64(inside), np.float64(inside).byteswap():
            assert value.tobytes() not in raw


class Strange(ppm.GammaPoisson):
    """Takes no limits, and must not be fitted."""

    takes_limits = False

    def fit(self, terms=None, *, draws=1000, random_seed=None, progress=False):
        raise AssertionError("no fit may be started")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        # what was asked for by name is not dropped in silence, also where it is the default
        ({"weights": ONES, "scale": 1.0}, "^weights replaces"),
        ({"synthesizer": ppm.GammaPoisson}, "got the class GammaPoisson$"),
        ({"warmup": 5, "chains": 2}, "^warmup, chains: no setting of the mechanism"),
        (
            {"censor": ppm.Censoring(-3.0, -1.0)},
            r"^censor: the fit\(\) of Strange takes no limits",
        ),
        ({"independent_weights": True}, "^independent_weights says"),
    ],
)
def test_wrong_settings_are_refused_in_one_line_before_any_fit(settings, message):
    with pytest.raises((ValueError, TypeError), match=message) as refused:
        run(**{"synthesizer": Strange(COUNTS)} | settings)
    assert "\n" not in str(refused.value)
