"""Data of the assessment: each student's own, from the student's name."""

import zlib
from types import SimpleNamespace

import numpy as np
import pandas as pd

import ppm


def data_of(student):
    """What the tasks of one student compute with."""
    return data(zlib.crc32(str(student).strip().lower().encode()))


def data(seed):
    """The same, from a seed."""
    first, second, rest = np.random.SeedSequence(seed).spawn(3)
    rng = np.random.default_rng(rest)
    counts = np.sort(rng.poisson(6.0, 10))
    counts[-1] += 12
    model = ppm.GammaPoisson(counts, shape=1.0, rate=0.1)
    unweighted = ppm.fit(model, ppm.Terms(np.ones(10)), draws=400, random_seed=first)
    weights = ppm.record_weights(unweighted.record_bounds, scale=0.9)
    weighted = ppm.fit(model, ppm.Terms(weights), draws=400, random_seed=second)
    distance = rng.normal(11.0, 1.0, 6)
    gap = rng.permutation([-4.5, -3.6, -0.8, 0.5, 3.8, 4.7]) + rng.normal(0.0, 0.2, 6)
    errors = rng.uniform(0.6, 1.2, (2, 6))
    estimates = rng.normal(rng.uniform(36.0, 40.0), 0.5, 5)
    return SimpleNamespace(
        counts=counts,
        log_lik=model.log_p(unweighted.theta),
        weighted_log_lik=model.log_p(weighted.theta),
        scale=0.9,
        releases=int(rng.integers(3, 7)),
        prior=float(rng.integers(10, 40)) / 1000,
        epsilon=float(rng.integers(8, 14)) / 10,
        bounds=rng.normal(3.45, 0.08, 250),
        large_epsilon=float(rng.integers(700, 712)) / 100,
        distances=pd.DataFrame(
            {
                "DPweighted": distance,
                "its error": errors[0],
                "EMweighted": distance + gap,
                "error of that": errors[1],
            },
            index=pd.Index(
                [f"setting {k}" for k in range(1, 7)], name="percentile off by, %"
            ),
        ).round(2),
        runs=200,
        seen_with=int(rng.integers(90, 140)),
        seen_without=int(rng.integers(5, 25)),
        budget=float(rng.integers(3, 7)) / 2,
        highest=-1.0,
        terms=-rng.gamma(4.0, 0.35, 61),
        weight=float(rng.integers(3, 7)) / 20,
        estimates=estimates.round(3),
        variances=rng.uniform(0.08, 0.12, 5).round(4),
    )
