"""What the mechanism costs beside two plain fits of the same PyMC model.

The mechanism fits a model twice, without and with weights, and computes every record's
log-likelihood at all draws in between. Beside it stands ``pm.sample``, called twice with the same
draws, warm-up, chains and acceptance probability; everything else is PyMC's default, its check of
the chains among it. Its sampler is PyMC's own: ``pm.sample`` would take nutpie where that is
installed.

Every run has a process of its own and an empty folder for what PyTensor compiles. ``cold`` is the
first run in it, ``warm`` the second: of the same model by ``pm.sample``, of the same mechanism.
Imports count for neither. The runs of a round follow each other in alternating order, and what is
told is the median over the rounds of the ratio within one, of processor time and of the clock's:
the first is what a busy machine disturbs less.

With ``--nutpie`` nutpie's NUTS is timed on the pseudo posterior instead, where it is installed:
compiling the weighted model and drawing, against the weighted fit of the synthesizer, for the same
effective sample size of the parameter that has the smallest.

Run it with ``python benchmarks/mechanism.py [--rounds 5] [--draws 1000] [--nutpie]``.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from processes import alone

MODELS = ("normal_regression", "logistic_regression", "hierarchical")
TARGET_ACCEPT = 0.9


def clocks():
    """Seconds of the clock and of the processor so far."""
    return np.array([time.perf_counter(), time.process_time()])


def plain(model, draws):
    """Two fits as anybody would make them."""
    import pymc as pm

    def run():
        for seed in (1, 2):
            with model:
                pm.sample(
                    draws, tune=1000, chains=2, cores=1, random_seed=seed, nuts_sampler="pymc",
                    target_accept=TARGET_ACCEPT, progressbar=False, quiet=True,
                )  # fmt: skip

    return run


def mechanism(model, draws):
    """The mechanism on the bare model."""
    import ppm

    made = []

    def run():
        # the first run pays for rewriting the model
        made or made.append(ppm.PseudoPosteriorMechanism(model, target_accept=TARGET_ACCEPT))
        made[0].run(draws=draws, random_seed=1)

    return run


def weighted(model, draws, nuts_sampler):
    """A weighted fit, with the smallest effective sample size of a parameter."""
    import arviz as az

    import ppm

    made = []

    def run():
        if not made:
            synthesizer = ppm.PyMCSynthesizer(
                model, target_accept=TARGET_ACCEPT, nuts_sampler=nuts_sampler
            )
            made.append(synthesizer)
            made.append(np.random.default_rng(3).uniform(0.3, 1.0, synthesizer.records))
        synthesizer, weights = made
        fit = synthesizer.fit(weights, draws=draws, random_seed=1)
        names = [variable.name for variable in model.free_RVs]
        found = az.ess(fit["posterior"].to_dataset()[names])
        return min(float(found[name].min()) for name in names)

    return run


WAYS = {
    "plain": plain,
    "mechanism": mechanism,
    "weighted": lambda model, draws: weighted(model, draws, "pymc"),
    "nutpie": lambda model, draws: weighted(model, draws, "nutpie"),
}


def worker(way, name, draws):
    """Cold and warm seconds of one way, and what it returned, as JSON on standard output."""
    import arviz  # noqa: F401
    import plain_pymc_models
    import pymc  # noqa: F401

    import ppm

    _ = ppm.PyMCSynthesizer
    run = WAYS[way](getattr(plain_pymc_models, name)(), draws)
    found = []
    for _ in range(2):
        start = clocks()
        effective = run()
        found.append([*(clocks() - start), effective or 1.0])
    print(json.dumps(found))


def measured(way, name, draws):
    """Array (cold or warm; clock, processor, effective draws) of one fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        found = alone(
            __file__, "--worker", way, name, "--draws", draws,
            PYTENSOR_FLAGS=f"base_compiledir={folder}", OMP_NUM_THREADS="1",
            OPENBLAS_NUM_THREADS="1", PYTHONWARNINGS="ignore",
            PYTHONPATH=str(Path(__file__).resolve().parents[1]),
        )  # fmt: skip
    return np.array(found)


def compare(name, ways, draws, rounds):
    """Print the medians of the second way's figures over the first one's, paired by round."""
    ratios = []
    for number in range(rounds):
        found = {}
        for way in ways if number % 2 == 0 else ways[::-1]:
            found[way] = measured(way, name, draws)
        first, second = (found[way] for way in ways)
        # the same effective draws
        seconds = [f[:, :2] / f[:, 2:] for f in (first, second)]
        ratios.append(seconds[1] / seconds[0])
        print(f"    round {number}: {ways[0]} {first[:, 1].round(1)} s of processor, {ways[1]} "
              f"{second[:, 1].round(1)} (cold, warm)", file=sys.stderr)  # fmt: skip
    low, middle, high = np.quantile(ratios, (0, 0.5, 1), axis=0)
    for row, state in enumerate(("cold", "warm")):
        print(f"{name:20s} {ways[1]:>9s}/{ways[0]:9s} {state}", end="")
        for column, clock in ((1, "processor"), (0, "clock")):
            cells = middle[row, column], low[row, column], high[row, column]
            print(f"   {clock} {cells[0]:5.2f} ({cells[1]:.2f} to {cells[2]:.2f})", end="")
        print(flush=True)


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--draws", type=int, default=1000, help="kept draws of each chain")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--nutpie", action="store_true", help="time nutpie on the weighted fit")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(*options.worker, options.draws)
        return
    pairs = [("weighted", "nutpie")] if options.nutpie else [("plain", "mechanism")]
    for name in options.models:
        for ways in pairs:
            compare(name, ways, options.draws, options.rounds)


if __name__ == "__main__":
    main()
