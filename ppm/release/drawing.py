"""Draws of as many values as there are records, which vary less than independent ones."""

import numpy as np
import pandas as pd


def rows_of(labels):
    """Rows of each label, increasing, in the order in which labels occur."""
    codes, names = pd.factorize(pd.Index(labels))
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes))[:-1]
    return dict(zip(names.tolist(), np.split(order, ends), strict=True))


def places(labels, releases, rng):
    """Places from 0 to 1 at which to read a distribution, for each record (releases, records).

    Of k records with the same label one has a place in each k-th part, which one is random:
    systematic sampling. Each place alone is uniform, so a value read there has the distribution's
    law; the records of a label together have its mean and shares but for one part in k. It looks at
    public labels only, and costs no ε.
    """
    codes = pd.factorize(pd.Index(labels))[0]
    sizes = np.bincount(codes)
    first = np.cumsum(sizes) - sizes
    drawn = np.empty((releases, codes.size))
    for release in drawn:
        order = np.argsort(codes + rng.random(codes.size))
        release[order] = np.arange(codes.size) - first[codes[order]]
        release += rng.random(codes.size)
    return np.minimum(drawn / sizes[codes], np.nextafter(1.0, 0.0))


def read_off(values, where):
    """Of increasing values, all equally likely, those at these places."""
    return values[(where * len(values)).astype(np.intp)]
