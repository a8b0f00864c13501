"""The mechanism with limits: what is strict by its settings, and what chains hold back.

That a strict result has its width as ε, and what releases cost, is in laws.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import test_mechanism
import xarray as xr
from test_mechanism import words

import ppm
from ppm.disclosure import release_statement

COUNTS = np.r_[np.random.default_rng(7).poisson(5, 60), 30]
CENSOR = ppm.Censoring(-3.0, -1.0)
PRIOR = {"shape": 2.0, "rate": 0.5}


class Chains(ppm.GammaPoisson):
    """Two chains of the closed form, which a test changes."""

    independent_draws = False

    def __init__(self, counts, change=np.copy, diverging=0):
        super().__init__(counts, **PRIOR)
        self.change, self.diverging = change, diverging

    def fit(self, terms=None, *, draws=1000, random_seed=None, progress=None):
        rng = np.random.default_rng(random_seed)
        mean = self.change(self.posterior(terms).rvs((2, draws), rng))
        diverging = np.arange(mean.size).reshape(mean.shape) < self.diverging
        dims = ("chain", "draw")
        stats = xr.Dataset({"diverging": (dims, diverging)})
        return self.fit_of(xr.Dataset({"mu": (dims, mean)}), sample_stats=stats)


def run(synthesizer=None, **settings):
    return test_mechanism.run(
        synthesizer or ppm.GammaPoisson(COUNTS, **PRIOR), **settings
    )


OWN = np.linspace(0.2, 1.0, COUNTS.size)
INSIDE = {"weights": OWN, "independent_weights": True}
RULE = {"scale": 1.0, "shift": 0.0, "truncate_at": 4.0}


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
    assert (step in told) == (result.terms.limits is not None)
    if kind == "strict":
        assert "The release is ε-differentially private" in told
        assert ("whoever gave the weights asserts" in not_covered) == (
            "weights" in settings
        )
        assert "ε = 3 × 2 = 6, for every possible database" in told
    else:
        assert "CONFIDENTIAL" in not_covered and "the weights of others" in not_covered
        assert "no limit is claimed" in told and "ε =" not in told


def test_an_unweighted_fit_is_refused_where_no_weights_are_computed_from_it():
    first = run()
    # also without limits: the statement would say that the weights came from all records
    for settings in {"censor": CENSOR}, {"censor": CENSOR} | INSIDE, {"weights": OWN}:
        mechanism = ppm.PseudoPosteriorMechanism(first.model, **settings)
        with pytest.raises(
            ValueError, match="^unweighted is not used here, because no weights"
        ):
            mechanism.run(unweighted=first.unweighted)
    again = ppm.PseudoPosteriorMechanism(first.model, censor=CENSOR, scale=1.0)
    assert (
        again.run(draws=10, unweighted=first.unweighted).unweighted is first.unweighted
    )


def stuck(mean):
    """Both chains have the same largest term: that of a record far below the limits."""
    return np.sort(mean.ravel()).reshape(mean.shape)


chains = partial(Chains, np.r_[COUNTS, 5_000])


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
    # another view of a result knows of the same releases
    assert shown._released is held._released
    with pytest.warns(UserWarning, match="epsilon of these databases is not known"):
        assert shown.synthesize(2, random_seed=1).attrs == {"releases": 2}


def test_under_limits_a_single_divergence_is_a_fault():
    model = Chains(COUNTS, diverging=1)
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
    for settings in {"synthesizer": Chains(COUNTS)}, local:
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
    moves = ppm.Terms(np.ones(3), ppm.Censoring(-300, 0))
    ppm.mechanism._warn_if_nothing_moves(moves, 3.1)
    with pytest.warns(UserWarning, match="moves by more than 1%"):
        ppm.mechanism._warn_if_nothing_moves(moves, 2.9)
