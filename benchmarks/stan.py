"""How fast the finite mixture's sampler is, beside the same pseudo posterior in Stan.

Data, weights and priors are the same, and both samplers run on one thread, one after the other. The
program is ``finite_mixture.stan``. Before anything is timed its log density is compared with that
of the library's PyMC model at random points: up to a constant it must be the same, and with the
weights shuffled it must not.

What counts is the effective sample size of the largest weighted |log-likelihood| of a draw, which
drives the local bound, for a second of processor time. A stuck sampler is recognised by its R-hat,
and by a median of that quantity or a number of occupied components unlike the other's. The last
lines say what Stan could reach at most with its leapfrogs, if every draw were independent.

Stan runs in an environment of its own, since httpstan needs Python 3.12 and other versions::

    python benchmarks/stan.py --install                    makes it, in your cache folder
    python benchmarks/stan.py                              200 simulated records, a few minutes
    python benchmarks/stan.py --stan-python PATH           with an environment of your own
    python benchmarks/stan.py --records 1000 --predictors 0 --components 10 --draws 100
    python benchmarks/stan.py --diary diary17.zip --records 0 --predictors 0 --components 10 \\
        --draws 40 --stan-warmup 30 --chains 1             the size of the application

A system compiler (g++ or clang++) builds the program at the first run. Stan starts at draws of the
library's sampler, which saves it finding the posterior; ``--cold`` starts it by itself.
``--centred`` lets it move in the coefficients themselves, which was several times faster where it
was tried: compare with that one.
httpstan takes no first mass matrix: a warm-up of a few dozen draws leaves long paths, which a
longer one may shorten. The last line then bounds that warm-up's Stan, not every Stan.
"""

import argparse
import shutil
import sys
import time
from pathlib import Path

import numpy as np
from environments import answer, find, install

HERE = Path(__file__).resolve().parent
PROGRAM = HERE / "finite_mixture.stan"
REQUIREMENT = "httpstan>=4.13,<5"
# the order in which the program declares them
POSITIVE = ("concentration", "pi_gamma", "pi_exponential", "coefficient_aux", "bartlett_squares")


def find_stan(given):
    """Interpreter that has httpstan, or an end with what to do."""
    python = find(
        "stan", given, ("httpstan", "numpy"),
        "make one with `python benchmarks/stan.py --install`, or give an interpreter that has "
        "httpstan by --stan-python PATH",
    )  # fmt: skip
    if not any(map(shutil.which, ("g++", "c++", "clang++"))):
        sys.exit("no C++ compiler found (g++ or clang++): Stan programs need one")
    return python


def records_to_fit(options):
    """Response, predictors and the name of the data."""
    import ppm

    data = (
        ppm.survey.load(options.diary) if options.diary else ppm.survey.simulate(random_seed=2017)
    )
    data = data.subsample(options.records, random_seed=options.seed)
    response, _ = ppm.survey.log_income(data, 1.0)
    predictors, _ = ppm.survey.predictor_matrix(data)
    if options.predictors:
        predictors = predictors[:, : options.predictors]
    return response, predictors, "real records" if options.diary else "simulated records"


def stan_data(response, predictors, weights, components, prior):
    """Data of the program; records of weight 0 take no part."""
    active = weights > 0
    return {
        "records": int(active.sum()),
        "size": predictors.shape[1],
        "components": components,
        "y": response[active],
        "X": predictors[active],
        "weights": weights[active],
        "concentration_shape": prior.concentration_shape,
        "concentration_rate": prior.concentration_rate,
        "coefficient_df": prior.coefficient_df,
        "coefficient_scale": prior.coefficient_scale,
        "residual_df": prior.residual_df,
        "residual_scale": prior.residual_scale,
    }


def precision_roots(position, df):
    """Lower triangular D A of the precision D A A' D, for every draw."""
    squares, below = position["bartlett_squares"], position["bartlett_below"]
    size = squares.shape[-1]
    root = np.zeros((*squares.shape, size))
    root[(..., *np.tril_indices(size, -1))] = below
    root[..., np.arange(size), np.arange(size)] = np.sqrt(squares)
    return np.sqrt(position["coefficient_aux"] / (2.0 * df))[..., None] * root


def random_points(positions, number, rng):
    """Points around draws, as dictionaries of constrained values."""
    points = []
    for _ in range(number):
        chain, draw = (rng.integers(n) for n in positions["sigma"].shape[:2])
        point = {}
        for name, values in positions.items():
            value = values[chain, draw]
            noise = 0.2 * rng.standard_normal(np.shape(value))
            free = name in ("bartlett_below", "beta_standard")
            point[name] = value + noise if free else value * np.exp(noise)
        points.append(point)
    return points


def flat(point, coefficients):
    """One point as Stan's vector of unconstrained numbers."""
    return np.concatenate(
        [np.log(np.atleast_1d(point[name])) for name in POSITIVE]
        + [point["bartlett_below"], coefficients.ravel(order="F"), np.log(point["sigma"])]
    )


def pymc_log_density(response, predictors, weights, components, points):
    """Log density of the library's model at the points, and the same with shuffled weights."""
    import pymc as pm
    from plain_pymc_models import finite_mixture

    model = finite_mixture(response, predictors, components=components, weights=weights)
    function = model.compile_logp(mode="NUMBA")
    names = {v.name.removesuffix("_log__"): v.name for v in model.value_vars}
    shuffled = np.random.default_rng(0).permutation(weights)
    rows = []
    for weight in (weights, shuffled):
        pm.set_data({"weights": weight}, model=model)
        rows.append(
            [
                float(
                    function(
                        {
                            full: np.log(point[name]) if full != name else point[name]
                            for name, full in names.items()
                        }
                    )
                )
                for point in points
            ]
        )
    return np.array(rows)


def spread(difference):
    """How far from constant."""
    return float(np.ptp(difference))


def check_same_model(stan, pymc, jacobian):
    """End unless Stan's log densities are the library's up to a constant.

    ``stan`` is that of standard coefficients and of centred ones, whose volume differs by
    ``jacobian``; ``pymc`` that with the weights and with shuffled ones.
    """
    found = [spread(stan[0] - pymc[0]), spread(stan[1] - pymc[0] - jacobian)]
    wrong, scale = spread(stan[0] - pymc[1]), np.abs(pymc[0]).max()
    print(f"log densities at {len(jacobian)} random points, Stan - PyMC: constant up to "
          f"{found[0]:.1e} ({found[1]:.1e} centred)\n  at values up to {scale:.1e}; "
          f"up to {wrong:.1e} with the weights shuffled", flush=True)
    if max(found) > 1e-9 * scale or wrong < 1e-6 * scale:
        sys.exit("the two models differ: nothing that follows would mean anything")


def run_stan(python, program_input):
    """The worker's results."""
    return answer(
        "Stan", python, HERE / "stan_worker.py", PROGRAM, given=program_input, OMP_NUM_THREADS="1"
    )


def log_likelihood(response, predictors, log_pi, beta, sigma):
    """By-record log-likelihood, (chain, draw, record)."""
    import xarray as xr

    from ppm.synthesizers.mixture.predictive import mixture_log_likelihood

    out = np.empty((*sigma.shape[:2], response.size))
    for at in np.ndindex(sigma.shape[:2]):
        out[at] = mixture_log_likelihood(response, predictors, log_pi[at], beta[at], sigma[at])
    return xr.DataArray(out, dims=("chain", "draw", "record"))


def occupied(response, predictors, log_pi, beta, sigma, rng, draws=100):
    """Median number of components with a record, labels drawn at some of the draws."""
    from ppm.synthesizers.mixture.predictive import component_log_densities

    counts = []
    for chain, draw in zip(
        *np.unravel_index(
            np.linspace(0, sigma[..., 0].size - 1, draws).astype(int), sigma.shape[:2]
        ),
        strict=True,
    ):
        at = (chain, draw)
        joint = log_pi[at][:, None] + component_log_densities(
            response, predictors, beta[at], sigma[at]
        )
        edges = np.cumsum(np.exp(joint - joint.max(axis=0)), axis=0)
        labels = (rng.random(response.size) * edges[-1] >= edges).sum(axis=0)
        counts.append(len(np.unique(labels)))
    return float(np.median(counts))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--install", action="store_true", help="make the environment for Stan")
    parser.add_argument("--python", help="interpreter (3.12 or older) that --install builds on")
    parser.add_argument("--stan-python", help="interpreter that has httpstan")
    parser.add_argument("--diary", metavar="PATH", help="survey file; default: simulated records")
    parser.add_argument("--records", type=int, default=200, help="0 for all of them")
    parser.add_argument("--predictors", type=int, default=6, help="first columns; 0 for all")
    parser.add_argument("--components", type=int, default=3)
    parser.add_argument("--chains", type=int, default=2)
    parser.add_argument("--draws", type=int, default=500, help="Stan's kept draws a chain")
    parser.add_argument("--stan-warmup", type=int, default=500)
    parser.add_argument("--sweeps", type=int, default=1000, help="kept, after as many warm-up")
    parser.add_argument("--max-depth", type=int, default=10)
    parser.add_argument("--target-accept", type=float, default=0.8)
    parser.add_argument("--centred", action="store_true", help="coefficients as they are, in Stan")
    parser.add_argument("--cold", action="store_true", help="Stan starts by itself")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.install:
        candidates = [options.python] if options.python else ["python3.12", "python3.11"]
        return install(
            "stan", REQUIREMENT, candidates, ": httpstan needs Python 3.12 or older"
        )
    python = find_stan(options.stan_python)

    from positions import mixture_positions

    import ppm
    from ppm._validation import one_thread
    from ppm.diagnostics import bound_diagnostics

    rng = np.random.default_rng(options.seed)
    response, predictors, source = records_to_fit(options)
    size, chains = predictors.shape[1], options.chains
    model = ppm.FiniteMixture(
        response,
        predictors,
        components=options.components,
        chains=chains,
        warmup=options.sweeps,
        parallel=False,
    )
    print(f"finite mixture: {source}, n = {response.size}, R = {size}, K = {options.components}, "
          f"{chains} chain(s)")
    unweighted = model.fit(draws=options.sweeps, random_seed=options.seed)
    weights = ppm.record_weights(
        ppm.record_bounds(model.log_likelihood(unweighted)), scale=0.7, shift=0.0
    )
    print(f"weights of (c, g) = (0.7, 0): mean {weights.mean():.2f}, {np.sum(weights == 0)} are 0",
          flush=True)
    start = time.process_time()
    fit = model.fit(weights, draws=options.sweeps, random_seed=options.seed + 1)
    seconds = time.process_time() - start

    positions = mixture_positions(fit, model.prior, draws=50, random_seed=options.seed)
    points = random_points(positions, 6, rng)
    roots = [precision_roots(point, model.prior.coefficient_df) for point in points]
    centred = [np.linalg.solve(root.T, point["beta_standard"].T).T
               for root, point in zip(roots, points, strict=True)]
    data = stan_data(response, predictors, weights, options.components, model.prior)
    program_input = {f"data_{name}": value for name, value in data.items()}
    program_input |= {
        "data_centred": int(options.centred),
        "points": np.array([flat(point, point["beta_standard"]) for point in points]),
        "points_centred": np.array(
            [flat(point, beta) for point, beta in zip(points, centred, strict=True)]
        ),
        "chains": chains,
        "draws": options.draws,
        "warmup": options.stan_warmup,
        "max_depth": options.max_depth,
        "target_accept": options.target_accept,
        "seed": options.seed,
    }
    if not options.cold:
        last = {name: values[:, -1] for name, values in positions.items()}
        last["coefficients"] = last.pop("beta_standard")
        if options.centred:
            last["coefficients"] = fit["posterior"]["beta"].values[:, -1]
        program_input |= {f"init_{name}": values for name, values in last.items()}
    check_same_model(
        run_stan(python, program_input | {"chains": 0})["log_prob"],
        pymc_log_density(response, predictors, weights, options.components, points),
        np.array([options.components * np.log(np.diagonal(root)).sum() for root in roots]),
    )
    stan = run_stan(python, program_input | {"points": [], "points_centred": []})

    posterior = fit["posterior"]
    with np.errstate(divide="ignore"):
        library_draws = (
            np.log(posterior["pi"].values), posterior["beta"].values, posterior["sigma"].values
        )
    beta = stan["beta"].reshape(chains, options.draws, size, options.components)
    stan_draws = (stan["log_pi"], beta.swapaxes(2, 3), stan["sigma"])
    leapfrogs = stan["n_leapfrog__"]
    kept = leapfrogs[:, options.stan_warmup :]
    share = kept.sum() / leapfrogs.sum()
    rows = {
        "library": (library_draws, model.log_likelihood(fit), seconds, 0.5,
                    1e3 * seconds / (2 * chains * options.sweeps)),
        "Stan": (stan_draws, None, float(stan["seconds"].sum()), share,
                 1e3 * float(stan["seconds"].sum()) / leapfrogs.sum()),
    }
    print("           ms a sweep    CPU s      ESS  ESS/s with  ESS/s kept          median\n"
          "          or leapfrog             max|f|     warm-up  draws only   R-hat  max|f|"
          "  occupied")
    rates = {}
    with one_thread():
        for name, (draws, log_lik, cpu, part, milliseconds) in rows.items():
            if log_lik is None:
                log_lik = log_likelihood(response, predictors, *draws)
            result = bound_diagnostics(log_lik, weights)
            active = weights > 0
            filled = occupied(response[active], predictors[active], *draws, rng)
            rates[name] = (result.effective_draws / cpu, result.effective_draws / (cpu * part))
            print(f"  {name:8s}{milliseconds:11.2f}{cpu:10.1f}{result.effective_draws:9.0f}"
                  f"{rates[name][0]:12.3f}{rates[name][1]:12.3f}{result.r_hat:8.3f}"
                  f"{result.typical:8.2f}{filled:10.0f}")
    ratio = [mine / theirs for mine, theirs in zip(*rates.values(), strict=True)]
    print(f"  ratio of ESS/s of max|f|: {ratio[0]:.1f} with warm-up, {ratio[1]:.1f} without")
    depth = stan["treedepth__"][:, options.stan_warmup :]
    diverging = int(stan["divergent__"][:, options.stan_warmup :].sum())
    step = stan["stepsize__"][:, -1]
    print(f"  Stan: leapfrogs a draw: mean {kept.mean():.0f}; tree depth: median "
          f"{np.median(depth):.0f}, at the limit of {options.max_depth} in "
          f"{np.mean(depth >= options.max_depth):.0%} of draws; divergent: {diverging} of "
          f"{depth.size}; step size {', '.join(f'{s:.1e}' for s in step)}")
    bound = 1e3 / (rows["Stan"][4] * kept.mean())
    print(f"  Stan, if every draw were independent: {bound:.2f} ESS/s without warm-up; "
          f"the library's is {rates['library'][1] / bound:.1f} times that")


if __name__ == "__main__":
    main()
