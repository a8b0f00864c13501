"""What a public name cannot take, it refuses in one line that names the argument.

No message repeats a record's value, whatever stands in the place of an argument. Every public
function, class and method is found by itself; an argument with a name that nobody else has needs
a right value in `RIGHT`, or the test says so.
"""

import inspect
import re
import traceback
import warnings
from dataclasses import astuple

import dask.array as da
import numpy as np
import pandas as pd
import pymc as pm
import pytensor
import pytest
import xarray as xr
from public_names import book_names, kinds_of, public_names
from survey_files import UNIT, csv_text, unit

import ppm
from ppm_book.chapters import survey

N = 6
COUNTS, VALUES = np.array([3, 5, 4, 6, 2, 20]), np.array([1.5, 2.5, 0.5, 3.5, 2.0, 4.0])
PREDICTORS = np.column_stack([np.ones(N), VALUES])
WEIGHTS, GROUPS = np.linspace(0.5, 1.0, N), np.array(list("aabbab"))
RELEASES = np.tile(VALUES, (3, 1)) + 0.1
LOG_LIK = -np.abs(np.random.default_rng(1).normal(2.0, 0.5, (20, N)))
LIMITS = ppm.Limits(-4.0, -1.0)
MODEL = ppm.GammaPoisson(COUNTS, shape=2.0, rate=0.5)
FIT = ppm.fit(MODEL, ppm.ByRisk(), draws=20, random_seed=1)
HOUSEHOLDS = survey.load().subsample(60, random_seed=1)
with pm.Model() as NORMAL:
    pm.Normal("y", pm.Normal("mu"), 1.0, observed=VALUES)

# an argument has the same name and the same kind of value wherever it is: one that is taken
RIGHT = {
    "log_lik": LOG_LIK,
    "reference": LOG_LIK,
    "weights": WEIGHTS,
    "levels": VALUES,
    "bounds": VALUES,
    "losses": VALUES,
    "values": VALUES,
    "response": VALUES,
    "predictors": PREDICTORS,
    "counts": COUNTS,
    "prior": WEIGHTS / 2,
    "false_alarms": WEIGHTS,
    "income": VALUES,
    "synthetic": RELEASES,
    "limits": LIMITS,
    "low": -4.0,
    "high": -1.0,
    "bound": 1.0,
    "epsilon": 1.0,
    "width": 1.0,
    "radius": 1.0,
    "lowest": 1.0,
    "highest": 9.0,
    "draws": 3,
    "releases": 2,
    "random_seed": 1,
    "model": MODEL,
    "rule": ppm.ByRisk(),
    "candidates": {"mu": VALUES},
    "records": 9,
    "table": HOUSEHOLDS,
    "distributions": {"a": VALUES},
    "components": 2,
    "chains": 1,
    "warmup": 2,
    "resamples": 3,
    "statistic": "mean",
}
# of one function or class
OWN = {
    "PyMCModel": {"model": NORMAL},
    "OneWeight": {"like": None},
    "Limited": {"weight": WEIGHTS},
    "exceedance": {"epsilon": VALUES},
    "pdp.belief_limits": {"epsilon": VALUES},
    "pdp.detection_limit": {"epsilon": VALUES},
    "chains.bound_diagnostics": {"log_lik": LOG_LIK.reshape(2, 10, N)},
    "chains.r_hat": {"values": LOG_LIK.reshape(2, -1)},
    "chains.effective_draws": {"values": LOG_LIK.reshape(2, -1)},
    "FiniteMixture": {"coefficient_scale": np.ones(2), "parallel": False},
    "release.measure.release_errors": {
        "confidential": VALUES,
        "releases": RELEASES,
        "groups": {"a": GROUPS},
        "smallest": 2,
    },
}
# results, errors, protocols, and what is tested in a file of its own
ELSEWHERE = {
    *("Fit", "Model", "Rule", "ChainsDisagreeError", "chains.BoundDiagnostics"),
    *("models.own_terms.check", "survey.load", "survey.ConsumerExpenditure"),
    *("release.guarantee", "release.release_statement", "survey.DataFileError"),
}
# where two arguments exclude each other, or one takes what an array cannot be
NOT_NAMED = {("GammaPoisson.posterior", "weights")}


def functions():
    """Name to function or class; of classes also the methods that need no θ of a fit."""
    for name, value in (public_names() | book_names()).items():
        # plans are in tests/release, audits in tests/book, and figures take no records
        of_plan = name.startswith("release.") and inspect.isclass(value)
        if (
            not callable(value)
            or name in ELSEWHERE
            or of_plan
            or name.startswith(("audits.", "plots."))
        ):
            continue
        yield name, value
    yield "GammaPoisson.posterior", MODEL.posterior
    yield "GammaPoisson.bounds_within", MODEL.bounds_within
    yield "GammaPoisson.oscillations_within", MODEL.oscillations_within
    yield "Fit.release", FIT.release
    yield "Fit.epsilon", FIT.epsilon
    yield "survey.ConsumerExpenditure.subsample", HOUSEHOLDS.subsample


FUNCTIONS = dict(functions())


def arguments(name):
    """A right value for every argument: from the tables, or its default."""
    given = {}
    for argument, parameter in inspect.signature(FUNCTIONS[name]).parameters.items():
        if parameter.kind == parameter.VAR_KEYWORD:
            continue
        known = RIGHT | OWN.get(name, {})
        required = parameter.default is parameter.empty
        assert argument in known or not required, f"{argument} of {name}: none in RIGHT"
        given[argument] = known.get(argument, parameter.default)
    if name == "survey.power_income":
        given["power"] = 0.5
    return given


ARGUMENTS = {name: arguments(name) for name in FUNCTIONS}
PLACES = [
    (name, argument)
    for name in ARGUMENTS
    for argument in ARGUMENTS[name]
    # NumPy's own
    if argument != "axis"
]

# ---- what is put in their place ------------------------------------------------------------------

NUMBER, TEXT = 987654.321, "SECRET-VALUE"
# every way in which Python, NumPy and pandas may write the number
MARKS = ("987654", "987_654", "987,654", "9.87654", "9.8765", "SECRET")


def _put(values, mark, index=0):
    """Copy of numbers with a mark among them."""
    marked = np.array(values, dtype=object if isinstance(mark, str) else np.float64)
    marked.reshape(-1)[index] = mark
    return marked


def _masked(values):
    mask = np.arange(np.shape(values)[-1]) == 1
    marked = _put(values, NUMBER)
    return np.ma.array(marked, mask=np.broadcast_to(mask, marked.shape))


# kinds of what holds no numbers, or hides some
NO_NUMBERS = {
    "text among them": lambda v: _put(v, TEXT),
    "digits": lambda v: _put(v, NUMBER).astype(str),
    "dates": lambda v: np.zeros(np.shape(v), "M8[D]"),
    "complex numbers": lambda v: np.full(np.shape(v), NUMBER + 1j),
    "None": lambda v: [*_put(v, NUMBER).ravel().tolist()[:-1], None],
    "one masked": _masked,
    "ragged": lambda v: [_put(v, NUMBER).tolist(), [NUMBER]],
    "a dictionary": lambda v: {TEXT: NUMBER},
    "a word": lambda v: TEXT,
}
# numbers that are taken in some places and wrong in others
ODD_NUMBERS = {
    "a large fraction": lambda v: _put(v, NUMBER),
    "NaN": lambda v: np.where(
        np.arange(np.size(v)).reshape(np.shape(v)) % 2, NUMBER, np.nan
    ),
    "a negative number": lambda v: _put(v, -NUMBER),
    "a huge whole number": lambda v: [987654 * 10**30, *np.ravel(v).tolist()[1:]],
    "infinity": lambda v: np.where(_put(v, NUMBER) == NUMBER, np.inf, NUMBER),
    "one too few": lambda v: _put(v, NUMBER)[..., :-1],
    "nothing": lambda v: np.zeros((0,) * np.ndim(v)),
}


def outcome(function, given):
    """What Python prints when a call fails or warns, or nothing."""
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            function(**given)
    except Exception as error:
        return "".join(traceback.format_exception(error))
    return "\n".join(str(warning.message) for warning in warned)


def refusal(name, argument, value):
    """The line that refuses a value of an argument, or nothing; no record is in what is printed."""
    text = outcome(FUNCTIONS[name], ARGUMENTS[name] | {argument: value})
    # a word given as a setting is shown
    assert isinstance(value, str) or not any(mark in text for mark in MARKS), text
    return text.strip().rpartition("\n")[2] if "Traceback" in text else ""


def is_clear(line, argument):
    begins = rf"(Value|Type)Error: (\w+ and )?{argument}\b"
    return re.match(rf"{begins}.* (must|needs|has|have|holds|is empty)\b", line)


@pytest.mark.parametrize("place", PLACES, ids=".".join)
def test_an_argument_of_the_wrong_kind_is_refused_by_its_name_and_no_record_is_shown(
    place,
):
    right = ARGUMENTS[place[0]][place[1]]
    several, single = isinstance(right, np.ndarray), isinstance(right, int | float)
    for kind, make in (NO_NUMBERS | ODD_NUMBERS).items():
        if kind == "a dictionary" and not (several or single):
            continue  # it holds settings, which are shown
        line = refusal(*place, make(right if several else VALUES))
        if (several and kind in NO_NUMBERS) or (single and kind != "nothing"):
            assert is_clear(line, place[1]), f"{kind}: {line}"
    for value in (
        (np.nan, "1", 2 if isinstance(right, bool) else True) if single else ()
    ):
        assert is_clear(refusal(*place, value), place[1]), value
    assert refusal(*place, right) == ""


# what is out of an argument's range, wherever it is
BEYOND = {
    **dict.fromkeys("draws releases components chains thin fits".split(), (0, 1.5)),
    **dict.fromkeys(
        "radius scale truncate_at shape rate tolerance".split(), (0.0, np.inf)
    ),
    **dict.fromkeys(
        "coefficient_df residual_df residual_scale".split(), (1e-300, 1e300)
    ),
    **dict.fromkeys("confidence target_accept".split(), (0.0, 1.5)),
    "weights": (WEIGHTS - 0.6, WEIGHTS * np.inf, 0.5),
    "counts": (COUNTS + 0.5, -COUNTS, [3.0, 1e19], []),
    "bounds": (-VALUES, []),
    "losses": (-VALUES, []),
    "bound": (-1.0,),
    "width": (-1.0,),
    "random_seed": (-1, 1.5),
    "share_clipped": (-0.1, 0.6),
    "prior": (0.0, 1.0),
    "false_alarms": (-0.1, 1.1),
    "low": (-1e300,),
    # closer or farther out, terms are mostly rounding
    "high": (-4.0, np.inf, -4.0 + 1e-9, 2e9),
    "delta": (-1.0, 1.0),
    "k": (0.0, 1.1),
    "shift": (np.inf,),
    "reference": (LOG_LIK[:1], np.rint(LOG_LIK)),
    "predictors": (PREDICTORS[1:],),
    "concentration_prior": ((1.0,), (0.0, 1.0), 3.0),
    "spread": (0.0, np.inf),
    "resamples": (1,),
    "statistic": ("mode", None),
    "smallest": (0, 1.5),
}


# an income may be 0, and below
INSIDE = {("survey.income_from_power", "lowest")}


@pytest.mark.parametrize(
    "place",
    [p for p in PLACES if p[1] in BEYOND and p not in INSIDE],
    ids=".".join,
)
def test_what_is_out_of_range_is_refused_by_the_arguments_name(place):
    right = ARGUMENTS[place[0]][place[1]]
    for value in BEYOND[place[1]]:
        line = refusal(*place, value)
        assert is_clear(line, place[1]), f"{value}: {line}"
        # one among right ones; of log-likelihoods one may be whole
        if (
            np.ndim(right)
            and np.shape(value) == np.shape(right)
            and np.isfinite(value).all()
        ):
            if place[1] == "reference":
                continue
            one = np.array(right, dtype=float)
            least = np.argmin(value)
            one.flat[least] = np.ravel(value)[least]
            assert is_clear(line := refusal(*place, one), place[1]), f"{one}: {line}"


GRID = {"mu": VALUES}
GROUPED = ppm.Candidates(MODEL, {"a": GRID, "b": GRID}, groups=["a", "b"] * (N // 2))
MIXTURE = ppm.FiniteMixture(VALUES, PREDICTORS, components=2, parallel=False, chains=2)
TWO = {"pi": np.full((2, 2), 0.5), "beta": np.zeros((2, 2, PREDICTORS.shape[1]))}
TWO |= {"sigma": np.ones((2, 2)), "concentration": np.ones(2)}


def centered(model, center):
    return ppm.Limited(ppm.Limits(-1, 1), center=center).terms(model, None)


def mixed(name, place, value):
    """The mixture's log p, or a fit, with one wrong number in one of two draws."""
    wrong = {key: values.copy() for key, values in TWO.items()}
    wrong[name][place] = value
    if name == "concentration":
        return ppm.fit(MIXTURE, ppm.Unweighted(), draws=2, start=wrong)
    return MIXTURE.log_p(wrong)


# of several numbers, names or parts one alone is wrong
ONE_WRONG = {
    "a mean": (lambda: MODEL.log_p({"mu": [1.0, -1.0]}), "mu of at least 0"),
    "a sigma": (lambda: ppm.Normal(VALUES).log_p(
        {"beta": np.zeros((2, 1)), "sigma": np.array([1.0, -1.0])}), "sigma above 0"),
    "a mixture's sigma": (lambda: mixed("sigma", (1, 0), -1.0), "sigma above 0 .* draw 1"),
    "a mixture's pi": (lambda: mixed("pi", 1, [1.5, -0.5]), "pi of at least 0 .* draw 1"),
    "a start": (lambda: mixed("concentration", 1, 0.0), "start must hold concentration"),
    "a false alarm": (lambda: ppm.pdp.detection_limit([0.1, 1.1], 1.0), "false_alarms"),
    "a belief": (lambda: ppm.pdp.belief_limits([0.5, 1.0], 1.0), "prior must be"),
    "a level": (lambda: ppm.Terms([1.0, 1.0], levels=[0.0, np.nan]), "levels must hold"),
    "a number of a center": (
        lambda: centered(ppm.Candidates(MODEL, GRID), {"mu": [5.0, np.inf]}),
        "center: mu must be finite"),
    "a group's center": (
        lambda: centered(GROUPED, {"a": {"mu": 5.0}, "b": 5.0}), "center .* some of each"),
    "a pair of a center": (
        lambda: centered(GROUPED, (("mu", 5.0), 3.0)), "center must be a dict"),
    "a triple of a center": (
        lambda: centered(GROUPED, (("mu", 5.0), ("a", "b", "c"))), "center must be a dict"),
    "a name of a center": (
        lambda: centered(GROUPED, (("mu", 5.0), (1, 2.0))), "center must be a dict"),
    "a log-likelihood": (
        lambda: ppm.release.place_limits(1.0, _put(LOG_LIK, np.nan, -1)), "reference must"),
    "a masked row": (lambda: ppm.record_bounds(
        [np.ma.array(LOG_LIK[0], mask=np.arange(N) == 1), LOG_LIK[1]]), "log_lik holds masked"),
    "a number of chunks": (
        lambda: ppm.record_bounds(da.from_array(LOG_LIK)[da.from_array(LOG_LIK[:, 0]) < 0]),
        "log_lik must be a dask array .* known sizes"),
    "a scale": (lambda: ppm.FiniteMixture(
        VALUES, PREDICTORS, coefficient_scale=[1.0] * (PREDICTORS.shape[1] - 1) + [0.0]),
        "coefficient_scale must be"),
    "a response": (
        lambda: ppm.FiniteMixture(_put(VALUES, np.inf, 1), PREDICTORS), "response must be fi"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "told"), ONE_WRONG.values(), ids=ONE_WRONG)
def test_one_that_is_wrong_among_right_ones_is_refused(call, told):
    with pytest.raises(ValueError, match=told):
        call()


# ---- the same numbers in another storage ---------------------------------------------------------


def _pandas(values, numbered=False):
    index = np.random.default_rng(values.size).permutation(len(values))
    made = (pd.Series if values.ndim == 1 else pd.DataFrame)(values, index=index)
    return made.reset_index(drop=True) if numbered else made


def _labelled(values):
    """xarray's, whose first labels are in another order than its numbers."""
    made = xr.DataArray(values, dims=("draw", "record")[: values.ndim])
    return made.assign_coords(draw=np.arange(len(values))[::-1])


SAME = {
    "read-only": lambda values: np.broadcast_to(values, values.shape),
    "backwards in memory": lambda values: np.ascontiguousarray(values[::-1])[::-1],
    "column by column": lambda values: np.array(values, order="F"),
    "the other byte order": lambda values: values.astype(values.dtype.newbyteorder()),
    "a list": lambda values: values.tolist(),
    "pandas, another index": _pandas,
    "xarray, another index": _labelled,
    "a mask that hides nothing": lambda values: np.ma.array(values, mask=False),
    "objects": lambda values: values.astype(object),
    "pandas, nullable": lambda values: _pandas(values, True).astype("Float64"),
}
# made without the records' table, so that their order alone says whose they are
WEIGHTS_BY_PLACE = ("weights", "weight")


def shown(result):
    """What a call gave, to the bit: of models and terms what they say of themselves."""
    if isinstance(result, ppm.Model):
        seeds = {"draws": 3, "random_seed": 1}
        terms = ppm.Terms(np.full(result.records, 0.5))
        fit = ppm.fit(result, terms, allow_disagreement=True, **seeds)
        return [values.tobytes() for values in fit.theta.values()]
    if isinstance(result, ppm.Terms):
        return result(LOG_LIK).tobytes()
    if hasattr(result, "rvs"):
        return result.mean()
    if isinstance(result, ppm.chains.BoundDiagnostics):
        return shown(astuple(result))
    if isinstance(result, tuple):
        return [shown(part) for part in result]
    if isinstance(result, xr.Dataset):
        result = result.to_array()
    if isinstance(result, pd.DataFrame):
        return result.to_numpy().tobytes()
    if isinstance(result, ppm.Rule | ppm.Limits | ppm.chains.BoundDiagnostics):
        return result
    return np.asarray(result).tobytes()


ARRAYS = [
    (name, argument)
    for name, argument in PLACES
    if isinstance(ARGUMENTS[name][argument], np.ndarray)
    and ARGUMENTS[name][argument].ndim < 3
    and name != "PyMCModel"
]


@pytest.mark.parametrize("place", ARRAYS, ids=".".join)
def test_another_storage_of_the_same_numbers_changes_nothing_and_is_not_written_to(
    place,
):
    name, argument = place
    function, given = FUNCTIONS[name], ARGUMENTS[name]
    values = given[argument].copy()
    right = shown(function(**given))
    for kind, store in SAME.items():
        stored = store(values)
        if argument in WEIGHTS_BY_PLACE and kind.endswith("another index"):
            line = refusal(name, argument, stored)
            assert is_clear(line, argument) and "in the order of the records" in line
            continue
        assert shown(function(**given | {argument: stored})) == right, kind
        assert np.array_equal(np.asarray(stored), values), kind


# two arguments of the same records, of these functions
PAIRS = [
    ("Normal", "values", "predictors"),
    ("FiniteMixture", "response", "predictors"),
    ("FiniteMixture", "response", "values"),
    ("FiniteMixture", "response", "known"),
    ("risk.identification_risks", "values", "groups"),
    ("risk.match_risk", "values", "groups"),
    ("release.measure.release_errors", "confidential", "groups"),
]


@pytest.mark.parametrize(("name", "first", "second"), PAIRS)
def test_two_tables_of_the_same_records_need_one_index(name, first, second):
    given = dict(ARGUMENTS[name])
    if given[second] is None:
        given[second] = VALUES
    given[first], given[second] = (
        pd.Series(given[first]),
        pd.DataFrame(given[second]) if second != "values" else pd.Series(given[second]),
    )
    right = shown(FUNCTIONS[name](**given))
    for index in ([1, 0, 2, 3, 4, 5], list("abcdef")):
        wrong = given | {second: given[second].set_axis(index)}
        line = outcome(FUNCTIONS[name], wrong).strip().rpartition("\n")[2]
        assert is_clear(line, second) and f"the index of {first}" in line
        both = wrong | {first: given[first].set_axis(index)}
        assert shown(FUNCTIONS[name](**both)) == right


class Telling:
    """A number of another package, whose errors hold its value."""

    def __float__(self):
        raise RuntimeError(TEXT)


def test_whatever_a_number_raises_is_not_repeated_and_the_columns_name_is_told():
    table = pd.DataFrame({"age": VALUES, 2023: VALUES}).astype(object)
    for odd, kind in ((Telling(), "Telling"), (pd.NA, "NAType"), (TEXT, "text")):
        table.iloc[3, 1] = odd
        with pytest.raises(ValueError) as told:
            ppm.checks.as_numbers("values", table)
        text = "".join(traceback.format_exception(told.value))
        assert text.endswith(f"got DataFrame with {kind} at row 3, column 2023\n")
        assert TEXT not in text


def test_what_a_model_of_ones_own_returns_is_not_repeated():
    class Mine(ppm.GammaPoisson):
        def log_p(self, theta):
            return np.full((len(theta["mu"]), self.records), TEXT, dtype=object)

    mine = Mine(COUNTS)
    line = "ValueError: log_p of Mine must be an array of numbers; got ndarray of type object"
    said = outcome(ppm.fit, {"model": mine, "rule": ppm.Unweighted(), "draws": 3})
    assert line in said and TEXT not in said
    assert TEXT not in outcome(
        ppm.Candidates, {"model": mine, "candidates": {"mu": VALUES}}
    )


# ---- seeds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", [n for n in ARGUMENTS if "random_seed" in ARGUMENTS[n]]
)
def test_the_kinds_of_seed_agree(name):
    """Of models and rules they are in laws."""

    def drawn(seed):
        result = FUNCTIONS[name](**ARGUMENTS[name] | {"random_seed": seed})
        if isinstance(result, ppm.Fit):
            return [values.tobytes() for values in result.theta.values()]
        return result.table.to_csv() if hasattr(result, "table") else shown(result)

    right, sequence = drawn(11), np.random.SeedSequence(11)
    assert drawn(sequence) == right and drawn(sequence) == right
    source = np.random.SeedSequence(11)
    rng = np.random.default_rng(source)
    first, second = drawn(rng), drawn(rng)
    # a Generator moves on; started again, it gives the same once more
    assert first != second and first == drawn(np.random.default_rng(11))
    assert sequence.n_children_spawned == source.n_children_spawned == 0
    assert drawn(None) != drawn(None)


# ---- files and models --------------------------------------------------------------------------


@pytest.mark.parametrize("text", [TEXT, "987654321987", "-987654.5", "9.87654e300"])
@pytest.mark.parametrize("column", sorted(UNIT))
def test_no_message_repeats_a_cell_of_the_survey_file(tmp_path, column, text):
    rows = [unit(1), unit(2, FINCBTXM="5"), {**unit(3), column: text}, unit(4)]
    path = tmp_path / "fmli171x.csv"
    path.write_text(csv_text(*rows))
    said = outcome(survey.load, {"path": path})
    assert not any(mark in said for mark in MARKS), said
    if text == TEXT and column not in ("PSU", "OTHER", "LAST"):
        # the row and the column are all that it takes to find it
        assert "fmli171x.csv, row 4: column " + column in said


# ---- mechanisms of a plan ------------------------------------------------------------------------

TABLE = pd.DataFrame({"group": GROUPS, "count": COUNTS, "owner": list("ynynyn")})


def counted(records):
    return ppm.GammaPoisson(records["count"], shape=2.0, rate=0.5)


def means(published):
    return {"mu": published["count"].mean() * np.linspace(0.5, 2.0, 9)}


# each with what it releases
MECHANISMS = {
    "Bins": (ppm.release.Bins(2), ["count"]),
    "Margins": (ppm.release.Margins(["count", "owner"], bins=2), ["count", "owner"]),
    "Means": (ppm.release.Means(), ["count"]),
    "Posterior": (ppm.release.Posterior(counted, means), ["count"]),
    "Published": (ppm.release.Published(), ["count", "owner"]),
}
CELLS = {
    "text": TEXT,
    "digits": str(NUMBER),
    "a large fraction": NUMBER,
    "a huge number": 987654 * 10**30,
    "complex": complex(NUMBER, 1),
    "a list": [NUMBER],
    "what tells its value": Telling(),
    "None": None,
    "pandas' NA": pd.NA,
    "infinity": np.inf,
    "a date": pd.Timestamp(987654),
}


@pytest.mark.parametrize("name", kinds_of(ppm.release.Mechanism))
def test_a_release_by_every_mechanism_repeats_no_record_by_name(name, tmp_path):
    there = name in MECHANISMS
    assert there, f"{name} needs a line in MECHANISMS"
    mechanism, confidential = MECHANISMS[name]
    settings = {
        "confidential": confidential,
        "groups": "group",
        "limits": {"count": (0, 30)},
        "mechanism": mechanism,
        "epsilon": 0 if name == "Published" else 0.5,
    }
    plan = ppm.release.ReleasePlan(TABLE, **settings)
    plan.save(tmp_path / "plan.json")
    for kind, cell in CELLS.items():
        for column in confidential:
            table = TABLE.assign(count=COUNTS[::-1] + 1, owner=list("nnyyny"))
            table[column] = table[column].astype(object)
            table.at[2, column] = cell
            given = {
                "confidential": ppm.release.Confidential(table),
                "account": tmp_path / f"{kind}, {column}.jsonl",
                "secure_noise": False,
                "random_seed": 1,
                "again": True,
            }
            said = outcome(plan.release, given)
            assert not any(mark in said for mark in MARKS), said
            # a number beyond the limits counts as the limit
            refused = kind not in ("a large fraction", "a huge number")
            assert ("ValueError: confidential" in said) == (
                refused or column == "owner"
            )


# name -> what is observed and its prior, in a model
MODELS = {
    "impossible": lambda y: pm.Uniform(
        "y", 0.0, pm.Uniform("top", 1.0, 2.0), observed=y
    ),
    "a scale below 0": lambda y: pm.Normal(
        "y", 0.0, pm.Uniform("top", 1.0, 2.0) - y, observed=y
    ),
}


@pytest.mark.parametrize("write", MODELS)
@pytest.mark.filterwarnings("ignore")
def test_no_message_on_a_model_repeats_a_records_value(write):
    with pm.Model() as model:
        MODELS[write](_put(VALUES, NUMBER))

    def fit():
        mine = ppm.PyMCModel(model, chains=1, warmup=2)
        ppm.fit(mine, ppm.Unweighted(), draws=2, random_seed=1)

    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        said = outcome(fit, {})
    assert "Traceback" in said
    # PyMC's own message holds log-densities, which one record may determine
    assert "Logp initial evaluation" not in said
    assert not any(mark in said for mark in MARKS), said
