"""How fast the finite mixture's sampler is, beside PyMC's NUTS on the same model.

Records are simulated from two regressions, weights are drawn at random. Both samplers run in this
process, one after the other in every round. Their processor time is that of warm-up and kept draws
together, for NUTS with the compilation of the model. What counts is the effective sample size per
second of the largest weighted |log-likelihood| of a draw, which drives the local bound. Where the
medians of that quantity in the last column differ, one of the samplers is stuck.

Run it with ``make benchmark`` or ``python benchmarks/mixture.py [--rounds 3] [--records 100]``.
"""

import argparse

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from processes import seconds

import ppm
from ppm.chains import bound_diagnostics


def finite_mixture(mixture, weights):
    """Pseudo posterior of a :class:`ppm.FiniteMixture` in PyMC, with the labels summed out.

    NUTS explores it well on tens of records and two or three components. On thousands of records
    and ten components its chains were seen to stick for hundreds of draws.
    """
    prior, components, size = (
        mixture.prior,
        mixture.components,
        mixture.predictors.shape[1],
    )
    with pm.Model() as model:
        # a Gamma(a) variable is a Gamma(a + 1) times a power of a uniform one: in logs that neither
        # underflows nor bends the space as Dirichlet coordinates do near its corners
        shape, rate = prior.concentration_shape, prior.concentration_rate
        each = pm.Gamma("concentration", alpha=shape, beta=rate) / components
        gamma = pm.Gamma("pi_gamma", alpha=each + 1.0, beta=1.0, shape=components)
        log_gamma = (
            pt.log(gamma)
            - pm.Exponential("pi_exponential", 1.0, shape=components) / each
        )
        log_pi = log_gamma - pt.logsumexp(log_gamma)
        pm.Deterministic("pi", pt.exp(log_pi))
        # precision D A A' D: A of Bartlett's decomposition, inverted row by row, which compiles
        # faster than a solver, D² = auxiliaries / (2ν)
        df = prior.coefficient_df
        aux = pm.InverseGamma(
            "coefficient_aux", alpha=0.5, beta=prior.coefficient_scale**-2.0
        )
        squares = pm.ChiSquared("bartlett_squares", df + size - 1.0 - np.arange(size))
        below, rows = pm.Normal("bartlett_below", shape=size * (size - 1) // 2), []
        for r in range(size):
            known = [below[r * (r - 1) // 2 + c] * row for c, row in enumerate(rows)]
            rows.append((np.eye(size)[r] - sum(known)) / pt.sqrt(squares[r]))
        root = (pt.stack(rows) / pt.sqrt(aux / (2.0 * df))).T
        # on few records NUTS met a funnel in the coefficients themselves
        standard = pm.Normal("beta_standard", shape=(components, size))
        beta = pm.Deterministic("beta", (standard[:, None, :] * root).sum(axis=-1))
        nu, scale = prior.residual_df, prior.residual_scale
        sigma = pm.HalfStudentT("sigma", nu=nu, sigma=scale, shape=components)
        # as constants they would take longer to compile
        data = (
            pm.Data("response", mixture.response),
            pm.Data("predictors", mixture.predictors),
        )
        mean = (beta[:, None, :] * data[1]).sum(axis=-1)
        terms = log_pi[:, None] + pm.logp(pm.Normal.dist(mean, sigma[:, None]), data[0])
        pm.Potential(
            "pseudo", (pm.Data("weights", weights) * pt.logsumexp(terms, axis=0)).sum()
        )
    return model


def gibbs(model, weights, draws, seed):
    fit = ppm.fit(model, ppm.Terms(weights), draws=draws, random_seed=seed)
    return fit.theta


def nuts(model, weights, draws, seed):
    # a few small functions would go through a C compiler, and warn about a missing BLAS
    with finite_mixture(model, weights), pytensor.config.change_flags(cxx=""):
        trace = pm.sample(
            draws,
            tune=draws,
            chains=2,
            random_seed=seed,
            nuts_sampler="pymc",
            cores=1,
            # smaller steps than the usual 0.8: the posterior has narrow places
            target_accept=0.95,
            progressbar=False,
            quiet=True,
            compute_convergence_checks=False,
        )
    posterior = trace["posterior"].to_dataset()
    # chain after chain
    return {
        name: posterior[name].values.reshape(2 * draws, *posterior[name].shape[2:])
        for name in ("pi", "beta", "sigma")
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--records", type=int, default=100)
    parser.add_argument(
        "--draws", type=int, default=500, help="kept draws of each of two chains"
    )
    asked = parser.parse_args()
    print(f"{'':8}ms a draw  ESS/s max|f|   R-hat  median max|f|")
    ratios = []
    for seed in range(asked.rounds):
        rng = np.random.default_rng(seed)
        X = np.column_stack(
            [np.ones(asked.records), rng.integers(0, 2, (asked.records, 2))]
        )
        spread = np.where(rng.random(asked.records) < 0.7, 0.4, 1.5)
        y = X @ [0.3, 0.5, -0.5] + spread * rng.standard_normal(asked.records)
        weights, rates = rng.uniform(0.2, 1.0, asked.records), []
        model = ppm.FiniteMixture(
            y, X, components=2, parallel=False, warmup=asked.draws
        )
        for way in (gibbs, nuts):
            spent, theta = seconds(way, model, weights, asked.draws, seed)
            log_p = model.log_p(theta).reshape(2, asked.draws, -1)
            found = bound_diagnostics(log_p, weights)
            rates.append(found.effective_draws / spent)
            print(
                f"  {way.__name__:6}{1e3 * spent / (4 * asked.draws):9.2f}{rates[-1]:14.2f}"
                f"{found.r_hat:8.3f}{found.typical:15.2f}",
                flush=True,
            )
        ratios.append(rates[0] / rates[1])
    print(
        f"  ratio of ESS/s of max|f| to NUTS: median {np.median(ratios):.1f}, from "
        f"{min(ratios):.1f} to {max(ratios):.1f}"
    )


if __name__ == "__main__":
    main()
