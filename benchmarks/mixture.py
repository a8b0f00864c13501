"""How fast the finite mixture's sampler is, beside NUTS on the same model.

Records are simulated from three regressions, weights are drawn at random. Both samplers run in this
process, one after the other in every round. Their processor time is that of warm-up and kept draws
together, for NUTS with the compilation of the model. What counts is the effective sample size per
second of the largest weighted |log-likelihood| of a draw, which drives the local bound. Where the
medians of that quantity in the last column differ, one of the samplers is stuck.

Run it with ``make benchmark`` or ``python benchmarks/mixture.py [--rounds 3] [--records 100]``.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

import ppm
from ppm.diagnostics import bound_diagnostics

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from plain_pymc_models import finite_mixture, fit_by_nuts  # noqa: E402


def simulated(records, predictors, seed):
    """Response, predictors and weights."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(records), rng.integers(0, 2, (records, predictors - 1))])
    beta = rng.normal(0.0, 0.5, (3, predictors)) + np.array([[0.0], [0.3], [-0.3]])
    label = rng.choice(3, records, p=[0.6, 0.3, 0.1])
    sigma = np.array([0.4, 0.7, 1.5])[label]
    y = (X * beta[label]).sum(axis=1) + sigma * rng.standard_normal(records)
    return y, X, rng.uniform(0.2, 1.0, records)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--records", type=int, default=100)
    parser.add_argument("--predictors", type=int, default=3)
    parser.add_argument("--components", type=int, default=2)
    parser.add_argument("--draws", type=int, default=500, help="kept draws of each of two chains")
    asked = parser.parse_args()
    print(
        f"finite mixture: n = {asked.records}, R = {asked.predictors}, K = {asked.components}, "
        f"2 chains, {asked.draws} kept draws each\n{'':22}ms a draw  ESS/s max|f|"
        "  ESS/s log-lik.   R-hat  median max|f|"
    )
    ratios = []
    for seed in range(asked.rounds):
        y, X, weights = simulated(asked.records, asked.predictors, seed)
        many = {"draws": asked.draws, "random_seed": seed}

        def gibbs(y=y, X=X, weights=weights, many=many):
            model = ppm.FiniteMixture(
                y, X, components=asked.components, parallel=False, warmup=asked.draws
            )
            return model.fit(weights, **many)

        def nuts(y=y, X=X, weights=weights, many=many):
            model = finite_mixture(y, X, components=asked.components, weights=weights)
            return fit_by_nuts(model, warmup=asked.draws, **many)

        rates = []
        for name, fit_model in (("Metropolis in Gibbs", gibbs), ("NUTS", nuts)):
            start = time.process_time()
            fit = fit_model()
            seconds = time.process_time() - start
            found = bound_diagnostics(fit["log_likelihood"]["response"], weights)
            rates.append(found.effective_draws / seconds)
            print(
                f"  {name:20}{1e3 * seconds / (4 * asked.draws):10.2f}{rates[-1]:14.2f}"
                f"{found.effective_draws_log_likelihood / seconds:16.2f}{found.r_hat:9.3f}"
                f"{found.typical:14.2f}", flush=True,
            )  # fmt: skip
        ratios.append(rates[0] / rates[1])
    print(f"  ratio of ESS/s of max|f| to NUTS: median {np.median(ratios):.1f}, from "
          f"{min(ratios):.1f} to {max(ratios):.1f}")


if __name__ == "__main__":
    main()
