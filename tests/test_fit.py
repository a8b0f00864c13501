"""The mechanism on models whose every step is known: the gate, and what a release carries."""

import dataclasses
import pickle
import re
from operator import attrgetter, methodcaller

import numpy as np
import pytest
import xarray as xr

import ppm

COUNTS = np.r_[np.random.default_rng(7).poisson(100, 60), 160]
ONES = np.ones(COUNTS.size)
MIDDLE = COUNTS.mean()


def fitted(model=None, rule=None, *, draws=200, **settings):
    model = ppm.GammaPoisson(COUNTS) if model is None else model
    rule = ppm.ByRisk() if rule is None else rule
    return ppm.fit(model, rule, draws=draws, random_seed=1, **settings)


def words(text):
    """A text without its line breaks."""
    return " ".join(str(text).split())


def test_a_run_gives_the_numbers_that_it_always_gave():
    """Printed by the code of their day: they tell a change, and no fault."""
    counts = np.random.default_rng(1).poisson(6, 40)
    model = ppm.GammaPoisson(counts, shape=2.0, rate=0.5)
    fit = ppm.fit(model, ppm.ByRisk(0.8, 0.1), draws=100, random_seed=3)
    released = fit.release(3, random_seed=4).values
    moved = fit.record_oscillations.sum()
    numbers = [fit.weights.sum(), fit.local_bound, moved, released.sum()]
    assert numbers == pytest.approx([25.579280538, 1.8293053944, 14.012041487, 796.0])
    assert (released[0, 0], released[2, -1]) == (6, 5)


def test_the_summary_has_both_bounds_and_what_releases_cost():
    fit = fitted(rule=ppm.ByRisk(truncate_at=4.0), draws=500)
    before = ppm.local_bound(fit.model.log_p(fit.unweighted.theta))
    bound, summary = fit.local_bound, fit.summary(releases=3)
    assert summary.iloc[:5].tolist() == [before, bound, 500, 2 * bound, 6 * bound]
    # exact and independent draws are not checked, and nobody counted divergences
    assert summary.iloc[5:].isna().all()
    assert fit.diagnostics is None and fit.chains_agree


def test_a_record_of_weight_0_cannot_be_seen_in_the_release():
    """Leaving out a record with weight 0, weights held fixed, changes nothing at all."""
    models = ppm.GammaPoisson(COUNTS), ppm.GammaPoisson(np.r_[COUNTS[:-1], 9_999])

    def releases(weight):
        rule = ppm.Given(np.r_[ONES[:-1], weight])
        return [fitted(m, rule).release(2, random_seed=2) for m in models]

    assert np.array_equal(*releases(0.0))
    assert not np.array_equal(*releases(0.01))


# ---- which draws are released ------------------------------------------------------------------


class Numbered(ppm.GammaPoisson):
    """Each draw is its number, and a database repeats it."""

    def draw(self, terms, draws, rng):
        return {"mu": np.arange(draws)}

    def predict(self, theta, rng):
        return np.full(self.records, theta["mu"])


@pytest.mark.parametrize("releases", [1, 2, 20, 21, 22])
def test_no_draw_is_used_twice_while_others_are_left(releases):
    fit = fitted(Numbered([3, 4]), ppm.Unweighted(), draws=21)
    for seed in range(20):
        used = fit.release(releases, random_seed=seed).values[:, 0]
        assert np.unique(used).size == min(releases, 21) or releases > 21


def test_every_draw_is_used_equally_often():
    fit = fitted(Numbered([3, 4]), ppm.Unweighted(), draws=21)
    used = fit.release(21_000, random_seed=1).values[:, 0]
    assert np.abs(np.bincount(used, minlength=21) - 1_000).max() < 4.5 * 1_000**0.5


# ---- what a user's model may not do ------------------------------------------------------------


def model_with(**methods):
    return type("Mine", (ppm.GammaPoisson,), methods)(COUNTS)


def transposed(model, theta):
    return ppm.GammaPoisson.log_p(model, theta).T


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        # it would cost too little
        (
            {"draw": lambda m, t, n, rng: {"mu": np.ones(1)}},
            "^draw of Mine must return 200 draws",
        ),
        (
            {"draw": lambda m, t, n, rng: {"mu": np.ones((1, n))}},
            "^draw of Mine must return 200",
        ),
        (
            {
                "draw": lambda m, t, n, rng: {
                    "mu": np.where(np.arange(n) == 7, -np.inf, 1)
                }
            },
            "^draw of Mine must .* finite",
        ),
        ({"draw": lambda m, t, n, rng: {"mu": ["a"] * n}}, ".*: mu must .* with text$"),
        (
            {"draw": lambda m, t, n, rng: {"mu": np.ma.masked_less(np.ones(n), 2)}},
            "^draw of Mine: mu holds masked values",
        ),
        ({"draw": lambda m, t, n, rng: None}, "^draw of Mine .* a dict .* NoneType$"),
        ({"draw": lambda m, t, n, rng: {}}, "^draw of Mine must return a dict"),
        ({"draw": lambda m, t, n, rng: ({"mu": np.ones(n)}, {})}, ".* dict .* tuple$"),
        ({"sample_stats": ["energy"]}, ".* name, and 'energy'; got a dict of 'mu'$"),
        ({"chains": 0}, "^chains of Mine must be a whole number of at least 1; got 0$"),
        ({"log_p": transposed}, r"^log_p of Mine must return \(draws, records\)"),
        ({"log_p": lambda m, theta: np.zeros(3)}, "^log_p of Mine must return"),
        (
            # of the second draw one record
            {
                "log_p": lambda m, theta: (
                    np.full((len(theta["mu"]), 61), -1.0)
                    + np.where(
                        np.arange(61) == 40, [[0.0], [np.nan], *[[0.0]] * 198], 0.0
                    )
                )
            },
            r"^log_p of Mine is NaN \(first in record 40\)",
        ),
    ],
)
def test_what_would_change_epsilon_is_refused(methods, message):
    with pytest.raises(ValueError, match=message) as error:
        fitted(model_with(**methods))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("records", [None, 0, "61", 61.0])
def test_a_model_without_a_number_of_records_is_refused(records):
    model = model_with()
    model.records = records
    with pytest.raises(ValueError, match="^records of Mine must be a whole number"):
        fitted(model)


@pytest.mark.parametrize(
    "predict",
    [
        lambda model, theta, rng: np.ones(3),
        lambda model, theta, rng: np.full(61, np.nan),
        lambda model, theta, rng: {"a": np.ones(61), "b": np.ones((3, 61))},
        lambda model, theta, rng: 1.0,
        lambda model, theta, rng: {},
        # of another shape, and of another name, at another θ
        lambda model, theta, rng: np.ones((61, 1 + (theta["mu"] > MIDDLE))),
        lambda model, theta, rng: {f"y{theta['mu'] > MIDDLE}": np.ones(61)},
        lambda model, theta, rng: np.ma.masked_less(np.arange(61), 3),
    ],
)
def test_what_is_no_database_is_refused(predict):
    fit = fitted(model_with(predict=predict))
    words = "^predict of Mine (must|returned NaN|holds masked)"
    with pytest.raises(ValueError, match=words):
        fit.release(20)
    assert fit._released == []


def test_dims_that_disagree_are_told_without_the_draws_and_records_get_no_labels():
    labels = {"record": [f"Person {k}" for k in range(61)]}
    assert not fitted(model_with(coords=labels)).release(1).coords
    fit = fitted(model_with(dims={"mu": ["cell"], "y": ["cell"]}))
    for name, show in {
        "mu": lambda: fit.posterior,
        "y": lambda: fit.release(1),
    }.items():
        words = f"^dims of Mine: {name} has 0 .* dims names 1 for it; they must agree$"
        with pytest.raises(ValueError, match=words):
            show()
    assert fit._released == []


def test_several_predictions_of_a_release_are_made_at_one_draw_and_cost_no_more():
    model = ppm.Candidates(ppm.GammaPoisson(COUNTS), {"mu": np.arange(90.0, 112.0)})
    rule = ppm.Limited(ppm.Limits(-4.0, -3.5))
    means, costs = {}, {}
    for predictions in (1, 400):
        fit = fitted(model, rule, draws=3)
        released = fit.release(3, predictions=predictions, random_seed=2)
        costs[predictions] = released.epsilon, released.epsilon_total
        means[predictions] = released.mean("record")
    assert costs[400] == costs[1] == (1.5, 1.5)
    assert means[400].dims == ("release", "prediction") and means[1].dims == (
        "release",
    )
    # all around one θ of the list: 400 means, each of 61 counts
    middle = means[400].mean("prediction")
    assert np.abs(middle - middle.round()).max() < 5 * (112 / 61 / 400) ** 0.5
    assert {*middle.round().values} == {*fit.theta["mu"]}
    with pytest.raises(ValueError, match="predictions must be a whole number"):
        fit.release(1, predictions=0)


def test_a_model_cannot_use_two_draws_for_one_release():
    def predict(model, theta, rng):
        assert np.ndim(theta["mu"]) == 0
        return rng.poisson(theta["mu"], model.records)

    assert fitted(model_with(predict=predict)).release(3).shape == (3, 61)


# ---- the gate --------------------------------------------------------------------------------


class Chains(ppm.GammaPoisson):
    """Two chains of the closed form, which a test changes from some fit on."""

    chains, sample_stats = 2, ("diverging",)

    def __init__(self, counts, change=np.copy, *, since=1, diverging=0):
        super().__init__(counts)
        self.change, self.since, self.diverging, self.fits = change, since, diverging, 0

    def draw(self, terms, draws, rng, *, warmup=None, start=None):
        self.fits += 1
        mean = self.posterior(terms.weights).rvs(size=(2, draws), random_state=rng)
        mean = self.change(mean) if self.fits >= self.since else mean
        return {"mu": mean.ravel(), "diverging": np.arange(mean.size) < self.diverging}


def apart(mean):
    return mean + [[0.0], [30.0]]


def standing(mean):
    """Chains that never move."""
    return np.full_like(mean, 1e-3)


ASKED = [
    attrgetter("local_bound"),
    attrgetter("record_bounds"),
    attrgetter("oscillation_bound"),
    attrgetter("draw_maxima"),
    methodcaller("epsilon", 2),
    methodcaller("release", 2),
    methodcaller("summary"),
]


@pytest.mark.parametrize(
    ("change", "settings", "fault"),
    [
        (apart, {}, "Unweighted: R-hat is 1.8"),
        (apart, {"since": 2}, "ByRisk: R-hat is 1.8"),
        (standing, {}, "Unweighted: a chain stood still"),
        (
            np.copy,
            {"diverging": 41},
            "Unweighted: 41 of 400 draws diverged, more than 10%",
        ),
    ],
)
def test_a_bound_is_withheld_where_chains_disagree_or_say_nothing(
    change, settings, fault
):
    fit = fitted(Chains(COUNTS, change, **settings))
    shown = fitted(Chains(COUNTS, change, **settings), allow_disagreement=True)
    assert not fit.chains_agree and not shown.chains_agree
    for ask in ASKED:
        with pytest.raises(ppm.ChainsDisagreeError, match=f"[: ]{fault}") as told:
            ask(fit)
        assert "\n" not in str(told.value)
        ask(shown)
    assert f"DISAGREE, shown all the same: {fault}" in words(shown)
    # printed it says why, and no way of showing it has a withheld number
    assert fault in words(fit)
    for text in str(fit), repr(fit), str(fit.unweighted), repr(fit.unweighted):
        assert f"{shown.local_bound:.1f}" not in text and "by_chain" not in text
    # what is behind it does not give it away either
    if fit.unweighted.faults:
        with pytest.raises(ppm.ChainsDisagreeError):
            fit.unweighted.epsilon()


def test_the_faults_of_every_fit_behind_go_along():
    model = Chains(COUNTS, apart, since=2)
    rule = ppm.OneWeight(ppm.ByRisk())
    fit = fitted(model, rule)
    assert any(fault.startswith("ByRisk: R-hat") for fault in fit.faults)
    # also where they were made before
    first = fitted(Chains(COUNTS, apart), ppm.Unweighted())
    fit = fitted(Chains(COUNTS), known={ppm.Unweighted(): first})
    assert fit.faults and fit.faults[0].startswith("Unweighted: R-hat")
    with pytest.raises(ppm.ChainsDisagreeError):
        fit.epsilon()


def test_a_few_divergences_are_told_and_hold_nothing_back():
    fit = fitted(Chains(COUNTS, diverging=40))
    assert fit.chains_agree and fit.diagnostics.divergences == 40
    assert fit.summary()["divergences"] == 80
    assert fit.sample_stats["diverging"].sum() == 40 and "diverging" not in fit.theta


def test_each_fit_is_diagnosed_by_its_own_draws_and_weights():
    fit = fitted(Chains(COUNTS))
    for one_fit in fit, fit.unweighted:
        log_p = one_fit.model.log_p(one_fit.theta).reshape(2, 200, -1)
        diverging = one_fit.sample_stats["diverging"]
        again = ppm.chains.bound_diagnostics(
            log_p, one_fit.weights, diverging=diverging
        )
        assert one_fit.diagnostics == again
    assert fit.draws_used == 400 and fit.draws == 200
    assert fit.diagnostics.spread[1] == pytest.approx(fit.local_bound)


def test_each_chain_ends_where_its_last_draw_is():
    fit = fitted(Chains(COUNTS))
    posterior = fit.posterior
    assert posterior.sizes == {"chain": 2, "draw": 200}
    assert np.array_equal(fit.ends["mu"], posterior["mu"].values[:, -1])


# ---- what may be published -------------------------------------------------------------------


class Talkative(ppm.GammaPoisson):
    """Leaves notes on what it predicts."""

    def predict(self, theta, rng):
        values = super().predict(theta, rng)
        names = [f"household {count}" for count in COUNTS]
        return xr.DataArray(
            values, {"record": names}, ["record"], attrs={"largest": int(COUNTS.max())}
        )


def test_a_release_carries_nothing_that_was_computed_from_the_records(tmp_path):
    fit, file = fitted(Talkative(COUNTS)), tmp_path / "release.nc"
    released = fit.release(2, random_seed=2)
    released.to_netcdf(file, engine="scipy")
    raw = pickle.dumps(released) + file.read_bytes()
    for read in released, pickle.loads(raw), xr.load_dataarray(file, engine="scipy"):
        assert read.attrs == {"releases": 2} and not read.coords
    assert b"household" not in raw
    for inside in (fit.epsilon(2), fit.local_bound, *fit.weights[fit.weights > 0]):
        for value in np.float64(inside), np.float64(inside).byteswap():
            assert value.tobytes() not in raw


def test_several_responses_and_further_axes_have_the_models_names():
    class Two(ppm.GammaPoisson):
        dims, coords = {"b": ["quarter"]}, {"quarter": ["I", "II", "III"]}

        def predict(self, theta, rng):
            return {"a": np.ones(self.records), "b": np.ones((self.records, 3))}

    release = fitted(Two(COUNTS)).release(2)
    assert release["a"].dims == ("release", "record")
    assert release["b"].dims == ("release", "record", "quarter")
    assert [*release.coords] == ["quarter"]


# ---- one door --------------------------------------------------------------------------------


class NeverFitted(ppm.GammaPoisson):
    def draw(self, terms, draws, rng):
        raise AssertionError("no fit may be started")


NEVER = NeverFitted(COUNTS)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"model": ppm.GammaPoisson}, "^model must be .* got the class GammaPoisson$"),
        ({"model": COUNTS}, "^model must be a ppm.Model, .* got ndarray$"),
        ({"rule": ppm.ByRisk}, "^rule must be .* got the class ByRisk$"),
        ({"rule": ONES}, "^rule must be .* got ndarray$"),
        ({"rule": 0.7}, "^rule must be .* got float$"),
        ({"draws": 0}, "^draws must"),
        ({"allow_disagreement": 1}, "^allow_disagreement must"),
        ({"random_seed": "a"}, "^random_seed must"),
        ({"known": [1]}, "^known must be a dict"),
        ({"rule": ppm.Capped(1.0)}, "^NeverFitted takes no own weights: put it on"),
        (
            {"rule": ppm.Limited(ppm.Limits(-1, 1))},
            "^NeverFitted takes no limits: put it",
        ),
        (
            {"rule": ppm.Terms(ONES, ppm.Limits(-1, 1))},
            "^NeverFitted takes no limits: put it on a finite public set",
        ),
    ],
)
def test_wrong_settings_are_refused_in_one_line_before_any_fit(given, message):
    settings = {"model": NEVER, "rule": ppm.ByRisk(), "random_seed": 1} | given
    with pytest.raises((ValueError, TypeError), match=message) as refused:
        ppm.fit(**settings)
    assert "\n" not in str(refused.value)


def test_an_unknown_setting_of_the_sampler_is_refused_by_its_name():
    with pytest.raises(TypeError, match="thin"):
        ppm.fit(ppm.GammaPoisson(COUNTS), ppm.ByRisk(), thin=2)


def test_known_fits_are_of_this_model_and_of_their_rule():
    first = fitted(rule=ppm.Unweighted())
    same = ppm.GammaPoisson(COUNTS)
    fit = fitted(same, known={ppm.Unweighted(): first})
    assert fit.unweighted._extremes is first._extremes
    for model, known, message in (
        (
            ppm.GammaPoisson(COUNTS + 1),
            {ppm.Unweighted(): first},
            "is of another model",
        ),
        (
            ppm.GammaPoisson(COUNTS[1:]),
            {ppm.Unweighted(): first},
            "is of another model",
        ),
        (same, {ppm.ByRisk(): first}, "must hold fits by their own rule"),
        (same, {"first": first}, "must hold fits by their own rule"),
    ):
        with pytest.raises(ValueError, match=f"^known.* {message}"):
            fitted(model, known=known)
    with pytest.raises(ValueError, match="^known must hold fits of 100 draws; got 200"):
        fitted(same, known={ppm.Unweighted(): first}, draws=100)


def test_a_model_whose_records_reach_further_is_refused_with_an_epsilon_alone():
    class Reaches(ppm.GammaPoisson):
        def check_own_terms(self):
            raise ValueError("a record reaches others")

    model = ppm.Candidates(Reaches(COUNTS), {"mu": np.linspace(90.0, 110.0, 20)})
    fitted(model)
    for rule in ppm.Capped(1.0), ppm.Limited(ppm.Limits(-5, -3)):
        with pytest.raises(ValueError, match="^a record reaches others"):
            fitted(model, rule)


def test_the_text_of_a_fit_says_what_may_be_published():
    grid = ppm.Candidates(ppm.GammaPoisson(COUNTS), {"mu": np.linspace(90, 110, 20)})
    strict, local = words(fitted(grid, ppm.Capped(0.5))), words(fitted())
    assert re.match(
        "ε of one release: 0.5 .strict, for every database; NO secure", strict
    )
    assert "epsilon may be published" in strict and "20 candidates" in strict
    assert "LOCAL, confidential" in local and "may be published" not in local


# ---- what a stranger tried -----------------------------------------------------------------------


class Wide(ppm.Limits):
    """Says a width, and cuts elsewhere."""

    def __call__(self, values):
        return np.clip(values, 20 * self.low, self.high)


def test_limits_of_another_kind_are_refused_wherever_they_are_given():
    wide = Wide(-3, -1)
    for use in lambda: ppm.Limited(wide), lambda: ppm.Terms(ONES, wide):
        with pytest.raises(ValueError, match="^limits must be a ppm.Limits; got Wide"):
            use()


def test_a_model_reaches_no_other_draw_by_what_it_is_given():
    class Reaching(ppm.GammaPoisson):
        def draw(self, terms, draws, rng):
            return {"mu": np.ones((draws, 3))}

        def log_p(self, theta):
            return super().log_p({"mu": theta["mu"][:, 0]})

        def predict(self, theta, rng):
            assert theta["mu"].base is None
            theta["mu"] -= theta["mu"]
            return np.ones(self.records)

    fit = fitted(Reaching(COUNTS))
    fit.release(3)
    assert (fit.theta["mu"] == 1).all()


def test_a_model_may_use_its_arrays_again():
    class Buffer(ppm.GammaPoisson):
        def draw(self, terms, draws, rng):
            vars(self).setdefault("kept", np.empty(draws))[:] = rng.gamma(
                9.0, size=draws
            )
            return {"mu": self.kept}

        def predict(self, theta, rng):
            self.database = vars(self).get("database", np.empty(self.records))
            self.database[:] = theta["mu"]
            return self.database

    fit = fitted(Buffer(COUNTS))
    assert not np.array_equal(fit.theta["mu"], fit.unweighted.theta["mu"])
    assert len(np.unique(fit.release(5).values)) == 5


class OverUnweighted(Chains):
    """Chains that disagree where all weights are 1, and nowhere else."""

    def draw(self, terms, draws, rng, **settings):
        self.change = apart if (terms.weights == 1).all() else np.copy
        return super().draw(terms, draws, rng, **settings)


def test_faults_go_along_as_far_as_their_numbers_do():
    model = OverUnweighted(COUNTS)
    fit = fitted(model, ppm.Reweighted())
    # what stands between is as withheld as it is by itself
    for held in fit, fit.behind[ppm.ByRisk()], fitted(model):
        assert any(fault.startswith("Unweighted: R-hat") for fault in held.faults)
        with pytest.raises(ppm.ChainsDisagreeError):
            held.epsilon()
    again = fitted(
        model, ppm.Reweighted(), known={ppm.ByRisk(): fit.behind[ppm.ByRisk()]}
    )
    assert not again.chains_agree

    @dataclasses.dataclass(frozen=True)
    class ByTerms(ppm.Rule):
        trial: bool

        def terms(self, model, fit):
            bounds = fit(ppm.Terms(ONES), trial=self.trial).record_bounds
            return ppm.Terms(bounds.min() / bounds)

    # on a trial no number rests, says its rule
    assert fitted(model, ByTerms(trial=False)).faults[0].startswith("terms: R-hat")
    assert fitted(model, ByTerms(trial=True)).chains_agree


def test_a_rule_that_asks_wrongly_is_told_in_one_line():
    @dataclasses.dataclass(frozen=True)
    class Asking(ppm.Rule):
        what: object

        def terms(self, model, fit):
            what = self if self.what == "itself" else self.what
            settings = {"draws": 5} if isinstance(what, ppm.Unweighted) else {}
            return fit(what, **settings).terms

    for what, message in (
        ("itself", "^Asking asks for its own fit"),
        ("a rule", "^fit takes a ppm.Rule or ppm.Terms; got str"),
        (ppm.Unweighted(), "^draws and settings of a sampler are for fits under terms"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            fitted(rule=Asking(what))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (ppm.GammaPoisson([5, 5, 5]), ppm.GammaPoisson([4, 4, 4])),
        (ppm.GammaPoisson(COUNTS), ppm.GammaPoisson(COUNTS, shape=5000, rate=100)),
        (ppm.Normal(COUNTS), ppm.Normal(COUNTS, spread=0.1)),
    ],
)
def test_a_known_fit_of_a_like_model_is_refused(one, other):
    grid = {"mu": np.r_[5.0, np.linspace(3, 9, 9), 5.0]}
    pairs = [(one, other)]
    if isinstance(one, ppm.GammaPoisson):
        pairs += [
            (ppm.Candidates(one, grid), ppm.Candidates(other, grid)),
            (ppm.Candidates(one, grid), ppm.Candidates(one, {"mu": grid["mu"] + 1})),
            (ppm.Candidates(one, grid), ppm.Candidates(one, grid, secure_noise=True)),
        ]
        # of one group alone, or of one parameter alone
        a_and_b = [*("ab" * one.records)][: one.records]
        shifted = {"mu": grid["mu"] + 1}
        pairs += [
            tuple(
                ppm.Candidates(one, {"a": grid, "b": b}, groups=a_and_b)
                for b in (grid, shifted)
            ),
            tuple(
                ppm.Candidates(one, grid | {"k": np.arange(11.0) + k}) for k in (0, 1)
            ),
        ]
    for mine, like in pairs:
        known = {ppm.Unweighted(): fitted(mine, ppm.Unweighted())}
        assert fitted(mine, known=known).epsilon() > 0
        with pytest.raises(
            ValueError, match="^known: the fit of Unweighted is of another"
        ):
            fitted(like, known=known)


def test_a_missing_value_of_any_kind_is_no_release():
    day = np.datetime64("2026-01-01", "D")
    for known, missing in (
        ("a", None),
        (1.0, np.nan),
        (day, np.datetime64("NaT", "D")),
    ):
        # of one record alone
        database = np.array([known] * 60 + [missing])
        fit = fitted(model_with(predict=lambda m, theta, rng, x=database: x))
        with pytest.raises(ValueError, match="returned NaN"):
            fit.release(1)
