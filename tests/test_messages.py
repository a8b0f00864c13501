"""No message repeats a record's value: it names the argument, the place and the kind of fault."""

import datetime
import functools
import re
import traceback
import warnings

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from layouts import reciprocal
from survey_files import UNIT, csv_text, unit

import ppm
from ppm_book import page, plots, survey

RECORDS = 6
NUMBER, TEXT = 987654.321, "SECRET-VALUE"
# every way in which Python, NumPy and pandas may write the number
MARKS = ("987654", "987_654", "987,654", "9.87654", "9.8765", "SECRET")

COUNTS = np.array([3, 5, 4, 6, 2, 7])
VALUES = np.array([1.5, 2.5, 0.5, 3.5, 2.0, 4.0])
PREDICTORS = np.column_stack([np.ones(RECORDS), VALUES])
WEIGHTS = np.linspace(0.5, 1.0, RECORDS)
LOG_LIK = -np.abs(np.random.default_rng(1).normal(2.0, 0.5, (20, RECORDS)))
CHAINS = LOG_LIK.reshape(2, 10, RECORDS)
RELEASES = np.tile(VALUES, (3, 1)) + 0.1
GROUPS = np.array(list("aabbab"))


# ---- ways to go wrong ---------------------------------------------------------------------------


def _put(values, mark, index=0):
    """Copy of numbers with a mark among them."""
    number = not isinstance(mark, str) and np.asarray(values).dtype.kind in "if"
    marked = np.array(values, dtype=np.float64 if number else object)
    marked.reshape(-1)[index] = mark
    return marked


def _both(values, odd):
    """The marked number, beside something that cannot be right."""
    marked = _put(values, NUMBER)
    marked.reshape(-1)[1] = odd
    return marked


WRONG = {
    "text": lambda v: _put(v, TEXT),
    "a list with text": lambda v: _put(v, TEXT).tolist(),
    "text alone": lambda v: TEXT,
    "a column of text": lambda v: np.full(np.shape(v), TEXT),
    "a series with text": lambda v: pd.Series(_put(v, TEXT).ravel(), name="y"),
    "a frame with text": lambda v: pd.DataFrame({"y": _put(v, TEXT).ravel()}),
    "categories": lambda v: pd.Categorical(_put(v, TEXT).ravel().astype(str)),
    "an xarray with text": lambda v: xr.DataArray(_put(v, TEXT)),
    "a fraction": lambda v: _put(v, NUMBER),
    "a negative number": lambda v: _put(v, -NUMBER),
    "a negative whole number": lambda v: np.array([-987654, *range(np.size(v) - 1)]),
    "a list": lambda v: _put(v, NUMBER).tolist(),
    "NaN": lambda v: _both(v, np.nan),
    "infinity": lambda v: _both(v, np.inf),
    "None": lambda v: [*_put(v, NUMBER).ravel().tolist()[:-1], None],
    "one too few": lambda v: _put(v, NUMBER)[..., :-1],
    "one dimension more": lambda v: _put(v, NUMBER)[None, None],
    "one number": lambda v: NUMBER,
    "ragged": lambda v: [_put(v, NUMBER).tolist(), [NUMBER]],
    "a dictionary": lambda v: {TEXT: NUMBER},
    "complex numbers": lambda v: np.full(np.shape(v), NUMBER + 1j),
    "a huge whole number": lambda v: [987654 * 10**30, *np.ravel(v).tolist()[1:]],
    "dates": lambda v: [datetime.date(2017, 1, 1), *_put(v, NUMBER).ravel().tolist()[1:], NUMBER],
    "empty": lambda v: [],
    "a set": lambda v: {NUMBER, TEXT},
}


# ---- what takes records -------------------------------------------------------------------------


@functools.cache
def _fitted():
    synthesizer = ppm.GammaPoisson(COUNTS)
    return synthesizer, synthesizer.fit(draws=8, random_seed=1)


def _table(income):
    data = survey.simulate(60, random_seed=1).table
    if not isinstance(income, pd.DataFrame):
        flat = np.ravel(np.asarray(income, dtype=object))
        data["income"] = pd.Series(np.resize(flat, 60) if flat.size else np.nan, dtype=object)
    return data if not isinstance(income, pd.DataFrame) else income


# name -> (function of the records, what it takes)
ENTRIES = {
    "record_bounds": (lambda v: ppm.record_bounds(v, WEIGHTS), LOG_LIK),
    "record_bounds, weights": (lambda v: ppm.record_bounds(LOG_LIK, v), WEIGHTS),
    "record_oscillations": (ppm.record_oscillations, LOG_LIK),
    "tail_bound": (lambda v: ppm.tail_bound(v, tail_probability=0.5), LOG_LIK),
    "bound_by_draws": (lambda v: ppm.lipschitz.bound_by_draws(v, [2, 4]), LOG_LIK),
    "draw_maxima": (ppm.lipschitz.draw_maxima, LOG_LIK),
    "record_weights": (ppm.record_weights, VALUES),
    "mapped_weights": (lambda v: ppm.mapped_weights(v, reciprocal), VALUES),
    "scalar_weights": (lambda v: ppm.scalar_weights(v, epsilon=1.0), VALUES),
    "count_weights": (lambda v: ppm.count_weights(v, radius=0.2), VALUES),
    "count_weights, groups": (
        lambda v: ppm.count_weights(VALUES, radius=0.2, groups=v),
        GROUPS,
    ),
    "exceedance": (lambda v: ppm.exceedance(v, 1.0), VALUES),
    "exceedance, epsilon": (lambda v: ppm.exceedance(VALUES, v), VALUES),
    "GammaPoisson": (ppm.GammaPoisson, COUNTS),
    "GammaPoisson, shape": (lambda v: ppm.GammaPoisson(COUNTS, shape=v), COUNTS),
    "GammaPoisson, fit": (lambda v: _fitted()[0].fit(v, draws=2), WEIGHTS),
    "GammaPoisson, draws": (lambda v: _fitted()[0].fit(draws=v), COUNTS),
    "GammaPoisson, seed": (lambda v: _fitted()[0].fit(draws=2, random_seed=v), COUNTS),
    "GammaPoisson, loss": (
        lambda v: _fitted()[0].leave_one_out_loss(_fitted()[1], v),
        WEIGHTS,
    ),
    "GammaPoisson, releases": (lambda v: _fitted()[0].predict(_fitted()[1], releases=v), COUNTS),
    "FiniteMixture": (lambda v: ppm.FiniteMixture(v, PREDICTORS), VALUES),
    "FiniteMixture, predictors": (lambda v: ppm.FiniteMixture(VALUES, v), PREDICTORS),
    "FiniteMixture, components": (
        lambda v: ppm.FiniteMixture(VALUES, PREDICTORS, components=v),
        VALUES,
    ),
    "FiniteMixture, prior": (
        lambda v: ppm.FiniteMixture(VALUES, PREDICTORS, concentration_prior=v),
        VALUES,
    ),
    "FiniteMixture, scale": (
        lambda v: ppm.FiniteMixture(VALUES, PREDICTORS, coefficient_scale=v),
        VALUES,
    ),
    "FiniteMixture, blocks": (
        lambda v: ppm.FiniteMixture(VALUES, PREDICTORS, blocks=v),
        VALUES,
    ),
    "FiniteMixture, starts": (
        lambda v: ppm.FiniteMixture(VALUES, PREDICTORS, starting_components=v),
        VALUES,
    ),
    "FiniteMixture, parallel": (
        lambda v: ppm.FiniteMixture(VALUES, PREDICTORS, parallel=v),
        VALUES,
    ),
    "PyMCSynthesizer": (ppm.PyMCSynthesizer, VALUES),
    "PseudoPosteriorMechanism": (ppm.PseudoPosteriorMechanism, COUNTS),
    "PseudoPosteriorMechanism, weights": (
        lambda v: ppm.PseudoPosteriorMechanism(_fitted()[0], weights=v).run(draws=2),
        WEIGHTS,
    ),
    "PseudoPosteriorMechanism, scale": (
        lambda v: ppm.PseudoPosteriorMechanism(_fitted()[0], scale=v),
        WEIGHTS,
    ),
    "bound_fit": (lambda v: ppm.mechanism.bound_fit(*_fitted(), v), WEIGHTS),
    "bound_diagnostics": (lambda v: ppm.diagnostics.bound_diagnostics(v, WEIGHTS), CHAINS),
    "audits.exact": (lambda v: ppm.audits.exact(v, public=(1.0, 9.0), draws=4), COUNTS),
    "audits.exact, public": (lambda v: ppm.audits.exact(COUNTS, public=v, draws=4), COUNTS),
    "audits.sampled": (lambda v: ppm.audits.sampled(v, [0]), COUNTS),
    "audits.sampled, records": (lambda v: ppm.audits.sampled(_fitted()[0], v, draws=40), COUNTS),
    "loss_lower_bound": (
        lambda v: ppm.audits.loss_lower_bound(v, LOG_LIK.ravel() + 1.0),
        LOG_LIK.ravel(),
    ),
    "membership_test": (
        lambda v: ppm.audits.membership_test(v, lambda seed: 0.0, float, runs=20),
        VALUES,
    ),
    "resample": (lambda v: ppm.utility.resample(v, "mean", resamples=3), VALUES),
    "resample of releases": (
        lambda v: ppm.utility.resample(v, "mean", resamples=3), RELEASES,
    ),
    "compare_distributions": (
        lambda v: ppm.utility.compare_distributions(v, {"a": VALUES}),
        VALUES,
    ),
    "compare_distributions, others": (
        lambda v: ppm.utility.compare_distributions(VALUES, {"a": v}),
        VALUES,
    ),
    "propensity_score": (lambda v: ppm.utility.propensity_score(v, VALUES), VALUES),
    "propensity_score, synthetic": (lambda v: ppm.utility.propensity_score(VALUES, v), VALUES),
    "propensity_score, known": (
        lambda v: ppm.utility.propensity_score(VALUES, VALUES + 0.1, known=v),
        VALUES,
    ),
    "propensity_score of ranks": (
        lambda v: ppm.utility.propensity_score(v, VALUES, rank_powers=3), VALUES,
    ),
    "gini": (ppm.utility.gini, VALUES),
    "identification_risks": (lambda v: ppm.risk.identification_risks(v, radius=0.2), VALUES),
    "identification_risks, radius": (
        lambda v: ppm.risk.identification_risks(VALUES, radius=v),
        VALUES,
    ),
    "identification_risks, groups": (
        lambda v: ppm.risk.identification_risks(VALUES, radius=0.2, groups=v),
        GROUPS,
    ),
    "match_risk": (lambda v: ppm.risk.match_risk(v, RELEASES, radius=0.2), VALUES),
    "match_risk, synthetic": (lambda v: ppm.risk.match_risk(VALUES, v, radius=0.2), RELEASES),
    "log_income": (lambda v: survey.log_income(_table(v)), VALUES),
    "log_income, floor": (lambda v: survey.log_income(_table(VALUES), v), VALUES),
    "predictor_matrix": (survey.predictor_matrix, VALUES),
    "predictor_matrix, table": (
        lambda v: survey.predictor_matrix(_table(VALUES).assign(region=_table(v)["income"])),
        VALUES,
    ),
    "histogram_release": (
        lambda v: ppm.histogram_release(v, (0, 9), bins=3, epsilon=1.0, random_seed=1),
        VALUES,
    ),
    "histogram_release, limits": (
        lambda v: ppm.histogram_release(VALUES, v, bins=3, epsilon=1.0, random_seed=1),
        VALUES[:2],
    ),
    "histogram_release, groups": (
        lambda v: ppm.histogram_release(
            VALUES, (0, 9), bins=3, epsilon=1.0, groups=v, random_seed=1
        ),
        COUNTS,
    ),
    "plots.income_density": (lambda v: plots.income_density(v), VALUES),
    "plots.record_bound_violins": (
        lambda v: plots.record_bound_violins({"DPweighted": v}),
        VALUES,
    ),
    "plots.statistic_violins": (
        lambda v: plots.statistic_violins({"mean": {"Data": v}}),
        VALUES,
    ),
    "plots.worked_example_weights": (
        lambda v: plots.worked_example_weights(v, VALUES, WEIGHTS, VALUES),
        COUNTS,
    ),
    "save_values": (lambda v: page.save_values({"a": v}, data=None), VALUES),
    "belief_limits": (lambda v: ppm.disclosure.belief_limits(v, 1.0), WEIGHTS / 2),
    "detection_limit": (lambda v: ppm.disclosure.detection_limit(v, 1.0), WEIGHTS),
}


# what a user sets: a number or a word is shown as it was given
SETTINGS = {name for name in ENTRIES if "," in name} - {
    name
    for name in ENTRIES
    if name.split(", ")[-1] in (
        "weights", "count weights", "bounds", "groups", "fit", "loss", "predictors", "known",
        "synthetic", "others", "table", "records",
    )
} | {"membership_test"}

# these take a model, a table or results, and no array: whatever stands here is refused
NO_ARRAY = {
    "PyMCSynthesizer", "PseudoPosteriorMechanism", "bound_diagnostics",
    "audits.sampled", "predictor_matrix", "predictor_matrix, table",
    "save_values", "audits.sampled, records",
}


def told(function, values):
    """What Python prints when a call fails, or nothing."""
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            function(values)
    except Exception as error:
        return "".join(traceback.format_exception(error))
    return "\n".join(str(warning.message) for warning in warned)


@pytest.mark.parametrize("name", sorted(ENTRIES.keys() - SETTINGS - NO_ARRAY))
def test_what_is_spoilt_below_is_right_before(name):
    # or every kind would be refused for the same reason
    assert "Traceback" not in told(*ENTRIES[name])


@pytest.mark.parametrize("name", ENTRIES)
def test_no_message_repeats_a_records_value(name):
    function, right = ENTRIES[name]
    kinds = WRONG.keys() - ({"text alone", "one number", "a set"} if name in SETTINGS else set())
    failed = 0
    for kind, spoil in [(kind, WRONG[kind]) for kind in sorted(kinds)]:
        text = told(function, spoil(right))
        failed += "Traceback" in text
        shown = [mark for mark in MARKS if mark in text]
        assert not shown, f"{kind}: {text.splitlines()[-1]}"
    assert failed


@pytest.mark.parametrize("name", ENTRIES)
def test_text_and_none_among_numbers_are_refused_in_one_line_of_our_own(name):
    # groups may be of any kind, and a label may be None
    if name.endswith("groups"):
        return
    function, right = ENTRIES[name]
    for kind in ("a list with text", "a column of text", "None"):
        *_, said = told(function, WRONG[kind](right)).strip().splitlines()
        assert re.match("(Value|Type|Key)Error: .*(must|has|have|is not) ", said), f"{kind}: {said}"


@pytest.mark.parametrize(
    ("values", "told_of"),
    [
        ([1, "a"], "list with text"),
        (["1", "2"], "list with text"),
        (np.array([1.0, None, 2.0]), "ndarray of type object with None at position 1"),
        (pd.Series([1.0, 2.0, TEXT]), "Series of type object with text at position 2"),
        ([[1], [1, 2]], "list"),
    ],
)
def test_it_is_said_what_is_no_number_and_where(values, told_of):
    with pytest.raises(ValueError, match=f"^bounds must be an array of numbers; got {told_of}$"):
        ppm.record_weights(values)


@pytest.mark.parametrize("text", [TEXT, "987654321987", "-987654.5", "9.87654e300"])
@pytest.mark.parametrize("column", sorted(UNIT))
def test_no_message_repeats_a_cell_of_the_survey_file(tmp_path, column, text):
    rows = [unit(1), unit(2, FINCBTXM="5"), {**unit(3), column: text}, unit(4)]
    path = tmp_path / "fmli171x.csv"
    path.write_text(csv_text(*rows))
    said = told(survey.load, path)
    assert not any(mark in said for mark in MARKS), said.splitlines()[-1]
    if text == TEXT and column not in ("PSU", "OTHER", "LAST"):
        # the row and the column are all that it takes to find it
        assert "fmli171x.csv, row 4: column " + column in said


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text + f"{TEXT},{NUMBER}\n",
        lambda text: text + f'"{TEXT},{NUMBER}',
        lambda text: text.replace("NEWID", TEXT, 1),
        lambda text: text.partition("\n")[2] + f"{TEXT}\n",
        lambda text: text.replace("\n", f"\n{TEXT}\n", 1),
        lambda text: text.replace(",", ";") + f"{TEXT};{NUMBER}",
    ],
    ids=["long row", "open quote", "column", "no header", "short row", "semicolons"],
)
def test_no_message_repeats_a_line_of_a_damaged_file(tmp_path, spoil):
    path = tmp_path / "fmli171x.csv"
    path.write_text(spoil(csv_text(unit(1), unit(2, FINCBTXM="5"))))
    said = told(survey.load, path)
    assert "DataFileError" in said
    assert not any(mark in said for mark in MARKS), said.splitlines()[-1]


# ---- models ------------------------------------------------------------------------------------


def _observed(values, **settings):
    import pymc as pm

    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu"), 1.0, observed=values, **settings)
    return model


def _impossible(values):
    import pymc as pm

    with pm.Model() as model:
        pm.Uniform("y", 0.0, pm.Uniform("top", 1.0, 2.0), observed=values)
    return model


def _odd_scale(values):
    import pymc as pm

    with pm.Model() as model:
        # a scale below 0 at the start, computed from the record itself
        pm.Normal("y", 0.0, pm.Uniform("top", 1.0, 2.0) - values, observed=values)
    return model


def _walk(values):
    import pymc as pm

    with pm.Model() as model:
        init = pm.Normal.dist(0.0, 1.0)
        pm.GaussianRandomWalk("y", sigma=pm.HalfNormal("s"), init_dist=init, observed=values)
    return model


@pytest.mark.parametrize(
    ("build", "values"),
    [
        (_observed, np.array(NUMBER)),
        (lambda v: _observed(v, total_size=100), _put(VALUES, NUMBER)),
        (_impossible, np.array([NUMBER])),
        (_odd_scale, _put(VALUES, NUMBER)),
        (_walk, _put(VALUES, NUMBER)),
    ],
    ids=lambda value: getattr(value, "__name__", str(np.size(value))),
)
def test_no_message_on_a_model_repeats_a_records_value(build, values):
    with warnings.catch_warnings():
        # that PyMC would impute what is missing
        warnings.simplefilter("ignore")
        model = build(values)
    said = told(
        lambda m: ppm.PyMCSynthesizer(m, chains=1, warmup=2).fit(draws=2, random_seed=1), model
    )
    assert "Traceback" in said
    # PyMC's own message holds log-densities, which one record may determine
    assert "Logp initial evaluation" not in said
    assert not any(mark in said for mark in MARKS), said
