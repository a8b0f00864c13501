"""What the strict mechanism gains and loses when a table is fitted in disjoint shards.

Three ways to spend the same ε = W are compared, all under public limits with one public weight:

- ``whole``: one release of the whole table, limits of width W;
- ``shards``: K random shards of about n/K records, limits of width W around each shard's terms, one
  release of the whole put together (``ppm.studies.sharded_release``);
- ``K at W/K``: K releases of the whole table from one fit, limits of width W/K; a statistic is the
  mean of its K values.

For counts (Gamma-Poisson) the mean of a release is looked at, and everything is computed by
quadrature: the bias of its expectation against the mean of the data, and its standard deviation,
both in per cent. For incomes (a mixture of two regressions) the settings are those of the chapter
``strict_release``, and errors are those of ``ppm.utility.release_errors``, in per cent: the median
over seeds of the sizes of errors. A seed draws the assignment, the fits and the releases, and with
``--data`` not the records. Seconds are of the processor, with one thread and the chains one after
the other; ``longest`` is the longest of the fits, which is what K cores would wait for.

Run it with ``python benchmarks/shards.py [--seeds 5] [--data diary17.zip] [--csv FILE]``. The
errors are computed from the records, outside any ε.
"""

import argparse
import time
import warnings
from concurrent.futures import Executor, Future

import numpy as np
import pandas as pd

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
PRIOR = {"shape": 2.0, "rate": 0.2}
TRUE_MEAN = 10.0


# ---- counts, by quadrature ----------------------------------------------------------------------


def moments(counts, weight, censor):
    """Mean and variance of μ."""
    found = ppm.GammaPoisson(counts, **PRIOR).posterior(
        np.full(counts.size, weight), censor=censor
    )
    return found.mean(), found.var()


def counts_row(n, width, shards, replicates, seed):
    """Bias and standard deviation of the mean of a release, in per cent, over databases."""
    rng = np.random.default_rng([seed, n])
    public = ppm.GammaPoisson(rng.poisson(TRUE_MEAN, 2000), **PRIOR)
    reference = public.log_likelihood(public.fit(draws=100, random_seed=rng))

    def limits(width):
        weight = ppm.censoring.censoring_weight(width, reference, outside=OUTSIDE)
        return weight, ppm.censoring.censoring_interval(width, weight * reference, smooth=False)

    found = {"whole": [], "shards": [], f"{shards} at W/{shards}": []}
    for _ in range(replicates):
        counts = rng.poisson(TRUE_MEAN, n)
        mean, spread = moments(counts, *limits(width))
        found["whole"].append((mean, spread + mean / n, counts.mean()))
        mean, spread = moments(counts, *limits(width / shards))
        found[f"{shards} at W/{shards}"].append(
            (mean, (spread + mean / n) / shards, counts.mean())
        )
        parts = ppm.studies.random_shards(n, shards, random_seed=rng)
        share = np.array([rows.size for rows in parts]) / n
        mean, spread = np.array([moments(counts[rows], *limits(width)) for rows in parts]).T
        found["shards"].append(
            (share @ mean, share**2 @ (spread + mean / (n * share)), counts.mean())
        )
    for way, values in found.items():
        mean, variance, truth = np.array(values).T
        yield {
            "n": n, "W": width, "way": way,
            "bias (%)": 100 * np.mean(mean / truth - 1),
            "sd of the bias (%)": 100 * np.std(mean / truth - 1),
            "sd of a release (%)": 100 * np.mean(np.sqrt(variance) / truth),
        }


# ---- incomes ------------------------------------------------------------------------------------


def incomes_rows(data, width, shards, seed, sweeps):
    settings = MIXTURE | {"warmup": sweeps}
    public = ppm.survey.simulate(3000, random_seed=10_000 + seed)
    known, _ = ppm.survey.predictor_matrix(public)
    model = ppm.FiniteMixture(ppm.survey.power_income(public, POWER), known, **settings)
    reference = model.log_likelihood(model.fit(draws=20, random_seed=seed))
    incomes = data.table["income"].to_numpy()
    scaled = ppm.survey.power_income(data, POWER)
    predictors, _ = ppm.survey.predictor_matrix(data)

    def make(rows):
        return ppm.FiniteMixture(scaled[rows], predictors[rows], **settings)

    def limits(width):
        weight = ppm.censoring.censoring_weight(width, reference, outside=OUTSIDE)
        limits = ppm.censoring.censoring_interval(width, weight * reference, smooth=False)
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
            released = ppm.survey.income_from_power(found.synthetic, POWER, **ENDS)
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
    parser.add_argument("--sizes", type=int, nargs="+", default=[400, 1600, 6400])
    parser.add_argument("--replicates", type=int, default=50, help="databases of counts")
    parser.add_argument("--seeds", type=int, default=5, help="seeds of the mixture")
    parser.add_argument("--sweeps", type=int, default=1000, help="warm-up, and draws a chain")
    parser.add_argument("--data", help="Consumer Expenditure file; simulated records without it")
    parser.add_argument("--csv", help="where the rows go as well: <CSV>.counts, <CSV>.incomes")
    options = parser.parse_args()
    counts = pd.DataFrame([
        row for n in options.sizes for width in options.widths
        for row in counts_row(n, width, options.shards, options.replicates, 1)
    ])
    print(f"counts: mean of a release, {options.replicates} databases of each size, by quadrature")
    print(counts.round(3).to_string(index=False), flush=True)
    rows = []
    for seed in range(1, options.seeds + 1):
        data = ppm.survey.load(options.data) if options.data else ppm.survey.simulate(
            random_seed=seed
        )
        for width in options.widths:
            rows += incomes_rows(data, width, options.shards, seed, options.sweeps)
            print(pd.DataFrame(rows[-3:]).round(2).to_string(index=False, header=False), flush=True)
    rows = pd.DataFrame(rows)
    kind = "the file" if options.data else "simulated"
    print(f"incomes, {kind}: medians over {options.seeds} seeds")
    print(rows.groupby(["n", "W", "way"], sort=False).median().round(2).to_string())
    if options.csv:
        counts.to_csv(f"{options.csv}.counts", index=False)
        rows.to_csv(f"{options.csv}.incomes", index=False)


if __name__ == "__main__":
    main()
