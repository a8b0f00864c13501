"""The mechanism with censored terms: what is strict, what is local, and what may leave."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import test_mechanism
from test_mechanism import Chains, words

import ppm
from ppm.disclosure import release_statement
from ppm.mechanism import bound_fit
from ppm.synthesizers.base import choose_draws

COUNTS = np.r_[np.random.default_rng(7).poisson(5, 60), 30]
CENSOR = ppm.Censoring(-3.0, -1.0)
PRIOR = {"shape": 2.0, "rate": 0.5}


def run(synthesizer=None, **settings):
    return test_mechanism.run(
        synthesizer or ppm.GammaPoisson(COUNTS, **PRIOR), **settings
    )


OSCILLATIONS = ppm.GammaPoisson(COUNTS).oscillations_within(2.0, 8.0)
OWN = ppm.mapped_weights(OSCILLATIONS, ppm.weights.capped_map(1.0))
INSIDE = {"weights": OWN, "independent_weights": True}
RULE = {"scale": 1.0, "shift": 0.0, "truncate_at": 4.0}


def test_the_strict_epsilon_is_the_same_for_every_database_and_the_local_one_is_not():
    databases = COUNTS, COUNTS[:5], [0, 0], [0, 5_000]
    results = [
        run(ppm.GammaPoisson(counts, **PRIOR), censor=CENSOR) for counts in databases
    ]
    assert (
        {result.epsilon() for result in results}
        == {2.0}
        == {results[0].guarantee.epsilon}
    )
    assert all(np.all(result.weights == 1) for result in results)
    assert len({result.local_bound for result in results}) > 1
    # a record's term moves by W at most, whichever draws there are
    assert all(result.oscillation_bound <= CENSOR.width for result in results)
    assert run(weights=np.ones(COUNTS.size)).oscillation_bound > CENSOR.width


@pytest.mark.parametrize(
    ("model", "settings", "held"),
    [
        (ppm.GammaPoisson(COUNTS, **PRIOR), {}, 4),
        (ppm.GammaPoisson(COUNTS), {"censor": None}, 4),
        (Chains(COUNTS, prior=PRIOR), {"allow_disagreement": True}, 8),
    ],
)
def test_releases_cost_what_the_draws_cost_that_they_come_from(model, settings, held):
    """No call, and no number of calls, uses more different draws than it pays for."""
    result = run(model, **{"censor": CENSOR, "draws": 4} | settings)
    used, predict, paid = set(), type(result.synthesizer).predict, []

    def watched(fit, *, releases, random_seed=None):
        rng = np.random.default_rng(random_seed)
        picked = choose_draws(fit["posterior"].dataset, releases, rng)
        used.update(zip(*map(np.ndarray.tolist, picked), strict=True))
        return predict(
            result.synthesizer, fit, releases=releases, random_seed=random_seed
        )

    result.synthesizer.predict = watched
    one = 2.0 if result.strict else 2.0 * result.local_bound
    together = 0
    for call, m in enumerate((1, 3, 2, 50, 1)):
        release, together = result.synthesize(m, random_seed=call), together + m
        paid.append(result.epsilon(together))
        assert result.epsilon(m) == min(m, held) * one
        assert len(used) * one <= paid[-1] <= held * one
        if result.strict:
            costs = {"epsilon": min(m, held) * one, "epsilon_total": paid[-1]}
            assert release.attrs == {"releases": m} | costs
            told = release_statement(result, release)
            assert f"ε = {min(m, held)} × 2 = {min(m, held) * 2:g}, for" in told
            assert ("share draws, of which" in told) == (m > held)
            more = paid[-1] > costs["epsilon"]
            assert (
                f"released from the same fit before, ε is {paid[-1]:g}." in told
            ) == more
    # nor is more paid than there is: 50 releases of a few draws show all of them
    assert len(used) == held and paid[3:] == [held * one] * 2
    # a copy under other settings has the same draws, and knows of the same calls
    assert replace(result)._released is result._released


def test_bounds_and_diagnostics_are_those_of_the_terms():
    weights = np.r_[0.0, OWN[1:]]
    result = run(censor=CENSOR, weights=weights, independent_weights=True)
    log_lik = result.synthesizer.log_likelihood(result.draws).values[0]
    terms = -2.0 + np.tanh(weights * log_lik + 2.0)
    terms[:, 0] = 0.0  # a record of weight 0 has none
    assert result.record_bounds == pytest.approx(np.abs(terms).max(axis=0))
    assert result.oscillation_bound == pytest.approx(np.ptp(terms, axis=0).max())
    # one who has only the fit gets the same bounds, and no strict ε
    again = bound_fit(result.synthesizer, result.draws, weights, censor=CENSOR)
    assert (
        np.array_equal(again.record_bounds, result.record_bounds) and not again.strict
    )
    # nor where all weights are 1: those of a fit may be so by chance
    assert not bound_fit(
        result.synthesizer, result.draws, weights**0, censor=CENSOR
    ).strict
    assert result.local_bound <= 3.0 < np.abs(log_lik).max()


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({}, "strict"),
        (INSIDE, "strict"),
        # the rule's weights react, also where it is asked for at its defaults
        *[
            ({name: value}, "local")
            for name, value in (*RULE.items(), ("weights", OWN))
        ],
        (INSIDE | {"censor": None}, "local"),
    ],
)
def test_only_weights_that_nobody_else_moves_are_strict(settings, kind):
    result = run(**{"censor": CENSOR} | settings)
    assert result.guarantee.kind == kind and result.strict == (kind == "strict")
    assert (result.unweighted is not None) == (
        "weights" not in settings and kind == "local"
    )
    # the fit that gives the weights has no limits
    assert result.unweighted is None or np.array_equal(
        result.weights, run(**settings).weights
    )
    synthetic, not_covered = (
        result.synthesize(3, random_seed=1),
        words(result.guarantee),
    )
    told = release_statement(result, synthetic)
    for mark in "epsilon may be published", "width of the limits;", "ε counts twice":
        assert (mark in words(result) + not_covered) == (kind == "strict")
    step = "multiplied by a weight and kept between" if settings else "was kept between"
    assert (step in told) == (result.censor is not None)
    if kind == "strict":
        assert synthetic.attrs == {"releases": 3, "epsilon": 6.0, "epsilon_total": 6.0}
        assert "The release is ε-differentially private" in told
        assert ("whoever gave the weights asserts" in not_covered) == (
            "weights" in settings
        )
        assert "ε = 3 × 2 = 6, for every possible database" in told
        with pytest.raises(
            ValueError, match="^strict_epsilon is for runs without limits"
        ):
            release_statement(result, synthetic, strict_epsilon=2.0)
    else:
        # computed from the records, and larger where the records' terms are
        assert result.epsilon() == 2 * result.local_bound
        assert synthetic.attrs == {"releases": 3}
        assert "CONFIDENTIAL" in not_covered and "the weights of others" in not_covered
        assert "no limit is claimed" in told and "ε =" not in told


def test_an_unweighted_fit_is_refused_where_no_weights_are_computed_from_it():
    first = run()
    # also without limits: the statement would say that the weights came from all records
    for settings in {"censor": CENSOR}, {"censor": CENSOR} | INSIDE, {"weights": OWN}:
        mechanism = ppm.PseudoPosteriorMechanism(first.synthesizer, **settings)
        with pytest.raises(
            ValueError, match="^unweighted is not used here, because no weights"
        ):
            mechanism.run(unweighted=first.unweighted)
    again = ppm.PseudoPosteriorMechanism(first.synthesizer, censor=CENSOR, scale=1.0)
    assert (
        again.run(draws=10, unweighted=first.unweighted).unweighted is first.unweighted
    )


def stuck(mean):
    """Both chains have the same largest term: that of a record far below the limits."""
    return np.sort(mean.ravel()).reshape(mean.shape)


chains = partial(Chains, np.r_[COUNTS, 5_000], prior=PRIOR)


@pytest.mark.parametrize("smooth", [True, False])
def test_chains_that_disagree_hold_back_a_strict_result_too(smooth):
    censor = replace(CENSOR, smooth=smooth)
    result, held = (run(chains(change), censor=censor) for change in (np.copy, stuck))
    assert result.strict and not held.strict
    # of the largest term alone nothing would be seen
    assert (
        held.diagnostics.r_hat_log_likelihood > 1.5
        and not held.diagnostics.r_hat > 1.05
    )
    with pytest.raises(ppm.ChainsDisagreeError, match="R-hat is"):
        held.epsilon()
    with pytest.raises(ppm.ChainsDisagreeError):
        release_statement(held, result.synthesize(1))
    # looked at all the same it is marked, and no ε for every database goes with it
    shown = replace(held, allow_disagreement=True)
    assert not shown.strict and shown.guarantee.kind == "local"
    with pytest.warns(UserWarning, match="epsilon of these databases is not known"):
        assert shown.synthesize(2, random_seed=1).attrs == {"releases": 2}


def test_under_limits_a_single_divergence_is_a_fault():
    model = Chains(COUNTS, prior=PRIOR, diverging=1)
    fault = "1 of 400 draws diverged, and under limits none may"
    assert run(model).chains_agree
    held, free = [
        run(model, censor=CENSOR, allow_disagreement=free) for free in (False, True)
    ]
    assert fault in words(held) and not held.strict
    # the number is computed from the records: it is printed inside, and not published
    assert fault in words(free) and free.strict
    assert "diverge" not in release_statement(free, free.synthesize(1))


def test_a_release_that_was_decided_on_before_the_fit_is_strict_and_says_that_nothing_gated_it():
    told = set()
    for change in stuck, np.copy:
        free = run(chains(change), censor=CENSOR, allow_disagreement=True)
        assert free.chains_agree == (change is np.copy) and free.strict
        # a warning would be an error here, and so a gate
        release = free.synthesize(2, random_seed=1)
        assert release.attrs == {"releases": 2, "epsilon": 4.0, "epsilon_total": 4.0}
        told.add((words(free.guarantee), release_statement(free, release)))
    # what is published is the same whatever the chains did
    ((guarantee, statement),) = told
    assert "exact draws" in guarantee and "If its draws were exact" in statement
    for text in guarantee, statement:
        assert (
            "not gated by the records" in text and "and the chains agreed" not in text
        )
    # weights that react make it local as ever
    reacting = run(
        chains(), censor=CENSOR, weights=np.ones(62), allow_disagreement=True
    )
    assert not reacting.strict


@pytest.mark.parametrize("kind", [ppm.GammaPoisson, Chains])
def test_the_statement_of_a_strict_result_says_what_its_guarantee_says(kind):
    result = run(kind(COUNTS), censor=CENSOR)
    told, guarantee = release_statement(result, result.synthesize(3)), result.guarantee
    for sentence in guarantee.neighbour, *guarantee.not_covered:
        assert sentence in told and sentence in words(guarantee)
    # of chains only there is something to agree on
    assert ("Markov" in told) == ("chains agreed" in told) == (kind is Chains)


def test_limits_where_no_term_moves_are_warned_of():
    # the log-probability of a count is never above 0
    nowhere = ppm.Censoring(3, 4, smooth=False)
    # also a local release that was decided on before, since its ε is not for publication
    local = {"weights": OWN, "allow_disagreement": True}
    for settings in {"synthesizer": Chains(COUNTS, prior=PRIOR)}, local:
        with pytest.warns(
            UserWarning, match="^censor: over these draws no record's te"
        ) as warned:
            run(censor=nowhere, **settings)
        # once, at the line of the caller's own file
        assert [warning.filename for warning in warned] == [test_mechanism.__file__]
    # warnings are errors here: none where no record has a term that could move, or where it would
    # gate a release, of exact draws or decided on before
    run(censor=nowhere, weights=np.zeros(COUNTS.size))
    assert (
        run(censor=nowhere).strict
        and run(censor=nowhere, allow_disagreement=True).strict
    )
    # a hundredth of the width decides
    wide = ppm.Censoring(-300, 0)
    ppm.censoring.warn_if_nothing_moves(wide, 3.1)
    with pytest.warns(UserWarning, match="moves by more than 1%"):
        ppm.censoring.warn_if_nothing_moves(wide, 2.9)
