"""What runs cost in processor time and memory, and what they would cost with more records.

Every measurement is a process of its own with one thread. Its seconds are those of the processor,
the smallest of several runs after a first small one that compiles; its memory is the largest that
the process ever held, as the system counts it. Along one axis at a time (records n, draws S,
components K, replicates R, releases m), over two orders of magnitude or more, a fixed part and a
power of the size are fitted (``ppm.studies.fit_cost``).

The last table carries the powers further, to 1e6 and 1e8 records. It assumes that one core goes on
as it did: that blocks stay as small as they are here, that what grows with n fits into memory, and
that neither the number of sweeps nor of steps a draw needs grows. The last is often wrong, and no
measurement here shows it.

Run it with ``python benchmarks/cost.py [--repeats 3] [--only NAME] [--csv FILE]``: a quarter of an
hour on one core. The rows go to FILE, and the fits to FILE with ``-fits`` before its ending.
"""

import argparse
import json
import os
import time
from pathlib import Path

# before NumPy starts its threads
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from processes import alone, peak_megabytes  # noqa: E402

import ppm  # noqa: E402

# numbers in one block: 8 MB
BLOCK = 1 << 20
PREDICTORS = 10


# ---- tasks: each makes its input, and returns what is timed -------------------------------------


def blocks(*, records, draws):
    """Record bounds, weights and Δ of a log-likelihood of which only one block exists."""
    width = max(1, BLOCK // draws)
    block = -np.abs(np.random.default_rng(1).standard_normal((draws, width)))
    starts = range(0, records, width)

    def parts():
        return ((start, block[:, : min(width, records - start)]) for start in starts)

    def run():
        bounds = np.concatenate([ppm.record_bounds(part) for _, part in parts()])
        weights = ppm.record_weights(bounds)
        return max(
            ppm.local_bound(part, weights[start : start + width]) for start, part in parts()
        )

    return run


def regression(records):
    rng = np.random.default_rng(2)
    known = np.column_stack([np.ones(records), rng.integers(0, 2, (records, PREDICTORS - 1))])
    response = known @ rng.normal(0, 0.5, PREDICTORS) + 0.4 * rng.standard_normal(records)
    return response, known


def mixture_of(records, components, warmup):
    return ppm.FiniteMixture(
        *regression(records), components=components, warmup=warmup, chains=1, blocks=4,
        parallel=False,
    )


def mixture(*, records, components, draws, limits=False, warmup=20):
    """A fit with weights of 0.5: warm-up, draws, and the log-likelihood of every draw."""
    model = mixture_of(records, components, warmup)
    censor = {"censor": ppm.Censoring(-1.0, 0.0, smooth=False)} if limits else {}
    return lambda: model.fit(np.full(records, 0.5), draws=draws, random_seed=1, **censor)


def mixture_limits(**settings):
    return mixture(limits=True, **settings)


def contraction(*, records, replicates, draws):
    """The study of section 4 at one size."""
    return lambda: ppm.studies.contraction(
        [records], replicates=replicates, draws=draws, random_seed=1
    )


def releases(*, records, releases):
    """Synthetic databases from a fit that is there."""
    fit = mixture_of(1000, 5, 50).fit(draws=300, random_seed=1)
    model = mixture_of(records, 5, 50)
    return lambda: model.predict(fit, releases=releases, random_seed=1)


def pymc_model(*, records, draws):
    """A normal regression by NUTS, one chain, compilation included."""
    import warnings

    import pymc as pm

    # one chain, and few draws: it is the time that counts
    warnings.simplefilter("ignore")
    response, known = regression(records)
    with pm.Model() as model:
        beta = pm.Normal("beta", 0.0, 1.0, shape=PREDICTORS)
        sigma = pm.HalfNormal("sigma", 1.0)
        pm.Normal("y", pm.math.dot(known, beta), sigma, observed=response)
    synthesizer = ppm.PyMCSynthesizer(model, chains=1, warmup=200)
    return lambda: synthesizer.fit(draws=draws, random_seed=1)


TASKS = {
    "bounds, weights, Δ": blocks,
    "mixture": mixture,
    "mixture, limits": mixture_limits,
    "contraction": contraction,
    "releases": releases,
    "PyMC": pymc_model,
}
# task, axis, sizes along it, and what stays
AXES = [
    ("bounds, weights, Δ", "records", (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000),
     {"draws": 100}),
    ("bounds, weights, Δ", "draws", (10, 30, 100, 300, 1000, 3000), {"records": 100_000}),
    ("mixture", "records", (300, 1000, 3000, 10_000, 30_000, 100_000),
     {"components": 5, "draws": 20}),
    ("mixture", "components", (2, 5, 10, 20, 50, 100, 200), {"records": 2000, "draws": 20}),
    ("mixture", "draws", (10, 30, 100, 300, 1000, 3000), {"records": 3000, "components": 5}),
    ("mixture, limits", "records", (300, 1000, 3000, 10_000, 30_000, 100_000),
     {"components": 5, "draws": 20}),
    ("contraction", "records", (100, 300, 1000, 3000, 10_000, 30_000, 100_000),
     {"replicates": 30, "draws": 1000}),
    ("contraction", "replicates", (10, 30, 100, 300, 1000, 3000),
     {"records": 400, "draws": 1000}),
    ("releases", "records", (1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000),
     {"releases": 5}),
    ("releases", "releases", (1, 3, 10, 30, 100, 300), {"records": 10_000}),
    ("PyMC", "records", (1000, 3000, 10_000, 30_000, 100_000), {"draws": 200}),
    ("PyMC", "draws", (100, 300, 1000, 3000, 10_000), {"records": 1000}),
]
SMALL = {"records": 300, "draws": 3, "components": 2, "replicates": 2, "releases": 1}


def one(task, settings, repeats):
    """Measure in this process, and print it."""
    if task != "PyMC":
        # a PyMC model is compiled for every fit
        TASKS[task](**{name: min(value, SMALL[name]) for name, value in settings.items()})()
    before = peak_megabytes()
    run = TASKS[task](**settings)
    best = np.inf
    for _ in range(repeats):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    print(json.dumps({"seconds": best, "MB": peak_megabytes(), "MB before": before}))


def fits(rows):
    """Fixed part, exponent and extrapolations of every axis, for seconds and for memory."""
    table = []
    for (task, axis), part in rows.groupby(["task", "axis"], sort=False):
        for what in ("seconds", "MB"):
            if part[what].max() < 1.03 * part[what].min():
                # nothing grows
                table.append({"task": task, "axis": axis, "cost": what, "fixed": part[what].max()})
                continue
            found = ppm.studies.fit_cost(part["size"], part[what])
            row = {
                "task": task, "axis": axis, "cost": what, "fixed": found.fixed,
                "exponent": found.exponent, "±": found.exponent_error,
                "scatter (%)": 100 * found.residual,
            }
            if axis == "records":
                ahead = found.at([1e6, 1e8])
                for size, name in ((1e6, "1e6"), (1e8, "1e8")):
                    row[name] = ahead.loc[size, "cost"]
                row["1e8, low"], row["1e8, high"] = ahead.loc[1e8, ["low", "high"]]
            table.append(row)
    return pd.DataFrame(table)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3, help="runs of each; the smallest counts")
    parser.add_argument("--only", help="one task: " + "; ".join(TASKS))
    parser.add_argument("--csv", type=Path, help="where the rows go; the fits go beside it")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        task, settings = options.one
        return one(task, json.loads(settings), options.repeats)
    rows = []
    for task, axis, sizes, settings in AXES:
        if options.only not in (None, task):
            continue
        for size in sizes:
            asked = json.dumps({axis: size, **settings})
            found = alone(__file__, "--one", task, asked, "--repeats", options.repeats)
            rows.append({"task": task, "axis": axis, "size": size, **found})
            print(f"{task:20s} {axis:12s} {size:10,d} {found['seconds']:10.4f} s "
                  f"{found['MB']:8.0f} MB", flush=True)
    rows = pd.DataFrame(rows)
    table = fits(rows)
    print("\ncosts a + b x^c; records to the sizes in the heading, the others as measured")
    print(table.to_string(index=False, float_format=lambda value: f"{value:.4g}", na_rep=""))
    if options.csv:
        rows.to_csv(options.csv, index=False)
        table.to_csv(options.csv.with_stem(options.csv.stem + "-fits"), index=False)


if __name__ == "__main__":
    main()
