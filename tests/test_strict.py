"""The mechanism with censored terms: what is strict, what is local, and what may leave."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

import ppm
from ppm.mechanism import bound_fit

COUNTS = np.r_[np.random.default_rng(7).poisson(5, 60), 30]
CENSOR = ppm.Censoring(-3.0, -1.0)


def run(synthesizer=None, *, seed=1, draws=300, **settings):
    synthesizer = synthesizer or ppm.GammaPoisson(COUNTS, shape=2.0, rate=0.5)
    mechanism = ppm.PseudoPosteriorMechanism(synthesizer, **settings)
    return mechanism.run(draws=draws, random_seed=seed)


def own_weights():
    bounds = ppm.GammaPoisson(COUNTS).oscillations_within(2.0, 8.0)
    return ppm.mapped_weights(bounds, ppm.weights.capped_map(1.0))


class Chains(ppm.GammaPoisson):
    """Several chains of the censored posterior, which agree or not."""

    independent_draws = False
    warmup, chains = 100, 2
    stuck = False

    def fit(self, weights=None, *, censor=None, **settings):
        fit = super().fit(weights, censor=censor, **settings)
        mu = fit["posterior"]["mu"].values.reshape(2, -1)
        if self.stuck:
            # both chains have the same largest term: that of a record far below the limits
            mu = np.sort(mu.ravel()).reshape(2, -1)
        mu = xr.Dataset({"mu": (("chain", "draw"), mu)})
        log_lik = self.log_likelihood_at(mu).to_dataset(name="counts")
        return xr.DataTree.from_dict({"posterior": mu, "log_likelihood": log_lik})


class Counting(ppm.GammaPoisson):
    """Notes every fit that is made."""

    def fit(self, weights=None, *, censor=None, **settings):
        self.fits = [*getattr(self, "fits", ()), (weights, censor)]
        return super().fit(weights, censor=censor, **settings)


def test_censoring_alone_is_strict_with_weights_of_one_and_a_single_fit():
    synthesizer = Counting(COUNTS, shape=2.0, rate=0.5)
    result = run(synthesizer, censor=CENSOR)
    assert result.strict and result.unweighted is None and np.all(result.weights == 1)
    ((weights, censor),) = synthesizer.fits
    assert censor is CENSOR and np.all(weights == 1)
    assert [result.epsilon(m) for m in (1, 3, 20)] == [2.0, 6.0, 40.0]
    guarantee = result.guarantee
    assert (guarantee.kind, guarantee.epsilon) == ("strict", CENSOR.width)
    assert "is not used" in guarantee.neighbour
    headline = "strict: epsilon 2 for one release, for every database"
    assert str(guarantee).startswith(headline) and str(result).startswith(headline)
    assert all(sentence in " ".join(str(guarantee).split()) for sentence in guarantee.not_covered)
    assert "confidential" in str(result)


def test_the_strict_epsilon_is_the_same_for_every_database_and_the_local_one_is_not():
    results = [
        run(ppm.GammaPoisson(counts, shape=2.0, rate=0.5), censor=CENSOR)
        for counts in (COUNTS, COUNTS[:5], [0, 0], [0, 5_000])
    ]
    assert {result.epsilon() for result in results} == {2.0}
    assert len({result.local_bound for result in results}) > 1
    # a record's term moves by W at most, whichever draws there are
    assert all(result.oscillation_bound <= CENSOR.width for result in results)
    uncensored = run(ppm.GammaPoisson(COUNTS, shape=2.0, rate=0.5), weights=np.ones(COUNTS.size))
    assert uncensored.oscillation_bound > CENSOR.width


def test_bounds_and_diagnostics_are_those_of_the_terms():
    weights = np.r_[0.0, own_weights()[1:]]
    result = run(censor=CENSOR, weights=weights, independent_weights=True)
    log_lik = result.synthesizer.log_likelihood(result.draws).values[0]
    terms = -2.0 + np.tanh(weights * log_lik + 2.0)
    terms[:, 0] = 0.0  # a record of weight 0 has none
    assert result.record_bounds == pytest.approx(np.abs(terms).max(axis=0))
    assert result.oscillation_bound == pytest.approx(np.ptp(terms, axis=0).max())
    # one who has only the fit gets the same bounds, and no strict ε
    again = bound_fit(result.synthesizer, result.draws, weights, censor=CENSOR)
    assert np.array_equal(again.record_bounds, result.record_bounds) and not again.strict
    assert result.local_bound <= 3.0 < np.abs(log_lik).max()


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({}, "strict"),
        ({"weights": own_weights(), "independent_weights": True}, "strict"),
        ({"weights": own_weights()}, "local"),
        ({"scale": 1.0}, "local"),
        ({"shift": 0.0}, "local"),
        ({"scale": 0.5, "shift": -0.3}, "local"),
        ({"truncate_at": 4.0}, "local"),
        ({"weights": own_weights(), "independent_weights": True, "censor": None}, "local"),
    ],
)
def test_only_weights_that_nobody_else_moves_are_strict(settings, kind):
    result = run(**{"censor": CENSOR} | settings)
    assert result.guarantee.kind == kind and result.strict == (kind == "strict")
    ruled = settings.keys() & {"scale", "shift", "truncate_at"}
    assert (result.unweighted is None) == (not ruled)
    synthetic = result.synthesize(3, random_seed=1)
    if kind == "strict":
        assert synthetic.attrs == {"releases": 3, "epsilon": 6.0}
        told = "whoever gave the weights asserts" in " ".join(result.guarantee.not_covered)
        assert told == ("weights" in settings)
    else:
        # computed from the records, and larger where the records' terms are
        assert result.epsilon() == 2 * result.local_bound
        assert synthetic.attrs == {"releases": 3}
        assert "CONFIDENTIAL" in str(result.guarantee)
        assert "weights of others" in " ".join(result.guarantee.not_covered)


class Strange(ppm.GammaPoisson):
    def fit(self, weights=None, *, draws=1000, random_seed=None, progress=False):
        raise AssertionError("no fit may be started")


def test_a_synthesizer_that_cannot_censor_is_refused_before_any_work():
    with pytest.raises(TypeError, match=r"^censor: the fit\(\) of Strange takes none") as error:
        ppm.PseudoPosteriorMechanism(Strange(COUNTS), censor=CENSOR)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"censor": (-3, -1)}, "^censor must be a ppm.Censoring"),
        ({"independent_weights": True}, "^independent_weights says"),
        ({"censor": CENSOR, "independent_weights": True}, "^independent_weights says"),
        ({"censor": CENSOR, "independent_weights": "yes"}, "^independent_weights must be True"),
        (
            {"censor": CENSOR, "weights": np.ones(COUNTS.size), "scale": 0.5},
            "^weights replaces scale",
        ),
    ],
)
def test_wrong_settings_are_refused_in_one_line(settings, message):
    with pytest.raises(ValueError, match=message) as error:
        run(Strange(COUNTS), **settings) if "censor" not in settings else run(**settings)
    assert "\n" not in str(error.value)


def test_an_unweighted_fit_is_refused_where_no_weights_are_computed_from_it():
    first = run()
    inside = {"weights": own_weights(), "independent_weights": True}
    # also without limits: the statement would say that the weights came from all records
    for settings in {"censor": CENSOR}, {"censor": CENSOR, **inside}, {"weights": own_weights()}:
        mechanism = ppm.PseudoPosteriorMechanism(first.synthesizer, **settings)
        with pytest.raises(ValueError, match="^unweighted is not used here, because no weights"):
            mechanism.run(draws=10, unweighted=first.unweighted)
    again = ppm.PseudoPosteriorMechanism(first.synthesizer, censor=CENSOR, scale=1.0)
    assert again.run(draws=10, unweighted=first.unweighted).unweighted is first.unweighted


@pytest.mark.parametrize("smooth", [True, False])
def test_chains_that_disagree_hold_back_a_strict_result_too(smooth):
    synthesizer = Chains(np.r_[COUNTS, 5_000], shape=2.0, rate=0.5)
    censor = replace(CENSOR, smooth=smooth)
    result = run(synthesizer, draws=400, censor=censor)
    assert result.strict
    synthesizer.stuck = True
    held = run(synthesizer, draws=400, censor=censor)
    assert not held.strict and held.diagnostics.r_hat_log_likelihood > 1.5
    # of the largest term alone nothing would be seen
    assert not held.diagnostics.r_hat > 1.05
    for ask in (
        ppm.mechanism.MechanismResult.epsilon,
        lambda held: held.guarantee,
        lambda held: held.synthesize(1),
        lambda held: ppm.disclosure.release_statement(held, result.synthesize(1)),
    ):
        with pytest.raises(ppm.ChainsDisagreeError, match="R-hat is|chains disagree"):
            ask(held)
    # looked at all the same it is marked, and no ε for every database goes with it
    assert not replace(held, allow_disagreement=True).strict
    shown = bound_fit(
        synthesizer, held.draws, held.weights, censor=censor, allow_disagreement=True
    )
    assert shown.guarantee.kind == "local" and "disagree" in shown.guarantee.not_covered[0]
    with pytest.warns(UserWarning, match="epsilon of these databases is not known"):
        assert shown.synthesize(2, random_seed=1).attrs == {"releases": 2}


def test_a_release_that_was_decided_on_before_the_fit_is_strict_and_says_that_nothing_gated_it():
    synthesizer, told = Chains(np.r_[COUNTS, 5_000], shape=2.0, rate=0.5), {}
    mechanism = ppm.PseudoPosteriorMechanism(synthesizer, censor=CENSOR)
    for synthesizer.stuck in True, False:
        gated = mechanism.run(draws=400, random_seed=1)
        free = mechanism.run(draws=400, random_seed=1, allow_disagreement=True)
        assert gated.chains_agree == free.chains_agree == (not synthesizer.stuck)
        assert free.strict and free.epsilon(3) == 6.0
        assert gated.strict == (not synthesizer.stuck)
        # a warning would be an error here, and so a gate
        release = free.synthesize(2, random_seed=1)
        assert release.attrs == {"releases": 2, "epsilon": 4.0}
        statement = ppm.disclosure.release_statement(free, release)
        told[synthesizer.stuck] = str(free.guarantee), statement
        assert ("CHAINS DISAGREE, shown all the same" in str(free)) == synthesizer.stuck
    # what is published is the same whatever the chains did
    assert told[True] == told[False]
    for words in map(str.split, told[True]):
        words = " ".join(words)
        assert "not gated by the records" in words and "decided before" in words
        assert "and the chains agreed" not in words
    told = ppm.disclosure.release_statement(gated, gated.synthesize(2, random_seed=1))
    assert "and the chains agreed" in told
    # weights that react make it local as ever
    reacting = ppm.PseudoPosteriorMechanism(synthesizer, censor=CENSOR, weights=np.ones(62))
    assert not reacting.run(draws=400, random_seed=1, allow_disagreement=True).strict


@pytest.mark.parametrize("kind", [ppm.GammaPoisson, Chains])
def test_the_statement_of_a_strict_result_says_what_its_guarantee_says(kind):
    result = run(kind(COUNTS, shape=2.0, rate=0.5), draws=400, censor=CENSOR)
    release = result.synthesize(3, random_seed=1)
    told, guarantee = ppm.disclosure.release_statement(result, release), result.guarantee
    assert "ε = 3 × 2 = 6, for every possible database" in told and guarantee.neighbour in told
    assert all(sentence in told for sentence in guarantee.not_covered)
    for words in ("seed", "not cryptographic", "imputation or top-coding", "independent"):
        assert words in told
    # of chains only there is something to agree on
    assert ("Markov" in told) == ("chains agreed" in told) == (kind is Chains)
    assert "log-likelihood was kept between two limits" in told
    assert "prior must be restricted" not in told
    with pytest.raises(ValueError, match="^strict_epsilon is for runs without limits"):
        ppm.disclosure.release_statement(result, release, strict_epsilon=2.0)
    inside = run(censor=CENSOR, weights=own_weights(), independent_weights=True)
    told = ppm.disclosure.release_statement(inside, inside.synthesize(1))
    assert "multiplied by a weight and kept between two limits" in told


def test_the_statement_of_a_local_result_claims_nothing():
    local = run(censor=CENSOR, weights=own_weights())
    told = ppm.disclosure.release_statement(local, local.synthesize(3))
    assert "no limit is claimed" in told and "ε =" not in told
    ruled = run(censor=CENSOR, scale=1.0)
    with pytest.raises(ValueError, match="whose weights react to no other record"):
        ppm.disclosure.release_statement(ruled, ruled.synthesize(1), strict_epsilon=2.0)


# the log-probability of a count is never above 0
NOWHERE = ppm.Censoring(3, 4, smooth=False)


def test_limits_where_no_term_moves_are_warned_of():
    model, settings = ppm.GammaPoisson(COUNTS, shape=2.0, rate=0.4), {"draws": 50, "random_seed": 1}
    mechanism = ppm.PseudoPosteriorMechanism(model, censor=NOWHERE)
    told = "^censor: over these draws no record's term moves"
    with pytest.warns(UserWarning, match=told) as warned:
        mechanism.run(**settings)
    # once, at the line of the caller's own file
    assert [warning.filename for warning in warned] == [__file__]
    # warnings are errors here: none where no record has a term that could move, where terms move,
    # or where it would gate a release that was decided on before
    run(model, censor=NOWHERE, weights=np.zeros(COUNTS.size))
    run(model, censor=ppm.Censoring(-4, -2))
    assert mechanism.run(allow_disagreement=True, **settings).strict
