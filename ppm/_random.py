"""Seeds: what ``random_seed`` may be, and the streams it gives."""

import numbers

import numpy as np

from ppm._validation import shown


def seed_sequence(random_seed):
    """Return the SeedSequence for a ``random_seed``; do not spawn from it, it may be the caller's.

    Parameters
    ----------
    random_seed : int, SeedSequence, Generator or None
        A whole number of at least 0, or a list of such, is the entropy; None gives a fresh
        SeedSequence. A SeedSequence is returned as it is. A Generator supplies the entropy from its
        next numbers, so that each call gives another SeedSequence.
    """
    if isinstance(random_seed, np.random.SeedSequence):
        return random_seed
    if isinstance(random_seed, np.random.Generator):
        # not spawned: that would change the SeedSequence that the caller made the Generator from
        return np.random.SeedSequence(random_seed.integers(2**63, size=4).tolist())
    if not isinstance(random_seed, (bool, np.bool_, np.random.RandomState)):
        try:
            return np.random.SeedSequence(random_seed)
        except (TypeError, ValueError):
            pass
    told = shown(random_seed) if isinstance(random_seed, numbers.Number) else type(random_seed)
    raise ValueError(
        "random_seed must be a whole number of at least 0, a SeedSequence, a Generator or None; "
        f"got {told}"
    )


def streams(random_seed, count):
    """Return ``count`` independent SeedSequences, the same for the same int or SeedSequence."""
    # from a copy: a SeedSequence that was spawned from gives other streams the next time
    return numbered(random_seed).spawn(count)


def numbered(random_seed, *place):
    """Return the SeedSequence with the numbers ``place``, each 0 or more, as further spawn key.

    Different places have independent streams, in whatever order they are asked for. Without a
    place it is a copy.
    """
    seed = seed_sequence(random_seed)
    return np.random.SeedSequence(
        seed.entropy, spawn_key=(*seed.spawn_key, *place), pool_size=seed.pool_size
    )


def generator(random_seed):
    """Return a Generator to draw from: the caller's own, which moves on, or a new one."""
    if isinstance(random_seed, np.random.Generator):
        return random_seed
    return np.random.default_rng(seed_sequence(random_seed))
