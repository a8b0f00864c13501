"""Every public function that draws takes the same kinds of ``random_seed``, to the same effect.

Fits and releases of every model are in laws, what is no seed in test_messages.
"""

import numpy as np
import pytest
from properties.test_odd_inputs import same
from test_messages import ARGUMENTS, FUNCTIONS

import ppm

# weights that are computed take fits of their own
OWN = {"audits.sampled": {"weighting": ppm.record_weights}}


@pytest.mark.parametrize(
    "name", [n for n, given in ARGUMENTS.items() if "random_seed" in given]
)
def test_the_kinds_of_seed_agree(name):
    def drawn(seed):
        return FUNCTIONS[name](
            **ARGUMENTS[name] | OWN.get(name, {}) | {"random_seed": seed}
        )

    right, sequence = drawn(11), np.random.SeedSequence(11)
    assert same(drawn(sequence), right) and same(drawn(sequence), right)
    source = np.random.SeedSequence(11)
    rng = np.random.default_rng(source)
    first, second = drawn(rng), drawn(rng)
    # a Generator moves on; started again, it gives the same once more
    assert not same(first, second) and same(first, drawn(np.random.default_rng(11)))
    assert sequence.n_children_spawned == source.n_children_spawned == 0
    assert not same(drawn(None), drawn(None))
    # children of one sequence are streams of their own
    first, second = map(drawn, sequence.spawn(2))
    assert not (same(first, second) or same(first, right) or same(second, right))


def test_a_membership_test_draws_each_release_from_a_stream_of_its_own():
    seen = set()

    def run(seed):
        seen.add(tuple(seed.generate_state(4)))
        return np.random.default_rng(seed).normal()

    claim = {"confidence": 0.9, "delta": 0.01}
    evidence = ppm.audits.membership_test(
        run, run, float, runs=30, random_seed=7, **claim
    )
    # 30 releases with and 30 without the record, half of them to choose the event
    assert len(seen) == 60 and evidence.samples == (15, 15)
    assert claim.items() <= vars(evidence).items()
