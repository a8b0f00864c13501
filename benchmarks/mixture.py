"""How fast the finite mixture's sampler is, beside NUTS (nutpie) on the same model.

Records are simulated from two regressions, weights are drawn at random. Both samplers run in this
process, one after the other in every round. Their processor time is that of warm-up and kept draws
together, for NUTS with the compilation of the model. What counts is the effective sample size per
second of the largest weighted |log-likelihood| of a draw, which drives the local bound. Where the
medians of that quantity in the last column differ, one of the samplers is stuck.

Run it with ``make benchmark`` or ``python benchmarks/mixture.py [--rounds 3] [--records 100]``.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from processes import seconds

import ppm
from ppm.diagnostics import bound_diagnostics

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from plain_pymc_models import finite_mixture, fit_by_nuts  # noqa: E402


def gibbs(model, weights, draws, seed):
    return model.fit(weights, draws=draws, random_seed=seed)["posterior"].dataset


def nuts(model, weights, draws, seed):
    plain = finite_mixture(model.response, model.predictors, components=2, weights=weights)
    return fit_by_nuts(plain, warmup=draws, draws=draws, random_seed=seed)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--records", type=int, default=100)
    parser.add_argument("--draws", type=int, default=500, help="kept draws of each of two chains")
    asked = parser.parse_args()
    print(f"{'':8}ms a draw  ESS/s max|f|   R-hat  median max|f|")
    ratios = []
    for seed in range(asked.rounds):
        rng = np.random.default_rng(seed)
        X = np.column_stack([np.ones(asked.records), rng.integers(0, 2, (asked.records, 2))])
        spread = np.where(rng.random(asked.records) < 0.7, 0.4, 1.5)
        y = X @ [0.3, 0.5, -0.5] + spread * rng.standard_normal(asked.records)
        weights, rates = rng.uniform(0.2, 1.0, asked.records), []
        model = ppm.FiniteMixture(y, X, components=2, parallel=False, warmup=asked.draws)
        for way in (gibbs, nuts):
            spent, posterior = seconds(way, model, weights, asked.draws, seed)
            found = bound_diagnostics(model.log_likelihood_at(posterior), weights)
            rates.append(found.effective_draws / spent)
            print(f"  {way.__name__:6}{1e3 * spent / (4 * asked.draws):9.2f}{rates[-1]:14.2f}"
                  f"{found.r_hat:8.3f}{found.typical:15.2f}", flush=True)
        ratios.append(rates[0] / rates[1])
    print(f"  ratio of ESS/s of max|f| to NUTS: median {np.median(ratios):.1f}, from "
          f"{min(ratios):.1f} to {max(ratios):.1f}")


if __name__ == "__main__":
    main()
