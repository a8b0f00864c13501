"""Seeds: the one place that says what may be given as ``random_seed``, and what it stands for."""

import numbers

import numpy as np

from ppm._validation import shown


def seed_sequence(random_seed):
    """Return the SeedSequence that a caller's ``random_seed`` stands for.

    Parameters
    ----------
    random_seed : int, SeedSequence, Generator or None
        A whole number of at least 0, or a list of such, stands for the SeedSequence with this
        entropy, None for a fresh one. A SeedSequence stands for itself. A Generator gives the next
        of its numbers, so that it stands for another one each time.

    Returns
    -------
    numpy.random.SeedSequence
        To be read, not to be spawned from: it may be the caller's own. See :func:`streams`.

    Raises
    ------
    ValueError
        If it is something else.
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
    """Independent streams, the same ones again for the same int or SeedSequence.

    Parameters
    ----------
    random_seed : int, SeedSequence, Generator or None
        As for :func:`seed_sequence`; a SeedSequence is left as it is.
    count : int
        How many.

    Returns
    -------
    list of numpy.random.SeedSequence
        The streams.
    """
    # a fresh copy: spawning from the caller's object would give other streams the next time
    return numbered(random_seed).spawn(count)


def numbered(random_seed, *place):
    """The stream of a place, the same one again whenever it is asked for.

    Parameters
    ----------
    random_seed : int, SeedSequence, Generator or None
        As for :func:`seed_sequence`; a SeedSequence is left as it is.
    *place : int
        Numbers of at least 0 that say where: two places never share a stream, and none depends on
        which other places are asked for. Without a place it is a fresh copy.

    Returns
    -------
    numpy.random.SeedSequence
        The stream.
    """
    seed = seed_sequence(random_seed)
    return np.random.SeedSequence(
        seed.entropy, spawn_key=(*seed.spawn_key, *place), pool_size=seed.pool_size
    )


def generator(random_seed):
    """A Generator to draw from: the caller's own, which moves on, or a new one.

    Parameters
    ----------
    random_seed : int, SeedSequence, Generator or None
        As for :func:`seed_sequence`.

    Returns
    -------
    numpy.random.Generator
        A new one gives the same numbers again for the same int or SeedSequence.
    """
    if isinstance(random_seed, np.random.Generator):
        return random_seed
    return np.random.default_rng(seed_sequence(random_seed))
