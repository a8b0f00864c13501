"""How long the contraction study takes, beside what a user would otherwise do.

Three things are timed in turn in one process, several rounds, so that a slow moment of the machine
hits all of them:

- the whole study (three mechanisms, every size), by the chapter's own cells;
- drawing its data sets and its posterior draws alone, with nothing computed from them;
- the study from full draws x records matrices, which is what the mechanism does for a model of
  which nothing special is known (a few databases only, scaled up).

Run it with ``make benchmark`` or ``python benchmarks/contraction.py [--rounds 5]``.
"""

import argparse
import time
from pathlib import Path

import nbformat
import numpy as np

import ppm

SIZES = (100, 400, 1600, 6400)
REPLICATES, DRAWS, MEAN, TRUNCATE_AT = 400, 1000, 100.0, 3.5
SAMPLED_DATABASES = 4


CHAPTER = Path(__file__).parents[1] / "notebooks" / "poisson_contraction.ipynb"


def whole_study(seed):
    names = {"seed": seed, "draws": DRAWS, "mean": MEAN, "truncate_at": TRUNCATE_AT}
    for cell in nbformat.read(CHAPTER, 4).cells:
        if cell.id in ("imports", "fit", "one-database"):
            exec(cell.source, names)
    for n in SIZES:
        for number in range(REPLICATES):
            names["one_database"]((n, number))


def draws_alone(seed):
    rng = np.random.default_rng(seed)
    for n in SIZES:
        rng.poisson(MEAN, size=(REPLICATES, n))
        for _ in range(3):
            rng.standard_gamma(np.full((REPLICATES, 1), MEAN * n), size=(REPLICATES, DRAWS))


def from_matrices(seed):
    rng = np.random.default_rng(seed)
    for n in SIZES:
        for _ in range(SAMPLED_DATABASES):
            synthesizer = ppm.GammaPoisson(rng.poisson(MEAN, size=n))
            fit = synthesizer.fit(draws=DRAWS, random_seed=rng)
            log_lik = synthesizer.log_likelihood(fit)
            ppm.local_bound(log_lik)
            for truncate_at in (None, TRUNCATE_AT):
                weights = ppm.record_weights(ppm.record_bounds(log_lik), truncate_at=truncate_at)
                weighted = synthesizer.fit(weights, draws=DRAWS, random_seed=rng)
                ppm.local_bound(synthesizer.log_likelihood(weighted), weights)


def seconds(function, seed):
    start = time.perf_counter()
    function(seed)
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="counted rounds, after one warm-up")
    rounds = parser.parse_args().rounds
    functions = (whole_study, draws_alone, from_matrices)
    for function in functions:
        function(0)
    times = np.array([[seconds(f, seed) for f in functions] for seed in range(1, rounds + 1)])
    times[:, 2] *= REPLICATES / SAMPLED_DATABASES
    print(f"contraction study: n = {SIZES}, R = {REPLICATES}, S = {DRAWS}, {rounds} rounds")
    for name, column in zip(
        ("whole study", "draws alone", "from full matrices (scaled up)"), times.T, strict=True
    ):
        print(f"  {name:32s} median {np.median(column):8.3f} s   "
              f"from {column.min():.3f} to {column.max():.3f}")
    for name, other in (("draws alone", 1), ("full matrices", 2)):
        ratio = times[:, 0] / times[:, other]
        print(f"  whole study / {name:18s} median {np.median(ratio):8.4f}     "
              f"from {ratio.min():.4f} to {ratio.max():.4f}")


if __name__ == "__main__":
    main()
