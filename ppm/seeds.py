"""What makes results reproducible: seeds, and the order of sums."""

import contextlib
import functools

import numpy as np

from ppm.checks import shown


def one_thread():
    """Context in which linear algebra uses one thread, which fixes the order of sums.

    With a few hundred columns more threads gain little.
    """
    return _libraries().limit(limits=1)


@functools.cache
def _libraries():
    """NumPy's and SciPy's libraries of linear algebra: to find them takes a millisecond."""
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def seed_sequence(random_seed):
    """Return the SeedSequence for a ``random_seed``; do not spawn from it, it may be the caller's.

    None gives a fresh one, a Generator another one each time, from its next numbers.
    """
    if isinstance(random_seed, np.random.SeedSequence):
        return random_seed
    if isinstance(random_seed, np.random.Generator):
        # not spawned: that would change the SeedSequence that the caller made the Generator from
        return np.random.SeedSequence(random_seed.integers(2**63, size=4).tolist())
    if not isinstance(random_seed, (bool, np.bool_, np.random.RandomState)):
        with contextlib.suppress(TypeError, ValueError):
            return np.random.SeedSequence(random_seed)
    # text may be a secret seed
    told = "text" if isinstance(random_seed, str) else shown(random_seed)
    raise ValueError(
        "random_seed must be a whole number of at least 0, a SeedSequence, a "
        f"Generator or None; got {told}"
    )


def copied(random_seed):
    """Return a SeedSequence that may be spawned from: the same one each time, but for None."""
    seed = seed_sequence(random_seed)
    return np.random.SeedSequence(
        seed.entropy, spawn_key=seed.spawn_key, pool_size=seed.pool_size
    )


def streams(random_seed, count):
    """Return ``count`` independent SeedSequences, the same for the same int or SeedSequence."""
    return copied(random_seed).spawn(count)


def generator(random_seed):
    """Return a Generator to draw from: the caller's own, which moves on, or a new one."""
    if isinstance(random_seed, np.random.Generator):
        return random_seed
    return np.random.default_rng(seed_sequence(random_seed))
