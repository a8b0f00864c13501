"""Every public function that draws takes the same kinds of ``random_seed``, to the same effect.

PyMC's fits are in test_every_model.
"""

import numpy as np
import pytest
from properties.test_odd_inputs import same
from test_messages import ARGUMENTS, FUNCTIONS

from ppm._random import generator, seed_sequence, streams


@pytest.mark.parametrize("name", [n for n, given in ARGUMENTS.items() if "random_seed" in given])
def test_the_kinds_of_seed_agree(name):
    def drawn(seed):
        return FUNCTIONS[name](**ARGUMENTS[name] | {"random_seed": seed})

    right, sequence = drawn(11), np.random.SeedSequence(11)
    assert same(drawn(sequence), right) and same(drawn(sequence), right)
    source = np.random.SeedSequence(11)
    rng = np.random.default_rng(source)
    first, second = drawn(rng), drawn(rng)
    # a Generator moves on; started again, it gives the same once more
    assert not same(first, second) and same(first, drawn(np.random.default_rng(11)))
    assert sequence.n_children_spawned == source.n_children_spawned == 0
    assert not same(drawn(None), drawn(None))


def test_what_was_drawn_before_moves_a_generator_on():
    here, there = (np.random.default_rng(3) for _ in range(2))
    there.random()
    assert seed_sequence(here).entropy != seed_sequence(there).entropy
    assert generator(here) is here


def test_streams_are_those_of_the_seed_and_differ():
    children = streams(np.random.SeedSequence(5, spawn_key=(2,), pool_size=8), 3)
    assert [child.spawn_key for child in children] == [(2, 0), (2, 1), (2, 2)]
    assert {child.pool_size for child in children} == {8}
    assert len({tuple(child.generate_state(2)) for child in children}) == 3
    assert seed_sequence([1, 2]).entropy == [1, 2]


@pytest.mark.parametrize(
    ("wrong", "shown"),
    [(np.random.RandomState(1), "RandomState"), (np.ones(3), r"ndarray of shape \(3,\)")],
)
def test_a_wrong_seed_is_named_but_an_array_is_not_printed(wrong, shown):
    with pytest.raises(ValueError, match=f"^random_seed must be .*; got {shown}$"):
        seed_sequence(wrong)
