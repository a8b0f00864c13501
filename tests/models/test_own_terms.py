"""A record acts through its own term only: the model is built again of other public records."""

from functools import partial

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.logprob.utils import CheckParameterValue
from scipy.special import ndtri
from test_pymc import drawn, model_of, quick  # noqa: F401

import ppm
from ppm.models import own_terms

MADE_UP = np.array([0.3, -0.5, 1.1, 0.1])
GROUP = np.array([0, 0, 1, 1])
LIMITS = ppm.Limits(-3.0, -1.0)

# ---- a model in NumPy, and what another record's value may reach in it ---------------------------


class Normal(ppm.Model):
    """Normal records, whose mean has a normal prior: numbers that a caller may compute from them."""

    def __init__(self, y, *, prior=0.0, shift=0.0, drawn=0.0):
        self.y, self.records, self.prior = np.asarray(y), len(y), prior
        self.shift, self.drawn = np.asarray(shift), drawn

    def draw(self, terms, draws, rng):
        mean = (self.prior + terms.weights @ self.y) / (1 + terms.weights.sum())
        return {"mean": rng.normal(mean, size=draws)}

    def log_p(self, theta):
        return -((self.y - self.shift - theta["mean"][:, None]) ** 2) / 2

    def predict(self, theta, rng):
        return rng.normal(theta["mean"] + self.drawn, size=self.records)


REACHED = {
    "prior": lambda y: Normal(y, prior=y.mean()),
    "terms": lambda y: Normal(y, shift=y.mean()),
    "release": lambda y: Normal(y, drawn=y),
}
WORDS = {"prior": "the prior of mean", "terms": "the terms of others"}


@pytest.mark.parametrize("part", REACHED)
def test_what_a_record_reaches_is_named(part, monkeypatch):
    own_terms.check(Normal, MADE_UP)
    words = WORDS.get(part, "the release")
    with pytest.raises(ValueError, match=f"^build: a record's value reaches {words}: "):
        own_terms.check(REACHED[part], MADE_UP)
    # no other comparison would see it
    blind = property(lambda self: np.zeros((1, 4)) if part == "terms" else {})
    monkeypatch.setattr(own_terms._Seen, part, blind)
    if part == "terms":
        # nor would one that never sees a term move accept a model
        with pytest.raises(ValueError, match="^build: no record's value reaches its"):
            own_terms.check(Normal, MADE_UP)
    else:
        own_terms.check(REACHED[part], MADE_UP)


@pytest.mark.parametrize(
    ("of", "build"),
    [
        # one record reaches one other, whichever they are
        *[
            (
                np.arange(6.0) ** 2,
                partial(lambda a, b, y: Normal(y, shift=y[a] * b), a, b),
            )
            for a, b in [(0, np.eye(6)[5]), (5, np.eye(6)[0]), (2, np.eye(6)[3])]
        ],
        # a label that occurs, however many records have it
        (np.arange(12) % 2, lambda y: Normal(y, prior=len(np.unique(y)))),
        # whether a label occurs, where the record itself has it
        (
            np.array([0, 1, 2, 1, 0, 2]),
            lambda y: Normal(y, shift=np.isin(np.arange(6), y)),
        ),
        # the largest of all
        (MADE_UP, lambda y: Normal(y, shift=np.where(y < y.max(), 0.0, 1.0))),
        (MADE_UP, lambda y: Normal(y, prior=np.max(y))),
        # what looks at missing entries may look at others too
        (
            pd.DataFrame({"y": [1.0, 2.0, 3.0, 4.0], "x": [1, None, 3, None]}),
            lambda t: Normal(t["y"], shift=t["x"].fillna(t["x"].mean())),
        ),
    ],
)
def test_a_single_record_among_others_is_seen(of, build):
    confidential = ["y", "x"] if isinstance(of, pd.DataFrame) else None
    with pytest.raises(ValueError, match="^build: a record's value reaches"):
        own_terms.check(build, of, confidential=confidential)


def public_and_own(table):
    """Public columns may be summed up, and a record may use its own values twice."""
    y, is_b = table["y"].fillna(0.0), table["label"] == "b"
    return Normal(y, prior=table["age"].mean(), shift=is_b * y / 2)


FRAME = pd.DataFrame(
    {
        "age": [30, 40, 50, 60, 70],
        "label": pd.Categorical(list("abbab"), ["a", "b", "c"]),
        "y": [1.0, np.nan, -1.0, 0.5, 2.0],
    },
    index=list("vwxyz"),
)


def test_public_columns_and_missing_entries_stay():
    with pytest.raises(ValueError, match="the prior of mean"):
        own_terms.check(public_and_own, FRAME, confidential=["age", "y"])
    given = []

    def build(table):
        given.append(table)
        return public_and_own(table)

    before = FRAME.copy()
    own_terms.check(build, FRAME, confidential=["label", "y"])
    pd.testing.assert_frame_equal(FRAME, before)
    for table in given:
        assert (table.dtypes == FRAME.dtypes).all() and table.index.equals(FRAME.index)
        assert table["age"].equals(FRAME["age"])
        assert (table["y"].isna() == FRAME["y"].isna()).all()
    # a row keeps its values together
    rows = {*FRAME[["label", "y"]].dropna().itertuples(index=False, name=None)}
    changed = pd.concat(given).drop("w")[["label", "y"]]
    found = {*changed.dropna().itertuples(index=False, name=None)}
    assert found - rows <= {("b", y) for y in FRAME["y"]}
    masked = np.ma.masked_array(MADE_UP, [False, False, True, False])
    for records, _ in own_terms._Table.of(masked, None).changes(
        np.random.default_rng()
    ):
        assert np.array_equal(records.mask, masked.mask) and records.data[2] == 1.1


@pytest.mark.parametrize("records", [2, 3, 5, 8, 21])
def test_of_any_two_records_each_is_changed_while_the_other_stays(records):
    table = own_terms._Table.of(np.arange(records), None)
    pairs, alike = np.zeros((records, records), bool), 0
    for changed, codes in table.changes(np.random.default_rng(1)):
        assert np.array_equal(changed, codes[:, 0])
        stayed = changed == np.arange(records)
        pairs |= np.outer(~stayed, stayed)
        alike += len(np.unique(changed)) == 1
    assert np.array_equal(pairs, ~np.eye(records, dtype=bool)) and alike >= 2


rng = np.random.default_rng(3)
WRONG = [
    (Normal, np.ones(4), None, "^example must have records with different values"),
    (Normal, 3.0, None, "^example must have one row per record"),
    (Normal, MADE_UP, ["y"], "^confidential must be left out where the example"),
    (
        public_and_own,
        FRAME,
        None,
        "^confidential must be a list of the .*'age', 'label'",
    ),
    (public_and_own, FRAME, "y", "^confidential must be a list"),
    (public_and_own, FRAME, ["income"], "^confidential must be a list"),
    (
        lambda y: Normal(MADE_UP),
        MADE_UP,
        None,
        "^build: no record's value reaches its own",
    ),
    (
        lambda y: Normal(y, shift=rng.normal()),
        MADE_UP,
        None,
        "^build must make the same model each time, .* by the terms of others",
    ),
]


@pytest.mark.parametrize(("build", "example", "confidential", "message"), WRONG)
def test_wrong_calls_are_refused(build, example, confidential, message):
    with pytest.raises(ValueError, match=message) as error:
        own_terms.check(build, example, confidential=confidential)
    assert "\n" not in str(error.value)


def test_a_build_that_fails_for_other_records_is_refused():
    def build(y):
        if y[0] != 0.3:
            raise KeyError(y[0])
        return Normal(y)

    with pytest.raises(ValueError, match=r"^build must make a model of any .*KeyError"):
        own_terms.check(build, MADE_UP)


# ---- models of the library -----------------------------------------------------------------------

COUNTS = np.array([3, 5, 4, 20])
GRID = {"mu": np.linspace(1.0, 9.0, 5)}


def test_other_models_are_tried_too():
    def grid(y):
        return ppm.Candidates(ppm.GammaPoisson(y), GRID)

    own_terms.check(ppm.GammaPoisson, COUNTS)
    own_terms.check(grid, COUNTS)
    with pytest.raises(ValueError, match="reaches the prior of mu: "):
        own_terms.check(lambda y: ppm.GammaPoisson(y, rate=1.0 / y.mean()), COUNTS)
    # one candidate among many that comes from the records
    many = np.linspace(1.0, 9.0, 1000)
    for build in (
        lambda y: ppm.Candidates(ppm.GammaPoisson(y), {"mu": np.r_[many, y.mean()]}),
        lambda y: ppm.Candidates(
            ppm.GammaPoisson(y), {"mu": np.r_[many[:500], y.mean(), many[500:]]}
        ),
    ):
        with pytest.raises(ValueError, match="the prior of mu, candidates of None: "):
            own_terms.check(build, COUNTS)
    labels = {0: GRID, 1: GRID}
    with pytest.raises(ValueError, match="reaches the prior of group"):
        own_terms.check(
            lambda y: ppm.Candidates(
                ppm.GammaPoisson(y), labels, groups=(y > 4).astype(int)
            ),
            COUNTS,
        )


def test_build_must_return_a_model():
    with pytest.raises(
        TypeError, match="^build must return a ppm.Model, .*; got Model$"
    ):
        own_terms.check(lambda y: model_of(lambda: normal(0.0, y)), MADE_UP)


def normal(mu, observed, sigma=1.0):
    pm.Normal("y", mu, sigma, observed=observed)


def groups(y):
    return pd.Series(y).groupby(GROUP).transform("mean").to_numpy()


def masked(y, observed=lambda y: y):
    return np.ma.masked_array(observed(y), GROUP & [0, 1, 0, 1])


TERMS, PRIOR, RELEASE = "the terms of others", "the prior of", "the release"
# all that a finished model would not show
HIDDEN = {
    "group means": (lambda y: normal(pm.Normal("b") * groups(y), y), TERMS),
    "centred": (lambda y: normal(pm.Normal("b"), y - y.mean()), TERMS),
    "ranks": (lambda y: normal(pm.Normal("b"), ndtri(pd.Series(y).rank() / 5)), TERMS),
    "record before": (lambda y: normal(pm.Normal("b") * np.r_[0.0, y[:-1]], y), TERMS),
    "backwards": (lambda y: normal(pm.Normal("b") * y[::-1].copy(), y), TERMS),
    "clipped": (lambda y: normal(pm.Normal("b"), y.clip(max=np.median(y))), TERMS),
    "masked": (
        lambda y: normal(pm.Normal("b"), masked(y, lambda y: y - y.mean())),
        TERMS,
    ),
    "prior's scale": (lambda y: normal(pm.Normal("b", 0, y.std()), y), PRIOR),
    "levels": (lambda y: normal(pm.Normal("b", shape=len(np.unique(y)))[0], y), PRIOR),
    "potential": (
        lambda y: (
            normal(pm.Normal("b"), y),
            pm.Potential("p", y.sum() * pm.modelcontext(None)["b"]),
        ),
        "the prior of p",
    ),
    "own value": (lambda y: normal(pm.Normal("b") * np.exp(y), y), RELEASE),
    "random": (
        lambda y: pm.CustomDist(
            "y",
            pm.Normal("b"),
            logp=lambda value, mean: -((value - mean) ** 2),
            random=lambda mean, rng=None, size=None: y,
            observed=y,
        ),
        RELEASE,
    ),
}


def built(write, y):
    return ppm.PyMCModel(model_of(write, y))


@pytest.mark.parametrize("name", HIDDEN)
def test_what_a_finished_model_hides_is_seen_when_it_is_built_again(name):
    write, words = HIDDEN[name]
    with pytest.raises(ValueError, match=f"^build: a record's value reaches {words}"):
        own_terms.check(partial(built, write), MADE_UP)


# ---- what the graph of a finished model would show, is seen as well ------------------------------


def of_data(mean, observed=lambda data: data):
    """A response with its data in it."""

    def write(y):
        data = pm.Data("data", y)
        normal(mean(data), observed(data))

    return write


def prior_of(mean):
    return of_data(lambda data: pm.Normal("mu", mean(data), 0.5))


def seen_as(observed):
    return of_data(lambda data: pm.Normal("mu"), observed)


def next_to(mean):
    """A second, public response whose mean the function writes from the first one."""

    def write(y):
        first = pm.Normal("y", pm.Normal("mu"), observed=y)
        pm.Normal("z", mean(first), observed=GROUP / 2)

    return write


def all_values(value, mean):
    return -((value - value.mean() - mean) ** 2)


def checked(value, top):
    return CheckParameterValue("top < 9", can_be_replaced_by_ninf=True)(
        -(value**2), pt.all(top < 1.0)
    )


def imputed(y):
    """A predictor of which one entry is missing: what was observed stands in other rows."""
    normal(pm.Normal("mu"), np.ma.masked_array(y, [False, False, True, False]))
    observed = pm.modelcontext(None)["y_observed"]
    whole = pt.set_subtensor(pt.zeros(4)[np.array([1, 0, 3])], observed)
    pm.Normal("z", pm.Normal("b") * whole, observed=GROUP / 2)


def latent(y):
    normal(pm.Normal("u", pm.Data("data", y)), y)


def common_check(y):
    first = pm.Normal("y", pm.Normal("mu"), observed=y)
    pm.CustomDist("z", first.max(), logp=checked, random=drawn, observed=GROUP / 2)


def own_density(y):
    pm.CustomDist("y", pm.Normal("mu"), logp=all_values, random=drawn, observed=y)


def drawn_with(y):
    seen_as(lambda data: data)(y)
    mean = pm.Normal("b") * pm.modelcontext(None)["data"]
    pm.Normal("z", mean, observed=GROUP / 2)


# `a model's own table` by a label that is confidential is public; its number of levels is not
SHOWN = {
    "response in a prior": (
        next_to(lambda y: pm.Normal("u", y.mean(), 0.5)),
        PRIOR,
    ),
    "mean": (prior_of(lambda d: d.mean()), PRIOR),
    "selection": (prior_of(lambda d: 5.0 * d[d > 0.2].shape[0]), PRIOR),
    "latent": (latent, PRIOR),
    "standardised": (seen_as(lambda d: (d - d.mean()) / d.std()), TERMS),
    "largest": (seen_as(lambda d: d - d.max()), TERMS),
    "other mean": (next_to(lambda y: pm.Normal("u") + y.mean()), TERMS),
    "record before": (next_to(lambda y: pt.concatenate([y[:1], y[:-1]])), TERMS),
    "reversed": (next_to(lambda y: y[::-1]), TERMS),
    "sorted": (next_to(lambda y: pt.sort(y)), TERMS),
    "imputed, in other rows": (imputed, TERMS),
    "common check": (common_check, TERMS),
    "own density": (own_density, TERMS),
    "predictor": (lambda y: normal(pm.Normal("b") * y, y), RELEASE),
    "selected": (of_data(lambda d: pm.Normal("b") * d[d > 0.2].shape[0]), TERMS),
    "drawn": (drawn_with, RELEASE),
}


@pytest.mark.parametrize("name", SHOWN)
def test_a_model_in_which_a_record_does_more_than_its_term_is_refused(name):
    write, words = SHOWN[name]
    with pytest.raises(
        ValueError, match=f"^build: a record's value reaches {words}"
    ) as e:
        own_terms.check(partial(built, write), MADE_UP)
    assert "\n" not in str(e.value)


# of PyMC's own code
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_simulator_has_no_density_to_compare():
    def draw(rng, mean, size):
        return rng.normal(mean, size=size)

    def write(y):
        pm.Simulator("y", draw, pm.Normal("mean"), observed=y)

    with pytest.raises(ValueError, match="^build must make the same model each time"):
        own_terms.check(partial(built, write), MADE_UP)


def several(y):
    first = pm.Normal("y", pm.Normal("b", shape=2)[GROUP], observed=y)
    pm.Poisson("n", pt.exp(0.3 * first), observed=COUNTS)


def sorted_within(y):
    both = pm.Normal("both", pm.Normal("b"), observed=np.column_stack([y, GROUP]))
    pm.Normal("least", pt.sort(both, axis=1)[:, 0], observed=COUNTS / 5)


def walks(y):
    start, both = pm.Normal.dist(), np.column_stack([y, y + GROUP])
    pm.GaussianRandomWalk("y", sigma=pm.HalfNormal("s"), init_dist=start, observed=both)


def by_label(y):
    """A confidential label looks up its own parameter; that there are two is public."""
    label = pm.Bernoulli("label", 0.5, observed=(y > 0.2).astype(int))
    normal(pm.Normal("mu", shape=2)[label], COUNTS / 5)


@pytest.mark.parametrize(
    "write",
    [
        several,
        sorted_within,
        walks,
        by_label,
        lambda y: normal(pm.Normal("b"), masked(y)),
        seen_as(lambda d: pt.exp(d) / 2.0),
        # a predictor that equals the response by chance
        lambda y: normal(pm.Normal("b") * MADE_UP, y),
        lambda y: normal(pm.Flat("b"), y),
    ],
)
def test_what_keeps_to_its_own_term_is_accepted(write):
    own_terms.check(partial(built, write), MADE_UP)


def test_a_strict_release_of_a_model_that_is_built_from_the_records(monkeypatch):
    given = []

    def build(table):
        given.append(table)
        with pm.Model() as model:
            normal(pm.Normal("mean") + np.exp(table["x"].to_numpy() / 9), table["y"])
        return model

    example = pd.DataFrame({"x": [1.0, 2.0], "y": [0.0, 9.0]})
    records = pd.DataFrame({"x": np.arange(5.0), "y": np.linspace(-1.0, 1.0, 5)})
    settings = {"example": example, "confidential": ["y"], "warmup": 7}
    model = ppm.PyMCModel.from_records(build, records, **settings)
    assert (model.records, model.warmup, len(given)) == (5, 7, 1)
    candidates = ppm.Candidates(model, {"mean": np.linspace(-2, 2, 9)})
    times = []
    for rule in ppm.Limited(LIMITS), ppm.Capped(2.0):
        fit = ppm.fit(candidates, rule, draws=3, random_seed=1)
        assert fit.strict and fit.epsilon() == 2.0
        times.append(len(given))
    # the confidential records are built once, and the example is tried once
    assert times[0] == times[1] > 4 and all(len(table) == 2 for table in given[1:])
    wrong = ppm.PyMCModel.from_records(
        lambda table: build(table.assign(x=table["y"].mean())), records, **settings
    )
    candidates = ppm.Candidates(wrong, {"mean": np.linspace(-2, 2, 9)})
    monkeypatch.setattr(ppm.Candidates, "draw", None)
    for _ in range(2):
        with pytest.raises(ValueError, match="reaches the terms of others"):
            ppm.fit(candidates, ppm.Limited(LIMITS), draws=3)


def test_what_is_computed_outside_of_build_cannot_be_seen():
    confidential = np.linspace(5.0, 6.0, 4)
    level = confidential.mean()
    own_terms.check(lambda y: Normal(y, shift=level), MADE_UP)
    # but not records in place of those that are given
    with pytest.raises(ValueError, match="^build: no record's value reaches its own"):
        own_terms.check(lambda y: Normal(confidential), MADE_UP)


ENTRIES = np.array([[1.0, np.nan], [2.0, 1.0], [np.nan, 2.0], [3.0, 2.5], [np.nan] * 2])


@pytest.mark.parametrize("masked", [False, True])
def test_missing_entries_stay_where_they_are_and_nobody_is_given_one(masked):
    names, tables = ["x", "y"], []
    example = pd.DataFrame(ENTRIES, columns=names)
    if masked:
        # behind a mask stands what nobody may be given
        example = np.ma.masked_array(
            np.nan_to_num(ENTRIES, nan=-99.0), np.isnan(ENTRIES)
        )

    def build(records):
        tables.append(records)
        rows = np.ma.filled(records, 0.0) if masked else records.fillna(0.0).to_numpy()
        return Normal(rows.sum(axis=1))

    own_terms.check(build, example, confidential=None if masked else names)
    for table in tables:
        missing = np.ma.getmaskarray(table) if masked else table.isna().to_numpy()
        assert np.array_equal(missing, np.isnan(ENTRIES))
        assert not masked or table.compressed().min() > 0
    # and others are given
    values = [np.ma.filled(np.ma.masked_invalid(table), 0) for table in tables]
    assert np.ptp(values, axis=0).any()
