"""What a public function cannot take, it refuses in one line that names the argument.

No message repeats a record's value, whatever stands in the place of an argument.
"""

import inspect
import re
import traceback
import warnings

import numpy as np
import pandas as pd
import pymc as pm
import pytensor
import pytest
import xarray as xr
from layouts import reciprocal
from public_names import book_names, public_names
from survey_files import UNIT, csv_text, unit

import ppm
from ppm_book.chapters import survey

N = 6
COUNTS, VALUES = np.array([3, 5, 4, 6, 2, 20]), np.array([1.5, 2.5, 0.5, 3.5, 2.0, 4.0])
PREDICTORS = np.column_stack([np.ones(N), VALUES])
WEIGHTS, GROUPS = np.linspace(0.5, 1.0, N), np.array(list("aabbab"))
RELEASES = np.tile(VALUES, (3, 1)) + 0.1
LOG_LIK = -np.abs(np.random.default_rng(1).normal(2.0, 0.5, (20, N)))
CHAINS = xr.DataArray(LOG_LIK.reshape(2, 10, N), dims=("chain", "draw", "record"))
LIMITS = ppm.Censoring(-4.0, -1.0)
MODEL = ppm.GammaPoisson(COUNTS, shape=2.0, rate=0.5)
FIT = MODEL.fit(draws=8, random_seed=1)
MECHANISM = ppm.PseudoPosteriorMechanism(
    MODEL, weights=WEIGHTS, independent_weights=True
)
RESULT = MECHANISM.run(draws=20, random_seed=1)
UNWEIGHTED = ppm.fit(MODEL, draws=20, random_seed=1)
MIXTURE = ppm.FiniteMixture(
    VALUES, PREDICTORS, components=2, chains=1, warmup=2, parallel=False
)
MIXTURE_FIT = MIXTURE.fit(draws=2, random_seed=1)
CANDIDATES = ppm.CandidateSynthesizer(MODEL, {"mu": np.linspace(3.0, 9.0, 5_000)})
with pm.Model() as NORMAL:
    pm.Normal("y", pm.Normal("mu"), 1.0, observed=VALUES)
HOUSEHOLDS = survey.load().subsample(60, random_seed=1)
HOUSEHOLD_TABLE = HOUSEHOLDS.table

# ---- every argument of every public function -----------------------------------------------------


def draw(seed):
    return np.random.default_rng(seed).normal()


# an argument has the same name and the same kind of value wherever it is: one that is taken, where
# it has a default that says less, or takes no 1
RIGHT = {
    "log_lik": LOG_LIK,
    "weighted_log_p": LOG_LIK,
    "reference": LOG_LIK,
    "weights": WEIGHTS,
    "terms": WEIGHTS,
    "levels": VALUES,
    "bounds": VALUES,
    "losses": VALUES,
    "values": VALUES,
    "confidential": VALUES,
    "response": VALUES,
    "predictors": PREDICTORS,
    "counts": COUNTS,
    "prior": WEIGHTS / 2,
    "false_alarms": WEIGHTS,
    "synthetic": VALUES + 0.1,
    "known": PREDICTORS,
    "with_record": LOG_LIK.ravel(),
    "without_record": LOG_LIK.ravel() + 1.0,
    "limits": VALUES[:2],
    "low": -4.0,
    "high": -1.0,
    "truncate_at": 2.0,
    "tail_probability": 0.5,
    "lowest": 1.0,
    "highest": 9.0,
    "shape": 2.0,
    "rate": 0.5,
    "unit": 1.0,
    "n": 20,
    "draws": 3,
    "releases": 2,
    "weight_draws": 2,
    "resamples": 3,
    "bins": 4,
    "runs": 20,
    "rank_powers": 2,
    "smallest": 2,
    "components": 2,
    "chains": 1,
    "warmup": 2,
    "random_seed": 1,
    "mapping": reciprocal,
    "weighting": WEIGHTS.tolist(),
    "run_with": draw,
    "run_without": draw,
    "statistic": "mean",
    "public": (2.0, 9.0),
    "records": [0],
    "synthesizer": MODEL,
    "fit": FIT,
    "posterior": FIT["posterior"].dataset,
    "result": RESULT,
    "unweighted": UNWEIGHTED,
    "weighted": RESULT,
    "table": HOUSEHOLDS,
    "release": RESULT.synthesize(1, random_seed=1),
    "model": NORMAL,
    "distributions": {"a": VALUES},
    "candidates": {"mu": VALUES},
    "income": VALUES,
}
OWN = {
    "Terms": {"limits": LIMITS, "source": "caller"},
    "raking.raked_release": {
        "table": HOUSEHOLD_TABLE,
        "published": HOUSEHOLD_TABLE[:40],
        "confidential": ["income"],
        "margins": ["income", ("region", "income")],
        "edges": {"income": [0.0, 2e4, 9e4, 3e5]},
    },
    "histogram_release": {"edges": np.array([0.0, 2.0, 9.0]), "published": None},
    "histogram.public_edges": {"published": VALUES, "special": ()},
    "sums_release": {"published": VALUES, "clip": np.array([1.5, 2.2])},
    "rules.limited": {"limits": LIMITS, "synthesizer": MODEL},
    "rules.capped": {"synthesizer": CANDIDATES, "width": 1.0},
    "rules.by_risk": {"truncate_at": None},
    "audits.censored": {"censor": LIMITS},
    "audits.membership_test": {"statistic": float},
    "audits.sampled": {"draws": 40},
    "disclosure.belief_limits": {"epsilon": VALUES},
    "disclosure.detection_limit": {"epsilon": VALUES},
    "exceedance": {"epsilon": VALUES},
    "diagnostics.bound_diagnostics": {"log_lik": CHAINS},
    "risk.match_risk": {"synthetic": RELEASES},
    "survey.ConsumerExpenditure.subsample": {"records": 9},
    "utility.release_errors": {"releases": RELEASES, "groups": {"a": GROUPS}},
    "PseudoPosteriorMechanism": {"truncate_at": None},
    "PseudoPosteriorMechanism.run": {"unweighted": None},
    "mechanism.bound_fit": {"unweighted": None},
    "FiniteMixture": {"coefficient_scale": np.ones(2)},
    "FiniteMixture.log_likelihood_at": {"posterior": MIXTURE_FIT["posterior"].dataset},
    "FiniteMixture.predict": {"fit": MIXTURE_FIT},
}
# objects with methods; classes that are not among them are results, errors or the protocol
OBJECTS = {
    "Censoring": LIMITS,
    "GammaPoisson": MODEL,
    "FiniteMixture": MIXTURE,
    "CandidateSynthesizer": CANDIDATES,
    "PseudoPosteriorMechanism": MECHANISM,
    "Fit": RESULT,
    "PyMCSynthesizer": None,
    "survey.ConsumerExpenditure": HOUSEHOLDS,
}
ELSEWHERE = {
    "own_terms.check",
    "survey.load",
    "survey.ConsumerExpenditure.summary",
    "GammaPoisson.posterior",
    "PyMCSynthesizer.public_potentials",
}


def functions():
    """Name to function: those that are public, constructors, and methods of objects."""
    for name, value in (public_names() | book_names()).items():
        if inspect.isfunction(value) and not name.startswith("plots."):
            yield name, value
        elif name in OBJECTS:
            if value not in (type(RESULT), type(HOUSEHOLDS)):
                yield name, value
            for method, function in vars(value).items() if OBJECTS[name] else ():
                if inspect.isfunction(function) and not method.startswith(
                    ("_", "check_", "read")
                ):
                    yield f"{name}.{method}", getattr(OBJECTS[name], method)


FUNCTIONS = {name: function for name, function in functions() if name not in ELSEWHERE}
ARGUMENTS = {
    name: {
        argument: (RIGHT | OWN.get(name, {})).get(
            argument, 1.0 if parameter.default is parameter.empty else parameter.default
        )
        for argument, parameter in inspect.signature(function).parameters.items()
        if parameter.kind != parameter.VAR_KEYWORD
    }
    for name, function in FUNCTIONS.items()
}
PLACES = [
    (name, argument)
    for name, given in ARGUMENTS.items()
    for argument in given
    if f"{name}.{argument}" not in ELSEWHERE
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


def _masked(values, which):
    return np.ma.array(
        _put(values, NUMBER), mask=np.broadcast_to(which, np.shape(values))
    )


# that hold no numbers, or hide some
NO_NUMBERS = {
    "text among them": lambda v: _put(v, TEXT),
    "text only": lambda v: np.full(np.shape(v), TEXT),
    "categories": lambda v: pd.Categorical(_put(v, TEXT).ravel().astype(str)),
    "digits": lambda v: _put(v, NUMBER).astype(str),
    "dates": lambda v: np.zeros(np.shape(v), "M8[D]"),
    "complex numbers": lambda v: np.full(np.shape(v), NUMBER + 1j),
    "NaN": lambda v: np.where(
        np.arange(np.size(v)).reshape(np.shape(v)) % 2, NUMBER, np.nan
    ),
    "None": lambda v: [*_put(v, NUMBER).ravel().tolist()[:-1], None],
    "one masked": lambda v: _masked(v, np.arange(np.shape(v)[-1]) == 1),
    "masked in a list": lambda v: [np.ma.masked, *_put(v, NUMBER).tolist()[1:]],
    "ragged": lambda v: [_put(v, NUMBER).tolist(), [NUMBER]],
    "nothing": lambda v: np.zeros((0,) * np.ndim(v)),
    "nested too deeply": lambda v: _put(v, NUMBER)[None, None],
    "a dictionary": lambda v: {TEXT: NUMBER},
    "a word": lambda v: TEXT,
}
# numbers that are taken in some places and wrong in others
ODD_NUMBERS = {
    "a large fraction": lambda v: _put(v, NUMBER),
    "a negative number": lambda v: _put(v, -NUMBER),
    "a negative whole number": lambda v: np.array([-987654, *range(np.size(v) - 1)]),
    "a huge whole number": lambda v: [987654 * 10**30, *np.ravel(v).tolist()[1:]],
    "infinity": lambda v: np.where(_put(v, NUMBER) == NUMBER, np.inf, NUMBER),
    "one too few": lambda v: _put(v, NUMBER)[..., :-1],
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
    # weights alone are terms too
    argument = "(terms|weights)" if argument == "terms" else argument
    begins = rf"(Value|Type)Error: (\w+ and )?{argument}\b"
    return re.match(rf"{begins}.* (must|needs|has|have|holds|is empty)\b", line)


# places that take what holds no numbers, and those where NumPy refuses arrays of unlike shapes
TAKEN = {
    "nested too deeply": "losses weighted_log_p "
    "with_record without_record gini.values income_from_power.values .prior "
    "false_alarms belief_limits.epsilon detection_limit.epsilon",
    "NaN": "weighted_log_p gini.values",
    "nothing": "slope.weighted_log_p gini.values income_from_power.values .prior false_alarms "
    "belief_limits.epsilon detection_limit.epsilon random_seed",
}
# arguments that nobody checks, or NumPy does
UNCHECKED = (".progress", ".total_decides", ".axis", ".term.weighted_log_p")


@pytest.mark.parametrize("place", PLACES, ids=".".join)
def test_an_argument_of_the_wrong_kind_is_refused_by_its_name_and_no_record_is_shown(
    place,
):
    right = ARGUMENTS[place[0]][place[1]]
    several, single = isinstance(right, np.ndarray), isinstance(right, int | float)
    named = (several or single) and not ".".join(place).endswith(UNCHECKED)
    for kind, make in (NO_NUMBERS | ODD_NUMBERS).items():
        if kind != "a dictionary" or named:  # it holds settings, which are shown
            line = refusal(*place, make(right if several else VALUES))
            taken = ".".join(place).endswith(tuple(TAKEN.get(kind, "-").split()))
            if named and not taken and (single or kind in NO_NUMBERS):
                assert is_clear(line, place[1]), f"{kind}: {line}"
    for value in (
        (np.nan, "1", 2 if isinstance(right, bool) else True)
        if single and named
        else ()
    ):
        assert is_clear(refusal(*place, value), place[1]), value
    assert refusal(*place, right) == ""


def _each(names, *values):
    return dict.fromkeys(names.split(), values)


# an argument, or that of one function, to what is out of its range
BEYOND = (
    _each(
        "draws releases bins weight_draws components chains thin smallest n",
        0,
        1.5,
    )
    | _each(
        "radius scale truncate_at shape rate limit floor unit strict_epsilon",
        0.0,
        np.inf,
    )
    | _each(
        "coefficient_df residual_df coefficient_scale residual_scale", 1e-300, 1e300
    )
    | _each("confidence tail_probability target_accept power", 0.0, 1.5)
    | _each("weights", WEIGHTS - 0.6, WEIGHTS * np.inf, 0.5, WEIGHTS[1:])
    | _each("counts", COUNTS + 0.5, -COUNTS, [3.0, 1e19], [])
    | _each("bounds losses", -VALUES, [])
    | _each("epsilon bound width delta warmup", -1.0)
    | _each("random_seed", -1, 1.5)
    | {
        "resamples": [1],
        "runs": [19],
        "rank_powers": [0],
        "share_clipped": [-0.1, 0.6],
        "prior": [0.0, 1.0],
        "false_alarms": [-0.1, 1.1],
        "low": [-1e300],
        # closer or farther out, terms are mostly rounding, and quadrature takes forever
        "high": [-4.0, np.inf, -4.0 + 1e-9, 2e9],
        "pdp.bounded_range_epsilon.delta": [-1.0, 1.0],
        "tail_bound.tail_probability": [0.0, 1.5, 1e-310],
        "histogram_release.epsilon": [31.0],
        "edges": [[1.0, 1.0], [3.0]],
        "clip": [(1.0, 0.0), (1.0,)],
        "sums_release.share": [0.0, 1.0],
        "tail": [-1],
        "above": [0],
        "strata": [0, ["income"]],
        "reach": [0.0],
        "change": [0.0],
        "shares": [[1.0], [0.5, 0.6], [-0.5, 1.5]],
        "margins": [[], ["region"], [("region", "income", "income")]],
        "exceedance.epsilon": [-1.0, VALUES[1:]],
        "mapping": [
            0.5,
            lambda z: z / 10,
            lambda z: -z,
            lambda z: 0.5,
            lambda z: 2 - z / 10,
        ],
        "mappings": [reciprocal, {"Capped": reciprocal}],
        "record_bounds.log_lik": [
            CHAINS.to_dataset(name="y"),
            CHAINS.rename(chain="a"),
        ],
        "tail_bound.log_lik": [CHAINS[0, 0]],
        "diagnostics.bound_diagnostics.log_lik": [LOG_LIK],
        "shift": [np.inf],
        "k": [0.0, 1.1],
        "public": [(9.0, 2.0), (0.0, 1.0), 3.0],
        "limits": [(9.0, 1.0), (1.0, 1.0), (1.0, 2.0, 3.0)],
        "source": ["nobody"],
        "concentration_prior": [(1.0,), (0.0, 1.0), 3.0],
        "records": [[], [0, 0], [6], [-1]],
        "statistic": ["mode", None],
        "labels": ["posterior"],
        "PseudoPosteriorMechanism.censor": [(-4.0, -1.0)],
        "run_with": [0.0],
        "synthesizer": [None],
        "Censoring.levels.synthesizer": [],
        "censoring.censoring_limits.synthesizer": [],
        "predictors": [PREDICTORS[1:]],
        "response": [VALUES * 1e51],
        "groups": [GROUPS[1:], np.ones((N, 0))],
        "utility.release_errors.groups": [{"a": GROUPS[1:]}, {"a": VALUES}],
        "synthetic": [VALUES[:1]],
        "utility.resample.values": [VALUES[:1]],
        "reference": [LOG_LIK[:1], np.rint(LOG_LIK)],
        "known": [PREDICTORS[1:]],
        "utility.propensity_score.synthetic": [VALUES[:1], RELEASES],
        "utility.release_errors.releases": [RELEASES[:, 1:], RELEASES[:0]],
        "shards": [[[0], [1, 1]], [[]], [[6]], [[-1]], [[0.5]]],
        "with_record": [np.ones(19)],
        "FiniteMixture.fit.terms": [WEIGHTS - 0.6, WEIGHTS + 0.6],
        "initial": ["last"],
        "GammaPoisson.bounds_within.lowest": [0.0],
        "audits.exact.counts": [COUNTS[:1], COUNTS + 0.5],
        "audits.exact.rate": [0.0, 1e-300],
        "audits.exact.draws": [1, 1.5],
        "GammaPoisson.oscillations_within.highest": [1.0],
    }
)


def beyond(place):
    return BEYOND.get(".".join(place), BEYOND.get(place[1]))


@pytest.mark.parametrize("place", [*filter(beyond, PLACES)], ids=".".join)
def test_what_is_out_of_range_is_refused_by_the_arguments_name(place):
    for value in beyond(place):
        line = refusal(*place, value)
        assert is_clear(line, place[1]), f"{value}: {line}"


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
        ppm.PyMCSynthesizer(model, chains=1, warmup=2).fit(draws=2, random_seed=1)

    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        said = outcome(fit, {})
    assert "Traceback" in said
    # PyMC's own message holds log-densities, which one record may determine
    assert "Logp initial evaluation" not in said
    assert not any(mark in said for mark in MARKS), said
