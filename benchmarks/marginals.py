"""What else the same ε buys: a noisy histogram, and marginals with the predictors, of income.

For each ε this prints how far one synthetic column of incomes is from the data, over several seeds:
errors of statistics of the whole column and of group means in per cent, and the ratio of the pMSE
to its null expectation. Rows:

- ``data``: incomes drawn again from the data themselves, with replacement, of all records or within
  each pair of education and region. No protection at all; what remains is the chance in drawing as
  many records, and what these two predictors leave out.
- ``histogram``: ``ppm.studies.histogram_release``, all records together; the predictors say nothing
- ``histogram, by group``: one for each pair of education and region, with as many bins, and coarser
- ``marginals``: mbi, the library behind MST and AIM, on income and all predictors. AIM chooses what
  to measure. The noise is Laplace noise, so that ε holds without an exception, as for all others.
- ``marginals, δ``: the same with Gaussian noise. ε then holds with an exception δ only. It is
  converted from zero-concentrated differential privacy by the sharper formula of Canonne, Kamath
  and Steinke (2020), which gives a little more than the one of the book's theory chapter.

All have the neighbour of the library: one record's income takes no part, while the number of
records and all predictors are public. AIM and MST as published protect the predictors as well, and
release synthetic ones. Here only marginals with income are measured and have a cost, and each
record's income is drawn given its own predictors, which favours them.

No release looks at the records to choose interval, bins, rounds or what goes to the first
measurement: these are options, and an agency has to set them beforehand. Rounds were tried on the
simulated stand-in only. Intervals and numbers of bins were tried on the Diary of 2017 too, with the
histogram, so that all rows are a little favoured there.

The noise of mbi's rows is drawn in floating-point numbers, by NumPy: enough to compare errors, and
not for a release.

mbi runs in an environment of its own, since it needs JAX::

    python benchmarks/marginals.py --install              makes it, in your cache folder
    python benchmarks/marginals.py                        the simulated stand-in, half an hour
    python benchmarks/marginals.py --mbi-python PATH      with an environment of your own
    python benchmarks/marginals.py --no-mbi               the histograms alone, some minutes
    python benchmarks/marginals.py --data diary17.zip --seeds 5

The errors are computed from the records, outside any ε: they stay with who may see the records.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from environments import answer, find, install

HERE = Path(__file__).resolve().parent
REQUIREMENT = "mbi>=2,<3"
GROUPS = ("education", "region")
# group means of fewer records say more about chance than about a release
FEWEST = 30


def find_mbi(given):
    """Interpreter that has mbi, or an end with what to do."""
    return find(
        "mbi", given, ("mbi.estimation", "numpy"),
        "make one with `python benchmarks/marginals.py --install`, give an interpreter that has "
        "mbi by --mbi-python PATH, or leave it out with --no-mbi",
    )  # fmt: skip


def rho_of(epsilon, delta):
    """Largest ρ whose zero-concentrated guarantee gives (ε, δ): Canonne, Kamath and Steinke."""
    from scipy.optimize import brentq, minimize_scalar

    def log_delta(rho):
        def at(log_order):
            # order - 1 is positive
            order = 1 + np.exp(log_order)
            return (
                (order - 1) * (order * rho - epsilon) - np.log(order - 1)
                + order * np.log1p(-1 / order)
            )

        return minimize_scalar(at, bounds=(-5, 15), method="bounded").fun

    log_rho = brentq(lambda x: log_delta(np.exp(x)) - np.log(delta), -30, np.log(epsilon + 1))
    return float(np.exp(log_rho))


def run_mbi(python, **given):
    """Synthetic bins, one row a job."""
    return answer("mbi", python, HERE / "marginals_worker.py", given=given)


def errors(income, synthetic, table, predictors):
    """Errors of one synthetic column, in per cent, and the ratio of its pMSE."""
    import ppm

    def off(found, true):
        return 100 * (found / true - 1)

    row = {
        "mean": off(synthetic.mean(), income.mean()),
        "median": off(np.median(synthetic), np.median(income)),
        "p90": off(np.quantile(synthetic, 0.9), np.quantile(income, 0.9)),
        "p10": off(np.quantile(synthetic, 0.1), np.quantile(income, 0.1)),
        "Gini": off(ppm.utility.gini(synthetic), ppm.utility.gini(income)),
    }
    for name in GROUPS:
        both = pd.DataFrame({"data": income, "synthetic": synthetic}).groupby(
            table[name].to_numpy(), observed=True
        )
        means = both.mean()[both.size() >= FEWEST]
        distance = off(means["synthetic"], means["data"]).abs()
        row[f"{name}, mean"], row[f"{name}, worst"] = distance.mean(), distance.max()
    scores = ppm.utility.rank_powers(income, synthetic)
    row["pMSE"] = ppm.utility.propensity_score(*scores, known=predictors).ratio
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--install", action="store_true", help="make the environment for mbi")
    parser.add_argument("--python", help="interpreter that --install builds on")
    parser.add_argument("--mbi-python", help="interpreter that has mbi")
    parser.add_argument("--no-mbi", action="store_true", help="the histograms alone")
    parser.add_argument("--data", metavar="PATH", help="survey file; default: simulated records")
    parser.add_argument("--records", type=int, default=0, help="0 for all of them")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.25, 0.5, 1.0, 2.0, 4.0])
    parser.add_argument("--delta", type=float, default=1e-6, help="of the rows with an exception")
    parser.add_argument("--seeds", type=int, default=5, help="releases behind each row")
    parser.add_argument("--limits", type=float, nargs=2, default=[1e3, 1e6], help="in dollars")
    parser.add_argument("--bins", type=int, default=60, help="on the logarithm of income")
    parser.add_argument("--group-bins", type=int, default=20, help="of the coarser histograms")
    parser.add_argument("--secure-noise", action="store_true", help="OpenDP's, not repeatable")
    parser.add_argument("--first", type=float, default=0.25, help="share for income alone, in mbi")
    parser.add_argument("--rounds", type=int, default=12, help="most rounds of mbi")
    parser.add_argument("--joined", type=int, default=12, help="joined bins of mbi")
    parser.add_argument("--iterations", type=int, default=400, help="of a fit of mbi")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--save", metavar="PATH", help="the table as CSV")
    options = parser.parse_args()
    if options.install:
        return install("mbi", REQUIREMENT, [options.python or sys.executable])
    python = None if options.no_mbi else find_mbi(options.mbi_python)

    import ppm

    data = ppm.survey.load(options.data) if options.data else ppm.survey.simulate(random_seed=2017)
    data = data.subsample(options.records, random_seed=options.seed)
    response, _ = ppm.survey.log_income(data, 1.0)
    income, table = np.exp(response), data.table
    predictors, _ = ppm.survey.predictor_matrix(data)
    limits = np.log(options.limits)
    seeds = [options.seed + place for place in range(options.seeds)]
    print(f"{'real' if options.data else 'simulated'} records, n = {income.size}; "
          f"{options.limits[0]:,.0f} to {options.limits[1]:,.0f} dollars; {len(seeds)} seeds")
    groups = table[list(GROUPS)]
    cells = groups.groupby(list(GROUPS), observed=True).size()
    print(f"groups by {' and '.join(GROUPS)}: {cells.size}, of {cells.min()} to {cells.max()} "
          "records; group means of fewer than "
          f"{FEWEST} records are left out\n", flush=True)

    rows = []

    def add(label, epsilon, columns):
        found = [errors(income, np.exp(column), table, predictors) for column in columns]
        rows.extend({"mechanism": label, "epsilon": epsilon} | row for row in found)

    rng = np.random.default_rng(options.seed)
    add("data", np.inf, (rng.choice(response, response.size) for _ in seeds))
    by_group = pd.Series(response).groupby(groups.apply(tuple, axis=1))
    add("data, by group", np.inf, (
        by_group.transform(lambda values: rng.choice(values, values.size)) for _ in seeds
    ))
    for epsilon in options.epsilon:
        histograms = {
            f"histogram, {options.bins} bins": (options.bins, None),
            f"histogram, by group, {options.bins} bins": (options.bins, groups),
            f"histogram, by group, {options.group_bins} bins": (options.group_bins, groups),
        }
        for label, (bins, by) in histograms.items():
            add(label, epsilon, (
                ppm.studies.histogram_release(
                    response, limits, bins=bins, epsilon=epsilon, groups=by, random_seed=seed,
                    secure_noise=options.secure_noise,
                ).synthetic[0]
                for seed in seeds
            ))
    if python:
        edges = np.linspace(*limits, options.bins + 1)
        codes = table[list(ppm.survey.expenditure.LABELS)].apply(lambda column: column.cat.codes)
        codes = codes.to_numpy().astype(np.int64)
        # a category that does not occur in public predictors is none
        codes = np.column_stack([np.unique(column, return_inverse=True)[1] for column in codes.T])
        jobs = [
            (epsilon, gaussian, seed)
            for epsilon in options.epsilon for gaussian in (False, True) for seed in seeds
        ]
        found = run_mbi(
            python,
            income=np.searchsorted(edges[1:-1], response, side="right"),
            predictors=codes,
            sizes=codes.max(axis=0) + 1,
            bins=options.bins,
            budgets=[rho_of(e, options.delta) if g else e for e, g, _ in jobs],
            gaussian=[g for _, g, _ in jobs],
            seeds=[seed for _, _, seed in jobs],
            first=options.first,
            rounds=options.rounds,
            groups=options.joined,
            iterations=options.iterations,
        )
        for (epsilon, gaussian, seed), bins in zip(jobs, found["income"], strict=True):
            within = np.random.default_rng([options.seed, seed]).uniform(
                edges[bins], edges[bins + 1]
            )
            label = f"marginals, delta {options.delta:g}" if gaussian else "marginals"
            add(label, epsilon, [within])

    frame = pd.DataFrame(rows)
    if options.save:
        frame.to_csv(options.save, index=False)
    columns = list(frame.columns[2:])
    print("average ± standard deviation over seeds; errors in per cent, of group means without "
          "their sign")
    for epsilon, some in frame.groupby("epsilon", sort=False):
        title = f"epsilon {epsilon:g}" if np.isfinite(epsilon) else "no protection"
        print(f"\n{title:32s}" + "".join(f"{c:>17s}" for c in columns))
        for label, part in some.groupby("mechanism", sort=False):
            spread = part[columns].std(ddof=1) if len(part) > 1 else part[columns].iloc[0] * np.nan
            print(f"  {label:30s}" + "".join(
                f"{f'{mean:.1f} ± {sd:.1f}':>17s}"
                for mean, sd in zip(part[columns].mean(), spread, strict=True)
            ))


if __name__ == "__main__":
    main()
