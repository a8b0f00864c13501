"""What the mechanism costs beside two plain fits of the same PyMC model.

The mechanism fits a model twice, without and with weights, and computes every record's
log-likelihood at all draws in between. Beside it stands ``pm.sample``, called twice with the same
draws, warm-up, chains and acceptance probability; everything else is PyMC's default, its check of
the chains among it. Its sampler is PyMC's own: ``pm.sample`` would take nutpie where that is
installed.

Every run has a process of its own and an empty folder for what PyTensor compiles. ``cold`` is the
first run in it, ``warm`` the second: of the same model by ``pm.sample``, of the same mechanism.
Imports count for neither. The runs of a round follow each other in alternating order, and what is
told is the median over the rounds of the ratio within one, of processor time.

Run it with ``python benchmarks/mechanism.py [--rounds 5] [--draws 1000]``.
"""

import argparse
import sys
import tempfile
import time

import numpy as np
from processes import alone

TARGET_ACCEPT = 0.9


def regression(records, rng):
    """Normal response with three simulated predictors."""
    import pymc as pm

    X = rng.normal(size=(records, 3))
    y = 1.0 + X @ [0.5, -0.3, 0.2] + rng.normal(size=records)
    with pm.Model() as model:
        mean = pm.Normal("intercept", 0.0, 10.0) + X @ pm.Normal("slopes", 0.0, 5.0, shape=3)
        pm.Normal("y", mean, pm.HalfNormal("sigma", 2.0), observed=y)
    return model


def hierarchical(records, rng):
    """Normal response whose mean differs between groups, simulated."""
    import pymc as pm

    group = rng.integers(0, 20, records)
    y = 1.0 + rng.normal(0.0, 0.7, 20)[group] + rng.normal(size=records)
    with pm.Model() as model:
        spread, effects = pm.HalfNormal("spread", 1.0), pm.Normal("effects", shape=20)
        mean = pm.Normal("intercept", 0.0, 5.0) + spread * effects[group]
        pm.Normal("y", mean, pm.HalfNormal("sigma", 2.0), observed=y)
    return model


MODELS = {"regression": regression, "hierarchical": hierarchical}


def worker(way, name, records, draws):
    """Seconds of the processor, cold and warm, of one way."""
    import arviz  # noqa: F401
    import pymc as pm

    import ppm

    if way == "mechanism":
        # imports PyMC's part of the library, after which nothing that is compiled is kept in files
        _ = ppm.PyMCSynthesizer
    model = MODELS[name](records, np.random.default_rng(7))
    made = []

    def mechanism():
        # the first run pays for rewriting the model
        made or made.append(ppm.PseudoPosteriorMechanism(model, target_accept=TARGET_ACCEPT))
        made[0].run(draws=draws, random_seed=1)

    def plain():
        for seed in (1, 2):
            with model:
                pm.sample(
                    draws, tune=1000, chains=2, cores=1, random_seed=seed, nuts_sampler="pymc",
                    target_accept=TARGET_ACCEPT, progressbar=False, quiet=True,
                )  # fmt: skip

    seconds = []
    for _ in range(2):
        start = time.process_time()
        plain() if way == "plain" else mechanism()
        seconds.append(time.process_time() - start)
    return seconds


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--records", type=int, default=3000)
    parser.add_argument("--draws", type=int, default=1000, help="kept draws of each chain")
    asked = parser.parse_args()
    for name in MODELS:
        ratios = []
        for number in range(asked.rounds):
            seconds = {}
            for way in ("plain", "mechanism")[:: 1 if number % 2 == 0 else -1]:
                with tempfile.TemporaryDirectory() as folder:
                    seconds[way] = np.array(alone(
                        worker, way, name, asked.records, asked.draws,
                        PYTENSOR_FLAGS=f"base_compiledir={folder}", OMP_NUM_THREADS="1",
                        OPENBLAS_NUM_THREADS="1", PYTHONWARNINGS="ignore",
                    ))  # fmt: skip
            ratios.append(seconds["mechanism"] / seconds["plain"])
            print(f"    {name}, round {number}: {seconds} (cold, warm)", file=sys.stderr)
        low, middle, high = np.quantile(ratios, (0, 0.5, 1), axis=0)
        for row, state in enumerate(("cold", "warm")):
            print(f"{name:14s} mechanism/plain {state}  {middle[row]:5.2f} "
                  f"({low[row]:.2f} to {high[row]:.2f})", flush=True)


if __name__ == "__main__":
    main()
