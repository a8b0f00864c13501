"""Every public function that draws takes the same kinds of ``random_seed``, to the same effect."""

import inspect

import numpy as np
import pytest
from public_names import book_names, public_names

import ppm
from ppm._random import generator, seed_sequence, streams
from ppm_book import survey

RNG = np.random.default_rng(4)
COUNTS = RNG.poisson(6, 12)
VALUES = RNG.normal(size=(2, 12))
POISSON = ppm.GammaPoisson(COUNTS)
MIXTURE = ppm.FiniteMixture(
    VALUES[0], np.ones((12, 1)), components=2, warmup=5, parallel=False
)
FIT = POISSON.fit(draws=50, random_seed=0)
# a prior that is not nearly flat, as limits need
PROPER = ppm.GammaPoisson(COUNTS, shape=2.0, rate=0.4)
MIXTURE_FIT = MIXTURE.fit(draws=50, random_seed=0)
RESULT = ppm.PseudoPosteriorMechanism(POISSON).run(draws=50, random_seed=0)
HOUSEHOLDS = survey.simulate(40, random_seed=0)


def one_normal(seed):
    return np.random.default_rng(seed).normal()


def scores_of_a_test(seed):
    scores = []

    def statistic(release):
        scores.append(release)
        return release

    ppm.audits.membership_test(one_normal, one_normal, statistic, runs=20, random_seed=seed)
    return scores


#: function or method -> what it draws from a seed, as numbers
CALLS = {
    "audits.exact": lambda seed: ppm.audits.exact(
        COUNTS, public=(3.0, 9.0), draws=20, weight_draws=2, random_seed=seed
    )["bound"],
    "audits.sampled": lambda seed: list(
        ppm.audits.sampled(POISSON, [0], draws=40, random_seed=seed).estimates.values()
    ),
    "audits.membership_test": scores_of_a_test,
    "PseudoPosteriorMechanism.run": lambda seed: (
        ppm.PseudoPosteriorMechanism(POISSON).run(draws=20, random_seed=seed).record_bounds
    ),
    "MechanismResult.synthesize": lambda seed: RESULT.synthesize(2, random_seed=seed),
    "utility.resample": lambda seed: ppm.utility.resample(
        VALUES, "mean", resamples=5, random_seed=seed
    ),
    "survey.simulate": lambda seed: survey.simulate(9, random_seed=seed).table["income"],
    "ConsumerExpenditure.subsample": lambda seed: HOUSEHOLDS.subsample(9, random_seed=seed).table[
        "income"
    ],
    "histogram_release": lambda seed: ppm.histogram_release(
        VALUES[0], (-2, 2), bins=4, epsilon=1.0, releases=2, random_seed=seed
    ).synthetic,
    "GammaPoisson.fit": lambda seed: POISSON.fit(draws=5, random_seed=seed)["posterior"]["mu"],
    "GammaPoisson.predict": lambda seed: POISSON.predict(FIT, releases=2, random_seed=seed),
    "FiniteMixture.fit": lambda seed: MIXTURE.fit(draws=5, random_seed=seed)["posterior"]["pi"],
    "FiniteMixture.predict": lambda seed: MIXTURE.predict(
        MIXTURE_FIT, releases=2, random_seed=seed
    ),
}
# of PyMC, which test_every_model goes through
ELSEWHERE = {"Synthesizer.fit", "Synthesizer.predict"} | {
    f"{name}.{method}"
    for name in ("PyMCSynthesizer",)
    for method in ("fit", "predict")
}


def drawn(name, seed):
    return np.asarray(CALLS[name](seed), dtype=np.float64)


def test_no_public_function_that_draws_is_left_out():
    found = set()
    for name, value in (public_names() | book_names()).items():
        kind = name.rpartition(".")[2]
        methods = vars(value).items() if inspect.isclass(value) else ()
        for label, function in [(name, value), *((f"{kind}.{m}", f) for m, f in methods)]:
            if inspect.isfunction(function) and "random_seed" in inspect.signature(
                function
            ).parameters:
                found.add(label)
    assert found == CALLS.keys() | ELSEWHERE


@pytest.mark.parametrize("name", CALLS)
def test_the_kinds_of_seed_agree(name):
    number = drawn(name, 11)
    sequence = np.random.SeedSequence(11)
    for _ in range(2):
        assert np.array_equal(drawn(name, sequence), number, equal_nan=True)
    assert sequence.n_children_spawned == 0
    source = np.random.SeedSequence(11)
    rng = np.random.default_rng(source)
    first, second = (drawn(name, rng) for _ in range(2))
    # a Generator moves on; started again, it gives the same once more
    assert not np.array_equal(first, second, equal_nan=True)
    assert np.array_equal(first, drawn(name, np.random.default_rng(11)), equal_nan=True)
    assert source.n_children_spawned == 0
    assert np.shape(drawn(name, None)) == np.shape(number)
    for wrong in (-1, 1.5, "11", True):
        with pytest.raises(ValueError, match="^random_seed must be a whole number of at least 0"):
            CALLS[name](wrong)


def test_what_was_drawn_before_moves_a_generator_on():
    here, there = (np.random.default_rng(3) for _ in range(2))
    there.random()
    assert seed_sequence(here).entropy != seed_sequence(there).entropy
    assert generator(here) is here


def test_streams_are_those_of_the_seed_and_differ():
    children = streams(np.random.SeedSequence(5, spawn_key=(2,), pool_size=8), 3)
    assert [child.spawn_key for child in children] == [(2, 0), (2, 1), (2, 2)]
    assert {child.pool_size for child in children} == {8}
    states = {tuple(child.generate_state(2)) for child in children}
    assert len(states) == 3
    assert [s.spawn_key for s in streams(5, 2)] == [(0,), (1,)]
    assert seed_sequence([1, 2]).entropy == [1, 2]
    assert streams(None, 1)[0].entropy != streams(None, 1)[0].entropy


def test_a_wrong_seed_is_named_but_an_array_is_not_printed():
    for wrong, shown in ((np.random.RandomState(1), "RandomState"), (np.ones(3), "ndarray")):
        with pytest.raises(ValueError, match=f"^random_seed must be .*; got .*{shown}.*$"):
            seed_sequence(wrong)
