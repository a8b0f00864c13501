"""How fast the finite mixture's sampler is, beside NUTS on the same model.

Records are simulated from three regressions, weights are drawn at random. Both samplers run in this
process, one after the other in every round. Their processor time is that of warm-up and kept draws
together, for NUTS with the compilation of the model. What counts is the effective sample size a
second of the largest weighted |log-likelihood| of a draw, which drives the local bound. Where the
medians of that quantity in the last column differ, one of the samplers is stuck.

NUTS is measured twice: from its own start, and from the library's draws, which give its chains
their first points and its mass matrix; its time then includes neither those draws nor the fit that
they are from, but its warm-up can be short. ``s to 100`` is the processor time to an effective
sample size of 100 at that rate, with the warm-up once.

Run it with ``make benchmark`` or ``python benchmarks/mixture.py [--rounds 3] [--records 100]``.
"""

import argparse
import functools
import time

import numpy as np
from plain_pymc_models import finite_mixture, fit_by_nuts
from positions import mixture_positions, start_from

import ppm
from ppm.diagnostics import bound_diagnostics


def simulated(records, predictors, seed):
    """Response, predictors and weights."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(records), rng.integers(0, 2, (records, predictors - 1))])
    beta = rng.normal(0.0, 0.5, (3, predictors)) + np.array([[0.0], [0.3], [-0.3]])
    label = rng.choice(3, records, p=[0.6, 0.3, 0.1])
    sigma = np.array([0.4, 0.7, 1.5])[label]
    y = (X * beta[label]).sum(axis=1) + sigma * rng.standard_normal(records)
    return y, X, rng.uniform(0.2, 1.0, records)


def measure(fit_with, weights, sweeps, warmup, seed, draws):
    """The fit, and a row of the table."""
    start = time.process_time()
    fit = fit_with(draws=draws, random_seed=seed)
    seconds = time.process_time() - start
    found = bound_diagnostics(fit["log_likelihood"]["response"], weights)
    kept = draws / (draws + warmup)
    if "n_steps" in fit["sample_stats"]:
        steps = float(fit["sample_stats"]["n_steps"].mean())
    else:
        steps = 1.0
    wait = seconds * (1.0 - kept) + seconds * kept * 100.0 / found.effective_draws
    return fit, (
        1e3 * seconds / sweeps,
        steps,
        found.effective_draws / seconds,
        found.effective_draws_log_likelihood / seconds,
        wait,
        found.r_hat,
        found.typical,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--records", type=int, default=100)
    parser.add_argument("--predictors", type=int, default=3)
    parser.add_argument("--components", type=int, default=2)
    parser.add_argument("--draws", type=int, default=500, help="kept draws of each of two chains")
    parser.add_argument("--centred", action="store_true", help="NUTS moves in coefficients")
    parser.add_argument("--short", type=int, default=100, help="warm-up of NUTS from draws")
    parser.add_argument("--without-nuts", action="store_true", help="only the library's sampler")
    options = parser.parse_args()
    print(
        f"finite mixture: n = {options.records}, R = {options.predictors}, "
        f"K = {options.components}, 2 chains, {options.draws} kept draws each"
    )
    print("                       ms a draw  leapfrogs  ESS/s max|f|  ESS/s log-lik.  s to 100"
          "   R-hat  median max|f|")
    rates = []
    for seed in range(options.rounds):
        y, X, weights = simulated(options.records, options.predictors, seed)
        common = {"components": options.components, "chains": 2}
        model = ppm.FiniteMixture(y, X, parallel=False, warmup=options.draws, **common)
        rows = {"Metropolis in Gibbs": model}
        if not options.without_nuts:
            rows |= {"NUTS, own start": options.draws, "NUTS, from draws": options.short}
        initial = None
        for name, fitted in rows.items():
            warmup = getattr(fitted, "warmup", fitted)
            if fitted is model:
                fit_with = functools.partial(model.fit, weights)
            else:
                plain = finite_mixture(
                    y, X, components=options.components, weights=weights, centred=options.centred
                )
                start = {}
                if name == "NUTS, from draws":
                    positions = mixture_positions(
                        initial, model.prior, centred=options.centred, random_seed=seed
                    )
                    start = start_from(plain, positions)
                fit_with = functools.partial(fit_by_nuts, plain, warmup=warmup, **start)
            sweeps = 2 * (warmup + options.draws)
            fit, row = measure(fit_with, weights, sweeps, warmup, seed, options.draws)
            initial = fit if initial is None else initial
            rates.append(row[2])
            columns = zip(row, (10, 11, 14, 16, 10, 8, 15), (2, 0, 2, 2, 1, 3, 2), strict=True)
            print(f"  {name:20s}" + "".join(f"{v:{width}.{d}f}" for v, width, d in columns),
                  flush=True)
    if not options.without_nuts:
        rates = np.reshape(rates, (-1, 3))
        for name, column in (("own start", 1), ("from draws", 2)):
            ratio = rates[:, 0] / rates[:, column]
            print(f"  ratio of ESS/s of max|f| to NUTS, {name}: median {np.median(ratio):.1f}, "
                  f"from {ratio.min():.1f} to {ratio.max():.1f}")


if __name__ == "__main__":
    main()
