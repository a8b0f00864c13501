"""The same numbers in another storage give the same results, and what is no number is refused."""

import functools
import re
from types import SimpleNamespace

import numpy as np
import public_names
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from layouts import REFUSED, SAME, SAME_OR_REFUSED, matrices, same, unit_interval, vectors

import ppm
from ppm_book import survey

N = 6
LIMITS = ppm.Censoring(-4.0, -1.0)
MODEL = ppm.GammaPoisson([3, 5, 4, 6, 2, 20], shape=2.0, rate=0.5)
FIT = MODEL.fit(draws=8, random_seed=1)

amounts = st.floats(0.5, 100.0)
records = vectors(amounts, least=N, most=N)
several = matrices(amounts, rows=(2, 4), columns=(N, N))
# whole numbers are taken for records that were given in the place of log-likelihoods
log_liks = matrices(st.floats(-50.0, -0.01), rows=(8, 8), columns=(N, N)).map(
    lambda values: values - 1.0 / 3.0
)
weights = unit_interval(N)
counts = vectors(st.integers(0, 60).map(float), least=N, most=N).map(lambda v: v.astype(int))
codes = vectors(st.integers(0, 2).map(float), least=N, most=N).map(lambda v: v.astype(int))
shares = vectors(st.floats(0.01, 0.99), least=N, most=N)
scores = vectors(least=20, most=24)

# name, argument -> (call, numbers for the argument). What follows the comma is the argument.
NUMBERS = {
    "record_bounds, log_lik": (ppm.record_bounds, log_liks),
    "record_bounds, weights": (lambda v: ppm.record_bounds(np.full((2, N), -2.0), v), weights),
    "local_bound, log_lik": (ppm.local_bound, log_liks),
    "record_oscillations, log_lik": (ppm.record_oscillations, log_liks),
    "oscillation_bound, log_lik": (ppm.oscillation_bound, log_liks),
    "tail_bound, log_lik": (lambda v: ppm.tail_bound(v, tail_probability=0.5), log_liks),
    "lipschitz.bound_by_draws, log_lik": (
        lambda v: ppm.lipschitz.bound_by_draws(v, [1, 4]), log_liks,
    ),
    "record_weights, bounds": (lambda v: ppm.record_weights(v, truncate_at=2.0), records),
    "mapped_weights, bounds": (
        lambda v: ppm.mapped_weights(v, ppm.weights.capped_map(9.0)), records,
    ),
    "weights.capped_map, bounds": (ppm.weights.capped_map(3.0), records),
    "scalar_weights, bounds": (lambda v: ppm.scalar_weights(v, epsilon=3.0), records),
    "count_weights, values": (lambda v: ppm.count_weights(v, radius=0.3), records),
    "Censoring.terms, log_lik": (LIMITS.terms, log_liks),
    "Censoring.terms, weights": (lambda v: LIMITS.terms(np.full((2, N), -2.0), v), weights),
    "Censoring.share_clipped, log_lik": (LIMITS.share_clipped, log_liks),
    "Censoring.slope, weighted_log_p": (LIMITS.slope, log_liks),
    "censoring.censoring_interval, reference": (
        lambda v: ppm.censoring.censoring_interval(2.0, v), log_liks,
    ),
    "censoring.censoring_limits, reference": (
        lambda v: ppm.censoring.censoring_limits(2.0, v)[1], log_liks,
    ),
    "exceedance, losses": (lambda v: ppm.exceedance(v, 20.0), records),
    "exceedance, epsilon": (lambda v: ppm.exceedance(np.arange(1.0, N + 1), v), records),
    "disclosure.belief_limits, prior": (lambda v: ppm.disclosure.belief_limits(v, 1.0), shares),
    "disclosure.belief_limits, epsilon": (lambda v: ppm.disclosure.belief_limits(0.3, v), records),
    "disclosure.detection_limit, false_alarms": (
        lambda v: ppm.disclosure.detection_limit(v, 1.0), shares,
    ),
    "disclosure.detection_limit, epsilon": (
        lambda v: ppm.disclosure.detection_limit(0.1, v), records,
    ),
    "utility.gini, values": (ppm.utility.gini, records),
    "utility.resample, values": (
        lambda v: ppm.utility.resample(v, "median", resamples=3, random_seed=1), several,
    ),
    "utility.compare_distributions, reference": (
        lambda v: ppm.utility.compare_distributions(v, {"a": [1.0, 2.0]}), records,
    ),
    "utility.compare_distributions, distributions": (
        lambda v: ppm.utility.compare_distributions([1.0, 2.0], {"a": v}), records,
    ),
    "utility.release_errors, confidential": (
        lambda v: ppm.utility.release_errors(v, np.ones((2, N))),
        vectors(st.floats(0.5, 100.0), least=N, most=N).map(lambda v: v + np.arange(N)),
    ),
    "utility.release_errors, releases": (
        lambda v: ppm.utility.release_errors(np.arange(1.0, N + 1), v), several,
    ),
    "utility.propensity_score, confidential": (
        lambda v: ppm.utility.propensity_score(v, np.arange(N) + 0.5), records,
    ),
    "utility.propensity_score, synthetic": (
        lambda v: ppm.utility.propensity_score(np.arange(N) + 0.5, v), records,
    ),
    "utility.propensity_score, known": (
        lambda v: ppm.utility.propensity_score(np.arange(N) + 0.5, np.arange(N) ** 2, known=v),
        records,
    ),
    "risk.identification_risks, values": (
        lambda v: ppm.risk.identification_risks(v, radius=0.3), records,
    ),
    "risk.match_risk, values": (
        lambda v: ppm.risk.match_risk(v, np.full((2, N), 20.0), radius=0.5), records,
    ),
    "risk.match_risk, synthetic": (
        lambda v: ppm.risk.match_risk(np.arange(1.0, N + 1), v, radius=0.5), several,
    ),
    "histogram_release, values": (
        lambda v: ppm.histogram_release(v, (0, 90), bins=4, epsilon=1.0, random_seed=1),
        records,
    ),
    "audits.loss_lower_bound, with_record": (
        lambda v: ppm.audits.loss_lower_bound(v, np.arange(20)), scores,
    ),
    "audits.loss_lower_bound, without_record": (
        lambda v: ppm.audits.loss_lower_bound(np.arange(20), v), scores,
    ),
    "audits.exact, counts": (
        lambda v: ppm.audits.exact(v, public=(2.0, 9.0), draws=3, weight_draws=2, random_seed=1),
        counts,
    ),
    "audits.censored, counts": (lambda v: ppm.audits.censored(v, LIMITS), counts),
    "audits.censored, weights": (
        lambda v: ppm.audits.censored(MODEL.counts, LIMITS, weights=v), weights,
    ),
    "GammaPoisson, counts": (
        lambda v: ppm.GammaPoisson(v).fit(draws=3, random_seed=1)["posterior"]["mu"], counts,
    ),
    "GammaPoisson.fit, weights": (
        lambda v: MODEL.fit(v, draws=3, random_seed=1)["posterior"]["mu"], weights,
    ),
    "GammaPoisson.leave_one_out_loss, weights": (
        lambda v: MODEL.leave_one_out_loss(FIT, v), weights,
    ),
    "mechanism.bound_fit, weights": (
        lambda v: ppm.mechanism.bound_fit(MODEL, FIT, v).record_bounds, weights,
    ),
    "PseudoPosteriorMechanism, weights": (
        lambda v: ppm.PseudoPosteriorMechanism(MODEL, weights=v)
        .run(draws=3, random_seed=1)
        .synthesize(2, random_seed=2),
        weights,
    ),
    "diagnostics.bound_diagnostics, weights": (
        lambda v: ppm.diagnostics.bound_diagnostics(MODEL.log_likelihood(FIT), v), weights,
    ),
    "FiniteMixture, response": (
        lambda v: vars(ppm.FiniteMixture(v, np.ones((N, 1)))), records,
    ),
    "FiniteMixture, predictors": (
        lambda v: vars(ppm.FiniteMixture(np.arange(N), v)),
        matrices(amounts, rows=(N, N), columns=(1, 2)),
    ),
    "survey.income_from_power, values": (survey.income_from_power, records),
}


# they hand the array on to functions that are among them
ELSEWHERE = set()


def made(call, values):
    """What a call gives, or the message of its refusal."""
    try:
        return SimpleNamespace(result=call(values), refusal=None)
    except ValueError as error:
        return SimpleNamespace(result=None, refusal=str(error))


def is_clear(refusal, name):
    """Whether a refusal is one line that begins with the argument."""
    accepted = name.split(", ")[1].split(" or ")
    return "\n" not in refusal and any(
        re.search(rf"\b{argument}\b", refusal[:60]) for argument in accepted
    )


@pytest.mark.parametrize("name", NUMBERS)
@examples(24)
@given(data=st.data())
def test_another_storage_of_the_same_numbers_changes_nothing_and_is_not_written_to(name, data):
    call, strategy = NUMBERS[name]
    values = data.draw(strategy)
    right = made(call, values.copy())
    assert right.refusal is None
    kind = data.draw(st.sampled_from([*SAME, *SAME_OR_REFUSED]))
    stored = (SAME | SAME_OR_REFUSED)[kind](values)
    found = made(call, stored)
    if found.refusal is None:
        assert same(right.result, found.result)
    else:
        assert kind in SAME_OR_REFUSED and is_clear(found.refusal, name), found.refusal
    assert np.array_equal(np.asarray(stored), values)


MAPS = {name for name in NUMBERS if "_map, " in name}
# of any shape, or of none: these are functions of single numbers, or count and average them
ANY_SHAPE = {
    "disclosure.belief_limits, prior", "disclosure.belief_limits, epsilon",
    "disclosure.detection_limit, false_alarms", "disclosure.detection_limit, epsilon",
    "utility.gini, values", "survey.income_from_power, values",
    "Censoring.slope, weighted_log_p", *MAPS,
}
# of any shape, but not empty
ANY_DEPTH = ANY_SHAPE | {
    "exceedance, losses", "Censoring.terms, log_lik",
    "Censoring.share_clipped, log_lik", "audits.loss_lower_bound, with_record",
    "audits.loss_lower_bound, without_record",
}
# NaN of NaN: a statistic, a slope, and maps, whose users check the bounds first; a term that is NaN
# is at the lower limit
NAN_OF_NAN = {
    "utility.gini, values", "Censoring.slope, weighted_log_p", "Censoring.terms, log_lik",
    "Censoring.share_clipped, log_lik", *MAPS,
}


def taken(name, kind):
    """Whether a kind of array is none that an argument has to refuse."""
    return (
        (kind == "nothing" and name in ANY_SHAPE)
        or (kind == "nested too deeply" and name in ANY_DEPTH)
        or (kind == "NaN" and name in NAN_OF_NAN)
    )


@functools.cache
def example(name):
    """Numbers that a function takes, all different."""
    call, strategy = NUMBERS[name]
    found = []

    @settings(max_examples=20, database=None, derandomize=True)
    @given(strategy)
    def collect(values):
        found.append(values)

    collect()
    return max(found, key=lambda values: (np.unique(values).size, values.size))


@pytest.mark.parametrize("name", NUMBERS)
def test_what_holds_no_numbers_or_hides_some_is_refused_by_the_arguments_name(name):
    call, values = NUMBERS[name][0], example(name)
    assert made(call, values).refusal is None
    for kind, spoil in REFUSED.items():
        refusal = made(call, spoil(values)).refusal
        if taken(name, kind):
            assert refusal is None, kind
        else:
            assert refusal is not None and is_clear(refusal, name), f"{kind}: {refusal}"


def test_every_function_that_takes_numbers_of_records_is_among_them():
    names = {name.split(", ")[0] for name in NUMBERS}
    takes_arrays = {
        name
        for name, value in public_names.public_names().items()
        if re.search(r"^[\w, ]+ : (?:float or )?array_like", value.__doc__, re.MULTILINE)
        and not name.startswith("plots.")
    }
    assert takes_arrays - names - ELSEWHERE == set()
    assert {"record_bounds", "utility.resample"} <= takes_arrays
