"""What the strict mechanism gains and loses when a table is fitted in disjoint shards.

Three ways to spend the same ε = W are compared, all under public limits with one public weight:

- ``whole``: one release of the whole table, limits of width W;
- ``shards``: K random shards of about n/K records, limits of width W around each shard's terms, one
  release of the whole put together (``ppm.studies.sharded_release``);
- ``K at W/K``: K releases of the whole table from one fit, limits of width W/K; a statistic is the
  mean of its K values.

The chapter ``large_data`` computes them for counts; here they are for incomes, with a mixture of
two regressions. Settings are those of the chapter ``strict_release``, and errors are those of
``ppm.utility.release_errors``, in per cent: the median over seeds of the sizes of errors. A seed
draws the assignment, the fits and the releases, and with ``--data`` not the records. Seconds are of
the processor, with one thread and the chains one after the other; ``longest`` is the longest of the
fits, which is what K cores would wait for.

Run it with ``python benchmarks/shards.py [--seeds 5] [--data diary17.zip] [--csv FILE]``. The
errors are computed from the records, outside any ε.
"""

import argparse
import time
import warnings
from concurrent.futures import Executor, Future

import numpy as np
import pandas as pd
from ppm_book import survey

import ppm

POWER, OUTSIDE = 0.2, 0.02
ENDS = {"lowest": -7_000.0, "highest": 1_800_000.0}
MIXTURE = {
    "components": 2, "chains": 2, "thin": 2, "coefficient_scale": 0.5, "residual_scale": 0.3,
    "parallel": False,
}
SHOWN = [
    "mean", "median", "90th percentile", "10th percentile", "means by education", "means by region",
]


def rows_of(data, width, shards, seed, sweeps):
    settings = MIXTURE | {"warmup": sweeps}
    public = survey.simulate(3000, random_seed=10_000 + seed)
    known, _ = survey.predictor_matrix(public)
    model = ppm.FiniteMixture(survey.power_income(public, POWER), known, **settings)
    reference = model.log_likelihood(model.fit(draws=20, random_seed=seed))
    incomes = data.table["income"].to_numpy()
    scaled = survey.power_income(data, POWER)
    predictors, _ = survey.predictor_matrix(data)

    def make(rows):
        return ppm.FiniteMixture(scaled[rows], predictors[rows], **settings)

    def limits(width):
        limits, weight = ppm.censoring.censoring_limits(
            width, reference, outside=OUTSIDE, smooth=False
        )
        return {"censor": limits, "weights": np.full(incomes.size, weight)}

    ways = {
        "whole": (1, 1, width),
        "shards": (shards, 1, width),
        f"{shards} at W/{shards}": (1, shards, width / shards),
    }
    for place, (way, (number, releases, each)) in enumerate(ways.items()):
        timed = []
        found = ppm.studies.sharded_release(
            make, incomes.size, number, **limits(each), releases=releases, draws=sweeps,
            random_seed=[seed, place, round(1e6 * width)], executor=Timed(timed),
            allow_disagreement=True,
        )
        with warnings.catch_warnings():
            # the column agree says so
            warnings.filterwarnings("ignore", "released although chains disagree")
            released = survey.income_from_power(found.synthetic, POWER, **ENDS)
        groups = data.table[["education", "region"]]
        errors = ppm.utility.release_errors(incomes, released).mean()
        # the mean of the releases' group means is that of the releases' mean
        by_group = ppm.utility.release_errors(incomes, released.mean(axis=0)[None], groups=groups)
        errors = pd.concat([errors, by_group.iloc[0].drop(errors.index)])[SHOWN]
        yield {
            "n": incomes.size, "W": width, "way": way, "seed": seed,
            **errors.abs(),
            "s, all": sum(timed), "s, longest": max(timed), "agree": found.agree,
            "R-hat": max(seen.r_hat_log_likelihood for seen in found.diagnostics),
        }


class Timed(Executor):
    """Runs what it is given at once, and notes the processor's seconds."""

    def __init__(self, seconds):
        self.seconds = seconds

    def submit(self, task, /, *args):
        start, done = time.process_time(), Future()
        done.set_result(task(*args))
        self.seconds.append(time.process_time() - start)
        return done


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--widths", type=float, nargs="+", default=[1.0, 2.0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sweeps", type=int, default=1000, help="warm-up, and draws a chain")
    parser.add_argument("--data", help="Consumer Expenditure file; simulated records without it")
    parser.add_argument("--csv", help="where the rows go as well")
    options = parser.parse_args()
    rows = []
    for seed in range(1, options.seeds + 1):
        data = survey.load(options.data) if options.data else survey.simulate(
            random_seed=seed
        )
        for width in options.widths:
            rows += rows_of(data, width, options.shards, seed, options.sweeps)
            print(pd.DataFrame(rows[-3:]).round(2).to_string(index=False, header=False), flush=True)
    rows = pd.DataFrame(rows)
    kind = "the file" if options.data else "simulated"
    print(f"incomes, {kind}: medians over {options.seeds} seeds")
    print(rows.groupby(["n", "W", "way"], sort=False).median().round(2).to_string())
    if options.csv:
        rows.to_csv(options.csv, index=False)


if __name__ == "__main__":
    main()
